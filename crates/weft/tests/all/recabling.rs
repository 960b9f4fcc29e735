//! Cables and nodes of a laboratory that runs come, move and go, by the verbs of a user.

use std::path::PathBuf;

use common::{Done, Home, text, wait_until};
use serde_json::Value;

use crate::common;

/// A ring of four switches with a host each; ports 4 to 6 of every switch are free.
fn ring(home: &Home) -> PathBuf {
    let path = home.base().with_file_name("ring.topo");
    let options = ["--switches", "4", "--hosts", "1", "--radix", "6", "-o", text(&path)];
    home.weft(&[&["topo", "gen", "ring"][..], &options].concat()).succeeds();
    path
}

fn up(options: &[&str]) -> (Home, PathBuf) {
    let home = Home::new();
    let file = ring(&home);
    home.weft(&[&["up", text(&file)], options].concat()).succeeds();
    (home, file)
}

/// What the agents have is what is written down, and every host reaches every other.
#[track_caller]
fn is_sound(home: &Home) {
    let diff = home.weft(&["topo", "diff"]);
    diff.succeeds();
    assert!(diff.stdout.is_empty(), "{}", diff.stdout);
    let mut last = home.weft(&["check"]);
    wait_until("`weft check` is content", || {
        let is_content = last.code == 0;
        if !is_content {
            last = home.weft(&["check"]);
        }
        is_content
    });
}

/// The cables between nodes, by their labels.
fn cables(home: &Home) -> Vec<(String, String)> {
    let links = home.json(&["links", "--json"]);
    let end = |end: &Value| format!("{}:{}", end["node"].as_str().unwrap(), end["port"]);
    links.as_array().unwrap().iter().map(|link| (end(&link["a"]), end(&link["b"]))).collect()
}

fn has(home: &Home, a: &str, b: &str) -> bool {
    let wanted = [(a.to_owned(), b.to_owned()), (b.to_owned(), a.to_owned())];
    cables(home).iter().any(|cable| wanted.contains(cable))
}

fn topo(home: &Home, arguments: &[&str]) -> Done {
    home.weft(&[&["topo"], arguments].concat())
}

#[test]
fn cables_come_move_and_go_and_stay_so_over_restarts() {
    let (home, file) = up(&[]);
    let same = topo(&home, &["diff", text(&file)]);
    same.succeeds();
    assert!(same.stderr.contains("the cablings are the same"), "{}", same.stderr);
    let done = topo(&home, &["connect", "switch-0:5", "switch-2:5"]);
    done.succeeds();
    assert!(done.stderr.contains("connected switch-0:5 - switch-2:5, 4x"), "{}", done.stderr);
    assert!(!done.stderr.contains("warning"), "{}", done.stderr);
    is_sound(&home);
    let more = topo(&home, &["diff", text(&file)]);
    assert_eq!((more.code, more.stdout.lines().count()), (1, 1), "{}", more.stdout);
    assert!(more.stdout.starts_with("+ cable "), "{}", more.stdout);
    // The ring is cut, and the chord keeps it together.
    topo(&home, &["disconnect", "switch-1:3"]).succeeds();
    assert!(!has(&home, "switch-0:2", "switch-1:3"));
    is_sound(&home);
    let moved = home.json(&["topo", "move", "host-3:1", "switch-1:6", "--json"]);
    assert_eq!(moved["taken_out"][0]["b"], "switch-3:1", "{moved}");
    assert_eq!(
        (&moved["put_in"][0]["b"], &moved["links_up"]),
        (&"switch-1:6".into(), &true.into()),
        "{moved}"
    );
    assert!(has(&home, "host-3:1", "switch-1:6"));
    is_sound(&home);
    let told = topo(&home, &["diff", text(&file), "--json"]);
    assert_eq!(told.code, 1, "{}", told.stderr);
    let told: Value = serde_json::from_str(&told.stdout).unwrap();
    let kinds: Vec<&str> =
        told.as_array().unwrap().iter().map(|one| one["difference"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["missing_cable", "missing_cable", "extra_cable", "extra_cable"], "{told}");
    // All that the move touched begins again, and the cables are where they were put.
    for node in ["host-3", "switch-1", "switch-0", "switch-2"] {
        home.weft(&["fault", "restart", node]).succeeds();
    }
    is_sound(&home);
    assert!(has(&home, "switch-0:5", "switch-2:5") && has(&home, "host-3:1", "switch-1:6"));
    // The fabric reported it by itself.
    let events = home.weft(&["events", "--fields"]).succeeds().stdout.clone();
    for word in ["cable-connected", "cable-disconnected", "trap-sent"] {
        assert!(events.contains(word), "{word}");
    }
}

#[test]
fn impossible_recabling_is_refused_and_changes_nothing() {
    let (home, file) = up(&["--no-sm"]);
    let refused = |arguments: &[&str], code: i32, says: &str| {
        let done = topo(&home, arguments);
        done.fails(code, says);
        assert_eq!(
            done.stderr.lines().filter(|line| line.starts_with("error:")).count(),
            1,
            "{}",
            done.stderr
        );
    };
    refused(&["connect", "switch-0:4", "switch-9:1"], 2, "switch-9");
    refused(&["connect", "switch-0:4", "switch-1:7"], 2, "`switch-1` has ports 1 to 6, not 7");
    refused(&["connect", "switch-0:4", "switch-1"], 2, "is not NODE:PORT");
    refused(&["connect", "switch-0:4", "switch-0:4"], 2, "cannot be cabled to itself");
    refused(&["connect", "switch-0:4", "switch-1:1"], 2, "a cable to host-1:1 is in switch-1:1 already");
    refused(
        &["connect", "switch-0:4", "switch-1:1"],
        2,
        "hint: take it out with `weft topo disconnect 'switch-1:1'`",
    );
    refused(&["disconnect", "switch-0:4"], 2, "no cable is in switch-0:4");
    refused(&["move", "host-0:1", "switch-1:1"], 2, "a cable to host-1:1 is in switch-1:1 already");
    refused(&["move", "host-0:1", "switch-0:1"], 2, "leads to switch-0:1 already");
    refused(&["add-host", "host-0", "--at", "switch-0:4"], 2, "`host-0` names a node already");
    refused(&["add-host", "new", "--at", "switch-0:1"], 2, "a cable to host-0:1 is in switch-0:1 already");
    refused(&["add-host", "sm-2", "--at", "switch-0:4"], 2, "cannot name a node");
    refused(&["add-switch", "new", "--ports", "2", "--connect", "3=switch-0:4"], 2, "ports 1 to 2, not 3");
    refused(&["add-switch", "new", "--ports", "2", "--connect", "switch-0:4"], 2, "is not PORT=NODE:PORT");
    home.weft(&["fault", "kill", "switch-1"]).succeeds();
    refused(&["connect", "switch-0:4", "switch-1:4"], 1, "the agent of `switch-1` is not running");
    refused(
        &["move", "host-0:1", "switch-1:4"],
        1,
        "hint: start it with `weft fault restart switch-1` first",
    );
    // A dead agent's cables count as missing; they are there again with it.
    let missing = topo(&home, &["diff"]);
    assert_eq!(missing.code, 1, "{}", missing.stdout);
    assert!(missing.stderr.contains("1 agent not running"), "{}", missing.stderr);
    home.weft(&["fault", "restart", "switch-1"]).succeeds();
    wait_until("the links of switch-1", || topo(&home, &["diff"]).code == 0);
    topo(&home, &["diff", text(&file)]).succeeds();
    home.weft(&["down"]).succeeds();
    topo(&home, &["connect", "a:1", "b:1"]).fails(1, "no laboratory is running");
    topo(&home, &["diff"]).fails(1, "no laboratory is running");
}

#[test]
fn nodes_come_work_and_go() {
    let (home, file) = up(&["--metrics"]);
    let before = home.json(&["status", "--json"])["processes"]["expected"].as_u64().unwrap();
    let added = home.json(&["topo", "add-host", "new host", "--at", "switch-2:4", "--json"]);
    assert_eq!((&added["added"]["agent"], &added["links_up"]), (&"a0008".into(), &true.into()), "{added}");
    let guid = added["added"]["guid"].as_str().unwrap().to_owned();
    is_sound(&home);
    let status = home.json(&["status", "--json"]);
    assert_eq!(status["processes"]["expected"], before + 1, "{status}");
    assert_eq!(status["sm"]["last"]["hosts"], 5, "{status}");
    topo(
        &home,
        &["add-switch", "spine", "--ports", "8", "--connect", "1=switch-0:4", "--connect", "8=switch-1:4"],
    )
    .succeeds();
    topo(&home, &["connect", "spine:2", "switch-3:4"]).succeeds();
    is_sound(&home);
    let trace = home.json(&["trace", "new host", "host-1", "--json"]);
    assert!(trace.to_string().contains("host-1"), "{trace}");
    // As every other node: killed, restarted, listed, scraped.
    for node in ["new host", "spine"] {
        home.weft(&["fault", "kill", node]).succeeds();
        home.weft(&["fault", "restart", node]).succeeds();
    }
    is_sound(&home);
    let processes = home.json(&["ps", "--json"]);
    let ours: Vec<&Value> =
        processes.as_array().unwrap().iter().filter(|process| process["process"] == "a0008").collect();
    assert_eq!(ours.len(), 1, "{processes}");
    assert_eq!(ours[0]["devices"][0]["guid"], guid.as_str(), "{processes}");
    let scraped = home.weft(&["metrics"]).succeeds().stdout.clone();
    assert!(scraped.contains("a0008") && scraped.contains("a0009"), "{scraped}");
    // One goes again, with its cable and its identity.
    let gone = home.json(&["topo", "remove", "new host", "--json"]);
    assert_eq!(gone["removed"], "new host", "{gone}");
    is_sound(&home);
    assert!(!home.lab("default").join("identities/a0008.pem").exists());
    let expected = || home.json(&["status", "--json"])["processes"]["expected"].as_u64().unwrap();
    assert_eq!(expected(), before + 1);
    // Its name is not given again, also by a new hub.
    home.weft(&["fault", "restart", "hub"]).succeeds();
    assert_eq!(expected(), before + 1);
    let again = home.json(&["topo", "add-host", "new host", "--at", "switch-2:4", "--json"]);
    assert_eq!(again["added"]["agent"], "a0010", "{again}");
    assert_ne!(again["added"]["guid"], guid.as_str());
    is_sound(&home);
    let seat = home.json(&["status", "--json"])["managers"][0]["guid"].as_str().unwrap().to_owned();
    topo(&home, &["remove", &seat]).fails(2, "a subnet manager sits at");
    let pids: Vec<u32> = home.processes().into_iter().map(|(_, pid)| pid).collect();
    home.weft(&["down"]).succeeds();
    assert!(home.is_empty() && pids.iter().all(|pid| *pid == 0 || !common::runs(*pid)), "{pids:?}");
    drop(file);
}

#[test]
fn without_the_authoritys_key_no_node_comes_and_cables_do() {
    let home = Home::new();
    let file = ring(&home);
    let bundle = home.base().with_file_name("bundle");
    home.weft(&["plan", text(&file), "--out", text(&bundle)]).succeeds();
    home.weft(&["up", "--bundle", text(&bundle)]).succeeds();
    topo(&home, &["add-host", "new", "--at", "switch-0:4"])
        .fails(1, "no identity can be issued for a0008")
        .fails(1, "with --in DIR");
    topo(&home, &["connect", "switch-0:5", "switch-2:5"]).succeeds();
    is_sound(&home);
    let other = home.base().with_file_name("other");
    home.weft(&["plan", text(&file), "--out", text(&other)]).succeeds();
    let add = ["add-host", "new", "--at", "switch-0:4", "--in"];
    topo(&home, &[&add[..], &[text(&other)]].concat()).fails(1, "has another authority");
    topo(&home, &[&add[..], &[text(&bundle)]].concat()).succeeds();
    is_sound(&home);
}

#[test]
fn packed_devices_prove_to_be_those_that_others_see() {
    let (home, _) = up(&["--pack", "all"]);
    // One agent: no device of it had to prove anything before.
    topo(&home, &["add-host", "new", "--at", "switch-2:4"]).succeeds();
    is_sound(&home);
    topo(&home, &["move", "host-0:1", "switch-2:6"]).succeeds();
    topo(&home, &["remove", "host-0"]).fails(2, "shares its agent a0000 with");
    is_sound(&home);
    home.weft(&["fault", "restart", "switch-0"]).succeeds();
    is_sound(&home);
}

/// The other one is somebody else's, and knows of the first only what the machine tells it.
#[test]
fn dead_agents_keep_their_ports_when_another_lab_starts() {
    let (home, _) = up(&["--pack", "all"]);
    topo(&home, &["add-host", "new", "--at", "switch-2:4"]).succeeds();
    for node in ["switch-0", "new"] {
        home.weft(&["fault", "kill", node]).succeeds();
    }
    let (other, _) = up(&[]);
    for node in ["switch-0", "new"] {
        home.weft(&["fault", "restart", node]).succeeds();
    }
    is_sound(&home);
    is_sound(&other);
}

/// The serial number of an identity that a laboratory's folder has.
fn serial(home: &Home, agent: &str) -> weft_link::Serial {
    let read = |file: &str| std::fs::read_to_string(home.lab("default").join(file)).unwrap();
    let identity = weft_link::Identity::from_pem(&read("ca.pem"), read(&format!("identities/{agent}.pem")));
    identity.serial().unwrap()
}

fn revoked(home: &Home) -> weft_link::RevocationList {
    let list = std::fs::read_to_string(home.lab("default").join("revoked.pem")).unwrap();
    weft_link::RevocationList::parse(&list).unwrap()
}

#[test]
fn the_identity_of_a_node_that_was_removed_is_revoked() {
    let (home, _) = up(&[]);
    topo(&home, &["add-host", "new", "--at", "switch-2:4"]).succeeds();
    let serial = serial(&home, "a0008");
    let gone = topo(&home, &["remove", "new"]);
    assert!(!gone.succeeds().stderr.contains("warning"), "{}", gone.stderr);
    assert!(revoked(&home).has(&serial));
    let told = home.weft(&["events", "--json"]).succeeds().stdout.clone();
    assert!(told.contains("identities-revoked"), "those that run are told");
    is_sound(&home);
}

#[test]
fn without_the_authority_key_remove_warns_of_a_valid_identity() {
    let home = Home::new();
    let file = ring(&home);
    let bundle = home.base().with_file_name("bundle");
    home.weft(&["plan", text(&file), "--out", text(&bundle)]).succeeds();
    home.weft(&["up", "--bundle", text(&bundle)]).succeeds();
    let processes = home.json(&["ps", "--json"]);
    // The subnet manager sits at the first host.
    let hosts = processes.as_array().unwrap().iter().filter_map(|process| {
        let name = process["devices"][0]["label"].as_str()?;
        ["host-1", "host-2"]
            .contains(&name)
            .then(|| (name.to_owned(), process["process"].as_str().unwrap().to_owned()))
    });
    let hosts: Vec<(String, String)> = hosts.collect();
    let [(first, first_agent), (second, second_agent), ..] = hosts.as_slice() else { panic!("{processes}") };
    let number = serial(&home, first_agent);
    let said = topo(&home, &["remove", first]).succeeds().stderr.clone();
    assert!(said.contains(&format!("the identity of {first_agent} stays valid until it expires")), "{said}");
    let command = format!("weft identity revoke --serial {number} --in DIR");
    assert!(said.contains(&command), "{said}");
    home.weft(&["identity", "revoke", "--serial", &number.to_string(), "--in", text(&bundle)]).succeeds();
    assert!(revoked(&home).has(&number));
    // Where the key is named it is used at once.
    let number = serial(&home, second_agent);
    topo(&home, &["remove", second, "--in", text(&bundle)]).succeeds();
    assert!(revoked(&home).has(&number));
    is_sound(&home);
}
