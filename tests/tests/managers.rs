//! Several subnet managers on one laboratory of processes: weft beside weft, and weft beside OpenSM both ways, as
//! infiniband-diags see them (IBA 14.4.1).

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use weft_judges::{Lab, OpenSm, output_of};
use weft_topology::generate::{GenerateOptions, xgft};
use weft_topology::{Fabric, Node};

/// How long anything may take on a machine that does other things too.
const PATIENCE: Duration = Duration::from_secs(90);

/// How often managers poll here, and look for changes.
const POLLS: [&str; 6] = ["--polling-ms", "500", "--polling-retries", "2", "--sweep-interval-ms", "2000"];

fn tree() -> Fabric {
    xgft(&[2, 3], &[1, 2], &GenerateOptions::default()).expect("a tree")
}

fn host(fabric: &Fabric, number: usize) -> &Node {
    fabric.hosts().nth(number).expect("a host").1
}

fn json(command: &mut Command) -> Value {
    let text = output_of(command);
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// The managers that `weft status` lists: process or "", state, priority.
fn managers(lab: &Lab) -> Vec<(String, String, u64)> {
    let status = json(&mut lab.weft(&["status", "--json"]));
    let of = |manager: &Value| {
        let text = |name: &str| manager[name].as_str().unwrap_or_default().to_owned();
        (text("process"), text("state"), manager["priority"].as_u64().unwrap_or(99))
    };
    status["managers"].as_array().expect("a list").iter().map(of).collect()
}

/// Waits until a manager has come to a state.
fn wait_for(lab: &Lab, process: &str, state: &str) {
    let begun = Instant::now();
    loop {
        let managers = managers(lab);
        if managers.iter().any(|(name, now, _)| name == process && now == state) {
            return;
        }
        assert!(begun.elapsed() < PATIENCE, "{process} is not {state}: {managers:?}");
        std::thread::yield_now();
    }
}

/// Waits until every host answers to every other, and says how often switches' tables were written in all.
fn settled(lab: &Lab) -> u64 {
    let begun = Instant::now();
    while !lab
        .weft(&["check"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .expect("it runs")
        .success()
    {
        assert!(begun.elapsed() < PATIENCE, "`weft check` never finds all well");
    }
    let processes = json(&mut lab.weft(&["ps", "--json"]));
    let devices = processes
        .as_array()
        .expect("a list")
        .iter()
        .flat_map(|process| process["devices"].as_array().cloned().unwrap_or_default());
    devices.filter_map(|device| device["lft_writes"].as_u64()).sum()
}

/// What `sminfo` says of the manager that a node's port names: its LID, its GUID, its priority and its state.
fn sminfo(lab: &Lab, node: &Node) -> (u64, String, u64, String) {
    let said = output_of(&mut lab.command("sminfo", node, &[]));
    let after = |word: &str| {
        let rest = said.split(word).nth(1).unwrap_or_else(|| panic!("no {word} in {said}"));
        rest.split_whitespace().next().expect("a word").trim_end_matches(',').to_owned()
    };
    let number = |text: String| text.parse().unwrap_or_else(|_| panic!("{text} in {said}"));
    let state = said.rsplit(' ').next().expect("a word").trim().to_owned();
    (number(after("sm lid ")), after("sm guid "), number(after("priority ")), state)
}

/// LIDs by port, as each port has them.
fn lids(lab: &Lab, fabric: &Fabric) -> Vec<String> {
    let ask = |node: &Node| {
        let said = output_of(lab.command("ibaddr", node, &[]).arg("-L"));
        said.trim().to_owned()
    };
    fabric.hosts().map(|(_, node)| ask(node)).collect()
}

fn is_master(state: &str) -> bool {
    state.contains("MASTER")
}

#[test]
fn a_standby_of_weft_takes_over_within_its_polls_and_the_first_one_takes_it_back() {
    let fabric = tree();
    let options = [&["--standby", "2"][..], &POLLS].concat();
    let lab = Lab::start(&fabric, &options);
    wait_for(&lab, "sm-2", "standby");
    wait_for(&lab, "sm-3", "standby");
    assert_eq!(managers(&lab)[0].1, "master");
    assert_eq!(managers(&lab).iter().map(|(_, _, priority)| *priority).collect::<Vec<_>>(), [1, 0, 0]);
    let (writes, before) = (settled(&lab), lids(&lab, &fabric));
    let (lid, _, priority, state) = sminfo(&lab, host(&fabric, 4));
    assert!(priority == 1 && is_master(&state), "{priority} {state}");
    // Its process dies without a word.
    output_of(&mut lab.weft(&["fault", "kill", "sm"]));
    wait_for(&lab, "sm-2", "master");
    assert_eq!((settled(&lab), lids(&lab, &fabric)), (writes, before.clone()), "nothing else is written");
    let (later, _, priority, state) = sminfo(&lab, host(&fabric, 4));
    assert!(later != lid && priority == 0 && is_master(&state), "{later} {priority} {state}");
    wait_for(&lab, "sm-3", "standby");
    output_of(&mut lab.weft(&["fault", "restart", "sm"]));
    wait_for(&lab, "sm", "master");
    wait_for(&lab, "sm-2", "standby");
    assert_eq!((settled(&lab), lids(&lab, &fabric)), (writes, before));
    assert_eq!(sminfo(&lab, host(&fabric, 4)).0, lid);
}

fn opensm(lab: &Lab, node: &Node, priority: &str, until: &str) -> OpenSm {
    let mut command = lab.command("opensm", node, &[]);
    command.args(["-p", priority]);
    // It polls as often as weft does here.
    let lines = "sminfo_polling_timeout 500\npolling_retry_number 2\n";
    OpenSm::start_until(command, lab.folder(), lines, until)
}

#[test]
fn opensm_of_higher_priority_is_handed_over_to_and_weft_takes_over_when_it_dies() {
    let fabric = tree();
    let lab = Lab::start(&fabric, &POLLS);
    let before = lids(&lab, &fabric);
    let opensm = opensm(&lab, host(&fabric, 3), "14", "Entering MASTER state");
    wait_for(&lab, "sm", "standby");
    let begun = Instant::now();
    loop {
        let (_, guid, priority, state) = sminfo(&lab, host(&fabric, 4));
        if priority == 14 && is_master(&state) {
            assert_eq!(weft_judges::opensm::hexadecimal(&guid), host(&fabric, 3).ports[1].guid.0);
            break;
        }
        assert!(begun.elapsed() < PATIENCE, "{guid} {priority} {state}");
    }
    drop(opensm);
    wait_for(&lab, "sm", "master");
    settled(&lab);
    assert_eq!(lids(&lab, &fabric), before, "no LID changes");
    let (_, _, priority, state) = sminfo(&lab, host(&fabric, 4));
    assert!(priority == 0 && is_master(&state), "{priority} {state}");
}
