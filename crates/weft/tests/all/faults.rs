//! Faults in a laboratory, as the processes that suffer them count and report them.

use common::{Events, Home, signal, text};
use rustix::process::Signal;
use serde_json::Value;

use crate::common;

/// What `weft ps` says of the process that runs this device.
#[track_caller]
fn process_of(home: &Home, name: &str) -> Value {
    let processes = home.json(&["ps", "--json"]);
    let runs = |process: &&Value| {
        let devices = process["devices"].as_array().unwrap();
        devices.iter().any(|device| device["label"] == name)
    };
    processes.as_array().unwrap().iter().find(runs).unwrap().clone()
}

#[test]
fn the_end_that_refuses_a_wrong_certificate_counts_it() {
    let home = Home::new();
    let file = home.small_tree();
    home.weft(&["up", text(&file), "--no-sm"]).succeeds();
    let host = process_of(&home, "host-0");
    assert_eq!(process_of(&home, "switch-1-0")["counts"]["peers_refused"], 0);
    home.weft(&["fault", "kill", "host-0"]).succeeds();
    home.make_stranger(host["process"].as_str().unwrap());
    let leaf = process_of(&home, "switch-1-0")["process"].clone();
    let mut events = home.events();
    home.weft(&["fault", "restart", "host-0"]).succeeds();
    let refused = events.wait_for("the leaf's own word of the refusal", |event| {
        event["event"] == "peer-refused" && event["source"] == leaf
    });
    assert_eq!(refused["address"], host["address"], "{refused}");
    let leaf = process_of(&home, "switch-1-0");
    assert!(leaf["counts"]["peers_refused"].as_u64().unwrap() > 0, "{leaf}");
    assert!(home.weft(&["ps"]).succeeds().stdout.contains("refused"));
}

fn is(event: &Value, name: &str) -> bool {
    event["event"] == name
}

/// Waits for the next SUBNET UP of the whole small tree. Cables come and go one by one, so there may be others before.
#[track_caller]
fn subnet_up(events: &mut Events) {
    let whole = |event: &Value| {
        (&event["switches"], &event["hosts"], &event["cables"]) == (&4.into(), &4.into(), &8.into())
    };
    events.wait_for("SUBNET UP of the whole tree", |event| {
        is(event, "subnet-up") && whole(event) && event["complete"] == true
    });
}

#[test]
fn a_killed_neighbour_is_noticed_before_the_link_timeout() {
    let home = Home::new();
    let file = home.small_tree();
    home.weft(&["up", text(&file), "--no-sm", "--link-timeout-ms", "600000"]).succeeds();
    let mut events = home.events();
    home.weft(&["fault", "kill", "host-0"]).succeeds();
    let down = events.wait_for("the end of its link", |event| is(event, "link-down"));
    assert_eq!(
        (&down["node"], &down["reason"]),
        (&"switch-1-0".into(), &"the other agent's process has ended".into())
    );
    home.weft(&["fault", "restart", "host-0"]).succeeds();
    events.wait_for("its link, from the other end", |event| {
        is(event, "link-up") && event["node"] == "switch-1-0"
    });
}

#[test]
fn a_frozen_neighbour_is_noticed_and_idle_ones_not_probed() {
    let home = Home::new();
    let file = home.small_tree();
    home.weft(&["up", text(&file), "--no-sm", "--link-timeout-ms", "1500"]).succeeds();
    assert!(home.weft(&["ps"]).succeeds().stdout.contains("within 1.5 s"));
    let mut events = home.events();
    let frozen = u32::try_from(process_of(&home, "host-0")["pid"].as_u64().unwrap()).unwrap();
    signal(frozen, Signal::STOP);
    let down = events.wait_for("the end of its link", |event| is(event, "link-down"));
    signal(frozen, Signal::CONT);
    assert_eq!(
        (&down["node"], &down["reason"]),
        (&"switch-1-0".into(), &"nothing heard for the link timeout".into())
    );
    events.wait_for("its link, from the other end", |event| {
        is(event, "link-up") && event["node"] == "switch-1-0"
    });
    let all = home.json(&["ps", "--json"]);
    let all: Vec<_> = all.as_array().unwrap().iter().filter(|process| process["kind"] != "hub").collect();
    for process in &all {
        assert_eq!(process["counts"]["link_peers_asked"], 0, "the kernel tells of this peer: {process}");
    }
    let watched = all.iter().map(|process| process["counts"]["link_peers_watched"].as_u64().unwrap());
    assert_eq!(watched.sum::<u64>(), 2 * 8, "each cable has two neighbours");
}

/// How often the blocks of each switch's linear forwarding table were set, as the switches count it.
fn lft_writes(home: &Home) -> Vec<u64> {
    let processes = home.json(&["ps", "--json"]);
    let switches = processes.as_array().unwrap().iter().filter(|process| process["kind"] == "switch");
    switches.map(|process| process["devices"][0]["lft_writes"].as_u64().unwrap()).collect()
}

#[test]
fn a_restarted_manager_writes_no_forwarding_table() {
    let home = Home::new();
    let file = home.small_tree();
    home.weft(&["up", text(&file)]).succeeds();
    let before = lft_writes(&home);
    assert!(before.len() == 4 && before.iter().all(|writes| *writes > 0), "{before:?}");
    let mut events = home.events();
    subnet_up(&mut events);
    home.weft(&["fault", "kill", "sm"]).succeeds();
    home.weft(&["fault", "restart", "sm"]).succeeds();
    subnet_up(&mut events);
    assert_eq!(lft_writes(&home), before);
}

#[test]
fn a_quickly_restarted_switch_is_reported_and_brought_up() {
    let home = Home::new();
    let file = home.small_tree();
    // So long that only the restart itself can be what the neighbours notice.
    home.weft(&["up", text(&file), "--link-timeout-ms", "60000"]).succeeds();
    let mut events = home.events();
    subnet_up(&mut events);
    home.weft(&["fault", "restart", "switch-2-0"]).succeeds();
    events.wait_for("a trap 128", |event| is(event, "trap-received") && event["number"] == 128);
    subnet_up(&mut events);
    let links = home.json(&["links", "--json"]);
    let ends = links
        .as_array()
        .unwrap()
        .iter()
        .flat_map(|link| [(&link["a"], &link["b"]), (&link["b"], &link["a"])]);
    let neighbours: Vec<_> =
        ends.filter(|(_, far)| far["node"] == "switch-2-0").map(|(near, _)| near).collect();
    assert_eq!(neighbours.len(), 2, "{links}");
    for near in neighbours {
        assert!(near["totals"]["link_downed"].as_u64().unwrap() > 0, "{near}");
        assert_eq!(near["state"], "Active", "{near}");
    }
    home.weft(&["check"]).succeeds();
}

#[test]
fn the_manager_sees_its_own_switch_die_without_a_trap() {
    let home = Home::new();
    let file = home.small_tree();
    home.weft(&["up", text(&file), "--link-timeout-ms", "500"]).succeeds();
    let mut events = home.events();
    subnet_up(&mut events);
    // The subnet manager's host has this switch and no other.
    home.weft(&["fault", "kill", "switch-1-0"]).succeeds();
    events.wait_for("the host is alone", |event| is(event, "own-port-down"));
    assert!(!events.seen.iter().any(|event| is(event, "trap-received")), "a trap came through");
    home.weft(&["fault", "restart", "switch-1-0"]).succeeds();
    subnet_up(&mut events);
    home.weft(&["check"]).succeeds();
}

/// Why the heavy sweeps began that the manager has reported since the last call.
fn heavy_sweeps(events: &mut Events) -> Vec<Value> {
    let seen = std::mem::take(&mut events.seen);
    let heavy = seen.into_iter().filter(|event| is(event, "sweep-started") && event["kind"] == "heavy");
    heavy.map(|event| event["reason"].clone()).collect()
}

#[test]
fn the_manager_sweeps_as_soon_as_its_own_link_is_back() {
    let home = Home::new();
    let file = home.small_tree();
    // No light sweep would come within the time of any command.
    home.weft(&["up", text(&file), "--sweep-interval-ms", "86400000"]).succeeds();
    let mut events = home.events();
    subnet_up(&mut events);
    heavy_sweeps(&mut events);
    home.weft(&["fault", "link-down", "host-0:1"]).succeeds();
    events.wait_for("the host is alone", |event| is(event, "own-port-down"));
    home.weft(&["fault", "link-up", "host-0:1"]).succeeds();
    events.wait_for("the host has a link", |event| is(event, "own-port-up"));
    subnet_up(&mut events);
    let sweeps = heavy_sweeps(&mut events);
    assert!(sweeps.len() >= 2 && sweeps[..2].iter().all(|reason| reason == "own-port"), "{sweeps:?}");
    home.weft(&["check"]).succeeds();
}

#[test]
fn the_light_sweep_finds_losses_without_traps() {
    let home = Home::new();
    let file = home.small_tree();
    let quiet = ["--trap-limit", "0", "--sweep-interval-ms", "300", "--link-timeout-ms", "500"];
    home.weft(&[&["up", text(&file)], &quiet[..]].concat()).succeeds();
    let mut events = home.events();
    subnet_up(&mut events);
    heavy_sweeps(&mut events);
    home.weft(&["fault", "kill", "switch-2-0"]).succeeds();
    events.wait_for("the switch is missed", |event| is(event, "node-lost"));
    assert!(!events.seen.iter().any(|event| is(event, "trap-received")), "a trap came through");
    let sweeps = heavy_sweeps(&mut events);
    assert!(sweeps.iter().all(|reason| reason["trap"].is_null()) && !sweeps.is_empty(), "{sweeps:?}");
    home.weft(&["check"]).succeeds();
    home.weft(&["fault", "restart", "switch-2-0"]).succeeds();
    subnet_up(&mut events);
    home.weft(&["check"]).succeeds();
}

#[test]
fn a_restarted_process_that_does_not_report_is_killed() {
    let home = Home::new();
    let file = home.small_tree();
    home.weft(&["up", text(&file), "--no-sm"]).succeeds();
    let agent = process_of(&home, "host-0")["process"].as_str().unwrap().to_owned();
    home.weft(&["fault", "kill", "host-0"]).succeeds();
    // It waits for ever for a configuration that no one writes.
    let config = home.lab("default").join(format!("agents/{agent}.json"));
    std::fs::remove_file(&config).unwrap();
    assert!(std::process::Command::new("mkfifo").arg(&config).status().unwrap().success());
    home.weft(&["fault", "restart", "host-0"]).fails(1, "does not report");
    let options = rustix::fs::OFlags::WRONLY | rustix::fs::OFlags::NONBLOCK;
    let opened = rustix::fs::open(&config, options, rustix::fs::Mode::empty());
    assert_eq!(opened.unwrap_err(), rustix::io::Errno::NXIO, "somebody still reads the configuration");
}

#[test]
fn named_faults_are_listed_outlast_restarts_and_clear() {
    let home = Home::new();
    let file = home.small_tree();
    home.weft(&["up", text(&file), "--no-sm"]).succeeds();
    assert!(home.weft(&["fault", "ls"]).succeeds().stdout.contains("no fault lasts"));
    let mut events = home.events();
    assert!(home.weft(&["fault", "link-down", "host-0:1"]).succeeds().stderr.contains("fault f1"));
    home.weft(&["fault", "link-down", "host-1:1", "--for", "1h"]).succeeds();
    let listed = home.json(&["fault", "ls", "--json"]);
    assert_eq!((&listed[0]["id"], &listed[1]["id"]), (&"f1".into(), &"f2".into()), "{listed}");
    assert_eq!(listed[0]["at"].as_array().unwrap().len(), 2, "both ends: {listed}");
    assert!(listed[0]["until"].is_null() && listed[1]["until"].is_string(), "{listed}");
    let table = home.weft(&["fault", "ls"]).succeeds().stdout.clone();
    assert!(table.contains("host-0:1") && table.contains("unplugged"), "{table}");
    // Both agents of the cut cable begin a new life, and it stays cut.
    for node in ["host-0", "switch-1-0"] {
        home.weft(&["fault", "restart", node]).succeeds();
        events.wait_for("the fault again", |event| is(event, "fault-set") && event["node"] == node);
    }
    // How soon they were noticed depends on what has been heard of by now.
    let without_times = |mut list: Value| {
        for fault in list.as_array_mut().unwrap() {
            fault.as_object_mut().unwrap().retain(|key, _| !key.ends_with("_after_ns"));
        }
        list
    };
    assert_eq!(without_times(home.json(&["fault", "ls", "--json"])), without_times(listed));
    let link = |home: &Home| {
        let links = home.json(&["links", "--json"]);
        let is_it = |link: &&Value| link["a"]["node"] == "host-0" || link["b"]["node"] == "host-0";
        links.as_array().unwrap().iter().find(is_it).unwrap().clone()
    };
    assert_eq!(link(&home)["a"]["plugged"], false);
    home.weft(&["fault", "clear", "f7"]).fails(1, "knows a fault f7");
    home.weft(&["fault", "clear", "f1"]).succeeds();
    let back = |event: &Value| is(event, "link-up") && event["node"] == "host-0";
    events.wait_for("the link", back);
    home.weft(&["fault", "clear", "--all"]).succeeds();
    assert_eq!(home.json(&["fault", "ls", "--json"]), Value::Array(Vec::new()));
    // The agents end it by themselves.
    home.weft(&["fault", "link-down", "host-0:1", "--for", "200ms"]).succeeds();
    events.wait_for("its end", |event| is(event, "fault-cleared") && event["expired"] == true);
    events.wait_for("the link again", back);
    home.weft(&["fault", "link-down", "host-0:1", "--for", "soon"]).fails(2, "invalid duration");
}

#[test]
fn many_impairments_last_at_once_each_with_its_own_end() {
    let home = Home::new();
    let file = home.small_tree();
    home.weft(&["up", text(&file), "--no-sm"]).succeeds();
    let mut events = home.events();
    let loss = ["fault", "add", "loss", "host-0:1", "--percent", "5", "--for", "1h"];
    assert!(home.weft(&loss).succeeds().stderr.contains("fault f1, seed 1, for 3600 s"));
    home.weft(&["fault", "add", "delay", "host-0:1", "--by", "2ms", "--way", "in"]).succeeds();
    home.weft(&["fault", "add", "reorder", "host-1:1", "--percent", "1.5", "--seed", "9"]).succeeds();
    home.weft(&["fault", "add", "bit-errors", "host-0:1", "--rate", "1e-9", "--way", "out"]).succeeds();
    let listed = home.json(&["fault", "ls", "--json"]);
    let count = |fault: usize, key: &str| listed[fault][key].as_array().unwrap().len();
    assert_eq!([0, 1, 2, 3].map(|fault| count(fault, "at")), [2, 1, 2, 1], "{listed}");
    assert_eq!(listed[0]["impairment"]["loss"], 50_000, "{listed}");
    assert_eq!(listed[1]["seeds"]["host-0:1"], 2, "{listed}");
    assert_eq!(listed[2]["impairment"]["reorder"]["by"], 1_000_000, "{listed}");
    assert_eq!((&listed[2]["seeds"]["host-1:1"], &listed[3]["damage"]), (&9.into(), &"bit-errors".into()));
    assert!(listed[0]["until"].is_string() && listed[1]["until"].is_null(), "{listed}");
    home.weft(&["fault", "restart", "host-0"]).succeeds();
    for _ in 0..2 {
        events.wait_for("a fault again", |event| is(event, "fault-set") && event["node"] == "host-0");
    }
    assert_eq!(home.json(&["fault", "ls", "--json"]), listed);
    let table = home.weft(&["fault", "ls"]).succeeds().stdout.clone();
    assert!(table.contains("loss 5%") && table.contains("into host-0:1"), "{table}");
    home.weft(&["fault", "clear", "f2", "f4"]).succeeds();
    let left = home.json(&["fault", "ls", "--json"]);
    assert_eq!((&left[0]["id"], &left[1]["id"], &left[2]), (&"f1".into(), &"f3".into(), &Value::Null));
    home.weft(&["fault", "clear", "--all"]).succeeds();
    assert_eq!(home.json(&["fault", "ls", "--json"]), Value::Array(Vec::new()));
    home.weft(&["fault", "add", "jitter", "host-0:1", "--by", "10us", "--for", "200ms"]).succeeds();
    events.wait_for("its end", |event| is(event, "fault-cleared") && event["expired"] == true);
    home.weft(&["fault", "add", "loss", "host-0:1", "--percent", "0"]).fails(2, "a share is");
    home.weft(&["fault", "add", "loss", "host-0:1"]).fails(2, "--percent");
    home.weft(&["fault", "add", "loss", "host-0:9", "--percent", "5"]).fails(2, "not 9");
}

#[test]
fn the_hub_is_killed_and_restarted_by_its_name() {
    let home = Home::new();
    home.weft(&["up", "--pack", "4", text(&home.small_tree())]).succeeds();
    let hub = || home.processes().into_iter().find(|(name, pid)| name == "hub" && *pid != 0);
    let first = hub().unwrap();
    assert!(home.weft(&["fault", "kill", "hub"]).succeeds().stderr.contains("killed the hub"));
    assert_eq!(hub(), None);
    home.weft(&["check"]).succeeds();
    assert!(home.weft(&["fault", "restart", "hub"]).succeeds().stderr.contains("restarted the hub"));
    assert!(hub().is_some_and(|second| second.1 != first.1));
    let mut faults = home.events_since("start");
    for fault in ["kill", "restart"] {
        faults.wait_for(fault, |event| event["fault"] == fault && event["target"] == "hub");
    }
}

/// Faults of nodes and ports on a laboratory: each is listed, noticed, ended and its cost reported.
#[test]
fn node_and_port_faults_are_noticed_and_their_cost_reported() {
    let home = Home::new();
    let file = home.small_tree();
    home.weft(&["up", text(&file)]).succeeds();
    let mut events = home.events();
    // The subnet manager sits at host-0.
    home.weft(&["fault", "freeze", "host-1"]).succeeds();
    events.wait_for("the host's absence", |event| is(event, "host-cut-off"));
    home.weft(&["fault", "partition", "switch-1-1", "host-2", "host-3"]).succeeds();
    home.weft(&["fault", "add", "width", "switch-1-0:1", "--to", "1x"]).succeeds();
    home.weft(&["fault", "add", "flap", "switch-2-0:1", "--every", "1s", "--down", "200ms"]).succeeds();
    home.weft(&["fault", "add", "slow-drain", "host-1:1", "--percent", "5"]).succeeds();
    let listed = home.json(&["fault", "ls", "--json"]);
    let parts: Vec<(&str, usize)> = listed
        .as_array()
        .unwrap()
        .iter()
        .map(|fault| (fault["damage"].as_str().unwrap(), fault["at"].as_array().unwrap().len()))
        .collect();
    assert_eq!(
        parts,
        [("frozen", 1), ("partition", 4), ("width", 1), ("flap", 1), ("slow-drain", 1)],
        "{listed}"
    );
    let flaps = |event: &Value| is(event, "link-down") && event["node"] == "switch-2-0" && event["port"] == 1;
    events.wait_for("the link to flap", flaps);
    events.wait_for("the link to flap again", flaps);
    home.weft(&["fault", "thaw", "host-1"]).succeeds();
    home.weft(&["fault", "heal", "switch-1-1", "host-2", "host-3"]).succeeds();
    home.weft(&["fault", "heal", "switch-1-1"]).fails(1, "no partition lasts");
    home.weft(&["fault", "clear", "--all"]).succeeds();
    home.weft(&["check", "--wait", "30"]).succeeds();
    common::wait_until("the frozen host's way back to be told", || {
        let times = home.json(&["fault", "times", "--json"]);
        let frozen = times.as_array().unwrap().iter().find(|times| times["fault"] == "f1").unwrap().clone();
        frozen["restored_after_ns"].is_u64()
            && frozen["detected_after_ns"].is_u64()
            && frozen["rerouted_after_ns"].as_u64() >= frozen["detected_after_ns"].as_u64()
            && frozen["pairs_lost"].as_u64() >= Some(6)
    });
    assert!(home.weft(&["fault", "times"]).succeeds().stdout.contains("rerouted s"));
    // The same is in the laboratory's events.
    let cost = events.wait_for("the host's cost", |event| is(event, "fault-cost") && event["fault"] == "f1");
    assert!(cost["restored_after_ns"].is_u64() && cost["pairs_lost"].as_u64() >= Some(6), "{cost}");
}

/// Whatever is wrong with a certificate: peers refuse it and say why, also when the agent has begun again, and the fabric heals when
/// the agent has its own again.
#[test]
fn a_bad_identity_cuts_an_agent_off_until_it_is_restored() {
    let home = Home::new();
    let file = home.small_tree();
    home.weft(&["up", text(&file)]).succeeds();
    let mut events = home.events();
    subnet_up(&mut events);
    for (bad, why) in [
        ("expired", "expired"),
        ("future", "not valid yet"),
        ("foreign", "BadSignature"),
        ("other", "does not cover node"),
    ] {
        home.weft(&["fault", "bad-identity", "host-1", "--as", bad]).succeeds();
        let refused = |event: &Value| {
            is(event, "peer-refused") && event["reason"].as_str().is_some_and(|reason| reason.contains(why))
        };
        events.wait_for(&format!("a refusal of what is {bad}"), refused);
        events.wait_for("the host's absence", |event| is(event, "host-cut-off"));
        assert!(home.weft(&["fault", "ls"]).succeeds().stdout.contains(&format!("bad-identity {bad}")));
        home.weft(&["fault", "restart", "host-1"]).succeeds();
        events.wait_for("a refusal of the agent's next life", refused);
        home.weft(&["fault", "good-identity", "host-1"]).succeeds();
        common::wait_until("the host is back", || home.weft(&["check"]).code == 0);
    }
    // It ends by itself, too.
    home.weft(&["fault", "bad-identity", "switch-1-1", "--for", "500ms"]).succeeds();
    events.wait_for("the end of the fault", |event| is(event, "fault-cleared") && event["expired"] == true);
    common::wait_until("the switch is back", || home.weft(&["check"]).code == 0);
    assert!(home.weft(&["fault", "ls"]).succeeds().stdout.contains("no fault lasts"));
}

#[test]
fn faults_that_make_no_sense_are_refused_in_words() {
    let home = Home::new();
    let file = home.small_tree();
    home.weft(&["up", text(&file), "--no-sm"]).succeeds();
    home.weft(&["fault", "add", "flap", "host-1:1", "--every", "1s", "--down", "1s"]).fails(2, "never up");
    home.weft(&["fault", "add", "slow-drain", "switch-1-0:1", "--percent", "5"]).fails(2, "port of a switch");
    home.weft(&["fault", "add", "width", "host-1:1", "--to", "3x"]).fails(2, "1x, 2x, 4x or 8x");
    home.weft(&["fault", "freeze", "host-9"]).fails(2, "host-9");
    home.weft(&["fault", "bad-identity", "host-1", "--as", "old"])
        .fails(2, "expired, future, foreign or other");
    let all: Vec<String> =
        ["switch-1-0", "switch-1-1", "switch-2-0", "switch-2-1", "host-0", "host-1", "host-2", "host-3"]
            .map(str::to_owned)
            .to_vec();
    let mut everything = vec!["fault", "partition"];
    everything.extend(all.iter().map(String::as_str));
    home.weft(&everything).fails(2, "no cable leads");
    assert!(home.weft(&["fault", "ls"]).succeeds().stdout.contains("no fault lasts"));
}
