//! Random schedules of faults on random fabrics: a seed decides all of one.

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;
use weft_machine::Time;
use weft_topology::generate::{GenerateError, GenerateOptions, RandomFabric, random};
use weft_topology::{Cable, Fabric, NodeIndex, PortRef};

use crate::rule::below;
use crate::{Fault, RandomLoss, SimOptions, Simulation};

/// What is done to which fabric.
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
    /// What becomes of lane 15's packets meanwhile.
    pub loss: RandomLoss,
}

/// When faults begin, and when they end.
const FAULTS_FROM: Time = Time::from_millis(20);
const FAULTS_UNTIL: Time = Time::from_secs(4);

/// How late a packet may be: less than a manager waits for an answer, for otherwise a Set that was sent twice is
/// done a second time when the manager has already written something else. No manager can see that.
const DELAY_MS_MAX: u64 = 150;

/// How long a subnet manager stays dead at least, so that nothing of what it sent arrives after its successor
/// has begun.
const SM_DEAD_MIN: Time = Time::from_millis(2 * DELAY_MS_MAX);

impl Schedule {
    /// The schedule of a seed: up to 40 devices, up to 8 faults, each put right again or not.
    ///
    /// At the end the subnet manager runs, and so does its device with the switch that it is cabled to; lane 15
    /// loses nothing any more. Everything else may stay dead.
    pub fn random(seed: u64) -> Result<Self, GenerateError> {
        let mut random = Pcg64::seed_from_u64(seed);
        let fabric = random_fabric(&mut random, seed)?;
        let mut options = SimOptions {
            link_jitter: below(&mut random, Time::from_micros(100)),
            link_timeout: Time::from_millis(random.random_range(1..500)),
            training_jitter: below(&mut random, Time::from_millis(30)),
            ..SimOptions::default()
        };
        options.sm.sweep_interval_ms = 2_000;
        options.sm.max_wire_smps = random.random_range(1..33);
        if random.random_bool(0.3) {
            options.sm.smp_routing = weft_sm::SmpRouting::Lid;
        }
        if random.random_bool(0.3) {
            options.device.smp_processing = Time::from_nanos(random.random_range(0..20_000));
            // A manager that has more in flight than a switch can hold loses the same SMPs again and again.
            options.device.vl15_buffer_packets = options.sm.max_wire_smps as u16;
        }
        let loss = RandomLoss {
            until: FAULTS_UNTIL,
            lost_per_mille: random.random_range(0..100),
            late_per_mille: random.random_range(0..50),
            delay_max: Time::from_millis(random.random_range(0..DELAY_MS_MAX)),
        };
        let mut faults = Vec::new();
        let cables: Vec<Cable> = fabric.cables().collect();
        for _ in 0..random.random_range(0..9u32) {
            random_fault(&mut random, &fabric, &cables, &mut faults);
        }
        put_right_the_managers_way(&fabric, &faults.clone(), &mut faults);
        Ok(Self { seed, fabric, options, faults, loss })
    }

    /// A simulation that all of this happens in.
    pub fn simulation(&self) -> Simulation {
        let mut simulation = Simulation::new(&self.fabric, self.options.clone(), self.seed);
        simulation.set_rule(self.loss);
        for &(at, fault) in &self.faults {
            simulation.fault_at(at, fault);
        }
        simulation
    }
}

fn random_fabric(random_source: &mut Pcg64, seed: u64) -> Result<Fabric, GenerateError> {
    let switches = random_source.random_range(1..13u32);
    let several = switches > 1;
    let parameters = RandomFabric {
        switches,
        hosts: random_source.random_range(2..=40 - switches),
        extra_cables: if several { random_source.random_range(0..7) } else { 0 },
        parallel_cables: if several { random_source.random_range(0..4) } else { 0 },
    };
    let options = GenerateOptions { radix: Some(48), ..GenerateOptions::default() };
    random(&parameters, seed, &options)
}

/// Something goes wrong, and may be put right before the faults end.
fn random_fault(random: &mut Pcg64, fabric: &Fabric, cables: &[Cable], faults: &mut Vec<(Time, Fault)>) {
    let at = FAULTS_FROM + below(random, FAULTS_UNTIL.saturating_sub(FAULTS_FROM));
    // Often so soon that nobody has noticed yet.
    let most = if random.random_bool(0.5) { Time::from_millis(60) } else { Time::from_secs(3) };
    let mut again = (at + below(random, most)).min(FAULTS_UNTIL);
    let node = NodeIndex(random.random_range(0..fabric.nodes().len() as u32));
    let cable = cables[random.random_range(0..cables.len() as u64) as usize];
    let end = if random.random_bool(0.5) { cable.a } else { cable.b };
    // The manager dies once at most, so that no two of its deaths run into each other.
    let sm_died = faults.iter().any(|(_, fault)| *fault == Fault::KillSm);
    let (wrong, right) = match random.random_range(0..10u32) {
        0..4 => (Fault::Kill(node), Fault::Restart(node)),
        4..8 => (Fault::Cut(end), Fault::Restore(end)),
        _ if sm_died => (Fault::Cut(end), Fault::Restore(end)),
        _ => (Fault::KillSm, Fault::StartSm { with_guid2lid: random.random_bool(0.5) }),
    };
    if wrong == Fault::KillSm {
        again = again.max(at + SM_DEAD_MIN);
    }
    faults.push((at, wrong));
    if matches!(wrong, Fault::KillSm) || random.random_bool(0.7) {
        faults.push((again, right));
    }
}

/// Without a way to any switch there would be little to check.
fn put_right_the_managers_way(fabric: &Fabric, done: &[(Time, Fault)], faults: &mut Vec<(Time, Fault)>) {
    let Some((host, port)) =
        fabric.hosts().find_map(|(host, node)| Some((host, node.cabled_ports().next()?)))
    else {
        return;
    };
    let (here, peer) = (PortRef::new(host, port.0), port.1);
    for node in [host, peer.node] {
        let touched = done.iter().any(|(_, fault)| matches!(fault, Fault::Kill(dead) if *dead == node));
        if touched {
            faults.push((FAULTS_UNTIL, Fault::Restart(node)));
        }
    }
    faults.push((FAULTS_UNTIL, Fault::Restore(here)));
}
