//! Carries out a plan, step by step, on any stage.
//!
//! ```text
//!   steps, sample times ──▶ the next moment ──▶ stage.play_until ──▶ act, or sample ──▶ … ──▶ Recording
//! ```

use std::collections::BTreeMap;

use weft_experiment::{
    Action, Conservation, Driver, FaultLog, FlowSample, FlowTotal, GivenLevel, HostReconfigurations, Late,
    Mark, MarkKind, MigrationRecord, Plan, PortPlace, PortSample, Recording, Sample, Step, predict,
};
use weft_fault::Sign;
use weft_host::traffic::{Command, FlowId, FlowReport, LearntPath};
use weft_machine::Time;
use weft_sm::Signalled;
use weft_topology::{Node, NodeIndex};
use weft_wire::{Guid, Lid, PKey, PathRate, ServiceLevel};

/// A fabric that is up, with traffic and managers, on which a plan is carried out. Its clock begins at zero.
pub(super) trait Stage {
    /// Its identity.
    fn driver(&self) -> Driver;
    /// Lets everything happen until a moment. Live, that is waiting.
    fn play_until(&mut self, at: Time) -> anyhow::Result<()>;
    /// Does something now.
    fn act(&mut self, action: &Action) -> anyhow::Result<()>;
    /// Does what is due at the same moment: one action, or commands of hosts.
    fn act_together(&mut self, actions: &[&Action]) -> anyhow::Result<()> {
        actions.iter().try_for_each(|action| self.act(action))
    }
    /// What the flows of every host say. Those of a host that is dead are left out.
    fn reports(&mut self) -> anyhow::Result<Vec<(NodeIndex, Vec<FlowReport>)>>;
    /// The counters of some ports, in their order.
    fn ports(&mut self, ports: &[PortPlace]) -> anyhow::Result<Vec<PortSample>>;
    /// What the plan's clock shows.
    fn clock(&self) -> Time;
    /// What was seen that says anything of faults, in any order.
    fn fault_signs(&mut self) -> anyhow::Result<Vec<(Time, Sign<String>)>>;
    /// Shows to whoever looks how it is at a sample's moment, and what has happened since the last one.
    fn show(&mut self, _reports: &[(NodeIndex, Vec<FlowReport>)], _marks: &[Mark]) -> anyhow::Result<()> {
        Ok(())
    }
    /// What has happened since the last call, but for what the plan did.
    fn marks(&mut self) -> anyhow::Result<Vec<Mark>>;
    /// Datagrams that have notified hosts of other paths so far, where the subnet manager can be asked.
    fn signalled(&mut self) -> anyhow::Result<Option<Signalled>>;
    /// When hosts heeded notices, where they can be asked.
    fn reconfigurations(&mut self) -> Option<Vec<HostReconfigurations>>;
    /// What became of migrations.
    fn migrations(&mut self) -> anyhow::Result<Vec<MigrationRecord>>;
    /// Who routed.
    fn routed_by(&mut self) -> anyhow::Result<String>;
    /// Stops all traffic's counting: the balance of packets, and how late a live run was.
    fn close(&mut self) -> anyhow::Result<(Conservation, Option<Late>)>;
}

/// Carries out a plan whose setup has been done. An error of `progress` ends it.
pub(super) fn perform(
    plan: &Plan,
    stage: &mut dyn Stage,
    progress: &dyn Fn(Time) -> anyhow::Result<()>,
) -> anyhow::Result<Recording> {
    let (run, driver, prediction) = (plan.run.clone(), stage.driver(), predict(plan));
    let mut recording = Recording { run, driver, prediction, ..Recording::default() };
    let signalled = stage.signalled()?;
    let mut faults = FaultLog::default();
    let behind = play(plan, stage, progress, &mut recording, &mut faults)?;
    // Agents that cannot keep up answer once the traffic has stopped.
    let broken_off = behind.map(|_| stage.close()).transpose()?;
    for (host, reports) in stage.reports()? {
        recording.ends.extend(reports.into_iter().map(|report| FlowTotal { host, report }));
    }
    recording.signalled = stage.signalled()?.zip(signalled).map(|(now, before)| now.since(&before));
    recording.reconfigurations = stage.reconfigurations();
    recording.migrations = stage.migrations()?;
    recording.faults = faults.times(stage.fault_signs()?);
    recording.routed_by = stage.routed_by()?;
    (recording.conservation, recording.late) = broken_off.map_or_else(|| stage.close(), Ok)?;
    if let Some(by) = behind {
        recording.late = Some(recording.late.unwrap_or_default().behind(by));
    }
    recording.marks.extend(stage.marks()?);
    recording.marks.sort_by_key(|mark| mark.at);
    Ok(recording)
}

/// Plays all steps and takes all samples. How far it was behind its clock, where it was broken off for that.
fn play(
    plan: &Plan,
    stage: &mut dyn Stage,
    progress: &dyn Fn(Time) -> anyhow::Result<()>,
    recording: &mut Recording,
    faults: &mut FaultLog,
) -> anyhow::Result<Option<Time>> {
    let interval = plan.sample_interval.max(Time::from_millis(1));
    let mut steps = plan.steps.iter().peekable();
    let (mut next_sample, mut shown, mut sums) = (Time::ZERO, 0, Sums::default());
    loop {
        let step = steps.peek().map(|step| step.at).filter(|at| *at <= plan.duration);
        let now = step.map_or(next_sample, |at| at.min(next_sample));
        stage.play_until(now)?;
        progress(now)?;
        recording.ended = now;
        let behind = stage.clock().saturating_sub(now);
        if behind > Late::BEHIND_MAX {
            return Ok(Some(behind));
        }
        // What begins at a sample's moment is not in the sample.
        if now == next_sample {
            let reports = stage.reports()?;
            recording.samples.push(sums.sample(plan, stage, &reports, now)?);
            recording.marks.extend(stage.marks()?);
            stage.show(&reports, &recording.marks[shown..])?;
            shown = recording.marks.len();
            if now >= plan.duration {
                return Ok(None);
            }
            next_sample = (now + interval).min(plan.duration);
        }
        let is_due = |step: &&Step| step.at <= now && step.at <= plan.duration;
        let due: Vec<&Action> =
            std::iter::from_fn(|| steps.next_if(is_due)).map(|step| &step.action).collect();
        act(plan, stage, &due, faults)?;
        recording.marks.extend(due.iter().filter_map(|action| mark(plan, action, now)));
    }
}

/// Does what is due, commands of hosts together and everything else by itself.
fn act(plan: &Plan, stage: &mut dyn Stage, due: &[&Action], faults: &mut FaultLog) -> anyhow::Result<()> {
    for together in due.chunk_by(|a, b| [a, b].iter().all(|action| matches!(action, Action::Host(..)))) {
        together.iter().for_each(|action| faults.note(plan, stage.clock(), action));
        stage.act_together(together)?;
    }
    Ok(())
}

/// What the plan did, for the report.
fn mark(plan: &Plan, action: &Action, at: Time) -> Option<Mark> {
    let kind = match action {
        Action::Migrate(_) => MarkKind::Migration,
        Action::Host(..) | Action::Fault(_) => MarkKind::Fault,
    };
    plan.event(action).map(|text| Mark { at, kind, text })
}

/// What hosts are to know of the service levels that the plan gives by hand. `lid` tells a port's LID.
pub(super) fn given_levels(plan: &Plan, lid: impl Fn(Guid) -> Option<Lid>) -> Vec<(NodeIndex, Command)> {
    let path = |given: &GivenLevel| {
        let service_level = ServiceLevel(given.sl);
        let (to, dlid, p_key) = (given.to, lid(given.to)?, PKey::DEFAULT_FULL);
        let learnt = LearntPath { to, dlid, service_level, p_key, rate: PathRate::default() };
        Some((given.host, Command::LearnPaths(vec![learnt])))
    };
    plan.levels.iter().filter_map(path).collect()
}

/// Whether a node has a port with this GUID.
pub(super) fn has_port(node: &Node, port: Guid) -> bool {
    node.external_ports().any(|(_, own)| own.guid == port)
}

/// The counters of flows so far. An end that has died keeps what it said last.
#[derive(Default)]
struct Sums {
    ends: BTreeMap<(FlowId, bool, NodeIndex), FlowSample>,
}

impl Sums {
    fn sample(
        &mut self,
        plan: &Plan,
        stage: &mut dyn Stage,
        reports: &[(NodeIndex, Vec<FlowReport>)],
        at: Time,
    ) -> anyhow::Result<Sample> {
        for (host, reports) in reports {
            for report in reports {
                let sample = match report.sender {
                    true => FlowSample { flow: report.flow, sent_bytes: report.bytes, packets: 0, bytes: 0 },
                    false => FlowSample {
                        flow: report.flow,
                        sent_bytes: 0,
                        packets: report.packets.saturating_sub(report.repeated),
                        bytes: report.bytes,
                    },
                };
                self.ends.insert((report.flow, report.sender, *host), sample);
            }
        }
        let mut flows: Vec<FlowSample> = Vec::new();
        for sample in self.ends.values() {
            match flows.last_mut().filter(|flow| flow.flow == sample.flow) {
                Some(flow) => {
                    flow.sent_bytes += sample.sent_bytes;
                    flow.packets += sample.packets;
                    flow.bytes += sample.bytes;
                }
                None => flows.push(*sample),
            }
        }
        Ok(Sample { at, flows, ports: stage.ports(&plan.ports)? })
    }
}
