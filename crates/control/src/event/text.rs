//! Sentences for people.

use std::fmt;

use weft_fault::FaultTimes;
use weft_wire::{Printable, count_of, is_or_are};

use super::words::{lower, name, route};
use super::{Event, EventKind, LabEvent, Place, PmEvent, ProcessEvent, SmEvent, VmEvent};
use crate::hub::EndKind;
use crate::sm::Summary;

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

impl fmt::Display for VmEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ManagerStarted { generation, vms, adopts } => {
                let adopts = if *adopts { "; it adopts what it finds" } else { "" };
                let vms = count_of(*vms as usize, "virtual machine");
                write!(f, "VM manager begins in generation {generation} with {vms}{adopts}")
            }
            Self::ManagerStopped { reason } => write!(f, "VM manager stops: {}", Printable(reason)),
            Self::Adopted { vm, host, vf, running } => {
                let how = if *running { "runs" } else { "is frozen" };
                write!(f, "virtual machine {} was found: it {how} in {} vf{vf}", name(vm), Printable(host))
            }
            Self::Stranger { host, vf, reason } => {
                write!(
                    f,
                    "{} vf{vf} has a virtual machine that is left alone: {}",
                    Printable(host),
                    Printable(reason)
                )
            }
            Self::Runs { vm, host, vf } => {
                write!(f, "virtual machine {} runs in {} vf{vf}", name(vm), Printable(host))
            }
            Self::HasLid { vm, lid } => write!(f, "virtual machine {} has LID {lid}", name(vm)),
            Self::Gone { vm } => write!(f, "virtual machine {} has ended", name(vm)),
            Self::Lost { vm, proof } => {
                write!(f, "virtual machine {} is lost: {}", name(vm), Printable(proof))
            }
            Self::MoveStep { vm, step, reason } => {
                write!(f, "move of {}: {}", name(vm), Printable(step))?;
                reason.iter().try_for_each(|reason| write!(f, " ({})", Printable(reason)))
            }
            Self::BadReport { host, reason } => {
                write!(f, "the report of {} cannot be: {}", Printable(host), Printable(reason))
            }
            Self::Stuck { host, vf, reason } => {
                write!(f, "{} vf{vf} does not obey: {}", Printable(host), Printable(reason))
            }
            Self::HostReady { host } => write!(f, "host {} answers", Printable(host)),
            Self::HostAway { host, reason } => {
                write!(f, "host {} does not answer: {}", Printable(host), Printable(reason))
            }
        }
    }
}

fn summary(f: &mut fmt::Formatter<'_>, state: &str, summary: &Summary) -> fmt::Result {
    let Summary { switches, hosts, lids, ports_active, retries, took_ns, cables_degraded, .. } = summary;
    write!(
        f,
        "{state} after {:.3} s: {}, {}, {}, {} active, {}, {}",
        *took_ns as f64 / 1e9,
        count_of(*switches as usize, "switch"),
        count_of(*hosts as usize, "host"),
        count_of(*lids as usize, "LID"),
        count_of(*ports_active as usize, "port"),
        count_of(summary.smps.total as usize, "SMP"),
        count_of(*retries as usize, "retry"),
    )?;
    match *cables_degraded as usize {
        0 => Ok(()),
        count => write!(f, "; {} {} degraded", count_of(count, "cable"), is_or_are(count)),
    }
}

impl fmt::Display for SmEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::SweepStarted { kind, reason } => {
                write!(f, "{} sweep: {}", lower(kind), lower(reason))
            }
            Self::PhaseStarted { phase } => write!(f, "phase {phase} begins"),
            Self::PhaseDone(time) => {
                let smps = count_of(time.smps as usize, "SMP");
                write!(f, "phase {} took {:.3} s, {smps}", time.phase, time.took_ns as f64 / 1e9)
            }
            Self::Quiet => f.write_str("light sweep: nothing changed"),
            Self::SubnetUp(of) => summary(f, "SUBNET UP", of),
            Self::SweepIncomplete(of) => summary(f, "sweep not complete", of),
            Self::Routed(report) => write!(f, "routed by {}", report.brief()),
            Self::RouteFailed { message } => write!(f, "routing failed: {}", Printable(message)),
            Self::Progress { nodes, lids, tables_done, tables, ports_active, ports } => write!(
                f,
                "{nodes} nodes, {lids} LIDs, {tables_done} of {tables} tables, {ports_active} of {ports} ports active"
            ),
            Self::Unsettled { sweeps } => {
                let sweeps = count_of(*sweeps as usize, "sweep");
                write!(f, "the fabric kept changing over {sweeps}; the next one waits")
            }
            other => other.of_moves(f),
        }
    }
}

impl SmEvent {
    /// What became of LIDs that move.
    fn of_moves(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::MoveStarted { guid, lid, kind, rounds, smps } => {
                let (smps, rounds) = (count_of(*smps as usize, "SMP"), count_of(*rounds as usize, "round"));
                write!(f, "{} of LID {lid} ({guid}) begins: {smps} in {rounds}", lower(kind))
            }
            Self::MoveDone { guid, lid, physical, vswitches, smps, took_ns } => write!(
                f,
                "LID {lid} ({guid}) has moved in {:.3} ms: {} to {} and {}",
                *took_ns as f64 / 1e6,
                count_of(*smps as usize, "SMP"),
                count_of(*physical as usize, "switch"),
                count_of(*vswitches as usize, "vSwitch"),
            ),
            Self::MoveLate { guid, lid, switches, wait_ns } => write!(
                f,
                "late rows of LID {lid} ({guid}): {} in {:.3} s, when packets to its old place are gone",
                count_of(*switches as usize, "switch"),
                *wait_ns as f64 / 1e9
            ),
            Self::MoveFinished { lids, smps } => {
                let (smps, lids) = (count_of(*smps as usize, "SMP"), count_of(*lids as usize, "moved LID"));
                write!(f, "the last rows of {lids} are written, with {smps}")
            }
            Self::MoveRefused { guid, lid, reason } => {
                write!(f, "LID {lid} ({guid}) does not move: {}", Printable(reason))
            }
            Self::MoveBroken { guid, lid, reason } => {
                write!(f, "the move of LID {lid} ({guid}) is broken off: {}", Printable(reason))
            }
            Self::Rebalanced { lids, smps, kept, before, after } => {
                let percent = |balance: &u32| f64::from(*balance) / 10.0;
                let (lids, smps) = (count_of(*lids as usize, "LID"), count_of(*smps as usize, "SMP"));
                write!(f, "rebalanced: {lids} by {smps}, from {:.1} %", percent(before))?;
                match after {
                    Some(after) => write!(f, " of a fresh routing's balance to {:.1} %", percent(after))?,
                    None => write!(f, " of a fresh routing's balance, until a move or a sweep came between")?,
                }
                if *kept > 0 { write!(f, "; {kept} LIDs keep their rows") } else { Ok(()) }
            }
            other => other.of_nodes(f),
        }
    }

    /// What happened to nodes and ports.
    fn of_nodes(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NodeFound { guid, kind, description } => {
                write!(f, "found {} {} ({guid})", lower(kind), name(description))
            }
            Self::NodeLost { guid, kind, description } => {
                write!(f, "lost {} {} ({guid})", lower(kind), name(description))
            }
            Self::HostCutOff { guid, description } => {
                write!(f, "host {} ({guid}) is cut off", name(description))
            }
            Self::LidAssigned { port_guid, lid, before } if before.0 == 0 => {
                write!(f, "port {port_guid} gets LID {lid}")
            }
            Self::LidAssigned { port_guid, lid, before } => {
                write!(f, "port {port_guid} gets LID {lid} instead of {before}")
            }
            Self::LidsExhausted { port_guid } => {
                write!(f, "no LID is left for port {port_guid}")
            }
            Self::VmLidRefused { port_guid, in_use, quarantined } => write!(
                f,
                "no LID is left for the virtual function with port {port_guid}: {in_use} are in use, {quarantined} in quarantine"
            ),
            Self::VmLidsWait { ports } => write!(
                f,
                "LIDs of virtual functions wait until the VM manager says whose those without a port are: {}",
                count_of(*ports as usize, "port")
            ),
            Self::PortRefused { guid, port, wanted, state, status } => write!(
                f,
                "{guid} port {port} is {} instead of {} (status {status:#06x})",
                lower(state),
                lower(wanted)
            ),
            Self::Refused { guid, attribute, modifier, status } => {
                write!(f, "{guid} refused {attribute} {modifier} with status {status:#06x}")
            }
            Self::KeyUnknown { guid, port, description } => {
                write!(f, "{} ({guid}) port {port} keeps another M_Key", name(description))
            }
            Self::Unanswered { guid, attribute, modifier } => {
                write!(f, "no answer to {attribute} {modifier} from {guid}, or through it")
            }
            Self::PortSilent { guid, port } => write!(f, "no answer behind {guid} port {port}"),
            Self::DuplicateGuid { guid, first, second } => {
                let (first, second) = (route(first), route(second));
                write!(
                    f,
                    "two nodes or ports have the GUID {guid}, at the directed routes {first} and {second}"
                )
            }
            Self::PortToItself { guid, port } => write!(f, "{guid} port {port} leads to itself"),
            Self::Nonsense { guid, attribute } => write!(f, "{guid} says what cannot be in {attribute}"),
            Self::TooLarge { nodes_max } => {
                write!(f, "the fabric has more than {nodes_max} nodes; the rest is left out")
            }
            other => other.of_managers(f),
        }
    }

    /// What happened between the manager, other managers and subscribers.
    fn of_managers(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TrapReceived { number, lid, news } => {
                write!(f, "trap {number} from LID {lid}{}", if *news { "" } else { ", which is no news" })
            }
            Self::Reregister { ports } => write!(f, "subscribe again: {}", count_of(*ports as usize, "port")),
            Self::PartitionsLeftOut { port_guid, partitions } => {
                write!(f, "port {port_guid} has no room for {partitions} of its partitions")
            }
            Self::CongestionLeft { switches, hosts } => write!(
                f,
                "settings of congestion control, which is off here, are kept by {} and {}",
                count_of(*switches as usize, "switch"),
                count_of(*hosts as usize, "host")
            ),
            Self::ManagementLane { lane: Some(lane) } => write!(f, "lane {lane} is management's alone"),
            Self::ManagementLane { lane: None } => f.write_str("management shares the data's lanes"),
            Self::Repath { kind, service_level, slid, dlid, told, .. } => write!(
                f,
                "repath ({}), told to {}: LID {slid} to {dlid}, service level {service_level}",
                lower(kind),
                count_of(*told as usize, "port")
            ),
            Self::OwnPortSilent => f.write_str("the manager's own port does not answer"),
            Self::SmState { state, master } => {
                write!(f, "this manager is {}; the master is at {master}", state.name())
            }
            Self::HandoverRefused { guid } => write!(f, "the manager at {guid} refused to take over"),
            Self::SmKeyMismatch { guid } => {
                write!(f, "the manager at {guid} commands with another SM_Key; it is ignored")
            }
            Self::OtherSm { guid, priority, state, is_trusted } => {
                let trust = if *is_trusted { "" } else { ", with another SM_Key" };
                write!(f, "the manager at {guid}, priority {priority}, is {}{trust}", state.name())
            }
            Self::Instructed { guid, instruction, outcome } => {
                write!(f, "the manager at {guid} was told {}: {}", instruction.name(), lower(outcome))
            }
            Self::OwnPortDown => f.write_str("the manager's own port has no link"),
            Self::OwnPortUp => f.write_str("the manager's own port has a link again"),
            other => f.write_str(other.name()),
        }
    }
}

impl fmt::Display for PmEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let status = |status: &Option<u16>| {
            status.map_or_else(|| "no answer".to_owned(), |status| format!("status {status:#06x}"))
        };
        match self {
            Self::Learned { nodes, ports } => {
                let (nodes, ports) = (count_of(*nodes as usize, "node"), count_of(*ports as usize, "port"));
                write!(f, "learned the fabric: {nodes}, {ports}")
            }
            Self::NotLearned { question, status: told } => {
                write!(f, "cannot learn {}: {}", lower(question), status(told))
            }
            Self::Swept { number, took_ns, unanswered, .. } => {
                let seconds = *took_ns as f64 / 1e9;
                let unanswered = count_of(*unanswered as usize, "port");
                write!(f, "sweep {number} took {seconds:.3} s, {unanswered} unanswered")
            }
            Self::Silent { node_guid } => write!(f, "{node_guid} does not answer"),
            Self::Answers { node_guid } => write!(f, "{node_guid} answers again"),
            Self::HotSpot { lid, port_guid, .. } => write!(f, "hot spot: LID {lid} ({port_guid})"),
            Self::HotSpotEnded { lid, port_guid } => {
                write!(f, "hot spot no more: LID {lid} ({port_guid})")
            }
            Self::Contributor { hot_spot, lid, .. } => write!(f, "LID {lid} contributes to LID {hot_spot}"),
            Self::Repathed { hot_spot, lid, .. } => {
                write!(f, "LID {lid} takes the slow lane to LID {hot_spot}")
            }
            Self::Unpathed { hot_spot, lid, .. } => {
                write!(f, "LID {lid} leaves the slow lane to LID {hot_spot}")
            }
            Self::NotMoved { hot_spot, lid, status: told } => {
                write!(f, "LID {lid} was not told of LID {hot_spot}: {}", status(told))
            }
            Self::AskedAgain => f.write_str("all hosts were asked to leave slow lanes"),
            Self::Forgotten => {
                f.write_str("the subnet manager began again; hosts are told again what they were told")
            }
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
