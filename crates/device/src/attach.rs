//! Attached management programs: who they are, which answers are theirs, what they registered for.
//!
//! Answers find their program by the first 16 bits of the transaction id, which the device overwrites on departure
//! with the program's number and restores on arrival. The other 48 are the program's own, so that one that serves
//! several others (a host's MAD layer) can tell theirs apart.

use std::collections::BTreeMap;

use weft_machine::Time;
use weft_wire::{
    AddressedMad, Lid, Mad, Method, MgmtClass, PortNum, QpNum, Registration, Smp as SmpLayout, TransactionId,
    capability,
};

use crate::gmp::Gmp;
use crate::smi::Arrival;
use crate::vl15::Smp;
use crate::{ClientId, Device, DeviceOptions, DropReason, Event, Output, RefusalReason};

/// An attached program.
#[derive(Debug)]
struct Client {
    port: PortNum,
    claims: Vec<Claim>,
    /// What it said of itself, whatever it has registered.
    says_sm: bool,
    upper_bits: UpperBits,
}

/// One registration.
#[derive(Clone, Copy, Debug)]
struct Claim {
    /// The program's name for it; none when it came with the attachment.
    key: Option<u32>,
    registration: Registration,
}

/// The first 16 bits of a program's transaction ids, where they were not zero.
#[derive(Debug, Default)]
struct UpperBits {
    /// By the other 48 bits, each with its age.
    by_lower: BTreeMap<u64, (u64, u16)>,
    /// Those 48 bits, the oldest first.
    by_age: BTreeMap<u64, u64>,
    /// Counts up, and is the age of the next.
    next: u64,
}

/// All attached programs.
#[derive(Debug)]
pub(crate) struct Clients {
    attached: BTreeMap<ClientId, Client>,
    /// How many there may be.
    max: u16,
    /// Whether they may send SMPs.
    qp0: bool,
}

/// Requests of one program whose first bits are remembered; beyond that its oldest is forgotten, and that answer
/// comes back with zeros. Other programs lose nothing by it.
const UPPER_BITS_MAX: usize = 4096;

/// Registrations of one program.
const CLAIMS_MAX: usize = 256;

/// The device's own traps have this where programs have their number.
const RESERVED: ClientId = ClientId(u16::MAX);

/// The bits of a transaction id that are a program's own.
const LOWER: u64 = (1 << 48) - 1;

impl UpperBits {
    fn insert(&mut self, lower: u64, upper: u16) {
        self.remove(lower);
        if self.by_lower.len() >= UPPER_BITS_MAX
            && let Some((_, oldest)) = self.by_age.pop_first()
        {
            self.by_lower.remove(&oldest);
        }
        self.by_lower.insert(lower, (self.next, upper));
        self.by_age.insert(self.next, lower);
        self.next += 1;
    }

    /// More answers with the same transaction id may follow.
    fn get(&self, lower: u64) -> Option<u16> {
        self.by_lower.get(&lower).map(|&(_, upper)| upper)
    }

    fn remove(&mut self, lower: u64) -> Option<u16> {
        let (age, upper) = self.by_lower.remove(&lower)?;
        self.by_age.remove(&age);
        Some(upper)
    }
}

impl Clients {
    pub(crate) fn new(options: &DeviceOptions) -> Self {
        Self { attached: BTreeMap::new(), max: options.clients_max, qp0: options.programs_qp0 }
    }

    pub(crate) fn len(&self) -> usize {
        self.attached.len()
    }

    /// The programs at `port`.
    pub(crate) fn at(&self, port: PortNum) -> impl Iterator<Item = ClientId> {
        self.attached.iter().filter(move |(_, client)| client.port == port).map(|(&id, _)| id)
    }

    /// The first program at `port`, and that of its registrations, of which `wanted` holds.
    fn find<T>(&self, port: PortNum, wanted: impl Fn(ClientId, &Claim) -> Option<T>) -> Option<T> {
        let here = self.attached.iter().filter(|(_, client)| client.port == port);
        here.flat_map(|(&id, client)| client.claims.iter().map(move |claim| (id, claim)))
            .find_map(|(id, claim)| wanted(id, claim))
    }

    /// The program at `port` that registered for such a MAD, else the host: programs have lower numbers.
    fn registered(&self, port: PortNum, mad: &Mad) -> Option<ClientId> {
        self.find(port, |client, claim| claim.registration.covers(mad).then_some(client))
    }

    /// The host behind `port`, if it registered for such a MAD.
    fn host(&self, port: PortNum, mad: &Mad) -> Option<ClientId> {
        self.find(port, |client, claim| {
            (client.is_host() && claim.registration.covers(mad)).then_some(client)
        })
    }

    /// That host, if a program registered for such a MAD too.
    fn host_beside(&self, port: PortNum, mad: &Mad) -> Option<ClientId> {
        let host = self.host(port, mad)?;
        self.registered(port, mad).filter(|first| *first != host).map(|_| host)
    }

    /// Whether the host behind `port` answers the Report that a program at `port` answers with `mad`.
    fn is_answered_by_host(&self, port: PortNum, mad: &Mad) -> bool {
        if mad.method() != Method::ReportResp {
            return false;
        }
        let mut report = *mad;
        SmpLayout::method.set(&mut report.0, Method::Report);
        self.host(port, &report).is_some()
    }

    /// Whether a program at `port` is a subnet manager: it says so, or it came with a subnet manager's registrations. None is
    /// where programs may not send SMPs, as Linux's mlx4 lets no virtual function set IsSM.
    fn is_sm(&self, port: PortNum) -> bool {
        if !self.qp0 {
            return false;
        }
        let manages = [MgmtClass::SubnLid, MgmtClass::SubnDirected]
            .map(|class| Registration::new(class, 1, [Method::Trap, Method::Get, Method::Set]));
        let came_to_manage = |claim: &Claim| {
            claim.key.is_none() && manages.iter().any(|wanted| claim.registration.overlap(wanted).is_some())
        };
        self.attached.values().any(|client| client.port == port && client.says_sm)
            || self.find(port, |_, claim| came_to_manage(claim).then_some(())).is_some()
    }

    /// Adds one registration to those of an attached program.
    fn register(&mut self, client: ClientId, key: u32, wanted: Registration) -> Result<(), RefusalReason> {
        let attached = self.attached.get(&client).ok_or(RefusalReason::NotAttached)?;
        if attached.claims.len() >= CLAIMS_MAX {
            return Err(RefusalReason::TooMany);
        }
        if attached.claims.iter().any(|claim| claim.key == Some(key)) {
            return Err(RefusalReason::KeyInUse);
        }
        if let Some(reason) = self.taken(attached.port, &wanted) {
            return Err(reason);
        }
        let attached = self.attached.get_mut(&client).ok_or(RefusalReason::NotAttached)?;
        attached.claims.push(Claim { key: Some(key), registration: wanted });
        Ok(())
    }

    /// Why such a registration cannot be: a program at `port` has a method of it. What the host has registered for goes to both.
    fn taken(&self, port: PortNum, wanted: &Registration) -> Option<RefusalReason> {
        let of_program = |client: ClientId, claim: &Claim| {
            if client.is_host() { None } else { claim.registration.overlap(wanted) }
        };
        let method = self.find(port, of_program)?;
        Some(RefusalReason::Taken { class: wanted.class, class_version: wanted.class_version, method })
    }

    /// Puts the program's number into a request, and remembers what was there.
    fn mark(&mut self, client: ClientId, mad: &mut Mad) {
        let id = mad.transaction_id().0;
        let (upper, lower) = ((id >> 48) as u16, id & LOWER);
        if upper != 0
            && let Some(client) = self.attached.get_mut(&client)
        {
            client.upper_bits.insert(lower, upper);
        }
        let marked = u64::from(client.0) << 48 | lower;
        SmpLayout::transaction_id.set(&mut mad.0, TransactionId(marked));
    }

    /// The program at `port` that an answer belongs to.
    fn asker(&self, port: PortNum, mad: &Mad) -> Option<ClientId> {
        let client = ClientId((mad.transaction_id().0 >> 48) as u16);
        self.attached.get(&client).filter(|attached| attached.port == port).map(|_| client)
    }

    /// The program that an answer belongs to, whose transaction id is put back as it was.
    fn claim(&mut self, port: PortNum, mad: &mut Mad) -> Option<ClientId> {
        let client = self.asker(port, mad)?;
        let attached = self.attached.get_mut(&client)?;
        let lower = mad.transaction_id().0 & LOWER;
        let upper = if mad.is_rmpp_active() {
            attached.upper_bits.get(lower)
        } else {
            attached.upper_bits.remove(lower)
        };
        let id = u64::from(upper.unwrap_or(0)) << 48 | lower;
        SmpLayout::transaction_id.set(&mut mad.0, TransactionId(id));
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
        if let Some(reason) = self.refusal(client, port, &registrations) {
            self.is_sm_changed(now);
            return self.outputs.push_back(Output::Attached { client, port, outcome: Err(reason) });
        }
        let claim = |registration| Claim { key: None, registration };
        let claims = registrations.into_iter().map(claim).collect();
        let (says_sm, upper_bits) = (false, UpperBits::default());
        self.clients.attached.insert(client, Client { port, claims, says_sm, upper_bits });
        self.outputs.push_back(Output::Attached { client, port, outcome: Ok(()) });
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
        if client == RESERVED {
            return Some(RefusalReason::TooMany);
        }
        if self.clients.len() >= usize::from(self.clients.max) || registrations.len() > CLAIMS_MAX {
            return Some(RefusalReason::TooMany);
        }
        if client.is_host() {
            // Traffic may begin where a manager runs already: the host and the program then both get what comes.
            return None;
        }
        registrations.iter().find_map(|wanted| self.clients.taken(port, wanted))
    }

    /// An attached program registers for something more.
    pub(crate) fn register(&mut self, client: ClientId, key: u32, registration: Registration) {
        let outcome = self.clients.register(client, key, registration);
        self.outputs.push_back(Output::Registered { client, key, outcome });
    }

    /// An attached program gives back what it registered for with [`Device::register`].
    pub(crate) fn unregister(&mut self, client: ClientId, key: u32) {
        if let Some(client) = self.clients.attached.get_mut(&client) {
            client.claims.retain(|claim| claim.key != Some(key));
        }
    }

    /// An attached program says whether it is a subnet manager.
    pub(crate) fn set_sm(&mut self, now: Time, client: ClientId, is_sm: bool) {
        if let Some(client) = self.clients.attached.get_mut(&client) {
            client.says_sm = is_sm;
            self.is_sm_changed(now);
        }
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
            let is_sm = self.clients.is_sm(port);
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
        if mad.is_smp() && !self.clients.qp0 {
            // The sender is not notified, and its request times out, as one that a ConnectX-3 sends
            // from a virtual function (mlx4_ib_multiplex_mad in Linux).
            return self.discard(port, DropReason::Qp0Denied);
        }
        if !client.is_host() && self.clients.is_answered_by_host(port, &mad) {
            // Both got the Report, and the subnet manager waits for one answer.
            return;
        }
        if !mad.is_answer() {
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
                self.outputs.push_back(Output::Deliver { client, mad: Box::new(mad) });
            }
            None => self.discard(smp.port, DropReason::NoReceiver),
        }
    }

    /// The program that a MAD is for: the one that asked, or the one that registered.
    pub(crate) fn receiver(&mut self, port: PortNum, mad: &mut Mad) -> Option<ClientId> {
        if mad.is_answer() { self.clients.claim(port, mad) } else { self.clients.registered(port, mad) }
    }

    /// The host that gets a request, too, which goes to a program at its port.
    pub(crate) fn host_beside(&self, port: PortNum, mad: &Mad) -> Option<ClientId> {
        if mad.is_answer() { None } else { self.clients.host_beside(port, mad) }
    }

    /// Whether a program at `port` asked for such an answer.
    pub(crate) fn has_asker(&self, port: PortNum, mad: &Mad) -> bool {
        self.clients.asker(port, mad).is_some()
    }

    /// Whether a program at `port` takes such a request.
    pub(crate) fn has_receiver(&self, port: PortNum, mad: &Mad) -> bool {
        self.clients.registered(port, mad).is_some()
    }
}

#[cfg(test)]
mod tests;
