use serde::{Deserialize, Serialize};
use weft_wire::{Guid, Lid};

use crate::agent::Outcome;
use crate::names::{HostName, Place};
use crate::partitions::PortPartitions;
use crate::record::Record;
use crate::request::{Request, RequestId};
use crate::sm::SmAnswer;

/// What happens to the manager.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[allow(clippy::large_enum_variant)] // Most inputs are answers.
pub enum Input {
    /// It begins. Given once, before everything else.
    Start {
        /// What the journal says; `None` without a journal.
        journal: Option<Vec<Record>>,
        /// The hosts of the laboratory that have slots.
        hosts: Vec<HostName>,
        /// GUIDs of the fabric that virtual machines cannot have.
        guids: Vec<Guid>,
    },
    /// There is a connection to a host's agent.
    HostUp(HostName),
    /// It is gone, which proves nothing.
    HostDown(HostName),
    /// A host's agent has ended, as its parent process knows for sure.
    HostEnded {
        /// The host.
        host: HostName,
        /// The incarnation that has ended; `None`: all that there have been, and none runs now.
        incarnation: Option<u64>,
        /// How: its wait status in words.
        how: String,
    },
    /// An agent's answer.
    Answer {
        /// The host.
        host: HostName,
        /// The command's number.
        number: u64,
        /// What came of it.
        outcome: Outcome,
    },
    /// A virtual machine's port has got a LID, as its agent tells.
    PortHasLid {
        /// Where.
        place: Place,
        /// The port.
        port_guid: Guid,
        /// The LID.
        lid: Lid,
    },
    /// Everything up to this write is on disk.
    Synced(u64),
    /// The journal cannot be written, in words. The manager does nothing any more.
    DiskFailed(String),
    /// An answer of the subnet manager.
    Sm {
        /// The request's number.
        number: u64,
        /// What it says.
        answer: SmAnswer,
    },
    /// The subnet manager has other partitions.
    Partitions(PortPartitions),
    /// A client asks for something, and gets one answer.
    Request {
        /// The request's number.
        id: RequestId,
        /// What it asks for.
        request: Request,
    },
}
