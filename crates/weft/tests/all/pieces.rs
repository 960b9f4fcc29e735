//! Fabrics of several pieces, which adapters and routers do not join, and where managers sit in them.
use std::time::{Duration, Instant};

use common::{Home, wait_until};
use serde_json::Value;

use crate::common;

const TWO_PLANES: &str = include_str!("../../../../topologies/two-planes.topo");
const ROUTER: &str = include_str!("../../../../topologies/router-node.topo");

/// An adapter that sees no link, as `ibnetdiscover` prints it.
const ALONE: &str = "vendid=0x2c9\ndevid=0x1021\nsysimgguid=0xb8e92403009ca838\ncaguid=0xb8e92403009ca838\n\
                     Ca\t1 \"H-b8e92403009ca838\"\t\t# \"host-a HCA-1\"\n";

fn home(text: &str) -> Home {
    let home = Home::new();
    home.write("x.topo", text);
    home
}

fn array(value: &Value) -> Vec<&str> {
    value.as_array().unwrap().iter().map(|text| text.as_str().unwrap()).collect()
}

#[test]
fn two_planes_are_two_pieces_and_one_manager_has_one() {
    let home = home(TWO_PLANES);
    let checked = home.json(&["topo", "check", "x.topo", "--json"]);
    assert_eq!((&checked["components"], &checked["hosts"]), (&2.into(), &4.into()));
    let sim = home.weft(&["sim", "x.topo"]);
    assert!(sim.succeeds().stdout.contains("1 switch, 4 hosts, 4 cables"), "{}", sim.stdout);
    let said = "no subnet manager in the piece of `plane-2`: 5 nodes (plane-2, ";
    assert!(sim.stdout.contains(said), "{}", sim.stdout);

    let up = home.weft(&["up", "x.topo"]);
    assert!(up.succeeds().stdout.contains("SUBNET UP") && up.stdout.contains(said), "{}", up.stdout);
    assert!(up.stdout.contains("piece of `plane-1`: sm at node01:1, 5 nodes"), "{}", up.stdout);
    let check = home.weft(&["check"]);
    assert!(check.succeeds().stdout.contains("packets: 12 sent"), "{}", check.stdout);
    assert!(
        check.stdout.contains("no subnet manager in the piece of `plane-2`: 5 nodes"),
        "{}",
        check.stdout
    );
    let trace = home.json(&["trace", "node02 mlx5_0", "node04 mlx5_0", "--json"]);
    assert_eq!(trace["hops"][0]["peer"], "plane-1", "{trace}");
    home.weft(&["trace", "plane-1", "plane-2"]).fails(1, "no switch or cable joins the pieces of");
    // What happens where no manager is, none has to sweep.
    home.weft(&["fault", "link-down", "node03 mlx5_0:2"]).succeeds();
    let check = home.weft(&["check"]);
    assert!(!check.succeeds().stdout.contains("a sweep is due"), "{}", check.stdout);
    // Where no manager is, nothing is up.
    home.weft(&["check", "--from", "node03 mlx5_0:2"]).fails(1, "");
}

#[test]
fn each_piece_can_have_a_manager_and_a_prefix() {
    let home = home(TWO_PLANES);
    let both = ["--sm-at", "node02 mlx5_0:1", "--sm-at", "node03 mlx5_0:2"];
    let sim = home.json(&[&["sim", "x.topo", "--json"], &both[..]].concat());
    let nodes = |up: &Value| (up["summary"]["switches"].clone(), up["summary"]["hosts"].clone());
    assert_eq!(sim.as_array().unwrap().iter().map(nodes).collect::<Vec<_>>(), vec![(1.into(), 4.into()); 2]);

    let up = home.weft(
        &[&["up", "x.topo", "--standby", "1", "--polling-ms", "500", "--polling-retries", "1"], &both[..]]
            .concat(),
    );
    assert!(!up.succeeds().stdout.contains("no subnet manager"), "{}", up.stdout);
    assert!(up.stdout.contains("piece of `plane-2`: sm-2 at node03:2, 5 nodes"), "{}", up.stdout);
    let check = home.json(&["check", "--json"]);
    let pieces = check["pieces"].as_array().unwrap();
    assert_eq!(pieces.iter().map(|piece| &piece["packets"]).collect::<Vec<_>>(), [12, 12]);
    assert_eq!((&check["ok"], &check["subnet_up"]), (&true.into(), &true.into()), "{check:#}");
    home.weft(&["sysfs", "--node", "node01 mlx5_0", "sys"]).succeeds();
    let class = home.base().with_file_name("sys").join("class/infiniband");
    let device = std::fs::read_dir(class).unwrap().next().unwrap().unwrap().path();
    for (port, prefix) in [(1, "fe80:0000:0000:0000:"), (2, "fe80:0000:0000:0001:")] {
        let gid = std::fs::read_to_string(device.join(format!("ports/{port}/gids/0"))).unwrap();
        assert!(gid.starts_with(prefix), "port {port}: {gid}");
    }
    // When the second piece's manager dies, its own standby takes over, and the first piece goes on.
    let mut events = home.events();
    home.weft(&["fault", "kill", "sm-2"]).succeeds();
    events.wait_for("a takeover", |event| event["event"] == "subnet-up" && event["source"] == "sm-4");
    let check = home.json(&["check", "--json"]);
    assert_eq!(check["ok"], true, "{check:#}");
    // A host that lost one plane is reached by the other.
    home.weft(&["fault", "link-down", "node01 mlx5_0:1"]).succeeds();
    events.wait_for("the link is down", |event| event["event"] == "link-down");
    let trace = home.json(&["trace", "node02 mlx5_0", "node01 mlx5_0", "--json"]);
    assert_eq!(trace["hops"][0]["peer"], "plane-2", "{trace}");
}

/// What the subnet managers are, and the prefixes of a host's two ports.
fn masters(home: &Home) -> Vec<(String, String)> {
    let status = home.json(&["status", "--json"]);
    let text = |manager: &Value, key: &str| manager[key].as_str().unwrap_or_default().to_owned();
    let managers = status["managers"].as_array().unwrap().iter();
    managers.map(|manager| (text(manager, "process"), text(manager, "state"))).collect()
}

fn prefixes(home: &Home) -> [String; 2] {
    home.weft(&["sysfs", "--node", "node04 mlx5_0", "sys"]).succeeds();
    let class = home.base().with_file_name("sys").join("class/infiniband");
    let device = std::fs::read_dir(class).unwrap().next().unwrap().unwrap().path();
    [1, 2].map(|port| {
        let gid = std::fs::read_to_string(device.join(format!("ports/{port}/gids/0"))).unwrap();
        gid[..19].to_owned()
    })
}

/// Each subnet's LIDs begin at 1, so where the two meet every LID is somebody else's too.
#[test]
fn planes_that_a_cable_joins_have_one_master_until_it_goes() {
    let home = home(TWO_PLANES);
    let seats = ["--sm-at", "node01 mlx5_0:1", "--sm-at", "node03 mlx5_0:2"];
    let polls = ["--polling-ms", "500", "--polling-retries", "1"];
    home.weft(&[&["up", "x.topo"], &seats[..], &polls[..]].concat()).succeeds();
    let named = |states: [&str; 2]| {
        let pair = |(name, state): (&str, &str)| (name.to_owned(), state.to_owned());
        vec![pair(("sm", states[0])), pair(("sm-2", states[1]))]
    };
    let (first, second) = ("fe80:0000:0000:0000", "fe80:0000:0000:0001");
    assert_eq!((masters(&home), prefixes(&home)), (named(["master"; 2]), [first, second].map(String::from)));

    home.weft(&["topo", "connect", "plane-1:5", "plane-2:5"]).succeeds();
    // IBA 14.4.1: of the same priority, the one with the lower port GUID.
    wait_until("one is the master", || masters(&home) == named(["master", "standby"]));
    wait_until("the master has the whole subnet", || home.weft(&["check"]).code == 0);
    let check = home.json(&["check", "--json"]);
    // Two switches and eight ports of hosts: no LID is there twice.
    assert_eq!((&check["lids"], &check["switches"]), (&10.into(), &2.into()), "{check:#}");
    assert!(array(&check["problems"]).is_empty() && check["subnet_up"] == true, "{check:#}");
    assert_eq!(prefixes(&home), [first, first]);

    home.weft(&["topo", "disconnect", "plane-1:5"]).succeeds();
    wait_until("each has its own", || masters(&home) == named(["master"; 2]));
    wait_until("both pieces are managed", || home.weft(&["check"]).code == 0);
    let check = home.json(&["check", "--json"]);
    let pieces = check["pieces"].as_array().unwrap();
    assert_eq!(pieces.iter().map(|piece| &piece["packets"]).collect::<Vec<_>>(), [12, 12], "{check:#}");
    assert_eq!(prefixes(&home), [first, second]);
}

#[test]
fn two_managers_of_one_piece_are_refused() {
    let home = home(TWO_PLANES);
    for verb in ["up", "sim"] {
        home.weft(&[verb, "x.topo", "--sm-at", "node02 mlx5_0", "--sm-at", "plane-1"])
            .fails(2, "node02:1 and plane-1:0 are in the same piece of the fabric");
        home.weft(&[verb, "x.topo", "--sm-at", "plane-1:3"]).fails(2, "sit at its port 0");
        home.weft(&[verb, "x.topo", "--sm-at", "node02 mlx5_0:3"]).fails(2, "ports with a cable: 1, 2");
        home.weft(&[verb, "x.topo", "--subnet-prefix", "0xff12000000000000"]).fails(2, "");
    }
    let twice = ["--sm-at", "node02 mlx5_0:1", "--sm-at", "node02 mlx5_0"];
    home.weft(&[&["up", "x.topo", "--sm", "opensm"], &twice[..]].concat()).fails(2, "names node02:1 twice");
}

#[test]
fn a_router_is_a_node_like_others() {
    let home = home(ROUTER);
    let up = home.weft(&["up", "x.topo", "--patience", "20"]);
    assert!(up.succeeds().stdout.contains("SUBNET UP after"), "{}", up.stdout);
    home.weft(&["check"]).succeeds();
    home.weft(&["trace", "a", "c"]).succeeds();
}

#[test]
fn a_host_without_a_cable_is_told_at_once() {
    let home = home(ALONE);
    for verb in [&["up", "x.topo"][..], &["sim", "x.topo"], &["plan", "x.topo", "--out", "bundle"]] {
        let begun = Instant::now();
        home.weft(verb).fails(2, "x.topo: no node has a cable");
        assert!(begun.elapsed() < Duration::from_secs(20), "it waited");
    }
    home.weft(&["up", "x.topo", "--lab=-x"]).fails(2, "not beginning with `.` or `-`");
    // Without a manager it is a laboratory.
    home.weft(&["up", "x.topo", "--sm", "none"]).succeeds();
}

#[test]
fn a_manager_does_not_sit_at_an_aggregation_node() {
    let text = ROUTER.replace("\"a\"", "\"Mellanox Technologies Aggregation Node\"");
    let home = home(&text);
    home.weft(&["plan", "x.topo", "--out", "bundle", "--pm"]).succeeds();
    let record = home.base().with_file_name("bundle").join("lab.json");
    let record: Value = serde_json::from_slice(&std::fs::read(record).unwrap()).unwrap();
    // The only host, and nothing else beside it.
    let host = 0x2c90000d00020_u64;
    assert_eq!(record["sm"]["node"], host, "{record:#}");
    assert_eq!(record["pms"][0]["node"], host, "{record:#}");
}

#[test]
fn each_piece_is_routed_and_verified_by_itself() {
    let home = home(TWO_PLANES);
    let computed = home.json(&["routes", "compute", "x.topo", "--dump", "out", "--json"]);
    let counts = |one: &Value| (one["piece"].clone(), one["hosts"].clone(), one["lids"].clone());
    let computed: Vec<_> = computed.as_array().unwrap().iter().map(counts).collect();
    assert_eq!(computed, [("plane-1".into(), 4.into(), 5.into()), ("plane-2".into(), 4.into(), 5.into())]);
    for (piece, other) in [("piece-1", "plane-2"), ("piece-2", "plane-1")] {
        let lids =
            std::fs::read_to_string(home.base().with_file_name("out").join(piece).join("guid2lid")).unwrap();
        assert!(lids.contains("0x0005 0x0005") && !lids.contains("0x0006"), "LIDs begin again: {lids}");
        let verified = home.weft(&["routes", "verify", "x.topo", &format!("out/{piece}")]);
        let said = format!("no tables for the piece of `{other}`");
        assert!(verified.succeeds().stderr.contains(&said), "{}", verified.stderr);
    }
    home.weft(&["routes", "compute", "x.topo", "--dot", "x.dot"]).succeeds();
    for (file, own, other) in [("x-1.dot", "0a00000", "0a00100"), ("x-2.dot", "0a00100", "0a00000")] {
        let graph = std::fs::read_to_string(home.base().with_file_name(file)).unwrap();
        assert!(graph.contains(own) && !graph.contains(other), "{file}: {graph}");
    }
    assert!(!home.base().with_file_name("x.dot").exists());
    home.write("weights", "6 2\n");
    home.weft(&["routes", "compute", "x.topo", "--vms", "1", "--vm-weights", "weights"])
        .fails(2, "--vm-weights names LIDs, and each of the 2 pieces of x.topo has its own");
    let both = ["routes", "compare", "x.topo", "--engines", "minhop", "--runs", "1", "--json"];
    let compared = home.json(&both);
    let pieces: Vec<&Value> = compared.as_array().unwrap().iter().map(|one| &one["piece"]).collect();
    assert_eq!(pieces, ["plane-1", "plane-2"]);
    // Four hosts at one switch: every pair has the whole bandwidth.
    assert_eq!(compared[1]["rows"][0]["bandwidth"]["mean"], 1.0, "{compared:#}");
    let compared = home.weft(&["routes", "compare", "x.topo", "--engines", "minhop,updn", "--runs", "1"]);
    assert!(compared.succeeds().stdout.contains("piece of `plane-2`:"), "{}", compared.stdout);
}

/// Where the manager's host is the one that lost its cable, the others are not the ones cut off.
#[test]
fn a_check_blames_the_smaller_side() {
    let home = Home::new();
    let file = home.small_tree();
    home.weft(&["up", common::text(&file), "--link-timeout-ms", "500"]).succeeds();
    let mut events = home.events();
    home.weft(&["fault", "link-down", "host-0:1"]).succeeds();
    events.wait_for("the link is down", |event| event["event"] == "link-down");
    let check = home.weft(&["check", "--json", "--wait", "0"]);
    check.fails(1, "");
    let report: Value = serde_json::from_str(&check.stdout).unwrap();
    let cut: Vec<&str> =
        array(&report["problems"]).into_iter().filter(|problem| problem.contains("cut off")).collect();
    assert_eq!(cut, ["host `host-0` is cut off, and the subnet manager with it"], "{report:#}");
    assert_eq!(report["hosts"], 3, "{report:#}");
    let check = home.weft(&["check", "--json", "--wait", "0", "--from", "host-0"]);
    let report: Value = serde_json::from_str(&check.stdout).unwrap();
    let cut = array(&report["problems"]).into_iter().filter(|problem| problem.contains("cut off")).count();
    assert_eq!((cut, report["attached_to"].as_str()), (3, Some("host-0")), "{report:#}");
}
