//! ServiceRecords (IBA 15.2.5.14): who offers what, until the lease is over.

use std::collections::BTreeMap;

use weft_machine::{Time, Timer};
use weft_wire::{Guid, PKey, SaRecord, ServiceRecord, sa_status};

use super::query::{Found, Query};
use crate::SmTimer;

/// The most services.
const SERVICES_MAX: usize = 4096;

/// Bits of the component mask.
const IDENTIFIED: u64 = 0b11;
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
}

#[derive(Clone, Copy, Debug)]
struct Service {
    record: ServiceRecord,
    /// When the lease is over; `None` is never.
    end: Option<Time>,
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

    /// Offers a service, or changes one. As with the managers that programs know, a service's key is kept and told to
    /// who is trusted, but opens and closes nothing.
    pub(super) fn set(&mut self, now: Time, query: &Query<'_>) -> Result<Found, u16> {
        if !query.names_all(IDENTIFIED) {
            return Err(sa_status::INSUFFICIENT_COMPONENTS);
        }
        let mut record: ServiceRecord = query.record();
        if !query.names(P_KEY) {
            record.service_p_key = PKey::DEFAULT_FULL;
        }
        if !query.names(KEY) {
            record.service_key = [0; 16];
        }
        may_tell(query, &record)?;
        let rid = rid(&record);
        if !self.offered.contains_key(&rid) && self.offered.len() >= SERVICES_MAX {
            return Err(sa_status::NO_RESOURCES);
        }
        if !query.names(LEASE) {
            record.service_lease = ServiceRecord::LEASE_INFINITE;
        }
        let end = (record.service_lease != ServiceRecord::LEASE_INFINITE)
            .then(|| now + Time::from_secs(record.service_lease.into()));
        let service = Service { record, end };
        self.offered.insert(rid, service);
        self.plan();
        Ok(Found::one(&service.shown(now, query.trusted)))
    }

    /// Withdraws a service. The record itself says which, whatever the mask has: programs delete what they have found.
    pub(super) fn delete(&mut self, now: Time, query: &Query<'_>) -> Result<Found, u16> {
        let record: ServiceRecord = query.record();
        may_tell(query, &record)?;
        let service = self.offered.remove(&rid(&record)).ok_or(sa_status::NO_RECORDS)?;
        self.plan();
        Ok(Found::one(&service.shown(now, query.trusted)))
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
fn may_tell(query: &Query<'_>, record: &ServiceRecord) -> Result<(), u16> {
    let may = query.sight.both_have(record.service_p_key, record.service_gid.guid);
    if may { Ok(()) } else { Err(sa_status::REQ_INVALID) }
}

fn rid(record: &ServiceRecord) -> Rid {
    let gid = record.service_gid;
    (record.service_id, gid.prefix.0, gid.guid, record.service_p_key)
}
