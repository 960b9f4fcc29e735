use super::SlToVl;
use crate::testing::*;
use crate::{DropReason, Frame, Output};
use weft_machine::{Machine, Time};
use weft_wire::{
    AttributeId, Lid, Mad, MadRoute, Method, Mtu, Packet, PortNum, ServiceLevel, SlToVlTable, VirtualLane,
    VlCap,
};

fn smp_packet(dlid: u16) -> Packet {
    Packet::from_mad(&MadRoute::smp(Lid(dlid), Lid(1)), &Mad::default())
}

/// Three ports, LID 5, LID 7 behind port 2, LID 8 behind port 3, LID 9 behind a port that does not exist.
fn routed() -> Bench {
    let mut bench = switch(3);
    bench.link_up(ONE);
    bench.link_up(TWO);
    bench.assign(5);
    bench.routes(&[(5, 0), (6, 1), (7, 2), (8, 3), (9, 77), (10, 0)]);
    bench
}

#[test]
fn subnet_management_passes_as_soon_as_the_link_is_up() {
    let mut bench = routed();
    let packet = smp_packet(7);
    let (port, sent) = transmitted(&bench.receive(ONE, packet.clone())).unwrap();
    assert_eq!((port, sent), (TWO, packet), "a forwarded packet is the same packet");
    assert_eq!(bench.device.statistics().forwarded, 1);
}

#[test]
fn unforwardable_packets_are_counted_as_the_spec_requires() {
    for (dlid, reason, relay) in [
        (6, DropReason::Loop, true),
        (9, DropReason::NoRoute, true),
        (10, DropReason::NoRoute, true),
        (20, DropReason::NoRoute, true),
        (64, DropReason::NoRoute, true),
        (0xc001, DropReason::NoRoute, true),
        (8, DropReason::OutputInactive, false),
    ] {
        let mut bench = routed();
        assert_eq!(drop_reason(&bench.receive(ONE, smp_packet(dlid))), Some(reason), "LID {dlid}");
        let counters = |port: u8| bench.device.port_snapshot(PortNum(port)).unwrap().counters;
        assert_eq!(counters(1).port_rcv_switch_relay_errors, u64::from(relay), "LID {dlid}");
        assert_eq!(counters(3).port_xmit_discards, u64::from(!relay), "LID {dlid}");
    }
}

/// 64 times within 100 ms from each to the next, and then no more; whatever is sent again later has its own 64.
#[test]
fn an_smp_that_goes_round_is_dropped_and_no_other() {
    let mut bench = routed();
    let other = Packet::from_mad(&MadRoute::smp(Lid(7), Lid(2)), &Mad::default());
    let passes =
        |bench: &mut Bench, packet: &Packet| transmitted(&bench.receive(ONE, packet.clone())).is_some();
    for round in 0..64 {
        bench.now += Time::from_millis(99);
        assert!(passes(&mut bench, &smp_packet(7)), "round {round}");
        assert!(passes(&mut bench, &other), "round {round}");
    }
    for _ in 0..3 {
        bench.now += Time::from_millis(99);
        assert_eq!(drop_reason(&bench.receive(ONE, smp_packet(7))), Some(DropReason::Loop));
    }
    let counters = bench.device.port_snapshot(ONE).unwrap().counters;
    assert_eq!((counters.port_looping_errors, counters.port_rcv_switch_relay_errors), (3, 3));
    bench.now += Time::from_millis(100);
    assert!((0..64).all(|_| passes(&mut bench, &smp_packet(7))));
    assert!(!passes(&mut bench, &smp_packet(7)));
}

#[test]
fn data_passes_between_active_ports_only() {
    let mut bench = routed();
    let packet = || gmp_packet(0, 0, 1, 7, &Mad::default());
    assert_eq!(drop_reason(&bench.receive(ONE, packet())), Some(DropReason::PortNotReady));
    bench.activate(1);
    assert_eq!(drop_reason(&bench.receive(ONE, packet())), Some(DropReason::OutputInactive));
    assert_eq!(bench.device.port_snapshot(TWO).unwrap().counters.port_xmit_discards, 1);
    bench.activate(2);
    assert_eq!(transmitted(&bench.receive(ONE, packet())).unwrap().0, TWO);
}

#[test]
fn packets_to_a_shared_switch_lid_follow_its_table_row() {
    let mut bench = routed();
    bench.activate(1);
    bench.activate(2);
    bench.assign(5);
    let request = smp(Method::Get, AttributeId::NodeInfo, 0, &[]);
    let managed = Packet::from_mad(&MadRoute::smp(Lid(5), Lid(9)), &request);
    let asked = gmp_packet(0, 0, 9, 5, &request);
    // By a row for port 0 both are the switch's own; by one for a cable both go on, and the LID stays the switch's.
    for (row, leaves) in [(0, None), (2, Some(TWO))] {
        bench.routes(&[(5, row)]);
        for packet in [managed.clone(), asked.clone()] {
            let sent = transmitted(&bench.receive(ONE, packet));
            let passed = sent.filter(|(_, packet)| packet.dlid() == Lid(5)).map(|(port, _)| port);
            assert_eq!(passed, leaves, "the row is {row}");
        }
    }
}

#[test]
fn the_lane_is_that_of_the_service_level() {
    let mut bench = routed();
    for port in [1, 2] {
        let status = bench.set_port_info(port, |info| {
            info.operational_vls = VlCap::Vl0To3;
            info.neighbor_mtu = Mtu::Bytes2048;
        });
        assert_eq!(status, 0);
        bench.activate(port);
    }
    let mut lanes = [VirtualLane(0); 16];
    (lanes[3], lanes[4], lanes[5]) = (VirtualLane(2), VirtualLane(15), VirtualLane(6));
    let table = SlToVlTable { lanes }.encode();
    assert_eq!(bench.ask(Method::Set, AttributeId::SlToVlTable, 0x0102, &table).status(), 0);
    let send = |bench: &mut Bench, sl| bench.receive(ONE, gmp_packet(1, sl, 1, 7, &Mad::default()));
    let (_, packet) = transmitted(&send(&mut bench, 3)).unwrap();
    assert_eq!((packet.vl(), packet.service_level()), (VirtualLane(2), ServiceLevel(3)));
    assert!(packet.check_icrc().is_ok(), "the lane is not under the ICRC");
    assert!(Packet::parse(packet.into_bytes()).is_ok(), "the VCRC is that of the new lane");
    assert_eq!(drop_reason(&send(&mut bench, 4)), Some(DropReason::NoLane));
    assert_eq!(drop_reason(&send(&mut bench, 5)), Some(DropReason::NoLane), "lane 6 is not in use");
    let bad = bench.receive(ONE, gmp_packet(4, 0, 1, 7, &Mad::default()));
    assert_eq!(drop_reason(&bad), Some(DropReason::BadLane));
    assert_eq!(bench.device.port_snapshot(ONE).unwrap().counters.port_rcv_errors, 1);
}

#[test]
fn a_long_packet_does_not_go_to_a_neighbour_with_a_small_mtu() {
    let mut bench = routed();
    for port in [1, 2] {
        assert_eq!(bench.set_port_info(port, |info| info.neighbor_mtu = Mtu::Bytes256), 0);
        bench.activate(port);
    }
    let long = |words: usize| {
        let mut bytes = vec![0u8; words * 4 + 2];
        bytes[1] = 2;
        bytes[3] = 7;
        bytes[4..6].copy_from_slice(&(words as u16).to_be_bytes());
        bytes[7] = 1;
        let end = bytes.len() - 2;
        let check = weft_wire::vcrc(&bytes[..end]);
        bytes[end..].copy_from_slice(&check);
        Packet::parse(bytes).unwrap()
    };
    assert_eq!(drop_reason(&bench.receive(ONE, long(200))), Some(DropReason::TooLong));
    assert_eq!(bench.set_port_info(2, |info| info.neighbor_mtu = Mtu::Bytes1024), 0);
    assert!(transmitted(&bench.receive(ONE, long(200))).is_some());
}

#[test]
fn an_unsent_smp_is_not_counted_as_sent() {
    let mut bench = routed();
    bench
        .device
        .handle_input(bench.now, crate::Input::Arrive { port: ONE, frame: Frame::Packet(smp_packet(7)) });
    let before = bench.device.port_snapshot(TWO).unwrap().counters;
    let Some(Output::Transmit { port: TWO, frame: Frame::Packet(packet) }) = bench.device.poll_output()
    else {
        panic!("no packet")
    };
    let outputs = bench.input(crate::Input::TransmitDropped { port: TWO, unsent: (&packet).into() });
    assert_eq!(drop_reason(&outputs), Some(DropReason::TransmitDropped));
    let after = bench.device.port_snapshot(TWO).unwrap().counters;
    assert_eq!(after.port_xmit_pkts, before.port_xmit_pkts - 1);
    assert_eq!(after.port_xmit_data, before.port_xmit_data - 72);
    assert_eq!(after.port_xmit_discards, 1);
}

/// However often tables are written, none is kept that no one uses, and every place has the one that it was given last.
#[test]
fn tables_of_service_levels_are_kept_once_and_forgotten() {
    let mut all = SlToVl::new(3);
    let table = |lane: u8| {
        let mut table = SlToVlTable::default();
        table.lanes[usize::from(lane / 15)] = VirtualLane(lane % 15);
        table
    };
    let lanes = |all: &SlToVl, input, output| -> [VirtualLane; 16] {
        std::array::from_fn(|sl| all.lane(PortNum(input), PortNum(output), ServiceLevel(sl as u8)))
    };
    let mut expected = [[SlToVlTable::default(); 4]; 4];
    for round in 0..200u8 {
        let (input, output) = (round % 4, round / 4 % 4);
        all.set(input..=input, &(output..=output), table(round));
        expected[usize::from(input)][usize::from(output)] = table(round);
        assert!(all.tables.len() <= 17, "{} tables", all.tables.len());
        for (input, row) in (0..).zip(&expected) {
            for (output, table) in (0..).zip(row) {
                assert_eq!(all.table(PortNum(input), PortNum(output)), Some(table));
                assert_eq!(lanes(&all, input, output), table.lanes);
            }
        }
    }
    // One for all cables, and others for the switch itself.
    for (input, output) in [(1, 2), (1, 3), (2, 1), (2, 3), (3, 1), (3, 2)] {
        assert_eq!(all.everywhere, None);
        all.set(input..=input, &(output..=output), table(17));
        expected[usize::from(input)][usize::from(output)] = table(17);
    }
    assert_eq!(all.everywhere, Some(table(17)));
    for (input, row) in (0..).zip(&expected) {
        for (output, table) in (0..).zip(row) {
            assert_eq!(lanes(&all, input, output), table.lanes);
        }
    }
    all.set(0..=3, &(0..=3), table(7));
    assert_eq!(all.lane(PortNum(2), PortNum(3), ServiceLevel(0)), VirtualLane(7));
    assert!(all.table(PortNum(4), PortNum(4)).is_none());
}
