//! The bus of a host that the functions of its virtualised adapter share, beside closed forms: equal parts of the bus in each
//! direction, and no part of one direction for the other.

use weft_device::Crossbar;
use weft_machine::Time;
use weft_sim::{SimOptions, Simulation};
use weft_topology::{Virtualised, parse};
use weft_wire::{Mtu, ServiceLevel};

use crate::support::{self, Destinations, lid, port};

const DILATION: u64 = 1000;
const BUS_GBPS: f64 = 19.0;
/// 4xQDR, which no bus of 19 Gb/s fills.
const CABLE_GBPS: f64 = 32.0;
const WARM_UP: Time = Time::from_secs(2);
const WINDOW: Time = Time::from_secs(10);

/// A flow from one function to another by their names, and what it has in Gb/s.
type Wanted<'a> = (&'a str, &'a str, f64);

fn options(crossbar: Crossbar, cut_through: bool, bus_gbps: f64) -> SimOptions {
    let mut options = SimOptions::default();
    let data = &mut options.device.data;
    (data.shaped, data.dilation, data.crossbar, data.cut_through) =
        (true, DILATION as u32, crossbar, cut_through);
    data.crossbar.host_bus_percent = 0;
    data.host_bus_mbps = (bus_gbps * 1000.0) as u32;
    options.sm.lanes.mtu_max = Mtu::Bytes2048;
    options
}

/// Runs flows that send as fast as they can, and compares each with what it is to have.
fn judge(options: SimOptions, flows: &[Wanted<'_>]) {
    let text = include_str!("../../../../topologies/live-migration.topo");
    let Virtualised { fabric, adapters } =
        parse("live-migration.topo", text).unwrap().virtualised(3).unwrap();
    let case = format!("{:?}", options.device.data);
    let mut simulation = Simulation::new(&fabric, SimOptions { adapters, ..options }, 1);
    simulation.run_until_quiet(Time::from_secs(100)).unwrap();
    let node = |simulation: &Simulation, name: &str| simulation.fabric().find(name).unwrap();
    let targets = flows.iter().map(|&(from, to, _)| {
        let (from, to) = (node(&simulation, from), node(&simulation, to));
        let target = Destinations::One(lid(&simulation, to), ServiceLevel(0));
        (port(&simulation, from), (lid(&simulation, from), target))
    });
    let (load, arrived) = support::Saturate::new(targets.collect(), 1);
    load.start(&mut simulation);
    let start = simulation.now() + WARM_UP;
    simulation.run_until(start);
    let before = arrived.borrow().clone();
    simulation.run_until(start + WINDOW);
    let report = simulation.check_traffic().unwrap();
    assert_eq!(report.total.gone(), 0, "{case}: {:?}", report.total);
    for &(from, to, wanted) in flows {
        let key = (lid(&simulation, node(&simulation, to)), lid(&simulation, node(&simulation, from)));
        let flow = arrived.borrow()[&key];
        assert_eq!(flow.disorder, 0, "{case}: {from} to {to}");
        let bytes = flow.bytes - before[&key].bytes;
        let gbps = bytes as f64 * 8.0 * DILATION as f64 / WINDOW.as_nanos() as f64;
        assert!((gbps / wanted - 1.0).abs() < 0.01, "{from} to {to}: {gbps:.3} for {wanted:.3}; {case}");
    }
}

/// Each case on all crossbars, with and without cut-through.
fn judge_everywhere(flows: &[Wanted<'_>]) {
    for (_, crossbar) in Crossbar::PROFILES {
        for cut_through in [false, true] {
            judge(options(crossbar, cut_through, BUS_GBPS), flows);
        }
    }
}

#[test]
fn functions_share_the_bus_by_which_they_send() {
    let each = BUS_GBPS / 3.0;
    judge_everywhere(&[("A vf1", "B vf1", each), ("A vf2", "C vf1", each), ("A", "B vf2", each)]);
}

#[test]
fn functions_share_the_bus_by_which_they_receive() {
    let each = BUS_GBPS / 2.0;
    judge_everywhere(&[("A vf1", "C vf1", each), ("B vf1", "C vf2", each)]);
}

#[test]
fn one_direction_of_a_bus_does_not_slow_the_other() {
    judge_everywhere(&[("A vf1", "B vf1", BUS_GBPS), ("B vf2", "A vf2", BUS_GBPS)]);
}

/// What stays in the adapter crosses the bus twice, once in each direction, and shares both.
#[test]
fn traffic_within_a_host_crosses_its_bus() {
    judge_everywhere(&[("A vf1", "A vf2", BUS_GBPS)]);
    let each = BUS_GBPS / 2.0;
    judge_everywhere(&[("A vf1", "A vf2", each), ("A vf3", "B vf1", each)]);
}

#[test]
fn without_a_bus_the_cable_is_shared() {
    let each = CABLE_GBPS / 2.0;
    judge(options(Crossbar::IS4, false, 0.0), &[("A vf1", "B vf1", each), ("A vf2", "C vf1", each)]);
}
