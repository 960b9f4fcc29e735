//! For how long flows got nothing.

use weft_machine::Time;

use super::Measured;
use crate::{FlowPlan, MigrationOutcome, MigrationRecord, MigrationValue, Sample};

impl Measured<'_> {
    /// The longest time between two moments in which nothing of a flow arrived, while it was to send. Samples tell of no more than what lies
    /// between them, so that it may have been longer by two of their distances.
    pub(crate) fn quiet(&self, flow: &FlowPlan, from: Time, to: Time) -> Time {
        let (from, to) = (from.max(flow.start), to.min(flow.stop));
        let arrived = |sample: &Sample| {
            let found = sample.flows.iter().find(|of| of.flow == flow.flow);
            found.map_or(0, |of| of.packets)
        };
        let mut longest = Time::ZERO;
        let mut since: Option<(Time, u64)> = None;
        for sample in self.recording.samples.iter().filter(|sample| (from..=to).contains(&sample.at)) {
            let packets = arrived(sample);
            match since {
                Some((at, before)) if before == packets => longest = longest.max(sample.at - at),
                _ => since = Some((sample.at, packets)),
            }
        }
        longest
    }

    /// A value of a migration. Its downtime is until the last peer is served: by the VM manager, or longer where a flow of the machine got
    /// nothing for longer.
    pub(crate) fn migration(&self, one: &MigrationRecord, value: MigrationValue) -> Option<f64> {
        let told = one.value(value)?;
        if value != MigrationValue::Downtime {
            return Some(told);
        }
        let MigrationOutcome::Done(migrated) = &one.outcome else { return Some(told) };
        let machine = self.plan.vms.as_ref().and_then(|vms| {
            let found = vms.vms.iter().find(|vm| vm.name.to_string() == one.vm);
            found.map(|vm| vm.born)
        });
        let next = self.recording.migrations.iter().filter(|other| other.vm == one.vm && other.at > one.at);
        let end = next.map(|other| other.at).min().unwrap_or(self.recording.ended);
        let is_its = |flow: &&FlowPlan| {
            let mut ends = flow.senders.iter().chain(&flow.receivers);
            machine.is_some_and(|machine| ends.any(|end| *end == machine))
        };
        let began = one.at + before_freeze(&migrated.stages);
        let quiet = self.plan.flows.iter().filter(is_its).map(|flow| self.quiet(flow, began, end)).max();
        Some(quiet.map_or(told, |quiet| told.max(quiet.as_secs_f64())))
    }
}

impl Measured<'_> {
    /// The migrations, with their downtimes as they are judged.
    pub(crate) fn migrations(&self) -> Vec<MigrationRecord> {
        let judged = |one: &MigrationRecord| {
            let mut one = one.clone();
            let longest = self.migration(&one, MigrationValue::Downtime);
            if let MigrationOutcome::Done(migrated) = &mut one.outcome {
                migrated.downtime =
                    longest.map(|seconds| Time::from_nanos((seconds * 1e9) as u64)).or(migrated.downtime);
            }
            one
        };
        self.recording.migrations.iter().map(judged).collect()
    }
}

/// How long the stages took in which the machine ran on.
fn before_freeze(stages: &[(String, Time)]) -> Time {
    let before = stages.iter().take_while(|(stage, _)| stage != "freeze");
    before.fold(Time::ZERO, |all, (_, took)| all + *took)
}
