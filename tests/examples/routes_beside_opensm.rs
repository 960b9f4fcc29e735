//! weft's routing engines beside OpenSM's on ibsim: lanes, and bandwidth under the same random bisections.
//!
//! ```text
//! cargo run --release -p weft-judges --example routes_beside_opensm -- [FABRICS] [RUNS]
//! ```
//!
//! On the X5 cluster, on FABRICS (50) random irregular fabrics and on as many degraded fat-trees, each from its number
//! as the seed, and dor on grids. Prints a line for each engine and fabric, then means. Ends with 1 when an engine of
//! ours leaves out a pair, needs more lanes than OpenSM's, or has less bandwidth on the mean by more than 1 %.

#![allow(clippy::print_stdout, reason = "this is what it is for")]

use std::collections::BTreeMap;
use std::process::ExitCode;

use weft_judges::{Ibsim, Outcome, Tally, broken_tree, irregular, side_by_side, x5};
use weft_topology::Fabric;
use weft_topology::generate::{GenerateOptions, hypercube, mesh, torus};

const ENGINES: [&str; 6] = ["minhop", "updn", "ftree", "lash", "sssp", "dfsssp"];
/// Both serve these alone: OpenSM's dor routes whatever it is given, by the order of ports.
const ON_GRIDS: [&str; 4] = ["dor", "minhop", "lash", "dfsssp"];

type Tallies = BTreeMap<(&'static str, &'static str), Tally>;

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1).map(|text| text.parse().expect("a number"));
    let (fabrics, runs) = (arguments.next().unwrap_or(50), arguments.next().unwrap_or(1000) as u32);
    let mut tallies = Tallies::new();
    judge(("X5", 0), &x5(), &ENGINES, runs, &mut tallies);
    let options = GenerateOptions::default();
    let grids = [
        mesh(&[3, 2], 2, &options),
        mesh(&[4, 4], 2, &options),
        mesh(&[3, 3, 3], 1, &options),
        torus(&[4, 4], 2, &options),
        torus(&[5, 5], 2, &options),
        hypercube(4, 2, &options),
    ];
    for (number, grid) in (1..).zip(grids) {
        judge(("grid", number), &grid.expect("the parameters are sound"), &ON_GRIDS, runs, &mut tallies);
    }
    for seed in 1..=fabrics {
        judge(("irregular", seed), &irregular(seed), &ENGINES, runs, &mut tallies);
        judge(("degraded tree", seed), &broken_tree(seed), &ENGINES, runs, &mut tallies);
    }
    println!(
        "\n| fabrics | engine | compared | lanes, OpenSM | lanes, weft | bandwidth, OpenSM | bandwidth, weft | only weft | behind by 1 % |"
    );
    println!("|---|---|---|---|---|---|---|---|---|");
    let mut wrong = Vec::new();
    for ((kind, engine), tally) in &tallies {
        let mean = |sum: f64| sum / f64::from(tally.fabrics.max(1));
        let ([lanes, ours], [bandwidth, own]) = (tally.lanes, tally.bandwidth);
        println!(
            "| {kind} | {engine} | {} | {:.2} | {:.2} | {:.4} | {:.4} | {} | {} |",
            tally.fabrics,
            mean(f64::from(lanes)),
            mean(f64::from(ours)),
            mean(bandwidth),
            mean(own),
            tally.only_weft,
            tally.behind,
        );
        wrong.extend(tally.verdict().into_iter().map(|what| format!("{engine}, {what}")));
    }
    wrong.iter().for_each(|what| println!("WRONG: {what}"));
    if wrong.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn judge(
    (kind, seed): (&'static str, u64),
    fabric: &Fabric,
    engines: &[&'static str],
    runs: u32,
    tallies: &mut Tallies,
) {
    let ibsim = Ibsim::start(fabric);
    for engine in engines {
        let outcome = side_by_side(&ibsim, fabric, engine, runs, seed + 1);
        match &outcome {
            Outcome::Both(rivals) => {
                let [theirs, ours] = rivals.rows();
                let (lanes, own) = (theirs.lanes, ours.lanes);
                let (bandwidth, mine) = (theirs.bandwidth.mean, ours.bandwidth.mean);
                println!(
                    "{kind} {seed}, {engine}: lanes {lanes} and {own}, bandwidth {bandwidth:.4} and {mine:.4}"
                );
            }
            Outcome::OpenSmRefused { took, .. } => println!("{kind} {seed}, {engine}: OpenSM takes {took}"),
            Outcome::WeftRefused(reason) => println!("{kind} {seed}: only OpenSM serves it: {reason}"),
        }
        tallies.entry((kind, *engine)).or_default().add(&format!("{kind} {seed}"), &outcome);
    }
}
