//! Orders in which every switch has a legal path to every other, from orders in which some have none.

use std::cmp::Reverse;

use super::search::Orientation;
use super::site::{Site, Survey};

/// Changes the ranks of the piece of the `wanted` switches so that all of them can go up to one root, which is
/// returned: then there is a legal path between any two of them.
///
/// That root is the one with most hosts below it. Where a switch cannot go up to it but to other roots only, the
/// nearest of those is placed below it, and the switches on a shortest path between the two come in between. These
/// are the spine. All that went up to a switch of the spine still does, so little changes but for a few switches.
pub(super) fn mend(
    site: &Site<'_>,
    orientation: &Orientation,
    survey: &Survey,
    wanted: &[u32],
    ranks: &mut [u32],
) -> Option<u32> {
    let piece = site.piece_of[*wanted.first()? as usize];
    let in_piece = |switch: &u32| site.piece_of[*switch as usize] == piece;
    let rank = |switch: u32| orientation.ranks[switch as usize];
    let roots = site.order.iter().copied().filter(|switch| in_piece(switch) && rank(*switch) == 0);
    let merit = |switch: &u32| (survey.below[*switch as usize], Reverse(site.seats[*switch as usize]));
    let first = roots.max_by_key(merit)?;
    let mut spine = Spine::new(site, orientation, first);
    for switch in wanted {
        if !spine.joined[*switch as usize] {
            let root = spine.nearest_root(*switch);
            spine.join(root);
        }
    }
    let on_spine = |switch: &u32| spine.on[*switch as usize];
    let depth =
        site.order.iter().filter(|switch| on_spine(switch)).map(|switch| spine.hops[*switch as usize]).max();
    for switch in site.order.iter().filter(|switch| in_piece(switch)) {
        let rank = &mut ranks[*switch as usize];
        if on_spine(switch) {
            *rank = spine.hops[*switch as usize];
        } else if *rank > 0 {
            *rank += depth.unwrap_or(0);
        }
    }
    Some(first)
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
        let hops = site.hops_from(&[first]);
        let mut spine = Self { site, orientation, hops, on: nowhere.clone(), joined: nowhere };
        spine.join(first);
        spine
    }

    /// The neighbours of a switch to which it goes up, or down.
    fn neighbours(&self, switch: u32, up: bool) -> impl Iterator<Item = u32> {
        let graph = self.site.graph;
        let ways = graph.row(switch).zip(graph.ways(switch));
        ways.filter(move |(way, _)| self.orientation.is_up(*way) == up).map(|(_, way)| way.to)
    }

    /// Of the roots that a switch reaches by the fewest hops up, the one that is nearest to the first.
    fn nearest_root(&self, switch: u32) -> u32 {
        let mut layer = vec![switch];
        let merit = |root: &u32| (self.hops[*root as usize], self.site.seats[*root as usize]);
        loop {
            let roots = layer.iter().copied().filter(|switch| self.orientation.ranks[*switch as usize] == 0);
            if let Some(root) = roots.min_by_key(merit) {
                return root;
            }
            layer = layer.iter().flat_map(|switch| self.neighbours(*switch, true)).collect();
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
            let merit =
                |to: &u32| (self.on[*to as usize], cables(*to), Reverse(self.site.seats[*to as usize]));
            match nearer.max_by_key(merit) {
                Some(next) => at = next,
                None => break,
            }
        }
    }

    /// Marks what goes up to a switch. Not by other roots: what is above what among them may change.
    fn mark_below(&mut self, switch: u32) {
        self.joined[switch as usize] = true;
        let mut todo = vec![switch];
        while let Some(at) = todo.pop() {
            let below: Vec<u32> = self.neighbours(at, false).collect();
            for to in below {
                if !self.joined[to as usize] && self.orientation.ranks[to as usize] > 0 {
                    self.joined[to as usize] = true;
                    todo.push(to);
                }
            }
        }
    }
}
