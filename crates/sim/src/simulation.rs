//! The driver: takes what happens next, feeds the machine that it happens to, and puts what the machine wants
//! into the queue.

mod links;
mod manager;

use std::fmt;

use rand::SeedableRng;
use rand_pcg::Pcg64;
use serde::Serialize;
use weft_device::{ClientId, Device, Event as DeviceEvent, Input, Output};
use weft_machine::{Machine, Time};
use weft_sm::GuidToLid;
use weft_topology::{Fabric, NodeIndex, PortRef};
use weft_wire::{AddressedMad, FlowControl, Packet, PortNum, VirtualLane};

use crate::cable::{Cabling, Link};
use crate::queue::Queue;
use crate::rule::below;
use crate::trace::Fnv;
use crate::{Fault, Rule, SimOptions, Trace, Verdict, device_config};
use manager::Manager;

/// Something that is going to happen.
#[derive(Debug)]
pub(crate) enum Happening {
    /// A packet reaches the end of a cable.
    Arrive { cable: usize, side: usize, incarnation: u64, packet: Packet },
    /// What an end tells of its buffer reaches the other.
    Credit { cable: usize, side: usize, incarnation: u64, flow_control: FlowControl },
    /// A link has trained.
    Trained { cable: usize, incarnation: u64 },
    /// An end notices that its link is gone.
    Noticed { cable: usize, side: usize },
    /// A device wants to be woken.
    WakeDevice(NodeIndex),
    /// The subnet manager wants to be woken.
    WakeSm,
    /// The subnet manager's process is there and attaches itself.
    AttachSm { incarnation: u64 },
    /// A MAD reaches the subnet manager.
    ToSm { incarnation: u64, mad: Box<AddressedMad> },
    /// The subnet manager is told of its port's link.
    PortToSm { incarnation: u64, up: bool },
    /// A MAD of the subnet manager's reaches its device.
    FromSm { incarnation: u64, mad: Box<AddressedMad> },
    /// A fault.
    Fault(Fault),
}

/// A device, or the place where one was.
#[derive(Debug)]
struct Slot {
    device: Option<Device>,
    /// How often it was switched on again.
    incarnation: u64,
    /// When a wake-up is under way.
    wake: Option<Time>,
}

/// How much there was to do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct SimStatistics {
    /// Things that happened.
    pub happenings: u64,
    /// Packets that went into a cable.
    pub packets: u64,
    /// Packets that a rule lost.
    pub lost: u64,
    /// Packets that a rule delayed.
    pub delayed: u64,
    /// Packets that a link took with it when it went.
    pub cut_off: u64,
    /// How often an end was told that its link had gone.
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
    /// When something last changed.
    pub disturbed_at: Time,
}

impl fmt::Display for NotQuiet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { at, activity, disturbed_at } = self;
        write!(f, "not quiet at {at}: the manager is {activity:?}, the last change was at {disturbed_at}")
    }
}

impl std::error::Error for NotQuiet {}

/// A fabric in virtual time.
pub struct Simulation {
    pub(crate) fabric: Fabric,
    options: SimOptions,
    now: Time,
    queue: Queue<Happening>,
    random: Pcg64,
    slots: Vec<Slot>,
    pub(crate) cabling: Cabling,
    manager: Manager,
    rule: Option<Box<dyn Rule>>,
    /// MADs delivered to programs other than the subnet manager.
    pub(crate) delivered: Vec<(NodeIndex, ClientId, AddressedMad)>,
    faults_pending: usize,
    disturbed_at: Time,
    /// Light sweeps that found nothing since the last disturbance.
    quiet_sweeps: u32,
    statistics: SimStatistics,
    trace: Trace,
}

/// Attachments of the subnet manager have numbers up to this, each a new one, so that a late answer to one that
/// has ended is nobody's. Numbers beyond are the checkers'.
pub(crate) const SM_CLIENTS: u16 = 0xf000;

impl Simulation {
    /// A fabric whose devices are switched on at time zero. The seed decides every delay and chance.
    pub fn new(fabric: &Fabric, options: SimOptions, seed: u64) -> Self {
        let slots = fabric.iter().map(|(index, _)| {
            let device = Device::new(&device_config(fabric, index, &options.device));
            Slot { device: Some(device), incarnation: 0, wake: None }
        });
        let mut simulation = Self {
            slots: slots.collect(),
            fabric: fabric.clone(),
            now: Time::ZERO,
            queue: Queue::new(),
            random: Pcg64::seed_from_u64(seed),
            cabling: Cabling::new(fabric),
            manager: Manager::new(fabric, options.sm_port),
            rule: None,
            delivered: Vec::new(),
            faults_pending: 0,
            disturbed_at: Time::ZERO,
            quiet_sweeps: 0,
            statistics: SimStatistics::default(),
            trace: Trace::new(options.trace),
            options,
        };
        for cable in 0..simulation.cabling.cables.len() {
            simulation.update_link(cable);
        }
        if simulation.options.with_sm {
            let at = simulation.options.sm_start;
            simulation.start_sm(&GuidToLid::default(), at);
        }
        simulation
    }

    /// The time.
    pub fn now(&self) -> Time {
        self.now
    }

    /// What it is like.
    pub fn options(&self) -> &SimOptions {
        &self.options
    }

    /// The cabling that this began with.
    pub fn fabric(&self) -> &Fabric {
        &self.fabric
    }

    /// A device, if it is on.
    pub fn device(&self, node: NodeIndex) -> Option<&Device> {
        self.slots.get(node.index())?.device.as_ref()
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
        self.queue.push(at.max(self.now), Happening::Fault(fault));
    }

    /// Whether the cable in `port` has a link.
    pub fn is_link_up(&self, port: PortRef) -> bool {
        self.cabling.find(port).is_some_and(|(cable, _)| self.cabling.cables[cable].link == Link::Up)
    }

    /// LFT blocks written in all switches that are on.
    pub fn lft_writes(&self) -> u64 {
        self.slots.iter().filter_map(|slot| slot.device.as_ref()).map(|d| d.statistics().lft_writes).sum()
    }

    /// SMPs that found the buffers full of devices that are on.
    pub fn vl15_dropped(&self) -> u64 {
        let full = |device: &Device| device.statistics().dropped(weft_device::DropReason::Vl15Full);
        self.slots.iter().filter_map(|slot| slot.device.as_ref()).map(full).sum()
    }

    /// LIDs changed in all devices that are on.
    pub fn lid_changes(&self) -> u64 {
        self.slots.iter().filter_map(|slot| slot.device.as_ref()).map(|d| d.statistics().lid_changes).sum()
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
                return Err(NotQuiet { at: self.now, activity, disturbed_at: self.disturbed_at });
            }
        }
    }

    fn is_quiet(&self) -> bool {
        if self.faults_pending > 0 || self.now < self.options.sm_start {
            return false;
        }
        let rest = self.now.saturating_sub(self.disturbed_at);
        let Some(sm) = self.sm() else { return rest > self.options.link_timeout + Time::from_secs(1) };
        let progress = sm.progress();
        match progress.activity {
            weft_sm::Activity::Up if progress.audit_pending => false,
            weft_sm::Activity::Up if self.options.sm.sweep_interval_ms > 0 => self.quiet_sweeps >= 2,
            weft_sm::Activity::Up => rest > self.options.link_timeout + Time::from_secs(1),
            weft_sm::Activity::OwnPortDown => rest > self.options.link_timeout + Time::from_secs(10),
            _ => false,
        }
    }

    /// The next thing happens, if it does so by `limit`.
    pub(crate) fn step(&mut self, limit: Time) -> bool {
        let Some((at, happening)) = self.queue.pop_until(limit) else { return false };
        self.now = at;
        self.statistics.happenings += 1;
        match happening {
            Happening::Arrive { cable, side, incarnation, packet } => {
                self.arrive(cable, side, incarnation, packet);
            }
            Happening::Credit { cable, side, incarnation, flow_control } => {
                let cable = &self.cabling.cables[cable];
                if cable.incarnation == incarnation && cable.link == Link::Up {
                    let PortRef { node, port } = cable.ends[side];
                    self.feed(node, Input::Credit { port, flow_control });
                }
            }
            Happening::Trained { cable, incarnation } => self.trained(cable, incarnation),
            Happening::Noticed { cable, side } => self.noticed(cable, side),
            Happening::WakeDevice(node) => self.wake_device(node),
            Happening::WakeSm => self.wake_sm(),
            Happening::AttachSm { incarnation } => self.attach_sm(incarnation),
            Happening::ToSm { incarnation, mad } => self.give_sm(incarnation, *mad),
            Happening::PortToSm { incarnation, up } => self.tell_sm_of_port(incarnation, up),
            Happening::FromSm { incarnation, mad } => self.take_from_sm(incarnation, *mad),
            Happening::Fault(fault) => {
                self.faults_pending -= 1;
                self.apply(fault);
            }
        }
        true
    }

    /// Something changed; what was known to be quiet is not any more.
    pub(crate) fn disturb(&mut self) {
        self.disturbed_at = self.now;
        self.quiet_sweeps = 0;
    }

    /// Something goes wrong, or is put right, now.
    pub fn apply(&mut self, fault: Fault) {
        self.disturb();
        if self.trace.is_on() {
            self.trace.line(self.now, "fault", format_args!("-"), format_args!("{fault:?}"));
        }
        match fault {
            Fault::Kill(node) => self.kill(node),
            Fault::Restart(node) => {
                self.kill(node);
                self.switch_on(node);
            }
            Fault::Cut(port) => self.set_whole(port, false),
            Fault::Restore(port) => self.set_whole(port, true),
            Fault::KillSm => self.kill_sm(),
            Fault::StartSm { with_guid2lid } => {
                self.kill_sm();
                let known = if with_guid2lid { self.manager.persisted.clone() } else { GuidToLid::default() };
                self.start_sm(&known, self.now);
            }
        }
    }

    fn kill(&mut self, node: NodeIndex) {
        let Some(slot) = self.slots.get_mut(node.index()) else { return };
        if slot.device.take().is_none() {
            return;
        }
        slot.wake = None;
        for cable in self.cabling.of_node(node) {
            self.reset_end(cable, node);
            self.update_link(cable);
        }
        if self.manager.port.node == node {
            self.detach_sm();
        }
    }

    fn switch_on(&mut self, node: NodeIndex) {
        let Some(slot) = self.slots.get_mut(node.index()) else { return };
        slot.incarnation += 1;
        let config = device_config(&self.fabric, node, &self.options.device);
        slot.device = Some(Device::new(&config).with_incarnation(slot.incarnation));
        for cable in self.cabling.of_node(node) {
            self.update_link(cable);
        }
        if self.manager.port.node == node {
            self.reattach_sm();
        }
    }

    /// Feeds a device and does what it wants.
    pub(crate) fn feed(&mut self, node: NodeIndex, input: Input) {
        let Some(device) = self.slots.get_mut(node.index()).and_then(|slot| slot.device.as_mut()) else {
            return;
        };
        device.handle_input(self.now, input);
        self.drain(node);
    }

    fn wake_device(&mut self, node: NodeIndex) {
        let Some(slot) = self.slots.get_mut(node.index()) else { return };
        // Of several wake-ups that were asked for only the earliest is meant.
        if slot.wake != Some(self.now) {
            return;
        }
        slot.wake = None;
        if let Some(device) = &mut slot.device {
            device.handle_timeout(self.now);
            self.drain(node);
        }
    }

    fn drain(&mut self, node: NodeIndex) {
        while let Some(output) = self.next_output(node) {
            match output {
                Output::Transmit { port, packet } => self.transmit(PortRef::new(node, port), packet),
                // The data path comes here.
                Output::Credit { port, flow_control } => {
                    self.send_credit(PortRef::new(node, port), flow_control);
                }
                Output::TransmitData { .. }
                | Output::Injected { .. }
                | Output::Accept { .. }
                | Output::HostPort { .. } => {}
                Output::Deliver { client, mad } => self.deliver(node, client, *mad),
                // The simulator's programs register for nothing after attaching.
                Output::Registered { .. } => {}
                Output::PortChanged { client, up } => self.port_changed(client, up),
                Output::SetLink { port, enabled, parameters } => {
                    self.set_link(PortRef::new(node, port), enabled, parameters);
                }
                Output::Event(event) => self.device_event(node, event),
            }
        }
        let Some(slot) = self.slots.get_mut(node.index()) else { return };
        let due = slot.device.as_ref().and_then(Machine::poll_timeout).map(|due| due.max(self.now));
        if let Some(due) = due.filter(|&due| slot.wake.is_none_or(|wake| due < wake)) {
            slot.wake = Some(due);
            self.queue.push(due, Happening::WakeDevice(node));
        }
    }

    fn next_output(&mut self, node: NodeIndex) -> Option<Output> {
        self.slots.get_mut(node.index())?.device.as_mut()?.poll_output()
    }

    fn device_event(&mut self, node: NodeIndex, event: DeviceEvent) {
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

    /// A packet goes into a cable.
    fn transmit(&mut self, from: PortRef, packet: Packet) {
        let up = self.cabling.find(from).filter(|&(cable, _)| self.cabling.cables[cable].link == Link::Up);
        let Some((cable, side)) = up else {
            // The device is told before it is asked for its next output, as it demands.
            if let Some(device) = self.slots.get_mut(from.node.index()).and_then(|s| s.device.as_mut()) {
                device.handle_input(self.now, Input::TransmitDropped { port: from.port });
            }
            return;
        };
        self.statistics.packets += 1;
        let mut at = self.now + self.options.link_delay;
        let is_management = packet.vl() == VirtualLane::MANAGEMENT;
        if is_management {
            at += below(&mut self.random, self.options.link_jitter);
        }
        let rule = self.rule.as_mut().filter(|rule| is_management || rule.judges_data());
        match rule.map_or(Verdict::Pass, |r| r.judge(self.now, from, &packet, &mut self.random)) {
            Verdict::Pass => {}
            Verdict::Delay(delay) => {
                self.statistics.delayed += 1;
                at += delay;
            }
            Verdict::Drop => {
                self.statistics.lost += 1;
                return self.trace_packet("lost", from, &packet);
            }
        }
        if !is_management {
            let last = &mut self.cabling.cables[cable].last_arrival[1 - side];
            at = at.max(*last);
            *last = at;
        }
        self.trace_packet("sent", from, &packet);
        let incarnation = self.cabling.cables[cable].incarnation;
        self.queue.push(at, Happening::Arrive { cable, side: 1 - side, incarnation, packet });
    }

    /// What an end tells of its buffer goes into a cable, in order with the packets of the data lanes.
    fn send_credit(&mut self, from: PortRef, flow_control: FlowControl) {
        let Some((cable, side)) = self.cabling.find(from) else { return };
        if self.cabling.cables[cable].link != Link::Up {
            return;
        }
        let last = &mut self.cabling.cables[cable].last_arrival[1 - side];
        *last = (*last).max(self.now + self.options.link_delay);
        let at = *last;
        let incarnation = self.cabling.cables[cable].incarnation;
        self.queue.push(at, Happening::Credit { cable, side: 1 - side, incarnation, flow_control });
    }

    fn arrive(&mut self, cable: usize, side: usize, incarnation: u64, packet: Packet) {
        let cable = &self.cabling.cables[cable];
        if cable.incarnation != incarnation || cable.link != Link::Up {
            self.statistics.cut_off += 1;
            return;
        }
        let PortRef { node, port } = cable.ends[side];
        self.feed(node, Input::Receive { port, packet });
    }

    fn trace_packet(&mut self, kind: &str, at: PortRef, packet: &Packet) {
        if !self.trace.is_on() {
            return;
        }
        let id = &self.fabric.node(at.node).id;
        let place = format_args!("{id:<20} {:>3}", at.port);
        // What the words leave out is in the hash, so that traces are the same only when all bytes are.
        let mut bytes = Fnv::default();
        bytes.add(packet.bytes());
        self.trace.line(self.now, kind, place, format_args!("{packet:?} {:016x}", bytes.0));
    }

    /// A program's port has a link or has none any more; checkers do not care.
    fn port_changed(&mut self, client: ClientId, up: bool) {
        if client.0 < SM_CLIENTS {
            let (incarnation, at) = (self.manager.attachment, self.now + self.options.attach_delay);
            self.queue.push(at, Happening::PortToSm { incarnation, up });
        }
    }

    /// A MAD for a program: the subnet manager, or one of a checker's.
    fn deliver(&mut self, node: NodeIndex, client: ClientId, mad: AddressedMad) {
        if client.0 < SM_CLIENTS {
            let incarnation = self.manager.attachment;
            let at = self.now + self.options.attach_delay;
            self.queue.push(at, Happening::ToSm { incarnation, mad: Box::new(mad) });
        } else {
            self.delivered.push((node, client, mad));
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
