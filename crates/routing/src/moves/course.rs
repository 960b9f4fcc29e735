//! Ways that packets for one LID may take while switches are written round by round.
//!
//! A switch has its old row until its write is sent in round r and its new one once that is acknowledged; in round r it may have
//! either. What was sent by a row travels on at leisure: it may find any later row at the next switch.

use std::collections::VecDeque;

use super::network::Network;
use super::waits::Wait;
use crate::verify::ground::{LOST, is_channel};

/// Never.
const NEVER: u32 = u32::MAX;

/// Where a row leads, and in which rounds it may be in force: `from` is that in which it is written, `to` that in which it is
/// overwritten.
#[derive(Clone, Copy, Debug)]
pub(super) struct State {
    pub(super) from: u32,
    pub(super) to: u32,
    pub(super) exit: u32,
    /// Whether the row is one of the meantime, such as port 255 that drops on purpose.
    pub(super) is_between: bool,
}

/// All rows for one LID.
#[derive(Debug)]
pub(super) struct Course<'a> {
    network: &'a Network,
    /// By switch: where its row leads before.
    standing: Vec<State>,
    /// By switch: its place in `written`, or [`NEVER`].
    slots: Vec<u32>,
    /// The switches that are written, in order.
    written: Vec<u32>,
    /// By place in `written`: where its rows begin in `changing`; and at last where all end.
    first: Vec<u32>,
    changing: Vec<State>,
    rounds: u32,
    /// Channels with packets that rows of earlier plans have sent.
    stale: Vec<u32>,
}

impl<'a> Course<'a> {
    /// `standing` are the exits before; `writes` are the switches, rounds and exits that are written, in order.
    pub(super) fn new(
        network: &'a Network,
        standing: &[u32],
        writes: &[(u32, u32, u32)],
        rounds: u32,
    ) -> Self {
        let state = |from, exit| State { from, to: NEVER, exit, is_between: false };
        let standing: Vec<State> = standing.iter().map(|exit| state(0, *exit)).collect();
        let mut slots = vec![NEVER; standing.len()];
        let (mut written, mut first, mut changing) = (Vec::new(), vec![0], Vec::new());
        for writes in writes.chunk_by(|(one, ..), (other, ..)| one == other) {
            let switch = writes[0].0;
            slots[switch as usize] = written.len() as u32;
            written.push(switch);
            let from = changing.len();
            changing.push(standing[switch as usize]);
            for (_, round, exit) in writes {
                changing.last_mut().into_iter().for_each(|last: &mut State| last.to = *round);
                changing.push(state(*round, *exit));
            }
            let last = changing.len() - 1;
            changing[from + 1..last].iter_mut().for_each(|state| state.is_between = true);
            first.push(changing.len() as u32);
        }
        Self { network, standing, slots, written, first, changing, rounds, stale: Vec::new() }
    }

    /// Adds packets that rows of earlier plans have sent: they come out of these channels at any time.
    pub(super) fn expect_stale(&mut self, stale: Vec<u32>) {
        self.stale = stale;
    }

    /// The switches that those come to.
    pub(super) fn stale_ends(&self) -> impl Iterator<Item = u32> {
        self.stale.iter().map(|channel| self.network.to[*channel as usize])
    }

    /// Says which of the switches will be written again: a row that drops there is one of the meantime.
    pub(super) fn expect_more(&mut self, is_late: impl Fn(u32) -> bool) {
        for (switch, end) in self.written.iter().zip(&self.first[1..]) {
            let last = &mut self.changing[*end as usize - 1];
            last.is_between |= last.exit == LOST && is_late(*switch);
        }
    }

    /// The rows of a switch, the oldest first.
    fn states(&self, switch: u32) -> &[State] {
        let slot = self.slots[switch as usize];
        if slot == NEVER {
            return std::slice::from_ref(&self.standing[switch as usize]);
        }
        self.changed(slot as usize)
    }

    /// The same of one that is written.
    fn changed(&self, slot: usize) -> &[State] {
        &self.changing[self.first[slot] as usize..self.first[slot + 1] as usize]
    }

    /// The switches that may begin a loop in a round that was in none before: in later rounds than the first, those that are written
    /// then. A loop that passes none of them was there in the round before.
    fn starts(&self, round: u32) -> impl Iterator<Item = u32> {
        let changes = move |(slot, _): &(usize, &u32)| {
            round == 0 || self.changed(*slot).iter().skip(1).any(|state| state.from == round)
        };
        self.written.iter().enumerate().filter(changes).map(|(_, switch)| *switch)
    }

    /// Packets that go round in a loop for as long as a round lasts: the round, from 0, and the channels. A loop passes a
    /// switch that is written, or it is there before and after.
    pub(super) fn find_loop(&self) -> Option<(u32, Vec<u32>)> {
        // By switch: the round, twice and one more; and another one more once it leads to no loop.
        let mut seen = vec![0u32; self.standing.len()];
        // Switches, each with the number of the row that is being followed.
        let mut way: Vec<(u32, usize)> = Vec::new();
        for round in 0..self.rounds {
            let entered = 2 * round + 1;
            for start in self.starts(round) {
                if seen[start as usize] >= entered {
                    continue;
                }
                seen[start as usize] = entered;
                way.push((start, 0));
                while let Some((switch, row)) = way.last_mut() {
                    let Some(channel) = self.channel(*switch, round, *row) else {
                        seen[*switch as usize] = entered + 1;
                        way.pop();
                        continue;
                    };
                    *row += 1;
                    let next = self.network.to[channel as usize];
                    if seen[next as usize] < entered {
                        seen[next as usize] = entered;
                        way.push((next, 0));
                    } else if seen[next as usize] == entered {
                        let from = way.iter().position(|(switch, _)| *switch == next)?;
                        let sent = |(switch, row): &(u32, usize)| self.channel(*switch, round, row - 1);
                        return Some((round, way[from..].iter().filter_map(sent).collect()));
                    }
                }
            }
        }
        None
    }

    /// The channels by which a switch may send while a round is under way, one by one.
    fn channel(&self, switch: u32, round: u32, row: usize) -> Option<u32> {
        let now = |state: &State| state.from <= round && round <= state.to && is_channel(state.exit);
        self.states(switch).iter().filter(|state| now(state)).nth(row).map(|state| state.exit)
    }

    /// By switch: the first round in which packets of the sources are there.
    pub(super) fn earliest(&self, sources: impl Iterator<Item = u32>) -> Vec<u32> {
        self.earliest_from(0, sources)
    }

    /// The same of packets that are sent once all is written.
    pub(super) fn earliest_after(&self, sources: impl Iterator<Item = u32>) -> Vec<u32> {
        self.earliest_from(self.rounds, sources)
    }

    fn earliest_from(&self, round: u32, sources: impl Iterator<Item = u32>) -> Vec<u32> {
        let mut earliest = vec![NEVER; self.standing.len()];
        let mut todo = VecDeque::new();
        for source in sources {
            earliest[source as usize] = round;
            todo.push_back(source);
        }
        while let Some(switch) = todo.pop_front() {
            let here = earliest[switch as usize];
            let sends = |state: &&State| is_channel(state.exit) && here <= state.to;
            for state in self.states(switch).iter().filter(sends) {
                let next = self.network.to[state.exit as usize] as usize;
                let sent = here.max(state.from);
                if sent < earliest[next] {
                    earliest[next] = sent;
                    todo.push_back(next as u32);
                }
            }
        }
        earliest
    }

    /// A switch to which packets come that has no row for them, before it is written or for good.
    pub(super) fn find_lost(&self, earliest: &[u32]) -> Option<u32> {
        (0..self.standing.len() as u32).find(|switch| {
            let here = earliest[*switch as usize];
            let lost = |state: &State| !state.is_between && state.exit == LOST && here <= state.to;
            here != NEVER && self.states(*switch).iter().any(lost)
        })
    }

    /// Tells what packets on a lane hold and want, and whether they do so still once all is written and they are alone.
    pub(super) fn waits(&self, earliest: &[u32], lane: u8, mut tell: impl FnMut(Wait, bool)) {
        for held in self.stale.iter().copied() {
            let next = self.states(self.network.to[held as usize]).iter();
            for wanted in next.filter(|wanted| is_channel(wanted.exit)) {
                tell(Wait { lane, held, wanted: wanted.exit }, false);
            }
        }
        for switch in 0..self.standing.len() as u32 {
            let here = earliest[switch as usize];
            if here == NEVER {
                continue;
            }
            for state in self.states(switch).iter().filter(|state| is_channel(state.exit) && here <= state.to)
            {
                let sent = here.max(state.from);
                let next = self.network.to[state.exit as usize];
                let meets = |wanted: &&State| is_channel(wanted.exit) && sent <= wanted.to;
                for wanted in self.states(next).iter().filter(meets) {
                    let lasts = state.to == NEVER && wanted.to == NEVER;
                    tell(Wait { lane, held: state.exit, wanted: wanted.exit }, lasts);
                }
            }
        }
    }
}
