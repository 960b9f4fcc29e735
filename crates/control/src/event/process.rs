//! Events that every process has.

use weft_vocabulary::tagged;

use crate::process::ProcessKind;

tagged! {
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
        },
        /// It has its sockets: peers may dial it, programs may attach.
        Ready = "process-ready",
        /// It was asked to stop, and stops in order.
        Stopping = "process-stopping",
        /// It cannot go on.
        Failed = "process-failed" {
            /// Why, for people.
            reason: String,
        },
        /// A manager has its port.
        Attached = "attached" {
            /// The node.
            node_guid: crate::HexGuid,
            /// The port's GUID.
            port_guid: crate::HexGuid,
        },
        /// A manager has lost its port.
        Detached = "detached",
        /// It has read its identity again, and uses it.
        IdentityRenewed = "identity-renewed",
        /// Its list of revoked identities has grown.
        IdentitiesRevoked = "identities-revoked",
        /// What it logs was changed.
        LogFilterSet = "log-filter-set" {
            /// Directives as in `WEFT_LOG`.
            filter: String,
        },
        /// Events could not be kept, as on a full disk or because a reader was too slow.
        EventsLost = "events-lost" {
            /// How many.
            count: u64,
        },
    }
}
