//! Status of agents: devices, ports and cables.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};
use weft_wire::{Lid, PortNum, VirtualLane};

use crate::vm::SlotState;
use crate::{HexBytes, HexGuid};

pub use weft_vocabulary::{NodeKind, PhysState, PortState};

/// One end of a cable.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PortEnd {
    /// The node.
    pub node: HexGuid,
    /// Its port; 0 is a switch's management port.
    pub port: PortNum,
}

/// A cable, and how long it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PlacedCable {
    /// Its two ends.
    pub ends: [PortEnd; 2],
    /// How long its data lanes take beside what QUIC takes, in nanoseconds.
    pub delay_ns: u64,
}

impl fmt::Display for PortEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.node, self.port)
    }
}

/// How an agent is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AgentStatus {
    /// How many devices it runs.
    pub devices: u32,
    /// Ends of cables here that have a link.
    pub links_up: u32,
    /// Ends of cables here.
    pub cable_ends: u32,
    /// Cables that it has to dial and that have no link yet.
    pub to_dial: u32,
    /// Programs attached to its devices.
    pub programs: u32,
    /// The longest time that a peer may be silent, of its links that stand, in milliseconds; 0 without any. The longer the round trip to
    /// a peer, the longer it may be.
    #[serde(default)]
    pub link_timeout_ms: u64,
    /// What happened, counted since the agent began. What it refused or dropped is listed from the start, other
    /// events once they have happened.
    pub counts: BTreeMap<String, u64>,
    /// How late it does what its devices and hosts want done at a moment, since it began or since `reset-lateness`.
    pub lateness: Lateness,
}

/// How late deadlines were met. A stall counts once for each millisecond of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Lateness {
    /// How many deadlines there were.
    pub count: u64,
    /// Half of them were met within this time, in nanoseconds; at most an eighth too much.
    pub p50_ns: u64,
    /// 99 of 100 were, in nanoseconds.
    pub p99_ns: u64,
    /// The latest, in nanoseconds.
    pub max_ns: u64,
}

/// One device of an agent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DeviceStatus {
    /// The node's GUID.
    pub node: HexGuid,
    /// The node's description.
    pub description: String,
    /// What it is.
    pub kind: NodeKind,
    /// External ports.
    pub ports: u8,
    /// Its cables that have a link.
    pub links_up: u32,
    /// Its ports that have a cable.
    pub links_total: u32,
    /// Programs attached to it.
    pub programs: u32,
    /// Blocks of its linear forwarding table that were written.
    pub lft_writes: u64,
    /// Sets of management that it received, as a slot those of its earlier identities too.
    pub smp_sets: u64,
}

/// One port.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PortStatus {
    /// The port itself.
    pub end: PortEnd,
    /// The other end of its cable, if it has one.
    pub peer: Option<PortEnd>,
    /// How long the data lanes of that cable take beside what QUIC takes, in nanoseconds.
    #[serde(default)]
    pub delay_ns: u64,
    /// Its logical state.
    pub state: PortState,
    /// Its physical state.
    pub phys_state: PhysState,
    /// Whether the link to the peer's agent stands.
    pub link_up: bool,
    /// Whether this end of the cable is plugged in.
    pub plugged: bool,
    /// Its base LID; 0 as long as it has none.
    pub lid: Lid,
    /// LinkWidthActive, as in PortInfo.
    pub width_active: u8,
    /// LinkSpeedActive.
    pub speed_active: u8,
    /// LinkSpeedExtActive.
    pub speed_ext_active: u8,
    /// The rate of the link as it is, such as `4xHDR`; empty without a link.
    #[serde(default)]
    pub rate: String,
    /// The best rate that is enabled at this end.
    #[serde(default)]
    pub rate_enabled: String,
    /// The best rate that this end can do.
    #[serde(default)]
    pub rate_supported: String,
    /// The slot of virtual machines that the port is of, if it is of one: the NodeGUID that it began with, and how it is used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slot: Option<SlotUse>,
    /// How long the peer's agent may be silent until the link is down, in milliseconds; none where both ends are in one agent, or no
    /// link stands.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link_timeout_ms: Option<u64>,
    /// The round trip to the peer's agent, in microseconds, as QUIC measures it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub round_trip_us: Option<u64>,
    /// What it counted.
    pub totals: PortTotals,
}

/// The use of a slot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SlotUse {
    /// The NodeGUID that it began with. Its device has another one while another identity sits in it.
    pub slot: HexGuid,
    /// How it is used.
    pub state: SlotState,
}

/// A port's counters, in the units of PortCountersExtended (IBA 16.1.4.11).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PortTotals {
    /// Packets sent.
    pub xmit_packets: u64,
    /// Four-byte words sent.
    pub xmit_words: u64,
    /// Packets received.
    pub rcv_packets: u64,
    /// Four-byte words received.
    pub rcv_words: u64,
    /// Of those sent, the ones to one receiver.
    pub unicast_xmit_packets: u64,
    /// Of those received, the ones to one receiver.
    pub unicast_rcv_packets: u64,
    /// Of those sent, the ones to many receivers.
    pub multicast_xmit_packets: u64,
    /// Of those received, the ones to many receivers.
    pub multicast_rcv_packets: u64,
    /// Minor link errors.
    pub symbol_errors: u64,
    /// Times the link recovered by training again.
    pub link_error_recovery: u64,
    /// Times the link went down.
    pub link_downed: u64,
    /// Packets that arrived damaged.
    pub rcv_errors: u64,
    /// Packets that arrived marked as bad.
    pub rcv_remote_physical_errors: u64,
    /// Packets that could not be forwarded.
    pub rcv_switch_relay_errors: u64,
    /// Packets that could not be sent.
    pub xmit_discards: u64,
    /// Packets not sent because of a constraint.
    pub xmit_constraint_errors: u64,
    /// Packets not accepted because of a constraint.
    pub rcv_constraint_errors: u64,
    /// Times local errors passed their threshold.
    pub local_link_integrity_errors: u64,
    /// Times overruns passed their threshold.
    pub excessive_buffer_overrun_errors: u64,
    /// VL 15 packets for which there was no buffer.
    pub vl15_dropped: u64,
    /// Ticks of 4 ns of fabric time that data waited without being sent.
    pub xmit_wait: u64,
    /// Peers refused because their certificate or hello did not match the cabling.
    pub peers_refused: u64,
}

/// Which counts of data lanes a client wants.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct CountsPage {
    /// The last port of the page before; without it the list begins.
    pub after: Option<PortEnd>,
    /// How many ports at most: 1 to 4096.
    pub limit: Option<u32>,
    /// The `sum` that the client had last: while it is the same, the answer has no ports.
    pub known: Option<u64>,
}

/// What ports have counted on data lanes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PortCounts {
    /// Nanoseconds of machine time in one of fabric time.
    pub dilation: u32,
    /// The agent's clock, in nanoseconds.
    pub now_ns: u64,
    /// All counts of all ports of the agent together, wrapped at 64 bits: as long as it is the same, nothing was counted.
    pub sum: u64,
    /// The page: ports that have counted something.
    pub ports: Vec<CountedPort>,
    /// Whether more follow.
    pub more: bool,
}

/// What a port has counted on data lanes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CountedPort {
    /// The port.
    pub end: PortEnd,
    /// PortXmitWait: ticks of 4 ns of fabric time in which there was data, and nothing was sent.
    pub xmit_wait: u64,
    /// The lanes that have counted something.
    pub lanes: Vec<LaneCount>,
}

/// What a port has counted on a data lane.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LaneCount {
    /// The lane.
    pub lane: VirtualLane,
    /// Four-byte words received.
    pub rcv_words: u64,
    /// Ticks of 4 ns of fabric time in which the lane had data, and nothing was sent.
    pub xmit_wait: u64,
}

/// The account of a device's data lanes since the device was switched on.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DeviceAccount {
    /// The node.
    pub node: HexGuid,
    /// Whether on every lane what came in is what went out, is held, or was dropped; no buffer is over its size; and
    /// no port has promised more than it has room for.
    pub sound: bool,
    /// The lanes that anything ever was on. 15 stands for packets whose service level has no lane.
    pub lanes: Vec<LaneAccount>,
}

/// Packets on one data lane of a device. One that a switch moves to another lane is counted on the lane it is on.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LaneAccount {
    /// The lane.
    pub lane: VirtualLane,
    /// Came in over a cable.
    pub received: u64,
    /// Came from the host, from an attached program or from the device itself.
    pub injected: u64,
    /// Came from another lane of the device.
    pub moved_in: u64,
    /// Went to another lane of the device.
    pub moved_out: u64,
    /// Went out into a cable.
    pub transmitted: u64,
    /// Given to the host.
    pub to_host: u64,
    /// Given to the device's own agents and to attached programs.
    pub to_own: u64,
    /// Dropped, by reason.
    pub dropped: BTreeMap<String, u64>,
    /// In the device's buffers now.
    pub held: u64,
}

/// Where an agent is to listen for a capture.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Tap {
    /// At every port, to what it sends: whoever taps all agents of a fabric gets each packet once.
    Everything,
    /// At these ports.
    Ports(Vec<TappedPort>),
}

/// A port to listen at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TappedPort {
    /// The port.
    pub end: PortEnd,
    /// Whether to listen to what it receives, and not only to what it sends.
    pub received: bool,
}

/// A packet that was captured.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Captured {
    /// The port that sent or received it.
    pub end: PortEnd,
    /// Whether the port sent it.
    pub sent: bool,
    /// The port received it and refuses it: its length, lane or VCRC is wrong.
    pub damaged: bool,
    /// When, in nanoseconds since 1970-01-01, UTC, by the clock of the agent's machine.
    pub time_ns: u64,
    /// Packets before this one that were not sent, because the client read too slowly.
    pub lost: u32,
    /// From LRH to VCRC, in hexadecimal digits.
    pub packet: HexBytes,
}

/// What became of the packets of a capture.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CaptureTotals {
    /// Packets sent.
    pub packets: u64,
    /// Packets not sent, because the client read too slowly.
    pub lost: u64,
}
