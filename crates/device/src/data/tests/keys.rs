//! Partition keys at hosts and switches: what is dropped, counted and reported to the manager.

use crate::Frame;
use weft_wire::{AttributeId, Details, Method, Notice, PKeyTable, Smp, trap};

use super::*;

const FOREIGN: PKey = PKey(0x8123);

fn foreign(slid: u16, dlid: u16) -> DataPacket {
    DataPacket { p_key: FOREIGN, src_qp: QpNum(3), ..packet(slid, dlid, 2) }
}

/// The notices that were sent.
fn traps(outputs: &[Output]) -> Vec<Details> {
    let trap = |output: &Output| match output {
        Output::Transmit { frame: Frame::Packet(packet), .. } if packet.vl() == VirtualLane::MANAGEMENT => {
            packet.mad().filter(|mad| Smp::method.get(&mad.0) == Method::Trap)
        }
        _ => None,
    };
    outputs.iter().filter_map(trap).map(|mad| Notice::from_smp_data(mad.smp_data()).details()).collect()
}

#[test]
fn a_host_takes_no_packet_of_a_partition_that_it_is_not_in() {
    let mut bench = data_hca(DataPathOptions::default());
    let outputs = arrive(&mut bench, 1, foreign(9, 7));
    assert_eq!((accepted(&outputs), drop_reason(&outputs)), (0, Some(DropReason::BadPKey)));
    let [Details::Key(number, details)] = traps(&outputs)[..] else { panic!("{outputs:?}") };
    assert_eq!((number, details.lid1, details.lid2), (trap::BAD_P_KEY, Lid(9), Lid(7)));
    assert_eq!((details.key, details.qp1, details.qp2), (0x8123, QpNum(3), QpNum(9)));
    assert_eq!((details.service_level, details.gid2.guid), (ServiceLevel(2), weft_wire::Guid(0x101)));
    // Whoever sends many does not decide how many traps there are.
    assert!(traps(&arrive(&mut bench, 1, foreign(9, 7))).is_empty());
    assert_eq!(bench.port_info(0).p_key_violations, 2);
    assert_eq!(accepted(&arrive(&mut bench, 1, packet(9, 7, 0))), 1);
    assert_eq!(bench.port_info(0).p_key_violations, 2);
    sound(&bench);
}

#[test]
fn two_limited_members_are_no_partition() {
    let mut bench = data_hca(DataPathOptions::default());
    let mut table = PKeyTable { p_keys: [PKey(0); 32] };
    (table.p_keys[0], table.p_keys[1]) = (PKey(0x7fff), PKey(0x8123));
    bench.ask(Method::Set, AttributeId::PKeyTable, 0, &table.encode());
    let mut takes =
        |p_key| accepted(&arrive(&mut bench, 1, DataPacket { p_key: PKey(p_key), ..packet(9, 7, 0) }));
    assert_eq!([0xffff, 0x7fff, 0x8123, 0x0123, 0x0000].map(&mut takes), [1, 0, 1, 1, 0]);
}

/// A switch with a table of the default partition alone at each port, and enforcement at port 1.
fn enforcing(inbound: bool, outbound: bool) -> Bench {
    let mut bench = data_switch(3, DataPathOptions::default());
    let set = |info: &mut weft_wire::PortInfo| {
        (info.partition_enforcement_inbound, info.partition_enforcement_outbound) = (inbound, outbound);
    };
    assert_eq!(bench.set_port_info(1, set), 0);
    assert_eq!(bench.set_port_info(0, |info| info.master_sm_lid = Lid(3)), 0);
    for port in 1..=3 {
        bench.credit(PortNum(port), 0, 0, 2048);
    }
    bench
}

#[test]
fn a_switch_enforces_partitions_on_arrival() {
    let mut bench = enforcing(true, false);
    let outputs = arrive(&mut bench, 1, foreign(1, 2));
    assert_eq!((sent(&outputs).len(), drop_reason(&outputs)), (0, Some(DropReason::PartitionInbound)));
    let [Details::SwitchKey(number, details)] = traps(&outputs)[..] else { panic!("{outputs:?}") };
    assert_eq!((number, details.p_key, details.port_num), (trap::BAD_P_KEY_AT_SWITCH, FOREIGN, ONE));
    assert_eq!((details.lid1, details.lid2, details.switch_lid), (Lid(1), Lid(2), Lid(50)));
    assert!(traps(&arrive(&mut bench, 1, foreign(1, 2))).is_empty(), "one trap until it is heard");
    // A foreign packet may leave port 1, one of its own may enter it, and port 3 does not check.
    for (port, packet) in [(2, foreign(2, 1)), (1, packet(1, 2, 0)), (3, foreign(3, 2))] {
        assert_eq!(sent(&arrive(&mut bench, port, packet)).len(), 1);
    }
    let errors = |port| {
        (
            counters(&bench, port).port_rcv_constraint_errors,
            counters(&bench, port).port_xmit_constraint_errors,
        )
    };
    assert_eq!([1, 2, 3].map(errors), [(2, 0), (0, 0), (0, 0)]);
    sound(&bench);
}

#[test]
fn a_switch_enforces_partitions_on_departure() {
    let mut bench = enforcing(false, true);
    let outputs = arrive(&mut bench, 2, foreign(2, 1));
    assert_eq!((sent(&outputs).len(), drop_reason(&outputs)), (0, Some(DropReason::PartitionOutbound)));
    assert_eq!(traps(&outputs).len(), 1);
    for (port, packet) in [(1, foreign(1, 2)), (2, packet(2, 1, 0)), (3, foreign(3, 2))] {
        assert_eq!(sent(&arrive(&mut bench, port, packet)).len(), 1);
    }
    let errors = |port| {
        (
            counters(&bench, port).port_rcv_constraint_errors,
            counters(&bench, port).port_xmit_constraint_errors,
        )
    };
    assert_eq!([1, 2, 3].map(errors), [(0, 1), (0, 0), (0, 0)]);
    sound(&bench);
}

/// Limited hosts reach a full one through a switch that holds everybody's own keys, and each other they do not.
#[test]
fn a_switch_that_holds_true_memberships() {
    let mut bench = enforcing(true, true);
    let both = |info: &mut weft_wire::PortInfo| {
        (info.partition_enforcement_inbound, info.partition_enforcement_outbound) = (true, true);
    };
    let (limited, full) = (PKey(0x7fff), PKey(0xffff));
    for (port, key) in [(1_u32, limited), (2, full), (3, limited)] {
        assert_eq!(bench.set_port_info(port, both), 0);
        let mut table = PKeyTable { p_keys: [PKey(0); 32] };
        table.p_keys[0] = key;
        bench.ask(Method::Set, AttributeId::PKeyTable, port << 16, &table.encode());
    }
    let (inbound, outbound) = (Some(DropReason::PartitionInbound), Some(DropReason::PartitionOutbound));
    for (from, to, p_key, dropped) in [
        (1, 2, limited, None),
        (2, 1, full, None),
        (1, 3, limited, outbound),
        (3, 1, limited, outbound),
        (1, 2, full, inbound),
        (2, 1, limited, inbound),
    ] {
        let packet = DataPacket { p_key, ..packet(u16::from(from), to, 0) };
        let outputs = arrive(&mut bench, from, packet);
        assert_eq!(
            (sent(&outputs).len() == 1, drop_reason(&outputs)),
            (dropped.is_none(), dropped),
            "{from} to {to}"
        );
    }
    sound(&bench);
}

#[test]
fn a_wrong_queue_key_of_a_program_is_told_too() {
    let mut bench = data_hca(DataPathOptions::default());
    let route = weft_wire::MadRoute {
        vl: VirtualLane(0),
        dest_qp: QpNum::GSI,
        src_qp: QpNum::GSI,
        q_key: weft_wire::QKey(5),
        ..weft_wire::MadRoute::smp(Lid(7), Lid(9))
    };
    let mut mad = weft_wire::Mad::default();
    (mad.0[0], mad.0[1], mad.0[2], mad.0[3]) = (1, 4, 1, 1);
    let outputs = bench.receive(ONE, weft_wire::Packet::from_mad(&route, &mad));
    let [Details::Key(number, details)] = traps(&outputs)[..] else { panic!("{outputs:?}") };
    assert_eq!((number, details.key, details.lid1), (trap::BAD_Q_KEY, 5, Lid(9)));
    assert_eq!(bench.port_info(0).q_key_violations, 1);
}
