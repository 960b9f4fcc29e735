//! The processes of agents: which devices each has, what it was asked, and when it wants to be woken.

mod identities;
mod ledger;

use std::collections::BTreeMap;

use weft_device::Device;
use weft_machine::Time;
use weft_node::{DeviceId, Node, NodeOptions, PortId, RequestId, SlotStatus};
use weft_topology::{Adapter, NodeIndex, PortRef};
use weft_wire::PortNum;

use crate::SimOptions;
use crate::clock::{Clock, Event};
use identities::Identities;
pub use ledger::Requests;
pub(crate) use ledger::{Asked, Ledger};

/// No wake-up is under way.
const ASLEEP: Time = Time::from_nanos(u64::MAX);

/// The port of a virtual function.
const FUNCTION_PORT: PortNum = PortNum(1);

/// No device's name.
pub(crate) const NOT_THERE: DeviceId = DeviceId(u32::MAX);

/// A node's process, or the place where it was. It stands at the place of its first device.
#[derive(Debug, Default)]
struct Slot {
    node: Option<Box<Node>>,
    /// Whether it is yet to go on with a drain that ended at its bound.
    goes_on: bool,
}

/// Where a device is.
#[derive(Clone, Copy, Debug)]
struct DeviceSlot {
    /// Its node.
    home: NodeIndex,
    /// Its name there; [`NOT_THERE`] when it is off.
    device: DeviceId,
    /// Whether it is a slot of virtual machines.
    is_function: bool,
}

/// What its operator knows of a device.
#[derive(Clone, Copy, Debug)]
struct Tenant {
    /// Whether its node has it when it is on.
    present: bool,
    /// How often it was switched on again.
    incarnation: u64,
}

/// All nodes of a fabric, those that are off too.
#[derive(Debug)]
pub(crate) struct Nodes {
    slots: Vec<Slot>,
    /// Where each device is, and what its operator knows of it.
    devices: Vec<DeviceSlot>,
    tenants: Vec<Tenant>,
    /// By the node that they are in, the devices of nodes that have several.
    shared: BTreeMap<NodeIndex, Vec<NodeIndex>>,
    /// When the wake-up of each node is under way.
    wakes: Vec<Time>,
    /// What nodes were asked.
    pub(crate) ledger: Ledger,
    /// Nodes that do not answer, and how many faults have it so.
    frozen: BTreeMap<NodeIndex, u32>,
    /// The highest generation of a VM manager that each agent has heard of.
    generations: BTreeMap<NodeIndex, u64>,
    identities: Identities,
}

impl Nodes {
    /// The places of `count` devices, as the options put them into nodes; all are off.
    pub(crate) fn new(count: usize, options: &SimOptions) -> Self {
        let devices = device_slots(count, options);
        Self {
            slots: std::iter::repeat_with(Slot::default).take(count).collect(),
            shared: shared_nodes(&devices),
            devices,
            tenants: vec![Tenant { present: true, incarnation: 0 }; count],
            wakes: vec![ASLEEP; count],
            ledger: Ledger::default(),
            frozen: BTreeMap::new(),
            generations: BTreeMap::new(),
            identities: Identities::default(),
        }
    }

    /// The node that a device is in, or was.
    #[inline]
    pub(crate) fn home(&self, node: NodeIndex) -> NodeIndex {
        self.devices.get(node.index()).map_or(node, |place| place.home)
    }

    /// The places of all nodes, each of which is that of its first device.
    pub(crate) fn homes(&self) -> Vec<NodeIndex> {
        let places = self.devices.iter().zip(0..);
        places.filter(|(place, number)| place.home.0 == *number).map(|(place, _)| place.home).collect()
    }

    /// A port as its node names it.
    #[inline]
    pub(crate) fn at(&self, port: PortRef) -> PortId {
        PortId::new(self.name_of(port.node), port.port)
    }

    /// A device as its node names it; [`NOT_THERE`] when it is off.
    #[inline]
    pub(crate) fn name_of(&self, node: NodeIndex) -> DeviceId {
        self.devices.get(node.index()).map_or(NOT_THERE, |place| place.device)
    }

    /// The device that a node names so.
    #[inline]
    pub(crate) fn member(&self, home: NodeIndex, device: DeviceId) -> NodeIndex {
        if self.shared.is_empty() {
            return home;
        }
        let mut members = self.shared.get(&home).into_iter().flatten();
        let is_it = |member: &&NodeIndex| self.devices[member.index()].device == device;
        members.find(is_it).copied().unwrap_or(home)
    }

    /// A node's port, as the fabric names it.
    #[inline]
    pub(crate) fn port_of(&self, home: NodeIndex, at: PortId) -> PortRef {
        PortRef::new(self.member(home, at.device), at.port)
    }

    /// All devices of a node, also those that are off.
    pub(crate) fn members(&self, home: NodeIndex) -> Vec<NodeIndex> {
        self.shared.get(&home).cloned().unwrap_or_else(|| vec![home])
    }

    /// The node that a device is in, if it is on.
    pub(crate) fn get(&self, node: NodeIndex) -> Option<&Node> {
        self.slots.get(self.home(node).index())?.node.as_deref()
    }

    /// A device, if it is on.
    #[inline]
    pub(crate) fn device(&self, node: NodeIndex) -> Option<&Device> {
        let place = self.devices.get(node.index())?;
        self.slots.get(place.home.index())?.node.as_ref()?.device(place.device)
    }

    /// The nodes that are on.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Node> {
        self.slots.iter().filter_map(|slot| slot.node.as_deref())
    }

    /// The devices that are on.
    pub(crate) fn devices(&self) -> impl Iterator<Item = &Device> {
        self.iter().flat_map(|node| node.devices().map(|(_, device)| device))
    }

    /// The number of places for nodes.
    pub(crate) fn count(&self) -> usize {
        self.slots.len()
    }

    /// Takes a node that is on out of its place, to be given something. [`put_back`](Self::put_back) it.
    #[inline]
    pub(crate) fn take(&mut self, home: NodeIndex) -> Option<Box<Node>> {
        self.slots.get_mut(home.index())?.node.take()
    }

    #[inline]
    pub(crate) fn put_back(&mut self, home: NodeIndex, node: Box<Node>) {
        self.slots[home.index()].node = Some(node);
    }

    /// A node's process begins, without devices. False when there is no such place.
    pub(crate) fn begin(&mut self, home: NodeIndex, options: NodeOptions) -> bool {
        let Some(slot) = self.slots.get_mut(home.index()) else { return false };
        slot.node = Some(Box::new(Node::new(options)));
        true
    }

    /// A node's process ends, with all its devices; `None` when it is off.
    pub(crate) fn end(&mut self, home: NodeIndex) -> Option<Box<Node>> {
        let node = self.take(home)?;
        self.ledger.forget(home);
        self.wakes[home.index()] = ASLEEP;
        for member in self.members(home) {
            self.devices[member.index()].device = NOT_THERE;
        }
        Some(node)
    }

    /// Sees to it that a node is woken when it wants to be.
    #[inline(always)]
    pub(crate) fn wake_at(&mut self, home: NodeIndex, due: Option<Time>, clock: &mut Clock) {
        let wake = &mut self.wakes[home.index()];
        if let Some(due) = due.map(|due| due.max(clock.now())).filter(|due| due < wake) {
            *wake = due;
            clock.push(due, Event::WakeNode(home));
        }
    }

    /// A wake-up has come. Whether it is meant: of several that were asked for only the earliest is.
    pub(crate) fn wakes(&mut self, home: NodeIndex, now: Time) -> bool {
        let Some(wake) = self.wakes.get_mut(home.index()).filter(|wake| **wake == now) else { return false };
        *wake = ASLEEP;
        true
    }

    /// A node is to go on with a drain that ended at its bound. Whether that is news.
    pub(crate) fn pause(&mut self, home: NodeIndex) -> bool {
        !std::mem::replace(&mut self.slots[home.index()].goes_on, true)
    }

    /// It goes on.
    pub(crate) fn go_on(&mut self, home: NodeIndex) {
        self.slots[home.index()].goes_on = false;
    }

    /// A request to the node of a device: its id.
    pub(crate) fn ask(&mut self, node: NodeIndex, asked: Asked) -> RequestId {
        self.ledger.ask(self.home(node), asked)
    }

    /// Whether its operator has put a device into its node.
    pub(crate) fn is_present(&self, node: NodeIndex) -> bool {
        self.tenants[node.index()].present
    }

    /// An operator takes a device out of its node. Whether it was there.
    pub(crate) fn remove(&mut self, node: NodeIndex) -> bool {
        let tenant = self.tenants.get_mut(node.index()).filter(|tenant| tenant.present);
        tenant.map(|tenant| tenant.present = false).is_some()
    }

    /// An operator puts a device back into its node. Whether it was not there.
    pub(crate) fn add(&mut self, node: NodeIndex) -> bool {
        let Some(tenant) = self.tenants.get_mut(node.index()).filter(|tenant| !tenant.present) else {
            return false;
        };
        (tenant.present, tenant.incarnation) = (true, tenant.incarnation + 1);
        true
    }

    /// How often a device was switched on again.
    pub(crate) fn incarnation(&self, node: NodeIndex) -> u64 {
        self.tenants[node.index()].incarnation
    }

    /// A device is switched on again.
    pub(crate) fn restart(&mut self, node: NodeIndex) {
        self.tenants.get_mut(node.index()).into_iter().for_each(|tenant| tenant.incarnation += 1);
    }

    /// A device is in its node, under a name, or not any more.
    pub(crate) fn set_name(&mut self, node: NodeIndex, device: DeviceId) {
        self.devices[node.index()].device = device;
    }

    /// Whether a device is a slot of virtual machines.
    pub(crate) fn is_function(&self, node: NodeIndex) -> bool {
        self.devices[node.index()].is_function
    }

    /// The slot that a virtual function is, if its node is on.
    pub(crate) fn slot(&self, function: NodeIndex) -> Option<SlotStatus> {
        self.get(function)?.slot(self.at(PortRef::new(function, FUNCTION_PORT)).device)
    }

    /// Every slot that is on, and the function that it is.
    pub(crate) fn slots(&self) -> impl Iterator<Item = (NodeIndex, SlotStatus)> {
        let functions = self.devices.iter().zip(0..).filter(|(slot, _)| slot.is_function);
        functions.filter_map(|(_, number)| Some((NodeIndex(number), self.slot(NodeIndex(number))?)))
    }

    /// One more fault keeps a device from answering, or one less does. Whether any does now.
    pub(crate) fn freeze(&mut self, node: NodeIndex, frozen: bool) -> bool {
        let faults = self.frozen.entry(node).or_default();
        *faults = if frozen { *faults + 1 } else { faults.saturating_sub(1) };
        let frozen = *faults > 0;
        if !frozen {
            self.frozen.remove(&node);
        }
        frozen
    }

    pub(crate) fn is_frozen(&self, node: NodeIndex) -> bool {
        self.frozen.contains_key(&node)
    }

    /// The highest generation of a VM manager that an agent has heard of.
    pub(crate) fn generation(&self, home: NodeIndex) -> u64 {
        self.generations.get(&home).copied().unwrap_or(0)
    }

    /// An agent hears of a generation.
    pub(crate) fn hear_generation(&mut self, home: NodeIndex, generation: u64) {
        let known = self.generations.entry(home).or_default();
        *known = generation.max(*known);
    }

    /// An agent's process has ended.
    pub(crate) fn forget_generation(&mut self, home: NodeIndex) {
        self.generations.remove(&home);
    }
}

/// The places of `count` devices, as the options put them into nodes.
fn device_slots(count: usize, options: &SimOptions) -> Vec<DeviceSlot> {
    let home = |number: usize| NodeIndex((number - number % options.pack.max(1)) as u32);
    let slot = |number| DeviceSlot { home: home(number), device: NOT_THERE, is_function: false };
    let mut slots: Vec<_> = (0..count).map(slot).collect();
    for Adapter { vswitch, pf, vfs } in &options.adapters {
        let parts = || vfs.iter().chain([vswitch, pf]).filter(|part| part.index() < count);
        let Some(home) = parts().min() else { continue };
        parts().for_each(|part| slots[part.index()].home = *home);
        vfs.iter().filter(|vf| vf.index() < count).for_each(|vf| slots[vf.index()].is_function = true);
    }
    slots
}

/// By the node that they are in, the devices of nodes that have several.
fn shared_nodes(slots: &[DeviceSlot]) -> BTreeMap<NodeIndex, Vec<NodeIndex>> {
    let mut members: BTreeMap<NodeIndex, Vec<NodeIndex>> = BTreeMap::new();
    for (slot, number) in slots.iter().zip(0..) {
        members.entry(slot.home).or_default().push(NodeIndex(number));
    }
    members.retain(|_, members| members.len() > 1);
    members
}
