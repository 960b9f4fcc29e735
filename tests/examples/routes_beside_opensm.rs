//! weft's routing engines beside OpenSM's on ibsim: lanes, and bandwidth under the same random bisections.
//!
//! ```text
//! cargo run --profile dist -p weft-judges --example routes_beside_opensm -- [FABRICS] [RUNS] [KIND]
//! ```
//!
//! On the X5 cluster, on grids, on trees with 2 to 8 spines and 1 to 6 parallel cables, on two clusters with uneven
//! cables, on director switches, and on FABRICS (50) random irregular fabrics and as many degraded trees of each sort,
//! each from its number as the seed; or only on those whose KIND has this text in its name. Prints a line for each
//! engine and fabric, then means. Ends with 1 when an engine of ours leaves out a pair, leaves a cable idle where
//! OpenSM's uses all, takes more lanes and gives no more bandwidth, has less bandwidth on the mean by more than 1 %, or, with dfsssp, a busier link by 10 %.

#![allow(clippy::print_stdout, reason = "this is what it is for")]

use std::collections::BTreeMap;
use std::process::ExitCode;

use weft_judges::{
    Ibsim, Outcome, Tally, broken_three_levels, broken_tree, directors, edr_pair, irregular, parallel_tree,
    side_by_side, uneven_cores, x5,
};
use weft_topology::Fabric;
use weft_topology::generate::{GenerateOptions, hypercube, mesh, torus};

const ENGINES: [&str; 6] = ["minhop", "updn", "ftree", "lash", "sssp", "dfsssp"];
/// Both serve these alone: OpenSM's dor routes whatever it is given, by the order of ports.
const ON_GRIDS: [&str; 4] = ["dor", "minhop", "lash", "dfsssp"];

/// Where hosts are not on leaves alone.
const NO_TREES: [&str; 5] = ["minhop", "updn", "lash", "sssp", "dfsssp"];

/// The seed of the bisections.
const SEED: u64 = 1;

type Tallies = BTreeMap<(&'static str, &'static str), Tally>;

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let mut number = |default| arguments.next().map_or(default, |text| text.parse().expect("a number"));
    let (fabrics, runs) = (number(50), number(1000) as u32);
    let wanted = arguments.next().unwrap_or_default();
    let mut tallies = Tallies::new();
    for (kind, engines, make) in kinds(fabrics) {
        if kind.contains(&wanted) {
            for (name, fabric) in make() {
                judge((kind, &name), &fabric, &engines, runs, &mut tallies);
            }
        }
    }
    println!(
        "\n| fabrics | engine | compared | lanes, OpenSM | lanes, weft | bandwidth, OpenSM | bandwidth, weft | busiest link, OpenSM | busiest link, weft | only weft | behind by 1 % |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|---|");
    let mut wrong = Vec::new();
    for ((kind, engine), tally) in &tallies {
        let mean = |sum: f64| sum / f64::from(tally.fabrics.max(1));
        let ([lanes, ours], [bandwidth, own]) = (tally.lanes, tally.bandwidth);
        println!(
            "| {kind} | {engine} | {} | {:.2} | {:.2} | {:.4} | {:.4} | {:.0} | {:.0} | {} | {} |",
            tally.fabrics,
            mean(f64::from(lanes)),
            mean(f64::from(ours)),
            mean(bandwidth),
            mean(own),
            mean(tally.worst_link[0]),
            mean(tally.worst_link[1]),
            tally.only_weft,
            tally.behind,
        );
        wrong.extend(tally.verdict(engine).into_iter().map(|what| format!("{engine}, {what}")));
    }
    wrong.iter().for_each(|what| println!("WRONG: {what}"));
    if wrong.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// A kind of fabric: its name, the engines that are compared, and the fabrics with their names.
type Kind = (&'static str, Vec<&'static str>, Box<dyn FnOnce() -> Vec<(String, Fabric)>>);

fn kinds(fabrics: u64) -> Vec<Kind> {
    let seeded = move |make: fn(u64) -> Fabric| -> Box<dyn FnOnce() -> Vec<(String, Fabric)>> {
        Box::new(move || (1..=fabrics).map(|seed| (seed.to_string(), make(seed))).collect())
    };
    vec![
        ("X5", ENGINES.to_vec(), Box::new(|| vec![(String::new(), x5())])),
        ("grid", ON_GRIDS.to_vec(), Box::new(grids)),
        ("parallel tree", ENGINES.to_vec(), Box::new(parallel_trees)),
        ("uneven cables", NO_TREES.to_vec(), Box::new(|| vec![(String::new(), uneven_cores())])),
        ("director", NO_TREES.to_vec(), Box::new(|| named(directors()))),
        ("irregular", ENGINES.to_vec(), seeded(irregular)),
        ("degraded tree", ENGINES.to_vec(), seeded(broken_tree)),
        ("degraded 3-level tree", ENGINES.to_vec(), seeded(broken_three_levels)),
    ]
}

fn named(fabrics: Vec<(&str, Fabric)>) -> Vec<(String, Fabric)> {
    fabrics.into_iter().map(|(name, fabric)| (name.to_owned(), fabric)).collect()
}

fn grids() -> Vec<(String, Fabric)> {
    let options = GenerateOptions::default();
    let grids = [
        ("3x2 mesh", mesh(&[3, 2], 2, &options)),
        ("4x4 mesh", mesh(&[4, 4], 2, &options)),
        ("3x3x3 mesh", mesh(&[3, 3, 3], 1, &options)),
        ("4x4 torus", torus(&[4, 4], 2, &options)),
        ("5x5 torus", torus(&[5, 5], 2, &options)),
        ("hypercube", hypercube(4, 2, &options)),
    ];
    let built = grids.map(|(name, grid)| (name, grid.expect("the parameters are sound")));
    named(built.into())
}

fn parallel_trees() -> Vec<(String, Fabric)> {
    let mut trees = vec![("EDR pair".to_owned(), edr_pair())];
    for spines in 2..=8 {
        for parallel in 1..=6 {
            trees.push((format!("{spines} x {parallel}"), parallel_tree(16, spines, parallel)));
        }
    }
    trees
}

fn judge(
    (kind, name): (&'static str, &str),
    fabric: &Fabric,
    engines: &[&'static str],
    runs: u32,
    tallies: &mut Tallies,
) {
    let ibsim = Ibsim::start(fabric);
    for engine in engines {
        let outcome = side_by_side(&ibsim, fabric, engine, runs, SEED);
        match &outcome {
            Outcome::Both(rivals) => {
                let [theirs, ours] = rivals.rows();
                let (lanes, own) = (theirs.lanes, ours.lanes);
                let (bandwidth, mine) = (theirs.bandwidth.mean, ours.bandwidth.mean);
                let [busiest, busy] = [theirs, ours].map(|row| row.balance.flows.all.max);
                let [idlest, idle] = [theirs, ours].map(|row| row.balance.flows.all.min);
                println!(
                    "{kind} {name}, {engine}: lanes {lanes} and {own}, bandwidth {bandwidth:.4} and {mine:.4}, \
                     links {idlest:.0} to {busiest:.0} and {idle:.0} to {busy:.0}"
                );
            }
            Outcome::OpenSmRefused { took, .. } => println!("{kind} {name}, {engine}: OpenSM takes {took}"),
            Outcome::WeftRefused(reason) => println!("{kind} {name}: only OpenSM serves it: {reason}"),
        }
        tallies.entry((kind, *engine)).or_default().add(&format!("{kind} {name}"), &outcome);
    }
}
