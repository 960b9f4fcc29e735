//! `weft identity`: identities are revoked and renewed while a laboratory runs.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use common::ports::free_port;
use common::{Home, Running, text, wait_until};
use serde_json::Value;

use crate::common;

/// What acceptance asks of a revocation.
const REACHES: Duration = Duration::from_secs(5);

fn state_of(home: &Home, name: &str) -> String {
    let listed = home.json(&["identity", "ls", "--json"]);
    let row = listed.as_array().unwrap().iter().find(|row| row["name"] == name).unwrap().clone();
    row["state"].as_str().unwrap().to_owned()
}

fn links_of(home: &Home, agent: &str) -> u64 {
    home.json(&["ask", agent, "agent-status"])["links_up"].as_u64().unwrap()
}

#[test]
fn a_revoked_agent_is_alone_until_it_has_another_identity() {
    let home = Home::new();
    let tree = home.small_tree();
    home.weft(&["up", text(&tree)]).succeeds();
    let before = links_of(&home, "a0000");
    assert!(before > 0);
    let mut events = home.events();
    let begun = Instant::now();
    let said = home.weft(&["identity", "revoke", "a0000"]);
    assert!(said.succeeds().stderr.contains("running processes updated"), "{}", said.stderr);
    events.wait_for("a peer ends its link for that reason", |event| {
        event["event"] == "link-down" && event["source"] != "a0000" && event.to_string().contains("revoked")
    });
    wait_until("all its links have ended", || links_of(&home, "a0000") == 0);
    assert!(begun.elapsed() < REACHES, "{:?} from the command to the last link", begun.elapsed());
    assert!(state_of(&home, "a0000").starts_with("revoked on "), "{}", state_of(&home, "a0000"));
    assert_eq!(home.weft(&["check"]).code, 1);

    // A peer that begins again knows it, too.
    home.weft(&["fault", "kill", "host-0"]).succeeds();
    home.weft(&["fault", "restart", "host-0"]).succeeds();
    let said = home.weft(&["identity", "renew", "a0000"]);
    assert!(said.succeeds().stderr.contains("1 running process renewed"), "{}", said.stderr);
    wait_until("all its links are back", || links_of(&home, "a0000") == before);
    assert_eq!(state_of(&home, "a0000"), "valid");
    wait_until("every host reaches every other", || home.weft(&["check"]).code == 0);
}

/// Those that manage the fabric over the network: each attachment ends, and none comes about until there is another identity.
#[test]
fn a_revoked_manager_is_cut_off_until_it_has_a_new_identity() {
    let home = Home::new();
    let tree = home.small_tree();
    let managers = ["sm", "sm-2", "pm", "vmm"];
    let up = ["up", "--attach-managers", "quic", "--pm", "--standby", "1", "--vfs", "1", "--lids", "dynamic"];
    home.weft(&[&up[..], &[text(&tree)]].concat()).succeeds();
    let mut events = home.events();
    let attached = RefCell::new(BTreeSet::new());
    events.wait_for("all managers are attached", |event| {
        if event["event"] == "attached" {
            attached.borrow_mut().insert(event["source"].as_str().unwrap().to_owned());
        }
        attached.borrow().iter().eq(["pm", "sm", "sm-2", "vmm"])
    });
    let agent_of = |manager: &str| -> String {
        let part = std::fs::read(home.lab("default").join(format!("managers/{manager}.json"))).unwrap();
        let part: Value = serde_json::from_slice(&part).unwrap();
        part["seat"]["agent"].as_str().unwrap().to_owned()
    };
    let programs = || -> Vec<u64> {
        let status =
            |agent: String| home.json(&["ask", &agent, "agent-status"])["programs"].as_u64().unwrap();
        managers.map(|manager| status(agent_of(manager))).to_vec()
    };
    let attached = programs();
    assert!(attached.iter().all(|count| *count > 0), "{attached:?}");

    for (nth, manager) in managers.into_iter().enumerate() {
        let begun = Instant::now();
        home.weft(&["identity", "revoke", manager]).succeeds();
        events.wait_for("its end", |event| event["event"] == "detached" && event["source"] == manager);
        wait_until("its agent knows of no program", || programs()[nth] < attached[nth]);
        assert!(begun.elapsed() < REACHES, "{manager}: {:?} from the command", begun.elapsed());
    }
    assert!(programs().iter().zip(&attached).all(|(now, before)| now < before), "one has come back");
    home.weft(&["identity", "renew", "sm", "sm-2", "pm", "vmm"]).succeeds();
    wait_until("all are attached again", || programs() == attached);
    wait_until("every host reaches every other", || home.weft(&["check"]).code == 0);
}

#[test]
fn all_identities_are_renewed_while_the_laboratory_runs() {
    let home = Home::new();
    let tree = home.small_tree();
    home.weft(&["up", "--pack", "3", text(&tree)]).succeeds();
    let serials = |listed: Value| -> Vec<Value> {
        listed.as_array().unwrap().iter().map(|row| row["serial"].clone()).collect()
    };
    let before = serials(home.json(&["identity", "ls", "--json"]));
    home.weft(&["identity", "renew", "--all", "--revoke-old"]).succeeds();
    let after = serials(home.json(&["identity", "ls", "--json"]));
    assert!(before.iter().all(|serial| !after.contains(serial)) && before.len() == after.len());
    wait_until("every host reaches every other", || home.weft(&["check"]).code == 0);
    home.weft(&["down"]).succeeds();
    assert!(home.is_empty());
}

#[test]
fn an_operator_s_stolen_identity_is_of_no_use_at_the_hub_s_door() {
    let (home, user) = (Home::new(), Home::new());
    let port = free_port().to_string();
    let tree = home.small_tree();
    home.weft(&["up", "--pack", "4", "--hub-door", &port, text(&tree)]).succeeds();
    let folder = home.lab("default");
    let read = |name: &str| std::fs::read_to_string(folder.join(name)).unwrap();
    let stolen = user.write("stolen.pem", &read("identities/operator.pem"));
    user.write("ca.pem", &read("ca.pem"));
    let at = format!("127.0.0.1:{port}");
    let with = |identity: &str| user.weft(&["--at", &at, "--identity", identity, "status"]);
    with(text(&stolen)).succeeds();
    home.weft(&["identity", "renew", "operator", "--revoke-old"]).succeeds();
    with(text(&stolen)).fails(1, "Revoked");
    let own = folder.join("identities/operator.pem");
    with(text(&own)).succeeds();
    // One who follows is cut off, and does not stay.
    let viewer = read("identities/viewer.pem");
    let viewer = user.write("viewer.pem", &viewer);
    let follow = ["--at", &at, "--identity", text(&viewer), "events", "--fields", "--follow"];
    let follow = [&follow[..], &["--since", "start"]].concat();
    let mut follower = Running::start(&user, &follow);
    follower.wait_for_line("subnet-up");
    let begun = Instant::now();
    // And from a remote user, with the authority at hand.
    let far = user.weft(&[
        "--at",
        &at,
        "--identity",
        text(&own),
        "identity",
        "revoke",
        "viewer",
        "--in",
        text(&folder),
    ]);
    far.succeeds();
    wait_until("the viewer that followed has ended", || !follower.is_running());
    assert!(begun.elapsed() < REACHES, "{:?}", begun.elapsed());
    assert_eq!(follower.end().code(), Some(1));
    let renewal =
        ["--at", &at, "--identity", text(&own), "identity", "renew", "a0000", "--in", text(&folder)];
    user.weft(&renewal).fails(2, "hint: renew without --at");
    with(text(&folder.join("identities/viewer.pem"))).fails(1, "Revoked");
}

#[test]
fn wrong_names_numbers_and_folders_are_told_in_words() {
    let home = Home::new();
    let tree = home.small_tree();
    let bundle = home.base().join("x");
    home.weft(&["plan", text(&tree), "--out", text(&bundle)]).succeeds();
    let folder = text(&bundle);
    home.weft(&["identity", "revoke", "a9999", "--in", folder]).fails(2, "no process is called `a9999`");
    home.weft(&["identity", "revoke", "--serial", "xyz", "--in", folder]).fails(2, "hexadecimal digits");
    home.weft(&["identity", "ls", "--in", "nowhere"]).fails(1, "nowhere");
    home.weft(&["identity", "ls"]).fails(1, "hint: ");
    // Without a laboratory that runs, the list is for those that begin later.
    home.weft(&["identity", "revoke", "a0000", "viewer", "--in", folder]).succeeds();
    let listed = home.weft(&["identity", "ls", "--in", folder]);
    assert_eq!(listed.succeeds().stdout.matches("revoked on ").count(), 2, "{}", listed.stdout);
    // A bundle without the authority's key can list, and nothing else.
    std::fs::remove_file(bundle.join("ca.key")).unwrap();
    home.weft(&["identity", "ls", "--in", folder]).succeeds();
    home.weft(&["identity", "renew", "a0001", "--in", folder]).fails(1, "ca.key");
    home.weft(&["identity", "revoke", "a0001", "--in", folder]).fails(1, "ca.key");
    // A list that is none keeps processes from beginning, and says which file it is.
    std::fs::write(bundle.join("revoked.pem"), "nonsense").unwrap();
    home.weft(&["identity", "ls", "--in", folder]).fails(1, "revoked.pem");
    home.weft(&["up", "--bundle", folder]).fails(1, "revoked.pem");
}
