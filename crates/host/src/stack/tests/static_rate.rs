//! Gaps between packets that go over a slower link.

use weft_machine::Time;
use weft_wire::{Guid, PKey, PathRate, ServiceLevel};

use super::network::{Network, guid, lid};
use super::{open, options, spec};
use crate::stack::StackOptions;
use crate::traffic::{Command, Destination, FlowId, FlowSpec, LearntPath, PathSource, Transport, Work};

/// What arrived of a flow within `millis` milliseconds of fabric time, in Mb/s of body.
fn rate(network: &Network, host: usize, flow: u32, millis: u64) -> u64 {
    network.received(host, flow).bytes * 8 / 1_000 / millis
}

/// The first host sends 12 Gb/s of body to all others, evenly by chance.
fn open_mix(network: &mut Network, hosts: usize) {
    let (flow, from, work, message_bytes) = (FlowId(1), None, Work::Stream, 2048);
    let transport = Transport::UnreliableDatagram;
    for host in 1..hosts {
        network.command(host, Command::Expect { flow, from, transport, work, message_bytes });
    }
    let others: Vec<Guid> = (1..hosts).map(guid).collect();
    let to = Destination::Mix { hot_spot: None, hot_permille: 0, others, seed: 7 };
    let flow = FlowSpec { to, transport, bytes_per_second: Some(1_500_000_000), message_bytes, ..spec(1, 0) };
    network.command(0, Command::Open(flow));
}

#[test]
fn static_rate_limits_one_queue_pair_and_frees_the_rest() {
    for transport in [Transport::ReliableConnection, Transport::UnreliableDatagram] {
        let mut network = Network::new(3, &options(), 3);
        network.rates.insert(lid(1), PathRate::Gb2_5);
        open(&mut network, 0, 1, FlowSpec { transport, message_bytes: 2048, ..spec(1, 1) });
        open(&mut network, 0, 2, FlowSpec { transport, message_bytes: 2048, ..spec(2, 2) });
        network.run(Time::from_millis(20));
        let [slow, other] = [1, 2].map(|to| rate(&network, to, to as u32, 20));
        // 2 Gb/s of whole packets; all that is left of 16.
        assert!((1_930..2_000).contains(&slow), "{transport:?}: {slow}");
        assert!((13_400..14_000).contains(&other), "{transport:?}: {other}");
    }
}

#[test]
fn without_a_path_record_no_static_rate_applies() {
    let mut network = Network::new(2, &options(), 3);
    network.rates.insert(lid(1), PathRate::Gb2_5);
    open(&mut network, 0, 1, FlowSpec { paths: PathSource::Unasked, ..spec(1, 1) });
    network.run(Time::from_millis(20));
    assert!(rate(&network, 1, 1, 20) > 15_000);
}

#[test]
fn gaps_are_as_long_as_fabric_time_is_stretched() {
    let mut network = Network::new(2, &StackOptions { dilation: 4, ..options() }, 3);
    network.rates.insert(lid(1), PathRate::Gb5);
    open(&mut network, 0, 1, spec(1, 1));
    network.run(Time::from_millis(40));
    // 4 Gb/s of data, a quarter of it in machine time.
    assert!((940..1_000).contains(&rate(&network, 1, 1, 40)));
}

#[test]
fn datagrams_to_many_leave_gaps_to_the_slow_one_alone() {
    let mut network = Network::new(4, &options(), 3);
    network.rates.insert(lid(1), PathRate::Gb2_5);
    // 12 Gb/s of body: 4 to each.
    open_mix(&mut network, 4);
    network.run(Time::from_millis(20));
    let rates = [1, 2, 3].map(|host| rate(&network, host, 1, 20));
    assert!((1_900..2_000).contains(&rates[0]), "{rates:?}");
    assert!(
        rates[1..].iter().all(|rate| rate.abs_diff(4_000) < 150),
        "nothing of theirs is thrown away: {rates:?}"
    );
    let sent = network.sent(0, 1);
    let made = sent.packets + sent.shed;
    assert!(sent.shed.abs_diff(made / 6) < made / 50, "half of a third: {} of {made}", sent.shed);
    // A faster way is used as soon as it is known.
    let (to, dlid, service_level, p_key) = (guid(1), lid(1), ServiceLevel(0), PKey::DEFAULT_FULL);
    let faster = LearntPath { to, dlid, service_level, p_key, rate: PathRate::Gb20 };
    network.command(0, Command::LearnPaths(vec![faster]));
    network.run(Time::from_millis(1));
    let before = network.received(1, 1).bytes;
    network.run(Time::from_millis(20));
    let after = (network.received(1, 1).bytes - before) * 8 / 20_000;
    assert!(after.abs_diff(4_000) < 150, "{after}");
}

#[test]
fn another_rate_is_no_other_lane() {
    let mut network = Network::new(2, &options(), 3);
    network.rates.insert(lid(1), PathRate::Gb2_5);
    open(&mut network, 0, 1, spec(1, 1));
    network.run(Time::from_millis(1));
    let (to, dlid, service_level, p_key) = (guid(1), lid(1), ServiceLevel(0), PKey::DEFAULT_FULL);
    let path = |rate| Command::LearnPaths(vec![LearntPath { to, dlid, service_level, p_key, rate }]);
    // The administration of this network names no partition, so this is another way; its rate is left as it is.
    network.command(0, path(PathRate::default()));
    network.run(Time::from_millis(1));
    let moves = network.sent(0, 1).moves_total;
    for (rate, mbps) in [(PathRate::default(), 2_000), (PathRate::Gb5, 4_000), (PathRate::Gb20, 16_000)] {
        network.command(0, path(rate));
        let before = network.received(1, 1).bytes;
        network.run(Time::from_millis(10));
        let moved = (network.received(1, 1).bytes - before) * 8 / 10_000;
        assert!((mbps - mbps / 20..mbps).contains(&moved), "{rate}: {moved}");
    }
    assert_eq!(network.sent(0, 1).moves_total, moves);
}

#[test]
fn many_slow_ports_leave_room_for_the_fast_one() {
    // A slow one takes 0.2 Gb/s of machine time, and 12 / 21 are made for it.
    let mut network = Network::new(22, &StackOptions { dilation: 10, ..options() }, 3);
    for host in 1..22 {
        network.rates.insert(lid(host), if host == 1 { PathRate::Gb20 } else { PathRate::Gb2_5 });
    }
    open_mix(&mut network, 22);
    network.run(Time::from_millis(20));
    let fast = rate(&network, 1, 1, 20);
    assert!(fast.abs_diff(12_000 / 21) < 60, "a twenty-first of 12 Gb/s is {fast} Mb/s");
}
