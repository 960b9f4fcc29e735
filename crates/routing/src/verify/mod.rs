//! Verification of a routing's promises: shared by all engines, all tests and the subnet manager.
//!
//! [`verify`] is about tables alone; [`verify_routing`] is about all that an engine returns; [`verify_transition`] is
//! about two routings that are in force at the same time, each at some switches; [`verify_streams`] is about some pairs
//! alone, on whatever levels they send.
//!
//! ```text
//!              block ── entries by LID ──┐
//!   ground ──┤                           ├── flow ──▶ dependencies ──▶ cycle ──▶ witness
//!              sources, rows ── lanes ───┘
//! ```
//!
//! Traffic is what host to host, host to switch and switch to host send. Nodes that serve management alone count as
//! switches do ([`ManagementNodes`](crate::ManagementNodes)). A port's packets to itself count too: they
//! leave their switch only where that does not deliver, and that is a failure anyway.

pub(crate) mod block;
pub(crate) mod channels;
pub(crate) mod cycle;
mod deadlock;
pub(crate) mod dependencies;
pub(crate) mod digraph;
mod drops;
pub(crate) mod flow;
pub(crate) mod ground;
mod isolation;
mod legality;
pub(crate) mod loads;
mod near;
pub(crate) mod order;
mod pair;
pub(crate) mod pass;
pub(crate) mod reach;
mod report;
pub(crate) mod rows;
pub(crate) mod sources;
mod streams;
mod symmetry;
mod transition;
mod verdict;
mod witness;

use weft_topology::Fabric;
use weft_wire::Guid;

use crate::lids::Lids;
use crate::partitions::Partitions;
use crate::routing::Routing;
use crate::tables::Routes;

pub use deadlock::{Channel, Cycle, LaneUse};
pub use drops::Drops;
pub use isolation::{Breach, IsolationReport};
pub use legality::{Turn, Turns};
pub use pair::Pair;
pub use report::{COUNTER_EXAMPLES_MAX, Report, ReportSummary};
pub use streams::{Stream, StreamsVerdict, verify_streams};
pub use symmetry::{Asymmetry, LevelsOfPair};
pub use transition::{LostEntry, MixedHop, MixedLoop, Tables, TransitionVerdict, verify_transition};
pub use verdict::Verdict;

use dependencies::Dependencies;
use ground::Ground;
use pass::{Flows, Pass};
use rows::Rows;
use sources::{Sources, whole};
use witness::Witness;

/// What is to hold of a routing besides that every packet arrives.
#[derive(Clone, Copy, Debug)]
pub struct Expectations<'a> {
    /// The policies to be kept.
    pub partitions: Option<&'a Partitions>,
    /// Whether no path of host traffic may go up after it went down, by the routing's ranks.
    pub tree: bool,
    /// How many data lanes there are, 1 to 15: packets on others are dropped.
    pub lanes: u8,
    /// The nodes that serve management alone besides those that are recognised, by port or node GUID.
    pub management_nodes: &'a [Guid],
    /// Whether the routing's service levels are those by which hosts send. Where they are unknown, nothing is said of
    /// deadlock unless the same holds for all levels.
    pub levels_known: bool,
}

impl Default for Expectations<'_> {
    /// No policies, no tree, all 15 data lanes, and known levels.
    fn default() -> Self {
        Self { partitions: None, tree: false, lanes: 15, management_nodes: &[], levels_known: true }
    }
}

/// Follows every LID from every switch: does it arrive wherever cables connect, and by how many cables?
///
/// A host sends first to its switch, so what holds from all switches holds from all hosts. `management_nodes` are those that
/// serve management alone besides those that are recognised, by port or node GUID.
pub fn verify(fabric: &Fabric, lids: &Lids, routes: &Routes, management_nodes: &[Guid]) -> Report {
    let ground = Ground::new(fabric, lids, management_nodes);
    Pass { ground: &ground, routes, ups: None, flows: None }.run().0
}

/// Verifies all of a routing: that every packet arrives, that none is dropped for its lane, that channels on each lane
/// do not wait for each other in a circle, that service levels are the same both ways, and what `expectations` ask
/// for. What is found does not depend on the number of threads, which is that of the current rayon pool.
pub fn verify_routing(
    fabric: &Fabric,
    lids: &Lids,
    routing: &Routing,
    expectations: &Expectations<'_>,
) -> Verdict {
    let ground = Ground::new(fabric, lids, expectations.management_nodes);
    let rows = Rows::new(&ground, &[&routing.lanes], expectations.lanes);
    let levels = [&routing.levels];
    let parts = whole(&ground.ends);
    let sources = Sources::new(&ground, &rows, &levels, &parts);
    let dependencies = Dependencies::new(&ground, rows.constant().is_none(), rows.lane_count());
    let ups = routing.ranks.as_ref().filter(|_| expectations.tree).map(|ranks| ground.ups(ranks));
    let flows = Flows { rows: &rows, sources: &sources, dependencies: &dependencies, loads: None };
    let pass = Pass { ground: &ground, routes: &routing.routes, ups: ups.as_deref(), flows: Some(flows) };
    let (reach, turns) = pass.run();
    let tables = [&routing.routes];
    let witness = Witness { ground: &ground, rows: &rows, levels: &levels, tables: &tables, parts: &parts };
    let find = |goal| witness.find(goal);
    let (mut cycles, lanes) =
        rayon::join(|| deadlock::cycles(&dependencies, &find), || deadlock::lane_use(&dependencies));
    let levels_unknown = !expectations.levels_known && !rows.levels_do_not_matter(cycles.is_empty());
    if levels_unknown {
        cycles.clear();
    }
    Verdict {
        reach,
        drops: drops::find(&ground, &rows, routing),
        lanes,
        cycles,
        levels_unknown,
        asymmetry: symmetry::find(&ground, &routing.levels),
        turns: expectations.tree.then_some(Turns { ranked: ups.is_some(), ..turns }),
        isolation: expectations
            .partitions
            .map(|partitions| isolation::find(&ground, &rows, routing, partitions)),
    }
}
