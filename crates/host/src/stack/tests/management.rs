//! A host's requests to the manager, and their retries.

use weft_machine::{Machine, Time};
use weft_mgmt::RequestTimer;
use weft_wire::{Lid, RepathDetails, RepathKind, ServiceLevel, sa_status, status, trap};

use super::network::{Network, guid, lid};
use super::{open, options, spec};
use crate::stack::StackTimer;
use crate::traffic::{Command, FlowId};

/// Goes on until a timer of this kind has come, and questions of it.
fn until(network: &mut Network, wanted: StackTimer) {
    for _ in 0..1000 {
        let timer = network.hosts[0].next_timer().expect("somebody who does not answer is asked again");
        assert_eq!(Some(timer.at), network.hosts[0].poll_timeout());
        let before = network.hosts[0].counts().questions;
        network.run(timer.at.saturating_sub(network.now));
        if timer.reason == wanted && network.hosts[0].counts().questions > before {
            return;
        }
    }
    panic!("nothing comes of {wanted}");
}

#[test]
fn its_timer_says_what_it_then_does() {
    let mut network = Network::new(1, &options(), 1);
    // Ids begin at the nanosecond: answers to the first questions would be taken for those to the next.
    network.run(Time::from_millis(1));
    network.sm_alive = false;
    network.tell(0, |facts| facts.sm_lid = Lid(98));
    until(&mut network, StackTimer::Administration(RequestTimer::Timeout));
    until(&mut network, StackTimer::AskAgain);
}

fn all_subscribed(network: &Network, times: u32) -> bool {
    [64, 65, 68, 69].iter().all(|number| network.subscribers.get(&(lid(0), *number)) == Some(&times))
}

#[test]
fn hosts_subscribe_and_resubscribe_after_an_sm_restart() {
    let mut network = Network::new(1, &options(), 1);
    network.run(Time::from_millis(1));
    assert!(all_subscribed(&network, 1), "{:?}", network.subscribers);
    assert_eq!(network.hosts[0].counts().subscriptions, 4);
    // The same once more is nothing new.
    network.tell(0, |_| {});
    network.run(Time::from_millis(1));
    assert!(all_subscribed(&network, 1));
    network.tell(0, |facts| facts.reregister = true);
    network.run(Time::from_millis(1));
    assert!(all_subscribed(&network, 2), "{:?}", network.subscribers);
    // A manager that is dead is asked until it is there.
    network.sm_alive = false;
    network.tell(0, |facts| facts.sm_lid = Lid(98));
    network.run(Time::from_millis(20));
    assert_eq!(network.hosts[0].counts().subscriptions, 0);
    assert!(all_subscribed(&network, 2));
    network.sm_alive = true;
    network.run(Time::from_millis(20));
    assert!(all_subscribed(&network, 3), "{:?}", network.subscribers);
}

/// A manager that has no time yet is asked again after one timeout of a question, one that refuses after five.
#[test]
fn what_is_busy_is_asked_again_sooner_than_what_refuses() {
    let options = options();
    let timeout = options.sa_timeout.as_nanos();
    for (status, timeouts) in [(status::BUSY, 1), (sa_status::NO_RESOURCES, 5)] {
        let mut network = Network::new(1, &options, 1);
        network.run(Time::from_nanos(timeout));
        network.denies_subscriptions = Some(status);
        network.tell(0, |facts| facts.reregister = true);
        network.run(Time::from_nanos(timeout / 2));
        network.denies_subscriptions = None;
        network.run(Time::from_nanos(timeout * (timeouts - 1) + timeout / 4));
        assert!(all_subscribed(&network, 1), "{status:#06x}: {:?}", network.subscribers);
        network.run(Time::from_nanos(timeout));
        assert!(all_subscribed(&network, 2), "{status:#06x}: {:?}", network.subscribers);
    }
}

#[test]
fn a_wildcard_has_every_path_asked_for_again_and_flows_move() {
    let mut network = Network::new(3, &options(), 1);
    open(&mut network, 0, 1, spec(1, 1));
    open(&mut network, 0, 2, spec(2, 2));
    network.run(Time::from_millis(1));
    network.levels.insert((lid(0), lid(2)), ServiceLevel(1));
    let asked = network.asked;
    let details = RepathDetails { kind: RepathKind::WILDCARD, ..RepathDetails::default() };
    network.repath(0, trap::REPATH, details);
    // Another one meanwhile has everything asked for once more.
    network.levels.insert((lid(0), lid(2)), ServiceLevel(2));
    network.repath(0, trap::REPATH, details);
    network.run(Time::from_millis(1));
    // The first answer is discarded: it may be of before.
    assert_eq!(network.asked - asked, 2);
    assert_eq!(network.hosts[0].bulk_counts().discarded, 1);
    assert_eq!(network.report_responses, 2);
    assert_eq!(network.sent(0, 1).service_level, Some(ServiceLevel(0)));
    assert_eq!(network.sent(0, 2).service_level, Some(ServiceLevel(2)));
    assert_eq!(network.received(2, 2).disorder, 0);
}

#[test]
fn a_wildcard_unpath_ends_all_hot_spots_and_a_repath_none() {
    let mut network = Network::new(3, &options(), 1);
    open(&mut network, 0, 1, spec(1, 1));
    open(&mut network, 0, 2, spec(2, 2));
    network.run(Time::from_millis(1));
    let (kind, service_level) = (RepathKind::HOT_SPOT, ServiceLevel(1));
    for host in [1, 2] {
        let details = RepathDetails { kind, service_level, dlid: lid(host), ..RepathDetails::default() };
        network.repath(0, trap::REPATH, details);
    }
    let levels =
        |network: &Network| [(0, 1), (0, 2)].map(|(host, flow)| network.sent(host, flow).service_level);
    network.run(Time::from_millis(1));
    assert_eq!(levels(&network), [Some(ServiceLevel(1)); 2]);
    let all = RepathDetails { kind: RepathKind::WILDCARD, ..RepathDetails::default() };
    network.repath(0, trap::REPATH, all);
    network.run(Time::from_millis(1));
    assert_eq!(levels(&network), [Some(ServiceLevel(1)); 2]);
    network.repath(0, trap::UNPATH, all);
    network.run(Time::from_millis(1));
    assert_eq!(levels(&network), [Some(ServiceLevel(0)); 2]);
}

#[test]
fn a_port_that_goes_and_comes_keeps_its_queue_pairs() {
    let mut network = Network::new(2, &options(), 1);
    open(&mut network, 0, 1, spec(1, 1));
    network.run(Time::from_millis(1));
    network.tell(0, |facts| facts.active = false);
    network.run(Time::from_millis(50));
    assert_eq!(network.sent(0, 1).state, "idle");
    let before = network.received(1, 1).bytes;
    network.tell(0, |facts| facts.active = true);
    network.run(Time::from_millis(2));
    assert!(network.received(1, 1).bytes > before + 1_000_000);
    assert_eq!(network.sent(0, 1).error, None);
    assert_eq!(network.received(1, 1).disorder, 0);
    assert!(all_subscribed(&network, 2));
}

#[test]
fn a_host_without_a_manager_says_what_it_waits_for() {
    let mut network = Network::new(2, &options(), 1);
    network.tell(0, |facts| facts.sm_lid = Lid(0));
    network.command(0, Command::Open(spec(1, 1)));
    network.run(Time::from_millis(1));
    let error = network.sent(0, 1).error.unwrap();
    assert!(error.starts_with("there is no subnet manager to ask"), "{error}");
}

#[test]
fn flows_that_come_and_go_leave_nothing_behind() {
    let mut network = Network::new(2, &options(), 1);
    for round in 0..3000u32 {
        let flow = round % 7;
        let slow = crate::traffic::FlowSpec { bytes_per_second: Some(1), ..spec(flow, 1) };
        open(&mut network, 0, 1, slow);
        network.run(Time::from_micros(3));
        network.command(0, Command::Close { flow: FlowId(flow) });
        network.command(1, Command::Close { flow: FlowId(flow) });
    }
    let held = network.hosts[0].held();
    assert!(held.iter().all(|held| *held < 200), "{held:?}");
}

/// A notice that levels are about to change stops queue pairs to that port, and no others. They go on when the levels are known, or after the
/// time that the notice says, and nothing is lost or repeated for good.
#[test]
fn held_queue_pairs_go_on_by_a_notice_or_after_a_time() {
    for has_notice in [true, false] {
        let mut network = Network::new(3, &options(), 1);
        open(&mut network, 0, 1, spec(1, 1));
        open(&mut network, 0, 2, spec(2, 2));
        network.run(Time::from_millis(1));
        let about =
            |kind| RepathDetails { kind, guid: guid(1), dlid: lid(1), hold_s: 2, ..RepathDetails::default() };
        network.repath(0, trap::REPATH, about(RepathKind::HOLD));
        network.run(Time::from_millis(5));
        assert_eq!([1, 2].map(|flow| network.sent(0, flow).state), ["held", "sending"]);
        let before = [1, 2].map(|flow| network.received(flow as usize, flow).bytes);
        network.run(Time::from_millis(900));
        let after = [1, 2].map(|flow| network.received(flow as usize, flow).bytes);
        assert!(after[0] == before[0] && after[1] > before[1], "{before:?} {after:?}");
        let questions = network.hosts[0].counts().questions;
        if has_notice {
            network.repath(0, trap::REPATH, about(RepathKind::LEVELS));
        } else {
            network.run(Time::from_millis(1200));
        }
        network.run(Time::from_millis(5));
        let counts = network.hosts[0].suspension_counts();
        assert_eq!((counts.holds_heard, counts.senders_held, counts.paths_renewed), (1, 1, 1));
        assert_eq!(
            (counts.levels_heard, counts.holds_expired),
            (u64::from(has_notice), u64::from(!has_notice))
        );
        assert_eq!(network.hosts[0].counts().questions, questions + 1, "its path is asked for once");
        assert!(network.received(1, 1).bytes > after[0], "it goes on");
        let sent = network.sent(0, 1);
        assert_eq!((&*sent.state, sent.error, sent.timeouts), ("sending", None, 0));
        assert_eq!(network.received(1, 1).disorder, 0);
    }
}
