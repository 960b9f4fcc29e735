//! Every engine that weft and OpenSM both have, on the same fabrics and LIDs: ours reaches all pairs, needs no more
//! lanes, and over random bisections is as good, within 1 %. The example `routes_beside_opensm` does the same on many
//! more fabrics.

use weft_judges::{Ibsim, Outcome, side_by_side, x5};
use weft_topology::Fabric;
use weft_topology::generate::{Damage, GenerateOptions, RandomFabric, degraded, mesh, random, torus, xgft};

const RUNS: u32 = 1000;
const SEED: u64 = 1;

/// Compares the engines on a fabric that OpenSM serves with all of them.
fn judged(name: &str, fabric: &Fabric, engines: &[&str]) {
    let ibsim = Ibsim::start(fabric);
    let mut faults = Vec::new();
    for engine in engines {
        match side_by_side(&ibsim, fabric, engine, RUNS, SEED) {
            Outcome::Both(rivals) => {
                println!("{name}, {engine}: OpenSM {:.3} s\n{}", rivals.seconds, rivals.comparison);
                faults.extend(rivals.faults().into_iter().map(|fault| format!("{engine}: {fault}")));
            }
            Outcome::WeftRefused(reason) => faults.push(format!("{engine}: refused: {reason}")),
            Outcome::OpenSmRefused { took, .. } => faults.push(format!("{engine}: OpenSM took {took}")),
        }
    }
    assert!(faults.is_empty(), "{name}, seed {SEED}:\n{}", faults.join("\n"));
}

#[test]
fn x5_cluster() {
    judged("X5", &x5(), &["minhop", "updn", "lash", "sssp", "dfsssp"]);
}

#[test]
fn fat_tree_of_324_hosts() {
    let fabric = xgft(&[18, 18], &[1, 18], &GenerateOptions::default()).unwrap();
    judged("324 hosts", &fabric, &["minhop", "updn", "ftree", "lash", "sssp", "dfsssp"]);
}

#[test]
fn mesh_and_torus() {
    let options = GenerateOptions::default();
    judged("3x2 mesh", &mesh(&[3, 2], 2, &options).unwrap(), &["minhop", "dor", "lash", "dfsssp"]);
    judged("4x4 torus", &torus(&[4, 4], 2, &options).unwrap(), &["minhop", "dor", "lash", "dfsssp"]);
}

#[test]
fn an_irregular_fabric() {
    let parameters = RandomFabric { switches: 16, hosts: 48, extra_cables: 20, parallel_cables: 2 };
    let fabric = random(&parameters, SEED, &GenerateOptions::default()).unwrap();
    judged("irregular", &fabric, &["minhop", "lash", "sssp", "dfsssp"]);
}

#[test]
fn a_degraded_tree() {
    let whole = xgft(&[4, 4, 4], &[1, 4, 4], &GenerateOptions::default()).unwrap();
    let fabric = degraded(&whole, Damage { cables: 6, switches: 0 }, SEED).unwrap();
    assert_eq!(fabric.counts().components, 1);
    judged("degraded tree", &fabric, &["minhop", "updn", "ftree", "lash", "sssp", "dfsssp"]);
}
