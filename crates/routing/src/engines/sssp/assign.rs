//! Assignment of pairs of switches to lanes.

use std::cmp::Reverse;

use weft_wire::ServiceLevel;

use super::dependencies::{Dependency, Numbering, Pairs, Set};
use super::lane::Lane;
use super::management;
use super::network::{DestinationLid, Network};
use super::paths::{NO_WAY, Paths};
use crate::engines::{Input, classes_of_switches};
use crate::lanes::ServiceLevels;
use crate::sorted;

/// The lane of every pair of switches, the same in both directions, so that both ends of a connection use one.
#[derive(Debug)]
pub(super) struct Assignment {
    /// How many lanes there are.
    pub(super) lanes: usize,
    /// The pairs that are not on lane 0, with their lanes.
    others: Vec<(u32, u32, u8)>,
    /// A switch that a pair goes through which closes cycles on all lanes allowed, where there is one.
    pub(super) stuck: Option<u32>,
    /// How much was searched for cycles, in ways.
    pub(super) steps: u64,
}

/// All dependencies between two switches.
struct Pair {
    one: u32,
    other: u32,
    dependencies: Vec<Dependency>,
}

impl Assignment {
    /// Everything on one lane.
    pub(super) fn one_lane() -> Self {
        Self { lanes: 1, others: Vec::new(), stuck: None, steps: 0 }
    }

    /// Puts hosts that keep to an order with all their paths on lane 0, and what it has room for of management, whose
    /// paths are chosen for that. Then each other pair of switches, those with the most dependencies first, goes on
    /// the first of `most` lanes on which it closes no cycle.
    pub(super) fn new(
        network: &Network,
        numbering: &Numbering,
        paths: &mut Paths,
        ranks: &[u32],
        most: usize,
    ) -> Self {
        let hosts_send = |switch, target: &DestinationLid| network.hosts_that_send(switch, target) > 0;
        let forward = |(way, next): Dependency| ranks[way as usize] < ranks[next as usize];
        let back = Pairs::with_others_than(network, paths, forward, hosts_send);
        let first = Set::of_hosts_but(network, numbering, paths, &back);
        let mut first = Lane::new(numbering, first, ranks.to_vec());
        management::settle(network, numbering, paths, &mut first);
        let sends = |switch, target: &DestinationLid| network.sends(switch, target);
        let others = Pairs::with_others_than(network, paths, |one| first.has(numbering, one), sends);
        let mut pairs: Vec<Pair> =
            others.iter().map(|(one, other)| Pair::new(network, paths, one, other)).collect();
        sorted::by_key(&mut pairs, |pair| Reverse(pair.dependencies.len()));
        let mut lanes = vec![first];
        let (mut others, mut stuck) = (Vec::new(), None);
        for Pair { one, other, dependencies } in &pairs {
            let mut place = lanes.iter_mut().position(|lane| lane.take(network, numbering, dependencies));
            if place.is_none() && lanes.len() < most {
                let any_order = (0..numbering.ways()).collect();
                let mut lane = Lane::new(numbering, Set::new(numbering), any_order);
                place = lane.take(network, numbering, dependencies).then_some(lanes.len());
                lanes.push(lane);
            }
            match place {
                Some(0) => {}
                Some(lane) => others.push((*one, *other, lane as u8)),
                None => {
                    stuck = dependencies.first().map(|(way, _)| network.to[*way as usize]);
                    break;
                }
            }
        }
        let steps = lanes.iter().map(Lane::steps).sum();
        Self { lanes: lanes.len(), others, stuck, steps }
    }

    /// The lanes as service levels, by the switches that LIDs are on.
    pub(super) fn levels(&self, input: &Input<'_>, network: &Network) -> ServiceLevels {
        if self.lanes == 1 {
            return ServiceLevels::zero();
        }
        let mut levels = classes_of_switches(input, &network.graph);
        for &(one, other, lane) in &self.others {
            levels.set(one as u16, other as u16, ServiceLevel(lane));
            levels.set(other as u16, one as u16, ServiceLevel(lane));
        }
        levels
    }
}

impl Pair {
    fn new(network: &Network, paths: &Paths, one: u32, other: u32) -> Self {
        let mut dependencies = Vec::new();
        for (from, to) in [(one, other), (other, one)] {
            for target in network.targets_between(from, to) {
                let mut way = paths.way(network, from, target);
                while way != NO_WAY {
                    let next = paths.way(network, network.to[way as usize], target);
                    if next != NO_WAY {
                        dependencies.push((way, next));
                    }
                    way = next;
                }
            }
        }
        dependencies.sort_unstable();
        dependencies.dedup();
        Self { one, other, dependencies }
    }
}
