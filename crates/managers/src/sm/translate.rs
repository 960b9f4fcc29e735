//! The subnet manager's events and status in the control protocol.

use weft_control::event::{RepathUse, SmEvent, SweepReason};
use weft_control::sm;
use weft_mgmt::{DirectedPath, WindowState};
use weft_routing::EngineReport;
use weft_sm::{
    Event, ManagerStatus, PhaseTime, Progress, Reason, Rebalances, SmpCounts, Summary, SweepPhase, VmLids,
};
use weft_wire::RepathKind;

/// An event.
pub fn event(event: &Event) -> SmEvent {
    match event {
        Event::SweepStarted { kind, reason } => {
            SmEvent::SweepStarted { kind: *kind, reason: sweep_reason(*reason) }
        }
        Event::Quiet => SmEvent::Quiet,
        Event::PhaseStarted { phase: begun } => SmEvent::PhaseStarted { phase: phase(*begun) },
        Event::PhaseDone(time) => SmEvent::PhaseDone(phase_time(time)),
        Event::SubnetUp(of) => SmEvent::SubnetUp(summary(of)),
        Event::SweepIncomplete(of) => SmEvent::SweepIncomplete(summary(of)),
        Event::Routed(report) => SmEvent::Routed(routing(report)),
        Event::RouteFailed { message } => SmEvent::RouteFailed { message: message.clone() },
        Event::Unsettled { sweeps } => SmEvent::Unsettled { sweeps: *sweeps },
        Event::TrapReceived { number, lid, news } => {
            SmEvent::TrapReceived { number: *number, lid: *lid, news: *news }
        }
        Event::ManagementLane { lane } => SmEvent::ManagementLane { lane: *lane },
        Event::Repath { number, from, kind, service_level, slid, dlid, target, told } => SmEvent::Repath {
            number: *number,
            from: *from,
            kind: repath_use(*kind),
            service_level: *service_level,
            slid: *slid,
            dlid: *dlid,
            target: *target,
            told: *told,
        },
        other => of_moves(other),
    }
}

/// What became of LIDs that move.
fn of_moves(event: &Event) -> SmEvent {
    match event {
        Event::MoveStarted { guid, lid, kind, rounds, smps } => SmEvent::MoveStarted {
            guid: (*guid).into(),
            lid: *lid,
            kind: kind.to_string(),
            rounds: *rounds,
            smps: *smps,
        },
        Event::MoveDone { guid, lid, physical, vswitches, smps, took } => SmEvent::MoveDone {
            guid: (*guid).into(),
            lid: *lid,
            physical: *physical,
            vswitches: *vswitches,
            smps: *smps,
            took_ns: took.as_nanos(),
        },
        Event::MoveLate { guid, lid, switches, wait } => SmEvent::MoveLate {
            guid: (*guid).into(),
            lid: *lid,
            switches: *switches,
            wait_ns: wait.as_nanos(),
        },
        Event::MoveFinished { lids, smps } => SmEvent::MoveFinished { lids: *lids, smps: *smps },
        Event::MoveRefused { guid, lid, reason } => {
            SmEvent::MoveRefused { guid: (*guid).into(), lid: *lid, reason: reason.clone() }
        }
        Event::Rebalanced { lids, smps, kept, before, after } => {
            SmEvent::Rebalanced { lids: *lids, smps: *smps, kept: *kept, before: *before, after: *after }
        }
        Event::MoveBroken { guid, lid, reason } => {
            SmEvent::MoveBroken { guid: (*guid).into(), lid: *lid, reason: reason.clone() }
        }
        other => of_nodes(other),
    }
}

/// What happened to nodes.
fn of_nodes(event: &Event) -> SmEvent {
    match event {
        Event::NodeFound { guid, kind, description } => SmEvent::NodeFound {
            guid: (*guid).into(),
            kind: (*kind).into(),
            description: description.clone(),
        },
        Event::NodeLost { guid, kind, description } => {
            SmEvent::NodeLost { guid: (*guid).into(), kind: (*kind).into(), description: description.clone() }
        }
        Event::HostCutOff { guid, description } => {
            SmEvent::HostCutOff { guid: (*guid).into(), description: description.clone() }
        }
        Event::LidAssigned { port_guid, lid, before } => {
            SmEvent::LidAssigned { port_guid: (*port_guid).into(), lid: *lid, before: *before }
        }
        Event::LidsExhausted { port_guid } => SmEvent::LidsExhausted { port_guid: (*port_guid).into() },
        Event::VmLidRefused { port_guid, in_use, quarantined } => SmEvent::VmLidRefused {
            port_guid: (*port_guid).into(),
            in_use: *in_use,
            quarantined: *quarantined,
        },
        Event::VmLidsWait { ports } => SmEvent::VmLidsWait { ports: *ports },
        Event::Reregister { ports } => SmEvent::Reregister { ports: *ports },
        Event::PartitionsLeftOut { port_guid, partitions } => {
            SmEvent::PartitionsLeftOut { port_guid: (*port_guid).into(), partitions: *partitions }
        }
        Event::CongestionLeft { switches, hosts } => {
            SmEvent::CongestionLeft { switches: *switches, hosts: *hosts }
        }
        Event::TooLarge { nodes_max } => SmEvent::TooLarge { nodes_max: *nodes_max },
        other => of_ports(other),
    }
}

/// What is wrong with ports and answers.
fn of_ports(event: &Event) -> SmEvent {
    match event {
        Event::PortRefused { guid, port, wanted, state, status } => SmEvent::PortRefused {
            guid: (*guid).into(),
            port: *port,
            wanted: (*wanted).into(),
            state: (*state).into(),
            status: *status,
        },
        Event::Refused { guid, attribute, modifier, status } => SmEvent::Refused {
            guid: (*guid).into(),
            attribute: attribute.to_string(),
            modifier: *modifier,
            status: *status,
        },
        Event::KeyUnknown { guid, port, description } => {
            SmEvent::KeyUnknown { guid: (*guid).into(), port: *port, description: description.clone() }
        }
        Event::OwnPortSilent => SmEvent::OwnPortSilent,
        Event::Unanswered { guid, attribute, modifier } => SmEvent::Unanswered {
            guid: (*guid).into(),
            attribute: attribute.to_string(),
            modifier: *modifier,
        },
        Event::PortSilent { guid, port } => SmEvent::PortSilent { guid: (*guid).into(), port: *port },
        Event::DuplicateGuid { guid, first, second } => {
            SmEvent::DuplicateGuid { guid: (*guid).into(), first: path(first), second: path(second) }
        }
        Event::PortToItself { guid, port } => SmEvent::PortToItself { guid: (*guid).into(), port: *port },
        Event::Nonsense { guid, attribute } => {
            SmEvent::Nonsense { guid: (*guid).into(), attribute: attribute.to_string() }
        }
        other => of_managers(other),
    }
}

/// What happens among managers.
fn of_managers(event: &Event) -> SmEvent {
    match event {
        Event::SmState { state, master } => {
            SmEvent::SmState { state: (*state).into(), master: (*master).into() }
        }
        Event::HandoverRefused { guid } => SmEvent::HandoverRefused { guid: (*guid).into() },
        Event::SmKeyMismatch { guid } => SmEvent::SmKeyMismatch { guid: (*guid).into() },
        Event::OtherSm { guid, priority, state, is_trusted } => SmEvent::OtherSm {
            guid: (*guid).into(),
            priority: *priority,
            state: (*state).into(),
            is_trusted: *is_trusted,
        },
        Event::Instructed { guid, instruction, outcome } => {
            SmEvent::Instructed { guid: (*guid).into(), instruction: *instruction, outcome: *outcome }
        }
        Event::OwnPortUp => SmEvent::OwnPortUp,
        Event::OwnPortDown => SmEvent::OwnPortDown,
        // Named one by one, so that a new event does not compile before it has its place.
        Event::SweepStarted { .. }
        | Event::Quiet
        | Event::PhaseStarted { .. }
        | Event::PhaseDone(_)
        | Event::SubnetUp(_)
        | Event::SweepIncomplete(_)
        | Event::Routed(_)
        | Event::RouteFailed { .. }
        | Event::Unsettled { .. }
        | Event::MoveStarted { .. }
        | Event::MoveDone { .. }
        | Event::MoveLate { .. }
        | Event::MoveFinished { .. }
        | Event::MoveRefused { .. }
        | Event::MoveBroken { .. }
        | Event::Rebalanced { .. }
        | Event::TrapReceived { .. }
        | Event::ManagementLane { .. }
        | Event::Repath { .. }
        | Event::NodeFound { .. }
        | Event::NodeLost { .. }
        | Event::HostCutOff { .. }
        | Event::LidAssigned { .. }
        | Event::LidsExhausted { .. }
        | Event::VmLidRefused { .. }
        | Event::VmLidsWait { .. }
        | Event::Reregister { .. }
        | Event::PartitionsLeftOut { .. }
        | Event::CongestionLeft { .. }
        | Event::TooLarge { .. }
        | Event::PortRefused { .. }
        | Event::Refused { .. }
        | Event::KeyUnknown { .. }
        | Event::OwnPortSilent
        | Event::Unanswered { .. }
        | Event::PortSilent { .. }
        | Event::DuplicateGuid { .. }
        | Event::PortToItself { .. }
        | Event::Nonsense { .. } => unreachable!("the functions above have taken it"),
    }
}

fn path(path: &DirectedPath) -> Vec<u8> {
    path.ports().iter().map(|port| port.0).collect()
}

fn sweep_reason(reason: Reason) -> SweepReason {
    match reason {
        Reason::Start => SweepReason::Start,
        Reason::Command => SweepReason::Command,
        Reason::Interval => SweepReason::Interval,
        Reason::Trap { number, lid } => SweepReason::Trap { number, lid },
        Reason::StateChange { guid } => SweepReason::StateChange { guid: guid.into() },
        Reason::NoAnswer { guid } => SweepReason::NoAnswer { guid: guid.into() },
        Reason::Answer { guid, port } => SweepReason::Answer { guid: guid.into(), port },
        Reason::OwnPort => SweepReason::OwnPort,
        Reason::Managers => SweepReason::Managers,
        Reason::Incomplete => SweepReason::Incomplete,
        Reason::Unbalanced => SweepReason::Unbalanced,
    }
}

fn repath_use(code: u8) -> RepathUse {
    match RepathKind(code) {
        RepathKind::WILDCARD => RepathUse::Wildcard,
        RepathKind::PATH => RepathUse::Path,
        RepathKind::HOT_SPOT => RepathUse::HotSpot,
        RepathKind::NEW_LID => RepathUse::Lid,
        _ => RepathUse::Other,
    }
}

pub(crate) fn phase(phase: SweepPhase) -> sm::SweepPhase {
    match phase {
        SweepPhase::Discover => sm::SweepPhase::Discover,
        SweepPhase::ReadTables => sm::SweepPhase::Learn,
        SweepPhase::Assign => sm::SweepPhase::Assign,
        SweepPhase::Route => sm::SweepPhase::Route,
        SweepPhase::Program => sm::SweepPhase::Program,
        SweepPhase::Activate => sm::SweepPhase::Activate,
        SweepPhase::Verify => sm::SweepPhase::Verify,
    }
}

fn phase_time(time: &PhaseTime) -> sm::PhaseTime {
    let PhaseTime { phase: of, took, smps } = *time;
    sm::PhaseTime { phase: phase(of), took_ns: took.as_nanos(), smps }
}

pub(crate) fn summary(summary: &Summary) -> sm::Summary {
    sm::Summary {
        switches: summary.switches,
        hosts: summary.hosts,
        others: summary.others,
        cables: summary.cables,
        lids: summary.lids,
        ports_active: summary.ports_active,
        ports_silent: summary.ports_silent,
        ports_refused: summary.ports_refused,
        ports_left_out: summary.ports_left_out,
        ports_without_lid: summary.ports_without_lid,
        cables_degraded: summary.cables_degraded,
        unanswered: summary.unanswered,
        refused: summary.refused,
        smps: smp_counts(&summary.smps),
        retries: summary.retries,
        took_ns: summary.took.as_nanos(),
        phases: summary.phases.iter().map(phase_time).collect(),
        sweeps: summary.sweeps,
        complete: summary.complete,
    }
}

fn smp_counts(smps: &SmpCounts) -> sm::SmpCounts {
    sm::SmpCounts {
        get_node_info: smps.get_node_info,
        get_node_description: smps.get_node_description,
        get_switch_info: smps.get_switch_info,
        get_port_info: smps.get_port_info,
        get_lft: smps.get_lft,
        get_sl_to_vl: smps.get_sl_to_vl,
        get_vl_arbitration: smps.get_vl_arbitration,
        get_p_keys: smps.get_p_keys,
        get_sm_info: smps.get_sm_info,
        set_switch_info: smps.set_switch_info,
        set_port_info: smps.set_port_info,
        set_lft: smps.set_lft,
        set_sl_to_vl: smps.set_sl_to_vl,
        set_vl_arbitration: smps.set_vl_arbitration,
        set_p_keys: smps.set_p_keys,
        total: smps.total(),
    }
}

/// What an engine did.
pub fn routing(report: &EngineReport) -> sm::RoutingReport {
    sm::RoutingReport {
        engine: report.engine.clone(),
        lanes: report.lanes,
        ranks: report.ranks.map(|ranks| u32::try_from(ranks).unwrap_or(u32::MAX)),
        roots: report.roots.clone(),
        fallbacks: report.fallbacks.clone(),
        unsatisfied: report.unsatisfied.clone(),
        notes: report.notes.clone(),
    }
}

/// The report of a routing as the verifier has it.
pub fn engine_report(report: &sm::RoutingReport) -> EngineReport {
    EngineReport {
        engine: report.engine.clone(),
        lanes: report.lanes,
        ranks: report.ranks.map(|ranks| ranks as usize),
        roots: report.roots.clone(),
        fallbacks: report.fallbacks.clone(),
        unsatisfied: report.unsatisfied.clone(),
        notes: report.notes.clone(),
    }
}

pub(crate) fn manager(manager: &ManagerStatus) -> sm::ManagerLine {
    let ManagerStatus { guid, lid, priority, state, is_self, is_trusted } = *manager;
    sm::ManagerLine { guid: guid.into(), lid, priority, state: state.into(), is_self, is_trusted }
}

pub(crate) fn vm_lids(progress: &Progress) -> sm::VmLids {
    let VmLids { in_use, quarantined, free, refused } = progress.vm_lids;
    let Rebalances { runs, lids, smps, balance } = progress.rebalances;
    let rebalances = sm::Rebalances { runs, lids, smps, balance };
    sm::VmLids { in_use, quarantined, free, refused, late: progress.late_rows, rebalances }
}

pub(crate) fn window(state: WindowState) -> sm::WindowState {
    let name = serde_json::to_value(state.reason).ok();
    let name = name.as_ref().and_then(|name| name.as_str()).unwrap_or_default();
    sm::WindowState { most: state.most, reason: name.to_owned(), text: state.reason.text().to_owned() }
}
