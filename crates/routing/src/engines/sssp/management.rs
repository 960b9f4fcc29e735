//! Paths that no host sends data by: to switches, and from switches that are on no path between hosts. They need no
//! balance, so they go where they need no further lane.

use super::dependencies::{Dependency, Numbering};
use super::lane::Lane;
use super::network::{DestinationLid, Network};
use super::paths::{NO_WAY, Paths, Shortest};

/// What a path costs that the lane cannot take.
const NEVER: u32 = u32::MAX / 2;

/// Chooses these paths again, target by target and nearest switch first: each takes that of its shortest paths which
/// adds the fewest dependencies to the lane, and adds them. Where each would close a cycle the path stays as it was.
pub(super) fn settle(network: &Network, numbering: &Numbering, paths: &mut Paths, lane: &mut Lane) {
    let switches = network.len();
    let mut plan = Plan {
        network,
        numbering,
        ways: vec![NO_WAY; switches],
        carries: vec![false; switches],
        costs: vec![0; switches],
        path: Vec::new(),
    };
    let mut number = 0;
    for run in network.targets.chunk_by(|one, other| one.switch == other.switch) {
        let tree = Shortest::to(network, run[0].switch);
        for target in run {
            plan.begin(&tree, target, number, paths);
            for (switch, ways) in tree.iter() {
                plan.choose(switch, ways, target, lane);
            }
            for &(switch, _) in &tree.switches {
                paths.set(network, switch, number, plan.ways[switch as usize]);
            }
            number += 1;
        }
    }
}

/// The paths to one target.
struct Plan<'a> {
    network: &'a Network,
    numbering: &'a Numbering,
    /// By switch: the way that it takes.
    ways: Vec<u32>,
    /// By switch: whether hosts send data through it, so that its way stands.
    carries: Vec<bool>,
    /// By switch: how many dependencies of its path the lane does not have.
    costs: Vec<u32>,
    /// The dependencies of a path.
    path: Vec<Dependency>,
}

impl Plan<'_> {
    fn begin(&mut self, tree: &Shortest, target: &DestinationLid, number: u32, paths: &Paths) {
        let network = self.network;
        self.carries.fill(false);
        for &(switch, _) in tree.switches.iter().rev() {
            let way = paths.way(network, switch, number);
            let carries = self.carries[switch as usize] || network.hosts_that_send(switch, target) > 0;
            self.ways[switch as usize] = way;
            self.carries[switch as usize] = carries;
            self.carries[network.to[way as usize] as usize] |= carries;
        }
        self.ways[target.switch as usize] = NO_WAY;
        self.costs[target.switch as usize] = 0;
    }

    fn choose(&mut self, switch: u32, ways: &[u32], target: &DestinationLid, lane: &mut Lane) {
        let kept = self.ways[switch as usize];
        let mut cost = self.cost(kept, lane);
        if self.carries[switch as usize] {
            self.costs[switch as usize] = if cost == 0 { 0 } else { NEVER };
            return;
        }
        let best = ways.iter().copied().min_by_key(|way| self.cost(*way, lane)).unwrap_or(kept);
        let least = self.cost(best, lane);
        if least < cost {
            (self.ways[switch as usize], cost) = (best, least);
        }
        // What no one sends by adds nothing.
        if (1..NEVER).contains(&cost) && self.network.sends(switch, target) {
            cost = if self.take(switch, ways, lane) { 0 } else { NEVER };
        }
        self.costs[switch as usize] = cost;
    }

    /// What the lane lacks of the path of a switch that takes `way`.
    fn cost(&self, way: u32, lane: &Lane) -> u32 {
        let to = self.network.to[way as usize] as usize;
        let one = (way, self.ways[to]);
        let own = match () {
            () if one.1 == NO_WAY || lane.has(self.numbering, one) => 0,
            () if lane.refuses(self.numbering, one) => NEVER,
            () => 1,
        };
        NEVER.min(self.costs[to] + own)
    }

    /// Adds a path of `switch` to the lane, the cheapest that it takes.
    fn take(&mut self, switch: u32, ways: &[u32], lane: &mut Lane) -> bool {
        let kept = self.ways[switch as usize];
        let mut ways: Vec<(u32, u32)> = ways.iter().map(|way| (self.cost(*way, lane), *way)).collect();
        ways.sort_unstable();
        for (_, way) in ways.into_iter().take_while(|(cost, _)| *cost < NEVER) {
            self.ways[switch as usize] = way;
            self.follow(switch);
            if lane.take(self.network, self.numbering, &self.path) {
                for (way, _) in &self.path {
                    self.costs[self.network.from[*way as usize] as usize] = 0;
                }
                return true;
            }
        }
        self.ways[switch as usize] = kept;
        false
    }

    /// Collects the dependencies of the path of a switch.
    fn follow(&mut self, switch: u32) {
        self.path.clear();
        let mut way = self.ways[switch as usize];
        while way != NO_WAY {
            let next = self.ways[self.network.to[way as usize] as usize];
            if next != NO_WAY {
                self.path.push((way, next));
            }
            way = next;
        }
    }
}
