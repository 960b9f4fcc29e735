//! Late rows of random moves with dynamic LIDs: how often they are needed, which hosts wait for them, and for how long.
//!
//! ```text
//! cargo run --release -p weft-routing --example late_rows -- [MOVES [SEED]]
//! ```
//!
//! Three fabrics: X5 (`topologies/psmn-x5.topo`) by `updn`, the tree of 324 hosts without 30 cables, and one of 27 hosts on three levels without
//! 6, both by `ftree`. Each host has a machine at first.

#![allow(
    clippy::disallowed_types,
    clippy::disallowed_macros,
    reason = "an example measures and prints what it finds"
)]

use std::collections::{BTreeMap, BTreeSet};

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use weft_routing::moves::{Kept, LatePolicy, Method, Move, Plan, Planner, UpdateOrder};
use weft_routing::{Chain, EngineOptions, Lids, Routing, VirtualRows, vswitches};
use weft_topology::generate::{Damage, GenerateOptions, degraded, xgft};
use weft_topology::{Fabric, NodeIndex, PortRef};
use weft_wire::Lid;

fn main() {
    let mut arguments = std::env::args().skip(1);
    let mut number = |default: u64| arguments.next().map_or(default, |text| text.parse().expect("a number"));
    let (moves, seed) = (number(1000), number(1));
    let x5 = include_str!("../../../topologies/psmn-x5.topo");
    let x5 = weft_topology::parse("psmn-x5.topo", x5).expect("a topology");
    let tree = xgft(&[18, 18], &[1, 18], &GenerateOptions::default()).expect("the parameters are sound");
    let tree = degraded(&tree, Damage { cables: 30, switches: 0 }, seed).expect("what remains is sound");
    let pods = xgft(&[3, 3, 3], &[1, 3, 3], &GenerateOptions::default()).expect("the parameters are sound");
    let pods = degraded(&pods, Damage { cables: 6, switches: 0 }, seed).expect("what remains is sound");
    for (name, fabric, engine) in
        [("X5", x5, "updn"), ("324 hosts", tree, "ftree"), ("27 hosts on three levels", pods, "ftree")]
    {
        Site::new(&fabric, engine).walk(name, moves, seed);
    }
}

struct Site {
    fabric: Fabric,
    lids: Lids,
    routing: Routing,
    vswitches: Vec<NodeIndex>,
    /// By host: the physical function, and the place of the virtual one.
    hosts: Vec<(PortRef, PortRef)>,
    /// By machine: its LID, its host.
    machines: Vec<(Lid, usize)>,
}

impl Site {
    fn new(physical: &Fabric, engine: &str) -> Self {
        let whole = physical.virtualised(2).expect("adapters with virtual functions");
        let fabric = whole.fabric;
        let inner = vswitches(&fabric, &[]);
        let functions: BTreeSet<PortRef> =
            inner.iter().flat_map(weft_routing::VSwitch::virtual_functions).collect();
        let (mut lids, mut own, mut next) = (Lids::new(), Lids::new(), 1);
        for (index, node) in fabric.iter() {
            for (port, _) in node.end_ports() {
                let port = PortRef::new(index, port);
                if functions.contains(&port) {
                    continue;
                }
                lids.insert(port, Lid(next), 0).expect("free");
                own.insert(port, Lid(next), 0).expect("free");
                next += 1;
            }
        }
        let (mut hosts, mut machines) = (Vec::new(), Vec::new());
        for (number, one) in inner.iter().enumerate() {
            let vf = one.virtual_functions().next().expect("some");
            hosts.push((one.pf().expect("it is there"), vf));
            lids.insert(vf, Lid(next), 0).expect("free");
            machines.push((Lid(next), number));
            next += 1;
        }
        let options = EngineOptions::default();
        let chain: Chain = engine.parse().expect("an engine");
        let mut routing = chain.route(&fabric, &own, &options).expect("a routing");
        VirtualRows { fabric: &fabric, vswitches: &inner, lids: &lids, options: &options }
            .copy(&mut routing, lids.top());
        let vswitches = inner.iter().map(|one| one.node).collect();
        Self { fabric, lids, routing, vswitches, hosts, machines }
    }

    fn walk(&mut self, name: &str, moves: u64, seed: u64) {
        let mut random = Pcg64Mcg::seed_from_u64(seed);
        let mut found = Found::default();
        for _ in 0..moves {
            let machine = random.random_range(0..self.machines.len());
            let (lid, from) = self.machines[machine];
            let to = random.random_range(0..self.hosts.len());
            if to == from {
                continue;
            }
            let place = self.hosts[to].1;
            let plan = self.plan(lid, to, place);
            found.count(&plan, &self.vswitches);
            for write in plan.writes() {
                self.routing.routes.tables[write.switch.index()].set_block(write.block, &write.ports);
            }
            self.machines[machine].1 = to;
            self.lids.transfer(lid, place);
        }
        found.print(name);
    }

    fn plan(&self, lid: Lid, to: usize, place: PortRef) -> Plan {
        let Self { fabric, lids, routing, vswitches, .. } = self;
        let (options, idle) = (EngineOptions::default(), BTreeSet::new());
        let kept = Kept::new(fabric, lids, routing, &options, vswitches, &idle).expect("one lane a level");
        let planner = Planner { kept: &kept, fabric, lids, routing, fresh: None, late: LatePolicy::Detour };
        let of = lids.of(self.hosts[to].0).expect("it has one").base;
        let from = lids.owner(lid).expect("it has one");
        let one = Move::Copy { lid, from, to: place, of };
        let planned = planner.plan_and_prove(&[one], Method::FtreeMinrc, UpdateOrder::Ordered);
        planned.expect("there is a safe plan").0
    }
}

/// What came of all moves.
#[derive(Default)]
struct Found {
    plans: u64,
    /// Plans in which rows are not written at once.
    late: u64,
    /// Those of them in which everyone is served at once, by detours.
    detours_do: u64,
    detours: u64,
    /// Plans that wait with the machine frozen.
    frozen: u64,
    /// By the number of vSwitches whose hosts are silent.
    silent: BTreeMap<usize, u64>,
    /// By the number of switches that hold a packet until then.
    silence: BTreeMap<u32, u64>,
}

impl Found {
    fn count(&mut self, plan: &Plan, vswitches: &[NodeIndex]) {
        let is_late = plan.late.is_some();
        self.plans += 1;
        self.late += u64::from(is_late);
        self.detours_do += u64::from(is_late && plan.silent.is_empty());
        self.detours += plan.detours.len() as u64;
        self.frozen += u64::from(plan.order == UpdateOrder::DropFirst);
        let hosts = plan.silent.iter().filter(|switch| vswitches.contains(switch)).count();
        *self.silent.entry(hosts).or_default() += 1;
        *self.silence.entry(plan.silence()).or_default() += 1;
    }

    fn print(&self, name: &str) {
        let Self { plans, late, detours_do, detours, frozen, silent, silence } = self;
        println!("{name}: {plans} plans, {late} with late rows, of which {detours_do} leave no one silent");
        println!("  {detours} detours, {frozen} plans that drop first");
        println!("  hosts that are silent: plans {silent:?}");
        for (switches, plans) in silence {
            // LifeTimeValue 18: 4.096 µs times 2 to this power.
            let seconds = f64::from(*switches) * 4.096e-6 * f64::from(1 << 18);
            println!("  silent for {seconds:.3} s ({switches} switches): {plans} plans");
        }
    }
}
