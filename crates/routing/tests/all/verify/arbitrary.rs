//! Tables come from running fabrics and from files, so nothing in them may be more than wrong.

use proptest::collection::{btree_map, vec};
use proptest::prelude::*;
use weft_routing::{
    Expectations, ForwardingTable, LaneMap, Partitions, Ranks, Routes, Routing, ServiceLevels,
    verify_routing, verify_transition,
};
use weft_topology::NodeIndex;
use weft_wire::{Lid, PortNum, VirtualLane};

use super::scenario::{Bounds, Scenario};

fn routes() -> impl Strategy<Value = Routes> {
    let table = vec(any::<u8>(), 0..90).prop_map(|ports| {
        let mut table = ForwardingTable::default();
        for (lid, port) in (0..).map(Lid).zip(ports) {
            table.set(lid, PortNum(port % 24));
        }
        table
    });
    vec(table, 0..12).prop_map(|tables| Routes { tables })
}

/// Levels as a file may have them, with classes, rows and columns that do not fit together.
fn levels() -> impl Strategy<Value = ServiceLevels> {
    let class = prop_oneof![0..6u16, any::<u16>()];
    let parts = (vec(class.clone(), 0..90), vec(class, 0..90), 0..9usize, vec(any::<u8>(), 0..30));
    parts.prop_map(|(rows, columns, width, matrix)| {
        let text = serde_json::json!({ "rows": rows, "columns": columns, "width": width, "matrix": matrix });
        serde_json::from_value(text).expect("it has the fields")
    })
}

fn lanes() -> impl Strategy<Value = LaneMap> {
    let row = || any::<[u8; 16]>().prop_map(|row| row.map(VirtualLane));
    let place = (0..14u32, any::<u8>(), any::<u8>());
    let place =
        place.prop_map(|(node, entry, exit)| (NodeIndex(node), PortNum(entry % 24), PortNum(exit % 24)));
    (row(), btree_map(place, row(), 0..20))
        .prop_map(|(everywhere, exceptions)| LaneMap { everywhere, exceptions })
}

fn routing() -> impl Strategy<Value = Routing> {
    let ranks = prop::option::of(vec(prop::option::of(any::<u32>()), 0..20).prop_map(Ranks));
    (routes(), levels(), lanes(), ranks).prop_map(|(routes, levels, lanes, ranks)| Routing {
        routes,
        levels,
        lanes,
        ranks,
        ..Routing::default()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn anything_is_told_and_nothing_panics(
        seed in any::<u64>(),
        old in routing(),
        new in routing(),
        lanes in any::<u8>(),
    ) {
        let mut scenario = Scenario::new(seed, Bounds { switches: 8, hosts: 6 });
        let partitions = if lanes % 2 == 0 { scenario.partitions() } else { Partitions::default() };
        let expectations = Expectations { partitions: Some(&partitions), tree: true, lanes, ..Expectations::default() };
        let Scenario { fabric, lids, .. } = &scenario;
        let verdict = verify_routing(fabric, lids, &old, &expectations);
        prop_assert!(!verdict.to_string().is_empty());
        prop_assert!(serde_json::to_string(&verdict).is_ok());
        let transition = verify_transition(fabric, lids, &old, &new, lanes);
        prop_assert!(!transition.to_string().is_empty());
        prop_assert!(serde_json::to_string(&transition).is_ok());
    }
}
