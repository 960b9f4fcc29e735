//! Random schedules of faults on random fabrics, each of which must come to rest and be right, with the LIDs of a fresh
//! start of the fabric that is left, and with tables that a new manager leaves alone.
//!
//! `WEFT_SCHEDULES` says how many (300 if not said), `WEFT_SEED` replays one and prints its trace on failure.

use seeds::run_part;
use weft_machine::Time;
use weft_sim::{Schedule, Simulation, TraceMode};

use crate::support::counts::Counts;
use crate::support::seeds;
use crate::support::workload::{Faults, FreshStart, NewManager, Pairs, Rest, Tables, Workload, carry_out};

const SCHEDULES: u64 = 300;

/// How long a fabric may take to come to rest after its last fault.
const PATIENCE: Time = Time::from_secs(300);

/// The seeds of each part that are run twice, with a trace.
const TWICE: u64 = 3;

/// How many seeds a part has at least for all kinds of faults to be among them.
const ALL_KINDS: u64 = 50;

/// Lets everything happen, and looks at what is left.
fn rest_and_check(schedule: &Schedule, simulation: &mut Simulation) -> Result<Counts, String> {
    let mut fresh = FreshStart { seed: schedule.seed, patience: PATIENCE };
    let workloads: &mut [&mut dyn Workload] = &mut [
        &mut Rest(PATIENCE),
        &mut Faults(schedule),
        &mut Tables,
        &mut fresh,
        &mut Pairs,
        &mut NewManager(PATIENCE),
    ];
    carry_out(simulation, workloads)
}

/// What is wrong after the schedule of `seed`, if anything is; otherwise what happened, and the trace's hash.
fn run(seed: u64, trace: TraceMode) -> Result<(Counts, u64), String> {
    let mut schedule = Schedule::random(seed).map_err(|error| error.to_string())?;
    schedule.options.trace = trace;
    let mut simulation = Simulation::new(&schedule.fabric, schedule.options.clone(), seed);
    let checked = rest_and_check(&schedule, &mut simulation);
    let checked = checked.map(|totals| (totals, simulation.trace().hash()));
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
    let Some((counts, seeds)) = run_part(part, (SCHEDULES, TWICE), run, Counts::sum) else { return };
    if seeds >= ALL_KINDS {
        counts.all_happened();
    }
    assert!(seeds == 0 || counts.get("nodes") >= seeds, "every manager reaches itself at least: {counts:?}");
}

seeds::four_parts!(part);
