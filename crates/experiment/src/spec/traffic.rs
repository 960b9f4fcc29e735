//! The flows of an experiment and the events of its run.

use serde::Serialize;
use weft_fault::Fault;
use weft_host::traffic::{MoveBy, Transport, Work};
use weft_machine::Time;
use weft_routing::quality::Traffic;

/// A named span of time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Span {
    /// What it is called.
    pub name: String,
    /// Its beginning.
    pub from: Time,
    /// Its end.
    pub to: Time,
}

weft_wire::named! {
    /// Where paths come from.
    pub enum Paths {
        /// Path records of subnet administration.
        Asked = "asked",
        /// No path records: service level 0 for ever.
        Unasked = "unasked",
        /// The runner puts them into the hosts' caches, with what path records would say: for studies too large to ask.
        Learnt = "learnt",
    }
}

/// Options of all kinds of traffic.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FlowOptions {
    /// How packets are carried.
    pub transport: Transport,
    /// Bytes of a message.
    pub message_bytes: u32,
    /// Bytes of body of a packet.
    pub packet_bytes: u16,
    /// Gb/s of fabric time that a sender offers at most, whole packets counted; none is as much as it can.
    pub rate_gbps: Option<f64>,
    /// When it begins.
    pub start: Time,
    /// When it stops; the end of the run where this is `None`.
    pub stop: Option<Time>,
    /// Where paths come from.
    pub paths: Paths,
    /// How a live queue pair changes its lane.
    pub move_by: MoveBy,
}

impl FlowOptions {
    /// Those of a file that says nothing, with bodies of this size.
    pub(crate) fn usual(packet_bytes: u16) -> Self {
        Self {
            transport: Transport::ReliableConnection,
            message_bytes: 65_536,
            packet_bytes,
            rate_gbps: None,
            start: Time::ZERO,
            stop: None,
            paths: Paths::Asked,
            move_by: MoveBy::Drain,
        }
    }
}

/// A flow between two hosts.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FlowEntry {
    /// What it is called, `1-5` for example.
    pub name: String,
    /// The sender, by name.
    pub from: String,
    /// The receiver, by name.
    pub to: String,
    /// Stream or ping-pong.
    pub work: Work,
    /// Bytes of body after which it ends.
    pub bytes_max: Option<u64>,
    /// The service level that it is given by hand, whatever path records say.
    pub sl: Option<u8>,
    /// Flows that have the same text here are compared between live and virtual time as one, in their sum: which of them
    /// has how much is left to chance.
    pub agree_as: Option<String>,
    /// The rest.
    pub options: FlowOptions,
}

/// A pattern by an ORCS name: a flow for each of its pairs, called `name/sender-receiver`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PatternSpec {
    /// What it is called.
    pub name: String,
    /// Senders and receivers.
    #[serde(serialize_with = "displayed")]
    pub pattern: Traffic,
    /// Its ranks in order, by host name; all hosts where this is empty.
    pub hosts: Vec<String>,
    /// How many processes are its ranks, dealt round over the hosts; two on one host send nothing to each other over the fabric. One a host
    /// where this is `None`.
    pub processes: Option<u32>,
    /// The second group's, of two patterns against each other.
    pub against: Vec<String>,
    /// How long each of its levels runs.
    pub level: Time,
    /// Whether hosts are given their ranks by chance, from the run's seed.
    pub shuffle: bool,
    /// The rest.
    pub options: FlowOptions,
}

/// Random traffic with hot spots: each packet goes to the sender's hot spot with a chance, and else to anyone.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MixSpec {
    /// What it is called.
    pub name: String,
    /// Senders and destinations, by host name; all hosts where this is empty.
    pub hosts: Vec<String>,
    /// Those of them that take no part after all.
    pub except: Vec<String>,
    /// Hot spots by name. The hosts are cut into as many groups of equal size, in order, and each group has its own.
    pub hot_spots: Vec<String>,
    /// Packets of 1000 that go to the hot spot.
    pub hot_permille: u16,
    /// The rest. The transport is datagrams.
    pub options: FlowOptions,
}

/// A latency and bandwidth test in the way of b_eff: ping-pong over pairs of hosts one after the other, then rings in
/// natural and in random order, first with small and then with large messages.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct BeffSpec {
    /// What it is called.
    pub name: String,
    /// Its hosts in natural order, by name.
    pub hosts: Vec<String>,
    /// When it begins.
    pub start: Time,
    /// How long each step runs.
    pub step: Time,
    /// Bytes of a message for latency.
    pub small_bytes: u32,
    /// Bytes of a message for bandwidth.
    pub large_bytes: u32,
    /// How many rings in random order.
    pub random_rings: u32,
    /// How many pairs play ping-pong, drawn from the run's seed; all where this is `None`.
    pub pairs: Option<u32>,
    /// How a live queue pair changes its lane.
    pub move_by: MoveBy,
}

/// What happens to the fabric, and when.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FaultSpec {
    /// When.
    pub at: Time,
    /// What, with nodes and cables as the file names them: a cable by one of its ends, `node/port`.
    #[serde(rename = "kind")]
    pub fault: Fault<String, String>,
    /// What the figures write beside the mark.
    pub label: String,
}

fn displayed<S: serde::Serializer>(value: &Traffic, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(value)
}
