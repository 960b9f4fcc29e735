//! Structures spelled out by hand from the field tables of the architecture, every field with a value of its own:
//! a field that is read from or written to the wrong place shows.

use weft_wire::*;

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The bytes of hexadecimal digits; blanks separate the fields.
fn bytes<const N: usize>(text: &str) -> [u8; N] {
    let digits: Vec<u8> = text.bytes().filter(u8::is_ascii_hexdigit).collect();
    assert_eq!(digits.len(), 2 * N, "{text}");
    let digit = |at: usize| (digits[at] as char).to_digit(16).expect("a digit") as u8;
    std::array::from_fn(|i| digit(2 * i) << 4 | digit(2 * i + 1))
}

/// Consecutive bytes, for long fields.
fn run<const N: usize>(first: u8) -> [u8; N] {
    std::array::from_fn(|i| first.wrapping_add(i as u8))
}

/// This value has these bytes, and these bytes are this value.
macro_rules! pinned {
    ($name:ident { $($field:ident: $value:expr),* $(,)? }, $($text:expr),+ $(,)?) => {{
        let value = $name { $($field: $value),* };
        let want = bytes::<{ $name::SIZE }>(&[$($text.to_string()),+].concat());
        assert_eq!(hex(&value.encode()), hex(&want), stringify!($name));
        assert_eq!($name::decode(&want), value);
        value
    }};
}

// After the macro, which they use.
mod extensions;
mod perf;

fn gid(prefix: u64, guid: u64) -> Gid {
    Gid { prefix: GidPrefix(prefix), guid: Guid(guid) }
}

#[test]
fn blocks_of_tables() {
    pinned!(
        GuidInfo {
            guids: [
                Guid(0x0001_0203_0405_0607),
                Guid(0x1011_1213_1415_1617),
                Guid(0x2021_2223_2425_2627),
                Guid(0x3031_3233_3435_3637),
                Guid(0x4041_4243_4445_4647),
                Guid(0x5051_5253_5455_5657),
                Guid(0x6061_6263_6465_6667),
                Guid(0x7071_7273_7475_7677),
            ]
        },
        "0001020304050607 1011121314151617 2021222324252627 3031323334353637",
        "4041424344454647 5051525354555657 6061626364656667 7071727374757677"
    );
    // Block entry i is 0x8000 + i: the membership bit, then the key.
    pinned!(
        PKeyTable { p_keys: std::array::from_fn(|i| PKey(0x8000 + i as u16)) },
        "8000 8001 8002 8003 8004 8005 8006 8007 8008 8009 800a 800b 800c 800d 800e 800f",
        "8010 8011 8012 8013 8014 8015 8016 8017 8018 8019 801a 801b 801c 801d 801e 801f"
    );
    pinned!(
        MulticastForwardingTable { port_masks: std::array::from_fn(|i| 0x0102 * (i as u16 + 1)) },
        "0102 0204 0306 0408 050a 060c 070e 0810 0912 0a14 0b16 0c18 0d1a 0e1c 0f1e 1020",
        "1122 1224 1326 1428 152a 162c 172e 1830 1932 1a34 1b36 1c38 1d3a 1e3c 1f3e 2040"
    );
    pinned!(
        LinearForwardingTable { ports: std::array::from_fn(|i| PortNum(0xff - i as u8)) },
        "fffefdfcfbfaf9f8f7f6f5f4f3f2f1f0 efeeedecebeae9e8e7e6e5e4e3e2e1e0",
        "dfdedddcdbdad9d8d7d6d5d4d3d2d1d0 cfcecdcccbcac9c8c7c6c5c4c3c2c1c0"
    );
    pinned!(
        SlToVlTable { lanes: std::array::from_fn(|sl| VirtualLane((sl as u8 + 3) % 16)) },
        "34 56 78 9a bc de f0 12"
    );
}

#[test]
fn the_managers_state() {
    pinned!(
        SmInfo {
            guid: Guid(0x0102_0304_0506_0708),
            sm_key: SmKey(0x1112_1314_1516_1718),
            act_count: 0x2122_2324,
            priority: 14,
            sm_state: SmState::from_code(3),
        },
        "0102030405060708 1112131415161718 21222324 e3"
    );
}

#[test]
fn class_port_info() {
    pinned!(
        ClassPortInfo {
            base_version: 0x01,
            class_version: 0x02,
            capability_mask: 0x0304,
            // 27 bits, then 5: 0x5123456 << 5 | 0x13.
            capability_mask2: 0x0512_3456,
            resp_time_value: 0x13,
            redirect_gid: gid(0xfe80_0000_0000_0001, 0x1011_1213_1415_1617),
            redirect_tc: 0x21,
            redirect_sl: ServiceLevel(6),
            redirect_fl: 0x7_8901,
            redirect_lid: Lid(0x3132),
            redirect_p_key: PKey(0x3334),
            reserved_256: 0x35,
            redirect_qp: QpNum(0x36_3738),
            redirect_q_key: QKey(0x393a_3b3c),
            trap_gid: gid(0xfe80_0000_0000_0002, 0x4041_4243_4445_4647),
            trap_tc: 0x51,
            trap_sl: ServiceLevel(9),
            trap_fl: 0xa_bcde,
            trap_lid: Lid(0x6162),
            trap_p_key: PKey(0x6364),
            trap_hl: 0x65,
            trap_qp: QpNum(0x66_6768),
            trap_q_key: QKey(0x696a_6b6c),
        },
        "01 02 0304 a2468ad3",
        "fe80000000000001 1011121314151617 21 678901 3132 3334 35 363738 393a3b3c",
        "fe80000000000002 4041424344454647 51 9abcde 6162 6364 65 666768 696a6b6c"
    );
}

#[test]
fn port_counters() {
    pinned!(
        PortCounters {
            reserved_0: 0x01,
            port_select: PortNum(0x02),
            counter_select: 0x0304,
            symbol_error_counter: 0x0506,
            link_error_recovery_counter: 0x07,
            link_downed_counter: 0x08,
            port_rcv_errors: 0x090a,
            port_rcv_remote_physical_errors: 0x0b0c,
            port_rcv_switch_relay_errors: 0x0d0e,
            port_xmit_discards: 0x0f10,
            port_xmit_constraint_errors: 0x11,
            port_rcv_constraint_errors: 0x12,
            counter_select2: 0x13,
            local_link_integrity_errors: 0xa,
            excessive_buffer_overrun_errors: 0x5,
            qp1_dropped: 0x1617,
            vl15_dropped: 0x1819,
            port_xmit_data: 0x1a1b_1c1d,
            port_rcv_data: 0x1e1f_2021,
            port_xmit_pkts: 0x2223_2425,
            port_rcv_pkts: 0x2627_2829,
            port_xmit_wait: 0x2a2b_2c2d,
        },
        "01 02 0304 0506 07 08 090a 0b0c 0d0e 0f10 11 12 13 a5 1617 1819",
        "1a1b1c1d 1e1f2021 22232425 26272829 2a2b2c2d"
    );
}

#[test]
fn port_counters_extended() {
    pinned!(
        PortCountersExtended {
            reserved_0: 0x01,
            port_select: PortNum(0x02),
            counter_select: 0x0304,
            counter_select2: 0x0506_0708,
            port_xmit_data: 0x1011_1213_1415_1617,
            port_rcv_data: 0x2021_2223_2425_2627,
            port_xmit_pkts: 0x3031_3233_3435_3637,
            port_rcv_pkts: 0x4041_4243_4445_4647,
            port_unicast_xmit_pkts: 0x5051_5253_5455_5657,
            port_unicast_rcv_pkts: 0x6061_6263_6465_6667,
            port_multicast_xmit_pkts: 0x7071_7273_7475_7677,
            port_multicast_rcv_pkts: 0x8081_8283_8485_8687,
            symbol_error_counter: 0x9091_9293_9495_9697,
            link_error_recovery_counter: 0xa0a1_a2a3_a4a5_a6a7,
            link_downed_counter: 0xb0b1_b2b3_b4b5_b6b7,
            port_rcv_errors: 0xc0c1_c2c3_c4c5_c6c7,
            port_rcv_remote_physical_errors: 0xd0d1_d2d3_d4d5_d6d7,
            port_rcv_switch_relay_errors: 0xe0e1_e2e3_e4e5_e6e7,
            port_xmit_discards: 0xf0f1_f2f3_f4f5_f6f7,
            port_xmit_constraint_errors: 0x1819_1a1b_1c1d_1e1f,
            port_rcv_constraint_errors: 0x2829_2a2b_2c2d_2e2f,
            local_link_integrity_errors: 0x3839_3a3b_3c3d_3e3f,
            excessive_buffer_overrun_errors: 0x4849_4a4b_4c4d_4e4f,
            vl15_dropped: 0x5859_5a5b_5c5d_5e5f,
            port_xmit_wait: 0x6869_6a6b_6c6d_6e6f,
            qp1_dropped: 0x7879_7a7b_7c7d_7e7f,
        },
        "01 02 0304 05060708",
        "1011121314151617 2021222324252627 3031323334353637 4041424344454647",
        "5051525354555657 6061626364656667 7071727374757677 8081828384858687",
        "9091929394959697 a0a1a2a3a4a5a6a7 b0b1b2b3b4b5b6b7 c0c1c2c3c4c5c6c7",
        "d0d1d2d3d4d5d6d7 e0e1e2e3e4e5e6e7 f0f1f2f3f4f5f6f7",
        "18191a1b1c1d1e1f 28292a2b2c2d2e2f 38393a3b3c3d3e3f 48494a4b4c4d4e4f",
        "58595a5b5c5d5e5f 68696a6b6c6d6e6f 78797a7b7c7d7e7f"
    );
}

#[test]
fn a_whole_notice() {
    pinned!(
        Notice {
            is_generic: true,
            notice_type: NoticeType::from_code(0x04),
            producer_type: 0x01_0203,
            trap_number: TrapNumber(0x0405),
            issuer_lid: Lid(0x0607),
            notice_toggle: true,
            notice_count: 0x1234,
            data_details: run(0x40),
            issuer_gid: gid(0xfe80_0000_0000_0003, 0x1011_1213_1415_1617),
        },
        "84 010203 0405 0607 9234",
        hex(&run::<54>(0x40)),
        "fe80000000000003 1011121314151617"
    );
}

/// The details are read by this variant for these trap numbers, and for no other that has a layout.
macro_rules! belongs_to {
    ($variant:ident, $body:expr, $($number:literal),+) => {
        let all = [64, 65, 66, 67, 68, 69, 128, 129, 130, 131, 144, 145, 256, 257, 258, 259];
        for number in all {
            let details = Details::decode(TrapNumber(number), &$body.encode());
            match [$($number),+].contains(&number) {
                true => assert_eq!(details, Details::$variant(TrapNumber(number), $body)),
                false => assert!(!matches!(details, Details::$variant(..)), "{number}"),
            }
        }
    };
}

#[test]
fn details_of_traps_64_to_67() {
    let body = pinned!(
        GidDetails {
            reserved_0: run(0xa1),
            gid: gid(0xb0b1_b2b3_b4b5_b6b7, 0xc0c1_c2c3_c4c5_c6c7),
            reserved_176: run(0xd0),
        },
        "a1a2a3a4a5a6 b0b1b2b3b4b5b6b7 c0c1c2c3c4c5c6c7",
        hex(&run::<32>(0xd0))
    );
    belongs_to!(Gid, body, 64, 65, 66, 67);
}

#[test]
fn details_of_trap_128() {
    let body =
        pinned!(SwitchDetails { lid: Lid(0x0102), reserved_16: run(0x10) }, "0102", hex(&run::<52>(0x10)));
    belongs_to!(Switch, body, 128);
}

#[test]
fn details_of_traps_129_to_131() {
    let body = pinned!(
        PortDetails { reserved_0: 0x0102, lid: Lid(0x0304), port_num: PortNum(0x05), reserved_40: run(0x10) },
        "0102 0304 05",
        hex(&run::<49>(0x10))
    );
    belongs_to!(Port, body, 129, 130, 131);
}

#[test]
fn details_of_trap_144() {
    let body = pinned!(
        LocalChangesDetails {
            reserved_0: 0x0102,
            lid: Lid(0x0304),
            // 15 bits, then the flag: 0x1234 << 1 | 1.
            reserved_32: 0x1234,
            other_local_changes: true,
            capability_mask: 0x0506_0708,
            // 13 bits, then the three flags: 0x0abc << 3 | 0b101.
            reserved_80: 0x0abc,
            link_speed_enabled_change: true,
            link_width_enabled_change: false,
            node_description_change: true,
            capability_mask2: 0x0a0b,
            reserved_112: run(0x10),
        },
        "0102 0304 2469 05060708 55e5 0a0b",
        hex(&run::<40>(0x10))
    );
    belongs_to!(LocalChanges, body, 144);
    let change = |value: LocalChangesDetails| hex(&value.encode()[10..12]);
    let none = LocalChangesDetails::default();
    assert_eq!(change(LocalChangesDetails { node_description_change: true, ..none }), "0001");
    assert_eq!(change(LocalChangesDetails { link_width_enabled_change: true, ..none }), "0002");
    assert_eq!(change(LocalChangesDetails { link_speed_enabled_change: true, ..none }), "0004");
}

#[test]
fn details_of_trap_145() {
    let body = pinned!(
        SystemImageGuidDetails {
            reserved_0: 0x0102,
            lid: Lid(0x0304),
            reserved_32: 0x0506,
            system_image_guid: Guid(0x0708_090a_0b0c_0d0e),
            reserved_112: run(0x10),
        },
        "0102 0304 0506 0708090a0b0c0d0e",
        hex(&run::<40>(0x10))
    );
    belongs_to!(SystemImageGuid, body, 145);
}

#[test]
fn details_of_trap_256() {
    let body = pinned!(
        MKeyDetails {
            reserved_0: 0x0102,
            lid: Lid(0x0304),
            dr_slid: Lid(0x0506),
            method: Method::from_code(0x02),
            reserved_56: 0x08,
            attribute_id: AttributeId::from_code(0x0015),
            attribute_modifier: 0x0b0c_0d0e,
            m_key: MKey(0x1011_1213_1415_1617),
            reserved_176: 0x18,
            // One bit, one bit, six bits: 0b10_010101.
            dr_notice: true,
            dr_path_truncated: false,
            dr_hop_count: 0x15,
            dr_return_path: std::array::from_fn(|hop| PortNum(0x20 + hop as u8)),
        },
        "0102 0304 0506 02 08 0015 0b0c0d0e 1011121314151617 18 95",
        "202122232425262728292a2b2c2d2e2f303132333435363738393a3b3c3d"
    );
    belongs_to!(MKey, body, 256);
    let truncated = MKeyDetails { dr_path_truncated: true, ..MKeyDetails::default() };
    assert_eq!(truncated.encode()[23], 0x40);
}

#[test]
fn details_of_traps_257_and_258() {
    let body = pinned!(
        KeyDetails {
            reserved_0: 0x0102,
            lid1: Lid(0x0304),
            lid2: Lid(0x0506),
            key: 0x0708_090a,
            service_level: ServiceLevel(0xb),
            reserved_84: 0xc,
            qp1: QpNum(0x0d_0e0f),
            reserved_112: 0x10,
            qp2: QpNum(0x11_1213),
            gid1: gid(0x2021_2223_2425_2627, 0x3031_3233_3435_3637),
            gid2: gid(0x4041_4243_4445_4647, 0x5051_5253_5455_5657),
            reserved_400: 0x6061_6263,
        },
        "0102 0304 0506 0708090a bc 0d0e0f 10 111213",
        "2021222324252627 3031323334353637 4041424344454647 5051525354555657 60616263"
    );
    belongs_to!(Key, body, 257, 258);
}

#[test]
fn details_of_trap_259() {
    let body = pinned!(
        SwitchKeyDetails {
            data_valid: 0x0102,
            lid1: Lid(0x0304),
            lid2: Lid(0x0506),
            p_key: PKey(0x8708),
            service_level: ServiceLevel(0x9),
            reserved_68: 0xa,
            qp1: QpNum(0x0b_0c0d),
            reserved_96: 0x0e,
            qp2: QpNum(0x0f_1011),
            gid1: gid(0x2021_2223_2425_2627, 0x3031_3233_3435_3637),
            gid2: gid(0x4041_4243_4445_4647, 0x5051_5253_5455_5657),
            switch_lid: Lid(0x6061),
            port_num: PortNum(0x62),
            reserved_408: 0x63_6465,
        },
        "0102 0304 0506 8708 9a 0b0c0d 0e 0f1011",
        "2021222324252627 3031323334353637 4041424344454647 5051525354555657 6061 62 636465"
    );
    belongs_to!(SwitchKey, body, 259);
}

#[test]
fn repath_details() {
    let body = RepathDetails {
        kind: RepathKind(0x10),
        service_level: ServiceLevel(0x1),
        reserved_12: 0x2,
        dlid: Lid(0x1314),
        slid: Lid(0x1516),
        target: Lid(0x1718),
        guid: Guid(0x191a_1b1c_1d1e_1f20),
        hold_s: 0x2122,
        reserved_144: std::array::from_fn(|i| 0x23 + i as u8),
    };
    let rest: Vec<u8> = (0x21..0x21 + 38).collect();
    let mut bytes = vec![0x10, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18];
    bytes.extend(0x19..0x21);
    bytes.extend(&rest);
    let bytes: [u8; 54] = bytes.try_into().unwrap();
    assert_eq!(body.encode(), bytes);
    for number in [68, 69] {
        let details = Details::decode(TrapNumber(number), &bytes);
        assert_eq!(details, Details::Repath(TrapNumber(number), body));
        assert_eq!(details.encode(), bytes);
    }
}
