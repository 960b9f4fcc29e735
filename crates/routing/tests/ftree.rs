//! Fat-tree routing: the papers' examples, whole trees without contention, broken ones without dead ends.

mod trees;

use std::collections::{BTreeMap, BTreeSet};

use trees::{broken, cut, deadlocks, lid, node, path, route, up_down_hops};
use weft_routing::{BLOCK_ENTRIES, EngineOptions, Lids, Routes, Routing};
use weft_topology::generate::{GenerateOptions, kary_ntree, pgft, rlft, xgft};
use weft_topology::{Fabric, FabricBuilder, NodeIndex, PortRef, parse};
use weft_wire::{Guid, Lid, PortNum};

fn plain() -> GenerateOptions {
    GenerateOptions::default()
}

fn routed(fabric: &Fabric) -> (Lids, Routing) {
    let lids = Lids::in_guid_order(fabric, 0).unwrap();
    let routing = route("ftree", fabric, &lids, &EngineOptions::default()).unwrap();
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
        let place: Vec<usize> =
            fabric.node(node).description.split('-').skip(1).map(|part| part.parse().unwrap()).collect();
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

/// Everything that is promised of a broken tree: LIDs arrive by shortest paths up and down wherever there are such,
/// and nothing blocks.
fn check(fabric: &Fabric, lids: &Lids, routing: &Routing) {
    let ranks = routing.ranks.as_ref().expect("a tree has ranks");
    for target in lids.iter() {
        let to = fabric.node(target.port.node);
        let at = if to.is_switch() {
            Some(target.port.node)
        } else {
            fabric.peer(target.port).map(|peer| peer.node)
        };
        let Some(at) = at.filter(|at| fabric.node(*at).is_switch()) else { continue };
        // Cables go both ways, so a path that goes up and down is one the other way round.
        let least = up_down_hops(fabric, ranks, at);
        for (from, switch) in fabric.switches() {
            let Some(least) = least[from.index()] else { continue };
            for lid in target.iter() {
                let hops = path(fabric, lids, &routing.routes, PortRef::new(from, PortNum::ZERO), lid);
                let hops = hops.unwrap_or_else(|| panic!("from {} to {}", switch.id, to.id));
                assert_eq!(
                    hops.len() - usize::from(!to.is_switch()),
                    least,
                    "from {} to {}",
                    switch.id,
                    to.id
                );
            }
        }
    }
    assert!(!deadlocks(fabric, lids, &routing.routes));
}

#[test]
fn whole_trees_keep_what_is_promised() {
    for fabric in
        [rlft(8, 2, &plain()), rlft(4, 3, &plain()), pgft(&[2, 2, 3], &[1, 2, 1], &[1, 2, 3], &plain())]
    {
        let fabric = fabric.unwrap();
        let (lids, routing) = routed(&fabric);
        check(&fabric, &lids, &routing);
        assert_eq!((routing.report.lanes, routing.report.fallbacks.len()), (1, 0));
    }
}
