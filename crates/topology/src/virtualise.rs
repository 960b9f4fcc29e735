//! Virtualised adapters: every HCA of a cabling becomes a vSwitch with a physical and several virtual functions behind it.
//!
//! ```text
//!   leaf ── host            leaf ── 1 vSwitch 2 ── host          the physical function, as it was
//!                                             3 ── host vf1      the first virtual function
//!                                             4 ── host vf2
//! ```
//!
//! The physical function keeps the host's node: its GUIDs, id, description and port number. GUIDs of the others follow from
//! the host's ([`derived_guid`]), so they stay the same however many there are.
//!
//! An HCA with several cabled ports becomes several such adapters with one physical function: a vSwitch in front of each port, and virtual
//! functions of its own behind it, which have the port in their names (`host p2 vf1`).

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use weft_wire::{Guid, NodeType, PortNum};

use crate::generate::AGGREGATION_NODE;
use crate::{BuildError, Fabric, FabricBuilder, LinkRate, Node, NodeIndex, PORTS_PER_NODE_MAX, PortRef};

/// The most virtual functions of one adapter: a vSwitch's other ports are its uplink and the physical function's.
pub const VFS_MAX: u16 = PORTS_PER_NODE_MAX as u16 - 2;

/// A vSwitch's port to the fabric.
pub const UPLINK: PortNum = PortNum(1);

/// A vSwitch's port to its physical function.
const PF_PORT: PortNum = PortNum(2);

/// The slot of a vSwitch in the GUIDs that are derived from a host's; virtual function n has n more.
const VSWITCH_SLOT: u16 = 1;

/// Slots from one port of an adapter to its next one, where several are cabled: more than a vSwitch and its functions have.
const SLOTS_OF_PORT: u16 = VFS_MAX + 4;

/// The bit of an EUI-64 that says that the address was given locally.
const LOCALLY_GIVEN: u64 = 1 << 57;

/// Longer descriptions do not fit into a NodeDescription.
const DESCRIPTION_BYTES: usize = 64;

/// One virtualised adapter, by its nodes: of an HCA with several cabled ports what belongs to one of them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Adapter {
    /// The switch inside of it.
    pub vswitch: NodeIndex,
    /// Its physical function: the node that the HCA was.
    pub pf: NodeIndex,
    /// Its virtual functions, the first one first.
    pub vfs: Vec<NodeIndex>,
}

impl Adapter {
    /// The port of its physical function. `None` where that is not plugged in.
    pub fn pf_port(&self, fabric: &Fabric) -> Option<PortRef> {
        fabric.peer(PortRef::new(self.vswitch, PF_PORT)).filter(|end| end.node == self.pf)
    }

    /// The slots of its virtual functions, the first one first: the vSwitch's port, and the function's that is cabled to it
    /// while a machine has it.
    pub fn slots(&self) -> impl Iterator<Item = (PortRef, PortRef)> {
        let ports = (PF_PORT.0 + 1..=PORTS_PER_NODE_MAX).map(PortNum).zip(&self.vfs);
        ports.map(|(port, vf)| (PortRef::new(self.vswitch, port), PortRef::new(*vf, PortNum(1))))
    }
}

/// A cabling with virtualised adapters. Nodes of the physical cabling keep their indices; the new ones follow them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Virtualised {
    /// The whole cabling.
    pub fabric: Fabric,
    /// Its adapters, in the order of their physical functions and ports.
    pub adapters: Vec<Adapter>,
}

/// Why adapters cannot be virtualised.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum VirtualiseError {
    /// No virtual functions, or more than a vSwitch has ports for.
    #[error("a vSwitch of {PORTS_PER_NODE_MAX} ports has 1 to {VFS_MAX} virtual functions, not {0}")]
    Count(u32),
    /// A GUID derived from a host's that another node has already.
    #[error("GUID {guid}, derived for a function of `{host}`, belongs to `{owner}`")]
    GuidTaken {
        /// The GUID.
        guid: Guid,
        /// The id of the HCA.
        host: String,
        /// The id of the node that has it.
        owner: String,
    },
    /// Nodes that cannot be part of a fabric for another reason: too many, or two derived GUIDs that are equal.
    #[error(transparent)]
    Build(#[from] BuildError),
}

/// The GUID of a part of a virtualised adapter: the host's with the bit for locally given addresses, plus the slot times
/// 2^32. The vSwitch has slot 1, virtual function n slot n + 1; where several ports are cabled, those of port p have 256 (p - 1) more.
pub fn derived_guid(host: Guid, slot: u16) -> Guid {
    Guid((host.0 | LOCALLY_GIVEN).wrapping_add(u64::from(slot) << 32))
}

impl Virtualised {
    /// An HCA with virtual functions on several ports, if there is one: its physical function is of several adapters.
    pub fn hca_of_several(&self) -> Option<NodeIndex> {
        let several = self.adapters.windows(2).find(|pair| pair[0].pf == pair[1].pf);
        several.map(|pair| pair[0].pf)
    }

    /// The same with every virtual function unplugged, as where no machine has booted.
    pub fn unplugged(mut self) -> Self {
        for (slot, _) in self.adapters.iter().flat_map(Adapter::slots) {
            self.fabric.disconnect(slot);
        }
        self
    }
}

impl Fabric {
    /// The HCAs that can be virtualised: those that have a cable, without the aggregation nodes inside of switches.
    pub fn adapters(&self) -> impl Iterator<Item = (NodeIndex, &Node)> {
        let serves_hosts = |node: &Node| !node.description.starts_with(AGGREGATION_NODE);
        self.hosts().filter(move |(_, node)| node.cabled_ports().next().is_some() && serves_hosts(node))
    }

    /// This cabling with `vfs` virtual functions on every cabled port of every adapter.
    ///
    /// # Errors
    ///
    /// When a GUID would not be unique, or there are too many nodes.
    pub fn virtualised(&self, vfs: u16) -> Result<Virtualised, VirtualiseError> {
        check_count(vfs)?;
        self.virtualised_by(|_| Some(vfs))
    }

    /// This cabling with a number of virtual functions for each adapter, by its HCA. One without a number stays as it is.
    ///
    /// # Errors
    ///
    /// As of [`Self::virtualised`].
    pub fn virtualised_by(
        &self,
        vfs: impl Fn(NodeIndex) -> Option<u16>,
    ) -> Result<Virtualised, VirtualiseError> {
        let numbered = self.adapters().filter_map(|(pf, _)| Some((pf, vfs(pf)?)));
        let hosts: Vec<Host<'_>> =
            numbered.map(|(pf, vfs)| Host::all(self, pf, vfs)).collect::<Result<Vec<_>, _>>()?.concat();
        let owners = self.guid_owners();
        let mut builder = self.builder(|_| true, [])?;
        let mut adapters = Vec::with_capacity(hosts.len());
        for host in &hosts {
            host.check_guids(&owners, self)?;
            adapters.push(host.add(&mut builder)?);
        }
        let mut uplinks = BTreeMap::new();
        for (host, adapter) in hosts.iter().zip(&adapters) {
            let end = PortRef::new(host.pf, host.port);
            uplinks.insert(end, PortRef::new(adapter.vswitch, UPLINK));
            builder.connect(PortRef::new(adapter.vswitch, PF_PORT), end)?;
            for (slot, vf) in adapter.slots() {
                builder.connect(slot, vf)?;
            }
        }
        let moved = |end: PortRef| uplinks.get(&end).copied().unwrap_or(end);
        for cable in self.cables() {
            builder.connect(moved(cable.a), moved(cable.b))?;
        }
        let mut fabric = builder.build();
        for adapter in &adapters {
            fabric.share_system(adapter);
        }
        Ok(Virtualised { fabric, adapters })
    }

    /// The adapters of a cabling that [`Self::virtualised`] has made, as a file keeps it: found by their GUIDs.
    pub fn virtualised_adapters(&self) -> Vec<Adapter> {
        let adapter = |pf: NodeIndex, node: &Node, port: PortNum| {
            let first = first_slot(port);
            let part = |slot| self.by_guid(derived_guid(node.guid, first + slot));
            let vswitch = part(VSWITCH_SLOT)?;
            let vfs: Vec<NodeIndex> = (1..=VFS_MAX).map_while(|number| part(VSWITCH_SLOT + number)).collect();
            let adapter = Adapter { vswitch, pf, vfs };
            let leads_to_pf = adapter.pf_port(self).is_some();
            let is_one = self.node(vswitch).is_switch() && leads_to_pf && !adapter.vfs.is_empty();
            is_one.then_some(adapter)
        };
        let adapters = |(pf, node): (NodeIndex, &Node)| -> Vec<Adapter> {
            let ports = (1..=node.port_count()).map(PortNum);
            ports.filter_map(|port| adapter(pf, node, port)).collect()
        };
        self.hosts().flat_map(adapters).collect()
    }

    /// Whether a node is the vSwitch of a virtualised adapter: its GUID is derived from the physical function's behind it.
    pub fn is_vswitch(&self, index: NodeIndex) -> bool {
        let pf = self.peer(PortRef::new(index, PF_PORT));
        self.node(index).is_switch()
            && pf.is_some_and(|pf| {
                let guid = derived_guid(self.node(pf.node).guid, first_slot(pf.port) + VSWITCH_SLOT);
                self.node(index).guid == guid
            })
    }

    /// Every GUID that is somebody's: of nodes, of systems, and of ports that can be addressed.
    fn guid_owners(&self) -> BTreeMap<Guid, NodeIndex> {
        let of_node = |(index, node): (NodeIndex, &Node)| {
            let ports = node.end_ports().filter(|(_, port)| node.is_switch() || port.peer.is_some());
            let guids: Vec<Guid> = ports.map(|(_, port)| port.guid).collect();
            guids.into_iter().chain([node.guid, node.system_image_guid]).map(move |guid| (guid, index))
        };
        self.iter().flat_map(of_node).collect()
    }

    /// The vSwitches of an HCA of a cabling that [`Self::virtualised`] has made, whatever is behind them.
    pub fn vswitches_of(&self, hca: &Node) -> impl Iterator<Item = NodeIndex> {
        let slots = (1..=hca.port_count()).map(|port| first_slot(PortNum(port)) + VSWITCH_SLOT);
        slots.filter_map(|slot| self.by_guid(derived_guid(hca.guid, slot)))
    }

    /// Gives all parts of an adapter the SystemImageGUID of its physical function; its NodeGUID where that has none.
    fn share_system(&mut self, adapter: &Adapter) {
        let pf = self.node(adapter.pf);
        let system = if pf.system_image_guid == Guid(0) { pf.guid } else { pf.system_image_guid };
        let parts = adapter.vfs.iter().chain([&adapter.vswitch, &adapter.pf]);
        for index in parts {
            self.nodes[index.index()].system_image_guid = system;
        }
    }
}

/// The slot that those of a port are counted from, where several ports of an adapter are cabled.
fn first_slot(port: PortNum) -> u16 {
    SLOTS_OF_PORT * u16::from(port.0.saturating_sub(1))
}

/// A port of an HCA that is to be virtualised.
#[derive(Clone, Copy)]
struct Host<'a> {
    pf: NodeIndex,
    node: &'a Node,
    /// What its other functions are named after.
    name: &'a str,
    /// The cabled port.
    port: PortNum,
    /// Whether other ports are cabled, too.
    is_of_several: bool,
    /// How many virtual functions it gets.
    vfs: u16,
}

fn check_count(vfs: u16) -> Result<(), VirtualiseError> {
    if (1..=VFS_MAX).contains(&vfs) { Ok(()) } else { Err(VirtualiseError::Count(vfs.into())) }
}

impl<'a> Host<'a> {
    /// All cabled ports of an HCA.
    fn all(fabric: &'a Fabric, pf: NodeIndex, vfs: u16) -> Result<Vec<Self>, VirtualiseError> {
        check_count(vfs)?;
        let (node, name) = (fabric.node(pf), fabric.name(pf));
        let is_of_several = node.cabled_ports().nth(1).is_some();
        let host = |(port, _)| Self { pf, node, name, port, is_of_several, vfs };
        Ok(node.cabled_ports().map(host).collect())
    }

    /// A slot of this port, of those that an adapter with one port has.
    fn slot(&self, slot: u16) -> u16 {
        if self.is_of_several { first_slot(self.port) + slot } else { slot }
    }

    fn port_guid(&self) -> Guid {
        self.node.port(self.port).map_or(self.node.guid, |port| port.guid)
    }

    fn check_guids(
        &self,
        owners: &BTreeMap<Guid, NodeIndex>,
        fabric: &Fabric,
    ) -> Result<(), VirtualiseError> {
        let slots = VSWITCH_SLOT..=VSWITCH_SLOT + self.vfs;
        let mut derived = slots.flat_map(|slot| {
            [self.node.guid, self.port_guid()].map(|guid| derived_guid(guid, self.slot(slot)))
        });
        let taken = derived.find_map(|guid| Some((guid, *owners.get(&guid)?)));
        taken.map_or(Ok(()), |(guid, owner)| {
            let (host, owner) = (self.node.id.clone(), fabric.node(owner).id.clone());
            Err(VirtualiseError::GuidTaken { guid, host, owner })
        })
    }

    /// Adds the vSwitch and the virtual functions, without cables.
    fn add(&self, builder: &mut FabricBuilder) -> Result<Adapter, BuildError> {
        // One uplink, the physical function, and `VFS_MAX` others at most.
        let ports = u8::try_from(self.vfs + 2).unwrap_or(PORTS_PER_NODE_MAX);
        let vswitch = builder.add_node(self.part(NodeType::Switch, VSWITCH_SLOT, ports, "vSwitch"))?;
        let vf = |number| {
            let name = format!("vf{number}");
            builder.add_node(self.part(NodeType::Hca, VSWITCH_SLOT + number, 1, &name))
        };
        let vfs = (1..=self.vfs).map(vf).collect::<Result<_, _>>()?;
        Ok(Adapter { vswitch, pf: self.pf, vfs })
    }

    /// A node with the host's name and a GUID of its own, whose links can do what the host's can.
    fn part(&self, kind: NodeType, slot: u16, ports: u8, name: &str) -> Node {
        let slot = self.slot(slot);
        let guid = derived_guid(self.node.guid, slot);
        let name = if self.is_of_several { format!("p{} {name}", self.port) } else { name.to_owned() };
        let mut node = Node::new(kind, guid, ports, LinkRate::default());
        let host = self.node.port(self.port).copied().unwrap_or_default();
        for port in &mut node.ports {
            (port.link, port.enabled) = (host.link, host.enabled);
        }
        if kind != NodeType::Switch
            && let Some(port) = node.ports.get_mut(1)
        {
            port.guid = derived_guid(host.guid, slot);
        }
        node.id = format!("{}-{}", self.node.id, name.to_lowercase().replace(' ', "-"));
        node.description = described(self.name, &name);
        (node.vendor_id, node.device_id) = (self.node.vendor_id, self.node.device_id);
        node
    }
}

/// `HOST NAME`, of which the host's part is cut short where the whole would be too long.
fn described(host: &str, name: &str) -> String {
    let room = DESCRIPTION_BYTES.saturating_sub(name.len() + 1);
    let end = (0..=room.min(host.len())).rev().find(|end| host.is_char_boundary(*end)).unwrap_or(0);
    format!("{} {name}", &host[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_name_keeps_its_end() {
        assert_eq!(described("host-0", "vf1"), "host-0 vf1");
        let long = format!("{}ä{}", "x".repeat(59), "y".repeat(9));
        let cut = described(&long, "vf1");
        assert_eq!(cut, format!("{} vf1", "x".repeat(59)));
        assert!(cut.len() <= DESCRIPTION_BYTES);
    }

    #[test]
    fn guids_grow_with_their_slots() {
        let host = Guid(0x0002_c903_00ab_cdef);
        assert_eq!(derived_guid(host, VSWITCH_SLOT), Guid(0x0202_c904_00ab_cdef));
        assert_eq!(derived_guid(host, VSWITCH_SLOT + 1), Guid(0x0202_c905_00ab_cdef));
        assert_eq!(derived_guid(Guid(0x0200_4843_0000_0300), 2), Guid(0x0200_4845_0000_0300));
    }
}
