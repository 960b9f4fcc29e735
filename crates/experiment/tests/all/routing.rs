//! That the fabrics of experiments are routed as their files count on.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use weft_experiment::{Action, ExperimentFile, FlowPlan, Plan};
use weft_fault::Fault;
use weft_routing::{Lids, Routing, trace};
use weft_topology::{Fabric, LoadError, NodeIndex, PortRef};
use weft_wire::PortNum;

fn load(path: &str, from: &str) -> Result<String, LoadError> {
    let beside = Path::new(from).parent().unwrap_or(Path::new("")).join(path);
    std::fs::read_to_string(&beside).map_err(|error| LoadError::new(format!("{}: {error}", beside.display())))
}

fn plans(name: &str) -> Vec<Plan> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../experiments").join(name);
    let text = std::fs::read_to_string(&path).expect("the file is there");
    let file =
        ExperimentFile::parse(&path.display().to_string(), &text).unwrap_or_else(|error| panic!("{error}"));
    file.runs()
        .iter()
        .map(|run| file.plan(run, &mut load).unwrap_or_else(|error| panic!("{error}")))
        .collect()
}

struct Routed {
    lids: Lids,
    routing: Routing,
}

fn route(plan: &Plan, fabric: &Fabric) -> Routed {
    let lids = Lids::in_guid_order(fabric, 0).expect("few nodes");
    let routing = plan
        .sm
        .routing
        .chain
        .route(fabric, &lids, &plan.sm.routing.engine)
        .unwrap_or_else(|why| panic!("{why:?}"));
    Routed { lids, routing }
}

fn port(fabric: &Fabric, host: NodeIndex) -> PortRef {
    PortRef::new(host, fabric.node(host).attach_port().unwrap_or(PortNum(1)))
}

/// The channels of a flow between switches and to its host, and its service level.
fn way(fabric: &Fabric, routed: &Routed, flow: &FlowPlan) -> (Vec<PortRef>, u8) {
    let (from, to) = (port(fabric, flow.senders[0]), port(fabric, flow.receivers[0]));
    let lid = |of: PortRef| routed.lids.of(of).expect("a LID").base;
    let path = trace(fabric, &routed.lids, &routed.routing.routes, from, lid(to)).expect("a path");
    let hops = path.hops.iter().map(|hop| PortRef::new(hop.node, hop.exit));
    (hops.filter(|hop| hop.port != PortNum::ZERO).collect(), routed.routing.levels.of(lid(from), lid(to)).0)
}

/// Whether flows on these lanes can wait for each other in a circle: by channel and lane, what holds it wants another.
fn has_circle(ways: &[(Vec<PortRef>, u8)]) -> bool {
    type Channel = (PortRef, u8);
    let mut wants: BTreeMap<Channel, BTreeSet<Channel>> = BTreeMap::new();
    for (hops, lane) in ways {
        for pair in hops.windows(2) {
            wants.entry((pair[0], *lane)).or_default().insert((pair[1], *lane));
        }
    }
    // What wants nothing lets go; when no one lets go any more, a circle is left.
    loop {
        let before = wants.len();
        let held: BTreeSet<Channel> = wants.keys().copied().collect();
        wants.retain(|_, next| {
            next.retain(|channel| held.contains(channel));
            !next.is_empty()
        });
        if wants.len() == before {
            return !wants.is_empty();
        }
    }
}

fn ways(plan: &Plan, fabric: &Fabric, lane: Option<u8>) -> Vec<(Vec<PortRef>, u8)> {
    let routed = route(plan, fabric);
    let way = |flow: &FlowPlan| {
        let (hops, level) = way(fabric, &routed, flow);
        (hops, lane.unwrap_or(level))
    };
    plan.flows.iter().map(way).collect()
}

fn without(fabric: &Fabric, cut: PortRef) -> Fabric {
    let cables = fabric.cables().filter(|cable| cable.a != cut && cable.b != cut);
    fabric.part(|_| true, cables).expect("the same nodes")
}

fn cut(plan: &Plan) -> PortRef {
    let cut = plan.steps.iter().find_map(|step| match step.action {
        Action::Fault(Fault::LinkDown(port)) => Some(port),
        _ => None,
    });
    cut.expect("a cable is cut")
}

#[test]
fn min_hop_closes_the_circle_and_lash_does_not() {
    let plans = plans("deadlock.toml");
    assert!(has_circle(&ways(&plans[0], &plans[0].fabric, None)));
    assert!(!has_circle(&ways(&plans[1], &plans[1].fabric, None)));
}

#[test]
fn the_mesh_needs_one_lane_and_the_ring_more() {
    for name in ["lash.toml", "unasked.toml"] {
        let plan = &plans(name)[0];
        let mesh = ways(plan, &plan.fabric, None);
        assert!(mesh.iter().all(|(_, lane)| *lane == 0), "{name}: {mesh:?}");
        assert!(!has_circle(&mesh), "{name}");
        let ring = without(&plan.fabric, cut(plan));
        assert!(!has_circle(&ways(plan, &ring, None)), "{name}: with the lanes of path records");
        assert!(has_circle(&ways(plan, &ring, Some(0))), "{name}: all on lane 0");
        // One flow a host, all the same way round: what is held up stops all of it.
        let clockwise = |hops: &[PortRef]| {
            let names: Vec<usize> = hops
                .iter()
                .filter_map(|hop| plan.fabric.node(hop.node).description.strip_prefix('S')?.parse().ok())
                .collect();
            names.windows(2).all(|pair| pair[1] == pair[0] % 6 + 1)
        };
        assert!(ways(plan, &ring, None).iter().all(|(hops, _)| clockwise(hops)), "{name}");
    }
}

#[test]
fn vftree_puts_pairs_of_leaves_on_the_papers_lanes() {
    // 1-5, 3-5, 6-5, 2-3 and 4-1 with 1, 2, 3 and 4 lanes (algorithm 1 with integer division).
    let expected = [[0, 0, 0, 0, 0], [1, 1, 0, 0, 0], [1, 2, 0, 0, 0], [1, 2, 0, 0, 0]];
    for (plan, expected) in plans("vftree-4a.toml").iter().zip(expected) {
        let lanes: Vec<u8> = ways(plan, &plan.fabric, None).iter().map(|(_, lane)| *lane).collect();
        assert_eq!(lanes, expected, "{}", plan.run);
    }
}

/// The names of the ports between switches that a flow shares with another.
fn shared(plan: &Plan, fabric: &Fabric, one: &str, other: &str) -> Vec<String> {
    let routed = route(plan, fabric);
    let of = |name: &str| {
        let flow = plan.flows.iter().find(|flow| flow.name == name).expect("a flow");
        way(fabric, &routed, flow).0
    };
    let theirs = of(other);
    let both = of(one).into_iter().filter(|hop| theirs.contains(hop));
    both.map(|hop| format!("{}/{}", fabric.node(hop.node).description, hop.port.0)).collect()
}

#[test]
fn victims_share_the_links_that_the_papers_say() {
    let plan = |name: &str| plans(name).remove(0);
    let whole = |name: &str, one: &str, other: &str| {
        let plan = plan(name);
        shared(&plan, &plan.fabric, one, other)
    };
    assert_eq!(whole("dftree-1.toml", "2-3", "1-5"), ["A/3"]);
    assert_eq!(whole("dftree-3.toml", "2-7", "1-9"), ["A/5"]);
    assert_eq!(whole("dftree-4.toml", "2-11", "1-9"), ["A/5", "R/5"]);
    assert_eq!(whole("vftree-4b.toml", "8-11", "6-9"), ["B/5", "R/5"]);
    assert_eq!(whole("vftree-3.toml", "1-5", "2-6").len(), 1);
    let two = plan("dftree-2.toml");
    assert!(shared(&two, &two.fabric, "2-4", "1-5").is_empty());
    assert_eq!(shared(&two, &without(&two.fabric, cut(&two)), "2-4", "1-5"), ["A/3"]);
}
