//! The driver: takes what happens next, feeds the machine that it happens to, and puts what the machine wants
//! into the queue.

mod bugs;
mod changes;
mod feed;
mod hosts;
mod impaired;
mod links;
mod managers;
mod power;
mod programs;
mod slot_agent;
mod vms;

use std::fmt;

use weft_device::{Device, Event as DeviceEvent, PortSnapshot};
use weft_machine::{Machine, Time, Timer};
use weft_node::{Frame, Node};
use weft_sm::{GuidToLid, SmTimer, Summary};
use weft_topology::{Fabric, NodeIndex, PortRef};

use crate::cabling::{Cabling, Link};
use crate::clock::{Event, Rare};
use crate::managers::Managers;
use crate::nodes::Nodes;
use crate::programs::Programs;
use crate::turn::Turn;
use crate::world::World;
use crate::{Fault, Rule, SimOptions, SimStatistics, Trace};

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
    pub(crate) world: World,
    pub(crate) nodes: Nodes,
    turn: Turn,
    pub(crate) cabling: Cabling,
    pub(crate) programs: Programs,
    managers: Managers,
}

impl Simulation {
    /// A fabric whose devices are switched on at time zero. The seed decides every delay and chance.
    pub fn new(fabric: &Fabric, options: SimOptions, seed: u64) -> Self {
        let mut simulation = Self {
            nodes: Nodes::new(fabric.nodes().len(), &options),
            turn: Turn::default(),
            cabling: Cabling::new(fabric, &options),
            programs: Programs::new(fabric, &options),
            managers: Managers::new(fabric, &options, seed),
            world: World::new(fabric, options, seed),
        };
        simulation.begin_nodes();
        for cable in 0..simulation.cabling.cables.len() {
            simulation.update_link(cable);
        }
        simulation.begin_programs();
        simulation
    }

    fn begin_nodes(&mut self) {
        for cable in &mut self.cabling.cables {
            let [a, b] = cable.ends.map(|end| self.nodes.home(end.node));
            cable.inside = self.world.options.recabling && a == b;
        }
        self.nodes.homes().into_iter().for_each(|home| self.begin_node(home));
    }

    /// The time.
    pub fn now(&self) -> Time {
        self.world.clock.now()
    }

    /// What it is like.
    pub fn options(&self) -> &SimOptions {
        &self.world.options
    }

    /// The cabling: as this began, with what has changed since.
    pub fn fabric(&self) -> &Fabric {
        &self.world.fabric
    }

    /// How much there was to do.
    pub fn statistics(&self) -> SimStatistics {
        self.world.observers.statistics
    }

    /// What has happened.
    pub fn trace(&self) -> &Trace {
        &self.world.observers.trace
    }

    /// Decides what becomes of packets from now on.
    pub fn set_rule(&mut self, rule: impl Rule + 'static) {
        self.cabling.rule = Some(Box::new(rule));
    }

    /// Something goes wrong, or is put right, at some time.
    pub fn fault_at(&mut self, at: Time, fault: Fault) {
        self.world.clock.push_fault(at, Rare::Fault(fault));
    }

    /// The first subnet manager loses its `guid2lid` file at some time, and starts without one if it is restarted then.
    pub fn lose_guid2lid_at(&mut self, at: Time) {
        self.world.clock.push_rare(at.max(self.world.clock.now()), Rare::LoseGuid2Lid);
    }

    /// The recordings of the node that [`SimOptions::record`] names, one for each time that it was switched on; the last one ends
    /// now. `weft_node::recording` replays them.
    pub fn into_recordings(mut self) -> Vec<Vec<u8>> {
        self.world.observers.recordings.take().map(|recordings| recordings.take()).unwrap_or_default()
    }

    /// Whether the cable in `port` has a link.
    pub fn is_link_up(&self, port: PortRef) -> bool {
        self.cabling.find(port).is_some_and(|(cable, _)| match &self.cabling.cables[cable] {
            cable if cable.inside => {
                self.node(port.node).is_some_and(|node| node.is_link_up(self.nodes.at(port)))
            }
            cable => cable.link == Link::Up,
        })
    }

    /// The node that a device is in, if it is on.
    pub fn node(&self, node: NodeIndex) -> Option<&Node> {
        self.nodes.get(node)
    }

    /// A device, if it is on.
    #[inline]
    pub fn device(&self, node: NodeIndex) -> Option<&Device> {
        self.nodes.device(node)
    }

    /// A port of a device, if it is on.
    pub(crate) fn port(&self, at: PortRef) -> Option<PortSnapshot> {
        self.device(at.node)?.port_snapshot(at.port)
    }

    /// LFT blocks written in all switches that are on.
    pub fn lft_writes(&self) -> u64 {
        self.nodes.devices().map(|device| device.statistics().lft_writes).sum()
    }

    /// SMPs that found the buffers full of devices that are on.
    pub fn vl15_dropped(&self) -> u64 {
        let full = |device: &Device| device.statistics().dropped(weft_device::DropReason::Vl15Full);
        self.nodes.devices().map(full).sum()
    }

    /// LIDs changed in all devices that are on.
    pub fn lid_changes(&self) -> u64 {
        self.nodes.devices().map(|device| device.statistics().lid_changes).sum()
    }

    /// Lets everything happen until `limit`.
    pub fn run_until(&mut self, limit: Time) {
        while self.step(limit) {}
        self.world.clock.advance(limit);
    }

    /// Lets things happen until the fabric has come to rest: all faults are over, and the subnet manager has
    /// looked twice and found nothing to do.
    pub fn run_until_quiet(&mut self, limit: Time) -> Result<Time, NotQuiet> {
        while !self.is_quiet() {
            if !self.step(limit) {
                self.world.clock.advance(limit);
                break;
            }
        }
        let at = self.world.clock.now();
        if self.is_quiet() {
            return Ok(at);
        }
        let activity = self.sm().map(|sm| sm.progress().activity);
        let timer = self.sm().and_then(Machine::next_timer);
        Err(NotQuiet { at, activity, timer, disturbed_at: self.world.clock.disturbed_at })
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
        self.world.clock.advance(limit);
        None
    }

    fn is_quiet(&self) -> bool {
        if self.world.clock.faults_pending > 0 || self.world.clock.now() < self.world.options.sm_start {
            return false;
        }
        self.managers.are_at_rest(&self.programs, &self.world)
    }

    /// The next thing happens, if it does so by `limit`.
    pub(crate) fn step(&mut self, limit: Time) -> bool {
        let Some(event) = self.world.clock.next_until(limit) else { return false };
        self.world.observers.statistics.events += 1;
        match event {
            Event::Arrive(way) => {
                if let Some((to, frame)) = self.cabling.arrive(way) {
                    self.frame_arrives(to, frame);
                }
            }
            Event::WakeNode(node) => self.wake_node(node),
            Event::WakeProgram(program) => self.wake_program(program),
            Event::ArriveManagement(number) => {
                if let Some((to, packet)) = self.cabling.arrive_management(number, &mut self.world) {
                    self.frame_arrives(to, Frame::Packet(packet));
                }
            }
            Event::Mad(number) => self.mad_arrives(number),
            Event::Rare(number) => self.rare(number),
        }
        true
    }

    fn rare(&mut self, number: u32) {
        match self.world.clock.take_rare(number) {
            None => {}
            Some(Rare::Trained { cable, incarnation }) => self.trained(cable, incarnation),
            Some(Rare::Noticed { cable, side, life }) => self.noticed(cable, side, life),
            Some(Rare::Attach { program, incarnation }) => self.attach_program(program, incarnation),
            Some(Rare::PortTo { program, incarnation, up }) => {
                self.tell_program_of_port(program, incarnation, up);
            }
            Some(Rare::Fault(fault)) => self.apply(fault),
            Some(Rare::LoseGuid2Lid) => self.set_guid2lid(GuidToLid::default()),
            Some(Rare::Change(change)) => {
                self.change(change);
            }
            Some(Rare::ToLoad(port, what)) if self.device(port.node).is_some() => {
                self.turn.for_load.push_back((port, what));
                self.go_on(port.node);
            }
            Some(Rare::ToLoad(..)) => {}
            Some(Rare::GoOn(node)) => self.node_goes_on(node),
            Some(Rare::Vm { life, news }) => self.vm_news(life, *news),
        }
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
            self.world.clock.disturb();
        }
        self.world.trace_node("event", node, format_args!("{event:?}"));
    }
}

impl fmt::Debug for Simulation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Simulation")
            .field("now", &self.world.clock.now())
            .field("nodes", &self.nodes.count())
            .field("statistics", &self.world.observers.statistics)
            .finish_non_exhaustive()
    }
}
