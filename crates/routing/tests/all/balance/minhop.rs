//! Min-hop tables bring everything home by shortest paths, evenly, and depend on nothing but cabling and LIDs.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use weft_routing::{Engine, EngineOptions, Input, Lids, Routes, minhop, trace, verify};
use weft_topology::generate::{GenerateOptions, RandomFabric, random, rlft, torus};
use weft_topology::{Fabric, FabricBuilder, LinkRate, Node, NodeIndex, PortRef, parse};
use weft_wire::{Guid, Lid, NodeType, PortNum};

use super::oracle::{flows, petgraph_hops, shuffled, tables_by_guid};

fn options() -> GenerateOptions {
    GenerateOptions::default()
}

fn routed(fabric: &Fabric, lmc: u8) -> (Lids, Routes) {
    let lids = Lids::in_guid_order(fabric, lmc).expect("there are enough LIDs");
    let routes = minhop(fabric, &lids);
    (lids, routes)
}

fn end(fabric: &Fabric, id: &str, port: u8) -> PortRef {
    PortRef::new(fabric.find(id).expect("the node is there"), PortNum(port))
}

/// How many of `lids` each port of a switch sends.
fn loads(routes: &Routes, switch: NodeIndex, lids: impl Iterator<Item = Lid>) -> BTreeMap<PortNum, usize> {
    let mut loads = BTreeMap::new();
    for lid in lids {
        *loads.entry(routes.port(switch, lid)).or_default() += 1;
    }
    loads
}

#[test]
fn minhop_balances_the_uplinks_of_the_648_host_tree() {
    let fabric = rlft(36, 2, &options()).unwrap();
    let (lids, routes) = routed(&fabric, 0);
    let report = verify(&fabric, &lids, &routes, &[]);
    assert!(report.is_minimal(), "{report}");
    assert_eq!((report.pairs, report.disconnected), (702 * 54, 0));
    // From a leaf: 19 LIDs on it, 18 above it, 665 beyond. From a root: 18 on it is itself, 683 below.
    let hosts: Vec<Lid> =
        lids.iter().filter(|lids| !fabric.node(lids.port.node).is_switch()).map(|lids| lids.base).collect();
    for (leaf, node) in fabric.switches().filter(|(_, node)| node.description.starts_with("switch-1-")) {
        let loads = loads(&routes, leaf, hosts.iter().copied());
        for port in 1..=18 {
            assert_eq!(loads[&PortNum(port)], 1, "{} to its own hosts", node.description);
        }
        for port in 19..=36 {
            assert_eq!(loads[&PortNum(port)], 630 / 18, "{} port {port}", node.description);
        }
    }
    for (leaf, _) in fabric.switches().filter(|(_, node)| node.description.starts_with("switch-1-")) {
        let all = loads(&routes, leaf, lids.iter().map(|lids| lids.base));
        let uplinks: Vec<usize> = (19..=36).map(|port| all[&PortNum(port)]).collect();
        let (least, most) = (uplinks.iter().min().unwrap(), uplinks.iter().max().unwrap());
        assert!(most - least <= 1, "{uplinks:?}");
    }
}

#[test]
fn minhop_and_updn_spread_hosts_evenly_over_roots() {
    let fabric = rlft(8, 3, &options()).unwrap();
    let lids = Lids::in_guid_order(&fabric, 0).unwrap();
    let is_root = |node: NodeIndex| fabric.node(node).description.starts_with("switch-3-");
    for name in ["minhop", "updn"] {
        let input = Input { fabric: &fabric, lids: &lids, options: &EngineOptions::default() };
        let routing = Engine::by_name(name).unwrap().route(&input).unwrap();
        let mut roots: BTreeMap<Lid, BTreeSet<NodeIndex>> = BTreeMap::new();
        for (from, lid, channels) in flows(&fabric, &lids, &routing) {
            let ends = [from.port.node, lids.owner(lid).unwrap().node];
            if ends.iter().all(|end| !fabric.node(*end).is_switch()) {
                let passed = channels.unwrap().into_iter().map(|(port, _)| port.node);
                roots.entry(lid).or_default().extend(passed.filter(|node| is_root(*node)));
            }
        }
        let mut hosts_of: BTreeMap<NodeIndex, usize> = BTreeMap::new();
        for (lid, roots) in &roots {
            assert_eq!(roots.len(), 1, "{name}: LID {lid}");
            *hosts_of.entry(*roots.first().unwrap()).or_default() += 1;
        }
        assert_eq!(hosts_of.into_values().collect::<Vec<_>>(), [128 / 16; 16], "{name}");
    }
}

#[test]
fn the_number_of_threads_changes_nothing() {
    let fabric = rlft(12, 2, &options()).unwrap();
    for lmc in [0, 2] {
        let lids = Lids::in_guid_order(&fabric, lmc).unwrap();
        let by = |threads| {
            let options = EngineOptions { threads, ..EngineOptions::default() };
            Engine::by_name("minhop").unwrap().route(&Input {
                fabric: &fabric,
                lids: &lids,
                options: &options,
            })
        };
        assert_eq!(by(1).unwrap(), by(2).unwrap());
        assert_eq!(by(2).unwrap().routes, minhop(&fabric, &lids));
    }
}

#[test]
fn parallel_cables_share_evenly() {
    let text = "Switch 8 \"a\"\n[1] \"b\"[1]\n[2] \"b\"[2]\n[3] \"b\"[3]\n\
                \nSwitch 20 \"b\"\n[11] \"h1\"\n[12] \"h2\"\n[13] \"h3\"\n[14] \"h4\"\n[15] \"h5\"\n[16] \"h6\"\n\
                \nCa 1 \"h1\"\n\nCa 1 \"h2\"\n\nCa 1 \"h3\"\n\nCa 1 \"h4\"\n\nCa 1 \"h5\"\n\nCa 1 \"h6\"\n";
    let fabric = parse("parallel", text).unwrap();
    let (lids, routes) = routed(&fabric, 0);
    let hosts = lids.iter().filter(|lids| !fabric.node(lids.port.node).is_switch()).map(|lids| lids.base);
    let loads = loads(&routes, fabric.find("a").unwrap(), hosts);
    assert_eq!(loads, BTreeMap::from([(PortNum(1), 2), (PortNum(2), 2), (PortNum(3), 2)]));
}

#[test]
fn the_lids_of_a_port_vary_neighbours_before_cables() {
    // From a to d: by b (two cables) or by c (one).
    let text = "Switch 8 \"a\"\n[1] \"b\"[1]\n[2] \"b\"[2]\n[3] \"c\"[1]\n[4] \"h1\"\n\nSwitch 8 \"b\"\n[3] \"d\"[1]\n\
                \nSwitch 8 \"c\"\n[3] \"d\"[2]\n\nSwitch 8 \"d\"\n[8] \"h2\"\n\nCa 1 \"h1\"\n\nCa 1 \"h2\"\n";
    let fabric = parse("lmc", text).unwrap();
    let a = fabric.find("a").unwrap();
    let (lids, routes) = routed(&fabric, 2);
    assert!(verify(&fabric, &lids, &routes, &[]).is_minimal());
    let of_h2 = lids.of(end(&fabric, "h2", 1)).unwrap();
    let ports: Vec<u8> = of_h2.iter().map(|lid| routes.port(a, lid).0).collect();
    assert_eq!(ports.len(), 4);
    assert_ne!(ports[0] == 3, ports[1] == 3, "two LIDs, two neighbours: {ports:?}");
    let used: std::collections::BTreeSet<u8> = ports.iter().copied().collect();
    assert_eq!(used, [1, 2, 3].into(), "{ports:?}");
}

#[test]
fn disconnected_pieces_have_no_routes_to_each_other() {
    let text = "Switch 4 \"a\"\n[1] \"h1\"\n\nSwitch 4 \"b\"\n[1] \"h2\"\n\nCa 1 \"h1\"\n\nCa 1 \"h2\"\n";
    let fabric = parse("pieces", text).unwrap();
    let (lids, routes) = routed(&fabric, 0);
    let lid = |id: &str, port| lids.of(end(&fabric, id, port)).unwrap().base;
    let a = fabric.find("a").unwrap();
    assert_eq!(routes.port(a, lid("h2", 1)), PortNum::NONE);
    assert_eq!(routes.port(a, lid("b", 0)), PortNum::NONE);
    assert_eq!(routes.port(a, lid("h1", 1)), PortNum(1));
    assert_eq!(routes.port(a, lid("a", 0)), PortNum::ZERO);
    let report = verify(&fabric, &lids, &routes, &[]);
    assert!(report.is_minimal(), "{report}");
    assert_eq!((report.pairs, report.disconnected), (4, 4));
    let error = trace(&fabric, &lids, &routes, end(&fabric, "h1", 1), lid("h2", 1)).unwrap_err();
    assert_eq!(
        error.to_string(),
        format!("from h1[1] to LID {}: the last switch has no route: h1[1] -> [1]a[no route]", lid("h2", 1))
    );
}

#[test]
fn an_hca_with_two_ports_carries_nothing_for_others() {
    let text = "Switch 4 \"a\"\n[1] \"two\"[1]\n[2] \"h1\"\n\nSwitch 4 \"b\"\n[1] \"two\"[2]\n[2] \"h2\"\n\
                \nCa 2 \"two\"\n\nCa 1 \"h1\"\n\nCa 1 \"h2\"\n";
    let fabric = parse("two", text).unwrap();
    let (lids, routes) = routed(&fabric, 0);
    let lid = |id: &str, port| lids.of(end(&fabric, id, port)).unwrap().base;
    let (a, b) = (fabric.find("a").unwrap(), fabric.find("b").unwrap());
    assert_eq!(routes.port(a, lid("two", 1)), PortNum(1));
    assert_eq!(routes.port(a, lid("two", 2)), PortNum::NONE);
    assert_eq!(routes.port(b, lid("two", 2)), PortNum(1));
    assert_eq!(routes.port(a, lid("h2", 1)), PortNum::NONE);
    assert!(verify(&fabric, &lids, &routes, &[]).is_minimal());
}

#[test]
fn a_switch_cabled_to_itself_does_not_route_by_that_cable() {
    let text = "Switch 6 \"a\"\n[1] \"a\"[2]\n[3] \"b\"[3]\n\nSwitch 6 \"b\"\n[4] \"h\"\n\nCa 1 \"h\"\n";
    let fabric = parse("self", text).unwrap();
    let (lids, routes) = routed(&fabric, 0);
    let a = fabric.find("a").unwrap();
    let ports: Vec<PortNum> = routes.table(a).unwrap().routes().map(|(_, port)| port).collect();
    assert!(!ports.contains(&PortNum(1)) && !ports.contains(&PortNum(2)), "{ports:?}");
    assert!(verify(&fabric, &lids, &routes, &[]).is_minimal());
}

#[test]
fn two_hosts_back_to_back_and_a_lone_host_need_no_switch() {
    let text = "Ca 1 \"x\"\n[1] \"y\"[1]\n\nCa 1 \"y\"\n\nCa 1 \"z\"\n";
    let fabric = parse("hosts", text).unwrap();
    let (lids, routes) = routed(&fabric, 0);
    assert_eq!(lids.len(), 2, "a port without a cable gets no LID");
    assert!(routes.tables.iter().all(weft_routing::ForwardingTable::is_empty));
    let report = verify(&fabric, &lids, &routes, &[]);
    assert_eq!((report.pairs, report.unattached, report.is_sound()), (0, 2, true));
    let lid = lids.of(end(&fabric, "y", 1)).unwrap().base;
    let path = trace(&fabric, &lids, &routes, end(&fabric, "x", 1), lid).unwrap();
    assert_eq!(path.to_string(), "x[1] -> [1]y");
}

#[test]
fn the_production_cluster_is_routed_with_its_own_lids() {
    let fabric = parse("x5", include_str!("../../../../../topologies/psmn-x5.topo")).unwrap();
    let lids = Lids::from_fabric(&fabric).unwrap();
    assert_eq!(lids.len(), 100);
    let routes = minhop(&fabric, &lids);
    let report = verify(&fabric, &lids, &routes, &[]);
    assert!(report.is_minimal(), "{report}");
    assert_eq!((report.pairs, report.disconnected), (11 * 100, 0));
}

/// A random fabric that may be in pieces: some of its cables are cut.
fn in_pieces(parameters: &RandomFabric, seed: u64, cut_every: usize) -> Option<Fabric> {
    let whole = random(parameters, seed, &options()).ok()?;
    let mut builder = FabricBuilder::new();
    for node in whole.nodes() {
        builder.add_node(node.clone()).ok()?;
    }
    for (number, cable) in whole.cables().enumerate() {
        if number % cut_every != 0 {
            builder.connect(cable.a, cable.b).ok()?;
        }
    }
    Some(builder.build())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn paths_on_random_fabrics_are_as_short_as_petgraphs(
        switches in 1u32..16, hosts in 0u32..24, extra in 0u32..12, parallel in 0u32..4, seed: u64,
        cut_every in 2usize..20, lmc in 0u8..3,
    ) {
        let extra_cables = if switches > 1 { extra } else { 0 };
        let parallel_cables = if switches > 1 { parallel } else { 0 };
        let parameters = RandomFabric { switches, hosts, extra_cables, parallel_cables };
        let Some(fabric) = in_pieces(&parameters, seed, cut_every) else {
            return Err(TestCaseError::reject("more cables than ports"));
        };
        let (lids, routes) = routed(&fabric, lmc);
        let report = verify(&fabric, &lids, &routes, &[]);
        prop_assert!(report.is_minimal(), "seed {}: {}", seed, report);
        for (from, _) in fabric.switches() {
            let hops = petgraph_hops(&fabric, from);
            for port_lids in lids.iter() {
                let owner = port_lids.port;
                let last = match fabric.node(owner.node).is_switch() {
                    true => owner.node,
                    false => fabric.peer(owner).unwrap().node,
                };
                for lid in port_lids.iter() {
                    let path = trace(&fabric, &lids, &routes, PortRef::new(from, PortNum::ZERO), lid);
                    let delivery = usize::from(last != owner.node);
                    let expected = hops.get(&last).map(|hops| *hops as usize + delivery);
                    prop_assert_eq!(path.ok().map(|path| path.cables()), expected, "seed {}", seed);
                }
            }
        }
    }

    #[test]
    fn tables_do_not_depend_on_the_order_of_nodes(
        switches in 2u32..16, hosts in 1u32..24, extra in 0u32..12, parallel in 0u32..4, seed: u64, by: usize,
        lmc in 0u8..2,
    ) {
        let parameters = RandomFabric { switches, hosts, extra_cables: extra, parallel_cables: parallel };
        let Ok(fabric) = random(&parameters, seed, &options()) else {
            return Err(TestCaseError::reject("more cables than ports"));
        };
        let other = shuffled(&fabric, by);
        prop_assert_eq!(weft_topology::diff(&fabric, &other), []);
        let ((_, routes), (_, other_routes)) = (routed(&fabric, lmc), routed(&other, lmc));
        prop_assert_eq!(tables_by_guid(&fabric, &routes), tables_by_guid(&other, &other_routes), "seed {}", seed);
    }

    #[test]
    fn equal_ways_are_used_equally(seed: u64, hosts in 1u32..40, ways in 1u8..6) {
        // Two switches with parallel cables, hosts spread over them at random.
        let mut builder = FabricBuilder::new();
        let rate = LinkRate::default();
        let node = |kind, guid, ports| Node::new(kind, Guid(guid), ports, rate);
        let switches = [1, 2].map(|guid| builder.add_node(node(NodeType::Switch, guid, 60)).unwrap());
        for way in 1..=ways {
            let ends = switches.map(|switch| PortRef::new(switch, PortNum(way)));
            builder.connect(ends[0], ends[1]).unwrap();
        }
        for host in 0..hosts {
            let index = builder.add_node(node(NodeType::Hca, 1000 + u64::from(host) * 16, 1)).unwrap();
            let switch = switches[usize::from(seed >> (host % 64) & 1 == 1)];
            let port = builder.free_port(switch).unwrap();
            builder.connect(PortRef::new(index, PortNum(1)), PortRef::new(switch, port)).unwrap();
        }
        let fabric = builder.build();
        let (lids, routes) = routed(&fabric, 0);
        for switch in switches {
            let loads = loads(&routes, switch, lids.iter().map(|lids| lids.base));
            let used: Vec<usize> = (1..=ways).map(|way| loads.get(&PortNum(way)).copied().unwrap_or(0)).collect();
            prop_assert!(used.iter().max().unwrap() - used.iter().min().unwrap() <= 1, "{:?}", used);
        }
    }
}

#[test]
fn a_torus_is_routed_minimally() {
    let fabric = torus(&[4, 4, 3], 2, &options()).unwrap();
    let (lids, routes) = routed(&fabric, 1);
    let report = verify(&fabric, &lids, &routes, &[]);
    assert!(report.is_minimal(), "{report}");
    assert_eq!(report.hops.len() - 1, 2 + 2 + 1);
}
