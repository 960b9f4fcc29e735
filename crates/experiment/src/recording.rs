//! The recording of a run. A runner fills it in; everything in a report is made from it.

use serde::{Deserialize, Serialize};
use weft_fault::FaultTimes;
use weft_host::stack::Reconfiguration;
use weft_host::traffic::{FlowId, FlowReport};
use weft_machine::Time;
use weft_sm::Signalled;
use weft_topology::NodeIndex;

use crate::{Driver, MigrationRecord, Prediction, RunId};

/// What a run yields.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Recording {
    /// Which run of its experiment.
    pub run: RunId,
    /// The driver of the run.
    pub driver: Driver,
    /// The engine that really routed, and the lanes that it used: `ftree, 1 lane`.
    pub routed_by: String,
    /// What the verifier said before anything ran.
    pub prediction: Prediction,
    /// When it ended, on the plan's clock: the plan's duration, if nothing went wrong.
    pub ended: Time,
    /// Why it ended early, if it did.
    pub failure: Option<String>,
    /// Samples in order of time. The first is at zero and all its counters are the beginning of what is counted; the
    /// last is at the end.
    pub samples: Vec<Sample>,
    /// What each end of each flow said at the end.
    pub ends: Vec<FlowTotal>,
    /// What became of each migration, in the order in which they were asked for.
    #[serde(default)]
    pub migrations: Vec<MigrationRecord>,
    /// Datagrams that notified hosts of other paths while the plan's clock ran, as the subnet manager has sent and received them.
    pub signalled: Option<Signalled>,
    /// When hosts heeded notices, each host of the plan once, on the plan's clock. None where hosts could not be asked.
    pub reconfigurations: Option<Vec<HostReconfigurations>>,
    /// What each fault of the plan cost, in the order of their beginnings; times are on the plan's clock.
    #[serde(default)]
    pub faults: Vec<FaultTimes<String>>,
    /// What happened, in order of time.
    pub marks: Vec<Mark>,
    /// The balance of packets at the end.
    pub conservation: Conservation,
    /// How late a live run woke up; none in virtual time.
    pub late: Option<Late>,
}

/// Everything sampled at one moment. Counters only rise.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sample {
    /// When, on the plan's clock.
    pub at: Time,
    /// Of each flow that had begun, in order of their numbers.
    pub flows: Vec<FlowSample>,
    /// Of each port of the plan, in the plan's order.
    pub ports: Vec<PortSample>,
}

/// One flow so far, over all its ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FlowSample {
    /// The flow.
    pub flow: FlowId,
    /// Bytes of body sent for the first time.
    pub sent_bytes: u64,
    /// Packets delivered in order and once, or datagrams delivered. Repetitions do not count.
    pub packets: u64,
    /// Their bytes of body.
    pub bytes: u64,
}

/// One port so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PortSample {
    /// PortXmitWait: ticks of 4 ns of fabric time.
    pub xmit_wait: u64,
    /// PortXmitData, in 4-byte words.
    pub xmit_data: u64,
    /// PortRcvData, in 4-byte words.
    pub rcv_data: u64,
    /// PortXmitDiscards.
    pub xmit_discards: u64,
}

/// What one end of a flow said at the end.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FlowTotal {
    /// The host.
    pub host: NodeIndex,
    /// Its report. The times of its moves are on the plan's clock.
    pub report: FlowReport,
}

/// When a host heeded notices.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostReconfigurations {
    /// The host.
    pub host: NodeIndex,
    /// The stretches, in order of time.
    pub stretches: Vec<Reconfiguration>,
}

/// Something that happened.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mark {
    /// When, on the plan's clock.
    pub at: Time,
    /// What kind of thing.
    pub kind: MarkKind,
    /// In a few words: `link A/4 - R/2 is cut`, `host-5 is a hot spot`.
    pub text: String,
}

impl Mark {
    const HOT_SPOT: &str = "hot spot: ";

    /// The performance manager has found a hot spot, the host with this name.
    pub fn hot_spot(at: Time, host: &str) -> Self {
        Self { at, kind: MarkKind::HotSpot, text: format!("{}{host}", Self::HOT_SPOT) }
    }

    /// The name of the host that it says has become a hot spot.
    pub fn hot_spot_found(&self) -> Option<&str> {
        let text = Some(self.text.as_str()).filter(|_| self.kind == MarkKind::HotSpot);
        text?.strip_prefix(Self::HOT_SPOT)
    }
}

/// A kind of thing that happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MarkKind {
    /// A fault of the plan, or its mending.
    Fault,
    /// The subnet manager has written new tables.
    Rerouted,
    /// The performance manager has found a hot spot.
    HotSpot,
    /// It has found that one has ended.
    HotSpotEnded,
    /// A host got notice of other paths.
    Repath,
    /// A virtual machine leaves, arrives, or stays.
    Migration,
    /// The runner has something else to say.
    Note,
}

/// The balance of packets, lane by lane: injected, and come from other lanes = delivered, gone to other lanes, in flight and
/// dropped.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Conservation {
    /// By lane, in order.
    pub lanes: Vec<LaneConservation>,
    /// What a checker found wrong besides: a credit below zero, a buffer over its size. Empty is well.
    pub violations: Vec<String>,
}

/// The balance of one lane.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LaneConservation {
    /// The lane.
    pub lane: u8,
    /// Packets that hosts and managers have given to adapters, and that switches have made.
    pub injected: u64,
    /// Packets that came to this lane from another on the same device.
    pub moved_in: u64,
    /// Packets that went to another lane of their device.
    pub moved_out: u64,
    /// Packets that came to an end: given to a host, a manager, or a switch's own management.
    pub delivered: u64,
    /// Packets in buffers and on cables at the end.
    pub in_flight: u64,
    /// Packets counted as dropped: by lifetime, by no route, by a cable that was cut, by anything.
    pub dropped: u64,
}

/// How late a live run woke up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Late {
    /// How many times it was woken.
    pub count: u64,
    /// Half were no later than this.
    pub p50: Time,
    /// 99 of 100 were no later than this.
    pub p99: Time,
    /// The latest.
    pub max: Time,
}

impl Late {
    /// A run whose wake-ups were later than this at the 99th percentile is invalid.
    pub const VALID_MAX: Time = Time::from_millis(5);
    /// A live run that is this far behind its own clock is broken off: it would take many times as long as it should.
    pub const BEHIND_MAX: Time = Time::from_secs(15);

    /// The same for a run that was so far behind.
    pub fn behind(self, by: Time) -> Self {
        Self { p99: self.p99.max(by), max: self.max.max(by), ..self }
    }
}
