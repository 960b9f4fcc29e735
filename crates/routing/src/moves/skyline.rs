//! Which switches stand between two leaves of a fat-tree.

use weft_topology::{Fabric, FabricBuilder, NodeIndex, PortRef};

use super::network::Network;
use crate::input::Input;
use crate::lids::Lids;
use crate::options::EngineOptions;
use crate::tree::{Tree, Tuple};

/// The switches of a fat-tree in the order of their tuples, so that the tops of every sub-tree stand side by side.
///
/// A sub-tree of level k is what shares the first k digits, and its tops are its switches of rank k: they are its
/// skyline, the only way in for packets from elsewhere (vSwitch paper of 2017, 6.1, property 2).
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
        let (physical, names) = collapsed(fabric, network, vswitches)?;
        let tree = Tree::new(&Input { fabric: &physical, lids: &Lids::new(), options })?;
        let mut switches = Vec::with_capacity(tree.tuples.len());
        for (at, tuple) in (0..).zip(&tree.tuples) {
            let number = network.graph.number(names[tree.node(at).index()]);
            switches.push((tree.rank(at), *tuple, number.ok_or("a switch is not in the fabric")?));
        }
        switches.sort_unstable();
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

/// The fabric with a host in the place of every vSwitch: its physical function where that is there, the first adapter else.
/// Gives for each node the one that it was.
fn collapsed(
    fabric: &Fabric,
    network: &Network,
    vswitches: &[NodeIndex],
) -> Result<(Fabric, Vec<NodeIndex>), String> {
    if vswitches.is_empty() {
        return Ok((fabric.clone(), fabric.iter().map(|(index, _)| index).collect()));
    }
    let is_virtual =
        |node: NodeIndex| network.graph.number(node).is_some_and(|switch| network.is_virtual(switch));
    let below = |node: NodeIndex| {
        let mut peers = fabric.node(node).cabled_ports().map(|(_, peer)| peer);
        peers.any(|peer| is_virtual(peer.node))
    };
    let stand_ins: Vec<(PortRef, PortRef)> =
        vswitches.iter().filter_map(|vswitch| stand_in(fabric, *vswitch)).collect();
    let mut builder = FabricBuilder::new();
    let (mut names, mut places) = (Vec::new(), vec![None; fabric.nodes().len()]);
    let mut stands = vec![false; fabric.nodes().len()];
    stand_ins.iter().for_each(|(host, _)| stands[host.node.index()] = true);
    for (index, node) in fabric.iter() {
        let is_host = !node.is_switch();
        if is_virtual(index) || (is_host && below(index) && !stands[index.index()]) {
            continue;
        }
        places[index.index()] = Some(builder.add_node(node.clone()).map_err(|error| error.to_string())?);
        names.push(index);
    }
    let cables = fabric.cables().map(|cable| (cable.a, cable.b)).chain(stand_ins.iter().copied());
    for (a, b) in cables {
        if let (Some(x), Some(y)) = (places[a.node.index()], places[b.node.index()]) {
            let joined = builder.connect(PortRef::new(x, a.port), PortRef::new(y, b.port));
            joined.map_err(|error| error.to_string())?;
        }
    }
    Ok((builder.build(), names))
}

/// The adapter's port that stands for a vSwitch, and the port of the switch above.
fn stand_in(fabric: &Fabric, vswitch: NodeIndex) -> Option<(PortRef, PortRef)> {
    let peers = || fabric.node(vswitch).cabled_ports().map(|(_, peer)| peer);
    let host = peers().find(|peer| !fabric.node(peer.node).is_switch())?;
    let above = peers().find(|peer| fabric.node(peer.node).is_switch())?;
    Some((host, above))
}
