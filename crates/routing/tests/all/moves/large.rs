//! The largest trees of the papers' tables: moves across them, planned and proved, and the SMPs of table 2.

use std::collections::BTreeSet;

use weft_routing::moves::{Kept, LatePolicy, Method, Move, Planner, UpdateOrder};
use weft_routing::{BLOCK_ENTRIES, EngineOptions, Lids, Routing};
use weft_topology::generate::{GenerateOptions, xgft};
use weft_topology::{Fabric, PortRef};
use weft_wire::{Lid, PortNum};

use super::common::Site;
use super::trees::{node, route};

fn tree(children: &[u32], parents: &[u32]) -> Fabric {
    xgft(children, parents, &GenerateOptions::default()).expect("the parameters are sound")
}

/// The switches that have just one of two leaves below them in a sub-tree of `levels`, or are its tops: one at each end, and
/// `up` times as many at every level above; the tops have both.
fn skyline(up: usize, levels: u32) -> usize {
    let below: usize = (0..levels - 1).map(|level| 2 * up.pow(level)).sum();
    below + up.pow(levels - 1)
}

/// A machine with a LID of its own on host 0; no other host has one.
fn with_a_machine(fabric: Fabric) -> (Site, Lid) {
    let mut lids = Lids::in_guid_order(&fabric, 0).expect("there are enough LIDs");
    let lid = Lid(lids.top().0 + 1);
    let host = PortRef::new(node(&fabric, "host-0"), PortNum(1));
    lids.insert(host, lid, 0).expect("it is free");
    let routing = route("ftree", &fabric, &lids, &EngineOptions::default()).expect("it is a tree");
    (Site::of(fabric, lids, routing, BTreeSet::new()), lid)
}

/// Children and parents by level, hosts, switches.
type Tree = (&'static [u32], &'static [u32], usize, usize);

/// Within the leaf, within each larger sub-tree, and across: what FTreeMinRC marks is what it writes, `skyline` finds the same without
/// the tree's shape, and ItRC writes no fewer. All is proved. `WEFT_TREES` says how many trees (2 if not said; `cargo xtask long`
/// takes all four).
#[test]
fn proved_moves_on_trees_to_20_736_hosts_write_the_skyline() {
    let trees: [Tree; 4] = [
        (&[18, 18], &[1, 18], 324, 36),
        (&[18, 18, 18], &[1, 18, 18], 5832, 972),
        (&[18, 18, 36], &[1, 18, 18], 11_664, 1620),
        (&[12, 12, 12, 12], &[1, 12, 12, 12], 20_736, 6912),
    ];
    trees.into_iter().take(count(2)).for_each(check_moves);
}

/// How many of the trees, the smaller ones first.
fn count(usual: usize) -> usize {
    std::env::var("WEFT_TREES").map_or(usual, |text| text.parse().expect("WEFT_TREES is a number"))
}

fn check_moves((children, parents, hosts, switches): Tree) {
    let fabric = tree(children, parents);
    let counts = fabric.counts();
    assert_eq!((counts.hosts, counts.switches), (hosts, switches));
    let (site, lid) = with_a_machine(fabric);
    let mut below = 1;
    for (levels, children) in (1..).zip(children) {
        below *= *children as usize;
        let to = below - 1;
        let one = Move::Copy { lid, from: site.host(0), to: site.host(to), of: site.lids_of(to)[0] };
        let wanted = skyline(*parents.last().expect("levels") as usize, levels);
        let mut marked = Vec::new();
        for method in [Method::FtreeMinrc, Method::Skyline, Method::Itrc] {
            let (plan, proof) = site.prove(&[one], method).expect("it is safe");
            assert_eq!((proof.lids, proof.unproved_lanes), (vec![lid], 0), "{hosts} hosts to {to}");
            assert_eq!((plan.method, plan.order), (method, UpdateOrder::Ordered), "{hosts} hosts to {to}");
            assert!(plan.fallbacks.is_empty(), "{hosts} hosts to {to}: {:?}", plan.fallbacks);
            assert!(plan.rounds.len() <= 2 * parents.len() + 1, "{hosts} hosts to {to}");
            assert_eq!(plan.smps.physical, plan.physical, "one LID is in one block");
            assert!(method == Method::Itrc || plan.physical as usize == wanted, "{hosts} hosts to {to}");
            assert!(plan.physical as usize >= wanted, "{hosts} hosts to {to}");
            marked.push(plan.marked);
        }
        assert_eq!((marked[0].len(), &marked[0]), (wanted, &marked[1]), "{hosts} hosts to {to}");
        assert!(marked[0].iter().all(|switch| marked[2].contains(switch)), "ItRC contains it");
    }
}

/// The rows of table 2 that are too large to simulate each time; `weft-sim` has agents receive the first one in the long tier. A full
/// reconfiguration is what a planner writes over empty tables, with dynamic LIDs, vSwitches on the LIDs of their physical functions and no
/// machine; the greatest swap is of two prepopulated LIDs in different blocks, for which all switches send by different ports. The second row
/// is for `WEFT_TREES` of 2 and more.
#[test]
fn table_2_large_trees_take_the_papers_numbers_of_smps() {
    let rows: [(Tree, u16, u32, u32); 2] = [
        ((&[18, 18, 18], &[1, 18, 18], 5832, 972), 107, 104_004, 1944),
        ((&[18, 18, 36], &[1, 18, 18], 11_664, 1620), 208, 336_960, 3240),
    ];
    for ((children, parents, hosts, switches), blocks, full, most) in rows.into_iter().take(count(1)) {
        let fabric = tree(children, parents);
        let counts = fabric.counts();
        assert_eq!((counts.hosts, counts.switches), (hosts, switches));
        assert_eq!(full_reconfiguration(&fabric), (blocks, full), "{hosts} hosts");
        assert_eq!(greatest_swap(&fabric), (most, switches as u32), "{hosts} hosts");
    }
}

/// The blocks of each switch, and the SMPs of all.
fn full_reconfiguration(fabric: &Fabric) -> (u16, u32) {
    let options = EngineOptions::default();
    let lids = Lids::in_guid_order(fabric, 0).expect("there are enough LIDs");
    let fresh = route("ftree", fabric, &lids, &options).expect("it is a tree");
    let empty = Routing::default();
    let kept = Kept::new(fabric, &Lids::new(), &empty, &options, &[], &BTreeSet::new());
    let kept = kept.expect("one lane");
    let planner = Planner {
        kept: &kept,
        fabric,
        lids: &lids,
        routing: &empty,
        fresh: Some(&fresh.routes),
        late: LatePolicy::default(),
    };
    let plan = planner.plan(&[], Method::Full, UpdateOrder::Unordered).expect("there are fresh tables");
    let last = plan.writes().map(|write| write.block).max().expect("there are writes");
    (last + 1, plan.smps.physical)
}

/// The SMPs of a swap that is as great as can be, and the switches that are written.
fn greatest_swap(fabric: &Fabric) -> (u32, u32) {
    let options = EngineOptions::default();
    let mut lids = Lids::in_guid_order(fabric, 0).expect("there are enough LIDs");
    let first = lids.top().0 + 1;
    lids.add_virtual(fabric, 1).expect("there are enough LIDs");
    let routing = route("ftree", fabric, &lids, &options).expect("it is a tree");
    let functions: Vec<(Lid, PortRef)> =
        (first..=lids.top().0).map(|lid| (Lid(lid), lids.owner(Lid(lid)).expect("a host's"))).collect();
    assert_eq!(functions.len(), fabric.counts().hosts);
    let (lid, from) = functions[4];
    let block = |lid: Lid| usize::from(lid.0) / BLOCK_ENTRIES;
    let differ = |with: Lid| {
        fabric.switches().all(|(node, _)| routing.routes.port(node, lid) != routing.routes.port(node, with))
    };
    let worst = functions.iter().find(|(with, _)| block(*with) != block(lid) && differ(*with));
    let (with, to) = *worst.expect("there are hosts to which all switches send by other ports");
    // The swap is planned and counted, not proved: what waits for what by all other rows is of no matter here.
    let mut two = Lids::new();
    two.insert(from, lid, 0).expect("it is free");
    two.insert(to, with, 0).expect("it is free");
    let empty = Routing::default();
    let kept = Kept::new(fabric, &two, &empty, &options, &[], &BTreeSet::new()).expect("one lane");
    let planner = Planner {
        kept: &kept,
        fabric,
        lids: &lids,
        routing: &routing,
        fresh: None,
        late: LatePolicy::default(),
    };
    let swap = Move::Swap { lid, from, to, with };
    let plan = planner.plan(&[swap], Method::Itrc, UpdateOrder::Unordered).expect("there is a plan");
    (plan.smps.physical, plan.physical)
}
