//! Several subnet managers on one fabric: random schedules, each of which must end with one master in each piece of the
//! fabric, and the cases that the architecture names (IBA 14.4.1).
//!
//! `WEFT_SCHEDULES` says how many schedules (300 if not said), `WEFT_SEED` replays one and prints its trace on failure.

use std::collections::BTreeMap;
use std::io::Write;

use seeds::number;
use weft_machine::Time;
use weft_sim::{Fault, Process, Schedule, SimOptions, Simulation, StandbyOptions, TraceMode};
use weft_sm::{GuidToLid, SmState};
use weft_topology::generate::{GenerateOptions, xgft};
use weft_topology::{Fabric, PortRef};
use weft_wire::{Lid, PortNum, SmKey};

use crate::support;
use crate::support::seeds;

const SCHEDULES: u64 = 300;

/// How long a fabric may take to come to rest after its last fault.
const PATIENCE: Time = Time::from_secs(300);

/// When the faults of a schedule are over, and what was late has arrived, and lost links are noticed.
const SETTLED: Time = Time::from_millis(4_000 + 1_000 + 500);

/// The pieces that links join, by a switch's port 0 or an HCA's port: an HCA passes nothing on.
fn pieces(simulation: &Simulation) -> BTreeMap<PortRef, PortRef> {
    let live = simulation.live_fabric();
    let place = |end: PortRef| {
        if live.node(end.node).is_switch() { PortRef::new(end.node, PortNum::ZERO) } else { end }
    };
    let ends: Vec<(PortRef, PortRef)> = live.cables().map(|cable| (place(cable.a), place(cable.b))).collect();
    let mut piece: BTreeMap<PortRef, PortRef> = BTreeMap::new();
    for &(a, b) in &ends {
        piece.extend([(a, a), (b, b)]);
    }
    loop {
        let before = piece.clone();
        for (a, b) in &ends {
            let low = piece[a].min(piece[b]);
            piece.extend([(*a, low), (*b, low)]);
        }
        if piece == before {
            return piece;
        }
    }
}

/// The masters of each piece that has managers.
fn masters(simulation: &Simulation) -> BTreeMap<PortRef, Vec<PortRef>> {
    let piece = pieces(simulation);
    let mut masters: BTreeMap<PortRef, Vec<PortRef>> = BTreeMap::new();
    for (port, manager) in simulation.managers() {
        // Who has no link is alone, and no master of anything.
        let is_on_switch = port.port == PortNum::ZERO;
        let Some(&piece) = piece.get(&port).or(is_on_switch.then_some(&port)) else { continue };
        let here = masters.entry(piece).or_default();
        if manager.is_in_charge() {
            here.push(port);
        }
    }
    masters
}

/// After the last fault two masters of one piece may stand beside each other until one looks (a light sweep, put off by
/// sweeps that were not complete), the lower one has handed over, with all attempts, and the higher one has polled; and
/// once more, when the first attempt found a manager that was still looking around.
fn bound(options: &weft_sm::Options) -> Time {
    let look = options.sweeps.sweep_interval_ms * 2 + 1_000;
    let hand_over = options.smps.timeout_ms * u64::from(options.smps.retries + 1);
    let polls = options.election.polling_ms * u64::from(options.election.polling_retries + 2);
    Time::from_millis(2 * (look + hand_over + polls))
}

fn settle(schedule: &Schedule, simulation: &mut Simulation) -> Result<(), String> {
    let patient_until = SETTLED + bound(&schedule.options.sm);
    simulation.run_until(patient_until);
    let one_each = |simulation: &Simulation| -> Result<(), String> {
        if simulation.managers().filter(|(_, manager)| manager.is_in_charge()).count() < 2 {
            return Ok(());
        }
        match masters(simulation).into_iter().find(|(_, masters)| masters.len() > 1) {
            Some((piece, masters)) => Err(format!("at {}: piece {piece:?}: {masters:?}", simulation.now())),
            None => Ok(()),
        }
    };
    for _ in 0..200 {
        one_each(simulation)?;
        simulation.run_until(simulation.now() + Time::from_millis(50));
    }
    simulation.run_until_quiet(PATIENCE).map_err(|error| error.to_string())?;
    one_each(simulation)?;
    if let Some((piece, _)) = masters(simulation).into_iter().find(|(_, masters)| masters.is_empty()) {
        return Err(format!("piece {piece:?} has no master"));
    }
    let all = |violations: Vec<weft_sim::Violation>| {
        violations.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n  ")
    };
    simulation.check().map_err(all)?;
    let afresh = simulation.fresh_snapshot(schedule.seed, PATIENCE);
    let afresh = afresh.map_err(|error| format!("a fresh start: {error}"))?;
    // Tables depend on history; that they hold has been checked.
    if simulation.snapshot().lids != afresh.lids {
        return Err(format!("not a fresh start: {:?}\n  {:?}", simulation.snapshot().lids, afresh.lids));
    }
    simulation.probe().map_err(all).map(|_| ())
}

fn run(seed: u64, trace: TraceMode) -> Result<Simulation, String> {
    let mut schedule = Schedule::with_managers(seed).map_err(|error| error.to_string())?;
    schedule.options.trace = trace;
    let mut simulation = schedule.simulation();
    match settle(&schedule, &mut simulation) {
        Ok(()) => Ok(simulation),
        Err(error) => {
            let faults: Vec<String> =
                schedule.faults.iter().map(|(at, fault)| format!("{at} {fault:?}")).collect();
            let states: Vec<_> = simulation.managers().map(|(port, sm)| (port, sm.managers())).collect();
            Err(format!(
                "seed {seed} (WEFT_SEED={seed} replays it)\n  {error}\n{:?} {:?}\n{}\n{states:?}\n{}",
                schedule.options.sm_port,
                schedule.options.standbys,
                faults.join("\n"),
                simulation.trace().lines()
            ))
        }
    }
}

fn part(part: u64) {
    if let Some(seed) = number("WEFT_SEED") {
        if part == 0 {
            run(seed, TraceMode::Lines).map(drop).unwrap_or_else(|error| panic!("{error}"));
        }
        return;
    }
    let count = number("WEFT_SCHEDULES").unwrap_or(SCHEDULES);
    let (mut failures, mut handovers, mut takeovers, mut three) = (Vec::new(), 0, 0, 0);
    for seed in (0..count).filter(|seed| seed % 4 == part) {
        match run(seed, TraceMode::Off) {
            Err(failure) => failures.push(failure),
            Ok(simulation) => {
                three += u64::from(simulation.options().standbys.len() == 2);
                for (_, manager) in simulation.managers() {
                    let counts = manager.election_counts();
                    handovers += counts.handovers_received;
                    takeovers += counts.takeovers;
                }
            }
        }
    }
    let line = format!("{handovers} handovers, {takeovers} takeovers, {three} with three managers\n");
    std::io::stderr().write_all(line.as_bytes()).expect("what is wrong can be said");
    assert!(failures.is_empty(), "{} of {count}:\n{}", failures.len(), failures.join("\n"));
    if count >= 200 {
        assert!(handovers > 0 && takeovers > 0 && three > 0, "{line}");
    }
}

#[test]
fn schedules_0() {
    part(0);
}

#[test]
fn schedules_1() {
    part(1);
}

#[test]
fn schedules_2() {
    part(2);
}

#[test]
fn schedules_3() {
    part(3);
}

fn tree() -> Fabric {
    xgft(&[2, 3], &[1, 2], &GenerateOptions::default()).expect("a tree")
}

fn host(fabric: &Fabric, number: usize) -> PortRef {
    PortRef::new(fabric.hosts().nth(number).expect("a host").0, PortNum(1))
}

/// The first manager at the first host, and others at the next ones, of these priorities.
fn several(fabric: &Fabric, priorities: &[u8]) -> SimOptions {
    let mut options = SimOptions { sm_port: Some(host(fabric, 0)), ..SimOptions::default() };
    (options.sm.election.polling_ms, options.sm.election.polling_retries) = (500, 2);
    options.sm.sweeps.sweep_interval_ms = 2_000;
    options.sm.election.priority = priorities[0];
    let ports = (1..priorities.len()).map(|number| host(fabric, number));
    options.standbys = ports
        .zip(&priorities[1..])
        .map(|(port, &priority)| StandbyOptions { port, priority, sm_key: None })
        .collect();
    options
}

fn states(simulation: &Simulation) -> Vec<SmState> {
    simulation.managers().map(|(_, sm)| sm.managers()[0].state).collect()
}

fn lids(simulation: &Simulation) -> BTreeMap<PortRef, (Lid, u8)> {
    simulation.snapshot().lids
}

fn quiet(simulation: &mut Simulation) {
    let limit = simulation.now() + PATIENCE;
    simulation.run_until_quiet(limit).unwrap_or_else(|error| panic!("{error}"));
    simulation.check().unwrap_or_else(|violations| panic!("{violations:?}"));
}

const MASTER: SmState = SmState::Master;
const STANDBY: SmState = SmState::Standby;

#[test]
fn of_managers_that_begin_together_the_highest_is_master() {
    let fabric = tree();
    for (priorities, wanted) in [
        (&[0, 0][..], &[MASTER, STANDBY][..]),
        (&[0, 1], &[STANDBY, MASTER]),
        (&[0, 0, 0], &[MASTER, STANDBY, STANDBY]),
        (&[1, 3, 2], &[STANDBY, MASTER, STANDBY]),
        (&[2, 3, 3], &[STANDBY, MASTER, STANDBY]),
    ] {
        let mut simulation = Simulation::new(&fabric, several(&fabric, priorities), 7);
        quiet(&mut simulation);
        assert_eq!(states(&simulation), wanted, "{priorities:?}");
    }
}

#[test]
fn a_standby_takes_over_and_writes_no_table_and_changes_no_lid() {
    let fabric = tree();
    let mut simulation = Simulation::new(&fabric, several(&fabric, &[1, 0, 0]), 7);
    quiet(&mut simulation);
    let (before, writes, changes) =
        (simulation.snapshot(), simulation.lft_writes(), simulation.lid_changes());
    let died = simulation.now();
    simulation.apply(Fault::Kill(Process::Sm));
    // Polling-retries and one polls after the death, the master is taken for dead.
    simulation.run_until(died + Time::from_millis(500 * 3 + 250));
    let looks = simulation.managers().any(|(_, sm)| sm.managers()[0].state != STANDBY);
    assert!(looks, "nobody takes over");
    quiet(&mut simulation);
    assert_eq!(states(&simulation), [MASTER, STANDBY]);
    assert_eq!((simulation.lft_writes(), simulation.lid_changes()), (writes, changes));
    assert_eq!(simulation.snapshot(), before);
    let (_, summary) = simulation.summaries().last().expect("it has swept");
    assert_eq!((summary.smps.set_lft, summary.complete), (0, true));
    // Every host gets the LID of the manager that it is to ask from now on.
    let own = lids(&simulation)[&host(&fabric, 1)].0;
    for number in 0..6 {
        let at = host(&fabric, number);
        let port = simulation.device(at.node).and_then(|device| device.port_snapshot(at.port));
        assert_eq!(port.map(|port| port.master_sm_lid), Some(own));
    }
    // The first one comes back, is the higher one, and is handed over to.
    simulation.apply(Fault::Restart(Process::Sm));
    quiet(&mut simulation);
    assert_eq!(states(&simulation), [MASTER, STANDBY, STANDBY]);
    assert_eq!((simulation.lft_writes(), simulation.lid_changes()), (writes, changes));
}

/// Whoever was master and wakes among others ranks above the one that took over, and has the subnet back.
#[test]
fn a_frozen_master_is_replaced_and_one_is_left_when_it_goes_on() {
    let fabric = tree();
    let cable =
        fabric.cables().find(|cable| [cable.a, cable.b].iter().all(|end| fabric.node(end.node).is_switch()));
    let cable = cable.expect("a cable between switches").a;
    for (priorities, master) in [([1, 0], 0), ([0, 0], 0), ([0, 1], 1)] {
        let mut simulation = Simulation::new(&fabric, several(&fabric, &priorities), 7);
        quiet(&mut simulation);
        let process = if master == 0 { Process::Sm } else { Process::Standby(0) };
        simulation.apply(Fault::Freeze(process));
        // It does not see what happens meanwhile.
        simulation.apply(Fault::LinkDown(cable));
        quiet(&mut simulation);
        assert_eq!(states(&simulation), [MASTER], "{priorities:?}: the other one alone answers");
        simulation.apply(Fault::Thaw(process));
        quiet(&mut simulation);
        let wanted = if master == 0 { [MASTER, STANDBY] } else { [STANDBY, MASTER] };
        assert_eq!(states(&simulation), wanted, "{priorities:?}");
        simulation.apply(Fault::LinkUp(cable));
        quiet(&mut simulation);
        simulation.probe().unwrap_or_else(|violations| panic!("{violations:?}"));
    }
}

#[test]
fn a_frozen_master_that_goes_on_yields_to_a_higher_one() {
    let fabric = tree();
    let mut simulation = Simulation::new(&fabric, several(&fabric, &[2, 0, 3]), 7);
    simulation.apply(Fault::Kill(Process::Standby(1)));
    quiet(&mut simulation);
    assert_eq!(states(&simulation), [MASTER, STANDBY]);
    simulation.apply(Fault::Freeze(Process::Sm));
    quiet(&mut simulation);
    assert_eq!(states(&simulation), [MASTER]);
    simulation.apply(Fault::Restart(Process::Standby(1)));
    quiet(&mut simulation);
    assert_eq!(states(&simulation), [STANDBY, MASTER]);
    simulation.apply(Fault::Thaw(Process::Sm));
    quiet(&mut simulation);
    assert_eq!(states(&simulation), [STANDBY, STANDBY, MASTER]);
    // Restarted while it is frozen: nothing of before is left.
    simulation.apply(Fault::Freeze(Process::Sm));
    simulation.apply(Fault::Restart(Process::Sm));
    quiet(&mut simulation);
    assert_eq!(states(&simulation), [STANDBY, STANDBY, MASTER]);
}

#[test]
fn no_packet_is_lost_when_a_standby_takes_over() {
    let fabric = tree();
    let mut options = several(&fabric, &[1, 0]);
    (options.device.data.shaped, options.device.data.dilation) = (true, 1000);
    let mut simulation = Simulation::new(&fabric, options, 7);
    quiet(&mut simulation);
    let (load, arrived) = support::Saturate::new(support::uniform(&simulation), 1);
    load.start(&mut simulation);
    let count = || arrived.borrow().values().map(|flow| flow.packets).sum::<u64>();
    for fault in [Fault::Kill(Process::Sm), Fault::Restart(Process::Sm)] {
        let before = count();
        simulation.set_guid2lid(GuidToLid::default());
        simulation.apply(fault);
        simulation.run_until(simulation.now() + Time::from_secs(6));
        assert!(count() > before + 1000, "traffic goes on: {}", count() - before);
    }
    assert_eq!(states(&simulation), [MASTER, STANDBY]);
    let total = simulation.check_traffic().expect("all is accounted for").total;
    assert_eq!((total.dropped, total.lost, total.cut_off), (0, 0, 0), "{total:?}");
    assert_eq!(arrived.borrow().values().map(|flow| flow.disorder).sum::<u64>(), 0);
}

#[test]
fn a_node_found_by_another_master_keeps_its_lid() {
    let fabric = tree();
    let mut simulation = Simulation::new(&fabric, several(&fabric, &[1, 0]), 7);
    let (a, b) = (host(&fabric, 4), host(&fabric, 5));
    simulation.apply(Fault::Kill(Process::Agent(b.node)));
    quiet(&mut simulation);
    simulation.apply(Fault::Kill(Process::Sm));
    simulation.apply(Fault::Kill(Process::Agent(a.node)));
    quiet(&mut simulation);
    simulation.apply(Fault::Restart(Process::Agent(b.node)));
    quiet(&mut simulation);
    let given = lids(&simulation)[&b];
    simulation.apply(Fault::Restart(Process::Sm));
    quiet(&mut simulation);
    assert_eq!(states(&simulation), [MASTER, STANDBY]);
    assert_eq!(lids(&simulation)[&b], given);
}

/// Two leaves with a switch between, cut into two halves with a manager each.
#[test]
fn merged_halves_have_one_master_and_renumber_only_twins() {
    let fabric = xgft(&[2, 2], &[1, 1], &GenerateOptions::default()).expect("a tree");
    let spine = fabric.switches().last().expect("a switch").0;
    let cut = fabric.node(spine).cabled_ports().next().map(|(port, _)| PortRef::new(spine, port));
    let cut = cut.expect("a cable");
    for priorities in [[0, 1], [1, 0], [0, 0]] {
        let mut options = several(&fabric, &priorities);
        options.standbys[0].port = host(&fabric, 3);
        let mut simulation = Simulation::new(&fabric, options, 7);
        simulation.apply(Fault::LinkDown(cut));
        quiet(&mut simulation);
        assert_eq!(states(&simulation), [MASTER, MASTER]);
        let before: BTreeMap<PortRef, Lid> = fabric
            .hosts()
            .map(|(node, _)| PortRef::new(node, PortNum(1)))
            .map(|at| (at, simulation.device(at.node).unwrap().port_snapshot(at.port).unwrap().lid))
            .collect();
        simulation.apply(Fault::LinkUp(cut));
        quiet(&mut simulation);
        let wanted = if priorities[1] > priorities[0] { [STANDBY, MASTER] } else { [MASTER, STANDBY] };
        assert_eq!(states(&simulation), wanted, "{priorities:?}");
        let winner = simulation.sm_port();
        let after = lids(&simulation);
        let side = |at: PortRef| fabric.peer(at).map(|peer| peer.node);
        for (at, lid) in &before {
            let twin = before.iter().any(|(other, there)| other != at && there == lid);
            let of_winner = side(*at) == side(winner);
            if of_winner || !twin {
                assert_eq!(after[at].0, *lid, "{priorities:?}: {at:?} needs no other LID");
            }
        }
    }
}

#[test]
fn no_mastership_goes_to_a_manager_that_shows_another_key() {
    let fabric = tree();
    let mut options = SimOptions { with_sm: false, ..several(&fabric, &[0, 3]) };
    options.standbys[0].sm_key = Some(SmKey(7));
    let mut simulation = Simulation::new(&fabric, options, 7);
    simulation.set_guid2lid(GuidToLid::default());
    simulation.apply(Fault::Restart(Process::Sm));
    quiet(&mut simulation);
    simulation.apply(Fault::Restart(Process::Standby(0)));
    quiet(&mut simulation);
    // It finds a master and leaves the subnet to it; the master tells it nothing.
    assert_eq!(states(&simulation), [MASTER, STANDBY]);
    for (_, sm) in simulation.managers() {
        let counts = sm.election_counts();
        assert_eq!((counts.handovers_sent, counts.key_mismatches), (0, 0), "{counts:?}");
        let trusted: Vec<bool> = sm.managers().iter().map(|manager| manager.is_trusted).collect();
        assert_eq!(trusted, [true, false]);
    }
    simulation.apply(Fault::Kill(Process::Sm));
    quiet(&mut simulation);
    assert_eq!(states(&simulation), [MASTER]);
}
