//! A scripted fabric: it answers SMPs as a correct one would, from one big state, at once. It shares no code with
//! the device machine, so that a misunderstanding on one side shows.
#![allow(unreachable_pub, dead_code, missing_docs)]

mod device;
mod world;

pub use device::Device;
pub use world::World;

use std::collections::{BTreeMap, BTreeSet};

use weft_machine::Time;
use weft_topology::{Fabric, NodeIndex, PortRef};
use weft_wire::*;

/// From a request to its answer.
pub const ROUND_TRIP: Time = Time::from_micros(100);

pub struct Fake {
    pub fabric: Fabric,
    pub devices: Vec<Device>,
    pub own: PortRef,
    /// Cables that are cut.
    pub cut: BTreeSet<PortRef>,
    /// How many Sets reached whom, by attribute.
    pub sets: BTreeMap<AttributeId, u64>,
    /// How many Sets of forwarding tables reached each switch.
    pub lft_sets: BTreeMap<NodeIndex, u64>,
    /// How many Gets and Sets of congestion control reached anybody.
    pub regulated: (u64, u64),
    /// SMPs that came by LID.
    pub by_lid: u64,
    /// Whether SMPs that come by LID are lost.
    pub lids_are_lost: bool,
    /// One SMP in this many is lost; 0 is none.
    pub lose_every: u64,
    pub seen: u64,
    /// The id of the last trap.
    pub trap_id: u64,
}

impl Fake {
    pub fn new(fabric: Fabric, own: PortRef) -> Self {
        let mut fake = Self {
            devices: Vec::new(),
            fabric,
            own,
            cut: BTreeSet::new(),
            sets: BTreeMap::new(),
            lft_sets: BTreeMap::new(),
            regulated: (0, 0),
            by_lid: 0,
            lids_are_lost: false,
            lose_every: 0,
            seen: 0,
            trap_id: 0,
        };
        for index in 0..fake.fabric.nodes().len() {
            let device = fake.fresh(NodeIndex(index as u32));
            fake.devices.push(device);
        }
        fake
    }

    fn fresh(&self, index: NodeIndex) -> Device {
        Device::fresh(self.fabric.node(index).clone(), true)
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

    pub fn set_link(&mut self, port: PortRef, up: bool) {
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

    /// The GUIDs of a node and of its first port, as the device has them.
    pub fn identity(&self, index: NodeIndex) -> (Guid, Guid) {
        let node = &self.devices[index.index()].node;
        (node.guid, node.ports[1].guid)
    }

    /// Power on under other GUIDs, with nothing kept. The neighbours notice.
    pub fn plug(&mut self, index: NodeIndex, (guid, port_guid): (Guid, Guid)) -> Vec<PortRef> {
        let neighbours = self.restart(index);
        let node = &mut self.devices[index.index()].node;
        (node.guid, node.ports[1].guid) = (guid, port_guid);
        neighbours
    }

    pub fn cut(&mut self, port: PortRef) -> [PortRef; 2] {
        let peer = self.far_end(port).expect("the cable works");
        self.cut.insert(port);
        self.set_link(port, false);
        self.set_link(peer, false);
        [port, peer]
    }

    /// A cable is gone, and no one has noticed yet.
    pub fn cut_unnoticed(&mut self, port: PortRef) -> [PortRef; 2] {
        let peer = self.far_end(port).expect("the cable works");
        self.cut.insert(port);
        [port, peer]
    }

    /// A device is gone, and its neighbours have not noticed yet.
    pub fn kill_unnoticed(&mut self, index: NodeIndex) -> Vec<PortRef> {
        let neighbours = self.neighbours(index);
        self.devices[index.index()].on = false;
        neighbours
    }

    /// A port notices that its link is gone.
    pub fn notice(&mut self, port: PortRef) {
        self.set_link(port, false);
    }

    pub fn mend(&mut self, port: PortRef) -> [PortRef; 2] {
        self.cut.remove(&port);
        let peer = self.far_end(port).expect("the cable works");
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
        for (hop, out) in path.iter().enumerate().take(hops + 1).skip(1) {
            let node = self.fabric.node(at.node);
            if hop > 1 && !node.is_switch() || usize::from(out.0) >= node.ports.len() {
                return None;
            }
            at = self.far_end(PortRef::new(at.node, *out))?;
        }
        Some(at)
    }

    pub fn answer(&mut self, request: &AddressedMad) -> Option<AddressedMad> {
        self.seen += 1;
        if self.lose_every > 0 && self.seen.is_multiple_of(self.lose_every) {
            return None;
        }
        if request.mad.method() == Method::TrapRepress {
            return None;
        }
        let at = if request.mad.is_directed() {
            self.walk_directed(&request.mad)?
        } else {
            self.by_lid += 1;
            if self.lids_are_lost {
                return None;
            }
            let at = self.walk_lid(self.own, request.lid)?;
            let back = PortRef::new(
                at.node,
                if self.fabric.node(at.node).is_switch() { PortNum(0) } else { at.port },
            );
            self.walk_lid(back, self.devices[self.own.node.index()].ports[usize::from(self.own.port.0)].lid)?;
            at
        };
        let mut answer = *request;
        let congestion = request.mad.class() == MgmtClass::CongestionControl;
        if congestion {
            let (gets, sets) = &mut self.regulated;
            *(if request.mad.method() == Method::Set { sets } else { gets }) += 1;
        } else if request.mad.method() == Method::Set {
            *self.sets.entry(request.mad.attribute_id()).or_default() += 1;
            let is_lft = request.mad.attribute_id() == AttributeId::LinearForwardingTable;
            *self.lft_sets.entry(at.node).or_default() += u64::from(is_lft);
        }
        let status = self.devices[at.node.index()].execute(at.port, &mut answer.mad);
        Smp::method.set(&mut answer.mad.0, Method::GetResp);
        let direction = if answer.mad.is_directed() { status::DIRECTION } else { 0 };
        Smp::status.set(&mut answer.mad.0, status | direction);
        Some(answer)
    }
}
