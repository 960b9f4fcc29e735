//! Paths between hosts and switches without hosts that neither go up and then down nor turn at the one leaf of
//! `detours`. Only management packets take them, and each turns where no circle of waiting packets can close.

use weft_wire::Lid;

use super::detours::Detours;
use super::links::Links;
use super::plan::Plan;
use super::turns::{NO_TURN, Turns};
use crate::sorted;
use crate::switches::UNREACHED;
use crate::tables::ForwardingTable;
use crate::tree::Tree;
use crate::tree::detours::Detours as TurnByTurn;
use crate::tree::reach::{Link, NO_LINK, Shape};

/// A switch that sends to a LID of another.
pub(super) type Way = (u32, u32);

/// Completes the tables of all switches with the ways that are lacking. Returns those for which every turn could close
/// a circle; they stay without a route.
pub(super) fn mend(
    tree: &Tree,
    plan: &Plan,
    turns: &Turns,
    detours: &Detours,
    lacking: &[Way],
    tables: &mut [ForwardingTable],
) -> Vec<Way> {
    let mut mender = Mender::new(tree, turns, detours);
    let mut by_turn = TurnByTurn::with_taken(mender.turns_taken(plan, tables));
    let mut ways = lacking.to_vec();
    sorted::by_key(&mut ways, |(from, to)| (tree.tuples[*to as usize], tree.tuples[*from as usize]));
    let mut failed = Vec::new();
    for run in ways.chunk_by(|a, b| a.1 == b.1) {
        let to = run[0].1;
        for lid in tree.ends(to).iter().flat_map(|end| &end.lids) {
            mender.read(*lid, to, tables);
            by_turn.extend(tree, &mender.shape, &mender.hops, &mut mender.next);
            for at in (0..tree.graph.len() as u32).filter(|at| !mender.is_known(*at, to)) {
                if let Some(port) = tree.port(mender.next[at as usize]) {
                    tables[at as usize].set(*lid, port);
                }
            }
            failed.extend(run.iter().filter(|(from, _)| mender.next[*from as usize] == NO_LINK));
        }
    }
    failed.dedup();
    failed
}

struct Mender<'a> {
    tree: &'a Tree,
    turns: &'a Turns,
    detours: &'a Detours,
    shape: Shape,
    links: Links,
    /// By switch: the link towards the LID at hand, as far as hosts may use it, and how many follow.
    next: Vec<Link>,
    hops: Vec<u32>,
}

impl<'a> Mender<'a> {
    fn new(tree: &'a Tree, turns: &'a Turns, detours: &'a Detours) -> Self {
        Self {
            tree,
            turns,
            detours,
            shape: Shape::new(tree),
            links: Links::new(tree),
            next: Vec::new(),
            hops: Vec::new(),
        }
    }

    /// Whether a path goes up and then down, or makes a detour that is safe for hosts.
    fn is_known(&self, from: u32, to: u32) -> bool {
        self.turns.get(from, to) != NO_TURN || self.detours.for_hosts(from, to).is_some()
    }

    /// The turns upwards that packets of hosts take by these tables.
    fn turns_taken(&self, plan: &Plan, tables: &[ForwardingTable]) -> Vec<[u32; 3]> {
        let mut taken = Vec::new();
        for target in &plan.targets {
            for from in 0..self.tree.graph.len() as u32 {
                if self.turns.get(from, target.at) != NO_TURN || !self.is_known(from, target.at) {
                    continue;
                }
                let down = self.links.exit(from, target.lid, tables);
                if down == NO_LINK || !down.is_multiple_of(2) {
                    continue;
                }
                let at = self.shape.to(down);
                let up = self.links.exit(at, target.lid, tables);
                if up != NO_LINK && !up.is_multiple_of(2) {
                    taken.push([from, at, self.shape.to(up)]);
                }
            }
        }
        taken
    }

    /// Reads what leads to a LID on a switch.
    fn read(&mut self, lid: Lid, to: u32, tables: &[ForwardingTable]) {
        let count = self.tree.graph.len();
        self.next.clear();
        self.next.resize(count, NO_LINK);
        self.hops.clear();
        self.hops.resize(count, UNREACHED);
        self.hops[to as usize] = 0;
        let mut path = Vec::new();
        for start in 0..count as u32 {
            let mut at = start;
            while self.hops[at as usize] == UNREACHED && self.is_known(at, to) && path.len() < count {
                let link = self.links.exit(at, lid, tables);
                if link == NO_LINK {
                    break;
                }
                self.next[at as usize] = link;
                path.push(at);
                at = self.shape.to(link);
            }
            let mut hops = self.hops[at as usize];
            while let Some(before) = path.pop() {
                hops = hops.saturating_add(1);
                self.hops[before as usize] = hops;
            }
        }
    }
}
