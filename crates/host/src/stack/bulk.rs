//! Path records in bulk: one question for all paths from this port, answered by a table in segments (IBA 15.2.5.16, 13.6).
//!
//! ```text
//!            want            GetTable(SGID, NumbPath)            first segment
//!   Idle ─────────▶ Wanted ───────────────────────────▶ Asked ─────────────────▶ Arriving ──▶ whole: Idle
//!                     ▲ after a pause                     │ busy, silent            │ aborted, or it stands still
//!                     └───────────────────────────────────┴─────────────────────────┘
//! ```
//!
//! The answer is of one sweep: the manager makes all of it when it is asked. A notice that comes meanwhile makes the host ask again when
//! the answer has come, and discards that one. The pause after BUSY or an end before its time grows, and differs between hosts,
//! so that hundreds that were notified at once do not come back at once (paper 004, lines 985–993, has no rule for that).

use serde::{Deserialize, Serialize};
use weft_machine::{Random, Time, Timer};
use weft_mgmt::rmpp::{Inbox, InboxLimits};
use weft_mgmt::{RequestTimer, component_mask, records, subnet_administration};
use weft_wire::{
    AddressedMad, Gid, Method, PathRecord, PortFacts, RmppType, SaRecord, ServiceLevel, Smp, TransactionId,
    status,
};

/// Ids of other questions are 2^16 times a number, and less than their window; these are in between.
const IDS: u32 = 1 << 16;
const ID: u32 = IDS - 1;
/// Bytes of the longest answer: a path to each unicast LID.
const BYTES_MAX: usize = 0xc000 * 64;
/// The first pause, in parts of the timeout of a question, and how often it doubles.
const PAUSE_PART: u64 = 8;
const DOUBLINGS_MAX: u32 = 5;
/// An answer that brings nothing for this many timeouts has ended.
const STILL_TIMEOUTS: u64 = 5;
/// Questions in a row that no one answers, until the paths count as failed for a while.
const SILENT_MAX: u32 = 5;

/// What a host has counted of questions in bulk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BulkCounts {
    /// Questions, repetitions included.
    pub asked: u64,
    /// Answers that came whole, those that were discarded included.
    pub answered: u64,
    /// Of these, discarded because another notice had come.
    pub discarded: u64,
    /// Segments taken.
    pub segments: u64,
    /// Acknowledgements sent.
    pub acks: u64,
    /// How often the manager was busy.
    pub busy: u64,
    /// Answers that ended before they were whole.
    pub broken: u64,
    /// Questions refused, or not answered.
    pub failed: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    Idle,
    /// To be asked at this time.
    Wanted(Time),
    Asked {
        until: Time,
        again: bool,
    },
    /// Segments are coming; `until` the next one must have.
    Arriving {
        until: Time,
        again: bool,
    },
}

/// What a MAD has brought.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Heard {
    /// It belongs to another question.
    Other,
    /// Nothing yet.
    Nothing,
    /// All records.
    Whole(Vec<PathRecord>),
    /// The manager has none for this port, with this status.
    Refused(u16),
}

/// The question.
#[derive(Debug)]
pub(super) struct Bulk {
    state: State,
    turn: u32,
    /// Whether the next question is the repetition of the last one.
    repeats: bool,
    tries: u32,
    silent: u32,
    /// What pauses differ by between hosts.
    salt: u64,
    timeout: Time,
    /// To make the question.
    ask: Time,
    inbox: Inbox,
    pub(super) counts: BulkCounts,
}

impl Bulk {
    pub(super) fn new(timeout: Time, ask: Time) -> Self {
        let spans = |count: u64| Time::from_nanos(timeout.as_nanos().saturating_mul(count));
        let inbox = InboxLimits {
            // What has stood still is forgotten when its time is up; each attempt has another id.
            transfers: 16,
            lingering: 1,
            message_bytes: BYTES_MAX + 56,
            bytes: 4 * BYTES_MAX,
            total: spans(20),
            linger: spans(10),
            ..InboxLimits::default()
        };
        Self {
            state: State::Idle,
            turn: 0,
            repeats: false,
            tries: 0,
            silent: 0,
            salt: 0,
            timeout,
            ask,
            inbox: Inbox::new(inbox),
            counts: BulkCounts::default(),
        }
    }

    /// All paths are to be asked for. What is on its way is of before, and does not count.
    pub(super) fn want(&mut self, now: Time) {
        match &mut self.state {
            State::Idle => {
                (self.tries, self.silent) = (0, 0);
                self.state = State::Wanted(now + self.ask);
            }
            // The pause is kept: others were notified at the same moment.
            State::Wanted(_) => {}
            State::Asked { again, .. } | State::Arriving { again, .. } => *again = true,
        }
    }

    /// Whether nothing is asked, and nothing to be done.
    pub(super) fn is_idle(&self) -> bool {
        self.state == State::Idle && self.inbox.next_timer().is_none()
    }

    /// Whether an answer is to come.
    pub(super) fn is_asking(&self) -> bool {
        self.state != State::Idle
    }

    /// Forgets the question. `seed`: ids begin at another number.
    pub(super) fn abandon(&mut self, seed: u64) {
        let (counts, timeout, ask) = (self.counts, self.timeout, self.ask);
        *self = Self { counts, turn: seed as u32, ..Self::new(timeout, ask) };
    }

    fn id(&self) -> u32 {
        (self.turn & 0x7fff) * IDS + ID
    }

    /// What goes onto the wire now.
    pub(super) fn poll_transmit(
        &mut self,
        now: Time,
        facts: &PortFacts,
        sl: ServiceLevel,
    ) -> Option<AddressedMad> {
        if let Some(ack) = self.inbox.poll_transmit() {
            self.counts.acks += u64::from(ack.mad.rmpp().kind == RmppType::Ack);
            return Some(ack);
        }
        if !matches!(self.state, State::Wanted(at) if at <= now) {
            return None;
        }
        if !std::mem::take(&mut self.repeats) {
            self.turn = self.turn.wrapping_add(1);
        }
        self.salt = facts.guid.0;
        self.state = State::Asked { until: now + self.timeout, again: false };
        self.counts.asked += 1;
        let sgid = Gid { prefix: facts.gid_prefix, guid: facts.guid };
        let record = PathRecord { sgid, reversible: true, numb_path: 1, ..PathRecord::default() };
        let mask = component_mask::<PathRecord>(&["sgid", "reversible", "numb_path"]);
        let method = Method::GetTable;
        let mut asked =
            subnet_administration(facts.sm_lid, sl, method, PathRecord::ATTRIBUTE, mask, &record.encode());
        Smp::transaction_id.set(&mut asked.mad.0, TransactionId(self.id().into()));
        Some(asked)
    }

    /// Takes a response.
    pub(super) fn receive(&mut self, now: Time, mad: &AddressedMad) -> Heard {
        let head = mad.mad.header();
        // The upper half of an id is the agent's.
        let id = head.transaction_id.0 as u32;
        if id % IDS != ID || head.attribute_id != PathRecord::ATTRIBUTE || head.method != Method::GetTableResp
        {
            return Heard::Other;
        }
        let rmpp = mad.mad.rmpp();
        let is_data = rmpp.active && rmpp.kind == RmppType::Data;
        if !matches!(self.state, State::Asked { .. } | State::Arriving { .. }) || id != self.id() {
            match self.is_known(mad) {
                // The end of the answer that came last has not heard that it did.
                true => drop(self.inbox.handle(now, mad)),
                false if is_data => self.inbox.turn_away(mad),
                false => {}
            }
            return Heard::Nothing;
        }
        if mad.mad.status() & status::BUSY != 0 {
            self.counts.busy += 1;
            self.silent = 0;
            self.pause(now);
            return Heard::Nothing;
        }
        if mad.mad.status() != 0 || !rmpp.active {
            return self.refused(now, mad.mad.status());
        }
        if !is_data {
            self.inbox.handle(now, mad);
            self.counts.broken += 1;
            self.pause(now);
            return Heard::Nothing;
        }
        self.segment(now, mad)
    }

    fn is_known(&self, mad: &AddressedMad) -> bool {
        self.inbox.contains(&weft_mgmt::rmpp::TransferId::of_message(mad))
    }

    fn segment(&mut self, now: Time, mad: &AddressedMad) -> Heard {
        let still = Time::from_nanos(self.timeout.as_nanos().saturating_mul(STILL_TIMEOUTS));
        let again = self.is_again();
        let taken = self.inbox.stats().segments;
        self.state = State::Arriving { until: now + still, again };
        self.silent = 0;
        let whole = self.inbox.handle(now, mad);
        self.counts.segments += self.inbox.stats().segments - taken;
        match whole {
            Some(whole) => {
                self.counts.answered += 1;
                self.tries = 0;
                if again {
                    self.counts.discarded += 1;
                    self.state = State::Wanted(now + self.ask);
                    return Heard::Nothing;
                }
                self.state = State::Idle;
                Heard::Whole(records(&whole.data).collect())
            }
            // It broke the protocol, or is too long: the sender hears it.
            None if !self.is_known(mad) => {
                self.counts.broken += 1;
                self.pause(now);
                Heard::Nothing
            }
            None => Heard::Nothing,
        }
    }

    fn is_again(&self) -> bool {
        matches!(self.state, State::Asked { again: true, .. } | State::Arriving { again: true, .. })
    }

    fn refused(&mut self, now: Time, status: u16) -> Heard {
        self.counts.failed += 1;
        if self.is_again() {
            self.state = State::Wanted(now + self.ask);
            return Heard::Nothing;
        }
        self.state = State::Idle;
        Heard::Refused(status)
    }

    /// Asks again after a while: half of the span at least, and as much again by chance of the port.
    fn pause(&mut self, now: Time) {
        let span = (self.timeout.as_nanos() / PAUSE_PART) << self.tries.min(DOUBLINGS_MAX);
        let seed = self.salt ^ u64::from(self.turn) << 32 ^ u64::from(self.tries);
        let by_chance = Random::new(seed).draw() % span.max(1);
        self.tries += 1;
        self.state = State::Wanted(now + Time::from_nanos(span / 2 + by_chance));
    }

    /// Lets time pass. True: no one answers, and the paths are to count as failed.
    pub(super) fn expire(&mut self, now: Time) -> bool {
        self.inbox.handle_timeout(now);
        match self.state {
            State::Asked { until, .. } if until <= now => {
                (self.silent, self.repeats) = (self.silent + 1, true);
                if self.silent > SILENT_MAX {
                    self.counts.failed += 1;
                    (self.state, self.repeats) = (State::Idle, false);
                    return true;
                }
                self.state = State::Wanted(now);
            }
            State::Arriving { until, .. } if until <= now => {
                self.counts.broken += 1;
                self.pause(now);
            }
            _ => {}
        }
        false
    }

    /// When it wants to be woken.
    pub(super) fn next_timer(&self) -> Option<Timer<RequestTimer>> {
        let own = match self.state {
            State::Idle => None,
            State::Wanted(at) => Some(at),
            State::Asked { until, .. } | State::Arriving { until, .. } => Some(until),
        };
        let inbox = self.inbox.next_timer().map(|timer| timer.at);
        let at = [own, inbox].into_iter().flatten().min();
        Timer::new(at, RequestTimer::Timeout)
    }
}
