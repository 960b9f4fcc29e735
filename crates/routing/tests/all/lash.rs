//! Layered shortest paths are shortest, free of deadlock on every lane, and need no more lanes than they must.

use std::collections::{BTreeMap, BTreeSet};

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;
use weft_routing::{
    Engine, EngineOptions, Expectations, Input, LANES_DEFAULT, Lids, Refusal, Routing, verify, verify_routing,
};
use weft_topology::generate::{
    Damage, GenerateOptions, RandomFabric, degraded, dragonfly, hypercube, kary_ntree, mesh, pgft, random,
    ring, torus, xgft,
};
use weft_topology::{Cable, Fabric, FabricBuilder, LinkRate, Node, NodeIndex, PortRef, parse};
use weft_wire::{Guid, Lid, NodeType, PortNum};

use oracle::{drawn, flows, is_deadlock_free, petgraph_hops, seed, some, switch_of, without};

use crate::oracle;

fn plain() -> GenerateOptions {
    GenerateOptions::default()
}

fn route(fabric: &Fabric, lids: &Lids, options: &EngineOptions) -> Result<Routing, Refusal> {
    Engine::by_name("lash").unwrap().route(&Input { fabric, lids, options })
}

fn routed(fabric: &Fabric, lmc: u8) -> (Lids, Routing) {
    let lids = Lids::in_guid_order(fabric, lmc).expect("there are enough LIDs");
    let options = EngineOptions { lanes: 15, ..EngineOptions::default() };
    let routing = route(fabric, &lids, &options).expect("the fabric is served");
    (lids, routing)
}

/// All that LASH promises of a fabric: shortest paths, a lane for both directions, no deadlock.
fn check(fabric: &Fabric, lids: &Lids, routing: &Routing, what: &str) {
    let report = verify(fabric, lids, &routing.routes, &[]);
    assert!(report.is_minimal(), "{what}: {report}");
    assert!(is_deadlock_free(fabric, lids, routing), "{what}");
    let verdict = verify_routing(fabric, lids, routing, &Expectations::default());
    assert!(verdict.is_sound() && verdict.is_deadlock_free() && verdict.is_symmetric(), "{what}: {verdict}");
    let mut highest = 0;
    for (from, to, channels) in flows(fabric, lids, routing) {
        let level = routing.levels.of(from.base, to);
        assert_eq!(level, routing.levels.of(to, from.base), "{what}: LIDs {} and {to}", from.base);
        highest = highest.max(level.0 + 1);
        let ends = [from.port, lids.owner(to).unwrap()].map(|port| switch_of(fabric, port));
        let ends = ends.map(|switch| switch.map(|switch| fabric.node(switch).guid));
        if ends[0].is_some() && ends[0] == ends[1] {
            assert!(channels.is_some(), "{what}: LIDs {} and {to} are on one switch", from.base);
        }
    }
    assert!(highest <= routing.report.lanes, "{what}: {highest} levels, {} lanes", routing.report.lanes);
}

/// The lanes of a fabric, whatever else is checked of it.
fn lanes(fabric: &Fabric, what: &str) -> u8 {
    let (lids, routing) = routed(fabric, 0);
    check(fabric, &lids, &routing, what);
    routing.report.lanes
}

/// The fabric with the cables of each switch on other ports, and other GUIDs.
fn renumbered(fabric: &Fabric, draws: &mut Pcg64) -> Fabric {
    let mut builder = FabricBuilder::new();
    let mut shuffle = |count: usize| {
        let mut order: Vec<usize> = (0..count).collect();
        for place in (1..count).rev() {
            order.swap(place, draws.random_range(0..=place as u64) as usize);
        }
        order
    };
    let guids = shuffle(fabric.nodes().len());
    let mut ports = Vec::new();
    for (index, node) in fabric.iter() {
        let guid = Guid(0x1000 + 256 * guids[index.index()] as u64);
        let mut other = Node::new(node.kind, guid, node.port_count(), LinkRate::default());
        other.description.clone_from(&node.description);
        builder.add_node(other).unwrap();
        ports.push(shuffle(usize::from(node.port_count())));
    }
    let moved = |port: PortRef| {
        let to = ports[port.node.index()][usize::from(port.port.0) - 1];
        PortRef::new(port.node, PortNum(to as u8 + 1))
    };
    for cable in fabric.cables() {
        builder.connect(moved(cable.a), moved(cable.b)).unwrap();
    }
    builder.build()
}

/// The mesh of the papers on host-side reconfiguration.
fn papers_mesh() -> Fabric {
    parse("lash-mesh.topo", include_str!("../../../../topologies/lash-mesh.topo")).unwrap()
}

/// The mesh after its middle cable is cut.
fn papers_ring(mesh: &Fabric) -> Fabric {
    let middle = |cable: Cable| {
        let mut ends = [cable.a, cable.b].map(|port| fabric_name(mesh, port.node));
        ends.sort_unstable();
        ends == ["S2", "S5"]
    };
    let cut =
        mesh.cables().enumerate().filter(|(_, cable)| middle(*cable)).map(|(number, _)| number).collect();
    without(mesh, &BTreeSet::new(), &cut)
}

fn fabric_name(fabric: &Fabric, node: NodeIndex) -> &str {
    &fabric.node(node).description
}

#[test]
fn the_papers_mesh_needs_one_lane_and_its_ring_two() {
    let mesh = papers_mesh();
    assert_eq!(lanes(&mesh, "mesh"), 1);
    let ring = papers_ring(&mesh);
    assert_eq!(ring.cables().count(), mesh.cables().count() - 1);
    assert_eq!(lanes(&ring, "ring"), 2);
}

#[test]
fn lash_lane_counts_do_not_depend_on_numbering() {
    let mut draws = Pcg64::seed_from_u64(seed());
    for round in 0..200 {
        let mesh = renumbered(&papers_mesh(), &mut draws);
        let what = format!("seed {}, round {round}", seed());
        assert_eq!(lanes(&mesh, &what), 1, "{what}");
        assert_eq!(lanes(&papers_ring(&mesh), &what), 2, "{what}");
    }
}

/// How many lanes OpenSM 3.3.23 says that it needs, and how many are enough.
#[test]
fn no_fabric_needs_more_lanes_than_with_opensm() {
    let x5 = parse("psmn-x5.topo", include_str!("../../../../topologies/psmn-x5.topo")).unwrap();
    let cases = [
        ("X5", x5, 1, 1),
        ("ring of 5", ring(5, 1, &plain()).unwrap(), 2, 2),
        ("ring of 6", ring(6, 1, &plain()).unwrap(), 3, 2),
        ("ring of 12", ring(12, 1, &plain()).unwrap(), 6, 2),
        ("6x6 mesh", mesh(&[6, 6], 1, &plain()).unwrap(), 1, 1),
        ("4x4x4 mesh", mesh(&[4, 4, 4], 1, &plain()).unwrap(), 1, 1),
        ("hypercube of 6 dimensions", hypercube(6, 1, &plain()).unwrap(), 1, 1),
        ("4x4 torus", torus(&[4, 4], 2, &plain()).unwrap(), 2, 1),
        ("5x5 torus", torus(&[5, 5], 2, &plain()).unwrap(), 3, 3),
        ("6x6 torus", torus(&[6, 6], 2, &plain()).unwrap(), 5, 3),
        ("8x8 torus", torus(&[8, 8], 1, &plain()).unwrap(), 8, 3),
        ("4x4x4 torus", torus(&[4, 4, 4], 1, &plain()).unwrap(), 5, 1),
        ("tree of 324 hosts", xgft(&[18, 18], &[1, 18], &plain()).unwrap(), 1, 1),
        ("4-ary 3-tree", kary_ntree(4, 3, &plain()).unwrap(), 3, 1),
        ("dragonfly", dragonfly(4, 2, 2, Some(9), &plain()).unwrap(), 3, 3),
    ];
    for (name, fabric, opensm, enough) in cases {
        let lanes = lanes(&fabric, name);
        assert!(lanes <= opensm, "{name}");
        assert_eq!(lanes, enough, "{name}");
    }
}

/// Random fabrics, whole or in pieces, with parallel cables, hosts with two ports and switches without hosts.
fn irregular(draws: &mut Pcg64) -> Fabric {
    let fabric = drawn(draws);
    let switches = fabric.switches().count();
    let mut builder = FabricBuilder::new();
    for node in fabric.nodes() {
        builder.add_node(node.clone()).unwrap();
    }
    for cable in fabric.cables() {
        builder.connect(cable.a, cable.b).unwrap();
    }
    let two = Node::new(NodeType::Hca, Guid(7 << 32), 2, LinkRate::default());
    let two = builder.add_node(two).unwrap();
    for port in 1..=2 {
        let at = NodeIndex(some(draws, 0, switches as u32));
        if let Some(free) = builder.free_port(at) {
            builder.connect(PortRef::new(two, PortNum(port)), PortRef::new(at, free)).unwrap();
        }
    }
    builder.build()
}

#[test]
fn lash_is_minimal_and_acyclic_on_random_fabrics() {
    let mut draws = Pcg64::seed_from_u64(seed());
    for round in 0..100 {
        let fabric = irregular(&mut draws);
        let what = format!("seed {}, round {round}", seed());
        let (lids, routing) = routed(&fabric, some(&mut draws, 0, 3) as u8);
        check(&fabric, &lids, &routing, &what);
        let hops: BTreeMap<_, _> =
            fabric.switches().map(|(node, _)| (node, petgraph_hops(&fabric, node))).collect();
        for (from, to, channels) in flows(&fabric, &lids, &routing) {
            let owner = lids.owner(to).unwrap();
            if owner.node == from.port.node {
                continue;
            }
            let ends = switch_of(&fabric, from.port).zip(switch_of(&fabric, owner));
            let between = ends.and_then(|(first, last)| hops[&first].get(&last));
            let beyond = [from.port, owner].map(|port| u32::from(!fabric.node(port.node).is_switch()));
            let expected = between.map(|hops| hops + beyond[0] + beyond[1]);
            let found = channels.map(|channels| channels.len() as u32);
            assert_eq!(found, expected, "{what}: LIDs {} and {to}", from.base);
        }
    }
}

#[test]
fn degraded_trees_and_meshes_are_routed_without_deadlock() {
    let wholes = [
        kary_ntree(3, 3, &plain()).unwrap(),
        xgft(&[4, 6], &[1, 5], &plain()).unwrap(),
        pgft(&[3, 4, 2], &[1, 2, 3], &[1, 2, 1], &plain()).unwrap(),
        mesh(&[4, 4], 1, &plain()).unwrap(),
        torus(&[4, 5], 1, &plain()).unwrap(),
    ];
    for round in 0..40 {
        let damage = Damage { cables: 1 + round % 9, switches: round % 3 };
        let what = format!("seed {}, round {round}", seed());
        let fabric = degraded(&wholes[round % wholes.len()], damage, seed() + round as u64).unwrap();
        lanes(&fabric, &what);
    }
}

/// The same fabric with its nodes and cables in the opposite order.
fn reversed(fabric: &Fabric) -> Fabric {
    let mut builder = FabricBuilder::new();
    for node in fabric.nodes().iter().rev() {
        builder.add_node(node.clone()).unwrap();
    }
    let last = fabric.nodes().len() as u32 - 1;
    let moved = |port: PortRef| PortRef::new(NodeIndex(last - port.node.0), port.port);
    let cables: Vec<_> = fabric.cables().collect();
    for cable in cables.iter().rev() {
        builder.connect(moved(cable.b), moved(cable.a)).unwrap();
    }
    builder.build()
}

fn tables_by_guid(fabric: &Fabric, routing: &Routing) -> BTreeMap<Guid, Vec<(Lid, PortNum)>> {
    let table = |node: NodeIndex| routing.routes.tables[node.index()].routes().collect();
    fabric.iter().map(|(index, node)| (node.guid, table(index))).collect()
}

#[test]
fn neither_threads_nor_the_order_of_nodes_change_anything() {
    let mut draws = Pcg64::seed_from_u64(seed());
    for round in 0..20 {
        let fabric = irregular(&mut draws);
        let lids = Lids::in_guid_order(&fabric, 1).unwrap();
        let with = |threads| {
            let options = EngineOptions { threads, lanes: 15, ..EngineOptions::default() };
            route(&fabric, &lids, &options).unwrap()
        };
        let what = format!("seed {}, round {round}", seed());
        let (one, two) = (with(1), with(2));
        assert_eq!(one, two, "{what}");
        let other = reversed(&fabric);
        let (_, theirs) = routed(&other, 1);
        assert_eq!(tables_by_guid(&fabric, &one), tables_by_guid(&other, &theirs), "{what}");
        assert_eq!((one.levels, one.report), (theirs.levels, theirs.report), "{what}");
    }
}

#[test]
fn lash_names_two_switches_when_lanes_run_out() {
    let fabric = papers_ring(&papers_mesh());
    let lids = Lids::in_guid_order(&fabric, 0).unwrap();
    let with = |lanes| route(&fabric, &lids, &EngineOptions { lanes, ..EngineOptions::default() });
    let refusal = with(1).unwrap_err().to_string();
    assert_eq!(
        refusal,
        "lash: the paths between S-0200535700000002 and S-0200535700000005 close a cycle on every lane that is allowed (1)"
    );
    assert_eq!(with(2).unwrap().report.lanes, 2);
    assert_eq!(with(LANES_DEFAULT).unwrap().report.lanes, 2);
}

#[test]
fn a_fabric_without_switches_and_one_without_hosts_are_served() {
    let hosts = parse("hosts", "Ca 1 \"x\"\n[1] \"y\"[1]\n\nCa 1 \"y\"\n").unwrap();
    let (_, routing) = routed(&hosts, 0);
    assert_eq!((routing.report.lanes, routing.routes.tables.len()), (1, 2));
    // Nothing is said of packets between switches without hosts but that they arrive.
    let switches = torus(&[5, 5], 0, &plain()).unwrap();
    assert_eq!(lanes(&switches, "torus without hosts"), 1);
}

#[test]
fn the_lanes_of_larger_fabrics_have_no_cycle() {
    let parameters = RandomFabric { switches: 60, hosts: 120, extra_cables: 60, parallel_cables: 6 };
    for (name, fabric, enough) in [
        ("a random fabric of 60 switches", random(&parameters, 1, &plain()).unwrap(), 3),
        ("6x4x4 torus", torus(&[6, 4, 4], 1, &plain()).unwrap(), 2),
        ("6-ary 3-tree", kary_ntree(6, 3, &plain()).unwrap(), 1),
    ] {
        let (lids, routing) = routed(&fabric, 0);
        let verdict = verify_routing(&fabric, &lids, &routing, &Expectations::default());
        assert!(
            verdict.is_sound() && verdict.is_deadlock_free() && verdict.is_symmetric(),
            "{name}: {verdict}"
        );
        assert!(verdict.reach.is_minimal(), "{name}: {verdict}");
        assert_eq!(routing.report.lanes, enough, "{name}");
    }
}

#[test]
fn lash_balances_hosts_over_the_uplinks_of_a_leaf() {
    let fabric = xgft(&[6, 6], &[1, 6], &plain()).unwrap();
    let (lids, routing) = routed(&fabric, 0);
    for (leaf, _) in fabric.switches().filter(|(_, node)| node.description.starts_with("switch-1-")) {
        let mut loads = BTreeMap::new();
        for host in lids.iter().filter(|lids| !fabric.node(lids.port.node).is_switch()) {
            *loads.entry(routing.routes.port(leaf, host.base).0).or_insert(0) += 1;
        }
        let uplinks: Vec<i32> = (7..=12).map(|port| loads[&port]).collect();
        assert_eq!(uplinks, [5; 6], "{}", fabric_name(&fabric, leaf));
    }
}
