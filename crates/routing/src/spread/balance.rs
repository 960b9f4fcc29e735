//! The choice among the ways of a switch.

use std::sync::atomic::{AtomicU16, Ordering};

use weft_wire::Lid;

use crate::closer::BATCH;
use crate::switches::SwitchGraph;

use super::plan::Destination;

/// What each way of a switch carries.
pub(super) struct Balance {
    /// In [`PAIR`]s and [`LID`]s.
    loads: Vec<u64>,
    /// For every way the first way to the same neighbour.
    first_way: Vec<u32>,
    /// For every way its place in the order: neighbours in turn, then the parallel cables of each. Empty where no
    /// cables are parallel, as ports are in that order then.
    places: Vec<u32>,
    /// By what the number of a LID is divided.
    stride: usize,
}

/// A candidate's load is one number. Pairs, and what is above them, decide for LIDs to which hosts send:
///
/// ```text
/// 63        56 55      48 47                     16 15       0
/// |neighbour  |port      |pairs of a host and a LID |LIDs    |
/// |used by this end port |over all destinations so far       |
/// ```
const LID: u64 = 1;
const PAIR: u64 = 1 << 16;
const OWN_PORT: u64 = 1 << 48;
const OWN_NEIGHBOUR: u64 = 1 << 56;
const OWN_MASK: u64 = 0xffff << 48;

/// No way chosen.
const NONE: u32 = u32::MAX;

/// The choice for one destination at one switch.
#[derive(Default)]
pub(super) struct Candidates {
    /// The ways that lead there, in order.
    ways: Vec<u32>,
    /// The load of each.
    loads: Vec<u64>,
    /// By LID: how many hosts send to it from here.
    senders: Vec<u16>,
    /// By LID: the way chosen.
    chosen: Vec<u32>,
    /// By LID: the way that it has, and how many hosts send to it by that. Empty where it has none yet.
    earlier: Vec<(u32, u16)>,
    /// By end port: how many LIDs it has.
    groups: Vec<usize>,
    /// The number of the first LID.
    number: usize,
    /// How many hosts are on the switch.
    hosts: u16,
    /// How many LIDs of hosts the switch has still to route without a gap.
    run: usize,
    /// Whether as many hosts send to each LID.
    alike: bool,
}

impl Candidates {
    /// Begins with a destination to which hosts here and those that arrived send; the counts of these are taken.
    pub(super) fn begin(&mut self, destination: &Destination, run: usize, hosts: u16, arrived: &[AtomicU16]) {
        self.number = destination.number;
        (self.run, self.hosts) = (run, hosts);
        self.senders.clear();
        self.senders.extend(arrived[destination.lids()].iter().map(|count| hosts + take(count)));
        self.alike = self.senders.iter().all(|senders| *senders == hosts);
        self.earlier.clear();
        self.groups.clear();
        if destination.count > destination.ports.len() {
            self.groups.extend(destination.ports.iter().map(|(_, lids)| 1 << lids.lmc));
        }
        self.chosen.clear();
        self.chosen.resize(destination.count, NONE);
    }

    /// Tells which way each LID has, and how many hosts from elsewhere came for it then; the counts of these are taken.
    pub(super) fn reconsider(
        &mut self,
        destination: &Destination,
        arrived: &[AtomicU16],
        way_of: impl Fn(Lid) -> Option<usize>,
    ) {
        let counts = &arrived[destination.lids()];
        self.earlier.extend(destination.numbered_lids().zip(counts).map(|((_, lid), count)| {
            let way = way_of(lid).map_or(NONE, |way| way as u32);
            (way, self.hosts + take(count))
        }));
    }

    /// The ways that LIDs had before this choice, and how many hosts sent by them, by the place of the LID.
    pub(super) fn earlier(&self) -> impl Iterator<Item = (usize, usize, u16)> {
        let known = self.earlier.iter().enumerate().filter(|(_, (way, _))| *way != NONE);
        known.map(|(place, (way, senders))| (place, *way as usize, *senders))
    }

    /// Whether others send by this switch, which has hosts.
    pub(super) fn pass_hosts(&self) -> bool {
        self.hosts > 0 && !self.alike
    }

    /// The way chosen for the LID at `place`.
    pub(super) fn chosen(&self, place: usize) -> Option<usize> {
        Some(self.chosen[place]).filter(|way| *way != NONE).map(|way| way as usize)
    }

    /// How many hosts send to the LID at `place` from here.
    pub(super) fn senders(&self, place: usize) -> u16 {
        self.senders[place]
    }

    /// Takes the ways that lead to the destination at `place` of the batch, without their loads.
    fn collect(&mut self, sets: &[[u64; BATCH]], place: usize) {
        self.ways.clear();
        for (chunk, set) in sets.iter().enumerate() {
            let mut bits = set[place];
            while bits != 0 {
                self.ways.push((chunk * BATCH) as u32 + bits.trailing_zeros());
                bits &= bits - 1;
            }
        }
    }

    /// The candidate with the least load for a LID to which so many hosts send, the first of them from `start` on. LIDs
    /// count only for those to which no host sends.
    fn least(&self, start: usize, senders: u16) -> usize {
        let load = |load: u64| if senders > 0 { load / PAIR } else { (load & OWN_MASK) + load % PAIR };
        let (before, after) = self.loads.split_at(start);
        let all = (start..).zip(after).chain((0..).zip(before));
        all.min_by_key(|(_, carried)| load(**carried)).map_or(0, |(place, _)| place)
    }
}

/// What a count is, which is 0 from then on.
pub(super) fn take(count: &AtomicU16) -> u16 {
    let taken = count.load(Ordering::Relaxed);
    if taken != 0 {
        count.store(0, Ordering::Relaxed);
    }
    taken
}

impl Balance {
    pub(super) fn new(graph: &SwitchGraph, switch: u32, stride: usize) -> Self {
        let ways = graph.ways(switch);
        let mut by_neighbour: Vec<(u32, u32)> = (0..).zip(ways).map(|(way, w)| (w.to, way)).collect();
        by_neighbour.sort_unstable();
        let mut first_way = vec![0; ways.len()];
        let mut turns = vec![0; ways.len()];
        for same in by_neighbour.chunk_by(|a, b| a.0 == b.0) {
            for (turn, (_, way)) in (0..).zip(same) {
                first_way[*way as usize] = same[0].1;
                turns[*way as usize] = turn;
            }
        }
        let mut places = Vec::new();
        if turns.iter().any(|turn| *turn > 0) {
            let mut order: Vec<usize> = (0..ways.len()).collect();
            order.sort_by_key(|way| (turns[*way], first_way[*way]));
            places = vec![0; ways.len()];
            for (place, way) in (0..).zip(order) {
                places[way] = place;
            }
        }
        Self { loads: vec![0; ways.len()], first_way, places, stride }
    }

    /// Adds beforehand what has one way alone, out of the destinations that each way leads to. Such destinations are near
    /// and come late, and those with more ways can make up for them.
    pub(super) fn expect(&mut self, leading: &[u64], destinations: &[Destination], hosts: u16) {
        let (mut once, mut twice) = (0, 0);
        for bits in leading {
            twice |= once & bits;
            once |= bits;
        }
        for (load, bits) in self.loads.iter_mut().zip(leading) {
            let mut only = bits & once & !twice;
            while only != 0 {
                let lids = destinations[only.trailing_zeros() as usize].count as u64;
                *load += lids * (u64::from(hosts) * PAIR + LID);
                only &= only - 1;
            }
        }
    }

    /// Chooses a way for each LID of a destination, the one at `place` of the batch. What LIDs that had a way added to
    /// its load is taken off first.
    pub(super) fn assign(&mut self, candidates: &mut Candidates, sets: &[[u64; BATCH]], place: usize) {
        candidates.collect(sets, place);
        for (_, way, senders) in candidates.earlier() {
            self.loads[way] -= u64::from(senders) * PAIR + LID;
        }
        match candidates.ways.as_slice() {
            [] => {}
            [way] => {
                // What hosts here send by it is expected beforehand, but not twice.
                let (expected, lid) =
                    if candidates.earlier.is_empty() { (candidates.hosts, 0) } else { (0, LID) };
                let added =
                    candidates.senders.iter().map(|senders| u64::from(senders - expected) * PAIR + lid);
                self.loads[*way as usize] += added.sum::<u64>();
                candidates.chosen.fill(*way);
            }
            _ => {
                if !self.places.is_empty() {
                    candidates.ways.sort_unstable_by_key(|way| self.places[*way as usize]);
                }
                candidates.loads.clear();
                candidates.loads.extend(candidates.ways.iter().map(|way| self.loads[*way as usize]));
                self.assign_all(candidates);
                for (load, way) in candidates.loads.iter().zip(&candidates.ways) {
                    self.loads[*way as usize] = *load;
                }
            }
        }
    }

    fn assign_all(&self, candidates: &mut Candidates) {
        if !candidates.groups.is_empty() {
            let mut first = 0;
            for group in std::mem::take(&mut candidates.groups) {
                self.assign_group(candidates, first, group);
                first += group;
            }
            return;
        }
        let mut senders = candidates.senders.first().map_or(0, |senders| u64::from(*senders));
        if !candidates.alike || !candidates.earlier.is_empty() {
            for place in 0..candidates.chosen.len() {
                if candidates.senders[place] > 0 {
                    self.assign_one(candidates, place);
                }
            }
            senders = 0;
        }
        self.in_turn(candidates, senders);
    }

    /// With which candidate the order begins for the LID at a place: with the way that it has, if any.
    fn start(&self, candidates: &Candidates, place: usize) -> usize {
        let earlier = candidates.earlier.get(place);
        let kept = earlier.and_then(|(way, _)| candidates.ways.iter().position(|other| other == way));
        kept.unwrap_or_else(|| (candidates.number + place) / self.stride % candidates.ways.len())
    }

    fn assign_one(&self, candidates: &mut Candidates, place: usize) -> usize {
        let senders = candidates.senders[place];
        let best = candidates.least(self.start(candidates, place), senders);
        candidates.loads[best] += u64::from(senders) * PAIR + LID;
        candidates.chosen[place] = candidates.ways[best];
        best
    }

    /// Assigns all LIDs that have no way yet, to each of which as many hosts send. Where none do, LIDs are counted.
    ///
    /// Each goes to the candidate that is its first in order as long as no other has less by more than one of them; else
    /// to one with the least. For what a switch does not send, as it delivers that, must not set it apart from others
    /// that send alike. There is no such margin where all lead to one neighbour, as others cannot tell its cables apart,
    /// nor as long as some way has nothing at all and too few LIDs follow to reach it in turn.
    fn in_turn(&self, candidates: &mut Candidates, senders: u64) {
        let neighbour = |way: u32| self.first_way[way as usize];
        let one_neighbour =
            candidates.ways.iter().all(|way| neighbour(*way) == neighbour(candidates.ways[0]));
        let count = candidates.ways.len();
        let few_left = candidates.run < count;
        let mut next = self.start(candidates, 0);
        let Candidates { ways, loads, chosen, .. } = candidates;
        let carried = |load: u64| if senders > 0 { load / PAIR } else { load % PAIR };
        let margin = if one_neighbour { 0 } else { senders.max(1) };
        let (mut least, mut at_least) = (0, 0);
        for chosen in chosen.iter_mut().filter(|way| **way == NONE) {
            if at_least == 0 {
                least = loads.iter().map(|load| carried(*load)).min().unwrap_or(0);
                at_least = loads.iter().filter(|load| carried(**load) == least).count();
            }
            let excess = carried(loads[next]) - least;
            let mut place = next;
            if excess > margin || (excess > 0 && least == 0 && few_left) {
                let mut all = (next..count).chain(0..next);
                place = all.find(|place| carried(loads[*place]) == least).unwrap_or(next);
            }
            at_least -= usize::from(carried(loads[place]) == least);
            *chosen = ways[place];
            loads[place] += senders * PAIR + LID;
            next = if next + 1 == count { 0 } else { next + 1 };
        }
    }

    /// Gives the `count` LIDs of one end port their ways, beginning with the one at `first`.
    fn assign_group(&self, candidates: &mut Candidates, first: usize, count: usize) {
        for place in first..first + count {
            let best = self.assign_one(candidates, place);
            if count > 1 {
                candidates.loads[best] += OWN_PORT;
                let neighbour = self.first_way[candidates.ways[best] as usize];
                for (load, way) in candidates.loads.iter_mut().zip(&candidates.ways) {
                    if self.first_way[*way as usize] == neighbour {
                        *load += OWN_NEIGHBOUR;
                    }
                }
            }
        }
        for load in &mut candidates.loads {
            *load &= !OWN_MASK;
        }
    }
}
