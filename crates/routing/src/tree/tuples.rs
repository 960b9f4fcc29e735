//! Tuples: the place of every switch in the tree, in numbers.

use std::collections::BTreeSet;
use std::fmt;

use weft_topology::Fabric;

use super::RANKS_MAX;
use crate::switches::SwitchGraph;

/// How many digits follow the rank at most: those that OpenSM's ranks need, and what hangs below the leaves.
const DIGITS_MAX: usize = RANKS_MAX as usize + 8;

/// The place of a switch, as OpenSM counts: its rank l, then as many digits as there are ranks below the roots. The
/// first l say in which sub-tree it is, from the largest to the smallest; the others say which of the top switches
/// of that sub-tree it is.
///
/// ```text
///   1.0.1.1   rank 1, sub-tree 0 of the first level, top switch 1.1 of it
/// ```
///
/// A switch (l, a1 .. an) has cables to (l + 1, b1 .. bn) only when all digits but number l + 1 are equal
/// (paper on vSwitch routing, definition 1).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Tuple {
    rank: u16,
    digits: [u16; DIGITS_MAX],
    count: u16,
}

impl Tuple {
    /// The digits after the rank.
    pub(crate) fn digits(&self) -> &[u16] {
        &self.digits[..usize::from(self.count)]
    }
}

impl fmt::Display for Tuple {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.rank)?;
        self.digits().iter().try_for_each(|digit| write!(f, ".{digit}"))
    }
}

impl fmt::Debug for Tuple {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

/// The tuples of all switches.
///
/// The sub-tree of a level that a switch is in is what stays connected when all higher ranks are taken away, and its
/// place among the tops is what stays connected when all lower ranks are taken away. So the digits of a tree that has
/// lost cables are those of the whole one wherever it still hangs together. Sub-trees and places are numbered by their
/// lowest switch GUIDs. Where several switches stand in one place, which happens in no extended generalised
/// fat-tree, each takes the next free number.
pub(super) fn tuples(fabric: &Fabric, graph: &SwitchGraph, ranks: &[u32]) -> Vec<Tuple> {
    let highest = ranks.iter().max().copied().unwrap_or(0);
    let order = graph.order_by_guid(fabric);
    let level = |at: u32| ranks[at as usize];
    // By level: the number of the sub-tree of that level, and of the place among the tops of the level above.
    let subtrees: Vec<Vec<u32>> = (0..=highest).map(|from| graph.pieces(|at| level(at) >= from)).collect();
    let places: Vec<Vec<u32>> = (0..=highest).map(|to| graph.pieces(|at| level(at) <= to)).collect();
    let mut digits = vec![[0u16; DIGITS_MAX]; graph.len()];
    let width = (highest as usize).min(DIGITS_MAX);
    for digit in 1..=width {
        let all = vec![0; graph.len()];
        let within = if digit == 1 { &all } else { &subtrees[digit - 1] };
        let inside = |at: u32| level(at) as usize >= digit;
        for (at, number) in number(&order, &subtrees[digit], within, inside) {
            digits[at as usize][digit - 1] = number;
        }
        let above = |at: u32| (level(at) as usize) < digit;
        for (at, number) in number(&order, &places[digit - 1], &places[digit], above) {
            digits[at as usize][digit - 1] = number;
        }
    }
    let mut taken = BTreeSet::new();
    let mut tuples = vec![Tuple { rank: 0, digits: [0; DIGITS_MAX], count: width as u16 }; graph.len()];
    for at in order {
        let rank = level(at) as u16;
        let mut tuple = Tuple { rank, digits: digits[at as usize], count: width as u16 };
        let last = usize::from(rank).min(width.saturating_sub(1));
        while !taken.insert(tuple) {
            tuple.digits[last] = tuple.digits[last].saturating_add(1);
        }
        tuples[at as usize] = tuple;
    }
    tuples
}

/// Numbers the pieces inside of each larger piece, in the order in which they are met.
fn number(order: &[u32], pieces: &[u32], within: &[u32], counts: impl Fn(u32) -> bool) -> Vec<(u32, u16)> {
    let (mut of_piece, mut next) = (vec![u16::MAX; pieces.len()], vec![0u16; pieces.len()]);
    let mut numbers = Vec::new();
    for at in order.iter().copied().filter(|at| counts(*at)) {
        let number = &mut of_piece[pieces[at as usize] as usize];
        if *number == u16::MAX {
            let next = &mut next[within[at as usize] as usize];
            *number = *next;
            *next = next.saturating_add(1);
        }
        numbers.push((at, *number));
    }
    numbers
}
