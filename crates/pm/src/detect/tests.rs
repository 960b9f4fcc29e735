use super::*;
use crate::rates;

/// The rate of a DDR 4x link, and what a host's bus moves of it, in Gb/s.
const LINK: f64 = 16.0;
const BUS: f64 = 12.9;
/// The hot spot's port waits 19.4 % of the time, in ticks of 4 ns.
const HOT: u64 = 48_500_000;
/// Half of it, the experiments' own, and the paper's.
const THRESHOLDS: [u64; 2] = [24_200_000, 100_000];

fn limits(threshold: u64) -> Limits {
    let (utilisation_ppm, hysteresis, is_printed) = (500_000, (1, 1), false);
    Limits { threshold, further: threshold, utilisation_ppm, hysteresis, is_printed }
}

fn host(number: u16) -> (Guid, Lid) {
    (Guid(u64::from(number) << 8), Lid(number))
}

fn facing(number: u16, ticks: u64) -> Facing {
    let (host, lid) = host(number);
    Facing { host, lid, congestion: Some((ticks, true)), slow_wait: None }
}

/// A port that waits, and so long on the slow lane.
fn slow(number: u16, ticks: u64, slow: u64) -> Facing {
    Facing { slow_wait: Some(slow), ..facing(number, ticks) }
}

/// A host that sends `gigabits` Gb/s and waits the rest of the time in which it could send 12.9.
fn source(number: u16, gigabits: f64, maximum: f64) -> Source {
    let (host, lid) = host(number);
    let bytes = (gigabits * 1e9 / 8.0).round() as u64;
    let ppm = rates::utilisation_ppm(bytes, (maximum * 1e9) as u64);
    let ticks = ((BUS - gigabits) / BUS * 250e6) as u64;
    Source { host, lid, congestion: Some(ticks), utilisation_ppm: Some(ppm) }
}

/// The LIDs that get notice, of hosts that send these shares in Gb/s.
fn told(shares: &[(u16, f64)], maximum: f64, threshold: u64) -> Vec<u16> {
    let detector = Detector::new(limits(threshold));
    let sources = shares.iter().map(|(number, share)| source(*number, *share, maximum));
    sources.filter(|source| detector.contributes(source)).map(|source| source.lid.0).collect()
}

#[test]
fn contributors_and_victims_of_the_papers_experiments_are_told() {
    // Hosts and what they get without dFtree (experiments.md, section 1): contributors, then the victim.
    let table: [(&str, &[(u16, f64)]); 4] = [
        ("I and II", &[(1, 3.23), (3, 3.23), (6, 6.45), (2, 3.23)]),
        ("III", &[(1, 3.23), (5, 3.23), (10, 6.45), (2, 3.23)]),
        ("IV", &[(1, 2.15), (5, 4.30), (10, 6.45), (2, 2.15)]),
        ("4a with three lanes", &[(1, 4.3), (3, 4.3), (6, 4.3)]),
    ];
    for threshold in THRESHOLDS {
        for (name, shares) in table {
            let all: Vec<u16> = shares.iter().map(|(number, _)| *number).collect();
            assert_eq!(told(shares, LINK, threshold), all, "{name}, {threshold}");
        }
    }
}

#[test]
fn with_the_bus_as_the_maximum_flow_6_5_would_stay() {
    let shares = [(1, 3.23), (3, 3.23), (6, 6.45), (2, 3.23)];
    assert_eq!(source(6, 6.45, BUS).utilisation_ppm, Some(500_000), "exactly one half");
    assert_eq!(told(&shares, BUS, THRESHOLDS[0]), [1, 3, 2]);
    assert_eq!(told(&shares, LINK, THRESHOLDS[0]), [1, 3, 6, 2]);
}

#[test]
fn a_fair_share_above_the_limit_is_left_alone() {
    // Two hosts send to one: it is a hot spot, and each gets 6.45; on a QDR bus of 25.6 into a 32 link, 12.8 of 16.
    assert_eq!(told(&[(1, 8.0), (2, 12.8)], LINK, THRESHOLDS[0]), Vec::<u16>::new());
    assert_eq!(told(&[(1, 7.99)], LINK, THRESHOLDS[0]), [1]);
    // A host that gets little because it wants little does not wait.
    let calm = Source { congestion: Some(0), ..source(1, 0.1, LINK) };
    assert!(!Detector::new(limits(THRESHOLDS[0])).contributes(&calm));
    let unknown = Source { utilisation_ppm: None, ..source(1, 0.1, LINK) };
    assert!(!Detector::new(limits(THRESHOLDS[0])).contributes(&unknown));
}

#[test]
fn a_window_limited_sender_moves_if_the_hot_spot_lasts() {
    let mut detector = Detector::new(limits(THRESHOLDS[0]));
    let spot = HotSpot { lid: Lid(5), since: 7 };
    let hidden = |gigabits| Source { congestion: Some(0), ..source(1, gigabits, LINK) };
    detector.look_at(&[hidden(3.23)]);
    assert!(
        !detector.may_contribute(8, &spot, &hidden(3.23)),
        "one sweep is not enough: its cable may have been cut"
    );
    detector.look_at(&[hidden(3.23)]);
    // The sweep that found it tells those that wait, which is all of the algorithm as published.
    assert!(!detector.may_contribute(7, &spot, &hidden(3.23)));
    assert!(detector.may_contribute(8, &spot, &hidden(3.23)) && !detector.contributes(&hidden(3.23)));
    // Whoever has a fair share, is idle or is not known stays.
    for source in [hidden(8.0), hidden(0.07), Source { utilisation_ppm: None, ..hidden(3.23) }] {
        detector.look_at(&[source]);
        detector.look_at(&[source]);
        assert!(!detector.may_contribute(8, &spot, &source), "{source:?}");
    }
}

#[test]
fn a_port_exactly_at_the_threshold_changes_nothing() {
    let mut detector = Detector::new(limits(100));
    assert_eq!(detector.judge(1, &[facing(5, 100)]), []);
    let (host, lid) = host(5);
    assert_eq!(detector.judge(2, &[facing(5, 101)]), [Finding::Began { host, lid, congestion: 101 }]);
    assert_eq!(detector.judge(3, &[facing(5, 100)]), []);
    assert_eq!(detector.hot[&host], HotSpot { lid, since: 2 });
    assert_eq!(detector.judge(4, &[facing(5, 99)]), [Finding::Ended { host, lid }]);
    assert!(detector.hot.is_empty());
}

#[test]
fn a_hot_spot_stays_one_as_long_as_its_slow_lane_waits() {
    let mut detector = Detector::new(limits(THRESHOLDS[0]));
    assert_eq!(detector.judge(1, &[facing(5, HOT), facing(3, 0)]).len(), 1);
    for sweep in 2..200 {
        assert_eq!(detector.judge(sweep, &[facing(5, HOT), facing(3, 0)]), []);
    }
    assert_eq!(detector.judge(200, &[facing(5, 0), facing(3, 0)]).len(), 1);
}

/// Oversubscribed trees of 648 hosts: host 5's packets fill the slow lane, and 6, whose senders offer as much, gets none.
#[test]
fn a_quiet_hot_spot_lasts_while_another_may_block_its_lane() {
    let mut detector = Detector::new(limits(THRESHOLDS[0]));
    assert_eq!(detector.judge(1, &[facing(5, HOT), facing(6, HOT)]).len(), 2);
    for sweep in 2..9 {
        assert_eq!(detector.judge(sweep, &[facing(5, HOT), facing(6, 0)]), []);
    }
    // Another port above the threshold has begun just now: its packets are not on the slow lane yet.
    let ended = detector.judge(9, &[facing(5, 0), facing(6, 0), facing(7, HOT)]);
    let lids: Vec<Lid> = ended
        .iter()
        .map(|finding| match finding {
            Finding::Began { lid, .. } | Finding::Ended { lid, .. } => *lid,
        })
        .collect();
    assert_eq!(lids, [Lid(5), Lid(6), Lid(7)]);
    assert_eq!(detector.hot.len(), 1);
    // Experiment III: host 7 takes as much as it can from one sender alone, which got no notice.
    assert_eq!(detector.judge(10, &[facing(5, HOT), facing(7, HOT)]).len(), 1);
    // As long as host 7's port may wait on the slow lane, host 5's packets may wait there behind it.
    for port in [facing(7, HOT), slow(7, HOT, HOT), slow(7, HOT, THRESHOLDS[0] + 1)] {
        assert_eq!(detector.judge(11, &[facing(5, 0), port]), []);
    }
    let ended = detector.judge(12, &[facing(5, 0), slow(7, HOT, THRESHOLDS[0])]);
    assert_eq!(ended, [Finding::Ended { host: host(5).0, lid: Lid(5) }]);
}

#[test]
fn a_second_hot_spot_needs_a_longer_wait_for_three_sweeps() {
    let further = HOT / 10 * 9;
    let mut detector = Detector::new(Limits { further, ..limits(THRESHOLDS[0]) });
    let busy = |number| facing(number, HOT / 10 * 7);
    // At first one threshold and one sweep are enough for all ports.
    assert_eq!(detector.judge(1, &[facing(5, HOT), busy(6)]).len(), 2);
    let (host, lid) = host(9);
    for (sweep, ninth, begins) in [
        (2, HOT, false),
        (3, HOT, false),
        (4, further, false),
        (5, HOT, false),
        (6, HOT, false),
        (7, HOT, true),
    ] {
        let found = detector.judge(sweep, &[facing(5, HOT), busy(6), busy(7), facing(9, ninth)]);
        let began = Finding::Began { host, lid, congestion: HOT };
        assert_eq!(found, begins.then_some(began).into_iter().collect::<Vec<_>>(), "sweep {sweep}");
    }
    // It ends below the lower one, as the others do.
    assert_eq!(detector.judge(8, &[busy(5), busy(6), busy(9)]), []);
    assert_eq!(detector.judge(9, &[facing(5, 0), facing(6, 0), facing(9, 0)]).len(), 3);
    assert_eq!(detector.judge(10, &[busy(7)]).len(), 1, "it is the first again");
}

#[test]
fn hysteresis_counts_sweeps_in_a_row() {
    let mut detector = Detector::new(Limits { hysteresis: (3, 2), ..limits(100) });
    let found: Vec<usize> = [101, 101, 99, 101, 101, 101, 99, 101, 99, 99, 99]
        .into_iter()
        .zip(1..)
        .map(|(ticks, sweep)| detector.judge(sweep, &[facing(5, ticks)]).len())
        .collect();
    assert_eq!(found, [0, 0, 0, 0, 0, 1, 0, 0, 0, 1, 0]);
}

#[test]
fn a_minimum_wait_can_begin_but_never_end_a_hot_spot() {
    let mut detector = Detector::new(limits(100));
    let least = |ticks| Facing { congestion: Some((ticks, false)), ..facing(5, 0) };
    assert_eq!(detector.judge(1, &[least(50)]), []);
    assert_eq!(detector.judge(2, &[least(101)]).len(), 1);
    assert_eq!(detector.judge(3, &[least(0)]), []);
    assert_eq!(detector.judge(4, &[Facing { congestion: None, ..facing(5, 0) }]), []);
    assert_eq!(detector.hot.len(), 1);
    assert_eq!(detector.judge(5, &[facing(5, 0)]).len(), 1);
}

#[test]
fn a_hot_spot_that_has_left_or_has_another_lid_has_ended() {
    let (guid, lid) = host(5);
    let mut detector = Detector::new(limits(100));
    detector.judge(1, &[facing(5, 500)]);
    let moved = Facing { lid: Lid(77), ..facing(5, 500) };
    let began = Finding::Began { host: guid, lid: Lid(77), congestion: 500 };
    assert_eq!(detector.judge(2, &[moved]), [Finding::Ended { host: guid, lid }, began]);
    assert_eq!(detector.judge(3, &[]), [Finding::Ended { host: guid, lid: Lid(77) }]);
}

#[test]
fn the_printed_detector_has_one_threshold_and_no_memory() {
    let printed = Limits { further: 9_000, is_printed: true, ..limits(100) };
    let mut detector = Detector::new(printed);
    assert_eq!(detector.judge(1, &[slow(5, HOT, HOT)]).len(), 1);
    assert_eq!(detector.judge(2, &[slow(5, HOT, HOT), facing(6, 101)]).len(), 1, "a further one at once");
    let (guid, lid) = host(6);
    let ended = [Finding::Ended { host: guid, lid }];
    assert_eq!(
        detector.judge(3, &[slow(5, HOT, HOT), facing(6, 99)]),
        ended,
        "whatever waits on the slow lane"
    );
    let hidden = Source { congestion: Some(0), ..source(1, 3.23, LINK) };
    detector.look_at(&[hidden]);
    detector.look_at(&[hidden]);
    assert!(!detector.may_contribute(9, &detector.hot[&host(5).0], &hidden), "only ports that wait");
    assert!(detector.contributes(&source(1, 3.23, LINK)));
}
