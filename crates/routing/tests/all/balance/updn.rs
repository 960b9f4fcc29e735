//! Up/down tables connect all hosts by legal paths, from any roots, on any fabric.

use std::collections::{BTreeMap, BTreeSet};

use petgraph::algo::dijkstra;
use petgraph::graph::{DiGraph, NodeIndex as Vertex};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;
use weft_routing::{
    Engine, EngineOptions, Expectations, Input, Lids, Refusal, Routing, minhop, trace, verify_routing,
};
use weft_topology::generate::{GenerateOptions, hypercube, rlft, torus};
use weft_topology::{Fabric, FabricBuilder, LinkRate, Node, NodeIndex, PortRef, parse};
use weft_wire::{Guid, NodeType, PortNum};

use super::oracle::{
    channels, drawn, flows, is_deadlock_free, seed, shuffled, some, switch_of, tables_by_guid, without,
};

fn routed_with(fabric: &Fabric, lids: &Lids, options: &EngineOptions) -> Routing {
    route(fabric, lids, options).unwrap_or_else(|refusal| panic!("{refusal}"))
}

fn route(fabric: &Fabric, lids: &Lids, options: &EngineOptions) -> Result<Routing, Refusal> {
    let engine = Engine::by_name("updn").expect("there is one");
    engine.route(&Input { fabric, lids, options })
}

fn routed(fabric: &Fabric, lmc: u8) -> (Lids, Routing) {
    let lids = Lids::in_guid_order(fabric, lmc).expect("there are enough LIDs");
    let routing = routed_with(fabric, &lids, &EngineOptions::default());
    (lids, routing)
}

/// Which way up is, by the ranks that the routing tells.
fn is_up(fabric: &Fabric, routing: &Routing, from: NodeIndex, to: NodeIndex) -> bool {
    let ranks = routing.ranks.as_ref().expect("up/down has ranks");
    let height = |node| (ranks.of(node).expect("a switch has a rank"), fabric.node(node).guid);
    height(to) < height(from)
}

/// For one destination: the hops of a legal path from every switch that has one. A switch is two vertices, one for
/// packets that may still go up and one for those that may not. `steady` leaves out going up from where there is a way
/// down, which tables can do that do not know where a packet came from.
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
    let expectations = Expectations { tree: true, lanes: 1, ..Expectations::default() };
    let verdict = verify_routing(fabric, lids, routing, &expectations);
    assert!(verdict.is_sound() && verdict.is_deadlock_free() && verdict.is_symmetric(), "{what}: {verdict}");
    let piece_of = switch_pieces(fabric);
    for (from, lid, channels) in flows(fabric, lids, routing) {
        let to = lids.owner(lid).expect("a flow is to somebody");
        let pieces = [from.port, to].map(|port| switch_of(fabric, port).map(|node| piece_of[&node]));
        let connected = pieces[0].is_some() && pieces[0] == pieces[1];
        assert_eq!(
            channels.is_some(),
            connected,
            "{what}: from {} to LID {lid}",
            fabric.port_name(from.port)
        );
    }
    let (mut longer, mut all, mut hops_to) = (0, 0, BTreeMap::new());
    for to in lids.iter() {
        let Some(last) = switch_of(fabric, to.port) else { continue };
        let (steady, least) = hops_to.entry(last).or_insert_with(|| {
            (legal_hops(fabric, routing, last, true), legal_hops(fabric, routing, last, false))
        });
        for from in lids.iter().filter(|from| fabric.node(from.port.node).is_switch()) {
            for lid in to.iter() {
                let here = from.port.node;
                let hops = channels(fabric, routing, from, (to.port, lid))
                    .map(|channels| channels.len() as u32 - u32::from(last != to.port.node));
                let (steady, least) = (steady.get(&here).copied(), least.get(&here).copied());
                let id = &fabric.node(here).id;
                assert!(
                    least <= hops && hops <= steady && hops.is_some() == least.is_some(),
                    "{what}: from {id} to LID {lid}: {least:?}, {hops:?}, {steady:?}"
                );
                all += 1;
                longer += u32::from(hops != least);
            }
        }
    }
    (longer, all)
}

/// The piece of every switch, where hosts connect nothing.
fn switch_pieces(fabric: &Fabric) -> BTreeMap<NodeIndex, u32> {
    let hosts = fabric.iter().filter(|(_, node)| !node.is_switch()).map(|(index, _)| index).collect();
    let switches = without(fabric, &hosts, &BTreeSet::new());
    let pieces = switches.pieces();
    let at_home = |node: NodeIndex| fabric.by_guid(switches.node(node).guid).expect("it is of this fabric");
    switches.iter().filter_map(|(index, _)| Some((at_home(index), pieces.of_node(index).next()?))).collect()
}

#[test]
fn on_random_fabrics_all_that_is_connected_is_routed_legally() {
    let mut draws = Pcg64::seed_from_u64(seed());
    let (mut longer, mut all) = (0, 0);
    for round in 0..150 {
        let fabric = drawn(&mut draws);
        let (lids, routing) = routed(&fabric, some(&mut draws, 0, 3) as u8);
        let counts = check(&fabric, &lids, &routing, &format!("WEFT_SEED={}, round {round}", seed()));
        longer += counts.0;
        all += counts.1;
    }
    assert!(
        longer * 500 < all,
        "of {all} paths {longer} could be shorter, if tables knew where packets come from"
    );
}

#[test]
fn any_roots_that_are_given_do() {
    let mut draws = Pcg64::seed_from_u64(seed());
    for round in 0..60 {
        let fabric = drawn(&mut draws);
        let pieces = switch_pieces(&fabric);
        // One root for each piece, and any others.
        let first_of = |piece: u32| pieces.iter().find(|(_, other)| **other == piece).map(|(node, _)| *node);
        let firsts: BTreeSet<_> = pieces.values().filter_map(|piece| first_of(*piece)).collect();
        let given = pieces.keys().filter(|node| firsts.contains(node) || draws.random_range(0..3) == 0);
        let roots = given.map(|node| fabric.node(*node).guid).collect();
        let options = EngineOptions { roots, ..EngineOptions::default() };
        let lids = Lids::in_guid_order(&fabric, 0).unwrap();
        let routing = routed_with(&fabric, &lids, &options);
        check(&fabric, &lids, &routing, &format!("WEFT_SEED={}, round {round}", seed()));
    }
}

/// The switches of the highest level of a generated tree.
fn top(fabric: &Fabric, levels: u32) -> BTreeSet<String> {
    let name = format!("switch-{levels}-");
    let top = fabric.switches().filter(|(_, node)| node.description.starts_with(&name));
    top.map(|(_, node)| node.id.clone()).collect()
}

#[test]
fn the_roots_of_broken_trees_are_found() {
    let any = GenerateOptions::default();
    let mut draws = Pcg64::seed_from_u64(seed());
    for round in 0..12 {
        let levels = 2 + round % 2;
        let whole = if levels == 2 { rlft(12, 2, &any) } else { rlft(8, 3, &any) }.unwrap();
        let cables = whole.cables().count();
        let count = draws.random_range(0..cables / 12);
        let cut = (0..count).map(|_| draws.random_range(0..cables)).collect();
        let switches: Vec<_> = whole.switches().map(|(node, _)| node).collect();
        let lost = (0..draws.random_range(0..2)).map(|_| switches[draws.random_range(0..switches.len())]);
        let fabric = without(&whole, &lost.collect(), &cut);
        let (lids, routing) = routed(&fabric, 0);
        let what = format!("WEFT_SEED={}, round {round}", seed());
        check(&fabric, &lids, &routing, &what);
        let roots: BTreeSet<String> = routing.report.roots.into_iter().collect();
        assert_eq!(roots, top(&fabric, levels), "{what}");
    }
}

#[test]
fn on_a_whole_tree_no_host_takes_a_detour_and_uplinks_are_even() {
    let any = GenerateOptions::default();
    // The second has a host on a root, as a host that manages the fabric may be.
    let odd = {
        let whole = rlft(8, 2, &any).unwrap();
        let mut builder = FabricBuilder::new();
        for node in whole.nodes().iter().chain([&Node::new(NodeType::Hca, Guid(77), 1, LinkRate::default())])
        {
            let mut node = node.clone();
            if node.is_switch() {
                node.ports.resize(12, node.ports[1]);
            }
            for port in &mut node.ports {
                port.peer = None;
            }
            builder.add_node(node).unwrap();
        }
        for cable in whole.cables() {
            builder.connect(cable.a, cable.b).unwrap();
        }
        let ends = [("switch-2-1", 11), ("H-000000000000004d", 1)];
        let ends = ends.map(|(name, port)| PortRef::new(builder.fabric().find(name).unwrap(), PortNum(port)));
        builder.connect(ends[0], ends[1]).unwrap();
        builder.build()
    };
    for (fabric, levels) in [(rlft(8, 3, &any).unwrap(), 3), (odd, 2), (rlft(36, 2, &any).unwrap(), 2)] {
        let (lids, routing) = routed(&fabric, 0);
        let roots: BTreeSet<String> = routing.report.roots.iter().cloned().collect();
        assert_eq!(roots, top(&fabric, levels));
        assert_eq!(routing.report.ranks, Some(routing.ranks.as_ref().unwrap().count()));
        let shortest = minhop(&fabric, &lids);
        let hosts: Vec<_> = lids.iter().filter(|lids| !fabric.node(lids.port.node).is_switch()).collect();
        for (leaf, node) in fabric.switches().filter(|(_, node)| node.description.starts_with("switch-1-")) {
            let mut loads = BTreeMap::new();
            for to in &hosts {
                let from = lids.of(PortRef::new(leaf, PortNum::ZERO)).unwrap();
                let hops = channels(&fabric, &routing, from, (to.port, to.base)).unwrap().len();
                let least = trace(&fabric, &lids, &shortest, from.port, to.base).unwrap().cables();
                assert_eq!(hops, least, "from {} to LID {}", node.id, to.base);
                *loads.entry(routing.routes.port(leaf, to.base)).or_insert(0) += 1;
            }
            let uplinks = node.cabled_ports().filter(|(_, peer)| fabric.node(peer.node).is_switch());
            let loads: Vec<_> = uplinks.filter_map(|(port, _)| loads.get(&port)).collect();
            let (least, most) = (*loads.iter().min().unwrap(), *loads.iter().max().unwrap());
            assert!(most - least <= 1, "{}: {least} to {most}", node.id);
        }
    }
}

#[test]
fn every_piece_gets_roots_of_its_own() {
    let any = GenerateOptions::default();
    let whole = rlft(8, 3, &any).unwrap();
    // Without roots, every eighth of the tree is a tree of two levels.
    let lost = whole.switches().filter(|(_, node)| node.description.starts_with("switch-3-"));
    let fabric = without(&whole, &lost.map(|(node, _)| node).collect(), &BTreeSet::new());
    let (lids, routing) = routed(&fabric, 0);
    check(&fabric, &lids, &routing, "8 pieces");
    assert_eq!(routing.report.roots.iter().cloned().collect::<BTreeSet<_>>(), top(&fabric, 2));
    assert_eq!(routing.report.fallbacks, [""; 0]);
}

/// Two leaves that have no root in common, and one that has both.
const NOTHING_IN_COMMON: &str = "Switch 8 \"r1\"\n[1] \"a\"[1]\n[2] \"b\"[1]\n\nSwitch 8 \"r2\"\n[1] \"b\"[2]\n[2] \"c\"[1]\n\
    \nSwitch 8 \"a\"\n[5] \"h1\"\n\nSwitch 8 \"b\"\n[5] \"h2\"\n\nSwitch 8 \"c\"\n[5] \"h3\"\n\
    \nCa 1 \"h1\"\n\nCa 1 \"h2\"\n\nCa 1 \"h3\"\n";

fn by_roots(fabric: &Fabric, lids: &Lids, roots: &[&str]) -> Result<Routing, Refusal> {
    let guid = |name: &&str| fabric.by_id(name).map_or(Guid(0xabc), |node| fabric.node(node).guid);
    let roots = roots.iter().map(guid).collect();
    route(fabric, lids, &EngineOptions { roots, ..EngineOptions::default() })
}

#[test]
fn hosts_below_different_roots_are_connected_all_the_same() {
    let fabric = parse("nothing in common", NOTHING_IN_COMMON).unwrap();
    let lids = Lids::in_guid_order(&fabric, 0).unwrap();
    let routing = by_roots(&fabric, &lids, &["r1", "r2"]).unwrap();
    check(&fabric, &lids, &routing, "given");
    let told = "1 switches, roots among them, are placed below neighbours, as some hosts had no legal path otherwise";
    assert_eq!(routing.report.fallbacks, [told]);
    assert_eq!(routing.report.roots, ["r1", "r2"]);
}

#[test]
fn roots_that_do_not_fit_are_refused_by_name() {
    let text = format!("{NOTHING_IN_COMMON}\nSwitch 8 \"far\"\n[5] \"h4\"\n\nCa 1 \"h4\"\n");
    let fabric = parse("pieces", &text).unwrap();
    let lids = Lids::in_guid_order(&fabric, 0).unwrap();
    let refusal = |roots: &[&str]| by_roots(&fabric, &lids, roots).unwrap_err().to_string();
    assert_eq!(refusal(&["r1", "nobody"]), "updn: the root 0x0000000000000abc is no node of this fabric");
    let guid = fabric.node(fabric.by_id("h1").unwrap()).guid;
    assert_eq!(refusal(&["r1", "h1"]), format!("updn: the root {guid}, h1, is no switch"));
    assert_eq!(
        refusal(&["r1"]),
        "updn: no given root reaches the switch far, so its piece of the fabric needs one"
    );
}

#[test]
fn switches_without_hosts_that_no_legal_path_joins_are_counted() {
    let fabric = rlft(8, 2, &GenerateOptions::default()).unwrap();
    let (lids, routing) = routed(&fabric, 0);
    check(&fabric, &lids, &routing, "whole");
    // Each of 4 roots to the 3 others.
    let ids = ["switch-2-0", "switch-2-1"].map(|name| fabric.node(fabric.find(name).unwrap()).id.clone());
    let note = "no up/down path and no route for 12 pairs of switches without hosts, which is harmless, e.g.";
    assert_eq!(routing.report.notes, [format!("{note} {} to {}", ids[0], ids[1])]);
}

#[test]
fn neither_the_order_of_nodes_nor_the_number_of_threads_matters() {
    let mut draws = Pcg64::seed_from_u64(seed());
    for round in 0..40 {
        let fabric = drawn(&mut draws);
        let lids = Lids::in_guid_order(&fabric, 1).unwrap();
        let by =
            |threads| routed_with(&fabric, &lids, &EngineOptions { threads, ..EngineOptions::default() });
        let routing = by(1);
        assert_eq!(routing, by(2), "WEFT_SEED={}, round {round}", seed());
        let other = shuffled(&fabric, draws.random_range(0..1000));
        let (_, other_routing) = routed(&other, 1);
        assert_eq!(
            tables_by_guid(&fabric, &routing.routes),
            tables_by_guid(&other, &other_routing.routes),
            "WEFT_SEED={}, round {round}",
            seed()
        );
        assert_eq!(routing.report, other_routing.report);
    }
}

#[test]
fn grids_and_the_production_cluster_are_served() {
    let any = GenerateOptions::default();
    let cluster = parse("x5", include_str!("../../../../../topologies/psmn-x5.topo")).unwrap();
    for fabric in [torus(&[4, 5], 1, &any).unwrap(), hypercube(4, 1, &any).unwrap(), cluster] {
        let (lids, routing) = routed(&fabric, 0);
        check(&fabric, &lids, &routing, "no tree");
        assert!(!routing.report.roots.is_empty());
    }
}

#[test]
fn a_fabric_without_switches_needs_no_roots() {
    let fabric = parse("hosts", "Ca 1 \"x\"\n[1] \"y\"[1]\n\nCa 1 \"y\"\n").unwrap();
    let (_, routing) = routed(&fabric, 0);
    assert_eq!((routing.report.roots.len(), routing.report.ranks), (0, Some(0)));
}

/// A leaf with two hosts, and apart from it a triangle of switches without hosts.
fn with_a_triangle() -> Fabric {
    let text = "Switch 4 \"leaf\"\n[1] \"a\"[1]\n[2] \"b\"[1]\n[3] \"root\"[1]\n\nSwitch 4 \"root\"\n[1] \"leaf\"[3]\n\n\
                Switch 4 \"t1\"\n[1] \"t2\"[1]\n[2] \"t3\"[1]\n\nSwitch 4 \"t2\"\n[1] \"t1\"[1]\n[2] \"t3\"[2]\n\n\
                Switch 4 \"t3\"\n[1] \"t1\"[2]\n[2] \"t2\"[2]\n\nCa 1 \"a\"\n[1] \"leaf\"[1]\n\nCa 1 \"b\"\n[1] \"leaf\"[2]\n";
    parse("triangle", text).expect("the text is sound")
}

#[test]
fn roots_need_not_be_given_where_nobody_sends() {
    let fabric = with_a_triangle();
    let lids = Lids::in_guid_order(&fabric, 0).expect("there are enough LIDs");
    let root = fabric.node(fabric.find("root").expect("it is there")).guid;
    let routing = routed_with(&fabric, &lids, &EngineOptions { roots: vec![root], ..Default::default() });
    let verdict =
        verify_routing(&fabric, &lids, &routing, &Expectations { tree: true, ..Default::default() });
    assert!(verdict.is_sound() && verdict.is_deadlock_free(), "{verdict}");
}

/// What is apart from all hosts neither stops the engines of trees nor makes their tables hang on the order of nodes.
#[test]
fn pieces_without_hosts_do_not_matter_to_trees() {
    let fabric = with_a_triangle();
    for name in ["ftree", "vftree", "vswitch-ftree", "pftree"] {
        let engine = Engine::by_name(name).expect("it is there");
        let route = |fabric: &Fabric| {
            let lids = Lids::in_guid_order(fabric, 0).expect("there are enough LIDs");
            let options = EngineOptions::default();
            let routed = engine.route(&Input { fabric, lids: &lids, options: &options });
            let routing = routed.unwrap_or_else(|refusal| panic!("{refusal}"));
            let verdict = verify_routing(fabric, &lids, &routing, &Expectations::default());
            assert!(verdict.is_sound() && verdict.is_deadlock_free(), "{name}: {verdict}");
            tables_by_guid(fabric, &routing.routes)
        };
        let tables = route(&fabric);
        for by in 1..7 {
            assert_eq!(route(&shuffled(&fabric, by)), tables, "{name}, shuffled by {by}");
        }
    }
}
