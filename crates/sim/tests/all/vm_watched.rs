//! A performance manager beside virtual machines: it hears of them by Reports, which the host behind its port gets too, and asks for the
//! fabric only when something has changed.

use rest::quiet;
use vms::{KEY, port};
use weft_machine::Time;
use weft_sim::{SimOptions, Simulation};
use weft_sm::LidScheme;
use weft_topology::generate::{GenerateOptions, xgft};
use weft_topology::{NodeIndex, Virtualised};
use weft_vm::{Create, Detach, Hypervisor, Migrate, Reply, Request, Route};
use weft_wire::Guid;

use crate::support::rest;
use crate::support::vms;

/// The time that a request may take.
const PATIENCE: Time = Time::from_secs(130);
/// From one sweep to the next.
const INTERVAL: Time = Time::from_secs(1);
/// Within this time after a change the fabric is learned: a second until the manager asks, and the next sweep.
const LEARNED: Time = Time::from_secs(4);

/// Four switches, and eight hosts with two slots each. The performance manager never asks for the fabric by itself.
fn fabric(is_dynamic: bool) -> Simulation {
    let whole = xgft(&[2, 4], &[1, 2], &GenerateOptions::default()).unwrap().virtualised(2).unwrap();
    let Virtualised { fabric, adapters } = whole;
    let mut options = SimOptions { hosts: true, recabling: true, adapters, ..SimOptions::default() };
    options.sm.routing.chain = "ftree,no_fallback".parse().unwrap();
    options.sm.keys.sa_key = KEY;
    if is_dynamic {
        (options.empty_slots, options.sm.vm_lids.scheme) = (true, LidScheme::Dynamic);
    }
    (options.with_vmm, options.with_pm) = (true, true);
    options.pm_port = fabric.find("host-6").ok().map(port);
    (options.pm.interval, options.pm.refresh) = (INTERVAL, Time::from_secs(1 << 20));
    let mut simulation = Simulation::new(&fabric, options, 7);
    quiet(&mut simulation);
    pass(&mut simulation, LEARNED);
    simulation
}

fn pass(simulation: &mut Simulation, time: Time) {
    simulation.run_until(simulation.now() + time);
}

#[track_caller]
fn ask(simulation: &mut Simulation, request: Request) -> Reply {
    let id = simulation.ask_vmm(request).expect("a VM manager runs");
    let limit = simulation.now() + PATIENCE;
    while simulation.vmm_reply(id).is_none() {
        assert!(simulation.now() < limit, "no answer within {PATIENCE}");
        pass(simulation, Time::from_millis(1));
    }
    simulation.vmm_reply(id).unwrap().1.clone().unwrap()
}

/// The switch at whose port the performance manager knows the machine, by GUID.
fn known_at(simulation: &Simulation, machine: Guid) -> Option<Guid> {
    let snapshot = simulation.pm().unwrap().snapshot(simulation.now());
    let of_machine = snapshot.ports.iter().find(|port| port.end.port_guid.0 == machine)?;
    of_machine.peer.as_ref().map(|peer| peer.node_guid.0)
}

/// The vSwitch that a function is behind, by GUID.
fn vswitch(simulation: &Simulation, function: NodeIndex) -> Guid {
    let fabric = simulation.fabric();
    let (_, peer) = fabric.node(function).cabled_ports().next().unwrap();
    fabric.node(peer.node).guid
}

#[track_caller]
fn is_known_where_it_is(simulation: &Simulation) -> Guid {
    let (node, _) = simulation.find_vm("web").unwrap();
    let machine = simulation.slot(node).unwrap().identity.port_guid;
    let place = vswitch(simulation, node);
    assert_eq!(known_at(simulation, machine), Some(place));
    place
}

/// Sweeps in which nothing changes cost no questions but the one for its own subscriptions, every two seconds.
#[track_caller]
fn nothing_is_learned_while_nothing_changes(simulation: &mut Simulation) {
    let before = simulation.pm().unwrap().statistics();
    pass(simulation, Time::from_secs(40));
    let after = simulation.pm().unwrap().statistics();
    assert!(after.sweeps >= before.sweeps + 38, "{after:?}");
    assert_eq!((after.learned, after.reports), (before.learned, before.reports));
    assert!(after.learn_requests <= before.learn_requests + 21, "{before:?} {after:?}");
}

fn a_machine_is_watched(is_dynamic: bool) {
    let mut simulation = fabric(is_dynamic);
    let made = Create::new("web".parse().unwrap(), Some("host-0".parse().unwrap()));
    assert!(matches!(ask(&mut simulation, Request::Create(made)), Reply::Created(_)));
    pass(&mut simulation, LEARNED);
    let mut places = vec![is_known_where_it_is(&simulation)];
    nothing_is_learned_while_nothing_changes(&mut simulation);
    for host in ["host-5", "host-1"] {
        let before = simulation.pm().unwrap().statistics();
        let hypervisor = Hypervisor { stop_copy: Time::from_secs(3), ..Hypervisor::default() };
        let (vm, host) = ("web".parse().unwrap(), host.parse().unwrap());
        let (cold, detach, route) = (false, Detach::Late, Route::default());
        let wish = Migrate { vm, host, cold, detach, hypervisor, route };
        assert!(matches!(ask(&mut simulation, Request::Migrate(wish)), Reply::Migrated(_)));
        pass(&mut simulation, LEARNED);
        places.push(is_known_where_it_is(&simulation));
        let after = simulation.pm().unwrap().statistics();
        assert!(after.reports > before.reports && after.learned > before.learned, "{after:?}");
        nothing_is_learned_while_nothing_changes(&mut simulation);
    }
    places.sort();
    places.dedup();
    assert_eq!(places.len(), 3, "three places, one after the other");
    let stack = simulation.stack(simulation.options().pm_port.unwrap()).unwrap();
    assert!(stack.counts().reports > 0, "the host gets them too");
}

#[test]
fn a_machine_with_a_lid_of_its_own_is_watched() {
    a_machine_is_watched(true);
}

#[test]
fn a_machine_with_a_function_s_lid_is_watched() {
    a_machine_is_watched(false);
}
