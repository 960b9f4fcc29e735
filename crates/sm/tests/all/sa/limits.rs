//! Limits of one requester, so that others are served.

use super::client::*;
use super::events::{everything, subscribe};
use super::fake::World;
use weft_machine::Time;
use weft_mgmt::rmpp::{Inbox, InboxLimits};
use weft_sm::{Input, Options, RoutingOptions};
use weft_topology::PortRef;
use weft_topology::generate::{GenerateOptions, xgft};
use weft_wire::*;

/// Who asks and does not listen, and who does.
const HOG: Lid = Lid(4);
const OTHER: Lid = Lid(3);

/// The status of the answer to a request whose table is acknowledged, whatever else is sent meanwhile.
fn status_beside(world: &mut World, asked: &Asked) -> u16 {
    world.command(Input::Receive(asked.mad()));
    let mut inbox = Inbox::new(InboxLimits::default());
    for _ in 0..100_000 {
        let Some(answer) = world.administration.pop_front() else {
            world.run_for(Time::from_millis(1));
            continue;
        };
        if answer.lid != asked.from {
            continue;
        }
        if !answer.mad.is_rmpp_active() {
            return answer.mad.status();
        }
        let received = inbox.handle(world.now, &answer);
        while let Some(ack) = inbox.poll_transmit() {
            world.command(Input::Receive(ack));
        }
        if received.is_some() {
            return status::OK;
        }
    }
    panic!("no answer to {asked:?}")
}

#[test]
fn a_host_without_table_acks_leaves_room_for_others() {
    let mut world = tree();
    let nodes = Asked::all::<NodeRecord>();
    let mut id = 100;
    for half_second in 0..16 {
        for _ in 0..270 {
            id += 1;
            // Each in the name of another program.
            world.command(Input::Receive(Asked { from: HOG, id: id << 32 | id, ..nodes }.mad()));
        }
        let asked = Asked { from: OTHER, id: half_second + 1, ..nodes };
        assert_eq!(status_beside(&mut world, &asked), status::OK, "after {half_second} half seconds");
        world.run_for(Time::from_millis(500));
    }
    let counts = world.sm.sa_counts();
    assert!(counts.limited.requester_tables >= 200 * 16, "{counts:?}");
    assert_eq!(counts.limited.busy, counts.limited.requester_tables, "nobody else is told that it is busy");
}

/// With an LMC, a host has several LIDs to ask from and is one requester all the same.
#[test]
fn a_host_with_several_lids_has_the_share_of_one() {
    let fabric = xgft(&[2, 2], &[1, 2], &GenerateOptions::default()).unwrap();
    let mut world = up(fabric, Options::from(RoutingOptions { lmc: 3, ..RoutingOptions::default() }));
    let nodes = Asked::all::<NodeRecord>();
    let host = world.fake.fabric.hosts().nth(2).unwrap().0;
    let host = lid_of(&world, host, PortNum(1));
    for id in 0..270_u64 {
        let from = Lid(host.0 + (id % 8) as u16);
        world.command(Input::Receive(Asked { from, id: id << 32 | id, ..nodes }.mad()));
    }
    // 32 tables are under way, and no more.
    assert_eq!(world.sm.sa_counts().limited.requester_tables, 270 - 32, "{:?}", world.sm.sa_counts());
}

#[test]
fn one_program_leaves_room_for_another_of_the_same_host() {
    let mut world = tree();
    let nodes = Asked::all::<NodeRecord>();
    for id in 0..270 {
        world.command(Input::Receive(Asked { from: HOG, id: 7 << 48 | id, ..nodes }.mad()));
    }
    let asked = Asked { from: HOG, id: 8 << 48 | 1, ..nodes };
    world.administration.clear();
    world.command(Input::Receive(asked.mad()));
    let answer = world.administration.pop_front().expect("an answer at once");
    assert_eq!((answer.mad.status(), answer.mad.transaction_id().0), (status::OK, asked.id));
    assert!(world.sm.sa_counts().limited.requester_tables > 0);
}

#[test]
fn a_requester_waiting_for_tables_leaves_room_for_others() {
    let mut world = tree();
    let guids = Asked::all::<GuidInfoRecord>();
    for id in 0..270 {
        world.command(Input::Receive(Asked { from: HOG, id, ..guids }.mad()));
    }
    assert_eq!(status_beside(&mut world, &Asked { from: OTHER, ..guids }), status::OK);
    let counts = world.sm.sa_counts();
    assert_eq!((counts.limited.requester_waiting, counts.limited.busy), (262, 262), "{counts:?}");
}

/// Trap 128 from the first leaf, which has nothing to say.
fn trap(world: &mut World) {
    let leaf: PortRef = world.fake.fabric.peer(world.fake.own).expect("it is cabled");
    world.traps(&[leaf]);
    world.run_for(Time::from_micros(500));
}

/// Takes the Reports that are there, and answers those of `OTHER`.
fn hear(world: &mut World) -> u64 {
    let mut heard = 0;
    while let Some(report) = world.administration.pop_front() {
        if report.lid == OTHER && report.mad.method() == Method::Report {
            heard += 1;
            let mut response = report;
            SaMad::method.set(&mut response.mad.0, Method::ReportResp);
            world.command(Input::Receive(response));
        }
    }
    heard
}

/// As many subscriptions as one subscriber may have, all to the same traps.
fn subscribe_64_times(world: &mut World, from: Lid) {
    for last in 0..64 {
        let range = InformInfo {
            gid: Gid::default(),
            lid_range_begin: Lid(1),
            lid_range_end: Lid(0xbf00 + last),
            ..everything()
        };
        subscribe(world, from, &range).expect("it may have 64");
    }
}

#[test]
fn a_subscriber_that_does_not_answer_keeps_no_other_waiting() {
    let mut world = tree();
    subscribe_64_times(&mut world, HOG);
    subscribe(&mut world, OTHER, &everything()).unwrap();
    let mut heard = 0;
    for _ in 0..100 {
        trap(&mut world);
        heard += hear(&mut world);
    }
    assert_eq!(heard, 100, "each at once, while the other's wait for their timeouts");
    // Once the silent one's subscription has ended, nothing more is sent there.
    for _ in 0..1000 {
        world.run_for(Time::from_millis(500));
        hear(&mut world);
    }
    let counts = world.sm.sa_counts();
    world.run_for(Time::from_secs(20));
    assert_eq!(world.sm.sa_counts().reports, counts.reports);
    // Four in a row end each of the 64 subscriptions, and up to three more were in flight.
    assert!((64 * 4..=64 * 7).contains(&counts.reports_unanswered), "{counts:?}");
}
