use serde::{Deserialize, Serialize};
use weft_wire::Lid;

use crate::agent::Command;
use crate::error::VmError;
use crate::journal::Write;
use crate::names::{HostName, Slot, VmName};
use crate::record::{Proof, Step};
use crate::request::{Reply, RequestId};
use crate::sm::SmRequest;

/// What the manager wants done.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Output {
    /// Write to the journal, sync it, and say so. In this order; several may be synced at once.
    Journal(Write),
    /// Tell an agent.
    Command {
        /// The host.
        host: HostName,
        /// What to tell it.
        command: Command,
    },
    /// Ask the subnet manager.
    AskSm(SmRequest),
    /// Answer a client.
    Reply {
        /// Its request.
        id: RequestId,
        /// What came of it.
        result: Result<Reply, VmError>,
    },
    /// Something for the log.
    Event(Event),
}

/// Something for the log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Event {
    /// The manager begins, with its generation.
    Started {
        /// The generation.
        generation: u64,
        /// Virtual machines that it knows from its journal.
        vms: usize,
        /// Whether it adopts what it finds.
        adopts: bool,
    },
    /// The manager does nothing any more.
    Stopped(String),
    /// A virtual machine that no journal knows is from now on managed.
    Adopted {
        /// Its name.
        vm: VmName,
        /// Where it is.
        slot: Slot,
        /// Whether it runs.
        running: bool,
    },
    /// A virtual machine that cannot be managed: its name, GUID or place is another's.
    Stranger {
        /// Where it is.
        slot: Slot,
        /// Why.
        why: String,
    },
    /// A virtual machine runs.
    Runs {
        /// Its name.
        vm: VmName,
        /// Where.
        slot: Slot,
    },
    /// A virtual machine's port has got a LID, or another one.
    HasLid {
        /// Its name.
        vm: VmName,
        /// The LID.
        lid: Lid,
    },
    /// A virtual machine has ended.
    Gone(VmName),
    /// A virtual machine died with its host.
    Lost {
        /// Its name.
        vm: VmName,
        /// How that is known.
        proof: Proof,
    },
    /// A move has come to a step.
    Step {
        /// The virtual machine.
        vm: VmName,
        /// The step.
        step: Step,
        /// Why, if it goes back.
        why: Option<String>,
    },
    /// An agent's report cannot be.
    BadReport {
        /// The host.
        host: HostName,
        /// What is wrong.
        why: String,
    },
    /// An agent does not do what has to be done. It is told again.
    Stuck {
        /// The slot.
        slot: Slot,
        /// Its words.
        why: String,
    },
}
