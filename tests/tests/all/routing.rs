//! Every engine that weft and OpenSM both have, on the same fabrics and LIDs: ours reaches all pairs, needs no more
//! lanes, and over random bisections is as good on the mean, within 1 %. The example `routes_beside_opensm` does the
//! same on many more fabrics.

use std::collections::BTreeMap;

use weft_judges::{
    Ibsim, Outcome, Tally, broken_three_levels, broken_tree, directors, edr_pair, irregular, parallel_tree,
    side_by_side, uneven_cores, x5,
};
use weft_topology::Fabric;
use weft_topology::generate::{GenerateOptions, hypercube, mesh, torus, xgft};

const RUNS: u32 = 1000;
const SEED: u64 = 1;

/// Compares engines on fabrics. On each engine there must be as many fabrics that both serve.
fn judged(fabrics: &[(String, Fabric)], engines: &[(&str, u32)]) {
    let mut tallies: BTreeMap<&str, Tally> = BTreeMap::new();
    for (name, fabric) in fabrics {
        let ibsim = Ibsim::start(fabric);
        for (engine, _) in engines {
            let outcome = side_by_side(&ibsim, fabric, engine, RUNS, SEED);
            if let Outcome::Both(rivals) = &outcome {
                println!("{name}, {engine}: OpenSM {:.3} s\n{}", rivals.seconds, rivals.comparison);
            }
            tallies.entry(engine).or_default().add(name, &outcome);
        }
    }
    for (engine, least) in engines {
        let tally = &tallies[engine];
        assert!(
            tally.fabrics >= *least,
            "{engine} is compared on {} fabrics alone: {tally:?}",
            tally.fabrics
        );
        let wrong = tally.verdict(engine);
        assert!(wrong.is_empty(), "{engine}, seed {SEED}:\n{}", wrong.join("\n"));
    }
}

fn named(name: &str, fabric: Fabric) -> (String, Fabric) {
    (name.to_owned(), fabric)
}

#[test]
fn x5_cluster() {
    judged(&[named("X5", x5())], &[("minhop", 1), ("updn", 1), ("lash", 1), ("sssp", 1), ("dfsssp", 1)]);
}

#[test]
fn fat_tree_of_324_hosts() {
    let fabric = xgft(&[18, 18], &[1, 18], &GenerateOptions::default()).unwrap();
    let engines = [("minhop", 1), ("updn", 1), ("ftree", 1), ("lash", 1), ("sssp", 1), ("dfsssp", 1)];
    judged(&[named("324 hosts", fabric)], &engines);
}

#[test]
fn grids() {
    let options = GenerateOptions::default();
    let fabrics = [
        named("3x2 mesh", mesh(&[3, 2], 2, &options).unwrap()),
        named("4x4 torus", torus(&[4, 4], 2, &options).unwrap()),
        named("5x5 torus", torus(&[5, 5], 2, &options).unwrap()),
        named("hypercube", hypercube(4, 2, &options).unwrap()),
    ];
    judged(&fabrics, &[("minhop", 4), ("dor", 4), ("lash", 4), ("dfsssp", 4)]);
}

#[test]
fn irregular_fabrics() {
    let fabrics: Vec<_> = (1..=5).map(|seed| (format!("irregular {seed}"), irregular(seed))).collect();
    judged(&fabrics, &[("minhop", 5), ("lash", 5), ("sssp", 5), ("dfsssp", 5)]);
}

#[test]
fn degraded_trees() {
    let fabrics: Vec<_> = (4..=9).map(|seed| (format!("degraded {seed}"), broken_tree(seed))).collect();
    let engines = [("minhop", 6), ("updn", 4), ("ftree", 1), ("lash", 6), ("sssp", 6), ("dfsssp", 6)];
    judged(&fabrics, &engines);
}

#[test]
fn parallel_cables() {
    let fabrics = [
        named("EDR pair", edr_pair()),
        named("3 spines, 5 cables", parallel_tree(16, 3, 5)),
        named("4 spines, 4 cables", parallel_tree(16, 4, 4)),
        named("6 spines, 3 cables", parallel_tree(16, 6, 3)),
        named("7 spines, 2 cables", parallel_tree(16, 7, 2)),
    ];
    let engines = [("minhop", 5), ("updn", 5), ("ftree", 5), ("lash", 5), ("sssp", 5), ("dfsssp", 5)];
    judged(&fabrics, &engines);
    judged(
        &[named("uneven cores", uneven_cores())],
        &[("minhop", 1), ("lash", 1), ("sssp", 1), ("dfsssp", 1)],
    );
}

#[test]
fn director_switches() {
    let fabrics: Vec<_> = directors().into_iter().take(4).map(|(name, fabric)| named(name, fabric)).collect();
    // OpenSM's updn finds roots on one of them alone.
    judged(&fabrics, &[("minhop", 4), ("updn", 1), ("lash", 4), ("sssp", 4), ("dfsssp", 4)]);
}

#[test]
fn degraded_trees_of_three_levels() {
    let fabrics: Vec<_> =
        (1..=2).map(|seed| (format!("degraded {seed}"), broken_three_levels(seed))).collect();
    judged(&fabrics, &[("minhop", 2), ("updn", 2), ("lash", 2), ("sssp", 2), ("dfsssp", 2)]);
}
