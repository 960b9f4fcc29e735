//! Devices and cables come, move and go one at a time, as by the verbs of `weft topo`: after each change the subnet manager
//! comes to rest by itself, knows exactly the devices and cables that it can reach, and tables lead everywhere. In the end
//! everything is as after a fresh start.
//!
//! `WEFT_SCHEDULES` says how many seeds (300 if not said), `WEFT_CHANGES` how many changes each has at most (4), and `WEFT_SEED`
//! replays one and prints its trace on failure.

use seeds::{number, run_part};
use weft_machine::Time;
use weft_sim::{Change, Schedule, Simulation, TraceMode, Violation};

use crate::support::seeds;

const SCHEDULES: u64 = 300;

/// Changes of one seed: each of 300 fabrics gets some of its own within the time of a test run.
const CHANGES_MAX: usize = 4;

/// How long the fabric may take to come to rest after a change.
const PATIENCE: Time = Time::from_secs(60);

/// The seeds of each part that are run twice, with a trace.
const TWICE: u64 = 2;

/// How many seeds a part has at least for everything to happen in one of them.
const ALL_KINDS: u64 = 25;

/// What happened in one schedule, or in several.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Totals {
    removed: u64,
    added: u64,
    connected: u64,
    disconnected: u64,
    /// Pairs that were checked in the end.
    pairs: u64,
}

impl Totals {
    fn count(&mut self, change: Change) {
        *match change {
            Change::Remove(_) => &mut self.removed,
            Change::Add(_) => &mut self.added,
            Change::Connect(_) => &mut self.connected,
            Change::Disconnect(_) => &mut self.disconnected,
        } += 1;
    }

    fn add(&mut self, other: Self) {
        let Self { removed, added, connected, disconnected, pairs } = other;
        self.removed += removed;
        self.added += added;
        self.connected += connected;
        self.disconnected += disconnected;
        self.pairs += pairs;
    }
}

fn all(violations: Vec<Violation>) -> String {
    violations.into_iter().map(|violation| violation.to_string()).collect::<Vec<_>>().join("\n  ")
}

/// Lets the fabric come to rest, and looks at it.
fn rest_and_check(simulation: &mut Simulation) -> Result<(), String> {
    let limit = simulation.now() + PATIENCE;
    simulation.run_until_quiet(limit).map_err(|error| error.to_string())?;
    simulation.check().map_err(all)?;
    simulation.check_picture().map_err(all)
}

fn recable(schedule: &Schedule, simulation: &mut Simulation, changes: usize) -> Result<Totals, String> {
    let mut totals = Totals::default();
    let seat = simulation.sm_port();
    rest_and_check(simulation).map_err(|error| format!("at first: {error}"))?;
    for &(_, change) in schedule.changes.iter().take(changes) {
        // The manager's own device stays: without it, what is left would never come up.
        if change == Change::Remove(seat.node) || !simulation.change(change) {
            continue;
        }
        totals.count(change);
        rest_and_check(simulation).map_err(|error| format!("after {change:?}: {error}"))?;
    }
    totals.pairs = simulation.probe().map_err(all)?;
    let fresh = simulation.fresh_snapshot(schedule.seed, PATIENCE);
    let fresh = fresh.map_err(|error| format!("a fresh start: {error}"))?;
    let now = simulation.snapshot();
    if now.lids != fresh.lids {
        return Err(format!("LIDs are not a fresh start's: {:?}\n  {:?}", now.lids, fresh.lids));
    }
    let requests = simulation.requests();
    if requests.open() > 0 || requests.unasked > 0 || requests.lost > 0 {
        return Err(format!("not one answer to each request: {requests:?}"));
    }
    Ok(totals)
}

/// What is wrong after the changes of `seed`, if anything is; otherwise what happened, and the trace's hash.
fn run(seed: u64, trace: TraceMode) -> Result<(Totals, u64), String> {
    run_changes(seed, trace, number("WEFT_CHANGES").map_or(CHANGES_MAX, |count| count as usize))
}

/// The same with at most this number of changes.
fn run_changes(seed: u64, trace: TraceMode, changes: usize) -> Result<(Totals, u64), String> {
    let mut schedule = Schedule::with_churn(seed).map_err(|error| error.to_string())?;
    // One manager, and nothing else goes wrong: `churn.rs` has that.
    schedule.options.trace = trace;
    schedule.options.with_pm = false;
    schedule.options.standbys.clear();
    let mut simulation = Simulation::new(&schedule.fabric, schedule.options.clone(), seed);
    let totals = recable(&schedule, &mut simulation, changes).map_err(|error| {
        format!(
            "seed {seed} (WEFT_SEED={seed} replays it)\n  {error}\n{:?}, SM at {:?}, pack {}\n{}",
            schedule.fabric.counts(),
            schedule.options.sm_port,
            schedule.options.pack,
            simulation.trace().lines()
        )
    })?;
    Ok((totals, simulation.trace().hash()))
}

/// The seeds of one of four parts, so that they run beside each other.
fn part(part: u64) {
    let Some((totals, seeds)) = run_part(part, (SCHEDULES, TWICE), run, Totals::add) else { return };
    if seeds >= ALL_KINDS {
        let Totals { removed, added, connected, disconnected, pairs } = totals;
        let happened = [removed, added, connected, disconnected, pairs].into_iter().all(|count| count > 0);
        assert!(happened, "something never happened: {totals:?}");
    }
}

seeds::four_parts!(part);

/// All hosts were served and nothing led to a switch that had come back: the manager kept such tables, as they burdened cables no
/// more than its own (`keeps` in `weft-routing`).
#[test]
fn tables_that_lead_to_no_switch_that_has_come_back_are_not_kept() {
    let (totals, _) = run_changes(88, TraceMode::Off, 100).unwrap_or_else(|error| panic!("{error}"));
    assert!(totals.added > 0 && totals.removed > 0 && totals.pairs > 0, "{totals:?}");
}
