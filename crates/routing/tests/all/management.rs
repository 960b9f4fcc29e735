//! Management traffic, which hosts reach although no path up and then down need lead there: switches without hosts, and nodes that serve
//! management alone.

use trees::{deadlocks, path};
use weft_routing::{
    Chain, EngineOptions, Expectations, Lids, ManagementNodes, Refusal, Routing, Verdict, verify_routing,
};
use weft_topology::generate::{
    AGGREGATION_NODE, Damage, GenerateOptions, degraded, pgft, torus, with_node_at_every_switch, xgft,
};
use weft_topology::{Fabric, NodeIndex, PortRef};
use weft_wire::{Guid, PortNum};

use crate::trees;

/// The engines that see a fat-tree.
const TREES: [&str; 7] =
    ["ftree", "vftree", "vswitch-ftree", "pftree", "pftree-ext", "pftree-wt", "pftree-combined"];

fn lids(fabric: &Fabric) -> Lids {
    Lids::in_guid_order(fabric, 0).unwrap()
}

fn alone(engine: &str, fabric: &Fabric, options: &EngineOptions) -> Result<Routing, Vec<Refusal>> {
    format!("{engine},no_fallback").parse::<Chain>().unwrap().route(fabric, &lids(fabric), options)
}

fn verdict(fabric: &Fabric, routing: &Routing, management_nodes: &[Guid]) -> Verdict {
    let expected =
        Expectations { tree: routing.ranks.is_some(), management_nodes, ..Expectations::default() };
    verify_routing(fabric, &lids(fabric), routing, &expected)
}

/// Routes trees without some cables by `ftree`: how many have management packets that turn where no circle can close.
fn mended(children: &[u32], parents: &[u32], cables: usize, seeds: u64) -> usize {
    let whole = xgft(children, parents, &GenerateOptions::default()).unwrap();
    let mut mended = 0;
    for seed in 0..seeds {
        let fabric = degraded(&whole, Damage { cables, ..Damage::default() }, seed).unwrap();
        let routing = match alone("ftree", &fabric, &EngineOptions::default()) {
            Ok(routing) => routing,
            Err(refusals) => panic!("{children:?}, seed {seed}: {refusals:?}"),
        };
        let verdict = verdict(&fabric, &routing, &[]);
        let serves = verdict.reach.serves_hosts() && verdict.is_deadlock_free();
        assert!(serves, "{children:?}, seed {seed}: {verdict}");
        let told = &routing.report.fallbacks;
        mended += usize::from(told.iter().any(|sentence| sentence.contains("no circle can close")));
    }
    mended
}

#[test]
fn a_hostless_switch_keeps_no_data_from_the_tree() {
    let mended = mended(&[18, 18], &[1, 18], 60, 10);
    assert!(mended >= 3, "{mended} of 10 trees of 324 hosts with 60 cut cables");
}

#[test]
fn management_turns_have_no_cycle_by_a_second_check() {
    let whole = xgft(&[4, 4, 4], &[1, 4, 4], &GenerateOptions::default()).unwrap();
    let mut mended = 0;
    for seed in 0..30 {
        let fabric = degraded(&whole, Damage { cables: 20, ..Damage::default() }, seed).unwrap();
        let Ok(routing) = alone("ftree", &fabric, &EngineOptions::default()) else { continue };
        let told = &routing.report.fallbacks;
        if told.iter().any(|sentence| sentence.contains("no circle can close")) {
            mended += 1;
            assert!(!deadlocks(&fabric, &lids(&fabric), &routing.routes), "seed {seed}");
        }
    }
    assert!(mended >= 15, "{mended} of 30");
}

/// Shapes of real clusters: two spines with six cables to each leaf; a director of switch chips, whole and smaller.
fn clusters(description: &str) -> Vec<Fabric> {
    let radix = |radix| GenerateOptions { radix: Some(radix), ..GenerateOptions::default() };
    let shapes = [
        pgft(&[24, 4], &[1, 2], &[1, 6], &radix(40)),
        pgft(&[6, 3, 4], &[1, 3, 2], &[1, 1, 2], &radix(20)),
        xgft(&[6, 6, 4], &[1, 3, 3], &radix(20)),
    ];
    shapes.map(|shape| with_node_at_every_switch(&shape.unwrap(), description).unwrap()).into()
}

fn end_ports(fabric: &Fabric, of: impl Fn(NodeIndex) -> bool) -> Vec<PortRef> {
    fabric.hosts().filter(|(index, _)| of(*index)).map(|(index, _)| PortRef::new(index, PortNum(1))).collect()
}

#[test]
fn tree_engines_serve_aggregation_nodes_at_every_switch() {
    for fabric in clusters(AGGREGATION_NODE) {
        let (management, lids) = (ManagementNodes::new(&fabric, &[]), lids(&fabric));
        assert_eq!(management.count(), fabric.counts().switches);
        let hosts = end_ports(&fabric, |index| !management.contains(index));
        let aggs = end_ports(&fabric, |index| management.contains(index));
        for engine in TREES {
            let routing = alone(engine, &fabric, &EngineOptions::default())
                .unwrap_or_else(|refusals| panic!("{engine}: {refusals:?}"));
            let verdict = verdict(&fabric, &routing, &[]);
            assert!(verdict.is_sound() && verdict.is_deadlock_free(), "{engine}: {verdict}");
            for (host, agg) in hosts.iter().flat_map(|host| aggs.iter().map(move |agg| (*host, *agg))) {
                for (from, to) in [(host, agg), (agg, host)] {
                    let lid = lids.of(to).unwrap().base;
                    let found = path(&fabric, &lids, &routing.routes, from, lid);
                    assert!(
                        found.is_some(),
                        "{engine}: {} to {}",
                        fabric.port_name(from),
                        fabric.port_name(to)
                    );
                }
            }
        }
        for engine in ["updn", "minhop"] {
            let routing = alone(engine, &fabric, &EngineOptions::default()).unwrap();
            assert!(routing.report.unsatisfied.is_empty(), "{engine}: {:?}", routing.report);
        }
    }
}

#[test]
fn operator_named_nodes_are_served_like_aggregation_nodes() {
    for fabric in clusters("storage controller") {
        let named: Vec<Guid> = (fabric.nodes().iter())
            .filter(|node| node.description == "storage controller")
            .map(|node| node.guid)
            .collect();
        for engine in TREES {
            let refusals = alone(engine, &fabric, &EngineOptions::default()).unwrap_err();
            assert!(refusals[0].reason.contains("compute nodes"), "{refusals:?}");
            let options = EngineOptions { management_nodes: named.clone(), ..EngineOptions::default() };
            let routing = alone(engine, &fabric, &options).unwrap();
            let verdict = verdict(&fabric, &routing, &named);
            assert!(verdict.is_sound() && verdict.is_deadlock_free(), "{engine}: {verdict}");
        }
    }
}

/// Balance is what it is without such nodes: hosts that share links do not make room for them.
#[test]
fn management_nodes_do_not_shift_the_balance_of_hosts() {
    let options = GenerateOptions { radix: Some(20), ..GenerateOptions::default() };
    for whole in [pgft(&[6, 3, 4], &[1, 3, 2], &[1, 1, 2], &options), torus(&[3, 4], 3, &options)] {
        let whole = whole.unwrap();
        for description in [AGGREGATION_NODE, "storage controller"] {
            let fabric = with_node_at_every_switch(&whole, description).unwrap();
            let named = fabric.nodes().iter().filter(|node| node.description == description);
            let management_nodes = named.map(|node| node.guid).collect();
            let options = EngineOptions { management_nodes, ..EngineOptions::default() };
            for engine in ["minhop", "updn"] {
                let plain = alone(engine, &whole, &EngineOptions::default()).unwrap();
                let routing = alone(engine, &fabric, &options).unwrap();
                let (plain_lids, lids) = (lids(&whole), lids(&fabric));
                for (switch, node) in whole.switches() {
                    for (host, _) in whole.hosts() {
                        let port = PortRef::new(host, PortNum(1));
                        let expected = plain.routes.port(switch, plain_lids.of(port).unwrap().base);
                        let found = routing.routes.port(switch, lids.of(port).unwrap().base);
                        assert_eq!(found, expected, "{engine}: {} to {}", node.id, whole.node(host).id);
                    }
                }
            }
        }
    }
}

#[test]
fn a_director_of_switch_chips_with_aggregation_nodes_is_a_tree() {
    let options = GenerateOptions { radix: Some(40), ..GenerateOptions::default() };
    let director = xgft(&[18, 9, 8], &[1, 9, 4], &options).unwrap();
    let fabric = with_node_at_every_switch(&director, AGGREGATION_NODE).unwrap();
    let counts = fabric.counts();
    assert_eq!((counts.switches, counts.hosts), (180, 1296 + 180));
    let routing = alone("ftree", &fabric, &EngineOptions::default()).unwrap();
    let verdict = verdict(&fabric, &routing, &[]);
    assert!(verdict.is_sound() && verdict.is_deadlock_free(), "{verdict}");
    assert_eq!(verdict.turns.map(|turns| turns.hosts), Some(0));
    // The default proves min-hop there: no host sends from spine to spine.
    let chain = Chain::default().route(&fabric, &lids(&fabric), &EngineOptions::default()).unwrap();
    assert_eq!((chain.report.engine.as_str(), &chain.report.unsatisfied[..]), ("minhop", &[][..]));
}
