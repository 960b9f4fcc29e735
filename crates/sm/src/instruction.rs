//! What an operator has the master tell another manager, and what becomes of it.

use serde::{Deserialize, Serialize};

/// A command that only the master may give, and that no manager gives by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Instruction {
    /// STANDBY becomes NOT-ACTIVE: silent until the master says STANDBY.
    Disable,
    /// NOT-ACTIVE becomes STANDBY.
    Standby,
    /// STANDBY becomes DISCOVERING, and with a master there STANDBY again.
    Discover,
}

/// What became of an [`Instruction`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Instructed {
    /// The other manager obeys.
    Accepted,
    /// It refuses: the command makes no sense in its state.
    Refused,
    /// It does not answer.
    Unanswered,
    /// No manager is behind that port.
    Unknown,
    /// It shows another SM_Key; it is told nothing.
    Untrusted,
    /// The manager that was to command is not the master.
    NotMaster,
    /// Another instruction is under way.
    Busy,
}
