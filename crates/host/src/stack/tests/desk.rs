//! Times of a host's software beside the sums of what it does (paper 004, lines 787–803, and equations 7 to 9).

use weft_machine::Time;
use weft_wire::{Details, Gid, GidDetails, GidPrefix, Lid, RepathDetails, RepathKind, ServiceLevel, trap};

use super::network::{Network, guid, lid};
use super::{open, options, spec};
use crate::stack::{HandlerTimes, Reconfiguration, StackOptions};
use crate::traffic::FlowSpec;

const TIMES: HandlerTimes = HandlerTimes {
    notice: Time::from_micros(50),
    ask: Time::from_micros(18_000),
    query_qp: Time::from_micros(112),
    migrate: Time::from_micros(438),
};
/// Longer than the toy network takes for a question and its answer.
const ANSWER_MAX: Time = Time::from_micros(200);

fn with_times(handler_times: HandlerTimes) -> StackOptions {
    StackOptions { handler_times, sa_timeout: Time::from_millis(100), ..options() }
}

/// A host with an idle queue pair to each of `peers` others.
fn host(peers: usize, options: &StackOptions) -> Network {
    let mut network = Network::new(peers + 1, options, 1);
    for to in 1..=peers {
        open(&mut network, 0, to, FlowSpec { bytes_max: Some(20_000), ..spec(to as u32, to) });
    }
    network.run(Time::from_millis(20));
    network
}

fn path(to: usize, level: u8) -> RepathDetails {
    let (kind, service_level) = (RepathKind::PATH, ServiceLevel(level));
    RepathDetails { kind, service_level, slid: lid(0), dlid: lid(to), ..RepathDetails::default() }
}

fn only(network: &Network) -> Reconfiguration {
    let all: Vec<_> = network.hosts[0].reconfigurations().copied().collect();
    assert_eq!(all.len(), 1, "{all:?}");
    all[0]
}

fn took(one: &Reconfiguration) -> Time {
    one.ended.saturating_sub(one.began)
}

fn sum(parts: &[(u64, Time)]) -> Time {
    Time::from_nanos(parts.iter().map(|(count, time)| count * time.as_nanos()).sum())
}

/// Equation 9: each notice looks at all queue pairs, and brings one to its level.
#[test]
fn notices_of_levels_are_heeded_one_at_a_time() {
    const PEERS: usize = 5;
    for changes in [1, 3] {
        let mut network = host(PEERS, &with_times(TIMES));
        for to in 1..=changes {
            network.repath(0, trap::REPATH, path(to, 1));
        }
        let each = sum(&[(1, TIMES.notice), (PEERS as u64, TIMES.query_qp), (1, TIMES.migrate)]);
        let all = sum(&[(changes as u64, each)]);
        network.run(all.saturating_sub(Time::from_nanos(1)));
        let moved = |network: &Network| {
            (1..=PEERS)
                .filter(|to| network.sent(0, *to as u32).service_level == Some(ServiceLevel(1)))
                .count()
        };
        assert_eq!(moved(&network), changes - 1, "the last one is not due yet");
        network.run(Time::from_nanos(2));
        assert_eq!(moved(&network), changes);
        let one = only(&network);
        assert_eq!((took(&one), one.queried, one.moved), (all, (changes * PEERS) as u64, changes as u64));
    }
}

/// Equation 8, and half of equation 7: the question, a look at each queue pair, and a move of each that changes.
#[test]
fn a_table_takes_the_time_of_its_queue_pairs() {
    const PEERS: usize = 20;
    for changes in [0, 7] {
        let mut network = host(PEERS, &with_times(TIMES));
        for to in 1..=changes {
            network.levels.insert((lid(0), lid(to)), ServiceLevel(2));
        }
        network.repath(0, trap::REPATH, RepathDetails::default());
        network.run(Time::from_millis(100));
        let one = only(&network);
        assert_eq!((one.queried, one.moved), (PEERS as u64, changes as u64));
        let given = sum(&[
            (1, TIMES.notice),
            (1, TIMES.ask),
            (PEERS as u64, TIMES.query_qp),
            (changes as u64, TIMES.migrate),
        ]);
        let answer = took(&one).saturating_sub(given);
        assert!(
            took(&one) > given && answer < ANSWER_MAX,
            "{changes}: {:?}, of these {answer:?}",
            took(&one)
        );
        let level = |to: usize| network.sent(0, to as u32).service_level.unwrap().0;
        assert!((1..=PEERS).all(|to| level(to) == if to <= changes { 2 } else { 0 }));
    }
}

/// Figure 6: queue pairs are on a list that notices go through, and their creation takes no longer for it.
#[test]
fn creating_queue_pairs_takes_no_handler_time() {
    let made = |options: &StackOptions| host(30, options).reports();
    assert_eq!(made(&with_times(TIMES)), made(&with_times(HandlerTimes::default())));
}

/// Figure 7, with one queue pair: in service, repath where nothing is to be moved, and repath where it is.
#[test]
fn repath_takes_much_longer_than_in_service() {
    let gid = Gid { prefix: GidPrefix::DEFAULT, guid: guid(1) };
    let details = GidDetails { gid, ..GidDetails::default() };
    let handled = |level: Option<u8>, is_repath: bool| {
        let mut network = host(1, &with_times(TIMES));
        network.levels.extend(level.map(|level| ((lid(0), lid(1)), ServiceLevel(level))));
        match is_repath {
            true => network.repath(0, trap::REPATH, RepathDetails::default()),
            false => network.report(0, &Details::Gid(trap::GID_IN_SERVICE, details)),
        }
        network.run(Time::from_millis(50));
        took(&only(&network))
    };
    let [in_service, needless, needed] = [handled(None, false), handled(None, true), handled(Some(1), true)];
    assert_eq!(in_service, TIMES.notice);
    assert!(needless > sum(&[(100, in_service)]), "{needless:?} {in_service:?}");
    assert_eq!(needed, needless + TIMES.migrate);
}

/// Figure 8: with more queue pairs than t1 and t2 are long, most of the time is `ib_query_qp` and path migration.
#[test]
fn most_of_repath_is_queries_and_migration() {
    for (peers, is_most) in [(1, false), (40, true)] {
        let mut network = host(peers, &with_times(TIMES));
        for to in 1..=peers {
            network.levels.insert((lid(0), lid(to)), ServiceLevel(1));
        }
        network.repath(0, trap::REPATH, RepathDetails::default());
        network.run(Time::from_millis(100));
        let one = only(&network);
        let parts = sum(&[(one.queried, TIMES.query_qp), (one.moved, TIMES.migrate)]);
        assert_eq!(parts.as_nanos() * 2 > took(&one).as_nanos(), is_most, "{peers}: {one:?}");
    }
}

/// What waits is bounded. The oldest is heeded early, so that the latest word about a path is the last.
#[test]
fn too_many_notices_are_heeded_early_and_in_order() {
    let slow = HandlerTimes { notice: Time::from_secs(10), ..TIMES };
    let mut network = host(2, &with_times(slow));
    for number in 0..5000u32 {
        network.repath(0, trap::REPATH, path(1, (number % 3) as u8));
    }
    network.repath(0, trap::REPATH, path(2, 3));
    let level = |network: &Network, flow| network.sent(0, flow).service_level.unwrap().0;
    let heeded = network.hosts[0].counts().repaths;
    assert_eq!(heeded, 5001 - 4097, "one in hand, and 4096 wait");
    assert_eq!((u64::from(level(&network, 1)), level(&network, 2)), ((heeded - 1) % 3, 0));
    network.suspend(0);
    network.resume(0);
    assert_eq!(
        (level(&network, 1), level(&network, 2)),
        ((4999 % 3) as u8, 3),
        "a stack that stops leaves nothing"
    );
}

/// A table that waits to be taken is of the address that its port had.
#[test]
fn a_table_of_another_address_is_not_taken() {
    let mut network = host(3, &with_times(HandlerTimes { query_qp: Time::from_millis(30), ..TIMES }));
    network.levels.insert((lid(0), lid(1)), ServiceLevel(4));
    network.repath(0, trap::REPATH, RepathDetails::default());
    network.run(Time::from_millis(40));
    assert_eq!(network.hosts[0].bulk_counts().answered, 1);
    network.levels.insert((lid(0), lid(1)), ServiceLevel(5));
    network.tell(0, |facts| facts.sm_lid = Lid(facts.sm_lid.0 + 1));
    network.tell(0, |facts| facts.sm_lid = Lid(facts.sm_lid.0 - 1));
    network.run(Time::from_millis(200));
    let level = network.sent(0, 1).service_level;
    assert_eq!(level, Some(ServiceLevel(5)), "asked for again");
    assert!(network.sent(0, 1).moves.iter().all(|moved| moved.to != ServiceLevel(4)));
}
