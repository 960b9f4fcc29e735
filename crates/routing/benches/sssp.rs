//! Time of balanced shortest paths, and of their lanes.

use divan::{Bencher, black_box};
use weft_routing::{Engine, EngineOptions, Input, Lids};
use weft_topology::Fabric;
use weft_topology::generate::{Damage, GenerateOptions, RandomFabric, degraded, random, rlft, xgft};

fn main() {
    divan::main();
}

const FABRICS: [&str; 5] = [
    "tree of 648 hosts",
    "tree of 5832 hosts",
    "tree of 11664 hosts",
    "tree of 3456 hosts without 20 cables",
    "irregular, 5000 hosts",
];

fn fabric(name: &str) -> Fabric {
    let any = GenerateOptions::default();
    let fabric = match name {
        "tree of 648 hosts" => rlft(36, 2, &any),
        "tree of 5832 hosts" => xgft(&[18, 18, 18], &[1, 18, 18], &any),
        "tree of 11664 hosts" => rlft(36, 3, &any),
        "tree of 3456 hosts without 20 cables" => {
            rlft(24, 3, &any).and_then(|tree| degraded(&tree, Damage { cables: 20, switches: 0 }, 1))
        }
        // It needs three lanes.
        _ => {
            let parameters =
                RandomFabric { switches: 300, hosts: 5000, extra_cables: 3000, parallel_cables: 0 };
            random(&parameters, 1, &GenerateOptions { radix: Some(48), ..any })
        }
    };
    fabric.expect("the parameters are sound")
}

fn route(bencher: Bencher<'_, '_>, engine: &str, name: &str) {
    let fabric = fabric(name);
    let lids = Lids::in_guid_order(&fabric, 0).expect("there are enough LIDs");
    let engine = Engine::by_name(engine).expect("there is such an engine");
    let options = EngineOptions::default();
    let input = Input { fabric: &fabric, lids: &lids, options: &options };
    bencher.bench_local(|| engine.route(black_box(&input)).expect("it serves the fabric"));
}

#[divan::bench(args = FABRICS, sample_count = 3)]
fn sssp(bencher: Bencher<'_, '_>, name: &str) {
    route(bencher, "sssp", name);
}

#[divan::bench(args = FABRICS, sample_count = 3)]
fn dfsssp(bencher: Bencher<'_, '_>, name: &str) {
    route(bencher, "dfsssp", name);
}
