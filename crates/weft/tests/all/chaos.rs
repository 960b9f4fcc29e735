//! `weft chaos`: a bug that is put in on purpose is found, shrunk and replayed; a laboratory survives a minute of it.
//!
//! `WEFT_CHAOS_MINUTES` says how many minutes (1 if not said).

use std::collections::{BTreeMap, BTreeSet};
use std::process::{Child, Command, Stdio};

use common::{Home, text};
use serde_json::Value;

use crate::common;

#[test]
fn a_bug_is_found_shrunk_and_replayed_from_a_file_of_its_own() {
    let home = Home::new();
    let (file, report) = (home.small_tree(), home.base().join("report"));
    for (bug, left) in [("lost-fault", 2), ("kept-credit", 1), ("forgotten-link-up", 1)] {
        let chaos = ["chaos", text(&file), "--virtual", "--seed", "7", "--schedules", "60", "--json"];
        let bad = ["--report", text(&report), "--seeded-bug", bug];
        let found: Value = serde_json::from_str(&home.weft(&[&chaos[..], &bad].concat()).stdout).unwrap();
        assert_eq!(found["violation"]["left"], left, "{bug}: {found}");
        let written: Value =
            serde_json::from_str(&std::fs::read_to_string(report.join("report.json")).unwrap()).unwrap();
        assert_eq!(written, found);
        let schedule = report.join("schedule.toml");
        let replay = ["chaos", "--virtual", "--replay", text(&schedule)];
        home.weft(&[&replay[..], &["--seeded-bug", bug]].concat()).fails(1, "");
        let well = home.weft(&replay);
        assert!(well.succeeds().stdout.contains("no violation"), "{}", well.stdout);
    }
}

#[test]
fn invalid_chaos_arguments_are_refused() {
    let home = Home::new();
    let file = home.small_tree();
    home.weft(&["chaos", "--virtual"]).fails(2, "topology file");
    home.weft(&["chaos", text(&file)]).fails(2, "--virtual");
    let schedule = home.write("schedule.toml", "seed = 1\n[[fault]]\nat = 1\nkill = \"nowhere\"\nfor = 1\n");
    home.weft(&["chaos", "--virtual", "--replay", text(&schedule)]).fails(2, "names no `topology`");
    home.weft(&["chaos", text(&file), "--virtual", "--replay", text(&schedule)]).fails(2, "nowhere");
    let schedule = home.write("schedule.toml", "[[fault]]\nat = 1\nkil = \"sm\"\n");
    home.weft(&["chaos", text(&file), "--virtual", "--replay", text(&schedule)]).fails(2, "kil");
    home.weft(&["up", text(&file), "--no-sm"]).succeeds();
    home.weft(&["chaos"]).fails(1, "no subnet manager");
}

#[test]
fn a_laboratory_survives_its_minute() {
    let home = Home::new();
    let file = home.small_tree();
    home.weft(&["up", text(&file)]).succeeds();
    let minutes = std::env::var("WEFT_CHAOS_MINUTES").unwrap_or_else(|_| "1".to_owned());
    // Other commands have less time.
    let done = home.command(&["chaos", "--seed", "7", "--minutes", &minutes, "--json"]).output().unwrap();
    let said = String::from_utf8_lossy(&done.stderr);
    let outcome: Value = serde_json::from_slice(&done.stdout).unwrap_or_else(|_| panic!("{said}"));
    assert_eq!((&outcome["ok"], &outcome["violation"]), (&true.into(), &Value::Null), "{said}");
    assert!(outcome["cost"]["detected"].as_u64().unwrap() > 0, "{outcome}");
    assert!(outcome["schedules"].as_u64().unwrap() >= 2, "{outcome}");
    assert!(home.weft(&["fault", "ls"]).succeeds().stdout.contains("no fault lasts"));
    home.weft(&["down"]).succeeds();
    assert!(home.is_empty());
}

/// A laboratory's processes: pids, and when each began, which tells a process from a later one of the same number.
fn lives(home: &Home, lab: &str) -> BTreeMap<String, (u64, String)> {
    let listed = home.json(&["ps", "--lab", lab, "--json"]);
    let life = |process: &Value| {
        let pid = process["pid"].as_u64().unwrap();
        (process["process"].as_str().unwrap().to_owned(), (pid, began(pid)))
    };
    listed.as_array().unwrap().iter().map(life).collect()
}

fn began(pid: u64) -> String {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    // The name in parentheses may hold anything.
    stat.rsplit_once(')').unwrap().1.split_whitespace().nth(19).unwrap().to_owned()
}

/// Schedules whose kills have each of these processes among them, drawn for a laboratory: the first seeds that have.
fn schedules_with(home: &Home, lab: &str, killed: &[&str]) -> Vec<String> {
    let kills = |text: &String, name: &str| text.contains(&format!("kill = \"{name}\""));
    let draw = |seed: u64| {
        home.weft(&["chaos", "--lab", lab, "--draw", "--seed", &seed.to_string()]).succeeds().stdout.clone()
    };
    let mut drawn: Vec<String> = Vec::new();
    for name in killed {
        if !drawn.iter().any(|text| kills(text, name)) {
            let first = (1..300).map(draw).find(|text| kills(text, name));
            drawn.push(first.unwrap_or_else(|| panic!("no schedule of 300 kills {name}")));
        }
    }
    drawn
}

/// What looks like an agent of a laboratory to whoever goes by names and arguments. It lives until its input ends.
fn lookalike(home: &Home, lab: &str) -> Child {
    let program = home.base().with_file_name("weft-agent");
    std::fs::copy("/bin/sh", &program).unwrap();
    let folder = home.lab(lab);
    let mut command = Command::new(program);
    command.args(["-c", "read -r line", "weft-agent", "--detached", "--as", "a0000"]);
    command.args(["--bundle", text(&folder), "--run", text(&folder)]);
    command.stdin(Stdio::piped()).spawn().unwrap()
}

/// With all managers that there can be, which schedules are drawn for too. What else runs on the machine is not touched: neither
/// another laboratory, whose processes have the same names, nor a process that looks like an agent.
#[test]
fn chaos_with_all_managers_spares_neighbouring_labs() {
    let home = Home::new();
    let file = home.small_tree();
    let managers = ["--pm", "--standby", "1", "--vfs", "1"];
    home.weft(&[&["up", text(&file), "--lab", "broken"], &managers[..]].concat()).succeeds();
    home.weft(&["up", text(&file), "--lab", "whole", "--pm", "--standby", "1"]).succeeds();
    let mut stranger = lookalike(&home, "broken");
    let stranger_began = began(stranger.id().into());
    let (first, neighbours) = (lives(&home, "broken"), lives(&home, "whole"));

    let killed = ["vmm", "pm", "sm-2", "sm"];
    let runs: Vec<Vec<String>> = match std::env::var("WEFT_CHAOS_MINUTES") {
        Ok(minutes) => vec![["--seed", "1", "--minutes", &minutes].map(str::to_owned).to_vec()],
        Err(_) => (1..)
            .zip(schedules_with(&home, "broken", &killed))
            .map(|(nth, schedule)| {
                let file = home.write(&format!("schedule-{nth}.toml"), &schedule);
                vec!["--replay".to_owned(), text(&file).to_owned()]
            })
            .collect(),
    };
    for run in &runs {
        let mut arguments = vec!["chaos", "--lab", "broken", "--json"];
        arguments.extend(run.iter().map(String::as_str));
        // Other commands have less time.
        let done = home.command(&arguments).output().unwrap();
        let said = String::from_utf8_lossy(&done.stderr);
        let outcome: Value =
            serde_json::from_slice(&done.stdout).unwrap_or_else(|_| panic!("{run:?}: {said}"));
        assert_eq!(
            (&outcome["ok"], &outcome["violation"]),
            (&true.into(), &Value::Null),
            "{run:?}: {outcome}"
        );
        assert!(outcome["faults"].as_u64().unwrap() > 0, "{run:?}: {outcome}");
    }

    let last = lives(&home, "broken");
    assert!(first.keys().eq(last.keys()), "{first:?} {last:?}");
    // By chance a minute of schedules may leave one out.
    let (again, due) = (killed.iter().filter(|name| first[**name] != last[**name]).count(), runs.len() > 1);
    assert!(again == killed.len() || (again > 0 && !due), "of {killed:?} some never began again: {last:?}");
    assert_eq!(lives(&home, "whole"), neighbours);
    let events =
        home.weft(&["events", "--lab", "whole", "--json", "--since", "start"]).succeeds().stdout.clone();
    let names: BTreeSet<String> = events
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap()["event"].as_str().unwrap().to_owned())
        .collect();
    assert!(names.contains("subnet-up"), "{names:?}");
    for name in ["fault", "fault-set", "fault-cleared", "fault-cost", "process-ended", "process-restarted"] {
        assert!(!names.contains(name), "{name}: {events}");
    }
    assert!(stranger.try_wait().unwrap().is_none(), "the stranger was ended");
    assert_eq!(began(stranger.id().into()), stranger_began);
    stranger.kill().unwrap();
    stranger.wait().unwrap();
    home.weft(&["down", "--all"]).succeeds();
    assert!(home.is_empty());
}

/// A process that cannot be started again is a finding like any other: with its report and its schedule, and the rest runs.
#[test]
fn a_process_that_does_not_come_back_is_a_violation() {
    let home = Home::new();
    let (file, report) = (home.small_tree(), home.base().join("report"));
    home.weft(&["up", text(&file)]).succeeds();
    let schedule = home.write(
        "schedule.toml",
        "[[fault]]\nat = 0.1\nkill = \"host-0\"\nfor = 0.2\n[[fault]]\nat = 0.15\nkill = \"host-3\"\nfor = 0.5\n",
    );
    let record: Value =
        serde_json::from_slice(&std::fs::read(home.lab("default").join("lab.json")).unwrap()).unwrap();
    let agents = record["agents"].as_array().unwrap();
    let broken = agents.iter().find(|agent| agent["devices"][0]["label"] == "host-0").unwrap();
    let name = broken["name"].as_str().unwrap();
    std::fs::remove_file(home.lab("default").join(format!("identities/{name}.pem"))).unwrap();
    let chaos = ["chaos", "--replay", text(&schedule), "--report", text(&report), "--json"];
    let done = home.weft(&chaos);
    assert_eq!(done.code, 1, "{}", done.stderr);
    let found: Value = serde_json::from_str(&done.stdout).unwrap();
    assert!(found["violation"]["what"].as_str().unwrap().contains(name), "{found}");
    let written = std::fs::read_to_string(report.join("report.json")).unwrap();
    assert_eq!(serde_json::from_str::<Value>(&written).unwrap(), found);
    assert!(std::fs::read_to_string(report.join("schedule.toml")).unwrap().contains("host-0"));
    // All others run.
    let running = home.json(&["ps", "--json"]);
    let dead = running.as_array().unwrap().iter().filter(|process| process["state"] != "running");
    assert_eq!(dead.map(|process| &process["process"]).collect::<Vec<_>>(), [name]);
}

/// One seed has one schedule for one fabric, live and in virtual time, whatever managers and functions there are beside it.
#[test]
fn a_seed_has_one_schedule_live_and_in_virtual_time() {
    let home = Home::new();
    let tree = home.small_tree();
    let ring = home.base().with_file_name("ring.topo");
    home.weft(&["topo", "gen", "ring", "--switches", "3", "--hosts", "2", "-o", text(&ring)]).succeeds();
    let rich = ["--pm", "--standby", "1", "--vfs", "1"];
    let mut words = BTreeSet::new();
    let dynamic = ["--vfs", "2", "--lids", "dynamic"];
    for (file, more) in [(&tree, &[][..]), (&ring, &rich[..]), (&tree, &dynamic[..])] {
        home.weft(&[&["up", text(file)], more].concat()).succeeds();
        let mut faults = 0;
        for seed in 1..=30 {
            let seed = seed.to_string();
            let drawn = ["chaos", "--draw", "--seed", &seed];
            let live = home.weft(&drawn).succeeds().stdout.clone();
            let simulated = home.weft(&[&drawn[..], &["--virtual", text(file)], more].concat());
            assert_eq!(live, simulated.succeeds().stdout, "seed {seed} on {}", file.display());
            faults += live.matches("[[fault]]").count();
            let managers = ["sm", "sm-2", "pm", "vmm", "hub"];
            let names = |word: &str| managers.map(|name| format!("{word} = \"{name}\""));
            let named = ["kill", "freeze"].into_iter().flat_map(names);
            words.extend(named.filter(|line| live.lines().any(|other| other == line)));
        }
        assert!(faults > 60, "{faults}");
        home.weft(&["down"]).succeeds();
    }
    for manager in ["sm-2", "pm", "vmm", "hub"] {
        assert!(words.contains(&format!("kill = \"{manager}\"")), "{manager}: {words:?}");
    }
}

/// A schedule that was drawn for virtual time runs on processes too.
#[test]
fn one_schedule_runs_in_virtual_time_and_on_processes() {
    let home = Home::new();
    let file = home.small_tree();
    let schedule = home.write(
        "schedule.toml",
        "topology = \"tree.topo\"\nseed = 3\n\
         [[fault]]\nat = 0.1\nflap = \"switch-1-0/3\"\nevery = \"300ms\"\ndown = \"100ms\"\nfor = 0.7\n\
         [[fault]]\nat = 0.2\npartition = [\"switch-2-0\", \"host-3\"]\nfor = 0.5\n\
         [[fault]]\nat = 0.3\nfreeze = \"host-1\"\nfor = 0.4\n\
         [[fault]]\nat = 0.3\nkill = \"switch-2-1\"\nfor = 0.2\n",
    );
    let replay = ["chaos", "--replay", text(&schedule), "--json"];
    let outcome = |arguments: &[&str]| {
        let done = home.weft(arguments);
        let outcome: Value = serde_json::from_str(&done.stdout).unwrap_or_else(|_| panic!("{}", done.stderr));
        assert_eq!((&outcome["ok"], &outcome["faults"]), (&true.into(), &4.into()), "{}", done.stderr);
    };
    outcome(&[&replay[..], &[text(&file), "--virtual"]].concat());
    home.weft(&["up", text(&file)]).succeeds();
    outcome(&replay);
}

/// What a laboratory with virtual machines writes of a violation is replayed in virtual time with its adapters and its VM manager.
#[test]
fn a_violation_with_vfs_replays_with_its_vm_manager() {
    let home = Home::new();
    let (file, report) = (home.small_tree(), home.base().join("report"));
    home.weft(&["up", text(&file), "--vfs", "2"]).succeeds();
    home.weft(&["vm", "create", "web", "--host", "host-1"]).succeeds();
    home.weft(&["vm", "migrate", "web", "host-2"]).succeeds();
    let record: Value =
        serde_json::from_slice(&std::fs::read(home.lab("default").join("lab.json")).unwrap()).unwrap();
    let agents = record["agents"].as_array().unwrap();
    let of_host = |agent: &&Value| {
        agent["devices"].as_array().unwrap().iter().any(|device| device["label"] == "host-0")
    };
    let name = agents.iter().find(of_host).unwrap()["name"].as_str().unwrap();
    // Its agent cannot begin again.
    std::fs::remove_file(home.lab("default").join(format!("identities/{name}.pem"))).unwrap();
    let schedule = home.write(
        "schedule.toml",
        "[[fault]]\nat = 0.1\nkill = \"vmm\"\nfor = 0.2\n[[fault]]\nat = 0.15\nkill = \"host-0\"\nfor = 0.5\n",
    );
    let done = home.weft(&["chaos", "--replay", text(&schedule), "--report", text(&report)]);
    done.fails(1, "");
    let written = std::fs::read_to_string(report.join("schedule.toml")).unwrap();
    assert!(written.contains("vmm = true\n") && written.contains("kill = \"host-0\""), "{written}");
    let written = report.join("schedule.toml");
    let outcome = home.json(&["chaos", "--virtual", "--replay", text(&written), "--json"]);
    assert_eq!((&outcome["ok"], &outcome["violation"]), (&true.into(), &Value::Null), "{outcome}");
    // The adapters are found by their GUIDs, so no machine's is in the file.
    let read = |path| weft_topology::parse("x", &std::fs::read_to_string(path).unwrap()).unwrap();
    let fabric = read(report.join("fabric.topo"));
    assert_eq!(fabric, read(home.lab("default").join("topology")));
    assert_eq!(fabric.virtualised_adapters().len(), 4);
}
