//! The driver: takes what happens next, feeds the machine that it happens to, and puts what the machine wants
//! into the queue.

mod bugs;
mod cables;
mod changes;
mod feed;
mod frozen;
mod hosts;
mod impaired;
mod links;
mod managers;
mod power;
mod programs;
mod recording;
mod slot_agent;
mod slots;
mod vmm;
mod vms;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt;

use rand::SeedableRng;
use rand_pcg::Pcg64;
use serde::Serialize;
use weft_device::{Device, Event as DeviceEvent, Unsent};
use weft_fault::{Damage, Impaired, Nodes};
use weft_machine::{Machine, Time, Timer};
use weft_node::{Answer, Client, Desk, PortId, Reading, Refusal};
use weft_sm::{GuidToLid, SmTimer, Summary};
use weft_topology::{Fabric, NodeIndex, PortRef};
use weft_vm::seat_beside;
use weft_wire::{AddressedMad, DataPacket, Guid, PortNum};

use crate::cable::{Cabling, Link};
use crate::conservation::PastDevices;
use crate::event::{Event, MadUnderWay, ManagementPacket, Rare, Slab};
use crate::flight::Flights;
use crate::ledger::Ledger;
use crate::queue::Queue;
use crate::{Fault, Kept, Load, Rule, SimOptions, ToHost, Trace};
use frozen::Frozen;
use hosts::REFUSALS_MAX;
use managers::{PmProcess, SmProcess};
use programs::{Attachment, SM, STANDBYS_MAX};
use recording::Recordings;
use slots::{DeviceSlot, Slot, Tenant, device_slots, shared_nodes};
use vmm::VmmProcess;

/// No wake-up is under way.
const ASLEEP: Time = Time::from_nanos(u64::MAX);

/// How much there was to do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct SimStatistics {
    /// Things that happened.
    pub events: u64,
    /// Packets that went into a cable.
    pub packets: u64,
    /// Of those, the ones whose body is a length.
    pub data_packets: u64,
    /// Flow control packets that went into a cable.
    pub credits: u64,
    /// Packets that a rule lost.
    pub lost: u64,
    /// Packets that a rule delayed.
    pub delayed: u64,
    /// Packets that a link took with it when it went.
    pub cut_off: u64,
    /// Packets sent without credit; each ends its link, which then begins again.
    pub credit_overruns: u64,
    /// How often a node had come to no end at one moment, and went on later.
    pub host_pauses: u64,
    /// Number of times an end noticed the loss of its link.
    pub link_losses: u64,
    /// Of those, how often within 50 ms.
    pub link_losses_brief: u64,
    /// How often it did not count it, or did not send a trap though it is a switch with a manager.
    pub link_losses_unnoticed: u64,
}

/// The fabric did not come to rest in time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotQuiet {
    /// When patience ended.
    pub at: Time,
    /// What the subnet manager was doing.
    pub activity: Option<weft_sm::Activity>,
    /// What the subnet manager waits for beside answers.
    pub timer: Option<Timer<SmTimer>>,
    /// When something last changed.
    pub disturbed_at: Time,
}

impl fmt::Display for NotQuiet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { at, activity, timer, disturbed_at } = self;
        let doing = activity.map_or_else(|| "does not run".to_owned(), |activity| activity.to_string());
        write!(f, "not quiet at {at}: the manager {doing}, the last change was at {disturbed_at}")?;
        timer.iter().try_for_each(|timer| write!(f, ", the next timer is {timer}"))
    }
}

impl std::error::Error for NotQuiet {}

/// A fabric in virtual time.
pub struct Simulation {
    pub(crate) fabric: Fabric,
    options: SimOptions,
    now: Time,
    queue: Queue<Event>,
    random: Pcg64,
    slots: Vec<Slot>,
    /// Where each device is, and what its operator knows of it.
    device_slots: Vec<DeviceSlot>,
    shared_nodes: BTreeMap<NodeIndex, Vec<NodeIndex>>,
    /// The GUIDs that virtual functions began with, of those that had others since.
    first_guids: BTreeMap<NodeIndex, [Guid; 2]>,
    /// Functions whose GUIDs another one has in the cabling, for now.
    unnamed: BTreeSet<NodeIndex>,
    tenants: Vec<Tenant>,
    /// Sets that functions had received with identities that have left.
    past_sets: BTreeMap<NodeIndex, u64>,
    /// What nodes were asked.
    ledger: Ledger,
    /// When the wake-up of each node is under way.
    wakes: Vec<Time>,
    /// The memory that each node has while it is in hand.
    desk: Option<Box<Desk>>,
    pub(crate) cabling: Cabling,
    /// Packets under way on data lanes.
    pub(crate) flights: Flights,
    /// Packets of lane 15 under way.
    management: Slab<ManagementPacket>,
    /// MADs under way between programs and their devices.
    mads: Slab<MadUnderWay>,
    rare: Slab<Rare>,
    /// Of every program, by its number.
    attachments: Vec<Attachment>,
    frozen_programs: Frozen,
    /// The first one, and those beside it.
    subnet_managers: Vec<SmProcess>,
    performance_manager: PmProcess,
    vm_manager: VmmProcess,
    /// The highest generation of a VM manager that each agent has heard of.
    generations: BTreeMap<NodeIndex, u64>,
    /// The answer to the step of a virtual machine that is under way.
    vm_outcome: Option<Result<Answer, Refusal>>,
    /// Commands that hosts refused, and why.
    refusals: Kept<(Time, PortRef, String), REFUSALS_MAX>,
    /// What the node in hand has for hosts that a load stands in for.
    for_load: VecDeque<(PortRef, ToHost)>,
    /// Packets of the node in hand that found no link.
    unsent: VecDeque<(PortId, Unsent)>,
    /// The checkers' program at the node in hand, once it is attached.
    checker: Option<Client>,
    load: Option<Box<dyn Load>>,
    /// Packets that a load gives the adapter in hand, and through which port.
    loaded: VecDeque<DataPacket>,
    loaded_port: PortRef,
    rule: Option<Box<dyn Rule>>,
    /// What impairs cables, and what it does to the ends of each.
    impaired: BTreeMap<Impaired<PortRef>, Vec<Damage<PortRef>>>,
    /// Nodes that do not answer, and how many faults have it so.
    frozen: BTreeMap<NodeIndex, u32>,
    partitions: Vec<Partition>,
    /// When ends noticed that their links were gone.
    noticed: Kept<Time, NOTICED_MAX>,
    /// Whether somebody else judges what is left in the end.
    pub(crate) is_judged: bool,
    /// What checkers' MAD layers gave them to read.
    pub(crate) readings: Vec<(NodeIndex, Reading)>,
    /// MADs delivered to programs other than those above.
    pub(crate) delivered: Vec<(NodeIndex, Client, AddressedMad)>,
    /// What devices had counted that have lost their power.
    pub(crate) past: PastDevices,
    faults_pending: usize,
    disturbed_at: Time,
    statistics: SimStatistics,
    recordings: Option<Box<Recordings>>,
    trace: Trace,
}

/// Lost links whose notice is kept.
const NOTICED_MAX: usize = 1 << 14;

/// A partition that lasts.
struct Partition {
    nodes: Nodes<NodeIndex>,
    /// The numbers and lives of the cables that it keeps out.
    cables: Vec<(usize, u32)>,
}

impl Simulation {
    /// A fabric whose devices are switched on at time zero. The seed decides every delay and chance.
    pub fn new(fabric: &Fabric, options: SimOptions, seed: u64) -> Self {
        let (count, tenant) = (fabric.nodes().len(), Tenant { present: true, incarnation: 0 });
        let device_slots = device_slots(count, &options);
        let mut simulation = Self {
            slots: std::iter::repeat_with(|| Slot { node: None, goes_on: false }).take(count).collect(),
            shared_nodes: shared_nodes(&device_slots),
            device_slots,
            first_guids: BTreeMap::new(),
            unnamed: BTreeSet::new(),
            tenants: vec![tenant; count],
            past_sets: BTreeMap::new(),
            ledger: Ledger::default(),
            wakes: vec![ASLEEP; count],
            desk: None,
            now: Time::ZERO,
            queue: Queue::new(),
            random: Pcg64::seed_from_u64(seed),
            cabling: Cabling::new(fabric)
                .with_delays(options.data_link_delay.unwrap_or(options.link_delay), &options.link_delays),
            flights: Flights::new(),
            management: Slab::new(),
            mads: Slab::new(),
            rare: Slab::new(),
            attachments: attachments(fabric, &options),
            frozen_programs: Frozen::new(),
            subnet_managers: std::iter::repeat_with(SmProcess::default).take(1 + STANDBYS_MAX).collect(),
            performance_manager: PmProcess::default(),
            vm_manager: VmmProcess::default(),
            generations: BTreeMap::new(),
            vm_outcome: None,
            refusals: Kept::default(),
            for_load: VecDeque::new(),
            unsent: VecDeque::new(),
            checker: None,
            load: None,
            loaded: VecDeque::new(),
            loaded_port: PortRef::new(NodeIndex(0), PORT_ZERO),
            rule: None,
            impaired: BTreeMap::new(),
            frozen: BTreeMap::new(),
            partitions: Vec::new(),
            noticed: Kept::default(),
            is_judged: false,
            readings: Vec::new(),
            delivered: Vec::new(),
            past: PastDevices::default(),
            faults_pending: 0,
            disturbed_at: Time::ZERO,
            statistics: SimStatistics::default(),
            recordings: options
                .record
                .map(|node| Box::new(Recordings::of(node, &fabric.node(node).id.to_string()))),
            trace: Trace::new(options.trace),
            fabric: fabric.clone(),
            options,
        };
        simulation.configure_vmm();
        simulation.begin_nodes();
        for cable in 0..simulation.cabling.cables.len() {
            simulation.update_link(cable);
        }
        simulation.begin_programs();
        simulation
    }

    fn begin_nodes(&mut self) {
        let homes: Vec<_> = self.device_slots.iter().map(|place| place.home).collect();
        for cable in &mut self.cabling.cables {
            let [a, b] = cable.ends.map(|end| homes[end.node.index()]);
            cable.inside = self.options.recabling && a == b;
        }
        let firsts = homes.iter().zip(0..).filter(|(home, number)| home.0 == *number);
        firsts.for_each(|(home, _)| self.begin_node(*home));
    }

    fn begin_programs(&mut self) {
        if self.options.with_sm {
            self.start_sm(SM, &GuidToLid::default(), self.options.sm_start);
            self.start_standbys();
        }
        if self.options.with_pm {
            self.start_pm(self.options.pm_start);
        }
        if self.options.with_vmm {
            self.start_vmm(self.options.vmm_start);
        }
    }

    /// The time.
    pub fn now(&self) -> Time {
        self.now
    }

    /// What it is like.
    pub fn options(&self) -> &SimOptions {
        &self.options
    }

    /// The cabling: as this began, with what has changed since.
    pub fn fabric(&self) -> &Fabric {
        &self.fabric
    }

    /// How much there was to do.
    pub fn statistics(&self) -> SimStatistics {
        self.statistics
    }

    /// What has happened.
    pub fn trace(&self) -> &Trace {
        &self.trace
    }

    /// Decides what becomes of packets from now on.
    pub fn set_rule(&mut self, rule: impl Rule + 'static) {
        self.rule = Some(Box::new(rule));
    }

    /// Something goes wrong, or is put right, at some time.
    pub fn fault_at(&mut self, at: Time, fault: Fault) {
        self.faults_pending += 1;
        self.push_rare(at.max(self.now), Rare::Fault(fault));
    }

    /// The first subnet manager loses its `guid2lid` file at some time, and starts without one if it is restarted then.
    pub fn lose_guid2lid_at(&mut self, at: Time) {
        self.push_rare(at.max(self.now), Rare::LoseGuid2Lid);
    }

    /// Whether the cable in `port` has a link.
    pub fn is_link_up(&self, port: PortRef) -> bool {
        self.cabling.find(port).is_some_and(|(cable, _)| match &self.cabling.cables[cable] {
            cable if cable.inside => self.node(port.node).is_some_and(|node| node.is_link_up(self.at(port))),
            cable => cable.link == Link::Up,
        })
    }

    /// LFT blocks written in all switches that are on.
    pub fn lft_writes(&self) -> u64 {
        self.devices().map(|device| device.statistics().lft_writes).sum()
    }

    /// SMPs that found the buffers full of devices that are on.
    pub fn vl15_dropped(&self) -> u64 {
        let full = |device: &Device| device.statistics().dropped(weft_device::DropReason::Vl15Full);
        self.devices().map(full).sum()
    }

    /// LIDs changed in all devices that are on.
    pub fn lid_changes(&self) -> u64 {
        self.devices().map(|device| device.statistics().lid_changes).sum()
    }

    /// Lets everything happen until `limit`.
    pub fn run_until(&mut self, limit: Time) {
        while self.step(limit) {}
        self.now = self.now.max(limit);
    }

    /// Lets things happen until the fabric has come to rest: all faults are over, and the subnet manager has
    /// looked twice and found nothing to do.
    pub fn run_until_quiet(&mut self, limit: Time) -> Result<Time, NotQuiet> {
        loop {
            if self.is_quiet() {
                return Ok(self.now);
            }
            if !self.step(limit) {
                self.now = self.now.max(limit);
                if self.is_quiet() {
                    return Ok(self.now);
                }
                let activity = self.sm().map(|sm| sm.progress().activity);
                let timer = self.sm().and_then(Machine::next_timer);
                return Err(NotQuiet { at: self.now, activity, timer, disturbed_at: self.disturbed_at });
            }
        }
    }

    /// Lets things happen until the subnet manager has ended a heavy sweep that found all it looked for, or until `limit`. When the
    /// sweep ended, and its summary; `None` when none ended in time.
    pub fn run_until_rerouted(&mut self, limit: Time) -> Option<(Time, Summary)> {
        let mut before = self.summaries().count();
        while self.step(limit) {
            let ended = self.summaries().since(before);
            if let Some(found) = ended.iter().find(|(_, summary)| summary.complete) {
                return Some(found.clone());
            }
            before = self.summaries().count();
        }
        self.now = self.now.max(limit);
        None
    }

    fn is_quiet(&self) -> bool {
        if self.faults_pending > 0 || self.now < self.options.sm_start {
            return false;
        }
        self.is_vmm_at_rest() && self.are_at_rest()
    }

    /// The next thing happens, if it does so by `limit`.
    pub(crate) fn step(&mut self, limit: Time) -> bool {
        let Some((at, event)) = self.queue.pop_until(limit) else { return false };
        self.now = at;
        self.statistics.events += 1;
        match event {
            Event::Arrive(way) => self.arrive(way),
            Event::WakeNode(node) => self.wake_node(node),
            Event::WakeProgram(program) => self.wake_program(program),
            Event::ArriveManagement(number) => self.arrive_management(number),
            Event::Mad(number) => self.mad_arrives(number),
            Event::Rare(number) => self.rare(number),
        }
        true
    }

    fn rare(&mut self, number: u32) {
        match self.rare.take(number) {
            None => {}
            Some(Rare::Trained { cable, incarnation }) => self.trained(cable, incarnation),
            Some(Rare::Noticed { cable, side, life }) => self.noticed(cable, side, life),
            Some(Rare::Attach { program, incarnation }) => self.attach_program(program, incarnation),
            Some(Rare::PortTo { program, incarnation, up }) => {
                self.tell_program_of_port(program, incarnation, up);
            }
            Some(Rare::Fault(fault)) => {
                self.faults_pending -= 1;
                self.apply(fault);
            }
            Some(Rare::LoseGuid2Lid) => self.set_guid2lid(GuidToLid::default()),
            Some(Rare::Change(change)) => {
                self.faults_pending -= 1;
                self.change(change);
            }
            Some(Rare::ToLoad(port, what)) if self.device(port.node).is_some() => {
                self.for_load.push_back((port, what));
                self.go_on(port.node);
            }
            Some(Rare::ToLoad(..)) => {}
            Some(Rare::GoOn(node)) => self.node_goes_on(node),
            Some(Rare::Vm { life, news }) => self.vm_news(life, *news),
            Some(Rare::Command(port, command)) => {
                self.command(port, *command);
            }
        }
    }

    fn push_rare(&mut self, at: Time, rare: Rare) {
        let number = self.rare.put(rare);
        self.queue.push(at, Event::Rare(number));
    }

    fn device_event(&mut self, node: NodeIndex, event: DeviceEvent) {
        self.tell_of_lid(node, &event);
        if matches!(
            event,
            DeviceEvent::PortStateChanged { .. }
                | DeviceEvent::LidChanged { .. }
                | DeviceEvent::ForwardingTableWritten { .. }
                | DeviceEvent::LinkMismatch { .. }
        ) {
            self.disturb();
        }
        if self.trace.is_on() {
            let id = &self.fabric.node(node).id;
            self.trace.line(self.now, "event", format_args!("{id:<24}"), format_args!("{event:?}"));
        }
    }
}

impl fmt::Debug for Simulation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Simulation")
            .field("now", &self.now)
            .field("nodes", &self.slots.len())
            .field("statistics", &self.statistics)
            .finish_non_exhaustive()
    }
}

/// The port of a switch that programs attach to.
pub(crate) const PORT_ZERO: PortNum = PortNum::ZERO;

/// Where managers sit, by their numbers.
fn attachments(fabric: &Fabric, options: &SimOptions) -> Vec<Attachment> {
    // The performance manager's is not the subnet manager's, if there are two hosts.
    let first = [
        options.sm_port.or_else(|| fabric.attach_place()),
        options.pm_port.or_else(|| fabric.seats().last()),
    ];
    let standbys = (0..STANDBYS_MAX).map(|number| options.standbys.get(number).map(|standby| standby.port));
    let vmm = options.vmm_port.or_else(|| vmm_port(options)).or(first[0]);
    let ports = first.into_iter().chain(standbys).chain([vmm]);
    ports.map(|port| Attachment::new(port.unwrap_or(PortRef::new(NodeIndex(0), PORT_ZERO)))).collect()
}

/// The default port of the VM manager: a physical function's.
fn vmm_port(options: &SimOptions) -> Option<PortRef> {
    let taken = options.sm_port.map(|port| port.node);
    let pf = seat_beside(&options.adapters, taken).or_else(|| seat_beside(&options.adapters, None))?;
    Some(PortRef::new(pf, PortNum(1)))
}
