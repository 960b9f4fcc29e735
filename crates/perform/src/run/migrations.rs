//! Migrations that a run has asked for, and what devices receive while they are under way.

use std::collections::BTreeMap;

use weft_experiment::{Counted, Mark, MarkKind, Migrated, MigrationOutcome, MigrationRecord, VmsPlan};
use weft_machine::Time;
use weft_topology::NodeIndex;
use weft_vm::{Migrate, Migration, Stages};

/// What devices have received so far.
#[derive(Clone, Debug, Default)]
pub(super) struct Received {
    /// LFT SMPs, by switch.
    pub(super) lft_writes: BTreeMap<NodeIndex, u64>,
    /// Sets, of all functions of adapters together.
    pub(super) function_sets: u64,
}

impl Received {
    /// What has come since.
    fn since(&self, before: &Self, plan: &VmsPlan) -> Counted {
        let mut counted = Counted::default();
        for (switch, now) in &self.lft_writes {
            let writes = now.saturating_sub(before.lft_writes.get(switch).copied().unwrap_or(0));
            if plan.adapters.iter().any(|adapter| adapter.vswitch == *switch) {
                counted.vswitch_smps += writes;
            } else {
                counted.switches += u64::from(writes > 0);
                counted.physical_smps += writes;
            }
        }
        counted
    }
}

/// A migration that was asked for.
#[derive(Debug)]
struct Asked<Id> {
    id: Id,
    record: MigrationRecord,
    before: Received,
    is_alone: bool,
    /// Whether the machine runs, and the subnet manager may still be setting up its port.
    sets_up: bool,
}

/// All that were asked for. `Id` is the driver's name for a request.
#[derive(Debug)]
pub(super) struct Migrations<Id>(Vec<Asked<Id>>);

impl<Id> Default for Migrations<Id> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<Id: PartialEq + Copy> Migrations<Id> {
    /// One is asked for now.
    pub(super) fn begin(&mut self, id: Id, migrate: &Migrate, at: Time, before: Received) {
        let record = MigrationRecord {
            vm: migrate.vm.to_string(),
            to: migrate.host.to_string(),
            at,
            ended: None,
            outcome: MigrationOutcome::Refused("it had not ended when the run did".to_owned()),
            counted: None,
        };
        // Late rows of another may be written yet.
        let is_over = |other: &Asked<Id>| other.record.settled().is_none_or(|settled| settled <= at);
        let mut is_alone = self.0.iter().all(is_over);
        for other in self.0.iter_mut().filter(|other| other.record.ended.is_none()) {
            (other.is_alone, is_alone) = (false, false);
        }
        self.0.iter_mut().for_each(|other| other.sets_up = false);
        self.0.push(Asked { id, record, before, is_alone, sets_up: false });
    }

    /// Those that have no answer.
    pub(super) fn open(&self) -> Vec<Id> {
        self.0.iter().filter(|asked| asked.record.ended.is_none()).map(|asked| asked.id).collect()
    }

    /// One has its answer. The mark that tells of it.
    pub(super) fn end(
        &mut self,
        id: Id,
        at: Time,
        outcome: MigrationOutcome,
        now: &Received,
        plan: &VmsPlan,
    ) -> Option<Mark> {
        let asked = self.0.iter_mut().find(|asked| asked.id == id && asked.record.ended.is_none())?;
        (asked.record.ended, asked.record.outcome) = (Some(at), outcome);
        asked.record.counted = asked.is_alone.then(|| now.since(&asked.before, plan));
        asked.sets_up = asked.is_alone && asked.record.is_done();
        Some(Mark { at, kind: MarkKind::Migration, text: asked.record.text() })
    }

    /// The last one and its machine, where the machine runs and its port was not seen active yet.
    pub(super) fn set_up_next(&self) -> Option<(Id, &str)> {
        self.0.iter().rev().find(|asked| asked.sets_up).map(|asked| (asked.id, asked.record.vm.as_str()))
    }

    /// The port of its machine is active: functions have received all that they receive for it.
    pub(super) fn is_set_up(&mut self, id: Id, now: &Received) {
        let Some(asked) = self.0.iter_mut().find(|asked| asked.id == id) else { return };
        asked.sets_up = false;
        if let Some(counted) = &mut asked.record.counted {
            counted.hypervisor_smps = Some(now.function_sets.saturating_sub(asked.before.function_sets));
        }
    }

    /// What became of all.
    pub(super) fn records(&self) -> Vec<MigrationRecord> {
        self.0.iter().map(|asked| asked.record.clone()).collect()
    }
}

/// The VM manager's answer as a report has it.
pub(super) fn migrated(migration: &Migration) -> Migrated {
    let (from, to) = (migration.from.to_string(), migration.to.to_string());
    let stages = migration.stages.named().map(|(name, took)| (name.to_owned(), took)).collect();
    let Stages { downtime, silent_after, total, .. } = migration.stages;
    let (told, notes) = (migration.counts.clone(), migration.notes.clone());
    Migrated { from, to, stages, downtime, silent_after, total, told, notes }
}
