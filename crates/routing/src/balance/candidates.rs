//! The choice among the ways of a switch.

use std::sync::atomic::{AtomicU16, Ordering};

use weft_wire::PortNum;

use crate::switches::Way;

use super::destination::Destination;

/// A way's load is one number. Pairs, and what is above them, decide for LIDs to which hosts send:
///
/// ```text
/// 63        56 55      48 47                     16 15       0
/// |neighbour  |port      |pairs of a host and a LID |LIDs    |
/// |used by this end port |over all destinations so far       |
/// ```
pub(super) const LID: u64 = 1;
pub(super) const PAIR: u64 = 1 << 16;
const OWN_PORT: u64 = 1 << 48;
const OWN_NEIGHBOUR: u64 = 1 << 56;
const OWN_MASK: u64 = 0xffff << 48;

/// No candidate chosen.
const NONE: u32 = u32::MAX;

/// The ways that a switch chooses among, and its choice for one destination. Destinations that follow each other often
/// have the same ways; for these they are held, with all that is known of them.
#[derive(Default)]
pub(super) struct Candidates {
    /// By 64 ways of the switch: which of them are held. Empty where none are.
    pub(super) held: Vec<u64>,
    /// Their numbers, in order.
    pub(super) numbers: Vec<u32>,
    /// The ways themselves.
    pub(super) ways: Vec<Way>,
    /// The load of each.
    pub(super) loads: Vec<u64>,
    least: Least,
    /// By LID: how many hosts send to it from here. Not known where as many send to each.
    senders: Vec<u16>,
    /// By LID: the candidate chosen.
    chosen: Vec<u32>,
    /// By LID: the candidate that it has, and how many hosts send to it by that. Empty where it has none yet.
    earlier: Vec<(u32, u16)>,
    /// The number of the first LID.
    number: u32,
    /// How many hosts are on the switch.
    hosts: u16,
    /// Whether as many hosts send to each LID: those on the switch.
    alike: bool,
}

/// What is known of the candidates that have least.
#[derive(Clone, Copy, Debug, Default)]
struct Least {
    /// Whether pairs are counted, or LIDs.
    pairs: bool,
    load: u64,
    /// How many have so little; 0 where it is not known.
    count: usize,
}

impl Least {
    fn carried(self, load: u64) -> u64 {
        if self.pairs { load / PAIR } else { load % PAIR }
    }
}

/// What the switch that chooses is like for a destination.
#[derive(Clone, Copy, Debug)]
pub(super) struct Turn {
    /// By what the number of a LID is divided.
    pub(super) stride: u32,
    /// How many LIDs of hosts the switch has still to route without a gap.
    pub(super) run: usize,
}

/// What a count is, which is 0 from then on.
pub(super) fn take(count: &AtomicU16) -> u16 {
    let taken = count.load(Ordering::Relaxed);
    if taken != 0 {
        count.store(0, Ordering::Relaxed);
    }
    taken
}

/// The place of the least by `key`, the first of these from `start` on.
fn first_least(loads: &[u64], start: usize, key: impl Fn(u64) -> u64) -> usize {
    let (mut best, mut least) = (start, u64::MAX);
    let (before, after) = loads.split_at(start);
    for (first, part) in [(start, after), (0, before)] {
        for (place, load) in (first..).zip(part) {
            let load = key(*load);
            if load < least {
                (best, least) = (place, load);
            }
        }
    }
    best
}

impl Candidates {
    /// Begins with a destination to which hosts here and those that arrived send; the counts of these are taken.
    pub(super) fn begin(&mut self, destination: &Destination, hosts: u16, arrived: &[AtomicU16]) {
        (self.number, self.hosts) = (destination.number as u32, hosts);
        let counts = &arrived[destination.numbers()];
        self.alike = counts.iter().fold(0, |any, count| any | count.load(Ordering::Relaxed)) == 0;
        self.senders.clear();
        if !self.alike {
            self.senders.extend(counts.iter().map(|count| hosts + take(count)));
        }
        self.earlier.clear();
        self.chosen.clear();
        if !self.ways.is_empty() {
            self.chosen.resize(destination.lids.len(), NONE);
        }
    }

    /// Takes each LID's port so far, and how many hosts of other switches came for it (taking the
    /// counts). As if the LIDs were not sent, `left` gets the ways and the hosts missing there.
    pub(super) fn reconsider(
        &mut self,
        destination: &Destination,
        arrived: &[AtomicU16],
        row: &[PortNum],
        left: impl Fn(Way, usize, u16),
    ) {
        let counts = &arrived[destination.numbers()];
        for (number, count) in destination.numbers().zip(counts) {
            let senders = self.hosts + take(count);
            let place = self.ways.iter().position(|way| way.port == row[number]);
            if let Some(place) = place {
                self.loads[place] -= u64::from(senders) * PAIR + LID;
                left(self.ways[place], number, senders);
            }
            self.earlier.push((place.map_or(NONE, |place| place as u32), senders));
        }
        self.least.count = 0;
    }

    /// Whether others send by this switch, which has hosts.
    pub(super) fn pass_hosts(&self) -> bool {
        self.hosts > 0 && !self.alike
    }

    /// By LID: the way chosen, and how many hosts send by it. Empty where nothing leads there.
    pub(super) fn chosen(&self) -> impl Iterator<Item = (Way, u16)> {
        (0..).zip(&self.chosen).map(|(place, chosen)| (self.ways[*chosen as usize], self.senders(place)))
    }

    /// Forgets what was known of other ways.
    pub(super) fn renew(&mut self) {
        self.least.count = 0;
    }

    /// How many hosts send to the LID at `place` from here.
    fn senders(&self, place: usize) -> u16 {
        if self.alike { self.hosts } else { self.senders[place] }
    }

    /// Chooses a way for each LID of a destination.
    pub(super) fn assign(&mut self, destination: &Destination, turn: Turn) {
        match self.ways.len() {
            0 => {}
            1 => self.assign_only(),
            _ if destination.lids.len() > destination.ports.len() => {
                let mut first = 0;
                for (_, lids) in &destination.ports {
                    self.assign_group(first, 1 << lids.lmc, turn);
                    first += 1 << lids.lmc;
                }
            }
            _ if self.alike && self.earlier.is_empty() => self.in_turn(self.hosts, turn),
            _ => {
                let mut left = false;
                for place in 0..self.chosen.len() {
                    match self.senders(place) {
                        0 => left = true,
                        _ => _ = self.assign_one(place, turn),
                    }
                }
                if left {
                    self.in_turn(0, turn);
                }
            }
        }
    }

    fn assign_only(&mut self) {
        // What hosts here send by it is expected beforehand, but not twice.
        let (expected, lid) = if self.earlier.is_empty() { (self.hosts, 0) } else { (0, LID) };
        let senders = (0..self.chosen.len()).map(|place| self.senders(place));
        let added = senders.map(|senders| u64::from(senders - expected) * PAIR + lid);
        self.loads[0] += added.sum::<u64>();
        self.chosen.fill(0);
        self.least.count = 0;
    }

    /// With which candidate the order begins for the LID at a place: with the way that it has, if any.
    fn start(&self, place: usize, turn: Turn) -> usize {
        match self.earlier.get(place) {
            Some((kept, _)) if *kept != NONE => *kept as usize,
            _ => {
                let number = self.number + place as u32;
                let digit = if turn.stride == 1 { number } else { number / turn.stride };
                (digit % self.ways.len() as u32) as usize
            }
        }
    }

    /// Gives a LID to a candidate.
    fn add(&mut self, lid: usize, place: usize, senders: u16) {
        let load = &mut self.loads[place];
        let before = self.least.carried(*load);
        *load += u64::from(senders) * PAIR + LID;
        if self.least.count > 0 && before == self.least.load && self.least.carried(*load) != before {
            self.least.count -= 1;
        }
        self.chosen[lid] = place as u32;
    }

    /// Gives the LID at `place` to the candidate with the least load. LIDs count only for those to which no host sends.
    fn assign_one(&mut self, place: usize, turn: Turn) -> usize {
        let (senders, start) = (self.senders(place), self.start(place, turn));
        let best = match senders {
            0 => first_least(&self.loads, start, |load| (load & OWN_MASK) + load % PAIR),
            _ => first_least(&self.loads, start, |load| load / PAIR),
        };
        self.add(place, best, senders);
        best
    }

    /// Assigns all LIDs that have no way yet, to each of which as many hosts send. Where none do, LIDs are counted.
    ///
    /// Each goes to the candidate that is its first in order as long as no other has less by more than one of them; else
    /// to one with the least. For what a switch does not send, as it delivers that, must not set it apart from others
    /// that send alike. There is no such margin where all lead to one neighbour, as others cannot tell its cables apart,
    /// nor as long as some way has nothing at all and too few LIDs follow to reach it in turn.
    fn in_turn(&mut self, senders: u16, turn: Turn) {
        let count = self.ways.len();
        if self.least.pairs != (senders > 0) {
            self.least = Least { pairs: senders > 0, ..Least::default() };
        }
        let to = self.ways[0].to;
        let one_neighbour = self.ways.iter().all(|way| way.to == to);
        let margin = if one_neighbour { 0 } else { u64::from(senders.max(1)) };
        let mut next = self.start(0, turn);
        for lid in 0..self.chosen.len() {
            if self.chosen[lid] != NONE {
                continue;
            }
            if self.least.count == 0 {
                self.find_least();
            }
            let Least { load: least, .. } = self.least;
            let excess = self.least.carried(self.loads[next]) - least;
            let mut place = next;
            if excess > margin || (excess > 0 && least == 0 && turn.run < count) {
                let mut all = (next..count).chain(0..next);
                place = all.find(|place| self.least.carried(self.loads[*place]) == least).unwrap_or(next);
            }
            self.add(lid, place, senders);
            next = if next + 1 == count { 0 } else { next + 1 };
        }
    }

    fn find_least(&mut self) {
        let carried = |load: &u64| self.least.carried(*load);
        let load = self.loads.iter().map(carried).min().unwrap_or(0);
        let count = self.loads.iter().filter(|other| carried(other) == load).count();
        (self.least.load, self.least.count) = (load, count);
    }

    /// Gives the `count` LIDs of one end port their ways, beginning with the one at `first`.
    fn assign_group(&mut self, first: usize, count: usize, turn: Turn) {
        self.least.count = 0;
        for place in first..first + count {
            let best = self.assign_one(place, turn);
            if count > 1 {
                self.loads[best] += OWN_PORT;
                let neighbour = self.ways[best].to;
                for (load, way) in self.loads.iter_mut().zip(&self.ways) {
                    if way.to == neighbour {
                        *load += OWN_NEIGHBOUR;
                    }
                }
            }
        }
        for load in &mut self.loads {
            *load &= !OWN_MASK;
        }
    }
}
