//! The data lanes of one device, step by step.

mod counters;
mod damage;
mod facts;
mod hostile;
mod keys;
mod lanes;
mod lifetimes;
mod marking;
mod shares;
mod timers;
mod waits;

use weft_machine::{Machine, Time};
use weft_wire::{
    DataPacket, FlowControl, Lid, Mtu, NodeType, PKey, PortNum, PortState, QpNum, ServiceLevel, VirtualLane,
    VlCap, opcode,
};

use crate::testing::*;
use crate::{Crossbar, DataPathOptions, DropReason, Frame, Input, Output};

const PAYLOAD: u16 = 2048;
/// From LRH to VCRC.
const SIZE: usize = 2048 + 26;
/// How long it takes at FDR 4x, which [`LINK`] trains to, in nanoseconds, at 1/1000.
const TOOK: u64 = SIZE as u64 * 8_000 * 1000 * 11 / 600_000;
/// In blocks of 64 bytes.
const BLOCKS: u16 = 33;

fn packet(slid: u16, dlid: u16, service_level: u8) -> DataPacket {
    DataPacket {
        slid: Lid(slid),
        dlid: Lid(dlid),
        service_level: ServiceLevel(service_level),
        p_key: PKey::DEFAULT_FULL,
        payload: PAYLOAD,
        opcode: opcode::RC_SEND_ONLY,
        dest_qp: QpNum(9),
        ..DataPacket::default()
    }
}

fn shaped() -> DataPathOptions {
    DataPathOptions {
        shaped: true,
        dilation: 1000,
        crossbar: Crossbar::UNLIMITED,
        ..DataPathOptions::default()
    }
}

/// A switch at LID 5 with Active ports; LID n is behind port n. Credits are the test's business.
fn data_switch(ports: u8, data: DataPathOptions) -> Bench {
    let mut config = config(NodeType::Switch, ports);
    config.options.data = data;
    let mut bench = Bench::new(&config);
    for port in 1..=ports {
        bench.input(Input::LinkUp { port: PortNum(port), peer: LINK });
    }
    let first = bench.port_info(1);
    assert_eq!(first.port_state, PortState::Initialize);
    bench.assign(50);
    for port in 1..=u32::from(ports) {
        assert_eq!(bench.set_port_info(port, |info| info.operational_vls = VlCap::Vl0To7), 0);
        bench.activate(port);
    }
    let routes: Vec<(u16, u8)> = (1..=ports).map(|port| (u16::from(port), port)).collect();
    bench.routes(&routes);
    // Without end.
    let info = weft_wire::SwitchInfo { linear_fdb_top: 63, life_time_value: 20, ..Default::default() };
    bench.ask(weft_wire::Method::Set, weft_wire::AttributeId::SwitchInfo, 0, &info.encode());
    bench
}

/// An HCA at LID 7 whose port is Active.
fn data_hca(data: DataPathOptions) -> Bench {
    let mut config = config(NodeType::Hca, 1);
    config.options.data = data;
    let mut bench = Bench::new(&config);
    bench.input(Input::LinkUp { port: ONE, peer: LINK });
    bench.assign(7);
    assert_eq!(bench.set_port_info(0, |info| info.neighbor_mtu = Mtu::Bytes2048), 0);
    bench.activate(0);
    bench
}

fn credits(outputs: &[Output]) -> Vec<(PortNum, FlowControl)> {
    let credit = |output: &Output| match output {
        Output::Transmit { port, frame: Frame::Credit(flow_control) } => Some((*port, *flow_control)),
        _ => None,
    };
    outputs.iter().filter_map(credit).collect()
}

fn sent(outputs: &[Output]) -> Vec<(PortNum, DataPacket)> {
    let data = |output: &Output| match output {
        Output::Transmit { port, frame: Frame::Data(packet) } => Some((*port, *packet)),
        _ => None,
    };
    outputs.iter().filter_map(data).collect()
}

fn accepted(outputs: &[Output]) -> usize {
    outputs.iter().filter(|output| matches!(output, Output::Accept { .. })).count()
}

fn injected(outputs: &[Output]) -> usize {
    outputs.iter().filter(|output| matches!(output, Output::Injected { .. })).count()
}

fn arrive(bench: &mut Bench, port: u8, packet: DataPacket) -> Vec<Output> {
    bench.input(Input::Arrive { port: PortNum(port), frame: Frame::Data(packet) })
}

/// The slids of what was sent, which tell the packets apart.
fn slids(outputs: &[Output]) -> Vec<u16> {
    sent(outputs).iter().map(|(_, packet)| packet.slid.0).collect()
}

/// Lets everything happen that happens by itself until `end`.
fn pass(bench: &mut Bench, end: Time) -> Vec<Output> {
    let mut outputs = Vec::new();
    while bench.device.poll_timeout().is_some_and(|due| due <= end) {
        outputs.extend(bench.timeout());
    }
    bench.now = end;
    bench.device.handle_timeout(end);
    outputs.extend(std::iter::from_fn(|| bench.device.poll_output()));
    outputs
}

fn counters(bench: &Bench, port: u8) -> crate::Counters {
    bench.device.port_snapshot(PortNum(port)).unwrap().counters
}

fn sound(bench: &Bench) {
    let account = bench.device.data_account();
    assert!(account.is_sound(), "{account:?}");
}

#[test]
fn a_link_that_comes_up_tells_of_every_lane() {
    let mut bench = switch(2);
    let told = credits(&bench.input(Input::LinkUp { port: ONE, peer: LINK }));
    let all: Vec<u8> = told.iter().map(|(_, told)| told.vl.0).collect();
    assert_eq!(all, [0, 1, 2, 3, 4, 5, 6, 7]);
    // Sixteen packets of 4096 bytes and headers: 66 blocks each.
    assert!(told.iter().all(|(port, t)| *port == ONE && (t.op, t.fctbs, t.fccl) == (1, 0, 16 * 66)));
}

#[test]
fn an_end_that_was_not_up_yet_hears_of_the_other_when_it_is() {
    let mut bench = switch(2);
    bench.input(Input::LinkUp { port: ONE, peer: LINK });
    let begins = FlowControl { op: 1, fctbs: 0, vl: VirtualLane(3), fccl: 99 };
    let answer = credits(&bench.input(Input::Arrive { port: ONE, frame: Frame::Credit(begins) }));
    assert_eq!(answer.len(), 1);
    assert_eq!((answer[0].1.op, answer[0].1.vl, answer[0].1.fccl), (0, VirtualLane(3), 16 * 66));
    assert!(credits(&bench.credit(ONE, 3, 0, 120)).is_empty(), "what is told in answer is not answered");
}

#[test]
fn nothing_leaves_without_credit() {
    let mut bench = data_switch(2, DataPathOptions::default());
    assert!(sent(&arrive(&mut bench, 1, packet(1, 2, 0))).is_empty());
    assert!(sent(&arrive(&mut bench, 1, packet(1, 2, 0))).is_empty());
    assert!(sent(&bench.credit(TWO, 0, 0, BLOCKS - 1)).is_empty(), "a block is missing");
    assert_eq!(sent(&bench.credit(TWO, 0, 0, 2 * BLOCKS - 1)).len(), 1);
    assert_eq!(sent(&bench.credit(TWO, 0, 0, 2 * BLOCKS)).len(), 1);
    sound(&bench);
    let account = bench.device.data_account();
    assert_eq!((account.lanes[0].received, account.lanes[0].transmitted, account.lanes[0].held), (2, 2, 0));
}

#[test]
fn a_packet_leaves_when_its_last_bit_does() {
    let mut bench = data_switch(3, shaped());
    bench.credit(TWO, 0, 0, 2048);
    let zero = bench.now;
    arrive(&mut bench, 1, packet(1, 2, 0));
    arrive(&mut bench, 3, packet(3, 2, 0));
    assert_eq!(bench.device.poll_timeout(), Some(zero + Time::from_nanos(TOOK)));
    // The driver is late: both are gone, each at its time.
    bench.now = zero + Time::from_secs(1);
    bench.device.handle_timeout(bench.now);
    let outputs: Vec<Output> = std::iter::from_fn(|| bench.device.poll_output()).collect();
    let from: Vec<u16> = sent(&outputs).iter().map(|(_, packet)| packet.slid.0).collect();
    assert_eq!(from, [1, 3]);
    sound(&bench);
}

#[test]
fn inputs_take_turns() {
    let mut bench = data_switch(4, shaped());
    for _ in 0..3 {
        for port in [1, 2, 3] {
            let more = if port == 1 { 2 } else { 1 };
            for _ in 0..more {
                arrive(&mut bench, port, packet(u16::from(port), 4, 0));
            }
        }
    }
    let mut outputs = bench.credit(PortNum(4), 0, 0, 2000);
    while bench.device.poll_timeout().is_some() {
        outputs.extend(bench.timeout());
    }
    let from: Vec<u16> = sent(&outputs).iter().map(|(_, packet)| packet.slid.0).collect();
    assert_eq!(from, [1, 2, 3, 1, 2, 3, 1, 2, 3, 1, 1, 1]);
    sound(&bench);
}

#[test]
fn a_host_sends_and_receives_no_more_than_its_limit() {
    let limit = DataPathOptions { host_limit_mbps: 12_900, ..shaped() };
    let mut bench = data_hca(limit);
    bench.credit(ONE, 0, 0, 2048);
    let zero = bench.now;
    let mut outputs = Vec::new();
    for _ in 0..10 {
        outputs.extend(bench.input(Input::Inject { port: ONE, packet: packet(0, 9, 0) }));
    }
    for _ in 0..4 {
        outputs.extend(arrive(&mut bench, 1, packet(9, 7, 0)));
    }
    let mut last_accept = Time::ZERO;
    while let Some(at) = bench.device.poll_timeout() {
        let new = bench.timeout();
        if accepted(&new) > 0 {
            last_accept = at;
        }
        outputs.extend(new);
    }
    assert_eq!((sent(&outputs).len(), injected(&outputs), accepted(&outputs)), (10, 10, 4));
    assert!(sent(&outputs).iter().all(|(_, packet)| packet.slid == Lid(7)));
    let each = SIZE as u64 * 8_000 * 1000;
    // The gate opens once more after the last packet.
    assert_eq!(bench.now, zero + Time::from_nanos(10 * each / 12_900));
    assert_eq!(last_accept, zero + Time::from_nanos(4 * each / 12_900));
    sound(&bench);
}

#[test]
fn refused_host_packets_count_as_injected_and_dropped() {
    let mut bench = data_hca(DataPathOptions::default());
    let mut inject = |packet| {
        let outputs = bench.input(Input::Inject { port: ONE, packet });
        assert_eq!((injected(&outputs), sent(&outputs).len()), (1, 0));
        drop_reason(&outputs)
    };
    assert_eq!(inject(DataPacket { payload: 4096, ..packet(0, 9, 0) }), Some(DropReason::TooLong));
    assert_eq!(inject(DataPacket { p_key: PKey(0x8001), ..packet(0, 9, 0) }), Some(DropReason::BadPKey));
    bench.input(Input::LinkDown { port: ONE });
    let outputs = bench.input(Input::Inject { port: ONE, packet: packet(0, 9, 0) });
    assert_eq!((drop_reason(&outputs), injected(&outputs)), (Some(DropReason::OutputInactive), 1));
    sound(&bench);
    assert_eq!(bench.device.data_account().lanes[0].dropped_total(), 3);
}

#[test]
fn a_lost_link_empties_buffers_and_credits() {
    let mut bench = data_switch(3, shaped());
    bench.credit(TWO, 0, 0, 2048);
    for _ in 0..3 {
        arrive(&mut bench, 1, packet(1, 2, 0));
        arrive(&mut bench, 3, packet(3, 2, 0));
        arrive(&mut bench, 1, packet(1, 3, 0));
    }
    // One is on its way out of port 2, the others wait.
    let outputs = bench.input(Input::LinkDown { port: ONE });
    let dropped = |outputs: &[Output], wanted| {
        let events = events(outputs).into_iter();
        events.filter(|e| matches!(e, crate::Event::Dropped { reason, .. } if *reason == wanted)).count()
    };
    assert_eq!(dropped(&outputs, DropReason::LinkLost), 5);
    sound(&bench);
    let outputs = bench.input(Input::LinkDown { port: TWO });
    assert_eq!(dropped(&outputs, DropReason::OutputInactive), 4);
    sound(&bench);
    let account = bench.device.data_account();
    assert_eq!((account.total().held, account.total().dropped_total()), (0, 9));
    assert!(account.buffers.iter().all(|buffer| buffer.occupied == 0 && buffer.waiting_bytes == 0));
    let told = credits(&bench.input(Input::LinkUp { port: ONE, peer: LINK }));
    assert!(told.iter().all(|(_, told)| told.fccl == 16 * 66));
}
