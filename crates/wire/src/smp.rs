//! The attributes of subnet management (IBA 14.2.5).

use crate::value::Bits;
use crate::{
    GidPrefix, Guid, Lid, MKey, Mtu, NodeType, PKey, PhysState, PortNum, PortState, ServiceLevel, SmKey,
    SmState, VirtualLane, VlCap,
};

layout! {
    /// A node's text, at most 64 bytes of UTF-8 (IBA 14.2.5.2).
    pub struct NodeDescription: 64 {
        /// The text, filled up with zeros.
        0, 512, text: [u8; 64];
    }
}

impl NodeDescription {
    /// From text; what is beyond 64 bytes is cut at a character's border.
    pub fn new(text: &str) -> Self {
        let end = text.floor_char_boundary(64);
        let mut bytes = [0; 64];
        bytes[..end].copy_from_slice(&text.as_bytes()[..end]);
        Self { text: bytes }
    }

    /// The text up to the first zero; bytes that are not UTF-8 are replaced.
    pub fn to_text(&self) -> String {
        let end = self.text.iter().position(|&byte| byte == 0).unwrap_or(64);
        String::from_utf8_lossy(&self.text[..end]).into_owned()
    }
}

layout! {
    /// A node's identity (IBA 14.2.5.3).
    pub struct NodeInfo: 40 {
        /// Of the MAD header: 1.
        0, 8, base_version: u8;
        /// Of the subnet management class: 1.
        8, 8, class_version: u8;
        /// Switch, HCA or router.
        16, 8, node_type: NodeType;
        /// Physical ports, a switch's port 0 not counted.
        24, 8, num_ports: u8;
        /// Shared by the nodes of one box.
        32, 64, system_image_guid: Guid;
        /// The node's own.
        96, 64, node_guid: Guid;
        /// The port's; on a switch that of port 0.
        160, 64, port_guid: Guid;
        /// Entries in the P_Key table.
        224, 16, partition_cap: u16;
        /// The vendor's device id.
        240, 16, device_id: u16;
        /// The device's revision.
        256, 32, revision: u32;
        /// The port this was asked through.
        288, 8, local_port_num: PortNum;
        /// The vendor.
        296, 24, vendor_id: u32;
    }

    /// A switch's tables and state (IBA 14.2.5.4).
    pub struct SwitchInfo: 20 {
        /// Entries of the linear forwarding table.
        0, 16, linear_fdb_cap: u16;
        /// Entries of the random forwarding table.
        16, 16, random_fdb_cap: u16;
        /// Entries of the multicast forwarding table.
        32, 16, multicast_fdb_cap: u16;
        /// The highest LID that is looked up.
        48, 16, linear_fdb_top: u16;
        /// For unicast LIDs not in a random table.
        64, 8, default_port: PortNum;
        /// For multicast LIDs not in the table.
        72, 8, default_multicast_primary_port: PortNum;
        /// For multicast LIDs not in the table, second choice.
        80, 8, default_multicast_not_primary_port: PortNum;
        /// How long a packet may stay: 4.096 µs times 2 to this power.
        88, 5, life_time_value: u8;
        /// A port's state changed; writing 1 clears it.
        93, 1, port_state_change: bool;
        /// 1: the wildcards of SLtoVLMappingTable may be used.
        94, 2, optimized_sl_to_vl_mapping: u8;
        /// LIDs per port of a random table.
        96, 16, lids_per_port: u16;
        /// Entries per port of the partition enforcement table.
        112, 16, partition_enforcement_cap: u16;
        /// Partitions can be enforced on arrival.
        128, 1, inbound_enforcement_cap: bool;
        /// Partitions can be enforced on departure.
        129, 1, outbound_enforcement_cap: bool;
        /// Raw packets can be filtered on arrival.
        130, 1, filter_raw_inbound_cap: bool;
        /// Raw packets can be filtered on departure.
        131, 1, filter_raw_outbound_cap: bool;
        /// Port 0 is an enhanced one.
        132, 1, enhanced_port0: bool;
        /// Reserved.
        133, 11, reserved_133: u16;
        /// The highest multicast LID in use.
        144, 16, multicast_fdb_top: Lid;
    }

    /// A block of eight GUIDs of a port (IBA 14.2.5.5).
    pub struct GuidInfo: 64 {
        /// The block's GUIDs.
        0, 512, guids: [Guid; 8];
    }

    /// A port's state and settings, with the extended speeds (IBA 14.2.5.6).
    pub struct PortInfo: 64 {
        /// The key that managers must show.
        0, 64, m_key: MKey;
        /// The subnet's prefix.
        64, 64, gid_prefix: GidPrefix;
        /// The port's base LID.
        128, 16, lid: Lid;
        /// Where its subnet manager is.
        144, 16, master_sm_lid: Lid;
        /// What the port can do.
        160, 32, capability_mask: u32;
        /// Diagnostics.
        192, 16, diag_code: u16;
        /// Seconds until the M_Key's protection lapses; 0 is never.
        208, 16, m_key_lease_period: u16;
        /// The port that this was asked through.
        224, 8, local_port_num: PortNum;
        /// Widths allowed.
        232, 8, link_width_enabled: u8;
        /// Widths possible.
        240, 8, link_width_supported: u8;
        /// The width in use.
        248, 8, link_width_active: u8;
        /// Speeds possible.
        256, 4, link_speed_supported: u8;
        /// The logical state.
        260, 4, port_state: PortState;
        /// The physical state.
        264, 4, port_physical_state: PhysState;
        /// Where the physical state goes when the link is lost.
        268, 4, link_down_default_state: PhysState;
        /// How strictly the M_Key is checked.
        272, 2, m_key_protect_bits: u8;
        /// Reserved.
        274, 3, reserved_274: u8;
        /// 2 to this power LIDs.
        277, 3, lmc: u8;
        /// The speed in use.
        280, 4, link_speed_active: u8;
        /// Speeds allowed.
        284, 4, link_speed_enabled: u8;
        /// The MTU that the neighbour can take.
        288, 4, neighbor_mtu: Mtu;
        /// The service level to the subnet manager.
        292, 4, master_sm_sl: ServiceLevel;
        /// Data lanes possible.
        296, 4, vl_cap: VlCap;
        /// How the manager should initialise the port.
        300, 4, init_type: u8;
        /// How many 4096-byte steps of the high table pass before a low one.
        304, 8, vl_high_limit: u8;
        /// Entries of the high table.
        312, 8, vl_arbitration_high_cap: u8;
        /// Entries of the low table.
        320, 8, vl_arbitration_low_cap: u8;
        /// How the manager did initialise the port.
        328, 4, init_type_reply: u8;
        /// The MTU possible.
        332, 4, mtu_cap: Mtu;
        /// Packets dropped in a row until a lane counts as stalled.
        336, 3, vl_stall_count: u8;
        /// How long a packet may head its queue.
        339, 5, hoq_life: u8;
        /// Data lanes in use.
        344, 4, operational_vls: VlCap;
        /// Partitions are enforced on arrival.
        348, 1, partition_enforcement_inbound: bool;
        /// Partitions are enforced on departure.
        349, 1, partition_enforcement_outbound: bool;
        /// Raw packets are dropped on arrival.
        350, 1, filter_raw_inbound: bool;
        /// Raw packets are dropped on departure.
        351, 1, filter_raw_outbound: bool;
        /// Wrong M_Keys seen.
        352, 16, m_key_violations: u16;
        /// Wrong P_Keys seen.
        368, 16, p_key_violations: u16;
        /// Wrong Q_Keys seen.
        384, 16, q_key_violations: u16;
        /// GUIDs that the port can have.
        400, 8, guid_cap: u8;
        /// Asks the clients to register again.
        408, 1, client_reregister: bool;
        /// Multicast P_Key traps are suppressed.
        409, 2, multicast_p_key_trap_suppression: u8;
        /// The subnet's longest delay: 4.096 µs times 2 to this power.
        411, 5, subnet_timeout: u8;
        /// Reserved.
        416, 3, reserved_416: u8;
        /// The port's longest answer: 4.096 µs times 2 to this power.
        419, 5, resp_time_value: u8;
        /// Threshold of local physical errors.
        424, 4, local_phy_errors: u8;
        /// Threshold of overruns.
        428, 4, overrun_errors: u8;
        /// A hint on credits.
        432, 16, max_credit_hint: u16;
        /// The second extended speeds: one component of the record, as the reserved byte was.
        448, 8, link_speed_ext2: LinkSpeedExt2;
        /// The cable's round trip in 4 ns steps.
        456, 24, link_round_trip_latency: u32;
        /// More of what the port can do.
        480, 16, capability_mask2: u16;
        /// The extended speed in use.
        496, 4, link_speed_ext_active: u8;
        /// Extended speeds possible.
        500, 4, link_speed_ext_supported: u8;
        /// Reserved.
        504, 3, reserved_504: u8;
        /// Extended speeds allowed.
        507, 5, link_speed_ext_enabled: u8;
    }
}

impl PortInfo {
    /// The lanes of the width in use, side by side in the cable; 1 while there is none.
    pub fn lanes(&self) -> u32 {
        match self.link_width_active {
            2 => 4,
            4 => 8,
            8 => 12,
            16 => 2,
            _ => 1,
        }
    }
}

/// The speeds after NDR, of which 1 is XDR: LinkSpeedExtActive2, LinkSpeedExtSupported2 and LinkSpeedExtEnabled2.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkSpeedExt2 {
    /// The speed in use, 3 bits; 0 is none of these.
    pub active: u8,
    /// Speeds possible, 2 bits.
    pub supported: u8,
    /// Speeds allowed, 3 bits.
    pub enabled: u8,
}

impl LinkSpeedExt2 {
    /// XDR, in each of the three.
    pub const XDR: u8 = 1;
}

impl Bits for LinkSpeedExt2 {
    const BITS: usize = 8;
    #[inline(always)]
    fn from_bits(bits: u64) -> Self {
        let bits = bits as u8;
        Self { active: bits >> 5, supported: bits >> 3 & 3, enabled: bits & 7 }
    }
    #[inline(always)]
    fn to_bits(self) -> u64 {
        u64::from((self.active & 7) << 5 | (self.supported & 3) << 3 | self.enabled & 7)
    }
}

layout! {
    /// A port's forward error correction (IBA 14.2.5.19).
    pub struct PortInfoExtended: 64 {
        /// What the port can do; the lowest bit: there are correction modes.
        0, 32, capability_mask: u32;
        /// The mode in use; 0 is none.
        32, 16, fec_mode_active: u16;
        /// Modes possible at FDR.
        48, 16, fdr_fec_mode_supported: u16;
        /// Modes allowed at FDR.
        64, 16, fdr_fec_mode_enabled: u16;
        /// Modes possible at EDR.
        80, 16, edr_fec_mode_supported: u16;
        /// Modes allowed at EDR.
        96, 16, edr_fec_mode_enabled: u16;
        /// Modes possible at HDR.
        112, 16, hdr_fec_mode_supported: u16;
        /// Modes allowed at HDR.
        128, 16, hdr_fec_mode_enabled: u16;
        /// Modes possible at NDR.
        144, 16, ndr_fec_mode_supported: u16;
        /// Modes allowed at NDR.
        160, 16, ndr_fec_mode_enabled: u16;
        /// Reserved.
        176, 336, reserved_176: [u8; 42];
    }

    /// A port's FDR10 speed, an attribute of Mellanox's own.
    pub struct MlnxExtPortInfo: 64 {
        /// Reserved.
        0, 24, reserved_0: u32;
        /// In a Set: which of the states below it changes; 1 is the speed.
        24, 8, state_change_enable: u8;
        /// Reserved.
        32, 24, reserved_32: u32;
        /// Speeds possible; 1 is FDR10.
        56, 8, link_speed_supported: u8;
        /// Reserved.
        64, 24, reserved_64: u32;
        /// Speeds allowed.
        88, 8, link_speed_enabled: u8;
        /// Reserved.
        96, 24, reserved_96: u32;
        /// The speed in use; 0 when it is none of these.
        120, 8, link_speed_active: u8;
        /// Error correction and retransmission, which nothing here has.
        128, 384, reserved_128: [u8; 48];
    }
}

impl MlnxExtPortInfo {
    /// FDR10 in the speeds, and the speed in what a Set changes.
    pub const FDR10: u8 = 1;
}

layout! {
    /// A block of 32 partition keys (IBA 14.2.5.7).
    pub struct PKeyTable: 64 {
        /// The block's keys; 0 is an empty entry.
        0, 512, p_keys: [PKey; 32];
    }

    /// The lane of each service level, for one input and one output port (IBA 14.2.5.8).
    pub struct SlToVlTable: 8 {
        /// By service level; lane 15 means drop.
        0, 64, lanes: [VirtualLane; 16];
    }
}

/// One entry of a lane arbitration table (IBA 7.6.9).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VlArbitrationEntry {
    /// The four bits before the lane.
    pub reserved: u8,
    /// The lane.
    pub vl: VirtualLane,
    /// How many 64-byte steps it may send; 0 skips the entry.
    pub weight: u8,
}

impl Bits for VlArbitrationEntry {
    const BITS: usize = 16;
    #[inline(always)]
    fn from_bits(bits: u64) -> Self {
        let [first, weight] = (bits as u16).to_be_bytes();
        Self { reserved: first >> 4, vl: VirtualLane(first & 0xf), weight }
    }
    #[inline(always)]
    fn to_bits(self) -> u64 {
        u64::from(u16::from_be_bytes([self.reserved << 4 | self.vl.0 & 0xf, self.weight]))
    }
}

layout! {
    /// Half of a low or high arbitration table (IBA 14.2.5.9).
    pub struct VlArbitrationTable: 64 {
        /// The entries, visited in order.
        0, 512, entries: [VlArbitrationEntry; 32];
    }

    /// A block of 64 unicast forwarding entries (IBA 14.2.5.10).
    pub struct LinearForwardingTable: 64 {
        /// The port to leave by; 255 is no route.
        0, 512, ports: [PortNum; 64];
    }

    /// A block of 32 multicast forwarding entries for 16 ports (IBA 14.2.5.12).
    pub struct MulticastForwardingTable: 64 {
        /// One bit per port.
        0, 512, port_masks: [u16; 32];
    }

    /// A subnet manager's state (IBA 14.2.5.13).
    pub struct SmInfo: 21 {
        /// The port GUID that the manager is behind.
        0, 64, guid: Guid;
        /// The key of managers that trust each other.
        64, 64, sm_key: SmKey;
        /// Counts the manager's work, so that a hung one is noticed.
        128, 32, act_count: u32;
        /// 0 to 15, higher wins.
        160, 4, priority: u8;
        /// The state.
        164, 4, sm_state: SmState;
    }
}
