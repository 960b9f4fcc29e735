//! Dimension-order tables are shortest, free of deadlock, and only for grids.

use std::collections::BTreeSet;

use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;
use weft_routing::{
    Engine, EngineOptions, Expectations, Input, Lids, Refusal, Routing, Verdict, verify, verify_routing,
};
use weft_topology::generate::{
    GenerateOptions, RandomFabric, dragonfly, hypercube, mesh, random, ring, rlft, torus,
};
use weft_topology::{Fabric, FabricBuilder, Node, NodeIndex, PortRef, parse};
use weft_wire::{Guid, NodeType, PortNum};

use super::oracle::{flows, is_deadlock_free, seed, without};

const ANY: GenerateOptions = GenerateOptions {
    radix: None,
    tree_hosts: None,
    rate: weft_topology::LinkRate::new(weft_topology::LinkWidth::X4, weft_topology::LinkSpeed::Edr),
};

fn route(fabric: &Fabric, lids: &Lids, lanes: u8) -> Result<Routing, Refusal> {
    let options = EngineOptions { lanes, ..EngineOptions::default() };
    Engine::by_name("dor").expect("there is one").route(&Input { fabric, lids, options: &options })
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

/// The same switches with a port more, and a host in that of each `every`-th.
fn with_hosts(fabric: &Fabric, every: usize) -> Fabric {
    let mut builder = FabricBuilder::new();
    for node in fabric.nodes() {
        let mut other = Node::new(node.kind, node.guid, node.port_count() + 1, node.ports[0].link);
        other.description.clone_from(&node.description);
        builder.add_node(other).expect("GUIDs differ");
    }
    for cable in fabric.cables() {
        builder.connect(cable.a, cable.b).expect("it was a cable before");
    }
    for (index, node) in fabric.iter().step_by(every) {
        let guid = Guid(0xf000 + 16 * u64::from(index.0));
        let host = builder.add_node(Node::new(NodeType::Hca, guid, 1, node.ports[0].link));
        let ends = [(host.expect("GUIDs differ"), 1), (index, node.port_count() + 1)];
        let [a, b] = ends.map(|(node, port)| PortRef::new(node, PortNum(port)));
        builder.connect(a, b).expect("both ports are free");
    }
    builder.build()
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
        let guid = if node.is_switch() { guids.pop().expect("one for each") } else { node.guid };
        let mut other = Node::new(node.kind, guid, node.port_count(), node.ports[0].link);
        other.description.clone_from(&node.description);
        moved[place] = builder.add_node(other).expect("GUIDs differ");
    }
    let end = |port: PortRef| {
        let number = ports[port.node.index()][usize::from(port.port.0) - 1];
        PortRef::new(moved[port.node.index()], PortNum(number))
    };
    for cable in fabric.cables() {
        builder.connect(end(cable.a), end(cable.b)).expect("it was a cable before");
    }
    builder.build()
}

fn verified(fabric: &Fabric, lids: &Lids, routing: &Routing) -> Verdict {
    let expectations = Expectations { lanes: routing.report.lanes, ..Expectations::default() };
    verify_routing(fabric, lids, routing, &expectations)
}

/// All that dimension order promises of a grid.
fn check(fabric: &Fabric, lmc: u8, what: &str) -> Routing {
    let (lids, routing) = routed(fabric, lmc);
    let verdict = verified(fabric, &lids, &routing);
    assert!(verdict.reach.is_minimal() && verdict.is_deadlock_free(), "{what}: {verdict}");
    assert!(verdict.is_sound() && verdict.is_symmetric(), "{what}: {verdict}");
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
fn up_to_four_rings_are_told_apart_by_the_levels() {
    for (sides, levels) in [(&[5, 5, 5][..], 8), (&[5; 4], 16)] {
        // One host at every 25th switch will do.
        let fabric = with_hosts(&torus(sides, 0, &ANY).unwrap(), 25);
        let (lids, routing) = routed(&fabric, 0);
        assert_eq!(usize::from(routing.levels.highest().0) + 1, levels);
        let verdict = verified(&fabric, &lids, &routing);
        assert!(
            verdict.is_sound() && verdict.is_symmetric() && verdict.is_deadlock_free(),
            "{sides:?}: {verdict}"
        );
        assert_eq!(routing.report.unsatisfied, [""; 0]);
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
        let whole = whole.unwrap();
        if whole.nodes().len() > 120 {
            continue;
        }
        let fabric = scrambled(&whole, &mut draws);
        let what = format!("WEFT_SEED={} round {round}: {sides:?} closed {closed}", seed());
        check(&fabric, draws.random_range(0..2), &what);
    }
}

/// The grid without each of its cables between switches in turn, with the ends of that cable.
fn cuts(fabric: &Fabric) -> Vec<(Fabric, Vec<NodeIndex>)> {
    let between = |cable: &weft_topology::Cable| {
        fabric.node(cable.a.node).is_switch() && fabric.node(cable.b.node).is_switch()
    };
    let cables = fabric.cables().enumerate().filter(|(_, cable)| between(cable));
    let cut = |(number, cable): (usize, weft_topology::Cable)| {
        (without(fabric, &BTreeSet::new(), &[number].into()), vec![cable.a.node, cable.b.node])
    };
    cables.map(cut).collect()
}

/// The grid without each of its switches in turn, with the neighbours of that switch.
fn losses(fabric: &Fabric) -> Vec<(Fabric, Vec<NodeIndex>)> {
    let loss = |(switch, node): (NodeIndex, &Node)| {
        let beside =
            node.cabled_ports().map(|(_, peer)| peer.node).filter(|node| fabric.node(*node).is_switch());
        (without(fabric, &[switch].into(), &BTreeSet::new()), beside.collect())
    };
    fabric.switches().map(loss).collect()
}

#[test]
fn a_missing_cable_or_switch_is_named() {
    let wholes = [
        mesh(&[4, 4], 1, &ANY),
        mesh(&[3, 4, 3], 0, &ANY),
        torus(&[5, 5], 0, &ANY),
        torus(&[5, 4, 3], 0, &ANY),
        hypercube(4, 0, &ANY),
    ];
    for whole in wholes.map(Result::unwrap) {
        for (fabric, named) in cuts(&whole).into_iter().chain(losses(&whole)) {
            let refusal = refusal(&fabric);
            for node in named {
                let id = &whole.node(node).id;
                assert!(refusal.contains(id), "{id} is not named: {refusal}");
            }
        }
    }
}

#[test]
fn an_end_of_a_cable_too_many_is_named() {
    let whole = mesh(&[5, 5], 1, &GenerateOptions { radix: Some(8), ..ANY }).unwrap();
    let mut builder = FabricBuilder::new();
    for node in whole.nodes() {
        builder.add_node(node.clone()).unwrap();
    }
    for cable in whole.cables() {
        builder.connect(cable.a, cable.b).unwrap();
    }
    let ends = ["switch-1-1", "switch-4-3"].map(|name| whole.find(name).unwrap());
    let ports = ends.map(|node| PortRef::new(node, builder.free_port(node).unwrap()));
    builder.connect(ports[0], ports[1]).unwrap();
    let ids = ends.map(|node| whole.node(node).id.clone());
    let refusal = refusal(&builder.build());
    assert!(ids.iter().any(|id| refusal.contains(id)), "{ids:?}: {refusal}");
}

#[test]
fn dor_names_a_switch_when_the_fabric_is_no_grid() {
    let parameters = RandomFabric { switches: 20, hosts: 4, extra_cables: 15, parallel_cables: 2 };
    let fabrics = [rlft(8, 2, &ANY), dragonfly(4, 2, 2, None, &ANY), random(&parameters, seed(), &ANY)];
    for fabric in fabrics.map(Result::unwrap) {
        let refusal = refusal(&fabric);
        assert!(fabric.switches().any(|(_, node)| refusal.contains(&node.id)), "{refusal}");
    }
    let text = "Switch 4 \"a\"\n[1] \"h1\"\n\nSwitch 4 \"b\"\n[1] \"h2\"\n\nCa 1 \"h1\"\n\nCa 1 \"h2\"\n";
    let refusal = refusal(&parse("pieces", text).unwrap());
    assert_eq!(refusal, "dor: no cables join the switches a and b");
}

#[test]
fn a_ring_on_one_lane_is_routed_but_not_called_free_of_deadlock() {
    let fabric = ring(6, 1, &ANY).unwrap();
    let lids = Lids::in_guid_order(&fabric, 0).unwrap();
    let routing = route(&fabric, &lids, 1).unwrap();
    assert_eq!(
        routing.report.unsatisfied,
        ["packets can deadlock in the rings: they need 2 lanes, and 1 is given"]
    );
    assert!(verify(&fabric, &lids, &routing.routes, &[]).is_minimal());
    assert!(!is_deadlock_free(&fabric, &lids, &routing));
}

#[test]
fn parallel_cables_of_a_grid_share_evenly() {
    let mut text = String::new();
    for (here, there) in [("a", "b"), ("b", "c"), ("c", "d"), ("d", "a")] {
        text += &format!("Switch 12 \"{here}\"\n[1] \"{there}\"[3]\n[2] \"{there}\"[4]\n");
        text += &(5..9).map(|port| format!("[{port}] \"{here}{port}\"\n")).collect::<String>();
        text += &(5..9).map(|port| format!("\nCa 1 \"{here}{port}\"\n")).collect::<String>();
        text += "\n";
    }
    let fabric = parse("parallel", &text).unwrap();
    let routing = check(&fabric, 0, "two cables each");
    assert_eq!(routing.report.notes, ["the grid is 2 x 2"]);
    let lids = Lids::in_guid_order(&fabric, 0).unwrap();
    let hosts: Vec<_> = lids.iter().filter(|lids| !fabric.node(lids.port.node).is_switch()).collect();
    for (switch, node) in fabric.switches() {
        let load = |port| hosts.iter().filter(|lids| routing.routes.port(switch, lids.base) == port).count();
        let loads: Vec<usize> = (1..=4).map(|port| load(PortNum(port))).collect();
        assert_eq!((loads[0], loads[2]), (loads[1], loads[3]), "{}: {loads:?}", node.id);
        assert_eq!(loads.iter().sum::<usize>(), 12);
    }
}

#[test]
fn the_number_of_threads_changes_nothing() {
    let fabric = torus(&[6, 5, 3], 2, &ANY).unwrap();
    let lids = Lids::in_guid_order(&fabric, 1).unwrap();
    let by = |threads| {
        let options = EngineOptions { threads, ..EngineOptions::default() };
        Engine::by_name("dor").unwrap().route(&Input { fabric: &fabric, lids: &lids, options: &options })
    };
    assert_eq!(by(1).unwrap(), by(2).unwrap());
}
