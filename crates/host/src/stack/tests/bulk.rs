//! The question for all paths at once: its answer, and what may go wrong with it.

use std::collections::BTreeSet;

use weft_machine::Time;
use weft_wire::{RepathDetails, ServiceLevel, trap};

use super::network::{Network, guid, lid};
use super::{open, options, spec};
use crate::stack::{BulkCounts, Stack};
use crate::traffic::FlowSpec;

/// A flow that ends soon; its queue pair stays.
fn short(flow: u32, to: usize) -> FlowSpec {
    FlowSpec { bytes_max: Some(20_000), ..spec(flow, to) }
}

/// A host with a flow to each of the others.
fn all_from_0(hosts: usize) -> Network {
    let mut network = Network::new(hosts, &options(), 1);
    for to in 1..hosts {
        open(&mut network, 0, to, short(to as u32, to));
    }
    network.run(Time::from_millis(20));
    network
}

#[test]
fn an_answer_comes_in_segments_and_is_acknowledged_by_window() {
    let mut network = all_from_0(101);
    let asked = network.asked;
    for to in 1..101 {
        network.levels.insert((lid(0), lid(to)), ServiceLevel(1));
    }
    network.repath(0, trap::REPATH, RepathDetails::default());
    network.run(Time::from_millis(1));
    assert_eq!(network.asked - asked, 1, "one question for a hundred paths");
    // 101 records of 64 bytes, 200 bytes a segment: the first is acknowledged, then the window of 64 at its end.
    let counts = BulkCounts { asked: 1, answered: 1, segments: 33, acks: 2, ..BulkCounts::default() };
    assert_eq!(network.hosts[0].bulk_counts(), counts);
    assert!((1..101).all(|to| network.sent(0, to).service_level == Some(ServiceLevel(1))));
}

#[test]
fn a_host_without_paths_asks_nothing() {
    let mut network = Network::new(2, &options(), 1);
    network.run(Time::from_millis(1));
    network.repath(0, trap::REPATH, RepathDetails::default());
    network.run(Time::from_millis(10));
    assert_eq!(network.hosts[0].bulk_counts(), BulkCounts::default());
}

/// Pauses grow, and no two hosts that were refused at one moment come back at one.
#[test]
fn hosts_that_find_it_busy_come_back_one_by_one() {
    const HOSTS: usize = 40;
    let mut network = Network::new(HOSTS, &options(), 1);
    for host in 0..HOSTS {
        open(&mut network, host, (host + 1) % HOSTS, short(host as u32, (host + 1) % HOSTS));
    }
    network.run(Time::from_millis(2));
    for host in 0..HOSTS {
        network.levels.insert((lid(host), lid((host + 1) % HOSTS)), ServiceLevel(1));
    }
    network.busy_answers = 100;
    for host in 0..HOSTS {
        network.repath(host, trap::REPATH, RepathDetails::default());
    }
    network.run_until(Time::from_millis(20), |network| {
        (0..HOSTS).all(|host| network.sent(host, host as u32).service_level == Some(ServiceLevel(1)))
    });
    let counts: Vec<BulkCounts> = network.hosts.iter().map(Stack::bulk_counts).collect();
    assert_eq!(counts.iter().map(|counts| counts.busy).sum::<u64>(), 100);
    assert!(counts.iter().all(|counts| counts.answered == 1 && counts.failed == 0), "{counts:?}");
    let again: Vec<Time> = network.asked_in_bulk.iter().skip(HOSTS).map(|(at, _)| *at).collect();
    assert_eq!(again.len(), 100);
    assert_eq!(again.iter().collect::<BTreeSet<_>>().len(), again.len(), "{again:?}");
}

#[test]
fn an_answer_that_is_aborted_is_asked_for_again() {
    let mut network = all_from_0(20);
    network.levels.insert((lid(0), lid(3)), ServiceLevel(2));
    network.broken = 2;
    network.repath(0, trap::REPATH, RepathDetails::default());
    network.run(Time::from_millis(5));
    let counts = network.hosts[0].bulk_counts();
    assert_eq!((counts.asked, counts.answered, counts.broken), (3, 1, 2));
    assert_eq!(network.sent(0, 3).service_level, Some(ServiceLevel(2)));
}

#[test]
fn a_manager_that_is_silent_is_asked_until_it_answers() {
    let mut network = all_from_0(3);
    network.levels.insert((lid(0), lid(1)), ServiceLevel(3));
    network.sm_alive = false;
    network.repath(0, trap::REPATH, RepathDetails::default());
    network.run(Time::from_millis(30));
    assert_eq!(network.hosts[0].bulk_counts().failed, 1);
    network.sm_alive = true;
    network.run(Time::from_millis(30));
    assert_eq!(network.sent(0, 1).service_level, Some(ServiceLevel(3)));
}

#[test]
fn a_port_that_the_answer_leaves_out_has_no_path() {
    let mut network = all_from_0(3);
    network.absent.push(guid(2));
    network.repath(0, trap::REPATH, RepathDetails::default());
    network.run(Time::from_millis(1));
    assert_eq!(network.hosts[0].counts().questions_failed, 1);
}
