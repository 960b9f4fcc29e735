//! Weights that are learned while traffic runs: two hosts that share a cable get one each, and its measured load is halved.

use std::collections::BTreeMap;

use connections::{guid, host};
use weft_host::traffic::{Command, Destination, FlowId, FlowSpec, MoveBy, PathSource, Transport, Work};
use weft_machine::Time;
use weft_pm::{End, Event};
use weft_sim::{Fault, Process, SimOptions, Simulation, StandbyOptions};
use weft_topology::PortRef;
use weft_topology::generate::{GenerateOptions, xgft};
use weft_wire::{Guid, PortNum, SmKey, sa_status};

use crate::support::connections;

const LIMIT: Time = Time::from_secs(100);
/// Body of each flow, per second.
const PACE: u64 = 2_000_000;
/// What management adds to a cable and the last message of a flow make of its load at most: 16 sweeps' MADs of 290 bytes each
/// are less than a hundredth of what a flow brings in a sweep, as is a message.
const BESIDE: f64 = 0.03;

fn options() -> SimOptions {
    let mut options = SimOptions { hosts: true, with_pm: true, ..SimOptions::default() };
    options.sm.routing.chain = "pftree-wt".parse().unwrap();
    options.sm.routing.learn_weights = true;
    options.pm.learn_weights = 8;
    options.pm_start = Time::from_secs(1);
    options
}

fn simulation(options: SimOptions) -> Simulation {
    let fabric = xgft(&[4, 2], &[1, 2], &GenerateOptions::default()).unwrap();
    let mut simulation = Simulation::new(&fabric, options, 1);
    simulation.run_until_quiet(LIMIT).unwrap();
    simulation
}

fn run_until(simulation: &mut Simulation, what: &str, holds: impl Fn(&Simulation) -> bool) {
    let limit = simulation.now() + LIMIT;
    while !holds(simulation) {
        assert!(simulation.now() < limit, "{what}");
        let next = simulation.now() + Time::from_millis(50);
        simulation.run_until(next);
    }
}

fn sweeps(simulation: &Simulation) -> u64 {
    simulation.pm().unwrap().statistics().sweeps
}

fn reports(simulation: &Simulation) -> usize {
    simulation.pm_events().iter().filter(|(_, event)| *event == Event::ReceivedReported).count()
}

/// What each port of a switch towards another has sent, as the performance manager has read it.
fn sent(simulation: &Simulation) -> BTreeMap<(Guid, PortNum), u64> {
    let snapshot = simulation.pm().unwrap().snapshot(simulation.now());
    let switches: Vec<Guid> = simulation.fabric().switches().map(|(_, node)| node.guid).collect();
    let is_switch = |end: &End| switches.contains(&end.node_guid.0);
    let between = snapshot
        .ports
        .iter()
        .filter(|port| is_switch(&port.end) && port.peer.as_ref().is_some_and(is_switch));
    between.map(|port| ((port.end.node_guid.0, port.end.port), port.totals.port_xmit_data)).collect()
}

/// The words on the busiest cable between switches in two sweeps.
fn busiest(simulation: &mut Simulation) -> u64 {
    let begin = sweeps(simulation) + 1;
    run_until(simulation, "a sweep", |simulation| sweeps(simulation) >= begin);
    let before = sent(simulation);
    run_until(simulation, "two sweeps", |simulation| sweeps(simulation) >= begin + 2);
    sent(simulation).iter().map(|(port, words)| words - before[port]).max().unwrap()
}

/// The cable up by which the leaf of `from` sends to `to`.
fn row(simulation: &Simulation, from: PortRef, to: PortRef) -> PortNum {
    let leaf = simulation.fabric().peer(from).unwrap().node;
    let snapshot = simulation.pm().unwrap().snapshot(simulation.now());
    let lid =
        snapshot.ports.iter().find(|port| port.end.port_guid.0 == guid(simulation, to)).unwrap().end.lid;
    simulation.device(leaf).unwrap().forwarding_table()[usize::from(lid.0)]
}

fn flow(simulation: &mut Simulation, number: u32, from: PortRef, to: PortRef) {
    let (flow, transport) = (FlowId(number), Transport::ReliableConnection);
    let (from_guid, to_guid) = (guid(simulation, from), guid(simulation, to));
    let expect =
        Command::Expect { flow, from: Some(from_guid), transport, work: Work::Stream, message_bytes: 16_384 };
    let open = Command::Open(FlowSpec {
        flow,
        to: Destination::One(to_guid),
        transport,
        work: Work::Stream,
        message_bytes: 16_384,
        packet_bytes: 2048,
        bytes_per_second: Some(PACE),
        bytes_max: None,
        paths: PathSource::PathRecord,
        move_by: MoveBy::Drain,
    });
    assert!(simulation.command(to, expect) && simulation.command(from, open));
}

/// The hosts of the second leaf, and two of the first that one cable leads to.
fn sharing(simulation: &Simulation) -> (Vec<PortRef>, [PortRef; 2]) {
    let hosts: Vec<PortRef> = (0..8).map(|number| host(simulation, number)).collect();
    let (near, far) = hosts.split_at(4);
    let share = |a: PortRef, b: PortRef| row(simulation, far[0], a) == row(simulation, far[0], b);
    let mut pairs = near.iter().flat_map(|a| near.iter().map(move |b| (*a, *b)));
    let (a, b) = pairs.find(|(a, b)| a < b && share(*a, *b)).unwrap();
    (far.to_vec(), [a, b])
}

#[test]
fn the_busiest_cable_carries_half_once_weights_are_learned() {
    let mut simulation = simulation(options());
    // Right after a report there are eight sweeps until the next one.
    let begin = reports(&simulation) + 1;
    run_until(&mut simulation, "a report of management alone", |simulation| reports(simulation) == begin);
    let settled = simulation.now() + Time::from_secs(1);
    simulation.run_until(settled);
    let (far, [a, b]) = sharing(&simulation);
    flow(&mut simulation, 1, far[0], a);
    flow(&mut simulation, 2, far[1], b);
    let before = busiest(&mut simulation);
    assert_eq!(reports(&simulation), begin, "nothing was learned meanwhile");
    let taken = simulation.sm().unwrap().progress().learning.taken;
    run_until(&mut simulation, "weights are taken", |simulation| {
        simulation.sm().unwrap().progress().learning.taken > taken
    });
    let settled = simulation.now() + Time::from_secs(1);
    simulation.run_until(settled);
    assert_ne!(row(&simulation, far[0], a), row(&simulation, far[0], b));
    let after = busiest(&mut simulation);
    // Two flows of one pace on a cable, then one.
    let share = after as f64 / before as f64;
    assert!((share - 0.5).abs() < BESIDE, "{after} words of {before}");
    simulation.check_traffic().unwrap();
}

/// Whether two hosts still have a cable each after the manager has gone, another has begun, and all rows are computed as at a fresh start.
/// What was received before decides: the report is repeated long before the next one is due.
fn keeps_them_apart(standby: bool, with_pm: bool) -> bool {
    let mut options = SimOptions { pm_start: Time::from_secs(1), ..options() };
    options.pm.learn_weights = 20;
    (options.sm.election.polling_ms, options.sm.election.polling_retries) = (500, 1);
    let fabric = xgft(&[4, 2], &[1, 2], &GenerateOptions::default()).unwrap();
    let port = PortRef::new(fabric.hosts().nth(1).unwrap().0, PortNum(1));
    options.sm.election.priority = 1;
    options.standbys =
        standby.then_some(StandbyOptions { port, priority: 0, sm_key: None }).into_iter().collect();
    let mut simulation = simulation(options);
    let (far, [a, b]) = sharing(&simulation);
    flow(&mut simulation, 1, far[0], a);
    flow(&mut simulation, 2, far[1], b);
    run_until(&mut simulation, "weights are taken", |simulation| {
        row(simulation, far[0], a) != row(simulation, far[0], b)
    });
    let settled = simulation.now() + Time::from_secs(1);
    simulation.run_until(settled);
    if !with_pm {
        simulation.apply(Fault::Kill(Process::Pm));
    }
    let (reported, swept) = (reports(&simulation), if with_pm { sweeps(&simulation) } else { 0 });
    simulation.apply(Fault::Kill(Process::Sm));
    if !standby {
        simulation.apply(Fault::Restart(Process::Sm));
    }
    if with_pm {
        run_until(&mut simulation, "the report comes again", |simulation| reports(simulation) > reported);
        assert!(sweeps(&simulation) < swept + 15, "the next one is not due yet");
    }
    let settled = simulation.now() + Time::from_secs(20);
    simulation.run_until(settled);
    assert!(simulation.master().is_some_and(|master| (master == Process::Standby(0)) == standby));
    assert_ne!(row(&simulation, far[0], a), row(&simulation, far[0], b), "tables that hold stay");
    simulation.order_sweep();
    let settled = simulation.now() + Time::from_secs(5);
    simulation.run_until(settled);
    row(&simulation, far[0], a) != row(&simulation, far[0], b)
}

#[test]
fn a_manager_that_takes_over_goes_on_with_them() {
    assert!(keeps_them_apart(true, true));
}

/// A manager that wants a key for repath requests takes reports with it, and refuses those without it in words.
#[test]
fn reports_need_the_key_where_repaths_do() {
    for shown in [SmKey(0x5a), SmKey(0)] {
        let mut options = options();
        options.sm.sa.repath_needs_key = true;
        options.sm.keys.sa_key = SmKey(0x5a);
        options.pm.sa_key = shown;
        let mut simulation = simulation(options);
        let refused = Event::ReceivedNotReported { status: Some(sa_status::REQ_DENIED) };
        let is_over = |simulation: &Simulation| {
            let mut events = simulation.pm_events().iter();
            events.any(|(_, event)| *event == Event::ReceivedReported || *event == refused)
        };
        run_until(&mut simulation, "an answer to a report", is_over);
        assert_eq!(reports(&simulation) > 0, shown != SmKey(0));
        let learning = simulation.sm().unwrap().sa_counts();
        assert_eq!(learning.received_refused > 0, shown == SmKey(0));
    }
}
