//! One wrong port in correct tables is always noticed.

use weft_routing::{Engine, EngineOptions, Expectations, Input, Lids, Routing, verify_routing};
use weft_topology::generate::{GenerateOptions, RandomFabric, random};
use weft_topology::{Fabric, NodeIndex, PortRef};
use weft_wire::{Lid, PortNum};

use super::each_seed;
use super::facets::compare;
use super::oracle::{distances, switch_of};
use super::scenario::{Bounds, Scenario};

fn random_fabric(seed: u64) -> Fabric {
    let parameters =
        RandomFabric { switches: 2 + seed as u32 % 9, hosts: 12, extra_cables: 5, parallel_cables: 2 };
    random(&parameters, seed, &GenerateOptions::default()).expect("the ports suffice")
}

fn routed(engine: &str, fabric: &Fabric, lids: &Lids) -> Routing {
    let options = EngineOptions::default();
    let input = Input { fabric, lids, options: &options };
    Engine::by_name(engine).expect("it is built in").route(&input).expect("it takes any fabric")
}

/// Whether a switch still sends a LID closer to where it belongs, or delivers it there.
fn leads_closer(fabric: &Fabric, lids: &Lids, routing: &Routing, switch: NodeIndex, lid: Lid) -> bool {
    let owner = lids.owner(lid).expect("somebody has it");
    let goal = switch_of(fabric, owner);
    let port = routing.routes.port(switch, lid);
    if switch == goal {
        let delivers = fabric.peer(PortRef::new(switch, port)) == Some(owner);
        return if owner.node == switch { port == PortNum::ZERO } else { delivers };
    }
    let distances = distances(fabric);
    let next = fabric.peer(PortRef::new(switch, port)).map(|peer| peer.node);
    next.is_some_and(|next| {
        distances.get(&(next, goal)).is_some_and(|hops| *hops < distances[&(switch, goal)])
    })
}

#[test]
fn a_wrong_port_among_shortest_paths_is_a_failure_or_a_detour() {
    each_seed(150, |seed| {
        let mut scenario = Scenario::new(seed, Bounds { switches: 1, hosts: 0 });
        scenario.fabric = random_fabric(seed);
        scenario.lids = Lids::in_guid_order(&scenario.fabric, (seed % 2) as u8).expect("there are enough");
        let mut routing = routed("minhop", &scenario.fabric, &scenario.lids);
        let (fabric, lids) = (scenario.fabric.clone(), scenario.lids.clone());
        let verdict = verify_routing(&fabric, &lids, &routing, &Expectations::default());
        assert!(verdict.reach.is_minimal(), "{verdict}");
        for _ in 0..5 {
            let (switch, lid, before) = scenario.spoil(&mut routing.routes);
            let verdict = verify_routing(&fabric, &lids, &routing, &Expectations::default());
            let right = leads_closer(&fabric, &lids, &routing, switch, lid);
            assert_eq!(verdict.reach.is_minimal(), right, "{switch:?} LID {lid}: {verdict}");
            // Whatever else became of it, such as a cycle, is what the oracle says.
            compare(&scenario, &routing, &verdict);
            routing.routes.tables[switch.index()].set(lid, before);
        }
    });
}

#[test]
fn a_wrong_port_is_found_as_a_failure_or_turn_or_harmless() {
    each_seed(100, |seed| {
        let mut scenario = Scenario::new(seed, Bounds { switches: 1, hosts: 0 });
        scenario.fabric = random_fabric(seed);
        scenario.lids = Lids::in_guid_order(&scenario.fabric, 0).expect("there are enough");
        let mut routing = routed("updn", &scenario.fabric, &scenario.lids);
        let (fabric, lids) = (scenario.fabric.clone(), scenario.lids.clone());
        let expectations = Expectations { tree: true, ..Expectations::default() };
        let verdict = verify_routing(&fabric, &lids, &routing, &expectations);
        assert!(verdict.is_sound() && verdict.is_deadlock_free(), "{verdict}");
        for _ in 0..5 {
            let (switch, lid, before) = scenario.spoil(&mut routing.routes);
            let verdict = verify_routing(&fabric, &lids, &routing, &expectations);
            compare(&scenario, &routing, &verdict);
            // What is legal everywhere, management included, cannot deadlock.
            let turns = verdict.turns.as_ref().expect("it was asked for");
            if verdict.is_sound() && turns.management == 0 {
                assert!(verdict.is_deadlock_free(), "{verdict}");
            }
            routing.routes.tables[switch.index()].set(lid, before);
        }
    });
}
