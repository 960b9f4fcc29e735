//! Bytes from other sources: the architecture's sample packets, and attributes spelled out by hand.

use weft_wire::*;

/// The sample packet of IBA 7.8.3: a local packet on lane 7, up to its ICRC.
const SAMPLE_LOCAL: [u8; 52] = [
    0x70, 0x12, 0x37, 0x5c, 0x00, 0x0e, 0x17, 0xd2, 0x0a, 0x20, 0x24, 0x87, 0x00, 0x87, 0xb1, 0xb3, 0x00,
    0x0d, 0xec, 0x2a, 0x01, 0x71, 0x0a, 0x1c, 0x01, 0x5d, 0x40, 0x02, 0x38, 0xf2, 0x7a, 0x05, 0x00, 0x00,
    0x00, 0x0e, 0xbb, 0x88, 0x4d, 0x85, 0xfd, 0x5c, 0xfb, 0xa4, 0x72, 0x8b, 0xc0, 0x69, 0x0e, 0xd4, 0x00,
    0x00,
];

#[test]
fn the_architectures_sample_packet_has_its_icrc() {
    assert_eq!(icrc(&SAMPLE_LOCAL), [0x96, 0x25, 0xb7, 0x5a]);
    // Lane and congestion bits may change on the way without touching the ICRC; nothing else may.
    let mut other = SAMPLE_LOCAL;
    other[0] = 0x20;
    other[12] = 0xc0;
    assert_eq!(icrc(&other), [0x96, 0x25, 0xb7, 0x5a]);
    other[1] ^= 0x10;
    assert_ne!(icrc(&other), [0x96, 0x25, 0xb7, 0x5a]);
}

#[test]
fn a_global_packets_icrc_ignores_what_a_router_may_change() {
    let mut packet = vec![0x70, 0x13, 0x37, 0x5c, 0x00, 0x18, 0x17, 0xd2];
    packet.extend([0x60, 0, 0, 0, 0x00, 0x32, 0x00, 0x10]);
    packet.extend((0..32).map(|i| i * 7));
    packet.extend(&SAMPLE_LOCAL[8..]);
    let before = icrc(&packet);
    for at in (0..8).chain([9, 10, 11, 15, 52]) {
        let mut other = packet.clone();
        other[at] ^= 0xfc;
        // The next-header bits of the LRH stay, so that the packet is still a global one.
        assert_eq!(icrc(&other), before, "byte {at} may change on the way");
    }
    for at in [8, 12, 13, 14, 16, 47, 48, 51, 53, 60, 91] {
        let mut other = packet.clone();
        other[at] ^= 0xf0;
        assert_ne!(icrc(&other), before, "byte {at} may not change on the way");
    }
}

/// The VCRC bit by bit, as the shift register of IBA 7.8.2 does it.
fn vcrc_by_shifting(bytes: &[u8]) -> u16 {
    let mut register = 0xffffu16;
    for byte in bytes {
        for bit in 0..8 {
            let feedback = (register ^ u16::from(byte >> bit)) & 1;
            // 0xd008 is the polynomial x^16 + x^12 + x^3 + x + 1 with its bits in reverse.
            register = register >> 1 ^ if feedback == 1 { 0xd008 } else { 0 };
        }
    }
    !register
}

#[test]
fn the_vcrc_is_that_of_the_shift_register() {
    let mut packet = SAMPLE_LOCAL.to_vec();
    packet.extend(icrc(&SAMPLE_LOCAL));
    assert_eq!(vcrc(&packet), vcrc_by_shifting(&packet).to_le_bytes());
    assert_eq!(vcrc(&packet), [0x45, 0xfa]);
    packet.extend([0x45, 0xfa]);
    let parsed = Packet::parse(packet).expect("the sample is a packet");
    assert_eq!((parsed.vl(), parsed.dlid(), parsed.slid()), (VirtualLane(7), Lid(0x375c), Lid(0x17d2)));
    assert_eq!(parsed.check_icrc(), Ok(()));
    assert_eq!(parsed.mad(), None, "an RDMA write carries no MAD");
}

#[test]
fn a_moved_packet_is_still_sound() {
    let mut packet =
        Packet::from_mad(&MadRoute { vl: VirtualLane(0), ..MadRoute::smp(Lid(1), Lid(2)) }, &Mad::default());
    packet.set_vl(VirtualLane(5));
    let again = Packet::parse(packet.clone().into_bytes()).expect("the VCRC moved along");
    assert_eq!((again.vl(), again.check_icrc(), again.words()), (VirtualLane(5), Ok(()), 72));
    assert_eq!(again, packet);
}

#[test]
fn a_directed_node_info_request() {
    let mut mad = Mad::default();
    mad.set_header(&MadHeader {
        base_version: 1,
        mgmt_class: MgmtClass::SubnDirected,
        class_version: 1,
        method: Method::Get,
        class_specific: 0x0002,
        transaction_id: TransactionId(0x1234),
        attribute_id: AttributeId::NodeInfo,
        ..MadHeader::default()
    });
    DirectedSmp::dr_slid.set(&mut mad.0, Lid::PERMISSIVE);
    DirectedSmp::dr_dlid.set(&mut mad.0, Lid::PERMISSIVE);
    let mut path = [PortNum(0); 64];
    (path[1], path[2]) = (PortNum(1), PortNum(17));
    DirectedSmp::initial_path.set(&mut mad.0, path);
    let mut want = [0u8; 256];
    want[..8].copy_from_slice(&[1, 0x81, 1, 1, 0, 0, 0, 2]);
    want[14..18].copy_from_slice(&[0x12, 0x34, 0x00, 0x11]);
    want[32..36].copy_from_slice(&[0xff; 4]);
    want[128..131].copy_from_slice(&[0, 1, 17]);
    assert_eq!(mad.0, want);
    assert_eq!(DirectedSmp::hop_count.get(&mad.0), 2);
    DirectedSmp::direction.set(&mut mad.0, true);
    assert_eq!((mad.status(), mad.0[4]), (0, 0x80));
}

#[test]
fn attributes_spelled_out() {
    let info = NodeInfo {
        base_version: 1,
        class_version: 1,
        node_type: NodeType::Switch,
        num_ports: 36,
        system_image_guid: Guid(0x0008_f105_0020_0b51),
        node_guid: Guid(0x0008_f105_0020_0b50),
        port_guid: Guid(0x0008_f105_0020_0b50),
        partition_cap: 8,
        device_id: 0x5a5a,
        revision: 0xa1,
        local_port_num: PortNum(7),
        vendor_id: 0x08f1,
    };
    let want = "0101022400 08f10500200b51 0008f10500200b50 0008f10500200b50 0008 5a5a 000000a1 07 0008f1";
    assert_eq!(hex(&info.encode()), want.replace(' ', ""));

    let switch = SwitchInfo {
        linear_fdb_cap: 0xc000,
        linear_fdb_top: 0x02be,
        life_time_value: 18,
        port_state_change: true,
        optimized_sl_to_vl_mapping: 1,
        enhanced_port0: true,
        ..SwitchInfo::default()
    };
    assert_eq!(hex(&switch.encode()), "c00000000000 02be 000000 95 0000 0000 08 00 0000".replace(' ', ""));

    let mut lanes = [VirtualLane(15); 16];
    for (sl, lane) in lanes.iter_mut().enumerate().take(8) {
        *lane = VirtualLane(sl as u8);
    }
    assert_eq!(hex(&SlToVlTable { lanes }.encode()), "01234567ffffffff");

    let mut table = VlArbitrationTable::default();
    table.entries[1] = VlArbitrationEntry { reserved: 0, vl: VirtualLane(3), weight: 64 };
    assert_eq!(hex(&table.encode()[..6]), "000003400000");

    let notice = Notice::generic(NodeType::Switch, Lid(0x2a), &Details::link_state_change(Lid(0x2a)));
    assert_eq!(hex(&notice.to_smp_data()[..14]), "8100000200 80002a 0000 002a 0000".replace(' ', ""));
    assert_eq!(Notice::from_smp_data(&notice.to_smp_data()).details().trap_number(), TrapNumber(128));

    let text = NodeDescription::new("a description that is longer than the sixty-four bytes there are: ü");
    assert_eq!(text.to_text(), "a description that is longer than the sixty-four bytes there are");
    assert_eq!(NodeDescription::new("H1").to_text(), "H1");
}

#[test]
fn port_info_in_its_places() {
    let info = PortInfo {
        lid: Lid(0x1234),
        master_sm_lid: Lid(1),
        local_port_num: PortNum(5),
        link_width_active: 2,
        link_speed_supported: 7,
        port_state: PortState::Active,
        port_physical_state: PhysState::LinkUp,
        link_down_default_state: PhysState::Polling,
        lmc: 3,
        link_speed_active: 4,
        link_speed_enabled: 7,
        neighbor_mtu: Mtu::Bytes4096,
        vl_cap: VlCap::Vl0To7,
        vl_high_limit: 0xab,
        mtu_cap: Mtu::Bytes4096,
        vl_stall_count: 7,
        hoq_life: 16,
        operational_vls: VlCap::Vl0To14,
        guid_cap: 32,
        client_reregister: true,
        subnet_timeout: 18,
        resp_time_value: 17,
        local_phy_errors: 8,
        overrun_errors: 9,
        link_round_trip_latency: 0x01_0203,
        link_speed_ext2: LinkSpeedExt2 { active: 2, supported: 2, enabled: 2 },
        link_speed_ext_active: 2,
        link_speed_ext_supported: 3,
        link_speed_ext_enabled: 0x1f,
        ..PortInfo::default()
    };
    let mut want = [0u8; 64];
    want[16..20].copy_from_slice(&[0x12, 0x34, 0, 1]);
    want[28..40].copy_from_slice(&[5, 0, 0, 2, 0x74, 0x52, 0x03, 0x47, 0x50, 0x40, 0xab, 0]);
    want[41..44].copy_from_slice(&[0x05, 0xf0, 0x50]);
    want[50..54].copy_from_slice(&[32, 0x92, 17, 0x89]);
    want[56..60].copy_from_slice(&[0x52, 1, 2, 3]);
    want[62..64].copy_from_slice(&[0x23, 0x1f]);
    assert_eq!(hex(&info.encode()), hex(&want));
    assert_eq!(PortInfo::decode(&want), info);
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
