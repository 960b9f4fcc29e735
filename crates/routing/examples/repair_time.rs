//! Time of a repair beside a full routing, and the number of blocks that it writes.
//!
//! ```text
//! cargo run --release -p weft-routing --example repair_time -- [ENGINE [CUTS [SEED]]]
//! ```
//!
//! The fabric is the tree of 11 664 hosts and 1620 switches with 36 ports; the cables are between leaves and the switches
//! above them, drawn by the seed.

#![allow(
    clippy::disallowed_types,
    clippy::disallowed_macros,
    reason = "an example measures time and prints what it finds"
)]

use std::collections::BTreeSet;
use std::time::Instant;

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use weft_routing::quality::{Directions, Paths, hosts, survey};
use weft_routing::{BLOCK_ENTRIES, Chain, Ends, EngineOptions, Lids, Proven, Routing, Row};
use weft_topology::generate::{GenerateOptions, xgft};
use weft_topology::{Cable, Fabric};

fn main() {
    let mut arguments = std::env::args().skip(1);
    let engine = arguments.next().unwrap_or_else(|| "ftree".to_owned());
    let mut number = |default: u64| arguments.next().map_or(default, |text| text.parse().expect("a number"));
    let (cuts, seed) = (number(5), number(1));
    let fabric =
        xgft(&[18, 18, 36], &[1, 18, 18], &GenerateOptions::default()).expect("the parameters are sound");
    let lids = Lids::in_guid_order(&fabric, 0).expect("there are enough LIDs");
    let chain: Chain = engine.parse().expect("an engine");
    let options = EngineOptions::default();
    let route = |fabric: &Fabric| chain.route(fabric, &lids, &options).expect("a routing");
    let (full, routing) = timed(|| route(&fabric));
    println!("{engine}: everything {full:.1} ms");
    let (first, proven) = timed(|| Proven::new(fabric.clone(), lids.clone(), routing, &options));
    let mut proven = proven.expect("it is sound");
    println!("the first proof {first:.1} ms");
    let mut rng = Pcg64Mcg::seed_from_u64(seed);
    let cables: Vec<Cable> = fabric.cables().filter(|cable| is_leaf_cable(&fabric, cable)).collect();
    let mut gone: Vec<Cable> = Vec::new();
    for _ in 0..cuts {
        let cable = cables[rng.random_range(0..cables.len())];
        let ends: Ends = (cable.a, cable.b);
        gone.push(cable);
        let (took, rows) = timed(|| proven.cut(&[ends]));
        let rows = rows.expect("it can be repaired");
        println!(
            "cut {}: {took:.1} ms, {} rows, {} blocks",
            fabric.port_name(cable.a),
            rows.len(),
            blocks(&rows)
        );
    }
    let left = fabric.part(|_| true, fabric.cables().filter(|cable| !gone.contains(cable))).expect("a part");
    balance("repaired", &left, &lids, proven.routing());
    balance("everything again", &left, &lids, &route(&left));
    println!("verified again in {:.1} ms", timed(|| proven.verify().expect("it is sound")).0);
    for cable in gone {
        let (took, rows) = timed(|| proven.restore(&[(cable.a, cable.b)]));
        let rows = rows.expect("it can be taken back");
        println!("restored: {took:.1} ms, {} rows, {} blocks", rows.len(), blocks(&rows));
    }
    println!("as at first: {}", proven.routing().routes == route(&fabric).routes);
}

fn timed<T>(work: impl FnOnce() -> T) -> (f64, T) {
    let begun = Instant::now();
    let result = work();
    (begun.elapsed().as_secs_f64() * 1e3, result)
}

/// Whether a cable joins two switches of which one has hosts.
fn is_leaf_cable(fabric: &Fabric, cable: &Cable) -> bool {
    let [a, b] = [cable.a, cable.b].map(|end| fabric.node(end.node));
    let has_hosts =
        |node: &weft_topology::Node| node.cabled_ports().any(|(_, peer)| !fabric.node(peer.node).is_switch());
    a.is_switch() && b.is_switch() && (has_hosts(a) || has_hosts(b))
}

fn blocks(rows: &[Row]) -> usize {
    let block = |row: &Row| (row.before.node, usize::from(row.lid.0) / BLOCK_ENTRIES);
    rows.iter().map(block).collect::<BTreeSet<_>>().len()
}

fn balance(name: &str, fabric: &Fabric, lids: &Lids, routing: &Routing) {
    let paths = Paths::new(fabric, lids, &routing.routes);
    let all = hosts(fabric, lids);
    let found = survey(&paths, &all, &all)
        .expect("hosts have LIDs")
        .balance(&Directions::new(&paths, None))
        .flows
        .all;
    println!("{name}, pairs on a link: {found}");
}
