//! Fabrics whose vSwitches are switches: each host of a tree is replaced by one, with a physical function and virtual ones.

use std::collections::BTreeSet;

use weft_routing::moves::{Kept, LatePolicy, Method, Move, Plan, Planner, UpdateOrder};
use weft_routing::{EngineOptions, Lids, Routing, verify};
use weft_topology::generate::{GenerateOptions, xgft};
use weft_topology::{Fabric, FabricBuilder, LinkRate, Node, NodeIndex, PortRef};
use weft_wire::{Guid, Lid, NodeType, PortNum};

use super::common::{moved, write};
use super::trees::route;

const FUNCTIONS: u8 = 2;

struct Virtual {
    fabric: Fabric,
    lids: Lids,
    routing: Routing,
    /// By host: the vSwitch, the physical function and the virtual ones.
    hosts: Vec<(NodeIndex, Vec<PortRef>)>,
}

/// The tree with vSwitches: port 1 leads up, 2 to the physical function, the others to virtual ones. The rows of physical
/// switches are those of the tree with several LIDs per host.
fn expanded(tree: &Fabric) -> Virtual {
    let mut builder = FabricBuilder::new();
    let mut places = vec![NodeIndex(0); tree.nodes().len()];
    for (index, node) in tree.iter().filter(|(_, node)| node.is_switch()) {
        places[index.index()] = builder.add_node(node.clone()).expect("as before");
    }
    let end = |port: PortRef, places: &[NodeIndex]| PortRef::new(places[port.node.index()], port.port);
    let switches = |port: PortRef| tree.node(port.node).is_switch();
    for cable in tree.cables().filter(|cable| switches(cable.a) && switches(cable.b)) {
        builder.connect(end(cable.a, &places), end(cable.b, &places)).expect("as before");
    }
    let rate = LinkRate::default();
    let mut hosts = Vec::new();
    for (number, (index, _)) in (1u64..).zip(tree.hosts()) {
        let vswitch = Node::new(NodeType::Switch, Guid(0x7_0000 + 0x100 * number), 2 + FUNCTIONS, rate);
        let vswitch = builder.add_node(vswitch).expect("a new GUID");
        let above = tree.peer(PortRef::new(index, PortNum(1))).expect("it has a cable");
        builder.connect(PortRef::new(vswitch, PortNum(1)), end(above, &places)).expect("as before");
        let mut functions = Vec::new();
        for port in 2..=2 + FUNCTIONS {
            let guid = Guid(0x7_0000 + 0x100 * number + 0x10 * u64::from(port));
            let function = builder.add_node(Node::new(NodeType::Hca, guid, 1, rate)).expect("a new GUID");
            let ends = [PortRef::new(vswitch, PortNum(port)), PortRef::new(function, PortNum(1))];
            builder.connect(ends[0], ends[1]).expect("free ports");
            functions.push(ends[1]);
        }
        hosts.push((vswitch, functions));
    }
    let fabric = builder.build();
    let (lids, routing) = tables(tree, &fabric, &hosts, &places);
    Virtual { fabric, lids, routing, hosts }
}

fn tables(
    tree: &Fabric,
    fabric: &Fabric,
    hosts: &[(NodeIndex, Vec<PortRef>)],
    places: &[NodeIndex],
) -> (Lids, Routing) {
    let (mut lids, mut of_tree) = (Lids::new(), Lids::new());
    // By LID: the host, and the end port where it is.
    let mut owners = Vec::new();
    for (index, _) in tree.switches() {
        let lid = Lid(lids.top().0 + 1);
        of_tree.insert(PortRef::new(index, PortNum::ZERO), lid, 0).expect("free");
        lids.insert(PortRef::new(places[index.index()], PortNum::ZERO), lid, 0).expect("free");
    }
    for ((index, _), (vswitch, functions)) in tree.hosts().zip(hosts) {
        for port in functions.iter().copied().chain([PortRef::new(*vswitch, PortNum::ZERO)]) {
            let lid = Lid(lids.top().0 + 1);
            of_tree.insert(PortRef::new(index, PortNum(1)), lid, 0).expect("free");
            lids.insert(port, lid, 0).expect("free");
            owners.push((lid, *vswitch, port));
        }
    }
    let by_tree = route("ftree", tree, &of_tree, &EngineOptions::default()).expect("it is a tree");
    let mut routing = Routing { levels: by_tree.levels, lanes: by_tree.lanes, ..Routing::default() };
    routing.routes.tables.resize(fabric.nodes().len(), Default::default());
    for (index, _) in tree.switches() {
        routing.routes.tables[places[index.index()].index()] = by_tree.routes.tables[index.index()].clone();
    }
    for (vswitch, _) in hosts {
        let table = &mut routing.routes.tables[vswitch.index()];
        (1..=lids.top().0).for_each(|lid| table.set(Lid(lid), PortNum(1)));
        for (lid, _, port) in owners.iter().filter(|(_, at, _)| at == vswitch) {
            let exit = fabric.peer(*port).map_or(PortNum::ZERO, |peer| peer.port);
            table.set(*lid, exit);
        }
    }
    (lids, routing)
}

impl Virtual {
    fn kept(&self, idle: &BTreeSet<Lid>) -> Kept {
        let vswitches: Vec<NodeIndex> = self.hosts.iter().map(|(vswitch, _)| *vswitch).collect();
        let options = EngineOptions::default();
        let kept = Kept::new(&self.fabric, &self.lids, &self.routing, &options, &vswitches, idle);
        kept.expect("they are vSwitches")
    }

    fn lid(&self, host: usize, function: usize) -> Lid {
        self.lids.of(self.hosts[host].1[function]).expect("it has one").base
    }

    /// Virtual function `from.1` of a host to one of another.
    fn copy(&self, from: (usize, usize), to: (usize, usize)) -> Move {
        let port = |(host, function): (usize, usize)| self.hosts[host].1[function];
        Move::Copy { lid: self.lid(from.0, from.1), from: port(from), to: port(to), of: self.lid(to.0, 0) }
    }

    fn swap(&self, from: (usize, usize), to: (usize, usize)) -> Move {
        let port = |(host, function): (usize, usize)| self.hosts[host].1[function];
        let (lid, with) = (self.lid(from.0, from.1), self.lid(to.0, to.1));
        Move::Swap { lid, from: port(from), to: port(to), with }
    }

    fn prove(&self, kept: &Kept, one: Move, method: Method) -> Plan {
        let Self { fabric, lids, routing, .. } = self;
        let planner = Planner { kept, fabric, lids, routing, fresh: None, late: LatePolicy::default() };
        let (plan, proof) = planner.plan_and_prove(&[one], method, UpdateOrder::Ordered).expect("it is safe");
        assert_eq!(proof.unproved_lanes, 0);
        plan
    }
}

#[test]
fn vswitches_are_counted_apart_and_written_first_and_last() {
    let site = expanded(&xgft(&[2, 2, 2], &[1, 2, 2], &GenerateOptions::default()).unwrap());
    assert!(verify(&site.fabric, &site.lids, &site.routing.routes, &[]).serves_hosts());
    let kept = site.kept(&BTreeSet::new());
    assert_eq!(kept.no_tree(), None);
    for method in [Method::FtreeMinrc, Method::Skyline] {
        for (to, physical) in [(1, 1), (2, 4), (7, 10)] {
            let one = site.copy((0, 1), (to, 2));
            let plan = site.prove(&kept, one, method);
            assert_eq!((plan.physical, plan.vswitches, plan.smps.hypervisors), (physical, 2, 3), "{method}");
            assert_eq!((plan.smps.physical, plan.smps.vswitches), (physical, 2));
            assert!(plan.rounds.len() <= 2 * 3 + 1, "{} rounds", plan.rounds.len());
            let only = |round: usize, host: usize| {
                let writes = &plan.rounds[round].writes;
                writes.iter().any(|write| write.switch == site.hosts[host].0)
            };
            assert!(only(0, to) && only(plan.rounds.len() - 1, 0));
            let mut after = site.routing.clone();
            write(&mut after.routes, &plan);
            let lids = moved(&site.lids, &[one]);
            assert!(verify(&site.fabric, &lids, &after.routes, &[]).serves_hosts(), "{method} to {to}");
        }
    }
    // Across the tree the rounds are as many as there may be.
    let across = site.prove(&kept, site.copy((0, 1), (7, 2)), Method::FtreeMinrc);
    assert_eq!(across.rounds.len(), 2 * 3 + 1);
}

#[test]
fn a_move_within_a_hypervisor_writes_its_vswitch_alone() {
    let site = expanded(&xgft(&[2, 4], &[1, 4], &GenerateOptions::default()).unwrap());
    let kept = site.kept(&BTreeSet::new());
    for method in [Method::FtreeMinrc, Method::Skyline] {
        let plan = site.prove(&kept, site.copy((3, 1), (3, 2)), method);
        assert_eq!((plan.physical, plan.vswitches, plan.rounds.len()), (0, 1, 1), "{method}");
    }
}

#[test]
fn prepopulated_lids_are_swapped_with_one_that_no_machine_has() {
    let site = expanded(&xgft(&[2, 4], &[1, 4], &GenerateOptions::default()).unwrap());
    let idle = BTreeSet::from([site.lid(7, 2)]);
    let kept = site.kept(&idle);
    let one = site.swap((0, 1), (7, 2));
    for method in [Method::FtreeMinrc, Method::Skyline, Method::Itrc] {
        let plan = site.prove(&kept, one, method);
        assert_eq!((plan.fallbacks.len(), plan.vswitches), (0, 2));
        let mut after = site.routing.clone();
        write(&mut after.routes, &plan);
        let lids = moved(&site.lids, &[one]);
        assert!(verify(&site.fabric, &lids, &after.routes, &[]).serves_hosts(), "{method}");
    }
}

#[test]
fn a_node_with_two_switch_links_is_no_vswitch() {
    let site = expanded(&xgft(&[2, 4], &[1, 4], &GenerateOptions::default()).unwrap());
    let leaf = site.fabric.switches().next().expect("a switch").0;
    let (options, idle) = (EngineOptions::default(), BTreeSet::new());
    let error = Kept::new(&site.fabric, &site.lids, &site.routing, &options, &[leaf], &idle).expect_err("no");
    assert!(error.to_string().contains("is no vSwitch"), "{error}");
}
