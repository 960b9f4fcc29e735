//! One node in hand: it is given something, and what it then wants is done.

use weft_machine::{Machine, Time, Timer};
use weft_node::{Answer, Frame, Input, Node, NodeTimer, Output, PortId, Refusal, RequestId, Taker, ToHost};
use weft_topology::{NodeIndex, PortRef};
use weft_wire::{DataPacket, ServiceLevel};

use super::Simulation;
use crate::clock::Rare;
use crate::nodes::Asked;
use crate::turn::Next;

/// A load that gives an adapter the next packet at the same moment whenever it refuses one would never end: after
/// this number of exchanges the node goes on a while later. Hosts do not; a [`Load`](crate::Load) can. Nor would a packet
/// that goes round between devices of one node, whose cables take no time.
const ROUNDS_MAX: u32 = 4096;
/// 4 us for each exchange, about what an agent needs.
const PAUSE: Time = Time::from_millis(16);

/// The node in hand, which is not in its slot: what needs it there, or is written down, is not taken.
struct InHand<'a>(&'a mut Simulation, NodeIndex);

impl InHand<'_> {
    #[inline(always)]
    fn hears(&mut self, at: PortId, what: ToHost) -> bool {
        let Self(simulation, home) = self;
        simulation.turn.put_for_load(simulation.nodes.port_of(*home, at), what);
        true
    }
}

impl Taker for InHand<'_> {
    #[inline(always)]
    fn transmit(&mut self, at: PortId, frame: &Frame) -> bool {
        let Self(simulation, home) = self;
        simulation.world.observers.recordings.is_none() && {
            let from = simulation.nodes.port_of(*home, at);
            simulation.cabling.transmit_often(from, frame, &mut simulation.world)
        }
    }

    #[inline(always)]
    fn injected(&mut self, at: PortId, service_level: ServiceLevel, packets: u16) -> bool {
        self.0.world.observers.recordings.is_none()
            && self.hears(at, ToHost::Injected { service_level, packets })
    }

    #[inline(always)]
    fn accept(&mut self, at: PortId, packet: &DataPacket) -> bool {
        self.0.world.observers.recordings.is_none() && self.hears(at, ToHost::Accept(*packet))
    }
}

impl Simulation {
    /// Feeds the node of a device and does what it wants.
    pub(crate) fn feed(&mut self, device: NodeIndex, input: Input) {
        let index = self.nodes.home(device);
        self.note_fed(index, &input);
        let Some(mut node) = self.take_node(index) else { return };
        node.handle_input(self.world.clock.now(), input);
        self.was_fed(index, node);
    }

    /// Feeds a node a frame, which happens most.
    #[inline(never)]
    pub(super) fn frame_arrives(&mut self, to: PortRef, frame: Frame) {
        if self.world.options.bug.is_some() && self.is_swallowed(to, &frame) {
            return;
        }
        let (index, at) = (self.nodes.home(to.node), self.nodes.at(to));
        if let Some(recordings) = &mut self.world.observers.recordings {
            recordings.fed(index, self.world.clock.now(), &Input::Arrived { at, frame: frame.clone() });
        }
        let Some(mut node) = self.take_node(index) else { return };
        node.handle_input(self.world.clock.now(), Input::Arrived { at, frame });
        self.was_fed(index, node);
    }

    pub(super) fn wake_node(&mut self, index: NodeIndex) {
        if !self.nodes.wakes(index, self.world.clock.now()) {
            return;
        }
        if let Some(recordings) = &mut self.world.observers.recordings {
            recordings.woken(index, self.world.clock.now());
        }
        let Some(mut node) = self.take_node(index) else { return };
        let due = if cfg!(debug_assertions) { node.next_timer() } else { None };
        node.handle_timeout(self.world.clock.now());
        self.was_fed(index, node);
        self.has_moved_on(index, due);
    }

    /// A node that was woken has done what it wanted to be woken for: it does not want to be woken again at once for the same.
    fn has_moved_on(&self, index: NodeIndex, due: Option<Timer<NodeTimer>>) {
        let timer = || self.node(index).and_then(Machine::next_timer);
        debug_assert!(
            timer().is_none_or(|timer| timer.at > self.world.clock.now() || Some(timer) != due)
                || self.node(index).is_some_and(Node::is_unfinished),
            "{} wakes without progress for {:?}",
            self.world.fabric.node(index).id,
            timer()
        );
    }

    /// Lets a load answer, and does what the node then wants.
    pub(super) fn go_on(&mut self, device: NodeIndex) {
        let index = self.nodes.home(device);
        if let Some(node) = self.take_node(index) {
            self.was_fed(index, node);
        }
    }

    /// Writes down what a node is fed, if it is recorded.
    #[inline(always)]
    fn note_fed(&mut self, index: NodeIndex, input: &Input) {
        if let Some(recordings) = &mut self.world.observers.recordings {
            recordings.fed(index, self.world.clock.now(), input);
        }
    }

    /// A node that is on, with the desk in its hands. [`put_back`](Self::put_back) it.
    #[inline]
    fn take_node(&mut self, index: NodeIndex) -> Option<Box<Node>> {
        let mut node = self.nodes.take(index)?;
        node.exchange_desk(&mut self.turn.desk);
        Some(node)
    }

    /// Does what the node in hand wants, and puts it back without the desk.
    #[inline(always)]
    fn was_fed(&mut self, index: NodeIndex, mut node: Box<Node>) {
        // A packet that joins a queue, which most do, is all that happens.
        if !node.is_at_rest() || !self.turn.for_load.is_empty() {
            let Some(settled) = self.settle(index, node) else { return };
            node = settled;
        }
        node.exchange_desk(&mut self.turn.desk);
        self.nodes.wake_at(index, node.poll_timeout(), &mut self.world.clock);
        self.nodes.put_back(index, node);
    }

    /// A drain that ended at its bound goes on a while later. Whatever the node is given meanwhile ends at the bound as well, and
    /// one wake-up does for all.
    fn pause(&mut self, node: NodeIndex) {
        if self.nodes.pause(node) {
            self.world.observers.statistics.host_pauses += 1;
            self.world.clock.push_rare(self.world.clock.now() + PAUSE, Rare::GoOn(node));
        }
    }

    pub(super) fn node_goes_on(&mut self, node: NodeIndex) {
        self.nodes.go_on(node);
        self.feed(node, Input::Continue);
    }

    /// Does what the node in hand wants, and lets a load answer it, until neither wants anything any more.
    #[inline(never)]
    fn settle(&mut self, index: NodeIndex, mut node: Box<Node>) -> Option<Box<Node>> {
        let mut rounds = 0;
        loop {
            while let Some(output) = node.drain(&mut InHand(self, index)) {
                self.nodes.put_back(index, node);
                self.output(index, output);
                node = self.nodes.take(index)?;
            }
            let Some(next) = self.turn.next() else { break };
            self.answer(index, &mut node, next, &mut rounds);
        }
        if node.is_unfinished() {
            self.pause(index);
        }
        Some(node)
    }

    /// What comes next when the node in hand wants nothing.
    #[inline(never)]
    fn answer(&mut self, index: NodeIndex, node: &mut Node, next: Next, rounds: &mut u32) {
        let input = match next {
            Next::Unsent(at, unsent) => Input::Unsent { at, unsent },
            Next::Packet(port, packet) => Input::Inject { at: self.nodes.at(port), packet },
            Next::ToLoad(port, what) => {
                *rounds += 1;
                if *rounds < ROUNDS_MAX {
                    self.turn.load_hears(self.world.clock.now(), port, what);
                } else {
                    self.world.clock.push_rare(self.world.clock.now() + PAUSE, Rare::ToLoad(port, what));
                    self.world.observers.statistics.host_pauses += 1;
                }
                return;
            }
        };
        self.note_fed(index, &input);
        node.handle_input(self.world.clock.now(), input);
    }

    #[inline(never)]
    fn output(&mut self, home: NodeIndex, output: Output) {
        if let Some(recordings) = &mut self.world.observers.recordings {
            recordings.said(home, &output);
        }
        match output {
            Output::Transmit { at, frame } => self.transmit(home, at, frame),
            Output::ToHost { at, what } => self.turn.put_for_load(self.nodes.port_of(home, at), what),
            Output::Deliver { client, mad } => {
                self.deliver(self.nodes.member(home, client.device), client, mad);
            }
            Output::PortChanged { client, up } => {
                self.port_changed(self.nodes.member(home, client.device), client, up);
            }
            Output::SetLink { at, enabled, parameters } => {
                self.set_link(self.nodes.port_of(home, at), enabled, parameters);
            }
            Output::Overrun { at, .. } => {
                self.world.observers.statistics.credit_overruns += 1;
                self.begin_anew(self.nodes.port_of(home, at));
            }
            Output::Event { device, event } => self.device_event(self.nodes.member(home, device), event),
            Output::Answer { id, outcome } => self.answered(home, id, outcome),
            Output::DeliverThroughLayer { client, reading } => {
                self.world.observers.readings.push((self.nodes.member(home, client.device), *reading));
            }
            Output::Detached { client } => self.detached(self.nodes.member(home, client.device), client),
            Output::LinkUp { at } => self.inner_link(self.nodes.port_of(home, at), "up"),
            Output::LinkDown { at, .. } => self.inner_link(self.nodes.port_of(home, at), "down"),
            Output::SendRefused { .. }
            | Output::HostRefused { .. }
            | Output::Crossed { .. }
            | Output::CableFull { .. } => {}
        }
    }

    /// A frame goes into a cable; without a link, the node hears of that.
    fn transmit(&mut self, home: NodeIndex, at: PortId, frame: Frame) {
        let from = self.nodes.port_of(home, at);
        if let Err(frame) = self.cabling.transmit(from, frame, &mut self.world) {
            self.turn.put_unsent(at, &frame);
        }
    }

    /// A cable within a node came up or went down, as one of its ends sees it.
    fn inner_link(&mut self, at: PortRef, kind: &str) {
        self.world.clock.disturb();
        self.world.trace_port(kind, at, format_args!("-"));
    }

    fn answered(&mut self, home: NodeIndex, id: RequestId, outcome: Result<Answer, Refusal>) {
        let Some(asked) = self.nodes.ledger.answered(home, id, outcome.is_err()) else { return };
        if let Err(refusal) = &outcome {
            self.world.trace_node("refusal", home, format_args!("{asked:?}: {refusal}"));
        }
        match (asked, outcome) {
            (Asked::Program(program), Ok(Answer::Client(client))) => self.attached(program, client),
            (Asked::Checker, Ok(Answer::Client(client))) => self.turn.checker = Some(client),
            (Asked::Command(port), Err(refusal)) => self.refused(port, refusal.to_string()),
            (Asked::Device(node), Ok(Answer::Device(device))) => self.nodes.set_name(node, device),
            (Asked::Removal, Ok(Answer::Removed(account))) => self.world.observers.past.bury(&account),
            (Asked::Vm(node), outcome) => self.vm_answered(node, outcome),
            _ => {}
        }
    }
}
