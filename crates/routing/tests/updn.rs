//! Up/down tables connect all hosts by legal paths, from any roots, on any fabric.

mod oracle;

use std::collections::{BTreeMap, BTreeSet};

use petgraph::algo::dijkstra;
use petgraph::graph::{DiGraph, NodeIndex as Vertex};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;
use weft_routing::{Engine, EngineOptions, Input, Lids, Routing, minhop, verify};
use weft_topology::generate::{GenerateOptions, RandomFabric, hypercube, random, rlft, torus, xgft};
use weft_topology::{Fabric, NodeIndex, parse};
use weft_wire::{Guid, PortNum};

use oracle::{channels, flows, is_deadlock_free, seed, switch_of, without};

fn routed_with(fabric: &Fabric, lids: &Lids, options: &EngineOptions) -> Routing {
    let engine = Engine::by_name("updn").unwrap();
    engine.route(&Input { fabric, lids, options }).expect("the fabric is served")
}

fn routed(fabric: &Fabric, lmc: u8) -> (Lids, Routing) {
    let lids = Lids::in_guid_order(fabric, lmc).expect("there are enough LIDs");
    let routing = routed_with(fabric, &lids, &EngineOptions::default());
    (lids, routing)
}

/// Which way up is, by the ranks that the routing tells.
fn is_up(fabric: &Fabric, routing: &Routing, from: NodeIndex, to: NodeIndex) -> bool {
    let height = |node| (routing.ranks.as_ref().unwrap().of(node).unwrap(), fabric.node(node).guid);
    height(to) < height(from)
}

/// For one destination: the hops of a legal path from every switch that has one. A switch is two vertices, one for
/// packets that may still go up and one for those that may not. `steady` leaves out going up from where there is a way
/// down, which is what tables that do not know where a packet came from can do.
fn legal_hops(fabric: &Fabric, routing: &Routing, to: NodeIndex, steady: bool) -> BTreeMap<NodeIndex, u32> {
    let count = fabric.nodes().len();
    let (climbing, falling) =
        (|node: NodeIndex| Vertex::new(node.index()), |node: NodeIndex| Vertex::new(count + node.index()));
    let mut down: DiGraph<(), ()> = DiGraph::new();
    for _ in 0..2 * count {
        down.add_node(());
    }
    let mut ups = Vec::new();
    for (from, node) in fabric.switches() {
        for (_, peer) in node.cabled_ports().filter(|(_, peer)| fabric.node(peer.node).is_switch()) {
            if is_up(fabric, routing, from, peer.node) {
                ups.push((from, peer.node));
            } else {
                // Edges are turned round, so that one search finds the way from everywhere.
                down.add_edge(falling(peer.node), falling(from), ());
            }
        }
        down.add_edge(falling(from), climbing(from), ());
    }
    let cost = |edge: petgraph::graph::EdgeReference<'_, ()>| {
        use petgraph::visit::EdgeRef;
        u32::from(edge.source().index() != edge.target().index() + count)
    };
    let has_way_down = dijkstra(&down, falling(to), None, cost);
    for (from, above) in ups {
        if !steady || !has_way_down.contains_key(&falling(from)) {
            down.add_edge(climbing(above), climbing(from), ());
        }
    }
    let hops = dijkstra(&down, falling(to), None, cost);
    fabric.switches().filter_map(|(node, _)| Some((node, *hops.get(&climbing(node))?))).collect()
}

/// All that up/down promises of a fabric.
fn check(fabric: &Fabric, lids: &Lids, routing: &Routing, what: &str) -> (u32, u32) {
    assert!(is_deadlock_free(fabric, lids, routing), "{what}");
    let piece_of = switch_pieces(fabric);
    for (from, lid, channels) in flows(fabric, lids, routing) {
        let to = lids.owner(lid).unwrap();
        let pieces = [from.port, to].map(|port| switch_of(fabric, port).map(|node| piece_of[&node]));
        let connected = pieces[0].is_some() && pieces[0] == pieces[1];
        assert_eq!(
            channels.is_some(),
            connected,
            "{what}: from {} to LID {lid}",
            fabric.port_name(from.port)
        );
    }
    let (mut longer, mut all) = (0, 0);
    for to in lids.iter() {
        let Some(last) = switch_of(fabric, to.port) else { continue };
        let (steady, least) =
            (legal_hops(fabric, routing, last, true), legal_hops(fabric, routing, last, false));
        for from in lids.iter().filter(|from| fabric.node(from.port.node).is_switch()) {
            for lid in to.iter() {
                let hops = channels(fabric, routing, from, (to.port, lid))
                    .map(|channels| channels.len() as u32 - u32::from(last != to.port.node));
                let here = from.port.node;
                assert_eq!(
                    hops,
                    steady.get(&here).copied(),
                    "{what}: from {} to LID {lid}",
                    fabric.node(here).id
                );
                all += 1;
                longer += u32::from(hops != least.get(&here).copied());
            }
        }
    }
    (longer, all)
}

/// The piece of every switch, where hosts connect nothing.
fn switch_pieces(fabric: &Fabric) -> BTreeMap<NodeIndex, u32> {
    let hosts = fabric.iter().filter(|(_, node)| !node.is_switch()).map(|(index, _)| index).collect();
    let switches = without(fabric, &hosts, &BTreeSet::new());
    let pieces = switches.components();
    let at_home = |node: NodeIndex| fabric.by_guid(switches.node(node).guid).unwrap();
    switches.iter().map(|(index, _)| (at_home(index), pieces[index.index()])).collect()
}

fn some(random: &mut Pcg64, from: u32, to: u32) -> u32 {
    random.random_range(from..to)
}

#[test]
fn on_random_fabrics_all_that_is_connected_is_routed_legally() {
    let mut draws = Pcg64::seed_from_u64(seed());
    let (mut longer, mut all) = (0, 0);
    for round in 0..150 {
        let switches = some(&mut draws, 1, 20);
        let beyond = u32::from(switches > 1);
        let parameters = RandomFabric {
            switches,
            hosts: some(&mut draws, 0, 16),
            extra_cables: beyond * some(&mut draws, 0, 24),
            parallel_cables: beyond * some(&mut draws, 0, 4),
        };
        let whole = random(&parameters, draws.random(), &GenerateOptions::default()).unwrap();
        let cut_every = some(&mut draws, 2, 20) as usize;
        let cut = (0..whole.cables().count()).filter(|cable| cable % cut_every == 0).collect();
        let fabric = without(&whole, &BTreeSet::new(), &cut);
        let (lids, routing) = routed(&fabric, some(&mut draws, 0, 3) as u8);
        let counts = check(&fabric, &lids, &routing, &format!("seed {}, round {round}", seed()));
        longer += counts.0;
        all += counts.1;
    }
    eprintln!("{longer} of {all}");
}
