//! Fat-tree routing with a weight per virtual machine: the paper's example, its table of SMPs, and its weights.

use std::collections::BTreeMap;

use trees::{lid, node, path, route};
use weft_routing::{
    BLOCK_ENTRIES, EngineOptions, Expectations, Lids, Routing, WEIGHT_OF_A_HOST, verify_routing,
};
use weft_topology::generate::{Damage, GenerateOptions, degraded, rlft, xgft};
use weft_topology::{Fabric, PortRef};
use weft_wire::{Lid, PortNum};

use crate::trees;

fn plain() -> GenerateOptions {
    GenerateOptions::default()
}

/// LIDs for all ports in GUID order, then one for each virtual machine: `machines[n]` on host n.
fn with_machines(fabric: &Fabric, machines: &[usize]) -> (Lids, Vec<Lid>) {
    let mut lids = Lids::in_guid_order(fabric, 0).expect("there are enough LIDs");
    let mut all = Vec::new();
    for (host, count) in machines.iter().enumerate() {
        let port = PortRef::new(node(fabric, &format!("host-{host}")), PortNum(1));
        for _ in 0..*count {
            let lid = Lid(lids.top().0 + 1);
            lids.insert(port, lid, 0).expect("it is free");
            all.push(lid);
        }
    }
    (lids, all)
}

/// By root, from 1, the virtual machines that a leaf sends to by it, from 1.
fn by_root(fabric: &Fabric, routing: &Routing, leaf: &str, machines: &[Lid]) -> BTreeMap<u8, Vec<usize>> {
    let mut by_root: BTreeMap<u8, Vec<usize>> = BTreeMap::new();
    for (number, lid) in (1..).zip(machines) {
        let port = routing.routes.port(node(fabric, leaf), *lid).0;
        by_root.entry(port).or_default().push(number);
    }
    by_root
}

#[test]
fn the_phases_of_the_paper_s_figure_come_out() {
    // Figure 2: vSw1 has the machines 1 and 2, vSw2 3 and 4, vSw3 5 to 7, vSw4 has 8.
    let fabric = xgft(&[2, 2], &[1, 2], &plain()).unwrap();
    let (lids, machines) = with_machines(&fabric, &[2, 2, 3, 1]);
    let routing = route("vswitch-ftree", &fabric, &lids, &EngineOptions::default()).unwrap();
    // The ports 1 and 2 of a leaf are its hosts, 3 and 4 are R1 and R2.
    let to_l1 = by_root(&fabric, &routing, "switch-1-1", &machines[..4]);
    assert_eq!(to_l1, BTreeMap::from([(3, vec![1, 3]), (4, vec![2, 4])]));
    let to_l2 = by_root(&fabric, &routing, "switch-1-0", &machines[4..]);
    assert_eq!(to_l2, BTreeMap::from([(3, vec![4]), (4, vec![1, 2, 3])]), "8 by R1, 5 to 7 by R2");
    // The hosts' own LIDs are spread as if no machine ran.
    let plain = route("ftree", &fabric, &Lids::in_guid_order(&fabric, 0).unwrap(), &EngineOptions::default());
    let plain = plain.unwrap();
    for (_, switch) in fabric.switches() {
        let at = node(&fabric, &switch.description);
        for host in ["host-0", "host-1", "host-2", "host-3"] {
            let lid = lid(&fabric, &lids, host);
            assert_eq!(routing.routes.port(at, lid), plain.routes.port(at, lid), "{host}");
        }
    }
    // And every machine is reached from every host.
    for lid in &machines {
        for (index, _) in fabric.hosts() {
            assert!(path(&fabric, &lids, &routing.routes, PortRef::new(index, PortNum(1)), *lid).is_some());
        }
    }
}

#[test]
fn given_weights_count_instead_of_equal_shares() {
    let fabric = xgft(&[2, 2], &[1, 2], &plain()).unwrap();
    let (lids, machines) = with_machines(&fabric, &[3, 1, 0, 0]);
    // The machine alone on its host goes first; then one that weighs as much as the other two together.
    let vm_weights = BTreeMap::from([(machines[0], WEIGHT_OF_A_HOST / 2)]);
    let options = EngineOptions { vm_weights, ..EngineOptions::default() };
    let routing = route("vswitch-ftree", &fabric, &lids, &options).unwrap();
    let to_l1 = by_root(&fabric, &routing, "switch-1-1", &machines);
    assert_eq!(to_l1, BTreeMap::from([(3, vec![4]), (4, vec![1, 2, 3])]));
    // One that weighs a sixth leaves room: the others weigh five twelfths each.
    let vm_weights = BTreeMap::from([(machines[3], WEIGHT_OF_A_HOST / 6)]);
    let options = EngineOptions { vm_weights, ..EngineOptions::default() };
    let routing = route("vswitch-ftree", &fabric, &lids, &options).unwrap();
    let to_l1 = by_root(&fabric, &routing, "switch-1-1", &machines);
    assert_eq!(to_l1, BTreeMap::from([(3, vec![2, 4]), (4, vec![1, 3])]));
}

#[test]
fn weights_out_of_range_are_errors() {
    let fabric = xgft(&[2, 2], &[1, 2], &plain()).unwrap();
    let (lids, machines) = with_machines(&fabric, &[2, 0, 0, 0]);
    let error = |weights: &[(Lid, u32)]| {
        let vm_weights = weights.iter().copied().collect();
        let options = EngineOptions { vm_weights, ..EngineOptions::default() };
        route("vswitch-ftree", &fabric, &lids, &options).unwrap_err().to_string()
    };
    let first = machines[0];
    assert_eq!(
        error(&[(first, 5041)]),
        format!("vswitch-ftree: the weight of LID {first} must be 1 to 5040, not 5041")
    );
    assert_eq!(
        error(&[(first, 0)]),
        format!("vswitch-ftree: the weight of LID {first} must be 1 to 5040, not 0")
    );
    let both = error(&[(first, 3000), (machines[1], 3000)]);
    let id = &fabric.node(node(&fabric, "host-0")).id;
    assert_eq!(
        both,
        format!("vswitch-ftree: the virtual machines of {id}[1] weigh 6000 together, more than 5040")
    );
    let own = lid(&fabric, &lids, "host-1");
    let id = &fabric.node(node(&fabric, "host-1")).id;
    assert_eq!(
        error(&[(own, 7)]),
        format!(
            "vswitch-ftree: LID {own} has a weight, but it is no virtual machine's; it belongs to {id}[1]"
        )
    );
}

/// Blocks per switch, and SMPs that write all tables, from the tables themselves.
fn smps(fabric: &Fabric, lids: &Lids) -> (usize, usize) {
    let routing = route("vswitch-ftree", fabric, lids, &EngineOptions::default()).expect("it is a tree");
    let table = |index| routing.routes.table(index).expect("it is a switch");
    let blocks: Vec<usize> =
        fabric.switches().map(|(index, _)| usize::from(table(index).block_count())).collect();
    assert!(blocks.iter().all(|count| *count == blocks[0]));
    (blocks[0], blocks.iter().sum())
}

#[test]
fn table_2_of_the_paper_comes_out() {
    let three = |levels: [u32; 3]| xgft(&levels, &[1, 18, 18], &plain()).unwrap();
    let two = |levels: [u32; 2]| xgft(&levels, &[1, 18], &plain()).unwrap();
    let rows = [
        (two([18, 18]), 324, 36, 360, 6, 216),
        (two([18, 36]), 648, 54, 702, 11, 594),
        (three([18, 18, 18]), 5832, 972, 6804, 107, 104_004),
        (rlft(36, 3, &plain()).unwrap(), 11_664, 1620, 13_284, 208, 336_960),
    ];
    for (fabric, hosts, switches, lid_count, blocks, all) in rows {
        let counts = fabric.counts();
        assert_eq!((counts.hosts, counts.switches), (hosts, switches));
        let lids = Lids::in_guid_order(&fabric, 0).unwrap();
        assert_eq!((lids.len(), usize::from(lids.top().0)), (lid_count, lid_count));
        assert_eq!(smps(&fabric, &lids), (blocks, all));
    }
}

#[test]
fn one_host_at_the_highest_lid_makes_tables_longest() {
    let fabric = xgft(&[18, 18], &[1, 18], &plain()).unwrap();
    let mut lids = Lids::new();
    let ports = Lids::in_guid_order(&fabric, 0).unwrap();
    let last = ports.iter().last().unwrap().port;
    for entry in ports.iter() {
        let lid = if entry.port == last { Lid(49_151) } else { entry.base };
        lids.insert(entry.port, lid, 0).unwrap();
    }
    assert_eq!(smps(&fabric, &lids), (768, 768 * 36));
    assert_eq!(usize::from(Lid::UNICAST_MAX.0) / BLOCK_ENTRIES + 1, 768);
}

#[test]
fn machines_on_broken_trees_are_reached_without_deadlock() {
    let whole = rlft(6, 3, &plain()).unwrap();
    for seed in 0..12 {
        let fabric = degraded(&whole, Damage { cables: 8, switches: 1 }, seed).unwrap();
        let machines: Vec<usize> = (0..54).map(|host| (host * 7 + seed as usize) % 4).collect();
        assert_eq!(fabric.hosts().count(), 54, "only cables and switches are lost");
        let (lids, machines) = with_machines(&fabric, &machines);
        let routing = match route("vswitch-ftree", &fabric, &lids, &EngineOptions::default()) {
            Ok(routing) => routing,
            Err(refusal) => panic!("seed {seed}: {refusal}"),
        };
        let verdict = verify_routing(&fabric, &lids, &routing, &Expectations::default());
        assert!(verdict.is_deadlock_free(), "seed {seed}: {verdict}");
        let pieces = fabric.pieces();
        for lid in machines {
            let owner = lids.owner(lid).unwrap();
            let there = fabric.peer(owner).is_some();
            for (from, _) in fabric.hosts().filter(|(from, _)| pieces.shared(*from, owner.node).is_some()) {
                let arrives =
                    path(&fabric, &lids, &routing.routes, PortRef::new(from, PortNum(1)), lid).is_some();
                assert!(arrives || !there, "seed {seed}: {lid}");
            }
        }
    }
}
