//! Cycles and paths as petgraph finds them, and fabrics that are not whole.

use std::collections::{BTreeMap, BTreeSet};

use petgraph::algo::{dijkstra, is_cyclic_directed};
use petgraph::graph::{DiGraph, NodeIndex as Vertex, UnGraph};
use rand::RngExt;
use rand_pcg::Pcg64;
use weft_routing::{Lids, PortLids, Routes, Routing};
use weft_topology::generate::{GenerateOptions, RandomFabric, random};
use weft_topology::{Fabric, FabricBuilder, NodeIndex, PortRef};
use weft_wire::{Guid, Lid, PortNum, VirtualLane};

/// The seed of this run: `WEFT_SEED`, or one that is always the same.
pub(crate) fn seed() -> u64 {
    std::env::var("WEFT_SEED").map_or(1, |seed| seed.parse().expect("WEFT_SEED is a number"))
}

/// The fabric without some nodes and some cables, counted as [`Fabric::cables`] does.
pub(crate) fn without(fabric: &Fabric, nodes: &BTreeSet<NodeIndex>, cables: &BTreeSet<usize>) -> Fabric {
    let mut builder = FabricBuilder::new();
    let mut moved = BTreeMap::new();
    for (index, node) in fabric.iter().filter(|(index, _)| !nodes.contains(index)) {
        moved.insert(index, builder.add_node(node.clone()).expect("it was a node before"));
    }
    let end = |port: PortRef| moved.get(&port.node).map(|node| PortRef::new(*node, port.port));
    for (_, cable) in fabric.cables().enumerate().filter(|(number, _)| !cables.contains(number)) {
        if let (Some(a), Some(b)) = (end(cable.a), end(cable.b)) {
            builder.connect(a, b).expect("it was a cable before");
        }
    }
    builder.build()
}

/// The switch that an end port is, or is cabled to.
pub(crate) fn switch_of(fabric: &Fabric, port: PortRef) -> Option<NodeIndex> {
    if fabric.node(port.node).is_switch() {
        return Some(port.node);
    }
    fabric.peer(port).map(|peer| peer.node).filter(|node| fabric.node(*node).is_switch())
}

/// A port that sends, on a lane.
pub(crate) type Channel = (PortRef, VirtualLane);

/// The channels that a packet takes; `None` if it does not arrive.
pub(crate) fn channels(
    fabric: &Fabric,
    routing: &Routing,
    from: PortLids,
    to: (PortRef, Lid),
) -> Option<Vec<Channel>> {
    let level = routing.levels.of(from.base, to.1);
    let (mut at, mut entry) = (from.port.node, PortNum::ZERO);
    let mut channels = Vec::new();
    while at != to.0.node {
        let exit = match fabric.node(at).is_switch() {
            true => routing.routes.port(at, to.1),
            false if channels.is_empty() => from.port.port,
            false => return None,
        };
        channels.push((PortRef::new(at, exit), routing.lanes.lane(at, entry, exit, level)));
        let peer = fabric.peer(PortRef::new(at, exit))?;
        (at, entry) = (peer.node, peer.port);
        if channels.len() > fabric.nodes().len() {
            return None;
        }
    }
    Some(channels)
}

/// All pairs of which one end is a host, and the channels of their packets: to every LID from the first LID of every
/// other end port.
pub(crate) fn flows<'a>(
    fabric: &'a Fabric,
    lids: &'a Lids,
    routing: &'a Routing,
) -> impl Iterator<Item = (PortLids, Lid, Option<Vec<Channel>>)> + 'a {
    let is_switch = |lids: &PortLids| fabric.node(lids.port.node).is_switch();
    let pairs = lids.iter().flat_map(move |from| lids.iter().map(move |to| (from, to)));
    let pairs = pairs.filter(move |(from, to)| from.port != to.port && !(is_switch(from) && is_switch(to)));
    pairs
        .flat_map(|(from, to)| to.iter().map(move |lid| (from, to.port, lid)))
        .map(|(from, port, lid)| (from, lid, channels(fabric, routing, from, (port, lid))))
}

/// Whether no packets can wait for each other in a circle: the channel dependency graph has no cycle.
pub(crate) fn is_deadlock_free(fabric: &Fabric, lids: &Lids, routing: &Routing) -> bool {
    let mut graph: DiGraph<(), ()> = DiGraph::new();
    let mut vertices: BTreeMap<Channel, Vertex> = BTreeMap::new();
    let mut edges = BTreeSet::new();
    for (_, _, channels) in flows(fabric, lids, routing) {
        for pair in channels.unwrap_or_default().windows(2) {
            edges.insert((pair[0], pair[1]));
        }
    }
    for (a, b) in edges {
        let [a, b] = [a, b].map(|channel| *vertices.entry(channel).or_insert_with(|| graph.add_node(())));
        graph.add_edge(a, b, ());
    }
    !is_cyclic_directed(&graph)
}

/// The same fabric with its nodes in another order.
pub(crate) fn shuffled(fabric: &Fabric, by: usize) -> Fabric {
    let count = fabric.nodes().len();
    // Any number that shares no factor with the count visits every node once.
    let step = (by % count + 1..).find(|step| gcd(*step, count) == 1).expect("count + 1 is one");
    let mut builder = FabricBuilder::new();
    for place in 0..count {
        builder.add_node(fabric.nodes()[place * step % count].clone()).expect("it was a node before");
    }
    let moved = |builder: &FabricBuilder, port: PortRef| {
        let guid = fabric.node(port.node).guid;
        PortRef::new(builder.fabric().by_guid(guid).expect("it was added"), port.port)
    };
    let mut cables: Vec<_> = fabric.cables().collect();
    cables.reverse();
    for cable in cables {
        let (a, b) = (moved(&builder, cable.a), moved(&builder, cable.b));
        builder.connect(b, a).expect("it was a cable before");
    }
    builder.build()
}

fn gcd(a: usize, b: usize) -> usize {
    if b == 0 { a } else { gcd(b, a % b) }
}

pub(crate) fn tables_by_guid(fabric: &Fabric, routes: &Routes) -> BTreeMap<Guid, Vec<(Lid, PortNum)>> {
    fabric.iter().map(|(index, node)| (node.guid, routes.tables[index.index()].routes().collect())).collect()
}

/// Hops between switches by petgraph's reckoning.
pub(crate) fn petgraph_hops(fabric: &Fabric, from: NodeIndex) -> BTreeMap<NodeIndex, u32> {
    let mut graph: UnGraph<(), ()> = UnGraph::default();
    for _ in fabric.nodes() {
        graph.add_node(());
    }
    for cable in fabric.cables() {
        if fabric.node(cable.a.node).is_switch() && fabric.node(cable.b.node).is_switch() {
            graph.add_edge(Vertex::new(cable.a.node.index()), Vertex::new(cable.b.node.index()), ());
        }
    }
    let hops = dijkstra(&graph, Vertex::new(from.index()), None, |_| 1u32);
    hops.into_iter().map(|(to, hops)| (NodeIndex(to.index() as u32), hops)).collect()
}

/// A number from a range.
pub(crate) fn some(random: &mut Pcg64, from: u32, to: u32) -> u32 {
    random.random_range(from..to)
}

/// A random fabric, maybe in pieces.
pub(crate) fn drawn(draws: &mut Pcg64) -> Fabric {
    let switches = some(draws, 1, 20);
    let beyond = u32::from(switches > 1);
    let parameters = RandomFabric {
        switches,
        hosts: some(draws, 0, 16),
        extra_cables: beyond * some(draws, 0, 24),
        parallel_cables: beyond * some(draws, 0, 4),
    };
    let whole =
        random(&parameters, draws.random(), &GenerateOptions::default()).expect("it has enough ports");
    let cut_every = some(draws, 2, 20) as usize;
    let cut = (0..whole.cables().count()).filter(|cable| cable % cut_every == 0).collect();
    without(&whole, &BTreeSet::new(), &cut)
}
