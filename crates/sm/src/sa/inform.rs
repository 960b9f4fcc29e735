//! Subscriptions to events (IBA 13.4.8.3, 13.4.11) and the Reports that they lead to.
//!
//! ```text
//!  trap ──▶ who wants it? ──▶ Report ──▶ ReportResp
//!                               │ again after the timeout, as often as SMPs
//!                               └──▶ given up; four in a row end the subscription
//! ```

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use weft_machine::{Time, Timer};
use weft_mgmt::{Limits, Transactions, Window};
use weft_wire::{
    AddressedMad, AttributeId, Details, Gid, Guid, InformInfo, InformInfoRecord, Lid, Mad, Method, MgmtClass,
    Notice, SA_CLASS_VERSION, SaMad, sa_status,
};

use super::query::{Found, Query};
use super::sight::Sight;
use super::view::{End, View};
use crate::{Options, SmTimer};

/// The most subscriptions, of which each host has four, and the most of one subscriber.
const SUBSCRIPTIONS_MAX: usize = 1 << 18;
const SUBSCRIPTIONS_OF_ONE_MAX: usize = 64;
/// Unanswered Reports in a row that end a subscription.
const UNANSWERED_MAX: u32 = 4;
/// Reports in flight, and those to one subscriber: a silent one must not keep others waiting.
const WINDOW: u32 = 16;
const WINDOW_OF_ONE: u32 = 4;
/// Reports waiting.
const QUEUE_MAX: usize = 1 << 16;
/// Reports to one subscriber that wait. Beyond that each may have half of what is left.
const QUEUE_OF_ONE_MAX: usize = 1 << 12;

/// Who has subscribed to what.
#[derive(Debug)]
pub(super) struct Subscriptions {
    /// By subscriber, then in the order in which they came.
    list: BTreeMap<(Guid, u16), Subscription>,
    /// Where each is in the list. A number in the list may be given again, an id is not.
    by_id: BTreeMap<u64, (Guid, u16)>,
    next_id: u64,
    /// Reports that wait for the window, in all.
    queued: usize,
    /// Subscribers with Reports that wait or are in flight.
    subscribers: BTreeMap<Guid, Subscriber>,
    /// Those with Reports that may be sent, in turn. One that has none any more is passed over.
    ready: VecDeque<Guid>,
    /// Reports for which the queue had no room.
    dropped: u64,
    /// Of these, those of which the subscriber had too many.
    dropped_of_one: u64,
    /// By subscriber and the subscription's id.
    reports: Transactions<(Guid, u64)>,
    /// Whether subscribers are told only of ports that they share a partition with.
    by_partition: bool,
}

#[derive(Clone, Debug)]
struct Subscription {
    id: u64,
    info: InformInfo,
    /// Where Reports go, the way that the request came from.
    to: AddressedMad,
    /// Unanswered Reports in a row.
    unanswered: u32,
    /// Whether it was asked for with the SA key.
    trusted: bool,
}

/// A port with subscriptions, as far as Reports are on their way there.
#[derive(Clone, Debug, Default)]
struct Subscriber {
    /// Reports that wait for the window, with the ids of their subscriptions.
    queue: VecDeque<(u64, AddressedMad)>,
    in_flight: u32,
    /// Whether it is in the list of those whose turn it is.
    ready: bool,
}

impl Subscriber {
    /// Gets in line, if it has Reports that may be sent.
    fn take_turn(&mut self, guid: Guid, line: &mut VecDeque<Guid>) {
        if !self.ready && !self.queue.is_empty() && self.in_flight < WINDOW_OF_ONE {
            self.ready = true;
            line.push_back(guid);
        }
    }
}

impl Subscriptions {
    pub(super) fn new(options: &Options) -> Self {
        let limits = Limits { window: Window::Fixed(WINDOW), queue: WINDOW as usize, ..options.limits() };
        Self {
            list: BTreeMap::new(),
            by_id: BTreeMap::new(),
            next_id: 0,
            queued: 0,
            subscribers: BTreeMap::new(),
            ready: VecDeque::new(),
            dropped: 0,
            dropped_of_one: 0,
            reports: Transactions::new(limits),
            by_partition: options.sa_partitions,
        }
    }

    /// Subscribes or unsubscribes, as the request says.
    pub(super) fn set(
        &mut self,
        request: &AddressedMad,
        query: &Query<'_>,
        view: &View,
    ) -> Result<InformInfo, u16> {
        let data = SaMad::data.get(&request.mad.0);
        let info = InformInfo::decode(data.first_chunk().ok_or(sa_status::REQ_INVALID)?);
        let subscriber = view.by_lid(request.lid).ok_or(sa_status::REQ_INVALID)?.guid;
        check(&info, &query.sight, view)?;
        let is_it =
            |known: &Subscription| known.to.remote_qp == request.remote_qp && same(&known.info, &info);
        let mut of_one = self.list.range((subscriber, 0)..=(subscriber, u16::MAX));
        let known = of_one.find(|(_, known)| is_it(known)).map(|(key, _)| *key);
        match (info.subscribe, known) {
            (0, None) => return Err(sa_status::REQ_INVALID),
            (0, Some(key)) => self.end(key),
            (1, Some(key)) => {
                // It may have moved.
                let fresh = (*request, 0, query.trusted);
                self.list.entry(key).and_modify(|known| (known.to, known.unanswered, known.trusted) = fresh);
            }
            (1, None) => self.begin(subscriber, info, *request, query.trusted)?,
            _ => return Err(sa_status::REQ_INVALID),
        }
        Ok(info)
    }

    /// Enters a subscription under the lowest number that its subscriber has free.
    fn begin(
        &mut self,
        subscriber: Guid,
        info: InformInfo,
        to: AddressedMad,
        trusted: bool,
    ) -> Result<(), u16> {
        let taken: Vec<u16> = self
            .list
            .range((subscriber, 0)..=(subscriber, u16::MAX))
            .map(|((_, number), _)| *number)
            .collect();
        if self.list.len() >= SUBSCRIPTIONS_MAX || taken.len() >= SUBSCRIPTIONS_OF_ONE_MAX {
            return Err(sa_status::NO_RESOURCES);
        }
        let number =
            (0..).zip(&taken).find(|(free, taken)| free != *taken).map_or(taken.len() as u16, |(n, _)| n);
        let (id, key) = (self.next_id, (subscriber, number));
        self.next_id += 1;
        self.list.insert(key, Subscription { id, info, to, unanswered: 0, trusted });
        self.by_id.insert(id, key);
        Ok(())
    }

    fn end(&mut self, key: (Guid, u16)) {
        let Some(ended) = self.list.remove(&key) else { return };
        self.by_id.remove(&ended.id);
        if let Some(subscriber) = self.subscribers.get_mut(&key.0) {
            let before = subscriber.queue.len();
            subscriber.queue.retain(|(id, _)| *id != ended.id);
            self.queued -= before - subscriber.queue.len();
        }
    }

    pub(super) fn select(&self, query: &Query<'_>, view: &View) -> Result<Found, u16> {
        let seen = self.list.iter().filter(|((guid, _), _)| query.sight.sees(*guid));
        query.filter::<InformInfoRecord>()?.select(seen.map(|((guid, number), known)| InformInfoRecord {
            subscriber_gid: view.gid(*guid),
            enumeration: *number,
            reserved_144: 0,
            inform_info: known.info,
        }))
    }

    /// Ends the subscriptions of ports that have left.
    pub(super) fn retain(&mut self, there: &BTreeSet<Guid>) {
        self.list.retain(|(guid, _), _| there.contains(guid));
        self.by_id.retain(|_, key| self.list.contains_key(key));
        self.subscribers.retain(|guid, _| there.contains(guid));
        self.queued = self.subscribers.values().map(|subscriber| subscriber.queue.len()).sum();
    }

    pub(super) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Tells everybody who wants to know, or of these `only` the port that is named. Beyond the bound of the queue,
    /// Reports are dropped and counted.
    pub(super) fn report(&mut self, notice: &Notice, only: Option<Guid>, view: &View) -> Reported {
        let mut notice = *notice;
        notice.issuer_gid = view.by_lid(notice.issuer_lid).map_or(Gid::default(), |end| view.gid(end.guid));
        let mut reported = Reported::default();
        let (first, last) = only.map_or((Guid(0), Guid(u64::MAX)), |only| (only, only));
        for ((guid, _), known) in self.list.range((first, 0)..=(last, u16::MAX)) {
            if !wants(&known.info, &notice) || !self.may_hear(*guid, known, &notice, view) {
                continue;
            }
            let waiting = self.subscribers.get(guid).map_or(0, |subscriber| subscriber.queue.len());
            let left = QUEUE_MAX - self.queued;
            if left > 0 && (waiting == 0 || waiting < QUEUE_OF_ONE_MAX.min(left)) {
                let subscriber = self.subscribers.entry(*guid).or_default();
                subscriber.queue.push_back((known.id, report(&known.to, &notice)));
                self.queued += 1;
                subscriber.take_turn(*guid, &mut self.ready);
                reported.ports.insert(*guid);
            } else {
                reported.dropped += 1;
                self.dropped_of_one += u64::from(left > 0);
            }
        }
        self.dropped += u64::from(reported.dropped);
        reported
    }

    /// Whether a subscriber may be told of the port that a notice is about (o13-17.1.2).
    fn may_hear(&self, guid: Guid, known: &Subscription, notice: &Notice, view: &View) -> bool {
        match &view.keys {
            Some(keys) if self.by_partition && !known.trusted => {
                Sight::Of(keys, guid).sees(about(notice).guid)
            }
            _ => true,
        }
    }

    /// Takes a ReportResp. False when no request waits for it.
    pub(super) fn answered(&mut self, now: Time, answer: &AddressedMad) -> bool {
        let Some(done) = self.reports.handle_response(now, answer) else { return false };
        let (subscriber, id) = done.key;
        if let Some(known) = self.by_id.get(&id).and_then(|key| self.list.get_mut(key)) {
            known.unanswered = 0;
        }
        self.landed(subscriber);
        true
    }

    /// A Report is in flight no more.
    fn landed(&mut self, guid: Guid) {
        let Some(subscriber) = self.subscribers.get_mut(&guid) else { return };
        subscriber.in_flight = subscriber.in_flight.saturating_sub(1);
        subscriber.take_turn(guid, &mut self.ready);
        if subscriber.in_flight == 0 && subscriber.queue.is_empty() {
            self.subscribers.remove(&guid);
        }
    }

    /// Lets time pass.
    pub(super) fn expire(&mut self, now: Time) {
        while let Some(failed) = self.reports.poll_failed(now) {
            let (subscriber, id) = failed.key;
            self.landed(subscriber);
            let Some(key) = self.by_id.get(&id).copied() else { continue };
            let Some(known) = self.list.get_mut(&key) else { continue };
            known.unanswered += 1;
            if known.unanswered >= UNANSWERED_MAX {
                self.end(key);
            }
        }
    }

    pub(super) fn poll_transmit(&mut self, now: Time) -> Option<AddressedMad> {
        loop {
            if let Some(report) = self.reports.poll_transmit(now) {
                return Some(report);
            }
            if !self.reports.has_room(now) {
                return None;
            }
            let guid = self.ready.pop_front()?;
            let Some(subscriber) = self.subscribers.get_mut(&guid) else { continue };
            subscriber.ready = false;
            let Some((id, report)) = subscriber.queue.pop_front() else {
                // Its subscription has ended meanwhile.
                self.subscribers.retain(|other, subscriber| *other != guid || subscriber.in_flight > 0);
                continue;
            };
            self.queued -= 1;
            subscriber.in_flight += 1;
            subscriber.take_turn(guid, &mut self.ready);
            // There was room.
            let _ = self.reports.offer((guid, id), report);
        }
    }

    pub(super) fn next_timer(&self) -> Option<Timer<SmTimer>> {
        self.reports.next_timer().map(|timer| timer.map(SmTimer::Report))
    }

    /// Ends all subscriptions.
    pub(super) fn clear(&mut self) {
        self.list.clear();
        self.by_id.clear();
        self.subscribers.clear();
        self.ready.clear();
        self.queued = 0;
    }

    pub(super) fn abandon(&mut self, now: Time) {
        self.subscribers.clear();
        self.ready.clear();
        self.queued = 0;
        self.reports.abandon();
        self.reports.begin_ids_at(now.as_nanos());
    }

    pub(super) fn stats(&self) -> &weft_mgmt::Stats {
        self.reports.stats()
    }

    /// Reports that were dropped because their subscriber had too many waiting.
    pub(super) fn dropped_of_one(&self) -> u64 {
        self.dropped_of_one
    }

    /// Reports for which the queue had no room.
    pub(super) fn dropped(&self) -> u64 {
        self.dropped
    }
}

/// Whom a notice reaches.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Reported {
    /// Those to whom it is on its way.
    pub(super) ports: BTreeSet<Guid>,
    /// Reports for which the queue had no room.
    pub(super) dropped: u32,
}

/// Whether a subscription can mean anything, and the subscriber sees all sources that it names; what `all` brings it is
/// looked at when there is something to report (o13-14.1.1).
fn check(info: &InformInfo, sight: &Sight<'_>, view: &View) -> Result<(), u16> {
    // A subscription is ended by who has it, also where it would not be taken any more.
    let sees = |end: &&End| info.subscribe == 0 || sight.sees(end.guid);
    if info.gid != Gid::default() {
        return view.by_gid(info.gid).filter(sees).map(|_| ()).ok_or(sa_status::REQ_INVALID_GID);
    }
    if info.lid_range_begin.0 == InformInfo::ALL {
        return Ok(());
    }
    let range = info.lid_range_begin..=info.lid_range_end;
    let named = |end: &&End| end.lid <= *range.end() && end.lid.0 + (end.lids() - 1) >= range.start().0;
    let is_range = info.lid_range_begin.is_unicast() && !range.is_empty();
    let all_seen = is_range && view.ends.iter().filter(named).all(|end| sees(&end));
    if all_seen { Ok(()) } else { Err(sa_status::REQ_INVALID) }
}

/// Whether two are the same subscription: QPN and answer time are the subscriber's, not the event's.
fn same(a: &InformInfo, b: &InformInfo) -> bool {
    let event =
        |info: &InformInfo| InformInfo { subscribe: 0, qpn: Default::default(), resp_time_value: 0, ..*info };
    event(a) == event(b)
}

/// Whether a subscription is about a notice.
fn wants(info: &InformInfo, notice: &Notice) -> bool {
    let from = if info.gid == Gid::default() {
        let range = info.lid_range_begin..=info.lid_range_end;
        info.lid_range_begin.0 == InformInfo::ALL || range.contains(&notice.issuer_lid)
    } else {
        info.gid == about(notice)
    };
    let trap = info.trap_number.0 == InformInfo::ALL || info.trap_number == notice.trap_number;
    let producer =
        info.producer_type == InformInfo::ALL_PRODUCERS || info.producer_type == notice.producer_type;
    from && trap
        && producer
        && (info.is_generic == 1) == notice.is_generic
        && info.wants_type(notice.notice_type)
}

/// The port that a notice is about. Traps 64 to 67 come from the manager and are about somebody else.
fn about(notice: &Notice) -> Gid {
    match notice.details() {
        Details::Gid(_, details) => details.gid,
        _ => notice.issuer_gid,
    }
}

/// A Report to where a subscription came from.
fn report(to: &AddressedMad, notice: &Notice) -> AddressedMad {
    let mut mad = Mad::default();
    SaMad::base_version.set(&mut mad.0, 1);
    SaMad::mgmt_class.set(&mut mad.0, MgmtClass::SubnAdm);
    SaMad::class_version.set(&mut mad.0, SA_CLASS_VERSION);
    SaMad::method.set(&mut mad.0, Method::Report);
    SaMad::attribute_id.set(&mut mad.0, AttributeId::Notice);
    let mut data = [0; weft_wire::SA_DATA_SIZE];
    data[..Notice::SIZE].copy_from_slice(&notice.encode());
    SaMad::data.set(&mut mad.0, data);
    AddressedMad { mad, ..*to }
}

/// The LID that a notice of this manager's own comes from, and what kind of node that is: a class manager.
pub(super) fn own_notice(lid: Lid, details: &Details) -> Notice {
    const CLASS_MANAGER: weft_wire::NodeType = weft_wire::NodeType::from_code(4);
    Notice::generic(CLASS_MANAGER, lid, details)
}
