//! Comparison of tables in force with those that an engine makes: the former stay where they are as good.

use weft_topology::Fabric;

use super::prove::{Burden, burden};
use super::repairs;
use crate::lids::Lids;
use crate::options::EngineOptions;
use crate::routing::Routing;
use crate::tables::Routes;
use crate::verify::{Expectations, verify_routing};

/// How much more the busiest channel may carry, and all channels together, in percent.
const MORE_PERCENT: u64 = 1;

/// The routing of an engine with the tables that stand instead of its own, if they keep all that it promises, ways between
/// switches included where it promises those, and burden cables no more than its own do, within 1 %. So a manager that
/// finds the tables that another one has repaired leaves them alone. `None` where the engine's own tables are to be written.
pub fn keeps(
    fabric: &Fabric,
    lids: &Lids,
    fresh: &Routing,
    standing: Routes,
    options: &EngineOptions,
) -> Option<Routing> {
    repairs(fresh, options).ok()?;
    let standing = Routing {
        routes: standing,
        levels: fresh.levels.clone(),
        lanes: fresh.lanes.clone(),
        ranks: fresh.ranks.clone(),
        report: fresh.report.clone(),
    };
    let expected = Expectations {
        lanes: options.lanes,
        tree: fresh.ranks.is_some() && fresh.report.turns().is_none(),
        management_nodes: &options.management_nodes,
        ..Expectations::default()
    };
    let burden = |routing: &Routing| burden(fabric, lids, routing, options);
    let (new, old) = (burden(fresh)?, burden(&standing)?);
    if (new.is_free && !old.is_free) || !old.is_within(&new, MORE_PERCENT) {
        return None;
    }
    let verdict = verify_routing(fabric, lids, &standing, &expected);
    if !verdict.is_sound() {
        return None;
    }
    // All hosts may be served while nothing leads to a switch that has come back.
    (fresh.report.spares_switches() || verdict.reach.is_sound()).then_some(standing)
}

impl Burden {
    fn is_within(&self, other: &Self, more_percent: u64) -> bool {
        let within =
            |load: u64, other: u64| load.saturating_mul(100) <= other.saturating_mul(100 + more_percent);
        within(self.busiest, other.busiest) && within(self.total, other.total)
    }
}
