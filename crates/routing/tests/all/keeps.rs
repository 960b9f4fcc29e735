//! Tables that stay where a manager finds them.

use weft_routing::{Chain, EngineOptions, Lids, keeps, verify};
use weft_topology::generate::{GenerateOptions, xgft};
use weft_topology::{NodeIndex, PortRef};
use weft_wire::PortNum;

/// Two spines above three leaves: with up/down routing there is no way from spine to spine, otherwise there is.
fn missing_ways_are_seen(engine: &str, left_out: u64) {
    let fabric = xgft(&[2, 3], &[1, 2], &GenerateOptions::default()).expect("the parameters are sound");
    let lids = Lids::in_guid_order(&fabric, 0).expect("enough LIDs");
    let options = EngineOptions::default();
    let chain: Chain = engine.parse().expect("a chain");
    let fresh = chain.route(&fabric, &lids, &options).expect("the engine serves a tree");
    assert_eq!(verify(&fabric, &lids, &fresh.routes, &[]).between_switches, left_out, "{engine}");
    assert!(keeps(&fabric, &lids, &fresh, fresh.routes.clone(), &options).is_some(), "{engine}");

    let switches: Vec<NodeIndex> = fabric.switches().map(|(node, _)| node).collect();
    let (mut harmless, mut harmful) = (0, 0);
    for (from, to) in switches.iter().flat_map(|from| switches.iter().map(move |to| (*from, *to))) {
        let lid = lids.of(PortRef::new(to, PortNum::ZERO)).expect("every switch has a LID").base;
        if from == to || fresh.routes.port(from, lid) == PortNum::NONE {
            continue;
        }
        let mut standing = fresh.routes.clone();
        standing.tables[from.index()].set(lid, PortNum::NONE);
        let serves_hosts = verify(&fabric, &lids, &standing, &[]).serves_hosts();
        *(if serves_hosts { &mut harmless } else { &mut harmful }) += 1;
        let kept = keeps(&fabric, &lids, &fresh, standing, &options);
        let stays = serves_hosts && fresh.report.spares_switches();
        assert_eq!(kept.is_some(), stays, "{engine}: nothing leads from {from:?} to {to:?}");
    }
    assert!(harmless > 0 && harmful > 0, "{engine}: {harmless} and {harmful}");
}

#[test]
fn a_switch_that_nothing_leads_to_is_seen() {
    missing_ways_are_seen("minhop,no_fallback", 0);
}

#[test]
fn ways_that_nobody_is_promised_may_be_missing() {
    missing_ways_are_seen("updn,no_fallback", 2);
}
