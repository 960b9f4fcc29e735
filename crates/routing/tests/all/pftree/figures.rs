//! The paper's worked examples.

use std::collections::{BTreeMap, BTreeSet};

use weft_routing::{EngineOptions, Isolation, Partition, Strictness, verify};
use weft_topology::{Fabric, PortRef};
use weft_wire::PortNum;

use super::common::{assert_sound, carried, options, partition, port_guid, route, two_ranks};

/// By root, the hosts that all other leaves reach over it.
fn over(fabric: &Fabric, engine: &str, options: &EngineOptions) -> BTreeMap<String, String> {
    let (lids, routing) = route(engine, fabric, options);
    let report = verify(fabric, &lids, &routing.routes, &[]);
    assert!(report.is_minimal(), "{report}");
    assert_sound(fabric, &lids, &routing, options, true);
    let mut over: BTreeMap<String, String> = BTreeMap::new();
    for host in lids.iter().filter(|lids| !fabric.node(lids.port.node).is_switch()) {
        let own = fabric.peer(host.port).expect("a cable").node;
        let leaves = fabric.switches().filter(|(leaf, node)| node.id.starts_with('L') && *leaf != own);
        let mut roots: BTreeSet<String> = BTreeSet::new();
        for (leaf, _) in leaves {
            let port = PortRef::new(leaf, routing.routes.port(leaf, host.base));
            roots.insert(fabric.node(fabric.peer(port).expect("a root").node).id.clone());
        }
        assert_eq!(roots.len(), 1, "one root for a destination");
        let host = fabric.node(host.port.node).id.as_str();
        roots.into_iter().for_each(|root| over.entry(root).or_default().push_str(host));
    }
    over
}

fn members(fabric: &Fabric, pkey: u16, isolation: Isolation, hosts: &str) -> Partition {
    partition(pkey, isolation, hosts.split("").filter(|id| !id.is_empty()).map(|id| port_guid(fabric, id)))
}

fn roots(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|(root, hosts)| ((*root).to_owned(), (*hosts).to_owned())).collect()
}

fn figure_4() -> (Fabric, EngineOptions) {
    let fabric = two_ranks(&[&["a", "b", "c", "d"], &["e", "f", "g", "h"]], 2);
    let list = vec![members(&fabric, 1, Isolation::Def, "adgh"), members(&fabric, 2, Isolation::Def, "bcef")];
    (fabric, options(list, Strictness::BestEffort))
}

#[test]
fn figure_4_two_partitions_have_a_root_each() {
    let (fabric, options) = figure_4();
    let expected = roots(&[("R1", "adgh"), ("R2", "bcef")]);
    assert_eq!(over(&fabric, "pftree", &options), expected);
    assert_eq!(over(&fabric, "pftree-ext", &options), expected);
    let (_, routing) = route("pftree", &fabric, &options);
    assert_eq!((routing.report.lanes, routing.report.unsatisfied.len()), (1, 0), "nothing is shared");
    assert_eq!(routing.report.roots, ["R2", "R1"]);
}

/// Nine hosts, three partitions, two roots. D must be of the third partition for E and F to share a root.
fn figure_5(first: Isolation) -> (Fabric, EngineOptions) {
    let fabric = two_ranks(&[&["A", "B", "C"], &["D", "E", "F"], &["G", "H", "I"]], 2);
    let list = vec![
        members(&fabric, 1, first, "AE"),
        members(&fabric, 2, Isolation::Def, "BFI"),
        members(&fabric, 3, Isolation::Def, "CDGH"),
    ];
    (fabric, options(list, Strictness::Strict))
}

#[test]
fn figure_5_partitions_share_links_on_their_own_lanes() {
    let (fabric, options) = figure_5(Isolation::Def);
    let over = over(&fabric, "pftree", &options);
    let of = |host: &str| over.iter().find(|(_, hosts)| hosts.contains(host)).map(|(root, _)| root.as_str());
    assert_eq!((of("A"), of("C")), (Some("R1"), Some("R1")));
    assert_eq!((of("E"), of("F")), (Some("R2"), Some("R2")));
    let (lids, routing) = route("pftree", &fabric, &options);
    let list = &options.partitions.as_ref().expect("given").list;
    let shared: Vec<_> =
        carried(&fabric, &lids, &routing, list).into_values().filter(|users| users.len() > 1).collect();
    assert!(!shared.is_empty());
    for users in shared {
        let levels: BTreeSet<u8> = users.values().flatten().copied().collect();
        assert_eq!(levels.len(), users.len(), "a lane for each: {users:?}");
    }
    assert!((2..=3).contains(&routing.report.lanes), "{:?}", routing.report);
}

#[test]
fn figure_6_with_links_of_its_own_partition_1_shares_nothing() {
    let (fabric, options) = figure_5(Isolation::Phy);
    let over = over(&fabric, "pftree-ext", &options);
    assert_eq!(over, roots(&[("R1", "AE"), ("R2", "BCDFGHI")]));
    let (lids, routing) = route("pftree-ext", &fabric, &options);
    let list = &options.partitions.as_ref().expect("given").list;
    let carried = carried(&fabric, &lids, &routing, list);
    assert!(carried.values().all(|users| !users.contains_key(&1) || users.len() == 1), "{carried:?}");
    // The others share R2's links, on two lanes.
    assert_eq!((routing.report.lanes, routing.report.unsatisfied.len()), (2, 0));
}

#[test]
fn figure_12_a_heavy_host_has_a_link_for_itself() {
    let (fabric, mut options) = figure_4();
    options.weights.insert(port_guid(&fabric, "a"), 100);
    let expected = roots(&[("R1", "agh"), ("R2", "bcdef")]);
    assert_eq!(over(&fabric, "pftree-wt", &options), expected);
    let (lids, routing) = route("pftree-wt", &fabric, &options);
    let list = &options.partitions.as_ref().expect("given").list;
    let down_shared = carried(&fabric, &lids, &routing, list)
        .into_iter()
        .filter(|(link, users)| fabric.node(link.node).id.starts_with('R') && users.len() > 1)
        .map(|(link, _)| fabric.port_name(link).to_string());
    assert_eq!(down_shared.collect::<Vec<_>>(), ["R2[1]"], "one link downwards is shared");
    // The node's GUID will do; without weights it is figure 4.
    options.weights = [(fabric.node(fabric.find("a").expect("a host")).guid, 100)].into();
    assert_eq!(over(&fabric, "pftree-wt", &options), expected);
    options.weights.clear();
    assert_eq!(over(&fabric, "pftree-wt", &options), roots(&[("R1", "adgh"), ("R2", "bcef")]));
}

#[test]
fn figure_3_partitions_on_one_leaf_are_no_load() {
    // Partition 1 is on the first leaf and partition 3 on the second; only partition 2 uses the roots.
    let fabric = two_ranks(&[&["A", "B", "C"], &["D", "E", "F"]], 2);
    let list = vec![
        members(&fabric, 1, Isolation::Def, "BC"),
        members(&fabric, 2, Isolation::Def, "ACDF"),
        members(&fabric, 3, Isolation::Def, "DE"),
    ];
    let options = options(list, Strictness::BestEffort);
    let over = over(&fabric, "pftree", &options);
    let of = |host: &str| over.iter().find(|(_, hosts)| hosts.contains(host)).map(|(root, _)| root.clone());
    assert_ne!(of("A"), of("C"), "{over:?}");
    assert_ne!(of("D"), of("F"), "{over:?}");
    let (lids, routing) = route("pftree", &fabric, &options);
    let lid = |id: &str| {
        let port = PortRef::new(fabric.find(id).expect("a host"), PortNum(1));
        lids.of(port).expect("it has a LID").base
    };
    assert_eq!(routing.levels.of(lid("B"), lid("E")).0, 0, "they share no partition");
}
