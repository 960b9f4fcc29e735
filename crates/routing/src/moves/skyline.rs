//! The switches between two leaves of a fat-tree.

use weft_topology::{Fabric, NodeIndex};

use super::network::Network;
use crate::collapse::{Collapsed, VSwitch};
use crate::input::Input;
use crate::lids::Lids;
use crate::options::EngineOptions;
use crate::sorted;
use crate::tree::{Tree, Tuple};

/// The switches of a fat-tree in the order of their tuples, so that the tops of every sub-tree stand side by side.
///
/// A sub-tree of level k is what shares the first k digits, and its tops are its switches of rank k: they are its
/// skyline, the only way in for packets from outside (vSwitch paper of 2017, 6.1, property 2).
#[derive(Debug)]
pub(super) struct Skylines {
    /// By rank, then by tuple: the tuple and the switch.
    order: Vec<(Tuple, u32)>,
    /// By rank: where its switches begin in `order`; and the end.
    first: Vec<usize>,
    /// By switch: its rank and its place in `order`; vSwitches have none.
    places: Vec<Option<(u32, u32)>>,
}

impl Skylines {
    /// Says why where the cabling is no tree.
    pub(super) fn new(
        fabric: &Fabric,
        network: &Network,
        vswitches: &[NodeIndex],
        options: &EngineOptions,
    ) -> Result<Self, String> {
        // Hosts in the tree are what vSwitches stand for, so those are taken out first.
        let physical = if vswitches.is_empty() {
            None
        } else {
            let found = vswitches.iter().filter_map(|vswitch| VSwitch::at(fabric, *vswitch)).collect();
            Some(Collapsed::new(fabric, &Lids::new(), found).ok_or("the vSwitches have cables in common")?)
        };
        let tree_fabric = physical.as_ref().map_or(fabric, Collapsed::fabric);
        let tree = Tree::new(&Input { fabric: tree_fabric, lids: &Lids::new(), options })?;
        let whole = |node| physical.as_ref().map_or(node, |physical| physical.whole(node));
        let mut switches = Vec::with_capacity(tree.tuples.len());
        for (at, tuple) in (0..).zip(&tree.tuples) {
            let number = network.graph.number(whole(tree.node(at)));
            switches.push((tree.rank(at), *tuple, number.ok_or("a switch is not in the fabric")?));
        }
        sorted::by_key(&mut switches, |item| *item);
        let ranks = 0..=tree.rank_count() as u32;
        let first = ranks.map(|rank| switches.partition_point(|(other, ..)| *other < rank)).collect();
        let mut places = vec![None; network.len()];
        for (place, (rank, _, switch)) in (0..).zip(&switches) {
            places[*switch as usize] = Some((*rank, place));
        }
        let order = switches.into_iter().map(|(_, tuple, switch)| (tuple, switch)).collect();
        Ok(Self { order, first, places })
    }

    /// The tops of all sub-trees that have just one of two leaves, and of the smallest that has both: from the leaves upwards
    /// (vSwitch paper of 2017, 6.2). `None` where one of them has no place in the tree.
    pub(super) fn between(&self, a: u32, b: u32) -> Option<Vec<u32>> {
        let [(a_rank, a_tuple), (b_rank, b_tuple)] = [self.place(a)?, self.place(b)?];
        let both = a_rank.min(b_rank) as usize;
        let digits = a_tuple.digits().iter().zip(b_tuple.digits()).take(both);
        let common = digits.take_while(|(a, b)| a == b).count() as u32;
        let mut marked = Vec::new();
        for rank in (common..=a_rank.max(b_rank)).rev() {
            if rank <= a_rank {
                marked.extend(self.tops(rank, a_tuple));
            }
            if rank <= b_rank && (rank > common || rank > a_rank) {
                marked.extend(self.tops(rank, b_tuple));
            }
        }
        Some(marked)
    }

    fn place(&self, switch: u32) -> Option<(u32, &Tuple)> {
        let (rank, place) = self.places[switch as usize]?;
        Some((rank, &self.order[place as usize].0))
    }

    /// The switches of a rank that share as many digits with a tuple.
    fn tops(&self, rank: u32, tuple: &Tuple) -> impl Iterator<Item = u32> {
        let prefix = |tuple: &Tuple| {
            let digits = tuple.digits();
            digits.len().min(rank as usize)
        };
        let wanted = &tuple.digits()[..prefix(tuple)];
        let all = &self.order[self.first[rank as usize]..self.first[rank as usize + 1]];
        let from = all.partition_point(|(other, _)| &other.digits()[..prefix(other)] < wanted);
        let to = all.partition_point(|(other, _)| &other.digits()[..prefix(other)] <= wanted);
        all[from..to].iter().map(|(_, switch)| *switch)
    }
}
