//! Random schedules of virtual machines in whole fabrics in virtual time: the subnet manager, the VM manager, devices and vSwitches are
//! those that processes have. Machines are created, moved and destroyed while agents, the subnet manager and the VM manager die, cables are
//! cut, and packets of management are lost and late.
//!
//! Always: a machine runs in one slot at most, and no GUID is plugged in twice. When every fault has ended: each machine runs in exactly one
//! slot, or is lost with its host's death as proof; LIDs are unique; all rows verify, and those of physical LIDs are a fresh start's; a new
//! subnet manager writes no row; and moves write what they say, on the switches that they say.
//!
//! `WEFT_SCHEDULES` says how many (60 if not said; `cargo xtask long` runs 1000), `WEFT_SEED` replays one and prints its trace on failure.

#![allow(clippy::unwrap_used, reason = "in a test a panic is the report")]

#[path = "vm_schedules/judge.rs"]
mod judge;
#[path = "vm_schedules/schedule.rs"]
mod schedule;
#[path = "support/seeds.rs"]
mod seeds;

use schedule::{Schedule, Totals};
use seeds::run_part;
use weft_sim::TraceMode;

const SCHEDULES: u64 = 60;

/// The seeds of each part that are run twice, with a trace.
const TWICE: u64 = 1;

/// How many seeds a part has at least for everything to happen in one of them.
const ALL_KINDS: u64 = 50;

/// What is wrong, if anything is; else what happened, and a hash of the trace.
fn run(seed: u64, trace: TraceMode) -> Result<(Totals, u64), String> {
    let mut schedule = Schedule::new(seed, trace);
    let played = schedule.play().and_then(|()| schedule.rest()).and_then(|()| schedule.moves_alone());
    match played {
        Ok(()) => Ok((schedule.totals, schedule.simulation.trace().hash())),
        Err(wrong) => Err(schedule.report(seed, &wrong)),
    }
}

/// The seeds of one of four parts, so that they run beside each other.
fn part(part: u64) {
    let Some((totals, seeds)) = run_part(part, (SCHEDULES, TWICE), run, Totals::add) else { return };
    if seeds >= ALL_KINDS {
        assert!(totals.each().into_iter().all(|total| total > 0), "something never happened: {totals:?}");
    }
}

seeds::four_parts!(part);
