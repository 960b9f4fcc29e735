//! An experiment's file, with one choice of its variants made.

mod expect;
mod network;
mod partitions;
mod traffic;
mod vms;

use std::collections::BTreeMap;

use serde::Serialize;

pub use expect::{
    Basis, BeffValue, Bound, Expect, FidelityVerdict, Figure, FigureKind, Gain, MigrationValue, MigrationsOf,
    Paper, ReconfigurationOf, SignallingKind, What, When,
};
pub use network::{
    Attach, CongestionSpec, EngineSpec, FabricSpec, HostsSpec, PmMode, PmSpec, Rates, Shape, SmSpec,
};
pub use partitions::{PartitionSpec, PartitionsSpec, WeightSpec};
pub use traffic::{BeffSpec, FaultSpec, FlowEntry, FlowOptions, MixSpec, Paths, PatternSpec, Span};
pub(crate) use vms::VM_PREFIX;
pub use vms::{Memory, MigrateSpec, VmSpec, VmsSpec};

use weft_machine::Time;

/// An experiment: everything that one choice of variants says. Seeds are not chosen yet.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Experiment {
    /// What it is called, in one line.
    pub title: String,
    /// Where it comes from: paper and section.
    pub source: String,
    /// What it shows, in a few sentences; may be empty.
    pub about: String,
    /// Whether it may be run on live processes.
    pub live: bool,
    /// Whether it may be run in virtual time.
    pub simulated: bool,
    /// The cabling.
    pub fabric: FabricSpec,
    /// How fast and how deep everything is.
    pub rates: Rates,
    /// Routing engines and their options.
    pub engine: EngineSpec,
    /// Further options of the subnet manager.
    pub sm: SmSpec,
    /// Options of the performance manager.
    pub pm: PmSpec,
    /// Congestion control; none is off.
    pub congestion: Option<CongestionSpec>,
    /// What hosts are like.
    pub hosts: HostsSpec,
    /// Where the managers are attached.
    pub attach: Attach,
    /// How long it runs.
    pub duration: Time,
    /// Time left out at the beginning of each steady window that the report adds.
    pub warm_up: Time,
    /// Named spans of time, in the order of the file.
    pub windows: Vec<Span>,
    /// The seeds; one run for each.
    pub seeds: Vec<u64>,
    /// Flows between two hosts.
    pub flows: Vec<FlowEntry>,
    /// Patterns by ORCS's names.
    pub patterns: Vec<PatternSpec>,
    /// Random traffic with hot spots.
    pub mixes: Vec<MixSpec>,
    /// Latency and bandwidth tests in the way of b_eff.
    pub beffs: Vec<BeffSpec>,
    /// Virtual machines and their migrations; none without virtualised adapters.
    pub vms: Option<VmsSpec>,
    /// Faults and repairs.
    pub faults: Vec<FaultSpec>,
    /// From one sample to the next.
    pub sample_interval: Time,
    /// Ports whose counters are sampled, `node/port` or the name of a link.
    pub ports: Vec<String>,
    /// Cables with names: by name, one of their ends.
    pub links: BTreeMap<String, String>,
    /// Expectations, with the papers' numbers.
    pub expects: Vec<Expect>,
    /// Expected gains of one variant over another.
    pub gains: Vec<Gain>,
    /// The figures of the report.
    pub figures: Vec<Figure>,
}
