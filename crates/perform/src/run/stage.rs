//! Carries out a plan, step by step, on any stage.
//!
//! ```text
//!   steps, sample times ──▶ the next moment ──▶ stage.play_until ──▶ act, or sample ──▶ … ──▶ Recording
//! ```

use std::collections::BTreeMap;

use weft_experiment::{
    Action, Conservation, Driver, FaultLog, FlowSample, FlowTotal, GivenLevel, Late, Mark, MarkKind,
    MigrationRecord, Plan, PortPlace, PortSample, Recording, Sample, predict,
};
use weft_fault::Sign;
use weft_host::traffic::{Command, FlowId, FlowReport, LearntPath};
use weft_machine::Time;
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
    let interval = plan.sample_interval.max(Time::from_millis(1));
    let mut steps = plan.steps.iter().peekable();
    let mut next_sample = Time::ZERO;
    let mut shown = 0;
    let (mut sums, mut faults) = (Sums::default(), FaultLog::default());
    loop {
        let step = steps.peek().map(|step| step.at).filter(|at| *at <= plan.duration);
        let now = step.map_or(next_sample, |at| at.min(next_sample));
        stage.play_until(now)?;
        progress(now)?;
        // What begins at a sample's moment is not in the sample.
        if now == next_sample {
            let reports = stage.reports()?;
            recording.samples.push(sums.sample(plan, stage, &reports, now)?);
            recording.marks.extend(stage.marks()?);
            stage.show(&reports, &recording.marks[shown..])?;
            shown = recording.marks.len();
            if now >= plan.duration {
                break;
            }
            next_sample = (now + interval).min(plan.duration);
        }
        while let Some(step) = steps.next_if(|step| step.at <= now && step.at <= plan.duration) {
            faults.note(plan, stage.clock(), &step.action);
            stage.act(&step.action)?;
            let text = plan.event(&step.action);
            let kind = match &step.action {
                Action::Migrate(_) => MarkKind::Migration,
                Action::Host(..) | Action::Fault(_) => MarkKind::Fault,
            };
            recording.marks.extend(text.map(|text| Mark { at: now, kind, text }));
        }
    }
    for (host, reports) in stage.reports()? {
        recording.ends.extend(reports.into_iter().map(|report| FlowTotal { host, report }));
    }
    recording.migrations = stage.migrations()?;
    recording.faults = faults.times(stage.fault_signs()?);
    recording.routed_by = stage.routed_by()?;
    recording.ended = plan.duration;
    (recording.conservation, recording.late) = stage.close()?;
    recording.marks.extend(stage.marks()?);
    recording.marks.sort_by_key(|mark| mark.at);
    Ok(recording)
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
