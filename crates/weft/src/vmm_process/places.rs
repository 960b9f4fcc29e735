//! The slots of the laboratory: which host and virtual function each is, and where it is cabled.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use weft_vm::{Adapter, HostName, Slot};
use weft_wire::{Guid, PortNum};

/// A host with slots.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct HostPart {
    /// What virtual machines' manager calls it.
    pub(crate) name: HostName,
    /// Its agent.
    pub(crate) agent: String,
    /// Its physical function.
    pub(crate) adapter: Adapter,
    /// The NodeGUID of its vSwitch.
    pub(crate) vswitch: Guid,
    /// Its slots; the first is virtual function 1.
    pub(crate) slots: Vec<SlotPart>,
}

/// A slot.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SlotPart {
    /// The NodeGUID that it begins with: its name for good.
    pub(crate) guid: Guid,
    /// The GUID of its port then.
    pub(crate) port_guid: Guid,
    /// Its description then.
    pub(crate) description: String,
    /// The vSwitch's port that leads to it.
    pub(crate) port: PortNum,
}

/// A place as the subnet manager names it: a port of a vSwitch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Cabled {
    pub(super) vswitch: Guid,
    pub(super) port: PortNum,
}

/// All slots.
#[derive(Clone, Debug, Default)]
pub(super) struct Places {
    hosts: BTreeMap<HostName, HostPart>,
    by_guid: BTreeMap<Guid, Slot>,
}

impl Places {
    pub(super) fn new(hosts: Vec<HostPart>) -> Self {
        let slots = hosts.iter().flat_map(|host| {
            let slots = host.slots.iter().zip(1..);
            slots.map(|(part, vf)| (part.guid, Slot { host: host.name.clone(), vf }))
        });
        let by_guid = slots.collect();
        Self { hosts: hosts.into_iter().map(|host| (host.name.clone(), host)).collect(), by_guid }
    }

    pub(super) fn hosts(&self) -> impl Iterator<Item = &HostPart> {
        self.hosts.values()
    }

    pub(super) fn part(&self, slot: &Slot) -> Option<&SlotPart> {
        self.hosts.get(&slot.host)?.slots.get(usize::from(slot.vf.checked_sub(1)?))
    }

    /// The slot with the NodeGUID that it begins with.
    pub(super) fn slot(&self, guid: Guid) -> Option<&Slot> {
        self.by_guid.get(&guid)
    }

    /// Where a slot is cabled.
    pub(super) fn cabled(&self, slot: &Slot) -> Option<Cabled> {
        let vswitch = self.hosts.get(&slot.host)?.vswitch;
        Some(Cabled { vswitch, port: self.part(slot)?.port })
    }

    /// The description that a function's identity has, if it is of a slot.
    pub(super) fn description(&self, node_guid: Guid) -> Option<&str> {
        Some(&self.part(self.slot(node_guid)?)?.description)
    }
}
