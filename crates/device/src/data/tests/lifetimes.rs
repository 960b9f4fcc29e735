//! Heads that wait too long, packets that are in the switch for too long, and lanes that stall.

use weft_wire::{AttributeId, Method, SwitchInfo};

use super::*;

/// HOQLife 4: 65.536 µs of fabric time, at 1/1000 in nanoseconds of machine time.
const HEAD: u64 = (4_096 << 4) * 1000;

fn with_head_life(stall: u8) -> Bench {
    let mut bench = data_switch(3, shaped());
    let set = |info: &mut weft_wire::PortInfo| (info.hoq_life, info.vl_stall_count) = (4, stall);
    assert_eq!(bench.set_port_info(2, set), 0);
    bench
}

fn reasons(outputs: &[Output]) -> Vec<DropReason> {
    let dropped = |event| match event {
        crate::Event::Dropped { reason, .. } => Some(reason),
        _ => None,
    };
    events(outputs).into_iter().filter_map(dropped).collect()
}

#[test]
fn a_head_has_its_time_and_the_next_one_its_own() {
    let mut bench = with_head_life(0);
    let zero = bench.now;
    for _ in 0..2 {
        arrive(&mut bench, 1, packet(1, 2, 0));
    }
    assert!(reasons(&pass(&mut bench, zero + Time::from_nanos(HEAD - 1))).is_empty());
    assert_eq!(reasons(&pass(&mut bench, zero + Time::from_nanos(HEAD))), [DropReason::HeadLifetime]);
    // However late the driver is, the next one is dropped at its own moment and not before.
    assert!(reasons(&pass(&mut bench, zero + Time::from_nanos(2 * HEAD - 1))).is_empty());
    assert_eq!(reasons(&pass(&mut bench, zero + Time::from_nanos(3 * HEAD))), [DropReason::HeadLifetime]);
    let found = counters(&bench, 2);
    assert_eq!((found.port_xmit_discards, found.port_sw_hoq_lifetime_limit_discards), (2, 2));
    assert_eq!(found.port_sw_lifetime_limit_discards, 0);
    // It waited for credit all the time, and waits no more.
    assert_eq!(found.port_xmit_wait, 2 * HEAD / 4_000);
    sound(&bench);
}

#[test]
fn a_head_that_leaves_in_time_is_not_dropped() {
    let mut bench = with_head_life(0);
    let zero = bench.now;
    for _ in 0..3 {
        arrive(&mut bench, 1, packet(1, 2, 0));
        arrive(&mut bench, 3, packet(3, 2, 0));
    }
    pass(&mut bench, zero + Time::from_nanos(HEAD - 1));
    // Both heads have waited as long; port 1's goes, and port 3's does not make it.
    bench.credit(TWO, 0, 0, BLOCKS);
    let outputs = pass(&mut bench, zero + Time::from_nanos(HEAD));
    assert_eq!(reasons(&outputs), [DropReason::HeadLifetime]);
    bench.credit(TWO, 0, 0, 2048);
    let outputs = pass(&mut bench, zero + Time::from_secs(1));
    assert_eq!(slids(&outputs).len(), 5);
    sound(&bench);
}

/// Ports have a HOQLife of their own, and 20 is none.
#[test]
fn without_a_limit_a_head_waits_for_ever() {
    let mut bench = with_head_life(0);
    arrive(&mut bench, 1, packet(1, 3, 0));
    arrive(&mut bench, 3, packet(3, 1, 0));
    let end = bench.now + Time::from_secs(1_000_000);
    assert!(reasons(&pass(&mut bench, end)).is_empty());
    assert_eq!(bench.device.data_account().total().held, 2);
}

#[test]
fn a_packet_that_was_in_the_switch_for_too_long_is_dropped() {
    let mut bench = data_switch(3, shaped());
    let life = Time::from_nanos((4_096 << 6) * 1000);
    let info = SwitchInfo { linear_fdb_top: 63, life_time_value: 6, ..SwitchInfo::default() };
    bench.ask(Method::Set, AttributeId::SwitchInfo, 0, &info.encode());
    let zero = bench.now;
    arrive(&mut bench, 1, packet(1, 2, 0));
    bench.now += Time::from_millis(1);
    arrive(&mut bench, 1, packet(1, 2, 0));
    arrive(&mut bench, 1, packet(1, 3, 0));
    assert!(reasons(&pass(&mut bench, zero + Time::from_nanos(life.as_nanos() - 1))).is_empty());
    assert_eq!(reasons(&pass(&mut bench, zero + life)), [DropReason::SwitchLifetime]);
    let both = [DropReason::SwitchLifetime; 2];
    assert_eq!(
        reasons(&pass(&mut bench, zero + Time::from_millis(1) + life)),
        both,
        "the last as soon as it heads its queue"
    );
    let found = counters(&bench, 2);
    assert_eq!((found.port_sw_lifetime_limit_discards, found.port_sw_hoq_lifetime_limit_discards), (2, 0));
    assert_eq!(counters(&bench, 3).port_sw_lifetime_limit_discards, 1);
    sound(&bench);
}

/// What waits when the time is set has that time from then on; what came before it was taken back counts again too.
#[test]
fn a_lifetime_that_is_set_begins_for_all_that_wait() {
    let mut bench = data_switch(3, shaped());
    let life = Time::from_nanos((4_096 << 6) * 1000);
    let set = |bench: &mut Bench, value: u8| {
        let info = SwitchInfo { linear_fdb_top: 63, life_time_value: value, ..SwitchInfo::default() };
        bench.ask(Method::Set, AttributeId::SwitchInfo, 0, &info.encode());
    };
    let zero = bench.now;
    arrive(&mut bench, 1, packet(1, 2, 0));
    for begun in [zero + Time::from_secs(5), zero + Time::from_secs(9)] {
        bench.now = begun;
        set(&mut bench, 6);
        let end = begun + Time::from_nanos(life.as_nanos() - 1);
        assert!(reasons(&pass(&mut bench, end)).is_empty());
        set(&mut bench, 20);
        assert!(reasons(&pass(&mut bench, end + Time::from_secs(1))).is_empty());
    }
    bench.now = zero + Time::from_secs(20);
    set(&mut bench, 6);
    arrive(&mut bench, 3, packet(3, 2, 0));
    assert_eq!(
        reasons(&pass(&mut bench, zero + Time::from_secs(20) + life)),
        [DropReason::SwitchLifetime; 2]
    );
    sound(&bench);
}

#[test]
fn a_lane_that_drops_too_many_in_a_row_stalls_and_recovers() {
    let mut bench = with_head_life(2);
    let zero = bench.now;
    for _ in 0..5 {
        arrive(&mut bench, 1, packet(1, 2, 0));
    }
    arrive(&mut bench, 3, packet(3, 2, 0));
    // Two heads at once, which is enough: all of it goes.
    let outputs = pass(&mut bench, zero + Time::from_nanos(HEAD));
    assert_eq!(reasons(&outputs), [DropReason::HeadLifetime; 6]);
    assert_eq!(reasons(&arrive(&mut bench, 1, packet(1, 2, 0))), [DropReason::HeadLifetime]);
    assert!(reasons(&arrive(&mut bench, 1, packet(1, 3, 0))).is_empty(), "another port");
    // Eight times HOQLife later it is as before.
    pass(&mut bench, zero + Time::from_nanos(9 * HEAD - 1));
    assert_eq!(reasons(&arrive(&mut bench, 3, packet(3, 2, 0))), [DropReason::HeadLifetime]);
    pass(&mut bench, zero + Time::from_nanos(9 * HEAD));
    assert!(reasons(&arrive(&mut bench, 3, packet(3, 2, 0))).is_empty());
    assert_eq!(slids(&[bench.credit(TWO, 0, 0, 2048), bench.timeout()].concat()), [3]);
    sound(&bench);
}
