//! Turns at the inputs of a crossbar that sends few packets at once from each.
//!
//! An output that looks for a packet while the input of the next one is busy passes it over. Without a memory the packet
//! could wait for ever: if the output is busy whenever the input is free, and both keep step, they never meet. So the
//! output *claims* the input, and what the input may send next is kept for it until the output looks again, which is no
//! later than a packet's time on its link. Outputs that claim an input while others do have their turn after them: the
//! claims of one round are all met, in whatever order the outputs are free, before those of the next round count.
//!
//! Where credit is scarce, it could come each time that the input is busy. So what goes before the packet that is passed over
//! leaves it its credit.
//!
//! An output that has had nothing else to send, and waits for an input of this round, goes on waiting when another lane gets
//! credit: a packet of that lane would keep the input waiting for it.
//!
//! An output has one claim at most, on the input of the packet that VL arbitration would choose. The claim goes when it is
//! met, and when that packet is no longer the first of its lane, or has no credit.

use weft_machine::Time;

use super::DataPath;
use super::buffer::NIL;

/// No input.
const NONE: u8 = u8::MAX;

/// The claims of a device's outputs on its inputs; none where inputs have no limit.
#[derive(Debug, Default)]
pub(super) struct Turns(Box<[Turn]>);

/// A port's claims: of others on it as an input, and its own as an output.
#[derive(Clone, Copy, Debug)]
struct Turn {
    /// Claims of this round, and of the next one. There are none of the next one without one of this round.
    now: u8,
    next: u8,
    /// Which of two rounds this one is.
    round: bool,
    /// The claimed input or [`NONE`], its round, and the lane of the packet.
    claimed: u8,
    claimed_round: bool,
    lane: u8,
    /// Whether it had nothing else to send when it last looked.
    idle: bool,
}

impl Turns {
    pub(super) fn new(ports: usize) -> Self {
        let turn =
            Turn { now: 0, next: 0, round: false, claimed: NONE, claimed_round: false, lane: 0, idle: false };
        Self(vec![turn; ports].into())
    }

    #[inline]
    pub(super) fn is_unclaimed(&self, input: u8) -> bool {
        self.0[usize::from(input)].now == 0
    }

    /// Whether an output may take a packet from an input that has claims, and `free` packets of which may be sent.
    pub(super) fn allow(&self, input: u8, output: u8, free: usize) -> bool {
        let (turn, own) = (&self.0[usize::from(input)], &self.0[usize::from(output)]);
        own.claimed == input && own.claimed_round == turn.round || free > usize::from(turn.now)
    }

    #[inline]
    pub(super) fn has_claim(&self, output: u8) -> bool {
        self.0.get(usize::from(output)).is_some_and(|turn| turn.claimed != NONE)
    }

    fn claim(&mut self, output: u8, input: u8, lane: u8) {
        let turn = &mut self.0[usize::from(input)];
        let later = turn.now > 0;
        let round = turn.round != later;
        *(if later { &mut turn.next } else { &mut turn.now }) += 1;
        let own = &mut self.0[usize::from(output)];
        (own.claimed, own.claimed_round, own.lane) = (input, round, lane);
    }

    /// An output has no claim any more: the input that it was on.
    fn release(&mut self, output: u8) -> Option<u8> {
        let own = self.0.get_mut(usize::from(output)).filter(|turn| turn.claimed != NONE)?;
        let (input, round) = (std::mem::replace(&mut own.claimed, NONE), own.claimed_round);
        let turn = &mut self.0[usize::from(input)];
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
        output: u8,
        (ready, sendable, sole): (u16, u16, u32),
    ) -> (u16, u32) {
        if sendable == 0 {
            self.claim_first(at, output, ready);
            self.crossing.turns.0[usize::from(output)].idle = true;
            self.wait_for_inputs(at, output, ready);
            return (0, NIL);
        }
        if let Some((own, first)) = self.standing_claim(output, ready) {
            let next = self.first_sendable(at, output, own.lane);
            if next == first {
                return (1 << own.lane, first);
            }
            // It has waited already, and other lanes that have credit now would keep both it and the input waiting.
            if own.idle
                && next == NIL
                && own.claimed_round == self.crossing.turns.0[usize::from(own.claimed)].round
            {
                self.wait_for_inputs(at, output, ready);
                return (0, NIL);
            }
        }
        self.crossing.turns.0[usize::from(output)].idle = false;
        self.claim_first(at, output, ready);
        (sendable, sole)
    }

    /// An output's claim that still waits, and the first queue of its lane: the lane is one of `ready`, and that queue is the
    /// claimed input's.
    fn standing_claim(&self, output: u8, ready: u16) -> Option<(Turn, u32)> {
        let own = self.crossing.turns.0[usize::from(output)];
        if own.claimed == NONE || ready >> own.lane & 1 == 0 {
            return None;
        }
        let first = self.out_lanes[self.index(output, own.lane)].first;
        (self.queues[first as usize].input == own.claimed).then_some((own, first))
    }

    /// Claims the input of the packet whose turn it would be, unless another claim still waits.
    fn claim_first(&mut self, at: Time, output: u8, ready: u16) {
        if self.standing_claim(output, ready).is_some() {
            return;
        }
        self.release_claim(output);
        let lane = self.outs[usize::from(output)].arbiter.would_pick(ready);
        let first = self.out_lanes[self.index(output, lane)].first;
        if self.first_sendable(at, output, lane) != first {
            let input = self.queues[first as usize].input;
            self.crossing.turns.claim(output, input, lane);
        }
    }

    /// A packet of this input crosses to an output, whose claim on it is met.
    #[inline]
    pub(super) fn claim_met(&mut self, output: u8, input: u8) {
        if self.crossing.turns.0[usize::from(output)].claimed == input {
            self.release_claim(output);
        }
    }

    /// The first of a lane has gone, or has no credit: it has no claim.
    #[inline]
    pub(super) fn claim_lapses(&mut self, output: u8, lane: u8) {
        if self.crossing.turns.has_claim(output) && self.crossing.turns.0[usize::from(output)].lane == lane {
            self.release_claim(output);
        }
    }

    fn release_claim(&mut self, output: u8) {
        if let Some(input) = self.crossing.turns.release(output) {
            self.wake_blocked(usize::from(input));
        }
    }
}
