//! Programs of libibumad: between their connection and the device stands a MAD layer of the node,
//! as the kernel's does. They see adapters and ports as the kernel shows them.

use std::rc::Rc;

use weft_host::mad::{Address, AgentId, AgentRequest};
use weft_node::{Answer, Client, Input, Message, PortId, Reading, Refusal, Request as NodeRequest};
use weft_umad::user_mad::{
    AgentRegistration, DATA_BYTES_MAX, Datagram, PortAttributes, Reply, Request, Token, UserMad,
    UserMadAddress,
};
use weft_wire::{Guid, MethodMask, MgmtClass, Oui, PathRate, PortInfo, PortNum, QpNum};

use super::Core;
use crate::asked::Asker;
use crate::counter::Counter;
use crate::line::Line;
use crate::program::Queued;

/// Numbers of Linux.
const EINVAL: u32 = 22;
const ENODEV: u32 = 19;
const EMFILE: u32 = 24;

/// The flag that a program does RMPP of its own.
const USER_RMPP: u32 = 1;

/// The number that Linux gives to programs.
pub(super) fn errno(refusal: &Refusal) -> u32 {
    match refusal {
        Refusal::Register(reason) => reason.errno().unsigned_abs(),
        Refusal::Attach(_) => EMFILE,
        Refusal::NoSuchDevice(_) | Refusal::NoSuchClient => ENODEV,
        _ => EINVAL,
    }
}

impl Core {
    /// The device, if the node is here and has such a port for programs.
    pub(crate) fn user_place(&self, node: Guid, port: PortNum) -> Option<PortId> {
        let device = self.names.find(node)?;
        let ca = &self.names.of(device)?.ca;
        (ca.first_port..=ca.last_port).contains(&port).then_some(PortId::new(device, port))
    }

    fn port_attributes(&self, node: Guid, port: PortNum) -> Option<PortAttributes> {
        let machine = self.node.device(self.user_place(node, port)?.device)?;
        let info = machine.own_port_info(port)?;
        Some(PortAttributes {
            port,
            state: info.port_state,
            phys_state: info.port_physical_state,
            lid: info.lid,
            lmc: info.lmc,
            sm_lid: info.master_sm_lid,
            sm_sl: info.master_sm_sl,
            rate_100mbps: rate_100mbps(info),
            capability_mask: info.capability_mask,
            gid_prefix: info.gid_prefix,
            port_guid: machine.port_snapshot(port)?.guid,
            p_keys: machine.own_p_keys(port).to_vec(),
        })
    }

    /// Answers a question or command of a program, at once or when the node has; `user/issm.rs`
    /// answers that for the issm file.
    pub(crate) fn user_request(&mut self, line: &Rc<Line>, request: &Request) -> Option<Reply> {
        match request {
            Request::Open { token, node, port } => self.user_opens(line, *token, *node, *port),
            Request::Ca { node } => {
                let named = self.names.find(*node).and_then(|device| self.names.of(device));
                Some(named.map_or(Reply::Failed(ENODEV), |named| Reply::Ca(named.ca.clone())))
            }
            Request::Port { node, port } => {
                Some(self.port_attributes(*node, *port).map_or(Reply::Failed(ENODEV), Reply::Port))
            }
            Request::Register { token, registration } => self.user_registers(line, *token, registration),
            Request::Unregister { token, agent_id } => {
                let Some(client) = self.lines.by_token.get(token).copied() else {
                    return Some(Reply::Failed(ENODEV));
                };
                let request = NodeRequest::Unregister { client, agent: AgentId(*agent_id) };
                self.ask(Asker::Registration(line.clone()), request);
                None
            }
            Request::Issm { .. } => Some(Reply::Failed(EINVAL)),
        }
    }

    fn user_opens(&mut self, line: &Rc<Line>, token: Token, node: Guid, port: PortNum) -> Option<Reply> {
        if line.open().is_some() || self.lines.by_token.contains_key(&token) {
            return Some(Reply::Failed(EINVAL));
        }
        let Some(at) = self.user_place(node, port) else { return Some(Reply::Failed(ENODEV)) };
        let request = NodeRequest::Open { at: PortId::new(at.device, port), message_bytes: DATA_BYTES_MAX };
        self.ask(Asker::Open(line.clone(), token), request);
        None
    }

    /// The node has attached a program, or has no room for it.
    pub(crate) fn user_opened(&mut self, line: &Rc<Line>, token: Token, outcome: &Result<Answer, Refusal>) {
        let reply = match *outcome {
            Ok(Answer::Client(client)) => {
                self.recorder.count(Counter::ClientAttached);
                self.lines.open.insert(client, (line.clone(), token));
                self.lines.by_token.insert(token, client);
                line.set_open(Some(client));
                Reply::Done
            }
            _ => {
                self.recorder.count(Counter::ClientRefused);
                Reply::Failed(EMFILE)
            }
        };
        self.user_answer(line, &reply);
    }

    fn user_registers(&mut self, line: &Rc<Line>, token: Token, wanted: &AgentRegistration) -> Option<Reply> {
        if wanted.flags & !USER_RMPP != 0 {
            return Some(Reply::Failed(EINVAL));
        }
        let Some(client) = self.lines.by_token.get(&token).copied() else {
            return Some(Reply::Failed(ENODEV));
        };
        let class = MgmtClass::from_code(wanted.class);
        let registration = AgentRequest {
            qp: QpNum(wanted.qpn.into()),
            class,
            class_version: wanted.class_version,
            oui: Oui(if class.has_oui() { wanted.oui } else { 0 }),
            methods: MethodMask(wanted.methods),
            // Who does RMPP of its own wants segments as they come.
            rmpp_version: if wanted.flags & USER_RMPP == 0 { wanted.rmpp_version } else { 0 },
        };
        self.ask(Asker::Registration(line.clone()), NodeRequest::Register { client, registration });
        None
    }

    /// A program sends a MAD, or a message for RMPP to take apart.
    pub(crate) fn user_sends(&mut self, line: &Rc<Line>, header: &UserMad, data: Vec<u8>) {
        let Some(client) = line.open() else { return };
        let UserMadAddress { lid, qpn: qp, qkey, service_level, pkey_index, .. } = header.address;
        let address = Address { lid, qp, qkey, service_level, pkey_index };
        let (agent, timeout_ms, retries) = (AgentId(header.agent_id), header.timeout_ms, header.retries);
        let message = Box::new(Message { agent, address, timeout_ms, retries, data });
        self.feed(Input::SendThroughLayer { client, message });
    }

    /// A connection has ended, and everything that it had goes.
    pub(crate) fn user_gone(&mut self, line: &Rc<Line>) {
        let Some(client) = line.open() else { return };
        line.set_open(None);
        if let Some((_, token)) = self.lines.open.remove(&client) {
            self.lines.by_token.remove(&token);
            self.feed(Input::Detach { client });
        }
    }

    /// The device of an open port is gone: the connection ends.
    pub(crate) fn user_detached(&mut self, client: Client) {
        if let Some((line, token)) = self.lines.open.remove(&client) {
            self.lines.by_token.remove(&token);
            line.set_open(None);
            line.end();
        }
    }

    /// A MAD layer has something for its program.
    pub(crate) fn user_reads(&mut self, client: Client, reading: &Reading) {
        let Some((line, _)) = self.lines.open.get(&client) else { return };
        let line = line.clone();
        let Address { lid, qp: qpn, qkey, service_level, pkey_index } = reading.address;
        let address =
            UserMadAddress { qpn, qkey, lid, service_level, pkey_index, ..UserMadAddress::default() };
        let length = u32::try_from(UserMad::SIZE + reading.data.len()).unwrap_or(u32::MAX);
        let (agent_id, status) = (reading.agent.0, reading.status);
        let header = UserMad { agent_id, status, length, address, ..UserMad::default() };
        match Datagram::mad(&header.encode(), &reading.data) {
            Ok(datagram) => self.user_queue(&line, datagram, true),
            Err(_) => self.recorder.count(Counter::UmadMadsDropped),
        }
    }

    /// Gathers something for a program.
    fn user_queue(&mut self, line: &Rc<Line>, datagram: Datagram, is_mad: bool) {
        match line.queue(datagram, is_mad) {
            Queued::ToBeNoted => self.lines.to_flush.push(line.clone()),
            Queued::Dropped => self.recorder.count(Counter::UmadMadsDropped),
            Queued::No => {}
        }
    }

    /// Answers a program.
    pub(crate) fn user_answer(&mut self, line: &Rc<Line>, reply: &Reply) {
        self.user_queue(line, Datagram::from(reply.encode()), false);
    }
}

/// The rate of the link, as Linux and path records name it: FDR is 14 Gb/s, not 14.0625.
fn rate_100mbps(info: &PortInfo) -> u32 {
    PathRate::of_link(info).megabits().unwrap_or(0) / 100
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_those_that_linux_tells() {
        let rate = |width, speed, ext| {
            rate_100mbps(&PortInfo {
                link_width_active: width,
                link_speed_active: speed,
                link_speed_ext_active: ext,
                ..PortInfo::default()
            })
        };
        assert_eq!(rate(2, 4, 0), 400, "4x QDR");
        assert_eq!(rate(2, 4, 1), 560, "4x FDR");
        assert_eq!(rate(2, 0, 2), 1000, "4x EDR");
        assert_eq!(rate(2, 0, 4), 2000, "4x HDR");
        assert_eq!(rate(1, 1, 0), 25, "1x SDR");
        assert_eq!(rate(8, 2, 0), 600, "12x DDR");
    }
}
