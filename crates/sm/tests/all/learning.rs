//! Routing that learns from what hosts receive.
//!
//! Two leaves of four hosts and two spines: a host of the second leaf reaches one of the first by the cable up that the row of its leaf
//! names, and the cable down from there is the busiest. With hosts that receive equal parts from all seven others, four of which are on
//! the second leaf, the shares are four sevenths of what is behind a cable.

use weft_machine::Time;
use weft_sm::{Activity, Event, Learning, Options, Reason, RoutingOptions, SaOptions};
use weft_topology::generate::{GenerateOptions, xgft};
use weft_topology::{NodeIndex, PortRef};
use weft_wire::*;

use crate::fake::World;
use crate::sa::client::{Asked, lid_of, up};

const PM: Lid = Lid(4);
const BILLION: u64 = 1_000_000_000;

fn routing(engine: &str) -> RoutingOptions {
    let is_by_order = engine != "pftree-wt";
    RoutingOptions {
        chain: engine.parse().expect("an engine"),
        learn_weights: !is_by_order,
        learn_order: is_by_order,
        ..RoutingOptions::default()
    }
}

fn site(options: Options) -> World {
    up(xgft(&[4, 2], &[1, 2], &GenerateOptions::default()).expect("a tree"), options)
}

/// The hosts of each leaf, in the order of nodes, and the leaf.
fn leaves(world: &World) -> Vec<(NodeIndex, Vec<PortRef>)> {
    let fabric = &world.fake.fabric;
    let mut leaves: Vec<(NodeIndex, Vec<PortRef>)> = Vec::new();
    for (node, _) in fabric.hosts() {
        let port = PortRef::new(node, PortNum(1));
        let leaf = fabric.peer(port).expect("a cable").node;
        match leaves.iter_mut().find(|(at, _)| *at == leaf) {
            Some((_, hosts)) => hosts.push(port),
            None => leaves.push((leaf, vec![port])),
        }
    }
    leaves
}

/// The cable up by which the second leaf sends to a host of the first.
fn row(world: &World, host: PortRef) -> PortNum {
    let lid = lid_of(world, host.node, host.port);
    world.fake.devices[leaves(world)[1].0.index()].lft[usize::from(lid.0)]
}

/// Two hosts of the first leaf that one cable leads to.
fn sharing(world: &World) -> [PortRef; 2] {
    let hosts = &leaves(world)[0].1;
    let pairs = hosts.iter().flat_map(|a| hosts.iter().map(move |b| [*a, *b]));
    pairs.into_iter().find(|[a, b]| a < b && row(world, *a) == row(world, *b)).expect("four on two cables")
}

fn ask(world: &mut World, method: Method, part: &ReceivedData, key: u64) -> (u16, ReceivedData) {
    ask_from(world, PM, method, part, key)
}

fn ask_from(
    world: &mut World,
    from: Lid,
    method: Method,
    part: &ReceivedData,
    key: u64,
) -> (u16, ReceivedData) {
    let asked = Asked { from, key: SmKey(key), ..Asked::new(method, sa_attribute::RECEIVED_DATA) };
    world.command(weft_sm::Input::Receive(asked.with_bytes(0, &part.encode()).mad()));
    let head = world.administration.pop_front().expect("an answer").mad;
    (head.status(), ReceivedData::decode(&SaMad::data.get(&head.0)))
}

/// Reports what these hosts have received, and that all others have received nothing.
fn report(world: &mut World, received: &[(PortRef, u64)]) {
    let fabric = &world.fake.fabric;
    let guid = |port: PortRef| fabric.port(port).expect("a port").guid;
    let all = leaves(world).into_iter().flat_map(|(_, hosts)| hosts);
    let bytes = |port: PortRef| received.iter().find(|(at, _)| *at == port).map_or(0, |(_, bytes)| *bytes);
    let counts: Vec<(Guid, u64)> = all.map(|port| (guid(port), bytes(port))).collect();
    let (status, begun) = ask(world, Method::Get, &ReceivedData::default(), 0);
    assert_eq!(status, status::OK);
    // In two parts, the last one first.
    for (at, hosts) in [(1, &counts[4..]), (0, &counts[..4])] {
        let mut part = ReceivedData { report: begun.report, part: at, parts: 2, ..ReceivedData::default() };
        for (place, (guid, bytes)) in hosts.iter().enumerate() {
            (part.guids[place], part.bytes[place]) = (*guid, *bytes);
        }
        assert_eq!(ask(world, Method::Set, &part, 0), (status::OK, part));
    }
    world.run_for(Time::from_secs(3));
    world.run_until(Activity::Up);
}

/// What the last weighing came to.
fn weighed(world: &World) -> (u32, u64, Option<u64>, bool) {
    let last = world.events.iter().rev().find_map(|(_, event)| match event {
        Event::ReceivedWeighed { hosts, before, after, is_taken } => {
            Some((*hosts, u64::from(*before), after.map(u64::from), *is_taken))
        }
        _ => None,
    });
    last.expect("tables were weighed")
}

fn heavy_sweeps(world: &World) -> usize {
    let received = |event: &Event| matches!(event, Event::SweepStarted { reason: Reason::Received, .. });
    world.events.iter().filter(|(_, event)| received(event)).count()
}

/// Four sevenths of a share, rounded down as the manager does.
fn behind(part: u64, all: u64) -> u64 {
    BILLION * part * 4 / all / 7
}

#[track_caller]
fn near(found: u64, wanted: u64) {
    assert!(found.abs_diff(wanted) <= 1, "{found} and not {wanted}");
}

#[test]
fn two_hosts_that_receive_much_part_and_stay_apart() {
    for engine in ["pftree-wt", "ftree", "vswitch-ftree", "pftree"] {
        let mut world = site(routing(engine).into());
        let [a, b] = sharing(&world);
        let before = world.fake.lft_sets.clone();
        report(&mut world, &[(a, 1000), (b, 1000)]);
        let (hosts, by_old, by_new, is_taken) = weighed(&world);
        assert_eq!((hosts, is_taken), (8, true), "{engine}");
        near(by_old, behind(2000, 2000));
        near(by_new.expect("an engine serves"), behind(1000, 2000));
        assert_ne!(row(&world, a), row(&world, b), "{engine}: each has a cable of its own");
        assert_eq!(heavy_sweeps(&world), 1);
        world.check();
        // One block of LIDs: each switch gets at most one write.
        for (node, sets) in &world.fake.lft_sets {
            assert!(sets - before.get(node).copied().unwrap_or(0) <= 1, "{engine}: {node:?}");
        }
        // What was learned holds in later sweeps, and the same report changes nothing.
        let rows = [row(&world, a), row(&world, b)];
        world.command(weft_sm::Input::Resweep { heavy: true });
        world.run_until(Activity::Up);
        assert_eq!([row(&world, a), row(&world, b)], rows, "{engine}");
        report(&mut world, &[(a, 1000), (b, 1000)]);
        let (_, by_old, by_new, is_taken) = weighed(&world);
        assert_eq!((by_new, is_taken), (Some(by_old), false), "{engine}");
        let Learning { taken, kept, busiest } = world.sm.progress().learning;
        assert_eq!((taken, kept, u64::from(busiest)), (1, 1, by_old), "{engine}");
        assert_eq!((heavy_sweeps(&world), world.sm.sa_counts().received_reports), (1, 2), "{engine}");
    }
}

#[test]
fn a_gain_of_less_than_a_tenth_changes_nothing() {
    let mut world = site(routing("pftree-wt").into());
    let [a, b] = sharing(&world);
    let before = world.fake.lft_sets.clone();
    report(&mut world, &[(a, 1000), (b, 50)]);
    let (_, by_old, by_new, is_taken) = weighed(&world);
    near(by_old, behind(1050, 1050));
    near(by_new.expect("an engine serves"), behind(1000, 1050));
    assert!(!is_taken);
    assert_eq!((heavy_sweeps(&world), &world.fake.lft_sets), (0, &before));
    assert_eq!(row(&world, a), row(&world, b), "the tables stay");
    // A little more is taken: a ninth of what the first host receives is a tenth of both.
    report(&mut world, &[(a, 1000), (b, 120)]);
    let (_, by_old, by_new, is_taken) = weighed(&world);
    near(by_old, behind(1120, 1120));
    near(by_new.expect("an engine serves"), behind(1000, 1120));
    assert!(is_taken);
}

#[test]
fn stale_forged_and_unwanted_reports_are_refused() {
    let none = ReceivedData::default();
    let mut world = site(routing("pftree-wt").into());
    let (_, first) = ask(&mut world, Method::Get, &none, 0);
    let (_, second) = ask(&mut world, Method::Get, &none, 0);
    let part = |report| ReceivedData { report, parts: 1, ..none };
    let stale = ask(&mut world, Method::Set, &part(first.report), 0).0;
    assert_eq!(stale, sa_status::REQ_INVALID, "of a report before");
    let forged = ask(&mut world, Method::Set, &part(second.report), 77).0;
    assert_eq!(forged, sa_status::REQ_DENIED, "with a wrong key");
    assert_eq!(ask(&mut world, Method::Set, &part(second.report), 0).0, status::OK);
    world.run_for(Time::from_secs(3));
    assert_eq!(world.sm.sa_counts().received_refused, 1, "a wrong key never comes so far");
    // A report of no one: nothing was received, and nothing is gained.
    assert_eq!(weighed(&world), (0, 0, Some(0), false));

    let plain = Options::from(RoutingOptions { learn_weights: false, ..routing("pftree-wt") });
    assert_eq!(ask(&mut site(plain), Method::Get, &none, 0).0, sa_status::REQ_INVALID, "nothing learns");
    let sa = SaOptions { repath_needs_key: true, ..SaOptions::default() };
    let mut strict = site(Options { sa, ..routing("pftree-wt").into() });
    assert_eq!(ask(&mut strict, Method::Get, &none, 0).0, sa_status::REQ_DENIED, "the key is not shown");
    assert_eq!(ask(&mut strict, Method::Get, &none, 1).0, status::OK);
}

/// A port has its LID before the sweep that gave it ends, and asks again; nothing was refused.
#[test]
fn one_that_is_not_known_yet_is_to_ask_again() {
    let mut world = site(routing("pftree-wt").into());
    let unknown = Lid(0x1234);
    for method in [Method::Get, Method::Set] {
        let part = ReceivedData { report: 1, parts: 1, ..ReceivedData::default() };
        assert_eq!(ask_from(&mut world, unknown, method, &part, 0).0, status::BUSY, "{method:?}");
    }
    assert_eq!(world.sm.sa_counts().received_refused, 0);
    assert_eq!(ask(&mut world, Method::Get, &ReceivedData::default(), 0).0, status::OK);
}
