//! The loop's body: inputs to the devices, outputs to links, programs and the record.
//!
//! ```text
//!   link events ──┐                       ┌─▶ links.send / twins.send
//!   programs    ──┼─▶ device machines ────┼─▶ programs
//!   alarm       ──┤   (feed, then drain)  ├─▶ record
//!   twins.poll  ──┘       ▲     │         └─▶ cables plugged and unplugged
//!                         └──── hosts
//! ```

use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

use tokio::sync::Notify;
use weft_device::{ClientId, Device, DeviceConfig, Event, Input, Output};
use weft_host::{mad, stack};
use weft_link::{Alarm, Links, SendOutcome, Twins};
use weft_machine::{Machine, Time};
use weft_umad::user_mad::CaAttributes;
use weft_umad::{Attached, ServerMessage};
use weft_wire::{AddressedMad, Guid, PortNum, Registration};

use crate::cables::Frame;
use crate::client::{Program, Queued};
use crate::clock::{Clock, Deadlines};
use crate::config::AgentConfig;
use crate::held::Held;
use crate::hosts::Hosts;
use crate::lateness::Histogram;
use crate::record::{Recorder, Who};
use crate::tap::Taps;
use crate::user::{IssmFiles, OpenPorts, ca_attributes};
use crate::wiring::{Place, Wiring};

/// In-process packets handled before the reactor has its turn again.
const TURN_PACKETS: usize = 256;
/// In-process packets handled at one reading of the clock.
const CLOCK_PACKETS: usize = 16;
/// What a device wants done before others have their turn: a device and its host could go on for ever.
const DRAIN_OUTPUTS: usize = 4096;

/// What the agent's tasks wait for.
#[derive(Debug, Default)]
pub(crate) struct Signals {
    /// In-process packets wait.
    pub(crate) work: Notify,
    /// A link came up or went down.
    pub(crate) links: Notify,
    /// Lines wait to be written.
    pub(crate) journal: Notify,
    /// Captured packets wait to be written.
    pub(crate) captured: Notify,
    /// The agent is to stop.
    pub(crate) stop: Notify,
}

/// A device and what the agent needs to know of it.
pub(crate) struct Hosted {
    pub(crate) machine: Device,
    pub(crate) who: Who,
    /// What programs of libibumad are told of it.
    pub(crate) ca: CaAttributes,
    /// By port number; a switch's port 0 has its node's.
    port_guids: Vec<Guid>,
}

impl Hosted {
    fn new(config: &DeviceConfig) -> Self {
        let ports = config.ports.iter().map(|port| port.guid);
        Self {
            machine: Device::new(config).with_incarnation(crate::agent::incarnation()),
            who: Who { guid: config.guid, description: config.description.clone() },
            ca: ca_attributes(config),
            port_guids: std::iter::once(config.guid).chain(ports).collect(),
        }
    }
}

/// Devices, cables and programs of an agent.
pub(crate) struct Core {
    pub(crate) name: String,
    pub(crate) devices: Vec<Hosted>,
    pub(crate) by_guid: BTreeMap<Guid, usize>,
    pub(crate) wiring: Wiring,
    pub(crate) links: Option<Links>,
    pub(crate) twins: Twins<Frame>,
    pub(crate) recorder: Recorder,
    pub(crate) signals: Rc<Signals>,
    pub(crate) taps: Taps,
    clock: Clock,
    /// Of the devices, and behind them of the hosts.
    deadlines: Deadlines,
    pub(crate) lateness: Histogram,
    pub(crate) hosts: Hosts,
    /// What is still on its way over cables that have a length.
    pub(crate) held: Held,
    /// Devices with something left to be done.
    undrained: Vec<usize>,
    alarm: Rc<Alarm>,
    armed: Option<Time>,
    programs: BTreeMap<ClientId, (Rc<Program>, usize)>,
    next_client: u16,
    /// Programs with something to be written.
    to_flush: Vec<Rc<Program>>,
    /// Programs of libibumad.
    pub(crate) open_ports: OpenPorts,
    pub(crate) issm: IssmFiles,
}

impl Core {
    pub(crate) fn new(
        config: &AgentConfig,
        (wiring, twins): (Wiring, Twins<Frame>),
        recorder: Recorder,
        (signals, alarm): (Rc<Signals>, Rc<Alarm>),
    ) -> Self {
        let devices = &config.devices;
        let hosts = Hosts::new(config);
        let by_guid = devices.iter().enumerate().map(|(index, device)| (device.guid, index)).collect();
        Self {
            name: config.name.clone(),
            devices: devices.iter().map(Hosted::new).collect(),
            by_guid,
            wiring,
            links: None,
            twins,
            recorder,
            signals,
            taps: Taps::new(),
            clock: Clock::start(),
            deadlines: Deadlines::new(devices.len() + hosts.count()),
            held: Held::default(),
            lateness: Histogram::new(),
            hosts,
            undrained: Vec::new(),
            alarm,
            armed: None,
            programs: BTreeMap::new(),
            next_client: 1,
            to_flush: Vec::new(),
            open_ports: OpenPorts::default(),
            issm: IssmFiles::new(&config.attach_socket),
        }
    }

    /// What comes at the end of everything the agent does: in-process packets, writes, the alarm.
    pub(crate) fn finish_turn(&mut self) {
        for batch in 0..TURN_PACKETS / CLOCK_PACKETS {
            if self.twins.is_idle() {
                break;
            }
            let now = self.clock.now();
            for _ in 0..CLOCK_PACKETS {
                let Some(event) = self.twins.poll() else { break };
                self.twin_event(now, event);
            }
            debug_assert!(batch < TURN_PACKETS);
        }
        for device in std::mem::take(&mut self.undrained) {
            self.drain(device, self.clock.now());
        }
        if !self.twins.is_idle() || !self.undrained.is_empty() {
            self.signals.work.notify_one();
        }
        for program in self.to_flush.drain(..) {
            program.flush();
        }
        for line in self.open_ports.to_flush.drain(..) {
            line.flush();
        }
        self.arm();
        if self.recorder.journal.has_gathered() {
            self.signals.journal.notify_one();
        }
    }

    /// Sets the alarm when something wants to be woken earlier than it would ring.
    fn arm(&mut self) {
        let wanted = [self.deadlines.earliest(), self.open_ports.earliest(), self.held.earliest()];
        let Some(earliest) = wanted.into_iter().flatten().min() else { return };
        if self.armed.is_none_or(|armed| earliest < armed) {
            self.armed = Some(earliest);
            let delay = earliest.saturating_sub(self.clock.now());
            self.alarm.set(Duration::from_nanos(delay.as_nanos()));
        }
    }

    /// The alarm rang.
    pub(crate) fn wake_devices(&mut self) {
        self.armed = None;
        let now = self.clock.now();
        self.release(now);
        while let Some((index, deadline)) = self.deadlines.due(now) {
            self.lateness.record(now.saturating_sub(deadline));
            match index.checked_sub(self.devices.len()) {
                Some(host) => self.wake_host(now, host),
                None => {
                    self.devices[index].machine.handle_timeout(now);
                    self.drain(index, now);
                }
            }
        }
        self.wake_layers(now);
    }

    /// Notes when a machine wants to be woken, and how late it was that its last wish was met with an input.
    #[inline]
    pub(crate) fn set_deadline(&mut self, machine: usize, deadline: Option<Time>, now: Time) {
        let replaced = self.deadlines.set(machine, deadline);
        if let Some(met) = replaced.filter(|met| *met <= now) {
            self.lateness.record(now.saturating_sub(met));
        }
    }

    pub(crate) fn now(&self) -> Time {
        self.clock.now()
    }

    /// Gives a device one input now and does what it then wants done.
    pub(crate) fn input(&mut self, device: usize, input: Input) {
        self.feed(device, self.clock.now(), input);
    }

    /// Gives a device one input and does what it then wants done.
    #[inline]
    pub(crate) fn feed(&mut self, device: usize, now: Time, input: Input) {
        self.devices[device].machine.handle_input(now, input);
        self.drain(device, now);
    }

    #[inline]
    pub(crate) fn drain(&mut self, device: usize, now: Time) {
        for done in 0.. {
            if done == DRAIN_OUTPUTS {
                self.undrained.push(device);
                break;
            }
            let Some(output) = self.devices[device].machine.poll_output() else { break };
            self.output(device, now, output);
        }
        let deadline = self.devices[device].machine.poll_timeout();
        self.set_deadline(device, deadline, now);
    }

    #[inline]
    fn output(&mut self, device: usize, now: Time, output: Output) {
        match output {
            Output::Transmit { port, packet } => self.send(device, now, port, Frame::Packet(packet)),
            Output::TransmitData { port, packet } => self.send(device, now, port, Frame::Data(packet)),
            Output::Credit { port, flow_control } => {
                // Without a link nobody counts credits.
                let _ = self.transmit(device, port, Frame::Credit(flow_control));
            }
            Output::Accept { port, packet } => {
                self.port_host_hears(now, device, port, stack::Input::Accept(packet));
            }
            Output::Injected { port, service_level, packets } => {
                self.port_host_hears(now, device, port, stack::Input::Injected { service_level, packets });
            }
            Output::Refused { port, dest_qp } => {
                self.port_host_hears(now, device, port, stack::Input::Refused { dest_qp });
            }
            Output::HostPort { port, facts } => {
                self.port_host_hears(now, device, port, stack::Input::Port(*facts));
            }
            Output::Deliver { client, mad } => self.deliver_mad(now, device, client, *mad),
            Output::Registered { client, key, outcome } => {
                let claimed = mad::Input::Claimed { agent: mad::AgentId(key), granted: outcome.is_ok() };
                self.layer_hears(now, client, device, claimed);
            }
            Output::PortChanged { client, up } => {
                self.deliver(client, &ServerMessage::PortChanged { up });
            }
            Output::SetLink { port, enabled, parameters } => {
                self.set_link(Place { device, port }, enabled, parameters);
            }
            Output::Event(event) => self.device_event(device, &event),
        }
    }

    #[inline]
    fn send(&mut self, device: usize, now: Time, port: PortNum, frame: Frame) {
        if let SendOutcome::Dropped(_) = self.transmit(device, port, frame) {
            self.devices[device].machine.handle_input(now, Input::TransmitDropped { port });
        }
    }

    fn deliver_mad(&mut self, now: Time, device: usize, client: ClientId, mad: AddressedMad) {
        if let Some(host) = self.hosts.of_client(client) {
            self.host_hears(now, host, stack::Input::Receive(mad));
        } else if self.open_ports.has(client) {
            self.layer_hears(now, client, device, mad::Input::Receive(mad));
        } else {
            self.deliver(client, &ServerMessage::Receive(mad));
        }
    }

    fn device_event(&mut self, device: usize, event: &Event) {
        let hosted = &self.devices[device];
        self.recorder.device(&hosted.who, event);
        match event {
            Event::CreditOverrun { port, .. } => {
                let port = *port;
                self.disconnect(Place { device, port });
            }
            Event::ClientAttached { client, port } => {
                let port_guid =
                    hosted.port_guids.get(usize::from(port.0)).copied().unwrap_or(hosted.who.guid);
                let node = hosted.who.guid;
                let attached = Attached { client: client.0, node, port_guid, port: *port };
                self.deliver(*client, &ServerMessage::Attached(attached));
            }
            Event::ClientRefused { client, .. } if self.open_ports.has(*client) => self.user_refused(*client),
            Event::ClientRefused { client, .. } if self.hosts.of_client(*client).is_some() => {
                self.hosts.of_client(*client).into_iter().for_each(|host| self.host_refused(host));
            }
            Event::ClientRefused { client, reason } => {
                let reason = format!("{reason:?}");
                self.deliver(*client, &ServerMessage::Refused { reason });
                if let Some((program, _)) = self.programs.remove(client) {
                    program.set_attached(None);
                    program.close();
                }
            }
            _ => {}
        }
    }

    fn deliver(&mut self, client: ClientId, message: &ServerMessage) {
        if let Some((program, _)) = self.programs.get(&client) {
            match program.queue(message) {
                Queued::ToBeNoted => self.to_flush.push(program.clone()),
                Queued::Dropped => self.recorder.count("program_mads_dropped"),
                Queued::No => {}
            }
        }
    }

    /// Says something to a program, attached or not.
    pub(crate) fn answer(&mut self, program: &Rc<Program>, message: &ServerMessage) {
        if program.queue(message) == Queued::ToBeNoted {
            self.to_flush.push(program.clone());
        }
    }

    fn refuse(&mut self, program: &Rc<Program>, reason: String) {
        self.answer(program, &ServerMessage::Refused { reason });
        program.close();
    }

    /// A program wants to be attached to a port.
    pub(crate) fn program_attaches(
        &mut self,
        program: &Rc<Program>,
        node: Guid,
        port: PortNum,
        registrations: Vec<Registration>,
    ) {
        if program.attached().is_some() {
            return self.refuse(program, "this connection is attached already".into());
        }
        let Some(device) = self.by_guid.get(&node).copied() else {
            return self.refuse(program, format!("node {node} is not here"));
        };
        let Some(client) = self.free_client() else {
            return self.refuse(program, "too many programs are attached".into());
        };
        program.set_attached(Some(client));
        self.programs.insert(client, (program.clone(), device));
        let now = self.clock.now();
        self.feed(device, now, Input::Attach { client, port, registrations });
    }

    /// A number that no attachment has, and that has not been given away for as long as possible: answers to
    /// a program that is gone must not reach another.
    pub(crate) fn free_client(&mut self) -> Option<ClientId> {
        for _ in 0..=u16::MAX {
            let client = ClientId(self.next_client);
            self.next_client = self.next_client.wrapping_add(1).max(1);
            // The last number is the device's own.
            let taken = self.programs.contains_key(&client)
                || self.open_ports.has(client)
                || self.issm.has(client)
                || self.hosts.of_client(client).is_some();
            if client.0 != u16::MAX && !taken {
                return Some(client);
            }
        }
        None
    }

    /// A program sends a MAD through its port.
    pub(crate) fn program_sends(&mut self, program: &Rc<Program>, mad: AddressedMad) {
        let attachment = program.attached().and_then(|client| Some((client, self.programs.get(&client)?.1)));
        let Some((client, device)) = attachment else {
            return self.refuse(program, "this connection is not attached to a port".into());
        };
        let now = self.clock.now();
        self.feed(device, now, Input::Send { client, mad: Box::new(mad) });
    }

    /// A program's connection has ended.
    pub(crate) fn program_gone(&mut self, program: &Rc<Program>) {
        self.taps.forget(program);
        if let Some(client) = program.attached()
            && let Some((_, device)) = self.programs.remove(&client)
        {
            program.set_attached(None);
            let now = self.clock.now();
            self.feed(device, now, Input::Detach { client });
        }
    }

    /// Programs attached to a device.
    pub(crate) fn program_count(&self, device: usize) -> usize {
        let programs = self.programs.values().filter(|(_, at)| *at == device).count();
        programs + self.open_ports.count(device)
    }
}
