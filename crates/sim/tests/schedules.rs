//! Random schedules of faults on random fabrics, each of which must come to rest and be right.
//!
//! `WEFT_SCHEDULES` says how many (300 if not said), `WEFT_SEED` replays one and prints its trace on failure.

use weft_machine::Time;
use weft_sim::{Schedule, TraceMode};

const SCHEDULES: u64 = 300;

/// How long a fabric may take to come to rest after its last fault.
const PATIENCE: Time = Time::from_secs(300);

fn number(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{name} is to be a number, not `{text}`")))
}

/// The seeds of each part that are run twice, with a trace.
const TWICE: u64 = 3;

/// What is wrong after the schedule of `seed`, if anything is; otherwise how many packets arrived, and the trace's
/// hash.
fn run(seed: u64, trace: TraceMode) -> Result<(u64, u64), String> {
    let mut schedule = Schedule::random(seed).map_err(|error| error.to_string())?;
    schedule.options.trace = trace;
    let mut simulation = schedule.simulation();
    let quiet = simulation.run_until_quiet(PATIENCE).map_err(|error| error.to_string());
    let checked = quiet.and_then(|_| {
        let all = |violations: Vec<weft_sim::Violation>| {
            violations.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n  ")
        };
        simulation.check().map_err(all)?;
        simulation.probe().map_err(all)
    });
    let checked = checked.map(|packets| (packets, simulation.trace().hash()));
    checked.map_err(|error| {
        let faults: Vec<String> =
            schedule.faults.iter().map(|(at, fault)| format!("{at} {fault:?}")).collect();
        let counts = schedule.fabric.counts();
        let summary = simulation.summaries().last();
        format!(
            "seed {seed} (WEFT_SEED={seed} replays it)\n  {error}\n{counts:?}\n{:?}\n{}\nlast: {summary:?}\n{}",
            schedule.options,
            faults.join("\n"),
            simulation.trace().lines()
        )
    })
}

/// The seeds of one of four parts, so that they run beside each other.
fn part(part: u64) {
    if let Some(seed) = number("WEFT_SEED") {
        if part == 0 {
            run(seed, TraceMode::Lines).unwrap_or_else(|error| panic!("{error}"));
        }
        return;
    }
    let count = number("WEFT_SCHEDULES").unwrap_or(SCHEDULES);
    let (mut packets, mut failures) = (0, Vec::new());
    for seed in (0..count).filter(|seed| seed % 4 == part) {
        let twice = seed / 4 < TWICE;
        let trace = if twice { TraceMode::Hash } else { TraceMode::Off };
        match run(seed, trace) {
            Ok((arrived, hash)) => {
                packets += arrived;
                if twice && run(seed, trace) != Ok((arrived, hash)) {
                    failures.push(format!("seed {seed}: another trace the second time"));
                }
            }
            Err(failure) => failures.push(failure),
        }
    }
    assert!(failures.is_empty(), "{} of {count}:\n{}", failures.len(), failures.join("\n"));
    assert!(packets > 0, "packets were exchanged");
}

#[test]
fn part_0() {
    part(0);
}

#[test]
fn part_1() {
    part(1);
}

#[test]
fn part_2() {
    part(2);
}

#[test]
fn part_3() {
    part(3);
}
