use std::collections::VecDeque;

use proptest::prelude::*;
use weft_wire::{AttributeId, Lid, Method, MgmtClass};

use super::*;
use crate::{Request, SmpRoute};

const ANSWER: Answer = Answer { rtt: Time::ZERO, work: 1, attempts: 1, is_limited: true, oldest: None };

fn limits(window: u32, retries: u32) -> Limits {
    Limits { window: Window::Fixed(window), retries, timeout: Time::from_nanos(100), queue: 8 }
}

fn request(modifier: u32) -> AddressedMad {
    Request::get(AttributeId::PortInfo, modifier).by(&SmpRoute::Lid(Lid(1)))
}

fn answer(mut request: AddressedMad) -> AddressedMad {
    Smp::method.set(&mut request.mad.0, Method::GetResp);
    request
}

#[test]
fn the_window_bounds_what_is_in_flight() {
    let mut t = Transactions::new(limits(2, 0));
    for key in 0..4 {
        t.offer(key, request(key)).unwrap();
    }
    let first = t.poll_transmit(Time::ZERO).unwrap();
    assert!(t.poll_transmit(Time::ZERO).is_some());
    assert_eq!(t.poll_transmit(Time::ZERO), None);
    assert_eq!(t.handle_response(Time::from_nanos(7), &answer(first)).unwrap().key, 0);
    assert!(t.poll_transmit(Time::ZERO).is_some());
    assert_eq!((t.in_flight(), t.queued(), t.stats().in_flight_max), (2, 1, 2));
    assert_eq!((t.stats().rtt.count, t.stats().rtt.max), (1, Time::from_nanos(7)));
}

#[test]
fn a_full_queue_refuses_and_counts() {
    let mut t = Transactions::new(limits(1, 0));
    for key in 0..8 {
        t.offer(key, request(0)).unwrap();
    }
    assert_eq!(t.offer(8, request(0)), Err(Refused(8)));
    assert_eq!((t.stats().refused, t.stats().queued_max), (1, 8));
}

#[test]
fn a_busy_peer_is_asked_again() {
    let mut t = Transactions::new(limits(1, 1));
    t.offer((), request(0)).unwrap();
    let first = t.poll_transmit(Time::ZERO).unwrap();
    let mut busy = answer(first);
    Smp::status.set(&mut busy.mad.0, status::BUSY);
    assert_eq!(t.handle_response(Time::from_nanos(1), &busy), None);
    assert_eq!((t.stats().busy, t.stats().unmatched, t.in_flight()), (1, 0, 1));
    assert_eq!(t.poll_failed(Time::from_nanos(100)), None);
    assert_eq!(t.poll_transmit(Time::from_nanos(100)), Some(first));
    assert!(t.handle_response(Time::from_nanos(101), &answer(first)).is_some());
}

#[test]
fn retries_keep_the_transaction_id_until_the_request_fails() {
    let mut t = Transactions::new(limits(1, 2));
    t.offer((), request(0)).unwrap();
    let mut now = Time::ZERO;
    let first = t.poll_transmit(now).unwrap();
    for _ in 0..2 {
        assert_eq!(t.poll_timeout(), Some(now + Time::from_nanos(100)));
        assert_eq!(t.poll_failed(now + Time::from_nanos(99)), None, "early calls are harmless");
        now += Time::from_nanos(100);
        assert_eq!(t.poll_failed(now), None);
        assert_eq!(t.poll_transmit(now), Some(first));
        assert_eq!(t.poll_transmit(now), None);
    }
    now += Time::from_nanos(100);
    let failed = t.poll_failed(now).unwrap();
    assert_eq!((failed.request, failed.attempts), (first, 3));
    assert!(t.is_idle());
    assert_eq!(t.poll_timeout(), None);
    assert_eq!((t.stats().sent, t.stats().retries, t.stats().timeouts, t.stats().failed), (3, 2, 3, 1));
    assert_eq!(t.handle_response(now, &answer(first)), None, "too late");
    assert_eq!(t.stats().unmatched, 1);
}

#[test]
fn an_answer_between_timeout_and_retry_spares_the_retry() {
    let mut t = Transactions::new(limits(4, 2));
    t.offer((), request(0)).unwrap();
    let first = t.poll_transmit(Time::ZERO).unwrap();
    assert_eq!(t.poll_failed(Time::from_nanos(100)), None);
    assert!(t.handle_response(Time::from_nanos(101), &answer(first)).is_some());
    assert_eq!(t.poll_transmit(Time::from_nanos(101)), None);
    assert!(t.is_idle());
}

#[test]
fn only_the_lower_half_of_the_id_counts_and_the_rest_must_fit() {
    let mut t = Transactions::new(limits(1, 0));
    t.offer((), request(0)).unwrap();
    let good = answer(t.poll_transmit(Time::ZERO).unwrap());
    let mut wrong = good;
    Smp::attribute_id.set(&mut wrong.mad.0, AttributeId::NodeInfo);
    assert_eq!(t.handle_response(Time::ZERO, &wrong), None);
    let mut wrong = good;
    Smp::mgmt_class.set(&mut wrong.mad.0, MgmtClass::SubnDirected);
    assert_eq!(t.handle_response(Time::ZERO, &wrong), None);
    let mut wrong = good;
    Smp::method.set(&mut wrong.mad.0, Method::Get);
    assert_eq!(t.handle_response(Time::ZERO, &wrong), None);
    let mut wrong = good;
    Smp::attribute_modifier.set(&mut wrong.mad.0, 1);
    assert_eq!(t.handle_response(Time::ZERO, &wrong), None);
    let wrong = AddressedMad { lid: Lid(2), ..good };
    assert_eq!(t.handle_response(Time::ZERO, &wrong), None);
    let mut upper = good;
    let id = good.mad.transaction_id().0;
    Smp::transaction_id.set(&mut upper.mad.0, TransactionId(id | 77 << 32));
    assert!(t.handle_response(Time::ZERO, &upper).is_some());
    assert_eq!(t.handle_response(Time::ZERO, &upper), None, "a duplicate");
    assert_eq!(t.stats().unmatched, 6);
}

#[test]
fn an_answer_by_another_way_is_no_answer() {
    let directed =
        |path: &str| Request::get(AttributeId::PortInfo, 0).by(&SmpRoute::Directed(path.parse().unwrap()));
    let mut t = Transactions::new(limits(1, 0));
    t.offer((), directed("0,1,2")).unwrap();
    let sent = t.poll_transmit(Time::ZERO).unwrap();
    for other in ["0,1,3", "0,1", "0,1,2,3"] {
        let mut wrong = answer(directed(other));
        Smp::transaction_id.set(&mut wrong.mad.0, sent.mad.transaction_id());
        assert_eq!(t.handle_response(Time::ZERO, &wrong), None, "{other}");
    }
    assert!(t.handle_response(Time::ZERO, &answer(sent)).is_some());
}

#[test]
fn ids_begin_elsewhere_for_another_seed() {
    let first = |seed| {
        let mut t = Transactions::new(limits(1, 0));
        t.begin_ids_at(seed);
        t.offer((), request(0)).unwrap();
        t.poll_transmit(Time::ZERO).unwrap().mad.transaction_id()
    };
    assert_eq!(first(3), first(3));
    assert_ne!(first(3), first(4));
    assert_ne!(first(3), first(3 << 40));
}

#[test]
fn abandoned_requests_are_never_answered() {
    let mut t = Transactions::new(limits(2, 1));
    for key in 0..4 {
        t.offer(key, request(0)).unwrap();
    }
    let sent = [t.poll_transmit(Time::ZERO).unwrap(), t.poll_transmit(Time::ZERO).unwrap()];
    assert_eq!(t.poll_failed(Time::from_nanos(100)), None);
    let mut keys = t.abandon();
    keys.sort_unstable();
    assert_eq!(keys, [0, 1], "the others were not sent");
    assert!(t.is_idle());
    assert_eq!((t.poll_timeout(), t.poll_transmit(Time::ZERO)), (None, None));
    for old in sent {
        assert_eq!(t.handle_response(Time::ZERO, &answer(old)), None);
    }
    t.offer(9, request(0)).unwrap();
    let new = t.poll_transmit(Time::ZERO).unwrap();
    for old in sent {
        assert_eq!(t.handle_response(Time::ZERO, &answer(old)), None);
    }
    assert_eq!(t.handle_response(Time::ZERO, &answer(new)).unwrap().key, 9);
}

/// A device that can hold two requests, and loses what comes when it has them.
#[test]
fn requests_lost_together_are_retried_apart() {
    let (window, timeout) = (32, Time::from_millis(200));
    let mut t =
        Transactions::new(Limits { window: Window::Fixed(window), timeout, retries: 3, queue: 1 << 10 });
    for key in 0..1000 {
        t.offer(key, request(key)).unwrap();
    }
    let (mut now, mut lost) = (Time::ZERO, 0);
    while !t.is_idle() {
        let mut held = Vec::new();
        while let Some(sent) = t.poll_transmit(now) {
            if held.len() < 2 {
                held.push(sent);
            } else {
                lost += 1;
            }
        }
        now += Time::from_micros(40);
        for sent in &held {
            assert!(t.handle_response(now, &answer(*sent)).is_some());
        }
        if held.is_empty() {
            now = t.poll_timeout().unwrap().max(now);
        }
        assert_eq!(t.poll_failed(now), None, "at {now}, {:?}", t.stats());
    }
    assert_eq!((t.stats().completed, t.stats().failed), (1000, 0));
    assert!(lost > 0 && t.stats().retries == lost, "{lost}: {:?}", t.stats());
}

#[test]
fn the_dead_hold_nobody_up() {
    let timeout = Time::from_millis(200);
    let mut t = Transactions::new(Limits { window: Window::Fixed(4), timeout, retries: 1, queue: 8 });
    t.offer(0, request(0)).unwrap();
    let dead = t.poll_transmit(Time::ZERO).unwrap();
    assert_eq!(t.poll_failed(timeout), None);
    assert_eq!(t.poll_transmit(timeout), Some(dead));
    t.offer(1, request(1)).unwrap();
    assert_eq!((t.poll_transmit(timeout), t.has_room(timeout)), (None, false));
    let Timer { at: room, reason } = t.next_timer().unwrap();
    assert_eq!(reason, RequestTimer::Room);
    assert_eq!(room, timeout + Time::from_micros(12_500));
    assert!(t.has_room(room));
    let live = t.poll_transmit(room).unwrap();
    assert!(t.handle_response(room, &answer(live)).is_some());
    let end = Timer { at: timeout + timeout, reason: RequestTimer::Timeout };
    assert_eq!(t.next_timer(), Some(end));
    assert_eq!(t.poll_failed(end.at).map(|failed| failed.key), Some(0), "it says what it then does");
}

#[derive(Clone, Debug)]
enum Step {
    Offer,
    Transmit,
    /// Answers the request sent this many transmissions ago.
    Answer(usize),
    Pass(u64),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        Just(Step::Offer),
        Just(Step::Transmit),
        (0usize..6).prop_map(Step::Answer),
        (0u64..130).prop_map(Step::Pass),
    ]
}

/// The obvious way to do it: lists that are searched from end to end.
struct Model {
    limits: Limits,
    queue: VecDeque<u32>,
    /// Key, when the attempt was sent, attempts.
    flying: Vec<(u32, Time, u32)>,
    resend: VecDeque<(u32, u32)>,
    pace: Pace,
}

impl Model {
    fn is_fresh(&self, sent: Time, now: Time) -> bool {
        sent + self.pace.settle > now
    }

    fn is_open(&self, now: Time) -> bool {
        let fresh = self.flying.iter().filter(|f| self.is_fresh(f.1, now)).count();
        fresh < self.pace.open() as usize
    }

    fn transmit(&mut self, now: Time) -> Option<u32> {
        if !self.is_open(now) {
            return None;
        }
        let (key, attempts) = match self.resend.pop_front() {
            Some(again) => again,
            None if self.flying.len() < self.limits.window.most() as usize => (self.queue.pop_front()?, 0),
            None => return None,
        };
        self.flying.push((key, now, attempts + 1));
        Some(key)
    }

    fn answer(&mut self, key: u32, now: Time) -> Option<(u32, Time, u32)> {
        let answered = self.take(key, now)?;
        self.pace.answered(now, ANSWER);
        Some(answered)
    }

    fn take(&mut self, key: u32, now: Time) -> Option<(u32, Time, u32)> {
        if let Some(at) = self.resend.iter().position(|again| again.0 == key) {
            let (key, attempts) = self.resend.remove(at)?;
            return Some((key, now, attempts));
        }
        let at = self.flying.iter().position(|flying| flying.0 == key)?;
        let (key, sent, attempts) = self.flying.remove(at);
        Some((key, now - sent, attempts))
    }

    fn expire(&mut self, now: Time) -> Vec<(u32, u32)> {
        let timeout = self.limits.timeout;
        let (late, in_time): (Vec<_>, Vec<_>) = self.flying.iter().partition(|f| f.1 + timeout <= now);
        self.flying = in_time;
        if !late.is_empty() {
            self.pace.timed_out();
        }
        let (again, failed): (Vec<_>, Vec<_>) =
            late.into_iter().partition(|f: &(u32, Time, u32)| f.2 <= self.limits.retries);
        self.resend.extend(again.iter().map(|f| (f.0, f.2)));
        failed.iter().map(|f| (f.0, f.2)).collect()
    }

    fn wake(&self, now: Time) -> Option<Time> {
        let deadline = self.flying.iter().map(|f| f.1 + self.limits.timeout).min()?;
        let settles = self.flying.iter().filter(|f| self.is_fresh(f.1, now)).map(|f| f.1 + self.pace.settle);
        let room = settles.min().filter(|_| self.pace.is_slowed() && !self.is_open(now));
        Some(room.map_or(deadline, |room| room.min(deadline)))
    }

    fn in_flight(&self) -> usize {
        self.flying.len() + self.resend.len()
    }
}

proptest! {
    #[test]
    fn transactions_do_what_the_model_does(
        window in 1u32..5,
        retries in 0u32..3,
        steps in prop::collection::vec(step(), 0..200),
    ) {
        let limits = limits(window, retries);
        let mut t = Transactions::new(limits);
        let (queue, flying, resend) = (VecDeque::new(), Vec::new(), VecDeque::new());
        let pace = Pace::new(Window::Fixed(window), limits.timeout);
        let mut model = Model { limits, queue, flying, resend, pace };
        let (mut now, mut next_key, mut wire) = (Time::ZERO, 0u32, Vec::new());
        for step in steps {
            match step {
                Step::Offer => {
                    let refused = t.offer(next_key, request(next_key)).is_err();
                    prop_assert_eq!(refused, model.queue.len() == limits.queue);
                    if !refused {
                        model.queue.push_back(next_key);
                    }
                    next_key += 1;
                }
                Step::Transmit => {
                    // A resend belongs to the window already, so the model's window check leaves it out.
                    let full = model.resend.is_empty() && model.in_flight() >= window as usize;
                    let expected = if full { None } else { model.transmit(now) };
                    let sent = t.poll_transmit(now);
                    prop_assert_eq!(sent.map(|sent| sent.mad.attribute_modifier()), expected);
                    wire.extend(sent);
                }
                Step::Answer(ago) => {
                    let Some(sent) = wire.len().checked_sub(ago + 1).map(|at| wire[at]) else { continue };
                    let done = t.handle_response(now, &answer(sent));
                    let expected = model.answer(sent.mad.attribute_modifier(), now);
                    prop_assert_eq!(done.map(|d| (d.key, d.attempts)), expected.map(|e| (e.0, e.2)));
                }
                Step::Pass(nanos) => {
                    now += Time::from_nanos(nanos);
                    let failed = std::iter::from_fn(|| t.poll_failed(now));
                    let failed: Vec<_> = failed.map(|f| (f.key, f.attempts)).collect();
                    prop_assert_eq!(failed, model.expire(now));
                }
            }
            prop_assert_eq!(t.in_flight() as usize, model.in_flight());
            prop_assert_eq!(t.queued(), model.queue.len());
            let room = model.in_flight() < window as usize && model.is_open(now) && model.resend.is_empty();
            prop_assert_eq!(t.has_room(now), room);
            prop_assert_eq!(t.poll_timeout(), model.wake(now));
        }
    }
}
