//! The report of `weft ps`: a list of processes.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::HexGuid;
use crate::hub::ProcessEnd;

/// A process of a laboratory.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Process {
    /// Its name.
    pub process: String,
    /// Its number, if it runs.
    pub pid: Option<i32>,
    /// How it is.
    pub state: State,
    /// What it is: `switch`, `hca` or `packed` of an agent, otherwise the kind of process.
    pub kind: String,
    /// Where peers and managers reach an agent (UDP).
    pub address: Option<String>,
    /// Where it serves `/metrics`.
    pub metrics: Option<String>,
    /// The devices of an agent.
    pub devices: Vec<Device>,
    /// How long a peer that is frozen or on another machine may be silent. One of this machine that ends is noticed at
    /// once.
    pub link_timeout_ms: Option<u64>,
    /// What the agent counted, if it answers.
    pub counts: Option<BTreeMap<String, u64>>,
    /// How often the hub has started it again, if a hub answers.
    pub restarts: Option<u64>,
    /// How it ended last, if a hub answers that has seen it end.
    pub last_end: Option<ProcessEnd>,
}

weft_wire::named! {
    /// How a process is.
    #[derive(Default)]
    #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
    #[cfg_attr(feature = "schema", schemars(rename = "ShownState"))]
    pub enum State {
        /// It runs.
        Running = "running",
        /// It does not run.
        #[default]
        Dead = "dead",
        /// It runs, and a fault keeps it frozen. Agents answer while their nodes are frozen, and are `running`.
        Frozen = "frozen",
        /// It runs and does not answer.
        Silent = "silent",
    }
}

/// A device of an agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Device {
    /// Its id in the topology file.
    pub id: String,
    /// Its NodeGUID.
    pub guid: HexGuid,
    /// Its description.
    pub description: String,
    /// The shortest name that finds it.
    pub label: String,
    /// Blocks of its forwarding table that were written, as the switch itself counts them, if its agent answers.
    pub lft_writes: Option<u64>,
}
