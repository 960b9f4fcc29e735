//! What a host is told to send, and what it tells of it.

use serde::{Deserialize, Serialize};
use weft_machine::Time;
use weft_wire::{Guid, Lid, PKey, PathRate, PathRecord, ServiceLevel};

/// A flow, by the number that both of its hosts know it by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct FlowId(pub u32);

/// How the packets of a flow are carried.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Transport {
    /// A reliable connection: acknowledged, sent again when lost, delivered in order.
    #[default]
    ReliableConnection,
    /// Unreliable datagrams.
    UnreliableDatagram,
}

/// What a flow does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Work {
    /// Sends messages, one behind the other.
    #[default]
    Stream,
    /// Sends one message, and the next when the other side has sent one of the same length back: its round trips are the
    /// flow's latencies.
    PingPong,
}

/// Where the packets of a flow go.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Destination {
    /// To one port.
    One(Guid),
    /// Each packet somewhere, by chance; datagrams alone can do that.
    ///
    /// It is an open loop: packets come into being at [`FlowSpec::bytes_per_second`], or without it as fast as the port
    /// can send (`PortFacts::rate`), wait on their own lanes, and what finds 64 before it is thrown away and counted
    /// ([`FlowReport::shed`]), as is what finds 4 that wait for gaps to the same port. Only where packets take no time, the next one is made when the one before it is in the
    /// adapter, and a lane that is blocked blocks the flow.
    Mix {
        /// The hot spot.
        hot_spot: Option<Guid>,
        /// So many of 1000 packets go there.
        hot_permille: u16,
        /// The others go to one of these, each as likely as the other, but never to the sender's own port.
        others: Vec<Guid>,
        /// What decides.
        seed: u64,
    },
}

/// Where a flow's paths come from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PathSource {
    /// Path records of subnet administration, kept in the host's cache.
    #[default]
    PathRecord,
    /// No path record is ever asked for, as by software that knows LIDs from elsewhere: service level 0 in the
    /// default partition, whatever notices say. The LID is the one of [`Command::LearnPaths`], or else that of the port's node record.
    Unasked,
}

/// How a reliable connection changes its lane while it lives. In both ways nothing arrives out of order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MoveBy {
    /// The send queue drains (SQD) until everything sent is acknowledged; then the address is changed (IBA 10.3.1.5).
    #[default]
    Drain,
    /// Automatic path migration in RTS: the alternate path is loaded, and the queue pair migrates (IBA 10.4, 17.2.8).
    /// What overtakes on the new lane is refused by its number and sent again.
    Migrate,
}

/// A flow, as its sender is told.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FlowSpec {
    /// Its number.
    pub flow: FlowId,
    /// Where it goes.
    pub to: Destination,
    /// How it is carried.
    #[serde(default)]
    pub transport: Transport,
    /// What it does.
    #[serde(default)]
    pub work: Work,
    /// Bytes of a message. A body has a multiple of 4 bytes and at least 16, so a message may grow by as much.
    pub message_bytes: u32,
    /// Bytes of body in a packet at most, a multiple of 4.
    pub packet_bytes: u16,
    /// Bytes of body per second of machine time at most; none is as fast as the fabric takes it.
    #[serde(default)]
    pub bytes_per_second: Option<u64>,
    /// Ends after so many bytes of body, at the end of a message. They count from when the flow is opened, or opened
    /// again.
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
pub enum Command {
    /// Begin a flow. The other end must know it already when it is a reliable connection.
    Open(FlowSpec),
    /// Take a flow's packets that come from a port: the other end of `Open`.
    Expect {
        /// The flow.
        flow: FlowId,
        /// Its sender's port; none for datagrams from anywhere. It is not held against what comes: a LID says little of
        /// a port that may move.
        from: Option<Guid>,
        /// How it is carried.
        transport: Transport,
        /// What it does.
        work: Work,
        /// Bytes of a message.
        message_bytes: u32,
    },
    /// Send nothing new for a flow; what is under way is finished, up to the end of the message. It can be opened
    /// again, and goes on with its numbers.
    Stop(FlowId),
    /// Forget a flow at once.
    Close(FlowId),
    /// Fill the path cache with what path records would say, for studies too large to ask for them. Nobody is asked
    /// for such a path again; notices about it are heeded.
    LearnPaths(Vec<LearntPath>),
    /// Whether the host heeds repath and unpath notices; it does by default.
    HeedRepath(bool),
}

/// A path for the cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LearntPath {
    /// The destination port.
    pub to: Guid,
    /// Its LID.
    pub dlid: Lid,
    /// The service level.
    pub service_level: ServiceLevel,
    /// A key of the partition; of the two that it has the adapter sends the port's own.
    #[serde(default = "default_partition")]
    pub p_key: PKey,
    /// The path's rate; code 0 where it is not known.
    #[serde(default)]
    pub rate: PathRate,
}

impl From<&PathRecord> for LearntPath {
    fn from(record: &PathRecord) -> Self {
        let PathRecord { dgid, dlid, sl, p_key, rate, .. } = *record;
        Self { to: dgid.guid, dlid, service_level: sl, p_key, rate }
    }
}

fn default_partition() -> PKey {
    PKey::DEFAULT_FULL
}

/// What became of a flow so far, at one of its ends. Counters begin when the flow is opened or expected, and only rise.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FlowReport {
    /// The flow.
    pub flow: FlowId,
    /// Whether this is the sending end.
    pub sender: bool,
    /// What it does now, in one word for humans: `idle`, `path`, `sending`, `draining` (the queue
    /// pair is in SQD), `rearming` (in REARM), `stopped`, `done`, `error`; `receiving` at the receiving end;
    /// `suspended` at both.
    pub state: String,
    /// The service level in use, at the sending end of a flow with one destination.
    pub service_level: Option<ServiceLevel>,
    /// Packets given to the adapter, repetitions included; or packets that came in.
    pub packets: u64,
    /// Bytes of body sent for the first time; or delivered, in order and once.
    pub bytes: u64,
    /// Packets sent again; or packets that came again.
    pub repeated: u64,
    /// How often nothing was acknowledged in time.
    pub timeouts: u64,
    /// Packets that came out of order. A reliable connection refuses and asks for them again; datagrams are delivered.
    pub out_of_order: u64,
    /// Packets that never came: gaps in the numbers of those that did.
    pub missing: u64,
    /// Numbers that were *delivered* twice, or by a reliable connection out of order: always 0.
    pub disorder: u64,
    /// Congestion notifications heard.
    pub notifications: u64,
    /// Packets of a mix that were made and thrown away, because too many waited for their lane.
    pub shed: u64,
    /// Changes of lane, the latest 256.
    pub moves: Vec<Move>,
    /// All changes of lane.
    pub moves_total: u64,
    /// Of round trips (ping-pong, at the sender) or of packets' ways (at the receiver, where clocks are common).
    pub latency: Latency,
    /// Why it ended, if it did so in error; or what it waits for.
    pub error: Option<String>,
}

/// A change of lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Move {
    /// When it was asked for, in machine time.
    pub at: Time,
    /// How long nothing new was sent for it: between the last packet on the old lane and the end of the drain.
    pub pause: Time,
    /// From this service level.
    pub from: ServiceLevel,
    /// To this one.
    pub to: ServiceLevel,
}

/// Times, in sum and in their extremes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
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
