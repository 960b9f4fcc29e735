//! Computing times of `ftree` on a tree of 11 664 hosts, whole and without some of its cables, and the evenness of smaller trees.
//!
//! ```text
//! cargo run --release -p weft-routing --example damaged -- [CABLES [SEED]]
//! ```
//!
//! The small tree has 31 leaves of 18 hosts under 9 spines, two cables each, of which 26 are missing.

#![allow(
    clippy::disallowed_types,
    clippy::disallowed_macros,
    reason = "an example measures time and prints what it finds"
)]

use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::Instant;

use weft_routing::quality::{
    Directions, Participants, Paths, Pattern, SimulateOptions, hosts, simulate, survey,
};
use weft_routing::{Chain, EngineOptions, Lids, Routing};
use weft_topology::Fabric;
use weft_topology::generate::{Damage, GenerateOptions, degraded, pgft, rlft};

fn main() {
    let mut arguments = std::env::args().skip(1);
    let mut number =
        |default: usize| arguments.next().map_or(default, |text| text.parse().expect("a number"));
    let (cables, seed) = (number(300), number(1) as u64);
    let options = GenerateOptions::default();
    let small = pgft(&[18, 31], &[1, 9], &[1, 2], &options).expect("a tree");
    for seed in 0..4 {
        let fabric = without(&small, 26, seed);
        let (_, routing) = routed(&fabric);
        let (worst, share) = quality(&fabric, &routing);
        println!(
            "26 cables missing, seed {seed}: worst link {worst}, bisection {share:.3}, {}",
            mark(&routing)
        );
    }
    let whole = rlft(36, 3, &options).expect("a tree");
    let ([took, used], _) = routed(&whole);
    println!("whole: {took:.2} s, {used:.2} s of processor time");
    let ([took, used], routing) = routed(&without(&whole, cables, seed));
    let mark = mark(&routing);
    println!("{cables} cables missing, seed {seed}: {took:.2} s, {used:.2} s of processor time, {mark}");
}

fn without(fabric: &Fabric, cables: usize, seed: u64) -> Fabric {
    degraded(fabric, Damage { cables, switches: 0 }, seed).expect("what remains is sound")
}

/// The tables, and the seconds that they took: by the clock, and of the processor in all threads.
fn routed(fabric: &Fabric) -> ([f64; 2], Routing) {
    let lids = Lids::in_guid_order(fabric, 0).expect("there are enough LIDs");
    let chain: Chain = "ftree,no_fallback".parse().expect("an engine");
    let (begun, used) = (Instant::now(), processor_seconds());
    let routing = chain.route(fabric, &lids, &EngineOptions::default()).expect("a routing");
    ([begun.elapsed().as_secs_f64(), processor_seconds() - used], routing)
}

/// What the process has used, in user mode and in the kernel, as Linux counts it in hundredths.
fn processor_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").expect("Linux");
    let after = stat.rsplit(')').next().expect("fields");
    let ticks =
        after.split_whitespace().skip(11).take(2).map(|ticks| ticks.parse::<f64>().expect("a number"));
    ticks.sum::<f64>() / 100.0
}

/// How many pairs of hosts the most used link carries, and the bisection bandwidth.
fn quality(fabric: &Fabric, routing: &Routing) -> (f64, f64) {
    let lids = Lids::in_guid_order(fabric, 0).expect("there are enough LIDs");
    let paths = Paths::new(fabric, &lids, &routing.routes);
    let hosts = hosts(fabric, &lids);
    let survey = survey(&paths, &hosts, &hosts).expect("paths");
    let worst = survey.balance(&Directions::new(&paths, None)).flows.all.max;
    let participants = Participants { first: hosts, second: Vec::new() };
    let options = SimulateOptions { runs: 1000, seed: 7, ..SimulateOptions::default() };
    let share = simulate(&paths, &participants, Pattern::Bisect, &options).expect("paths").bandwidth().mean;
    (worst, share)
}

/// A number that differs where any entry does.
fn mark(routing: &Routing) -> String {
    let mut hasher = DefaultHasher::new();
    format!("{:?}", routing.routes).hash(&mut hasher);
    format!("entries {:016x}", hasher.finish())
}
