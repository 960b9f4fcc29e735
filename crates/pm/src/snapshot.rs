//! A snapshot of the manager's knowledge, for exporters and for people.

use serde::{Deserialize, Serialize};
use weft_machine::Time;
use weft_topology::LinkRate;
use weft_vocabulary::pm::{End, HotSpot, Statistics, Totals};
use weft_wire::{Lid, ServiceLevel};

use crate::ErrorTotals;

/// Everything at one moment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Snapshot {
    /// The moment.
    pub time: Time,
    /// Whether the fabric is known and swept.
    pub ready: bool,
    /// The own port's LID; 0 before it is known.
    pub lid: Lid,
    /// The subnet manager's LID; 0 before it is known.
    pub sm_lid: Lid,
    /// The service level of the slow lane.
    pub slow_sl: ServiceLevel,
    /// Nanoseconds of machine time in one of fabric time.
    pub dilation: u32,
    /// Every port that is swept, in order of LIDs and numbers.
    pub ports: Vec<PortSnapshot>,
    /// The hot spots, in order of GUIDs.
    pub hot_spots: Vec<HotSpot>,
    /// Hosts times hot spots of which what is wanted is not known to be so.
    pub moves: usize,
    /// What the manager has done.
    pub statistics: Statistics,
}

/// A port.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PortSnapshot {
    /// The port itself.
    #[serde(flatten)]
    pub end: End,
    /// The other end of its cable, where that carries traffic too.
    pub peer: Option<End>,
    /// Width and speed.
    pub rate: LinkRate,
    /// What that carries after its coding, in bit/s.
    pub rate_bits: u64,
    /// All counts since the device's counters were zero, or since this manager saw them first.
    pub totals: Totals,
    /// Ticks that each lane waited; only where lanes are swept.
    pub lane_waits: [u64; 16],
    /// What received errors are made of; only where that is swept.
    pub errors: ErrorTotals,
    /// When PortXmitWait was read last.
    pub read_at: Option<Time>,
    /// Whether the device does not answer.
    pub silent: bool,
    /// Whether the device answered a question of the last sweep for the port's counters with an error.
    pub refuses: bool,
    /// Equation 1: ticks waited per second of fabric time.
    pub congestion: u64,
    /// Equation 2: bytes sent per second of fabric time.
    pub xmit_bandwidth: u64,
    /// The same received.
    pub rcv_bandwidth: u64,
    /// Equation 3: bandwidth sent as a share of the link's rate.
    pub utilisation: f64,
    /// Whether it leads to a host that is a hot spot.
    pub hot_spot: bool,
    /// Since when it has been asked to keep to the slow lane towards some hot spot.
    pub contributor_since: Option<Time>,
}
