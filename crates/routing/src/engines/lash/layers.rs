//! A lane for every pair of switches.

use std::cmp::Reverse;

use super::acyclic::Lane;
use super::links::{Hops, Links, UNREACHED};
use super::order::Order;
use super::trees::Trees;

use crate::sorted;

/// A pair of switches without a lane.
pub(super) const NO_LANE: u8 = u8::MAX;

/// The lanes of all pairs of switches, both directions of a pair on the same.
#[derive(Debug)]
pub(super) struct Layers {
    width: usize,
    lanes: Vec<u8>,
    /// By lane and link: every packet on a lane passes links of growing rank.
    pub(super) ranks: Vec<Vec<u32>>,
}

/// Which pairs choose a lane first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum First {
    /// Those furthest from each other, whose paths are the most likely to close a cycle.
    Longest,
    /// Those of the lowest numbers.
    Lowest,
}

/// A pair of switches that fits none of the lanes allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Unfit(pub(super) u32, pub(super) u32);

impl Layers {
    /// Puts each pair that counts on the first lane that stays free of cycles, and fails where that takes more than
    /// `most` lanes. Pairs whose paths keep to the order of a lane come first.
    pub(super) fn fill(
        links: &Links,
        hops: &Hops,
        trees: &Trees,
        orders: &[Order],
        first: First,
        most: u8,
    ) -> Result<Self, Unfit> {
        let width = links.len();
        let mut layers = Self { width, lanes: vec![NO_LANE; width * width], ranks: Vec::new() };
        let (mut lanes, mut paths): (Vec<Lane>, _) = (Vec::new(), Vec::new());
        let mut rest = pairs(links, hops);
        for order in orders.iter().take(usize::from(most)) {
            let mut lane = Lane::new(&order.links(links));
            let number = lanes.len() as u8;
            rest.retain(|(from, to)| {
                dependencies(links, trees, *from, *to, &mut paths);
                let fits = paths.iter().all(|(earlier, later)| lane.is_in_order(*earlier, *later));
                if fits {
                    lane.add_all(&paths);
                    layers.set(*from, *to, number);
                }
                !fits
            });
            lanes.push(lane);
        }
        if first == First::Longest {
            sorted::by_key(&mut rest, |(from, to)| Reverse(hops.row(*from)[*to as usize]));
        }
        let plain: Vec<u32> = (0..links.count() as u32).collect();
        for (from, to) in rest {
            dependencies(links, trees, from, to, &mut paths);
            let mut fitting = lanes.iter_mut().position(|lane| lane.add_all(&paths));
            if fitting.is_none() && lanes.len() < usize::from(most) {
                lanes.push(Lane::new(&plain));
                fitting = lanes.iter_mut().position(|lane| lane.add_all(&paths));
            }
            layers.set(from, to, fitting.ok_or(Unfit(from, to))? as u8);
        }
        let used = layers.lanes.iter().filter(|lane| **lane != NO_LANE).max();
        let used = used.map_or(0, |highest| usize::from(*highest) + 1);
        layers.ranks = lanes.into_iter().take(used).map(Lane::into_ranks).collect();
        Ok(layers)
    }

    fn set(&mut self, a: u32, b: u32, lane: u8) {
        self.lanes[a as usize * self.width + b as usize] = lane;
        self.lanes[b as usize * self.width + a as usize] = lane;
    }

    /// The lane of a pair; [`NO_LANE`] where none is needed.
    pub(super) fn of(&self, a: u32, b: u32) -> u8 {
        self.lanes[a as usize * self.width + b as usize]
    }

    /// How many lanes there are.
    pub(super) fn count(&self) -> u8 {
        self.ranks.len() as u8
    }
}

/// All pairs that count and are connected, the lower number first, in their order.
fn pairs(links: &Links, hops: &Hops) -> Vec<(u32, u32)> {
    let mut pairs = Vec::new();
    for from in 0..links.len() as u32 {
        let row = hops.row(from);
        let connected = |to: &u32| row[*to as usize] != UNREACHED && links.counts(from, *to);
        pairs.extend((from + 1..links.len() as u32).filter(connected).map(|to| (from, to)));
    }
    pairs
}

/// Which link comes after which on the paths of a pair, both ways, each two once a path.
fn dependencies(links: &Links, trees: &Trees, a: u32, b: u32, found: &mut Vec<(u32, u32)>) {
    found.clear();
    for (from, to) in [(a, b), (b, a)] {
        let mut before = None;
        for link in trees.path(links, from, to) {
            found.extend(before.map(|before| (before, link)));
            before = Some(link);
        }
    }
}
