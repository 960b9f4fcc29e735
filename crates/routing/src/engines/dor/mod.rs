//! Dimension-order routing.

mod grid;
mod lanes;
mod steps;
mod ways;

use super::{Engine, Input};
use crate::balance::balance;
use crate::management::ManagementNodes;
use crate::routing::Routing;
use crate::switches::SwitchGraph;

use grid::Grid;
use ways::DimensionOrder;

pub(crate) const ENGINE: Engine = Engine {
    name: "dor",
    about: "dimension by dimension, on meshes, tori and hypercubes",
    options: &["lanes"],
    deadlock_free: false,
    run: dor,
};

/// Routes every LID along one dimension after the other, always by the shorter way round (Dally and Seitz). Parallel
/// cables share their neighbour's LIDs evenly.
///
/// Meshes and hypercubes cannot deadlock like that. Rings can, so there packets change lanes: what passes the cable
/// that closes a ring, anywhere on its path, uses one lane in that ring and all else uses another. The level of a
/// pair says for every ring on which of two lanes it goes; it is the same in both directions.
///
/// Dimensions are found by squares of cables, so the numbers of ports do not matter. A ring of 4 switches is the same as
/// a mesh of 2 x 2, and is routed as such.
///
/// # Errors
///
/// A fabric whose switches are no whole grid; the reason names a switch that does not fit, or those between which a
/// switch or a cable is missing.
fn dor(input: &Input<'_>) -> Result<Routing, String> {
    let Input { fabric, lids, options } = *input;
    let graph = SwitchGraph::in_guid_order(fabric);
    let management = ManagementNodes::new(fabric, &options.management_nodes);
    let grid = Grid::of(fabric, &graph)?;
    let routes = balance(fabric, lids, &graph, &management, || DimensionOrder::new(&graph, &grid));
    let mut routing = Routing::on_one_lane(ENGINE.name, routes);
    if !grid.sides.is_empty() {
        routing.report.notes.push(format!("the grid is {}", grid.shape()));
    }
    lanes::give(input, &graph, &grid, &mut routing);
    Ok(routing)
}
