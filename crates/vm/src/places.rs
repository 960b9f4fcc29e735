//! The slots of the laboratory: which host and virtual function each is, and where it is cabled.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use weft_topology::{Fabric, Node, NodeIndex};
use weft_wire::{Guid, Lid, PortNum};

use crate::agent::{Adapter, Occupant};
use crate::identity::PortIdentity;
use crate::names::{HostName, Slot};

/// A host with slots.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HostPart {
    /// What virtual machines' manager calls it.
    pub name: HostName,
    /// Its agent.
    pub agent: String,
    /// Its physical function.
    pub adapter: Adapter,
    /// The NodeGUID of its vSwitch.
    pub vswitch: Guid,
    /// Its slots; the first is virtual function 1.
    pub slots: Vec<SlotPart>,
}

/// A slot.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SlotPart {
    /// The NodeGUID that it begins with: its name for good.
    pub guid: Guid,
    /// The GUID of its port then.
    pub port_guid: Guid,
    /// Its description then.
    pub description: String,
    /// The vSwitch's port that leads to it.
    pub port: PortNum,
}

impl HostPart {
    /// The host of a virtualised adapter. It is called as `weft ps` calls its adapter, if that can be a name, or else by the
    /// adapter's id; of an adapter with several cabled ports the port is in the name: `host-1-p2`. `None` where its physical function is
    /// not plugged in.
    pub fn of(fabric: &Fabric, adapter: &weft_topology::Adapter, agent: &str) -> Option<Self> {
        let (pf, vswitch) = (fabric.node(adapter.pf), fabric.node(adapter.vswitch));
        let port_num = adapter.pf_port(fabric)?.port;
        let port = pf.cabled_ports().nth(1).map_or_else(String::new, |_| format!("-p{port_num}"));
        let names = [fabric.label(adapter.pf), pf.id.clone(), pf.guid.to_string()];
        let names = names.map(|name| name + &port);
        let slots = adapter.slots().map(|(at, function)| {
            let node = fabric.node(function.node);
            SlotPart {
                guid: node.guid,
                port_guid: node.port(function.port).map_or(node.guid, |port| port.guid),
                description: node.description.clone(),
                port: at.port,
            }
        });
        Some(Self {
            name: names.into_iter().find_map(|name| name.parse().ok())?,
            agent: agent.to_owned(),
            adapter: Adapter {
                description: pf.description.clone(),
                system_guid: pf.system_image_guid,
                port_guid: pf.port(port_num).map_or(pf.guid, |port| port.guid),
                port_num,
            },
            vswitch: vswitch.guid,
            slots: slots.collect(),
        })
    }
}

impl SlotPart {
    /// The identity that the slot begins with. Its LID is known while it is there: `held` is the identity that is.
    pub fn configured(&self, held: Option<&PortIdentity>) -> PortIdentity {
        let own = held.filter(|held| held.node_guid == self.guid);
        let lid = own.map_or(Lid(0), |own| own.lid);
        PortIdentity { node_guid: self.guid, port_guid: self.port_guid, lid }
    }
}

/// A place as the subnet manager names it: a port of a vSwitch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cabled {
    pub(crate) vswitch: Guid,
    pub(crate) port: PortNum,
}

/// All slots.
#[derive(Clone, Debug, Default)]
pub struct Places {
    hosts: BTreeMap<HostName, HostPart>,
    by_guid: BTreeMap<Guid, Slot>,
}

impl Places {
    /// The slots of these hosts.
    pub fn new(hosts: Vec<HostPart>) -> Self {
        let slots = hosts.iter().flat_map(|host| {
            let slots = host.slots.iter().zip(1..);
            slots.map(|(part, vf)| (part.guid, Slot { host: host.name.clone(), vf }))
        });
        let by_guid = slots.collect();
        Self { hosts: hosts.into_iter().map(|host| (host.name.clone(), host)).collect(), by_guid }
    }

    /// The hosts in order of their names.
    pub fn hosts(&self) -> impl Iterator<Item = &HostPart> {
        self.hosts.values()
    }

    /// A slot as its host's configuration has it.
    pub fn part(&self, slot: &Slot) -> Option<&SlotPart> {
        self.hosts.get(&slot.host)?.slots.get(usize::from(slot.vf.checked_sub(1)?))
    }

    /// The slot with the NodeGUID that it begins with.
    pub fn slot(&self, guid: Guid) -> Option<&Slot> {
        self.by_guid.get(&guid)
    }

    /// Where a slot is cabled.
    pub(crate) fn cabled(&self, slot: &Slot) -> Option<Cabled> {
        let vswitch = self.hosts.get(&slot.host)?.vswitch;
        Some(Cabled { vswitch, port: self.part(slot)?.port })
    }

    /// The description of a machine's function: the identity of a slot keeps its own, another one has the machine's name.
    pub fn describe(&self, occupant: &Occupant) -> String {
        let own = self.description(occupant.identity.port.node_guid);
        own.map_or_else(|| occupant.vm.to_string(), str::to_owned)
    }

    /// The description of a function without a machine.
    pub fn describe_spare(&self, port: &PortIdentity) -> String {
        self.description(port.node_guid).unwrap_or("spare function").to_owned()
    }

    fn description(&self, node_guid: Guid) -> Option<&str> {
        Some(&self.part(self.slot(node_guid)?)?.description)
    }
}

/// All GUIDs of a fabric: of nodes, ports and systems.
pub fn all_guids(fabric: &Fabric) -> Vec<Guid> {
    let of_node = |(_, node): (_, &Node)| {
        let ports: Vec<Guid> = node.end_ports().map(|(_, port)| port.guid).collect();
        ports.into_iter().chain([node.guid, node.system_image_guid])
    };
    let all = fabric.iter().flat_map(of_node).filter(|guid| *guid != Guid(0));
    all.collect::<BTreeSet<_>>().into_iter().collect()
}

/// The physical function where a VM manager sits: another one than the subnet manager's, if there is one.
pub fn seat_beside(
    adapters: &[weft_topology::Adapter],
    subnet_manager: Option<NodeIndex>,
) -> Option<NodeIndex> {
    adapters.iter().map(|adapter| adapter.pf).find(|pf| subnet_manager != Some(*pf))
}
