//! Time of pFTree and its extensions on trees of switches with 36 ports.
//!
//! `cargo bench -p weft-routing --bench pftree`

use divan::Bencher;
use weft_routing::{
    Engine, EngineOptions, Input, Isolation, Lids, Member, Partition, Partitions, Strictness,
};
use weft_topology::Fabric;
use weft_topology::generate::{GenerateOptions, rlft};

fn main() {
    divan::main();
}

/// Hosts are dealt out to this many partitions one after the other, so that every partition is everywhere; the
/// first of them is to have links of its own.
fn partitions(fabric: &Fabric, count: usize) -> Partitions {
    let mut list: Vec<Partition> = (1..=count as u16)
        .map(|pkey| Partition { name: String::new(), pkey, members: Vec::new(), isolation: Isolation::Def })
        .collect();
    for (place, (_, node)) in fabric.hosts().enumerate() {
        // Another order on every leaf.
        let turn = (place + place / 18) % count;
        list[turn].members.push(Member { guid: node.ports[1].guid, full: true });
    }
    list[0].isolation = Isolation::Phy;
    Partitions { list, strictness: Strictness::BestEffort }
}

#[divan::bench(args = [(2, 6), (3, 1), (3, 6), (3, 100), (3, 1000)], sample_count = 5, sample_size = 1)]
fn pftree_ext(bencher: Bencher<'_, '_>, (levels, count): (u32, usize)) {
    measure(bencher, "pftree-ext", levels, count);
}

#[divan::bench(args = [(3, 6)], sample_count = 5, sample_size = 1)]
fn pftree_wt(bencher: Bencher<'_, '_>, (levels, count): (u32, usize)) {
    measure(bencher, "pftree-wt", levels, count);
}

fn measure(bencher: Bencher<'_, '_>, engine: &str, levels: u32, count: usize) {
    let fabric = rlft(36, levels, &GenerateOptions::default()).expect("a tree");
    let lids = Lids::in_guid_order(&fabric, 0).expect("enough LIDs");
    let options = EngineOptions { partitions: Some(partitions(&fabric, count)), ..EngineOptions::default() };
    let engine = Engine::by_name(engine).expect("the engine is there");
    bencher.bench_local(|| {
        engine.route(&Input { fabric: &fabric, lids: &lids, options: &options }).expect("a tree is served")
    });
}
