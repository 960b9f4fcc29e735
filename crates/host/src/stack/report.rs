//! Reports about flows.

use weft_wire::PortFacts;

use super::flow::Flow;
use super::partitions;
use super::paths::{Paths, State};
use super::sender::{LaneChange, Phase, Sender, Target};
use crate::traffic::{FlowReport, PathSource};

/// What the sending end tells.
pub(super) fn of_sender(flow: &Flow, facts: &PortFacts, paths: &Paths) -> Option<FlowReport> {
    let sender = flow.sender.as_deref().filter(|sender| !matches!(sender.target, Target::Peer))?;
    let one = matches!(sender.target, Target::One(_)) && sender.phase != Phase::Path;
    let answers = flow.receiver.as_deref().filter(|_| sender.is_reliable());
    let (mut state, mut error) = (word(sender, facts).to_owned(), None);
    match &sender.phase {
        Phase::Error(reason) => error = Some(reason.clone()),
        Phase::Path => error = awaited(sender, facts, paths),
        Phase::Active | Phase::Held => {}
    }
    if sender.fresh == 0 && sender.phase == Phase::Active && state == "sending" {
        state = "idle".to_owned();
    }
    Some(FlowReport {
        flow: flow.id,
        sender: true,
        state,
        service_level: one.then_some(sender.address.service_level),
        packets: sender.packets,
        bytes: sender.bytes,
        repeated: sender.repeated,
        timeouts: sender.timeouts,
        out_of_order: answers.map_or(0, |receiver| receiver.out_of_order),
        missing: answers.map_or(0, |receiver| receiver.missing),
        disorder: answers.map_or(0, |receiver| receiver.disorder),
        notifications: sender.notifications,
        shed: if let Target::Mix(mix) = &sender.target { mix.shed } else { 0 },
        moves: sender.lane_changes.clone(),
        moves_total: sender.lane_changes_total,
        latency: sender.latency.report(),
        messages: sender.message_times(),
        pause_ns: 0,
        error,
    })
}

/// What the receiving end tells.
pub(super) fn of_receiver(flow: &Flow) -> Option<FlowReport> {
    let receiver = flow.receiver.as_deref()?;
    let answers = flow.sender.as_deref().filter(|sender| matches!(sender.target, Target::Peer));
    if answers.is_none() && flow.sender.as_deref().is_some_and(Sender::is_reliable) {
        // The answers to a ping-pong of this host's own.
        return None;
    }
    let error = answers.and_then(|sender| match &sender.phase {
        Phase::Error(reason) => Some(reason.clone()),
        _ => None,
    });
    let error = error.or_else(|| receiver.ended.map(partitions::reason));
    let state = match (&error, receiver.packets) {
        (Some(_), _) => "error",
        (None, 0) => "idle",
        _ => "receiving",
    };
    Some(FlowReport {
        flow: flow.id,
        sender: false,
        state: state.to_owned(),
        packets: receiver.packets,
        bytes: receiver.bytes,
        repeated: receiver.repeated,
        timeouts: answers.map_or(0, |sender| sender.timeouts),
        out_of_order: receiver.out_of_order,
        missing: receiver.missing,
        disorder: receiver.disorder,
        notifications: answers.map_or(0, |sender| sender.notifications),
        latency: receiver.latency,
        pause_ns: receiver.pause.as_nanos(),
        error,
        ..FlowReport::default()
    })
}

/// What stands still, and has not ended.
pub(super) fn suspend(report: &mut FlowReport) {
    if !["done", "stopped", "error"].contains(&report.state.as_str()) {
        report.state = "suspended".to_owned();
    }
}

/// What a sender does, in one word.
fn word(sender: &Sender, facts: &PortFacts) -> &'static str {
    match (&sender.phase, &sender.lane_change) {
        (Phase::Error(_), _) => "error",
        _ if sender.is_stopped() => "stopped",
        (Phase::Path, _) => "path",
        _ if sender.is_done() => "done",
        (Phase::Held, _) => "held",
        (_, LaneChange::Drain { .. }) => "draining",
        (_, LaneChange::Rearm { .. }) => "rearming",
        _ if !facts.active => "idle",
        _ => "sending",
    }
}

/// Why a sender has no path.
fn awaited(sender: &Sender, facts: &PortFacts, paths: &Paths) -> Option<String> {
    let path = match &sender.target {
        Target::One(path) => paths.get(*path)?,
        Target::Mix(mix) => paths.get(mix.unresolved_now()?)?,
        Target::Peer => return None,
    };
    let what = if path.source == PathSource::Unasked { "LID" } else { "path record" };
    Some(match (&path.problem, path.state) {
        (Some(problem), State::Failed) => format!("no {what} for {}: {problem}", path.to),
        _ if !facts.active => {
            format!("the port is not active; the {what} for {} is asked for later", path.to)
        }
        _ if !facts.sm_lid.is_unicast() => {
            format!("there is no subnet manager to ask for the {what} for {}", path.to)
        }
        _ => format!("waits for the {what} for {}", path.to),
    })
}
