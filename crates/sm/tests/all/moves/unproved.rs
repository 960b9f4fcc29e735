//! Moves that no proof covers: for comparison, where the operator allows them.

use super::site::{Site, options, tree, with};
use weft_machine::Time;
use weft_sm::{Event, Options, VmLidOptions};
use weft_wire::*;

const FROM: (usize, usize) = (1, 0);
const TO: (usize, usize) = (9, 1);

fn ask(site: &Site, method: VmMoveMethod, order: VmMoveOrder) -> VmMove {
    VmMove { method, order, ..site.swap(FROM, TO) }
}

fn permissive() -> Site {
    with(Options {
        vm_lids: VmLidOptions { unproved_moves: true, ..VmLidOptions::default() },
        ..options("ftree")
    })
}

#[test]
fn nothing_unproved_is_written_unless_that_is_allowed() {
    let mut site = tree();
    for (method, order) in
        [(VmMoveMethod::Full, VmMoveOrder::Ordered), (VmMoveMethod::FtreeMinrc, VmMoveOrder::Unordered)]
    {
        let ask = ask(&site, method, order);
        let (_, result, why) = site.refused(&ask);
        assert_eq!(result, VmMoveResult::Unproved);
        assert!(why.starts_with("no plan is safe: in round 1, packets for LID"), "{why}");
    }
}

#[test]
fn a_full_reconfiguration_writes_all_blocks_in_one_round() {
    let mut site = permissive();
    let (ask, sets) = (ask(&site, VmMoveMethod::Full, VmMoveOrder::Ordered), site.lft_sets());
    let done = site.done(&ask);
    // Six switches and sixteen vSwitches; one LID each for those, and three for the functions of each host.
    let (physical, vswitches, lids) = (6, 16, 6 + 16 + 3 * 16);
    let blocks = lids / 64 + 1;
    assert_eq!((done.physical, done.vswitches, done.rounds), (physical, vswitches, 1));
    assert_eq!((done.physical_smps, done.vswitch_smps), (physical * blocks, vswitches * blocks));
    assert_eq!(site.lft_sets() - sets, u64::from(done.physical_smps + done.vswitch_smps));
    assert_eq!(done.made_by, VmMoveMethod::Full);
    let lids = (site.lid(FROM), site.lid(TO));
    site.exchange(FROM, TO);
    site.world.run_for(Time::from_secs(2));
    assert_eq!((site.lid(TO), site.lid(FROM)), lids);
    site.world.check();
}

#[test]
fn no_vm_is_frozen_while_unproved_packets_may_remain() {
    let mut site = permissive();
    let one = ask(&site, VmMoveMethod::FtreeMinrc, VmMoveOrder::Unordered);
    let done = site.done(&one);
    assert_eq!((done.made_in, done.rounds, done.physical), (VmMoveOrder::Unordered, 1, 2 + 2));
    site.exchange(FROM, TO);
    site.world.run_for(Time::from_secs(2));
    let hold = |site: &Site| VmMove { kind: VmMoveKind::Hold, hold_s: 30, ..site.swap((5, 0), (6, 1)) };
    let (_, answer) = site.set(&hold(&site));
    // Five switches, each 1.07 s (LifeTimeValue 18, IBA 18.2.5.4).
    assert_eq!(answer.result, VmMoveResult::Later);
    assert!((3_000_000..3_500_000).contains(&answer.took_us), "{}", answer.took_us);
    site.world.run_for(Time::from_micros(answer.took_us.into()));
    assert_eq!(site.set(&hold(&site)).1.result, VmMoveResult::Done);
    assert_eq!(site.events(|event| matches!(event, Event::MoveDone { .. })), 1);
    site.world.check();
}
