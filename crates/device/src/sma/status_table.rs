//! Every method with every attribute of the SMA, at a switch and at an HCA.

use crate::testing::*;
use weft_wire::{AttributeId, Method, NodeType, PhysState, PortInfo, PortState, status};

/// Whether Get and Set are served, for nodes in general and for a switch alone.
fn served(code: u16, kind: NodeType) -> (bool, bool) {
    let switch = kind == NodeType::Switch;
    match code {
        // NodeInfo, Notice and PortInfoExtended can be read only.
        0x02 | 0x11 | 0x33 => (true, false),
        // NodeDescription, GUIDInfo, PortInfo, P_Keys, SLtoVL, arbitration, and MlnxExtPortInfo.
        0x10 | 0x14..=0x18 | 0xff90 => (true, true),
        // SwitchInfo, and the two forwarding tables.
        0x12 | 0x19 | 0x1b => (switch, switch),
        _ => (false, false),
    }
}

#[test]
fn every_method_with_every_attribute() {
    for kind in [NodeType::Switch, NodeType::Hca] {
        let mut config = config(kind, 2);
        config.vendor_id = 0x2c9;
        for code in (0..0x100).chain([0xff00, 0xff90, 0xff91, 0xffff]) {
            let attribute = AttributeId::from_code(code);
            let modifier = if attribute == AttributeId::VlArbitrationTable { 0x1_0001 } else { 0 };
            let status = |method| {
                let mut bench = Bench::new(&config);
                bench.link_up(ONE);
                // What is there already is a good value to set.
                let now = bench.ask(Method::Get, attribute, modifier, &[]);
                let mut value = *now.smp_data();
                if attribute == AttributeId::PortInfo {
                    // But for the states, which can be asked for and not restated.
                    PortInfo::port_state.set(&mut value, PortState::NoChange);
                    PortInfo::port_physical_state.set(&mut value, PhysState::NoChange);
                }
                bench.ask(method, attribute, modifier, &value).status()
            };
            let (get, set) = served(code, kind);
            let want = |served| if served { status::OK } else { status::BAD_METHOD_ATTRIBUTE };
            assert_eq!(status(Method::Get), want(get), "{kind} Get {attribute}");
            assert_eq!(status(Method::Set), want(set), "{kind} Set {attribute}");
            for method in [Method::Send, Method::Report, Method::GetTable, Method::Delete] {
                assert_eq!(status(method), status::BAD_METHOD, "{kind} {method} {attribute}");
            }
        }
    }
}

#[test]
fn without_a_manager_there_is_no_sm_info() {
    for mut bench in [switch(2), hca(2)] {
        bench.link_up(ONE);
        for method in [Method::Get, Method::Set] {
            let answer = bench.ask(method, AttributeId::SmInfo, 0, &[]);
            assert_eq!((answer.method(), answer.status()), (Method::GetResp, status::BAD_METHOD_ATTRIBUTE));
        }
    }
}
