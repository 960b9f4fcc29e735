//! The same with a disk that tears and loses what the VM manager has not synced when it dies, and that is full at times.

use weft_machine::Time;
use weft_sim::{DiskCounts, DiskOptions, Simulation, TraceMode};

use super::schedule::Machines;
use super::seeds::{self, run_part};
use crate::support::counts::Counts;
use crate::support::workload::{Workload, carry_out};

const SCHEDULES: u64 = 60;
const TWICE: u64 = 1;

/// How many seeds a part has at least for everything to happen in one of them, and for writes to be torn and syncs to fail.
const ALL_KINDS: u64 = 50;
const SOME_KINDS: u64 = 15;

/// Half of the deaths of the manager tear what was not synced, and three syncs of a hundred fail.
const DISK: DiskOptions = DiskOptions { torn_per_mille: 500, full_per_mille: 30 };
/// How long a sync takes: more than it takes to see the step that it is of.
const SYNC: Time = Time::from_millis(10);

/// A disk that fails once the fabric is up.
struct Disk;

impl Workload for Disk {
    fn start(&mut self, simulation: &mut Simulation) -> Result<(), String> {
        simulation.set_disk(DISK);
        Ok(())
    }

    fn check(&mut self, simulation: &mut Simulation, counts: &mut Counts) -> Result<(), String> {
        let DiskCounts { kept, torn, missing, full } = simulation.disk_counts();
        let names = ["writes kept", "writes torn", "writes missing", "syncs failed"];
        names.into_iter().zip([kept, torn, missing, full]).for_each(|(name, count)| counts.add(name, count));
        Ok(())
    }
}

fn run(seed: u64, trace: TraceMode) -> Result<(Counts, u64), String> {
    let (mut simulation, mut machines) =
        Machines::with(seed, trace, |options, _| options.journal_sync = SYNC);
    match carry_out(&mut simulation, &mut [&mut Disk, &mut machines]) {
        Ok(all) => {
            let names = [
                "created",
                "moved",
                "VM managers killed",
                "writes kept",
                "writes torn",
                "writes missing",
                "syncs failed",
            ];
            Ok((Counts::from(names.map(|name| (name, all.get(name)))), simulation.trace().hash()))
        }
        Err(wrong) => Err(machines.on(&mut simulation).report(seed, &wrong)),
    }
}

fn part(part: u64) {
    let Some((counts, seeds)) = run_part(part, (SCHEDULES, TWICE), run, Counts::sum) else { return };
    if seeds >= ALL_KINDS {
        counts.all_happened();
    }
    if seeds >= SOME_KINDS {
        assert!(counts.get("writes torn") > 0 && counts.get("syncs failed") > 0, "{counts:?}");
    }
}

seeds::four_parts!(part);
