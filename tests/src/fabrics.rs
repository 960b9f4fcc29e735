//! The fabrics on which weft's engines and OpenSM's are compared.

use weft_topology::generate::{
    Damage, Directors, GenerateOptions, RandomFabric, degraded, director, pgft, random, xgft,
};
use weft_topology::{Fabric, FabricBuilder, LinkRate, Node, NodeIndex, PortRef};
use weft_wire::{Guid, NodeType, PortNum};

/// The node with a description.
///
/// # Panics
/// When there is no such node, or there are several.
pub fn described<'a>(fabric: &'a Fabric, description: &str) -> &'a Node {
    fabric.node(fabric.find(description).expect("the test knows its fabric"))
}

/// A random irregular fabric of 12 to 28 switches with two to four hosts each. It decides by `seed` how meshed it is.
///
/// # Panics
/// Never: there are enough ports.
pub fn irregular(seed: u64) -> Fabric {
    let switches = 12 + (seed % 9) as u32 * 2;
    let parameters = RandomFabric {
        switches,
        hosts: switches * (2 + (seed % 3) as u32),
        extra_cables: switches * (1 + (seed % 4) as u32) / 2 + 4,
        parallel_cables: (seed % 5) as u32,
    };
    random(&parameters, seed, &GenerateOptions::default()).expect("there are enough ports")
}

/// A tree of two or three levels that lacks cables, switches or both, but no host and no way between two of them.
///
/// # Panics
/// Never: most damage leaves it in one piece.
pub fn broken_tree(seed: u64) -> Fabric {
    let whole = match seed % 3 {
        0 => xgft(&[4, 4, 4], &[1, 4, 4], &GenerateOptions::default()),
        1 => xgft(&[6, 8], &[1, 6], &GenerateOptions::default()),
        _ => pgft(&[4, 6, 2], &[1, 2, 3], &[1, 2, 1], &GenerateOptions::default()),
    };
    let damage = match seed % 4 {
        0 => Damage { cables: 0, switches: 1 },
        kind => Damage { cables: 1 + seed as usize % 9, switches: kind as usize - 1 },
    };
    broken(&whole.expect("the parameters are sound"), damage, seed)
}

/// A tree of three levels and 216 hosts that lacks 6 to 30 cables.
///
/// # Panics
/// Never: most damage leaves it in one piece.
pub fn broken_three_levels(seed: u64) -> Fabric {
    let whole = xgft(&[6, 6, 6], &[1, 6, 6], &GenerateOptions::default());
    let damage = Damage { cables: 6 + 6 * (seed as usize % 5), switches: 0 };
    broken(&whole.expect("the parameters are sound"), damage, seed)
}

/// A tree of three levels and 27 hosts that lacks 6 cables.
///
/// # Panics
/// Never: the damage leaves it in one piece.
pub fn small_broken_three_levels() -> Fabric {
    let whole = xgft(&[3, 3, 3], &[1, 3, 3], &GenerateOptions::default()).expect("a tree");
    degraded(&whole, Damage { cables: 6, switches: 0 }, 1).expect("what remains is sound")
}

fn broken(whole: &Fabric, damage: Damage, seed: u64) -> Fabric {
    let mut attempts = (0..).map(|attempt| {
        degraded(whole, damage, seed * 1000 + attempt).expect("what remains was sound before")
    });
    let fits =
        |fabric: &Fabric| fabric.counts().components == 1 && fabric.hosts().count() == whole.hosts().count();
    attempts.find(fits).expect("attempts have no end")
}

/// Cables that [`degraded_324`] lacks, a little less than a tenth of those between switches.
const CABLES_LOST: usize = 30;

/// The tree of 324 hosts of `topologies/fattree-324.topo`.
///
/// # Panics
/// When weft cannot read it.
pub fn tree_324() -> Fabric {
    let text = include_str!("../../topologies/fattree-324.topo");
    weft_topology::parse("fattree-324.topo", text).unwrap_or_else(|error| panic!("{error}"))
}

/// The same without 30 of its cables between switches, in one piece and with all hosts.
///
/// # Panics
/// When it is not in one piece.
pub fn degraded_324() -> Fabric {
    let whole = tree_324();
    let damage = Damage { cables: CABLES_LOST, switches: 0 };
    let tree = degraded(&whole, damage, 1).expect("what remains was sound before");
    let counts = tree.counts();
    assert!(counts.components == 1 && tree.hosts().count() == whole.hosts().count(), "{counts:?}");
    tree
}

/// Eight leaves of `hosts` hosts under `spines` spines, with `parallel` cables from each leaf to each spine.
///
/// # Panics
/// Never: there are enough ports.
pub fn parallel_tree(hosts: u32, spines: u32, parallel: u32) -> Fabric {
    let tree = pgft(&[hosts, 8], &[1, spines], &[1, parallel], &GenerateOptions::default());
    tree.expect("the parameters are sound")
}

/// Four leaves of 24 hosts under two spines, with six cables from each leaf to each spine.
///
/// # Panics
/// Never: there are enough ports.
pub fn edr_pair() -> Fabric {
    pgft(&[24, 4], &[1, 2], &[1, 6], &GenerateOptions::default()).expect("the parameters are sound")
}

/// Eight switches and 144 hosts: two core switches with 12 hosts each, six edge switches with 20 each. Each edge has
/// 8 or 9 cables to the cores, unevenly shared, and three more join the cores.
///
/// # Panics
/// Never: there are enough ports.
pub fn uneven_cores() -> Fabric {
    let mut builder = FabricBuilder::new();
    let mut node = |kind, guid, ports| {
        builder.add_node(Node::new(kind, Guid(guid), ports, LinkRate::default())).expect("GUIDs differ")
    };
    let switches: Vec<NodeIndex> = (0..8).map(|at| node(NodeType::Switch, 1 + at, 64)).collect();
    let hosts: Vec<NodeIndex> = (0..144).map(|at| node(NodeType::Hca, 0x1000 + at * 16, 1)).collect();
    let mut rest = hosts.into_iter();
    for (place, switch) in switches.iter().enumerate() {
        for host in rest.by_ref().take(if place < 2 { 12 } else { 20 }) {
            let port = builder.free_port(*switch).expect("there are enough ports");
            builder
                .connect(PortRef::new(host, PortNum(1)), PortRef::new(*switch, port))
                .expect("both are free");
        }
    }
    let edges = [[4, 4], [5, 3], [6, 3], [3, 5], [2, 6], [4, 5]];
    let to_cores = (2..).zip(edges).flat_map(|(edge, counts)| [(edge, 0, counts[0]), (edge, 1, counts[1])]);
    for (a, b, count) in to_cores.chain([(0, 1, 3)]) {
        for _ in 0..count {
            let ends = [a, b].map(|place: usize| {
                let port = builder.free_port(switches[place]).expect("there are enough ports");
                PortRef::new(switches[place], port)
            });
            builder.connect(ends[0], ends[1]).expect("both are free");
        }
    }
    builder.build()
}

/// Fabrics of director switches, from 18 switches to 174 switches and 1615 hosts.
///
/// # Panics
/// Never: there are enough ports.
pub fn directors() -> Vec<(&'static str, Fabric)> {
    let none = Directors::default();
    let shapes = [
        (
            "two chassis with trunks",
            Directors { lines: vec![6, 6], spines: 3, inside: 2, line_hosts: 6, trunks: 12, ..none.clone() },
        ),
        (
            "three chassis with trunks",
            Directors {
                lines: vec![9, 9, 6],
                spines: 3,
                inside: 3,
                line_hosts: 9,
                trunks: 9,
                ..none.clone()
            },
        ),
        (
            "two chassis under edges",
            Directors { lines: vec![8, 6], spines: 6, edges: 20, edge_hosts: 8, uplinks: 4, ..none.clone() },
        ),
        (
            "three chassis with hosts under edges",
            Directors {
                lines: vec![6, 6, 6],
                spines: 3,
                inside: 2,
                line_hosts: 3,
                edges: 24,
                edge_hosts: 6,
                uplinks: 3,
                trunks: 6,
            },
        ),
        (
            "174 switches, 1615 hosts",
            Directors {
                lines: vec![30, 23],
                spines: 18,
                line_hosts: 0,
                edges: 85,
                edge_hosts: 19,
                uplinks: 9,
                ..none
            },
        ),
    ];
    let built =
        |(name, shape)| (name, director(&shape, &GenerateOptions::default()).expect("the shape is sound"));
    shapes.into_iter().map(built).collect()
}
