//! The congestion control class: its MAD and its attributes (IBA annex A10.4).

use crate::value::Bits;
use crate::{Lid, QpNum, ServiceLevel};

/// The version of class CongestionControl.
pub const CONGESTION_CLASS_VERSION: u8 = 2;

/// Where a congestion log has its bytes in the MAD.
pub const CONGESTION_LOG_DATA: std::ops::Range<usize> = 32..256;

/// Where every other attribute of the class has its bytes in the MAD.
pub const CONGESTION_DATA: std::ops::Range<usize> = 64..256;

/// Ports in one block of [`SwitchPortCongestionSetting`].
pub const PORTS_OF_A_BLOCK: usize = 32;

/// Entries in one block of [`CongestionControlTable`].
pub const ENTRIES_OF_A_BLOCK: usize = 64;

/// Attributes of class CongestionControl (IBA A10.4.3).
pub mod congestion_attribute {
    use crate::AttributeId;

    attributes! {
        /// What the device can do.
        CONGESTION_INFO = 0x11, "CongestionInfo";
        /// The key that Sets must show.
        CONGESTION_KEY_INFO = 0x12, "CongestionKeyInfo";
        /// What happened lately.
        CONGESTION_LOG = 0x13, "CongestionLog";
        /// How a switch marks packets.
        SWITCH_CONGESTION_SETTING = 0x14, "SwitchCongestionSetting";
        /// The same by port, where it differs.
        SWITCH_PORT_CONGESTION_SETTING = 0x15, "SwitchPortCongestionSetting";
        /// How a channel adapter answers notifications.
        CA_CONGESTION_SETTING = 0x16, "CACongestionSetting";
        /// A block of injection delays.
        CONGESTION_CONTROL_TABLE = 0x17, "CongestionControlTable";
        /// The clock of the log.
        TIME_STAMP = 0x18, "TimeStamp";
    }
}

/// Bits of SwitchCongestionSetting's Control_Map: what a Set changes (IBA A10.4.3.6).
pub mod switch_control {
    /// Victim_Mask.
    pub const VICTIM_MASK: u32 = 1 << 0;
    /// Credit_Mask.
    pub const CREDIT_MASK: u32 = 1 << 1;
    /// Threshold and Packet_Size.
    pub const THRESHOLD: u32 = 1 << 2;
    /// CS_Threshold and CS_ReturnDelay.
    pub const CREDIT_STARVATION: u32 = 1 << 3;
    /// Marking_Rate.
    pub const MARKING_RATE: u32 = 1 << 4;
}

mads! {
    /// A MAD of class CongestionControl (IBA A10.4.1).
    CongestionMad: 256 {
        /// What the sender shows to be let in.
        192, 64, cc_key: u64;
        /// The beginning of a log; of every other attribute reserved.
        256, 256, log_data: [u8; 32];
        /// The attribute's bytes.
        512, 1536, data: [u8; 192];
    }
}

layout! {
    /// What the device can do (IBA A10.4.3.2).
    pub struct CongestionInfo: 4 {
        /// Capabilities, the lowest bit being credit starvation.
        0, 16, congestion_info: u16;
        /// Blocks of 64 entries in a channel adapter's table.
        16, 8, control_table_cap: u8;
        /// Reserved.
        24, 8, reserved_24: u8;
    }

    /// The key of the agent (IBA A10.4.3.3).
    pub struct CongestionKeyInfo: 16 {
        /// What Sets must show; 0 lets everybody in.
        0, 64, cc_key: u64;
        /// Whether only who shows the key may read it.
        64, 1, protect: bool;
        /// Reserved.
        65, 15, reserved_65: u16;
        /// Seconds from a wrong key until the protection ends, unless the right one is shown; 0 is never.
        80, 16, lease_period: u16;
        /// MADs with a wrong key; a Set clears it with 0 and otherwise leaves it.
        96, 16, violations: u16;
        /// Reserved.
        112, 16, reserved_112: u16;
    }

    /// A switch's log (IBA A10.4.3.4).
    pub struct SwitchCongestionLog: 224 {
        /// 1.
        0, 8, log_type: u8;
        /// The lowest bit: the lease of the key runs, since a wrong one was shown.
        8, 8, congestion_flags: u8;
        /// Packets marked since the log was last sent; stays at its highest value.
        16, 16, log_events_counter: u16;
        /// The time, in 1.024 µs.
        32, 32, current_time_stamp: u32;
        /// Ports that have marked, the last bit being port 0.
        64, 256, port_map: [u8; 32];
        /// The newest 15 [`SwitchCongestionLogEntry`], one behind the other.
        320, 1440, entries: [u8; 180];
        /// Reserved.
        1760, 32, reserved_1760: u32;
    }

    /// A packet that a switch marked (IBA A10.4.3.4).
    pub struct SwitchCongestionLogEntry: 12 {
        /// Where from.
        0, 16, slid: Lid;
        /// Where to.
        16, 16, dlid: Lid;
        /// Its service level.
        32, 4, service_level: ServiceLevel;
        /// Reserved.
        36, 28, reserved_36: u32;
        /// When, in 1.024 µs.
        64, 32, time_stamp: u32;
    }

    /// A channel adapter's log (IBA A10.4.3.4, the field of the time on a word as libibmad has it).
    pub struct CaCongestionLog: 224 {
        /// 2.
        0, 8, log_type: u8;
        /// The lowest bit: the lease of the key runs, since a wrong one was shown.
        8, 8, congestion_flags: u8;
        /// Times that an index came to its Trigger_Threshold since the log was last sent.
        16, 16, threshold_event_counter: u16;
        /// The service levels of that, since then too.
        32, 16, threshold_congestion_event_map: u16;
        /// Reserved.
        48, 16, reserved_48: u16;
        /// The time, in 1.024 µs.
        64, 32, current_time_stamp: u32;
        /// The newest 13 [`CaCongestionLogEntry`], one behind the other.
        96, 1664, entries: [u8; 208];
        /// Reserved.
        1760, 32, reserved_1760: u32;
    }

    /// An index that came to its Trigger_Threshold (IBA A10.4.3.4).
    pub struct CaCongestionLogEntry: 16 {
        /// The own queue pair.
        0, 24, local_qp: QpNum;
        /// The service level.
        24, 4, service_level: ServiceLevel;
        /// The kind of transport.
        28, 4, service_type: u8;
        /// The queue pair that notified.
        32, 24, remote_qp: QpNum;
        /// Reserved.
        56, 8, reserved_56: u8;
        /// The own LID.
        64, 16, local_lid: Lid;
        /// The LID that notified.
        80, 16, remote_lid: Lid;
        /// When, in 1.024 µs.
        96, 32, time_stamp: u32;
    }

    /// How a switch marks packets (IBA A10.4.3.6).
    pub struct SwitchCongestionSetting: 76 {
        /// What a Set changes ([`switch_control`]).
        0, 32, control_map: u32;
        /// Ports that mark even while they have no credit, the last bit being port 0.
        32, 256, victim_mask: [u8; 32];
        /// Ports that look for credit starvation, the last bit being port 0.
        288, 256, credit_mask: [u8; 32];
        /// How easily a port marks: 0 never, 15 with the shortest queue.
        544, 4, threshold: u8;
        /// Reserved.
        548, 4, reserved_548: u8;
        /// Packets of fewer 64-byte units are not marked.
        552, 8, packet_size: u8;
        /// How easily credit starvation is seen.
        560, 4, cs_threshold: u8;
        /// Reserved.
        564, 12, reserved_564: u16;
        /// How long credits are held back, as an entry of the table of delays.
        576, 16, cs_return_delay: u16;
        /// The mean number of packets that could be marked between two that are.
        592, 16, marking_rate: u16;
    }
}

/// How one port of a switch marks packets, where it differs (IBA A10.4.3.7).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SwitchPortCongestion {
    /// Whether this stands before the switch's setting.
    pub valid: bool,
    /// Whether it is about credit starvation rather than marking.
    pub credit_starvation: bool,
    /// The threshold.
    pub threshold: u8,
    /// Packets of fewer 64-byte units are not marked.
    pub packet_size: u8,
    /// The marking rate, or how long credits are held back.
    pub marking_rate: u16,
}

impl Bits for SwitchPortCongestion {
    const BITS: usize = 32;
    #[inline(always)]
    fn from_bits(bits: u64) -> Self {
        let [first, packet_size, high, low] = (bits as u32).to_be_bytes();
        Self {
            valid: first & 0x80 != 0,
            credit_starvation: first & 0x40 != 0,
            threshold: first & 0xf,
            packet_size,
            marking_rate: u16::from_be_bytes([high, low]),
        }
    }
    #[inline(always)]
    fn to_bits(self) -> u64 {
        let first = u8::from(self.valid) << 7 | u8::from(self.credit_starvation) << 6 | self.threshold & 0xf;
        let [high, low] = self.marking_rate.to_be_bytes();
        u32::from_be_bytes([first, self.packet_size, high, low]).into()
    }
}

layout! {
    /// A block of 32 ports of a switch; the attribute modifier is the block's number (IBA A10.4.3.7).
    pub struct SwitchPortCongestionSetting: 128 {
        /// By port, from 32 times the attribute modifier on.
        0, 1024, ports: [SwitchPortCongestion; 32];
    }
}

/// How a channel adapter answers notifications on one service level (IBA A10.4.3.8).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CaCongestionEntry {
    /// How long until the index goes down by one, in 1.024 µs.
    pub ccti_timer: u16,
    /// What a notification adds to the index.
    pub ccti_increase: u8,
    /// The index at which an event is logged; 0 is none.
    pub trigger_threshold: u8,
    /// The lowest index.
    pub ccti_min: u8,
}

impl Bits for CaCongestionEntry {
    const BITS: usize = 64;
    #[inline(always)]
    fn from_bits(bits: u64) -> Self {
        let [high, low, ccti_increase, trigger_threshold, ccti_min, ..] = bits.to_be_bytes();
        let ccti_timer = u16::from_be_bytes([high, low]);
        Self { ccti_timer, ccti_increase, trigger_threshold, ccti_min }
    }
    #[inline(always)]
    fn to_bits(self) -> u64 {
        let [high, low] = self.ccti_timer.to_be_bytes();
        u64::from_be_bytes([high, low, self.ccti_increase, self.trigger_threshold, self.ccti_min, 0, 0, 0])
    }
}

layout! {
    /// How a channel adapter answers notifications (IBA A10.4.3.8).
    pub struct CaCongestionSetting: 132 {
        /// 0: by queue pair; 1: by service level.
        0, 16, port_control: u16;
        /// The service levels that a Set changes.
        16, 16, control_map: u16;
        /// By service level.
        32, 1024, entries: [CaCongestionEntry; 16];
    }

    /// A block of 64 injection delays; the attribute modifier is the block's number (IBA A10.4.3.9).
    pub struct CongestionControlTable: 132 {
        /// The highest index of the whole table.
        0, 16, ccti_limit: u16;
        /// Reserved.
        16, 16, reserved_16: u16;
        /// Of each index: 2 bits of shift, 14 of multiplier.
        32, 1024, entries: [u16; 64];
    }

    /// The clock of the log (IBA A10.4.3.10).
    pub struct CongestionTimeStamp: 4 {
        /// The time, in 1.024 µs.
        0, 32, time_stamp: u32;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Mad;

    #[test]
    fn the_fields_lie_where_public_documentation_has_them() {
        let mut mad = Mad::default();
        CongestionMad::cc_key.set(&mut mad.0, 0x0102_0304_0506_0708);
        assert_eq!(mad.0[24..32], [1, 2, 3, 4, 5, 6, 7, 8]);
        let switch = SwitchCongestionSetting {
            control_map: 0x1f,
            threshold: 0xf,
            packet_size: 8,
            cs_return_delay: 0x4001,
            marking_rate: 0x203,
            ..SwitchCongestionSetting::default()
        };
        let bytes = switch.encode();
        assert_eq!(bytes[..4], [0, 0, 0, 0x1f]);
        assert_eq!(bytes[68..], [0xf0, 8, 0, 0, 0x40, 1, 2, 3]);
        assert_eq!(SwitchCongestionSetting::decode(&bytes), switch);
    }

    #[test]
    fn arrays_of_entries_survive_a_round_trip() {
        let entry =
            CaCongestionEntry { ccti_timer: 150, ccti_increase: 1, trigger_threshold: 2, ccti_min: 3 };
        let mut setting = CaCongestionSetting { control_map: 2, ..CaCongestionSetting::default() };
        setting.entries[1] = entry;
        let bytes = setting.encode();
        assert_eq!(bytes[12..20], [0, 150, 1, 2, 3, 0, 0, 0]);
        assert_eq!(CaCongestionSetting::decode(&bytes), setting);
        let port = SwitchPortCongestion {
            valid: true,
            credit_starvation: false,
            threshold: 5,
            packet_size: 6,
            marking_rate: 0x708,
        };
        let mut ports = SwitchPortCongestionSetting::default();
        ports.ports[31] = port;
        let bytes = ports.encode();
        assert_eq!(bytes[124..], [0x85, 6, 7, 8]);
        assert_eq!(SwitchPortCongestionSetting::decode(&bytes), ports);
    }
}
