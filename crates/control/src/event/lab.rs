//! Events of the laboratory as a whole.

use weft_fault::{FaultTimes, Word};
use weft_vocabulary::tagged;

use crate::hub::EndKind;

tagged! {
    /// What happened to the laboratory.
    LabEvent by "event" {
        /// Something was broken or repaired on purpose.
        Fault = "fault" {
            /// What was done.
            fault: Word,
            /// To what, as the user named it.
            target: String,
        },
        /// A fault is over, and all that it took with it is back. Where several lasted at once, each takes the first sign after its
        /// own beginning.
        FaultCost = "fault-cost" (FaultTimes<String>),
        /// A process has ended, in order or not.
        ProcessEnded = "process-ended" {
            /// Its name in the laboratory.
            process: String,
            /// How.
            how: EndKind,
            /// Its exit code, where the source had started it and no signal ended it.
            code: Option<i32>,
            /// The signal that ended it, where the source had started it.
            signal: Option<i32>,
        },
        /// The hub has started a process again.
        ProcessRestarted = "process-restarted" {
            /// Its name in the laboratory.
            process: String,
            /// How often the hub has done that.
            restarts: u64,
        },
        /// The hub could not start a process again, and tries later.
        RestartFailed = "restart-failed" {
            /// Its name in the laboratory.
            process: String,
            /// Why, for people.
            reason: String,
            /// When the hub tries again, in milliseconds from now.
            retry_ms: u64,
        },
        /// The start's progress; changes within some milliseconds are reported as one.
        StartProgress = "start-progress" {
            /// Agents that listen.
            agents_ready: u32,
            /// Agents.
            agents: u32,
            /// Ends of cables that have a link.
            links_up: u64,
            /// Ends of cables at the agents that have reported theirs.
            cable_ends: u64,
        },
        /// The hub could not start a process of the laboratory.
        StartFailed = "start-failed" {
            /// Its name in the laboratory.
            process: String,
            /// Why, for people.
            reason: String,
        },
        /// The hub has started the laboratory: it waits for nothing more.
        LabStarted = "lab-started",
        /// A flow has begun.
        FlowStarted = "flow-started" {
            /// Its name.
            flow: String,
            /// The set that it belongs to.
            set: Option<String>,
            /// The sending host.
            from: String,
            /// The receiving host.
            to: String,
        },
        /// A flow was ended on purpose.
        FlowStopped = "flow-stopped" {
            /// Its name.
            flow: String,
        },
        /// A flow has ended by itself.
        FlowEnded = "flow-ended" {
            /// Its name.
            flow: String,
            /// Whether it has done what it was to do.
            done: bool,
            /// Why, for people.
            reason: String,
        },
        /// A program of ibsim has attached.
        ProgramAttached = "program-attached" {
            /// Its slot.
            slot: u32,
            /// The node that it is at.
            node: String,
            /// The number that it names itself by: its process, or over UDP its port.
            pid: u32,
        },
        /// A program of ibsim has died.
        ProgramDied = "program-died" {
            /// Its slot.
            slot: u32,
        },
    }
}
