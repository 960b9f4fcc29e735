//! Weights that are learned while traffic runs: two hosts that share a cable get one each, and its measured load is halved.

use std::collections::BTreeMap;

use connections::{guid, host};
use weft_host::traffic::{Command, Destination, FlowId, FlowSpec, MoveBy, PathSource, Transport, Work};
use weft_machine::Time;
use weft_pm::{End, Event};
use weft_sim::{SimOptions, Simulation};
use weft_topology::PortRef;
use weft_topology::generate::{GenerateOptions, xgft};
use weft_wire::{Guid, PortNum};

use crate::support::connections;

const LIMIT: Time = Time::from_secs(100);
/// Body of each flow, per second.
const PACE: u64 = 2_000_000;
/// What management adds to a cable and the last message of a flow make of its load at most: 16 sweeps' MADs of 290 bytes each
/// are less than a hundredth of what a flow brings in a sweep, as is a message.
const BESIDE: f64 = 0.03;

fn simulation() -> Simulation {
    let mut options = SimOptions { hosts: true, with_pm: true, ..SimOptions::default() };
    options.sm.routing.chain = "pftree-wt".parse().unwrap();
    options.sm.routing.learn_weights = true;
    options.pm.learn_weights = 8;
    options.pm_start = Time::from_secs(1);
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

#[test]
fn the_busiest_cable_carries_half_once_weights_are_learned() {
    let mut simulation = simulation();
    // Right after a report there are eight sweeps until the next one.
    let begin = reports(&simulation) + 1;
    run_until(&mut simulation, "a report of management alone", |simulation| reports(simulation) == begin);
    let settled = simulation.now() + Time::from_secs(1);
    simulation.run_until(settled);
    let hosts: Vec<PortRef> = (0..8).map(|number| host(&simulation, number)).collect();
    let (far, near) = (&hosts[4..], &hosts[..4]);
    let share = |a: &PortRef, b: &PortRef| row(&simulation, far[0], *a) == row(&simulation, far[0], *b);
    let pairs = near.iter().flat_map(|a| near.iter().map(move |b| (a, b)));
    let (a, b) = pairs.into_iter().find(|(a, b)| a < b && share(a, b)).unwrap();
    flow(&mut simulation, 1, far[0], *a);
    flow(&mut simulation, 2, far[1], *b);
    let before = busiest(&mut simulation);
    assert_eq!(reports(&simulation), begin, "nothing was learned meanwhile");
    let taken = simulation.sm().unwrap().progress().learning.taken;
    run_until(&mut simulation, "weights are taken", |simulation| {
        simulation.sm().unwrap().progress().learning.taken > taken
    });
    let settled = simulation.now() + Time::from_secs(1);
    simulation.run_until(settled);
    assert_ne!(row(&simulation, far[0], *a), row(&simulation, far[0], *b));
    let after = busiest(&mut simulation);
    // Two flows of one pace on a cable, then one.
    let share = after as f64 / before as f64;
    assert!((share - 0.5).abs() < BESIDE, "{after} words of {before}");
    simulation.check_traffic().unwrap();
}
