//! Rows of switches around the old place that are late: on damaged trees, where packets that they turn round could close a circle.

use std::collections::BTreeSet;

use super::client::{everything, lid_of, reports, subscribe_with};
use super::site::{Site, options};
use weft_machine::Time;
use weft_sm::{Event, Input, Options, VmLidOptions};
use weft_topology::NodeIndex;
use weft_topology::generate::{Damage, GenerateOptions, degraded, xgft};
use weft_wire::*;

/// Six leaves of four hosts with two functions each, and four spines, without some of the cables: spines that a leaf has no cable to
/// are reached from it by way of another leaf.
fn damaged() -> Site {
    damaged_with(options("ftree"))
}

fn damaged_with(options: Options) -> Site {
    let whole = xgft(&[4, 6], &[1, 4], &GenerateOptions::default()).expect("a tree");
    let tree = degraded(&whole, Damage { cables: 4, switches: 0 }, 1).expect("what remains is sound");
    assert_eq!(tree.counts().components, 1);
    Site::without(&tree, 2, options, &[(21, 1), (2, 1)])
}

const FROM: (usize, usize) = (1, 0);
/// On another leaf, and on the same one.
const FAR: (usize, usize) = (21, 1);
const BESIDE: (usize, usize) = (2, 1);

/// Asks for a move, and carries the machine over.
fn moved(site: &mut Site, to: (usize, usize)) -> VmMove {
    let ask = site.ask(VmMoveKind::Copy, FROM, to);
    carried(site, &ask, to)
}

fn carried(site: &mut Site, ask: &VmMove, to: (usize, usize)) -> VmMove {
    let done = site.done(ask);
    carry(site, FROM, to);
    site.world.run_for(Time::from_secs(1));
    done
}

fn carry(site: &mut Site, from: (usize, usize), to: (usize, usize)) {
    let identity = site.world.fake.identity(site.vf(from));
    site.unplug(from);
    site.plug(to, identity);
}

/// How many switches have no row for a LID.
fn without_row(site: &Site, lid: Lid) -> usize {
    let switches = site.world.fake.fabric.switches();
    let row = |at: usize| site.world.fake.devices[at].lft[usize::from(lid.0)];
    switches.filter(|(at, _)| row(at.index()) == PortNum::NONE).count()
}

/// What a switch may hold a packet for: LifeTimeValue 18 (IBA 18.2.5.4).
const LIFE_TIME_US: u32 = 1_073_742;

#[test]
fn late_rows_are_written_after_the_vm_is_reached() {
    for (to, policy, late) in
        [(FAR, VmMoveLate::Wait, 2), (BESIDE, VmMoveLate::Wait, 1), (BESIDE, VmMoveLate::Detour, 1)]
    {
        let mut site = damaged();
        let (lid, sets, heavy) = (site.lid(FROM), site.lft_sets(), site.heavy_sweeps());
        let ask = VmMove { policy, ..site.ask(VmMoveKind::Copy, FROM, to) };
        let done = carried(&mut site, &ask, to);
        // The vSwitch at the old place, and its leaf where the machine leaves it.
        assert_eq!((done.made_in, done.late, done.detours), (VmMoveOrder::OrderedLate, late, 0), "{done:?}");
        // Packets come to both from a switch that was rewritten.
        assert_eq!((done.silent_us, done.late_us), (LIFE_TIME_US, LIFE_TIME_US), "{done:?}");
        assert!(done.silent > 0 && u64::from(done.took_us) < 100_000, "the answer comes at once: {done:?}");
        assert_eq!(without_row(&site, lid), usize::from(late));
        assert_eq!(site.events(|event| matches!(event, Event::MoveLate { .. })), 1);
        let all = u64::from(done.physical_smps + done.vswitch_smps);
        assert_eq!(site.lft_sets() - sets, all - u64::from(late));
        assert_eq!(done.late_physical_smps + done.late_vswitch_smps, late);

        // A second of it is over.
        site.world.run_for(Time::from_millis(100));
        assert_eq!(without_row(&site, lid), 0);
        assert_eq!(site.lft_sets() - sets, all);
        let finished = |event: &Event| matches!(event, Event::MoveFinished { lids: 1, smps } if *smps == u32::from(late));
        assert_eq!((site.events(finished), site.heavy_sweeps()), (1, heavy), "no one looked at everything");
        assert_eq!(site.lid(to), lid);
        site.world.check();
    }
}

#[test]
fn a_detour_serves_the_old_leaf_at_once_and_is_replaced_later() {
    let mut site = damaged();
    let (lid, sets, heavy) = (site.lid(FROM), site.lft_sets(), site.heavy_sweeps());
    let done = moved(&mut site, FAR);
    assert_eq!((done.made_in, done.late, done.detours), (VmMoveOrder::OrderedLate, 1, 1), "{done:?}");
    assert_eq!((done.silent, done.silent_us), (1, LIFE_TIME_US), "the old vSwitch alone: {done:?}");
    assert!(done.late_us >= done.silent_us, "{done:?}");
    assert_eq!(without_row(&site, lid), 1);
    site.world.run_for(Time::from_millis(100));
    assert_eq!(without_row(&site, lid), 0);
    site.world.run_for(Time::from_micros(done.late_us.into()));
    let all = u64::from(done.physical_smps + done.vswitch_smps);
    assert_eq!((site.lft_sets() - sets, site.heavy_sweeps()), (all, heavy));
    site.world.check();
}

/// Between the plan that was asked for and the move another one may have changed the tables, so the table of a move that is carried out
/// names its own silent switches, until its late rows are there.
#[test]
fn a_move_that_is_done_says_which_switches_it_left_silent() {
    let mut site = damaged();
    let ask = VmMove { policy: VmMoveLate::Wait, ..site.ask(VmMoveKind::Copy, FROM, FAR) };
    let (_, foretold) = site.plan(&ask);
    let foretold: Vec<VmMoveWrite> = foretold.into_iter().filter(|record| record.is_silent == 1).collect();
    let done = site.done(&ask);
    let told = site.table(&ask).expect("a table");
    assert_eq!(told.len(), usize::from(done.silent));
    assert!(told.iter().all(|record| record.is_silent == 1 && record.silent_ms == 1074), "{told:?}");
    let by_guid =
        |records: &[VmMoveWrite]| records.iter().map(|record| record.switch).collect::<BTreeSet<_>>();
    assert_eq!(by_guid(&told), by_guid(&foretold), "nothing has happened between the two");
    site.world.run_for(Time::from_micros(done.late_us.into()));
    site.world.run_for(Time::from_secs(1));
    assert_eq!(site.table(&ask), Ok(Vec::new()), "all are served");
}

#[test]
fn a_move_that_would_leave_hosts_silent_is_refused_if_wished() {
    let mut site = damaged();
    let sets = site.lft_sets();
    let ask = VmMove { policy: VmMoveLate::Refuse, ..site.ask(VmMoveKind::Copy, FROM, FAR) };
    let (_, result, reason) = site.refused(&ask);
    assert_eq!(result, VmMoveResult::Unproved);
    assert!(reason.contains("circle"), "{reason}");
    let (_, result, reason) = site.refused(&VmMove { policy: VmMoveLate::from_code(9), ..ask });
    assert_eq!((result, reason.as_str()), (VmMoveResult::Invalid, "there is no policy 0x9"));
    assert_eq!(site.lft_sets(), sets);
}

#[test]
fn a_heavy_sweep_does_for_late_rows() {
    let mut site = damaged();
    let lid = site.lid(FROM);
    let ask = VmMove { policy: VmMoveLate::Wait, ..site.ask(VmMoveKind::Copy, FROM, FAR) };
    carried(&mut site, &ask, FAR);
    assert_eq!(without_row(&site, lid), 2);
    site.world.command(Input::Resweep { heavy: true });
    site.world.run_for(Time::from_secs(1));
    assert_eq!(without_row(&site, lid), 0);
    site.world.run_for(Time::from_secs(10));
    assert_eq!(site.events(|event| matches!(event, Event::MoveFinished { .. })), 0);
    site.world.check();
}

/// Tables are not kept for planners again while rows are missing, and one that was not proved has them forgotten.
#[test]
fn late_rows_are_written_after_an_unproved_move() {
    let mut site = damaged_with(Options {
        vm_lids: VmLidOptions { unproved_moves: true, ..VmLidOptions::default() },
        ..options("ftree")
    });
    let lid = site.lid(FROM);
    let ask = VmMove { policy: VmMoveLate::Wait, ..site.ask(VmMoveKind::Copy, FROM, FAR) };
    site.done(&ask);
    assert_eq!(without_row(&site, lid), 2);
    let other = (5, 0);
    let unordered = VmMove { order: VmMoveOrder::Unordered, ..site.ask(VmMoveKind::Copy, other, BESIDE) };
    site.done(&unordered);
    assert_eq!(without_row(&site, lid), 2, "they are still late");
    carry(&mut site, FROM, FAR);
    carry(&mut site, other, BESIDE);
    site.world.run_for(Time::from_secs(20));
    assert_eq!(without_row(&site, lid), 0);
    site.world.check();
}

#[test]
fn a_machine_that_moves_on_gets_all_rows_of_its_last_place() {
    let mut site = damaged();
    let lid = site.lid(FROM);
    moved(&mut site, FAR);
    let back = VmMove { epoch: 2, ..site.ask(VmMoveKind::Copy, FAR, BESIDE) };
    site.done(&back);
    let identity = site.world.fake.identity(site.vf(FAR));
    site.unplug(FAR);
    site.plug(BESIDE, identity);
    site.world.run_for(Time::from_secs(20));
    assert_eq!((site.lid(BESIDE), without_row(&site, lid)), (lid, 0));
    site.world.check();
}

/// The address moves ahead of its machine: late rows are written while memory is copied, for however long that takes.
#[test]
fn late_rows_are_written_before_the_machine_has_come() {
    for (policy, sweeps) in [(VmMoveLate::Wait, false), (VmMoveLate::Detour, false), (VmMoveLate::Wait, true)]
    {
        let mut site = damaged();
        let (lid, heavy, identity) =
            (site.lid(FROM), site.heavy_sweeps(), site.world.fake.identity(site.vf(FROM)));
        let hold = VmMove { hold_s: 30, policy, ..site.ask(VmMoveKind::Hold, FROM, FAR) };
        assert_eq!(site.done(&hold).silent_us, LIFE_TIME_US, "its plan has late rows");
        let ask = VmMove { epoch: 2, policy, ..site.ask(VmMoveKind::Copy, FROM, FAR) };
        site.unplug(FROM);
        let done = site.done(&ask);
        assert!(done.late > 0 && without_row(&site, lid) == usize::from(done.late), "{done:?}");
        site.world.run_for(Time::from_micros(LIFE_TIME_US.into()) + Time::from_millis(10));
        assert_eq!(without_row(&site, lid), 0, "no one has come yet");
        // Longer than any hold.
        for _ in 0..5 {
            site.world.run_for(Time::from_secs(20));
            assert_eq!(site.done(&VmMove { epoch: 2, ..hold }).silent_us, 0, "it has moved");
        }
        if sweeps {
            site.world.command(Input::Resweep { heavy: true });
            site.world.run_for(Time::from_secs(1));
        }
        site.plug(FAR, identity);
        site.world.run_for(Time::from_millis(3));
        let again = site.done(&VmMove { epoch: 3, ..ask });
        assert_eq!((again.rounds, again.silent_us), (0, 0), "its rows are there: {again:?}");
        site.world.run_for(Time::from_secs(2));
        assert_eq!((site.lid(FAR), without_row(&site, lid)), (lid, 0));
        // A sweep that has not seen it makes another one necessary.
        assert_eq!(site.heavy_sweeps(), heavy + 2 * usize::from(sweeps));
        site.world.check();
    }
}

/// Hosts that were silent repeat at once what was lost. All others had their notice before.
#[test]
fn silent_hosts_alone_are_told_when_late_rows_are_there() {
    let mut site = damaged();
    let guid = site.port_guid(FROM);
    // The old host, one beside it, one at another leaf, and the physical function at the new place.
    let hosts = [FROM.0, 2, 9, FAR.0].map(|host| lid_of(&site.world, site.adapters[host].pf, PortNum(1)));
    for from in hosts {
        let info = InformInfo { trap_number: trap::REPATH, ..everything() };
        subscribe_with(&mut site.world, SmKey(0), from, &info).expect("it may subscribe");
    }
    let ask = VmMove { policy: VmMoveLate::Wait, ..site.ask(VmMoveKind::Copy, FROM, FAR) };
    let done = carried(&mut site, &ask, FAR);
    // The old leaf and the old vSwitch are late: the four hosts there are silent.
    assert_eq!((done.late, done.silent), (2, 4), "{done:?}");
    assert_eq!(told(&mut site, guid), [], "packets of the old way are under way");
    site.world.run_for(Time::from_millis(100));
    assert_eq!(told(&mut site, guid), hosts[..2], "late rows are there");
    site.world.run_for(Time::from_secs(10));
    assert_eq!(told(&mut site, guid), [], "once");
}

/// The hosts that have been notified since of a machine's new place, in order.
fn told(site: &mut Site, guid: Guid) -> Vec<Lid> {
    let heard = reports(&mut site.world, true).into_iter().map(|(to, notice)| {
        let Details::Repath(trap::REPATH, details) = notice.details() else { panic!("{notice:?}") };
        assert_eq!((details.kind, details.guid), (RepathKind::NEW_LID, guid));
        to
    });
    let mut heard: Vec<Lid> = heard.collect();
    heard.sort_unstable();
    heard
}

/// No detour outlives a heavy sweep and the drain: the sweep gives the LID its engine's rows, or keeps those that hold and leaves the
/// detour to the late step.
#[test]
fn detours_are_replaced_after_a_heavy_sweep_too() {
    // The rows of physical switches while the detour is there, and in the end.
    let rows = |wait: Option<Time>| {
        let mut site = damaged();
        let lid = site.lid(FROM);
        let done = moved(&mut site, FAR);
        assert_eq!(done.detours, 1, "{done:?}");
        let row = |site: &Site| -> Vec<PortNum> {
            let switches = site.world.fake.fabric.switches().map(|(at, _)| at);
            let inner = |at: &NodeIndex| !site.adapters.iter().any(|adapter| adapter.vswitch == *at);
            let row = |at: NodeIndex| site.world.fake.devices[at.index()].lft[usize::from(lid.0)];
            switches.filter(inner).map(row).collect()
        };
        let detoured = row(&site);
        if let Some(wait) = wait {
            site.world.run_for(wait);
            site.world.command(Input::Resweep { heavy: true });
        }
        site.world.run_for(Time::from_secs(20));
        assert_eq!(without_row(&site, lid), 0);
        site.world.check();
        (detoured, row(&site))
    };
    let (detoured, finished) = rows(None);
    let at: Vec<usize> = (0..detoured.len()).filter(|at| detoured[*at] != finished[*at]).collect();
    let [leaf] = at[..] else { panic!("the leaf alone had a detour: {detoured:?}, {finished:?}") };
    for wait in [0, 40, 500, 3000] {
        let (before, after) = rows(Some(Time::from_millis(wait)));
        assert_eq!(before, detoured);
        assert_ne!(after[leaf], detoured[leaf], "{wait} ms: {after:?}, not {finished:?}");
    }
}
