//! Events that every process has.

use weft_vocabulary::told;
use weft_wire::{Printable, count_of};

use crate::process::ProcessKind;

told! {
    /// What happened to a process.
    ProcessEvent by "event" {
        /// It began.
        Started = "process-started" {
            /// What it is.
            kind: ProcessKind,
            /// The version of weft that it runs.
            version: String,
            /// Its number, as itself sees it.
            pid: u32,
        } => ("{} {} began as process {pid}", kind.name(), Printable(version)),
        /// It has its sockets: peers may dial it, programs may attach.
        Ready = "process-ready" => ("ready"),
        /// It was asked to stop, and stops in order.
        Stopping = "process-stopping" => ("stops"),
        /// It cannot go on.
        Failed = "process-failed" {
            /// Why, for people.
            reason: String,
        } => ("cannot go on: {}", Printable(reason)),
        /// A manager has its port.
        Attached = "attached" {
            /// The node.
            node_guid: crate::HexGuid,
            /// The port's GUID.
            port_guid: crate::HexGuid,
        } => ("attached at {node_guid}"),
        /// A manager has lost its port.
        Detached = "detached" => ("the attachment is gone"),
        /// It has read its identity again, and uses it.
        IdentityRenewed = "identity-renewed" => ("its identity was renewed"),
        /// Its list of revoked identities has grown.
        IdentitiesRevoked = "identities-revoked" => ("its list of revoked identities has grown"),
        /// What it logs was changed.
        LogFilterSet = "log-filter-set" {
            /// Directives as in `WEFT_LOG`.
            filter: String,
        } => ("logs `{}`", Printable(filter)),
        /// Events could not be kept, as on a full disk or because a reader was too slow.
        EventsLost = "events-lost" {
            /// How many.
            count: u64,
        } => ("lost: {}", count_of(*count as usize, "event")),
    }
}
