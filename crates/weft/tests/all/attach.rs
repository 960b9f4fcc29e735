//! Laboratories whose managers attach to their agents over QUIC.

use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};

use common::{Events, Home, planned_port, runs, signal, text, wait_until};
use rustix::process::Signal;
use serde_json::Value;

use crate::common;

fn is(event: &Value, name: &str) -> bool {
    event["event"] == name
}

/// Waits for the next SUBNET UP of the whole small tree.
#[track_caller]
fn subnet_up(events: &mut Events) -> Value {
    events.wait_for("SUBNET UP of the whole tree", |event| {
        is(event, "subnet-up") && event["cables"] == 8 && event["complete"] == true
    })
}

fn read(path: &Path) -> Value {
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

/// How many attachments over QUIC the agent of a manager has taken.
fn attachments(home: &Home, manager: &str) -> u64 {
    let agent = read(&home.lab("default").join(format!("managers/{manager}.json")))["seat"]["agent"].clone();
    let status = home.json(&["ask", agent.as_str().unwrap(), "agent-status"]);
    status["counts"]["attach_visitors"].as_u64().unwrap_or(0)
}

fn up(home: &Home, options: &[&str]) {
    let tree = home.small_tree();
    home.weft(&[&["up", "--attach-managers", "quic"], options, &[text(&tree)]].concat()).succeeds();
}

#[test]
fn managers_bring_a_fabric_up_over_the_network() {
    let home = Home::new();
    up(&home, &["--pm", "--standby", "1"]);
    let lab = home.lab("default");
    let agents = read(&lab.join("lab.json"))["agents"].clone();
    for manager in ["sm", "sm-2", "pm"] {
        let seat = read(&lab.join(format!("managers/{manager}.json")))["seat"].clone();
        let agents = agents.as_array().unwrap();
        let agent = agents.iter().find(|agent| agent["name"] == seat["agent"]).unwrap();
        assert_eq!(seat["quic"]["address"], agent["address"], "{manager}");
        wait_until(manager, || attachments(&home, manager) > 0);
    }
    home.weft(&["check"]).succeeds();
    wait_until("the performance manager is ready", || {
        home.json(&["status", "--json"])["pm"]["ready"] == true
    });
    home.weft(&["down"]).succeeds();
    assert!(home.is_empty());
}

#[test]
fn a_manager_that_is_killed_and_restarted_writes_no_table() {
    let home = Home::new();
    up(&home, &[]);
    let mut events = home.events();
    subnet_up(&mut events);
    assert_eq!(attachments(&home, "sm"), 1);
    home.weft(&["fault", "kill", "sm"]).succeeds();
    home.weft(&["check"]).succeeds();
    home.weft(&["fault", "restart", "sm"]).succeeds();
    let up = subnet_up(&mut events);
    assert_eq!((&up["smps"]["set_lft"], &up["smps"]["set_switch_info"]), (&0.into(), &0.into()), "{up}");
    assert_eq!(attachments(&home, "sm"), 2);
    home.weft(&["check"]).succeeds();
}

#[test]
fn a_manager_attaches_again_to_an_agent_that_was_killed() {
    let home = Home::new();
    up(&home, &[]);
    let mut events = home.events();
    subnet_up(&mut events);
    let agent = read(&home.lab("default").join("managers/sm.json"))["seat"]["agent"].clone();
    let record = read(&home.lab("default").join("lab.json"));
    let agents = record["agents"].as_array().unwrap();
    let host = &agents.iter().find(|known| known["name"] == agent).unwrap()["devices"][0]["label"];
    home.weft(&["fault", "kill", host.as_str().unwrap()]).succeeds();
    home.weft(&["fault", "restart", host.as_str().unwrap()]).succeeds();
    events
        .wait_for("the manager is attached again", |event| is(event, "attached") && event["source"] == "sm");
    subnet_up(&mut events);
    assert_eq!(attachments(&home, "sm"), 1, "by the agent that was started again");
    home.weft(&["check"]).succeeds();
}

/// A process of a bundle with a run folder of its own, as in a container.
struct Alone(Child);

impl Alone {
    fn start(home: &Home, bundle: &Path, verb: &str, name: &str) -> Self {
        let log = std::fs::File::create(home.base().with_file_name(format!("{name}.log"))).unwrap();
        let run = home.base().with_file_name(format!("run-{name}"));
        let mut command = home.command(&[verb]);
        command.args(["--bundle", text(bundle), "--as", name, "--run", text(&run)]);
        Self(command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log).spawn().unwrap())
    }
}

impl Drop for Alone {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn planned(home: &Home) -> PathBuf {
    let (file, out) = (home.small_tree(), home.base().with_file_name("bundle"));
    let first = planned_port();
    let options = ["--attach-managers", "quic", "--hosts", "localhost", "--pack", "leaf"];
    home.weft(&[&["plan", text(&file), "--out", text(&out), "--udp-port", &first], &options[..]].concat())
        .succeeds();
    out
}

#[test]
fn a_manager_and_its_agent_share_no_folder() {
    let home = Home::new();
    let bundle = planned(&home);
    // An identity that is issued again has the same rights.
    home.weft(&["identity", "renew", "sm", "--in", text(&bundle)]).succeeds();
    let record = read(&bundle.join("lab.json"));
    let names = record["agents"].as_array().unwrap().iter().map(|agent| agent["name"].as_str().unwrap());
    // The manager is there first, and dials by a name until its agent listens.
    let manager = Alone::start(&home, &bundle, "sm", "sm");
    let agents: Vec<Alone> = names.map(|name| Alone::start(&home, &bundle, "agent", name)).collect();
    let socket = home.base().with_file_name("run-sm").join("control/sm");
    wait_until("SUBNET UP", || {
        assert!(runs(manager.0.id()) && agents.iter().all(|agent| runs(agent.0.id())));
        let Ok(mut client) = weft_process::Client::connect(&socket) else { return false };
        let answer = client.ask(weft_control::Request::SmStatus, std::time::Duration::from_secs(10));
        matches!(answer, Ok(weft_control::Answer::SmStatus(status)) if status.subnet_up && status.nodes == 8)
    });
    signal(manager.0.id(), Signal::TERM);
    wait_until("the manager has ended", || !runs(manager.0.id()));
}
