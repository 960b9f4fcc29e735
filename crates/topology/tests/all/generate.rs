//! Generated fabrics have the counts, degrees and diameters of the textbook, by petgraph's reckoning.

use petgraph::algo::{connected_components, dijkstra};
use petgraph::graph::{NodeIndex as Vertex, UnGraph};
use proptest::prelude::*;
use weft_topology::generate::{
    Damage, Directors, GenerateError, GenerateOptions, RandomFabric, degraded, director, dragonfly,
    hypercube, kary_ntree, mesh, pgft, random, ring, rlft, torus, xgft,
};
use weft_topology::{Fabric, Node, NodeIndex, parse};
use weft_wire::NodeType;

const ANY: GenerateOptions = GenerateOptions {
    radix: None,
    tree_hosts: None,
    rate: weft_topology::LinkRate::new(weft_topology::LinkWidth::X4, weft_topology::LinkSpeed::Edr),
};

fn radix(radix: u8) -> GenerateOptions {
    GenerateOptions { radix: Some(radix), ..ANY }
}

fn graph(fabric: &Fabric) -> UnGraph<NodeType, ()> {
    let mut graph = UnGraph::default();
    for node in fabric.nodes() {
        graph.add_node(node.kind);
    }
    for cable in fabric.cables() {
        graph.add_edge(Vertex::new(cable.a.node.index()), Vertex::new(cable.b.node.index()), ());
    }
    graph
}

/// What switches and cables join: each port of an adapter is an end of its own.
fn pieces(fabric: &Fabric) -> usize {
    let mut joined = UnGraph::<NodeType, ()>::default();
    let is_one = |node: &Node| node.is_switch() || node.cabled_ports().next().is_none();
    let ones: Vec<Option<Vertex>> =
        fabric.nodes().iter().map(|node| is_one(node).then(|| joined.add_node(node.kind))).collect();
    for cable in fabric.cables() {
        let [a, b] = [cable.a.node, cable.b.node]
            .map(|end| ones[end.index()].unwrap_or_else(|| joined.add_node(fabric.node(end).kind)));
        joined.add_edge(a, b, ());
    }
    connected_components(&joined)
}

/// The largest distance between switches.
fn switch_diameter(fabric: &Fabric) -> usize {
    let graph = graph(fabric);
    let is_switch = |vertex: &Vertex| graph[*vertex] == NodeType::Switch;
    let farthest = |from| dijkstra(&graph, from, None, |_| 1).into_iter().filter(|(to, _)| is_switch(to));
    graph.node_indices().filter(is_switch).flat_map(farthest).map(|(_, hops)| hops).max().unwrap_or(0)
}

fn switch_degrees(fabric: &Fabric) -> Vec<usize> {
    let to_switches = |index: NodeIndex| {
        fabric.node(index).cabled_ports().filter(|(_, peer)| fabric.node(peer.node).is_switch()).count()
    };
    fabric.switches().map(|(index, _)| to_switches(index)).collect()
}

fn counts(fabric: &Fabric) -> (usize, usize, usize) {
    let counts = fabric.counts();
    assert_eq!(pieces(fabric), counts.components);
    assert_eq!(graph(fabric).edge_count(), counts.cables);
    (counts.switches, counts.hosts, counts.cables)
}

#[test]
fn the_648_host_tree() {
    let fabric = xgft(&[18, 36], &[1, 18], &radix(36)).unwrap();
    assert_eq!(counts(&fabric), (54, 648, 1296));
    assert_eq!(fabric.counts().components, 1);
    assert_eq!(switch_diameter(&fabric), 2);
    for (_, switch) in fabric.switches() {
        assert_eq!(switch.cabled_ports().count(), 36, "{}", switch.description);
    }
    assert_eq!(fabric, rlft(36, 2, &ANY).unwrap());
}

#[test]
fn an_xgft_has_the_node_count_of_every_level() {
    let (children, parents) = ([3, 2, 4], [2, 3, 2]);
    let fabric = xgft(&children, &parents, &ANY).unwrap();
    // Level i has the product of the children above i times the product of the parents up to i.
    let (level1, level2, level3) = (2 * 4 * 2, 4 * 2 * 3, 2 * 3 * 2);
    let cables = 24 * 2 + level1 * 3 + level2 * 2;
    assert_eq!(counts(&fabric), (level1 + level2 + level3, 24, cables));
    let named =
        |prefix: &str| fabric.nodes().iter().filter(|node| node.description.starts_with(prefix)).count();
    assert_eq!((named("switch-1-"), named("switch-2-"), named("switch-3-")), (level1, level2, level3));
    // Hosts have two parents each, and nothing but hosts joins what is above the one to what is above the other.
    assert_eq!(fabric.counts().components, 2);
    for (_, host) in fabric.hosts() {
        assert_eq!(host.cabled_ports().count(), 2);
    }
}

#[test]
fn the_largest_trees() {
    let fabric = rlft(36, 3, &ANY).unwrap();
    let count = fabric.counts();
    assert_eq!((count.switches, count.hosts, count.components), (1620, 11664, 1));
    assert!(fabric.switches().all(|(_, switch)| switch.cabled_ports().count() == 36));
}

#[test]
fn a_tree_with_parallel_cables() {
    let fabric = pgft(&[4, 2], &[1, 2], &[1, 2], &radix(8)).unwrap();
    assert_eq!(counts(&fabric), (2 + 2, 8, 8 + 2 * 2 * 2));
    assert_eq!(graph(&fabric).edge_count(), 16);
    assert_eq!(switch_degrees(&fabric), [4, 4, 4, 4]);
}

#[test]
fn a_k_ary_n_tree() {
    for (k, n) in [(2, 1), (2, 3), (3, 3), (4, 2)] {
        let fabric = kary_ntree(k, n, &ANY).unwrap();
        let level = (k as usize).pow(n - 1);
        let cables = n as usize * level * k as usize;
        assert_eq!(counts(&fabric), (n as usize * level, level * k as usize, cables));
        assert_eq!(fabric.counts().components, 1);
        assert_eq!(switch_diameter(&fabric), 2 * (n as usize - 1));
    }
}

/// How many hosts hang below each switch that can have any, in order.
fn hosts_of_leaves(fabric: &Fabric) -> Vec<usize> {
    let leaves = fabric.switches().filter(|(_, switch)| switch.description.starts_with("switch-1-"));
    let to_hosts = |switch: &weft_topology::Node| {
        switch.cabled_ports().filter(|(_, peer)| !fabric.node(peer.node).is_switch()).count()
    };
    leaves.map(|(_, switch)| to_hosts(switch)).collect()
}

#[test]
fn a_tree_that_is_not_full() {
    let with = |hosts, options: GenerateOptions| GenerateOptions { tree_hosts: Some(hosts), ..options };
    let full = xgft(&[18, 36], &[1, 18], &radix(36)).unwrap();
    assert_eq!(xgft(&[18, 36], &[1, 18], &with(648, radix(36))).unwrap(), full);

    let fabric = xgft(&[18, 36], &[1, 18], &with(500, radix(36))).unwrap();
    assert_eq!(counts(&fabric), (54, 500, 648 + 500));
    assert_eq!(fabric.counts().components, 1);
    // 500 is 13 for each of 36 leaves, and 32 more.
    assert_eq!(hosts_of_leaves(&fabric), [[14; 32].as_slice(), &[13; 4]].concat());
    assert_eq!(switch_degrees(&fabric), switch_degrees(&full));
    // The free ports are the last of those for hosts, so that the others are where they are in the full tree.
    let leaf = fabric.switches().find(|(_, switch)| switch.description == "switch-1-35").unwrap().1;
    let free: Vec<u8> =
        (1..=36).filter(|port| leaf.cabled_ports().all(|(number, _)| number.0 != *port)).collect();
    assert_eq!(free, [14, 15, 16, 17, 18]);

    let fabric = kary_ntree(3, 3, &with(10, ANY)).unwrap();
    assert_eq!(counts(&fabric), (27, 10, 27 + 27 + 10));
    assert_eq!(hosts_of_leaves(&fabric), [2, 1, 1, 1, 1, 1, 1, 1, 1]);

    let fabric = rlft(8, 3, &with(0, ANY)).unwrap();
    assert_eq!((fabric.counts().switches, fabric.counts().hosts), (80, 0));

    // Hosts with two ports, each on another leaf, and two cables from leaf to root.
    let fabric = pgft(&[4, 2], &[2, 2], &[1, 2], &with(5, ANY)).unwrap();
    assert_eq!(counts(&fabric), (4 + 4, 5, 5 * 2 + 4 * 2 * 2));
    assert_eq!(hosts_of_leaves(&fabric), [3, 3, 2, 2]);
    assert_eq!(parse("tree.topo", &fabric.write_ibnetdiscover()).unwrap(), fabric);

    let crowded = kary_ntree(2, 2, &with(5, ANY)).unwrap_err();
    assert_eq!(crowded.to_string(), "the number of hosts of this tree must be 0 to 4, not 5");
}

#[test]
fn a_mesh_and_a_torus() {
    let fabric = mesh(&[4, 3], 2, &ANY).unwrap();
    assert_eq!(counts(&fabric), (12, 24, 24 + 3 * 3 + 4 * 2));
    assert_eq!(switch_diameter(&fabric), 3 + 2);

    let fabric = torus(&[4, 3, 5], 1, &ANY).unwrap();
    assert_eq!(counts(&fabric), (60, 60, 60 + 3 * 60));
    assert!(switch_degrees(&fabric).iter().all(|degree| *degree == 6));
    assert_eq!(switch_diameter(&fabric), 2 + 1 + 2);

    let fabric = torus(&[2, 2, 1], 0, &ANY).unwrap();
    assert_eq!(counts(&fabric), (4, 0, 4));
    assert!(switch_degrees(&fabric).iter().all(|degree| *degree == 2));
}

#[test]
fn a_ring() {
    let fabric = ring(7, 3, &ANY).unwrap();
    assert_eq!(counts(&fabric), (7, 21, 28));
    assert_eq!(switch_degrees(&fabric), [2; 7]);
    assert_eq!(switch_diameter(&fabric), 3);
    assert_eq!(counts(&ring(2, 0, &ANY).unwrap()), (2, 0, 1));
    assert_eq!(counts(&ring(1, 1, &ANY).unwrap()), (1, 1, 1));
}

#[test]
fn a_hypercube() {
    for dimensions in 1..=6 {
        let fabric = hypercube(dimensions, 1, &ANY).unwrap();
        let switches = 1 << dimensions;
        assert_eq!(counts(&fabric), (switches, switches, switches + switches * dimensions as usize / 2));
        assert!(switch_degrees(&fabric).iter().all(|degree| *degree == dimensions as usize));
        assert_eq!(switch_diameter(&fabric), dimensions as usize);
    }
}

#[test]
fn a_dragonfly() {
    let (a, p, h) = (4, 2, 2);
    let fabric = dragonfly(a, p, h, None, &radix(7)).unwrap();
    let (groups, switches) = (9, 36);
    let (local, global) = (groups * 6, groups * (groups - 1) / 2);
    assert_eq!(counts(&fabric), (switches, 72, 72 + local + global));
    assert!(switch_degrees(&fabric).iter().all(|degree| *degree == 3 + 2));
    assert_eq!(switch_diameter(&fabric), 3);
    assert_eq!(fabric.counts().components, 1);
}

#[test]
fn a_small_dragonfly_joins_its_groups_by_several_cables() {
    // 8 global cables of each of 3 groups: 4 to each other group.
    let fabric = dragonfly(4, 1, 2, Some(3), &ANY).unwrap();
    assert_eq!(counts(&fabric), (12, 12, 12 + 3 * 6 + 3 * 4));
    // 8 over 3 other groups: 2 to each; the 2 left over in each of 4 groups go to the groups 1 and 2 ahead, and
    // only those to the group 2 ahead find each other.
    let fabric = dragonfly(4, 1, 2, Some(4), &ANY).unwrap();
    assert_eq!(counts(&fabric).2, 16 + 4 * 6 + 6 * 2 + 2);
    assert_eq!(fabric.counts().components, 1);
}

#[test]
fn errors_are_sensible() {
    let text = |result: Result<Fabric, GenerateError>| result.unwrap_err().to_string();
    let too_small = xgft(&[18, 36], &[1, 18], &radix(35));
    assert_eq!(text(too_small), "a switch needs 36 ports, more than the radix of 35");
    assert_eq!(
        text(xgft(&[18, 36], &[1], &ANY)),
        "the lists of children, parents and parallel cables differ in length: 2, 1 and 2"
    );
    assert_eq!(text(xgft(&[0], &[1], &ANY)), "a number of children must be 1 to 49151, not 0");
    let huge = xgft(&[40_000; 16], &[40_000; 16], &ANY);
    assert!(text(huge).ends_with("end ports are more than the 49151 unicast LIDs"));
    assert_eq!(text(torus(&[], 1, &ANY)), "the number of dimensions must be 1 to 16, not 0");
    assert_eq!(text(hypercube(0, 1, &ANY)), "the number of dimensions must be 1 to 16, not 0");
    assert_eq!(text(ring(3, 254, &ANY)), "a switch needs 256 ports, more than the radix of 254");
    assert_eq!(text(dragonfly(2, 1, 1, Some(4), &ANY)), "the number of groups must be 2 to 3, not 4");
    let crowded = RandomFabric { switches: 2, hosts: 7, extra_cables: 0, parallel_cables: 0 };
    assert_eq!(text(random(&crowded, 1, &radix(4))), "a switch needs 5 ports, more than the radix of 4");
}

proptest! {
    #[test]
    fn random_fabrics_are_connected_and_survive_their_file(
        switches in 1u32..20, hosts in 0u32..40, extra in 0u32..15, parallel in 0u32..5, seed: u64,
    ) {
        let parallel_cables = if switches > 1 { parallel } else { 0 };
        let extra_cables = if switches > 1 { extra } else { 0 };
        let parameters = RandomFabric { switches, hosts, extra_cables, parallel_cables };
        let Ok(fabric) = random(&parameters, seed, &ANY) else {
            return Err(TestCaseError::reject("more cables than ports"));
        };
        let expected = (switches - 1 + hosts + extra_cables + parallel_cables) as usize;
        prop_assert_eq!(counts(&fabric), (switches as usize, hosts as usize, expected));
        prop_assert_eq!(fabric.counts().components, 1);
        prop_assert_eq!(&random(&parameters, seed, &ANY).unwrap(), &fabric);
        prop_assert_eq!(&parse("random.topo", &fabric.write_ibnetdiscover()).unwrap(), &fabric);
    }

    #[test]
    fn any_parameters_give_a_fabric_or_an_error(
        list in proptest::collection::vec(0u32..4, 0..4), other in proptest::collection::vec(0u32..4, 0..4),
        n in 0u32..4, ports in proptest::option::of(0u8..=255), tree_hosts in proptest::option::of(0u32..9),
    ) {
        let options = GenerateOptions { radix: ports, tree_hosts, ..ANY };
        let _ = xgft(&list, &other, &options);
        let _ = pgft(&list, &other, &list, &options);
        let _ = torus(&list, n, &options);
        let _ = mesh(&other, n, &options);
        let _ = dragonfly(n, n, n, Some(n), &options);
        let _ = kary_ntree(n, n, &options);
        let _ = rlft(ports.unwrap_or(0) % 12, n % 4, &options);
        let parameters = RandomFabric { switches: n, hosts: n, extra_cables: n, parallel_cables: n };
        let _ = random(&parameters, 7, &options);
    }
}

#[test]
fn a_degraded_fabric_keeps_the_rest_as_it_was() {
    let whole = xgft(&[3, 3], &[1, 3], &GenerateOptions::default()).unwrap();
    let damage = Damage { cables: 2, switches: 1 };
    let some = degraded(&whole, damage, 7).unwrap();
    assert_eq!(some, degraded(&whole, damage, 7).unwrap());
    assert_eq!(some.switches().count(), whole.switches().count() - 1);
    // A leaf has three cables up and three down, a root three down.
    let lost = whole.cables().count() - some.cables().count();
    assert!(lost == 5 || lost == 8, "{lost} cables are gone");
    for (_, node) in some.iter() {
        let before = whole.node(whole.by_guid(node.guid).unwrap());
        assert_eq!((&node.id, node.port_count()), (&before.id, before.port_count()));
    }
    let between = |f: &weft_topology::Fabric| {
        f.cables().filter(|c| f.node(c.a.node).is_switch() && f.node(c.b.node).is_switch()).count()
    };
    assert_eq!(
        between(&degraded(&whole, Damage { cables: 4, switches: 0 }, 1).unwrap()),
        between(&whole) - 4
    );
    assert_eq!(degraded(&whole, Damage::default(), 1).unwrap().cables().count(), whole.cables().count());
    let nothing = degraded(&whole, Damage { cables: 99, switches: 99 }, 1).unwrap();
    assert_eq!((nothing.switches().count(), nothing.hosts().count()), (0, whole.hosts().count()));
}

/// The port counts of a real cluster of this kind: 174 switches of 36 ports, edges with 19 hosts and 9 cables.
#[test]
fn directors_are_clos_networks_that_edges_share() {
    let shape = Directors {
        lines: vec![30, 23],
        spines: 18,
        edges: 85,
        edge_hosts: 19,
        uplinks: 9,
        ..Directors::default()
    };
    let fabric = director(&shape, &radix(36)).unwrap();
    let counts = fabric.counts();
    assert_eq!((counts.switches, counts.hosts, counts.components), (53 + 36 + 85, 85 * 19, 1));
    assert_eq!(counts.cables, 53 * 18 + 85 * (19 + 9));
    for (_, node) in fabric.switches() {
        let neighbours = node.cabled_ports().count();
        let wanted = match node.description.split_once('-').unwrap() {
            ("spine", place) if place.starts_with('0') => 30..=30,
            ("spine", _) => 23..=23,
            ("line", _) => 18 + 14..=18 + 15,
            _ => 28..=28,
        };
        assert!(wanted.contains(&neighbours), "{}: {neighbours} cables", node.description);
    }
}

#[test]
fn trunks_join_directors_with_hosts_on_their_line_chips() {
    let shape = Directors {
        lines: vec![6, 4, 4],
        spines: 2,
        inside: 3,
        line_hosts: 5,
        trunks: 4,
        ..Directors::default()
    };
    let fabric = director(&shape, &ANY).unwrap();
    let counts = fabric.counts();
    assert_eq!((counts.switches, counts.hosts, counts.components), (14 + 6, 14 * 5, 1));
    assert_eq!(counts.cables, 14 * (2 * 3 + 5) + 3 * 4);
    let error = director(&Directors { uplinks: 15, ..shape }, &ANY).unwrap_err();
    assert!(matches!(error, GenerateError::OutOfRange { value: 15, max: 14, .. }), "{error}");
}
