//! Credit return beside its closed form: as fast as credit for each block, with few packets.

use fabric::{Fabric, Flow, QDR};
use weft_device::{Crossbar, DataPathOptions};
use weft_machine::Time;
use weft_wire::{LinkParameters, Mtu, PortNum};

use crate::fabric;

/// From LRH to VCRC, and in blocks of 64 bytes.
const SIZE: f64 = 2048.0 + 26.0;
const BLOCKS: u32 = 33;
/// Blocks of the largest packet of an MTU of 2048, headers and checks included.
const LARGEST: u32 = 34;
/// A multiple of every buffer below, so that a window holds whole periods.
const PACKETS: f64 = 4800.0;

const fn extended(speed_ext: u8) -> LinkParameters {
    LinkParameters { width: 2, speed: 4, speed_ext }
}

/// Data rates in megabits per second.
const RATES: [(LinkParameters, f64); 8] = [
    (LinkParameters { width: 2, speed: 1, speed_ext: 0 }, 8_000.0),
    (LinkParameters { width: 2, speed: 2, speed_ext: 0 }, 16_000.0),
    (QDR, 32_000.0),
    (extended(1), 600_000.0 / 11.0),
    (extended(2), 100_000.0),
    (extended(4), 200_000.0),
    (extended(8), 400_000.0),
    (extended(16), 800_000.0),
];

/// At 1/1 a nanosecond is 2 % of a packet's time on the fastest links.
const DILATION: u64 = 1000;

struct Found {
    /// Of the link's rate.
    throughput: f64,
    /// Of the time, at the sender.
    waited: f64,
    /// For each data packet, from the receiving host.
    flow_packets: f64,
}

/// What is between two hosts.
#[derive(Clone, Copy)]
struct Between {
    crossbar: Crossbar,
    /// The largest MTU of all ports. That of their links is 2048.
    mtu_cap: Mtu,
}

impl Between {
    /// Blocks of the largest packet that a port takes: its buffer is a multiple of these.
    fn largest(self) -> u32 {
        if self.mtu_cap == Mtu::Bytes2048 { LARGEST } else { 66 }
    }

    /// How many packets of 2048 bytes such a buffer holds.
    fn depth(self, buffer_packets: u16) -> f64 {
        f64::from(u32::from(buffer_packets) * self.largest() / BLOCKS)
    }
}

const UNLIMITED: Between = Between { crossbar: Crossbar::UNLIMITED, mtu_cap: Mtu::Bytes2048 };

/// These flows through that crossbar, in windows one after the other: one, or with flows both ways four.
fn line_of(
    between: Between,
    buffer_packets: u16,
    delay_ns: u64,
    (link, rate): (LinkParameters, f64),
    flows: &[Flow],
) -> Vec<Found> {
    let data = DataPathOptions {
        shaped: true,
        dilation: DILATION as u32,
        buffer_packets,
        crossbar: between.crossbar,
        ..DataPathOptions::default()
    };
    let mut fabric = Fabric::new(&data);
    fabric.options.mtu_cap = between.mtu_cap;
    fabric.delay = Time::from_nanos(delay_ns * DILATION);
    let switch = fabric.switch(2);
    for lid in [1, 2] {
        let host = fabric.host(lid);
        fabric.cable((host, 1), (switch, lid as u8), link);
        fabric.route(switch, lid, lid as u8);
    }
    fabric.bring_up();
    for (node, port) in [(switch, 1), (switch, 2), (switch + 1, 1), (switch + 2, 1)] {
        fabric.set_port(node, port, |info| info.neighbor_mtu = Mtu::Bytes2048);
    }
    fabric.run_until(fabric.now() + Time::from_micros(50 * DILATION));
    let packet_ns = SIZE * 8_000.0 / rate;
    let slowest = (2.0 * packet_ns + 2.0 * delay_ns as f64) / between.depth(buffer_packets);
    let nanos = |packets: f64| Time::from_nanos((packets * packet_ns.max(slowest) * DILATION as f64) as u64);
    fabric.run(flows, nanos(192.0), Time::ZERO);
    let window = nanos(PACKETS);
    let windows = if flows.len() == 1 { 1 } else { 4 };
    let found = (0..windows).map(|_| {
        let (before, waited, told) = (fabric.now(), counters(&fabric, 1).0, counters(&fabric, 2));
        fabric.run_until(before + window);
        let (after, now) = (counters(&fabric, 1).0, counters(&fabric, 2));
        let fabric_ns = (window.as_nanos() / DILATION) as f64;
        let packets = (now.2 - told.2) as f64;
        fabric.check();
        Found {
            throughput: packets * packet_ns / fabric_ns,
            waited: (after - waited) as f64 * 4.0 / fabric_ns,
            flow_packets: (now.1 - told.1) as f64 / packets,
        }
    });
    found.collect()
}

/// How many flow control packets a host sends for each data packet, at most. Credit is due when
/// what the peer may send falls below a round trip, the packets that are leaving and one more;
/// `between` is the number of packets from all of the buffer down to there.
fn flow_packets_max(between: Between, buffer_packets: u16, delay_ns: u64, rate: f64) -> f64 {
    let leaving = u32::from(between.crossbar.output_packets.max(1));
    let round_trip = (2.0 * delay_ns as f64 * rate / 8_000.0 / 64.0).ceil() as u32;
    let room = u32::from(buffer_packets) * between.largest();
    let between = room.saturating_sub(round_trip + (leaving + 1) * LARGEST) / BLOCKS + 1;
    1.0 / f64::from(between) + 2.0 / PACKETS
}

/// XmitWait, flow control packets sent and data packets received of a host.
fn counters(fabric: &Fabric, lid: u16) -> (u64, u64, u64) {
    let counters = fabric.host_snapshot(lid).counters;
    assert_eq!(fabric.snapshot(0, PortNum(1)).port, PortNum(1));
    (counters.port_xmit_wait, counters.port_xmit_flow_pkts, counters.port_rcv_pkts)
}

/// Holds throughput, PortXmitWait and flow control packets of a line against the share of the link that immediate return
/// of credit gives, which is `wanted` of buffer, delay and a packet's time on the link, in nanoseconds.
fn assert_immediate(
    between: Between,
    buffers: &[u16],
    rates: &[(LinkParameters, f64)],
    wanted: impl Fn(f64, f64, f64) -> f64,
) {
    let flow = [Flow { from: 1, to: 2, service_level: 0 }];
    for &buffer_packets in buffers {
        for delay_ns in [0, 1_000, 5_000] {
            for &rate in rates {
                let wanted =
                    wanted(between.depth(buffer_packets), delay_ns as f64, SIZE * 8_000.0 / rate.1).min(1.0);
                let found = line_of(between, buffer_packets, delay_ns, rate, &flow).pop().expect("a window");
                let case = format!("{buffer_packets} packets, {delay_ns} ns, {} Mb/s", rate.1);
                let near = 1e-3;
                let throughput = found.throughput;
                assert!((throughput - wanted).abs() < near, "{case}: {throughput} for {wanted}");
                assert!((found.waited - (1.0 - wanted)).abs() < near, "{case}: {} waited", found.waited);
                let bound = flow_packets_max(between, buffer_packets, delay_ns, rate.1);
                assert!(found.flow_packets <= bound, "{case}: {} each, not {bound}", found.flow_packets);
            }
        }
    }
}

/// A packet takes its buffer from when it begins to leave the host until its credit is back: it leaves, flies, leaves the
/// switch, and the credit flies. With immediate return the buffer is used that often, or the link is full.
#[test]
fn a_line_is_as_fast_as_immediate_return_makes_it() {
    assert_immediate(UNLIMITED, &[1, 2, 3, 8, 16], &RATES, |buffer, delay, packet| {
        buffer * packet / (2.0 * packet + 2.0 * delay)
    });
}

/// Through `is4` a packet leaves its buffer for the output's as soon as the crossbar's first half of its latency has passed.
/// At 800 Gb/s and without a delay the three packets that may cross at once, not credit, are the limit of small buffers. How large
/// a packet the ports could take does not matter, but that buffers are a multiple of it.
#[test]
fn so_is_one_through_a_crossbar_with_buffers_behind_it() {
    let crossbar = Crossbar { buffer_blocks: 0, host_bus_percent: 100, ..Crossbar::IS4 };
    let latency = f64::from(crossbar.latency_ns) / 2.0;
    for (mtu_cap, buffers) in
        [(Mtu::Bytes2048, &[1, 2, 3, 4, 6, 8, 16][..]), (Mtu::Bytes4096, &[1, 2, 3, 4, 8])]
    {
        assert_immediate(Between { crossbar, mtu_cap }, buffers, &RATES[..7], |buffer, delay, packet| {
            buffer * packet / (packet + latency + 2.0 * delay)
        });
    }
}

/// The counts of blocks go round every 4096 packets of 33 blocks, and nothing changes.
#[test]
fn both_ways_for_longer_than_the_counts_of_blocks() {
    let both = [(1, 2), (2, 1)].map(|(from, to)| Flow { from, to, service_level: 0 });
    for (buffer_packets, delay_ns) in [(4, 0), (5, 0), (6, 100)] {
        let bound = flow_packets_max(UNLIMITED, buffer_packets, delay_ns, RATES[2].1);
        for (window, found) in
            line_of(UNLIMITED, buffer_packets, delay_ns, RATES[2], &both).iter().enumerate()
        {
            let case = format!("{buffer_packets} packets, {delay_ns} ns, window {window}");
            assert!((found.throughput - 1.0).abs() < 1e-3, "{case}: {}", found.throughput);
            assert!(found.flow_packets <= bound, "{case}: {} each, not {bound}", found.flow_packets);
        }
    }
}
