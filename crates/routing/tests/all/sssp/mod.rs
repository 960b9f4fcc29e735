//! Balanced shortest paths are as short as petgraph's and balanced; with lanes, nothing on any of them can wait for
//! itself by petgraph's judgement, and both directions of a pair use one.

use std::collections::{BTreeMap, BTreeSet};

use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;
use weft_routing::quality::{Participants, Pattern, SimulateOptions, compare, hosts};
use weft_routing::{Engine, EngineOptions, Input, Lids, Routing, verify};
use weft_topology::generate::{
    Damage, Directors, GenerateOptions, RandomFabric, degraded, director, dragonfly, hypercube, mesh, random,
    ring, rlft, torus, xgft,
};
use weft_topology::{Fabric, FabricBuilder, PortRef, parse};
use weft_wire::{Guid, Lid, PortNum};

mod oracle;

fn options() -> GenerateOptions {
    GenerateOptions::default()
}

fn route_with(
    engine: &str,
    fabric: &Fabric,
    lids: &Lids,
    options: &EngineOptions,
) -> Result<Routing, String> {
    let engine = Engine::by_name(engine).expect("there is such an engine");
    engine.route(&Input { fabric, lids, options }).map_err(|refusal| refusal.to_string())
}

fn route(engine: &str, fabric: &Fabric, lids: &Lids) -> Routing {
    let options = EngineOptions { lanes: 15, ..EngineOptions::default() };
    route_with(engine, fabric, lids, &options).unwrap_or_else(|refusal| panic!("{refusal}"))
}

/// Seeds for `count` runs: from WEFT_SEED on where that is set.
fn seeds(count: u64) -> impl Iterator<Item = u64> {
    let seed = std::env::var("WEFT_SEED").ok().map(|seed| seed.parse().expect("WEFT_SEED is a number"));
    let first = seed.unwrap_or(0);
    first..first + if seed.is_some() { 1 } else { count }
}

/// All that must hold of dfsssp's routing of any fabric.
fn check(name: &str, fabric: &Fabric, lmc: u8) -> Routing {
    let lids = Lids::in_guid_order(fabric, lmc).expect("there are enough LIDs");
    let routing = route("dfsssp", fabric, &lids);
    let report = verify(fabric, &lids, &routing.routes, &[]);
    assert!(report.is_minimal(), "{name}: {report}");
    assert_eq!(oracle::deadlocked_lane(fabric, &lids, &routing), None, "{name}");
    let all: Vec<Lid> = lids.iter().flat_map(weft_routing::PortLids::iter).collect();
    for (place, one) in all.iter().enumerate() {
        for other in &all[..place] {
            let (there, back) = (routing.levels.of(*one, *other), routing.levels.of(*other, *one));
            assert_eq!(there, back, "{name}: LIDs {one} and {other}");
        }
    }
    let used = usize::from(routing.levels.highest().0) + 1;
    assert_eq!(usize::from(routing.report.lanes), used, "{name}");
    routing
}

#[test]
fn grids_and_dragonflies_are_free_of_deadlock_on_few_lanes() {
    let fabrics = [
        ("ring of 3", ring(3, 2, &options()), 1),
        ("ring of 5", ring(5, 2, &options()), 2),
        ("ring of 6", ring(6, 2, &options()), 2),
        ("ring of 9", ring(9, 1, &options()), 2),
        ("mesh", mesh(&[5, 4], 1, &options()), 1),
        ("torus 3x3", torus(&[3, 3], 2, &options()), 1),
        ("torus 4x4", torus(&[4, 4], 2, &options()), 1),
        ("torus 5x4", torus(&[5, 4], 1, &options()), 3),
        ("torus 5x5", torus(&[5, 5], 2, &options()), 4),
        ("torus 3x3x3", torus(&[3, 3, 3], 1, &options()), 1),
        ("hypercube", hypercube(5, 1, &options()), 1),
        ("dragonfly", dragonfly(4, 2, 2, None, &options()), 3),
    ];
    for (name, fabric, lanes) in fabrics {
        let routing = check(name, &fabric.unwrap(), 0);
        assert!(routing.report.lanes <= lanes, "{name}: {} lanes", routing.report.lanes);
    }
}

#[test]
fn whole_trees_need_one_lane() {
    let fabrics = [
        rlft(8, 3, &options()),
        xgft(&[4, 4], &[1, 4], &options()),
        xgft(&[3, 4, 2], &[2, 3, 2], &options()),
    ];
    for (place, fabric) in fabrics.into_iter().enumerate() {
        assert_eq!(check(&format!("tree {place}"), &fabric.unwrap(), 0).report.lanes, 1, "tree {place}");
    }
}

#[test]
fn random_fabrics_are_free_of_deadlock() {
    for seed in seeds(24) {
        let mut numbers = Pcg64::seed_from_u64(seed);
        let parameters = RandomFabric {
            switches: numbers.random_range(1..24),
            hosts: numbers.random_range(0..40),
            extra_cables: 0,
            parallel_cables: 0,
        };
        let extra = if parameters.switches > 1 { numbers.random_range(0..40) } else { 0 };
        let parameters = RandomFabric { extra_cables: extra, parallel_cables: extra / 8, ..parameters };
        let large = GenerateOptions { radix: Some(128), ..options() };
        let fabric = random(&parameters, seed, &large).unwrap();
        check(&format!("WEFT_SEED={seed}"), &fabric, (seed % 3) as u8);
    }
}

#[test]
fn broken_trees_and_fabrics_in_pieces_are_free_of_deadlock() {
    for seed in seeds(10) {
        let whole = if seed % 2 == 0 { rlft(8, 2, &options()) } else { rlft(4, 3, &options()) }.unwrap();
        let damage = Damage { cables: 2 + 3 * seed as usize, switches: seed as usize % 3 };
        check(&format!("WEFT_SEED={seed}"), &degraded(&whole, damage, seed).unwrap(), 0);
    }
}

#[test]
fn paths_are_as_short_as_petgraphs() {
    for seed in seeds(12) {
        let parameters =
            RandomFabric { switches: 14, hosts: 20, extra_cables: 6 + seed as u32, parallel_cables: 2 };
        let whole = random(&parameters, seed, &options()).unwrap();
        let fabric = degraded(&whole, Damage { cables: seed as usize, switches: 0 }, seed).unwrap();
        let lids = Lids::in_guid_order(&fabric, 1).unwrap();
        for engine in ["sssp", "dfsssp"] {
            let routing = route(engine, &fabric, &lids);
            for (from, _) in fabric.switches() {
                let hops = oracle::hops(&fabric, from);
                for (owner, lid) in lids.iter().flat_map(|lids| lids.iter().map(move |lid| (lids.port, lid)))
                {
                    let last = oracle::switch_of(&fabric, owner).expect("hosts keep their cables");
                    let port = routing.routes.port(from, lid);
                    let taken =
                        (port != PortNum::NONE).then(|| oracle::way(&fabric, &routing, from, lid).len());
                    assert_eq!(taken, hops.get(&last).copied(), "{engine}, WEFT_SEED={seed}");
                }
            }
        }
    }
}

/// The same fabric with its nodes in another order.
fn shuffled(fabric: &Fabric, seed: u64) -> Fabric {
    let mut nodes = fabric.nodes().to_vec();
    nodes.shuffle(&mut Pcg64::seed_from_u64(seed));
    let mut builder = FabricBuilder::new();
    for node in nodes {
        builder.add_node(node).expect("it was a node before");
    }
    for cable in fabric.cables() {
        let [a, b] = [cable.a, cable.b].map(|end| {
            let node = builder.fabric().by_guid(fabric.node(end.node).guid).expect("it was added");
            PortRef::new(node, end.port)
        });
        builder.connect(a, b).expect("it was a cable before");
    }
    builder.build()
}

fn tables_by_guid(fabric: &Fabric, routing: &Routing) -> BTreeMap<Guid, Vec<(Lid, PortNum)>> {
    let tables = &routing.routes.tables;
    fabric.iter().map(|(index, node)| (node.guid, tables[index.index()].routes().collect())).collect()
}

#[test]
fn neither_threads_nor_the_order_of_nodes_matter() {
    for seed in seeds(3) {
        let parameters = RandomFabric { switches: 20, hosts: 40, extra_cables: 30, parallel_cables: 3 };
        let fabric = random(&parameters, seed, &options()).unwrap();
        let lids = Lids::in_guid_order(&fabric, (seed % 2) as u8).unwrap();
        let by = |threads| {
            let options = EngineOptions { threads, ..EngineOptions::default() };
            route_with("dfsssp", &fabric, &lids, &options).unwrap()
        };
        let one = by(1);
        assert!(one.report.lanes > 1, "WEFT_SEED={seed}: more would be tested with a harder one");
        assert_eq!(one, by(2), "WEFT_SEED={seed}");
        let other = shuffled(&fabric, seed);
        let other_lids = Lids::in_guid_order(&other, (seed % 2) as u8).unwrap();
        let routing = route("dfsssp", &other, &other_lids);
        assert_eq!(tables_by_guid(&fabric, &one), tables_by_guid(&other, &routing), "WEFT_SEED={seed}");
        for (source, destination) in (0..=lids.top().0).zip((0..=lids.top().0).rev()) {
            let pair = (Lid(source), Lid(destination));
            assert_eq!(one.levels.of(pair.0, pair.1), routing.levels.of(pair.0, pair.1), "WEFT_SEED={seed}");
        }
    }
}

#[test]
fn too_few_lanes_are_a_refusal_that_names_a_switch() {
    let fabric = ring(5, 1, &options()).unwrap();
    let lids = Lids::in_guid_order(&fabric, 0).unwrap();
    let with =
        |lanes| route_with("dfsssp", &fabric, &lids, &EngineOptions { lanes, ..EngineOptions::default() });
    let refusal = with(1).unwrap_err();
    assert!(refusal.starts_with("dfsssp: paths through S-"), "{refusal}");
    assert!(
        refusal.ends_with("would still wait for each other on 1 lanes: allow more, or route by updn"),
        "{refusal}"
    );
    assert_eq!(with(2).unwrap().report.lanes, 2);
    assert_eq!(with(0).unwrap_err(), "dfsssp: the number of lanes must be 1 to 15, not 0");
    assert_eq!(with(16).unwrap_err(), "dfsssp: the number of lanes must be 1 to 15, not 16");
}

#[test]
fn the_lids_of_a_port_take_different_ways() {
    // From a to d there are two ways over b and one over c.
    let text = "Switch 8 \"a\"\n[1] \"b\"[1]\n[2] \"b\"[2]\n[3] \"c\"[1]\n[4] \"h1\"\n\nSwitch 8 \"b\"\n[3] \"d\"[1]\n\
                [4] \"d\"[3]\n\nSwitch 8 \"c\"\n[3] \"d\"[2]\n\nSwitch 8 \"d\"\n[8] \"h2\"\n\nCa 1 \"h1\"\n\nCa 1 \"h2\"\n";
    let fabric = parse("lmc", text).unwrap();
    let lids = Lids::in_guid_order(&fabric, 2).unwrap();
    let (a, h2) = (fabric.find("a").unwrap(), fabric.find("h2").unwrap());
    let of_h2 = lids.of(PortRef::new(h2, PortNum(1))).unwrap();
    let routing = route("sssp", &fabric, &lids);
    let used: BTreeSet<u8> = of_h2.iter().map(|lid| routing.routes.port(a, lid).0).collect();
    assert_eq!(used, [1, 2, 3].into());
}

#[test]
fn an_hca_with_two_ports_carries_nothing_for_others() {
    let text = "Switch 4 \"a\"\n[1] \"two\"[1]\n[2] \"h1\"\n\nSwitch 4 \"b\"\n[1] \"two\"[2]\n[2] \"h2\"\n\
                \nCa 2 \"two\"\n\nCa 1 \"h1\"\n\nCa 1 \"h2\"\n";
    let fabric = parse("two", text).unwrap();
    let lids = Lids::in_guid_order(&fabric, 0).unwrap();
    let routing = check("two ports", &fabric, 0);
    let lid = |id: &str, port| lids.of(PortRef::new(fabric.find(id).unwrap(), PortNum(port))).unwrap().base;
    let (a, b) = (fabric.find("a").unwrap(), fabric.find("b").unwrap());
    assert_eq!(routing.routes.port(a, lid("two", 1)), PortNum(1));
    assert_eq!(routing.routes.port(a, lid("two", 2)), PortNum::NONE);
    assert_eq!(routing.routes.port(b, lid("two", 2)), PortNum(1));
    assert_eq!(routing.routes.port(a, lid("h2", 1)), PortNum::NONE);
    assert_eq!(routing.routes.port(a, lid("a", 0)), PortNum::ZERO);
}

#[test]
fn fabrics_without_switches_have_empty_tables() {
    let fabric = parse("hosts", "Ca 1 \"x\"\n[1] \"y\"[1]\n\nCa 1 \"y\"\n").unwrap();
    let lids = Lids::in_guid_order(&fabric, 0).unwrap();
    for engine in ["sssp", "dfsssp"] {
        let routing = route(engine, &fabric, &lids);
        assert!(routing.routes.tables.iter().all(weft_routing::ForwardingTable::is_empty), "{engine}");
        assert_eq!(routing.report.lanes, 1, "{engine}");
    }
}

#[test]
fn every_cable_of_a_tree_carries_as_many_hosts() {
    let fabric = rlft(12, 2, &options()).unwrap();
    let lids = Lids::in_guid_order(&fabric, 0).unwrap();
    let routing = route("sssp", &fabric, &lids);
    let mut loads: BTreeMap<PortRef, usize> = BTreeMap::new();
    for (from, host) in fabric.hosts() {
        let first = oracle::switch_of(&fabric, PortRef::new(from, PortNum(1))).unwrap();
        for to in lids.iter().filter(|lids| !fabric.node(lids.port.node).is_switch()) {
            for port in oracle::way(&fabric, &routing, first, to.base) {
                *loads.entry(port).or_default() += 1;
            }
        }
        assert_eq!(host.port_count(), 1);
    }
    // 12 leaves of 6 hosts and 6 roots, one cable each: 66 hosts are beyond each of the 6 uplinks of 6 hosts.
    assert_eq!(loads.len(), 2 * 12 * 6);
    assert!(loads.values().all(|load| *load == 66), "{loads:?}");
}

#[test]
fn the_production_cluster_needs_one_lane() {
    let fabric = parse("x5", include_str!("../../../../../topologies/psmn-x5.topo")).unwrap();
    assert_eq!(check("X5", &fabric, 0).report.lanes, 1);
}

/// Breaking circles costs no balance: director switches whose edges share some line chips, and such with trunks.
#[test]
fn director_switches_lose_no_balance_to_lanes() {
    let none = Directors::default();
    let trunks =
        Directors { lines: vec![6, 6], spines: 3, inside: 2, line_hosts: 6, trunks: 12, ..none.clone() };
    let edges =
        Directors { lines: vec![8, 6], spines: 6, edges: 20, edge_hosts: 8, uplinks: 4, ..none.clone() };
    let large = Directors { lines: vec![30, 23], spines: 18, edges: 85, edge_hosts: 19, uplinks: 9, ..none };
    let mut bandwidths = [0.0; 2];
    for (name, shape) in [("trunks", trunks), ("edges", edges), ("174 switches", large)] {
        let fabric = director(&shape, &options()).unwrap();
        let lids = Lids::in_guid_order(&fabric, 0).unwrap();
        let [even, free] = ["sssp", "dfsssp"].map(|engine| route(engine, &fabric, &lids));
        let participants = Participants::all(hosts(&fabric, &lids));
        let runs = SimulateOptions { runs: 200, seed: 1, ..SimulateOptions::default() };
        let rows = [("sssp", &even), ("dfsssp", &free)];
        let compared = compare(&fabric, &lids, &rows, &participants, Pattern::Bisect, &runs).unwrap();
        let [even, free] = &compared.rows[..] else { panic!("two were compared") };
        let [busiest, busy] = [even, free].map(|row| row.balance.flows.all.max);
        assert!(busy <= busiest * 1.1, "{name}:\n{compared}");
        bandwidths[0] += even.bandwidth.mean;
        bandwidths[1] += free.bandwidth.mean;
    }
    let [even, free] = bandwidths;
    assert!(free >= even * 0.99, "{free} instead of {even}");
}
