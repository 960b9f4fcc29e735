//! A lane's clock, packet by packet ([`super::super::shares`]).

use weft_wire::{AttributeId, Mad, MadRoute, Method, Packet};

use super::lanes::{set_tables, table};
use super::waits::own_lanes;
use super::*;
use crate::LaneShare;

/// Shares are rounded up to whole nanoseconds, packet by packet.
const ROUNDING: u64 = 10;

/// A switch whose port 2 has all credit, and these weights for its lanes.
fn held(lane_share: LaneShare, weights: &[(u8, u8)]) -> Bench {
    let mut bench = data_switch(3, DataPathOptions { lane_share, ..shaped() });
    own_lanes(&mut bench);
    set_tables(&mut bench, weights, &[], 0);
    bench
}

fn arrives(bench: &mut Bench, port: u8, lane: u8) -> Vec<Output> {
    let packet = DataPacket { vl: VirtualLane(lane), ..packet(u16::from(lane), 2, lane) };
    arrive(bench, port, packet)
}

/// When packets leave, in nanoseconds since `zero`, with their lanes, until nothing moves any more.
fn departures(bench: &mut Bench, zero: Time) -> Vec<(u8, u64)> {
    let mut left = Vec::new();
    while bench.device.poll_timeout().is_some() {
        let lanes = slids(&bench.timeout());
        let at = bench.now.saturating_sub(zero).as_nanos();
        left.extend(lanes.iter().map(|lane| (*lane as u8, at)));
    }
    left
}

/// Times of departure are these, in packets' times.
fn leave_at(left: &[(u8, u64)], wanted: &[(u8, u64)]) {
    assert_eq!(left.len(), wanted.len(), "{left:?}");
    for ((lane, at), (wanted, packets)) in left.iter().zip(wanted) {
        assert_eq!(lane, wanted, "{left:?}");
        assert!(at.abs_diff(packets * TOOK) <= ROUNDING, "{left:?}: not {packets} times {TOOK}");
    }
}

#[test]
fn a_packet_waits_until_its_lanes_share_has_grown() {
    for (weight, period) in [(1, 2), (3, 4)] {
        let mut bench = held(LaneShare::Fixed, &[(0, 1), (1, weight)]);
        bench.credit(TWO, 0, 0, 2048);
        let zero = bench.now;
        (0..3).for_each(|_| drop(arrives(&mut bench, 1, 0)));
        leave_at(&departures(&mut bench, zero), &[(0, 1), (0, period + 1), (0, 2 * period + 1)]);
        // It waited from each packet's end to the next one's beginning.
        let waited = counters(&bench, 2).port_xmit_wait * 4_000;
        assert!(waited.abs_diff(2 * (period - 1) * TOOK) <= 4_000 + 2 * ROUNDING, "{waited}");
        sound(&bench);
    }
}

#[test]
fn a_share_is_kept_for_a_lane_that_waits_for_credit() {
    for (lane_share, period) in [(LaneShare::Lent, 1), (LaneShare::Waiting, 2), (LaneShare::Fixed, 2)] {
        let mut bench = held(lane_share, &[(0, 1), (1, 1)]);
        bench.credit(TWO, 0, 0, 2048);
        let zero = bench.now;
        arrives(&mut bench, 3, 1);
        (0..3).for_each(|_| drop(arrives(&mut bench, 1, 0)));
        leave_at(&departures(&mut bench, zero), &[(0, 1), (0, period + 1), (0, 2 * period + 1)]);
        assert_eq!(bench.device.data_account().total().held, 1);
        sound(&bench);
    }
}

#[test]
fn a_lane_without_packets_lends_its_share_while_others_wait() {
    let mut bench = held(LaneShare::Waiting, &[(0, 1), (1, 1)]);
    bench.credit(TWO, 0, 0, 2048);
    let zero = bench.now;
    (0..3).for_each(|_| drop(arrives(&mut bench, 1, 0)));
    leave_at(&departures(&mut bench, zero), &[(0, 1), (0, 2), (0, 3)]);
}

/// After ten packets alone lane 0 has half of the link when lane 1 waits: behind the packet that has begun, and one more, as the clock is that of the
/// last packet's beginning.
#[test]
fn a_lane_that_was_alone_has_saved_up_nothing() {
    let mut bench = held(LaneShare::Waiting, &[(0, 1), (1, 1)]);
    bench.credit(TWO, 0, 0, 2048);
    (0..16).for_each(|_| drop(arrives(&mut bench, 1, 0)));
    let zero = bench.now;
    pass(&mut bench, zero + Time::from_nanos(10 * TOOK));
    arrives(&mut bench, 3, 1);
    let left = departures(&mut bench, zero + Time::from_nanos(10 * TOOK));
    let gaps: Vec<u64> = left.windows(2).map(|pair| (pair[1].1 - pair[0].1 + TOOK / 2) / TOOK).collect();
    assert!(gaps.len() >= 5 && gaps[..2] == [1, 1] && gaps[2..].iter().all(|gap| *gap == 2), "{left:?}");
    sound(&bench);
}

/// A lane that had no credit has lost its time; one that waited for another lane's packet has not.
#[test]
fn lost_time_is_made_up_for_only_if_the_link_was_busy() {
    let mut bench = held(LaneShare::Fixed, &[(0, 1), (1, 1)]);
    (0..3).for_each(|_| drop(arrives(&mut bench, 1, 0)));
    let later = bench.now + Time::from_nanos(20 * TOOK);
    pass(&mut bench, later);
    bench.credit(TWO, 0, 0, 2048);
    leave_at(&departures(&mut bench, later), &[(0, 1), (0, 3), (0, 5)]);

    // With 3/4 of the link lane 1 may begin every 4/3 packets: its second one is late by 2/3, as lane 0 is on the link.
    let mut bench = held(LaneShare::Fixed, &[(0, 1), (1, 3)]);
    bench.credit(TWO, 1, 0, 2048);
    bench.credit(TWO, 0, 0, 2048);
    let zero = bench.now;
    (0..6).for_each(|_| drop(arrives(&mut bench, 3, 1)));
    (0..2).for_each(|_| drop(arrives(&mut bench, 1, 0)));
    let left = departures(&mut bench, zero);
    for (of_four, until) in left.chunks(4).zip([4, 8]) {
        assert_eq!(of_four.iter().filter(|(lane, _)| *lane == 0).count(), 1, "{left:?}");
        assert!(of_four[3].1.abs_diff(until * TOOK) <= ROUNDING, "the link is never idle: {left:?}");
    }
    sound(&bench);
}

/// The management lane is not arbitrated, and so has no share.
#[test]
fn lane_15_passes_while_data_waits_for_its_share() {
    let mut bench = held(LaneShare::Fixed, &[(0, 1), (1, 255)]);
    bench.credit(TWO, 0, 0, 2048);
    (0..2).for_each(|_| drop(arrives(&mut bench, 1, 0)));
    let end = bench.now + Time::from_nanos(2 * TOOK);
    assert_eq!(
        pass(&mut bench, end)
            .iter()
            .filter(|output| matches!(output, Output::Transmit { frame: Frame::Data(_), .. }))
            .count(),
        1
    );
    let smp = Packet::from_mad(&MadRoute::smp(Lid(2), Lid(1)), &Mad::default());
    let outputs = bench.receive(ONE, smp);
    let (port, packet) = transmitted(&outputs).expect("it goes at once");
    assert_eq!((port, packet.vl()), (TWO, VirtualLane::MANAGEMENT));
}

#[test]
fn a_head_that_waits_for_its_share_has_a_lifetime() {
    let mut bench = held(LaneShare::Fixed, &[(0, 1), (1, 255)]);
    // 65.536 µs of fabric time, where the next packet may go after 256 times 304 ns.
    assert_eq!(bench.set_port_info(2, |info| info.hoq_life = 4), 0);
    bench.credit(TWO, 0, 0, 2048);
    let zero = bench.now;
    (0..2).for_each(|_| drop(arrives(&mut bench, 1, 0)));
    let life = (4_096 << 4) * 1000;
    assert!(life < 256 * TOOK);
    assert_eq!(drop_reason(&pass(&mut bench, zero + Time::from_nanos(life - 1))), None);
    let outputs = pass(&mut bench, zero + Time::from_nanos(life));
    assert_eq!(drop_reason(&outputs), Some(DropReason::HeadLifetime));
    sound(&bench);
}

#[test]
fn other_tables_end_the_wait_for_a_share() {
    let mut bench = held(LaneShare::Fixed, &[(0, 1), (1, 255)]);
    bench.credit(TWO, 0, 0, 2048);
    (0..2).for_each(|_| drop(arrives(&mut bench, 1, 0)));
    let end = bench.now + Time::from_nanos(4 * TOOK);
    pass(&mut bench, end);
    assert_eq!(bench.device.data_account().total().held, 1);
    set_tables(&mut bench, &[(0, 1)], &[], 0);
    leave_at(&departures(&mut bench, end), &[(0, 1)]);
}

#[test]
fn hosts_and_ports_without_rates_hold_no_lane() {
    let mut bench =
        data_switch(3, DataPathOptions { lane_share: LaneShare::Fixed, ..DataPathOptions::default() });
    set_tables(&mut bench, &[(0, 1), (1, 255)], &[], 0);
    bench.credit(TWO, 0, 0, 2048);
    let outputs: Vec<Output> = (0..3).flat_map(|_| arrives(&mut bench, 1, 0)).collect();
    assert_eq!(sent(&outputs).len(), 3);
    let mut bench = data_hca(DataPathOptions { lane_share: LaneShare::Fixed, ..shaped() });
    set_own_tables(&mut bench);
    bench.credit(ONE, 0, 0, 2048);
    let zero = bench.now;
    (0..2).for_each(|_| drop(bench.input(Input::Inject { port: ONE, packet: packet(7, 9, 0) })));
    leave_at(&departures(&mut bench, zero), &[(7, 1), (7, 2)]);
}

/// Those of an HCA's port 1.
fn set_own_tables(bench: &mut Bench) {
    let low = table(&[(0, 1), (1, 255)]);
    assert_eq!(bench.ask(Method::Set, AttributeId::VlArbitrationTable, 1 << 16, &low).status(), 0);
}
