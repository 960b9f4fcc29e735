//! The only way to make a fabric: add nodes, connect their ports, build.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use serde::de::{Deserialize, Deserializer, Error as _};
use weft_wire::{Guid, PortNum};

use crate::find::host_of;
use crate::{Cable, Fabric, Node, NodeIndex, PortRef};

/// The most nodes that a fabric may have.
pub const NODES_MAX: usize = 65_536;
/// The most ports that a fabric may have, over all nodes.
pub const PORTS_MAX: usize = 1_048_576;
/// The most external ports that a node may have: port 255 means "none" in a forwarding table.
pub const PORTS_PER_NODE_MAX: u8 = 254;

/// Collects nodes and cables and keeps both ends of every cable in agreement.
#[derive(Clone, Debug, Default)]
pub struct FabricBuilder {
    fabric: Fabric,
    port_guids: BTreeMap<Guid, PortRef>,
    ports: usize,
}

/// Why a node or a cable cannot be part of a fabric.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BuildError {
    /// Two nodes with one NodeGUID.
    #[error("GUID {guid} belongs to both `{first}` and `{second}`")]
    DuplicateGuid {
        /// The GUID.
        guid: Guid,
        /// The id of the node that has it.
        first: String,
        /// The id of the node that wants it.
        second: String,
    },
    /// Two end ports with one PortGUID.
    #[error("port GUID {guid} belongs to both {first} and {second}")]
    DuplicatePortGuid {
        /// The GUID.
        guid: Guid,
        /// The port that has it.
        first: String,
        /// The port that wants it.
        second: String,
    },
    /// Two nodes with one id.
    #[error("the id `{id}` is taken")]
    DuplicateId {
        /// The id.
        id: String,
    },
    /// GUID 0 belongs to no node.
    #[error("`{id}` has the GUID 0")]
    NoGuid {
        /// The node's id, or the end port's name.
        id: String,
    },
    /// No ports, or more than a forwarding table can name.
    #[error("node `{id}` has {ports} ports; 1 to 254 can be told apart")]
    PortCount {
        /// The node's id.
        id: String,
        /// How many it has.
        ports: usize,
    },
    /// More nodes or ports than [`NODES_MAX`] or [`PORTS_MAX`].
    #[error("the fabric has more than {NODES_MAX} nodes or {PORTS_MAX} ports")]
    TooLarge,
    /// A node that this builder does not have.
    #[error("there is no node number {}", .0.0)]
    UnknownNode(NodeIndex),
    /// A port that its node does not have, or port 0, which takes no cable.
    #[error("port {port} is out of range for `{id}`, whose ports are 1 to {count}")]
    PortOutOfRange {
        /// The node's id.
        id: String,
        /// The port.
        port: PortNum,
        /// The node's last port.
        count: u8,
    },
    /// A port with two cables.
    #[error("{port} is already cabled to {peer}")]
    PortTaken {
        /// The port.
        port: String,
        /// Where its first cable leads.
        peer: String,
    },
    /// A port cabled to itself.
    #[error("{port} is cabled to itself")]
    SelfLoop {
        /// The port.
        port: String,
    },
    /// Two ends without a width or a speed in common.
    #[error("{a} and {b} allow no width and speed in common")]
    NoCommonRate {
        /// One end.
        a: String,
        /// The other end.
        b: String,
    },
    /// A cable that one of its ends does not have.
    #[error("{port} is cabled to a port that is not cabled to it")]
    OneEnded {
        /// The other end.
        port: String,
    },
}

/// A fabric as it is serialised.
#[derive(serde::Deserialize)]
struct Written {
    nodes: Vec<Node>,
}

impl<'de> Deserialize<'de> for Fabric {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Written::deserialize(deserializer)?.try_into().map_err(D::Error::custom)
    }
}

impl TryFrom<Written> for Fabric {
    type Error = BuildError;

    /// Cables are as they were: their ends may have other rates by now than they would settle on.
    fn try_from(written: Written) -> Result<Self, BuildError> {
        let ends = |node: &Node| node.ports.iter().map(|port| port.peer).collect();
        let peers: Vec<Vec<Option<PortRef>>> = written.nodes.iter().map(ends).collect();
        let mut builder = FabricBuilder::new();
        for node in written.nodes {
            builder.add_node(node)?;
        }
        let mut fabric = builder.fabric;
        for (node, peers) in fabric.nodes.iter_mut().zip(peers) {
            node.ports.iter_mut().zip(peers).for_each(|(port, peer)| port.peer = peer);
        }
        let is_cable = |here: PortRef, there: PortRef| {
            here.port != PortNum::ZERO && here != there && fabric.peer(there) == Some(here)
        };
        for (index, node) in fabric.iter() {
            for (number, port) in (0..=u8::MAX).map(PortNum).zip(&node.ports) {
                let here = PortRef::new(index, number);
                if port.peer.is_some_and(|there| !is_cable(here, there)) {
                    return Err(BuildError::OneEnded { port: fabric.port_name(here).to_string() });
                }
            }
        }
        Ok(fabric)
    }
}

impl FabricBuilder {
    /// A builder without nodes.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a node; its ports' peers are forgotten, [`FabricBuilder::connect`] sets them.
    pub fn add_node(&mut self, mut node: Node) -> Result<NodeIndex, BuildError> {
        let index = NodeIndex(u32::try_from(self.fabric.nodes.len()).map_err(|_| BuildError::TooLarge)?);
        let external = node.ports.len().saturating_sub(1);
        if external == 0 || external > usize::from(PORTS_PER_NODE_MAX) {
            return Err(BuildError::PortCount { id: node.id, ports: external });
        }
        if node.guid == Guid(0) {
            return Err(BuildError::NoGuid { id: node.id });
        }
        if self.fabric.nodes.len() >= NODES_MAX || self.ports + node.ports.len() > PORTS_MAX {
            return Err(BuildError::TooLarge);
        }
        if self.fabric.by_id.contains_key(&node.id) {
            return Err(BuildError::DuplicateId { id: node.id });
        }
        if let Some(first) = self.fabric.by_guid(node.guid) {
            let first = self.fabric.node(first).id.clone();
            return Err(BuildError::DuplicateGuid { guid: node.guid, first, second: node.id });
        }
        if node.is_switch() {
            let port = PortRef::new(index, PortNum::ZERO);
            let guid = node.ports.first().map_or(node.guid, |port| port.guid);
            self.claim_port_guid(guid, port, &node.id)?;
        }
        if node.description.is_empty() {
            node.description.clone_from(&node.id);
        }
        for port in &mut node.ports {
            port.peer = None;
        }
        self.ports += node.ports.len();
        self.fabric.by_guid.insert(node.guid, index);
        self.fabric.by_id.insert(node.id.clone(), index);
        let described = self.fabric.by_description.entry(node.description.clone());
        described.and_modify(|first| *first = None).or_insert(Some(index));
        if let Some(host) = host_of(&node) {
            let adapters = self.fabric.by_host.entry(host.to_owned());
            adapters.and_modify(|first| *first = None).or_insert(Some(index));
        }
        self.fabric.nodes.push(node);
        Ok(index)
    }

    /// Cables two ports and settles the rate that both allow.
    pub fn connect(&mut self, a: PortRef, b: PortRef) -> Result<(), BuildError> {
        let rate = self.fabric.settle(a, b)?;
        for end in [a, b] {
            let node = self.fabric.node(end.node);
            if !node.is_switch() {
                let guid = node.ports[usize::from(end.port.0)].guid;
                let id = node.id.clone();
                self.claim_port_guid(guid, end, &id)?;
            }
        }
        self.fabric.reconnect(a, b, rate);
        Ok(())
    }

    /// The fabric as it is so far, for looking things up.
    pub fn fabric(&self) -> &Fabric {
        &self.fabric
    }

    /// The lowest external port of `node` without a cable.
    pub fn free_port(&self, node: NodeIndex) -> Option<PortNum> {
        let node = self.fabric.nodes.get(node.index())?;
        node.external_ports().find(|(_, port)| port.peer.is_none()).map(|(number, _)| number)
    }

    /// The fabric, with ports as they were given.
    pub(crate) fn into_fabric(self) -> Fabric {
        self.fabric
    }

    /// The fabric. Ports without a cable become as good as the best that their node has with one: no file says
    /// what they are.
    pub fn build(mut self) -> Fabric {
        for node in &mut self.fabric.nodes {
            let best =
                node.external_ports().filter(|(_, port)| port.peer.is_some()).map(|(_, port)| port.link);
            let best = best.max().unwrap_or_default();
            for port in node.ports.iter_mut().filter(|port| port.peer.is_none()) {
                port.link = best;
                port.enabled = best.enabled();
            }
        }
        self.fabric
    }

    /// Port GUIDs of end ports are unique where they matter: on port 0 of switches and on cabled ports of others.
    /// An uncabled port's GUID is often made up, so it claims nothing.
    fn claim_port_guid(&mut self, guid: Guid, port: PortRef, id: &str) -> Result<(), BuildError> {
        if guid == Guid(0) {
            return Err(BuildError::NoGuid { id: format!("{id}[{}]", port.port) });
        }
        match self.port_guids.entry(guid) {
            Entry::Vacant(free) => {
                free.insert(port);
                Ok(())
            }
            Entry::Occupied(taken) if *taken.get() == port => Ok(()),
            Entry::Occupied(taken) => Err(BuildError::DuplicatePortGuid {
                guid,
                first: self.fabric.port_name(*taken.get()).to_string(),
                second: format!("{id}[{}]", port.port),
            }),
        }
    }
}

impl Fabric {
    /// What is left of it with some nodes, and with those of `cables` that are between two of them. Names, GUIDs and
    /// port numbers stay.
    pub fn part(
        &self,
        keeps: impl Fn(NodeIndex) -> bool,
        cables: impl IntoIterator<Item = Cable>,
    ) -> Result<Self, BuildError> {
        Ok(self.builder(keeps, cables)?.build())
    }

    /// The same, to which more can be added.
    pub(crate) fn builder(
        &self,
        keeps: impl Fn(NodeIndex) -> bool,
        cables: impl IntoIterator<Item = Cable>,
    ) -> Result<FabricBuilder, BuildError> {
        let mut builder = FabricBuilder::new();
        let mut place = vec![None; self.nodes().len()];
        for (index, node) in self.iter().filter(|(index, _)| keeps(*index)) {
            place[index.index()] = Some(builder.add_node(node.clone())?);
        }
        for cable in cables {
            let end = |end: PortRef| place[end.node.index()].map(|node| PortRef::new(node, end.port));
            if let Some((a, b)) = end(cable.a).zip(end(cable.b)) {
                builder.connect(a, b)?;
            }
        }
        Ok(builder)
    }
}
