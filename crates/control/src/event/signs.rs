//! What events say of faults.

use weft_fault::{Damage, Process, Sign, Word};

use super::{AgentEvent, EventKind, LabEvent, SmEvent};
use crate::sm::SweepKind;

/// The kinds of events that say something of what faults cost.
pub const FAULT_SIGNS: [&str; 8] = [
    "fault",
    "fault-set",
    "fault-cleared",
    "link-down",
    "cable-disconnected",
    "sweep-started",
    "subnet-up",
    "sweep-incomplete",
];

/// What an event says of it. A fault that lasts is named by its id, another by its command.
pub fn fault_sign(event: &EventKind) -> Option<Sign<String>> {
    Some(match event {
        EventKind::Agent(AgentEvent::FaultSet { id, damage, .. }) => {
            Sign::Begun { key: id.to_string(), word: word(damage) }
        }
        EventKind::Agent(AgentEvent::FaultCleared { id, .. }) => Sign::Ended(id.to_string()),
        EventKind::Lab(LabEvent::Fault { fault: Word::Kill, target }) => {
            Sign::Begun { key: killed(target), word: Word::Kill }
        }
        EventKind::Lab(LabEvent::Fault { fault: Word::Restart, target }) => Sign::Ended(killed(target)),
        // Of a node its agent tells.
        EventKind::Lab(LabEvent::Fault { fault: Word::Freeze, target }) if !names_node(target) => {
            Sign::Begun { key: frozen(target), word: Word::Freeze }
        }
        EventKind::Lab(LabEvent::Fault { fault: Word::Thaw, target }) if !names_node(target) => {
            Sign::Ended(frozen(target))
        }
        EventKind::Agent(AgentEvent::CableDisconnected { .. }) => Sign::Recabled,
        EventKind::Agent(AgentEvent::LinkDown { .. })
        | EventKind::Sm(SmEvent::SweepStarted { kind: SweepKind::Heavy, .. }) => Sign::Noticed,
        EventKind::Sm(SmEvent::SubnetUp(summary) | SmEvent::SweepIncomplete(summary)) => {
            Sign::Routed { hosts: summary.hosts, cables: summary.cables }
        }
        _ => return None,
    })
}

fn killed(target: &str) -> String {
    format!("{} {target}", Word::Kill.name())
}

fn frozen(target: &str) -> String {
    format!("{} {target}", Word::Freeze.name())
}

fn names_node(target: &str) -> bool {
    matches!(target.parse(), Ok(Process::<String>::Agent(_)))
}

fn word<Port>(damage: &Damage<Port>) -> Word {
    match damage {
        Damage::Unplugged(_) => Word::LinkDown,
        Damage::Parted(_) => Word::Partition,
        Damage::Frozen(_) => Word::Freeze,
        Damage::BadIdentity { .. } => Word::BadIdentity,
        Damage::Impaired { how, .. } => how.word(),
    }
}
