//! Choice of the machines whose rows become those of fresh tables, so that links carry little more than they have to.
//!
//! ```text
//!   tables in force ─┐
//!                    ├─▶ pairs of machines by link ─▶ the links above the cap ─▶ LIDs, the best gain per block first ─▶ those not needed go
//!   fresh tables ────┘
//! ```
//!
//! Rows of a machine's LID are history: a move writes few switches, and a fresh routing spreads load over the whole tree. The measure
//! is the greatest number of pairs of machines on one link between physical switches, each direction by itself: the edge forwarding
//! index (Heydemann, Meyer and Sotteau, "On forwarding indices of networks", 1989) for machines alone. Links between a vSwitch and its
//! leaf are left out: every routing loads them in the same way. Decision 21 has the reasons.

use std::collections::BTreeMap;

use weft_topology::Fabric;
use weft_wire::{Lid, PortNum};

use super::kept::Kept;
use super::network::{Network, Seat};
use crate::lids::Lids;
use crate::tables::Routes;
use crate::verify::ground::{ARRIVES, is_channel};

/// The greatest number of pairs of machines on one link, by two tables.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Balance {
    /// By the tables in force.
    pub now: u64,
    /// By fresh tables.
    pub fresh: u64,
}

impl Balance {
    /// How good the tables in force are beside fresh ones, in thousandths: 1000 for as good or better.
    pub fn thousandths(&self) -> u32 {
        match self.now {
            now if now <= self.fresh => 1000,
            now => (u128::from(self.fresh) * 1000 / u128::from(now)) as u32,
        }
    }
}

/// The LIDs whose rows are to become fresh.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rebalance {
    /// In the order in which they were chosen; none where the tables are good enough.
    pub lids: Vec<Lid>,
    /// Blocks of switches to be written: one for each row that differs.
    pub blocks: u32,
    /// The measure before.
    pub before: Balance,
    /// The measure once the rows of all of these are fresh.
    pub after: Balance,
    /// LIDs whose rows are not those of the fresh tables.
    pub differing: u32,
    /// Blocks to be written for all of these.
    pub blocks_of_all: u32,
}

/// The pairs that one LID puts on links, by both tables.
#[derive(Debug)]
struct Candidate {
    lid: Lid,
    /// By channel: the pairs now, and by fresh rows.
    pairs: BTreeMap<u32, (u64, u64)>,
    /// Rows that differ.
    blocks: u32,
}

/// Pairs of machines by channel, and how many of them a channel may carry.
struct Load {
    pairs: Vec<u64>,
    cap: u64,
}

impl Kept {
    /// Chooses LIDs of machines whose rows are to become those of fresh tables, if the tables in force are worth less than `below`
    /// thousandths of these. With the chosen ones they are worth that again. The choice is greedy: in each step the LID that takes most
    /// pairs off overloaded links per block that is written; those that turn out not to be needed are left out. So no LID can be left
    /// out of the result, but another set may be smaller.
    pub fn rebalance(
        &self,
        fabric: &Fabric,
        lids: &Lids,
        now: &Routes,
        fresh: &Routes,
        machines: &[Lid],
        below: u32,
    ) -> Rebalance {
        let network = &self.network;
        let seat = |lid: &Lid| Some((*lid, network.seat(fabric, lids.owner(*lid)?)?));
        let seats: Vec<(Lid, Seat)> = machines.iter().filter_map(seat).collect();
        let mut senders: BTreeMap<u32, u64> = BTreeMap::new();
        seats.iter().for_each(|(_, seat)| *senders.entry(seat.switch).or_default() += 1);
        let mut by_now = vec![0; network.to.len()];
        let mut by_fresh = by_now.clone();
        let mut candidates = Vec::new();
        for (lid, seat) in &seats {
            let candidate = Candidate::new(network, *lid, *seat, now, fresh, &senders);
            for (channel, (pairs, fresh)) in &candidate.pairs {
                by_now[*channel as usize] += pairs;
                by_fresh[*channel as usize] += fresh;
            }
            candidates.extend(Some(candidate).filter(|candidate| candidate.blocks > 0));
        }
        let most = |pairs: &[u64]| pairs.iter().copied().max().unwrap_or(0);
        let before = Balance { now: most(&by_now), fresh: most(&by_fresh) };
        let cap =
            u64::try_from(u128::from(before.fresh) * 1000 / u128::from(below.max(1))).unwrap_or(u64::MAX);
        let mut load = Load { pairs: by_now, cap };
        let chosen = if before.now > cap { load.choose(&candidates) } else { Vec::new() };
        let blocks_of = |all: &mut dyn Iterator<Item = &Candidate>| all.map(|one| one.blocks).sum();
        Rebalance {
            lids: chosen.iter().map(|at| candidates[*at].lid).collect(),
            blocks: blocks_of(&mut chosen.iter().map(|at| &candidates[*at])),
            before,
            after: Balance { now: most(&load.pairs), ..before },
            differing: candidates.len() as u32,
            blocks_of_all: blocks_of(&mut candidates.iter()),
        }
    }
}

impl Load {
    /// The places of candidates that bring every link under the cap, which fresh rows of all of them do.
    fn choose(&mut self, candidates: &[Candidate]) -> Vec<usize> {
        let mut left: Vec<usize> = (0..candidates.len()).collect();
        let mut chosen = Vec::new();
        while self.pairs.iter().any(|pairs| *pairs > self.cap) && !left.is_empty() {
            let gain = |at: &usize| (self.gain(&candidates[*at], true), i64::from(candidates[*at].blocks));
            // Of equal ones the first.
            let best = left.iter().rev().max_by(|a, b| {
                let ((gain_a, blocks_a), (gain_b, blocks_b)) = (gain(a), gain(b));
                (gain_a * blocks_b).cmp(&(gain_b * blocks_a))
            });
            match best.copied().filter(|at| self.gain(&candidates[*at], true) > 0) {
                Some(best) => {
                    left.retain(|at| *at != best);
                    self.shift(&candidates[best], true);
                    chosen.push(best);
                }
                // Several have to become fresh before anything is gained.
                None => {
                    left.iter().for_each(|at| self.shift(&candidates[*at], true));
                    chosen.append(&mut left);
                }
            }
        }
        if self.pairs.iter().all(|pairs| *pairs <= self.cap) {
            self.leave_out(candidates, &mut chosen);
        }
        chosen
    }

    /// Leaves out those without which every link stays under the cap, the last ones first: they have gained least. One may become
    /// dispensable when another has been left out.
    fn leave_out(&mut self, candidates: &[Candidate], chosen: &mut Vec<usize>) {
        while let Some(place) =
            (0..chosen.len()).rev().find(|at| self.gain(&candidates[chosen[*at]], false) == 0)
        {
            self.shift(&candidates[chosen[place]], false);
            chosen.remove(place);
        }
    }

    /// How many pairs above the cap there are less when a LID's rows become fresh, or, otherwise, those that they are now.
    fn gain(&self, candidate: &Candidate, fresh: bool) -> i64 {
        let above = |pairs: u64| pairs.saturating_sub(self.cap) as i64;
        let of_channel = |(channel, pairs): (&u32, &(u64, u64))| {
            let load = self.pairs[*channel as usize];
            above(load) - above(turned(load, pairs.0, pairs.1, fresh))
        };
        candidate.pairs.iter().map(of_channel).sum()
    }

    fn shift(&mut self, candidate: &Candidate, fresh: bool) {
        for (channel, pairs) in &candidate.pairs {
            let load = &mut self.pairs[*channel as usize];
            *load = turned(*load, pairs.0, pairs.1, fresh);
        }
    }
}

/// A load when one LID's pairs become those of fresh rows, or become those of now again.
fn turned(load: u64, now: u64, later: u64, fresh: bool) -> u64 {
    let (from, to) = if fresh { (now, later) } else { (later, now) };
    load.saturating_sub(from) + to
}

impl Candidate {
    fn new(
        network: &Network,
        lid: Lid,
        seat: Seat,
        now: &Routes,
        fresh: &Routes,
        senders: &BTreeMap<u32, u64>,
    ) -> Self {
        let port = |routes: &Routes, switch: u32| routes.port(network.graph.nodes[switch as usize], lid);
        let new = |switch: u32| match port(fresh, switch) {
            PortNum::NONE => port(now, switch),
            port => port,
        };
        let mut pairs = BTreeMap::<u32, (u64, u64)>::new();
        for (sender, count) in senders {
            let count = count - u64::from(*sender == seat.switch);
            for channel in way(network, *sender, seat, |switch| port(now, switch)) {
                pairs.entry(channel).or_default().0 += count;
            }
            for channel in way(network, *sender, seat, new) {
                pairs.entry(channel).or_default().1 += count;
            }
        }
        let blocks = (0..network.len() as u32).filter(|switch| new(*switch) != port(now, *switch)).count();
        Self { lid, pairs, blocks: blocks as u32 }
    }
}

/// The channels between physical switches that packets take from a switch to a LID's place; none if they do not arrive.
fn way(network: &Network, from: u32, seat: Seat, port: impl Fn(u32) -> PortNum) -> Vec<u32> {
    let (mut at, mut way) = (from, Vec::new());
    for _ in 0..=network.len() {
        let exit = network.exit(at, port(at), &[Some(seat)]);
        if exit == ARRIVES {
            way.retain(|channel: &u32| {
                let ends = [network.from[*channel as usize].0, network.to[*channel as usize]];
                !ends.iter().any(|end| network.is_virtual(*end))
            });
            return way;
        }
        if !is_channel(exit) {
            break;
        }
        way.push(exit);
        at = network.to[exit as usize];
    }
    Vec::new()
}
