//! Subscriptions, and the Reports that traps lead to.

use super::client::*;
pub use super::client::{everything, reports, subscribe};
use super::fake::World;
use weft_machine::Time;
use weft_sm::Input;
use weft_topology::PortRef;
use weft_wire::*;

pub fn records(world: &mut World) -> Vec<InformInfoRecord> {
    table(world, &Asked::all::<InformInfoRecord>()).expect("a table")
}

/// The first leaf, which has a link to the first host.
fn leaf(world: &World) -> PortRef {
    world.fake.fabric.peer(world.fake.own).expect("it is cabled")
}

/// Trap 128 from the first leaf, which has nothing to say.
fn trap(world: &mut World) -> Lid {
    let leaf = leaf(world);
    world.traps(&[leaf]);
    world.run_for(Time::from_millis(1));
    lid_of(world, leaf.node, PortNum(0))
}

#[test]
fn a_trap_is_forwarded_to_who_wants_it() {
    let mut world = tree();
    let (a, b) = (Lid(3), Lid(4));
    assert_eq!(subscribe(&mut world, a, &everything()), Ok(everything()));
    let other = InformInfo { trap_number: trap::LOCAL_CHANGES, ..everything() };
    subscribe(&mut world, b, &other).unwrap();
    let from = trap(&mut world);
    let found = reports(&mut world, true);
    let [(to, notice)] = found[..] else { panic!("{found:?}") };
    assert_eq!((to, notice.trap_number, notice.issuer_lid), (a, trap::LINK_STATE_CHANGE, from));
    let guid = world.fake.fabric.node(leaf(&world).node).guid;
    assert_eq!(notice.issuer_gid, Gid { prefix: GidPrefix::DEFAULT, guid });
    assert_eq!(notice.details(), Details::link_state_change(from));
    // It was answered, so it does not come again.
    world.run_for(Time::from_secs(5));
    assert_eq!(reports(&mut world, true), []);
    // Nor does another come for the same trap sent again.
    let counts = world.sm.sa_counts();
    assert_eq!((counts.reports, counts.reports_unanswered), (1, 0));
}

#[test]
fn each_condition_of_a_subscription() {
    let wanted = everything();
    let range =
        |from: u16, to: u16| InformInfo { lid_range_begin: Lid(from), lid_range_end: Lid(to), ..wanted };
    for (name, change, heard) in [
        ("type", InformInfo { notice_type: NoticeType::Urgent.code().into(), ..wanted }, true),
        ("other type", InformInfo { notice_type: NoticeType::Security.code().into(), ..wanted }, false),
        ("switches", InformInfo { producer_type: 2, ..wanted }, true),
        ("HCAs", InformInfo { producer_type: 1, ..wanted }, false),
        ("vendors", InformInfo { is_generic: 0, ..wanted }, false),
        ("all LIDs", range(1, 0xbfff), true),
        ("high LIDs", range(0x1000, 0xbfff), false),
    ] {
        let mut world = tree();
        subscribe(&mut world, Lid(3), &change).unwrap();
        trap(&mut world);
        assert_eq!(reports(&mut world, true).len(), usize::from(heard), "{name}");
    }
    for about_leaf in [true, false] {
        let mut world = tree();
        let port = if about_leaf { PortRef::new(leaf(&world).node, PortNum(0)) } else { world.fake.own };
        let guid = world.fake.fabric.port(port).unwrap().guid;
        let gid = Gid { prefix: GidPrefix::DEFAULT, guid };
        subscribe(&mut world, Lid(3), &InformInfo { gid, ..wanted }).unwrap();
        trap(&mut world);
        assert_eq!(reports(&mut world, true).len(), usize::from(about_leaf));
    }
}

#[test]
fn invalid_subscriptions_are_refused() {
    let mut world = tree();
    let wanted = everything();
    let stranger = Gid { prefix: GidPrefix::DEFAULT, guid: Guid(0xdead) };
    for (info, status) in [
        (InformInfo { subscribe: 2, ..wanted }, sa_status::REQ_INVALID),
        (InformInfo { subscribe: 0, ..wanted }, sa_status::REQ_INVALID),
        (InformInfo { gid: stranger, ..wanted }, sa_status::REQ_INVALID_GID),
        (InformInfo { lid_range_begin: Lid(0), ..wanted }, sa_status::REQ_INVALID),
        (InformInfo { lid_range_begin: Lid(5), lid_range_end: Lid(4), ..wanted }, sa_status::REQ_INVALID),
    ] {
        assert_eq!(subscribe(&mut world, Lid(3), &info), Err(status), "{info:?}");
    }
    assert_eq!(subscribe(&mut world, Lid(0x1234), &wanted), Err(status::BUSY), "nobody has that LID yet");
    assert_eq!(records(&mut world), []);
    let get = Asked::new(Method::Get, AttributeId::InformInfo);
    assert_eq!(exchange(&mut world, &get).0.status(), status::BAD_METHOD_ATTRIBUTE);
}

#[test]
fn subscribing_twice_is_once_and_unsubscribing_ends_it() {
    let mut world = tree();
    let first = everything();
    let second = InformInfo { trap_number: TrapNumber(64), ..first };
    for info in [first, second, first] {
        subscribe(&mut world, Lid(3), &info).unwrap();
    }
    let listed = records(&mut world);
    let of: Vec<_> = listed.iter().map(|record| (record.enumeration, record.inform_info)).collect();
    assert_eq!(of, [(0, first), (1, second)]);
    // The queue pair and the answer time are not part of what is subscribed to.
    let end = InformInfo { subscribe: 0, qpn: QpNum(1), resp_time_value: 9, ..first };
    assert_eq!(subscribe(&mut world, Lid(4), &end), Err(sa_status::REQ_INVALID), "that is somebody else's");
    assert!(subscribe(&mut world, Lid(3), &end).is_ok());
    trap(&mut world);
    assert_eq!(reports(&mut world, true), []);
    assert_eq!(records(&mut world).len(), 1);
}

#[test]
fn a_report_that_nobody_answers_is_repeated_and_given_up() {
    let mut world = tree();
    subscribe(&mut world, Lid(3), &everything()).unwrap();
    for round in 1..=4u64 {
        trap(&mut world);
        world.run_for(Time::from_secs(3));
        assert_eq!(reports(&mut world, false).len(), 4, "once and three times again");
        assert_eq!(world.sm.sa_counts().reports_unanswered, round);
    }
    assert_eq!(records(&mut world), [], "so many in a row end the subscription");
    trap(&mut world);
    assert_eq!(reports(&mut world, false), []);
}

#[test]
fn there_is_an_end_to_subscriptions() {
    let mut world = tree();
    let info = |n| InformInfo { trap_number: TrapNumber(n), ..everything() };
    for n in 0..64 {
        subscribe(&mut world, Lid(3), &info(n)).unwrap();
    }
    assert_eq!(subscribe(&mut world, Lid(3), &info(64)), Err(sa_status::NO_RESOURCES));
    assert!(subscribe(&mut world, Lid(4), &info(64)).is_ok(), "somebody else still can");
}

/// Traps 64 and 65 report ports that come and go; a port that goes takes its subscriptions along.
#[test]
fn ports_that_come_and_go() {
    let mut world = tree();
    let (last, _) = world.fake.fabric.hosts().last().unwrap();
    let its_lid = lid_of(&world, last, PortNum(1));
    let guid = world.fake.fabric.port(PortRef::new(last, PortNum(1))).unwrap().guid;
    let gone = InformInfo { trap_number: trap::GID_OUT_OF_SERVICE, ..everything() };
    let come = InformInfo { trap_number: trap::GID_IN_SERVICE, ..everything() };
    for info in [gone, come] {
        subscribe(&mut world, Lid(3), &info).unwrap();
    }
    subscribe(&mut world, its_lid, &everything()).unwrap();
    assert_ne!(its_lid, Lid(3));
    let own = lid_of(&world, world.fake.own.node, world.fake.own.port);
    for number in [trap::GID_OUT_OF_SERVICE, trap::GID_IN_SERVICE] {
        let neighbours =
            if number == trap::GID_OUT_OF_SERVICE { world.fake.kill(last) } else { world.fake.restart(last) };
        world.command(Input::Resweep { heavy: true });
        let _ = neighbours;
        world.run_for(Time::from_millis(150));
        let found = reports(&mut world, true);
        let [(to, notice)] = found[..] else { panic!("{number}: {found:?}") };
        assert_eq!((to, notice.trap_number, notice.issuer_lid), (Lid(3), number, own));
        let Details::Gid(_, details) = notice.details() else { panic!("{notice:?}") };
        assert_eq!(details.gid, Gid { prefix: GidPrefix::DEFAULT, guid });
        assert_eq!(records(&mut world).len(), 2, "the one of the port that left is gone");
    }
}

/// A subscriber that stays keeps its number; those that come and go use the others again and again.
#[test]
fn numbers_of_subscriptions_do_not_run_out() {
    let mut world = tree();
    let info = |n| InformInfo { trap_number: TrapNumber(n), ..everything() };
    for n in [64, 65, 66] {
        subscribe(&mut world, Lid(3), &info(n)).unwrap();
    }
    for _ in 0..70_000 {
        for subscribe in [0, 1] {
            let asked = Asked::new(Method::Set, AttributeId::InformInfo);
            let asked = asked.with_bytes(0, &InformInfo { subscribe, ..info(65) }.encode());
            world.command(Input::Receive(asked.mad()));
            assert_eq!(world.administration.pop_front().unwrap().mad.status(), status::OK);
        }
    }
    let numbers: Vec<_> = records(&mut world)
        .iter()
        .map(|record| (record.enumeration, record.inform_info.trap_number.0))
        .collect();
    assert_eq!(numbers, [(0, 64), (1, 65), (2, 66)]);
}

/// What waits for somebody who has unsubscribed meanwhile is not sent, and whoever gets the number then is not blamed
/// for what the one before left unanswered.
#[test]
fn reports_of_an_ended_subscription_are_dropped() {
    let mut world = tree();
    subscribe(&mut world, Lid(3), &everything()).unwrap();
    for _ in 0..40 {
        trap(&mut world);
    }
    let first = reports(&mut world, false).len();
    assert_eq!(first, 4, "the part of the window that one subscription has");
    subscribe(&mut world, Lid(3), &InformInfo { subscribe: 0, ..everything() }).unwrap();
    subscribe(&mut world, Lid(3), &InformInfo { trap_number: trap::REPATH, ..everything() }).unwrap();
    world.run_for(Time::from_secs(60));
    let rest = reports(&mut world, false).len();
    assert!(rest <= 4 * 3, "{rest}: no more than the first ones again");
    let listed = records(&mut world);
    assert_eq!(listed.iter().map(|record| record.enumeration).collect::<Vec<_>>(), [0]);
}
