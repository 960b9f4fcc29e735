//! A routing: the result of every engine.

use serde::Serialize;
use weft_topology::NodeIndex;
use weft_vocabulary::routing::EngineReport;

use crate::lanes::{LaneMap, ServiceLevels};
use crate::tables::Routes;

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

impl Routing {
    /// Tables that need no more than lane 0.
    pub fn on_one_lane(engine: &str, routes: Routes) -> Self {
        let report = EngineReport { engine: engine.to_owned(), lanes: 1, ..EngineReport::default() };
        Self { routes, report, ..Self::default() }
    }
}
