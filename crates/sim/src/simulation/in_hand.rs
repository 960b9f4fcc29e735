//! One node in hand: it is given something, and what it then wants is done.

use weft_machine::{Machine, Time};
use weft_node::{Answer, Input, Node, Output, Refusal, RequestId};
use weft_topology::{NodeIndex, PortRef};

use super::{ASLEEP, Simulation};
use crate::happening::{Happening, Rare};
use crate::ledger::Asked;

/// Who gives an adapter the next packet at the same moment whenever it refuses one would never come to an end: after
/// this number of exchanges the node goes on a while later. Hosts do not; a [`Load`](crate::Load) can.
const ROUNDS_MAX: u32 = 4096;
const PAUSE: Time = Time::from_millis(1);

impl Simulation {
    /// Feeds the node of a device and does what it wants.
    #[inline]
    pub(crate) fn feed(&mut self, device: NodeIndex, input: Input) {
        let index = self.home(device);
        if let Some(recordings) = &mut self.recordings {
            recordings.fed(index, self.now, &input);
        }
        let now = self.now;
        let Some(node) = self.lend_desk(index) else { return };
        node.handle_input(now, input);
        self.was_fed(index);
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
        let now = self.now;
        let Some(node) = self.lend_desk(index) else { return };
        node.handle_timeout(now);
        self.was_fed(index);
    }

    /// Lets a load answer, and does what the node then wants.
    pub(super) fn go_on(&mut self, device: NodeIndex) {
        let index = self.home(device);
        if self.lend_desk(index).is_some() {
            self.was_fed(index);
        }
    }

    /// A node that is on, with the desk in its hands.
    #[inline]
    fn lend_desk(&mut self, index: NodeIndex) -> Option<&mut Node> {
        let node = self.slots.get_mut(index.index())?.node.as_mut()?;
        node.exchange_desk(&mut self.desk);
        Some(node)
    }

    /// Does what the node wants that was lent the desk, and takes the desk back.
    #[inline]
    fn was_fed(&mut self, index: NodeIndex) {
        let Some(node) = &mut self.slots[index.index()].node else { return };
        // A packet that joins a queue, which most do, is all that happens.
        if node.is_at_rest() && self.for_load.is_empty() {
            node.exchange_desk(&mut self.desk);
            return self.set_wake(index);
        }
        self.settle(index);
        let Some(node) = &mut self.slots[index.index()].node else { return };
        node.exchange_desk(&mut self.desk);
        if node.is_unfinished() {
            self.pause(index);
        }
        self.set_wake(index);
    }

    /// The node is woken when it wants to be.
    #[inline]
    fn set_wake(&mut self, index: NodeIndex) {
        let Some(node) = &self.slots[index.index()].node else { return };
        let wake = &mut self.wakes[index.index()];
        if let Some(due) = node.poll_timeout().map(|due| due.max(self.now)).filter(|due| due < wake) {
            *wake = due;
            self.queue.push(due, Happening::WakeNode(index));
        }
    }

    fn pause(&mut self, node: NodeIndex) {
        self.statistics.host_pauses += 1;
        self.push_rare(self.now + PAUSE, Rare::GoOn(node));
    }

    /// Does what the node in hand wants, and lets a load answer it, until neither wants anything any more.
    #[inline]
    fn settle(&mut self, node: NodeIndex) {
        let mut rounds = 0;
        loop {
            while let Some(output) = self.next_output(node) {
                if let Some(recordings) = &mut self.recordings {
                    recordings.said(node, &output);
                }
                self.output(node, output);
            }
            let input = if let Some((at, unsent)) = self.unsent.pop_front() {
                Input::Unsent { at, unsent }
            } else if let Some(packet) = self.loaded.pop_front() {
                Input::Inject { at: self.at(self.loaded_port), packet }
            } else if let Some((port, what)) = self.for_load.pop_front() {
                rounds += 1;
                if rounds < ROUNDS_MAX {
                    self.load_hears(port, what);
                } else {
                    self.push_rare(self.now + PAUSE, Rare::ToLoad(port, what));
                    self.statistics.host_pauses += 1;
                }
                continue;
            } else {
                return;
            };
            if let Some(recordings) = &mut self.recordings {
                recordings.fed(node, self.now, &input);
            }
            if let Some(node) = &mut self.slots[node.index()].node {
                node.handle_input(self.now, input);
            }
        }
    }

    #[inline]
    fn next_output(&mut self, node: NodeIndex) -> Option<Output> {
        self.slots.get_mut(node.index())?.node.as_mut()?.poll_output()
    }

    #[inline]
    fn output(&mut self, home: NodeIndex, output: Output) {
        match output {
            Output::Transmit { at, frame } => self.transmit(self.port_of(home, at), frame),
            Output::ToHost { at, what } => {
                if self.load.is_some() {
                    self.for_load.push_back((self.port_of(home, at), what));
                }
            }
            rare => self.rare_output(home, rare),
        }
    }

    #[inline(never)]
    fn rare_output(&mut self, home: NodeIndex, output: Output) {
        match output {
            Output::Transmit { .. } | Output::ToHost { .. } => {}
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
            (Asked::Device(node), Ok(Answer::Device(device))) => self.places[node.index()].device = device,
            (Asked::Removal, Ok(Answer::Removed(account))) => self.past.bury(&account),
            _ => {}
        }
    }
}
