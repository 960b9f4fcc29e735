//! Lines of the journal.

use serde::{Deserialize, Serialize};
use weft_vocabulary::vm::Step;
use weft_wire::{Guid, Lid};

use crate::identity::{Identity, PortIdentity, Scheme};
use crate::names::{HostName, Place, Slot, VmName};

/// What is written down before it is done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Record {
    /// A manager begins. Everything before belongs to earlier ones.
    Started {
        /// Its generation.
        generation: u64,
        /// Who gives LIDs.
        scheme: Scheme,
        /// Whether there has been a beginning without a journal, after which virtual machines are adopted.
        adopts: bool,
        /// The highest epoch so far.
        epoch: u64,
        /// The next GUID for a virtual machine with dynamic LIDs.
        next_guid: Guid,
    },
    /// A slot without a virtual machine has an identity that may be another than that of its configuration.
    Spare {
        /// The slot.
        slot: Slot,
        /// The identity.
        port: PortIdentity,
    },
    /// A virtual machine as it was found in an agent, or as a shorter journal tells of it.
    Vm {
        /// Its name.
        name: VmName,
        /// All about it.
        vm: Box<Vm>,
    },
    /// A slot is to be emptied when its host can be reached.
    Tomb(Slot),
    /// It was emptied.
    Cleared(Slot),
    /// A virtual machine is to start.
    Create {
        /// Its name.
        name: VmName,
        /// Its identity.
        identity: Box<Identity>,
        /// Its slot.
        place: Place,
        /// The slot's epoch.
        epoch: u64,
    },
    /// It runs.
    Created(VmName),
    /// Its port has a LID.
    HasLid {
        /// Its name.
        name: VmName,
        /// The LID.
        lid: Lid,
    },
    /// It is to end.
    Destroy {
        /// Its name.
        name: VmName,
        /// The slot's epoch.
        epoch: u64,
    },
    /// It has ended, and its name is free.
    Gone(VmName),
    /// It was not started, or it is forgotten: its name is free, and its slots are to be emptied.
    Forgotten(VmName),
    /// It died with its host.
    Lost {
        /// Its name.
        name: VmName,
        /// How that is known.
        proof: Proof,
    },
    /// It is to move: a slot is to be reserved.
    Reserve {
        /// Its name.
        name: VmName,
        /// Where to.
        to: Place,
        /// The identity of that slot, which changes places with it, or which it gets.
        displaced: Option<PortIdentity>,
        /// Whether it is shut down rather than suspended.
        cold: bool,
        /// The destination's epoch.
        epoch: u64,
    },
    /// The next step of a move.
    Step {
        /// The virtual machine.
        name: VmName,
        /// The step that is taken next.
        step: Step,
        /// The epoch that begins with it.
        epoch: u64,
    },
}

/// A virtual machine, as the journal has it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Vm {
    /// What moves with it.
    pub identity: Identity,
    /// Where it is; while it moves, where it comes from.
    pub place: Place,
    /// The epoch that it has there.
    pub epoch: u64,
    /// How it is.
    pub state: State,
}

/// How a virtual machine is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    /// Its agent is to start it.
    Starting,
    /// It runs.
    Running,
    /// It was found frozen by a manager that has no journal of it, and is left so.
    Frozen,
    /// Its agent is to end it.
    Stopping,
    /// It moves.
    Moving(Box<Move>),
    /// It died with its host.
    Lost(Proof),
}

/// A move that is under way.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Move {
    /// Where to.
    pub to: Place,
    /// The identity that the destination had before.
    pub displaced: Option<PortIdentity>,
    /// Whether it is shut down rather than suspended.
    pub cold: bool,
    /// The step that was written down last.
    pub step: Step,
    /// The epoch of that step.
    pub epoch: u64,
    /// The epoch in which the source was ordered to freeze, if it was.
    pub frozen: Option<u64>,
    /// The epoch in which the destination was sent the image, if it was.
    pub imported: Option<u64>,
    /// Whether the subnet manager was asked to move the address, and not back.
    pub rerouted: bool,
}

/// How it is known that a virtual machine runs no more.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Proof {
    /// Its host's agent is another process now.
    #[error("the agent of {host} is incarnation {is:#x}, and it ran in {was:#x}")]
    Incarnation {
        /// The host.
        host: HostName,
        /// The incarnation that it ran in.
        was: u64,
        /// Today's.
        is: u64,
    },
    /// Its host's agent has ended.
    #[error("the agent of {host} has ended: {how}")]
    Exit {
        /// The host.
        host: HostName,
        /// How, as its parent process learnt.
        how: String,
    },
    /// Its agent lives, and does not have it.
    #[error("the agent lives and has no such virtual machine in {0}")]
    Absent(Slot),
}

impl Record {
    /// The kinds of records by their names.
    pub const NAMES: [&'static str; 22] = [
        "started",
        "spare",
        "vm",
        "tomb",
        "cleared",
        "create",
        "created",
        "has-lid",
        "destroy",
        "gone",
        "forgotten",
        "lost",
        "reserve",
        "freeze",
        "import",
        "reroute",
        "commit",
        "done",
        "undo",
        "back",
        "resume",
        "undone",
    ];

    /// The virtual machine that it is about, if it is about one.
    pub(crate) fn vm(&self) -> Option<&VmName> {
        match self {
            Self::Started { .. } | Self::Spare { .. } | Self::Tomb(_) | Self::Cleared(_) => None,
            Self::Created(name) | Self::Gone(name) | Self::Forgotten(name) => Some(name),
            Self::Vm { name, .. }
            | Self::Create { name, .. }
            | Self::HasLid { name, .. }
            | Self::Destroy { name, .. }
            | Self::Lost { name, .. }
            | Self::Reserve { name, .. }
            | Self::Step { name, .. } => Some(name),
        }
    }

    /// The kind of record in a word, which names points at which a manager may die.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Started { .. } => "started",
            Self::Spare { .. } => "spare",
            Self::Vm { .. } => "vm",
            Self::Tomb(_) => "tomb",
            Self::Cleared(_) => "cleared",
            Self::Create { .. } => "create",
            Self::Created(_) => "created",
            Self::HasLid { .. } => "has-lid",
            Self::Destroy { .. } => "destroy",
            Self::Gone(_) => "gone",
            Self::Forgotten(_) => "forgotten",
            Self::Lost { .. } => "lost",
            Self::Reserve { .. } => Step::Reserve.name(),
            Self::Step { step, .. } => step.name(),
        }
    }
}
