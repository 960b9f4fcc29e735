//! Configuration of a device. A restarted device is a new one from the same configuration.

use serde::{Deserialize, Serialize};
use weft_machine::Time;
use weft_wire::{DataRate, Guid, LinkParameters, Mtu, NodeType, PortNum, VlCap};

use crate::size::{CREDIT_MAX, blocks, packet_size_max};
use crate::{Crossbar, LaneShare};

/// One switch or HCA.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceConfig {
    /// Switch or HCA; anything else behaves as an HCA.
    pub kind: NodeType,
    /// The node's GUID.
    pub guid: Guid,
    /// Shared by the nodes of one box.
    pub system_image_guid: Guid,
    /// The node's text, cut at 64 bytes.
    pub description: String,
    /// The vendor, 24 bits.
    pub vendor_id: u32,
    /// The vendor's device id.
    pub device_id: u16,
    /// Whether a switch's port 0 is an enhanced one.
    pub enhanced_port0: bool,
    /// The physical ports; the first is port 1. At most 254, what is beyond is left out.
    pub ports: Vec<PortConfig>,
    /// What is the same for many devices.
    pub options: DeviceOptions,
}

/// One physical port.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PortConfig {
    /// The port's GUID. A switch's physical ports have none of their own: there it is port 0's, the same on all.
    pub guid: Guid,
    /// Widths and speeds that the port supports, all of them enabled at first.
    pub link: LinkParameters,
}

weft_wire::defaults! {
    /// Capabilities, bounds and times.
    #[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(default, deny_unknown_fields)]
    pub struct DeviceOptions {
        /// The largest payload that a port can carry.
        pub mtu_cap: Mtu = Mtu::Bytes4096,
        /// The data lanes that a port has.
        pub vl_cap: VlCap = VlCap::Vl0To7,
        /// Entries of the high-priority arbitration table, at most 64.
        pub vl_arbitration_high_cap: u8 = 8,
        /// Entries of the low-priority arbitration table, at most 64.
        pub vl_arbitration_low_cap: u8 = 8,
        /// Entries of a port's P_Key table, a multiple of 32.
        pub partition_cap: u16 = 64,
        /// GUIDs of a port, at most 255.
        pub guid_cap: u8 = 32,
        /// Entries of a switch's linear forwarding table.
        pub lft_cap: u16 = 0xc000,
        /// Entries of a switch's multicast forwarding table.
        pub mft_cap: u16 = 1024,
        /// Whether a switch takes the wildcards of SLtoVLMappingTable.
        pub optimized_sl_to_vl_mapping: bool = true,
        /// SMPs that wait while another one is processed; the next one is dropped and counted (VL15Dropped).
        pub vl15_buffer_packets: u16 = 128,
        /// How long one SMP keeps the device's management busy; zero answers at once.
        pub smp_processing: Time = Time::ZERO,
        /// Time from one sending of a trap to the next.
        pub trap_interval: Time = Time::from_millis(500),
        /// How often a trap is sent when no one answers; 0 sends none at all.
        pub trap_limit: u16 = 10,
        /// Management programs attached at the same time.
        pub clients_max: u16 = 1024,
        /// Whether they may send SMPs. Where not, as at a virtual function whose QP0 is closed, those are dropped and counted, and
        /// no program makes the port a subnet manager's; the device's own management agent answers as ever.
        pub programs_qp0: bool = true,
        /// What a host says when it is asked for its processors (vendor class 0x33), at most 215 bytes.
        pub processors: String = "an emulated host of weft, which has no processors of its own".to_owned(),
        /// The data lanes.
        pub data: DataPathOptions = DataPathOptions::default(),
    }
}

weft_wire::defaults! {
    /// How data lanes behave.
    #[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(default, deny_unknown_fields)]
    pub struct DataPathOptions {
        /// Whether a packet takes the time that its link's rate says. Otherwise it takes none.
        pub shaped: bool = false,
        /// Nanoseconds of machine time in one nanosecond of fabric time: 1000 is the rate scale 1/1000. Rates, lifetimes and
        /// the 4 ns of a tick are of fabric time.
        pub dilation: u32 = 1,
        /// What a host moves in each direction at most, in megabits per second of fabric time. With 0 it sends what the
        /// crossbar's [`host_bus_percent`](Crossbar::host_bus_percent) says, and takes what its link brings. Whole packets
        /// count, from LRH to VCRC.
        pub host_limit_mbps: u32 = 0,
        /// The bus of a host that the functions of its virtualised adapter share: what all of them move together at most, in each
        /// direction, in megabits per second of fabric time; 0 sets no limit. Whole packets count. A vSwitch's alone; means
        /// nothing without [`shaped`](Self::shaped).
        pub host_bus_mbps: u32 = 0,
        /// A vSwitch's port to the fabric; its other ports lead to the functions of its host. 0 in other devices.
        pub uplink: PortNum = PortNum::ZERO,
        /// Depth of the buffer of each input port and lane, in packets of the largest size that the port takes; 0 is what
        /// the crossbar's [`buffer_blocks`](Crossbar::buffer_blocks) says. No deeper than [`Self::buffer_packets_max`].
        pub buffer_packets: u16 = 0,
        /// How packets get from a switch's inputs to its outputs.
        pub crossbar: Crossbar = Crossbar::IS4,
        /// What becomes of the share of a switch's link that a lane does not use. Means nothing without [`shaped`](Self::shaped).
        pub lane_share: LaneShare = LaneShare::Lent,
        /// Whether switches cut through: a packet may leave before its tail has come in, and passes over a cable when its
        /// first bit does. Otherwise they store and forward, and it passes when its last bit does. The same in all devices
        /// that are cabled to each other; means nothing without [`shaped`](Self::shaped).
        pub cut_through: bool = false,
    }
}

/// Depth of a buffer in packets where neither the options nor the crossbar say.
const BUFFER_PACKETS: u16 = 16;

impl DataPathOptions {
    /// The deepest buffer that flow control can promise at this MTU, in packets of the largest size: 2048 blocks of 64 bytes
    /// (IBA 7.9.4.2).
    pub fn buffer_packets_max(mtu: Mtu) -> u16 {
        CREDIT_MAX / u16::from(blocks(packet_size_max(mtu)))
    }

    /// The crossbar as it works: without rates there is no time in which it could limit anything.
    pub(crate) fn effective_crossbar(&self) -> Crossbar {
        if self.shaped { self.crossbar } else { Crossbar::UNLIMITED }
    }

    /// Whether packets cut through: without rates they take no time that could be saved.
    pub(crate) fn cuts_through(&self) -> bool {
        self.shaped && self.cut_through
    }

    /// Blocks of 64 bytes in the buffer of each input port and lane, where the largest packet takes `largest`. An
    /// explicit number of packets overrides the crossbar's own buffer.
    pub(crate) fn buffer_blocks(&self, largest: u16) -> u16 {
        let blocks = match (self.buffer_packets, self.effective_crossbar().buffer_blocks) {
            (0, 0) => BUFFER_PACKETS.saturating_mul(largest),
            (0, blocks) => blocks,
            (packets, _) => packets.saturating_mul(largest),
        };
        blocks.max(largest)
    }

    /// What a host behind a link of this data rate sends at most; [`DataRate::INSTANT`] sets no limit.
    pub(crate) fn host_limit(&self, link: DataRate) -> DataRate {
        match self.host_limit_mbps {
            0 => link.percent(self.effective_crossbar().host_bus_percent),
            limit => DataRate::from_mbps(limit),
        }
    }
}
