//! The part that stays the same while tables are verified: switches, channels and end ports, numbered densely.

use weft_topology::{Fabric, PortRef};
use weft_wire::{Guid, Lid, PortNum};

use crate::lids::Lids;
use crate::management::ManagementNodes;
use crate::routing::Ranks;
use crate::switches::SwitchGraph;

/// Where an entry leads: nowhere that a packet for this LID should go.
pub(crate) const LOST: u32 = u32::MAX;
/// Where an entry leads: to the end port that has the LID.
pub(crate) const ARRIVES: u32 = u32::MAX - 1;

/// Whether an entry leads to another switch; then it is the number of a channel.
pub(crate) fn is_channel(exit: u32) -> bool {
    exit < ARRIVES
}

/// A LID and the switch that serves it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct End {
    pub(crate) lid: Lid,
    pub(crate) port: PortRef,
    pub(crate) switch: u32,
    /// The port by which the switch delivers to it; 0 for the switch's own.
    pub(crate) at: PortNum,
    /// Whether data comes from there and goes there: it is neither a switch's nor for management alone.
    pub(crate) host: bool,
}

/// The fabric, laid out for following many packets. A channel is one direction of a cable between two switches; its
/// number is that of the way in the [`SwitchGraph`].
#[derive(Debug)]
pub(crate) struct Ground<'a> {
    pub(crate) fabric: &'a Fabric,
    pub(crate) lids: &'a Lids,
    pub(crate) graph: SwitchGraph,
    /// By switch: where its ports begin in `exits`.
    first_exit: Vec<u32>,
    /// By switch and port: the channel that begins there, or [`LOST`].
    exits: Vec<u32>,
    /// By channel: the switch that it leaves, and by which port.
    pub(crate) from: Vec<(u32, PortNum)>,
    /// By channel: the switch that it leads to.
    pub(crate) to: Vec<u32>,
    /// By channel: the port by which it comes in there.
    pub(crate) entry: Vec<PortNum>,
    /// Every LID that a switch serves, in order.
    pub(crate) ends: Vec<End>,
    /// How many LIDs no switch serves.
    pub(crate) unattached: u64,
    /// By switch: whether some host is on it.
    pub(crate) has_hosts: Vec<bool>,
}

impl<'a> Ground<'a> {
    pub(crate) fn new(fabric: &'a Fabric, lids: &'a Lids, management: &[Guid]) -> Self {
        let management = ManagementNodes::new(fabric, management);
        let graph = SwitchGraph::new(fabric);
        let mut ground = Self {
            fabric,
            lids,
            first_exit: vec![0],
            exits: Vec::new(),
            from: Vec::with_capacity(graph.way_count()),
            to: Vec::with_capacity(graph.way_count()),
            entry: Vec::with_capacity(graph.way_count()),
            ends: Vec::new(),
            unattached: 0,
            has_hosts: vec![false; graph.len()],
            graph,
        };
        for switch in 0..ground.graph.len() as u32 {
            ground.add_exits(switch);
        }
        for port_lids in lids.iter() {
            let Some((switch, at)) = ground.graph.attachment(fabric, port_lids.port) else {
                ground.unattached += port_lids.iter().count() as u64;
                continue;
            };
            let node = port_lids.port.node;
            let host = !fabric.node(node).is_switch() && !management.contains(node);
            ground.has_hosts[switch as usize] |= host;
            let ends = port_lids.iter().map(|lid| End { lid, port: port_lids.port, switch, at, host });
            ground.ends.extend(ends);
        }
        ground
    }

    fn add_exits(&mut self, switch: u32) {
        let node = self.graph.nodes[switch as usize];
        let first = self.exits.len();
        self.exits.resize(first + self.fabric.node(node).ports.len(), LOST);
        for way in self.graph.ways(switch) {
            self.exits[first + usize::from(way.port.0)] = self.to.len() as u32;
            let peer = self.fabric.peer(PortRef::new(node, way.port));
            self.from.push((switch, way.port));
            self.to.push(way.to);
            self.entry.push(peer.map_or(PortNum::ZERO, |peer| peer.port));
        }
        self.first_exit.push(self.exits.len() as u32);
    }

    /// The same without some cables: channels keep their numbers, and no table leads by those of `cut`.
    pub(crate) fn without(mut self, cut: &[PortRef]) -> Self {
        for port in cut {
            let Some(switch) = self.graph.number(port.node) else { continue };
            let place = self.first_exit[switch as usize] as usize + usize::from(port.port.0);
            self.exits.get_mut(place).into_iter().for_each(|exit| *exit = LOST);
        }
        self
    }

    /// The channel that begins at a port of a switch, whether it is there still or not.
    pub(crate) fn channel(&self, switch: u32, port: PortNum) -> Option<u32> {
        let row = self.graph.row(switch);
        let place = self.graph.ways(switch).binary_search_by_key(&port, |way| way.port).ok()?;
        Some((row.start + place) as u32)
    }

    /// How many switches there are.
    pub(crate) fn len(&self) -> usize {
        self.graph.len()
    }

    /// By port of a switch: the channel that begins there, or [`LOST`].
    pub(crate) fn exits(&self, switch: u32) -> &[u32] {
        &self.exits[self.first_exit[switch as usize] as usize..self.first_exit[switch as usize + 1] as usize]
    }

    /// The place of a channel among those that leave the same switch.
    pub(crate) fn place(&self, channel: u32) -> usize {
        channel as usize - self.graph.row(self.from[channel as usize].0).start
    }

    /// By channel: whether it leads up, towards the roots. Of two switches of one rank the one with the lower GUID is
    /// above the other; what has no rank is below all that have one.
    pub(crate) fn ups(&self, ranks: &Ranks) -> Vec<bool> {
        let height = |switch: u32| {
            let node = self.graph.nodes[switch as usize];
            (ranks.of(node).unwrap_or(u32::MAX), self.fabric.node(node).guid)
        };
        self.from.iter().zip(&self.to).map(|((from, _), to)| height(*to) < height(*from)).collect()
    }

    /// `S-a[3] -> [7]S-b`, for people.
    pub(crate) fn channel_name(&self, channel: u32) -> String {
        let (from, exit) = self.from[channel as usize];
        let (to, entry) = (self.to[channel as usize], self.entry[channel as usize]);
        let id = |switch: u32| &self.fabric.node(self.graph.nodes[switch as usize]).id;
        format!("{}[{exit}] -> [{entry}]{}", id(from), id(to))
    }
}
