//! Status of performance managers and of the ports that they sweep.

use serde::{Deserialize, Serialize};
use weft_wire::{Lid, ServiceLevel};

use crate::agent::PortEnd;

pub use weft_vocabulary::pm::{End as PmEnd, HotSpot, Statistics, Totals as PmTotals};

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
    pub lid: Lid,
    /// The subnet manager's LID; 0 before it is known.
    pub sm_lid: Lid,
    /// The service level of the slow lane.
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

impl PmPort {
    /// Its place in lists.
    pub fn place(&self) -> PortEnd {
        PortEnd { node: self.end.node_guid, port: self.end.port }
    }
}
