//! Virtual machines that move, as infiniband-diags see them, and under OpenSM, which knows nothing of moves.

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
    let waited =
        stages.iter().find(|stage| stage["stage"] == "wait-for-lid").unwrap_or_else(|| panic!("{moved}"));
    let (waited, downtime) = (waited["took_ns"].as_u64().unwrap(), moved["downtime_ns"].as_u64().unwrap());
    assert!(downtime > waited && waited > 0, "a machine without a LID is down: {moved}");
    // OpenSM sweeps once more for the identity that has come back: then packets find all.
    let is_up = || lab.weft(&["check"]).output().unwrap().status.success();
    assert!((0..200).any(|_| is_up()), "OpenSM does not bring the function up that is free now");
    is_at(&lab, described(&fabric, "host-1"), "host-3");
    assert_eq!(address(&lab), before);
}

/// With `--vf-qp0 deny` a virtual machine's tools get no SMP out and no error, and ask subnet
/// administration as ever; its port and all others answer the subnet manager and remote tools.
#[test]
fn a_vm_with_denied_qp0_can_only_query_the_sa() {
    let fabric = tree();
    for (what, is_open) in [("deny", false), ("allow", true)] {
        let lab = Lab::start(&fabric, &["--vfs", "1", "--lids", "dynamic", "--vf-qp0", what]);
        output_of(&mut lab.weft(&["vm", "create", "web1", "--host", "host-0"]));
        output_of(&mut lab.weft(&["check", "--wait", "30"]));
        let (lid, guid) = address(&lab);
        let at = |tool: &str| {
            let (program, arguments) = tool.split_once(' ').unwrap();
            let mut command = lab.weft(&["shell", "--at", "vm:web1", "--", program]);
            command.args(arguments.split(' ')).output().unwrap()
        };
        let inside = at(&format!("smpquery -t 200 nodeinfo {lid}"));
        assert_eq!(inside.status.success(), is_open, "{what}: {inside:?}");
        let saquery = at(&format!("saquery NR {lid}"));
        assert!(String::from_utf8(saquery.stdout).unwrap().contains(&guid), "{what}");
        let outside = lab.says(described(&fabric, "host-1"), &format!("smpquery nodeinfo {lid}"));
        assert!(outside.contains(&guid), "its own agent answers: {outside}");

        let agent = lab.agent_of(described(&fabric, "host-0").guid);
        let denied: f64 = lab
            .agents()
            .iter()
            .map(|(agent, _)| lab.ask(agent, &serde_json::json!({ "type": "metrics" })))
            .flat_map(|answer| {
                let text = answer["text"].as_str().unwrap().to_owned();
                let is_it = |line: &&str| {
                    line.starts_with("weft_agent_dropped_packets_total") && line.contains("qp0_denied")
                };
                let counts: Vec<f64> = text
                    .lines()
                    .filter(is_it)
                    .map(|line| line.rsplit(' ').next().unwrap().parse().unwrap())
                    .collect();
                counts
            })
            .sum();
        assert_eq!(denied > 0.0, !is_open, "{what}: {denied} dropped at {agent}");
        output_of(&mut lab.weft(&["vm", "migrate", "web1", "host-3"]));
        output_of(&mut lab.weft(&["check", "--wait", "30"]));
        let moved = at(&format!("smpquery -t 200 nodeinfo {lid}"));
        assert_eq!(moved.status.success(), is_open, "{what}, after a move: {moved:?}");
    }
}
