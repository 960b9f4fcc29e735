//! Random schedules: losses, late duplicates, changes of lane, and suspensions and moves of both ends.

use weft_machine::{Machine, Time};

use super::network::{Dice, Network, Weather, guid, lid};
use super::suspended::relocate;
use super::{flow_that_wraps, open, options, seeds, spec};
use crate::stack::{Input, MovedLid, Stack};
use crate::traffic::{FlowSpec, MoveBy, Work};

/// Flows, by their senders.
const SENDERS: [(usize, u32); 6] = [(0, 1), (1, 2), (0, 3), (1, 4), (0, 5), (1, 6)];

fn begin(seed: u64) -> (Network, Vec<(usize, u32)>) {
    let mut network = Network::new(2, &options(), seed);
    let wraps = flow_that_wraps(300);
    let mut flows = Vec::new();
    for (at, (from, flow)) in SENDERS.into_iter().enumerate() {
        let flow = if at == 0 { wraps } else { flow };
        let to = 1 - from;
        let move_by = if at % 2 == 0 { MoveBy::Drain } else { MoveBy::Migrate };
        let work = if at < 4 { Work::Stream } else { Work::PingPong };
        // Each lasts about as long as the schedule, by its size or by its rate.
        let bytes_max = Some([3_000_000, 600_000, 400_000, 3_000_000, 2_000_000, 250_000][at]);
        let bytes_per_second = [None, Some(60_000_000), Some(40_000_000), None, None, None][at];
        let message_bytes = [20_000, 2048, 1000, 70_000, 5000, 640][at];
        open(
            &mut network,
            from,
            to,
            FlowSpec { move_by, work, bytes_max, message_bytes, bytes_per_second, ..spec(flow, to) },
        );
        flows.push((from, flow));
    }
    (network, flows)
}

/// One random act.
fn act(network: &mut Network, dice: &mut Dice) {
    let host = dice.below(2) as usize;
    match dice.below(12) {
        0..3 if !network.hosts[host].is_suspended() => network.suspend(host),
        3..5 if network.hosts[host].is_suspended() => {
            let clock = Time::from_nanos(dice.below(10_000_000_000));
            let loss = dice.below(3) * 500;
            relocate(network, host, &options(), clock, loss);
            if dice.below(2) == 0 {
                network.tell(host, |facts| facts.active = false);
            }
            network.tell(host, |facts| facts.active = true);
        }
        5 if network.hosts[host].is_suspended() => {
            // The image of a move that is undone.
            let bytes = network.hosts[host].export().unwrap().encode().unwrap();
            assert!(bytes.len() < 20_000, "{}", bytes.len());
            network.resume(host);
        }
        6..9 => network.resume(host),
        9 => {
            let (guid, lid) = (guid(host), lid(host));
            network.feed(1 - host, Input::Moved(MovedLid { guid, from: lid, to: lid }));
        }
        10 => network.hot_spot(1 - host, lid(host), 1, dice.below(2) == 0),
        _ => (0..dice.below(20)).for_each(|_| network.echo()),
    }
}

#[test]
fn flows_arrive_once_and_in_order_over_pauses_and_moves() {
    let mut amid = 0;
    for seed in seeds(24) {
        let (mut network, flows) = begin(seed);
        let mut dice = Dice(seed.wrapping_mul(0x2545_f491_4f6c_dd1d) | 1);
        network.weather = Weather { loss: dice.below(30), late: 30, twice: 20, fecn: 0 };
        network.delays[1] = Time::from_micros(60);
        for _ in 0..60 {
            network.run(Time::from_micros(dice.below(400)));
            let works = network.reports().iter().any(|flow| flow.sender && flow.state != "done");
            amid += u32::from(works);
            act(&mut network, &mut dice);
            for flow in network.reports() {
                assert_eq!((flow.disorder, flow.missing), (0, 0), "WEFT_SEED={seed}: {flow:#?}");
                assert_ne!(flow.state, "error", "WEFT_SEED={seed}: {flow:#?}");
            }
        }
        [0, 1].into_iter().for_each(|host| network.resume(host));
        network.weather = Weather::default();
        let done =
            |network: &Network| flows.iter().all(|(from, flow)| network.sent(*from, *flow).state == "done");
        network.run_until(Time::from_secs(1), done);
        network.run(Time::from_millis(200));
        for &(from, flow) in &flows {
            let (sent, received) = (network.sent(from, flow), network.received(1 - from, flow));
            assert_eq!(sent.bytes, received.bytes, "WEFT_SEED={seed}, flow {flow}");
            assert_eq!((received.disorder, received.missing), (0, 0), "WEFT_SEED={seed}");
        }
        let waits: Vec<_> = network.hosts.iter().map(Stack::next_timer).collect();
        assert_eq!(waits, [None, None], "WEFT_SEED={seed}: both ends come to rest");
        assert!(network.in_adapter.values().all(|count| *count == 0), "WEFT_SEED={seed}");
        assert!(network.in_adapter_max <= 2, "WEFT_SEED={seed}");
    }
    assert!(amid > 40, "flows end before they are disturbed: {amid}");
}

#[test]
fn a_schedule_without_suspension_is_what_it_was() {
    // A notice that no flow needs, and a suspension that ends at once, cost repetitions and nothing else.
    let (mut network, flows) = begin(1);
    network.run(Time::from_millis(1));
    network.suspend(0);
    network.resume(0);
    let done =
        |network: &Network| flows.iter().all(|(from, flow)| network.sent(*from, *flow).state == "done");
    network.run_until(Time::from_millis(100), done);
    assert!(network.reports().iter().all(|flow| flow.timeouts == 0 && flow.disorder == 0));
}
