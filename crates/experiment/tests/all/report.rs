//! Measures, verdicts and reports of recordings. The recordings are made here, with
//! throughputs that the tests choose.

use weft_experiment::{
    Conservation, Driver, ExperimentFile, FaultLog, FidelityVerdict, FlowPlan, FlowSample, FlowTotal,
    LaneConservation, Late, Mark, MarkKind, Outcome, Paper, Plan, PortSample, Recording, Report, RunResult,
    Sample, index,
};
use weft_fault::{FaultTimes, Sign};
use weft_host::traffic::{FlowReport, Latency, Move};
use weft_machine::Time;
use weft_topology::LoadError;
use weft_wire::ServiceLevel;

mod conditions;
mod spoilt;

const TOPOLOGY: &str = include_str!("../../../../topologies/dftree-1.topo");

pub(crate) const FILE: &str = include_str!("report.toml");

pub(crate) fn load(_path: &str, _from: &str) -> Result<String, LoadError> {
    Ok(TOPOLOGY.to_owned())
}

pub(crate) fn file(text: &str) -> ExperimentFile {
    ExperimentFile::parse("tests/x.toml", text).unwrap_or_else(|error| panic!("{error}"))
}

pub(crate) fn plan(file: &ExperimentFile, nth: usize) -> Plan {
    file.plan(&file.runs()[nth], &mut load).unwrap_or_else(|error| panic!("{error}"))
}

/// A recording in which every flow has the throughput that `gbps` says for every second.
fn recording(plan: &Plan, gbps: impl Fn(&FlowPlan, u64) -> f64) -> Recording {
    const STEPS: u64 = 4;
    let seconds = plan.duration.as_millis() / 1000;
    let mut so_far = vec![FlowSample::default(); plan.flows.len()];
    let mut exact = vec![0.0; plan.flows.len()];
    let mut samples = Vec::new();
    for step in 0..=seconds * STEPS {
        let at = Time::from_millis(step * 1000 / STEPS);
        for ((flow, sample), exact) in plan.flows.iter().zip(&mut so_far).zip(&mut exact) {
            if step > 0 {
                *exact += gbps(flow, (step - 1) / STEPS) * 1e9 / 8.0 / 1000.0 / STEPS as f64;
            }
            let packets = (*exact / (2048 + flow.overhead()) as f64) as u64;
            *sample =
                FlowSample { flow: flow.flow, sent_bytes: packets * 2048, packets, bytes: packets * 2048 };
        }
        // 19.4 % of a millisecond of fabric time for each second, in ticks of 4 ns.
        let xmit_wait = step * 48_500 / STEPS;
        samples.push(Sample {
            at,
            flows: so_far.clone(),
            ports: vec![PortSample { xmit_wait, ..PortSample::default() }; plan.ports.len()],
        });
    }
    let end = |flow: &FlowPlan, sender| FlowTotal {
        host: if sender { flow.senders[0] } else { flow.receivers[0] },
        report: FlowReport { flow: flow.flow, sender, ..FlowReport::default() },
    };
    let lane = LaneConservation {
        lane: 0,
        injected: 998,
        moved_in: 4,
        moved_out: 2,
        delivered: 990,
        in_flight: 7,
        dropped: 3,
    };
    Recording {
        run: plan.run.clone(),
        driver: Driver::Virtual,
        routed_by: "ftree, 1 lane".to_owned(),
        ended: plan.duration,
        samples,
        ends: plan.flows.iter().flat_map(|flow| [end(flow, true), end(flow, false)]).collect(),
        conservation: Conservation { lanes: vec![lane], violations: Vec::new() },
        ..Recording::default()
    }
}

pub(crate) fn without(plan: &Plan) -> Recording {
    recording(plan, |flow, second| match (flow.name.as_str(), second) {
        ("2-3", ..10) => 12.9,
        (_, ..10) => 0.0,
        _ => 3.23,
    })
}

pub(crate) fn with(plan: &Plan) -> Recording {
    let mut recording = recording(plan, |flow, second| match (flow.name.as_str(), second) {
        ("2-3", 10..13) => 3.23,
        ("2-3", _) => 12.8,
        (_, ..10) => 0.0,
        _ => 3.23,
    });
    let change = |at, from, to| Move {
        at: Time::from_millis(at),
        pause: Time::from_millis(120),
        from: ServiceLevel(from),
        to: ServiceLevel(to),
    };
    let sender =
        recording.ends.iter_mut().find(|end| end.report.flow == plan.flows[1].flow && end.report.sender);
    let report = &mut sender.expect("1-5 has a sender").report;
    report.moves = vec![change(12_500, 0, 1), change(31_000, 1, 0)];
    report.moves_total = 2;
    recording.marks = vec![
        Mark::hot_spot(Time::from_millis(12_400), "host-5"),
        Mark {
            at: Time::from_millis(30_900),
            kind: MarkKind::HotSpotEnded,
            text: "host-5 is none any more".to_owned(),
        },
    ];
    recording
}

pub(crate) fn results(file: &ExperimentFile) -> Vec<RunResult> {
    let (off, on) = (plan(file, 0), plan(file, 1));
    let result = |plan: &Plan, recording: &Recording| {
        file.result(plan, recording).unwrap_or_else(|error| panic!("{error}"))
    };
    vec![result(&off, &without(&off)), result(&on, &with(&on))]
}

#[test]
fn findings_measure_the_recorded_values() {
    let results = results(&file(FILE));
    for result in &results {
        assert_eq!(result.verdict.failures().collect::<Vec<_>>(), Vec::<String>::new());
        let alone = result.flows[0].gbps[0].expect("there are samples");
        assert!((alone - 12.85).abs() < 0.1, "{alone}");
    }
    let value = |name: &str| {
        let found = results[1].verdict.findings.iter().find(|finding| finding.name == name);
        found.unwrap_or_else(|| panic!("{name}")).measured.unwrap_or_else(|| panic!("{name} has no value"))
    };
    assert_eq!(value("1-5 moves to the slow lane"), 12.5);
    assert_eq!(value("1-5 moves back"), 31.0);
    assert_eq!(value("1-5 pauses to change its lane"), 120.0);
    assert!((value("C/1 waits, congested") - 19.4).abs() < 0.01);
    assert!((value("2-3 over 1-5, congested") - 12.8 / 3.23).abs() < 0.01);
    // Slow from 10 s to 13 s, and a second until a stretch of one second is whole again.
    let back = value("2-3 is back at 90 % after 10 s");
    assert!((3.5..=4.0).contains(&back), "{back}");
}

#[test]
fn a_host_that_takes_no_part_does_not_count() {
    let text = r#"
title = "a mix without its manager's host"
duration = 4
[fabric]
topology = "tree.topo"
[mix.all]
except = ["host-6"]
[window]
all = [1, 4]
[[expect]]
what = "per_host"
window = "all"
at_least = 1
model = "regression"
"#;
    let file = file(text);
    let plan = plan(&file, 0);
    let result = file.result(&plan, &recording(&plan, |_, _| 10.0)).unwrap_or_else(|error| panic!("{error}"));
    let measured = result.verdict.findings[0].measured.expect("there are samples");
    assert!((measured - 10.0 / 5.0).abs() < 0.01, "{measured} Gb/s for each of five hosts");
}

#[test]
fn the_report_says_it() {
    let file = file(FILE);
    let report = Report::new(&file, &results(&file));
    assert_eq!(report.failures, Vec::<String>::new());
    assert_eq!(report, Report::new(&file, &results(&file)), "the same twice");
    let names: Vec<&str> = report.files.keys().map(String::as_str).collect();
    assert_eq!(
        names,
        [
            "pm-mode-off-seed-1-virtual.svg",
            "pm-mode-on-seed-1-virtual.svg",
            "report.json",
            "report.md",
            "samples-pm-mode-off-seed-1-virtual.csv",
            "samples-pm-mode-on-seed-1-virtual.csv",
        ]
    );
    insta::assert_snapshot!("report", report.files["report.md"]);
    let json: serde_json::Value = serde_json::from_str(&report.files["report.json"]).expect("it is JSON");
    assert_eq!(json["runs"][1]["verdict"]["findings"][0]["paper"]["value"], 12.9);
    let csv = &report.files["samples-pm-mode-on-seed-1-virtual.csv"];
    assert_eq!(csv.lines().count(), 1 + 161 * 3);
    let page = index(&[("x".to_owned(), report)]);
    assert!(page.contains("[a victim and a \\| hot spot](x/report.md) | 2 | pass |"), "{page}");
    assert!(
        page.contains("| what the victim gains | virtual time | 3.23 Gb/s | 12.8 Gb/s | 296 % |"),
        "{page}"
    );
}

/// The model is kept and the paper is not agreed with, and the other way round: neither verdict knows of the other.
#[test]
fn paper_and_model_are_judged_apart() {
    let file = file(&FILE.replace(
        "at_least = 11.5\nmodel = \"regression\"\npaper = 7.5",
        "at_least = 13\nmodel = \"regression\"\npaper = 12",
    ));
    let report = Report::new(&file, &results(&file));
    let row = |nth: usize| (report.fidelity[nth].ours.unwrap(), report.fidelity[nth].verdict);
    let (ours, verdict) = row(3);
    assert!((ours - 12.8).abs() < 0.1, "{ours}");
    assert_eq!(verdict, FidelityVerdict::Agrees, "within 15 % of 12");
    assert_eq!(report.failures.len(), 1, "{:?}", report.failures);
    assert!(report.failures[0].ends_with("expected is at least 13 Gb/s"), "{:?}", report.failures);
    let gain = report.fidelity.last().unwrap();
    assert!(gain.verdict == FidelityVerdict::Differs && gain.ratio.unwrap() > 1.9, "{gain:?}");
    let json: serde_json::Value = serde_json::from_str(&report.files["report.json"]).unwrap();
    assert_eq!(json["fidelity"].as_array().unwrap().len(), report.fidelity.len());
    assert_eq!(json["fidelity"][3]["verdict"], "agrees");
}

/// What went into the run counts neither way, unless it does not come out again.
#[test]
fn an_input_of_the_run_is_given() {
    let with = |paper: &str, given: &str| {
        let file = file(&FILE.replace(
            "at_least = 11.5\nmodel = \"regression\"\npaper = 7.5",
            &format!("at_least = 11.5\nmodel = \"regression\"\npaper = {paper}\ngiven = \"{given}\""),
        ));
        let results = results(&file);
        let report = Report::new(&file, &results);
        let agrees =
            results.iter().flat_map(|run| &run.verdict.findings).filter(|found| found.agrees.is_some());
        (report.fidelity[3].clone(), report.files["report.md"].clone(), agrees.count())
    };
    // Measured is 12.8.
    let (row, page, judged) = with("12.9", "host_limit_gbps");
    assert_eq!(row.verdict, FidelityVerdict::Given);
    assert!(row.markdown.contains("| given | an input: host\\_limit\\_gbps"), "{}", row.markdown);
    assert!(page.contains(" 1 are inputs of the run and count neither way."), "{page}");
    let (row, _, all) = with("12.9", "host_limit_gbps * 0.9");
    assert_eq!((row.verdict, all), (FidelityVerdict::Given, judged));
    let (row, ..) = with("11", "host_limit_gbps * 0.85");
    assert_eq!(row.verdict, FidelityVerdict::Differs, "ours is 16 % more than what is given");
}

#[test]
fn figures_are_drawn_with_lines_and_marks() {
    let file = file(FILE);
    let report = Report::new(&file, &results(&file));
    let svg = &report.files["pm-mode-on-seed-1-virtual.svg"];
    assert_eq!(svg.matches("<path").count(), 2);
    // Each is drawn in two pieces, around the labels of the axis.
    assert_eq!(svg.matches("class=\"event\"").count(), 2 * 2);
    for part in [
        ">2-3<",
        ">1-5<",
        "hot spot: host-5",
        "prefers-color-scheme:dark",
        "a victim and a | hot spot (pm.mode = on",
    ] {
        assert!(svg.contains(part), "{part}");
    }
    assert!(!svg.contains("NaN") && !svg.contains("inf"));
}

/// The failures of the run with the manager on, after a change.
fn failures(change: impl FnOnce(&mut Recording)) -> Vec<String> {
    let file = file(FILE);
    let plan = plan(&file, 1);
    let mut recording = with(&plan);
    change(&mut recording);
    let result = file.result(&plan, &recording).unwrap_or_else(|error| panic!("{error}"));
    result.verdict.failures().collect()
}

#[test]
fn a_failed_expectation_says_why() {
    assert_eq!(failures(|_| {}), Vec::<String>::new());
    let late = |p99| Some(Late { p99: Time::from_millis(p99), ..Late::default() });
    for (change, expected) in [
        (
            (|of| of.ends[2].report.moves.clear()) as fn(&mut Recording),
            &["1-5 moves to the slow lane: nothing was measured; expected is 10 to 16 s"] as &[&str],
        ),
        (
            |of| of.ends[0].report.disorder = 2,
            &["everything is delivered once and in order: flow 1 delivered 2 twice or out of order"],
        ),
        (
            |of| of.conservation.lanes[0].delivered -= 1,
            &[
                "packets injected = delivered + in flight + dropped: lane 0: 1002 came, but 989 delivered, 2 gone to other lanes, 7 in flight and 3 dropped",
            ],
        ),
        (
            |of| of.conservation.lanes.clear(),
            &["packets injected = delivered + in flight + dropped: no balance was taken"],
        ),
        (|of| of.ended = Time::from_secs(20), &["the run ended at 20 s of 40 s"]),
        (|of| of.driver = Driver::Live, &["the lateness of wake-ups was not measured"]),
        (|of| of.failure = Some("the manager fell".to_owned()), &["the run failed: the manager fell"]),
    ] {
        let failures = failures(change);
        for line in expected {
            assert!(failures.iter().any(|failure| failure == line), "{line} is not in {failures:?}");
        }
    }
    let live = |p99| {
        failures(|of| {
            of.driver = Driver::Live;
            of.late = late(p99);
        })
    };
    assert_eq!(live(5), Vec::<String>::new());
}

#[test]
fn seeds_are_averaged_and_bars_drawn() {
    let text = FILE.replace("duration = 40", "duration = 40\nseeds = 2").replace("[[gain]]", "[[figure]]\nkind = \"bars\"\ntitle = \"per host\"\nbars = \"pm.mode\"\nwindow = \"congested\"\n\n[[gain]]");
    let file = file(&text);
    let runs = file.runs();
    assert_eq!(runs.iter().map(|run| run.seed).collect::<Vec<_>>(), [1, 2, 1, 2]);
    let results: Vec<RunResult> = (0..4)
        .map(|nth| {
            let plan = plan(&file, nth);
            let gbps = [3.0, 3.4, 12.6, 12.9][nth];
            let recording = recording(&plan, |flow, _| if flow.name == "2-3" { gbps } else { 0.0 });
            file.result(&plan, &recording).unwrap_or_else(|error| panic!("{error}"))
        })
        .collect();
    let report = Report::new(&file, &results);
    let gain = report.gains[0].finding.measured.expect("both were measured");
    assert!((gain - (12.75 / 3.2 - 1.0) * 100.0).abs() < 0.5, "{gain}");
    assert!(report.files["report.md"].contains("12.75 Gb/s (12.6 to 12.9)"), "{}", report.files["report.md"]);
    insta::assert_snapshot!("bars", report.files["bars-1-virtual.svg"]);
}

#[test]
fn datagrams_may_overtake_only_after_a_repath() {
    let file = file(&FILE.replacen("[flow.1-5]\n", "[flow.1-5]\ntransport = \"ud\"\n", 1));
    let plan = plan(&file, 1);
    let flow = plan.flows.iter().find(|flow| flow.name == "1-5").unwrap_or_else(|| panic!("no flow"));
    let order = |repathed: bool, disorder: u64| {
        let mut recording = with(&plan);
        if repathed {
            recording.marks.push(Mark { at: plan.duration, kind: MarkKind::Repath, text: String::new() });
        }
        for end in recording.ends.iter_mut().filter(|end| end.report.flow == flow.flow && !end.report.sender)
        {
            (end.report.out_of_order, end.report.disorder) = (7, disorder);
        }
        let result = file.result(&plan, &recording).unwrap_or_else(|error| panic!("{error}"));
        let findings = result.verdict.findings;
        let finding = findings.into_iter().find(|of| of.name == "everything is delivered once and in order");
        finding.map(|of| of.reason).unwrap_or_else(|| panic!("not judged"))
    };
    let wrong = |count| format!("flow {} delivered {count} twice or out of order", flow.flow.0);
    assert_eq!(order(false, 0), wrong(7));
    assert_eq!(order(true, 0), "");
    assert_eq!(order(true, 2), wrong(2), "what came twice was overtaken by nothing");
}

#[test]
fn latencies_and_rings_are_b_effs() {
    let text = FILE.replace("duration = 40", "duration = 200").replace(
        "[window]",
        "[beff.test]\nhosts = [\"host-1\", \"host-2\", \"host-4\"]\nstart = 50\nrandom_rings = 1\n\n[window]",
    );
    let quantities = [
        "ping_pong_latency_min",
        "ping_pong_latency_max",
        "natural_ring_latency",
        "ping_pong_bandwidth_avg",
        "natural_ring_bandwidth",
    ];
    let expects: String = quantities
        .map(|of| format!("[[expect]]\nwhat = \"beff\"\ntest = \"test\"\nquantity = \"{of}\"\n\n"))
        .concat();
    let file = file(&text.replace("[[gain]]", &format!("{expects}[[gain]]")));
    let plan = plan(&file, 0);
    // 3 pairs, 1 natural and 1 random ring, small and large; 3 flows in a small ring and 6 in a large one.
    assert_eq!(plan.flows.len(), 2 + 2 * 3 + 2 * 3 + 2 * 6);
    let mut recording =
        recording(
            &plan,
            |flow, _| if flow.beff.as_ref().is_some_and(|tag| tag.bandwidth) { 4.0 } else { 0.0 },
        );
    for end in recording.ends.iter_mut().filter(|end| end.report.sender) {
        // Round trips of 4, 5, 6, … ms of machine time are 2, 2.5, 3, … µs of fabric time one way.
        let nanos = 4_000_000
            + 1_000_000 * u64::from(end.report.flow.0 - plan.flows[2].flow.0.min(end.report.flow.0));
        let latency =
            Latency { count: 3, sum_ns: 3 * nanos, min_ns: nanos, max_ns: nanos, ..end.report.latency };
        end.report.latency = latency;
    }
    let result = file.result(&plan, &recording).unwrap_or_else(|error| panic!("{error}"));
    let value = |of: &str| {
        let name = format!("test: {}", of.replace('_', " "));
        let finding = result.verdict.findings.iter().find(|finding| finding.name == name);
        assert_eq!(finding.map(|finding| finding.outcome), Some(Outcome::Shown));
        finding.and_then(|finding| finding.measured).unwrap_or_else(|| panic!("{of}"))
    };
    assert_eq!(value("ping_pong_latency_min"), 2.0);
    assert_eq!(value("ping_pong_latency_max"), 3.0);
    assert_eq!(value("natural_ring_latency"), (3.5 + 4.0 + 4.5) / 3.0);
    // The large pairs follow 9 small flows: 13, 14 and 15 ms for 65 536 bytes there and back.
    let bandwidths = [13.0, 14.0, 15.0].map(|millis| 65_536.0 / (millis / 2.0));
    assert!((value("ping_pong_bandwidth_avg") - bandwidths.iter().sum::<f64>() / 3.0).abs() < 1e-6);
    // Two flows of 4 Gb/s leave each host; 2048 of 2074 bytes are body.
    let ring = value("natural_ring_bandwidth");
    assert!((ring - 2.0 * 4000.0 / 8.0 * 2048.0 / 2074.0).abs() < 5.0, "{ring}");
}

/// The same reckoning as a laboratory's: a time that was not seen is not known, and never 0.
#[test]
fn a_report_says_what_faults_cost_and_what_is_not_known() {
    let file = file(include_str!("faults.toml"));
    let plan = plan(&file, 0);
    let mut log = FaultLog::default();
    plan.steps.iter().for_each(|step| log.note(&plan, step.at, &step.action));
    let (hosts, cables) = (6, plan.fabric.cables().count() as u32);
    let seen = [
        (16_000, Sign::Routed { hosts, cables }),
        (0, Sign::Routed { hosts, cables }),
        (10_500, Sign::Noticed),
        (11_000, Sign::Routed { hosts: 5, cables: cables - 1 }),
    ];
    let times = log.times(seen.map(|(at, sign)| (Time::from_millis(at), sign)));
    let told = |times: &FaultTimes<String>| {
        let FaultTimes { lasted_ns, detected_after_ns, rerouted_after_ns, restored_after_ns, .. } = *times;
        [lasted_ns, detected_after_ns, rerouted_after_ns, restored_after_ns]
            .map(|ns| ns.map(|ns| ns / 1_000_000))
    };
    assert_eq!(told(&times[0]), [Some(5_000), Some(500), Some(1_000), Some(1_000)], "{times:?}");
    assert_eq!((times[0].pairs_lost, times[0].began_ns), (Some(6 * 5 - 5 * 4), 10_000_000_000));
    assert_eq!([told(&times[1]), told(&times[2])], [[None; 4]; 2], "{times:?}");
    let recording = Recording { faults: times, ..recording(&plan, |_, _| 10.0) };
    let result = file.result(&plan, &recording).unwrap_or_else(|error| panic!("{error}"));
    let report = Report::new(&file, &[result]);
    let page = &report.files["report.md"];
    let section = page.split("### Faults\n\n").nth(1).unwrap_or_else(|| panic!("{page}"));
    let cells = |line: &str| line.split('|').map(|cell| cell.trim().to_owned()).collect::<Vec<_>>();
    let rows: Vec<Vec<String>> = section.lines().skip(2).take(3).map(cells).collect();
    assert_eq!(rows[0][4..9], ["5 s", "0.5 s", "1 s", "1 s", "10"], "{section}");
    assert!(rows[1][5..9].iter().all(|cell| cell == "not known"), "{section}");
    assert!(rows[2][3].contains("the subnet manager is frozen"), "{section}");
}

#[test]
fn agreement_with_a_paper_is_within_15_percent() {
    let empty = String::new;
    let paper = |value, is_limit| Paper { value, is_limit, source: empty(), why: empty(), given: empty() };
    let agrees = |value: f64, is_limit, ours: f64| paper(value, is_limit).agrees(Some(ours));
    assert_eq!([2.56, 2.54, 3.44, 3.46].map(|ours| agrees(3.0, false, ours)), [true, false, true, false]);
    assert_eq!([0.0, 0.77, 0.88, 0.9].map(|ours| agrees(0.77, true, ours)), [true, true, true, false]);
    assert_eq!([0.0, 0.1].map(|ours| agrees(0.0, false, ours)), [true, false]);
    assert!(!paper(3.0, false).agrees(None), "what was not measured");
}
