//! One program's place: who it is, what it asked, and what it may be asked.

use std::collections::{BTreeMap, VecDeque};

use weft_wire::{
    AddressedMad, AttributeId, Lid, Mad, MadHeader, Method, MgmtClass, NodeInfo, Oui, PortNum, QpNum,
    RMPP_END, Registration, RmppHeader, RmppType, ServiceLevel, Smp, TransactionId, rmpp_status,
};

use crate::address::Address;
use crate::codec::{Command, Control, Data, Form, TIMED_OUT};

/// Requests of one program that may be without answer; one more comes back at once.
pub(crate) const PENDING_MAX: usize = 1024;

/// Traps whose transaction is remembered until it is repressed.
const HEARD_MAX: usize = 64;

/// Whose the classes of ping and sysstat are.
const OPENIB: Oui = Oui(0x00_1405);

/// Which requests of others a program wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Those that a subnet manager answers: it said that it is one after it had connected.
    Manager,
    /// All of them: it connected as issm, which is how services under ibsim ask for requests.
    Everything,
}

impl Role {
    /// What the program registers for.
    pub fn registrations(self) -> Vec<Registration> {
        use Method as M;
        let ask = [M::Get, M::Set, M::Send, M::Report, M::GetTable, M::GetTraceTable, M::GetMulti, M::Delete];
        let mut registrations = vec![
            Registration::new(MgmtClass::SubnLid, 1, [M::Get, M::Set, M::Trap, M::TrapRepress]),
            Registration::new(MgmtClass::SubnDirected, 1, [M::Get, M::Set]),
            Registration::new(MgmtClass::SubnAdm, 2, ask),
        ];
        if self == Self::Everything {
            let vendor = [M::Get, M::Set, M::Send, M::Trap];
            let first_range = (0x09..=0x0f).map(MgmtClass::from_code);
            registrations.extend(first_range.map(|class| Registration::new(class, 1, vendor)));
            let openib = [MgmtClass::OpenIbPing, MgmtClass::OpenIbSysstat];
            let openib =
                openib.map(|class| Registration { oui: OPENIB, ..Registration::new(class, 1, vendor) });
            registrations.extend(openib);
        }
        registrations
    }
}

/// How far a slot is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// The connection to the agent is being made, for this question.
    Attaching(Control),
    /// The node is asked who it is.
    Asking,
    /// The registration is being made, for this question.
    Registering(Control),
    /// The program knows that it is connected.
    Ready,
}

/// What a request is for.
#[derive(Clone, Debug)]
pub(crate) enum Purpose {
    /// The program's own: its transaction id and the addresses that it used.
    Program { id: TransactionId, data: Data },
    /// To answer a control message.
    Question { to: Address, control: Control },
}

/// A request without answer.
#[derive(Clone, Debug)]
pub(crate) struct Pending {
    pub(crate) purpose: Purpose,
    pub(crate) request: AddressedMad,
    pub(crate) retries: u32,
    pub(crate) due: std::time::Instant,
}

/// One program's place.
#[derive(Debug)]
pub(crate) struct Slot {
    pub(crate) control: Address,
    pub(crate) peer: Address,
    pub(crate) form: Form,
    pub(crate) stage: Stage,
    pub(crate) node_id: String,
    pub(crate) port: PortNum,
    pub(crate) node_info: NodeInfo,
    pub(crate) role: Option<Role>,
    pub(crate) pending: BTreeMap<u32, Pending>,
    next: u32,
    /// It asked others: then it is no mere service.
    asks: bool,
    heard: VecDeque<TransactionId>,
}

impl Slot {
    pub(crate) fn new(control: Address, peer: Address, connect: Control) -> Self {
        Self {
            control,
            peer,
            form: Form::Wide,
            stage: Stage::Attaching(connect),
            node_id: String::new(),
            port: PortNum::ZERO,
            node_info: NodeInfo::decode(&[0; NodeInfo::SIZE]),
            role: None,
            pending: BTreeMap::new(),
            next: 0,
            asks: false,
            heard: VecDeque::new(),
        }
    }

    /// Whether the program may send already.
    pub(crate) fn is_connected(&self) -> bool {
        match &self.stage {
            Stage::Attaching(_) | Stage::Asking => false,
            Stage::Registering(control) => control.command != Command::Connect,
            Stage::Ready => true,
        }
    }

    /// Notes a request under a number of its own, which becomes its transaction id.
    pub(crate) fn note(&mut self, mut pending: Pending) -> (u32, AddressedMad) {
        self.next = self.next.wrapping_add(1);
        Smp::transaction_id.set(&mut pending.request.mad.0, TransactionId(self.next.into()));
        let request = pending.request;
        self.pending.insert(self.next, pending);
        (self.next, request)
    }

    /// What the program sends, as an attachment takes it.
    pub(crate) fn address(&mut self, data: &Data) -> AddressedMad {
        let mut mad = data.mad;
        let sent = match mad.is_smp() {
            true => AddressedMad::smp(data.dlid, mad),
            false => {
                AddressedMad { remote_qp: data.dqp, ..AddressedMad::gmp(data.dlid, ServiceLevel(0), mad) }
            }
        };
        self.asks |= expects_answer(mad.method());
        if mad.method() != Method::TrapRepress {
            return sent;
        }
        // The library wrote the number of its agent over a part of the trap's transaction.
        let id = mad.transaction_id();
        let same = |heard: &&TransactionId| heard.0 as u32 == id.0 as u32;
        let heard = self.heard.iter().find(same).copied().unwrap_or(id);
        Smp::transaction_id.set(&mut mad.0, heard);
        AddressedMad { mad, ..sent }
    }

    /// Whether a request of somebody else goes to the program. The stock library crashes by a request of a class
    /// that its program has not opened, so only those go there that a program in its role must have opened.
    pub(crate) fn wants(&self, mad: &Mad) -> bool {
        match mad.class() {
            MgmtClass::SubnLid | MgmtClass::SubnDirected | MgmtClass::SubnAdm => self.role.is_some(),
            _ => self.role == Some(Role::Everything) && !self.asks,
        }
    }

    /// Remembers the transaction of a trap.
    pub(crate) fn hear(&mut self, mad: &Mad) {
        if mad.method() == Method::Trap {
            if self.heard.len() >= HEARD_MAX {
                self.heard.pop_front();
            }
            self.heard.push_back(mad.transaction_id());
        }
    }
}

/// The answer to a program's own request, `status` being why it is none.
pub(crate) fn answer(slot: u8, id: TransactionId, asked: &Data, answer: Option<&AddressedMad>) -> Data {
    let mut mad = answer.map_or(asked.mad, |answer| answer.mad);
    let kept = id.0 & 0x0000_ffff_ffff_ffff;
    Smp::transaction_id.set(&mut mad.0, TransactionId(u64::from(slot) << 48 | kept));
    let (slid, status) = answer.map_or((asked.dlid, TIMED_OUT), |answer| (answer.lid, 0));
    Data { dlid: asked.slid, slid, dqp: asked.sqp, sqp: asked.dqp, status, mad }
}

/// A request of somebody else, as the program gets it.
pub(crate) fn request(received: &AddressedMad) -> Data {
    let (dqp, sqp) = (received.local_qp, received.remote_qp);
    let dlid = if received.lid == Lid::PERMISSIVE { Lid::PERMISSIVE } else { Lid(0) };
    Data { dlid, slid: received.lid, dqp, sqp, status: 0, mad: received.mad }
}

/// Whether a request by this method is answered, so that silence means something.
pub(crate) fn expects_answer(method: Method) -> bool {
    use Method as M;
    let answered = [M::Get, M::Set, M::Report, M::GetTable, M::GetTraceTable, M::GetMulti, M::Delete];
    answered.contains(&method)
}

/// A question to the node that the program is attached to.
pub(crate) fn question(slot: &Slot, control: &Control) -> AddressedMad {
    let (attribute, modifier) = match control.command {
        Command::GetPort | Command::GetGid => (AttributeId::PortInfo, u32::from(slot.port.0)),
        Command::GetPortInfo => {
            let asked = control.data[0];
            let exists = (1..=slot.node_info.num_ports).contains(&asked);
            (AttributeId::PortInfo, u32::from(if exists { asked } else { slot.port.0 }))
        }
        Command::GetPKeys => (AttributeId::PKeyTable, 0),
        _ => (AttributeId::NodeInfo, 0),
    };
    let mut mad = Mad::default();
    mad.set_header(&MadHeader {
        base_version: 1,
        mgmt_class: MgmtClass::SubnDirected,
        class_version: 1,
        method: Method::Get,
        attribute_id: attribute,
        attribute_modifier: modifier,
        ..MadHeader::default()
    });
    weft_wire::DirectedSmp::dr_slid.set(&mut mad.0, Lid::PERMISSIVE);
    weft_wire::DirectedSmp::dr_dlid.set(&mut mad.0, Lid::PERMISSIVE);
    AddressedMad { local_qp: QpNum::SMI, ..AddressedMad::smp(Lid::PERMISSIVE, mad) }
}

/// The answer to the sender of a message in segments, of which the protocol carries the first only:
/// that it has arrived, or that there is no room for more (IBA 13.6.2).
pub(crate) fn last_word(received: &AddressedMad) -> Option<AddressedMad> {
    let mut mad = received.mad;
    let data = mad.rmpp();
    if !mad.is_rmpp_active() || data.kind != RmppType::Data {
        return None;
    }
    let (kind, status) = match data.last {
        true => (RmppType::Ack, rmpp_status::NORMAL),
        false => (RmppType::Stop, rmpp_status::RESOURCES),
    };
    let segment = data.segment;
    mad.set_rmpp(&RmppHeader { kind, status, first: false, last: false, length: segment, ..data });
    let mut header = mad.header();
    header.method = Method::from_code(header.method.code() & !0x80);
    mad.set_header(&header);
    mad.0[RMPP_END..].fill(0);
    Some(AddressedMad { mad, ..*received })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sender_of_segments_is_not_left_waiting() {
        let mut mad = Mad::default();
        let mut header = mad.header();
        (header.mgmt_class, header.method) = (MgmtClass::SubnAdm, Method::GetTableResp);
        mad.set_header(&header);
        let received = AddressedMad::gmp(Lid(7), ServiceLevel(0), mad);
        assert_eq!(last_word(&received), None, "not in segments");
        let segments = [(true, RmppType::Ack, 0), (false, RmppType::Stop, rmpp_status::RESOURCES)];
        for (last, kind, status) in segments {
            let mut received = received;
            let data = RmppHeader {
                version: 1,
                kind: RmppType::Data,
                active: true,
                first: true,
                last,
                segment: 1,
                length: 128,
                ..Default::default()
            };
            received.mad.set_rmpp(&data);
            let word = last_word(&received).unwrap();
            assert_eq!((word.lid, word.mad.method()), (Lid(7), Method::GetTable));
            let said = word.mad.rmpp();
            assert_eq!((said.kind, said.status, said.segment, said.length), (kind, status, 1, 1));
            assert!(said.active && !said.first && !said.last);
            assert_eq!(last_word(&word), None, "an acknowledgement is not acknowledged");
        }
    }
}
