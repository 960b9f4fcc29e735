//! Reliable connections: everything once and in order, whatever the network does.

use weft_machine::Time;
use weft_wire::{Details, Lid, PKey, PathRate, RepathDetails, RepathKind, ServiceLevel, trap};

use super::network::{Network, Weather, guid, lid};
use super::{flow_that_wraps, open, options, seeds, spec};
use crate::stack::{Input, Notices, StackOptions};
use crate::traffic::{
    Command, Destination, FlowId, FlowReport, FlowSpec, LearntPath, MoveBy, PathSource, Transport, Work,
};

const BAD: Weather = Weather { loss: 20, late: 30, twice: 10, fecn: 0 };

/// What must hold of a reliable connection at all times.
fn whole(network: &Network, (from, to): (usize, usize), flow: u32) -> (FlowReport, FlowReport) {
    let (sent, received) = (network.sent(from, flow), network.received(to, flow));
    assert_eq!((received.disorder, received.missing), (0, 0), "{received:#?}");
    assert!(received.bytes <= sent.bytes);
    assert_eq!(sent.error, None);
    (sent, received)
}

#[test]
fn a_bad_network_loses_nothing_for_a_connection() {
    for seed in seeds(12) {
        let mut network = Network::new(2, &options(), seed);
        network.weather = BAD;
        let flow = flow_that_wraps(1000);
        open(&mut network, 0, 1, FlowSpec { bytes_max: Some(4_000_000), ..spec(flow, 1) });
        network.run_until(Time::from_secs(4), |network| network.sent(0, flow).state == "done");
        let (sent, received) = whole(&network, (0, 1), flow);
        assert_eq!((sent.bytes, received.bytes), (4_000_000, 4_000_000), "WEFT_SEED={seed}");
        assert!(sent.repeated > 0 && received.repeated > 0 && received.out_of_order > 0, "{received:?}");
        assert!(network.in_adapter_max <= 2, "WEFT_SEED={seed}");
    }
}

#[test]
fn a_good_network_is_used_fully_and_nothing_is_sent_twice() {
    let mut network = Network::new(2, &options(), 1);
    open(&mut network, 0, 1, spec(7, 1));
    network.run(Time::from_millis(20));
    let (sent, received) = whole(&network, (0, 1), 7);
    assert_eq!((sent.repeated, sent.timeouts, received.out_of_order), (0, 0, 0));
    // 16 Gb/s, of which headers and the SA's answer take a little.
    assert!(received.bytes > 39_000_000, "{}", received.bytes);
    assert!(received.bytes <= 40_000_000);
}

#[test]
fn lanes_change_under_load_without_disorder() {
    for (move_by, seed) in
        seeds(6).into_iter().flat_map(|seed| [MoveBy::Drain, MoveBy::Migrate].map(|move_by| (move_by, seed)))
    {
        let mut network = Network::new(2, &options(), seed);
        // The slow lane is really slower, so that going back overtakes.
        network.delays[1] = Time::from_micros(60);
        network.weather = if seed % 2 == 0 { BAD } else { Weather::default() };
        open(&mut network, 0, 1, FlowSpec { move_by, ..spec(3, 1) });
        network.run(Time::from_millis(3));
        for round in 0..6 {
            network.hot_spot(0, lid(1), 1, round % 2 == 0);
            let wanted = ServiceLevel(u8::from(round % 2 == 0));
            network.run_until(Time::from_millis(100), |network| {
                network.sent(0, 3).service_level == Some(wanted)
            });
            let before = network.received(1, 3).bytes;
            network
                .run_until(Time::from_millis(100), |network| network.received(1, 3).bytes > before + 500_000);
        }
        let (sent, received) = whole(&network, (0, 1), 3);
        assert_eq!((sent.moves_total, sent.moves.len()), (6, 6), "WEFT_SEED={seed}");
        let lanes: Vec<_> = sent.moves.iter().map(|change| (change.from.0, change.to.0)).collect();
        assert_eq!(lanes, [(0, 1), (1, 0), (0, 1), (1, 0), (0, 1), (1, 0)]);
        if seed % 2 == 1 && move_by == MoveBy::Drain {
            assert_eq!((sent.repeated, received.out_of_order), (0, 0), "a drain lets nothing overtake");
            assert!(sent.moves.iter().all(|change| change.pause > Time::ZERO), "{:?}", sent.moves);
        }
        if seed % 2 == 1 && move_by == MoveBy::Migrate {
            assert!(received.out_of_order > 0, "the fast lane overtakes the slow one");
            assert!(sent.moves.iter().all(|change| change.pause == Time::ZERO));
        }
    }
}

#[test]
fn a_queue_pair_whose_old_lane_is_dead_moves_all_the_same() {
    for move_by in [MoveBy::Drain, MoveBy::Migrate] {
        let mut network = Network::new(2, &options(), 5);
        open(&mut network, 0, 1, FlowSpec { move_by, ..spec(3, 1) });
        network.run(Time::from_millis(2));
        network.weather.loss = 1000;
        network.run(Time::from_micros(200));
        network.hot_spot(0, lid(1), 4, true);
        network.run(Time::from_millis(2));
        network.weather.loss = 0;
        let before = network.received(1, 3).bytes;
        network.run_until(Time::from_millis(20), |network| network.received(1, 3).bytes > before + 1_000_000);
        let (sent, _) = whole(&network, (0, 1), 3);
        assert_eq!(sent.service_level, Some(ServiceLevel(4)));
        assert!(sent.timeouts > 0);
    }
}

#[test]
fn an_unanswered_flow_fails_and_can_be_reopened() {
    let options = StackOptions { retries: 3, ..options() };
    let mut network = Network::new(2, &options, 5);
    open(&mut network, 0, 1, spec(3, 1));
    network.run(Time::from_millis(2));
    network.weather.loss = 1000;
    network.run(Time::from_millis(5));
    let sent = network.sent(0, 3);
    assert_eq!((sent.state.as_str(), sent.timeouts), ("error", 4));
    assert!(sent.error.unwrap().contains("is not acknowledged, 3 times sent again"));
    network.weather.loss = 0;
    let before = network.received(1, 3).bytes;
    network.command(0, Command::Open(spec(3, 1)));
    network.run_until(Time::from_millis(20), |network| network.received(1, 3).bytes > before + 1_000_000);
    whole(&network, (0, 1), 3);
}

#[test]
fn a_flow_stops_between_messages_and_resumes_its_numbering() {
    let mut network = Network::new(2, &options(), 5);
    open(&mut network, 0, 1, spec(3, 1));
    network.run(Time::from_millis(1));
    network.command(0, Command::Stop { flow: FlowId(3) });
    network.run(Time::from_millis(1));
    let (sent, received) = whole(&network, (0, 1), 3);
    assert_eq!((sent.state.as_str(), sent.bytes), ("stopped", received.bytes));
    assert_eq!(sent.bytes % 20_000, 0);
    let more = FlowSpec { message_bytes: 3_000, bytes_max: Some(30_000), ..spec(3, 1) };
    network.command(0, Command::Open(more));
    network.run(Time::from_millis(1));
    let (after, received) = whole(&network, (0, 1), 3);
    assert_eq!((after.state.as_str(), after.bytes), ("done", sent.bytes + 30_000));
    assert_eq!(received.bytes, after.bytes);
    network.command(0, Command::Open(FlowSpec { bytes_max: None, ..spec(3, 1) }));
    network.run(Time::from_millis(1));
    network.command(0, Command::Open(spec(3, 1)));
    assert!(network.refusals[0].contains("stop it first"), "{:?}", network.refusals);
}

#[test]
fn flows_of_one_service_level_share_and_the_others_do_not_wait() {
    let mut network = Network::new(3, &options(), 5);
    for flow in 1..=3 {
        open(&mut network, 0, 1, spec(flow, 1));
    }
    network.levels.insert((lid(0), lid(2)), ServiceLevel(5));
    open(&mut network, 0, 2, spec(4, 2));
    network.run(Time::from_millis(10));
    let bytes: Vec<u64> = (1..=3).map(|flow| network.sent(0, flow).bytes).collect();
    let most = bytes.iter().max().unwrap();
    assert!(bytes.iter().all(|bytes| most - bytes < 200_000), "{bytes:?}");
    // The toy's link takes turns packet by packet, so a service level alone has half of it.
    assert!(network.sent(0, 4).bytes > 2 * most, "{bytes:?} {}", network.sent(0, 4).bytes);
}

#[test]
fn a_rate_is_kept_without_drift() {
    let mut network = Network::new(2, &options(), 5);
    let rate = 12_345_678;
    open(&mut network, 0, 1, FlowSpec { bytes_per_second: Some(rate), ..spec(3, 1) });
    network.run(Time::from_secs(3));
    let (_, received) = whole(&network, (0, 1), 3);
    assert!(received.bytes.abs_diff(3 * rate) < 20_000, "{}", received.bytes);
}

#[test]
fn a_ping_pong_takes_two_ways() {
    for seed in seeds(4) {
        let mut network = Network::new(2, &options(), seed);
        network.weather = if seed % 2 == 0 { BAD } else { Weather::default() };
        let work = Work::PingPong;
        open(&mut network, 0, 1, FlowSpec { work, message_bytes: 5000, ..spec(3, 1) });
        network.run(Time::from_millis(20));
        let (sent, received) = whole(&network, (0, 1), 3);
        let round_trips = sent.latency.count;
        assert!(round_trips > 50, "WEFT_SEED={seed}: {sent:?}");
        assert!(received.bytes / 5000 - round_trips <= 1, "one message is under way at most");
        if seed % 2 == 1 {
            // 5000 bytes in three packets at 16 Gb/s, and 5 µs, both ways.
            let least = 2 * (5 * 1000 + (5000 + 3 * 26) / 2);
            assert!((least..least + 500).contains(&sent.latency.min_ns), "{} {least}", sent.latency.min_ns);
            // An acknowledgement may go first, at each end.
            assert!(sent.latency.max_ns - sent.latency.min_ns <= 2 * 17, "{:?}", sent.latency);
        }
    }
}

/// 7 ns of fabric time at the rate scale 1/100: what a message costs at both of its ends is in the latency twice, for the
/// message and for its answer, and nothing else of it changes.
#[test]
fn a_message_costs_its_hosts_time() {
    for transport in [Transport::ReliableConnection, Transport::UnreliableDatagram] {
        let [free, dear] = [0, 7].map(|message_overhead_ns| {
            let options = StackOptions { message_overhead_ns, dilation: 100, ..options() };
            let mut network = Network::new(2, &options, 1);
            let work = Work::PingPong;
            open(&mut network, 0, 1, FlowSpec { transport, work, message_bytes: 1024, ..spec(3, 1) });
            network.run(Time::from_millis(20));
            network.sent(0, 3).latency
        });
        // Where there is time, acknowledgements do not go before answers.
        assert!(dear.min_ns.abs_diff(free.min_ns + 4 * 700) <= 2 * 17, "{transport:?}: {dear:?} {free:?}");
        let mean = |latency: crate::traffic::Latency| latency.sum_ns / latency.count;
        assert!(mean(dear).abs_diff(mean(free) + 4 * 700) <= 2 * 17, "{transport:?}: {dear:?} {free:?}");
        // One after the other: as many as there is time for.
        assert!((20_000_000 / mean(dear)).abs_diff(dear.count) < 5, "{transport:?}: {dear:?}");
    }
}

#[test]
fn a_flow_begins_a_message_in_each_of_its_hosts_times() {
    for (message_bytes, overhead_ns) in [(64, 2000), (20_000, 2000)] {
        let mut network = Network::new(2, &StackOptions { message_overhead_ns: overhead_ns, ..options() }, 1);
        open(&mut network, 0, 1, FlowSpec { message_bytes, ..spec(3, 1) });
        network.run(Time::from_millis(10));
        let messages = network.received(1, 3).bytes / u64::from(message_bytes);
        // 20 000 bytes take 10.1 µs on the link: the next message is made meanwhile.
        let link_ns = u64::from(message_bytes) * 1013 / 2000;
        let expected = 10_000_000 / link_ns.max(overhead_ns.into());
        assert!(
            messages.abs_diff(expected) * 100 < expected * 2,
            "{message_bytes}: {messages} of {expected}"
        );
    }
}

#[test]
fn a_new_lid_and_a_new_level_of_one_path_are_followed() {
    let mut network = Network::new(2, &options(), 5);
    open(&mut network, 0, 1, spec(3, 1));
    network.run(Time::from_millis(2));
    let (kind, dlid, slid) = (RepathKind::PATH, lid(1), lid(0));
    let details = RepathDetails { kind, dlid, slid, service_level: ServiceLevel(6), ..Default::default() };
    network.repath(0, trap::REPATH, details);
    // Of another port's path nothing is taken.
    network.repath(
        0,
        trap::REPATH,
        RepathDetails { slid: lid(1), service_level: ServiceLevel(7), ..details },
    );
    network.run(Time::from_millis(1));
    assert_eq!(network.sent(0, 3).service_level, Some(ServiceLevel(6)));
    // The path is taken back: it is asked for again.
    let asked = network.asked;
    network.repath(0, trap::UNPATH, details);
    network.run(Time::from_millis(1));
    assert_eq!((network.asked - asked, network.sent(0, 3).service_level), (1, Some(ServiceLevel(0))));
    network.repath(0, trap::REPATH, details);
    network.run(Time::from_millis(1));
    network.tell(1, |facts| facts.lid = Lid(77));
    let (kind, guid) = (RepathKind::NEW_LID, guid(1));
    let details = RepathDetails { kind, guid, dlid: Lid(77), slid: lid(1), ..Default::default() };
    network.repath(0, trap::REPATH, details);
    let before = network.received(1, 3).bytes;
    network.run(Time::from_millis(2));
    let (sent, received) = whole(&network, (0, 1), 3);
    assert!(received.bytes > before + 2_000_000);
    assert_eq!((sent.service_level, sent.timeouts), (Some(ServiceLevel(6)), 0));
}

/// Of the hosts' subscriptions, and of a Report about a peer that has moved, on a physical and a virtual function.
#[test]
fn a_physical_function_hands_on_what_it_hears() {
    for (notices, of_pf, of_function, hands_on) in [
        (Notices::All, 4, 4, false),
        (Notices::Repath, 1, 1, false),
        (Notices::Server, 1, 0, true),
        (Notices::None, 0, 0, false),
    ] {
        let subscribed = |is_function: bool| {
            let mut network = Network::new(2, &StackOptions { notices, is_function, ..options() }, 5);
            open(&mut network, 0, 1, spec(3, 1));
            network.run(Time::from_millis(2));
            let counts = network.hosts[0].counts();
            network.tell(1, |facts| facts.lid = Lid(77));
            let (kind, guid) = (RepathKind::NEW_LID, guid(1));
            let details = RepathDetails { kind, guid, dlid: Lid(77), slid: lid(1), ..Default::default() };
            network.repath(0, trap::REPATH, details);
            (network, counts.subscriptions)
        };
        let ((pf, held), (mut function, of_its_own)) = (subscribed(false), subscribed(true));
        assert_eq!((held, of_its_own), (of_pf, of_function), "{notices}");
        assert_eq!((pf.handed_on.len(), function.handed_on.len()), (usize::from(hands_on), 0), "{notices}");
        // A function takes what is handed on as a Report of its own, and answers nothing.
        for (_, report) in pf.handed_on {
            let before = (function.hosts[0].counts(), function.hosts[0].suspension_counts().moves_heard);
            function.feed(0, Input::HandedOn(report));
            let counts = function.hosts[0].counts();
            assert_eq!((counts.reports, counts.repaths), (before.0.reports, before.0.repaths + 1));
            assert_eq!(function.hosts[0].suspension_counts().moves_heard, before.1 + 1);
        }
    }
}

#[test]
fn software_that_does_not_ask_stays_on_level_0() {
    let mut network = Network::new(2, &options(), 5);
    network.levels.insert((lid(0), lid(1)), ServiceLevel(3));
    open(&mut network, 0, 1, FlowSpec { paths: PathSource::Unasked, ..spec(3, 1) });
    open(&mut network, 0, 1, spec(4, 1));
    network.run(Time::from_millis(1));
    let levels = |network: &Network| [3, 4].map(|flow| network.sent(0, flow).service_level.unwrap().0);
    assert_eq!(levels(&network), [0, 3]);
    network.hot_spot(0, lid(1), 5, true);
    network.run(Time::from_millis(1));
    assert_eq!(levels(&network), [0, 5]);
    assert!(network.received(1, 3).bytes > 0);
}

#[test]
fn a_path_that_is_not_there_is_said_and_asked_for_again() {
    let mut network = Network::new(2, &options(), 5);
    network.absent.push(guid(1));
    open(&mut network, 0, 1, spec(3, 1));
    network.run(Time::from_millis(2));
    let sent = network.sent(0, 3);
    assert_eq!(sent.state, "path");
    let error = sent.error.unwrap();
    assert_eq!(
        error,
        "no path record for 0x0000000000000101: SA status 0x0300; is the port up, and in a partition of this one?"
    );
    network.absent.clear();
    let gid = weft_wire::Gid { prefix: weft_wire::GidPrefix::DEFAULT, guid: guid(1) };
    let details = weft_wire::GidDetails { gid, ..Default::default() };
    network.report(0, &Details::Gid(trap::GID_IN_SERVICE, details));
    network.run(Time::from_millis(1));
    assert!(network.received(1, 3).bytes > 0);
    whole(&network, (0, 1), 3);
}

#[test]
fn impossible_flows_are_refused_with_a_reason() {
    let mut network = Network::new(2, &options(), 5);
    let mut refused = |spec: FlowSpec, why: &str| {
        let before = network.refusals.len();
        network.command(0, Command::Open(spec));
        let said = network.refusals.get(before).cloned().unwrap_or_default();
        assert!(said.contains(why), "{said:?} is not {why:?}");
    };
    refused(spec(1, 0), "it goes to the port that it comes from");
    refused(spec(u32::MAX, 1), "its number is too high");
    let hot_spot = None;
    let to = Destination::Mix { hot_spot, hot_permille: 0, others: vec![guid(1)], seed: 1 };
    refused(FlowSpec { to: to.clone(), ..spec(1, 1) }, "hint: unreliable datagrams");
    let (transport, work) = (Transport::UnreliableDatagram, Work::PingPong);
    refused(FlowSpec { transport, work, ..spec(1, 1) }, "is one packet");
    let to = Destination::Mix { hot_spot, hot_permille: 0, others: vec![guid(0)], seed: 1 };
    refused(FlowSpec { to, transport, ..spec(1, 1) }, "there is nobody to send to");
    let (flow, from) = (FlowId(2), None);
    let expect = |work| {
        let transport = Transport::ReliableConnection;
        Command::Expect { flow, from, transport, work, message_bytes: 64 }
    };
    network.command(0, expect(Work::PingPong));
    network.command(0, Command::Open(spec(2, 1)));
    assert!(network.refusals.last().unwrap().contains("a connection has two ends"));
    network.command(0, Command::Open(FlowSpec { packet_bytes: 4096, ..spec(3, 1) }));
    network.run(Time::from_millis(1));
    assert!(network.sent(0, 3).error.unwrap().contains("do not pass the port's MTU of 2048"));
    assert_eq!(network.injected, 0);
}

#[test]
fn numbers_without_measure_keep_nobody_busy() {
    let none = Time::ZERO;
    let options =
        StackOptions { ack_timeout: none, sa_timeout: none, retries: 3, window_packets: 0, ..options() };
    let mut network = Network::new(2, &options, 5);
    // No one's answer is there so soon.
    let (service_level, p_key) = (ServiceLevel(0), PKey::DEFAULT_FULL);
    let path = LearntPath { to: guid(1), dlid: lid(1), service_level, p_key, rate: PathRate::default() };
    network.command(0, Command::LearnPaths(vec![path]));
    let bytes_per_second = Some(u64::MAX);
    let message_bytes = u32::MAX;
    let to = Destination::Mix { hot_spot: None, hot_permille: 0, others: vec![guid(1)], seed: 1 };
    let transport = Transport::UnreliableDatagram;
    open(&mut network, 0, 1, FlowSpec { bytes_per_second, to, transport, ..spec(1, 1) });
    open(&mut network, 0, 1, FlowSpec { bytes_per_second, message_bytes, ..spec(2, 1) });
    network.run(Time::from_micros(200));
    assert!(network.received(1, 1).bytes > 0 && network.received(1, 2).bytes > 0);
}

#[test]
fn latency_is_reported_only_with_a_common_clock() {
    for common_clock in [true, false] {
        let mut network = Network::new(2, &StackOptions { common_clock, ..options() }, 5);
        let slow = FlowSpec { bytes_per_second: Some(10_000_000), message_bytes: 2048, ..spec(3, 1) };
        open(&mut network, 0, 1, slow);
        network.run(Time::from_millis(20));
        let (_, received) = whole(&network, (0, 1), 3);
        let latency = received.latency;
        if common_clock {
            // 2074 bytes at 16 Gb/s, and 5 µs.
            assert_eq!((latency.min_ns, latency.max_ns), (6037, 6037));
            assert_eq!((latency.count, latency.sum_ns), (received.packets, received.packets * 6037));
        } else {
            assert_eq!(latency, Default::default());
        }
    }
}
