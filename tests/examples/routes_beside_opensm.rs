//! weft's routing engines beside OpenSM's on ibsim: lanes, and bandwidth under the same random bisections.
//!
//! ```text
//! cargo run --release -p weft-judges --example routes_beside_opensm -- [FABRICS] [RUNS]
//! ```
//!
//! On the X5 cluster, on FABRICS (50) random irregular fabrics and on as many degraded fat-trees, each from its number
//! as the seed. Prints a line for each engine and fabric, then means. Ends with 1 when an engine of ours is worse.

#![allow(clippy::print_stdout, reason = "this is what it is for")]

use std::collections::BTreeMap;
use std::process::ExitCode;

use weft_judges::{Ibsim, Outcome, side_by_side, x5};
use weft_topology::Fabric;
use weft_topology::generate::{Damage, GenerateOptions, RandomFabric, degraded, pgft, random, xgft};

const ENGINES: [&str; 7] = ["minhop", "updn", "dor", "ftree", "lash", "sssp", "dfsssp"];

/// What has been seen of one engine on one kind of fabric.
#[derive(Default)]
struct Tally {
    fabrics: u32,
    lanes: [u32; 2],
    bandwidth: [f64; 2],
    opensm_refused: u32,
    weft_refused: u32,
    faults: u32,
}

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1).map(|text| text.parse().expect("a number"));
    let (fabrics, runs) = (arguments.next().unwrap_or(50), arguments.next().unwrap_or(1000) as u32);
    let mut tallies: BTreeMap<(&str, usize), Tally> = BTreeMap::new();
    judge("X5", 0, &x5(), runs, &mut tallies);
    for seed in 1..=fabrics {
        judge("irregular", seed, &irregular(seed), runs, &mut tallies);
        judge("degraded tree", seed, &broken_tree(seed), runs, &mut tallies);
    }
    println!(
        "\n| fabrics | engine | compared | lanes, OpenSM | lanes, weft | bandwidth, OpenSM | bandwidth, weft | only weft | only OpenSM | worse |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|");
    let mut faults = 0;
    for ((kind, engine), tally) in &tallies {
        let mean = |sum: f64| sum / f64::from(tally.fabrics.max(1));
        println!(
            "| {kind} | {} | {} | {:.2} | {:.2} | {:.4} | {:.4} | {} | {} | {} |",
            ENGINES[*engine],
            tally.fabrics,
            mean(f64::from(tally.lanes[0])),
            mean(f64::from(tally.lanes[1])),
            mean(tally.bandwidth[0]),
            mean(tally.bandwidth[1]),
            tally.opensm_refused,
            tally.weft_refused,
            tally.faults,
        );
        faults += tally.faults + tally.weft_refused;
    }
    if faults > 0 { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

fn judge(
    kind: &'static str,
    seed: u64,
    fabric: &Fabric,
    runs: u32,
    tallies: &mut BTreeMap<(&'static str, usize), Tally>,
) {
    let ibsim = Ibsim::start(fabric);
    for (number, engine) in ENGINES.into_iter().enumerate() {
        let tally = tallies.entry((kind, number)).or_default();
        match side_by_side(&ibsim, fabric, engine, runs, seed + 1) {
            Outcome::OpenSmRefused { ours: None, .. } => tally.opensm_refused += 1,
            Outcome::OpenSmRefused { .. } => {}
            Outcome::WeftRefused(reason) => {
                tally.weft_refused += 1;
                println!("{kind} {seed}, {engine}: only OpenSM serves it: {reason}");
            }
            Outcome::Both(rivals) => {
                let [theirs, ours] = &rivals.comparison.rows[..] else { continue };
                tally.fabrics += 1;
                for (place, row) in [theirs, ours].into_iter().enumerate() {
                    tally.lanes[place] += u32::from(row.lanes);
                    tally.bandwidth[place] += row.bandwidth.mean;
                }
                let worse = rivals.faults();
                tally.faults += u32::from(!worse.is_empty());
                println!(
                    "{kind} {seed}, {engine}: lanes {} and {}, bandwidth {:.4} and {:.4}{}{}",
                    theirs.lanes,
                    ours.lanes,
                    theirs.bandwidth.mean,
                    ours.bandwidth.mean,
                    if worse.is_empty() { "" } else { ", WORSE: " },
                    worse.join("; "),
                );
            }
        }
    }
}

/// Twenty switches or so, about three hosts each, two to five cables more per switch.
fn irregular(seed: u64) -> Fabric {
    let switches = 12 + (seed % 9) as u32 * 2;
    let parameters = RandomFabric {
        switches,
        hosts: switches * (2 + (seed % 3) as u32),
        extra_cables: switches * (1 + (seed % 4) as u32) / 2 + 4,
        parallel_cables: (seed % 5) as u32,
    };
    random(&parameters, seed, &GenerateOptions::default()).expect("there are enough ports")
}

/// A tree of two or three levels that lacks cables and switches, but no host.
fn broken_tree(seed: u64) -> Fabric {
    let whole = match seed % 3 {
        0 => xgft(&[4, 4, 4], &[1, 4, 4], &GenerateOptions::default()),
        1 => xgft(&[6, 8], &[1, 6], &GenerateOptions::default()),
        _ => pgft(&[4, 6, 2], &[1, 2, 3], &[1, 2, 1], &GenerateOptions::default()),
    };
    let whole = whole.expect("the parameters are sound");
    let cables = whole.cables().count();
    (0..)
        .map(|attempt| {
            let damage = Damage { cables: cables / 50 + (seed as usize % 7), switches: seed as usize % 3 };
            degraded(&whole, damage, seed * 1000 + attempt).expect("what remains was sound before")
        })
        .find(|fabric| is_whole(fabric) && fabric.hosts().count() == whole.hosts().count())
        .expect("some damage leaves it in one piece")
}

fn is_whole(fabric: &Fabric) -> bool {
    fabric.counts().components == 1
}
