//! Faults that last: impaired cables, frozen nodes and partitions, as the agents at the ends keep them, over their restarts.

use weft_fault::{Damage, Impaired, Nodes};
use weft_node::{ImpairmentCounts, Request};
use weft_topology::{NodeIndex, PortRef};

use super::{Partition, Simulation};
use crate::SeededBug;
use crate::ledger::Asked;

impl Simulation {
    /// What impairments have done, in all nodes that are on.
    pub fn impairment_counts(&self) -> ImpairmentCounts {
        self.nodes()
            .map(weft_node::Node::impairment_counts)
            .fold(ImpairmentCounts::default(), |sum, more| sum + more)
    }

    pub(super) fn impair(&mut self, impaired: Impaired<PortRef>) {
        let Some(peer) = self.fabric.peer(impaired.at) else { return };
        let damage: Vec<_> = impaired.damage(peer).collect();
        damage.iter().for_each(|damage| self.begin_damage(*damage));
        self.impaired.insert(impaired, damage);
    }

    pub(super) fn mend(&mut self, impaired: Impaired<PortRef>) {
        for damage in self.impaired.remove(&impaired).unwrap_or_default() {
            let lasts = self.impaired.values().flatten().any(|other| *other == damage);
            if let (false, Damage::Impaired { at, how, seed }) = (lasts, damage) {
                let request = Request::Mend { at: self.at(at), how, seed };
                self.ask_end(at, request);
            }
        }
    }

    /// A node stops answering, or goes on when no other fault keeps it.
    pub(super) fn freeze(&mut self, node: NodeIndex, frozen: bool) {
        let faults = self.frozen.entry(node).or_default();
        *faults = if frozen { *faults + 1 } else { faults.saturating_sub(1) };
        let frozen = *faults > 0;
        if !frozen {
            self.frozen.remove(&node);
        }
        self.tell_frozen(node, frozen);
    }

    fn tell_frozen(&mut self, node: NodeIndex, frozen: bool) {
        if self.device(node).is_some() {
            let device = self.device_slots[node.index()].device;
            self.request(node, Asked::Wiring, Request::Freeze { device, frozen });
        }
    }

    /// Unplugs all cables between some nodes and the others.
    pub(super) fn part(&mut self, nodes: Nodes<NodeIndex>) {
        let within = |end: PortRef| nodes.0.contains(&end.node);
        let between = self.fabric.cables().filter(|cable| within(cable.a) != within(cable.b));
        let cables: Vec<usize> =
            between.filter_map(|cable| self.cabling.find(cable.a)).map(|(cable, _)| cable).collect();
        let mut kept = Vec::new();
        for cable in cables {
            self.cabling.cables[cable].parted += 1;
            kept.push((cable, self.cabling.cables[cable].life));
            self.cable_changed(cable);
        }
        self.partitions.push(Partition { nodes, cables: kept });
    }

    /// Ends a partition.
    pub(super) fn heal(&mut self, nodes: &Nodes<NodeIndex>) {
        let Some(place) = self.partitions.iter().position(|parted| parted.nodes == *nodes) else { return };
        for (cable, life) in self.partitions.remove(place).cables {
            // One that was taken out meanwhile has left its number to another.
            if self.cabling.cables[cable].life == life {
                self.cabling.cables[cable].parted -= 1;
                self.cable_changed(cable);
            }
        }
    }

    /// An agent's peers take it for no one: no link between it and other agents comes up.
    pub(super) fn distrust(&mut self, node: NodeIndex) {
        let nodes = Nodes(self.members(self.home(node)));
        self.part(nodes);
    }

    /// They know it again.
    pub(super) fn trust(&mut self, node: NodeIndex) {
        let nodes = Nodes(self.members(self.home(node)));
        self.heal(&nodes);
    }

    /// Whether every node that is on has exactly the faults that last at its ports; the first port that differs.
    pub fn lasting_faults_differ(&self) -> Option<PortRef> {
        let of = |at: PortRef| {
            let lasting = self.impaired.values().flatten();
            let mut wanted: Vec<_> = lasting
                .filter_map(|damage| match *damage {
                    Damage::Impaired { at: end, how, seed } if end == at => Some((how, seed)),
                    _ => None,
                })
                .collect();
            wanted.sort_unstable();
            wanted.dedup();
            wanted
        };
        let ports = self
            .fabric
            .iter()
            .flat_map(|(index, node)| node.external_ports().map(move |(port, _)| PortRef::new(index, port)));
        ports.filter(|at| self.device(at.node).is_some()).find(|at| {
            let mut there = self.node(at.node).map(|node| node.impairments(self.at(*at))).unwrap_or_default();
            there.sort_unstable();
            let frozen = self.node(at.node).is_some_and(|node| node.is_frozen(self.at(*at).device));
            there != of(*at) || frozen != self.frozen.contains_key(&at.node)
        })
    }

    /// A device is on again, and it and what arrives at its ports is as faulty as before.
    pub(super) fn impair_again(&mut self, node: NodeIndex) {
        if self.options.bug == Some(SeededBug::LostFault) {
            return;
        }
        let damage: Vec<_> = self.impaired.values().flatten().copied().collect();
        damage.into_iter().filter(|damage| damage.end().node == node).for_each(|one| self.begin_damage(one));
        if self.frozen.contains_key(&node) {
            self.tell_frozen(node, true);
        }
    }

    fn begin_damage(&mut self, damage: Damage<PortRef>) {
        if let Damage::Impaired { at, how, seed } = damage {
            let request = Request::Impair { at: self.at(at), how, seed };
            self.ask_end(at, request);
        }
    }

    fn ask_end(&mut self, end: PortRef, request: Request) {
        if self.device(end.node).is_some() {
            self.request(end.node, Asked::Wiring, request);
        }
    }
}
