//! Partitions that change while the subnet is up: what is written where and in which order, and the places of keys.

use std::cell::RefCell;
use std::rc::Rc;

use weft_machine::Time;
use weft_routing::{EngineOptions, Isolation, Member, Partition, Partitions, Strictness};
use weft_sm::{Activity, Event, GuidToLid, Input, Options, PartEnforce, RoutingOptions};
use weft_topology::generate::{GenerateOptions, xgft};
use weft_topology::{Fabric, PortRef};
use weft_wire::*;

use super::fake::{Fake, World};

/// Longer than places rest.
const RESTED: Time = Time::from_secs(41);
/// Longer than a change takes, and shorter than to the next light sweep.
const CHANGE: Time = Time::from_secs(2);

fn fabric() -> Fabric {
    xgft(&[2, 2], &[1, 2], &GenerateOptions::default()).expect("a tree")
}

fn hosts() -> Vec<PortRef> {
    fabric().hosts().map(|(index, _)| PortRef::new(index, PortNum(1))).collect()
}

/// Partitions of hosts by their numbers; all are full members.
fn partitions(list: &[(u16, &[usize])]) -> Partitions {
    let fabric = fabric();
    let guids: Vec<Guid> = hosts().into_iter().map(|at| fabric.port(at).expect("a port").guid).collect();
    let member = |host: &usize| Member { guid: guids[*host], full: true };
    let partition = |(pkey, members): &(u16, &[usize])| Partition {
        name: format!("p{pkey}"),
        pkey: *pkey,
        members: members.iter().map(member).collect(),
        isolation: Isolation::Def,
    };
    Partitions { list: list.iter().map(partition).collect(), ..Partitions::default() }
}

fn options(part_enforce: PartEnforce, partitions: Option<Partitions>) -> Options {
    let engine = EngineOptions { partitions, ..EngineOptions::default() };
    Options::from(RoutingOptions { engine, part_enforce, ..RoutingOptions::default() })
}

fn world(options: Options) -> World {
    let mut fake = Fake::new(fabric(), hosts()[0]);
    fake.devices.iter_mut().for_each(|device| device.switch.partition_enforcement_cap = 32);
    let mut world = World::new(fake, options, &GuidToLid::default());
    world.run_until(Activity::Up);
    world.run_for(CHANGE);
    world
}

/// The places of a port's table up to the last key.
fn table(world: &World, at: PortRef) -> Vec<u16> {
    let is_switch = world.fake.fabric.node(at.node).is_switch();
    let port = if is_switch { u32::from(at.port.0) } else { 0 };
    let held = world.fake.devices[at.node.index()].p_keys.get(&(port << 16));
    let keys = PKeyTable::decode(held.unwrap_or(&[0; 64])).p_keys.map(|key| key.0);
    let last = keys.iter().rposition(|key| *key != 0).map_or(0, |last| last + 1);
    keys[..last].to_vec()
}

fn leaf(at: PortRef) -> PortRef {
    fabric().peer(at).expect("a leaf")
}

/// Gives a manager other partitions: the blocks that it writes and all SMPs that it sends, and what it says of it.
fn change(world: &mut World, wanted: Partitions) -> (u64, u64, Vec<Event>) {
    let (blocks, sent, said) = (world.fake.sets_of(AttributeId::PKeyTable), world.sent, world.events.len());
    world.command(Input::Partitions(wanted));
    world.run_for(CHANGE);
    let events = world.events[said..].iter().map(|(_, event)| event.clone()).collect();
    (world.fake.sets_of(AttributeId::PKeyTable) - blocks, world.sent - sent, events)
}

fn taken(smps: u64) -> Event {
    Event::PartitionsTaken { in_charge: true, smps, waiting: 0, kept: 0, left_out: 0 }
}

/// Takes down which LFT and P_Key blocks are written: of switches by their ports, of hosts by port 0.
fn watch(world: &mut World) -> Rc<RefCell<Vec<(AttributeId, u32)>>> {
    let seen = Rc::new(RefCell::new(Vec::new()));
    let noted = Rc::clone(&seen);
    world.watch = Some(Box::new(move |_, sent| {
        let attribute = sent.mad.attribute_id();
        let is_table = [AttributeId::PKeyTable, AttributeId::LinearForwardingTable].contains(&attribute);
        if sent.mad.method() == Method::Set && is_table {
            noted.borrow_mut().push((attribute, sent.mad.attribute_modifier() >> 16));
        }
    }));
    seen
}

#[test]
fn a_join_writes_the_filter_and_then_the_host() {
    let before = partitions(&[(0x102, &[0, 1]), (0x203, &[1, 2])]);
    let mut world = world(options(PartEnforce::Both, Some(before.clone())));
    let host = hosts()[1];
    assert_eq!(table(&world, host), [0x7fff, 0x8102, 0x8203]);
    let seen = watch(&mut world);
    let after = partitions(&[(0x50, &[1, 3]), (0x102, &[0, 1]), (0x203, &[1, 2])]);
    let (blocks, sent, said) = change(&mut world, after.clone());
    assert_eq!((blocks, sent), (4, 4), "a block of each port that differs, and nothing is asked");
    assert!(said.contains(&taken(4)), "{said:?}");
    let keys = [0x7fff, 0x8102, 0x8203, 0x8050];
    assert_eq!((table(&world, host), table(&world, leaf(host))), (keys.to_vec(), keys.to_vec()));
    assert_eq!(table(&world, hosts()[3]), [0x7fff, 0x8050]);
    let ports: Vec<bool> = seen.borrow().iter().map(|(_, port)| *port == 0).collect();
    assert_eq!(ports, [false, false, true, true], "switches first: {:?}", seen.borrow());
    // The same once more is nothing.
    assert_eq!(change(&mut world, after), (0, 0, vec![taken(0)]));
    let (blocks, sent, _) = change(&mut world, before);
    assert_eq!((blocks, sent), (4, 4));
    assert_eq!(table(&world, host), keys[..3]);
}

#[test]
fn without_enforcement_a_change_is_one_block_each() {
    let before = partitions(&[(0x102, &[0, 1])]);
    let mut world = world(options(PartEnforce::Off, Some(before)));
    let (blocks, sent, said) = change(&mut world, partitions(&[(0x102, &[0, 2, 3])]));
    assert_eq!((blocks, sent), (3, 3));
    assert!(said.contains(&taken(3)), "{said:?}");
    assert_eq!(table(&world, hosts()[1]), [0x7fff]);
    assert_eq!(table(&world, leaf(hosts()[1])), Vec::<u16>::new());
}

#[test]
fn a_place_rests_before_another_key_has_it() {
    let mut world = world(options(PartEnforce::Off, Some(partitions(&[(0x102, &[0, 1]), (0x203, &[1])]))));
    let host = hosts()[1];
    change(&mut world, partitions(&[(0x102, &[0]), (0x203, &[1])]));
    assert_eq!(table(&world, host), [0x7fff, 0, 0x8203]);
    change(&mut world, partitions(&[(0x102, &[0]), (0x203, &[1]), (0x50, &[1])]));
    assert_eq!(table(&world, host), [0x7fff, 0, 0x8203, 0x8050], "the lowest that does not rest");
    change(&mut world, partitions(&[(0x102, &[0, 1]), (0x203, &[1]), (0x50, &[1])]));
    assert_eq!(table(&world, host), [0x7fff, 0x8102, 0x8203, 0x8050], "its own place again");
    change(&mut world, partitions(&[(0x102, &[0]), (0x203, &[1]), (0x50, &[1])]));
    world.run_for(RESTED);
    change(&mut world, partitions(&[(0x102, &[0]), (0x203, &[1]), (0x50, &[1]), (0x60, &[1])]));
    assert_eq!(table(&world, host), [0x7fff, 0x8060, 0x8203, 0x8050]);
}

/// A table that is full but for a place that rests: the newcomer waits, and gets the place.
#[test]
fn a_newcomer_waits_where_all_places_rest() {
    let full: Vec<(u16, Vec<usize>)> = (1..32).map(|pkey| (pkey, vec![1])).collect();
    let of = |list: &[(u16, Vec<usize>)]| {
        let list: Vec<(u16, &[usize])> = list.iter().map(|(pkey, members)| (*pkey, &members[..])).collect();
        partitions(&list)
    };
    let mut world = world(options(PartEnforce::Off, Some(of(&full))));
    let (_, _, said) = change(&mut world, of(&[&full[1..], &[(0x203, vec![1])]].concat()));
    let wait = Event::PartitionsTaken { in_charge: true, smps: 1, waiting: 1, kept: 0, left_out: 0 };
    assert!(said.contains(&wait), "{said:?}");
    assert_eq!(table(&world, hosts()[1])[..3], [0x7fff, 0, 0x8002]);
    world.run_for(RESTED);
    assert_eq!(table(&world, hosts()[1])[..3], [0x7fff, 0x8203, 0x8002]);
}

/// What a port has is read from the port: places are the same under another manager, and what is free rests first.
#[test]
fn places_survive_the_manager() {
    let before = partitions(&[(0x102, &[0, 1]), (0x203, &[1])]);
    let mut world = world(options(PartEnforce::Both, Some(before)));
    let after = [(0x50, &[1][..]), (0x102, &[0][..]), (0x203, &[1, 2][..])];
    change(&mut world, partitions(&after));
    let host = hosts()[1];
    assert_eq!(table(&world, host), [0x7fff, 0, 0x8203, 0x8050]);
    world.restart_sm(options(PartEnforce::Both, Some(partitions(&after))), &GuidToLid::default());
    world.run_until(Activity::Up);
    world.run_for(CHANGE);
    assert_eq!(world.fake.sets_of(AttributeId::PKeyTable), 0);
    let (.., said) = change(&mut world, partitions(&[&after[..], &[(0x60, &[1][..])]].concat()));
    assert!(
        said.iter().any(|event| matches!(event, Event::PartitionsWait { partitions: 1, .. })),
        "{said:?}"
    );
    assert_eq!(table(&world, host), [0x7fff, 0, 0x8203, 0x8050]);
    world.run_for(RESTED);
    assert_eq!(table(&world, host), [0x7fff, 0x8060, 0x8203, 0x8050]);
}

/// A manager that has restarted, and is not answered which keys hosts have, leaves them as they are and names the hosts; a member is
/// cut off by no one meanwhile, and the next sweep finds everything where it was.
#[test]
fn a_table_that_could_not_be_read_stays_as_it_is() {
    let host = hosts()[1];
    let guid = fabric().port(host).expect("a port").guid;
    for unanswered in [AttributeId::PKeyTable, AttributeId::SlToVlTable] {
        let mut world =
            world(options(PartEnforce::Both, Some(partitions(&[(0x102, &[0, 1]), (0x203, &[1])]))));
        let after = partitions(&[(0x102, &[0]), (0x203, &[1])]);
        // An answer to a question that no one has asked is none. Tables of switches' ports are read and written.
        world.lie = Some(Box::new(move |answer| {
            let is_of_host =
                unanswered != AttributeId::PKeyTable || answer.mad.attribute_modifier() >> 16 == 0;
            if answer.mad.attribute_id() == unanswered && is_of_host {
                DirectedSmp::transaction_id.set(&mut answer.mad.0, TransactionId(0));
            }
        }));
        world.restart_sm(options(PartEnforce::Both, Some(after)), &GuidToLid::default());
        world.run_for(Time::from_secs(8));
        assert_eq!(table(&world, host), [0x7fff, 0x8102, 0x8203], "{unanswered:?}");
        let kept = Event::PartitionsKept { port_guid: guid.into(), partitions: 0, is_cut_off: true };
        let events = &world.events;
        assert!(events.iter().any(|(_, event)| *event == kept), "{unanswered:?}: {events:?}");
        world.lie = None;
        world.run_for(RESTED);
        assert_eq!(table(&world, host), [0x7fff, 0, 0x8203], "{unanswered:?}");
    }
}

/// A host that does not answer is cut off by its switch, and leaves when it answers again. Without enforcement it stays in.
#[test]
fn a_silent_leaver_is_cut_off_and_named() {
    for (part_enforce, is_cut_off) in [(PartEnforce::Both, true), (PartEnforce::Off, false)] {
        let mut world = world(options(part_enforce, Some(partitions(&[(0x102, &[0, 1, 2])]))));
        let host = hosts()[1];
        let guid = fabric().port(host).expect("a port").guid;
        world.fake.kill_unnoticed(host.node);
        world.fake.devices[host.node.index()].on = false;
        let (.., said) = change(&mut world, partitions(&[(0x102, &[0, 2])]));
        let kept = Event::PartitionsKept { port_guid: guid.into(), partitions: 1, is_cut_off };
        assert!(said.contains(&kept), "{said:?}");
        assert_eq!(table(&world, host), [0x7fff, 0x8102], "it has not heard of it");
        if is_cut_off {
            assert_eq!(table(&world, leaf(host)), [0x7fff]);
        }
        world.fake.devices[host.node.index()].on = true;
        world.run_for(RESTED);
        assert_eq!(table(&world, host), [0x7fff]);
    }
}

/// A host that is silent already when it leaves.
#[test]
fn the_switch_of_a_silent_host_is_written_still() {
    let mut world = world(options(PartEnforce::Both, Some(partitions(&[(0x102, &[0, 1, 2])]))));
    let host = hosts()[1];
    world.fake.kill_unnoticed(host.node);
    world.command(Input::Resweep { heavy: true });
    world.run_for(RESTED);
    let (.., said) = change(&mut world, partitions(&[(0x102, &[0, 2])]));
    assert_eq!(table(&world, leaf(host)), [0x7fff], "{said:?}");
    assert!(said.iter().any(|event| matches!(event, Event::PartitionsTaken { kept: 1, .. })), "{said:?}");
}

/// Where the engine takes partitions into account, a leaver is cut off first, then everything is routed, and then the newcomer is let in.
#[test]
fn a_newcomer_is_routed_before_it_is_let_in() {
    let mut options = options(PartEnforce::Off, Some(partitions(&[(0x102, &[0, 1]), (0x203, &[2, 3])])));
    options.routing.chain = "pftree".parse().expect("an engine");
    let mut world = world(options);
    let seen = watch(&mut world);
    let (blocks, _, said) = change(&mut world, partitions(&[(0x102, &[0, 3]), (0x203, &[1, 2])]));
    assert_eq!(blocks, 4, "{said:?}");
    assert!(said.contains(&taken(4)), "{said:?}");
    let keys = seen.borrow().iter().filter(|(what, _)| *what == AttributeId::PKeyTable).count();
    assert_eq!(keys, 4);
    let routed = said.iter().position(|event| matches!(event, Event::Routed(_)));
    let ups: Vec<usize> = (0..said.len()).filter(|at| matches!(said[*at], Event::SubnetUp(_))).collect();
    assert_eq!(ups.len(), 3, "{said:?}");
    assert!(routed.is_some_and(|routed| ups[0] < routed && routed < ups[1]), "{said:?}");
    let counts: Vec<u64> = said
        .iter()
        .filter_map(|event| match event {
            Event::SubnetUp(summary) => Some(summary.smps.set_p_keys),
            _ => None,
        })
        .collect();
    assert_eq!(counts, [2, 0, 2], "two leave, all is routed, two join");
}

#[test]
fn what_would_be_written_is_known_before() {
    let mut world = world(options(PartEnforce::Both, Some(partitions(&[(0x102, &[0, 1])]))));
    let wanted = partitions(&[(0x102, &[0, 1, 2])]);
    let sent = world.sent;
    let planned = world.sm.plan_partitions(&wanted).expect("it is idle");
    let node = |at: PortRef| fabric().node(at.node).guid;
    let places: Vec<_> = planned.iter().map(|block| (block.node, block.port)).collect();
    let (host, switch) = (hosts()[2], leaf(hosts()[2]));
    assert_eq!(places, [(node(switch), switch.port), (node(host), host.port)]);
    assert_eq!(world.sent, sent);
    let (blocks, ..) = change(&mut world, wanted.clone());
    assert_eq!((blocks, world.sm.plan_partitions(&wanted)), (planned.len() as u64, Some(Vec::new())));
}

/// The blocks of forwarding tables that a manager says it would write are those that switches receive; and a policy that no routing
/// keeps is known before, too.
#[test]
fn routes_that_would_change_are_known_before() {
    let mut options = options(PartEnforce::Off, Some(partitions(&[(0x102, &[0, 2]), (0x203, &[1, 3])])));
    options.routing.chain = "pftree-ext,no_fallback".parse().expect("an engine");
    let mut world = world(options);
    let wanted = partitions(&[(0x102, &[0, 3]), (0x203, &[1, 2])]);
    let (sent, blocks) = (world.sent, world.fake.sets_of(AttributeId::LinearForwardingTable));
    let planned = world.sm.plan_routes(&wanted).expect("it is idle");
    assert_eq!((&*planned.engine, planned.refused.clone()), ("pftree-ext", None));
    assert!(planned.rows > 0 && planned.blocks > 0, "{planned:?}");
    assert_eq!(world.sent, sent, "nothing is written");
    change(&mut world, wanted.clone());
    let written = world.fake.sets_of(AttributeId::LinearForwardingTable) - blocks;
    assert_eq!(written, u64::from(planned.blocks), "{planned:?}");
    let again = world.sm.plan_routes(&wanted).expect("it is idle");
    assert_eq!((again.rows, again.blocks, again.switches), (0, 0, 0));
    // Host 0 is in both: their links cannot be apart.
    let mut strict = partitions(&[(0x102, &[0, 3]), (0x203, &[0, 2])]);
    strict.list[0].isolation = Isolation::Phy;
    let unmet = world.sm.plan_routes(&strict).expect("it is idle");
    assert!(unmet.refused.is_none() && !unmet.unsatisfied.is_empty(), "{unmet:?}");
    strict.strictness = Strictness::Strict;
    let refused = world.sm.plan_routes(&strict).expect("it is idle").refused;
    assert!(refused.is_some_and(|why| why.contains("pftree-ext")), "an engine that refuses is named");
    // Engines that read no partitions change nothing.
    let mut plain = self::world(self::options(PartEnforce::Off, Some(wanted.clone())));
    assert_eq!(plain.sm.plan_routes(&strict), None);
}

#[test]
fn the_first_partitions_come_while_the_subnet_is_up() {
    let mut world = world(options(PartEnforce::Both, None));
    let (blocks, _, said) = change(&mut world, partitions(&[(0x102, &[0, 1])]));
    assert!(said.contains(&taken(blocks)), "{said:?}");
    // These ports have had other keys, whose places rest.
    let keys = [table(&world, hosts()[1]), table(&world, leaf(hosts()[1]))];
    assert_eq!(keys, [[0x7fff, 0, 0x8102], [0x7fff, 0, 0x8102]]);
}
