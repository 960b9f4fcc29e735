//! Turns of paths: the lowest rank at which two switches have a common switch above them.

use rayon::prelude::*;

use crate::bits::ones;
use crate::tree::Tree;

/// No path goes up from one and then down to the other.
pub(super) const NO_TURN: u8 = 0;

/// For every two switches where a path that goes up and then down turns at the earliest.
///
/// All such paths between two switches that turn at one rank are equally long, and the lower they turn the shorter
/// they are, because every cable joins neighbouring ranks.
pub(super) struct Turns {
    /// By switch, then by switch: 1 + the highest number of a rank at which a path can turn, or [`NO_TURN`].
    rows: Vec<Vec<u8>>,
}

impl Turns {
    pub(super) fn new(tree: &Tree) -> Self {
        let count = tree.graph.len();
        let by_rank = tree.by_rank();
        // From below: which switches a switch reaches downwards, one bit for each.
        let words = count.div_ceil(64);
        let mut below: Vec<Vec<u64>> = vec![Vec::new(); count];
        for rank in by_rank.iter().rev() {
            let rows: Vec<Vec<u64>> = rank.par_iter().map(|at| row_below(tree, &below, *at, words)).collect();
            for (at, row) in rank.iter().zip(rows) {
                below[*at as usize] = row;
            }
        }
        // From above: what those above a switch can turn to, or better what is below itself.
        let mut rows: Vec<Vec<u8>> = vec![Vec::new(); count];
        for rank in &by_rank {
            let new: Vec<Vec<u8>> =
                rank.par_iter().map(|at| row(tree, &rows, &below[*at as usize], *at)).collect();
            for (at, row) in rank.iter().zip(new) {
                rows[*at as usize] = row;
            }
        }
        Self { rows }
    }

    /// By switch: 1 + the rank at which a path from `from` turns, or [`NO_TURN`].
    pub(super) fn row(&self, from: u32) -> &[u8] {
        &self.rows[from as usize]
    }

    pub(super) fn get(&self, from: u32, to: u32) -> u8 {
        self.rows[from as usize][to as usize]
    }
}

fn row_below(tree: &Tree, below: &[Vec<u64>], at: u32, words: usize) -> Vec<u64> {
    let mut row = vec![0; words];
    row[at as usize / 64] |= 1 << (at % 64);
    for (_, group) in tree.down(at) {
        for (word, lower) in row.iter_mut().zip(&below[group.lower as usize]) {
            *word |= lower;
        }
    }
    row
}

fn row(tree: &Tree, rows: &[Vec<u8>], below: &[u64], at: u32) -> Vec<u8> {
    let mut row = vec![NO_TURN; tree.graph.len()];
    for (_, group) in tree.up(at) {
        for (turn, upper) in row.iter_mut().zip(&rows[group.upper as usize]) {
            *turn = (*turn).max(*upper);
        }
    }
    let own = tree.rank(at) as u8 + 1;
    for (chunk, word) in row.chunks_mut(64).zip(below) {
        ones(*word).for_each(|bit| chunk[bit] = own);
    }
    row
}
