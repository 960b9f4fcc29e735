//! Random schedules of virtual machines in whole fabrics in virtual time: the subnet manager, the VM manager, devices and vSwitches are
//! those that processes have. Machines are created, moved and destroyed while agents, the subnet manager and the VM manager die, cables are
//! cut, and packets of management are lost and late. Moves are asked for by every method and in every order, with a proof or without;
//! vSwitches have LIDs of their own or those of their hosts. Some subnet managers rebalance, and die between two writes of that.
//!
//! Always: a machine runs in one slot at most, and keeps its LID, and no GUID is plugged in twice. When every fault has ended: each machine runs in exactly one
//! slot, or is lost with its host's death as proof; LIDs are unique; all rows verify, and equal the subnet manager's log of cablings and moves
//! replayed; those of physical LIDs are a fresh start's; a new subnet manager writes no row; moves write what they say, on the switches that they say;
//! and where the subnet manager rebalances, the busiest link carries no more than the operator allows.
//!
//! `WEFT_SCHEDULES` says how many (200 if not said; `cargo xtask long` runs 1000), `WEFT_SEED` replays one and prints its trace on failure.

mod balance;
mod disks;
mod judge;
mod options;
mod outcome;
use crate::support::replay;
mod schedule;
use crate::support::counts::Counts;
use crate::support::seeds;
use crate::support::workload::{Workload, carry_out};
mod takeovers;
mod totals;

use schedule::Machines;
use seeds::run_part;
use weft_machine::Time;
use weft_routing::ForwardingTable;
use weft_sim::{Fault, Process, TraceMode};
use weft_sm::Past;
use weft_wire::{Lid, PortNum};

const SCHEDULES: u64 = 200;

/// The seeds of each part that are run twice, with a trace.
const TWICE: u64 = 1;

/// How often a machine is asked to move until one does.
const MOVES_MAX: u32 = 50;

/// How many seeds a part has at least for everything to happen in one of them.
const ALL_KINDS: u64 = 50;

/// What is wrong, if anything is; else what happened, and a hash of the trace.
fn run(seed: u64, trace: TraceMode) -> Result<(Counts, u64), String> {
    let (mut simulation, mut machines) = Machines::new(seed, trace);
    match carry_out(&mut simulation, &mut [&mut machines]) {
        Ok(counts) => Ok((counts, simulation.trace().hash())),
        Err(wrong) => Err(machines.on(&mut simulation).report(seed, &wrong)),
    }
}

/// The seeds of one of four parts, so that they run beside each other.
fn part(part: u64) {
    let Some((counts, seeds)) = run_part(part, (SCHEDULES, TWICE), run, Counts::sum) else { return };
    if seeds >= ALL_KINDS {
        counts.all_happened();
    }
}

/// The replay tells where a move was made that the log does not have, and where a row is another one.
#[test]
fn rows_that_the_log_does_not_have_are_found() {
    let (mut simulation, mut machines) = Machines::new(1, TraceMode::Off);
    machines.set_up(&mut simulation).unwrap();
    let mut schedule = machines.on(&mut simulation);
    let moved = schedule.play().and_then(|()| schedule.rest()).and_then(|()| {
        for _ in 0..MOVES_MAX {
            if schedule.move_one()?.is_some_and(|counts| counts.switches > 0) {
                return Ok(true);
            }
        }
        Ok(false)
    });
    assert_eq!(moved, Ok(true), "{}", schedule.report(1, "no machine moves"));
    let tables = schedule.simulation.snapshot().tables;
    assert!(schedule.compared(&tables).is_err(), "a move that was not replayed yet");
    let log = schedule.simulation.take_history();
    assert_eq!(schedule.go_on(log), Ok(()));
    let rows = schedule.compared(&tables);
    assert!(matches!(rows, Ok(1..)), "{rows:?}");
    for node in tables.keys() {
        let mut tables = tables.clone();
        let table = tables.get_mut(node).unwrap();
        let other = PortNum(table.port(table.top()).0.wrapping_add(1));
        table.set(table.top(), other);
        assert!(schedule.compared(&tables).is_err(), "another row at {node:?}");
    }
}

/// A row that a new manager finds is one that the log had for its switch; one of a LID that the log has not had yet is none.
#[test]
fn rows_found_that_were_never_written_are_known() {
    let (mut simulation, mut machines) = Machines::new(1, TraceMode::Off);
    machines.set_up(&mut simulation).unwrap();
    let mut schedule = machines.on(&mut simulation);
    let rests = schedule.play().and_then(|()| schedule.rest());
    assert_eq!(rests, Ok(()));
    for fault in [Fault::Kill(Process::Sm), Fault::Restart(Process::Sm)] {
        schedule.simulation.apply(fault);
    }
    let limit = schedule.simulation.now() + Time::from_secs(60);
    schedule.simulation.run_until_quiet(limit).unwrap();
    let log = schedule.simulation.take_history();
    let Some(Past::Routed(found)) = log.first() else { panic!("it begins with what it has found: {log:?}") };
    let (routes, _) = found.standing.as_ref().unwrap();
    let (switch, table) =
        found.fabric.switches().map(|(node, _)| (node, routes.table(node).unwrap())).next().unwrap();
    let new = Lid(routes.tables.iter().map(ForwardingTable::top).max().unwrap().0 + 1);
    let machine = found.lids.iter().map(|lids| lids.base).max().unwrap();
    for (lid, port) in [(new, PortNum(1)), (machine, PortNum(table.port(machine).0.wrapping_add(100)))] {
        let mut other = found.clone();
        other.resting.insert(lid);
        other.standing.as_mut().unwrap().0.tables[switch.index()].set(lid, port);
        let replayed = schedule.go_on(vec![Past::Routed(other)]);
        let wrong = replayed.unwrap_err();
        assert!(wrong.contains(&format!("finds port {port} for LID {lid}")), "{wrong}");
    }
    assert_eq!(schedule.go_on(log), Ok(()));
}

seeds::four_parts!(part);
