//! Writes tables, and the LIDs of switches: only what differs from what the devices are known to hold.
//!
//! ```text
//! our own port ─▶ port 0 of every switch ─▶ P_Keys ─▶ per switch: changed LFT blocks, SwitchInfo ─▶ SLtoVL ─▶ VL arbitration
//!                                                                                                      └─ SLtoVL's exceptions
//! ```
//!
//! A switch's common SLtoVL mapping goes to all its ports, so the ports that are to have another
//! one get it when that has been answered: SMPs may overtake each other.
//!
//! After this step packets find their way by LID, so everything that follows may go by LID.

mod p_keys;
mod turns;
mod write;

use std::collections::{BTreeMap, BTreeSet};

use weft_machine::Time;
use weft_mgmt::{DirectedPath, SmpRoute};
use weft_routing::BLOCK_ENTRIES;
use weft_topology::NodeIndex;
use weft_wire::{
    Guid, Lid, LinearForwardingTable, Mad, PortInfo, PortNum, SlToVlTable, SwitchInfo, VirtualLane, status,
};

use super::partitions::p_key_modifier;
use super::settings::{ALL_INPUTS, Lanes, Wanted, sl_to_vl_modifier};
use crate::knowledge::{Held, Key, Layouts, PortAt, Subnet};
use crate::requests::{Ask, Step};
use crate::requests::{Guard, Seen, SmpRequest};
use crate::{Event, Options};
use p_keys::KeyWrites;
use turns::Turns;
use write::{EVERYWHERE, Write};

/// Tables being written.
#[derive(Debug, Default)]
pub(crate) struct Program {
    pub(crate) subnet: Subnet,
    /// What the devices hold when all writes succeed; what fails is taken out again.
    pub(crate) held: Vec<Held>,
    options: Options,
    pub(crate) sm_lid: Lid,
    plan: Vec<Write>,
    next: usize,
    /// Mappings of ports that differ from what their switch's common one has just made them; the plan's end.
    exceptions: Vec<Write>,
    /// Where they begin in the plan.
    exceptions_from: usize,
    /// Common mappings that have not been answered.
    common_in_flight: u32,
    /// Looks before P_Keys are written, and those that may be, by their places in the plan.
    guard: Guard,
    cleared: Vec<u32>,
    keys: KeyWrites,
    turns: Turns,
    pub(crate) unanswered: u32,
    /// Errors in answers.
    pub(crate) refused: u32,
    /// Ports behind which somebody else was.
    pub(crate) others: u32,
    pub(crate) events: Vec<Event>,
}

impl Program {
    /// Everything that differs.
    pub(crate) fn new(
        now: Time,
        subnet: Subnet,
        held: Vec<Held>,
        layouts: &Layouts,
        options: &Options,
    ) -> Self {
        let mut program = Self::nothing(subnet, held, options);
        program.plan_ports();
        program.plan_all_p_keys(now, layouts);
        program.plan_forwarding();
        program.plan_sl_to_vl();
        program.plan_arbitration();
        program.planned()
    }

    /// The same when all that differs is known: what may not be written goes, and the order is given.
    fn planned(mut self) -> Self {
        self.leave_locked();
        self.give_turns();
        self.exceptions_from = self.plan.len();
        self.plan.append(&mut self.exceptions);
        self
    }

    /// These blocks of forwarding tables, by node and number, as far as they differ.
    pub(crate) fn of_blocks(
        subnet: Subnet,
        held: Vec<Held>,
        blocks: &BTreeSet<(u32, u16)>,
        options: &Options,
    ) -> Self {
        let mut program = Self::nothing(subnet, held, options);
        let routing = program.subnet.routed.routing();
        for (node, block) in blocks {
            let Some(table) = routing.and_then(|routing| routing.routes.table(NodeIndex(*node))) else {
                continue;
            };
            let Some(held) = program.held.get_mut(*node as usize) else { continue };
            let ports = table.block(*block);
            if held.lft_block(*block) != Some(&ports) {
                held.set_lft_block(*block, Some(ports));
                program.plan.push(Write::Lft { node: *node, block: *block });
            }
        }
        program.leave_locked();
        program.exceptions_from = program.plan.len();
        program
    }

    fn nothing(subnet: Subnet, held: Vec<Held>, options: &Options) -> Self {
        let own = subnet.own;
        let own_lid = own.and_then(|own| {
            let is_switch = subnet.node(own.node)?.is_switch();
            let end = if is_switch { PortAt { port: PortNum::ZERO, ..own } } else { own };
            subnet.port(end)?.lid
        });
        let sm_lid = own_lid.map_or(Lid(0), |lids| lids.min);
        let guard = Guard::of(&subnet, sm_lid);
        Self { subnet, held, options: options.clone(), sm_lid, guard, ..Self::default() }
    }

    /// Plans nothing for ports that would not take it.
    fn leave_locked(&mut self) {
        let subnet = &self.subnet;
        let locked = |write: &Write| subnet.is_locked(write.at());
        let plans = [&mut self.plan, &mut self.exceptions];
        let left: Vec<Write> =
            plans.into_iter().flat_map(|plan| plan.extract_if(.., |w| locked(w))).collect();
        left.into_iter().for_each(|write| self.forget(write));
    }

    /// How many writes there are.
    pub(crate) fn total(&self) -> usize {
        self.plan.len()
    }

    fn wanted(&self) -> Wanted<'_> {
        Wanted { subnet: &self.subnet, options: &self.options, sm_lid: self.sm_lid }
    }

    fn plan_ports(&mut self) {
        let own = self.subnet.own.filter(|own| own.port != PortNum::ZERO);
        let zero = self.subnet.switches().map(|(node, _)| PortAt { node, port: PortNum::ZERO });
        let ports: Vec<_> = own.into_iter().chain(zero).collect();
        let wanted = self.wanted();
        let writes: Vec<_> =
            ports.into_iter().filter(|at| wanted.port_info(*at).is_some()).map(Write::PortInfo).collect();
        self.plan.extend(writes);
    }

    fn plan_forwarding(&mut self) {
        let Some(routing) = self.subnet.routed.routing() else { return };
        let (routes, keeps_room) = (&routing.routes, self.subnet.adapters.space != Lid(0));
        for (node, found) in self.subnet.switches() {
            let (Some(table), Some(info)) = (routes.table(NodeIndex(node)), found.switch) else { continue };
            let Some(held) = self.held.get_mut(node as usize) else { continue };
            for (block, ports) in table.blocks() {
                // Blocks for machines that have yet to boot are empty already.
                let is_empty = held.blank && keeps_room && ports == [PortNum::NONE; BLOCK_ENTRIES];
                let is_held = held.lft_block(block).map_or(is_empty, |held| *held == ports);
                held.set_lft_block(block, Some(ports));
                if !is_held {
                    self.plan.push(Write::Lft { node, block });
                }
            }
            held.blank = false;
            let top = table.top().0;
            if held.top != top || info.life_time_value != self.options.lanes.packet_life_time & 0x1f {
                held.top = top;
                self.plan.push(Write::SwitchInfo { node, top });
            }
        }
    }

    /// One write for all ports where the switch can do that and they are alike; one per port or pair otherwise.
    fn plan_sl_to_vl(&mut self) {
        let mut by_node: BTreeMap<u32, Vec<(PortNum, Lanes)>> = BTreeMap::new();
        for (at, _, _) in self.subnet.cabled_ports() {
            let lanes = Lanes::of(&self.subnet, at, &self.options);
            if lanes.maps {
                by_node.entry(at.node).or_default().push((at.port, lanes));
            }
        }
        for (node, ports) in by_node {
            let Some(found) = self.subnet.node(node) else { continue };
            let optimized = found.switch.is_some_and(|info| info.optimized_sl_to_vl_mapping == 1);
            let inputs = if found.is_switch() { found.info.num_ports } else { 0 };
            let common = if optimized { self.plan_common_sl_to_vl(node, &ports) } else { None };
            for (port, lanes) in ports {
                let table = lanes.sl_to_vl();
                let at = PortAt { node, port };
                if Some(table) != common && !self.holds_sl_to_vl(at, table) {
                    self.set_sl_to_vl(at, table);
                    if optimized {
                        let modifier = ALL_INPUTS | u32::from(port.0);
                        self.exceptions.push(Write::SlToVl { at, modifier, lanes });
                    } else {
                        for input in 0..=inputs {
                            let modifier = sl_to_vl_modifier(&self.subnet, at, input);
                            self.plan.push(Write::SlToVl { at, modifier, lanes });
                        }
                    }
                }
            }
        }
    }

    /// Plans the mapping that most ports of a switch share as one write, and says which it is.
    fn plan_common_sl_to_vl(&mut self, node: u32, ports: &[(PortNum, Lanes)]) -> Option<[VirtualLane; 16]> {
        let mut counts: BTreeMap<[VirtualLane; 16], (usize, Lanes)> = BTreeMap::new();
        for (_, lanes) in ports {
            counts.entry(lanes.sl_to_vl()).or_insert((0, *lanes)).0 += 1;
        }
        let (common, (_, lanes)) = counts.into_iter().max_by_key(|(_, (count, _))| *count)?;
        let shares = |lanes: &Lanes| lanes.sl_to_vl() == common;
        let missing = ports.iter().find(|(port, lanes)| {
            shares(lanes) && !self.holds_sl_to_vl(PortAt { node, port: *port }, common)
        });
        if let Some((port, _)) = missing {
            let at = PortAt { node, port: *port };
            self.plan.push(Write::SlToVl { at, modifier: EVERYWHERE, lanes });
            let held = self.held.get_mut(node as usize)?;
            held.ports.iter_mut().for_each(|port| port.sl_to_vl = Some(common));
        }
        Some(common)
    }

    fn holds_sl_to_vl(&self, at: PortAt, table: [VirtualLane; 16]) -> bool {
        let held = self.held.get(at.node as usize).and_then(|held| held.port(at.port));
        held.is_some_and(|port| port.sl_to_vl == Some(table))
    }

    fn set_sl_to_vl(&mut self, at: PortAt, table: [VirtualLane; 16]) {
        if let Some(port) = self.held.get_mut(at.node as usize).and_then(|held| held.port_mut(at.port)) {
            port.sl_to_vl = Some(table);
        }
    }

    fn plan_arbitration(&mut self) {
        for (at, port, _) in self.subnet.cabled_ports() {
            let lanes = Lanes::of(&self.subnet, at, &self.options);
            let Some(held) = self.held.get_mut(at.node as usize).and_then(|h| h.port_mut(at.port)) else {
                continue;
            };
            for (block, bytes) in lanes.arbitration(port, &self.options) {
                if held.arbitration(block) != Some(&bytes) {
                    held.set_arbitration(block, Some(&bytes));
                    self.plan.push(Write::VlArbitration { at, block });
                }
            }
        }
    }

    /// The request for a write, and the way that it goes.
    fn request(&self, write: Write) -> Option<(DirectedPath, SmpRequest)> {
        let at = write.at();
        let path = self.subnet.path(at)?;
        let held = self.held.get(at.node as usize)?;
        let (kind, modifier) = (write.kind(), write.modifier());
        let request = match write {
            Write::PortInfo(at) => SmpRequest::set(kind, modifier, &self.wanted().port_info(at)?.encode()),
            Write::Lft { block, .. } => {
                let table = LinearForwardingTable { ports: *held.lft_block(block)? };
                SmpRequest::set(kind, modifier, &table.encode())
            }
            Write::SwitchInfo { node, top } => {
                let info = SwitchInfo {
                    linear_fdb_top: top,
                    life_time_value: self.options.lanes.packet_life_time & 0x1f,
                    port_state_change: false, // 0 leaves it as it is.
                    ..self.subnet.node(node)?.switch?
                };
                SmpRequest::set(kind, modifier, &info.encode())
            }
            Write::SlToVl { lanes, .. } => {
                let table = SlToVlTable { lanes: lanes.sl_to_vl() };
                SmpRequest::set(kind, modifier, &table.encode())
            }
            Write::PKeys { block, is_first, .. } => {
                let modifier = p_key_modifier(&self.subnet, at, block);
                SmpRequest::set(kind, modifier, self.p_keys(at, block, is_first)?)
            }
            Write::VlArbitration { block, .. } => {
                SmpRequest::set(kind, modifier, held.port(at.port)?.arbitration(block)?)
            }
        };
        Some((path, request))
    }

    /// The device does not hold what was to be written.
    fn forget(&mut self, write: Write) {
        let at = write.at();
        let Some(held) = self.held.get_mut(at.node as usize) else { return };
        match write {
            Write::PortInfo(_) => {}
            Write::Lft { block, .. } => held.set_lft_block(block, None),
            Write::SwitchInfo { .. } => held.top = 0,
            Write::SlToVl { .. } => held.ports.iter_mut().for_each(|port| port.sl_to_vl = None),
            Write::PKeys { block, is_first, .. } => self.forget_p_keys(at, block, is_first),
            Write::VlArbitration { block, .. } => {
                if let Some(port) = held.port_mut(at.port) {
                    port.set_arbitration(block, None);
                }
            }
        }
    }

    /// The request of the write at this place of the plan.
    fn ask(&mut self, place: u32) -> Option<Ask> {
        let write = self.plan.get(place as usize).copied()?;
        let (path, request) = self.request(write)?;
        self.common_in_flight += u32::from(write.is_common());
        Some(Ask { key: Key::Write(place), route: SmpRoute::Directed(path), request })
    }

    /// The port of the machine whose keys are written, where that is looked at before.
    fn machine(&self, write: Write) -> Option<PortAt> {
        let Write::PKeys { at, .. } = write else { return None };
        self.guard.machine(&self.subnet, at)
    }

    /// A look before writes has had an answer, or none.
    fn seen(&mut self, key: Key, answer: Option<&Mad>) {
        let (places, is_silent) = match self.guard.take(&self.subnet, key, answer) {
            Seen::Nothing => return,
            Seen::Same(_, places) => return self.cleared.extend(places),
            Seen::Other(places) => (places, false),
            Seen::Silent(places) => (places, true),
        };
        self.others += u32::from(!is_silent);
        for place in places {
            let Some(write) = self.plan.get(place as usize).copied() else { continue };
            if is_silent {
                self.is_silent(write);
            } else {
                self.forget(write);
            }
            self.done(place);
        }
    }

    fn is_silent(&mut self, write: Write) {
        self.unanswered += 1;
        self.forget(write);
        let (guid, (attribute, modifier)) = (self.subnet.guid(write.at().node), write.name());
        self.events.push(Event::unanswered(guid, attribute, modifier));
    }

    /// Whether the answer shows what was written, where that decides what comes next.
    fn confirms(&mut self, write: Write, answer: &Mad) -> bool {
        match write {
            Write::PortInfo(at) => {
                let info = PortInfo::decode(answer.smp_attribute());
                if let Some(port) = self.subnet.port_mut(at) {
                    port.info = Some(info);
                    port.reregister = false;
                }
                true
            }
            Write::Lft { node, block } => {
                let table = LinearForwardingTable::decode(answer.smp_attribute());
                let held = self.held.get(node as usize);
                held.and_then(|held| held.lft_block(block)) == Some(&table.ports)
            }
            Write::SwitchInfo { node, top } => {
                let info = SwitchInfo::decode(answer.smp_attribute());
                if let Some(found) = self.subnet.nodes.get_mut(node as usize) {
                    found.switch = Some(info);
                }
                info.linear_fdb_top == top
            }
            Write::SlToVl { at, .. } => {
                // A common mapping's answer is that of one pair of ports.
                if !write.is_common() {
                    self.set_sl_to_vl(at, SlToVlTable::decode(answer.smp_attribute()).lanes);
                }
                true
            }
            Write::PKeys { at, block, is_first } => {
                self.p_keys(at, block, is_first) == Some(answer.smp_data())
            }
            Write::VlArbitration { at, block } => {
                // A port may hold less than it says, and gets it again at a heavy sweep only.
                let held = self.held.get_mut(at.node as usize).and_then(|held| held.port_mut(at.port));
                if let Some(held) = held {
                    held.set_arbitration(block, Some(answer.smp_attribute()));
                }
                true
            }
        }
    }
}

impl Step for Program {
    fn next(&mut self) -> Option<Ask> {
        loop {
            if let Some(place) = self.cleared.pop() {
                let ask = self.ask(place);
                if ask.is_some() {
                    return ask;
                }
                self.done(place);
            } else if let Some((key, at, request)) = self.guard.next() {
                match self.subnet.path(at) {
                    Some(path) => return Some(Ask { key, route: SmpRoute::Directed(path), request }),
                    None => self.seen(key, None),
                }
            } else {
                let write = self.plan.get(self.next).copied()?;
                if self.next == self.exceptions_from && self.common_in_flight > 0 {
                    return None;
                }
                let place = self.next as u32;
                self.next += 1;
                if !self.turns.waits(place) {
                    self.begin(place, write);
                }
            }
        }
    }

    fn answered(&mut self, key: Key, answer: &Mad) {
        let Key::Write(at) = key else { return self.seen(key, Some(answer)) };
        let Some(write) = self.plan.get(at as usize).copied() else { return };
        self.common_in_flight -= u32::from(write.is_common());
        if answer.status() != status::OK || !self.confirms(write, answer) {
            self.refused += 1;
            self.forget(write);
            let (guid, (attribute, modifier)) = (self.subnet.guid(write.at().node), write.name());
            self.events.push(Event::refused(guid, attribute, modifier, answer.status()));
        }
        self.done(at);
    }

    fn written(&self, key: Key) -> Vec<(Guid, Key)> {
        let Key::Write(at) = key else { return Vec::new() };
        let Some(write) = self.plan.get(at as usize).copied() else { return Vec::new() };
        let guid = self.subnet.guid(write.at().node);
        write.read_back(&self.subnet).into_iter().map(|key| (guid, key)).collect()
    }

    fn failed(&mut self, key: Key) {
        let Key::Write(at) = key else { return self.seen(key, None) };
        let Some(write) = self.plan.get(at as usize).copied() else { return };
        self.common_in_flight -= u32::from(write.is_common());
        self.is_silent(write);
        self.done(at);
    }
}
