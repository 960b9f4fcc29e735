//! The fabric as these engines see it: switches, ways, who sends and who receives.

use std::cmp::Reverse;
use std::ops::Range;

use weft_topology::{Fabric, PortRef};
use weft_wire::{Lid, PortNum};

use crate::lids::Lids;
use crate::sorted;
use crate::switches::SwitchGraph;

/// The switch graph, numbered in the order of GUIDs, with what paths and lanes need besides.
#[derive(Debug)]
pub(super) struct Network {
    pub(super) graph: SwitchGraph,
    /// By way: the switch that it leaves.
    pub(super) from: Vec<u32>,
    /// By way: the switch that it leads to.
    pub(super) to: Vec<u32>,
    /// By way: the way back by the same cable.
    pub(super) back: Vec<u32>,
    /// By switch: how many end ports of hosts are on it. One counts as often as it has entries in the LIDs.
    pub(super) hosts: Vec<u32>,
    /// Every LID that a switch delivers, in the order of routing: hosts first, then the switches themselves. Those
    /// on one switch follow each other.
    pub(super) targets: Vec<DestinationLid>,
    /// By switch: where its hosts are among the targets.
    host_targets: Vec<Range<u32>>,
    /// By switch: where it is itself among the targets.
    own_targets: Vec<Range<u32>>,
}

/// A LID to route to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct DestinationLid {
    pub(super) lid: Lid,
    /// The switch that delivers it.
    pub(super) switch: u32,
    /// By which port; 0 where it is the switch's own.
    pub(super) port: PortNum,
}

impl Network {
    pub(super) fn new(fabric: &Fabric, lids: &Lids) -> Self {
        let graph = SwitchGraph::in_guid_order(fabric);
        let (mut from, mut to, mut back) = (Vec::new(), Vec::new(), Vec::new());
        for switch in 0..graph.len() as u32 {
            for way in graph.ways(switch) {
                from.push(switch);
                to.push(way.to);
                let port = PortRef::new(graph.nodes[switch as usize], way.port);
                let peer = fabric.peer(port).expect("ways are cabled");
                let offset = graph.ways(way.to).partition_point(|other| other.port < peer.port);
                back.push((graph.row(way.to).start + offset) as u32);
            }
        }
        let mut hosts = vec![0; graph.len()];
        let (mut targets, mut own) = (Vec::new(), Vec::new());
        for lids in lids.iter() {
            let Some((switch, port)) = graph.attachment(fabric, lids.port) else { continue };
            let list = if port == PortNum::ZERO { &mut own } else { &mut targets };
            list.extend(lids.iter().map(|lid| DestinationLid { lid, switch, port }));
            hosts[switch as usize] += u32::from(port != PortNum::ZERO);
        }
        // What is routed last finds the least choice: let that be what serves the fewest.
        let order =
            |target: &DestinationLid| (Reverse(hosts[target.switch as usize]), target.switch, target.lid);
        sorted::by_key(&mut targets, order);
        sorted::by_key(&mut own, order);
        let host_targets = ranges(&targets, 0, graph.len());
        let own_targets = ranges(&own, targets.len() as u32, graph.len());
        targets.append(&mut own);
        Self { graph, from, to, back, hosts, targets, host_targets, own_targets }
    }

    /// How many switches there are.
    pub(super) fn len(&self) -> usize {
        self.graph.len()
    }

    /// Whether there is anything on `switch` that sends to `target`: a switch's management answers hosts, and no
    /// other switch's.
    pub(super) fn sends(&self, switch: u32, target: &DestinationLid) -> bool {
        self.hosts[switch as usize] > 0 || target.port != PortNum::ZERO
    }

    /// How many hosts on `switch` send to `target` where that is a host.
    pub(super) fn hosts_that_send(&self, switch: u32, target: &DestinationLid) -> u32 {
        if target.port == PortNum::ZERO { 0 } else { self.hosts[switch as usize] }
    }

    /// The targets on `to` that something on `from` sends to.
    pub(super) fn targets_between(&self, from: u32, to: u32) -> impl Iterator<Item = u32> {
        let own = if self.hosts[from as usize] > 0 { self.own_targets[to as usize].clone() } else { 0..0 };
        self.host_targets[to as usize].clone().chain(own)
    }
}

/// By switch, where its targets are among `targets`, of which the first is number `first`.
fn ranges(targets: &[DestinationLid], first: u32, switches: usize) -> Vec<Range<u32>> {
    let mut ranges = vec![0..0; switches];
    let mut start = first;
    for run in targets.chunk_by(|one, other| one.switch == other.switch) {
        let end = start + run.len() as u32;
        ranges[run[0].switch as usize] = start..end;
        start = end;
    }
    ranges
}
