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

/// Capabilities, bounds and times.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DeviceOptions {
    /// The largest payload that a port can carry.
    pub mtu_cap: Mtu,
    /// The data lanes that a port has.
    pub vl_cap: VlCap,
    /// Entries of the high-priority arbitration table, at most 64.
    pub vl_arbitration_high_cap: u8,
    /// Entries of the low-priority arbitration table, at most 64.
    pub vl_arbitration_low_cap: u8,
    /// Entries of a port's P_Key table, a multiple of 32.
    pub partition_cap: u16,
    /// GUIDs of a port, at most 255.
    pub guid_cap: u8,
    /// Entries of a switch's linear forwarding table.
    pub lft_cap: u16,
    /// Entries of a switch's multicast forwarding table.
    pub mft_cap: u16,
    /// Whether a switch takes the wildcards of SLtoVLMappingTable.
    pub optimized_sl_to_vl_mapping: bool,
    /// SMPs that wait while another one is processed; the next one is dropped and counted (VL15Dropped).
    pub vl15_buffer_packets: u16,
    /// How long one SMP keeps the device's management busy; zero answers at once.
    pub smp_processing: Time,
    /// Time from one sending of a trap to the next.
    pub trap_interval: Time,
    /// How often a trap is sent when no one answers; 0 sends none at all.
    pub trap_limit: u16,
    /// Management programs attached at the same time.
    pub clients_max: u16,
    /// Whether they may send SMPs. Where not, as at a virtual function whose QP0 is closed, those are dropped and counted, and
    /// no program makes the port a subnet manager's; the device's own management agent answers as ever.
    pub programs_qp0: bool,
    /// What a host says when it is asked for its processors (vendor class 0x33), at most 215 bytes.
    pub processors: String,
    /// The data lanes.
    pub data: DataPathOptions,
}

/// How data lanes behave.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DataPathOptions {
    /// Whether a packet takes the time that its link's rate says. Otherwise it takes none.
    pub shaped: bool,
    /// Nanoseconds of machine time in one nanosecond of fabric time: 1000 is the rate scale 1/1000. Rates, lifetimes and
    /// the 4 ns of a tick are of fabric time.
    pub dilation: u32,
    /// What a host moves in each direction at most, in megabits per second of fabric time. With 0 it sends what the
    /// crossbar's [`host_bus_percent`](Crossbar::host_bus_percent) says, and takes what its link brings. Whole packets
    /// count, from LRH to VCRC.
    pub host_limit_mbps: u32,
    /// The bus of a host that the functions of its virtualised adapter share: what all of them move together at most, in each
    /// direction, in megabits per second of fabric time; 0 sets no limit. Whole packets count. A vSwitch's alone; means
    /// nothing without [`shaped`](Self::shaped).
    pub host_bus_mbps: u32,
    /// A vSwitch's port to the fabric; its other ports lead to the functions of its host. 0 in other devices.
    pub uplink: PortNum,
    /// Depth of the buffer of each input port and lane, in packets of the largest size that the port takes; 0 is what
    /// the crossbar's [`buffer_blocks`](Crossbar::buffer_blocks) says. No deeper than [`Self::buffer_packets_max`].
    pub buffer_packets: u16,
    /// How packets get from a switch's inputs to its outputs.
    pub crossbar: Crossbar,
    /// What becomes of the share of a switch's link that a lane does not use. Means nothing without [`shaped`](Self::shaped).
    pub lane_share: LaneShare,
    /// Whether switches cut through: a packet may leave before its tail has come in, and passes over a cable when its
    /// first bit does. Otherwise they store and forward, and it passes when its last bit does. The same in all devices
    /// that are cabled to each other; means nothing without [`shaped`](Self::shaped).
    pub cut_through: bool,
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

impl Default for DataPathOptions {
    fn default() -> Self {
        Self {
            shaped: false,
            dilation: 1,
            host_limit_mbps: 0,
            host_bus_mbps: 0,
            uplink: PortNum::ZERO,
            buffer_packets: 0,
            crossbar: Crossbar::IS4,
            lane_share: LaneShare::Lent,
            cut_through: false,
        }
    }
}

impl Default for DeviceOptions {
    fn default() -> Self {
        Self {
            mtu_cap: Mtu::Bytes4096,
            vl_cap: VlCap::Vl0To7,
            vl_arbitration_high_cap: 8,
            vl_arbitration_low_cap: 8,
            partition_cap: 64,
            guid_cap: 32,
            lft_cap: 0xc000,
            mft_cap: 1024,
            optimized_sl_to_vl_mapping: true,
            vl15_buffer_packets: 128,
            smp_processing: Time::ZERO,
            trap_interval: Time::from_millis(500),
            trap_limit: 10,
            clients_max: 1024,
            programs_qp0: true,
            processors: "an emulated host of weft, which has no processors of its own".to_owned(),
            data: DataPathOptions::default(),
        }
    }
}
