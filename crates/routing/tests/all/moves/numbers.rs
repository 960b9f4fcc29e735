//! Numbers that the papers print, and those that follow from the shape of a tree.

use std::collections::BTreeSet;

use weft_routing::moves::{Kept, Method, Move, Planner, UpdateOrder};
use weft_routing::{EngineOptions, Lids, Routing};
use weft_topology::generate::{GenerateOptions, rlft, xgft};
use weft_topology::{Fabric, FabricBuilder, LinkRate, Node, NodeIndex, PortRef};
use weft_wire::{Guid, Lid, NodeType, PortNum};

use super::common::{Site, write};
use super::trees::{node, route};

fn tree(children: &[u32], parents: &[u32]) -> Fabric {
    xgft(children, parents, &GenerateOptions::default()).expect("the parameters are sound")
}

/// How many switches a move between two hosts marks.
fn marked(fabric: &Fabric, kept: &Kept, from: usize, to: usize) -> usize {
    let leaf = |host: usize| {
        let port = PortRef::new(node(fabric, &format!("host-{host}")), PortNum(1));
        fabric.peer(port).expect("it has a cable").node
    };
    let marked = kept.mark(leaf(from), leaf(to)).expect("it is a tree");
    assert_eq!(marked.iter().collect::<BTreeSet<_>>().len(), marked.len(), "each once");
    marked.len()
}

/// The cabling alone, with no tables.
fn kept(fabric: &Fabric) -> Kept {
    let (lids, routing) = (Lids::new(), Routing::default());
    Kept::new(fabric, &lids, &routing, &EngineOptions::default(), &[], &BTreeSet::new())
        .expect("no lanes differ")
}

#[test]
fn figure_3_takes_1_4_and_10_of_12_switches() {
    // Two pods of two leaves and two switches above, and four roots.
    let site = Site::new(tree(&[2, 2, 2], &[1, 2, 2]), "ftree", 2);
    assert_eq!(site.fabric.counts().switches, 12);
    for (to, expected) in [(1, 1), (2, 4), (3, 4), (4, 10), (7, 10)] {
        let (plan, proof) = site.prove(&[site.copy(1, 0, to)], Method::FtreeMinrc).expect("it is safe");
        assert_eq!(
            (plan.marked.len(), plan.physical, plan.smps.physical),
            (expected, expected as u32, expected as u32)
        );
        assert!(plan.fallbacks.is_empty() && proof.unproved_lanes == 0);
        let itrc = site.plan(&[site.copy(1, 0, to)], Method::Itrc);
        assert!(itrc.physical >= plan.physical);
    }
}

/// A machine starts on a host with the rows of its hypervisor, as LIDs are assigned when machines boot.
fn booted(fabric: Fabric, host: usize) -> (Site, Lid) {
    let mut site = Site::new(fabric, "ftree", 0);
    let lid = Lid(site.lids.top().0 + 1);
    let boot = Move::Boot { lid, to: site.host(host), of: site.lids_of(host)[0] };
    let plan = site.plan(&[boot], Method::Itrc);
    write(&mut site.routing.routes, &plan);
    site.lids.insert(site.host(host), lid, 0).expect("it is free");
    site.keep();
    (site, lid)
}

#[test]
fn figure_3_takes_1_switch_within_a_leaf_and_itrc_takes_6() {
    // VM3 moves from hypervisor 1 to hypervisor 2 of the same leaf: 6 of 12 by ItRC, as printed.
    let (site, lid) = booted(tree(&[2, 2, 2], &[1, 2, 2]), 0);
    let one = Move::Copy { lid, from: site.host(0), to: site.host(1), of: site.lids_of(1)[0] };
    let physical = |method| site.prove(&[one], method).expect("it is safe").0.physical;
    assert_eq!([Method::Itrc, Method::Skyline, Method::FtreeMinrc].map(physical), [6, 1, 1]);
}

#[test]
fn figure_5_marks_10_of_32_switches_and_5_are_active() {
    let (site, lid) = booted(tree(&[2, 2, 2, 2], &[1, 2, 2, 2]), 0);
    assert_eq!(site.fabric.counts().switches, 32);
    // The tuples 3.0.0.0 and 3.0.1.1 are those of switch-1-0 and switch-1-3.
    let leaf = |host| site.fabric.node(site.leaf(host)).description.clone();
    assert_eq!([leaf(0), leaf(6)], ["switch-1-0", "switch-1-3"]);
    let to = |host| Move::Copy { lid, from: site.host(0), to: site.host(host), of: site.lids_of(host)[0] };
    let active = |host| {
        let (plan, _) = site.prove(&[to(host)], Method::FtreeMinrc).expect("it is safe");
        assert_eq!((plan.marked.len(), plan.physical), (10, 10));
        for round in &plan.rounds {
            assert!(round.writes.is_sorted_by_key(|write| !write.is_active), "active ones first");
        }
        plan.writes().filter(|write| write.is_active).count()
    };
    // Each direction passes 5 switches by 4 links. Drawn is a pair whose directions take the same way, as the first hosts
    // of two leaves do here; two ways have the leaves in common, so that they pass 8 at most.
    assert_eq!(active(4), 5);
    assert!([6, 7].into_iter().all(|host| (5..=8).contains(&active(host))));
}

#[test]
fn table_4_takes_so_many_switches_across_and_in_a_pod() {
    // The paper writes the highest level first: XGFT(3; 8,4,4; 4,4,1) is this with children 4, 4, 8.
    let rows = [
        (tree(&[4, 8], &[1, 4]), 32, 12, 6, None),
        (tree(&[8, 8], &[1, 8]), 64, 16, 10, None),
        (tree(&[4, 4, 8], &[1, 4, 4]), 128, 80, 26, Some((4, 6))),
        (tree(&[16, 16], &[1, 16]), 256, 32, 18, None),
        (tree(&[8, 8, 8], &[1, 8, 8]), 512, 192, 82, Some((8, 10))),
        (tree(&[8, 8, 16], &[1, 8, 8]), 1024, 320, 82, Some((8, 10))),
    ];
    for (fabric, hosts, switches, across, pod) in rows {
        let counts = fabric.counts();
        assert_eq!((counts.hosts, counts.switches), (hosts, switches));
        let site = Site::new(fabric, "ftree", 1);
        let moves = [(hosts - 1, across)].into_iter().chain(pod).chain([(1, 1)]);
        for (to, expected) in moves {
            let (plan, _) = site.prove(&[site.copy(1, 0, to)], Method::FtreeMinrc).expect("it is safe");
            assert_eq!((plan.marked.len(), plan.physical as usize), (expected, expected), "{hosts} hosts");
            let skyline = site.plan(&[site.copy(1, 0, to)], Method::Skyline);
            assert_eq!(skyline.marked, plan.marked, "{hosts} hosts");
        }
    }
}

#[test]
fn trees_of_tables_2_and_3_write_1_20_or_362_switches() {
    let options = GenerateOptions::default();
    // By host moved to from host 0: the last hosts of the leaf and of each larger sub-tree.
    let rows = [
        (tree(&[18, 18], &[1, 18]), 36, &[(17, 1), (323, 20)][..]),
        (rlft(36, 2, &options).unwrap(), 54, &[(17, 1), (647, 20)]),
        (tree(&[18, 18, 18], &[1, 18, 18]), 972, &[(17, 1), (323, 20), (5831, 362)]),
        (rlft(36, 3, &options).unwrap(), 1620, &[(17, 1), (323, 20), (11_663, 362)]),
    ];
    for (fabric, switches, moves) in rows {
        check_marks(&fabric, switches, moves);
    }
}

#[test]
fn a_tree_of_four_levels_takes_1_14_170_or_2042() {
    let moves = [(11, 1), (143, 14), (1727, 170), (20_735, 2042)];
    check_marks(&tree(&[12; 4], &[1, 12, 12, 12]), 6912, &moves);
}

fn check_marks(fabric: &Fabric, switches: usize, moves: &[(usize, usize)]) {
    assert_eq!(fabric.counts().switches, switches);
    let kept = kept(fabric);
    for (to, expected) in moves {
        assert_eq!(marked(fabric, &kept, 0, *to), *expected, "{switches} switches");
        assert_eq!(marked(fabric, &kept, *to, 0), *expected, "{switches} switches");
    }
}

/// Three switches in a row, and the LIDs of the paper's figure: hypervisors 1 and 2 at the lower switch have LIDs 1 to 4 and 5
/// to 8, hypervisor 3 has `third` and those after it.
fn figure(third: u16) -> Site {
    let mut builder = FabricBuilder::new();
    let mut add = |kind, guid: u64, ports| {
        builder.add_node(Node::new(kind, Guid(guid), ports, LinkRate::default())).expect("a node")
    };
    let [lower, upper, right] = [1, 2, 3].map(|guid| add(NodeType::Switch, guid << 8, 4));
    let hosts = [11, 12, 13].map(|guid| add(NodeType::Hca, guid << 8, 1));
    let mut cable = |a: (NodeIndex, u8), b: (NodeIndex, u8)| {
        let [a, b] = [a, b].map(|(node, port)| PortRef::new(node, PortNum(port)));
        builder.connect(a, b).expect("free ports");
    };
    cable((upper, 2), (lower, 4));
    cable((upper, 4), (right, 4));
    cable((lower, 1), (hosts[0], 1));
    cable((lower, 2), (hosts[1], 1));
    cable((right, 1), (hosts[2], 1));
    let fabric = builder.build();
    let mut lids = Lids::new();
    for (host, first) in hosts.iter().zip([1, 5, third]) {
        for lid in first..first + 4 {
            lids.insert(PortRef::new(*host, PortNum(1)), Lid(lid), 0).expect("free");
        }
    }
    let routing = route("minhop", &fabric, &lids, &EngineOptions::default()).expect("it routes all");
    let idle = [6, third + 3].map(Lid).into();
    Site::of(fabric, lids, routing, idle)
}

/// A machine with LID 2 on hypervisor 1 moves to where another LID is.
fn swap_of_2(site: &Site, with: u16) -> Move {
    let [from, to] = [Lid(2), Lid(with)].map(|lid| site.lids.owner(lid).expect("it is in use"));
    Move::Swap { lid: Lid(2), from, to, with: Lid(with) }
}

#[test]
fn a_swap_takes_0_to_2_smps_at_a_switch_by_block_and_port() {
    let upper = |site: &Site| site.fabric.by_guid(Guid(2 << 8)).expect("the upper switch");
    // LIDs 2 and 12 are in block 0.
    let site = figure(9);
    let (plan, _) = site.prove(&[swap_of_2(&site, 12)], Method::Itrc).expect("it is safe");
    let to_upper: Vec<_> = plan.writes().filter(|write| write.switch == upper(&site)).collect();
    assert_eq!(to_upper.len(), 1);
    assert_eq!((to_upper[0].ports[2], to_upper[0].ports[12]), (PortNum(4), PortNum(2)), "as in figure 5");
    assert_eq!((plan.smps.physical, plan.smps.hypervisors), (3, 3));
    // From 64 on they are in two.
    let site = figure(64);
    let (plan, _) = site.prove(&[swap_of_2(&site, 67)], Method::Itrc).expect("it is safe");
    assert_eq!(plan.writes().filter(|write| write.switch == upper(&site)).count(), 2);
    assert_eq!((plan.smps.physical, plan.physical), (6, 3));
    // To hypervisor 2 the upper switch sends by the same port, so that the lower switch alone is written.
    let (plan, _) = site.prove(&[swap_of_2(&site, 6)], Method::Itrc).expect("it is safe");
    assert_eq!(plan.writes().filter(|write| write.switch == upper(&site)).count(), 0);
    assert_eq!((plan.smps.physical, plan.physical), (1, 1));
}

#[test]
fn a_boot_takes_one_smp_a_switch() {
    let mut site = Site::new(tree(&[4, 8], &[1, 4]), "ftree", 0);
    let lid = Lid(site.lids.top().0 + 20);
    let boot = Move::Boot { lid, to: site.host(5), of: site.lids_of(5)[0] };
    for method in [Method::Itrc, Method::FtreeMinrc, Method::Skyline] {
        let (plan, proof) = site.prove(&[boot], method).expect("it is safe");
        assert_eq!((plan.physical, plan.smps.physical, plan.smps.hypervisors), (12, 12, 2));
        assert_eq!(proof.lids, [lid]);
    }
    let plan = site.plan(&[boot], Method::Itrc);
    write(&mut site.routing.routes, &plan);
    site.lids.insert(site.host(5), lid, 0).expect("it is free");
    assert!(weft_routing::verify(&site.fabric, &site.lids, &site.routing.routes, &[]).is_minimal());
    let clear = Move::Clear { lid, from: site.host(5) };
    let (plan, _) = site.prove(&[clear], Method::FtreeMinrc).expect("it is safe");
    assert_eq!((plan.smps.physical, plan.smps.hypervisors), (12, 1));
    write(&mut site.routing.routes, &plan);
    assert!(site.fabric.switches().all(|(node, _)| site.routing.routes.port(node, lid) == PortNum::NONE));
}

#[test]
fn drop_first_costs_one_more_smp_at_each_written_switch() {
    let site = Site::new(tree(&[4, 4, 8], &[1, 4, 4]), "ftree", 1);
    for (to, switches) in [(1, 1), (4, 6), (127, 26)] {
        let plan =
            |order| site.planner().plan(&[site.copy(1, 0, to)], Method::FtreeMinrc, order).expect("a plan");
        let [ordered, dropping, at_once] =
            [UpdateOrder::Ordered, UpdateOrder::DropFirst, UpdateOrder::Unordered].map(plan);
        assert_eq!([ordered, at_once.clone()].map(|plan| plan.smps.physical), [switches; 2]);
        assert_eq!((dropping.physical, dropping.smps.physical), (switches, 2 * switches));
        assert_eq!((dropping.rounds.len(), at_once.rounds.len()), (2, 1));
    }
}

#[test]
fn a_full_rewrite_takes_all_blocks_and_a_swap_at_most_two() {
    // Table 2: 6 blocks and 216 SMPs, 11 and 594; at most 72 and 108 for a swap.
    let two =
        [(tree(&[18, 18], &[1, 18]), 216, 72), (rlft(36, 2, &GenerateOptions::default()).unwrap(), 594, 108)];
    for (fabric, full, most) in two {
        let site = Site::new(fabric, "vswitch-ftree", 0);
        let planner = Planner { fresh: Some(&site.routing.routes), ..site.planner() };
        let plan = planner.plan(&[], Method::Full, UpdateOrder::Ordered).expect("a plan");
        assert_eq!((plan.smps.physical, plan.order), (full, UpdateOrder::Unordered));
        assert_eq!(site.planner().prove(&plan).map(|proof| proof.lids.len()), Ok(0), "nothing changes");
        let hosts = site.fabric.counts().hosts;
        for to in [1, 17, hosts / 2, hosts - 1] {
            let swap = site.swap((0, 0), (to, 0));
            let plan = site.planner().plan(&[swap], Method::Itrc, UpdateOrder::Unordered).expect("a plan");
            assert!((1..=most).contains(&plan.smps.physical), "{} of {most}", plan.smps.physical);
        }
    }
}
