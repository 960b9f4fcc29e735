//! The report of `weft check`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use weft_wire::{Lid, PortNum};

/// What a check has found.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "CheckReport"))]
pub struct Report {
    /// A node of the piece of the fabric that this is about, where there are several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub piece: Option<String>,
    /// Every host reaches every other.
    pub ok: bool,
    /// And nothing of this piece of the fabric is out of service: every cabled port is Active.
    pub subnet_up: bool,
    /// Cables that carry nothing.
    pub cables_out_of_service: usize,
    /// Cables whose link runs at a lower rate than both ends can do.
    pub cables_degraded: usize,
    /// The node that was looked from.
    pub attached_to: String,
    /// Switches that were found.
    pub switches: usize,
    /// Hosts that were found, virtual functions among them.
    pub hosts: usize,
    /// Cables that were found.
    pub cables: usize,
    /// Ports that are Active.
    pub ports_active: usize,
    /// LIDs of end ports.
    pub lids: usize,
    /// Pairs of a switch and a LID that were followed by tables.
    pub table_pairs: u64,
    /// Pairs that go by more cables than needed.
    pub detours: u64,
    /// What there is to say of deadlock.
    pub deadlock: Option<Deadlock>,
    /// Packets that were sent, one for each pair of hosts.
    pub packets: usize,
    /// Pairs of hosts between which the tables are proved broken: no packet was sent.
    pub packets_withheld: usize,
    /// Packets that came to no end within the limit.
    pub packets_not_tried: usize,
    /// Packets without an answer from or to virtual machines that were under way meanwhile, or to functions that change places with them.
    pub packets_under_way: usize,
    /// How pairs were chosen, where not all were tried.
    pub sampled: Option<Sample>,
    /// Out of service, but no host is lost by it.
    pub notes: Vec<String>,
    /// What is wrong.
    pub problems: Vec<String>,
    /// Pieces without a subnet manager, which nothing was asked of, and how many nodes each has.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub unmanaged: BTreeMap<String, usize>,
    /// The same by piece, where there are several.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pieces: Vec<Report>,
}

/// What there is to say of deadlock: on the lanes that weft's own subnet manager has chosen, or, where they are not
/// known, if every packet takes the same lane, which is the worst that can be.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Deadlock {
    /// Directions of cables between switches that carry packets.
    pub channels: usize,
    /// How many times packets that hold one of these may want another.
    pub dependencies: usize,
    /// The lanes that weft's own subnet manager spreads packets over, if it has routed.
    pub lanes: Option<u8>,
    /// Whether it is known which pair takes which of them.
    pub by_lane: bool,
    /// The fewest channels that may wait for each other in a circle.
    pub cycle: Option<Cycle>,
}

/// Channels each of which may be held by packets that want the next, and the last by some that want the first.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Cycle {
    /// In the order of waiting.
    pub channels: Vec<Channel>,
}

/// One direction of a cable between two switches, on one lane, held by packets that want the next of a [`Cycle`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Channel {
    /// The id of the switch that it leaves.
    pub from: String,
    /// By this port.
    #[cfg_attr(feature = "schema", schemars(with = "u8"))]
    pub exit: PortNum,
    /// The id of the switch that it leads to.
    pub to: String,
    /// By this port.
    #[cfg_attr(feature = "schema", schemars(with = "u8"))]
    pub entry: PortNum,
    /// The lane.
    pub lane: u8,
    /// The first pair, by destination and then by source, whose packets hold it and want the next.
    pub pair: Option<Pair>,
}

/// A source LID and a destination LID.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Pair {
    /// The sender.
    #[cfg_attr(feature = "schema", schemars(with = "u16"))]
    pub source: Lid,
    /// The receiver.
    #[cfg_attr(feature = "schema", schemars(with = "u16"))]
    pub destination: Lid,
}

/// How packets were chosen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Sample {
    /// The seed that chose them.
    pub seed: u64,
    /// The number of pairs that they are of.
    pub of: usize,
}
