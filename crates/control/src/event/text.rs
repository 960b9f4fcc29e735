//! Sentences for people.

use std::fmt;

use weft_fault::FaultTimes;
use weft_vocabulary::words::name;
use weft_wire::{Printable, count_of};

use super::{Event, EventKind, LabEvent, Place, ProcessEvent};
use crate::hub::EndKind;

/// A line: time, source and sentence.
impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Padding is for plain text alone.
        let source = Printable(&self.source).to_string();
        write!(f, "{} {source:<6} {}", self.time, self.kind)
    }
}

impl fmt::Display for EventKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sm(event) => event.fmt(f),
            Self::Pm(event) => event.fmt(f),
            Self::Vm(event) => event.fmt(f),
            Self::Agent(event) => event.fmt(f),
            Self::Process(event) => event.fmt(f),
            Self::Lab(event) => event.fmt(f),
        }
    }
}

impl EventKind {
    /// The device and the port where it happened, where an agent says so.
    pub fn place(&self) -> Option<Place<'_>> {
        match self {
            Self::Agent(event) => event.place(),
            Self::Sm(_) | Self::Pm(_) | Self::Vm(_) | Self::Process(_) | Self::Lab(_) => None,
        }
    }

    /// What happened, without the place: `link down (cut here), peer 0x0000000000000002:2`.
    pub fn sentence(&self) -> String {
        match self {
            Self::Agent(event) => event.sentence(),
            other => other.to_string(),
        }
    }
}

impl fmt::Display for ProcessEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Started { kind, version, pid } => {
                write!(f, "{} {} began as process {pid}", kind.name(), Printable(version))
            }
            Self::Ready => f.write_str("ready"),
            Self::Stopping => f.write_str("stops"),
            Self::Failed { reason } => write!(f, "cannot go on: {}", Printable(reason)),
            Self::Attached { node_guid, .. } => write!(f, "attached at {node_guid}"),
            Self::Detached => f.write_str("the attachment is gone"),
            Self::IdentityRenewed => f.write_str("its identity was renewed"),
            Self::IdentitiesRevoked => f.write_str("its list of revoked identities has grown"),
            Self::LogFilterSet { filter } => write!(f, "logs `{}`", Printable(filter)),
            Self::EventsLost { count } => write!(f, "lost: {}", count_of(*count as usize, "event")),
        }
    }
}

impl fmt::Display for LabEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fault { fault, target } => write!(f, "fault {} {}", fault.name(), Printable(target)),
            Self::FaultCost(FaultTimes {
                fault,
                began_ns: _,
                lasted_ns,
                detected_after_ns,
                rerouted_after_ns,
                restored_after_ns,
                pairs_lost,
            }) => {
                write!(f, "fault {}", Printable(fault))?;
                lasted_ns.iter().try_for_each(|lasted| write!(f, " lasted {}", Span(*lasted)))?;
                detected_after_ns
                    .iter()
                    .try_for_each(|after| write!(f, ", detected after {}", Span(*after)))?;
                rerouted_after_ns
                    .iter()
                    .try_for_each(|after| write!(f, ", rerouted after {}", Span(*after)))?;
                let restored = |after: &u64| write!(f, ", restored {} after its end", Span(*after));
                restored_after_ns.iter().try_for_each(restored)?;
                pairs_lost.iter().try_for_each(|pairs| write!(f, ", pairs of hosts lost: {pairs}"))
            }
            Self::ProcessEnded { process, how, code, signal } => {
                let how = match how {
                    EndKind::InOrder => "ended in order",
                    EndKind::KilledOnPurpose => "was killed on purpose",
                    EndKind::Failed => "has failed",
                };
                write!(f, "{} {how}", Printable(process))?;
                code.iter().try_for_each(|code| write!(f, ", code {code}"))?;
                signal.iter().try_for_each(|signal| write!(f, ", signal {signal}"))
            }
            Self::ProcessRestarted { process, restarts } => {
                write!(f, "started {} again; restarts: {restarts}", Printable(process))
            }
            Self::FlowStarted { flow, set, from, to } => {
                write!(f, "flow {} from {} to {}", Printable(flow), Printable(from), Printable(to))?;
                set.iter().try_for_each(|set| write!(f, ", of set {}", Printable(set)))
            }
            Self::FlowStopped { flow } => write!(f, "flow {} is stopped", Printable(flow)),
            Self::FlowEnded { flow, done, reason } => {
                let how = if *done { "is done" } else { "has failed" };
                write!(f, "flow {} {how}: {}", Printable(flow), Printable(reason))
            }
            Self::RestartFailed { process, reason, retry_ms } => {
                let (process, reason) = (Printable(process), Printable(reason));
                write!(f, "cannot start {process} again, next attempt in {retry_ms} ms: {reason}")
            }
            Self::StartProgress { agents_ready, agents, links_up, cable_ends } => {
                write!(
                    f,
                    "{agents_ready} of {agents} agents ready, {links_up} of {cable_ends} ends of cables linked"
                )
            }
            Self::StartFailed { process, reason } => {
                write!(f, "cannot start {}: {}", Printable(process), Printable(reason))
            }
            Self::LabStarted => f.write_str("the laboratory has started"),
            Self::ProgramAttached { node, pid, .. } => {
                write!(f, "program {pid} attached at {}", name(node))
            }
            Self::ProgramDied { slot } => write!(f, "the program in slot {slot} has died"),
        }
    }
}

/// Nanoseconds as seconds, to the millisecond.
struct Span(u64);

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.3} s", core::time::Duration::from_nanos(self.0).as_secs_f64())
    }
}
