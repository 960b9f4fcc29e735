//! Two lanes for the rings of a torus.

use weft_topology::NodeIndex;
use weft_wire::{PortNum, VirtualLane};

use crate::engines::classes_of_switches;
use crate::input::Input;
use crate::lanes::{LaneMap, LaneRow, SERVICE_LEVELS, ServiceLevels};
use crate::routing::Routing;
use crate::switches::SwitchGraph;

use super::grid::Grid;
use super::ways::{closes_ring, step};

/// In rings of fewer switches every path is one cable long, so nothing in them waits for anything else there.
const RING_THAT_WAITS: i32 = 4;
/// How many rings the bits of a service level can tell apart.
const RINGS_MAX: usize = 4;

/// Gives every pair its level and every level its lanes, or says why packets can wait for each other in a circle.
pub(super) fn give(input: &Input<'_>, graph: &SwitchGraph, grid: &Grid, routing: &mut Routing) {
    let waits = |dimension: &usize| {
        let side = grid.sides[*dimension];
        side.closed && side.length >= RING_THAT_WAITS
    };
    let rings: Vec<usize> = (0..grid.sides.len()).filter(waits).collect();
    if rings.is_empty() {
        return;
    }
    if let Some(why) = impossible(input.options.lanes, rings.len()) {
        routing.report.unsatisfied.push(format!("packets can deadlock in the rings: {why}"));
        return;
    }
    routing.levels = levels(input, graph, grid, &rings);
    routing.lanes = lanes(input, graph, grid, &rings);
    routing.report.lanes = 2;
    let note = "the levels of a pair are the same in both directions, its paths are not always";
    routing.report.notes.push(note.to_owned());
}

/// Why this many dimensions of rings cannot be kept free of deadlock by this many lanes.
fn impossible(lanes: u8, rings: usize) -> Option<String> {
    if lanes < 2 {
        return Some(format!("they need 2 lanes, and {lanes} is given"));
    }
    (rings > RINGS_MAX).then(|| {
        format!("a service level can tell {RINGS_MAX} dimensions of rings apart, and there are {rings}")
    })
}

/// Bit n of a pair's level says whether its path closes the n-th ring.
fn levels(input: &Input<'_>, graph: &SwitchGraph, grid: &Grid, rings: &[usize]) -> ServiceLevels {
    let mut levels = classes_of_switches(input, graph);
    for (source, at) in (0..).zip(&grid.places) {
        for (level, to) in levels.row_mut(source).iter_mut().zip(&grid.places) {
            for (bit, ring) in rings.iter().enumerate() {
                *level |= u8::from(closes_ring(grid.sides[*ring], at[*ring], to[*ring])) << bit;
            }
        }
    }
    levels
}

/// What leaves along the n-th ring goes on the lane that bit n of its level says. In the first ring, and wherever there
/// is none, that is bit 0, so only the others need maps of their own.
fn lanes(input: &Input<'_>, graph: &SwitchGraph, grid: &Grid, rings: &[usize]) -> LaneMap {
    let row = |bit: usize| -> LaneRow {
        std::array::from_fn::<_, SERVICE_LEVELS, _>(|level| VirtualLane((level >> bit & 1) as u8))
    };
    let mut map = LaneMap { everywhere: row(0), ..LaneMap::default() };
    for (switch, node) in (0..).zip(&graph.nodes) {
        let entries: Vec<PortNum> = entries(input, *node);
        for way in graph.ways(switch) {
            let [at, to] = [switch, way.to].map(|switch| grid.places[switch as usize].as_slice());
            let dimension = step(grid, at, to).map(|step| step.dimension);
            let bit = rings.iter().position(|ring| Some(*ring) == dimension).unwrap_or(0);
            if bit > 0 {
                let places = entries.iter().map(|entry| ((*node, *entry, way.port), row(bit)));
                map.exceptions.extend(places);
            }
        }
    }
    map
}

/// The ports by which packets come into a switch, its own among them.
fn entries(input: &Input<'_>, switch: NodeIndex) -> Vec<PortNum> {
    let cabled = input.fabric.node(switch).cabled_ports().map(|(port, _)| port);
    std::iter::once(PortNum::ZERO).chain(cabled).collect()
}

#[cfg(test)]
mod tests {
    use super::impossible;

    #[test]
    fn two_lanes_and_four_bits_are_the_limits() {
        assert_eq!(impossible(2, 4), None);
        assert_eq!(impossible(1, 1).unwrap(), "they need 2 lanes, and 1 is given");
        let why = "a service level can tell 4 dimensions of rings apart, and there are 5";
        assert_eq!(impossible(8, 5).unwrap(), why);
    }
}
