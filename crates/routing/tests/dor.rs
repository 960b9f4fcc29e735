//! Dimension-order tables are shortest, free of deadlock, and only for grids.

mod oracle;

use std::collections::BTreeSet;

use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;
use weft_routing::{Engine, EngineOptions, Input, Lids, Refusal, Routing, verify};
use weft_topology::generate::{
    GenerateOptions, RandomFabric, dragonfly, hypercube, mesh, random, ring, rlft, torus,
};
use weft_topology::{Fabric, FabricBuilder, Node, NodeIndex, PortRef, parse};
use weft_wire::PortNum;

use oracle::{flows, is_deadlock_free, seed, without};

const ANY: GenerateOptions = GenerateOptions {
    radix: None,
    tree_hosts: None,
    rate: weft_topology::LinkRate::new(weft_topology::LinkWidth::X4, weft_topology::LinkSpeed::Edr),
};

fn route(fabric: &Fabric, lids: &Lids, lanes: u8) -> Result<Routing, Refusal> {
    let options = EngineOptions { lanes, ..EngineOptions::default() };
    Engine::by_name("dor").unwrap().route(&Input { fabric, lids, options: &options })
}

fn routed(fabric: &Fabric, lmc: u8) -> (Lids, Routing) {
    let lids = Lids::in_guid_order(fabric, lmc).expect("there are enough LIDs");
    let routing = route(fabric, &lids, 8).unwrap_or_else(|refusal| panic!("{refusal}"));
    (lids, routing)
}

fn refusal(fabric: &Fabric) -> String {
    let lids = Lids::in_guid_order(fabric, 0).expect("there are enough LIDs");
    route(fabric, &lids, 8).expect_err("it is no grid").to_string()
}

/// The same grid with ports, GUIDs and the order of nodes drawn at random.
fn scrambled(fabric: &Fabric, draws: &mut Pcg64) -> Fabric {
    let mut order: Vec<usize> = (0..fabric.nodes().len()).collect();
    order.shuffle(draws);
    let mut guids: Vec<_> = fabric.switches().map(|(_, node)| node.guid).collect();
    guids.shuffle(draws);
    let mut builder = FabricBuilder::new();
    let mut moved = vec![NodeIndex(0); order.len()];
    let mut ports: Vec<Vec<u8>> = Vec::new();
    for node in fabric.nodes() {
        let mut numbers: Vec<u8> = (1..=node.port_count()).collect();
        if node.is_switch() {
            numbers.shuffle(draws);
        }
        ports.push(numbers);
    }
    for place in order {
        let node = &fabric.nodes()[place];
        let guid = if node.is_switch() { guids.pop().unwrap() } else { node.guid };
        let mut other = Node::new(node.kind, guid, node.port_count(), node.ports[0].link);
        other.description.clone_from(&node.description);
        moved[place] = builder.add_node(other).unwrap();
    }
    let end = |port: PortRef| {
        let number = ports[port.node.index()][usize::from(port.port.0) - 1];
        PortRef::new(moved[port.node.index()], PortNum(number))
    };
    for cable in fabric.cables() {
        builder.connect(end(cable.a), end(cable.b)).unwrap();
    }
    builder.build()
}

/// All that dimension order promises of a grid.
fn check(fabric: &Fabric, lmc: u8, what: &str) -> Routing {
    let (lids, routing) = routed(fabric, lmc);
    let report = verify(fabric, &lids, &routing.routes);
    assert!(report.is_minimal(), "{what}: {report}");
    assert!(is_deadlock_free(fabric, &lids, &routing), "{what}");
    let mut lanes = BTreeSet::new();
    for (from, lid, channels) in flows(fabric, &lids, &routing) {
        let back = routing.levels.of(lid, from.base);
        assert_eq!(routing.levels.of(from.base, lid), back, "{what}: the levels of a pair are the same");
        lanes.extend(channels.expect("all arrives").into_iter().map(|(_, lane)| lane.0));
    }
    assert_eq!(lanes.len(), usize::from(routing.report.lanes), "{what}: {lanes:?}");
    assert_eq!(routing.report.unsatisfied, [""; 0], "{what}");
    routing
}

#[test]
fn grids_are_routed_without_deadlock_by_the_fewest_lanes() {
    let cases = [
        (mesh(&[4, 3], 1, &ANY), 1),
        (mesh(&[5, 2, 3], 1, &ANY), 1),
        (mesh(&[7], 2, &ANY), 1),
        (mesh(&[1, 1], 2, &ANY), 1),
        (mesh(&[1, 2], 2, &ANY), 1),
        (hypercube(4, 1, &ANY), 1),
        (ring(3, 2, &ANY), 1),
        (ring(4, 2, &ANY), 1),
        (torus(&[3, 3], 1, &ANY), 1),
        (torus(&[4, 4], 1, &ANY), 1),
        (torus(&[4, 3, 2], 1, &ANY), 1),
        (ring(5, 2, &ANY), 2),
        (ring(8, 1, &ANY), 2),
        (torus(&[5, 5], 1, &ANY), 2),
        (torus(&[6, 3], 1, &ANY), 2),
        (torus(&[5, 4, 6], 1, &ANY), 2),
    ];
    for (number, (fabric, lanes)) in cases.into_iter().enumerate() {
        let routing = check(&fabric.unwrap(), 0, &format!("case {number}"));
        assert_eq!(routing.report.lanes, lanes, "case {number}: {:?}", routing.report);
    }
}

#[test]
fn neither_ports_nor_guids_nor_the_order_of_nodes_matter() {
    let mut draws = Pcg64::seed_from_u64(seed());
    for round in 0..60 {
        let dimensions = draws.random_range(1..4);
        let sides: Vec<u32> = (0..dimensions).map(|_| draws.random_range(1..7)).collect();
        let closed: bool = draws.random();
        let whole = if closed { torus(&sides, 1, &ANY) } else { mesh(&sides, 1, &ANY) };
        let options = GenerateOptions { radix: Some(12), ..ANY };
        let _ = options;
        let whole = whole.unwrap();
        if whole.nodes().len() > 120 {
            continue;
        }
        let fabric = scrambled(&whole, &mut draws);
        let what = format!("WEFT_SEED={} round {round}: {sides:?} closed {closed}", seed());
        check(&fabric, draws.random_range(0..2), &what);
    }
}
