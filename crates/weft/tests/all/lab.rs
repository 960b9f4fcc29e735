//! Laboratories of real processes: coming up, being interrupted, being killed, going down.

use std::path::Path;
use std::process::Stdio;

use common::{Home, Running, runs, signal, text, wait_until};
use rustix::process::Signal;
use serde_json::Value;

use crate::common;

/// Everything that is left of these processes and of the home.
#[track_caller]
fn nothing_left(home: &Home, processes: &[(String, u32)]) {
    assert!(home.is_empty(), "a folder is left");
    for (name, pid) in processes {
        assert!(*pid == 0 || !runs(*pid), "{name} ({pid}) still runs");
    }
}

#[test]
fn up_and_down() {
    let home = Home::new();
    let file = home.small_tree();
    let up = home.json(&["up", text(&file), "--no-sm", "--json"]);
    let phases: Vec<_> =
        up["phases"].as_array().unwrap().iter().map(|p| (p["phase"].as_str(), p["count"].as_u64())).collect();
    assert_eq!(phases, [(Some("agents started"), Some(8)), (Some("links up"), Some(16))]);
    let processes = home.processes();
    assert_eq!(processes.len(), 9, "eight agents and the hub");
    assert!(processes.iter().all(|(_, pid)| runs(*pid)));
    let links = home.json(&["links", "--json"]);
    assert_eq!(links.as_array().unwrap().len(), 8);
    for link in links.as_array().unwrap() {
        assert_eq!(link["state"], "Initialize", "{link}");
    }
    home.weft(&["down"]).succeeds();
    nothing_left(&home, &processes);
    home.weft(&["down"]).succeeds();
}

#[test]
fn packed_agents() {
    let home = Home::new();
    let file = home.small_tree();
    for (pack, count) in [("3", 3), ("all", 1)] {
        home.weft(&["up", text(&file), "--no-sm", "--pack", pack]).succeeds();
        assert_eq!(home.processes().len(), count + 1, "agents and the hub");
        let links = home.json(&["links", "--json"]);
        assert!(links.as_array().unwrap().iter().all(|link| link["state"] == "Initialize"), "{links}");
        home.weft(&["down"]).succeeds();
    }
}

/// The agent forgets the event of its links before the hub reads it.
#[test]
fn more_ports_than_events_are_remembered_come_up_in_one_agent() {
    let home = Home::new();
    let file = home.write("large.topo", "");
    let shape = ["topo", "gen", "xgft", "--children", "18,18,18", "--parents", "1,18,18", "-o", text(&file)];
    home.weft(&shape).succeeds();
    let up = home.json(&["up", text(&file), "--no-sm", "--pack", "all", "--json"]);
    assert_eq!(up["phases"][1]["count"], 34_992, "{up}");
    home.weft(&["down"]).succeeds();
}

#[test]
fn a_laboratory_that_runs_already_is_left_alone() {
    let home = Home::new();
    let file = home.small_tree();
    home.weft(&["up", text(&file), "--no-sm", "--lab", "x"]).succeeds();
    let before = home.processes();
    home.weft(&["up", text(&file), "--no-sm", "--lab", "x"])
        .fails(1, "a laboratory `x` is already running")
        .fails(1, "weft down --lab x");
    assert_eq!(home.processes(), before);
    let port =
        home.json(&["ps", "--json"])[0]["address"].as_str().unwrap().rsplit_once(':').unwrap().1.to_owned();
    home.weft(&["up", text(&file), "--no-sm", "--lab", "y", "--udp-port", &port])
        .fails(1, "belong to the laboratory `x`");
    home.weft(&["up", text(&file), "--no-sm", "--lab", "y"]).succeeds();
    home.weft(&["ps"]).fails(1, "several laboratories are running").fails(1, "x, y");
    home.weft(&["ps", "--lab", "y"]).succeeds();
    home.weft(&["ps", "--lab", "z"]).fails(1, "no laboratory `z` is running");
    home.weft(&["down", "--all"]).succeeds();
    nothing_left(&home, &before);
}

#[test]
fn an_interrupt_in_the_foreground_leaves_nothing() {
    for which in [Signal::INT, Signal::TERM, Signal::HUP, Signal::QUIT] {
        let home = Home::new();
        let file = home.small_tree();
        let mut up = Running::start(&home, &["up", text(&file), "--no-sm", "--foreground"]);
        up.wait_for_line("links up");
        let processes = home.processes();
        up.signal(which);
        assert_eq!(up.end().code(), Some(0));
        nothing_left(&home, &processes);
    }
}

#[test]
fn faults_do_not_end_a_laboratory_in_the_foreground() {
    let home = Home::new();
    let file = home.small_tree();
    let mut up =
        Running::start(&home, &["up", text(&file), "--no-sm", "--foreground", "--link-timeout-ms", "500"]);
    up.wait_for_line("links up");
    home.weft(&["fault", "link-down", "switch-1-0:3"]).succeeds();
    home.weft(&["fault", "kill", "switch-1-0"]).succeeds();
    let mut events = home.events();
    events.wait_for("a neighbour sees the kill", |event| {
        event["event"] == "link-down" && event["node"] == "host-0"
    });
    home.weft(&["fault", "restart", "switch-1-0"]).succeeds();
    home.weft(&["fault", "restart", "host-1"]).succeeds();
    let processes = home.processes();
    assert!(processes.iter().all(|(_, pid)| *pid != 0 && runs(*pid)), "{processes:?}");
    assert!(up.is_running(), "`up` has ended");
    up.signal(Signal::INT);
    assert_eq!(up.end().code(), Some(0));
    nothing_left(&home, &processes);
}

#[test]
fn an_interrupt_while_coming_up_leaves_nothing() {
    let home = Home::new();
    let file = home.small_tree();
    let up = Running::start(&home, &["up", text(&file), "--no-sm"]);
    wait_until("the hub serves", || home.lab("default").join("control/hub").exists());
    let processes = home.processes();
    up.signal(Signal::INT);
    let status = up.end();
    // It may have come up just before the signal: then it stays, as it should.
    if status.code() == Some(0) {
        home.weft(&["down"]).succeeds();
    } else {
        assert_eq!(status.code(), Some(130), "{status}");
    }
    nothing_left(&home, &processes);
}

#[test]
fn a_killed_up_leaves_agents_that_down_finds() {
    let home = Home::new();
    let file = home.small_tree();
    let mut up = Running::start(&home, &["up", text(&file), "--no-sm", "--foreground"]);
    up.wait_for_line("links up");
    up.signal(Signal::KILL);
    up.end();
    let processes = home.processes();
    assert_eq!(processes.len(), 9, "eight agents and the hub");
    assert!(processes.iter().all(|(_, pid)| runs(*pid)), "agents go on without `up`");
    home.weft(&["down"]).succeeds();
    nothing_left(&home, &processes);
}

/// The hub brings up what `up` has begun.
#[test]
fn an_up_that_is_killed_leaves_a_laboratory_that_comes_up() {
    let home = Home::new();
    let file = home.small_tree();
    let up = Running::start(&home, &["up", text(&file)]);
    wait_until("the hub serves", || home.lab("default").join("control/hub").exists());
    up.signal(Signal::KILL);
    up.end();
    home.events().wait_for("the subnet is up", |event| event["event"] == "subnet-up");
    home.weft(&["check"]).succeeds();
    let processes = home.processes();
    assert!(processes.iter().all(|(_, pid)| runs(*pid)), "{processes:?}");
    home.weft(&["down"]).succeeds();
    nothing_left(&home, &processes);
}

/// Two hosts' agents, of which one cannot have its port.
#[test]
fn a_failing_agent_is_named_and_nothing_is_left_running() {
    let home = Home::new();
    let file = home.small_tree();
    let bundle = home.base().with_file_name("bundle");
    home.weft(&["plan", text(&file), "--out", text(&bundle)]).succeeds();
    // Its identity is another's.
    std::fs::copy(bundle.join("identities/a0000.pem"), bundle.join("identities/a0001.pem")).unwrap();
    let up = home.weft(&["up", "--bundle", text(&bundle)]);
    up.fails(1, "the agent a0001 (`").fails(1, " failed: ").fails(1, "hint: nothing is left running");
    assert!(home.is_empty(), "{}", up.stderr);
}

#[test]
fn an_up_killed_half_way_leaves_nothing_after_down() {
    let home = Home::new();
    let file = home.small_tree();
    let up = Running::start(&home, &["up", text(&file), "--no-sm"]);
    wait_until("the hub serves", || home.lab("default").join("control/hub").exists());
    up.signal(Signal::KILL);
    up.end();
    let processes = home.processes();
    home.weft(&["down", "--all"]).succeeds();
    nothing_left(&home, &processes);
}

#[test]
fn up_clears_the_remains_of_a_crash() {
    let home = Home::new();
    let file = home.small_tree();
    home.weft(&["up", text(&file), "--no-sm"]).succeeds();
    let processes = home.processes();
    for (_, pid) in &processes {
        signal(*pid, Signal::KILL);
    }
    wait_until("the killed agents are gone", || !processes.iter().any(|(_, pid)| runs(*pid)));
    home.weft(&["up", text(&file), "--no-sm"]).succeeds();
    assert!(home.processes().iter().all(|(_, pid)| runs(*pid)));
    home.weft(&["down"]).succeeds();
    nothing_left(&home, &processes);
}

#[test]
fn a_killed_agent_is_noticed_and_comes_back() {
    let home = Home::new();
    let file = home.small_tree();
    home.weft(&["up", text(&file), "--no-sm", "--link-timeout-ms", "500"]).succeeds();
    let mut events = home.events();
    home.weft(&["fault", "kill", "host-0"]).succeeds();
    assert_eq!(home.processes().iter().filter(|(_, pid)| *pid == 0).count(), 1);
    let at_leaf = |event: &Value, name: &str| {
        event["event"] == name && event["node"] == "switch-1-0" && event["port"] == 1
    };
    events.wait_for("the leaf sees the link go", |event| at_leaf(event, "link-down"));
    home.weft(&["fault", "restart", "host-0"]).succeeds();
    events.wait_for("the link is back", |event| at_leaf(event, "link-up"));
    let links = home.json(&["links", "--json"]);
    let link = links.as_array().unwrap().iter().find(|link| link["a"]["node"] == "host-0").unwrap();
    assert_eq!(link["b"]["totals"]["link_downed"], 1, "{link}");
    assert_eq!(link["a"]["totals"]["link_downed"], 0, "a restarted device has lost its counters: {link}");
    home.weft(&["fault", "kill", "nobody"]).fails(2, "`nobody`");
}

#[test]
fn a_quick_restart_is_seen_too() {
    let home = Home::new();
    let file = home.small_tree();
    home.weft(&["up", text(&file), "--no-sm", "--link-timeout-ms", "2000"]).succeeds();
    let mut events = home.events();
    home.weft(&["fault", "restart", "switch-2-0"]).succeeds();
    for name in ["link-down", "link-up"] {
        events.wait_for(name, |event| {
            event["event"] == name && event["node"] == "switch-1-0" && event["port"] == 3
        });
    }
}

#[test]
fn a_cable_is_unplugged_and_plugged_in() {
    let home = Home::new();
    let file = home.small_tree();
    home.weft(&["up", text(&file), "--no-sm"]).succeeds();
    home.weft(&["fault", "link-down", "switch-1-0:3"]).succeeds();
    let state = |home: &Home| {
        let links = home.json(&["links", "--json"]);
        let found = links
            .as_array()
            .unwrap()
            .iter()
            .find(|link| link["a"]["node"] == "switch-1-0" && link["a"]["port"] == 3);
        found.unwrap().clone()
    };
    let down = state(&home);
    assert_eq!(
        (&down["state"], &down["a"]["plugged"], &down["b"]["plugged"]),
        (&"Down".into(), &false.into(), &false.into())
    );
    let mut events = home.events();
    home.weft(&["fault", "link-up", "switch-1-0:3"]).succeeds();
    events.wait_for("plugged in by weft", |event| event["event"] == "fault" && event["fault"] == "link-up");
    events.wait_for("the link is back", |event| event["event"] == "link-up" && event["node"] == "switch-2-0");
    assert_eq!(state(&home)["a"]["plugged"], true);
    home.weft(&["fault", "link-down", "switch-1-0:9"]).fails(2, "has ports 1 to 4, not 9");
    home.weft(&["fault", "link-down", "switch-1-0"]).fails(2, "is not NODE:PORT");
}

#[test]
fn a_peer_with_a_wrong_certificate_is_refused_and_counted() {
    let home = Home::new();
    let file = home.small_tree();
    home.weft(&["up", text(&file), "--no-sm"]).succeeds();
    let processes = home.json(&["ps", "--json"]);
    let host = processes.as_array().unwrap().iter().find(|p| p["devices"][0]["label"] == "host-0").unwrap();
    home.weft(&["fault", "kill", "host-0"]).succeeds();
    home.make_stranger(host["process"].as_str().unwrap());
    let mut events = home.events();
    home.weft(&["fault", "restart", "host-0"]).succeeds();
    let refused = events
        .wait_for("a refusal", |event| event["event"].as_str().is_some_and(|name| name.contains("refused")));
    assert!(refused["source"].is_string(), "{refused}");
    let links = home.json(&["links", "--json"]);
    let link = links.as_array().unwrap().iter().find(|link| link["a"]["node"] == "host-0").unwrap();
    assert_ne!(link["state"], "Initialize", "{link}");
    let refusals = |end: &str| link[end]["totals"]["peers_refused"].as_u64().unwrap_or(0);
    assert!(refusals("a") + refusals("b") > 0, "{link}");
}

#[test]
fn a_port_taken_meanwhile_is_named() {
    let home = Home::new();
    let file = home.small_tree();
    home.weft(&["up", text(&file), "--no-sm"]).succeeds();
    home.weft(&["fault", "kill", "host-0"]).succeeds();
    let processes = home.json(&["ps", "--json"]);
    let host = processes.as_array().unwrap().iter().find(|p| p["state"] == "dead").unwrap();
    let address = host["address"].as_str().unwrap();
    let socket = std::net::UdpSocket::bind(address).unwrap();
    home.weft(&["fault", "restart", "host-0"]).fails(1, address);
    drop(socket);
    home.weft(&["fault", "restart", "host-0"]).succeeds();
}

#[test]
fn a_laboratory_stays_when_nobody_reads_the_summary() {
    let home = Home::new();
    let file = home.small_tree();
    let mut up = home.command(&["up", text(&file), "--no-sm"]).stdout(Stdio::piped()).spawn().unwrap();
    drop(up.stdout.take());
    assert!(up.wait().unwrap().success());
    assert!(home.processes().iter().all(|(_, pid)| runs(*pid)));
}

/// The devices of a laboratory with a subnet manager that sends many SMPs at once: the SMPs dropped in all.
fn dropped_smps(home: &Home, file: &str, vl15_buffer: &str) -> u64 {
    let options = ["--smp-processing-us", "2000", "--vl15-buffer", vl15_buffer];
    let manager = ["--max-wire-smps", "32", "--timeout-ms", "50"];
    home.weft(&[&["up", file], &options[..], &manager].concat()).succeeds();
    let links = home.json(&["links", "--json"]);
    let mut dropped = 0;
    for link in links.as_array().unwrap() {
        assert_eq!(link["state"], "Active", "{link}");
        dropped +=
            ["a", "b"].iter().map(|end| link[end]["totals"]["vl15_dropped"].as_u64().unwrap()).sum::<u64>();
    }
    home.weft(&["down"]).succeeds();
    dropped
}

#[test]
fn a_full_vl15_buffer_drops_and_counts() {
    let home = Home::new();
    let file = home.small_tree();
    assert!(dropped_smps(&home, text(&file), "2") > 0, "32 SMPs at once fit into a buffer of 2");
    assert_eq!(dropped_smps(&home, text(&file), "128"), 0, "32 SMPs at once do not fit into a buffer of 128");
}

#[test]
fn up_and_down_clear_the_remains_of_a_crashed_launcher() {
    let home = Home::new();
    let file = home.small_tree();
    // No process has so high a number.
    let left = |number: u32| home.base().join(format!(".new-default-{number}"));
    let leave = |folder: &Path| {
        std::fs::create_dir_all(folder.join("locks")).unwrap();
        std::fs::write(folder.join("weft-lab"), "").unwrap();
        std::fs::write(folder.join("down.lock"), "").unwrap();
        std::fs::write(folder.join("locks").join("up"), "").unwrap();
    };
    let (dead, alive) = (left(2_000_000_000), left(std::process::id()));
    leave(&dead);
    leave(&alive);
    home.weft(&["up", text(&file), "--no-sm"]).succeeds();
    assert!(!dead.exists() && alive.exists(), "a launcher that lives keeps its folder");
    leave(&dead);
    let down = home.weft(&["down"]);
    assert!(down.succeeds().stderr.contains("cleared what 1 crashed launcher left"), "{}", down.stderr);
    assert!(!dead.exists() && alive.exists());
    std::fs::remove_dir_all(&alive).unwrap();
    assert!(home.is_empty());
}

#[test]
fn logs_are_json_lines_where_that_is_wanted() {
    let home = Home::new();
    let file = home.small_tree();
    let up = home.command(&["up", text(&file)]).env("WEFT_LOG_FORMAT", "json").output().unwrap();
    assert!(up.status.success(), "{up:?}");
    for process in ["sm", "a0000"] {
        let log = std::fs::read_to_string(home.lab("default").join("logs").join(process)).unwrap();
        let line: Value = serde_json::from_str(log.lines().next().unwrap()).unwrap();
        assert_eq!(line["level"], "INFO", "{process}: {line}");
    }
}

#[test]
fn logs_are_for_people_and_name_guids_in_hex() {
    let home = Home::new();
    let file = home.small_tree();
    let options = ["--pm", "--vfs", "1", "--lids", "dynamic"];
    let mut up = home.command(&[&["up"], &options[..], &[text(&file)]].concat());
    let up = up.env("WEFT_LOG", "debug").output().unwrap();
    assert!(up.status.success(), "{up:?}");
    home.weft(&["vm", "create", "web1"]).succeeds();
    home.weft(&["vm", "destroy", "web1"]).succeeds();
    let folder = home.lab("default").join("logs");
    let log = |process: &str| std::fs::read_to_string(folder.join(process)).unwrap();
    for process in ["sm", "pm", "vmm"] {
        assert!(log(process).contains("attached node_guid=0x"), "{process}: {}", log(process));
    }
    assert!(log("vmm").contains("virtual machine `web1` runs in "), "{}", log("vmm"));
    // As `Debug` shows numbers that are types of their own, structures and options.
    let forms = ["Guid(", "Lid(", "PortNum(", "Time(", "Some(", "=None", " { "];
    for file in std::fs::read_dir(&folder).unwrap() {
        let path = file.unwrap().path();
        let log = std::fs::read_to_string(&path).unwrap();
        let shown = log.lines().find(|line| forms.iter().any(|form| line.contains(form)));
        assert_eq!(shown, None, "{}", path.display());
    }
}

#[test]
fn a_log_level_that_makes_no_sense_is_said_by_every_process() {
    let home = Home::new();
    let file = home.small_tree();
    let up = home.command(&["up", text(&file)]).env("WEFT_LOG", "weft=loud").output().unwrap();
    assert!(up.status.success(), "{up:?}");
    for process in ["sm", "a0000"] {
        let log = std::fs::read_to_string(home.lab("default").join("logs").join(process)).unwrap();
        assert!(log.contains("invalid WEFT_LOG"), "{process}: {log}");
    }
}

/// Removes a laboratory's folder under its processes, all of them at once.
fn remove_folder(home: &Home, lab: &str) {
    // A process that begins again in it may make it again.
    wait_until("the folder is gone", || {
        let _ = std::fs::remove_dir_all(home.lab(lab));
        !home.lab(lab).exists()
    });
}

#[test]
fn processes_whose_folder_is_gone_end_by_themselves() {
    let home = Home::new();
    let file = home.small_tree();
    home.weft(&["up", text(&file), "--lab", "gone", "--pm", "--vfs", "1"]).succeeds();
    let processes = home.processes();
    assert!(processes.len() > 10 && processes.iter().all(|(_, pid)| runs(*pid)));
    // A folder that only moves is still there.
    let moved = home.base().join("moved");
    std::fs::rename(home.lab("gone"), &moved).unwrap();
    std::fs::rename(&moved, home.lab("gone")).unwrap();
    home.weft(&["check"]).succeeds();
    remove_folder(&home, "gone");
    for (process, pid) in processes {
        wait_until(&format!("{process} has ended"), || !runs(pid));
    }
}

#[test]
fn down_ends_processes_whose_folder_is_gone() {
    let home = Home::new();
    let file = home.small_tree();
    home.weft(&["up", text(&file), "--lab", "gone"]).succeeds();
    let orphans: Vec<u32> =
        home.processes().into_iter().filter(|(name, _)| name != "hub").map(|(_, pid)| pid).collect();
    // One that is frozen does not end by itself.
    orphans.iter().for_each(|pid| signal(*pid, Signal::STOP));
    remove_folder(&home, "gone");
    home.weft(&["down", "--lab", "other"]).succeeds();
    assert!(orphans.iter().all(|pid| runs(*pid)), "they are not of that laboratory");
    // Another one of the same name is none of theirs.
    home.weft(&["up", text(&file), "--lab", "gone"]).succeeds();
    let done = home.weft(&["down", "--lab", "gone"]);
    done.succeeds();
    let said = format!("ended {} processes of `gone`, whose folder is gone", orphans.len());
    assert!(done.stderr.contains(&said) && done.stderr.contains("took down `gone`"), "{}", done.stderr);
    assert!(!orphans.iter().any(|pid| runs(*pid)));
    assert!(
        home.weft(&["down", "--lab", "gone"]).succeeds().stderr.contains("no laboratory `gone` is running")
    );
}
