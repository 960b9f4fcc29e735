//! Events of the VM manager.

use weft_wire::{Lid, Printable, count_of};

use super::Step;
use crate::told;
use crate::words::name;

told! {
    /// What happened to virtual machines, as their manager sees it.
    #[derive(Eq)]
    #[cfg_attr(feature = "schema", schemars(rename = "VmEvent"))]
    Event by "event" {
        /// The manager begins.
        ManagerStarted = "vm-manager-started" {
            /// Its generation.
            generation: u64,
            /// Virtual machines that its journal knows.
            vms: u64,
            /// Whether it adopts what it finds: it has once begun without a journal.
            adopts: bool,
        } => ("VM manager begins in generation {generation} with {}{}", count_of(*vms as usize, "virtual machine"), if *adopts { "; it adopts what it finds" } else { "" }),
        /// The manager does nothing any more.
        ManagerStopped = "vm-manager-stopped" {
            /// Why, for people.
            reason: String,
        } => ("VM manager stops: {}", Printable(reason)),
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
        } => ("virtual machine {} was found: it {} in {} vf{vf}", name(vm), if *running { "runs" } else { "is frozen" }, Printable(host)),
        /// A virtual machine cannot be managed: its name or GUID is another's.
        Stranger = "vm-stranger" {
            /// Where it is.
            host: String,
            /// Its virtual function.
            vf: u8,
            /// Why, for people.
            reason: String,
        } => ("{} vf{vf} has a virtual machine that is left alone: {}", Printable(host), Printable(reason)),
        /// A virtual machine runs.
        Runs = "vm-runs" {
            /// Its name.
            vm: String,
            /// Its host.
            host: String,
            /// Its virtual function.
            vf: u8,
        } => ("virtual machine {} runs in {} vf{vf}", name(vm), Printable(host)),
        /// A virtual machine's port has got a LID, or another one.
        HasLid = "vm-has-lid" {
            /// Its name.
            vm: String,
            /// The LID.
            lid: Lid,
        } => ("virtual machine {} has LID {lid}", name(vm)),
        /// A virtual machine has ended, or was forgotten.
        Gone = "vm-gone" {
            /// Its name.
            vm: String,
        } => ("virtual machine {} has ended", name(vm)),
        /// A virtual machine died with its host.
        Lost = "vm-lost" {
            /// Its name.
            vm: String,
            /// How that is known, for people.
            proof: String,
        } => ("virtual machine {} is lost: {}", name(vm), Printable(proof)),
        /// A move has come to a step.
        MoveStep = "vm-move-step" {
            /// The virtual machine.
            vm: String,
            /// `reserve`, `freeze`, `import`, `reroute`, `commit`, `done`, `undo`, `back`, `resume` or `undone`.
            #[cfg_attr(feature = "schema", schemars(with = "String"))]
            step: Step,
            /// Why, if it goes back.
            reason: Option<String>,
        } => ("move of {}: {}{}", name(vm), step, because(reason.as_deref())),
        /// An agent's report of its slots cannot be.
        BadReport = "vm-bad-report" {
            /// The host.
            host: String,
            /// The fault of the report, for people.
            reason: String,
        } => ("the report of {} cannot be: {}", Printable(host), Printable(reason)),
        /// An agent does not do what has to be done. The command is repeated.
        Stuck = "vm-stuck" {
            /// The host.
            host: String,
            /// The virtual function.
            vf: u8,
            /// The agent's words.
            reason: String,
        } => ("{} vf{vf} does not obey: {}", Printable(host), Printable(reason)),
        /// A host's agent answers.
        HostReady = "vm-host-ready" {
            /// The host.
            host: String,
        } => ("host {} answers", Printable(host)),
        /// A host's agent does not answer any more.
        HostAway = "vm-host-away" {
            /// The host.
            host: String,
            /// Why, for people.
            reason: String,
        } => ("host {} does not answer: {}", Printable(host), Printable(reason)),
    }
}

fn because(reason: Option<&str>) -> String {
    reason.map(|reason| format!(" ({})", Printable(reason))).unwrap_or_default()
}
