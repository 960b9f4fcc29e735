//! A snapshot of the manager's knowledge, for exporters and for people.

use serde::{Deserialize, Serialize};
use weft_machine::Time;
use weft_topology::LinkRate;
use weft_wire::{Guid, Lid, NodeType, PortNum, ServiceLevel};

use crate::{ErrorTotals, Totals};

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
    pub hot_spots: Vec<HotSpotSnapshot>,
    /// Hosts times hot spots of which what is wanted is not known to be so.
    pub moves: usize,
    /// What the manager has done.
    pub statistics: Statistics,
}

/// An end of a cable.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EndSnapshot {
    /// The node's description.
    pub name: String,
    /// What kind of node it is.
    pub node_type: NodeType,
    /// The node's GUID.
    pub node_guid: Guid,
    /// The GUID of the port; on a switch, of its port 0.
    pub port_guid: Guid,
    /// The LID of the port; on a switch, of its port 0.
    pub lid: Lid,
    /// The port.
    pub port: PortNum,
}

/// A port.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PortSnapshot {
    /// The port itself.
    #[serde(flatten)]
    pub end: EndSnapshot,
    /// The other end of its cable, where that carries traffic too.
    pub peer: Option<EndSnapshot>,
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

/// A hot spot.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HotSpotSnapshot {
    /// The host's LID.
    pub lid: Lid,
    /// The host's port.
    pub port_guid: Guid,
    /// The sweep that found it.
    pub since_sweep: u64,
    /// The ports of the hosts that are asked to keep to the slow lane towards it.
    pub contributors: Vec<Guid>,
}

/// What the manager has done since it began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Statistics {
    /// Nodes known.
    pub nodes: u64,
    /// Ports swept.
    pub ports: u64,
    /// Devices that do not answer.
    pub silent_nodes: u64,
    /// Sweeps that have ended.
    pub sweeps: u64,
    /// Of those, the ones that took longer than the interval.
    pub late_sweeps: u64,
    /// How long the last one took.
    pub sweep_last: Time,
    /// How long the longest one took.
    pub sweep_longest: Time,
    /// How long all took together.
    pub sweep_all: Time,
    /// Requests for counters sent, retries included.
    pub requests: u64,
    /// Of those, retries.
    pub retries: u64,
    /// Requests for counters that were not answered in time.
    pub timeouts: u64,
    /// Requests for counters given up.
    pub failures: u64,
    /// Answers to requests for counters that said no, or were about something else.
    pub refused: u64,
    /// Answers that nobody waited for.
    pub unmatched: u64,
    /// The most requests for counters in flight at once.
    pub in_flight_max: u64,
    /// Round trips of requests for counters, and all of them together.
    pub round_trips: u64,
    /// All round trips together.
    pub round_trip_all: Time,
    /// Questions to silent devices.
    pub probes: u64,
    /// Times that a device fell silent.
    pub silences: u64,
    /// Sets that reset counters.
    pub resets: u64,
    /// Counters found at their highest value: less was counted than happened.
    pub counters_stopped: u64,
    /// Counters found below their last value: somebody reset them, or the device restarted.
    pub counters_fallen: u64,
    /// Times that the fabric was learned.
    pub learned: u64,
    /// Times that it could not be.
    pub not_learned: u64,
    /// Requests made to learn it, retries included.
    pub learn_requests: u64,
    /// Subscriptions refused or not answered.
    pub subscriptions_failed: u64,
    /// Reports received.
    pub reports: u64,
    /// Hot spots found.
    pub hot_spots_found: u64,
    /// Repaths that the subnet manager has taken.
    pub repaths: u64,
    /// Unpaths that the subnet manager has taken.
    pub unpaths: u64,
    /// Repaths and unpaths that the subnet manager refused.
    pub notices_refused: u64,
    /// Repaths and unpaths that were not answered.
    pub notices_unanswered: u64,
    /// Unpaths given up after too many refusals.
    pub unpaths_given_up: u64,
    /// Hosts that were not told for want of room.
    pub moves_dropped: u64,
    /// MADs that are none of the manager's business.
    pub ignored: u64,
}
