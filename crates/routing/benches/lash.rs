//! Time to route whole fabrics by layered shortest paths.

use divan::{Bencher, black_box};
use weft_routing::{Engine, EngineOptions, Input, Lids};
use weft_topology::Fabric;
use weft_topology::generate::{GenerateOptions, RandomFabric, random, rlft, torus, xgft};

fn main() {
    divan::main();
}

const ANY: GenerateOptions = GenerateOptions {
    radix: None,
    tree_hosts: None,
    rate: weft_topology::LinkRate::new(weft_topology::LinkWidth::X4, weft_topology::LinkSpeed::Edr),
};

/// 300 switches, so that several lanes are needed.
const IRREGULAR: RandomFabric =
    RandomFabric { switches: 300, hosts: 3000, extra_cables: 900, parallel_cables: 30 };

fn fabric(name: &str) -> (Fabric, Lids) {
    let fabric = match name {
        "tree of 324 hosts" => xgft(&[18, 18], &[1, 18], &ANY),
        "tree of 5832 hosts" => xgft(&[18, 18, 18], &[1, 18, 18], &ANY),
        "torus of 4096 hosts" => torus(&[8, 8, 8], 8, &ANY),
        "irregular, 3000 hosts" => random(&IRREGULAR, 1, &ANY),
        _ => rlft(36, 3, &ANY),
    };
    let fabric = fabric.expect("the parameters are sound");
    let lids = Lids::in_guid_order(&fabric, 0).expect("there are enough LIDs");
    (fabric, lids)
}

const FABRICS: [&str; 5] = [
    "tree of 324 hosts",
    "tree of 5832 hosts",
    "tree of 11664 hosts",
    "torus of 4096 hosts",
    "irregular, 3000 hosts",
];

#[divan::bench(args = FABRICS, sample_count = 3)]
fn route(bencher: Bencher<'_, '_>, name: &str) {
    let (fabric, lids) = fabric(name);
    let options = EngineOptions { lanes: 15, ..EngineOptions::default() };
    let engine = Engine::by_name("lash").expect("there is such an engine");
    let input = Input { fabric: &fabric, lids: &lids, options: &options };
    bencher.bench_local(|| engine.route(black_box(&input)).expect("the fabric is served"));
}
