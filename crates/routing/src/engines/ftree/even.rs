//! Even loads where cables are missing.
//!
//! Main paths give every destination one root, which is best on a whole tree. On a damaged one a switch with few cables to that root
//! has to send as much by them as others do by many, while its cables to other roots carry little, or nothing. So entries move, one at
//! a time, to other shortest paths up and down, as long as that lets fewer pairs of hosts share links with pairs of other destinations.

use std::collections::BTreeMap;

use weft_wire::Lid;

use super::links::{Links, down, port, up};
use super::plan::{LidTarget, Plan};
use super::turns::{NO_TURN, Turns};
use crate::tables::ForwardingTable;
use crate::tree::reach::{Link, NO_LINK, Shape};
use crate::tree::{End, Tree};

/// Most passes over all destinations; few entries move after the third.
const PASSES_MAX: usize = 4;

/// How much more than the mean of its rank and direction a link carries before entries leave it, as one in this many.
const HEAVY: u64 = 16;

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
    for target in &targets {
        even.read(*target, tables);
        even.count();
    }
    for _ in 0..PASSES_MAX {
        even.limit();
        let mut moved = false;
        for target in &targets {
            even.read(*target, tables);
            moved |= even.improve(*target, tables);
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
    /// By rank, for the ways up and down from its upper switches: the most that a link may carry before entries leave it.
    limits: Vec<[u64; 2]>,
    /// Of the target at hand: the switch that delivers it.
    at: u32,
    /// By switch: the link towards the target.
    next: Vec<Link>,
    /// By switch: how many hosts send to the target through it.
    passing: Vec<u64>,
    /// By switch: whether a detour leads through it, so that its entry stays.
    pinned: Vec<bool>,
}

impl<'a> Even<'a> {
    fn new(tree: &'a Tree, turns: &'a Turns) -> Self {
        let shape = Shape::new(tree);
        let count = tree.graph.len();
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
            at: 0,
            next: vec![NO_LINK; count],
            passing: vec![0; count],
            pinned: vec![false; count],
        }
    }

    /// Makes a target the one at hand.
    fn read(&mut self, (lid, end): (Lid, &End), tables: &[ForwardingTable]) {
        self.at = end.at;
        self.passing.fill(0);
        self.pinned.fill(false);
        for at in 0..self.next.len() as u32 {
            self.next[at as usize] = self.links.exit(at, lid, tables);
        }
        for at in 0..self.next.len() as u32 {
            let detoured = at != self.at && self.turns.get(at, self.at) == NO_TURN;
            let senders = self.senders[at as usize];
            if senders == 0 && !detoured {
                continue;
            }
            let mut place = at;
            for _ in 0..self.next.len() {
                self.passing[place as usize] += senders;
                self.pinned[place as usize] |= detoured;
                let link = self.next[place as usize];
                if place == self.at || link == NO_LINK {
                    break;
                }
                place = self.shape.to(link);
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
        self.limits = sums.into_iter().map(|both| both.map(limit)).collect();
    }

    /// The rank of a link's upper switch, and whether the link leads up.
    fn class(&self, link: Link) -> (usize, usize) {
        let (_, upper) = self.shape.ends[(link / 2) as usize];
        (self.tree.rank(upper) as usize, usize::from(!link.is_multiple_of(2)))
    }

    /// Whether some link on the way from a switch to the target carries more than its limit.
    fn is_heavy(&self, from: u32) -> bool {
        let mut at = from;
        while at != self.at && self.next[at as usize] != NO_LINK {
            let link = self.next[at as usize];
            let (rank, way) = self.class(link);
            if self.loads[link as usize] > self.limits[rank][way] {
                return true;
            }
            at = self.shape.to(link);
        }
        false
    }

    /// Moves entries for the target as long as that is better. Returns whether any moved.
    fn improve(&mut self, target: (Lid, &End), tables: &mut [ForwardingTable]) -> bool {
        let mut moved = false;
        for place in 0..self.order.len() {
            let from = self.order[place];
            let senders = self.passing[from as usize];
            if from == self.at || senders == 0 || self.pinned[from as usize] || !self.is_heavy(from) {
                continue;
            }
            let Some(link) = self.better(from, target, tables) else { continue };
            self.shift(from, senders, false);
            self.next[from as usize] = link;
            self.shift(from, senders, true);
            if let Some(port) = port(self.tree, link) {
                tables[from as usize].set(target.0, port);
            }
            moved = true;
        }
        moved
    }

    /// Puts pairs onto the path from a switch, or takes them off. The switch itself passes them on either way.
    fn shift(&mut self, from: u32, pairs: u64, onto: bool) {
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
    fn better(&self, from: u32, target: (Lid, &End), tables: &[ForwardingTable]) -> Option<Link> {
        let own = self.next[from as usize];
        let mut best = (self.met(own), own);
        let siblings = |link| self.siblings(from, link, target, tables);
        let most = siblings(own);
        for link in self.ways(from).filter(|link| *link != own) {
            let met = self.met(link);
            if met < best.0 && siblings(link) <= most {
                best = (met, link);
            }
        }
        (best.1 != own).then_some(best.1)
    }

    /// The links of shortest paths up and down from a switch to the target.
    fn ways(&self, from: u32) -> impl Iterator<Item = Link> {
        let turn = self.turns.get(from, self.at);
        let is_above = turn == self.tree.rank(from) as u8 + 1;
        let ups = self
            .tree
            .up(from)
            .filter(move |(_, group)| !is_above && self.turns.get(group.upper, self.at) == turn);
        let is_next = move |lower: u32| self.turns.get(lower, self.at) == turn + 1;
        let downs = self.tree.down(from).filter(move |(_, group)| is_above && is_next(group.lower));
        let ups = ups.flat_map(|(_, group)| self.tree.cables(group).map(|(cable, _)| up(cable)));
        ups.chain(downs.flat_map(|(_, group)| self.tree.cables(group).map(|(cable, _)| down(cable))))
    }

    /// How many pairs of other destinations are on the links of the path that begins with one, squared, so that a link that carries
    /// much counts more than two that carry half of it.
    fn met(&self, first: Link) -> u64 {
        let (mut met, mut link) = (0, first);
        loop {
            let from = self.shape.to(link ^ 1) as usize;
            let own = if self.next[from] == link { self.passing[from] } else { 0 };
            met += (self.loads[link as usize] - own).pow(2);
            let at = self.shape.to(link);
            link = self.next[at as usize];
            if at == self.at || link == NO_LINK {
                return met;
            }
        }
    }

    /// How many other LIDs of the same end port a switch sends by a link.
    fn siblings(&self, from: u32, link: Link, (lid, end): (Lid, &End), tables: &[ForwardingTable]) -> usize {
        let others = end.lids.iter().filter(|other| **other != lid);
        others.filter(|other| self.links.exit(from, **other, tables) == link).count()
    }
}
