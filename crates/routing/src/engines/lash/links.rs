//! Switches in GUID order, and the directed links between neighbours.

use std::ops::Range;

use rayon::prelude::*;
use weft_topology::{Fabric, NodeIndex};
use weft_wire::PortNum;

use crate::switches::SwitchGraph;

/// Further than any switch: not connected.
pub(super) const UNREACHED: u16 = u16::MAX;

/// The switches, numbered by GUID, and a directed link to each neighbour. Parallel cables are one link: what is
/// free of cycles over links is free of cycles over cables.
#[derive(Debug)]
pub(super) struct Links {
    pub(super) graph: SwitchGraph,
    rows: Vec<u32>,
    /// By link: the neighbour.
    to: Vec<u32>,
    /// By link: the same cables the other way.
    reverse: Vec<u32>,
    /// By link, from low to high.
    ports: Vec<Vec<PortNum>>,
    /// By switch: how many end ports of hosts are on it.
    pub(super) hosts: Vec<u32>,
}

impl Links {
    /// The links of a fabric. A switch's neighbours come in the order of the lowest ports to them.
    pub(super) fn new(fabric: &Fabric) -> Self {
        let graph = SwitchGraph::in_guid_order(fabric);
        let (mut rows, mut to) = (vec![0], Vec::new());
        let mut ports: Vec<Vec<PortNum>> = Vec::new();
        for at in 0..graph.len() as u32 {
            let first = to.len();
            for way in graph.ways(at) {
                match to[first..].iter().position(|other| *other == way.to) {
                    Some(place) => ports[first + place].push(way.port),
                    None => {
                        to.push(way.to);
                        ports.push(vec![way.port]);
                    }
                }
            }
            rows.push(to.len() as u32);
        }
        let hosts = graph.nodes.iter().map(|node| hosts_on(fabric, *node)).collect();
        let mut links = Self { graph, rows, to, reverse: Vec::new(), ports, hosts };
        links.reverse = (0..links.len() as u32)
            .flat_map(|from| links.row(from).map(move |link| (from, link)))
            .filter_map(|(from, link)| links.row(links.to(link)).find(|back| links.to(*back) == from))
            .collect();
        links
    }

    /// How many switches there are.
    pub(super) fn len(&self) -> usize {
        self.graph.len()
    }

    /// How many links there are.
    pub(super) fn count(&self) -> usize {
        self.to.len()
    }

    /// The links of a switch.
    pub(super) fn row(&self, switch: u32) -> Range<u32> {
        self.rows[switch as usize]..self.rows[switch as usize + 1]
    }

    /// Where a link leads.
    pub(super) fn to(&self, link: u32) -> u32 {
        self.to[link as usize]
    }

    /// The same cables the other way.
    pub(super) fn reverse(&self, link: u32) -> u32 {
        self.reverse[link as usize]
    }

    /// The ports of a link.
    pub(super) fn ports(&self, link: u32) -> &[PortNum] {
        &self.ports[link as usize]
    }

    /// Whether packets between two switches count: all but those between switches without hosts.
    pub(super) fn counts(&self, a: u32, b: u32) -> bool {
        a != b && (self.hosts[a as usize] > 0 || self.hosts[b as usize] > 0)
    }
}

fn hosts_on(fabric: &Fabric, switch: NodeIndex) -> u32 {
    let peers = fabric.node(switch).cabled_ports();
    peers.filter(|(_, peer)| !fabric.node(peer.node).is_switch()).count() as u32
}

/// All distances between switches.
#[derive(Debug)]
pub(super) struct Hops {
    width: usize,
    hops: Vec<u16>,
    /// By switch: all that are connected with it, nearest first, itself included.
    outwards: Vec<Vec<u16>>,
}

impl Hops {
    /// Searches breadth first from every switch.
    pub(super) fn new(links: &Links) -> Self {
        let width = links.len();
        let mut hops = vec![UNREACHED; width * width];
        let rows = hops.par_chunks_mut(width.max(1)).enumerate();
        let outwards = rows.map(|(from, row)| search(links, from as u32, row)).collect();
        Self { width, hops, outwards }
    }

    /// The hops to `to`, by switch.
    pub(super) fn row(&self, to: u32) -> &[u16] {
        &self.hops[to as usize * self.width..][..self.width]
    }

    /// All switches connected with `from`, nearest first, itself included.
    pub(super) fn outwards(
        &self,
        from: u32,
    ) -> impl DoubleEndedIterator<Item = u32> + ExactSizeIterator + '_ {
        self.outwards[from as usize].iter().map(|switch| u32::from(*switch))
    }
}

fn search(links: &Links, from: u32, hops: &mut [u16]) -> Vec<u16> {
    let mut reached = vec![from as u16];
    hops[from as usize] = 0;
    let mut next = 0;
    while let Some(at) = reached.get(next).copied() {
        next += 1;
        for link in links.row(u32::from(at)) {
            let to = links.to(link);
            if hops[to as usize] == UNREACHED {
                hops[to as usize] = hops[usize::from(at)] + 1;
                reached.push(to as u16);
            }
        }
    }
    reached
}
