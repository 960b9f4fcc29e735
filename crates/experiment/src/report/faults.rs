//! The faults of a variant's runs, and what they cost.

use weft_machine::Time;

use super::table::Table;
use crate::RunResult;
use crate::number::number;

/// The text for an unknown value.
const UNKNOWN: &str = "not known";

/// A row for each fault of each run.
pub(super) fn section<'a>(runs: impl Iterator<Item = &'a RunResult>) -> String {
    let heads =
        ["seed", "at", "fault", "lasted", "detected after", "rerouted after", "restored after", "pairs lost"];
    let (mut table, mut count) = (Table::new(&heads), 0);
    for run in runs {
        for times in &run.faults {
            count += 1;
            let lasted = times.lasted_ns.map_or_else(|| "to the end".to_owned(), seconds);
            let known = |nanos: Option<u64>| nanos.map_or_else(|| UNKNOWN.to_owned(), seconds);
            table.row(&[
                run.run.seed.to_string(),
                seconds(times.began_ns),
                times.fault.clone(),
                lasted,
                known(times.detected_after_ns),
                known(times.rerouted_after_ns),
                known(times.restored_after_ns),
                times.pairs_lost.map_or_else(|| UNKNOWN.to_owned(), |pairs| pairs.to_string()),
            ]);
        }
    }
    if count == 0 { String::new() } else { format!("### Faults\n\n{}", table.finish()) }
}

/// Nanoseconds in seconds.
fn seconds(nanos: u64) -> String {
    number(Time::from_nanos(nanos).as_secs_f64(), "s")
}
