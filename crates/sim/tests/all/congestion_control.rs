//! vFtree's figure 3 in virtual time: 2-6, 7-6 and 8-6 make a hot spot of host 6, and 1-5 shares a cable with 2-6. With
//! congestion control the contributors are slowed down, and the victim is not.

use std::fmt::Write;

use connections::{flow, host};
use weft_host::traffic::{FlowId, FlowReport};
use weft_machine::Time;
use weft_mgmt::congestion;
use weft_sim::{SimOptions, Simulation};
use weft_sm::CongestionOptions;
use weft_topology::{Fabric, PortRef, parse};
use weft_wire::{
    CONGESTION_LOG_DATA, CaCongestionLog, CaCongestionLogEntry, Lid, Method, Mtu, PortNum, ServiceLevel,
    SwitchCongestionLog, SwitchCongestionLogEntry, VlCap, congestion_attribute,
};

use crate::support::connections;

const DILATION: u32 = 1000;
const LIMIT: Time = Time::from_secs(100);
/// From one sample to the next: half a millisecond of fabric time.
const SAMPLE: Time = Time::from_millis(500);

/// Two switches with four hosts each, 4x DDR, and a cable of 4x QDR between them.
fn fabric() -> Fabric {
    let mut text = String::new();
    for (switch, other, first) in [("a", "b", 1), ("b", "a", 5)] {
        writeln!(text, "switchguid=0x{switch}0\nSwitch 5 \"S-{switch}0\" # \"{switch}\"").unwrap();
        for (port, host) in (1..=4).zip(first..) {
            writeln!(text, "[{port}] \"H-{host}00\"[1](0x{host}01) # \"host-{host}\" 4xDDR").unwrap();
        }
        writeln!(text, "[5] \"S-{other}0\"[5] # \"{other}\" 4xQDR\n").unwrap();
        for (port, host) in (1..=4).zip(first..) {
            writeln!(text, "caguid=0x{host}00\nCa 1 \"H-{host}00\" # \"host-{host}\"").unwrap();
            writeln!(text, "[1](0x{host}01) \"S-{switch}0\"[{port}] # \"{switch}\" 4xDDR\n").unwrap();
        }
    }
    parse("vftree-3", &text).unwrap()
}

fn options(cc: Option<CongestionOptions>) -> SimOptions {
    let mut options = SimOptions { hosts: true, ..SimOptions::default() };
    options.device.data.shaped = true;
    options.device.data.dilation = DILATION;
    options.device.data.host_limit_mbps = 12_900;
    options.device.vl_cap = VlCap::Vl0To1;
    options.device.mtu_cap = Mtu::Bytes2048;
    options.sm.lanes.mtu_max = Mtu::Bytes2048;
    options.sm.lanes.management_lane = true;
    options.sm.congestion.is_on = cc.is_some();
    options.sm.congestion.settings = cc.unwrap_or_default();
    options.host.dilation = DILATION;
    options
}

/// What a flow has delivered so far, in bytes of body; in order and once, or the test fails here.
fn delivered(simulation: &Simulation, (from, to): (u32, u32)) -> u64 {
    let reports: Vec<FlowReport> = simulation.host_reports(host(simulation, to).node);
    let flow = FlowId(from * 100 + to);
    let report = reports.iter().find(|report| report.flow == flow && !report.sender).unwrap();
    assert_eq!((report.disorder, &report.error), (0, &None), "{report:?}");
    report.bytes
}

const FLOWS: [(u32, u32); 4] = [(1, 5), (2, 6), (7, 6), (8, 6)];

/// Gb/s of body of each flow, sample by sample, after a warm-up of 15 ms of fabric time, in which the contributors come down.
fn rates(cc: Option<CongestionOptions>) -> (Vec<[f64; 4]>, Simulation) {
    let mut simulation = Simulation::new(&fabric(), options(cc), 1);
    simulation.run_until_quiet(LIMIT).unwrap();
    for (from, to) in FLOWS {
        flow(&mut simulation, from, to);
    }
    let start = simulation.now() + Time::from_secs(15);
    simulation.run_until(start);
    let mut before = FLOWS.map(|flow| delivered(&simulation, flow));
    let mut rates = Vec::new();
    for sample in 1..=120 {
        simulation.run_until(start + Time::from_nanos(SAMPLE.as_nanos() * sample));
        let now = FLOWS.map(|flow| delivered(&simulation, flow));
        let rate =
            |at: usize| (now[at] - before[at]) as f64 * 8.0 * f64::from(DILATION) / SAMPLE.as_nanos() as f64;
        rates.push(std::array::from_fn(rate));
        before = now;
    }
    simulation.check_traffic().unwrap();
    (rates, simulation)
}

fn mean(rates: &[[f64; 4]], flow: usize) -> f64 {
    rates.iter().map(|rates| rates[flow]).sum::<f64>() / rates.len() as f64
}

/// What the hot spot can take in bodies: 12.9 Gb/s of packets, 26 of 2074 bytes being headers and checks.
const HOT_SPOT: f64 = 12.9 * 2048.0 / 2074.0;

#[test]
fn without_cc_the_victim_is_as_slow_as_the_contributors() {
    let (rates, simulation) = rates(None);
    for (flow, rate) in (0..4).map(|flow| (FLOWS[flow], mean(&rates, flow))) {
        assert!((rate / (HOT_SPOT / 3.0) - 1.0).abs() < 0.02, "{flow:?}: {rate}");
    }
    let marked = |name| marked(&simulation, name);
    assert_eq!((marked("a"), marked("b")), (0, 0));
}

#[test]
fn with_it_the_victim_has_its_own_and_the_hot_spot_is_used() {
    let (rates, simulation) = rates(Some(CongestionOptions::default()));
    let victim = mean(&rates, 0);
    let hot = |rates: &[f64; 4]| rates[1] + rates[2] + rates[3];
    let used = rates.iter().map(hot).sum::<f64>() / rates.len() as f64;
    assert!(victim >= 11.5, "{victim}, and the hot spot has {used}");
    assert!(used >= 0.9 * HOT_SPOT, "{used}, and the victim has {victim}");
    let contributor = rates.iter().map(|rates| rates[1]);
    let (least, most) = contributor.fold((f64::MAX, 0.0_f64), |(a, b), rate| (a.min(rate), b.max(rate)));
    assert!(most - least > 1.0, "a contributor goes up and down: {least} to {most}");
    assert!(marked(&simulation, "b") > 100, "where the hot spot is");
    assert_eq!(marked(&simulation, "a"), 0, "the cable between the switches is no root of congestion");
    what_happened_is_in_the_logs(simulation);
}

fn what_happened_is_in_the_logs(mut simulation: Simulation) {
    let (contributor, hot_spot) = (host(&simulation, 2), host(&simulation, 6));
    let (lid, hot_lid) = (lid(&simulation, contributor), lid(&simulation, hot_spot));
    let log = CaCongestionLog::decode(&log_of(&mut simulation, lid));
    assert!(log.threshold_event_counter > 0 && log.threshold_congestion_event_map == 1, "{log:?}");
    let newest = CaCongestionLogEntry::decode(log.entries.first_chunk().unwrap());
    assert_eq!((newest.local_lid, newest.remote_lid, newest.service_type), (lid, hot_lid, 0));
    assert!((1..=log.current_time_stamp).contains(&newest.time_stamp), "{newest:?}");

    let switch = simulation.fabric().find("b").unwrap();
    let port = simulation.fabric().peer(hot_spot).unwrap();
    let lid = self::lid(&simulation, PortRef::new(switch, PortNum::ZERO));
    let log = SwitchCongestionLog::decode(&log_of(&mut simulation, lid));
    assert_eq!(log.port_map[31] >> port.port.0 & 1, 1, "{:?}", log.port_map);
    let entries = log.entries.chunks_exact(12).map(|bytes| bytes.try_into().unwrap());
    let entries: Vec<_> = entries.map(SwitchCongestionLogEntry::decode).collect();
    assert!(entries.iter().any(|entry| entry.dlid == hot_lid), "{entries:?}");
    let soon = SwitchCongestionLog::decode(&log_of(&mut simulation, lid));
    assert!(soon.log_events_counter < log.log_events_counter, "it counts since it was sent");
}

fn lid(simulation: &Simulation, port: PortRef) -> Lid {
    let ports = simulation.device(port.node).unwrap().snapshot().ports;
    ports.iter().find(|known| known.port == port.port).unwrap().lid
}

/// The log of whoever has this LID, as a program at an idle host reads it.
fn log_of(simulation: &mut Simulation, lid: Lid) -> [u8; 224] {
    let log = congestion_attribute::CONGESTION_LOG;
    let request = congestion(lid, ServiceLevel(0), 0, Method::Get, log, 0, &[]);
    let answer = simulation.ask(host(simulation, 4).node, request).unwrap();
    assert_eq!(answer.mad.status(), 0);
    *answer.mad.0[CONGESTION_LOG_DATA].first_chunk().unwrap()
}

/// Packets that a switch has marked.
fn marked(simulation: &Simulation, switch: &str) -> u64 {
    let node = simulation.fabric().find(switch).unwrap();
    simulation.device(node).unwrap().packets_marked()
}
