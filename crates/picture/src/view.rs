//! The shown part of a cabling: a mark for each node, or for a switch with its hosts; a line for all cables between two marks.

use std::collections::BTreeMap;

use weft_topology::{Cable, Fabric, NodeIndex};

/// The place of a mark in the list of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MarkId(pub u32);

impl MarkId {
    /// The same for lists.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// A node, with the hosts that are folded into it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mark {
    /// The node.
    pub node: NodeIndex,
    /// What people call it.
    pub label: String,
    /// Whether it is a switch.
    pub is_switch: bool,
    /// How far the nearest adapter is: 0 for adapters, 1 for switches with adapters.
    pub rank: u32,
    /// Adapters that are not shown, because they hang at this switch alone.
    pub folded: u32,
}

/// All cables between two marks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bundle {
    /// The marks, the earlier one in front.
    pub ends: [MarkId; 2],
    /// The cables, in the order of the cabling.
    pub cables: Vec<Cable>,
}

/// A view of a fabric.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct View {
    /// Marks, in the order of the cabling.
    pub marks: Vec<Mark>,
    /// Lines, in the order of their marks.
    pub bundles: Vec<Bundle>,
    /// The mark of each node of the fabric: of a folded host its switch's.
    of_node: Vec<MarkId>,
    /// The hops from each mark to others.
    neighbours: Vec<Vec<MarkId>>,
}

/// No switch reaches an adapter.
const FAR: u32 = u32::MAX;

impl View {
    /// The whole fabric, or with `fold` each adapter that has one cable as a part of its switch.
    pub fn new(fabric: &Fabric, fold: bool) -> Self {
        let ranks = ranks(fabric);
        let switch_of = |index: NodeIndex| {
            let node = fabric.node(index);
            let mut cables = node.cabled_ports();
            let only = cables.next().filter(|_| fold && !node.is_switch() && cables.next().is_none());
            only.map(|(_, peer)| peer.node).filter(|peer| fabric.node(*peer).is_switch())
        };
        let mut view = Self { of_node: vec![MarkId(0); fabric.nodes().len()], ..Self::default() };
        for (index, node) in fabric.iter().filter(|(index, _)| switch_of(*index).is_none()) {
            view.of_node[index.index()] = MarkId(view.marks.len() as u32);
            let (label, is_switch) = (fabric.label(index), node.is_switch());
            let rank = ranks[index.index()];
            view.marks.push(Mark { node: index, label, is_switch, rank, folded: 0 });
        }
        for (index, switch) in fabric.iter().filter_map(|(index, _)| Some((index, switch_of(index)?))) {
            let mark = view.of_node[switch.index()];
            view.of_node[index.index()] = mark;
            view.marks[mark.index()].folded += 1;
        }
        view.join(fabric);
        view
    }

    fn join(&mut self, fabric: &Fabric) {
        let mut lines: BTreeMap<[MarkId; 2], Vec<Cable>> = BTreeMap::new();
        for cable in fabric.cables() {
            let (a, b) = (self.mark(cable.a.node), self.mark(cable.b.node));
            if a != b {
                lines.entry([a.min(b), a.max(b)]).or_default().push(cable);
            }
        }
        self.neighbours = vec![Vec::new(); self.marks.len()];
        for [a, b] in lines.keys() {
            self.neighbours[a.index()].push(*b);
            self.neighbours[b.index()].push(*a);
        }
        self.bundles = lines.into_iter().map(|(ends, cables)| Bundle { ends, cables }).collect();
    }

    /// The mark that shows a node.
    pub fn mark(&self, node: NodeIndex) -> MarkId {
        self.of_node.get(node.index()).copied().unwrap_or(MarkId(0))
    }

    /// The marks that a mark has cables to.
    pub fn neighbours(&self, mark: MarkId) -> &[MarkId] {
        self.neighbours.get(mark.index()).map_or(&[], Vec::as_slice)
    }

    /// The highest rank.
    pub fn top(&self) -> u32 {
        self.marks.iter().map(|mark| mark.rank).max().unwrap_or(0)
    }
}

/// How far each node is from the nearest adapter with a cable. Switches that reach none are above all others.
fn ranks(fabric: &Fabric) -> Vec<u32> {
    let mut ranks = vec![FAR; fabric.nodes().len()];
    let mut front: Vec<NodeIndex> = fabric.hosts().map(|(index, _)| index).collect();
    front.iter().for_each(|index| ranks[index.index()] = 0);
    let mut rank = 0;
    while !front.is_empty() {
        rank += 1;
        let mut next = Vec::new();
        for index in front {
            for (_, peer) in fabric.node(index).cabled_ports() {
                if ranks[peer.node.index()] == FAR {
                    ranks[peer.node.index()] = rank;
                    next.push(peer.node);
                }
            }
        }
        front = next;
    }
    ranks.iter_mut().filter(|own| **own == FAR).for_each(|own| *own = rank.max(1));
    ranks
}
