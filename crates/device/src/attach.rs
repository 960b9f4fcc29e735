//! Attached management programs: who they are, which answers are theirs, what they registered for.
//!
//! Answers find their program by the upper 16 bits of the transaction id, which the device overwrites on departure
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
    is_sm: bool,
    overwritten: Overwritten,
}

/// The upper 16 bits of a program's transaction ids, where they were not zero.
#[derive(Debug, Default)]
struct Overwritten {
    /// By the other 48, each with its age.
    by_rest: BTreeMap<u64, (u64, u16)>,
    /// The other 48, the oldest first.
    by_age: BTreeMap<u64, u64>,
    /// Counts up, and is the age of the next.
    next: u64,
}

/// All attached programs.
#[derive(Debug, Default)]
pub(crate) struct Clients {
    attached: BTreeMap<ClientId, Client>,
}

/// Requests of one program whose upper bits are remembered; beyond that its oldest is forgotten, and that answer
/// comes back with zeros. Other programs lose nothing by it.
const OVERWRITTEN_MAX: usize = 4096;

/// Where the program's number is in a transaction id.
const CLIENT_SHIFT: u32 = 48;

/// The part of a transaction id that stays as it is.
const REST: u64 = (1 << CLIENT_SHIFT) - 1;

impl Overwritten {
    fn insert(&mut self, rest: u64, upper: u16) {
        if let Some((age, _)) = self.by_rest.remove(&rest) {
            self.by_age.remove(&age);
        }
        if upper == 0 {
            return;
        }
        if self.by_rest.len() >= OVERWRITTEN_MAX
            && let Some((_, oldest)) = self.by_age.pop_first()
        {
            self.by_rest.remove(&oldest);
        }
        self.by_rest.insert(rest, (self.next, upper));
        self.by_age.insert(self.next, rest);
        self.next += 1;
    }

    /// One request may have several answers: the segments of an RMPP transfer. So nothing is forgotten here.
    fn of(&self, rest: u64) -> u16 {
        self.by_rest.get(&rest).map_or(0, |(_, upper)| *upper)
    }
}

impl Clients {
    pub(crate) fn len(&self) -> usize {
        self.attached.len()
    }

    /// The program at `port` that registered for such a MAD.
    fn registered(&self, port: PortNum, mad: &Mad) -> Option<ClientId> {
        let wants = |client: &Client| {
            client.port == port && client.registrations.iter().any(|registration| registration.covers(mad))
        };
        self.attached.iter().find(|(_, client)| wants(client)).map(|(&id, _)| id)
    }

    /// A method of what `client` wants that another program at `port` has already.
    fn taken(&self, client: ClientId, port: PortNum, wanted: &Registration) -> Option<Method> {
        let others = self.attached.iter().filter(|(id, other)| **id != client && other.port == port);
        others.flat_map(|(_, other)| &other.registrations).find_map(|taken| taken.overlap(wanted))
    }

    /// Puts the program's number into a request, and remembers what was there.
    fn mark(&mut self, client: ClientId, mad: &mut Mad) {
        let id = mad.transaction_id().0;
        if let Some(client) = self.attached.get_mut(&client) {
            client.overwritten.insert(id & REST, (id >> CLIENT_SHIFT) as u16);
        }
        let marked = u64::from(client.0) << CLIENT_SHIFT | id & REST;
        SmpLayout::transaction_id.set(&mut mad.0, TransactionId(marked));
    }

    /// The program that a response belongs to, whose transaction id is put back as it was.
    fn claim(&self, port: PortNum, mad: &mut Mad) -> Option<ClientId> {
        let id = mad.transaction_id().0;
        let client = ClientId((id >> CLIENT_SHIFT) as u16);
        let attached = self.attached.get(&client).filter(|attached| attached.port == port)?;
        let upper = u64::from(attached.overwritten.of(id & REST));
        SmpLayout::transaction_id.set(&mut mad.0, TransactionId(upper << CLIENT_SHIFT | id & REST));
        Some(client)
    }
}

impl Device {
    /// A program attaches; or, attached at this port already, changes what it registered for.
    pub(crate) fn attach(
        &mut self,
        now: Time,
        client: ClientId,
        port: PortNum,
        wants: (Vec<Registration>, bool),
    ) {
        let (registrations, is_sm) = wants;
        if let Some(reason) = self.refusal(client, port, &registrations) {
            return self.emit(Event::ClientRefused { client, reason });
        }
        let before = self.clients.attached.remove(&client).filter(|before| before.port == port);
        if before.is_none() {
            self.emit(Event::ClientAttached { client, port });
        }
        let overwritten = before.map(|before| before.overwritten).unwrap_or_default();
        self.clients.attached.insert(client, Client { port, registrations, is_sm, overwritten });
        self.is_sm_changed(now);
    }

    fn refusal(
        &self,
        client: ClientId,
        port: PortNum,
        registrations: &[Registration],
    ) -> Option<RefusalReason> {
        if !self.has_port(port) || (self.is_switch() && port != PortNum::ZERO) {
            return Some(RefusalReason::NoSuchPort);
        }
        let known = self.clients.attached.contains_key(&client);
        if !known && self.clients.len() >= usize::from(self.clients_max) {
            return Some(RefusalReason::TooMany);
        }
        registrations.iter().enumerate().find_map(|(at, wanted)| {
            let own = registrations[..at].iter().find_map(|other| other.overlap(wanted));
            let method = own.or_else(|| self.clients.taken(client, port, wanted))?;
            Some(RefusalReason::Taken { class: wanted.class, class_version: wanted.class_version, method })
        })
    }

    pub(crate) fn detach(&mut self, now: Time, client: ClientId) {
        if self.clients.attached.remove(&client).is_some() {
            self.emit(Event::ClientDetached { client });
            self.is_sm_changed(now);
        }
    }

    /// Sets each port's IsSM bit as its programs say, and tells the subnet manager where it changed.
    fn is_sm_changed(&mut self, now: Time) {
        for at in 0..self.ports.len() {
            let port = PortNum(at as u8);
            let is_sm = self.clients.attached.values().any(|client| client.port == port && client.is_sm);
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
