//! Open ports: between a connection and the device stands a MAD layer, as the kernel's does.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use weft_device::{ClientId, Input};
use weft_host::mad::{self, Address, AgentId, AgentRequest, Limits, MadLayer};
use weft_machine::{Machine, Time};
use weft_umad::user_mad::{
    AgentRegistration, DATA_BYTES_MAX, Datagram, Reply, Request, Token, UserMad, UserMadAddress,
};
use weft_wire::{Guid, MadHeader, MethodMask, MgmtClass, Oui, PortNum, QpNum};

use super::line::Line;
use crate::client::Queued;
use crate::core::Core;

/// Numbers of Linux.
const EINVAL: u32 = 22;
const ENODEV: u32 = 19;
const EMFILE: u32 = 24;

/// The flag that a program does RMPP of its own.
const USER_RMPP: u32 = 1;

/// All open ports of the agent's devices.
#[derive(Debug, Default)]
pub(crate) struct OpenPorts {
    ports: BTreeMap<ClientId, OpenPort>,
    by_token: BTreeMap<Token, ClientId>,
    /// When each MAD layer wants to be woken.
    deadlines: BTreeSet<(Time, ClientId)>,
    /// Lines with something to be written.
    pub(crate) to_flush: Vec<Rc<Line>>,
}

#[derive(Debug)]
struct OpenPort {
    device: usize,
    token: Token,
    line: Rc<Line>,
    layer: MadLayer,
    deadline: Option<Time>,
    /// The answer to a registration, until it is sent.
    registered: Option<Result<AgentId, u32>>,
    /// Why the send that was just fed is not done.
    send_refused: Option<u32>,
}

impl OpenPorts {
    pub(crate) fn has(&self, client: ClientId) -> bool {
        self.ports.contains_key(&client)
    }

    /// How many there are at a device.
    pub(crate) fn count(&self, device: usize) -> usize {
        self.ports.values().filter(|port| port.device == device).count()
    }

    /// The earliest deadline.
    pub(crate) fn earliest(&self) -> Option<Time> {
        self.deadlines.first().map(|(at, _)| *at)
    }

    /// Notes when a layer wants to be woken.
    fn schedule(&mut self, client: ClientId) {
        let Some(port) = self.ports.get_mut(&client) else { return };
        let wanted = port.layer.poll_timeout();
        let before = std::mem::replace(&mut port.deadline, wanted);
        if before != wanted {
            before.inspect(|at| {
                self.deadlines.remove(&(*at, client));
            });
            self.deadlines.extend(wanted.map(|at| (at, client)));
        }
    }
}

impl Core {
    /// Answers a question or command of a program; that for the issm file is answered elsewhere.
    pub(super) fn user_request(&mut self, line: &Rc<Line>, request: &Request) -> Reply {
        match request {
            Request::Open { token, node, port } => self.user_opens(line, *token, *node, *port),
            Request::Ca { node } => match self.by_guid.get(node) {
                Some(device) => Reply::Ca(self.devices[*device].ca.clone()),
                None => Reply::Failed(ENODEV),
            },
            Request::Port { node, port } => {
                self.port_attributes(*node, *port).map_or(Reply::Failed(ENODEV), Reply::Port)
            }
            Request::Register { token, registration } => self.user_registers(*token, registration),
            Request::Unregister { token, agent_id } => {
                let Some(client) = self.open_ports.by_token.get(token).copied() else {
                    return Reply::Failed(ENODEV);
                };
                self.layer_input(client, mad::Input::Unregister { agent: AgentId(*agent_id) });
                Reply::Done
            }
            Request::Issm { .. } => Reply::Failed(EINVAL),
        }
    }

    fn user_opens(&mut self, line: &Rc<Line>, token: Token, node: Guid, port: PortNum) -> Reply {
        if line.open().is_some() || self.open_ports.by_token.contains_key(&token) {
            return Reply::Failed(EINVAL);
        }
        let Some(device) = self.user_place(node, port) else { return Reply::Failed(ENODEV) };
        let Some(client) = self.free_client() else { return Reply::Failed(EMFILE) };
        let limits = Limits { message_bytes: DATA_BYTES_MAX, ..Limits::default() };
        let opened = OpenPort {
            device,
            token,
            line: line.clone(),
            layer: MadLayer::new(limits),
            deadline: None,
            registered: None,
            send_refused: None,
        };
        self.open_ports.ports.insert(client, opened);
        self.input(device, Input::Attach { client, port, registrations: Vec::new() });
        if !self.open_ports.has(client) {
            return Reply::Failed(EMFILE);
        }
        self.open_ports.by_token.insert(token, client);
        line.set_open(Some(client));
        Reply::Done
    }

    /// The device has no room for it.
    pub(crate) fn user_refused(&mut self, client: ClientId) {
        self.open_ports.ports.remove(&client);
    }

    fn user_registers(&mut self, token: Token, wanted: &AgentRegistration) -> Reply {
        if wanted.flags & !USER_RMPP != 0 {
            return Reply::Failed(EINVAL);
        }
        let Some(client) = self.open_ports.by_token.get(&token).copied() else {
            return Reply::Failed(ENODEV);
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
        self.layer_input(client, mad::Input::Register { request: 0, registration });
        let answered = self.open_ports.ports.get_mut(&client).and_then(|port| port.registered.take());
        match answered {
            Some(Ok(agent)) => Reply::Registered { agent_id: agent.0 },
            Some(Err(error)) => Reply::Failed(error),
            None => Reply::Failed(EINVAL),
        }
    }

    /// A program sends a MAD, or a message for RMPP to take apart.
    pub(super) fn user_sends(&mut self, line: &Rc<Line>, header: &UserMad, data: Vec<u8>) {
        let Some(client) = line.open() else { return };
        let to = &header.address;
        let address = Address {
            lid: to.lid,
            qp: to.qpn,
            qkey: to.qkey,
            service_level: to.service_level,
            pkey_index: to.pkey_index,
        };
        let (agent, timeout_ms, retries) = (AgentId(header.agent_id), header.timeout_ms, header.retries);
        let begins: Vec<u8> = data.iter().take(MadHeader::SIZE).copied().collect();
        self.layer_input(client, mad::Input::Send { agent, address, timeout_ms, retries, data });
        let refused = self.open_ports.ports.get_mut(&client).and_then(|port| port.send_refused.take());
        if let Some(status) = refused.filter(|_| timeout_ms > 0) {
            // Who waits for an answer is told at once that there will be none, as by a time-out.
            self.user_delivers(client, agent, status, &address, &begins);
        }
    }

    /// A connection has ended, and everything that it had goes.
    pub(super) fn user_gone(&mut self, line: &Rc<Line>) {
        let Some(client) = line.open() else { return };
        line.set_open(None);
        let Some(port) = self.open_ports.ports.remove(&client) else { return };
        self.open_ports.by_token.remove(&port.token);
        port.deadline.inspect(|at| {
            self.open_ports.deadlines.remove(&(*at, client));
        });
        self.input(port.device, Input::Detach { client });
    }

    /// MAD layers whose time has come.
    pub(crate) fn wake_layers(&mut self, now: Time) {
        while let Some((at, client)) = self.open_ports.deadlines.first().copied().filter(|(at, _)| *at <= now)
        {
            self.open_ports.deadlines.remove(&(at, client));
            let Some(port) = self.open_ports.ports.get_mut(&client) else { continue };
            port.deadline = None;
            let device = port.device;
            port.layer.handle_timeout(now);
            self.layer_outputs(now, client, device);
            self.drain(device, now);
        }
    }

    fn layer_input(&mut self, client: ClientId, input: mad::Input) {
        let now = self.now();
        let Some(port) = self.open_ports.ports.get_mut(&client) else { return };
        let device = port.device;
        port.layer.handle_input(now, input);
        self.layer_outputs(now, client, device);
        self.drain(device, now);
    }

    /// What a device has for an open port, or says to it. Whoever calls is draining the device.
    pub(crate) fn layer_hears(&mut self, now: Time, client: ClientId, device: usize, input: mad::Input) {
        if let Some(port) = self.open_ports.ports.get_mut(&client) {
            port.layer.handle_input(now, input);
            self.layer_outputs(now, client, device);
        }
    }

    /// Does what a MAD layer wants. The device is fed, not drained.
    fn layer_outputs(&mut self, now: Time, client: ClientId, device: usize) {
        while let Some(output) =
            self.open_ports.ports.get_mut(&client).and_then(|port| port.layer.poll_output())
        {
            let input = match output {
                mad::Output::Transmit(mad) => Input::Send { client, mad: Box::new(mad) },
                mad::Output::Claim { agent, registration } => {
                    Input::Register { client, key: agent.0, registration }
                }
                mad::Output::Release { agent } => Input::Unregister { client, key: agent.0 },
                mad::Output::Deliver { agent, status, address, data } => {
                    self.user_delivers(client, agent, status, &address, &data);
                    continue;
                }
                mad::Output::Registered { agent, .. } => {
                    self.note_registered(client, Ok(agent));
                    continue;
                }
                mad::Output::Refused { reason, .. } => {
                    self.note_registered(client, Err(reason.errno().unsigned_abs()));
                    continue;
                }
                mad::Output::SendRefused { agent, reason } => {
                    tracing::debug!(%client, %agent, %reason, "a program's send was refused");
                    self.recorder.count("umad_sends_refused");
                    if let Some(port) = self.open_ports.ports.get_mut(&client) {
                        port.send_refused = Some(reason.errno().unsigned_abs());
                    }
                    continue;
                }
            };
            self.devices[device].machine.handle_input(now, input);
        }
        self.open_ports.schedule(client);
    }

    fn note_registered(&mut self, client: ClientId, outcome: Result<AgentId, u32>) {
        if let Some(port) = self.open_ports.ports.get_mut(&client) {
            port.registered = Some(outcome);
        }
    }

    fn user_delivers(&mut self, client: ClientId, agent: AgentId, status: u32, from: &Address, data: &[u8]) {
        let Some(line) = self.open_ports.ports.get(&client).map(|port| port.line.clone()) else { return };
        let address = UserMadAddress {
            qpn: from.qp,
            qkey: from.qkey,
            lid: from.lid,
            service_level: from.service_level,
            pkey_index: from.pkey_index,
            ..UserMadAddress::default()
        };
        let length = u32::try_from(UserMad::SIZE + data.len()).unwrap_or(u32::MAX);
        let header = UserMad { agent_id: agent.0, status, length, address, ..UserMad::default() };
        match Datagram::mad(&header.encode(), data) {
            Ok(datagram) => self.user_queue(&line, datagram, true),
            Err(_) => self.recorder.count("umad_mads_dropped"),
        }
    }

    /// Gathers something for a program.
    pub(super) fn user_queue(&mut self, line: &Rc<Line>, datagram: Datagram, is_mad: bool) {
        match line.queue(datagram, is_mad) {
            Queued::ToBeNoted => self.open_ports.to_flush.push(line.clone()),
            Queued::Dropped => self.recorder.count("umad_mads_dropped"),
            Queued::No => {}
        }
    }
}
