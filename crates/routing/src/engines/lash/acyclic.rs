//! A lane's channel dependency graph, kept free of cycles.

/// The dependencies between links on one lane, and an order of the links in which each of them leads from an earlier
/// to a later one (D. J. Pearce and P. H. J. Kelly, "A dynamic topological sort algorithm for directed acyclic
/// graphs", 2006).
#[derive(Clone, Debug)]
pub(super) struct Lane {
    /// By link, its place in the order.
    rank: Vec<u32>,
    /// By link, the links that packets take after it.
    after: Vec<Vec<u32>>,
    /// By link, the links that packets took before it.
    before: Vec<Vec<u32>>,
    seen: Vec<bool>,
    /// What was found after the later end and before the earlier end of a new dependency.
    forward: Vec<u32>,
    backward: Vec<u32>,
    stack: Vec<u32>,
}

impl Lane {
    /// Without dependencies; `order` has every link once.
    pub(super) fn new(order: &[u32]) -> Self {
        let count = order.len();
        let mut rank = vec![0; count];
        for (place, link) in (0..).zip(order) {
            rank[*link as usize] = place;
        }
        Self {
            rank,
            after: vec![Vec::new(); count],
            before: vec![Vec::new(); count],
            seen: vec![false; count],
            forward: Vec::new(),
            backward: Vec::new(),
            stack: Vec::new(),
        }
    }

    /// By link, its place in an order with which all dependencies go.
    pub(super) fn into_ranks(self) -> Vec<u32> {
        self.rank
    }

    /// Whether a dependency goes with the order as it is.
    pub(super) fn is_in_order(&self, earlier: u32, later: u32) -> bool {
        self.rank[earlier as usize] < self.rank[later as usize]
    }

    /// Adds all dependencies; or none, and false, where they would close a cycle.
    pub(super) fn add_all(&mut self, dependencies: &[(u32, u32)]) -> bool {
        let mut added = Vec::new();
        for (earlier, later) in dependencies.iter().copied() {
            if self.after[earlier as usize].contains(&later) {
                continue;
            }
            if !self.is_in_order(earlier, later) && !self.reorder(earlier, later) {
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

    /// Moves links so that `later` comes after `earlier`; false where it leads there.
    fn reorder(&mut self, earlier: u32, later: u32) -> bool {
        let (low, high) = (self.rank[later as usize], self.rank[earlier as usize]);
        let found = self.search_forward(later, earlier, high);
        if found {
            self.search_backward(earlier, low);
            self.merge();
        }
        for link in self.forward.drain(..).chain(self.backward.drain(..)) {
            self.seen[link as usize] = false;
        }
        found
    }

    /// Everything after `from` up to a rank; false where that is `cycle`.
    fn search_forward(&mut self, from: u32, cycle: u32, high: u32) -> bool {
        self.stack.clear();
        self.stack.push(from);
        self.seen[from as usize] = true;
        while let Some(at) = self.stack.pop() {
            self.forward.push(at);
            for next in &self.after[at as usize] {
                if *next == cycle {
                    self.forward.append(&mut self.stack);
                    return false;
                }
                if !self.seen[*next as usize] && self.rank[*next as usize] < high {
                    self.seen[*next as usize] = true;
                    self.stack.push(*next);
                }
            }
        }
        true
    }

    /// Everything before `from` down to a rank.
    fn search_backward(&mut self, from: u32, low: u32) {
        self.stack.push(from);
        self.seen[from as usize] = true;
        while let Some(at) = self.stack.pop() {
            self.backward.push(at);
            for next in &self.before[at as usize] {
                if !self.seen[*next as usize] && self.rank[*next as usize] > low {
                    self.seen[*next as usize] = true;
                    self.stack.push(*next);
                }
            }
        }
    }

    /// Gives the places of all links found to those before, then to those after.
    fn merge(&mut self) {
        let rank = &mut self.rank;
        self.forward.sort_unstable_by_key(|link| rank[*link as usize]);
        self.backward.sort_unstable_by_key(|link| rank[*link as usize]);
        let all = || self.backward.iter().chain(&self.forward);
        let mut ranks: Vec<u32> = all().map(|link| rank[*link as usize]).collect();
        ranks.sort_unstable();
        for (link, place) in all().zip(ranks) {
            rank[*link as usize] = place;
        }
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
