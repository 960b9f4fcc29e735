//! The manager's questions to the subnet manager, as MADs to subnet administration.
//!
//! ```text
//!  SmRequest ─▶ who is the subnet manager? ─▶ does it know VmMove? ─▶ SubnAdmSet(VmMove), or Get and GetTable for a plan ─▶ SmAnswer
//!                PortInfo of the own port      Get without a key        with the key
//! ```
//!
//! The key is shown only to a subnet manager that knows the attribute. One that refuses the question without a key knows it. One
//! that has another status for it, or says nothing while it answers ClassPortInfo, does not, like OpenSM, which drops what
//! it does not know. The finding holds until the next hold or plan asks again.

mod answer;

use std::collections::{BTreeMap, VecDeque};

use weft_machine::Time;
use weft_mgmt::rmpp::{Inbox, InboxLimits};
use weft_mgmt::{DirectedPath, Limits, Request, SmpRoute, Transactions, Window, subnet_administration};
use weft_wire::{
    AddressedMad, AttributeId, Lid, MKey, Method, MgmtClass, PortInfo, PortNum, RmppType, SaMad,
    ServiceLevel, SmKey, Smp, VmMove, sa_attribute,
};

use crate::places::Places;
use crate::sm::{MovePlan, SmAnswer, SmRequest, SmWish};

/// Questions that wait for an answer at most.
const WAITING_MAX: usize = 1024;
/// A table of writes is complete within this time, or does not come.
const TABLE_TIME: Time = Time::from_secs(10);
/// The most bytes of a table of writes.
const TABLE_BYTES: usize = 4 << 20;

/// The subnet manager's address.
#[derive(Clone, Copy, Debug)]
struct SubnetManager {
    lid: Lid,
    sl: ServiceLevel,
}

/// Whether the subnet manager knows moves.
#[derive(Clone, Copy, Debug, Default)]
enum Known {
    /// Nothing.
    #[default]
    Unknown,
    /// The own port is asked for its LID.
    Finding,
    /// It is asked whether it knows the attribute; whether it has answered otherwise.
    Asking(SubnetManager, bool),
    /// It knows the attribute.
    Moves(SubnetManager),
    /// It does not.
    MovesNot,
}

/// What a MAD asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Key {
    OwnPort,
    ClassPortInfo,
    Probe,
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
    jobs: BTreeMap<u64, Job>,
    /// Jobs that wait until it is known who the subnet manager is.
    waiting: VecDeque<u64>,
    probes: Transactions<Key>,
    asks: Transactions<Key>,
    inbox: Inbox,
    answers: VecDeque<(u64, SmAnswer)>,
}

impl SaClient {
    /// A client that shows these keys. `seed`: another one for each process, so that answers to an earlier one match nothing.
    pub fn new((key, m_key): (SmKey, MKey), seed: u64) -> Self {
        let ms = Time::from_millis;
        let limits =
            |timeout, retries| Limits { window: Window::Fixed(64), timeout, retries, queue: WAITING_MAX };
        // A move waits for a heavy sweep. A question that is repeated gets the same answer.
        let (mut probes, mut asks) =
            (Transactions::new(limits(ms(200), 3)), Transactions::new(limits(ms(500), 39)));
        probes.begin_ids_at(seed);
        asks.begin_ids_at(!seed);
        Self {
            key,
            m_key,
            port: None,
            known: Known::default(),
            jobs: BTreeMap::new(),
            waiting: VecDeque::new(),
            probes,
            asks,
            inbox: inbox(),
            answers: VecDeque::new(),
        }
    }

    /// There is a port to ask from, or there is none any more. What was asked is not answered any more.
    pub(crate) fn attach(&mut self, port: Option<PortNum>) {
        (self.port, self.known) = (port, Known::Unknown);
        self.probes.abandon();
        self.asks.abandon();
        self.inbox = inbox();
        let open: Vec<u64> = self.jobs.keys().copied().collect();
        open.into_iter().for_each(|number| self.answer(number, SmAnswer::Timeout));
    }

    /// The subnet manager may be another one.
    pub(crate) fn forget(&mut self) {
        if !matches!(self.known, Known::Finding | Known::Asking(..)) {
            self.known = Known::Unknown;
        }
    }

    /// Takes a question. It is answered once.
    pub(crate) fn ask(&mut self, request: &SmRequest, places: &Places) {
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
        self.jobs.insert(number, Job { wish: request.wish, ask, plan: None, table: None });
        if begins {
            self.forget();
        }
        self.waiting.push_back(number);
        self.go_on();
    }

    /// Answers to the manager's questions.
    pub(crate) fn poll_answer(&mut self) -> Option<(u64, SmAnswer)> {
        self.answers.pop_front()
    }

    fn answer(&mut self, number: u64, answer: SmAnswer) {
        self.waiting.retain(|waiting| *waiting != number);
        if self.jobs.remove(&number).is_some() {
            self.answers.push_back((number, answer));
        }
    }

    /// Sends what waits, as far as it is known to whom.
    fn go_on(&mut self) {
        match self.known {
            Known::Unknown if !self.waiting.is_empty() => self.find(),
            Known::Unknown | Known::Finding | Known::Asking(..) => {}
            Known::MovesNot => {
                for number in std::mem::take(&mut self.waiting) {
                    self.answer(number, SmAnswer::Unknown);
                }
            }
            Known::Moves(sm) => {
                for number in std::mem::take(&mut self.waiting) {
                    self.send(number, sm);
                }
            }
        }
    }

    fn find(&mut self) {
        let Some(port) = self.port else { return };
        let route = SmpRoute::Directed(DirectedPath::HERE);
        let mut request = Request::get(AttributeId::PortInfo, u32::from(port.0)).by(&route);
        Smp::m_key.set(&mut request.mad.0, self.m_key);
        self.known = Known::Finding;
        if self.probes.offer(Key::OwnPort, request).is_err() {
            self.no_one();
        }
    }

    /// The own port says who the subnet manager is.
    fn found(&mut self, info: &PortInfo) {
        let sm = SubnetManager { lid: info.master_sm_lid, sl: info.master_sm_sl };
        if !sm.lid.is_unicast() {
            return self.no_one();
        }
        self.known = Known::Asking(sm, false);
        let get = |attribute| subnet_administration(sm.lid, sm.sl, Method::Get, attribute, 0, &[]);
        let both = [(Key::ClassPortInfo, AttributeId::ClassPortInfo), (Key::Probe, sa_attribute::VM_MOVE)];
        for (key, attribute) in both {
            if self.probes.offer(key, get(attribute)).is_err() {
                self.no_one();
            }
        }
    }

    /// No subnet manager answers.
    fn no_one(&mut self) {
        self.known = Known::Unknown;
        for number in std::mem::take(&mut self.waiting) {
            self.answer(number, SmAnswer::Timeout);
        }
    }

    fn send(&mut self, number: u64, sm: SubnetManager) {
        let Some(job) = self.jobs.get(&number) else { return };
        let method = if job.wish == SmWish::Plan { Method::Get } else { Method::Set };
        let mad = self.keyed(sm, method, sa_attribute::VM_MOVE, &job.ask);
        if self.asks.offer(Key::Ask(number), mad).is_err() {
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
        let done = match self.probes.handle_response(now, mad) {
            Some(done) => Some(done),
            None => self.asks.handle_response(now, mad),
        };
        let Some(done) = done else { return };
        match done.key {
            Key::OwnPort => self.found(&PortInfo::decode(done.mad.mad.smp_data())),
            Key::ClassPortInfo => {
                if let Known::Asking(sm, _) = self.known {
                    self.known = Known::Asking(sm, true);
                }
            }
            Key::Probe => self.probed(Some(&done.mad)),
            Key::Ask(number) => self.answered(number, &done.mad),
            // A table that is refused, or has no segments.
            Key::Table(number) => self.answer(number, answer::refused(&done.mad)),
        }
        self.go_on();
    }

    /// Whether the subnet manager knows the attribute; without an answer it does not, if it answers something else.
    fn probed(&mut self, mad: Option<&AddressedMad>) {
        let Known::Asking(sm, answers) = self.known else { return };
        match mad {
            Some(mad) if answer::knows(mad) => self.known = Known::Moves(sm),
            Some(_) => self.known = Known::MovesNot,
            None if answers => self.known = Known::MovesNot,
            None => self.no_one(),
        }
    }

    fn answered(&mut self, number: u64, mad: &AddressedMad) {
        let Some(job) = self.jobs.get_mut(&number) else { return };
        let answer = answer::read(mad);
        let SmAnswer::Plan(plan) = answer else { return self.answer(number, answer) };
        job.plan = Some(plan);
        let ask = job.ask;
        let Known::Moves(sm) = self.known else { return self.answer(number, SmAnswer::Timeout) };
        let mad = self.keyed(sm, Method::GetTable, sa_attribute::VM_MOVE_WRITE, &ask);
        if self.asks.offer(Key::Table(number), mad).is_err() {
            self.answer(number, SmAnswer::Timeout);
        }
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
        while let Some(failed) = self.probes.poll_failed(now) {
            match failed.key {
                Key::Probe => self.probed(None),
                Key::OwnPort => self.no_one(),
                _ => {}
            }
        }
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
        self.go_on();
    }

    /// What goes onto the wire now.
    pub(crate) fn poll_transmit(&mut self, now: Time) -> Option<AddressedMad> {
        let probe = self.probes.poll_transmit(now);
        probe.or_else(|| self.asks.poll_transmit(now)).or_else(|| self.inbox.poll_transmit())
    }

    /// When [`SaClient::expire`] has something to do.
    pub(crate) fn next_timer(&self) -> Option<Time> {
        let table = self.jobs.values().filter_map(|job| job.table).map(|(_, until)| until).min();
        let timers = [self.probes.poll_timeout(), self.asks.poll_timeout(), table];
        let inbox = self.inbox.next_timer().map(|timer| timer.at);
        timers.into_iter().chain([inbox]).flatten().min()
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
