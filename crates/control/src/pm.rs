//! Status of performance managers and of the ports that they sweep.

use serde::{Deserialize, Serialize};
use weft_wire::{Lid, PortNum, ServiceLevel};

use crate::HexGuid;
use crate::agent::{NodeKind, PortEnd};

/// How a performance manager is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PmStatus {
    /// How old this is, in milliseconds: more than 0 when the manager is too busy to say how it is now.
    pub age_ms: u64,
    /// Whether it is attached to its port.
    pub attached: bool,
    /// Whether the fabric is known and swept.
    pub ready: bool,
    /// Its own port's LID; 0 before it is known.
    #[cfg_attr(feature = "schema", schemars(with = "u16"))]
    pub lid: Lid,
    /// The subnet manager's LID; 0 before it is known.
    #[cfg_attr(feature = "schema", schemars(with = "u16"))]
    pub sm_lid: Lid,
    /// The service level of the slow lane.
    #[cfg_attr(feature = "schema", schemars(with = "u8"))]
    pub slow_sl: ServiceLevel,
    /// Nanoseconds of machine time in one of fabric time.
    pub dilation: u32,
    /// From the start of one sweep to that of the next, in nanoseconds.
    pub interval_ns: u64,
    /// Ticks per second of fabric time above which a port is congested.
    pub threshold: u64,
    /// Whether counters by lane are swept too.
    pub sweeps_lanes: bool,
    /// The hot spots, in order of GUIDs.
    pub hot_spots: Vec<HotSpot>,
    /// Hosts times hot spots of which what is wanted is not known to be so.
    pub moves: u64,
    /// What it has done.
    pub statistics: Statistics,
}

/// A hot spot.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HotSpot {
    /// The host's LID.
    #[cfg_attr(feature = "schema", schemars(with = "u16"))]
    pub lid: Lid,
    /// The host's port.
    pub port_guid: HexGuid,
    /// The sweep that found it.
    pub since_sweep: u64,
    /// The ports of the hosts that are asked to keep to the slow lane towards it.
    pub contributors: Vec<HexGuid>,
}

/// An end of a cable.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PmEnd {
    /// The node's description.
    pub name: String,
    /// What kind of node it is.
    pub kind: NodeKind,
    /// The node's GUID.
    pub node_guid: HexGuid,
    /// The GUID of the port; on a switch, of its port 0.
    pub port_guid: HexGuid,
    /// The LID of the port; on a switch, of its port 0.
    #[cfg_attr(feature = "schema", schemars(with = "u16"))]
    pub lid: Lid,
    /// The port.
    #[cfg_attr(feature = "schema", schemars(with = "u8"))]
    pub port: PortNum,
}

impl PmEnd {
    /// Its place in lists.
    pub fn end(&self) -> PortEnd {
        PortEnd { node: self.node_guid, port: self.port }
    }
}

/// A port.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PmPort {
    /// The port itself.
    #[serde(flatten)]
    pub end: PmEnd,
    /// The other end of its cable, where that carries traffic too.
    pub peer: Option<PmEnd>,
    /// What width and speed carry after their coding, in bit/s.
    pub rate_bits: u64,
    /// All counts since the device's counters were zero, or since this manager saw them first.
    pub totals: PmTotals,
    /// Ticks that each of the 16 lanes waited; all 0 where lanes are not swept.
    pub lane_waits: Vec<u64>,
    /// When PortXmitWait was read last, in nanoseconds since the manager began.
    pub read_at_ns: Option<u64>,
    /// Whether the device does not answer.
    pub silent: bool,
    /// Whether the device answered a question of the last sweep for the port's counters with an error.
    pub refuses: bool,
    /// Ticks waited per second of fabric time.
    pub congestion: u64,
    /// Bytes sent per second of fabric time.
    pub xmit_bandwidth: u64,
    /// Bytes received per second of fabric time.
    pub rcv_bandwidth: u64,
    /// Bandwidth sent as a share of the link's rate.
    pub utilisation: f64,
    /// Whether it leads to a host that is a hot spot.
    pub hot_spot: bool,
    /// Whether it is asked to keep to the slow lane towards some hot spot.
    pub contributor: bool,
}

macro_rules! counters {
    ($(#[$meta:meta])* $name:ident { $( $(#[$doc:meta])* $field:ident, )* }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
        pub struct $name {
            $( $(#[$doc])* pub $field: u64, )*
        }
    };
}

counters! {
    /// A port's totals, in the units of its performance agent: data in 4-byte words, waiting in ticks of 4 ns of
    /// fabric time.
    PmTotals {
        /// PortXmitData.
        port_xmit_data,
        /// PortRcvData.
        port_rcv_data,
        /// PortXmitPkts.
        port_xmit_pkts,
        /// PortRcvPkts.
        port_rcv_pkts,
        /// PortUnicastXmitPkts.
        port_unicast_xmit_pkts,
        /// PortUnicastRcvPkts.
        port_unicast_rcv_pkts,
        /// PortMulticastXmitPkts.
        port_multicast_xmit_pkts,
        /// PortMulticastRcvPkts.
        port_multicast_rcv_pkts,
        /// SymbolErrorCounter.
        symbol_error_counter,
        /// LinkErrorRecoveryCounter.
        link_error_recovery_counter,
        /// LinkDownedCounter.
        link_downed_counter,
        /// PortRcvErrors.
        port_rcv_errors,
        /// PortRcvRemotePhysicalErrors.
        port_rcv_remote_physical_errors,
        /// PortRcvSwitchRelayErrors.
        port_rcv_switch_relay_errors,
        /// PortXmitDiscards.
        port_xmit_discards,
        /// PortXmitConstraintErrors.
        port_xmit_constraint_errors,
        /// PortRcvConstraintErrors.
        port_rcv_constraint_errors,
        /// LocalLinkIntegrityErrors.
        local_link_integrity_errors,
        /// ExcessiveBufferOverrunErrors.
        excessive_buffer_overrun_errors,
        /// VL15Dropped.
        vl15_dropped,
        /// PortXmitWait.
        port_xmit_wait,
        /// QP1Dropped.
        qp1_dropped,
    }
}

counters! {
    /// What a performance manager has done since it began.
    Statistics {
        /// Nodes known.
        nodes,
        /// Ports swept.
        ports,
        /// Devices that do not answer.
        silent_nodes,
        /// Sweeps that have ended.
        sweeps,
        /// Of those, the ones that took longer than the interval.
        late_sweeps,
        /// How long the last one took, in nanoseconds.
        sweep_last_ns,
        /// How long the longest one took, in nanoseconds.
        sweep_longest_ns,
        /// Requests for counters sent, retries included.
        requests,
        /// Of those, retries.
        retries,
        /// Requests for counters that were not answered in time.
        timeouts,
        /// Requests for counters given up.
        failures,
        /// Answers that said no, or were about something else.
        refused,
        /// Answers without a request.
        unmatched,
        /// The most requests for counters in flight at once.
        in_flight_max,
        /// Times that a device fell silent.
        silences,
        /// Times that the fabric was learned.
        learned,
        /// Times that it could not be.
        not_learned,
        /// Reports received.
        reports,
        /// Hot spots found.
        hot_spots_found,
        /// Repaths that the subnet manager has taken.
        repaths,
        /// Unpaths that the subnet manager has taken.
        unpaths,
        /// Repaths and unpaths that the subnet manager refused.
        notices_refused,
        /// Repaths and unpaths that were not answered.
        notices_unanswered,
        /// Hosts that were not told for want of room.
        moves_dropped,
    }
}
