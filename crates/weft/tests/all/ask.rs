//! `weft ask`: the control protocol, from the command line, near and over QUIC.

use common::{Home, text};
use serde_json::Value;

use crate::common;

fn answer(home: &Home, arguments: &[&str]) -> Value {
    let told = home.weft(arguments);
    serde_json::from_str(told.succeeds().stdout.trim()).unwrap()
}

#[test]
fn processes_answer_near_and_over_quic_by_what_an_identity_may() {
    let home = Home::new();
    let file = home.small_tree();
    home.weft(&["up", text(&file)]).succeeds();
    let status = answer(&home, &["ask", "sm", "sm-status"]);
    assert_eq!((&status["type"], &status["subnet_up"]), (&"sm-status".into(), &true.into()), "{status}");
    let past = r#"{"from": "start", "past_only": true, "kinds": ["subnet-up"]}"#;
    let past = home.weft(&["ask", "sm", "events", past]).succeeds().stdout.clone();
    let kinds: Vec<Value> = past.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(kinds[0]["type"] == "subscribed" && kinds[1]["event"] == "subnet-up", "{past}");
    let near = answer(&home, &["ask", "host-0", "ports", r#"{"limit": 1}"#]);
    assert_eq!(near["ports"].as_array().unwrap().len(), 1, "{near}");
    let identity = |role: &str| {
        let path = home.lab("default").join("identities").join(format!("{role}.pem"));
        path.to_str().unwrap().to_owned()
    };
    let (viewer, operator) = (identity("viewer"), identity("operator"));
    let hello = answer(&home, &["ask", "host-0", "hello", "--identity", &viewer]);
    assert_eq!((&hello["role"], &hello["kind"]), (&"viewer".into(), &"agent".into()), "{hello}");
    let end = near["ports"][0]["end"].clone();
    let cut = format!(r#"{{"id": "cut", "damage": {{"unplugged": {end}}}}}"#);
    home.weft(&["ask", "host-0", "set-fault", &cut, "--identity", &viewer])
        .fails(1, "permission denied: `set-fault` needs the operator role");
    let done = answer(&home, &["ask", "host-0", "set-fault", &cut, "--identity", &operator]);
    assert_eq!(done["type"], "done");
    assert_eq!(home.json(&["fault", "ls", "--json"])[0]["id"], "cut");
    // An agent's own identity is no client's.
    let agent = identity(home.json(&["ps", "--json"])[1]["process"].as_str().unwrap());
    home.weft(&["ask", "host-0", "hello", "--identity", &agent])
        .fails(1, "must be an operator's or a viewer's");
}

#[test]
fn invalid_ask_requests_are_refused_with_a_reason() {
    let home = Home::new();
    let file = home.small_tree();
    home.weft(&["up", text(&file), "--no-sm"]).succeeds();
    home.weft(&["ask", "host-0", "how-are-you"]).fails(2, "unknown request `how-are-you`");
    home.weft(&["ask", "host-0", "ports", "[]"]).fails(2, "invalid fields");
    home.weft(&["ask", "host-0", "ports", r#"{"limit": "x"}"#]).fails(2, "invalid request `ports`");
    home.weft(&["ask", "host-9", "ports"]).fails(2, "host-9");
    home.weft(&["ask", "", "ports"]).fails(2, "a value is required");
    home.weft(&["ask", "host-0", "sm-status"]).fails(1, "not for a process of kind agent");
    home.weft(&["fault", "kill", "host-0"]).succeeds();
    home.weft(&["ask", "host-0", "ports"]).fails(1, "cannot connect");
    home.weft(&["ask", "host-0", "ports", "--identity", "/nowhere.pem"]).fails(1, "/nowhere.pem");
}

#[test]
fn a_planned_manager_that_does_not_run_is_named() {
    let home = Home::new();
    let file = home.small_tree();
    home.weft(&["up", text(&file), "--pm"]).succeeds();
    home.weft(&["fault", "kill", "pm"]).succeeds();
    // With its socket's file, which a killed process leaves, and without.
    for _ in 0..2 {
        let refused = home.weft(&["ask", "pm", "pm-status"]);
        refused.fails(1, "the performance manager does not run");
        refused.fails(1, "`weft fault restart pm` starts it");
        let _ = std::fs::remove_file(home.lab("default").join("control").join("pm"));
    }
    home.weft(&["fault", "restart", "pm"]).succeeds();
    assert_eq!(answer(&home, &["ask", "pm", "pm-status"])["type"], "pm-status");
    home.weft(&["ask", "vmm", "vmm-status"]).fails(2, "vmm");
}
