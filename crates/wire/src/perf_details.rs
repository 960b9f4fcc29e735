//! The optional counters of performance management: what kinds of errors, and which lanes (IBA 16.1.4).
//!
//! All of these stop at their highest value until they are reset.

use crate::PortNum;

layout! {
    /// What was wrong with packets that came in; the first three make up PortRcvErrors, the others
    /// PortRcvSwitchRelayErrors (IBA 16.1.4.1).
    pub struct PortRcvErrorDetails: 16 {
        /// Reserved.
        0, 8, reserved_0: u8;
        /// Which port.
        8, 8, port_select: PortNum;
        /// In a Set: which counters.
        16, 16, counter_select: u16;
        /// Wrong checksums and whatever else the receiver took for a damaged packet.
        32, 16, port_local_physical_errors: u16;
        /// Packets with a length, a lane or a version that cannot be.
        48, 16, port_malformed_pkt_errors: u16;
        /// Packets for which there was no buffer.
        64, 16, port_buffer_overrun_errors: u16;
        /// Packets whose destination the forwarding table does not know.
        80, 16, port_dlid_mapping_errors: u16;
        /// Packets whose service level has no lane at the port of departure.
        96, 16, port_vl_mapping_errors: u16;
        /// Packets that the forwarding table sends back to where they came from.
        112, 16, port_looping_errors: u16;
    }

    /// Why packets were dropped on departure (IBA 16.1.4.2).
    pub struct PortXmitDiscardDetails: 12 {
        /// Reserved.
        0, 8, reserved_0: u8;
        /// Which port.
        8, 8, port_select: PortNum;
        /// In a Set: which counters.
        16, 16, counter_select: u16;
        /// The port was not up, or not active.
        32, 16, port_inactive_discards: u16;
        /// The packet was longer than the neighbour takes.
        48, 16, port_neighbor_mtu_discards: u16;
        /// The packet was too long in the switch.
        64, 16, port_sw_lifetime_limit_discards: u16;
        /// The packet was at the head of its queue for too long.
        80, 16, port_sw_hoq_lifetime_limit_discards: u16;
    }

    /// Packets received with one opcode (IBA 16.1.4.3).
    pub struct PortOpRcvCounters: 12 {
        /// The opcode.
        0, 8, op_code: u8;
        /// Which port.
        8, 8, port_select: PortNum;
        /// In a Set: which counters.
        16, 16, counter_select: u16;
        /// Packets.
        32, 32, port_op_rcv_pkts: u32;
        /// 4-byte words, from LRH to ICRC.
        64, 32, port_op_rcv_data: u32;
    }

    /// Flow control packets of the link (IBA 16.1.4.4).
    pub struct PortFlowCtlCounters: 12 {
        /// Reserved.
        0, 8, reserved_0: u8;
        /// Which port.
        8, 8, port_select: PortNum;
        /// In a Set: which counters.
        16, 16, counter_select: u16;
        /// Sent.
        32, 32, port_xmit_flow_pkts: u32;
        /// Received.
        64, 32, port_rcv_flow_pkts: u32;
    }

    /// Packets received with one opcode, by lane (IBA 16.1.4.5).
    pub struct PortVlOpPackets: 36 {
        /// The opcode.
        0, 8, op_code: u8;
        /// Which port.
        8, 8, port_select: PortNum;
        /// In a Set: which lanes.
        16, 16, counter_select: u16;
        /// By lane.
        32, 256, port_vl_op_packets: [u16; 16];
    }

    /// 4-byte words received with one opcode, by lane (IBA 16.1.4.6).
    pub struct PortVlOpData: 68 {
        /// The opcode.
        0, 8, op_code: u8;
        /// Which port.
        8, 8, port_select: PortNum;
        /// In a Set: which lanes.
        16, 16, counter_select: u16;
        /// By lane, from LRH to ICRC.
        32, 512, port_vl_op_data: [u32; 16];
    }

    /// Wrong flow control updates, by lane (IBA 16.1.4.7).
    pub struct PortVlXmitFlowCtlUpdateErrors: 8 {
        /// Reserved.
        0, 8, reserved_0: u8;
        /// Which port.
        8, 8, port_select: PortNum;
        /// In a Set: which lanes.
        16, 16, counter_select: u16;
        /// By lane, two bits each.
        32, 32, port_vl_xmit_flow_ctl_update_errors: [u8; 16];
    }

    /// Ticks that data waited without being sent, by lane (IBA 16.1.4.8).
    pub struct PortVlXmitWaitCounters: 36 {
        /// Reserved.
        0, 8, reserved_0: u8;
        /// Which port.
        8, 8, port_select: PortNum;
        /// In a Set: which lanes.
        16, 16, counter_select: u16;
        /// By lane.
        32, 256, port_vl_xmit_wait: [u16; 16];
    }
}
