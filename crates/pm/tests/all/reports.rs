//! Reports of what hosts receive: when they are made, what they say, and how many requests they take.

use fake::Fake;
use weft_machine::Time;
use weft_pm::{Event, Options};
use weft_wire::{Guid, NodeType, ReceivedData, SmKey, sa_status, status};

use crate::fake;

/// Reports at most once in three sweeps of two seconds each.
fn options() -> Options {
    Options { wildcard_at_start: false, learn_weights: 3, ..Options::default() }
}

/// How long that number of attempts takes.
fn timeouts(attempts: u32) -> Time {
    Time::from_nanos(options().sa_timeout.as_nanos() * u64::from(attempts))
}

/// A host receives from the beginning, and the subnet manager answers reports of it with this status.
fn answered(status: u16) -> Fake {
    let mut fake = Fake::experiment_i(options());
    fake.part_status = status;
    rises(&mut fake, 11, 1000);
    fake.attach();
    fake
}

fn rises(fake: &mut Fake, lid: u16, words: u64) {
    let now = fake.now;
    fake.port(lid, 1).rcv.set_rate(now, words);
}

fn entries(part: &ReceivedData) -> Vec<(Guid, u64)> {
    part.guids.into_iter().zip(part.bytes).filter(|(guid, _)| *guid != Guid(0)).collect()
}

fn guid(lid: u16) -> Guid {
    Guid((u64::from(lid) << 16) + 1)
}

#[test]
fn hosts_are_reported_once_in_n_sweeps_by_their_rise() {
    let mut fake = Fake::experiment_i(options());
    fake.port(12, 1).rcv.base = 1 << 40;
    rises(&mut fake, 11, 1000);
    rises(&mut fake, 12, 250);
    // Of the switches nothing is said, whatever they receive.
    rises(&mut fake, 2, 9999);
    fake.attach();
    fake.run_until(Time::from_secs(21));
    // Sweeps end just after 0, 2, 4 … s: the first is where counting begins.
    let seconds: Vec<u64> = fake.parts.iter().map(|(at, _)| at.as_nanos() / 1_000_000_000).collect();
    assert_eq!(seconds, [6, 12, 18]);
    let numbers: Vec<u32> = fake.parts.iter().map(|(_, part)| part.report).collect();
    assert_eq!(numbers, [41, 42, 43], "those that the subnet manager gave");
    for (_, part) in &fake.parts {
        assert_eq!((part.part, part.parts), (0, 1));
        let entries = entries(part);
        assert_eq!(
            entries.iter().map(|(guid, _)| *guid).collect::<Vec<_>>(),
            (11..=16).map(guid).collect::<Vec<_>>()
        );
        // Six seconds of 1000 and of 250 words; readings are exact to a word.
        assert!(entries[0].1.abs_diff(24_000) <= 4 && entries[1].1.abs_diff(6_000) <= 4, "{entries:?}");
        assert!(entries[2..].iter().all(|(_, bytes)| *bytes == 0), "{entries:?}");
    }
    let statistics = fake.manager.statistics();
    assert_eq!((statistics.received_reports, statistics.received_requests), (3, 6));
    assert_eq!((statistics.received_given_up, statistics.received_left_out), (0, 0));
    let said = fake.events.iter().filter(|(_, event)| *event == Event::ReceivedReported).count();
    assert_eq!(said, 3);
}

#[test]
fn a_report_has_a_part_for_twelve_hosts() {
    let mut fake = Fake::new(options());
    fake.add(1, NodeType::Switch, "S");
    for host in 0..40 {
        fake.add(10 + host, NodeType::Hca, &format!("host {host}"));
        fake.cable((1, 1 + host as u8), (10 + host, 1));
        rises(&mut fake, 10 + host, 100 + u64::from(host));
    }
    (fake.own, fake.sm_lid) = ((11, 1), 10);
    fake.attach();
    fake.run_until(Time::from_secs(7));
    let parts: Vec<(u16, u16)> = fake.parts.iter().map(|(_, part)| (part.part, part.parts)).collect();
    assert_eq!(parts, [(0, 4), (1, 4), (2, 4), (3, 4)]);
    let mut all: Vec<Guid> =
        fake.parts.iter().flat_map(|(_, part)| entries(part)).map(|(guid, _)| guid).collect();
    all.dedup();
    assert_eq!(all, (10..50).map(guid).collect::<Vec<_>>());
    assert_eq!(fake.manager.statistics().received_requests, 1 + 4);
}

#[test]
fn nothing_is_reported_without_being_asked_or_received() {
    let mut quiet = Fake::experiment_i(options());
    quiet.attach();
    quiet.run_until(Time::from_secs(21));
    assert_eq!(quiet.manager.statistics().received_requests, 0, "no host has received anything");
    let mut fake = Fake::experiment_i(Options { learn_weights: 0, ..options() });
    rises(&mut fake, 11, 1000);
    fake.attach();
    fake.run_until(Time::from_secs(21));
    assert_eq!(fake.manager.statistics().received_requests, 0);
}

#[test]
fn a_refused_or_lost_report_is_given_up() {
    let mut fake = answered(sa_status::REQ_INVALID);
    fake.run_until(Time::from_secs(7));
    let refused = Event::ReceivedNotReported { status: Some(sa_status::REQ_INVALID) };
    assert!(fake.events.iter().any(|(_, event)| *event == refused), "{:?}", fake.events);
    assert_eq!(fake.manager.statistics().received_given_up, 1);

    fake.part_status = 0;
    fake.lose = Box::new(|mad| mad.mad.attribute_id() == weft_wire::sa_attribute::RECEIVED_DATA);
    fake.run_until(Time::from_secs(17));
    let lost = Event::ReceivedNotReported { status: None };
    assert!(fake.events.iter().any(|(_, event)| *event == lost), "{:?}", fake.events);
    fake.lose = Box::new(|_| false);
    fake.run_until(Time::from_secs(26));
    assert!(fake.manager.statistics().received_reports >= 1, "the next one is made as if nothing had been");
}

/// A manager that does not know the port yet says BUSY: it is asked again after each timeout, and the report is taken in the end.
#[test]
fn a_busy_subnet_manager_is_asked_again() {
    let mut fake = answered(status::BUSY);
    // The first report is made just after six seconds.
    fake.run_until(Time::from_secs(6) + timeouts(2));
    assert!(fake.parts.len() >= 2, "it is asked again: {:?}", fake.parts);
    fake.part_status = status::OK;
    fake.run_until(Time::from_secs(6) + timeouts(options().retries + 1));
    let statistics = fake.manager.statistics();
    assert_eq!((statistics.received_reports, statistics.received_given_up), (1, 0));
    let first = fake.parts[0].1;
    assert!(fake.parts.iter().all(|(_, part)| *part == first), "the same part each time");
}

/// One that stays busy is asked as often as one that does not answer, and then not before the next report.
#[test]
fn a_report_to_a_manager_that_stays_busy_is_given_up() {
    let mut fake = answered(status::BUSY);
    fake.run_until(Time::from_secs(7) + timeouts(options().retries + 1));
    let (first, attempts) = (fake.parts[0].1.report, options().retries as usize + 1);
    assert_eq!(fake.parts.iter().filter(|(_, part)| part.report == first).count(), attempts);
    let given_up = Event::ReceivedNotReported { status: None };
    assert!(fake.events.iter().any(|(_, event)| *event == given_up), "{:?}", fake.events);
    assert_eq!(fake.manager.statistics().received_given_up, 1);
}

/// A subnet manager that has restarted has lost the subscriptions, by which the manager knows, and what it learned.
#[test]
fn a_new_subnet_manager_gets_the_last_report_again() {
    let mut fake = Fake::experiment_i(Options { learn_weights: 10, ..options() });
    rises(&mut fake, 11, 1000);
    fake.attach();
    fake.run_until(Time::from_secs(21));
    let [(_, first)] = fake.parts[..] else { panic!("one report: {:?}", fake.parts) };
    fake.restart_sm();
    // It is not ready at first, and refuses.
    fake.part_status = sa_status::REQ_INVALID;
    fake.run_until(Time::from_secs(27));
    assert!(fake.parts.len() > 1, "it is offered");
    fake.part_status = 0;
    fake.run_until(Time::from_secs(39));
    let offered = fake.repeated.clone();
    assert_eq!((offered[0], &offered[1..]), (0, &*vec![first.report; offered.len() - 1]), "the same again");
    let (_, last) = *fake.parts.last().unwrap();
    assert_eq!(entries(&last), entries(&first));
    assert_eq!(fake.manager.statistics().received_reports, 2, "and no more once it is taken");
    fake.run_until(Time::from_secs(45));
    assert_eq!(*fake.repeated.last().unwrap(), 0, "what came after it is reported when it is time");
}

/// One that refuses for ever is not asked for ever: ten times, and then as often as ever.
#[test]
fn a_repeated_report_is_given_up_in_the_end() {
    let mut fake = Fake::experiment_i(Options { learn_weights: 40, ..options() });
    rises(&mut fake, 11, 1000);
    fake.attach();
    fake.run_until(Time::from_secs(81));
    fake.restart_sm();
    fake.part_status = sa_status::REQ_DENIED;
    fake.run_until(Time::from_secs(140));
    assert_eq!(fake.repeated.iter().filter(|number| **number != 0).count(), 10);
    let denied = Event::ReceivedNotReported { status: Some(sa_status::REQ_DENIED) };
    assert!(denied.to_string().ends_with("status 0x0700: it wants the key of its --sa-key"), "{denied}");
    assert_eq!(fake.events.iter().filter(|(_, event)| *event == denied).count(), 10);
}

#[test]
fn notices_and_reports_show_the_key() {
    for key in [SmKey(0), SmKey(0x77)] {
        let mut fake = Fake::experiment_i(Options { sa_key: key, wildcard_at_start: true, ..options() });
        rises(&mut fake, 11, 1000);
        fake.attach();
        fake.run_until(Time::from_secs(7));
        assert!(!fake.asked.is_empty() && !fake.parts.is_empty());
        assert!(fake.keys.iter().all(|shown| *shown == key), "{:?}", fake.keys);
    }
}
