//! Managers of several pieces of a fabric: OpenSM, performance managers and VM managers.
use common::{Home, wait_until};
use serde_json::Value;

use crate::common;

const TWO_PLANES: &str = include_str!("../../../../topologies/two-planes.topo");

/// OpenSM ends what it waits for late; each has 20 s.
const OPENSM: [&str; 4] = ["--sm", "opensm", "--patience", "60"];

fn home() -> Home {
    let home = Home::new();
    home.write("x.topo", TWO_PLANES);
    home
}

fn up(home: &Home, options: &[&[&str]]) -> String {
    let up = home.weft(&[&["up", "x.topo"][..], &options.concat()].concat());
    up.succeeds();
    up.stdout
}

/// Whether a node's ports 1 and 2 have LIDs.
fn have_lids(home: &Home, node: &str) -> [bool; 2] {
    home.weft(&["sysfs", "--node", node, "sys"]).succeeds();
    let class = home.base().with_file_name("sys").join("class/infiniband");
    let device = std::fs::read_dir(class).unwrap().next().unwrap().unwrap().path();
    [1, 2].map(|port| {
        let lid = std::fs::read_to_string(device.join(format!("ports/{port}/lid"))).unwrap();
        lid.trim() != "0x0" && lid.trim() != "0"
    })
}

#[test]
fn opensm_manages_from_the_port_that_sm_at_names() {
    let home = home();
    let up = up(&home, &[&OPENSM, &["--sm-at", "node02 mlx5_0:2"]]);
    assert!(up.contains("piece of `plane-2`: opensm at node02:2, 5 nodes"), "{up}");
    assert!(up.contains("no subnet manager in the piece of `plane-1`"), "{up}");
    // Without the port's GUID OpenSM takes the first port with a link.
    assert_eq!(have_lids(&home, "node02 mlx5_0"), [false, true]);
    assert_eq!(have_lids(&home, "node04 mlx5_0"), [false, true]);
    home.weft(&["check", "--from", "node03 mlx5_0:2"]).succeeds();
}

#[test]
fn each_piece_can_have_an_opensm() {
    let home = home();
    let seats = ["--sm-at", "node01 mlx5_0:1", "--sm-at", "node01 mlx5_0:2"];
    let up = up(&home, &[&OPENSM, &seats]);
    assert!(up.contains("piece of `plane-2`: opensm-2 at node01:2, 5 nodes"), "{up}");
    assert!(!up.contains("no subnet manager"), "{up}");
    assert_eq!(have_lids(&home, "node04 mlx5_0"), [true, true]);
    let check = home.json(&["check", "--json"]);
    let pieces = check["pieces"].as_array().unwrap();
    assert_eq!(pieces.iter().map(|piece| &piece["packets"]).collect::<Vec<_>>(), [12, 12], "{check:#}");
    let status = home.weft(&["status"]);
    assert!(status.succeeds().stdout.contains("OpenSM opensm-2 runs at node01:2"), "{}", status.stdout);
    home.weft(&["fault", "kill", "opensm-2"]).succeeds();
    let status = home.weft(&["status"]);
    assert!(status.stdout.contains("start it with `weft fault restart opensm-2`"), "{}", status.stdout);
    home.weft(&["fault", "restart", "opensm-2"]).succeeds();
    let runs = || home.processes().iter().any(|(name, _)| name == "opensm-2");
    wait_until("it runs again", runs);
}

/// OpenSM elects one of its own, so that two of them are a master and a standby.
#[test]
fn a_second_opensm_of_a_piece_stands_by_and_takes_over() {
    let home = home();
    let seats = ["--sm-at", "node02 mlx5_0:1", "--sm-at", "node01 mlx5_0:1"];
    let polls = ["--polling-ms", "500", "--polling-retries", "1"];
    let up = up(&home, &[&OPENSM, &seats, &polls]);
    assert!(up.contains("piece of `plane-1`: opensm at node02:1, 5 nodes"), "{up}");
    let log = || std::fs::read_to_string(home.lab("default").join("logs/opensm-2")).unwrap_or_default();
    wait_until("the second one stands by", || log().contains("Entering STANDBY state"));
    home.weft(&["fault", "kill", "opensm"]).succeeds();
    wait_until("the second one is the master", || log().contains("Entering MASTER state"));
    wait_until("it has the subnet", || home.weft(&["check"]).code == 0);
}

#[test]
fn each_managed_piece_has_a_performance_manager() {
    let home = home();
    let seats = ["--sm-at", "node01 mlx5_0:1", "--sm-at", "node01 mlx5_0:2"];
    let pms = ["--pm", "--pm-interval", "100", "--pm-at", "node03 mlx5_0:2", "--metrics"];
    up(&home, &[&seats, &pms]);
    let mut last = Value::Null;
    wait_until("both sweep", || {
        last = home.json(&["status", "--json"])["pms"].clone();
        last.as_array().unwrap().iter().all(|pm| pm["sweeps"].as_u64().unwrap() >= 2)
    });
    let seen = |pm: &Value| (pm["process"].clone(), pm["nodes"].clone(), pm["ports"].clone());
    let seen: Vec<_> = last.as_array().unwrap().iter().map(seen).collect();
    // A switch and four hosts each, with a cable to every host.
    assert_eq!(seen, [("pm".into(), 5.into(), 8.into()), ("pm-2".into(), 5.into(), 8.into())]);
    let record = std::fs::read(home.lab("default").join("lab.json")).unwrap();
    let record: Value = serde_json::from_slice(&record).unwrap();
    assert_eq!(record["pms"][1]["node"], 0x2_c900_00b0_0020_u64, "{record:#}");
    let status = home.weft(&["status"]);
    assert!(status.succeeds().stdout.contains("performance manager pm-2: sweeping"), "{}", status.stdout);
    // One picture of all: each host is one, with a port in each piece.
    let top = home.json(&["top", "--json"]);
    assert_eq!((&top["nodes"], top["ports"].as_array().unwrap().len()), (&6.into(), 16), "{top:#}");
    let metrics = home.json(&["metrics", "--list", "--json"]).to_string();
    assert!(metrics.contains("\"pm-2\""), "{metrics}");
    home.weft(&["fault", "kill", "pm-2"]).succeeds();
    let top = home.json(&["top", "--json"]);
    assert_eq!((&top["running"], top["ports"].as_array().unwrap().len()), (&false.into(), 8), "{top:#}");
    let status = home.weft(&["status"]);
    assert!(status.succeeds().stdout.contains("performance manager pm-2: not running"), "{}", status.stdout);
}

#[test]
fn a_performance_manager_has_a_subnet_manager_in_its_piece() {
    let home = home();
    let at = ["plan", "x.topo", "--out", "bundle", "--pm", "--pm-at", "node03 mlx5_0:2"];
    home.weft(&at).fails(2, "no subnet manager is in the piece of node03:2");
    home.weft(&[&at[..], &["--sm-at", "plane-2", "--pm-at", "node01 mlx5_0:2"]].concat())
        .fails(2, "node03:2 and node01:2 are in the same piece of the fabric");
}

/// Four hosts with a function each in a plane, of which one is taken: the fourth machine goes to the other plane.
fn a_manager_with_room_is_asked(home: &Home) {
    for vm in ["a", "b", "c", "d"] {
        home.weft(&["vm", "create", vm]).succeeds();
    }
    let list = home.json(&["vm", "ls", "--json"]);
    let d = list.as_array().unwrap().iter().find(|vm| vm["vm"] == "d").unwrap_or_else(|| panic!("{list:#}"));
    assert!(d["system_name"].as_str().unwrap().ends_with("-p2"), "{list:#}");
    home.weft(&["vm", "create", "fleet", "--count", "3"])
        .fails(1, "virtual functions are free, and 3 are needed");
    for vm in ["a", "b", "c", "d"] {
        home.weft(&["vm", "destroy", vm]).succeeds();
    }
}

/// Machines of the other plane are listed and move while a manager is dead; where its own are, it is named.
fn a_dead_manager_stops_no_other(home: &Home) {
    home.weft(&["fault", "kill", "vmm-2"]).succeeds();
    home.weft(&["vm", "migrate", "web1", "node03 mlx5_0"]).succeeds();
    home.weft(&["vm", "migrate", "web2", "node03 mlx5_0"]).fails(1, "VM manager vmm-2 does not answer");
    let list = home.weft(&["vm", "ls"]);
    assert_eq!(list.code, 1, "{}", list.stderr);
    assert!(list.stdout.contains("web1") && !list.stdout.contains("web2"), "{}", list.stdout);
    assert!(list.stderr.contains("VM manager vmm-2 does not answer"), "{}", list.stderr);
    home.weft(&["fault", "restart", "vmm-2"]).succeeds();
    wait_until("it is back", || home.weft(&["vm", "ls"]).code == 0);
    home.weft(&["vm", "migrate", "web1", "node02 mlx5_0"]).succeeds();
}

/// Both ports of an adapter have virtual functions of their own, and each plane has a VM manager for its own.
#[test]
fn machines_move_within_their_plane() {
    let home = home();
    let seats = ["--sm-at", "node01 mlx5_0:1", "--sm-at", "node01 mlx5_0:2"];
    up(&home, &[&["--vfs", "1"], &seats]);
    let named = home.json(&["ps", "--json"]).to_string();
    for name in ["node02 p1 vf1", "node02 p2 vf1", "node02 p2 vSwitch", "vmm-2"] {
        assert!(named.contains(name), "{name}: {named}");
    }
    home.weft(&["vm", "create", "web1", "--host", "node02 mlx5_0"]).succeeds();
    home.weft(&["vm", "create", "web2", "--host", "node02 mlx5_0:2"]).succeeds();
    home.weft(&["vm", "create", "web1", "--host", "node03 mlx5_0:2"])
        .fails(1, "a virtual machine `web1` runs in another piece of the fabric");
    let hosts = || {
        let list = home.json(&["vm", "ls", "--json"]);
        let host = |vm: &Value| vm["system_name"].as_str().unwrap().to_owned();
        list.as_array().unwrap().iter().map(host).collect::<Vec<_>>()
    };
    assert_eq!(hosts(), ["node02-p1", "node02-p2"]);
    home.weft(&["vm", "migrate", "web1", "node03 mlx5_0:2"]).fails(2, "is in another piece of the fabric");
    // A host's name means its port in the machine's plane.
    home.weft(&["vm", "migrate", "web1", "node03 mlx5_0"]).succeeds();
    home.weft(&["vm", "migrate", "web2", "node04 mlx5_0"]).succeeds();
    assert_eq!(hosts(), ["node03-p1", "node04-p2"]);
    a_manager_with_room_is_asked(&home);
    let check = home.json(&["check", "--wait", "30", "--json"]);
    assert_eq!((&check["ok"], &check["subnet_up"]), (&true.into(), &true.into()), "{check:#}");
    assert_eq!(check["pieces"].as_array().unwrap().len(), 2, "{check:#}");
    let trace = home.json(&["trace", "vm:web2", "node01 mlx5_0", "--json"]);
    assert!(trace["hops"].to_string().contains("plane-2"), "{trace:#}");
    home.weft(&["topo", "disconnect", "node02 mlx5_0:2"]).fails(2, "is inside of a virtualised adapter");

    // A manager that begins again leaves the other one's machines to it, at the same agents.
    home.weft(&["fault", "restart", "vmm"]).succeeds();
    wait_until("it is back", || home.weft(&["vm", "migrate", "web1", "node02 mlx5_0"]).code == 0);
    home.weft(&["vm", "migrate", "web2", "node02 mlx5_0"]).succeeds();
    assert_eq!(hosts(), ["node02-p1", "node02-p2"]);
    a_dead_manager_stops_no_other(&home);
    assert_eq!(hosts(), ["node02-p1", "node02-p2"]);
    home.weft(&["vm", "destroy", "web2"]).succeeds();
    let status = home.weft(&["status"]);
    assert!(status.succeeds().stdout.contains("VM manager vmm-2: 0 virtual machines"), "{}", status.stdout);
    assert!(status.stdout.contains("VM manager: 1 virtual machine (1 running)"), "{}", status.stdout);
}

/// The planes become one subnet with one master; each VM manager goes on with the machines and hosts that it had.
#[test]
fn machines_move_on_where_a_cable_joins_planes() {
    let home = home();
    let polls = ["--polling-ms", "500", "--polling-retries", "1"];
    let seats = ["--sm-at", "node01 mlx5_0:1", "--sm-at", "node01 mlx5_0:2"];
    up(&home, &[&["--vfs", "1"], &polls[..], &seats]);
    home.weft(&["vm", "create", "web1", "--host", "node02 mlx5_0"]).succeeds();
    home.weft(&["vm", "create", "web2", "--host", "node02 mlx5_0:2"]).succeeds();
    home.weft(&["topo", "connect", "plane-1:5", "plane-2:5"]).succeeds();
    wait_until("one subnet", || home.weft(&["check"]).code == 0);
    home.weft(&["vm", "migrate", "web1", "node03 mlx5_0"]).succeeds();
    home.weft(&["vm", "migrate", "web2", "node04 mlx5_0:2"]).succeeds();
    let list = home.json(&["vm", "ls", "--json"]);
    let hosts = list.as_array().unwrap().iter().map(|vm| vm["system_name"].as_str().unwrap());
    assert_eq!(hosts.collect::<Vec<_>>(), ["node03-p1", "node04-p2"], "{list:#}");
    let check = home.json(&["check", "--wait", "30", "--json"]);
    assert_eq!((&check["ok"], &check["subnet_up"]), (&true.into(), &true.into()), "{check:#}");
    assert_eq!(check["switches"], 10, "two planes, and the vSwitches of both ports of four hosts: {check:#}");
}
