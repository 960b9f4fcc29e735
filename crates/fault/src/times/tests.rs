//! Signs in the order in which they come, and what they cost.

use super::*;
use crate::Word;

fn begun(key: &'static str, word: Word) -> Sign<&'static str> {
    Sign::Begun { key, takes_links: word.takes_links() }
}

fn routed(hosts: u32, cables: u32) -> Sign<&'static str> {
    Sign::Routed { hosts, cables }
}

#[test]
fn a_killed_leaf_and_its_way_back() {
    let times = fault_times([
        (1, routed(4, 8)),
        (100, begun("kill leaf", Word::Kill)),
        (103, Sign::Noticed),
        (104, Sign::Noticed),
        (110, routed(2, 4)),
        (200, Sign::Ended("kill leaf")),
        (220, routed(4, 7)),
        (230, routed(4, 8)),
        (300, routed(4, 8)),
    ]);
    let wanted = FaultTimes {
        fault: "kill leaf",
        began_ns: 100,
        lasted_ns: Some(100),
        detected_after_ns: Some(3),
        rerouted_after_ns: Some(10),
        restored_after_ns: Some(30),
        pairs_lost: Some(12 - 2),
    };
    assert_eq!(times, [wanted]);
}

#[test]
fn a_process_killed_from_outside_is_a_fault_without_an_order() {
    const S: u64 = NEWS_NS;
    let times = fault_times([
        (1, Sign::Down("before the fabric was up")),
        (2, routed(4, 8)),
        (100 * S, Sign::Down("S2:1")),
        (100 * S + 1, Sign::Down("S2:3")),
        (100 * S + 5, routed(2, 4)),
        (130 * S, Sign::Up("S2:1")),
        (130 * S + 2, routed(4, 7)),
        (130 * S + 4, Sign::Up("S2:3")),
        (130 * S + 5, Sign::Up("another")),
        (130 * S + 9, routed(4, 8)),
        (200 * S, Sign::Down("S3:1")),
        (200 * S + 4, Sign::Up("S3:1")),
        (200 * S + 5, routed(4, 8)),
    ]);
    let wanted = FaultTimes {
        fault: "S2:1",
        began_ns: 100 * S,
        lasted_ns: Some(30 * S + 4),
        detected_after_ns: None,
        rerouted_after_ns: Some(5),
        restored_after_ns: Some(5),
        pairs_lost: Some(12 - 2),
    };
    assert_eq!(times[0], wanted);
    assert_eq!((times.len(), times[1].fault, times[1].lasted_ns), (2, "S3:1", Some(4)), "the next one");
}

#[test]
fn news_of_a_process_that_was_cut_off_come_late() {
    let mut clock = FaultClock::default();
    clock.see(1, routed(4, 8));
    clock.see(100, Sign::Down("S2:1"));
    clock.see(110, routed(2, 4));
    clock.see(230, routed(4, 8));
    clock.see(220, Sign::Up("S2:1"));
    let told: Vec<_> = clock.take_over(9);
    assert_eq!((told[0].lasted_ns, told[0].restored_after_ns), (Some(120), Some(10)));
    clock.see(101, Sign::Down("S3:1"));
    clock.see(221, Sign::Up("S3:1"));
    clock.see(300, routed(4, 8));
    assert!(clock.take_over(9).is_empty() && clock.all.is_empty(), "it was down before all was whole");
}

#[test]
fn permanent_losses_are_not_waited_for() {
    const S: u64 = NEWS_NS;
    let times = fault_times([
        (1, routed(4, 8)),
        // From outside, and by an order; neither comes back.
        (10 * S, Sign::Down("leaf:1")),
        (11 * S, routed(3, 7)),
        (100 * S, begun("kill b", Word::Kill)),
        (100 * S + 1, Sign::Down("leaf:2")),
        (101 * S, routed(2, 6)),
        // The next faults are timed all the same, against what was left.
        (200 * S, Sign::Down("spine:1")),
        (201 * S, routed(2, 4)),
        (220 * S, Sign::Up("spine:1")),
        (221 * S, routed(2, 6)),
        (300 * S, begun("kill c", Word::Kill)),
        (300 * S + 1, Sign::Noticed),
        (301 * S, routed(1, 5)),
        (310 * S, Sign::Ended("kill c")),
        (311 * S, routed(2, 6)),
    ]);
    let part = |one: &FaultTimes<_>| (one.fault, one.lasted_ns, one.restored_after_ns);
    let known = |fault, lasted| (fault, Some(lasted * S), Some(S));
    assert_eq!(
        times.iter().map(part).collect::<Vec<_>>(),
        [("leaf:1", None, None), ("kill b", None, None), known("spine:1", 20), known("kill c", 10),]
    );
}

#[test]
fn a_link_that_flaps_by_an_order_is_no_fault_from_outside() {
    const S: u64 = NEWS_NS;
    let mut signs = vec![(1, routed(4, 8)), (10 * S, begun("f1", Word::Flap))];
    for turn in 0..4 {
        let at = (10 + 30 * turn) * S;
        signs.extend([(at + 1, Sign::Down("leaf:1")), (at + 2, Sign::Down("host:1"))]);
        signs.extend([(at + 3, Sign::Up("leaf:1")), (at + 4, routed(4, 8))]);
    }
    let times = fault_times(signs);
    assert_eq!(times.iter().map(|one| one.fault).collect::<Vec<_>>(), ["f1"]);
}

#[test]
fn without_route_reports_a_fault_is_over_at_its_end() {
    let mut clock = FaultClock::default();
    clock.see(10, begun("kill leaf", Word::Kill));
    clock.see(11, Sign::Down("spine:1"));
    assert!(clock.take_over(9).is_empty());
    clock.see(20, Sign::Ended("kill leaf"));
    assert_eq!(clock.take_over(9)[0].lasted_ns, Some(10));
}

/// The subnet manager and the hub died after a fault was mended, and with them the routing that mended it: agents remember the fault, and
/// the new manager's first routing is 17 s later.
#[test]
fn times_that_no_process_remembers_are_not_measured() {
    const S: u64 = NEWS_NS;
    let times = fault_times([
        (10 * S, begun("cut", Word::LinkDown)),
        (10 * S + 5, Sign::Noticed),
        (20 * S, Sign::Ended("cut")),
        (36 * S, Sign::Noticed),
        (37 * S, routed(4, 8)),
        (50 * S, begun("kill leaf", Word::Kill)),
        (50 * S + 3, Sign::Noticed),
        (51 * S, routed(2, 4)),
        (60 * S, Sign::Ended("kill leaf")),
        (62 * S, routed(4, 8)),
    ]);
    let part = |one: &FaultTimes<_>| (one.detected_after_ns, one.rerouted_after_ns, one.restored_after_ns);
    assert_eq!(part(&times[0]), (Some(5), None, None));
    assert_eq!((times[0].lasted_ns, times[0].pairs_lost), (Some(10 * S), None));
    assert_eq!(part(&times[1]), (Some(3), Some(S), Some(2 * S)), "what is remembered is measured");
    let cost = FaultCost::of(&times[..1]);
    assert_eq!((cost.detected_after_ns_max, cost.restored_after_ns_max), (Some(5), None));
    assert_eq!(cost.and(FaultCost::of(&times[1..])).restored_after_ns_max, Some(2 * S));
    // The hub tells of it all the same when it is over.
    let mut clock = FaultClock::default();
    clock.see(10, begun("cut", Word::LinkDown));
    clock.see(20, Sign::Ended("cut"));
    clock.see(37, routed(4, 8));
    assert_eq!(clock.take_over(9).len(), 1);
}

#[test]
fn links_that_an_order_takes_down_are_no_fault_from_outside() {
    const S: u64 = NEWS_NS;
    // The neighbour's news may come before the fault's, and more of them after it.
    let times = fault_times([
        (1, routed(4, 8)),
        (10 * S, Sign::Down("S2:1")),
        (10 * S + 1, begun("kill S1", Word::Kill)),
        (10 * S + 2, Sign::Down("S2:3")),
        (20 * S, Sign::Ended("kill S1")),
        (20 * S + 1, Sign::Up("S2:1")),
        (20 * S + 2, routed(4, 8)),
        (30 * S, Sign::Down("S3:1")),
        (30 * S, Sign::Recabled),
    ]);
    assert_eq!(times.iter().map(|one| one.fault).collect::<Vec<_>>(), ["kill S1"]);
}

#[test]
fn a_fault_is_over_when_it_has_ended_and_all_is_routed_again() {
    let mut clock = FaultClock::default();
    clock.see(1, routed(4, 8));
    clock.see(2, begun("loss", Word::Loss));
    clock.see(3, begun("cut", Word::LinkDown));
    clock.see(4, begun("brief", Word::LinkDown));
    clock.see(5, Sign::Ended("brief"));
    clock.see(6, Sign::Ended("loss"));
    let over = |clock: &mut FaultClock<&'static str>| {
        clock.take_over(9).into_iter().map(|times| times.fault).collect::<Vec<_>>()
    };
    assert_eq!(over(&mut clock), ["loss"], "no link is to come back");
    clock.see(7, routed(4, 7));
    assert!(over(&mut clock).is_empty());
    clock.see(8, Sign::Ended("cut"));
    clock.see(9, routed(4, 8));
    assert_eq!(over(&mut clock), ["cut", "brief"]);
    clock.see(10, begun("old", Word::Kill));
    clock.see(11, begun("new", Word::Kill));
    assert!(clock.take_over(1).is_empty());
    assert_eq!(
        clock.all.iter().map(|one| one.times.fault).collect::<Vec<_>>(),
        ["new"],
        "the oldest is forgotten"
    );
}

#[test]
fn a_cable_that_was_taken_out_is_not_waited_for() {
    let cut = |key, clock: &mut FaultClock<&'static str>, at| {
        clock.see(at, begun(key, Word::LinkDown));
        clock.see(at + 1, Sign::Noticed);
        clock.see(at + 2, Sign::Ended(key));
    };
    let mut clock = FaultClock::default();
    clock.see(1, routed(4, 8));
    cut("before", &mut clock, 10);
    clock.see(13, Sign::Recabled);
    clock.see(14, routed(4, 7));
    assert_eq!(clock.take_over(9)[0].restored_after_ns, Some(2));
    cut("after", &mut clock, 20);
    clock.see(23, routed(4, 6));
    assert!(clock.take_over(9).is_empty(), "one more is missing");
    clock.see(24, routed(4, 7));
    assert_eq!(clock.take_over(9)[0].restored_after_ns, Some(2));
    // Without a word, where no fault is under way.
    clock.see(30, routed(3, 6));
    cut("last", &mut clock, 40);
    clock.see(43, routed(3, 6));
    assert_eq!(clock.take_over(9)[0].restored_after_ns, Some(1));
}

#[test]
fn both_ends_are_one_fault_and_the_same_again_is_another() {
    let cut = || begun("f1", Word::LinkDown);
    let signs = [
        (1, routed(4, 8)),
        (10, cut()),
        (11, cut()),
        (12, Sign::Noticed),
        (20, Sign::Ended("f1")),
        (21, Sign::Ended("f1")),
        (30, routed(4, 8)),
        (40, cut()),
    ];
    let times = fault_times(signs);
    let part = |one: &FaultTimes<_>| (one.began_ns, one.lasted_ns, one.restored_after_ns);
    assert_eq!(times.iter().map(part).collect::<Vec<_>>(), [(10, Some(11), Some(9)), (40, None, None)]);
    assert_eq!(times[1].detected_after_ns, None);
}

#[test]
fn a_fault_of_packets_takes_no_link_and_no_other_faults_signs() {
    let signs = [
        (1, routed(4, 8)),
        (10, begun("loss", Word::Loss)),
        (11, begun("kill", Word::Kill)),
        (12, Sign::Noticed),
        (13, routed(3, 7)),
    ];
    let times = fault_times(signs);
    assert_eq!(
        (times[0].detected_after_ns, times[0].rerouted_after_ns, times[0].pairs_lost),
        (None, None, None)
    );
    assert_eq!(
        (times[1].detected_after_ns, times[1].rerouted_after_ns, times[1].pairs_lost),
        (Some(1), Some(2), Some(6))
    );
}
