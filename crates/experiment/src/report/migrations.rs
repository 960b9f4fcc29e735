//! The migrations of a variant's runs.

use weft_machine::Time;

use super::table::{Table, escaped};
use crate::migration::{Migrated, MigrationRecord, Outcome};
use crate::number::number;
use crate::{MigrationValue, RunResult};

/// A row for each migration of each run, and below it what took how long.
pub(super) fn section<'a>(runs: impl Iterator<Item = &'a RunResult>) -> String {
    let mut table = Table::headed(
        "seed | at | machine | from | to | downtime | total | switches written | LFT SMPs | \
         to vSwitches | Sets to functions | method",
    );
    let (mut lines, mut count) = (String::new(), 0);
    for run in runs {
        for one in &run.migrations {
            count += 1;
            match &one.outcome {
                Outcome::Done(migrated) => {
                    table.row(&row(run.run.seed, one, migrated));
                    lines += &stages(one, migrated);
                }
                Outcome::Refused(_) => lines += &format!("- {}\n", escaped(&one.text())),
            }
        }
    }
    if count == 0 { String::new() } else { format!("### Migrations\n\n{}{lines}\n", table.finish()) }
}

fn row(seed: u64, one: &MigrationRecord, migrated: &Migrated) -> [String; 12] {
    let seconds = |time: Time| number(time.as_secs_f64(), "s");
    let value = |value| one.value(value).map_or("–".to_owned(), |value| number(value, ""));
    let vswitches = one.counted.map_or("–".to_owned(), |counted| counted.vswitch_smps.to_string());
    let told = migrated.told.as_ref();
    [
        seed.to_string(),
        seconds(one.at),
        one.vm.clone(),
        migrated.from.clone(),
        migrated.to.clone(),
        migrated.downtime.map_or("–".to_owned(), seconds),
        seconds(migrated.total),
        value(MigrationValue::Switches),
        value(MigrationValue::LftSmps),
        vswitches,
        value(MigrationValue::HypervisorSmps),
        told.map_or("–".to_owned(), |told| told.method.clone()),
    ]
}

/// The stages of a migration, and what was not as usual.
fn stages(one: &MigrationRecord, migrated: &Migrated) -> String {
    let stage = |(name, took): &(String, Time)| format!("{name} {}", number(took.as_secs_f64() * 1e3, "ms"));
    let stages: Vec<String> = migrated.stages.iter().map(stage).collect();
    let unproved = migrated.told.iter().filter(|told| told.unproved_lanes != 0);
    let unproved = unproved.map(|told| format!("not proved on lanes {:#06x}", told.unproved_lanes));
    let fell = migrated.told.iter().flat_map(|told| &told.fallbacks).chain(&migrated.notes).cloned();
    let silent = migrated.told.iter().filter(|told| told.silent > 0).map(|told| {
        let silence = number(migrated.silent_after.unwrap_or(told.silence).as_secs_f64(), "s");
        let switches = if told.silent == 1 { "switch" } else { "switches" };
        format!("hosts at {} {switches} heard nothing for up to {silence} longer", told.silent)
    });
    let notes: String = fell.chain(unproved).chain(silent).map(|note| format!("; {note}")).collect();
    format!("- {}: {}{}\n", escaped(&one.vm), stages.join(", "), escaped(&notes))
}

#[cfg(test)]
mod tests {
    use weft_vm::MoveCounts;

    use super::*;

    /// The rest of their wait passed while the machine was stopped.
    #[test]
    fn hosts_are_silent_for_what_is_left_when_it_runs() {
        let silence = Time::from_millis(1074);
        let told = Some(MoveCounts { silent: 1, silence, ..MoveCounts::default() });
        let silent_after = Some(Time::from_millis(250));
        let migrated = Migrated { told, silent_after, ..Migrated::default() };
        let outcome = Outcome::Done(Box::new(migrated.clone()));
        let one = MigrationRecord {
            vm: "a".to_owned(),
            to: "B".to_owned(),
            at: Time::ZERO,
            ended: None,
            outcome,
            counted: None,
        };
        let text = stages(&one, &migrated);
        assert!(text.contains("hosts at 1 switch heard nothing for up to 0.25 s longer"), "{text}");
    }
}
