//! A machine that may run at its new place, and that its agent does not let run there.

use support::subnet::{Kind, SubnetManager};
use support::world::{Fault, World};
use weft_machine::Time;
use weft_vm::{
    Detach, Hypervisor, Migrate, Migration, Options, Reply, Request, Route, Scheme, Silent, VmError, VmName,
};
use weft_wire::Guid;

use crate::support;

/// After COMMIT there is no way back, and whether a table will get a partition is not for the manager to know: it tries again, says in
/// the list why the machine does not run, and lets an operator give it up.
#[test]
fn a_machine_whose_partition_never_comes_can_be_given_up() {
    for is_given_up in [true, false] {
        let options = Options { scheme: Scheme::Dynamic, ..Options::default() };
        let mut world = World::new(1, 4, 2, options, SubnetManager::new(Kind::Moves));
        world.start_manager().unwrap();
        world.rest(Time::from_secs(10)).unwrap();
        let (here, there): (_, VmName) = (world.host(0), "web1".parse().unwrap());
        world.ask(World::create("web1", Some(here))).unwrap();
        world.rest(Time::from_secs(10)).unwrap();
        world.agents[3].lacks_partition = true;
        let (cold, detach, hypervisor) = (false, Detach::Late, Hypervisor::default());
        let (host, route) = (world.host(3), Route::default());
        let migrate = Migrate { vm: there.clone(), host, cold, detach, hypervisor, route };
        let id = world.ask(Request::Migrate(migrate)).unwrap();
        world.run_until(world.now + Time::from_secs(10)).unwrap();
        let port = world.manager.as_ref().unwrap().list().remove(0);
        assert_eq!(port.vm_state, "in doubt", "{}", port.detail);
        for words in ["it is frozen (commit)", "host-3 vf1", "does not have partition 0x8001", "again"] {
            assert!(port.detail.contains(words), "{}", port.detail);
        }
        if is_given_up {
            let forget = world.ask(Request::Forget { vm: there, force: true }).unwrap();
            world.rest(Time::from_secs(10)).unwrap();
            assert_eq!(world.replies[&forget], Ok(Reply::Forgotten));
            assert!(world.manager.as_ref().unwrap().list().is_empty());
        } else {
            world.agents[3].lacks_partition = false;
            world.rest(Time::from_secs(10)).unwrap();
            let port = world.manager.as_ref().unwrap().list().remove(0);
            assert_eq!((port.vm_state.as_str(), port.system_name.as_str()), ("running", "host-3"));
            assert!(matches!(world.replies[&id], Ok(Reply::Migrated(_))), "{:?}", world.replies[&id]);
        }
    }
}

/// The subnet manager that holds the address dies while the machine is frozen, and OpenSM takes over: it may give the port another LID, so
/// the machine goes back to where it was.
#[test]
fn a_held_move_is_not_committed_without_an_answer() {
    let options = Options { scheme: Scheme::Dynamic, ..Options::default() };
    let mut world = World::new(1, 4, 2, options, SubnetManager::new(Kind::Moves));
    world.start_manager().unwrap();
    world.rest(Time::from_secs(10)).unwrap();
    let (here, name): (_, VmName) = (world.host(0), "web1".parse().unwrap());
    world.ask(World::create("web1", Some(here))).unwrap();
    world.rest(Time::from_secs(10)).unwrap();
    let hypervisor = Hypervisor { stop_copy: Time::from_secs(2), ..Hypervisor::default() };
    let (cold, detach, host, route) = (false, Detach::Late, world.host(3), Route::default());
    let migrate = Migrate { vm: name.clone(), host, cold, detach, hypervisor, route };
    let id = world.ask(Request::Migrate(migrate)).unwrap();
    world.run_until(world.now + Time::from_secs(1)).unwrap();
    assert!(world.sm.held.len() == 1 && world.running(&name).is_none(), "it is held and frozen");
    world.sm.kind = Kind::Unknown;
    world.rest(Time::from_secs(60)).unwrap();
    let Err(error) = &world.replies[&id] else { panic!("{:?}", world.replies[&id]) };
    assert!(error.to_string().contains("does not know moves, and another one holds the address"), "{error}");
    assert_eq!(world.running(&name).unwrap().host, world.host(0));
}

/// Hosts that hear nothing of it until late rows are written have a longer downtime than all others.
#[test]
fn a_downtime_lasts_until_the_last_host_is_served() {
    let ms = Time::from_millis;
    for (silence, resume) in [(ms(1074), ms(0)), (ms(1074), ms(400)), (ms(100), ms(400)), (ms(0), ms(0))] {
        let options = Options { scheme: Scheme::Dynamic, ..Options::default() };
        let mut world = World::new(1, 4, 2, options, SubnetManager::new(Kind::Moves));
        world.sm.silence = silence;
        world.start_manager().unwrap();
        world.rest(Time::from_secs(10)).unwrap();
        let (here, vm): (_, VmName) = (world.host(0), "web1".parse().unwrap());
        world.ask(World::create("web1", Some(here))).unwrap();
        world.rest(Time::from_secs(10)).unwrap();
        let (cold, detach) = (false, Detach::Late);
        let (host, route) = (world.host(1), Route::default());
        let hypervisor = Hypervisor { resume, ..Hypervisor::default() };
        let migrate = Migrate { vm, host, cold, detach, hypervisor, route };
        let id = world.ask(Request::Migrate(migrate)).unwrap();
        world.rest(Time::from_secs(300)).unwrap();
        let Ok(Reply::Migrated(moved)) = &world.replies[&id] else { panic!("{:?}", world.replies[&id]) };
        let stages = moved.stages;
        let (last, others) = (stages.downtime.unwrap(), stages.runs_again.unwrap());
        // The wait begins with the answer, and so does the time that the machine takes to resume.
        let expected = silence.max(resume);
        assert!(others >= resume && others <= resume + ms(16), "{stages:?}");
        assert!(last >= expected && last <= expected + ms(16), "{silence}, {resume}: {stages:?}");
        assert!(last >= others && (last == others) == (silence <= resume), "{silence}, {resume}: {stages:?}");
    }
}

/// What hosts wait for at silent switches begins with the stop-copy, so that only what exceeds it is felt.
#[test]
fn an_address_moves_ahead_while_memory_is_copied() {
    let ms = Time::from_millis;
    for scheme in [Scheme::Dynamic, Scheme::Prepopulated] {
        for (silence, stop_copy) in [(1074, 2000), (1074, 200), (1074, 0), (0, 2000)] {
            let (silence, stop_copy) = (ms(silence), ms(stop_copy));
            let mut world = world(Options { scheme, ..Options::default() }, silence);
            let stages = moved(&mut world, stop_copy).stages;
            // At most two ways of 1 ms for each of the seven steps meanwhile, and as much for their writes.
            let (last, others) = (stages.downtime.unwrap(), stages.runs_again.unwrap());
            let expected = silence.max(stop_copy);
            assert!(others >= stop_copy && others <= stop_copy + ms(18), "{stages:?}");
            assert!(last >= expected && last <= expected + ms(18), "{silence}, {stop_copy}: {stages:?}");
            let after = stages.silent_after;
            assert_eq!(after, (silence > Time::ZERO).then_some(last - others), "{stages:?}");
            let all =
                [stages.reserve, stages.pre_copy, stages.hold, stages.freeze, stages.export, stages.import];
            let rest = [stages.reroute, stages.commit, stages.activate, stages.release];
            let sum = all.into_iter().chain(rest).flatten().fold(Time::ZERO, |sum, stage| sum + stage);
            assert_eq!(sum, stages.total, "{stages:?}");
            let is_ahead = silence > Time::ZERO && stop_copy > Time::ZERO;
            assert_eq!(world.sm.done, 1 + u64::from(is_ahead), "asked ahead, and when it has come");
        }
    }
}

/// The subnet manager says it of the move that it has carried out, not of a plan that was asked for before. Where it does not say it, the
/// move ends all the same.
#[test]
fn a_move_names_the_switches_that_it_left_silent() {
    let silence = Time::from_millis(1074);
    for (stop_copy, tells) in [(0, true), (2000, true), (0, false)] {
        let mut world = world(Options { scheme: Scheme::Dynamic, ..Options::default() }, silence);
        let of =
            |epoch| Silent { switch: Guid(epoch), silence: Time::from_millis(1074), ..Silent::default() };
        world.sm.silent = tells.then_some(of as fn(u64) -> Silent);
        let migration = moved(&mut world, Time::from_millis(stop_copy));
        let told: Vec<Time> = migration.silent.iter().map(|one| one.silence).collect();
        assert_eq!(told, if tells { vec![silence] } else { Vec::new() }, "{stop_copy}: {migration:?}");
        // What is asked once the machine has arrived writes nothing.
        assert!(migration.silent.iter().all(|one| one.switch == Guid(world.sm.wrote)), "{migration:?}");
    }
}

/// It is undone like one that was rerouted, whoever dies after the address and before the machine.
#[test]
fn a_machine_whose_address_went_ahead_goes_back() {
    for kills in [true, false] {
        let mut world =
            world(Options { scheme: Scheme::Dynamic, ..Options::default() }, Time::from_millis(1074));
        let hypervisor = Hypervisor { stop_copy: Time::from_secs(100), ..Hypervisor::default() };
        let id = asked(&mut world, hypervisor);
        world.run_until(world.now + Time::from_secs(30)).unwrap();
        let row = |world: &World| world.sm.rows.values().next().unwrap().1.host.clone();
        assert_eq!((world.sm.done, row(&world), world.sm.held.len()), (1, world.host(1), 1), "held again");
        world.fault(&if kills { Fault::KillAgent(1) } else { Fault::KillManager }).unwrap();
        world.fault(&if kills { Fault::RestartAgent(1) } else { Fault::RestartManager }).unwrap();
        world.rest(Time::from_secs(300)).unwrap();
        assert_eq!(world.running(&"web1".parse().unwrap()).unwrap().host, world.host(0));
        assert_eq!((row(&world), world.sm.held.len()), (world.host(0), 0));
        assert!(
            !kills || matches!(world.replies[&id], Err(VmError::Undone { .. })),
            "{:?}",
            world.replies.get(&id)
        );
    }
}

fn world(options: Options, silence: Time) -> World {
    let mut world = World::new(1, 4, 2, options, SubnetManager::new(Kind::Moves));
    world.sm.silence = silence;
    world.start_manager().unwrap();
    world.rest(Time::from_secs(10)).unwrap();
    world.ask(World::create("web1", Some(world.host(0)))).unwrap();
    world.rest(Time::from_secs(10)).unwrap();
    world
}

fn asked(world: &mut World, hypervisor: Hypervisor) -> u64 {
    let (cold, detach, route) = (false, Detach::Late, Route::default());
    let (vm, host) = ("web1".parse().unwrap(), world.host(1));
    world.ask(Request::Migrate(Migrate { vm, host, cold, detach, hypervisor, route })).unwrap()
}

fn moved(world: &mut World, stop_copy: Time) -> Migration {
    let id = asked(world, Hypervisor { stop_copy, ..Hypervisor::default() });
    world.rest(Time::from_secs(300)).unwrap();
    let Ok(Reply::Migrated(moved)) = &world.replies[&id] else { panic!("{:?}", world.replies[&id]) };
    (**moved).clone()
}
