//! Shortest paths, spread evenly over the ports that have them.

use weft_topology::Fabric;
use weft_wire::{Lid, PortNum};

use crate::closer::{BATCH, Closer};
use crate::lids::{Lids, PortLids};
use crate::routing::Routing;
use crate::switches::SwitchGraph;
use crate::tables::{ForwardingTable, Routes};

use super::Engine;

pub(crate) const ENGINE: Engine = Engine {
    name: "minhop",
    about: "shortest paths, spread evenly over the ports that have them",
    options: &[],
    deadlock_free: false,
    run: |input| Ok(Routing::on_one_lane("minhop", minhop(input.fabric, input.lids))),
};

/// Routes every LID over a least number of switches, and evenly: a switch sends each next LID by the port, among
/// those on a shortest path, that the fewest LIDs use so far; among equals to the neighbour that the fewest use, by
/// whichever parallel cable; among equals by the lowest port. The LIDs of one end port (LMC) go to
/// different neighbours and by different ports before any of that.
///
/// Switches are served in the order of the lowest LID of the hosts on them, each with all its hosts at once, then
/// come the LIDs of the switches themselves. So the tables are a function of cabling and LIDs, and the order of
/// the nodes in memory does not matter. Nothing is ever sent through an HCA; what is not connected has no route.
pub fn minhop(fabric: &Fabric, lids: &Lids) -> Routes {
    let graph = SwitchGraph::new(fabric);
    let mut tables: Vec<ForwardingTable> = vec![ForwardingTable::new(lids.top()); graph.len()];
    let mut balance = Balance::new(&graph);
    let (mut closer, mut ways) = (Closer::new(&graph), Vec::new());
    for batch in destinations(fabric, lids, &graph).chunks(BATCH) {
        closer.search(&graph, batch.iter().map(|(destination, _)| *destination));
        for (switch, table) in (0..).zip(&mut tables) {
            closer.ways_of(&graph, switch, &mut ways);
            balance.begin(switch);
            for (place, (destination, ports)) in batch.iter().enumerate() {
                if *destination == switch {
                    deliver(ports, table);
                    continue;
                }
                let set = ways.iter().map(|chunk| chunk[place]);
                balance.collect(&graph, switch, set);
                balance.assign_all(ports, table.entries_mut());
                balance.settle();
            }
        }
    }
    let mut routes = Routes { tables: vec![ForwardingTable::default(); fabric.nodes().len()] };
    for (node, table) in graph.nodes.iter().zip(tables) {
        routes.tables[node.index()] = table;
    }
    routes
}

/// What a switch does for the end ports on it.
fn deliver(ports: &[(PortNum, PortLids)], table: &mut ForwardingTable) {
    for (port, lids) in ports {
        for lid in lids.iter() {
            table.set(lid, *port);
        }
    }
}

/// A switch, and the end ports that it delivers to: by which port, and their LIDs.
type Destination = (u32, Vec<(PortNum, PortLids)>);

/// Switches with their hosts, by the hosts' lowest LID, then the switches' own LIDs. Hosts come first because
/// their traffic is what balance is for.
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
    of_hosts.append(&mut of_switches);
    of_hosts
}

/// How many LIDs use each way, and the choice among the ways of one switch to one destination.
///
/// A candidate is one number that is smaller the better it is:
///
/// ```text
/// 63      56 55      48 47          32 31              16 15       0
/// |neighbour|port      |port          |neighbour         |place    |
/// |used by this end port|used by all LIDs so far         |in order |
/// ```
struct Balance {
    /// How many LIDs use a way. There are fewer than 2^16 LIDs.
    port_load: Vec<u16>,
    /// How many LIDs go to the neighbour of a way, by any of the ways there; kept at its first way.
    neighbour_load: Vec<u16>,
    /// For every way the first way of that switch to the same neighbour.
    first_way: Vec<u32>,
    /// Whether a switch has parallel cables to some neighbour.
    has_parallel: Vec<bool>,
    candidates: Vec<u64>,
    /// The way of each candidate, and its port.
    ways: Vec<(u32, PortNum)>,
    parallel: bool,
}

const PLACE_MASK: u64 = 0xffff;
const NEIGHBOUR_ONE: u64 = 1 << 16;
const PORT_ONE: u64 = 1 << 32;
const OWN_PORT_ONE: u64 = 1 << 48;
const OWN_NEIGHBOUR_ONE: u64 = 1 << 56;
const OWN_MASK: u64 = 0xffff << 48;

impl Balance {
    fn new(graph: &SwitchGraph) -> Self {
        let mut first_way = Vec::with_capacity(graph.way_count());
        let mut has_parallel = Vec::with_capacity(graph.len());
        let mut first_to = vec![u32::MAX; graph.len()];
        for switch in 0..graph.len() as u32 {
            let row = graph.row(switch);
            let mut parallel = false;
            for (place, way) in row.clone().zip(graph.ways(switch)) {
                let first = &mut first_to[way.to as usize];
                // One from an earlier row is of another switch.
                if *first == u32::MAX || (*first as usize) < row.start {
                    *first = place as u32;
                } else {
                    parallel = true;
                }
                first_way.push(*first);
            }
            has_parallel.push(parallel);
        }
        Self {
            port_load: vec![0; graph.way_count()],
            neighbour_load: vec![0; graph.way_count()],
            first_way,
            has_parallel,
            candidates: Vec::new(),
            ways: Vec::new(),
            parallel: false,
        }
    }

    /// Turns to a switch.
    fn begin(&mut self, switch: u32) {
        self.parallel = self.has_parallel[switch as usize];
    }

    /// Takes the ways of `switch` that lead closer: `set` has a bit for each, 64 ways to the word.
    fn collect(&mut self, graph: &SwitchGraph, switch: u32, set: impl Iterator<Item = u64>) {
        self.candidates.clear();
        self.ways.clear();
        let (first, ways) = (graph.row(switch).start, graph.ways(switch));
        for (chunk, mut bits) in set.enumerate() {
            while bits != 0 {
                let offset = chunk * BATCH + bits.trailing_zeros() as usize;
                bits &= bits - 1;
                let at = first + offset;
                let neighbour = self.neighbour_load[self.first_way[at] as usize];
                let place = self.candidates.len() as u64;
                let load = u64::from(self.port_load[at]) * PORT_ONE + u64::from(neighbour) * NEIGHBOUR_ONE;
                self.candidates.push(load + place);
                self.ways.push((at as u32, ways[offset].port));
            }
        }
    }

    /// Gives all LIDs of a destination their ports.
    fn assign_all(&mut self, ports: &[(PortNum, PortLids)], table: &mut [PortNum]) {
        // Nothing leads there.
        if self.candidates.is_empty() {
            return;
        }
        if self.parallel || ports.iter().any(|(_, lids)| lids.lmc > 0) {
            for (_, lids) in ports {
                self.assign(*lids, table);
            }
            return;
        }
        // The same in rounds: without parallel cables and LMCs, the best candidates one after the other are those
        // with the least load, in order, and then those that have the least by now.
        let mut ports = ports.iter().map(|(_, lids)| lids.base).peekable();
        while ports.peek().is_some() {
            let least = self.candidates.iter().map(|candidate| candidate / PORT_ONE).min().unwrap_or(0);
            for (candidate, (_, port)) in self.candidates.iter_mut().zip(&self.ways) {
                if *candidate / PORT_ONE == least {
                    let Some(lid) = ports.next() else { return };
                    set(table, lid, *port);
                    *candidate += PORT_ONE + NEIGHBOUR_ONE;
                }
            }
        }
    }

    /// Gives each LID of one end port its port.
    fn assign(&mut self, lids: PortLids, table: &mut [PortNum]) {
        for lid in lids.iter() {
            let Some(best) = self.candidates.iter().copied().min() else { return };
            let place = (best & PLACE_MASK) as usize;
            set(table, lid, self.ways[place].1);
            self.candidates[place] += PORT_ONE;
            if lids.lmc > 0 {
                self.candidates[place] += OWN_PORT_ONE;
            }
            self.count_neighbour(place, lids.lmc > 0);
        }
        if lids.lmc > 0 {
            for candidate in &mut self.candidates {
                *candidate &= !OWN_MASK;
            }
        }
    }

    /// Adds a LID to the neighbour of a candidate, on all candidates that lead there.
    fn count_neighbour(&mut self, place: usize, own: bool) {
        let one = NEIGHBOUR_ONE + if own { OWN_NEIGHBOUR_ONE } else { 0 };
        if !self.parallel {
            self.candidates[place] += one;
            return;
        }
        let first = self.first_way[self.ways[place].0 as usize];
        for (candidate, (way, _)) in self.candidates.iter_mut().zip(&self.ways) {
            if self.first_way[*way as usize] == first {
                *candidate += one;
            }
        }
    }

    /// Keeps the counts for the next destination.
    fn settle(&mut self) {
        for (candidate, (way, _)) in self.candidates.iter().zip(&self.ways) {
            let way = *way as usize;
            self.port_load[way] = (candidate / PORT_ONE) as u16;
            self.neighbour_load[self.first_way[way] as usize] = (candidate / NEIGHBOUR_ONE) as u16;
        }
    }
}

fn set(table: &mut [PortNum], lid: Lid, port: PortNum) {
    if let Some(entry) = table.get_mut(usize::from(lid.0)) {
        *entry = port;
    }
}
