use super::*;
use crate::testing::*;
use weft_wire::{NodeInfo, PortInfo, Smp as SmpLayout};

fn directed_packet(mad: &Mad) -> Packet {
    Packet::from_mad(&MadRoute::smp(Lid::PERMISSIVE, Lid::PERMISSIVE), mad)
}

fn get_node_info() -> Mad {
    smp(Method::Get, AttributeId::NodeInfo, 0, &[])
}

#[test]
fn a_directed_smp_passes_through_and_its_other_bits_survive() {
    let mut bench = switch(4);
    bench.link_up(ONE);
    bench.link_up(TWO);
    let mut mad = direct(get_node_info(), &[1, 2, 3]);
    DirectedSmp::hop_pointer.set(&mut mad.0, 1);
    DirectedSmp::reserved_288.set(&mut mad.0, [0xa5; 28]);
    DirectedSmp::reserved_144.set(&mut mad.0, 0x5a5a);
    let (port, packet) = transmitted(&bench.receive(ONE, directed_packet(&mad))).unwrap();
    let mut wanted = mad;
    DirectedSmp::hop_pointer.set(&mut wanted.0, 2);
    wanted.0[193] = 1;
    assert_eq!((port, packet.mad().unwrap()), (TWO, wanted));
    assert!(packet.check_icrc().is_ok());
    assert_eq!(bench.device.statistics().directed_hops, 1);
}

#[test]
fn the_answer_goes_back_the_way_the_question_came() {
    let mut bench = hca(2);
    bench.link_up(TWO);
    let mut mad = direct(get_node_info(), &[1, 2, 3]);
    DirectedSmp::hop_pointer.set(&mut mad.0, 3);
    let (port, packet) = transmitted(&bench.receive(TWO, directed_packet(&mad))).unwrap();
    let answer = packet.mad().unwrap();
    assert_eq!((port, packet.dlid()), (TWO, Lid::PERMISSIVE));
    assert!(DirectedSmp::direction.get(&answer.0));
    assert_eq!((DirectedSmp::hop_pointer.get(&answer.0), answer.method()), (3, Method::GetResp));
    let info = NodeInfo::decode(answer.smp_attribute());
    assert_eq!((info.local_port_num, info.port_guid, info.num_ports), (TWO, weft_wire::Guid(0x102), 2));
}

/// LID-routed to the switch at LID 5, directed to its port 2, and back by LID.
#[test]
fn a_lid_routed_head() {
    let mut bench = switch(3);
    bench.link_up(ONE);
    bench.link_up(TWO);
    bench.assign(5);
    bench.routes(&[(3, 1), (5, 0)]);
    let mut mad = direct(get_node_info(), &[2]);
    DirectedSmp::dr_slid.set(&mut mad.0, Lid(3));
    let head = Packet::from_mad(&MadRoute::smp(Lid(5), Lid(3)), &mad);
    let (port, packet) = transmitted(&bench.receive(ONE, head)).unwrap();
    assert_eq!((port, packet.dlid()), (TWO, Lid::PERMISSIVE));
    let mut answer = packet.mad().unwrap();
    assert_eq!(DirectedSmp::hop_pointer.get(&answer.0), 1);
    DirectedSmp::direction.set(&mut answer.0, true);
    let (port, packet) = transmitted(&bench.receive(TWO, directed_packet(&answer))).unwrap();
    assert_eq!((port, packet.dlid(), packet.slid()), (ONE, Lid(3), Lid(5)));
    assert_eq!(DirectedSmp::hop_pointer.get(&packet.mad().unwrap().0), 0);
}

/// Directed to this switch, then by LID to LID 9 behind port 2; the answer comes to this switch by LID.
#[test]
fn a_lid_routed_tail() {
    let mut bench = switch(3);
    bench.link_up(ONE);
    bench.link_up(TWO);
    bench.assign(5);
    bench.routes(&[(9, 2), (5, 0)]);
    let mut mad = direct(get_node_info(), &[1]);
    DirectedSmp::hop_pointer.set(&mut mad.0, 1);
    DirectedSmp::dr_dlid.set(&mut mad.0, Lid(9));
    let (port, packet) = transmitted(&bench.receive(ONE, directed_packet(&mad))).unwrap();
    assert_eq!((port, packet.dlid(), packet.slid()), (TWO, Lid(9), Lid(5)));

    let mut far = hca(1);
    far.link_up(ONE);
    far.assign(9);
    let (_, packet) = transmitted(&far.receive(ONE, packet)).unwrap();
    assert_eq!((packet.dlid(), packet.slid()), (Lid(5), Lid(9)));
    assert_eq!(DirectedSmp::hop_pointer.get(&packet.mad().unwrap().0), 2);

    let (port, packet) = transmitted(&bench.receive(TWO, packet)).unwrap();
    assert_eq!((port, packet.dlid()), (ONE, Lid::PERMISSIVE));
    assert_eq!(DirectedSmp::hop_pointer.get(&packet.mad().unwrap().0), 1);
}

/// The tail leads to the very switch that the directed part ends at.
#[test]
fn a_tail_of_no_hops() {
    let mut bench = switch(2);
    bench.link_up(ONE);
    bench.assign(5);
    let mut mad = direct(get_node_info(), &[1]);
    DirectedSmp::hop_pointer.set(&mut mad.0, 1);
    DirectedSmp::dr_dlid.set(&mut mad.0, Lid(5));
    let (port, packet) = transmitted(&bench.receive(ONE, directed_packet(&mad))).unwrap();
    let answer = packet.mad().unwrap();
    assert_eq!((port, packet.dlid(), answer.method()), (ONE, Lid::PERMISSIVE, Method::GetResp));
    assert_eq!(DirectedSmp::hop_pointer.get(&answer.0), 1);
}

/// A request that is on its way back, and an answer that is on its way out.
#[test]
fn a_direction_that_the_method_contradicts() {
    let mut bench = hca(1);
    bench.link_up(ONE);
    bench.attach_manager(ONE);
    for method in [Method::Get, Method::Set, Method::Trap, Method::TrapRepress, Method::GetResp] {
        let outgoing = method == Method::GetResp;
        let mut mad = direct(smp(method, AttributeId::PortInfo, 0, &[0; 64]), &[1]);
        DirectedSmp::hop_pointer.set(&mut mad.0, 1);
        DirectedSmp::direction.set(&mut mad.0, !outgoing);
        SmpLayout::transaction_id.set(&mut mad.0, weft_wire::TransactionId(u64::from(CLIENT.0) << 32 | 5));
        let outputs = bench.receive(ONE, directed_packet(&mad));
        assert_eq!(drop_reason(&outputs), Some(DropReason::BadDirectedRoute), "{method}");
        assert_eq!((transmitted(&outputs), delivered(&outputs)), (None, None), "{method}");
    }
    assert_eq!(bench.device.statistics().smps_answered, 0);
}

#[test]
fn by_lid_to_any_of_the_ports_lids() {
    let mut bench = hca(1);
    bench.link_up(ONE);
    let change = |info: &mut PortInfo| {
        (info.lid, info.lmc) = (Lid(8), 2);
        info.neighbor_mtu = weft_wire::Mtu::Bytes2048;
    };
    assert_eq!(bench.set_port_info(0, change), 0);
    for lid in [8, 9, 11] {
        let packet = Packet::from_mad(&MadRoute::smp(Lid(lid), Lid(3)), &get_node_info());
        let (_, answer) = transmitted(&bench.receive(ONE, packet)).unwrap();
        assert_eq!((answer.slid(), answer.dlid()), (Lid(lid), Lid(3)));
    }
    let packet = Packet::from_mad(&MadRoute::smp(Lid(12), Lid(3)), &get_node_info());
    assert_eq!(drop_reason(&bench.receive(ONE, packet)), Some(DropReason::BadAddress));
}

#[test]
fn the_answer_to_a_new_lid_comes_from_the_old_one() {
    let mut bench = hca(1);
    bench.link_up(ONE);
    bench.assign(7);
    let mut info = bench.port_info(0);
    info.lid = Lid(8);
    info.port_state = weft_wire::PortState::NoChange;
    info.port_physical_state = weft_wire::PhysState::NoChange;
    let set = smp(Method::Set, AttributeId::PortInfo, 0, &info.encode());
    let (_, answer) =
        transmitted(&bench.receive(ONE, Packet::from_mad(&MadRoute::smp(Lid(7), Lid(3)), &set))).unwrap();
    assert_eq!((answer.slid(), answer.mad().unwrap().status()), (Lid(7), 0));
    assert_eq!(bench.port_info(0).lid, Lid(8));
}

#[test]
fn a_packet_that_is_not_an_smp_is_an_error() {
    let mut bench = hca(1);
    bench.link_up(ONE);
    let mut mad = get_node_info();
    SmpLayout::mgmt_class.set(&mut mad.0, MgmtClass::Perf);
    assert_eq!(drop_reason(&bench.receive(ONE, directed_packet(&mad))), Some(DropReason::NotAMad));
    assert_eq!(
        drop_reason(&bench.receive(ONE, directed_packet(&get_node_info()))),
        Some(DropReason::BadAddress),
        "only a directed SMP goes to whoever is there"
    );
    let to_gsi = MadRoute { dest_qp: QpNum::GSI, ..MadRoute::smp(Lid::PERMISSIVE, Lid::PERMISSIVE) };
    let packet = Packet::from_mad(&to_gsi, &direct(get_node_info(), &[1]));
    assert_eq!(drop_reason(&bench.receive(ONE, packet)), Some(DropReason::NotAMad));
    assert_eq!(bench.device.port_snapshot(ONE).unwrap().counters.port_rcv_errors, 2);
}
