//! Random schedules of faults on random fabrics, each of which must come to rest and be right, with the LIDs of a fresh
//! start of the fabric that is left, and with tables that a new manager leaves alone.
//!
//! `WEFT_SCHEDULES` says how many (300 if not said), `WEFT_SEED` replays one and prints its trace on failure.

use std::ops::AddAssign;

use seeds::run_part;
use weft_machine::Time;
use weft_sim::{Fault, Process, Schedule, Simulation, TraceMode};

use crate::support::seeds;

const SCHEDULES: u64 = 300;

/// How long a fabric may take to come to rest after its last fault.
const PATIENCE: Time = Time::from_secs(300);

/// The seeds of each part that are run twice, with a trace.
const TWICE: u64 = 3;

/// How many seeds a part has at least for all kinds of faults to be among them.
const ALL_KINDS: u64 = 50;

/// What happened, and how much was looked at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Totals {
    /// Nodes that the manager reaches in the end.
    nodes: u64,
    /// Pairs of ports that exchanged packets in the end.
    pairs: u64,
    /// Devices that lost their power.
    kills: u64,
    /// Devices that were switched on again.
    restarts: u64,
    /// Cables that were pulled and put back.
    flaps: u64,
    /// Packets lost.
    losses: u64,
    /// Packets that were late.
    late: u64,
    /// Subnet managers that died.
    manager_deaths: u64,
    /// Subnet managers at a switch.
    at_switch: u64,
    /// Links that went and were noticed to have gone within 50 ms.
    brief: u64,
    /// SMPs that found a management buffer full.
    overflows: u64,
}

impl Totals {
    fn of(schedule: &Schedule, simulation: &Simulation, nodes: usize, pairs: u64) -> Self {
        let count = |wanted: &dyn Fn(&Fault) -> bool| {
            schedule.faults.iter().filter(|(_, fault)| wanted(fault)).count() as u64
        };
        let is_cut = |port| schedule.faults.iter().any(|(_, fault)| *fault == Fault::LinkDown(port));
        let statistics = simulation.statistics();
        Self {
            nodes: nodes as u64,
            pairs,
            kills: count(&|fault| matches!(fault, Fault::Kill(Process::Agent(_)))),
            restarts: count(&|fault| matches!(fault, Fault::Restart(Process::Agent(_)))),
            flaps: count(&|fault| matches!(fault, Fault::LinkUp(port) if is_cut(*port))),
            losses: statistics.lost,
            late: statistics.delayed,
            manager_deaths: count(&|fault| *fault == Fault::Kill(Process::Sm)),
            at_switch: u64::from(simulation.fabric().node(simulation.sm_port().node).is_switch()),
            brief: statistics.link_losses_brief,
            overflows: simulation.vl15_dropped(),
        }
    }

    fn each(&self) -> [u64; 11] {
        let Self {
            nodes,
            pairs,
            kills,
            restarts,
            flaps,
            losses,
            late,
            manager_deaths,
            at_switch,
            brief,
            overflows,
        } = *self;
        [nodes, pairs, kills, restarts, flaps, losses, late, manager_deaths, at_switch, brief, overflows]
    }
}

impl AddAssign for Totals {
    fn add_assign(&mut self, other: Self) {
        self.nodes += other.nodes;
        self.pairs += other.pairs;
        self.kills += other.kills;
        self.restarts += other.restarts;
        self.flaps += other.flaps;
        self.losses += other.losses;
        self.late += other.late;
        self.manager_deaths += other.manager_deaths;
        self.at_switch += other.at_switch;
        self.brief += other.brief;
        self.overflows += other.overflows;
    }
}

/// Lets everything happen, and looks at what is left.
fn rest_and_check(schedule: &Schedule, simulation: &mut Simulation) -> Result<Totals, String> {
    let all = |violations: Vec<weft_sim::Violation>| {
        violations.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n  ")
    };
    simulation.run_until_quiet(PATIENCE).map_err(|error| error.to_string())?;
    let (pending, statistics) = (simulation.link_losses_pending(), simulation.statistics());
    if pending > 0 || statistics.link_losses_unnoticed > 0 {
        return Err(format!("a lost link was not counted or not told: {pending} pending, {statistics:?}"));
    }
    let report = simulation.check().map_err(all)?;
    let now = simulation.snapshot();
    let afresh = simulation.fresh_snapshot(schedule.seed, PATIENCE);
    let afresh = afresh.map_err(|error| format!("a fresh start: {error}"))?;
    if now.lids != afresh.lids {
        return Err(format!("LIDs are not a fresh start's: {:?}\n  {:?}", now.lids, afresh.lids));
    }
    let pairs = simulation.probe().map_err(all)?;
    let totals = Totals::of(schedule, simulation, report.nodes, pairs);
    // Tables depend on history, and a new manager leaves those alone that hold.
    let writes = simulation.lft_writes();
    simulation.apply(Fault::Kill(Process::Sm));
    simulation.run_until(simulation.now() + Time::from_secs(1));
    simulation.apply(Fault::Restart(Process::Sm));
    let patience = simulation.now() + PATIENCE;
    simulation.run_until_quiet(patience).map_err(|error| format!("a new manager: {error}"))?;
    match simulation.lft_writes() - writes {
        0 => Ok(totals),
        more => Err(format!("a new manager wrote {more} blocks")),
    }
}

/// What is wrong after the schedule of `seed`, if anything is; otherwise what happened, and the trace's hash.
fn run(seed: u64, trace: TraceMode) -> Result<(Totals, u64), String> {
    let mut schedule = Schedule::random(seed).map_err(|error| error.to_string())?;
    schedule.options.trace = trace;
    let mut simulation = schedule.simulation();
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
    let Some((totals, seeds)) = run_part(part, (SCHEDULES, TWICE), run, Totals::add_assign) else { return };
    if seeds >= ALL_KINDS {
        assert!(totals.each().iter().all(|&total| total > 0), "something never happened: {totals:?}");
    }
    assert!(seeds == 0 || totals.nodes >= seeds, "every manager reaches itself at least: {totals:?}");
}

seeds::four_parts!(part);
