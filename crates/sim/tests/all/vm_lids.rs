//! LIDs of virtual functions that get theirs when a machine boots: what is written for a boot, what stays, and what is given
//! again.

use std::collections::BTreeMap;

use rest::{last, quiet};
use vms::{KEY, ask_move, writes};
use weft_machine::Time;
use weft_sim::{Fault, Process, SimOptions, Simulation, VmCommand, VmStep};
use weft_sm::{GuidToLid, LidScheme, SwitchLids, VmLids};
use weft_topology::generate::{GenerateOptions, xgft};
use weft_topology::{Adapter, NodeIndex, PortRef, UPLINK, Virtualised};
use weft_wire::{Lid, PortNum, VmMove, VmMoveKind, VmMoveResult, status};

use crate::support::rest;
use crate::support::vms;

/// 6 switches and 16 hosts with two slots each.
fn tree() -> Virtualised {
    xgft(&[4, 4], &[1, 2], &GenerateOptions::default()).unwrap().virtualised(2).unwrap()
}

/// A fabric whose slots are empty.
fn begin(whole: Virtualised, options: SimOptions) -> Simulation {
    let Virtualised { fabric, adapters } = whole;
    Simulation::new(&fabric, SimOptions { adapters, recabling: true, empty_slots: true, ..options }, 1)
}

fn options(engine: &str, switch_lids: SwitchLids) -> SimOptions {
    let mut options = SimOptions::default();
    options.sm.routing.chain = format!("{engine},no_fallback").parse().unwrap();
    (options.sm.vm_lids.scheme, options.sm.vm_lids.switch_lids) = (LidScheme::Dynamic, switch_lids);
    options
}

fn up(engine: &str, switch_lids: SwitchLids) -> Simulation {
    let mut simulation = begin(tree(), options(engine, switch_lids));
    quiet(&mut simulation);
    assert!(last(&simulation).complete, "{engine}: {:?}", last(&simulation));
    simulation
}

/// How many blocks each kind of switch has been written since: physical ones, each; these vSwitches, each; and all others
/// together.
fn since(before: &BTreeMap<NodeIndex, u64>, simulation: &Simulation, own: &[NodeIndex]) -> [Vec<u64>; 3] {
    let inner: Vec<NodeIndex> = adapters(simulation).iter().map(|adapter| adapter.vswitch).collect();
    let mut kinds = [const { Vec::new() }; 3];
    for (node, now) in writes(simulation) {
        let kind = if own.contains(&node) { 1 } else { usize::from(inner.contains(&node)) * 2 };
        kinds[kind].push(now - before[&node]);
    }
    kinds
}

fn all(count: usize, each: u64) -> Vec<u64> {
    vec![each; count]
}

fn adapters(simulation: &Simulation) -> &[Adapter] {
    &simulation.options().adapters
}

fn vf(simulation: &Simulation, host: usize, number: usize) -> NodeIndex {
    adapters(simulation)[host].vfs[number]
}

fn vswitch(simulation: &Simulation, host: usize) -> NodeIndex {
    adapters(simulation)[host].vswitch
}

fn lid(simulation: &Simulation, port: PortRef) -> Lid {
    simulation.device(port.node).unwrap().port_snapshot(port.port).unwrap().lid
}

fn lid_of_vf(simulation: &Simulation, host: usize, number: usize) -> Lid {
    lid(simulation, PortRef::new(vf(simulation, host, number), PortNum(1)))
}

fn lid_of_host(simulation: &Simulation, host: usize) -> Lid {
    lid(simulation, PortRef::new(adapters(simulation)[host].pf, PortNum(1)))
}

fn counts(simulation: &Simulation) -> VmLids {
    let VmLids { in_use, quarantined, free, refused, .. } = simulation.sm().unwrap().progress().vm_lids;
    VmLids { in_use, quarantined, free, refused, ..VmLids::default() }
}

/// A machine boots in an empty slot, with the identity that the slot began with.
fn boot(simulation: &mut Simulation, function: NodeIndex) {
    let slot = simulation.slot(function).unwrap();
    step(simulation, function, slot.epoch + 1, VmStep::Boot(slot.identity));
}

/// The machine in a slot ends.
fn end(simulation: &mut Simulation, function: NodeIndex) {
    let epoch = simulation.slot(function).unwrap().epoch;
    step(simulation, function, epoch, VmStep::Unplug { leave: None });
}

fn step(simulation: &mut Simulation, function: NodeIndex, epoch: u64, step: VmStep) {
    let vm = format!("vm-{}", function.index());
    simulation.vm(function, VmCommand { vm, epoch, step }).unwrap();
}

/// Boots a machine, or ends one, and lets the fabric come to rest.
fn plug(simulation: &mut Simulation, host: usize, number: usize, plugged: bool) {
    let function = vf(simulation, host, number);
    if plugged {
        boot(simulation, function);
    } else {
        end(simulation, function);
    }
    quiet(simulation);
}

/// Physical switches send to a function as to its host.
fn follows(simulation: &Simulation, host: usize, number: usize) {
    let [function, own] = [lid_of_vf(simulation, host, number), lid_of_host(simulation, host)];
    let inner: Vec<NodeIndex> = adapters(simulation).iter().map(|adapter| adapter.vswitch).collect();
    let routes = simulation.live_routes();
    for (node, _) in simulation.fabric().switches().filter(|(node, _)| !inner.contains(node)) {
        assert_eq!(routes.port(node, function), routes.port(node, own));
    }
}

#[test]
fn a_boot_writes_one_block_of_each_switch_and_its_vswitch() {
    for engine in ["ftree", "minhop", "updn", "vswitch-ftree", "dfsssp"] {
        let mut simulation = up(engine, SwitchLids::Own);
        // Six switches, 16 hosts, 16 vSwitches: one block. 32 slots more are a second one, which vSwitches have and others
        // have no rows in.
        assert_eq!((last(&simulation).lids, simulation.lft_writes()), (38, 6 + 16 * 2), "{engine}");
        assert_eq!(
            counts(&simulation),
            VmLids { in_use: 0, quarantined: 0, free: 49_151 - 38, refused: 0, ..VmLids::default() }
        );
        let (before, tops) = (writes(&simulation), simulation.live_routes());
        plug(&mut simulation, 9, 1, true);
        assert_eq!(lid_of_vf(&simulation, 9, 1), Lid(39), "{engine}");
        let own = [vswitch(&simulation, 9)];
        let written = since(&before, &simulation, &own);
        assert_eq!(written, [all(6, 1), all(1, 1), all(15, 0)], "{engine}: one SMP for each switch");
        assert_eq!(
            counts(&simulation),
            VmLids { in_use: 1, quarantined: 0, free: 49_151 - 39, refused: 0, ..VmLids::default() }
        );
        follows(&simulation, 9, 1);
        for (table, was) in simulation.live_routes().tables.iter().zip(&tops.tables) {
            let changed = (1..=127).map(Lid).filter(|lid| table.port(*lid) != was.port(*lid));
            assert!(
                changed.eq((39..=39).map(Lid).filter(|lid| table.port(*lid) != was.port(*lid))),
                "{engine}"
            );
            assert_eq!(table.top(), was.top(), "{engine}");
        }
        let table = &simulation.live_routes().tables[vswitch(&simulation, 3).index()];
        assert!((1..=127).filter(|lid| table.port(Lid(*lid)) == UPLINK).count() == 127 - 2, "{engine}");
        // The next one gets the next LID, which may be in another host.
        let before = writes(&simulation);
        plug(&mut simulation, 0, 0, true);
        assert_eq!(lid_of_vf(&simulation, 0, 0), Lid(40), "{engine}");
        let own = [vswitch(&simulation, 0)];
        assert_eq!(since(&before, &simulation, &own), [all(6, 1), all(1, 1), all(15, 0)], "{engine}");
    }
}

#[test]
fn a_lid_rests_when_its_machine_ends_and_is_free_later() {
    let mut simulation = up("ftree", SwitchLids::Own);
    plug(&mut simulation, 9, 1, true);
    let before = writes(&simulation);
    plug(&mut simulation, 9, 1, false);
    assert_eq!(since(&before, &simulation, &[]), [all(6, 0), vec![], all(16, 0)], "rows stay");
    assert_eq!((counts(&simulation).in_use, counts(&simulation).quarantined), (0, 1));
    // Another one gets another LID.
    plug(&mut simulation, 2, 0, true);
    assert_eq!(lid_of_vf(&simulation, 2, 0), Lid(40));
    // The same one gets its own again, and nothing is written.
    let before = writes(&simulation);
    plug(&mut simulation, 9, 1, true);
    assert_eq!(lid_of_vf(&simulation, 9, 1), Lid(39));
    assert_eq!(since(&before, &simulation, &[]), [all(6, 0), vec![], all(16, 0)]);
    assert_eq!((counts(&simulation).in_use, counts(&simulation).quarantined), (2, 0));
    plug(&mut simulation, 9, 1, false);
    // The quarantine ends; the next sweep takes the rows out, with the ones that it writes anyway.
    let limit = simulation.now() + Time::from_secs(41);
    simulation.run_until(limit);
    let before = writes(&simulation);
    plug(&mut simulation, 5, 1, true);
    assert_eq!(lid_of_vf(&simulation, 5, 1), Lid(39), "free again");
    let own = [vswitch(&simulation, 9), vswitch(&simulation, 5)];
    let [physical, own, others] = since(&before, &simulation, &own);
    assert_eq!((own, others), (all(2, 1), all(14, 0)));
    // A leaf that sends to both hosts by the same cable has the row already.
    assert!(physical.iter().all(|blocks| *blocks <= 1) && physical.iter().sum::<u64>() >= 3, "{physical:?}");
    follows(&simulation, 5, 1);
    assert_eq!((counts(&simulation).in_use, counts(&simulation).quarantined), (2, 0));
    assert_eq!(simulation.guid2lid().iter().filter(|(_, lids)| lids.min == Lid(39)).count(), 1);
}

/// Requests that devices have answered to the manager.
fn answered(simulation: &Simulation) -> BTreeMap<NodeIndex, u64> {
    let of = |node: NodeIndex| simulation.device(node).map_or(0, |device| device.statistics().smps_answered);
    simulation.fabric().iter().map(|(node, _)| (node, of(node))).collect()
}

/// On 324 hosts a boot writes one block at each of 36 switches and one at the vSwitch; whatever else is asked is at the machine's
/// vSwitch and at its port. A heavy sweep asks some 6000 times.
#[test]
fn machines_that_come_and_go_cost_what_they_touch() {
    const SMPS_MAX: u64 = 100;
    let whole = xgft(&[18, 18], &[1, 18], &GenerateOptions::default()).unwrap().virtualised(2).unwrap();
    let mut options = options("ftree", SwitchLids::Own);
    // No light sweep and nothing that it reads back comes between.
    (options.sm.sweeps.sweep_interval_ms, options.sm.sweeps.audit_smps) = (0, 0);
    let mut simulation = begin(whole, options);
    quiet(&mut simulation);
    let function = vf(&simulation, 200, 1);
    // The second time it has its rows and its LID on file.
    for (round, most_writes) in [(1, 37), (2, 0)] {
        for plugged in [true, false] {
            let (before, writes) = (answered(&simulation), simulation.lft_writes());
            match plugged {
                true => boot(&mut simulation, function),
                false => end(&mut simulation, function),
            }
            let limit = simulation.now() + Time::from_secs(2);
            simulation.run_until(limit);
            let has_lid = plugged && lid_of_vf(&simulation, 200, 1).is_unicast();
            assert_eq!(has_lid, plugged, "round {round}");
            let after = answered(&simulation);
            let cost = |node: &NodeIndex| after[node].saturating_sub(before[node]);
            let all: u64 = after.keys().map(cost).sum();
            assert!((1..=SMPS_MAX).contains(&all), "round {round}, plugged {plugged}: {all} SMPs");
            let own = [vswitch(&simulation, 200), function];
            let switches = simulation.fabric().iter().filter(|(_, node)| node.is_switch()).count();
            assert_eq!(switches, 36 + 324);
            let touched = after.keys().filter(|node| cost(node) > 0 && !own.contains(node)).count() as u64;
            let written = simulation.lft_writes() - writes;
            assert!(written <= if plugged { most_writes } else { 0 }, "round {round}: {written} blocks");
            assert_eq!(touched, written.saturating_sub(1), "no one else is asked");
        }
    }
    quiet(&mut simulation);
}

/// The quarantine is for LIDs that are gone; held ones are on their way, and holds may repeat.
#[test]
fn a_lid_that_is_held_rests_for_as_long_as_the_hold() {
    let mut options = options("ftree", SwitchLids::Own);
    options.sm.keys.sa_key = KEY;
    let mut simulation = begin(tree(), options);
    quiet(&mut simulation);
    plug(&mut simulation, 9, 1, true);
    let function = vf(&simulation, 9, 1);
    let [from_switch, to_switch] =
        [9, 3].map(|host| simulation.fabric().node(vswitch(&simulation, host)).guid);
    let hold = VmMove {
        kind: VmMoveKind::Hold,
        from_switch,
        from_port: PortNum(4),
        to_switch,
        to_port: PortNum(3),
        guid: simulation.slot(function).unwrap().identity.port_guid,
        hold_s: 100,
        epoch: 1,
        ..VmMove::default()
    };
    let from = adapters(&simulation)[2].pf;
    let held = |simulation: &mut Simulation, epoch| {
        let (status, answer) = ask_move(simulation, from, &VmMove { epoch, ..hold }).unwrap();
        assert_eq!((status, answer.result), (status::OK, VmMoveResult::Done), "{}", answer.reason_text());
    };
    held(&mut simulation, 1);
    let epoch = simulation.slot(function).unwrap().epoch;
    step(&mut simulation, function, epoch + 1, VmStep::Freeze);
    step(&mut simulation, function, epoch + 1, VmStep::Export);
    let pass = |simulation: &mut Simulation, seconds| {
        simulation.run_until(simulation.now() + Time::from_secs(seconds));
    };
    // Each boot is a heavy sweep.
    for (host, lid) in [(5, 40), (6, 41), (7, 42)] {
        pass(&mut simulation, 45);
        let other = vf(&simulation, host, 0);
        boot(&mut simulation, other);
        pass(&mut simulation, 5);
        assert_eq!(lid_of_vf(&simulation, host, 0), Lid(lid));
        held(&mut simulation, 2);
    }
    // Once the hold has ended it is gone like others.
    for (wait, host, lid) in [(105, 8, 43), (45, 10, 39)] {
        pass(&mut simulation, wait);
        let other = vf(&simulation, host, 0);
        boot(&mut simulation, other);
        pass(&mut simulation, 5);
        assert_eq!(lid_of_vf(&simulation, host, 0), Lid(lid));
    }
}

#[test]
fn a_new_manager_writes_nothing_whatever_has_booted_and_ended() {
    for switch_lids in [SwitchLids::Own, SwitchLids::Shared] {
        for with_guid2lid in [true, false] {
            let mut simulation = up("ftree", switch_lids);
            for (host, number) in [(9, 1), (9, 0), (4, 0)] {
                plug(&mut simulation, host, number, true);
            }
            plug(&mut simulation, 9, 1, false);
            let state = |simulation: &Simulation| (writes(simulation), simulation.lid_changes());
            let (before, routes) = (state(&simulation), simulation.live_routes());
            simulation.apply(Fault::Kill(Process::Sm));
            simulation.run_until(simulation.now() + Time::from_secs(1));
            if !with_guid2lid {
                simulation.set_guid2lid(GuidToLid::default());
            }
            simulation.apply(Fault::Restart(Process::Sm));
            quiet(&mut simulation);
            assert_eq!(state(&simulation), before, "{switch_lids:?}, with guid2lid: {with_guid2lid}");
            assert_eq!(simulation.live_routes(), routes);
            let counts = counts(&simulation);
            assert_eq!((counts.in_use, counts.quarantined), (2, 1), "with guid2lid: {with_guid2lid}");
        }
    }
}

#[test]
fn a_sweep_ends_a_boot_that_a_manager_has_begun() {
    for after in [1, 3, 6] {
        let mut simulation = up("ftree", SwitchLids::Own);
        let writes_before = simulation.lft_writes();
        let function = vf(&simulation, 9, 1);
        boot(&mut simulation, function);
        let limit = simulation.now() + Time::from_secs(20);
        while simulation.lft_writes() < writes_before + after {
            assert!(simulation.now() < limit, "it boots");
            simulation.run_until(simulation.now() + Time::from_nanos(200));
        }
        let done = simulation.lft_writes() - writes_before;
        assert!(done < 7, "{done} are not all of them");
        simulation.apply(Fault::Kill(Process::Sm));
        simulation.run_until(simulation.now() + Time::from_secs(1));
        simulation.apply(Fault::Restart(Process::Sm));
        quiet(&mut simulation);
        follows(&simulation, 9, 1);
        assert_eq!(simulation.lft_writes() - writes_before, 7, "what had been written is not written again");
    }
}

#[test]
fn machines_that_no_lid_is_left_for_wait_for_one() {
    let mut options = options("ftree", SwitchLids::Own);
    options.sm.vm_lids.vm_lids_max = 1;
    let mut simulation = begin(tree(), options);
    quiet(&mut simulation);
    plug(&mut simulation, 9, 1, true);
    let second = vf(&simulation, 4, 0);
    boot(&mut simulation, second);
    let limit = simulation.now() + Time::from_secs(2);
    simulation.run_until(limit);
    assert_eq!(lid_of_vf(&simulation, 4, 0), Lid(0));
    assert_eq!(
        counts(&simulation),
        VmLids { in_use: 1, quarantined: 0, free: 0, refused: 1, ..VmLids::default() }
    );
    let first = vf(&simulation, 9, 1);
    end(&mut simulation, first);
    let limit = simulation.now() + Time::from_secs(10);
    simulation.run_until(limit);
    assert_eq!(
        counts(&simulation),
        VmLids { in_use: 0, quarantined: 1, free: 0, refused: 1, ..VmLids::default() }
    );
    // The manager tries again by itself, at the latest a sweep's interval after the quarantine.
    let limit = simulation.now() + Time::from_secs(60);
    simulation.run_until(limit);
    assert_eq!(lid_of_vf(&simulation, 4, 0), Lid(39));
    quiet(&mut simulation);
    assert_eq!(
        counts(&simulation),
        VmLids { in_use: 1, quarantined: 0, free: 0, refused: 0, ..VmLids::default() }
    );
}

#[test]
fn vswitches_need_no_lid_of_their_own() {
    for engine in ["ftree", "updn"] {
        let mut simulation = up(engine, SwitchLids::Shared);
        assert_eq!(simulation.sm().unwrap().progress().lids, 22, "{engine}: 6 switches and 16 hosts");
        for host in 0..16 {
            let zero = PortRef::new(vswitch(&simulation, host), PortNum::ZERO);
            assert_eq!(lid(&simulation, zero), lid_of_host(&simulation, host));
        }
        let before = writes(&simulation);
        plug(&mut simulation, 9, 1, true);
        assert_eq!(lid_of_vf(&simulation, 9, 1), Lid(23), "{engine}");
        let own = [vswitch(&simulation, 9)];
        assert_eq!(since(&before, &simulation, &own), [all(6, 1), all(1, 1), all(15, 0)], "{engine}");
        let traps = simulation.device(own[0]).unwrap().statistics().traps_sent;
        simulation.run_until(simulation.now() + Time::from_secs(60));
        let later = simulation.device(own[0]).unwrap().statistics().traps_sent;
        assert_eq!(traps, later, "{engine}: the vSwitch knows that its trap was heard");
    }
}
