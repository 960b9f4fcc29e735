//! Two routings at the same time, compared with every mixture of their tables.

use std::collections::BTreeSet;

use weft_routing::{LaneMap, Lids, Pair, Routing, Tables, TransitionVerdict, verify_transition};
use weft_topology::generate::{GenerateOptions, ring};
use weft_topology::{NodeIndex, PortRef};
use weft_wire::{Lid, PortNum, ServiceLevel};

use super::facets::compare_lanes;
use super::oracle::{Waiting, World, distances, ends, switch_of, walk};
use super::scenario::{Bounds, Scenario};
use super::{each_seed, host, lid_of, routed};

/// Some switches have the new tables, and some nodes the new map of lanes.
struct Mixture<'a> {
    routings: [&'a Routing; 2],
    tables: u64,
    lanes: u64,
}

fn chosen(routings: [&Routing; 2], choice: u64, node: NodeIndex) -> &Routing {
    routings[(choice >> node.0 & 1) as usize]
}

impl World for Mixture<'_> {
    fn exit(&self, node: NodeIndex, lid: Lid) -> PortNum {
        chosen(self.routings, self.tables, node).exit(node, lid)
    }

    fn lane(&self, node: NodeIndex, entry: PortNum, exit: PortNum, level: ServiceLevel) -> Option<u8> {
        chosen(self.routings, self.lanes, node).lane(node, entry, exit, level)
    }
}

/// What becomes of packets by all mixtures together.
#[derive(Default)]
struct Outcome {
    waiting: Waiting,
    /// The LIDs with loops.
    loops: BTreeSet<Lid>,
    /// Where packets that hosts send or receive get lost on the way to a LID that cables lead to.
    lost: BTreeSet<(Lid, NodeIndex)>,
}

/// Follows every packet by every mixture. Switches come first among the nodes, and hosts matter only by whether they
/// send at all.
fn all_mixtures(scenario: &Scenario, old: &Routing, new: &Routing) -> Outcome {
    let Scenario { fabric, lids, .. } = scenario;
    let all = ends(fabric, lids);
    let distances = distances(fabric);
    let Outcome { mut waiting, mut loops, mut lost } = Outcome::default();
    let switches = fabric.switches().count() as u32;
    let all_hosts = u64::MAX << switches;
    // Maps that are equal need not be mixed.
    let maps: Vec<u64> = match old.lanes == new.lanes {
        true => vec![0],
        false => (0..1 << switches).flat_map(|lanes| [lanes, lanes | all_hosts]).collect(),
    };
    for tables in 0..1 << switches {
        for (switch, _) in fabric.switches() {
            for end in &all {
                let world = Mixture { routings: [old, new], tables, lanes: 0 };
                let from = PortRef::new(switch, PortNum::ZERO);
                if walk(fabric, &world, from, (end.lid, end.port), ServiceLevel(0)).loops {
                    loops.insert(end.lid);
                }
            }
        }
        for lanes in &maps {
            let world = Mixture { routings: [old, new], tables, lanes: *lanes };
            for (a, b) in all.iter().flat_map(|a| all.iter().map(move |b| (a, b))) {
                if a.host || b.host {
                    let levels = [old, new].map(|routing| routing.levels.of(a.lid, b.lid));
                    for level in BTreeSet::from(levels.map(|level| level.0)) {
                        let walk = walk(fabric, &world, a.port, (b.lid, b.port), ServiceLevel(level));
                        waiting.add(&walk, Pair { source: a.lid, destination: b.lid });
                        let last = walk.exits.last().and_then(|exit| fabric.peer(*exit));
                        let last = last.map_or(switch_of(fabric, a.port), |peer| peer.node);
                        let connected = distances.contains_key(&(last, switch_of(fabric, b.port)));
                        if connected && !walk.arrives && !walk.loops {
                            lost.insert((b.lid, last));
                        }
                    }
                }
            }
        }
    }
    Outcome { waiting, loops, lost }
}

fn compare(scenario: &Scenario, old: &Routing, new: &Routing, verdict: &TransitionVerdict) {
    let Scenario { fabric, lids, .. } = scenario;
    let Outcome { waiting, loops, lost } = all_mixtures(scenario, old, new);
    assert_eq!(verdict.loops, loops.len() as u64, "{verdict}");
    let shown: Vec<Lid> = verdict.loop_examples.iter().map(|mixed| mixed.lid).collect();
    assert_eq!(shown, loops.iter().copied().take(16).collect::<Vec<_>>());
    compare_lost(scenario, [old, new], verdict);
    assert_eq!(verdict.lost_in_use, lost.len() as u64, "{verdict}");
    assert_eq!(verdict.serves_hosts(), loops.is_empty() && lost.is_empty());
    let id = |switch: NodeIndex| fabric.node(switch).id.as_str();
    let lost: BTreeSet<(Lid, &str)> = lost.iter().map(|(lid, switch)| (*lid, id(*switch))).collect();
    let (in_use, in_nobodys_way): (Vec<_>, Vec<_>) =
        verdict.lost_examples.iter().partition(|known| lost.contains(&(known.lid, known.switch.as_str())));
    assert_eq!(in_use.len(), lost.len().min(16));
    assert!(in_use.iter().all(|known| known.in_use) && !in_nobodys_way.iter().any(|known| known.in_use));
    assert!(verdict.lost_examples.iter().is_sorted_by_key(|known| !known.in_use));
    let shortest = verdict.cycles.iter().map(weft_routing::Cycle::len).min();
    if loops.is_empty() {
        assert_eq!(shortest, waiting.shortest_cycle(|_| true), "{verdict}");
        compare_lanes(&waiting, &verdict.lanes);
    } else if waiting.shortest_cycle(|_| true).is_some() {
        // By walks that pass a switch twice with different tables there may be more.
        assert!(!verdict.is_deadlock_free());
    }
    for cycle in &verdict.cycles {
        assert!(cycle.channels.iter().all(|channel| channel.pair.is_some()), "{cycle}");
    }
    // What does not change is no worse than it was.
    let same = verify_transition(fabric, lids, old, old, 15);
    let alone = weft_routing::verify_routing(fabric, lids, old, &weft_routing::Expectations::default());
    assert_eq!((&same.lanes, same.is_deadlock_free()), (&alone.lanes, alone.is_deadlock_free()));
    assert_eq!(same.is_sound(), alone.reach.is_sound());
}

/// Entries that lead nowhere: of switches from which cables lead to the LID.
fn compare_lost(scenario: &Scenario, routings: [&Routing; 2], verdict: &TransitionVerdict) {
    let Scenario { fabric, lids, .. } = scenario;
    let distances = distances(fabric);
    let mut lost = [0, 0];
    for (routing, lost) in routings.into_iter().zip(&mut lost) {
        for end in ends(fabric, lids) {
            let goal = switch_of(fabric, end.port);
            let connected = |switch: &NodeIndex| distances.contains_key(&(*switch, goal));
            for switch in fabric.switches().map(|(switch, _)| switch).filter(connected) {
                let port = routing.routes.port(switch, end.lid);
                let peer = fabric.peer(PortRef::new(switch, port)).filter(|_| port != PortNum::ZERO);
                let leads = match peer {
                    Some(peer) if fabric.node(peer.node).is_switch() => peer.node != switch,
                    Some(peer) => peer == end.port,
                    None => port == PortNum::ZERO && end.port.node == switch,
                };
                *lost += u64::from(!leads);
            }
        }
    }
    assert_eq!([verdict.lost_before, verdict.lost_after], lost);
}

#[test]
fn every_mixture_of_two_tables_is_covered() {
    each_seed(60, |seed| {
        let mut scenario = Scenario::new(seed, Bounds { switches: 6, hosts: 4 });
        let (old, mut new) = (scenario.routing(), scenario.routing());
        new.lanes = old.lanes.clone();
        let verdict = verify_transition(&scenario.fabric, &scenario.lids, &old, &new, 15);
        compare(&scenario, &old, &new, &verdict);
    });
}

#[test]
fn every_mixture_of_tables_and_lanes_is_covered() {
    each_seed(40, |seed| {
        let mut scenario = Scenario::new(seed, Bounds { switches: 4, hosts: 3 });
        let (old, new) = (scenario.routing(), scenario.routing());
        let verdict = verify_transition(&scenario.fabric, &scenario.lids, &old, &new, 15);
        compare(&scenario, &old, &new, &verdict);
    });
}

#[test]
fn packets_that_get_lost_by_some_mixture_are_counted() {
    each_seed(60, |seed| {
        let mut scenario = Scenario::new(seed, Bounds { switches: 6, hosts: 3 });
        let [old, new] = [(); 2].map(|()| {
            let mut routing = Routing { routes: scenario.random_trees(), ..Routing::default() };
            scenario.remove(&mut routing.routes);
            routing
        });
        let verdict = verify_transition(&scenario.fabric, &scenario.lids, &old, &new, 15);
        compare(&scenario, &old, &new, &verdict);
    });
}

#[test]
fn tables_that_change_direction_round_a_ring_loop_in_between() {
    let fabric = ring(3, 1, &GenerateOptions::default()).unwrap();
    let (lids, new) = routed(&fabric);
    let lid = lid_of(&fabric, &lids, 2);
    let mut old = new.clone();
    // Switch 0 went by switch 1, and switch 1 goes straight; then switch 1 goes by switch 0.
    let [first, second] = ["switch-0", "switch-1"].map(|name| fabric.find(name).unwrap());
    old.routes.tables[first.index()].set(lid, PortNum(2));
    let mut swapped = new.clone();
    swapped.routes.tables[second.index()].set(lid, PortNum(3));
    let verdict = verify_transition(&fabric, &lids, &old, &swapped, 15);
    assert_eq!((verdict.loops, verdict.is_sound()), (1, false));
    let hops: Vec<(PortNum, Tables)> =
        verdict.loop_examples[0].hops.iter().map(|hop| (hop.exit, hop.tables)).collect();
    assert_eq!(hops, [(PortNum(2), Tables::Old), (PortNum(3), Tables::New)]);
    let id = |node: NodeIndex| &fabric.node(node).id;
    let line = format!("loop to LID {lid}: {0}[2] (old) -> {1}[3] (new) -> {0}", id(first), id(second));
    assert!(verdict.to_string().contains(&line), "{verdict}");
    assert!(verify_transition(&fabric, &lids, &old, &new, 15).is_sound());
    assert_eq!(lids.owner(lid), Some(host(&fabric, 2)));
}

/// A square with a host on one corner. To the switch across, the old tables have no way from one of the corners
/// between, and the new tables none from the other. No packet comes by there, but by a mixture.
#[test]
fn packets_get_lost_where_neither_routing_loses_any() {
    let fabric = ring(4, 1, &GenerateOptions::default()).unwrap();
    let (all, _) = routed(&fabric);
    let mut lids = Lids::new();
    let switches = fabric.switches().map(|(switch, _)| PortRef::new(switch, PortNum::ZERO));
    for port in switches.chain([host(&fabric, 0)]) {
        lids.insert(port, all.of(port).expect("it has a LID").base, 0).expect("the LIDs are free");
    }
    let [from, by, goal, past] = [0, 1, 2, 3].map(|at| fabric.find(&format!("switch-{at}")).unwrap());
    let lid = lids.of(PortRef::new(goal, PortNum::ZERO)).expect("it has a LID").base;
    let towards = |from: NodeIndex, to: NodeIndex| {
        let mut cables = fabric.node(from).cabled_ports();
        cables.find(|(_, peer)| peer.node == to).expect("they are neighbours").0
    };
    let routing = |by: NodeIndex, past: NodeIndex| {
        let mut routing = Routing::on_one_lane("test", weft_routing::minhop(&fabric, &lids));
        for (switch, port) in [(from, towards(from, by)), (by, towards(by, goal)), (past, PortNum(255))] {
            routing.routes.tables[switch.index()].set(lid, port);
        }
        let reach = weft_routing::verify(&fabric, &lids, &routing.routes, &[]);
        assert_eq!((reach.failures, reach.serves_hosts()), (1, true), "{reach}");
        routing
    };
    let (old, new) = (routing(by, past), routing(past, by));
    let verdict = verify_transition(&fabric, &lids, &old, &new, 15);
    assert_eq!((verdict.lost_before, verdict.lost_after, verdict.lost_in_use, verdict.loops), (1, 1, 2, 0));
    assert!(!verdict.serves_hosts());
    let line = format!(
        "{} has no way to LID {lid} by its tables: old, and packets of hosts may come there",
        fabric.node(past).id
    );
    assert!(verdict.to_string().contains(&line), "{verdict}");
    // Where nothing changes, the entry that is missing is in no one's way: only a switch sends from there.
    let same = verify_transition(&fabric, &lids, &old, &old, 15);
    assert_eq!((same.lost_before, same.lost_after, same.lost_in_use), (1, 1, 0));
    assert!(same.serves_hosts() && !same.is_sound());
    assert_eq!(same.lost_examples.iter().map(|lost| lost.in_use).collect::<Vec<_>>(), [false]);
    assert!(!same.to_string().contains("may come there"), "{same}");
}

#[test]
fn two_deadlock_free_routings_may_deadlock_together() {
    // Each leaves out one corner of the ring, and the other has it.
    let fabric = ring(5, 1, &GenerateOptions::default()).unwrap();
    let (lids, cyclic) = routed(&fabric);
    let alone = |routing: &Routing| {
        weft_routing::verify_routing(&fabric, &lids, routing, &weft_routing::Expectations::default())
    };
    assert!(!alone(&cyclic).is_deadlock_free());
    let options = |root: &str| weft_routing::EngineOptions {
        roots: vec![fabric.node(fabric.find(root).unwrap()).guid],
        ..weft_routing::EngineOptions::default()
    };
    let rooted = |root: &str| {
        let options = options(root);
        let input = weft_routing::Input { fabric: &fabric, lids: &lids, options: &options };
        weft_routing::Engine::by_name("updn").unwrap().route(&input).unwrap()
    };
    let (old, mut new) = (rooted("switch-0"), rooted("switch-3"));
    assert!(alone(&old).is_deadlock_free() && alone(&new).is_deadlock_free());
    let verdict = verify_transition(&fabric, &lids, &old, &new, 15);
    assert!(!verdict.is_deadlock_free(), "{verdict}");
    // On lanes of their own they do not meet.
    new.lanes = LaneMap::default();
    new.lanes.everywhere.swap(0, 1);
    let apart = verify_transition(&fabric, &lids, &old, &new, 15);
    assert!(
        !apart.is_deadlock_free(),
        "lanes are changed switch by switch too, so packets change lanes: {apart}"
    );
}
