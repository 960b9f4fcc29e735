//! Faults that last, over the restarts of the agents at the ends: impaired cables and partitions.

use std::collections::BTreeMap;

use weft_fault::{Damage, Impaired, Impairment, Nodes};
use weft_topology::{NodeIndex, PortRef};

use super::Cabling;
use crate::world::World;

/// Faults that last.
#[derive(Debug, Default)]
pub(super) struct Lasting {
    /// What impairs cables, and what it does to the ends of each.
    impaired: BTreeMap<Impaired<PortRef>, Vec<Damage<PortRef>>>,
    partitions: Vec<Partition>,
}

/// A partition that lasts.
#[derive(Debug)]
struct Partition {
    nodes: Nodes<NodeIndex>,
    /// The numbers and lives of the cables that it keeps out.
    cables: Vec<(usize, u32)>,
}

impl Cabling {
    /// A cable is impaired. What that does to its ends; nothing without a cable.
    pub(crate) fn impair(&mut self, impaired: Impaired<PortRef>, world: &World) -> Vec<Damage<PortRef>> {
        let Some(peer) = world.fabric.peer(impaired.at) else { return Vec::new() };
        let damage: Vec<_> = impaired.damage(peer).collect();
        self.lasting.impaired.insert(impaired, damage.clone());
        damage
    }

    /// An impairment ends. What is at no end any more.
    pub(crate) fn mend(&mut self, impaired: &Impaired<PortRef>) -> Vec<Damage<PortRef>> {
        let mut ended = self.lasting.impaired.remove(impaired).unwrap_or_default();
        ended.retain(|damage| self.damage().all(|other| other != damage));
        ended
    }

    /// What impairments do to ends.
    pub(crate) fn damage(&self) -> impl Iterator<Item = &Damage<PortRef>> {
        self.lasting.impaired.values().flatten()
    }

    /// The impairments of one end, in order, each once.
    pub(crate) fn impairments(&self, end: PortRef) -> Vec<(Impairment, u32)> {
        let of_end = |damage: &Damage<PortRef>| match *damage {
            Damage::Impaired { at, how, seed } if at == end => Some((how, seed)),
            _ => None,
        };
        let mut all: Vec<_> = self.damage().filter_map(of_end).collect();
        all.sort_unstable();
        all.dedup();
        all
    }

    /// Unplugs all cables between some nodes and the others. The cables that may change.
    pub(crate) fn part(&mut self, nodes: Nodes<NodeIndex>, world: &World) -> Vec<usize> {
        let within = |end: PortRef| nodes.0.contains(&end.node);
        let between = world.fabric.cables().filter(|cable| within(cable.a) != within(cable.b));
        let parted: Vec<usize> =
            between.filter_map(|cable| self.find(cable.a)).map(|(cable, _)| cable).collect();
        parted.iter().for_each(|cable| self.cables[*cable].parted += 1);
        let cables = parted.iter().map(|cable| (*cable, self.cables[*cable].life)).collect();
        self.lasting.partitions.push(Partition { nodes, cables });
        parted
    }

    /// Ends a partition. The cables that may change.
    pub(crate) fn heal(&mut self, nodes: &Nodes<NodeIndex>) -> Vec<usize> {
        let partitions = &mut self.lasting.partitions;
        let Some(place) = partitions.iter().position(|parted| parted.nodes == *nodes) else {
            return Vec::new();
        };
        // One that was taken out meanwhile has left its number to another.
        let is_same = |&(cable, life): &(usize, u32)| self.cables[cable].life == life;
        let cables = partitions.remove(place).cables;
        let healed: Vec<usize> = cables.into_iter().filter(is_same).map(|(cable, _)| cable).collect();
        healed.iter().for_each(|cable| self.cables[*cable].parted -= 1);
        healed
    }
}
