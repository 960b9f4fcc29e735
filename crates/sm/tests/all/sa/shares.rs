//! A host is one requester, whatever the number of its LIDs and functions: what it may keep, and what others still find.

use super::client::*;
use super::fake::{Fake, World};
use super::services::service;
use weft_machine::Time;
use weft_sm::{Activity, GuidToLid, Input, Options, RoutingOptions};
use weft_topology::generate::{GenerateOptions, xgft};
use weft_topology::{Adapter, NodeIndex, PortRef, Virtualised};
use weft_wire::*;

/// What one host may have, as docs/subnet-manager.md says.
const SERVICES: usize = 256;
const SERVICES_IN_ALL: usize = 4096;
const SUBSCRIPTIONS: usize = 1024;
const WAITING: usize = 8;
const TABLES: usize = 32;

/// Two leaves with two hosts each, and this many virtual functions at each host.
fn virtual_tree(leaf_hosts: u32, functions: u16) -> (World, Vec<Adapter>) {
    let physical = xgft(&[leaf_hosts, 2], &[1, 2], &GenerateOptions::default()).expect("a tree");
    let Virtualised { fabric, adapters } = physical.virtualised(functions).expect("hosts");
    let own = PortRef::new(adapters[0].pf, PortNum(1));
    let mut world = World::new(Fake::new(fabric, own), Options::default(), &GuidToLid::default());
    world.run_until(Activity::Up);
    (world, adapters)
}

fn lid(world: &World, node: NodeIndex) -> Lid {
    lid_of(world, node, PortNum(1))
}

/// The LIDs of a host: of its physical function and of its virtual ones.
fn lids(world: &World, adapter: &Adapter) -> Vec<Lid> {
    std::iter::once(&adapter.pf).chain(&adapter.vfs).map(|node| lid(world, *node)).collect()
}

/// The status of the answer, which comes at once.
fn at_once(world: &mut World, asked: &Asked) -> u16 {
    world.administration.clear();
    world.command(Input::Receive(asked.mad()));
    world.administration.pop_front().expect("an answer").mad.status()
}

fn offer(world: &mut World, from: Lid, record: &ServiceRecord) -> u16 {
    let asked = Asked { from, ..Asked::new(Method::Set, ServiceRecord::ATTRIBUTE) };
    at_once(world, &asked.with(0b11, record))
}

/// Offers services in these ports' names in turn until one is refused; how many there were.
fn offer_all(world: &mut World, from: &[Lid], first: u64) -> usize {
    for nth in 0..=SERVICES_IN_ALL {
        let record = ServiceRecord { service_id: first + nth as u64, ..service(world, 0) };
        let status = offer(world, from[nth % from.len()], &record);
        if status != status::OK {
            assert_eq!(status, sa_status::NO_RESOURCES);
            return nth;
        }
    }
    panic!("there is no end to them")
}

#[test]
fn a_host_fills_no_more_than_its_share_of_services() {
    let (mut world, adapters) = virtual_tree(8, 2);
    for (host, adapter) in adapters.iter().enumerate().take(15) {
        let from = lids(&world, adapter);
        let count = offer_all(&mut world, &from, 10_000 * host as u64);
        assert_eq!(count, SERVICES, "host {host}");
    }
    // Half of what is left for each of the last ones, and one more for whoever has none.
    let last = lids(&world, &adapters[15]);
    assert_eq!(offer_all(&mut world, &last, 200_000), SERVICES_IN_ALL / 16 / 2);
    let counts = world.sm.sa_counts();
    assert_eq!((counts.limited.requester_services, counts.limited.services), (16, 0), "{counts:?}");
    let known = ServiceRecord { service_id: 200_000, ..service(&world, 0) };
    assert_eq!(offer(&mut world, last[0], &known), status::OK, "what is there may be renewed");
    let hog = lid(&world, adapters[0].pf);
    assert_eq!(offer(&mut world, hog, &known), sa_status::NO_RESOURCES, "and not taken over beyond a share");
}

#[test]
fn all_lids_of_an_lmc_share_what_a_host_may_offer() {
    let fabric = xgft(&[2, 2], &[1, 2], &GenerateOptions::default()).expect("a tree");
    let mut world = up(fabric, Options::from(RoutingOptions { lmc: 3, ..RoutingOptions::default() }));
    let host = world.fake.fabric.hosts().nth(2).expect("a host").0;
    let first = lid(&world, host);
    let from: Vec<Lid> = (0..8).map(|nth| Lid(first.0 + nth)).collect();
    assert_eq!(offer_all(&mut world, &from, 0), SERVICES);
}

#[test]
fn services_of_ports_that_left_make_room() {
    let (mut world, adapters) = virtual_tree(8, 1);
    for (host, adapter) in adapters.iter().enumerate() {
        let from = [lid(&world, adapter.vfs[0])];
        offer_all(&mut world, &from, 10_000 * host as u64);
    }
    for adapter in &adapters {
        let neighbours = world.fake.kill(adapter.vfs[0]);
        world.traps(&neighbours);
    }
    world.run_for(Time::from_secs(30));
    world.run_until(Activity::Up);
    let from = [lid(&world, adapters[3].pf)];
    assert_eq!(offer_all(&mut world, &from, 500_000), SERVICES, "the table was full of those that have gone");
}

#[test]
fn a_service_has_the_gid_of_a_port() {
    let (mut world, adapters) = virtual_tree(2, 2);
    let from = lid(&world, adapters[1].pf);
    let alias = Guid(0xa11a5);
    let port = world.fake.identity(adapters[2].pf).1;
    world.lie = Some(Box::new(move |answer| {
        let mut info = GuidInfo::decode(answer.mad.smp_attribute());
        if answer.mad.attribute_id() == AttributeId::GuidInfo && info.guids[0] == port {
            info.guids[1] = alias;
            answer.mad.set_smp_data(&info.encode());
        }
    }));
    let tell = |world: &mut World, gid: Gid| {
        let record = ServiceRecord { service_gid: gid, ..service(world, 1) };
        let asked = Asked { from, ..Asked::new(Method::Set, ServiceRecord::ATTRIBUTE) };
        exchange(world, &asked.with(0b11, &record)).0.status()
    };
    let gid = |guid| Gid { prefix: GidPrefix::DEFAULT, guid };
    for guid in [Guid(0xdead), Guid(0)] {
        assert_eq!(tell(&mut world, gid(guid)), sa_status::REQ_INVALID_GID, "{guid}");
    }
    // OpenSM's osmtest sends the prefix with its bytes turned round.
    assert_eq!(tell(&mut world, Gid { prefix: GidPrefix(0x80fe), guid: port }), status::OK);
    assert_eq!(tell(&mut world, gid(alias)), status::OK, "an alias is the port's");
    assert_eq!(tell(&mut world, gid(port)), status::OK);
    let guest = world.fake.identity(adapters[3].vfs[1]).1;
    let record = ServiceRecord { service_gid: gid(guest), ..service(&world, 2) };
    assert_eq!(offer(&mut world, from, &record), status::OK, "a virtual machine's");
    assert_eq!(world.sm.sa_counts().limited.service_gids, 2);
}

#[test]
fn functions_share_the_tables_and_the_places_of_their_host() {
    let (mut world, adapters) = virtual_tree(2, 15);
    let from = lids(&world, &adapters[1]);
    let guids = Asked::all::<GuidInfoRecord>();
    for id in 0..64 {
        let asked = Asked { from: from[id as usize % 16], id, ..guids };
        world.command(Input::Receive(asked.mad()));
    }
    let counts = world.sm.sa_counts();
    assert_eq!(counts.limited.requester_waiting, 64 - WAITING as u64, "{counts:?}");
    world.run_for(Time::from_secs(1));
    let nodes = Asked::all::<NodeRecord>();
    let before = world.sm.sa_counts();
    for id in 100..400_u64 {
        let asked = Asked { from: from[id as usize % 16], id: id << 32, ..nodes };
        world.command(Input::Receive(asked.mad()));
    }
    let refused = world.sm.sa_counts().limited.requester_tables - before.limited.requester_tables;
    // Those that waited have got their tables, which no one acknowledges.
    assert_eq!(refused, 300 - (TABLES - WAITING) as u64);
    let other = lid(&world, adapters[2].vfs[0]);
    assert_eq!(at_once(&mut world, &Asked { from: other, id: 1, ..nodes }), status::OK);
}

/// Subscribes a port as often as it may, to every trap; how many it got.
fn subscribe_often(world: &mut World, from: Lid) -> usize {
    let range =
        |last: u16| InformInfo { lid_range_begin: Lid(1), lid_range_end: Lid(0xb000 + last), ..everything() };
    (0..64).filter(|last| subscribe(world, from, &range(*last)).is_ok()).count()
}

/// Trap 128 from the first host's vSwitch, which has nothing to say.
fn trap(world: &mut World) {
    let leaf = world.fake.fabric.peer(world.fake.own).expect("it is cabled");
    world.traps(&[leaf]);
    world.run_for(Time::from_micros(500));
}

#[test]
fn functions_share_the_subscriptions_of_their_host() {
    let (mut world, adapters) = virtual_tree(2, 20);
    let from = lids(&world, &adapters[1]);
    let count: usize = from.iter().map(|from| subscribe_often(&mut world, *from)).sum();
    assert_eq!(count, SUBSCRIPTIONS);
    let counts = world.sm.sa_counts();
    assert_eq!(counts.limited.requester_subscriptions, (21 * 64 - SUBSCRIPTIONS) as u64, "{counts:?}");
    let other = lid(&world, adapters[2].pf);
    assert_eq!(subscribe_often(&mut world, other), 64);
}

#[test]
fn silent_functions_of_one_host_keep_no_other_waiting() {
    let (mut world, adapters) = virtual_tree(2, 12);
    for from in lids(&world, &adapters[1]) {
        subscribe_often(&mut world, from);
    }
    let other = lid(&world, adapters[2].pf);
    subscribe(&mut world, other, &everything()).expect("it may");
    let mut heard = 0;
    for _ in 0..50 {
        trap(&mut world);
        while let Some(report) = world.administration.pop_front() {
            if report.lid == other {
                heard += 1;
                let mut response = report;
                SaMad::method.set(&mut response.mad.0, Method::ReportResp);
                world.command(Input::Receive(response));
            }
        }
    }
    assert_eq!(heard, 50, "each at once");
}

#[test]
fn a_host_that_causes_reports_without_end_drops_no_others() {
    let (mut world, adapters) = virtual_tree(2, 16);
    for adapter in &adapters[1..4] {
        for from in lids(&world, adapter) {
            subscribe_often(&mut world, from);
        }
    }
    let details = RepathDetails { kind: RepathKind::WILDCARD, ..RepathDetails::default() };
    let from = lid(&world, adapters[1].vfs[0]);
    let notice = Notice::generic(NodeType::Hca, from, &Details::Repath(trap::REPATH, details));
    for id in 0..100 {
        let asked = Asked { from, id, ..Asked::new(Method::Set, AttributeId::Notice) };
        world.command(Input::Receive(asked.with_bytes(0, &notice.encode()).mad()));
    }
    let flooded = world.sm.sa_counts();
    assert!(flooded.limited.requester_reports >= 90, "{flooded:?}");
    trap(&mut world);
    let counts = world.sm.sa_counts();
    assert_eq!(counts.limited.reports, flooded.limited.reports, "the trap goes to all: {counts:?}");
}
