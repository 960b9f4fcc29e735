//! Channel dependencies (Dally, Seitz: Deadlock-Free Message Routing in Multiprocessor Interconnection Networks, 1987):
//! a packet that holds the buffer behind one way waits for room in the buffer behind the next. Where these form no
//! cycle, nothing waits for itself.

use std::ops::Range;

use rayon::prelude::*;

use super::network::{DestinationLid, Network};
use super::paths::{NO_WAY, Paths};
use crate::bits::ones;

/// A way and one that may follow it.
pub(super) type Dependency = (u32, u32);

/// Numbers for all dependencies that there can be.
#[derive(Debug)]
pub(super) struct Numbering {
    /// By way: the number of the first that begins with it.
    first: Vec<u32>,
    /// By way: the first way of the switch that it leads to.
    next: Vec<u32>,
}

impl Numbering {
    pub(super) fn new(network: &Network) -> Self {
        let (mut first, mut next, mut count) = (vec![0], Vec::new(), 0);
        for to in &network.to {
            let row = network.graph.row(*to);
            count += row.len() as u32;
            first.push(count);
            next.push(row.start as u32);
        }
        Self { first, next }
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.first.last().map_or(0, |count| *count as usize)
    }

    /// How many ways there are.
    pub(super) fn ways(&self) -> u32 {
        self.next.len() as u32
    }

    pub(super) fn of(&self, (way, next): Dependency) -> usize {
        (self.first[way as usize] + next - self.next[way as usize]) as usize
    }

    /// Those that begin with a way: their numbers, and the ways that they end with.
    pub(super) fn after(&self, way: u32) -> impl Iterator<Item = (usize, u32)> {
        let numbers = self.first[way as usize] as usize..self.first[way as usize + 1] as usize;
        numbers.zip(self.next[way as usize]..)
    }
}

/// How much is sent by each dependency, over all targets.
#[derive(Debug)]
pub(super) struct Traffic {
    pub(super) uses: Vec<u32>,
}

impl Traffic {
    /// What everybody sends, each switch counted once for each target.
    pub(super) fn of_all(network: &Network, numbering: &Numbering, paths: &Paths) -> Self {
        Self::of(network, numbering, paths, |switch, target| u32::from(network.sends(switch, target)))
    }

    /// What hosts send to hosts, in pairs of them.
    pub(super) fn of_hosts(network: &Network, numbering: &Numbering, paths: &Paths) -> Self {
        Self::of(network, numbering, paths, |switch, target| network.hosts_that_send(switch, target))
    }

    fn of(
        network: &Network,
        numbering: &Numbering,
        paths: &Paths,
        count: impl Fn(u32, &DestinationLid) -> u32 + Sync,
    ) -> Self {
        let uses = by_targets(network, |targets| {
            let mut uses = vec![0; numbering.len()];
            let (mut tree, mut senders) = (Tree::new(network), Vec::new());
            for target in targets {
                tree.grow(network, paths, target);
                let receiver = &network.targets[target as usize];
                senders.clear();
                senders.extend((0..network.len() as u32).map(|at| count(at, receiver)));
                for &switch in &tree.farthest_first {
                    let (way, next) = tree.step(network, switch);
                    let to = network.to[way as usize] as usize;
                    senders[to] += senders[switch as usize];
                    if next != NO_WAY {
                        uses[numbering.of((way, next))] += senders[switch as usize];
                    }
                }
            }
            uses
        });
        let mut uses = uses.into_iter();
        let mut sum = uses.next().unwrap_or_else(|| vec![0; numbering.len()]);
        for uses in uses {
            sum.iter_mut().zip(uses).for_each(|(sum, uses)| *sum += uses);
        }
        Self { uses: sum }
    }

    /// Whether some of it could wait for itself, were it all on one lane.
    pub(super) fn has_cycle(&self, numbering: &Numbering) -> bool {
        let after = |way| numbering.after(way).filter(|(number, _)| self.uses[*number] > 0);
        let mut before = vec![0u32; numbering.ways() as usize];
        for way in 0..numbering.ways() {
            after(way).for_each(|(_, next)| before[next as usize] += 1);
        }
        let mut free: Vec<u32> = (0..numbering.ways()).filter(|way| before[*way as usize] == 0).collect();
        let mut count = 0;
        while let Some(way) = free.pop() {
            count += 1;
            for (_, next) in after(way) {
                before[next as usize] -= 1;
                if before[next as usize] == 0 {
                    free.push(next);
                }
            }
        }
        count < numbering.ways()
    }
}

/// Pairs of switches, in any order of the two.
#[derive(Clone, Debug)]
pub(super) struct Pairs {
    switches: usize,
    /// By the first, then by the second.
    members: Vec<bool>,
}

impl Pairs {
    /// Those between which somebody that `sends` does so by a dependency that is not `good`.
    pub(super) fn with_others_than(
        network: &Network,
        paths: &Paths,
        good: impl Fn(Dependency) -> bool + Sync,
        sends: impl Fn(u32, &DestinationLid) -> bool + Sync,
    ) -> Self {
        let switches = network.len();
        let found = by_targets(network, |targets| {
            let mut members = vec![false; switches * switches];
            let (mut tree, mut is_bad) = (Tree::new(network), vec![false; switches]);
            for target in targets {
                tree.grow(network, paths, target);
                let receiver = &network.targets[target as usize];
                is_bad[receiver.switch as usize] = false;
                let row = receiver.switch as usize * switches;
                for &switch in tree.farthest_first.iter().rev() {
                    let (way, next) = tree.step(network, switch);
                    let rest = is_bad[network.to[way as usize] as usize];
                    let bad = rest || (next != NO_WAY && !good((way, next)));
                    is_bad[switch as usize] = bad;
                    members[row + switch as usize] |= bad && sends(switch, receiver);
                }
            }
            members
        });
        let mut pairs = Self { switches, members: vec![false; switches * switches] };
        for members in found {
            pairs.members.iter_mut().zip(members).for_each(|(all, member)| *all |= member);
        }
        for one in 0..switches {
            for other in 0..one {
                let either = pairs.members[one * switches + other] || pairs.members[other * switches + one];
                pairs.members[one * switches + other] = either;
                pairs.members[other * switches + one] = either;
            }
        }
        pairs
    }

    pub(super) fn contains(&self, one: u32, other: u32) -> bool {
        self.members[one as usize * self.switches + other as usize]
    }

    /// All of them, the lower number first.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u32, u32)> {
        let switches = self.switches as u32;
        let all = (0..switches).flat_map(move |one| (one + 1..switches).map(move |other| (one, other)));
        all.filter(|(one, other)| self.contains(*one, *other))
    }
}

/// A set of dependencies.
#[derive(Clone, Debug)]
pub(super) struct Set {
    words: Vec<u64>,
}

impl Set {
    pub(super) fn new(numbering: &Numbering) -> Self {
        Self { words: vec![0; numbering.len().div_ceil(64)] }
    }

    pub(super) fn contains(&self, number: usize) -> bool {
        self.words[number / 64] >> (number % 64) & 1 == 1
    }

    pub(super) fn insert(&mut self, number: usize) {
        self.words[number / 64] |= 1 << (number % 64);
    }

    pub(super) fn remove(&mut self, number: usize) {
        self.words[number / 64] &= !(1 << (number % 64));
    }

    /// The ways that follow a way.
    pub(super) fn after(&self, numbering: &Numbering, way: u32) -> impl Iterator<Item = u32> {
        let (first, end) =
            (numbering.first[way as usize] as usize, numbering.first[way as usize + 1] as usize);
        let next = numbering.next[way as usize];
        (first / 64..end.div_ceil(64)).flat_map(move |place| {
            let mut word = self.words[place];
            if place == first / 64 {
                word &= u64::MAX << (first % 64);
            }
            if place == end / 64 {
                word &= (1 << (end % 64)) - 1;
            }
            ones(word).map(move |bit| next + (place * 64 + bit - first) as u32)
        })
    }

    /// Those by which hosts send to hosts between switches that are not among `others`.
    pub(super) fn of_hosts_but(
        network: &Network,
        numbering: &Numbering,
        paths: &Paths,
        others: &Pairs,
    ) -> Self {
        let sets = by_targets(network, |targets| {
            let mut set = Self::new(numbering);
            let (mut tree, mut sends) = (Tree::new(network), Vec::new());
            for target in targets {
                tree.grow(network, paths, target);
                let receiver = &network.targets[target as usize];
                sends.clear();
                sends.extend((0..network.len() as u32).map(|at| {
                    network.hosts_that_send(at, receiver) > 0 && !others.contains(receiver.switch, at)
                }));
                for &switch in tree.farthest_first.iter() {
                    let (way, next) = tree.step(network, switch);
                    if sends[switch as usize] && next != NO_WAY {
                        sends[network.to[way as usize] as usize] = true;
                        set.insert(numbering.of((way, next)));
                    }
                }
            }
            set
        });
        let mut all = Self::new(numbering);
        for set in sets {
            all.words.iter_mut().zip(set.words).for_each(|(all, word)| *all |= word);
        }
        all
    }
}

/// The paths from all switches to one target.
struct Tree {
    /// By switch: the way it takes.
    ways: Vec<u32>,
    /// All switches that take one, each before the one that it sends to.
    farthest_first: Vec<u32>,
    /// By switch: how many send to it.
    children: Vec<u32>,
}

impl Tree {
    fn new(network: &Network) -> Self {
        let switches = network.len();
        Self { ways: vec![NO_WAY; switches], farthest_first: Vec::new(), children: vec![0; switches] }
    }

    /// The way that a switch takes, and the one after it.
    fn step(&self, network: &Network, switch: u32) -> Dependency {
        let way = self.ways[switch as usize];
        (way, self.ways[network.to[way as usize] as usize])
    }

    fn grow(&mut self, network: &Network, paths: &Paths, target: u32) {
        self.children.fill(0);
        for switch in 0..network.len() as u32 {
            let way = paths.way(network, switch, target);
            self.ways[switch as usize] = way;
            if way != NO_WAY {
                self.children[network.to[way as usize] as usize] += 1;
            }
        }
        let leaves = (0..network.len() as u32).filter(|at| self.children[*at as usize] == 0);
        self.farthest_first.clear();
        self.farthest_first.extend(leaves.filter(|at| self.ways[*at as usize] != NO_WAY));
        let mut place = 0;
        while let Some(switch) = self.farthest_first.get(place) {
            place += 1;
            let to = network.to[self.ways[*switch as usize] as usize] as usize;
            self.children[to] -= 1;
            if self.children[to] == 0 && self.ways[to] != NO_WAY {
                self.farthest_first.push(to as u32);
            }
        }
    }
}

/// Does something for a share of all targets on each core; results in the order of the shares.
fn by_targets<T: Send>(network: &Network, job: impl Fn(Range<u32>) -> T + Sync) -> Vec<T> {
    let count = network.targets.len();
    let share = count.div_ceil(rayon::current_num_threads()).max(1);
    let shares = (0..count.div_ceil(share)).into_par_iter();
    shares.map(|place| job((place * share) as u32..((place + 1) * share).min(count) as u32)).collect()
}
