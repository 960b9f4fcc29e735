//! Subscriptions to events (IBA 13.4.8.3, 13.4.11) and the Reports that they lead to.
//!
//! ```text
//!  trap ──▶ who wants it? ──▶ Report ──▶ ReportResp
//!                               │ again after the timeout, as often as SMPs
//!                               └──▶ given up; four in a row end the subscription
//! ```

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use weft_machine::{Time, Timer};
use weft_mgmt::{Limits, Transactions, Window, subnet_administration};
use weft_wire::{
    AddressedMad, AttributeId, Details, Gid, Guid, InformInfo, InformInfoRecord, Lid, Method, Notice, SaMad,
    sa_status,
};

use super::query::{Found, Query};
use super::requesters::may_have_more;
use super::sight::Sight;
use super::view::View;
use super::wanted::{about, check, same, wants};
use crate::{Options, SmTimer};

/// The most subscriptions, of which each port has four; the most of one subscriber, and of all ports of one host.
const SUBSCRIPTIONS_MAX: usize = 1 << 18;
const SUBSCRIPTIONS_OF_ONE_MAX: usize = 64;
const SUBSCRIPTIONS_OF_HOST_MAX: usize = 1024;
/// Unanswered Reports in a row that end a subscription.
const UNANSWERED_MAX: u32 = 4;
/// Reports in flight, those to one subscriber, and those to all ports of one host: a silent one must not keep others waiting.
const WINDOW: u32 = 32;
const WINDOW_OF_ONE: u32 = 4;
const WINDOW_OF_HOST: u32 = 8;
/// Reports waiting.
const QUEUE_MAX: usize = 1 << 16;
/// Reports to one subscriber that wait, and to all ports of one host. Beyond that each may have half of what is left.
const QUEUE_OF_ONE_MAX: usize = 1 << 12;
const QUEUE_OF_HOST_MAX: usize = 1 << 13;
/// Reports that wait and were caused by one host. One that has caused none may cause as many as there are subscriptions.
const QUEUE_BY_ONE_MAX: usize = 1 << 13;

/// Who has subscribed to what.
#[derive(Debug, Default)]
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
    pub(super) dropped: u64,
    /// Of these, those of which the subscriber had too many.
    pub(super) dropped_of_one: u64,
    /// Notices that were not passed on because their cause had too many waiting.
    pub(super) dropped_of_cause: u64,
    /// Subscriptions refused.
    pub(super) refused: u64,
    /// Reports in flight, by host.
    in_flight: BTreeMap<Guid, u32>,
    /// Reports that wait, by the host that caused them.
    caused: BTreeMap<Guid, usize>,
    reports: Transactions<Sent>,
    /// Subscribers whose answers somebody waits for, and those of them that have not answered in time.
    awaited: BTreeSet<Guid>,
    unanswered: BTreeSet<Guid>,
    /// Whether subscribers get Reports only about ports that they share a partition with.
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

/// A Report in flight: its subscriber, the subscription's id, and the subscriber's host when it was sent.
type Sent = (Guid, u64, Guid);

/// A Report that waits: the subscription's id, and the host that caused it.
#[derive(Clone, Debug)]
struct Waiting {
    id: u64,
    cause: Option<Guid>,
    report: AddressedMad,
}

/// A port with subscriptions, as far as Reports are on their way there.
#[derive(Clone, Debug, Default)]
struct Subscriber {
    /// Reports that wait for the window.
    queue: VecDeque<Waiting>,
    host: Guid,
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
        Self { reports: Transactions::new(limits), by_partition: options.sa.sa_partitions, ..Self::default() }
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
        let subscriber = view.requester(request.lid)?.guid;
        check(&info, &query.sight, view)?;
        let is_it =
            |known: &Subscription| known.to.remote_qp == request.remote_qp && same(&known.info, &info);
        let mut of_one = self.list.range((subscriber, 0)..=(subscriber, u16::MAX));
        let known = of_one.find(|(_, known)| is_it(known)).map(|(key, _)| *key);
        match (info.subscribe, known) {
            (0, None) => return Err(sa_status::REQ_INVALID),
            (0, Some((subscriber, number))) => self.end(subscriber, number),
            (1, Some(key)) => {
                // It may have moved.
                let fresh = (*request, 0, query.trusted);
                self.list.entry(key).and_modify(|known| (known.to, known.unanswered, known.trusted) = fresh);
            }
            (1, None) if !self.has_room(subscriber, view) => {
                self.refused += 1;
                return Err(sa_status::NO_RESOURCES);
            }
            (1, None) => self.begin(subscriber, info, *request, query.trusted),
            _ => return Err(sa_status::REQ_INVALID),
        }
        Ok(info)
    }

    /// The numbers that a subscriber has taken.
    fn numbers_of(&self, subscriber: Guid) -> impl Iterator<Item = u16> {
        self.list.range((subscriber, 0)..=(subscriber, u16::MAX)).map(|((_, number), _)| *number)
    }

    /// Whether a subscriber may have one more, and its host.
    fn has_room(&self, subscriber: Guid, view: &View) -> bool {
        let ports = view.requesters.ports_of(view.requesters.host_of(subscriber));
        let of_host = ports.iter().map(|(port, _)| self.numbers_of(*port).count()).sum();
        self.numbers_of(subscriber).count() < SUBSCRIPTIONS_OF_ONE_MAX
            && may_have_more(of_host, SUBSCRIPTIONS_OF_HOST_MAX, SUBSCRIPTIONS_MAX - self.list.len())
    }

    /// Enters a subscription under the lowest number that its subscriber has free.
    fn begin(&mut self, subscriber: Guid, info: InformInfo, to: AddressedMad, trusted: bool) {
        let taken: Vec<u16> = self.numbers_of(subscriber).collect();
        let number =
            (0..).zip(&taken).find(|(free, taken)| free != *taken).map_or(taken.len() as u16, |(n, _)| n);
        let (id, key) = (self.next_id, (subscriber, number));
        self.next_id += 1;
        self.list.insert(key, Subscription { id, info, to, unanswered: 0, trusted });
        self.by_id.insert(id, key);
    }

    fn end(&mut self, subscriber: Guid, number: u16) {
        let Some(ended) = self.list.remove(&(subscriber, number)) else { return };
        self.by_id.remove(&ended.id);
        if let Some(subscriber) = self.subscribers.get_mut(&subscriber) {
            let (gone, kept) = subscriber.queue.drain(..).partition(|waiting| waiting.id == ended.id);
            subscriber.queue = kept;
            let gone: VecDeque<Waiting> = gone;
            gone.iter().for_each(|waiting| self.left_queue(waiting.cause));
        }
    }

    /// A Report waits no more.
    fn left_queue(&mut self, cause: Option<Guid>) {
        self.queued -= 1;
        let Some(host) = cause else { return };
        let caused = self.caused.entry(host).or_default();
        *caused = caused.saturating_sub(1);
        if *caused == 0 {
            self.caused.remove(&host);
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
        let gone = self.subscribers.extract_if(.., |guid, _| !there.contains(guid));
        let gone: Vec<Waiting> = gone.flat_map(|(_, subscriber)| subscriber.queue).collect();
        gone.iter().for_each(|waiting| self.left_queue(waiting.cause));
    }

    /// Reports that wait for the window.
    pub(super) fn queued(&self) -> usize {
        self.queued
    }

    pub(super) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// The ports that have subscribed to something.
    pub(super) fn ports(&self) -> BTreeSet<Guid> {
        self.list.keys().map(|(guid, _)| *guid).collect()
    }

    /// Waits until these have answered all Reports that are on their way there.
    pub(super) fn await_answers(&mut self, ports: BTreeSet<Guid>) {
        (self.awaited, self.unanswered) = (ports, BTreeSet::new());
    }

    /// These got no Report, as there was no room for it.
    pub(super) fn give_up_on(&mut self, ports: BTreeSet<Guid>) {
        self.unanswered.extend(ports);
    }

    /// Whether some have yet to answer.
    pub(super) fn is_awaiting(&self) -> bool {
        self.awaited.iter().any(|guid| {
            let subscriber = self.subscribers.get(guid);
            subscriber.is_some_and(|subscriber| subscriber.in_flight > 0 || !subscriber.queue.is_empty())
        })
    }

    /// Those that have not answered in time; none is waited for any more.
    pub(super) fn take_unanswered(&mut self) -> BTreeSet<Guid> {
        self.awaited.clear();
        std::mem::take(&mut self.unanswered)
    }

    /// Tells everybody who wants to know, or of these `only` the port that is named. Beyond the bound of the queue,
    /// Reports are dropped and counted, and so are those that a host causes while many of its own wait.
    pub(super) fn report(
        &mut self,
        notice: &Notice,
        only: Option<Guid>,
        cause: Option<Guid>,
        view: &View,
    ) -> Reported {
        let mut notice = *notice;
        notice.issuer_gid = view.by_lid(notice.issuer_lid).map_or(Gid::default(), |end| view.gid(end.guid));
        let mut reported = Reported::default();
        let caused = cause.and_then(|host| self.caused.get(&host)).copied().unwrap_or(0);
        if caused > 0 && !may_have_more(caused, QUEUE_BY_ONE_MAX, QUEUE_MAX - self.queued) {
            (self.dropped, self.dropped_of_cause) = (self.dropped + 1, self.dropped_of_cause + 1);
            return Reported { dropped: 1, ..reported };
        }
        // Reports that wait, by host, as far as they have been counted.
        let mut waiting = BTreeMap::new();
        let (first, last) = only.map_or((Guid(0), Guid(u64::MAX)), |only| (only, only));
        for ((guid, _), known) in self.list.range((first, 0)..=(last, u16::MAX)) {
            if !wants(&known.info, &notice) || !self.may_hear(*guid, known, &notice, view) {
                continue;
            }
            let host = view.requesters.host_of(*guid);
            let of_one = self.waiting_at(*guid);
            let ports = || view.requesters.ports_of(host).iter();
            let of_host =
                waiting.entry(host).or_insert_with(|| ports().map(|(port, _)| self.waiting_at(*port)).sum());
            let left = QUEUE_MAX - self.queued;
            if may_have_more(*of_host, QUEUE_OF_HOST_MAX, left)
                && may_have_more(of_one, QUEUE_OF_ONE_MAX, QUEUE_OF_HOST_MAX - *of_host)
            {
                *of_host += 1;
                let subscriber = self.subscribers.entry(*guid).or_default();
                subscriber.host = host;
                let report = report(&known.to, &notice);
                subscriber.queue.push_back(Waiting { id: known.id, cause, report });
                self.queued += 1;
                cause.into_iter().for_each(|cause| *self.caused.entry(cause).or_default() += 1);
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

    /// Reports to a subscriber that wait.
    fn waiting_at(&self, subscriber: Guid) -> usize {
        self.subscribers.get(&subscriber).map_or(0, |subscriber| subscriber.queue.len())
    }

    /// Whether a subscriber may get a Report about the port of a notice (o13-17.1.2).
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
        let (subscriber, id, host) = done.key;
        if let Some(known) = self.by_id.get(&id).and_then(|key| self.list.get_mut(key)) {
            known.unanswered = 0;
        }
        self.landed(subscriber, host);
        true
    }

    /// A Report is in flight no more.
    fn landed(&mut self, guid: Guid, host: Guid) {
        if let Some(in_flight) = self.in_flight.get_mut(&host) {
            *in_flight -= 1;
            let none = *in_flight == 0;
            none.then(|| self.in_flight.remove(&host));
        }
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
            let (subscriber, id, host) = failed.key;
            self.landed(subscriber, host);
            if self.awaited.contains(&subscriber) {
                self.unanswered.insert(subscriber);
            }
            let Some(key) = self.by_id.get(&id).copied() else { continue };
            let Some(known) = self.list.get_mut(&key) else { continue };
            known.unanswered += 1;
            if known.unanswered >= UNANSWERED_MAX {
                self.end(key.0, key.1);
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
            let guid = self.next_ready()?;
            let Some(subscriber) = self.subscribers.get_mut(&guid) else { continue };
            subscriber.ready = false;
            let Some(Waiting { id, cause, report }) = subscriber.queue.pop_front() else {
                // Its subscription has ended meanwhile.
                self.subscribers.retain(|other, subscriber| *other != guid || subscriber.in_flight > 0);
                continue;
            };
            subscriber.in_flight += 1;
            subscriber.take_turn(guid, &mut self.ready);
            let host = subscriber.host;
            *self.in_flight.entry(host).or_default() += 1;
            self.left_queue(cause);
            // There was room.
            let _ = self.reports.offer((guid, id, host), report);
        }
    }

    /// The subscriber whose turn it is. Those whose host has enough in flight are passed over; few hosts can have that.
    fn next_ready(&mut self) -> Option<Guid> {
        for _ in 0..self.ready.len() {
            let guid = self.ready.pop_front()?;
            let host = self.subscribers.get(&guid).map(|subscriber| subscriber.host);
            let in_flight = host.and_then(|host| self.in_flight.get(&host)).copied().unwrap_or(0);
            if in_flight < WINDOW_OF_HOST {
                return Some(guid);
            }
            self.ready.push_back(guid);
        }
        None
    }

    pub(super) fn next_timer(&self) -> Option<Timer<SmTimer>> {
        self.reports.next_timer().map(|timer| timer.map(SmTimer::Report))
    }

    /// Ends all subscriptions.
    pub(super) fn clear(&mut self) {
        self.list.clear();
        self.by_id.clear();
        self.forget_waiting();
    }

    pub(super) fn abandon(&mut self, now: Time) {
        self.forget_waiting();
        self.in_flight.clear();
        self.reports.abandon();
        self.reports.begin_ids_at(now.as_nanos());
    }

    fn forget_waiting(&mut self) {
        self.subscribers.clear();
        self.ready.clear();
        self.caused.clear();
        self.queued = 0;
    }

    pub(super) fn stats(&self) -> &weft_mgmt::Stats {
        self.reports.stats()
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

/// A Report to where a subscription came from.
fn report(to: &AddressedMad, notice: &Notice) -> AddressedMad {
    let (method, attribute) = (Method::Report, AttributeId::Notice);
    let report = subnet_administration(to.lid, to.service_level, method, attribute, 0, &notice.encode());
    AddressedMad { mad: report.mad, ..*to }
}

/// The LID that a notice of this manager's own comes from, and what kind of node that is: a class manager.
pub(super) fn own_notice(lid: Lid, details: &Details) -> Notice {
    const CLASS_MANAGER: weft_wire::NodeType = weft_wire::NodeType::from_code(4);
    Notice::generic(CLASS_MANAGER, lid, details)
}
