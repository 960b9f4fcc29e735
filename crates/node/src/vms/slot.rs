//! One slot, and who is in it.

use super::{SlotState, VmIdentity};
use crate::NewDevice;

/// One slot.
#[derive(Debug)]
pub(crate) struct Slot {
    /// What the device was made from at first: an empty slot's device has these GUIDs.
    pub(crate) first: NewDevice,
    /// How often its device was switched on again.
    pub(crate) renewals: u64,
    pub(crate) identity: VmIdentity,
    pub(crate) state: SlotState,
    pub(crate) vm: Option<String>,
    /// The highest epoch of a command.
    pub(crate) epoch: u64,
    pub(crate) left: Option<(String, u64)>,
}
