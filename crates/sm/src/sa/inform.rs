//! Subscriptions to events (IBA 13.4.8.3, 13.4.11) and the Reports that they lead to.
//!
//! ```text
//!  trap ──▶ who wants it? ──▶ Report ──▶ ReportResp
//!                               │ again after the timeout, as often as SMPs
//!                               └──▶ given up; so many in a row end the subscription
//! ```

use std::collections::BTreeMap;

use weft_machine::Time;
use weft_mgmt::{Limits, Transactions};
use weft_wire::{
    AddressedMad, AttributeId, Details, Gid, Guid, InformInfo, InformInfoRecord, Lid, Mad, Method, MgmtClass,
    Notice, SA_CLASS_VERSION, SaMad, sa_status,
};

use super::query::{Found, Query};
use super::view::View;
use crate::Options;

/// The most subscriptions, and the most of one subscriber.
const SUBSCRIPTIONS_MAX: usize = 1024;
const SUBSCRIPTIONS_OF_ONE_MAX: usize = 64;
/// So many Reports in a row that nobody answered end a subscription.
const UNANSWERED_MAX: u32 = 4;
/// Reports in flight, and waiting.
const WINDOW: u32 = 16;
const QUEUE_MAX: usize = 4096;

/// Who has subscribed to what.
#[derive(Debug)]
pub(super) struct Subscriptions {
    /// By subscriber, then in the order in which they came.
    list: BTreeMap<(Guid, u16), Subscription>,
    reports: Transactions<(Guid, u16)>,
}

#[derive(Clone, Debug)]
struct Subscription {
    info: InformInfo,
    /// Where Reports go, the way that the request came from.
    to: AddressedMad,
    /// Reports in a row that nobody answered.
    unanswered: u32,
}

impl Subscriptions {
    pub(super) fn new(options: &Options) -> Self {
        let limits = Limits { window: WINDOW, queue: QUEUE_MAX, ..options.limits() };
        Self { list: BTreeMap::new(), reports: Transactions::new(limits) }
    }

    /// Subscribes or unsubscribes, as the request says.
    pub(super) fn set(&mut self, request: &AddressedMad, view: &View) -> Result<InformInfo, u16> {
        let data = SaMad::data.get(&request.mad.0);
        let info = InformInfo::decode(data.first_chunk().ok_or(sa_status::REQ_INVALID)?);
        let subscriber = view.by_lid(request.lid).ok_or(sa_status::REQ_INVALID)?.guid;
        check(&info, view)?;
        let is_it =
            |known: &Subscription| known.to.remote_qp == request.remote_qp && same(&known.info, &info);
        let mut of_one = self.list.range((subscriber, 0)..=(subscriber, u16::MAX));
        let known = of_one.clone().find(|(_, known)| is_it(known)).map(|(key, _)| *key);
        match (info.subscribe, known) {
            (0, None) => return Err(sa_status::REQ_INVALID),
            (0, Some(key)) => {
                self.list.remove(&key);
            }
            (1, Some(key)) => {
                // It may have moved.
                self.list.entry(key).and_modify(|known| (known.to, known.unanswered) = (*request, 0));
            }
            (1, None) => {
                let last = of_one.next_back().map(|((_, number), _)| *number);
                let count = self.list.range((subscriber, 0)..=(subscriber, u16::MAX)).count();
                let number = last.map_or(Some(0), |last| last.checked_add(1));
                let room = self.list.len() < SUBSCRIPTIONS_MAX && count < SUBSCRIPTIONS_OF_ONE_MAX;
                let number = number.filter(|_| room).ok_or(sa_status::NO_RESOURCES)?;
                let subscription = Subscription { info, to: *request, unanswered: 0 };
                self.list.insert((subscriber, number), subscription);
            }
            _ => return Err(sa_status::REQ_INVALID),
        }
        Ok(info)
    }

    pub(super) fn select(&self, query: &Query<'_>, view: &View) -> Result<Found, u16> {
        query.filter::<InformInfoRecord>()?.select(self.list.iter().map(|((guid, number), known)| {
            InformInfoRecord {
                subscriber_gid: view.gid(*guid),
                enumeration: *number,
                reserved_144: 0,
                inform_info: known.info,
            }
        }))
    }

    /// Ends the subscriptions of ports that have left.
    pub(super) fn retain(&mut self, view: &View) {
        self.list.retain(|(guid, _), _| view.by_guid(*guid).is_some());
    }

    pub(super) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Tells everybody who wants to know. Beyond the bound of the queue, Reports are dropped and counted.
    pub(super) fn report(&mut self, notice: &Notice, view: &View) {
        let mut notice = *notice;
        notice.issuer_gid = view.by_lid(notice.issuer_lid).map_or(Gid::default(), |end| view.gid(end.guid));
        for (key, known) in self.list.iter().filter(|(_, known)| wants(&known.info, &notice)) {
            // The transactions count what is refused.
            let _ = self.reports.offer(*key, report(&known.to, &notice));
        }
    }

    /// Takes a ReportResp. False when nobody waits for it.
    pub(super) fn answered(&mut self, now: Time, answer: &AddressedMad) -> bool {
        let Some(done) = self.reports.handle_response(now, answer) else { return false };
        self.list.entry(done.key).and_modify(|known| known.unanswered = 0);
        true
    }

    /// Lets time pass.
    pub(super) fn expire(&mut self, now: Time) {
        while let Some(failed) = self.reports.poll_failed(now) {
            if let Some(known) = self.list.get_mut(&failed.key) {
                known.unanswered += 1;
                if known.unanswered >= UNANSWERED_MAX {
                    self.list.remove(&failed.key);
                }
            }
        }
    }

    pub(super) fn poll_transmit(&mut self, now: Time) -> Option<AddressedMad> {
        self.reports.poll_transmit(now)
    }

    pub(super) fn poll_timeout(&self) -> Option<Time> {
        self.reports.poll_timeout()
    }

    pub(super) fn abandon(&mut self, now: Time) {
        self.reports.abandon();
        self.reports.begin_ids_at(now.as_nanos());
    }

    pub(super) fn stats(&self) -> &weft_mgmt::Stats {
        self.reports.stats()
    }
}

/// Whether a subscription can mean anything.
fn check(info: &InformInfo, view: &View) -> Result<(), u16> {
    if info.gid != Gid::default() {
        return view.by_gid(info.gid).map(|_| ()).ok_or(sa_status::REQ_INVALID_GID);
    }
    let all = info.lid_range_begin.0 == InformInfo::ALL;
    let range = info.lid_range_begin.is_unicast() && info.lid_range_begin <= info.lid_range_end;
    if all || range { Ok(()) } else { Err(sa_status::REQ_INVALID) }
}

/// Whether two are the same subscription: QPN and answer time are the subscriber's, not the event's.
fn same(a: &InformInfo, b: &InformInfo) -> bool {
    let event =
        |info: &InformInfo| InformInfo { subscribe: 0, qpn: Default::default(), resp_time_value: 0, ..*info };
    event(a) == event(b)
}

/// Whether a subscription is about a notice.
fn wants(info: &InformInfo, notice: &Notice) -> bool {
    // Traps 64 to 67 come from the manager and are about somebody else.
    let about = match notice.details() {
        Details::Gid(_, details) => details.gid,
        _ => notice.issuer_gid,
    };
    let from = if info.gid == Gid::default() {
        let range = info.lid_range_begin..=info.lid_range_end;
        info.lid_range_begin.0 == InformInfo::ALL || range.contains(&notice.issuer_lid)
    } else {
        info.gid == about
    };
    let trap = info.trap_number.0 == InformInfo::ALL || info.trap_number == notice.trap_number;
    let producer =
        info.producer_type == InformInfo::ALL_PRODUCERS || info.producer_type == notice.producer_type;
    from && trap
        && producer
        && (info.is_generic == 1) == notice.is_generic
        && info.wants_type(notice.notice_type)
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
