//! Looks whether anything changed, without discovering everything again.
//!
//! ```text
//! SwitchInfo of a switch ─▶ PortStateChange? ─▶ clear it ─▶ PortInfo of its ports ─▶ anything that we do not know?
//! PortInfo of every end   ─▶ as we left it?
//! some ports and tables   ─▶ as we wrote them? (`audit.rs`, `unconfirmed.rs`)
//! NodeInfo over ports that have a link but behind which no one answered ─▶ anybody now?
//! ```
//!
//! A port that went down whose cable is gone already, because the other end was quicker to say so, is no news:
//! the two ends of one cut cable lead to one sweep.

use std::collections::VecDeque;

use weft_machine::Time;
use weft_mgmt::{DirectedPath, SmpRoute};
use weft_wire::{
    Guid, Lid, LinearForwardingTable, Mad, NodeInfo, PortInfo, PortNum, SlToVlTable, SwitchInfo, VirtualLane,
    VlArbitrationTable, capability, status,
};

use super::activate::route_to;
use super::reading::{own_port, reading};
use super::settings::Wanted;
use crate::knowledge::{Changes, FoundNode, Key, LftBlock, Memory, PortAt, Subnet, VlBlock, is_up};
use crate::requests::{Ask, Step};
use crate::requests::{Get, SmpRequest};
use crate::{Options, Reason, SmpRouting};

/// A look at the fabric.
#[derive(Debug, Default)]
pub(crate) struct Check {
    pub(crate) subnet: Subnet,
    options: Options,
    /// Directed once a request by LID was not answered.
    smp_routing: SmpRouting,
    /// Where this manager is, when what it has written is compared with what it wants.
    sm_lid: Option<Lid>,
    todo: VecDeque<Key>,
    /// What devices hold as far as we know, when that is looked at.
    pub(crate) memory: Memory,
    /// When this began, and what was in doubt then that it reads back.
    pub(crate) began: Time,
    pub(crate) unconfirmed: Vec<(Guid, Key)>,
    /// A table that is not as we wrote it. The look goes on, so that all such are found.
    differs: Option<Reason>,
    /// Whether a switch's PortStateChange was cleared before all of its ports have been asked.
    has_cleared: bool,
    /// The far end of a cable that is gone, which may not have noticed.
    pub(crate) gone: Option<PortAt>,
    /// Why a heavy sweep is needed; the check ends with it.
    pub(crate) found: Option<Reason>,
    /// What a repair may do for, where there may be one. The look goes on, so that all of it is found.
    pub(crate) changes: Option<Changes>,
    /// Whether cables can be repaired.
    can_repair: bool,
}

impl Check {
    fn new(subnet: Subnet, options: &Options, todo: VecDeque<Key>) -> Self {
        Self {
            subnet,
            options: options.clone(),
            smp_routing: options.smps.smp_routing,
            todo,
            ..Self::default()
        }
    }

    /// The same, which takes down what can be done for: functions in slots, and cables where `can_repair`.
    pub(crate) fn for_repair(self, can_repair: bool) -> Self {
        Self { changes: Some(Changes::default()), can_repair, ..self }
    }

    /// After a heavy sweep: has any switch noticed something meanwhile?
    pub(crate) fn verify(subnet: Subnet, options: &Options) -> Self {
        let todo = subnet.switches().map(|(at, _)| Key::SwitchInfo(at)).collect();
        Self::new(subnet, options, todo)
    }

    /// From time to time: the same, whether every port still has its LID, and what was silent.
    pub(crate) fn light(subnet: Subnet, options: &Options) -> Self {
        let own = subnet.own.filter(|own| own.port != PortNum::ZERO).map(Key::PortInfo);
        let mut todo: VecDeque<_> = own.into_iter().collect();
        todo.extend(subnet.switches().map(|(at, _)| Key::SwitchInfo(at)));
        todo.extend(
            subnet.end_ports().map(|(at, _)| at).filter(|at| subnet.own != Some(*at)).map(Key::PortInfo),
        );
        todo.extend(subnet.silent_ports().map(|at| Key::NodeInfo(Some(at))));
        Self::new(subnet, options, todo)
    }

    /// The same, reading back what is in doubt and a part of everything else.
    pub(crate) fn with_read_back(
        mut self,
        began: Time,
        memory: Memory,
        sm_lid: Lid,
        unconfirmed: Vec<(Guid, Key)>,
        part: Vec<Key>,
    ) -> Self {
        // Of a node that is gone there is nothing to be read.
        let here = |(guid, key): &(Guid, Key)| Some(key.at_node(*self.subnet.by_guid.get(guid)?));
        self.todo.extend(unconfirmed.iter().filter_map(here));
        self.todo.extend(part);
        (self.began, self.memory, self.sm_lid, self.unconfirmed) = (began, memory, Some(sm_lid), unconfirmed);
        self
    }

    /// Whether nothing is lost if it is made again from the beginning.
    pub(crate) fn can_wait(&self) -> bool {
        let nothing_changes = self.changes.as_ref().is_none_or(Changes::is_empty);
        self.verdict().is_none() && nothing_changes && !self.has_cleared
    }

    /// Whether a device holds something else than it has acknowledged.
    pub(crate) fn has_read_otherwise(&self) -> bool {
        self.differs.is_some()
    }

    /// Why a heavy sweep is needed.
    pub(crate) fn verdict(&self) -> Option<Reason> {
        self.found.or(self.differs)
    }

    /// After traps: these nodes.
    pub(crate) fn look(subnet: Subnet, options: &Options, nodes: impl Iterator<Item = u32>) -> Self {
        let todo = nodes.map(Key::SwitchInfo).collect();
        Self::new(subnet, options, todo)
    }

    fn changed(&mut self, at: u32) {
        self.found = Some(Reason::StateChange { guid: self.subnet.guid(at) });
    }

    fn looked_at_switch(&mut self, at: u32, now: SwitchInfo) {
        let before = self.subnet.node(at).and_then(|node| node.switch);
        // A switch without the table that it was given has lost everything else too.
        let same = before.is_some_and(|before| {
            (before.linear_fdb_top, before.life_time_value) == (now.linear_fdb_top, now.life_time_value)
        });
        if !same || now.port_state_change && !self.options.sweeps.one_sweep_per_cable {
            return self.changed(at);
        }
        if now.port_state_change {
            self.todo.push_back(Key::ClearChange(at));
        }
    }

    fn looked_at_table(&mut self, at: u32, block: u16, now: &LftBlock) {
        let guid = self.subnet.guid(at);
        if let Some(held) = self.memory.get_mut(&guid)
            && held.lft_block(block) != Some(now)
        {
            held.set_lft_block(block, Some(*now));
            self.differs = Some(Reason::StateChange { guid });
        }
    }

    fn looked_at_lanes(&mut self, at: PortAt, now: &[VirtualLane; 16]) {
        let guid = self.subnet.guid(at.node);
        if let Some(port) = self.memory.get_mut(&guid).and_then(|held| held.port_mut(at.port))
            && port.sl_to_vl.as_ref() != Some(now)
        {
            port.sl_to_vl = Some(*now);
            self.differs = Some(Reason::StateChange { guid });
        }
    }

    fn looked_at_arbitration(&mut self, at: PortAt, block: VlBlock, now: &[u8; VlArbitrationTable::SIZE]) {
        let guid = self.subnet.guid(at.node);
        if let Some(port) = self.memory.get_mut(&guid).and_then(|held| held.port_mut(at.port))
            && port.arbitration(block) != Some(now)
        {
            port.set_arbitration(block, Some(now));
            self.differs = Some(Reason::StateChange { guid });
        }
    }

    fn looked_at_p_keys(&mut self, at: PortAt, block: u16, now: &[u8; 64]) {
        let guid = self.subnet.guid(at.node);
        if let Some(port) = self.memory.get_mut(&guid).and_then(|held| held.port_mut(at.port))
            && port.p_keys(block) != Some(now)
        {
            port.set_p_keys(block, Some(now));
            self.differs = Some(Reason::StateChange { guid });
        }
    }

    fn ask_ports(&mut self, at: u32) {
        let count = self.subnet.node(at).map_or(0, |node| node.info.num_ports);
        self.todo.extend(Key::ports(at, count));
    }

    /// Whether a port lacks anything that was set.
    fn lacks(&self, at: PortAt) -> bool {
        let Some(sm_lid) = self.sm_lid else { return false };
        Wanted { subnet: &self.subnet, options: &self.options, sm_lid }.port_info(at).is_some()
    }

    fn looked_at_port(&mut self, at: PortAt, now: PortInfo) {
        let own = self.subnet.own == Some(at);
        let Some(port) = self.subnet.port_mut(at) else { return };
        let is_sm = |info: PortInfo| info.capability_mask & capability::IS_SM != 0;
        let managers_differ = !own && port.info.is_some_and(|before| is_sm(before) != is_sm(now));
        let (was_up, before, peer) = (port.is_up(), port.state(), port.peer);
        let lid = port.info.map_or(Lid(0), |info| info.lid);
        let moved = if is_up(&now) {
            !was_up || now.port_state.code() < before.code()
        } else {
            self.gone = peer;
            peer.is_some() || own && was_up
        };
        // A node that has lost its LID, or was given another by somebody, has to be set again.
        let news = moved || now.lid != lid;
        // What it would not take when it was set is no news.
        let lacked = self.lacks(at);
        let Some(port) = self.subnet.port_mut(at) else { return };
        if managers_differ && !news {
            self.found = Some(Reason::Managers);
        } else if !news {
            port.info = Some(now);
            port.silent &= is_up(&now);
            if !lacked && self.lacks(at) {
                self.differs = Some(Reason::StateChange { guid: self.subnet.guid(at.node) });
            }
        } else if own {
            self.found = Some(Reason::OwnPort);
        } else if now.lid != lid || !self.can_repair(at, now) {
            self.changed(at.node);
        }
    }

    /// Takes down a port of a switch that went down or came up.
    fn can_repair(&mut self, at: PortAt, now: PortInfo) -> bool {
        let forwards =
            at.port != PortNum::ZERO && self.subnet.node(at.node).is_some_and(FoundNode::is_switch);
        let port = self.subnet.port(at).map(|port| (port.is_up(), port.peer.is_some()));
        let is_slot = forwards && self.subnet.is_slot(at);
        let may = forwards && self.can_repair || is_slot;
        let (Some(changes), true) = (&mut self.changes, may) else { return false };
        match port {
            // Something else was plugged in, or the same again.
            Some((_, true)) if is_up(&now) && is_slot => {
                changes.gone.insert(at, now);
                if changes.back.insert(at, now).is_none() {
                    self.todo.push_back(Key::NodeInfo(Some(at)));
                }
                true
            }
            Some((_, true)) if !is_up(&now) => {
                changes.gone.insert(at, now);
                true
            }
            Some((false, false)) if is_up(&now) => {
                if changes.back.insert(at, now).is_none() {
                    self.todo.push_back(Key::NodeInfo(Some(at)));
                }
                true
            }
            _ => false,
        }
    }

    /// Somebody answers behind a port.
    fn found_behind(&mut self, from: PortAt, info: NodeInfo) {
        let Some(changes) = self.changes.as_mut().filter(|changes| changes.back.contains_key(&from)) else {
            self.found = Some(Reason::Answer { guid: self.subnet.guid(from.node), port: from.port });
            return;
        };
        changes.behind.insert(from, info);
        if self.subnet.is_slot(from) {
            return;
        }
        self.todo.extend(changes.unread_end(&self.subnet, &info).map(Key::PortInfo));
    }
}

impl Step for Check {
    fn next(&mut self) -> Option<Ask> {
        while let Some(key) = self.todo.pop_front() {
            let (at, request) = match key {
                Key::ClearChange(node) if self.subnet.is_locked(own_port(node)) => {
                    self.ask_ports(node);
                    continue;
                }
                Key::ClearChange(node) => {
                    let Some(info) = self.subnet.node(node).and_then(|node| node.switch) else { continue };
                    self.has_cleared = true;
                    (own_port(node), SmpRequest::clear_change(info))
                }
                Key::NodeInfo(Some(from)) => {
                    let path = self.subnet.node(from.node).and_then(|node| node.path.then(from.port));
                    let Some(path) = path else { continue };
                    let request = SmpRequest::get(Get::NodeInfo, 0);
                    return Some(Ask { key, route: SmpRoute::Directed(path), request });
                }
                _ => {
                    let Some(reading) = reading(&self.subnet, key) else { continue };
                    reading
                }
            };
            if let Some(route) = route_to(&self.subnet, at, self.smp_routing) {
                return Some(Ask { key, route, request });
            }
        }
        None
    }

    fn answered(&mut self, key: Key, answer: &Mad) {
        let fine = answer.status() == status::OK;
        match key {
            Key::SwitchInfo(at) if fine => {
                self.looked_at_switch(at, SwitchInfo::decode(answer.smp_attribute()));
            }
            Key::ClearChange(at) if fine => self.ask_ports(at),
            Key::PortInfo(at) if fine => self.looked_at_port(at, PortInfo::decode(answer.smp_attribute())),
            Key::Lft { node, block } if fine => {
                self.looked_at_table(
                    node,
                    block,
                    &LinearForwardingTable::decode(answer.smp_attribute()).ports,
                );
            }
            Key::SlToVl(at, _) if fine => {
                self.looked_at_lanes(at, &SlToVlTable::decode(answer.smp_attribute()).lanes);
            }
            Key::PKeys(at, block) if fine => self.looked_at_p_keys(at, block, answer.smp_data()),
            Key::VlArbitration(at, block) if fine => {
                self.looked_at_arbitration(at, block, answer.smp_attribute());
            }
            Key::NodeInfo(Some(from)) if fine => {
                self.found_behind(from, NodeInfo::decode(answer.smp_attribute()));
            }
            // What cannot be looked into is taken as changed.
            Key::SwitchInfo(at) | Key::ClearChange(at) => self.changed(at),
            Key::PortInfo(at) => self.changed(at.node),
            _ => {}
        }
    }

    fn written(&self, key: Key) -> Vec<(Guid, Key)> {
        let Key::ClearChange(at) = key else { return Vec::new() };
        vec![(self.subnet.guid(at), key)]
    }

    fn failed(&mut self, key: Key) {
        // NodeInfo is about no node that is known: still no one is there.
        if let Some(node) = key.node() {
            self.found = Some(Reason::NoAnswer { guid: self.subnet.guid(node) });
        }
    }

    fn fallback(&mut self, key: Key) -> Option<DirectedPath> {
        self.smp_routing = SmpRouting::Directed;
        let at = match key {
            Key::ClearChange(node) => own_port(node),
            _ => reading(&self.subnet, key)?.0,
        };
        self.subnet.path(at)
    }

    fn is_over(&self) -> bool {
        self.found.is_some()
    }
}
