//! Meshes, tori and hypercubes, recognised by their cables.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use weft_topology::Fabric;

use crate::sorted;
use crate::switches::SwitchGraph;

use super::steps::{Conflict, Neighbours, Step, Steps};

/// From how many switches a grid is looked for before a fabric is held to be none.
const STARTS_MAX: usize = 64;

/// One dimension.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Side {
    /// How many places it has.
    pub(super) length: i32,
    /// Whether the last place is next to the first. A ring of 4 counts as 2 x 2.
    pub(super) closed: bool,
}

/// A grid in which every place has a switch and every two neighbours a cable.
#[derive(Debug)]
pub(super) struct Grid {
    pub(super) sides: Vec<Side>,
    /// By switch of the graph.
    pub(super) places: Vec<Vec<i32>>,
}

/// Why there is no grid.
struct Misfit {
    /// How many switches and cables it lacks, or has too many.
    faults: usize,
    /// The first of them.
    reason: String,
}

/// More faults than can be counted.
const NO_GRID: usize = usize::MAX;

impl Grid {
    /// Recognises a grid, whatever its ports' numbers are. What comes back otherwise names a switch that does not
    /// fit, or between which switches one or a cable is missing.
    pub(super) fn of(fabric: &Fabric, graph: &SwitchGraph) -> Result<Self, String> {
        let neighbours = Neighbours::new(graph);
        if neighbours.len() == 0 {
            return Ok(Self { sides: Vec::new(), places: Vec::new() });
        }
        // Where most cables are, least is likely to be missing.
        let mut starts: Vec<u32> = (0..neighbours.len()).collect();
        sorted::by_key(&mut starts, |switch| Reverse(neighbours.of(*switch).len()));
        let apart = starts.len().div_ceil(STARTS_MAX);
        let attempt = Attempt { fabric, graph, neighbours: &neighbours };
        let mut nearest = Misfit { faults: NO_GRID, reason: String::new() };
        for start in starts.into_iter().step_by(apart) {
            let misfit = match attempt.grid(start) {
                Ok(grid) => return Ok(grid),
                Err(misfit) => misfit,
            };
            if misfit.faults < nearest.faults || nearest.reason.is_empty() {
                nearest = misfit;
            }
            // From another start it is no better.
            if nearest.faults == 1 {
                break;
            }
        }
        Err(nearest.reason)
    }

    /// The sides, such as `4 x 4 x ring of 5`.
    pub(super) fn shape(&self) -> String {
        shape(&self.sides)
    }
}

fn shape(sides: &[Side]) -> String {
    let side = |side: &Side| match side.closed {
        true => format!("ring of {}", side.length),
        false => side.length.to_string(),
    };
    sides.iter().map(side).collect::<Vec<_>>().join(" x ")
}

/// Looks for a grid from one switch. Switches are numbered as in [`Neighbours`].
struct Attempt<'a> {
    fabric: &'a Fabric,
    graph: &'a SwitchGraph,
    neighbours: &'a Neighbours,
}

impl Attempt<'_> {
    fn grid(&self, start: u32) -> Result<Grid, Misfit> {
        let steps = Steps::from(self.neighbours, start).map_err(|Conflict(switch)| Misfit {
            faults: NO_GRID,
            reason: format!("the cables of the switch {} are not those of a grid", self.id(switch)),
        })?;
        let mut sides = sides(&steps, self.neighbours.len());
        let places = self.places(&steps, start, &sides)?;
        let mut low = vec![0; sides.len()];
        for (dimension, side) in sides.iter_mut().enumerate().filter(|(_, side)| !side.closed) {
            let all = || places.values().map(|place| place[dimension]);
            low[dimension] = all().min().unwrap_or(0);
            side.length = all().max().unwrap_or(0) - low[dimension] + 1;
        }
        let mut switches: BTreeMap<Vec<i32>, u32> = BTreeMap::new();
        for (switch, place) in &places {
            let place: Vec<i32> = place.iter().zip(&low).map(|(at, low)| at - low).collect();
            if let Some(other) = switches.insert(place, *switch) {
                let [a, b] = [other, *switch].map(|switch| self.id(switch));
                let reason = format!("the switches {a} and {b} would have one place in a grid");
                return Err(Misfit { faults: NO_GRID, reason });
            }
        }
        self.check(&switches, &sides)?;
        let mut by_switch = vec![Vec::new(); self.graph.len()];
        for (place, switch) in switches {
            by_switch[switch as usize] = place;
        }
        Ok(Grid { sides, places: by_switch })
    }

    fn id(&self, switch: u32) -> &str {
        &self.fabric.node(self.graph.nodes[switch as usize]).id
    }

    /// The place of every switch; that of `start` is 0 in each dimension.
    fn places(&self, steps: &Steps, start: u32, sides: &[Side]) -> Result<BTreeMap<u32, Vec<i32>>, Misfit> {
        let mut places = BTreeMap::from([(start, vec![0; sides.len()])]);
        let mut todo = vec![start];
        while let Some(at) = todo.pop() {
            for (step, to) in steps.at(at) {
                let place = moved(&places[&at], step, sides);
                match places.get(&to) {
                    None => {
                        places.insert(to, place);
                        todo.push(to);
                    }
                    Some(known) if *known == place => {}
                    Some(_) => {
                        let reason = format!("the switch {} would have two places in a grid", self.id(to));
                        return Err(Misfit { faults: NO_GRID, reason });
                    }
                }
            }
        }
        let Some(other) = (0..self.neighbours.len()).find(|switch| !places.contains_key(switch)) else {
            return Ok(places);
        };
        let beside = |switch: &u32| self.neighbours.of(*switch).any(|to| places.contains_key(&to));
        let first = (0..self.neighbours.len()).find(|switch| !places.contains_key(switch) && beside(switch));
        let reason = match first {
            Some(switch) => format!("the switch {} has no place in a grid", self.id(switch)),
            None => format!("no cables join the switches {} and {}", self.id(start), self.id(other)),
        };
        Err(Misfit { faults: NO_GRID, reason })
    }

    /// Whether every place has a switch, and neighbours a cable, and others none.
    fn check(&self, switches: &BTreeMap<Vec<i32>, u32>, sides: &[Side]) -> Result<(), Misfit> {
        let (mut missing, mut lacking, mut spare) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
        for (place, switch) in switches {
            let mut expected = BTreeSet::new();
            for to in around(place, sides) {
                match switches.get(&to) {
                    Some(to) => expected.extend([*to]),
                    None => missing.extend([to]),
                }
            }
            let joined: BTreeSet<u32> = self.neighbours.of(*switch).collect();
            lacking.extend(expected.difference(&joined).map(|to| (*switch.min(to), *switch.max(to))));
            spare.extend(joined.difference(&expected).map(|to| (*switch.min(to), *switch.max(to))));
        }
        let ids = |(a, b): &(u32, u32)| format!("from {} to {}", self.id(*a), self.id(*b));
        let what = if let Some(place) = missing.first() {
            let beside = around(place, sides).filter_map(|place| Some(self.id(*switches.get(&place)?)));
            format!(
                "another switch beside {}",
                beside.collect::<BTreeSet<_>>().into_iter().collect::<Vec<_>>().join(", ")
            )
        } else if let Some(cable) = lacking.first() {
            format!("a cable {}", ids(cable))
        } else if let Some(cable) = spare.first() {
            format!("no cable {}", ids(cable))
        } else {
            return Ok(());
        };
        let faults = missing.len() + lacking.len() + spare.len();
        Err(Misfit { faults, reason: format!("a grid of {} would have {what}", shape(sides)) })
    }
}

/// The dimensions, of which those that are rings have their lengths already.
fn sides(steps: &Steps, switches: u32) -> Vec<Side> {
    let ring = |dimension: usize| {
        let forward = Step { dimension, forward: true };
        let mut walked = vec![false; switches as usize];
        for start in 0..switches {
            let (mut at, mut length) = (start, 0);
            while !walked[at as usize] {
                walked[at as usize] = true;
                length += 1;
                match steps.target(at, forward) {
                    Some(next) if next == start => return Some(length),
                    Some(next) => at = next,
                    None => break,
                }
            }
        }
        None
    };
    let side = |dimension| match ring(dimension) {
        Some(length) => Side { length, closed: true },
        None => Side::default(),
    };
    (0..steps.dimensions).map(side).collect()
}

/// The place that a step leads to.
fn moved(place: &[i32], step: Step, sides: &[Side]) -> Vec<i32> {
    let mut place = place.to_vec();
    let (at, side) = (&mut place[step.dimension], sides[step.dimension]);
    *at += if step.forward { 1 } else { -1 };
    if side.closed {
        *at = at.rem_euclid(side.length);
    }
    place
}

/// The neighbours that a place has in a grid.
fn around<'a>(place: &'a [i32], sides: &'a [Side]) -> impl Iterator<Item = Vec<i32>> + 'a {
    let steps =
        (0..sides.len()).flat_map(|dimension| [false, true].map(|forward| Step { dimension, forward }));
    steps
        .map(|step| (step.dimension, moved(place, step, sides)))
        .filter_map(|(dimension, to)| (0..sides[dimension].length).contains(&to[dimension]).then_some(to))
}
