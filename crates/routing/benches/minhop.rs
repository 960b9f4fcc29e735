//! Time to route whole fabrics by the engines that spread LIDs over ways, and to verify the routes.

use divan::counter::ItemsCount;
use divan::{Bencher, black_box};
use weft_routing::{Engine, EngineOptions, Input, Lids, minhop, verify};
use weft_topology::generate::{GenerateOptions, RandomFabric, hypercube, mesh, random, rlft, torus, xgft};
use weft_topology::{Fabric, FabricBuilder};

fn main() {
    divan::main();
}

const ANY: GenerateOptions = GenerateOptions {
    radix: None,
    tree_hosts: None,
    rate: weft_topology::LinkRate::new(weft_topology::LinkWidth::X4, weft_topology::LinkSpeed::Edr),
};

const TREES: [&str; 4] =
    ["tree of 324 hosts", "tree of 648 hosts", "tree of 5832 hosts", "tree of 11664 hosts"];
const GRIDS: [&str; 3] = ["mesh of 4096 hosts", "torus of 4096 hosts", "hypercube of 4096 hosts"];
const IRREGULAR: [&str; 2] = ["broken tree of 11664 hosts", "random fabric of 5000 hosts"];

/// Without every 97th cable.
fn broken(whole: &Fabric) -> Fabric {
    let mut builder = FabricBuilder::new();
    for node in whole.nodes() {
        builder.add_node(node.clone()).expect("it was a node before");
    }
    for (_, cable) in whole.cables().enumerate().filter(|(number, _)| number % 97 != 0) {
        builder.connect(cable.a, cable.b).expect("it was a cable before");
    }
    builder.build()
}

fn fabric(name: &str) -> (Fabric, Lids) {
    let fabric = match name {
        "tree of 324 hosts" => xgft(&[18, 18], &[1, 18], &ANY),
        "tree of 648 hosts" => rlft(36, 2, &ANY),
        "tree of 5832 hosts" => xgft(&[18, 18, 18], &[1, 18, 18], &ANY),
        "tree of 11664 hosts" => rlft(36, 3, &ANY),
        "broken tree of 11664 hosts" => rlft(36, 3, &ANY).map(|whole| broken(&whole)),
        "random fabric of 5000 hosts" => {
            let parameters =
                RandomFabric { switches: 500, hosts: 5000, extra_cables: 4000, parallel_cables: 100 };
            random(&parameters, 1, &ANY)
        }
        "mesh of 4096 hosts" => mesh(&[8, 8, 8], 8, &ANY),
        "torus of 4096 hosts" => torus(&[8, 8, 8], 8, &ANY),
        _ => hypercube(9, 8, &ANY),
    };
    let fabric = fabric.expect("the parameters are sound");
    let lids = Lids::in_guid_order(&fabric, 0).expect("there are enough LIDs");
    (fabric, lids)
}

/// What is counted is entries of tables.
fn route(bencher: Bencher<'_, '_>, name: &str, engine: &str) {
    let (fabric, lids) = fabric(name);
    let (engine, options) = (Engine::by_name(engine).expect("there is one"), EngineOptions::default());
    let entries = fabric.switches().count() * lids.len();
    bencher.counter(ItemsCount::new(entries)).bench_local(|| {
        engine.route(&Input { fabric: black_box(&fabric), lids: black_box(&lids), options: &options })
    });
}

#[divan::bench(args = TREES.iter().chain(&GRIDS).chain(&IRREGULAR), sample_count = 10)]
fn route_minhop(bencher: Bencher<'_, '_>, name: &str) {
    route(bencher, name, "minhop");
}

#[divan::bench(args = TREES.iter().chain(&GRIDS).chain(&IRREGULAR), sample_count = 10)]
fn route_updn(bencher: Bencher<'_, '_>, name: &str) {
    route(bencher, name, "updn");
}

#[divan::bench(args = GRIDS, sample_count = 10)]
fn route_dor(bencher: Bencher<'_, '_>, name: &str) {
    route(bencher, name, "dor");
}

#[divan::bench(args = TREES, sample_count = 3)]
fn follow(bencher: Bencher<'_, '_>, name: &str) {
    let (fabric, lids) = fabric(name);
    let routes = minhop(&fabric, &lids);
    bencher.bench_local(|| verify(black_box(&fabric), black_box(&lids), black_box(&routes), &[]));
}
