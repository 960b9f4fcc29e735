//! A choice of paths that needs few lanes.

use super::layers::{First, Layers, Unfit};
use super::links::{Hops, Links};
use super::order::{self, Order, Orders};
use super::trees::{Fit, Trees};

/// Paths and lanes for all pairs of switches.
pub(super) struct Plan {
    pub(super) trees: Trees,
    pub(super) layers: Layers,
}

/// How many links are looked at for one more order, all in all.
const EFFORT: usize = 200_000_000;
/// How many roots are tried for one order, at most.
const ROOTS_MAX: usize = 64;

/// A plan with the fewest lanes that is found, and others with as many, where those are not more than `most`;
/// otherwise a pair that does not fit.
///
/// One lane is enough where every pair has a shortest path that first goes up and then down, by some order of the
/// switches. Where no order does, a second one takes what the first leaves over, and so on; and what is left over
/// from all of them goes to the first lane that it closes no cycle on. Paths that keep to no order are tried too.
pub(super) fn plans(links: &Links, hops: &Hops, most: u8) -> Result<(Plan, Vec<Plan>), Unfit> {
    let mut plans = Plans { links, hops, most, found: Err(Unfit(0, 0)) };
    let none = Orders::none(links);
    let tree = Order::of_tree(links, hops);
    let by_tree = tree.iter().fold(none.clone(), |orders, order| orders.and(order));
    plans.offer(&Trees::by_orders(links, hops, &by_tree), tree.as_slice());
    if tree.is_some() && Fit::of(links, hops, &by_tree).misses == 0 {
        return plans.found;
    }
    let tries = (EFFORT / (links.len() * links.count()).max(1)).min(ROOTS_MAX);
    let roots = order::roots(links, hops, tries);
    let candidates: Vec<Order> = roots.iter().map(|roots| Order::from_roots(links, hops, roots)).collect();
    let (mut chosen, mut by_chosen): (Vec<Order>, Orders) = (Vec::new(), none);
    while chosen.len() < usize::from(plans.most.max(2) - 1) {
        let fit = |next: &&Order| Fit::of(links, hops, &by_chosen.and(next));
        let Some(next) = candidates.iter().min_by_key(fit) else { break };
        by_chosen = by_chosen.and(next);
        chosen.push(next.clone());
        plans.offer(&Trees::by_orders(links, hops, &by_chosen), &chosen);
    }
    plans.offer(&Trees::by_search(links, hops), &[]);
    plans.found
}

struct Plans<'a> {
    links: &'a Links,
    hops: &'a Hops,
    most: u8,
    found: Result<(Plan, Vec<Plan>), Unfit>,
}

impl Plans<'_> {
    /// Fills lanes with the paths of these trees, in two ways where one lane is not enough.
    fn offer(&mut self, trees: &Trees, orders: &[Order]) {
        self.fill(trees, orders, First::Longest);
        if self.found.as_ref().map_or(true, |(best, _)| best.layers.count() > 1) {
            self.fill(trees, orders, First::Lowest);
        }
    }

    /// Keeps a plan that needs no more lanes than the best so far.
    fn fill(&mut self, trees: &Trees, orders: &[Order], first: First) {
        let layers = Layers::fill(self.links, self.hops, trees, orders, first, self.most);
        let found = layers.map(|layers| Plan { trees: trees.clone(), layers });
        match (&mut self.found, found) {
            (Ok((best, others)), Ok(found)) if found.layers.count() == best.layers.count() => {
                others.push(found);
            }
            (_, Ok(found)) => {
                self.most = found.layers.count();
                self.found = Ok((found, Vec::new()));
            }
            (Err(unfit), Err(another)) => *unfit = another,
            (Ok(_), Err(_)) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use weft_topology::Fabric;
    use weft_topology::generate::{GenerateOptions, ring, torus};

    use super::*;

    /// Where all switches have hosts, these are the paths of OpenSM 3.3.23 and its order of pairs: its log tells as many
    /// lanes. So no such fabric needs more here than there.
    #[test]
    fn paths_by_search_need_as_many_lanes_as_opensm_s() {
        let plain = GenerateOptions::default();
        let cases: [(Fabric, u8); 7] = [
            (ring(6, 1, &plain).unwrap(), 3),
            (ring(9, 1, &plain).unwrap(), 2),
            (ring(12, 1, &plain).unwrap(), 6),
            (torus(&[4, 4], 2, &plain).unwrap(), 2),
            (torus(&[5, 5], 2, &plain).unwrap(), 3),
            (torus(&[6, 6], 2, &plain).unwrap(), 5),
            (torus(&[8, 8], 2, &plain).unwrap(), 8),
        ];
        for (fabric, lanes) in cases {
            let links = Links::new(&fabric);
            let hops = Hops::new(&links);
            let trees = Trees::by_search(&links, &hops);
            let layers = Layers::fill(&links, &hops, &trees, &[], First::Lowest, 15).unwrap();
            assert_eq!(layers.count(), lanes, "{} switches", links.len());
            let (best, others) = plans(&links, &hops, 15).unwrap();
            assert!(best.layers.count() <= lanes, "{} switches", links.len());
            assert!(others.iter().all(|other| other.layers.count() == best.layers.count()));
        }
    }
}
