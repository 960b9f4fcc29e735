//! All of it together in virtual time: hosts with reliable connections, a subnet manager, a performance manager that
//! finds the hot spot by its counters and has the guilty flows moved.

use connections::{flow, host};
use weft_host::traffic::{Command, FlowId, FlowReport};
use weft_machine::Time;
use weft_pm::Event;
use weft_sim::{Fault, Process, SimOptions, Simulation, TraceMode};
use weft_topology::{Fabric, parse};
use weft_wire::{Mtu, ServiceLevel, VlCap};

use crate::support::connections;

const DILATION: u32 = 1000;
const LIMIT: Time = Time::from_secs(100);

fn options() -> SimOptions {
    let mut options = SimOptions { hosts: true, with_pm: true, ..SimOptions::default() };
    options.device.data.shaped = true;
    options.device.data.dilation = DILATION;
    options.device.data.host_limit_mbps = 12_900;
    options.device.vl_cap = VlCap::Vl0To3;
    options.sm.lanes.mtu_max = Mtu::Bytes2048;
    options.sm.routing.chain = "ftree".parse().unwrap();
    options.sm.lanes.management_lane = true;
    options.host.dilation = DILATION;
    options.pm.dilation = DILATION;
    options.pm.threshold = 24_200_000;
    options.pm.further_threshold = 43_560_000;
    options.pm_start = Time::from_secs(1);
    options
}

fn fabric() -> Fabric {
    parse("dftree-1", include_str!("../../../../topologies/dftree-1.topo")).unwrap()
}

fn reports(simulation: &Simulation, number: u32) -> Vec<FlowReport> {
    simulation.host_reports(host(simulation, number).node)
}

/// What a flow has delivered so far, in bytes of body; in order and once, or the test fails here.
fn delivered(simulation: &Simulation, to: u32, flow: FlowId) -> u64 {
    let reports = reports(simulation, to);
    let report = reports.iter().find(|report| report.flow == flow && !report.sender).unwrap();
    assert_eq!((report.disorder, &report.error), (0, &None), "{report:?}");
    report.bytes
}

fn run_for(simulation: &mut Simulation, span: Time) {
    let until = simulation.now() + span;
    simulation.run_until(until);
    simulation.check_traffic().unwrap();
}

/// Gb/s of body over a few seconds.
fn rate(simulation: &mut Simulation, to: u32, flow: FlowId) -> f64 {
    let (before, from) = (delivered(simulation, to, flow), simulation.now());
    run_for(simulation, Time::from_secs(4));
    let bytes = delivered(simulation, to, flow) - before;
    let span = simulation.now() - from;
    bytes as f64 * 8.0 * f64::from(DILATION) / span.as_nanos() as f64
}

/// Experiment I: 2-3 runs alone, then three flows make a hot spot of 5. What the victim gets before, during (no one
/// moves anything) and after; and the simulation.
fn experiment_1(repath: bool, trace: TraceMode) -> ([f64; 3], Simulation) {
    let mut options = options();
    options.trace = trace;
    options.pm.repath = repath;
    let mut simulation = Simulation::new(&fabric(), options, 1);
    simulation.run_until_quiet(LIMIT).unwrap();
    run_for(&mut simulation, Time::from_secs(3));
    let victim = flow(&mut simulation, 2, 3);
    run_for(&mut simulation, Time::from_secs(1));
    let before = rate(&mut simulation, 3, victim);
    let guilty = [(1, 5), (3, 5), (6, 5)].map(|(from, to)| flow(&mut simulation, from, to));
    run_for(&mut simulation, Time::from_secs(12));
    let with = rate(&mut simulation, 3, victim);
    for &flow in &guilty {
        simulation.command(host(&simulation, flow.0 / 100), Command::Stop { flow });
    }
    run_for(&mut simulation, Time::from_secs(10));
    let after = rate(&mut simulation, 3, victim);
    ([before, with, after], simulation)
}

/// What a reliable connection carries of 12.9 Gb/s of packets, 26 of 2074 bytes being headers and checks.
const ALONE: f64 = 12.9 * 2048.0 / 2074.0;

#[test]
fn the_victim_recovers_when_the_manager_moves_the_guilty() {
    let ([before, with, after], simulation) = experiment_1(true, TraceMode::Off);
    assert!((before / ALONE - 1.0).abs() < 0.02, "{before}");
    assert!(with > 0.9 * 12.8 * 2048.0 / 2074.0, "0.9 of what its lane can give: {with}");
    assert!((after / ALONE - 1.0).abs() < 0.02, "{after}");
    let told = |wanted: fn(&Event) -> bool| simulation.pm_events().iter().any(|(_, event)| wanted(event));
    assert!(told(|event| matches!(event, Event::HotSpot { .. })), "{:?}", simulation.pm_events());
    assert!(told(|event| matches!(event, Event::HotSpotEnded { .. })), "{:?}", simulation.pm_events());
    let moved = |number| reports(&simulation, number).iter().any(|report| !report.moves.is_empty());
    assert!([1, 3, 6].into_iter().all(moved), "those to the hot spot have changed their lane");
    assert!(!moved(2), "the victim has not");
}

#[test]
fn without_moving_anything_the_victim_has_a_quarter() {
    let ([before, with, after], simulation) = experiment_1(false, TraceMode::Off);
    assert!((before / ALONE - 1.0).abs() < 0.02, "{before}");
    assert!((with / (ALONE / 4.0) - 1.0).abs() < 0.04, "{with}");
    assert!((after / ALONE - 1.0).abs() < 0.02, "{after}");
    assert!((1..=6).all(|number| reports(&simulation, number).iter().all(|report| report.moves.is_empty())));
}

#[test]
fn the_same_trace_twice() {
    let hash = || experiment_1(true, TraceMode::Hash).1.trace().hash();
    assert_eq!(hash(), hash());
}

/// A host goes with its device, and the one after it knows nothing; the performance manager's process comes and goes.
#[test]
fn hosts_and_managers_come_and_go() {
    let mut simulation = Simulation::new(&fabric(), options(), 2);
    simulation.run_until_quiet(LIMIT).unwrap();
    run_for(&mut simulation, Time::from_secs(3));
    assert!(simulation.pm_events().iter().any(|(_, event)| matches!(event, Event::Learned { .. })));
    let id = flow(&mut simulation, 1, 3);
    run_for(&mut simulation, Time::from_secs(2));
    assert!(delivered(&simulation, 3, id) > 0);
    let (one, known) = (host(&simulation, 1), simulation.pm_events().len());
    simulation.apply(Fault::Kill(Process::Agent(one.node)));
    assert!(simulation.stack(one).is_none() && !simulation.command(one, Command::Stop { flow: id }));
    simulation.apply(Fault::Kill(Process::Pm));
    assert!(simulation.pm().is_none());
    run_for(&mut simulation, Time::from_secs(3));
    assert_eq!(simulation.pm_events().len(), known, "nobody says anything");
    simulation.apply(Fault::Restart(Process::Agent(one.node)));
    simulation.apply(Fault::Restart(Process::Pm));
    assert_eq!(reports(&simulation, 1), []);
    simulation.run_until_quiet(simulation.now() + LIMIT).unwrap();
    run_for(&mut simulation, Time::from_secs(5));
    let again = &simulation.pm_events()[known..];
    assert!(again.iter().any(|(_, event)| matches!(event, Event::Learned { .. })), "{again:?}");
    // Both ends forget, and begin again.
    simulation.command(host(&simulation, 3), Command::Close { flow: id });
    let id = flow(&mut simulation, 1, 3);
    run_for(&mut simulation, Time::from_secs(2));
    assert!(delivered(&simulation, 3, id) > 0);
    let level = reports(&simulation, 1)[0].service_level;
    assert_eq!(level, Some(ServiceLevel(0)));
}
