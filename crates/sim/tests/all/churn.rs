//! Random schedules in which devices and cables come and go while managers sweep and traffic flows: in the end the master
//! knows exactly what is there, all ports are Active, tables lead everywhere, every packet is accounted for, a new manager
//! writes nothing, and every request to a node has had one answer.
//!
//! `WEFT_SCHEDULES` says how many (40 if not said; `cargo xtask long` runs 1000), `WEFT_SEED` replays one and prints its trace on
//! failure.

use std::cell::Cell;
use std::rc::Rc;

use rand::SeedableRng;
use rand_pcg::Pcg64;
use seeds::run_part;
use support::anywhere::{Anywhere, stuck};
use weft_machine::Time;
use weft_sim::{Change, Fault, Process, Schedule, Simulation, TraceMode, TrafficAccount, Violation};
use weft_topology::PortRef;

use crate::support;
use crate::support::seeds;

const SCHEDULES: u64 = 40;

/// How long a fabric may take to come to rest after its last change.
const PATIENCE: Time = Time::from_secs(300);

/// When the traffic ends: a while after the changes.
const TRAFFIC_UNTIL: Time = Time::from_secs(5);

/// How long what is under way then may take: nothing waits longer in a switch than a few of its lifetimes of 21 s.
const DRAIN: Time = Time::from_secs(90);

/// The longest that managers' own packets can be under way without a break: a sweep of the performance manager's interval.
const BETWEEN_SWEEPS: Time = Time::from_secs(2);

/// How often everything is added up meanwhile.
const LOOK_EVERY: Time = Time::from_millis(20);

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
    /// Of those in between, the schedules with several devices to a node.
    packed: u64,
    faults: u64,
    requests: u64,
    delivered: u64,
    dropped: u64,
    cut_off: u64,
    powered_off: u64,
    pairs: u64,
}

impl Totals {
    fn of(schedule: &Schedule, simulation: &Simulation, traffic: &TrafficAccount, pairs: u64) -> Self {
        let changes = |wanted: fn(&Change) -> bool| {
            schedule.changes.iter().filter(|(_, change)| wanted(change)).count() as u64
        };
        Self {
            removed: changes(|change| matches!(change, Change::Remove(_))),
            added: changes(|change| matches!(change, Change::Add(_))),
            connected: changes(|change| matches!(change, Change::Connect(_))),
            disconnected: changes(|change| matches!(change, Change::Disconnect(_))),
            packed: u64::from(schedule.options.pack > 1),
            faults: schedule.faults.len() as u64,
            requests: simulation.requests().answered,
            delivered: traffic.delivered,
            dropped: traffic.dropped,
            cut_off: traffic.cut_off,
            powered_off: traffic.powered_off,
            pairs,
        }
    }

    fn each_mut(&mut self) -> [&mut u64; 12] {
        let Self { removed, added, connected, disconnected, packed, faults, .. } = self;
        let Self { requests, delivered, dropped, cut_off, powered_off, pairs, .. } = self;
        [
            removed,
            added,
            connected,
            disconnected,
            packed,
            faults,
            requests,
            delivered,
            dropped,
            cut_off,
            powered_off,
            pairs,
        ]
    }

    fn add(&mut self, mut other: Self) {
        self.each_mut().into_iter().zip(other.each_mut()).for_each(|(sum, one)| *sum += *one);
    }
}

fn all(violations: Vec<Violation>) -> String {
    violations.into_iter().map(|violation| violation.to_string()).collect::<Vec<_>>().join("\n  ")
}

/// Traffic flows while everything changes, then ends, and what was under way comes to an end.
fn run_with_traffic(schedule: &Schedule, simulation: &mut Simulation) -> Result<TrafficAccount, String> {
    let over = Rc::new(Cell::new(false));
    let random = Pcg64::seed_from_u64(!schedule.seed);
    let levels = schedule.options.device.vl_cap.lanes();
    simulation.set_load(Anywhere::new(levels, Rc::clone(&over), random));
    while simulation.now() < TRAFFIC_UNTIL {
        simulation.run_until(simulation.now() + LOOK_EVERY);
        simulation.check_traffic().map_err(|wrong| format!("at {}: {}", simulation.now(), all(wrong)))?;
    }
    over.set(true);
    simulation.run_until_quiet(PATIENCE).map_err(|error| error.to_string())?;
    simulation.run_until(simulation.now() + DRAIN);
    // Managers ask all the time; between two of their sweeps nothing is under way.
    let until = simulation.now() + BETWEEN_SWEEPS;
    while !stuck(simulation).is_empty() && simulation.now() < until {
        simulation.run_until(simulation.now() + LOOK_EVERY);
    }
    let held = stuck(simulation);
    if !held.is_empty() {
        return Err(format!("{held:?} still wait"));
    }
    if simulation.statistics().credit_overruns > 0 {
        return Err(format!("{:?}", simulation.statistics()));
    }
    simulation.check_traffic().map(|report| report.total).map_err(all)
}

/// Kills all managers, lets the one that was in charge begin again, and sees that it writes nothing.
fn a_new_manager_writes_nothing(simulation: &mut Simulation) -> Result<(), String> {
    let place = simulation.sm_port();
    let standbys: Vec<PortRef> = simulation.options().standbys.iter().map(|standby| standby.port).collect();
    let writes = simulation.lft_writes();
    simulation.apply(Fault::Kill(Process::Sm));
    (0..standbys.len() as u8).for_each(|number| simulation.apply(Fault::Kill(Process::Standby(number))));
    simulation.run_until(simulation.now() + Time::from_secs(1));
    let again = match standbys.iter().position(|standby| *standby == place) {
        Some(number) => Fault::Restart(Process::Standby(number as u8)),
        None => Fault::Restart(Process::Sm),
    };
    simulation.apply(again);
    simulation
        .run_until_quiet(simulation.now() + PATIENCE)
        .map_err(|error| format!("a new manager: {error}"))?;
    match simulation.lft_writes() - writes {
        0 => Ok(()),
        more => Err(format!("a new manager wrote {more} blocks")),
    }
}

fn rest_and_check(schedule: &Schedule, simulation: &mut Simulation) -> Result<Totals, String> {
    let traffic = run_with_traffic(schedule, simulation)?;
    let (pending, statistics) = (simulation.link_losses_pending(), simulation.statistics());
    if pending > 0 || statistics.link_losses_unnoticed > 0 {
        return Err(format!("a lost link was not counted or not told: {pending} pending, {statistics:?}"));
    }
    simulation.check().map_err(all)?;
    simulation.check_picture().map_err(all)?;
    let now = simulation.snapshot();
    let fresh = simulation.fresh_snapshot(schedule.seed, PATIENCE);
    let fresh = fresh.map_err(|error| format!("a fresh start: {error}"))?;
    if now.lids != fresh.lids {
        return Err(format!("LIDs are not a fresh start's: {:?}\n  {:?}", now.lids, fresh.lids));
    }
    let pairs = simulation.probe().map_err(all)?;
    let totals = Totals::of(schedule, simulation, &traffic, pairs);
    a_new_manager_writes_nothing(simulation)?;
    simulation.check_picture().map_err(all)?;
    let requests = simulation.requests();
    if requests.open() > 0 || requests.unasked > 0 || requests.refused > 0 || requests.lost > 0 {
        return Err(format!("not one answer to each request: {requests:?}"));
    }
    Ok(totals)
}

/// What is wrong after the schedule of `seed`, if anything is; otherwise what happened, and the trace's hash.
fn run(seed: u64, trace: TraceMode) -> Result<(Totals, u64), String> {
    let mut schedule = Schedule::with_churn(seed).map_err(|error| error.to_string())?;
    schedule.options.trace = trace;
    let mut simulation = schedule.simulation();
    let checked = rest_and_check(&schedule, &mut simulation);
    let checked = checked.map(|totals| (totals, simulation.trace().hash()));
    checked.map_err(|error| {
        let events = schedule.faults.iter().map(|(at, fault)| (*at, format!("{fault:?}")));
        let changes = schedule.changes.iter().map(|(at, change)| (*at, format!("{change:?}")));
        let mut events: Vec<(Time, String)> = events.chain(changes).collect();
        events.sort_by_key(|(at, _)| *at);
        let events: Vec<String> = events.iter().map(|(at, what)| format!("{at} {what}")).collect();
        format!(
            "seed {seed} (WEFT_SEED={seed} replays it)\n  {error}\n{:?}\nSMs at {:?} {:?}, pack {}\n{}\n{}",
            schedule.fabric.counts(),
            schedule.options.sm_port,
            schedule.options.standbys,
            schedule.options.pack,
            events.join("\n"),
            simulation.trace().lines()
        )
    })
}

/// The seeds of one of four parts, so that they run beside each other.
fn part(part: u64) {
    let Some((mut totals, seeds)) = run_part(part, (SCHEDULES, TWICE), run, Totals::add) else { return };
    if seeds >= ALL_KINDS {
        let happened = totals.each_mut().into_iter().all(|total| *total > 0);
        assert!(happened, "something never happened: {totals:?}");
    }
}

seeds::four_parts!(part);
