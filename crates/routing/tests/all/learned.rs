//! Learning from what hosts receive: the busiest link against a count of every pair, and the order in which hosts are routed.
//!
//! `WEFT_SEED` replays one seed.

use std::collections::BTreeMap;

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use weft_routing::quality::{Paths, busiest_share};
use weft_routing::{Chain, EngineOptions, Lids, Routes, learn_order, trace};
use weft_topology::generate::{GenerateOptions, xgft};
use weft_topology::{Fabric, PortRef};
use weft_wire::{Guid, PortNum};

const SEEDS: std::ops::Range<u64> = 0..8;

fn seeds() -> Vec<u64> {
    match std::env::var("WEFT_SEED") {
        Ok(seed) => vec![seed.parse().expect("a number")],
        Err(_) => SEEDS.collect(),
    }
}

fn route(engine: &str, fabric: &Fabric, lids: &Lids, order: Vec<Guid>) -> Routes {
    let options = EngineOptions { order, ..EngineOptions::default() };
    engine.parse::<Chain>().unwrap().route(fabric, lids, &options).unwrap().routes
}

fn hosts(fabric: &Fabric) -> Vec<PortRef> {
    fabric.hosts().map(|(node, _)| PortRef::new(node, PortNum(1))).collect()
}

fn guid(fabric: &Fabric, port: PortRef) -> Guid {
    fabric.port(port).unwrap().guid
}

/// The same share, by following every pair hop by hop.
fn counted(fabric: &Fabric, lids: &Lids, routes: &Routes, received: &BTreeMap<Guid, u64>) -> f64 {
    let hosts = hosts(fabric);
    let mut loads: BTreeMap<PortRef, u64> = BTreeMap::new();
    for to in &hosts {
        let bytes = received.get(&guid(fabric, *to)).copied().unwrap_or(0);
        for from in hosts.iter().filter(|from| *from != to) {
            let path = trace(fabric, lids, routes, *from, lids.of(*to).unwrap().base).unwrap();
            // The first hop leaves a host, and the last two are the leaf's towards a host, and the host.
            for hop in &path.hops[1..path.hops.len() - 2] {
                *loads.entry(PortRef::new(hop.node, hop.exit)).or_default() += bytes;
            }
        }
    }
    let all: u64 = received.values().sum();
    loads.into_values().max().unwrap_or(0) as f64 / all as f64 / (hosts.len() - 1) as f64
}

#[test]
fn the_busiest_link_is_that_of_a_count_of_every_pair() {
    for seed in seeds() {
        let mut random = Pcg64Mcg::seed_from_u64(seed);
        let fabric = xgft(&[3, 3, 2], &[1, 2, 2], &GenerateOptions::default()).unwrap();
        let lids = Lids::in_guid_order(&fabric, 0).unwrap();
        for engine in ["ftree", "minhop", "pftree"] {
            let routes = route(engine, &fabric, &lids, Vec::new());
            let received: BTreeMap<Guid, u64> = hosts(&fabric)
                .into_iter()
                .map(|port| (guid(&fabric, port), random.random_range(0..1 << 40)))
                .collect();
            let wanted = counted(&fabric, &lids, &routes, &received) * 1e9;
            let found = busiest_share(&Paths::new(&fabric, &lids, &routes), &[], &received);
            // It is rounded down, and shares of hosts to a million millionth.
            assert!((wanted - f64::from(found)).abs() <= 1.5, "seed {seed}, {engine}: {found} and {wanted}");
        }
    }
}

#[test]
fn nothing_received_burdens_no_link() {
    let fabric = xgft(&[2, 2], &[1, 2], &GenerateOptions::default()).unwrap();
    let lids = Lids::in_guid_order(&fabric, 0).unwrap();
    let routes = route("ftree", &fabric, &lids, Vec::new());
    let paths = Paths::new(&fabric, &lids, &routes);
    assert_eq!(busiest_share(&paths, &[], &BTreeMap::new()), 0);
    let unknown = BTreeMap::from([(Guid(7), 1000)]);
    assert_eq!(busiest_share(&paths, &[], &unknown), 0, "of a port that is not there");
    let most = hosts(&fabric).into_iter().map(|port| (guid(&fabric, port), u64::MAX)).collect();
    assert!(busiest_share(&paths, &[], &most) > 0, "sums have room");
}

/// The heaviest hosts of a leaf come first, so that each of the first as many as there are cables has one of its own.
#[test]
fn heavy_hosts_of_a_leaf_get_a_cable_each_by_order() {
    for seed in seeds() {
        let mut random = Pcg64Mcg::seed_from_u64(seed);
        let fabric = xgft(&[6, 2], &[1, 3], &GenerateOptions::default()).unwrap();
        let lids = Lids::in_guid_order(&fabric, 0).unwrap();
        let hosts = hosts(&fabric);
        let leaf = |port: PortRef| fabric.peer(port).unwrap().node;
        let near: Vec<PortRef> = hosts.iter().copied().filter(|port| leaf(*port) == leaf(hosts[0])).collect();
        let far = hosts.iter().copied().find(|port| leaf(*port) != leaf(hosts[0])).unwrap();
        let mut received: BTreeMap<Guid, u64> =
            hosts.iter().map(|port| (guid(&fabric, *port), random.random_range(0..100))).collect();
        let mut heavy = near.clone();
        while heavy.len() > 3 {
            heavy.swap_remove(random.random_range(0..heavy.len()));
        }
        received.extend(heavy.iter().map(|port| (guid(&fabric, *port), 1000)));
        for engine in ["ftree", "vswitch-ftree", "vftree", "pftree", "pftree-ext", "pftree-wt"] {
            let routes = route(engine, &fabric, &lids, learn_order(&received));
            let cable = |to: &PortRef| routes.port(leaf(far), lids.of(*to).unwrap().base);
            let mut cables: Vec<PortNum> = heavy.iter().map(cable).collect();
            cables.sort_unstable();
            cables.dedup();
            assert_eq!(cables.len(), 3, "seed {seed}, {engine}");
        }
    }
}
