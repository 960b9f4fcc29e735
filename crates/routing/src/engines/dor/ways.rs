//! The ways along one dimension after the other, for 64 destinations at a time.

use std::cmp::Ordering;

use crate::bfs::{BATCH, Search};
use crate::switches::SwitchGraph;

use super::grid::{Grid, Side};
use super::steps::Step;

/// Where to go in one dimension, from `at` to `to`: `None` when it is done. Where both ways round a ring are as long,
/// pairs are shared between them, and both directions of a pair go the same way.
pub(super) fn forward(side: Side, at: i32, to: i32) -> Option<bool> {
    let ascending = match at.cmp(&to) {
        Ordering::Equal => return None,
        Ordering::Less => true,
        Ordering::Greater => false,
    };
    let inside = match (2 * (to - at).abs()).cmp(&side.length) {
        Ordering::Less => true,
        Ordering::Equal => at.min(to) % 2 == 0,
        Ordering::Greater => false,
    };
    Some(ascending == (inside || !side.closed))
}

/// Whether the way from `at` to `to` passes the cable between the last place of a ring and the first.
pub(super) fn closes_ring(side: Side, at: i32, to: i32) -> bool {
    side.closed && forward(side, at, to).is_some_and(|forward| forward != (at < to))
}

/// The step from one place towards another.
pub(super) fn step(grid: &Grid, at: &[i32], to: &[i32]) -> Option<Step> {
    let mut dimensions = grid.sides.iter().zip(at).zip(to).enumerate();
    dimensions.find_map(|(dimension, ((side, at), to))| {
        Some(Step { dimension, forward: forward(*side, *at, *to)? })
    })
}

/// Finds the ways that dimension order allows.
pub(super) struct DimensionOrder<'a> {
    grid: &'a Grid,
    /// By way: which step it is.
    steps: Vec<u8>,
    leading: Vec<u64>,
    /// By step of one switch: to which destinations it leads.
    by_step: Vec<u64>,
}

/// The place of a step in a list of all.
fn index(step: Step) -> usize {
    2 * step.dimension + usize::from(step.forward)
}

impl<'a> DimensionOrder<'a> {
    pub(super) fn new(graph: &SwitchGraph, grid: &'a Grid) -> Self {
        let mut steps = Vec::with_capacity(graph.way_count());
        for switch in 0..graph.len() as u32 {
            for way in graph.ways(switch) {
                let [at, to] = [switch, way.to].map(|switch| grid.places[switch as usize].as_slice());
                steps.push(step(grid, at, to).map_or(0, |step| index(step) as u8));
            }
        }
        Self { grid, steps, leading: vec![0; graph.way_count()], by_step: vec![0; 2 * grid.sides.len()] }
    }
}

impl Search for DimensionOrder<'_> {
    fn search(&mut self, graph: &SwitchGraph, destinations: &[u32]) {
        for (switch, at) in (0..).zip(&self.grid.places) {
            self.by_step.fill(0);
            for (bit, to) in destinations.iter().take(BATCH).enumerate() {
                if let Some(step) = step(self.grid, at, &self.grid.places[*to as usize]) {
                    self.by_step[index(step)] |= 1 << bit;
                }
            }
            let row = graph.row(switch);
            for (leading, step) in self.leading[row.clone()].iter_mut().zip(&self.steps[row]) {
                *leading = self.by_step[usize::from(*step)];
            }
        }
    }

    fn leading(&self) -> &[u64] {
        &self.leading
    }
}
