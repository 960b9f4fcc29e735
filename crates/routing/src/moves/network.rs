//! Switches and channels, numbered densely, without a hold on the fabric that they are of.

use weft_topology::{Fabric, NodeIndex, PortRef};
use weft_wire::PortNum;

use super::error::KeptError;
use crate::verify::channels::{ARRIVES, Channels, LOST};

/// The switch that delivers to an end port, and by which port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Seat {
    pub(super) switch: u32,
    pub(super) exit: PortNum,
}

/// A channel is one direction of a cable between two switches; its number is that of the way in the graph.
#[derive(Debug)]
pub(super) struct Network {
    channels: Channels,
    /// By switch: the switch above it, of a vSwitch.
    uplink: Vec<Option<u32>>,
}

impl Network {
    /// `vswitches` are the nodes that stand for an adapter with virtual functions: each has one link to a switch.
    pub(super) fn new(fabric: &Fabric, vswitches: &[NodeIndex]) -> Result<Self, KeptError> {
        let channels = Channels::new(fabric);
        let graph = &channels.graph;
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
        Ok(Self { channels, uplink })
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
        self.exits(switch).get(usize::from(port.0)).copied().unwrap_or(LOST)
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

impl std::ops::Deref for Network {
    type Target = Channels;

    fn deref(&self) -> &Channels {
        &self.channels
    }
}
