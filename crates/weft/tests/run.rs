//! `weft run`: the experiments of this repository, as they stand, and what is said when something is not as expected.

#![allow(clippy::unwrap_used, reason = "in a test a panic is the report")]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;
use tempfile::TempDir;

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// `weft run` with a report, in a folder of its own.
struct Run {
    folder: TempDir,
    output: Output,
}

impl Run {
    fn of(file: &Path, more: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_weft"));
        command.arg("run").arg(file).args(more).arg("--report").arg(folder.path().join("out"));
        command.env("WEFT_HOME", folder.path().join("w")).env("NO_COLOR", "1");
        let output = command.output().unwrap();
        Self { folder, output }
    }

    fn said(&self) -> String {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        text(&self.output.stdout) + &text(&self.output.stderr)
    }

    fn json(&self, stem: &str) -> Value {
        let path = self.folder.path().join("out").join(stem).join("report.json");
        let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{error}: {}", self.said()));
        serde_json::from_str(&text).unwrap()
    }
}

/// Runs an experiment of the repository in virtual time: everything is as its file expects. What its report says.
fn simulated(stem: &str) -> Value {
    let run = Run::of(&repository().join(format!("experiments/{stem}.toml")), &["--virtual"]);
    assert!(run.output.status.success(), "{}", run.said());
    let report = run.json(stem);
    assert_eq!(report["failures"], Value::Array(Vec::new()));
    let runs = report["runs"].as_array().unwrap();
    assert!(!runs.is_empty());
    for run in runs {
        let lanes = run["conservation"]["lanes"].as_array().unwrap();
        let injected: u64 = lanes.iter().map(|lane| lane["injected"].as_u64().unwrap()).sum();
        assert!(injected > 100, "{injected} packets are no experiment");
    }
    let folder = run.folder.path().join("out").join(stem);
    let names: Vec<String> =
        folder.read_dir().unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    for ending in [".md", ".csv", ".json", ".svg"] {
        assert!(names.iter().any(|name| name.ends_with(ending)), "no {ending} among {names:?}");
    }
    report
}

/// The verifier predicts a deadlock for the last state of the fabric exactly where less than 1 % of what the hosts can
/// move is delivered in the last window; and both happens.
fn predicted(stem: &str, gbps_max: f64) {
    let report = simulated(stem);
    let mut seen = Vec::new();
    for run in report["runs"].as_array().unwrap() {
        let states = run["prediction"]["states"].as_array().unwrap();
        let last = states.last().unwrap();
        assert_eq!(last["routed_by"], run["routed_by"], "the prediction is about another routing");
        let gbps = |flow: &Value| flow["gbps"].as_array().unwrap().last().unwrap().as_f64().unwrap();
        let total: f64 = run["flows"].as_array().unwrap().iter().map(gbps).sum();
        let deadlock = !last["cycles"].as_array().unwrap().is_empty();
        assert_eq!(deadlock, total < gbps_max / 100.0, "{total} Gb/s, and predicted is {last}");
        seen.push(deadlock);
    }
    seen.sort_unstable();
    assert_eq!(seen, [false, true]);
}

macro_rules! experiments {
    ($($name:ident = $stem:literal;)*) => { $( #[test] fn $name() { drop(simulated($stem)); } )* };
}

experiments! {
    dftree_1 = "dftree-1";
    dftree_2 = "dftree-2";
    dftree_3 = "dftree-3";
    dftree_4 = "dftree-4";
    vftree_3 = "vftree-3";
    congestion_control = "congestion-control";
    vftree_4a = "vftree-4a";
    vftree_4b = "vftree-4b";
    lane_of_management = "management-lane";
    latency_and_bandwidth = "beff";
    static_rate = "static-rate";
}

#[test]
fn lash_and_hosts_that_are_told() {
    predicted("lash", 6.0 * 12.9);
}

#[test]
fn textbook_deadlock() {
    predicted("deadlock", 7.0 * 16.0 / 3.0);
}

#[test]
fn host_that_does_not_ask() {
    predicted("unasked", 6.0 * 12.9);
}

/// Two hosts send to a third, for as short as can be measured.
fn two_into_one(expected: &str) -> String {
    let topology = repository().join("topologies/dftree-1.topo");
    format!(
        r#"
title = "Two into one"
source = "a test"
duration = 6

[fabric]
topology = "{}"

[rates]
lanes = 2

[engine]
chain = "ftree,no_fallback"

[flow.1-5]
from = "host-1"
to = "host-5"

[flow.6-5]
from = "host-6"
to = "host-5"

[window]
steady = [2, 6]

[record]
ports = ["C/1"]

[[expect]]
flow = "1-5"
window = "steady"
{expected}
"#,
        topology.display()
    )
}

#[test]
fn what_is_not_as_expected_is_named_and_fails() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("two.toml");
    std::fs::write(&file, two_into_one("at_least = 12\nmodel = \"regression\"")).unwrap();
    let run = Run::of(&file, &["--virtual"]);
    assert_eq!(run.output.status.code(), Some(1), "{}", run.said());
    assert!(
        run.said().contains("not as expected: two: seed 1, virtual time: 1-5, steady: it is 6.45 Gb/s"),
        "{}",
        run.said()
    );
}

#[test]
fn a_wrong_file_is_told_with_line_and_column() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("two.toml");
    std::fs::write(&file, two_into_one("at_leest = 12")).unwrap();
    let run = Run::of(&file, &["--virtual"]);
    assert_eq!(run.output.status.code(), Some(2), "{}", run.said());
    let said = run.said();
    assert!(said.contains("two.toml:") && said.contains("at_leest") && said.contains("at_least"), "{said}");
}

/// The only test here with real processes: the shares, order and balance of a live run. One that woke up too late is no
/// result, and is made again.
#[test]
fn live_processes_share_a_link_as_the_simulation_does() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("two.toml");
    std::fs::write(&file, two_into_one("value = 6.45\nmodel = \"closed form: 12.9 / 2\"")).unwrap();
    let mut said = String::new();
    for _ in 0..5 {
        let run = Run::of(&file, &["--both"]);
        said = run.said();
        if run.output.status.success() {
            let report = run.json("two");
            let drivers: Vec<&str> = report["runs"]
                .as_array()
                .unwrap()
                .iter()
                .map(|run| run["driver"].as_str().unwrap())
                .collect();
            assert_eq!(drivers, ["live", "virtual"]);
            return;
        }
        assert!(said.contains("wake-ups was later than"), "{said}");
    }
    panic!("five runs in a row woke up too late: {said}");
}
