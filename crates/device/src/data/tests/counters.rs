//! Causes of each counter of the data lanes, and the events that leave it alone.

use crate::Frame;
use weft_wire::{AttributeId, Method, PERF_DATA};

use super::*;
use crate::pma::tests::ask;

#[test]
fn data_and_packets_are_counted_at_both_ends_of_a_hop() {
    let mut bench = data_switch(3, DataPathOptions::default());
    bench.credit(TWO, 0, 0, 2048);
    let before = [1, 2, 3].map(|port| counters(&bench, port));
    arrive(&mut bench, 1, packet(1, 2, 0));
    let after = [1, 2, 3].map(|port| counters(&bench, port));
    let words = (SIZE as u64 - 2) / 4;
    assert_eq!(after[0].port_rcv_data - before[0].port_rcv_data, words);
    assert_eq!(after[0].port_unicast_rcv_pkts - before[0].port_unicast_rcv_pkts, 1);
    assert_eq!(after[1].port_xmit_data - before[1].port_xmit_data, words);
    assert_eq!(after[1].port_unicast_xmit_pkts - before[1].port_unicast_xmit_pkts, 1);
    assert_eq!(
        (after[0].port_xmit_pkts, after[1].port_rcv_pkts),
        (before[0].port_xmit_pkts, before[1].port_rcv_pkts)
    );
    assert_eq!(after[2], before[2]);
    assert_eq!((after[0].port_rcv_errors, after[1].port_xmit_discards), (0, 0));
}

#[test]
fn waiting_packets_are_not_counted_as_sent() {
    let mut bench = data_switch(3, shaped());
    bench.credit(TWO, 0, 0, 2048);
    let before = counters(&bench, 2).port_xmit_pkts;
    arrive(&mut bench, 1, packet(1, 2, 0));
    assert_eq!(counters(&bench, 2).port_xmit_pkts, before, "its last bit has not left");
    bench.timeout();
    assert_eq!(counters(&bench, 2).port_xmit_pkts, before + 1);
}

#[test]
fn flow_control_packets_are_counted_both_ways_and_no_data() {
    let mut bench = data_switch(3, DataPathOptions::default());
    let flow = |bench: &Bench, port| {
        let found = counters(bench, port);
        (found.port_xmit_flow_pkts, found.port_rcv_flow_pkts)
    };
    assert_eq!((flow(&bench, 1), flow(&bench, 2)), ((8, 0), (8, 0)), "each link has eight lanes");
    bench.credit(TWO, 0, 0, 2048);
    let before = counters(&bench, 2).port_rcv_pkts;
    bench.credit(TWO, 0, 0, 2048);
    assert_eq!((flow(&bench, 2), counters(&bench, 2).port_rcv_pkts), ((8, 2), before));
    // 16 packets of 66 blocks; credit comes again below half of that, and then for all room.
    let mut told = Vec::new();
    let mut packets = 0;
    while told.is_empty() {
        packets += 1;
        told = credits(&arrive(&mut bench, 1, packet(1, 2, 0)));
        assert!(packets <= 32);
    }
    assert_eq!(packets, 1056 / 2 / u32::from(BLOCKS) + 1);
    assert_eq!(
        told,
        [(ONE, FlowControl { op: 0, fctbs: 0, vl: VirtualLane(0), fccl: packets as u16 * BLOCKS + 1056 })]
    );
    assert_eq!(flow(&bench, 1), (9, 0));
}

#[test]
fn a_sender_without_credit_overruns_the_buffer() {
    let mut bench = data_switch(3, DataPathOptions { buffer_packets: 1, ..DataPathOptions::default() });
    // 66 blocks: two packets of 33, which wait.
    for _ in 0..2 {
        assert_eq!(drop_reason(&arrive(&mut bench, 1, packet(1, 2, 0))), None);
    }
    sound(&bench);
    assert_eq!(counters(&bench, 1).port_buffer_overrun_errors, 0);
    let outputs = arrive(&mut bench, 1, packet(1, 2, 0));
    assert_eq!(drop_reason(&outputs), Some(DropReason::BufferOverrun));
    assert!(outputs.contains(&Output::Overrun { port: ONE, lane: VirtualLane(0) }));
    let found = counters(&bench, 1);
    assert_eq!((found.port_rcv_errors, found.port_buffer_overrun_errors), (1, 1));
    assert_eq!(found.excessive_buffer_overrun_errors, 1);
    assert_eq!(counters(&bench, 3).port_buffer_overrun_errors, 0);
    sound(&bench);
}

#[test]
fn a_wrong_telling_is_counted_and_changes_nothing() {
    let mut bench = data_switch(3, DataPathOptions::default());
    let errors = |bench: &Bench| bench.device.ports[2].by_lane.flow_ctl_update_errors;
    bench.credit(TWO, 0, 0, 100);
    bench.credit(TWO, 0, 0, 100);
    assert_eq!(errors(&bench), [0; 16]);
    // More than can be said, and less than before.
    for wrong in [2049, 99, 4095] {
        bench.credit(TWO, 0, 0, wrong);
    }
    assert_eq!((errors(&bench)[0], errors(&bench)[1]), (3, 0));
    assert_eq!(bench.device.buffer_account(TWO, VirtualLane(0)).unwrap().credit, 100);
    // Blocks that were sent and did not come are promised again, as soon as it matters.
    let told = credits(&bench.credit(TWO, 0, 600, 100));
    assert_eq!(told, [(TWO, FlowControl { op: 0, fctbs: 0, vl: VirtualLane(0), fccl: 600 + 1056 })]);
    assert_eq!(errors(&bench)[0], 4);
    // A lane that there is not is no one's.
    bench.credit(TWO, 9, 0, 100);
    assert_eq!(errors(&bench)[9], 0);
}

#[test]
fn opcodes_and_lanes_of_data_are_counted() {
    let mut bench = data_switch(3, DataPathOptions::default());
    let lane = DataPacket { vl: VirtualLane(3), ..packet(1, 2, 0) };
    arrive(&mut bench, 1, lane);
    let (_, mad) =
        ask(&mut bench, Method::Get, AttributeId::PORT_VL_OP_PACKETS, &[opcode::RC_SEND_ONLY, 1, 0, 0]);
    let found =
        weft_wire::PortVlOpPackets::decode(mad.0[PERF_DATA].first_chunk().unwrap()).port_vl_op_packets;
    assert_eq!((found[3], found.iter().sum::<u16>()), (1, 1));
    assert_eq!(bench.device.data_account().lanes[3].moved_out, 1, "it leaves by lane 0");
}

/// A GMP of the device's own that finds its queue full is dropped and counted.
#[test]
fn programs_may_fill_a_queue() {
    let mut bench = data_hca(DataPathOptions::default());
    bench.input(Input::Attach { client: CLIENT, port: ONE, registrations: Vec::new() });
    let mad = smp(Method::Get, AttributeId::ClassPortInfo, 0, &[]);
    let mut mad = weft_wire::AddressedMad::gmp(Lid(9), ServiceLevel(0), mad);
    weft_wire::Smp::mgmt_class.set(&mut mad.mad.0, weft_wire::MgmtClass::Perf);
    for _ in 0..4096 {
        assert_eq!(drop_reason(&bench.send(mad)), None);
    }
    assert_eq!(counters(&bench, 1).qp1_dropped, 0);
    assert_eq!(drop_reason(&bench.send(mad)), Some(DropReason::QueueFull));
    assert_eq!(counters(&bench, 1).qp1_dropped, 1);
    let leaving = bench.credit(ONE, 0, 0, 100);
    assert_eq!(
        leaving.iter().filter(|o| matches!(o, Output::Transmit { frame: Frame::Packet(_), .. })).count(),
        100 / 5
    );
    sound(&bench);
}

/// A packet that the driver could not send takes none of the peer's blocks.
#[test]
fn an_unsent_data_packet_is_uncounted_and_frees_its_credit() {
    let mut bench = data_switch(3, DataPathOptions::default());
    bench.credit(TWO, 0, 0, BLOCKS);
    let before = counters(&bench, 2);
    let departed = arrive(&mut bench, 1, packet(1, 2, 0));
    let [(TWO, unsent)] = sent(&departed)[..] else { panic!("{departed:?}") };
    let outputs = bench.input(Input::TransmitDropped { port: TWO, unsent: (&unsent).into() });
    assert_eq!(drop_reason(&outputs), Some(DropReason::TransmitDropped));
    let after = counters(&bench, 2);
    assert_eq!(
        (after.port_xmit_pkts, after.port_xmit_discards),
        (before.port_xmit_pkts, before.port_xmit_discards + 1)
    );
    assert_eq!(sent(&arrive(&mut bench, 1, packet(1, 2, 0))).len(), 1, "there is credit for it still");
    sound(&bench);
}
