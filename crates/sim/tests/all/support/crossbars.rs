//! Throughput of a fabric at saturation, as a fraction of its links' data rate: the judges' measure of a crossbar.

use std::collections::BTreeMap;
use std::rc::Rc;

use weft_device::Crossbar;
use weft_machine::Time;
use weft_mgmt::Window;
use weft_sim::{SimOptions, Simulation};
use weft_topology::generate::{GenerateOptions, xgft};
use weft_topology::{Fabric, LinkRate, NodeIndex, PortRef};
use weft_wire::{Lid, Mtu, VlCap};

use super::{Destinations, Saturate, lid, port, uniform};

/// Data rate of QDR 4x, in megabits per second.
const QDR_MBPS: f64 = 32_000.0;
const DILATION: u32 = 1000;
/// One 2 KiB packet at QDR 4x, in nanoseconds of fabric time.
const PACKET_NS: u64 = 518;

/// Who sends to whom.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pattern {
    /// Each host to all others, evenly by chance.
    Others,
    /// The first half of the hosts to the second half, evenly by chance: a switch whose inputs and outputs are apart, so
    /// each input has its own output among its destinations.
    Halves,
}

/// One switch with `hosts` hosts, on QDR links.
pub(crate) fn star(hosts: u32) -> Fabric {
    let rate: LinkRate = "4xQDR".parse().expect("a rate");
    let options = GenerateOptions { rate, ..GenerateOptions::default() };
    xgft(&[hosts], &[1], &options).expect("one switch")
}

/// 648 hosts under 36-port switches, on QDR links.
pub(crate) fn tree() -> Fabric {
    let rate: LinkRate = "4xQDR".parse().expect("a rate");
    let options = GenerateOptions { rate, ..GenerateOptions::default() };
    xgft(&[18, 36], &[1, 18], &options).expect("a tree that fits its radix")
}

fn halves(simulation: &Simulation) -> BTreeMap<PortRef, (Lid, Destinations)> {
    let hosts: Vec<NodeIndex> = simulation.fabric().hosts().map(|(at, _)| at).collect();
    let (senders, receivers) = hosts.split_at(hosts.len() / 2);
    let lids = Rc::new(receivers.iter().map(|&host| lid(simulation, host)).collect::<Vec<Lid>>());
    let target = |&host: &NodeIndex| {
        (port(simulation, host), (lid(simulation, host), Destinations::Any(Rc::clone(&lids))))
    };
    senders.iter().map(target).collect()
}

/// How switches forward.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Switches {
    pub(crate) crossbar: Crossbar,
    pub(crate) cut_through: bool,
}

impl From<Crossbar> for Switches {
    fn from(crossbar: Crossbar) -> Self {
        Self { crossbar, cut_through: false }
    }
}

/// What each sender's packets get of a link's data rate, measured over `packets` times of a packet after a fifth of that.
pub(crate) fn delivered(
    fabric: &Fabric,
    switches: impl Into<Switches>,
    pattern: Pattern,
    packets: u64,
    seed: u64,
) -> f64 {
    let Switches { crossbar, cut_through } = switches.into();
    let mut options = SimOptions::default();
    options.device.data.shaped = true;
    options.device.data.dilation = DILATION;
    options.device.data.crossbar = crossbar;
    options.device.data.cut_through = cut_through;
    options.device.vl_cap = VlCap::Vl0;
    options.device.mtu_cap = Mtu::Bytes2048;
    options.sm.lanes.mtu_max = Mtu::Bytes2048;
    options.sm.smps.max_wire_smps = Window::Fixed(64);
    let mut simulation = Simulation::new(fabric, options, seed);
    simulation.run_until_quiet(Time::from_secs(600)).expect("it comes up");
    let targets = match pattern {
        Pattern::Others => uniform(&simulation),
        Pattern::Halves => halves(&simulation),
    };
    let senders = targets.len() as f64;
    let (load, arrived) = Saturate::new(targets, seed);
    load.start(&mut simulation);
    let packets_take = |packets: u64| Time::from_nanos(packets * PACKET_NS * u64::from(DILATION));
    let start = simulation.now() + packets_take((packets / 5).max(40));
    simulation.run_until(start);
    let bytes = || arrived.borrow().values().map(|flow| flow.bytes).sum::<u64>();
    let before = bytes();
    let window = packets_take(packets);
    simulation.run_until(start + window);
    let got = bytes() - before;
    simulation.check_traffic().expect("every packet is accounted for");
    assert!(arrived.borrow().values().all(|flow| flow.disorder == 0), "packets of a flow stay in order");
    let fabric_us = window.as_nanos() as f64 / f64::from(DILATION) / 1e3;
    got as f64 * 8.0 / fabric_us / QDR_MBPS / senders
}
