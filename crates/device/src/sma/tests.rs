use super::*;
use crate::testing::*;
use crate::{DeviceOptions, Input};
use weft_wire::{
    GuidInfo, Lid, LinearForwardingTable, Mtu, NodeDescription, NodeInfo, NodeType, Notice, PKey, PKeyTable,
    PhysState, PortInfo, PortState, SlToVlTable, SwitchInfo, VirtualLane, VlArbitrationTable, VlCap,
    capability,
};

fn up(mut bench: Bench) -> Bench {
    bench.link_up(ONE);
    bench
}

#[test]
fn a_port_is_not_disabled_and_armed_at_once() {
    for state in [PortState::Armed, PortState::Active] {
        let mut bench = switch(2);
        bench.link_up(ONE);
        bench.link_up(TWO);
        if state == PortState::Active {
            assert_eq!(bench.set_port_info(2, |info| info.port_state = PortState::Armed), 0);
        }
        let before = bench.port_info(2);
        let both = |info: &mut PortInfo| {
            (info.port_state, info.port_physical_state) = (state, weft_wire::PhysState::Disabled);
        };
        assert_eq!(bench.set_port_info(2, both), status::BAD_VALUE);
        assert_eq!(bench.port_info(2), before);
    }
}

#[test]
fn the_sma_answers_node_info_and_description() {
    let mut bench = up(switch(3));
    let answer = bench.ask(Method::Get, AttributeId::NodeDescription, 0, &[]);
    assert_eq!(NodeDescription::decode(answer.smp_attribute()).to_text(), "bench");
    let info = NodeInfo::decode(bench.ask(Method::Get, AttributeId::NodeInfo, 0, &[]).smp_attribute());
    assert_eq!((info.node_type, info.num_ports, info.local_port_num), (NodeType::Switch, 3, ONE));
    assert_eq!((info.node_guid, info.port_guid), (weft_wire::Guid(0xabc), weft_wire::Guid(0xabe)));
    assert_eq!((info.vendor_id, info.device_id, info.partition_cap), (0x2c9, 0x1011, 64));
}

#[test]
fn invalid_sma_requests_get_their_status() {
    let mut bench = up(switch(3));
    let mut status = |method, attribute, modifier| bench.ask(method, attribute, modifier, &[]).status();
    for (method, attribute, modifier, wanted) in [
        (Method::Set, AttributeId::NodeInfo, 0, status::BAD_METHOD_ATTRIBUTE),
        (Method::Get, AttributeId::from_code(0x99), 0, status::BAD_METHOD_ATTRIBUTE),
        (Method::Get, AttributeId::SmInfo, 0, status::BAD_METHOD_ATTRIBUTE),
        (Method::GetTable, AttributeId::NodeInfo, 0, status::BAD_METHOD),
        (Method::from_code(0x33), AttributeId::NodeInfo, 0, status::BAD_METHOD),
        (Method::Get, AttributeId::PortInfo, 4, status::BAD_VALUE),
        (Method::Get, AttributeId::PortInfo, 3, status::OK),
        (Method::Get, AttributeId::PortInfo, 0x8000_0003, status::OK),
        (Method::Get, AttributeId::LinearForwardingTable, 767, status::OK),
        (Method::Get, AttributeId::LinearForwardingTable, 768, status::BAD_VALUE),
        (Method::Get, AttributeId::MulticastForwardingTable, 31, status::OK),
        (Method::Get, AttributeId::MulticastForwardingTable, 32, status::BAD_VALUE),
        (Method::Get, AttributeId::MulticastForwardingTable, 1 << 28, status::BAD_VALUE),
        (Method::Get, AttributeId::GuidInfo, 3, status::OK),
        (Method::Get, AttributeId::GuidInfo, 4, status::BAD_VALUE),
        (Method::Get, AttributeId::PKeyTable, 1, status::OK),
        (Method::Get, AttributeId::PKeyTable, 2, status::BAD_VALUE),
        (Method::Get, AttributeId::PKeyTable, 0x3_0001, status::OK),
        (Method::Get, AttributeId::PKeyTable, 0x4_0000, status::BAD_VALUE),
        (Method::Get, AttributeId::SlToVlTable, 0x0303, status::OK),
        (Method::Get, AttributeId::SlToVlTable, 0x0304, status::BAD_VALUE),
        (Method::Get, AttributeId::SlToVlTable, 0x3_0000, status::BAD_VALUE),
        (Method::Get, AttributeId::VlArbitrationTable, 0x1_0001, status::OK),
        (Method::Get, AttributeId::VlArbitrationTable, 0x2_0001, status::BAD_VALUE),
        (Method::Get, AttributeId::VlArbitrationTable, 0x3_0001, status::OK),
        (Method::Get, AttributeId::VlArbitrationTable, 0x5_0001, status::BAD_VALUE),
        (Method::Get, AttributeId::VlArbitrationTable, 0x1_0000, status::BAD_VALUE),
    ] {
        assert_eq!(status(method, attribute, modifier), wanted, "{method} {attribute} {modifier:#x}");
    }
    let mut old = smp(Method::Get, AttributeId::NodeInfo, 0, &[]);
    SmpLayout::class_version.set(&mut old.0, 2);
    assert_eq!(bench.ask_through(ONE, old).unwrap().status(), status::BAD_VERSION);
    let mut bench = up(hca(2));
    for attribute in
        [AttributeId::SwitchInfo, AttributeId::LinearForwardingTable, AttributeId::MulticastForwardingTable]
    {
        assert_eq!(bench.ask(Method::Get, attribute, 0, &[]).status(), status::BAD_METHOD_ATTRIBUTE);
    }
    assert_eq!(bench.ask(Method::Get, AttributeId::PortInfo, 2, &[]).status(), status::BAD_VALUE);
}

#[test]
fn an_hcas_port_is_told_what_it_needs() {
    let mut bench = up(hca(1));
    let status = bench.set_port_info(1, |info| {
        info.lid = Lid(12);
        info.lmc = 2;
        info.master_sm_lid = Lid(3);
        info.neighbor_mtu = Mtu::Bytes2048;
        info.operational_vls = VlCap::Vl0To3;
        info.subnet_timeout = 18;
        info.client_reregister = true;
        info.local_phy_errors = 8;
        // Read only: not an error, and without effect.
        (info.capability_mask, info.vl_cap, info.mtu_cap) = (0, VlCap::Vl0, Mtu::Bytes256);
        (info.link_width_supported, info.local_port_num, info.guid_cap) = (0, PortNum(9), 0);
    });
    assert_eq!(status, status::OK);
    let info = bench.port_info(0);
    assert_eq!((info.lid, info.lmc, info.master_sm_lid), (Lid(12), 2, Lid(3)));
    assert_eq!((info.neighbor_mtu, info.operational_vls), (Mtu::Bytes2048, VlCap::Vl0To3));
    assert_eq!((info.subnet_timeout, info.local_phy_errors, info.client_reregister), (18, 8, false));
    assert_eq!((info.vl_cap, info.mtu_cap, info.local_port_num), (VlCap::Vl0To7, Mtu::Bytes4096, ONE));
    assert_eq!((info.link_width_supported, info.link_width_active), (3, 2));
    assert_eq!((info.link_speed_active, info.link_speed_ext_active), (4, 1));
    let wanted = capability::IS_TRAP_SUPPORTED | capability::IS_EXTENDED_SPEEDS_SUPPORTED;
    assert_eq!(info.capability_mask & wanted, wanted);
    assert_eq!(bench.device.statistics().lid_changes, 1);
}

#[test]
fn a_bad_value_changes_nothing() {
    type Change = fn(&mut PortInfo);
    let changes: [Change; 14] = [
        |info| info.lid = Lid(0xc000),
        |info| info.master_sm_lid = Lid::PERMISSIVE,
        |info| (info.lid, info.lmc) = (Lid(13), 1),
        |info| info.neighbor_mtu = Mtu::from_code(0),
        |info| info.neighbor_mtu = Mtu::from_code(6),
        |info| info.operational_vls = VlCap::Vl0To14,
        |info| info.link_width_enabled = 4,
        |info| info.link_speed_enabled = 8,
        |info| info.link_speed_ext_enabled = 2,
        |info| info.link_down_default_state = PhysState::Disabled,
        |info| info.port_state = weft_wire::PortState::Initialize,
        |info| info.port_state = weft_wire::PortState::Active,
        |info| info.port_physical_state = PhysState::LinkUp,
        |info| info.port_physical_state = PhysState::Training,
    ];
    for (number, change) in changes.into_iter().enumerate() {
        let mut bench = up(hca(1));
        let before = bench.port_info(0);
        let status = bench.set_port_info(0, |info| {
            info.subnet_timeout = 7;
            change(info);
        });
        assert_eq!(status, status::BAD_VALUE, "change {number}");
        assert_eq!(bench.port_info(0), before, "change {number}");
    }
}

#[test]
fn widths_and_speeds_have_codes_for_no_change_and_all() {
    let mut bench = up(switch(2));
    let mut set = |width, speed, ext| {
        let status = bench.set_port_info(2, |info| {
            (info.link_width_enabled, info.link_speed_enabled, info.link_speed_ext_enabled) =
                (width, speed, ext);
        });
        let info = bench.port_info(2);
        (status, info.link_width_enabled, info.link_speed_enabled, info.link_speed_ext_enabled)
    };
    assert_eq!(set(1, 1, 30), (0, 1, 1, 0));
    assert_eq!(set(0, 0, 0), (0, 1, 1, 0));
    assert_eq!(set(0xff, 0xf, 31), (0, 3, 7, 1));
    let parameters = weft_wire::LinkParameters { width: 1, speed: 1, speed_ext: 0 };
    assert_eq!(set(1, 1, 30).0, 0);
    assert_eq!(bench.device.ports[2].parameters(), parameters);
}

#[test]
fn a_switchs_ports_have_what_belongs_to_them() {
    let mut bench = up(switch(2));
    bench.assign(5);
    assert_eq!(bench.set_port_info(0, |info| (info.lid, info.lmc) = (Lid(8), 1)), status::BAD_VALUE);
    let status = bench.set_port_info(2, |info| {
        (info.lid, info.m_key) = (Lid(77), MKey(9));
        info.hoq_life = 5;
        info.vl_high_limit = 3;
    });
    assert_eq!(status, 0);
    let (port0, port2) = (bench.port_info(0), bench.port_info(2));
    assert_eq!((port0.lid, port2.lid, port2.m_key), (Lid(5), Lid(0), MKey(0)));
    assert_eq!((port2.hoq_life, port2.vl_high_limit, port2.capability_mask), (5, 3, 0));
    assert_eq!(port0.port_physical_state, PhysState::LinkUp);
    assert_eq!(port0.local_port_num, ONE);
}

#[test]
fn forwarding_tables_are_counted_when_written() {
    let mut bench = up(switch(20));
    let mut table = LinearForwardingTable { ports: [PortNum::NONE; 64] };
    table.ports[3] = TWO;
    let answer = bench.ask(Method::Set, AttributeId::LinearForwardingTable, 2, &table.encode());
    assert_eq!(LinearForwardingTable::decode(answer.smp_attribute()), table);
    assert_eq!(bench.device.forwarding_table()[131], TWO);
    assert_eq!(bench.device.statistics().lft_writes, 1);
    let answer = bench.ask(Method::Get, AttributeId::LinearForwardingTable, 0, &[]);
    assert_eq!(LinearForwardingTable::decode(answer.smp_attribute()).ports, [PortNum::NONE; 64]);
    let masks = weft_wire::MulticastForwardingTable { port_masks: [0x55; 32] };
    let modifier = 1 << 28 | 3;
    bench.ask(Method::Set, AttributeId::MulticastForwardingTable, modifier, &masks.encode());
    let answer = bench.ask(Method::Get, AttributeId::MulticastForwardingTable, modifier, &[]);
    assert_eq!(weft_wire::MulticastForwardingTable::decode(answer.smp_attribute()), masks);
    assert_eq!((bench.device.statistics().lft_writes, bench.device.statistics().mft_writes), (1, 1));
}

#[test]
fn switch_info_keeps_its_capabilities() {
    let mut bench = up(switch(2));
    let get = |bench: &mut Bench| {
        SwitchInfo::decode(bench.ask(Method::Get, AttributeId::SwitchInfo, 0, &[]).smp_attribute())
    };
    let before = get(&mut bench);
    assert!(before.port_state_change, "port 1 came up");
    assert_eq!((before.linear_fdb_cap, before.optimized_sl_to_vl_mapping), (0xc000, 1));
    let wanted = SwitchInfo { linear_fdb_top: 99, life_time_value: 3, ..SwitchInfo::default() };
    bench.ask(Method::Set, AttributeId::SwitchInfo, 0, &wanted.encode());
    let after = get(&mut bench);
    assert!(after.port_state_change, "only writing 1 clears it");
    assert_eq!((after.linear_fdb_top, after.life_time_value, after.linear_fdb_cap), (99, 3, 0xc000));
    let clear = SwitchInfo { port_state_change: true, ..wanted };
    bench.ask(Method::Set, AttributeId::SwitchInfo, 0, &clear.encode());
    assert!(!get(&mut bench).port_state_change);
    let beyond = SwitchInfo { linear_fdb_top: 0xc000, ..wanted };
    let answer = bench.ask(Method::Set, AttributeId::SwitchInfo, 0, &beyond.encode());
    assert_eq!(answer.status(), status::BAD_VALUE);
}

#[test]
fn service_levels_with_wildcards() {
    let lanes = |lane| SlToVlTable { lanes: [VirtualLane(lane); 16] };
    let mut bench = up(switch(3));
    let found = |bench: &Bench| {
        let mut found = String::new();
        for input in 0..4 {
            for output in 0..4 {
                let lane =
                    bench.device.sl_to_vl.lane(PortNum(input), PortNum(output), weft_wire::ServiceLevel(5));
                found.push_str(&lane.to_string());
            }
            found.push(' ');
        }
        found
    };
    for (modifier, lane, wanted) in [
        (0x0102, 1, "0000 0010 0000 0000 "),
        (0x2_0003, 2, "0002 0012 0002 0002 "),
        (0x1_0200, 3, "0002 0012 3333 0002 "),
        (0x3_0000, 4, "4444 4444 4444 4444 "),
    ] {
        let answer = bench.ask(Method::Set, AttributeId::SlToVlTable, modifier, &lanes(lane).encode());
        assert_eq!(answer.status(), 0);
        assert_eq!(found(&bench), wanted, "{modifier:#x}");
    }
    let mut config = config(NodeType::Switch, 3);
    config.options.optimized_sl_to_vl_mapping = false;
    let mut bench = up(Bench::new(&config));
    let answer = bench.ask(Method::Set, AttributeId::SlToVlTable, 0x3_0000, &lanes(1).encode());
    assert_eq!(answer.status(), status::BAD_VALUE);
    let mut bench = up(hca(1));
    bench.ask(Method::Set, AttributeId::SlToVlTable, 0, &lanes(2).encode());
    let answer = bench.ask(Method::Get, AttributeId::SlToVlTable, 0, &[]);
    assert_eq!(SlToVlTable::decode(answer.smp_attribute()), lanes(2));
}

#[test]
fn arbitration_keeps_the_entries_that_there_are() {
    let options = DeviceOptions { vl_arbitration_low_cap: 40, ..DeviceOptions::default() };
    let mut bench = up(Bench::new(&crate::DeviceConfig { options, ..config(NodeType::Switch, 2) }));
    let entry = weft_wire::VlArbitrationEntry { reserved: 0, vl: VirtualLane(3), weight: 9 };
    let full = VlArbitrationTable { entries: [entry; 32] };
    for (part, kept) in [(1, 32), (2, 8), (3, 8)] {
        let modifier = part << 16 | 2;
        assert_eq!(
            bench.ask(Method::Set, AttributeId::VlArbitrationTable, modifier, &full.encode()).status(),
            0
        );
        let answer = bench.ask(Method::Get, AttributeId::VlArbitrationTable, modifier, &[]);
        let entries = VlArbitrationTable::decode(answer.smp_attribute()).entries;
        assert_eq!(entries.iter().filter(|&&found| found == entry).count(), kept, "part {part}");
    }
    let bad =
        VlArbitrationTable { entries: [weft_wire::VlArbitrationEntry { vl: VirtualLane(15), ..entry }; 32] };
    let answer = bench.ask(Method::Set, AttributeId::VlArbitrationTable, 0x1_0001, &bad.encode());
    assert_eq!(answer.status(), status::BAD_VALUE);
}

#[test]
fn keys_and_guids_are_kept() {
    let mut bench = up(hca(1));
    let keys = PKeyTable { p_keys: std::array::from_fn(|i| PKey(0x8000 + i as u16)) };
    bench.ask(Method::Set, AttributeId::PKeyTable, 1, &keys.encode());
    let answer = bench.ask(Method::Get, AttributeId::PKeyTable, 1, &[]);
    assert_eq!(PKeyTable::decode(answer.smp_attribute()), keys);
    let guids = GuidInfo { guids: [weft_wire::Guid(7); 8] };
    let answer = bench.ask(Method::Set, AttributeId::GuidInfo, 0, &guids.encode());
    let found = GuidInfo::decode(answer.smp_attribute()).guids;
    assert_eq!(
        (found[0], found[1]),
        (weft_wire::Guid(0x101), weft_wire::Guid(7)),
        "the first is the port's own"
    );
}

#[test]
fn protection_by_levels() {
    // Level, with the key?, Get answered, key shown, Set answered.
    for (level, with_key, get, shown, set) in [
        (0, false, true, true, false),
        (0, true, true, true, true),
        (1, false, true, false, false),
        (1, true, true, true, true),
        (2, false, false, false, false),
        (2, true, true, true, true),
        (3, false, false, false, false),
        (3, true, true, true, true),
    ] {
        let mut bench = up(hca(1));
        bench.set_port_info(0, |info| (info.m_key, info.m_key_protect_bits) = (MKey(42), level));
        let mut ask = |method, attribute| {
            let mut mad = smp(method, attribute, 0, &[]);
            SmpLayout::m_key.set(&mut mad.0, MKey(if with_key { 42 } else { 41 }));
            bench.ask_through(ONE, mad)
        };
        let answer = ask(Method::Get, AttributeId::PortInfo);
        assert_eq!(answer.is_some(), get, "level {level}, key {with_key}");
        if let Some(answer) = answer {
            let key = PortInfo::decode(answer.smp_attribute()).m_key;
            assert_eq!(key == MKey(42), shown, "level {level}, key {with_key}");
        }
        assert_eq!(ask(Method::Set, AttributeId::SmInfo).is_some(), set, "level {level}, key {with_key}");
        let violations = u16::from(!get) + u16::from(!set);
        assert_eq!(bench.device.ports[1].info.m_key_violations, violations);
    }
}

#[test]
fn a_wrong_key_starts_the_lease_and_tells_the_manager() {
    let mut bench = up(hca(1));
    bench.assign(7);
    bench.set_port_info(0, |info| {
        (info.m_key, info.m_key_protect_bits, info.m_key_lease_period) = (MKey(42), 2, 3);
    });
    let mut wrong = direct(smp(Method::Get, AttributeId::NodeInfo, 5, &[]), &[9]);
    DirectedSmp::hop_pointer.set(&mut wrong.0, 1);
    let any = Lid::PERMISSIVE;
    let packet = weft_wire::Packet::from_mad(&weft_wire::MadRoute::smp(any, any), &wrong);
    let outputs = bench.receive(ONE, packet.clone());
    let again = events(&bench.receive(ONE, packet.clone()));
    assert!(
        !again.iter().any(|event| matches!(event, Event::TrapSent { .. })),
        "one trap stands for all: {again:?}"
    );
    assert!(events(&outputs).contains(&Event::MKeyViolation {
        port: ONE,
        method: Method::Get,
        attribute_id: AttributeId::NodeInfo
    }));
    let (_, sent) = transmitted(&outputs).expect("trap 256");
    let notice = Notice::from_smp_data(sent.mad().unwrap().smp_data());
    let Details::MKey(_, details) = notice.details() else { panic!("{notice:?}") };
    assert_eq!((details.attribute_id, details.attribute_modifier), (AttributeId::NodeInfo, 5));
    assert_eq!((details.dr_notice, details.dr_hop_count, details.dr_return_path[0]), (true, 1, ONE));

    bench.now += Time::from_secs(2);
    assert!(
        transmitted(&bench.receive(ONE, packet.clone())).is_none(),
        "no answer, and the trap when it is due"
    );
    assert_eq!(bench.device.ports[1].info.m_key_protect_bits, 2);
    bench.now += Time::from_secs(1);
    let answered = bench.receive(ONE, packet);
    let (_, sent) = transmitted(&answered).unwrap();
    assert_eq!(sent.mad().unwrap().method(), Method::GetResp, "the protection has lapsed");
}

#[test]
fn a_right_key_ends_the_lease() {
    let mut bench = up(hca(1));
    bench.set_port_info(0, |info| {
        (info.m_key, info.m_key_protect_bits, info.m_key_lease_period) = (MKey(42), 2, 3);
    });
    assert!(bench.ask_through(ONE, smp(Method::Get, AttributeId::NodeInfo, 0, &[])).is_none());
    let mut right = smp(Method::Get, AttributeId::NodeInfo, 0, &[]);
    SmpLayout::m_key.set(&mut right.0, MKey(42));
    assert!(bench.ask_through(ONE, right).is_some());
    bench.now += Time::from_secs(10);
    assert!(bench.ask_through(ONE, smp(Method::Get, AttributeId::NodeInfo, 0, &[])).is_none());
    assert!(bench.input(Input::LinkDown { port: TWO }).len() == 1);
}
