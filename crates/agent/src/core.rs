//! The loop's body: inputs to the devices, outputs to links, programs and the record.
//!
//! ```text
//!   link events ──┐                       ┌─▶ links.send / twins.send
//!   programs    ──┼─▶ device machines ────┼─▶ programs
//!   alarm       ──┤   (feed, then drain)  ├─▶ record
//!   twins.poll  ──┘                       └─▶ cables plugged and unplugged
//! ```

use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::Notify;
use weft_device::{ClientId, Device, DeviceConfig, Event, Input, Output};
use weft_host::mad;
use weft_link::{Alarm, CableEnd, LinkEvent, Links, SendOutcome, TwinEvent, Twins};
use weft_machine::{Machine, Time};
use weft_umad::user_mad::CaAttributes;
use weft_umad::{Attached, ServerMessage};
use weft_wire::{AddressedMad, Guid, LinkParameters, Packet, PortNum, Registration, VirtualLane};

use crate::client::{Program, Queued};
use crate::clock::{Clock, Deadlines};
use crate::config::AgentConfig;
use crate::record::{Recorder, Who};
use crate::tap::{Direction, Taps};
use crate::user::{IssmFiles, OpenPorts, ca_attributes};
use crate::wiring::{Attachment, Place, Wiring};

/// In-process packets handled before the reactor has its turn again.
const TURN_PACKETS: usize = 256;
/// In-process packets handled at one reading of the clock.
const CLOCK_PACKETS: usize = 16;

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
    pub(crate) twins: Twins<Packet>,
    pub(crate) recorder: Recorder,
    pub(crate) signals: Rc<Signals>,
    pub(crate) taps: Taps,
    clock: Clock,
    deadlines: Deadlines,
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
        (wiring, twins): (Wiring, Twins<Packet>),
        recorder: Recorder,
        (signals, alarm): (Rc<Signals>, Rc<Alarm>),
    ) -> Self {
        let devices = &config.devices;
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
            deadlines: Deadlines::new(devices.len()),
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
        if !self.twins.is_idle() {
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
        let wanted = [self.deadlines.earliest(), self.open_ports.earliest()];
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
        while let Some(device) = self.deadlines.due(now) {
            self.devices[device].machine.handle_timeout(now);
            self.drain(device, now);
        }
        self.wake_layers(now);
    }

    pub(crate) fn now(&self) -> Time {
        self.clock.now()
    }

    /// A cable to another agent has something to tell.
    pub(crate) fn link_event(&mut self, event: LinkEvent) {
        let now = self.clock.now();
        match event {
            LinkEvent::Received { link, lane, packet } => {
                let Some(place) = self.wiring.link_place(link) else { return };
                // A copy for the tap, if there is one; the packet itself is taken apart.
                let tapped = self.taps.is_active().then(|| packet.clone());
                let error =
                    |physical| (Input::ReceiveError { port: place.port, physical }, Direction::Damaged);
                let (input, direction) = match Packet::parse(Vec::from(packet)) {
                    Ok(packet) if packet.vl() == lane => {
                        (Input::Receive { port: place.port, packet }, Direction::Received)
                    }
                    Ok(_) => error(false),
                    Err(refusal) => error(refusal.is_physical()),
                };
                if let Some(bytes) = tapped {
                    self.tap(place, direction, &bytes);
                }
                self.feed(place.device, now, input);
            }
            LinkEvent::Up { link, peer } => {
                let Some(place) = self.wiring.link_place(link) else { return };
                self.link_up(now, place, peer);
            }
            LinkEvent::Down { link, reason } => {
                let Some(place) = self.wiring.link_place(link) else { return };
                self.link_down(now, place, &reason);
            }
            LinkEvent::Refused { link, address, reason } => {
                let place = link.and_then(|link| self.wiring.link_place(link));
                let at = place.and_then(|place| Some((&self.devices.get(place.device)?.who, place.port)));
                self.recorder.refused(at, link, address, &reason);
            }
        }
    }

    #[inline]
    fn twin_event(&mut self, now: Time, event: TwinEvent<Packet>) {
        match event {
            TwinEvent::Received { end, packet } => {
                let Some(place) = self.wiring.twin_place(end) else { return };
                if self.taps.is_active() {
                    self.tap(place, Direction::Received, packet.bytes());
                }
                self.feed(place.device, now, Input::Receive { port: place.port, packet });
            }
            TwinEvent::Up { end, peer } => {
                let Some(place) = self.wiring.twin_place(end) else { return };
                self.link_up(now, place, peer);
            }
            TwinEvent::Down { end, reason } => {
                let Some(place) = self.wiring.twin_place(end) else { return };
                self.link_down(now, place, &reason);
            }
        }
    }

    fn link_up(&mut self, now: Time, place: Place, peer: LinkParameters) {
        let jack = self.wiring.jack(place.device, place.port);
        self.recorder.link_up(&self.devices[place.device].who, place.port, jack.peer);
        self.signals.links.notify_one();
        self.feed(place.device, now, Input::LinkUp { port: place.port, peer });
    }

    fn link_down(&mut self, now: Time, place: Place, reason: &weft_link::DownReason) {
        let jack = self.wiring.jack(place.device, place.port);
        self.recorder.link_down(&self.devices[place.device].who, place.port, jack.peer, reason);
        self.signals.links.notify_one();
        self.feed(place.device, now, Input::LinkDown { port: place.port });
    }

    /// Gives a device one input now and does what it then wants done.
    pub(crate) fn input(&mut self, device: usize, input: Input) {
        self.feed(device, self.clock.now(), input);
    }

    /// Gives a device one input and does what it then wants done.
    #[inline]
    fn feed(&mut self, device: usize, now: Time, input: Input) {
        self.devices[device].machine.handle_input(now, input);
        self.drain(device, now);
    }

    #[inline]
    pub(crate) fn drain(&mut self, device: usize, now: Time) {
        while let Some(output) = self.devices[device].machine.poll_output() {
            match output {
                Output::Transmit { port, packet } => {
                    if let SendOutcome::Dropped(_) = self.transmit(device, port, packet) {
                        self.devices[device].machine.handle_input(now, Input::TransmitDropped { port });
                    }
                }
                // The data path comes here.
                Output::TransmitData { .. }
                | Output::Credit { .. }
                | Output::Injected { .. }
                | Output::Accept { .. }
                | Output::HostPort { .. } => {}
                Output::Deliver { client, mad } if self.open_ports.has(client) => {
                    self.layer_hears(now, client, device, mad::Input::Receive(*mad));
                }
                Output::Deliver { client, mad } => self.deliver(client, &ServerMessage::Receive(*mad)),
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
        self.deadlines.set(device, self.devices[device].machine.poll_timeout());
    }

    #[inline]
    fn transmit(&mut self, device: usize, port: PortNum, packet: Packet) -> SendOutcome {
        if self.taps.is_active() {
            return self.transmit_tapped(Place { device, port }, packet);
        }
        self.hand_over(device, port, packet)
    }

    #[inline]
    pub(crate) fn hand_over(&mut self, device: usize, port: PortNum, packet: Packet) -> SendOutcome {
        let no_cable = SendOutcome::Dropped(weft_link::DropReason::LinkDown);
        match (self.wiring.jack(device, port).attachment, &self.links) {
            (Attachment::Twin(end), _) => self.twins.send(end, packet),
            (Attachment::Link(link), Some(links)) => {
                let lane: VirtualLane = packet.vl();
                links.send(link, lane, Bytes::from(packet.into_bytes()))
            }
            _ => no_cable,
        }
    }

    fn device_event(&mut self, device: usize, event: &Event) {
        let hosted = &self.devices[device];
        self.recorder.device(&hosted.who, event);
        match event {
            Event::ClientAttached { client, port } => {
                let port_guid =
                    hosted.port_guids.get(usize::from(port.0)).copied().unwrap_or(hosted.who.guid);
                let node = hosted.who.guid;
                let attached = Attached { client: client.0, node, port_guid, port: *port };
                self.deliver(*client, &ServerMessage::Attached(attached));
            }
            Event::ClientRefused { client, .. } if self.open_ports.has(*client) => self.user_refused(*client),
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
            let taken =
                self.programs.contains_key(&client) || self.open_ports.has(client) || self.issm.has(client);
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

    fn set_link(&mut self, place: Place, enabled: bool, parameters: LinkParameters) {
        let Some(jack) = self.wiring.jack_mut(place) else { return };
        jack.enabled = enabled;
        match (jack.attachment, &self.links) {
            (Attachment::Link(link), Some(links)) => links.set_parameters(link, parameters),
            (Attachment::Twin(end), _) => self.twins.set_parameters(end, parameters),
            _ => {}
        }
        self.apply_jack(place);
    }

    /// Plugs a cable in or out at one of the agent's ports.
    pub(crate) fn set_cable(&mut self, end: CableEnd, plugged: bool) -> Result<(), String> {
        let device =
            self.by_guid.get(&end.guid).copied().ok_or_else(|| format!("node {} is not here", end.guid))?;
        let place = Place { device, port: end.port };
        match self.wiring.jack_mut(place) {
            Some(jack) if jack.attachment != Attachment::None => jack.plugged = plugged,
            _ => return Err(format!("no cable at {end}")),
        }
        self.apply_jack(place);
        Ok(())
    }

    /// A link may be up when its cable is plugged in and its port allows it.
    fn apply_jack(&mut self, place: Place) {
        let jack = self.wiring.jack(place.device, place.port);
        let enabled = jack.plugged && jack.enabled;
        match (jack.attachment, &self.links) {
            (Attachment::Link(link), Some(links)) => links.set_enabled(link, enabled),
            (Attachment::Twin(end), _) => self.twins.set_enabled(end, enabled),
            _ => {}
        }
    }

    /// Lets the cables come up.
    pub(crate) fn start_dialling(&mut self) {
        self.twins.start();
        if let Some(links) = &self.links {
            links.start_dialling();
        }
    }

    /// How many cabled ports have a link, and how many there are.
    pub(crate) fn link_counts(&self) -> (usize, usize) {
        let outside = self.links.as_ref().map_or(0, Links::up_count);
        (outside + 2 * self.twins.up_count(), self.wiring.cabled_count())
    }
}
