//! Events about faults.

use weft_fault::{Damage, Fault, Process, Sign, Word};

use super::{AgentEvent, EventKind, LabEvent, ProcessEvent, SmEvent};
use crate::hub::EndKind;
use crate::sm::SweepKind;

/// The kinds of events that say something of what faults cost.
pub const FAULT_SIGNS: [&str; 11] = [
    "process-ended",
    "process-ready",
    "fault",
    "fault-set",
    "fault-cleared",
    "link-down",
    "link-up",
    "cable-disconnected",
    "sweep-started",
    "subnet-up",
    "sweep-incomplete",
];

/// What an event of a process, `source`, says of it. A fault that lasts is named by its id, another by its command.
pub fn fault_sign(source: &str, event: &EventKind) -> Option<Sign<String>> {
    Some(match event {
        EventKind::Lab(LabEvent::ProcessEnded { process, how: EndKind::Failed, .. }) => {
            Sign::Begun { key: end_of(process), takes_links: manager(process)?.takes_links() }
        }
        EventKind::Process(ProcessEvent::Ready) => Sign::Ended(end_of(source)),
        EventKind::Agent(AgentEvent::FaultSet { id, damage, .. }) => {
            Sign::Begun { key: id.to_string(), takes_links: word(damage).takes_links() }
        }
        EventKind::Agent(AgentEvent::FaultCleared { id, .. }) => Sign::Ended(id.to_string()),
        EventKind::Lab(LabEvent::Fault { fault, target }) => of_process(*fault, target)?,
        EventKind::Agent(AgentEvent::CableDisconnected { .. }) => Sign::Recabled,
        EventKind::Agent(AgentEvent::LinkDown { node, port, .. }) => Sign::Down(format!("{node}:{port}")),
        EventKind::Agent(AgentEvent::LinkUp { node, port, .. }) => Sign::Up(format!("{node}:{port}")),
        EventKind::Sm(SmEvent::SweepStarted { kind: SweepKind::Heavy, .. }) => Sign::Noticed,
        EventKind::Sm(SmEvent::SubnetUp(summary) | SmEvent::SweepIncomplete(summary)) => {
            Sign::Routed { hosts: summary.hosts, cables: summary.cables }
        }
        _ => return None,
    })
}

/// The name of the fault that a process ended without an order.
fn end_of(process: &str) -> String {
    format!("end of {process}")
}

/// The fault that a process has ended, if it runs no devices: of others their links tell.
fn manager(process: &str) -> Option<Fault<String, String>> {
    let fault = Fault::of(Word::Kill, process)?;
    (!matches!(fault, Fault::Kill(Process::Agent(_)))).then_some(fault)
}

/// A process was killed, frozen, started again or let go on. Of a node that is frozen its agent tells.
fn of_process(word: Word, target: &str) -> Option<Sign<String>> {
    let fault = Fault::<String, String>::of(word, target)?;
    let key = |begun: Word| format!("{} {target}", begun.name());
    let takes_links = fault.takes_links();
    Some(match fault {
        Fault::Kill(_) => Sign::Begun { key: key(word), takes_links },
        Fault::Restart(_) => Sign::Ended(key(Word::Kill)),
        Fault::Freeze(Process::Agent(_)) | Fault::Thaw(Process::Agent(_)) => return None,
        Fault::Freeze(_) => Sign::Begun { key: key(word), takes_links },
        Fault::Thaw(_) => Sign::Ended(key(Word::Freeze)),
        _ => return None,
    })
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
