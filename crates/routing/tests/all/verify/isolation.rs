//! Policies of isolation, compared with what every pair of every partition uses.

use std::collections::{BTreeMap, BTreeSet};

use weft_routing::{
    Expectations, Isolation, Member, Partition, Partitions, Routing, ServiceLevels, verify_routing,
};
use weft_topology::PortRef;
use weft_topology::generate::{GenerateOptions, xgft};
use weft_wire::{Guid, Lid, PortNum, ServiceLevel};

use super::each_seed;
use super::oracle::{ends, walk};
use super::scenario::{Bounds, Scenario};
use super::{host, lid_of, routed};

type Usage = BTreeMap<PortRef, BTreeSet<u8>>;

/// The lanes that each partition uses, by channel.
fn usages(scenario: &Scenario, routing: &Routing, partitions: &Partitions) -> Vec<Usage> {
    let Scenario { fabric, lids, .. } = scenario;
    let all = ends(fabric, lids);
    let guid = |port: PortRef| fabric.port(port).expect("it is there").guid;
    let membership = |partition: &Partition, port: PortRef| {
        let of_port: Vec<bool> = partition
            .members
            .iter()
            .filter(|member| member.guid == guid(port))
            .map(|member| member.full)
            .collect();
        (!of_port.is_empty()).then(|| of_port.contains(&true))
    };
    let elsewhere = |port: PortRef| {
        let others = partitions.list.iter().filter(|partition| partition.pkey != 0x7fff);
        others.into_iter().any(|partition| membership(partition, port).is_some())
    };
    let usage = |partition: &Partition| {
        let mut usage = Usage::new();
        for (a, b) in all.iter().flat_map(|a| all.iter().map(move |b| (a, b))) {
            let Some((from, to)) = membership(partition, a.port).zip(membership(partition, b.port)) else {
                continue;
            };
            let left_out = partition.pkey == 0x7fff && (elsewhere(a.port) || elsewhere(b.port));
            if left_out || !(from || to) || !(a.host && b.host) {
                continue;
            }
            let walk = walk(fabric, routing, a.port, (b.lid, b.port), routing.levels.of(a.lid, b.lid));
            for (channel, lane) in walk.channels {
                usage.entry(channel).or_default().insert(lane);
            }
        }
        usage
    };
    partitions.list.iter().map(usage).collect()
}

#[test]
fn breaches_are_those_that_following_each_pair_finds() {
    each_seed(200, |seed| {
        let mut scenario = Scenario::new(seed, Bounds { switches: 7, hosts: 9 });
        let (routing, partitions) = (scenario.routing(), scenario.partitions());
        let expectations = Expectations { partitions: Some(&partitions), ..Expectations::default() };
        let verdict = verify_routing(&scenario.fabric, &scenario.lids, &routing, &expectations);
        let usages = usages(&scenario, &routing, &partitions);
        let mut expected = BTreeSet::new();
        for (at, partition) in partitions.list.iter().enumerate() {
            for (channel, lanes) in &usages[at] {
                let others = usages.iter().enumerate().filter(|(other, _)| *other != at);
                let mut others = others.filter_map(|(_, usage)| usage.get(channel));
                let broken = match partition.isolation {
                    Isolation::Phy => others.next().is_some(),
                    Isolation::Vlane => others.any(|other| !other.is_disjoint(lanes)),
                    Isolation::Def => false,
                };
                if broken {
                    expected.insert((at, *channel));
                }
            }
        }
        let found = verdict.isolation.expect("it was asked for");
        assert_eq!(found.breaches, expected.len() as u64);
        assert_eq!(found.examples.len(), expected.len().min(16));
        assert!(found.examples.iter().all(|breach| breach.pair.is_some() && breach.other_pair.is_some()));
    });
}

/// A tree of two leaves with two hosts each and two roots: hosts 0 and 2 in one partition, 1 and 3 in another.
fn two_tenants(isolation: Isolation) -> (Scenario, Routing, Partitions) {
    let mut scenario = Scenario::new(0, Bounds { switches: 1, hosts: 0 });
    scenario.fabric = xgft(&[2, 2], &[1, 2], &GenerateOptions::default()).expect("a tree");
    let (lids, mut routing) = routed(&scenario.fabric);
    let guid = |number| scenario.fabric.port(host(&scenario.fabric, number)).expect("it is there").guid;
    let member = |number| Member { guid: guid(number), full: true };
    let partition = |pkey, numbers: [u32; 2], isolation| Partition {
        name: if pkey == 1 { "one".to_owned() } else { String::new() },
        pkey,
        members: numbers.map(member).to_vec(),
        isolation,
    };
    let list = vec![partition(1, [0, 2], isolation), partition(2, [1, 3], Isolation::Def)];
    // All by the first root.
    for (leaf, node) in scenario.fabric.switches() {
        let up = node.cabled_ports().find(|(_, peer)| scenario.fabric.node(peer.node).is_switch());
        for number in 0..4 {
            let port = host(&scenario.fabric, number);
            let on_leaf = scenario.fabric.peer(port).map(|peer| peer.node) == Some(leaf);
            let is_leaf = node.cabled_ports().any(|(_, peer)| !scenario.fabric.node(peer.node).is_switch());
            if is_leaf && !on_leaf {
                let lid = lid_of(&scenario.fabric, &lids, number);
                routing.routes.tables[leaf.index()].set(lid, up.expect("it has uplinks").0);
            }
        }
    }
    scenario.lids = lids;
    (scenario, routing, Partitions { list, ..Partitions::default() })
}

#[test]
fn sharing_a_link_breaks_phy_and_sharing_a_lane_breaks_vlane() {
    for (isolation, breaches) in [(Isolation::Phy, 4), (Isolation::Vlane, 4), (Isolation::Def, 0)] {
        let (scenario, mut routing, partitions) = two_tenants(isolation);
        let expectations = Expectations { partitions: Some(&partitions), ..Expectations::default() };
        let check = |routing: &Routing| {
            let verdict = verify_routing(&scenario.fabric, &scenario.lids, routing, &expectations);
            (verdict.isolation.clone().expect("it was asked for").breaches, verdict)
        };
        let (found, verdict) = check(&routing);
        assert_eq!((found, verdict.is_sound()), (breaches, breaches == 0), "{verdict}");
        if breaches > 0 {
            assert!(verdict.to_string().contains("one shares S-"), "{verdict}");
            assert!(verdict.to_string().contains("with 0x0002: packets from LID "), "{verdict}");
        }
        // A lane of its own is enough for vlane, and not for phy.
        let mut levels = ServiceLevels::classes(scenario.lids.top(), 1, 1);
        for number in [0, 2] {
            let lid = lid_of(&scenario.fabric, &scenario.lids, number);
            levels.set_source(lid, 0);
            levels.set_destination(lid, 0);
        }
        levels.set(0, 0, ServiceLevel(1));
        routing.levels = levels;
        assert_eq!(check(&routing).0, if isolation == Isolation::Phy { 4 } else { 0 });
    }
}

#[test]
fn switches_that_everybody_manages_share_nothing() {
    let (scenario, routing, mut partitions) = two_tenants(Isolation::Phy);
    // The other partition is the default one, with all ports in it but host 3's, so that host 1 has no one to talk to.
    let ports = scenario.fabric.nodes().iter().flat_map(weft_topology::Node::end_ports);
    let left_out = scenario.fabric.port(host(&scenario.fabric, 3)).expect("it is there").guid;
    let guids = ports.map(|(_, port)| port.guid).filter(|guid| *guid != left_out);
    partitions.list[1].members = guids.map(|guid| Member { guid, full: true }).collect();
    partitions.list[1].pkey = 0x7fff;
    let expectations = Expectations { partitions: Some(&partitions), ..Expectations::default() };
    let verdict = verify_routing(&scenario.fabric, &scenario.lids, &routing, &expectations);
    assert_eq!(verdict.isolation.as_ref().map(|found| found.breaches), Some(0), "{verdict}");
}

#[test]
fn members_that_are_nowhere_and_limited_ones_use_nothing() {
    let (scenario, routing, mut partitions) = two_tenants(Isolation::Phy);
    partitions.list[1].members.push(Member { guid: Guid(77), full: true });
    partitions.list[1].members.iter_mut().for_each(|member| member.full = member.guid == Guid(77));
    let expectations = Expectations { partitions: Some(&partitions), ..Expectations::default() };
    let verdict = verify_routing(&scenario.fabric, &scenario.lids, &routing, &expectations);
    assert_eq!(verdict.isolation.expect("it was asked for").breaches, 0);
    assert_ne!((Lid(0), PortNum(1)), (scenario.lids.top(), PortNum(0)));
}
