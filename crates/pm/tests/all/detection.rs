//! Hot spots are found, hosts are asked to move and to move back, whatever fails on the way.

use fake::Fake;
use weft_machine::Time;
use weft_pm::{Event, Input, Options};
use weft_wire::{NodeType, RepathKind, ServiceLevel, status, trap};

use crate::fake;

/// The experiments' settings: scale 1/1000, threshold 9.7 % of the time.
fn options() -> Options {
    let threshold = 24_200_000;
    Options { dilation: 1000, threshold, wildcard_at_start: false, ..Options::default() }
}

fn seconds(secs: u64) -> Time {
    Time::from_secs(secs)
}

/// Hot spot 5 of experiment I, and who sends what in Gb/s: contributors 1, 3, 6 and the victim 2.
const SHARES: [(u16, f64); 4] = [(11, 3.23), (13, 3.23), (16, 6.45), (12, 3.23)];
const TOLD: [(u16, u16); 4] = [(15, 11), (15, 12), (15, 13), (15, 16)];

/// 4-byte words per second of the wall clock.
fn words(gigabits: f64) -> u64 {
    (gigabits * 1e9 / 32.0 / 1000.0) as u64
}

fn begin(fake: &mut Fake) {
    fake.traffic(4, 3, 48_500, words(12.9));
    for (lid, share) in SHARES {
        fake.traffic(lid, 1, ((12.9 - share) / 12.9 * 250_000.0) as u64, words(share));
    }
    // The tree of congestion: the root's port towards C waits too.
    fake.traffic(1, 5, 150_000, words(6.45));
}

fn end(fake: &mut Fake) {
    fake.traffic(1, 5, 0, 0);
    for lid in [11, 13, 16] {
        fake.traffic(lid, 1, 0, 0);
    }
    fake.traffic(12, 1, 0, words(12.9));
    fake.traffic(4, 3, 0, 0);
}

fn started(options: Options) -> Fake {
    let mut fake = Fake::experiment_i(options);
    fake.attach();
    fake.run_until(seconds(13));
    fake
}

fn sorted(mut notices: Vec<(u16, u16)>) -> Vec<(u16, u16)> {
    notices.sort_unstable();
    notices
}

#[test]
fn experiment_i_from_beginning_to_end() {
    let mut fake = started(options());
    assert_eq!(fake.asked, []);
    begin(&mut fake);
    fake.run_until(seconds(17));
    assert_eq!(sorted(fake.notices(trap::REPATH)), TOLD, "contributors and the victim, nobody else");
    for asked in &fake.asked {
        assert_eq!(asked.details.kind, RepathKind::HOT_SPOT);
        assert_eq!(asked.details.service_level, ServiceLevel(1));
    }
    let snapshot = fake.manager.snapshot(fake.now);
    assert_eq!(snapshot.hot_spots.len(), 1);
    assert_eq!(snapshot.hot_spots[0].contributors.len(), 4);
    let hot: Vec<_> = snapshot.ports.iter().filter(|port| port.hot_spot).collect();
    assert_eq!((hot.len(), hot[0].end.lid.0, hot[0].end.port.0), (1, 4, 3));
    assert!(hot[0].congestion.abs_diff(48_500_000) < 100_000, "{}", hot[0].congestion);
    let of = |lid: u16| snapshot.ports.iter().find(|port| port.end.lid.0 == lid).unwrap();
    assert!((of(16).utilisation - 0.403).abs() < 0.001, "{}", of(16).utilisation);
    assert!(of(11).contributor && !of(14).contributor);
    // The victim recovers on the fast lane, the hot spot's port keeps waiting for the slow one.
    fake.traffic(12, 1, 2_000, words(12.8));
    fake.run_until(seconds(200));
    assert_eq!(fake.asked.len(), 4, "nothing is asked twice");
    end(&mut fake);
    fake.run_until(seconds(204));
    assert_eq!(sorted(fake.notices(trap::UNPATH)), TOLD);
    fake.run_until(seconds(300));
    assert_eq!(fake.asked.len(), 8);
    let statistics = fake.manager.statistics();
    assert_eq!((statistics.hot_spots_found, statistics.repaths, statistics.unpaths), (1, 4, 4));
    assert_eq!(fake.manager.snapshot(fake.now).moves, 0);
    let kinds = [
        fake.events.iter().filter(|(_, event)| matches!(event, Event::Contributor { .. })).count(),
        fake.events.iter().filter(|(_, event)| matches!(event, Event::Repathed { .. })).count(),
        fake.events.iter().filter(|(_, event)| matches!(event, Event::HotSpotEnded { .. })).count(),
    ];
    assert_eq!(kinds, [4, 4, 1]);
}

#[test]
fn ticks_are_per_second_of_fabric_time() {
    let mut fake = started(Options { dilation: 1, threshold: 100_000, ..options() });
    begin(&mut fake);
    fake.run_until(seconds(30));
    assert_eq!(fake.asked, [], "48 500 ticks per second of the wall clock are below the paper's threshold");
    let mut fake = started(Options { threshold: 100_000, ..options() });
    begin(&mut fake);
    fake.run_until(seconds(17));
    assert_eq!(sorted(fake.notices(trap::REPATH)), TOLD);
}

#[test]
fn a_port_between_switches_and_a_busy_port_are_no_hot_spots() {
    let mut fake = started(options());
    fake.traffic(1, 5, 200_000, words(6.0));
    fake.traffic(11, 1, 200_000, words(1.0));
    // A host behind a slow link takes all that the link carries: its switch's port never waits.
    fake.traffic(2, 3, 0, words(16.0));
    fake.run_until(seconds(30));
    assert_eq!(fake.asked, []);
    assert_eq!(fake.manager.snapshot(fake.now).hot_spots, []);
}

#[test]
fn hosts_that_come_later_are_told_too() {
    let mut fake = started(options());
    begin(&mut fake);
    fake.run_until(seconds(21));
    fake.traffic(14, 1, 180_000, words(2.6));
    fake.run_until(seconds(29));
    assert_eq!(fake.notices(trap::REPATH)[4..], [(15, 14)]);
    // The hot spot itself waits for somebody else; it gets no notice of itself.
    fake.traffic(15, 1, 180_000, words(2.6));
    fake.run_until(seconds(40));
    assert_eq!(fake.asked.len(), 5);
    // A second hot spot: everybody congested gets notice of that too.
    fake.traffic(2, 3, 30_000, words(12.9));
    fake.run_until(seconds(44));
    let second: Vec<_> = fake.notices(trap::REPATH)[5..].to_vec();
    assert_eq!(sorted(second), [(11, 12), (11, 13), (11, 14), (11, 15), (11, 16)]);
}

#[test]
fn hysteresis_delays_both_ends() {
    let mut fake = started(Options { hysteresis: (3, 2), ..options() });
    begin(&mut fake);
    fake.run_until(seconds(17));
    assert_eq!(fake.asked, []);
    fake.run_until(seconds(19));
    assert_eq!(fake.asked.len(), 4);
    end(&mut fake);
    // It ends in the middle of an interval, of which the rest is still above the threshold.
    fake.run_until(seconds(23));
    assert_eq!(fake.asked.len(), 4);
    fake.run_until(seconds(25));
    assert_eq!(fake.asked.len(), 8);
}

#[test]
fn unpaths_survive_a_subnet_manager_that_is_away() {
    let mut fake = started(options());
    begin(&mut fake);
    fake.run_until(seconds(20));
    fake.sm_is_dead = true;
    end(&mut fake);
    fake.run_until(seconds(60));
    assert_eq!(fake.notices(trap::UNPATH), []);
    assert!(fake.manager.statistics().notices_unanswered >= 4);
    assert_eq!(fake.manager.snapshot(fake.now).moves, 4);
    fake.sm_is_dead = false;
    fake.run_until(seconds(80));
    assert_eq!(sorted(fake.notices(trap::UNPATH)), TOLD, "each once");
    assert_eq!(fake.manager.snapshot(fake.now).moves, 0);
}

#[test]
fn unpaths_survive_a_port_that_goes_down() {
    let mut fake = started(options());
    begin(&mut fake);
    fake.run_until(seconds(20));
    end(&mut fake);
    fake.lose = Box::new(|mad| mad.mad.class() == weft_wire::MgmtClass::SubnAdm);
    fake.run_until(seconds(23));
    fake.input(Input::Detached);
    fake.run_until(seconds(30));
    fake.lose = Box::new(|_| false);
    fake.attach();
    fake.run_until(seconds(34));
    assert_eq!(sorted(fake.notices(trap::UNPATH)), TOLD);
}

#[test]
fn an_unpath_waits_for_the_repath_that_is_under_way() {
    let mut fake = started(options());
    begin(&mut fake);
    // Repaths reach the subnet manager, its answers are lost.
    fake.lose = Box::new(|mad| {
        mad.mad.attribute_id() == weft_wire::AttributeId::Notice && mad.mad.method().is_response()
    });
    fake.run_until(Time::from_millis(14_500));
    assert_eq!(fake.asked.len(), 4);
    end(&mut fake);
    fake.run_until(Time::from_millis(17_900));
    assert_eq!(fake.notices(trap::UNPATH), [], "the repaths may still arrive");
    fake.lose = Box::new(|_| false);
    fake.run_until(seconds(30));
    assert_eq!(sorted(fake.notices(trap::UNPATH)), TOLD);
    let last_repath = fake.asked.iter().rposition(|asked| asked.trap == trap::REPATH).unwrap();
    let first_unpath = fake.asked.iter().position(|asked| asked.trap == trap::UNPATH).unwrap();
    assert!(last_repath < first_unpath);
}

#[test]
fn a_hot_spot_that_comes_back_is_told_again() {
    let mut fake = started(options());
    for _ in 0..3 {
        begin(&mut fake);
        fake.run_for(seconds(10));
        end(&mut fake);
        fake.run_for(seconds(10));
    }
    assert_eq!((fake.notices(trap::REPATH).len(), fake.notices(trap::UNPATH).len()), (12, 12));
}

#[test]
fn a_subnet_manager_that_refuses_is_not_pestered() {
    let mut fake = started(options());
    fake.notice_status = status::BAD_METHOD_ATTRIBUTE;
    begin(&mut fake);
    fake.run_until(seconds(33));
    assert_eq!(fake.asked.len(), 8, "after ten seconds, then after twenty: {:?}", fake.asked);
    end(&mut fake);
    fake.run_until(seconds(60));
    assert_eq!(fake.notices(trap::UNPATH), [], "nobody was told, so nobody has to be told back");
    // Unpaths that are refused end at last.
    fake.notice_status = status::OK;
    begin(&mut fake);
    fake.run_until(seconds(70));
    fake.notice_status = status::BAD_METHOD_ATTRIBUTE;
    end(&mut fake);
    fake.run_until(seconds(1500));
    assert_eq!(fake.notices(trap::UNPATH).len(), 4 * 8);
    assert_eq!(fake.manager.statistics().unpaths_given_up, 4);
}

#[test]
fn without_repath_hot_spots_are_only_shown() {
    let mut fake = started(Options { repath: false, wildcard_at_start: true, ..options() });
    begin(&mut fake);
    fake.run_until(seconds(30));
    assert_eq!(fake.asked, []);
    assert_eq!(fake.manager.snapshot(fake.now).hot_spots.len(), 1);
}

#[test]
fn a_new_manager_asks_once_that_hosts_leave_all_slow_lanes() {
    let mut fake = started(Options { wildcard_at_start: true, ..options() });
    fake.run_until(seconds(150));
    assert_eq!(fake.asked.len(), 1);
    assert_eq!((fake.asked[0].trap, fake.asked[0].details.kind), (trap::UNPATH, RepathKind::WILDCARD));
    assert_eq!(fake.asked[0].details.target.0, 0);
    assert!(fake.events.iter().any(|(_, event)| *event == Event::AskedAgain));
    fake.input(Input::Detached);
    fake.attach();
    fake.run_until(seconds(200));
    assert_eq!(fake.asked.len(), 1, "it is the same manager after it was attached again");
}

#[test]
fn a_withdrawing_pm_moves_all_flows_back() {
    let mut fake = started(options());
    begin(&mut fake);
    fake.run_until(seconds(20));
    fake.input(Input::Withdraw);
    fake.run_until(seconds(21));
    assert_eq!(sorted(fake.notices(trap::UNPATH)), TOLD);
    assert_eq!(fake.manager.snapshot(fake.now).moves, 0);
    fake.run_until(seconds(60));
    assert_eq!(fake.asked.len(), 8, "nobody is asked to move any more");
}

#[test]
fn a_host_that_comes_anew_is_told_again() {
    let mut fake = started(options());
    begin(&mut fake);
    fake.run_until(seconds(20));
    fake.report(trap::GID_OUT_OF_SERVICE, 13);
    fake.report(trap::GID_IN_SERVICE, 13);
    fake.run_until(seconds(30));
    assert_eq!(fake.notices(trap::REPATH)[4..], [(15, 13)]);
}

#[test]
fn an_absent_host_learns_the_end_of_a_hot_spot_on_return() {
    let mut fake = started(options());
    begin(&mut fake);
    fake.run_until(seconds(20));
    let host = fake.nodes.remove(&13).unwrap();
    fake.input(Input::Refresh);
    fake.run_until(seconds(25));
    end_without(&mut fake, 13);
    fake.run_until(seconds(40));
    assert_eq!(sorted(fake.notices(trap::UNPATH)), [(15, 11), (15, 12), (15, 16)]);
    fake.nodes.insert(13, host);
    fake.input(Input::Refresh);
    fake.run_until(seconds(45));
    assert_eq!(fake.notices(trap::UNPATH)[3..], [(15, 13)]);
    assert_eq!(fake.manager.snapshot(fake.now).moves, 0);
}

fn end_without(fake: &mut Fake, away: u16) {
    for lid in [11, 12, 13, 16].into_iter().filter(|lid| *lid != away) {
        fake.traffic(lid, 1, 0, 0);
    }
    fake.traffic(4, 3, 0, 0);
}

#[test]
fn a_hot_spot_with_a_new_lid_is_another_one() {
    let mut fake = started(options());
    begin(&mut fake);
    fake.run_until(seconds(20));
    let spot = fake.nodes.remove(&15).unwrap();
    fake.nodes.insert(25, spot);
    fake.links.remove(&(15, 1));
    fake.links.insert((4, 3), (25, 1));
    fake.links.insert((25, 1), (4, 3));
    fake.input(Input::Refresh);
    fake.run_until(seconds(25));
    assert_eq!(sorted(fake.notices(trap::UNPATH)), TOLD);
    let again = sorted(fake.notices(trap::REPATH)[4..].to_vec());
    assert_eq!(again, [(25, 11), (25, 12), (25, 13), (25, 16)]);
}

#[test]
fn a_counter_that_somebody_resets_ends_no_hot_spot() {
    let mut fake = started(options());
    begin(&mut fake);
    fake.run_until(seconds(20));
    for _ in 0..10 {
        // Right before every second sweep, so that nearly nothing is counted since.
        let now = fake.now;
        fake.port(4, 3).wait.set(now, 0);
        fake.run_for(seconds(4));
    }
    assert_eq!(fake.notices(trap::UNPATH), []);
    assert!(fake.manager.statistics().counters_fallen >= 10);
    assert_eq!(fake.manager.snapshot(fake.now).hot_spots.len(), 1);
}

#[test]
fn routers_are_no_hosts() {
    let mut fake = Fake::experiment_i(options());
    fake.nodes.get_mut(&15).unwrap().kind = NodeType::Router;
    fake.attach();
    fake.run_until(seconds(13));
    begin(&mut fake);
    fake.run_until(seconds(30));
    assert_eq!(fake.asked, []);
}

#[test]
fn no_repath_precedes_the_wildcard_at_start() {
    let mut fake = Fake::experiment_i(Options { wildcard_at_start: true, ..options() });
    begin(&mut fake);
    fake.lose = Box::new(|mad| mad.mad.attribute_id() == weft_wire::AttributeId::Notice);
    fake.attach();
    fake.run_until(seconds(13));
    assert_eq!(fake.asked, []);
    fake.lose = Box::new(|_| false);
    fake.run_until(seconds(30));
    assert_eq!(fake.asked[0].details.kind, RepathKind::WILDCARD);
    assert_eq!(sorted(fake.notices(trap::REPATH)), TOLD);
}

#[test]
fn an_sm_without_wildcards_still_gets_the_repaths() {
    let mut fake = Fake::experiment_i(Options { wildcard_at_start: true, ..options() });
    fake.notice_status = status::BAD_METHOD_ATTRIBUTE;
    fake.attach();
    fake.run_until(seconds(13));
    assert_eq!(fake.asked.len(), 1);
    fake.notice_status = status::OK;
    begin(&mut fake);
    fake.run_until(seconds(17));
    assert_eq!(sorted(fake.notices(trap::REPATH)), TOLD);
}

#[test]
fn hosts_are_told_anew_when_the_subnet_manager_restarts() {
    let mut fake = started(options());
    begin(&mut fake);
    fake.run_until(seconds(21));
    fake.restart_sm();
    fake.run_until(seconds(27));
    assert_eq!(fake.subscriptions().len(), 3);
    assert_eq!(sorted(fake.notices(trap::REPATH)[4..].to_vec()), TOLD);
    let forgotten = fake.events.iter().filter(|(_, event)| *event == Event::Forgotten).count();
    fake.run_until(seconds(60));
    assert_eq!((forgotten, fake.asked.len()), (1, 8));
    // Another one takes over at another port.
    fake.sm_lid = 13;
    fake.input(Input::Refresh);
    fake.run_until(seconds(64));
    assert_eq!(sorted(fake.notices(trap::REPATH)[8..].to_vec()), TOLD);
}

/// Packets for a hot spot may stand behind another's on the slow lane, and then its port is quiet. Lanes are read of hot spots'
/// ports though the manager sweeps no others.
#[test]
fn a_quiet_hot_spot_ends_when_no_other_waits_on_the_slow_lane() {
    let mut fake = started(options());
    begin(&mut fake);
    let wait_on_lane = |fake: &mut Fake, lane: usize, ticks| {
        let now = fake.now;
        fake.port(3, 4).lane_waits[lane].set_rate(now, ticks);
    };
    let hot = |fake: &Fake| {
        let snapshot = fake.manager.snapshot(fake.now);
        let mut lids: Vec<u16> = snapshot.hot_spots.iter().map(|spot| spot.lid.0).collect();
        lids.sort_unstable();
        lids
    };
    fake.traffic(3, 4, 48_500, words(12.9));
    wait_on_lane(&mut fake, 1, 48_500);
    fake.run_until(seconds(17));
    assert_eq!(hot(&fake), [14, 15]);
    fake.traffic(4, 3, 0, words(9.0));
    fake.run_until(seconds(60));
    assert_eq!(hot(&fake), [14, 15], "host 15's packets may wait behind host 14's");
    // The other port waits as much, on another lane.
    wait_on_lane(&mut fake, 1, 100);
    wait_on_lane(&mut fake, 0, 48_500);
    fake.run_until(seconds(64));
    assert_eq!(hot(&fake), [14]);
    // And a lane's counter that stopped says nothing.
    fake.traffic(4, 3, 48_500, words(12.9));
    fake.run_until(seconds(70));
    assert_eq!(hot(&fake), [14, 15]);
    wait_on_lane(&mut fake, 1, 10_000_000);
    fake.traffic(4, 3, 0, words(9.0));
    fake.run_until(seconds(90));
    assert_eq!(hot(&fake), [14, 15]);
}
