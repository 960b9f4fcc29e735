//! Status of a laboratory's hub.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::process::ProcessKind;
use crate::{Incarnation, Utc};

/// Which processes a hub starts again when they end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum RestartPolicy {
    /// None.
    #[default]
    Never,
    /// Those that ended without a request to stop.
    OnFailure,
}

weft_wire::named! {
    /// How a process ended.
    #[derive(PartialOrd, Ord)]
    #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
    pub enum EndKind {
        /// It was asked to stop, or had done its work.
        InOrder = "in-order",
        /// `weft fault kill` killed it.
        KilledOnPurpose = "killed-on-purpose",
        /// Neither: it crashed, could not go on, or something else killed it.
        Failed = "failed",
    }
}

weft_wire::named! {
    /// What a process of the laboratory is doing, as far as the hub knows.
    #[derive(Default, PartialOrd, Ord)]
    #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
    pub enum ProcessState {
        /// It belongs to the laboratory and has not been started yet.
        #[default]
        Expected = "expected",
        /// It runs, and does not answer at its control socket.
        Silent = "silent",
        /// It runs, and speaks no version of the protocol that the hub speaks.
        OtherProtocol = "other-protocol",
        /// It runs and is not ready yet.
        Starting = "starting",
        /// It works.
        Ready = "ready",
        /// It stops in order.
        Stopping = "stopping",
        /// It has ended.
        Ended = "ended",
    }
}

impl ProcessState {
    /// Whether the process runs.
    pub const fn is_alive(self) -> bool {
        !matches!(self, Self::Expected | Self::Ended)
    }
}

/// A process's last end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ProcessEnd {
    /// When the hub noticed.
    pub time: Utc,
    /// How it ended.
    pub how: EndKind,
    /// Its exit code, where the hub had started it.
    pub code: Option<i32>,
    /// The signal that ended it, where the hub had started it.
    pub signal: Option<i32>,
}

/// One process of the laboratory.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ProcessLine {
    /// Its name.
    pub name: String,
    /// What it is, where the hub knows that kind.
    pub kind: Option<ProcessKind>,
    /// Whether the laboratory was planned with it.
    pub is_expected: bool,
    /// The version of weft that it runs.
    pub version: Option<String>,
    /// Its number, as itself sees it.
    pub pid: Option<u32>,
    /// Its life, or its last one.
    pub incarnation: Option<Incarnation>,
    /// What it is doing.
    pub state: ProcessState,
    /// Since when, by the hub's clock.
    pub since: Utc,
    /// How often the hub has started it again.
    pub restarts: u64,
    /// In how many milliseconds the hub starts it again.
    pub restart_in_ms: Option<u64>,
    /// Its last end.
    pub last_end: Option<ProcessEnd>,
    /// Events collected from it.
    pub events: u64,
    /// Events that it forgot before the hub had read them.
    pub events_lost: u64,
    /// The links of an agent, as it last reported them.
    pub links: Option<Links>,
    /// What is wrong with it, for people.
    pub problem: Option<String>,
}

/// How far an agent's links are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Links {
    /// Ends of cables there that have a link.
    pub up: u32,
    /// Ends of cables there.
    pub total: u32,
    /// Cables that the agent has to dial and that have no link yet.
    pub to_dial: u32,
}

/// The answer to `lab-status`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LabStatus {
    /// The laboratory.
    pub lab: String,
    /// The version of weft that the hub runs.
    pub version: String,
    /// Which processes are started again.
    pub restart: RestartPolicy,
    /// Processes that the laboratory was planned with.
    pub expected: u64,
    /// Of these, those that run.
    pub alive: u64,
    /// Whether the laboratory still starts: until then the hub leaves out most events of agents.
    #[serde(default)]
    pub starting: bool,
    /// All processes by state.
    pub states: BTreeMap<String, u64>,
    /// Processes started again by this hub.
    pub restarts: u64,
    /// Events collected by this hub.
    pub events: u64,
    /// Events that processes forgot before this hub had read them.
    pub events_lost: u64,
    /// The page, in order of name.
    pub processes: Vec<ProcessLine>,
    /// Whether more follow.
    pub more: bool,
}
