//! The attributes of performance management (IBA 16.1.3).

use crate::{Gid, Lid, PKey, PortNum, QKey, QpNum, ServiceLevel};

layout! {
    /// What a class's agent can do and where to ask (IBA 13.4.8.1).
    pub struct ClassPortInfo: 72 {
        /// 1.
        0, 8, base_version: u8;
        /// The class's version.
        8, 8, class_version: u8;
        /// What the agent can do; the upper byte depends on the class.
        16, 16, capability_mask: u16;
        /// More of what it can do.
        32, 27, capability_mask2: u32;
        /// The longest answer: 4.096 µs times 2 to this power.
        59, 5, resp_time_value: u8;
        /// Where to ask instead; zero is here.
        64, 128, redirect_gid: Gid;
        /// Traffic class of the redirection.
        192, 8, redirect_tc: u8;
        /// Service level of the redirection.
        200, 4, redirect_sl: ServiceLevel;
        /// Flow label of the redirection.
        204, 20, redirect_fl: u32;
        /// LID of the redirection.
        224, 16, redirect_lid: Lid;
        /// Partition of the redirection.
        240, 16, redirect_p_key: PKey;
        /// Reserved.
        256, 8, reserved_256: u8;
        /// Queue pair of the redirection.
        264, 24, redirect_qp: QpNum;
        /// Queue key of the redirection.
        288, 32, redirect_q_key: QKey;
        /// Where traps go.
        320, 128, trap_gid: Gid;
        /// Traffic class of traps.
        448, 8, trap_tc: u8;
        /// Service level of traps.
        456, 4, trap_sl: ServiceLevel;
        /// Flow label of traps.
        460, 20, trap_fl: u32;
        /// LID of traps.
        480, 16, trap_lid: Lid;
        /// Partition of traps.
        496, 16, trap_p_key: PKey;
        /// Hop limit of traps.
        512, 8, trap_hl: u8;
        /// Queue pair of traps.
        520, 24, trap_qp: QpNum;
        /// Queue key of traps.
        544, 32, trap_q_key: QKey;
    }
}

/// Bits of the performance class's CapabilityMask and CapabilityMask2 (IBA 16.1.3.1).
pub mod perf_capability {
    /// Port 255 stands for all ports.
    pub const ALL_PORT_SELECT: u16 = 1 << 8;
    /// PortCountersExtended with all its counters.
    pub const EXTENDED_WIDTH: u16 = 1 << 9;
    /// PortXmitWait is counted.
    pub const XMIT_WAIT: u16 = 1 << 12;
    /// QP1Dropped is counted.
    pub const QP1_DROPPED: u16 = 1 << 15;
    /// In CapabilityMask2: PortCountersExtended has the error counters too.
    pub const ADDITIONAL_EXTENDED: u32 = 1 << 1;
}

layout! {
    /// A port's counters; each stays at its highest value until it is reset (IBA 16.1.3.5).
    pub struct PortCounters: 44 {
        /// Reserved.
        0, 8, reserved_0: u8;
        /// Which port.
        8, 8, port_select: PortNum;
        /// In a Set: which counters.
        16, 16, counter_select: u16;
        /// Minor link errors.
        32, 16, symbol_error_counter: u16;
        /// Times the link recovered by re-training.
        48, 8, link_error_recovery_counter: u8;
        /// Times the link went down.
        56, 8, link_downed_counter: u8;
        /// Packets with errors.
        64, 16, port_rcv_errors: u16;
        /// Packets that ended with the bad-packet mark.
        80, 16, port_rcv_remote_physical_errors: u16;
        /// Packets that could not be forwarded.
        96, 16, port_rcv_switch_relay_errors: u16;
        /// Packets dropped on departure.
        112, 16, port_xmit_discards: u16;
        /// Packets not sent because of a constraint.
        128, 8, port_xmit_constraint_errors: u8;
        /// Packets not accepted because of a constraint.
        136, 8, port_rcv_constraint_errors: u8;
        /// In a Set: more counters.
        144, 8, counter_select2: u8;
        /// Times local errors passed their threshold.
        152, 4, local_link_integrity_errors: u8;
        /// Times overruns passed their threshold.
        156, 4, excessive_buffer_overrun_errors: u8;
        /// GMPs dropped for want of space.
        160, 16, qp1_dropped: u16;
        /// SMPs dropped for want of space.
        176, 16, vl15_dropped: u16;
        /// 4-byte words sent, from LRH to ICRC.
        192, 32, port_xmit_data: u32;
        /// 4-byte words received, from LRH to ICRC.
        224, 32, port_rcv_data: u32;
        /// Packets sent.
        256, 32, port_xmit_pkts: u32;
        /// Packets received.
        288, 32, port_rcv_pkts: u32;
        /// Ticks that data waited without being sent.
        320, 32, port_xmit_wait: u32;
    }

    /// A port's 64-bit counters (IBA 16.1.4.11).
    pub struct PortCountersExtended: 184 {
        /// Reserved.
        0, 8, reserved_0: u8;
        /// Which port.
        8, 8, port_select: PortNum;
        /// In a Set: which counters.
        16, 16, counter_select: u16;
        /// In a Set: more counters.
        32, 32, counter_select2: u32;
        /// 4-byte words sent, from LRH to ICRC.
        64, 64, port_xmit_data: u64;
        /// 4-byte words received, from LRH to ICRC.
        128, 64, port_rcv_data: u64;
        /// Packets sent.
        192, 64, port_xmit_pkts: u64;
        /// Packets received.
        256, 64, port_rcv_pkts: u64;
        /// Unicast packets sent.
        320, 64, port_unicast_xmit_pkts: u64;
        /// Unicast packets received.
        384, 64, port_unicast_rcv_pkts: u64;
        /// Multicast packets sent.
        448, 64, port_multicast_xmit_pkts: u64;
        /// Multicast packets received.
        512, 64, port_multicast_rcv_pkts: u64;
        /// Minor link errors.
        576, 64, symbol_error_counter: u64;
        /// Times the link recovered by re-training.
        640, 64, link_error_recovery_counter: u64;
        /// Times the link went down.
        704, 64, link_downed_counter: u64;
        /// Packets with errors.
        768, 64, port_rcv_errors: u64;
        /// Packets that ended with the bad-packet mark.
        832, 64, port_rcv_remote_physical_errors: u64;
        /// Packets that could not be forwarded.
        896, 64, port_rcv_switch_relay_errors: u64;
        /// Packets dropped on departure.
        960, 64, port_xmit_discards: u64;
        /// Packets not sent because of a constraint.
        1024, 64, port_xmit_constraint_errors: u64;
        /// Packets not accepted because of a constraint.
        1088, 64, port_rcv_constraint_errors: u64;
        /// Times local errors passed their threshold.
        1152, 64, local_link_integrity_errors: u64;
        /// Times overruns passed their threshold.
        1216, 64, excessive_buffer_overrun_errors: u64;
        /// SMPs dropped for want of space.
        1280, 64, vl15_dropped: u64;
        /// Ticks that data waited without being sent.
        1344, 64, port_xmit_wait: u64;
        /// GMPs dropped for want of space.
        1408, 64, qp1_dropped: u64;
    }
}
