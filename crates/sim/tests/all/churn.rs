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
use weft_sim::{Schedule, Simulation, TraceMode};

use crate::support;
use crate::support::counts::Counts;
use crate::support::seeds;
use crate::support::workload::{
    Faults, FreshStart, NewManager, Pairs, Picture, Requests, Tables, Workload, all, carry_out, count_change,
};

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

/// Traffic that flows while everything changes, then ends, and of which what was under way comes to an end.
struct Traffic {
    over: Rc<Cell<bool>>,
    random: Pcg64,
}

impl Traffic {
    fn of(seed: u64) -> Self {
        Self { over: Rc::default(), random: Pcg64::seed_from_u64(!seed) }
    }
}

impl Workload for Traffic {
    fn set_up(&mut self, simulation: &mut Simulation) -> Result<(), String> {
        let levels = simulation.options().device.vl_cap.lanes();
        simulation.set_load(Anywhere::new(levels, Rc::clone(&self.over), self.random.clone()));
        Ok(())
    }

    fn start(&mut self, simulation: &mut Simulation) -> Result<(), String> {
        while simulation.now() < TRAFFIC_UNTIL {
            simulation.run_until(simulation.now() + LOOK_EVERY);
            simulation.check_traffic().map_err(|wrong| format!("at {}: {}", simulation.now(), all(wrong)))?;
        }
        self.over.set(true);
        Ok(())
    }

    fn check(&mut self, simulation: &mut Simulation, counts: &mut Counts) -> Result<(), String> {
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
        let traffic = simulation.check_traffic().map_err(all)?.total;
        counts.add("delivered", traffic.delivered);
        counts.add("dropped", traffic.dropped);
        counts.add("cut off", traffic.cut_off);
        counts.add("powered off", traffic.powered_off);
        Ok(())
    }
}

fn rest_and_check(schedule: &Schedule, simulation: &mut Simulation) -> Result<Counts, String> {
    let mut fresh = FreshStart { seed: schedule.seed, patience: PATIENCE };
    let workloads: &mut [&mut dyn Workload] = &mut [
        &mut Traffic::of(schedule.seed),
        &mut Faults(schedule),
        &mut Tables,
        &mut Picture,
        &mut fresh,
        &mut Pairs,
        &mut NewManager(PATIENCE),
        &mut Picture,
        &mut Requests { refusals_count: true },
    ];
    let done = carry_out(simulation, workloads)?;
    let mut counts = Counts::of(&["removed", "added", "connected", "disconnected"]);
    schedule.changes.iter().for_each(|(_, change)| count_change(&mut counts, *change));
    counts.add("packed", u64::from(schedule.options.pack > 1));
    counts.add("faults", schedule.faults.len() as u64);
    let names = ["requests", "delivered", "dropped", "cut off", "powered off", "pairs"];
    names.into_iter().for_each(|name| counts.add(name, done.get(name)));
    Ok(counts)
}

/// What is wrong after the schedule of `seed`, if anything is; otherwise what happened, and the trace's hash.
fn run(seed: u64, trace: TraceMode) -> Result<(Counts, u64), String> {
    let mut schedule = Schedule::with_churn(seed).map_err(|error| error.to_string())?;
    schedule.options.trace = trace;
    let mut simulation = Simulation::new(&schedule.fabric, schedule.options.clone(), seed);
    let checked = rest_and_check(&schedule, &mut simulation);
    let checked = checked.map(|counts| (counts, simulation.trace().hash()));
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
    let Some((counts, seeds)) = run_part(part, (SCHEDULES, TWICE), run, Counts::sum) else { return };
    if seeds >= ALL_KINDS {
        counts.all_happened();
    }
}

seeds::four_parts!(part);
