//! The capacity of hosts' ports: the rate and the MTU of their links, which the path records of their peers follow from.
//!
//! A port that moves to a host of another kind keeps its LID, so that no table and no trap says that its path records are others now. The
//! manager compares what each port carries after a sweep with what it carried before it.

use std::collections::{BTreeMap, BTreeSet};

use weft_wire::Guid;

use super::{Node, Port, View, Way};
use crate::sa::ends::End;

/// What a port of a host carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Carried {
    /// The slower of its link and, behind a vSwitch, of the uplink.
    link: Way,
    /// The first switch that is no vSwitch.
    leaf: Guid,
}

/// What all ports of hosts carry. Nothing is kept for each where all links are alike.
#[derive(Clone, Debug, Default)]
pub(in crate::sa) struct Rates {
    /// What every link carries, where all carry the same.
    alike: Option<Way>,
    each: BTreeMap<Guid, Carried>,
}

/// What the link at a port carries: of which service levels is no matter.
fn carries(port: &Port) -> Way {
    Way { service_levels: u16::MAX, ..port.link }
}

impl Rates {
    fn link(&self, guid: Guid) -> Option<Way> {
        self.each.get(&guid).map(|carried| carried.link).or(self.alike)
    }

    fn leaf(&self, guid: Guid) -> Option<Guid> {
        self.each.get(&guid).map(|carried| carried.leaf)
    }
}

impl View {
    /// What ports carry now, and whose path records are others than before. Those who are `away` are compared when they are back.
    pub(in crate::sa) fn rates(&self, before: &Rates, away: &BTreeSet<Guid>) -> (Rates, Vec<Guid>) {
        let mut after = Rates { alike: self.alike(), each: BTreeMap::new() };
        let is_plain = after.alike.is_some() && before.each.is_empty();
        if is_plain && after.alike == before.alike {
            return (after, Vec::new());
        }
        let trunks_are_alike = self.trunks_are_alike();
        let mut changed = Vec::new();
        for end in self.hosts() {
            let guid = end.guid;
            if away.contains(&guid) {
                continue;
            }
            let Some(now) = self.carried(end) else { continue };
            let other_link = before.link(guid).is_some_and(|link| link != now.link);
            let other_leaf = before.leaf(guid).is_some_and(|leaf| leaf != now.leaf) && !trunks_are_alike;
            if other_link || other_leaf {
                changed.push(guid);
            }
            if after.alike.is_none() {
                after.each.insert(guid, now);
            }
        }
        for guid in away {
            after.each.extend(before.each.get(guid).map(|carried| (*guid, *carried)));
        }
        (after, changed)
    }

    fn links(&self) -> impl Iterator<Item = (&Node, &Port)> {
        let cabled = |port: &&Port| port.peer.is_some() && port.link.megabits > 0;
        self.nodes
            .iter()
            .flat_map(move |node| node.ports.iter().skip(1).filter(cabled).map(move |port| (node, port)))
    }

    /// What every link carries, where all carry the same.
    fn alike(&self) -> Option<Way> {
        let mut links = self.links().map(|(_, port)| carries(port));
        let first = links.next()?;
        links.all(|link| link == first).then_some(first)
    }

    /// Whether all cables between switches carry the same, but for those that are the only one of their switch.
    fn trunks_are_alike(&self) -> bool {
        let ends_between = |(node, port): &(&Node, &Port)| {
            let peer = port.peer.and_then(|peer| self.nodes.get(peer.node as usize));
            let is_trunk = |node: &Node| node.switch.is_some() && self.uplink(node).is_none();
            is_trunk(node) && peer.is_some_and(is_trunk)
        };
        let mut trunks = self.links().filter(ends_between).map(|(_, port)| carries(port));
        trunks.next().is_none_or(|first| trunks.all(|link| link == first))
    }

    /// The port of a switch to other switches, if it has one and no more: a vSwitch has one.
    fn uplink<'a>(&'a self, node: &'a Node) -> Option<&'a Port> {
        let leads_to_switch = |port: &&Port| {
            let peer = port.peer.and_then(|peer| self.nodes.get(peer.node as usize));
            peer.is_some_and(|peer| peer.switch.is_some())
        };
        let mut uplinks = node.ports.iter().skip(1).filter(leads_to_switch);
        uplinks.next().filter(|_| uplinks.next().is_none())
    }

    fn carried(&self, end: &End) -> Option<Carried> {
        let own = self.port(end.at)?;
        let first = self.nodes.get(own.peer?.node as usize)?;
        let link = carries(own);
        let (link, leaf) = match self.uplink(first) {
            Some(uplink) => (link.and(carries(uplink)), self.nodes.get(uplink.peer?.node as usize)?),
            None => (link, first),
        };
        (link.megabits > 0).then_some(Carried { link, leaf: leaf.info.node_guid })
    }
}
