//! Election of one of several subnet managers (IBA 14.4.1): this one's requests to the others, and its answers.
//!
//! ```text
//!  SMInfo of a discovery ─▶ Found  ┐                ┌▶ sweep, configure, take over, resign (`mastership.rs`)
//!  answers to polls      ─▶ Polled ├─▶ state::next ─┼▶ Get(SMInfo) each poll
//!  Set(SMInfo)           ─▶ Control┘                └▶ Set(SMInfo): HANDOVER, ACKNOWLEDGE
//!  the operator ───────────────────────────────────────▶ Set(SMInfo): DISABLE, STANDBY, DISCOVER
//! ```
//!
//! One question and one instruction are under way at a time. Their transaction ids end in 0xffff, which no request of a
//! sweep has in a window of fewer than 65536.

mod instruct;
mod state;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use weft_machine::{Time, Timer};
use weft_mgmt::{DirectedPath, Request, SmpRoute};
use weft_wire::{
    AddressedMad, AttributeId, DirectedSmp, Guid, Lid, MKey, Mad, Method, SmInfo, SmKey, SmState, Smp,
    TransactionId, status,
};

pub(crate) use instruct::Outcome;
pub(crate) use state::{Action, Control, Found, Handed, Polled, Rank, Signal, State, next};

use crate::{ElectionCounts, Options, SmTimer};

/// The lower half of the transaction ids.
const OWN_IDS: u64 = 0xffff;

/// The most managers that have asked and were not found which are remembered; more are not looked for.
const STRANGERS_MAX: usize = 64;

/// How soon to look again at a manager that was still looking around.
const LOOK_AGAIN: Time = Time::from_secs(1);

/// The most managers that refused to take over which are remembered.
const REFUSERS_MAX: usize = 64;

/// The number of refusals after which the time until a manager is asked again stops growing: 64 polling intervals.
const REFUSALS_MAX: u32 = 6;

/// Another manager.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Peer {
    pub(crate) guid: Guid,
    /// The LID of its port when it was found; 0 is none.
    pub(crate) lid: Lid,
    pub(crate) path: DirectedPath,
    pub(crate) priority: u8,
    pub(crate) state: SmState,
    /// The key that it has shown; 0 where it hides it.
    pub(crate) sm_key: SmKey,
}

impl Peer {
    /// Whether it shows this manager's SM_Key. No mastership is handed to one that does not, nor waited for.
    pub(crate) fn is_trusted(&self, options: &Options) -> bool {
        options.keys.sm_key == SmKey(0) || self.sm_key == options.keys.sm_key
    }

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

impl Question {
    /// The same once more, if it may be asked again.
    fn again(self, now: Time, options: &Options) -> Option<Self> {
        let deadline = now + Time::from_millis(options.smps.timeout_ms.max(1));
        (self.retries > 0).then(|| Self { deadline, retries: self.retries - 1, ..self })
    }
}

/// What a manager that did not take over is spared.
#[derive(Clone, Copy, Debug, Default)]
struct Refusal {
    /// Until then it is not asked again.
    until: Time,
    /// How often it has refused.
    times: u32,
}

/// This manager among others.
#[derive(Debug, Default)]
pub(crate) struct Election {
    pub(crate) state: State,
    /// This manager's port; `None` while it has none.
    guid: Option<Guid>,
    /// The managers that the last discovery found, in order of GUIDs, as they were last heard of.
    pub(crate) peers: Vec<Peer>,
    /// The one that is polled or handed over to.
    pub(crate) target: Option<Peer>,
    question: Option<Question>,
    /// The operator's instruction for another manager.
    pending: Option<instruct::Pending>,
    next_poll: Option<Time>,
    /// Polls in a row that no master answered.
    missed: u32,
    /// A manager was found that was still looking around.
    pub(crate) look_again: bool,
    /// Looks in a row at managers that were looking around themselves.
    looks: u32,
    /// Until then, managers that wait for this one start no further sweep.
    heeds_after: Time,
    /// Managers in STANDBY that refused to take over or did not answer.
    refusers: BTreeMap<Guid, Refusal>,
    /// Whether a discovery has found another manager ever since this one is behind its port.
    pub(crate) has_met: bool,
    /// Whether a sweep was broken off for a manager of higher rank, and none has ended since.
    pub(crate) has_broken_off: bool,
    /// Managers that have asked and that no discovery has found.
    strangers: BTreeSet<Guid>,
    ids: u64,
    /// How many messages were sent besides those of sweeps.
    pub(crate) acts: u32,
    pub(crate) counts: ElectionCounts,
}

impl Election {
    /// Begins again behind this port, or behind none.
    pub(crate) fn reset(&mut self, now: Time, guid: Option<Guid>) {
        let (counts, acts, ids) = (self.counts, self.acts, now.as_nanos() ^ self.ids);
        *self = Self { guid, counts, acts, ids, look_again: self.look_again, ..Self::default() };
    }

    fn rank(&self, options: &Options) -> Rank {
        Rank { priority: options.election.priority & 0xf, guid: self.guid.unwrap_or(Guid(u64::MAX)) }
    }

    /// What a discovery says, and whom it is about.
    pub(crate) fn judge(&mut self, now: Time, peers: Vec<Peer>, options: &Options) -> (Found, Option<Peer>) {
        let own = self.rank(options);
        let stands_by = |guid| peers.iter().any(|peer| peer.guid == guid && peer.state == SmState::Standby);
        self.refusers.retain(|guid, _| stands_by(*guid));
        self.has_met |= !peers.is_empty();
        self.peers = peers;
        if !self.is_unsettled() {
            self.looks = 0;
        }
        self.strangers.retain(|guid| self.peers.iter().all(|peer| peer.guid != *guid));
        let highest = |wanted: &dyn Fn(&Peer) -> bool| {
            let mut those = self.peers.iter().filter(|peer| wanted(peer));
            let first = those.next()?;
            Some(*those.fold(first, |best, peer| if peer.rank().beats(best.rank()) { peer } else { best }))
        };
        // A subnet that has a master is left to it, even if that one cannot be negotiated with.
        let yields = !self.state.is_in_charge();
        let master = highest(&|peer| peer.state == SmState::Master && (yields || peer.is_trusted(options)));
        let higher = |state: SmState| {
            highest(&|peer| peer.state == state && peer.is_trusted(options) && peer.rank().beats(own))
                .filter(|peer| yields || !self.is_spared(now, peer))
        };
        let kinds = [
            (Found::HigherMaster, higher(SmState::Master)),
            (Found::HigherStandby, higher(SmState::Standby).filter(|_| !yields)),
            (Found::LowerMaster, master),
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

    /// Whether a manager that asks is not as this one knows it: a master of higher rank, which waits for a HANDOVER; a
    /// standby of higher rank, unless it did not take over just now; one that a discovery has found before it had settled.
    /// No more than one such in a polling interval starts a sweep, whatever a program claims to be.
    pub(crate) fn heeds(&mut self, now: Time, shown: &SmInfo, options: &Options) -> bool {
        let is_higher = Rank { priority: shown.priority, guid: shown.guid }.beats(self.rank(options));
        let known = self.peers.iter().find(|peer| peer.guid == shown.guid);
        let waits = match shown.sm_state {
            SmState::Master => is_higher && known.is_none_or(|peer| peer.is_trusted(options)),
            SmState::Standby => known.map_or(is_higher, |peer| {
                let may_take_over = is_higher && !self.is_spared(now, peer);
                peer.is_trusted(options) && (peer.state == SmState::Discovering || may_take_over)
            }),
            _ => false,
        };
        let heeded = waits && shown.guid != Guid(0) && self.state == State::Master && now >= self.heeds_after;
        if heeded {
            self.heeds_after = now + options.polling();
        }
        heeded
    }

    /// Whether to break off a sweep for a manager that asks: found by a discovery, of higher rank
    /// and in charge too; else the writes of both would meet. Only once until a sweep ends.
    pub(crate) fn breaks_off(&mut self, shown: &SmInfo, options: &Options) -> bool {
        let is_known = |peer: &Peer| peer.guid == shown.guid && peer.is_trusted(options);
        let is_higher = Rank { priority: shown.priority, guid: shown.guid }.beats(self.rank(options));
        let is_master = shown.sm_state == SmState::Master && is_higher && self.peers.iter().any(is_known);
        is_master && !std::mem::replace(&mut self.has_broken_off, true)
    }

    /// How long to wait before looking again at managers that look around themselves: twice as long each time. Beyond
    /// `most` there is no further look, for one that has settled asks of its own accord.
    pub(crate) fn look_delay(&mut self, most: Time) -> Option<Time> {
        if !std::mem::take(&mut self.look_again) {
            return None;
        }
        let delay = Time::from_nanos(LOOK_AGAIN.as_nanos() << self.looks.min(16));
        self.looks = self.looks.saturating_add(1);
        (delay < most).then_some(delay)
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

    /// What every message of this manager says of it. The key is for those that [`Election::key_for`] names.
    pub(crate) fn info(&self, options: &Options, act_count: u32, sm_key: SmKey) -> SmInfo {
        let Rank { priority, guid } = self.rank(options);
        SmInfo { guid, sm_key, act_count, priority, sm_state: self.state.shown() }
    }

    /// The HANDOVER to the target.
    pub(crate) fn hand_over(&mut self, now: Time, options: &Options, act_count: u32) -> Option<AddressedMad> {
        self.counts.handovers_sent += 1;
        let request = self.control(Control::Handover, self.target?, options, act_count);
        Some(self.ask(now, request, options.smps.timeout_ms, options.smps.retries))
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
        let info = self.info(options, act_count, options.keys.sm_key).encode();
        let request = Request::set(AttributeId::SmInfo, control.modifier(), &info);
        let mut request = request.by(&SmpRoute::Directed(to.path));
        Smp::m_key.set(&mut request.mad.0, options.keys.m_key);
        request
    }

    fn next_id(&mut self) -> u64 {
        self.ids = self.ids.wrapping_add(1) & 0x7fff;
        self.ids << 16 | OWN_IDS
    }

    fn ask(&mut self, now: Time, request: AddressedMad, timeout_ms: u64, retries: u32) -> AddressedMad {
        let question = self.question(now, request, timeout_ms, retries);
        self.question = Some(question);
        question.request
    }

    fn question(&mut self, now: Time, mut request: AddressedMad, timeout_ms: u64, retries: u32) -> Question {
        let id = self.next_id();
        Smp::transaction_id.set(&mut request.mad.0, TransactionId(id));
        let deadline = now + Time::from_millis(timeout_ms.max(1));
        Question { id, request, deadline, retries }
    }

    /// Lets time pass: what is to be sent now, and what has become of a question that no one answered.
    pub(crate) fn expire(
        &mut self,
        now: Time,
        options: &Options,
        act_count: u32,
    ) -> (Option<AddressedMad>, Option<Signal>) {
        if let Some(question) = self.question.filter(|question| question.deadline <= now) {
            self.question = question.again(now, options);
            if self.question.is_some() {
                return (Some(question.request), None);
            }
            if self.state == State::Yielding {
                self.refused(now, options);
                return (None, Some(Signal::Handed(Handed::Unheard)));
            }
            self.missed += 1;
            self.counts.polls_unanswered += 1;
            if self.missed > options.election.polling_retries {
                return (None, Some(Signal::Polled(Polled::Gone)));
            }
        }
        let due = self.next_poll.is_some_and(|at| at <= now) && self.question.is_none();
        let Some(target) = self.target.filter(|_| due && self.state.polls()) else { return (None, None) };
        self.next_poll = Some(now + options.polling());
        self.counts.polls += 1;
        let mut request = Request::get(AttributeId::SmInfo, 0).by(&SmpRoute::Directed(target.path));
        request.mad.set_smp_data(&self.info(options, act_count, SmKey::default()).encode());
        Smp::m_key.set(&mut request.mad.0, options.keys.m_key);
        let timeout = options.smps.timeout_ms.min(options.election.polling_ms);
        (Some(self.ask(now, request, timeout, 0)), None)
    }

    /// When it next wants to be woken, and what for.
    pub(crate) fn next_timer(&self) -> Option<Timer<SmTimer>> {
        let asked = match &self.question {
            Some(question) => Some(Timer { at: question.deadline, reason: SmTimer::SmInfo }),
            None => Timer::new(self.next_poll.filter(|_| self.state.polls()), SmTimer::Poll),
        };
        Timer::earliest([asked, Timer::new(self.instruction_deadline(), SmTimer::Instruction)])
    }

    /// Whether an answer is to a question of this kind, whoever asked it.
    pub(crate) fn is_for_election(answer: &Mad) -> bool {
        answer.attribute_id() == AttributeId::SmInfo && answer.transaction_id().0 & 0xffff == OWN_IDS
    }

    /// Takes the answer to a question. `None`: no one waits for it.
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
            return Some(Signal::Handed(Handed::Refused));
        }
        let info = SmInfo::decode(answer.smp_attribute());
        let SmInfo { priority, sm_state: state, sm_key, .. } = info;
        let peer = Peer { priority, state, sm_key, ..target };
        if let Some(known) = self.peers.iter_mut().find(|known| known.guid == info.guid && fine) {
            (known.priority, known.state, known.sm_key) = (priority, state, sm_key);
        }
        // One that was to become the master may never do so while another one does.
        self.missed = if state == SmState::Master { 0 } else { self.missed + 1 };
        let trusted_and_higher = peer.is_trusted(options) && peer.rank().beats(self.rank(options));
        let is_waited_for = match state {
            SmState::Master => self.state == State::Standby || peer.is_trusted(options),
            SmState::Standby | SmState::Discovering => trusted_and_higher && self.state == State::Standby,
            _ => false,
        };
        let in_time = self.missed <= options.election.polling_retries;
        let alive = fine && info.guid == target.guid && is_waited_for && in_time;
        if alive {
            self.target = Some(peer);
        }
        Some(Signal::Polled(if alive { Polled::Alive } else { Polled::Resigned }))
    }

    /// Does not try the target again for a while, twice as long each time: a subnet must not go without a manager because
    /// of one that does not want to be it.
    fn refused(&mut self, now: Time, options: &Options) {
        let Some(target) = self.target else { return };
        let Refusal { times, .. } = self.refusers.get(&target.guid).copied().unwrap_or_default();
        if times > 0 || self.refusers.len() < REFUSERS_MAX {
            let long = Time::from_nanos(options.polling().as_nanos() << times.min(REFUSALS_MAX));
            self.refusers.insert(target.guid, Refusal { until: now + long, times: times + 1 });
        }
    }

    /// Whether a manager did not take over just now, and is not asked again yet.
    fn is_spared(&self, now: Time, peer: &Peer) -> bool {
        self.refusers.get(&peer.guid).is_some_and(|refusal| refusal.until > now)
    }

    /// Whether a Set(SMInfo) may be obeyed: it shows our key. OpenSM shows none when it hands over to a manager that is no
    /// master, so the one that is polled as the master, and has shown the key, needs none for that.
    pub(crate) fn trusts(&self, control: Control, asked: &Mad, info: &SmInfo, options: &Options) -> bool {
        let is_master = |peer: Peer| peer.guid == info.guid && peer.state == SmState::Master;
        let polled = self.target.is_some_and(|peer| is_master(peer) && peer.is_trusted(options));
        info.sm_key == options.keys.sm_key
            || info.sm_key == SmKey(0)
                && control == Control::Handover
                && self.state == State::Standby
                && polled
                && shows_m_key(asked, options)
    }

    /// The SM_Key in an answer. It is for managers (IBA 14.2.5.13), which show it or the M_Key; where the M_Key is none,
    /// or no secret, everybody shows that. OpenSM takes no notice of a manager that hides its key from it.
    pub(crate) fn key_for(asked: &Mad, shown: &SmInfo, options: &Options) -> SmKey {
        let open = options.keys.m_key_protection == 0 || shows_m_key(asked, options);
        if open || shown.sm_key == options.keys.sm_key { options.keys.sm_key } else { SmKey(0) }
    }
}

/// Whether a request shows the M_Key, if there is one.
fn shows_m_key(asked: &Mad, options: &Options) -> bool {
    options.keys.m_key == MKey(0) || Smp::m_key.get(&asked.0) == options.keys.m_key
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
