//! A stack that stands still, leaves and goes on, and its peers, one property at a time.

use weft_machine::{Machine, Time};
use weft_wire::{Details, Gid, GidPrefix, Guid, Lid, RepathDetails, RepathKind, ServiceLevel, trap};

use super::network::{Network, guid, lid};
use super::{open, options, spec};
use crate::stack::{Image, Input, MovedLid, Place, Stack, StackOptions};
use crate::traffic::{Command, FlowId, FlowSpec, MoveBy, Transport, Work};

/// Seconds, as hosts really wait.
fn patient() -> StackOptions {
    StackOptions { sa_timeout: Time::from_millis(1), ..StackOptions::default() }
}

pub(super) fn place(host: usize, from_epoch: u64) -> Place {
    Place { guid: guid(host), from_epoch, epoch: from_epoch + 1, renames: false, lid: None }
}

/// Moves a suspended host to another adapter, where it stays suspended.
pub(super) fn relocate(network: &mut Network, host: usize, options: &StackOptions, clock: Time, loss: u64) {
    let bytes = network.hosts[host].export().unwrap().encode().unwrap();
    let place = place(host, network.hosts[host].epoch());
    network.replace(host, Stack::new(options.clone()), clock, loss);
    let now = network.clock(host);
    network.hosts[host].import(Image::decode(&bytes).unwrap(), now, &place).unwrap();
}

fn moved(host: usize, from: Lid, to: Lid) -> Input {
    Input::Moved(MovedLid { guid: guid(host), from, to })
}

fn gid_notice(network: &mut Network, host: usize, of: Guid, number: weft_wire::TrapNumber) {
    let gid = Gid { prefix: GidPrefix::DEFAULT, guid: of };
    let details = weft_wire::GidDetails { gid, ..weft_wire::GidDetails::default() };
    network.report(host, &Details::Gid(number, details));
}

#[test]
fn a_suspended_stack_is_silent_and_sets_no_timer() {
    let mut network = Network::new(2, &options(), 1);
    open(&mut network, 0, 1, spec(1, 1));
    open(&mut network, 1, 0, spec(2, 0));
    network.run(Time::from_millis(2));
    network.suspend(0);
    let (injected, before) = (network.injected, network.received(0, 2).packets);
    let peer_before = network.sent(1, 2).packets;
    assert!(network.hosts[0].is_suspended());
    assert_eq!(network.hosts[0].poll_timeout(), None);
    network.command(0, Command::Stop { flow: FlowId(1) });
    assert_eq!(
        network.refusals.pop().as_deref(),
        Some("the host is suspended; hint: try again when it has resumed")
    );
    gid_notice(&mut network, 0, guid(1), trap::GID_IN_SERVICE);
    network.run(Time::from_millis(3));
    let peer_sent = network.sent(1, 2).packets - peer_before;
    // All that has been sent since is the peer's, and two of its acknowledgements that were in its adapter.
    assert!(network.injected - injected <= peer_sent + 2, "{} {peer_sent}", network.injected - injected);
    assert_eq!(network.received(0, 2).packets, before);
    assert_eq!((network.report_responses, network.sent(0, 1).state.as_str()), (0, "suspended"));
    let counts = network.hosts[0].suspension_counts();
    assert!(counts.packets_dropped > 0 && counts.packets_cut > 0, "{counts:?}");
    assert_eq!((counts.mads_dropped, counts.suspended, counts.resumed), (1, 1, 0));
    // Nothing has expired, however long it took.
    network.run(Time::from_millis(10));
    network.resume(0);
    let (at, sent) = (network.now, network.sent(0, 1));
    assert_eq!((sent.timeouts, sent.error), (0, None));
    network.run_until(Time::from_millis(2), |network| network.received(1, 1).bytes > 2_000_000);
    assert!(network.sent(0, 1).repeated > 0 && network.now - at < Time::from_millis(1));
    network.run_until(Time::from_millis(5), |network| network.received(0, 2).packets > before + 1000);
    assert_eq!(
        [network.received(1, 1), network.received(0, 2)].map(|flow| (flow.disorder, flow.missing)),
        [(0, 0); 2]
    );
}

#[test]
fn a_resumed_stack_retransmits_at_once() {
    let mut network = Network::new(2, &patient(), 1);
    open(&mut network, 0, 1, spec(1, 1));
    network.run(Time::from_millis(2));
    network.suspend(0);
    let before = network.received(1, 1).bytes;
    relocate(&mut network, 0, &patient(), Time::from_secs(77), 1000);
    network.run(Time::from_millis(1));
    network.tell(0, |_| {});
    network.resume(0);
    network.run(Time::from_micros(200));
    let (sent, received) = (network.sent(0, 1), network.received(1, 1));
    assert!(received.bytes > before + 100_000 && sent.repeated > 0, "{received:?}");
    assert_eq!((sent.timeouts, received.disorder, received.missing), (0, 0, 0));
}

#[test]
fn peers_resume_by_timeout_or_notice_without_sa_queries() {
    for notice in ["none", "input", "report", "by itself", "denied"] {
        let wakes_peers = ["by itself", "denied"].contains(&notice);
        let options = StackOptions { wakes_peers, ..patient() };
        let mut network = Network::new(2, &options, 1);
        network.denies_tells = notice == "denied";
        open(&mut network, 0, 1, spec(1, 1));
        network.run(Time::from_millis(2));
        network.suspend(1);
        network.run(Time::from_millis(1));
        relocate(&mut network, 1, &options, Time::from_secs(3), 1000);
        network.tell(1, |_| {});
        network.resume(1);
        let (at, before, asked) = (network.now, network.received(1, 1).bytes, network.asked);
        let lid = lid(1);
        match notice {
            "input" => network.feed(0, moved(1, lid, lid)),
            "report" => {
                let (kind, guid) = (RepathKind::NEW_LID, guid(1));
                let details = RepathDetails { kind, guid, slid: lid, dlid: lid, ..RepathDetails::default() };
                network.repath(0, trap::REPATH, details);
            }
            _ => {}
        }
        // The move's own notices come behind.
        network.run(Time::from_micros(50));
        let is_told = !["none", "denied"].contains(&notice);
        gid_notice(&mut network, 0, guid(1), trap::GID_OUT_OF_SERVICE);
        if is_told {
            gid_notice(&mut network, 0, guid(1), trap::GID_IN_SERVICE);
        }
        network.run_until(Time::from_secs(5), |network| network.received(1, 1).bytes > before + 100_000);
        let (waited, woken) = (network.now - at, network.hosts[0].suspension_counts().senders_woken);
        match is_told {
            false => assert!(waited > Time::from_secs(3) && woken == 0, "{notice}: {waited}"),
            true => assert!(waited < Time::from_millis(1) && woken == 1, "{notice}: {waited}"),
        }
        let counts = network.hosts[1].suspension_counts();
        let expected = (u64::from(notice == "by itself"), u64::from(notice == "denied"));
        assert_eq!((counts.peers_told, counts.peers_not_told), expected, "{notice}");
        assert_eq!(network.asked, asked, "{notice}: nobody asks subnet administration");
        assert_eq!(network.received(1, 1).disorder, 0);
    }
}

#[test]
fn notices_about_a_freshly_moved_port_are_held_back() {
    let mut network = Network::new(3, &options(), 1);
    open(&mut network, 0, 1, spec(1, 1));
    open(&mut network, 0, 2, spec(2, 2));
    network.run(Time::from_millis(1));
    // One notice came before that of the move: the path is good again all the same.
    gid_notice(&mut network, 0, guid(1), trap::GID_OUT_OF_SERVICE);
    network.feed(0, moved(1, lid(1), lid(1)));
    let asked = network.asked;
    for number in [trap::GID_OUT_OF_SERVICE, trap::GID_IN_SERVICE] {
        gid_notice(&mut network, 0, guid(1), number);
    }
    network.command(0, Command::Stop { flow: FlowId(1) });
    network.run_until(Time::from_millis(5), |network| network.sent(0, 1).state == "stopped");
    network.command(0, Command::Open(spec(1, 1)));
    network.run(Time::from_micros(100));
    assert_eq!((network.asked, network.sent(0, 1).state.as_str()), (asked, "sending"));
    // Another port's notices are heeded, and after a while this one's.
    gid_notice(&mut network, 0, guid(2), trap::GID_IN_SERVICE);
    network.run(Time::from_millis(10));
    assert_eq!(network.asked, asked + 1);
    gid_notice(&mut network, 0, guid(1), trap::GID_IN_SERVICE);
    network.run(Time::from_millis(1));
    assert_eq!(network.asked, asked + 2);
    assert_eq!(network.hosts[0].suspension_counts().notices_held_back, 2);
}

#[test]
fn subscriptions_and_paths_stand_where_the_lid_moves_too() {
    for told_early in [false, true] {
        let mut network = Network::new(2, &options(), 1);
        open(&mut network, 0, 1, spec(1, 1));
        network.run(Time::from_millis(1));
        let asked = network.asked;
        network.suspend(0);
        relocate(&mut network, 0, &options(), Time::from_secs(5), 0);
        let inactive = |facts: &mut weft_wire::PortFacts| (facts.active, facts.lid) = (false, Lid(0));
        let active = |facts: &mut weft_wire::PortFacts| (facts.active, facts.lid) = (true, lid(0));
        network.tell(0, inactive);
        if told_early {
            network.tell(0, active);
        }
        network.resume(0);
        network.run(Time::from_millis(2));
        let before = network.received(1, 1).bytes;
        // It may resume before its port is there, and is not confused by it.
        network.tell(0, inactive);
        network.tell(0, active);
        network.run(Time::from_millis(2));
        assert!(network.received(1, 1).bytes > before + 1_000_000, "{told_early}");
        // With an active port it has resumed; what becomes of the port afterwards is as ever: four subscriptions and a path.
        let again = if told_early { 5 } else { 0 };
        assert_eq!(network.asked, asked + again, "{told_early}");
        assert_eq!(network.hosts[0].counts().subscriptions, 4);
        assert_eq!((network.sent(0, 1).error, network.received(1, 1).disorder), (None, 0));
    }
}

#[test]
fn another_lid_has_everything_asked_again_and_peers_follow() {
    for notice in [false, true] {
        let mut network = Network::new(2, &options(), 1);
        open(&mut network, 0, 1, spec(1, 1));
        open(&mut network, 1, 0, spec(2, 0));
        open(&mut network, 0, 1, FlowSpec { work: Work::PingPong, ..spec(3, 1) });
        network.run(Time::from_millis(1));
        let asked = network.asked;
        let new = Lid(40);
        network.suspend(1);
        let (image, mut place) = (network.hosts[1].export().unwrap(), place(1, 0));
        place.lid = Some(new);
        network.replace(1, Stack::new(options()), Time::ZERO, 1000);
        let now = network.clock(1);
        network.hosts[1].import(image, now, &place).unwrap();
        assert_eq!(network.hosts[1].identity().lid, new);
        network.tell(1, |facts| facts.lid = new);
        network.resume(1);
        match notice {
            true => network.feed(0, moved(1, lid(1), new)),
            false => gid_notice(&mut network, 0, guid(1), trap::GID_IN_SERVICE),
        }
        network.run(Time::from_millis(3));
        let before = [(1, 1), (0, 2)].map(|(host, flow)| network.received(host, flow).bytes);
        let trips = network.sent(0, 3).latency.count;
        network.run(Time::from_millis(3));
        let after = [(1, 1), (0, 2)].map(|(host, flow)| network.received(host, flow).bytes);
        assert!(after[0] > before[0] + 100_000 && after[1] > before[1] + 100_000, "{before:?} {after:?}");
        assert!(network.sent(0, 3).latency.count > trips);
        assert_eq!(network.subscribers.get(&(new, 64)), Some(&1));
        // Four subscriptions and the path to the peer; and the peer asks unless it is notified.
        assert_eq!(network.asked - asked, if notice { 5 } else { 6 });
        assert!(network.reports().iter().all(|flow| flow.disorder == 0 && flow.error.is_none()));
    }
}

#[test]
fn a_suspended_stack_hears_of_another_lid() {
    let mut network = Network::new(2, &options(), 1);
    open(&mut network, 0, 1, spec(1, 1));
    open(&mut network, 1, 0, spec(2, 0));
    network.run(Time::from_millis(1));
    let new = Lid(40);
    [0, 1].into_iter().for_each(|host| network.suspend(host));
    network.feed(0, moved(1, lid(1), new));
    assert_eq!(network.hosts[0].poll_timeout(), None);
    for host in [0, 1] {
        relocate(&mut network, host, &options(), Time::from_secs(host as u64), 1000);
        network.tell(host, |facts| facts.lid = if host == 1 { new } else { facts.lid });
        network.resume(host);
    }
    let asked = network.asked;
    network.run(Time::from_millis(2));
    let received = [(1, 1), (0, 2)].map(|(host, flow)| network.received(host, flow));
    assert!(received.iter().all(|flow| flow.bytes > 3_000_000 && flow.disorder == 0), "{received:?}");
    assert_eq!((network.asked, network.sent(0, 1).timeouts), (asked, 0));
}

#[test]
fn a_rate_and_a_round_trip_do_not_know_of_the_downtime() {
    for clock in [Time::ZERO, Time::from_secs(1_000_000)] {
        let mut network = Network::new(2, &options(), 1);
        open(&mut network, 0, 1, FlowSpec { bytes_per_second: Some(200_000_000), ..spec(1, 1) });
        let ping = FlowSpec { work: Work::PingPong, message_bytes: 2048, ..spec(2, 1) };
        open(&mut network, 0, 1, FlowSpec { bytes_per_second: Some(20_000_000), ..ping });
        network.run(Time::from_millis(10));
        network.suspend(0);
        relocate(&mut network, 0, &options(), clock, 0);
        network.run(Time::from_millis(15));
        network.tell(0, |_| {});
        network.resume(0);
        let before = network.sent(0, 1).bytes;
        network.run(Time::from_millis(10));
        let sent = network.sent(0, 1).bytes - before;
        assert!((1_900_000..=2_100_000).contains(&sent), "{sent} at {clock}");
        let latency = network.sent(0, 2).latency;
        assert!(latency.max_ns < 2_000_000, "{latency:?} at {clock}");
    }
}

#[test]
fn a_queue_pair_that_changes_its_lane_goes_on_with_it() {
    for (move_by, state) in [(MoveBy::Drain, "draining"), (MoveBy::Migrate, "rearming")] {
        let mut network = Network::new(2, &options(), 1);
        open(&mut network, 0, 1, FlowSpec { move_by, ..spec(1, 1) });
        network.run(Time::from_millis(1));
        network.hot_spot(0, lid(1), 3, true);
        assert_eq!(network.sent(0, 1).state, state);
        network.suspend(0);
        relocate(&mut network, 0, &options(), Time::from_secs(9), 500);
        network.tell(0, |_| {});
        network.resume(0);
        assert_eq!(network.sent(0, 1).state, state);
        network.run_until(Time::from_millis(5), |network| network.sent(0, 1).moves_total == 1);
        network.run(Time::from_millis(1));
        assert_eq!(network.sent(0, 1).service_level, Some(ServiceLevel(3)));
        assert_eq!((network.received(1, 1).disorder, network.received(1, 1).missing), (0, 0));
    }
}

#[test]
fn a_resumed_datagram_mix_keeps_its_numbering() {
    for bytes_per_second in [None, Some(100_000_000)] {
        let mut network = Network::new(3, &options(), 1);
        let transport = Transport::UnreliableDatagram;
        let others = (0..3).map(guid).collect();
        let to = crate::traffic::Destination::Mix { hot_spot: None, hot_permille: 0, others, seed: 7 };
        let mix = FlowSpec { to, transport, message_bytes: 2048, bytes_per_second, ..spec(5, 1) };
        for host in 1..3 {
            let (flow, work, message_bytes) = (FlowId(5), Work::Stream, 2048);
            network.command(host, Command::Expect { flow, from: None, transport, work, message_bytes });
        }
        network.command(0, Command::Open(mix));
        network.run(Time::from_millis(2));
        network.suspend(0);
        relocate(&mut network, 0, &options(), Time::from_secs(1), 0);
        network.run(Time::from_millis(2));
        network.tell(0, |_| {});
        network.resume(0);
        let before = network.received(1, 5).packets;
        network.run(Time::from_millis(2));
        let received = [1, 2].map(|host| network.received(host, 5));
        assert!(received[0].packets > before + 20, "{bytes_per_second:?}");
        // The toy network carries what was in the adapter; nothing else could be lost.
        assert!(received.iter().all(|flow| flow.disorder == 0 && flow.missing == 0), "{received:?}");
    }
}

/// The port of another host may take smaller packets: what is too large for it ends in words, the rest goes on.
#[test]
fn a_smaller_mtu_after_a_move_ends_flows_with_a_reason() {
    let mut network = Network::new(2, &options(), 1);
    open(&mut network, 0, 1, spec(1, 1));
    open(&mut network, 0, 1, FlowSpec { packet_bytes: 256, ..spec(2, 1) });
    open(&mut network, 1, 0, spec(3, 0));
    network.run(Time::from_millis(2));
    network.suspend(0);
    relocate(&mut network, 0, &options(), Time::from_secs(9), 100);
    network.tell(0, |facts| facts.mtu = 1024);
    let before = network.received(1, 2).bytes;
    network.resume(0);
    network.run(Time::from_millis(2));
    let reason = network.sent(0, 1).error.unwrap();
    assert!(reason.contains("do not pass the port's MTU of 1024"), "{reason}");
    assert_eq!(network.sent(0, 2).error, None);
    assert!(network.received(1, 2).bytes > before, "smaller packets pass");
}
