//! The subnet manager: its events, what a sweep came to, its state among others, commands to them, and counts of the election.

mod event;
mod learning;
mod limited;
mod reason;
mod signalled;
mod sweep;
mod vm_lids;
mod window;

use serde::{Deserialize, Serialize};
use weft_wire::{Guid, Lid};

#[cfg(feature = "schema")]
use crate::HexGuid;
use crate::codes::of_wire;
use crate::hex;

pub use crate::routing::EngineReport;
pub use event::Event;
pub use learning::Learning;
pub use limited::Limited;
pub use reason::{Reason, RepathUse};
pub use signalled::{MAD_BYTES, Signalled};
pub use sweep::{PhaseTime, SmpCounts, Summary, SweepPhase};
pub use vm_lids::{Rebalances, VmLids};
pub use window::{WindowReason, WindowState};

/// The kinds of sweep.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum SweepKind {
    /// Discovers everything again.
    Heavy,
    /// Asks switches whether anything changed.
    Light,
    /// Routes and writes what a cable that went or came back touches, and no more.
    Repair,
}

/// What the master may tell another manager to do (IBA 14.4.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Instruction {
    /// STANDBY becomes NOT-ACTIVE: silent until the master says STANDBY.
    Disable,
    /// NOT-ACTIVE becomes STANDBY.
    Standby,
    /// STANDBY becomes DISCOVERING, and with a master there STANDBY again.
    Discover,
}

impl Instruction {
    /// As the specification writes it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Disable => "DISABLE",
            Self::Standby => "STANDBY",
            Self::Discover => "DISCOVER",
        }
    }
}

/// What became of an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Instructed {
    /// The other manager obeys.
    Accepted,
    /// It refuses: the command does not fit its state.
    Refused,
    /// It does not answer.
    Unanswered,
    /// No manager is behind that port.
    Unknown,
    /// It shows another SM_Key; nothing is sent to it.
    Untrusted,
    /// The manager that was to command is not the master.
    NotMaster,
    /// Another instruction is under way.
    Busy,
}

/// What the election has taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ElectionCounts {
    /// Polls of the master, or of one that is to hand over.
    pub polls: u64,
    /// Polls without an answer.
    pub polls_unanswered: u64,
    /// Requests of other managers that were answered.
    pub answered: u64,
    /// HANDOVERs sent.
    pub handovers_sent: u64,
    /// HANDOVERs of which the answer was an error.
    pub handovers_refused: u64,
    /// HANDOVERs received and obeyed.
    pub handovers_received: u64,
    /// Commands without this manager's SM_Key.
    pub key_mismatches: u64,
    /// Times it came into charge where another manager had been.
    pub takeovers: u64,
}

weft_wire::named! {
    /// A subnet manager's state among others (SMInfo:SMState).
    #[derive(Default, PartialOrd, Ord)]
    #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
    pub enum SmState {
        /// Disabled by another manager.
        NotActive = "not-active",
        /// Looking for other managers.
        Discovering = "discovering",
        /// Waiting for the master to fail.
        Standby = "standby",
        /// In charge.
        Master = "master",
        /// Not known, or a code that no state has.
        #[default]
        Unknown = "unknown",
    }
}

of_wire!(SmState => SmState { NotActive, Discovering, Standby, Master, _ => Unknown });

/// A subnet manager among others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "ManagerLine"))]
pub struct ManagerStatus {
    /// The port that it is behind.
    #[serde(with = "hex")]
    #[cfg_attr(feature = "schema", schemars(with = "HexGuid"))]
    pub guid: Guid,
    /// Its LID; 0 is not known.
    pub lid: Lid,
    /// Its priority.
    pub priority: u8,
    /// Its state.
    pub state: SmState,
    /// Whether it is the manager that says so.
    pub is_self: bool,
    /// Whether it shows the SM_Key of the manager that says so.
    pub is_trusted: bool,
}
