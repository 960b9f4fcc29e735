//! The loop's body: inputs to the node, outputs to links, programs and the record.
//!
//! ```text
//!   link events ──┐                        ┌─▶ links
//!   programs    ──┼─▶ Node (feed, drain) ──┼─▶ programs
//!   alarm       ──┘                        └─▶ record
//! ```

mod asked;
mod faults;
mod issm;
mod programs;
mod recabling;
mod tap;
mod users;
mod vms;

use std::collections::VecDeque;
use std::rc::Rc;
use std::time::Duration;

use tokio::sync::Notify;
use weft_device::{DeviceConfig, Event};
use weft_host::stack::StackOptions;
use weft_link::{Alarm, Cable, Links};
use weft_machine::{Machine, Time};
use weft_node::{Input, NewDevice, Node, NodeOptions, Output, PortId, Request, ToHost};
use weft_process::Clock;
use weft_wire::{NodeType, PortNum, PortState};

use crate::asked::{Asked, Asker};
use crate::config::AgentConfig;
use crate::counter::Counter;
use crate::faults::Faults;
use crate::issm::IssmFiles;
use crate::lateness::Histogram;
use crate::lines::Lines;
use crate::names::{Named, Names};
use crate::programs::Programs;
use crate::record::Recorder;
use crate::recording::Recording;
use crate::tap::Taps;
use crate::vms::Vms;
use crate::wiring::Wiring;

/// Steps of the node at one reading of the clock.
const CLOCK_STEPS: u32 = 16;
/// Readings of the clock before the reactor has its turn again.
const TURN_READINGS: u32 = 16;

/// What the agent's tasks wait for.
#[derive(Debug, Default)]
pub(crate) struct Signals {
    /// The node has come to no end.
    pub(crate) work: Notify,
    /// A link came up or went down.
    pub(crate) links: Notify,
    /// What the node was fed waits to be written.
    pub(crate) recording: Notify,
    /// A fault began.
    pub(crate) faults: Notify,
    /// A client says that the agent may dial.
    pub(crate) begin: Notify,
    /// The agent is to stop.
    pub(crate) stop: Notify,
}

/// When the node wants to be woken.
pub(crate) struct Waking {
    clock: Clock,
    alarm: Rc<Alarm>,
    armed: Option<Time>,
    pub(crate) lateness: Histogram,
}

/// The node of an agent, and what is around it.
pub(crate) struct Core {
    pub(crate) node: Node,
    pub(crate) names: Names,
    pub(crate) wiring: Wiring,
    pub(crate) links: Option<Links>,
    pub(crate) asked: Asked,
    pub(crate) programs: Programs,
    pub(crate) lines: Lines,
    pub(crate) issm: IssmFiles,
    pub(crate) vms: Vms,
    /// How many flows the hosts have at most.
    pub(crate) flows: usize,
    /// Whether there are hosts from the beginning on, which stay.
    pub(crate) begins_with_hosts: bool,
    /// What others are like, which begin with their first flow.
    pub(crate) later_hosts: StackOptions,
    pub(crate) recorder: Recorder,
    pub(crate) taps: Taps,
    pub(crate) faults: Faults,
    pub(crate) signals: Rc<Signals>,
    pub(crate) waking: Waking,
    pub(crate) recording: Option<Box<Recording>>,
    /// What the node's outputs caused; fed when it has been drained.
    next_inputs: VecDeque<Input>,
}

impl Core {
    /// The devices and cables of a checked configuration; also returns the cables that leave the agent.
    pub(crate) fn new(
        config: &AgentConfig,
        recorder: Recorder,
        signals: Rc<Signals>,
        clock: Clock,
        alarm: Rc<Alarm>,
    ) -> (Self, Vec<Cable>) {
        let options = NodeOptions { steps_max: CLOCK_STEPS, notes_lateness: true };
        let waking = Waking { clock, alarm, armed: None, lateness: Histogram::new() };
        let mut core = Self {
            node: Node::new(options),
            names: Names::default(),
            wiring: Wiring::default(),
            links: None,
            asked: Asked::default(),
            programs: Programs::default(),
            lines: Lines::default(),
            issm: IssmFiles::new(&config.attach_socket),
            vms: Vms::load(config.slots_file.as_deref()),
            flows: 0,
            begins_with_hosts: config.part.hosts.is_some(),
            later_hosts: config.part.later_hosts.clone().unwrap_or_default(),
            recorder,
            taps: Taps::new(),
            faults: Faults::load(config.faults_file.as_deref(), config.papers.clone()),
            signals,
            waking,
            recording: begin_recording(config, options),
            next_inputs: VecDeque::new(),
        };
        for device in &config.part.devices {
            core.add_device(config, device);
        }
        let (wiring, requests, cables) = Wiring::lay(&config.part, &core.names);
        core.wiring = wiring;
        for request in requests {
            core.ask(Asker::Agent, request);
        }
        if core.taps.is_active() {
            core.ask(Asker::Agent, Request::Watch(true));
        }
        (core, cables)
    }

    fn add_device(&mut self, config: &AgentConfig, device: &DeviceConfig) {
        let ports = u8::try_from(device.ports.len()).unwrap_or(u8::MAX);
        let slot = config.part.slots.iter().find(|slot| slot.guid == device.guid);
        let has_hosts = config.part.hosts.is_some() && device.kind != NodeType::Switch;
        let new = NewDevice {
            config: device.clone(),
            incarnation: self.waking.clock.incarnation().0,
            hosts: (1..=ports).filter(|_| has_hosts).map(PortNum).collect(),
            stack: config.part.hosts.clone().or_else(|| config.part.later_hosts.clone()),
        };
        let asker = Asker::Device(Box::new(Named::new(device)));
        match slot {
            None => self.ask(asker, Request::AddDevice(new)),
            Some(slot) => {
                let empty = slot.empty || self.vms.is_away(slot.guid);
                self.ask(asker, Request::AddSlot { new, empty });
                self.names.add_slot(device.guid);
            }
        }
    }

    /// Lets the cables come up.
    pub(crate) fn start_dialling(&mut self) {
        self.ask(Asker::Agent, Request::Begin);
        if let Some(links) = &self.links {
            links.start_dialling();
        }
    }

    pub(crate) fn now(&self) -> Time {
        Time::from_nanos(self.waking.clock.monotonic_ns())
    }

    /// Gives the node one input and does what it then wants done.
    #[inline]
    pub(crate) fn feed(&mut self, input: Input) {
        self.feed_at(self.now(), input);
    }

    #[inline]
    pub(crate) fn feed_at(&mut self, now: Time, input: Input) {
        self.hand_in(now, input);
        self.drain(now);
    }

    /// Gives the node an input when it has been drained.
    pub(crate) fn feed_next(&mut self, input: Input) {
        self.next_inputs.push_back(input);
    }

    #[inline]
    fn hand_in(&mut self, now: Time, input: Input) {
        if let Some(recording) = &mut self.recording {
            recording.fed(now, &input);
        }
        self.node.handle_input(now, input);
    }

    #[inline]
    fn drain(&mut self, now: Time) {
        loop {
            while let Some(output) = self.node.poll_output() {
                if let Some(recording) = &mut self.recording {
                    recording.said(&output);
                }
                self.output(output);
            }
            let Some(input) = self.next_inputs.pop_front() else { return };
            self.hand_in(now, input);
        }
    }

    /// What comes at the end of everything the agent does: the rest of the node's work, writes, the alarm.
    pub(crate) fn finish_turn(&mut self) {
        for _ in 0..TURN_READINGS {
            if !self.node.is_unfinished() {
                break;
            }
            self.feed(Input::Continue);
        }
        if self.node.is_unfinished() {
            self.signals.work.notify_one();
        }
        for late in self.node.take_lateness() {
            self.waking.lateness.record(late);
        }
        self.programs.flush();
        self.lines.flush();
        self.arm();
        if self.recording.as_ref().is_some_and(|recording| recording.has_gathered()) {
            self.signals.recording.notify_one();
        }
    }

    /// Writes what was gathered.
    pub(crate) fn write_gathered(&mut self) {
        if let Some(recording) = &mut self.recording {
            recording.write();
        }
    }

    /// Sets the alarm when the node wants to be woken earlier than it would ring.
    fn arm(&mut self) {
        let Some(earliest) = self.node.poll_timeout() else { return };
        if self.waking.armed.is_none_or(|armed| earliest < armed) {
            self.waking.armed = Some(earliest);
            let delay = earliest.saturating_sub(self.now());
            self.waking.alarm.set(Duration::from_nanos(delay.as_nanos()));
        }
    }

    /// The alarm rang.
    pub(crate) fn wake(&mut self) {
        self.waking.armed = None;
        let now = self.now();
        if let Some(recording) = &mut self.recording {
            recording.woken(now);
        }
        self.node.handle_timeout(now);
        self.drain(now);
    }

    #[inline]
    fn output(&mut self, output: Output) {
        match output {
            Output::Transmit { at, frame } => {
                let unsent = self.transmit(at, frame);
                self.next_inputs.extend(unsent.map(|unsent| Input::Unsent { at, unsent }));
            }
            Output::Deliver { client, mad } => self.programs_hear(client, *mad),
            Output::DeliverThroughLayer { client, reading } => self.user_reads(client, &reading),
            Output::Event { device, event } => {
                if let Some(named) = self.names.of(device) {
                    self.recorder.device(&named.who, &event);
                }
                if let Event::PortStateChanged { port, from: PortState::Down, .. } = event {
                    self.link_was_trained(PortId { device, port });
                }
            }
            Output::Crossed { at, received, frame } => self.tap_crossing(at, received, &frame),
            Output::LinkUp { at } => self.link_came_up(at),
            Output::LinkDown { at, cause } => self.link_went_down(at, &cause),
            Output::SetLink { at, enabled, parameters } => self.set_link(at, enabled, parameters),
            Output::Overrun { at, lane } => self.overrun(at, lane),
            Output::Answer { id, outcome } => self.answered(id, outcome),
            other => self.rare_output(&other),
        }
    }

    fn rare_output(&mut self, output: &Output) {
        match output {
            Output::PortChanged { client, up } => self.port_changed(*client, *up),
            Output::Detached { client } => {
                self.program_detached(*client);
                self.user_detached(*client);
            }
            Output::SendRefused { client, agent, reason } => {
                tracing::debug!(client = %client.number, %agent, %reason, "a program's send was refused");
                self.recorder.count(Counter::UmadSendsRefused);
            }
            Output::ToHost { what: ToHost::Accept(_), .. } => {
                self.recorder.count(Counter::PacketsWithoutHost);
            }
            Output::HostRefused { at, reason } => {
                tracing::info!(port = %self.names.cable_end(*at), %reason, "a host could not be attached");
                self.recorder.count(Counter::HostsRefused);
            }
            Output::CableFull { .. } => self.recorder.count(Counter::CableFramesDropped),
            _ => {}
        }
    }
}

/// A recording that cannot be made is said and does not keep an agent from running.
fn begin_recording(config: &AgentConfig, options: NodeOptions) -> Option<Box<Recording>> {
    let path = config.record_file.as_deref()?;
    match Recording::begin(path, config.record_bytes_max, &config.part.name, options) {
        Ok(recording) => Some(Box::new(recording)),
        Err(error) => {
            tracing::warn!(path = %path.display(), %error, "nothing is recorded");
            None
        }
    }
}
