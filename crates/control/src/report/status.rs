//! The report of `weft status`: the managers of a laboratory, and its processes by state.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use weft_wire::Lid;

use crate::HexGuid;
use crate::hub::RestartPolicy;
use crate::sm::SmStatus;
use crate::vmm::VmmStatus;

/// How the managers of a laboratory are.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Status {
    /// The laboratory's name.
    pub lab: String,
    /// Whether the subnet manager in charge runs.
    pub running: bool,
    /// The laboratory's subnet managers, and those of others that they have met.
    pub managers: Vec<Manager>,
    /// What the subnet manager in charge says, if it answers.
    pub sm: Option<SmStatus>,
    /// How long ago that held, in seconds.
    pub sm_age_s: Option<f64>,
    /// It runs, and does not say how it is now.
    pub sm_stale: bool,
    /// Subnet managers of other pieces of the fabric.
    pub pieces: Vec<Piece>,
    /// The first performance manager.
    pub pm: Option<Pm>,
    /// All performance managers.
    pub pms: Vec<Pm>,
    /// What the first VM manager says, if it answers.
    pub vmm: Option<VmmStatus>,
    /// All VM managers.
    pub vmms: Vec<Vmm>,
    /// The processes, if a hub answers.
    pub processes: Option<Processes>,
}

/// A subnet manager.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Manager {
    /// The process; none of the laboratory's for others.
    pub process: Option<String>,
    /// Whether it runs.
    pub running: bool,
    /// Its port's GUID.
    pub guid: HexGuid,
    /// Its port's LID; 0 before it is known.
    #[cfg_attr(feature = "schema", schemars(with = "u16"))]
    pub lid: Lid,
    /// Its priority in elections.
    pub priority: u8,
    /// Its state among the managers, `waiting` before it has one, or `not running`.
    pub state: String,
    /// Whether it is the one that says so.
    pub is_self: bool,
    /// Whether it has shown the SM_Key.
    pub is_trusted: bool,
}

/// A subnet manager of another piece of the fabric than the first one's.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Piece {
    /// A node of the piece.
    pub piece: String,
    /// The process.
    pub manager: String,
    /// Whether it runs.
    pub running: bool,
    /// What it says, if it answers.
    pub sm: Option<SmStatus>,
}

/// A performance manager.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Pm {
    /// The process.
    pub process: String,
    /// Whether it runs.
    pub running: bool,
    /// How long ago what follows held, in seconds.
    pub age_s: Option<f64>,
    /// It runs, and does not say how it is now.
    pub stale: bool,
    /// Whether it is attached to its port.
    pub attached: bool,
    /// Whether the fabric is known and swept.
    pub ready: bool,
    /// Sweeps that have ended.
    pub sweeps: u64,
    /// How long the last one took, in seconds.
    pub sweep_took_s: f64,
    /// Nodes that it sweeps.
    pub nodes: u64,
    /// Of these, the ones that do not answer.
    pub silent_nodes: u64,
    /// Ports that it sweeps.
    pub ports: u64,
    /// Hot spots now.
    pub hot_spots: usize,
}

/// A VM manager; `weft vm ls` lists virtual machines.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Vmm {
    /// The process.
    pub process: String,
    /// Whether it runs.
    pub running: bool,
    /// What it says, if it answers.
    pub status: Option<VmmStatus>,
}

/// The laboratory's processes, as the hub knows them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Processes {
    /// Those that the laboratory was planned with.
    pub expected: u64,
    /// How many of them run.
    pub alive: u64,
    /// All processes by state.
    pub states: BTreeMap<String, u64>,
    /// Started again by this hub.
    pub restarts: u64,
    /// Which processes it starts again.
    pub restart: RestartPolicy,
}
