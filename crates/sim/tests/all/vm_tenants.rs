//! Tenants' machines under `pftree-ext`: links of a tenant carry no other's traffic where its machines boot, and where they move.

use std::collections::BTreeSet;

use rest::quiet;
use vms::{KEY, port};
use weft_machine::Time;
use weft_routing::{DEFAULT_PKEY, Isolation, Member, Partition, Partitions, Strictness};
use weft_sim::{SimOptions, Simulation, SlotState};
use weft_sm::LidScheme;
use weft_topology::generate::{GenerateOptions, xgft};
use weft_topology::{NodeIndex, PortRef, Virtualised};
use weft_vm::{Create, Detach, Hypervisor, Migrate, PortPartitions, Request, Route};
use weft_wire::{Guid, Lid, PKey};

use crate::support::rest;
use crate::support::vms;

const PATIENCE: Time = Time::from_secs(130);

/// The tenants' machines, each with the host that it starts on: three a leaf, of which the third is free.
const TENANTS: [[(&str, &str); 3]; 2] = [
    [("red-1", "host-0"), ("red-2", "host-3"), ("red-3", "host-7")],
    [("blue-1", "host-1"), ("blue-2", "host-4"), ("blue-3", "host-6")],
];

fn guid(tenant: usize, number: usize) -> Guid {
    Guid(0x0211_0000_0000_0000 | (tenant as u64) << 8 | number as u64)
}

fn key(tenant: usize) -> PKey {
    PKey::new(1 + tenant as u16, true)
}

struct Site {
    simulation: Simulation,
    vswitches: BTreeSet<NodeIndex>,
}

/// Three leaves of three hosts under two spines. Each tenant has one of these for itself.
fn site() -> Site {
    let whole = xgft(&[3, 3], &[1, 2], &GenerateOptions::default()).unwrap().virtualised(1).unwrap();
    let Virtualised { fabric, adapters } = whole;
    let mut options = SimOptions { hosts: true, recabling: true, with_vmm: true, ..SimOptions::default() };
    options.sm.routing.chain = "pftree-ext,no_fallback".parse().unwrap();
    options.sm.keys.sa_key = KEY;
    (options.empty_slots, options.sm.vm_lids.scheme) = (true, LidScheme::Dynamic);
    let mut known = PortPartitions::default();
    let mut list: Vec<Partition> = (0..TENANTS.len())
        .map(|tenant| {
            let guids = (0..TENANTS[tenant].len()).map(|number| guid(tenant, number));
            guids.clone().for_each(|guid| known.add(guid, key(tenant)));
            let members = guids.map(|guid| Member { guid, full: true }).collect();
            let (name, isolation) = (format!("tenant-{tenant}"), Isolation::Phy);
            Partition { name, pkey: 1 + tenant as u16, members, isolation }
        })
        .collect();
    let hosts = adapters.iter().map(|adapter| fabric.port(port(adapter.pf)).unwrap().guid);
    let members = hosts.map(|guid| Member { guid, full: true }).collect();
    let (name, isolation) = (String::new(), Isolation::Def);
    list.push(Partition { name, pkey: DEFAULT_PKEY, members, isolation });
    let strictness = Strictness::BestEffort;
    options.sm.routing.engine.partitions = Some(Partitions { list, strictness });
    options.vmm.partitions = Some(known);
    let vswitches = adapters.iter().map(|adapter| adapter.vswitch).collect();
    options.adapters = adapters;
    let mut simulation = Simulation::new(&fabric, options, 11);
    quiet(&mut simulation);
    for (tenant, machines) in TENANTS.iter().enumerate() {
        for (number, (name, host)) in machines.iter().enumerate() {
            let mut made = Create::new(name.parse().unwrap(), Some(host.parse().unwrap()));
            (made.guid, made.p_keys) = (Some(guid(tenant, number)), vec![key(tenant)]);
            ask(&mut simulation, Request::Create(made));
        }
    }
    quiet(&mut simulation);
    Site { simulation, vswitches }
}

#[track_caller]
fn ask(simulation: &mut Simulation, request: Request) {
    let id = simulation.ask_vmm(request).expect("a VM manager runs");
    let limit = simulation.now() + PATIENCE;
    while simulation.vmm_reply(id).is_none() {
        assert!(simulation.now() < limit, "no answer within {PATIENCE}");
        simulation.run_until(simulation.now() + Time::from_millis(1));
    }
    simulation.vmm_reply(id).unwrap().1.as_ref().unwrap_or_else(|error| panic!("{error}"));
}

fn place(simulation: &Simulation, vm: &str) -> PortRef {
    let mut here = simulation.slots().filter(|(_, slot)| slot.vm.as_deref() == Some(vm));
    let (node, slot) = here.next().expect("it is somewhere");
    assert_eq!(slot.state, SlotState::Running);
    port(node)
}

impl Site {
    /// Links between leaves and spines on the way from a port to a LID, by the tables in the switches.
    fn way(&self, from: PortRef, to: Lid) -> BTreeSet<PortRef> {
        let simulation = &self.simulation;
        let fabric = simulation.live_fabric();
        let (mut links, mut at) = (BTreeSet::new(), from);
        loop {
            let here = fabric.peer(at).expect("the way is cabled");
            let device = simulation.device(here.node).expect("it runs");
            if !fabric.node(here.node).is_switch() {
                assert_eq!(device.port_snapshot(here.port).map(|port| port.lid), Some(to));
                return links;
            }
            at = PortRef::new(here.node, device.forwarding_table()[usize::from(to.0)]);
            let next = fabric.peer(at).expect("the way is cabled").node;
            let is_whole = |node| fabric.node(node).is_switch() && !self.vswitches.contains(&node);
            if is_whole(here.node) && is_whole(next) {
                assert!(links.insert(at), "a circle");
            }
        }
    }

    /// The links that a tenant's machines use among themselves.
    fn links(&self, machines: [(&str, &str); 3]) -> BTreeSet<PortRef> {
        let simulation = &self.simulation;
        let places = machines.map(|(name, _)| place(simulation, name));
        let lid = |port: PortRef| simulation.device(port.node).unwrap().port_snapshot(port.port).unwrap().lid;
        let pairs = places.iter().flat_map(|from| places.iter().map(move |to| (*from, *to)));
        pairs.filter(|(from, to)| from != to).flat_map(|(from, to)| self.way(from, lid(to))).collect()
    }

    #[track_caller]
    fn is_apart(&self, context: &str) {
        let [red, blue] = TENANTS.map(|machines| self.links(machines));
        // Both directions of the three cables of one spine.
        assert_eq!((red.len(), blue.len()), (6, 6), "{context}");
        let both = red.intersection(&blue).map(|link| self.simulation.fabric().port_name(*link).to_string());
        let both: Vec<String> = both.collect();
        assert!(both.is_empty(), "{context}: {both:?}");
    }
}

/// A machine that moves to a host of no tenant is routed by its own tenant's links there.
#[test]
fn a_tenants_links_stay_its_own_where_machines_move() {
    let mut site = site();
    site.is_apart("at first");
    for (vm, host) in [("blue-1", "host-2"), ("red-3", "host-8"), ("red-2", "host-5"), ("blue-1", "host-1")] {
        let (vm, to) = (vm.parse().unwrap(), host.parse().unwrap());
        let (detach, hypervisor, route) = (Detach::Late, Hypervisor::default(), Route::default());
        let ask_for = Migrate { vm, host: to, cold: false, detach, hypervisor, route };
        ask(&mut site.simulation, Request::Migrate(ask_for));
        quiet(&mut site.simulation);
        site.is_apart(host);
    }
}
