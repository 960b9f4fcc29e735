//! Time of fat-tree routing, and how it grows with the tree.

use divan::{Bencher, black_box};
use weft_routing::{Engine, EngineOptions, Input, Lids};
use weft_topology::Fabric;
use weft_topology::generate::{Damage, GenerateOptions, degraded, rlft, xgft};

fn main() {
    divan::main();
}

/// Hosts of the trees of the paper on vSwitches.
const HOSTS: [u32; 4] = [324, 648, 5832, 11_664];

fn fabric(hosts: u32) -> (Fabric, Lids) {
    let options = GenerateOptions::default();
    let fabric = match hosts {
        324 => xgft(&[18, 18], &[1, 18], &options),
        648 => rlft(36, 2, &options),
        5832 => xgft(&[18, 18, 18], &[1, 18, 18], &options),
        _ => rlft(36, 3, &options),
    };
    let fabric = fabric.expect("the parameters are sound");
    let lids = Lids::in_guid_order(&fabric, 0).expect("there are enough LIDs");
    (fabric, lids)
}

#[divan::bench(args = HOSTS, sample_count = 20)]
fn ftree(bencher: Bencher<'_, '_>, hosts: u32) {
    let (fabric, lids) = fabric(hosts);
    let engine = Engine::by_name("ftree").expect("it is in the table");
    let options = EngineOptions::default();
    let input = Input { fabric: &fabric, lids: &lids, options: &options };
    bencher.bench_local(|| engine.route(black_box(&input)).expect("it is a tree"));
}

/// A tree that has lost one cable in a hundred and some switches: what a subnet manager reroutes when it matters.
#[divan::bench(args = HOSTS, sample_count = 10)]
fn ftree_degraded(bencher: Bencher<'_, '_>, hosts: u32) {
    let (whole, _) = fabric(hosts);
    let damage = Damage { cables: whole.counts().cables / 100, switches: whole.counts().switches / 100 };
    let fabric = degraded(&whole, damage, 1).expect("what remains is sound");
    let lids = Lids::in_guid_order(&fabric, 0).expect("there are enough LIDs");
    let engine = Engine::by_name("ftree").expect("it is in the table");
    let options = EngineOptions::default();
    let input = Input { fabric: &fabric, lids: &lids, options: &options };
    bencher.bench_local(|| engine.route(black_box(&input)).expect("it is nearly a tree"));
}
