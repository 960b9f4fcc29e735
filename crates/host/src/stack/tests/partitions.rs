//! Partitions that a port leaves and joins.

use weft_machine::Time;
use weft_wire::{PKey, PathRate, PortFacts, ServiceLevel};

use super::network::{Network, guid, lid};
use super::{open, options, spec};
use crate::traffic::{Command, FlowSpec, LearntPath, Transport, Work};

const DEFAULT: PKey = PKey(0x7fff);
const WEB: PKey = PKey(0x8008);
const DATABASE: PKey = PKey(0x8009);

fn keys(keys: &[PKey]) -> impl FnOnce(&mut PortFacts) + '_ {
    move |facts| facts.p_keys = keys.to_vec()
}

fn learn(network: &mut Network, host: usize, to: usize, p_key: PKey) {
    let (service_level, rate) = (ServiceLevel(0), PathRate::default());
    let path = LearntPath { to: guid(to), dlid: lid(to), service_level, p_key, rate };
    network.command(host, Command::LearnPaths(vec![path]));
}

/// Host 0 is in both partitions, host 1 in the one and host 2 in the other; it sends to both, and host 1 to it.
fn network() -> Network {
    let mut network = Network::new(3, &options(), 1);
    network.tell(0, keys(&[DEFAULT, WEB, DATABASE]));
    network.tell(1, keys(&[DEFAULT, WEB]));
    network.tell(2, keys(&[DEFAULT, DATABASE]));
    for (from, to, p_key) in [(0, 1, WEB), (1, 0, WEB), (0, 2, DATABASE), (2, 0, DATABASE)] {
        learn(&mut network, from, to, p_key);
    }
    open(&mut network, 0, 1, spec(1, 1));
    open(&mut network, 0, 2, spec(2, 2));
    open(&mut network, 1, 0, spec(3, 0));
    network.run(Time::from_millis(2));
    for (to, flow) in [(1, 1), (2, 2), (0, 3)] {
        assert!(network.received(to, flow).bytes > 0, "flow {flow}");
    }
    network
}

#[test]
fn queue_pairs_of_a_key_that_goes_end_with_a_reason() {
    let mut network = network();
    assert_eq!(network.hosts[0].counts().p_key_changes, 1, "the table of the beginning");
    let asked = network.asked;
    network.tell(0, keys(&[DEFAULT, DATABASE]));
    let why = "the port has left partition 0x0008: its P_Key is not in the port's table any more";
    let (sent, received) = (network.sent(0, 1), network.received(0, 3));
    assert_eq!((sent.state.as_str(), sent.error.as_deref()), ("error", Some(why)));
    assert_eq!((received.state.as_str(), received.error.as_deref()), ("error", Some(why)));
    assert_eq!(network.sent(0, 2).error, None, "the other partition stays");
    assert_eq!((network.hosts[0].counts().p_key_changes, network.hosts[0].counts().partition_ends), (2, 2));
    // Nothing is sent or taken any more, and the other flow goes on.
    let (at_1, at_2, taken) =
        (network.received(1, 1).bytes, network.received(2, 2).bytes, network.received(0, 3).bytes);
    network.run(Time::from_millis(3));
    assert!(network.received(1, 1).bytes <= at_1 + 2048 * 4, "but what was under way");
    assert_eq!(network.received(0, 3).bytes, taken);
    assert!(network.received(2, 2).bytes > at_2);
    // Nor when the key comes back: that may be another tenancy.
    network.tell(0, keys(&[DEFAULT, WEB, DATABASE]));
    let ended = network.received(1, 1).bytes;
    network.run(Time::from_millis(3));
    assert_eq!((network.sent(0, 1).state.as_str(), network.received(1, 1).bytes), ("error", ended));
    // The path was asked for again, and a new flow takes it.
    open(&mut network, 0, 1, spec(5, 1));
    network.run(Time::from_millis(3));
    assert!(network.asked > asked && network.received(1, 5).bytes > 0);
}

#[test]
fn changes_that_leave_the_partition_end_nothing() {
    let mut network = network();
    // Another member and another place of the same key, a limited member, and the same table twice.
    for table in [[DEFAULT, WEB, PKey(0x8010), DATABASE], [DEFAULT, PKey(8), PKey(0x8010), DATABASE]] {
        network.tell(0, keys(&table));
        network.tell(0, keys(&table));
    }
    network.run(Time::from_millis(3));
    assert_eq!((network.hosts[0].counts().p_key_changes, network.hosts[0].counts().partition_ends), (3, 0));
    assert!(network.reports().iter().all(|report| report.error.is_none()), "{:#?}", network.reports());
}

#[test]
fn a_newcomer_asks_at_once_for_a_path_that_was_refused() {
    let mut network = Network::new(2, &options(), 1);
    network.tell(0, keys(&[DEFAULT]));
    network.absent = vec![guid(1)];
    network.command(0, Command::Open(spec(1, 1)));
    network.run(Time::from_micros(100));
    assert!(network.sent(0, 1).error.is_some_and(|error| error.contains("in a partition of this one?")));
    network.absent.clear();
    network.tell(0, keys(&[DEFAULT, WEB]));
    // Five timeouts of 1 ms pass before it asks by itself.
    network.run(Time::from_micros(200));
    assert_eq!(network.sent(0, 1).state, "sending");
}

#[test]
fn datagrams_of_a_mix_go_on_to_others() {
    let mut network = network();
    let to = crate::traffic::Destination::Mix {
        hot_spot: None,
        hot_permille: 0,
        others: vec![guid(1), guid(2)],
        seed: 1,
    };
    let transport = Transport::UnreliableDatagram;
    let work = Work::Stream;
    for host in [1, 2] {
        let (flow, message_bytes) = (weft_vocabulary::traffic::FlowId(9), 2048);
        network.command(host, Command::Expect { flow, from: None, transport, work, message_bytes });
    }
    network.command(0, Command::Open(FlowSpec { to, transport, message_bytes: 2048, ..spec(9, 1) }));
    network.run(Time::from_millis(2));
    network.tell(0, keys(&[DEFAULT, DATABASE]));
    let before = network.received(2, 9).bytes;
    network.run(Time::from_millis(2));
    assert!(network.received(2, 9).bytes > before, "{:#?}", network.reports());
    assert_eq!(network.sent(0, 9).error, None);
}
