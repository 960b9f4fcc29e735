//! A schedule of faults carried out in virtual time, with traffic, and judged: whatever goes wrong, every packet is accounted for at
//! every moment and every fault that lasts stands; and once all of them have ended, every node reaches every other.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::rc::Rc;

use serde::Serialize;
use weft_chaos::{Laboratory, Planned, Scope, draw, ends_at, steps};
use weft_fault::{FaultCost, FaultTimes, Sign, fault_times};
use weft_machine::{Random, Time};
use weft_sm::LidScheme;
use weft_topology::generate::{GenerateError, GenerateOptions, RandomFabric, random, ring, xgft};
use weft_topology::{Adapter, Fabric, NodeIndex, PortRef, Virtualised};
use weft_wire::{DataPacket, Lid, PKey, QKey, QpNum, VlCap, opcode};

use crate::{
    Fault, Load, Process, SeededBug, SimOptions, Simulation, StandbyOptions, ToHost, TrafficAccount,
    Violation,
};

/// How long a fabric may take to come up, and to come to rest after its last fault.
const PATIENCE: Time = Time::from_secs(300);
/// How often everything is added up meanwhile.
const LOOK_EVERY: Time = Time::from_millis(50);
/// How long what is under way may take when the traffic has ended: nothing waits longer in a switch than a few of its lifetimes, and so
/// does each packet that a host holds behind the one before it. A host that lost its path may hold a queue pair's window for each peer.
const DRAIN: Time = Time::from_secs(30);
const DRAINS_MAX: u32 = 10;
/// How slow data is, so that there are few packets: a packet of 2 KB on 4x QDR takes a few milliseconds.
const DILATION: u32 = 5_000;
/// Packets that each host has under way.
const WINDOW: usize = 2;

/// The first thing that is wrong in a run, and when.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ChaosFinding(String);

/// What was looked at, and found to be right.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ChaosReport {
    /// Nodes that reach each other in the end.
    pub nodes: usize,
    /// Pairs of ports that exchanged packets in the end.
    pub pairs: u64,
    /// Data packets that hosts sent meanwhile.
    pub sent: u64,
    /// Of those, the ones that arrived.
    pub delivered: u64,
    /// Links that were lost.
    pub link_losses: u64,
    /// Packets that impairments lost, damaged, doubled or made late.
    pub impaired: u64,
    /// What the faults cost that took links with them.
    pub cost: FaultCost,
}

/// A laboratory in virtual time: its fabric, and what it has besides.
#[derive(Clone, Debug)]
pub struct ChaosSite {
    /// The fabric, with the vSwitches of its adapters.
    pub fabric: Fabric,
    /// Its virtualised adapters; without any there is no VM manager.
    pub adapters: Vec<Adapter>,
    /// Whether their virtual functions are empty slots, as with `--lids dynamic`.
    pub empty_slots: bool,
    /// Its managers. Of a hub's death no fabric notices, and a simulation has none.
    pub laboratory: Laboratory,
}

impl ChaosSite {
    /// A fabric with nothing but its subnet manager.
    pub fn of(fabric: Fabric) -> Self {
        Self { fabric, adapters: Vec::new(), empty_slots: false, laboratory: Laboratory::default() }
    }

    /// A small one of a seed: a tree, a ring, a star or a random fabric, with or without further managers and virtual functions.
    ///
    /// # Errors
    ///
    /// What the generator fails with.
    pub fn small(seed: u64) -> Result<Self, GenerateError> {
        let mut chance = Random::of_purpose(seed, "laboratory");
        let mut site = Self::of(small_fabric(seed)?);
        let vfs = chance.below(6) as u16;
        if (1..3).contains(&vfs)
            && let Ok(Virtualised { fabric, adapters }) = site.fabric.virtualised(vfs)
        {
            (site.fabric, site.adapters) = (fabric, adapters);
        }
        let (standbys, pm) = (chance.below(2) as u8, chance.below(2) == 0);
        site.laboratory = Laboratory { standbys, pm, vmm: !site.adapters.is_empty() };
        site.empty_slots = chance.below(2) == 0 && !site.adapters.is_empty();
        Ok(site)
    }

    /// The schedule of a seed.
    pub fn draw(&self, seed: u64) -> Vec<Planned<NodeIndex, PortRef>> {
        let slots = self.adapters.iter().filter(|_| self.empty_slots);
        let slots: Vec<NodeIndex> = slots.flat_map(|adapter| adapter.vfs.iter().copied()).collect();
        draw(&self.fabric, seed, &Scope::of(self.laboratory, &slots))
    }

    /// Carries a schedule out, and judges it.
    ///
    /// # Errors
    ///
    /// The first violation.
    pub fn judge(
        &self,
        schedule: &[Planned<NodeIndex, PortRef>],
        seed: u64,
        bug: Option<SeededBug>,
    ) -> Result<ChaosReport, ChaosFinding> {
        judge(&self.fabric, self.options(seed, bug), schedule, seed).map_err(ChaosFinding)
    }

    fn options(&self, seed: u64, bug: Option<SeededBug>) -> SimOptions {
        let mut options = options(seed, bug);
        options.with_pm = self.laboratory.pm;
        (options.adapters, options.recabling) = (self.adapters.clone(), !self.adapters.is_empty());
        options.with_vmm = self.laboratory.vmm;
        if self.empty_slots {
            (options.empty_slots, options.sm.vm_lids.scheme) = (true, LidScheme::Dynamic);
        }
        // Each at a host of its own, as far as there are any beside the first one's.
        let is_slot = |node| self.adapters.iter().any(|adapter| adapter.vfs.contains(&node));
        let places = self.fabric.seats().filter(|seat| !is_slot(seat.node));
        let standby = |port| StandbyOptions { port, priority: 0, sm_key: None };
        options.standbys = places.skip(1).take(self.laboratory.standbys.into()).map(standby).collect();
        options.sm.election.priority = u8::from(!options.standbys.is_empty());
        options
    }
}

fn small_fabric(seed: u64) -> Result<Fabric, GenerateError> {
    let mut chance = Random::of_purpose(seed, "fabric");
    let options = GenerateOptions::default();
    match chance.below(4) {
        0 => {
            let (hosts, leaves, roots) = (1 + chance.below(3), 2 + chance.below(2), 1 + chance.below(2));
            xgft(&[hosts, leaves], &[1, roots], &options)
        }
        1 => ring(3 + chance.below(3), 1 + chance.below(2), &options),
        2 => xgft(&[3 + chance.below(5)], &[1], &options),
        _ => {
            let switches = 2 + chance.below(4);
            let (extra_cables, hosts) = (chance.below(3), 3 + chance.below(6));
            random(&RandomFabric { switches, hosts, extra_cables, parallel_cables: 0 }, seed, &options)
        }
    }
}

fn judge(
    fabric: &Fabric,
    options: SimOptions,
    schedule: &[Planned<NodeIndex, PortRef>],
    seed: u64,
) -> Result<ChaosReport, String> {
    let mut simulation = Simulation::new(fabric, options, seed);
    simulation.world.observers.is_judged = true;
    simulation.run_until_quiet(PATIENCE).map_err(|error| format!("the fabric does not come up: {error}"))?;
    let whole = simulation.check().map_err(|found| said(&simulation, &found))?.nodes;
    let traffic = Rc::new(RefCell::new(Traffic::new(seed)));
    simulation.set_load(Everywhere(Rc::clone(&traffic)));
    let ends = Everywhere::ends(&simulation);
    let begun = traffic.borrow_mut().begin(ends);
    begun.into_iter().for_each(|(port, packet)| simulation.inject(port, packet));
    let began = simulation.now();
    for (at, fault) in steps(schedule) {
        simulation.fault_at(began + at, fault);
    }
    let until = began + ends_at(schedule) + LOOK_EVERY;
    while simulation.now() < until {
        simulation.run_until(simulation.now() + LOOK_EVERY);
        look(&simulation)?;
    }
    traffic.borrow_mut().over = true;
    let patience = simulation.now() + PATIENCE;
    simulation.run_until_quiet(patience).map_err(|error| format!("after the last fault: {error}"))?;
    // Its questions go over the data lanes, and never end.
    simulation.apply(Fault::Kill(Process::Pm));
    let total = drained(&mut simulation)?;
    let report = simulation.check().map_err(|found| said(&simulation, &found))?;
    if report.nodes != whole {
        return Err(format!("after the last fault {} of {whole} nodes are reached", report.nodes));
    }
    simulation.check_picture().map_err(|found| said(&simulation, &found))?;
    let pairs = simulation.probe().map_err(|found| said(&simulation, &found))?;
    let (counts, links) = (simulation.impairment_counts(), simulation.statistics().link_losses);
    Ok(ChaosReport {
        nodes: report.nodes,
        pairs,
        sent: total.injected,
        delivered: total.delivered,
        link_losses: links,
        impaired: counts.lost + counts.damaged + counts.duplicated + counts.late + counts.reordered,
        cost: FaultCost::of(&times(&simulation, began, schedule)),
    })
}

/// Lets what is under way arrive or be dropped. What hosts still hold comes to the switches by and by.
fn drained(simulation: &mut Simulation) -> Result<TrafficAccount, String> {
    for _ in 0..DRAINS_MAX {
        simulation.run_until(simulation.now() + DRAIN);
        look(simulation)?;
        let total = simulation.check_traffic().map_err(|found| said(simulation, &found))?.total;
        if total.under_way() == 0 {
            return Ok(total);
        }
    }
    let held = |node: NodeIndex| {
        let account = simulation.device(node)?.data_account();
        Some(account.lanes.iter().map(|lane| lane.held).sum::<u64>())
    };
    let fabric = simulation.fabric();
    let nodes = fabric.iter().filter_map(|(node, _)| Some((held(node)?, fabric.label(node))));
    let nodes: Vec<String> =
        nodes.filter(|(held, _)| *held > 0).map(|(held, label)| format!("{held} in {label}")).collect();
    Err(format!("at {}: packets do not arrive, and are not dropped: {}", simulation.now(), nodes.join(", ")))
}

/// What each fault of a schedule cost.
fn times(
    simulation: &Simulation,
    began: Time,
    schedule: &[Planned<NodeIndex, PortRef>],
) -> Vec<FaultTimes<usize>> {
    let mut signs = Vec::new();
    for (number, planned) in schedule.iter().enumerate() {
        let takes_links = planned.fault.takes_links();
        signs.push((began + planned.at, Sign::Begun { key: number, takes_links }));
        signs.extend(planned.lasts.map(|lasts| (began + planned.at + lasts, Sign::Ended(number))));
    }
    signs.extend(simulation.fault_signs());
    signs.sort_by_key(|(at, _)| *at);
    fault_times(signs.into_iter().map(|(at, sign)| (at.as_nanos(), sign)))
}

fn options(seed: u64, bug: Option<SeededBug>) -> SimOptions {
    let mut chance = Random::of_purpose(seed, "options");
    let mut options = SimOptions {
        link_jitter: Time::from_micros(chance.below(100).into()),
        link_timeout: Time::from_millis(1 + u64::from(chance.below(500))),
        training_jitter: Time::from_millis(chance.below(30).into()),
        bug,
        ..SimOptions::default()
    };
    options.sm.sweeps.sweep_interval_ms = 2_000;
    options.device.vl_cap = VlCap::Vl0;
    let data = &mut options.device.data;
    (data.shaped, data.dilation, data.buffer_packets) = (true, DILATION, 4);
    // 1 ms at the head of a queue and 4 ms in a switch, of fabric time: any routing may deadlock.
    (options.sm.lanes.hoq_life, options.sm.lanes.leaf_hoq_life, options.sm.lanes.packet_life_time) =
        (8, 8, 10);
    options
}

/// What holds at every moment.
fn look(simulation: &Simulation) -> Result<(), String> {
    simulation.check_traffic().map_err(|found| said(simulation, &found))?;
    match simulation.lasting_faults_differ() {
        None => Ok(()),
        Some(at) => {
            let port = simulation.fabric().port_label(at);
            Err(format!("at {}: the faults that last are not those of port {port}", simulation.now()))
        }
    }
}

fn said(simulation: &Simulation, violations: &[Violation]) -> String {
    let first = violations.first().map(ToString::to_string).unwrap_or_default();
    let more = violations.len().saturating_sub(1);
    let more = if more > 0 { format!(", and {more} more") } else { String::new() };
    format!("at {}: {first}{more}", simulation.now())
}

/// Every host sends to every other, a few packets at a time.
struct Traffic {
    lids: BTreeSet<Lid>,
    active: BTreeMap<PortRef, bool>,
    random: Random,
    sequence: u64,
    over: bool,
}

struct Everywhere(Rc<RefCell<Traffic>>);

impl Everywhere {
    /// The hosts' ports that are up, and their LIDs.
    fn ends(simulation: &Simulation) -> Vec<(PortRef, Lid)> {
        let fabric = simulation.fabric();
        let ports = fabric
            .hosts()
            .flat_map(|(index, node)| node.cabled_ports().map(move |(port, _)| PortRef::new(index, port)));
        let lid = |at: PortRef| simulation.port(at).map(|port| (at, port.lid));
        ports.filter_map(lid).filter(|(_, lid)| *lid != Lid(0)).collect()
    }
}

impl Traffic {
    fn new(seed: u64) -> Self {
        let random = Random::of_purpose(seed, "traffic");
        Self { lids: BTreeSet::new(), active: BTreeMap::new(), random, sequence: 0, over: false }
    }

    fn begin(&mut self, ends: Vec<(PortRef, Lid)>) -> Vec<(PortRef, DataPacket)> {
        self.lids = ends.iter().map(|(_, lid)| *lid).collect();
        self.active = ends.iter().map(|(port, _)| (*port, true)).collect();
        let all = ends.into_iter().flat_map(|(port, _)| [port; WINDOW]);
        all.collect::<Vec<_>>().into_iter().filter_map(|port| Some((port, self.next()?))).collect()
    }

    fn next(&mut self) -> Option<DataPacket> {
        let chosen = self.random.below(self.lids.len() as u32) as usize;
        let dlid = *self.lids.iter().nth(chosen)?;
        self.sequence += 1;
        Some(DataPacket {
            sequence: self.sequence,
            dlid,
            dest_qp: QpNum(2),
            src_qp: QpNum(2),
            q_key: QKey(1),
            p_key: PKey::DEFAULT_FULL,
            payload: 2048,
            opcode: opcode::UD_SEND_ONLY,
            ..DataPacket::default()
        })
    }
}

impl Load for Everywhere {
    fn hear(&mut self, _: Time, port: PortRef, what: ToHost, inject: &mut VecDeque<DataPacket>) {
        let mut traffic = self.0.borrow_mut();
        let wanted = match what {
            ToHost::Injected { packets, .. } if traffic.active.get(&port) == Some(&true) => packets.into(),
            ToHost::Facts(facts) => {
                if facts.lid != Lid(0) {
                    traffic.lids.insert(facts.lid);
                }
                let was = traffic.active.insert(port, facts.active);
                if facts.active && was != Some(true) { WINDOW } else { 0 }
            }
            _ => 0,
        };
        if !traffic.over {
            (0..wanted).for_each(|_| inject.extend(traffic.next()));
        }
    }
}
