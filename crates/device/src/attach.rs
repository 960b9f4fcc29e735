//! Attached management programs: who they are, which answers are theirs, what they registered for.
//!
//! Answers find their program by the upper half of the transaction id, which the device overwrites on departure
//! with the program's number and restores on arrival.

use std::collections::BTreeMap;

use weft_machine::Time;
use weft_wire::{
    AddressedMad, Lid, Mad, Method, MgmtClass, PortNum, QpNum, Registration, Smp as SmpLayout, TransactionId,
    capability,
};

use crate::gmp::Gmp;
use crate::smi::Arrival;
use crate::vl15::Smp;
use crate::{ClientId, Device, DropReason, Event, Output, RefusalReason};

/// An attached program.
#[derive(Debug)]
struct Client {
    port: PortNum,
    registrations: Vec<Registration>,
    upper_halves: UpperHalves,
}

/// The upper halves of a program's transaction ids that were not zero.
#[derive(Debug, Default)]
struct UpperHalves {
    /// By lower half, each with its age.
    by_lower: BTreeMap<u32, (u64, u32)>,
    /// The lower halves, the oldest first.
    by_age: BTreeMap<u64, u32>,
    /// Counts up, and is the age of the next.
    next: u64,
}

/// All attached programs.
#[derive(Debug, Default)]
pub(crate) struct Clients {
    attached: BTreeMap<ClientId, Client>,
}

/// Requests of one program whose upper half is remembered; beyond that its oldest is forgotten, and that answer
/// comes back with an upper half of zero. Other programs lose nothing by it.
const UPPER_HALVES_MAX: usize = 4096;

impl UpperHalves {
    fn insert(&mut self, lower: u32, upper: u32) {
        self.remove(lower);
        if self.by_lower.len() >= UPPER_HALVES_MAX
            && let Some((_, oldest)) = self.by_age.pop_first()
        {
            self.by_lower.remove(&oldest);
        }
        self.by_lower.insert(lower, (self.next, upper));
        self.by_age.insert(self.next, lower);
        self.next += 1;
    }

    fn remove(&mut self, lower: u32) -> Option<u32> {
        let (age, upper) = self.by_lower.remove(&lower)?;
        self.by_age.remove(&age);
        Some(upper)
    }
}

impl Clients {
    pub(crate) fn len(&self) -> usize {
        self.attached.len()
    }

    /// The first program at `port`, and that of its registrations, of which `wanted` holds.
    fn find<T>(&self, port: PortNum, wanted: impl Fn(&Registration) -> Option<T>) -> Option<(ClientId, T)> {
        let here = self.attached.iter().filter(|(_, client)| client.port == port);
        here.flat_map(|(&id, client)| client.registrations.iter().map(move |taken| (id, taken)))
            .find_map(|(id, taken)| Some((id, wanted(taken)?)))
    }

    /// The program at `port` that registered for such a MAD.
    fn registered(&self, port: PortNum, mad: &Mad) -> Option<ClientId> {
        self.find(port, |taken| taken.covers(mad).then_some(())).map(|(client, ())| client)
    }

    /// Puts the program's number into a request, and remembers what was there.
    fn mark(&mut self, client: ClientId, mad: &mut Mad) {
        let id = mad.transaction_id().0;
        let (upper, lower) = ((id >> 32) as u32, id as u32);
        if upper != 0
            && let Some(client) = self.attached.get_mut(&client)
        {
            client.upper_halves.insert(lower, upper);
        }
        let marked = u64::from(client.0) << 32 | u64::from(lower);
        SmpLayout::transaction_id.set(&mut mad.0, TransactionId(marked));
    }

    /// The program that a response belongs to, whose transaction id is put back as it was.
    fn claim(&mut self, port: PortNum, mad: &mut Mad) -> Option<ClientId> {
        let id = mad.transaction_id().0;
        let client = ClientId(u16::try_from(id >> 32).ok()?);
        let attached = self.attached.get_mut(&client).filter(|attached| attached.port == port)?;
        let lower = id as u32;
        let upper = attached.upper_halves.remove(lower).unwrap_or(0);
        SmpLayout::transaction_id.set(&mut mad.0, TransactionId(u64::from(upper) << 32 | u64::from(lower)));
        Some(client)
    }
}

impl Device {
    pub(crate) fn attach(
        &mut self,
        now: Time,
        client: ClientId,
        port: PortNum,
        registrations: Vec<Registration>,
    ) {
        self.clients.attached.remove(&client);
        if let Some(reason) = self.refusal(port, &registrations) {
            self.is_sm_changed(now);
            return self.emit(Event::ClientRefused { client, reason });
        }
        let upper_halves = UpperHalves::default();
        self.clients.attached.insert(client, Client { port, registrations, upper_halves });
        self.emit(Event::ClientAttached { client, port });
        self.is_sm_changed(now);
    }

    fn refusal(&self, port: PortNum, registrations: &[Registration]) -> Option<RefusalReason> {
        if !self.has_port(port) || (self.is_switch() && port != PortNum::ZERO) {
            return Some(RefusalReason::NoSuchPort);
        }
        if self.clients.len() >= usize::from(self.clients_max) {
            return Some(RefusalReason::TooMany);
        }
        registrations.iter().find_map(|wanted| {
            let (_, method) = self.clients.find(port, |taken| taken.overlap(wanted))?;
            Some(RefusalReason::Taken { class: wanted.class, class_version: wanted.class_version, method })
        })
    }

    pub(crate) fn detach(&mut self, now: Time, client: ClientId) {
        if self.clients.attached.remove(&client).is_some() {
            self.emit(Event::ClientDetached { client });
            self.is_sm_changed(now);
        }
    }

    /// Sets each port's IsSM bit as its programs say, and tells the subnet manager where it changed. Who takes
    /// Traps or SubnGet(SMInfo) is a subnet manager.
    fn is_sm_changed(&mut self, now: Time) {
        for at in 0..self.ports.len() {
            let port = PortNum(at as u8);
            let is_sm = [MgmtClass::SubnLid, MgmtClass::SubnDirected].into_iter().any(|class| {
                let manages = Registration::new(class, 1, [Method::Trap, Method::Get, Method::Set]);
                self.clients.find(port, |taken| taken.overlap(&manages)).is_some()
            });
            let mask = self.ports[at].info.capability_mask & !capability::IS_SM;
            self.set_capability_mask(now, port, if is_sm { mask | capability::IS_SM } else { mask });
        }
    }

    /// A program sends a MAD.
    pub(crate) fn send(&mut self, now: Time, client: ClientId, sent: &AddressedMad) {
        let Some(port) = self.clients.attached.get(&client).map(|client| client.port) else {
            return self.discard(PortNum::ZERO, DropReason::NoSuchClient);
        };
        let mut mad = sent.mad;
        let method = mad.method();
        if !method.is_response() && method != Method::TrapRepress {
            self.clients.mark(client, &mut mad);
        }
        let slid = self.ports[usize::from(port.0)].info.lid;
        match mad.class() {
            MgmtClass::SubnDirected if sent.lid == Lid::PERMISSIVE => {
                let (slid, dlid, arrival) = (Lid::PERMISSIVE, Lid::PERMISSIVE, Arrival::Local);
                self.process_smp(now, Smp { arrival, port, slid, dlid, mad });
            }
            MgmtClass::SubnDirected | MgmtClass::SubnLid => self.route_smp(now, port, slid, sent.lid, mad),
            _ => self.send_gmp(now, port, sent, mad),
        }
    }

    fn send_gmp(&mut self, now: Time, port: PortNum, sent: &AddressedMad, mad: Mad) {
        let end = &self.ports[usize::from(port.0)];
        let Some(&p_key) = end.p_keys.get(usize::from(sent.pkey_index)).filter(|key| key.0 & 0x7fff != 0)
        else {
            return self.discard(port, DropReason::BadPKey);
        };
        let gmp = Gmp {
            port,
            slid: end.info.lid,
            dlid: sent.lid,
            service_level: sent.service_level,
            p_key,
            dest_qp: sent.remote_qp,
            src_qp: QpNum::GSI,
            q_key: sent.qkey,
            mad,
        };
        self.route_gmp(now, gmp);
    }

    /// Gives an SMP to the program that asked, or registered, for it.
    pub(crate) fn deliver_smp_to_client(&mut self, mut smp: Smp) {
        let end = self.end_port(smp.port);
        match self.receiver(end, &mut smp.mad) {
            Some(client) => {
                let mad = AddressedMad::smp(smp.slid, smp.mad);
                self.outputs.push_back(Output::Deliver { client, mad });
            }
            None => self.discard(smp.port, DropReason::NoReceiver),
        }
    }

    /// The program that a MAD is for: the one that asked, or the one that registered.
    pub(crate) fn receiver(&mut self, port: PortNum, mad: &mut Mad) -> Option<ClientId> {
        if mad.method().is_response() {
            self.clients.claim(port, mad)
        } else {
            self.clients.registered(port, mad)
        }
    }

    /// Whether a program at `port` takes such a request.
    pub(crate) fn has_receiver(&self, port: PortNum, mad: &Mad) -> bool {
        self.clients.registered(port, mad).is_some()
    }
}

#[cfg(test)]
mod tests;
