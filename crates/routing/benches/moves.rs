//! Time to mark the switches that a migration writes, and to plan and prove one.

use std::collections::BTreeSet;

use divan::{Bencher, black_box};
use weft_routing::moves::{Kept, LatePolicy, Method, Move, Planner, UpdateOrder};
use weft_routing::{Engine, EngineOptions, Input, Lids, Routing};
use weft_topology::generate::{GenerateOptions, rlft, xgft};
use weft_topology::{Fabric, NodeIndex, PortRef, Virtualised};
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

/// A machine on the first host, and its move to the last one.
struct Site {
    fabric: Fabric,
    lids: Lids,
    routing: Routing,
    kept: Kept,
    one: Move,
}

impl Site {
    fn new(fabric: Fabric, mut lids: Lids, vswitches: &[NodeIndex], [from, to, model]: [PortRef; 3]) -> Self {
        let lid = Lid(lids.top().0 + 1);
        lids.insert(from, lid, 0).expect("it is free");
        let options = EngineOptions::default();
        let engine = Engine::by_name("ftree").expect("it is in the table");
        let input = Input { fabric: &fabric, lids: &lids, options: &options };
        let routing = engine.route(&input).expect("it is a tree");
        let kept = Kept::new(&fabric, &lids, &routing, &options, vswitches, &BTreeSet::new());
        let of = lids.of(model).expect("it has one").base;
        let one = Move::Copy { lid, from, to, of };
        Self { kept: kept.expect("one lane"), fabric, lids, routing, one }
    }

    /// Hosts have no vSwitches: the machine's LID is one more of its host's port.
    fn plain(fabric: Fabric) -> Self {
        let lids = Lids::in_guid_order(&fabric, 0).expect("there are enough LIDs");
        let [from, to] = ends(&fabric);
        Self::new(fabric, lids, &[], [from, to, to])
    }

    /// Every host has a vSwitch, which shares the LID of the physical function, and two virtual functions without LIDs but the machine's.
    fn virtualised(physical: &Fabric) -> Self {
        let Virtualised { fabric, adapters } = physical.virtualised(2).expect("hosts have one port");
        let port = |node| PortRef::new(node, PortNum(1));
        let mut lids = Lids::new();
        let switches =
            physical.switches().map(|(_, switch)| fabric.by_guid(switch.guid).expect("it is there"));
        let ends = switches.map(|switch| PortRef::new(switch, PortNum::ZERO));
        for (lid, end) in (1..).zip(ends.chain(adapters.iter().map(|adapter| port(adapter.pf)))) {
            lids.insert(end, Lid(lid), 0).expect("it is free");
        }
        let vswitches: Vec<NodeIndex> = adapters.iter().map(|adapter| adapter.vswitch).collect();
        let [first, last] =
            [adapters.first(), adapters.last()].map(|adapter| adapter.expect("there are hosts"));
        Self::new(fabric, lids, &vswitches, [port(first.vfs[0]), port(last.vfs[0]), port(last.pf)])
    }

    fn bench(&self, bencher: Bencher<'_, '_>, method: Method, rounds: usize) {
        let Self { fabric, lids, routing, kept, one } = self;
        let planner = Planner { kept, fabric, lids, routing, fresh: None, late: LatePolicy::default() };
        let one = [*one];
        let (plan, proof) = planner.plan_and_prove(&one, method, UpdateOrder::Ordered).expect("it is safe");
        assert_eq!((proof.unproved_lanes, plan.fallbacks.len(), plan.rounds.len()), (0, 0, rounds));
        assert!(method == Method::Itrc || plan.physical == 362);
        bencher.bench_local(|| planner.plan_and_prove(black_box(&one), method, UpdateOrder::Ordered));
    }
}

const METHODS: [Method; 3] = [Method::FtreeMinrc, Method::Skyline, Method::Itrc];

/// A plan and its proof across 1620 switches, from tables that were kept.
#[divan::bench(args = METHODS, sample_count = 200)]
fn plan_and_prove(bencher: Bencher<'_, '_>, method: Method) {
    Site::plain(fabric(11_664)).bench(bencher, method, 5);
}

/// The same with 11 664 vSwitches below them, which the planner looks at as well.
#[divan::bench(args = METHODS, sample_count = 200)]
fn plan_and_prove_with_vswitches(bencher: Bencher<'_, '_>, method: Method) {
    Site::virtualised(&fabric(11_664)).bench(bencher, method, 7);
}
