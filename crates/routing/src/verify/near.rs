//! Blocks of LIDs whose packets come nearer with every channel: all arrive by the fewest channels, and none goes round in a loop.
//!
//! That is one look at each entry. Whoever is further away sends before those that are nearer, to all LIDs on one switch alike, so no
//! LID needs an order of its own (`order.rs`). Entries are laid out by switch as tables are, and not by LID.

use std::ops::Range;

use crate::tables::{ForwardingTable, Routes};

use super::block::{Block, UNREACHED, leads};
use super::dependencies::Dependencies;
use super::flow::Sink;
use super::ground::{ARRIVES, End, Ground, LOST, is_channel};
use super::report::Report;
use super::sources::Sent;

/// Room for a block.
#[derive(Debug, Default)]
pub(super) struct Near {
    /// By switch, then by LID: the exit.
    exits: Vec<u32>,
    /// By switch, then by LID: the lanes by which it sends.
    lanes: Vec<u16>,
    /// LIDs, by place, that follow each other and are on one switch.
    runs: Vec<Range<usize>>,
    /// By number of channels to the switch at hand: how many switches.
    rings: Vec<u32>,
    /// The switches that are connected with it, the furthest first.
    order: Vec<u32>,
    width: usize,
}

impl Near {
    /// Reads the entries for the LIDs of `ends`, to which `block` has measured the least numbers of channels. Tells whether
    /// each brings packets nearer, and leads nowhere where cables do not.
    pub(super) fn read(&mut self, ground: &Ground<'_>, routes: &Routes, ends: &[End], block: &Block) -> bool {
        self.width = ends.len();
        self.runs.clear();
        for run in ends.chunk_by(|a, b| a.switch == b.switch) {
            let first = self.runs.last().map_or(0, |last| last.end);
            self.runs.push(first..first + run.len());
        }
        self.exits.clear();
        self.exits.reserve(ground.len() * ends.len());
        let none = ForwardingTable::default();
        for (switch, node) in (0..).zip(&ground.graph.nodes) {
            let table = routes.table(*node).unwrap_or(&none);
            let exits = ground.exits(switch);
            for run in &self.runs {
                let least = block.least(run.start);
                let here = least[switch as usize];
                for end in &ends[run.clone()] {
                    let exit = leads(exits, switch, end, table.port(end.lid));
                    let is_sound = match exit {
                        ARRIVES => true,
                        LOST => here == UNREACHED,
                        // One more than `UNREACHED` is 0, which is further from nothing.
                        channel => {
                            here != 0 && least[ground.to[channel as usize] as usize].wrapping_add(1) == here
                        }
                    };
                    if !is_sound {
                        return false;
                    }
                    self.exits.push(exit);
                }
            }
        }
        true
    }

    /// Counts those who arrive, and writes down which channels wait for which, if it is known by which lanes end ports send.
    pub(super) fn follow(
        &mut self,
        ground: &Ground<'_>,
        block: &Block,
        sent: Option<(&Sent, &Dependencies<'_>)>,
        report: &mut Report,
    ) {
        self.lanes.clear();
        if let Some((sent, _)) = sent {
            self.lanes.resize(self.exits.len(), 0);
            for place in 0..self.width {
                let lanes = self.lanes.iter_mut().skip(place).step_by(self.width);
                lanes.zip(sent.lanes(place)).for_each(|(lanes, sent)| *lanes = *sent);
            }
        }
        for run in std::mem::take(&mut self.runs) {
            self.sort(block.least(run.start));
            report.disconnected += (run.len() * (ground.len() - self.order.len())) as u64;
            for (hops, switches) in (0..).zip(&self.rings) {
                report.arrivals(hops, run.len() as u64 * u64::from(*switches));
            }
            if sent.is_some() {
                self.send(ground, run);
            }
        }
        if let Some((_, mut dependencies)) = sent {
            self.tell(ground, &mut dependencies);
        }
    }

    /// Puts the switches in order (counting sort).
    fn sort(&mut self, least: &[u16]) {
        let is_reached = |hops: &&u16| **hops != UNREACHED;
        let furthest = least.iter().filter(is_reached).max().copied().unwrap_or(0);
        self.rings.clear();
        self.rings.resize(usize::from(furthest) + 1, 0);
        least.iter().filter(is_reached).for_each(|hops| self.rings[usize::from(*hops)] += 1);
        let mut free: Vec<u32> = self
            .rings
            .iter()
            .rev()
            .scan(0, |first, count| {
                let here = *first;
                *first += count;
                Some(here)
            })
            .collect();
        free.reverse();
        self.order.clear();
        self.order.resize(self.rings.iter().sum::<u32>() as usize, 0);
        for (switch, hops) in (0..).zip(least).filter(|(_, hops)| **hops != UNREACHED) {
            let place = &mut free[usize::from(*hops)];
            self.order[*place as usize] = switch;
            *place += 1;
        }
    }

    /// Adds the lanes of each switch to those of the next.
    fn send(&mut self, ground: &Ground<'_>, run: Range<usize>) {
        for switch in &self.order {
            let row = *switch as usize * self.width;
            for place in run.clone() {
                let exit = self.exits[row + place];
                if is_channel(exit) {
                    let lanes = self.lanes[row + place];
                    self.lanes[ground.to[exit as usize] as usize * self.width + place] |= lanes;
                }
            }
        }
    }

    /// Says which channels carry packets, and what those want next.
    fn tell(&self, ground: &Ground<'_>, sink: &mut impl Sink) {
        let rows = self.exits.chunks_exact(self.width).zip(self.lanes.chunks_exact(self.width));
        for (exits, lanes) in rows {
            for (place, (exit, lanes)) in exits.iter().zip(lanes).enumerate() {
                if !is_channel(*exit) || *lanes == 0 {
                    continue;
                }
                sink.carry(*exit, *lanes);
                let wanted = self.exits[ground.to[*exit as usize] as usize * self.width + place];
                if is_channel(wanted) {
                    sink.depend(*exit, *lanes, wanted, *lanes);
                }
            }
        }
    }
}
