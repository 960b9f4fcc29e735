//! PortXmitWait and its lanes: what makes them rise, and what does not. A tick is 4 ns of fabric time.

use weft_wire::{AttributeId, Method, PERF_DATA, PortCounters, PortVlXmitWaitCounters, SlToVlTable};

use super::*;
use crate::pma::tests::ask;

fn nanos(nanos: u64) -> Time {
    Time::from_nanos(nanos)
}

/// By lane, as the PMA says.
fn lane_waits(bench: &mut Bench, port: u8) -> [u16; 16] {
    let (_, mad) = ask(bench, Method::Get, AttributeId::PORT_VL_XMIT_WAIT_COUNTERS, &[0, port, 0, 0]);
    PortVlXmitWaitCounters::decode(mad.0[PERF_DATA].first_chunk().unwrap()).port_vl_xmit_wait
}

fn port_wait(bench: &mut Bench, port: u8) -> u32 {
    let (_, mad) = ask(bench, Method::Get, AttributeId::PORT_COUNTERS, &[0, port, 0, 0]);
    PortCounters::decode(mad.0[PERF_DATA].first_chunk().unwrap()).port_xmit_wait
}

/// Level n on lane n.
pub(super) fn own_lanes(bench: &mut Bench) {
    let table = SlToVlTable { lanes: std::array::from_fn(|level| VirtualLane(level as u8 % 8)) };
    let modifier = if bench.device.port_snapshot(PortNum::ZERO).is_some() { 3 << 16 } else { 0 };
    bench.ask(Method::Set, AttributeId::SlToVlTable, modifier, &table.encode());
}

#[test]
fn data_without_credit_waits_and_is_seen_to_before_it_is_over() {
    let mut bench = data_switch(3, shaped());
    let zero = bench.now;
    arrive(&mut bench, 1, packet(1, 2, 0));
    for (after, ticks) in [(3_999, 0), (4_000, 1), (43_000, 10)] {
        pass(&mut bench, zero + nanos(after));
        assert_eq!(counters(&bench, 2).port_xmit_wait, ticks, "after {after} ns");
        assert_eq!(u64::from(port_wait(&mut bench, 2)), ticks);
    }
    // What is left of a tick is kept over credit that comes and goes.
    bench.credit(TWO, 0, 0, BLOCKS);
    pass(&mut bench, zero + nanos(43_000 + TOOK));
    assert_eq!(counters(&bench, 2).port_xmit_wait, 10);
    let again = bench.now;
    arrive(&mut bench, 1, packet(1, 2, 0));
    pass(&mut bench, again + nanos(1_000));
    assert_eq!((counters(&bench, 2).port_xmit_wait, lane_waits(&mut bench, 2)[0]), (11, 11));
    assert_eq!((counters(&bench, 1).port_xmit_wait, counters(&bench, 3).port_xmit_wait), (0, 0));
}

#[test]
fn a_busy_port_does_not_wait_but_its_other_lanes_do() {
    let mut bench = data_switch(3, shaped());
    own_lanes(&mut bench);
    for lane in [0, 1] {
        bench.credit(TWO, lane, 0, 2048);
    }
    let zero = bench.now;
    for _ in 0..2 {
        arrive(&mut bench, 1, packet(1, 2, 0));
        arrive(&mut bench, 3, packet(3, 2, 1));
    }
    pass(&mut bench, zero + nanos(4 * TOOK + 100_000));
    // In turn: each lane waits while the other sends, but lane 1 once more at the beginning than lane 0 at its end.
    let lanes = lane_waits(&mut bench, 2);
    assert_eq!(port_wait(&mut bench, 2), 0);
    assert_eq!((u64::from(lanes[0]), u64::from(lanes[1])), (TOOK / 4_000, 2 * TOOK / 4_000));
    assert_eq!(lanes[2..], [0; 14]);
}

#[test]
fn a_lane_without_credit_waits_while_the_port_sends_another() {
    let mut bench = data_switch(3, shaped());
    own_lanes(&mut bench);
    bench.credit(TWO, 1, 0, BLOCKS);
    let zero = bench.now;
    arrive(&mut bench, 1, packet(1, 2, 0));
    arrive(&mut bench, 3, packet(3, 2, 1));
    pass(&mut bench, zero + nanos(TOOK + 40_000));
    let lanes = lane_waits(&mut bench, 2);
    assert_eq!((port_wait(&mut bench, 2), u64::from(lanes[0]), lanes[1]), (10, (TOOK + 40_000) / 4_000, 0));
}

#[test]
fn a_hosts_gate_is_no_wait() {
    let mut bench = data_hca(DataPathOptions { host_limit_mbps: 12_900, ..shaped() });
    bench.credit(ONE, 0, 0, 10 * BLOCKS);
    for _ in 0..12 {
        bench.input(Input::Inject { port: ONE, packet: packet(0, 9, 0) });
    }
    let each = SIZE as u64 * 8_000 * 1000;
    let ten = bench.now + nanos(10 * each / 12_900);
    pass(&mut bench, ten);
    assert_eq!(
        (counters(&bench, 1).port_xmit_wait, bench.device.data_account().lanes[0].transmitted),
        (0, 10)
    );
    // From here on the gate is open, and credit is wanting.
    pass(&mut bench, ten + nanos(8_000));
    assert_eq!(counters(&bench, 1).port_xmit_wait, 2);
}

#[test]
fn a_set_begins_anew_and_the_full_counter_goes_on() {
    let mut bench = data_switch(3, shaped());
    let zero = bench.now;
    arrive(&mut bench, 1, packet(1, 2, 0));
    pass(&mut bench, zero + nanos(40_000));
    let clear = PortCounters { port_select: TWO, counter_select2: 1, ..PortCounters::default() };
    ask(&mut bench, Method::Set, AttributeId::PORT_COUNTERS, &clear.encode());
    ask(&mut bench, Method::Set, AttributeId::PORT_VL_XMIT_WAIT_COUNTERS, &[0, 2, 0, 1]);
    pass(&mut bench, zero + nanos(60_000));
    assert_eq!((port_wait(&mut bench, 2), lane_waits(&mut bench, 2)[0]), (5, 5));
    assert_eq!(counters(&bench, 2).port_xmit_wait, 15);
    // 32 bits stop where they end.
    pass(&mut bench, zero + Time::from_secs(4 * (1 << 33) / 1_000_000));
    assert_eq!((port_wait(&mut bench, 2), lane_waits(&mut bench, 2)[0]), (u32::MAX, u16::MAX));
    assert!(counters(&bench, 2).port_xmit_wait > u64::from(u32::MAX));
}

/// A packet that passes at once waits for nothing; one that finds no credit does, shaped or not.
#[test]
fn unshaped_ports_wait_too() {
    let mut bench = data_switch(3, DataPathOptions::default());
    own_lanes(&mut bench);
    bench.credit(TWO, 0, 0, BLOCKS);
    let zero = bench.now;
    for _ in 0..3 {
        arrive(&mut bench, 1, packet(1, 2, 0));
    }
    pass(&mut bench, zero + nanos(400));
    assert_eq!((port_wait(&mut bench, 2), lane_waits(&mut bench, 2)[0]), (100, 100));
    bench.credit(TWO, 0, 0, 2048);
    pass(&mut bench, zero + nanos(800));
    assert_eq!((port_wait(&mut bench, 2), lane_waits(&mut bench, 2)[0]), (100, 100));
}

/// A sample counts the wait from its start to its end, though nothing happens at the port meanwhile.
#[test]
fn a_sample_sees_a_wait_under_way() {
    let mut bench = data_switch(3, shaped());
    let mut counter_select = [weft_wire::SampleSelect::Nothing; 15];
    counter_select[0] = weft_wire::SampleSelect::PortXmitWait;
    let control = weft_wire::PortSamplesControl {
        port_select: TWO,
        sample_start: 10,
        sample_interval: 25,
        tag: 1,
        counter_select,
        ..Default::default()
    };
    arrive(&mut bench, 1, packet(1, 2, 0));
    ask(&mut bench, Method::Set, AttributeId::PORT_SAMPLES_CONTROL, &control.encode());
    let end = bench.now + Time::from_secs(1);
    pass(&mut bench, end);
    let (_, mad) = ask(&mut bench, Method::Get, AttributeId::PORT_SAMPLES_RESULT, &[]);
    let result = weft_wire::PortSamplesResult::decode(mad.0[PERF_DATA].first_chunk().unwrap());
    assert_eq!((result.sample_status, result.counter[0]), (weft_wire::SampleStatus::Done, 25));
}

/// A switch whose input 1 sends to port 3 on lane 0 for the time of a packet, one packet at a time.
fn busy_input() -> Bench {
    let mut bench = data_switch(4, DataPathOptions { crossbar: Crossbar::FIFO, ..shaped() });
    own_lanes(&mut bench);
    bench.credit(PortNum(3), 0, 0, 2048);
    arrive(&mut bench, 1, packet(1, 3, 0));
    bench
}

#[test]
fn a_wait_ends_when_credit_comes_though_the_input_is_busy() {
    let mut bench = busy_input();
    let zero = bench.now;
    arrive(&mut bench, 1, packet(1, 2, 1));
    pass(&mut bench, zero + nanos(40_000));
    bench.credit(TWO, 1, 0, BLOCKS);
    pass(&mut bench, zero + nanos(TOOK + 40_000));
    assert_eq!(counters(&bench, 2).port_xmit_wait, 10);
    // The lane waits until its packet goes.
    assert_eq!(u64::from(lane_waits(&mut bench, 2)[1]), TOOK / 4_000);
}

#[test]
fn a_wait_begins_when_the_next_in_line_needs_more_credit() {
    let mut bench = busy_input();
    let zero = bench.now;
    bench.credit(TWO, 1, 0, 5);
    arrive(&mut bench, 1, DataPacket { payload: 256, ..packet(1, 2, 1) });
    arrive(&mut bench, 4, packet(4, 2, 1));
    pass(&mut bench, zero + nanos(40_000));
    assert_eq!(counters(&bench, 2).port_xmit_wait, 0);
    bench.input(Input::LinkDown { port: ONE });
    pass(&mut bench, zero + nanos(80_000));
    assert_eq!(counters(&bench, 2).port_xmit_wait, 10);
}

/// A reader of the counters may come before what was due; what they say then is never taken back.
#[test]
fn a_wait_that_ended_before_the_reader_came_is_not_counted_on() {
    let mut bench = data_switch(3, shaped());
    assert_eq!(bench.set_port_info(2, |info| info.hoq_life = 4), 0);
    let zero = bench.now;
    arrive(&mut bench, 1, packet(1, 2, 0));
    let (ends, late) = (nanos((4_096 << 4) * 1000), nanos(3_000_000));
    let seen = |bench: &Bench, at| bench.device.port_snapshot_at(TWO, at).unwrap().counters.port_xmit_wait;
    let early = seen(&bench, zero + ends + late);
    assert_eq!(early, ends.as_nanos() / 4_000);
    pass(&mut bench, zero + ends + late);
    assert_eq!(seen(&bench, zero + ends + late), early);
}
