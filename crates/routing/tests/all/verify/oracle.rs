//! The verifier's oracle: it follows one packet after the other and asks petgraph about cycles.

use std::collections::{BTreeMap, BTreeSet};

use petgraph::algo::{dijkstra, is_cyclic_directed};
use petgraph::graph::{DiGraph, NodeIndex as Vertex};
use weft_routing::{Lids, Pair, Routing};
use weft_topology::{Fabric, NodeIndex, PortRef};
use weft_wire::{Lid, PortNum, ServiceLevel};

/// A LID that some switch serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct End {
    pub(crate) lid: Lid,
    pub(crate) port: PortRef,
    pub(crate) host: bool,
}

/// Every LID that some switch serves, in order.
pub(crate) fn ends(fabric: &Fabric, lids: &Lids) -> Vec<End> {
    let mut ends = Vec::new();
    for lids in lids.iter() {
        let Some(node) = fabric.nodes().get(lids.port.node.index()) else { continue };
        let host = !node.is_switch();
        let on_switch = fabric.peer(lids.port).is_some_and(|peer| fabric.node(peer.node).is_switch());
        if !host || on_switch {
            ends.extend(lids.iter().map(|lid| End { lid, port: lids.port, host }));
        }
    }
    ends
}

/// Where a packet comes by.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Walk {
    /// The ports by which switches send it to other switches, with the lanes, until it is dropped.
    pub(crate) channels: Vec<(PortRef, u8)>,
    /// The same ports without lanes, all the way.
    pub(crate) exits: Vec<PortRef>,
    pub(crate) arrives: bool,
    pub(crate) dropped: bool,
    pub(crate) loops: bool,
}

/// Tables and lanes as a packet meets them.
pub(crate) trait World {
    fn exit(&self, node: NodeIndex, lid: Lid) -> PortNum;
    /// The lane, if there is one.
    fn lane(&self, node: NodeIndex, entry: PortNum, exit: PortNum, level: ServiceLevel) -> Option<u8>;
}

impl World for Routing {
    fn exit(&self, node: NodeIndex, lid: Lid) -> PortNum {
        self.routes.port(node, lid)
    }

    fn lane(&self, node: NodeIndex, entry: PortNum, exit: PortNum, level: ServiceLevel) -> Option<u8> {
        let lane = self.lanes.lane(node, entry, exit, level);
        (lane.0 < 15).then_some(lane.0)
    }
}

/// Follows a packet from an end port, three times round if it loops, so that everything it waits for is seen.
pub(crate) fn walk(
    fabric: &Fabric,
    world: &impl World,
    from: PortRef,
    to: (Lid, PortRef),
    level: ServiceLevel,
) -> Walk {
    let mut walk = Walk::default();
    let mut at = PortRef::new(from.node, PortNum::ZERO);
    if !fabric.node(from.node).is_switch() {
        walk.dropped = world.lane(from.node, PortNum::ZERO, from.port, level).is_none();
        at = fabric.peer(from).expect("it has a cable");
    }
    for _ in 0..3 * fabric.switches().count() + 1 {
        let exit = world.exit(at.node, to.0);
        if exit == PortNum::ZERO {
            walk.arrives = at.node == to.1.node;
            return walk;
        }
        let Some(peer) = fabric.peer(PortRef::new(at.node, exit)) else { return walk };
        let lane = world.lane(at.node, at.port, exit, level);
        walk.dropped |= lane.is_none();
        if !fabric.node(peer.node).is_switch() {
            walk.arrives = peer == to.1;
            return walk;
        }
        if peer.node == at.node {
            return walk;
        }
        walk.exits.push(PortRef::new(at.node, exit));
        if let Some(lane) = lane.filter(|_| !walk.dropped) {
            walk.channels.push((PortRef::new(at.node, exit), lane));
        }
        at = peer;
    }
    walk.loops = true;
    walk
}

/// A channel on a lane.
pub(crate) type PortLane = (PortRef, u8);

/// Which channels carry packets, and which wait for which.
#[derive(Debug, Default)]
pub(crate) struct Waiting {
    pub(crate) carried: BTreeSet<PortLane>,
    /// With the first pair, by destination and then by source.
    pub(crate) waits: BTreeMap<(PortLane, PortLane), (Lid, Lid)>,
}

impl Waiting {
    pub(crate) fn add(&mut self, walk: &Walk, pair: Pair) {
        self.carried.extend(&walk.channels);
        let order = (pair.destination, pair.source);
        for step in walk.channels.windows(2) {
            let first = self.waits.entry((step[0], step[1])).or_insert(order);
            *first = order.min(*first);
        }
    }

    /// The length of the shortest cycle among channels on these lanes, by petgraph.
    pub(crate) fn shortest_cycle(&self, lanes: impl Fn(u8) -> bool) -> Option<usize> {
        let mut graph: DiGraph<PortLane, ()> = DiGraph::new();
        let mut vertices: BTreeMap<PortLane, Vertex> = BTreeMap::new();
        for (from, to) in self.waits.keys().filter(|(from, to)| lanes(from.1) && lanes(to.1)) {
            let [from, to] =
                [from, to].map(|place| *vertices.entry(*place).or_insert_with(|| graph.add_node(*place)));
            graph.add_edge(from, to, ());
        }
        let through = |vertex: Vertex| {
            let distances = dijkstra(&graph, vertex, None, |_| 1usize);
            let back = graph.neighbors_directed(vertex, petgraph::Incoming);
            back.filter_map(|last| distances.get(&last).map(|distance| distance + 1)).min()
        };
        let shortest = graph.node_indices().filter_map(through).min();
        assert_eq!(shortest.is_some(), is_cyclic_directed(&graph));
        shortest
    }
}

/// Everything that a routing makes wait.
pub(crate) fn waiting(fabric: &Fabric, lids: &Lids, routing: &Routing) -> Waiting {
    let mut waiting = Waiting::default();
    let ends = ends(fabric, lids);
    for (source, destination) in ends.iter().flat_map(|source| ends.iter().map(move |end| (source, end))) {
        if source.host || destination.host {
            let level = routing.levels.of(source.lid, destination.lid);
            let walk = walk(fabric, routing, source.port, (destination.lid, destination.port), level);
            waiting.add(&walk, Pair { source: source.lid, destination: destination.lid });
        }
    }
    waiting
}

/// The least number of cables from every switch to every other, by petgraph.
pub(crate) fn distances(fabric: &Fabric) -> BTreeMap<(NodeIndex, NodeIndex), usize> {
    let mut graph: DiGraph<NodeIndex, ()> = DiGraph::new();
    let vertices: BTreeMap<NodeIndex, Vertex> =
        fabric.switches().map(|(node, _)| (node, graph.add_node(node))).collect();
    for (node, _) in fabric.switches() {
        for (_, peer) in fabric.node(node).cabled_ports() {
            if let Some(peer) = vertices.get(&peer.node) {
                graph.add_edge(vertices[&node], *peer, ());
            }
        }
    }
    let from = |node: NodeIndex| {
        let distances = dijkstra(&graph, vertices[&node], None, |_| 1usize);
        distances.into_iter().map(move |(to, hops)| ((node, to), hops)).collect::<Vec<_>>()
    };
    vertices.keys().flat_map(|node| from(*node)).map(|((from, to), hops)| ((from, graph[to]), hops)).collect()
}

/// The switch that serves an end port.
pub(crate) fn switch_of(fabric: &Fabric, port: PortRef) -> NodeIndex {
    if fabric.node(port.node).is_switch() {
        return port.node;
    }
    fabric.peer(port).expect("it has a cable").node
}
