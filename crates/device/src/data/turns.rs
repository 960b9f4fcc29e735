//! Turns at the inputs of a crossbar that sends few packets at once from each.
//!
//! An output that looks for a packet while the input of the next one is busy passes it over. Without a memory the packet
//! could wait for ever: if the output is busy whenever the input is free, and both keep step, they never meet. So the
//! output *claims* the input, and what the input may send next is kept for it until the output looks again, which is no
//! later than a packet's time on its link. Outputs that claim an input while others do have their turn after them: the
//! claims of one round are all met, in whatever order the outputs are free, before those of the next round count.
//!
//! With scarce credit it could come each time that the input is busy. So what goes before the packet that is passed over
//! leaves it its credit.
//!
//! An output that has had nothing else to send, and waits for an input of this round, goes on waiting when another lane gets
//! credit: a packet of that lane would keep the input waiting for it.
//!
//! An output has one claim at most, on the input of the packet that VL arbitration would choose. The claim goes when it is
//! met, and when that packet is no longer the first of its lane, or has no credit.

use weft_machine::Time;
use weft_wire::{PortNum, VirtualLane};

use super::DataPath;
use super::index::{LaneSet, PerPort, QueueIndex};

/// The claims of a device's outputs on its inputs; none where inputs have no limit.
#[derive(Debug, Default)]
pub(super) struct Turns(PerPort<Turn>);

/// A port's claims: of others on it as an input, and its own as an output.
#[derive(Clone, Copy, Debug, Default)]
struct Turn {
    /// Claims of this round, and of the next one. There are none of the next one without one of this round.
    now: u8,
    next: u8,
    /// Which of two rounds this one is.
    round: bool,
    /// The claimed input, its round, and the lane of the packet.
    claimed: Option<PortNum>,
    claimed_round: bool,
    lane: VirtualLane,
    /// Whether it had nothing else to send when it last looked.
    idle: bool,
}

impl Turns {
    pub(super) fn new(ports: usize) -> Self {
        Self(PerPort::of(Turn::default(), ports))
    }

    #[inline]
    pub(super) fn is_unclaimed(&self, input: PortNum) -> bool {
        self.0[input].now == 0
    }

    /// Whether an output may take a packet from an input that has claims, and `free` packets of which may be sent.
    pub(super) fn allow(&self, input: PortNum, output: PortNum, free: usize) -> bool {
        let (turn, own) = (&self.0[input], &self.0[output]);
        own.claimed == Some(input) && own.claimed_round == turn.round || free > usize::from(turn.now)
    }

    #[inline]
    pub(super) fn has_claim(&self, output: PortNum) -> bool {
        self.0.get(output).is_some_and(|turn| turn.claimed.is_some())
    }

    fn claim(&mut self, output: PortNum, input: PortNum, lane: VirtualLane) {
        let turn = &mut self.0[input];
        let later = turn.now > 0;
        let round = turn.round != later;
        *(if later { &mut turn.next } else { &mut turn.now }) += 1;
        let own = &mut self.0[output];
        (own.claimed, own.claimed_round, own.lane) = (Some(input), round, lane);
    }

    /// An output has no claim any more: the input that it was on.
    fn release(&mut self, output: PortNum) -> Option<PortNum> {
        let own = self.0.get_mut(output)?;
        let (input, round) = (own.claimed.take()?, own.claimed_round);
        let turn = &mut self.0[input];
        *(if round == turn.round { &mut turn.now } else { &mut turn.next }) -= 1;
        if turn.now == 0 && turn.next > 0 {
            (turn.now, turn.next, turn.round) = (turn.next, 0, !turn.round);
        }
        Some(input)
    }
}

impl DataPath {
    /// Of the lanes in `ready`, with credit, those in `sendable` have heads that their inputs may send, the only one in the
    /// queue `sole`. Returns what may have its turn, which is one packet alone if it is that of the output's claim, and
    /// remembers what is passed over.
    pub(super) fn claim_turn(
        &mut self,
        at: Time,
        output: PortNum,
        ready: LaneSet,
        sendable: LaneSet,
        sole: QueueIndex,
    ) -> (LaneSet, QueueIndex) {
        if sendable.is_empty() {
            self.claim_first(at, output, ready);
            self.crossing.turns.0[output].idle = true;
            self.wait_for_inputs(at, output, ready);
            return (LaneSet::EMPTY, QueueIndex::NONE);
        }
        if let Some((own, first)) = self.standing_claim(output, ready) {
            let next = self.first_sendable(at, output, own.lane);
            if next == first {
                return (LaneSet::of(own.lane), first);
            }
            // It has waited already, and other lanes that have credit now would keep both it and the input waiting.
            let input = self.queues[first].input;
            if own.idle && next == QueueIndex::NONE && own.claimed_round == self.crossing.turns.0[input].round
            {
                self.wait_for_inputs(at, output, ready);
                return (LaneSet::EMPTY, QueueIndex::NONE);
            }
        }
        self.crossing.turns.0[output].idle = false;
        self.claim_first(at, output, ready);
        (sendable, sole)
    }

    /// An output's claim that still waits, and the first queue of its lane: the lane is one of `ready`, and that queue is the
    /// claimed input's.
    fn standing_claim(&self, output: PortNum, ready: LaneSet) -> Option<(Turn, QueueIndex)> {
        let own = self.crossing.turns.0[output];
        if own.claimed.is_none() || !ready.contains(own.lane) {
            return None;
        }
        let first = self.out_lanes[self.index(output, own.lane)].first;
        (Some(self.queues[first].input) == own.claimed).then_some((own, first))
    }

    /// Claims the input of the packet whose turn it would be, unless another claim still waits.
    fn claim_first(&mut self, at: Time, output: PortNum, ready: LaneSet) {
        if self.standing_claim(output, ready).is_some() {
            return;
        }
        self.release_claim(output);
        let lane = self.outs[output].arbiter.would_pick(ready);
        let first = self.out_lanes[self.index(output, lane)].first;
        if self.first_sendable(at, output, lane) != first {
            let input = self.queues[first].input;
            self.crossing.turns.claim(output, input, lane);
        }
    }

    /// A packet of this input crosses to an output, whose claim on it is met.
    #[inline]
    pub(super) fn claim_met(&mut self, output: PortNum, input: PortNum) {
        if self.crossing.turns.0[output].claimed == Some(input) {
            self.release_claim(output);
        }
    }

    /// The first of a lane has gone, or has no credit: it has no claim.
    #[inline]
    pub(super) fn claim_lapses(&mut self, output: PortNum, lane: VirtualLane) {
        if self.crossing.turns.has_claim(output) && self.crossing.turns.0[output].lane == lane {
            self.release_claim(output);
        }
    }

    pub(super) fn release_claim(&mut self, output: PortNum) {
        if let Some(input) = self.crossing.turns.release(output) {
            self.wake_blocked(input);
        }
    }
}
