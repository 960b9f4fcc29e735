//! vSwitches are collapsed before an engine routes: it sees the physical cabling, in which the host port of an adapter has
//! the LIDs of all its functions and of its vSwitch. Afterwards the tables are expanded again.
//!
//! ```text
//!   leaf ── vSwitch ─┬─ host        collapse        leaf ── host, with the LIDs of host, vf1 and vSwitch
//!                    └─ vf1      ◀── expand ───
//! ```
//!
//! Without that vSwitches would be leaves of a rank of their own, and no tree of theirs has the levels that its engines
//! balance. Expansion is not assumed to be right: the verifier follows every packet through the expanded tables
//! (`docs/decisions/0017-vswitches.md`).

use std::collections::BTreeMap;

use weft_topology::{Fabric, FabricBuilder, Node, NodeIndex, PortRef};
use weft_wire::{Guid, Lid, NodeType, PortNum};

use crate::input::Input;
use crate::lids::Lids;
use crate::management::ManagementNodes;
use crate::options::EngineOptions;
use crate::partitions::{Member, Partition};
use crate::routing::{Ranks, Routing};
use crate::switches::by_node;
use crate::tables::{ForwardingTable, Routes};

/// The switch inside of a virtualised adapter, and what is behind it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VSwitch {
    /// The switch.
    pub node: NodeIndex,
    /// Its one port that leads to another switch.
    pub uplink: PortNum,
    /// The port at the other end of its uplink.
    pub far: PortRef,
    /// The cabled ports of the adapter's functions, in the order of the vSwitch's ports. The first stands for the host: it
    /// is the physical function's, where that is there.
    pub functions: Vec<(PortNum, PortRef)>,
}

/// The vSwitches of a fabric, by node. A vSwitch is a switch with one cable to another switch whose other cables lead to HCAs
/// with its own SystemImageGUID. That alone tells it from a small leaf; a leaf's hosts are other systems.
///
/// Nodes that serve management alone (`named`, and those that can be recognised) are no functions: an aggregation node has
/// the SystemImageGUID of its switch too.
pub fn vswitches(fabric: &Fabric, named: &[Guid]) -> Vec<VSwitch> {
    let management = ManagementNodes::new(fabric, named);
    let found = fabric.switches().filter_map(|(index, _)| VSwitch::at(fabric, index));
    let mut found: Vec<VSwitch> = found.filter(|found| found.is_one_system(fabric, &management)).collect();
    // Two adapters that are cabled back to back have no switch between them that could route.
    let nodes: Vec<NodeIndex> = found.iter().map(|vswitch| vswitch.node).collect();
    found.retain(|vswitch| nodes.binary_search(&vswitch.far.node).is_err());
    found
}

/// A fabric without its vSwitches.
#[derive(Debug)]
pub(crate) struct Collapsed {
    fabric: Fabric,
    lids: Lids,
    /// By node of `fabric`, the node that it is in the whole fabric.
    whole: Vec<NodeIndex>,
    /// How many nodes the whole fabric has.
    nodes: usize,
    vswitches: Vec<VSwitch>,
    /// Options of the engines, where the operator has named virtual functions.
    options: Option<Box<EngineOptions>>,
}

impl Collapsed {
    /// `None` where there are no vSwitches.
    pub(crate) fn of(input: &Input<'_>) -> Option<Self> {
        let vswitches = vswitches(input.fabric, &input.options.management_nodes);
        if vswitches.is_empty() {
            return None;
        }
        let options = of_hosts(input.fabric, &vswitches, input.options);
        Some(Self { options, ..Self::new(input.fabric, input.lids, vswitches)? })
    }

    /// A fabric without these vSwitches. One without functions is left out, and nothing stands for it.
    pub(crate) fn new(fabric: &Fabric, lids: &Lids, vswitches: Vec<VSwitch>) -> Option<Self> {
        // By node of the whole fabric: the vSwitches of the adapter that it is part of, one for each port of a physical function.
        let mut adapters: Vec<Vec<&VSwitch>> = vec![Vec::new(); fabric.nodes().len()];
        for vswitch in &vswitches {
            let parts = vswitch.functions.iter().map(|(_, port)| port.node).chain([vswitch.node]);
            parts.for_each(|part| adapters[part.index()].push(vswitch));
        }
        let mut builder = FabricBuilder::new();
        let (mut whole, mut places) = (Vec::new(), vec![None; adapters.len()]);
        for (index, node) in fabric.iter() {
            let parts = &adapters[index.index()];
            let mut node = node.clone();
            let mut stands = parts.is_empty();
            for (vswitch, host) in parts.iter().filter_map(|vswitch| Some((vswitch, vswitch.host()?))) {
                if host.node == index {
                    give_uplink(fabric, &mut node, vswitch, host);
                    stands = true;
                }
            }
            if !stands {
                continue;
            }
            places[index.index()] = Some(builder.add_node(node).ok()?);
            whole.push(index);
        }
        let place = |end: PortRef| Some(PortRef::new(places[end.node.index()]?, end.port));
        let is_inner = |end: PortRef| !adapters[end.node.index()].is_empty();
        for cable in fabric.cables().filter(|cable| !is_inner(cable.a) && !is_inner(cable.b)) {
            builder.connect(place(cable.a)?, place(cable.b)?).ok()?;
        }
        for vswitch in &vswitches {
            let Some(host) = vswitch.host() else { continue };
            builder.connect(place(host)?, place(vswitch.far)?).ok()?;
        }
        let mut collapsed = Lids::new();
        for range in lids.iter() {
            let parts = &adapters[range.port.node.index()];
            let is_its = |vswitch: &&&VSwitch| vswitch.functions.iter().any(|(_, port)| *port == range.port);
            let adapter = parts.iter().find(is_its).or(parts.first());
            let port = adapter.map_or(Some(range.port), |vswitch| vswitch.host())?;
            collapsed.insert(place(port)?, range.base, range.lmc).ok()?;
            let is_virtual = |vswitch: &VSwitch| vswitch.virtual_functions().any(|port| port == range.port);
            if adapter.is_some_and(|vswitch| !is_virtual(vswitch)) {
                collapsed.mark_own(range.base);
            }
        }
        let nodes = adapters.len();
        Some(Self { fabric: builder.build(), lids: collapsed, whole, nodes, vswitches, options: None })
    }

    /// The fabric without them.
    pub(crate) fn fabric(&self) -> &Fabric {
        &self.fabric
    }

    /// The node that one of [`Self::fabric`] is in the whole fabric.
    pub(crate) fn whole(&self, node: NodeIndex) -> NodeIndex {
        self.whole[node.index()]
    }

    /// What an engine works from.
    pub(crate) fn input<'a>(&'a self, input: &Input<'a>) -> Input<'a> {
        let options = self.options.as_deref().unwrap_or(input.options);
        Input { fabric: &self.fabric, lids: &self.lids, options }
    }

    /// The routing of the whole fabric that follows from that of the collapsed one.
    pub(crate) fn expand(&self, input: &Input<'_>, mut routing: Routing) -> Routing {
        let mut routes = Routes { tables: by_node(self.nodes, &self.whole, routing.routes.tables) };
        for vswitch in &self.vswitches {
            routes.tables[vswitch.node.index()] = vswitch.table(input.lids, Lid(0));
        }
        routing.routes = routes;
        routing.ranks = routing.ranks.map(|ranks| self.expand_ranks(&ranks));
        self.expand_lanes(&mut routing);
        let count = self.vswitches.len();
        let vswitches = if count == 1 { "1 vSwitch is".to_owned() } else { format!("{count} vSwitches are") };
        routing.report.notes.push(format!("{vswitches} routed as part of the host that each is in"));
        routing
    }

    /// vSwitches have no rank: what has none is below all switches that have one.
    pub(crate) fn expand_ranks(&self, ranks: &Ranks) -> Ranks {
        Ranks(by_node(self.nodes, &self.whole, ranks.0.iter().copied()))
    }

    /// Mappings of service levels stay at the ports that they are for; what a host's port has, all ports on the way out of
    /// its adapter have.
    fn expand_lanes(&self, routing: &mut Routing) {
        let rows = std::mem::take(&mut routing.lanes.exceptions);
        let hosts = self.vswitches.iter().filter_map(|vswitch| Some((vswitch.host()?, vswitch)));
        let hosts: BTreeMap<PortRef, &VSwitch> = hosts.collect();
        for ((node, entry, exit), row) in rows {
            let node = self.whole(node);
            routing.lanes.exceptions.insert((node, entry, exit), row);
            let Some(vswitch) = hosts.get(&PortRef::new(node, exit)) else { continue };
            for (inner, function) in &vswitch.functions {
                routing.lanes.exceptions.insert((function.node, entry, function.port), row);
                routing.lanes.exceptions.insert((vswitch.node, *inner, vswitch.uplink), row);
            }
        }
    }
}

impl VSwitch {
    /// A switch with one cable to another switch, seen as one: whatever else it has cables to are functions. `None` where it
    /// has none or several to switches.
    pub(crate) fn at(fabric: &Fabric, node: NodeIndex) -> Option<Self> {
        let cabled = fabric.node(node).cabled_ports();
        let (uplinks, functions): (Vec<_>, Vec<_>) =
            cabled.partition(|(_, peer)| fabric.node(peer.node).is_switch());
        let [(uplink, far)] = uplinks[..] else { return None };
        Some(Self { node, uplink, far, functions })
    }

    /// Whether all behind it are HCAs of its own system that have no cables to others, and do not serve management alone.
    fn is_one_system(&self, fabric: &Fabric, management: &ManagementNodes) -> bool {
        let system = fabric.node(self.node).system_image_guid;
        let is_part = |(_, port): &(PortNum, PortRef)| {
            let there = fabric.node(port.node);
            // Another port of a physical function has a vSwitch of its own.
            let is_own = |peer: NodeIndex| fabric.node(peer).system_image_guid == system;
            let mut peers = there.cabled_ports().map(|(_, peer)| peer.node);
            let is_inner = there.kind == NodeType::Hca && peers.all(is_own);
            is_inner && there.system_image_guid == system && !management.contains(port.node)
        };
        system != Guid(0) && !self.functions.is_empty() && self.functions.iter().all(is_part)
    }

    /// The port of the physical function: it is behind the lowest port that is not the uplink, whether that is in use or
    /// not, so that a virtual function is never taken for it. `None` while it is not there.
    pub fn pf(&self) -> Option<PortRef> {
        self.functions.first().filter(|(port, _)| *port == self.pf_port()).map(|(_, function)| *function)
    }

    fn pf_port(&self) -> PortNum {
        if self.uplink == PortNum(1) { PortNum(2) } else { PortNum(1) }
    }

    /// The ports of the virtual functions that are there.
    pub fn virtual_functions(&self) -> impl Iterator<Item = PortRef> {
        let physical = usize::from(self.pf().is_some());
        self.functions.iter().skip(physical).map(|(_, port)| *port)
    }

    /// Whether one of its ports is a slot for a virtual function, in use or not.
    pub fn is_slot(&self, port: PortNum) -> bool {
        ![PortNum::ZERO, PortNum::NONE, self.uplink, self.pf_port()].contains(&port)
    }

    /// The port that stands for the host; `None` where there are no functions.
    fn host(&self) -> Option<PortRef> {
        self.functions.first().map(|(_, port)| *port)
    }

    /// Its own table: its functions by their ports, and everything else by the uplink, as are all LIDs up to `space` that
    /// are free.
    pub(crate) fn table(&self, lids: &Lids, space: Lid) -> ForwardingTable {
        let mut table = ForwardingTable::new(lids.top());
        (1..=space.0).for_each(|lid| table.set(Lid(lid), self.uplink));
        for range in lids.iter() {
            let function = self.functions.iter().find(|(_, port)| *port == range.port);
            let port = match function {
                Some((port, _)) => *port,
                None if range.port.node == self.node => PortNum::ZERO,
                None => self.uplink,
            };
            range.iter().for_each(|lid| table.set(lid, port));
        }
        table
    }
}

/// The options of engines with the host's port instead of each virtual function that they name: a host weighs as much as
/// its heaviest function, and is in all partitions of its functions. `None` where they name none.
fn of_hosts(fabric: &Fabric, vswitches: &[VSwitch], options: &EngineOptions) -> Option<Box<EngineOptions>> {
    let EngineOptions { compute_nodes, io_nodes, order, weights, partitions, .. } = options;
    let names_none = [compute_nodes, io_nodes, order].iter().all(|list| list.is_empty());
    if names_none && weights.is_empty() && partitions.is_none() {
        return None;
    }
    let guid = |port: PortRef| fabric.port(port).map_or(Guid(0), |port| port.guid);
    let mut hosts: BTreeMap<Guid, Guid> = BTreeMap::new();
    for (vswitch, host) in vswitches.iter().filter_map(|vswitch| Some((vswitch, vswitch.host()?))) {
        for function in vswitch.virtual_functions() {
            hosts.extend([guid(function), fabric.node(function.node).guid].map(|own| (own, guid(host))));
        }
    }
    let mut told = options.clone();
    for list in [&mut told.compute_nodes, &mut told.io_nodes, &mut told.order] {
        list.iter_mut().for_each(|guid| *guid = hosts.get(guid).copied().unwrap_or(*guid));
    }
    for (function, weight) in weights {
        if let Some(host) = hosts.get(function) {
            told.weights.remove(function);
            let most = told.weights.entry(*host).or_insert(*weight);
            *most = (*most).max(*weight);
        }
    }
    for partition in told.partitions.iter_mut().flat_map(|partitions| &mut partitions.list) {
        add_hosts(partition, &hosts);
    }
    (told != *options).then(|| Box::new(told))
}

/// Adds the host of each virtual function that is a member: fully, if any of its functions is a full member.
fn add_hosts(partition: &mut Partition, hosts: &BTreeMap<Guid, Guid>) {
    let mut behind: BTreeMap<Guid, bool> = BTreeMap::new();
    for Member { guid, full } in &partition.members {
        if let Some(host) = hosts.get(guid) {
            *behind.entry(*host).or_default() |= full;
        }
    }
    for member in &mut partition.members {
        member.full |= behind.remove(&member.guid).unwrap_or_default();
    }
    partition.members.extend(behind.into_iter().map(|(guid, full)| Member { guid, full }));
}

/// Makes a node stand for a host: its cable is its vSwitch's uplink.
fn give_uplink(fabric: &Fabric, node: &mut Node, vswitch: &VSwitch, host: PortRef) {
    let uplink = fabric.port(PortRef::new(vswitch.node, vswitch.uplink));
    if let Some((port, uplink)) = node.ports.get_mut(usize::from(host.port.0)).zip(uplink) {
        (port.link, port.enabled) = (uplink.link, uplink.enabled);
    }
}
