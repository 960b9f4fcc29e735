//! Linear forwarding tables, one for every switch.

use serde::{Deserialize, Serialize};
use weft_topology::NodeIndex;
use weft_wire::{Lid, PortNum};

/// How many entries a block of a table has (IBA 14.2.5.10).
pub const BLOCK_ENTRIES: usize = 64;

/// A switch's table: by which port a packet for a LID leaves.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ForwardingTable {
    entries: Vec<PortNum>,
}

/// The tables of all switches.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Routes {
    /// By node; those of nodes that are no switches are empty.
    pub tables: Vec<ForwardingTable>,
}

impl ForwardingTable {
    /// A table for the LIDs up to `top`, without routes.
    pub fn new(top: Lid) -> Self {
        Self { entries: vec![PortNum::NONE; usize::from(top.0) + 1] }
    }

    /// The port for `lid`; [`PortNum::NONE`] where there is no route.
    pub fn port(&self, lid: Lid) -> PortNum {
        self.entries.get(usize::from(lid.0)).copied().unwrap_or(PortNum::NONE)
    }

    /// Sets the port for `lid`; the table grows where that is needed.
    pub fn set(&mut self, lid: Lid, port: PortNum) {
        let index = usize::from(lid.0);
        if index >= self.entries.len() {
            self.entries.resize(index + 1, PortNum::NONE);
        }
        self.entries[index] = port;
    }

    /// Writes a block as a switch has it, for tables that are read from a running fabric.
    pub fn set_block(&mut self, block: u16, ports: &[PortNum; BLOCK_ENTRIES]) {
        let first = usize::from(block) * BLOCK_ENTRIES;
        if self.entries.len() < first + BLOCK_ENTRIES {
            self.entries.resize(first + BLOCK_ENTRIES, PortNum::NONE);
        }
        self.entries[first..first + BLOCK_ENTRIES].copy_from_slice(ports);
    }

    /// The highest LID that the table has a place for, which is what SwitchInfo's LinearFDBTop wants to be.
    pub fn top(&self) -> Lid {
        Lid(self.entries.len().saturating_sub(1) as u16)
    }

    /// Whether the table has no place for any LID.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// How many blocks it takes to hold the table.
    pub fn block_count(&self) -> u16 {
        self.entries.len().div_ceil(BLOCK_ENTRIES) as u16
    }

    /// A block, with no routes past the end.
    pub fn block(&self, block: u16) -> [PortNum; BLOCK_ENTRIES] {
        let mut ports = [PortNum::NONE; BLOCK_ENTRIES];
        let entries = self.entries.iter().skip(usize::from(block) * BLOCK_ENTRIES);
        for (port, entry) in ports.iter_mut().zip(entries) {
            *port = *entry;
        }
        ports
    }

    /// All blocks with their numbers.
    pub fn blocks(&self) -> impl Iterator<Item = (u16, [PortNum; BLOCK_ENTRIES])> {
        (0..self.block_count()).map(|block| (block, self.block(block)))
    }

    /// Every LID that has a route, with its port.
    pub fn routes(&self) -> impl Iterator<Item = (Lid, PortNum)> {
        let all = (0..=u16::MAX).map(Lid).zip(self.entries.iter().copied());
        all.filter(|(_, port)| *port != PortNum::NONE)
    }

    /// The entries themselves, for engines.
    pub(crate) fn entries_mut(&mut self) -> &mut [PortNum] {
        &mut self.entries
    }
}

impl Routes {
    /// The table of a node; `None` for nodes that these routes do not know.
    pub fn table(&self, node: NodeIndex) -> Option<&ForwardingTable> {
        self.tables.get(node.index())
    }

    /// The port by which `node` sends what is for `lid`.
    pub fn port(&self, node: NodeIndex, lid: Lid) -> PortNum {
        self.table(node).map_or(PortNum::NONE, |table| table.port(lid))
    }
}
