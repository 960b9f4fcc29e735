//! `--engine exec:PROGRAM`: a routing engine that is a program.

use std::os::unix::fs::PermissionsExt;

use common::{Home, text};

use crate::common;

/// Min-hop in Python, as users read it.
const EXAMPLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../clients/python/examples/minhop.py");
const X5: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../topologies/psmn-x5.topo");

/// The example, but two switches send one LID to each other.
const LOOPED: &str = r#"#!/usr/bin/env python3
import json, subprocess, sys
document = sys.stdin.read()
answer = subprocess.run(["EXAMPLE"], input=document, capture_output=True, text=True, check=True).stdout
fabric, tables = json.loads(document), json.loads(answer)["tables"]
one = fabric["switches"][0]
port = next(port for port in one["ports"] if port["peer_guid"] in tables)
near = {one["guid"], port["peer_guid"]}
hosts = {node["guid"]: node["ports"] for node in fabric["hosts"]}
lid = next(
    end["lid"]
    for end in fabric["lids"]
    if end["guid"] in hosts and not any(cable["peer_guid"] in near for cable in hosts[end["guid"]])
)
tables[one["guid"]][str(lid)] = port["port"]
tables[port["peer_guid"]][str(lid)] = port["peer_port"]
print("LID", lid, "goes round", file=sys.stderr)
json.dump({"tables": tables}, sys.stdout)
"#;

/// Writes a script, and returns the engine that it is.
fn engine(home: &Home, name: &str, script: &str) -> String {
    let path = home.folder().join(name);
    std::fs::write(&path, script).unwrap();
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).unwrap();
    format!("exec:./{name}")
}

#[test]
fn the_example_is_proved_on_a_real_fabric() {
    let home = Home::new();
    let example = format!("exec:{EXAMPLE},no_fallback");
    let found = home.json(&["routes", "compute", X5, "--engine", &example, "--dump", "out", "--json"]);
    assert_eq!(found["engine"], format!("exec:{EXAMPLE}"));
    assert_eq!((&found["lanes"], &found["fallbacks"]), (&1.into(), &serde_json::json!([])), "{found}");
    let verified = home.json(&["routes", "verify", X5, "out", "--json"]);
    assert_eq!((&verified["sound"], &verified["minimal"]), (&true.into(), &true.into()), "{verified}");
    let names = format!("exec:{EXAMPLE},minhop");
    let compared = home.weft(&["routes", "compare", X5, "--engines", &names, "--runs", "10"]);
    assert!(compared.succeeds().stdout.contains("minhop.py"), "{}", compared.stdout);
}

#[test]
fn a_loop_is_refused_with_its_switches() {
    let home = Home::new();
    let looped = engine(&home, "looped.py", &LOOPED.replace("EXAMPLE", EXAMPLE));
    let done = home.weft(&["routes", "compute", X5, "--engine", &format!("{looped},no_fallback")]);
    done.fails(1, "it goes round in a loop: ");
    assert!(
        done.stderr.contains("./looped.py: LID ") && done.stderr.contains("goes round"),
        "{}",
        done.stderr
    );
    let (_, path) = done.stderr.split_once("in a loop: ").unwrap();
    let path = path.lines().next().unwrap();
    let ids: Vec<&str> =
        path.split(" -> ").filter_map(|hop| hop.split('[').find(|part| part.contains("S-"))).collect();
    let ids: Vec<&str> = ids.into_iter().map(|id| id.rsplit(']').next().unwrap()).collect();
    assert!(ids.len() >= 3 && ids[..ids.len() - 1].contains(ids.last().unwrap()), "{path}");
    // The next engine of the chain is taken.
    let done = home.weft(&["routes", "compute", X5, "--engine", &format!("{looped},minhop")]);
    assert!(done.succeeds().stdout.starts_with("minhop: "), "{}", done.stdout);
    assert!(
        done.stdout.contains("exec:./looped.py: its tables do not bring every packet home"),
        "{}",
        done.stdout
    );
}

#[test]
fn a_program_that_does_not_answer_is_passed_over() {
    let home = Home::new();
    let tree = home.small_tree();
    let compute = |engine: &str, more: &[&str]| {
        home.weft(&[&["routes", "compute", text(&tree), "--engine", engine], more].concat())
    };
    let hangs = engine(&home, "hangs", "#!/bin/sh\nsleep 600\n");
    let done = compute(&format!("{hangs},no_fallback"), &["--exec-timeout", "1"]);
    done.fails(1, "it had not ended after 1 s and was killed; --exec-timeout gives it longer");
    let done = compute(&format!("{hangs},updn"), &["--exec-timeout", "1"]);
    assert!(done.succeeds().stdout.starts_with("updn: "), "{}", done.stdout);
    compute("exec:./none,no_fallback", &[]).fails(1, "exec:./none: it cannot be started");
    compute("exec:", &[]).fails(2, "names no program");
    compute("minhop", &["--exec-timeout", "1"]).fails(2, "--exec-timeout means nothing to minhop");
    compute("exec:./none", &["--exec-memory", "0"]).fails(2, "--exec-memory");
}

#[test]
fn a_manager_runs_a_program_and_says_why_it_took_another() {
    let home = Home::new();
    let tree = home.small_tree();
    let own = engine(&home, "own.sh", &format!("#!/bin/sh\nexec {EXAMPLE}\n"));
    home.weft(&["up", text(&tree), "--engine", &own]).succeeds();
    let status = home.json(&["status", "--json"]);
    let engine_of = |status: &serde_json::Value| {
        status["sm"]["routing"]["engine"].as_str().unwrap_or_default().to_owned()
    };
    assert!(engine_of(&status).ends_with("/own.sh"), "{status}");
    home.weft(&["check"]).succeeds();
    home.weft(&["down"]).succeeds();
    let looped = engine(&home, "looped.py", &LOOPED.replace("EXAMPLE", EXAMPLE));
    let up = home.weft(&["up", text(&tree), "--engine", &format!("{looped},updn")]);
    up.succeeds();
    let status = home.json(&["status", "--json"]);
    assert_eq!(engine_of(&status), "updn");
    assert!(status.to_string().contains("it goes round in a loop"), "{status}");
}
