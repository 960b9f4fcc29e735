//! Shares of flows on the links that they share, beside the closed forms of a credit-based crossbar: one queue for each
//! input and lane, round robin over the inputs, a host that moves 12.9 Gb/s in each direction.
//!
//! Figures are those of experiments I, III and IV of "dFtree" on the same trees, in virtual time at scale 1/1000.

use std::collections::BTreeMap;

use support::{Destinations, lid, port};
use weft_machine::Time;
use weft_sim::{SimOptions, Simulation};
use weft_topology::{Fabric, NodeIndex, PortRef, parse};
use weft_wire::{Mtu, PortNum, ServiceLevel, VlCap};

use crate::support;

const DILATION: u64 = 1000;

/// How long the flows run before anything is measured, and how long that is done.
const WARM_UP: Time = Time::from_secs(2);
const WINDOW: Time = Time::from_secs(10);

fn tree(name: &str) -> Fabric {
    let text = match name {
        "dftree-1" => include_str!("../../../../topologies/dftree-1.topo"),
        _ => include_str!("../../../../topologies/dftree-3.topo"),
    };
    parse(name, text).unwrap()
}

fn options(lanes: VlCap) -> SimOptions {
    let mut options = SimOptions::default();
    options.device.data.shaped = true;
    options.device.data.dilation = DILATION as u32;
    options.device.data.host_limit_mbps = 12_900;
    options.device.vl_cap = lanes;
    options.sm.lanes.mtu_max = Mtu::Bytes2048;
    options.sm.routing.chain = "ftree".parse().unwrap();
    options
}

fn host(simulation: &Simulation, number: u32) -> NodeIndex {
    simulation.fabric().find(&format!("host-{number}")).unwrap()
}

/// A flow by the numbers of its hosts, and its service level.
type FlowOf = (u32, u32, u8);

/// Ticks that a port has waited, of all that there were, in the window.
fn waited(simulation: &Simulation, port: PortRef) -> u64 {
    let device = simulation.device(port.node).unwrap();
    device.port_snapshot_at(port.port, simulation.now()).unwrap().counters.port_xmit_wait
}

/// Runs flows, and gives what each delivered in Gb/s, and the share of the time that the port towards the hot spot, which
/// is where the first flow goes, waited.
fn run(simulation: &mut Simulation, flows: &[FlowOf]) -> (BTreeMap<(u32, u32), f64>, f64) {
    simulation.run_until_quiet(Time::from_secs(100)).unwrap();
    let targets = flows.iter().map(|&(from, to, level)| {
        let (from, to) = (host(simulation, from), host(simulation, to));
        let target = Destinations::One(lid(simulation, to), ServiceLevel(level));
        (port(simulation, from), (lid(simulation, from), target))
    });
    let (load, arrived) = support::Saturate::new(targets.collect(), 1);
    load.start(simulation);
    let start = simulation.now() + WARM_UP;
    simulation.run_until(start);
    simulation.check_traffic().unwrap();
    let before = arrived.borrow().clone();
    let hot = port(simulation, host(simulation, flows[0].1));
    let towards = simulation.fabric().peer(hot).unwrap();
    let waited_before = waited(simulation, towards);
    simulation.run_until(start + WINDOW);
    let report = simulation.check_traffic().unwrap();
    assert_eq!((report.total.gone(), report.total.held > 0), (0, true), "{:?}", report.total);
    let after = arrived.borrow();
    assert!(after.values().all(|flow| flow.disorder == 0));
    let shares = flows.iter().map(|&(from, to, _)| {
        let key = (lid(simulation, host(simulation, to)), lid(simulation, host(simulation, from)));
        let bytes = after[&key].bytes - before.get(&key).map_or(0, |flow| flow.bytes);
        ((from, to), bytes as f64 * 8.0 * DILATION as f64 / WINDOW.as_nanos() as f64)
    });
    let ticks = WINDOW.as_nanos() / DILATION / 4;
    let share = (waited(simulation, towards) - waited_before) as f64 / ticks as f64;
    (shares.collect(), share)
}

fn assert_shares(found: &BTreeMap<(u32, u32), f64>, wanted: &[f64], flows: &[FlowOf]) {
    for (&(from, to, _), &wanted) in flows.iter().zip(wanted) {
        let share = found[&(from, to)];
        assert!(
            (share / wanted - 1.0).abs() < 0.02,
            "{from}-{to}: {share:.3} instead of {wanted}: {found:?}"
        );
    }
}

/// The flows of one experiment on one lane, and their shares in Gb/s.
fn one_lane(topology: &str, flows: &[(u32, u32)], wanted: &[f64]) -> f64 {
    let flows: Vec<FlowOf> = flows.iter().map(|&(from, to)| (from, to, 0)).collect();
    let mut simulation = Simulation::new(&tree(topology), options(VlCap::Vl0), 1);
    let (shares, waited) = run(&mut simulation, &flows);
    assert_shares(&shares, wanted, &flows);
    waited
}

#[test]
fn one_flow_gets_what_its_host_can_send() {
    let waited = one_lane("dftree-1", &[(1, 5)], &[12.9]);
    assert!(waited < 0.001, "nothing waits: {waited}");
}

#[test]
fn two_into_one() {
    // From two inputs of one switch, and from one and the same.
    one_lane("dftree-1", &[(1, 5), (6, 5)], &[6.45, 6.45]);
    one_lane("dftree-1", &[(1, 5), (2, 5)], &[6.45, 6.45]);
}

#[test]
fn three_into_one() {
    // At the hot spot's own switch each has an input of its own.
    one_lane("dftree-3", &[(10, 9), (11, 9), (12, 9)], &[4.3, 4.3, 4.3]);
}

#[test]
fn the_parking_lot_gives_the_nearest_half() {
    let waited = one_lane("dftree-1", &[(1, 5), (3, 5), (6, 5)], &[3.225, 3.225, 6.45]);
    assert!((waited - (1.0 - 12.9 / 16.0)).abs() < 0.01, "19.4 % of the time: {waited}");
}

#[test]
fn experiment_1_on_one_lane() {
    let flows = [(1, 5), (3, 5), (6, 5), (2, 3)];
    let waited = one_lane("dftree-1", &flows, &[3.225, 3.225, 6.45, 3.225]);
    assert!((waited - (1.0 - 12.9 / 16.0)).abs() < 0.01, "19.4 % of the time: {waited}");
}

#[test]
fn experiment_3_on_one_lane() {
    one_lane("dftree-3", &[(1, 9), (5, 9), (10, 9), (2, 7)], &[3.225, 3.225, 6.45, 3.225]);
}

#[test]
fn experiment_4_on_one_lane() {
    one_lane("dftree-3", &[(1, 9), (5, 9), (10, 9), (2, 11)], &[2.15, 4.30, 6.45, 2.15]);
}

/// The flows of one experiment with those to the hot spot on a slow lane, as the performance manager would have it.
fn slow_lane(topology: &str, flows: &[FlowOf], wanted: &[f64]) {
    let mut options = options(VlCap::Vl0To1);
    let equal = |vl| weft_sm::VlWeight { vl, weight: 4 };
    options.sm.lanes.vl_arb_high = vec![weft_sm::VlWeight { vl: 0, weight: 0 }];
    options.sm.lanes.vl_arb_low = vec![equal(0), equal(1)];
    let mut simulation = Simulation::new(&tree(topology), options, 1);
    let (shares, _) = run(&mut simulation, flows);
    assert_shares(&shares, wanted, flows);
}

#[test]
fn experiment_1_with_a_slow_lane() {
    slow_lane("dftree-1", &[(1, 5, 1), (3, 5, 1), (6, 5, 1), (2, 3, 0)], &[3.225, 3.225, 6.45, 12.775]);
}

#[test]
fn experiment_3_with_a_slow_lane() {
    slow_lane("dftree-3", &[(1, 9, 1), (5, 9, 1), (10, 9, 1), (2, 7, 0)], &[3.225, 3.225, 6.45, 12.9]);
}

#[test]
fn experiment_4_with_a_slow_lane() {
    slow_lane("dftree-3", &[(1, 9, 1), (5, 9, 1), (10, 9, 1), (2, 11, 0)], &[3.225, 3.225, 6.45, 12.9]);
}

/// A host that takes a twentieth of what its bus could: the flow gets no more, and the port upstream waits for credit. The same on
/// a fabric whose hosts have no limit, and on one without shapes at all, where only the slow host takes time.
#[test]
fn a_host_that_drains_slowly_lets_the_port_upstream_wait() {
    let slow = |simulation: &Simulation| {
        let how = weft_fault::Impairment::of(weft_fault::Word::SlowDrain, "5%").unwrap();
        let at = port(simulation, host(simulation, 5));
        weft_fault::Impaired { at, way: weft_fault::Way::Both, how, seed: 1 }
    };
    let flows = [(1, 5, 0)];
    // A twentieth of the bus, and of 4x QDR's 32 Gb/s, or of 4x SDR's 8: the tree's links are 4x QDR at the host.
    for (limit, wanted) in [(12_900, 0.645), (0, 0.8)] {
        let mut options = options(VlCap::Vl0);
        options.device.data.host_limit_mbps = limit;
        let mut simulation = Simulation::new(&tree("dftree-1"), options, 1);
        simulation.run_until_quiet(Time::from_secs(100)).unwrap();
        let fault = slow(&simulation);
        simulation.apply(weft_sim::Fault::Impair(fault));
        let (shares, waited) = run(&mut simulation, &flows);
        assert_shares(&shares, &[wanted], &flows);
        assert!(waited > 0.9, "it waits nearly always: {waited}");
        simulation.apply(weft_sim::Fault::Clear(fault));
        let before = simulation.check_traffic().unwrap().total.delivered;
        simulation.run_until(simulation.now() + WARM_UP);
        let after = simulation.check_traffic().unwrap().total.delivered;
        let gbps = (after - before) as f64 * 2048.0 * 8.0 * DILATION as f64 / WARM_UP.as_nanos() as f64;
        assert!(gbps > 10.0, "as usual again: {gbps}");
    }
}

/// The port's number is that of its place in the file; the closed forms above lean on the routing of the paper.
#[test]
fn the_routing_is_that_of_the_paper() {
    let mut simulation = Simulation::new(&tree("dftree-1"), options(VlCap::Vl0), 1);
    simulation.run_until_quiet(Time::from_secs(100)).unwrap();
    let route = |simulation: &Simulation, switch: &str, to: u32| {
        let lid = lid(simulation, host(simulation, to));
        let switch = simulation.fabric().find(switch).unwrap();
        simulation.device(switch).unwrap().forwarding_table()[usize::from(lid.0)]
    };
    for to in 1..=6u32 {
        assert_eq!(route(&simulation, "R", to), PortNum(to as u8), "link {to} leads down to host {to}");
    }
    for to in 3..=6 {
        let wanted = if to % 2 == 1 { PortNum(3) } else { PortNum(4) };
        assert_eq!(route(&simulation, "A", to), wanted, "odd ones leave by the first link");
    }
}
