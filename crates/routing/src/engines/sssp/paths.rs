//! Shortest paths that keep out of each other's way (Hoefler, Schneider, Lumsdaine: Optimized Routing for
//! Large-Scale InfiniBand Networks, 2009).

use rayon::prelude::*;
use weft_wire::{Lid, PortNum};

use super::network::{DestinationLid, Network};
use crate::tables::{ForwardingTable, Routes};

/// No way: the switch delivers, or nothing leads there.
pub(super) const NO_WAY: u32 = u32::MAX;

/// The same among a switch's own ways.
const NO_CHOICE: u8 = u8::MAX;

/// For how many switches the shortest ways are found at once, on all cores.
const AHEAD: usize = 64;

/// Up to how many choices, one for each target and switch, targets are routed more than once.
const SMALL: usize = 1 << 22;

/// How often they are routed then.
const ROUNDS: usize = 3;

/// How many switches' tables are filled at once: as many choices as a cache line holds.
const FILLED_AT_ONCE: usize = 64;

/// An order of all ways that paths had better keep to, and what it is worth.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bias<'a> {
    /// By way: its place.
    pub(super) ranks: &'a [u32],
    /// What a step back in the order costs, in sixteenths of the mean weight of a way, and one more; `None` where no
    /// weight makes up for it.
    pub(super) price: Option<u64>,
}

/// More than any path weighs: weights are below 2^32, and there are fewer switches than 2^16.
const BEYOND_WEIGHT: u64 = 1 << 48;

/// How often hosts are routed, one after the other.
pub(super) fn rounds(network: &Network) -> usize {
    if network.targets.len() * network.len() <= SMALL { ROUNDS } else { 1 }
}

/// How uneven the weights of ways are; the less, the better.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Unevenness {
    /// The sum of the squares of all weights.
    squares: u128,
    /// The greatest weight.
    heaviest: u32,
    /// Ways that no path takes.
    idle: u32,
}

impl Unevenness {
    fn of(weights: &[u32]) -> Self {
        let squares = weights.iter().map(|weight| u128::from(*weight).pow(2)).sum();
        let idle = weights.iter().filter(|weight| **weight == 0).count() as u32;
        Self { squares, heaviest: weights.iter().copied().max().unwrap_or(0), idle }
    }

    /// Whether it is less than another, or hardly more.
    pub(super) fn is_near(self, other: Self) -> bool {
        self.squares <= other.squares + other.squares / 128
            && self.heaviest <= other.heaviest + other.heaviest / 32
            && self.idle <= other.idle
    }
}

/// The paths from every switch to every target.
#[derive(Debug)]
pub(super) struct Paths {
    switches: usize,
    /// By target, then by switch: which of its ways, counted from the first, it sends by.
    choices: Vec<u8>,
    /// How uneven those to hosts are.
    pub(super) unevenness: Unevenness,
    /// The same after the first time that hosts were routed.
    pub(super) first_unevenness: Unevenness,
}

impl Paths {
    /// Routes targets one after the other, each by the paths of least weight among the shortest; then a way's weight
    /// grows by the number of hosts that send to that target through it. Among equals the lowest port is taken.
    ///
    /// Hosts come first, as their traffic is what balance is for. The first of them find no weights to avoid, so on small
    /// fabrics hosts are routed several times, each time without the weight of their own paths.
    ///
    /// With a bias, each step back in its order weighs as much as it says.
    pub(super) fn balanced(network: &Network, bias: Option<Bias<'_>>) -> Self {
        let switches = network.len();
        let mut choices = vec![NO_CHOICE; network.targets.len() * switches];
        let mut balance = Balance::new(network);
        let hosts = network.targets.partition_point(|target| target.port != PortNum::ZERO);
        let (of_hosts, own) = network.targets.split_at(hosts);
        let (rows, own_rows) = choices.split_at_mut(hosts * switches);
        balance.route(network, of_hosts, rows, bias, false);
        let first_unevenness = Unevenness::of(&balance.weights);
        for _ in 1..rounds(network) {
            balance.route(network, of_hosts, rows, bias, true);
        }
        let unevenness = Unevenness::of(&balance.weights);
        balance.route(network, own, own_rows, bias, false);
        Self { switches, choices, unevenness, first_unevenness }
    }

    /// The way by which `switch` sends to a target; [`NO_WAY`] where it delivers or nothing leads there.
    pub(super) fn way(&self, network: &Network, switch: u32, target: u32) -> u32 {
        match self.choices[target as usize * self.switches + switch as usize] {
            NO_CHOICE => NO_WAY,
            offset => network.graph.row(switch).start as u32 + u32::from(offset),
        }
    }

    /// Sends a target by another way of a switch.
    pub(super) fn set(&mut self, network: &Network, switch: u32, target: u32, way: u32) {
        let offset = way as usize - network.graph.row(switch).start;
        self.choices[target as usize * self.switches + switch as usize] = offset as u8;
    }

    /// The tables of these paths.
    pub(super) fn tables(&self, network: &Network, top: Lid) -> Routes {
        let mut tables = vec![ForwardingTable::new(top); self.switches];
        tables.par_chunks_mut(FILLED_AT_ONCE).enumerate().for_each(|(chunk, tables)| {
            let first = chunk * FILLED_AT_ONCE;
            for (target, row) in network.targets.iter().zip(self.choices.chunks(self.switches)) {
                for (switch, (table, choice)) in (first as u32..).zip(tables.iter_mut().zip(&row[first..])) {
                    let port = match *choice {
                        NO_CHOICE if switch == target.switch => target.port,
                        NO_CHOICE => PortNum::NONE,
                        offset => network.graph.ways(switch)[usize::from(offset)].port,
                    };
                    table.entries_mut()[usize::from(target.lid.0)] = port;
                }
            }
        });
        Routes { tables: network.graph.by_node(tables) }
    }
}

/// All shortest ways to a switch.
pub(super) struct Shortest {
    destination: u32,
    /// Who else can reach it, nearest first, with the end of its ways in `ways`.
    pub(super) switches: Vec<(u32, u32)>,
    /// The ways that lead a hop closer.
    ways: Vec<u32>,
}

impl Shortest {
    pub(super) fn to(network: &Network, destination: u32) -> Self {
        let (mut hops, mut queue) = (Vec::new(), Vec::new());
        network.graph.hops_to(destination, &mut hops, &mut queue);
        let (mut switches, mut ways) = (Vec::with_capacity(queue.len()), Vec::new());
        for switch in queue.into_iter().skip(1) {
            let closer = hops[switch as usize] - 1;
            let row = network.graph.row(switch).map(|way| way as u32);
            ways.extend(row.filter(|way| hops[network.to[*way as usize] as usize] == closer));
            switches.push((switch, ways.len() as u32));
        }
        Self { destination, switches, ways }
    }

    /// Each switch with its ways, nearest first.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u32, &[u32])> {
        let mut first = 0;
        self.switches.iter().map(move |(switch, end)| {
            let ways = &self.ways[first..*end as usize];
            first = *end as usize;
            (*switch, ways)
        })
    }
}

/// What has been routed so far, and room to work in.
struct Balance {
    /// By way: how many pairs of a host and a target it carries. There are fewer than 2^32.
    weights: Vec<u32>,
    /// The sum of the weights.
    total: u64,
    /// By switch: the weight of its path.
    costs: Vec<u64>,
    /// By switch: how many hosts send through it.
    senders: Vec<u32>,
    /// By switch: the way it takes.
    chosen: Vec<u32>,
}

impl Balance {
    fn new(network: &Network) -> Self {
        let switches = network.len();
        Self {
            weights: vec![0; network.to.len()],
            total: 0,
            costs: vec![0; switches],
            senders: vec![0; switches],
            chosen: vec![NO_WAY; switches],
        }
    }

    /// Routes targets, into their rows of choices; `again` where they have been routed before.
    fn route(
        &mut self,
        network: &Network,
        targets: &[DestinationLid],
        rows: &mut [u8],
        bias: Option<Bias<'_>>,
        again: bool,
    ) {
        let runs: Vec<_> = targets.chunk_by(|one, other| one.switch == other.switch).collect();
        let mut rows = rows.chunks_mut(network.len().max(1));
        for runs in runs.chunks(AHEAD) {
            let trees: Vec<Shortest> =
                runs.par_iter().map(|run| Shortest::to(network, run[0].switch)).collect();
            for (run, tree) in runs.iter().zip(&trees) {
                for row in rows.by_ref().take(run.len()) {
                    if again {
                        self.forget(network, tree, row);
                    }
                    match bias {
                        None => self.choose(network, tree, |_, _| 0),
                        Some(bias) => self.choose_in_order(network, tree, bias),
                    }
                    self.count(network, tree);
                    for &(switch, _) in &tree.switches {
                        let way = self.chosen[switch as usize] as usize;
                        row[switch as usize] = (way - network.graph.row(switch).start) as u8;
                    }
                }
            }
        }
    }

    /// Chooses every switch's way to one target; `extra` is what a way costs besides its weight where the given one
    /// follows it.
    fn choose(&mut self, network: &Network, tree: &Shortest, extra: impl Fn(u32, u32) -> u64) {
        self.costs[tree.destination as usize] = 0;
        self.chosen[tree.destination as usize] = NO_WAY;
        for (switch, ways) in tree.iter() {
            let (mut least, mut best) = (u64::MAX, NO_WAY);
            for &way in ways {
                let to = network.to[way as usize] as usize;
                let cost =
                    u64::from(self.weights[way as usize]) + self.costs[to] + extra(way, self.chosen[to]);
                if cost < least {
                    (least, best) = (cost, way);
                }
            }
            self.costs[switch as usize] = least;
            self.chosen[switch as usize] = best;
        }
    }

    fn choose_in_order(&mut self, network: &Network, tree: &Shortest, bias: Bias<'_>) {
        let mean = self.total / self.weights.len().max(1) as u64;
        let step = bias.price.map_or(BEYOND_WEIGHT, |price| mean * price / 16 + 1);
        self.choose(network, tree, |way, next| if back(bias.ranks, way, next) { step } else { 0 });
    }

    /// Takes the hosts that send to a target off the weights of the ways in its row of choices.
    fn forget(&mut self, network: &Network, tree: &Shortest, row: &[u8]) {
        self.senders.copy_from_slice(&network.hosts);
        for &(switch, _) in tree.switches.iter().rev() {
            let way = network.graph.row(switch).start + usize::from(row[switch as usize]);
            let senders = self.senders[switch as usize];
            self.weights[way] -= senders;
            self.total -= u64::from(senders);
            self.senders[network.to[way] as usize] += senders;
        }
    }

    /// Adds the hosts that send to a target to the weights of the chosen ways.
    fn count(&mut self, network: &Network, tree: &Shortest) {
        self.senders.copy_from_slice(&network.hosts);
        for &(switch, _) in tree.switches.iter().rev() {
            let (senders, way) = (self.senders[switch as usize], self.chosen[switch as usize] as usize);
            self.weights[way] += senders;
            self.total += u64::from(senders);
            self.senders[network.to[way] as usize] += senders;
        }
    }
}

/// Whether it is a step back in the order to take `next` after `way`.
pub(super) fn back(ranks: &[u32], way: u32, next: u32) -> bool {
    next != NO_WAY && ranks[next as usize] < ranks[way as usize]
}
