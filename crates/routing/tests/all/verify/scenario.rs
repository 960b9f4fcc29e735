//! Random fabrics with everything odd about them, and random routings.

use std::collections::BTreeMap;

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;
use weft_routing::{
    ForwardingTable, Isolation, LaneMap, LaneRow, Lids, Member, Partition, Partitions, Ranks, Routes,
    Routing, ServiceLevels, minhop,
};
use weft_topology::generate::GenerateOptions;
use weft_topology::{Fabric, FabricBuilder, Node, NodeIndex, PortRef};
use weft_wire::{Guid, Lid, NodeType, PortNum, VirtualLane};

/// What [`Scenario::new`] makes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    pub(crate) switches: u32,
    pub(crate) hosts: u32,
}

/// A fabric and who answers to which LIDs, with a generator for what is done to them.
pub(crate) struct Scenario {
    pub(crate) fabric: Fabric,
    pub(crate) lids: Lids,
    pub(crate) random: Pcg64,
}

impl Scenario {
    /// Pieces, parallel cables, cables from a switch to itself, hosts with two ports, LMCs, hosts without cables,
    /// switches without LIDs, LIDs that no one has.
    pub(crate) fn new(seed: u64, bounds: Bounds) -> Self {
        let mut random = Pcg64::seed_from_u64(seed);
        let rate = GenerateOptions::default().rate;
        let mut builder = FabricBuilder::new();
        let mut add = |kind, number: u32, ports| {
            // GUIDs are not in the order of the nodes.
            let guid = Guid(0x1000 + u64::from(number.wrapping_mul(7919) % 1009) * 16);
            builder.add_node(Node::new(kind, guid, ports, rate)).expect("the node is sound")
        };
        let switches: Vec<NodeIndex> =
            (0..random.random_range(1..=bounds.switches)).map(|at| add(NodeType::Switch, at, 20)).collect();
        let count = random.random_range(0..=bounds.hosts);
        let hosts: Vec<NodeIndex> = (0..count)
            .map(|at| add(if at == 3 { NodeType::Router } else { NodeType::Hca }, 500 + at, 2))
            .collect();
        for (at, switch) in switches.iter().enumerate().skip(1) {
            let count = if random.random_range(0..10) == 0 { 0 } else { random.random_range(1..=3) };
            for _ in 0..count {
                let other = switches[random.random_range(0..=at.min(switches.len() - 1))];
                if let Some(port) = builder.free_port(*switch) {
                    connect(&mut builder, PortRef::new(*switch, port), other);
                }
            }
        }
        for host in hosts {
            for port in 1..=if random.random_range(0..4) == 0 { 2 } else { 1 } {
                if random.random_range(0..12) > 0 {
                    let switch = switches[random.random_range(0..switches.len())];
                    connect(&mut builder, PortRef::new(host, PortNum(port)), switch);
                }
            }
        }
        let fabric = builder.build();
        let lids = random_lids(&fabric, &mut random);
        Self { fabric, lids, random }
    }

    fn chance(&mut self, of: u32) -> bool {
        self.random.random_range(0..of) == 0
    }

    /// Tables of min-hop or of random trees, and sometimes a few entries that are none of theirs.
    pub(crate) fn routes(&mut self) -> Routes {
        let mut routes = match self.chance(2) {
            true => minhop(&self.fabric, &self.lids),
            false => self.random_trees(),
        };
        if self.chance(3) {
            for _ in 0..self.random.random_range(1..4) {
                self.spoil(&mut routes);
            }
        }
        routes
    }

    /// Changes one entry to any port, and tells the switch, the LID and the port before.
    pub(crate) fn spoil(&mut self, routes: &mut Routes) -> (NodeIndex, Lid, PortNum) {
        let switches: Vec<NodeIndex> = self.fabric.switches().map(|(index, _)| index).collect();
        let switch = switches[self.random.random_range(0..switches.len())];
        let all: Vec<Lid> = self.lids.iter().flat_map(weft_routing::PortLids::iter).collect();
        let lid = all[self.random.random_range(0..all.len())];
        let before = routes.port(switch, lid);
        let port = if self.chance(20) { 255 } else { self.random.random_range(0..=21) };
        routes.tables[switch.index()].set(lid, PortNum(port));
        (switch, lid, before)
    }

    /// Removes one entry in eight.
    pub(crate) fn remove(&mut self, routes: &mut Routes) {
        let all: Vec<Lid> = self.lids.iter().flat_map(weft_routing::PortLids::iter).collect();
        for table in &mut routes.tables {
            for lid in &all {
                if self.chance(8) {
                    table.set(*lid, PortNum(255));
                }
            }
        }
    }

    /// A random tree to every LID: no loops, but detours.
    pub(crate) fn random_trees(&mut self) -> Routes {
        let mut routes =
            Routes { tables: vec![ForwardingTable::new(self.lids.top()); self.fabric.nodes().len()] };
        for lids in self.lids.iter() {
            let Some(first) = self.serving(lids.port) else { continue };
            for lid in lids.iter() {
                routes.tables[first.node.index()].set(lid, first.port);
                let mut reached = vec![first.node];
                let mut ways = self.ways_to(first.node);
                while !ways.is_empty() {
                    let (node, port) = ways.swap_remove(self.random.random_range(0..ways.len()));
                    if !reached.contains(&node) {
                        reached.push(node);
                        routes.tables[node.index()].set(lid, port);
                        ways.extend(self.ways_to(node));
                    }
                }
            }
        }
        routes
    }

    /// The switch that serves a port, and by which port it does.
    fn serving(&self, port: PortRef) -> Option<PortRef> {
        let node = self.fabric.nodes().get(port.node.index())?;
        if node.is_switch() {
            return Some(PortRef::new(port.node, PortNum::ZERO));
        }
        self.fabric.peer(port).filter(|peer| self.fabric.node(peer.node).is_switch())
    }

    fn ways_to(&self, node: NodeIndex) -> Vec<(NodeIndex, PortNum)> {
        let peers = self.fabric.node(node).cabled_ports().map(|(_, peer)| (peer.node, peer.port));
        peers.filter(|(peer, _)| self.fabric.node(*peer).is_switch()).collect()
    }

    /// Level 0 for all, or anything for classes of LIDs.
    pub(crate) fn levels(&mut self) -> ServiceLevels {
        if self.chance(3) {
            return ServiceLevels::zero();
        }
        let (height, width) = (self.random.random_range(1..6u16), self.random.random_range(1..6u16));
        let mut levels = ServiceLevels::classes(self.lids.top(), height.into(), width.into());
        for lid in self.lids.iter().flat_map(weft_routing::PortLids::iter) {
            if self.random.random_range(0..8) > 0 {
                levels.set_source(lid, self.random.random_range(0..height));
            }
            if self.random.random_range(0..8) > 0 {
                levels.set_destination(lid, self.random.random_range(0..width));
            }
        }
        let top = self.random.random_range(1..4);
        for row in 0..height {
            for level in levels.row_mut(row) {
                *level = self.random.random_range(0..top);
            }
        }
        levels
    }

    fn row(&mut self) -> LaneRow {
        std::array::from_fn(|_| match self.random.random_range(0..30) {
            0 => VirtualLane(15),
            lane => VirtualLane(lane % 3),
        })
    }

    /// A lane for each level, one map for all, or exceptions at some ports.
    pub(crate) fn lanes(&mut self) -> LaneMap {
        let mut lanes = LaneMap::default();
        if self.chance(2) {
            return lanes;
        }
        if self.chance(2) {
            lanes.everywhere = self.row();
        }
        if self.chance(2) {
            let nodes = self.fabric.nodes().len() as u32;
            for _ in 0..self.random.random_range(1..40) {
                let node = NodeIndex(self.random.random_range(0..nodes + 1));
                let ports: [u8; 2] = std::array::from_fn(|_| self.random.random_range(0..8));
                let row = self.row();
                lanes.exceptions.insert((node, PortNum(ports[0]), PortNum(ports[1])), row);
            }
        }
        lanes
    }

    pub(crate) fn routing(&mut self) -> Routing {
        let ranks = self.fabric.nodes().iter().map(|_| match self.random.random_range(0..8) {
            0 => None,
            rank => Some(rank % 3),
        });
        let ranks = Some(Ranks(ranks.collect()));
        let (routes, levels, lanes) = (self.routes(), self.levels(), self.lanes());
        Routing { routes, levels, lanes, ranks, ..Routing::default() }
    }

    /// A few partitions with members at random.
    pub(crate) fn partitions(&mut self) -> Partitions {
        let ports = self.fabric.nodes().iter().flat_map(|node| node.end_ports().map(|(_, port)| port.guid));
        let ports: Vec<Guid> = ports.collect();
        let partition = |number: u16, scenario: &mut Self| {
            let members = ports.iter().filter_map(|guid| match scenario.random.random_range(0..6) {
                0 => Some(Member { guid: *guid, full: true }),
                1 => Some(Member { guid: *guid, full: false }),
                _ => None,
            });
            let members = members.collect();
            let isolation =
                [Isolation::Phy, Isolation::Vlane, Isolation::Def][scenario.random.random_range(0..3)];
            let pkey = if number == 0 { 0x7fff } else { number };
            Partition { name: format!("p{number}"), pkey, members, isolation }
        };
        let list = (0..self.random.random_range(1..5)).map(|number| partition(number, self)).collect();
        Partitions { list, ..Partitions::default() }
    }
}

/// Cables a port to any free port of a node that is another.
fn connect(builder: &mut FabricBuilder, a: PortRef, b: NodeIndex) {
    let node = builder.fabric().node(b);
    let free = node.external_ports().filter(|(_, port)| port.peer.is_none());
    let other = free.map(|(number, _)| PortRef::new(b, number)).find(|other| *other != a);
    if let Some(other) = other {
        builder.connect(a, other).expect("both ports are free");
    }
}

fn random_lids(fabric: &Fabric, random: &mut Pcg64) -> Lids {
    let (mut lids, mut next) = (Lids::new(), 1u16);
    let mut give = |port: PortRef, lmc: u8, lids: &mut Lids, gap: u16| {
        let base = (next + gap).next_multiple_of(1 << lmc);
        next = base + (1 << lmc);
        lids.insert(port, Lid(base), lmc).expect("the LIDs are free");
    };
    let mut ports: BTreeMap<u64, PortRef> = BTreeMap::new();
    for (index, node) in fabric.iter() {
        for (number, _) in node.end_ports() {
            ports.insert(random.random_range(0..u64::MAX), PortRef::new(index, number));
        }
    }
    for port in ports.into_values() {
        if random.random_range(0..10) > 0 {
            let lmc = if random.random_range(0..4) == 0 { random.random_range(0..3) } else { 0 };
            let gap = if random.random_range(0..6) == 0 { random.random_range(0..70) } else { 0 };
            give(port, lmc, &mut lids, gap);
        }
        // Another LID of the same port, as virtual functions have.
        if random.random_range(0..10) == 0 {
            give(port, 0, &mut lids, 0);
        }
    }
    give(PortRef::new(NodeIndex(10_000), PortNum(1)), 1, &mut lids, 0);
    lids
}
