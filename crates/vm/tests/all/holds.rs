//! Holds of a machine's LID while it is away: they are repeated, end when they should, and never outlive their move.

use weft_machine::Time;
use weft_vm::{Hypervisor, Migrate, Request, Scheme};

use crate::moves::{created, migrate, vm, world};
use crate::support::subnet::Kind;
use crate::support::world::{Fault, Moment};

/// The subnet manager does not hear that a machine stays after all, and would leave its port alone until the hold ends by itself.
#[test]
fn the_end_of_a_hold_is_told_until_it_is_heard() {
    let mut world = world(Scheme::Dynamic, Kind::Moves);
    created(&mut world, "web1", 0);
    world.die_at = Some(("freeze".to_owned(), Moment::After));
    // It is deaf for a while, and lives on with what it knows.
    world.sm_dies_at = Some("freeze");
    let request = Request::Migrate(migrate("web1", world.host(1)));
    world.ask(request).unwrap();
    world.run_until(world.now + Time::from_secs(5)).unwrap();
    assert_eq!(world.running(&vm("web1")).map(|slot| slot.host), Some(world.host(0)));
    assert_eq!(world.sm.held.len(), 1);
    world.sm.alive = true;
    world.run_until(world.now + Time::from_secs(2)).unwrap();
    assert!(world.sm.held.is_empty(), "{:?}", world.sm.held);
}

/// A hold ends after a minute, or with its subnet manager: it repeats while a machine is frozen.
#[test]
fn a_frozen_machine_is_held_again() {
    for recovers in [false, true] {
        let mut world = world(Scheme::Dynamic, Kind::Moves);
        created(&mut world, "web1", 0);
        let hypervisor = Hypervisor { stop_copy: Time::from_secs(150), ..Hypervisor::default() };
        let id =
            world.ask(Request::Migrate(Migrate { hypervisor, ..migrate("web1", world.host(1)) })).unwrap();
        world.run_until(world.now + Time::from_secs(5)).unwrap();
        if recovers {
            // Its source cannot be reached either, so that it stays frozen.
            world.fault(&Fault::Cut(0)).unwrap();
            world.fault(&Fault::KillManager).unwrap();
            world.fault(&Fault::RestartManager).unwrap();
            world.run_until(world.now + Time::from_secs(5)).unwrap();
        }
        for _ in 0..3 {
            world.fault(&Fault::KillSm).unwrap();
            world.fault(&Fault::RestartSm).unwrap();
            assert!(world.sm.held.is_empty());
            world.run_until(world.now + Time::from_secs(21)).unwrap();
            assert_eq!(world.sm.held.len(), 1, "recovers: {recovers}");
        }
        if recovers {
            world.fault(&Fault::Mend(0)).unwrap();
        }
        world.rest(Time::from_secs(300)).unwrap();
        assert!(world.sm.held.is_empty(), "{:?}", world.sm.held);
        let host = world.host(u8::from(!recovers));
        assert_eq!(world.running(&vm("web1")).map(|slot| slot.host), Some(host));
        assert_eq!(world.replies.contains_key(&id), !recovers);
    }
}

/// The manager dies between the subnet manager's word and its own that the machine is to freeze.
#[test]
fn a_hold_that_was_not_written_down_ends() {
    let mut world = world(Scheme::Dynamic, Kind::Moves);
    created(&mut world, "web1", 0);
    world.die_at = Some(("freeze".to_owned(), Moment::Before));
    world.ask(Request::Migrate(migrate("web1", world.host(1)))).unwrap();
    let until = world.now + Time::from_secs(10);
    while world.died_at == 0 {
        assert!(world.now < until, "it does not die");
        world.run_until(world.now + Time::from_millis(1)).unwrap();
    }
    assert_eq!(world.sm.held.len(), 1, "it was granted");
    world.rest(Time::from_secs(10)).unwrap();
    assert!(world.sm.held.is_empty(), "{:?}", world.sm.held);
    assert_eq!(world.running(&vm("web1")).map(|slot| slot.host), Some(world.host(0)));
}

/// What is written down as undone is undone for the subnet manager too: a manager that dies then has nothing left to tell it.
#[test]
fn a_hold_has_ended_before_its_move_is_written_down_as_undone() {
    for scheme in [Scheme::Dynamic, Scheme::Prepopulated] {
        let mut world = world(scheme, Kind::Moves);
        created(&mut world, "web1", 0);
        world.die_at = Some(("freeze".to_owned(), Moment::After));
        world.ask(Request::Migrate(migrate("web1", world.host(1)))).unwrap();
        for deaths in 1..=2 {
            let until = world.now + Time::from_secs(10);
            while world.died_at < deaths {
                assert!(world.now < until, "it does not die");
                world.run_until(world.now + Time::from_millis(1)).unwrap();
            }
            world.die_at = (deaths == 1).then(|| ("undone".to_owned(), Moment::After));
        }
        assert!(world.sm.held.is_empty(), "{:?}", world.sm.held);
        world.rest(Time::from_secs(10)).unwrap();
        assert_eq!(world.running(&vm("web1")).map(|slot| slot.host), Some(world.host(0)));
    }
}
