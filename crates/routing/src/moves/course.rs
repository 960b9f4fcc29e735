//! Where packets for one LID may go while switches are written round by round.
//!
//! A switch has its old row until its write is sent in round r and its new one once that is acknowledged; in round r it may have
//! either. What was sent by a row travels on at leisure: it may find any later row at the next switch.

use std::collections::{BTreeMap, VecDeque};

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
    /// By switch that is never written: where its row leads.
    standing: Vec<u32>,
    /// By switch: its place in `changing`.
    slots: Vec<u32>,
    changing: Vec<Vec<State>>,
    written: Vec<u32>,
    rounds: u32,
}

impl<'a> Course<'a> {
    /// `standing` are the exits before; `writes` gives by switch the rounds and the exits that are written, in order.
    pub(super) fn new(
        network: &'a Network,
        standing: Vec<u32>,
        writes: &BTreeMap<u32, Vec<(u32, u32)>>,
        rounds: u32,
    ) -> Self {
        let mut slots = vec![NEVER; standing.len()];
        let mut changing = Vec::with_capacity(writes.len());
        for (slot, (switch, writes)) in (0..).zip(writes) {
            slots[*switch as usize] = slot;
            let state = |from, exit| State { from, to: NEVER, exit, is_between: false };
            let mut states = vec![state(0, standing[*switch as usize])];
            for (round, exit) in writes {
                states.last_mut().into_iter().for_each(|last| last.to = *round);
                states.push(state(*round, *exit));
            }
            let last = states.len() - 1;
            (1..last).for_each(|at| states[at].is_between = true);
            changing.push(states);
        }
        Self { network, standing, slots, changing, written: writes.keys().copied().collect(), rounds }
    }

    /// Says which of the switches will be written again: a row that drops there is one of the meantime.
    pub(super) fn expect_more(&mut self, is_late: impl Fn(u32) -> bool) {
        for (switch, states) in self.written.iter().zip(&mut self.changing) {
            let last = states.last_mut().filter(|last| last.exit == LOST && is_late(*switch));
            last.into_iter().for_each(|last| last.is_between = true);
        }
    }

    /// The rows of a switch, the oldest first.
    fn states(&self, switch: u32) -> impl Iterator<Item = State> + '_ {
        let slot = self.slots[switch as usize];
        let changing = self.changing.get(slot as usize).map_or(&[][..], Vec::as_slice);
        let exit = self.standing[switch as usize];
        let standing = State { from: 0, to: NEVER, exit, is_between: false };
        changing.iter().copied().chain((slot == NEVER).then_some(standing))
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
            for start in &self.written {
                if seen[*start as usize] >= entered {
                    continue;
                }
                seen[*start as usize] = entered;
                way.push((*start, 0));
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
        self.states(switch).filter(now).nth(row).map(|state| state.exit)
    }

    /// By switch: the first round in which packets of the sources are there.
    pub(super) fn earliest(&self, sources: impl Iterator<Item = u32>) -> Vec<u32> {
        let mut earliest = vec![NEVER; self.standing.len()];
        let mut todo = VecDeque::new();
        for source in sources {
            earliest[source as usize] = 0;
            todo.push_back(source);
        }
        while let Some(switch) = todo.pop_front() {
            let here = earliest[switch as usize];
            for state in self.states(switch).filter(|state| is_channel(state.exit) && here <= state.to) {
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
            let lost = |state: State| !state.is_between && state.exit == LOST && here <= state.to;
            here != NEVER && self.states(*switch).any(lost)
        })
    }

    /// Tells what packets on a lane hold and want, and whether they do so still once all is written and they are alone.
    pub(super) fn waits(&self, earliest: &[u32], lane: u8, mut tell: impl FnMut(Wait, bool)) {
        for switch in 0..self.standing.len() as u32 {
            let here = earliest[switch as usize];
            if here == NEVER {
                continue;
            }
            for state in self.states(switch).filter(|state| is_channel(state.exit) && here <= state.to) {
                let sent = here.max(state.from);
                let next = self.network.to[state.exit as usize];
                for wanted in self.states(next).filter(|wanted| is_channel(wanted.exit) && sent <= wanted.to)
                {
                    let lasts = state.to == NEVER && wanted.to == NEVER;
                    tell(Wait { lane, held: state.exit, wanted: wanted.exit }, lasts);
                }
            }
        }
    }
}
