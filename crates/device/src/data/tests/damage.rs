//! Packets that are lost on the cable, and packets with wrong bits.

use super::*;
use crate::Unsent;

fn lose(bench: &mut Bench, packet: DataPacket, bit_errors: u16) -> Vec<Output> {
    bench.input(Input::Lost { port: ONE, lost: Unsent::from(&packet), bit_errors })
}

/// The peer sends whenever it has credit, and every second packet is lost: it goes on for ever.
#[test]
fn credits_of_lost_packets_come_back() {
    let mut bench = data_switch(2, DataPathOptions::default());
    bench.credit(TWO, 0, 0, 2048);
    let buffer = |bench: &Bench| bench.device.buffer_account(ONE, VirtualLane(0)).unwrap();
    // What the peer has sent and what it may have sent, modulo 4096, as it knows it.
    let (mut sent, mut limit) = (0_u16, buffer(&bench).promised);
    for round in 0..500 {
        assert!(limit.wrapping_sub(sent) % 4096 >= BLOCKS, "the peer has credit for packet {round}");
        sent = (sent + BLOCKS) % 4096;
        let outputs = if round % 2 == 0 {
            lose(&mut bench, packet(2, 2, 0), 0)
        } else {
            arrive(&mut bench, 1, packet(2, 2, 0))
        };
        for (port, told) in credits(&outputs) {
            if port == ONE && told.vl == VirtualLane(0) {
                limit = told.fccl;
            }
        }
        // The switch's own peer at port 2 takes everything.
        let out = bench.device.buffer_account(TWO, VirtualLane(0)).unwrap().sent;
        bench.credit(TWO, 0, 0, (out + 2048) % 4096);
        assert!(bench.device.data_account().is_sound());
    }
    let lane = &bench.device.data_account().lanes[0];
    assert_eq!((lane.received, lane.dropped_for(DropReason::LostOnCable), lane.transmitted), (500, 250, 250));
    let counters = bench.device.port_snapshot(ONE).unwrap().counters;
    assert_eq!((counters.port_rcv_errors, counters.symbol_error_counter), (0, 0), "nothing has seen them");
}

#[test]
fn wrong_bits_are_counted_and_too_many_train_the_link_again() {
    let mut bench = data_switch(2, DataPathOptions::default());
    assert_eq!(bench.set_port_info(1, |info| info.local_phy_errors = 3), 0);
    let counters = |bench: &Bench| {
        let c = bench.device.port_snapshot(ONE).unwrap().counters;
        let recovered = (c.link_error_recovery_counter, c.local_link_integrity_errors);
        (c.symbol_error_counter, c.port_rcv_errors, c.port_local_physical_errors, recovered)
    };
    for _ in 0..3 {
        assert_eq!(drop_reason(&lose(&mut bench, packet(2, 2, 0), 2)), Some(DropReason::BadPacket));
    }
    assert_eq!(counters(&bench), (6, 3, 3, (0, 0)), "as many as are allowed");
    // Two that are sound make up for two of them.
    bench.credit(TWO, 0, 0, 2048);
    (0..2).for_each(|_| drop(arrive(&mut bench, 1, packet(2, 2, 0))));
    (0..2).for_each(|_| drop(lose(&mut bench, packet(2, 2, 0), 1)));
    assert_eq!(counters(&bench), (8, 5, 5, (0, 0)));
    lose(&mut bench, packet(2, 2, 0), 1);
    assert_eq!(counters(&bench), (9, 6, 6, (1, 1)));
    lose(&mut bench, packet(2, 2, 0), 1);
    assert_eq!(counters(&bench), (10, 7, 7, (1, 1)), "counted from the beginning");
    assert_eq!(bench.state(ONE), PortState::Active);
}

#[test]
fn losses_where_there_is_no_link_lane_or_port_are_counted_too() {
    let mut bench = data_switch(2, DataPathOptions::default());
    let smp = Unsent { lane: VirtualLane::MANAGEMENT, words: 72, multicast: false };
    let lost = |bench: &mut Bench, port, lost, bit_errors| {
        drop_reason(&bench.input(Input::Lost { port: PortNum(port), lost, bit_errors }))
    };
    assert_eq!(lost(&mut bench, 1, smp, 0), Some(DropReason::LostOnCable));
    assert_eq!(lost(&mut bench, 1, smp, 1), Some(DropReason::BadPacket));
    let strange = Unsent { lane: VirtualLane(14), ..smp };
    assert_eq!(lost(&mut bench, 1, strange, 0), Some(DropReason::LostOnCable));
    for nowhere in [0, 3, 255] {
        assert_eq!(lost(&mut bench, nowhere, smp, 0), Some(DropReason::NoSuchPort));
    }
    bench.input(Input::LinkDown { port: ONE });
    assert_eq!(lost(&mut bench, 1, Unsent { lane: VirtualLane(0), ..smp }, 1), Some(DropReason::LinkDown));
    assert!(bench.device.data_account().is_sound());
    // More than a peer may send at all is no more than it may send.
    bench.input(Input::LinkUp { port: ONE, peer: LINK });
    for _ in 0..5000 {
        lost(&mut bench, 1, Unsent { lane: VirtualLane(0), words: u32::MAX, multicast: false }, 0);
        assert!(bench.device.data_account().is_sound());
    }
}
