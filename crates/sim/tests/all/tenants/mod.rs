//! Random changes of partitions beside faults: whoever shares a partition goes on talking, leavers and strangers hear nothing, keys
//! keep their places, and tables end as the file says.
//!
//! Managers, hosts and switches die and freeze, cables are cut and lose packets. What a fault or the managers' status explains is
//! left out of account: a path that leads nowhere, a port that has not acknowledged, a key that waits for a place.
//!
//! `WEFT_SCHEDULES` says how many (40 if not said), `WEFT_SEED` replays one and prints its trace on failure.

mod acks;
mod faults;
mod file;
mod pairs;
mod tables;

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;
use weft_host::traffic::FlowId;
use weft_machine::Time;
use weft_routing::Partitions;
use weft_sim::{Fault, Process, SimOptions, Simulation, StandbyOptions, TraceMode};
use weft_sm::PartEnforce;
use weft_topology::generate::{GenerateError, GenerateOptions, xgft};
use weft_topology::{Fabric, NodeIndex, PortRef};
use weft_wire::PortNum;

use self::acks::Acks;
use self::faults::Faults;
use self::pairs::{Judged, Pair, Role};
use crate::support::counts::Counts;
use crate::support::seeds;
use crate::support::workload::{self, Rest, Workload, carry_out};
use seeds::run_part;

const SCHEDULES: u64 = 40;
const TWICE: u64 = 1;
const PATIENCE: Time = Time::from_secs(600);

/// Changes of a schedule.
const CHANGES: u64 = 12;
/// What happens in any forty schedules.
const HAPPENS: [&str; 24] = [
    "changes",
    "acknowledged",
    "kept",
    "joined",
    "left",
    "manager deaths",
    "restarts",
    "host deaths",
    "switch deaths",
    "cut cables",
    "bad cables",
    "frozen hosts",
    "frozen switches",
    "frozen managers",
    "stayers heard",
    "stayers heard after",
    "stayers without a gap",
    "newcomers heard",
    "leavers deaf",
    "heard at rest",
    "silent at rest",
    "strays sent",
    "strays at switches",
    "strays at adapters",
];
/// What happens in any four hundred: a leaver does not answer, and its switch does.
const HAPPENS_SELDOM: &str = "kept out";
/// The partition of those who go on talking.
const STEADY: u16 = 0x0777;
/// A partition that those are never in.
const STRANGE: u16 = 0x0666;
/// The others' partitions.
const TENANTS: [u16; 5] = [0x0010, 0x0020, 0x0900, 0x0901, 0x0902];
/// From one look at tables to the next: longer than a change takes, so that no place comes and goes between two looks.
const LOOK: Time = Time::from_millis(250);
/// From one look at what managers say to the next, until a change is acknowledged.
const STEP: Time = Time::from_millis(25);
/// How long those who have acknowledged are given to hear each other.
const HEARING: Time = Time::from_secs(1);

/// The hosts by what they do. Two of the steady partition are at one leaf with a stranger to it, and that leaf and these are in no
/// fault; the third is at another leaf. The others come and go, and so do all other switches.
struct Roles {
    near: [PortRef; 2],
    far: PortRef,
    stranger: PortRef,
    others: Vec<PortRef>,
}

impl Roles {
    /// All whose tables are judged.
    fn hosts(&self) -> impl Iterator<Item = PortRef> {
        let steady = self.near.iter().chain([&self.far, &self.stranger]);
        self.others.iter().chain(steady).copied()
    }
}

struct Tenants {
    random: Pcg64,
    roles: Roles,
    faults: Faults,
    now: Partitions,
    enforced: PartEnforce,
    tables: tables::Tables,
    pairs: Vec<Pair>,
    flows: u32,
    counts: Counts,
}

impl Tenants {
    fn new(fabric: &Fabric, seed: u64) -> Self {
        let mut random = Pcg64::seed_from_u64(seed);
        let hosts = hosts(fabric);
        let others: Vec<PortRef> = hosts[6..].to_vec();
        let roles = Roles { near: [hosts[1], hosts[2]], stranger: hosts[3], far: hosts[5], others };
        let own = fabric.peer(hosts[1]).expect("a leaf").node;
        let switches: Vec<NodeIndex> =
            fabric.switches().map(|(node, _)| node).filter(|node| *node != own).collect();
        let faults = Faults::of(fabric, &roles.others, &switches);
        let now = file::drawn(&mut random, fabric, &roles, &Partitions::default());
        let all = [PartEnforce::Both, PartEnforce::In, PartEnforce::Out, PartEnforce::Off];
        let enforced = all[random.random_range(0..all.len())];
        let (tables, counts) = (tables::Tables::default(), Counts::of(&HAPPENS));
        Self { random, roles, faults, now, enforced, tables, pairs: Vec::new(), flows: 0, counts }
    }

    /// Pairs of all kinds, on one leaf and across leaves. A sender has one path to a receiver, and so one pair.
    fn pair_up(&mut self, simulation: &Simulation) {
        let [one, two] = self.roles.near;
        let (far, stranger, others) = (self.roles.far, self.roles.stranger, &self.roles.others);
        let steady = [(one, two), (one, far), (far, two)].map(|(from, to)| (Role::Steady, from, to));
        let strange = [(stranger, two), (stranger, far)].map(|(from, to)| (Role::Stranger, from, to));
        let numbers = [(0, 1), (1, 0), (2, 3), (4, 5), (0, 2), (3, 1), (5, 0), (1, 4)];
        let tenants = numbers.map(|(from, to)| (others[from], others[to]));
        let tenants = tenants.into_iter().chain([(others[4], one), (two, others[4]), (others[0], far)]);
        let tenants = tenants.map(|(from, to)| (Role::Tenants, from, to));
        let all = steady.into_iter().chain(strange).chain(tenants);
        self.pairs = all.map(|(role, from, to)| Pair::new(simulation, role, from, to)).collect();
    }

    fn open_pairs(&mut self, simulation: &mut Simulation) {
        for pair in &mut self.pairs {
            self.flows += 1;
            pair.open(simulation, FlowId(self.flows));
        }
    }

    fn look(&mut self, simulation: &Simulation) -> Result<(), String> {
        let hosts = self.roles.hosts().collect::<Vec<_>>().into_iter();
        self.tables.look(simulation, hosts, &mut self.faults.restarted, &mut self.counts)
    }

    /// One change, with a fault or without.
    fn change(&mut self, simulation: &mut Simulation) -> Result<(), String> {
        let fabric = simulation.fabric().clone();
        let after = file::drawn(&mut self.random, &fabric, &self.roles, &self.now);
        let before = std::mem::replace(&mut self.now, after);
        for pair in &mut self.pairs {
            pair.draw(&mut self.random, &before, &self.now);
        }
        self.open_pairs(simulation);
        for _ in 0..2 {
            simulation.run_until(simulation.now() + LOOK);
            self.look_at_pairs(simulation, &Acks::begin(simulation, self.enforced));
            self.look(simulation)?;
        }
        self.pairs.iter_mut().for_each(|pair| pair.begin(simulation));
        let was_bad = self.faults.bad_cable();
        if self.random.random_bool(0.75) {
            self.faults.draw(&mut self.random, simulation, &mut self.counts);
        }
        let restarted = self.faults.restarted.clone();
        let mut acks = Acks::begin(simulation, self.enforced);
        simulation.set_partitions(&self.now);
        self.counts.one("changes");
        let looks = self.random.random_range(4..40);
        let is_long = self.pass(simulation, &mut acks, looks)?;
        let bad_cable = was_bad.or(self.faults.bad_cable());
        let (after, acks, restarted) = (&self.now, &acks, &restarted);
        let judged = Judged { before: &before, after, acks, bad_cable, restarted, is_long };
        self.pairs.iter().try_for_each(|pair| pair.judge(simulation, &judged, &mut self.counts))
    }

    /// Lets time pass. Whether there was time to hear after the last acknowledgement.
    fn pass(&mut self, simulation: &mut Simulation, acks: &mut Acks, looks: u32) -> Result<bool, String> {
        let mut done_at = None;
        for _ in 0..looks {
            let until = simulation.now() + LOOK;
            while simulation.now() < until {
                let step = if done_at.is_some() { LOOK } else { STEP };
                simulation.run_until(until.min(simulation.now() + step));
                if acks.look(simulation) {
                    done_at = Some(simulation.now());
                }
                self.look_at_pairs(simulation, acks);
            }
            self.look(simulation)?;
        }
        self.counts.add("acknowledged", done_at.is_some().into());
        Ok(done_at.is_some_and(|at| at + HEARING <= simulation.now()))
    }

    fn look_at_pairs(&mut self, simulation: &mut Simulation, acks: &Acks) {
        for pair in &mut self.pairs {
            pair.look(simulation, &self.now, acks);
        }
    }

    /// Strays that the switch in front of a receiver has not sent, and those that its adapter has not taken: what else goes to it has a
    /// key that it has.
    fn count_drops(&mut self, simulation: &Simulation) {
        let to = self.roles.near[1];
        let leaf = simulation.fabric().peer(to).expect("a leaf");
        let leaf = simulation.device(leaf.node).and_then(|device| device.port_snapshot(leaf.port));
        let own = simulation.device(to.node).and_then(|device| device.own_port_info(to.port));
        let at_switch = leaf.map_or(0, |port| port.counters.port_xmit_constraint_errors);
        self.counts.add("strays at switches", at_switch);
        self.counts.add("strays at adapters", own.map_or(0, |port| port.p_key_violations.into()));
    }
}

impl Workload for Tenants {
    fn start(&mut self, simulation: &mut Simulation) -> Result<(), String> {
        simulation.run_until_quiet(PATIENCE).map_err(|error| error.to_string())?;
        self.pair_up(simulation);
        self.look(simulation)?;
        for number in 0..CHANGES {
            self.change(simulation).map_err(|error| format!("change {number}: {error}"))?;
        }
        self.faults.end_all(simulation);
        simulation.apply(Fault::Restart(Process::Sm));
        Ok(())
    }

    fn check(&mut self, simulation: &mut Simulation, counts: &mut Counts) -> Result<(), String> {
        // Strays raise traps, and a manager that hears traps does not rest.
        self.pairs.iter().for_each(|pair| pair.close(simulation));
        // Newcomers may wait as long as places rest.
        let rested = simulation.now() + Time::from_secs(90);
        while simulation.now() < rested {
            simulation.run_until(simulation.now() + LOOK);
            self.look(simulation)?;
        }
        simulation.run_until_quiet(simulation.now() + PATIENCE).map_err(|error| error.to_string())?;
        tables::as_the_file_says(simulation, &self.roles, &self.now, self.enforced)?;
        for p_key in TENANTS {
            self.pairs.iter_mut().for_each(|pair| pair.take_key(p_key));
            self.open_pairs(simulation);
            simulation.run_until(simulation.now() + LOOK);
            let file = &self.now;
            self.pairs.iter().try_for_each(|pair| pair.judge_at_rest(simulation, file, &mut self.counts))?;
        }
        self.pairs.iter().for_each(|pair| pair.close(simulation));
        self.count_drops(simulation);
        counts.sum(self.counts.clone());
        Ok(())
    }
}

fn hosts(fabric: &Fabric) -> Vec<PortRef> {
    fabric.hosts().map(|(node, _)| PortRef::new(node, PortNum(1))).collect()
}

/// Three leaves of four hosts, and two spines.
fn tree() -> Result<Fabric, GenerateError> {
    xgft(&[4, 3], &[1, 2], &GenerateOptions::default())
}

/// The first host has the manager, and the fifth, at another leaf, one that stands by.
fn options(fabric: &Fabric) -> SimOptions {
    let hosts = hosts(fabric);
    let mut options = SimOptions {
        hosts: true,
        sm_port: Some(hosts[0]),
        standbys: vec![StandbyOptions { port: hosts[4], priority: 0, sm_key: None }],
        link_jitter: Time::from_micros(50),
        ..SimOptions::default()
    };
    options.sm.election.priority = 1;
    (options.sm.election.polling_ms, options.sm.election.polling_retries) = (500, 1);
    options.sm.sweeps.sweep_interval_ms = 2_000;
    options
}

/// What is wrong after the schedule of `seed`, if anything is; otherwise what happened, and the trace's hash.
fn run(seed: u64, trace: TraceMode) -> Result<(Counts, u64), String> {
    let fabric = tree().map_err(|error| error.to_string())?;
    let mut tenants = Tenants::new(&fabric, seed);
    let mut options = SimOptions { trace, ..options(&fabric) };
    options.sm.routing.engine.partitions = Some(tenants.now.clone());
    options.sm.routing.part_enforce = tenants.enforced;
    let mut simulation = Simulation::new(&fabric, options, seed);
    let workloads: &mut [&mut dyn Workload] = &mut [&mut tenants, &mut Rest(PATIENCE), &mut workload::Tables];
    let checked = carry_out(&mut simulation, workloads);
    let checked = checked.map(|totals| (totals, simulation.trace().hash()));
    checked.map_err(|error| {
        let lines = simulation.trace().lines();
        format!("seed {seed} (WEFT_SEED={seed} replays it)\n  {error}\n{lines}")
    })
}

/// The seeds of one of four parts, so that they run beside each other.
fn part(part: u64) {
    let Some((counts, seeds)) = run_part(part, (SCHEDULES, TWICE), run, Counts::sum) else { return };
    if seeds >= SCHEDULES / 4 {
        let never: Vec<_> = HAPPENS.into_iter().filter(|name| counts.get(name) == 0).collect();
        assert!(never.is_empty(), "{never:?} never happened: {counts:?}");
    }
    if seeds >= 100 {
        assert!(counts.get(HAPPENS_SELDOM) > 0, "{HAPPENS_SELDOM} never happened: {counts:?}");
    }
}

seeds::four_parts!(part);
