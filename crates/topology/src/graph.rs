//! The fabric as a graph: nodes, their ports, and the cables between them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use weft_wire::{Guid, Lid, PortNum};

use crate::{LinkMasks, LinkRate, NodeType};

/// The place of a node in its fabric's list.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct NodeIndex(pub u32);

impl NodeIndex {
    /// For indexing a list that runs along [`Fabric::nodes`].
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// One port of one node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct PortRef {
    /// Whose port.
    pub node: NodeIndex,
    /// Which port.
    pub port: PortNum,
}

impl PortRef {
    /// Port `port` of node `node`.
    pub const fn new(node: NodeIndex, port: PortNum) -> Self {
        Self { node, port }
    }
}

/// A switch, a host channel adapter or a router.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Node {
    /// What it is.
    pub kind: NodeType,
    /// Its name in topology files, such as `S-0008f10500200b50`; unique in its fabric.
    pub id: String,
    /// Its NodeDescription; the id where a file gives none.
    pub description: String,
    /// Its NodeGUID; unique in its fabric.
    pub guid: Guid,
    /// Its SystemImageGUID: equal on the parts of one machine.
    pub system_image_guid: Guid,
    /// Its VendorID, 24 bits.
    pub vendor_id: u32,
    /// Its DeviceID.
    pub device_id: u16,
    /// Its ports by number. Port 0 is a switch's management port; on other nodes it stands for nothing.
    pub ports: Vec<Port>,
    /// Whether a switch's port 0 is an enhanced one, with a link of its own (IBA 18.2.4.1).
    pub enhanced_port0: bool,
}

/// One port of a node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Port {
    /// Its PortGUID. All ports of a switch have that of port 0.
    pub guid: Guid,
    /// The port at the other end of its cable.
    pub peer: Option<PortRef>,
    /// The rate of its cable, or the best that it could do where it has none.
    pub link: LinkRate,
    /// What it allows its link to be.
    pub enabled: LinkMasks,
    /// Its LID when the file was written; 0 where that is not known. Switches have theirs on port 0.
    pub lid: Lid,
    /// Its LID mask control: it answers to 2^lmc LIDs.
    pub lmc: u8,
}

/// A cabling. A [`FabricBuilder`](crate::FabricBuilder) makes it, only its own cables come and go later, and both ends of
/// each cable agree.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Fabric {
    pub(crate) nodes: Vec<Node>,
    #[serde(skip)]
    pub(crate) by_guid: BTreeMap<Guid, NodeIndex>,
    #[serde(skip)]
    pub(crate) by_id: BTreeMap<String, NodeIndex>,
    /// `None` where several nodes share a description.
    #[serde(skip)]
    pub(crate) by_description: BTreeMap<String, Option<NodeIndex>>,
    /// The adapters that are described by their host's name and their own. `None` where a host has several.
    #[serde(skip)]
    pub(crate) by_host: BTreeMap<String, Option<NodeIndex>>,
}

/// One cable; its first end is that of the lower (GUID, port).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Cable {
    /// The end with the lower (GUID, port).
    pub a: PortRef,
    /// The other end.
    pub b: PortRef,
    /// Its rate.
    pub rate: LinkRate,
}

/// How many of each a fabric has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// Switches.
    pub switches: usize,
    /// Host channel adapters.
    pub hosts: usize,
    /// Routers and nodes of unknown kind.
    pub others: usize,
    /// Cables.
    pub cables: usize,
    /// [Pieces](crate::Pieces) that switches and cables join.
    pub components: usize,
}

impl Node {
    /// A node without cables and with the names and numbers that follow from its GUID. The GUID of an HCA's
    /// port n is the node's plus n.
    pub fn new(kind: NodeType, guid: Guid, port_count: u8, rate: LinkRate) -> Self {
        let letter = match kind {
            NodeType::Switch => 'S',
            NodeType::Router => 'R',
            _ => 'H',
        };
        let id = format!("{letter}-{:016x}", guid.0);
        let guid_of = |port: u64| match kind {
            NodeType::Switch => guid,
            _ => Guid(guid.0.wrapping_add(port)),
        };
        let port = |n| Port { guid: guid_of(n), link: rate, enabled: rate.enabled(), ..Port::default() };
        Self {
            kind,
            description: id.clone(),
            id,
            guid,
            system_image_guid: guid,
            vendor_id: 0,
            device_id: 0,
            ports: (0..=u64::from(port_count)).map(port).collect(),
            enhanced_port0: false,
        }
    }

    /// Whether it forwards packets.
    pub fn is_switch(&self) -> bool {
        self.kind == NodeType::Switch
    }

    /// How many ports it has, port 0 not counted.
    pub fn port_count(&self) -> u8 {
        u8::try_from(self.ports.len().saturating_sub(1)).unwrap_or(u8::MAX)
    }

    /// The port of this number, port 0 included.
    pub fn port(&self, port: PortNum) -> Option<&Port> {
        self.ports.get(usize::from(port.0))
    }

    /// Its external ports, from 1 upwards.
    pub fn external_ports(&self) -> impl Iterator<Item = (PortNum, &Port)> {
        (0..=u8::MAX).map(PortNum).zip(&self.ports).skip(1)
    }

    /// Its cabled ports with their peers, from 1 upwards.
    pub fn cabled_ports(&self) -> impl Iterator<Item = (PortNum, PortRef)> {
        self.external_ports().filter_map(|(number, port)| Some((number, port.peer?)))
    }

    /// The ports that packets can be addressed to: a switch's port 0, another node's external ports.
    pub fn end_ports(&self) -> impl Iterator<Item = (PortNum, &Port)> {
        let (from, count) = if self.is_switch() { (0, 1) } else { (1, usize::MAX) };
        (0..=u8::MAX).map(PortNum).zip(&self.ports).skip(from).take(count)
    }

    /// The port through which a program on this node reaches the fabric: a switch's port 0, another node's first port
    /// with a cable.
    pub fn attach_port(&self) -> Option<PortNum> {
        let cabled = || self.cabled_ports().map(|(port, _)| port).next();
        if self.is_switch() { Some(PortNum::ZERO) } else { cabled() }
    }
}

impl Fabric {
    /// All nodes, by index.
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// All nodes with their indices.
    pub fn iter(&self) -> impl Iterator<Item = (NodeIndex, &Node)> {
        (0..).map(NodeIndex).zip(&self.nodes)
    }

    /// The node at `index`.
    ///
    /// # Panics
    ///
    /// When the index is not one of this fabric's.
    pub fn node(&self, index: NodeIndex) -> &Node {
        &self.nodes[index.index()]
    }

    /// The port that `port` names, if there is one.
    pub fn port(&self, port: PortRef) -> Option<&Port> {
        self.nodes.get(port.node.index())?.port(port.port)
    }

    /// The other end of the cable in `port`.
    pub fn peer(&self, port: PortRef) -> Option<PortRef> {
        self.port(port)?.peer
    }

    /// Takes out the cable in `port`, as when a link goes down. Nothing where there is none.
    pub fn disconnect(&mut self, port: PortRef) {
        let Some(peer) = self.peer(port) else { return };
        for end in [port, peer] {
            self.end_mut(end).into_iter().for_each(|port| port.peer = None);
        }
    }

    /// Puts back a cable that [`Self::disconnect`] took out, at this rate. Nothing where a port has another cable.
    pub fn reconnect(&mut self, a: PortRef, b: PortRef, rate: LinkRate) {
        let free = |end| self.port(end).is_some_and(|port| port.peer.is_none());
        if a == b || !free(a) || !free(b) {
            return;
        }
        for (here, there) in [(a, b), (b, a)] {
            let port = self.end_mut(here).into_iter();
            port.for_each(|port| (port.peer, port.link) = (Some(there), rate));
        }
    }

    /// Says which system a node is part of, as when an adapter's function gets another one's identity. Nothing where there is
    /// no such node.
    pub fn set_system(&mut self, node: NodeIndex, system_image_guid: Guid) {
        let node = self.nodes.get_mut(node.index()).into_iter();
        node.for_each(|node| node.system_image_guid = system_image_guid);
    }

    /// Gives an adapter other GUIDs, on all of its ports the same. Whether that could be: false when the node's GUID is
    /// another's.
    pub fn identify(&mut self, index: NodeIndex, guid: Guid, port_guid: Guid) -> bool {
        if self.by_guid.get(&guid).is_some_and(|owner| *owner != index) {
            return false;
        }
        let Some(node) = self.nodes.get_mut(index.index()) else { return false };
        self.by_guid.remove(&std::mem::replace(&mut node.guid, guid));
        node.ports.iter_mut().skip(1).for_each(|port| port.guid = port_guid);
        self.by_guid.insert(guid, index);
        true
    }

    fn end_mut(&mut self, port: PortRef) -> Option<&mut Port> {
        self.nodes.get_mut(port.node.index())?.ports.get_mut(usize::from(port.port.0))
    }

    /// The node with this NodeGUID.
    pub fn by_guid(&self, guid: Guid) -> Option<NodeIndex> {
        self.by_guid.get(&guid).copied()
    }

    /// The node with this id.
    pub fn by_id(&self, id: &str) -> Option<NodeIndex> {
        self.by_id.get(id).copied()
    }

    /// The switches, by index.
    pub fn switches(&self) -> impl Iterator<Item = (NodeIndex, &Node)> {
        self.iter().filter(|(_, node)| node.is_switch())
    }

    /// The host channel adapters, by index.
    pub fn hosts(&self) -> impl Iterator<Item = (NodeIndex, &Node)> {
        self.iter().filter(|(_, node)| node.kind == NodeType::Hca)
    }

    /// Every cable once, in the order of the nodes and ports of their first ends.
    pub fn cables(&self) -> impl Iterator<Item = Cable> {
        self.iter().flat_map(move |(index, node)| {
            node.cabled_ports().filter_map(move |(number, peer)| {
                let here = PortRef::new(index, number);
                let rate = node.port(number)?.link;
                (self.rank(here) < self.rank(peer)).then_some(Cable { a: here, b: peer, rate })
            })
        })
    }

    /// What decides which end of a cable is its first: (GUID, port).
    pub fn rank(&self, port: PortRef) -> (Guid, PortNum) {
        (self.node(port.node).guid, port.port)
    }

    /// `ID[port]`, for people.
    pub fn port_name(&self, port: PortRef) -> PortName<'_> {
        PortName { id: &self.node(port.node).id, port: port.port }
    }

    /// How many there are of each.
    pub fn counts(&self) -> Counts {
        let (switches, hosts) = (self.switches().count(), self.hosts().count());
        Counts {
            switches,
            hosts,
            others: self.nodes.len() - switches - hosts,
            cables: self.cables().count(),
            components: self.pieces().len(),
        }
    }
}

/// A port's name for people; see [`Fabric::port_name`].
#[derive(Clone, Copy, Debug)]
pub struct PortName<'a> {
    id: &'a str,
    port: PortNum,
}

weft_wire::displayed!(PortName<'_> { id, port } => "{id}[{port}]");
