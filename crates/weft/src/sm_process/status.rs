//! What `weft status` shows: the subnet manager's own account, kept in a file that is replaced as a whole.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

use anyhow::Context;
use serde::{Deserialize, Serialize};
use weft_mgmt::WindowState;
use weft_routing::EngineReport;
use weft_sm::{ElectionCounts, Event, ManagerStatus, Phase, SaCounts, Summary, SweepKind};
use weft_wire::{Printable, SmState};

/// A subnet manager among others, as it is shown.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ManagerLine {
    /// The port that it is behind, in hexadecimal.
    pub(crate) guid: String,
    /// Its LID; 0 is not known.
    pub(crate) lid: u16,
    /// Its priority.
    pub(crate) priority: u8,
    /// Its state: master, standby, discovering or not-active.
    pub(crate) state: String,
    /// Whether it is the manager that says so.
    pub(crate) is_self: bool,
    /// Whether it shows the SM_Key of the manager that says so.
    pub(crate) is_trusted: bool,
}

impl ManagerLine {
    pub(super) fn of(manager: &ManagerStatus) -> Self {
        let ManagerStatus { guid, lid, priority, state, is_self, is_trusted } = *manager;
        let (guid, state) = (guid.to_string(), state_name(state).to_owned());
        Self { guid, lid: lid.0, priority, state, is_self, is_trusted }
    }
}

fn state_name(state: SmState) -> &'static str {
    match state {
        SmState::Master => "master",
        SmState::Standby => "standby",
        SmState::Discovering => "discovering",
        SmState::NotActive => "not-active",
        _ => "unknown",
    }
}

/// What subnet administration did not do because of a limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Limited {
    /// Requests answered BUSY.
    pub(crate) busy: u64,
    /// Of these, because their requester had too many tables under way.
    pub(crate) requester_tables: u64,
    /// Of these, because their requester had too many requests waiting for tables.
    pub(crate) requester_waiting: u64,
    /// Requests in segments that were not taken, because their requester had too many under way.
    pub(crate) requester_segments: u64,
    /// Reports dropped because too many were waiting.
    pub(crate) reports: u64,
    /// Of these, because their subscriber had too many waiting.
    pub(crate) subscriber_reports: u64,
}

impl Limited {
    pub(super) fn of(sa: &SaCounts) -> Self {
        Self {
            busy: sa.busy,
            requester_tables: sa.requester_tables,
            requester_waiting: sa.requester_waiting,
            requester_segments: sa.requester_segments,
            reports: sa.reports_dropped,
            subscriber_reports: sa.subscriber_reports,
        }
    }
}

/// How the subnet manager is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SmStatus {
    /// Whether it is attached to its port.
    pub(crate) attached: bool,
    /// The phase of the sweep under way.
    pub(crate) phase: Option<Phase>,
    /// Whether the last heavy sweep left everything in service.
    pub(crate) subnet_up: bool,
    /// Heavy sweeps begun.
    pub(crate) heavy_sweeps: u64,
    /// Light sweeps begun.
    pub(crate) light_sweeps: u64,
    /// Traps received.
    pub(crate) traps: u64,
    /// The lane that is management's alone; nothing where none was wanted.
    #[serde(default)]
    pub(crate) management_lane: Option<String>,
    /// How often hosts were told to use paths differently.
    #[serde(default)]
    pub(crate) repaths: u64,
    /// Nodes in the subnet.
    pub(crate) nodes: u64,
    /// Hosts that were there and cannot be reached any more, by GUID.
    pub(crate) cut_off: BTreeMap<String, String>,
    /// Ports that keep an M_Key that is not known here, by GUID and port: their descriptions.
    #[serde(default)]
    pub(crate) locked: BTreeMap<String, String>,
    /// The manager's own port answers nothing.
    #[serde(default)]
    pub(crate) own_port_silent: bool,
    /// This manager and the others that it knows of.
    #[serde(default)]
    pub(crate) managers: Vec<ManagerLine>,
    /// What the election has taken.
    #[serde(default)]
    pub(crate) election: ElectionCounts,
    /// How many SMPs it may have outstanding.
    #[serde(default)]
    pub(crate) window: Option<WindowState>,
    /// What subnet administration did not do because of a limit.
    #[serde(default)]
    pub(crate) limited: Limited,
    /// Events that could not be written to the laboratory's file.
    #[serde(default)]
    pub(crate) events_lost: u64,
    /// What the last heavy sweep came to.
    pub(crate) last: Option<Summary>,
    /// How the subnet is routed.
    #[serde(default)]
    pub(crate) routing: Option<EngineReport>,
    /// Why the last sweep could not route it, if it could not; then the tables are those from before.
    #[serde(default)]
    pub(crate) not_routed: Option<String>,
}

impl SmStatus {
    /// Reads it; `None` when the subnet manager has not said anything yet.
    pub(crate) fn load(path: &Path) -> anyhow::Result<Option<Self>> {
        match crate::input::read(path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error).with_context(|| format!("cannot read {}", path.display())),
            Ok(text) => serde_json::from_slice(&text)
                .map(Some)
                .with_context(|| format!("{} makes no sense", path.display())),
        }
    }

    /// Its own state among others.
    pub(crate) fn state(&self) -> Option<&str> {
        self.managers.iter().find(|manager| manager.is_self).map(|manager| manager.state.as_str())
    }

    fn write_limits(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ElectionCounts { key_mismatches, handovers_refused, .. } = self.election;
        let limited = &self.limited;
        let counts = [
            (key_mismatches, "commands of managers that did not show the SM_Key"),
            (handovers_refused, "handovers that another manager refused"),
            (limited.busy, "requests to subnet administration answered BUSY"),
            (limited.requester_tables, "of these, of requesters with too many tables under way"),
            (limited.requester_waiting, "of these, of requesters with too many waiting"),
            (limited.requester_segments, "requests in segments not taken, of requesters with too many"),
            (limited.reports, "Reports dropped because too many were waiting"),
            (limited.subscriber_reports, "of these, of subscribers with too many waiting"),
        ];
        write_counts(f, "limits", counts)
    }

    /// Takes an event; whether that changed what there is to say.
    pub(super) fn take(&mut self, event: &Event) -> bool {
        match event {
            Event::SweepStarted { kind: SweepKind::Heavy | SweepKind::Repair, .. } => {
                self.heavy_sweeps += 1;
                self.subnet_up = false;
                self.locked.clear();
                self.own_port_silent = false;
            }
            Event::SweepStarted { kind: SweepKind::Light, .. } => self.light_sweeps += 1,
            Event::PhaseStarted { phase } => self.phase = Some(*phase),
            Event::NodeFound { guid, .. } => {
                self.nodes += 1;
                self.cut_off.remove(&guid.to_string());
            }
            Event::NodeLost { .. } => self.nodes = self.nodes.saturating_sub(1),
            Event::HostCutOff { guid, description } => {
                self.nodes = self.nodes.saturating_sub(1);
                self.cut_off.insert(guid.to_string(), description.clone());
            }
            Event::OwnPortSilent => self.own_port_silent = true,
            Event::KeyUnknown { guid, port, description } => {
                self.locked.insert(format!("{guid} port {port}"), description.clone());
            }
            Event::TrapReceived { .. } => self.traps += 1,
            Event::SmState { state, .. } => {
                if *state != SmState::Master {
                    (self.subnet_up, self.phase) = (false, None);
                }
            }
            Event::Instructed { .. }
            | Event::OtherSm { .. }
            | Event::HandoverRefused { .. }
            | Event::SmKeyMismatch { .. } => {}
            Event::ManagementLane { lane } => {
                let shared = || "none: a link has no second lane".to_owned();
                self.management_lane = Some(lane.map_or_else(shared, |lane| lane.to_string()));
            }
            Event::Repath { .. } => self.repaths += 1,
            Event::Routed(report) => {
                self.routing = Some(report.clone());
                self.not_routed = None;
            }
            Event::RouteFailed { message } => self.not_routed = Some(message.clone()),
            Event::SubnetUp(summary) | Event::SweepIncomplete(summary) => {
                self.phase = None;
                self.subnet_up = summary.complete;
                self.last = Some(summary.clone());
            }
            _ => return false,
        }
        true
    }
}

/// The engine that routed, why those before it did not, and what its routing does not keep.
pub(crate) fn routing_lines(routing: &EngineReport) -> impl Iterator<Item = String> {
    let plural = if routing.lanes == 1 { "" } else { "s" };
    let by = format!("routing: {}, {} data lane{plural}", routing.engine, routing.lanes);
    let told = routing.fallbacks.iter().chain(&routing.unsatisfied);
    std::iter::once(by).chain(told.map(|sentence| format!("routing: {sentence}")))
}

/// Writes a line for each count that is not 0.
fn write_counts<C: Into<u64>>(
    f: &mut fmt::Formatter<'_>,
    label: &str,
    counts: impl IntoIterator<Item = (C, &'static str)>,
) -> fmt::Result {
    let counts = counts.into_iter().map(|(count, what)| (count.into(), what));
    counts
        .filter(|(count, _)| *count > 0)
        .try_for_each(|(count, what)| writeln!(f, "{label}: {count} {what}"))
}

/// What the last heavy sweep left out of service.
fn write_missing(last: &Summary, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let counts = [
        (last.ports_silent, "ports have a link, but nobody answers behind them"),
        (last.ports_refused, "ports did not become Active"),
        (last.ports_left_out, "ports lead to nodes that are not part of the subnet"),
        (last.ports_without_lid, "ports have no LID"),
        (last.unanswered, "requests were not answered"),
        (last.refused, "requests were answered with an error"),
    ];
    write_counts(f, "missing", counts)
}

impl fmt::Display for SmStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = match (self.attached, self.subnet_up, self.phase) {
            (false, ..) => "waiting for its agent".to_owned(),
            _ if self.state() == Some("standby") => "standby: another manager is in charge".to_owned(),
            _ if self.state() == Some("not-active") => "not active: the master has disabled it".to_owned(),
            (_, true, _) => "SUBNET UP".to_owned(),
            (_, _, Some(phase)) => format!("sweeping, phase {phase:?}"),
            (_, _, None) => "not up".to_owned(),
        };
        writeln!(f, "state: {state}")?;
        writeln!(
            f,
            "sweeps: {} heavy, {} light; traps: {}; repaths: {}",
            self.heavy_sweeps, self.light_sweeps, self.traps, self.repaths
        )?;
        if let Some(last) = &self.last {
            writeln!(
                f,
                "subnet: {} switches, {} hosts, {} cables, {} LIDs, {} ports active",
                last.switches, last.hosts, last.cables, last.lids, last.ports_active
            )?;
            writeln!(
                f,
                "last heavy sweep: {:.3} s, {} SMPs, {} retries, {} LFT writes",
                last.took.as_secs_f64(),
                last.smps.total(),
                last.retries,
                last.smps.set_lft
            )?;
            write_missing(last, f)?;
        }
        if self.own_port_silent {
            writeln!(f, "own port: it answers no SMP; it may keep another M_Key, see --m-key")?;
        }
        for (port, description) in &self.locked {
            writeln!(f, "keeps another M_Key: {description} ({port})")?;
        }
        if let Some(window) = &self.window {
            writeln!(f, "outstanding SMPs: {}, {}", window.most, window.reason.text())?;
        }
        for manager in self.managers.iter().filter(|manager| !manager.is_trusted) {
            let ManagerLine { guid, state, .. } = manager;
            writeln!(f, "not trusted: the manager {guid} ({state}) shows another SM_Key, see --sm-key")?;
        }
        self.write_limits(f)?;
        if self.events_lost > 0 {
            writeln!(f, "events: {} could not be written, as on a full disk", self.events_lost)?;
        }
        if let Some(lane) = &self.management_lane {
            writeln!(f, "management lane: {lane}")?;
        }
        if let Some(routing) = &self.routing {
            for line in routing_lines(routing) {
                writeln!(f, "{line}")?;
            }
        }
        if let Some(message) = &self.not_routed {
            writeln!(f, "routing failed, the tables are those from before: {message}")?;
        }
        for (guid, description) in &self.cut_off {
            writeln!(f, "cut off: `{}` ({guid})", Printable(description))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use weft_topology::NodeType;
    use weft_wire::Guid;

    use super::*;

    #[test]
    fn a_node_that_goes_and_returns_counts_once() {
        let mut status = SmStatus::default();
        let description = || "node".to_owned();
        for (guid, kind) in [(Guid(1), NodeType::Switch), (Guid(2), NodeType::Hca)] {
            let found = Event::NodeFound { guid, kind, description: description() };
            let gone = match kind {
                NodeType::Hca => Event::HostCutOff { guid, description: description() },
                _ => Event::NodeLost { guid, kind, description: description() },
            };
            status.take(&found);
            let all = status.nodes;
            for _ in 0..3 {
                status.take(&gone);
                assert_eq!(status.nodes, all - 1, "{gone:?}");
                status.take(&found);
                assert_eq!(status.nodes, all, "{found:?}");
            }
        }
        assert_eq!(status.nodes, 2);
    }
}
