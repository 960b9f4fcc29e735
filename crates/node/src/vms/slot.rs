//! One slot, and who is in it.

use super::{SlotState, VmIdentity};
use crate::NewDevice;

/// One slot.
#[derive(Debug)]
pub(crate) struct Slot {
    /// What the device was made from at first: an empty slot's device has these GUIDs.
    pub(super) first: NewDevice,
    /// How often its device was switched on again.
    pub(super) renewals: u64,
    pub(super) identity: VmIdentity,
    pub(super) state: SlotState,
    pub(super) vm: Option<String>,
    /// The highest epoch of a command.
    pub(super) epoch: u64,
    pub(super) left: Option<(String, u64)>,
}
