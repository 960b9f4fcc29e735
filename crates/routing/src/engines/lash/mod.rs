//! Layered shortest paths (T. Skeie, O. Lysne and I. Theiss, "Layered Shortest Path (LASH) Routing in Irregular
//! System Area Networks", 2002).
//!
//! ```text
//!   1. order   orders of the switches from which paths that go up and then down have no cycle
//!   2. trees   for every destination a tree of shortest paths that keeps to such orders where it can
//!   3. layers  every pair of switches, both ways, on the first lane that it closes no cycle on
//!   4. balance every LID on a tree of its own, as far as the order of the links on each lane allows
//! ```
//!
//! `plan` tries several orders and trees, and keeps those that need the fewest lanes. Ties go by GUIDs and ports.

mod acyclic;
mod balance;
mod layers;
mod links;
mod order;
mod plan;
mod trees;

use weft_vocabulary::routing::EngineReport;

use super::{Engine, Input, classes_of_switches};
use crate::lanes::ServiceLevels;
use crate::routing::Routing;

use balance::{Balance, Freedom};
use layers::{Layers, NO_LANE, Unfit};
use links::{Hops, Links};
use plan::Plan;

pub(crate) const ENGINE: Engine = Engine {
    name: "lash",
    about: "shortest paths on as few lanes as needed",
    options: &["lanes"],
    deadlock_free: true,
    run: |input| lash(input),
};

/// Shortest paths for all, and a lane for every pair of switches of which one has hosts. Fails with a sentence that names
/// two switches when the lanes allowed are not enough.
fn lash(input: &Input<'_>) -> Result<Routing, String> {
    let links = Links::new(input.fabric);
    let hops = Hops::new(&links);
    let (first, others) = plan::plans(&links, &hops, input.options.lanes).map_err(|Unfit(a, b)| {
        let name = |switch: u32| &input.fabric.node(links.graph.nodes[switch as usize]).id;
        let (a, b, lanes) = (name(a), name(b), input.options.lanes);
        format!("the paths between {a} and {b} close a cycle on every lane that is allowed ({lanes})")
    })?;
    // Among plans with as many lanes, the one that spreads packets best.
    let balance =
        |plan: &Plan, freedom| Balance::new(&links, &hops, plan, freedom, input.lids.top()).route(input);
    let balanced = |plan: Plan| {
        let (any, none) = (balance(&plan, Freedom::Any), balance(&plan, Freedom::None));
        (if none.1 < any.1 { none } else { any }, plan.layers)
    };
    let better = |best: ((_, u128), _), next: ((_, u128), _)| if next.0.1 < best.0.1 { next } else { best };
    let first = balanced(first);
    let ((routes, _), layers) = others.into_iter().map(balanced).fold(first, better);
    let lanes = layers.count().max(1);
    let levels = levels(input, &links, &layers);
    let report = EngineReport { engine: ENGINE.name.to_owned(), lanes, ..EngineReport::default() };
    Ok(Routing { routes, levels, report, ..Routing::default() })
}

/// The lane of every pair, as its service level: level n takes lane n.
fn levels(input: &Input<'_>, links: &Links, layers: &Layers) -> ServiceLevels {
    if layers.count() < 2 {
        return ServiceLevels::zero();
    }
    let mut levels = classes_of_switches(input, &links.graph);
    for from in 0..links.len() as u16 {
        for (to, level) in (0..).zip(levels.row_mut(from)) {
            *level = Some(layers.of(u32::from(from), to)).filter(|lane| *lane != NO_LANE).unwrap_or(0);
        }
    }
    levels
}
