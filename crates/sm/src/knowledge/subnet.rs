//! The subnet that a sweep has found.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use weft_mgmt::DirectedPath;
use weft_routing::files::LidRange;
use weft_topology::{Fabric, FabricBuilder, LinkRate, Node, NodeIndex, PortRef};
use weft_wire::{Guid, Lid, NodeInfo, NodeType, PhysState, PortInfo, PortNum, PortState, SwitchInfo};

use super::adapters::Adapters;
use super::key::PortAt;
use super::learned::Learned;
use super::p_keys::Keys;
use super::routed::Routed;

/// A node that answered.
#[derive(Clone, Debug)]
pub(crate) struct FoundNode {
    pub(crate) info: NodeInfo,
    pub(crate) description: String,
    pub(crate) switch: Option<SwitchInfo>,
    /// How to reach it; for an HCA, by the port that was found first.
    pub(crate) path: DirectedPath,
    /// By number; 0 is a switch's management port and stands for nothing on other nodes.
    pub(crate) ports: Vec<FoundPort>,
    /// It answered at first and then no more.
    pub(crate) silent: bool,
}

/// One port of a node that answered.
#[derive(Clone, Debug, Default)]
pub(crate) struct FoundPort {
    /// An HCA port's GUID, once the port has been reached.
    pub(crate) guid: Guid,
    /// How to reach this very port, once it has been reached.
    pub(crate) path: Option<DirectedPath>,
    pub(crate) info: Option<PortInfo>,
    pub(crate) peer: Option<PortAt>,
    /// The LIDs that it is given.
    pub(crate) lid: Option<LidRange>,
    /// It has a link, but no one behind it answers.
    pub(crate) silent: bool,
    /// PortInfo's ClientReregister has yet to be sent to it.
    pub(crate) reregister: bool,
    /// It keeps an M_Key that this manager does not know, so it takes no Set.
    pub(crate) locked: bool,
}

/// Everything that a sweep has found, in order of GUIDs, so that the order of answers does not matter.
#[derive(Debug, Default)]
pub(crate) struct Subnet {
    pub(crate) nodes: Vec<FoundNode>,
    pub(crate) by_guid: BTreeMap<Guid, u32>,
    /// The same as a graph; node indices are those of `nodes`.
    pub(crate) fabric: Fabric,
    /// The port that the manager is behind.
    pub(crate) own: Option<PortAt>,
    /// Who has which P_Keys; `None` where no port gets any.
    pub(crate) keys: Option<Arc<Keys>>,
    /// By switch and port, who was there last of those that do not answer now.
    pub(crate) silent_hosts: Arc<BTreeMap<(Guid, PortNum), Guid>>,
    /// The lane that is management's alone, if one is.
    pub(crate) management: Option<u8>,
    /// What routing has learned from traffic.
    pub(crate) learned: Learned,
    /// Its virtualised adapters.
    pub(crate) adapters: Adapters,
    /// The routing in force.
    pub(crate) routed: Routed,
    /// Other managers were seen that may come into charge, or are: who is behind a machine's port is looked at before it is written.
    pub(crate) is_contested: bool,
}

impl FoundNode {
    pub(crate) fn is_switch(&self) -> bool {
        self.info.node_type == NodeType::Switch
    }

    pub(crate) fn guid(&self) -> Guid {
        self.info.node_guid
    }

    pub(crate) fn port(&self, port: PortNum) -> Option<&FoundPort> {
        self.ports.get(usize::from(port.0))
    }

    pub(crate) fn port_mut(&mut self, port: PortNum) -> Option<&mut FoundPort> {
        self.ports.get_mut(usize::from(port.0))
    }
}

impl FoundPort {
    /// Whether it has a trained link.
    pub(crate) fn is_up(&self) -> bool {
        self.info.as_ref().is_some_and(is_up)
    }

    pub(crate) fn state(&self) -> PortState {
        self.info.map_or(PortState::Down, |info| info.port_state)
    }
}

/// Whether a port has a trained link.
pub(crate) fn is_up(info: &PortInfo) -> bool {
    info.port_physical_state == PhysState::LinkUp && info.port_state != PortState::Down
}

impl Subnet {
    /// Sorts what was found, leaves out what fell silent, and finds the shortest way to everything.
    pub(crate) fn new(mut found: Vec<FoundNode>, own: Option<PortAt>) -> Self {
        silence_unreachable(&mut found, own);
        let mut order: Vec<u32> = (0..found.len() as u32).collect();
        order.sort_by_key(|at| found[*at as usize].guid());
        let mut builder = FabricBuilder::new();
        // Where each found node went; `None` for what is left out.
        let mut place: Vec<Option<u32>> = vec![None; found.len()];
        for at in order {
            let node = &found[at as usize];
            if !node.silent {
                place[at as usize] = builder.add_node(graph_node(node)).ok().map(|index| index.0);
            }
        }
        let mut subnet = Self::default();
        let moved = |end: PortAt| Some(PortAt { node: (*place.get(end.node as usize)?)?, port: end.port });
        let mut nodes: Vec<(u32, FoundNode)> =
            found.into_iter().zip(&place).filter_map(|(node, place)| Some(((*place)?, node))).collect();
        nodes.sort_by_key(|(place, _)| *place);
        subnet.nodes = nodes.into_iter().map(|(_, node)| node).collect();
        subnet.own = own.and_then(moved);
        subnet.by_guid = (0..).zip(&subnet.nodes).map(|(at, node)| (node.guid(), at)).collect();
        for node in &mut subnet.nodes {
            for port in &mut node.ports {
                let before = port.peer;
                port.peer = before.and_then(moved);
                // Who is behind it has fallen silent.
                port.silent |= before.is_some() && port.peer.is_none();
            }
        }
        subnet.connect(&mut builder);
        subnet.fabric = builder.build();
        subnet.find_paths();
        subnet
    }

    /// Ports with a link behind which nothing answered.
    pub(crate) fn silent_ports(&self) -> impl Iterator<Item = PortAt> {
        self.iter().flat_map(|(node, found)| {
            let ports = (0u8..=u8::MAX).map(PortNum).zip(&found.ports);
            let silent = ports.filter(|(_, port)| port.silent && port.is_up());
            silent.map(move |(port, _)| PortAt { node, port })
        })
    }

    /// How many cabled ports are in service.
    pub(crate) fn ports_active(&self) -> u32 {
        self.cabled_ports().filter(|(_, port, _)| port.state() == PortState::Active).count() as u32
    }

    pub(crate) fn node(&self, at: u32) -> Option<&FoundNode> {
        self.nodes.get(at as usize)
    }

    /// The GUID of the node at this place; 0 where there is none.
    pub(crate) fn guid(&self, at: u32) -> Guid {
        self.node(at).map_or(Guid(0), FoundNode::guid)
    }

    pub(crate) fn port(&self, at: PortAt) -> Option<&FoundPort> {
        self.node(at.node)?.port(at.port)
    }

    pub(crate) fn port_mut(&mut self, at: PortAt) -> Option<&mut FoundPort> {
        self.nodes.get_mut(at.node as usize)?.port_mut(at.port)
    }

    /// The nodes with their places.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u32, &FoundNode)> {
        (0..).zip(&self.nodes)
    }

    /// The switches with their places.
    pub(crate) fn switches(&self) -> impl Iterator<Item = (u32, &FoundNode)> {
        self.iter().filter(|(_, node)| node.is_switch())
    }

    /// All ports that can have a LID, in order of (GUID, port).
    pub(crate) fn end_ports(&self) -> impl Iterator<Item = (PortAt, &FoundPort)> {
        self.iter().flat_map(|(at, node)| {
            let is_switch = node.is_switch();
            (0u8..=u8::MAX).map(PortNum).zip(&node.ports).filter_map(move |(number, port)| {
                let wanted = (number == PortNum::ZERO) == is_switch && (is_switch || port.path.is_some());
                wanted.then_some((PortAt { node: at, port: number }, port))
            })
        })
    }

    /// All cabled ports, in order of (GUID, port).
    pub(crate) fn cabled_ports(&self) -> impl Iterator<Item = (PortAt, &FoundPort, PortAt)> {
        self.iter().flat_map(|(at, node)| {
            (0u8..=u8::MAX)
                .map(PortNum)
                .zip(&node.ports)
                .filter_map(move |(number, port)| Some((PortAt { node: at, port: number }, port, port.peer?)))
        })
    }

    /// How to reach this port.
    pub(crate) fn path(&self, at: PortAt) -> Option<DirectedPath> {
        let node = self.node(at.node)?;
        if node.is_switch() { Some(node.path) } else { node.port(at.port)?.path }
    }

    /// The port GUID of an end port.
    pub(crate) fn end_guid(&self, at: PortAt) -> Guid {
        let Some(node) = self.node(at.node) else { return Guid(0) };
        if node.is_switch() { node.info.port_guid } else { node.port(at.port).map_or(Guid(0), |p| p.guid) }
    }

    /// The GUID of the slot that a virtual function's port is in, whatever the GUID of the port: that of the vSwitch, and its port there.
    /// It is the GUID of the function that was there first, which is derived in the same way.
    pub(crate) fn place_guid(&self, at: PortAt) -> Option<Guid> {
        /// A vSwitch's ports to the fabric and to the physical function are before those to virtual functions, of which the first
        /// has a GUID one step above the vSwitch's.
        const BEFORE_FUNCTIONS: u64 = 2;
        let slot = self.port(at)?.peer?;
        let vswitch = self.node(slot.node).filter(|node| node.is_switch())?.guid();
        let steps = u64::from(slot.port.0).checked_sub(BEFORE_FUNCTIONS)?;
        Some(Guid(vswitch.0.wrapping_add(steps << 32)))
    }

    /// Whether the end port that a port belongs to takes no Set of this manager's.
    pub(crate) fn is_locked(&self, at: PortAt) -> bool {
        let is_switch = self.node(at.node).is_some_and(FoundNode::is_switch);
        let end = if is_switch { PortAt { port: PortNum::ZERO, ..at } } else { at };
        self.port(end).is_some_and(|port| port.locked)
    }

    /// Cables the graph; a cable that the graph does not take is left out on both sides.
    fn connect(&mut self, builder: &mut FabricBuilder) {
        let cables: Vec<_> = self.cabled_ports().map(|(at, _, peer)| (at, peer)).collect();
        for (a, b) in cables.into_iter().filter(|(a, b)| a <= b) {
            if builder.connect(graph_port(a), graph_port(b)).is_err() {
                for end in [a, b] {
                    if let Some(port) = self.port_mut(end) {
                        port.peer = None;
                    }
                }
            }
        }
    }

    /// Takes a cable out. `now` has what ports say that have noticed; an end that has not is taken for down too.
    pub(crate) fn disconnect(&mut self, a: PortAt, b: PortAt, now: &BTreeMap<PortAt, PortInfo>) {
        for at in [a, b] {
            let Some(port) = self.port_mut(at) else { continue };
            port.peer = None;
            port.info = now.get(&at).copied().or(port.info.map(|info| PortInfo {
                port_state: PortState::Down,
                port_physical_state: PhysState::Polling,
                ..info
            }));
        }
        self.fabric.disconnect(graph_port(a));
    }

    /// Puts a cable back.
    pub(crate) fn reconnect(&mut self, a: PortAt, b: PortAt, now: &BTreeMap<PortAt, PortInfo>) {
        for (at, peer) in [(a, b), (b, a)] {
            let Some(port) = self.port_mut(at) else { continue };
            (port.peer, port.info, port.silent) = (Some(peer), now.get(&at).copied().or(port.info), false);
        }
        let rate = now.get(&a).map(LinkRate::active).unwrap_or_default();
        self.fabric.reconnect(graph_port(a), graph_port(b), rate);
    }

    /// Shortest directed routes, first ports first: discovery came by whichever route answered first. Says whether they lead
    /// to all nodes.
    pub(crate) fn find_paths(&mut self) -> bool {
        let Some(own) = self.own else { return false };
        let mut seen = vec![false; self.nodes.len()];
        let mut todo = VecDeque::new();
        let Some(first) = self.nodes.get_mut(own.node as usize) else { return false };
        first.path = DirectedPath::HERE;
        let from_switch = first.is_switch();
        if let Some(port) = first.port_mut(own.port) {
            port.path = Some(DirectedPath::HERE);
        }
        seen[own.node as usize] = true;
        if from_switch {
            todo.push_back(own.node);
        } else {
            self.step_to(own, DirectedPath::HERE, &mut seen, &mut todo);
        }
        while let Some(at) = todo.pop_front() {
            let Some(node) = self.node(at) else { continue };
            let (path, count) = (node.path, node.info.num_ports);
            for port in 1..=count {
                self.step_to(PortAt { node: at, port: PortNum(port) }, path, &mut seen, &mut todo);
            }
        }
        seen.into_iter().all(|seen| seen)
    }

    fn step_to(&mut self, from: PortAt, path: DirectedPath, seen: &mut [bool], todo: &mut VecDeque<u32>) {
        let Some(peer) = self.port(from).and_then(|port| port.peer) else { return };
        let Some(path) = path.then(from.port) else { return };
        let Some(node) = self.nodes.get_mut(peer.node as usize) else { return };
        let new = !std::mem::replace(&mut seen[peer.node as usize], true);
        if new {
            node.path = path;
        }
        if node.is_switch() {
            if new {
                todo.push_back(peer.node);
            }
        } else if let Some(port) = node.port_mut(peer.port)
            && port.path != Some(DirectedPath::HERE)
        {
            port.path = Some(path);
        }
    }
}

/// Marks what can be reached only through nodes that fell silent. From the own node, if it is no switch, only the
/// own port leads anywhere: SMPs that the manager sends leave there.
fn silence_unreachable(found: &mut [FoundNode], own: Option<PortAt>) {
    let mut reached = vec![false; found.len()];
    let mut todo: Vec<u32> = own.map(|own| own.node).into_iter().collect();
    while let Some(at) = todo.pop() {
        let Some(node) = found.get(at as usize).filter(|node| !node.silent) else { continue };
        if std::mem::replace(&mut reached[at as usize], true) {
            continue;
        }
        if node.is_switch() {
            todo.extend(node.ports.iter().filter_map(|port| Some(port.peer?.node)));
        } else if let Some(own) = own.filter(|own| own.node == at) {
            todo.extend(node.port(own.port).and_then(|port| Some(port.peer?.node)));
        }
    }
    for (node, reached) in found.iter_mut().zip(reached) {
        node.silent |= !reached;
    }
}

pub(crate) fn graph_port(at: PortAt) -> PortRef {
    PortRef::new(NodeIndex(at.node), at.port)
}

fn graph_node(found: &FoundNode) -> Node {
    let info = &found.info;
    let mut node = Node::new(info.node_type, info.node_guid, info.num_ports, LinkRate::default());
    node.description.clone_from(&found.description);
    node.system_image_guid = info.system_image_guid;
    node.vendor_id = info.vendor_id;
    node.device_id = info.device_id;
    node.enhanced_port0 = found.switch.is_some_and(|switch| switch.enhanced_port0);
    let is_switch = found.is_switch();
    for (port, known) in node.ports.iter_mut().zip(&found.ports) {
        if is_switch {
            port.guid = info.port_guid;
        } else if known.path.is_some() {
            port.guid = known.guid;
        }
        if let Some(now) = &known.info {
            // Both ends of a link say the same, so both ends allow it.
            port.link = LinkRate::active(now);
            port.enabled = port.link.enabled();
            (port.lid, port.lmc) = (now.lid, now.lmc);
        }
    }
    node
}

/// The LID of a port, where it has one.
pub(crate) fn own_lid(port: &FoundPort) -> Option<Lid> {
    port.info.map(|info| info.lid).filter(|lid| lid.is_unicast())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(node_type: NodeType, guid: u64, peers: &[Option<(u32, u8)>]) -> FoundNode {
        let port = |peer: &Option<(u32, u8)>| FoundPort {
            peer: peer.map(|(node, port)| PortAt { node, port: PortNum(port) }),
            ..FoundPort::default()
        };
        let num_ports = peers.len() as u8;
        FoundNode {
            info: NodeInfo { node_type, node_guid: Guid(guid), num_ports, ..NodeInfo::default() },
            description: String::new(),
            switch: None,
            path: DirectedPath::HERE,
            ports: std::iter::once(FoundPort::default()).chain(peers.iter().map(port)).collect(),
            silent: false,
        }
    }

    /// The manager's HCA is cabled to a switch by each of its ports; the switch at the manager's own port fell
    /// silent, so nothing leads to the other one.
    #[test]
    fn only_the_own_port_leads_away_from_the_own_hca() {
        for (own_port, silent) in [(1, [false, true, true]), (2, [false, true, false])] {
            let mut found = vec![
                node(NodeType::Hca, 1, &[Some((1, 1)), Some((2, 1))]),
                node(NodeType::Switch, 2, &[Some((0, 1)), Some((2, 2))]),
                node(NodeType::Switch, 3, &[Some((0, 2)), Some((1, 2))]),
            ];
            found[1].silent = true;
            silence_unreachable(&mut found, Some(PortAt { node: 0, port: PortNum(own_port) }));
            let after: Vec<bool> = found.iter().map(|node| node.silent).collect();
            assert_eq!(after, silent, "own port {own_port}");
        }
    }
}
