//! One node in hand: it is given something, and what it then wants is done.

use weft_machine::{Machine, Time, Timer};
use weft_node::{Answer, Frame, Input, Node, NodeTimer, Output, PortId, Refusal, RequestId, Taker, ToHost};
use weft_topology::{NodeIndex, PortRef};
use weft_wire::{DataPacket, ServiceLevel};

use super::{ASLEEP, Simulation};
use crate::event::{Event, Rare};
use crate::ledger::Asked;

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
        simulation.for_load(simulation.port_of(*home, at), what);
        true
    }
}

impl Taker for InHand<'_> {
    #[inline(always)]
    fn transmit(&mut self, at: PortId, frame: &Frame) -> bool {
        let Self(simulation, home) = self;
        simulation.recordings.is_none() && simulation.transmit_often(simulation.port_of(*home, at), frame)
    }

    #[inline(always)]
    fn injected(&mut self, at: PortId, service_level: ServiceLevel, packets: u16) -> bool {
        self.0.recordings.is_none() && self.hears(at, ToHost::Injected { service_level, packets })
    }

    #[inline(always)]
    fn accept(&mut self, at: PortId, packet: &DataPacket) -> bool {
        self.0.recordings.is_none() && self.hears(at, ToHost::Accept(*packet))
    }
}

impl Simulation {
    /// Feeds the node of a device and does what it wants.
    pub(crate) fn feed(&mut self, device: NodeIndex, input: Input) {
        let index = self.home(device);
        if self.recordings.is_some() {
            self.fed(index, &input);
        }
        let Some(mut node) = self.take_node(index) else { return };
        node.handle_input(self.now, input);
        self.was_fed(index, node);
    }

    /// Feeds a node a frame, which happens most.
    #[inline(never)]
    pub(super) fn frame_arrives(&mut self, to: PortRef, frame: Frame) {
        if self.options.bug.is_some() && self.is_swallowed(to, &frame) {
            return;
        }
        let (index, at) = (self.home(to.node), self.at(to));
        if self.recordings.is_some() {
            self.fed(index, &Input::Arrived { at, frame: frame.clone() });
        }
        let Some(mut node) = self.take_node(index) else { return };
        node.handle_input(self.now, Input::Arrived { at, frame });
        self.was_fed(index, node);
    }

    pub(super) fn wake_node(&mut self, index: NodeIndex) {
        let Some(wake) = self.wakes.get_mut(index.index()) else { return };
        // Of several wake-ups that were asked for only the earliest is meant.
        if *wake != self.now {
            return;
        }
        *wake = ASLEEP;
        if let Some(recordings) = &mut self.recordings {
            recordings.woken(index, self.now);
        }
        let Some(mut node) = self.take_node(index) else { return };
        let due = if cfg!(debug_assertions) { node.next_timer() } else { None };
        node.handle_timeout(self.now);
        self.was_fed(index, node);
        self.has_moved_on(index, due);
    }

    /// A node that was woken has done what it wanted to be woken for: it does not want to be woken again at once for the same.
    fn has_moved_on(&self, index: NodeIndex, due: Option<Timer<NodeTimer>>) {
        let timer = || self.slots[index.index()].node.as_ref().and_then(|node| node.next_timer());
        debug_assert!(
            timer().is_none_or(|timer| timer.at > self.now || Some(timer) != due)
                || self.slots[index.index()].node.as_ref().is_some_and(|node| node.is_unfinished()),
            "{} wakes without progress for {:?}",
            self.fabric.node(index).id,
            timer()
        );
    }

    /// Lets a load answer, and does what the node then wants.
    pub(super) fn go_on(&mut self, device: NodeIndex) {
        let index = self.home(device);
        if let Some(node) = self.take_node(index) {
            self.was_fed(index, node);
        }
    }

    /// A node that is on, with the desk in its hands. [`put_back`](Self::put_back) it.
    #[inline]
    fn take_node(&mut self, index: NodeIndex) -> Option<Box<Node>> {
        let mut node = self.slots.get_mut(index.index())?.node.take()?;
        node.exchange_desk(&mut self.desk);
        Some(node)
    }

    #[inline]
    fn put_back(&mut self, index: NodeIndex, node: Box<Node>) {
        self.slots[index.index()].node = Some(node);
    }

    /// Does what the node in hand wants, and puts it back without the desk.
    #[inline(always)]
    fn was_fed(&mut self, index: NodeIndex, mut node: Box<Node>) {
        // A packet that joins a queue, which most do, is all that happens.
        if !node.is_at_rest() || !self.for_load.is_empty() {
            let Some(settled) = self.settle(index, node) else { return };
            node = settled;
        }
        node.exchange_desk(&mut self.desk);
        let wake = &mut self.wakes[index.index()];
        if let Some(due) = node.poll_timeout().map(|due| due.max(self.now)).filter(|due| due < wake) {
            *wake = due;
            self.queue.push(due, Event::WakeNode(index));
        }
        self.put_back(index, node);
    }

    /// A drain that ended at its bound goes on a while later. Whatever the node is given meanwhile ends at the bound as well, and
    /// one wake-up does for all.
    fn pause(&mut self, node: NodeIndex) {
        if !std::mem::replace(&mut self.slots[node.index()].goes_on, true) {
            self.statistics.host_pauses += 1;
            self.push_rare(self.now + PAUSE, Rare::GoOn(node));
        }
    }

    pub(super) fn node_goes_on(&mut self, node: NodeIndex) {
        self.slots[node.index()].goes_on = false;
        self.feed(node, Input::Continue);
    }

    /// Does what the node in hand wants, and lets a load answer it, until neither wants anything any more.
    #[inline(never)]
    fn settle(&mut self, index: NodeIndex, mut node: Box<Node>) -> Option<Box<Node>> {
        let mut rounds = 0;
        loop {
            while let Some(output) = node.drain(&mut InHand(self, index)) {
                self.put_back(index, node);
                self.output(index, output);
                node = self.slots[index.index()].node.take()?;
            }
            if self.unsent.is_empty() && self.loaded.is_empty() && self.for_load.is_empty() {
                break;
            }
            self.answer(index, &mut node, &mut rounds);
        }
        if node.is_unfinished() {
            self.pause(index);
        }
        Some(node)
    }

    /// What comes next when the node in hand wants nothing.
    #[inline(never)]
    fn answer(&mut self, index: NodeIndex, node: &mut Node, rounds: &mut u32) {
        let input = if let Some((at, unsent)) = self.unsent.pop_front() {
            Input::Unsent { at, unsent }
        } else if let Some(packet) = self.loaded.pop_front() {
            Input::Inject { at: self.at(self.loaded_port), packet }
        } else if let Some((port, what)) = self.for_load.pop_front() {
            *rounds += 1;
            if *rounds < ROUNDS_MAX {
                self.load_hears(port, what);
            } else {
                self.push_rare(self.now + PAUSE, Rare::ToLoad(port, what));
                self.statistics.host_pauses += 1;
            }
            return;
        } else {
            return;
        };
        if self.recordings.is_some() {
            self.fed(index, &input);
        }
        node.handle_input(self.now, input);
    }

    #[inline(never)]
    fn output(&mut self, home: NodeIndex, output: Output) {
        if self.recordings.is_some() {
            self.said(home, &output);
        }
        match output {
            Output::Transmit { at, frame } => self.transmit(self.port_of(home, at), frame),
            Output::ToHost { at, what } => self.for_load(self.port_of(home, at), what),
            Output::Deliver { client, mad } => self.deliver(self.member(home, client.device), client, mad),
            Output::PortChanged { client, up } => {
                self.port_changed(self.member(home, client.device), client, up);
            }
            Output::SetLink { at, enabled, parameters } => {
                self.set_link(self.port_of(home, at), enabled, parameters);
            }
            Output::Overrun { at, .. } => {
                self.statistics.credit_overruns += 1;
                self.begin_anew(self.port_of(home, at));
            }
            Output::Event { device, event } => self.device_event(self.member(home, device), event),
            Output::Answer { id, outcome } => self.answered(home, id, outcome),
            Output::DeliverThroughLayer { client, reading } => {
                self.readings.push((self.member(home, client.device), *reading));
            }
            Output::Detached { client } => self.detached(self.member(home, client.device), client),
            Output::LinkUp { at } => self.inner_link(self.port_of(home, at), "up"),
            Output::LinkDown { at, .. } => self.inner_link(self.port_of(home, at), "down"),
            Output::SendRefused { .. }
            | Output::HostRefused { .. }
            | Output::Crossed { .. }
            | Output::CableFull { .. } => {}
        }
    }

    /// A cable within a node came up or went down, as one of its ends sees it.
    fn inner_link(&mut self, at: PortRef, kind: &str) {
        self.disturb();
        self.trace_link(kind, at);
    }

    /// Something for who stands in for a host.
    #[inline]
    fn for_load(&mut self, port: PortRef, what: ToHost) {
        if self.load.is_some() {
            self.for_load.push_back((port, what));
        }
    }

    fn answered(&mut self, home: NodeIndex, id: RequestId, outcome: Result<Answer, Refusal>) {
        let Some(asked) = self.ledger.answered(home, id, outcome.is_err()) else { return };
        if let Err(refusal) = &outcome
            && self.trace.is_on()
        {
            let id = &self.fabric.node(home).id;
            let what = format_args!("{asked:?}: {refusal}");
            self.trace.line(self.now, "refusal", format_args!("{id:<24}"), what);
        }
        match (asked, outcome) {
            (Asked::Program(program), Ok(Answer::Client(client))) => self.attached(program, client),
            (Asked::Checker, Ok(Answer::Client(client))) => self.checker = Some(client),
            (Asked::Command(port), Err(refusal)) => self.refused(port, refusal.to_string()),
            (Asked::Device(node), Ok(Answer::Device(device))) => {
                self.device_slots[node.index()].device = device;
            }
            (Asked::Removal, Ok(Answer::Removed(account))) => self.past.bury(&account),
            (Asked::Vm(node), outcome) => self.vm_answered(node, outcome),
            _ => {}
        }
    }
}
