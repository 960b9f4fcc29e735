//! Expectations of a run, the papers' numbers, and the figures of a report.

use serde::Serialize;
use weft_machine::Time;
use weft_sm::Signalled;

use crate::Driver;

/// A choice of variants: by axis, the labels that it may have. Empty fits all.
pub type When = Vec<(String, Vec<String>)>;

/// One line of the report's table: something measured, what is expected of it, and what the paper prints.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Expect {
    /// What the line says; made from the rest where the file says nothing.
    pub name: String,
    /// The measured quantity.
    pub what: What,
    /// What the model says it must be; none only shows it.
    pub bound: Option<Bound>,
    /// Where the bound comes from; there is one wherever there is a bound.
    pub basis: Option<Basis>,
    /// What the paper prints.
    pub paper: Option<Paper>,
    /// The only driver whose runs the bound is for; those of the other are shown. None is both.
    pub driver: Option<Driver>,
    /// Only in these variants.
    pub when: When,
}

/// Something measured.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case", tag = "what")]
pub enum What {
    /// The throughput of flows together, in Gb/s of fabric time, delivered, whole packets counted.
    Throughput {
        /// The flows, by name; a pattern's or a mix's name stands for all of its own. Empty is all.
        flows: Vec<String>,
        /// The window.
        window: String,
    },
    /// The same per host that sends or receives one of the flows.
    PerHost {
        /// The flows.
        flows: Vec<String>,
        /// The window.
        window: String,
    },
    /// One flow's throughput over another's.
    Ratio {
        /// The one.
        flow: String,
        /// The other.
        to: String,
        /// The window.
        window: String,
    },
    /// The share of the time that a port waits (PortXmitWait), in percent.
    Wait {
        /// The port, `node/port`.
        port: String,
        /// The window.
        window: String,
    },
    /// When the first change to the slow lane of a flow was asked for, in seconds.
    Moved {
        /// The flow.
        flow: String,
        /// Not before this.
        after: Time,
    },
    /// When its return was, in seconds.
    MovedBack {
        /// The flow.
        flow: String,
        /// Not before this.
        after: Time,
    },
    /// How often a flow changed its lane.
    Moves {
        /// The flow.
        flow: String,
    },
    /// The longest pause that a flow made for a change of lane, in milliseconds of wall-clock time.
    Pause {
        /// The flow.
        flow: String,
    },
    /// Half of a ping-pong's mean round trip, in microseconds of fabric time.
    Latency {
        /// The flow.
        flow: String,
    },
    /// From an event to the moment when a flow first runs again at so much of its throughput in a window, in seconds.
    Recovery {
        /// The flow.
        flow: String,
        /// The moment counted from.
        after: Time,
        /// The window whose throughput is the measure.
        window: String,
        /// Percent of it.
        percent: f64,
    },
    /// Packets sent again.
    Repeated {
        /// Of these flows; empty is all.
        flows: Vec<String>,
    },
    /// Flows that ended in error.
    Broken {
        /// Of these flows; empty is all.
        flows: Vec<String>,
    },
    /// Datagrams that tell hosts of other paths, from the beginning of the plan's clock.
    Signalling {
        /// Which of them.
        kind: SignallingKind,
        /// Whether they are divided by the number of the manager's sweeps that routed from the run's first fault on.
        per_routing: bool,
    },
    /// How long hosts took to heed notices, in milliseconds of wall-clock time.
    Reconfiguration {
        /// Notices from this moment on.
        after: Time,
        /// Between which moments.
        of: ReconfigurationOf,
    },
    /// Hosts that the performance manager has found to be hot spots.
    HotSpots {
        /// Hosts that are not counted: those that are meant to be.
        except: Vec<String>,
    },
    /// How many channels wait for each other in the shortest circle that the verifier predicts for the flows.
    PredictedDeadlock {
        /// In the state of the fabric at this moment.
        after: Time,
    },
    /// What migrations of a virtual machine cost.
    Migration {
        /// The virtual machine.
        vm: String,
        /// Not before this.
        after: Time,
        /// Which of them.
        of: MigrationsOf,
        /// Which of its values.
        value: MigrationValue,
    },
    /// A value of a latency and bandwidth test.
    Beff {
        /// The test.
        name: String,
        /// Which of its values.
        value: BeffValue,
    },
}

impl What {
    /// The flows, patterns and mixes that it names.
    pub fn flows(&self) -> Vec<&str> {
        match self {
            Self::Throughput { flows, .. }
            | Self::PerHost { flows, .. }
            | Self::Repeated { flows }
            | Self::Broken { flows } => flows.iter().map(String::as_str).collect(),
            Self::Ratio { flow, to, .. } => vec![flow, to],
            Self::Moved { flow, .. }
            | Self::MovedBack { flow, .. }
            | Self::Moves { flow }
            | Self::Pause { flow }
            | Self::Latency { flow }
            | Self::Recovery { flow, .. } => vec![flow],
            Self::Wait { .. }
            | Self::Signalling { .. }
            | Self::Reconfiguration { .. }
            | Self::HotSpots { .. }
            | Self::PredictedDeadlock { .. }
            | Self::Migration { .. }
            | Self::Beff { .. } => Vec::new(),
        }
    }
}

weft_wire::named! {
    /// The values of a latency and bandwidth test, as HPCC's b_eff prints them. Latencies are half of a round trip, in
    /// microseconds of fabric time; bandwidths are of bodies, in MB/s of fabric time, and a ring's are of one host.
    #[derive(PartialOrd, Ord)]
    #[allow(missing_docs)]
    pub enum BeffValue {
        PingPongLatencyMin = "ping_pong_latency_min",
        PingPongLatencyAvg = "ping_pong_latency_avg",
        PingPongLatencyMax = "ping_pong_latency_max",
        NaturalRingLatency = "natural_ring_latency",
        RandomRingLatency = "random_ring_latency",
        PingPongBandwidthMin = "ping_pong_bandwidth_min",
        PingPongBandwidthAvg = "ping_pong_bandwidth_avg",
        PingPongBandwidthMax = "ping_pong_bandwidth_max",
        NaturalRingBandwidth = "natural_ring_bandwidth",
        RandomRingBandwidth = "random_ring_bandwidth",
    }
}

impl BeffValue {
    /// Whether it is a time rather than a bandwidth.
    pub fn is_latency(self) -> bool {
        self <= Self::RandomRingLatency
    }
}

weft_wire::named! {
    /// Kinds of datagrams that tell hosts of other paths.
    #[allow(missing_docs)]
    pub enum SignallingKind {
        Reports = "reports",
        Responses = "responses",
        Queries = "queries",
        Segments = "segments",
        Acks = "acks",
        Names = "names",
        Paths = "paths",
        All = "all",
    }
}

impl SignallingKind {
    /// How many there are of this kind.
    pub fn of(self, signalled: &Signalled) -> u64 {
        match self {
            Self::Reports => signalled.reports,
            Self::Responses => signalled.responses,
            Self::Queries => signalled.queries,
            Self::Segments => signalled.segments,
            Self::Acks => signalled.acks,
            Self::Names => signalled.names,
            Self::Paths => signalled.paths,
            Self::All => signalled.total(),
        }
    }
}

weft_wire::named! {
    /// Which time of a reconfiguration is meant.
    pub enum ReconfigurationOf {
        /// The mean of hosts, each from its first notice until it has heeded its last. A host without a notice takes none.
        Host = "host",
        /// From the moment that is counted from until the last host has heeded its last notice; 0 where none came.
        Last = "last",
    }
}

weft_wire::named! {
    /// Which migrations of a machine are meant.
    #[derive(PartialOrd, Ord)]
    pub enum MigrationsOf {
        /// The first.
        First = "first",
        /// The one with the least of the value; nothing is measured unless all have one.
        Least = "least",
        /// The one with the most of it, in the same way.
        Most = "most",
    }
}

weft_wire::named! {
    /// What a migration cost.
    #[derive(PartialOrd, Ord)]
    pub enum MigrationValue {
        /// From the order to freeze the machine until it runs at its destination, in seconds of wall-clock time.
        Downtime = "downtime",
        /// LFT SMPs that physical switches and vSwitches have received for it.
        LftSmps = "lft_smps",
        /// Physical switches that have received one of them.
        Switches = "switches",
        /// Sets of management that the functions of adapters have received for it.
        HypervisorSmps = "hypervisor_smps",
    }
}

/// What a value must be.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Bound {
    /// This value, within a tolerance in percent.
    Within {
        /// The value.
        value: f64,
        /// Percent of it.
        percent: f64,
    },
    /// No less.
    AtLeast(f64),
    /// No more.
    AtMost(f64),
    /// Between the two, ends included.
    Between(f64, f64),
    /// It must not happen: a flow that never moves.
    Never,
}

/// Where a bound comes from. It never comes from the result that it judges.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Basis {
    /// From first principles; the form, as in `16 - 12.9 / 4`.
    ClosedForm(String),
    /// From what the paper prints, without which a cure is none: half of a printed gain.
    Paper(String),
    /// From an earlier run: it says that nothing has changed, and not that it is right.
    Regression,
    /// Nothing bounds it: why it is shown, and what keeps it from being judged.
    Shown(String),
}

/// What the paper prints.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Paper {
    /// The value, in the unit of what is measured.
    pub value: f64,
    /// Whether the paper prints no value but that it is less than this one.
    pub is_limit: bool,
    /// Where it stands.
    pub source: String,
    /// Why ours differs; may be empty.
    pub why: String,
    /// The keys of the experiment whose value it repeats; empty where it is a result.
    pub given: String,
}

weft_wire::named! {
    /// How a printed value and ours stand to each other.
    pub enum FidelityVerdict {
        /// Ours is within [`Paper::AGREEMENT_PERCENT`] of it.
        Agrees = "agrees",
        /// Ours is not, or nothing was measured.
        Differs = "differs",
        /// It is within that share, and an input of the run: it counts neither way.
        Given = "given",
    }
}

impl Paper {
    /// A measured value agrees with a printed one within this many percent of it.
    pub const AGREEMENT_PERCENT: f64 = 15.0;

    /// Whether a measured value agrees with the printed one. What was not measured does not.
    pub fn agrees(&self, measured: Option<f64>) -> bool {
        let near =
            |value: f64| (value - self.value).abs() <= self.value.abs() * Self::AGREEMENT_PERCENT / 100.0;
        measured.is_some_and(|value| near(value) || self.is_limit && value <= self.value)
    }

    /// The verdict on a measured value. An input that does not come out again differs.
    pub fn verdict(&self, measured: Option<f64>) -> FidelityVerdict {
        match (self.agrees(measured), self.given.is_empty()) {
            (false, _) => FidelityVerdict::Differs,
            (true, true) => FidelityVerdict::Agrees,
            (true, false) => FidelityVerdict::Given,
        }
    }
}

/// What one variant gains over another: the mean over seeds of the one over that of the other, less one, in percent.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Gain {
    /// What the line says.
    pub name: String,
    /// The measured quantity.
    pub what: What,
    /// The variant compared with.
    pub from: When,
    /// The variant.
    pub to: When,
    /// What the model says it must be, in percent.
    pub bound: Option<Bound>,
    /// Where the bound comes from.
    pub basis: Option<Basis>,
    /// The only driver whose runs the bound is for; those of the other are shown. None is both.
    pub driver: Option<Driver>,
    /// What the paper prints, in percent.
    pub paper: Option<Paper>,
}

/// A figure of the report.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Figure {
    /// Its title.
    pub title: String,
    /// What it draws.
    pub kind: FigureKind,
    /// The flows; all where this is empty.
    pub flows: Vec<String>,
    /// The window, of bars.
    pub window: String,
    /// The axis whose choices stand side by side, of bars.
    pub bars: String,
    /// The axis whose choices are groups of bars; may be empty.
    pub groups: String,
    /// The axis whose choices are lines, of totals and windows; may be empty.
    pub lines: String,
    /// The variants that are compared, of windows: the one compared with, and the other.
    pub compared: (When, When),
    /// What the paper prints, of windows, in percent.
    pub paper: Option<f64>,
    /// Only these variants.
    pub when: When,
}

weft_wire::named! {
    /// What a figure draws.
    #[derive(Default)]
    pub enum FigureKind {
        /// The throughput of every flow over time, one figure for each variant.
        #[default]
        Throughput = "throughput",
        /// The throughput of all flows together over time, a line for each variant.
        Total = "total",
        /// Mean throughput per host, a bar for each variant.
        Bars = "bars",
        /// What one variant gains over another in throughput per host, over the length of the window that begins with the run.
        Windows = "windows",
    }
}
