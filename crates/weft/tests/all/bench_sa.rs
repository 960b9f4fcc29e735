//! `weft bench sa`: what clients hear of subnet administration, counted; times depend on the machine.

use common::{Home, text};
use serde_json::Value;

use crate::common;

/// A laboratory of four hosts and four switches in one process.
fn lab() -> Home {
    let home = Home::new();
    let file = home.small_tree();
    home.weft(&["up", text(&file), "--pack", "all"]).succeeds();
    home
}

fn bench(home: &Home, options: &[&str]) -> Value {
    let all: Vec<&str> =
        ["bench", "sa", "--allow-busy", "--json"].into_iter().chain(options.iter().copied()).collect();
    home.json(&all)
}

#[test]
fn clients_are_answered_and_a_cache_spares_their_questions() {
    let home = lab();
    let counts = |report: &Value| ["answers", "records", "failed"].map(|key| report[key].as_u64().unwrap());
    let report = bench(&home, &["--clients", "8", "--window", "4", "--seconds", "1"]);
    let hosts = report["hosts"].as_u64().unwrap();
    let [answers, records, failed] = counts(&report);
    assert!(answers > 100 && records == answers && failed == 0, "{report}");
    assert_eq!(report["lookups"].as_u64(), Some(answers), "each connection has asked: {report}");
    assert!(report["answers_per_s"].as_f64().unwrap() > 0.0, "{report}");
    assert!(report["answer_us"]["p99"].as_f64() >= report["answer_us"]["p50"].as_f64(), "{report}");
    // One question a peer, however many connections.
    let report = bench(&home, &["--clients", "8", "--window", "4", "--seconds", "1", "--cache", "on"]);
    assert_eq!(counts(&report), [8 * (hosts - 1), 8 * (hosts - 1), 0], "{report}");
    assert!(report["lookups"].as_u64().unwrap() > 1000, "{report}");
    let report = bench(&home, &["--record", "node", "--seconds", "1"]);
    assert!(counts(&report)[0] > 10 && counts(&report)[2] == 0, "{report}");
}

/// More clients than subnet administration sends tables at a time: those that it puts off come back until they are served.
#[test]
fn many_clients_that_ask_in_bulk_at_once_are_all_served() {
    const CLIENTS: u64 = 300;
    let home = lab();
    let report = bench(&home, &["--clients", &CLIENTS.to_string(), "--record", "paths"]);
    let ends = report["records"].as_u64().unwrap() / CLIENTS;
    assert!(ends > report["hosts"].as_u64().unwrap(), "switches have paths too: {report}");
    assert_eq!(report["records"].as_u64(), Some(ends * CLIENTS), "{report}");
    assert_eq!(["answers", "failed"].map(|key| report[key].as_u64()), [Some(CLIENTS), Some(0)], "{report}");
}

#[test]
fn what_cannot_be_asked_is_refused_in_words() {
    let home = Home::new();
    for (options, says) in [
        (["--clients", "0"], "--clients"),
        (["--window", "0"], "--window"),
        (["--record", "route"], "possible values: path, paths, node"),
        (["--cache", "maybe"], "possible values: off, on]"),
    ] {
        let all: Vec<&str> = ["bench", "sa"].into_iter().chain(options).collect();
        home.weft(&all).fails(2, says);
    }
    let file = home.small_tree();
    home.weft(&["up", text(&file), "--signalling", "smoke"])
        .fails(2, "possible values: off, wildcard, repath, hybrid");
    home.weft(&["study", "signalling", "--most", "5"]).fails(2, "--most");
    home.weft(&["study", "signalling", "--most", "16"]).succeeds();
    home.weft(&["study", "migration-signalling", "--servers", "0"]).fails(2, "--servers");
    home.weft(&["study", "migration-signalling", "--servers", "3,18", "--machines", "4"]).succeeds();
    home.weft(&["up", text(&file), "--vfs", "1", "--vm-lids-stay", "true"])
        .fails(2, "--vm-lids-stay needs LIDs");
    home.weft(&["up", text(&file), "--rates", "host_bus_gbps=19"]).fails(2, "there are none");
}
