//! The outcome of a migration of a virtual machine.

use serde::{Deserialize, Serialize};
use weft_machine::Time;
use weft_vm::MoveCounts;

use crate::MigrationValue;
use crate::number::number;

/// What became of a migration.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MigrationRecord {
    /// The virtual machine.
    pub vm: String,
    /// The host that it was to go to.
    pub to: String,
    /// When it was asked for, on the plan's clock.
    pub at: Time,
    /// When the VM manager answered, on the plan's clock; none if it did not before the end.
    pub ended: Option<Time>,
    /// What it answered.
    pub outcome: Outcome,
    /// What devices received between the two moments. None while another migration was under way too: no one can tell then what was
    /// for which.
    pub counted: Option<Counted>,
}

/// How a migration ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// The machine runs at its destination.
    Done(Box<Migrated>),
    /// It does not, in the manager's words.
    Refused(String),
}

/// A migration that was carried out, as the VM manager tells of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Migrated {
    /// The function that it left: `A vf1`.
    pub from: String,
    /// The function that it came to.
    pub to: String,
    /// How long each stage took, in order.
    pub stages: Vec<(String, Time)>,
    /// From the order to freeze until the last host is served.
    pub downtime: Option<Time>,
    /// For how long hosts at silent switches heard nothing after the machine ran, at most: what is left of their wait, which began with the
    /// move of the address. None where there are none.
    pub silent_after: Option<Time>,
    /// All stages together.
    pub total: Time,
    /// What the subnet manager reported of its work.
    pub told: Option<MoveCounts>,
    /// What was not as usual, in words.
    pub notes: Vec<String>,
}

/// What devices have received.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counted {
    /// Physical switches that received an LFT SMP.
    pub switches: u64,
    /// LFT SMPs that physical switches received.
    pub physical_smps: u64,
    /// LFT SMPs that vSwitches received.
    pub vswitch_smps: u64,
    /// Sets of management that functions of adapters received until the machine's port was set up. None where it was not before the end,
    /// or before another migration began.
    pub hypervisor_smps: Option<u64>,
}

impl MigrationRecord {
    /// Whether the machine runs at its destination.
    pub fn is_done(&self) -> bool {
        matches!(self.outcome, Outcome::Done(_))
    }

    /// When the last of its rows were written, as far as that is known; none where it had none that were late.
    pub fn settled(&self) -> Option<Time> {
        /// What the writes take, beside the wait.
        const WRITES: Time = Time::from_secs(1);
        let Outcome::Done(migrated) = &self.outcome else { return None };
        let late = migrated.told.as_ref().map(|told| told.late_after).filter(|late| *late > Time::ZERO)?;
        Some(self.ended? + late + WRITES)
    }

    /// What it cost, in the value's unit; none if that was not measured.
    pub fn value(&self, value: MigrationValue) -> Option<f64> {
        let Outcome::Done(migrated) = &self.outcome else { return None };
        if value == MigrationValue::Downtime {
            return migrated.downtime.map(Time::as_secs_f64);
        }
        let counted = self.counted?;
        Some(match value {
            MigrationValue::LftSmps => counted.physical_smps + counted.vswitch_smps,
            MigrationValue::Switches => counted.switches,
            _ => counted.hypervisor_smps?,
        } as f64)
    }

    /// What became of it, in one line.
    pub fn text(&self) -> String {
        let Self { vm, to, .. } = self;
        match &self.outcome {
            Outcome::Done(migrated) => {
                let downtime = migrated.downtime.map(|time| number(time.as_secs_f64(), "s"));
                let downtime =
                    downtime.map(|time| format!(" after a downtime of {time}")).unwrap_or_default();
                format!("{vm} runs on {}{downtime}", migrated.to)
            }
            Outcome::Refused(words) => format!("{vm} does not move to {to}: {words}"),
        }
    }

    /// What devices received differs from what the subnet manager tells.
    pub fn contradiction(&self) -> Option<String> {
        let Outcome::Done(migrated) = &self.outcome else { return None };
        let (told, counted) = (migrated.told.as_ref()?, self.counted?);
        // What is written late comes after the answer.
        let physical = told.physical_smps.saturating_sub(told.late_physical_smps);
        let vswitch = told.vswitch_smps.saturating_sub(told.late_vswitch_smps);
        let mut said = [told.switches, physical, vswitch].map(u64::from);
        let received = [counted.switches, counted.physical_smps, counted.vswitch_smps];
        if told.late_physical_smps > 0 && counted.switches < said[0] {
            // A switch may be written late alone.
            said[0] = said[0].saturating_sub(told.late_physical_smps.into()).max(counted.switches);
        }
        let text = |[switches, physical, vswitch]: [u64; 3]| {
            format!("{physical} LFT SMPs to {switches} switches and {vswitch} to vSwitches")
        };
        (said != received).then(|| {
            format!(
                "{} to {}: {} were received, and {} are told",
                self.vm,
                self.to,
                text(received),
                text(said)
            )
        })
    }
}
