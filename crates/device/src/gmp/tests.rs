use super::*;
use crate::Frame;
use crate::testing::*;
use weft_wire::{AttributeId, Method, PortCounters, Registration};

fn gmp(class: MgmtClass, method: Method, attribute_id: AttributeId) -> Mad {
    let mut mad = smp(method, attribute_id, 0, &[]);
    PerfMad::mgmt_class.set(&mut mad.0, class);
    mad
}

fn active() -> Bench {
    let mut bench = hca(1);
    bench.link_up(ONE);
    bench.assign(7);
    bench.activate(0);
    bench
}

#[test]
fn an_unknown_class_is_answered() {
    let mut bench = active();
    let request = gmp(MgmtClass::BoardMgmt, Method::Get, AttributeId::ClassPortInfo);
    let (_, packet) = transmitted(&bench.receive(ONE, gmp_packet(0, 2, 3, 7, &request))).unwrap();
    let answer = packet.mad().unwrap();
    assert_eq!((packet.slid(), packet.dlid(), packet.service_level()), (Lid(7), Lid(3), ServiceLevel(2)));
    assert_eq!((answer.method(), answer.status()), (Method::GetResp, status::BAD_VERSION));
    let (bth, deth) = (packet.bth().unwrap(), packet.deth().unwrap());
    assert_eq!((bth.dest_qp, deth.q_key), (QpNum::GSI, QKey::GSI));
}

#[test]
fn keys_are_checked_and_counted() {
    let mut bench = active();
    let request = gmp(MgmtClass::Perf, Method::Get, AttributeId::ClassPortInfo);
    let route = |p_key, q_key, dest_qp| MadRoute {
        p_key: PKey(p_key),
        q_key: QKey(q_key),
        dest_qp: QpNum(dest_qp),
        vl: VirtualLane(0),
        ..MadRoute::smp(Lid(7), Lid(3))
    };
    let mut ask = |p_key, q_key, dest_qp| {
        let packet = Packet::from_mad(&route(p_key, q_key, dest_qp), &request);
        let outputs = bench.receive(ONE, packet);
        let on_data = |o: &Output| matches!(o, Output::Transmit { frame: Frame::Packet(packet), .. } if packet.vl().0 < 15);
        assert_eq!(outputs.iter().any(on_data), drop_reason(&outputs).is_none());
        drop_reason(&outputs)
    };
    assert_eq!(ask(0xffff, QKey::GSI.0, 1), None);
    assert_eq!(ask(0x8001, QKey::GSI.0, 1), Some(DropReason::BadPKey));
    assert_eq!(ask(0xffff, 1, 1), Some(DropReason::BadQKey));
    assert_eq!(ask(0xffff, QKey::GSI.0, 0), Some(DropReason::NotAMad));
    assert_eq!(ask(0xffff, QKey::GSI.0, 5), Some(DropReason::NotAMad));
    let info = bench.port_info(0);
    assert_eq!((info.p_key_violations, info.q_key_violations), (1, 1));
}

/// An answer has the answering port's own membership: a limited member does not take what it has sent itself.
#[test]
fn a_limited_member_is_answered_by_a_full_one() {
    let mut bench = active();
    let request = gmp(MgmtClass::Perf, Method::Get, AttributeId::ClassPortInfo);
    let gsi = MadRoute { dest_qp: QpNum::GSI, src_qp: QpNum::GSI, ..MadRoute::smp(Lid(7), Lid(3)) };
    let route = MadRoute { p_key: PKey(0x7fff), q_key: QKey::GSI, vl: VirtualLane(0), ..gsi };
    let (_, packet) = transmitted(&bench.receive(ONE, Packet::from_mad(&route, &request))).unwrap();
    assert_eq!(packet.bth().unwrap().p_key, PKey::DEFAULT_FULL);
}

#[test]
fn an_acknowledgement_that_nobody_wants_is_not_a_request() {
    let mut bench = active();
    let mut ack = gmp(MgmtClass::SubnAdm, Method::GetTable, AttributeId::ClassPortInfo);
    let header = weft_wire::RmppHeader { version: 1, active: true, ..Default::default() };
    ack.set_rmpp(&weft_wire::RmppHeader { kind: RmppType::Ack, ..header });
    let outputs = bench.receive(ONE, gmp_packet(0, 1, 3, 7, &ack));
    assert_eq!(drop_reason(&outputs), Some(DropReason::NoReceiver));
    ack.set_rmpp(&weft_wire::RmppHeader { kind: RmppType::Data, ..header });
    assert!(
        transmitted(&bench.receive(ONE, gmp_packet(0, 1, 3, 7, &ack))).is_some(),
        "a request in segments is one"
    );
}

#[test]
fn programs_talk_over_the_data_lanes() {
    let mut bench = active();
    let registrations = vec![Registration::new(MgmtClass::SubnAdm, 1, [Method::Get])];
    bench.input(crate::Input::Attach { client: CLIENT, port: ONE, registrations });
    let request = gmp(MgmtClass::SubnAdm, Method::Get, AttributeId::ClassPortInfo);
    let (client, mad) = delivered(&bench.receive(ONE, gmp_packet(0, 1, 3, 7, &request))).unwrap();
    assert_eq!((client, mad.lid, mad.service_level, mad.mad), (CLIENT, Lid(3), ServiceLevel(1), request));
    let (_, packet) = transmitted(&bench.send(AddressedMad::gmp(Lid(3), ServiceLevel(1), request))).unwrap();
    assert_eq!((packet.vl(), packet.dlid()), (VirtualLane(0), Lid(3)));
    let own = gmp(MgmtClass::Perf, Method::Get, AttributeId::ClassPortInfo);
    let (_, answer) = delivered(&bench.send(AddressedMad::gmp(Lid(7), ServiceLevel(0), own))).unwrap();
    assert_eq!((answer.lid, answer.mad.method(), answer.mad.status()), (Lid(7), Method::GetResp, 0));
}

#[test]
fn a_damaged_packet_is_an_error_of_the_port() {
    let mut bench = active();
    let request = gmp(MgmtClass::Perf, Method::Get, AttributeId::ClassPortInfo);
    let mut bytes = gmp_packet(0, 0, 3, 7, &request).into_bytes();
    bytes[100] ^= 1;
    let check = weft_wire::vcrc(&bytes[..288]);
    bytes[288..].copy_from_slice(&check);
    let outputs = bench.receive(ONE, Packet::parse(bytes).unwrap());
    assert_eq!(drop_reason(&outputs), Some(DropReason::BadIcrc));
    assert_eq!(bench.device.port_snapshot(ONE).unwrap().counters.port_rcv_errors, 1);
}

#[test]
fn a_switch_answers_through_its_table() {
    let mut bench = switch(2);
    bench.link_up(ONE);
    bench.assign(5);
    bench.activate(1);
    bench.routes(&[(3, 1), (5, 0)]);
    let mut request = gmp(MgmtClass::Perf, Method::Get, AttributeId::PORT_COUNTERS);
    request.0[65] = 1;
    let (port, packet) = transmitted(&bench.receive(ONE, gmp_packet(0, 0, 3, 5, &request))).unwrap();
    assert_eq!((port, packet.slid(), packet.dlid()), (ONE, Lid(5), Lid(3)));
    let counters = PortCounters::decode(packet.mad().unwrap().smp_attribute());
    let live = bench.device.port_snapshot(ONE).unwrap().counters;
    assert_eq!(u64::from(counters.port_rcv_pkts), live.port_rcv_pkts);
    assert_eq!(u64::from(counters.port_xmit_data), live.port_xmit_data - 72, "the answer had not left yet");
    assert_eq!(bench.device.statistics().gmps_answered, 1);
}
