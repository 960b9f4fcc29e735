use serde::{Deserialize, Serialize};
use weft_vocabulary::vm::Event;

use crate::agent::Command;
use crate::error::VmError;
use crate::journal::Write;
use crate::names::HostName;
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
