//! Requests, their window, their timeouts and their answers.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};
use weft_machine::{Time, Timer};
use weft_wire::{AddressedMad, DirectedSmp, INITIAL_PATH, MgmtClass, Smp, TransactionId, status};

use crate::Stats;
use crate::pace::Pace;
use crate::timers::RequestTimer;
use crate::window::{Answer, WINDOW_MAX, Window, WindowState};

/// How many requests a slot can tell apart.
const TURNS: u32 = u32::MAX / WINDOW_MAX;

/// Stands for "no slot" in the list of deadlines.
const NOWHERE: u32 = u32::MAX;

weft_wire::defaults! {
    /// How a manager paces its requests. The default has the window, timeout and retries that subnet managers have always used.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
    pub struct Limits {
        /// How many requests may be in flight.
        pub window: Window = Window::Fixed(4),
        /// How long to wait for the answer of one attempt.
        pub timeout: Time = Time::from_millis(200),
        /// How many more attempts follow the first.
        pub retries: u32 = 3,
        /// How many requests may wait for the window.
        pub queue: usize = 1 << 20,
    }
}

/// A request that was answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completed<K> {
    /// What the manager called it.
    pub key: K,
    /// The answer.
    pub mad: AddressedMad,
    /// From the last attempt to the answer.
    pub rtt: Time,
    /// How many attempts it took.
    pub attempts: u32,
}

/// A request that no one answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Failed<K> {
    /// What the manager called it.
    pub key: K,
    /// The request.
    pub request: AddressedMad,
    /// How many attempts were made.
    pub attempts: u32,
}

/// The queue was full; the request comes back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refused<K>(
    /// What the manager called it.
    pub K,
);

/// Requests waiting, in flight and answered.
///
/// A request's transaction id is drawn from the lower 32 bits; the upper 32 belong to the layer that attaches
/// several programs to one port, so they are neither set nor compared. All attempts of one request have the same
/// id. Deadlines are a doubly linked list through the slots: every attempt waits equally long, so the list is in
/// order of time and every step costs the same, however wide the window.
#[derive(Debug)]
pub struct Transactions<K> {
    limits: Limits,
    queue: VecDeque<(K, AddressedMad)>,
    slots: Vec<Slot<K>>,
    free: Vec<u32>,
    /// Slots whose attempt timed out and is to be made again. One that was answered meanwhile stays in it until its
    /// turn comes, and is then passed over.
    resend: VecDeque<u32>,
    oldest: u32,
    youngest: u32,
    in_flight: u32,
    pace: Pace,
    /// The oldest attempt in the list that still counts as being in the network; those after it do too.
    first_fresh: u32,
    /// How many do.
    fresh: u32,
    first_turn: u32,
    /// Whether the last attempt was the last that the window allowed.
    is_full: bool,
    /// When the last answer came.
    answered_at: Time,
    stats: Stats,
}

#[derive(Debug)]
struct Slot<K> {
    /// Counts the slot's requests, so that an answer to an earlier one is known as late.
    turn: u32,
    waiting: Option<Waiting<K>>,
}

#[derive(Debug)]
struct Waiting<K> {
    key: K,
    request: AddressedMad,
    attempts: u32,
    sent: Time,
    /// Whether it is in the list of deadlines; otherwise it is to be sent again.
    listed: bool,
    /// Whether it counts as being in the network.
    fresh: bool,
    before: u32,
    after: u32,
}

impl<K> Default for Transactions<K> {
    fn default() -> Self {
        Self::new(Limits::default())
    }
}

impl<K> Transactions<K> {
    /// No requests yet.
    pub fn new(limits: Limits) -> Self {
        Self {
            limits,
            queue: VecDeque::new(),
            slots: Vec::new(),
            free: Vec::new(),
            resend: VecDeque::new(),
            oldest: NOWHERE,
            youngest: NOWHERE,
            in_flight: 0,
            pace: Pace::new(limits.window, limits.timeout),
            first_fresh: NOWHERE,
            fresh: 0,
            first_turn: 0,
            is_full: false,
            answered_at: Time::ZERO,
            stats: Stats::default(),
        }
    }

    /// Queues a request; it comes back when [`Limits::queue`] are waiting.
    pub fn offer(&mut self, key: K, request: AddressedMad) -> Result<(), Refused<K>> {
        if self.queue.len() >= self.limits.queue {
            self.stats.refused += 1;
            return Err(Refused(key));
        }
        self.queue.push_back((key, request));
        self.stats.queued_max = self.stats.queued_max.max(self.queue.len());
        Ok(())
    }

    /// Whether a request that is offered now would go onto the wire at once.
    pub fn has_room(&mut self, now: Time) -> bool {
        self.settle(now);
        let room = self.in_flight < self.pace.window() && self.fresh < self.pace.open();
        room && self.first_to_resend().is_none()
    }

    /// What may go onto the wire now; `None` when nothing waits, or the window is full, or was closed by a time-out
    /// and has not opened again that far. Retries go first.
    pub fn poll_transmit(&mut self, now: Time) -> Option<AddressedMad> {
        self.settle(now);
        if self.fresh >= self.pace.open() {
            return None;
        }
        if let Some(at) = self.first_to_resend() {
            self.resend.pop_front();
            self.stats.retries += 1;
            return self.transmit(now, at);
        }
        if self.in_flight >= self.pace.window() {
            return None;
        }
        let (key, mut request) = self.queue.pop_front()?;
        let at = self.free.pop().unwrap_or_else(|| {
            self.slots.push(Slot { turn: self.first_turn, waiting: None });
            self.slots.len() as u32 - 1
        });
        let slot = self.slots.get_mut(at as usize)?;
        slot.turn = slot.turn.wrapping_add(1) % TURNS;
        let id = slot.turn * WINDOW_MAX + at;
        Smp::transaction_id.set(&mut request.mad.0, TransactionId(u64::from(id)));
        if self.in_flight == 0 && now > self.answered_at {
            self.pace.rest();
        }
        let (before, after) = (NOWHERE, NOWHERE);
        let (listed, fresh) = (false, false);
        slot.waiting = Some(Waiting { key, request, attempts: 0, sent: now, listed, fresh, before, after });
        self.in_flight += 1;
        self.stats.in_flight_max = self.stats.in_flight_max.max(self.in_flight);
        self.transmit(now, at)
    }

    /// Takes an answer. `None`: it belongs to no request in flight, or says that the device is busy and is to be
    /// asked again after the timeout (IBA 13.4.7); both are counted.
    pub fn handle_response(&mut self, now: Time, answer: &AddressedMad) -> Option<Completed<K>> {
        let Some(at) = self.find(answer) else {
            self.stats.unmatched += 1;
            return None;
        };
        if answer.mad.status() & status::BUSY != 0 {
            self.stats.busy += 1;
            return None;
        }
        self.unlist(at);
        let waiting = self.release(at)?;
        self.stats.completed += 1;
        let rtt = now.saturating_sub(waiting.sent);
        let oldest = self.sent(self.first_fresh);
        let (work, attempts) = (work_of(&waiting.request), waiting.attempts);
        self.pace.answered(now, Answer { rtt, work, attempts, is_limited: self.is_full, oldest });
        self.answered_at = now;
        if waiting.attempts == 1 {
            self.stats.rtt.record(rtt);
        }
        Some(Completed { key: waiting.key, mad: *answer, rtt, attempts: waiting.attempts })
    }

    /// Lets time pass: the next request given up by `now`; `None` when there is no other. What has attempts left
    /// comes out of [`Transactions::poll_transmit`] again.
    pub fn poll_failed(&mut self, now: Time) -> Option<Failed<K>> {
        while let Some(deadline) = self.deadline() {
            if deadline > now {
                return None;
            }
            let at = self.oldest;
            self.unlist(at);
            self.stats.timeouts += 1;
            self.pace.timed_out();
            let attempts = self.waiting(at).map_or(0, |waiting| waiting.attempts);
            if attempts <= self.limits.retries {
                self.resend.push_back(at);
                continue;
            }
            let waiting = self.release(at)?;
            self.stats.failed += 1;
            return Some(Failed { key: waiting.key, request: waiting.request, attempts });
        }
        None
    }

    /// When to look at [`Transactions::poll_failed`] and then [`Transactions::poll_transmit`] again: when the oldest
    /// attempt's time is up, or, while the window is not open all the way, when there is room for another.
    pub fn poll_timeout(&self) -> Option<Time> {
        self.next_timer().map(|timer| timer.at)
    }

    /// [`Transactions::poll_timeout`], and which of the two it is.
    pub fn next_timer(&self) -> Option<Timer<RequestTimer>> {
        let deadline = Timer { at: self.deadline()?, reason: RequestTimer::Timeout };
        let waits = self.pace.is_slowed() && self.fresh >= self.pace.open();
        let room = self.sent(self.first_fresh).filter(|_| waits).map(|sent| sent + self.pace.settle);
        Timer::earliest([Some(deadline), Timer::new(room, RequestTimer::Room)])
    }

    /// Forgets all requests, waiting and in flight, whose answers will be unmatched. The keys of those in flight come
    /// back: they may be carried out all the same.
    pub fn abandon(&mut self) -> Vec<K> {
        self.queue.clear();
        self.resend.clear();
        self.free.clear();
        (self.oldest, self.youngest, self.in_flight) = (NOWHERE, NOWHERE, 0);
        (self.first_fresh, self.fresh) = (NOWHERE, 0);
        let mut keys = Vec::new();
        for (at, slot) in self.slots.iter_mut().enumerate() {
            keys.extend(slot.waiting.take().map(|waiting| waiting.key));
            self.free.push(at as u32);
        }
        keys
    }

    /// Begins with other ids than a program did that was here before, whose answers may still be on their way. Any
    /// number will do that is hardly ever the same twice.
    pub fn begin_ids_at(&mut self, seed: u64) {
        self.first_turn = ((seed ^ seed >> 16 ^ seed >> 32) % u64::from(TURNS)) as u32;
        for slot in &mut self.slots {
            slot.turn = self.first_turn;
        }
    }

    /// Whether nothing waits and nothing is in flight.
    pub fn is_idle(&self) -> bool {
        self.in_flight == 0 && self.queue.is_empty()
    }

    /// How many requests wait for the window.
    pub fn queued(&self) -> usize {
        self.queue.len()
    }

    /// How many requests are in flight.
    pub fn in_flight(&self) -> u32 {
        self.in_flight
    }

    /// How many requests may be in flight now, and the reason.
    pub fn window(&self) -> WindowState {
        self.pace.state()
    }

    /// The counts so far.
    pub fn stats(&self) -> &Stats {
        &self.stats
    }

    /// When the oldest attempt's time is up.
    fn deadline(&self) -> Option<Time> {
        self.sent(self.oldest).map(|sent| sent + self.limits.timeout)
    }

    /// When the attempt in this slot was made.
    fn sent(&self, at: u32) -> Option<Time> {
        self.slots.get(at as usize)?.waiting.as_ref().map(|waiting| waiting.sent)
    }

    fn waiting(&mut self, at: u32) -> Option<&mut Waiting<K>> {
        self.slots.get_mut(at as usize)?.waiting.as_mut()
    }

    /// The slot whose attempt is to be made again first. One whose answer came late is taken out: it is free, or has
    /// another request.
    fn first_to_resend(&mut self) -> Option<u32> {
        while let Some(at) = self.resend.front().copied() {
            if self.waiting(at).is_some_and(|waiting| !waiting.listed) {
                return Some(at);
            }
            self.resend.pop_front();
        }
        None
    }

    /// The slot that this answer belongs to.
    fn find(&self, answer: &AddressedMad) -> Option<u32> {
        let id = answer.mad.transaction_id().0 as u32;
        let at = id % WINDOW_MAX;
        let slot = self.slots.get(at as usize)?;
        let waiting = slot.waiting.as_ref()?;
        let matches = slot.turn == id / WINDOW_MAX && answers(&waiting.request, answer);
        matches.then_some(at)
    }

    fn transmit(&mut self, now: Time, at: u32) -> Option<AddressedMad> {
        let youngest = self.youngest;
        let waiting = self.waiting(at)?;
        waiting.attempts += 1;
        waiting.sent = now;
        (waiting.listed, waiting.before, waiting.after) = (true, youngest, NOWHERE);
        waiting.fresh = true;
        let request = waiting.request;
        self.fresh += 1;
        if self.first_fresh == NOWHERE {
            self.first_fresh = at;
        }
        match self.waiting(youngest) {
            Some(previous) => previous.after = at,
            None => self.oldest = at,
        }
        self.youngest = at;
        self.stats.sent += 1;
        self.is_full = self.in_flight >= self.pace.window() || self.fresh >= self.pace.open();
        Some(request)
    }

    /// Attempts that have had their time to be answered do not count as being in the network any more.
    fn settle(&mut self, now: Time) {
        let settle = self.pace.settle;
        while let Some(waiting) = self.waiting(self.first_fresh).filter(|w| w.sent + settle <= now) {
            waiting.fresh = false;
            self.first_fresh = waiting.after;
            self.fresh -= 1;
        }
    }

    /// Takes a slot out of the list of deadlines, if it is there.
    fn unlist(&mut self, at: u32) {
        let Some(waiting) = self.waiting(at).filter(|waiting| waiting.listed) else { return };
        let (before, after) = (waiting.before, waiting.after);
        waiting.listed = false;
        let fresh = std::mem::replace(&mut waiting.fresh, false);
        self.fresh -= u32::from(fresh);
        if self.first_fresh == at {
            self.first_fresh = after;
        }
        match self.waiting(before) {
            Some(previous) => previous.after = after,
            None => self.oldest = after,
        }
        match self.waiting(after) {
            Some(next) => next.before = before,
            None => self.youngest = before,
        }
    }

    fn release(&mut self, at: u32) -> Option<Waiting<K>> {
        let waiting = self.slots.get_mut(at as usize)?.waiting.take()?;
        self.free.push(at);
        self.in_flight -= 1;
        Some(waiting)
    }
}

/// What a request takes: nodes that look at it by directed route, each of which has the work of one.
fn work_of(request: &AddressedMad) -> u32 {
    match request.mad.class() {
        MgmtClass::SubnDirected => 1 + u32::from(DirectedSmp::hop_count.get(&request.mad.0)),
        _ => 1,
    }
}

/// Whether this answers that request: the same attribute of the same node, by the same way. An id alone says little
/// when another program had the port before.
fn answers(request: &AddressedMad, answer: &AddressedMad) -> bool {
    let (asked, got) = (&request.mad, &answer.mad);
    let same_way = match asked.class() {
        MgmtClass::SubnLid => request.lid == answer.lid,
        MgmtClass::SubnDirected => {
            DirectedSmp::hop_count.get(&asked.0) == DirectedSmp::hop_count.get(&got.0)
                && asked.0[INITIAL_PATH] == got.0[INITIAL_PATH]
        }
        _ => true,
    };
    got.method().is_response()
        && got.class() == asked.class()
        && got.attribute_id() == asked.attribute_id()
        && got.attribute_modifier() == asked.attribute_modifier()
        && same_way
}

#[cfg(test)]
mod tests;
