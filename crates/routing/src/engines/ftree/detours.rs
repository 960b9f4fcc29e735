//! Paths that have to go down before they go up: where cables are missing, and between switches that hosts do not use.
//!
//! A path from one root to another goes down first. As long as nothing but switches talk to each other that way it
//! may turn anywhere, since their packets are few. Where hosts take part, all such turns are at one leaf and the
//! switches above it, and only at those from which no chain of packets that wait for each other leads back: so
//! there is never a circle, on one lane.

use std::collections::VecDeque;

use rayon::prelude::*;
use weft_wire::PortNum;

use super::turns::{NO_TURN, Turns};
use crate::tree::Tree;

/// How packets get to what no path up and down leads to.
pub(super) struct Detours {
    rows: Vec<Row>,
    hosts: Vec<bool>,
    pieces: Vec<u32>,
}

/// The detours of one switch, by target switch; empty where it needs none.
#[derive(Clone, Default)]
struct Row {
    ports: Vec<PortNum>,
    /// How many cables down come before the turn; 0 where there is no detour.
    depths: Vec<u8>,
    /// Whether hosts may use it.
    safe: Vec<bool>,
}

impl Row {
    fn depth(&self, to: usize) -> u8 {
        self.depths.get(to).copied().unwrap_or(0)
    }

    fn safe(&self, to: usize) -> bool {
        self.safe.get(to).copied().unwrap_or(false)
    }
}

/// One round of the search for detours.
struct Round<'a> {
    tree: &'a Tree,
    turns: &'a Turns,
    /// By switch: whether packets of hosts may come down and go up again there. Empty in the round for what switches
    /// send to each other, where all may.
    turning: &'a [bool],
}

impl Detours {
    pub(super) fn new(tree: &Tree, turns: &Turns) -> Self {
        let count = tree.graph.len();
        let hosts = (0..count as u32).map(|at| tree.has_hosts(at)).collect();
        let mut detours =
            Self { rows: vec![Row::default(); count], hosts, pieces: tree.graph.pieces(|_| true) };
        let by_rank = tree.by_rank();
        for at in 0..count as u32 {
            if detours.cut_off(turns, at).next().is_some() {
                let (ports, safe) = (vec![PortNum::NONE; count], vec![false; count]);
                detours.rows[at as usize] = Row { ports, depths: vec![0; count], safe };
            }
        }
        // What is safe for hosts comes first, so that no one has to leave such a detour.
        if detours.concern_hosts(turns) {
            let turning = turning(tree, &by_rank, &detours.pieces);
            detours.fill(&Round { tree, turns, turning: &turning }, &by_rank);
        }
        detours.fill(&Round { tree, turns, turning: &[] }, &by_rank);
        detours
    }

    /// Finds detours that go down first, from the lowest switches on, then those that go up to them.
    fn fill(&mut self, round: &Round<'_>, by_rank: &[Vec<u32>]) {
        for rank in by_rank.iter().rev() {
            let rows: Vec<Row> = rank.par_iter().map(|at| self.going_down(round, *at)).collect();
            for (at, row) in rank.iter().zip(rows) {
                self.rows[*at as usize] = row;
            }
        }
        for rank in by_rank {
            let rows: Vec<Row> = rank.par_iter().map(|at| self.going_up(round, *at)).collect();
            for (at, row) in rank.iter().zip(rows) {
                self.rows[*at as usize] = row;
            }
        }
    }

    /// The port by which `from` sends what is for a switch that no path up and down leads to.
    pub(super) fn port(&self, from: u32, to: u32) -> PortNum {
        self.rows[from as usize].ports.get(to as usize).copied().unwrap_or(PortNum::NONE)
    }

    /// Whether hosts may go this way, and by how many cables down before the turn.
    pub(super) fn for_hosts(&self, from: u32, to: u32) -> Option<u8> {
        let row = &self.rows[from as usize];
        row.safe(to as usize).then(|| row.depth(to as usize))
    }

    /// Whether hosts are cabled to a switch.
    pub(super) fn has_hosts(&self, at: u32) -> bool {
        self.hosts[at as usize]
    }

    /// The switches that cables connect to `from` but no path up and down.
    pub(super) fn cut_off(&self, turns: &Turns, from: u32) -> impl Iterator<Item = u32> {
        let piece = self.pieces[from as usize];
        let apart = (0..).zip(turns.row(from)).filter(|(_, turn)| **turn == NO_TURN).map(|(to, _)| to);
        apart.filter(move |to| self.pieces[*to as usize] == piece)
    }

    /// Whether a switch with hosts is cut off from any other.
    fn concern_hosts(&self, turns: &Turns) -> bool {
        (0..self.hosts.len() as u32).any(|at| self.has_hosts(at) && self.cut_off(turns, at).next().is_some())
    }

    /// The switches that `at` has no way to yet, and to which this round may find one.
    fn open(&self, round: &Round<'_>, at: u32) -> Vec<u32> {
        let row = &self.rows[at as usize];
        let free = |to: u32| !self.has_hosts(at) && !self.has_hosts(to);
        let open = self.cut_off(round.turns, at).filter(|to| row.depth(*to as usize) == 0);
        open.filter(|to| !round.turning.is_empty() || free(*to)).collect()
    }

    /// A switch's detours, with those that begin by going down.
    fn going_down(&self, round: &Round<'_>, at: u32) -> Row {
        let mut open = self.open(round, at);
        let mut row = self.rows[at as usize].clone();
        for (_, group) in round.tree.down(at) {
            if open.is_empty() {
                break;
            }
            let lower = &self.rows[group.lower as usize];
            let (arrives, port) = (round.turns.row(group.lower), round.tree.first_port_down(group));
            let safe_turn = round.turning.get(group.lower as usize).copied().unwrap_or(false);
            open.retain(|to| {
                let to = *to as usize;
                let (depth, safe) = match arrives[to] {
                    NO_TURN => (lower.depth(to), lower.safe(to)),
                    _ => (0, safe_turn),
                };
                let goes_on = arrives[to] != NO_TURN || depth > 0;
                let found = goes_on && (safe || round.turning.is_empty());
                if found {
                    row.ports[to] = port;
                    row.depths[to] = depth.saturating_add(1);
                    row.safe[to] = safe && !round.turning.is_empty();
                }
                !found
            });
        }
        row
    }

    /// A switch's detours, with those that go up to a switch that has one.
    fn going_up(&self, round: &Round<'_>, at: u32) -> Row {
        let mut open = self.open(round, at);
        let mut row = self.rows[at as usize].clone();
        for (_, group) in round.tree.up(at) {
            if open.is_empty() {
                break;
            }
            let (upper, port) = (&self.rows[group.upper as usize], round.tree.first_port_up(group));
            open.retain(|to| {
                let to = *to as usize;
                let found = upper.depth(to) > 0 && (upper.safe(to) || round.turning.is_empty());
                if found {
                    row.ports[to] = port;
                    row.depths[to] = upper.depth(to);
                    row.safe[to] = upper.safe(to) && !round.turning.is_empty();
                }
                !found
            });
        }
        row
    }
}

/// The switches at which packets of hosts may go down and then up: in each piece the leaf that has the most switches
/// above it, and all of those, as far as no chain of waiting packets leads from one back to itself.
fn turning(tree: &Tree, by_rank: &[Vec<u32>], pieces: &[u32]) -> Vec<bool> {
    let mut turning = vec![false; pieces.len()];
    let mut best: Vec<Option<(usize, u32, Vec<u32>)>> = vec![None; pieces.len()];
    for leaf in &tree.leaves {
        let above = above(tree, *leaf);
        let best = &mut best[pieces[*leaf as usize] as usize];
        if best.as_ref().is_none_or(|best| above.len() > best.0) {
            *best = Some((above.len(), *leaf, above));
        }
    }
    for (_, leaf, above) in best.into_iter().flatten() {
        for rank in by_rank {
            for at in rank.iter().filter(|at| **at == leaf || above.contains(at)) {
                turning[*at as usize] = true;
                turning[*at as usize] = !comes_back(tree, &turning, *at);
            }
        }
    }
    turning
}

/// The switches above one, from below.
fn above(tree: &Tree, from: u32) -> Vec<u32> {
    let mut seen = vec![false; tree.graph.len()];
    let (mut found, mut next) = (vec![from], 0);
    while let Some(at) = found.get(next).copied() {
        next += 1;
        for (_, group) in tree.up(at) {
            if !std::mem::replace(&mut seen[group.upper as usize], true) {
                found.push(group.upper);
            }
        }
    }
    found.split_off(1)
}

/// Whether a packet that a switch sends up can wait for one, and that for another, until one of them comes down to the
/// same switch: by any path up and down, and by the turns allowed so far.
fn comes_back(tree: &Tree, turning: &[bool], start: u32) -> bool {
    // Two channels for each group: up and down.
    let mut seen = vec![[false; 2]; tree.groups.len()];
    let mut todo: VecDeque<(usize, bool)> = tree.up(start).map(|(place, _)| (place, true)).collect();
    while let Some((place, up)) = todo.pop_front() {
        if std::mem::replace(&mut seen[place][usize::from(up)], true) {
            continue;
        }
        let group = &tree.groups[place];
        let at = if up { group.upper } else { group.lower };
        if !up && at == start {
            return true;
        }
        if up || turning[at as usize] {
            todo.extend(tree.up(at).filter(|(next, _)| *next != place).map(|(next, _)| (next, true)));
        }
        todo.extend(tree.down(at).filter(|(next, _)| *next != place).map(|(next, _)| (next, false)));
    }
    false
}
