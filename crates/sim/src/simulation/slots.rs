//! Where devices are: in which node, under which name there.

use weft_device::Device;
use weft_node::{DeviceId, Node, PortId};
use weft_topology::{NodeIndex, PortRef};

use super::Simulation;

/// A node's process, or the place where it was. It stands at the place of its first device.
#[derive(Debug)]
pub(super) struct Slot {
    pub(super) node: Option<Box<Node>>,
}

/// Where a device is.
#[derive(Clone, Copy, Debug)]
pub(super) struct DeviceSlot {
    /// Its node.
    pub(super) home: NodeIndex,
    /// Its name there; [`NOT_THERE`] when it is off.
    pub(super) device: DeviceId,
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

/// The places of `count` devices, `pack` to a node.
pub(super) fn device_slots(count: usize, pack: usize) -> Vec<DeviceSlot> {
    let home = |number: usize| NodeIndex((number - number % pack.max(1)) as u32);
    (0..count).map(|number| DeviceSlot { home: home(number), device: NOT_THERE }).collect()
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
        if self.options.pack <= 1 {
            return home;
        }
        let mut members = self.members(home);
        members.find(|member| self.device_slots[member.index()].device == device).unwrap_or(home)
    }

    /// A node's port, as the fabric names it.
    #[inline]
    pub(super) fn port_of(&self, home: NodeIndex, at: PortId) -> PortRef {
        PortRef::new(self.member(home, at.device), at.port)
    }

    /// All devices of a node, also those that are off.
    pub(super) fn members(&self, home: NodeIndex) -> impl Iterator<Item = NodeIndex> + use<> {
        let end = (home.index() + self.options.pack.max(1)).min(self.device_slots.len());
        (home.0..end as u32).map(NodeIndex)
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
