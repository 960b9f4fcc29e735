//! Loads of cables: pairs of hosts that cross each by some tables, and their look in a picture.

use std::collections::BTreeMap;

use weft_picture::{Look, Paint};
use weft_routing::quality::hosts;
use weft_routing::{Lids, Routes};
use weft_topology::{Fabric, NodeIndex, PortRef};
use weft_wire::PortNum;

/// Pairs of hosts, by the port of a switch or host by which their packets leave.
pub type Loads = BTreeMap<PortRef, u64>;

/// The load of every channel: each host sends to each other one. Pairs whose packets do not arrive count as far as they come.
pub fn loads(fabric: &Fabric, lids: &Lids, routes: &Routes) -> Loads {
    let ends: Vec<PortRef> = hosts(fabric, lids).into_iter().filter_map(|lid| lids.owner(lid)).collect();
    let mut senders: BTreeMap<NodeIndex, Vec<PortRef>> = BTreeMap::new();
    for end in &ends {
        if let Some(peer) = fabric.peer(*end).filter(|peer| fabric.node(peer.node).is_switch()) {
            senders.entry(peer.node).or_default().push(*end);
        }
    }
    let mut loads = Loads::new();
    for lid in hosts(fabric, lids) {
        let Some(owner) = lids.owner(lid) else { continue };
        for (leaf, all) in &senders {
            let count = all.iter().filter(|end| **end != owner).count() as u64;
            all.iter().filter(|end| **end != owner).for_each(|end| *loads.entry(*end).or_default() += 1);
            let mut at = *leaf;
            // A packet of a loop goes round for ever; its pair counts once on each switch.
            for _ in 0..fabric.nodes().len() {
                let out = PortRef::new(at, routes.port(at, lid));
                let is_way = out.port != PortNum::NONE && out.port != PortNum::ZERO && count > 0;
                let Some(next) = fabric.peer(out).filter(|_| is_way) else { break };
                *loads.entry(out).or_default() += count;
                if !fabric.node(next.node).is_switch() || next.node == *leaf {
                    break;
                }
                at = next.node;
            }
        }
    }
    loads
}

/// The most pairs on one cable between two switches, in one direction.
pub fn most(fabric: &Fabric, loads: &Loads) -> u64 {
    let is_between = |port: PortRef| {
        let far = fabric.peer(port).is_some_and(|peer| fabric.node(peer.node).is_switch());
        far && fabric.node(port.node).is_switch()
    };
    loads.iter().filter(|(port, _)| is_between(**port)).map(|(_, pairs)| *pairs).max().unwrap_or(0)
}

/// Colours cables by the pairs of the busier direction, from 0 to `end`; those of hosts, which are equal, stay plain.
pub fn paint(look: &mut Look, fabric: &Fabric, loads: &Loads, end: u64) {
    look.scale = Some("pairs of hosts in the busier direction".to_owned());
    look.scale_end = end.to_string();
    for cable in fabric.cables() {
        let both = [cable.a, cable.b].map(|port| loads.get(&port).copied().unwrap_or(0));
        let [there, back] = both;
        look.notes.insert(cable.a, format!("{there} pairs of hosts there, {back} back"));
        let is_between = [cable.a, cable.b].iter().all(|port| fabric.node(port.node).is_switch());
        let is_down = look.cables.get(&cable.a) == Some(&Paint::Down);
        if is_between && !is_down {
            look.cables.insert(cable.a, Paint::Share(there.max(back) as f64 / end.max(1) as f64));
        }
    }
}

#[cfg(test)]
mod tests {
    use weft_routing::minhop;
    use weft_topology::generate::{GenerateOptions, xgft};

    use super::*;

    #[test]
    fn every_pair_is_counted_on_each_cable_of_its_way() {
        let fabric = xgft(&[2, 2], &[1, 2], &GenerateOptions::default()).unwrap();
        let lids = Lids::in_guid_order(&fabric, 0).unwrap();
        let mut routes = minhop(&fabric, &lids);
        let found = loads(&fabric, &lids, &routes);
        // Four hosts: three pairs leave each, and three reach each.
        for (host, _) in fabric.hosts() {
            let port = PortRef::new(host, PortNum(1));
            assert_eq!((found[&port], found[&fabric.peer(port).unwrap()]), (3, 3));
        }
        let between: u64 = found
            .iter()
            .filter(|(port, _)| {
                let peer = fabric.peer(**port).unwrap();
                [port.node, peer.node].iter().all(|node| fabric.node(*node).is_switch())
            })
            .map(|(_, pairs)| pairs)
            .sum();
        assert_eq!(between, 4 * 2 * 2, "two far hosts for each of four, by two cables");
        assert_eq!(most(&fabric, &found), 2);
        // A loop does not hang.
        for table in &mut routes.tables {
            (1..=lids.top().0).for_each(|lid| table.set(weft_wire::Lid(lid), PortNum(1)));
        }
        assert!(!loads(&fabric, &lids, &routes).is_empty());
    }
}
