//! Patches of random states bring readers where the stage is.

use proptest::collection::{btree_map, vec};
use proptest::prelude::*;
use serde_json::Value;
use weft_page::State;
use weft_page::merge::{apply, difference};
use weft_page::state::{Cable, Flow, Hop, LaneLoad, Load, Node};

/// A JSON value without `null`, as states are.
fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        any::<bool>().prop_map(Value::from),
        (-5..5_i64).prop_map(Value::from),
        "[a-c]{0,2}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 40, 5, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..4).prop_map(Value::from),
            btree_map("[a-d]", inner, 0..5).prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

fn state() -> impl Strategy<Value = State> {
    let name = "[a-e<>\"]{0,3}";
    let node = (name, 0..3_u8, vec(1..4_u16, 0..3), any::<bool>()).prop_map(|(name, state, lids, hot)| {
        let state = ["up", "down", "frozen"][usize::from(state)].to_owned();
        Node { name, state, lids, hot, x: 1.5, ..Node::default() }
    });
    let lanes =
        btree_map("[0-3]", (0..9_u8).prop_map(|mbps| LaneLoad { mbps: mbps.into(), wait: 0.5 }), 0..3);
    let load = lanes.prop_map(|lanes| Load { mbps: 1.0, wait: 0.0, lanes });
    let cable =
        (proptest::option::of(load), vec("[f][0-9]", 0..2), proptest::option::of(Just("slow".to_owned())));
    let cable = cable.prop_map(|(ab, faults, planned)| Cable { ab, faults, planned, ..Cable::default() });
    let flow = (vec(("[0-3]", 0..2_u8), 0..4), proptest::option::of(name)).prop_map(|(path, why)| {
        let path = path.into_iter().map(|(cable, way)| Hop(cable, way, Some(1))).collect();
        Flow { path, why, ..Flow::default() }
    });
    let tables =
        (btree_map("[0-6]", node, 0..6), btree_map("[0-6]", cable, 0..6), btree_map(name, flow, 0..4));
    (tables, name, any::<bool>(), 1..9_u64).prop_map(|((nodes, cables, flows), lab, may_act, at_ms)| {
        let mut state = State { nodes, cables, flows, ..State::default() };
        (state.head.lab, state.head.may_act, state.head.at_ms) = (lab, may_act, at_ms);
        state
    })
}

fn json(state: &State) -> Value {
    serde_json::to_value(state).unwrap()
}

proptest! {
    #[test]
    fn a_difference_makes_one_value_of_the_other(old in value(), new in value()) {
        let mut own = old.clone();
        if let Some(patch) = difference(&old, &new) {
            apply(&mut own, &patch);
        }
        prop_assert_eq!(own, new);
    }

    #[test]
    fn a_state_follows_from_the_one_before(old in state(), mut new in state()) {
        let mut own = json(&old);
        match old.patch(&new) {
            Some(patch) => apply(&mut own, &patch),
            None => new.head.at_ms = old.head.at_ms,
        }
        prop_assert_eq!(own, json(&new));
    }
}
