//! Fat-tree routing: one root per destination, spread evenly.
//!
//! ```text
//!   1. plan    which LIDs are routed, in which order
//!   2. chains  the main path down to every LID, by the least loaded cables up from its switch
//!   3. turns   for every two switches the lowest rank at which a path between them can turn
//!   4. detours what to do where there is no such path
//!   5. tables  every switch for itself: up towards the main path, or down
//!   6. even    on a damaged tree, entries move from links that carry much to links that carry little
//!   7. mend    management paths to switches without hosts that are still lacking
//! ```
//!
//! Steps 1 and 2 run in order because every choice counts for the next one; they are small. In step 5 a switch looks
//! at nothing but the main paths and its own counters, so all switches run in parallel and the result does not depend
//! on how many threads there are.

mod chains;
mod detours;
mod even;
mod gaps;
mod links;
mod mend;
mod plan;
mod tables;
mod turns;

use super::{Engine, Input};
use crate::routing::Routing;
use crate::tables::Routes;
use crate::tree::Tree;

use chains::Chains;
use detours::Detours;
use turns::Turns;

pub(crate) use plan::{Named, Plan};

pub(crate) const ENGINE: Engine = Engine {
    name: "ftree",
    about: "one root per destination, spread evenly, on fat-trees",
    options: &["roots", "compute_nodes", "io_nodes", "max_reverse_hops", "order"],
    deadlock_free: true,
    run: |input| in_order(ENGINE.name, input, &Tree::new(input)?),
};

/// Routes a tree by the order that the options give its hosts.
pub(super) fn in_order(engine: &str, input: &Input<'_>, tree: &Tree) -> Result<Routing, String> {
    let (plan, notes) = Plan::in_order(input, tree);
    let mut routing = routing(engine, input, tree, &plan)?;
    routing.report.notes.extend(notes);
    Ok(routing)
}

/// Whether a fabric is a tree in which switches of one rank differ in how their cables lead up.
pub(super) fn is_damaged_tree(input: &Input<'_>) -> bool {
    Tree::new(input).is_ok_and(|tree| even::is_damaged(&tree))
}

/// Routes a tree as planned. Fails with a sentence that names two hosts when no path between them goes up and then
/// down, and none that goes down first is safe or allowed.
pub(crate) fn routing(engine: &str, input: &Input<'_>, tree: &Tree, plan: &Plan) -> Result<Routing, String> {
    let turns = Turns::new(tree);
    let detours = Detours::new(tree, &turns);
    let gaps = gaps::find(input, tree, &turns, &detours)?;
    let chains = Chains::new(tree, plan);
    let mut tables = tables::fill(tree, plan, &turns, &chains, &detours, input.lids.top());
    even::even_out(tree, plan, &turns, &mut tables);
    let failed = match gaps.lacking.is_empty() {
        true => Vec::new(),
        false => mend::mend(tree, plan, &turns, &detours, &gaps.lacking, &mut tables),
    };
    let mut routing = Routing::on_one_lane(engine, Routes { tables: tree.graph.by_node(tables) });
    routing.ranks = Some(tree.ranks_by_node());
    routing.report.ranks = Some(tree.rank_count());
    routing.report.roots = tree.roots(input.fabric);
    routing.report.notes.clone_from(&tree.notes);
    gaps.report(input, tree, &failed, &mut routing.report);
    Ok(routing)
}
