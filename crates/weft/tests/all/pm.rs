//! The performance manager's process: it sweeps, it outlives what happens around it, and what it sees is shown.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};

use common::{Home, runs, text, wait_until};
use serde_json::Value;

use crate::common;

/// A laboratory of 4 switches and 4 hosts, with a performance manager that sweeps often.
fn swept(home: &Home, options: &[&str]) {
    let file = home.small_tree();
    let mut arguments = vec!["up", text(&file), "--pm", "--pm-interval", "100"];
    arguments.extend_from_slice(options);
    home.weft(&arguments).succeeds();
}

fn pm(home: &Home) -> Value {
    home.json(&["status", "--json"])["pm"].clone()
}

/// Waits until the performance manager says so.
#[track_caller]
fn wait_for_pm(home: &Home, what: &str, holds: impl Fn(&Value) -> bool) -> Value {
    let mut last = Value::Null;
    wait_until(what, || {
        last = pm(home);
        holds(&last)
    });
    last
}

fn pid_of(home: &Home, name: &str) -> u32 {
    home.processes().into_iter().find(|(process, _)| process == name).unwrap().1
}

/// The page of a process.
fn scrape(home: &Home, process: &str) -> String {
    let listed = home.json(&["ps", "--json"]);
    let found = listed.as_array().unwrap().iter().find(|listed| listed["process"] == process).unwrap();
    let mut stream = TcpStream::connect(found["metrics"].as_str().unwrap()).unwrap();
    stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
    let mut page = String::new();
    stream.read_to_string(&mut page).unwrap();
    page
}

#[test]
fn it_sweeps_at_a_port_of_its_own() {
    let home = Home::new();
    swept(&home, &[]);
    let seen = wait_for_pm(&home, "two sweeps", |pm| pm["sweeps"].as_u64().unwrap() >= 2);
    assert_eq!((&seen["running"], &seen["ready"]), (&true.into(), &true.into()));
    // 8 cables, 4 of them to hosts.
    assert_eq!((&seen["nodes"], &seen["ports"], &seen["silent_nodes"]), (&8.into(), &16.into(), &0.into()));
    let record: Value =
        serde_json::from_slice(&std::fs::read(home.lab("default").join("lab.json")).unwrap()).unwrap();
    assert_ne!(record["pms"][0]["node"], record["sm"]["node"]);
    assert!(home.weft(&["status"]).succeeds().stdout.contains("performance manager: sweeping"));

    let top = home.json(&["top", "--json"]);
    let ports = top["ports"].as_array().unwrap();
    assert_eq!(ports.len(), 16);
    let sent: f64 = ports.iter().map(|port| port["xmit_gbps"].as_f64().unwrap()).sum();
    assert!(sent > 0.0, "its own requests are traffic: {top}");
    let waits: Vec<f64> = ports.iter().map(|port| port["wait"].as_f64().unwrap()).collect();
    assert!(waits.is_sorted_by(|a, b| a >= b), "{waits:?}");
    assert!(
        ports.iter().all(|port| port["lanes"].as_array().is_some_and(|lanes| lanes.len() == 16)),
        "{top}"
    );
    let table = home.weft(&["top", "--once", "--rows", "3"]);
    assert_eq!(table.succeeds().stdout.lines().count(), 6, "{}", table.stdout);

    let pid = pid_of(&home, "pm");
    home.weft(&["down"]).succeeds();
    assert!(!runs(pid) && home.is_empty());
}

/// A tree of two leaves with four hosts each and two spines.
fn wide_tree(home: &Home) -> &'static str {
    let shape = ["--children", "4,2", "--parents", "1,2", "--describe", "plain", "-o", "wide.topo"];
    home.weft(&[&["topo", "gen", "xgft"], &shape[..]].concat()).succeeds();
    "wide.topo"
}

#[test]
fn reports_of_traffic_are_weighed() {
    let home = Home::new();
    let file = wide_tree(&home);
    let options = ["--pm", "--pm-interval", "200", "--learn-weights", "2", "--engine", "pftree-wt"];
    home.weft(&[&["up", file, "--pack", "all"], &options[..]].concat()).succeeds();
    for (from, to) in [("host-4", "host-0"), ("host-5", "host-2")] {
        home.weft(&["flow", "start", from, to]).succeeds();
    }
    let learning = || home.json(&["status", "--json"])["sm"]["learning"].clone();
    wait_until("a report is weighed", || {
        let learning = learning();
        learning["taken"].as_u64().unwrap_or(0) + learning["kept"].as_u64().unwrap_or(0) > 0
    });
    let said = home.weft(&["events", "--kind", "received-weighed"]).succeeds().stdout.clone();
    assert!(said.contains("weighed what 8 hosts received: the busiest link carries"), "{said}");
    let said = home.weft(&["events", "--kind", "received-reported"]).succeeds().stdout.clone();
    assert!(said.contains("reported to the subnet manager what hosts receive"), "{said}");
    let shown = home.weft(&["status"]).succeeds().stdout.clone();
    assert!(shown.contains("learned from traffic: "), "{shown}");
    home.weft(&["check"]).succeeds();
    home.weft(&["down"]).succeeds();
}

#[test]
fn learning_without_effect_is_refused_in_words() {
    let home = Home::new();
    let file = wide_tree(&home);
    let plan = |arguments: &[&str]| home.weft(&[&["plan", file, "--out", "bundle"], arguments].concat());
    let learn = ["--pm", "--learn-weights", "2"];
    plan(&["--pm", "--learn-weights", "0"]).fails(2, "0 is not in 1..=1000000");
    plan(&["--learn-weights", "2"]).fails(2, "--pm");
    plan(&[&learn[..], &["--engine", "minhop"]].concat()).fails(2, "--learn-weights means nothing to minhop");
    plan(&[&learn[..], &["--engine", "updn"]].concat())
        .fails(2, "weights are read by pftree-wt, pftree-combined");
    plan(&["--pm", "--order", "received", "--engine", "ftree"]).fails(2, "say --pm --learn-weights SWEEPS");
    plan(&[&learn[..], &["--order", "received", "--engine", "dor"]].concat())
        .fails(2, "--order means nothing to dor");
    home.weft(&["routes", "compute", file, "--engine", "ftree", "--order", "received"])
        .fails(2, "--order received takes the counts of a performance manager");
    plan(&[&learn[..], &["--order", "received", "--engine", "ftree"]].concat()).succeeds();
    let config = std::fs::read_to_string(home.folder().join("bundle/managers/sm.json"));
    assert!(
        config.is_ok_and(|config| config.replace(' ', "").contains("\"learn_order\":true")),
        "the plan carries it"
    );
}

#[test]
fn it_outlives_its_agent_the_subnet_manager_and_other_agents() {
    let home = Home::new();
    swept(&home, &["--sm-at", "host-0", "--pm-at", "host-3", "--link-timeout-ms", "300"]);
    let sweeps = |pm: &Value| pm["sweeps"].as_u64().unwrap();
    wait_for_pm(&home, "a sweep", |pm| sweeps(pm) >= 1);
    let pid = pid_of(&home, "pm");

    home.weft(&["fault", "kill", "host-3"]).succeeds();
    wait_for_pm(&home, "it knows that its agent is gone", |pm| pm["attached"] == false);
    assert!(home.weft(&["top", "--once"]).succeeds().stdout.contains("waits for its agent"));
    home.weft(&["fault", "restart", "host-3"]).succeeds();
    let before = wait_for_pm(&home, "it is attached again", |pm| pm["attached"] == true);
    wait_for_pm(&home, "it sweeps again", |pm| sweeps(pm) > sweeps(&before) + 1);

    home.weft(&["fault", "restart", "sm"]).succeeds();
    let before = pm(&home);
    wait_for_pm(&home, "it sweeps on", |pm| sweeps(pm) > sweeps(&before) + 1);

    home.weft(&["fault", "kill", "host-1"]).succeeds();
    let gone = |pm: &Value| pm["nodes"] == 7 || pm["silent_nodes"] == 1;
    wait_for_pm(&home, "a host is missing", gone);
    assert!(home.weft(&["top", "--once"]).succeeds().stdout.contains("host-0"));
    assert_eq!(pid_of(&home, "pm"), pid, "it was never started again");
}

#[test]
fn it_is_killed_and_started_again() {
    let home = Home::new();
    swept(&home, &[]);
    wait_for_pm(&home, "a sweep", |pm| pm["sweeps"].as_u64().unwrap() >= 1);
    home.weft(&["fault", "kill", "pm"]).succeeds();
    assert_eq!(pm(&home)["running"], false);
    assert!(home.weft(&["top", "--once"]).succeeds().stdout.contains("is not running"));
    home.weft(&["fault", "restart", "pm"]).succeeds();
    wait_for_pm(&home, "it sweeps again", |pm| pm["running"] == true && pm["sweeps"].as_u64() >= Some(1));
}

#[test]
fn verbs_for_an_absent_pm_are_refused_with_a_hint() {
    let home = Home::new();
    let file = home.small_tree();
    home.weft(&["up", text(&file), "--pm-interval", "100"]).fails(2, "--pm");
    home.weft(&["up", text(&file), "--pm", "--pm-at", "nowhere"]).fails(2, "nowhere");
    home.weft(&["up", text(&file)]).succeeds();
    home.weft(&["top"]).fails(1, "has no performance manager").fails(1, "weft up --pm");
    home.weft(&["metrics"]).fails(1, "serves no metrics").fails(1, "weft up --metrics");
    home.weft(&["fault", "kill", "pm"]).fails(1, "weft up --pm");
    assert_eq!(pm(&home), Value::Null);
}

#[test]
fn every_process_serves_metrics_on_a_port_of_its_own() {
    let home = Home::new();
    swept(&home, &["--metrics"]);
    wait_for_pm(&home, "a sweep", |pm| pm["sweeps"].as_u64().unwrap() >= 1);
    let listed = home.json(&["metrics", "--list", "--json"]);
    let mut urls: Vec<_> = listed.as_array().unwrap().iter().map(|target| target["url"].as_str()).collect();
    assert_eq!(urls.len(), 10);
    urls.dedup();
    assert_eq!(urls.len(), 10, "{urls:?}");
    for (process, line) in [
        ("sm", "weft_sm_sweeps_total{kind=\"heavy\"} 1\n"),
        ("sm", "weft_sm_lft_blocks_written_total 4\n"),
        ("sm", "weft_sm_subnet_up 1\n"),
        ("pm", "weft_pm_ports 16\n"),
        ("pm", "infiniband_switch_port_transmit_wait_total{guid=\"0x0200535700000001\",port=\"1\"} 0\n"),
        ("a0000", "weft_agent_events_total{event=\"link_up\"} 4\n"),
        ("a0000", "weft_agent_lft_blocks_written_total{guid=\"0x0200535700000001\"} 1\n"),
    ] {
        let page = scrape(&home, process);
        assert!(page.contains(line), "no {line} in {process}'s page:\n{page}");
    }
    // An agent that was killed serves on the same port when it is back.
    home.weft(&["fault", "kill", "a0000"]).fails(2, "a0000");
    home.weft(&["fault", "restart", "switch-1-0"]).succeeds();
    assert!(scrape(&home, "a0000").contains("weft_build_info{kind=\"agent\""));

    let scrape_file = std::fs::read_to_string(home.lab("default").join("prometheus.yml")).unwrap();
    assert_eq!(home.weft(&["metrics"]).succeeds().stdout, scrape_file);
}

#[test]
fn ports_for_metrics_are_asked_for_by_number() {
    let home = Home::new();
    let file = home.small_tree();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    home.weft(&["up", text(&file), &format!("--metrics={port}")])
        .fails(1, &format!("TCP port {port} is in use by another program"))
        .fails(1, "--metrics");
    assert!(home.is_empty());
    home.weft(&["up", text(&file), "--lab", "x", "--metrics"]).succeeds();
    let listed = home.json(&["metrics", "--list", "--json"]);
    let first = listed[0]["url"].as_str().unwrap().split([':', '/']).nth(4).unwrap();
    home.weft(&["up", text(&file), "--lab", "y", &format!("--metrics={first}")])
        .fails(1, "belong to the laboratory `x`");
}
