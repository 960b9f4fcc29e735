//! Ends of cables, and hot spots.

use serde::{Deserialize, Serialize};
use weft_machine::Time;
use weft_wire::{Lid, PortNum};

use super::Totals;
use crate::{HexGuid, NodeKind};

/// An end of a cable.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "PmEnd"))]
pub struct End {
    /// The node's description.
    pub name: String,
    /// What kind of node it is.
    pub kind: NodeKind,
    /// The node's GUID.
    pub node_guid: HexGuid,
    /// The GUID of the port; on a switch, of its port 0.
    pub port_guid: HexGuid,
    /// The LID of the port; on a switch, of its port 0.
    pub lid: Lid,
    /// The port.
    pub port: PortNum,
}

/// A hot spot.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HotSpot {
    /// The host's LID.
    pub lid: Lid,
    /// The host's port.
    pub port_guid: HexGuid,
    /// The sweep that found it.
    pub since_sweep: u64,
    /// The ports of the hosts that are asked to keep to the slow lane towards it.
    pub contributors: Vec<HexGuid>,
}

/// A port.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "PmPort"))]
pub struct Port {
    /// The port itself.
    #[serde(flatten)]
    pub end: End,
    /// The other end of its cable, where that carries traffic too.
    pub peer: Option<End>,
    /// What width and speed carry after their coding, in bit/s.
    pub rate_bits: u64,
    /// All counts since the device's counters were zero, or since this manager saw them first.
    pub totals: Totals,
    /// Ticks that each of the 16 lanes waited; all 0 where lanes are not swept.
    #[cfg_attr(feature = "schema", schemars(with = "Vec<u64>"))]
    pub lane_waits: [u64; 16],
    /// When PortXmitWait was read last, in nanoseconds since the manager began.
    #[serde(rename = "read_at_ns")]
    pub read_at: Option<Time>,
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
