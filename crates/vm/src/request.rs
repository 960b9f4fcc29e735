//! Requests of clients, and their answers.

use serde::{Deserialize, Serialize};
use weft_machine::Time;
use weft_vocabulary::vm::{MoveCounts, Silent, VPort};
use weft_wire::{Guid, PKey};

use crate::names::{HostName, Slot, VmName};
use crate::sm::{MovePlan, Route, Stages};

/// Machines of one fleet at most.
pub const FLEET_MAX: u32 = 1000;
/// Requests that wait at most.
pub const QUEUE_MAX: usize = 1024;
/// Virtual machines at most: every one needs a unicast LID (IBA 4.1.3).
pub const VMS_MAX: usize = 49_151;

/// A request's number, which the driver gives; its answer has the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RequestId(pub u64);

/// What a client asks for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Request {
    /// Start a virtual machine, or a fleet of them.
    Create(Create),
    /// End one, or remove a lost one from the list.
    Destroy(VmName),
    /// Move one.
    Migrate(Migrate),
    /// List all.
    List,
    /// Ask the subnet manager what a move would change; nothing is sent.
    Plan {
        /// The virtual machine.
        vm: VmName,
        /// The host to move to.
        host: HostName,
        /// How.
        route: Route,
    },
    /// Give up one that is lost, or whose host cannot be reached.
    Forget {
        /// The virtual machine.
        vm: VmName,
        /// Also when it may still run. Its host is asked to end it when the host returns.
        force: bool,
    },
}

/// Virtual machines to start.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Create {
    /// The name; machines of a fleet are called NAME-1, NAME-2 and so on.
    pub name: VmName,
    /// The host; without it, the hosts with most free slots.
    pub host: Option<HostName>,
    /// The slot; without it, the first free one.
    pub vf: Option<u8>,
    /// The number of a fleet's machines; `None` for a single one.
    pub count: Option<u32>,
    /// The port's GUID, with dynamic LIDs; without it, the manager chooses one.
    pub guid: Option<Guid>,
    /// Its partitions.
    pub p_keys: Vec<PKey>,
    /// Its weight for routing.
    pub weight: u32,
    /// What it moves in each direction at most, in Mb/s of fabric time; 0 is no limit.
    pub rate_mbps: u32,
}

impl Create {
    /// One virtual machine on a host, without further wishes.
    pub fn new(name: VmName, host: Option<HostName>) -> Self {
        Self { name, host, vf: None, count: None, guid: None, p_keys: Vec::new(), weight: 1, rate_mbps: 0 }
    }
}

/// A virtual machine to move.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Migrate {
    /// The virtual machine.
    pub vm: VmName,
    /// The host to move to.
    pub host: HostName,
    /// Shut it down and boot it there, rather than take its state along.
    pub cold: bool,
    /// When a running one loses its virtual function.
    pub detach: Detach,
    /// The times that an emulated hypervisor takes.
    pub hypervisor: Hypervisor,
    /// How the subnet manager moves the address.
    pub route: Route,
}

/// When a virtual machine loses its virtual function.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Detach {
    /// After its memory was copied: it communicates meanwhile.
    #[default]
    Late,
    /// Before its memory is copied, as hypervisors do with adapters whose state they cannot take along.
    Early,
}

/// The times that an emulated hypervisor takes; 0 if not said.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Hypervisor {
    /// Memory is copied while the machine runs.
    pub pre_copy: Time,
    /// What is left of it is copied while the machine is stopped.
    pub stop_copy: Time,
    /// From the arrival of the image to the moment when the machine can run.
    pub resume: Time,
}

/// A client's answer when it was done.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reply {
    /// They run.
    Created(Vec<(VmName, Slot)>),
    /// It is gone.
    Destroyed,
    /// It runs at its destination.
    Migrated(Box<Migration>),
    /// All virtual machines in order of their names.
    List(Vec<VPort>),
    /// What a move would change.
    Plan(Box<MovePlan>),
    /// It is forgotten.
    Forgotten,
}

/// A migration that was completed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Migration {
    /// The virtual machine.
    pub vm: VmName,
    /// Where it was.
    pub from: Slot,
    /// Where it is.
    pub to: Slot,
    /// How long each stage took.
    pub stages: Stages,
    /// What the subnet manager did; `None` where it does not know moves.
    pub counts: Option<MoveCounts>,
    /// The switches with hosts that heard nothing of it for a time; empty where there are none, or the subnet manager did not say.
    pub silent: Vec<Silent>,
    /// What was not as usual, in words.
    pub notes: Vec<String>,
}
