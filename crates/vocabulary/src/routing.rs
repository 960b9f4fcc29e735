//! The report of a routing engine, for people and programs.

use serde::{Deserialize, Serialize};
use weft_wire::count_of;

/// The name of the engine that takes tables as they were saved.
pub const SAVED_TABLES: &str = "file";

/// How an engine of trees says in [`EngineReport::fallbacks`] that paths of hosts go up after they went down.
pub const TURNS: &str = "hosts go down to one leaf before they go up";

/// What a routing engine did.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "RoutingReport"))]
pub struct EngineReport {
    /// The engine.
    pub engine: String,
    /// How many data lanes its routing uses.
    pub lanes: u8,
    /// How many ranks the tree has, of engines that see one.
    #[cfg_attr(feature = "schema", schemars(with = "Option<u32>"))]
    pub ranks: Option<usize>,
    /// The roots, by node id, of engines that have some.
    pub roots: Vec<String>,
    /// What did not go as the engine would have it and what it did instead; engines earlier in a chain that refused.
    pub fallbacks: Vec<String>,
    /// What the routing does not keep: policies, and freedom from deadlock.
    pub unsatisfied: Vec<String>,
    /// What else is worth knowing.
    pub notes: Vec<String>,
}

/// What a routing with other partitions would change.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PlannedRoutes {
    /// The engine that would route.
    pub engine: String,
    /// Switches whose forwarding tables differ.
    pub switches: u32,
    /// Blocks of 64 rows that differ: an SMP each.
    pub blocks: u32,
    /// Rows that differ.
    pub rows: u32,
    /// What the routing would not keep: policies, and freedom from deadlock.
    pub unsatisfied: Vec<String>,
    /// Why the first engine would refuse, where it would.
    pub refused: Option<String>,
}

impl EngineReport {
    /// `lash, 2 lanes`
    pub fn brief(&self) -> String {
        format!("{}, {}", self.engine, count_of(self.lanes.into(), "lane"))
    }

    /// `lash, 2 data lanes`
    pub fn with_lanes(&self) -> String {
        format!("{}, {}", self.engine, count_of(self.lanes.into(), "data lane"))
    }

    /// The engine that routed, why those before it did not, and what its routing does not keep.
    pub fn lines(&self) -> impl Iterator<Item = String> {
        let told = self.fallbacks.iter().chain(&self.unsatisfied);
        let by = format!("routing: {}", self.with_lanes());
        std::iter::once(by).chain(told.map(|sentence| format!("routing: {sentence}")))
    }

    /// Whether there may be no way between some switches: paths up and then down lead from host to host, and saved tables
    /// wherever they do.
    pub fn spares_switches(&self) -> bool {
        self.ranks.is_some() || self.engine == SAVED_TABLES
    }

    /// What the engine says of paths of hosts that go up after they went down, because cables are missing.
    pub fn turns(&self) -> Option<&str> {
        self.fallbacks.iter().map(String::as_str).find(|sentence| sentence.contains(TURNS))
    }
}
