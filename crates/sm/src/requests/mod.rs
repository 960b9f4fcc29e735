//! The steps' way to the wire: every request passes through here and through one window, in `Transactions`.
//!
//! ```text
//!  step ──next()──▶ Ask ──▶ Transactions ──▶ outbox ──▶ the driver
//!   ▲                            │
//!   └── answered(), failed() ◀───┴──▶ unconfirmed: Sets of which an attempt may still be under way
//! ```
//!
//! A step never waits: it makes a request when it is asked for one, and there is room in the window each time.
//! Answers to traps and to other managers are no requests and go past it (`traps.rs`, `election`).

mod guard;
mod smp;
mod unconfirmed;

use std::collections::VecDeque;

use weft_machine::{Time, Timer};
use weft_mgmt::{DirectedPath, Limits, SmpRoute, Stats, Transactions, WindowState};
use weft_wire::{AddressedMad, Guid, MKey, Mad, MgmtClass, Smp};

pub(crate) use guard::{Guard, Seen};
pub(crate) use smp::{Get, Set, SmpRequest};
pub(crate) use unconfirmed::LATE_MAX;

use crate::knowledge::Key;
use crate::{SmTimer, SmpCounts};
use smp::SmpKind;
use unconfirmed::Unconfirmed;

/// One request of a step.
pub(crate) struct Ask {
    pub(crate) key: Key,
    pub(crate) route: SmpRoute,
    pub(crate) request: SmpRequest,
}

/// A part of a sweep: makes requests, takes answers, and is done when it has no more of either.
pub(crate) trait Step {
    /// The next request; `None` when there is none until an answer comes.
    fn next(&mut self) -> Option<Ask>;
    /// The next request that is no SMP, asked for when there is no SMP.
    fn next_gmp(&mut self) -> Option<(Key, AddressedMad)> {
        None
    }
    /// The M_Key that a request shows, where that is not the manager's own.
    fn m_key(&self, _key: Key) -> Option<MKey> {
        None
    }
    /// Takes the answer to a request. Its status may say anything.
    fn answered(&mut self, key: Key, answer: &Mad);
    /// Takes note that no answer came.
    fn failed(&mut self, key: Key);
    /// Whether what is still in flight does not matter any more.
    fn is_over(&self) -> bool {
        false
    }
    /// What a request has written, by node, to be read back when one attempt of it may still be under way. Nothing
    /// of a request that writes nothing.
    fn written(&self, _key: Key) -> Vec<(Guid, Key)> {
        Vec::new()
    }
    /// By which directed route a request without an answer by LID can be made again. A step that is asked this
    /// sends no more by LID: the way may be broken for others too.
    fn fallback(&mut self, _key: Key) -> Option<DirectedPath> {
        None
    }
}

/// A request under way.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    key: Key,
    /// `None` of what is no SMP.
    kind: Option<SmpKind>,
}

/// The transactions, what is ready to be sent, and the counts of this sweep.
#[derive(Debug, Default)]
pub(crate) struct Requests {
    transactions: Transactions<Waiting>,
    /// Bounded by the window, because it is emptied whenever it has been filled.
    outbox: VecDeque<AddressedMad>,
    pub(crate) counts: SmpCounts,
    /// Requests answered or given up in this phase.
    pub(crate) done: u64,
    /// Requests made in this phase.
    pub(crate) asked: u64,
    /// What every request shows: the key that ports were set to ask for (IBA 14.2.4).
    m_key: MKey,
    /// What was written by Sets of which an attempt may still be under way.
    pub(crate) unconfirmed: Unconfirmed,
}

impl Requests {
    pub(crate) fn new(limits: Limits) -> Self {
        Self { transactions: Transactions::new(limits), ..Self::default() }
    }

    /// The same, showing this key.
    pub(crate) fn with_m_key(self, m_key: MKey) -> Self {
        Self { m_key, ..self }
    }

    /// How many SMPs may be outstanding now, and the reason.
    pub(crate) fn window(&self) -> WindowState {
        self.transactions.window()
    }

    /// SMPs that are under way.
    pub(crate) fn in_flight(&self) -> u32 {
        self.transactions.in_flight()
    }

    pub(crate) fn begin_sweep(&mut self) {
        self.counts = SmpCounts::default();
    }

    pub(crate) fn begin_phase(&mut self) {
        (self.done, self.asked) = (0, 0);
    }

    /// Fills the window from the step. True when the step has nothing more to ask and nothing in flight.
    pub(crate) fn pump(&mut self, now: Time, step: &mut dyn Step) -> bool {
        loop {
            if step.is_over() {
                self.abandon(now, step);
                return true;
            }
            while let Some(mad) = self.transactions.poll_transmit(now) {
                self.outbox.push_back(mad);
            }
            if !self.transactions.has_room(now) {
                return false;
            }
            if let Some(Ask { key, route, request }) = step.next() {
                let m_key = step.m_key(key).unwrap_or(self.m_key);
                self.ask(key, m_key, request, &route);
            } else if let Some((key, request)) = step.next_gmp() {
                self.offer(Waiting { key, kind: None }, request);
            } else {
                return self.transactions.is_idle();
            }
        }
    }

    /// Takes an answer to the step. False when no request waits for it.
    pub(crate) fn receive(&mut self, now: Time, answer: &AddressedMad, step: &mut dyn Step) -> bool {
        let Some(completed) = self.transactions.handle_response(now, answer) else { return false };
        self.done += 1;
        if completed.attempts > 1 {
            self.mark_unconfirmed(now, completed.key.key, step);
        }
        step.answered(completed.key.key, &completed.mad.mad);
        true
    }

    /// Lets time pass: an unanswered request fails in its step, or goes again by a directed route.
    pub(crate) fn expire(&mut self, now: Time, step: &mut dyn Step) {
        while let Some(failed) = self.transactions.poll_failed(now) {
            let Waiting { key, kind } = failed.key;
            self.mark_unconfirmed(now, key, step);
            let sent = &failed.request.mad;
            let by_lid = kind.filter(|_| sent.class() == MgmtClass::SubnLid);
            match by_lid.and_then(|kind| Some((kind, step.fallback(key)?))) {
                Some((kind, path)) => {
                    let again = SmpRequest::again(kind, sent);
                    self.ask(key, self.m_key, again, &SmpRoute::Directed(path));
                }
                None => {
                    self.done += 1;
                    step.failed(key);
                }
            }
        }
    }

    /// Notes what a request has written of which an attempt may still be under way.
    fn mark_unconfirmed(&mut self, now: Time, key: Key, step: &dyn Step) {
        for (guid, written) in step.written(key) {
            self.unconfirmed.note(now, guid, written);
        }
    }

    /// Forgets the step's requests.
    pub(crate) fn abandon(&mut self, now: Time, step: &dyn Step) {
        for waiting in self.transactions.abandon() {
            self.mark_unconfirmed(now, waiting.key, step);
        }
    }

    /// Forgets everything in flight, and begins again with ids that were not used before.
    pub(crate) fn renew(&mut self, now: Time) {
        self.transactions.abandon();
        self.unconfirmed = Unconfirmed::default();
        // The nanosecond of an attachment is hardly ever the same twice.
        self.transactions.begin_ids_at(now.as_nanos());
        self.outbox.clear();
    }

    pub(crate) fn poll_output(&mut self) -> Option<AddressedMad> {
        self.outbox.pop_front()
    }

    pub(crate) fn next_timer(&self) -> Option<Timer<SmTimer>> {
        self.transactions.next_timer().map(|timer| timer.map(SmTimer::Smp))
    }

    pub(crate) fn stats(&self) -> &Stats {
        self.transactions.stats()
    }

    fn ask(&mut self, key: Key, m_key: MKey, request: SmpRequest, route: &SmpRoute) {
        let kind = request.kind();
        let mut request = request.by(route);
        Smp::m_key.set(&mut request.mad.0, m_key);
        kind.count_in(&mut self.counts);
        self.offer(Waiting { key, kind: Some(kind) }, request);
    }

    fn offer(&mut self, waiting: Waiting, request: AddressedMad) {
        self.asked += 1;
        // A step is asked only while there is room; what is asked again by another way had a place before.
        let refused = self.transactions.offer(waiting, request).is_err();
        debug_assert!(!refused, "the queue was full");
    }
}
