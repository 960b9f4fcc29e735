//! vFtree: the tables of ftree, and a lane for every pair of leaves.

use std::collections::BTreeMap;

use weft_routing::{Engine, EngineOptions, Input, Lids, Routing};
use weft_topology::generate::{Damage, GenerateOptions, degraded, kary_ntree, pgft, xgft};
use weft_topology::{Fabric, NodeIndex, parse};
use weft_wire::Lid;

use oracle::{flows, is_deadlock_free, seed, switch_of};

use crate::oracle;

fn routed(engine: &str, fabric: &Fabric, lids: &Lids, lanes: u8) -> Routing {
    let options = EngineOptions { lanes, ..EngineOptions::default() };
    Engine::by_name(engine).unwrap().route(&Input { fabric, lids, options: &options }).unwrap()
}

/// The LIDs of the hosts that are called `host-1`, `host-2` and so on.
fn hosts(fabric: &Fabric, lids: &Lids) -> BTreeMap<usize, Lid> {
    let number = |node: NodeIndex| fabric.node(node).description.strip_prefix("host-")?.parse().ok();
    lids.iter().filter_map(|lids| Some((number(lids.port.node)?, lids.base))).collect()
}

/// The papers' trees of experiments 4a and 4b, and how many hosts a leaf has there.
fn papers_trees() -> [(Fabric, usize); 2] {
    let tree_4a = parse("dftree-1.topo", include_str!("../../../../topologies/dftree-1.topo")).unwrap();
    let tree_4b = parse("vftree-4b.topo", include_str!("../../../../topologies/vftree-4b.topo")).unwrap();
    [(tree_4a, 2), (tree_4b, 4)]
}

#[test]
fn the_papers_trees_get_their_lanes() {
    // By number of lanes: A-B, A-C and B-C.
    let expected = [[0, 0, 0], [0, 1, 1], [0, 1, 2], [0, 1, 2]];
    for (fabric, per_leaf) in papers_trees() {
        let lids = Lids::in_guid_order(&fabric, 0).unwrap();
        let hosts = hosts(&fabric, &lids);
        assert_eq!(hosts.len(), 3 * per_leaf);
        for (lanes, pairs) in (1..).zip(expected) {
            let routing = routed("vftree", &fabric, &lids, lanes);
            for (from, source) in &hosts {
                for (to, destination) in &hosts {
                    let mut leaves = [(from - 1) / per_leaf, (to - 1) / per_leaf];
                    leaves.sort_unstable();
                    let lane = match leaves {
                        [0, 1] => pairs[0],
                        [0, 2] => pairs[1],
                        [1, 2] => pairs[2],
                        _ => 0,
                    };
                    let level = routing.levels.of(*source, *destination);
                    assert_eq!(level.0, lane, "{from} to {to}, {lanes} lanes");
                }
            }
            assert_eq!(routing.report.lanes, pairs[2] + 1);
        }
    }
}

/// On tree 4a, 1-5 shares link 1 with 2-3 and 3-5 shares link 3 with 4-1: with three lanes each has its own, and so
/// have the two that go to 5. On tree 4b, 6-9 and 8-11 share links 3 and 5, and a lane too: both go from B to C.
#[test]
fn the_papers_flows_on_shared_links_get_the_papers_lanes() {
    for ((fabric, per_leaf), flows, links, lanes) in [
        (0, vec![(1, 5), (2, 3), (3, 5), (4, 1)], vec![1, 1, 3, 3], vec![1, 0, 2, 0]),
        (1, vec![(1, 9), (6, 9), (8, 11)], vec![1, 3, 3], vec![1, 2, 2]),
    ]
    .map(|(tree, flows, links, lanes)| (papers_trees()[tree].clone(), flows, links, lanes))
    {
        let lids = Lids::in_guid_order(&fabric, 0).unwrap();
        let hosts = hosts(&fabric, &lids);
        let routing = routed("vftree", &fabric, &lids, 3);
        let link = |(from, to): (usize, usize)| {
            let leaf = (from - 1) / per_leaf;
            let port = routing.routes.port(fabric.find(["A", "B", "C"][leaf]).unwrap(), hosts[&to]);
            2 * leaf + usize::from(port.0) - per_leaf
        };
        let lane = |(from, to): (usize, usize)| routing.levels.of(hosts[&from], hosts[&to]).0;
        assert_eq!(flows.iter().copied().map(link).collect::<Vec<_>>(), links);
        assert_eq!(flows.iter().copied().map(lane).collect::<Vec<_>>(), lanes);
    }
}

#[test]
fn tables_are_those_of_ftree_and_any_number_of_lanes_is_used() {
    let plain = GenerateOptions::default();
    let fabrics = [
        pgft(&[2, 3], &[1, 1], &[1, 2], &plain).unwrap(),
        xgft(&[4, 8], &[1, 4], &plain).unwrap(),
        kary_ntree(3, 3, &plain).unwrap(),
        degraded(&kary_ntree(3, 3, &plain).unwrap(), Damage { cables: 4, switches: 1 }, seed()).unwrap(),
    ];
    for fabric in &fabrics {
        let lids = Lids::in_guid_order(fabric, 0).unwrap();
        let ftree = routed("ftree", fabric, &lids, 1);
        let leaves = fabric
            .switches()
            .filter(|(_, switch)| switch.cabled_ports().any(|(_, peer)| !fabric.node(peer.node).is_switch()));
        let leaves = leaves.count() as u8;
        for lanes in 1..=15 {
            let routing = routed("vftree", fabric, &lids, lanes);
            assert_eq!(routing.routes, ftree.routes);
            assert!(is_deadlock_free(fabric, &lids, &routing), "seed {}, {lanes} lanes", seed());
            let mut used = [false; 15];
            for (from, to, _) in flows(fabric, &lids, &routing) {
                let level = routing.levels.of(from.base, to);
                assert_eq!(level, routing.levels.of(to, from.base), "LIDs {} and {to}", from.base);
                let ends = [from.port, lids.owner(to).unwrap()].map(|port| switch_of(fabric, port));
                assert!(ends[0] != ends[1] || level.0 == 0, "LIDs {} and {to} are on one leaf", from.base);
                used[usize::from(level.0)] = true;
            }
            let count = used.iter().filter(|used| **used).count();
            // The first leaf alone has a pair for every lane, if there are as many leaves behind it.
            assert!(count >= usize::from(lanes.min(leaves - 1)), "{count} of {lanes} lanes");
            assert!(used[usize::from(lanes)..].iter().all(|used| !used));
            assert!(usize::from(routing.report.lanes) >= count && routing.report.lanes <= lanes);
        }
    }
}

#[test]
fn engines_with_lanes_refuse_numbers_that_there_are_not() {
    let [(fabric, _), _] = papers_trees();
    let lids = Lids::in_guid_order(&fabric, 0).unwrap();
    for engine in ["vftree", "lash"] {
        for (lanes, fits) in [(0, false), (1, true), (15, true), (16, false)] {
            let options = EngineOptions { lanes, ..EngineOptions::default() };
            let input = Input { fabric: &fabric, lids: &lids, options: &options };
            let refusal =
                Engine::by_name(engine).unwrap().route(&input).err().map(|refusal| refusal.to_string());
            let expected = format!("{engine}: the number of lanes must be 1 to 15, not {lanes}");
            assert_eq!(refusal, (!fits).then_some(expected));
        }
    }
}
