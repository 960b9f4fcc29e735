//! Requests to a manager of virtual machines, and its answers.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
pub use weft_vocabulary::vm::{
    LatePolicy as VmLate, Method as VmMethod, MoveCounts as VmMoveCounts, PlanWrite as VmPlanWrite,
    Silent as VmSilent, UpdateOrder as VmUpdate, VPort,
};
use weft_wire::PKey;

use crate::HexGuid;

/// Virtual machines to start.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct VmCreate {
    /// The name: 1 to 64 letters, digits, `-`, `_` and `.`. Machines of a fleet are called NAME-1, NAME-2 and so on.
    pub name: String,
    /// The host; without it, the hosts with most free slots.
    #[serde(default)]
    pub host: Option<String>,
    /// The virtual function, from 1; without it, the first free one.
    #[serde(default)]
    pub vf: Option<u8>,
    /// The number of a fleet's machines; without it, there is a single one.
    #[serde(default)]
    pub count: Option<u32>,
    /// The port's GUID, with dynamic LIDs; without it, the manager chooses one.
    #[serde(default)]
    pub guid: Option<HexGuid>,
    /// Its partitions. The subnet manager must have its GUID in each of them: it writes them to the port, wherever the machine goes.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schemars(with = "Vec<u16>"))]
    pub p_keys: Vec<PKey>,
    /// What it moves in each direction at most, in Mb/s of fabric time; without it, there is no limit but the adapter's.
    #[serde(default)]
    pub rate_mbps: Option<u32>,
}

/// Where a virtual machine is to go, and how its address follows.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct VmWay {
    /// The virtual machine.
    pub vm: String,
    /// The host to move to.
    pub host: String,
    /// Which switches are written.
    #[serde(default)]
    pub method: VmMethod,
    /// In which order.
    #[serde(default)]
    pub update: VmUpdate,
    /// What is done where that order alone is not safe.
    #[serde(default)]
    pub late: VmLate,
}

/// A virtual machine to move.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct VmMigrate {
    /// Which one, where to, and how.
    #[serde(flatten)]
    pub way: VmWay,
    /// Shut it down and boot it there, rather than take its state along.
    #[serde(default)]
    pub cold: bool,
    /// Take its virtual function away before its memory is copied, rather than after.
    #[serde(default)]
    pub early_detach: bool,
    /// How long an emulated hypervisor copies memory while the machine runs, in milliseconds.
    #[serde(default)]
    pub pre_copy_ms: u64,
    /// How long it copies the rest while the machine is stopped.
    #[serde(default)]
    pub stop_copy_ms: u64,
    /// How long the machine takes to resume.
    #[serde(default)]
    pub resume_ms: u64,
}

/// A virtual machine and its place.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct VmPlace {
    /// Its name.
    pub vm: String,
    /// Its host.
    pub host: String,
    /// Its virtual function.
    pub vf: u8,
}

/// A migration that was completed. Times are in nanoseconds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct VmMigration {
    /// The virtual machine and where it was.
    pub from: VmPlace,
    /// Where it is.
    pub to: VmPlace,
    /// How long each stage took, in order.
    pub stages: Vec<VmStage>,
    /// From the command to freeze until the last peer is served, at most, its LID included; null while it has none.
    pub downtime_ns: Option<u64>,
    /// From the command to freeze to the answer that the destination runs, when all are served but hosts at silent switches.
    #[serde(default)]
    pub runs_again_ns: Option<u64>,
    /// For how long hosts at silent switches hear nothing after that answer, at most; null where there are none. The rest of their silence
    /// fell within the time for which the machine was stopped.
    #[serde(default)]
    pub silent_after_ns: Option<u64>,
    /// From the first stage's beginning to the last one's end.
    pub total_ns: u64,
    /// What the subnet manager did; none where it does not know moves.
    pub counts: Option<VmMoveCounts>,
    /// The switches with hosts that heard nothing of it for a time, as the subnet manager says of the move that it carried out; empty where
    /// there are none, or it did not say.
    #[serde(default)]
    pub silent: Vec<VmSilent>,
    /// What was not as usual, for people.
    pub notes: Vec<String>,
}

/// A stage of a migration.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct VmStage {
    /// Its name: `reserve`, `pre-copy`, `hold`, `freeze`, `export`, `import`, `reroute`, `commit`, `activate`, `wait-for-lid`
    /// or `release`.
    pub stage: String,
    /// How long it took, in nanoseconds.
    pub took_ns: u64,
}

/// The answer to `vmm-status`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct VmmStatus {
    /// How old this is, in milliseconds: more than 0 when the manager is busy.
    pub age_ms: u64,
    /// Why it does nothing any more; none while it works.
    pub stopped: Option<String>,
    /// Whether it is attached to its port.
    pub attached: bool,
    /// Its generation: agents refuse orders of earlier ones. 0 until it has begun.
    pub generation: u64,
    /// `prepopulated` or `dynamic`.
    pub scheme: String,
    /// Hosts with slots, and of these, hosts whose agents answer.
    pub hosts: u64,
    /// Hosts whose agents answer.
    pub hosts_ready: u64,
    /// Slots of the hosts that have reported theirs.
    pub slots: u64,
    /// Slots that a virtual machine can come to.
    pub slots_free: u64,
    /// Virtual machines by state, as in `vms`.
    pub vms: BTreeMap<String, u64>,
    /// Requests that wait for their turn.
    pub queued: u64,
    /// Creations, removals and moves under way.
    pub under_way: u64,
    /// The journal's size in bytes.
    pub journal_bytes: u64,
    /// What was counted since it began: requests, moves that were completed or undone, machines lost, what was dropped.
    pub counts: BTreeMap<String, u64>,
}
