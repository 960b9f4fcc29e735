//! Status of every process.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{Incarnation, Role, Utc};

weft_wire::named! {
    /// The kinds of processes.
    #[derive(PartialOrd, Ord)]
    #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
    pub enum ProcessKind {
        /// Runs devices.
        Agent = "agent",
        /// A subnet manager.
        Sm = "sm",
        /// A performance manager.
        Pm = "pm",
        /// A manager of virtual machines.
        Vmm = "vmm",
        /// The server for programs of ibsim.
        Ibsim = "ibsim",
        /// Unmodified OpenSM, and the process that started it.
        Opensm = "opensm",
        /// The laboratory's supervisor.
        Hub = "hub",
    }
}

impl ProcessKind {
    /// Its job in Prometheus; none of a kind that serves no metrics.
    pub fn job(self) -> Option<&'static str> {
        match self {
            Self::Hub => Some("weft-hub"),
            Self::Sm => Some("weft-sm"),
            Self::Pm => Some("weft-pm"),
            Self::Vmm => Some("weft-vmm"),
            Self::Agent => Some("weft-agent"),
            Self::Ibsim | Self::Opensm => None,
        }
    }
}

/// Who a process is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Identity {
    /// Its laboratory; empty without one.
    pub lab: String,
    /// Its name in the laboratory: the `source` of its events.
    pub name: String,
    /// What it is.
    pub kind: ProcessKind,
    /// The version of weft that it runs.
    pub version: String,
    /// Its number, as itself sees it.
    pub pid: u32,
    /// This life of it.
    pub incarnation: Incarnation,
}

/// The answer to `hello`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Hello {
    /// Who answers.
    #[serde(flatten)]
    pub identity: Identity,
    /// The versions of the protocol that it speaks.
    pub protocols: Vec<u32>,
    /// What this client may do.
    pub role: Role,
    /// The wall clock of its machine.
    pub time: Utc,
    /// Nanoseconds since the process began, by a clock that never goes back.
    pub monotonic_ns: u64,
}

/// What a process is doing, as far as its health goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Condition {
    /// It is not ready yet.
    Starting,
    /// It works.
    Ready,
    /// Its loop has not come round for long.
    Stuck,
    /// It stops.
    Stopping,
}

/// The answer to `health`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Health {
    /// What the process is doing.
    pub condition: Condition,
    /// How long its loop has been at what it does now, in milliseconds; 0 for a process without such a loop.
    pub busy_ms: u64,
    /// Descriptors that it has open; 0 where it does not say.
    #[serde(default)]
    pub descriptors: u64,
    /// Memory that is in use by it (resident), in KiB; 0 where it does not say.
    #[serde(default)]
    pub memory_kib: u64,
}

/// The answer to `log-filter`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LogFilter {
    /// Directives as in `WEFT_LOG`.
    pub filter: String,
}

/// What the clients of a process's API have done since it began.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Clients {
    /// Connected now.
    pub connected: u64,
    /// Connected ever.
    pub accepted: u64,
    /// Turned away because there were too many.
    pub turned_away: u64,
    /// Turned away because one process had as many connections as it may.
    #[serde(default)]
    pub of_one_turned_away: u64,
    /// Disconnected because they did not read.
    pub too_slow: u64,
    /// Of these and all others, those that left in the middle of a line.
    pub half_lines: u64,
    /// Requests by name.
    pub requests: BTreeMap<String, u64>,
    /// Errors by code.
    pub errors: BTreeMap<String, u64>,
    /// Events sent.
    pub events_told: u64,
    /// Events not sent, because a client read so slowly that they were forgotten.
    pub events_skipped: u64,
}

/// The answer to `events`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Subscribed {
    /// The incarnation that the events are of.
    pub incarnation: Incarnation,
    /// The sequence number that the first event has at least.
    pub next: u64,
    /// Events that the client asked for and the process has forgotten.
    pub forgotten: u64,
}
