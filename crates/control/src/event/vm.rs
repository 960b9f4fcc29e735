//! Events of a manager of virtual machines.

use crate::tagged::tagged;
use weft_wire::Lid;

tagged! {
    /// What happened to virtual machines, as their manager sees it.
    VmEvent by "event" {
        /// The manager begins.
        ManagerStarted = "vm-manager-started" {
            /// Its generation.
            generation: u64,
            /// Virtual machines that its journal knows.
            vms: u64,
            /// Whether it adopts what it finds: it has once begun without a journal.
            adopts: bool,
        },
        /// The manager does nothing any more.
        ManagerStopped = "vm-manager-stopped" {
            /// Why, for people.
            reason: String,
        },
        /// A virtual machine that no journal knows is managed from now on.
        Adopted = "vm-adopted" {
            /// Its name.
            vm: String,
            /// Its host.
            host: String,
            /// Its virtual function.
            vf: u8,
            /// Whether it runs.
            running: bool,
        },
        /// A virtual machine cannot be managed: its name or GUID is another's.
        Stranger = "vm-stranger" {
            /// Where it is.
            host: String,
            /// Its virtual function.
            vf: u8,
            /// Why, for people.
            reason: String,
        },
        /// A virtual machine runs.
        Runs = "vm-runs" {
            /// Its name.
            vm: String,
            /// Its host.
            host: String,
            /// Its virtual function.
            vf: u8,
        },
        /// A virtual machine's port has got a LID, or another one.
        HasLid = "vm-has-lid" {
            /// Its name.
            vm: String,
            /// The LID.
            #[cfg_attr(feature = "schema", schemars(with = "u16"))]
            lid: Lid,
        },
        /// A virtual machine has ended, or was forgotten.
        Gone = "vm-gone" {
            /// Its name.
            vm: String,
        },
        /// A virtual machine died with its host.
        Lost = "vm-lost" {
            /// Its name.
            vm: String,
            /// How that is known, for people.
            proof: String,
        },
        /// A move has come to a step.
        MoveStep = "vm-move-step" {
            /// The virtual machine.
            vm: String,
            /// `reserve`, `freeze`, `import`, `reroute`, `commit`, `done`, `undo`, `back`, `resume` or `undone`.
            step: String,
            /// Why, if it goes back.
            reason: Option<String>,
        },
        /// An agent's report of its slots cannot be.
        BadReport = "vm-bad-report" {
            /// The host.
            host: String,
            /// The fault of the report, for people.
            reason: String,
        },
        /// An agent does not do what has to be done. It is told again.
        Stuck = "vm-stuck" {
            /// The host.
            host: String,
            /// The virtual function.
            vf: u8,
            /// The agent's words.
            reason: String,
        },
        /// A host's agent answers.
        HostReady = "vm-host-ready" {
            /// The host.
            host: String,
        },
        /// A host's agent does not answer any more.
        HostAway = "vm-host-away" {
            /// The host.
            host: String,
            /// Why, for people.
            reason: String,
        },
    }
}
