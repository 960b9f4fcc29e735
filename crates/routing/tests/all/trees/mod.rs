//! Shared tools of the tree engines' tests: breaking fabrics, following packets, and an oracle for paths that go up and
//! then down.
#![allow(dead_code)] // each test binary takes what it needs

use std::collections::{BTreeMap, VecDeque};

use petgraph::algo::is_cyclic_directed;
use petgraph::graph::DiGraph;
use weft_routing::{Engine, EngineOptions, Input, Lids, Ranks, Refusal, Routes, Routing};
use weft_topology::{Fabric, FabricBuilder, NodeIndex, PortRef};
use weft_wire::{Lid, PortNum};

/// Routes a fabric by the engine of this name.
pub(crate) fn route(
    name: &str,
    fabric: &Fabric,
    lids: &Lids,
    options: &EngineOptions,
) -> Result<Routing, Refusal> {
    Engine::by_name(name).expect("the engine is there").route(&Input { fabric, lids, options })
}

/// The node of this description or id.
pub(crate) fn node(fabric: &Fabric, name: &str) -> NodeIndex {
    let found = fabric.iter().find(|(_, node)| node.description == name || node.id == name);
    found.unwrap_or_else(|| panic!("no node is called {name}")).0
}

/// The LID of the first end port of a node.
pub(crate) fn lid(fabric: &Fabric, lids: &Lids, name: &str) -> Lid {
    let index = node(fabric, name);
    lids.iter().find(|lids| lids.port.node == index).expect("it has LIDs").base
}

/// The fabric with only those nodes and cables that stay.
pub(crate) fn broken(
    fabric: &Fabric,
    node_stays: impl Fn(NodeIndex) -> bool,
    cable_stays: impl Fn(PortRef, PortRef) -> bool,
) -> Fabric {
    let mut builder = FabricBuilder::new();
    let mut place = vec![None; fabric.nodes().len()];
    for (index, node) in fabric.iter().filter(|(index, _)| node_stays(*index)) {
        let mut node = node.clone();
        node.ports.iter_mut().for_each(|port| port.peer = None);
        place[index.index()] =
            Some(builder.add_node(node).expect("names and GUIDs are as different as before"));
    }
    for cable in fabric.cables().filter(|cable| cable_stays(cable.a, cable.b)) {
        if let (Some(a), Some(b)) = (place[cable.a.node.index()], place[cable.b.node.index()]) {
            builder
                .connect(PortRef::new(a, cable.a.port), PortRef::new(b, cable.b.port))
                .expect("the ports are free");
        }
    }
    builder.build()
}

/// The fabric without one cable, named by the descriptions of its ends and a port of the first.
pub(crate) fn cut(fabric: &Fabric, from: &str, port: u8) -> Fabric {
    let end = PortRef::new(node(fabric, from), PortNum(port));
    assert!(fabric.peer(end).is_some(), "there is a cable in {from}[{port}]");
    broken(fabric, |_| true, |a, b| a != end && b != end)
}

/// The ports by which a packet leaves the switches on its way from an end port to a LID, up to the end port that it
/// is delivered to; `None` when it does not arrive.
pub(crate) fn path(
    fabric: &Fabric,
    lids: &Lids,
    routes: &Routes,
    from: PortRef,
    to: Lid,
) -> Option<Vec<PortRef>> {
    let owner = lids.owner(to)?;
    let mut at = if fabric.node(from.node).is_switch() { from.node } else { fabric.peer(from)?.node };
    let mut path = Vec::new();
    loop {
        if !fabric.node(at).is_switch() || path.len() > 64 {
            return None;
        }
        if owner == PortRef::new(at, PortNum::ZERO) {
            return (routes.port(at, to) == PortNum::ZERO).then_some(path);
        }
        let exit = PortRef::new(at, routes.port(at, to));
        let next = fabric.peer(exit)?;
        path.push(exit);
        if next == owner {
            return Some(path);
        }
        at = next.node;
    }
}

/// By node, the least cables between switches on a path from a switch that goes up and then down in these ranks;
/// `None` where there is none.
pub(crate) fn up_down_hops(fabric: &Fabric, ranks: &Ranks, from: NodeIndex) -> Vec<Option<usize>> {
    let count = fabric.nodes().len();
    // By node: the hops while still going up, and once going down.
    let mut hops = [vec![None; count], vec![None; count]];
    let mut todo = VecDeque::from([(from, 0)]);
    hops[0][from.index()] = Some(0);
    while let Some((at, down)) = todo.pop_front() {
        let next = hops[down][at.index()].map(|hops: usize| hops + 1);
        for (_, peer) in fabric.node(at).cabled_ports() {
            let (Some(here), Some(there)) = (ranks.of(at), ranks.of(peer.node)) else { continue };
            let goes_down = usize::from(there > here);
            if here != there && goes_down >= down && hops[goes_down][peer.node.index()].is_none() {
                hops[goes_down][peer.node.index()] = next;
                todo.push_back((peer.node, goes_down));
            }
        }
    }
    let best = |(up, down): (&Option<usize>, &Option<usize>)| up.iter().chain(down).min().copied();
    hops[0].iter().zip(&hops[1]).map(best).collect()
}

/// Whether traffic between hosts, and between hosts and switches, can block itself on one lane: whether the cables
/// that its packets hold and ask for form a cycle.
pub(crate) fn deadlocks(fabric: &Fabric, lids: &Lids, routes: &Routes) -> bool {
    let (mut waits, mut vertices) = (DiGraph::<(), ()>::new(), BTreeMap::new());
    for target in lids.iter() {
        let to_host = !fabric.node(target.port.node).is_switch();
        for source in lids.iter() {
            let from_host = !fabric.node(source.port.node).is_switch();
            if !from_host && !to_host {
                continue;
            }
            for lid in target.iter() {
                let Some(path) = path(fabric, lids, routes, source.port, lid) else { continue };
                for pair in path.windows(2) {
                    let [a, b] = [pair[0], pair[1]]
                        .map(|port| *vertices.entry(port).or_insert_with(|| waits.add_node(())));
                    waits.update_edge(a, b, ());
                }
            }
        }
    }
    is_cyclic_directed(&waits)
}
