//! Ways of all switches to a target, kept by its main path.

use std::collections::BTreeMap;

use rayon::prelude::*;
use weft_wire::{Lid, PortNum};

use crate::bfs::BATCH;
use crate::lids::Lids;
use crate::tables::ForwardingTable;
use crate::tree::Tree;
use crate::tree::reach::{Link, NO_LINK, Shape};

/// Ways that are kept for each LID at most.
const KEPT_PER_LID: usize = 2;

/// A switch that sends for itself alone: its link depends on the LID.
const TURNS: u16 = u16::MAX - 1;
/// No link.
const NONE: u16 = u16::MAX;

/// The ways of all switches to a target for one main path: by switch, its link.
#[derive(Debug)]
struct Ways(Box<[u16]>);

/// Ways by target and links of the main path, in the order in which they were kept.
#[derive(Debug, Default)]
pub(super) struct Kept {
    ways: Vec<Ways>,
    /// By target: where the ways for a main path are.
    places: BTreeMap<u32, BTreeMap<Vec<Link>, u32>>,
    /// By switch: whether switches are connected with it but do not reach it by going up and then down.
    pub(super) strays: BTreeMap<u32, bool>,
    most: usize,
}

impl Kept {
    pub(super) fn new(lids: &Lids, shape: &Shape) -> Self {
        let fits = 2 * shape.ends.len() < usize::from(TURNS);
        let most = if fits { KEPT_PER_LID * usize::from(lids.top().0) } else { 0 };
        Self { most, ..Self::default() }
    }

    /// How many ways are kept.
    pub(super) fn len(&self) -> usize {
        self.ways.len()
    }

    /// Where the ways for a main path are kept; `main` is the target and the links.
    pub(super) fn place(&self, main: &[u32]) -> Option<u32> {
        let (target, links) = main.split_first()?;
        self.places.get(target)?.get(links).copied()
    }

    /// Writes ways into `next`, but for those of switches that send for themselves: traffic of hosts passes none of them.
    pub(super) fn read(&self, place: u32, next: &mut [Link]) {
        for (next, way) in next.iter_mut().zip(&self.ways[place as usize].0) {
            *next = if *way < TURNS { (*way).into() } else { NO_LINK };
        }
    }

    /// The links up that a destination loads.
    pub(super) fn loaded(&self, place: u32) -> impl Iterator<Item = Link> {
        let ways = self.ways[place as usize].0.iter();
        ways.filter(|way| **way < TURNS && !way.is_multiple_of(2)).map(|way| (*way).into())
    }

    /// Keeps the ways for a main path, where there is room. `turned` are the switches that send for themselves, in any order.
    pub(super) fn keep(&mut self, main: &[u32], next: &[Link], turned: &[u32]) {
        let Some((target, links)) = main.split_first().filter(|_| self.ways.len() < self.most) else {
            return;
        };
        let mut ways: Box<[u16]> = next.iter().map(|link| u16::try_from(*link).unwrap_or(NONE)).collect();
        turned.iter().for_each(|at| ways[*at as usize] = TURNS);
        self.places.entry(*target).or_default().insert(links.to_vec(), self.ways.len() as u32);
        self.ways.push(Ways(ways));
    }

    /// Writes ways into the tables of all switches: `rows` has LIDs with the places of their ways, in any order.
    pub(super) fn write(&self, tree: &Tree, rows: &mut [(Lid, u32)], tables: &mut [ForwardingTable]) {
        if rows.is_empty() {
            return;
        }
        rows.sort_unstable();
        let links = 0..2 * tree.cables.len() as Link;
        let ports: Vec<PortNum> = links.map(|link| tree.port(link).unwrap_or(PortNum::NONE)).collect();
        let turns: Vec<Vec<PortNum>> = tree.graph.numbers().map(|at| turns(tree, at)).collect();
        tables.par_chunks_mut(BATCH).enumerate().for_each(|(chunk, tables)| {
            let first = chunk * BATCH;
            let turns = &turns[first..first + tables.len()];
            for (lid, place) in &*rows {
                let ways = &self.ways[*place as usize].0[first..first + tables.len()];
                let (mut turn, mut count) = (0, 0);
                for ((table, way), turns) in tables.iter_mut().zip(ways).zip(turns) {
                    let port = match *way {
                        NONE => continue,
                        TURNS => {
                            if count != turns.len() {
                                count = turns.len();
                                turn = usize::from(lid.0) % count;
                            }
                            turns[turn]
                        }
                        link => ports[usize::from(link)],
                    };
                    table.entries_mut()[usize::from(lid.0)] = port;
                }
            }
        });
    }
}

/// The ports up of a switch between which the LID decides: the first of each group.
fn turns(tree: &Tree, at: u32) -> Vec<PortNum> {
    tree.up(at).map(|(_, group)| tree.first_port_up(group)).collect()
}
