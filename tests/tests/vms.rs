//! Virtual machines that move, as infiniband-diags see them, and under OpenSM, which knows nothing of moves.

#![allow(clippy::unwrap_used, reason = "in a test a panic is the report")]

use serde_json::Value;
use weft_judges::{Lab, OpenSm, described, output_of};
use weft_topology::generate::{GenerateOptions, xgft};
use weft_topology::{Fabric, Node};

fn tree() -> Fabric {
    xgft(&[2, 2], &[1, 2], &GenerateOptions::default()).unwrap()
}

/// The LID and the port GUID of the only virtual machine.
fn address(lab: &Lab) -> (u64, String) {
    let list: Value = serde_json::from_str(&output_of(&mut lab.weft(&["vm", "ls", "--json"]))).unwrap();
    let port = &list[0];
    (port["virtual_port_lid"].as_u64().unwrap(), port["virtual_port_guid"].as_str().unwrap().to_owned())
}

/// The descriptions of the path that `ibtracert` prints from a host to a LID.
fn path(lab: &Lab, from: &Node, to: u64) -> Vec<String> {
    let own = lab.says(from, "ibaddr -L").split_whitespace().nth(2).unwrap().to_owned();
    let printed = lab.says(from, &format!("ibtracert {own} {to}"));
    let steps = printed.lines().filter(|line| line.starts_with('[') || line.starts_with("From"));
    steps.filter_map(|line| Some(line.split('"').nth(1)?.trim().to_owned())).collect()
}

/// That a machine is behind a host's vSwitch, for ibtracert and for subnet administration.
fn is_at(lab: &Lab, from: &Node, host: &str) {
    let (lid, guid) = address(lab);
    let way = path(lab, from, lid);
    assert_eq!(way[way.len() - 2], format!("{host} vSwitch"), "{way:?}");
    let records = lab.says(from, &format!("saquery PIR {lid}"));
    assert!(records.contains(&format!("EndPortLid..............{lid}")), "{records}");
    let nodes = lab.says(from, &format!("saquery NR {lid}"));
    assert!(nodes.contains(&format!("port_guid...............0x{guid}")), "{nodes}");
}

#[test]
fn diags_follow_a_machine_that_moves_under_weft() {
    let fabric = tree();
    for lids in ["dynamic", "prepopulated"] {
        let lab = Lab::start(&fabric, &["--vfs", "1", "--lids", lids]);
        let from = described(&fabric, "host-1");
        output_of(&mut lab.weft(&["vm", "create", "web1", "--host", "host-0"]));
        output_of(&mut lab.weft(&["check", "--wait", "30"]));
        is_at(&lab, from, "host-0");
        let before = address(&lab);
        output_of(&mut lab.weft(&["vm", "migrate", "web1", "host-3"]));
        output_of(&mut lab.weft(&["check", "--wait", "30"]));
        is_at(&lab, from, "host-3");
        assert_eq!(address(&lab), before);
    }
}

/// Unplug, plug, trap, sweep: the machine keeps its GUID, and OpenSM gives a GUID the LID that it had.
#[test]
fn a_machine_moves_under_opensm() {
    let fabric = tree();
    let lab = Lab::start(&fabric, &["--no-sm", "--vfs", "1"]);
    let at = described(&fabric, "host-2");
    let _opensm = OpenSm::start(lab.command("opensm", at, &[]), lab.folder());
    output_of(&mut lab.weft(&["check"]));
    let created = output_of(&mut lab.weft(&["vm", "create", "web1", "--host", "host-0"]));
    assert!(created.contains(", LID "), "{created}");
    let before = address(&lab);
    let plan = lab.weft(&["vm", "plan", "web1", "host-3"]).output().unwrap();
    let refused = String::from_utf8(plan.stderr).unwrap();
    assert!(refused.contains("it does not know moves"), "{refused}");
    let moved = output_of(&mut lab.weft(&["vm", "migrate", "web1", "host-3", "--json"]));
    let moved: Value = serde_json::from_str(&moved).unwrap();
    assert_eq!((&moved["to"]["host"], &moved["counts"]), (&"host-3".into(), &Value::Null));
    assert!(moved["notes"][0].as_str().unwrap().contains("does not know moves"), "{moved}");
    let stages = moved["stages"].as_array().unwrap();
    assert!(stages.iter().any(|stage| stage["stage"] == "wait-for-lid"), "{moved}");
    // OpenSM sweeps once more for the identity that has come back: then packets find all.
    let is_up = || lab.weft(&["check"]).output().unwrap().status.success();
    assert!((0..200).any(|_| is_up()), "OpenSM does not bring the function up that is free now");
    is_at(&lab, described(&fabric, "host-1"), "host-3");
    assert_eq!(address(&lab), before);
}
