//! Observers of a run: its trace, its counts, recordings of a node, and what checkers read.

mod account;
mod kept;
mod recording;
mod statistics;
mod trace;

use weft_fault::Process;
use weft_machine::Time;
use weft_node::{Client, Reading};
use weft_topology::{Fabric, NodeIndex, PortRef};
use weft_wire::AddressedMad;

pub use account::TrafficAccount;
pub(crate) use account::{LANES, PastDevices};
pub use kept::Kept;
pub(crate) use recording::Recordings;
pub use statistics::SimStatistics;
pub(crate) use trace::Fnv;
pub use trace::Trace;

use crate::SimOptions;

/// Lost links whose notice is kept.
const NOTICED_MAX: usize = 1 << 14;

/// Refused commands that are kept of all hosts; the oldest go first.
pub(crate) const REFUSALS_MAX: usize = 1 << 16;

/// Events about partitions that are kept of all subnet managers; the oldest go first.
pub(crate) const PARTITION_EVENTS_MAX: usize = 1 << 12;

/// All that observes a run. Nothing that happens depends on it.
#[derive(Debug, Default)]
pub(crate) struct Observers {
    pub(crate) statistics: SimStatistics,
    pub(crate) trace: Trace,
    pub(crate) recordings: Option<Box<Recordings>>,
    /// When ends noticed that their links were gone.
    pub(crate) noticed: Kept<Time, NOTICED_MAX>,
    /// Commands that hosts refused, and why.
    pub(crate) refusals: Kept<(Time, PortRef, String), REFUSALS_MAX>,
    /// What subnet managers have said of partitions.
    pub(crate) partitions: Kept<(Time, Process<NodeIndex>, weft_sm::Event), PARTITION_EVENTS_MAX>,
    /// Whether somebody else judges what is left in the end.
    pub(crate) is_judged: bool,
    /// What checkers' MAD layers gave them to read.
    pub(crate) readings: Vec<(NodeIndex, Reading)>,
    /// MADs delivered to checkers' programs.
    pub(crate) delivered: Vec<(NodeIndex, Client, AddressedMad)>,
    /// What devices had counted that have lost their power.
    pub(crate) past: PastDevices,
}

impl Observers {
    pub(crate) fn new(fabric: &Fabric, options: &SimOptions) -> Self {
        let recordings = options.record.map(|node| Recordings::of(node, &fabric.node(node).id.to_string()));
        Self { trace: Trace::new(options.trace), recordings: recordings.map(Box::new), ..Self::default() }
    }
}
