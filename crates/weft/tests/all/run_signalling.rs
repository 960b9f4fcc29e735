//! Datagrams about a machine that has another LID or another GUID, on processes and in virtual time: as many as the closed form says.

use serde_json::{Value, json};

use crate::run::{Run, repository};

/// Runs an experiment with a shorter move on both drivers, and judges of its expectations those of datagrams alone: they are exact, however
/// late processes wake up. `runs` of each driver have as many `counts`.
fn counts(stem: &str, shorter: &[(&str, &str)], counts: usize, runs: usize) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("notices.toml");
    let text = std::fs::read_to_string(repository().join(format!("experiments/{stem}.toml"))).unwrap();
    let (head, tail) = text.split_once("[window]").unwrap();
    let topology = repository().join("topologies/live-migration.topo");
    let mut head = head.replace("../topologies/live-migration.topo", topology.to_str().unwrap());
    let usual =
        [("duration = 60", "duration = 10"), ("at = 21", "at = 3"), ("stop_copy = 4 ", "stop_copy = 0.5 ")];
    for (long, short) in usual.iter().chain(shorter) {
        assert!(head.contains(long), "{stem} has no `{long}`");
        head = head.replace(long, short);
    }
    let is_counted = |block: &&str| block.contains("what = \"signalling\"");
    let expects: Vec<String> =
        tail.split("[[expect]]").filter(is_counted).map(|block| format!("[[expect]]{block}")).collect();
    assert_eq!(expects.len(), counts);
    std::fs::write(&file, head + &expects.concat()).unwrap();
    let run = Run::of(&file, &["--both", "--allow-busy"]);
    let said = run.said();
    assert!(!said.contains("signalling, "), "a count is another one: {said}");
    let report = run.json("notices");
    let all = report["runs"].as_array().unwrap();
    let driven = |driver: &str| all.iter().filter(|run| run["driver"] == driver).count();
    assert_eq!([driven("live"), driven("virtual")], [runs, runs], "{said}");
    for run in all {
        let moved = &run["migrations"][0]["outcome"]["done"]["to"];
        assert_eq!(moved, "B vf2", "{run}");
    }
}

/// Reports and answers by function and by server, and none.
#[test]
fn a_move_signals_as_often_live_as_in_virtual_time() {
    counts("migration-signalling-1", &[], 5, 3);
}

/// The name and the path, and no Report.
#[test]
fn a_name_is_looked_up_as_often_live_as_in_virtual_time() {
    counts("migration-signalling-dynamic", &[("ack_timeout = 5 ", "ack_timeout = 2 ")], 3, 1);
}

/// What the subnet manager sends and gets after a cable is lost: the closed form of the file, whoever drives it.
fn signals_as_often_live(fault: &str, method: &str) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("fault.toml");
    let text = repository().join(format!("experiments/signalling-fault-{fault}.toml"));
    let topologies = repository().join("topologies/");
    let text = std::fs::read_to_string(text).unwrap();
    let text = text
        .replace("../topologies/", topologies.to_str().unwrap())
        .replace("duration = 10", "duration = 6")
        .replace("at = 5", "at = 2.5")
        .replace("after = [7, 10]", "after = [4, 6]");
    std::fs::write(&file, text).unwrap();
    let only = format!("method={method}");
    let processes = ["--only", "pattern.is.processes=8"];
    let fewest = if fault == "two" { &processes[..] } else { &[] };
    let run = Run::of(&file, &[&["--both", "--allow-busy", "--only", &only], fewest].concat());
    let report = run.json("fault");
    let runs = report["runs"].as_array().unwrap();
    let drivers: Vec<&str> = runs.iter().map(|run| run["driver"].as_str().unwrap()).collect();
    assert_eq!(drivers, ["live", "virtual"], "{}", run.said());
    for run in runs {
        let is_counted = |line: &&Value| line["name"].as_str().unwrap().starts_with("signalling, ");
        let lines: Vec<&Value> =
            run["verdict"]["findings"].as_array().unwrap().iter().filter(is_counted).collect();
        assert!(!lines.is_empty(), "{fault}, {method}");
        for line in lines {
            // One that woke up too late is not judged, and has counted all the same.
            let measured = &line["measured"];
            match &line["bound"]["within"]["value"] {
                Value::Null => {
                    assert_eq!((measured, &line["bound"]["at_most"]), (&json!(0.0), &json!(0.0)), "{line}");
                }
                value => assert_eq!(measured, value, "{fault}, {method}, {}: {line}", run["driver"]),
            }
        }
    }
}

#[test]
fn fault_one_signals_as_often_live_as_in_virtual_time() {
    for method in ["hybrid", "repath", "wildcard"] {
        signals_as_often_live("one", method);
    }
}

#[test]
fn fault_two_signals_as_often_live_as_in_virtual_time() {
    for method in ["hybrid", "repath", "wildcard"] {
        signals_as_often_live("two", method);
    }
}

/// What switches and functions of adapters receive for a migration by each method, whoever drives it.
#[test]
fn a_migration_costs_as_much_live_by_each_method() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("cost.toml");
    let text = std::fs::read_to_string(repository().join("experiments/migration-cost.toml")).unwrap();
    let (head, expects) = text.split_once("[[expect]]").unwrap();
    let (head, _) = head.split_once("[window]").unwrap();
    let is_counted =
        |block: &&str| ["switches", "lft_smps", "hypervisor_smps"].iter().any(|what| block.contains(what));
    let expects: Vec<String> =
        expects.split("[[expect]]").filter(is_counted).map(|block| format!("[[expect]]{block}")).collect();
    // Three values of each of three methods and of each of two migrations, and `full` has no line for functions.
    assert_eq!(expects.len(), 3 * 3 * 2 - 2);
    let shorter = [
        ("duration = 36", "duration = 12"),
        ("at = 10", "at = 2"),
        ("at = 22", "at = 7"),
        ("after = 20", "after = 5"),
        ("stop_copy = 1", "stop_copy = 0.2"),
    ];
    let text = shorter.iter().fold(head.to_owned() + &expects.concat(), |text, (long, short)| {
        assert!(text.contains(long), "no `{long}`");
        text.replace(long, short)
    });
    std::fs::write(&file, text).unwrap();
    let run = Run::of(&file, &["--both", "--allow-busy"]);
    let report = run.json("cost");
    let runs = report["runs"].as_array().unwrap();
    assert_eq!(runs.len(), 6, "{}", run.said());
    for run in runs {
        let lines = run["verdict"]["findings"].as_array().unwrap().iter();
        let mut judged = 0;
        for line in lines.filter(|line| line["name"].as_str().unwrap().starts_with("web: ")) {
            assert_eq!(line["measured"], line["bound"]["within"]["value"], "{}: {line}", run["driver"]);
            judged += 1;
        }
        assert!([4, 6].contains(&judged), "{judged} lines: {run}");
    }
}

/// b_eff ends while no, one and two cables are lost, and every queue pair lives: hosts hear of other paths.
#[test]
fn latency_and_bandwidth_are_measured_while_cables_are_lost() {
    let run = Run::of(&repository().join("experiments/host-side-beff.toml"), &["--virtual"]);
    let report = run.json("host-side-beff");
    assert_eq!((&report["failures"], &report["invalid"]), (&json!([]), &json!([])), "{}", run.said());
    let runs = report["runs"].as_array().unwrap();
    let lost: Vec<usize> = runs.iter().map(|run| run["faults"].as_array().map_or(0, Vec::len)).collect();
    assert_eq!(lost, [0, 1, 2]);
    for run in runs {
        let measured = run["verdict"]["findings"].as_array().unwrap();
        let measured = measured.iter().filter(|line| line["name"].as_str().unwrap().starts_with("hpcc: "));
        assert_eq!(
            measured.filter(|line| line["measured"].as_f64().is_some_and(|value| value > 0.0)).count(),
            10
        );
    }
}

/// A file all of whose lines hold in virtual time.
fn holds(stem: &str) {
    let run = Run::of(&repository().join(format!("experiments/{stem}.toml")), &["--virtual"]);
    let report = run.json(stem);
    assert_eq!((&report["failures"], &report["invalid"]), (&json!([]), &json!([])), "{}", run.said());
    assert!(!report["runs"].as_array().unwrap().is_empty());
}

/// Path queries by cache, connections and moves.
#[test]
fn path_records_in_caches() {
    holds("path-caching");
}

/// Hosts whose software takes the paper's times.
#[test]
fn latency_of_a_reconfiguration() {
    holds("signalling-latency");
}
