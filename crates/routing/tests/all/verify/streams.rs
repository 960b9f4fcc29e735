//! Some pairs alone, on levels of their own.

use weft_routing::{
    Expectations, LaneMap, Lids, Pair, Routing, ServiceLevels, Stream, StreamsVerdict, verify_routing,
    verify_streams,
};
use weft_topology::Fabric;
use weft_topology::generate::{GenerateOptions, ring};
use weft_wire::{Lid, ServiceLevel};

use super::each_seed;
use super::oracle::ends;
use super::scenario::{Bounds, Scenario};
use super::{lid_of, routed};

/// What all send that verify_routing follows, in the order in which it names pairs.
fn everything(fabric: &Fabric, lids: &Lids, levels: &ServiceLevels) -> Vec<Stream> {
    let ends = ends(fabric, lids);
    let mut streams = Vec::new();
    for destination in &ends {
        for source in ends.iter().filter(|source| source.host || destination.host) {
            let pair = Pair { source: source.lid, destination: destination.lid };
            streams.push(Stream { pair, level: levels.of(pair.source, pair.destination) });
        }
    }
    streams
}

#[test]
fn all_pairs_on_the_levels_of_the_routing_are_the_routing() {
    each_seed(200, |seed| {
        let mut scenario = Scenario::new(seed, Bounds { switches: 8, hosts: 8 });
        let routing = scenario.routing();
        let Scenario { fabric, lids, .. } = &scenario;
        for lanes in [15, 2] {
            let expected =
                verify_routing(fabric, lids, &routing, &Expectations { lanes, ..Expectations::default() });
            let streams = everything(fabric, lids, &routing.levels);
            let found = verify_streams(fabric, lids, &routing.routes, &routing.lanes, &streams, lanes);
            assert_eq!((found.lanes, found.cycles), (expected.lanes, expected.cycles));
        }
    });
}

/// A ring of six by min-hop.
fn six() -> (Fabric, Lids, Routing) {
    let fabric = ring(6, 1, &GenerateOptions::default()).expect("the parameters are sound");
    let (lids, routing) = routed(&fabric);
    (fabric, lids, routing)
}

/// Everyone to the host two further on; the first `on_level_1` of them on level 1.
fn two_on((fabric, lids, routing): &(Fabric, Lids, Routing), on_level_1: u32) -> StreamsVerdict {
    let stream = |number: u32| {
        let (source, destination) = (lid_of(fabric, lids, number), lid_of(fabric, lids, (number + 2) % 6));
        Stream { pair: Pair { source, destination }, level: ServiceLevel(u8::from(number < on_level_1)) }
    };
    let streams: Vec<Stream> = (0..6).map(stream).collect();
    verify_streams(fabric, lids, &routing.routes, &LaneMap::default(), &streams, 15)
}

#[test]
fn a_circle_is_one_of_those_who_send_and_of_their_levels() {
    let six = six();
    let closed = two_on(&six, 0);
    assert_eq!((closed.cycles.len(), closed.cycles[0].len(), closed.cycles[0].lane()), (1, 6, Some(0)));
    // One on another lane opens it, and so does whoever does not send.
    let opened = two_on(&six, 1);
    assert!(opened.cycles.is_empty(), "{opened:?}");
    let lanes: Vec<_> = opened.lanes.iter().map(|lane| (lane.lane, lane.dependencies)).collect();
    assert_eq!(lanes, [(0, 5), (1, 1)]);
    // All on another lane are no better than before.
    assert_eq!(two_on(&six, 6).cycles[0].lane(), Some(1));
}

#[test]
fn a_source_without_a_lid_sends_nothing() {
    let (fabric, lids, routing) = six();
    let pair = Pair { source: Lid(900), destination: lid_of(&fabric, &lids, 2) };
    let streams = [Stream { pair, level: ServiceLevel(0) }];
    let found = verify_streams(&fabric, &lids, &routing.routes, &routing.lanes, &streams, 15);
    assert_eq!(found, StreamsVerdict::default());
}
