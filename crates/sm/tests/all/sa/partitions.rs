//! Partitions: the tables in ports, what switches enforce, and which paths there are.

use super::client::*;
use super::fake::{Fake, World};
use weft_machine::Time;
use weft_routing::{EngineOptions, Isolation, Member, Partition, Partitions};
use weft_sm::{Activity, Event, GuidToLid, Input, Options, PartEnforce, RoutingOptions};
use weft_topology::generate::{GenerateOptions, xgft};
use weft_topology::{Fabric, PortRef};
use weft_wire::*;

pub const TENANT: u16 = 0x0102;
const STORAGE: u16 = 0x0203;

pub fn fabric() -> Fabric {
    xgft(&[2, 2], &[1, 2], &GenerateOptions::default()).expect("a tree")
}

pub fn hosts(fabric: &Fabric) -> Vec<PortRef> {
    fabric.hosts().map(|(index, _)| PortRef::new(index, PortNum(1))).collect()
}

pub fn guid(fabric: &Fabric, at: PortRef) -> Guid {
    fabric.port(at).expect("a port").guid
}

/// The first host, which is the manager's, and the second are tenants; the third serves storage to the second, and the
/// fourth is no one's.
pub fn partitions(fabric: &Fabric) -> Partitions {
    let guids: Vec<Guid> = hosts(fabric).into_iter().map(|at| guid(fabric, at)).collect();
    let partition = |pkey, members: &[(usize, bool)]| Partition {
        name: String::new(),
        pkey,
        members: members.iter().map(|(host, full)| Member { guid: guids[*host], full: *full }).collect(),
        isolation: Isolation::Def,
    };
    let list = vec![partition(TENANT, &[(0, true), (1, true)]), partition(STORAGE, &[(1, false), (2, true)])];
    Partitions { list, ..Partitions::default() }
}

fn options(part_enforce: PartEnforce) -> Options {
    let partitions = Some(partitions(&fabric()));
    Options::from(RoutingOptions {
        engine: EngineOptions { partitions, ..EngineOptions::default() },
        part_enforce,
        ..RoutingOptions::default()
    })
}

/// A world whose switches have room for 32 keys in each port.
fn world(options: Options) -> World {
    let fabric = fabric();
    let own = hosts(&fabric)[0];
    let mut fake = Fake::new(fabric, own);
    fake.devices.iter_mut().for_each(|device| device.switch.partition_enforcement_cap = 32);
    let mut world = World::new(fake, options, &GuidToLid::default());
    world.run_until(Activity::Up);
    world
}

/// A port's keys, those that are none left out.
fn keys(world: &World, at: PortRef) -> Option<Vec<u16>> {
    let is_switch = world.fake.fabric.node(at.node).is_switch();
    let port = if is_switch { u32::from(at.port.0) } else { 0 };
    let bytes = world.fake.devices[at.node.index()].p_keys.get(&(port << 16))?;
    let table = PKeyTable::decode(bytes);
    Some(table.p_keys.iter().map(|key| key.0).filter(|key| *key != 0).collect())
}

fn enforced(world: &World, at: PortRef) -> (bool, bool) {
    let info = world.fake.devices[at.node.index()].ports[usize::from(at.port.0)];
    (info.partition_enforcement_inbound, info.partition_enforcement_outbound)
}

#[test]
fn tables_of_hosts_stand_in_their_switches_too() {
    for (part_enforce, looked_at) in [
        (PartEnforce::Both, (true, true)),
        (PartEnforce::In, (true, false)),
        (PartEnforce::Out, (false, true)),
        (PartEnforce::Off, (false, false)),
    ] {
        let world = world(options(part_enforce));
        let fabric = &world.fake.fabric;
        let want: [&[u16]; 4] = [&[0xffff, 0x8102], &[0x7fff, 0x8102, 0x0203], &[0x7fff, 0x8203], &[0x7fff]];
        for (host, want) in hosts(fabric).into_iter().zip(want) {
            assert_eq!(keys(&world, host).as_deref(), Some(want), "{part_enforce:?}");
            let leaf = fabric.peer(host).unwrap();
            assert_eq!(enforced(&world, leaf), looked_at);
            let held = (looked_at != (false, false)).then_some(want.to_vec());
            assert_eq!(keys(&world, leaf), held, "with the host's own memberships");
        }
        for (index, node) in fabric.switches() {
            assert_eq!(keys(&world, PortRef::new(index, PortNum(0))).as_deref(), Some(&[0x7fff][..]));
            for (number, peer) in node.cabled_ports() {
                let at = PortRef::new(index, number);
                if fabric.node(peer.node).is_switch() {
                    assert_eq!((enforced(&world, at), keys(&world, at)), ((false, false), None));
                }
            }
        }
    }
}

#[test]
fn without_partitions_nothing_is_written() {
    let world = world(Options::default());
    assert_eq!(world.fake.sets_of(AttributeId::PKeyTable), 0);
    assert!(
        hosts(&world.fake.fabric).iter().all(|at| !enforced(&world, world.fake.fabric.peer(*at).unwrap()).0)
    );
}

/// A switch without room for all keys of a host would drop what is allowed, so it looks at nothing; a host without room
/// has the first ones, and it is said.
#[test]
fn partitions_without_room_are_left_out_and_reported() {
    let fabric = fabric();
    let (own, second) = (hosts(&fabric)[0], hosts(&fabric)[1]);
    let mut many = partitions(&fabric);
    let members = vec![Member { guid: guid(&fabric, second), full: true }];
    many.list.extend((1..=40).map(|pkey| {
        let (name, members, isolation) = (String::new(), members.clone(), Isolation::Def);
        Partition { name, pkey, members, isolation }
    }));
    let mut fake = Fake::new(fabric, own);
    fake.devices.iter_mut().for_each(|device| device.switch.partition_enforcement_cap = 32);
    let routing = EngineOptions { partitions: Some(many), ..EngineOptions::default() };
    let mut world = World::new(
        fake,
        Options::from(RoutingOptions { engine: routing, ..RoutingOptions::default() }),
        &GuidToLid::default(),
    );
    world.run_until(Activity::Up);
    let held = keys(&world, second).unwrap();
    assert_eq!((held.len(), held[0]), (32, 0x7fff));
    let leaf = world.fake.fabric.peer(second).unwrap();
    assert_eq!((enforced(&world, leaf), keys(&world, leaf)), ((false, false), None));
    let port_guid = guid(&world.fake.fabric, second).into();
    let said = Event::PartitionsLeftOut { port_guid, partitions: 11 };
    assert!(world.events.iter().any(|(_, event)| *event == said), "{:?}", world.events);
}

#[test]
fn paths_have_a_key_that_both_ports_have() {
    let mut world = world(options(PartEnforce::Both));
    let lids: Vec<Lid> =
        hosts(&world.fake.fabric).into_iter().map(|at| lid_of(&world, at.node, at.port)).collect();
    let (bits, key_bit) =
        (component::<PathRecord>("slid") | component::<PathRecord>("dlid"), component::<PathRecord>("p_key"));
    let mut path = |from: usize, to: usize, wanted: Option<u16>| {
        let p_key = PKey(wanted.unwrap_or(0));
        let record = PathRecord { slid: lids[from], dlid: lids[to], p_key, ..PathRecord::default() };
        let mask = if wanted.is_some() { bits | key_bit } else { bits };
        let asked = Asked::all::<PathRecord>().with(mask, &record);
        one::<PathRecord>(&mut world, &asked).map(|path| path.p_key.0)
    };
    let none = Err(sa_status::NO_RECORDS);
    assert_eq!((path(0, 1, None), path(1, 0, None)), (Ok(0x8102), Ok(0x8102)));
    assert_eq!((path(1, 2, None), path(2, 1, None)), (Ok(0x0203), Ok(0x8203)), "the source's membership");
    assert_eq!(path(2, 3, None), none, "limited members of the default partition, and of no other");
    assert_eq!(path(0, 3, None), Ok(0xffff), "the manager reaches all");
    assert_eq!((path(0, 1, Some(TENANT)), path(0, 1, Some(0xffff))), (Ok(0x8102), Ok(0xffff)));
    assert_eq!((path(0, 1, Some(STORAGE)), path(0, 2, Some(TENANT))), (none, none));
    // What is in the devices is what records say.
    let tables: Vec<PKeyTableRecord> = table(&mut world, &Asked::all::<PKeyTableRecord>()).unwrap();
    let of =
        |lid| tables.iter().find(|record| record.lid == lid && record.block_num == 0).unwrap().table.p_keys;
    assert_eq!(of(lids[2])[..3], [0x7fff, 0x8203, 0].map(PKey));
}

/// A restarted manager reads the tables and writes none; what somebody else has changed is put right.
#[test]
fn tables_are_read_before_they_are_written() {
    let options = options(PartEnforce::Both);
    let mut world = world(options.clone());
    world.restart_sm(options, &GuidToLid::default());
    world.run_until(Activity::Up);
    assert_eq!(world.fake.sets_of(AttributeId::PKeyTable), 0);
    assert!(world.last_summary().smps.get_p_keys > 0);
    let host = hosts(&world.fake.fabric)[2];
    world.fake.devices[host.node.index()].p_keys.insert(0, [0xff; 64]);
    world.run_for(Time::from_secs(60));
    assert_eq!(keys(&world, host), Some(vec![0x7fff, 0x8203]));
}

/// Hosts are asked to subscribe again by a manager that has just begun, once; one that has been
/// away is asked when it is back; those whose ports cannot pass that on are left alone.
#[test]
fn hosts_are_told_once_to_subscribe_again() {
    let fabric = fabric();
    let (own, mute) = (hosts(&fabric)[0], hosts(&fabric)[3]);
    let fake = Fake::new(fabric, own);
    let can = |world: &mut World| {
        for at in hosts(&world.fake.fabric).into_iter().filter(|at| *at != mute) {
            let info = &mut world.fake.devices[at.node.index()].ports[1];
            info.capability_mask |= capability::IS_CLIENT_REREGISTRATION_SUPPORTED;
        }
    };
    let told = |world: &World| -> Vec<u32> {
        hosts(&world.fake.fabric).iter().map(|at| world.fake.devices[at.node.index()].reregistered).collect()
    };
    let sweep = |world: &mut World| {
        world.command(Input::Resweep { heavy: true });
        world.run_for(Time::from_secs(2));
    };
    let mut world = World::new(fake, Options::default(), &GuidToLid::default());
    world.run_until(Activity::Up);
    can(&mut world);
    sweep(&mut world);
    assert_eq!(told(&world), [1, 1, 1, 0]);
    assert!(world.events.iter().any(|(_, event)| *event == Event::Reregister { ports: 3 }));
    sweep(&mut world);
    assert_eq!(told(&world), [1, 1, 1, 0], "once");
    world.restart_sm(Options::default(), &GuidToLid::default());
    world.run_for(Time::from_secs(30));
    assert_eq!(told(&world), [2, 2, 2, 0], "another manager");
    let peer = world.fake.fabric.peer(hosts(&world.fake.fabric)[1]).unwrap();
    world.fake.cut(peer);
    sweep(&mut world);
    world.fake.mend(peer);
    sweep(&mut world);
    assert_eq!(told(&world), [2, 3, 2, 0], "it was away");
    world.command(Input::Detached);
    world.attach();
    world.run_for(Time::from_secs(2));
    assert_eq!(told(&world), [2, 3, 2, 0], "this manager still knows its subscriptions");
}
