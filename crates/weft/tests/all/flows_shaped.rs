//! Flows on laboratories whose cables take time, and paths of flows.

use std::path::{Path, PathBuf};

use common::{Home, text, wait_until};
use serde_json::Value;

use crate::common;

fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(name)
}

/// A flow's row of `flow ls`, cut into words.
fn row(home: &Home, name: &str) -> Vec<String> {
    let table = home.weft(&["flow", "ls"]).succeeds().stdout.clone();
    let row = table.lines().find(|line| line.split_whitespace().next() == Some(name));
    row.unwrap_or_else(|| panic!("{name}: {table}")).split_whitespace().map(str::to_owned).collect()
}

fn rate(home: &Home, name: &str) -> f64 {
    row(home, name)[4].parse().unwrap()
}

/// dFtree's experiment I, before the cure: the shares that `weft run` finds, and its file has as closed forms.
#[test]
fn flows_of_a_shaped_laboratory_get_the_shares_of_weft_run() {
    let home = Home::new();
    let (topology, rates) = (file("topologies/dftree-1.topo"), file("experiments/dftree-1.toml"));
    home.weft(&["up", text(&topology), "--rates", text(&rates), "--engine", "ftree", "--sm-at", "host-4"])
        .succeeds();
    home.weft(&["flow", "start", "host-2", "host-3", "--name", "2-3"]).succeeds();
    wait_until("alone it has the host's limit", || (12.3..13.5).contains(&rate(&home, "2-3")));
    for [from, to] in [["1", "5"], ["3", "5"], ["6", "5"]] {
        let [host, other] = [format!("host-{from}"), format!("host-{to}")];
        home.weft(&["flow", "start", &host, &other, "--name", &format!("{from}-{to}")]).succeeds();
    }
    for (name, share) in [("2-3", 3.23), ("1-5", 3.23), ("3-5", 3.23), ("6-5", 6.45)] {
        let is_near = || (rate(&home, name) / share - 1.0_f64).abs() < 0.1;
        wait_until(&format!("{name} has {share} Gb/s"), is_near);
    }
    let table = home.weft(&["flow", "ls"]).stdout;
    assert!(table.contains("Gb/s") && table.contains("fabric time, which is 1000 times slower"), "{table}");
    // The victim waits behind a contributor on the cable that both use.
    let shown = home.json(&["flow", "show", "2-3", "--json"]);
    let hops = shown["path"]["hops"].as_array().unwrap();
    let shared = hops.iter().find(|hop| hop["shared_with"] == serde_json::json!(["1-5"]));
    let shared = shared.unwrap_or_else(|| panic!("{shown}"));
    assert!(shared["wait"].as_f64().unwrap() > 0.1 && shared["rate"].as_f64().unwrap() > 4.0, "{shared}");
    home.weft(&["flow", "stop", "--all"]).succeeds();
    home.weft(&["traffic", "start", "--mix", text(&rates), "--set", "dftree"]).succeeds();
    let flows = home.json(&["flow", "ls", "--json"]);
    let names: Vec<&str> =
        flows.as_array().unwrap().iter().map(|flow| flow["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["dftree-1-5", "dftree-2-3", "dftree-3-5", "dftree-6-5"]);
    home.weft(&["flow", "stop", "--set", "dftree"]).succeeds();
    home.weft(&["traffic", "start", "--mix", text(&rates), "--set", "slow", "--rate", "2"]).succeeds();
    for name in ["slow-1-5", "slow-2-3", "slow-3-5", "slow-6-5"] {
        wait_until(&format!("{name} has 2 Gb/s"), || (1.8..2.2).contains(&rate(&home, name)));
    }
    home.weft(&["flow", "stop", "--set", "slow"]).succeeds();
    home.weft(&["traffic", "start", "--mix", "none.toml"]).fails(2, "cannot read none.toml");
    home.weft(&["traffic", "start"]).fails(2, "required");

    home.weft(&["flow", "start", "host-2", "host-3", "--rate", "5", "--name", "five"]).succeeds();
    wait_until("it has its rate", || (4.7..5.3).contains(&rate(&home, "five")));
    // A rate above what cable and host carry is what these carry.
    home.weft(&["flow", "start", "host-6", "host-5", "--rate", "400", "--name", "fast"]).succeeds();
    wait_until("it has the host's limit", || (12.3..13.5).contains(&rate(&home, "fast")));
}

#[test]
fn wrong_rates_are_refused_with_the_keys() {
    let home = Home::new();
    let tree = home.small_tree();
    home.write("no.toml", "title = 3\n");
    for (rates, says) in [
        ("dilatoin=1000", "did you mean `dilation`?"),
        ("dilation=0", "--rates: `dilation`"),
        ("lanes=15", "leave none for management"),
        ("missing.toml", "cannot read missing.toml"),
        ("no.toml", "no.toml:1:"),
        ("shaped=false", "nothing to shape"),
    ] {
        home.weft(&["up", text(&tree), "--rates", rates]).fails(2, says);
        home.weft(&["plan", text(&tree), "--out", "x", "--rates", rates]).fails(2, says);
    }
    home.weft(&["up", text(&tree), "--rates", "lanes=2", "--max-op-vls", "4"])
        .fails(2, "cannot be used with");
    assert!(home.is_empty());
    // A bundle keeps its rates.
    home.weft(&["plan", text(&tree), "--out", "x", "--rates", "dilation=100,lanes=2"]).succeeds();
    let record: Value =
        serde_json::from_str(&std::fs::read_to_string(home.folder().join("x/lab.json")).unwrap()).unwrap();
    assert_eq!(record["dilation"], 100);
}

#[test]
fn a_flow_shows_its_path_and_who_shares_it() {
    let home = Home::new();
    let tree = home.small_tree();
    home.weft(&["up", text(&tree)]).succeeds();
    for (name, from) in [("web", "host-0"), ("other", "host-1")] {
        home.weft(&["flow", "start", from, "host-3", "--name", name]).succeeds();
    }
    home.weft(&["flow", "start", "host-2", "host-3", "--ping-pong", "--size", "256", "--name", "ping"])
        .succeeds();
    let shown = || home.json(&["flow", "show", "web", "--json"]);
    wait_until("messages are timed", || shown()["flow"]["sender"]["messages"]["count"].as_u64() > Some(10));
    let shown = shown();
    let hops = shown["path"]["hops"].as_array().unwrap();
    let traced = home.json(&["trace", "host-0", "host-3", "--json"]);
    let ports = |hops: &Value| -> Vec<[Value; 3]> {
        let port = |hop: &Value| ["node", "out_port", "in_port"].map(|key| hop[key].clone());
        hops.as_array().unwrap().iter().map(port).collect()
    };
    assert_eq!(ports(&shown["path"]["hops"]), ports(&traced["hops"]));
    assert!(hops.iter().all(|hop| hop["lane"] == 0), "{shown}");
    let last = hops.last().unwrap();
    assert_eq!(last["shared_with"], serde_json::json!(["other", "ping"]), "{shown}");
    assert!(last["rate"].as_f64().unwrap() > 0.0 && last["wait"].is_null(), "{last}");
    let times = &shown["flow"]["sender"]["messages"];
    let [p50, p99, max] = ["p50_ns", "p99_ns", "max_ns"].map(|key| times[key].as_u64().unwrap());
    assert!(0 < p50 && p50 <= p99 && p99 <= max, "{times}");
    assert!(shown["flow"]["receiver"]["pause_ns"].as_u64() > Some(0), "{shown}");
    let text = home.weft(&["flow", "show", "ping"]).succeeds().stdout.clone();
    for part in ["flow ping: host-2 -> host-3", "round trips: shortest", "99 of 100 within", "shared with"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let table = home.weft(&["flow", "ls", "--paths"]).succeeds().stdout.clone();
    assert!(table.contains("host-0 -VL0> switch-1-0 -VL0>") && table.contains("p99"), "{table}");
    assert!(table.contains("rates are the machine's"), "{table}");
    home.weft(&["flow", "show", "<script>"]).fails(2, "no flow is called `<script>`");
}
