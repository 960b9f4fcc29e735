//! ServiceRecords (IBA 15.2.5.14): who offers what, until the lease is over.

use std::collections::{BTreeMap, BTreeSet};

use weft_machine::{Time, Timer};
use weft_wire::{Guid, PKey, SaRecord, ServiceRecord, sa_status};

use super::query::{Found, Query};
use super::requesters::may_have_more;
use super::view::View;
use crate::SmTimer;

/// The most services, and the most of one host. Beyond that each may have half of what is left.
const SERVICES_MAX: usize = 4096;
const SERVICES_OF_ONE_MAX: usize = 256;

/// The bits of the component mask for ServiceID and ServiceGID, and further ones.
pub(super) const IDENTIFIED: u64 = 0b11;
const P_KEY: u32 = 2;
const LEASE: u32 = 4;
const KEY: u32 = 5;

/// What tells services apart: ServiceID, ServiceGID and ServiceP_Key.
type Rid = (u64, u64, Guid, PKey);

/// Services on offer.
#[derive(Debug, Default)]
pub(super) struct Services {
    offered: BTreeMap<Rid, Service>,
    /// When the next lease is over.
    next_end: Option<Time>,
    /// Services refused because their host offers too many.
    of_one: u64,
    /// Services refused for want of room.
    full: u64,
}

#[derive(Clone, Copy, Debug)]
struct Service {
    record: ServiceRecord,
    /// When the lease is over; `None` is never.
    end: Option<Time>,
    from: Guid,
    /// The port that has its GID, or had it.
    port: Guid,
}

/// The host that offers a service, its port, and the ports that are there.
#[derive(Clone, Copy)]
pub(super) struct Offer<'a> {
    pub(super) from: Guid,
    pub(super) port: Guid,
    pub(super) view: &'a View,
    /// Ports that are away for a while.
    pub(super) away: &'a BTreeSet<Guid>,
}

impl Offer<'_> {
    fn is_there(&self, port: Guid) -> bool {
        self.view.by_guid(port).is_some() || self.away.contains(&port)
    }

    fn is_of_same_host(&self, port: Guid) -> bool {
        let host = |port| self.view.requesters.host_of(port);
        host(port) == host(self.from)
    }
}

impl Service {
    /// As it is now, for somebody who knows the manager's key or not.
    fn shown(&self, now: Time, trusted: bool) -> ServiceRecord {
        let mut record = self.record;
        if let Some(end) = self.end {
            let left = end.saturating_sub(now).as_nanos().div_ceil(Time::from_secs(1).as_nanos());
            record.service_lease = u32::try_from(left).unwrap_or(ServiceRecord::LEASE_INFINITE - 1);
        }
        if !trusted {
            record.service_key = [0; 16];
        }
        record
    }
}

impl Services {
    /// Those that match. A service key is matched, but shown only to who is trusted.
    pub(super) fn select(&self, now: Time, query: &Query<'_>) -> Result<Found, u16> {
        let filter = query.filter::<ServiceRecord>()?;
        let (mut found, mut bytes) = (Found::new::<ServiceRecord>(), Vec::new());
        let seen = |service: &&Service| query.sight.has(service.record.service_p_key);
        for service in self.offered.values().filter(seen) {
            bytes.clear();
            service.shown(now, true).append_to(&mut bytes);
            if filter.matches(&bytes) {
                found.add(&service.shown(now, query.trusted))?;
            }
        }
        Ok(found)
    }

    /// Offers a service, or changes one. As with the managers that programs know, a service's key
    /// is kept and shown to trusted requesters, but opens and closes nothing.
    pub(super) fn set(&mut self, now: Time, query: &Query<'_>, offer: &Offer<'_>) -> Result<Found, u16> {
        let mut record: ServiceRecord = query.record();
        if !query.names(P_KEY) {
            record.service_p_key = PKey::DEFAULT_FULL;
        }
        if !query.names(KEY) {
            record.service_key = [0; 16];
        }
        may_tell(query, record.service_p_key, offer.port)?;
        let rid = rid(&record);
        self.make_room(&rid, offer)?;
        if !query.names(LEASE) {
            record.service_lease = ServiceRecord::LEASE_INFINITE;
        }
        let end = (record.service_lease != ServiceRecord::LEASE_INFINITE)
            .then(|| now + Time::from_secs(record.service_lease.into()));
        let service = Service { record, end, from: offer.from, port: offer.port };
        self.offered.insert(rid, service);
        self.plan();
        Ok(Found::one(&service.shown(now, query.trusted)))
    }

    /// Finds room for a service in its host's share. When there is none, services of ports that have left make room.
    fn make_room(&mut self, rid: &Rid, offer: &Offer<'_>) -> Result<(), u16> {
        if self.has_room(rid, offer) {
            return Ok(());
        }
        self.offered.retain(|_, service| offer.is_there(service.from));
        if self.has_room(rid, offer) {
            return Ok(());
        }
        *(if self.offered.len() < SERVICES_MAX { &mut self.of_one } else { &mut self.full }) += 1;
        Err(sa_status::NO_RESOURCES)
    }

    fn has_room(&self, rid: &Rid, offer: &Offer<'_>) -> bool {
        let known = self.offered.get(rid);
        if known.is_some_and(|known| offer.is_of_same_host(known.from)) {
            return true;
        }
        let of_one = self.offered.values().filter(|service| offer.is_of_same_host(service.from)).count();
        // One that another host has offered is this one's from now on, and its place with it.
        let left = SERVICES_MAX - self.offered.len() + usize::from(known.is_some());
        may_have_more(of_one, SERVICES_OF_ONE_MAX, left)
    }

    /// Services refused because their host offers too many, and for want of room.
    pub(super) fn refused(&self) -> (u64, u64) {
        (self.of_one, self.full)
    }

    /// Ends all.
    pub(super) fn clear(&mut self) {
        self.offered.clear();
        self.next_end = None;
    }

    /// Withdraws a service. The record itself says which, whatever the mask has: programs delete what they have found.
    pub(super) fn delete(&mut self, now: Time, query: &Query<'_>) -> Result<Found, u16> {
        let record: ServiceRecord = query.record();
        let rid = rid(&record);
        let port = self.offered.get(&rid).map_or(record.service_gid.guid, |service| service.port);
        may_tell(query, record.service_p_key, port)?;
        let service = self.offered.remove(&rid).ok_or(sa_status::NO_RECORDS)?;
        self.plan();
        Ok(Found::one(&service.shown(now, query.trusted)))
    }

    /// Virtual functions that have `gone` offer nothing: who comes there, or back, registers again.
    pub(super) fn leave(&mut self, gone: impl Fn(Guid) -> bool) {
        self.offered.retain(|_, service| !gone(service.port));
        self.plan();
    }

    /// Lets time pass.
    pub(super) fn expire(&mut self, now: Time) {
        if self.next_end.is_some_and(|end| end <= now) {
            self.offered.retain(|_, service| service.end.is_none_or(|end| end > now));
            self.plan();
        }
    }

    fn plan(&mut self) {
        self.next_end = self.offered.values().filter_map(|service| service.end).min();
    }

    pub(super) fn next_timer(&self) -> Option<Timer<SmTimer>> {
        Timer::new(self.next_end, SmTimer::ServiceLease)
    }
}

/// Whether who asks may offer or withdraw a service: its port and the service's are both in the service's partition.
fn may_tell(query: &Query<'_>, key: PKey, port: Guid) -> Result<(), u16> {
    let may = query.sight.both_have(key, port);
    if may { Ok(()) } else { Err(sa_status::REQ_INVALID) }
}

fn rid(record: &ServiceRecord) -> Rid {
    let gid = record.service_gid;
    (record.service_id, gid.prefix.0, gid.guid, record.service_p_key)
}
