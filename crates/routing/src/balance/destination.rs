//! A switch as a place that LIDs are routed to.

use std::ops::Range;

use weft_wire::{Lid, PortNum};

use crate::lids::PortLids;

/// A switch, and the end ports that it delivers to.
pub(super) struct Destination {
    pub(super) switch: u32,
    /// By which port, and their LIDs.
    pub(super) ports: Vec<(PortNum, PortLids)>,
    /// The number of the first LID, of all.
    pub(super) number: usize,
    /// The same among those of its batch.
    pub(super) first: usize,
    /// The LIDs.
    pub(super) lids: Vec<Lid>,
}

impl Destination {
    /// Where its LIDs are among those of its batch.
    pub(super) fn numbers(&self) -> Range<usize> {
        self.first..self.first + self.lids.len()
    }

    /// What its switch does for the end ports on it, by LID of the batch.
    pub(super) fn deliver(&self, row: &mut [PortNum]) {
        let mut number = self.first;
        for (port, lids) in &self.ports {
            let next = number + (1 << lids.lmc);
            row[number..next].fill(*port);
            number = next;
        }
    }
}
