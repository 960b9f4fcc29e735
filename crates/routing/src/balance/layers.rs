//! Distances from every switch to every destination of a batch, by the ways that lead there.

use crate::switches::SwitchGraph;

/// The switches by their hops to destinations.
#[derive(Default)]
pub(super) struct Layers {
    /// Layer by layer, the nearest first, each in ascending order: the switches, and from which destinations they are
    /// so far.
    entries: Vec<(u32, u64)>,
    /// Where each layer ends.
    ends: Vec<usize>,
    /// By switch: from which destinations it has been reached.
    seen: Vec<u64>,
    /// By switch: from which destinations it has been reached in the last layer.
    frontier: Vec<u64>,
}

impl Layers {
    /// Finds the layers of up to 64 destinations. Ways lead from one layer to the one before.
    pub(super) fn find(&mut self, graph: &SwitchGraph, leading: &[u64], destinations: &[u32]) {
        self.entries.clear();
        self.ends.clear();
        self.seen.clear();
        self.seen.resize(graph.len(), 0);
        self.frontier.clear();
        self.frontier.resize(graph.len(), 0);
        for (bit, destination) in destinations.iter().enumerate() {
            self.frontier[*destination as usize] |= 1 << bit;
        }
        self.entries
            .extend((0..).zip(&self.frontier).filter(|(_, bits)| **bits != 0).map(|(at, bits)| (at, *bits)));
        let all = self.frontier.iter().fold(0, |all, bits| all | bits);
        let mut start = 0;
        while start < self.entries.len() {
            let layer = start..self.entries.len();
            self.ends.push(layer.end);
            for (switch, bits) in &self.entries[layer.clone()] {
                self.seen[*switch as usize] |= bits;
            }
            for at in (0..graph.len() as u32).filter(|at| self.seen[*at as usize] != all) {
                let row = graph.row(at);
                let arrived = (graph.ways(at).iter().zip(&leading[row]))
                    .fold(0, |arrived, (way, leading)| arrived | (self.frontier[way.to as usize] & leading));
                let new = arrived & !self.seen[at as usize];
                if new != 0 {
                    self.entries.push((at, new));
                }
            }
            for (switch, _) in &self.entries[layer.clone()] {
                self.frontier[*switch as usize] = 0;
            }
            for (switch, bits) in &self.entries[layer.end..] {
                self.frontier[*switch as usize] = *bits;
            }
            start = layer.end;
        }
    }

    /// Layer by layer.
    pub(super) fn farthest_first(&self) -> impl Iterator<Item = &[(u32, u64)]> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        let layers: Vec<_> = starts.zip(&self.ends).collect();
        layers.into_iter().rev().map(|(start, end)| &self.entries[start..*end])
    }
}
