//! A lane that takes paths for as long as their dependencies form no cycle.

use super::dependencies::{Dependency, Numbering, Set};
use super::network::Network;

/// The dependencies on a lane, and an order of all ways that they keep to.
///
/// The order is kept up as in Pearce, Kelly: A Dynamic Topological Sort Algorithm for Directed Acyclic Graphs (2006): a
/// dependency that steps back in it moves only ways between its two ends.
#[derive(Debug)]
pub(super) struct Lane {
    taken: Set,
    /// Those that would close a cycle. What is once in here stays, for a lane only grows.
    refused: Set,
    /// By way: its place in the order.
    ranks: Vec<u32>,
    /// What a packet's dependencies add to the lane.
    new: Vec<Dependency>,
    search: Search,
}

/// Room to search in.
#[derive(Debug, Default)]
struct Search {
    seen: Vec<bool>,
    /// What follows the end of a dependency.
    ahead: Vec<u32>,
    /// What its begin follows.
    behind: Vec<u32>,
    stack: Vec<u32>,
    places: Vec<u32>,
    /// How many ways were searched so far.
    steps: u64,
}

impl Lane {
    /// A lane with dependencies that go forward in an order.
    pub(super) fn new(numbering: &Numbering, taken: Set, ranks: Vec<u32>) -> Self {
        let search = Search { seen: vec![false; ranks.len()], ..Search::default() };
        Self { taken, refused: Set::new(numbering), ranks, new: Vec::new(), search }
    }

    /// How much it has searched so far, in ways.
    pub(super) fn steps(&self) -> u64 {
        self.search.steps
    }

    /// Whether the lane has a dependency.
    pub(super) fn has(&self, numbering: &Numbering, one: Dependency) -> bool {
        self.taken.contains(numbering.of(one))
    }

    /// Whether a dependency is known to close a cycle.
    pub(super) fn refuses(&self, numbering: &Numbering, one: Dependency) -> bool {
        self.refused.contains(numbering.of(one))
    }

    /// Takes all of `dependencies`, or none and says so.
    pub(super) fn take(
        &mut self,
        network: &Network,
        numbering: &Numbering,
        dependencies: &[Dependency],
    ) -> bool {
        let mut new = std::mem::take(&mut self.new);
        new.clear();
        new.extend(dependencies.iter().filter(|one| !self.taken.contains(numbering.of(**one))));
        let welcome = !new.iter().any(|one| self.refused.contains(numbering.of(*one)))
            && self.add(network, numbering, &new);
        self.new = new;
        welcome
    }

    fn add(&mut self, network: &Network, numbering: &Numbering, new: &[Dependency]) -> bool {
        let closing = new.iter().position(|one| !self.insert(network, numbering, *one));
        let Some(place) = closing else { return true };
        for one in &new[..place] {
            self.taken.remove(numbering.of(*one));
        }
        // Without the others it may be welcome at another time.
        if place == 0 || !self.insert(network, numbering, new[place]) {
            self.refused.insert(numbering.of(new[place]));
        } else {
            self.taken.remove(numbering.of(new[place]));
        }
        false
    }

    /// Adds a dependency; false when that would close a cycle.
    fn insert(&mut self, network: &Network, numbering: &Numbering, (way, next): Dependency) -> bool {
        if self.ranks[next as usize] < self.ranks[way as usize] {
            if !self.search.ahead(numbering, &self.taken, &self.ranks, (way, next)) {
                return false;
            }
            self.search.behind(network, numbering, &self.taken, &self.ranks, (way, next));
            self.search.reorder(&mut self.ranks);
        }
        self.taken.insert(numbering.of((way, next)));
        true
    }
}

impl Search {
    /// Finds what follows `next` up to the place of `way`; false when `way` does.
    fn ahead(&mut self, numbering: &Numbering, taken: &Set, ranks: &[u32], (way, next): Dependency) -> bool {
        self.ahead.clear();
        self.stack.clear();
        self.stack.push(next);
        self.seen[next as usize] = true;
        while let Some(at) = self.stack.pop() {
            self.ahead.push(at);
            for after in taken.after(numbering, at) {
                if ranks[after as usize] <= ranks[way as usize] && !self.seen[after as usize] {
                    self.seen[after as usize] = true;
                    self.stack.push(after);
                }
            }
            if self.seen[way as usize] {
                break;
            }
        }
        let closes = self.seen[way as usize];
        for at in self.ahead.iter().chain(&self.stack) {
            self.seen[*at as usize] = false;
        }
        self.steps += self.ahead.len() as u64;
        !closes
    }

    /// Finds what `way` follows down to the place of `next`.
    fn behind(
        &mut self,
        network: &Network,
        numbering: &Numbering,
        taken: &Set,
        ranks: &[u32],
        (way, next): Dependency,
    ) {
        self.behind.clear();
        self.stack.push(way);
        self.seen[way as usize] = true;
        while let Some(at) = self.stack.pop() {
            self.behind.push(at);
            // A packet comes by a cable of the switch that the way leaves.
            for out in network.graph.row(network.from[at as usize]) {
                let before = network.back[out];
                let within = ranks[before as usize] >= ranks[next as usize];
                if within && !self.seen[before as usize] && taken.contains(numbering.of((before, at))) {
                    self.seen[before as usize] = true;
                    self.stack.push(before);
                }
            }
        }
        self.steps += self.behind.len() as u64;
        for at in &self.behind {
            self.seen[*at as usize] = false;
        }
    }

    /// Puts all that is behind before all that is ahead, in the places that they have together.
    fn reorder(&mut self, ranks: &mut [u32]) {
        self.behind.sort_unstable_by_key(|way| ranks[*way as usize]);
        self.ahead.sort_unstable_by_key(|way| ranks[*way as usize]);
        let ways = || self.behind.iter().chain(&self.ahead);
        self.places.clear();
        self.places.extend(ways().map(|way| ranks[*way as usize]));
        self.places.sort_unstable();
        for (way, place) in ways().zip(&self.places) {
            ranks[*way as usize] = *place;
        }
    }
}
