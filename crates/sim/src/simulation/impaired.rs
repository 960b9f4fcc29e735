//! Impairments of cables: as the agents at both ends keep them, over their restarts.

use weft_fault::{Damage, Impaired};
use weft_node::{ImpairmentCounts, Request};
use weft_topology::{NodeIndex, PortRef};

use super::Simulation;
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

    /// A device is on again, and what arrives at its ports is impaired as before.
    pub(super) fn impair_again(&mut self, node: NodeIndex) {
        let damage: Vec<_> = self.impaired.values().flatten().copied().collect();
        damage.into_iter().filter(|damage| damage.end().node == node).for_each(|one| self.begin_damage(one));
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
