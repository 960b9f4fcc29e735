//! Differences of two cablings, names and LIDs aside.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use weft_wire::{Guid, NodeType, PortNum};

use crate::{Cable, Fabric, LinkRate, NodeIndex};

/// A port by what does not change with a node's place in a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct PortId {
    /// The node.
    pub guid: Guid,
    /// Its port.
    pub port: PortNum,
}

weft_wire::worded! {
    /// Something that one fabric has and the other has not, or has otherwise. The first fabric is the one expected.
    #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
    #[serde(tag = "difference", rename_all = "snake_case")]
    #[non_exhaustive]
    pub enum Difference {
        /// Only the first has this node.
        MissingNode {
            /// Its GUID.
            guid: Guid,
            /// Its id in the first.
            id: String,
        } => ("- node {guid} \"{id}\""),
        /// Only the second has this node.
        ExtraNode {
            /// Its GUID.
            guid: Guid,
            /// Its id in the second.
            id: String,
        } => ("+ node {guid} \"{id}\""),
        /// The node is of another kind.
        Kind {
            /// Its GUID.
            guid: Guid,
            /// Its kind in the first.
            first: NodeType,
            /// Its kind in the second.
            second: NodeType,
        } => ("! node {guid} kind {first} -> {second}"),
        /// The node has another number of ports.
        PortCount {
            /// Its GUID.
            guid: Guid,
            /// How many in the first.
            first: u8,
            /// How many in the second.
            second: u8,
        } => ("! node {guid} ports {first} -> {second}"),
        /// Only the first has this cable.
        MissingCable {
            /// One end.
            a: PortId,
            /// The other end.
            b: PortId,
        } => ("- cable {a} {b}"),
        /// Only the second has this cable.
        ExtraCable {
            /// One end.
            a: PortId,
            /// The other end.
            b: PortId,
        } => ("+ cable {a} {b}"),
        /// Both have the cable, at different rates.
        Rate {
            /// One end.
            a: PortId,
            /// The other end.
            b: PortId,
            /// Its rate in the first.
            first: LinkRate,
            /// Its rate in the second.
            second: LinkRate,
        } => ("! cable {a} {b} rate {first} -> {second}"),
    }
}

/// Compares two cablings. Nodes are matched by GUID, and adapters by the GUIDs of their ports where one side does not know the node's, as
/// in a list of ports; ids, descriptions, LIDs and the order of nodes do not matter. Differences come in GUID order, nodes before cables.
pub fn diff(first: &Fabric, second: &Fabric) -> Vec<Difference> {
    let mut differences = Vec::new();
    let by_ports = by_ports(first, second);
    let known_as = |guid: Guid| by_ports.get(&guid).copied().unwrap_or(guid);
    let other_name: BTreeMap<Guid, Guid> = by_ports.iter().map(|(second, first)| (*first, *second)).collect();
    for (guid, index) in &first.by_guid {
        let node = first.node(*index);
        // A list of ports does not say how many an adapter has.
        if other_name.contains_key(guid) {
            continue;
        }
        let Some(other) = second.by_guid(*guid).map(|index| second.node(index)) else {
            differences.push(Difference::MissingNode { guid: *guid, id: node.id.clone() });
            continue;
        };
        if node.kind != other.kind {
            differences.push(Difference::Kind { guid: *guid, first: node.kind, second: other.kind });
        }
        let (count, other_count) = (node.port_count(), other.port_count());
        if count != other_count {
            differences.push(Difference::PortCount { guid: *guid, first: count, second: other_count });
        }
    }
    for (guid, index) in &second.by_guid {
        if first.by_guid(known_as(*guid)).is_none() {
            differences.push(Difference::ExtraNode { guid: *guid, id: second.node(*index).id.clone() });
        }
    }
    let (cables, other_cables) = (by_ends(first, |guid| guid), by_ends(second, known_as));
    for (&(a, b), &rate) in &cables {
        match other_cables.get(&(a, b)) {
            None => differences.push(Difference::MissingCable { a, b }),
            Some(&other) if other != rate => {
                differences.push(Difference::Rate { a, b, first: rate, second: other });
            }
            Some(_) => {}
        }
    }
    let extra = other_cables.keys().filter(|ends| !cables.contains_key(*ends));
    differences.extend(extra.map(|&(a, b)| Difference::ExtraCable { a, b }));
    differences
}

/// The adapters of the second fabric whose GUIDs the first does not have, and which have the ports of one of the first's that the second
/// does not have: by their GUIDs, those of the first.
fn by_ports(first: &Fabric, second: &Fabric) -> BTreeMap<Guid, Guid> {
    let alone = |fabric: &Fabric, other: &Fabric| -> Vec<(NodeIndex, Guid)> {
        let nodes = fabric.iter().filter(|(_, node)| !node.is_switch() && other.by_guid(node.guid).is_none());
        nodes.map(|(index, node)| (index, node.guid)).collect()
    };
    let mut ports: BTreeMap<(Guid, PortNum), Guid> = BTreeMap::new();
    for (index, guid) in alone(first, second) {
        let ends = first.node(index).end_ports().filter(|(_, port)| port.guid != Guid(0));
        ports.extend(ends.map(|(number, port)| ((port.guid, number), guid)));
    }
    let match_of = |(index, guid): (NodeIndex, Guid)| {
        let mut cabled = second.node(index).end_ports().filter(|(_, port)| port.peer.is_some());
        let found = cabled.find_map(|(number, port)| ports.get(&(port.guid, number)))?;
        Some((guid, *found))
    };
    let mut taken = BTreeSet::new();
    alone(second, first).into_iter().filter_map(match_of).filter(|(_, first)| taken.insert(*first)).collect()
}

fn by_ends(fabric: &Fabric, known_as: impl Fn(Guid) -> Guid) -> BTreeMap<(PortId, PortId), LinkRate> {
    let id = |(guid, port)| PortId { guid: known_as(guid), port };
    let ends = |cable: &Cable| {
        let (a, b) = (id(fabric.rank(cable.a)), id(fabric.rank(cable.b)));
        (a.min(b), a.max(b))
    };
    fabric.cables().map(|cable| (ends(&cable), cable.rate)).collect()
}

weft_wire::displayed!(PortId { guid, port } => "{guid}[{port}]");
