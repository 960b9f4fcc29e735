//! Shares of flows in a small fabric, device by device in virtual time: closed forms, and the shares of credits.

use fabric::{DDR, Fabric, Flow, HOST_LIMIT, QDR};
use weft_device::{Crossbar, DataPathOptions};
use weft_machine::Time;
use weft_wire::{LinkParameters, PortNum};

use crate::fabric;

/// What a DDR 4x link carries, in megabits per second.
const LINK: f64 = 16_000.0;
const LIMIT: f64 = HOST_LIMIT as f64;

pub(crate) fn options() -> DataPathOptions {
    DataPathOptions {
        shaped: true,
        dilation: 1000,
        host_limit_mbps: HOST_LIMIT,
        ..DataPathOptions::default()
    }
}

pub(crate) fn flow(from: u16, to: u16, service_level: u8) -> Flow {
    Flow { from, to, service_level }
}

/// Within so much of what it should be.
pub(crate) fn close(found: f64, wanted: f64, within: f64) {
    assert!((found / wanted - 1.0).abs() < within, "{found:.0} is not {wanted:.0}");
}

/// One switch, host n at port n.
pub(crate) fn star(hosts: u16, options: &DataPathOptions) -> Fabric {
    let mut fabric = Fabric::new(options);
    let switch = fabric.switch(hosts as u8);
    for lid in 1..=hosts {
        let host = fabric.host(lid);
        fabric.cable((host, 1), (switch, lid as u8), DDR);
        fabric.route(switch, lid, lid as u8);
    }
    fabric.bring_up();
    fabric
}

#[test]
fn many_into_one_share_what_the_host_takes() {
    for senders in [2u16, 3, 5] {
        let mut fabric = star(senders + 1, &options());
        let flows: Vec<Flow> = (2..=senders + 1).map(|from| flow(from, 1, 0)).collect();
        let rates = fabric.run(&flows, Time::from_secs(2), Time::from_secs(4));
        for rate in rates {
            close(rate, LIMIT / f64::from(senders), 0.02);
        }
        fabric.check();
    }
}

/// Without a limit the link is what is shared, and the port to the hot spot never wants for credit.
#[test]
fn without_a_limit_the_link_is_shared() {
    let crossbar = Crossbar { host_bus_percent: 0, ..Crossbar::IS4 };
    let mut fabric = star(4, &DataPathOptions { host_limit_mbps: 0, crossbar, ..options() });
    let flows = [flow(2, 1, 0), flow(3, 1, 0), flow(4, 1, 0)];
    for rate in fabric.run(&flows, Time::from_secs(2), Time::from_secs(4)) {
        close(rate, LINK / 3.0, 0.02);
    }
    assert_eq!(fabric.snapshot(0, PortNum(1)).counters.port_xmit_wait, 0);
}

/// FIFOs for each lane that send one packet at a time, on links as fast as the hosts.
fn fifo() -> DataPathOptions {
    DataPathOptions { host_limit_mbps: 0, crossbar: Crossbar::FIFO, ..options() }
}

/// Two lanes of one input keep step with their outputs: the input lets them take turns.
#[test]
fn the_lanes_of_an_input_take_turns() {
    for outputs in [[2, 3], [3, 2]] {
        let mut fabric = star(3, &fifo());
        let flows = [flow(1, outputs[0], 0), flow(1, outputs[1], 1)];
        for rate in fabric.run(&flows, Time::from_secs(2), Time::from_secs(4)) {
            close(rate, LINK / 2.0, 0.02);
        }
        fabric.check();
    }
}

/// Five inputs share an output, whose turn comes to the first of them while that one sends to an output of its own, too.
/// In step it has its fifth. Out of step one packet of another input goes before each of its own, no more: so it has four
/// fifths of what each of the four others has, and its own output has what is left of six packets' times, one to wait.
#[test]
fn an_input_that_is_busy_does_not_lose_its_turn() {
    for (shared, own) in [(6, 7), (7, 6)] {
        for late in 0..5 {
            let mut fabric = star(7, &fifo());
            let mut flows = vec![flow(1, shared, 1), flow(1, own, 0)];
            flows.extend((2..=5).map(|from| flow(from, shared, 1)));
            // One of another size puts the outputs out of step.
            fabric.payloads = vec![2048; 6];
            if let Some(payload) = fabric.payloads.get_mut(late + 1).filter(|_| late > 0) {
                *payload = 1024;
            }
            let rates = fabric.run(&flows, Time::from_secs(2), Time::from_secs(4));
            fabric.check();
            let others: f64 = rates[2..].iter().copied().fold(f64::MAX, f64::min);
            let case = format!("{shared} is shared, {late} sends short packets: {rates:?}");
            let (share, left) =
                if late == 0 { (LINK / 5.0, 4.0 / 5.0) } else { (others * 4.0 / 5.0, 4.0 / 6.0) };
            assert!(rates[0] > 0.98 * share && rates[1] > 0.97 * LINK * left, "{case}");
        }
    }
}

/// A chain of switches with a host each: the nearer to the end, the more a host gets.
#[test]
fn the_parking_lot() {
    let mut fabric = Fabric::new(&options());
    let switches: Vec<usize> = (0..4).map(|_| fabric.switch(3)).collect();
    for (at, &switch) in switches.iter().enumerate() {
        let lid = at as u16 + 1;
        let host = fabric.host(lid);
        fabric.cable((host, 1), (switch, 1), DDR);
        if at > 0 {
            fabric.cable((switches[at - 1], 3), (switch, 2), DDR);
        }
        for to in 1..=4 {
            let port = match to.cmp(&lid) {
                std::cmp::Ordering::Less => 2,
                std::cmp::Ordering::Equal => 1,
                std::cmp::Ordering::Greater => 3,
            };
            fabric.route(switch, to, port);
        }
    }
    fabric.bring_up();
    let flows = [flow(2, 1, 0), flow(3, 1, 0), flow(4, 1, 0)];
    let rates = fabric.run(&flows, Time::from_secs(2), Time::from_secs(6));
    for (rate, part) in rates.into_iter().zip([2.0, 4.0, 4.0]) {
        close(rate, LIMIT / part, 0.02);
    }
    fabric.check();
}

/// The tree of the papers' experiments: leaves A, B, C, each with two links to one root.
fn tree(hosts: u16, uplinks: LinkParameters) -> Fabric {
    tree_with(&options(), hosts, uplinks)
}

pub(crate) fn tree_with(options: &DataPathOptions, hosts: u16, uplinks: LinkParameters) -> Fabric {
    let mut fabric = Fabric::new(options);
    let root = fabric.switch(6);
    for leaf in 0..3u16 {
        let switch = fabric.switch(2 + hosts as u8);
        for link in 1..=2u8 {
            fabric.cable((switch, link), (root, 2 * leaf as u8 + link), uplinks);
        }
        for lid in 1..=3 * hosts {
            // Odd destinations take a leaf's first link, in both directions, and even ones its second.
            let column = 1 + ((lid - 1) % 2) as u8;
            if (lid - 1) / hosts == leaf {
                let port = 3 + ((lid - 1) % hosts) as u8;
                let host = fabric.host(lid);
                fabric.cable((host, 1), (switch, port), DDR);
                fabric.route(switch, lid, port);
                fabric.route(root, lid, 2 * leaf as u8 + column);
            } else {
                fabric.route(switch, lid, column);
            }
        }
    }
    fabric.bring_up();
    fabric
}

/// What flows (from, to, lane) get in such a tree, in Mb/s, is within 2 % of `wanted`.
fn shares(mut fabric: Fabric, flows: &[(u16, u16, u8)], wanted: &[f64]) {
    let flows: Vec<Flow> = flows.iter().map(|&(from, to, lane)| flow(from, to, lane)).collect();
    let rates = fabric.run(&flows, Time::from_secs(3), Time::from_secs(6));
    for (rate, wanted) in rates.iter().zip(wanted) {
        close(*rate, *wanted, 0.02);
    }
    fabric.check();
}

/// Experiments III and IV of dFtree: 2:1, with QDR between the switches.
#[test]
fn the_hot_spots_of_experiments_three_and_four() {
    let third = |slow| [(1, 9, slow), (5, 9, slow), (10, 9, slow), (2, 7, 0)];
    let fourth = |slow| [(1, 9, slow), (5, 9, slow), (10, 9, slow), (2, 11, 0)];
    let (quarter, half) = (LIMIT / 4.0, LIMIT / 2.0);
    shares(tree(4, QDR), &third(0), &[quarter, quarter, half, quarter]);
    shares(tree(4, QDR), &third(1), &[quarter, quarter, half, LIMIT]);
    shares(tree(4, QDR), &fourth(0), &[LIMIT / 6.0, LIMIT / 3.0, half, LIMIT / 6.0]);
    shares(tree(4, QDR), &fourth(1), &[quarter, quarter, half, LIMIT]);
}

/// Figures 4a and 4b of vFtree: one lane, two, three.
#[test]
fn the_lanes_of_vftree() {
    // A-B, A-C, B-C, and within a leaf.
    for (ab, ac, bc, wanted) in [
        (0, 0, 0, [LIMIT / 4.0, LIMIT / 4.0, LIMIT / 2.0, LIMIT / 4.0]),
        (0, 1, 1, [LIMIT / 4.0, LIMIT / 4.0, LIMIT / 2.0, LINK - LIMIT / 4.0]),
        (0, 1, 2, [LIMIT / 3.0, LIMIT / 3.0, LIMIT / 3.0, LINK - LIMIT / 3.0]),
    ] {
        let flows = [(1, 5, ac), (3, 5, bc), (6, 5, 0), (2, 3, ab), (4, 1, ab)];
        shares(tree(2, DDR), &flows, &[&wanted[..], &wanted[3..]].concat());
        if bc < 2 {
            // With three lanes two outputs take turns at a full link, one of which wants less than a half.
            let fifo = DataPathOptions { crossbar: Crossbar::FIFO, ..options() };
            shares(tree_with(&fifo, 2, DDR), &flows, &[&wanted[..], &wanted[3..]].concat());
        }
    }
    let flows = [(1, 9, 0), (6, 9, 0), (10, 9, 0), (8, 11, 0)];
    shares(tree(4, DDR), &flows, &[LIMIT / 3.0, LIMIT / 6.0, LIMIT / 2.0, LIMIT / 6.0]);
}

#[test]
fn the_hot_spot_of_experiment_one() {
    let mut fabric = tree(2, DDR);
    let flows = |hot| [flow(1, 5, hot), flow(3, 5, hot), flow(6, 5, hot), flow(2, 3, 0)];
    let rates = fabric.run(&flows(0), Time::from_secs(3), Time::from_secs(6));
    for (rate, share) in rates.iter().zip([4.0, 4.0, 2.0, 4.0]) {
        close(*rate, LIMIT / share, 0.02);
    }
    // The port to the hot spot waits for as long as its host is slower than its link: 19.4 % of the time, in ticks of 4 ns.
    let hot = (7, PortNum(3));
    let wait = |fabric: &Fabric| fabric.snapshot(hot.0, hot.1).counters.port_xmit_wait;
    let before = wait(&fabric);
    fabric.run_until(fabric.now() + Time::from_secs(4));
    let ticks = wait(&fabric) - before;
    close(ticks as f64, 4.0e9 / 4000.0 * (1.0 - LIMIT / LINK), 0.03);
    fabric.check();
}

#[test]
fn a_slow_lane_frees_the_victim() {
    let mut fabric = tree(2, DDR);
    let flows = [flow(1, 5, 1), flow(3, 5, 1), flow(6, 5, 1), flow(2, 3, 0)];
    let rates = fabric.run(&flows, Time::from_secs(3), Time::from_secs(6));
    for (rate, wanted) in rates.iter().zip([LIMIT / 4.0, LIMIT / 4.0, LIMIT / 2.0, LINK - LIMIT / 4.0]) {
        close(*rate, wanted, 0.02);
    }
    fabric.check();
}

/// The counters of both ends of a cable agree, and those of the lanes with those of the port.
#[test]
fn both_ends_of_a_cable_count_the_same() {
    let mut fabric = star(3, &options());
    fabric.run(&[flow(2, 1, 0), flow(3, 1, 1)], Time::ZERO, Time::from_secs(1));
    fabric.settle();
    for lid in 1..=3u8 {
        let (near, far) =
            (fabric.snapshot(0, PortNum(lid)).counters, fabric.host_snapshot(u16::from(lid)).counters);
        assert_eq!((near.port_xmit_data, near.port_xmit_pkts), (far.port_rcv_data, far.port_rcv_pkts));
        assert_eq!((near.port_rcv_data, near.port_rcv_pkts), (far.port_xmit_data, far.port_xmit_pkts));
        assert_eq!(near.port_xmit_flow_pkts, far.port_rcv_flow_pkts);
        assert_eq!(near.port_rcv_flow_pkts, far.port_xmit_flow_pkts);
    }
}

/// The textbook's deadlock: four switches in a ring, each host sending to one `ahead` of it, all the same way round. On one
/// lane everything stops for good; with two flows on a lane of their own there is no cycle, and nothing does.
fn ring_of_four(crossbar: Crossbar, ahead: u16, lanes: [u8; 4]) -> Vec<f64> {
    let mut fabric = Fabric::new(&DataPathOptions { buffer_packets: 2, crossbar, ..options() });
    let switches: Vec<usize> = (0..4).map(|_| fabric.switch(3)).collect();
    for (at, &switch) in switches.iter().enumerate() {
        let lid = at as u16 + 1;
        let host = fabric.host(lid);
        fabric.cable((host, 1), (switch, 1), DDR);
        fabric.cable((switch, 2), (switches[(at + 1) % 4], 3), DDR);
        for to in 1..=4 {
            fabric.route(switch, to, if to == lid { 1 } else { 2 });
        }
    }
    fabric.bring_up();
    let flows: Vec<Flow> =
        (0..4u16).map(|at| flow(at + 1, (at + ahead) % 4 + 1, lanes[usize::from(at)])).collect();
    // Packets of one size would keep step, and take turns for ever.
    fabric.payloads = vec![2048, 1024, 1536, 512];
    let rates = fabric.run(&flows, Time::from_secs(5), Time::from_secs(5));
    fabric.check();
    if rates.iter().all(|&rate| rate == 0.0) {
        // Every port of the ring has something to send all the time, and no credit. Nothing else happens there.
        let wait = |fabric: &Fabric, at| fabric.snapshot(at, PortNum(2)).counters.port_xmit_wait;
        let before: Vec<u64> = switches.iter().map(|&at| wait(&fabric, at)).collect();
        fabric.run_until(fabric.now() + Time::from_secs(1));
        for (&at, before) in switches.iter().zip(before) {
            assert_eq!(wait(&fabric, at) - before, 1_000_000_000 / 4000, "it waits all of the time");
        }
    }
    rates
}

#[test]
fn a_ring_of_four_stops_on_one_lane_and_not_on_two() {
    for (lanes, stops) in [([0; 4], true), ([0, 1, 0, 1], false)] {
        let rates = ring_of_four(Crossbar::UNLIMITED, 3, lanes);
        assert!(rates.iter().all(|&rate| (rate == 0.0) == stops), "{lanes:?}: {rates:?}");
    }
}

/// With a queue for each output a packet for the host at a switch passes those that wait for the ring, so flows over two
/// cables keep going; over three, packets wait for each other as they do in FIFOs.
#[test]
fn queues_for_each_output_stop_too() {
    for (ahead, stops) in [(2, false), (3, true)] {
        let rates = ring_of_four(Crossbar::IS4, ahead, [0; 4]);
        assert!(rates.iter().all(|&rate| (rate == 0.0) == stops), "{ahead} ahead: {rates:?}");
    }
}
