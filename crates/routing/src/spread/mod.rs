//! LIDs spread evenly over the ways that lead to their switches.

use std::cmp::Reverse;

use rayon::prelude::*;
use weft_topology::Fabric;
use weft_wire::{Lid, PortNum};

use crate::closer::{BATCH, Search};
use crate::lids::{Lids, PortLids};
use crate::switches::{SwitchGraph, UNREACHED};
use crate::tables::{ForwardingTable, Routes};

/// How many batches of destinations are searched for before their LIDs are assigned: what bounds the memory.
const BATCHES_HELD: usize = 32;

/// Routes every LID by the ways that searches find, and evenly: a switch sends each next LID by the port, among
/// those of its ways there, that the fewest LIDs use so far; among equals to the neighbour that the fewest use, by
/// whichever parallel cable; among equals by the first port in a certain order. The LIDs of one end port (LMC) go to
/// different neighbours and by different ports before any of that.
///
/// That order begins with the lowest port on switches that have hosts. On others it begins elsewhere for every
/// destination: if all began alike, only LIDs that belong on one port there would ever come to a switch above a leaf.
/// In a tree every host gets a root of its own like that, as far as there are enough.
///
/// Those switches are served first that have most hosts, among equals that with the host of the lowest LID, each with
/// all its hosts at once; then come the LIDs of the switches themselves. So the tables are a function of ways and LIDs,
/// and neither the order of the nodes in memory nor the number of threads matters. What no way leads to has no route.
pub(crate) fn spread<S: Search>(
    fabric: &Fabric,
    lids: &Lids,
    graph: &SwitchGraph,
    search: impl Fn() -> S,
) -> Routes {
    let all = destinations(fabric, lids, graph);
    let batches: Vec<&[Destination]> = all.chunks(BATCH).collect();
    let mut searches: Vec<S> = (0..batches.len().min(BATCHES_HELD)).map(|_| search()).collect();
    let heights = heights(graph, &all);
    let mut switches: Vec<(ForwardingTable, Balance)> = (0..graph.len() as u32)
        .into_par_iter()
        .map(|switch| {
            (ForwardingTable::new(lids.top()), Balance::new(graph, switch, heights[switch as usize]))
        })
        .collect();
    for (number, held) in batches.chunks(BATCHES_HELD).enumerate() {
        searches.par_iter_mut().zip(held).for_each(|(search, batch)| {
            let switches: Vec<u32> = batch.iter().map(|(destination, _)| *destination).collect();
            search.search(graph, &switches);
        });
        let numbered = (0..graph.len() as u32).into_par_iter().zip(&mut switches);
        numbered.for_each_init(Candidates::default, |candidates, (switch, (table, balance))| {
            candidates.next = number * BATCHES_HELD * BATCH;
            for (search, batch) in searches.iter().zip(held) {
                search.ways_of(graph, switch, &mut candidates.sets);
                balance.assign_batch(candidates, batch, switch, table);
            }
        });
    }
    let mut routes = Routes { tables: vec![ForwardingTable::default(); fabric.nodes().len()] };
    for (node, (table, _)) in graph.nodes.iter().zip(switches) {
        routes.tables[node.index()] = table;
    }
    routes
}

/// A switch, and the end ports that it delivers to: by which port, and their LIDs.
type Destination = (u32, Vec<(PortNum, PortLids)>);

/// Switches with their hosts, those with most hosts first, then by the hosts' lowest LID; then the switches' own LIDs.
/// Hosts come first because their traffic is what balance is for, and what is large because what is small evens out
/// what it leaves.
fn destinations(fabric: &Fabric, lids: &Lids, graph: &SwitchGraph) -> Vec<Destination> {
    let mut of_hosts: Vec<Destination> = Vec::new();
    let mut of_switches: Vec<Destination> = Vec::new();
    let mut place_of = vec![usize::MAX; graph.len()];
    for lids in lids.iter() {
        let Some((switch, port)) = graph.attachment(fabric, lids.port) else { continue };
        if port == PortNum::ZERO {
            of_switches.push((switch, vec![(port, lids)]));
            continue;
        }
        let place = &mut place_of[switch as usize];
        if *place == usize::MAX {
            *place = of_hosts.len();
            of_hosts.push((switch, Vec::new()));
        }
        of_hosts[*place].1.push((port, lids));
    }
    of_hosts.sort_by_key(|(_, ports)| Reverse(ports.len()));
    of_hosts.append(&mut of_switches);
    of_hosts
}

/// The hops from every switch to the nearest one with hosts.
fn heights(graph: &SwitchGraph, destinations: &[Destination]) -> Vec<u32> {
    let has_hosts = |(_, ports): &&Destination| ports.iter().any(|(port, _)| *port != PortNum::ZERO);
    let leaves: Vec<u32> = destinations.iter().filter(has_hosts).map(|(switch, _)| *switch).collect();
    graph.hops_from(&leaves, |_| true)
}

/// What a switch does for the end ports on it.
fn deliver(ports: &[(PortNum, PortLids)], table: &mut ForwardingTable) {
    for (port, lids) in ports {
        for lid in lids.iter() {
            table.set(lid, *port);
        }
    }
}

/// How many LIDs use each way of a switch.
struct Balance {
    /// How many LIDs use a way. There are fewer than 2^16 LIDs.
    port_load: Vec<u16>,
    /// How many LIDs go to the neighbour of a way, by any of the ways there; kept at its first way.
    neighbour_load: Vec<u16>,
    /// For every way the first way to the same neighbour.
    first_way: Vec<u32>,
    /// Whether there are parallel cables to some neighbour.
    parallel: bool,
    /// The hops to the nearest switch with hosts.
    height: u32,
    ports: Vec<PortNum>,
}

/// The choice among the ways of a switch to a destination.
///
/// A candidate is one number that is smaller the better it is:
///
/// ```text
/// 63      56 55      48 47          32 31              16 15       0
/// |neighbour|port      |port          |neighbour         |place    |
/// |used by this end port|used by all LIDs so far         |in order |
/// ```
#[derive(Default)]
struct Candidates {
    /// By 64 ways of the switch, then by destination: which of them lead there.
    sets: Vec<[u64; BATCH]>,
    values: Vec<u64>,
    /// The way of each candidate.
    ways: Vec<u32>,
    /// The number of the next destination.
    next: usize,
}

const PLACE_MASK: u64 = 0xffff;
const NEIGHBOUR_ONE: u64 = 1 << 16;
const PORT_ONE: u64 = 1 << 32;
const OWN_PORT_ONE: u64 = 1 << 48;
const OWN_NEIGHBOUR_ONE: u64 = 1 << 56;
const OWN_MASK: u64 = 0xffff << 48;

impl Balance {
    fn new(graph: &SwitchGraph, switch: u32, height: u32) -> Self {
        let ways = graph.ways(switch);
        let mut by_neighbour: Vec<(u32, u32)> = (0..).zip(ways).map(|(way, w)| (w.to, way)).collect();
        by_neighbour.sort_unstable();
        let mut first_way = vec![0; ways.len()];
        let mut parallel = false;
        for same in by_neighbour.chunk_by(|a, b| a.0 == b.0) {
            parallel |= same.len() > 1;
            for (_, way) in same {
                first_way[*way as usize] = same[0].1;
            }
        }
        Self {
            port_load: vec![0; ways.len()],
            neighbour_load: vec![0; ways.len()],
            first_way,
            parallel,
            height,
            ports: ways.iter().map(|way| way.port).collect(),
        }
    }

    /// Gives the LIDs of a batch of destinations their ports on `switch`.
    fn assign_batch(
        &mut self,
        candidates: &mut Candidates,
        batch: &[Destination],
        switch: u32,
        table: &mut ForwardingTable,
    ) {
        for (place, (destination, ports)) in batch.iter().enumerate() {
            if *destination == switch {
                deliver(ports, table);
                candidates.next += 1;
                continue;
            }
            self.collect(candidates, place);
            match candidates.ways.as_slice() {
                // Nothing leads there.
                [] => {}
                [way] => self.assign_only(*way as usize, ports, table.entries_mut()),
                _ => {
                    self.assign_all(candidates, ports, table.entries_mut());
                    self.settle(candidates);
                }
            }
        }
    }

    /// Takes the ways that lead to the destination at `place` of the batch.
    fn collect(&self, candidates: &mut Candidates, place: usize) {
        let Candidates { sets, values, ways, next } = candidates;
        ways.clear();
        for (chunk, set) in sets.iter().enumerate() {
            let mut bits = set[place];
            while bits != 0 {
                ways.push((chunk * BATCH) as u32 + bits.trailing_zeros());
                bits &= bits - 1;
            }
        }
        if ways.len() > 1 {
            let first = self.first(*next, ways.len());
            ways.rotate_left(first);
        }
        *next += 1;
        values.clear();
        values.extend((0..).zip(&*ways).map(|(place, way)| {
            let neighbour = self.neighbour_load[self.first_way[*way as usize] as usize];
            u64::from(self.port_load[*way as usize]) * PORT_ONE + u64::from(neighbour) * NEIGHBOUR_ONE + place
        }));
    }

    /// With which of `count` candidates the order begins for a destination: the digit of its number, to the base
    /// `count`, that belongs to the height of this switch.
    fn first(&self, destination: usize, count: usize) -> usize {
        match self.height {
            0 | UNREACHED => 0,
            1 => destination % count,
            height => count.checked_pow(height - 1).map_or(0, |power| destination / power % count),
        }
    }

    /// Sends all LIDs of a destination by the only way there.
    fn assign_only(&mut self, way: usize, ports: &[(PortNum, PortLids)], table: &mut [PortNum]) {
        for lid in ports.iter().flat_map(|(_, lids)| lids.iter()) {
            set(table, lid, self.ports[way]);
            self.port_load[way] += 1;
            self.neighbour_load[self.first_way[way] as usize] += 1;
        }
    }

    /// Gives all LIDs of a destination their ports.
    fn assign_all(&self, candidates: &mut Candidates, ports: &[(PortNum, PortLids)], table: &mut [PortNum]) {
        if self.parallel || ports.iter().any(|(_, lids)| lids.lmc > 0) {
            for (_, lids) in ports {
                self.assign(candidates, *lids, table);
            }
            return;
        }
        // The same in rounds: without parallel cables and LMCs, the best candidates one after the other are those
        // with the least load, in order, and then those that have the least by now.
        let Candidates { values, ways, .. } = candidates;
        let mut ports = ports.iter().map(|(_, lids)| lids.base).peekable();
        while ports.peek().is_some() {
            let least = values.iter().map(|value| value / PORT_ONE).min().unwrap_or(0);
            for (value, way) in values.iter_mut().zip(&*ways) {
                if *value / PORT_ONE == least {
                    let Some(lid) = ports.next() else { return };
                    set(table, lid, self.ports[*way as usize]);
                    *value += PORT_ONE + NEIGHBOUR_ONE;
                }
            }
        }
    }

    /// Gives each LID of one end port its port.
    fn assign(&self, candidates: &mut Candidates, lids: PortLids, table: &mut [PortNum]) {
        for lid in lids.iter() {
            let Some(best) = candidates.values.iter().copied().min() else { return };
            let place = (best & PLACE_MASK) as usize;
            set(table, lid, self.ports[candidates.ways[place] as usize]);
            candidates.values[place] += PORT_ONE;
            if lids.lmc > 0 {
                candidates.values[place] += OWN_PORT_ONE;
            }
            self.count_neighbour(candidates, place, lids.lmc > 0);
        }
        if lids.lmc > 0 {
            for value in &mut candidates.values {
                *value &= !OWN_MASK;
            }
        }
    }

    /// Adds a LID to the neighbour of a candidate, on all candidates that lead there.
    fn count_neighbour(&self, candidates: &mut Candidates, place: usize, own: bool) {
        let one = NEIGHBOUR_ONE + if own { OWN_NEIGHBOUR_ONE } else { 0 };
        let first = self.first_way[candidates.ways[place] as usize];
        for (value, way) in candidates.values.iter_mut().zip(&candidates.ways) {
            if self.first_way[*way as usize] == first {
                *value += one;
            }
        }
    }

    /// Keeps the counts for the next destination.
    fn settle(&mut self, candidates: &Candidates) {
        for (value, way) in candidates.values.iter().zip(&candidates.ways) {
            let way = *way as usize;
            self.port_load[way] = (value / PORT_ONE) as u16;
            self.neighbour_load[self.first_way[way] as usize] = (value / NEIGHBOUR_ONE) as u16;
        }
    }
}

fn set(table: &mut [PortNum], lid: Lid, port: PortNum) {
    if let Some(entry) = table.get_mut(usize::from(lid.0)) {
        *entry = port;
    }
}
