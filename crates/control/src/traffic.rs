//! What hosts are told to send, and what they tell of it.

use serde::{Deserialize, Serialize};
use weft_wire::{Lid, PKey, ServiceLevel};

use crate::HexGuid;
use crate::agent::PortEnd;

/// How the packets of a flow are carried.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Transport {
    /// A reliable connection: acknowledged, sent again when lost, delivered in order.
    #[default]
    ReliableConnection,
    /// Unreliable datagrams.
    UnreliableDatagram,
}

/// What a flow does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Work {
    /// Sends messages, one behind the other.
    #[default]
    Stream,
    /// Sends one message, and the next when the other side has sent one of the same length back.
    PingPong,
}

/// Where the packets of a flow go.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Destination {
    /// To the port with this GUID.
    One(HexGuid),
    /// Each packet somewhere, by chance; datagrams alone can do that.
    Mix {
        /// The hot spot.
        hot_spot: Option<HexGuid>,
        /// How many of 1000 packets go there.
        hot_permille: u16,
        /// The others go to one of these, each as likely as the other, but never to the sender's own port.
        others: Vec<HexGuid>,
        /// The seed of the chance.
        seed: u64,
    },
}

/// Where a flow's paths come from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum PathSource {
    /// Path records of subnet administration, kept in the host's cache.
    #[default]
    PathRecord,
    /// No path record is ever asked for: service level 0 in the default partition, whatever notices say.
    Unasked,
}

/// How a reliable connection changes its lane while it lives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum MoveBy {
    /// The send queue drains until everything sent is acknowledged; then the address is changed (IBA 10.3.1.5).
    #[default]
    Drain,
    /// Automatic path migration (IBA 17.2.8).
    Migrate,
}

/// A flow, as its sender is told.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FlowSpec {
    /// The number that both of its hosts know it by.
    pub flow: u32,
    /// Where it goes.
    pub to: Destination,
    /// How it is carried.
    #[serde(default)]
    pub transport: Transport,
    /// What it does.
    #[serde(default)]
    pub work: Work,
    /// Bytes of a message.
    pub message_bytes: u32,
    /// Bytes of body in a packet at most, a multiple of 4.
    pub packet_bytes: u16,
    /// Bytes of body per second of machine time at most; without it as fast as the fabric takes it.
    #[serde(default)]
    pub bytes_per_second: Option<u64>,
    /// Ends after this many bytes of body, at the end of a message.
    #[serde(default)]
    pub bytes_max: Option<u64>,
    /// Where its path comes from.
    #[serde(default)]
    pub paths: PathSource,
    /// How it moves.
    #[serde(default)]
    pub move_by: MoveBy,
}

/// What a host is told to do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum HostCommand {
    /// Begin a flow. The other end of a reliable connection must know it already.
    Open(FlowSpec),
    /// Take a flow's packets that come from a port: the other end of `open`.
    Expect {
        /// The flow.
        flow: u32,
        /// Its sender's port; without it datagrams from anywhere.
        from: Option<HexGuid>,
        /// How it is carried.
        transport: Transport,
        /// What it does.
        work: Work,
        /// Bytes of a message.
        message_bytes: u32,
    },
    /// Send nothing new for a flow; the message under way is finished.
    Stop {
        /// The flow.
        flow: u32,
    },
    /// Forget a flow at once.
    Close {
        /// The flow.
        flow: u32,
    },
    /// Fill the path cache with what path records would say.
    LearnPaths(Vec<LearntPath>),
    /// Whether the host heeds repath and unpath notices.
    HeedRepath(bool),
}

/// A path for the cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LearntPath {
    /// The destination port.
    pub to: HexGuid,
    /// Its LID.
    #[cfg_attr(feature = "schema", schemars(with = "u16"))]
    pub dlid: Lid,
    /// The service level.
    #[cfg_attr(feature = "schema", schemars(with = "u8"))]
    pub service_level: ServiceLevel,
    /// A key of the partition.
    #[serde(default = "default_partition")]
    #[cfg_attr(feature = "schema", schemars(with = "u16"))]
    pub p_key: PKey,
    /// The code of the path's rate (PathRecord:Rate); 0 where it is not known.
    #[serde(default)]
    pub rate: u8,
}

fn default_partition() -> PKey {
    PKey::DEFAULT_FULL
}

/// The flows of one host.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HostFlows {
    /// The adapter's port.
    pub end: PortEnd,
    /// The agent's clock, in nanoseconds: the one that the times in the reports are of.
    pub now_ns: u64,
    /// Its flows.
    pub flows: Vec<FlowReport>,
}

/// What became of a flow so far, at one of its ends. Counters begin when the flow is opened or expected.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FlowReport {
    /// The flow.
    pub flow: u32,
    /// Whether this is the sending end.
    pub sender: bool,
    /// What it does now: `idle`, `path`, `sending`, `draining`, `rearming`, `stopped`, `done`, `error`; `receiving`
    /// at the receiving end.
    pub state: String,
    /// The service level in use, at the sending end of a flow with one destination.
    #[cfg_attr(feature = "schema", schemars(with = "Option<u8>"))]
    pub service_level: Option<ServiceLevel>,
    /// Packets given to the adapter, repetitions included; or packets that came in.
    pub packets: u64,
    /// Bytes of body sent for the first time; or delivered, in order and once.
    pub bytes: u64,
    /// Packets sent again; or packets that came again.
    pub repeated: u64,
    /// Times nothing was acknowledged in time.
    pub timeouts: u64,
    /// Packets that came out of order.
    pub out_of_order: u64,
    /// Packets that never came.
    pub missing: u64,
    /// Numbers delivered twice, or by a reliable connection out of order: always 0.
    pub disorder: u64,
    /// Congestion notifications heard.
    pub notifications: u64,
    /// Packets of a mix that were thrown away, because too many waited for their lane.
    pub shed: u64,
    /// Changes of lane, the latest 256.
    pub moves: Vec<LaneMove>,
    /// All changes of lane.
    pub moves_total: u64,
    /// Of round trips (ping-pong, at the sender) or of packets' ways (at the receiver).
    pub latency: Latency,
    /// Why it ended, if it did so in error; or what it waits for.
    pub error: Option<String>,
}

/// A change of lane.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LaneMove {
    /// When it was asked for, in nanoseconds of the agent's clock.
    pub at_ns: u64,
    /// How long nothing new was sent for it, in nanoseconds.
    pub pause_ns: u64,
    /// From this service level.
    #[cfg_attr(feature = "schema", schemars(with = "u8"))]
    pub from: ServiceLevel,
    /// To this one.
    #[cfg_attr(feature = "schema", schemars(with = "u8"))]
    pub to: ServiceLevel,
}

/// Times, in sum and in their extremes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Latency {
    /// How many.
    pub count: u64,
    /// Their sum in nanoseconds.
    pub sum_ns: u64,
    /// The shortest, in nanoseconds.
    pub min_ns: u64,
    /// The longest, in nanoseconds.
    pub max_ns: u64,
}
