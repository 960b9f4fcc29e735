//! The performance manager: its events, totals of ports, what it has done, and its questions to the fabric.

mod counts;
mod event;
mod found;

use serde::{Deserialize, Serialize};

pub use counts::{Statistics, Totals};
pub use event::Event;
pub use found::{End, HotSpot, Port};

/// What a performance manager learns the fabric from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Question {
    /// PortInfo of the own port: where the subnet manager is.
    OwnPort,
    /// The table of NodeRecords.
    Nodes,
    /// The table of PortInfoRecords.
    Ports,
    /// The table of LinkRecords.
    Cables,
    /// InformInfo for trap 64.
    Arrivals,
    /// InformInfo for trap 65.
    Departures,
    /// InformInfo for trap 128.
    LinkChanges,
    /// The table of the own InformInfoRecords.
    Subscriptions,
}
