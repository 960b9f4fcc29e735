//! A routing: the result of every engine.

use serde::{Deserialize, Serialize};
use weft_topology::NodeIndex;

use crate::lanes::{LaneMap, ServiceLevels};
use crate::tables::Routes;

/// The name of the engine that takes tables as they were saved.
pub(crate) const SAVED_TABLES: &str = "file";

/// A fabric's unicast routing: tables, service levels, lanes, and what the engine has to say about them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Routing {
    /// The linear forwarding table of every switch.
    pub routes: Routes,
    /// The service level of every pair.
    pub levels: ServiceLevels,
    /// The lane of every service level.
    pub lanes: LaneMap,
    /// Where every switch stands in the tree, of engines that see one.
    pub ranks: Option<Ranks>,
    /// What the engine did.
    pub report: EngineReport,
}

/// How far each switch is from the roots of a tree: 0 is a root. By node; `None` for what has no place in it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Ranks(pub Vec<Option<u32>>);

impl Ranks {
    /// The rank of a node.
    pub fn of(&self, node: NodeIndex) -> Option<u32> {
        self.0.get(node.index()).copied().flatten()
    }

    /// How many ranks there are.
    pub fn count(&self) -> usize {
        self.0.iter().flatten().max().map_or(0, |highest| *highest as usize + 1)
    }
}

/// What an engine did, for people and programs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EngineReport {
    /// The engine.
    pub engine: String,
    /// How many data lanes its routing uses.
    pub lanes: u8,
    /// How many ranks the tree has, of engines that see one.
    pub ranks: Option<usize>,
    /// The roots, by node id, of engines that have some.
    pub roots: Vec<String>,
    /// What did not go as the engine would have it and what it did instead, one sentence each. Engines earlier in a
    /// chain that refused are here too.
    pub fallbacks: Vec<String>,
    /// What the routing does not keep, one sentence each: policies, and freedom from deadlock.
    pub unsatisfied: Vec<String>,
    /// What else is worth knowing.
    pub notes: Vec<String>,
}

/// How an engine of trees says in [`EngineReport::fallbacks`] that paths of hosts go up after they went down.
pub(crate) const TURNS: &str = "hosts go down to one leaf before they go up";

impl EngineReport {
    /// `lash, 2 lanes`
    pub fn brief(&self) -> String {
        let lanes = if self.lanes == 1 { "lane" } else { "lanes" };
        format!("{}, {} {lanes}", self.engine, self.lanes)
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

impl Routing {
    /// Tables that need no more than lane 0.
    pub fn on_one_lane(engine: &str, routes: Routes) -> Self {
        let report = EngineReport { engine: engine.to_owned(), lanes: 1, ..EngineReport::default() };
        Self { routes, report, ..Self::default() }
    }
}
