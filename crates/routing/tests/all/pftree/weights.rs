//! Weights: links for those who receive, and both objectives together.

use std::collections::BTreeMap;

use rand::RngExt;
use rand::seq::SliceRandom;
use rand_pcg::Pcg64Mcg;
use weft_routing::{EngineOptions, Isolation, Lids, Routing, Strictness};
use weft_topology::generate::{GenerateOptions, pgft};
use weft_topology::{Fabric, PortRef};
use weft_wire::{Guid, PortNum};

use super::common::{
    TOPOLOGIES, carried, generator, hosts_by_leaf, is_kept, options, path, route, seed, tree, try_route,
    victims,
};

/// Receivers among the victims, as many on every leaf.
fn receivers(fabric: &Fabric, victims: &[Guid], each: usize, random: &mut Pcg64Mcg) -> Vec<Guid> {
    let mut receivers = Vec::new();
    for hosts in hosts_by_leaf(fabric) {
        let mut hosts: Vec<Guid> = hosts.into_iter().filter(|guid| victims.contains(guid)).collect();
        hosts.shuffle(random);
        receivers.extend(hosts.into_iter().take(each));
    }
    receivers
}

/// The contention downwards: by link from a root, how many receivers beyond one it leads to.
fn contention_down(fabric: &Fabric, lids: &Lids, routing: &Routing, receivers: &[Guid]) -> usize {
    let mut flows: BTreeMap<PortRef, usize> = BTreeMap::new();
    let leaves: Vec<PortRef> = fabric
        .switches()
        .filter(|(_, node)| node.description.starts_with("switch-1-"))
        .map(|(index, _)| PortRef::new(index, PortNum::ZERO))
        .collect();
    for lids in lids.iter() {
        if !fabric.port(lids.port).is_some_and(|port| receivers.contains(&port.guid)) {
            continue;
        }
        let mut links: Vec<PortRef> =
            leaves.iter().flat_map(|leaf| path(fabric, routing, *leaf, lids.base)).collect();
        links.sort_unstable();
        links.dedup();
        let is_root = |link: &PortRef| fabric.node(link.node).description.starts_with("switch-2-");
        links.into_iter().filter(is_root).for_each(|link| *flows.entry(link).or_default() += 1);
    }
    flows.into_values().map(|receivers| receivers - 1).sum()
}

#[test]
fn receivers_that_fit_the_cables_have_one_each() {
    let mut random = generator(seed());
    let mut contended = 0;
    for (children, parents, count) in TOPOLOGIES {
        let fabric = tree(&children, &parents);
        let most = (count / children[1] as usize).min(parents[1] as usize);
        for each in [1, most.div_ceil(2), most] {
            let list = victims(&fabric, count, Isolation::Def, &mut random);
            let members: Vec<Guid> = list[0].members.iter().map(|member| member.guid).collect();
            let receivers = receivers(&fabric, &members, each, &mut random);
            assert_eq!(receivers.len(), each * children[1] as usize);
            let mut options = options(list, Strictness::BestEffort);
            options.weights = receivers.iter().map(|guid| (*guid, 100)).collect();
            let (lids, routing) = route("pftree-wt", &fabric, &options);
            assert_eq!(contention_down(&fabric, &lids, &routing, &receivers), 0, "{children:?}, {each} each");
            let (lids, routing) = route("pftree", &fabric, &options);
            contended += contention_down(&fabric, &lids, &routing, &receivers);
        }
    }
    assert!(contended > 0, "pftree alone puts receivers on one link");
}

/// By link between switches, the weights of the hosts on other switches that are sent over it, in order.
fn loads(fabric: &Fabric, options: &EngineOptions, engine: &str) -> BTreeMap<PortRef, Vec<u32>> {
    let (lids, routing) = route(engine, fabric, options);
    let mut loads: BTreeMap<PortRef, Vec<u32>> = BTreeMap::new();
    for lids in lids.iter().filter(|lids| !fabric.node(lids.port.node).is_switch()) {
        let guid = fabric.port(lids.port).expect("a port").guid;
        let weight = options.weights.get(&guid).copied().unwrap_or(1);
        let own = fabric.peer(lids.port).expect("a cable").node;
        for (leaf, _) in fabric.switches().filter(|(_, node)| node.description.starts_with("switch-1-")) {
            if leaf != own {
                for link in path(fabric, &routing, PortRef::new(leaf, PortNum::ZERO), lids.base) {
                    loads.entry(link).or_default().push(weight);
                }
            }
        }
    }
    loads.values_mut().for_each(|weights| weights.sort_unstable());
    loads
}

#[test]
fn a_heavy_host_has_a_parallel_cable_to_itself() {
    // Two leaves of four hosts, and a root with two cables to each.
    let fabric = pgft(&[4, 2], &[1, 1], &[1, 2], &GenerateOptions::default()).expect("a tree");
    let heavy = hosts_by_leaf(&fabric)[0][0];
    let options = EngineOptions { weights: [(heavy, 100)].into(), ..EngineOptions::default() };
    // From every switch by the ports to a neighbour, in order of weight.
    let by_cables = |engine: &str, is_up: bool| {
        let mut of: BTreeMap<_, Vec<Vec<u32>>> = BTreeMap::new();
        for (link, weights) in loads(&fabric, &options, engine) {
            let to = fabric.peer(link).expect("a cable").node;
            let ends = [link.node, to].map(|node| fabric.node(node).description.as_str());
            if ends[0].starts_with("switch-1-") == is_up {
                of.entry(ends).or_default().push(weights);
            }
        }
        let mut of: Vec<Vec<Vec<u32>>> = of.into_values().collect();
        of.iter_mut().for_each(|cables| cables.sort_unstable());
        of.sort_unstable();
        of
    };
    let (ones, alone) = (vec![vec![1, 1], vec![1, 1]], vec![vec![1, 1, 1], vec![100]]);
    for engine in ["pftree-wt", "pftree-combined"] {
        assert_eq!(by_cables(engine, true), [ones.clone(), alone.clone()], "{engine}");
    }
    assert_eq!(by_cables("pftree-wt", false), [ones.clone(), alone]);
    // Without weights, each cable has two.
    let even = [ones, vec![vec![1, 1], vec![1, 100]]];
    for is_up in [true, false] {
        assert_eq!(by_cables("pftree", is_up), even);
    }
}

#[test]
fn weights_out_of_range_are_refused_by_guid() {
    let fabric = tree(&[2, 2], &[1, 2]);
    let lids = Lids::in_guid_order(&fabric, 0).expect("enough");
    for (weight, engine) in [(0, "pftree-wt"), (101, "pftree-wt"), (1000, "pftree-combined")] {
        let options = EngineOptions { weights: [(Guid(0x77), weight)].into(), ..EngineOptions::default() };
        let refusal = try_route(engine, &fabric, &lids, &options).expect_err("out of range");
        let wanted = format!("the weight of {} is {weight}; weights are 1 to 100", Guid(0x77));
        assert_eq!((&*refusal.engine, refusal.reason), (engine, wanted));
    }
    // Who does not read weights does not mind.
    let options = EngineOptions { weights: [(Guid(0x77), 0)].into(), ..EngineOptions::default() };
    assert!(try_route("pftree-ext", &fabric, &lids, &options).is_ok());
}

/// A victim with links of its own, and weights drawn for all hosts.
fn mixed(fabric: &Fabric, random: &mut Pcg64Mcg) -> EngineOptions {
    let list = victims(fabric, fabric.hosts().count() / 4, Isolation::Phy, random);
    let mut options = options(list, Strictness::BestEffort);
    options.weights =
        hosts_by_leaf(fabric).concat().into_iter().map(|guid| (guid, random.random_range(1..=100))).collect();
    options
}

/// The heaviest link downwards.
fn heaviest(fabric: &Fabric, options: &EngineOptions, lids: &Lids, routing: &Routing) -> u32 {
    let mut weights: BTreeMap<PortRef, u32> = BTreeMap::new();
    for lids in lids.iter().filter(|lids| !fabric.node(lids.port.node).is_switch()) {
        let guid = fabric.port(lids.port).expect("a port").guid;
        let own = fabric.peer(lids.port).expect("a cable").node;
        let leaf =
            fabric.switches().find(|(node, of)| *node != own && of.description.starts_with("switch-1-"));
        let links =
            path(fabric, routing, PortRef::new(leaf.expect("another leaf").0, PortNum::ZERO), lids.base);
        *weights.entry(*links.last().expect("a link")).or_default() += options.weights[&guid];
    }
    weights.into_values().max().unwrap_or(0)
}

#[test]
fn the_combined_objective_goes_from_one_to_the_other() {
    let mut random = generator(seed());
    let fabric = tree(&[16, 4], &[1, 8]);
    for _ in 0..3 {
        let mut options = mixed(&fabric, &mut random);
        let mut at = |share| {
            options.isolation_share = share;
            let (lids, routing) = route("pftree-combined", &fabric, &options);
            let list = &options.partitions.as_ref().expect("given").list;
            let kept = is_kept(&carried(&fabric, &lids, &routing, list), &list[0]);
            (heaviest(&fabric, &options, &lids, &routing), kept, routing)
        };
        let (isolated, balanced, between) = (at(1000), at(0), at(500));
        let (_, ext) = route("pftree-ext", &fabric, &options);
        let (_, wt) = route("pftree-wt", &fabric, &options);
        assert!(isolated.1 && !balanced.1);
        assert_eq!(balanced.2.routes, wt.routes, "all for the weights");
        assert_eq!(isolated.2.routes, ext.routes, "all for isolation");
        assert!(balanced.0 < isolated.0, "{} {}", balanced.0, isolated.0);
        assert!(between.2.routes != ext.routes && between.2.routes != wt.routes);
        assert!(between.0 <= isolated.0, "{} {} {}", balanced.0, between.0, isolated.0);
    }
}
