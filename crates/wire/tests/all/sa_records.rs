//! The records of subnet administration spelled out by hand, and what each bit of their component masks stands for.

use weft_wire::*;

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The bytes of hexadecimal digits; blanks separate the fields.
fn bytes(text: &str) -> Vec<u8> {
    let digits: Vec<char> = text.chars().filter(char::is_ascii_hexdigit).collect();
    let digit = |c: char| c.to_digit(16).expect("a digit") as u8;
    digits.chunks(2).map(|pair| digit(pair[0]) << 4 | digit(pair[1])).collect()
}

/// This record has these bytes, and these bytes are this record.
fn pinned<R: SaRecord + PartialEq + std::fmt::Debug>(record: R, text: &str) {
    let want = bytes(text);
    assert_eq!(want.len(), R::LENGTH, "{text}");
    let mut written = Vec::new();
    record.append_to(&mut written);
    assert_eq!(hex(&written), hex(&want));
    assert_eq!(R::from_bytes(&want), record);
    // What a query is too short for counts as zero.
    let mut cut = want.clone();
    cut[R::LENGTH - 2..].fill(0);
    assert_eq!(R::from_bytes(&want[..R::LENGTH - 2]), R::from_bytes(&cut));
}

fn gid(prefix: u64, guid: u64) -> Gid {
    Gid { prefix: GidPrefix(prefix), guid: Guid(guid) }
}

/// Consecutive bytes.
fn run<const N: usize>(first: u8) -> [u8; N] {
    std::array::from_fn(|i| first.wrapping_add(i as u8))
}

#[test]
fn nodes_ports_and_cables() {
    let mut description = NodeDescription::new("H1");
    // A text that is no UTF-8 is kept as it is.
    description.text[63] = 0xff;
    let node_info = NodeInfo {
        base_version: 1,
        class_version: 1,
        node_type: NodeType::Hca,
        num_ports: 2,
        system_image_guid: Guid(0x1011_1213_1415_1617),
        node_guid: Guid(0x2021_2223_2425_2627),
        port_guid: Guid(0x3031_3233_3435_3637),
        partition_cap: 0x40,
        device_id: 0x4142,
        revision: 0x5152_5354,
        local_port_num: PortNum(1),
        vendor_id: 0x61_6263,
    };
    pinned(
        NodeRecord { lid: Lid(0x1234), reserved_16: 0, node_info, node_description: description },
        &format!(
            "1234 0000 01 01 01 02 1011121314151617 2021222324252627 3031323334353637 \
             0040 4142 51525354 01 616263 4831 {} ff",
            "00".repeat(61)
        ),
    );
    let port_info = PortInfo { lid: Lid(0x0a0b), link_speed_ext_enabled: 0x1f, ..PortInfo::default() };
    pinned(
        PortInfoRecord { lid: Lid(0x1234), port_num: PortNum(5), options: 0x80, port_info },
        &format!("1234 05 80 {} 0a0b {} 1f", "00".repeat(16), "00".repeat(45)),
    );
    pinned(
        SwitchInfoRecord {
            lid: Lid(9),
            reserved_16: 0,
            switch_info: SwitchInfo { multicast_fdb_top: Lid(0xc001), ..SwitchInfo::default() },
        },
        "0009 0000 0000000000000000 00000000 0000 0000 0000 c001",
    );
    pinned(
        LinkRecord { from_lid: Lid(0x0102), from_port: PortNum(3), to_port: PortNum(4), to_lid: Lid(0x0506) },
        "0102 03 04 0506",
    );
    pinned(
        SmInfoRecord {
            lid: Lid(7),
            reserved_16: 0,
            sm_info: SmInfo {
                guid: Guid(0x1011_1213_1415_1617),
                sm_key: SmKey(1),
                act_count: 0x0a0b_0c0d,
                priority: 15,
                sm_state: SmState::Master,
            },
        },
        "0007 0000 1011121314151617 0000000000000001 0a0b0c0d f3",
    );
    let mut guids = [Guid(0); 8];
    guids[7] = Guid(0x0102_0304_0506_0708);
    pinned(
        GuidInfoRecord {
            lid: Lid(8),
            block_num: 3,
            guid_info: GuidInfo { guids },
            ..GuidInfoRecord::default()
        },
        &format!("0008 03 00 00000000 {} 0102030405060708", "00".repeat(56)),
    );
}

#[test]
fn tables() {
    let lft = LinearForwardingTable { ports: run::<64>(1).map(PortNum) };
    pinned(
        LinearForwardingTableRecord { lid: Lid(2), block_num: 0x0102, reserved_32: 0, table: lft },
        &format!("0002 0102 00000000 {}", hex(&run::<64>(1))),
    );
    pinned(
        MulticastForwardingTableRecord {
            lid: Lid(2),
            position: 3,
            block_num: 0x1fe,
            table: MulticastForwardingTable { port_masks: [0xabcd; 32] },
            ..MulticastForwardingTableRecord::default()
        },
        &format!("0002 31fe 00000000 {}", "abcd".repeat(32)),
    );
    pinned(
        PKeyTableRecord {
            lid: Lid(2),
            block_num: 1,
            port_num: PortNum(9),
            reserved_40: 0,
            table: PKeyTable { p_keys: [PKey(0x8001); 32] },
        },
        &format!("0002 0001 09 000000 {}", "8001".repeat(32)),
    );
    let lanes = std::array::from_fn(|sl| VirtualLane(sl as u8));
    pinned(
        SlToVlTableRecord {
            lid: Lid(2),
            input_port: PortNum(3),
            output_port: PortNum(4),
            reserved_32: 0,
            table: SlToVlTable { lanes },
        },
        "0002 03 04 00000000 0123456789abcdef",
    );
    let entry = VlArbitrationEntry { reserved: 0, vl: VirtualLane(5), weight: 64 };
    pinned(
        VlArbitrationRecord {
            lid: Lid(2),
            output_port: PortNum(3),
            block_num: 4,
            reserved_32: 0,
            table: VlArbitrationTable { entries: [entry; 32] },
        },
        &format!("0002 03 04 00000000 {}", "0540".repeat(32)),
    );
}

#[test]
fn paths() {
    pinned(
        PathRecord {
            service_id: 0x0102_0304_0506_0708,
            dgid: gid(0xfe80 << 48, 2),
            sgid: gid(0xfe80 << 48, 1),
            dlid: Lid(0x22),
            slid: Lid(0x11),
            raw_traffic: false,
            reserved_353: 0,
            flow_label: 0xabcde,
            hop_limit: 0x40,
            tclass: 0x07,
            reversible: true,
            numb_path: 3,
            p_key: PKey::DEFAULT_FULL,
            qos_class: 0x123,
            sl: ServiceLevel(4),
            mtu_selector: Selector::Exactly,
            mtu: Mtu::Bytes2048.code(),
            rate_selector: Selector::LessThan,
            rate: PathRate::Gb40,
            packet_life_time_selector: Selector::Best,
            packet_life_time: 0x12,
            preference: 1,
            reserved_464: 0,
        },
        "0102030405060708 fe80000000000000 0000000000000002 fe80000000000000 0000000000000001 0022 0011 \
         0abcde40 07 83 ffff 1234 84 47 d2 01 000000000000",
    );
}

#[test]
fn services_and_subscriptions() {
    let service = ServiceRecord {
        service_id: 0x1000_0000_0000_0001,
        service_gid: gid(0xfe80 << 48, 1),
        service_p_key: PKey::DEFAULT_FULL,
        reserved_208: 0,
        service_lease: ServiceRecord::LEASE_INFINITE,
        service_key: run(0x10),
        service_name: run(0x20),
        service_data8: run(0x60),
        service_data16: std::array::from_fn(|i| 0x7071 + 0x202 * i as u16),
        service_data32: [0x8081_8283, 0x8485_8687, 0x8889_8a8b, 0x8c8d_8e8f],
        service_data64: [0x9091_9293_9495_9697, 0x9899_9a9b_9c9d_9e9f],
    };
    let text = format!(
        "1000000000000001 fe80000000000000 0000000000000001 ffff 0000 ffffffff {} {} {} {} {} {}",
        hex(&run::<16>(0x10)),
        hex(&run::<64>(0x20)),
        hex(&run::<16>(0x60)),
        hex(&run::<16>(0x70)),
        hex(&run::<16>(0x80)),
        hex(&run::<16>(0x90)),
    );
    pinned(service, &text);
    let inform_info = InformInfo {
        gid: gid(0xfe80 << 48, 5),
        lid_range_begin: Lid(0xffff),
        lid_range_end: Lid(0x1112),
        is_generic: 1,
        subscribe: 1,
        notice_type: InformInfo::ALL,
        trap_number: trap::LINK_STATE_CHANGE,
        qpn: QpNum(0x01_0203),
        resp_time_value: 0x12,
        producer_type: InformInfo::ALL_PRODUCERS,
        ..InformInfo::default()
    };
    let info = "fe80000000000000 0000000000000005 ffff 1112 0000 01 01 ffff 0080 010203 12 00 ffffff";
    assert_eq!(inform_info.encode().to_vec(), bytes(info));
    pinned(
        InformInfoRecord {
            subscriber_gid: gid(0xfe80 << 48, 6),
            enumeration: 2,
            reserved_144: 0,
            inform_info,
        },
        &format!("fe80000000000000 0000000000000006 0002 000000000000 {info}"),
    );
}

#[test]
fn the_header() {
    let mut mad = Mad::default();
    SaMad::base_version.set(&mut mad.0, 1);
    SaMad::mgmt_class.set(&mut mad.0, MgmtClass::SubnAdm);
    SaMad::class_version.set(&mut mad.0, SA_CLASS_VERSION);
    SaMad::method.set(&mut mad.0, Method::GetTable);
    SaMad::status.set(&mut mad.0, sa_status::NO_RECORDS);
    SaMad::transaction_id.set(&mut mad.0, TransactionId(7));
    SaMad::attribute_id.set(&mut mad.0, sa_attribute::PATH_RECORD);
    SaMad::rmpp.set(&mut mad.0, RmppHeader::decode(&run(0x30)));
    SaMad::sm_key.set(&mut mad.0, SmKey(1));
    SaMad::attribute_offset.set(&mut mad.0, 8);
    SaMad::component_mask.set(&mut mad.0, 0x0102_0304_0506_0708);
    SaMad::data.set(&mut mad.0, [0xee; 200]);
    let head = "01 03 02 12 0300 0000 0000000000000007 0035 0000 00000000 303132333435363738393a3b \
                0000000000000001 0008 0000 0102030405060708";
    assert_eq!(mad.0[..56].to_vec(), bytes(head));
    assert_eq!(mad.0[56..], [0xee; 200]);
}

/// The bit of a component, by name; of several with one name the first.
fn bit<R: SaRecord>(name: &str) -> usize {
    R::COMPONENTS.iter().position(|row| row.name == name).unwrap_or_else(|| panic!("no {name}"))
}

/// The numbers of components as management programs have them.
#[test]
fn component_masks() {
    assert_eq!(bit::<NodeRecord>("lid"), 0);
    assert_eq!(bit::<NodeRecord>("node_type"), 4);
    assert_eq!(bit::<NodeRecord>("node_guid"), 7);
    assert_eq!(bit::<NodeRecord>("vendor_id"), 13);
    assert_eq!(bit::<NodeRecord>("node_description"), 14);
    assert_eq!(bit::<PortInfoRecord>("port_num"), 1);
    assert_eq!(bit::<PortInfoRecord>("capability_mask"), 7);
    assert_eq!(bit::<PortInfoRecord>("port_state"), 15);
    assert_eq!(bit::<PortInfoRecord>("lmc"), 20);
    assert_eq!(bit::<PortInfoRecord>("client_reregister"), 43);
    assert_eq!(bit::<PortInfoRecord>("subnet_timeout"), 45);
    assert_eq!(bit::<PortInfoRecord>("capability_mask2"), 53);
    assert_eq!(bit::<PortInfoRecord>("link_speed_ext_enabled"), 57);
    assert_eq!(bit::<LinkRecord>("to_port"), 2);
    assert_eq!(bit::<LinkRecord>("to_lid"), 3);
    assert_eq!(bit::<SmInfoRecord>("guid"), 2);
    assert_eq!(bit::<SmInfoRecord>("sm_state"), 6);
    assert_eq!(bit::<SlToVlTableRecord>("output_port"), 2);
    assert_eq!(bit::<VlArbitrationRecord>("block_num"), 2);
    assert_eq!(bit::<PKeyTableRecord>("block_num"), 1);
    assert_eq!(bit::<PKeyTableRecord>("port_num"), 2);
    assert_eq!(bit::<LinearForwardingTableRecord>("block_num"), 1);
    assert_eq!(bit::<MulticastForwardingTableRecord>("position"), 1);
    assert_eq!(bit::<MulticastForwardingTableRecord>("block_num"), 3);
    assert_eq!(bit::<GuidInfoRecord>("guid_info"), 4);
    assert_eq!(bit::<InformInfoRecord>("gid"), 3);
    assert_eq!(bit::<InformInfoRecord>("notice_type"), 9);
    assert_eq!(bit::<InformInfoRecord>("producer_type"), 15);
    assert_eq!(bit::<ServiceRecord>("service_key"), 5);
    assert_eq!(bit::<ServiceRecord>("service_data8"), 7);
    assert_eq!(bit::<ServiceRecord>("service_data16"), 23);
    assert_eq!(bit::<ServiceRecord>("service_data32"), 31);
    assert_eq!(bit::<ServiceRecord>("service_data64"), 35);
    assert_eq!(bit::<PathRecord>("service_id"), 0);
    assert_eq!(bit::<PathRecord>("dgid"), 2);
    assert_eq!(bit::<PathRecord>("slid"), 5);
    assert_eq!(bit::<PathRecord>("reversible"), 11);
    assert_eq!(bit::<PathRecord>("numb_path"), 12);
    assert_eq!(bit::<PathRecord>("sl"), 15);
    assert_eq!(bit::<PathRecord>("mtu"), 17);
    assert_eq!(bit::<PathRecord>("rate"), 19);
    assert_eq!(bit::<PathRecord>("packet_life_time"), 21);
    assert_eq!(bit::<PathRecord>("preference"), 22);
}

fn covered<R: SaRecord>() {
    let mut next = 0;
    for row in R::COMPONENTS {
        assert_eq!(row.first, next, "{:?} {}", R::ATTRIBUTE, row.name);
        next += row.width;
    }
    assert_eq!(next, R::LENGTH * 8, "{:?}", R::ATTRIBUTE);
    assert!(R::COMPONENTS.len() <= 64);
    assert_eq!(usize::from(R::OFFSET), R::LENGTH.div_ceil(8));
}

#[test]
fn moves_of_machines() {
    let asked = VmMove {
        kind: VmMoveKind::Swap,
        method: VmMoveMethod::Itrc,
        order: VmMoveOrder::Unordered,
        from_port: PortNum(3),
        to_port: PortNum(4),
        partner_is_idle: 1,
        hold_s: 0x0506,
        lid: Lid(0x0708),
        partner_lid: Lid(0x090a),
        mastership: 0x6162_6364,
        guid: Guid(0x1011_1213_1415_1617),
        partner: Guid(0x2021_2223_2425_2627),
        from_switch: Guid(0x3031_3233_3435_3637),
        to_switch: Guid(0x4041_4243_4445_4647),
        policy: VmMoveLate::Refuse,
        epoch: 0x5051_5253_5455_5657,
        ..VmMove::default()
    };
    let request = "04 02 02 03 04 05 0506 0708 090a 61626364 1011121314151617 2021222324252627 \
                   3031323334353637 4041424344454647 5051525354555657";
    pinned(asked, &format!("{request} {}", "00".repeat(144)));
    let answer = VmMove {
        result: VmMoveResult::Done,
        made_by: VmMoveMethod::Skyline,
        made_in: VmMoveOrder::OrderedLate,
        fallbacks: 2,
        rounds: 5,
        together: 1,
        physical: 20,
        vswitches: 2,
        physical_smps: 40,
        vswitch_smps: 4,
        hypervisor_smps: 3,
        took_us: 0x1234,
        late: 0x0102,
        unproved_lanes: 0x8001,
        silent_us: 0x0010_6249,
        late_physical_smps: 0x0304,
        late_vswitch_smps: 0x0506,
        silent: 0x0708,
        detours: 0x090a,
        late_us: 0x0b0c_0d0e,
        held_us: 0x1112_1314,
        ..asked
    };
    let numbers = "01 01 03 02 0005 0001 00000014 00000002 00000028 00000004 00000003 00001234 0102 8001 \
                   00106249 0304 0506 0708 090a 0b0c0d0e 11121314";
    pinned(answer.with_reason("no"), &format!("{request} {numbers} 6e6f {}", "00".repeat(86)));
    let write = VmMoveWrite {
        switch: Guid(0x1011_1213_1415_1617),
        round: 2,
        block: 3,
        is_active: 1,
        after_drain: 1,
        ..VmMoveWrite::default()
    };
    pinned(write, "1011121314151617 0002 0003 a0000000");
    let late = VmMoveWrite { is_late: 1, is_detour: 1, ..write };
    pinned(late, "1011121314151617 0002 0003 b8000000");
    let silent =
        VmMoveWrite { switch: write.switch, is_silent: 1, silent_ms: 1074, ..VmMoveWrite::default() };
    pinned(silent, "1011121314151617 0000 0000 04000432");
}

#[test]
fn received_data() {
    let mut part = ReceivedData { report: 0x0102_0304, part: 0x0506, parts: 0x0708, ..Default::default() };
    (part.guids[0], part.guids[11]) = (Guid(0x1011_1213_1415_1617), Guid(0x2021_2223_2425_2627));
    (part.bytes[0], part.bytes[11]) = (0x3031_3233_3435_3637, 0x4041_4243_4445_4647);
    let none = "00".repeat(80);
    pinned(
        part,
        &format!(
            "01020304 0506 0708 1011121314151617 {none} 2021222324252627 3031323334353637 {none} 4041424344454647"
        ),
    );
}

#[test]
fn components_cover_their_records() {
    covered::<NodeRecord>();
    covered::<PortInfoRecord>();
    covered::<SwitchInfoRecord>();
    covered::<GuidInfoRecord>();
    covered::<LinkRecord>();
    covered::<SmInfoRecord>();
    covered::<LinearForwardingTableRecord>();
    covered::<MulticastForwardingTableRecord>();
    covered::<PKeyTableRecord>();
    covered::<SlToVlTableRecord>();
    covered::<VlArbitrationRecord>();
    covered::<InformInfoRecord>();
    covered::<ServiceRecord>();
    covered::<PathRecord>();
    covered::<VmMove>();
    covered::<VmMoveWrite>();
    covered::<ReceivedData>();
}

#[test]
fn a_links_rate_and_what_it_carries() {
    let of_all = |width, speed, ext, ext2| {
        let info = PortInfo {
            link_width_active: width,
            link_speed_active: speed,
            link_speed_ext_active: ext,
            link_speed_ext2: LinkSpeedExt2 { active: ext2, ..LinkSpeedExt2::default() },
            ..PortInfo::default()
        };
        PathRate::of_link(&info)
    };
    let of = |width, speed, ext| of_all(width, speed, ext, 0);
    let widths = [1, 16, 2, 4, 8];
    let rates = |speed, ext| widths.map(|width| of(width, speed, ext).megabits().unwrap());
    assert_eq!(rates(1, 0), [2_500, 5_000, 10_000, 20_000, 30_000]);
    assert_eq!(rates(4, 0), [10_000, 20_000, 40_000, 80_000, 120_000]);
    assert_eq!(rates(4, 1), [14_000, 28_000, 56_000, 112_000, 168_000]);
    assert_eq!(rates(4, 8), [100_000, 200_000, 400_000, 800_000, 1_200_000]);
    assert_eq!(
        [1, 16, 2, 4].map(|width| of_all(width, 4, 8, 1)),
        [PathRate::Gb200, PathRate::Gb400, PathRate::Gb800, PathRate::Gb1600]
    );
    assert_eq!(of_all(8, 4, 8, 1), PathRate::default(), "12x XDR has no code");
    // In elevenths of a megabit per second.
    let data = |rate: PathRate| rate.data_rate().unwrap().elevenths();
    assert_eq!([of(1, 1, 0), of(2, 2, 0), of(2, 4, 0)].map(data), [22_000, 176_000, 352_000]);
    assert_eq!([of(1, 4, 1), of(2, 4, 1), of(8, 4, 1)].map(data), [150_000, 600_000, 1_800_000]);
    assert_eq!([of(2, 4, 2), of(8, 4, 8)].map(data), [1_100_000, 13_200_000]);
}

#[test]
fn rates_are_in_order() {
    assert!(PathRate::ALL.is_sorted_by_key(|(_, megabits)| *megabits));
    assert_eq!(PathRate::Gb5.megabits(), Some(5_000));
    assert_eq!(PathRate::from_code(63).megabits(), None);
    assert_eq!(PathRate::from_megabits(28_000), Some(PathRate::Gb28));
    assert_eq!(PathRate::below(2_500), None);
    assert_eq!(PathRate::below(28_000), Some(PathRate::Gb25));
}
