//! Switches and the channels between them, numbered densely.

use weft_topology::{Fabric, PortRef};
use weft_wire::PortNum;

use crate::switches::SwitchGraph;

/// Where an entry leads: nowhere that a packet for this LID should go.
pub(crate) const LOST: u32 = u32::MAX;
/// Where an entry leads: to the end port that has the LID.
pub(crate) const ARRIVES: u32 = u32::MAX - 1;

/// Whether an entry leads to another switch; then it is the number of a channel.
pub(crate) fn is_channel(exit: u32) -> bool {
    exit < ARRIVES
}

/// The channels of a fabric. A channel is one direction of a cable between two switches; its number is that of the way in
/// the [`SwitchGraph`].
#[derive(Debug)]
pub(crate) struct Channels {
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
}

impl Channels {
    pub(crate) fn new(fabric: &Fabric) -> Self {
        let graph = SwitchGraph::new(fabric);
        let (mut first_exit, mut exits) = (vec![0], Vec::new());
        let (mut from, mut to, mut entry) = (Vec::new(), Vec::new(), Vec::new());
        for (switch, node) in (0..).zip(&graph.nodes) {
            let first = exits.len();
            exits.resize(first + fabric.node(*node).ports.len(), LOST);
            for way in graph.ways(switch) {
                exits[first + usize::from(way.port.0)] = to.len() as u32;
                let peer = fabric.peer(PortRef::new(*node, way.port));
                from.push((switch, way.port));
                to.push(way.to);
                entry.push(peer.map_or(PortNum::ZERO, |peer| peer.port));
            }
            first_exit.push(exits.len() as u32);
        }
        Self { graph, first_exit, exits, from, to, entry }
    }

    /// Takes away the channel that begins at a port. The others keep their numbers.
    pub(super) fn cut(&mut self, port: PortRef) {
        let Some(switch) = self.graph.number(port.node) else { return };
        let place = self.first_exit[switch as usize] as usize + usize::from(port.port.0);
        self.exits.get_mut(place).into_iter().for_each(|exit| *exit = LOST);
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

    /// The channels that begin at a switch.
    pub(crate) fn channels(&self, switch: u32) -> impl Iterator<Item = u32> {
        self.exits(switch).iter().copied().filter(|exit| is_channel(*exit))
    }

    /// The place of a channel among those that leave the same switch.
    pub(crate) fn place(&self, channel: u32) -> usize {
        channel as usize - self.graph.row(self.from[channel as usize].0).start
    }
}
