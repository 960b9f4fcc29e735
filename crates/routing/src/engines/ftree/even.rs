//! Even loads where cables are missing.
//!
//! Main paths give every destination one root, which is best on a whole tree. On a damaged one a switch with few cables to that root
//! has to send as much by them as others do by many, while its cables to other roots carry little, or nothing. So entries move, one at
//! a time, to other shortest paths up and down, as long as that lets fewer pairs of hosts share links with pairs of other destinations.

use std::collections::BTreeMap;

use weft_wire::Lid;

use super::links::{Links, down, up};
use super::plan::{LidTarget, Plan};
use super::turns::{NO_TURN, Turns};
use crate::tables::ForwardingTable;
use crate::tree::reach::{Link, NO_LINK, Shape};
use crate::tree::{End, Tree};

/// Most passes over all destinations; few entries move after the third.
const PASSES_MAX: usize = 4;

/// How much more than the mean of its rank and direction a link carries before entries leave it, as one in this many.
const HEAVY: u64 = 16;

/// Targets whose entries are looked up together: a table has the entries of one switch, and a target needs those of all.
const BLOCK: usize = 128;

/// Evens out the tables of a damaged tree; a whole one stays as it is, and so do targets of different weights.
pub(super) fn even_out(tree: &Tree, plan: &Plan, turns: &Turns, tables: &mut [ForwardingTable]) {
    if !plan.resets.is_empty() || !is_damaged(tree) {
        return;
    }
    let mut ends: BTreeMap<Lid, &End> = BTreeMap::new();
    for end in tree.ends.iter().filter(|end| end.kind.is_host()) {
        ends.extend(end.lids.iter().map(|lid| (*lid, end)));
    }
    let host = |target: &LidTarget| Some((target.lid, *ends.get(&target.lid)?));
    let targets: Vec<(Lid, &End)> = plan.targets.iter().filter_map(host).collect();
    let mut even = Even::new(tree, turns);
    for block in targets.chunks(BLOCK) {
        even.gather(block, tables);
        for (row, (_, end)) in block.iter().enumerate() {
            even.read(row, end);
            even.count();
        }
    }
    for _ in 0..PASSES_MAX {
        even.limit();
        let mut moved = false;
        for block in targets.chunks(BLOCK) {
            even.gather(block, tables);
            for (row, target) in block.iter().enumerate() {
                even.read(row, target.1);
                moved |= even.improve(target.0, target.1, tables);
            }
        }
        if !moved {
            break;
        }
    }
}

/// Whether switches of one rank differ in how their cables lead up.
pub(super) fn is_damaged(tree: &Tree) -> bool {
    let mut shapes: Vec<Option<Vec<usize>>> = vec![None; tree.rank_count()];
    (0..tree.graph.len() as u32).any(|at| {
        let mut shape: Vec<usize> = tree.up(at).map(|(_, group)| tree.cables(group).count()).collect();
        shape.sort_unstable();
        let known = shapes[tree.rank(at) as usize].get_or_insert_with(|| shape.clone());
        *known != shape
    })
}

struct Even<'a> {
    tree: &'a Tree,
    turns: &'a Turns,
    shape: Shape,
    links: Links,
    /// By switch: how many end ports of hosts send from there.
    senders: Vec<u64>,
    /// All switches, the farthest from the roots first.
    order: Vec<u32>,
    /// By link: how many pairs of hosts use it.
    loads: Vec<u64>,
    /// By link: the most that it may carry before entries leave it.
    limits: Vec<u64>,
    /// By target of a block, then by switch: the link towards the target.
    block: Vec<Link>,
    /// Of the target at hand: the switch that delivers it.
    at: u32,
    /// By switch: where a path to that one turns.
    turn: Vec<u8>,
    /// The switches from which only a detour leads there.
    detoured: Vec<u32>,
    /// By switch: the link towards the target.
    next: Vec<Link>,
    /// By switch: how many hosts send to the target through it.
    passing: Vec<u64>,
    /// By switch: whether a detour leads through it, so that its entry stays.
    pinned: Vec<bool>,
    /// By switch: what its path to the target meets; right while its stamp is the one of now.
    rests: Vec<Rest>,
    stamp: u64,
    /// By switch: where its links up and those down begin among the neighbours.
    neighbour_rows: Vec<[usize; 2]>,
    /// The switches that links lead to, with the links.
    neighbours: Vec<(u32, Link)>,
    /// Switches of a path.
    way: Vec<u32>,
}

/// What the path from a switch meets.
#[derive(Clone, Copy, Default)]
struct Rest {
    stamp: u64,
    /// How many pairs of other destinations are on its links, squared, so that a link that carries much counts more than two that carry
    /// half of it.
    met: u64,
    /// Whether one of them carries more than its limit.
    is_heavy: bool,
}

impl<'a> Even<'a> {
    fn new(tree: &'a Tree, turns: &'a Turns) -> Self {
        let shape = Shape::new(tree);
        let count = tree.graph.len();
        let (neighbour_rows, neighbours) = neighbours(tree);
        let hosts = |at| tree.ends(at).iter().filter(|end| end.kind.is_host()).count() as u64;
        Self {
            tree,
            turns,
            links: Links::new(tree),
            senders: (0..count as u32).map(hosts).collect(),
            order: shape.from_roots.iter().rev().copied().collect(),
            shape,
            loads: vec![0; 2 * tree.cables.len()],
            limits: Vec::new(),
            block: Vec::new(),
            at: u32::MAX,
            turn: vec![NO_TURN; count],
            detoured: Vec::new(),
            next: vec![NO_LINK; count],
            passing: vec![0; count],
            pinned: vec![false; count],
            rests: vec![Rest::default(); count],
            stamp: 0,
            neighbour_rows,
            neighbours,
            way: Vec::new(),
        }
    }

    /// Looks up the entries of all switches for a block of targets.
    fn gather(&mut self, targets: &[(Lid, &End)], tables: &[ForwardingTable]) {
        let count = self.next.len();
        self.block.resize(targets.len() * count, NO_LINK);
        for at in 0..count {
            for (row, (lid, _)) in targets.iter().enumerate() {
                self.block[row * count + at] = self.links.exit(at as u32, *lid, tables);
            }
        }
    }

    /// Makes a target of the block the one at hand.
    fn read(&mut self, row: usize, end: &End) {
        self.stamp += 1;
        let count = self.next.len();
        self.next.copy_from_slice(&self.block[row * count..(row + 1) * count]);
        if self.at != end.at {
            self.turn_to(end.at);
        }
        self.pinned.fill(false);
        if !self.flow() {
            self.walk_all();
        }
        for place in 0..self.detoured.len() {
            let mut at = self.detoured[place];
            for _ in 0..count {
                self.pinned[at as usize] = true;
                let link = self.next[at as usize];
                if at == self.at || link == NO_LINK {
                    break;
                }
                at = self.shape.to(link);
            }
        }
    }

    fn turn_to(&mut self, at: u32) {
        self.at = at;
        self.detoured.clear();
        for from in 0..self.turn.len() as u32 {
            let turn = self.turns.get(from, at);
            self.turn[from as usize] = turn;
            if from != at && turn == NO_TURN {
                self.detoured.push(from);
            }
        }
    }

    /// Finds how many hosts send through each switch, where all paths go up and then down: false if one does not.
    fn flow(&mut self) -> bool {
        self.passing.copy_from_slice(&self.senders);
        let is_up = |link: Link| !link.is_multiple_of(2);
        for from in &self.order {
            let link = self.next[*from as usize];
            if *from != self.at && link != NO_LINK && is_up(link) {
                self.passing[self.shape.to(link) as usize] += self.passing[*from as usize];
            }
        }
        for from in self.order.iter().rev() {
            let (link, pairs) = (self.next[*from as usize], self.passing[*from as usize]);
            if *from == self.at || link == NO_LINK || is_up(link) || pairs == 0 {
                continue;
            }
            let to = self.shape.to(link);
            let onwards = self.next[to as usize];
            if to != self.at && onwards != NO_LINK && is_up(onwards) {
                return false;
            }
            self.passing[to as usize] += pairs;
        }
        true
    }

    /// The same for any paths.
    fn walk_all(&mut self) {
        self.passing.fill(0);
        for from in 0..self.next.len() as u32 {
            let senders = self.senders[from as usize];
            let mut at = from;
            for _ in 0..self.next.len() {
                self.passing[at as usize] += senders;
                let link = self.next[at as usize];
                if senders == 0 || at == self.at || link == NO_LINK {
                    break;
                }
                at = self.shape.to(link);
            }
        }
    }

    /// Adds the target's pairs to the loads.
    fn count(&mut self) {
        for at in 0..self.next.len() {
            let link = self.next[at];
            if at as u32 != self.at && link != NO_LINK {
                self.loads[link as usize] += self.passing[at];
            }
        }
    }

    /// Finds the limits by the loads.
    fn limit(&mut self) {
        let mut sums = vec![[(0u64, 0u64); 2]; self.tree.rank_count()];
        for (link, load) in (0..).zip(&self.loads) {
            let (rank, way) = self.class(link);
            let (sum, count) = &mut sums[rank][way];
            (*sum, *count) = (*sum + load, *count + 1);
        }
        let limit = |(sum, count): (u64, u64)| sum * (HEAVY + 1) / (HEAVY * count.max(1));
        let limits: Vec<[u64; 2]> = sums.into_iter().map(|both| both.map(limit)).collect();
        let of_link = |link| {
            let (rank, way) = self.class(link);
            limits[rank][way]
        };
        self.limits = (0..self.loads.len() as Link).map(of_link).collect();
    }

    /// The rank of a link's upper switch, and whether the link leads up.
    fn class(&self, link: Link) -> (usize, usize) {
        let (_, upper) = self.shape.ends[(link / 2) as usize];
        (self.tree.rank(upper) as usize, usize::from(!link.is_multiple_of(2)))
    }

    /// What the path from a switch to the target meets.
    fn rest(&mut self, from: u32) -> Rest {
        let mut at = from;
        let mut rest = loop {
            let (link, known) = (self.next[at as usize], self.rests[at as usize]);
            if at == self.at || link == NO_LINK {
                break Rest { stamp: self.stamp, ..Rest::default() };
            }
            if known.stamp == self.stamp {
                break known;
            }
            self.way.push(at);
            at = self.shape.to(link);
        };
        while let Some(at) = self.way.pop() {
            let link = self.next[at as usize] as usize;
            rest.met += (self.loads[link] - self.passing[at as usize]).pow(2);
            rest.is_heavy |= self.loads[link] > self.limits[link];
            self.rests[at as usize] = rest;
        }
        rest
    }

    /// Moves entries for the target as long as that is better. Returns whether any moved.
    fn improve(&mut self, lid: Lid, end: &End, tables: &mut [ForwardingTable]) -> bool {
        let mut moved = false;
        for place in 0..self.order.len() {
            let from = self.order[place];
            let senders = self.passing[from as usize];
            if from == self.at || senders == 0 || self.pinned[from as usize] || !self.rest(from).is_heavy {
                continue;
            }
            let Some(link) = self.better(from, lid, end, tables) else { continue };
            self.shift(from, senders, false);
            self.next[from as usize] = link;
            self.shift(from, senders, true);
            if let Some(port) = self.tree.port(link) {
                tables[from as usize].set(lid, port);
            }
            moved = true;
        }
        moved
    }

    /// Puts pairs onto the path from a switch, or takes them off. The switch itself passes them on either way.
    fn shift(&mut self, from: u32, pairs: u64, onto: bool) {
        self.stamp += 1;
        let change =
            |value: &mut u64| *value = if onto { *value + pairs } else { value.saturating_sub(pairs) };
        let mut at = from;
        while at != self.at && self.next[at as usize] != NO_LINK {
            let link = self.next[at as usize];
            change(&mut self.loads[link as usize]);
            at = self.shape.to(link);
            change(&mut self.passing[at as usize]);
        }
    }

    /// The link by which the pairs of a switch meet fewer of other destinations than by its own, if there is one.
    fn better(&mut self, from: u32, lid: Lid, end: &End, tables: &[ForwardingTable]) -> Option<Link> {
        let own = self.next[from as usize];
        let mut best = (self.rest(from).met, own);
        let most = self.siblings(from, own, lid, end, tables);
        let turn = self.turn[from as usize];
        let is_above = turn == self.tree.rank(from) as u8 + 1;
        // A shortest path goes up to where it turns, and then down to where it has turned already.
        let ([ups, downs], row_end) =
            (self.neighbour_rows[from as usize], self.neighbour_rows[from as usize + 1][0]);
        let (row, wanted) = if is_above { (downs..row_end, turn + 1) } else { (ups..downs, turn) };
        for place in row {
            let (to, link) = self.neighbours[place];
            if link == own || self.turn[to as usize] != wanted {
                continue;
            }
            let first = self.loads[link as usize].pow(2);
            if first >= best.0 {
                continue;
            }
            let met = first + self.rest(to).met;
            if met < best.0 && self.siblings(from, link, lid, end, tables) <= most {
                best = (met, link);
            }
        }
        (best.1 != own).then_some(best.1)
    }

    /// How many other LIDs of the same end port a switch sends by a link.
    fn siblings(&self, from: u32, link: Link, lid: Lid, end: &End, tables: &[ForwardingTable]) -> usize {
        let others = end.lids.iter().filter(|other| **other != lid);
        others.filter(|other| self.links.exit(from, **other, tables) == link).count()
    }
}

/// The switches that links lead to, by switch: those up and then those down; and where each begins.
fn neighbours(tree: &Tree) -> (Vec<[usize; 2]>, Vec<(u32, Link)>) {
    let (mut rows, mut all) = (Vec::new(), Vec::new());
    for at in 0..tree.graph.len() as u32 {
        let ups = all.len();
        for (_, group) in tree.up(at) {
            all.extend(tree.cables(group).map(|(cable, _)| (group.upper, up(cable))));
        }
        rows.push([ups, all.len()]);
        for (_, group) in tree.down(at) {
            all.extend(tree.cables(group).map(|(cable, _)| (group.lower, down(cable))));
        }
    }
    rows.push([all.len(); 2]);
    (rows, all)
}
