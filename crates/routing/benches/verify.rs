//! Time to verify everything of a routing, lane by lane, and a change from one to another.

use divan::{Bencher, black_box};
use weft_routing::{
    Expectations, Isolation, LaneMap, Lids, Member, Partition, Partitions, Ranks, Routing, ServiceLevels,
    minhop,
};
use weft_routing::{verify_routing, verify_transition};
use weft_topology::generate::{GenerateOptions, rlft, torus};
use weft_topology::{Fabric, PortRef};
use weft_wire::{PortNum, ServiceLevel};

fn main() {
    divan::main();
}

const TREE: &str = "tree of 11664 hosts";
const TORUS: &str = "torus of 4096 hosts";

fn fabric(name: &str) -> (Fabric, Lids) {
    let options = GenerateOptions::default();
    let fabric = if name == TREE { rlft(36, 3, &options) } else { torus(&[8, 8, 8], 8, &options) };
    let fabric = fabric.expect("the parameters are sound");
    let lids = Lids::in_guid_order(&fabric, 0).expect("there are enough LIDs");
    (fabric, lids)
}

/// Min-hop tables and, over `lanes` lanes, a level for every pair of leaves, the same both ways.
fn routing(fabric: &Fabric, lids: &Lids, lanes: u16) -> Routing {
    let mut routing = Routing::on_one_lane("minhop", minhop(fabric, lids));
    let leaves = 1 + lids.iter().map(|lids| leaf(fabric, lids.port)).max().unwrap_or(0);
    let mut levels = ServiceLevels::classes(lids.top(), usize::from(leaves), usize::from(leaves));
    for port_lids in lids.iter() {
        let leaf = leaf(fabric, port_lids.port);
        levels.set_source(port_lids.base, leaf);
        levels.set_destination(port_lids.base, leaf);
    }
    for (a, b) in (0..leaves).flat_map(|a| (0..leaves).map(move |b| (a, b))) {
        levels.set(a, b, ServiceLevel(((a + b) % lanes) as u8));
    }
    routing.levels = levels;
    routing.ranks = Some(ranks(fabric));
    routing
}

/// The switch that a port is of or on.
fn leaf(fabric: &Fabric, port: PortRef) -> u16 {
    let node = match fabric.node(port.node).is_switch() {
        true => port.node,
        false => fabric.peer(port).expect("it has a cable").node,
    };
    u16::try_from(node.0).expect("there are fewer nodes")
}

/// Hops from the leaf switches, counted from the top.
fn ranks(fabric: &Fabric) -> Ranks {
    let hosts = |index: usize| fabric.nodes()[index].cabled_ports().map(|(_, peer)| fabric.node(peer.node));
    let mut level: Vec<Option<u32>> = fabric.nodes().iter().map(|_| None).collect();
    for (index, _) in fabric.switches() {
        if hosts(index.index()).any(|peer| !peer.is_switch()) {
            level[index.index()] = Some(2);
        }
    }
    for rank in [1, 0] {
        for (index, node) in fabric.switches() {
            let below = |(_, peer): (PortNum, PortRef)| level[peer.node.index()] == Some(rank + 1);
            if level[index.index()].is_none() && node.cabled_ports().any(below) {
                level[index.index()] = Some(rank);
            }
        }
    }
    Ranks(level)
}

#[divan::bench(args = [1, 8], sample_count = 5)]
fn tree(bencher: Bencher<'_, '_>, lanes: u16) {
    let (fabric, lids) = fabric(TREE);
    let routing = routing(&fabric, &lids, lanes);
    let expectations = Expectations { tree: true, ..Expectations::default() };
    bencher.bench_local(|| {
        let verdict = verify_routing(black_box(&fabric), &lids, &routing, &expectations);
        assert!(verdict.is_sound() && verdict.is_deadlock_free() && verdict.is_symmetric());
        assert_eq!(verdict.lanes.len(), usize::from(lanes));
    });
}

/// A level of its own for every pair of LIDs, as far as the verifier knows.
#[divan::bench(sample_count = 3)]
fn tree_with_levels_by_lid(bencher: Bencher<'_, '_>) {
    let (fabric, lids) = fabric(TREE);
    let mut routing = routing(&fabric, &lids, 1);
    let count = lids.top().0 + 1;
    routing.levels = ServiceLevels::classes(lids.top(), usize::from(count), usize::from(count));
    for lid in lids.iter().map(|lids| lids.base) {
        routing.levels.set_source(lid, lid.0);
        routing.levels.set_destination(lid, lid.0);
    }
    bencher.bench_local(|| {
        let verdict = verify_routing(black_box(&fabric), &lids, &routing, &Expectations::default());
        assert!(verdict.is_deadlock_free() && verdict.is_symmetric());
    });
}

/// Tenants of 72 or 73 hosts each, all over the tree, one of them with links of its own, which min-hop does not give it.
#[divan::bench(sample_count = 3)]
fn tree_in_partitions(bencher: Bencher<'_, '_>) {
    const TENANTS: u16 = 160;
    let (fabric, lids) = fabric(TREE);
    let routing = routing(&fabric, &lids, 8);
    let ports = fabric.hosts().filter_map(|(_, node)| Some(node.end_ports().next()?.1.guid));
    let members: Vec<Member> = ports.map(|guid| Member { guid, full: true }).collect();
    let tenant = |number: u16| Partition {
        name: format!("tenant {number}"),
        pkey: number + 1,
        members: members.iter().skip(usize::from(number)).step_by(usize::from(TENANTS)).copied().collect(),
        isolation: if number == 0 { Isolation::Phy } else { Isolation::Def },
    };
    let partitions = Partitions { list: (0..TENANTS).map(tenant).collect(), ..Partitions::default() };
    let expectations = Expectations { partitions: Some(&partitions), ..Expectations::default() };
    bencher.bench_local(|| {
        let verdict = verify_routing(black_box(&fabric), &lids, &routing, &expectations);
        assert!(verdict.isolation.is_some_and(|isolation| isolation.breaches > 0));
    });
}

/// A level goes by another lane at one port, so that packets may change lanes.
#[divan::bench(sample_count = 3)]
fn tree_with_changing_lanes(bencher: Bencher<'_, '_>) {
    let (fabric, lids) = fabric(TREE);
    let mut routing = routing(&fabric, &lids, 8);
    let (leaf, _) = fabric.switches().next().expect("there is a switch");
    let place = (leaf, PortNum(1), PortNum(30));
    let mut row = LaneMap::default().everywhere;
    row.swap(0, 1);
    routing.lanes.exceptions.insert(place, row);
    bencher.bench_local(|| {
        let verdict = verify_routing(black_box(&fabric), &lids, &routing, &Expectations::default());
        assert!(verdict.is_deadlock_free());
    });
}

/// Where cycles are: every lane's shortest is looked for.
#[divan::bench(args = [1, 8], sample_count = 3)]
fn torus_with_cycles(bencher: Bencher<'_, '_>, lanes: u16) {
    let (fabric, lids) = fabric(TORUS);
    let routing = routing(&fabric, &lids, lanes);
    bencher.bench_local(|| {
        let verdict = verify_routing(black_box(&fabric), &lids, &routing, &Expectations::default());
        assert!(verdict.is_sound() && !verdict.is_deadlock_free());
    });
}

#[divan::bench(sample_count = 3)]
fn tree_in_transition(bencher: Bencher<'_, '_>) {
    let (fabric, lids) = fabric(TREE);
    let old = routing(&fabric, &lids, 1);
    let new = old.clone();
    bencher.bench_local(|| {
        let verdict = verify_transition(black_box(&fabric), &lids, &old, &new, 8);
        assert!(verdict.is_sound() && verdict.is_deadlock_free());
    });
}
