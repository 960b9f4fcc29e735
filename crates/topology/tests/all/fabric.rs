//! Building, looking up, comparing, and link rates.

use weft_topology::generate::{
    AGGREGATION_NODE, GenerateOptions, described_as_linux, ring, with_node_at_every_switch,
};
use weft_topology::{
    BuildError, Difference, Fabric, FabricBuilder, FindError, LinkMasks, LinkRate, LinkSpeed, LinkWidth,
    Node, NodeIndex, PortRef, diff, parse,
};
use weft_wire::{Guid, NodeType, PortNum};

fn rate(text: &str) -> LinkRate {
    text.parse().unwrap_or_else(|error| panic!("{error}"))
}

fn node(kind: NodeType, guid: u64, ports: u8) -> Node {
    Node::new(kind, Guid(guid), ports, LinkRate::default())
}

fn end(node: u32, port: u8) -> PortRef {
    PortRef::new(NodeIndex(node), PortNum(port))
}

/// A switch, number 0, and a host with two ports, number 1; no cable yet.
fn builder() -> FabricBuilder {
    let mut builder = FabricBuilder::new();
    builder.add_node(node(NodeType::Switch, 0x100, 4)).expect("it is the first");
    builder.add_node(node(NodeType::Hca, 0x200, 2)).expect("it is another");
    builder
}

#[test]
fn nodes_are_checked() {
    let mut builder = builder();
    let mut add = |node| builder.add_node(node).unwrap_err().to_string();
    assert_eq!(
        add(Node { id: "other".to_owned(), ..node(NodeType::Hca, 0x100, 1) }),
        "GUID 0x0000000000000100 belongs to both `S-0000000000000100` and `other`"
    );
    assert_eq!(
        add(Node { id: "S-0000000000000100".to_owned(), ..node(NodeType::Hca, 0x300, 1) }),
        "the id `S-0000000000000100` is taken"
    );
    assert_eq!(
        add(node(NodeType::Hca, 0x300, 0)),
        "node `H-0000000000000300` has 0 ports; 1 to 254 can be told apart"
    );
    assert_eq!(
        add(node(NodeType::Switch, 0x300, 255)),
        "node `S-0000000000000300` has 255 ports; 1 to 254 can be told apart"
    );
    assert_eq!(add(node(NodeType::Hca, 0, 1)), "`H-0000000000000000` has the GUID 0");
}

#[test]
fn cables_are_checked() {
    let mut builder = builder();
    builder.connect(end(0, 1), end(1, 1)).unwrap();
    let error = |builder: &mut FabricBuilder, a, b| builder.connect(a, b).unwrap_err().to_string();
    assert_eq!(
        error(&mut builder, end(0, 1), end(1, 2)),
        "S-0000000000000100[1] is already cabled to H-0000000000000200[1]"
    );
    assert_eq!(
        error(&mut builder, end(0, 2), end(1, 3)),
        "port 3 is out of range for `H-0000000000000200`, whose ports are 1 to 2"
    );
    assert_eq!(
        error(&mut builder, end(0, 0), end(1, 2)),
        "port 0 is out of range for `S-0000000000000100`, whose ports are 1 to 4"
    );
    assert_eq!(error(&mut builder, end(0, 2), end(0, 2)), "S-0000000000000100[2] is cabled to itself");
    assert_eq!(builder.connect(end(0, 2), end(9, 1)), Err(BuildError::UnknownNode(NodeIndex(9))));

    let mut slow = node(NodeType::Hca, 0x300, 1);
    slow.ports[1].enabled = LinkMasks { width: 1, speed: 1, speed_ext: 0, fdr10: false };
    let mut fast = node(NodeType::Hca, 0x400, 1);
    fast.ports[1].enabled = LinkMasks { width: 2, speed: 1, speed_ext: 0, fdr10: false };
    let mut copy = node(NodeType::Hca, 0x500, 1);
    copy.ports[1].guid = Guid(0x201);
    for node in [slow, fast, copy] {
        builder.add_node(node).unwrap();
    }
    assert_eq!(
        error(&mut builder, end(2, 1), end(3, 1)),
        "H-0000000000000300[1] and H-0000000000000400[1] allow no width and speed in common"
    );
    assert_eq!(
        error(&mut builder, end(4, 1), end(0, 2)),
        "port GUID 0x0000000000000201 belongs to both H-0000000000000200[1] and H-0000000000000500[1]"
    );
    // A switch with a cable between two of its ports is real.
    builder.connect(end(0, 3), end(0, 4)).unwrap();
    let fabric = builder.build();
    assert_eq!((fabric.counts().cables, fabric.counts().components), (2, 4));
}

#[test]
fn the_slower_end_sets_the_rate_and_free_ports_have_the_best() {
    let mut builder = FabricBuilder::new();
    builder.add_node(Node::new(NodeType::Switch, Guid(1), 3, rate("12xNDR"))).unwrap();
    builder.add_node(Node::new(NodeType::Hca, Guid(0x10), 1, rate("4xHDR"))).unwrap();
    builder.add_node(Node::new(NodeType::Hca, Guid(0x20), 1, rate("1xFDR10"))).unwrap();
    builder.connect(end(0, 1), end(1, 1)).unwrap();
    builder.connect(end(0, 2), end(2, 1)).unwrap();
    let fabric = builder.build();
    let links: Vec<String> = fabric.nodes()[0].ports[1..].iter().map(|port| port.link.to_string()).collect();
    assert_eq!(links, ["4xHDR", "1xQDR", "4xHDR"], "NDR ports do not speak FDR10");
}

#[test]
fn every_cable_comes_once_with_its_lower_end_first() {
    let mut builder = FabricBuilder::new();
    builder.add_node(node(NodeType::Switch, 9, 4)).unwrap();
    builder.add_node(node(NodeType::Switch, 5, 4)).unwrap();
    builder.connect(end(0, 1), end(1, 4)).unwrap();
    builder.connect(end(0, 3), end(0, 2)).unwrap();
    let fabric = builder.build();
    let cables: Vec<_> = fabric.cables().map(|cable| (cable.a, cable.b)).collect();
    assert_eq!(cables, [(end(0, 2), end(0, 3)), (end(1, 4), end(0, 1))]);
}

#[test]
fn an_ambiguous_name_lists_who_has_it() {
    let mut builder = FabricBuilder::new();
    for guid in 1..=10 {
        builder
            .add_node(Node { description: "twin".to_owned(), ..node(NodeType::Hca, guid * 16, 1) })
            .unwrap();
    }
    let fabric = builder.build();
    let error = fabric.find("twin").unwrap_err();
    assert!(matches!(&error, FindError::Ambiguous { candidates, .. } if candidates.len() == 10));
    assert!(error.to_string().ends_with("H-0000000000000080, …"), "{error}");
    assert_eq!(fabric.find("0x20"), Ok(NodeIndex(1)));
    assert_eq!(fabric.find("0x21"), Ok(NodeIndex(1)), "by its port's GUID");
    assert!(fabric.find("20").is_err(), "a short number without 0x could be a description");
}

#[test]
fn differences_are_found_by_guid() {
    let options = GenerateOptions::default();
    let (three, four) = (ring(3, 1, &options).unwrap(), ring(4, 1, &options).unwrap());
    assert_eq!(diff(&three, &three), []);
    let kinds = |differences: &[Difference]| -> Vec<char> {
        differences.iter().map(|difference| difference.to_string().chars().next().unwrap_or(' ')).collect()
    };
    // A switch, a host, its cable and two of the ring more; one of the ring less.
    assert_eq!(kinds(&diff(&three, &four)), ['+', '+', '-', '+', '+', '+']);
    assert_eq!(kinds(&diff(&four, &three)), ['-', '-', '-', '-', '-', '+']);

    let faster = GenerateOptions { rate: rate("4xHDR"), ..options };
    let differences = diff(&three, &ring(3, 1, &faster).unwrap());
    assert_eq!(kinds(&differences), ['!'; 6]);
    assert!(differences[0].to_string().ends_with("rate 4xQDR -> 4xHDR"));

    let build = |node: Node| -> Fabric {
        let mut builder = FabricBuilder::new();
        builder.add_node(node).unwrap();
        builder.build()
    };
    let (switch, host) = (build(node(NodeType::Switch, 1, 4)), build(node(NodeType::Hca, 1, 2)));
    let lines: Vec<String> = diff(&switch, &host).iter().map(ToString::to_string).collect();
    assert_eq!(
        lines,
        ["! node 0x0000000000000001 kind Switch -> Hca", "! node 0x0000000000000001 ports 4 -> 2"]
    );
}

#[test]
fn rates_have_portinfos_codes_and_real_data_rates() {
    // Lanes, data rate of a lane in bit/s after coding, and the masks of an end that can do all up to it.
    let rows = [
        ("1xSDR", 2_000_000_000, (1, 1, 0)),
        ("4xSDR", 8_000_000_000, (1 | 2 | 16, 1, 0)),
        ("4xDDR", 16_000_000_000, (19, 3, 0)),
        ("4xQDR", 32_000_000_000, (19, 7, 0)),
        ("4xFDR10", 40_000_000_000, (19, 7, 0)),
        ("4xFDR", 54_545_454_545, (19, 7, 1)),
        ("4xEDR", 100_000_000_000, (19, 7, 3)),
        ("4xHDR", 200_000_000_000, (19, 7, 7)),
        ("4xNDR", 400_000_000_000, (19, 7, 15)),
        ("4xXDR", 800_000_000_000, (19, 7, 31)),
        ("12xQDR", 96_000_000_000, (31, 7, 0)),
        ("8xDDR", 32_000_000_000, (23, 3, 0)),
        ("2xHDR", 100_000_000_000, (17, 7, 7)),
    ];
    for (text, data, (width, speed, speed_ext)) in rows {
        let rate = rate(text);
        assert_eq!(rate.to_string(), text);
        assert_eq!(rate.data_rate().bits_per_second(), data, "{text}");
        let enabled = rate.enabled();
        assert_eq!((enabled.width, enabled.speed, enabled.speed_ext), (width, speed, speed_ext), "{text}");
        assert_eq!(enabled.best(), Some(rate));
    }
    for width in LinkWidth::ALL {
        for speed in LinkSpeed::ALL {
            let rate = LinkRate::new(width, speed);
            assert_eq!(rate.to_string().parse(), Ok(rate));
        }
    }
    for wrong in ["", "x", "4x", "xQDR", "3xQDR", "4XQDR", "4xqdr", "04xQDR", "4xQDRx"] {
        assert!(wrong.parse::<LinkRate>().is_err(), "{wrong}");
    }
    assert_eq!(LinkMasks { width: 0, speed: 7, speed_ext: 0, fdr10: false }.best(), None);
    assert_eq!(LinkMasks { width: 2, speed: 0, speed_ext: 0, fdr10: false }.best(), None);
}

#[test]
fn a_serialised_fabric_is_read_back_as_it_was() {
    let mut fabric = ring(5, 2, &GenerateOptions::default()).unwrap().virtualised(2).unwrap().fabric;
    let cables: Vec<_> = fabric.cables().collect();
    fabric.disconnect(cables[3].a);
    // At another rate than its ends would settle on.
    fabric.disconnect(cables[0].a);
    fabric.reconnect(cables[0].a, cables[0].b, rate("1xSDR"));
    let host = fabric.hosts().next().unwrap().0;
    assert!(fabric.identify(host, Guid(0xabc), Guid(0xabd)));
    let text = serde_json::to_string(&fabric).unwrap();
    let read: Fabric = serde_json::from_str(&text).unwrap();
    assert_eq!(read, fabric);
    assert_eq!((read.by_guid(Guid(0xabc)), read.counts()), (Some(host), fabric.counts()));
}

#[test]
fn a_fabric_is_not_read_where_it_makes_no_sense() {
    let mut builder = builder();
    builder.connect(end(0, 1), end(1, 1)).unwrap();
    let whole = serde_json::to_value(builder.build()).unwrap();
    let refused = |change: fn(&mut serde_json::Value)| {
        let mut changed = whole.clone();
        change(&mut changed);
        serde_json::from_value::<Fabric>(changed).unwrap_err().to_string()
    };
    let one_ended = "S-0000000000000100[1] is cabled to a port that is not cabled to it";
    assert_eq!(refused(|fabric| fabric["nodes"][1]["ports"][1]["peer"] = serde_json::Value::Null), one_ended);
    assert_eq!(refused(|fabric| fabric["nodes"][0]["ports"][1]["peer"]["node"] = 7.into()), one_ended);
    assert_eq!(
        refused(|fabric| fabric["nodes"][0]["ports"][1]["peer"] = serde_json::json!({"node": 0, "port": 1})),
        one_ended
    );
    let same = refused(|fabric| fabric["nodes"][1]["guid"] = fabric["nodes"][0]["guid"].clone());
    assert!(same.contains("belongs to both"), "{same}");
}

const TWO_PLANES: &str = include_str!("../../../../topologies/two-planes.topo");

#[test]
fn adapters_join_no_pieces() {
    let fabric = parse("two-planes.topo", TWO_PLANES).unwrap();
    let find = |name: &str| fabric.find(name).unwrap();
    let (first, second, host) = (find("plane-1"), find("plane-2"), find("node03 mlx5_0"));
    let pieces = fabric.pieces();
    assert_eq!((pieces.len(), fabric.counts().components), (2, 2));
    assert_eq!(pieces.shared(first, second), None);
    assert_eq!(pieces.of_node(host).collect::<Vec<_>>(), [0, 1]);
    let seen = pieces.iter().map(|piece| (pieces.nodes(piece), fabric.piece_label(&pieces, piece)));
    assert_eq!(seen.collect::<Vec<_>>(), [(5, "plane-1".to_owned()), (5, "plane-2".to_owned())]);
    assert_eq!((pieces.port_in(1, host), pieces.port_in(1, second)), (Some(PortNum(2)), Some(PortNum(0))));
    assert_eq!(pieces.port_in(1, first), None);
    // Any port of a switch is in its piece; of a host those with a cable.
    assert_eq!(
        (pieces.of_port(PortRef::new(second, PortNum(8))), pieces.of_port(end(0, 0))),
        (Some(1), Some(0))
    );
    // By itself a piece is a fabric with what it has.
    let part = fabric.piece(&pieces, 1);
    let counts = part.counts();
    assert_eq!((counts.switches, counts.hosts, counts.cables, counts.components), (1, 4, 4, 1));
    let host = part.node(part.find("node03 mlx5_0").unwrap());
    assert_eq!(host.cabled_ports().map(|(port, _)| port).collect::<Vec<_>>(), [PortNum(2)]);
}

#[test]
fn a_router_ends_a_piece_and_a_cable_of_two_switches_does_not() {
    let mut builder = FabricBuilder::new();
    for (kind, guid) in [
        (NodeType::Switch, 0x100),
        (NodeType::Router, 0x200),
        (NodeType::Switch, 0x300),
        (NodeType::Switch, 0x400),
        (NodeType::Hca, 0x500),
    ] {
        builder.add_node(node(kind, guid, 4)).unwrap();
    }
    builder.connect(end(0, 1), end(1, 1)).unwrap();
    builder.connect(end(1, 2), end(2, 1)).unwrap();
    builder.connect(end(2, 2), end(3, 1)).unwrap();
    let mut fabric = builder.build();
    let pieces = fabric.pieces();
    // The switch, two switches, and the host without a cable.
    assert_eq!(pieces.iter().map(|piece| pieces.nodes(piece)).collect::<Vec<_>>(), [2, 3, 1]);
    assert_eq!(pieces.of_seat(end(4, 1)), Some(2));
    assert_eq!(pieces.port_in(2, NodeIndex(4)), None);
    // Two adapters that are cabled to each other.
    fabric.connect(end(4, 1), end(1, 3)).unwrap();
    let pieces = fabric.pieces();
    assert_eq!(pieces.of_node(NodeIndex(1)).collect::<Vec<_>>(), [0, 1, 2]);
    assert_eq!(pieces.nodes(2), 2);
    // A host whose two ports are at one switch is there once.
    fabric.disconnect(end(4, 1));
    fabric.connect(end(4, 1), end(3, 2)).unwrap();
    fabric.connect(end(4, 2), end(3, 3)).unwrap();
    let pieces = fabric.pieces();
    assert_eq!(pieces.of_node(NodeIndex(4)).collect::<Vec<_>>(), [1]);
    assert_eq!((pieces.len(), pieces.nodes(1)), (2, 4));
}

#[test]
fn programs_sit_at_hosts_and_not_at_aggregation_nodes() {
    let options = GenerateOptions { radix: Some(8), ..GenerateOptions::default() };
    let plain = ring(3, 1, &options).unwrap();
    let fabric = with_node_at_every_switch(&plain, AGGREGATION_NODE).unwrap();
    let managed: Vec<_> = fabric.seats().map(|seat| fabric.label(seat.node)).collect();
    let hosts: Vec<_> = plain.seats().map(|seat| plain.label(seat.node)).collect();
    assert_eq!((managed.len(), &managed), (3, &hosts));
    // In a file of a site they may come first.
    let (first, second) = (node(NodeType::Hca, 0x10, 1), node(NodeType::Hca, 0x20, 1));
    let first = Node { description: format!("{AGGREGATION_NODE} of a switch"), ..first };
    let mut builder = FabricBuilder::new();
    for node in [first, second, node(NodeType::Switch, 0x30, 4)] {
        builder.add_node(node).unwrap();
    }
    assert_eq!(builder.fabric().attach_place(), Some(end(2, 0)), "only the switch can be managed from");
    builder.connect(end(2, 1), end(0, 1)).unwrap();
    assert_eq!(builder.fabric().attach_place(), Some(end(0, 1)), "there is no other adapter");
    builder.connect(end(2, 2), end(1, 1)).unwrap();
    assert_eq!(builder.fabric().attach_place(), Some(end(1, 1)));
    let mut alone = FabricBuilder::new();
    alone.add_node(node(NodeType::Hca, 0x10, 1)).unwrap();
    assert_eq!(alone.build().attach_place(), None, "no node has a cable");
}

/// A switch with an adapter of each of these descriptions.
fn with_adapters(descriptions: &[&str]) -> Fabric {
    let mut builder = FabricBuilder::new();
    let ports = u8::try_from(descriptions.len()).unwrap();
    let switch = builder.add_node(Node::new(NodeType::Switch, Guid(1), ports, LinkRate::default())).unwrap();
    for (description, port) in descriptions.iter().zip(1..) {
        let mut node = Node::new(NodeType::Hca, Guid(0x100 * u64::from(port)), 2, LinkRate::default());
        node.description = (*description).to_owned();
        let node = builder.add_node(node).unwrap();
        builder.connect(PortRef::new(switch, PortNum(port)), PortRef::new(node, PortNum(1))).unwrap();
    }
    builder.build()
}

#[test]
fn adapters_that_linux_describes_are_called_by_their_hosts() {
    let fabric =
        with_adapters(&["a mlx5_0", "b mlx5_0", "b mlx5_1", "a vf1", "c", "c mlx5_0", "x y z", "d \u{e9}"]);
    let labels: Vec<String> = fabric.hosts().map(|(index, _)| fabric.label(index)).collect();
    // A host with two adapters has no name for one of them, nor has one whose name is another node's description.
    assert_eq!(labels, ["a", "b mlx5_0", "b mlx5_1", "a vf1", "c", "c mlx5_0", "x y z", "d \u{e9}"]);
    for ((index, _), label) in fabric.hosts().zip(&labels) {
        assert_eq!(fabric.find(label), Ok(index), "{label}");
    }
    assert_eq!(fabric.find("a mlx5_0"), fabric.find("a"));
    let error = fabric.find("b").unwrap_err();
    assert_eq!(error.to_string(), "`b` has 2 adapters: b mlx5_0, b mlx5_1");
    assert!(matches!(fabric.find("x"), Err(FindError::NotFound(_))));
}

#[test]
fn adapters_of_one_host_are_numbered() {
    let fabric = described_as_linux(&with_adapters(&["a", "b", "a", "Mellanox Node"])).unwrap();
    let descriptions: Vec<&str> = fabric.hosts().map(|(_, node)| node.description.as_str()).collect();
    assert_eq!(descriptions, ["a mlx5_0", "b mlx5_0", "a mlx5_1", "Mellanox Node"]);
}
