//! Events of the laboratory as a whole.

use std::fmt::Display;

use weft_fault::{FaultTimes, Word};
use weft_vocabulary::told;
use weft_vocabulary::words::name;
use weft_wire::Printable;

use crate::hub::EndKind;

told! {
    /// What happened to the laboratory.
    LabEvent by "event" {
        /// Something was broken or repaired on purpose.
        Fault = "fault" {
            /// What was done.
            fault: Word,
            /// To what, as the user named it.
            target: String,
        } => ("fault {} {}", fault.name(), Printable(target)),
        /// A fault is over, and all that it took with it is back. Where several lasted at once, each takes the first sign after its
        /// own beginning.
        FaultCost = "fault-cost"(times: FaultTimes<String>) => ("{}", cost(times)),
        /// A process has ended, in order or not.
        ProcessEnded = "process-ended" {
            /// Its name in the laboratory.
            process: String,
            /// How.
            how: EndKind,
            /// Its exit code, where the source had started it and no signal ended it.
            code: Option<i32>,
            /// The signal that ended it, where the source had started it.
            signal: Option<i32>,
        } => ("{} {}{}{}", Printable(process), ended(*how), if_any(", code", *code), if_any(", signal", *signal)),
        /// The hub has started a process again.
        ProcessRestarted = "process-restarted" {
            /// Its name in the laboratory.
            process: String,
            /// How often the hub has done that.
            restarts: u64,
        } => ("started {} again; restarts: {restarts}", Printable(process)),
        /// The hub could not start a process again, and tries later.
        RestartFailed = "restart-failed" {
            /// Its name in the laboratory.
            process: String,
            /// Why, for people.
            reason: String,
            /// When the hub tries again, in milliseconds from now.
            retry_ms: u64,
        } => ("cannot start {} again, next attempt in {retry_ms} ms: {}", Printable(process), Printable(reason)),
        /// The start's progress; changes within some milliseconds are reported as one.
        StartProgress = "start-progress" {
            /// Agents that listen.
            agents_ready: u32,
            /// Agents.
            agents: u32,
            /// Ends of cables that have a link.
            links_up: u64,
            /// Ends of cables at the agents that have reported theirs.
            cable_ends: u64,
        } => ("{agents_ready} of {agents} agents ready, {links_up} of {cable_ends} ends of cables linked"),
        /// The hub could not start a process of the laboratory.
        StartFailed = "start-failed" {
            /// Its name in the laboratory.
            process: String,
            /// Why, for people.
            reason: String,
        } => ("cannot start {}: {}", Printable(process), Printable(reason)),
        /// The hub has started the laboratory: it waits for nothing more.
        LabStarted = "lab-started" => ("the laboratory has started"),
        /// A flow has begun.
        FlowStarted = "flow-started" {
            /// Its name.
            flow: String,
            /// The set that it belongs to.
            set: Option<String>,
            /// The sending host.
            from: String,
            /// The receiving host.
            to: String,
        } => ("flow {} from {} to {}{}", Printable(flow), Printable(from), Printable(to), if_any(", of set", set.as_deref().map(Printable))),
        /// A flow was ended on purpose.
        FlowStopped = "flow-stopped" {
            /// Its name.
            flow: String,
        } => ("flow {} is stopped", Printable(flow)),
        /// A flow has ended by itself.
        FlowEnded = "flow-ended" {
            /// Its name.
            flow: String,
            /// Whether it has done what it was to do.
            done: bool,
            /// Why, for people.
            reason: String,
        } => ("flow {} {}: {}", Printable(flow), if *done { "is done" } else { "has failed" }, Printable(reason)),
        /// A program of ibsim has attached.
        ProgramAttached = "program-attached" {
            /// Its slot.
            slot: u32,
            /// The node that it is at.
            node: String,
            /// The number that it names itself by: its process, or over UDP its port.
            pid: u32,
        } => ("program {pid} attached at {}", name(node)),
        /// A program of ibsim has died.
        ProgramDied = "program-died" {
            /// Its slot.
            slot: u32,
        } => ("the program in slot {slot} has died"),
    }
}

/// What a fault cost, as far as that is known.
fn cost(times: &FaultTimes<String>) -> String {
    let span = |nanos: u64| format!("{:.3} s", core::time::Duration::from_nanos(nanos).as_secs_f64());
    let words = [
        if_any(" lasted", times.lasted_ns.map(span)),
        if_any(", detected after", times.detected_after_ns.map(span)),
        if_any(", rerouted after", times.rerouted_after_ns.map(span)),
        if_any(", restored", times.restored_after_ns.map(|after| format!("{} after its end", span(after)))),
        if_any(", pairs of hosts lost:", times.pairs_lost),
    ];
    format!("fault {}{}", Printable(&times.fault), words.concat())
}

/// Words with a value behind them, if there is one.
fn if_any(words: &str, value: Option<impl Display>) -> String {
    value.map_or_else(String::new, |value| format!("{words} {value}"))
}

fn ended(how: EndKind) -> &'static str {
    match how {
        EndKind::InOrder => "ended in order",
        EndKind::KilledOnPurpose => "was killed on purpose",
        EndKind::Failed => "has failed",
    }
}
