//! Virtual lane arbitration, as a port's traffic shows it.

use weft_wire::{AttributeId, Method, VlArbitrationEntry, VlArbitrationTable};

use super::waits::own_lanes;
use super::*;

/// A switch with many packets of each of four lanes waiting for port 2: their slid is ten times their lane and more.
fn crowded(packets: usize) -> Bench {
    let mut bench = data_switch(3, shaped());
    own_lanes(&mut bench);
    for lane in 0..4u8 {
        for number in 0..packets as u16 {
            let slid = u16::from(lane) * 10 + number % 10;
            let outputs =
                arrive(&mut bench, 1, DataPacket { vl: VirtualLane(lane), ..packet(slid, 2, lane) });
            assert_eq!(drop_reason(&outputs), None);
        }
    }
    bench
}

pub(super) fn table(entries: &[(u8, u8)]) -> [u8; 64] {
    let mut table = VlArbitrationTable::default();
    for (to, &(vl, weight)) in table.entries.iter_mut().zip(entries) {
        *to = VlArbitrationEntry { vl: VirtualLane(vl), weight, ..VlArbitrationEntry::default() };
    }
    table.encode()
}

/// The lanes in the order in which they are sent, those of the mask having all the credit that there is.
fn order(bench: &mut Bench, lanes: u8) -> Vec<u8> {
    let mut outputs = Vec::new();
    for lane in (0..8).filter(|lane| lanes >> lane & 1 != 0) {
        outputs.extend(bench.credit(TWO, lane, 0, 2048));
    }
    while bench.device.poll_timeout().is_some() {
        outputs.extend(bench.timeout());
    }
    slids(&outputs).iter().map(|slid| (slid / 10) as u8).collect()
}

pub(super) fn set_tables(bench: &mut Bench, low: &[(u8, u8)], high: &[(u8, u8)], limit: u8) {
    for (part, entries) in [(1, low), (3, high)] {
        let answer = bench.ask(Method::Set, AttributeId::VlArbitrationTable, part << 16 | 2, &table(entries));
        assert_eq!(answer.status(), 0);
    }
    assert_eq!(bench.set_port_info(2, |info| info.vl_high_limit = limit), 0);
}

#[test]
fn lanes_of_which_nobody_has_said_anything_take_turns() {
    let mut bench = crowded(3);
    // Lane 0 had credit first, and begins.
    assert_eq!(order(&mut bench, 0b1111), [0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3]);
    sound(&bench);
}

#[test]
fn weights_are_in_blocks_and_an_entry_without_weight_is_skipped() {
    let mut bench = crowded(6);
    // A packet has 33 blocks: 34 let two go, 33 and 1 let one go. Lane 3 is in no table with any weight.
    set_tables(&mut bench, &[(0, 34), (1, 33), (2, 0), (2, 1), (3, 0)], &[], 0);
    let order = order(&mut bench, 0b1111);
    assert_eq!(order[..13], [0, 0, 1, 2, 3, 0, 0, 1, 2, 3, 0, 0, 1]);
    assert_eq!(order.len(), 24, "and none is left behind");
}

#[test]
fn the_high_table_goes_first_as_far_as_its_limit() {
    // Lane 0 is sent first whatever the tables say, since its credit comes first; then it is the next entry's turn.
    for (limit, wanted) in [
        // One packet, then one of the low table.
        (0u8, [0, 1, 2, 1, 3, 1, 0, 1, 2]),
        // 4096 bytes are 64 blocks, which the second packet passes.
        (1, [0, 1, 1, 2, 1, 1, 3, 1, 1]),
        (255, [0, 1, 1, 1, 1, 1, 1, 2, 3]),
    ] {
        let mut bench = crowded(6);
        set_tables(&mut bench, &[(0, 1), (2, 1), (3, 1)], &[(1, 255)], limit);
        let order = order(&mut bench, 0b1111);
        assert_eq!(order[..9], wanted, "limit {limit}");
        assert_eq!(order.len(), 24, "the low table has its turn in the end");
    }
}

#[test]
fn a_lane_without_credit_holds_up_no_other() {
    let mut bench = crowded(2);
    assert_eq!(order(&mut bench, 0b1010), [1, 3, 1, 3]);
    assert_eq!(order(&mut bench, 0b0101), [0, 2, 0, 2]);
}

/// A lane keeps its order, and a head that cannot go holds up what is behind it in its own queue only.
#[test]
fn head_of_line_blocking() {
    let mut bench = data_switch(4, DataPathOptions::default());
    bench.credit(PortNum(4), 0, 0, 2048);
    arrive(&mut bench, 1, packet(11, 2, 0));
    assert!(
        sent(&arrive(&mut bench, 1, packet(12, 4, 0))).is_empty(),
        "port 4 is free, but the head wants port 2"
    );
    assert_eq!(slids(&arrive(&mut bench, 3, packet(31, 4, 0))), [31]);
    assert_eq!(slids(&bench.credit(TWO, 0, 0, 2048)), [11, 12]);
}
