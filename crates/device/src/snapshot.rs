//! A device's state as a driver, a status page or a checker sees it.

use serde::{Deserialize, Serialize};
use weft_wire::{
    Guid, Lid, LinkParameters, Mtu, NodeType, PhysState, PortNum, PortState, VirtualLane, VlCap,
};

use crate::{Counters, DropReason};

/// How much a device has done since it was switched on.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Statistics {
    /// Blocks of the linear forwarding table written.
    pub lft_writes: u64,
    /// Blocks of the multicast forwarding table written.
    pub mft_writes: u64,
    /// Blocks of P_Key tables written.
    pub p_key_writes: u64,
    /// LIDs changed.
    pub lid_changes: u64,
    /// Requests that the SMA answered.
    pub smps_answered: u64,
    /// Those of them that were Sets.
    pub smp_sets: u64,
    /// Directed-route SMPs passed on.
    pub directed_hops: u64,
    /// Packets forwarded by the table.
    pub forwarded: u64,
    /// Requests on queue pair 1 that the device itself answered: by its PMA, its services, or with a refusal.
    pub gmps_answered: u64,
    /// Traps sent, repetitions included.
    pub traps_sent: u64,
    /// Drops, by the place of the reason in [`DropReason::ALL`].
    pub drops: Vec<u64>,
}

impl Statistics {
    /// How many packets were dropped for `reason`.
    pub fn dropped(&self, reason: DropReason) -> u64 {
        self.drops.get(reason as usize).copied().unwrap_or(0)
    }

    pub(crate) fn count_drop(&mut self, reason: DropReason) {
        self.drops.resize(DropReason::ALL.len(), 0);
        self.drops[reason as usize] += 1;
    }
}

/// What a data lane of a port has counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LaneTotals {
    /// The lane.
    pub lane: VirtualLane,
    /// 4-byte words received, from LRH to ICRC.
    pub rcv_data: u64,
    /// Ticks that data waited without being sent.
    pub xmit_wait: u64,
}

/// A device at one moment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Snapshot {
    /// Switch or HCA.
    pub kind: NodeType,
    /// The node's GUID.
    pub guid: Guid,
    /// The node's text.
    pub description: String,
    /// A switch's port 0 first, then the physical ports.
    pub ports: Vec<PortSnapshot>,
    /// What the device has done.
    pub statistics: Statistics,
    /// Attached programs.
    pub clients: u16,
}

/// A port at one moment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PortSnapshot {
    /// Which port.
    pub port: PortNum,
    /// Its GUID.
    pub guid: Guid,
    /// Its logical state.
    pub state: PortState,
    /// Its physical state.
    pub physical: PhysState,
    /// Its base LID; a switch's physical ports have none.
    pub lid: Lid,
    /// 2 to this power LIDs.
    pub lmc: u8,
    /// Where its subnet manager is.
    pub master_sm_lid: Lid,
    /// The width in use, as in PortInfo.
    pub link_width_active: u8,
    /// The speed in use, as in PortInfo.
    pub link_speed_active: u8,
    /// The extended speed in use, as in PortInfo.
    pub link_speed_ext_active: u8,
    /// The width and speed in use, FDR10 and XDR too; nothing as long as there is no link.
    pub link_active: LinkParameters,
    /// The widths and speeds that are enabled.
    pub link_enabled: LinkParameters,
    /// The widths and speeds that the port can do.
    pub link_supported: LinkParameters,
    /// The neighbour's MTU.
    pub neighbor_mtu: Mtu,
    /// The lanes in use.
    pub operational_vls: VlCap,
    /// The counters since the device was switched on or since they were cleared.
    pub counters: Counters,
}
