//! Switches that no path up and then down joins to a destination, as in trees that have lost cables.

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};

use super::Tree;
use super::reach::{Link, NO_LINK, Reach, Shape, UNREACHED};

/// Coming down from `from` to `at` and going up again to `to`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Turn {
    from: u32,
    at: u32,
    to: u32,
}

/// The turns upwards that packets take. Paths that go up and then down cannot wait for each other in a circle; with
/// a turn upwards here and there they can, but only if each turn leads to the next.
#[derive(Debug, Default)]
pub(crate) struct Detours {
    taken: BTreeSet<Turn>,
    refused: BTreeSet<Turn>,
    /// By switch: how many cables its path has.
    hops: Vec<u32>,
    offers: BinaryHeap<Reverse<Offer>>,
    offer_count: u32,
    /// By number of cables: the switches.
    rings: Vec<Vec<u32>>,
}

/// A next hop that a switch could take, the best first: one that needs no turn that no one takes yet, by the fewest
/// cables, the oldest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Offer {
    is_new: bool,
    /// Whether the turn is not at a bridge.
    elsewhere: bool,
    hops: u32,
    order: u32,
    stray: u32,
    link: Link,
    turn: Option<Turn>,
}

impl Detours {
    /// Whether any of the switches for which `counts` holds is connected with the target, but not by going up and
    /// then down.
    pub(crate) fn find(shape: &Shape, reach: &Reach, counts: impl Fn(u32) -> bool) -> Option<u32> {
        let piece = |at: u32| shape.pieces[at as usize];
        let is_stray = |at: &&u32| {
            reach.hops[**at as usize] == UNREACHED && piece(**at) == piece(reach.target) && counts(**at)
        };
        shape.from_roots.iter().find(is_stray).copied()
    }

    /// Packets take these turns already: where each comes from, where it is, and where it leads.
    pub(crate) fn with_taken(turns: Vec<[u32; 3]>) -> Self {
        let taken = turns.into_iter().map(|[from, at, to]| Turn { from, at, to }).collect();
        Self { taken, ..Self::default() }
    }

    /// Gives switches without a next hop one, as far as that is safe. `hops` tells how far those are from the target
    /// that have one.
    pub(crate) fn extend(&mut self, tree: &Tree, shape: &Shape, hops: &[u32], next: &mut [Link]) {
        self.hops.clear();
        self.hops.extend_from_slice(hops);
        self.search(tree, shape, next);
    }

    /// Gives those switches a next hop towards the target: by turns that are taken already where that will do, else
    /// by new ones at a bridge, else by any, and by the fewest cables; but by none that could close a circle with
    /// those that are taken. In a tree, turns at one switch close none, so a bridge that leads everywhere serves all.
    /// What switches send to each other need not be free of deadlock: those that are `free` get the fewest cables
    /// where nothing better is left. Tells whether others have been looked at, so that turns that are taken have decided.
    pub(crate) fn fill(
        &mut self,
        tree: &Tree,
        shape: &Shape,
        reach: &Reach,
        next: &mut [Link],
        free: impl Fn(u32) -> bool,
    ) -> bool {
        self.hops.clone_from(&reach.hops);
        let searches = Self::find(shape, reach, |at| !free(at)).is_some();
        if searches {
            self.search(tree, shape, next);
        }
        self.nearest(tree, shape, next, free);
        searches
    }

    /// Searches breadth first from the switches that have a next hop over those for which `free` holds and that
    /// have none.
    fn nearest(&mut self, tree: &Tree, shape: &Shape, next: &mut [Link], free: impl Fn(u32) -> bool) {
        let Self { hops, rings, .. } = self;
        rings.iter_mut().for_each(Vec::clear);
        for at in &shape.from_roots {
            ring(rings, hops[*at as usize]).extend((hops[*at as usize] != UNREACHED).then_some(*at));
        }
        let mut distance = 0;
        while distance < rings.len() {
            let here = std::mem::take(&mut rings[distance]);
            for at in &here {
                let ups = tree.up(*at).map(|(_, group)| (group, group.upper, 0));
                let downs = tree.down(*at).map(|(_, group)| (group, group.lower, 1));
                for (group, stray, way) in ups.chain(downs) {
                    if hops[stray as usize] == UNREACHED && free(stray) {
                        hops[stray as usize] = distance as u32 + 1;
                        let cable = tree.cables(group).next().map_or(0, |(cable, _)| cable);
                        next[stray as usize] = 2 * cable as Link + way;
                        ring(rings, distance as u32 + 1).push(stray);
                    }
                }
            }
            rings[distance] = here;
            distance += 1;
        }
    }

    /// Searches from the switches that have a next hop over those that have none, the best offer first.
    fn search(&mut self, tree: &Tree, shape: &Shape, next: &mut [Link]) {
        self.offers.clear();
        self.offer_count = 0;
        for at in shape.from_roots.iter().filter(|at| next[**at as usize] != NO_LINK) {
            self.offer(tree, shape, next, *at);
        }
        while let Some(Reverse(offer)) = self.offers.pop() {
            if self.hops[offer.stray as usize] != UNREACHED {
                continue;
            }
            if offer.turn.is_some_and(|turn| !self.may(tree, shape, turn)) {
                continue;
            }
            self.hops[offer.stray as usize] = offer.hops;
            next[offer.stray as usize] = offer.link;
            self.offer(tree, shape, next, offer.stray);
        }
    }

    /// Offers a switch to its neighbours as their next hop.
    fn offer(&mut self, tree: &Tree, shape: &Shape, next: &[Link], at: u32) {
        let onwards = next[at as usize];
        let ups = tree.up(at).map(|(_, group)| (group, group.upper, 0));
        let downs = tree.down(at).map(|(_, group)| (group, group.lower, 1));
        for (group, stray, way) in ups.chain(downs) {
            if self.hops[stray as usize] != UNREACHED {
                continue;
            }
            let turns = way == 0 && !onwards.is_multiple_of(2);
            let turn = turns.then(|| Turn { from: stray, at, to: shape.to(onwards) });
            let is_new = turn.is_some_and(|turn| !self.taken.contains(&turn));
            let elsewhere = is_new && !shape.bridges[at as usize];
            let hops = self.hops[at as usize] + 1;
            let cable = tree.cables(group).next().map_or(0, |(cable, _)| cable);
            let link = 2 * cable as Link + way;
            let order = self.offer_count;
            self.offers.push(Reverse(Offer { is_new, elsewhere, hops, order, stray, link, turn }));
            self.offer_count += 1;
        }
    }

    /// Takes a turn if no others lead from it back to it.
    fn may(&mut self, tree: &Tree, shape: &Shape, turn: Turn) -> bool {
        if self.taken.contains(&turn) {
            return true;
        }
        if self.refused.contains(&turn) {
            return false;
        }
        let (mut todo, mut seen) = (vec![turn], BTreeSet::new());
        while let Some(before) = todo.pop() {
            if leads(tree, shape, before, turn) {
                self.refused.insert(turn);
                return false;
            }
            let after = self.taken.iter().filter(|after| leads(tree, shape, before, **after));
            todo.extend(after.filter(|after| seen.insert(**after)));
        }
        self.taken.insert(turn);
        true
    }
}

/// The switches at a distance; those at none are in the first ring, where no one adds them.
fn ring(rings: &mut Vec<Vec<u32>>, distance: u32) -> &mut Vec<u32> {
    let distance = if distance == UNREACHED { 0 } else { distance as usize };
    if rings.len() <= distance {
        rings.resize(distance + 1, Vec::new());
    }
    &mut rings[distance]
}

/// Whether a path up and then down leads from behind one turn to before another. No one turns back on the spot, which
/// rules out the way down from a root to the switch that the turn came from, and that up to a root from the switch
/// that the next turn goes to.
fn leads(tree: &Tree, shape: &Shape, before: Turn, after: Turn) -> bool {
    let is_root = |at: u32| shape.cables_up[at as usize] == 0;
    if before.to == after.from {
        return before.at != after.at;
    }
    if is_root(before.to) && before.at == after.from {
        return false;
    }
    if is_root(after.from) {
        let mut lowers = tree.down(after.from).map(|(_, group)| group.lower);
        return lowers.any(|lower| lower != after.at && shape.is_above(lower, before.to));
    }
    shape.covers(before.to, after.from)
}
