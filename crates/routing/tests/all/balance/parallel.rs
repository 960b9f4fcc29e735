//! Parallel cables are all used, as evenly as numbers allow.

use std::collections::BTreeMap;

use weft_routing::{Engine, EngineOptions, Input, Lids, Routing};
use weft_topology::generate::{Directors, GenerateOptions, director, pgft};
use weft_topology::{Fabric, NodeIndex, PortRef};
use weft_wire::PortNum;

use super::oracle::channels;

/// All that choose among parallel cables.
const ENGINES: [&str; 5] = ["minhop", "updn", "lash", "sssp", "dfsssp"];

fn routed(fabric: &Fabric, lids: &Lids, engine: &str) -> Routing {
    let input = Input { fabric, lids, options: &EngineOptions::default() };
    Engine::by_name(engine).expect("an engine").route(&input).unwrap_or_else(|refusal| panic!("{refusal}"))
}

/// How many pairs of hosts use each cable between switches, in each direction.
fn pairs(fabric: &Fabric, lids: &Lids, routing: &Routing) -> BTreeMap<PortRef, u32> {
    let is_switch = |node: NodeIndex| fabric.node(node).is_switch();
    let mut pairs = BTreeMap::new();
    for (switch, node) in fabric.switches() {
        let cables = node.cabled_ports().filter(|(_, peer)| is_switch(peer.node));
        pairs.extend(cables.map(|(port, _)| (PortRef::new(switch, port), 0)));
    }
    let hosts: Vec<_> = lids.iter().filter(|lids| !is_switch(lids.port.node)).collect();
    for from in &hosts {
        for to in hosts.iter().filter(|to| to.port != from.port) {
            let taken = channels(fabric, routing, *from, (to.port, to.base)).expect("all hosts are reached");
            for (port, _) in taken {
                pairs.entry(port).and_modify(|count| *count += 1);
            }
        }
    }
    pairs
}

/// The ends of cables that no pair of hosts uses.
fn idle(fabric: &Fabric, pairs: &BTreeMap<PortRef, u32>) -> Vec<String> {
    let idle = pairs.iter().filter(|(_, count)| **count == 0);
    idle.map(|(port, _)| format!("{}[{}]", fabric.node(port.node).description, port.port)).collect()
}

fn is_leaf(fabric: &Fabric, node: NodeIndex) -> bool {
    fabric.node(node).description.starts_with("switch-1-")
}

/// Two levels: 6 leaves of 12 hosts, so 60 LIDs go up from each leaf, and 12 come down to it from 60 hosts.
#[test]
fn all_cables_of_trees_with_parallel_cables_are_used() {
    for (spines, parallel) in (2..=8).flat_map(|spines| (1..=6).map(move |parallel| (spines, parallel))) {
        let tree = pgft(&[12, 6], &[1, spines], &[1, parallel], &GenerateOptions::default()).unwrap();
        let lids = Lids::in_guid_order(&tree, 0).unwrap();
        let uplinks = spines * parallel;
        for engine in ENGINES {
            let name = format!("{engine}, {spines} spines, {parallel} cables");
            let pairs = pairs(&tree, &lids, &routed(&tree, &lids, engine));
            let (up, down): (Vec<_>, Vec<_>) = pairs.iter().partition(|(port, _)| is_leaf(&tree, port.node));
            assert!(up.iter().all(|(_, count)| **count > 0), "{name}: {up:?}");
            let used = down.iter().filter(|(_, count)| **count > 0).count() as u32;
            assert!(used >= 6 * uplinks.min(12), "{name}: {used} of {} cables down are used", down.len());
            // Every cable down has its share of the 12 LIDs of a leaf, rounded up at most.
            let share = 60 * 12_u32.div_ceil(uplinks);
            let most = down.iter().map(|(_, count)| **count).max().unwrap();
            if ["minhop", "updn"].contains(&engine) {
                assert!(most <= share, "{name}: {most} pairs on a cable instead of {share}");
            }
            if 12 % uplinks == 0 {
                assert!(pairs.values().all(|count| *count == share), "{name}: {pairs:?}");
            }
        }
    }
}

/// Three levels, with numbers that have common divisors at each.
#[test]
fn all_cables_of_deeper_trees_are_used() {
    let shapes = [
        ([4, 4, 4], [1, 2, 2], [1, 2, 1]),
        ([4, 4, 3], [1, 2, 2], [1, 2, 2]),
        ([8, 3, 3], [1, 2, 2], [1, 2, 2]),
        ([8, 3, 2], [1, 4, 2], [1, 1, 2]),
        ([6, 4, 3], [1, 3, 1], [1, 2, 3]),
        ([9, 3, 2], [1, 3, 3], [1, 3, 1]),
    ];
    for (children, parents, parallel) in shapes {
        let tree = pgft(&children, &parents, &parallel, &GenerateOptions::default()).unwrap();
        let lids = Lids::in_guid_order(&tree, 0).unwrap();
        for engine in ENGINES {
            let idle = idle(&tree, &pairs(&tree, &lids, &routed(&tree, &lids, engine)));
            assert!(idle.is_empty(), "{engine}, {children:?}, {parents:?}, {parallel:?}: idle are {idle:?}");
        }
    }
}

/// Chassis of director switches joined by trunks: every line chip has hosts and passes on what others send.
#[test]
fn all_cables_of_director_switches_with_trunks_are_used() {
    for (lines, spines, inside, hosts) in [(vec![6, 6], 3, 2, 6), (vec![9, 9, 6], 3, 3, 9)] {
        let shape = Directors {
            trunks: if lines.len() == 2 { 12 } else { 9 },
            lines,
            spines,
            inside,
            line_hosts: hosts,
            ..Directors::default()
        };
        let fabric = director(&shape, &GenerateOptions::default()).unwrap();
        let lids = Lids::in_guid_order(&fabric, 0).unwrap();
        // Lash may not use all where its lanes allow one tree alone.
        for engine in ["minhop", "sssp", "dfsssp"] {
            let idle = idle(&fabric, &pairs(&fabric, &lids, &routed(&fabric, &lids, engine)));
            assert!(idle.is_empty(), "{engine}, {shape:?}: idle are {idle:?}");
        }
    }
}

/// A switch that passes on what others send counts what comes to it: here `b` gets one LID in two of those on `c`.
#[test]
fn merging_flows_spread_over_all_parallel_cables() {
    let mut text = String::from("Switch 8 \"a\"\n[1] \"b\"[1]\n[2] \"x\"[1]\n[3] \"h0\"\n\nCa 1 \"h0\"\n\n");
    text += "Switch 8 \"b\"\n[2] \"c\"[1]\n[3] \"c\"[2]\n\nSwitch 8 \"x\"\n[2] \"c\"[3]\n[3] \"c\"[4]\n\nSwitch 16 \"c\"\n";
    text += &(1..=8).map(|host| format!("[{}] \"h{host}\"\n", host + 4)).collect::<String>();
    text += &(1..=8).map(|host| format!("\nCa 1 \"h{host}\"\n")).collect::<String>();
    let fabric = weft_topology::parse("together", &text).unwrap();
    let lids = Lids::in_guid_order(&fabric, 0).unwrap();
    for engine in ENGINES {
        let pairs = pairs(&fabric, &lids, &routed(&fabric, &lids, engine));
        for (id, ports) in [("b", [2, 3]), ("x", [2, 3])] {
            let node = fabric.find(id).unwrap();
            let counts = ports.map(|port| pairs[&PortRef::new(node, PortNum(port))]);
            assert_eq!(counts, [2, 2], "{engine}: {id}");
        }
    }
}
