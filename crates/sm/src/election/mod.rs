//! Which of several subnet managers is in charge (IBA 14.4.1): what this one asks of the others, and what it answers.
//!
//! ```text
//!  SMInfo of a discovery ─▶ Found  ┐                ┌▶ sweep, configure, take over, resign (`mastership.rs`)
//!  answers to polls      ─▶ Polled ├─▶ state::next ─┼▶ Get(SMInfo) each poll
//!  Set(SMInfo)           ─▶ Control┘                └▶ Set(SMInfo): HANDOVER, ACKNOWLEDGE
//! ```
//!
//! One question is under way at a time. Its transaction ids end in 0xffff, which no request of a sweep has, as no window
//! is that wide.

mod state;

use std::collections::{BTreeMap, BTreeSet};

use weft_machine::Time;
use weft_mgmt::{DirectedPath, Request, SmpRoute};
use weft_wire::{
    AddressedMad, AttributeId, DirectedSmp, Guid, Lid, Mad, Method, SmInfo, SmKey, SmState, Smp,
    TransactionId, status,
};

pub(crate) use state::{Action, Control, Found, Handed, Polled, Rank, Signal, State, next};

use crate::{ElectionCounts, Options};

/// The lower half of the transaction ids.
const OWN_IDS: u64 = 0xffff;

/// The most managers that have asked and were not found which are remembered; more are not looked for.
const STRANGERS_MAX: usize = 64;

/// The most managers that refused to take over which are remembered.
const REFUSERS_MAX: usize = 64;

/// Another manager.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Peer {
    pub(crate) guid: Guid,
    /// The LID of its port when it was found; 0 is none.
    pub(crate) lid: Lid,
    pub(crate) path: DirectedPath,
    pub(crate) priority: u8,
    pub(crate) state: SmState,
}

impl Peer {
    pub(crate) fn rank(&self) -> Rank {
        Rank { priority: self.priority, guid: self.guid }
    }
}

/// What is asked of the manager that is polled or handed over to.
#[derive(Clone, Copy, Debug)]
struct Question {
    id: u64,
    request: AddressedMad,
    deadline: Time,
    /// More attempts that may follow.
    retries: u32,
}

/// This manager among others.
#[derive(Debug)]
pub(crate) struct Election {
    pub(crate) state: State,
    /// This manager's port; `None` while it has none.
    guid: Option<Guid>,
    /// Who was found by the last discovery, in order of GUIDs.
    pub(crate) peers: Vec<Peer>,
    /// Who is polled or handed over to.
    pub(crate) target: Option<Peer>,
    question: Option<Question>,
    next_poll: Option<Time>,
    /// Polls in a row that nobody answered.
    missed: u32,
    /// Who refused to take over or did not answer, and when to try again.
    refusers: BTreeMap<Guid, Time>,
    /// Managers that have asked and that no discovery has found.
    strangers: BTreeSet<Guid>,
    ids: u64,
    pub(crate) counts: ElectionCounts,
}

impl Election {
    pub(crate) fn new() -> Self {
        Self {
            state: State::default(),
            guid: None,
            peers: Vec::new(),
            target: None,
            question: None,
            next_poll: None,
            missed: 0,
            refusers: BTreeMap::new(),
            strangers: BTreeSet::new(),
            ids: 0,
            counts: ElectionCounts::default(),
        }
    }

    /// Begins again behind this port, or behind none.
    pub(crate) fn reset(&mut self, now: Time, guid: Option<Guid>) {
        let (counts, ids) = (self.counts, now.as_nanos() ^ self.ids);
        *self = Self { guid, counts, ids, ..Self::new() };
    }

    fn rank(&self, options: &Options) -> Rank {
        Rank { priority: options.priority & 0xf, guid: self.guid.unwrap_or(Guid(u64::MAX)) }
    }

    /// What a discovery says, and whom it is about.
    pub(crate) fn judge(&mut self, now: Time, peers: Vec<Peer>, options: &Options) -> (Found, Option<Peer>) {
        let own = self.rank(options);
        self.refusers.retain(|guid, until| *until > now && peers.iter().any(|peer| peer.guid == *guid));
        self.peers = peers;
        self.strangers.retain(|guid| self.peers.iter().all(|peer| peer.guid != *guid));
        let highest = |wanted: &dyn Fn(&Peer) -> bool| {
            let mut those = self.peers.iter().filter(|peer| wanted(peer));
            let first = those.next()?;
            Some(*those.fold(first, |best, peer| if peer.rank().beats(best.rank()) { peer } else { best }))
        };
        let in_state = |state: SmState| highest(&|peer| peer.state == state);
        let higher = |state: SmState| {
            highest(&|peer| peer.state == state && peer.rank().beats(own))
                .filter(|peer| !self.state.is_in_charge() || !self.refusers.contains_key(&peer.guid))
        };
        let kinds = [
            (Found::HigherMaster, higher(SmState::Master)),
            (Found::HigherStandby, higher(SmState::Standby).filter(|_| self.state.is_in_charge())),
            (Found::LowerMaster, in_state(SmState::Master)),
            (Found::HigherStandby, higher(SmState::Standby)),
            (Found::HigherDiscovering, higher(SmState::Discovering)),
        ];
        let first = kinds.into_iter().find_map(|(found, peer)| Some((found, Some(peer?))));
        first.unwrap_or((Found::Nobody, None))
    }

    /// Whether a manager that asks is one that no discovery has found, and that has not asked before.
    pub(crate) fn meets(&mut self, guid: Guid) -> bool {
        let is_known = guid == Guid(0) || self.peers.iter().any(|peer| peer.guid == guid);
        !is_known
            && self.state.is_in_charge()
            && self.strangers.len() < STRANGERS_MAX
            && self.strangers.insert(guid)
    }

    /// Whether a manager was found that is still looking around: it is to be looked at again.
    pub(crate) fn is_unsettled(&self) -> bool {
        self.peers.iter().any(|peer| peer.state == SmState::Discovering)
    }

    /// Begins to poll the target.
    pub(crate) fn begin_polls(&mut self, now: Time) {
        (self.question, self.missed, self.next_poll) = (None, 0, Some(now));
    }

    /// Asks nothing any more.
    pub(crate) fn stop(&mut self) {
        (self.question, self.next_poll) = (None, None);
    }

    /// What every message of this manager says of it. The key is for those that have shown it.
    pub(crate) fn info(&self, options: &Options, act_count: u32, sm_key: SmKey) -> SmInfo {
        let Rank { priority, guid } = self.rank(options);
        SmInfo { guid, sm_key, act_count, priority, sm_state: self.state.shown() }
    }

    /// The HANDOVER to the target.
    pub(crate) fn hand_over(&mut self, now: Time, options: &Options, act_count: u32) -> Option<AddressedMad> {
        self.counts.handovers_sent += 1;
        let request = self.control(Control::Handover, self.target?, options, act_count);
        Some(self.ask(now, request, options.timeout_ms, options.retries))
    }

    /// The ACKNOWLEDGE to a manager that has handed over; its answer is not waited for.
    pub(crate) fn acknowledge(
        &mut self,
        to: Guid,
        options: &Options,
        act_count: u32,
    ) -> Option<AddressedMad> {
        let known = self.target.filter(|peer| peer.guid == to);
        let peer = known.or_else(|| self.peers.iter().copied().find(|peer| peer.guid == to))?;
        let mut request = self.control(Control::Acknowledge, peer, options, act_count);
        Smp::transaction_id.set(&mut request.mad.0, TransactionId(self.next_id()));
        Some(request)
    }

    fn control(&self, control: Control, to: Peer, options: &Options, act_count: u32) -> AddressedMad {
        let info = self.info(options, act_count, options.sm_key).encode();
        let request = Request::set(AttributeId::SmInfo, control.modifier(), &info);
        let mut request = request.by(&SmpRoute::Directed(to.path));
        Smp::m_key.set(&mut request.mad.0, options.m_key);
        request
    }

    fn next_id(&mut self) -> u64 {
        self.ids = self.ids.wrapping_add(1) & 0x7fff;
        self.ids << 16 | OWN_IDS
    }

    fn ask(&mut self, now: Time, mut request: AddressedMad, timeout_ms: u64, retries: u32) -> AddressedMad {
        let id = self.next_id();
        Smp::transaction_id.set(&mut request.mad.0, TransactionId(id));
        let deadline = now + Time::from_millis(timeout_ms.max(1));
        self.question = Some(Question { id, request, deadline, retries });
        request
    }

    /// Lets time pass: what is to be sent now, and what has become of a question that nobody answered.
    pub(crate) fn expire(
        &mut self,
        now: Time,
        options: &Options,
        act_count: u32,
    ) -> (Option<AddressedMad>, Option<Signal>) {
        if let Some(question) = self.question.filter(|question| question.deadline <= now) {
            if question.retries > 0 {
                let deadline = now + Time::from_millis(options.timeout_ms.max(1));
                self.question = Some(Question { deadline, retries: question.retries - 1, ..question });
                return (Some(question.request), None);
            }
            self.question = None;
            if self.state == State::Yielding {
                self.refused(now, options);
                return (None, Some(Signal::Handed(Handed::Unheard)));
            }
            self.missed += 1;
            self.counts.polls_unanswered += 1;
            if self.missed > options.polling_retries {
                return (None, Some(Signal::Polled(Polled::Gone)));
            }
        }
        let due = self.next_poll.is_some_and(|at| at <= now) && self.question.is_none();
        let Some(target) = self.target.filter(|_| due && self.state.polls()) else { return (None, None) };
        self.next_poll = Some(now + options.polling());
        self.counts.polls += 1;
        let mut request = Request::get(AttributeId::SmInfo, 0).by(&SmpRoute::Directed(target.path));
        request.mad.set_smp_data(&self.info(options, act_count, SmKey::default()).encode());
        Smp::m_key.set(&mut request.mad.0, options.m_key);
        let timeout = options.timeout_ms.min(options.polling_ms);
        (Some(self.ask(now, request, timeout, 0)), None)
    }

    /// When it next wants to be woken.
    pub(crate) fn poll_timeout(&self) -> Option<Time> {
        match &self.question {
            Some(question) => Some(question.deadline),
            None => self.next_poll.filter(|_| self.state.polls()),
        }
    }

    /// Whether an answer is to a question of this kind, whoever asked it.
    pub(crate) fn is_for_election(answer: &Mad) -> bool {
        answer.attribute_id() == AttributeId::SmInfo && answer.transaction_id().0 & 0xffff == OWN_IDS
    }

    /// Takes the answer to a question. `None`: nobody waits for it.
    pub(crate) fn answered(&mut self, now: Time, answer: &Mad, options: &Options) -> Option<Signal> {
        let id = answer.transaction_id().0 & 0xffff_ffff;
        let asked = self.question.filter(|question| question.id == id)?;
        if answer.status() & status::BUSY != 0 {
            return None;
        }
        self.question = None;
        let target = self.target?;
        let fine = answer.status() == status::OK;
        if asked.request.mad.method() == Method::Set {
            if fine {
                return Some(Signal::Handed(Handed::Accepted));
            }
            self.refused(now, options);
            self.counts.handovers_refused += 1;
            let to_master = target.state == SmState::Master;
            return Some(Signal::Handed(if to_master { Handed::RefusedByMaster } else { Handed::Refused }));
        }
        self.missed = 0;
        let info = SmInfo::decode(answer.smp_attribute());
        let higher = Rank { priority: info.priority, guid: info.guid }.beats(self.rank(options));
        let is_waited_for = match info.sm_state {
            SmState::Master => true,
            SmState::Standby | SmState::Discovering => higher && self.state == State::Standby,
            _ => false,
        };
        let alive = fine && info.guid == target.guid && is_waited_for;
        if alive {
            self.target = Some(Peer { priority: info.priority, state: info.sm_state, ..target });
        }
        Some(Signal::Polled(if alive { Polled::Alive } else { Polled::Resigned }))
    }

    /// Does not try the target again for a while: a subnet must not go without a manager because of one that does not
    /// want to be it.
    fn refused(&mut self, now: Time, options: &Options) {
        if let Some(target) = self.target
            && self.refusers.len() < REFUSERS_MAX
        {
            self.refusers.insert(target.guid, now + options.polling());
        }
    }

    /// Whether a Set(SMInfo) may be obeyed: it shows our key. OpenSM shows none when it hands over to a manager that is no
    /// master, so the one that is polled as the master needs none for that.
    pub(crate) fn trusts(&self, control: Control, info: &SmInfo, options: &Options) -> bool {
        let polled = self.target.is_some_and(|peer| peer.guid == info.guid && peer.state == SmState::Master);
        info.sm_key == options.sm_key
            || info.sm_key == SmKey(0)
                && control == Control::Handover
                && self.state == State::Standby
                && polled
    }
}

/// The answer to another manager's request, by the way that it came.
pub(crate) fn answer_to(asked: &AddressedMad, info: &SmInfo, code: u16) -> AddressedMad {
    let mut mad: Mad = asked.mad;
    Smp::method.set(&mut mad.0, Method::GetResp);
    if mad.is_directed() {
        DirectedSmp::status.set(&mut mad.0, code);
        DirectedSmp::direction.set(&mut mad.0, true);
    } else {
        Smp::status.set(&mut mad.0, code);
    }
    mad.set_smp_data(&info.encode());
    AddressedMad::smp(asked.lid, mad)
}
