//! The VM manager as a process of the fabric: it creates, moves and ends machines over agents and the subnet manager, and what it
//! had begun is undone or completed when it is killed and started again.

mod takeovers;

use std::collections::BTreeMap;

use rest::quiet;
use vms::{KEY, open, port, report, stream, writes};
use weft_host::traffic::FlowSpec;
use weft_machine::Time;
use weft_routing::{Isolation, Member, Partition, Partitions};
use weft_sim::{Fault, Process, SimOptions, Simulation, SlotState};
use weft_sm::LidScheme;
use weft_topology::generate::{GenerateOptions, xgft};
use weft_topology::{Fabric, NodeIndex, PortRef, Virtualised};
use weft_vm::{
    Create, Detach, Event, Hypervisor, Migrate, Migration, PortPartitions, Reply, Request, RequestId, Route,
    Step, VmError,
};
use weft_wire::{Guid, Lid, PKey, PortNum};

use crate::support::rest;
use crate::support::vms;

/// How long a request may take.
const PATIENCE: Time = Time::from_secs(130);

/// 6 switches, and 16 hosts with two slots each.
fn fabric(is_dynamic: bool) -> Simulation {
    fabric_with(is_dynamic, |_, _| {})
}

fn fabric_with(is_dynamic: bool, change: impl Fn(&Fabric, &mut SimOptions)) -> Simulation {
    let whole = xgft(&[4, 4], &[1, 2], &GenerateOptions::default()).unwrap().virtualised(2).unwrap();
    let Virtualised { fabric, adapters } = whole;
    let mut options = SimOptions { hosts: true, recabling: true, adapters, ..SimOptions::default() };
    options.sm.routing.chain = "ftree,no_fallback".parse().unwrap();
    options.sm.keys.sa_key = KEY;
    if is_dynamic {
        (options.empty_slots, options.sm.vm_lids.scheme) = (true, LidScheme::Dynamic);
    }
    options.with_vmm = true;
    options.device.data.shaped = true;
    change(&fabric, &mut options);
    let mut simulation = Simulation::new(&fabric, options, 7);
    quiet(&mut simulation);
    simulation
}

/// Asks, and waits for the answer.
#[track_caller]
fn ask(simulation: &mut Simulation, request: Request) -> Result<Reply, VmError> {
    let id = simulation.ask_vmm(request).expect("a VM manager runs");
    answer(simulation, id)
}

#[track_caller]
fn answer(simulation: &mut Simulation, id: RequestId) -> Result<Reply, VmError> {
    let limit = simulation.now() + PATIENCE;
    while simulation.vmm_reply(id).is_none() {
        assert!(simulation.now() < limit, "no answer within {PATIENCE}");
        simulation.run_until(simulation.now() + Time::from_millis(1));
    }
    simulation.vmm_reply(id).unwrap().1.clone()
}

fn create(simulation: &mut Simulation, name: &str, host: &str) {
    let made = Create::new(name.parse().unwrap(), Some(host.parse().unwrap()));
    let reply = ask(simulation, Request::Create(made)).unwrap();
    assert!(matches!(reply, Reply::Created(_)), "{reply:?}");
    quiet(simulation);
}

fn migrate(vm: &str, host: &str, stop_copy: Time) -> Request {
    Request::Migrate(Migrate {
        vm: vm.parse().unwrap(),
        host: host.parse().unwrap(),
        cold: false,
        detach: Detach::Late,
        hypervisor: Hypervisor { stop_copy, ..Hypervisor::default() },
        route: Route::default(),
    })
}

#[track_caller]
fn moved(reply: Result<Reply, VmError>) -> Migration {
    match reply {
        Ok(Reply::Migrated(migration)) => *migration,
        other => panic!("{other:?}"),
    }
}

fn function(simulation: &Simulation, name: &str) -> NodeIndex {
    simulation.fabric().find(name).unwrap()
}

/// Where a machine runs; it is in no other slot.
#[track_caller]
fn place(simulation: &Simulation, vm: &str) -> NodeIndex {
    let here: Vec<_> =
        simulation.slots().filter(|(_, slot)| slot.vm.as_deref() == Some(vm)).map(|of| of.0).collect();
    assert_eq!(here.len(), 1, "{vm} is in {here:?}");
    assert_eq!(simulation.slot(here[0]).unwrap().state, SlotState::Running);
    here[0]
}

fn since(before: &BTreeMap<NodeIndex, u64>, now: &BTreeMap<NodeIndex, u64>) -> u64 {
    now.iter().map(|(node, writes)| writes - before[node]).sum()
}

/// A machine that talks both ways with a host moves across the tree, and the switches count what it costs.
#[track_caller]
fn a_machine_moves(is_dynamic: bool) {
    let mut simulation = fabric(is_dynamic);
    create(&mut simulation, "web", "host-0");
    let vm = place(&simulation, "web");
    assert_eq!(vm, function(&simulation, "host-0 vf1"));
    let peer = port(function(&simulation, "host-5"));
    let guid = |at: weft_topology::PortRef| simulation.fabric().port(at).unwrap().guid;
    let (vm_guid, peer_guid) = (guid(port(vm)), guid(peer));
    let slow =
        |number, to| FlowSpec { bytes_per_second: Some(200_000), message_bytes: 2048, ..stream(number, to) };
    open(&mut simulation, port(vm), peer, slow(1, peer_guid));
    open(&mut simulation, peer, port(vm), slow(2, vm_guid));
    simulation.run_until(simulation.now() + Time::from_secs(1));
    let before = writes(&simulation);
    let reply = ask(&mut simulation, migrate("web", "host-15", Time::from_millis(100)));
    let migration = moved(reply);
    let counts = migration.counts.unwrap();
    assert_eq!((counts.switches, counts.vswitch_smps, counts.method.as_str()), (4, 2, "ftreeminrc"));
    let written = since(&before, &writes(&simulation));
    assert_eq!(written, u64::from(counts.physical_smps + counts.vswitch_smps), "the switches count the same");
    let downtime = migration.stages.downtime.unwrap();
    assert!(downtime > Time::from_millis(100) && downtime < Time::from_millis(200), "{downtime}");
    let now = place(&simulation, "web");
    assert!(now != vm && simulation.fabric().node(now).description.starts_with("host-15"));
    let bytes = |simulation: &Simulation| {
        [(peer, 1), (port(now), 2)].map(|(at, flow)| {
            let report = report(simulation, at, flow, false);
            assert_eq!((report.disorder, report.error), (0, None));
            report.bytes
        })
    };
    let then = bytes(&simulation);
    simulation.run_until(simulation.now() + Time::from_secs(5));
    let later = bytes(&simulation);
    assert!(later[0] > then[0] && later[1] > then[1], "both flows go on: {then:?}, {later:?}");
    let gone = ask(&mut simulation, Request::Destroy("web".parse().unwrap()));
    assert_eq!(gone, Ok(Reply::Destroyed));
    assert!(simulation.find_vm("web").is_none());
    simulation.run_until_quiet(simulation.now() + PATIENCE).unwrap();
    simulation.check_traffic().unwrap_or_else(|all| panic!("{all:?}"));
}

#[test]
fn with_dynamic_lids_a_machine_is_created_moves_and_ends() {
    a_machine_moves(true);
}

#[test]
fn with_prepopulated_lids_a_machine_is_created_moves_and_ends() {
    a_machine_moves(false);
}

/// Lets time pass until the manager has said something.
#[track_caller]
fn until_said(simulation: &mut Simulation, is_it: impl Fn(&Event) -> bool) {
    let limit = simulation.now() + PATIENCE;
    while !simulation.vmm_events().iter().any(|(_, event)| is_it(event)) {
        assert!(simulation.now() < limit, "it does not say so: {:?}", simulation.vmm_events());
        simulation.run_until(simulation.now() + Time::from_millis(1));
    }
}

fn comes_to(step: Step) -> impl Fn(&Event) -> bool {
    move |event| matches!(event, Event::MoveStep { step: at, .. } if *at == step)
}

/// The manager dies when it comes to a step, before that is on disk, and another process goes on with its journal: the machine runs on
/// its first host.
#[track_caller]
fn killed_at(step: Step, runs_meanwhile: bool) {
    let mut simulation = fabric(true);
    create(&mut simulation, "web", "host-0");
    let id = simulation.ask_vmm(migrate("web", "host-15", Time::from_secs(1))).unwrap();
    until_said(&mut simulation, comes_to(step));
    simulation.apply(Fault::Kill(Process::Vmm));
    assert!(simulation.vmm().is_none() && simulation.ask_vmm(Request::List).is_none());
    simulation.run_until(simulation.now() + Time::from_secs(2));
    let runs = simulation.slots().any(|(_, slot)| slot.state == SlotState::Running);
    assert_eq!(runs, runs_meanwhile, "{step}");
    simulation.apply(Fault::Restart(Process::Vmm));
    quiet(&mut simulation);
    assert!(simulation.vmm_reply(id).is_none(), "who had asked has no answer");
    let there = place(&simulation, "web");
    assert_eq!(simulation.fabric().node(there).description.split(' ').next(), Some("host-0"), "{step}");
    create(&mut simulation, "other", "host-3");
}

#[test]
fn a_manager_that_dies_before_commit_takes_the_move_back() {
    killed_at(Step::Freeze, true);
    killed_at(Step::Import, false);
    killed_at(Step::Reroute, false);
}

#[test]
fn a_manager_that_dies_after_commit_completes_the_move() {
    // Its record is on disk after the sync.
    let mut simulation = fabric(true);
    create(&mut simulation, "web", "host-0");
    simulation.ask_vmm(migrate("web", "host-15", Time::ZERO)).unwrap();
    until_said(&mut simulation, comes_to(Step::Commit));
    let sync = simulation.options().journal_sync;
    simulation.run_until(simulation.now() + sync);
    simulation.apply(Fault::Kill(Process::Vmm));
    simulation.apply(Fault::Restart(Process::Vmm));
    quiet(&mut simulation);
    let there = place(&simulation, "web");
    assert!(simulation.fabric().node(there).description.starts_with("host-15"));
}

#[test]
fn a_machine_is_lost_with_its_host_and_nothing_else() {
    let mut simulation = fabric(true);
    create(&mut simulation, "web", "host-0");
    create(&mut simulation, "db", "host-7");
    let host = function(&simulation, "host-0");
    simulation.apply(Fault::Kill(Process::Agent(host)));
    until_said(&mut simulation, |event| matches!(event, Event::Lost { .. }));
    simulation.apply(Fault::Restart(Process::Agent(host)));
    quiet(&mut simulation);
    assert!(simulation.find_vm("web").is_none());
    place(&simulation, "db");
    let Ok(Reply::List(list)) = ask(&mut simulation, Request::List) else { panic!("a list") };
    let states: Vec<_> = list.iter().map(|vm| (vm.vm.as_str(), vm.vm_state.as_str())).collect();
    assert_eq!(states, [("db", "running"), ("web", "lost")]);
    // Its host takes machines again.
    create(&mut simulation, "web2", "host-0");
}

fn pass(simulation: &mut Simulation, time: Time) {
    simulation.run_until(simulation.now() + time);
}

fn lid(simulation: &Simulation, function: NodeIndex) -> Lid {
    simulation.device(function).unwrap().port_snapshot(PortNum(1)).unwrap().lid
}

/// Memory is copied for longer than a hold lasts by itself, the subnet manager forgets the hold, and others boot meanwhile.
#[test]
fn a_machine_that_is_frozen_for_minutes_keeps_its_lid() {
    let mut simulation = fabric(true);
    create(&mut simulation, "web", "host-0");
    let before = lid(&simulation, place(&simulation, "web"));
    simulation.ask_vmm(migrate("web", "host-15", Time::from_secs(150))).unwrap();
    pass(&mut simulation, Time::from_secs(30));
    simulation.apply(Fault::Kill(Process::Sm));
    simulation.apply(Fault::Restart(Process::Sm));
    for (name, host) in [("early", "host-3"), ("late", "host-7")] {
        pass(&mut simulation, Time::from_secs(45));
        let made = Create::new(name.parse().unwrap(), Some(host.parse().unwrap()));
        ask(&mut simulation, Request::Create(made)).unwrap();
    }
    until_said(&mut simulation, comes_to(Step::Done));
    quiet(&mut simulation);
    let there = place(&simulation, "web");
    assert!(simulation.fabric().node(there).description.starts_with("host-15"));
    assert_eq!(lid(&simulation, there), before);
    for other in ["early", "late"] {
        assert_ne!(lid(&simulation, place(&simulation, other)), before);
    }
}

/// The GUID that the machine in a partition has, and its P_Key.
const MEMBER: Guid = Guid(0x0211_0000_0000_0001);
const P_KEY: PKey = PKey(0x8001);

/// A fabric in which the machine and a host are full members of a partition.
fn partitioned() -> Simulation {
    fabric_with(true, |fabric, options| {
        let peer = fabric.port(port(fabric.find("host-5").unwrap())).unwrap().guid;
        let members = [MEMBER, peer].map(|guid| Member { guid, full: true }).to_vec();
        let web = Partition { name: "web".to_owned(), pkey: 1, members, isolation: Isolation::Def };
        options.sm.routing.engine.partitions = Some(Partitions { list: vec![web], ..Partitions::default() });
        let mut known = PortPartitions::default();
        known.add(MEMBER, P_KEY);
        options.vmm.partitions = Some(known);
        // The order to run comes before a chip has worked off what is sent to it.
        (options.journal_sync, options.device.smp_processing) =
            (Time::from_micros(10), Time::from_micros(390));
    })
}

/// Blocks of P_Key tables that each device has been written. A function begins again with each machine.
fn p_key_writes(simulation: &Simulation) -> BTreeMap<NodeIndex, u64> {
    let of = |node| simulation.device(node).map_or(0, |device| device.statistics().p_key_writes);
    simulation.fabric().iter().map(|(node, _)| (node, of(node))).collect()
}

/// A machine in a partition runs at its new place only when the tables of its port and of the vSwitch's port have that, whether it has
/// used it or not; and it does not wait for long.
#[test]
fn a_machine_in_a_partition_runs_when_the_tables_are_written() {
    for has_flow in [false, true] {
        let mut simulation = partitioned();
        let mut made = Create::new("web".parse().unwrap(), Some("host-0".parse().unwrap()));
        (made.guid, made.p_keys) = (Some(MEMBER), vec![P_KEY]);
        ask(&mut simulation, Request::Create(made)).unwrap();
        quiet(&mut simulation);
        let (vm, peer) = (place(&simulation, "web"), port(function(&simulation, "host-5")));
        let peer_guid = simulation.fabric().port(peer).unwrap().guid;
        if has_flow {
            let slow =
                FlowSpec { bytes_per_second: Some(200_000), message_bytes: 2048, ..stream(1, peer_guid) };
            open(&mut simulation, port(vm), peer, slow);
            pass(&mut simulation, Time::from_secs(1));
            assert_eq!(simulation.stack(port(vm)).unwrap().identity().p_keys, [P_KEY]);
        }
        let there = function(&simulation, "host-15 vf1");
        let vswitch = simulation.fabric().peer(port(there)).unwrap();
        let (tables, keys) = (writes(&simulation), p_key_writes(&simulation));
        let id = simulation.ask_vmm(migrate("web", "host-15", Time::ZERO)).unwrap();
        let has_it = |simulation: &Simulation, at: PortRef| {
            simulation.device(at.node).unwrap().own_p_keys(at.port).contains(&P_KEY)
        };
        let runs = |simulation: &Simulation| simulation.slot(there).unwrap().state == SlotState::Running;
        let limit = simulation.now() + PATIENCE;
        while !runs(&simulation) {
            assert!(simulation.now() < limit, "it does not run");
            pass(&mut simulation, Time::from_micros(10));
        }
        let written = [port(there), vswitch].map(|at| has_it(&simulation, at));
        assert_eq!(written, [true, true], "its port and the vSwitch's, with a flow: {has_flow}");
        let migration = moved(answer(&mut simulation, id));
        // Sets of P_Keys are counted apart: the two blocks of 32 that its port has, and those of the vSwitch's port to it.
        let more: BTreeMap<NodeIndex, u64> = p_key_writes(&simulation)
            .into_iter()
            .map(|(node, now)| (node, if node == there { now } else { now.saturating_sub(keys[&node]) }))
            .filter(|(_, more)| *more > 0)
            .collect();
        assert_eq!(more, BTreeMap::from([(there, 2), (vswitch.node, 2)]), "with a flow: {has_flow}");
        let counts = migration.counts.clone().unwrap();
        assert_eq!((counts.physical_smps, counts.vswitch_smps, counts.hypervisor_smps), (4, 2, 3));
        assert_eq!(since(&tables, &writes(&simulation)), 6, "blocks of forwarding tables");
        let downtime = migration.stages.downtime.unwrap();
        assert!(downtime < Time::from_millis(100), "{downtime}, with a flow: {has_flow}");
        let stuck = simulation.vmm_events().iter().any(|(_, event)| matches!(event, Event::Stuck { .. }));
        assert!(!stuck, "{:?}", simulation.vmm_events());
        quiet_traffic(&mut simulation, has_flow, peer);
    }
}

/// A flow goes on after the move.
fn quiet_traffic(simulation: &mut Simulation, has_flow: bool, peer: PortRef) {
    if has_flow {
        let bytes = |simulation: &Simulation| report(simulation, peer, 1, false).bytes;
        let before = bytes(simulation);
        pass(simulation, Time::from_secs(5));
        assert!(bytes(simulation) > before, "the flow goes on");
    }
}
