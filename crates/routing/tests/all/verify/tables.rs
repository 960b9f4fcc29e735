//! The verifier finds what is wrong with tables, and shows it.

use weft_routing::{ForwardingTable, LidError, Lids, Routes, TraceProblem, minhop, trace, verify};
use weft_topology::generate::{GenerateOptions, ring};
use weft_topology::{Fabric, PortRef, parse};
use weft_wire::{Lid, PortNum};

/// A ring of three switches, port 2 up and port 3 down, with a host each on port 1.
fn fabric() -> (Fabric, Lids, Routes) {
    let fabric = ring(3, 1, &GenerateOptions::default()).expect("the parameters are sound");
    let lids = Lids::in_guid_order(&fabric, 0).expect("there are enough LIDs");
    let routes = minhop(&fabric, &lids);
    (fabric, lids, routes)
}

fn host(fabric: &Fabric, number: u32) -> PortRef {
    PortRef::new(fabric.find(&format!("host-{number}")).expect("the host is there"), PortNum(1))
}

fn lid_of(fabric: &Fabric, lids: &Lids, number: u32) -> Lid {
    lids.of(host(fabric, number)).expect("it has a LID").base
}

fn set(fabric: &Fabric, routes: &mut Routes, switch: &str, lid: Lid, port: u8) {
    let index = fabric.find(switch).expect("the switch is there");
    routes.tables[index.index()].set(lid, PortNum(port));
}

fn problem(fabric: &Fabric, lids: &Lids, routes: &Routes, from: u32, to: Lid) -> (TraceProblem, String) {
    let error = trace(fabric, lids, routes, host(fabric, from), to).expect_err("it is broken");
    (error.problem, error.path.to_string())
}

#[test]
fn a_loop() {
    let (fabric, lids, mut routes) = fabric();
    let lid = lid_of(&fabric, &lids, 2);
    set(&fabric, &mut routes, "switch-0", lid, 2);
    set(&fabric, &mut routes, "switch-1", lid, 3);
    let report = verify(&fabric, &lids, &routes, &[]);
    assert_eq!((report.failures, report.is_sound()), (2, false));
    assert_eq!(report.counter_examples.len(), 2);
    let ids: Vec<&str> =
        ["switch-0", "switch-1"].map(|name| &*fabric.node(fabric.find(name).unwrap()).id).to_vec();
    let (a, b) = (ids[0], ids[1]);
    assert_eq!(
        report.counter_examples[0].to_string(),
        format!("from {a}[0] to LID {lid}: it goes round in a loop: {a}[2] -> [3]{b}[3] -> [2]{a}[2]")
    );
    assert_eq!(problem(&fabric, &lids, &routes, 0, lid).0, TraceProblem::Loop);
}

#[test]
fn a_missing_entry_breaks_all_that_comes_by() {
    let (fabric, lids, mut routes) = fabric();
    let lid = lid_of(&fabric, &lids, 2);
    set(&fabric, &mut routes, "switch-2", lid, 255);
    let report = verify(&fabric, &lids, &routes, &[]);
    assert_eq!(report.failures, 3);
    let (problem, path) = problem(&fabric, &lids, &routes, 0, lid);
    assert_eq!(problem, TraceProblem::NoRoute);
    assert!(path.ends_with("[no route]"), "{path}");
}

#[test]
fn a_port_without_a_cable_a_wrong_host_and_a_wrong_switch() {
    let (fabric, lids, routes) = fabric();
    let lid = lid_of(&fabric, &lids, 2);
    for (port, expected) in
        [(200, TraceProblem::NotCabled), (1, TraceProblem::WrongNode), (0, TraceProblem::WrongNode)]
    {
        let mut broken = routes.clone();
        set(&fabric, &mut broken, "switch-0", lid, port);
        assert_eq!(problem(&fabric, &lids, &broken, 0, lid).0, expected, "port {port}");
        let report = verify(&fabric, &lids, &broken, &[]);
        assert_eq!(report.failures, 1, "port {port}");
        assert_eq!(report.counter_examples[0].problem, expected);
    }
}

#[test]
fn a_detour_arrives_and_is_counted() {
    let (fabric, lids, mut routes) = fabric();
    let lid = lid_of(&fabric, &lids, 2);
    set(&fabric, &mut routes, "switch-0", lid, 2);
    let report = verify(&fabric, &lids, &routes, &[]);
    assert!(report.is_sound() && !report.is_minimal());
    assert_eq!((report.detours, report.hops.as_slice()), (1, &[6, 11, 1][..]));
}

#[test]
fn a_path_to_oneself_to_a_switch_and_to_nobody() {
    let (fabric, lids, routes) = fabric();
    let own = lid_of(&fabric, &lids, 0);
    let path = trace(&fabric, &lids, &routes, host(&fabric, 0), own).unwrap();
    assert_eq!((path.hops.len(), path.cables()), (1, 0));
    let switch = PortRef::new(fabric.find("switch-1").unwrap(), PortNum::ZERO);
    let lid = lids.of(switch).unwrap().base;
    let path = trace(&fabric, &lids, &routes, host(&fabric, 0), lid).unwrap();
    assert_eq!((path.cables(), path.hops.last().unwrap().node), (2, switch.node));
    assert_eq!(trace(&fabric, &lids, &routes, switch, lid).unwrap().cables(), 0);
    assert_eq!(problem(&fabric, &lids, &routes, 0, Lid(999)).0, TraceProblem::UnknownLid);
}

#[test]
fn a_source_without_a_cable() {
    let fabric = parse("lone", "Switch 2 \"a\"\n\nCa 1 \"lone\"\n").unwrap();
    let lids = Lids::in_guid_order(&fabric, 0).unwrap();
    let routes = minhop(&fabric, &lids);
    let from = PortRef::new(fabric.find("lone").unwrap(), PortNum(1));
    let error = trace(&fabric, &lids, &routes, from, Lid(1)).unwrap_err();
    assert_eq!(error.problem, TraceProblem::SourceNotCabled);
}

#[test]
fn counter_examples_are_bounded() {
    let (fabric, lids, mut routes) = fabric();
    for table in &mut routes.tables {
        *table = ForwardingTable::default();
    }
    let report = verify(&fabric, &lids, &routes, &[]);
    assert_eq!((report.failures, report.counter_examples.len()), (18, 16));
}

#[test]
fn lids_are_checked() {
    let (fabric, ..) = fabric();
    let port = host(&fabric, 0);
    let mut lids = Lids::new();
    assert_eq!(lids.insert(port, Lid(5), 1), Err(LidError::Misaligned { base: Lid(5), lmc: 1 }));
    assert_eq!(lids.insert(port, Lid(0), 0), Err(LidError::NotUnicast { base: Lid(0), lmc: 0 }));
    assert_eq!(lids.insert(port, Lid(0xc000), 0), Err(LidError::NotUnicast { base: Lid(0xc000), lmc: 0 }));
    assert_eq!(lids.insert(port, Lid(8), 8), Err(LidError::Lmc(8)));
    lids.insert(port, Lid(8), 2).unwrap();
    assert_eq!(lids.insert(host(&fabric, 1), Lid(10), 1), Err(LidError::Taken(Lid(10))));
    // Out of order is slower, not wrong.
    lids.insert(host(&fabric, 1), Lid(4), 1).unwrap();
    assert_eq!((lids.owner(Lid(5)), lids.owner(Lid(11))), (Some(host(&fabric, 1)), Some(port)));
    assert_eq!((lids.owner(Lid(6)), lids.top(), lids.len()), (None, Lid(11), 2));
    assert_eq!(lids.iter().map(|lids| lids.base).collect::<Vec<_>>(), [Lid(4), Lid(8)]);
    assert_eq!(Lids::in_guid_order(&fabric, 8), Err(LidError::Lmc(8)));
}

#[test]
fn a_table_is_made_of_blocks() {
    let mut table = ForwardingTable::new(Lid(100));
    assert_eq!((table.top(), table.block_count()), (Lid(100), 2));
    table.set(Lid(64), PortNum(7));
    assert_eq!(table.block(0), [PortNum::NONE; 64]);
    assert_eq!(
        (table.block(1)[0], table.block(1)[63], table.block(9)[0]),
        (PortNum(7), PortNum::NONE, PortNum::NONE)
    );
    let mut copy = ForwardingTable::default();
    for (number, block) in table.blocks() {
        copy.set_block(number, &block);
    }
    assert_eq!(copy.routes().collect::<Vec<_>>(), [(Lid(64), PortNum(7))]);
    assert_eq!(copy.port(Lid(0xbfff)), PortNum::NONE);
}
