//! The manager before a fabric that answers in virtual time: learning, sweeping, totals.

#[allow(dead_code)]
mod fake;

use fake::Fake;
use weft_machine::Time;
use weft_pm::{Event, Input, Options, Question, Snapshot};
use weft_wire::{NodeType, PortNum, ServiceLevel, trap};

fn options() -> Options {
    Options { wildcard_at_start: false, ..Options::default() }
}

fn seconds(secs: u64) -> Time {
    Time::from_secs(secs)
}

fn swept(fake: &Fake) -> u64 {
    fake.manager.statistics().sweeps
}

fn snapshot(fake: &Fake) -> Snapshot {
    fake.manager.snapshot(fake.now)
}

#[test]
fn the_fabric_is_learned_and_swept() {
    let mut fake = Fake::experiment_i(options());
    fake.attach();
    fake.run_until(Time::from_millis(100));
    assert_eq!(fake.events[0].1, Event::Learned { nodes: 10, ports: 24 });
    assert_eq!(fake.subscriptions(), [trap::GID_IN_SERVICE, trap::GID_OUT_OF_SERVICE]);
    assert_eq!(fake.service_levels, [ServiceLevel(7)], "the subnet manager's for this port");
    let snapshot = snapshot(&fake);
    assert_eq!((snapshot.lid.0, snapshot.sm_lid.0, snapshot.ready), (14, 11, true));
    let port = snapshot.ports.iter().find(|port| (port.end.lid.0, port.end.port.0) == (4, 3)).unwrap();
    assert_eq!((port.rate.to_string(), port.rate_bits), ("4xDDR".to_owned(), 16_000_000_000));
    let peer = port.peer.as_ref().unwrap();
    assert_eq!((peer.name.as_str(), peer.node_type, peer.port), ("host 5", NodeType::Hca, PortNum(1)));
    assert_eq!(swept(&fake), 1);
    fake.run_until(seconds(10));
    assert_eq!(swept(&fake), 5, "every two seconds");
    let statistics = fake.manager.statistics();
    assert_eq!((statistics.requests, statistics.late_sweeps, statistics.failures), (5 * 24 * 2, 0, 0));
}
