//! The LIDs to route, in their order.

use std::cmp::Reverse;
use std::ops::Range;

use weft_topology::Fabric;
use weft_wire::PortNum;

use crate::bfs::BATCH;
use crate::lids::Lids;
use crate::management::ManagementNodes;
use crate::sorted;
use crate::switches::{SwitchGraph, UNREACHED};

use super::candidates::Turn;
use super::destination::Destination;

/// The order of destinations, and what is known of switches beforehand.
pub(super) struct Plan {
    destinations: Vec<Destination>,
    /// How many LIDs hosts have. These are the first.
    host_lids: usize,
    /// How many destinations hosts are on.
    host_destinations: usize,
    /// By switch: the numbers of the LIDs of hosts on it.
    own: Vec<Range<usize>>,
    /// By switch: how many end ports of hosts are on it.
    pub(super) hosts: Vec<u16>,
    /// By switch: by what the number of a LID is divided for the digit that belongs to the switch. It is the product of
    /// the numbers of neighbours that the switches below it had to choose from on the way up: in a tree, of those LIDs
    /// that get here by everybody's choice, the next one has a number that is greater by this.
    strides: Vec<u32>,
}

/// Destinations that are searched for at once.
pub(super) struct Batch<'a> {
    pub(super) destinations: &'a [Destination],
    /// How many LIDs there are.
    pub(super) width: usize,
    runs: Vec<Run>,
}

impl Plan {
    pub(super) fn new(
        fabric: &Fabric,
        lids: &Lids,
        graph: &SwitchGraph,
        management: &ManagementNodes,
    ) -> Self {
        let (mut destinations, others) = destinations(fabric, lids, graph, management);
        let host_destinations = destinations.len();
        destinations.extend(others);
        let mut number = 0;
        let (of_hosts, of_switches) = destinations.split_at_mut(host_destinations);
        for batch in of_hosts.chunks_mut(BATCH).chain(of_switches.chunks_mut(BATCH)) {
            let start = number;
            for destination in batch {
                (destination.number, destination.first) = (number, number - start);
                number += destination.lids.len();
            }
        }
        let (mut hosts, mut own) = (vec![0; graph.len()], vec![0..0; graph.len()]);
        for destination in of_hosts.iter() {
            hosts[destination.switch as usize] = destination.ports.len() as u16;
            own[destination.switch as usize] =
                destination.number..destination.number + destination.lids.len();
        }
        let host_lids = of_hosts.last().map_or(0, |last| last.number + last.lids.len());
        let strides = strides(graph, &hosts);
        Self { destinations, host_lids, host_destinations, own, hosts, strides }
    }

    /// The batches of LIDs of hosts, and those of switches. They are apart, as within a batch those far away come first, and
    /// the LIDs of switches are to come after those of hosts.
    pub(super) fn batches(&self) -> [Vec<Batch<'_>>; 2] {
        let (of_hosts, of_switches) = self.destinations.split_at(self.host_destinations);
        [of_hosts, of_switches].map(|destinations| destinations.chunks(BATCH).map(Batch::new).collect())
    }
}

impl Plan {
    /// What the switch is like for the destination whose first LID has that number.
    pub(super) fn turn(&self, switch: u32, number: usize) -> Turn {
        Turn { stride: self.strides[switch as usize], run: self.run(switch, number) }
    }

    /// The longest run of LIDs of hosts, from that of a number on, that a switch routes without a gap: only its own
    /// are not routed.
    fn run(&self, switch: u32, number: usize) -> usize {
        let own = &self.own[switch as usize];
        match number < own.start {
            true => (own.start - number).max(self.host_lids - own.end),
            false => self.host_lids.saturating_sub(number),
        }
    }
}

impl<'a> Batch<'a> {
    fn new(destinations: &'a [Destination]) -> Self {
        let width = destinations.iter().map(|destination| destination.lids.len()).sum();
        Self { destinations, width, runs: runs(destinations) }
    }

    pub(super) fn switches(&self) -> Vec<u32> {
        self.destinations.iter().map(|destination| destination.switch).collect()
    }

    /// Copies what a table has into a row of the batch.
    pub(super) fn read(&self, entries: &[PortNum], row: &mut [PortNum]) {
        for Run { first, lids } in &self.runs {
            row[*first..first + lids.len()].copy_from_slice(&entries[lids.clone()]);
        }
    }

    /// Copies a row of the batch into a table.
    pub(super) fn write(&self, row: &[PortNum], entries: &mut [PortNum]) {
        for Run { first, lids } in &self.runs {
            entries[lids.clone()].copy_from_slice(&row[*first..first + lids.len()]);
        }
    }
}

/// LIDs that follow each other in the batch and in tables.
struct Run {
    /// The place of the first in the batch.
    first: usize,
    lids: Range<usize>,
}

fn runs(destinations: &[Destination]) -> Vec<Run> {
    let mut runs: Vec<Run> = Vec::new();
    let lids = destinations.iter().flat_map(|destination| &destination.lids);
    for (first, lid) in lids.map(|lid| usize::from(lid.0)).enumerate() {
        match runs.last_mut() {
            Some(run) if run.lids.end == lid => run.lids.end += 1,
            _ => runs.push(Run { first, lids: lid..lid + 1 }),
        }
    }
    runs
}

/// Switches with their hosts, those with most hosts first, then by the hosts' lowest LID; and the LIDs of switches and of
/// nodes that serve management alone. Hosts come first because their traffic is what balance is for, and large groups
/// because small ones even out what these leave.
fn destinations(
    fabric: &Fabric,
    lids: &Lids,
    graph: &SwitchGraph,
    management: &ManagementNodes,
) -> (Vec<Destination>, Vec<Destination>) {
    let new = |switch| Destination { switch, ports: Vec::new(), number: 0, first: 0, lids: Vec::new() };
    let (mut of_hosts, mut of_switches): (Vec<Destination>, Vec<Destination>) = (Vec::new(), Vec::new());
    let mut place_of = vec![usize::MAX; graph.len()];
    for lids in lids.iter() {
        let Some((switch, port)) = graph.attachment(fabric, lids.port) else { continue };
        let destination = if port == PortNum::ZERO || management.contains(lids.port.node) {
            of_switches.push(new(switch));
            of_switches.last_mut()
        } else {
            let place = &mut place_of[switch as usize];
            if *place == usize::MAX {
                *place = of_hosts.len();
                of_hosts.push(new(switch));
            }
            of_hosts.get_mut(*place)
        };
        let Some(destination) = destination else { continue };
        destination.lids.extend(lids.iter());
        destination.ports.push((port, lids));
    }
    sorted::by_key(&mut of_hosts, |destination| Reverse(destination.ports.len()));
    (of_hosts, of_switches)
}

/// See [`Plan::strides`]. What is below a switch is nearer to hosts.
fn strides(graph: &SwitchGraph, hosts: &[u16]) -> Vec<u32> {
    let all = 0..graph.len() as u32;
    let leaves: Vec<u32> = all.clone().filter(|switch| hosts[*switch as usize] > 0).collect();
    let heights = graph.hops_from(&leaves, |_| true);
    let height = |switch: u32| heights[switch as usize];
    let mut choices = vec![0u32; graph.len()];
    let mut order: Vec<u32> = all.filter(|switch| height(*switch) != UNREACHED).collect();
    sorted::by_key(&mut order, |switch| height(*switch));
    for switch in &order {
        let above = graph.ways(*switch).iter().map(|way| way.to).filter(|to| height(*to) > height(*switch));
        let mut above: Vec<u32> = above.collect();
        above.sort_unstable();
        above.dedup();
        choices[*switch as usize] = above.len() as u32;
    }
    let mut strides = vec![1; graph.len()];
    for switch in order {
        let below = graph.ways(switch).iter().map(|way| way.to).filter(|to| height(*to) < height(switch));
        let stride = below.map(|to| choices[to as usize].saturating_mul(strides[to as usize])).max();
        strides[switch as usize] = stride.unwrap_or(1);
    }
    strides
}
