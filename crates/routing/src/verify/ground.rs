//! The part that stays the same while tables are verified: switches, channels and end ports, numbered densely.

use std::ops::Deref;

use weft_topology::{Fabric, PortRef};
use weft_wire::{Guid, Lid, PortNum};

use crate::lids::Lids;
use crate::management::ManagementNodes;
use crate::routing::Ranks;

pub(crate) use super::channels::{ARRIVES, Channels, LOST, is_channel};

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

/// The fabric, laid out for following many packets.
#[derive(Debug)]
pub(crate) struct Ground<'a> {
    pub(crate) fabric: &'a Fabric,
    pub(crate) lids: &'a Lids,
    channels: Channels,
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
        let channels = Channels::new(fabric);
        let has_hosts = vec![false; channels.len()];
        let mut ground = Self { fabric, lids, channels, ends: Vec::new(), unattached: 0, has_hosts };
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

    /// The same without some cables: channels keep their numbers, and no table leads by those of `cut`.
    pub(crate) fn without(mut self, cut: &[PortRef]) -> Self {
        cut.iter().for_each(|port| self.channels.cut(*port));
        self
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
}

impl Deref for Ground<'_> {
    type Target = Channels;

    fn deref(&self) -> &Channels {
        &self.channels
    }
}
