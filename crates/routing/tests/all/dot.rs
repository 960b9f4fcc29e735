//! ORCS's DOT graphs, written and read.

use std::collections::BTreeMap;

use proptest::prelude::*;
use weft_routing::files::{DotNetwork, parse_dot, write_dot};
use weft_routing::quality::{Paths, congestion};
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

fn read(text: &str) -> DotNetwork {
    parse_dot("network.dot", text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

fn error(text: &str) -> String {
    parse_dot("network.dot", text).expect_err("it is wrong").to_string()
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
    let found = read(&dot);
    assert_eq!(write_dot(&found.fabric, &found.lids, &found.routes), expected);
}

/// Two ways from a to b, in the words of `lftsdump2dot`, and as cgraph writes them.
const BY_LFTS: &str = r#"// Unmatched line: vendid
/* a comment
   of two lines */
digraph network {
	edge [comment=""];
	"S-000000000000000a" -> "S-000000000000000b" [key=2, comment="H-0000000000000002"];
	"S-000000000000000a" -> "S-000000000000000b" [key=3, comment="H-0000000000000003, \
H-0000000000000002"];
	"S-000000000000000b" -> "S-000000000000000a" [key=5];
	"S-000000000000000b" -> "S-000000000000000a" [key=4, comment="*"];
	"S-000000000000000a" -> "H-0000000000000001" [key=1, comment="H-0000000000000001"];
	"H-0000000000000001" -> "S-000000000000000a" [key=1, comment="*"];
	"S-000000000000000b" -> "H-0000000000000002" [key=1, comment="H-0000000000000002"];
	"S-000000000000000b" -> "H-0000000000000003" [key=2, comment="H-0000000000000003"];
}
"#;

#[test]
fn graphs_of_lftsdump2dot_are_read() {
    let DotNetwork { fabric, lids, routes } = read(BY_LFTS);
    let node = |id: &str| fabric.by_id(id).unwrap();
    let lid = |id: &str| lids.of(PortRef::new(node(id), PortNum(1))).unwrap().base;
    let (a, b) = (node("S-000000000000000a"), node("S-000000000000000b"));
    assert_eq!(fabric.node(a).guid, Guid(0xa));
    // Cables pair the ports of both ends in order.
    assert_eq!(fabric.peer(PortRef::new(a, PortNum(2))), Some(PortRef::new(b, PortNum(4))));
    assert_eq!(fabric.peer(PortRef::new(a, PortNum(3))), Some(PortRef::new(b, PortNum(5))));
    // The first edge that serves a destination counts; `*` is every host that none before it served.
    let sends = |from, to: &str| routes.port(from, lid(to)).0;
    assert_eq!(sends(a, "H-0000000000000002"), 2);
    assert_eq!(sends(a, "H-0000000000000003"), 3);
    assert_eq!(sends(b, "H-0000000000000001"), 4);
    assert_eq!(sends(b, "H-0000000000000002"), 4, "ORCS takes the first edge too, although it leads back");
    // The hosts' ways to their switches are missing, and there all the same.
    let flows = [(lid("H-0000000000000003"), lid("H-0000000000000001"))];
    let paths = Paths::new(&fabric, &lids, &routes);
    assert_eq!(congestion(&paths, &flows).unwrap().flows, [Some(1)]);
}

#[test]
fn any_names_and_chains_of_edges_are_read() {
    let found =
        read("strict digraph { H1 -> left -> right -> H2; H2 -> right -> left -> H1 [comment=\"*\"] }");
    let counts = found.fabric.counts();
    assert_eq!((counts.switches, counts.hosts, counts.cables), (2, 2, 3));
    let lid =
        |id: &str| found.lids.of(PortRef::new(found.fabric.by_id(id).unwrap(), PortNum(1))).unwrap().base;
    let left = found.fabric.by_id("left").unwrap();
    // To the right without a comment, to H1 with `*`.
    assert_eq!(found.routes.port(left, lid("H1")), found.routes.port(left, lid("H2")));
    assert_eq!(found.fabric.peer(PortRef::new(left, found.routes.port(left, lid("H1")))).unwrap().node.0, 0);
}

#[test]
fn errors_have_a_line_and_a_column() {
    assert_eq!(error("graph g {}"), "network.dot:1:1: expected `digraph`: `graph`");
    assert_eq!(
        error("digraph g {\n  a -> ;\n}"),
        "network.dot:2:8: expected the node that the edge leads to: `;`"
    );
    assert_eq!(
        error("digraph g {\n  a -> H1 [comment=\"H1,H7\"];\n}"),
        "network.dot:2:20: no node is called `H7`: `H1,H7`"
    );
    assert_eq!(
        error("digraph g {\n  a -> H1 [key=300];\n}"),
        "network.dot:2:16: a port must be 1 to 254: `300`"
    );
    let twice = "digraph g {\n  a -> H1 [key=\"a:port-003 to H1\"];\n  a -> H2 [key=3];\n}";
    assert_eq!(error(twice), "network.dot:3:16: port 3 of a stands here for the second time: `3`");
    assert_eq!(error("digraph g { a -> a }"), "network.dot:1:18: expected another node: `a`");
    assert_eq!(
        error("digraph g { subgraph x {} }"),
        "network.dot:1:13: expected a node, an edge or `}`: `subgraph`"
    );
    assert_eq!(error("digraph g { \"a"), "network.dot:1:13: expected a quote at the end of the name: `\"`");
    assert_eq!(error("digraph g { /* a"), "network.dot:1:13: expected `*/` at the end of the comment: `/*`");
    assert_eq!(error("digraph g { a -> b"), "network.dot:1:19: expected a node, an edge or `}`");
    assert_eq!(error("digraph g { } x"), "network.dot:1:15: the line ends before this: `x`");
    assert_eq!(
        error("digraph g { a -- b }"),
        "network.dot:1:15: expected a name, `->`, `[`, `]`, `=`, `;`, `{` or `}`: `-`"
    );
    assert!(
        error("digraph g { \"H0000000000000001\" -> \"S-0000000000000001\" }").contains("belongs to both")
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn a_dot_file_round_trips(
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
        let found = read(&text);
        prop_assert_eq!(facts(&found.fabric, &found.lids, &found.routes), facts(&fabric, &lids, &routes));
        prop_assert_eq!(write_dot(&found.fabric, &found.lids, &found.routes), text);
    }

    #[test]
    fn any_text_is_read_or_refused(text in "[digraph {}\\[\\]=>;,\"/*#a-cH0-3\\\\\n-]{0,60}") {
        let _ = parse_dot("any", &text);
        let _ = parse_dot("any", &format!("digraph {{{text}}}"));
    }
}
