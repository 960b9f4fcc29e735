//! Paths and lanes as petgraph computes them.

use std::collections::BTreeMap;

use petgraph::algo::{dijkstra, is_cyclic_directed};
use petgraph::graph::{DiGraph, NodeIndex as Vertex, UnGraph};
use weft_routing::{Lids, Routing};
use weft_topology::{Fabric, NodeIndex, PortRef};
use weft_wire::{Lid, PortNum, VirtualLane};

/// Cables between switches from one switch to all that it is connected to.
pub(crate) fn hops(fabric: &Fabric, from: NodeIndex) -> BTreeMap<NodeIndex, usize> {
    let mut graph: UnGraph<(), ()> = UnGraph::default();
    for _ in fabric.nodes() {
        graph.add_node(());
    }
    for cable in fabric.cables() {
        if [cable.a, cable.b].iter().all(|end| fabric.node(end.node).is_switch()) {
            graph.add_edge(Vertex::new(cable.a.node.index()), Vertex::new(cable.b.node.index()), ());
        }
    }
    let hops = dijkstra(&graph, Vertex::new(from.index()), None, |_| 1);
    hops.into_iter().map(|(to, hops)| (NodeIndex(to.index() as u32), hops)).collect()
}

/// The switch of an end port.
pub(crate) fn switch_of(fabric: &Fabric, port: PortRef) -> Option<NodeIndex> {
    if fabric.node(port.node).is_switch() {
        return Some(port.node);
    }
    fabric.peer(port).map(|peer| peer.node).filter(|node| fabric.node(*node).is_switch())
}

/// The ports by which a packet for `lid` leaves switches for switches, from the switch `from` on.
pub(crate) fn way(fabric: &Fabric, routing: &Routing, from: NodeIndex, lid: Lid) -> Vec<PortRef> {
    let (mut at, mut ports) = (from, Vec::new());
    loop {
        let port = PortRef::new(at, routing.routes.port(at, lid));
        match fabric.peer(port) {
            Some(peer) if port.port != PortNum::ZERO && fabric.node(peer.node).is_switch() => at = peer.node,
            _ => return ports,
        }
        ports.push(port);
        assert!(ports.len() <= fabric.nodes().len(), "LID {lid} loops");
    }
}

/// The channels of a lane, and how packets go from one to the next.
type Channels = (DiGraph<(), ()>, BTreeMap<PortRef, Vertex>);

/// A lane on which packets can wait for each other in a circle, if there is one: of all hosts to all end ports, and of
/// all end ports to all hosts.
pub(crate) fn deadlocked_lane(fabric: &Fabric, lids: &Lids, routing: &Routing) -> Option<VirtualLane> {
    let mut channels: BTreeMap<VirtualLane, Channels> = BTreeMap::new();
    let all: Vec<(PortRef, Lid)> =
        lids.iter().flat_map(|lids| lids.iter().map(move |lid| (lids.port, lid))).collect();
    for (source, source_lid) in &all {
        let Some(from) = switch_of(fabric, *source) else { continue };
        for (destination, lid) in &all {
            if [source, destination].iter().all(|end| fabric.node(end.node).is_switch()) {
                continue;
            }
            let level = routing.levels.of(*source_lid, *lid);
            let lane = routing.lanes.lane(from, PortNum::ZERO, PortNum(1), level);
            let (graph, places) = channels.entry(lane).or_default();
            let ports = way(fabric, routing, from, *lid);
            let ways: Vec<Vertex> =
                ports.iter().map(|port| *places.entry(*port).or_insert_with(|| graph.add_node(()))).collect();
            for pair in ways.windows(2) {
                graph.update_edge(pair[0], pair[1], ());
            }
        }
    }
    let mut lanes = channels.into_iter();
    lanes.find(|(_, (graph, _))| is_cyclic_directed(graph)).map(|(lane, _)| lane)
}
