//! Switches and channels, numbered densely, without a hold on the fabric that they are of.

use weft_topology::{Fabric, NodeIndex, PortRef};
use weft_wire::PortNum;

use super::error::KeptError;
use crate::switches::SwitchGraph;
use crate::verify::ground::{ARRIVES, LOST};

/// The switch that delivers to an end port, and by which port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Seat {
    pub(super) switch: u32,
    pub(super) exit: PortNum,
}

/// A channel is one direction of a cable between two switches; its number is that of the way in the graph.
#[derive(Debug)]
pub(super) struct Network {
    pub(super) graph: SwitchGraph,
    /// By switch: where its ports begin in `exits`.
    first_exit: Vec<u32>,
    /// By switch and port: the channel that begins there, or [`LOST`].
    exits: Vec<u32>,
    /// By channel: the switch that it leaves, and by which port.
    pub(super) from: Vec<(u32, PortNum)>,
    /// By channel: the switch that it leads to.
    pub(super) to: Vec<u32>,
    /// By switch: the switch above it, of a vSwitch.
    uplink: Vec<Option<u32>>,
}

impl Network {
    /// `vswitches` are the nodes that stand for an adapter with virtual functions: each has one link to a switch.
    pub(super) fn new(fabric: &Fabric, vswitches: &[NodeIndex]) -> Result<Self, KeptError> {
        let graph = SwitchGraph::new(fabric);
        let (mut first_exit, mut exits) = (vec![0], Vec::new());
        let (mut from, mut to) = (Vec::new(), Vec::new());
        for switch in 0..graph.len() as u32 {
            let first = exits.len();
            exits.resize(first + fabric.node(graph.nodes[switch as usize]).ports.len(), LOST);
            for way in graph.ways(switch) {
                exits[first + usize::from(way.port.0)] = to.len() as u32;
                from.push((switch, way.port));
                to.push(way.to);
            }
            first_exit.push(exits.len() as u32);
        }
        let mut uplink = vec![None; graph.len()];
        for node in vswitches {
            let number = fabric.nodes().get(node.index()).and_then(|_| graph.number(*node));
            let only = number.and_then(|number| Some((number, graph.ways(number).first()?)));
            match only {
                Some((number, way)) if graph.ways(number).len() == 1 => {
                    uplink[number as usize] = Some(way.to);
                }
                _ => return Err(KeptError::VSwitch(*node)),
            }
        }
        Ok(Self { graph, first_exit, exits, from, to, uplink })
    }

    /// How many switches there are.
    pub(super) fn len(&self) -> usize {
        self.graph.len()
    }

    /// Whether a switch stands for an adapter with virtual functions.
    pub(super) fn is_virtual(&self, switch: u32) -> bool {
        self.uplink[switch as usize].is_some()
    }

    /// The physical switch that a switch is, or is below.
    pub(super) fn physical(&self, switch: u32) -> u32 {
        self.uplink[switch as usize].unwrap_or(switch)
    }

    /// Where a port of a switch leads: to a channel, to one of the places where a LID is, or nowhere.
    pub(super) fn exit(&self, switch: u32, port: PortNum, seats: &[Option<Seat>]) -> u32 {
        if seats.contains(&Some(Seat { switch, exit: port })) {
            return ARRIVES;
        }
        let row = self.first_exit[switch as usize] as usize..self.first_exit[switch as usize + 1] as usize;
        self.exits[row].get(usize::from(port.0)).copied().unwrap_or(LOST)
    }

    /// The switch that delivers to an end port. A port of a switch stands for whoever is, or will be, behind it.
    pub(super) fn seat(&self, fabric: &Fabric, port: PortRef) -> Option<Seat> {
        let there = fabric.nodes().get(port.node.index())?;
        let (switch, exit) = if there.is_switch() && port.port != PortNum::ZERO {
            there.port(port.port)?;
            (self.graph.number(port.node)?, port.port)
        } else {
            self.graph.attachment(fabric, port)?
        };
        Some(Seat { switch, exit })
    }

    /// `S-a[3]`: the port by which a channel begins.
    pub(super) fn port_of(&self, channel: u32) -> PortRef {
        let (switch, port) = self.from[channel as usize];
        PortRef::new(self.graph.nodes[switch as usize], port)
    }
}
