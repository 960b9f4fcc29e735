//! Where devices are: in which node, under which name there.

use std::collections::BTreeMap;

use weft_device::Device;
use weft_node::{DeviceId, Node, PortId};
use weft_topology::{Adapter, NodeIndex, PortRef};

use super::Simulation;
use crate::SimOptions;

/// A node's process, or the place where it was. It stands at the place of its first device.
#[derive(Debug)]
pub(super) struct Slot {
    pub(super) node: Option<Box<Node>>,
    /// Whether it will be told to go on with a drain that ended at its bound.
    pub(super) goes_on: bool,
}

/// Where a device is.
#[derive(Clone, Copy, Debug)]
pub(super) struct DeviceSlot {
    /// Its node.
    pub(super) home: NodeIndex,
    /// Its name there; [`NOT_THERE`] when it is off.
    pub(super) device: DeviceId,
    /// Whether it is a slot of virtual machines.
    pub(super) is_function: bool,
}

/// What its operator knows of a device.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tenant {
    /// Whether its node has it when it is on.
    pub(super) present: bool,
    /// How often it was switched on again.
    pub(super) incarnation: u64,
}

/// No device's name.
pub(super) const NOT_THERE: DeviceId = DeviceId(u32::MAX);

/// The places of `count` devices, as the options put them into nodes.
pub(super) fn device_slots(count: usize, options: &SimOptions) -> Vec<DeviceSlot> {
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
pub(super) fn shared_nodes(slots: &[DeviceSlot]) -> BTreeMap<NodeIndex, Vec<NodeIndex>> {
    let mut members: BTreeMap<NodeIndex, Vec<NodeIndex>> = BTreeMap::new();
    for (slot, number) in slots.iter().zip(0..) {
        members.entry(slot.home).or_default().push(NodeIndex(number));
    }
    members.retain(|_, members| members.len() > 1);
    members
}

impl Simulation {
    /// The node that a device is in, or was.
    #[inline]
    pub(super) fn home(&self, node: NodeIndex) -> NodeIndex {
        self.device_slots.get(node.index()).map_or(node, |place| place.home)
    }

    /// A port as its node names it.
    #[inline]
    pub(super) fn at(&self, port: PortRef) -> PortId {
        let device = self.device_slots.get(port.node.index()).map_or(NOT_THERE, |place| place.device);
        PortId::new(device, port.port)
    }

    /// The device that a node names so.
    #[inline]
    pub(super) fn member(&self, home: NodeIndex, device: DeviceId) -> NodeIndex {
        if self.shared_nodes.is_empty() {
            return home;
        }
        let mut members = self.shared_nodes.get(&home).into_iter().flatten();
        let is_it = |member: &&NodeIndex| self.device_slots[member.index()].device == device;
        members.find(is_it).copied().unwrap_or(home)
    }

    /// A node's port, as the fabric names it.
    #[inline]
    pub(super) fn port_of(&self, home: NodeIndex, at: PortId) -> PortRef {
        PortRef::new(self.member(home, at.device), at.port)
    }

    /// All devices of a node, also those that are off.
    pub(super) fn members(&self, home: NodeIndex) -> Vec<NodeIndex> {
        self.shared_nodes.get(&home).cloned().unwrap_or_else(|| vec![home])
    }

    /// The node that a device is in, if it is on.
    pub fn node(&self, node: NodeIndex) -> Option<&Node> {
        self.slots.get(self.home(node).index())?.node.as_deref()
    }

    /// A device, if it is on.
    #[inline]
    pub fn device(&self, node: NodeIndex) -> Option<&Device> {
        let place = self.device_slots.get(node.index())?;
        self.slots.get(place.home.index())?.node.as_ref()?.device(place.device)
    }

    /// The nodes that are on.
    pub(crate) fn nodes(&self) -> impl Iterator<Item = &Node> {
        self.slots.iter().filter_map(|slot| slot.node.as_deref())
    }

    pub(super) fn devices(&self) -> impl Iterator<Item = &Device> {
        self.nodes().flat_map(|node| node.devices().map(|(_, device)| device))
    }
}
