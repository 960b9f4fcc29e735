//! The sampling mechanism, step by step.

use super::tests::ask;
use super::*;
use crate::testing::*;
use weft_machine::Machine;
use weft_wire::{
    Lid, MadRoute, PortSamplesControl, PortSamplesResult, PortSamplesResultExtended, SampleSelect,
    SampleStatus,
};

fn control(bench: &mut Bench, method: Method, asked: &PortSamplesControl) -> (u16, PortSamplesControl) {
    let (status, mad) = ask(bench, method, AttributeId::PORT_SAMPLES_CONTROL, &asked.encode());
    (status, PortSamplesControl::decode(mad.0[PERF_DATA].first_chunk().unwrap()))
}

fn result(bench: &mut Bench) -> PortSamplesResult {
    let (status, mad) = ask(bench, Method::Get, AttributeId::PORT_SAMPLES_RESULT, &[]);
    assert_eq!(status, status::OK);
    PortSamplesResult::decode(mad.0[PERF_DATA].first_chunk().unwrap())
}

fn wide_result(bench: &mut Bench) -> PortSamplesResultExtended {
    let (_, mad) = ask(bench, Method::Get, AttributeId::PORT_SAMPLES_RESULT_EXTENDED, &[]);
    PortSamplesResultExtended::decode(mad.0[PERF_DATA].first_chunk().unwrap())
}

/// From 1000 ns after the Set, for 2000 ns.
fn request(port: u8, tag: u16) -> PortSamplesControl {
    let mut counter_select = [SampleSelect::Nothing; 15];
    counter_select[..4].copy_from_slice(&[
        SampleSelect::PortRcvPkts,
        SampleSelect::PortRcvData,
        SampleSelect::PortXmitPkts,
        SampleSelect::PortXmitData,
    ]);
    counter_select[14] = SampleSelect::PortXmitWait;
    PortSamplesControl {
        port_select: PortNum(port),
        sample_start: 250,
        sample_interval: 500,
        tag,
        counter_select,
        ..PortSamplesControl::default()
    }
}

/// One packet in and one out at a port, `nanos` nanoseconds after `zero`.
fn exchange(bench: &mut Bench, zero: Time, nanos: u64, port: PortNum) {
    bench.now = zero + Time::from_nanos(nanos);
    let mut mad = direct(smp(Method::Get, AttributeId::NodeInfo, 0, &[]), &[9]);
    weft_wire::DirectedSmp::hop_pointer.set(&mut mad.0, 1);
    let packet = weft_wire::Packet::from_mad(&MadRoute::smp(Lid::PERMISSIVE, Lid::PERMISSIVE), &mad);
    assert!(transmitted(&bench.receive(port, packet)).is_some());
}

fn up() -> Bench {
    let mut bench = switch(2);
    bench.link_up(ONE);
    bench.link_up(TWO);
    bench
}

#[test]
fn the_sampling_mechanism_reports_its_capabilities() {
    let mut bench = up();
    let asked = PortSamplesControl { port_select: PortNum(2), ..PortSamplesControl::default() };
    let (status, found) = control(&mut bench, Method::Get, &asked);
    assert_eq!((status, found.port_select, found.tick), (status::OK, PortNum(2), 0));
    assert_eq!((found.counter_width, found.counter_mask0, found.sample_mechanisms), (4, 1, 0));
    assert_eq!(found.counter_masks1to9, (0..9).fold(0, |masks, _| masks << 3 | 1));
    assert_eq!(found.counter_masks10to14, (0..5).fold(0, |masks, _| masks << 3 | 1));
    assert_eq!(found.sample_status, SampleStatus::Done);
    // Bits 6 to 23 are the optional counters of attributes 0x15 to 0x1c.
    assert_eq!((found.option_mask, found.vendor_mask), (0x00ff_ffc0, 0));
    assert_eq!(result(&mut bench), PortSamplesResult::default());
}

#[test]
fn a_sample_counts_from_its_start_to_its_end() {
    let mut bench = up();
    let zero = bench.now;
    let (status, set) = control(&mut bench, Method::Set, &request(1, 0xbeef));
    assert_eq!((status, set.sample_status, set.tag), (status::OK, SampleStatus::Started, 0xbeef));
    assert_eq!(bench.device.poll_timeout(), Some(zero + Time::from_nanos(1000)));
    exchange(&mut bench, zero, 999, ONE);
    assert_eq!(result(&mut bench).sample_status, SampleStatus::Started);
    exchange(&mut bench, zero, 1000, ONE);
    let running = result(&mut bench);
    assert_eq!((running.sample_status, running.tag), (SampleStatus::Running, 0xbeef));
    assert_eq!(running.counter, [0; 15], "not before the end");
    exchange(&mut bench, zero, 2000, TWO);
    exchange(&mut bench, zero, 2999, ONE);
    exchange(&mut bench, zero, 3000, ONE);
    let done = result(&mut bench);
    assert_eq!((done.sample_status, done.tag), (SampleStatus::Done, 0xbeef));
    assert_eq!(done.counter[..4], [2, 2 * 72, 2, 2 * 72]);
    assert_eq!(done.counter[4..], [0; 11]);
    let wide = wide_result(&mut bench);
    assert_eq!((wide.tag, wide.extended_width, wide.sample_status), (0xbeef, 2, SampleStatus::Done));
    assert_eq!(wide.counter[..4], [2, 2 * 72, 2, 2 * 72]);
    exchange(&mut bench, zero, 4000, ONE);
    assert_eq!(result(&mut bench), done, "what is done stays");
    assert_eq!(bench.device.poll_timeout(), None);
}

/// The driver may be late: the machine takes the steps in order all the same.
#[test]
fn a_late_wake_up_ends_the_sample() {
    let mut bench = up();
    let zero = bench.now;
    control(&mut bench, Method::Set, &request(255, 1));
    bench.device.ports[2].counters.port_xmit_wait += 7;
    bench.timeout();
    assert_eq!(bench.now, zero + Time::from_nanos(1000));
    bench.device.ports[2].counters.port_xmit_wait += 5;
    exchange(&mut bench, zero, 1500, ONE);
    exchange(&mut bench, zero, 1600, TWO);
    bench.now = zero + Time::from_secs(1);
    bench.device.handle_timeout(bench.now);
    let done = result(&mut bench);
    assert_eq!((done.counter[0], done.counter[14]), (2, 5), "all ports");
}

#[test]
fn a_busy_mechanism_keeps_its_sample() {
    let mut bench = up();
    let zero = bench.now;
    control(&mut bench, Method::Set, &request(1, 1));
    let (status, found) = control(&mut bench, Method::Set, &request(2, 2));
    assert_eq!(
        (status, found.tag, found.port_select),
        (status::OK, 1, PortNum(1)),
        "the tag tells who has it"
    );
    bench.now = zero + Time::from_micros(10);
    bench.device.handle_timeout(bench.now);
    let (_, found) = control(&mut bench, Method::Set, &request(2, 2));
    assert_eq!((found.tag, found.port_select), (2, PortNum(2)));
}

#[test]
fn a_sample_of_no_time_is_done_at_once() {
    let mut bench = up();
    let asked = PortSamplesControl { sample_start: 0, sample_interval: 0, ..request(1, 9) };
    let (_, found) = control(&mut bench, Method::Set, &asked);
    assert_eq!(found.sample_status, SampleStatus::Done);
    assert_eq!((result(&mut bench).tag, result(&mut bench).counter), (9, [0; 15]));
}

#[test]
fn a_counter_that_nobody_counts_is_refused() {
    let mut bench = up();
    let mut asked = request(1, 3);
    asked.counter_select[2] = SampleSelect::from_code(6);
    assert_eq!(control(&mut bench, Method::Set, &asked).0, status::BAD_VALUE);
    assert_eq!(control(&mut bench, Method::Get, &asked).1.tag, 0, "nothing was changed");
    assert_eq!(control(&mut bench, Method::Set, &request(3, 3)).0, status::BAD_VALUE);
}

#[test]
fn a_counter_of_32_bits_stops_at_its_highest_value() {
    let mut bench = up();
    let zero = bench.now;
    control(&mut bench, Method::Set, &request(1, 4));
    bench.timeout();
    bench.device.ports[1].counters.port_rcv_data += 1 << 33;
    bench.timeout();
    assert_eq!(bench.now, zero + Time::from_nanos(3000));
    assert_eq!(result(&mut bench).counter[1], u32::MAX);
    assert_eq!(wide_result(&mut bench).counter[1], 1 << 33);
}
