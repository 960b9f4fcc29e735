//! The server as a machine: no socket, no thread, no clock of its own.

use std::collections::{BTreeSet, VecDeque};
use std::time::{Duration, Instant};

use serde::Serialize;
use weft_wire::{AddressedMad, Mad, NodeInfo, PortInfo, PortNum, status};

use crate::address::Address;
use crate::codec::{self, Command, Connect, Control, Data, Form, Malformed, SLOTS};
use crate::slot::{
    PENDING_MAX, Pending, Purpose, Role, Slot, Stage, answer, expects_answer, last_word, question, request,
};

/// What an operator can choose.
#[derive(Clone, Copy, Debug)]
pub struct ServerOptions {
    /// How long to wait for the answer of one attempt. The stock library has no clock, so the server has.
    pub timeout: Duration,
    /// How many more attempts follow the first before a request comes back with status 110.
    pub retries: u32,
}

impl Default for ServerOptions {
    /// 200 ms and 3 retries, which is what OpenSM asks of the kernel's layer.
    fn default() -> Self {
        Self { timeout: Duration::from_millis(200), retries: 3 }
    }
}

/// What is to be done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// Send this control message.
    Answer {
        /// Where to.
        to: Address,
        /// The message.
        control: Control,
    },
    /// Attach a slot to a node and connect its data socket with its program; then say so to [`Server::attached`].
    Attach {
        /// The slot.
        slot: u8,
        /// What the program wants; its node may be empty, or only the beginning of a name.
        connect: Connect,
        /// Where the program's data socket is.
        peer: Address,
    },
    /// Register for requests of others, or no more; then say so to [`Server::registered`].
    Register {
        /// The slot.
        slot: u8,
        /// For which.
        role: Option<Role>,
    },
    /// Send a MAD from the slot's attachment.
    Send {
        /// The slot.
        slot: u8,
        /// The MAD.
        mad: AddressedMad,
    },
    /// Send a data message to the slot's program.
    Deliver {
        /// The slot.
        slot: u8,
        /// The message.
        data: Data,
        /// How the program has it laid out.
        form: Form,
    },
    /// The slot is free: close its attachments and disconnect its data socket.
    Detach {
        /// The slot.
        slot: u8,
    },
}

/// What happened, counted since the server began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// Programs that were attached.
    pub connected: u64,
    /// Programs that died without saying so.
    pub died: u64,
    /// Programs refused because all slots were taken.
    pub refused_full: u64,
    /// Programs refused for another reason.
    pub refused: u64,
    /// Datagrams that were no message.
    pub malformed: u64,
    /// Control messages in the name of another program's slot.
    pub foreign: u64,
    /// Data messages for slots that are not connected.
    pub unconnected: u64,
    /// Requests that came back at once, because too many were without answer.
    pub overflowed: u64,
    /// Requests sent again.
    pub retried: u64,
    /// Requests that came back because no one answered.
    pub timed_out: u64,
    /// Answers to nothing, or to what had come back already.
    pub unmatched: u64,
    /// Requests of others that the program would not have taken.
    pub unwanted: u64,
}

/// The server.
///
/// Feed it control messages ([`Server::control`]), data messages ([`Server::data`]), MADs from the fabric
/// ([`Server::received`]) and the time ([`Server::handle_timeout`]); drain [`Server::poll_output`] after each.
#[derive(Debug)]
pub struct Server {
    name: String,
    options: ServerOptions,
    slots: [Option<Slot>; SLOTS],
    due: BTreeSet<(Instant, u8, u32)>,
    outputs: VecDeque<Output>,
    counts: Counts,
}

impl Server {
    /// A server without programs; `name` is what its sockets' names begin with.
    pub fn new(name: &str, options: ServerOptions) -> Self {
        let (slots, counts) = (Default::default(), Counts::default());
        Self { name: name.to_owned(), options, slots, due: BTreeSet::new(), outputs: VecDeque::new(), counts }
    }

    /// The counts so far.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// Where the program of each slot has its data socket; `None` where there is none.
    pub fn peers(&self) -> impl Iterator<Item = (u8, Option<&Address>)> {
        (0..).zip(&self.slots).map(|(at, slot)| (at, slot.as_ref().map(|slot| &slot.peer)))
    }

    /// A datagram came on the control socket.
    pub fn control(&mut self, now: Instant, from: &Address, bytes: &[u8]) -> Result<(), Malformed> {
        let decoded = Control::decode(bytes).inspect_err(|_| self.counts.malformed += 1);
        let control = decoded?;
        if control.command == Command::Connect {
            self.connect(from, control);
            return Ok(());
        }
        let Some(at) = u8::try_from(control.client).ok().filter(|at| usize::from(*at) < SLOTS) else {
            self.counts.malformed += 1;
            return Ok(());
        };
        match self.slot(at) {
            None if control.command == Command::Disconnect => self.answer(from, control),
            None => self.refuse(from, control),
            Some(slot) if slot.control != *from => {
                self.counts.foreign += 1;
                self.refuse(from, control);
            }
            Some(slot) if slot.stage != Stage::Ready && control.command != Command::Disconnect => {
                self.refuse(from, control);
            }
            Some(_) => self.command(now, at, control),
        }
        Ok(())
    }

    fn connect(&mut self, from: &Address, mut control: Control) {
        let connect = Connect::decode(&control.data);
        let peer = match from {
            Address::Abstract(_) => Address::named(&self.name, &format!("in{}", connect.id)),
            Address::Udp(from) => match u16::try_from(connect.id) {
                Ok(port) if port > 0 => Address::Udp((from.ip(), port).into()),
                _ => return self.refuse(&Address::Udp(*from), control),
            },
        };
        // A program that has this socket now is not the one that had it.
        let former = self.peers().find(|(_, other)| *other == Some(&peer)).map(|(at, _)| at);
        if let Some(at) = former {
            self.gone(at);
        }
        let Some(at) = self.slots.iter().position(Option::is_none) else {
            self.counts.refused_full += 1;
            control.command = Command::Error;
            return self.answer(from, control);
        };
        let slot = at as u8;
        self.slots[at] = Some(Slot::new(from.clone(), peer.clone(), control));
        self.outputs.push_back(Output::Attach { slot, connect, peer });
    }

    /// The slot is attached to this port of a node, called so, or cannot be.
    pub fn attached(&mut self, now: Instant, at: u8, to: Option<(String, PortNum)>) {
        let Some(slot) = self.slot_mut(at) else { return };
        let Stage::Attaching(control) = slot.stage.clone() else { return };
        let Some((node_id, port)) = to else { return self.refuse_connect(at, control) };
        (slot.node_id, slot.port, slot.stage) = (node_id, port, Stage::Asking);
        let asked = slot.control.clone();
        self.ask(now, at, asked, control);
    }

    /// The slot is registered as was wished, or cannot be.
    pub fn registered(&mut self, at: u8, role: Option<Role>, done: bool) {
        let Some(slot) = self.slot_mut(at) else { return };
        if done {
            slot.role = role;
        }
        match slot.stage.clone() {
            Stage::Registering(control) if done => {
                slot.stage = Stage::Ready;
                let to = slot.control.clone();
                self.counts.connected += u64::from(control.command == Command::Connect);
                self.answer(&to, control);
            }
            Stage::Registering(control) if control.command == Command::Connect => {
                self.refuse_connect(at, control);
            }
            Stage::Registering(control) => {
                slot.stage = Stage::Ready;
                let to = slot.control.clone();
                self.refuse(&to, control);
            }
            _ => {}
        }
    }

    fn refuse_connect(&mut self, at: u8, control: Control) {
        let Some(slot) = self.slot(at) else { return };
        let to = slot.control.clone();
        self.refuse(&to, control);
        self.free(at);
    }

    fn command(&mut self, now: Instant, at: u8, mut control: Control) {
        let Some(slot) = self.slot_mut(at) else { return };
        let to = slot.control.clone();
        match control.command {
            Command::Disconnect => {
                self.free(at);
                self.answer(&to, control);
            }
            Command::SetIssm => {
                let issm = control.data[..4] != [0; 4];
                // Who connected as issm says so a second time and keeps its role.
                let role = issm.then(|| slot.role.unwrap_or(Role::Manager));
                slot.stage = Stage::Registering(control);
                self.outputs.push_back(Output::Register { slot: at, role });
            }
            Command::GetVendor => {
                let info = &slot.node_info;
                let device = u32::from(info.device_id);
                control.fill(&codec::vendor(info.vendor_id, device, info.revision, 1));
                self.answer(&to, control);
            }
            Command::GetGuid => {
                control.fill(&slot.node_info.node_guid.0.to_be_bytes());
                self.answer(&to, control);
            }
            Command::GetPort
            | Command::GetGid
            | Command::GetNodeInfo
            | Command::GetPortInfo
            | Command::GetPKeys => self.ask(now, at, to, control),
            Command::Error | Command::Connect | Command::Other(_) => self.refuse(&to, control),
        }
    }

    /// Asks the slot's own node for what a control message wants.
    fn ask(&mut self, now: Instant, at: u8, to: Address, control: Control) {
        let Some(slot) = self.slot(at) else { return };
        let request = question(slot, &control);
        self.send(now, at, Purpose::Question { to, control }, request);
    }

    fn send(&mut self, now: Instant, at: u8, purpose: Purpose, request: AddressedMad) {
        let due = now + self.options.timeout;
        let pending = Pending { purpose, request, retries: self.options.retries, due };
        let Some(slot) = self.slot_mut(at) else { return };
        if slot.pending.len() >= PENDING_MAX {
            self.counts.overflowed += 1;
            return self.give_up(at, pending);
        }
        let (id, mad) = slot.note(pending);
        self.due.insert((due, at, id));
        self.outputs.push_back(Output::Send { slot: at, mad });
    }

    /// A datagram came on a slot's data socket.
    pub fn data(&mut self, now: Instant, at: u8, bytes: &[u8]) -> Result<(), Malformed> {
        let decoded = Data::decode(bytes).inspect_err(|_| self.counts.malformed += 1);
        let (data, form) = decoded?;
        let Some(slot) = self.slot_mut(at).filter(|slot| slot.is_connected()) else {
            self.counts.unconnected += 1;
            return Ok(());
        };
        slot.form = form;
        let sent = slot.address(&data);
        if expects_answer(sent.mad.method()) {
            let id = sent.mad.transaction_id();
            self.send(now, at, Purpose::Program { id, data }, sent);
        } else {
            self.outputs.push_back(Output::Send { slot: at, mad: sent });
        }
        Ok(())
    }

    /// A MAD came for the slot from the fabric.
    pub fn received(&mut self, at: u8, received: &AddressedMad) {
        let mad = &received.mad;
        let Some(slot) = self.slot_mut(at) else { return };
        if !mad.method().is_response() {
            if !slot.wants(mad) {
                self.counts.unwanted += 1;
                return;
            }
            slot.hear(mad);
            let (data, form) = (request(received), slot.form);
            self.outputs.push_back(Output::Deliver { slot: at, data, form });
            return;
        }
        let id = mad.transaction_id().0;
        let id = u32::try_from(id).ok();
        let id =
            id.filter(|id| slot.pending.get(id).is_some_and(|pending| answers(&pending.request, received)));
        let Some((id, pending)) = id.and_then(|id| Some((id, slot.pending.remove(&id)?))) else {
            self.counts.unmatched += 1;
            return;
        };
        let form = slot.form;
        self.due.remove(&(pending.due, at, id));
        match pending.purpose {
            Purpose::Program { id, data } => {
                if let Some(mad) = last_word(received) {
                    self.outputs.push_back(Output::Send { slot: at, mad });
                }
                let data = answer(at, id, &data, Some(received));
                self.outputs.push_back(Output::Deliver { slot: at, data, form });
            }
            Purpose::Question { to, control } => self.answered(at, &to, control, mad),
        }
    }

    /// The slot's node answered what a control message wants to know.
    fn answered(&mut self, at: u8, to: &Address, mut control: Control, mad: &Mad) {
        let Some(slot) = self.slot_mut(at) else { return };
        if mad.status() != status::OK {
            return match control.command {
                Command::Connect => self.refuse_connect(at, control),
                _ => self.refuse(to, control),
            };
        }
        let bytes = mad.smp_data();
        match control.command {
            Command::Connect => {
                slot.node_info = NodeInfo::decode(mad.smp_attribute());
                let connect = Connect::decode(&control.data);
                let role = connect.issm.then_some(Role::Everything);
                control.client = at.into();
                control.fill(&Connect { id: at.into(), node: slot.node_id.clone(), ..connect }.encode());
                slot.stage = Stage::Registering(control);
                return match role {
                    None => self.registered(at, None, true),
                    role => self.outputs.push_back(Output::Register { slot: at, role }),
                };
            }
            Command::GetPort => {
                let info = PortInfo::decode(bytes);
                control.fill(&codec::port(info.lid, info.port_state.code()));
            }
            Command::GetGid => {
                let prefix = PortInfo::decode(bytes).gid_prefix;
                let guid = slot.node_info.port_guid;
                control.fill(&[prefix.0.to_be_bytes(), guid.0.to_be_bytes()].concat());
            }
            _ => control.fill(bytes),
        }
        self.answer(to, control);
    }

    /// The program of a slot has died, or its agent has.
    pub fn gone(&mut self, at: u8) {
        if self.slot(at).is_some() {
            self.counts.died += 1;
            self.free(at);
        }
    }

    /// When [`Server::handle_timeout`] wants to be called.
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.due.first().map(|(due, ..)| *due)
    }

    /// Lets time pass: sends again what has not been answered, and returns what never was.
    pub fn handle_timeout(&mut self, now: Instant) {
        while let Some((due, at, id)) = self.due.first().copied().filter(|(due, ..)| *due <= now) {
            self.due.remove(&(due, at, id));
            let again = now + self.options.timeout;
            let Some(slot) = self.slot_mut(at) else { continue };
            let Some(pending) = slot.pending.get_mut(&id) else { continue };
            if pending.retries > 0 {
                (pending.retries, pending.due) = (pending.retries - 1, again);
                let mad = pending.request;
                self.counts.retried += 1;
                self.due.insert((again, at, id));
                self.outputs.push_back(Output::Send { slot: at, mad });
            } else if let Some(pending) = slot.pending.remove(&id) {
                self.counts.timed_out += 1;
                self.give_up(at, pending);
            }
        }
    }

    /// Says to whom it matters that there is no answer.
    fn give_up(&mut self, at: u8, pending: Pending) {
        match pending.purpose {
            Purpose::Program { id, data } => {
                let data = answer(at, id, &data, None);
                let form = self.slot(at).map_or(Form::Wide, |slot| slot.form);
                self.outputs.push_back(Output::Deliver { slot: at, data, form });
            }
            Purpose::Question { control, .. } if control.command == Command::Connect => {
                self.refuse_connect(at, control);
            }
            Purpose::Question { to, control } => self.refuse(&to, control),
        }
    }

    /// The next thing to do.
    pub fn poll_output(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    fn slot(&self, at: u8) -> Option<&Slot> {
        self.slots.get(usize::from(at))?.as_ref()
    }

    fn slot_mut(&mut self, at: u8) -> Option<&mut Slot> {
        self.slots.get_mut(usize::from(at))?.as_mut()
    }

    fn free(&mut self, at: u8) {
        if let Some(place) = self.slots.get_mut(usize::from(at)) {
            *place = None;
            self.due.retain(|(_, slot, _)| *slot != at);
            self.outputs.push_back(Output::Detach { slot: at });
        }
    }

    fn answer(&mut self, to: &Address, control: Control) {
        self.outputs.push_back(Output::Answer { to: to.clone(), control });
    }

    fn refuse(&mut self, to: &Address, mut control: Control) {
        self.counts.refused += 1;
        control.command = Command::Error;
        self.answer(to, control);
    }
}

/// Whether this answers that request, rather than an earlier one under the same number.
fn answers(request: &AddressedMad, answer: &AddressedMad) -> bool {
    let (asked, got) = (&request.mad, &answer.mad);
    asked.class() == got.class() && asked.attribute_id() == got.attribute_id()
}
