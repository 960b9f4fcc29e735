//! Datagrams: nothing is sent again, and what is lost or disordered is seen.

use weft_machine::Time;
use weft_wire::{CongestionLevel, CongestionSettings, DataRate, Guid, PKey, PathRate, ServiceLevel};

use super::network::{Network, Weather, guid, lid};
use super::{open, options, seeds, spec};
use crate::stack::StackOptions;
use crate::stack::numbers::queue_pair;
use crate::traffic::{Command, Destination, FlowId, FlowSpec, LearntPath, Transport, Work};

const UD: Transport = Transport::UnreliableDatagram;

#[test]
fn lost_and_late_datagrams_are_counted() {
    for seed in seeds(4) {
        let mut network = Network::new(2, &options(), seed);
        network.weather = Weather { loss: 30, ..Weather::default() };
        let bytes_max = Some(4_000_000);
        open(&mut network, 0, 1, FlowSpec { transport: UD, bytes_max, message_bytes: 2000, ..spec(3, 1) });
        network.run(Time::from_millis(10));
        let (sent, received) = (network.sent(0, 3), network.received(1, 3));
        assert_eq!((sent.state.as_str(), sent.packets, sent.bytes), ("done", 2000, 4_000_000));
        // The last ones may be lost without a trace.
        let unseen = 2000 - received.packets - received.missing;
        assert!(unseen < 5, "WEFT_SEED={seed}");
        assert!(received.missing > 20 && received.disorder == 0, "{received:?}");
        network.weather = Weather { late: 100, ..Weather::default() };
        network.command(0, Command::Open(FlowSpec { transport: UD, bytes_max, ..spec(3, 1) }));
        network.run(Time::from_millis(10));
        let after = network.received(1, 3);
        assert!(after.out_of_order > 20 && after.disorder == 0, "each came once: {after:?}");
        assert!(after.missing <= received.missing + 5);
    }
}

/// The same flow number everywhere: each host sends to all and hears from all.
fn mix(hosts: usize, from: usize, hot_permille: u16, bytes_per_second: Option<u64>) -> FlowSpec {
    let others: Vec<Guid> = (0..hosts).map(guid).collect();
    let to = Destination::Mix { hot_spot: Some(guid(2)), hot_permille, others, seed: from as u64 };
    FlowSpec { to, transport: UD, bytes_per_second, message_bytes: 2048, ..spec(1, 0) }
}

fn open_mix(network: &mut Network, hosts: usize, hot_permille: u16, bytes_per_second: Option<u64>) {
    let (flow, from, work) = (FlowId(1), None, Work::Stream);
    for host in 0..hosts {
        let transport = UD;
        network.command(host, Command::Expect { flow, from, transport, work, message_bytes: 2048 });
        network.command(host, Command::Open(mix(hosts, host, hot_permille, bytes_per_second)));
    }
    assert_eq!(network.refusals, Vec::<String>::new());
}

#[test]
fn a_mix_among_all_loses_nothing_on_a_good_network() {
    let mut network = Network::new(5, &options(), 3);
    open_mix(&mut network, 5, 300, Some(100_000_000));
    network.run(Time::from_millis(30));
    for host in 0..5 {
        network.command(host, Command::Stop { flow: FlowId(1) });
    }
    network.run(Time::from_millis(1));
    let sent: u64 = (0..5).map(|host| network.sent(host, 1).packets).sum();
    let received: Vec<_> = (0..5).map(|host| network.received(host, 1)).collect();
    assert_eq!(received.iter().map(|report| report.packets).sum::<u64>(), sent);
    assert!(received.iter().all(|report| (report.missing, report.disorder) == (0, 0)), "{received:#?}");
    assert!(sent.abs_diff(5 * 3_000_000 / 2048) < 50, "{sent}");
    // 30 % of four, and a quarter of what is left of each: 1.9 of 5.
    let hot = received[2].packets as f64 / sent as f64;
    assert!((0.34..0.42).contains(&hot), "{hot}");
}

#[test]
fn a_mix_ends_after_as_many_bytes_as_it_was_told() {
    let mut network = Network::new(3, &options(), 3);
    let (flow, from, work) = (FlowId(1), None, Work::Stream);
    for host in 1..3 {
        let expect = Command::Expect { flow, from, transport: UD, work, message_bytes: 2048 };
        network.command(host, expect);
    }
    network.command(0, Command::Open(FlowSpec { bytes_max: Some(204_800), ..mix(3, 0, 0, None) }));
    network.run(Time::from_millis(5));
    let sent = network.sent(0, 1);
    assert_eq!((sent.state.as_str(), sent.bytes, sent.shed), ("done", 204_800, 0));
    let received = [1, 2].map(|host| network.received(host, 1).packets);
    assert_eq!(received.iter().sum::<u64>(), 100);
    assert!(received.iter().all(|packets| *packets > 20), "{received:?}");
}

#[test]
fn a_hot_spot_moves_only_flows_to_it_and_later_ones_too() {
    let mut network = Network::new(4, &options(), 3);
    open(&mut network, 0, 1, spec(1, 1));
    open(&mut network, 0, 2, spec(2, 2));
    network.run(Time::from_millis(1));
    network.hot_spot(0, lid(2), 3, true);
    network.hot_spot(0, lid(3), 4, true);
    network.run(Time::from_millis(1));
    open(&mut network, 0, 3, spec(5, 3));
    open(&mut network, 0, 2, FlowSpec { transport: UD, ..spec(6, 2) });
    network.run(Time::from_millis(1));
    let levels = |network: &Network| [1, 2, 5, 6].map(|flow| network.sent(0, flow).service_level.unwrap().0);
    assert_eq!(levels(&network), [0, 3, 4, 3]);
    network.hot_spot(0, lid(2), 3, false);
    network.run(Time::from_millis(1));
    assert_eq!(levels(&network), [0, 0, 4, 0]);
    assert_eq!(network.sent(0, 6).moves.len(), 1);
    // A manager that begins again knows nothing of it, but whoever said it will say when it ends.
    network.tell(0, |facts| facts.reregister = true);
    network.run(Time::from_millis(1));
    assert_eq!(levels(&network), [0, 0, 4, 0]);
    network.command(0, Command::HeedRepath(false));
    network.hot_spot(0, lid(1), 3, true);
    network.run(Time::from_millis(1));
    assert_eq!(levels(&network), [0, 0, 4, 0]);
    assert_eq!(network.hosts[0].counts().repaths_ignored, 1);
}

#[test]
fn a_blocked_lane_takes_nothing_from_the_others_of_an_open_loop() {
    for (open_loop, rate) in [(true, Some(1_000_000_000)), (true, None), (false, None)] {
        let mut network = Network::new(4, &options(), 3);
        if !open_loop {
            network.tell(0, |facts| facts.rate = DataRate::INSTANT);
        }
        let paths = (1..4).map(|host| LearntPath {
            to: guid(host),
            dlid: lid(host),
            service_level: ServiceLevel(u8::from(host == 2)),
            p_key: PKey::DEFAULT_FULL,
            rate: PathRate::default(),
        });
        network.command(0, Command::LearnPaths(paths.collect()));
        let asked = network.asked;
        network.command(0, Command::Open(mix(4, 0, 100, rate)));
        network.block(0, 1);
        network.run(Time::from_millis(5));
        let sent = network.sent(0, 1);
        assert_eq!(network.asked, asked, "what is taught is not asked for");
        if open_loop {
            // 10 % and a third of the rest wait for the blocked lane.
            let offered = rate.unwrap_or(2_000_000_000 * 2048 / 2082) / 200;
            let shed = sent.shed * 2048;
            assert!((sent.bytes + shed).abs_diff(offered) < offered / 20, "{sent:?}");
            assert!(shed.abs_diff(offered * 4 / 10) < offered / 20, "{sent:?}");
        } else {
            assert!(
                sent.packets < 200 && sent.shed == 0,
                "the first few for the blocked lane end it: {sent:?}"
            );
        }
    }
}

#[test]
fn a_ping_pong_of_datagrams_goes_on_after_a_loss() {
    let mut network = Network::new(2, &options(), 3);
    network.weather.loss = 50;
    let (transport, work) = (UD, Work::PingPong);
    open(&mut network, 0, 1, FlowSpec { transport, work, message_bytes: 1024, ..spec(3, 1) });
    network.run(Time::from_millis(40));
    let sent = network.sent(0, 3);
    assert!(sent.timeouts > 10 && sent.latency.count > 300, "{sent:?}");
    assert_eq!(sent.latency.min_ns, 2 * (5 * 1000 + (1024 + 34) / 2));
}

#[test]
fn marked_packets_slow_a_sender_which_recovers_in_time() {
    for (transport, by_service_level) in [
        (UD, false),
        (UD, true),
        (Transport::ReliableConnection, false),
        (Transport::ReliableConnection, true),
    ] {
        let mut network = Network::new(2, &options(), 3);
        let mut levels = [CongestionLevel::default(); 16];
        levels[0] = CongestionLevel { increase: 1, timer: 40, trigger_threshold: 2, minimum: 0 };
        let table = (0..64).collect();
        let settings = CongestionSettings { by_service_level, control_map: 1, levels, table };
        network.tell(0, |facts| facts.congestion = Some(settings));
        open(&mut network, 0, 1, FlowSpec { transport, ..spec(3, 1) });
        network.run(Time::from_millis(5));
        let free = network.received(1, 3).bytes;
        network.weather.fecn = 300;
        network.run(Time::from_millis(5));
        let slowed = network.received(1, 3).bytes - free;
        network.weather.fecn = 0;
        network.run(Time::from_millis(5));
        let before = network.received(1, 3).bytes;
        network.run(Time::from_millis(5));
        let recovered = network.received(1, 3).bytes - before;
        assert!(slowed < free / 2, "{transport:?} {by_service_level}: {slowed} of {free}");
        assert!(recovered > free - free / 10, "{transport:?}: {recovered} of {free}");
        let heard = network.sent(0, 3).notifications;
        assert!(heard > 0 && heard == network.notifications, "{heard} {}", network.notifications);
        let (host, event) = network.congestion[0];
        let qp = queue_pair(FlowId(3));
        assert_eq!(
            (host, event.local_qp, event.remote_qp, event.service_level),
            (0, qp, qp, ServiceLevel(0))
        );
        assert_eq!(event.service_type, if transport == UD { 3 } else { 0 });
        // The index had to come down before it could come up to the threshold once more.
        assert!(
            (network.congestion.len() as u64) < heard.div_ceil(2),
            "{} of {heard}",
            network.congestion.len()
        );
    }
}

#[test]
fn packets_of_a_mix_keep_their_queue_pairs_delay_one_by_one() {
    let mut network = Network::new(3, &options(), 3);
    // Three packets' time behind each packet, from the beginning.
    let levels = [CongestionLevel { minimum: 3, ..CongestionLevel::default() }; 16];
    let table = (0..64).collect();
    let settings = CongestionSettings { by_service_level: false, control_map: 3, levels, table };
    network.tell(0, |facts| facts.congestion = Some(settings));
    let (flow, from, work, transport) = (FlowId(1), None, Work::Stream, UD);
    for host in 1..3 {
        network.command(host, Command::Expect { flow, from, transport, work, message_bytes: 2048 });
    }
    // Two service levels, which take turns.
    network.levels.insert((lid(0), lid(2)), ServiceLevel(1));
    network.command(0, Command::Open(mix(3, 0, 0, Some(1_500_000_000))));
    network.run(Time::from_millis(20));
    let sent = network.sent(0, 1);
    let received = [1, 2].map(|host| network.received(host, 1).packets);
    assert!(received[0].abs_diff(received[1]) < 20, "{received:?}");
    // 2082 bytes at a quarter of 16 Gb/s are 4.164 us; 1.5 GB/s are made.
    assert!(sent.packets.abs_diff(20_000_000 / 4_164) < 20, "{}", sent.packets);
    assert!(
        (sent.packets + sent.shed + 128).abs_diff(30_000_000 / 2048) < 100,
        "{} and {}",
        sent.packets,
        sent.shed
    );
}

#[test]
fn stray_packets_are_counted() {
    let mut network = Network::new(2, &StackOptions { retries: 1, ..options() }, 3);
    network.command(0, Command::Open(spec(3, 1)));
    network.run(Time::from_millis(3));
    assert_eq!(network.sent(0, 3).state, "error");
    assert!(network.hosts[1].counts().stray_packets > 0);
}

/// A flow whose packets the adapter refuses goes on with one in a packet's time, or in a millisecond where packets take
/// no time, and another flow on the same service level has the rest.
#[test]
fn a_refused_packet_is_not_offered_again_at_once() {
    for (rate_mbps, most) in [(16_000, 10_000), (0, 25)] {
        for of_mix in [false, true] {
            let mut network = Network::new(3, &options(), 8);
            network.tell(0, |facts| facts.rate = DataRate::from_mbps(rate_mbps));
            network.refused_for = Some(queue_pair(FlowId(1)));
            let mut refused = FlowSpec { transport: Transport::UnreliableDatagram, ..spec(1, 1) };
            if of_mix {
                let others = vec![guid(1), guid(2)];
                refused.to = Destination::Mix { hot_spot: None, hot_permille: 0, others, seed: 1 };
            }
            network.command(0, Command::Open(refused));
            open(&mut network, 0, 2, FlowSpec { transport: Transport::UnreliableDatagram, ..spec(2, 2) });
            network.run(Time::from_millis(10));
            let tried = network.sent(0, 1).packets;
            assert!((5..=most).contains(&tried), "{rate_mbps} Mb/s, mix {of_mix}: {tried}");
            assert_eq!(network.hosts[0].counts().packets_refused, tried);
            // 16 Gb/s are 9500 packets in 10 ms.
            let taken = network.received(2, 2).packets;
            assert!(taken > 9_000, "{rate_mbps} Mb/s, mix {of_mix}: {taken}");
        }
    }
}
