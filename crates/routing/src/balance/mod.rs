//! LIDs spread evenly over the ways that lead to their switches.

mod candidates;
mod destination;
mod layers;
mod loads;
mod plan;

use std::sync::atomic::{AtomicU16, Ordering};

use rayon::prelude::*;
use weft_topology::Fabric;
use weft_wire::PortNum;

use crate::bfs::{BATCH, Search};
use crate::bits::ones;
use crate::lids::Lids;
use crate::management::ManagementNodes;
use crate::switches::{SwitchGraph, Way};
use crate::tables::{ForwardingTable, Routes};

use candidates::{Candidates, take};
use layers::Layers;
use loads::{Leading, Loads};
use plan::{Batch, Plan};

/// Batches of destinations that are searched for before their LIDs are assigned. This bounds the memory.
const BATCHES_HELD: usize = 16;

/// From how many switches on a layer is worth more than one thread.
const SHARED: usize = 64;

/// Routes every LID by the ways that searches find, and evenly. A switch sends each LID by the port that carries the
/// fewest pairs of a sending host and a LID so far, among those of its ways there; among equals by the first in an
/// order that depends on the LID. The LIDs of one end port (LMC) go to different neighbours and by different ports
/// before any of that.
///
/// Destinations are routed from the outside inwards: a switch that hosts do not reach for a LID does not count that
/// LID. So what comes together at a switch is spread over all its parallel cables, whatever the switches before it
/// chose by.
///
/// The order that decides between equals takes neighbours in turn, then their parallel cables in turn. It begins with
/// the digit of the LID's number that belongs to the switch, in a mixed radix: see [`Plan::strides`]. So all switches
/// alike send a LID the same way, and in a tree every host gets a root of its own, as long as there are enough.
///
/// That is not enough where switches with hosts pass on what others send: how much comes later is not known yet when
/// a switch chooses. There the LIDs of hosts are routed twice, and each is taken out and chosen for again while all
/// others are known.
///
/// Those switches are served first that have most hosts, among equals that with the host of the lowest LID, each with
/// all its hosts at once; then come the LIDs of the switches themselves and of nodes that serve management alone. So the tables are a function of ways and LIDs,
/// and neither the order of the nodes in memory nor the number of threads matters. What no way leads to has no route.
pub(crate) fn balance<S: Search>(
    fabric: &Fabric,
    lids: &Lids,
    graph: &SwitchGraph,
    management: &ManagementNodes,
    search: impl Fn() -> S,
) -> Routes {
    let plan = Plan::new(fabric, lids, graph, management);
    let [of_hosts, of_switches] = plan.batches();
    let held = of_hosts.len().max(of_switches.len()).min(BATCHES_HELD);
    // One after the other, so that what is looked at in turn is close together, and not between the tables.
    let loads: Vec<Loads> = (0..graph.len() as u32).map(|at| Loads::new(graph, at)).collect();
    let switches = loads.into_par_iter().map(|loads| Switch {
        table: ForwardingTable::new(lids.top()),
        loads,
        row: Vec::new(),
        ways: Vec::new(),
        passes_hosts: false,
    });
    let mut balance = Balance {
        graph,
        plan: &plan,
        searches: (0..held).map(|_| (search(), Layers::default())).collect(),
        switches: switches.collect(),
        arrivals: Arrivals::default(),
        earlier: None,
    };
    balance.route(&of_hosts);
    if balance.switches.iter().any(|switch| switch.passes_hosts) {
        balance.earlier = Some(Arrivals::default());
        balance.route(&of_hosts);
        balance.earlier = None;
    }
    balance.route(&of_switches);
    Routes { tables: graph.by_node(balance.switches.into_iter().map(|switch| switch.table)) }
}

/// A fabric that is being routed.
struct Balance<'a, S> {
    graph: &'a SwitchGraph,
    plan: &'a Plan,
    searches: Vec<(S, Layers)>,
    switches: Vec<Switch>,
    arrivals: Arrivals,
    /// What arrived by the tables that there are, where LIDs are routed again.
    earlier: Option<Arrivals>,
}

/// What is kept for a switch.
struct Switch {
    table: ForwardingTable,
    loads: Loads,
    /// By LID of the batch at hand: by which port it is sent. A switch has its turn many times in a batch, and tables are
    /// far apart.
    row: Vec<PortNum>,
    /// Of the batch at hand, by 64 ways, then by destination: which of them lead there. Empty where they are few.
    ways: Vec<[u64; BATCH]>,
    /// Whether it has hosts and others send by it.
    passes_hosts: bool,
}

impl<S: Search> Balance<'_, S> {
    fn route(&mut self, batches: &[Batch<'_>]) {
        let graph = self.graph;
        for held in batches.chunks(BATCHES_HELD) {
            self.searches.par_iter_mut().zip(held).for_each(|((search, layers), batch)| {
                search.search(graph, &batch.switches());
                layers.find(graph, search.leading(), &batch.switches());
            });
            for ((search, layers), batch) in self.searches.iter().zip(held) {
                self.arrivals.fit(graph.len(), batch.width);
                self.earlier.iter_mut().for_each(|earlier| earlier.fit(graph.len(), batch.width));
                let is_first = self.earlier.is_none();
                let numbered = (0..graph.len() as u32).into_par_iter().zip(&mut self.switches);
                numbered.for_each(|(at, switch)| {
                    let leading = &search.leading()[graph.row(at)];
                    if !Leading::are_few(graph.ways(at)) {
                        search.ways_of(graph, at, &mut switch.ways);
                    }
                    switch.row.clear();
                    switch.row.resize(batch.width, PortNum::NONE);
                    if is_first {
                        switch.loads.expect(leading, batch.destinations, self.plan.hosts[at as usize]);
                    } else {
                        batch.read(switch.table.entries_mut(), &mut switch.row);
                    }
                });
                let (arrivals, earlier) = (&self.arrivals, self.earlier.as_ref());
                let site =
                    Site { graph, plan: self.plan, batch, leading: search.leading(), arrivals, earlier };
                for layer in layers.farthest_first() {
                    site.assign(layer, &mut self.switches);
                }
                self.switches.par_iter_mut().for_each(|switch| {
                    batch.write(&switch.row, switch.table.entries_mut());
                });
            }
        }
    }
}

/// How many hosts send to each LID of a batch through each switch, without the hosts on it.
#[derive(Default)]
struct Arrivals {
    /// By switch, then by LID. There are fewer than 2^16 hosts. All zero between batches.
    senders: Vec<AtomicU16>,
    width: usize,
}

impl Arrivals {
    fn fit(&mut self, switches: usize, width: usize) {
        self.width = width;
        if self.senders.len() < switches * width {
            self.senders.resize_with(switches * width, AtomicU16::default);
        }
    }

    fn of(&self, switch: u32) -> &[AtomicU16] {
        &self.senders[switch as usize * self.width..][..self.width]
    }

    // A layer's counts are read when all layers before it are done; `rayon` puts that in order. Sums do not depend on
    // the order of their terms.
    fn add(&self, switch: u32, lid: usize, senders: u16) {
        if senders > 0 {
            self.senders[switch as usize * self.width + lid].fetch_add(senders, Ordering::Relaxed);
        }
    }
}

/// One batch of destinations on one fabric.
struct Site<'a> {
    graph: &'a SwitchGraph,
    plan: &'a Plan,
    batch: &'a Batch<'a>,
    /// By way: to which destinations it leads.
    leading: &'a [u64],
    arrivals: &'a Arrivals,
    earlier: Option<&'a Arrivals>,
}

impl Site<'_> {
    /// Assigns the LIDs of a layer: the switches, ascending, each with the destinations that it is so far from.
    fn assign(&self, layer: &[(u32, u64)], switches: &mut [Switch]) {
        if layer.len() < SHARED {
            let mut candidates = Candidates::default();
            for (at, bits) in layer {
                self.assign_at(*at, *bits, &mut switches[*at as usize], &mut candidates);
            }
            return;
        }
        let (mut rest, mut first, mut picked) = (switches, 0, Vec::with_capacity(layer.len()));
        for (at, bits) in layer {
            let (_, from) = rest.split_at_mut((*at - first) as usize);
            let Some((switch, after)) = from.split_first_mut() else { break };
            picked.push((*at, *bits, switch));
            (rest, first) = (after, *at + 1);
        }
        picked.into_par_iter().for_each_init(Candidates::default, |candidates, (at, bits, switch)| {
            self.assign_at(at, bits, switch, candidates);
        });
    }

    fn assign_at(&self, at: u32, bits: u64, switch: &mut Switch, candidates: &mut Candidates) {
        let (hosts, ways) = (self.plan.hosts[at as usize], self.graph.ways(at));
        let arrived = self.arrivals.of(at);
        let leading = Leading { row: &self.leading[self.graph.row(at)], sets: &switch.ways };
        for place in ones(bits) {
            let destination = &self.batch.destinations[place];
            if destination.switch == at {
                destination.deliver(&mut switch.row);
                for counts in self.earlier.into_iter().chain([self.arrivals]) {
                    counts.of(at)[destination.numbers()].iter().for_each(|count| _ = take(count));
                }
                continue;
            }
            switch.loads.hold(candidates, ways, leading, place);
            candidates.begin(destination, hosts, arrived);
            if let Some(earlier) = self.earlier {
                let left = |way: Way, number, senders| earlier.add(way.to, number, senders);
                candidates.reconsider(destination, earlier.of(at), &switch.row, left);
            }
            switch.passes_hosts |= candidates.pass_hosts();
            candidates.assign(destination, self.plan.turn(at, destination.number));
            let row = &mut switch.row[destination.numbers()];
            for ((number, port), (way, senders)) in destination.numbers().zip(row).zip(candidates.chosen()) {
                *port = way.port;
                self.arrivals.add(way.to, number, senders);
            }
        }
        switch.loads.settle(candidates);
    }
}
