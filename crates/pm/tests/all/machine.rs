//! The manager before a fabric that answers in virtual time: learning, sweeping, totals.
#![allow(clippy::unwrap_used, clippy::disallowed_macros, reason = "a test may panic and print its seed")]

use fake::Fake;
use weft_machine::{Machine, Time};
use weft_mgmt::RequestTimer;
use weft_pm::{ErrorTotals, Event, Input, Options, PmTimer, Question, Snapshot};
use weft_vocabulary::NodeKind;
use weft_wire::{AttributeId, NodeType, PortNum, ServiceLevel, trap};

use crate::fake;

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

/// Lets the next timer's time come; what it was for.
fn step(fake: &mut Fake) -> PmTimer {
    let timer = fake.manager.next_timer().unwrap();
    assert_eq!(Some(timer.at), fake.manager.poll_timeout());
    fake.run_until(timer.at);
    timer.reason
}

#[test]
fn its_timer_says_what_it_then_does() {
    let mut fake = Fake::experiment_i(options());
    fake.lose = Box::new(|_| true);
    fake.attach();
    let asked = fake.manager.statistics().learn_requests;
    assert_eq!(step(&mut fake), PmTimer::Question);
    assert_eq!(fake.manager.statistics().learn_requests, asked + 1, "asked again");
    while step(&mut fake) == PmTimer::Question {}
    assert!(fake.events.iter().any(|(_, event)| matches!(event, Event::NotLearned { .. })));
    assert!(fake.manager.statistics().learn_requests > asked + 1, "learning began again");

    fake.lose = Box::new(|_| false);
    fake.run_for(seconds(20));
    fake.lose = Box::new(|mad| mad.mad.class() == weft_wire::MgmtClass::Perf);
    let before = fake.manager.statistics();
    while step(&mut fake) != PmTimer::Sweep {}
    assert!(fake.manager.statistics().requests > before.requests, "a sweep began");
    let before = fake.manager.statistics().timeouts;
    while step(&mut fake) != PmTimer::Counters(RequestTimer::Timeout) {
        assert_eq!(fake.manager.statistics().timeouts, before, "only that is a timeout");
    }
    assert!(fake.manager.statistics().timeouts > before);
    let probed = loop {
        let before = fake.manager.statistics().probes;
        if step(&mut fake) == PmTimer::Probe {
            break fake.manager.statistics().probes - before;
        }
    };
    assert!(probed > 0, "silent devices are asked");
}

#[test]
fn the_fabric_is_learned_and_swept() {
    let mut fake = Fake::experiment_i(options());
    fake.attach();
    fake.run_until(Time::from_millis(100));
    assert_eq!(fake.events[0].1, Event::Learned { nodes: 10, ports: 24 });
    assert_eq!(
        fake.subscriptions(),
        [trap::GID_IN_SERVICE, trap::GID_OUT_OF_SERVICE, trap::LINK_STATE_CHANGE]
    );
    assert_eq!(fake.service_levels, [ServiceLevel(7)], "the subnet manager's for this port");
    let snapshot = snapshot(&fake);
    assert_eq!((snapshot.lid.0, snapshot.sm_lid.0, snapshot.ready), (14, 11, true));
    let port = snapshot.ports.iter().find(|port| (port.end.lid.0, port.end.port.0) == (4, 3)).unwrap();
    assert_eq!((port.rate.to_string(), port.rate_bits), ("4xDDR".to_owned(), 16_000_000_000));
    let peer = port.peer.as_ref().unwrap();
    assert_eq!((peer.name.as_str(), peer.kind, peer.port), ("host 5", NodeKind::Hca, PortNum(1)));
    assert_eq!(swept(&fake), 1);
    fake.run_until(seconds(10));
    assert_eq!(swept(&fake), 5, "every two seconds");
    let statistics = fake.manager.statistics();
    assert_eq!((statistics.requests, statistics.late_sweeps, statistics.failures), (5 * 24 * 2, 0, 0));
}

#[test]
fn it_waits_for_a_subnet_manager_that_comes_later() {
    let mut fake = Fake::experiment_i(Options { retries: 1, ..options() });
    fake.sm_is_dead = true;
    fake.attach();
    fake.run_until(seconds(9));
    let failed = Event::NotLearned { question: Question::Nodes, status: None };
    assert_eq!(fake.events.len(), 3, "after two seconds each, and a pause of one: {:?}", fake.events);
    assert!(fake.events.iter().all(|(_, event)| *event == failed));
    fake.sm_is_dead = false;
    fake.run_until(seconds(13));
    assert!(fake.events.iter().any(|(_, event)| *event == Event::Learned { nodes: 10, ports: 24 }));
}

#[test]
fn totals_survive_counter_wraps_and_resets() {
    let mut fake = Fake::experiment_i(options());
    fake.port(4, 3).xmit.base = u64::MAX - 1_000_000;
    fake.traffic(4, 3, 400_000_000, 500_000);
    fake.traffic(11, 1, 0, 500_000);
    fake.port(11, 1).symbol_errors = 0x9000;
    fake.attach();
    let mut shown = Vec::new();
    for _ in 0..20 {
        fake.run_for(seconds(2));
        let snapshot = snapshot(&fake);
        let port = snapshot.ports.iter().find(|port| (port.end.lid.0, port.end.port.0) == (4, 3)).unwrap();
        shown.push((port.congestion, port.xmit_bandwidth, port.totals.port_xmit_wait));
    }
    // 32 bits are full after 10.7 seconds; they were reset in time, and the rate is steady.
    assert!(fake.manager.statistics().resets >= 6, "{:?}", fake.manager.statistics());
    for (congestion, bandwidth, _) in &shown[2..] {
        assert!(congestion.abs_diff(400_000_000) < 100_000, "{congestion}");
        assert!(bandwidth.abs_diff(2_000_000) < 500, "{bandwidth}");
    }
    // What is lost is what is counted while a reset is under way.
    let counted = 38 * 400_000_000u64;
    assert!(shown.last().unwrap().2.abs_diff(counted) < counted / 1000, "{shown:?}");
    let snapshot = snapshot(&fake);
    let host = snapshot.ports.iter().find(|port| port.end.lid.0 == 11).unwrap();
    assert_eq!((host.totals.symbol_error_counter, fake.port(11, 1).symbol_errors), (0x9000, 0));
}

#[test]
fn a_counter_stuck_at_its_highest_value_is_freed() {
    let mut fake = Fake::experiment_i(options());
    fake.port(11, 1).wait.base = u64::from(u32::MAX);
    fake.traffic(11, 1, 50_000_000, 0);
    fake.attach();
    fake.run_until(seconds(5));
    let snapshot = snapshot(&fake);
    let host = snapshot.ports.iter().find(|port| port.end.lid.0 == 11).unwrap();
    assert!(host.congestion.abs_diff(50_000_000) < 10_000, "{}", host.congestion);
    assert_eq!(fake.manager.statistics().counters_stopped, 1);
}

#[test]
fn without_resets_nothing_is_written() {
    let mut fake = Fake::experiment_i(Options { reset: false, lanes: true, ..options() });
    fake.port(11, 1).wait.base = u64::from(u32::MAX);
    fake.attach();
    fake.run_until(seconds(9));
    let sets = fake.sent.keys().filter(|(class, _, method)| (*class, *method) == (4, 2));
    assert_eq!(sets.count(), 0);
    assert_eq!(fake.manager.statistics().counters_stopped, 5, "in each of five sweeps");
}

#[test]
fn a_device_without_64_bit_counters_is_swept_by_its_32_bit_ones() {
    let mut fake = Fake::experiment_i(options());
    fake.nodes.get_mut(&11).unwrap().extended = false;
    fake.traffic(11, 1, 0, 500_000_000);
    fake.attach();
    fake.run_until(seconds(41));
    let snapshot = snapshot(&fake);
    let host = snapshot.ports.iter().find(|port| port.end.lid.0 == 11).unwrap();
    assert!(host.xmit_bandwidth.abs_diff(2_000_000_000) < 1_000_000, "{}", host.xmit_bandwidth);
    assert!(host.totals.port_xmit_data > 15 << 30, "{}", host.totals.port_xmit_data);
    assert_eq!(fake.manager.statistics().refused, 1, "it is asked for them once");
}

#[test]
fn lanes_are_read_and_set_back() {
    let mut fake = Fake::experiment_i(Options { lanes: true, ..options() });
    for (lane, rate) in [(0, 1_000), (1, 20_000), (2, 200_000)] {
        fake.port(4, 3).lane_waits[lane].set_rate(Time::ZERO, rate);
    }
    fake.attach();
    fake.run_until(seconds(21));
    let snapshot = snapshot(&fake);
    let port = snapshot.ports.iter().find(|port| (port.end.lid.0, port.end.port.0) == (4, 3)).unwrap();
    let near = |lane: usize, ticks: u64| port.lane_waits[lane].abs_diff(ticks) <= ticks / 100;
    assert!(near(0, 20_000) && near(1, 400_000), "{:?}", port.lane_waits);
    // It stopped in every sweep but the first.
    assert!(port.lane_waits[2].abs_diff(10 * 65_535) < 1000, "{:?}", port.lane_waits);
    assert_eq!(fake.manager.statistics().counters_stopped, 10);
}

#[test]
fn error_details_are_read_where_supported() {
    let mut fake = Fake::experiment_i(Options { errors: true, ..options() });
    fake.nodes.get_mut(&12).unwrap().details = false;
    fake.port(11, 1).dlid_mapping_errors = 7;
    fake.attach();
    fake.run_until(seconds(5));
    fake.port(11, 1).dlid_mapping_errors = 40_000;
    fake.run_until(seconds(9));
    fake.port(11, 1).dlid_mapping_errors += 5;
    fake.run_until(seconds(13));
    let snapshot = snapshot(&fake);
    let host = snapshot.ports.iter().find(|port| port.end.lid.0 == 11).unwrap();
    let errors = ErrorTotals { port_dlid_mapping_errors: 40_005, ..ErrorTotals::default() };
    assert_eq!((host.errors, host.refuses), (errors, false));
    let statistics = fake.manager.statistics();
    assert_eq!((statistics.refused, statistics.resets), (1, 1), "who does not know it is asked once");
}

#[test]
fn a_port_that_refuses_counters_is_shown_until_it_answers() {
    let mut fake = Fake::experiment_i(Options { lanes: true, ..options() });
    fake.attach();
    let refuses = |fake: &Fake| {
        let ports = snapshot(fake).ports;
        ports.iter().filter(|port| port.refuses).map(|port| port.end.lid.0).collect::<Vec<_>>()
    };
    fake.nodes.get_mut(&12).unwrap().refuses = Some(AttributeId::PORT_COUNTERS);
    fake.run_until(seconds(5));
    assert_eq!(refuses(&fake), [12]);
    fake.nodes.get_mut(&12).unwrap().refuses = None;
    fake.run_until(seconds(9));
    assert_eq!(refuses(&fake), Vec::<u16>::new());
}

#[test]
fn a_device_that_restarts_is_left_out_and_comes_back() {
    let mut fake = Fake::experiment_i(Options { retries: 1, ..options() });
    fake.traffic(12, 1, 0, 1_000_000);
    fake.attach();
    fake.run_until(seconds(5));
    fake.nodes.get_mut(&12).unwrap().dead = true;
    fake.run_until(seconds(20));
    let statistics = fake.manager.statistics();
    assert_eq!((statistics.silences, statistics.silent_nodes), (1, 1), "{statistics:?}");
    assert!(statistics.sweeps >= 9, "the others are swept meanwhile: {}", statistics.sweeps);
    assert!(statistics.learned >= 2, "whether it is still there is asked");
    assert!(statistics.probes >= 3);
    let now = fake.now;
    fake.nodes.get_mut(&12).unwrap().dead = false;
    fake.port(12, 1).xmit.set(now, 0);
    fake.run_for(seconds(5));
    let snapshot = snapshot(&fake);
    let host = snapshot.ports.iter().find(|port| port.end.lid.0 == 12).unwrap();
    assert!(!host.silent && host.xmit_bandwidth.abs_diff(4_000_000) < 4000, "{host:?}");
    assert!(host.totals.port_xmit_data > 8_000_000, "what it counted before is in the total");
    assert!(snapshot.statistics.counters_fallen >= 1);
}

#[test]
fn a_late_sweep_is_counted_and_the_next_follows_at_once() {
    let interval = Time::from_millis(100);
    let mut fake = Fake::experiment_i(Options { interval, window: 4, ..options() });
    fake.round_trip = Time::from_millis(20);
    fake.attach();
    // 48 requests, four at a time, take twelve round trips.
    fake.run_until(seconds(10));
    let statistics = fake.manager.statistics();
    assert_eq!(statistics.sweep_last, Time::from_millis(240));
    assert_eq!(statistics.sweeps, statistics.late_sweeps);
    assert!((38..=41).contains(&statistics.sweeps), "one after the other: {}", statistics.sweeps);
}

#[test]
fn lost_answers_cost_time_and_nothing_else() {
    use rand::{RngExt, SeedableRng};
    let seed = std::env::var("WEFT_SEED").ok().and_then(|text| text.parse().ok()).unwrap_or(20_261_120);
    println!("WEFT_SEED={seed}");
    let mut random = rand_pcg::Pcg64Mcg::seed_from_u64(seed);
    let mut fake = Fake::experiment_i(options());
    for lid in 11..=16 {
        fake.traffic(lid, 1, 1000 * u64::from(lid), 1_000_000);
    }
    fake.attach();
    fake.run_until(seconds(1));
    fake.lose = Box::new(move |_| random.random_ratio(1, 20));
    fake.run_until(seconds(200));
    fake.lose = Box::new(|_| false);
    fake.run_until(seconds(206));
    let statistics = fake.manager.statistics();
    assert!(statistics.retries > 100 && statistics.unmatched > 0, "{statistics:?}");
    let snapshot = snapshot(&fake);
    for port in snapshot.ports.iter().filter(|port| port.end.lid.0 > 10) {
        let read = port.read_at.unwrap();
        let counted = fake.port(port.end.lid.0, 1).wait.at(read);
        assert!(port.totals.port_xmit_wait.abs_diff(counted) < 100, "{port:?} {counted}");
    }
}

#[test]
fn a_report_leads_to_another_look_and_is_answered() {
    let mut fake = Fake::experiment_i(options());
    fake.attach();
    fake.run_until(seconds(5));
    fake.add(17, NodeType::Hca, "late");
    fake.cable((2, 5), (17, 1));
    fake.report(trap::GID_IN_SERVICE, 17);
    fake.report(trap::GID_IN_SERVICE, 17);
    assert_eq!(fake.report_responses, 2);
    fake.run_for(Time::from_millis(300));
    let learned: Vec<_> =
        fake.events.iter().filter(|(_, event)| matches!(event, Event::Learned { .. })).collect();
    assert_eq!(learned.len(), 2, "two reports, one look");
    assert_eq!(learned[1].1, Event::Learned { nodes: 11, ports: 26 });
    assert_eq!(snapshot(&fake).ports.iter().filter(|port| port.end.name == "late").count(), 1);
}

#[test]
fn it_asks_again_from_time_to_time_and_renews_its_subscriptions() {
    let mut fake = Fake::experiment_i(Options { refresh: seconds(30), ..options() });
    fake.attach();
    fake.run_until(seconds(100));
    assert_eq!(fake.manager.statistics().learned, 4);
    assert_eq!(fake.subscriptions().len(), 12);
}

#[test]
fn a_port_that_goes_down_ends_sweeping_until_it_is_up() {
    let mut fake = Fake::experiment_i(options());
    fake.attach();
    fake.run_until(seconds(5));
    let sweeps = swept(&fake);
    fake.lose = Box::new(|mad| !mad.mad.is_smp());
    fake.input(Input::PortChanged { up: false });
    fake.run_until(seconds(60));
    assert_eq!((swept(&fake), snapshot(&fake).ready), (sweeps, false));
    assert_eq!(fake.manager.statistics().silences, 0, "nobody is blamed for it");
    fake.lose = Box::new(|_| false);
    fake.input(Input::PortChanged { up: true });
    fake.run_for(seconds(1));
    assert!(snapshot(&fake).ready && swept(&fake) > sweeps);
    fake.input(Input::Detached);
    assert_eq!(fake.manager.poll_timeout(), None);
    let before = fake.sent.clone();
    fake.run_for(seconds(100));
    assert_eq!(fake.sent, before);
    fake.attach();
    fake.run_for(seconds(1));
    assert!(snapshot(&fake).ready);
}

#[test]
fn the_service_level_can_be_chosen() {
    let management_sl = Some(ServiceLevel(15));
    let mut fake = Fake::experiment_i(Options { management_sl, ..options() });
    fake.attach();
    fake.run_until(seconds(3));
    assert_eq!(fake.service_levels, [ServiceLevel(15)]);
}

#[test]
fn nothing_that_arrives_makes_it_panic() {
    use rand::{Rng, RngExt, SeedableRng};
    let seed = std::env::var("WEFT_SEED").ok().and_then(|text| text.parse().ok()).unwrap_or(7);
    println!("WEFT_SEED={seed}");
    let mut random = rand_pcg::Pcg64Mcg::seed_from_u64(seed);
    let mut fake = Fake::experiment_i(Options { lanes: true, ..Options::default() });
    fake.attach();
    for turn in 0..20_000u64 {
        fake.run_for(Time::from_micros(700));
        let mut mad = fake.last.unwrap();
        // What it has just sent, turned into an answer and disturbed.
        if turn % 4 == 0 {
            random.fill_bytes(&mut mad.mad.0);
        } else {
            for _ in 0..random.random_range(0..6) {
                let at = random.random_range(0..256);
                mad.mad.0[at] = random.random();
            }
        }
        mad.mad.0[3] |= if turn % 3 == 0 { 0 } else { 0x80 };
        fake.input(Input::Receive(mad));
    }
    fake.run_for(seconds(5));
    assert!(swept(&fake) > 0);
}

#[test]
fn the_same_fabric_gives_the_same_run() {
    let run = || {
        let mut fake = Fake::experiment_i(Options { dilation: 1000, ..Options::default() });
        fake.attach();
        fake.run_until(seconds(4));
        fake.traffic(4, 3, 48_500, 403_000);
        fake.traffic(11, 1, 180_000, 100_000);
        fake.run_until(seconds(20));
        let shown = serde_json::to_string(&snapshot(&fake)).unwrap();
        (shown, format!("{:?} {:?} {:?}", fake.events, fake.asked, fake.sent))
    };
    let (first, second) = (run(), run());
    assert_eq!(first, second);
    let read: Snapshot = serde_json::from_str(&first.0).unwrap();
    assert_eq!(serde_json::to_string(&read).unwrap(), first.0);
    assert_eq!(read.hot_spots.len(), 1);
}
