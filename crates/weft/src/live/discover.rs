//! The fabric as its devices describe it, read breadth first with directed-route SMPs.

use std::collections::BTreeMap;

use anyhow::Context;
use weft_mgmt::{DirectedPath, Request, SmpRoute};
use weft_routing::{ForwardingTable, Lids, Routes};
use weft_topology::{BuildError, Fabric, FabricBuilder, LinkRate, Node, PortRef};
use weft_wire::{
    AddressedMad, AttributeId, Guid, Lid, LinearForwardingTable, NodeDescription, NodeInfo, NodeType,
    PhysState, PortInfo, PortNum, PortState, SwitchInfo,
};

use super::{Session, limits};

/// Requests under way at once: reading may be quicker than a subnet manager's default.
const WINDOW: u32 = 32;

/// One port of one node.
type End = (Guid, PortNum);

/// A node as it describes itself.
#[derive(Clone, Debug)]
pub(crate) struct LiveNode {
    pub(crate) info: NodeInfo,
    pub(crate) description: String,
    /// The way to it from where it was read.
    pub(crate) path: DirectedPath,
    /// Its ports that answered: a switch's port 0, and all external ones.
    pub(crate) ports: BTreeMap<PortNum, PortInfo>,
    /// Port GUIDs of an HCA's ports that were reached.
    port_guids: BTreeMap<PortNum, Guid>,
    /// A switch's forwarding table, entry by LID, up to its top.
    pub(crate) table: Vec<PortNum>,
    /// A switch's LinearFDBTop.
    pub(crate) table_top: Lid,
}

impl LiveNode {
    fn new(info: NodeInfo, path: DirectedPath) -> Self {
        Self {
            info,
            description: String::new(),
            path,
            ports: BTreeMap::new(),
            port_guids: BTreeMap::new(),
            table: Vec::new(),
            table_top: Lid(0),
        }
    }

    pub(crate) fn is_switch(&self) -> bool {
        self.info.node_type == NodeType::Switch
    }

    /// The ports that have a LID: a switch's port 0, an HCA's cabled ports.
    pub(crate) fn end_ports(&self) -> impl Iterator<Item = (PortNum, &PortInfo)> {
        let switch = self.is_switch();
        let wanted = move |port: PortNum, info: &PortInfo| match switch {
            true => port == PortNum::ZERO,
            false => info.port_physical_state == PhysState::LinkUp,
        };
        self.ports.iter().map(|(port, info)| (*port, info)).filter(move |(port, info)| wanted(*port, info))
    }

    /// Where the table sends a LID; `None` for nowhere.
    pub(crate) fn route(&self, lid: Lid) -> Option<PortNum> {
        let port = self.table.get(usize::from(lid.0)).copied()?;
        (lid <= self.table_top && port != PortNum::NONE).then_some(port)
    }

    /// The entries of the table that lead somewhere.
    fn routes(&self) -> impl Iterator<Item = (Lid, PortNum)> {
        (0..=self.table_top.0).map(Lid).filter_map(|lid| Some((lid, self.route(lid)?)))
    }
}

/// What was found.
#[derive(Clone, Debug, Default)]
pub(crate) struct LiveFabric {
    /// By node GUID.
    pub(crate) nodes: BTreeMap<Guid, LiveNode>,
    /// Both directions of every cable.
    pub(crate) cables: BTreeMap<End, End>,
    /// Requests that nobody answered.
    pub(crate) unanswered: Vec<String>,
}

#[derive(Clone, Copy, Debug)]
enum Ask {
    Node { from: Option<End>, path: DirectedPath },
    Description(Guid),
    Switch(Guid),
    Port(Guid, PortNum),
    Block(Guid, u32),
}

impl Ask {
    fn request(self, path: &DirectedPath) -> (Self, AddressedMad) {
        let (attribute, modifier) = match self {
            Self::Node { .. } => (AttributeId::NodeInfo, 0),
            Self::Description(_) => (AttributeId::NodeDescription, 0),
            Self::Switch(_) => (AttributeId::SwitchInfo, 0),
            Self::Port(_, port) => (AttributeId::PortInfo, u32::from(port.0)),
            Self::Block(_, block) => (AttributeId::LinearForwardingTable, block),
        };
        (self, Request::get(attribute, modifier).by(&SmpRoute::Directed(*path)))
    }
}

/// Reads the whole fabric that `session` can reach, tables included.
pub(crate) fn discover(session: &mut Session) -> anyhow::Result<LiveFabric> {
    let mut fabric = LiveFabric::default();
    let here = Ask::Node { from: None, path: DirectedPath::HERE }.request(&DirectedPath::HERE);
    session.exchange(limits(WINDOW), vec![here], |ask, answer, next| match answer {
        Some(answer) if answer.mad.status() == 0 => fabric.take(ask, &answer, next),
        Some(answer) => fabric.unanswered.push(format!("{ask:?}: status {:#06x}", answer.mad.status())),
        None => fabric.unanswered.push(format!("{ask:?}: no answer")),
    })?;
    Ok(fabric)
}

impl LiveFabric {
    fn take(&mut self, ask: Ask, answer: &AddressedMad, next: &mut Vec<(Ask, AddressedMad)>) {
        match ask {
            Ask::Node { from, path } => {
                self.take_node(from, path, NodeInfo::decode(answer.mad.smp_attribute()), next);
            }
            Ask::Port(guid, port) => {
                self.take_port(guid, port, PortInfo::decode(answer.mad.smp_attribute()), next);
            }
            Ask::Description(guid) => {
                if let Some(node) = self.nodes.get_mut(&guid) {
                    node.description = NodeDescription::decode(answer.mad.smp_attribute()).to_text();
                }
            }
            Ask::Switch(guid) => {
                let info = SwitchInfo::decode(answer.mad.smp_attribute());
                if let Some(node) = self.nodes.get_mut(&guid) {
                    node.table_top = Lid(info.linear_fdb_top);
                    let blocks = u32::from(info.linear_fdb_top) / 64;
                    next.extend((0..=blocks).map(|block| Ask::Block(guid, block).request(&node.path)));
                }
            }
            Ask::Block(guid, block) => {
                let ports = LinearForwardingTable::decode(answer.mad.smp_attribute()).ports;
                if let Some(node) = self.nodes.get_mut(&guid) {
                    let start = block as usize * 64;
                    if node.table.len() < start + 64 {
                        node.table.resize(start + 64, PortNum::NONE);
                    }
                    for (entry, port) in node.table.iter_mut().skip(start).zip(ports) {
                        *entry = port;
                    }
                }
            }
        }
    }

    fn take_node(
        &mut self,
        from: Option<End>,
        path: DirectedPath,
        info: NodeInfo,
        next: &mut Vec<(Ask, AddressedMad)>,
    ) {
        let guid = info.node_guid;
        let end = (guid, info.local_port_num);
        if let Some(from) = from {
            self.cables.insert(from, end);
            self.cables.insert(end, from);
        }
        let known = self.nodes.contains_key(&guid);
        let node = self.nodes.entry(guid).or_insert_with(|| LiveNode::new(info, path));
        if !node.is_switch() {
            node.port_guids.insert(info.local_port_num, info.port_guid);
        }
        if known {
            return;
        }
        next.push(Ask::Description(guid).request(&path));
        if node.is_switch() {
            next.push(Ask::Switch(guid).request(&path));
        }
        let first = u8::from(!node.is_switch());
        let ports = (first..=info.num_ports).map(|port| Ask::Port(guid, PortNum(port)).request(&path));
        next.extend(ports);
    }

    fn take_port(&mut self, guid: Guid, port: PortNum, info: PortInfo, next: &mut Vec<(Ask, AddressedMad)>) {
        let Some(node) = self.nodes.get_mut(&guid) else { return };
        node.ports.insert(port, info);
        // Directed-route SMPs pass through switches, and leave the first node by any port; not through HCAs.
        let passes = node.is_switch() || node.path == DirectedPath::HERE;
        let linked = port != PortNum::ZERO && info.port_state != PortState::Down;
        if !passes || !linked || self.cables.contains_key(&(guid, port)) {
            return;
        }
        if let Some(path) = node.path.then(port) {
            next.push(Ask::Node { from: Some((guid, port)), path }.request(&path));
        }
    }

    /// The same as a fabric with LIDs and tables, for routing's verifier. Nodes are named by their descriptions
    /// where these are unique.
    pub(crate) fn routing(&self) -> anyhow::Result<LiveRouting> {
        let fabric = self.to_fabric().context("the fabric contradicts itself")?;
        let lids = Lids::from_fabric(&fabric).context("the LIDs contradict each other")?;
        let tables = fabric.nodes().iter().map(|node| {
            let mut table = ForwardingTable::default();
            let live = self.nodes.get(&node.guid);
            for (lid, port) in live.into_iter().flat_map(LiveNode::routes) {
                table.set(lid, port);
            }
            table
        });
        let routes = Routes { tables: tables.collect() };
        Ok(LiveRouting { fabric, lids, routes })
    }

    fn to_fabric(&self) -> Result<Fabric, BuildError> {
        let mut names: BTreeMap<&str, u32> = BTreeMap::new();
        for node in self.nodes.values() {
            *names.entry(&node.description).or_default() += 1;
        }
        let mut builder = FabricBuilder::new();
        let mut indices = BTreeMap::new();
        for (guid, live) in &self.nodes {
            let mut node = Node::new(live.info.node_type, *guid, live.info.num_ports, LinkRate::default());
            if !live.description.is_empty() && names.get(live.description.as_str()) == Some(&1) {
                node.id.clone_from(&live.description);
            }
            node.description.clone_from(&live.description);
            node.system_image_guid = live.info.system_image_guid;
            for (port, info) in &live.ports {
                let Some(slot) = node.ports.get_mut(usize::from(port.0)) else { continue };
                (slot.lid, slot.lmc) = (info.lid, info.lmc);
                if let Some(guid) = live.port_guids.get(port) {
                    slot.guid = *guid;
                }
            }
            indices.insert(*guid, builder.add_node(node)?);
        }
        for (a, b) in self.cables.iter().filter(|(a, b)| a < b) {
            let end = |(guid, port): &End| PortRef::new(indices[guid], *port);
            builder.connect(end(a), end(b))?;
        }
        Ok(builder.build())
    }
}

/// What routing's functions take.
pub(crate) struct LiveRouting {
    pub(crate) fabric: Fabric,
    pub(crate) lids: Lids,
    pub(crate) routes: Routes,
}
