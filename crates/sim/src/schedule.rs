//! Random schedules of faults on random fabrics: a seed decides all of one.

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;
use weft_chaos::{Scope, draw, steps};
use weft_machine::Time;
use weft_sm::Window;
use weft_topology::generate::GenerateError;
use weft_topology::{Cable, Fabric, NodeIndex, PortRef};

mod churn;
mod fabrics;
mod managers;

use crate::rule::below;
use crate::{Change, Fault, Process, RandomLoss, SimOptions, Simulation};

/// A fabric and the faults and changes in it.
#[derive(Clone, Debug)]
pub struct Schedule {
    /// The seed that decided it.
    pub seed: u64,
    /// The fabric.
    pub fabric: Fabric,
    /// What it is like.
    pub options: SimOptions,
    /// What goes wrong, and when, in no order.
    pub faults: Vec<(Time, Fault)>,
    /// When the first subnet manager loses its `guid2lid` file, so that it starts without one.
    pub guid2lid_lost: Option<Time>,
    /// Which devices and cables come and go, and when, in order.
    pub changes: Vec<(Time, Change)>,
    /// What becomes of lane 15's packets meanwhile.
    pub loss: RandomLoss,
}

/// When faults begin, and when they end.
const FAULTS_FROM: Time = Time::from_millis(20);
const FAULTS_UNTIL: Time = Time::from_secs(4);

/// How late a packet may be on each cable: up to five times as long as a manager waits for an answer, so that a Set
/// that was sent twice is done a second time when the manager has already written something else.
const DELAY_MS_MAX: u64 = 1000;

impl Schedule {
    /// The schedule of a seed: up to 40 devices, up to 8 faults, each put right again or not, and up to 3 faults of other kinds
    /// ([`draw`]), each with its end.
    ///
    /// At the end the subnet manager runs, and so does its device with the switch that it is cabled to; lane 15
    /// loses nothing any more. Everything else may stay dead.
    pub fn random(seed: u64) -> Result<Self, GenerateError> {
        let mut random = Pcg64::seed_from_u64(seed);
        let fabric = fabrics::random_fabric(&mut random, seed)?;
        let sm_port = fabrics::random_place(&mut random, &fabric);
        let mut options = SimOptions {
            sm_port: Some(sm_port),
            link_jitter: below(&mut random, Time::from_micros(100)),
            link_timeout: Time::from_millis(random.random_range(1..500)),
            training_jitter: below(&mut random, Time::from_millis(30)),
            ..SimOptions::default()
        };
        options.sm.sweeps.sweep_interval_ms = 2_000;
        let window: u16 = random.random_range(1..33);
        options.sm.smps.max_wire_smps =
            if seed % 4 == 3 { Window::AUTO } else { Window::Fixed(window.into()) };
        if random.random_bool(0.3) {
            options.sm.smps.smp_routing = weft_sm::SmpRouting::Lid;
        }
        if random.random_bool(0.4) {
            options.device.smp_processing = Time::from_nanos(random.random_range(0..20_000));
            // Most often less than the manager has in flight.
            options.device.vl15_buffer_packets = random.random_range(1..=window);
        }
        let loss = RandomLoss {
            until: FAULTS_UNTIL,
            lost_per_mille: random.random_range(0..100),
            late_per_mille: random.random_range(0..50),
            delay_max: Time::from_millis(random.random_range(0..DELAY_MS_MAX)),
        };
        let (mut faults, mut guid2lid_lost) = (Vec::new(), None);
        let cables: Vec<Cable> = fabric.cables().collect();
        for _ in 0..random.random_range(0..9u32) {
            let lost = random_fault(&mut random, &fabric, &cables, &mut faults);
            guid2lid_lost = guid2lid_lost.or(lost);
        }
        put_right_the_managers_way(&fabric, sm_port, &mut faults);
        let scope =
            Scope { within: (FAULTS_FROM, FAULTS_UNTIL), faults_max: 3, kills: false, ..Scope::default() };
        faults.extend(steps(&draw(&fabric, seed, &scope)));
        Ok(Self { seed, fabric, options, faults, guid2lid_lost, changes: Vec::new(), loss })
    }

    /// A simulation that all of this happens in.
    pub fn simulation(&self) -> Simulation {
        let mut simulation = Simulation::new(&self.fabric, self.options.clone(), self.seed);
        self.begin(&mut simulation);
        simulation
    }

    /// Lets all of this happen in a simulation of this fabric that has just begun.
    pub fn begin(&self, simulation: &mut Simulation) {
        simulation.set_rule(self.loss);
        if let Some(at) = self.guid2lid_lost {
            simulation.lose_guid2lid_at(at);
        }
        for (at, fault) in &self.faults {
            simulation.fault_at(*at, fault.clone());
        }
        for &(at, change) in &self.changes {
            simulation.change_at(at, change);
        }
    }
}

/// When a fault happens.
fn a_moment(random: &mut Pcg64) -> Time {
    FAULTS_FROM + below(random, FAULTS_UNTIL.saturating_sub(FAULTS_FROM))
}

/// When something fails, and when it works again, which is after `most` or with the last fault.
fn an_outage(random: &mut Pcg64, most: Time) -> (Time, Time) {
    let at = a_moment(random);
    (at, (at + below(random, most)).min(FAULTS_UNTIL))
}

/// Something goes wrong, and may be put right before the faults end. Returns when the `guid2lid` file is lost, if it is.
fn random_fault(
    random: &mut Pcg64,
    fabric: &Fabric,
    cables: &[Cable],
    faults: &mut Vec<(Time, Fault)>,
) -> Option<Time> {
    let at = a_moment(random);
    // Often too soon for anyone to have noticed.
    let most = if random.random_bool(0.5) { Time::from_millis(60) } else { Time::from_secs(3) };
    let again = (at + below(random, most)).min(FAULTS_UNTIL);
    let node = NodeIndex(random.random_range(0..fabric.nodes().len() as u32));
    let cable = cables[random.random_range(0..cables.len() as u64) as usize];
    let end = if random.random_bool(0.5) { cable.a } else { cable.b };
    // The manager dies once at most, so that no two of its deaths run into each other.
    let sm_died = faults.iter().any(|(_, fault)| *fault == Fault::Kill(Process::Sm));
    let (wrong, right) = match random.random_range(0..10u32) {
        0..4 => (Fault::Kill(Process::Agent(node)), Fault::Restart(Process::Agent(node))),
        4..8 => (Fault::LinkDown(end), Fault::LinkUp(end)),
        _ if sm_died => (Fault::LinkDown(end), Fault::LinkUp(end)),
        _ => (Fault::Kill(Process::Sm), Fault::Restart(Process::Sm)),
    };
    let of_manager = wrong == Fault::Kill(Process::Sm);
    let loses = of_manager && !random.random_bool(0.5);
    faults.push((at, wrong));
    if of_manager || random.random_bool(0.7) {
        faults.push((again, right));
    }
    loses.then_some(again)
}

/// Without a way to any switch there would be little to check.
fn put_right_the_managers_way(fabric: &Fabric, here: PortRef, faults: &mut Vec<(Time, Fault)>) {
    let peer = fabric.peer(here);
    for node in std::iter::once(here.node).chain(peer.map(|peer| peer.node)) {
        if faults.iter().any(|(_, fault)| *fault == Fault::Kill(Process::Agent(node))) {
            faults.push((FAULTS_UNTIL, Fault::Restart(Process::Agent(node))));
        }
    }
    if peer.is_some() {
        faults.push((FAULTS_UNTIL, Fault::LinkUp(here)));
    }
}
