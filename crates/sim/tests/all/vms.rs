//! Virtual machines move between the slots of adapters, and their queue pairs live.

use rest::quiet;
use vms::{identity, open, port, report, step, stream};
use weft_host::traffic::FlowSpec;
use weft_machine::Time;
use weft_sim::{Fault, Process, Refusal, SimOptions, Simulation, SlotState, VmRefusal, VmStep};
use weft_topology::generate::{GenerateOptions, xgft};
use weft_topology::{NodeIndex, PortRef, Virtualised};
use weft_wire::{Guid, Lid, PortNum, PortState};

use crate::support::rest;
use crate::support::vms;

/// Bytes of body of each flow: 2048 packets.
const BYTES: u64 = 4 << 20;

/// How long flows run before the virtual machine is frozen: a fraction of what they need.
const BEFORE: Time = Time::from_micros(600);

/// How long a sweep, and flows that have lost their peer for a while, may take.
const PATIENCE: Time = Time::from_secs(60);

/// 6 switches, and 16 hosts with two slots each.
fn virtualised() -> Virtualised {
    xgft(&[4, 4], &[1, 2], &GenerateOptions::default()).unwrap().virtualised(2).unwrap()
}

fn fabric(empty_slots: bool, seed: u64) -> Simulation {
    let Virtualised { fabric, adapters } = virtualised();
    let mut options =
        SimOptions { hosts: true, recabling: true, adapters, empty_slots, ..SimOptions::default() };
    // The sweep of a move takes longer than a peer would repeat by default.
    (options.host.ack_timeout, options.host.retries) = (Time::from_millis(100), 1000);
    options.device.data.shaped = true;
    let mut simulation = Simulation::new(&fabric, options, seed);
    quiet(&mut simulation);
    simulation
}

fn slot(simulation: &Simulation, host: u32, vf: u32) -> NodeIndex {
    simulation.fabric().find(&format!("host-{host} vf{vf}")).unwrap()
}

fn lid(simulation: &Simulation, node: NodeIndex) -> Lid {
    simulation.device(node).unwrap().port_snapshot(PortNum(1)).unwrap().lid
}

fn state(simulation: &Simulation, node: NodeIndex) -> PortState {
    simulation.device(node).unwrap().port_snapshot(PortNum(1)).unwrap().state
}

/// Lets time pass until something has come true.
#[track_caller]
fn run_until(simulation: &mut Simulation, is_so: impl Fn(&Simulation) -> bool) {
    let limit = simulation.now() + PATIENCE;
    while !is_so(simulation) {
        assert!(simulation.now() < limit, "not within {PATIENCE}");
        simulation.run_until(simulation.now() + Time::from_millis(1));
    }
}

/// Lets both flows end.
#[track_caller]
fn finish(simulation: &mut Simulation, vm: NodeIndex, peer: PortRef) {
    let ended = |simulation: &Simulation, at, number| report(simulation, at, number, true).state == "done";
    run_until(simulation, |simulation| ended(simulation, port(vm), 1) && ended(simulation, peer, 2));
}

/// A reliable connection between a port and the virtual machine.
fn flow(simulation: &mut Simulation, number: u32, from: PortRef, (to, guid): (PortRef, Guid)) {
    open(simulation, from, to, FlowSpec { bytes_max: Some(BYTES), ..stream(number, guid) });
}

/// Takes the virtual machine from a slot to another one, whose manager routes by a heavy sweep.
fn migrate(simulation: &mut Simulation, (from, to): (NodeIndex, NodeIndex), epoch: u64, leave: bool) {
    let vm = simulation.slot(from).unwrap().identity;
    let free = leave.then(|| simulation.slot(to).unwrap().identity);
    step(simulation, from, epoch, VmStep::Freeze).unwrap();
    // What arrives at the frozen function is taken and dropped.
    simulation.run_until(simulation.now() + Time::from_micros(50));
    let image = step(simulation, from, epoch, VmStep::Export).unwrap().image;
    assert!(image.as_ref().unwrap().flows() > 0);
    let import = VmStep::Import { identity: vm, from_epoch: epoch, image };
    step(simulation, to, epoch + 1, import).unwrap();
    assert_eq!(simulation.slot(to).unwrap().state, SlotState::Imported);
    run_until(simulation, |simulation| state(simulation, to) == PortState::Active);
    assert!(simulation.stack(port(to)).unwrap().is_suspended(), "nothing resumes by itself");
    step(simulation, to, epoch + 1, VmStep::Activate).unwrap();
    step(simulation, from, epoch, VmStep::Release { leave: free }).unwrap();
}

/// Both flows have delivered everything once and in order.
fn assert_delivered(simulation: &Simulation, vm: NodeIndex, peer: PortRef, seed: u64) {
    for (at, number) in [(peer, 1), (port(vm), 2)] {
        let received = report(simulation, at, number, false);
        assert_eq!(
            (received.bytes, received.disorder, received.error),
            (BYTES, 0, None),
            "flow {number}, seed {seed}"
        );
    }
    for (at, number) in [(port(vm), 1), (peer, 2)] {
        let sent = report(simulation, at, number, true);
        assert_eq!((sent.state.as_str(), sent.bytes), ("done", BYTES), "flow {number}, seed {seed}");
        assert!(sent.repeated > 0, "the move cut it off: seed {seed}");
    }
}

fn seeds() -> Vec<u64> {
    let one = std::env::var("WEFT_SEED").ok().map(|seed| seed.parse().expect("WEFT_SEED is a number"));
    one.map_or_else(|| (1..=2).collect(), |seed| vec![seed])
}

#[test]
fn messages_arrive_once_and_in_order_over_a_vm_move() {
    for seed in seeds() {
        let mut simulation = fabric(true, seed);
        let (from, to) = (slot(&simulation, 0, 1), slot(&simulation, 13, 2));
        let peer = port(simulation.fabric().find("host-6").unwrap());
        step(&mut simulation, from, 1, VmStep::Boot(identity(1))).unwrap();
        quiet(&mut simulation);
        simulation.check_picture().unwrap();
        let vm_lid = lid(&simulation, from);
        assert_ne!(vm_lid, Lid(0), "it has a LID after a sweep");
        let guid = simulation.fabric().port(peer).unwrap().guid;
        flow(&mut simulation, 1, port(from), (peer, guid));
        flow(&mut simulation, 2, peer, (port(from), identity(1).port_guid));
        simulation.run_until(simulation.now() + BEFORE);
        let under_way = report(&simulation, peer, 1, false).bytes;
        assert!((1..BYTES).contains(&under_way), "it is under way: {under_way}");
        migrate(&mut simulation, (from, to), 1, false);
        finish(&mut simulation, to, peer);
        quiet(&mut simulation);
        simulation.check_picture().unwrap();
        assert_eq!(lid(&simulation, to), vm_lid, "the LID moves with the port");
        assert_eq!(simulation.slot(from).unwrap().state, SlotState::Empty);
        assert_delivered(&simulation, to, peer, seed);
        simulation.check_traffic().unwrap();
    }
}

#[test]
fn a_move_in_a_prepopulated_fabric_swaps_two_identities() {
    for seed in seeds() {
        let mut simulation = fabric(false, seed);
        let (from, to) = (slot(&simulation, 2, 1), slot(&simulation, 9, 1));
        let peer = port(simulation.fabric().find("host-6").unwrap());
        let lids = [from, to].map(|slot| lid(&simulation, slot));
        let (writes, own) = (simulation.lft_writes(), simulation.slot(from).unwrap());
        assert_eq!(own.state, SlotState::Free);
        step(&mut simulation, from, 1, VmStep::Boot(own.identity.clone())).unwrap();
        quiet(&mut simulation);
        assert_eq!(
            (simulation.lft_writes(), lid(&simulation, from)),
            (writes, lids[0]),
            "nothing is written"
        );
        let guid = simulation.fabric().port(peer).unwrap().guid;
        flow(&mut simulation, 1, port(from), (peer, guid));
        flow(&mut simulation, 2, peer, (port(from), own.identity.port_guid));
        simulation.run_until(simulation.now() + BEFORE);
        migrate(&mut simulation, (from, to), 1, true);
        finish(&mut simulation, to, peer);
        quiet(&mut simulation);
        simulation.check_picture().unwrap();
        assert_eq!([to, from].map(|slot| lid(&simulation, slot)), lids, "LIDs are swapped");
        assert_eq!(simulation.slot(from).unwrap().state, SlotState::Free);
        assert_delivered(&simulation, to, peer, seed);
        simulation.check_traffic().unwrap();
    }
}

#[test]
fn a_move_that_is_undone_goes_on_where_it_was() {
    let mut simulation = fabric(true, 1);
    let (from, to) = (slot(&simulation, 0, 1), slot(&simulation, 13, 2));
    let peer = port(simulation.fabric().find("host-6").unwrap());
    step(&mut simulation, from, 1, VmStep::Boot(identity(1))).unwrap();
    quiet(&mut simulation);
    let guid = simulation.fabric().port(peer).unwrap().guid;
    flow(&mut simulation, 1, port(from), (peer, guid));
    flow(&mut simulation, 2, peer, (port(from), identity(1).port_guid));
    simulation.run_until(simulation.now() + BEFORE);
    step(&mut simulation, from, 1, VmStep::Freeze).unwrap();
    let image = step(&mut simulation, from, 1, VmStep::Export).unwrap().image;
    let import = VmStep::Import { identity: identity(1), from_epoch: 1, image };
    step(&mut simulation, to, 2, import.clone()).unwrap();
    run_until(&mut simulation, |simulation| state(simulation, to) == PortState::Active);
    step(&mut simulation, to, 2, VmStep::Unplug { leave: None }).unwrap();
    step(&mut simulation, from, 3, VmStep::Resume).unwrap();
    // What comes late of the move is refused.
    let late = step(&mut simulation, from, 1, VmStep::Freeze);
    let over = VmRefusal::OldSlotEpoch { given: 1, known: 3 };
    assert_eq!(late, Err(Refusal::Vm(over)));
    assert!(matches!(step(&mut simulation, to, 2, import), Err(Refusal::Vm(VmRefusal::OldEpoch { .. }))));
    finish(&mut simulation, from, peer);
    quiet(&mut simulation);
    assert_delivered(&simulation, from, peer, 1);
    simulation.check_traffic().unwrap();
}

/// The end of a hypervisor is that of its virtual machines; its slots are as at first.
#[test]
fn a_hypervisor_that_ends_takes_its_virtual_machines_along() {
    let mut simulation = fabric(true, 1);
    let at = slot(&simulation, 3, 2);
    step(&mut simulation, at, 1, VmStep::Boot(identity(1))).unwrap();
    quiet(&mut simulation);
    assert_eq!(simulation.find_vm("web").unwrap().0, at);
    simulation.apply(Fault::Restart(Process::Agent(at)));
    quiet(&mut simulation);
    assert_eq!(simulation.slot(at).unwrap().state, SlotState::Empty);
    assert_eq!(simulation.find_vm("web"), None);
    let late = step(&mut simulation, at, 1, VmStep::Freeze);
    assert!(matches!(late, Err(Refusal::Vm(VmRefusal::NotHere { .. }))));
    simulation.check_picture().unwrap();
}
