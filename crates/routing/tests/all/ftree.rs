//! Fat-tree routing: the papers' examples, whole trees without contention, broken ones without dead ends.
#![expect(clippy::disallowed_macros, reason = "randomised tests print their seeds")]

use std::collections::{BTreeMap, BTreeSet};

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use trees::{broken, cut, deadlocks, lid, node, path, route, up_down_hops};
use weft_routing::{EngineOptions, Expectations, Lids, Routes, Routing, verify, verify_routing};
use weft_topology::generate::{GenerateOptions, kary_ntree, pgft, rlft, xgft};
use weft_topology::{Fabric, FabricBuilder, NodeIndex, PortRef, parse};
use weft_wire::{Guid, Lid, PortNum};

use crate::trees;

fn plain() -> GenerateOptions {
    GenerateOptions::default()
}

fn routed(fabric: &Fabric) -> (Lids, Routing) {
    let lids = Lids::in_guid_order(fabric, 0).expect("there are enough LIDs");
    let routing = route("ftree", fabric, &lids, &EngineOptions::default()).expect("it is a tree");
    (lids, routing)
}

/// The cable up that a leaf of the thesis's trees sends a host's traffic by: 1 or 2, from the left.
fn link_up(fabric: &Fabric, lids: &Lids, routes: &Routes, leaf: &str, host: usize) -> u8 {
    let hosts_per_leaf = fabric.hosts().count() as u8 / 3;
    let to = lid(fabric, lids, &format!("host-{}", host - 1));
    routes.port(node(fabric, leaf), to).0 - hosts_per_leaf
}

/// The cable by which the root sends a host's traffic down: 1 to 6, from the left.
fn link_down(fabric: &Fabric, lids: &Lids, routes: &Routes, host: usize) -> u8 {
    routes.port(node(fabric, "switch-2-0"), lid(fabric, lids, &format!("host-{}", host - 1))).0
}

#[test]
fn the_trees_of_the_thesis_are_routed_as_opensm_routes_them() {
    for (per_leaf, down) in [(2, vec![1, 2, 3, 4, 5, 6]), (4, vec![1, 2, 1, 2, 3, 4, 3, 4, 5, 6, 5, 6])] {
        let fabric = pgft(&[per_leaf, 3], &[1, 1], &[1, 2], &plain()).unwrap();
        let (lids, Routing { routes, .. }) = routed(&fabric);
        let links: Vec<u8> = (1..=down.len()).map(|host| link_down(&fabric, &lids, &routes, host)).collect();
        assert_eq!(links, down);
        for (place, leaf) in ["switch-1-0", "switch-1-1", "switch-1-2"].into_iter().enumerate() {
            let own = place * per_leaf as usize + 1..=(place + 1) * per_leaf as usize;
            for host in (1..=down.len()).filter(|host| !own.contains(host)) {
                let odd = host % 2 == 1;
                assert_eq!(link_up(&fabric, &lids, &routes, leaf, host), if odd { 1 } else { 2 });
            }
        }
        // Link 2 is cut: all of A's traffic takes link 1, in both directions, and nothing else moves.
        let fabric = cut(&fabric, "switch-1-0", per_leaf as u8 + 2);
        let (lids, Routing { routes, .. }) = routed(&fabric);
        for host in 1..=down.len() {
            let of_a = host <= per_leaf as usize;
            assert_eq!(link_down(&fabric, &lids, &routes, host), if of_a { 1 } else { down[host - 1] });
            if !of_a {
                assert_eq!(link_up(&fabric, &lids, &routes, "switch-1-0", host), 1);
            }
            if host <= 2 * per_leaf as usize {
                let odd = host % 2 == 1;
                assert_eq!(link_up(&fabric, &lids, &routes, "switch-1-2", host), if odd { 1 } else { 2 });
            }
        }
    }
}

/// The switches that a packet passes, by the numbers of the thesis's figure 2.6: 1 to 4 are leaves, 9 to 12 roots.
fn switches_passed(fabric: &Fabric, lids: &Lids, routes: &Routes, from: &str, to: &str) -> Vec<usize> {
    let from = PortRef::new(node(fabric, from), PortNum(1));
    let hops = path(fabric, lids, routes, from, lid(fabric, lids, to)).expect("it arrives");
    let number = |node: NodeIndex| {
        let place: Vec<usize> = fabric
            .node(node)
            .description
            .split('-')
            .skip(1)
            .map(|part| part.parse().expect("a number"))
            .collect();
        4 * (place[0] - 1) + place[1] + 1
    };
    hops.into_iter().map(|hop| number(hop.node)).collect()
}

#[test]
fn the_phases_of_the_thesis_s_figure_come_out() {
    // Figure 2.6: hosts a to h, two on each of the leaves 1 to 4.
    let fabric = kary_ntree(2, 3, &plain()).unwrap();
    let (lids, Routing { routes, .. }) = routed(&fabric);
    let passed = |from: &str, to: &str| switches_passed(&fabric, &lids, &routes, from, to);
    assert_eq!(passed("host-5", "host-0"), [3, 7, 9, 5, 1], "P1 from f to a");
    assert_eq!(passed("host-5", "host-1"), [3, 8, 10, 6, 1], "P2 from f to b");
    // Every other leaf goes to a by switch 5, and from beyond by root 9.
    assert_eq!(passed("host-2", "host-0"), [2, 5, 1]);
    assert_eq!(passed("host-7", "host-0"), [4, 7, 9, 5, 1]);
    // The switches that no host uses know the way down too: 12 to 6, and 6 to 1.
    let to_a = lid(&fabric, &lids, "host-0");
    for (from, to) in
        [("switch-3-3", "switch-2-1"), ("switch-2-1", "switch-1-0"), ("switch-3-2", "switch-2-0")]
    {
        let exit = PortRef::new(node(&fabric, from), routes.port(node(&fabric, from), to_a));
        assert_eq!(fabric.peer(exit).unwrap().node, node(&fabric, to));
    }
}

#[test]
fn partitions_are_not_seen_as_the_pftree_paper_says() {
    // Figure 3 (a): A and C by R1, B by R2; D and F by R1, E by R2. Figure 3 (b) has two hosts of each partition per
    // leaf and again A and C on one link.
    for hosts in [3, 4] {
        let fabric = xgft(&[hosts, 2], &[1, 2], &plain()).unwrap();
        let (lids, Routing { routes, .. }) = routed(&fabric);
        for host in 0..2 * hosts {
            let to = lid(&fabric, &lids, &format!("host-{host}"));
            let other_leaf = if host < hosts { "switch-1-1" } else { "switch-1-0" };
            let exit = PortRef::new(node(&fabric, other_leaf), routes.port(node(&fabric, other_leaf), to));
            let root = format!("switch-2-{}", host % hosts % 2);
            assert_eq!(fabric.peer(exit).unwrap().node, node(&fabric, &root), "host {host}");
        }
    }
}

/// For every shift, the most packets that share one direction of a cable.
fn worst_shift(fabric: &Fabric) -> usize {
    let (lids, Routing { routes, .. }) = routed(fabric);
    // Hosts in the order of leaves and ports, which is that of their names.
    let hosts: Vec<(PortRef, Lid)> = (0..fabric.hosts().count())
        .map(|host| {
            let name = format!("host-{host}");
            (PortRef::new(node(fabric, &name), PortNum(1)), lid(fabric, &lids, &name))
        })
        .collect();
    let mut worst = 0;
    for shift in 1..hosts.len() {
        let mut uses: BTreeMap<PortRef, usize> = BTreeMap::new();
        for (source, (from, _)) in hosts.iter().enumerate() {
            let (_, to) = hosts[(source + shift) % hosts.len()];
            for hop in path(fabric, &lids, &routes, *from, to).expect("it arrives") {
                *uses.entry(hop).or_default() += 1;
            }
        }
        worst = worst.max(uses.into_values().max().unwrap_or(0));
    }
    worst
}

#[test]
fn every_shift_is_free_of_contention_on_a_full_tree() {
    let full = [
        rlft(8, 2, &plain()),
        rlft(6, 3, &plain()),
        rlft(4, 4, &plain()),
        kary_ntree(3, 3, &plain()),
        kary_ntree(2, 5, &plain()),
        xgft(&[6, 6], &[1, 6], &plain()),
        pgft(&[6, 4], &[1, 2], &[1, 3], &plain()),
        pgft(&[4, 4, 3], &[1, 2, 4], &[1, 2, 2], &plain()),
        pgft(&[4, 4, 3], &[1, 2, 2], &[1, 2, 4], &plain()),
        rlft(4, 1, &plain()),
    ];
    for fabric in full {
        let fabric = fabric.unwrap();
        assert_eq!(worst_shift(&fabric), 1, "{} hosts", fabric.hosts().count());
    }
    // And where it has to be there, it is seen: two hosts per cable up.
    assert_eq!(worst_shift(&xgft(&[6, 4], &[1, 3], &plain()).unwrap()), 2);
}

/// Everything that is promised of a tree, broken or not: LIDs arrive by shortest paths up and down wherever there are
/// such, hosts reach each other wherever cables connect them, and nothing blocks.
fn check(fabric: &Fabric, lids: &Lids, routing: &Routing) {
    let ranks = routing.ranks.as_ref().expect("a tree has ranks");
    let pieces = fabric.pieces();
    for target in lids.iter() {
        let to = fabric.node(target.port.node);
        let peer = fabric.peer(target.port).map(|peer| peer.node);
        let at = if to.is_switch() { Some(target.port.node) } else { peer };
        let Some(at) = at.filter(|at| fabric.node(*at).is_switch()) else { continue };
        // Cables go both ways, so a path that goes up and down is one the other way round.
        let least = up_down_hops(fabric, ranks, at);
        for (from, switch) in fabric.switches() {
            let has_hosts = switch.cabled_ports().any(|(_, peer)| !fabric.node(peer.node).is_switch());
            let connected = pieces.shared(from, at).is_some();
            for lid in target.iter() {
                let hops = path(fabric, lids, &routing.routes, PortRef::new(from, PortNum::ZERO), lid);
                let name = || format!("from {} to {}", switch.description, to.description);
                if let Some(least) = least[from.index()] {
                    let hops = hops.as_ref().unwrap_or_else(|| panic!("{}", name()));
                    assert_eq!(hops.len() - usize::from(!to.is_switch()), least, "{}", name());
                }
                assert!(connected || hops.is_none(), "{}", name());
                assert!(!connected || hops.is_some() || !has_hosts || to.is_switch(), "{}", name());
            }
        }
    }
    let verdict = verify_routing(fabric, lids, routing, &Expectations::default());
    assert!(verdict.cycles.is_empty(), "{:?}", verdict.cycles);
    assert_eq!(verdict.reach.failures > 0, !routing.report.unsatisfied.is_empty(), "{:?}", routing.report);
}

#[test]
fn whole_trees_keep_what_is_promised() {
    let whole = [
        rlft(8, 2, &plain()),
        rlft(4, 3, &plain()),
        rlft(4, 1, &plain()),
        pgft(&[2, 2, 3], &[1, 2, 1], &[1, 2, 3], &plain()),
    ];
    for fabric in whole {
        let fabric = fabric.unwrap();
        let (lids, routing) = routed(&fabric);
        check(&fabric, &lids, &routing);
        assert!(!deadlocks(&fabric, &lids, &routing.routes));
        let report = &routing.report;
        assert_eq!((report.lanes, report.fallbacks.len(), report.unsatisfied.len()), (1, 0, 0));
        assert!(verify(&fabric, &lids, &routing.routes, &[]).is_sound(), "roots reach each other too");
    }
}

/// A tree without some cables and switches, by a seed.
fn random_loss(seed: u64) -> Fabric {
    let mut random = Pcg64Mcg::seed_from_u64(seed);
    let fabric = match random.random_range(0..5) {
        0 => rlft(8, 2, &plain()),
        1 => rlft(6, 3, &plain()),
        2 => kary_ntree(2, 4, &plain()),
        3 => pgft(&[4, 4], &[1, 2], &[1, 2], &plain()),
        _ => pgft(&[2, 3, 3], &[1, 2, 2], &[1, 1, 2], &plain()),
    };
    let fabric = fabric.expect("the parameters are sound");
    let (cables, nodes) = (random.random_range(0.0..0.4), random.random_range(0.0..0.2));
    let lost: BTreeSet<NodeIndex> =
        fabric.iter().map(|(index, _)| index).filter(|_| random.random_bool(nodes)).collect();
    let cut: BTreeSet<PortRef> =
        fabric.cables().map(|cable| cable.a).filter(|_| random.random_bool(cables)).collect();
    broken(&fabric, |node| !lost.contains(&node), |a, b| !cut.contains(&a) && !cut.contains(&b))
}

/// The seeds of a randomised test: that of `WEFT_SEED`, or those below `count`.
fn seeds(count: u64) -> Vec<u64> {
    let given = std::env::var("WEFT_SEED").ok().and_then(|seed| seed.parse().ok());
    given.map_or_else(|| (0..count).collect(), |seed| vec![seed])
}

#[test]
fn ftree_routes_or_refuses_by_name_after_random_losses() {
    let (mut refused, mut noted) = (0, 0);
    let seeds = seeds(300);
    for seed in &seeds {
        println!("WEFT_SEED={seed}");
        let fabric = random_loss(*seed);
        let lids = Lids::in_guid_order(&fabric, (seed % 3) as u8).unwrap();
        match route("ftree", &fabric, &lids, &EngineOptions::default()) {
            Ok(routing) => {
                noted += usize::from(!routing.report.unsatisfied.is_empty());
                check(&fabric, &lids, &routing);
            }
            Err(refusal) => {
                println!("{refusal}");
                refused += 1;
                let lone = lids.iter().all(|lids| {
                    let peer = fabric.peer(lids.port).map(|peer| fabric.node(peer.node).is_switch());
                    fabric.node(lids.port.node).is_switch() || peer != Some(true)
                });
                let known =
                    if lone { "no compute node is cabled" } else { "no path goes up and then down between" };
                assert!(refusal.reason.starts_with(known), "{refusal}");
            }
        }
    }
    println!("{refused} refused, {noted} with gaps");
    assert!(seeds.len() == 1 || refused < seeds.len() / 3, "{refused} of {}", seeds.len());
}

#[test]
fn a_root_without_a_cable_is_reached_over_a_leaf() {
    let fabric = rlft(6, 3, &plain()).unwrap();
    // The first root loses the second sub-tree, and a leaf of the third its first cable up.
    let fabric = cut(&cut(&fabric, "switch-2-3", 4), "switch-1-6", 4);
    let (lids, routing) = routed(&fabric);
    check(&fabric, &lids, &routing);
    let report = &routing.report;
    assert_eq!(report.unsatisfied, Vec::<String>::new());
    assert_eq!(report.fallbacks.len(), 1);
    assert!(report.fallbacks[0].contains("of switches; hosts go down to one leaf"), "{report:?}");
    let verdict = verify_routing(&fabric, &lids, &routing, &Expectations::default());
    assert!(verdict.is_sound() && verdict.is_deadlock_free(), "{verdict}");
    // Only the root's own packets go down and up: no host reaches another that way.
    let ranks = routing.ranks.as_ref().unwrap();
    for (from, _) in fabric.hosts() {
        for target in lids.iter().filter(|lids| !fabric.node(lids.port.node).is_switch()) {
            let hops =
                path(&fabric, &lids, &routing.routes, PortRef::new(from, PortNum(1)), target.base).unwrap();
            let ranks: Vec<u32> = hops.iter().map(|hop| ranks.of(hop.node).unwrap()).collect();
            let turn = ranks.iter().position(|rank| rank == ranks.iter().min().unwrap()).unwrap();
            assert!(ranks[..=turn].is_sorted_by(|a, b| a > b) && ranks[turn..].is_sorted_by(|a, b| a < b));
        }
    }
}

#[test]
fn ftree_lids_of_a_port_use_different_roots_evenly() {
    let fabric = rlft(8, 2, &plain()).unwrap();
    let lids = Lids::in_guid_order(&fabric, 2).unwrap();
    let routing = route("ftree", &fabric, &lids, &EngineOptions::default()).unwrap();
    check(&fabric, &lids, &routing);
    for (leaf, switch) in fabric.switches().filter(|(_, node)| node.description.starts_with("switch-1-")) {
        let mut by_set: BTreeMap<usize, Vec<PortNum>> = BTreeMap::new();
        for (_, host) in switch.cabled_ports() {
            let Some(of_host) = lids.of(host).filter(|_| !fabric.node(host.node).is_switch()) else {
                continue;
            };
            // By which cable up each LID comes down is seen where it turns: at the roots.
            let mut roots = BTreeSet::new();
            for (set, lid) in of_host.iter().enumerate() {
                let elsewhere = if switch.description == "switch-1-0" { "switch-1-1" } else { "switch-1-0" };
                let port = routing.routes.port(node(&fabric, elsewhere), lid);
                roots.insert(port);
                by_set.entry(set).or_default().push(port);
            }
            assert_eq!(roots.len(), 4, "{}", fabric.node(leaf).description);
        }
        for (set, ports) in by_set {
            let different: BTreeSet<&PortNum> = ports.iter().collect();
            assert_eq!((ports.len(), different.len()), (4, 4), "set {set}");
        }
    }
}

#[test]
fn the_operator_s_order_comes_first() {
    // Three hosts per leaf and two roots: the first and the third share one, by whatever order.
    let fabric = xgft(&[3, 2], &[1, 2], &plain()).unwrap();
    let lids = Lids::in_guid_order(&fabric, 0).unwrap();
    let guid = |name: &str| fabric.node(node(&fabric, name)).guid;
    let root = |order: Vec<Guid>, host: &str| {
        let options = EngineOptions { order, ..EngineOptions::default() };
        let routing = route("ftree", &fabric, &lids, &options).unwrap();
        routing.routes.port(node(&fabric, "switch-1-1"), lid(&fabric, &lids, host)).0 - 3
    };
    assert_eq!(["host-0", "host-1", "host-2"].map(|host| root(vec![], host)), [1, 2, 1]);
    let order = || vec![guid("host-2"), Guid(guid("host-1").0 + 1)];
    assert_eq!(["host-0", "host-1", "host-2"].map(|host| root(order(), host)), [1, 2, 1]);
    let order = || vec![guid("host-1"), guid("host-0")];
    assert_eq!(["host-0", "host-1", "host-2"].map(|host| root(order(), host)), [2, 1, 1]);
    let options = EngineOptions { order: vec![Guid(0x77)], ..EngineOptions::default() };
    let report = route("ftree", &fabric, &lids, &options).unwrap().report;
    assert_eq!(report.notes, [format!("the order names {}, which is no host of this fabric", Guid(0x77))]);
}

#[test]
fn io_nodes_on_roots_reach_each_other_by_reverse_hops() {
    let text = "Switch 4 \"r1\"\n[1] \"a\"[1]\n[2] \"b\"[1]\n[4] \"io1\"\n\nSwitch 4 \"r2\"\n[1] \"a\"[2]\n[2] \"b\"[2]\n\
                [4] \"io2\"\n\nSwitch 4 \"a\"\n[3] \"h1\"\n\nSwitch 4 \"b\"\n[3] \"h2\"\n\nCa 1 \"io1\"\n\nCa 1 \"io2\"\n\
                \nCa 1 \"h1\"\n\nCa 1 \"h2\"\n";
    let fabric = parse("io", text).unwrap();
    let lids = Lids::in_guid_order(&fabric, 0).unwrap();
    let io_nodes = ["io1", "io2"].map(|name| fabric.node(node(&fabric, name)).guid).to_vec();
    let with = |max_reverse_hops| {
        let options =
            EngineOptions { io_nodes: io_nodes.clone(), max_reverse_hops, ..EngineOptions::default() };
        route("ftree", &fabric, &lids, &options)
    };
    assert_eq!(
        with(0).unwrap_err().to_string(),
        "ftree: no path goes up and then down between io1[1] and io2[1]; it takes 1 reverse hops, and 0 are allowed"
    );
    let routing = with(1).unwrap();
    let verdict = verify_routing(&fabric, &lids, &routing, &Expectations::default());
    assert!(verdict.is_sound() && verdict.is_deadlock_free(), "{verdict}");
    assert_eq!(routing.report.fallbacks.len(), 1, "{:?}", routing.report);
    // Where nothing is said about them, their switches would be leaves.
    let refusal = route("ftree", &fabric, &lids, &EngineOptions::default()).unwrap_err();
    assert_eq!(
        refusal.to_string(),
        "ftree: r1 and a both have compute nodes and a cable between them, so there is no tree unless roots or \
         compute nodes are named"
    );
}

#[test]
fn hosts_with_two_ports_and_pieces_are_served() {
    // h0 has a port on each leaf; c and d are another fabric, and e is a switch alone.
    let text = "Switch 4 \"r\"\n[1] \"a\"[1]\n[2] \"b\"[1]\n\nSwitch 4 \"a\"\n[2] \"h0\"[1]\n[3] \"h1\"\n\nSwitch 4 \"b\"\n\
                [2] \"h0\"[2]\n\nCa 2 \"h0\"\n\nCa 1 \"h1\"\n\nSwitch 4 \"c\"\n[1] \"d\"[1]\n[2] \"h2\"\n\nSwitch 4 \"d\"\n\
                \nCa 1 \"h2\"\n\nSwitch 4 \"e\"\n";
    let fabric = parse("pieces", text).unwrap();
    let (lids, routing) = routed(&fabric);
    check(&fabric, &lids, &routing);
    let verdict = verify_routing(&fabric, &lids, &routing, &Expectations::default());
    assert!(verdict.is_sound() && verdict.is_deadlock_free(), "{verdict}");
    let second = PortRef::new(node(&fabric, "h0"), PortNum(2));
    assert_eq!(
        routing.routes.port(node(&fabric, "a"), lids.of(second).unwrap().base),
        PortNum(1),
        "over the root"
    );
}

/// The same nodes and cables, listed backwards.
fn backwards(fabric: &Fabric) -> Fabric {
    let mut builder = FabricBuilder::new();
    for node in fabric.nodes().iter().rev() {
        let mut node = node.clone();
        node.ports.iter_mut().for_each(|port| port.peer = None);
        builder.add_node(node).expect("names and GUIDs are as different as before");
    }
    let last = fabric.nodes().len() as u32 - 1;
    let flip = |port: PortRef| PortRef::new(NodeIndex(last - port.node.0), port.port);
    for cable in fabric.cables() {
        builder.connect(flip(cable.a), flip(cable.b)).expect("the ports are free");
    }
    builder.build()
}

#[test]
fn neither_threads_nor_the_order_of_nodes_change_the_tables() {
    for seed in seeds(24) {
        println!("WEFT_SEED={seed}");
        let fabric = random_loss(seed);
        let lids = Lids::in_guid_order(&fabric, 1).unwrap();
        let by_threads = [1, 2, 3].map(|threads| {
            let options = EngineOptions { threads, ..EngineOptions::default() };
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| route("ftree", &fabric, &lids, &options))
        });
        assert_eq!(by_threads[0], by_threads[1]);
        assert_eq!(by_threads[0], by_threads[2]);
        let turned = backwards(&fabric);
        let lids = Lids::in_guid_order(&turned, 1).unwrap();
        match (&by_threads[0], route("ftree", &turned, &lids, &EngineOptions::default())) {
            (Ok(before), Ok(routing)) => {
                for (index, switch) in fabric.switches() {
                    let (here, there) = (before.routes.table(index), turned.by_guid(switch.guid).unwrap());
                    assert_eq!(here, routing.routes.table(there), "{seed}: {}", switch.description);
                }
                assert_eq!(before.report, routing.report, "{seed}");
            }
            (before, routing) => assert_eq!(before.as_ref().err(), routing.as_ref().err(), "{seed}"),
        }
    }
}

#[test]
fn hosts_above_the_leaves_are_served_where_roots_are_named() {
    // A host on each root but the last, and one on a switch in the middle: all find each other over what is above.
    let text = "Switch 4 \"r\"\n[1] \"m1\"[1]\n[2] \"m2\"[1]\n[3] \"top\"\n\nSwitch 6 \"m1\"\n[2] \"a\"[1]\n[3] \"b\"[1]\n\
                [4] \"middle\"\n\nSwitch 6 \"m2\"\n[2] \"c\"[1]\n\nSwitch 3 \"a\"\n[2] \"h1\"\n\nSwitch 3 \"b\"\n[2] \"h2\"\n\
                \nSwitch 3 \"c\"\n[2] \"h3\"\n\nCa 1 \"top\"\n\nCa 1 \"middle\"\n\nCa 1 \"h1\"\n\nCa 1 \"h2\"\n\
                \nCa 1 \"h3\"\n";
    let fabric = parse("above", text).unwrap();
    let lids = Lids::in_guid_order(&fabric, 0).unwrap();
    let roots = vec![fabric.node(node(&fabric, "r")).guid];
    let options = EngineOptions { roots, ..EngineOptions::default() };
    let routing = route("ftree", &fabric, &lids, &options).unwrap();
    check(&fabric, &lids, &routing);
    let expectations = Expectations { tree: true, ..Expectations::default() };
    let verdict = verify_routing(&fabric, &lids, &routing, &expectations);
    assert!(verdict.is_sound() && verdict.is_deadlock_free(), "{verdict}");
    assert_eq!(routing.ranks.unwrap().of(node(&fabric, "c")), Some(2));
}

#[test]
fn the_x5_cluster_is_a_tree_that_is_not_quite_regular() {
    let fabric = parse("x5", include_str!("../../../../topologies/psmn-x5.topo")).unwrap();
    let lids = Lids::from_fabric(&fabric).unwrap();
    let routing = route("ftree", &fabric, &lids, &EngineOptions::default()).unwrap();
    check(&fabric, &lids, &routing);
    let expectations = Expectations { tree: true, ..Expectations::default() };
    let verdict = verify_routing(&fabric, &lids, &routing, &expectations);
    assert!(verdict.is_sound() && verdict.is_deadlock_free(), "{verdict}");
    assert_eq!(routing.report.unsatisfied, Vec::<String>::new());
}
