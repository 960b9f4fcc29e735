//! A device does what its timer said.

use weft_wire::{AttributeId, Method, PortSamplesControl, SampleSelect};

use super::*;
use crate::{Deadline, DeviceTimer};

/// Waits for the next timer, which is to say this, and lets its time come.
fn fires(bench: &mut Bench, reason: DeviceTimer) -> Vec<Output> {
    let timer = bench.device.next_timer().expect("something to wait for");
    assert_eq!((timer.reason, Some(timer.at)), (reason, bench.device.poll_timeout()));
    bench.timeout()
}

#[test]
fn the_end_of_a_packet() {
    let mut bench = data_switch(3, shaped());
    bench.credit(TWO, 0, 0, 2048);
    arrive(&mut bench, 3, packet(3, 2, 0));
    let outputs = fires(&mut bench, DeviceTimer::Data(Deadline::Output(TWO)));
    assert_eq!(slids(&outputs), [3]);
    assert_eq!(bench.device.next_timer(), None);
}

#[test]
fn a_packet_on_its_way_to_the_host() {
    let mut bench = data_hca(DataPathOptions { host_limit_mbps: 12_900, ..shaped() });
    arrive(&mut bench, 1, packet(9, 7, 0));
    assert_eq!(accepted(&fires(&mut bench, DeviceTimer::Data(Deadline::ToHost(ONE)))), 1);
}

#[test]
fn an_input_that_sends_one_packet_at_a_time() {
    let crossbar = Crossbar { input_packets: 1, output_packets: 0, ..Crossbar::IS4 };
    let mut bench = data_switch(3, DataPathOptions { crossbar, ..shaped() });
    for port in [TWO, PortNum(3)] {
        bench.credit(port, 0, 0, 2048);
    }
    arrive(&mut bench, 1, packet(1, 2, 0));
    arrive(&mut bench, 1, packet(1, 3, 0));
    let mut order = Vec::new();
    while let Some(timer) = bench.device.next_timer() {
        order.push((timer.reason, sent(&bench.timeout()).iter().map(|(port, _)| *port).collect::<Vec<_>>()));
    }
    let data = DeviceTimer::Data;
    assert!(order.contains(&(data(Deadline::Input(ONE)), Vec::new())), "{order:?}");
    assert!(order.contains(&(data(Deadline::Output(TWO)), vec![TWO])), "{order:?}");
    assert_eq!(order.last(), Some(&(data(Deadline::Output(PortNum(3))), vec![PortNum(3)])));
}

#[test]
fn a_packet_that_cuts_through() {
    let mut bench = data_switch(2, DataPathOptions { cut_through: true, ..shaped() });
    bench.credit(TWO, 0, 0, 2048);
    arrive(&mut bench, 1, packet(1, 2, 0));
    let outputs = fires(&mut bench, DeviceTimer::Data(Deadline::Coming(ONE)));
    assert_eq!(slids(&outputs), [1], "its first bit leaves");
    fires(&mut bench, DeviceTimer::Data(Deadline::Output(TWO)));
    assert_eq!(bench.device.data_account().total().held, 0);
}

#[test]
fn a_head_that_waits_for_too_long() {
    let mut bench = data_switch(3, shaped());
    assert_eq!(bench.set_port_info(2, |info| info.hoq_life = 4), 0);
    arrive(&mut bench, 1, packet(1, 2, 0));
    let outputs = fires(&mut bench, DeviceTimer::Data(Deadline::Lifetime));
    assert_eq!(drop_reason(&outputs), Some(DropReason::HeadLifetime));
}

#[test]
fn a_sample_comes_before_a_packet_of_its_moment() {
    let mut bench = data_switch(2, shaped());
    bench.credit(TWO, 0, 0, 2048);
    arrive(&mut bench, 1, packet(1, 2, 0));
    let mut request = weft_wire::Mad::default();
    request.set_header(&weft_wire::MadHeader {
        base_version: 1,
        mgmt_class: weft_wire::MgmtClass::Perf,
        class_version: 1,
        method: Method::Set,
        attribute_id: AttributeId::PORT_SAMPLES_CONTROL,
        ..Default::default()
    });
    // A tick is 4 ns of fabric time, so the sample begins a tick after the packet.
    let start = (TOOK / 4_000) as u32;
    let mut control = PortSamplesControl {
        port_select: TWO,
        sample_start: start,
        sample_interval: 1,
        ..Default::default()
    };
    control.counter_select[0] = SampleSelect::PortXmitData;
    request.0[weft_wire::PERF_DATA][..PortSamplesControl::SIZE].copy_from_slice(&control.encode());
    bench.receive(ONE, gmp_packet(0, 0, 1, 50, &request));
    fires(&mut bench, DeviceTimer::Sample);
    assert_eq!(slids(&fires(&mut bench, DeviceTimer::Data(Deadline::Output(TWO)))), [1]);
    fires(&mut bench, DeviceTimer::Sample);
}

#[test]
fn an_smp_that_is_processed() {
    let mut config = config(NodeType::Switch, 2);
    config.options.smp_processing = Time::from_micros(10);
    let mut bench = Bench::new(&config);
    bench.link_up(ONE);
    let mut mad = direct(smp(Method::Get, AttributeId::NodeInfo, 0, &[]), &[9]);
    weft_wire::DirectedSmp::hop_pointer.set(&mut mad.0, 1);
    let route = weft_wire::MadRoute::smp(Lid::PERMISSIVE, Lid::PERMISSIVE);
    bench.receive(ONE, weft_wire::Packet::from_mad(&route, &mad));
    assert!(transmitted(&fires(&mut bench, DeviceTimer::Smp)).is_some(), "the answer");
}

#[test]
fn device_timers_display_their_reason() {
    let data = DeviceTimer::Data(Deadline::Output(PortNum(3)));
    assert_eq!(data.to_string(), "packet end on port 3");
    assert_eq!(DeviceTimer::Data(Deadline::Lifetime).to_string(), "packet lifetime");
    assert_eq!(DeviceTimer::Trap.to_string(), "trap repeat");
}
