//! A lane's channel dependency graph, kept free of cycles.

use crate::order::DynamicOrder;
use crate::sorted;

/// The dependencies between links on one lane, and an order of the links in which each of them leads from an earlier
/// to a later one.
#[derive(Clone, Debug)]
pub(super) struct Lane {
    order: DynamicOrder,
    /// By link, the links that packets take after it.
    after: Vec<Vec<u32>>,
    /// By link, the links that packets took before it.
    before: Vec<Vec<u32>>,
}

impl Lane {
    /// Without dependencies; `order` has every link once.
    pub(super) fn new(order: &[u32]) -> Self {
        let none = vec![Vec::new(); order.len()];
        Self { order: DynamicOrder::new(sorted::places(order)), after: none.clone(), before: none }
    }

    /// By link, its place in an order with which all dependencies go.
    pub(super) fn into_ranks(self) -> Vec<u32> {
        self.order.into_ranks()
    }

    /// Whether a dependency goes with the order as it is.
    pub(super) fn is_in_order(&self, earlier: u32, later: u32) -> bool {
        self.order.goes_with(earlier, later)
    }

    /// Adds all dependencies; or none, and false, where they would close a cycle.
    pub(super) fn add_all(&mut self, dependencies: &[(u32, u32)]) -> bool {
        let mut added = Vec::new();
        for (earlier, later) in dependencies.iter().copied() {
            if self.after[earlier as usize].contains(&later) {
                continue;
            }
            let after = |link: u32| self.after[link as usize].iter().copied();
            let before = |link: u32| self.before[link as usize].iter().copied();
            if !self.order.admit(earlier, later, after, before, |_, _| true) {
                // The newest first: each is the last of its lists.
                for (earlier, later) in added.drain(..).rev() {
                    self.after[earlier as usize].pop();
                    self.before[later as usize].pop();
                }
                return false;
            }
            self.after[earlier as usize].push(later);
            self.before[later as usize].push(earlier);
            added.push((earlier, later));
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use petgraph::algo::is_cyclic_directed;
    use petgraph::graph::DiGraph;
    use proptest::prelude::*;

    use super::*;

    const LINKS: u32 = 24;

    fn dependencies() -> impl Strategy<Value = Vec<(u32, u32)>> {
        let one = (0..LINKS, 1..LINKS).prop_map(|(earlier, by)| (earlier, (earlier + by) % LINKS));
        prop::collection::vec(one, 1..5)
    }

    proptest! {
        #[test]
        fn dependencies_are_added_just_where_petgraph_sees_no_cycle(
            steps in prop::collection::vec(dependencies(), 1..40)
        ) {
            let order: Vec<u32> = (0..LINKS).rev().collect();
            let mut lane = Lane::new(&order);
            let mut kept: Vec<(u32, u32)> = Vec::new();
            for more in steps {
                let graph: DiGraph<(), ()> = DiGraph::from_edges(kept.iter().chain(&more).copied());
                let fits = !is_cyclic_directed(&graph);
                prop_assert_eq!(lane.add_all(&more), fits, "{:?} to {:?}", more, kept);
                if fits {
                    kept.extend(more);
                }
                prop_assert!(kept.iter().all(|(earlier, later)| lane.is_in_order(*earlier, *later)));
            }
            let mut ranks = lane.into_ranks();
            ranks.sort_unstable();
            prop_assert_eq!(ranks, (0..LINKS).collect::<Vec<_>>());
        }
    }
}
