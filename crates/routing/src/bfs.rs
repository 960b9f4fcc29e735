//! Breadth-first search for 64 destinations at a time.

use crate::switches::SwitchGraph;

/// How many destinations are searched for at once: the bits of a word.
pub(crate) const BATCH: usize = 64;

/// What finds the ways that an engine allows to up to [`BATCH`] destinations at once.
pub(crate) trait Search: Send + Sync {
    /// Searches for the ways to `destinations`, of which bits name the first 64.
    fn search(&mut self, graph: &SwitchGraph, destinations: &[u32]);

    /// By way, in the order of the graph's rows: to which destinations it leads.
    fn leading(&self) -> &[u64];

    /// By 64 ways of `switch`, then by destination: which of them lead there, into `ways`.
    fn ways_of(&self, graph: &SwitchGraph, switch: u32, ways: &mut Vec<[u64; BATCH]>) {
        ways.clear();
        for chunk in self.leading()[graph.row(switch)].chunks(BATCH) {
            let mut matrix = [0; BATCH];
            for (row, leading) in matrix.iter_mut().zip(chunk) {
                *row = *leading;
            }
            transpose(&mut matrix);
            ways.push(matrix);
        }
    }
}

/// A breadth-first search from up to [`BATCH`] switches at once, one bit for each, so that one pass over the cables
/// serves all of them.
#[derive(Debug)]
pub(crate) struct Bfs {
    /// By switch: from which destinations the last step arrived here first.
    frontier: Vec<u64>,
    next: Vec<u64>,
    /// By switch: from which destinations it has been reached.
    seen: Vec<u64>,
    /// All destinations.
    all: u64,
    /// By way: to which destinations it leads a hop closer.
    closer: Vec<u64>,
}

impl Bfs {
    pub(crate) fn new(graph: &SwitchGraph) -> Self {
        let switches = vec![0; graph.len()];
        Self {
            frontier: switches.clone(),
            next: switches.clone(),
            seen: switches,
            all: 0,
            closer: vec![0; graph.way_count()],
        }
    }

    /// One hop further from all destinations; false when that leads nowhere new.
    fn step(&mut self, graph: &SwitchGraph) -> bool {
        let mut any = 0;
        for switch in 0..graph.len() {
            if self.seen[switch] == self.all {
                self.next[switch] = 0;
                continue;
            }
            let ways = graph.ways(switch as u32);
            let reached = ways.iter().fold(0, |reached, way| reached | self.frontier[way.to as usize]);
            let new = reached & !self.seen[switch];
            if new != 0 {
                let row = &mut self.closer[graph.row(switch as u32)];
                for (closer, way) in row.iter_mut().zip(ways) {
                    *closer |= self.frontier[way.to as usize] & new;
                }
            }
            self.seen[switch] |= new;
            self.next[switch] = new;
            any |= new;
        }
        any != 0
    }
}

impl Search for Bfs {
    fn search(&mut self, graph: &SwitchGraph, destinations: &[u32]) {
        self.frontier.fill(0);
        self.closer.fill(0);
        for (bit, destination) in destinations.iter().take(BATCH).enumerate() {
            self.frontier[*destination as usize] |= 1 << bit;
        }
        self.all = self.frontier.iter().fold(0, |all, bits| all | bits);
        self.seen.copy_from_slice(&self.frontier);
        while self.step(graph) {
            std::mem::swap(&mut self.frontier, &mut self.next);
        }
    }

    fn leading(&self) -> &[u64] {
        &self.closer
    }
}

/// Swaps rows and columns, in squares of 32, then 16, down to 1.
fn transpose(matrix: &mut [u64; BATCH]) {
    let (mut side, mut mask) = (32, 0xffff_ffff_u64);
    while side > 0 {
        let mut row = 0;
        while row < BATCH {
            let swapped = ((matrix[row] >> side) ^ matrix[row | side]) & mask;
            matrix[row] ^= swapped << side;
            matrix[row | side] ^= swapped;
            // The next row of the upper half of a square.
            row = ((row | side) + 1) & !side;
        }
        side /= 2;
        mask ^= mask << side;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transposing_swaps_rows_and_columns() {
        let mut matrix: [u64; BATCH] =
            std::array::from_fn(|row| (row as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let original = matrix;
        transpose(&mut matrix);
        for (row, bits) in matrix.iter().enumerate() {
            for (column, other) in original.iter().enumerate() {
                assert_eq!(bits >> column & 1, other >> row & 1, "row {row} column {column}");
            }
        }
    }
}
