//! States of a slot of virtual machines.

use std::fmt;

use serde::{Deserialize, Serialize};

/// How a slot is used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum SlotState {
    /// Unplugged, without a virtual machine: the vSwitch's port is Down on purpose.
    #[default]
    Empty,
    /// Plugged in, without a virtual machine.
    Free,
    /// Kept for a virtual machine that will come; plugged in or not, as it was before.
    Reserved,
    /// A virtual machine runs.
    Running,
    /// A virtual machine is suspended, and perhaps exported.
    Frozen,
    /// A virtual machine has arrived and waits to be activated.
    Imported,
}

impl SlotState {
    /// Its name, for people and in JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Empty => "empty",
            Self::Free => "free",
            Self::Reserved => "reserved",
            Self::Running => "running",
            Self::Frozen => "frozen",
            Self::Imported => "imported",
        }
    }
}

impl fmt::Display for SlotState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
