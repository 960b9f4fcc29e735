//! A fabric seen as a fat-tree: where every switch stands in it, and which cables lead up and down.
//!
//! ```text
//!   rank 0      ▢   ▢   ▢   ▢      roots
//!               │╲ ╱│   │╲ ╱│      a group is all cables between two switches;
//!   rank 1      ▢   ▢   ▢   ▢      it leads up from the lower switch and down from the upper one
//!               │╲ ╱│   │╲ ╱│
//!   rank 2      ▢   ▢   ▢   ▢      leaves: switches with compute nodes
//! ```

pub(crate) mod detours;
mod ends;
mod ranks;
pub(crate) mod reach;
mod tuples;

use weft_topology::{Fabric, NodeIndex};
use weft_wire::PortNum;

use crate::input::Input;
use crate::routing::Ranks;
use crate::sorted;
use crate::switches::SwitchGraph;

use reach::Link;

pub(crate) use ends::{End, EndKind};
pub(crate) use tuples::Tuple;

/// How many ranks of switches a tree may have, as in OpenSM.
pub(crate) const RANKS_MAX: u32 = 8;

/// All cables between two switches of neighbouring ranks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Group {
    /// The switch that is further from the roots.
    pub(crate) lower: u32,
    /// The one that is nearer to them.
    pub(crate) upper: u32,
    /// Where its cables begin in [`Tree::cables`], and where they end.
    cables: (u32, u32),
}

/// One cable of a group.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cable {
    /// The port of the lower switch.
    pub(crate) lower: PortNum,
    /// The port of the upper switch.
    pub(crate) upper: PortNum,
}

/// A fabric as a fat-tree. Switches go by their number in `graph`.
#[derive(Debug)]
pub(crate) struct Tree {
    pub(crate) graph: SwitchGraph,
    /// By switch: how many cables below the highest roots. Every cable joins neighbouring ranks.
    pub(crate) ranks: Vec<u32>,
    /// By switch: its place in the tree.
    pub(crate) tuples: Vec<Tuple>,
    /// The switches with compute nodes, in the order of their tuples.
    pub(crate) leaves: Vec<u32>,
    /// The end ports that have LIDs and a switch, by switch and port; a switch's own, at port 0, comes first.
    pub(crate) ends: Vec<End>,
    end_rows: Vec<u32>,
    /// By lower switch, then by the tuple of the upper one.
    pub(crate) groups: Vec<Group>,
    up_rows: Vec<u32>,
    /// By upper switch, then by the tuple of the lower one: places in `groups`.
    down: Vec<u32>,
    down_rows: Vec<u32>,
    /// By group, then by the port of the lower switch.
    pub(crate) cables: Vec<Cable>,
    /// What the tree is like beyond what was asked for, one sentence each.
    pub(crate) notes: Vec<String>,
}

impl Tree {
    /// Ranks the switches of a fabric: from the given roots downwards, or from the leaves upwards where no roots
    /// are given. Fails with a sentence that names the node when the cables make no tree.
    pub(crate) fn new(input: &Input<'_>) -> Result<Self, String> {
        let graph = SwitchGraph::new(input.fabric);
        let ends = ends::Ends::new(input, &graph);
        let mut notes = Vec::new();
        let ranks = ranks::rank(input, &graph, &ends.is_leaf, &mut notes)?;
        let tuples = tuples::tuples(input.fabric, &graph, &ranks);
        let mut leaves: Vec<u32> = (0..graph.len() as u32).filter(|at| ends.is_leaf[*at as usize]).collect();
        sorted::numbers(&mut leaves, |at| tuples[at as usize]);
        let mut tree = Self {
            graph,
            ranks,
            tuples,
            leaves,
            ends: ends.list,
            end_rows: ends.rows,
            groups: Vec::new(),
            up_rows: Vec::new(),
            down: Vec::new(),
            down_rows: Vec::new(),
            cables: Vec::new(),
            notes,
        };
        tree.group(input.fabric);
        Ok(tree)
    }

    /// Gathers cables into groups.
    fn group(&mut self, fabric: &Fabric) {
        let mut ups: Vec<(Tuple, u32, Cable)> = Vec::new();
        self.up_rows.push(0);
        for lower in 0..self.graph.len() as u32 {
            let node = self.graph.nodes[lower as usize];
            let above = |to: u32| self.ranks[to as usize] < self.ranks[lower as usize];
            ups.clear();
            for way in self.graph.ways(lower).iter().filter(|way| above(way.to)) {
                let peer = fabric.peer(weft_topology::PortRef::new(node, way.port));
                let upper = peer.map_or(PortNum::NONE, |peer| peer.port);
                ups.push((self.tuples[way.to as usize], way.to, Cable { lower: way.port, upper }));
            }
            sorted::by_key(&mut ups, |(tuple, to, cable)| (*tuple, *to, cable.lower));
            for run in ups.chunk_by(|a, b| a.1 == b.1) {
                let first = self.cables.len() as u32;
                self.cables.extend(run.iter().map(|(.., cable)| *cable));
                let cables = (first, self.cables.len() as u32);
                self.groups.push(Group { lower, upper: run[0].1, cables });
            }
            self.up_rows.push(self.groups.len() as u32);
        }
        self.down = (0..self.groups.len() as u32).collect();
        let groups = &self.groups;
        sorted::numbers(&mut self.down, |place| {
            let group = &groups[place as usize];
            (group.upper, self.tuples[group.lower as usize], group.lower)
        });
        let rows = (0..=self.graph.len() as u32)
            .map(|upper| self.down.partition_point(|place| groups[*place as usize].upper < upper) as u32);
        self.down_rows = rows.collect();
    }

    /// The groups that lead up from a switch, with their places among all groups.
    pub(crate) fn up(&self, switch: u32) -> impl Iterator<Item = (usize, &Group)> + Clone {
        let row = self.up_rows[switch as usize] as usize..self.up_rows[switch as usize + 1] as usize;
        row.clone().zip(&self.groups[row])
    }

    /// The groups that lead down from a switch, with their places among all groups.
    pub(crate) fn down(&self, switch: u32) -> impl Iterator<Item = (usize, &Group)> + Clone {
        let row = self.down_rows[switch as usize] as usize..self.down_rows[switch as usize + 1] as usize;
        self.down[row].iter().map(|place| (*place as usize, &self.groups[*place as usize]))
    }

    /// The switches of each rank.
    pub(crate) fn by_rank(&self) -> Vec<Vec<u32>> {
        let mut by_rank = vec![Vec::new(); self.rank_count()];
        for at in 0..self.graph.len() as u32 {
            by_rank[self.rank(at) as usize].push(at);
        }
        by_rank
    }

    /// The port of the upper switch for the first cable of a group.
    pub(crate) fn first_port_down(&self, group: &Group) -> PortNum {
        self.cables[group.cables.0 as usize].upper
    }

    /// The port of the lower switch for the first cable of a group.
    pub(crate) fn first_port_up(&self, group: &Group) -> PortNum {
        self.cables[group.cables.0 as usize].lower
    }

    /// The cables of a group, with their places among all cables.
    pub(crate) fn cables(&self, group: &Group) -> impl Iterator<Item = (usize, &Cable)> + Clone {
        let row = group.cables.0 as usize..group.cables.1 as usize;
        row.clone().zip(&self.cables[row])
    }

    /// The end ports of a switch, by port; its own comes first.
    pub(crate) fn ends(&self, switch: u32) -> &[End] {
        &self.ends[self.end_places(switch)]
    }

    /// Whether hosts are cabled to a switch; nodes that serve management alone do not count.
    pub(crate) fn has_hosts(&self, switch: u32) -> bool {
        self.ends(switch).iter().any(|end| end.kind.is_host())
    }

    /// The places in `ends` of the end ports of a switch.
    pub(crate) fn end_places(&self, switch: u32) -> std::ops::Range<usize> {
        self.end_rows[switch as usize] as usize..self.end_rows[switch as usize + 1] as usize
    }

    /// The rank of a switch.
    pub(crate) fn rank(&self, switch: u32) -> u32 {
        self.ranks[switch as usize]
    }

    /// How many ranks there are.
    pub(crate) fn rank_count(&self) -> usize {
        self.ranks.iter().max().map_or(0, |highest| *highest as usize + 1)
    }

    /// The ranks by node, for a [`crate::Routing`].
    pub(crate) fn ranks_by_node(&self) -> Ranks {
        Ranks(self.graph.by_node(self.ranks.iter().copied().map(Some)))
    }

    /// The node ids of the switches of rank 0, in the order of their tuples.
    pub(crate) fn roots(&self, fabric: &Fabric) -> Vec<String> {
        let mut roots: Vec<u32> = (0..self.graph.len() as u32).filter(|at| self.rank(*at) == 0).collect();
        sorted::numbers(&mut roots, |at| self.tuples[at as usize]);
        roots.into_iter().map(|at| fabric.node(self.node(at)).id.clone()).collect()
    }

    /// The port by which a link begins.
    pub(crate) fn port(&self, link: Link) -> Option<PortNum> {
        let cable = self.cables.get((link / 2) as usize)?;
        Some(if link.is_multiple_of(2) { cable.upper } else { cable.lower })
    }

    /// The node of a switch.
    pub(crate) fn node(&self, switch: u32) -> NodeIndex {
        self.graph.nodes[switch as usize]
    }
}

#[cfg(test)]
mod tests;
