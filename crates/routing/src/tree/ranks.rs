//! Ranks: each switch's distance from the roots.

use std::collections::BinaryHeap;

use weft_topology::Fabric;

use crate::input::Input;
use crate::sorted;
use crate::switches::{SwitchGraph, UNREACHED};

use super::RANKS_MAX;

/// How many ranks may hang below the leaves: switches without hosts, and what has lost its cables up.
const RANKS_BELOW_MAX: u32 = 8;

/// How many leaves are looked at together: the bits of a word.
const BATCH: usize = 64;

/// The rank of every switch: 0 for roots, one more for every cable down. Pieces of the fabric are ranked one by one
/// and then moved so that their leaves stand side by side.
pub(super) fn rank(
    input: &Input<'_>,
    graph: &SwitchGraph,
    is_leaf: &[bool],
    notes: &mut Vec<String>,
) -> Result<Vec<u32>, String> {
    if !is_leaf.contains(&true) {
        return Err("no compute node is cabled to a switch".to_owned());
    }
    let namer = Namer { input, graph };
    let mut ranks = from_roots(&namer, notes)?;
    let mut heights = hops(graph, |at| is_leaf[at as usize] && ranks[at as usize] == UNREACHED);
    for (height, rank) in heights.iter_mut().zip(&ranks) {
        if *rank != UNREACHED {
            *height = UNREACHED;
        }
    }
    namer.check_heights(&heights, is_leaf)?;
    let tops = Tops::new(graph, &heights);
    let leaf_ranks = is_leaf.iter().zip(&ranks).filter(|(leaf, rank)| **leaf && **rank != UNREACHED);
    let leaf_rank = leaf_ranks.map(|(_, rank)| *rank).chain(tops.top_of.iter().copied().flatten()).max();
    let is_root = |at: usize| tops.top_of[at] == Some(heights[at]) && !tops.covered[at];
    let below_roots = hops(graph, |at| is_root(at as usize));
    let mut by_height = ranks.clone();
    for at in 0..graph.len() {
        let Some(top) = tops.top_of[at] else { continue };
        let shift = leaf_rank.unwrap_or(0).max(top);
        ranks[at] = below_roots[at] + shift - top;
        if heights[at] <= top && !tops.covered[at] {
            by_height[at] = shift - heights[at];
        }
    }
    hang(input.fabric, graph, &mut ranks);
    hang(input.fabric, graph, &mut by_height);
    // A switch that has lost its cables up hangs below the leaves, where all can reach it; unless leaves need it to
    // reach each other.
    if ranks != by_height && !connects(graph, &ranks, is_leaf) && connects(graph, &by_height, is_leaf) {
        ranks = by_height;
    }
    namer.check_ranks(&ranks, is_leaf)?;
    Ok(ranks)
}

/// Whether paths that go up and then down connect all leaves of each piece.
fn connects(graph: &SwitchGraph, ranks: &[u32], is_leaf: &[bool]) -> bool {
    let mut order: Vec<u32> = (0..graph.len() as u32).collect();
    sorted::numbers(&mut order, |at| ranks[at as usize]);
    let piece = graph.pieces(|_| true);
    let leaves: Vec<u32> = order.iter().copied().filter(|at| is_leaf[*at as usize]).collect();
    leaves.chunks(BATCH).all(|batch| {
        let mut words = vec![0u64; graph.len()];
        for (bit, leaf) in batch.iter().enumerate() {
            words[*leaf as usize] = 1 << bit;
        }
        // What is below every switch, from the lowest; then what is below those above it, from the highest.
        let gather = |words: &mut [u64], at: u32, lower: bool| {
            for way in graph.ways(at) {
                if (ranks[way.to as usize] > ranks[at as usize]) == lower {
                    words[at as usize] |= words[way.to as usize];
                }
            }
        };
        order.iter().rev().for_each(|at| gather(&mut words, *at, true));
        order.iter().for_each(|at| gather(&mut words, *at, false));
        leaves.iter().all(|leaf| {
            let same = |other: &u32| piece[*other as usize] == piece[*leaf as usize];
            let wanted = (0..).zip(batch).filter(|(_, other)| same(other));
            wanted.fold(0u64, |wanted, (bit, _)| wanted | 1 << bit) & !words[*leaf as usize] == 0
        })
    })
}

/// The ranks of all that is connected to the given roots.
fn from_roots(namer: &Namer<'_>, notes: &mut Vec<String>) -> Result<Vec<u32>, String> {
    let given = &namer.input.options.roots;
    let mut is_root = vec![false; namer.graph.len()];
    for guid in given {
        let node = namer.input.fabric.by_guid(*guid);
        match node.and_then(|node| namer.graph.number(node)) {
            Some(at) => is_root[at as usize] = true,
            None => notes.push(format!("the root {guid} is no switch of this fabric")),
        }
    }
    if !given.is_empty() && !is_root.contains(&true) {
        return Err(format!("none of the given roots is a switch of this fabric, the first is {}", given[0]));
    }
    Ok(hops(namer.graph, |at| is_root[at as usize]))
}

/// By switch: the cables to the nearest one of a set.
fn hops(graph: &SwitchGraph, set: impl Fn(u32) -> bool) -> Vec<u32> {
    let starts: Vec<u32> = (0..graph.len() as u32).filter(|at| set(*at)).collect();
    graph.hops_from(&starts, |_| true)
}

/// Where the roots of each piece are, seen from its leaves.
struct Tops {
    /// By switch: the height of the roots of its piece.
    top_of: Vec<Option<u32>>,
    /// By switch: whether it is no root although it stands as high and nothing above it, because a switch below it
    /// reaches all leaves that it reaches: a leaf without hosts, or a root that has lost its cables.
    covered: Vec<bool>,
}

impl Tops {
    /// The roots stand at the least height from which the most leaves are reached downwards.
    fn new(graph: &SwitchGraph, heights: &[u32]) -> Self {
        let count = graph.len();
        let mut order: Vec<u32> = (0..count as u32).filter(|at| heights[*at as usize] != UNREACHED).collect();
        sorted::numbers(&mut order, |at| heights[at as usize]);
        let leaves: Vec<u32> = order.iter().copied().filter(|at| heights[*at as usize] == 0).collect();
        // By way: whether the switch at its lower end reaches all that the one at its upper end does.
        let mut covers = vec![true; graph.way_count()];
        let mut reached = vec![0u32; count];
        for batch in leaves.chunks(BATCH) {
            let mut words = vec![0u64; count];
            for (bit, leaf) in batch.iter().enumerate() {
                words[*leaf as usize] = 1 << bit;
            }
            for at in &order {
                let at = *at as usize;
                let lower = |to: u32| heights[to as usize] < heights[at];
                for way in graph.ways(at as u32).iter().filter(|way| lower(way.to)) {
                    words[at] |= words[way.to as usize];
                }
                for (way, covers) in graph.ways(at as u32).iter().zip(&mut covers[graph.row(at as u32)]) {
                    *covers &= lower(way.to) && words[at] & !words[way.to as usize] == 0;
                }
                reached[at] += words[at].count_ones();
            }
        }
        let piece = graph.pieces(|_| true);
        let mut best = vec![(0u32, u32::MAX); count];
        for at in order.iter().map(|at| *at as usize) {
            let best = &mut best[piece[at] as usize];
            // In order of height, so that the first one with as many stays.
            if reached[at] > best.0 {
                *best = (reached[at], heights[at]);
            }
        }
        let mut tops = Self { top_of: vec![None; count], covered: vec![false; count] };
        for at in order.iter().map(|at| *at as usize) {
            tops.top_of[at] = Some(best[piece[at] as usize].1);
            let highest = graph.ways(at as u32).iter().all(|way| heights[way.to as usize] < heights[at]);
            tops.covered[at] = heights[at] > 0 && highest && covers[graph.row(at as u32)].contains(&true);
        }
        tops
    }
}

/// Ranks what has no rank yet: a switch stands one below the highest that it is cabled to. Pieces without any rank
/// hang from the switch of the lowest GUID.
fn hang(fabric: &Fabric, graph: &SwitchGraph, ranks: &mut [u32]) {
    let unranked = |ranks: &[u32], at: u32| ranks[at as usize] == UNREACHED;
    let mut todo: BinaryHeap<std::cmp::Reverse<(u32, u32)>> = BinaryHeap::new();
    for at in (0..graph.len() as u32).filter(|at| !unranked(ranks, *at)) {
        todo.push(std::cmp::Reverse((ranks[at as usize], at)));
    }
    let mut by_guid = graph.order_by_guid(fabric).into_iter();
    loop {
        while let Some(std::cmp::Reverse((rank, at))) = todo.pop() {
            for way in graph.ways(at) {
                if unranked(ranks, way.to) {
                    ranks[way.to as usize] = rank + 1;
                    todo.push(std::cmp::Reverse((rank + 1, way.to)));
                }
            }
        }
        match by_guid.find(|at| unranked(ranks, *at)) {
            None => return,
            Some(at) => {
                ranks[at as usize] = 0;
                todo.push(std::cmp::Reverse((0, at)));
            }
        }
    }
}

/// Says what is wrong, with names.
struct Namer<'a> {
    input: &'a Input<'a>,
    graph: &'a SwitchGraph,
}

impl Namer<'_> {
    fn name(&self, at: u32) -> &str {
        &self.input.fabric.node(self.graph.nodes[at as usize]).id
    }

    /// The first cable between two switches that are as high or as low, if there is one.
    fn level_cable(&self, levels: &[u32]) -> Option<(u32, u32)> {
        (0..self.graph.len() as u32).filter(|at| levels[*at as usize] != UNREACHED).find_map(|at| {
            let same = |to: u32| levels[to as usize] == levels[at as usize];
            self.graph.ways(at).iter().find(|way| same(way.to)).map(|way| (at, way.to))
        })
    }

    fn check_heights(&self, heights: &[u32], is_leaf: &[bool]) -> Result<(), String> {
        let Some((a, b)) = self.level_cable(heights) else { return Ok(()) };
        let (a_name, b_name) = (self.name(a), self.name(b));
        Err(match is_leaf[a as usize] {
            true => format!(
                "{a_name} and {b_name} both have compute nodes and a cable between them, so there is no tree \
                 unless roots or compute nodes are named"
            ),
            false => format!(
                "{a_name} and {b_name} are both {height} cables from the nearest compute nodes' switch and have a \
                 cable between them, which no tree has",
                height = heights[a as usize],
            ),
        })
    }

    /// Pieces without leaves may be as they like: no one sends there.
    fn check_ranks(&self, ranks: &[u32], is_leaf: &[bool]) -> Result<(), String> {
        let piece = self.graph.pieces(|_| true);
        let mut has_leaf = vec![false; ranks.len()];
        for (piece, _) in piece.iter().zip(is_leaf).filter(|(_, is_leaf)| **is_leaf) {
            has_leaf[*piece as usize] = true;
        }
        let ranks: Vec<u32> = (ranks.iter().zip(&piece))
            .map(|(rank, piece)| if has_leaf[*piece as usize] { *rank } else { UNREACHED })
            .collect();
        if let Some((a, b)) = self.level_cable(&ranks) {
            return Err(format!(
                "{} and {} are both of rank {} and have a cable between them, which no tree has",
                self.name(a),
                self.name(b),
                ranks[a as usize],
            ));
        }
        // A leaf that has lost its cables up may hang lower than the others.
        let highest_leaf =
            (0..).zip(&ranks).filter(|(at, _)| is_leaf[*at as usize]).min_by_key(|(_, rank)| **rank);
        let lowest = (0..).zip(&ranks).filter(|(_, rank)| **rank != UNREACHED).max_by_key(|(_, rank)| **rank);
        let limits = [RANKS_MAX, RANKS_MAX + RANKS_BELOW_MAX];
        for ((at, rank), limit) in highest_leaf.into_iter().chain(lowest).zip(limits) {
            if *rank >= limit {
                let name = self.name(at);
                return Err(format!(
                    "{name} is of rank {rank}, and a fat-tree has {RANKS_MAX} ranks at most"
                ));
            }
        }
        Ok(())
    }
}
