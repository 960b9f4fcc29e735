//! The tables in force with what a plan has written so far.

use std::collections::BTreeMap;

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

/// Tables that are copied only where they are written.
#[derive(Clone, Debug)]
pub(super) struct Draft<'a> {
    network: &'a Network,
    routes: &'a Routes,
    /// Tables computed from scratch.
    fresh: Option<&'a Routes>,
    written: BTreeMap<(u32, u16), Ports>,
}

impl<'a> Draft<'a> {
    pub(super) fn new(network: &'a Network, routes: &'a Routes) -> Self {
        Self { network, routes, fresh: None, written: BTreeMap::new() }
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
        if self.written.is_empty() {
            return standing();
        }
        let (block, place) = place(lid);
        self.written.get(&(switch, block)).map_or_else(standing, |ports| ports[place])
    }

    pub(super) fn block(&self, switch: u32, block: u16) -> Ports {
        let standing =
            || self.table(switch).map_or([PortNum::NONE; BLOCK_ENTRIES], |table| table.block(block));
        self.written.get(&(switch, block)).copied().unwrap_or_else(standing)
    }

    pub(super) fn write(&mut self, switch: u32, block: u16, ports: Ports) {
        self.written.insert((switch, block), ports);
    }
}
