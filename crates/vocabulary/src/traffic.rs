//! Traffic of a host: commands for its flows, and the reports of them.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use weft_machine::Time;
use weft_wire::{Guid, Lid, PKey, PathRate, PathRecord, ServiceLevel};

#[cfg(feature = "schema")]
use crate::HexGuid;
use crate::hex;

/// A flow, by the number that both of its hosts know it by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(inline))]
#[serde(transparent)]
pub struct FlowId(pub u32);

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

impl Transport {
    /// Bytes of a packet beside its body, from LRH to VCRC, as they count for a rate: LRH, BTH, for datagrams DETH, ICRC and VCRC.
    pub const fn overhead(self) -> u64 {
        match self {
            Self::ReliableConnection => 8 + 12 + 4 + 2,
            Self::UnreliableDatagram => 8 + 12 + 8 + 4 + 2,
        }
    }
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
    One(
        #[serde(with = "hex")]
        #[cfg_attr(feature = "schema", schemars(with = "HexGuid"))]
        Guid,
    ),
    /// Each packet somewhere, by chance; datagrams alone can do that.
    ///
    /// It is an open loop: packets come into being at `bytes_per_second`, or without it as fast as the port can send, and wait on
    /// their own lanes. What finds 64 before it, or 4 that wait for gaps to the same port, is thrown away and counted (`shed`). Only
    /// where packets take no time, the next one is made when the one before it is in the adapter, and a lane that is blocked blocks
    /// the flow.
    Mix {
        /// The hot spot.
        #[serde(with = "hex::option", default)]
        #[cfg_attr(feature = "schema", schemars(with = "Option<HexGuid>"))]
        hot_spot: Option<Guid>,
        /// How many of 1000 packets go there.
        hot_permille: u16,
        /// The others go to one of these, each as likely as the other, but never to the sender's own port.
        #[serde(with = "hex::list")]
        #[cfg_attr(feature = "schema", schemars(with = "Vec<HexGuid>"))]
        others: Vec<Guid>,
        /// The seed of the chance.
        seed: u64,
    },
    /// To the machine that has offered this name to subnet administration (ServiceRecord), whatever GUID it has. The name is looked up
    /// again when nothing is acknowledged in time.
    Named(String),
}

/// Where a flow's paths come from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum PathSource {
    /// Path records of subnet administration, kept in the host's cache.
    #[default]
    PathRecord,
    /// No path record is ever asked for: service level 0 in the default partition, whatever notices say. The LID is the one of
    /// `learn-paths`, or else that of the port's node record.
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

/// The description of a flow for its sender.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FlowSpec {
    /// The number that both of its hosts know it by.
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
    /// Bytes of body per second of machine time at most; without it as fast as the fabric takes it.
    #[serde(default)]
    pub bytes_per_second: Option<u64>,
    /// Ends after this many bytes of body, at the end of a message, counted from when the flow is opened or opened again.
    #[serde(default)]
    pub bytes_max: Option<u64>,
    /// Where its path comes from.
    #[serde(default)]
    pub paths: PathSource,
    /// How it moves.
    #[serde(default)]
    pub move_by: MoveBy,
}

/// A command to a host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "HostCommand"))]
#[serde(rename_all = "kebab-case")]
pub enum Command {
    /// Begin a flow. The other end of a reliable connection must know it already.
    Open(FlowSpec),
    /// Take a flow's packets that come from a port: the other end of `open`.
    Expect {
        /// The flow.
        flow: FlowId,
        /// Its sender's port; without it datagrams from anywhere.
        #[serde(with = "hex::option", default)]
        #[cfg_attr(feature = "schema", schemars(with = "Option<HexGuid>"))]
        from: Option<Guid>,
        /// How it is carried.
        transport: Transport,
        /// What it does.
        work: Work,
        /// Bytes of a message.
        message_bytes: u32,
    },
    /// Send nothing new for a flow; the message under way is finished. The flow can be opened again and goes on with its numbers.
    Stop {
        /// The flow.
        flow: FlowId,
    },
    /// Forget a flow at once.
    Close {
        /// The flow.
        flow: FlowId,
    },
    /// Fill the path cache with what path records would say. They are not asked for again; notices about them are heeded.
    LearnPaths(Vec<LearntPath>),
    /// Whether the host heeds repath and unpath notices.
    HeedRepath(bool),
}

/// A path for the cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LearntPath {
    /// The destination port.
    #[serde(with = "hex")]
    #[cfg_attr(feature = "schema", schemars(with = "HexGuid"))]
    pub to: Guid,
    /// Its LID.
    pub dlid: Lid,
    /// The service level.
    pub service_level: ServiceLevel,
    /// A key of the partition.
    #[serde(default = "default_partition")]
    pub p_key: PKey,
    /// The code of the path's rate (PathRecord:Rate); 0 where it is not known.
    #[serde(default, with = "rate_code")]
    #[cfg_attr(feature = "schema", schemars(with = "u8"))]
    pub rate: PathRate,
}

impl From<&PathRecord> for LearntPath {
    fn from(record: &PathRecord) -> Self {
        let PathRecord { dgid, dlid, sl, p_key, rate, .. } = *record;
        Self { to: dgid.guid, dlid, service_level: sl, p_key, rate }
    }
}

/// A rate as its code, in JSON too.
mod rate_code {
    use super::{Deserialize, Deserializer, PathRate, Serializer};

    pub(super) fn serialize<S: Serializer>(rate: &PathRate, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_u8(rate.code())
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<PathRate, D::Error> {
        u8::deserialize(from).map(PathRate::from_code)
    }
}

fn default_partition() -> PKey {
    PKey::DEFAULT_FULL
}

/// What became of a flow so far, at one of its ends. Counters begin when the flow is opened or expected.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FlowReport {
    /// The flow.
    pub flow: FlowId,
    /// Whether this is the sending end.
    pub sender: bool,
    /// What it does now: `idle`, `path`, `sending`, `held`, `draining`, `rearming`, `stopped`, `done`, `error`; `receiving`
    /// at the receiving end.
    pub state: String,
    /// The service level in use, at the sending end of a flow with one destination.
    pub service_level: Option<ServiceLevel>,
    /// Packets given to the adapter, repetitions included; or packets that came in.
    pub packets: u64,
    /// Bytes of body sent for the first time; or delivered, in order and once.
    pub bytes: u64,
    /// Packets sent again; or packets that came again.
    pub repeated: u64,
    /// Times nothing was acknowledged in time.
    pub timeouts: u64,
    /// Packets that came out of order. A reliable connection asks for them again; datagrams are delivered.
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
    pub moves: Vec<Move>,
    /// All changes of lane.
    pub moves_total: u64,
    /// Of round trips (ping-pong, at the sender) or of packets' ways (at the receiver).
    pub latency: Latency,
    /// Of messages of a stream over a reliable connection, at the sender: from the first packet to the acknowledgement of the last.
    #[serde(default)]
    pub messages: Latency,
    /// The longest time between two deliveries, at the receiver, in nanoseconds.
    #[serde(default)]
    pub pause_ns: u64,
    /// Why it ended, if it did so in error; or what it waits for.
    pub error: Option<String>,
}

/// A change of lane.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "LaneMove"))]
pub struct Move {
    /// When it was asked for, in nanoseconds of the agent's clock.
    #[serde(rename = "at_ns")]
    pub at: Time,
    /// How long nothing new was sent for it, in nanoseconds.
    #[serde(rename = "pause_ns")]
    pub pause: Time,
    /// From this service level.
    pub from: ServiceLevel,
    /// To this one.
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
    /// The median, in nanoseconds, at most an eighth too high; 0 where only extremes are kept.
    #[serde(default)]
    pub p50_ns: u64,
    /// 99 of 100 are no longer, as exact as the median.
    #[serde(default)]
    pub p99_ns: u64,
}

impl Latency {
    /// One more.
    pub fn record(&mut self, span: Time) {
        let ns = span.as_nanos();
        self.min_ns = if self.count == 0 { ns } else { self.min_ns.min(ns) };
        self.max_ns = self.max_ns.max(ns);
        self.sum_ns = self.sum_ns.saturating_add(ns);
        self.count += 1;
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn commands() -> Vec<(Command, serde_json::Value)> {
        let spec = FlowSpec {
            flow: FlowId(3),
            to: Destination::Mix {
                hot_spot: Some(Guid(1)),
                hot_permille: 250,
                others: vec![Guid(2)],
                seed: 9,
            },
            transport: Transport::UnreliableDatagram,
            work: Work::PingPong,
            message_bytes: 4096,
            packet_bytes: 2048,
            bytes_per_second: Some(1_000_000),
            bytes_max: Some(7),
            paths: PathSource::Unasked,
            move_by: MoveBy::Migrate,
        };
        let (to, rate) = (Guid(5), PathRate::Gb20);
        let path = LearntPath { to, dlid: Lid(6), service_level: ServiceLevel(2), p_key: PKey(0x8001), rate };
        let (transport, work) = (Transport::ReliableConnection, Work::Stream);
        let flow = FlowId(1);
        let mix = json!({ "hot_spot": "0x0000000000000001", "hot_permille": 250, "others": ["0x0000000000000002"], "seed": 9 });
        let spec_json = json!({ "flow": 3, "to": { "mix": mix }, "transport": "unreliable-datagram", "work": "ping-pong",
            "message_bytes": 4096, "packet_bytes": 2048, "bytes_per_second": 1_000_000, "bytes_max": 7, "paths": "unasked",
            "move_by": "migrate" });
        let expect_json = json!({ "flow": 1, "from": "0x0000000000000008", "transport": "reliable-connection", "work": "stream",
            "message_bytes": 64 });
        let path_json =
            json!({ "to": "0x0000000000000005", "dlid": 6, "service_level": 2, "p_key": 32769, "rate": 6 });
        vec![
            (Command::Open(spec), json!({ "open": spec_json })),
            (
                Command::Expect { flow, from: Some(Guid(8)), transport, work, message_bytes: 64 },
                json!({ "expect": expect_json }),
            ),
            (Command::Stop { flow }, json!({ "stop": { "flow": 1 } })),
            (Command::Close { flow }, json!({ "close": { "flow": 1 } })),
            (Command::LearnPaths(vec![path]), json!({ "learn-paths": [path_json] })),
            (Command::HeedRepath(false), json!({ "heed-repath": false })),
        ]
    }

    #[test]
    fn commands_are_json_for_people_and_numbers_in_recordings() {
        for (command, json) in commands() {
            assert_eq!(serde_json::to_value(&command).unwrap(), json);
            assert_eq!(serde_json::from_value::<Command>(json).unwrap(), command);
            let config = bincode::config::standard();
            let bytes = bincode::serde::encode_to_vec(&command, config).unwrap();
            let (read, _) = bincode::serde::decode_from_slice::<Command, _>(&bytes, config).unwrap();
            assert_eq!(read, command);
        }
        let one =
            bincode::serde::encode_to_vec(Destination::One(Guid(7)), bincode::config::standard()).unwrap();
        assert_eq!(one, [0, 7], "the variant and a number");
        let named = Destination::Named("web1".to_owned());
        assert_eq!(serde_json::to_value(&named).unwrap(), json!({ "named": "web1" }));
    }

    #[test]
    fn reports_are_json_with_times_in_nanoseconds() {
        let (at, pause) = (Time::from_nanos(1), Time::from_nanos(2));
        let moved = Move { at, pause, from: ServiceLevel(3), to: ServiceLevel(4) };
        let report = FlowReport { flow: FlowId(1), moves: vec![moved], ..FlowReport::default() };
        let json = serde_json::to_value(&report).unwrap();
        assert_eq!(json["flow"], 1);
        assert_eq!(json["moves"], json!([{ "at_ns": 1, "pause_ns": 2, "from": 3, "to": 4 }]));
        assert_eq!(serde_json::from_value::<FlowReport>(json).unwrap(), report);
    }
}
