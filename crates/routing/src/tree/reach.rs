//! Ways to a switch that go up and then down, from all others.

use super::Tree;

use crate::sorted;

/// Not by going up and then down.
pub(crate) const UNREACHED: u32 = u32::MAX;

/// A cable in one direction: twice its place in [`Tree::cables`], and one more for the way up.
pub(crate) type Link = u32;

/// No link: a switch delivers here, or has no route.
pub(crate) const NO_LINK: Link = u32::MAX;

/// What does not depend on the destination.
#[derive(Debug)]
pub(crate) struct Shape {
    /// By cable: its lower and its upper switch.
    pub(crate) ends: Vec<(u32, u32)>,
    /// All switches, the roots first.
    pub(crate) from_roots: Vec<u32>,
    /// By switch: the nearest rank to the roots that it can go up to.
    pub(crate) top: Vec<u32>,
    /// By switch: how many cables lead up.
    pub(crate) cables_up: Vec<usize>,
    /// By switch: a number that all have who are connected with it.
    pub(crate) pieces: Vec<u32>,
    /// By switch: a bit for every switch that going up leads to, and for itself.
    uppers: Vec<Vec<u64>>,
    /// By switch: a bit for every switch that going up and then down leads to.
    covers: Vec<Vec<u64>>,
    /// By switch: whether it is the one of its piece from which that leads to the most, preferably a leaf.
    pub(crate) bridges: Vec<bool>,
    /// By switch: whether that leads to all switches with hosts.
    pub(crate) covers_all: Vec<bool>,
}

impl Shape {
    pub(crate) fn new(tree: &Tree) -> Self {
        let switches = 0..tree.graph.len() as u32;
        let mut ends = vec![(0, 0); tree.cables.len()];
        let mut cables_up = vec![0; tree.graph.len()];
        for group in &tree.groups {
            for (cable, _) in tree.cables(group) {
                ends[cable] = (group.lower, group.upper);
                cables_up[group.lower as usize] += 1;
            }
        }
        let mut from_roots: Vec<u32> = switches.collect();
        sorted::numbers(&mut from_roots, |at| tree.tuples[at as usize]);
        let mut top = tree.ranks.clone();
        for at in &from_roots {
            let best = tree.up(*at).map(|(_, group)| top[group.upper as usize]).min();
            top[*at as usize] = best.unwrap_or(tree.rank(*at));
        }
        let uppers = uppers(tree, &from_roots);
        let covers = covers(tree, &from_roots);
        let pieces = tree.graph.pieces(|_| true);
        let mut hosts = vec![0u64; tree.graph.len().div_ceil(64)];
        for end in tree.ends.iter().filter(|end| end.kind.is_host()) {
            hosts[end.at as usize / 64] |= 1 << (end.at % 64);
        }
        let all = |covers: &Vec<u64>| hosts.iter().zip(covers).all(|(hosts, covers)| hosts & !covers == 0);
        let covers_all = covers.iter().map(all).collect();
        let bridges = bridges(&from_roots, &pieces, &covers);
        Self { ends, from_roots, top, cables_up, pieces, uppers, covers, bridges, covers_all }
    }

    /// Whether going up from a switch leads to another, or it is that.
    pub(crate) fn is_above(&self, upper: u32, from: u32) -> bool {
        self.uppers[from as usize][upper as usize / 64] >> (upper % 64) & 1 == 1
    }

    /// Whether going up from a switch and then down leads to another, or to itself.
    pub(crate) fn covers(&self, from: u32, to: u32) -> bool {
        self.covers[from as usize][to as usize / 64] >> (to % 64) & 1 == 1
    }

    /// Where a link leads.
    pub(crate) fn to(&self, link: Link) -> u32 {
        let (lower, upper) = self.ends[(link / 2) as usize];
        if link.is_multiple_of(2) { lower } else { upper }
    }
}

/// The fewest cables from every switch to one, going up and then down. A switch above the destination always goes
/// down, so no path goes up again: there is neither a loop nor a deadlock.
#[derive(Debug, Default)]
pub(crate) struct Reach {
    /// The switch that is reached.
    pub(crate) target: u32,
    /// By switch: how many cables.
    pub(crate) hops: Vec<u32>,
    /// By switch: whether it is above the target or the target itself.
    pub(crate) above: Vec<bool>,
    /// The switches above the target, the nearest first.
    pub(crate) ancestors: Vec<u32>,
    /// By switch above the target: the groups that lead down to it in the fewest cables.
    pub(crate) down: Vec<Vec<u32>>,
}

impl Reach {
    pub(crate) fn search(&mut self, tree: &Tree, shape: &Shape, target: u32) {
        self.target = target;
        self.hops.clear();
        self.hops.resize(tree.graph.len(), UNREACHED);
        self.above.clear();
        self.above.resize(tree.graph.len(), false);
        self.ancestors.clear();
        self.down.iter_mut().for_each(Vec::clear);
        self.down.resize(tree.graph.len(), Vec::new());
        (self.hops[target as usize], self.above[target as usize]) = (0, true);
        let (mut at, mut next) = (target, 0);
        loop {
            let hops = self.hops[at as usize] + 1;
            for (place, group) in tree.up(at) {
                let upper = group.upper as usize;
                if self.hops[upper] == UNREACHED {
                    (self.hops[upper], self.above[upper]) = (hops, true);
                    self.ancestors.push(group.upper);
                }
                if self.hops[upper] == hops {
                    self.down[upper].push(place as u32);
                }
            }
            let Some(ancestor) = self.ancestors.get(next) else { break };
            (at, next) = (*ancestor, next + 1);
        }
        for at in &shape.from_roots {
            if !self.above[*at as usize] {
                let best = tree.up(*at).map(|(_, group)| self.hops[group.upper as usize]).min();
                self.hops[*at as usize] = best.map_or(UNREACHED, |hops| hops.saturating_add(1));
            }
        }
    }
}

/// By switch: a bit for every switch that going up and then down from it leads to, itself included.
fn covers(tree: &Tree, from_roots: &[u32]) -> Vec<Vec<u64>> {
    let words = tree.graph.len().div_ceil(64);
    let mut covers: Vec<Vec<u64>> = vec![vec![0; words]; tree.graph.len()];
    let join = |covers: &mut Vec<Vec<u64>>, into: u32, from: u32| {
        let bits = std::mem::take(&mut covers[from as usize]);
        covers[into as usize].iter_mut().zip(&bits).for_each(|(into, from)| *into |= from);
        covers[from as usize] = bits;
    };
    for at in from_roots.iter().rev() {
        covers[*at as usize][*at as usize / 64] |= 1 << (at % 64);
        for (_, group) in tree.up(*at) {
            join(&mut covers, group.upper, *at);
        }
    }
    for at in from_roots {
        for (_, group) in tree.up(*at) {
            join(&mut covers, *at, group.upper);
        }
    }
    covers
}

/// By switch: a bit for every switch that going up from it leads to, itself included.
fn uppers(tree: &Tree, from_roots: &[u32]) -> Vec<Vec<u64>> {
    let mut uppers: Vec<Vec<u64>> = vec![vec![0; tree.graph.len().div_ceil(64)]; tree.graph.len()];
    for at in from_roots {
        let mut own = std::mem::take(&mut uppers[*at as usize]);
        own[*at as usize / 64] |= 1 << (at % 64);
        for (_, group) in tree.up(*at) {
            let upper = &uppers[group.upper as usize];
            own.iter_mut().zip(upper).for_each(|(own, upper)| *own |= upper);
        }
        uppers[*at as usize] = own;
    }
    uppers
}

/// By switch: whether it covers the most of its piece; of several, the last and so the lowest in the tree.
fn bridges(from_roots: &[u32], pieces: &[u32], covers: &[Vec<u64>]) -> Vec<bool> {
    let mut best: Vec<Option<(u32, u32)>> = vec![None; pieces.len()];
    for at in from_roots {
        let count = covers[*at as usize].iter().map(|word| word.count_ones()).sum();
        let best = &mut best[pieces[*at as usize] as usize];
        if best.is_none_or(|(most, _)| count >= most) {
            *best = Some((count, *at));
        }
    }
    let mut bridges = vec![false; pieces.len()];
    best.into_iter().flatten().for_each(|(_, at)| bridges[at as usize] = true);
    bridges
}
