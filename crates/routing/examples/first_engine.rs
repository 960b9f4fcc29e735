//! A routing engine of somebody's own and its proof: shortest ways on a torus, verified from every switch to every LID.
//!
//! ```text
//! cargo run -p weft-routing --example first_engine
//! ```

use std::collections::VecDeque;

use weft_routing::{ForwardingTable, Lids, Routes, verify};
use weft_topology::Fabric;
use weft_topology::generate::{GenerateOptions, torus};
use weft_wire::PortNum;

/// From each LID's owner outwards: a switch sends by the port through which it is first reached.
fn shortest_ways(fabric: &Fabric, lids: &Lids) -> Routes {
    let mut tables = vec![ForwardingTable::default(); fabric.nodes().len()];
    fabric.switches().for_each(|(switch, _)| tables[switch.index()] = ForwardingTable::new(lids.top()));
    for owned in lids.iter() {
        let (owner, mut reached) = (owned.port.node, vec![false; tables.len()]);
        reached[owner.index()] = true;
        let mut todo = VecDeque::from([owner]);
        for lid in owned.iter().filter(|_| fabric.node(owner).is_switch()) {
            tables[owner.index()].set(lid, PortNum::ZERO);
        }
        while let Some(node) = todo.pop_front() {
            for (_, peer) in fabric.node(node).cabled_ports() {
                if fabric.node(peer.node).is_switch()
                    && !std::mem::replace(&mut reached[peer.node.index()], true)
                {
                    owned.iter().for_each(|lid| tables[peer.node.index()].set(lid, peer.port));
                    todo.push_back(peer.node);
                }
            }
        }
    }
    Routes { tables }
}

fn main() {
    // Sixteen switches in four rows and four columns, with a host each.
    let fabric = torus(&[4, 4], 1, &GenerateOptions::default()).expect("a torus of four by four");
    let lids = Lids::in_guid_order(&fabric, 0).expect("32 LIDs are few");
    let mut routes = shortest_ways(&fabric, &lids);
    let report = verify(&fabric, &lids, &routes, &[]);
    assert!(report.is_sound() && report.is_minimal() && report.pairs == 16 * 32, "{report:?}");

    // The verifier finds a row that leads nowhere, and shows the way to it.
    let (switch, _) = fabric.switches().next().expect("a torus has switches");
    let far = lids.iter().last().expect("there are LIDs").base;
    routes.tables[switch.index()].set(far, PortNum(200));
    let report = verify(&fabric, &lids, &routes, &[]);
    assert!(report.failures > 0 && !report.counter_examples.is_empty(), "{report:?}");
}

#[test]
fn shortest_ways_reach_every_lid() {
    main();
}
