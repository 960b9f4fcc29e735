//! Status of subnet managers.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};
use weft_wire::{Printable, count_of};

pub use weft_vocabulary::sm::{
    ElectionCounts, EngineReport, Instructed, Instruction, Learning, Limited, ManagerStatus, PhaseTime,
    Rebalances, Signalled, SmState, SmpCounts, Summary, SweepKind, SweepPhase, VmLids, WindowState,
};

/// How a subnet manager is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SmStatus {
    /// How old this is, in milliseconds: more than 0 when the manager is too busy to say how it is now.
    pub age_ms: u64,
    /// Whether it is attached to its port.
    pub attached: bool,
    /// The phase of the sweep under way.
    pub phase: Option<SweepPhase>,
    /// Whether the last heavy sweep left everything in service.
    pub subnet_up: bool,
    /// Heavy sweeps begun.
    pub heavy_sweeps: u64,
    /// Light sweeps begun.
    pub light_sweeps: u64,
    /// Traps received.
    pub traps: u64,
    /// The lane that is management's alone; nothing where none was wanted.
    pub management_lane: Option<String>,
    /// Times hosts were notified to use paths differently.
    pub repaths: u64,
    /// Nodes in the subnet.
    pub nodes: u64,
    /// Hosts that were there and cannot be reached any more, by GUID.
    pub cut_off: BTreeMap<String, String>,
    /// Ports that keep an M_Key that is not known here, by GUID and port: their descriptions.
    pub locked: BTreeMap<String, String>,
    /// Ports that have no room for all P_Keys of their partitions, by GUID: how many are left out.
    #[serde(default)]
    pub p_keys_left_out: BTreeMap<String, u32>,
    /// Ports with P_Keys that wait until a place has rested that another key has left, by GUID: how many.
    #[serde(default)]
    pub p_keys_waiting: BTreeMap<String, u32>,
    /// Ports that have not acknowledged that they have left partitions, by GUID: whether their switches drop their packets.
    #[serde(default)]
    pub p_keys_kept: BTreeMap<String, bool>,
    /// The manager's own port answers nothing.
    pub own_port_silent: bool,
    /// This manager and the others that it knows of.
    pub managers: Vec<ManagerStatus>,
    /// What the election has taken.
    pub election: ElectionCounts,
    /// LIDs of virtual functions as of the last sweep.
    #[serde(default)]
    pub vm_lids: VmLids,
    /// What has come of reports of what hosts receive.
    #[serde(default)]
    pub learning: Learning,
    /// How many SMPs it may have outstanding.
    pub window: Option<WindowState>,
    /// SMPs that are under way.
    #[serde(default)]
    pub in_flight: u32,
    /// What subnet administration did not do because of a limit.
    pub limited: Limited,
    /// Datagrams that notify hosts of other paths.
    #[serde(default)]
    pub signalled: Signalled,
    /// What the last heavy sweep came to.
    pub last: Option<Summary>,
    /// How the subnet is routed.
    pub routing: Option<EngineReport>,
    /// Why the last sweep could not route it, if it could not; then the tables are those from before.
    pub not_routed: Option<String>,
}

impl SmStatus {
    /// Which ports are not as the partitions say, or not yet: a sentence each.
    pub fn partition_sentences(&self) -> Vec<String> {
        crate::p_keys::sentences(&self.p_keys_left_out, &self.p_keys_waiting, &self.p_keys_kept)
    }

    /// Its own state among others.
    pub fn state(&self) -> Option<SmState> {
        self.managers.iter().find(|manager| manager.is_self).map(|manager| manager.state)
    }

    fn write_limits(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ElectionCounts { key_mismatches, handovers_refused, .. } = self.election;
        let counts = [
            (key_mismatches, "commands of managers that did not show the SM_Key"),
            (handovers_refused, "handovers that another manager refused"),
        ];
        write_counts(f, "limits", counts.into_iter().chain(self.limited.counts()))
    }
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

/// What `weft status` prints.
impl fmt::Display for SmStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = match (self.attached, self.subnet_up, self.phase) {
            (false, ..) => "waiting for its agent".to_owned(),
            _ if self.state() == Some(SmState::Standby) => "standby: another manager is in charge".to_owned(),
            _ if self.state() == Some(SmState::NotActive) => {
                "not active: the master has disabled it".to_owned()
            }
            (_, true, _) => "SUBNET UP".to_owned(),
            (_, _, Some(phase)) => format!("sweeping, phase {phase}"),
            (_, _, None) => "not up".to_owned(),
        };
        writeln!(f, "state: {state}")?;
        writeln!(
            f,
            "sweeps: {} heavy, {} light; traps: {}; repaths: {}",
            self.heavy_sweeps, self.light_sweeps, self.traps, self.repaths
        )?;
        if let Some(last) = &self.last {
            write_last(last, f)?;
        }
        if self.vm_lids.are_of_interest() {
            writeln!(f, "{}", self.vm_lids)?;
        }
        if self.learning.is_of_interest() {
            writeln!(f, "{}", self.learning)?;
        }
        if self.own_port_silent {
            writeln!(f, "own port: it answers no SMP; it may keep another M_Key, see --m-key")?;
        }
        let sentences = self.partition_sentences();
        sentences.iter().try_for_each(|sentence| writeln!(f, "partitions: {sentence}"))?;
        for (port, description) in &self.locked {
            writeln!(f, "keeps another M_Key: {description} ({port})")?;
        }
        if let Some(window) = &self.window {
            write!(f, "outstanding SMPs: {}, {}", window.most, window.text)?;
            let under_way =
                if self.in_flight > 0 { format!("; {} now", self.in_flight) } else { String::new() };
            writeln!(f, "{under_way}")?;
        }
        for manager in self.managers.iter().filter(|manager| !manager.is_trusted) {
            let (guid, state) = (manager.guid, manager.state.name());
            writeln!(f, "not trusted: the manager {guid} ({state}) shows another SM_Key, see --sm-key")?;
        }
        self.write_limits(f)?;
        self.management_lane.iter().try_for_each(|lane| writeln!(f, "management lane: {lane}"))?;
        self.routing.iter().flat_map(EngineReport::lines).try_for_each(|line| writeln!(f, "{line}"))?;
        if let Some(message) = &self.not_routed {
            writeln!(f, "routing failed, the tables are those from before: {message}")?;
        }
        self.cut_off
            .iter()
            .try_for_each(|(guid, host)| writeln!(f, "cut off: `{}` ({guid})", Printable(host)))
    }
}

fn write_last(last: &Summary, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    writeln!(
        f,
        "subnet: {}, {}, {}, {}, {} active",
        count_of(last.switches as usize, "switch"),
        count_of(last.hosts as usize, "host"),
        count_of(last.cables as usize, "cable"),
        count_of(last.lids as usize, "LID"),
        count_of(last.ports_active as usize, "port")
    )?;
    if last.cables_degraded > 0 {
        writeln!(f, "degraded cables: {}; `weft links` shows them", last.cables_degraded)?;
    }
    let seconds = last.took.as_nanos() as f64 / 1e9;
    writeln!(
        f,
        "last heavy sweep: {seconds:.3} s, {}, {}, {}",
        count_of(last.smps.total as usize, "SMP"),
        count_of(last.retries as usize, "retry"),
        count_of(last.smps.set_lft as usize, "LFT write")
    )?;
    write_missing(last, f)
}
