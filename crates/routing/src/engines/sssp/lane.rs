//! A lane that takes paths for as long as their dependencies form no cycle.

use super::dependencies::{Dependency, Numbering, Set};
use super::network::Network;
use crate::order::DynamicOrder;

/// The dependencies on a lane, and an order of all ways that they keep to.
#[derive(Debug)]
pub(super) struct Lane {
    taken: Set,
    /// Those that would close a cycle. What is once in here stays, for a lane only grows.
    refused: Set,
    order: DynamicOrder,
    /// What a packet's dependencies add to the lane.
    new: Vec<Dependency>,
}

impl Lane {
    /// A lane with dependencies that go forward in an order.
    pub(super) fn new(numbering: &Numbering, taken: Set, ranks: Vec<u32>) -> Self {
        Self { taken, refused: Set::new(numbering), order: DynamicOrder::new(ranks), new: Vec::new() }
    }

    /// How much it has searched so far, in ways.
    pub(super) fn steps(&self) -> u64 {
        self.order.steps()
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
    fn insert(&mut self, network: &Network, numbering: &Numbering, dependency: Dependency) -> bool {
        let taken = &self.taken;
        let after = |way| taken.after(numbering, way);
        // A packet comes by a cable of the switch that the way leaves.
        let before = |way| {
            let outs = network.graph.row(network.from[way as usize]);
            outs.map(|out| network.back[out])
        };
        let is_before = |before, way| taken.contains(numbering.of((before, way)));
        let (earlier, later) = dependency;
        if !self.order.admit(earlier, later, after, before, is_before) {
            return false;
        }
        self.taken.insert(numbering.of(dependency));
        true
    }
}
