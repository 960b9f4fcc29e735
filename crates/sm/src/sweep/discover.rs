//! Discovery: everything that the manager knows of the fabric it has asked for along directed routes.
//!
//! ```text
//! NodeInfo ─▶ new node ─▶ NodeDescription
//!    ▲                 ├▶ switch: SwitchInfo ─▶ clear PortStateChange ─▶ PortInfo of every port
//!    │                 └▶ HCA: PortInfo of the port that was reached
//!    └── every port that has a link and whose other end is not known yet
//! ```
//!
//! PortStateChange is cleared before the ports are read, so that a change after the reading is seen by the next
//! look at it. Cables are asked over from one end only: an answer names the port that it was received by.

mod again;
mod keys;
mod managers;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use weft_mgmt::{DirectedPath, SmpRoute};
use weft_topology::{NODES_MAX, PORTS_MAX, PORTS_PER_NODE_MAX};
use weft_wire::{
    AttributeId, Guid, MKey, Mad, NodeDescription, NodeInfo, PortInfo, PortNum, PortState, SmInfo, SmState,
    SwitchInfo, capability, status,
};

use super::settings::claimed;
use crate::election::Peer;
use crate::knowledge::{FoundNode, FoundPort, Key, PortAt, Subnet, is_up};
use crate::requests::{Ask, Step};
use crate::requests::{Get, Set, SmpRequest};
use crate::{Event, Options};

/// Where the cables were when the last sweep ended, to tell cables that are gone from nodes that are slow.
#[derive(Clone, Debug, Default)]
pub(crate) struct Cabling {
    peers: BTreeMap<(Guid, PortNum), (Guid, PortNum)>,
    /// An end of a cable whose other end says that it is gone.
    gone: Option<(Guid, PortNum)>,
}

/// The settings of a discovery.
#[derive(Clone, Debug, Default)]
pub(crate) struct Settings {
    /// The port that the manager is behind, by its number and its GUID.
    pub(crate) own_port: PortNum,
    pub(crate) own_guid: Guid,
    /// Whether to clear PortStateChange. A survey leaves everything as it is.
    pub(crate) clear: bool,
    /// Whether it is not known yet who is in charge. Then PortStateChange is cleared only on switches that say that no one
    /// else is, so that a master does not miss a change, and a master that is found ends the discovery.
    pub(crate) candidate: bool,
    /// Whether to ask other managers who they are.
    pub(crate) ask_managers: bool,
    /// The M_Key that every end port is to have, with its protection; a survey gives none.
    pub(crate) claim: Option<Options>,
}

/// A discovery under way.
#[derive(Debug, Default)]
pub(crate) struct Discover {
    settings: Settings,
    before: Cabling,
    nodes: Vec<FoundNode>,
    by_guid: BTreeMap<Guid, u32>,
    /// Ports of HCAs by GUID, so that two with one GUID are noticed.
    by_port_guid: BTreeMap<Guid, PortAt>,
    own: Option<PortAt>,
    /// The subnet of which this discovers a part again.
    before_again: Option<Box<Subnet>>,
    /// Switches that say that another manager is, or was, in charge.
    managed: BTreeSet<u32>,
    /// Whether any of them has a change to tell, which is left for that manager.
    pub(crate) has_left_changes: bool,
    /// Other managers.
    pub(crate) managers: Vec<Peer>,
    todo: VecDeque<Key>,
    ports: usize,
    too_large: bool,
    /// Nodes of the last sweep behind ports where no one answered in this one.
    missing: Vec<Guid>,
    /// Where nodes fell silent; nothing behind them is asked any more.
    dead_ends: Vec<DirectedPath>,
    pub(crate) unanswered: u32,
    /// Questions answered with an error.
    pub(crate) refused: u32,
    pub(crate) events: Vec<Event>,
}

impl Cabling {
    pub(crate) fn of(subnet: &Subnet, gone: Option<PortAt>) -> Self {
        let name = |at: PortAt| Some((subnet.node(at.node)?.guid(), at.port));
        let peers = subnet.cabled_ports().filter_map(|(at, _, peer)| Some((name(at)?, name(peer)?)));
        Self { peers: peers.collect(), gone: gone.and_then(name) }
    }
}

impl Discover {
    pub(crate) fn new(settings: Settings, before: Cabling) -> Self {
        Self { settings, before, todo: VecDeque::from([Key::NodeInfo(None)]), ..Self::default() }
    }

    /// What was found. Call it when the step is done.
    pub(crate) fn finish(self) -> Subnet {
        Subnet::new(self.nodes, self.own)
    }

    /// The manager's own port, once it has answered.
    pub(crate) fn own_port_info(&self) -> Option<&PortInfo> {
        let own = self.own?;
        self.node(own.node)?.port(own.port)?.info.as_ref()
    }

    /// Whether the manager is on a switch, which has no link of its own.
    pub(crate) fn is_on_switch(&self) -> bool {
        self.own.is_some_and(|own| own.port == PortNum::ZERO)
    }

    /// How many nodes have answered: switches and others.
    pub(crate) fn counts(&self) -> (u32, u32) {
        let switches = self.nodes.iter().filter(|node| node.is_switch()).count() as u32;
        (switches, self.nodes.len() as u32 - switches)
    }

    fn node(&self, at: u32) -> Option<&FoundNode> {
        self.nodes.get(at as usize)
    }

    fn port(&self, at: PortAt) -> Option<&FoundPort> {
        self.node(at.node)?.port(at.port)
    }

    fn port_mut(&mut self, at: PortAt) -> Option<&mut FoundPort> {
        self.nodes.get_mut(at.node as usize)?.port_mut(at.port)
    }

    /// By which way the request goes; `None` when there is no way or no need any more.
    fn route(&mut self, key: Key) -> Option<DirectedPath> {
        let path = match key {
            Key::NodeInfo(None) => Some(DirectedPath::HERE),
            Key::NodeInfo(Some(from)) => self.probe_path(from),
            Key::NodeDescription(at) | Key::SwitchInfo(at) | Key::ClearChange(at) => {
                self.node(at).filter(|node| !node.silent).map(|node| node.path)
            }
            Key::PortInfo(at) | Key::SmInfo(at) | Key::Claim(at) => {
                let node = self.node(at.node).filter(|node| !node.silent)?;
                if node.is_switch() { Some(node.path) } else { node.port(at.port)?.path }
            }
            _ => None,
        }?;
        if self.dead_ends.iter().any(|dead| path.ports().starts_with(dead.ports())) {
            self.silence(key);
            return None;
        }
        Some(path)
    }

    /// The way over the cable in `from`, if that is still worth asking.
    fn probe_path(&mut self, from: PortAt) -> Option<DirectedPath> {
        let node = self.node(from.node).filter(|node| !node.silent)?;
        let port = node.port(from.port).filter(|port| port.peer.is_none())?;
        let (guid, path, state) = (node.guid(), node.path, port.state());
        // A link that has not been down since the last sweep leads where it led.
        if let Some((peer, peer_port)) = self.before.peers.get(&(guid, from.port))
            && matches!(state, PortState::Armed | PortState::Active)
        {
            let end = self.by_guid.get(peer).map(|at| PortAt { node: *at, port: *peer_port });
            let other_end = end.and_then(|end| self.port(end)?.info);
            let gone = self.before.gone == Some((guid, from.port));
            if gone || self.missing.contains(peer) || other_end.is_some_and(|info| !is_up(&info)) {
                self.mark_silent(from);
                return None;
            }
        }
        let path = path.then(from.port);
        if path.is_none() {
            self.events.push(Event::nonsense(guid, AttributeId::NodeInfo));
        }
        path
    }

    fn mark_silent(&mut self, at: PortAt) {
        if let Some(port) = self.port_mut(at) {
            port.silent = true;
        }
    }

    /// Notes who did not answer.
    fn silence(&mut self, key: Key) {
        match key {
            Key::NodeInfo(None) => {}
            Key::NodeInfo(Some(from)) => self.mark_silent(from),
            Key::NodeDescription(at) | Key::SwitchInfo(at) | Key::ClearChange(at) => self.silence_node(at),
            Key::PortInfo(at) | Key::SmInfo(at) => self.silence_node(at.node),
            _ => {}
        }
    }

    fn silence_node(&mut self, at: u32) {
        if let Some(node) = self.nodes.get_mut(at as usize)
            && !std::mem::replace(&mut node.silent, true)
            && node.is_switch()
        {
            self.dead_ends.push(node.path);
        }
    }

    fn found_node(&mut self, from: Option<PortAt>, info: &NodeInfo) {
        let Some(path) = self.path_over(from) else { return };
        let is_switch = info.node_type == weft_wire::NodeType::Switch;
        let at_port = match from {
            None if is_switch => PortNum::ZERO,
            None => self.settings.own_port,
            Some(_) => info.local_port_num,
        };
        let ports = 1..=info.num_ports;
        let sane = info.node_guid != Guid(0)
            && info.port_guid != Guid(0)
            && info.num_ports <= PORTS_PER_NODE_MAX
            && !ports.is_empty()
            && (ports.contains(&at_port.0) || (from.is_none() && is_switch));
        if !sane {
            let attribute = AttributeId::NodeInfo;
            return self.events.push(Event::nonsense(info.node_guid, attribute));
        }
        let Some(at) = self.known_or_new(info, path) else { return };
        let here = PortAt { node: at, port: at_port };
        let linked = from.is_none_or(|from| self.link(from, here));
        if linked && !is_switch {
            self.reach_port(here, info.port_guid, path);
        }
        if from.is_none() {
            self.own = Some(here);
        }
    }

    fn path_over(&self, from: Option<PortAt>) -> Option<DirectedPath> {
        match from {
            None => Some(DirectedPath::HERE),
            Some(from) => self.node(from.node)?.path.then(from.port),
        }
    }

    /// The node's place; `None` when it is somebody else with a GUID that is taken, or one too many.
    fn known_or_new(&mut self, info: &NodeInfo, path: DirectedPath) -> Option<u32> {
        if let Some(at) = self.by_guid.get(&info.node_guid).copied() {
            let known = self.node(at)?;
            let same = known.info.node_type == info.node_type
                && known.info.num_ports == info.num_ports
                && known.info.system_image_guid == info.system_image_guid;
            if !same {
                let (guid, first) = (info.node_guid, known.path);
                self.events.push(Event::duplicate_guid(guid, first.ports(), path.ports()));
            }
            return same.then_some(at);
        }
        let count = usize::from(info.num_ports) + 1;
        if self.nodes.len() >= NODES_MAX || self.ports + count > PORTS_MAX {
            if !std::mem::replace(&mut self.too_large, true) {
                self.events.push(Event::TooLarge { nodes_max: NODES_MAX as u32 });
            }
            return None;
        }
        self.ports += count;
        let at = self.nodes.len() as u32;
        self.by_guid.insert(info.node_guid, at);
        let ports = vec![FoundPort::default(); count];
        let (description, switch, silent) = (String::new(), None, false);
        self.nodes.push(FoundNode { info: *info, description, switch, path, ports, silent });
        self.todo.push_back(Key::NodeDescription(at));
        if info.node_type == weft_wire::NodeType::Switch {
            // Its port 0 says first who is in charge.
            let port_0 = Key::PortInfo(PortAt { node: at, port: PortNum::ZERO });
            self.todo.push_back(if self.settings.candidate { port_0 } else { Key::SwitchInfo(at) });
        }
        Some(at)
    }

    /// Notes a cable; false when one of its ends has another cable already.
    fn link(&mut self, a: PortAt, b: PortAt) -> bool {
        let guid = |at: PortAt| self.node(at.node).map_or(Guid(0), FoundNode::guid);
        if a == b {
            self.events.push(Event::PortToItself { guid: guid(a).into(), port: a.port });
            return false;
        }
        let (peer_a, peer_b) = (self.port(a).and_then(|p| p.peer), self.port(b).and_then(|p| p.peer));
        if peer_a.is_some_and(|peer| peer != b) || peer_b.is_some_and(|peer| peer != a) {
            let first = self.node(b.node).map_or(DirectedPath::HERE, |node| node.path);
            if let Some(second) = self.path_over(Some(a)) {
                self.events.push(Event::duplicate_guid(guid(b), first.ports(), second.ports()));
            }
            return false;
        }
        for (here, there) in [(a, b), (b, a)] {
            if let Some(port) = self.port_mut(here) {
                port.peer = Some(there);
            }
        }
        true
    }

    /// An HCA's port was reached: it is an end of its own, asked along its own way.
    fn reach_port(&mut self, at: PortAt, guid: Guid, path: DirectedPath) {
        let owner = *self.by_port_guid.entry(guid).or_insert(at);
        if owner != at {
            let first = self.port(owner).and_then(|port| port.path).unwrap_or_default();
            self.events.push(Event::duplicate_guid(guid, first.ports(), path.ports()));
            return;
        }
        if let Some(port) = self.port_mut(at)
            && port.path.is_none()
        {
            (port.guid, port.path) = (guid, Some(path));
            self.todo.push_back(Key::PortInfo(at));
        }
    }

    fn found_switch(&mut self, at: u32, info: SwitchInfo) {
        let is_others = self.settings.candidate && self.managed.contains(&at);
        let clear = self.settings.clear && info.port_state_change && !is_others;
        self.has_left_changes |= info.port_state_change && is_others;
        if let Some(node) = self.nodes.get_mut(at as usize) {
            node.switch = Some(info);
        }
        if clear {
            self.todo.push_back(Key::ClearChange(at));
        } else {
            self.ask_ports(at);
        }
    }

    fn ask_ports(&mut self, at: u32) {
        let count = self.node(at).map_or(0, |node| node.info.num_ports);
        self.todo.extend(Key::ports(at, count));
    }

    fn found_port(&mut self, at: PortAt, info: PortInfo) {
        let own = self.own == Some(at);
        let Some(node) = self.node(at.node) else { return };
        let forwards = node.is_switch() && at.port != PortNum::ZERO || own && !node.is_switch();
        let manager = !own
            && self.settings.ask_managers
            && info.capability_mask & capability::IS_SM != 0
            && self.node(at.node).is_some_and(|node| !node.is_switch() || at.port == PortNum::ZERO);
        if let Some(port) = self.port_mut(at) {
            port.info = Some(info);
        }
        if self.is_foreign(at, &info) && self.settings.candidate {
            // It may be the key of who is in charge.
            self.has_left_changes = true;
        } else if self.is_foreign(at, &info) {
            self.todo.push_back(Key::Claim(at));
        }
        self.ask_switch(at);
        if forwards && is_up(&info) && self.port(at).is_some_and(|port| port.peer.is_none()) {
            self.todo.push_back(Key::NodeInfo(Some(at)));
        }
        if manager {
            self.todo.push_back(Key::SmInfo(at));
        }
    }

    fn refused(&mut self, key: Key, answer: &Mad) {
        let guid = match key {
            Key::NodeInfo(from) => from.map(|from| from.node),
            Key::NodeDescription(at) | Key::SwitchInfo(at) | Key::ClearChange(at) => Some(at),
            Key::PortInfo(at) | Key::SmInfo(at) | Key::Claim(at) => Some(at.node),
            _ => None,
        };
        let guid = guid.and_then(|at| self.node(at)).map_or(Guid(0), FoundNode::guid);
        // A manager that has just gone leaves a node behind that knows nothing of managers.
        self.refused += u32::from(!matches!(key, Key::SmInfo(_)));
        let (attribute, modifier) = (answer.attribute_id(), answer.attribute_modifier());
        self.events.push(Event::refused(guid, attribute, modifier, answer.status()));
    }
}

impl Step for Discover {
    fn next(&mut self) -> Option<Ask> {
        while let Some(key) = self.todo.pop_front() {
            let Some(path) = self.route(key) else { continue };
            let request = match key {
                Key::NodeInfo(_) => SmpRequest::get(Get::NodeInfo, 0),
                Key::NodeDescription(_) => SmpRequest::get(Get::NodeDescription, 0),
                Key::SwitchInfo(_) => SmpRequest::get(Get::SwitchInfo, 0),
                Key::PortInfo(at) => SmpRequest::get(Get::PortInfo, u32::from(at.port.0)),
                Key::SmInfo(_) => SmpRequest::get(Get::SmInfo, 0),
                Key::ClearChange(at) => {
                    let Some(info) = self.node(at).and_then(|node| node.switch) else { continue };
                    SmpRequest::clear_change(info)
                }
                Key::Claim(at) => {
                    let info = self.port(at).and_then(|port| port.info).zip(self.settings.claim.as_ref());
                    let Some((info, options)) = info else { continue };
                    let wanted = claimed(info, options).encode();
                    SmpRequest::set(Set::PortInfo, u32::from(at.port.0), &wanted)
                }
                _ => continue,
            };
            return Some(Ask { key, route: SmpRoute::Directed(path), request });
        }
        None
    }

    fn m_key(&self, key: Key) -> Option<MKey> {
        let Key::Claim(at) = key else { return None };
        // At level 0 a port shows its key to whoever asks, so that a manager can take it over (IBA 14.2.4.1).
        self.port(at)?.info.map(|info| info.m_key).filter(|m_key| *m_key != MKey(0))
    }

    fn answered(&mut self, key: Key, answer: &Mad) {
        if answer.status() != status::OK {
            self.refused(key, answer);
            match key {
                // A switch that cannot clear the bit can still be read.
                Key::ClearChange(at) => self.ask_ports(at),
                Key::PortInfo(at) => self.ask_switch(at),
                _ => {}
            }
            return;
        }
        match key {
            Key::NodeInfo(from) => self.found_node(from, &NodeInfo::decode(answer.smp_attribute())),
            Key::NodeDescription(at) => {
                if let Some(node) = self.nodes.get_mut(at as usize) {
                    node.description = NodeDescription::decode(answer.smp_attribute()).to_text();
                }
            }
            Key::SwitchInfo(at) => self.found_switch(at, SwitchInfo::decode(answer.smp_attribute())),
            Key::ClearChange(at) => self.ask_ports(at),
            Key::PortInfo(at) => self.found_port(at, PortInfo::decode(answer.smp_attribute())),
            Key::Claim(at) => {
                if let Some(port) = self.port_mut(at) {
                    port.info = Some(PortInfo::decode(answer.smp_attribute()));
                }
            }
            Key::SmInfo(at) => self.found_manager(at, &SmInfo::decode(answer.smp_attribute())),
            _ => {}
        }
    }

    fn is_over(&self) -> bool {
        let in_charge = |peer: &Peer| peer.state == SmState::Master;
        self.settings.candidate && self.managers.iter().any(in_charge)
    }

    fn written(&self, key: Key) -> Vec<(Guid, Key)> {
        let node = match key {
            Key::ClearChange(at) => self.node(at),
            Key::Claim(at) => self.node(at.node),
            _ => None,
        };
        node.map(|node| (node.guid(), written_by(key))).into_iter().collect()
    }

    fn failed(&mut self, key: Key) {
        if let Key::SmInfo(_) = key {
            return; // No one is behind the port any more; that is no fault of the node.
        }
        match key {
            Key::Claim(at) => return self.lock(at),
            // A switch with another M_Key takes no Set, and can still be read.
            Key::ClearChange(at) if self.settings.claim.is_some() => return self.ask_ports(at),
            _ => {}
        }
        if let Key::NodeInfo(Some(from)) = key
            && let Some(guid) = self.node(from.node).map(FoundNode::guid)
        {
            self.events.push(Event::PortSilent { guid: guid.into(), port: from.port });
            self.missing.extend(self.before.peers.get(&(guid, from.port)).map(|(peer, _)| *peer));
        } else {
            self.unanswered += 1;
        }
        self.silence(key);
    }
}

/// What a Set has written, as it is read back.
fn written_by(key: Key) -> Key {
    if let Key::Claim(at) = key { Key::PortInfo(at) } else { key }
}
