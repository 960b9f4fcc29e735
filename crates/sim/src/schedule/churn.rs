//! Schedules in which devices and cables come and go while managers sweep.

use std::collections::BTreeSet;

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;
use weft_machine::Time;
use weft_topology::generate::{GenerateError, GenerateOptions, RandomFabric, random, ring, xgft};
use weft_topology::{Cable, Fabric, NodeIndex, PortRef};
use weft_wire::{PortNum, VlCap};

use super::{FAULTS_FROM, FAULTS_UNTIL, Schedule, an_outage, fabrics};
use crate::rule::below;
use crate::{Change, Fault, Process, RandomLoss, SimOptions, StandbyOptions};

/// Separates this generator from those of other schedules with the same seed.
const SALT: u64 = 0x00c0_4ec7_ab1e;

/// More ports than any of these switches uses at first.
const RADIX: u8 = 12;

impl Schedule {
    /// The schedule of a seed in which up to 40 changes are made to a fabric of up to 20 devices: devices are taken out and
    /// put back under the same GUIDs, cables are moved, pulled and put in. Meanwhile processes of devices and of two or three
    /// subnet managers and of the performance manager die and begin again. In half of all schedules several devices share a node.
    ///
    /// At the end every manager's device is there, on, and cabled to a switch, and all managers run.
    pub fn with_churn(seed: u64) -> Result<Self, GenerateError> {
        let mut random = Pcg64::seed_from_u64(seed ^ SALT);
        let fabric = small_fabric(&mut random, seed)?;
        let mut options = random_options(&mut random);
        let managers = place_managers(&mut random, &fabric, &mut options);
        let loss = RandomLoss {
            until: FAULTS_UNTIL,
            lost_per_mille: random.random_range(0..50),
            late_per_mille: random.random_range(0..50),
            delay_max: Time::from_millis(random.random_range(0..500)),
        };
        let faults = random_faults(&mut random, &fabric, &options);
        let (mut churn, mut changes) = (Churn::new(&fabric), Vec::new());
        let mut at = FAULTS_FROM;
        for _ in 0..random.random_range(3..16u32) {
            let most = if random.random_bool(0.5) { 60 } else { 800 };
            at += below(&mut random, Time::from_millis(most));
            if at < FAULTS_UNTIL {
                let made = churn.step(&mut random);
                changes.extend(made.into_iter().map(|change| {
                    at += below(&mut random, Time::from_millis(5));
                    (at, change)
                }));
            }
        }
        let end = at.max(FAULTS_UNTIL);
        changes.extend(churn.settle(&mut random, &managers).into_iter().map(|change| (end, change)));
        let mut schedule = Self { seed, fabric, options, faults, guid2lid_lost: None, changes, loss };
        schedule.put_right(&churn.fabric, &managers, end);
        Ok(schedule)
    }

    /// In the end the way of every manager to its switch is as it should be.
    fn put_right(&mut self, last: &Fabric, managers: &[PortRef], end: Time) {
        let pack = self.options.pack as u32;
        let home = |node: NodeIndex| node.0 / pack;
        for &port in managers {
            let peer = last.peer(port);
            for node in std::iter::once(port.node).chain(peer.map(|peer| peer.node)) {
                let dead = |fault: &Fault| matches!(fault, Fault::Kill(Process::Agent(dead)) if home(*dead) == home(node));
                if self.faults.iter().any(|(_, fault)| dead(fault)) {
                    self.faults.push((end, Fault::Restart(Process::Agent(node))));
                }
            }
            if peer.is_some() {
                self.faults.push((end + Time::from_millis(1), Fault::LinkUp(port)));
            }
        }
    }
}

fn small_fabric(source: &mut Pcg64, seed: u64) -> Result<Fabric, GenerateError> {
    let options = GenerateOptions { radix: Some(RADIX), ..GenerateOptions::default() };
    match source.random_range(0..4u32) {
        0 => {
            let (down, leaves) = (source.random_range(1..4), source.random_range(2..4));
            xgft(&[down, leaves], &[1, source.random_range(1..3)], &options)
        }
        1 => ring(source.random_range(3..6), source.random_range(1..3), &options),
        2 => xgft(&[source.random_range(3..9)], &[1], &options),
        _ => {
            let switches = source.random_range(1..6u32);
            let extra_cables = if switches > 1 { source.random_range(0..3) } else { 0 };
            let hosts = source.random_range(3..11);
            random(&RandomFabric { switches, hosts, extra_cables, parallel_cables: 0 }, seed, &options)
        }
    }
}

fn random_options(random: &mut Pcg64) -> SimOptions {
    let mut options = SimOptions {
        recabling: true,
        pack: [1, 1, 2, 5][random.random_range(0..4usize)],
        link_jitter: below(random, Time::from_micros(100)),
        link_timeout: Time::from_millis(random.random_range(1..500)),
        training_jitter: below(random, Time::from_millis(30)),
        with_pm: true,
        ..SimOptions::default()
    };
    let sm = &mut options.sm;
    (sm.sweeps.sweep_interval_ms, sm.election.polling_ms, sm.election.polling_retries) = (2_000, 500, 2);
    sm.election.priority = random.random_range(0..4);
    if random.random_bool(0.3) {
        sm.smps.smp_routing = weft_sm::SmpRouting::Lid;
    }
    if random.random_bool(0.3) {
        options.device.smp_processing = Time::from_nanos(random.random_range(0..20_000));
    }
    options.device.vl_cap = [VlCap::Vl0, VlCap::Vl0To1, VlCap::Vl0To3][random.random_range(0..3usize)];
    let data = &mut options.device.data;
    (data.shaped, data.dilation) = (true, 5000);
    data.buffer_packets = random.random_range(1..17);
    // Up to 1 ms at the head of a queue and 4 ms in a switch, of fabric time: any routing may deadlock.
    let sm = &mut options.sm;
    (sm.lanes.hoq_life, sm.lanes.leaf_hoq_life) = (random.random_range(6..9), random.random_range(6..9));
    sm.lanes.packet_life_time = random.random_range(8..11);
    if random.random_bool(0.5) {
        // Cables as long as a packet, so that one taken out takes something with it.
        options.link_delay = Time::from_micros(500);
    }
    options
}

/// Puts two or three subnet managers and the performance manager at devices of their own, and says where.
fn place_managers(random: &mut Pcg64, fabric: &Fabric, options: &mut SimOptions) -> Vec<PortRef> {
    let mut taken: Vec<PortRef> = vec![fabrics::random_place(random, fabric)];
    let wanted = random.random_range(2..4usize);
    while taken.len() < wanted + 1 {
        let port = fabrics::random_place(random, fabric);
        if taken.iter().all(|other| other.node != port.node) {
            taken.push(port);
        }
    }
    (options.sm_port, options.pm_port) = (Some(taken[0]), Some(taken[1]));
    for &port in &taken[2..] {
        options.standbys.push(StandbyOptions { port, priority: random.random_range(0..4), sm_key: None });
    }
    taken
}

/// Devices, cables and managers fail as in other schedules; managers begin again.
fn random_faults(random: &mut Pcg64, fabric: &Fabric, options: &SimOptions) -> Vec<(Time, Fault)> {
    let (mut faults, cables) = (Vec::new(), fabric.cables().collect::<Vec<Cable>>());
    for _ in 0..random.random_range(0..4u32) {
        // Managers fail below, and keep their files.
        let _ = super::random_fault(random, fabric, &cables, &mut faults);
    }
    faults.retain(|(_, fault)| !matches!(fault, Fault::Kill(Process::Sm) | Fault::Restart(Process::Sm)));
    let standbys = (0..options.standbys.len() as u8).map(Process::Standby);
    for manager in [Process::Sm, Process::Pm].into_iter().chain(standbys) {
        if random.random_bool(0.4) {
            let (at, again) = an_outage(random, Time::from_secs(2));
            faults.extend([(at, Fault::Kill(manager)), (again, Fault::Restart(manager))]);
        }
    }
    faults
}

/// The fabric after the changes so far.
struct Churn {
    fabric: Fabric,
    away: BTreeSet<NodeIndex>,
}

impl Churn {
    fn new(fabric: &Fabric) -> Self {
        Self { fabric: fabric.clone(), away: BTreeSet::new() }
    }

    /// The next thing that the operator does.
    fn step(&mut self, random: &mut Pcg64) -> Vec<Change> {
        match random.random_range(0..12u32) {
            0..4 => self.remove(random),
            4..7 => self.add_any(random),
            7..10 => self.move_cable(random),
            10 => self.pull(random).into_iter().map(|cable| Change::Disconnect(cable.a)).collect(),
            _ => {
                let (a, b) = (self.free_port(random), self.free_port(random));
                a.zip(b).and_then(|(a, b)| self.put_in(a, b)).into_iter().collect()
            }
        }
    }

    /// Takes a device out; often it is back at once, as one that moves is.
    fn remove(&mut self, random: &mut Pcg64) -> Vec<Change> {
        let here = self.here().collect::<Vec<_>>();
        let node = here[random.random_range(0..here.len())];
        if self.fabric.node(node).is_switch() && self.switches().len() == 1 {
            return Vec::new();
        }
        let ports: Vec<PortNum> = self.fabric.node(node).cabled_ports().map(|(port, _)| port).collect();
        ports.into_iter().for_each(|port| self.fabric.disconnect(PortRef::new(node, port)));
        self.away.insert(node);
        let mut changes = vec![Change::Remove(node)];
        if random.random_bool(0.4) {
            changes.extend(self.add(random, node));
        }
        changes
    }

    fn add_any(&mut self, random: &mut Pcg64) -> Vec<Change> {
        let away = self.away.iter().copied().collect::<Vec<_>>();
        if away.is_empty() {
            return self.move_cable(random);
        }
        let node = away[random.random_range(0..away.len())];
        self.add(random, node)
    }

    /// Puts a device back, with new cables: an adapter with one, a switch with up to three and those of adapters that have
    /// none.
    fn add(&mut self, random: &mut Pcg64, node: NodeIndex) -> Vec<Change> {
        self.away.remove(&node);
        let mut changes = vec![Change::Add(node)];
        let is_switch = self.fabric.node(node).is_switch();
        for port in 1..=if is_switch { random.random_range(1..4u8) } else { 1 } {
            changes.extend(self.cable_up(random, PortRef::new(node, PortNum(port))));
        }
        let lonely =
            |churn: &Self, node: &NodeIndex| churn.fabric.node(*node).cabled_ports().next().is_none();
        let hosts: Vec<NodeIndex> =
            self.here().filter(|&node| !self.fabric.node(node).is_switch() && lonely(self, &node)).collect();
        for host in hosts.into_iter().filter(|_| is_switch) {
            if random.random_bool(0.8) {
                changes.extend(self.cable_up(random, PortRef::new(host, PortNum(1))));
            }
        }
        changes
    }

    /// Moves one end of a cable to another port: not an adapter's, if one end is.
    fn move_cable(&mut self, random: &mut Pcg64) -> Vec<Change> {
        let Some(cable) = self.pull(random) else { return Vec::new() };
        let stays = if self.fabric.node(cable.b.node).is_switch() { cable.a } else { cable.b };
        let moved = self.cable_up(random, stays);
        std::iter::once(Change::Disconnect(stays)).chain(moved).collect()
    }

    fn pull(&mut self, random: &mut Pcg64) -> Option<Cable> {
        let cables = self.fabric.cables().collect::<Vec<_>>();
        let cable = *cables.get(random.random_range(0..cables.len().max(1)))?;
        self.fabric.disconnect(cable.a);
        Some(cable)
    }

    /// Cables a free port to some switch.
    fn cable_up(&mut self, random: &mut Pcg64, port: PortRef) -> Option<Change> {
        let there = self.free_port(random)?;
        self.put_in(port, there)
    }

    fn put_in(&mut self, a: PortRef, b: PortRef) -> Option<Change> {
        let rate = self.fabric.port(a)?.link;
        self.fabric.reconnect(a, b, rate);
        (self.fabric.peer(a) == Some(b)).then_some(Change::Connect([a, b]))
    }

    /// A free port of some switch.
    fn free_port(&self, random: &mut Pcg64) -> Option<PortRef> {
        let switches = self.switches();
        let switch = switches[random.random_range(0..switches.len())];
        let free = self.fabric.node(switch).external_ports().filter(|(_, port)| port.peer.is_none());
        let free: Vec<PortNum> = free.map(|(port, _)| port).collect();
        Some(PortRef::new(switch, *free.get(random.random_range(0..free.len().max(1)))?))
    }

    fn here(&self) -> impl Iterator<Item = NodeIndex> {
        self.fabric.iter().map(|(node, _)| node).filter(|node| !self.away.contains(node))
    }

    fn switches(&self) -> Vec<NodeIndex> {
        self.here().filter(|&node| self.fabric.node(node).is_switch()).collect()
    }

    /// In the end all managers' devices are there, each with a cable to a switch.
    fn settle(&mut self, random: &mut Pcg64, managers: &[PortRef]) -> Vec<Change> {
        let mut changes = Vec::new();
        for &port in managers {
            if self.away.contains(&port.node) {
                changes.extend(self.add(random, port.node));
            }
            while port.port != PortNum::ZERO && self.fabric.peer(port).is_none() {
                changes.extend(self.cable_up(random, port));
            }
        }
        changes
    }
}
