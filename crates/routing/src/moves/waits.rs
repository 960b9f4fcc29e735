//! Waits between channels by the tables in force, and whether more of them close a circle.

use std::collections::BTreeSet;

use super::network::Network;
use crate::verify::dependencies::{Dependencies, Edges};

/// Packets on a lane that hold one channel may want another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Wait {
    pub(super) lane: u8,
    pub(super) held: u32,
    pub(super) wanted: u32,
}

/// How many lanes there are.
const LANES: usize = 16;

/// The channel dependency graph of the tables in force (Dally and Seitz 1987), and what plans have added to it since.
#[derive(Debug)]
pub(super) struct Waits {
    edges: Edges,
    /// By lane, where packets are on it: for each channel the most channels that packets may hold one after the other before it.
    levels: [Vec<u32>; LANES],
    /// The lanes on which channels wait for each other in a circle by the tables in force.
    pub(super) circles: u16,
    /// What plans have added that stays, and what is over once packets of the meantime have arrived.
    pub(super) lasting: BTreeSet<Wait>,
    pub(super) passing: BTreeSet<Wait>,
}

impl Waits {
    pub(super) fn new(dependencies: Dependencies<'_>) -> Self {
        let (mut levels, mut circles) = (std::array::from_fn(|_| Vec::new()), 0);
        for lane in dependencies.used() {
            match dependencies.in_order(lane) {
                Some(order) => levels[lane] = measure(&dependencies, lane, &order),
                None => circles |= 1 << lane,
            }
        }
        let (lasting, passing) = (BTreeSet::new(), BTreeSet::new());
        Self { edges: dependencies.into_edges(), levels, circles, lasting, passing }
    }

    /// Whether packets wait so by the tables in force.
    pub(super) fn has(&self, network: &Network, wait: Wait) -> bool {
        self.edges.has(network, wait.held, wait.wanted, usize::from(wait.lane))
    }

    /// The channels of a circle that `more`, which is in order, closes together with the tables in force and with earlier plans, whose packets are under
    /// way still unless they are `drained`; and its lane.
    pub(super) fn circle(&self, network: &Network, more: &[Wait], drained: bool) -> Option<(u8, Vec<u32>)> {
        (0..LANES as u8).filter(|lane| self.circles & 1 << lane == 0).find_map(|lane| {
            let span = Wait { lane, held: 0, wanted: 0 }..Wait { lane: lane + 1, held: 0, wanted: 0 };
            let before = |end: Wait| more.partition_point(|wait| *wait < end);
            let new = more[before(span.start)..before(span.end)].iter();
            let passing = self.passing.range(span.clone()).filter(|_| !drained);
            let all = new.chain(self.lasting.range(span)).chain(passing);
            let mut added: Vec<(u32, u32)> = all.map(|wait| (wait.held, wait.wanted)).collect();
            added.sort_unstable();
            added.dedup();
            let circle = Search { waits: self, network, lane, added: &added }.run()?;
            Some((lane, circle))
        })
    }
}

/// By channel: the length of the longest chain of waits that leads to it. In `order` each comes before those that its packets
/// want.
fn measure(dependencies: &Dependencies<'_>, lane: usize, order: &[u32]) -> Vec<u32> {
    let mut levels = vec![0u32; order.len()];
    for channel in order {
        for next in dependencies.wanted(*channel, lane) {
            levels[next as usize] = levels[next as usize].max(levels[*channel as usize] + 1);
        }
    }
    levels
}

/// A search for a circle on one lane. What the tables in force make packets wait for leads to higher levels only, so
/// that every circle has a wait that was added and leads to no higher one.
struct Search<'a> {
    waits: &'a Waits,
    network: &'a Network,
    lane: u8,
    /// In order.
    added: &'a [(u32, u32)],
}

impl Search<'_> {
    fn run(&self) -> Option<Vec<u32>> {
        let levels = &self.waits.levels[usize::from(self.lane)];
        let level = |channel: u32| levels.get(channel as usize).copied().unwrap_or(0);
        let backward = |(held, wanted): &&(u32, u32)| level(*held) >= level(*wanted);
        let mut starts = self.added.iter().filter(backward).peekable();
        starts.peek()?;
        // 0 is new, 1 is on the way, 2 leads to no circle.
        let mut states = vec![0u8; self.network.to.len()];
        starts.find_map(|(_, start)| self.from(*start, &mut states))
    }

    /// Depth first.
    fn from(&self, start: u32, states: &mut [u8]) -> Option<Vec<u32>> {
        if states[start as usize] != 0 {
            return None;
        }
        states[start as usize] = 1;
        // Channels, each with where the ones that follow it begin in `ahead`.
        let (mut way, mut ahead) = (vec![(start, 0)], Vec::new());
        self.add_next(start, &mut ahead);
        while let Some((channel, from)) = way.last().copied() {
            if ahead.len() == from {
                states[channel as usize] = 2;
                way.pop();
                continue;
            }
            let Some(to) = ahead.pop() else { continue };
            match states[to as usize] {
                0 => {
                    states[to as usize] = 1;
                    way.push((to, ahead.len()));
                    self.add_next(to, &mut ahead);
                }
                1 => {
                    let from = way.iter().position(|(channel, _)| *channel == to)?;
                    return Some(way[from..].iter().map(|(channel, _)| *channel).collect());
                }
                _ => {}
            }
        }
        None
    }

    /// What packets in a channel want.
    fn add_next(&self, channel: u32, ahead: &mut Vec<u32>) {
        let from = self.added.partition_point(|(held, _)| *held < channel);
        let added = self.added[from..].iter().take_while(|(held, _)| *held == channel);
        let standing = self.waits.edges.wanted(self.network, channel, usize::from(self.lane));
        ahead.extend(standing.chain(added.map(|(_, wanted)| *wanted)));
    }
}
