//! Orders in which every pair that matters has a legal path, from orders in which some have none.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use super::search::Orientation;
use super::site::{Site, Survey};

use crate::sorted;

/// Places switches without hosts, to which some hosts have no legal path, below a neighbour to which all have one: by
/// that neighbour they can be reached then. Tells how many switches were lowered.
///
/// In a tree these are roots that lost a cable, or all above a leaf that lost one, as far as the leaf's other cables do
/// not lead there. Nothing but such switches is above such switches. So each connected set of them can come just below
/// one of the highest of the others beside it, and in the order of the hops from there, and whoever passed the set still
/// can. Few neighbours are chosen for all sets.
pub(super) fn lower(
    site: &Site<'_>,
    orientation: &Orientation,
    survey: &Survey,
    piece: usize,
    ranks: &mut [u32],
) -> usize {
    let of_piece = |switch: &u32| site.piece_of[*switch as usize] as usize == piece;
    let switches: Vec<u32> = site.graph.numbers().filter(of_piece).collect();
    let is_severed = |switch: u32| survey.severed[switch as usize] > 0;
    let rank = |switch: u32| orientation.ranks[switch as usize];
    let mut sets = severed_sets(site, &switches, is_severed);
    let lowered = sets.iter().map(Vec::len).sum();
    // A rank, and a place below the first of that rank.
    let mut heights: Vec<(u32, u32)> = orientation.ranks.iter().map(|rank| (*rank, u32::MAX)).collect();
    let beside = |set: &[u32]| {
        let around = set.iter().flat_map(|switch| site.graph.ways(*switch)).map(|way| way.to);
        let mut around: Vec<u32> = around.filter(|to| !is_severed(*to)).collect();
        sorted::numbers(&mut around, |to| (rank(to), to));
        around.dedup();
        let highest = around.first().map(|to| rank(*to));
        around.retain(|to| Some(rank(*to)) == highest);
        around
    };
    while !sets.is_empty() {
        let mut served = vec![0; site.graph.len()];
        for to in sets.iter().flat_map(|set| beside(set)) {
            served[to as usize] += 1;
        }
        let merit = |switch: &u32| (served[*switch as usize], Reverse(*switch));
        let Some(above) = switches.iter().copied().max_by_key(merit) else { break };
        heights[above as usize].1 = 0;
        let before = sets.len();
        for set in sets.extract_if(.., |set| beside(set).contains(&above)) {
            let hops = site.graph.hops_from(&[above], |to| set.contains(&to));
            for switch in set {
                heights[switch as usize] = (rank(above), hops[switch as usize]);
            }
        }
        if sets.len() == before {
            break;
        }
    }
    let mut used: Vec<(u32, u32)> = switches.iter().map(|switch| heights[*switch as usize]).collect();
    used.sort_unstable();
    used.dedup();
    for switch in switches {
        ranks[switch as usize] = used.partition_point(|height| *height < heights[switch as usize]) as u32;
    }
    lowered
}

/// The switches that are severed, in connected sets.
fn severed_sets(site: &Site<'_>, switches: &[u32], is_severed: impl Fn(u32) -> bool) -> Vec<Vec<u32>> {
    let first_of = site.graph.pieces(&is_severed);
    let mut sets: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    for switch in switches.iter().filter(|switch| is_severed(**switch)) {
        sets.entry(first_of[*switch as usize]).or_default().push(*switch);
    }
    sets.into_values().collect()
}

/// Changes the ranks of the piece of the `wanted` switches so that all of them can go up to one root, below which
/// others are placed: then there is a legal path between any two of them. Tells how many switches were lowered.
///
/// That root is the one with most hosts below it. Where a switch cannot go up to it but to other roots only, the
/// nearest of those is placed below it, and the switches on a shortest path between the two come in between. These
/// are the spine. All that went up to a switch of the spine still does, so little changes but for a few switches.
pub(super) fn join(
    site: &Site<'_>,
    orientation: &Orientation,
    survey: &Survey,
    wanted: &[u32],
    ranks: &mut [u32],
) -> usize {
    let Some(piece) = wanted.first().map(|switch| site.piece_of[*switch as usize]) else { return 0 };
    let of_piece = |switch: &u32| site.piece_of[*switch as usize] == piece;
    let is_root = |switch: u32| orientation.neighbours(site.graph, switch, true).next().is_none();
    let roots = site.graph.numbers().filter(|switch| of_piece(switch) && is_root(*switch));
    let merit = |switch: &u32| (survey.below[*switch as usize], Reverse(*switch));
    let Some(first) = roots.max_by_key(merit) else { return 0 };
    let mut spine = Spine::new(site, orientation, first);
    for switch in wanted {
        if !spine.joined[*switch as usize] {
            let root = spine.nearest_root(*switch);
            spine.join(root);
        }
    }
    let on_spine = |switch: &u32| spine.on[*switch as usize];
    let depths = site.graph.numbers().filter(on_spine).map(|switch| spine.hops[switch as usize]);
    let depth = depths.max().unwrap_or(0);
    let mut lowered = 0;
    for switch in site.graph.numbers().filter(of_piece) {
        let rank = &mut ranks[switch as usize];
        *rank = match (on_spine(&switch), is_root(switch)) {
            (true, is_root) => {
                lowered += usize::from(is_root && switch != first);
                spine.hops[switch as usize]
            }
            (false, true) => 0,
            (false, false) => orientation.ranks[switch as usize] + depth + 1,
        };
    }
    lowered
}

/// The switches through which roots go up to the first of them.
struct Spine<'a> {
    site: &'a Site<'a>,
    orientation: &'a Orientation,
    /// By switch: the hops to the first root.
    hops: Vec<u32>,
    /// By switch: whether it is on the spine.
    on: Vec<bool>,
    /// By switch: whether it can go up to the spine.
    joined: Vec<bool>,
}

impl<'a> Spine<'a> {
    fn new(site: &'a Site<'a>, orientation: &'a Orientation, first: u32) -> Self {
        let nowhere = vec![false; site.graph.len()];
        let hops = site.graph.hops_from(&[first], |_| true);
        let mut spine = Self { site, orientation, hops, on: nowhere.clone(), joined: nowhere };
        spine.join(first);
        spine
    }

    /// Of the roots that a switch reaches by the fewest hops up, the one that is nearest to the first.
    fn nearest_root(&self, switch: u32) -> u32 {
        let mut layer = vec![switch];
        let merit = |root: &u32| (self.hops[*root as usize], *root);
        let graph = self.site.graph;
        loop {
            let is_root = |switch: &u32| self.orientation.neighbours(graph, *switch, true).next().is_none();
            if let Some(root) = layer.iter().copied().filter(is_root).min_by_key(merit) {
                return root;
            }
            layer =
                layer.iter().flat_map(|switch| self.orientation.neighbours(graph, *switch, true)).collect();
            layer.sort_unstable();
            layer.dedup();
        }
    }

    /// Takes a shortest path from a switch to the spine into it; of several the one through switches that are on it,
    /// else through those with most cables.
    fn join(&mut self, switch: u32) {
        let mut at = switch;
        while !self.on[at as usize] {
            self.on[at as usize] = true;
            self.mark_below(at);
            let hops = self.hops[at as usize];
            let nearer = self.site.graph.ways(at).iter().map(|way| way.to);
            let nearer = nearer.filter(|to| self.hops[*to as usize] < hops);
            let cables = |to: u32| self.site.graph.ways(to).len();
            let merit = |to: &u32| (self.on[*to as usize], cables(*to), Reverse(*to));
            match nearer.max_by_key(merit) {
                Some(next) => at = next,
                None => break,
            }
        }
    }

    /// Marks what goes up to a switch.
    fn mark_below(&mut self, switch: u32) {
        self.joined[switch as usize] = true;
        let mut todo = vec![switch];
        while let Some(at) = todo.pop() {
            for to in self.orientation.neighbours(self.site.graph, at, false) {
                if !self.joined[to as usize] {
                    self.joined[to as usize] = true;
                    todo.push(to);
                }
            }
        }
    }
}
