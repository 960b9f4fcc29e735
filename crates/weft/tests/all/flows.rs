//! Traffic on running laboratories: flows begin, are seen, survive what their queue pairs survive, and leave nothing behind.

use std::path::Path;

use common::{Home, Running, signal, text, wait_until};
use serde_json::Value;

use crate::common;

fn up(home: &Home, options: &[&str]) {
    let file = home.small_tree();
    let up: Vec<&str> = ["up", text(&file)].into_iter().chain(options.iter().copied()).collect();
    home.weft(&up).succeeds();
}

fn flows(home: &Home) -> Vec<Value> {
    home.json(&["flow", "ls", "--json"]).as_array().unwrap().clone()
}

fn flow(home: &Home, name: &str) -> Value {
    flows(home).into_iter().find(|flow| flow["name"] == name).unwrap_or_else(|| panic!("no flow {name}"))
}

fn delivered(flow: &Value) -> u64 {
    flow["receiver"]["bytes"].as_u64().unwrap_or(0)
}

/// Waits until a flow has brought more than it has now.
fn goes_on(home: &Home, name: &str) {
    let before = delivered(&flow(home, name));
    wait_until(&format!("{name} goes on"), || delivered(&flow(home, name)) > before);
}

/// What the fabric has counted as dropped, repeated or refused, with every LID: traffic that ends in order changes nothing of it.
fn standing(home: &Home) -> Vec<(String, Value)> {
    let mut all = Vec::new();
    for process in home.json(&["ps", "--json"]).as_array().unwrap() {
        let name = process["process"].as_str().unwrap();
        if !matches!(process["kind"].as_str(), Some("switch" | "hca")) {
            continue;
        }
        let ports = home.json(&["ask", name, "ports"]);
        for port in ports["ports"].as_array().unwrap() {
            let totals = &port["totals"];
            let counted = [
                "rcv_errors",
                "xmit_discards",
                "rcv_constraint_errors",
                "xmit_constraint_errors",
                "qp1_dropped",
            ];
            let counted: Vec<&Value> = counted.iter().map(|counter| &totals[counter]).collect();
            all.push((
                format!("{name} {}", port["end"]),
                serde_json::json!([port["lid"], port["state"], counted]),
            ));
        }
        let account = home.json(&["ask", name, "account"]);
        let lanes = account["devices"]
            .as_array()
            .unwrap()
            .iter()
            .flat_map(|device| device["lanes"].as_array().unwrap());
        let dropped: Vec<&Value> =
            lanes.map(|lane| &lane["dropped"]).filter(|dropped| **dropped != serde_json::json!({})).collect();
        all.push((format!("{name} drops"), serde_json::json!(dropped)));
    }
    all
}

/// No host is left behind an adapter.
fn no_host_is_left(home: &Home) {
    for host in ["host-0", "host-1", "host-2", "host-3"] {
        assert_eq!(home.json(&["ask", host, "flows"])["hosts"], serde_json::json!([]), "{host}");
    }
}

#[test]
fn flows_begin_are_seen_and_leave_nothing_behind() {
    let home = Home::new();
    up(&home, &[]);
    let before = standing(&home);
    home.weft(&["flow", "start", "host-0", "host-3", "--name", "web"]).succeeds();
    home.weft(&["flow", "start", "host-1", "host-2", "--ping-pong", "--size", "256", "--name", "ping"])
        .succeeds();
    home.weft(&["flow", "start", "host-3", "host-1", "--datagrams", "--bytes", "100000", "--name", "short"])
        .succeeds();
    goes_on(&home, "web");
    goes_on(&home, "ping");
    wait_until("the short one is done", || flow(&home, "short")["state"] == "done");
    let ping = flow(&home, "ping");
    assert!(ping["sender"]["latency"]["count"].as_u64().unwrap() > 0, "{ping}");
    // Where no rate is named it is bounded all the same.
    let web = flow(&home, "web");
    assert_eq!(
        (&web["shape"]["bytes_per_second"], &web["sender"]["service_level"]),
        (&4_000_000.into(), &0.into())
    );
    let table = home.weft(&["flow", "ls"]).stdout;
    assert!(table.contains("web") && table.contains("running") && table.contains("all is sent"), "{table}");
    let started = home.weft(&["events", "--kind", "flow-started"]).stdout;
    assert!(started.contains("flow web from host-0 to host-3"), "{started}");

    home.weft(&["flow", "stop", "web", "ping", "short"]).succeeds();
    assert_eq!(flows(&home), Vec::<Value>::new());
    no_host_is_left(&home);
    assert_eq!(standing(&home), before);
}

#[test]
fn bad_flows_are_refused_in_words() {
    let home = Home::new();
    up(&home, &[]);
    home.weft(&["flow", "start", "host-0", "host-3", "--name", "web"]).succeeds();
    for (arguments, code, says) in [
        (&["host-0", "host-0"][..], 2, "a flow cannot go from host-0 to itself"),
        (&["host-0", "nobody"], 2, "no node has the id, description or GUID `nobody`"),
        (&["host-0", "switch-1-0"], 2, "`switch-1-0` is a switch: flows go between hosts"),
        (&["host-0", "vm:w"], 2, "virtual machine `w` is in no slot"),
        (&["host-0", "host-3", "--name", "web"], 1, "a flow is called `web` already"),
        (&["host-0", "host-3", "--name", "<script>"], 2, "`<script>` cannot name a flow"),
        (&["host-0", "host-3", "--rate", "0"], 2, "a rate is a number of MB/s"),
        (&["host-0", "host-3", "--rate", "-1"], 2, "unexpected argument"),
        (&["host-0", "host-3", "--size", "0"], 2, "a message of 0 bytes is not possible"),
        (&["host-0", "host-3", "--packet", "6"], 2, "packets of 6 bytes are not possible"),
        (&["host-0", "host-3", "--bytes", "0"], 2, "a flow of 0 bytes is not possible"),
        (&["host-0", "host-3", "--for", "0s"], 2, "a flow of 0 ms is not possible"),
        (
            &["host-0", "host-3", "--datagrams", "--ping-pong"],
            1,
            "a message of a ping-pong of datagrams is one packet",
        ),
    ] {
        home.weft(&[&["flow", "start"], arguments].concat()).fails(code, says);
    }
    home.weft(&["flow", "stop", "other"]).fails(2, "no flow is called `other`");
    home.weft(&["flow", "stop", "--set", "other"]).fails(2, "no set of flows is called `other`");
    home.weft(&["flow", "stop"]).fails(2, "required");
    home.weft(&["traffic", "start", "ring", "--hosts", "host-0"]).fails(2, "so few hosts");
    home.weft(&["traffic", "start", "spiral"]).fails(2, "invalid value 'spiral'");
    // What was refused has left nothing, and the flow that there was goes on.
    assert_eq!(flows(&home).len(), 1);
    goes_on(&home, "web");
    // A dead host says so, before anything begins.
    home.weft(&["fault", "kill", "host-2"]).succeeds();
    home.weft(&["flow", "start", "host-2", "host-1"]).fails(1, "does not run");
    home.weft(&["flow", "start", "host-1", "host-2"]).fails(1, "does not run");
    assert_eq!(flows(&home).len(), 1);
    home.weft(&["down"]).succeeds();
}

#[test]
fn flows_outlive_the_hub_and_tell_why_they_ended() {
    let home = Home::new();
    up(&home, &[]);
    for (name, from, to) in [("stays", "host-1", "host-2"), ("breaks", "host-0", "host-3")] {
        home.weft(&["flow", "start", from, to, "--name", name]).succeeds();
    }
    let (_, hub) = home.processes().into_iter().find(|(name, _)| name == "hub").unwrap();
    signal(hub, rustix::process::Signal::KILL);
    wait_until("the hub has ended", || !common::runs(hub));
    home.weft(&["flow", "ls"]).fails(1, "the hub, which owns flows, does not answer");
    home.weft(&["hub", "--detached"]).succeeds();
    goes_on(&home, "stays");
    goes_on(&home, "breaks");

    home.weft(&["fault", "kill", "host-3"]).succeeds();
    wait_until("its flow has failed", || flow(&home, "breaks")["state"] == "failed");
    let reason = flow(&home, "breaks")["reason"].as_str().unwrap().to_owned();
    assert!(reason.contains("of host-3 has ended"), "{reason}");
    home.weft(&["fault", "restart", "host-3"]).succeeds();
    wait_until("it can be reached again", || {
        home.weft(&["flow", "start", "host-0", "host-3", "--name", "again"]).code == 0
    });
    goes_on(&home, "again");
    goes_on(&home, "stays");
    // A cable is what queue pairs survive.
    home.weft(&["fault", "link-down", "host-2:1"]).succeeds();
    home.weft(&["fault", "link-up", "host-2:1"]).succeeds();
    goes_on(&home, "stays");
    let ended = home.weft(&["events", "--kind", "flow-ended"]).stdout;
    assert!(ended.contains("flow breaks has failed: the agent"), "{ended}");
    home.weft(&["flow", "stop", "--all"]).succeeds();
    assert_eq!(flows(&home), Vec::<Value>::new());
}

#[test]
fn flows_follow_a_virtual_machine() {
    let home = Home::new();
    up(&home, &["--vfs", "2"]);
    home.weft(&["vm", "create", "web1", "--host", "host-0"]).succeeds();
    home.weft(&["flow", "start", "vm:web1", "host-3", "--name", "out"]).succeeds();
    home.weft(&["flow", "start", "host-1", "vm:web1", "--name", "in"]).succeeds();
    goes_on(&home, "out");
    goes_on(&home, "in");
    let place = |name, end| flow(&home, name)[end]["process"].clone();
    let before = place("out", "from");
    home.weft(&["vm", "migrate", "web1", "host-2"]).succeeds();
    wait_until("they are found where it is now", || {
        place("out", "from") != before && place("in", "to") == place("out", "from")
    });
    goes_on(&home, "out");
    goes_on(&home, "in");
    // They end with the machine, and are not with the next one of its name.
    home.weft(&["vm", "destroy", "web1"]).succeeds();
    home.weft(&["vm", "create", "web1", "--host", "host-1"]).succeeds();
    for name in ["out", "in"] {
        wait_until("it ends with its machine", || flow(&home, name)["state"] == "failed");
        assert_eq!(flow(&home, name)["reason"], "vm:web1 has ended");
    }
    home.weft(&["flow", "start", "vm:web1", "host-3", "--name", "next"]).succeeds();
    goes_on(&home, "next");
    home.weft(&["flow", "stop", "--all"]).succeeds();
    no_host_is_left(&home);
}

/// GUID and LID stay with functions: the sender looks the machine's name up after its acknowledgement timeout, and its flow goes on.
#[test]
fn flows_find_a_machine_that_has_another_guid() {
    let home = Home::new();
    let stay = ["--vfs", "2", "--lids", "dynamic", "--vm-lids-stay", "true"];
    up(&home, &[&stay[..], &["--vm-guids", "dynamic", "--notices", "none"]].concat());
    home.weft(&["vm", "create", "web1", "--host", "host-0"]).succeeds();
    home.weft(&["flow", "start", "host-1", "vm:web1", "--name", "in"]).succeeds();
    goes_on(&home, "in");
    let at = || flow(&home, "in")["to"]["at"]["node"].clone();
    let before = at();
    home.weft(&["vm", "plan", "web1", "host-3"]).fails(1, "GUID and LID stay with functions");
    home.weft(&["vm", "migrate", "web1", "host-3"]).succeeds();
    wait_until("it has the GUID of the function there", || at() != before);
    goes_on(&home, "in");
    assert!(home.weft(&["trace", "host-1", "vm:web1"]).stdout.contains("host-3 vSwitch"));
    home.weft(&["flow", "stop", "--all"]).succeeds();
}

#[test]
fn two_starts_at_once_with_one_name_begin_one_flow() {
    let home = Home::new();
    up(&home, &[]);
    let start = || Running::start(&home, &["flow", "start", "host-0", "host-3", "--name", "one"]);
    let codes: Vec<i32> = [start(), start(), start()].map(|running| running.done().code).into();
    assert_eq!(codes.iter().filter(|code| **code == 0).count(), 1, "{codes:?}");
    assert_eq!(flows(&home).len(), 1);
    // A laboratory goes down with its flows.
    home.weft(&["traffic", "start", "all-to-all", "--rate", "0.1"]).succeeds();
    home.weft(&["down"]).succeeds();
    assert!(home.is_empty());
}

/// Of every pair of hosts of a real cluster's fabric.
#[test]
fn every_pair_of_hosts_of_x5_has_a_flow() {
    let home = Home::new();
    let x5 = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../topologies/psmn-x5.topo");
    home.weft(&["up", text(&x5)]).succeeds();
    let lost = || home.weft(&["events", "--kind", "link-down,trap-received"]).stdout;
    let before = lost();
    // Few bytes: in a debug build two processors carry no more for 7832 flows.
    let little = ["--rate", "0.001", "--size", "2048"];
    home.weft(&[&["traffic", "start", "all-to-all", "--set", "pairs"][..], &little].concat()).succeeds();
    let hosts = 89;
    wait_until("every flow has brought something", || {
        let flows = flows(&home);
        assert_eq!(flows.len(), hosts * (hosts - 1));
        flows.iter().all(|flow| delivered(flow) > 0)
    });
    home.weft(&["flow", "stop", "--set", "pairs"]).succeeds();
    assert_eq!(flows(&home), Vec::<Value>::new());
    home.weft(&["check", "--wait", "0"]).succeeds();
    assert_eq!(lost(), before, "no link went down");
}
