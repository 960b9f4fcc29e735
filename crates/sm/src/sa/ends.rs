//! End ports as subnet administration sees them.

use weft_wire::{Guid, Lid};

use crate::knowledge::PortAt;

/// A port with LIDs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct End {
    /// The first of its 2^lmc LIDs.
    pub(super) lid: Lid,
    pub(super) lmc: u8,
    pub(super) guid: Guid,
    pub(super) at: PortAt,
}

impl End {
    /// How many LIDs it has.
    pub(super) fn lids(&self) -> u16 {
        1 << self.lmc
    }

    pub(super) fn has(&self, lid: Lid) -> bool {
        lid.0.checked_sub(self.lid.0).is_some_and(|offset| offset < self.lids())
    }
}
