//! Virtual machines as members of partitions: their hosts are routed as members, and what cannot be kept apart is said.

use weft_routing::{
    EngineOptions, Expectations, Isolation, IsolationReport, Lids, Member, Partition, Routing, Strictness,
    verify_routing,
};
use weft_topology::{PortRef, Virtualised};
use weft_wire::{Guid, PortNum};

use super::common::{options, partition, try_route, two_ranks};

/// Three leaves with two hosts of two virtual functions each, under two roots.
fn tree() -> Virtualised {
    two_ranks(&[&["a", "b"], &["c", "d"], &["e", "f"]], 2).virtualised(2).expect("there is room")
}

/// The port GUID of a host's virtual function, from 0.
fn machine(whole: &Virtualised, host: &str, function: usize) -> Guid {
    let is_host = |node| whole.fabric.node(node).id == host;
    let adapter = whole.adapters.iter().find(|adapter| is_host(adapter.pf)).expect("the host is there");
    let port = PortRef::new(adapter.vfs[function], PortNum(1));
    whole.fabric.port(port).expect("it has a port").guid
}

/// The default partition: all physical functions.
fn hypervisors(whole: &Virtualised) -> Partition {
    let ports = whole.adapters.iter().map(|adapter| whole.fabric.node(adapter.pf).ports[1].guid);
    partition(0x7fff, Isolation::Def, ports)
}

/// A partition of machines, each on a host of its own.
fn tenant<const N: usize>(
    whole: &Virtualised,
    pkey: u16,
    isolation: Isolation,
    machines: [(&str, usize); N],
) -> Partition {
    partition(pkey, isolation, machines.map(|(host, function)| machine(whole, host, function)))
}

fn judged(whole: &Virtualised, lids: &Lids, routing: &Routing, options: &EngineOptions) -> IsolationReport {
    let partitions = options.partitions.as_ref();
    let expected = Expectations { partitions, lanes: options.lanes, ..Expectations::default() };
    let verdict = verify_routing(&whole.fabric, lids, routing, &expected);
    assert!(verdict.reach.serves_hosts() && verdict.is_deadlock_free(), "{verdict}");
    verdict.isolation.expect("there are partitions")
}

fn route(engine: &str, whole: &Virtualised, options: &EngineOptions) -> (Lids, Routing) {
    let lids = Lids::in_guid_order(&whole.fabric, 0).expect("there are enough LIDs");
    let routing = try_route(engine, &whole.fabric, &lids, options);
    (lids, routing.unwrap_or_else(|refusal| panic!("{refusal}")))
}

#[test]
fn tenants_machines_have_links_or_lanes_of_their_own() {
    let whole = tree();
    for isolation in [Isolation::Phy, Isolation::Vlane] {
        let red = tenant(&whole, 1, isolation, [("a", 0), ("d", 1), ("e", 0)]);
        let blue = tenant(&whole, 2, isolation, [("b", 1), ("c", 0), ("f", 1)]);
        let options = options(vec![red, blue, hypervisors(&whole)], Strictness::Strict);
        let (lids, routing) = route("pftree-ext", &whole, &options);
        let report = judged(&whole, &lids, &routing, &options);
        assert_eq!((report.isolated, report.breaches), (2, 0), "{isolation:?}: {:?}", report.examples);
        // An engine that reads no partitions shares a link or a lane, and that is found.
        let (lids, routing) = route("minhop", &whole, &options);
        let report = judged(&whole, &lids, &routing, &options);
        assert!(report.breaches > 0, "{isolation:?}");
    }
}

#[test]
fn two_tenants_on_one_host_are_not_apart_and_that_is_said() {
    let whole = tree();
    for isolation in [Isolation::Phy, Isolation::Vlane] {
        let red = tenant(&whole, 1, isolation, [("a", 0), ("c", 0)]);
        let blue = tenant(&whole, 2, isolation, [("a", 1), ("c", 1)]);
        let list = vec![red, blue, hypervisors(&whole)];
        let lids = Lids::in_guid_order(&whole.fabric, 0).expect("there are enough LIDs");
        let strict = options(list.clone(), Strictness::Strict);
        let refusal = try_route("pftree-ext", &whole.fabric, &lids, &strict).expect_err("they share hosts");
        assert!(refusal.reason.contains("P1") || refusal.reason.contains("P2"), "{refusal}");
        let as_far_as_can_be = options(list, Strictness::BestEffort);
        let (lids, routing) = route("pftree-ext", &whole, &as_far_as_can_be);
        assert!(!routing.report.unsatisfied.is_empty(), "{isolation:?}");
        assert!(judged(&whole, &lids, &routing, &as_far_as_can_be).breaches > 0, "{isolation:?}");
    }
}

#[test]
fn a_machine_of_no_tenant_beside_a_tenants_is_a_breach() {
    let whole = tree();
    let red = tenant(&whole, 1, Isolation::Vlane, [("a", 0), ("c", 0)]);
    let breaches = |list: Vec<Partition>| {
        let options = options(list, Strictness::BestEffort);
        let (lids, routing) = route("pftree-ext", &whole, &options);
        judged(&whole, &lids, &routing, &options).breaches
    };
    let mut all = hypervisors(&whole);
    assert_eq!(breaches(vec![red.clone(), all.clone()]), 0);
    // The other machines of the two hosts talk to each other by the hosts' rows and lane.
    let others = ["a", "c"].map(|host| Member { guid: machine(&whole, host, 1), full: true });
    all.members.extend(others);
    assert!(breaches(vec![red, all]) > 0);
}

#[test]
fn a_limited_machine_and_a_full_one_make_a_full_host() {
    let whole = tree();
    let mut red = tenant(&whole, 1, Isolation::Phy, [("a", 0), ("c", 0)]);
    red.members.push(red.members[0]);
    red.members[2].guid = machine(&whole, "a", 1);
    red.members[0].full = false;
    let blue = tenant(&whole, 2, Isolation::Phy, [("b", 0), ("d", 0)]);
    let options = options(vec![red, blue, hypervisors(&whole)], Strictness::Strict);
    let (lids, routing) = route("pftree-ext", &whole, &options);
    let report = judged(&whole, &lids, &routing, &options);
    assert_eq!(report.breaches, 0, "{:?}", report.examples);
}
