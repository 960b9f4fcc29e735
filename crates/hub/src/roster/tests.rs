//! A roster's knowledge after reports.

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;

use super::*;

const LIFE: Incarnation = Incarnation(7);

fn at(nanos: u64) -> Utc {
    Utc::from_nanos(nanos)
}

fn head(incarnation: Incarnation, sequence: u64, event: &str) -> EventHead {
    EventHead { source: "sm".into(), incarnation, sequence, event: event.into(), ..EventHead::default() }
}

fn greeting(incarnation: Incarnation) -> Greeting {
    Greeting {
        name: "sm".into(),
        kind: Some(ProcessKind::Sm),
        version: "0.1.0".into(),
        pid: 7,
        incarnation,
        protocols: vec![1],
        time: None,
    }
}

fn subscribed(incarnation: Incarnation, next: u64, forgotten: u64) -> Subscribed {
    Subscribed { incarnation, next, forgotten }
}

fn known() -> Roster {
    let mut roster = Roster::default();
    roster.expect("sm", ProcessKind::Sm, at(0));
    roster.silent("sm", at(1));
    roster.met("sm", greeting(LIFE), at(2));
    roster
}

#[test]
fn a_process_goes_from_expected_to_ended_and_back() {
    let mut roster = Roster::default();
    roster.expect("sm", ProcessKind::Sm, at(0));
    let mut seen = vec![roster.state("sm").unwrap()];
    let mut look = |roster: &Roster| seen.push(roster.state("sm").unwrap());
    roster.silent("sm", at(1));
    look(&roster);
    assert!(!roster.met("sm", greeting(LIFE), at(2)));
    look(&roster);
    roster.hear("sm", &head(LIFE, 0, "process-ready"), at(3));
    look(&roster);
    // A new connection to the same life changes nothing.
    roster.silent("sm", at(4));
    roster.met("sm", greeting(LIFE), at(4));
    look(&roster);
    roster.hear("sm", &head(LIFE, 1, "process-stopping"), at(5));
    look(&roster);
    let end = end_without_code(EndKind::InOrder, at(6));
    assert!(roster.ended("sm", end));
    assert!(!roster.ended("sm", end), "an end is news once");
    look(&roster);
    roster.silent("sm", at(7));
    assert!(!roster.met("sm", greeting(Incarnation(8)), at(7)));
    look(&roster);
    assert!(roster.met("sm", greeting(Incarnation(9)), at(8)), "the life between was missed");
    use ProcessState::{Ended, Expected, Ready, Silent, Starting, Stopping};
    assert_eq!(seen, [Expected, Silent, Starting, Ready, Ready, Stopping, Ended, Starting]);
    let (lines, more) = roster.page(&NamePage::default());
    assert_eq!((lines.len(), more, lines[0].last_end), (1, false, Some(end)));
    assert_eq!(roster.expected(), (1, 1));
}

#[test]
fn the_plan_decides_the_kind_of_a_process() {
    let mut roster = known();
    let king = Greeting { kind: Some(ProcessKind::Pm), ..greeting(Incarnation(8)) };
    roster.met("sm", king.clone(), at(3));
    assert_eq!(roster.kind("sm"), Some(ProcessKind::Sm));
    assert!(roster.admit("stray", at(4)));
    roster.met("stray", king, at(4));
    assert_eq!(roster.kind("stray"), Some(ProcessKind::Pm));
    roster.plan(&[("sm".into(), ProcessKind::Sm), ("stray".into(), ProcessKind::Agent)], at(5));
    assert_eq!(roster.kind("stray"), Some(ProcessKind::Agent));
    assert_eq!((roster.refuse_event("stray"), roster.refuse_event("stray")), (1, 2));
    assert_eq!(roster.totals().events_refused, 2);
}

#[test]
fn an_end_that_turns_out_to_be_meant_is_corrected_quietly() {
    let mut roster = known();
    assert!(roster.ended("sm", end_without_code(EndKind::Failed, at(5))));
    assert!(!roster.ended("sm", end_without_code(EndKind::KilledOnPurpose, at(6))));
    let how = roster.page(&NamePage::default()).0[0].last_end.unwrap().how;
    assert_eq!(how, EndKind::KilledOnPurpose);
}

#[test]
fn leftovers_are_forgotten_and_expected_processes_are_not() {
    let mut roster = known();
    assert!(roster.admit("stray", at(1)));
    roster.silent("stray", at(1));
    roster.expect("pm", ProcessKind::Pm, at(1));
    assert!(roster.dismiss("stray") && roster.dismiss("pm") && !roster.dismiss("sm"));
    assert_eq!((roster.state("stray"), roster.state("sm")), (None, Some(ProcessState::Starting)));
    assert_eq!(roster.state("pm"), Some(ProcessState::Expected));
    let admitted = (0..PROCESSES_MAX).filter(|nth| roster.admit(&format!("p{nth}"), at(2))).count();
    assert_eq!(admitted, PROCESSES_MAX - 2);
    assert!(!roster.admit("one-more", at(3)));
    assert_eq!(roster.totals().left_out, 3, "two were there before");
}

#[test]
fn a_gap_in_events_is_counted_once() {
    let mut roster = known();
    assert_eq!(roster.resume("sm"), Since::Start);
    assert_eq!(roster.subscribed("sm", subscribed(LIFE, 10, 10), at(3)), Some((10, 9)));
    assert_eq!(roster.state("sm"), Some(ProcessState::Ready));
    assert_eq!(roster.hear("sm", &head(LIFE, 10, "x"), at(4)), Novelty::New);
    assert_eq!(roster.hear("sm", &head(LIFE, 10, "x"), at(4)), Novelty::Known);
    // The process itself tells of a gap of five.
    let told = EventHead { count: Some(5.into()), ..head(LIFE, 15, "events-lost") };
    assert_eq!(roster.hear("sm", &told, at(5)), Novelty::New);
    // One of its own events of that name is no gap.
    let own = EventHead { count: Some(5.into()), ..head(LIFE, 16, "events-lost") };
    assert_eq!(roster.hear("sm", &own, at(5)), Novelty::New);
    assert_eq!(roster.hear("sm", &head(LIFE, 20, "x"), at(6)), Novelty::NewAfterGap(3));
    assert_eq!(roster.resume("sm"), Since::After { incarnation: LIFE, sequence: 20 });
    let Totals { events, events_lost, .. } = roster.totals();
    assert_eq!((events, events_lost), (4, 18));
}

/// A process publishes into a bounded memory, connections break, lives end; in the end each event of the last life was
/// heard once, or counted as lost.
#[test]
fn no_event_is_heard_twice_and_none_is_missed_uncounted() {
    for seed in 0..200 {
        let mut rng = Pcg64::seed_from_u64(seed);
        let mut roster = known();
        let (mut life, mut published, mut place, mut heard, mut lost) = (LIFE, 0_u64, 0_u64, 0_u64, 0_u64);
        const REMEMBERED: u64 = 8;
        for step in 0..300 {
            let forgotten = |published: u64| published.saturating_sub(REMEMBERED);
            match rng.random_range(0..10) {
                0..5 => published += rng.random_range(0..6),
                5..8 => {
                    let first = forgotten(published);
                    if place < first {
                        let count = first - place;
                        let told =
                            EventHead { count: Some(count.into()), ..head(life, first - 1, "events-lost") };
                        assert_eq!(roster.hear("sm", &told, at(step)), Novelty::New, "seed {seed}");
                        (place, lost) = (first, lost + count);
                    }
                    if place < published {
                        assert_eq!(
                            roster.hear("sm", &head(life, place, "x"), at(step)),
                            Novelty::New,
                            "seed {seed}"
                        );
                        (place, heard) = (place + 1, heard + 1);
                    }
                }
                8 => {
                    let wanted = match roster.resume("sm") {
                        Since::After { incarnation, sequence } if incarnation == life => sequence + 1,
                        _ => 0,
                    };
                    place = wanted.max(forgotten(published));
                    roster.met("sm", greeting(life), at(step));
                    roster.subscribed("sm", subscribed(life, place, place - wanted), at(step));
                    lost += place - wanted;
                }
                _ if rng.random_range(0..4) == 0 => {
                    roster.ended("sm", end_without_code(EndKind::Failed, at(step)));
                    life = Incarnation(life.0 + 1);
                    (published, place) = (0, 0);
                    roster.met("sm", greeting(life), at(step));
                    roster.subscribed("sm", subscribed(life, 0, 0), at(step));
                }
                _ => {}
            }
        }
        let (lines, _) = roster.page(&NamePage::default());
        // What tells of a gap is an event too.
        assert!(lines[0].events >= heard, "seed {seed}");
        assert_eq!(lines[0].events_lost, lost, "seed {seed}");
    }
}

#[test]
fn a_new_plan_forgets_absent_processes_once_they_end() {
    let mut roster = known();
    roster.expect("a0000", ProcessKind::Agent, at(0));
    // One that runs already, and one that is yet to be started.
    roster.admit("a0001", at(3));
    let plan: Vec<(String, ProcessKind)> =
        ["a0001", "a0002"].map(|name| (name.to_owned(), ProcessKind::Agent)).into();
    assert_eq!(roster.plan(&plan, at(4)), ["a0000", "sm"]);
    assert_eq!(roster.expected(), (2, 0));
    assert_eq!(roster.state("a0000"), None, "it never ran");
    assert!(roster.state("sm").unwrap().is_alive(), "it is not told of its end yet");
    assert!(roster.ended("sm", end_without_code(EndKind::InOrder, at(5))), "that is news");
    assert_eq!(roster.state("sm"), None);
    assert_eq!(roster.plan(&plan, at(6)), Vec::<String>::new());
    // It is planned again before it has ended.
    let mut roster = known();
    assert_eq!(roster.plan(&[], at(4)), ["sm"]);
    assert_eq!(roster.plan(&[("sm".to_owned(), ProcessKind::Sm)], at(5)), Vec::<String>::new());
    roster.ended("sm", end_without_code(EndKind::Failed, at(6)));
    assert_eq!((roster.state("sm"), roster.expected()), (Some(ProcessState::Ended), (1, 0)));
}
