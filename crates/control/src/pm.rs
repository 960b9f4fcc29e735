//! Status of performance managers and of the ports that they sweep.

use serde::{Deserialize, Serialize};
use weft_wire::{Lid, ServiceLevel};

use crate::agent::PortEnd;

pub use weft_vocabulary::pm::{End as PmEnd, HotSpot, Port as PmPort, Statistics, Totals as PmTotals};

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

impl From<&PmPort> for PortEnd {
    fn from(port: &PmPort) -> Self {
        Self { node: port.end.node_guid, port: port.end.port }
    }
}
