//! Transitions: the manager's state after every input, from every state.

use fake::{Fake, World};
use weft_machine::{Machine, Time};
use weft_sm::{Activity, GuidToLid, Input, Options, SweepPhase};
use weft_topology::PortRef;
use weft_topology::generate::{GenerateOptions, xgft};
use weft_wire::{AddressedMad, Lid, Mad, Method, MgmtClass, PortNum, Smp};

use crate::fake;

const DISCOVER: Activity = Activity::Sweeping(SweepPhase::Discover);
const READ_TABLES: Activity = Activity::Sweeping(SweepPhase::ReadTables);
const PROGRAM: Activity = Activity::Sweeping(SweepPhase::Program);
const ACTIVATE: Activity = Activity::Sweeping(SweepPhase::Activate);
const VERIFY: Activity = Activity::Sweeping(SweepPhase::Verify);
const LIGHT: Activity = Activity::LightSweep;
const UP: Activity = Activity::Up;
const DOWN: Activity = Activity::OwnPortDown;
const DETACHED: Activity = Activity::Detached;

/// Brings a manager to what it is to be at.
fn world(activity: Activity) -> World {
    let fabric = xgft(&[2, 2], &[1, 2], &GenerateOptions::default()).expect("a tree");
    let own = PortRef::new(fabric.hosts().next().expect("a host").0, PortNum(1));
    let mut fake = Fake::new(fabric, own);
    if activity == DOWN {
        fake.cut(own);
    }
    let mut world = World::new(fake, Options::default(), &GuidToLid::default());
    if activity == READ_TABLES || activity == LIGHT {
        world.run_until(UP);
    }
    match activity {
        // Only a manager that does not know what a running fabric holds has anything to learn.
        READ_TABLES => world.restart_sm(Options::default(), &GuidToLid::default()),
        LIGHT => world.command(Input::Resweep { heavy: false }),
        DETACHED => world.command(Input::Detached),
        _ => {}
    }
    world.run_until(activity);
    world
}

fn garbage(method: Method) -> Input {
    let mut mad = Mad([0xa5; 256]);
    Smp::mgmt_class.set(&mut mad.0, MgmtClass::SubnLid);
    Smp::method.set(&mut mad.0, method);
    Input::Receive(AddressedMad::smp(Lid(3), mad))
}

fn attached(world: &World) -> Input {
    let own = world.fake.own;
    let node = world.fake.fabric.node(own.node);
    let port_guid = node.port(own.port).expect("a port").guid;
    Input::Attached { node_guid: node.guid, port_guid, port: own.port }
}

/// A trap that no one has heard yet, of a switch that has a LID once a manager was here.
fn trap(world: &mut World) -> Input {
    let (switch, _) = world.fake.fabric.switches().next().expect("a switch");
    let trap = world.fake.trap(PortRef::new(switch, PortNum(1)));
    trap.map_or_else(|| garbage(Method::Trap), Input::Receive)
}

#[test]
fn the_table_is_exhaustive_and_correct() {
    // At; after Attached, Detached, garbage, an unexpected answer, a trap, Resweep heavy, Resweep light,
    // the port's link up, and down.
    let table = [
        (
            DETACHED,
            [DISCOVER, DETACHED, DETACHED, DETACHED, DETACHED, DETACHED, DETACHED, DETACHED, DETACHED],
        ),
        (DOWN, [DISCOVER, DETACHED, DOWN, DOWN, DOWN, DOWN, DOWN, DOWN, DOWN]),
        (
            DISCOVER,
            [DISCOVER, DETACHED, DISCOVER, DISCOVER, DISCOVER, DISCOVER, DISCOVER, DISCOVER, DISCOVER],
        ),
        (
            READ_TABLES,
            [
                DISCOVER,
                DETACHED,
                READ_TABLES,
                READ_TABLES,
                READ_TABLES,
                READ_TABLES,
                READ_TABLES,
                READ_TABLES,
                DISCOVER,
            ],
        ),
        (PROGRAM, [DISCOVER, DETACHED, PROGRAM, PROGRAM, PROGRAM, PROGRAM, PROGRAM, PROGRAM, DISCOVER]),
        (
            ACTIVATE,
            [DISCOVER, DETACHED, ACTIVATE, ACTIVATE, ACTIVATE, ACTIVATE, ACTIVATE, ACTIVATE, DISCOVER],
        ),
        (VERIFY, [DISCOVER, DETACHED, VERIFY, VERIFY, VERIFY, VERIFY, VERIFY, VERIFY, DISCOVER]),
        (LIGHT, [DISCOVER, DETACHED, LIGHT, LIGHT, LIGHT, LIGHT, LIGHT, LIGHT, DISCOVER]),
        (UP, [DISCOVER, DETACHED, UP, UP, UP, DISCOVER, LIGHT, DISCOVER, DISCOVER]),
    ];
    for (at, after) in table {
        for (column, expected) in after.into_iter().enumerate() {
            let mut world = world(at);
            let input = match column {
                0 => attached(&world),
                1 => Input::Detached,
                2 => garbage(Method::Set),
                3 => garbage(Method::GetResp),
                4 => trap(&mut world),
                5 => Input::Resweep { heavy: true },
                6 => Input::Resweep { heavy: false },
                _ => Input::PortChanged { up: column == 7 },
            };
            world.sm.handle_input(world.now, input.clone());
            let now = world.sm.progress().activity;
            assert_eq!(now, expected, "{at:?}, {input:?}");
        }
    }
}

#[test]
fn a_wish_made_during_a_sweep_is_granted_after_it() {
    for (heavy, then) in [(true, DISCOVER), (false, LIGHT)] {
        for at in [DISCOVER, PROGRAM, ACTIVATE, VERIFY] {
            let mut world = world(at);
            world.command(Input::Resweep { heavy });
            let sweeps = world.summaries().len();
            world.run_until(then);
            assert!(heavy && at == DISCOVER || world.summaries().len() > sweeps, "{at:?}");
            world.run_for(Time::from_secs(3));
            world.check();
        }
    }
}
