//! A scripted fabric: it answers SMPs as a correct one would, from one big state, at once. It shares no code with
//! the device machine, so that a misunderstanding on one side shows.
#![allow(unreachable_pub, dead_code, missing_docs)]

use std::collections::{BTreeMap, BTreeSet};

use weft_machine::{Machine, Time};
use weft_sm::{Event, GuidToLid, Input, Options, Output, SubnetManager, Summary};
use weft_topology::{Fabric, NodeIndex, PortRef};
use weft_wire::*;

/// From a request to its answer.
pub const ROUND_TRIP: Time = Time::from_micros(100);

pub struct Device {
    pub on: bool,
    pub switch: SwitchInfo,
    pub lft: Vec<PortNum>,
    pub ports: Vec<PortInfo>,
    pub sl_to_vl: BTreeMap<(u8, u8), [u8; 64]>,
    pub arbitration: BTreeMap<u32, [u8; 64]>,
}

pub struct Fake {
    pub fabric: Fabric,
    pub devices: Vec<Device>,
    pub own: PortRef,
    /// Cables that are cut.
    pub cut: BTreeSet<PortRef>,
    /// How many Sets reached whom, by attribute.
    pub sets: BTreeMap<AttributeId, u64>,
    /// SMPs that came by LID.
    pub by_lid: u64,
    /// Every so many SMPs one is lost; 0 is none.
    pub lose_every: u64,
    pub seen: u64,
    pub optimized: bool,
    /// Nodes that give another GUID than their own.
    pub alias: BTreeMap<NodeIndex, Guid>,
    trap_id: u64,
}

impl Fake {
    pub fn new(fabric: Fabric, own: PortRef) -> Self {
        let mut fake = Self {
            devices: Vec::new(),
            fabric,
            own,
            cut: BTreeSet::new(),
            sets: BTreeMap::new(),
            by_lid: 0,
            lose_every: 0,
            seen: 0,
            optimized: true,
            alias: BTreeMap::new(),
            trap_id: 0,
        };
        for index in 0..fake.fabric.nodes().len() {
            let device = fake.fresh(NodeIndex(index as u32));
            fake.devices.push(device);
        }
        fake
    }

    fn fresh(&self, index: NodeIndex) -> Device {
        let node = self.fabric.node(index);
        let mut ports = Vec::new();
        for number in 0..node.ports.len() {
            let up = node.ports[number].peer.is_some() || number == 0;
            ports.push(PortInfo {
                local_port_num: PortNum(number as u8),
                capability_mask: capability::IS_SL_MAPPING_SUPPORTED,
                port_state: if up && number > 0 {
                    PortState::Initialize
                } else if up {
                    PortState::Active
                } else {
                    PortState::Down
                },
                port_physical_state: if up { PhysState::LinkUp } else { PhysState::Polling },
                vl_cap: VlCap::Vl0To7,
                mtu_cap: Mtu::Bytes4096,
                neighbor_mtu: Mtu::Bytes256,
                operational_vls: VlCap::Vl0,
                vl_arbitration_low_cap: 8,
                vl_arbitration_high_cap: 8,
                link_width_active: 2,
                link_speed_active: 4,
                ..PortInfo::default()
            });
        }
        let switch = SwitchInfo {
            linear_fdb_cap: 49152,
            port_state_change: true,
            optimized_sl_to_vl_mapping: u8::from(self.optimized),
            ..SwitchInfo::default()
        };
        let lft = vec![PortNum::NONE; 49152];
        Device { on: true, switch, lft, ports, sl_to_vl: BTreeMap::new(), arbitration: BTreeMap::new() }
    }

    pub fn sets_of(&self, attribute: AttributeId) -> u64 {
        self.sets.get(&attribute).copied().unwrap_or(0)
    }

    /// The other end of a working cable.
    pub fn far_end(&self, port: PortRef) -> Option<PortRef> {
        let peer = self.fabric.peer(port)?;
        let works = self.devices[peer.node.index()].on
            && self.devices[port.node.index()].on
            && !self.cut.contains(&port)
            && !self.cut.contains(&peer);
        works.then_some(peer)
    }

    fn set_link(&mut self, port: PortRef, up: bool) {
        let device = &mut self.devices[port.node.index()];
        let info = &mut device.ports[usize::from(port.port.0)];
        (info.port_state, info.port_physical_state) = if up {
            (PortState::Initialize, PhysState::LinkUp)
        } else {
            (PortState::Down, PhysState::Polling)
        };
        device.switch.port_state_change = true;
    }

    /// Power off. The neighbours notice.
    pub fn kill(&mut self, index: NodeIndex) -> Vec<PortRef> {
        let neighbours: Vec<_> = self.neighbours(index);
        self.devices[index.index()].on = false;
        for port in &neighbours {
            self.set_link(*port, false);
        }
        neighbours
    }

    /// Power on, with nothing kept. The neighbours notice.
    pub fn restart(&mut self, index: NodeIndex) -> Vec<PortRef> {
        self.devices[index.index()] = self.fresh(index);
        let mut neighbours = Vec::new();
        for number in 1..self.fabric.node(index).ports.len() {
            let here = PortRef::new(index, PortNum(number as u8));
            match self.far_end(here) {
                Some(port) => {
                    self.set_link(port, true);
                    neighbours.push(port);
                }
                None => self.set_link(here, false),
            }
        }
        neighbours
    }

    pub fn cut(&mut self, port: PortRef) -> [PortRef; 2] {
        let peer = self.far_end(port).unwrap();
        self.cut.insert(port);
        self.set_link(port, false);
        self.set_link(peer, false);
        [port, peer]
    }

    pub fn mend(&mut self, port: PortRef) -> [PortRef; 2] {
        self.cut.remove(&port);
        let peer = self.far_end(port).unwrap();
        self.set_link(port, true);
        self.set_link(peer, true);
        [port, peer]
    }

    fn neighbours(&self, index: NodeIndex) -> Vec<PortRef> {
        let ports = 1..self.fabric.node(index).ports.len();
        ports.filter_map(|n| self.far_end(PortRef::new(index, PortNum(n as u8)))).collect()
    }

    /// Trap 128 of the switch with this port, if it has a way to the manager.
    pub fn trap(&mut self, port: PortRef) -> Option<AddressedMad> {
        let device = &self.devices[port.node.index()];
        let (lid, to) = (device.ports[0].lid, device.ports[0].master_sm_lid);
        if !self.fabric.node(port.node).is_switch() || !device.on || !to.is_unicast() {
            return None;
        }
        let arrived = self.walk_lid(PortRef::new(port.node, PortNum(0)), to)?;
        assert_eq!(arrived.node, self.own.node);
        self.trap_id += 1;
        let mut mad = Mad::default();
        Smp::base_version.set(&mut mad.0, 1);
        Smp::mgmt_class.set(&mut mad.0, MgmtClass::SubnLid);
        Smp::class_version.set(&mut mad.0, 1);
        Smp::method.set(&mut mad.0, Method::Trap);
        Smp::attribute_id.set(&mut mad.0, AttributeId::Notice);
        Smp::transaction_id.set(&mut mad.0, TransactionId(self.trap_id));
        let notice = Notice::generic(NodeType::Switch, lid, &Details::link_state_change(lid));
        mad.set_smp_data(&notice.to_smp_data());
        Some(AddressedMad::smp(lid, mad))
    }

    /// Follows forwarding tables to whoever has the LID.
    pub fn walk_lid(&self, from: PortRef, lid: Lid) -> Option<PortRef> {
        let mut at = from;
        for _ in 0..64 {
            let node = self.fabric.node(at.node);
            let device = &self.devices[at.node.index()];
            let end = if node.is_switch() { 0 } else { usize::from(at.port.0) };
            if device.ports[end].lid == lid {
                return Some(at);
            }
            let out = if node.is_switch() {
                if lid.0 > device.switch.linear_fdb_top {
                    return None;
                }
                device.lft[usize::from(lid.0)]
            } else if at == from {
                at.port
            } else {
                return None;
            };
            at = self.far_end(PortRef::new(at.node, out))?;
        }
        None
    }

    /// Follows a directed route; answers have the same way back.
    fn walk_directed(&self, mad: &Mad) -> Option<PortRef> {
        let path = DirectedSmp::initial_path.get(&mad.0);
        let hops = usize::from(DirectedSmp::hop_count.get(&mad.0));
        let mut at = self.own;
        for hop in 1..=hops {
            let node = self.fabric.node(at.node);
            if hop > 1 && !node.is_switch() || usize::from(path[hop].0) >= node.ports.len() {
                return None;
            }
            at = self.far_end(PortRef::new(at.node, path[hop]))?;
        }
        Some(at)
    }

    pub fn answer(&mut self, request: &AddressedMad) -> Option<AddressedMad> {
        self.seen += 1;
        if self.lose_every > 0 && self.seen % self.lose_every == 0 {
            return None;
        }
        if request.mad.method() == Method::TrapRepress {
            return None;
        }
        let at = if request.mad.is_directed() {
            self.walk_directed(&request.mad)?
        } else {
            self.by_lid += 1;
            let at = self.walk_lid(self.own, request.lid)?;
            let back = PortRef::new(
                at.node,
                if self.fabric.node(at.node).is_switch() { PortNum(0) } else { at.port },
            );
            self.walk_lid(back, self.devices[self.own.node.index()].ports[usize::from(self.own.port.0)].lid)?;
            at
        };
        let mut answer = *request;
        let status = self.execute(at, &mut answer.mad);
        Smp::method.set(&mut answer.mad.0, Method::GetResp);
        let direction = if answer.mad.is_directed() { status::DIRECTION } else { 0 };
        Smp::status.set(&mut answer.mad.0, status | direction);
        Some(answer)
    }

    fn execute(&mut self, at: PortRef, mad: &mut Mad) -> u16 {
        let set = mad.method() == Method::Set;
        if set {
            *self.sets.entry(mad.attribute_id()).or_default() += 1;
        }
        let modifier = mad.attribute_modifier();
        let node = self.fabric.node(at.node).clone();
        let optimized = self.optimized;
        let device = &mut self.devices[at.node.index()];
        match mad.attribute_id() {
            AttributeId::NodeInfo => mad.set_smp_data(
                &NodeInfo {
                    node_type: node.kind,
                    num_ports: node.port_count(),
                    node_guid: self.alias.get(&at.node).copied().unwrap_or(node.guid),
                    system_image_guid: node.system_image_guid,
                    port_guid: node.ports[if node.is_switch() { 0 } else { usize::from(at.port.0) }].guid,
                    local_port_num: at.port,
                    ..NodeInfo::default()
                }
                .encode(),
            ),
            AttributeId::NodeDescription => {
                mad.set_smp_data(&NodeDescription::new(&node.description).encode())
            }
            AttributeId::SwitchInfo if node.is_switch() => {
                if set {
                    let wanted = SwitchInfo::decode(mad.smp_attribute());
                    device.switch.port_state_change &= !wanted.port_state_change;
                    device.switch.linear_fdb_top = wanted.linear_fdb_top;
                    device.switch.life_time_value = wanted.life_time_value;
                }
                mad.set_smp_data(&device.switch.encode());
            }
            AttributeId::PortInfo => {
                let number = if node.is_switch() { modifier as usize & 0xff } else { usize::from(at.port.0) };
                let Some(info) = device.ports.get_mut(number) else { return status::BAD_VALUE };
                if set && !set_port(info, &PortInfo::decode(mad.smp_attribute())) {
                    return status::BAD_VALUE;
                }
                mad.set_smp_data(&info.encode());
            }
            AttributeId::LinearForwardingTable if node.is_switch() => {
                let first = modifier as usize * 64;
                let Some(block) = device.lft.get_mut(first..first + 64) else { return status::BAD_VALUE };
                let table = LinearForwardingTable::decode(mad.smp_attribute());
                if set {
                    block.copy_from_slice(&table.ports);
                }
                let ports = std::array::from_fn(|i| block[i]);
                mad.set_smp_data(&LinearForwardingTable { ports }.encode());
            }
            AttributeId::SlToVlTable => {
                let ports = 0..=node.port_count();
                let one = |number: u32| (number & 0xff) as u8..=(number & 0xff) as u8;
                if modifier & 0x30000 != 0 && !optimized {
                    return status::BAD_VALUE;
                }
                let inputs = if modifier & 0x20000 != 0 { ports.clone() } else { one(modifier >> 8) };
                let outputs = if modifier & 0x10000 != 0 { ports } else { one(modifier) };
                let mut last = [0; 64];
                for input in inputs {
                    for output in outputs.clone() {
                        let table = device.sl_to_vl.entry((input, output)).or_insert([0; 64]);
                        if set {
                            *table = *mad.smp_data();
                        }
                        last = *table;
                    }
                }
                mad.set_smp_data(&last);
            }
            AttributeId::VlArbitrationTable => {
                let table = device.arbitration.entry(modifier).or_insert([0; 64]);
                if set {
                    *table = *mad.smp_data();
                }
                let table = *table;
                mad.set_smp_data(&table);
            }
            _ => return status::BAD_METHOD_ATTRIBUTE,
        }
        status::OK
    }
}

/// A correct port takes over what it is told, and moves from Initialize to Armed to Active only.
fn set_port(info: &mut PortInfo, wanted: &PortInfo) -> bool {
    let state = match (info.port_state, wanted.port_state) {
        (now, PortState::NoChange) => now,
        (PortState::Initialize, PortState::Armed) | (PortState::Armed, PortState::Active) => {
            wanted.port_state
        }
        _ => return false,
    };
    let (physical, mask) = (info.port_physical_state, info.capability_mask);
    *info = PortInfo { port_state: state, port_physical_state: physical, capability_mask: mask, ..*wanted };
    true
}

pub type Lie = Box<dyn FnMut(&mut AddressedMad)>;

/// The manager, the fabric, and what is on its way between them.
pub struct World {
    pub fake: Fake,
    pub sm: SubnetManager,
    pub now: Time,
    pub events: Vec<(Time, Event)>,
    pub persisted: Option<GuidToLid>,
    pub sent: u64,
    /// Changes answers on their way.
    pub lie: Option<Lie>,
    /// What will arrive, by time and order.
    arriving: BTreeMap<(Time, u64), AddressedMad>,
    sequence: u64,
}

impl World {
    pub fn new(fake: Fake, options: Options, guid2lid: &GuidToLid) -> Self {
        let mut world = Self {
            sm: SubnetManager::new(options, guid2lid),
            fake,
            now: Time::ZERO,
            events: Vec::new(),
            persisted: None,
            sent: 0,
            lie: None,
            arriving: BTreeMap::new(),
            sequence: 0,
        };
        world.attach();
        world
    }

    pub fn attach(&mut self) {
        let own = self.fake.own;
        let node = self.fake.fabric.node(own.node);
        let port_guid = node.port(own.port).unwrap().guid;
        let input = Input::Attached { node_guid: node.guid, port_guid, port: own.port };
        self.sm.handle_input(self.now, input);
        self.drain();
    }

    /// Puts another manager in the first one's place.
    pub fn restart_sm(&mut self, options: Options, guid2lid: &GuidToLid) {
        self.sm = SubnetManager::new(options, guid2lid);
        self.arriving.clear();
        self.events.clear();
        self.fake.sets.clear();
        self.attach();
    }

    pub fn deliver(&mut self, delay: Time, mad: AddressedMad) {
        self.sequence += 1;
        self.arriving.insert((self.now + delay, self.sequence), mad);
    }

    pub fn traps(&mut self, ports: &[PortRef]) {
        for port in ports {
            if let Some(trap) = self.fake.trap(*port) {
                self.deliver(ROUND_TRIP, trap);
            }
        }
    }

    pub fn command(&mut self, input: Input) {
        self.sm.handle_input(self.now, input);
        self.drain();
    }

    fn drain(&mut self) {
        while let Some(output) = self.sm.poll_output() {
            match output {
                Output::Send(mad) => {
                    self.sent += 1;
                    if let Some(mut answer) = self.fake.answer(&mad) {
                        if let Some(lie) = &mut self.lie {
                            lie(&mut answer);
                        }
                        self.deliver(ROUND_TRIP, answer);
                    }
                }
                Output::Event(event) => self.events.push((self.now, event)),
                Output::Persist(known) => self.persisted = Some(known),
            }
        }
    }

    /// Goes on to the next thing that happens; false when that is later than `until`.
    fn step(&mut self, until: Time) -> bool {
        let arrival = self.arriving.keys().next().map(|(at, _)| *at);
        let Some(next) = [arrival, self.sm.poll_timeout()].into_iter().flatten().min() else { return false };
        if next > until {
            return false;
        }
        self.now = self.now.max(next);
        match arrival {
            Some(at) if at <= self.now => {
                let (_, mad) = self.arriving.pop_first().unwrap();
                self.sm.handle_input(self.now, Input::Receive(mad));
            }
            _ => self.sm.handle_timeout(self.now),
        }
        self.drain();
        true
    }

    pub fn run_for(&mut self, span: Time) {
        let until = self.now + span;
        let mut steps = 0u64;
        while self.step(until) {
            steps += 1;
            assert!(steps < 10_000_000, "no end in sight");
        }
        self.now = until;
    }

    pub fn summaries(&self) -> Vec<&Summary> {
        self.events
            .iter()
            .filter_map(|(_, event)| match event {
                Event::SubnetUp(summary) => Some(summary),
                _ => None,
            })
            .collect()
    }

    pub fn last_summary(&self) -> &Summary {
        self.summaries().last().copied().unwrap_or_else(|| panic!("never up: {:#?}", self.events))
    }

    /// All cabled ports Active, every end port has one LID of its own, and every pair that is connected reaches.
    pub fn check(&self) {
        self.check_with("");
    }

    pub fn check_with(&self, what: &str) {
        let fabric = &self.fake.fabric;
        let mut lids = BTreeMap::new();
        let mut ends = Vec::new();
        let alive = self.reachable();
        for (index, node) in fabric.iter().filter(|(index, _)| alive.contains(index)) {
            for (number, _) in node.end_ports() {
                let end = PortRef::new(index, number);
                if !node.is_switch() && self.fake.far_end(end).is_none() {
                    continue;
                }
                let lid = self.fake.devices[index.index()].ports[usize::from(number.0)].lid;
                assert!(lid.is_unicast(), "{what}: {} has no LID", fabric.port_name(end));
                assert_eq!(lids.insert(lid, end), None, "{what}: LID {lid} twice");
                ends.push((end, lid));
            }
            for (number, _) in node.external_ports() {
                let here = PortRef::new(index, number);
                if self.fake.far_end(here).is_some() {
                    let state = self.fake.devices[index.index()].ports[usize::from(number.0)].port_state;
                    assert_eq!(state, PortState::Active, "{what}: {}", fabric.port_name(here));
                }
            }
        }
        for (from, _) in &ends {
            for (to, lid) in &ends {
                let arrived = self.fake.walk_lid(*from, *lid);
                assert_eq!(
                    arrived.map(|at| at.node),
                    Some(to.node),
                    "{what}: {} to {}",
                    fabric.port_name(*from),
                    fabric.port_name(*to)
                );
            }
        }
    }

    /// What has a physical way to the manager.
    pub fn reachable(&self) -> BTreeSet<NodeIndex> {
        let mut seen = BTreeSet::from([self.fake.own.node]);
        let mut todo = vec![self.fake.own.node];
        while let Some(index) = todo.pop() {
            if index != self.fake.own.node && !self.fake.fabric.node(index).is_switch() {
                continue;
            }
            for port in self.fake.neighbours(index) {
                if seen.insert(port.node) {
                    todo.push(port.node);
                }
            }
        }
        seen
    }
}
