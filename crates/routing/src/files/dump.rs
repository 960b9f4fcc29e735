//! The fabric that all written files describe, and the names in them.

use std::fmt::{self, Write};

use weft_topology::{Fabric, Node, NodeIndex};
use weft_wire::{Guid, Lid, NodeType};

use crate::lids::Lids;
use crate::routing::Routing;
use crate::sorted;
use crate::switches::{SwitchGraph, UNREACHED};

/// More hops than any path has: no path. OpenSM's `OSM_NO_PATH`.
pub(super) const NO_PATH: u8 = 0xff;

/// A routing to be written down. Each method writes one file, piece by piece: some files are large.
///
/// ```
/// use weft_routing::files::{Dump, parse_lfts};
/// use weft_routing::{Lids, Routing, minhop};
/// use weft_topology::generate::{GenerateOptions, ring};
///
/// let fabric = ring(4, 1, &GenerateOptions::default()).unwrap();
/// let lids = Lids::in_guid_order(&fabric, 0).unwrap();
/// let routing = Routing::on_one_lane("minhop", minhop(&fabric, &lids));
/// let mut text = String::new();
/// Dump::new(&fabric, &lids, &routing).lfts(&mut text).unwrap();
/// assert!(text.starts_with("Unicast lids [0-8] of switch Lid 5 guid 0x0200535700000001 ('switch-0'):\n"), "{text}");
/// assert_eq!(parse_lfts("opensm-lfts.dump", &text, &fabric).unwrap(), routing.routes);
/// ```
#[derive(Debug)]
pub struct Dump<'a> {
    pub(super) fabric: &'a Fabric,
    pub(super) lids: &'a Lids,
    pub(super) routing: &'a Routing,
    pub(super) graph: SwitchGraph,
    /// By switch, then by destination switch.
    hops: Vec<u8>,
}

impl<'a> Dump<'a> {
    /// Prepares to write.
    pub fn new(fabric: &'a Fabric, lids: &'a Lids, routing: &'a Routing) -> Self {
        let graph = SwitchGraph::new(fabric);
        let mut hops = Vec::with_capacity(graph.len() * graph.len());
        let (mut row, mut queue) = (Vec::new(), Vec::new());
        for switch in 0..graph.len() as u32 {
            graph.hops_to(switch, &mut row, &mut queue);
            let hop = |hops: &u32| u8::try_from(*hops).unwrap_or(NO_PATH);
            hops.extend(row.iter().map(|hops| if *hops == UNREACHED { NO_PATH } else { hop(hops) }));
        }
        Self { fabric, lids, routing, graph, hops }
    }

    /// Hops between switches; [`NO_PATH`] where nothing connects them.
    pub(super) fn hops(&self, from: u32, to: u32) -> u8 {
        self.hops[from as usize * self.graph.len() + to as usize]
    }

    /// Hops from a switch to another when a packet leaves by each port, and at place 0 the least of them, which is how
    /// OpenSM keeps it.
    pub(super) fn hops_by_port(&self, from: u32, to: u32) -> Vec<u8> {
        let node = self.fabric.node(self.graph.nodes[from as usize]);
        let mut hops = vec![NO_PATH; usize::from(node.port_count()) + 1];
        hops[0] = self.hops(from, to);
        for way in self.graph.ways(from) {
            hops[usize::from(way.port.0)] = self.hops(way.to, to).saturating_add(1);
        }
        hops
    }

    /// The switches in the order in which OpenSM walks through its tables.
    pub(super) fn switches(&self) -> Vec<u32> {
        let mut switches: Vec<u32> = (0..self.graph.len() as u32).collect();
        sorted::numbers(&mut switches, |number| order(self.node(number).guid));
        switches
    }

    pub(super) fn index(&self, switch: u32) -> NodeIndex {
        self.graph.nodes[switch as usize]
    }

    pub(super) fn node(&self, switch: u32) -> &'a Node {
        self.fabric.node(self.index(switch))
    }

    /// The highest LID that somebody has.
    pub(super) fn top(&self) -> Lid {
        self.lids.top()
    }
}

/// OpenSM compares GUIDs as the machine reads their bytes of the wire, and machines are little-endian.
pub(super) fn order(guid: Guid) -> u64 {
    guid.0.swap_bytes()
}

/// A kind of node as OpenSM spells it.
pub(super) fn kind(kind: NodeType) -> &'static str {
    match kind {
        NodeType::Switch => "Switch",
        NodeType::Router => "Router",
        _ => "Channel Adapter",
    }
}

/// A NodeDescription as OpenSM prints it: what is not printable ASCII is a space for every byte.
pub(super) struct Description<'a>(pub(super) &'a str);

impl fmt::Display for Description<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let printable = |byte: u8| if (0x20..0x7f).contains(&byte) { char::from(byte) } else { ' ' };
        self.0.bytes().take(DESCRIPTION_BYTES).try_for_each(|byte| f.write_char(printable(byte)))
    }
}

/// How long a NodeDescription is (IBA 14.2.5.2).
const DESCRIPTION_BYTES: usize = 64;
