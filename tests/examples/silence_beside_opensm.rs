//! The silence of a virtual machine that moves, by where the hosts are that ask it, under weft's subnet manager beside OpenSM.
//!
//! ```text
//! cargo build --workspace && cargo run -p weft-judges --example silence_beside_opensm -- [MOVES [SEED]]
//! ```
//!
//! On the X5 cluster (Up/Down under weft) and on a tree of three levels without 6 of its cables (fat-tree routing; OpenSM takes min-hop), a machine with a
//! dynamic LID makes MOVES (8) moves between hosts that are drawn, the same ones under both. A host of each place asks it every 2 ms: the old host, its
//! leaf, a leaf beside it under the same switches, and any other one. For each the longest time without an answer is printed, and the median.

#![allow(clippy::print_stdout, reason = "this is what it is for")]

use std::collections::BTreeMap;
use std::time::Duration;

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;
use serde_json::Value;
use weft_judges::moves::{Functions, Lids, Machines, Manager, Whence, askers, cabled_hosts};
use weft_judges::{small_broken_three_levels, x5};
use weft_topology::{Fabric, NodeIndex};

/// Longer than either manager is silent while it has something to do.
const REST: Duration = Duration::from_secs(2);

/// How long after the machine runs hosts are listened to: OpenSM sweeps for 2.5 s.
const AFTER: Duration = Duration::from_secs(5);

fn main() {
    let mut arguments = std::env::args().skip(1);
    let mut number = |usual: u64| arguments.next().map_or(usual, |text| text.parse().expect("a number"));
    let (moves, seed) = (number(8), number(1));
    let levels = small_broken_three_levels();
    println!("| fabric | manager | from | moves | longest silence | median |");
    println!("|---|---|---|---|---|---|");
    for (name, fabric, engine) in [("X5", x5(), "updn"), ("three levels without 6 cables", levels, "ftree")] {
        for manager in [Manager::Weft, Manager::OpenSm] {
            for (whence, mut silent) in seen(&fabric, (manager, engine), moves, seed) {
                silent.sort_unstable();
                let ms = |time: Duration| format!("{:.0} ms", time.as_secs_f64() * 1e3);
                println!(
                    "| {name} | {manager:?} | {whence:?} | {} | {} | {} |",
                    silent.len(),
                    ms(silent[silent.len() - 1]),
                    ms(silent[silent.len() / 2])
                );
            }
        }
    }
}

/// By place: for how long a host there heard nothing, for each move.
fn seen(
    fabric: &Fabric,
    (manager, engine): (Manager, &str),
    moves: u64,
    seed: u64,
) -> BTreeMap<Whence, Vec<Duration>> {
    let mut random = Pcg64::seed_from_u64(seed);
    let hosts: Vec<NodeIndex> = cabled_hosts(fabric).map(|(host, _)| host).collect();
    // OpenSM and the VM manager sit at the first two.
    let mut draw = |other: NodeIndex| loop {
        let host = hosts[random.random_range(2..hosts.len())];
        if host != other {
            break host;
        }
    };
    let mut at = draw(hosts[0]);
    let functions = Functions { each: 2, lids: Lids::Dynamic };
    let options: &[&str] = match manager {
        Manager::Weft => &["--pack", "leaf", "--engine", engine],
        Manager::OpenSm => &["--pack", "leaf"],
    };
    let machines = Machines::start(fabric, manager, functions, options, at, REST);
    let mut found: BTreeMap<Whence, Vec<Duration>> = BTreeMap::new();
    for nth in 0..moves {
        let to = draw(at);
        let peers = askers(fabric, (at, to), |count| (seed + nth) as usize % count);
        let ends: Vec<NodeIndex> = peers.iter().map(|(_, host)| *host).collect();
        let after =
            |report: &Value| Duration::from_nanos(report["silent_after_ns"].as_u64().unwrap_or(0)) + AFTER;
        let (_, silent) = machines.migrate_seen(to, &ends, &[], after);
        for ((whence, _), silent) in peers.into_iter().zip(silent) {
            found.entry(whence).or_default().push(silent);
        }
        machines.wait_until_up();
        at = to;
    }
    found
}
