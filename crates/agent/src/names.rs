//! Names of the node's devices.

use std::collections::BTreeMap;

use weft_control::HexGuid;
use weft_control::agent::PortEnd;
use weft_device::DeviceConfig;
use weft_link::CableEnd;
use weft_node::{DeviceId, PortId, Refusal, VmIdentity};
use weft_umad::user_mad::CaAttributes;
use weft_wire::{Guid, NodeType, PortNum};

use crate::record::Who;

/// A device as programs and events know it.
#[derive(Debug)]
pub(crate) struct Named {
    pub(crate) who: Who,
    /// Its attributes as programs of libibumad see them.
    pub(crate) ca: CaAttributes,
    /// By port number; a switch's port 0 has its node's.
    port_guids: Vec<Guid>,
}

impl Named {
    pub(crate) fn new(config: &DeviceConfig) -> Self {
        let ports = config.ports.iter().map(|port| port.guid);
        Self {
            who: Who { guid: config.guid, description: config.description.clone(), is_slot: false },
            ca: ca_attributes(config),
            port_guids: std::iter::once(config.guid).chain(ports).collect(),
        }
    }

    /// The same device with another identity.
    pub(crate) fn renamed(&self, identity: &VmIdentity) -> Self {
        let ca = CaAttributes {
            node_guid: identity.guid,
            description: identity.description.clone(),
            ..self.ca.clone()
        };
        let port_guids = self.port_guids.iter().skip(1).map(|_| identity.port_guid);
        Self {
            who: Who {
                guid: identity.guid,
                description: identity.description.clone(),
                is_slot: self.who.is_slot,
            },
            ca,
            port_guids: std::iter::once(identity.guid).chain(port_guids).collect(),
        }
    }

    pub(crate) fn port_guid(&self, port: PortNum) -> Guid {
        self.port_guids.get(usize::from(port.0)).copied().unwrap_or(self.who.guid)
    }
}

/// A device's attributes for libibumad, which do not change.
fn ca_attributes(config: &DeviceConfig) -> CaAttributes {
    let is_switch = config.kind == NodeType::Switch;
    let last = u8::try_from(config.ports.len()).unwrap_or(u8::MAX);
    CaAttributes {
        node_guid: config.guid,
        system_image_guid: config.system_image_guid,
        node_type: config.kind,
        vendor_id: config.vendor_id,
        device_id: config.device_id,
        revision: 0,
        first_port: PortNum(u8::from(!is_switch)),
        last_port: PortNum(if is_switch { 0 } else { last }),
        description: config.description.clone(),
    }
}

/// All devices' names.
#[derive(Debug, Default)]
pub(crate) struct Names {
    /// By device; a node gives its devices consecutive numbers.
    named: Vec<Option<Named>>,
    by_guid: BTreeMap<Guid, DeviceId>,
    /// Slots of virtual machines by the GUIDs that they began with: they are found by these too.
    slots: BTreeMap<Guid, DeviceId>,
}

impl Names {
    pub(crate) fn add(&mut self, id: DeviceId, named: Named) {
        self.by_guid.insert(named.who.guid, id);
        let place = id.0 as usize;
        if self.named.len() <= place {
            self.named.resize_with(place + 1, || None);
        }
        self.named[place] = Some(named);
    }

    /// Makes a device a slot, whose GUID stays its name.
    pub(crate) fn add_slot(&mut self, guid: Guid) {
        let Some(device) = self.find(guid) else { return };
        self.slots.insert(guid, device);
        let named = self.named.get_mut(device.0 as usize).and_then(Option::as_mut);
        named.into_iter().for_each(|named| named.who.is_slot = true);
    }

    /// All slots, by the GUIDs that they began with.
    pub(crate) fn slots(&self) -> impl Iterator<Item = (Guid, DeviceId)> {
        self.slots.iter().map(|(guid, id)| (*guid, *id))
    }

    /// The slot that began with a GUID.
    pub(crate) fn slot(&self, guid: Guid) -> Option<DeviceId> {
        self.slots.get(&guid).copied()
    }

    /// The GUID that a slot's device has had from the start.
    pub(crate) fn slot_of(&self, device: DeviceId) -> Option<Guid> {
        self.slots().find(|(_, id)| *id == device).map(|(guid, _)| guid)
    }

    /// Another identity sits in a slot.
    pub(crate) fn rename(&mut self, id: DeviceId, identity: &VmIdentity) {
        let Some(named) = self.of(id) else { return };
        let (before, renamed) = (named.who.guid, named.renamed(identity));
        // Another slot may have the GUID by now.
        if self.find(before) == Some(id) {
            self.by_guid.remove(&before);
        }
        self.add(id, renamed);
    }

    #[inline]
    pub(crate) fn of(&self, id: DeviceId) -> Option<&Named> {
        self.named.get(id.0 as usize)?.as_ref()
    }

    pub(crate) fn find(&self, guid: Guid) -> Option<DeviceId> {
        self.by_guid.get(&guid).or_else(|| self.slots.get(&guid)).copied()
    }

    /// In order of GUIDs.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (Guid, DeviceId)> {
        self.by_guid.iter().map(|(guid, id)| (*guid, *id))
    }

    pub(crate) fn len(&self) -> usize {
        self.by_guid.len()
    }

    /// A port as messages name it.
    pub(crate) fn end(&self, at: PortId) -> PortEnd {
        let node = self.of(at.device).map_or(Guid(0), |named| named.who.guid);
        PortEnd { node: HexGuid(node), port: at.port }
    }

    /// A port as cables name it.
    pub(crate) fn cable_end(&self, at: PortId) -> CableEnd {
        let PortEnd { node, port } = self.end(at);
        CableEnd { guid: node.0, port }
    }

    /// A refusal in the words of whoever asked, who knows no device by its number here.
    pub(crate) fn explain(&self, refusal: &Refusal) -> String {
        let end = |at: PortId| self.end(at);
        match refusal {
            Refusal::NoHost(at) => {
                format!("there is no host behind port {} of node {}", at.port, end(*at).node)
            }
            Refusal::HostNotAttached(at) => {
                format!("the host behind port {} of node {} could not be attached", at.port, end(*at).node)
            }
            Refusal::NotCabled(at) | Refusal::NoSuchPort(at) => {
                format!("no cable at {}", self.cable_end(*at))
            }
            other => other.to_string(),
        }
    }
}
