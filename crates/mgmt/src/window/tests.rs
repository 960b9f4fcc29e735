//! Windows that adapt, in networks whose best window has a closed form: a delay, a server behind it, and a buffer before that.

use std::collections::{BTreeMap, VecDeque};

use weft_wire::{AddressedMad, AttributeId, Method, Smp};

use super::*;
use crate::{DirectedPath, Limits, Request, SmpRoute, Stats, Transactions};

/// A node that answers one request after the other.
#[derive(Clone, Copy, Debug)]
struct Network {
    /// There and back.
    delay: Time,
    /// What each request takes the node; none is none.
    service: Time,
    /// Requests that may wait at the node beside the one that it answers; others are lost.
    buffer: usize,
}

/// What became of requests that were all there from the beginning.
#[derive(Debug)]
struct Outcome {
    took: Time,
    window: WindowState,
    stats: Stats,
}

const TIMEOUT: Time = Time::from_millis(200);

fn micros(micros: u64) -> Time {
    Time::from_micros(micros)
}

impl Network {
    fn run(self, window: Window, requests: u32) -> Outcome {
        let limits = Limits { window, timeout: TIMEOUT, retries: 100, queue: requests as usize };
        let mut transactions = Transactions::new(limits);
        let request = Request::get(AttributeId::NodeInfo, 0).by(&SmpRoute::Directed(DirectedPath::HERE));
        for number in 0..requests {
            transactions.offer(number, request).expect("a queue that is long enough");
        }
        let mut now = Time::ZERO;
        let mut number = 0_u64;
        let mut answers: BTreeMap<(Time, u64), AddressedMad> = BTreeMap::new();
        // When the node is done with each request that waits there.
        let mut waiting: VecDeque<Time> = VecDeque::new();
        while !transactions.is_idle() {
            assert!(transactions.poll_failed(now).is_none(), "all are answered in the end");
            while let Some(mut sent) = transactions.poll_transmit(now) {
                let arrived = now + Time::from_nanos(self.delay.as_nanos() / 2);
                while waiting.front().is_some_and(|done| *done <= arrived) {
                    waiting.pop_front();
                }
                if waiting.len() > self.buffer {
                    continue;
                }
                let done = waiting.back().copied().unwrap_or(arrived).max(arrived) + self.service;
                if self.service > Time::ZERO {
                    waiting.push_back(done);
                }
                Smp::method.set(&mut sent.mad.0, Method::GetResp);
                number += 1;
                answers.insert((done + Time::from_nanos(self.delay.as_nanos() / 2), number), sent);
            }
            let answer = answers.first_key_value().map(|(&(at, _), _)| at);
            now =
                [answer, transactions.poll_timeout()].into_iter().flatten().min().expect("something to come");
            while let Some(entry) = answers.first_entry().filter(|entry| entry.key().0 <= now) {
                transactions.handle_response(now, &entry.remove());
            }
        }
        Outcome { took: now, window: transactions.window(), stats: *transactions.stats() }
    }
}

/// Without anything that fills up, more is always faster.
#[test]
fn a_delay_alone_is_filled_as_far_as_it_may_be() {
    for most in [64, 1024] {
        let network = Network { delay: micros(100), service: Time::ZERO, buffer: usize::MAX };
        let found = network.run(Window::Auto(most), 100_000);
        assert_eq!(found.window, WindowState::new(most, WindowReason::Most), "{found:?}");
        assert_eq!((found.stats.timeouts, found.stats.in_flight_max), (0, most));
    }
}

/// A node that takes so long for each request is never idle from a window of (delay + service) / service on. The window comes
/// to rest no wider than two and a half times that: it grows by halves, and the last step was in vain.
#[test]
fn a_busy_node_is_kept_busy_and_no_more() {
    for (delay, service) in [(0, 390), (1000, 390), (100, 10), (1000, 10), (5000, 20), (200, 1)] {
        let network = Network { delay: micros(delay), service: micros(service), buffer: usize::MAX };
        let requests = 200_000;
        let found = network.run(Window::AUTO, requests);
        let best = (delay + service).div_ceil(service);
        let case = format!("{delay} µs and {service} µs: {:?}", found.window);
        assert!(u64::from(found.window.most) >= best.min(1024) || found.window.most >= 4, "{case}");
        assert!(u64::from(found.window.most) * 2 <= best.max(4) * 5, "{case}");
        let floor = micros(service * u64::from(requests));
        assert!(found.took.as_nanos() * 100 <= floor.as_nanos() * 106, "{case}: {} for {floor}", found.took);
        assert_eq!(found.stats.timeouts, 0, "{case}");
        let fixed = network.run(Window::Fixed(4), requests);
        assert!(found.took.as_nanos() * 100 <= fixed.took.as_nanos() * 101, "{case}: {}", fixed.took);
    }
}

/// What finds a buffer full is lost. Of a thousand requests no more than one is, besides those that find out.
#[test]
fn few_are_lost_where_buffers_are_small() {
    for buffer in [4, 5, 6, 8, 16] {
        for (delay, service) in [(0, 390), (100, 390), (1000, 100), (100, 10)] {
            let network = Network { delay: micros(delay), service: micros(service), buffer };
            let requests = 20_000;
            let found = network.run(Window::AUTO, requests);
            let case = format!("{buffer} packets, {delay} µs and {service} µs: {:?}", found.window);
            let lost = found.stats.timeouts;
            assert!(lost * 1000 <= u64::from(requests), "{case}: {lost} lost");
        }
    }
}

#[test]
fn windows_are_read_and_written() {
    assert_eq!("auto".parse(), Ok(Window::AUTO));
    assert_eq!("16".parse(), Ok(Window::Fixed(16)));
    for wrong in ["0", "65537", "-1", "many", ""] {
        assert_eq!(wrong.parse::<Window>(), Err(BadWindow), "{wrong}");
    }
    assert_eq!((Window::AUTO.to_string(), Window::Fixed(4).to_string()), ("auto".to_owned(), "4".to_owned()));
    assert_eq!(Window::AUTO.narrowed(8), Window::Auto(8));
    assert_eq!(Window::Fixed(4).narrowed(8), Window::Fixed(4));
}
