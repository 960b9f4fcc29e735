//! The fat-tree engine on damaged trees, beside the one that `auto` would take.

use super::{Input, ftree};
use crate::collapse::Collapsed;
use crate::quality::{Participants, Paths, Pattern, SimulateOptions, hosts, simulate, survey};
use crate::routing::Routing;

/// How often hosts are split into two halves at random; the same halves for every routing.
const RUNS: u32 = 100;

/// What routings are compared by.
struct Quality {
    /// The effective bisection bandwidth.
    bisection: f64,
    /// How many pairs of hosts the busiest link between switches carries.
    worst: u64,
}

/// Whether a fabric is a tree that lacks cables.
pub(super) fn is_damaged_tree(input: &Input<'_>) -> bool {
    match Collapsed::of(input) {
        Some(collapsed) => ftree::is_damaged_tree(&collapsed.input(input)),
        None => ftree::is_damaged_tree(input),
    }
}

/// Takes one of two routings that keep their promises: `tree` unless it is behind the `other` in bisection bandwidth or in the load of
/// the busiest link, or leaves more unsatisfied. With `tree` comes a sentence why; a note in the other's report says why not.
pub(super) fn better(input: &Input<'_>, tree: Routing, mut other: Routing) -> (Routing, Option<String>) {
    let (Some(of_tree), Some(of_other)) = (quality(input, &tree), quality(input, &other)) else {
        return (other, None);
    };
    let figures = format!(
        "bisection {:.3} against {:.3}, busiest link {} against {} pairs of hosts",
        of_tree.bisection, of_other.bisection, of_tree.worst, of_other.worst
    );
    let ahead = of_tree.bisection >= of_other.bisection && of_tree.worst <= of_other.worst;
    if ahead && tree.report.unsatisfied.len() <= other.report.unsatisfied.len() {
        return (tree, Some(format!("this is a damaged tree, on which ftree is not behind: {figures}")));
    }
    other.report.notes.push(format!("ftree serves this damaged tree too, and is behind: {figures}"));
    (other, None)
}

fn quality(input: &Input<'_>, routing: &Routing) -> Option<Quality> {
    let paths = Paths::new(input.fabric, input.lids, &routing.routes);
    let hosts = hosts(input.fabric, input.lids);
    let worst = survey(&paths, &hosts, &hosts).ok()?.flows().iter().max().copied().unwrap_or(0);
    let participants = Participants { first: hosts, second: Vec::new() };
    let options = SimulateOptions { runs: RUNS, seed: 1, ..SimulateOptions::default() };
    let bisection = simulate(&paths, &participants, Pattern::Bisect, &options).ok()?.bandwidth().mean;
    Some(Quality { bisection, worst })
}
