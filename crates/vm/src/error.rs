//! Errors of requests, each with a remedy where one is known.

use std::fmt;

use serde::{Deserialize, Serialize};
use weft_wire::{Guid, PKey};

use crate::names::{BadName, HostName, Slot, VmName};
use crate::request::{FLEET_MAX, QUEUE_MAX, VMS_MAX};

/// A reason in words, and the remedy where one is known. Its text has both.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Why {
    /// What is wrong.
    pub words: String,
    /// What to do about it.
    pub hint: Option<String>,
}

impl Why {
    /// With a remedy.
    pub(crate) fn with_hint(words: impl Into<String>, hint: &str) -> Self {
        Self { words: words.into(), hint: Some(hint.to_owned()) }
    }
}

impl From<String> for Why {
    fn from(words: String) -> Self {
        Self { words, hint: None }
    }
}

impl From<&str> for Why {
    fn from(words: &str) -> Self {
        words.to_owned().into()
    }
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.words)?;
        self.hint.as_ref().map_or(Ok(()), |hint| write!(f, "; hint: {hint}"))
    }
}

/// Why a request was not carried out. The text leaves the remedy to [`hint`](VmError::hint).
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[allow(missing_docs, reason = "each text says what its fields are")]
pub enum VmError {
    #[error(transparent)]
    BadName(#[from] BadName),
    #[error("no virtual machine is called `{0}`")]
    UnknownVm(VmName),
    #[error("a virtual machine is already called `{0}`")]
    NameTaken(VmName),
    #[error("no host is called `{0}`")]
    UnknownHost(HostName),
    #[error("host `{0}` cannot be reached")]
    HostAway(HostName),
    #[error("`{0}` has no LID yet, so there are no rows to plan")]
    NoLid(VmName),
    #[error("all {vfs} virtual functions of host `{host}` are in use")]
    HostFull { host: HostName, vfs: usize },
    #[error("only {free} virtual functions are free, and {wanted} are needed")]
    FabricFull { free: usize, wanted: u32 },
    #[error("`{vm}` is on host `{host}` already")]
    SameHost { vm: VmName, host: HostName },
    #[error("{0} is in use")]
    SlotTaken(Slot),
    #[error("there is no {slot}: the host has {vfs} virtual functions")]
    UnknownSlot { slot: Slot, vfs: usize },
    #[error("`{vm}` is busy: {doing}")]
    Busy { vm: VmName, doing: String },
    #[error("GUID 0 names no port")]
    GuidZero,
    #[error("GUID {guid} is in use by {by}")]
    GuidTaken { guid: Guid, by: String },
    #[error("with prepopulated LIDs a virtual machine takes the GUID of its slot")]
    GuidOfSlot,
    #[error(
        "with dynamic vGUIDs a virtual machine has the GUID of its function, another one after each move"
    )]
    GuidOfFunction,
    #[error("a fleet's machines cannot share a GUID or a virtual function")]
    FleetShares,
    #[error("a fleet has 1 to {FLEET_MAX} machines, and not {0}")]
    FleetSize(u32),
    #[error("there are {VMS_MAX} virtual machines at most, one for each unicast LID")]
    TooManyVms,
    #[error("the journal has no room for another machine")]
    JournalFull,
    #[error("P_Key {:#06x} names no partition", .0.0)]
    NoPartition(PKey),
    #[error("every virtual machine is in the default partition, 0x7fff")]
    DefaultPartition,
    #[error("P_Key {:#06x} names a partition for the second time", .0.0)]
    PartitionTwice(PKey),
    #[error("the subnet manager has no partitions")]
    NoPartitions,
    #[error(
        "{slot} has GUID {guid}, which is not in partition {:#06x}",
        p_key.0
    )]
    NotInPartition { slot: Slot, guid: Guid, p_key: PKey },
    #[error("a rate of 0 lets nothing pass")]
    RateZero,
    #[error("a virtual machine has at most {max} P_Keys, and not {wanted}")]
    TooManyPKeys { wanted: usize, max: usize },
    #[error("`{0}` is not in doubt: its host answers")]
    NotInDoubt(VmName),
    #[error("`{0}` may still run on a host that cannot be reached")]
    NeedsForce(VmName),
    #[error("`{vm}` is in doubt: {why}; the manager goes on")]
    InDoubt { vm: VmName, why: String },
    #[error("`{vm}` is lost: {why}")]
    Lost { vm: VmName, why: String },
    #[error("`{vm}` does not run: {}", why.words)]
    NotRunning { vm: VmName, why: Why },
    #[error("`{vm}` was not started: {}", why.words)]
    NotStarted { vm: VmName, why: Why },
    #[error("{made} of {wanted} machines run; the first that does not: {first}")]
    Fleet { made: u32, wanted: u32, first: Box<VmError> },
    #[error("`{vm}` stays on its host: {}", why.words)]
    Undone { vm: VmName, why: Why },
    #[error("the subnet manager makes no plan: {}", .0.words)]
    NoPlan(Why),
    #[error("{QUEUE_MAX} requests wait already")]
    QueueFull,
    #[error("it has waited too long for what is under way, and nothing was done")]
    Waited,
    #[error("another request has this number")]
    NumberTaken,
    #[error("the VM manager has stopped: {}", .0.words)]
    Stopped(Why),
}

impl VmError {
    /// The remedy, where one is known.
    pub fn hint(&self) -> Option<String> {
        let hint = match self {
            Self::UnknownVm(_) | Self::Waited | Self::InDoubt { .. } => "weft vm ls",
            Self::UnknownHost(_) | Self::HostAway(_) => "weft ps",
            Self::NoLid(_) => "wait until `weft vm ls` shows its LID",
            Self::Busy { .. } => "try again when that has ended",
            Self::GuidOfSlot => "weft up --lids dynamic",
            Self::GuidOfFunction => "leave it out, or `weft up --vm-guids static`",
            Self::FleetShares | Self::DefaultPartition => "leave it out",
            Self::JournalFull => "weft vm destroy, weft vm forget",
            Self::NoPartition(_) => "partitions are 0x0001 to 0x7fff, and full members add 0x8000",
            Self::PartitionTwice(_) => "name each once",
            Self::NoPartitions => "weft up --partitions FILE",
            Self::NotInPartition { .. } => "`weft up --partitions FILE` names members by GUID",
            Self::RateZero => "leave it out for no limit",
            Self::NotInDoubt(vm) => return Some(format!("weft vm destroy {vm}")),
            Self::NeedsForce(vm) => return Some(format!("`weft vm forget --force {vm}` frees its name")),
            Self::QueueFull => "try again later",
            Self::NotRunning { why, .. } | Self::NotStarted { why, .. } | Self::Undone { why, .. } => {
                return why.hint.clone();
            }
            Self::NoPlan(why) | Self::Stopped(why) => return why.hint.clone(),
            Self::Fleet { first, .. } => return first.hint(),
            _ => return None,
        };
        Some(hint.to_owned())
    }
}
