//! Moves one at a time: what they come to, what they cost, and what is refused.

use support::subnet::{Kind, SubnetManager};
use support::world::{Fault, Moment, Side, World};
use weft_machine::Time;
use weft_vm::{
    Detach, HostName, Hypervisor, Migrate, Migration, Options, Reply, Request, Route, Scheme, VmError,
    VmManager, VmName,
};

use crate::support;

pub(crate) fn world(scheme: Scheme, kind: Kind) -> World {
    let options = Options { scheme, ..Options::default() };
    let mut world = World::new(1, 4, 2, options, SubnetManager::new(kind));
    world.start_manager().unwrap();
    world.rest(Time::from_secs(10)).unwrap();
    world
}

pub(crate) fn vm(name: &str) -> VmName {
    name.parse().unwrap()
}

pub(crate) fn migrate(name: &str, host: HostName) -> Migrate {
    let (cold, detach, hypervisor) = (false, Detach::Late, Hypervisor::default());
    Migrate { vm: vm(name), host, cold, detach, hypervisor, route: Route::default() }
}

/// Asks, and lets everything come to rest.
fn done(world: &mut World, request: Request) -> Result<Reply, VmError> {
    let id = world.ask(request).unwrap();
    world.rest(Time::from_secs(300)).unwrap();
    world.replies[&id].clone()
}

pub(crate) fn created(world: &mut World, name: &str, host: u8) {
    let host = world.host(host);
    let reply = done(world, World::create(name, Some(host)));
    assert!(matches!(reply, Ok(Reply::Created(_))), "{reply:?}");
}

fn migrated(world: &mut World, migrate: Migrate) -> Migration {
    match done(world, Request::Migrate(migrate)) {
        Ok(Reply::Migrated(migration)) => *migration,
        other => panic!("{other:?}"),
    }
}

/// Where the GUID is not the client's to choose, the error says whose it is, and what to do.
#[test]
fn a_guid_is_refused_where_it_is_the_functions() {
    let cases = [
        (Scheme::Prepopulated, "with prepopulated LIDs", "weft up --lids dynamic"),
        (Scheme::Function, "with dynamic vGUIDs", "weft up --vm-guids static"),
    ];
    for (scheme, why, hint) in cases {
        let mut world = world(scheme, Kind::Moves);
        let host = Some(world.host(0));
        let create =
            weft_vm::Create { guid: Some(weft_wire::Guid(0x0277)), ..weft_vm::Create::new(vm("web"), host) };
        let refused = done(&mut world, Request::Create(create)).unwrap_err();
        assert!(refused.to_string().contains(why), "{scheme:?}: {refused}");
        assert!(refused.hint().is_some_and(|said| said.contains(hint)), "{scheme:?}: {:?}", refused.hint());
    }
}

/// A manager sweeps at its start, a virtual machine goes there and back, and the identities of prepopulated slots are those of
/// before.
#[test]
fn there_and_back() {
    for scheme in [Scheme::Prepopulated, Scheme::Dynamic] {
        for kind in [Kind::Moves, Kind::Unknown] {
            let mut world = world(scheme, kind);
            created(&mut world, "web1", 0);
            let before = world.manager.as_ref().unwrap().list();
            let host = world.host(3);
            let there = migrated(&mut world, migrate("web1", host.clone()));
            assert_eq!((there.to.host.clone(), there.counts.is_some()), (host, kind == Kind::Moves));
            assert_eq!(world.running(&vm("web1")), Some(there.to));
            let host = world.host(0);
            let back = migrated(&mut world, migrate("web1", host));
            assert_eq!(back.to, there.from);
            let after = world.manager.as_ref().unwrap().list();
            assert_eq!(before.len(), 1);
            assert_eq!(
                (&after[0].virtual_port_guid, &after[0].vm_state[..]),
                (&before[0].virtual_port_guid, "running")
            );
            if world.is_prepopulated() {
                assert_eq!(before, after);
                let at_home = |agent: &support::agent::Agent| {
                    agent.slots.values().all(|slot| slot.content.port() == Some(&slot.configured))
                };
                assert!(world.agents.iter().all(at_home), "{:?}", world.agents);
            }
        }
    }
}

/// A machine that began to run, and got its LID, while no manager was there to hear of it.
#[test]
fn a_restarted_vm_manager_learns_lids_assigned_meanwhile() {
    let mut world = world(Scheme::Dynamic, Kind::Moves);
    let host = world.host(0);
    world.ask(World::create("web1", Some(host))).unwrap();
    while world.running(&vm("web1")).is_none() {
        world.run_until(world.now + Time::from_millis(1)).unwrap();
    }
    world.kill_manager();
    world.run_until(world.now + Time::from_secs(5)).unwrap();
    world.start_manager().unwrap();
    world.rest(Time::from_secs(300)).unwrap();
    let list = world.manager.as_ref().unwrap().list();
    let slot = world.running(&vm("web1")).unwrap();
    let own = world.slots().find_map(|(at, content)| (at == slot).then(|| content.port().unwrap().lid.0));
    assert_ne!(own, Some(0));
    assert_eq!((list[0].vm_state.as_str(), Some(list[0].virtual_port_lid)), ("running", own));
}

/// Paper 004's three stages (its line 2353) with a network that takes no time worth mentioning: what is configured is what
/// is reported. With early detach the machine is away while its memory is copied, too.
#[test]
fn stages_take_what_is_configured() {
    let ms = Time::from_millis;
    let hypervisor = Hypervisor { pre_copy: ms(2800), stop_copy: ms(1900), resume: ms(700) };
    for (detach, cold, away) in
        [(Detach::Late, false, 2600), (Detach::Early, false, 5400), (Detach::Late, true, 0)]
    {
        let mut world = world(Scheme::Dynamic, Kind::Moves);
        created(&mut world, "web1", 0);
        let host = world.host(1);
        let moved = migrated(&mut world, Migrate { detach, cold, hypervisor, ..migrate("web1", host) });
        let downtime = moved.stages.downtime.unwrap();
        // At most two ways of 1 ms for each of the six steps meanwhile, and as much for two writes.
        let most = ms(away + 16);
        assert!(downtime >= ms(away) && downtime <= most, "{:?}", moved.stages);
        let stages = moved.stages;
        let all = [stages.reserve, stages.pre_copy, stages.hold, stages.freeze, stages.export, stages.import];
        let rest = [stages.reroute, stages.commit, stages.activate, stages.wait_for_lid, stages.release];
        let sum = all.into_iter().chain(rest).flatten().fold(Time::ZERO, |sum, stage| sum + stage);
        assert_eq!(sum, stages.total, "{stages:?}");
        assert_eq!(stages.pre_copy.is_some(), !cold);
        assert_eq!(stages.pre_copy.is_some_and(|took| took >= ms(2800)), !cold);
    }
}

/// Where a sweep has to find the port, no one reaches the machine before that has given its LID.
#[test]
fn a_machine_is_down_until_it_has_its_lid() {
    for (sweep, patience, ends) in [(2000, 60_000, true), (50, 60_000, true), (5000, 2000, false)] {
        let [sweep, lid_patience] = [sweep, patience].map(Time::from_millis);
        let options = Options { scheme: Scheme::Dynamic, lid_patience, ..Options::default() };
        let mut world = World::new(1, 4, 2, options, SubnetManager::new(Kind::Unknown));
        world.start_manager().unwrap();
        created(&mut world, "web1", 0);
        world.sweep = sweep;
        let host = world.host(3);
        let Migration { stages, notes, .. } = migrated(&mut world, migrate("web1", host));
        assert_eq!(stages.downtime.is_some(), ends, "{stages:?}");
        let has_said = notes.iter().any(|note| note.contains("its downtime has not ended"));
        assert_eq!(has_said, !ends, "{notes:?}");
        let waited = stages.wait_for_lid.unwrap_or_default();
        // The answer of its agent is under way for a part of that.
        assert!(waited + Time::from_millis(2) >= sweep.min(lid_patience), "{stages:?}");
        // Each of the steps before is two ways of a millisecond, and a write.
        let most = waited + Time::from_millis(16);
        assert!(stages.downtime.is_none_or(|down| down >= waited && down <= most), "{stages:?}");
    }
}

#[test]
fn lists_have_the_field_names_of_ufm() {
    let mut world = world(Scheme::Prepopulated, Kind::Moves);
    created(&mut world, "web1", 2);
    let list = serde_json::to_value(world.manager.as_ref().unwrap().list()).unwrap();
    let port = &list[0];
    let names = [
        "virtual_port_state",
        "virtual_port_lid",
        "system_ip",
        "system_name",
        "node_description",
        "system_guid",
        "port_guid",
        "port_name",
        "physical_port_number",
        "virtual_port_guid",
    ];
    assert!(names.iter().all(|name| !port[name].is_null()), "{port}");
    assert_eq!(port["virtual_port_state"], "Active");
    assert_eq!(port["port_name"], "0000000000001002_1");
    assert_eq!(port["virtual_port_guid"], "0000000100001002");
    assert_eq!(port["virtual_port_lid"], 2 * 16 + 1 + 100);
}

#[test]
fn a_fleet_is_spread_evenly() {
    let mut world = world(Scheme::Dynamic, Kind::Moves);
    let Request::Create(mut create) = World::create("fleet", None) else { panic!() };
    create.count = Some(6);
    let Ok(Reply::Created(made)) = done(&mut world, Request::Create(create.clone())) else { panic!() };
    assert_eq!(made.iter().map(|(name, _)| name.to_string()).collect::<Vec<_>>().join(" "), {
        "fleet-1 fleet-2 fleet-3 fleet-4 fleet-5 fleet-6"
    });
    let on = |host: u8| made.iter().filter(|(_, slot)| slot.host == world.host(host)).count();
    // Six machines on four hosts: one each, and the first two have a second.
    assert_eq!([on(0), on(1), on(2), on(3)], [2, 2, 1, 1]);
    let id =
        world.ask(Request::Create(weft_vm::Create { name: vm("other"), count: Some(3), ..create })).unwrap();
    world.rest(Time::from_secs(10)).unwrap();
    assert_eq!(world.replies[&id], Err(VmError::FabricFull { free: 2, wanted: 3 }));
}

/// Every bad request of the list that a client can make, and its answer in words.
#[test]
fn bad_requests_are_refused_in_words() {
    let mut world = world(Scheme::Dynamic, Kind::Moves);
    created(&mut world, "web1", 0);
    created(&mut world, "web2", 1);
    created(&mut world, "web3", 1);
    let (one, nowhere): (HostName, HostName) = (world.host(1), "nowhere".parse().unwrap());
    let create = |name: &str, change: fn(&mut weft_vm::Create)| {
        let Request::Create(mut create) = World::create(name, Some("host-2".parse().unwrap())) else {
            panic!()
        };
        change(&mut create);
        Request::Create(create)
    };
    let guid = |guid: u64| weft_wire::Guid(guid);
    let cases: Vec<(Request, &str)> = vec![
        (World::create("web1", None), "already called `web1`"),
        (World::create("new", Some(nowhere.clone())), "no host is called `nowhere`"),
        (World::create("new", Some(one.clone())), "all 2 virtual functions of host `host-1`"),
        (create("new", |create| create.vf = Some(9)), "there is no host-2 vf9"),
        (create("new", |create| create.vf = Some(0)), "there is no host-2 vf0"),
        (create("new", |create| create.guid = Some(weft_wire::Guid(0))), "GUID 0"),
        (create("new", |create| create.guid = Some(weft_wire::Guid(0xfab))), "in use by the fabric"),
        (create("new", |create| create.guid = Some(weft_wire::Guid(0x1001))), "in use by host `host-1`"),
        (create("new", |create| create.guid = Some(Options::default().first_guid)), "in use by `web1`"),
        (create("new", |create| create.count = Some(0)), "1 to 1000 machines, and not 0"),
        (create("new", |create| create.count = Some(1001)), "1 to 1000 machines, and not 1001"),
        (create("new", |create| create.p_keys = vec![weft_wire::PKey(1); 65]), "at most 64 P_Keys"),
        (
            create("new", |create| (create.count, create.vf) = (Some(2), Some(1))),
            "cannot share a GUID or a virtual function",
        ),
        (Request::Destroy(vm("gone")), "no virtual machine is called `gone`"),
        (Request::Forget { vm: vm("web1"), force: true }, "`web1` is not in doubt"),
        (Request::Migrate(migrate("gone", one.clone())), "no virtual machine is called `gone`"),
        (Request::Migrate(migrate("web1", nowhere)), "no host is called `nowhere`"),
        (Request::Migrate(migrate("web1", one.clone())), "all 2 virtual functions of host `host-1`"),
        (Request::Migrate(migrate("web2", one.clone())), "is on host `host-1` already"),
        (Request::Plan { vm: vm("web2"), host: one, route: Route::default() }, "is on host `host-1` already"),
    ];
    let before = world.manager.as_ref().unwrap().list();
    for (request, words) in cases {
        let reply = done(&mut world, request.clone());
        let error = reply.expect_err(&format!("{request:?}")).to_string();
        assert!(error.contains(words), "{request:?}: {error}");
    }
    assert_eq!(world.manager.as_ref().unwrap().list(), before);
    let reply = done(&mut world, create("given", |create| create.guid = Some(weft_wire::Guid(0x77))));
    assert!(reply.is_ok(), "{reply:?}");
    assert!(
        world.slots().any(|(_, content)| content.port().is_some_and(|port| port.port_guid == guid(0x77)))
    );
}

#[test]
fn a_dead_host_is_refused_and_the_machine_on_it_is_in_doubt() {
    let mut world = world(Scheme::Prepopulated, Kind::Moves);
    created(&mut world, "web1", 0);
    created(&mut world, "web2", 1);
    world.fault(&Fault::Cut(0)).unwrap();
    world.feed(weft_vm::Input::HostDown("host-0".parse().unwrap())).unwrap();
    let host = world.host(0);
    let reply = done(&mut world, Request::Migrate(migrate("web2", host.clone())));
    assert_eq!(reply, Err(VmError::HostAway(host)));
    let list = world.manager.as_ref().unwrap().list();
    assert_eq!((&list[0].vm_state[..], &list[1].vm_state[..]), ("in doubt", "running"));
    let reply = done(&mut world, Request::Forget { vm: vm("web1"), force: false });
    assert_eq!(reply, Err(VmError::NeedsForce(vm("web1"))));
    assert_eq!(done(&mut world, Request::Forget { vm: vm("web1"), force: true }), Ok(Reply::Forgotten));
    assert!(world.running(&vm("web1")).is_some(), "its host does not know yet");
    world.fault(&Fault::Mend(0)).unwrap();
    world.rest(Time::from_secs(10)).unwrap();
    assert_eq!(world.running(&vm("web1")), None);
    created(&mut world, "web1", 0);
}

#[test]
fn one_thing_at_a_time_with_one_machine() {
    let mut world = world(Scheme::Prepopulated, Kind::Moves);
    created(&mut world, "web1", 0);
    let (one, two) = (world.host(1), world.host(2));
    let first = world.ask(Request::Migrate(migrate("web1", one))).unwrap();
    let second = world.ask(Request::Migrate(migrate("web1", two))).unwrap();
    let third = world.ask(Request::Destroy(vm("web1"))).unwrap();
    world.rest(Time::from_secs(10)).unwrap();
    assert!(world.replies[&first].is_ok());
    for id in [second, third] {
        assert!(matches!(world.replies[&id], Err(VmError::Busy { .. })), "{:?}", world.replies[&id]);
    }
}

/// A request while a new manager asks its hosts begins as soon as they have answered.
#[test]
fn a_request_at_the_start_waits_for_no_other_input() {
    for delay in 0..40 {
        let mut world = world(Scheme::Dynamic, Kind::Moves);
        created(&mut world, "web1", 0);
        world.fault(&Fault::KillManager).unwrap();
        world.fault(&Fault::RestartManager).unwrap();
        world.run_until(world.now + Time::from_micros(250 * delay)).unwrap();
        let request = Request::Migrate(migrate("web1", world.host(1)));
        let id = world.ask(request).unwrap();
        world.run_until(world.now + Time::from_millis(200)).unwrap();
        let reply = world.replies.get(&id);
        assert!(matches!(reply, Some(Ok(Reply::Migrated(_)))), "after {delay}: {reply:?}");
    }
}

/// Three machines change places in a ring of full hosts but one slot: each waits for the one before.
#[test]
fn moves_wait_for_slots_in_order() {
    let mut world = world(Scheme::Prepopulated, Kind::Moves);
    for (name, host) in [("a1", 0), ("a2", 0), ("b1", 1), ("b2", 1), ("c1", 2), ("c2", 2), ("d1", 3)] {
        created(&mut world, name, host);
    }
    let to = |world: &mut World, name: &str, host: u8| {
        let request = Request::Migrate(migrate(name, world.host(host)));
        world.ask(request).unwrap()
    };
    let moves = [("c1", 3), ("b1", 2), ("a1", 1)];
    let ids: Vec<u64> = moves.into_iter().map(|(name, host)| to(&mut world, name, host)).collect();
    world.rest(Time::from_secs(10)).unwrap();
    for (id, (name, host)) in ids.iter().zip(moves) {
        assert!(world.replies[id].is_ok(), "{name}: {:?}", world.replies[id]);
        assert_eq!(world.running(&vm(name)).unwrap().host, world.host(host));
    }
    let counts = world.manager.as_ref().map(VmManager::counts).unwrap();
    assert_eq!((counts.moved, counts.undone), (3, 0));
}

/// The subnet manager refuses: the machine runs where it was, and its client gets the words.
#[test]
fn a_refused_move_is_undone() {
    let mut world = world(Scheme::Prepopulated, Kind::Refuses);
    created(&mut world, "web1", 0);
    let mut undone = 0;
    for round in 0..20_u8 {
        let host = world.running(&vm("web1")).unwrap().host;
        let other = if host == world.host(0) { 1 } else { 0 };
        let request = Request::Migrate(migrate("web1", world.host(other)));
        match done(&mut world, request) {
            Ok(Reply::Migrated(_)) => {}
            Err(error @ VmError::Undone { .. }) => {
                undone += 1;
                assert!(error.to_string().contains("no order of updates is free of loops"), "{error}");
                assert_eq!(world.running(&vm("web1")).unwrap().host, host, "round {round}");
            }
            other => panic!("{other:?}"),
        }
    }
    assert!(undone > 0 && undone < 20, "{undone}");
}

/// While packets of other moves are under way a machine runs on, for however long; notes say so.
#[test]
fn a_machine_runs_on_while_others_packets_are_under_way() {
    let mut world = world(Scheme::Dynamic, Kind::Later);
    created(&mut world, "web1", 0);
    let (mut waited, mut later) = (0, 0);
    for round in 0..20_u8 {
        let host = world.host(1 + round % 2);
        let moved = migrated(&mut world, migrate("web1", host));
        let (downtime, hold) = (moved.stages.downtime.unwrap(), moved.stages.hold.unwrap());
        assert!(downtime <= Time::from_millis(20), "round {round}: {:?}", moved.stages);
        let is_told = moved.notes.iter().any(|note| note.contains("packets of other moves"));
        assert_eq!(is_told, world.sm.later > later, "round {round}: {:?}", moved.notes);
        later = world.sm.later;
        waited += u32::from(hold > Time::from_millis(100));
    }
    assert!(waited > 0 && world.sm.later > 1, "{waited} of {}", world.sm.later);
}

/// A machine is not frozen for a move that no subnet manager would carry out.
#[test]
fn without_a_subnet_manager_no_move_begins() {
    let mut world = world(Scheme::Dynamic, Kind::Moves);
    created(&mut world, "web1", 0);
    world.fault(&Fault::KillSm).unwrap();
    let host = world.host(1);
    let error = done(&mut world, Request::Migrate(migrate("web1", host))).unwrap_err();
    assert!(error.to_string().contains("the subnet manager does not answer"), "{error}");
    assert_eq!(error.hint().as_deref(), Some("weft status"));
    assert_eq!(world.running(&vm("web1")).unwrap().host, world.host(0));
    let frozen = world.disk.synced().iter().any(|record| record.name() == "freeze");
    assert!(!frozen, "{:?}", world.disk.synced());
}

/// Without the subnet manager a machine stays frozen and in doubt; it goes on when there is one again.
#[test]
fn without_a_subnet_manager_it_stays_frozen() {
    let mut world = world(Scheme::Prepopulated, Kind::Moves);
    created(&mut world, "web1", 0);
    world.sm_dies_at = Some("import");
    let request = Request::Migrate(migrate("web1", world.host(1)));
    let id = world.ask(request).unwrap();
    world.run_until(world.now + Time::from_secs(20)).unwrap();
    let list = world.manager.as_ref().unwrap().list();
    assert_eq!((&list[0].vm_state[..], &list[0].virtual_port_state[..]), ("in doubt", "Down"));
    assert!(list[0].detail.contains("subnet manager"), "{}", list[0].detail);
    assert_eq!(world.running(&vm("web1")), None);
    world.fault(&Fault::RestartSm).unwrap();
    world.rest(Time::from_secs(10)).unwrap();
    assert!(world.replies[&id].is_ok(), "{:?}", world.replies[&id]);
}

/// The manager dies with the image at the destination, and then the source dies before it is
/// ordered to resume: the machine lives on at the destination. Without the image there, it is lost.
#[test]
fn an_aborted_move_goes_on_if_only_the_destination_survives() {
    for (step, survives) in [("reroute", true), ("freeze", false)] {
        let mut world = world(Scheme::Prepopulated, Kind::Moves);
        created(&mut world, "web1", 0);
        world.die_at = Some((step.to_owned(), Moment::Later));
        world.strikes.push((step, Side::Source));
        // The subnet manager is away, so that nothing is moved back in time.
        world.sm_dies_at = Some("freeze");
        let request = Request::Migrate(migrate("web1", world.host(1)));
        world.ask(request).unwrap();
        world.run_until(world.now + Time::from_secs(5)).unwrap();
        world.fault(&Fault::RestartSm).unwrap();
        world.rest(Time::from_secs(30)).unwrap();
        let list = world.manager.as_ref().unwrap().list();
        let state = if survives { "running" } else { "lost" };
        assert_eq!(list[0].vm_state, state, "{step}: {list:?}");
        assert_eq!(
            world.running(&vm("web1")).map(|slot| slot.host),
            survives.then(|| world.host(1)),
            "{step}"
        );
        assert_eq!(world.died_at, 1);
    }
}
