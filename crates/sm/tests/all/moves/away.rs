//! GUIDs that are between two places: traps about them lead to no sweep, and their rows stay.

use super::client::{everything, lid_of, reports, subscribe_with};
use super::site::tree;
use weft_machine::Time;
use weft_sm::{Event, Input, Reason};
use weft_wire::*;

fn hold(site: &super::site::Site, seconds: u16) -> VmMove {
    VmMove { kind: VmMoveKind::Hold, hold_s: seconds, ..site.swap((1, 0), (9, 1)) }
}

#[test]
fn one_who_is_held_may_be_unplugged_without_a_sweep() {
    let mut site = tree();
    site.done(&hold(&site, 30));
    let (tables, sets) = (site.tables(), site.lft_sets());
    let identities = [(1, 0), (9, 1)].map(|at| site.world.fake.identity(site.vf(at)));
    site.unplug((1, 0));
    site.unplug((9, 1));
    site.world.run_for(Time::from_secs(5));
    assert_eq!((site.heavy_sweeps(), site.lft_sets()), (1, sets));
    assert_eq!(site.tables(), tables);
    // It moves while neither is there.
    let ask =
        VmMove { epoch: 2, guid: identities[0].1, partner: identities[1].1, ..site.swap((1, 0), (9, 1)) };
    assert_eq!(site.done(&ask).vswitches, 2);
    site.plug((9, 1), identities[0]);
    site.plug((1, 0), identities[1]);
    site.world.run_for(Time::from_secs(2));
    assert_eq!(site.heavy_sweeps(), 1);
    site.world.check();
}

#[test]
fn rows_stay_through_a_sweep_that_does_not_find_it() {
    let mut site = tree();
    site.done(&hold(&site, 30));
    let (tables, sets) = (site.tables(), site.lft_sets());
    let identity = site.world.fake.identity(site.vf((1, 0)));
    site.unplug((1, 0));
    site.world.command(Input::PortChanged { up: true });
    site.world.run_for(Time::from_secs(2));
    assert_eq!((site.heavy_sweeps(), site.lft_sets()), (2, sets), "another cause, and nothing is written");
    assert_eq!(site.tables(), tables);
    site.plug((1, 0), identity);
    site.done(&VmMove { kind: VmMoveKind::Release, epoch: 2, ..hold(&site, 0) });
    site.world.run_for(Time::from_secs(2));
    assert_eq!((site.lft_sets(), site.tables()), (sets, tables));
    site.world.check();
}

#[test]
fn one_who_is_away_too_long_is_gone() {
    let mut site = tree();
    site.done(&hold(&site, 3));
    site.unplug((1, 0));
    site.world.run_for(Time::from_secs(2));
    assert_eq!(site.heavy_sweeps(), 1);
    let before = site.tables();
    site.world.run_for(Time::from_secs(3));
    assert!(site.heavy_sweeps() > 1);
    assert_eq!(site.tables(), before, "its LID rests");
    site.world.check();
}

#[test]
fn a_stranger_at_the_place_leads_to_a_sweep() {
    let mut site = tree();
    site.done(&site.swap((1, 0), (9, 1)));
    let stranger = (Guid(0xdead_0000), Guid(0xdead_0001));
    site.unplug((1, 0));
    site.unplug((9, 1));
    site.world.run_for(Time::from_millis(3));
    site.plug((9, 1), stranger);
    site.world.run_for(Time::from_secs(2));
    assert!(site.heavy_sweeps() > 1);
    let found = |event: &Event| matches!(event, Event::NodeFound { guid, .. } if guid.0 == stranger.0);
    assert_eq!(site.events(found), 1);
    site.world.check();
}

#[test]
fn a_light_sweep_gives_way() {
    let mut site = tree();
    site.world.command(Input::Resweep { heavy: false });
    let light = |event: &Event| {
        matches!(event, Event::SweepStarted { kind: weft_sm::SweepKind::Light, reason: Reason::Command })
    };
    assert_eq!(site.events(light), 1);
    let ask = site.swap((1, 0), (9, 1));
    let done = site.done(&ask);
    assert!(done.took_us < 2_000, "it did not wait for 70 ports: {done:?}");
    assert_eq!(site.events(|event| *event == Event::Quiet), 0);
    site.exchange((1, 0), (9, 1));
    site.world.run_for(Time::from_secs(15));
    assert!(site.events(|event| *event == Event::Quiet) > 0, "it was made again");
    assert_eq!(site.heavy_sweeps(), 1);
    site.world.check();
}

#[test]
fn a_heavy_sweep_is_waited_for() {
    let mut site = tree();
    site.world.command(Input::Resweep { heavy: true });
    let sets = site.lft_sets();
    let done = site.done(&site.swap((1, 0), (9, 1)));
    assert_eq!(site.heavy_sweeps(), 2);
    assert_eq!(site.lft_sets() - sets, u64::from(done.physical_smps + done.vswitch_smps));
    site.exchange((1, 0), (9, 1));
    site.world.run_for(Time::from_secs(2));
    assert_eq!(site.heavy_sweeps(), 2);
    site.world.check();
}

/// A host subscribes to ports that come and go (traps 64 and 65), as hosts do that keep paths.
fn listens(site: &mut super::site::Site) {
    let from = lid_of(&site.world, site.adapters[5].pf, PortNum(1));
    for number in COME_AND_GO {
        let info = InformInfo { trap_number: number, ..everything() };
        subscribe_with(&mut site.world, SmKey(0), from, &info).expect("it may subscribe");
    }
}

const COME_AND_GO: [TrapNumber; 2] = [trap::GID_IN_SERVICE, trap::GID_OUT_OF_SERVICE];

/// The notices that it gets within some time, answering at once: the trap, and the port.
fn told(site: &mut super::site::Site, seconds: u64) -> Vec<(TrapNumber, Guid)> {
    let port = |(_, notice): (Lid, Notice)| match notice.details() {
        Details::Gid(number, details) => (number, details.gid.guid),
        _ => panic!("{notice:?}"),
    };
    let mut heard = Vec::new();
    for _ in 0..100 * seconds {
        site.world.run_for(Time::from_millis(10));
        heard.extend(reports(&mut site.world, true).into_iter().map(port));
    }
    heard
}

/// A move unplugs machines and plugs them in again. No one is notified, and no peer asks again.
#[test]
fn subscribers_hear_nothing_of_a_move() {
    let mut site = tree();
    listens(&mut site);
    let (from, to) = ((1, 0), (9, 1));
    let ask = site.swap(from, to);
    site.done(&ask);
    site.exchange(from, to);
    assert_eq!(told(&mut site, 2), []);
    // A sweep while both are where they belong finds nothing to tell either.
    site.world.command(Input::Resweep { heavy: true });
    assert_eq!((told(&mut site, 2), site.heavy_sweeps()), (Vec::new(), 2));
    assert_eq!(site.world.sm.sa_counts().reports, 0);
    site.world.check();
}

/// The same where a sweep falls into the time in which neither is plugged in.
#[test]
fn subscribers_hear_nothing_of_a_sweep_within_a_move() {
    let mut site = tree();
    listens(&mut site);
    site.done(&hold(&site, 30));
    let (from, to) = ((1, 0), (9, 1));
    let identities = [from, to].map(|at| site.world.fake.identity(site.vf(at)));
    site.unplug(from);
    site.unplug(to);
    site.world.command(Input::Resweep { heavy: true });
    assert_eq!((told(&mut site, 2), site.heavy_sweeps()), (Vec::new(), 2), "neither was found");
    let ask = VmMove { epoch: 2, guid: identities[0].1, partner: identities[1].1, ..site.swap(from, to) };
    site.done(&ask);
    site.plug(to, identities[0]);
    site.plug(from, identities[1]);
    site.world.command(Input::Resweep { heavy: true });
    assert_eq!((told(&mut site, 2), site.heavy_sweeps()), (Vec::new(), 3), "both are back");
    site.world.check();
}

/// The same subscriber is notified of a port that is lost, and of its return.
#[test]
fn subscribers_hear_of_one_who_is_lost_and_comes_back() {
    let mut site = tree();
    listens(&mut site);
    site.done(&hold(&site, 30));
    // No request holds this one.
    let lost = (6, 0);
    let identity = site.world.fake.identity(site.vf(lost));
    site.unplug(lost);
    assert_eq!(told(&mut site, 2), [(trap::GID_OUT_OF_SERVICE, identity.1)]);
    site.plug(lost, identity);
    assert_eq!(told(&mut site, 2), [(trap::GID_IN_SERVICE, identity.1)]);
    // One who is held and away for too long is gone as well.
    let held = site.world.fake.identity(site.vf((1, 0)));
    site.unplug((1, 0));
    assert_eq!(told(&mut site, 25), [], "it may come back");
    assert_eq!(told(&mut site, 5), [(trap::GID_OUT_OF_SERVICE, held.1)]);
}
