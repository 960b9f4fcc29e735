//! Ranks, tuples and groups of whole, broken and impossible trees.

use weft_topology::generate::{GenerateOptions, kary_ntree, pgft, rlft, xgft};
use weft_topology::{Fabric, FabricBuilder, parse};

use super::*;
use crate::lids::Lids;
use crate::options::EngineOptions;

fn plain() -> GenerateOptions {
    GenerateOptions::default()
}

fn tree_with(fabric: &Fabric, options: &EngineOptions) -> Result<Tree, String> {
    let lids = Lids::in_guid_order(fabric, 0).unwrap();
    Tree::new(&Input { fabric, lids: &lids, options })
}

fn tree_of(fabric: &Fabric) -> Tree {
    tree_with(fabric, &EngineOptions::default()).unwrap()
}

fn number(fabric: &Fabric, tree: &Tree, name: &str) -> u32 {
    let node = fabric.iter().find(|(_, node)| node.description == name || node.id == name).unwrap().0;
    tree.graph.number(node).unwrap()
}

fn tuple(fabric: &Fabric, tree: &Tree, name: &str) -> String {
    tree.tuples[number(fabric, tree, name) as usize].to_string()
}

/// The fabric without the cables that `gone` names, by the descriptions of their ends.
fn without(fabric: &Fabric, gone: impl Fn(&str, &str) -> bool) -> Fabric {
    let mut builder = FabricBuilder::new();
    for node in fabric.nodes() {
        builder.add_node(node.clone()).unwrap();
    }
    for cable in fabric.cables() {
        let name = |end: weft_topology::PortRef| fabric.node(end.node).description.as_str();
        if !gone(name(cable.a), name(cable.b)) && !gone(name(cable.b), name(cable.a)) {
            builder.connect(cable.a, cable.b).unwrap();
        }
    }
    builder.build()
}

#[test]
fn the_tuples_of_the_paper_on_vswitches_come_out() {
    // Figure 4: XGFT(4; 2,2,2,2; 2,2,2,1) in the paper's order, which has the hosts last.
    let fabric = xgft(&[2, 2, 2, 2], &[1, 2, 2, 2], &plain()).unwrap();
    let tree = tree_of(&fabric);
    assert_eq!((tree.rank_count(), tree.leaves.len()), (4, 8));
    let of = |name: &str| tuple(&fabric, &tree, name);
    assert_eq!(of("switch-3-3"), "1.0.1.1", "Sw1_3");
    assert_eq!(of("switch-3-4"), "1.1.0.0");
    assert_eq!(of("switch-1-0"), "3.0.0.0", "the two leaves of figure 5");
    assert_eq!(of("switch-1-3"), "3.0.1.1");
    assert_eq!(of("switch-2-2"), "2.0.1.0");
    assert_eq!(of("switch-4-5"), "0.1.0.1");
    let mut all: Vec<String> = tree.tuples.iter().map(ToString::to_string).collect();
    all.sort();
    all.dedup();
    assert_eq!(all.len(), 32);
    // Definition 1: cables join only what differs in one digit.
    for group in &tree.groups {
        let (upper, lower) = (&tree.tuples[group.upper as usize], &tree.tuples[group.lower as usize]);
        let digit = tree.rank(group.lower) as usize;
        let differ = (1..=3).filter(|i| *i != digit && upper.digits()[i - 1] != lower.digits()[i - 1]);
        assert_eq!(differ.count(), 0, "{upper} {lower}");
    }
}

#[test]
fn tuples_outlive_lost_cables() {
    let whole = kary_ntree(3, 3, &plain()).unwrap();
    // The first root loses the second sub-tree, and the first leaf its first cable up.
    let broken = without(&whole, |a, b| {
        (a == "switch-3-0" && b == "switch-2-3") || (a == "switch-1-0" && b == "switch-2-0")
    });
    let (before, after) = (tree_of(&whole), tree_of(&broken));
    assert_eq!(before.tuples, after.tuples);
    assert_eq!(before.ranks, after.ranks);
}

#[test]
fn groups_hold_all_cables_between_two_switches() {
    let fabric = pgft(&[4, 3], &[1, 2], &[1, 3], &plain()).unwrap();
    let tree = tree_of(&fabric);
    let leaf = number(&fabric, &tree, "switch-1-1");
    let up: Vec<_> = tree.up(leaf).collect();
    assert_eq!(up.len(), 2);
    for (place, (_, group)) in up.iter().enumerate() {
        assert_eq!(group.upper, number(&fabric, &tree, &format!("switch-2-{place}")));
        let ports: Vec<u8> = tree.cables(group).map(|(_, cable)| cable.lower.0).collect();
        assert_eq!(ports, [5, 6, 7].map(|port| port + 3 * place as u8));
        let ports: Vec<u8> = tree.cables(group).map(|(_, cable)| cable.upper.0).collect();
        assert_eq!(ports, [4, 5, 6]);
    }
    let root = number(&fabric, &tree, "switch-2-1");
    let below: Vec<u32> = tree.down(root).map(|(_, group)| group.lower).collect();
    assert_eq!(below, tree.leaves);
    assert_eq!(tree.ends(leaf).len(), 5, "four hosts and the switch itself");
    assert_eq!(tree.ends(leaf)[0].kind, EndKind::Switch);
}

#[test]
fn a_switch_without_hosts_beside_leaves_is_no_root() {
    let fabric = rlft(4, 3, &plain()).unwrap();
    let empty = without(&fabric, |a, b| a == "switch-1-0" && b.starts_with("host"));
    let tree = tree_of(&empty);
    assert_eq!(tree.rank(number(&empty, &tree, "switch-1-0")), 2);
    assert_eq!(tree.roots(&empty).len(), 4);
    assert_eq!(tree.leaves.len(), 7);
    // Where the tree has two ranks, nothing else tells a leaf without hosts from a third rank.
    let fabric = rlft(8, 2, &plain()).unwrap();
    let empty = without(&fabric, |a, b| a == "switch-1-3" && b.starts_with("host"));
    let tree = tree_of(&empty);
    assert_eq!((tree.rank(number(&empty, &tree, "switch-1-3")), tree.rank_count()), (1, 2));
}

#[test]
fn a_piece_cut_off_keeps_its_leaves_beside_the_others() {
    let whole = rlft(4, 3, &plain()).unwrap();
    let cut = without(&whole, |a, b| a.starts_with("switch-3") && (b == "switch-2-0" || b == "switch-2-1"));
    let tree = tree_of(&cut);
    assert!(tree.leaves.iter().all(|leaf| tree.rank(*leaf) == 2));
    assert_eq!(tree.rank(number(&cut, &tree, "switch-2-0")), 1);
    let tuples: std::collections::BTreeSet<&Tuple> = tree.tuples.iter().collect();
    assert_eq!(tuples.len(), 20);
}

#[test]
fn given_roots_rank_what_leaves_cannot() {
    // A host on a root: from the leaves the root would be one of them.
    let text = "Switch 4 \"r\"\n[1] \"a\"[1]\n[2] \"b\"[1]\n[4] \"io\"\n\nSwitch 4 \"a\"\n[2] \"h1\"\n\
                \nSwitch 4 \"b\"\n[2] \"h2\"\n\nCa 1 \"io\"\n\nCa 1 \"h1\"\n\nCa 1 \"h2\"\n";
    let fabric = parse("roots", text).unwrap();
    let error = tree_with(&fabric, &EngineOptions::default()).unwrap_err();
    assert_eq!(
        error,
        "r and a both have compute nodes and a cable between them, so there is no tree unless roots or compute \
         nodes are named"
    );
    let guid = |id: &str| fabric.node(fabric.find(id).unwrap()).guid;
    let roots = EngineOptions { roots: vec![guid("r")], ..EngineOptions::default() };
    let from_roots = tree_with(&fabric, &roots).unwrap();
    assert_eq!(from_roots.rank(number(&fabric, &from_roots, "r")), 0);
    assert_eq!(from_roots.rank(number(&fabric, &from_roots, "b")), 1);
    let io = EngineOptions { io_nodes: vec![guid("io")], ..EngineOptions::default() };
    let from_leaves = tree_with(&fabric, &io).unwrap();
    assert_eq!(from_leaves.ranks, from_roots.ranks);
    assert_eq!(from_leaves.leaves.len(), 2);
    let wrong = EngineOptions { roots: vec![weft_wire::Guid(0x77)], ..EngineOptions::default() };
    let error = tree_with(&fabric, &wrong).unwrap_err();
    assert!(error.starts_with("none of the given roots is a switch of this fabric"), "{error}");
}

#[test]
fn a_fabric_that_is_no_tree_is_refused_by_name() {
    let ring = weft_topology::generate::ring(5, 1, &plain()).unwrap();
    let error = tree_with(&ring, &EngineOptions::default()).unwrap_err();
    assert!(error.contains("both have compute nodes and a cable between them"), "{error}");
    let deep = kary_ntree(1, 9, &plain()).unwrap();
    let roots = vec![deep.nodes().iter().find(|node| node.description == "switch-9-0").unwrap().guid];
    let error = tree_with(&deep, &EngineOptions { roots, ..EngineOptions::default() }).unwrap_err();
    assert!(error.contains("is of rank 8, and a fat-tree has 8 ranks at most"), "{error}");
    let hostless = "Switch 2 \"a\"\n[1] \"b\"[1]\n\nSwitch 2 \"b\"\n";
    let error = tree_with(&parse("hostless", hostless).unwrap(), &EngineOptions::default()).unwrap_err();
    assert_eq!(error, "no compute node is cabled to a switch");
}
