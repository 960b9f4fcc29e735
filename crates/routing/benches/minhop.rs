//! How long it takes to route whole fabrics, and to verify the routes.

use divan::{Bencher, black_box};
use weft_routing::{Lids, minhop, verify};
use weft_topology::Fabric;
use weft_topology::generate::{GenerateOptions, rlft, torus};

fn main() {
    divan::main();
}

const ANY: GenerateOptions = GenerateOptions {
    radix: None,
    tree_hosts: None,
    rate: weft_topology::LinkRate::new(weft_topology::LinkWidth::X4, weft_topology::LinkSpeed::Edr),
};

fn fabric(name: &str) -> (Fabric, Lids) {
    let fabric = match name {
        "tree of 648 hosts" => rlft(36, 2, &ANY),
        "torus of 4096 hosts" => torus(&[8, 8, 8], 8, &ANY),
        _ => rlft(36, 3, &ANY),
    };
    let fabric = fabric.expect("the parameters are sound");
    let lids = Lids::in_guid_order(&fabric, 0).expect("there are enough LIDs");
    (fabric, lids)
}

const FABRICS: [&str; 3] = ["tree of 648 hosts", "torus of 4096 hosts", "tree of 11664 hosts"];

#[divan::bench(args = FABRICS, sample_count = 10)]
fn route(bencher: Bencher<'_, '_>, name: &str) {
    let (fabric, lids) = fabric(name);
    bencher.bench_local(|| minhop(black_box(&fabric), black_box(&lids)));
}

#[divan::bench(args = FABRICS, sample_count = 3)]
fn follow(bencher: Bencher<'_, '_>, name: &str) {
    let (fabric, lids) = fabric(name);
    let routes = minhop(&fabric, &lids);
    bencher.bench_local(|| verify(black_box(&fabric), black_box(&lids), black_box(&routes)));
}
