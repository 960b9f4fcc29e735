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
    sminfo_with(lab, node, &[])
}

/// The LID of a host, by `ibaddr`.
fn lid_of(lab: &Lab, node: &Node) -> String {
    let said = output_of(lab.command("ibaddr", node, &[]).arg("-L"));
    said.split_whitespace().last().expect("a LID").to_owned()
}

/// The same with arguments of `sminfo`, such as the LID of another manager.
fn sminfo_with(lab: &Lab, node: &Node, arguments: &[&str]) -> (u64, String, u64, String) {
    let said = output_of(lab.command("sminfo", node, &[]).args(arguments));
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
    fabric.hosts().map(|(_, node)| lid_of(lab, node)).collect()
}

fn is_master(state: &str) -> bool {
    state.contains("MASTER")
}

#[test]
fn a_standby_takes_over_in_time_and_the_first_takes_back() {
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
    let killed = Instant::now();
    wait_for(&lab, "sm-2", "master");
    // 1.5 s by these polls, 50 s by the default ones. Which poll it takes over after is judged in virtual time.
    assert!(killed.elapsed() < Duration::from_secs(40), "{:?}", killed.elapsed());
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
fn weft_hands_over_to_a_higher_opensm_and_succeeds_it() {
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

/// OpenSM, which stands by, does what the operator has weft's master tell it.
fn obeys(lab: &Lab, node: &Node, opensm: &mut OpenSm) {
    let begun = Instant::now();
    while beside_a_stranger(lab).0 != Some(true) {
        assert!(begun.elapsed() < PATIENCE, "the master does not see OpenSM");
    }
    for (verb, states) in [
        ("disable", &["NOTACTIVE"][..]),
        ("standby", &["STANDBY"]),
        ("discover", &["DISCOVERING", "STANDBY"]),
    ] {
        output_of(&mut lab.weft(&["sm", verb, &node.guid.to_string()]));
        states.iter().for_each(|state| opensm.wait_for(&format!("Entering {state} state")));
    }
}

#[test]
fn opensm_of_lower_priority_stands_by_takes_over_and_hands_over() {
    let fabric = tree();
    let options = [&["--priority", "9"][..], &POLLS].concat();
    let lab = Lab::start(&fabric, &options);
    let before = lids(&lab, &fabric);
    let mut opensm = opensm(&lab, host(&fabric, 3), "0", "Entering STANDBY state");
    let (_, _, priority, state) = sminfo(&lab, host(&fabric, 4));
    assert!(priority == 9 && is_master(&state), "{priority} {state}");
    let of_opensm = lid_of(&lab, host(&fabric, 3));
    let (_, guid, priority, state) = sminfo_with(&lab, host(&fabric, 4), &[&of_opensm]);
    assert_eq!(weft_judges::opensm::hexadecimal(&guid), host(&fabric, 3).ports[1].guid.0);
    assert!(priority == 0 && state.contains("STANDBY"), "{priority} {state}");
    obeys(&lab, host(&fabric, 3), &mut opensm);
    output_of(&mut lab.weft(&["fault", "kill", "sm"]));
    opensm.wait_for("Entering MASTER state");
    opensm.wait_for("SUBNET UP");
    settled(&lab);
    assert_eq!(lids(&lab, &fabric), before, "OpenSM keeps LIDs");
    let (lid, _, priority, state) = sminfo(&lab, host(&fabric, 4));
    assert!(lid.to_string() == of_opensm && priority == 0 && is_master(&state), "{lid} {priority} {state}");
    // Trap 144 (IsSM is set) makes OpenSM sweep, find the manager and hand over.
    output_of(&mut lab.weft(&["fault", "restart", "sm"]));
    opensm.wait_for("Entering STANDBY state");
    wait_for(&lab, "sm", "master");
    settled(&lab);
    assert_eq!(lids(&lab, &fabric), before, "and so does weft");
    let (_, _, priority, state) = sminfo(&lab, host(&fabric, 4));
    assert!(priority == 9 && is_master(&state), "{priority} {state}");
}

/// Whether `weft status` trusts the manager that is not the laboratory's, and what the laboratory's own is.
fn beside_a_stranger(lab: &Lab) -> (Option<bool>, String) {
    let status = json(&mut lab.weft(&["status", "--json"]));
    let managers = status["managers"].as_array().expect("a list");
    let stranger = managers.iter().find(|manager| manager["process"].is_null());
    let state = managers[0]["state"].as_str().unwrap_or_default().to_owned();
    (stranger.and_then(|manager| manager["is_trusted"].as_bool()), state)
}

#[test]
fn with_another_key_neither_weft_nor_opensm_hands_over() {
    let fabric = tree();
    let lab = Lab::start(&fabric, &[&["--sm-key", "7"][..], &POLLS].concat());
    // OpenSM's is 1. It sees the master and takes no notice of it.
    let opensm = opensm(&lab, host(&fabric, 3), "14", "that doesn't match our local sm_key");
    let begun = Instant::now();
    while beside_a_stranger(&lab).0.is_none() {
        assert!(begun.elapsed() < PATIENCE, "the manager does not see OpenSM");
    }
    assert_eq!(beside_a_stranger(&lab), (Some(false), "master".to_owned()));
    // One that begins leaves the subnet to the master that it has.
    output_of(&mut lab.weft(&["fault", "restart", "sm"]));
    wait_for(&lab, "sm", "standby");
    assert_eq!(beside_a_stranger(&lab), (Some(false), "standby".to_owned()));
    assert!(output_of(&mut lab.weft(&["status"])).contains("not trusted: the manager"));
    drop(opensm);
    wait_for(&lab, "sm", "master");
    settled(&lab);
}

/// Set(SMInfo) as `sminfo` sends it, which shows SM_Key 0; whether it was answered without an error.
fn command(lab: &Lab, lid: &str, state: &str, modifier: &str) -> bool {
    let mut command = lab.command("sminfo", host(&tree(), 4), &[]);
    command.args(["-s", state, "-p", "14", lid, modifier]).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().expect("it runs").success()
}

const HANDOVER: &str = "1";
const DISABLE: &str = "3";
const STANDBY: &str = "4";
const DISCOVER: &str = "5";

#[test]
fn sminfo_commands_a_manager_that_asks_for_no_key_and_no_other() {
    let fabric = tree();
    let lab = Lab::start(&fabric, &[&["--standby", "1", "--sm-key", "0"][..], &POLLS].concat());
    wait_for(&lab, "sm-2", "standby");
    let lid = lid_of(&lab, host(&fabric, 1));
    assert!(!command(&lab, &lid, "3", STANDBY), "it is in STANDBY");
    assert!(!command(&lab, &lid, "2", DISABLE), "only a master commands");
    assert!(command(&lab, &lid, "3", DISABLE));
    wait_for(&lab, "sm-2", "not-active");
    for refused in [DISABLE, DISCOVER, HANDOVER, "2", "6"] {
        assert!(!command(&lab, &lid, "3", refused), "{refused} in NOT-ACTIVE");
    }
    let (_, _, _, state) = sminfo_with(&lab, host(&fabric, 4), &[&lid]);
    assert!(state.contains("NOTACT"), "{state}");
    assert!(command(&lab, &lid, "3", STANDBY));
    wait_for(&lab, "sm-2", "standby");
    assert!(command(&lab, &lid, "3", DISCOVER));
    wait_for(&lab, "sm-2", "standby");
    // It is in charge until it finds the higher one, which waits for it.
    assert!(command(&lab, &lid, "3", HANDOVER));
    wait_for(&lab, "sm-2", "standby");
    wait_for(&lab, "sm", "master");
    settled(&lab);
    drop(lab);
    let lab = Lab::start(&fabric, &[&["--standby", "1"][..], &POLLS].concat());
    wait_for(&lab, "sm-2", "standby");
    for modifier in [HANDOVER, DISABLE, DISCOVER] {
        assert!(!command(&lab, &lid, "3", modifier), "{modifier} without the key");
    }
    assert_eq!(managers(&lab)[1].1, "standby");
    // Everything that a manager sends counts, this answer too.
    let count = || activity_count(&lab, host(&fabric, 4));
    let (first, second) = (count(), count());
    assert!(first < second, "{first} {second}");
}

/// ActCount of the master, as `sminfo` reads it.
fn activity_count(lab: &Lab, node: &Node) -> u64 {
    let said = output_of(&mut lab.command("sminfo", node, &[]));
    let count = said.split("activity count ").nth(1).and_then(|rest| rest.split_whitespace().next());
    count.and_then(|count| count.parse().ok()).unwrap_or_else(|| panic!("no count in {said}"))
}
