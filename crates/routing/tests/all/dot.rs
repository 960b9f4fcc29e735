//! ORCS's DOT graphs.

use std::collections::BTreeMap;

use proptest::prelude::*;
use weft_routing::files::write_dot;
use weft_routing::{Lids, Routes, minhop};
use weft_topology::generate::{GenerateOptions, RandomFabric, random};
use weft_topology::{Fabric, PortRef, parse};
use weft_wire::{Guid, NodeType, PortNum};

/// What a network is, whatever the numbers of nodes: the kinds of nodes, where cables lead, and where switches send what.
type Facts = (Vec<(Guid, NodeType)>, Vec<(Guid, u8, Guid)>, BTreeMap<(Guid, Guid), PortNum>);

fn facts(fabric: &Fabric, lids: &Lids, routes: &Routes) -> Facts {
    // Hosts are known by their ports' GUIDs.
    let name = |port: PortRef| match fabric.node(port.node).kind {
        NodeType::Switch => fabric.node(port.node).guid,
        _ => fabric.port(port).map_or(Guid(0), |port| port.guid),
    };
    let mut nodes: Vec<(Guid, NodeType)> =
        lids.iter().map(|lids| (name(lids.port), fabric.node(lids.port.node).kind)).collect();
    nodes.sort_unstable_by_key(|(guid, _)| *guid);
    let (mut cables, mut sends) = (Vec::new(), BTreeMap::new());
    for (index, node) in fabric.switches() {
        cables.extend(node.cabled_ports().map(|(port, peer)| (node.guid, port.0, name(peer))));
        for lids in lids.iter() {
            sends.insert((node.guid, name(lids.port)), routes.port(index, lids.base));
        }
    }
    cables.sort_unstable();
    (nodes, cables, sends)
}

/// What such a text says, line by line: all edges are written in the same way.
fn read(text: &str) -> Facts {
    let (mut nodes, mut cables, mut sends) = (BTreeMap::new(), Vec::new(), BTreeMap::new());
    for line in text.lines().filter(|line| line.contains("->")) {
        let quoted: Vec<&str> = line.split('"').skip(1).step_by(2).collect();
        let [from, to, key, comment] = quoted[..] else { panic!("an edge has four texts: {line}") };
        nodes.extend([from, to].map(named));
        let (Some((_, rest)), (guid, _)) = (key.split_once(":port-"), named(from)) else {
            assert_eq!(comment, "*", "a host sends all by its port: {line}");
            continue;
        };
        let port: u8 = rest[..3].parse().unwrap();
        assert_eq!(&rest[3..], format!(" to {to}"), "{line}");
        cables.push((guid, port, named(to).0));
        let served = comment.split(',').filter(|name| !name.is_empty());
        sends.extend(served.map(|name| ((guid, named(name).0), PortNum(port))));
    }
    cables.sort_unstable();
    (nodes.into_iter().collect(), cables, sends)
}

/// The GUID and kind that a name says.
fn named(name: &str) -> (Guid, NodeType) {
    let (digits, kind) = match name.strip_prefix('H') {
        Some(digits) => (digits, NodeType::Hca),
        None => (name, NodeType::Switch),
    };
    (Guid(u64::from_str_radix(digits, 16).unwrap()), kind)
}

#[test]
fn a_network_is_written_as_get_network_graph_does() {
    let text = "Switch 4 \"s\"\n[2] \"a\"[1]\n[3] \"b\"[1]\n\nCa 1 \"a\"\n\nCa 1 \"b\"\n";
    let fabric = parse("two", text).unwrap();
    let lids = Lids::in_guid_order(&fabric, 0).unwrap();
    let dot = write_dot(&fabric, &lids, &minhop(&fabric, &lids));
    let expected = "digraph network {
  \"0000000000200000\" -> \"H0000000000100001\" [ key=\"0000000000200000:port-002 to H0000000000100001\", comment=\"H0000000000100001\" ];
  \"H0000000000100001\" -> \"0000000000200000\" [ key=\"H0000000000100001 to 0000000000200000\", comment=\"*\" ];
  \"0000000000200000\" -> \"H0000000000100003\" [ key=\"0000000000200000:port-003 to H0000000000100003\", comment=\"H0000000000100003\" ];
  \"H0000000000100003\" -> \"0000000000200000\" [ key=\"H0000000000100003 to 0000000000200000\", comment=\"*\" ];
}
";
    assert_eq!(dot, expected);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn a_dot_file_says_all_cables_and_tables(
        (switches, hosts, extra, parallel) in (1u32..8, 1u32..12, 0u32..6, 0u32..4),
        seed: u64,
        damage in prop::collection::vec((any::<u16>(), any::<u16>(), 1u8..12), 0..8),
    ) {
        let more = |cables| if switches > 1 { cables } else { 0 };
        let parameters =
            RandomFabric { switches, hosts, extra_cables: more(extra), parallel_cables: more(parallel) };
        let fabric = random(&parameters, seed, &GenerateOptions::default()).unwrap();
        let lids = Lids::in_guid_order(&fabric, 0).unwrap();
        let mut routes = minhop(&fabric, &lids);
        let known: Vec<_> = fabric.switches().map(|(index, _)| index).collect();
        for (switch, lid, port) in damage {
            let switch = known[usize::from(switch) % known.len()];
            let lid = weft_wire::Lid(1 + lid % lids.top().0);
            let node = lids.owner(lid).map(|port| port.node);
            // A graph has no port 0 and none without a cable.
            if node != Some(switch) && fabric.peer(PortRef::new(switch, PortNum(port))).is_some() {
                routes.tables[switch.index()].set(lid, PortNum(port));
            }
        }
        let text = write_dot(&fabric, &lids, &routes);
        let (nodes, cables, mut sends) = facts(&fabric, &lids, &routes);
        // An edge is a cable: what a switch keeps or drops has none.
        sends.retain(|_, port| ![PortNum::ZERO, PortNum::NONE].contains(port));
        prop_assert_eq!(read(&text), (nodes, cables, sends));
    }
}
