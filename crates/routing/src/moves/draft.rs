//! The tables in force with what a plan has written so far.

use weft_topology::NodeIndex;
use weft_wire::{Lid, PortNum};

use super::network::Network;
use crate::tables::{BLOCK_ENTRIES, ForwardingTable, Routes};

/// Rows by switch, LID and port.
pub(super) type Ports = [PortNum; BLOCK_ENTRIES];

/// The block that a LID is in, and its place there.
pub(super) fn place(lid: Lid) -> (u16, usize) {
    (lid.0 / BLOCK_ENTRIES as u16, usize::from(lid.0) % BLOCK_ENTRIES)
}

/// No block is written.
const NONE: u32 = u32::MAX;

/// A block that was written.
#[derive(Clone, Debug)]
struct Written {
    block: u16,
    ports: Ports,
    /// The one of the same switch that was written before, or [`NONE`].
    before: u32,
}

/// Tables that are copied only where they are written.
#[derive(Clone, Debug)]
pub(super) struct Draft<'a> {
    network: &'a Network,
    routes: &'a Routes,
    /// Tables computed from scratch.
    fresh: Option<&'a Routes>,
    /// By switch: the block of it that was written last, or [`NONE`]. Empty while nothing is written.
    last: Vec<u32>,
    written: Vec<Written>,
}

impl<'a> Draft<'a> {
    pub(super) fn new(network: &'a Network, routes: &'a Routes) -> Self {
        Self { network, routes, fresh: None, last: Vec::new(), written: Vec::new() }
    }

    /// The same with tables computed from scratch.
    pub(super) fn with_fresh(self, fresh: Option<&'a Routes>) -> Self {
        Self { fresh, ..self }
    }

    /// The port by the tables computed from scratch.
    pub(super) fn fresh(&self, switch: u32, lid: Lid) -> PortNum {
        self.fresh.map_or(PortNum::NONE, |fresh| fresh.port(self.node(switch), lid))
    }

    fn table(&self, switch: u32) -> Option<&'a ForwardingTable> {
        self.routes.table(self.node(switch))
    }

    pub(super) fn node(&self, switch: u32) -> NodeIndex {
        self.network.graph.nodes[switch as usize]
    }

    pub(super) fn port(&self, switch: u32, lid: Lid) -> PortNum {
        let standing = || self.table(switch).map_or(PortNum::NONE, |table| table.port(lid));
        let (block, place) = place(lid);
        self.find(switch, block).map_or_else(standing, |at| self.written[at].ports[place])
    }

    /// Where a block is among those that were written, if it is.
    fn find(&self, switch: u32, block: u16) -> Option<usize> {
        let mut at = *self.last.get(switch as usize)? as usize;
        while let Some(written) = self.written.get(at) {
            if written.block == block {
                return Some(at);
            }
            at = written.before as usize;
        }
        None
    }

    pub(super) fn block(&self, switch: u32, block: u16) -> Ports {
        let standing =
            || self.table(switch).map_or([PortNum::NONE; BLOCK_ENTRIES], |table| table.block(block));
        self.find(switch, block).map_or_else(standing, |at| self.written[at].ports)
    }

    pub(super) fn write(&mut self, switch: u32, block: u16, ports: Ports) {
        if let Some(at) = self.find(switch, block) {
            self.written[at].ports = ports;
            return;
        }
        self.last.resize(self.network.len(), NONE);
        let before = std::mem::replace(&mut self.last[switch as usize], self.written.len() as u32);
        self.written.push(Written { block, ports, before });
    }
}
