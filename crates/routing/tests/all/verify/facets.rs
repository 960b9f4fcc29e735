//! Every figure of a verdict, compared with what the oracle counts, over random fabrics and routings.

use std::collections::BTreeMap;

use weft_routing::{
    Asymmetry, Drops, Expectations, LaneUse, LevelsOfPair, Lids, Pair, Report, Routing, TraceError, Verdict,
    verify, verify_routing,
};
use weft_topology::generate::{GenerateOptions, RandomFabric, random};
use weft_topology::{Fabric, PortRef};
use weft_wire::PortNum;

use super::each_seed;
use super::oracle::{End, PortLane, Waiting, distances, ends, switch_of, waiting, walk};
use super::scenario::{Bounds, Scenario};

const BOUNDS: Bounds = Bounds { switches: 9, hosts: 9 };

fn place(fabric: &Fabric, id: &str, port: PortNum, lane: u8) -> PortLane {
    (PortRef::new(fabric.by_id(id).expect("the node is there"), port), lane)
}

/// Compares all but turns and isolation.
pub(crate) fn compare(scenario: &Scenario, routing: &Routing, verdict: &Verdict) {
    let Scenario { fabric, lids, .. } = scenario;
    let all = ends(fabric, lids);
    compare_reach(scenario, routing, &all, &verdict.reach);
    compare_pairs(fabric, routing, &all, verdict);
    let waiting = waiting(fabric, lids, routing);
    compare_lanes(&waiting, &verdict.lanes);
    compare_cycles(fabric, &waiting, routing, verdict);
}

fn compare_reach(Scenario { fabric, lids, .. }: &Scenario, routing: &Routing, all: &[End], found: &Report) {
    let distances = distances(fabric);
    let unattached = lids.iter().map(|lids| lids.iter().count()).sum::<usize>() - all.len();
    let mut expected = Report { unattached: unattached as u64, ..Report::default() };
    for end in all {
        for (switch, _) in fabric.switches() {
            let Some(least) = distances.get(&(switch, switch_of(fabric, end.port))) else {
                expected.disconnected += 1;
                continue;
            };
            let from = PortRef::new(switch, PortNum::ZERO);
            let walk = walk(fabric, routing, from, (end.lid, end.port), weft_wire::ServiceLevel(0));
            expected.pairs += 1;
            if walk.arrives {
                let hops = walk.exits.len();
                expected.hops.resize(expected.hops.len().max(hops + 1), 0);
                expected.hops[hops] += 1;
                expected.detours += u64::from(hops > *least);
            } else {
                expected.failures += 1;
                let on_switch = |end: &End| end.host && switch_of(fabric, end.port) == switch;
                expected.between_switches += u64::from(!end.host && !all.iter().any(on_switch));
            }
        }
    }
    let examples = found.counter_examples.clone();
    // Those that are in no one's way come last.
    let in_use = |error: &TraceError| {
        let on_switch =
            |end: &End| end.host && fabric.node(switch_of(fabric, end.port)).id == error.path.hops[0].id;
        all.iter().any(|end| end.host && end.lid == error.to || on_switch(end))
    };
    let first_idle = examples.iter().position(|error| !in_use(error)).unwrap_or(examples.len());
    assert_eq!(first_idle as u64, (expected.failures - expected.between_switches).min(16));
    assert_eq!(examples.len() as u64, expected.failures.min(16));
    assert_eq!(*found, Report { counter_examples: examples, ..expected });
    assert_eq!(*found, verify(fabric, lids, &routing.routes, &[]));
}

/// Drops and asymmetries.
fn compare_pairs(fabric: &Fabric, routing: &Routing, all: &[End], verdict: &Verdict) {
    let (mut drops, mut asymmetry) = (Drops::default(), Asymmetry::default());
    let pairs = all.iter().flat_map(|destination| all.iter().map(move |source| (source, destination)));
    for (source, destination) in pairs.filter(|(a, b)| a.port != b.port && (a.host || b.host)) {
        let pair = Pair { source: source.lid, destination: destination.lid };
        let level = routing.levels.of(source.lid, destination.lid);
        let walk = walk(fabric, routing, source.port, (destination.lid, destination.port), level);
        if walk.arrives && walk.dropped {
            drops.pairs += 1;
            drops.example.get_or_insert(pair);
        }
        let back = routing.levels.of(destination.lid, source.lid);
        if level != back && source.lid < destination.lid {
            asymmetry.pairs += 1;
            let example = LevelsOfPair { pair, forth: level.0, back: back.0 };
            let key = |pair: &Pair| (pair.source, pair.destination);
            let first = asymmetry.example.get_or_insert(example);
            if key(&pair) < key(&first.pair) {
                *first = example;
            }
        }
    }
    assert_eq!((verdict.drops, verdict.asymmetry), (drops, asymmetry));
}

pub(crate) fn compare_lanes(waiting: &Waiting, found: &[LaneUse]) {
    let mut lanes: BTreeMap<u8, LaneUse> = BTreeMap::new();
    for (_, lane) in &waiting.carried {
        let none = LaneUse { lane: *lane, channels: 0, dependencies: 0 };
        lanes.entry(*lane).or_insert(none).channels += 1;
    }
    for ((_, lane), _) in waiting.waits.keys() {
        lanes.get_mut(lane).expect("it carries packets").dependencies += 1;
    }
    assert_eq!(found, lanes.into_values().collect::<Vec<_>>());
}

fn compare_cycles(fabric: &Fabric, waiting: &Waiting, routing: &Routing, verdict: &Verdict) {
    for cycle in &verdict.cycles {
        for (at, channel) in cycle.channels.iter().enumerate() {
            let next = &cycle.channels[(at + 1) % cycle.len()];
            let held = place(fabric, &channel.from, channel.exit, channel.lane);
            let wanted = place(fabric, &next.from, next.exit, next.lane);
            let pair = channel.pair.map(|pair| (pair.destination, pair.source));
            assert_eq!(pair, waiting.waits.get(&(held, wanted)).copied(), "{cycle}");
            assert!(pair.is_some(), "{cycle}");
        }
    }
    let shortest = verdict.cycles.iter().map(weft_routing::Cycle::len).min();
    assert_eq!(shortest, waiting.shortest_cycle(|_| true));
    if routing.lanes.exceptions.is_empty() {
        for lane in 0..15 {
            let cycle = verdict.cycles.iter().find(|cycle| cycle.lane() == Some(lane));
            assert_eq!(cycle.map(weft_routing::Cycle::len), waiting.shortest_cycle(|other| other == lane));
        }
    }
}

/// Turns from down to up.
fn compare_turns(scenario: &Scenario, routing: &Routing, verdict: &Verdict) {
    let Scenario { fabric, lids, .. } = scenario;
    let all = ends(fabric, lids);
    let ranks = routing.ranks.as_ref().expect("it has ranks");
    let up = |exit: &PortRef| {
        let height = |node| (ranks.of(node).unwrap_or(u32::MAX), fabric.node(node).guid);
        height(fabric.peer(*exit).expect("it has a cable").node) < height(exit.node)
    };
    let has_hosts = |switch| all.iter().any(|end: &End| end.host && switch_of(fabric, end.port) == switch);
    let (mut hosts, mut management) = (0, 0);
    for end in &all {
        for (switch, _) in fabric.switches() {
            let from = PortRef::new(switch, PortNum::ZERO);
            let walk = walk(fabric, routing, from, (end.lid, end.port), weft_wire::ServiceLevel(0));
            let turns = walk.exits.windows(2).any(|step| !up(&step[0]) && up(&step[1]));
            if walk.arrives && turns {
                hosts += u64::from(end.host && has_hosts(switch));
                management += u64::from(end.host != has_hosts(switch));
            }
        }
    }
    let turns = verdict.turns.as_ref().expect("it was asked for");
    assert_eq!((turns.hosts, turns.management, turns.ranked), (hosts, management, true));
    assert_eq!(turns.example.is_some(), hosts + management > 0);
    assert_eq!(turns.is_legal(), hosts == 0);
}

#[test]
fn every_figure_is_what_following_each_packet_gives() {
    each_seed(1000, |seed| {
        let mut scenario = Scenario::new(seed, BOUNDS);
        let routing = scenario.routing();
        let expectations = Expectations { tree: true, ..Expectations::default() };
        let verdict = verify_routing(&scenario.fabric, &scenario.lids, &routing, &expectations);
        compare(&scenario, &routing, &verdict);
        compare_turns(&scenario, &routing, &verdict);
    });
}

#[test]
fn nothing_depends_on_the_number_of_threads() {
    each_seed(20, |seed| {
        let mut scenario = Scenario::new(seed, Bounds { switches: 12, hosts: 100 });
        let (routing, partitions) = (scenario.routing(), scenario.partitions());
        let expectations =
            Expectations { tree: true, partitions: Some(&partitions), ..Expectations::default() };
        let on = |threads| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("a pool");
            pool.install(|| verify_routing(&scenario.fabric, &scenario.lids, &routing, &expectations))
        };
        assert_eq!(on(1), on(3));
    });
}

#[test]
fn switches_with_as_many_ports_as_there_can_be() {
    let options = GenerateOptions { radix: Some(254), ..GenerateOptions::default() };
    let parameters = RandomFabric { switches: 4, hosts: 40, extra_cables: 200, parallel_cables: 100 };
    each_seed(3, |seed| {
        let mut scenario = Scenario::new(seed, BOUNDS);
        scenario.fabric = random(&parameters, seed, &options).expect("the ports suffice");
        scenario.lids = Lids::in_guid_order(&scenario.fabric, 1).expect("there are enough LIDs");
        let routing = scenario.routing();
        let verdict = verify_routing(&scenario.fabric, &scenario.lids, &routing, &Expectations::default());
        compare(&scenario, &routing, &verdict);
    });
}
