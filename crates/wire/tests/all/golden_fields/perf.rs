//! The optional attributes of performance management.

use super::*;

#[test]
fn kinds_of_errors() {
    pinned!(
        PortRcvErrorDetails {
            reserved_0: 0x01,
            port_select: PortNum(0x02),
            counter_select: 0x0304,
            port_local_physical_errors: 0x0506,
            port_malformed_pkt_errors: 0x0708,
            port_buffer_overrun_errors: 0x090a,
            port_dlid_mapping_errors: 0x0b0c,
            port_vl_mapping_errors: 0x0d0e,
            port_looping_errors: 0x0f10,
        },
        "01 02 0304 0506 0708 090a 0b0c 0d0e 0f10"
    );
    pinned!(
        PortXmitDiscardDetails {
            reserved_0: 0x01,
            port_select: PortNum(0x02),
            counter_select: 0x0304,
            port_inactive_discards: 0x0506,
            port_neighbor_mtu_discards: 0x0708,
            port_sw_lifetime_limit_discards: 0x090a,
            port_sw_hoq_lifetime_limit_discards: 0x0b0c,
        },
        "01 02 0304 0506 0708 090a 0b0c"
    );
}

#[test]
fn packets_of_one_kind() {
    pinned!(
        PortOpRcvCounters {
            op_code: 0x64,
            port_select: PortNum(0x02),
            counter_select: 0x0304,
            port_op_rcv_pkts: 0x0506_0708,
            port_op_rcv_data: 0x090a_0b0c,
        },
        "64 02 0304 05060708 090a0b0c"
    );
    pinned!(
        PortFlowCtlCounters {
            reserved_0: 0x01,
            port_select: PortNum(0x02),
            counter_select: 0x0304,
            port_xmit_flow_pkts: 0x0506_0708,
            port_rcv_flow_pkts: 0x090a_0b0c,
        },
        "01 02 0304 05060708 090a0b0c"
    );
}

#[test]
fn counters_by_lane() {
    pinned!(
        PortVlOpPackets {
            op_code: 0x64,
            port_select: PortNum(0x02),
            counter_select: 0x0304,
            port_vl_op_packets: std::array::from_fn(|lane| 0x1000 + lane as u16),
        },
        "64 02 0304 1000 1001 1002 1003 1004 1005 1006 1007 1008 1009 100a 100b 100c 100d 100e 100f"
    );
    pinned!(
        PortVlOpData {
            op_code: 0x64,
            port_select: PortNum(0x02),
            counter_select: 0x0304,
            port_vl_op_data: std::array::from_fn(|lane| 0x1000_2000 + lane as u32),
        },
        "64 02 0304 10002000 10002001 10002002 10002003 10002004 10002005 10002006 10002007",
        "10002008 10002009 1000200a 1000200b 1000200c 1000200d 1000200e 1000200f"
    );
    // Two bits each, lane 0 first: 0b00_01_10_11 is 0x1b.
    pinned!(
        PortVlXmitFlowCtlUpdateErrors {
            reserved_0: 0x01,
            port_select: PortNum(0x02),
            counter_select: 0x0304,
            port_vl_xmit_flow_ctl_update_errors: [0, 1, 2, 3, 3, 2, 1, 0, 0, 0, 0, 1, 3, 3, 3, 3],
        },
        "01 02 0304 1b e4 01 ff"
    );
    pinned!(
        PortVlXmitWaitCounters {
            reserved_0: 0x01,
            port_select: PortNum(0x02),
            counter_select: 0x0304,
            port_vl_xmit_wait: std::array::from_fn(|lane| 0x1000 + lane as u16),
        },
        "01 02 0304 1000 1001 1002 1003 1004 1005 1006 1007 1008 1009 100a 100b 100c 100d 100e 100f"
    );
}

#[test]
fn samples() {
    pinned!(
        PortSamplesControl {
            op_code: 0x01,
            port_select: PortNum(0x02),
            tick: 0x03,
            // Five bits, three bits: 0b00101_100.
            reserved_24: 0x05,
            counter_width: 0x4,
            // Two, three and 27 bits: 0b01_101 and 0x0123456, which is 0b01_101_001 and 0x23456.
            reserved_32: 0x1,
            counter_mask0: 0x5,
            counter_masks1to9: 0x0123_4567,
            // One bit, 15 bits.
            reserved_64: 0x1,
            counter_masks10to14: 0x0809,
            sample_mechanisms: 0x0a,
            // Six bits, two bits: 0b000011_10.
            reserved_88: 0x03,
            sample_status: SampleStatus::Running,
            option_mask: 0x1011_1213_1415_1617,
            vendor_mask: 0x2021_2223_2425_2627,
            sample_start: 0x3031_3233,
            sample_interval: 0x4041_4243,
            tag: 0x5051,
            counter_select: std::array::from_fn(|i| SampleSelect::from_code(0x6000 + i as u16)),
            reserved_544: 0x7071_7273,
            samples_only_option_mask: 0x8081_8283_8485_8687,
        },
        "01 02 03 2c 69234567 8809 0a 0e 1011121314151617 2021222324252627 30313233 40414243 5051",
        "6000 6001 6002 6003 6004 6005 6006 6007 6008 6009 600a 600b 600c 600d 600e",
        "70717273 8081828384858687"
    );
    pinned!(
        PortSamplesResult {
            tag: 0x0102,
            // 14 bits, two bits: 0x0123 << 2 | 1.
            reserved_16: 0x0123,
            sample_status: SampleStatus::Started,
            counter: std::array::from_fn(|i| 0x1000_2000 + i as u32),
        },
        "0102 048d 10002000 10002001 10002002 10002003 10002004 10002005 10002006 10002007",
        "10002008 10002009 1000200a 1000200b 1000200c 1000200d 1000200e"
    );
    pinned!(
        PortSamplesResultExtended {
            tag: 0x0102,
            reserved_16: 0x0123,
            sample_status: SampleStatus::Started,
            // Two bits, 30 bits: 0b10 and 0x1234567.
            extended_width: 2,
            reserved_34: 0x0123_4567,
            counter: std::array::from_fn(|i| 0x1000_2000_3000_4000 + i as u64),
        },
        "0102 048d 81234567",
        (0..15).map(|i| format!("100020003000400{i:x}")).collect::<String>()
    );
}
