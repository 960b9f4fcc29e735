//! Each optional counter is caused by the event that it is named after, and by no other.

use super::tests::ask;
use super::*;
use crate::testing::*;
use crate::{DropReason, Input};
use weft_wire::{Lid, Mtu, NodeType, Packet, PortState, SlToVlTable, VirtualLane, vcrc};

fn get<const N: usize>(bench: &mut Bench, attribute: AttributeId, op_code: u8, port: u8) -> [u8; N] {
    let (status, mad) = ask(bench, Method::Get, attribute, &[op_code, port, 0, 0]);
    assert_eq!(status, status::OK, "{attribute}");
    *mad.0[PERF_DATA].first_chunk().unwrap()
}

fn errors(bench: &mut Bench, port: u8) -> [u16; 6] {
    let found = PortRcvErrorDetails::decode(&get(bench, AttributeId::PORT_RCV_ERROR_DETAILS, 0, port));
    [
        found.port_local_physical_errors,
        found.port_malformed_pkt_errors,
        found.port_buffer_overrun_errors,
        found.port_dlid_mapping_errors,
        found.port_vl_mapping_errors,
        found.port_looping_errors,
    ]
}

fn discards(bench: &mut Bench, port: u8) -> [u16; 4] {
    let found = PortXmitDiscardDetails::decode(&get(bench, AttributeId::PORT_XMIT_DISCARD_DETAILS, 0, port));
    [
        found.port_inactive_discards,
        found.port_neighbor_mtu_discards,
        found.port_sw_lifetime_limit_discards,
        found.port_sw_hoq_lifetime_limit_discards,
    ]
}

/// A switch at LID 5 whose ports 1 and 2 are Active, and port 3 down: LID 8 by port 2, 9 by port 3, 3 by port 1.
fn active_switch() -> Bench {
    let mut bench = switch(3);
    for port in [1, 2] {
        bench.link_up(PortNum(port));
    }
    bench.assign(5);
    for port in [1, 2] {
        bench.set_port_info(port, |info| info.neighbor_mtu = Mtu::Bytes2048);
        bench.activate(port);
    }
    bench.routes(&[(3, 1), (5, 0), (8, 2), (9, 3)]);
    bench
}

/// A datagram on a data lane with `payload` bytes of payload.
fn datagram(vl: u8, service_level: u8, dlid: u16, payload: usize) -> Packet {
    let mut bytes = gmp_packet(vl, service_level, 3, dlid, &Mad::default()).into_bytes();
    let headers = 28;
    bytes.truncate(headers);
    bytes.resize(headers + payload + 4, 0);
    let words = (bytes.len() / 4) as u16;
    bytes[4] = (words >> 8) as u8;
    bytes[5] = words as u8;
    let end = bytes.len() - 4;
    let check = weft_wire::icrc(&bytes[..end]);
    bytes[end..].copy_from_slice(&check);
    let check = vcrc(&bytes);
    bytes.extend(check);
    Packet::parse(bytes).expect("a packet")
}

#[test]
fn receive_errors_are_counted_by_cause() {
    let mut bench = active_switch();
    let counters = |bench: &Bench| bench.device.port_snapshot(ONE).unwrap().counters;
    let before = counters(&bench);
    assert_eq!(errors(&mut bench, 1), [0; 6]);

    // Damaged: by the driver's check, and by the check of the last port.
    bench.input(Input::ReceiveError { port: ONE, physical: true });
    let mut bytes = gmp_packet(0, 0, 3, 5, &Mad::default()).into_bytes();
    bytes[100] ^= 1;
    let check = vcrc(&bytes[..288]);
    bytes[288..].copy_from_slice(&check);
    let outputs = bench.receive(ONE, Packet::parse(bytes).unwrap());
    assert_eq!(drop_reason(&outputs), Some(DropReason::BadIcrc));
    assert_eq!(errors(&mut bench, 1), [2, 0, 0, 0, 0, 0]);

    // Malformed: no packet, a lane that is not in use, longer than the port takes.
    bench.input(Input::ReceiveError { port: ONE, physical: false });
    assert_eq!(drop_reason(&bench.receive(ONE, datagram(9, 0, 8, 64))), Some(DropReason::BadLane));
    assert_eq!(
        drop_reason(&bench.receive(ONE, datagram(0, 0, 8, 4096 + 256))),
        Some(DropReason::LongerThanMtu)
    );
    assert_eq!(errors(&mut bench, 1), [2, 3, 0, 0, 0, 0]);
    assert_eq!(counters(&bench).port_rcv_errors - before.port_rcv_errors, 5);

    // Nowhere to go: no route, no lane, the way that it came.
    assert_eq!(drop_reason(&bench.receive(ONE, datagram(0, 0, 20, 64))), Some(DropReason::NoRoute));
    assert_eq!(errors(&mut bench, 1), [2, 3, 0, 1, 0, 0]);
    let mut table = SlToVlTable::default();
    table.lanes[1] = VirtualLane::MANAGEMENT;
    // A lane that the port of departure does not have.
    table.lanes[2] = VirtualLane(9);
    bench.ask(Method::Set, AttributeId::SlToVlTable, 0x0102, &table.encode());
    assert_eq!(drop_reason(&bench.receive(ONE, datagram(0, 1, 8, 64))), Some(DropReason::NoLane));
    assert_eq!(drop_reason(&bench.receive(ONE, datagram(0, 2, 8, 64))), Some(DropReason::NoLane));
    assert_eq!(errors(&mut bench, 1), [2, 3, 0, 1, 2, 0]);
    assert_eq!(drop_reason(&bench.receive(ONE, datagram(0, 0, 3, 64))), Some(DropReason::Loop));
    assert_eq!(errors(&mut bench, 1), [2, 3, 0, 1, 2, 1]);
    assert_eq!(counters(&bench).port_rcv_switch_relay_errors, 4);
    assert_eq!(errors(&mut bench, 2), [0; 6]);
    assert_eq!(errors(&mut bench, 255), [2, 3, 0, 1, 2, 1]);
    assert_eq!(discards(&mut bench, 255), [0; 4], "nothing was dropped on departure");
}

#[test]
fn why_packets_are_dropped_on_departure() {
    let mut bench = active_switch();
    assert_eq!(drop_reason(&bench.receive(ONE, datagram(0, 0, 9, 64))), Some(DropReason::OutputInactive));
    assert_eq!(discards(&mut bench, 3), [1, 0, 0, 0]);
    assert!(drop_reason(&bench.receive(ONE, datagram(0, 0, 8, 2048))).is_none());
    assert_eq!(drop_reason(&bench.receive(ONE, datagram(0, 0, 8, 4096))), Some(DropReason::TooLong));
    assert_eq!((discards(&mut bench, 2), discards(&mut bench, 1)), ([0, 1, 0, 0], [0; 4]));
    assert_eq!(discards(&mut bench, 255), [1, 1, 0, 0]);
    let total = |port| bench.device.port_snapshot(PortNum(port)).unwrap().counters.port_xmit_discards;
    assert_eq!([1, 2, 3].map(total), [0, 1, 1]);
    assert_eq!(errors(&mut bench, 255), [0; 6], "nothing was wrong on arrival");
}

#[test]
fn a_set_clears_what_it_selects() {
    let mut bench = active_switch();
    for physical in [true, false] {
        bench.input(Input::ReceiveError { port: ONE, physical });
    }
    for (select, left) in [(0b100_u8, [1, 1, 0, 0, 0, 0]), (0b1, [0, 1, 0, 0, 0, 0]), (0xff, [0; 6])] {
        let data = [0, 1, 0, select];
        assert_eq!(ask(&mut bench, Method::Set, AttributeId::PORT_RCV_ERROR_DETAILS, &data).0, status::OK);
        assert_eq!(errors(&mut bench, 1), left);
    }
    let total = bench.device.port_snapshot(ONE).unwrap().counters.port_rcv_errors;
    assert_eq!(total, 2, "the total is another attribute's");
    let set = PortXmitDiscardDetails {
        port_select: ALL_PORTS,
        counter_select: 0xffff,
        port_inactive_discards: 0xffff,
        ..PortXmitDiscardDetails::default()
    };
    ask(&mut bench, Method::Set, AttributeId::PORT_XMIT_DISCARD_DETAILS, &set.encode());
    assert_eq!(discards(&mut bench, 255), [0xffff, 0, 0, 0], "the sum of four ports stops where one does");
    bench.receive(ONE, datagram(0, 0, 9, 64));
    assert_eq!(discards(&mut bench, 3), [0xffff, 0, 0, 0]);
}

fn vl_packets(bench: &mut Bench, op_code: u8, port: u8) -> [u16; 16] {
    PortVlOpPackets::decode(&get(bench, AttributeId::PORT_VL_OP_PACKETS, op_code, port)).port_vl_op_packets
}

fn vl_data(bench: &mut Bench, op_code: u8, port: u8) -> [u32; 16] {
    PortVlOpData::decode(&get(bench, AttributeId::PORT_VL_OP_DATA, op_code, port)).port_vl_op_data
}

const UD_SEND_ONLY: u8 = weft_wire::opcode::UD_SEND_ONLY;

#[test]
fn packets_and_data_by_lane_and_opcode() {
    let mut bench = active_switch();
    // Only what comes from here on.
    for attribute in
        [AttributeId::PORT_VL_OP_PACKETS, AttributeId::PORT_VL_OP_DATA, AttributeId::PORT_OP_RCV_COUNTERS]
    {
        ask(&mut bench, Method::Set, attribute, &[0, 255, 0xff, 0xff]);
    }
    bench.set_port_info(1, |info| info.operational_vls = weft_wire::VlCap::Vl0To7);
    let smps = u32::from(vl_packets(&mut bench, 0, 1)[15]);
    assert_eq!(smps, 2, "the Get and the Set of the line before");
    for (vl, payload) in [(0, 64), (3, 128), (3, 256)] {
        bench.receive(ONE, datagram(vl, 0, 8, payload));
    }
    bench.receive(TWO, datagram(0, 0, 3, 4));
    let mut raw = datagram(0, 0, 8, 64).into_bytes();
    raw[1] &= !3;
    let end = raw.len() - 2;
    let check = vcrc(&raw[..end]);
    raw[end..].copy_from_slice(&check);
    bench.receive(ONE, Packet::parse(raw).unwrap());

    let words = |payload: u32| (28 + payload + 4) / 4;
    for op_code in [0, UD_SEND_ONLY] {
        let packets = vl_packets(&mut bench, op_code, 1);
        assert_eq!((packets[0], packets[3], packets[15]), (1, 2, 2), "a raw packet has no opcode");
        assert_eq!(packets.iter().sum::<u16>(), 5);
        let data = vl_data(&mut bench, op_code, 1);
        assert_eq!((data[0], data[3], data[15]), (words(64), words(128) + words(256), 2 * 72));
        assert_eq!(vl_packets(&mut bench, op_code, 255)[0], 2, "both ports");
        let of_port =
            PortOpRcvCounters::decode(&get(&mut bench, AttributeId::PORT_OP_RCV_COUNTERS, op_code, 1));
        assert_eq!((of_port.port_op_rcv_pkts, of_port.port_op_rcv_data), (5, data.iter().sum()));
        assert_eq!(of_port.op_code, op_code);
    }
    assert_eq!(vl_packets(&mut bench, 4, 1), [0; 16], "there was no RC SEND Only");
}

#[test]
fn lanes_are_cleared_one_by_one() {
    let mut bench = active_switch();
    bench.set_port_info(1, |info| info.operational_vls = weft_wire::VlCap::Vl0To7);
    for vl in [0, 1, 2] {
        bench.receive(ONE, datagram(vl, 0, 8, 64));
    }
    let data = vl_data(&mut bench, 0, 1);
    ask(&mut bench, Method::Set, AttributeId::PORT_VL_OP_PACKETS, &[0, 1, 0, 0b10]);
    assert_eq!(vl_packets(&mut bench, 0, 1)[..3], [1, 0, 1]);
    assert_eq!(vl_data(&mut bench, 0, 1), data, "the data are another attribute's");
    ask(&mut bench, Method::Set, AttributeId::PORT_VL_OP_DATA, &[UD_SEND_ONLY, 1, 0, 0b101]);
    assert_eq!(vl_data(&mut bench, 0, 1)[..3], [0, data[1], 0]);
    let asked = [4, 1, 0xff, 0xff];
    ask(&mut bench, Method::Set, AttributeId::PORT_VL_OP_PACKETS, &asked);
    assert_eq!(vl_packets(&mut bench, 0, 1)[..3], [1, 0, 1], "another opcode's");
}

#[test]
fn credit_wait_counters_of_each_lane_start_at_zero() {
    let mut bench = active_switch();
    bench.receive(ONE, datagram(0, 0, 8, 64));
    let waits: [u8; 36] = get(&mut bench, AttributeId::PORT_VL_XMIT_WAIT_COUNTERS, 0, 255);
    assert_eq!(PortVlXmitWaitCounters::decode(&waits).port_vl_xmit_wait, [0; 16]);
    // Wired all the same.
    bench.device.ports[2].by_lane.xmit_wait[3] = 70_000;
    bench.device.ports[1].by_lane.xmit_wait[4] = 5;
    bench.device.ports[2].by_lane.flow_ctl_update_errors[7] = 9;
    let waits: [u8; 36] = get(&mut bench, AttributeId::PORT_VL_XMIT_WAIT_COUNTERS, 0, 255);
    assert_eq!(PortVlXmitWaitCounters::decode(&waits).port_vl_xmit_wait[3..5], [0xffff, 5]);
    let errors: [u8; 8] = get(&mut bench, AttributeId::PORT_VL_XMIT_FLOW_CTL_UPDATE_ERRORS, 0, 2);
    let errors = PortVlXmitFlowCtlUpdateErrors::decode(&errors).port_vl_xmit_flow_ctl_update_errors;
    assert_eq!((errors[6], errors[7]), (0, 3), "two bits stop at three");
    let set = [0, 255, 0xff, 0xff];
    ask(&mut bench, Method::Set, AttributeId::PORT_VL_XMIT_WAIT_COUNTERS, &set);
    ask(&mut bench, Method::Set, AttributeId::PORT_VL_XMIT_FLOW_CTL_UPDATE_ERRORS, &set);
    assert_eq!(bench.device.ports[2].by_lane.xmit_wait, [0; 16]);
    assert_eq!(bench.device.ports[2].by_lane.flow_ctl_update_errors, [0; 16]);
    let flow: [u8; 12] = get(&mut bench, AttributeId::PORT_FLOW_CTL_COUNTERS, 0, 255);
    let flow = PortFlowCtlCounters::decode(&flow);
    // Two links came up: eight lanes sent, and fifteen received, seven of which do not exist here.
    assert_eq!((flow.port_xmit_flow_pkts, flow.port_rcv_flow_pkts), (16, 30));
}

/// A host drops for the same reasons.
#[test]
fn a_host_refuses_what_is_longer_than_it_takes() {
    let mut small = config(NodeType::Hca, 1);
    small.options.mtu_cap = Mtu::Bytes1024;
    let mut bench = Bench::new(&small);
    bench.link_up(ONE);
    assert_eq!(
        bench.set_port_info(0, |info| (info.lid, info.neighbor_mtu) = (Lid(7), Mtu::Bytes1024)),
        status::OK
    );
    bench.activate(0);
    assert_eq!(bench.state(ONE), PortState::Active);
    assert_eq!(drop_reason(&bench.receive(ONE, datagram(0, 0, 7, 1024))), Some(DropReason::NotAMad));
    assert_eq!(drop_reason(&bench.receive(ONE, datagram(0, 0, 7, 1152))), Some(DropReason::LongerThanMtu));
}
