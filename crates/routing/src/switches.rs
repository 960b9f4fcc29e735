//! The fabric as routing sees it: switches, numbered densely, and the cables between them.

use std::ops::Range;

use weft_topology::{Fabric, NodeIndex, PortRef};
use weft_wire::PortNum;

use crate::sorted;

/// Further than any switch: not connected.
pub(crate) const UNREACHED: u32 = u32::MAX;

/// A port of a switch that leads to another switch.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Way {
    /// The dense number of the switch at the other end.
    pub(crate) to: u32,
    /// The port.
    pub(crate) port: PortNum,
}

/// The switches and their ways, in compressed rows.
#[derive(Debug)]
pub(crate) struct SwitchGraph {
    /// The node of each switch.
    pub(crate) nodes: Vec<NodeIndex>,
    /// The dense number of each node that is a switch.
    dense: Vec<u32>,
    rows: Vec<u32>,
    /// By switch, then by port.
    ways: Vec<Way>,
}

impl SwitchGraph {
    pub(crate) fn new(fabric: &Fabric) -> Self {
        Self::of(fabric, fabric.switches().map(|(index, _)| index).collect())
    }

    /// The same with switches numbered in the order of their GUIDs, whatever that of the nodes in memory.
    pub(crate) fn in_guid_order(fabric: &Fabric) -> Self {
        let mut nodes: Vec<NodeIndex> = fabric.switches().map(|(index, _)| index).collect();
        sorted::by_key(&mut nodes, |node| fabric.node(*node).guid);
        Self::of(fabric, nodes)
    }

    fn of(fabric: &Fabric, nodes: Vec<NodeIndex>) -> Self {
        let mut dense = vec![u32::MAX; fabric.nodes().len()];
        for (number, node) in (0..).zip(&nodes) {
            dense[node.index()] = number;
        }
        let (mut rows, mut ways) = (vec![0], Vec::new());
        for node in &nodes {
            for (port, peer) in fabric.node(*node).cabled_ports() {
                // A cable from a switch to itself leads nowhere.
                if peer.node != *node && fabric.node(peer.node).is_switch() {
                    ways.push(Way { to: dense[peer.node.index()], port });
                }
            }
            rows.push(ways.len() as u32);
        }
        Self { nodes, dense, rows, ways }
    }

    pub(crate) fn len(&self) -> usize {
        self.nodes.len()
    }

    /// All switches, by number.
    pub(crate) fn numbers(&self) -> Range<u32> {
        0..self.len() as u32
    }

    /// The switches in the order of their GUIDs.
    pub(crate) fn order_by_guid(&self, fabric: &Fabric) -> Vec<u32> {
        let mut order: Vec<u32> = (0..self.len() as u32).collect();
        sorted::numbers(&mut order, |switch| fabric.node(self.nodes[switch as usize]).guid);
        order
    }

    /// What there is of each switch, by node; a default for all other nodes.
    pub(crate) fn by_node<T: Clone + Default>(&self, values: impl IntoIterator<Item = T>) -> Vec<T> {
        by_node(self.dense.len(), &self.nodes, values)
    }

    /// For every switch that stays, the first switch of its piece.
    pub(crate) fn pieces(&self, stays: impl Fn(u32) -> bool) -> Vec<u32> {
        let mut piece = vec![u32::MAX; self.len()];
        let mut todo = Vec::new();
        for start in 0..self.len() as u32 {
            if piece[start as usize] != u32::MAX || !stays(start) {
                continue;
            }
            piece[start as usize] = start;
            todo.push(start);
            while let Some(at) = todo.pop() {
                for way in self.ways(at) {
                    if piece[way.to as usize] == u32::MAX && stays(way.to) {
                        piece[way.to as usize] = start;
                        todo.push(way.to);
                    }
                }
            }
        }
        piece
    }

    /// Where the ways of a switch are among all ways.
    pub(crate) fn row(&self, switch: u32) -> Range<usize> {
        self.rows[switch as usize] as usize..self.rows[switch as usize + 1] as usize
    }

    pub(crate) fn ways(&self, switch: u32) -> &[Way] {
        &self.ways[self.row(switch)]
    }

    pub(crate) fn way_count(&self) -> usize {
        self.ways.len()
    }

    /// The switch that an end port belongs to or is cabled to, and the port by which that switch delivers to it.
    pub(crate) fn attachment(&self, fabric: &Fabric, end_port: PortRef) -> Option<(u32, PortNum)> {
        let node = fabric.nodes().get(end_port.node.index())?;
        if node.is_switch() {
            return Some((self.dense[end_port.node.index()], PortNum::ZERO));
        }
        let peer = fabric.peer(end_port)?;
        match self.dense[peer.node.index()] {
            u32::MAX => None,
            switch => Some((switch, peer.port)),
        }
    }

    /// The dense number of a node that is a switch.
    pub(crate) fn number(&self, node: NodeIndex) -> Option<u32> {
        self.dense.get(node.index()).copied().filter(|number| *number != u32::MAX)
    }

    /// The hops from the nearest of `starts` to every switch, through switches that `may` be passed.
    pub(crate) fn hops_from(&self, starts: &[u32], may: impl Fn(u32) -> bool) -> Vec<u32> {
        let (mut hops, mut queue) = (Vec::new(), Vec::new());
        self.search(starts, may, &mut hops, &mut queue);
        hops
    }

    /// The hops from every switch to `to`, into `hops`; `queue` is room to work in.
    pub(crate) fn hops_to(&self, to: u32, hops: &mut Vec<u32>, queue: &mut Vec<u32>) {
        // Cables go both ways, so the hops from there are the hops to there.
        self.search(&[to], |_| true, hops, queue);
    }

    /// Breadth first; what is reached stands in `queue` in the order of hops.
    fn search(&self, starts: &[u32], may: impl Fn(u32) -> bool, hops: &mut Vec<u32>, queue: &mut Vec<u32>) {
        hops.clear();
        hops.resize(self.len(), UNREACHED);
        queue.clear();
        queue.extend_from_slice(starts);
        for start in starts {
            hops[*start as usize] = 0;
        }
        let mut next = 0;
        while let Some(at) = queue.get(next).copied() {
            next += 1;
            for way in self.ways(at) {
                if hops[way.to as usize] == UNREACHED && may(way.to) {
                    hops[way.to as usize] = hops[at as usize] + 1;
                    queue.push(way.to);
                }
            }
        }
    }
}

/// What there is of each of some nodes, by node; a default for the others of this many.
pub(crate) fn by_node<T: Clone + Default>(
    count: usize,
    nodes: &[NodeIndex],
    values: impl IntoIterator<Item = T>,
) -> Vec<T> {
    let mut by_node = vec![T::default(); count];
    for (node, value) in nodes.iter().zip(values) {
        by_node[node.index()] = value;
    }
    by_node
}
