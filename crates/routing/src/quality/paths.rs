//! Tables made ready for following millions of packets.

use rayon::prelude::*;
use weft_topology::{Fabric, NodeIndex, PortRef};
use weft_wire::{Lid, PortNum};

use crate::bits::ones;
use crate::lids::Lids;
use crate::switches::SwitchGraph;
use crate::tables::Routes;
use crate::trace::{TraceError, trace};

/// What leads nowhere: a port without a cable, an entry without a route, a LID that no one has.
const NOWHERE: u32 = u32::MAX;

/// How many packets are followed side by side.
pub(crate) const CONVOY: usize = 16;

/// A LID as a sender or receiver: its column in the tables of [`Paths`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Endpoint(u32);

/// Where packets of an end port begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Start {
    /// At this switch: it is the switch's own port 0.
    Switch(u32),
    /// On this link, which leads away from an HCA or router.
    Link(u32),
    /// The port has no cable.
    Nowhere,
}

/// What a switch does with a packet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Step {
    /// The link that it takes.
    pub(crate) link: u32,
    /// The place that it comes to.
    pub(crate) place: u32,
    /// Whether that is the switch's own port 0, and the link none of a cable.
    pub(crate) inside: bool,
}

/// A fabric's tables turned round: one column for every LID with the port by which each switch sends it, so that a
/// path is read from a few neighbouring lines of memory; and numbers for all links, each direction by itself.
///
/// ```text
///   place = what a link leads to: a switch, or an end port
///   0 ........ switches: switches ........ ends: end ports of HCAs and routers, then the ports 0 of switches
/// ```
#[derive(Debug)]
pub struct Paths<'a> {
    pub(crate) fabric: &'a Fabric,
    pub(crate) lids: &'a Lids,
    routes: &'a Routes,
    pub(crate) graph: SwitchGraph,
    /// By switch, the link of its port 0; the links of its other ports follow, then one that leads nowhere.
    first: Vec<u32>,
    /// By link, the place that it leads to.
    to: Vec<u32>,
    /// By link, the port that it leaves.
    from: Vec<PortRef>,
    /// By LID, its column.
    columns: Vec<u32>,
    /// By column, the LID, the place of its end port, and where its packets begin.
    ends: Vec<(Lid, u32, Start)>,
    /// By column, then by switch, the port.
    next: Vec<u8>,
}

impl<'a> Paths<'a> {
    /// Reads tables of a fabric. The cost is that of copying them.
    pub fn new(fabric: &'a Fabric, lids: &'a Lids, routes: &'a Routes) -> Self {
        let graph = SwitchGraph::in_guid_order(fabric);
        let places = PathIndex::new(fabric, &graph);
        let mut paths = Self {
            fabric,
            lids,
            routes,
            first: Vec::with_capacity(graph.len()),
            graph,
            to: Vec::new(),
            from: Vec::new(),
            columns: vec![NOWHERE; usize::from(lids.top().0) + 1],
            ends: Vec::new(),
            next: Vec::new(),
        };
        paths.number_links(&places);
        paths.number_ends(&places);
        paths.turn();
        paths
    }

    fn number_links(&mut self, places: &PathIndex) {
        let fabric = self.fabric;
        for (switch, node) in (0..).zip(&self.graph.nodes) {
            self.first.push(self.to.len() as u32);
            let link = |port: PortNum| PortRef::new(*node, port);
            self.from.push(link(PortNum::ZERO));
            self.to.push(places.own(switch));
            for (port, _) in fabric.node(*node).external_ports() {
                self.from.push(link(port));
                self.to.push(fabric.peer(link(port)).map_or(NOWHERE, |peer| places.of(peer)));
            }
            self.from.push(link(PortNum::NONE));
            self.to.push(NOWHERE);
        }
        for port in &places.ports {
            self.from.push(*port);
            self.to.push(fabric.peer(*port).map_or(NOWHERE, |peer| places.of(peer)));
        }
    }

    fn number_ends(&mut self, places: &PathIndex) {
        let first_outside = (self.to.len() - places.ports.len()) as u32;
        for port_lids in self.lids.iter() {
            let port = port_lids.port;
            let (place, start) = match self.graph.number(port.node) {
                Some(switch) => (places.own(switch), Start::Switch(switch)),
                None => match places.of(port) {
                    NOWHERE => (NOWHERE, Start::Nowhere),
                    place => (place, Start::Link(first_outside + place - places.switches)),
                },
            };
            for lid in port_lids.iter() {
                self.columns[usize::from(lid.0)] = self.ends.len() as u32;
                self.ends.push((lid, place, start));
            }
        }
    }

    /// Copies the tables by columns, 64 at a time so that lines of memory are used whole.
    fn turn(&mut self) {
        let switches = self.graph.len();
        self.next = vec![0; self.ends.len() * switches];
        if switches == 0 {
            return;
        }
        let (ends, graph, fabric, routes) = (&self.ends, &self.graph, self.fabric, self.routes);
        self.next.par_chunks_mut(64 * switches).zip(ends.par_chunks(64)).for_each(|(chunk, ends)| {
            for (switch, node) in graph.nodes.iter().enumerate() {
                let count = fabric.node(*node).port_count();
                let table = routes.table(*node);
                for (column, (lid, ..)) in chunk.chunks_exact_mut(switches).zip(ends) {
                    let port = table.map_or(PortNum::NONE, |table| table.port(*lid)).0;
                    // A port that is not there is the link that leads nowhere.
                    column[switch] = if port <= count { port } else { count + 1 };
                }
            }
        });
    }

    /// The endpoint of a LID; `None` when no one has it.
    pub(crate) fn endpoint(&self, lid: Lid) -> Option<Endpoint> {
        self.columns.get(usize::from(lid.0)).copied().filter(|column| *column != NOWHERE).map(Endpoint)
    }

    pub(crate) fn lid(&self, endpoint: Endpoint) -> Lid {
        self.ends[endpoint.0 as usize].0
    }

    pub(crate) fn start(&self, endpoint: Endpoint) -> Start {
        self.ends[endpoint.0 as usize].2
    }

    /// Whether two LIDs are of one end port, so that no packet between them takes a link.
    pub(crate) fn same_port(&self, a: Endpoint, b: Endpoint) -> bool {
        self.ends[a.0 as usize].1 == self.ends[b.0 as usize].1 && self.start(a) != Start::Nowhere
    }

    /// How many links there are, one for each direction of a cable, with those that carry nothing.
    pub(crate) fn link_count(&self) -> usize {
        self.to.len()
    }

    /// The port that a link leaves.
    pub(crate) fn port_of(&self, link: u32) -> PortRef {
        self.from[link as usize]
    }

    /// The switches that a link connects, where both ends are switches.
    pub(crate) fn between_switches(&self, link: u32) -> Option<(NodeIndex, NodeIndex)> {
        let from = self.port_of(link).node;
        self.graph.number(from)?;
        Some((from, *self.graph.nodes.get(self.to[link as usize] as usize)?))
    }

    /// The step of a switch for a destination.
    #[inline]
    pub(crate) fn step(&self, switch: u32, to: Endpoint) -> Step {
        let port = self.next[to.0 as usize * self.graph.len() + switch as usize];
        let link = self.first[switch as usize] + u32::from(port);
        Step { link, place: self.to[link as usize], inside: port == 0 }
    }

    /// The switch that a link leads to.
    #[inline]
    pub(crate) fn switch_at(&self, place: u32) -> Option<u32> {
        (place < self.graph.len() as u32).then_some(place)
    }

    /// The place that a link leads to.
    pub(crate) fn place(&self, link: u32) -> u32 {
        self.to[link as usize]
    }

    /// The place where a destination is.
    #[inline]
    pub(crate) fn target(&self, to: Endpoint) -> u32 {
        self.ends[to.0 as usize].1
    }

    /// Follows packets from one LID to another side by side, as memory is slow to answer and answers several at once.
    /// `trails` has their links then, and the result a bit for each that arrives; of the others the links tell how far
    /// they came.
    ///
    /// # Panics
    ///
    /// When there are more pairs than trails.
    #[inline]
    pub(crate) fn walk(&self, pairs: &[(Endpoint, Endpoint)], trails: &mut [Vec<u32>; CONVOY]) -> u32 {
        let (mut places, mut targets) = ([NOWHERE; CONVOY], [NOWHERE; CONVOY]);
        let (mut arrived, mut under_way) = (0u32, 0u32);
        for (number, (from, to)) in pairs.iter().enumerate() {
            trails[number].clear();
            targets[number] = self.target(*to);
            let place = match self.start(*from) {
                Start::Nowhere => continue,
                _ if self.same_port(*from, *to) => targets[number],
                Start::Switch(switch) => switch,
                Start::Link(link) => {
                    trails[number].push(link);
                    self.to[link as usize]
                }
            };
            places[number] = place;
            under_way |= 1 << number;
        }
        // Whoever passes more switches than there are passes one twice.
        for _ in 0..=self.graph.len() + 1 {
            if under_way == 0 {
                break;
            }
            for number in ones(under_way) {
                let bit = 1 << number;
                if places[number] == targets[number] {
                    arrived |= bit;
                    under_way ^= bit;
                    continue;
                }
                let Some(switch) = self.switch_at(places[number]) else {
                    under_way ^= bit;
                    continue;
                };
                let step = self.step(switch, pairs[number].1);
                if !step.inside {
                    trails[number].push(step.link);
                }
                places[number] = step.place;
            }
        }
        arrived
    }

    /// Why a packet does not arrive.
    pub(crate) fn why_not(&self, from: Endpoint, to: Endpoint) -> Option<TraceError> {
        let (source, destination) = (self.lid(from), self.lid(to));
        trace(self.fabric, self.lids, self.routes, self.lids.owner(source)?, destination).err()
    }
}

/// The numbers of places.
struct PathIndex {
    switches: u32,
    /// The dense number of each switch, by node.
    numbers: Vec<u32>,
    /// The place of the first cabled port of each node that is no switch, by node.
    first: Vec<u32>,
    /// All cabled ports of nodes that are no switches.
    ports: Vec<PortRef>,
}

impl PathIndex {
    fn new(fabric: &Fabric, graph: &SwitchGraph) -> Self {
        let switches = graph.len() as u32;
        let (mut numbers, mut first, mut ports) = (Vec::new(), Vec::new(), Vec::new());
        for (index, node) in fabric.iter() {
            numbers.push(graph.number(index).unwrap_or(NOWHERE));
            first.push(switches + ports.len() as u32);
            if !node.is_switch() {
                ports.extend(node.cabled_ports().map(|(port, _)| PortRef::new(index, port)));
            }
        }
        Self { switches, numbers, first, ports }
    }

    /// The place of a port that a cable ends at.
    fn of(&self, port: PortRef) -> u32 {
        match self.numbers[port.node.index()] {
            NOWHERE => {
                let first = self.first[port.node.index()];
                let later = self.ports.iter().skip((first - self.switches) as usize);
                let place =
                    later.take_while(|other| other.node == port.node).position(|other| *other == port);
                place.map_or(NOWHERE, |place| first + place as u32)
            }
            switch => switch,
        }
    }

    /// The place of a switch's own port 0.
    fn own(&self, switch: u32) -> u32 {
        self.switches + self.ports.len() as u32 + switch
    }
}
