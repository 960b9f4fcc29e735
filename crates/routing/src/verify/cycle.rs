//! The shortest cycle of a directed graph.

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use rayon::prelude::*;

use super::digraph::Digraph;
use crate::bfs::BATCH;

/// The nodes of a shortest cycle in order; of the shortest ones, that through the lowest node. `None` where there is
/// no cycle.
pub(crate) fn shortest_cycle(graph: &impl Digraph) -> Option<Vec<u32>> {
    let core = Core::of(graph)?;
    let bound = AtomicU32::new(u32::MAX);
    let starts: Vec<u32> = (0..core.nodes.len() as u32).collect();
    let best = starts
        .par_chunks(BATCH)
        .map_init(Search::default, |search, starts| search.run(&core, starts, &bound))
        .flatten()
        .min()?;
    let cycle = core.cycle_through(best.1);
    Some(cycle.into_iter().map(|node| core.nodes[node as usize]).collect())
}

/// The part of a graph that cycles are in: nodes that lie behind a cycle and before one.
#[derive(Debug, Default)]
struct Core {
    /// The nodes' numbers in the whole graph, in order.
    nodes: Vec<u32>,
    first: Vec<usize>,
    /// By node: those that it leads to.
    next: Vec<u32>,
}

impl Core {
    fn of(graph: &impl Digraph) -> Option<Self> {
        let behind = behind_cycles(graph);
        let core = Self::restricted(graph, behind)?;
        // The same against the direction.
        let kept = behind_cycles(&core.reversed());
        let nodes = kept.iter().map(|node| core.nodes[*node as usize]).collect();
        Self::restricted(graph, nodes)
    }

    /// The nodes of `graph` that are named, with what connects them; `None` where there are none.
    fn restricted(graph: &impl Digraph, nodes: Vec<u32>) -> Option<Self> {
        if nodes.is_empty() {
            return None;
        }
        let mut numbers = vec![u32::MAX; graph.len()];
        for (number, node) in (0..).zip(&nodes) {
            numbers[*node as usize] = number;
        }
        let mut core = Self { first: vec![0], ..Self::default() };
        for node in &nodes {
            graph.for_each(*node, |next| {
                if numbers[next as usize] != u32::MAX {
                    core.next.push(numbers[next as usize]);
                }
            });
            core.first.push(core.next.len());
        }
        core.nodes = nodes;
        Some(core)
    }

    fn next(&self, node: u32) -> &[u32] {
        &self.next[self.first[node as usize]..self.first[node as usize + 1]]
    }

    fn reversed(&self) -> Self {
        let mut edges: Vec<(u32, u32)> = (0..self.nodes.len() as u32)
            .flat_map(|node| self.next(node).iter().map(move |next| (*next, node)))
            .collect();
        edges.sort_unstable();
        let mut first = vec![0; self.nodes.len() + 1];
        for (node, _) in &edges {
            first[*node as usize + 1] += 1;
        }
        for at in 1..first.len() {
            first[at] += first[at - 1];
        }
        Self { nodes: self.nodes.clone(), first, next: edges.into_iter().map(|(_, next)| next).collect() }
    }

    /// A shortest cycle through a node that is known to be on one: of several the one that search finds first.
    fn cycle_through(&self, start: u32) -> Vec<u32> {
        let mut before = vec![u32::MAX; self.nodes.len()];
        let mut queue = vec![start];
        let mut served = 0;
        while let Some(node) = queue.get(served).copied() {
            served += 1;
            for next in self.next(node) {
                if before[*next as usize] == u32::MAX {
                    before[*next as usize] = node;
                    queue.push(*next);
                }
            }
            if before[start as usize] != u32::MAX {
                break;
            }
        }
        let mut cycle = vec![start];
        let mut at = before[start as usize];
        while at != start && at != u32::MAX {
            cycle.push(at);
            at = before[at as usize];
        }
        cycle[1..].reverse();
        cycle
    }
}

impl Digraph for Core {
    fn len(&self) -> usize {
        self.nodes.len()
    }

    fn for_each(&self, node: u32, tell: impl FnMut(u32)) {
        self.next(node).iter().copied().for_each(tell);
    }
}

/// The nodes that are on a cycle or can be reached from one, in order: those that taking away nodes to which nothing
/// leads does not take away.
fn behind_cycles(graph: &impl Digraph) -> Vec<u32> {
    in_order(graph).err().unwrap_or_default()
}

/// All nodes, each before those that it leads to (Kahn 1962), or else those that are behind cycles.
pub(crate) fn in_order(graph: &impl Digraph) -> Result<Vec<u32>, Vec<u32>> {
    let nodes = graph.len() as u32;
    let mut waiting = vec![0u32; nodes as usize];
    for node in 0..nodes {
        graph.for_each(node, |next| waiting[next as usize] += 1);
    }
    let mut queue: Vec<u32> = (0..nodes).filter(|node| waiting[*node as usize] == 0).collect();
    let mut served = 0;
    while let Some(node) = queue.get(served).copied() {
        served += 1;
        graph.for_each(node, |next| {
            waiting[next as usize] -= 1;
            if waiting[next as usize] == 0 {
                queue.push(next);
            }
        });
    }
    match served == nodes as usize {
        true => Ok(queue),
        false => Err((0..nodes).filter(|node| waiting[*node as usize] > 0).collect()),
    }
}

/// Searches breadth first from up to [`BATCH`] nodes at once, one bit for each, until one comes back to itself.
#[derive(Debug, Default)]
struct Search {
    seen: Vec<u64>,
    /// By node: from where the last step arrived here first.
    arrived: Vec<u64>,
    next_arrived: Vec<u64>,
    active: Vec<u32>,
    next_active: Vec<u32>,
}

impl Search {
    /// The length of the shortest cycle through any of `starts`, and the lowest that is on one of that length; `None`
    /// when `bound` proves that others are shorter.
    fn run(&mut self, core: &Core, starts: &[u32], bound: &AtomicU32) -> Option<(u32, u32)> {
        for words in [&mut self.seen, &mut self.arrived, &mut self.next_arrived] {
            words.clear();
            words.resize(core.nodes.len(), 0);
        }
        self.active.clear();
        for (bit, start) in starts.iter().enumerate() {
            self.arrived[*start as usize] = 1 << bit;
            self.active.push(*start);
        }
        let mut length = 1;
        while !self.active.is_empty() && length <= bound.load(Relaxed) {
            self.step(core);
            let back = |(bit, start): (usize, &u32)| self.arrived[*start as usize] & 1 << bit != 0;
            if let Some(place) = starts.iter().enumerate().position(back) {
                bound.fetch_min(length, Relaxed);
                return Some((length, starts[place]));
            }
            length += 1;
        }
        None
    }

    fn step(&mut self, core: &Core) {
        self.next_active.clear();
        for node in &self.active {
            let bits = std::mem::take(&mut self.arrived[*node as usize]);
            for next in core.next(*node) {
                let new = bits & !self.seen[*next as usize];
                if new != 0 {
                    self.seen[*next as usize] |= new;
                    if self.next_arrived[*next as usize] == 0 {
                        self.next_active.push(*next);
                    }
                    self.next_arrived[*next as usize] |= new;
                }
            }
        }
        std::mem::swap(&mut self.arrived, &mut self.next_arrived);
        std::mem::swap(&mut self.active, &mut self.next_active);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 1 and 2 lead to each other, so do 3 and 4, and 5, 6 and 7 in a circle; 0 leads to all.
    fn core() -> Core {
        let edges = [vec![1, 3, 5], vec![2], vec![1], vec![4], vec![3], vec![6], vec![7], vec![5]];
        let mut first = vec![0];
        first.extend(edges.iter().scan(0, |count, next| {
            *count += next.len();
            Some(*count)
        }));
        Core { nodes: (0..8).collect(), first, next: edges.concat() }
    }

    #[test]
    fn of_cycles_of_one_length_that_of_the_lowest_node_is_told() {
        assert_eq!(shortest_cycle(&core()), Some(vec![1, 2]));
        assert_eq!(Core::of(&core()).unwrap().nodes, [1, 2, 3, 4, 5, 6, 7]);
    }

    #[test]
    fn no_shorter_cycle_is_missed_in_any_search_order() {
        let search = |starts: &[u32], bound| Search::default().run(&core(), starts, &AtomicU32::new(bound));
        assert_eq!(search(&[3, 4], 2), Some((2, 3)));
        assert_eq!(search(&[5], 2), None);
        assert_eq!(search(&[5], 3), Some((3, 5)));
        assert_eq!(search(&[0], 9), None);
    }
}
