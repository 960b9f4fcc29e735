//! `weft run`: the experiments of this repository, as they stand, and what is said when something is not as expected.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;
use tempfile::TempDir;
use two_into_one::two_into_one;
use words::WORDS;

use crate::common::two_into_one;
use crate::common::words;

pub(crate) fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// `weft run` with a report, in a folder of its own.
pub(crate) struct Run {
    folder: TempDir,
    output: Output,
}

impl Run {
    pub(crate) fn of(file: &Path, more: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_weft"));
        command.arg("run").arg(file).args(more).arg("--report").arg(folder.path().join("out"));
        command.env("WEFT_HOME", folder.path().join("w")).env("NO_COLOR", "1");
        let output = command.output().unwrap();
        Self { folder, output }
    }

    /// Whether processes woke up too late for a result.
    fn is_late(&self) -> bool {
        self.said().contains("machine too busy")
    }

    /// Whether nothing is wrong but a live run's shares of time: a process that sleeps for 0.1 s moves those of a window of a second.
    fn is_well_but_for_time(&self) -> bool {
        let said = self.said();
        let mut wrong = said.lines().filter(|line| line.starts_with("not as expected:")).peekable();
        let is_timely = self.output.status.success() || self.is_late();
        is_timely || (wrong.peek().is_some() && wrong.all(|line| line.ends_with(" in virtual time")))
    }

    pub(crate) fn said(&self) -> String {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        text(&self.output.stdout) + &text(&self.output.stderr)
    }

    pub(crate) fn json(&self, stem: &str) -> Value {
        let path = self.folder.path().join("out").join(stem).join("report.json");
        let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{error}: {}", self.said()));
        serde_json::from_str(&text).unwrap()
    }
}

/// Runs an experiment of the repository in virtual time: everything is as its file expects. What its report says.
pub(crate) fn simulated(stem: &str) -> Value {
    simulated_with(stem, &[]).json(stem)
}

fn simulated_with(stem: &str, more: &[&str]) -> Run {
    let run =
        Run::of(&repository().join(format!("experiments/{stem}.toml")), &[&["--virtual"], more].concat());
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
    run
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
    vftree_4a = "vftree-4a";
    vftree_4b = "vftree-4b";
    dftree_1_on_switches_that_hold_lanes_to_shares = "dftree-1-shares";
    dftree_2_on_switches_that_hold_lanes_to_shares = "dftree-2-shares";
    vftree_4a_on_switches_that_hold_lanes_to_shares = "vftree-4a-shares";
    lash_with_other_buffers = "lash-depths";
    vftree_4b_with_other_buffers = "vftree-4b-depths";
    fault_two_by_each_method = "signalling-fault-two";
    lane_of_management = "management-lane";
    latency_and_bandwidth = "beff";
    static_rate = "static-rate";
    hosts_of_unlike_rates = "unlike-hosts";
    isolation_of_tenants = "isolation";
    live_migration_1 = "live-migration-1";
    live_migration_2 = "live-migration-2";
    live_migration_3 = "live-migration-3";
    migration_signalling_1 = "migration-signalling-1";
    migration_signalling_2 = "migration-signalling-2";
    migration_signalling_dynamic = "migration-signalling-dynamic";
    machines_at_a_hot_spot = "vm-hot-spot";
}

/// What a migration costs is what switches count, and the report shows both.
#[test]
fn migrations_cost_what_switches_count() {
    let report = simulated("migration-cost");
    let runs = report["runs"].as_array().unwrap();
    assert_eq!(runs.len(), 3, "one for each method");
    for run in runs {
        let migrations = run["migrations"].as_array().unwrap();
        assert_eq!(migrations.len(), 2);
        for one in migrations {
            let done = &one["outcome"]["done"];
            let smps = |value: &Value| {
                value["physical_smps"].as_u64().unwrap() + value["vswitch_smps"].as_u64().unwrap()
            };
            assert_eq!(smps(&done["told"]), smps(&one["counted"]), "{one}");
            // SL-to-VL, both arbitration tables, the LID with Armed, Active; the papers count 3.
            assert_eq!(
                (&done["told"]["hypervisor_smps"], &one["counted"]["hypervisor_smps"]),
                (&3.into(), &5.into())
            );
        }
    }
}

/// The VM manager moves a machine 100 times across the tree. The file judges order, repetitions, what is written, and the bystanders' rates
/// beside a run without moves; here: after each move every flow of the machine goes on before the next one.
#[test]
fn a_machine_moves_100_times_and_every_queue_pair_lives() {
    const MOVES: usize = 100;
    let run = simulated_with("vm-peers", &[]);
    let report = run.json("vm-peers");
    let gains = report["gains"].as_array().unwrap();
    let kept = gains.iter().filter(|gain| gain["finding"]["outcome"] == "kept").count();
    assert_eq!((gains.len(), kept), (3, 3), "three bystanders beside their runs without moves: {gains:?}");
    let moved = report["runs"].as_array().unwrap().iter().find(|run| run["migrations"][0].is_object());
    let migrations = moved.unwrap()["migrations"].as_array().unwrap();
    assert_eq!(migrations.len(), MOVES);
    let seconds = |at: &Value| at.as_u64().unwrap() as f64 / 1e9;
    let ended: Vec<f64> = migrations.iter().map(|one| seconds(&one["ended"])).collect();
    let begun: Vec<f64> = migrations.iter().map(|one| seconds(&one["at"])).collect();
    let samples = run.folder.path().join("out/vm-peers/samples-moves-hundred-seed-1-virtual.csv");
    let samples = std::fs::read_to_string(samples).unwrap();
    let mut delivered: BTreeMap<&str, Vec<(f64, u64)>> = BTreeMap::new();
    for line in samples.lines() {
        let fields: Vec<&str> = line.split(',').collect();
        if fields[1] == "flow" && !fields[2].starts_with("beside") {
            let sample = (fields[0].parse().unwrap(), fields[5].parse().unwrap());
            delivered.entry(fields[2]).or_default().push(sample);
        }
    }
    assert_eq!(delivered.len(), 8, "to four peers, and from them");
    for (flow, samples) in &delivered {
        let next = begun[1..].iter().copied().chain([f64::INFINITY]);
        for (nth, (ended, next)) in ended.iter().zip(next).enumerate() {
            let mut between = samples.iter().filter(|(at, _)| (*ended..=next).contains(at));
            let (first, last) = (between.next().unwrap(), between.next_back().unwrap());
            assert!(last.1 > first.1, "{flow} stands still after move {nth}: {first:?}, {last:?}");
        }
    }
}

/// With one FIFO for each lane of an input, and one packet at a time, lanes and outputs take turns at each input: the closed
/// forms hold.
#[test]
fn inputs_that_send_one_packet_at_a_time() {
    let fifo = ["--crossbar", "fifo"];
    for stem in ["dftree-1", "dftree-2", "dftree-3"] {
        drop(simulated_with(stem, &fifo));
    }
    let lanes = ["1", "2, by hand", "2, vFtree", "3, vFtree"].map(|lanes| format!("lanes={lanes}"));
    let only = lanes.iter().flat_map(|lanes| ["--only", lanes.as_str()]);
    drop(simulated_with("vftree-4b", &fifo.into_iter().chain(only).collect::<Vec<&str>>()));
}

/// Link 5 is full, and all that it brings goes to two hosts, which take turns: 8 Gb/s each, of which 1-9 and 6-9 have a half
/// each, and 10-9 has what they leave of host 9.
#[test]
fn two_outputs_take_turns_at_an_input_that_has_no_time_to_spare() {
    let file = repository().join("experiments/vftree-4b.toml");
    let run = Run::of(&file, &["--virtual", "--crossbar", "fifo", "--only", "lanes=4, by hand"]);
    let report = run.json("vftree-4b");
    let flows = report["runs"][0]["flows"].as_array().unwrap();
    for (name, wanted) in [("1-9", 4.0), ("6-9", 4.0), ("10-9", 12.9 - 8.0), ("8-11", 8.0)] {
        let flow = flows.iter().find(|flow| flow["name"] == name).unwrap();
        let found = flow["gbps"][0].as_f64().unwrap();
        assert!((found / wanted - 1.0).abs() < 0.02, "{name}: {found} for {wanted}");
    }
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

fn bounded(bound: &str) -> String {
    two_into_one(6, [1], bound)
}

#[test]
fn a_failed_expectation_is_named_and_fails_the_run() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("two.toml");
    std::fs::write(&file, bounded("at_least = 12\nmodel = \"regression\"")).unwrap();
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
    std::fs::write(&file, bounded("at_leest = 12")).unwrap();
    let run = Run::of(&file, &["--virtual"]);
    assert_eq!(run.output.status.code(), Some(2), "{}", run.said());
    let said = run.said();
    assert!(said.contains("two.toml:") && said.contains("at_leest") && said.contains("at_least"), "{said}");
}

/// `weft run --both`, again where processes woke up too late, which is no result.
fn live(file: &Path, more: &[&str]) -> Run {
    let mut said = String::new();
    for _ in 0..5 {
        let run = Run::of(file, &[&["--both", "--allow-busy"], more].concat());
        if run.output.status.success() {
            return run;
        }
        said = run.said();
        assert!(run.is_late(), "{said}");
    }
    panic!("five runs in a row woke up too late: {said}");
}

/// A machine moves between processes while it sends, and its flow goes on where it is. A run that woke up too late has moved it as
/// well: only its rates are no result.
#[test]
fn a_machine_moves_live_while_it_sends() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("moves.toml");
    let text = std::fs::read_to_string(repository().join("experiments/live-migration-1.toml")).unwrap();
    let text = text.split("[window]").next().unwrap().split("[[choices").next().unwrap();
    let topology = repository().join("topologies/live-migration.topo");
    let text = text.replace("../topologies/live-migration.topo", topology.to_str().unwrap());
    let text = text.replace("duration = 30", "duration = 9").replace("at = 10", "at = 3");
    let text = text.replace("pre_copy = 2.8\nstop_copy = 1.9\nresume = 0.7", "pre_copy = 1\nstop_copy = 0.5");
    std::fs::write(&file, text + "\n[window]\nafter = [5, 9]\n").unwrap();
    let run = Run::of(&file, &["--allow-busy"]);
    assert!(run.output.status.success() || run.is_late(), "{}", run.said());
    let report = run.json("moves");
    let run = &report["runs"][0];
    let moved = &run["migrations"][0];
    assert_eq!(run["driver"], "live");
    assert_eq!(moved["outcome"]["done"]["to"], "C vf1", "{moved}");
    assert!(moved["outcome"]["done"]["downtime"].as_u64().unwrap() >= 500_000_000, "{moved}");
    let counted = |key: &str| moved["counted"][key].as_u64().unwrap();
    assert_eq!(["switches", "physical_smps", "vswitch_smps"].map(counted), [1, 1, 2]);
    let flow = &run["flows"][0];
    assert!(
        flow["gbps"][0].as_f64().unwrap() > 1.0 && flow["errors"].as_array().unwrap().is_empty(),
        "{flow}"
    );
}

/// What a cut cable and a frozen subnet manager cost is in the report, live and in virtual time.
#[test]
fn fault_costs_are_reported_live_and_in_virtual_time() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("faults.toml");
    let topology = repository().join("topologies/dftree-1.topo");
    let text = format!(
        r#"
title = "faults"
duration = 9
[fabric]
topology = "{}"
[flow.2-3]
from = "host-2"
to = "host-3"
[[fault]]
at = 1
freeze = "sm"
for = 1
[[fault]]
at = 3
cut = "host-6/1"
for = 2
[[fault]]
at = 7
duplicate = "host-6/1"
percent = 5
"#,
        topology.display()
    );
    std::fs::write(&file, text).unwrap();
    let run = Run::of(&file, &["--both", "--allow-busy"]);
    assert!(run.output.status.success() || run.is_late(), "{}", run.said());
    let report = run.json("faults");
    let runs = report["runs"].as_array().unwrap();
    assert_eq!(runs.len(), 2, "{}", run.said());
    for run in runs {
        let faults = run["faults"].as_array().unwrap();
        let [frozen, cut, doubled] = faults.as_slice() else { panic!("{faults:?}") };
        assert!(frozen["fault"].as_str().unwrap().contains("the subnet manager is frozen"), "{frozen}");
        assert!(frozen["lasted_ns"].is_u64(), "{frozen}");
        for known in ["lasted_ns", "detected_after_ns", "rerouted_after_ns", "restored_after_ns"] {
            assert!(cut[known].is_u64(), "{}: {known}: {cut}", run["driver"]);
        }
        assert_eq!(cut["pairs_lost"], 6 * 5 - 5 * 4, "{cut}");
        for unknown in
            ["lasted_ns", "detected_after_ns", "rerouted_after_ns", "restored_after_ns", "pairs_lost"]
        {
            assert!(doubled[unknown].is_null(), "{unknown}: {doubled}");
        }
    }
    let page = std::fs::read_to_string(run.folder.path().join("out/faults/report.md")).unwrap();
    assert!(page.contains("### Faults") && page.contains("not known"), "{page}");
}

/// The link is 4x DDR, 16 Gb/s, of which an adapter takes 12.9: a tenth of that is 1.29, and the port waits for the rest of its time,
/// 92 %. Processes that wake up late make a live flow slower, and a port that has nothing to send does not wait.
fn drains_slowly(run: &Value) {
    let gbps: Vec<f64> =
        run["flows"][0]["gbps"].as_array().unwrap().iter().map(|rate| rate.as_f64().unwrap()).collect();
    let wait: Vec<f64> =
        run["ports"][0]["wait"].as_array().unwrap().iter().map(|share| share.as_f64().unwrap()).collect();
    let ([before, drained], [fast, slow]): ([f64; 2], [f64; 2]) =
        (gbps.try_into().unwrap(), wait.try_into().unwrap());
    assert!(drained <= 1.6 && slow >= 50.0, "{run}");
    if run["driver"] == "virtual" {
        assert!(before >= 6.0 && fast <= 20.0 && drained >= 0.6 && slow >= 80.0, "{run}");
    }
}

/// All words of the vocabulary are carried out by an experiment, on processes as in virtual time, with their ends; and a host that takes
/// packets at a tenth of its rate gives its credits back late: its switch's port waits, and the flow has what is left.
#[test]
fn every_word_is_carried_out_live_and_in_virtual_time() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("words.toml");
    let topology = repository().join("topologies/dftree-1.topo");
    let mut text = format!(
        "title = \"words\"\nduration = 21\n[fabric]\ntopology = \"{}\"\n[flow.2-3]\nfrom = \"host-2\"\nto = \"host-3\"\n\
         [pm]\nmode = \"watch\"\n[record]\nports = [\"B/1\"]\n[window]\nbefore = [0.2, 1]\ndrained = [19.2, 20.4]\n\
         [[fault]]\nat = 18.5\nslow-drain = \"host-3/1\"\npercent = 10\nfor = 2\n",
        topology.display()
    );
    for (at, word) in (1..).zip(WORDS) {
        text += &format!("[[fault]]\nat = {at}\n{word}\nfor = 0.7\n");
    }
    std::fs::write(&file, text).unwrap();
    let run = Run::of(&file, &["--both", "--allow-busy"]);
    assert!(run.is_well_but_for_time(), "{}", run.said());
    let report = run.json("words");
    let runs = report["runs"].as_array().unwrap();
    assert_eq!(runs.len(), 2, "{}", run.said());
    for run in runs {
        drains_slowly(run);
        let faults = run["faults"].as_array().unwrap();
        assert_eq!(faults.len(), WORDS.len() + 1, "{faults:?}");
        for (nth, fault) in faults.iter().enumerate() {
            let lasted = fault["lasted_ns"].as_u64().map(|nanos| nanos as f64 / 1e9);
            assert!(lasted.is_some_and(|lasted| (0.4..3.0).contains(&lasted)), "{}: {fault}", run["driver"]);
            // Its process, its cable, its links. A frozen manager takes none, and a link that trains again may be back before anyone looks.
            let takes_links = nth < 8 && !(3..5).contains(&nth);
            assert!(fault["detected_after_ns"].is_u64() || !takes_links, "{}: {fault}", run["driver"]);
        }
    }
}

/// In a ring that has stopped each port has packets, and never credit: PortXmitWait counts all of the time, live and in virtual
/// time. Its tick is 4 ns of fabric time, and a live window ends when its answers come.
#[test]
fn blocked_ports_wait_all_of_the_time_live_and_in_virtual_time() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("ring.toml");
    let text = std::fs::read_to_string(repository().join("experiments/deadlock.toml")).unwrap();
    let text = text.split("[[expect]]").next().unwrap();
    let text = text.replace("duration = 20", "duration = 10").replace("[12, 20]", "[6, 10]");
    std::fs::write(&file, text).unwrap();
    // However late a process wakes up, a blocked port waits.
    let run = Run::of(&file, &["--both", "--allow-busy", "--only", "engine.chain=minhop"]);
    assert!(run.output.status.success() || run.is_late(), "{}", run.said());
    let report = run.json("ring");
    let runs = report["runs"].as_array().unwrap();
    assert_eq!(runs.len(), 2);
    for run in runs {
        let ports = run["ports"].as_array().unwrap();
        assert_eq!(ports.len(), 7);
        for port in ports {
            let wait = port["wait"][0].as_f64().unwrap();
            // A live sample is as late as a wake-up: 120 ms of the window's 4 s are 3 %.
            let range = if run["driver"] == "live" { 97.0..=103.0 } else { 99.0..=100.0 };
            assert!(range.contains(&wait), "{} {port}", run["driver"]);
        }
    }
}

/// A window of 8 packets on cables of 4 km, which take 20 µs of fabric time: two of them to a host of the same leaf, four to
/// another one, and as many back. What processes add makes a live flow slower, never faster; without cables both have 12.9 Gb/s.
#[test]
fn long_cables_slow_a_window_live_and_in_virtual_time() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("long.toml");
    let rates =
        "[rates]\ncable_m = 4000\ncut_through = true\nbuffer_packets = 16\n[hosts]\nwindow_packets = 8\n";
    let text = bounded("at_least = 0.1\nmodel = \"regression\"");
    let text = text.replace("[rates]\n", rates).replace("lanes = 2\n", "");
    let text = text.replace("1-5", "1-2").replacen("to = \"host-5\"", "to = \"host-2\"", 1);
    let text = text.replace("6-5", "6-3").replacen("to = \"host-5\"", "to = \"host-3\"", 1);
    std::fs::write(&file, text).unwrap();
    // Wake-ups of some milliseconds are little beside round trips of 80 and 160.
    let run = Run::of(&file, &["--both", "--allow-busy"]);
    assert_ne!(run.output.status.code(), Some(2), "{}", run.said());
    let is_late = run.is_late();
    let report = run.json("long");
    let runs = report["runs"].as_array().unwrap();
    assert_eq!(runs.len(), 2);
    for run in runs {
        for (name, cables) in [("1-2", 4.0), ("6-3", 8.0)] {
            let flow = run["flows"].as_array().unwrap().iter().find(|flow| flow["name"] == name).unwrap();
            let gbps = flow["gbps"][0].as_f64().unwrap();
            let most = 8.0 * 2074.0 * 8.0 / (cables * 20_000.0);
            let least = if run["driver"] == "virtual" {
                0.94
            } else if is_late {
                0.0
            } else {
                0.7
            };
            assert!((least * most..most).contains(&gbps), "{} {name}: {gbps} of {most}", run["driver"]);
        }
    }
}

/// Real processes: the shares, order and balance of a live run. One that woke up too late is no
/// result, and is made again.
#[test]
fn live_processes_share_a_link_as_the_simulation_does() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("two.toml");
    std::fs::write(&file, bounded("value = 6.45\nmodel = \"closed form: 12.9 / 2\"")).unwrap();
    let report = live(&file, &[]).json("two");
    let drivers: Vec<&str> =
        report["runs"].as_array().unwrap().iter().map(|run| run["driver"].as_str().unwrap()).collect();
    assert_eq!(drivers, ["live", "virtual"]);
}
