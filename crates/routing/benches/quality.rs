//! Time to judge the quality of a routing.

use divan::{Bencher, black_box};
use weft_routing::quality::{Participants, Paths, Pattern, SimulateOptions, hosts, simulate, survey};
use weft_routing::{Lids, Routes, minhop};
use weft_topology::Fabric;
use weft_topology::generate::{GenerateOptions, rlft};

fn main() {
    divan::main();
}

const TREES: [u32; 2] = [2, 3];

/// A tree of 36-port switches: 648 hosts with two levels, 11664 with three.
fn tree(levels: u32) -> (Fabric, Lids, Routes) {
    let fabric = rlft(36, levels, &GenerateOptions::default()).expect("the parameters are sound");
    let lids = Lids::in_guid_order(&fabric, 0).expect("there are enough LIDs");
    let routes = minhop(&fabric, &lids);
    (fabric, lids, routes)
}

/// 1000 random bisections, with all metrics.
#[divan::bench(args = TREES, sample_count = 5)]
fn bisect_1000(bencher: Bencher<'_, '_>, levels: u32) {
    let (fabric, lids, routes) = tree(levels);
    let paths = Paths::new(&fabric, &lids, &routes);
    let participants = Participants::all(hosts(&fabric, &lids));
    let options = SimulateOptions { runs: 1000, ..SimulateOptions::default() };
    bencher.bench_local(|| simulate(black_box(&paths), &participants, Pattern::Bisect, &options));
}

/// Turning tables round.
#[divan::bench(args = TREES, sample_count = 5)]
fn prepare(bencher: Bencher<'_, '_>, levels: u32) {
    let (fabric, lids, routes) = tree(levels);
    bencher.bench_local(|| {
        black_box(Paths::new(black_box(&fabric), &lids, &routes));
    });
}

/// Every pair of hosts.
#[divan::bench(args = TREES, sample_count = 5)]
fn all_pairs(bencher: Bencher<'_, '_>, levels: u32) {
    let (fabric, lids, routes) = tree(levels);
    let paths = Paths::new(&fabric, &lids, &routes);
    let hosts = hosts(&fabric, &lids);
    bencher.bench_local(|| survey(black_box(&paths), &hosts, &hosts));
}
