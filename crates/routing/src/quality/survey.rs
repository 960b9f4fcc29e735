//! Every pair at once: how evenly the links between switches are used.

use std::collections::BTreeSet;
use std::fmt;

use rayon::prelude::*;
use serde::Serialize;
use weft_wire::Lid;

use crate::routing::Ranks;
use crate::sorted;
use crate::switches::UNREACHED;

use super::participants::endpoints;
use super::paths::{CONVOY, Endpoint, Paths, Start};
use super::summary::Summary;
use super::{UNREACHED_MAX, UnknownLid, Unreached};

/// What all pairs of some senders and receivers use.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Survey {
    /// How many pairs arrive.
    pub pairs: u64,
    /// How many do not.
    pub failures: u64,
    /// The first few of those, by receiver.
    pub unreached: Vec<Unreached>,
    /// By number of cables between switches: how many pairs take that many.
    pub hops: Vec<u64>,
    /// How many pairs take more cables than the least possible.
    pub detours: u64,
    /// By link, for links between switches: how many pairs use it.
    flows: Vec<u64>,
    /// By link, for links between switches: how many receivers are reached by it.
    routes: Vec<u32>,
}

/// Follows every pair of a sender and a receiver, but for those behind one end port, in the current rayon pool. The
/// cost is that of the receivers times the switches, however many senders there are.
///
/// # Errors
///
/// When a sender or receiver has a LID that no one has.
pub fn survey(paths: &Paths<'_>, senders: &[Lid], receivers: &[Lid]) -> Result<Survey, UnknownLid> {
    let senders = endpoints(paths, senders)?;
    let receivers = endpoints(paths, receivers)?.into_iter().map(|to| Receiver { to, weight: 1 });
    Ok(follow(paths, &senders, receivers.collect()).finish(paths))
}

/// By link, for links between switches: the sum over all pairs that use it of the receiver's weight.
pub(super) fn weighted_flows(paths: &Paths<'_>, senders: &[Endpoint], receivers: Vec<Receiver>) -> Vec<u64> {
    follow(paths, senders, receivers).flows
}

/// A receiver, and how much a pair with it counts on a link.
#[derive(Clone, Copy, Debug)]
pub(super) struct Receiver {
    pub(super) to: Endpoint,
    pub(super) weight: u64,
}

fn follow(paths: &Paths<'_>, senders: &[Endpoint], mut receivers: Vec<Receiver>) -> Found {
    let switch_of = |receiver: &Receiver| {
        let owner = paths.lids.owner(paths.lid(receiver.to))?;
        paths.graph.attachment(paths.fabric, owner).map(|(switch, _)| switch)
    };
    sorted::by_key(&mut receivers, |receiver| (switch_of(receiver), receiver.to));
    let groups: Vec<_> = receivers.chunk_by(|a, b| switch_of(a) == switch_of(b)).collect();
    let entries = Entries::new(paths, senders);
    groups
        .par_iter()
        .fold(
            || Follower::new(paths, &entries),
            |mut follower, group| {
                follower.group(switch_of(&group[0]), group);
                follower
            },
        )
        .map(|follower| follower.found)
        .reduce(|| Found::new(paths), Found::merge)
}

/// Where senders enter the switches.
struct Entries {
    /// By switch, those who enter there.
    by_switch: Vec<Vec<Endpoint>>,
    /// Those who enter at none: without a cable, or cabled to another host.
    outside: Vec<Endpoint>,
}

impl Entries {
    fn new(paths: &Paths<'_>, senders: &[Endpoint]) -> Self {
        let mut by_switch = vec![Vec::new(); paths.graph.len()];
        let mut outside = Vec::new();
        for sender in senders {
            let switch = match paths.start(*sender) {
                Start::Switch(switch) => Some(switch),
                Start::Link(link) => paths.switch_at(paths.place(link)),
                Start::Nowhere => None,
            };
            match switch {
                Some(switch) => by_switch[switch as usize].push(*sender),
                None => outside.push(*sender),
            }
        }
        Self { by_switch, outside }
    }
}

/// What some receivers add to a survey; whole numbers, so that their order does not matter.
#[derive(Clone, Default)]
struct Found {
    flows: Vec<u64>,
    routes: Vec<u32>,
    hops: Vec<u64>,
    detours: u64,
    failures: u64,
    unreached: Vec<(Endpoint, Endpoint)>,
}

impl Found {
    fn new(paths: &Paths<'_>) -> Self {
        let count = paths.link_count();
        Self { flows: vec![0; count], routes: vec![0; count], ..Self::default() }
    }

    fn arrive(&mut self, hops: u32, pairs: u64) {
        let hops = hops as usize;
        if self.hops.len() <= hops {
            self.hops.resize(hops + 1, 0);
        }
        self.hops[hops] += pairs;
    }

    fn fail(&mut self, from: Endpoint, to: Endpoint) {
        self.failures += 1;
        if self.unreached.len() < UNREACHED_MAX {
            self.unreached.push((from, to));
        }
    }

    fn merge(mut self, later: Self) -> Self {
        for (total, more) in self.flows.iter_mut().zip(&later.flows) {
            *total += more;
        }
        for (total, more) in self.routes.iter_mut().zip(&later.routes) {
            *total += more;
        }
        for (hops, pairs) in (0..).zip(&later.hops) {
            self.arrive(hops, *pairs);
        }
        self.detours += later.detours;
        self.failures += later.failures;
        self.unreached.extend(later.unreached);
        self.unreached.truncate(UNREACHED_MAX);
        self
    }

    fn finish(self, paths: &Paths<'_>) -> Survey {
        Survey {
            pairs: self.hops.iter().sum(),
            failures: self.failures,
            unreached: self.unreached.iter().filter_map(|(a, b)| Unreached::new(paths, *a, *b)).collect(),
            hops: self.hops,
            detours: self.detours,
            flows: self.flows,
            routes: self.routes,
        }
    }
}

/// Follows all senders to one receiver after the other: what switches send on is added up from the outermost inwards.
struct Follower<'s, 'a> {
    paths: &'s Paths<'a>,
    entries: &'s Entries,
    found: Found,
    /// The least hops from every switch to the receiver's.
    least: Vec<u32>,
    /// How many switches send to each.
    before: Vec<u32>,
    /// The switches, each after all that send to it; those of a loop are not there.
    order: Vec<u32>,
    /// The cables between switches from each to the receiver; [`UNREACHED`] for those from which it is not reached.
    hops: Vec<u32>,
    /// How many pairs pass each switch.
    passing: Vec<u64>,
    trails: [Vec<u32>; CONVOY],
}

impl<'s, 'a> Follower<'s, 'a> {
    fn new(paths: &'s Paths<'a>, entries: &'s Entries) -> Self {
        Self {
            paths,
            entries,
            found: Found::new(paths),
            least: Vec::new(),
            before: Vec::new(),
            order: Vec::new(),
            hops: Vec::new(),
            passing: Vec::new(),
            trails: Default::default(),
        }
    }

    /// Follows all senders to receivers on one switch; on none where `switch` is `None`.
    fn group(&mut self, switch: Option<u32>, receivers: &[Receiver]) {
        if let Some(switch) = switch {
            self.paths.graph.hops_to(switch, &mut self.least, &mut self.order);
        }
        for Receiver { to, weight } in receivers {
            for from in &self.entries.outside {
                self.follow_alone(*from, *to);
            }
            match switch {
                Some(_) => self.follow(*to, *weight),
                None => {
                    for from in self.entries.by_switch.iter().flatten() {
                        self.follow_alone(*from, *to);
                    }
                }
            }
        }
    }

    /// A pair that no switch is between at one end.
    fn follow_alone(&mut self, from: Endpoint, to: Endpoint) {
        if from == to || self.paths.same_port(from, to) {
            return;
        }
        if self.paths.walk(&[(from, to)], &mut self.trails) == 1 {
            self.found.arrive(0, 1);
        } else {
            self.found.fail(from, to);
        }
    }

    fn follow(&mut self, to: Endpoint, weight: u64) {
        self.put_in_order(to);
        let (paths, target) = (self.paths, self.paths.target(to));
        self.hops.clear();
        self.hops.resize(paths.graph.len(), UNREACHED);
        for switch in self.order.iter().rev() {
            let place = paths.step(*switch, to).place;
            self.hops[*switch as usize] = match paths.switch_at(place) {
                _ if place == target => 0,
                Some(next) => self.hops[next as usize].saturating_add(1),
                None => UNREACHED,
            };
        }
        self.passing.clear();
        self.passing.resize(paths.graph.len(), 0);
        for (switch, senders) in self.entries.by_switch.iter().enumerate() {
            if senders.is_empty() {
                continue;
            }
            let others = senders.iter().filter(|from| !paths.same_port(**from, to));
            if self.hops[switch] == UNREACHED {
                others.for_each(|from| self.found.fail(*from, to));
                continue;
            }
            let pairs = others.count() as u64;
            self.passing[switch] = pairs;
            self.found.arrive(self.hops[switch], pairs);
            if self.hops[switch] > self.least[switch] {
                self.found.detours += pairs;
            }
        }
        for switch in &self.order {
            let pairs = self.passing[*switch as usize];
            if pairs == 0 {
                continue;
            }
            let step = paths.step(*switch, to);
            if let Some(next) = paths.switch_at(step.place) {
                self.passing[next as usize] += pairs;
                self.found.flows[step.link as usize] += pairs * weight;
                self.found.routes[step.link as usize] += 1;
            }
        }
    }

    fn put_in_order(&mut self, to: Endpoint) {
        let (paths, switches) = (self.paths, self.paths.graph.len() as u32);
        self.before.clear();
        self.before.resize(switches as usize, 0);
        for switch in 0..switches {
            if let Some(next) = paths.switch_at(paths.step(switch, to).place) {
                self.before[next as usize] += 1;
            }
        }
        self.order.clear();
        self.order.extend((0..switches).filter(|switch| self.before[*switch as usize] == 0));
        let mut done = 0;
        while let Some(switch) = self.order.get(done).copied() {
            done += 1;
            if let Some(next) = paths.switch_at(paths.step(switch, to).place) {
                self.before[next as usize] -= 1;
                if self.before[next as usize] == 0 {
                    self.order.push(next);
                }
            }
        }
    }
}

/// Which way a link between switches leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    Up,
    Down,
    Level,
}

/// Which links of a fabric lead up and which down.
#[derive(Clone, Debug)]
pub struct Directions {
    /// By link; `None` for those that do not connect switches.
    links: Vec<Option<Direction>>,
}

impl Directions {
    /// By the ranks that an engine found; without them, a switch is the higher the more cables it is away from the
    /// nearest switch with a host, which is right in trees.
    pub fn new(paths: &Paths<'_>, ranks: Option<&Ranks>) -> Self {
        let heights = heights(paths);
        let depth = |switch: u32| {
            let rank = ranks.and_then(|ranks| ranks.of(paths.graph.nodes[switch as usize]));
            match (ranks, heights[switch as usize]) {
                (Some(_), _) => rank.map(i64::from),
                (None, UNREACHED) => None,
                (None, height) => Some(-i64::from(height)),
            }
        };
        let direction = |link: u32| {
            let (from, to) = paths.between_switches(link)?;
            let (from, to) = (depth(paths.graph.number(from)?), depth(paths.graph.number(to)?));
            Some(match from.cmp(&to) {
                std::cmp::Ordering::Greater => Direction::Up,
                std::cmp::Ordering::Less => Direction::Down,
                std::cmp::Ordering::Equal => Direction::Level,
            })
        };
        Self { links: (0..paths.link_count() as u32).map(direction).collect() }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = Option<Direction>> + Clone + '_ {
        self.links.iter().copied()
    }
}

/// By switch, the cables to the nearest switch that a host is on.
fn heights(paths: &Paths<'_>) -> Vec<u32> {
    let Paths { graph, fabric, lids, .. } = paths;
    let hosts = lids.iter().filter(|lids| !fabric.node(lids.port.node).is_switch());
    let leaves: BTreeSet<u32> =
        hosts.filter_map(|lids| Some(graph.attachment(fabric, lids.port)?.0)).collect();
    graph.hops_from(&Vec::from_iter(leaves), |_| true)
}

/// How much links between switches carry: all of them, those that lead up, and those that lead down. Links that carry
/// nothing are counted with 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct LinkLoad {
    /// All.
    pub all: Summary,
    /// Those towards the roots.
    pub up: Summary,
    /// Those towards the hosts.
    pub down: Summary,
}

/// How evenly links between switches are used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Balance {
    /// How many pairs use a link.
    pub flows: LinkLoad,
    /// How many receivers are reached by a link: the entries of the switch's table for it that anyone uses.
    pub routes: LinkLoad,
}

impl Survey {
    /// The mean number of cables between switches.
    pub fn hops_mean(&self) -> f64 {
        let cables: u64 = (0..).zip(&self.hops).map(|(hops, pairs): (u64, _)| hops * pairs).sum();
        cables as f64 / self.pairs.max(1) as f64
    }

    /// The greatest number of cables between switches.
    pub fn hops_max(&self) -> usize {
        self.hops.len().saturating_sub(1)
    }

    /// How evenly links are used.
    pub fn balance(&self, directions: &Directions) -> Balance {
        let flows: Vec<f64> = self.flows.iter().map(|flows| *flows as f64).collect();
        let routes: Vec<f64> = self.routes.iter().map(|routes| f64::from(*routes)).collect();
        Balance { flows: load(&flows, directions), routes: load(&routes, directions) }
    }

    /// By link, how many pairs use it.
    pub(crate) fn flows(&self) -> &[u64] {
        &self.flows
    }

    /// By link, how many receivers are reached by it.
    pub(crate) fn routes(&self) -> &[u32] {
        &self.routes
    }
}

fn load(values: &[f64], directions: &Directions) -> LinkLoad {
    let those = |wanted: fn(Direction) -> bool| {
        let links = values.iter().zip(directions.iter());
        Summary::of(links.filter(move |(_, way)| way.is_some_and(wanted)).map(|(value, _)| *value))
    };
    LinkLoad {
        all: those(|_| true),
        up: those(|way| way == Direction::Up),
        down: those(|way| way == Direction::Down),
    }
}

impl fmt::Display for LinkLoad {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { all, up, down } = self;
        write!(f, "links {}: {all}\nup {}: {up}\ndown {}: {down}", all.count, up.count, down.count)
    }
}
