//! Events of the laboratory as a whole.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::events;

/// What somebody broke or repaired on purpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Fault {
    /// A process was killed.
    Kill,
    /// A process was started again.
    Restart,
    /// Both ends of a cable were unplugged.
    LinkDown,
    /// Both ends of a cable were plugged in.
    LinkUp,
    /// A fault that lasts was cleared by its name.
    Clear,
}

impl Fault {
    /// Its name in JSON, which is also the verb's.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Kill => "kill",
            Self::Restart => "restart",
            Self::LinkDown => "link-down",
            Self::LinkUp => "link-up",
            Self::Clear => "clear",
        }
    }
}

events! {
    /// What happened to the laboratory.
    LabEvent {
        /// Something was broken or repaired on purpose.
        Fault = "fault" {
            /// What was done.
            fault: Fault,
            /// To what, as the user named it.
            target: String,
        },
        /// A process has ended, in order or not.
        ProcessEnded = "process-ended" {
            /// Its name in the laboratory.
            process: String,
            /// Its exit code; none when a signal ended it.
            code: Option<i32>,
            /// The signal that ended it.
            signal: Option<i32>,
        },
        /// A program of ibsim has attached.
        ProgramAttached = "program-attached" {
            /// The node that it is at.
            node: String,
            /// Its process.
            pid: u32,
        },
        /// A program of ibsim has died.
        ProgramDied = "program-died" {
            /// Its slot.
            slot: u32,
        },
    }
}
