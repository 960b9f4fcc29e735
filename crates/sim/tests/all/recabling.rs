//! Devices and cables come, move and go one at a time, as by the verbs of `weft topo`: after each change the subnet manager
//! comes to rest by itself, knows exactly the devices and cables that it can reach, and tables lead everywhere. In the end
//! everything is as after a fresh start.
//!
//! `WEFT_SCHEDULES` says how many seeds (300 if not said), `WEFT_CHANGES` how many changes each has at most (4), and `WEFT_SEED`
//! replays one and prints its trace on failure.

use seeds::{number, run_part};
use weft_machine::Time;
use weft_sim::{Change, Schedule, Simulation, TraceMode};

use crate::support::counts::Counts;
use crate::support::seeds;
use crate::support::workload::{FreshStart, Pairs, Requests, Workload, all, carry_out, count_change};

const SCHEDULES: u64 = 300;

/// Changes of one seed: each of 300 fabrics gets some of its own within the time of a test run.
const CHANGES_MAX: usize = 4;

/// How long the fabric may take to come to rest after a change.
const PATIENCE: Time = Time::from_secs(60);

/// The seeds of each part that are run twice, with a trace.
const TWICE: u64 = 2;

/// How many seeds a part has at least for everything to happen in one of them.
const ALL_KINDS: u64 = 25;

const KINDS: [&str; 4] = ["removed", "added", "connected", "disconnected"];

/// Lets the fabric come to rest, and looks at it.
fn rest_and_check(simulation: &mut Simulation) -> Result<(), String> {
    let limit = simulation.now() + PATIENCE;
    simulation.run_until_quiet(limit).map_err(|error| error.to_string())?;
    simulation.check().map_err(all)?;
    simulation.check_picture().map_err(all)
}

/// Makes changes one after the other, each when the fabric has come to rest.
struct Recabling<'a> {
    schedule: &'a Schedule,
    changes: usize,
    made: Counts,
}

impl Workload for Recabling<'_> {
    fn start(&mut self, simulation: &mut Simulation) -> Result<(), String> {
        let seat = simulation.sm_port();
        rest_and_check(simulation).map_err(|error| format!("at first: {error}"))?;
        for &(_, change) in self.schedule.changes.iter().take(self.changes) {
            // The manager's own device stays: without it, what is left would never come up.
            if change == Change::Remove(seat.node) || !simulation.change(change) {
                continue;
            }
            count_change(&mut self.made, change);
            rest_and_check(simulation).map_err(|error| format!("after {change:?}: {error}"))?;
        }
        Ok(())
    }

    fn check(&mut self, _: &mut Simulation, counts: &mut Counts) -> Result<(), String> {
        counts.sum(std::mem::take(&mut self.made));
        Ok(())
    }
}

fn recable(schedule: &Schedule, simulation: &mut Simulation, changes: usize) -> Result<Counts, String> {
    let mut recabling = Recabling { schedule, changes, made: Counts::of(&KINDS) };
    let mut fresh = FreshStart { seed: schedule.seed, patience: PATIENCE };
    let mut requests = Requests { refusals_count: false };
    carry_out(simulation, &mut [&mut recabling, &mut Pairs, &mut fresh, &mut requests])
}

/// What is wrong after the changes of `seed`, if anything is; otherwise what happened, and the trace's hash.
fn run(seed: u64, trace: TraceMode) -> Result<(Counts, u64), String> {
    run_changes(seed, trace, number("WEFT_CHANGES").map_or(CHANGES_MAX, |count| count as usize))
}

/// The same with at most this number of changes.
fn run_changes(seed: u64, trace: TraceMode, changes: usize) -> Result<(Counts, u64), String> {
    let mut schedule = Schedule::with_churn(seed).map_err(|error| error.to_string())?;
    // One manager, and nothing else goes wrong: `churn.rs` has that.
    schedule.options.trace = trace;
    schedule.options.with_pm = false;
    schedule.options.standbys.clear();
    let mut simulation = Simulation::new(&schedule.fabric, schedule.options.clone(), seed);
    let counts = recable(&schedule, &mut simulation, changes).map_err(|error| {
        format!(
            "seed {seed} (WEFT_SEED={seed} replays it)\n  {error}\n{:?}, SM at {:?}, pack {}\n{}",
            schedule.fabric.counts(),
            schedule.options.sm_port,
            schedule.options.pack,
            simulation.trace().lines()
        )
    })?;
    Ok((counts, simulation.trace().hash()))
}

/// The seeds of one of four parts, so that they run beside each other.
fn part(part: u64) {
    let Some((counts, seeds)) = run_part(part, (SCHEDULES, TWICE), run, Counts::sum) else { return };
    if seeds >= ALL_KINDS {
        counts.all_happened();
    }
}

seeds::four_parts!(part);

/// All hosts were served and nothing led to a switch that had come back: the manager kept such tables, as they burdened cables no
/// more than its own (`keeps` in `weft-routing`).
#[test]
fn tables_without_a_returned_switch_are_not_kept() {
    let (counts, _) = run_changes(88, TraceMode::Off, 100).unwrap_or_else(|error| panic!("{error}"));
    assert!(["added", "removed", "pairs"].iter().all(|name| counts.get(name) > 0), "{counts:?}");
}
