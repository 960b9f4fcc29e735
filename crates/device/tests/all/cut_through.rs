//! Latency beside closed forms, of switches that store and forward and of those that cut through, link by link.

use fabric::{Fabric, Flow};
use weft_device::{Crossbar, DataPathOptions};
use weft_machine::Time;
use weft_wire::{LinkParameters, Mtu};

use crate::fabric;

const DILATION: u32 = 1000;
const CABLE_NS: u64 = 25;
/// LRH and BTH: what a switch must have of a packet to send it on.
const HEADER: f64 = 20.0;
/// What a packet has besides its body: LRH, BTH, ICRC and VCRC.
const OVERHEAD: u16 = 26;

/// A link and its data rate in bits per nanosecond.
type Rate = (LinkParameters, f64);

const fn link(width: u8, speed: u8, speed_ext: u8) -> LinkParameters {
    LinkParameters { width, speed, speed_ext }
}

const SDR: Rate = (link(2, 1, 0), 8.0);
const QDR_1X: Rate = (link(1, 4, 0), 8.0);
const QDR: Rate = (link(2, 4, 0), 32.0);
const FDR: Rate = (link(2, 4, 1), 600.0 / 11.0);
const EDR: Rate = (link(2, 4, 2), 100.0);
const NDR: Rate = (link(2, 4, 8), 400.0);

fn options(crossbar: Crossbar, cut_through: bool) -> DataPathOptions {
    DataPathOptions { shaped: true, dilation: DILATION, crossbar, cut_through, ..DataPathOptions::default() }
}

/// Switches in a chain between two hosts, LIDs 1 and 2; the cables have these rates.
fn chain(rates: &[Rate], data: &DataPathOptions) -> Fabric {
    let mut fabric = Fabric::new(data);
    fabric.options.mtu_cap = Mtu::Bytes4096;
    fabric.delay = Time::from_nanos(CABLE_NS * u64::from(DILATION));
    let first = fabric.host(1);
    let mut end = (first, 1);
    for (rate, _) in &rates[..rates.len() - 1] {
        let switch = fabric.switch(2);
        fabric.cable(end, (switch, 1), *rate);
        fabric.route(switch, 1, 1);
        fabric.route(switch, 2, 2);
        end = (switch, 2);
    }
    let last = fabric.host(2);
    fabric.cable(end, (last, 1), rates[rates.len() - 1].0);
    fabric.bring_up();
    for node in [first, last] {
        fabric.set_port(node, 1, |info| info.neighbor_mtu = Mtu::Bytes4096);
    }
    for switch in 1..rates.len() {
        for port in [1, 2] {
            fabric.set_port(switch, port, |info| info.neighbor_mtu = Mtu::Bytes4096);
        }
    }
    fabric.run_until(fabric.now() + Time::from_millis(1));
    fabric
}

/// The whole packet on each link in turn.
fn stored(rates: &[Rate], latency: u16, size: f64) -> f64 {
    let links: f64 = rates.iter().map(|(_, rate)| size * 8.0 / rate + CABLE_NS as f64).sum();
    links + (rates.len() - 1) as f64 * f64::from(latency)
}

/// A first bit leaves a switch when the header is in, and so late that the rest is in before it must leave.
fn cut(rates: &[Rate], latency: u16, size: f64) -> f64 {
    let on = |rate: f64, bytes: f64| bytes * 8.0 / rate;
    let hops = rates.windows(2).map(|pair| {
        let (input, output) = (pair[0].1, pair[1].1);
        on(input, HEADER).max(on(input, size) - on(output, size)) + f64::from(latency)
    });
    hops.sum::<f64>() + rates.len() as f64 * CABLE_NS as f64 + on(rates[rates.len() - 1].1, size)
}

/// In nanoseconds of fabric time.
fn measured(rates: &[Rate], data: &DataPathOptions, payload: u16) -> f64 {
    let flow = Flow { from: 1, to: 2, service_level: 0 };
    let mut fabric = chain(rates, data);
    let took = fabric.latency(flow, payload);
    fabric.check();
    took.as_nanos() as f64 / f64::from(DILATION)
}

fn compare(rates: &[Rate]) {
    for latency_ns in [0, 100] {
        for crossbar in [Crossbar::UNLIMITED, Crossbar { host_bus_percent: 0, ..Crossbar::IS4 }] {
            let crossbar = Crossbar { latency_ns, ..crossbar };
            for payload in [256, 1024, 2048, 4096] {
                let size = f64::from(payload + OVERHEAD);
                for (cuts, wanted) in
                    [(false, stored(rates, latency_ns, size)), (true, cut(rates, latency_ns, size))]
                {
                    let found = measured(rates, &options(crossbar, cuts), payload);
                    // Each device rounds to nanoseconds of machine time.
                    let near = (found - wanted).abs() < 0.01 * rates.len() as f64;
                    assert!(near, "{rates:?}, {crossbar}, {payload}, {cuts}: {found} instead of {wanted}");
                }
            }
        }
    }
}

#[test]
fn latency_over_one_to_five_switches_is_the_closed_form() {
    for rate in [SDR, QDR, FDR, NDR] {
        for switches in 1..=5 {
            compare(&vec![rate; switches + 1]);
        }
    }
}

/// Towards a faster link a packet waits until it can leave without a gap; towards a slower one nothing waits.
#[test]
fn latency_over_unequal_links_is_the_closed_form() {
    compare(&[QDR_1X, QDR]);
    compare(&[QDR, QDR_1X]);
    compare(&[QDR, EDR, QDR]);
    compare(&[EDR, QDR, EDR]);
    compare(&[SDR, QDR, FDR, EDR, NDR]);
    compare(&[NDR, EDR, SDR, EDR, NDR]);
}

/// What a host sends and another takes is the slowest link's, whichever way switches forward.
#[test]
fn a_chain_carries_what_its_slowest_link_does() {
    for rates in [&[QDR; 4][..], &[EDR; 3], &[QDR, EDR, QDR], &[EDR, QDR, EDR], &[NDR, SDR]] {
        let slowest = rates.iter().map(|(_, rate)| *rate).fold(f64::INFINITY, f64::min);
        for crossbar in
            [Crossbar::FIFO, Crossbar::UNLIMITED, Crossbar { host_bus_percent: 0, ..Crossbar::IS4 }]
        {
            for payload in [256, 2048, 4096] {
                let mut fabric = chain(rates, &options(crossbar, true));
                fabric.payloads = vec![payload];
                let packets = |count: f64| {
                    let nanos = count * f64::from(payload + OVERHEAD) * 8.0 / slowest * f64::from(DILATION);
                    Time::from_nanos(nanos as u64)
                };
                let flow = Flow { from: 1, to: 2, service_level: 0 };
                let found = fabric.run(&[flow], packets(200.0), packets(2000.0))[0] / 1000.0;
                fabric.check();
                let case = format!("{rates:?}, {crossbar}, {payload}");
                assert!((found / slowest - 1.0).abs() < 1e-3, "{case}: {found} of {slowest} Gb/s");
            }
        }
    }
}

/// Four hosts into one of four times their rate: while one packet comes in slowly, others may leave.
#[test]
fn a_fast_link_does_not_wait_for_slow_inputs() {
    for cut_through in [false, true] {
        let crossbar = Crossbar { host_bus_percent: 0, ..Crossbar::IS4 };
        let mut fabric = Fabric::new(&options(crossbar, cut_through));
        let switch = fabric.switch(5);
        for lid in 1..=5u16 {
            let host = fabric.host(lid);
            fabric.cable((host, 1), (switch, lid as u8), if lid == 1 { QDR.0 } else { QDR_1X.0 });
            fabric.route(switch, lid, lid as u8);
        }
        fabric.bring_up();
        let flows = [2, 3, 4, 5].map(|from| Flow { from, to: 1, service_level: 0 });
        let rates = fabric.run(&flows, Time::from_millis(100), Time::from_secs(1));
        for rate in rates {
            assert!((rate / 8_000.0 - 1.0).abs() < 2e-3, "{cut_through}: {rate}");
        }
        fabric.check();
    }
}
