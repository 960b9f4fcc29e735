//! The manager's questions to the subnet manager, as MADs to subnet administration.
//!
//! ```text
//!  SmRequest ─▶ who is the subnet manager? ─▶ does it know VmMove? ─▶ SubnAdmSet(VmMove), or Get and GetTable for a plan ─▶ SmAnswer
//!                PortInfo of the own port      finding.rs, without     with the key
//!                       ▲                      the key                    │
//!                       └──── the answer is no one's that knows moves ◀────┘
//! ```
//!
//! The key is shown only to a subnet manager that knows the attribute; `finding.rs` says how that is found out. The finding holds until
//! the next hold or plan asks again, or the own port names another subnet manager. A question waits until someone can be asked, for as
//! long as [`ASK_FOR`], or as [`crate::Options::ask_for`] says. `word.rs` tells a new subnet manager of all addresses.

mod answer;
mod finding;
mod word;

use std::collections::{BTreeMap, VecDeque};

use weft_machine::Time;
use weft_mgmt::rmpp::{Inbox, InboxLimits};
use weft_mgmt::{Limits, Transactions, Window, subnet_administration};
use weft_wire::{
    AddressedMad, AttributeId, Lid, MKey, Method, MgmtClass, PortInfo, PortNum, RmppType, SaMad,
    ServiceLevel, SmKey, VmMove, sa_attribute,
};

use finding::Known;
use word::Word;

use crate::options::{ASK_FOR, BUSY_FOR};
use crate::places::Places;
use crate::sm::{MovePlan, SmAnswer, SmRequest, SmWish};

/// Questions that wait for an answer at most.
const WAITING_MAX: usize = 1024;
/// A table of writes is complete within this time, or does not come.
const TABLE_TIME: Time = Time::from_secs(10);
/// The most bytes of a table of writes.
const TABLE_BYTES: usize = 4 << 20;
/// How soon it is tried again to find out who the subnet manager is.
const AGAIN: Time = Time::from_millis(250);
/// How often the own port is asked who the subnet manager is, and that one whether it has heard of all addresses.
const WATCH: Time = Time::from_secs(1);

/// The subnet manager's address.
#[derive(Clone, Copy, Debug)]
struct SubnetManager {
    lid: Lid,
    sl: ServiceLevel,
}

/// What a MAD asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Key {
    OwnPort,
    /// The own port once more: whether it still names the same subnet manager.
    Watch,
    ClassPortInfo,
    Probe,
    /// Whether the subnet manager has heard of all addresses.
    Beat,
    /// A request of the manager, by its number.
    Ask(u64),
    /// The table of writes of a plan.
    Table(u64),
}

/// A request that is under way.
#[derive(Clone, Debug)]
struct Job {
    wish: SmWish,
    ask: VmMove,
    /// Until when it waits for someone who can be asked, and how far a busy one puts that off.
    until: Time,
    at_most: Time,
    /// The plan's counts, while its writes come.
    plan: Option<Box<MovePlan>>,
    /// The transaction of a table that has begun to come, and until when it may.
    table: Option<(u32, Time)>,
}

/// The client of subnet administration.
#[derive(Debug)]
pub struct SaClient {
    key: SmKey,
    m_key: MKey,
    port: Option<PortNum>,
    known: Known,
    /// Why no one could be asked last, in words.
    trouble: String,
    jobs: BTreeMap<u64, Job>,
    /// Jobs that wait until it is known who the subnet manager is.
    waiting: VecDeque<u64>,
    probes: Transactions<Key>,
    /// Questions for the attribute without the key: each is sent once, since silence is counted.
    singles: Transactions<Key>,
    asks: Transactions<Key>,
    inbox: Inbox,
    watch_at: Time,
    /// How long a question waits for someone who can be asked.
    ask_for: Time,
    word: Word,
    answers: VecDeque<(u64, SmAnswer)>,
}

impl SaClient {
    /// A client that shows these keys. `seed`: another one for each process, so that answers to an earlier one match nothing.
    pub fn new(key: SmKey, m_key: MKey, seed: u64) -> Self {
        let ms = Time::from_millis;
        let limits =
            |timeout, retries| Limits { window: Window::Fixed(64), timeout, retries, queue: WAITING_MAX };
        // A move waits for a heavy sweep. A question that is repeated gets the same answer.
        let [mut probes, mut singles, mut asks] =
            [(200, 3), (200, 0), (500, 39)].map(|(time, tries)| Transactions::new(limits(ms(time), tries)));
        probes.begin_ids_at(seed);
        singles.begin_ids_at(seed.rotate_left(8));
        asks.begin_ids_at(!seed);
        Self {
            key,
            m_key,
            port: None,
            known: Known::default(),
            trouble: String::new(),
            jobs: BTreeMap::new(),
            waiting: VecDeque::new(),
            probes,
            singles,
            asks,
            inbox: inbox(),
            watch_at: Time::ZERO,
            ask_for: ASK_FOR,
            word: Word::default(),
            answers: VecDeque::new(),
        }
    }

    /// The same, whose questions wait for as long as this for someone who can be asked.
    #[must_use]
    pub fn waits(self, ask_for: Time) -> Self {
        Self { ask_for, ..self }
    }

    /// There is a port to ask from, or there is none any more. What was asked is not answered any more.
    pub(crate) fn attach(&mut self, port: Option<PortNum>) {
        (self.port, self.known, self.word, self.watch_at) =
            (port, Known::Unknown, Word::default(), Time::ZERO);
        self.probes.abandon();
        self.singles.abandon();
        self.asks.abandon();
        self.inbox = inbox();
        let open: Vec<u64> = self.jobs.keys().copied().collect();
        open.into_iter().for_each(|number| self.answer(number, SmAnswer::Timeout));
    }

    /// The subnet manager may be another one.
    pub(crate) fn forget(&mut self) {
        if !matches!(self.known, Known::Finding | Known::Asking(_) | Known::Again(_)) {
            self.known = Known::Unknown;
        }
    }

    /// Takes a question. It is answered once.
    pub(crate) fn ask(&mut self, now: Time, request: &SmRequest, places: &Places) {
        let number = request.number;
        if self.jobs.len() >= WAITING_MAX {
            return self.answers.push_back((number, SmAnswer::Timeout));
        }
        let Some(ask) = answer::vm_move(request, places) else {
            let words = "the move is of no address that the VM manager knows".to_owned();
            return self.answers.push_back((number, SmAnswer::Refused(words)));
        };
        if self.port.is_none() {
            return self.answers.push_back((number, SmAnswer::Timeout));
        }
        let begins = matches!(request.wish, SmWish::Hold | SmWish::Plan);
        self.open(now, number, request.wish, ask);
        if begins {
            self.forget();
        }
        self.waiting.push_back(number);
        self.go_on(now);
    }

    fn open(&mut self, now: Time, number: u64, wish: SmWish, ask: VmMove) {
        let until = now + self.ask_for;
        let job = Job { wish, ask, until, at_most: until + BUSY_FOR, plan: None, table: None };
        self.jobs.insert(number, job);
    }

    /// Answers to the manager's questions.
    pub(crate) fn poll_answer(&mut self) -> Option<(u64, SmAnswer)> {
        self.answers.pop_front()
    }

    fn answer(&mut self, number: u64, answer: SmAnswer) {
        self.waiting.retain(|waiting| *waiting != number);
        let Some(job) = self.jobs.remove(&number) else { return };
        if job.wish == SmWish::Address {
            // Nothing but another announcement follows from it.
            self.word.answered(&answer);
        } else {
            self.answers.push_back((number, answer));
        }
    }

    /// Sends what waits, as far as it is known to whom.
    fn go_on(&mut self, now: Time) {
        match self.known {
            Known::Unknown if !self.waiting.is_empty() => self.find(),
            Known::Unknown | Known::Finding | Known::Asking(_) | Known::Again(_) => {}
            Known::MovesNot(_) => {
                for number in std::mem::take(&mut self.waiting) {
                    self.answer(number, SmAnswer::Unknown);
                }
            }
            Known::Moves(sm) => {
                for number in std::mem::take(&mut self.waiting) {
                    self.send(number, sm);
                }
                self.announce(now, sm);
            }
        }
    }

    /// Another subnet manager is to be asked what was asked, or the same one when it can answer.
    fn ask_all_again(&mut self) {
        self.asks.abandon();
        self.inbox = inbox();
        self.waiting = self.jobs.keys().copied().collect();
        for job in self.jobs.values_mut() {
            (job.plan, job.table) = (None, None);
        }
    }

    fn send(&mut self, number: u64, sm: SubnetManager) {
        let Some(job) = self.jobs.get(&number) else { return };
        let method = match job.wish {
            SmWish::Silent => return self.ask_for_table(number, sm, job.ask),
            SmWish::Plan => Method::Get,
            _ => Method::Set,
        };
        let mad = self.keyed(sm, method, sa_attribute::VM_MOVE, &job.ask);
        if self.asks.offer(Key::Ask(number), mad).is_err() {
            self.answer(number, SmAnswer::Timeout);
        }
    }

    fn ask_for_table(&mut self, number: u64, sm: SubnetManager, ask: VmMove) {
        let mad = self.keyed(sm, Method::GetTable, sa_attribute::VM_MOVE_WRITE, &ask);
        if self.asks.offer(Key::Table(number), mad).is_err() {
            self.answer(number, SmAnswer::Timeout);
        }
    }

    fn keyed(&self, sm: SubnetManager, method: Method, attribute: AttributeId, ask: &VmMove) -> AddressedMad {
        let mut mad = subnet_administration(sm.lid, sm.sl, method, attribute, 0, &ask.encode());
        SaMad::sm_key.set(&mut mad.mad.0, self.key);
        mad
    }

    /// Takes a MAD.
    pub(crate) fn receive(&mut self, now: Time, mad: &AddressedMad) {
        let is_table = mad.mad.class() == MgmtClass::SubnAdm
            && mad.mad.attribute_id() == sa_attribute::VM_MOVE_WRITE
            && mad.mad.is_rmpp_active();
        if is_table && mad.mad.rmpp().kind == RmppType::Data {
            return self.receive_table(now, mad);
        }
        self.note_busy(now, mad);
        let done = [&mut self.probes, &mut self.singles, &mut self.asks]
            .into_iter()
            .find_map(|requests| requests.handle_response(now, mad));
        let Some(done) = done else { return };
        match done.key {
            Key::OwnPort => self.found(now, &PortInfo::decode(done.mad.mad.smp_data())),
            Key::Watch => self.watched(&PortInfo::decode(done.mad.mad.smp_data())),
            Key::ClassPortInfo => self.served(now, &done.mad),
            Key::Probe => self.probed(now, Some(&done.mad)),
            Key::Beat => self.beat_answered(&done.mad),
            Key::Ask(number) => self.answered(now, number, &done.mad),
            // A table that is refused, or has no segments.
            Key::Table(number) => match answer::refused(&done.mad) {
                Some(answer) => self.answer(number, answer),
                None => self.not_answered(now, number, &done.mad),
            },
        }
        self.go_on(now);
    }

    fn answered(&mut self, now: Time, number: u64, mad: &AddressedMad) {
        let Some(job) = self.jobs.get_mut(&number) else { return };
        let Some(answer) = answer::read(mad) else { return self.not_answered(now, number, mad) };
        let SmAnswer::Plan(plan) = answer else { return self.answer(number, answer) };
        job.plan = Some(plan);
        let ask = job.ask;
        let Known::Moves(sm) = self.known else { return self.answer(number, SmAnswer::Timeout) };
        self.ask_for_table(number, sm, ask);
    }

    /// The port answers for subnet administration that it has not, or not any more: the question waits for who takes its place.
    fn not_answered(&mut self, now: Time, number: u64, mad: &AddressedMad) {
        self.waiting.push_back(number);
        self.no_one(now, finding::without(mad));
    }

    /// A segment of a table of writes.
    fn receive_table(&mut self, now: Time, mad: &AddressedMad) {
        // The upper half is the agent's.
        let id = mad.mad.transaction_id().0 as u32;
        if let Some(done) = self.asks.handle_response(now, mad)
            && let Key::Table(number) = done.key
            && let Some(job) = self.jobs.get_mut(&number)
        {
            job.table = Some((id, now + TABLE_TIME));
        }
        let open = |(_, job): &(&u64, &Job)| job.table.is_some_and(|(own, _)| own == id);
        let Some(number) = self.jobs.iter().find(open).map(|(number, _)| *number) else {
            return self.inbox.turn_away(mad);
        };
        let Some(whole) = self.inbox.handle(now, mad) else { return };
        let plan = self.jobs.get_mut(&number).and_then(|job| job.plan.take()).unwrap_or_default();
        self.answer(number, answer::with_writes(*plan, &whole.data));
    }

    /// Lets time pass.
    pub(crate) fn expire(&mut self, now: Time) {
        self.inbox.handle_timeout(now);
        self.expire_probes(now);
        while let Some(failed) = self.asks.poll_failed(now) {
            if let Key::Ask(number) | Key::Table(number) = failed.key {
                // The next one asks who the subnet manager is.
                self.forget();
                self.answer(number, SmAnswer::Timeout);
            }
        }
        let late = self.jobs.iter().filter(|(_, job)| job.table.is_some_and(|(_, until)| until <= now));
        let late: Vec<u64> = late.map(|(number, _)| *number).collect();
        late.into_iter().for_each(|number| self.answer(number, SmAnswer::Timeout));
        self.give_up_waiting(now);
        if matches!(self.known, Known::Again(at) if at <= now) {
            self.known = Known::Unknown;
        }
        if self.port.is_some() && self.watch_at <= now {
            self.watch_at = now + WATCH;
            self.watch();
        }
        self.go_on(now);
    }

    /// Questions that no one could be asked for too long.
    fn give_up_waiting(&mut self, now: Time) {
        let is_over = |number: &&u64| self.jobs.get(number).is_some_and(|job| job.until <= now);
        let over: Vec<u64> = self.waiting.iter().filter(is_over).copied().collect();
        for number in over {
            self.answer(number, SmAnswer::Unready(self.trouble.clone()));
        }
    }

    /// What goes onto the wire now.
    pub(crate) fn poll_transmit(&mut self, now: Time) -> Option<AddressedMad> {
        let requests = [&mut self.probes, &mut self.singles, &mut self.asks];
        let mad = requests.into_iter().find_map(|requests| requests.poll_transmit(now));
        mad.or_else(|| self.inbox.poll_transmit())
    }

    /// When [`SaClient::expire`] has something to do.
    pub(crate) fn next_timer(&self) -> Option<Time> {
        let table = self.jobs.values().filter_map(|job| job.table).map(|(_, until)| until).min();
        let waiting = self.waiting.iter().filter_map(|number| self.jobs.get(number));
        let waiting = waiting.map(|job| job.until).min();
        let again = match self.known {
            Known::Again(at) => Some(at),
            _ => None,
        };
        let watch = self.port.map(|_| self.watch_at);
        let requests = [&self.probes, &self.singles, &self.asks].map(Transactions::poll_timeout);
        let inbox = self.inbox.next_timer().map(|timer| timer.at);
        requests.into_iter().chain([table, waiting, again, watch, inbox]).flatten().min()
    }
}

fn inbox() -> Inbox {
    Inbox::new(InboxLimits {
        transfers: 16,
        lingering: 16,
        message_bytes: TABLE_BYTES,
        ..InboxLimits::default()
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "in a test a panic is the report")]
mod tests;
