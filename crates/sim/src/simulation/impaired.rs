//! Faults that last: impaired cables, frozen nodes and partitions, as the agents at the ends keep them, over their restarts.

use weft_fault::{Damage, Impaired, Nodes};
use weft_node::{ImpairmentCounts, Request};
use weft_topology::{NodeIndex, PortRef};

use super::Simulation;
use crate::SeededBug;
use crate::nodes::Asked;

impl Simulation {
    /// What impairments have done, in all nodes that are on.
    pub fn impairment_counts(&self) -> ImpairmentCounts {
        let counts = self.nodes.iter().map(weft_node::Node::impairment_counts);
        counts.fold(ImpairmentCounts::default(), |sum, more| sum + more)
    }

    pub(super) fn impair(&mut self, impaired: Impaired<PortRef>) {
        let damage = self.cabling.impair(impaired, &self.world);
        damage.into_iter().for_each(|damage| self.begin_damage(damage));
    }

    pub(super) fn mend(&mut self, impaired: &Impaired<PortRef>) {
        for damage in self.cabling.mend(impaired) {
            if let Damage::Impaired { at, how, seed } = damage {
                let request = Request::Mend { at: self.nodes.at(at), how, seed };
                self.ask_end(at, request);
            }
        }
    }

    /// A node stops answering, or goes on when no other fault keeps it.
    pub(super) fn freeze(&mut self, node: NodeIndex, frozen: bool) {
        let frozen = self.nodes.freeze(node, frozen);
        self.tell_frozen(node, frozen);
    }

    fn tell_frozen(&mut self, node: NodeIndex, frozen: bool) {
        if self.device(node).is_some() {
            let device = self.nodes.name_of(node);
            self.request(node, Asked::Wiring, Request::Freeze { device, frozen });
        }
    }

    /// Unplugs all cables between some nodes and the others.
    pub(super) fn part(&mut self, nodes: Nodes<NodeIndex>) {
        let cables = self.cabling.part(nodes, &self.world);
        cables.into_iter().for_each(|cable| self.cable_changed(cable));
    }

    /// Ends a partition.
    pub(super) fn heal(&mut self, nodes: &Nodes<NodeIndex>) {
        let cables = self.cabling.heal(nodes);
        cables.into_iter().for_each(|cable| self.cable_changed(cable));
    }

    /// The nodes of an agent: its peers take it for no one while its identity is bad, so no link between it and other agents comes up.
    pub(super) fn of_agent(&self, node: NodeIndex) -> Nodes<NodeIndex> {
        Nodes(self.nodes.members(self.nodes.home(node)))
    }

    /// Whether every node that is on has exactly the faults that last at its ports; the first port that differs.
    pub fn lasting_faults_differ(&self) -> Option<PortRef> {
        let ports = self
            .fabric()
            .iter()
            .flat_map(|(index, node)| node.external_ports().map(move |(port, _)| PortRef::new(index, port)));
        ports.filter(|at| self.device(at.node).is_some()).find(|at| {
            let (node, place) = (self.node(at.node), self.nodes.at(*at));
            let mut there = node.map(|node| node.impairments(place)).unwrap_or_default();
            there.sort_unstable();
            let frozen = node.is_some_and(|node| node.is_frozen(place.device));
            there != self.cabling.impairments(*at) || frozen != self.nodes.is_frozen(at.node)
        })
    }

    /// A device is on again, and it and what arrives at its ports is as faulty as before.
    pub(super) fn impair_again(&mut self, node: NodeIndex) {
        if self.world.options.bug == Some(SeededBug::LostFault) {
            return;
        }
        let damage: Vec<_> = self.cabling.damage().copied().collect();
        damage.into_iter().filter(|damage| damage.end().node == node).for_each(|one| self.begin_damage(one));
        if self.nodes.is_frozen(node) {
            self.tell_frozen(node, true);
        }
    }

    fn begin_damage(&mut self, damage: Damage<PortRef>) {
        if let Damage::Impaired { at, how, seed } = damage {
            let request = Request::Impair { at: self.nodes.at(at), how, seed };
            self.ask_end(at, request);
        }
    }

    fn ask_end(&mut self, end: PortRef, request: Request) {
        if self.device(end.node).is_some() {
            self.request(end.node, Asked::Wiring, request);
        }
    }
}
