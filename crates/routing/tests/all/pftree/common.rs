//! Trees with partitions, and what flows where in them.

use std::collections::{BTreeMap, BTreeSet};

use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use weft_routing::{
    Engine, EngineOptions, Expectations, Input, Isolation, Lids, Member, Partition, Partitions, Refusal,
    Routing, Strictness, verify_routing,
};
use weft_topology::generate::{GenerateOptions, xgft};
use weft_topology::{Fabric, FabricBuilder, LinkRate, Node, NodeIndex, NodeType, PortRef};
use weft_wire::{Guid, Lid, PortNum};

/// The topologies of table 3: children by level, parents by level, and how many hosts the victim has.
pub(crate) const TOPOLOGIES: [([u32; 2], [u32; 2], usize); 9] = [
    ([8, 4], [1, 4], 8),
    ([12, 4], [1, 4], 12),
    ([16, 4], [1, 4], 16),
    ([16, 8], [1, 8], 32),
    ([24, 8], [1, 8], 48),
    ([32, 8], [1, 8], 64),
    ([32, 16], [1, 16], 128),
    ([48, 16], [1, 16], 192),
    ([64, 16], [1, 16], 256),
];

pub(crate) fn tree(children: &[u32], parents: &[u32]) -> Fabric {
    xgft(children, parents, &GenerateOptions::default()).expect("a tree")
}

/// The seed of a randomised test: from the environment where it is given, and printed.
pub(crate) fn seed() -> u64 {
    let seed = std::env::var("WEFT_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(2016);
    // Shown where the test fails.
    let _ = std::io::Write::write_fmt(&mut std::io::stderr(), format_args!("WEFT_SEED={seed}\n"));
    seed
}

pub(crate) fn generator(seed: u64) -> Pcg64Mcg {
    Pcg64Mcg::seed_from_u64(seed)
}

/// Two ranks: every leaf has the hosts named and a cable to every root. The first root has the highest GUID, as in
/// the paper's figures.
pub(crate) fn two_ranks(leaves: &[&[&str]], roots: usize) -> Fabric {
    let mut builder = FabricBuilder::new();
    let mut add = |kind, guid, ports, id: String| {
        let mut node = Node::new(kind, Guid(guid), ports, LinkRate::default());
        (node.description, node.id) = (id.clone(), id);
        builder.add_node(node).expect("a new node")
    };
    let root_nodes: Vec<NodeIndex> = (0..roots as u64)
        .map(|root| add(NodeType::Switch, 0x200 - root, 16, format!("R{}", root + 1)))
        .collect();
    let mut cables = Vec::new();
    for (place, hosts) in (0u8..).zip(leaves) {
        let guid = 0x100 + u64::from(place);
        let leaf = add(NodeType::Switch, guid, 16, format!("L{}", place + 1));
        for (port, host) in (1..).zip(*hosts) {
            let name = host.bytes().fold(0, |guid, byte| guid << 8 | u64::from(byte));
            let host = add(NodeType::Hca, name << 16, 1, (*host).to_owned());
            cables.push((PortRef::new(leaf, PortNum(port)), PortRef::new(host, PortNum(1))));
        }
        for (port, root) in (16 - roots as u8 + 1..).zip(&root_nodes) {
            cables.push((PortRef::new(leaf, PortNum(port)), PortRef::new(*root, PortNum(place + 1))));
        }
    }
    cables.into_iter().for_each(|(a, b)| builder.connect(a, b).expect("free ports"));
    builder.build()
}

pub(crate) fn port_guid(fabric: &Fabric, id: &str) -> Guid {
    fabric.node(fabric.find(id).expect("the host is there")).ports[1].guid
}

/// The port GUIDs of the hosts on each leaf, in the order of the leaves.
pub(crate) fn hosts_by_leaf(fabric: &Fabric) -> Vec<Vec<Guid>> {
    let mut leaves: BTreeMap<NodeIndex, Vec<Guid>> = BTreeMap::new();
    for (index, node) in fabric.hosts() {
        if let Some(peer) = fabric.peer(PortRef::new(index, PortNum(1))) {
            leaves.entry(peer.node).or_default().push(node.ports[1].guid);
        }
    }
    leaves.into_values().collect()
}

pub(crate) fn partition(
    pkey: u16,
    isolation: Isolation,
    members: impl IntoIterator<Item = Guid>,
) -> Partition {
    let members = members.into_iter().map(|guid| Member { guid, full: true }).collect();
    Partition { name: format!("P{pkey}"), pkey, members, isolation }
}

pub(crate) fn options(list: Vec<Partition>, strictness: Strictness) -> EngineOptions {
    EngineOptions { partitions: Some(Partitions { list, strictness }), ..EngineOptions::default() }
}

pub(crate) fn try_route(
    engine: &str,
    fabric: &Fabric,
    lids: &Lids,
    options: &EngineOptions,
) -> Result<Routing, Refusal> {
    let engine = Engine::by_name(engine).expect("the engine is there");
    engine.route(&Input { fabric, lids, options })
}

pub(crate) fn route(engine: &str, fabric: &Fabric, options: &EngineOptions) -> (Lids, Routing) {
    let lids = Lids::in_guid_order(fabric, 0).expect("there are enough LIDs");
    let routing = try_route(engine, fabric, &lids, options).unwrap_or_else(|refusal| panic!("{refusal}"));
    (lids, routing)
}

/// The victim and everybody else, with as many victims on every leaf, drawn again.
pub(crate) fn victims(
    fabric: &Fabric,
    count: usize,
    isolation: Isolation,
    random: &mut Pcg64Mcg,
) -> Vec<Partition> {
    let leaves = hosts_by_leaf(fabric);
    let each = count / leaves.len();
    let (mut victims, mut others) = (Vec::new(), Vec::new());
    for mut hosts in leaves {
        hosts.shuffle(random);
        others.extend(hosts.split_off(each));
        victims.extend(hosts);
    }
    vec![partition(1, isolation, victims), partition(2, Isolation::Def, others)]
}

/// The links between switches, by the port that sends, that packets from one port to a LID take.
pub(crate) fn path(fabric: &Fabric, routing: &Routing, from: PortRef, to: Lid) -> Vec<PortRef> {
    let mut at = match fabric.node(from.node).is_switch() {
        true => from,
        false => fabric.peer(from).expect("the source has a cable"),
    };
    let mut links = Vec::new();
    loop {
        let port = PortRef::new(at.node, routing.routes.port(at.node, to));
        assert_ne!(port.port, PortNum::NONE, "no route to {to} at {}", fabric.node(at.node).id);
        if port.port == PortNum::ZERO {
            return links;
        }
        at = fabric.peer(port).expect("a route leads to a cable");
        if !fabric.node(at.node).is_switch() {
            return links;
        }
        links.push(port);
        assert!(links.len() < 64, "a loop towards {to}");
    }
}

/// By link, the partitions whose hosts talk over it and the levels by which each of them does.
pub(crate) type Carried = BTreeMap<PortRef, BTreeMap<u16, BTreeSet<u8>>>;

/// What every link carries: followed host by host, from every switch.
pub(crate) fn carried(fabric: &Fabric, lids: &Lids, routing: &Routing, partitions: &[Partition]) -> Carried {
    let owner: BTreeMap<Guid, (PortRef, Lid)> = lids
        .iter()
        .map(|lids| (fabric.port(lids.port).expect("the port is there").guid, (lids.port, lids.base)))
        .collect();
    let pieces = fabric.pieces();
    let piece = |port: &PortRef| pieces.of_port(*port);
    let mut carried = Carried::new();
    for partition in partitions {
        let mut by_switch: BTreeMap<NodeIndex, Vec<(PortRef, Lid, bool)>> = BTreeMap::new();
        for member in &partition.members {
            if let Some((port, lid)) = owner.get(&member.guid) {
                let switch = fabric.peer(*port).expect("it has a cable").node;
                by_switch.entry(switch).or_default().push((*port, *lid, member.full));
            }
        }
        for (port, to, full) in by_switch.values().flatten() {
            for sources in by_switch.values() {
                let talks = |source: &&(PortRef, Lid, bool)| {
                    source.1 != *to && (*full || source.2) && piece(&source.0) == piece(port)
                };
                let mut levels = BTreeSet::new();
                for (_, own, _) in sources.iter().filter(talks) {
                    let level = routing.levels.of(*own, *to).0;
                    assert_eq!(level, routing.levels.of(*to, *own).0, "levels are symmetric");
                    levels.insert(level);
                }
                let first = sources.iter().find(talks);
                for link in first.map(|(port, ..)| path(fabric, routing, *port, *to)).into_iter().flatten() {
                    carried.entry(link).or_default().entry(partition.pkey).or_default().extend(&levels);
                }
            }
        }
    }
    carried
}

/// Whether the policy of a partition is kept.
pub(crate) fn is_kept(
    carried: &BTreeMap<PortRef, BTreeMap<u16, BTreeSet<u8>>>,
    partition: &Partition,
) -> bool {
    let mut with_it = carried.values().filter(|users| users.contains_key(&partition.pkey));
    match partition.isolation {
        Isolation::Def => true,
        Isolation::Phy => with_it.all(|users| users.len() == 1),
        Isolation::Vlane => with_it.all(|users| {
            let own = &users[&partition.pkey];
            users.iter().all(|(other, levels)| *other == partition.pkey || levels.is_disjoint(own))
        }),
    }
}

/// Fails when the verifier finds lost packets, a deadlock, levels that differ by direction, or, where `kept`, a
/// breach of a policy; without `kept` it is to find one.
pub(crate) fn assert_sound(
    fabric: &Fabric,
    lids: &Lids,
    routing: &Routing,
    options: &EngineOptions,
    kept: bool,
) {
    let partitions = options.partitions.as_ref();
    let expectations = Expectations { partitions, lanes: options.lanes, ..Expectations::default() };
    let verdict = verify_routing(fabric, lids, routing, &expectations);
    assert!(verdict.is_deadlock_free() && verdict.is_symmetric(), "{verdict}");
    assert_eq!(verdict.is_sound(), kept, "{verdict}");
}

/// A fabric without some of its cables between switches, drawn at random.
pub(crate) fn without_cables(fabric: &Fabric, count: usize, random: &mut Pcg64Mcg) -> Fabric {
    let is_switch = |port: PortRef| fabric.node(port.node).is_switch();
    let all: Vec<_> = fabric.cables().collect();
    let mut between: Vec<usize> =
        (0..all.len()).filter(|place| is_switch(all[*place].a) && is_switch(all[*place].b)).collect();
    between.shuffle(random);
    let cut: BTreeSet<usize> = between.into_iter().take(count).collect();
    rebuilt(fabric, |place| !cut.contains(&place), &(0..fabric.nodes().len()).collect::<Vec<_>>())
}

/// A fabric with its nodes in another order and those of its cables that `stays` names.
pub(crate) fn rebuilt(fabric: &Fabric, stays: impl Fn(usize) -> bool, order: &[usize]) -> Fabric {
    let mut builder = FabricBuilder::new();
    let mut moved = vec![NodeIndex(0); fabric.nodes().len()];
    for place in order {
        moved[*place] = builder.add_node(fabric.nodes()[*place].clone()).expect("it was there before");
    }
    let at = |port: PortRef| PortRef::new(moved[port.node.index()], port.port);
    for (place, cable) in fabric.cables().enumerate() {
        if stays(place) {
            builder.connect(at(cable.a), at(cable.b)).expect("it was there before");
        }
    }
    builder.build()
}

/// Partitions that overlap, with members of both kinds and policies, drawn at random.
pub(crate) fn random_partitions(fabric: &Fabric, count: u16, random: &mut Pcg64Mcg) -> Vec<Partition> {
    let hosts: Vec<Guid> = hosts_by_leaf(fabric).concat();
    let all = [Isolation::Phy, Isolation::Vlane, Isolation::Def, Isolation::Def];
    let mut partitions: Vec<Partition> =
        (1..=count).map(|pkey| partition(pkey, all[random.random_range(0..4)], [])).collect();
    for guid in hosts {
        let memberships = [1, 1, 1, 1, 2, 0][random.random_range(0..6)];
        for _ in 0..memberships {
            let members = &mut partitions[random.random_range(0..usize::from(count))].members;
            if members.iter().all(|member| member.guid != guid) {
                members.push(Member { guid, full: random.random_bool(0.8) });
            }
        }
    }
    partitions
}
