//! A fabric as up/down routing sees it before it has roots, and the judgement of candidates.

use std::ops::AddAssign;

use rayon::prelude::*;
use weft_topology::{Fabric, Node, NodeIndex};

use crate::bfs::{BATCH, Search};
use crate::bits::ones;
use crate::management::ManagementNodes;
use crate::switches::SwitchGraph;

use super::search::{Orientation, UpDown};

/// The switches, their pieces, and where the hosts are.
#[derive(Debug)]
pub(super) struct Site<'a> {
    /// In the order of GUIDs, by which ties are broken.
    pub(super) graph: &'a SwitchGraph,
    /// How many hosts each switch has; 1 for each where its piece has none.
    pub(super) hosts: Vec<u64>,
    /// The piece of each switch.
    pub(super) piece_of: Vec<u32>,
    pub(super) pieces: usize,
    /// The switches with hosts.
    destinations: Vec<u32>,
}

/// What legal paths to all switches with hosts are like.
#[derive(Clone, Debug, Default)]
pub(super) struct Survey {
    /// By piece.
    pub(super) scores: Vec<Score>,
    /// By switch: how many hosts are below it.
    pub(super) below: Vec<u64>,
    /// By switch: to how many switches with hosts it has no legal path.
    pub(super) severed: Vec<u32>,
    /// By switch: the hops to all switches with hosts, each squared. They tell the middle from the rim.
    pub(super) moments: Vec<u64>,
}

/// How good the legal paths of a piece are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Score {
    /// From all hosts to all switches with hosts.
    hops: u64,
    /// From all switches to all switches with hosts.
    ways: u64,
    /// Pairs of switches without a path of which one has hosts; from those with hosts, and from those without.
    pub(super) severed: [u64; 2],
}

impl Score {
    /// Fewer hops and more ways to choose from, of which hops count twice; but a path for every pair before that.
    pub(super) fn is_better_than(self, other: Self) -> bool {
        let cost = |score: Self, ways: u64| u128::from(score.hops).pow(2) * u128::from(ways);
        (self.severed, cost(self, other.ways)) < (other.severed, cost(other, self.ways))
    }

    /// Whether some pair has no path.
    pub(super) fn is_severed(self) -> bool {
        self.severed != [0, 0]
    }
}

impl<'a> Site<'a> {
    pub(super) fn new(fabric: &Fabric, graph: &'a SwitchGraph, management: &ManagementNodes) -> Self {
        let mut hosts = vec![0; graph.len()];
        let is_host = |(index, node): &(NodeIndex, &Node)| !node.is_switch() && !management.contains(*index);
        for (_, node) in fabric.iter().filter(is_host) {
            for (_, peer) in node.cabled_ports() {
                if let Some(switch) = graph.number(peer.node) {
                    hosts[switch as usize] += 1;
                }
            }
        }
        let (piece_of, pieces) = pieces(graph);
        let mut in_piece = vec![0; pieces];
        for (piece, hosts) in piece_of.iter().zip(&hosts) {
            in_piece[*piece as usize] += hosts;
        }
        for (hosts, piece) in hosts.iter_mut().zip(&piece_of) {
            if in_piece[*piece as usize] == 0 {
                *hosts = 1;
            }
        }
        let destinations = graph.numbers().filter(|switch| hosts[*switch as usize] > 0).collect();
        Self { graph, hosts, piece_of, pieces, destinations }
    }

    /// Looks at the legal paths of an orientation.
    pub(super) fn survey(&self, orientation: &Orientation) -> Survey {
        let batches: Vec<&[u32]> = self.destinations.chunks(BATCH).collect();
        let empty = || Survey {
            scores: vec![Score::default(); self.pieces],
            below: vec![0; self.graph.len()],
            severed: vec![0; self.graph.len()],
            moments: vec![0; self.graph.len()],
        };
        let begin = || (UpDown::new(self.graph, orientation), empty());
        let surveys = batches.par_iter().fold(begin, |(mut search, mut survey), batch| {
            search.search(self.graph, batch);
            self.count(&search, batch, &mut survey);
            (search, survey)
        });
        surveys.map(|(_, survey)| survey).reduce(empty, Survey::and)
    }

    fn count(&self, search: &UpDown<'_>, batch: &[u32], survey: &mut Survey) {
        let mut wanted = vec![0u64; self.pieces];
        for (bit, destination) in batch.iter().enumerate() {
            wanted[self.piece_of[*destination as usize] as usize] |= 1 << bit;
        }
        let weigh = |bits: u64| ones(bits).map(|bit| self.hosts[batch[bit] as usize]).sum::<u64>();
        for switch in 0..self.graph.len() {
            let (hosts, piece) = (self.hosts[switch], self.piece_of[switch] as usize);
            let score = &mut survey.scores[piece];
            let leading = &search.leading()[self.graph.row(switch as u32)];
            score.hops += hosts * search.hops[switch];
            score.ways += leading.iter().map(|bits| u64::from(bits.count_ones())).sum::<u64>();
            survey.below[switch] += weigh(search.down[switch]);
            let severed = (wanted[piece] & !search.seen[switch]).count_ones();
            score.severed[usize::from(hosts == 0)] += u64::from(severed);
            survey.severed[switch] += severed;
        }
        for (hops, arrivals) in (0..).zip(search.steps()) {
            for (switch, bits) in arrivals {
                survey.moments[*switch as usize] += hops * hops * weigh(*bits);
            }
        }
    }
}

impl Survey {
    fn and(mut self, other: Self) -> Self {
        for (score, other) in self.scores.iter_mut().zip(other.scores) {
            score.hops += other.hops;
            score.ways += other.ways;
            add(&mut score.severed, &other.severed);
        }
        add(&mut self.below, &other.below);
        add(&mut self.moments, &other.moments);
        add(&mut self.severed, &other.severed);
        self
    }
}

fn add<T: Copy + AddAssign>(sums: &mut [T], others: &[T]) {
    for (sum, other) in sums.iter_mut().zip(others) {
        *sum += *other;
    }
}

/// The piece of each switch, and how many there are. Pieces are numbered by their first switches.
fn pieces(graph: &SwitchGraph) -> (Vec<u32>, usize) {
    let first_of = graph.pieces(|_| true);
    let mut firsts = first_of.clone();
    firsts.sort_unstable();
    firsts.dedup();
    let number = |first: &u32| firsts.partition_point(|other| other < first) as u32;
    (first_of.iter().map(number).collect(), firsts.len())
}
