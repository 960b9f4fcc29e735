//! Flows of hosts: commands and reports are the hosts' own.

use serde::{Deserialize, Serialize};
pub use weft_vocabulary::traffic::{
    Command, Destination, FlowId, FlowReport, FlowSpec, Latency, LearntPath, Move, MoveBy, PathSource,
    Transport, Work,
};

use crate::agent::PortEnd;

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
