//! The subnet as the last sweep left it, kept for answering while the next sweep works on it.

mod carried;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use weft_routing::ServiceLevels;
use weft_wire::{
    Gid, GidPrefix, Guid, Lid, Mtu, NodeDescription, NodeInfo, PathRate, PortInfo, PortNum, ServiceLevel,
    SwitchInfo, VirtualLane, status,
};

use super::ends::End;
use super::requesters::Requesters;
use crate::Options;
pub(super) use carried::Rates;

use crate::knowledge::{FoundNode, Keys, LftBlock, Memory, PortAt, Subnet};

/// More hops than this no packet takes: the tables lead in a circle.
const HOPS_MAX: usize = 64;

/// The subnet.
#[derive(Clone, Debug, Default)]
pub(super) struct View {
    /// End ports in order of LIDs.
    pub(super) ends: Vec<End>,
    /// Whose a LID is, by LID.
    by_lid: Vec<Option<u32>>,
    by_guid: BTreeMap<Guid, u32>,
    /// In the order of the subnet's nodes.
    nodes: Vec<Node>,
    /// The service level of every pair; `None` where all are alike.
    levels: Option<Arc<ServiceLevels>>,
    prefix: GidPrefix,
    /// Who has which P_Keys; `None` where all are in the default partition alone.
    pub(super) keys: Option<Arc<Keys>>,
    /// Whether service level 15 is management's alone.
    pub(super) manages_apart: bool,
    /// Which ports are of one host.
    pub(super) requesters: Requesters,
}

/// A node.
#[derive(Clone, Debug)]
pub(super) struct Node {
    pub(super) info: NodeInfo,
    pub(super) description: NodeDescription,
    pub(super) switch: Option<SwitchInfo>,
    /// By number.
    pub(super) ports: Vec<Port>,
    pub(super) lft: Vec<Option<LftBlock>>,
}

/// A port.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Port {
    pub(super) info: Option<PortInfo>,
    pub(super) peer: Option<PortAt>,
    /// The lane of each service level towards it, from every port alike.
    pub(super) lanes: Option<[VirtualLane; 16]>,
    /// What a way that leaves by it is like, as far as it decides.
    link: Way,
    /// The place of the end port that it belongs to.
    end: Option<u32>,
}

/// What a way through the subnet is like.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Way {
    /// In the code of `Mtu`.
    pub(super) mtu: u8,
    pub(super) megabits: u32,
    /// The service levels that no port on the way drops, a bit each.
    pub(super) service_levels: u16,
}

impl View {
    pub(super) fn new(subnet: &Subnet, memory: &Memory, options: &Options) -> Self {
        let mut ends: Vec<End> = subnet
            .end_ports()
            .filter_map(|(at, port)| {
                let lids = port.lid?;
                Some(End { lid: lids.min, lmc: lids.lmc(), guid: subnet.end_guid(at), at })
            })
            .collect();
        // A LID that a vSwitch shares is the host's: it comes last.
        let is_switch = |end: &End| subnet.node(end.at.node).is_some_and(FoundNode::is_switch);
        ends.sort_by_key(|end| (end.lid, !is_switch(end)));
        let nodes = subnet.nodes.iter().map(|node| Node::new(node, memory)).collect();
        let requesters = Requesters::new(subnet, ends.iter().map(|end| (end.guid, end.lid, end.at)), options);
        let top = ends.last().map_or(0, |end| usize::from(end.lid.0 + end.lids()));
        let mut view = Self {
            by_lid: vec![None; top],
            by_guid: (0..).zip(&ends).map(|(place, end)| (end.guid, place)).collect(),
            ends,
            nodes,
            levels: subnet.routed.levels.as_ref().cloned(),
            prefix: options.sa.subnet_prefix,
            keys: subnet.keys.clone(),
            manages_apart: subnet.management.is_some(),
            requesters,
        };
        for (place, end) in (0..).zip(&view.ends) {
            let lids = usize::from(end.lid.0)..usize::from(end.lid.0 + end.lids());
            view.by_lid[lids].fill(Some(place));
            let node = view.nodes.get_mut(end.at.node as usize);
            node.into_iter().for_each(|node| node.belongs_to(end, place));
        }
        view
    }

    /// Takes these nodes as they are now. Who has which LIDs has not changed.
    pub(super) fn renew(&mut self, subnet: &Subnet, memory: &Memory, nodes: &BTreeSet<u32>) {
        for (at, found) in nodes.iter().filter_map(|at| Some((*at, subnet.node(*at)?))) {
            let node = self.nodes.get_mut(at as usize);
            node.into_iter().for_each(|node| *node = Node::new(found, memory));
        }
        for (place, end) in (0..).zip(&self.ends).filter(|(_, end)| nodes.contains(&end.at.node)) {
            let node = self.nodes.get_mut(end.at.node as usize);
            node.into_iter().for_each(|node| node.belongs_to(end, place));
        }
    }

    /// Service levels are others now.
    pub(super) fn relevel(&mut self, subnet: &Subnet) {
        self.levels = subnet.routed.levels.as_ref().cloned();
    }

    /// Whether an end port is a virtual function's.
    pub(super) fn is_guest(&self, end: &End) -> bool {
        self.requesters.is_guest(end.guid)
    }

    /// The host that has this LID, by its GUID; all LIDs that no port has are of one.
    pub(super) fn host_at(&self, lid: Lid) -> Guid {
        self.by_lid(lid).map_or(Guid(0), |end| self.requesters.host_of(end.guid))
    }

    /// The first LIDs of all ports of the host that has this LID.
    pub(super) fn lids_beside(&self, lid: Lid) -> Vec<Lid> {
        let mut lids: Vec<Lid> =
            self.requesters.ports_of(self.host_at(lid)).iter().map(|(_, lid)| *lid).collect();
        lids.sort_unstable();
        lids.dedup();
        if lids.is_empty() { vec![lid] } else { lids }
    }

    /// The end port that has this LID.
    pub(super) fn by_lid(&self, lid: Lid) -> Option<&End> {
        let place = *self.by_lid.get(usize::from(lid.0))?;
        self.ends.get(place? as usize)
    }

    /// The end port that asks from this LID.
    ///
    /// # Errors
    /// `BUSY` where it is not known yet: a port has its LID before the sweep that gave it ends.
    pub(super) fn requester(&self, lid: Lid) -> Result<&End, u16> {
        self.by_lid(lid).ok_or(status::BUSY)
    }

    /// The end port that has this GUID.
    pub(super) fn by_guid(&self, guid: Guid) -> Option<&End> {
        self.ends.get(*self.by_guid.get(&guid)? as usize)
    }

    /// The end port that has this GID: every port has one with the subnet's prefix and one with the default one.
    pub(super) fn by_gid(&self, gid: Gid) -> Option<&End> {
        self.by_guid(gid.guid).filter(|_| self.has_prefix(gid))
    }

    /// Whether a GID has a prefix of this subnet's.
    pub(super) fn has_prefix(&self, gid: Gid) -> bool {
        gid.prefix == self.prefix || gid.prefix == GidPrefix::DEFAULT
    }

    pub(super) fn gid(&self, guid: Guid) -> Gid {
        Gid { prefix: self.prefix, guid }
    }

    /// The GUIDs of all end ports.
    pub(super) fn guids(&self) -> impl Iterator<Item = Guid> {
        self.by_guid.keys().copied()
    }

    /// The node that an end port belongs to.
    pub(super) fn node(&self, end: &End) -> Option<&Node> {
        self.nodes.get(end.at.node as usize)
    }

    /// The ports that an end port stands for, with their numbers: those of its switch, or itself.
    pub(super) fn ports(&self, end: &End) -> impl Iterator<Item = (PortNum, &Port)> {
        let (from, count) = match self.node(end) {
            Some(node) if node.switch.is_some() => (0, node.ports.len()),
            Some(_) => (usize::from(end.at.port.0), 1),
            None => (0, 0),
        };
        let ports = self.node(end).map_or(&[][..], |node| &node.ports);
        (0..=u8::MAX).map(PortNum).zip(ports).skip(from).take(count)
    }

    /// The end port that a port belongs to.
    pub(super) fn end_of(&self, at: PortAt) -> Option<&End> {
        self.ends.get(self.port(at)?.end? as usize)
    }

    /// The service level that the routing has chosen from LID to LID; `None` where all are alike.
    pub(super) fn level(&self, from: Lid, to: Lid) -> Option<ServiceLevel> {
        self.levels.as_ref().map(|levels| levels.of(from, to))
    }

    /// The service level of every pair; `None` where all are alike.
    pub(super) fn levels(&self) -> Option<&ServiceLevels> {
        self.levels.as_deref()
    }

    /// The end ports that are no switches'.
    pub(super) fn hosts(&self) -> impl Iterator<Item = &End> {
        self.ends.iter().filter(|end| self.node(end).is_some_and(|node| node.switch.is_none()))
    }

    fn port(&self, at: PortAt) -> Option<&Port> {
        self.nodes.get(at.node as usize)?.ports.get(usize::from(at.port.0))
    }

    /// Follows the tables from an end port to a LID.
    pub(super) fn way(&self, from: &End, to: Lid) -> Option<Way> {
        let info = self.port(from.at)?.info?;
        let mut way = Way { mtu: info.mtu_cap.code(), megabits: u32::MAX, service_levels: u16::MAX };
        if from.has(to) {
            return Some(Way { megabits: megabits(&info), ..way });
        }
        let mut at = from.at;
        for _ in 0..HOPS_MAX {
            let node = self.nodes.get(at.node as usize)?;
            let out = if node.switch.is_some() {
                node.out_port(to)?
            } else if at == from.at {
                at.port
            } else {
                // An HCA that has not this LID.
                return None;
            };
            if out == PortNum::ZERO {
                let zero = node.ports.first()?.info?;
                way.mtu = way.mtu.min(zero.mtu_cap.code());
                // Between a switch's own port and its other ports there is no link that could be slower.
                return self.end_of(PortAt { port: out, ..at })?.has(to).then_some(way);
            }
            let port = node.ports.get(usize::from(out.0))?;
            way = way.and(port.link);
            at = port.peer?;
            let there = self.port(at)?;
            if there
                .end
                .is_some_and(|end| self.ends[end as usize].at == at && self.ends[end as usize].has(to))
            {
                way.mtu = way.mtu.min(there.info?.mtu_cap.code());
                return Some(way);
            }
        }
        None
    }
}

impl Way {
    /// What the link at a port does.
    fn of(info: &PortInfo, lanes: Option<[VirtualLane; 16]>) -> Self {
        let mtu = if info.neighbor_mtu.code() == 0 { info.mtu_cap } else { info.neighbor_mtu };
        let mut service_levels = u16::MAX;
        for (service_level, lane) in lanes.iter().flatten().enumerate() {
            if *lane == VirtualLane::MANAGEMENT {
                service_levels &= !(1 << service_level);
            }
        }
        Self { mtu: mtu.code(), megabits: megabits(info), service_levels }
    }

    /// The worse of both in everything.
    pub(super) fn and(self, other: Self) -> Self {
        Self {
            mtu: self.mtu.min(other.mtu),
            megabits: self.megabits.min(other.megabits),
            service_levels: self.service_levels & other.service_levels,
        }
    }

    pub(super) fn rate(&self) -> Option<PathRate> {
        PathRate::from_megabits(self.megabits)
    }
}

/// The rate of a port's link in Mb/s; one that path records cannot name is 0.
fn megabits(info: &PortInfo) -> u32 {
    PathRate::of_link(info).megabits().unwrap_or(0)
}

impl Node {
    fn new(found: &FoundNode, memory: &Memory) -> Self {
        let held = memory.get(&found.guid());
        let ports = (0..=u8::MAX).map(PortNum).zip(&found.ports).map(|(number, port)| {
            let lanes = held.and_then(|held| held.port(number)?.sl_to_vl);
            let link = port.info.map_or_else(Way::default, |info| Way::of(&info, lanes));
            Port { info: port.info, peer: port.peer, lanes, link, end: None }
        });
        Self {
            info: found.info,
            description: NodeDescription::new(&found.description),
            switch: found.switch,
            ports: ports.collect(),
            lft: held.filter(|_| found.is_switch()).map_or(Vec::new(), |held| held.lft.clone()),
        }
    }

    /// Its ports, or the one that it is about, belong to an end port.
    fn belongs_to(&mut self, end: &End, place: u32) {
        if self.switch.is_some() {
            self.ports.iter_mut().for_each(|port| port.end = Some(place));
        } else if let Some(port) = self.ports.get_mut(usize::from(end.at.port.0)) {
            port.end = Some(place);
        }
    }

    /// Where a switch sends what goes to a LID.
    fn out_port(&self, lid: Lid) -> Option<PortNum> {
        let top = self.switch?.linear_fdb_top;
        let block = self.lft.get(usize::from(lid.block())).filter(|_| lid.0 <= top)?.as_ref()?;
        Some(block[lid.offset()]).filter(|port| *port != PortNum::NONE)
    }
}

/// The largest MTU of which a path's code may be reduced.
pub(super) const MTU_LEAST: u8 = Mtu::Bytes256.code();
