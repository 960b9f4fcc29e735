//! How long it takes to mark the switches that a migration writes, and to plan and prove one.

use std::collections::BTreeSet;

use divan::{Bencher, black_box};
use weft_routing::moves::{Kept, Method, Move, Planner, UpdateOrder};
use weft_routing::{Engine, EngineOptions, Input, Lids, Routing};
use weft_topology::generate::{GenerateOptions, rlft, xgft};
use weft_topology::{Fabric, NodeIndex, PortRef};
use weft_wire::{Lid, PortNum};

fn main() {
    divan::main();
}

/// Hosts of the larger trees of the paper's table 3.
const HOSTS: [u32; 2] = [11_664, 20_736];

fn fabric(hosts: u32) -> Fabric {
    let options = GenerateOptions::default();
    let fabric =
        if hosts == 11_664 { rlft(36, 3, &options) } else { xgft(&[12; 4], &[1, 12, 12, 12], &options) };
    fabric.expect("the parameters are sound")
}

/// The first host and the last, which are in different sub-trees of the roots.
fn ends(fabric: &Fabric) -> [PortRef; 2] {
    let last = fabric.counts().hosts - 1;
    let host = |name: String| fabric.iter().find(|(_, node)| node.description == name);
    [0, last].map(|number| {
        let (node, _) = host(format!("host-{number}")).expect("hosts are numbered");
        PortRef::new(node, PortNum(1))
    })
}

/// The worst case: between the edges of the tree.
#[divan::bench(args = HOSTS)]
fn mark(bencher: Bencher<'_, '_>, hosts: u32) {
    let fabric = fabric(hosts);
    let (lids, routing) = (Lids::new(), Routing::default());
    let kept = Kept::new(&fabric, &lids, &routing, &EngineOptions::default(), &[], &BTreeSet::new());
    let kept = kept.expect("no lanes differ");
    let leaf = |port| fabric.peer(port).expect("it has a cable").node;
    let [from, to]: [NodeIndex; 2] = ends(&fabric).map(leaf);
    let marked = kept.mark(from, to).expect("it is a tree").len();
    assert_eq!(marked, if hosts == 11_664 { 362 } else { 2042 });
    bencher.bench_local(|| kept.mark(black_box(from), black_box(to)));
}

/// A plan and its proof across 1620 switches, from tables that were kept.
#[divan::bench(args = [Method::FtreeMinrc, Method::Skyline, Method::Itrc], sample_count = 200)]
fn plan_and_prove(bencher: Bencher<'_, '_>, method: Method) {
    let fabric = fabric(11_664);
    let mut lids = Lids::in_guid_order(&fabric, 0).expect("there are enough LIDs");
    let [from, to] = ends(&fabric);
    let lid = Lid(lids.top().0 + 1);
    lids.insert(from, lid, 0).expect("it is free");
    let options = EngineOptions::default();
    let engine = Engine::by_name("ftree").expect("it is in the table");
    let input = Input { fabric: &fabric, lids: &lids, options: &options };
    let routing = engine.route(&input).expect("it is a tree");
    let kept = Kept::new(&fabric, &lids, &routing, &options, &[], &BTreeSet::new()).expect("one lane");
    let planner = Planner { kept: &kept, fabric: &fabric, lids: &lids, routing: &routing, fresh: None };
    let of = lids.of(to).expect("it has one").base;
    let one = [Move::Copy { lid, from, to, of }];
    let (plan, proof) = planner.plan_and_prove(&one, method, UpdateOrder::Ordered).expect("it is safe");
    assert_eq!((proof.unproved_lanes, plan.fallbacks.len(), plan.rounds.len()), (0, 0, 5));
    assert!(method == Method::Itrc || plan.physical == 362);
    bencher.bench_local(|| planner.plan_and_prove(black_box(&one), method, UpdateOrder::Ordered));
}
