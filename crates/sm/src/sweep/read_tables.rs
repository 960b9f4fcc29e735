//! Reads the tables of devices that were configured by somebody else, or by this manager before it restarted.
//!
//! A device fresh from the factory is not read: everything is written anyway. Of a switch's SLtoVL mapping one
//! input per output is read, because managers write them alike for all inputs; the audit reads the others in time.

use std::collections::VecDeque;

use weft_mgmt::SmpRoute;
use weft_wire::{AttributeId, LinearForwardingTable, Mad, SlToVlTable, VlArbitrationTable, status};

use super::partitions;
use super::reading::reading;
use super::settings::{Lanes, vl_arbitration_modifier};
use crate::knowledge::{FoundPort, Held, HeldPort, Key, Memory, PortAt, Subnet, is_in_service, own_lid};
use crate::requests::{Ask, Step};
use crate::{Event, Options};

/// Tables being read.
#[derive(Debug)]
pub(crate) struct ReadTables {
    pub(crate) subnet: Subnet,
    pub(crate) held: Vec<Held>,
    todo: VecDeque<Key>,
    /// The ports of a change of P_Keys alone.
    pub(crate) key_ports: Vec<PortAt>,
    pub(crate) unanswered: u32,
    pub(crate) events: Vec<Event>,
}

impl ReadTables {
    /// Reads what is not known of the tables that this manager writes.
    pub(crate) fn new(subnet: Subnet, mut memory: Memory, options: &Options) -> Self {
        let mut todo = VecDeque::new();
        let mut held = Vec::with_capacity(subnet.nodes.len());
        for (at, node) in subnet.iter() {
            let (known, read) = Held::carry(memory.remove(&node.guid()), node);
            if read {
                todo.extend((0..=known.top / 64).map(|block| Key::Lft { node: at, block }));
            } else if known.top != 0 {
                // What was written and not acknowledged.
                let unknown = (0..=known.top / 64).filter(|block| known.lft_block(*block).is_none());
                todo.extend(unknown.map(|block| Key::Lft { node: at, block }));
            }
            held.push(known);
        }
        for (at, port, _) in subnet.cabled_ports().filter(|(_, port, _)| is_in_service(port)) {
            let Some(known) = held[at.node as usize].port(at.port) else { continue };
            let lanes = Lanes::of(&subnet, at, options);
            if known.sl_to_vl.is_none() && lanes.maps {
                todo.push_back(Key::SlToVl(at, 0));
            }
            for (block, _) in lanes.arbitration(port, options) {
                if known.arbitration(block).is_none() {
                    todo.push_back(Key::VlArbitration(at, block));
                }
            }
        }
        let ports = partitions::ports(&subnet, |_| true);
        todo.extend(unknown_p_keys(&subnet, &held, &ports, options));
        Self { subnet, held, todo, key_ports: Vec::new(), unanswered: 0, events: Vec::new() }
    }

    /// Reads what is not known of the P_Key tables of these ports.
    pub(crate) fn p_keys(subnet: Subnet, held: Vec<Held>, ports: Vec<PortAt>, options: &Options) -> Self {
        let todo = unknown_p_keys(&subnet, &held, &ports, options).into();
        Self { subnet, held, todo, key_ports: ports, unanswered: 0, events: Vec::new() }
    }

    /// Whether somebody configured the fabric before, of which this manager does not know.
    pub(crate) fn has_to_read(&self) -> bool {
        !self.todo.is_empty()
    }

    /// Reads no table at all.
    pub(crate) fn nothing(subnet: Subnet) -> Self {
        let held = subnet.nodes.iter().map(|node| Held::carry(None, node).0).collect();
        let (todo, key_ports) = (VecDeque::new(), Vec::new());
        Self { subnet, held, todo, key_ports, unanswered: 0, events: Vec::new() }
    }

    /// Reads every switch's forwarding table and nothing else.
    pub(crate) fn forwarding(subnet: Subnet) -> Self {
        let top = |node: &crate::knowledge::FoundNode| node.switch.map_or(0, |info| info.linear_fdb_top);
        let todo = subnet
            .switches()
            .filter(|(_, node)| top(node) != 0)
            .flat_map(|(at, node)| (0..=top(node) / 64).map(move |block| Key::Lft { node: at, block }))
            .collect();
        Self { todo, ..Self::nothing(subnet) }
    }
}

/// Blocks of these ports' P_Key tables that are written and not known. A port that has a LID may have lost its link and not its keys.
fn unknown_p_keys(subnet: &Subnet, held: &[Held], ports: &[PortAt], options: &Options) -> Vec<Key> {
    let mut unknown = Vec::new();
    for at in ports.iter().copied() {
        let has_keys = |port: &FoundPort| is_in_service(port) || own_lid(port).is_some();
        let known = held.get(at.node as usize).and_then(|held| held.port(at.port));
        let Some(known) = known.filter(|_| subnet.port(at).is_some_and(has_keys)) else { continue };
        let blocks = partitions::blocks(subnet, at, options);
        unknown
            .extend(blocks.filter(|block| known.p_keys(*block).is_none()).map(|block| Key::PKeys(at, block)));
    }
    unknown
}

impl ReadTables {
    fn port_mut(&mut self, at: PortAt) -> Option<&mut HeldPort> {
        self.held.get_mut(at.node as usize)?.port_mut(at.port)
    }

    /// A block of P_Keys is there and is not known.
    fn miss(&mut self, at: PortAt, block: u16) {
        if let Some(port) = self.port_mut(at) {
            port.miss_p_keys(block);
        }
    }
}

impl Step for ReadTables {
    fn next(&mut self) -> Option<Ask> {
        while let Some(key) = self.todo.pop_front() {
            let Some((at, request)) = reading(&self.subnet, key) else { continue };
            let Some(path) = self.subnet.path(at) else { continue };
            return Some(Ask { key, route: SmpRoute::Directed(path), request });
        }
        None
    }

    fn answered(&mut self, key: Key, answer: &Mad) {
        // What a device does not give stays unknown, and is written.
        if answer.status() != status::OK {
            if let Key::PKeys(at, block) = key
                && let Some(port) = self.port_mut(at)
            {
                port.set_p_keys(block, None);
            }
            return;
        }
        match key {
            Key::Lft { node, block } => {
                let table = LinearForwardingTable::decode(answer.smp_attribute());
                if let Some(held) = self.held.get_mut(node as usize) {
                    held.set_lft_block(block, Some(table.ports));
                }
            }
            Key::SlToVl(at, _) => {
                let table = SlToVlTable::decode(answer.smp_attribute());
                if let Some(port) = self.port_mut(at) {
                    port.sl_to_vl = Some(table.lanes);
                }
            }
            Key::PKeys(at, block) => {
                if let Some(port) = self.port_mut(at) {
                    port.set_p_keys(block, Some(answer.smp_data()));
                }
            }
            Key::VlArbitration(at, block) => {
                let bytes: &[u8; VlArbitrationTable::SIZE] = answer.smp_attribute();
                if let Some(port) = self.port_mut(at) {
                    port.set_arbitration(block, Some(bytes));
                }
            }
            _ => {}
        }
    }

    fn failed(&mut self, key: Key) {
        self.unanswered += 1;
        let (node, attribute, modifier) = match key {
            Key::Lft { node, block } => (node, AttributeId::LinearForwardingTable, u32::from(block)),
            Key::SlToVl(at, _) => (at.node, AttributeId::SlToVlTable, u32::from(at.port.0)),
            Key::VlArbitration(at, block) => {
                (at.node, AttributeId::VlArbitrationTable, vl_arbitration_modifier(at, block))
            }
            Key::PKeys(at, block) => return self.miss(at, block),
            _ => return,
        };
        if let Some(guid) = self.subnet.node(node).map(crate::knowledge::FoundNode::guid) {
            self.events.push(Event::unanswered(guid, attribute, modifier));
        }
        // Who does not answer one question will hardly answer the next ones.
        let (dropped, others): (VecDeque<Key>, _) =
            self.todo.drain(..).partition(|other| other.node() == Some(node));
        self.todo = others;
        for key in dropped {
            if let Key::PKeys(at, block) = key {
                self.miss(at, block);
            }
        }
    }
}
