//! Subnet administration (IBA chapter 15): answers questions, keeps services and subscriptions, and forwards traps.
//!
//! ```text
//!  GMP ──▶ (method, attribute) ──▶ records of the last sweep ──▶ component mask ──▶ one MAD, or a table by RMPP
//!                               └▶ services, subscriptions
//! ```
//!
//! Answers show the subnet as the last sweep left it, in order of LIDs, then ports; before it has ended they are "busy". A table that
//! sweeps do not read is read when it is first asked for. **Invariant:** every request is answered once, with records or with a status,
//! unless it repeats one that is being answered; services, subscriptions, transfers and waiting requests are bounded.

mod changes;
mod counts;
mod ends;
mod inform;
mod levels;
mod moves;
mod own;
mod path;
mod query;
mod received;
mod records;
mod repath;
mod requesters;
mod service;
mod shares;
mod sight;
mod tables;
mod transfers;
mod view;
mod wanted;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use weft_machine::{Time, Timer};
use weft_wire::{
    AddressedMad, AttributeId, Details, GidDetails, Guid, InformInfo, Lid, Mad, Method, Notice, PathRecord,
    SA_CLASS_VERSION, SaMad, SmKey, TrapNumber, VmMove, sa_attribute, sa_status, status, trap,
};

use crate::election::Peer;
use crate::knowledge::{Memory, Subnet};
use crate::moves::Want;
use crate::{Event, Options, SmTimer};
use inform::{Subscriptions, own_notice};
use path::PathQuery;
use query::{Found, Query};
use received::Reports;
use service::{Offer, Services};
use tables::{Kind, Tables};
use transfers::{Heard, Transfers};
use view::{Rates, View};

pub use counts::SaCounts;
pub(crate) use levels::{Asked, Releveled};
pub(crate) use received::Received;
pub(crate) use tables::AskedTables;

/// What is to be done with a request.
enum Verdict {
    /// Records, in one MAD or as a table.
    Found(Found),
    /// A status.
    Refused(u16),
    /// Nothing before these tables have been read.
    Read(Kind),
    /// Nothing before the manager has seen to it.
    Move(Box<VmMove>, Want),
    /// That it may not move LIDs, and why.
    NoMove(Box<VmMove>),
}

/// What a sweep says beside the subnet itself.
#[derive(Debug)]
pub(crate) struct Published {
    pub(crate) myself: Myself,
    /// GUIDs that are not there until they have moved.
    pub(crate) away: BTreeSet<Guid>,
    /// Whether the sweep has routed.
    pub(crate) is_routed: bool,
}

/// This manager, as its own SMInfoRecord has it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Myself {
    pub(crate) guid: Guid,
    pub(crate) lid: Lid,
    pub(crate) act_count: u32,
}

/// Subnet administration.
#[derive(Debug, Default)]
pub(crate) struct Administrator {
    options: Options,
    /// `None` before the first sweep has ended.
    view: Option<View>,
    /// What ports of hosts carry, as their peers last heard it.
    rates: Rates,
    /// Pairs of LIDs whose level has changed and whose ends have not been notified yet; see [`changes`].
    pairs: VecDeque<(Lid, Lid)>,
    /// Whether the routing before the port was lost had a level for each pair.
    had_levels: bool,
    /// Virtual functions that have gone, with the LIDs that they had (paper 004, algorithm 1: the table of repath traps).
    departed: BTreeMap<Guid, Lid>,
    myself: Myself,
    /// Other managers, in order of GUIDs.
    pub(crate) managers: Vec<Peer>,
    tables: Tables,
    services: Services,
    subscriptions: Subscriptions,
    transfers: Transfers,
    /// What hosts receive.
    reports: Reports,
    /// Requests that wait for tables.
    waiting: VecDeque<(AddressedMad, Kind)>,
    /// Requests to move LIDs that the manager has not taken yet.
    pub(crate) moves: Vec<(AddressedMad, VmMove, Want)>,
    /// All of those that it has not answered.
    moving: Vec<AddressedMad>,
    /// GUIDs that are away for a while: no one is notified that they go, and that they are back.
    away: BTreeSet<Guid>,
    outbox: VecDeque<AddressedMad>,
    /// What is to be said. Taken after every input, each of which adds a few.
    pub(crate) events: Vec<Event>,
    counts: SaCounts,
}

impl Administrator {
    pub(crate) fn new(options: &Options) -> Self {
        Self {
            subscriptions: Subscriptions::new(options),
            transfers: Transfers::new(options.routing.lmc),
            options: options.clone(),
            ..Self::default()
        }
    }

    /// The path records from the port with this GUID to every other.
    pub(crate) fn paths_from(&self, from: Guid) -> Vec<PathRecord> {
        let Some(view) = &self.view else { return Vec::new() };
        let Some(source) = view.by_guid(from) else { return Vec::new() };
        let anything = Mad::default();
        let query = Query::new(&anything, self.options.keys.sa_key);
        let query = self.paths(&query, view, true);
        view.ends.iter().filter(|end| end.guid != from).filter_map(|end| query.first(source, end)).collect()
    }

    /// A sweep has ended and left the subnet like this. Subscribers are notified of who has come
    /// and who has gone, but for those who are `away` until they have moved.
    pub(crate) fn subnet_changed(
        &mut self,
        now: Time,
        subnet: &Subnet,
        memory: &Memory,
        Published { myself, away, is_routed }: Published,
    ) {
        let view = View::new(subnet, memory, &self.options);
        let old = self.view.take().unwrap_or_default();
        (self.myself, self.tables) = (myself, Tables::default());
        let (rates, rerated) = view.rates(&self.rates, &away);
        self.rates = rates;
        // Those who were away before count as there: they have not been reported.
        let before: BTreeSet<Guid> = old.guids().chain(std::mem::take(&mut self.away)).collect();
        let mut after: BTreeSet<Guid> = view.guids().collect();
        self.away = away.into_iter().filter(|guid| before.contains(guid) && !after.contains(guid)).collect();
        after.extend(&self.away);
        self.services.leave(|port| !after.contains(&port) && old.requesters.is_guest(port));
        if !self.subscriptions.is_empty() {
            self.subscriptions.retain(&after);
            let gone = before.difference(&after).map(|guid| (trap::GID_OUT_OF_SERVICE, guid));
            let come = after.difference(&before).map(|guid| (trap::GID_IN_SERVICE, guid));
            for (number, guid) in gone.chain(come) {
                self.subscriptions.report(&self.change(number, *guid, &view), None, None, &view);
            }
            self.signal(&old, &view, is_routed);
            for guid in rerated.into_iter().filter(|guid| before.contains(guid)) {
                self.tell_rate(guid, &view);
            }
        }
        self.signal_moves(&old, &view);
        (self.had_levels, self.view) = (view.levels().is_some(), Some(view));
        self.flush(now);
    }

    /// Trap 64 or 65 about a port.
    fn change(&self, number: TrapNumber, guid: Guid, view: &View) -> Notice {
        let details = GidDetails { gid: view.gid(guid), ..GidDetails::default() };
        own_notice(self.myself.lid, &Details::Gid(number, details))
    }

    /// A trap has come from the port with this LID.
    pub(crate) fn hear(&mut self, now: Time, from: Lid, notice: &Notice) {
        if let Some(view) = &self.view {
            let cause = Some(view.host_at(from));
            self.subscriptions.report(notice, None, cause, view);
        }
        self.flush(now);
    }

    /// The manager has lost its port. Services and subscriptions are kept.
    pub(crate) fn detach(&mut self, now: Time) {
        self.view = None;
        self.reports.forget();
        self.pairs.clear();
        self.waiting.clear();
        self.moves.clear();
        self.moving.clear();
        self.outbox.clear();
        self.counts.transfers_failed += self.transfers.abandon();
        self.subscriptions.abandon(now);
    }

    /// Another manager is in charge now: hosts offer their services and subscribe there.
    pub(crate) fn resign(&mut self, now: Time) {
        self.detach(now);
        self.services.clear();
        self.subscriptions.clear();
    }

    /// The tables that somebody waits for.
    pub(crate) fn wanted_tables(&self) -> BTreeSet<Kind> {
        let unknown = self.waiting.iter().map(|(_, kind)| *kind).filter(|kind| !self.tables.knows(*kind));
        unknown.collect()
    }

    /// Takes the tables that were read, and answers those who waited for them.
    pub(crate) fn take_tables(&mut self, now: Time, read: AskedTables) {
        self.tables.take(read);
        for (request, _) in std::mem::take(&mut self.waiting) {
            self.request(now, &request);
        }
        self.flush(now);
    }

    /// A MAD of this class.
    pub(crate) fn receive(&mut self, now: Time, received: &AddressedMad, act_count: u32) {
        self.myself.act_count = act_count;
        self.services.expire(now);
        let heard = if !received.mad.method().is_response() {
            // Most requests are one MAD, of which nothing is looked up here.
            let beside = if received.mad.rmpp().active { self.beside(received.lid) } else { Vec::new() };
            self.transfers.receive(now, received, &beside)
        } else if self.subscriptions.answered(now, received) {
            Heard::Known
        } else {
            Heard::Stray
        };
        // A request that came in segments is acknowledged before it is answered.
        self.flush(now);
        // What wants no answer gets none.
        let wants_answer = |request: &AddressedMad| {
            !matches!(request.mad.method(), Method::Send | Method::Trap | Method::TrapRepress)
        };
        match heard {
            Heard::Request(request) if wants_answer(&request) && !self.is_repeated(&request) => {
                self.counts.count_request(&request.mad);
                self.request(now, &request);
            }
            Heard::Known => {}
            Heard::Request(_) | Heard::Stray => self.counts.ignored += 1,
        }
        self.flush(now);
    }

    /// Whether this request is being answered already.
    fn is_repeated(&self, request: &AddressedMad) -> bool {
        self.transfers.is_serving(request)
            || self.waiting.iter().any(|(other, _)| is_same(other, request))
            || self.moving.iter().any(|other| is_same(other, request))
    }

    fn request(&mut self, now: Time, request: &AddressedMad) {
        // Nothing is looked up for who has no room for the answer.
        let is_table = request.mad.method() == Method::GetTable;
        if is_table && !self.transfers.may_begin(request, &self.beside(request.lid)) {
            return self.refuse(request, status::BUSY);
        }
        match self.judge(now, request) {
            Verdict::Found(found) if is_table => self.send_table(now, request, &found),
            Verdict::Found(found) => {
                let mut mad = answer_to(&request.mad, status::OK, found.offset);
                let mut data = [0; weft_wire::SA_DATA_SIZE];
                let length = found.bytes.len().min(data.len());
                data[..length].copy_from_slice(&found.bytes[..length]);
                SaMad::data.set(&mut mad.0, data);
                self.counts.answered += 1;
                self.outbox.push_back(AddressedMad { mad, ..*request });
            }
            Verdict::Refused(status) => self.refuse(request, status),
            Verdict::NoMove(answer) => self.answer_move(now, request, &answer),
            Verdict::Move(ask, want) => self.line_up(request, *ask, want),
            Verdict::Read(kind) => self.wait_for(request, kind),
        }
    }

    fn send_table(&mut self, now: Time, request: &AddressedMad, found: &Found) {
        let head = answer_to(&request.mad, status::OK, found.offset);
        let (answer, beside) = (AddressedMad { mad: head, ..*request }, self.beside(request.lid));
        if self.transfers.send(now, &answer, &beside, &found.bytes) {
            self.counts.answered += 1;
        } else {
            self.refuse(request, status::BUSY);
        }
    }

    fn refuse(&mut self, request: &AddressedMad, status: u16) {
        *(if status == status::BUSY { &mut self.counts.limited.busy } else { &mut self.counts.refused }) += 1;
        self.outbox.push_back(AddressedMad { mad: answer_to(&request.mad, status, 0), ..*request });
    }

    fn judge(&mut self, now: Time, request: &AddressedMad) -> Verdict {
        let mad = &request.mad;
        if mad.header().class_version != SA_CLASS_VERSION {
            return Verdict::Refused(status::BAD_VERSION);
        }
        let mut query = Query::new(mad, self.options.keys.sa_key);
        let Some(view) = &self.view else { return Verdict::Refused(status::BUSY) };
        if !query.trusted && SaMad::sm_key.get(&mad.0) != SmKey(0) {
            // A wrong key is worse than none.
            return Verdict::Refused(sa_status::REQ_DENIED);
        }
        if self.options.sa.sa_partitions && !query.trusted {
            query.sight = view.sight(request.lid);
        }
        let done = match (mad.method(), mad.attribute_id()) {
            (Method::Get, AttributeId::ClassPortInfo) => Ok(self.class_port_info()),
            (Method::Set, AttributeId::InformInfo) => {
                self.subscriptions.set(request, &query, view).map(|info: InformInfo| plain(&info.encode()))
            }
            (Method::Set, AttributeId::Notice) => {
                let needs_key = self.options.sa.repath_needs_key;
                let done = repath::request(&mut self.subscriptions, request, &query, needs_key, view);
                done.map(|(notice, event)| {
                    self.counts.repaths += 1;
                    self.events.push(event);
                    plain(&notice.encode())
                })
            }
            (Method::Set | Method::Get, sa_attribute::RECEIVED_DATA) => {
                let asked = received::Asked { request, query: &query, view, options: &self.options };
                asked.carry_out(now, &mut self.reports).map(|part| plain(&part.encode()))
            }
            (Method::Set | Method::Get, sa_attribute::VM_MOVE)
            | (Method::GetTable, sa_attribute::VM_MOVE_WRITE)
                if !self.options.lids_stay() =>
            {
                return match moves::admit(request, &query, view, &self.options) {
                    Ok(ask) => Verdict::Move(Box::new(ask), moves::want(mad.method())),
                    Err(answer) => Verdict::NoMove(answer),
                };
            }
            (Method::Set, sa_attribute::SERVICE_RECORD) => match self.whose(&query, view) {
                Ok(port) => {
                    let from = view.by_lid(request.lid).map_or(Guid(0), |end| end.guid);
                    let offer = Offer { from, port, view, away: &self.away };
                    self.services.set(now, &query, &offer)
                }
                Err(verdict) => {
                    let is_no_ones = matches!(verdict, Verdict::Refused(sa_status::REQ_INVALID_GID));
                    self.counts.limited.service_gids += u64::from(is_no_ones);
                    return verdict;
                }
            },
            (Method::Delete, sa_attribute::SERVICE_RECORD) => self.services.delete(now, &query),
            (Method::Get, sa_attribute::PATH_RECORD) => self.paths(&query, view, true).get(),
            (Method::GetTable, sa_attribute::PATH_RECORD) => self.paths(&query, view, false).table(),
            (method @ (Method::Get | Method::GetTable), attribute) => match self.missing(attribute) {
                Some(kind) => return Verdict::Read(kind),
                None if method == Method::Get => {
                    self.records(now, attribute, &query, view).and_then(Found::exactly_one)
                }
                None => self.records(now, attribute, &query, view),
            },
            (Method::Set | Method::Delete | Method::GetMulti | Method::GetTraceTable, _) => {
                Err(status::BAD_METHOD_ATTRIBUTE)
            }
            _ => Err(status::BAD_METHOD),
        };
        done.map_or_else(Verdict::Refused, Verdict::Found)
    }

    /// The tables that records of this type come from, where they have not been read.
    fn missing(&self, attribute: AttributeId) -> Option<Kind> {
        let kind = match attribute {
            sa_attribute::P_KEY_TABLE_RECORD => Kind::PKeys,
            sa_attribute::VL_ARBITRATION_RECORD => Kind::VlArbitration,
            sa_attribute::GUID_INFO_RECORD => Kind::Guids,
            _ => return None,
        };
        Some(kind).filter(|kind| !self.tables.knows(*kind))
    }

    /// The records of this type that match.
    fn records(
        &self,
        now: Time,
        attribute: AttributeId,
        query: &Query<'_>,
        view: &View,
    ) -> Result<Found, u16> {
        match attribute {
            sa_attribute::NODE_RECORD => view.node_records(query),
            sa_attribute::PORT_INFO_RECORD => view.port_info_records(query),
            sa_attribute::SL_TO_VL_TABLE_RECORD => view.lane_records(query),
            sa_attribute::SWITCH_INFO_RECORD => view.switch_info_records(query),
            sa_attribute::LINEAR_FORWARDING_TABLE_RECORD => view.forwarding_records(query),
            sa_attribute::SM_INFO_RECORD => self.managers(query),
            sa_attribute::LINK_RECORD => view.link_records(query),
            sa_attribute::GUID_INFO_RECORD => view.guid_records(query, &self.tables),
            sa_attribute::SERVICE_RECORD => self.services.select(now, query),
            // Who may use which partition is for those to know who are trusted (IBA 15.4.1).
            sa_attribute::P_KEY_TABLE_RECORD if !query.trusted => Err(sa_status::REQ_INVALID),
            sa_attribute::P_KEY_TABLE_RECORD => view.p_key_records(query, &self.tables),
            sa_attribute::VL_ARBITRATION_RECORD => view.arbitration_records(query, &self.tables),
            sa_attribute::INFORM_INFO_RECORD => self.subscriptions.select(query, view),
            _ => Err(status::BAD_METHOD_ATTRIBUTE),
        }
    }

    fn paths<'a>(&self, query: &'a Query<'a>, view: &'a View, single: bool) -> PathQuery<'a> {
        PathQuery::new(query, view, self.options.sa.subnet_timeout & 0x1f, single)
    }

    /// Lets time pass.
    pub(crate) fn handle_timeout(&mut self, now: Time) {
        self.services.expire(now);
        self.subscriptions.expire(now);
        self.transfers.expire(now);
        self.flush(now);
    }

    /// When it next wants to be woken, and what for.
    pub(crate) fn next_timer(&self) -> Option<Timer<SmTimer>> {
        let (services, subscriptions) = (self.services.next_timer(), self.subscriptions.next_timer());
        Timer::earliest([services, subscriptions, self.transfers.next_timer()])
    }

    /// What is to be sent.
    pub(crate) fn poll_output(&mut self) -> Option<AddressedMad> {
        self.outbox.pop_front()
    }

    /// Puts everything that may be sent now into the outbox, which is drained after every input.
    fn flush(&mut self, now: Time) {
        loop {
            while let Some(report) = self.subscriptions.poll_transmit(now) {
                self.outbox.push_back(report);
            }
            if !self.tell_next_pair() {
                break;
            }
        }
        while let Some(segment) = self.transfers.poll_transmit(now) {
            self.outbox.push_back(segment);
        }
    }
}

/// Whether a request is another one's repetition.
fn is_same(a: &AddressedMad, b: &AddressedMad) -> bool {
    (a.lid, a.remote_qp, a.mad) == (b.lid, b.remote_qp, b.mad)
}

/// An attribute that is no record.
fn plain(bytes: &[u8]) -> Found {
    Found { bytes: bytes.to_vec(), count: 1, offset: 0 }
}

/// The request turned into an answer. The key is shown to no one (IBA 15.4.1).
fn answer_to(request: &Mad, status: u16, offset: u16) -> Mad {
    let mut mad = *request;
    let method = match request.method() {
        Method::Set => Method::GetResp,
        // A table of traces is a table.
        Method::GetTraceTable => Method::GetTableResp,
        method => Method::from_code(method.code() | 0x80),
    };
    SaMad::method.set(&mut mad.0, method);
    SaMad::status.set(&mut mad.0, status);
    SaMad::rmpp.set(&mut mad.0, Default::default());
    SaMad::sm_key.set(&mut mad.0, SmKey(0));
    SaMad::attribute_offset.set(&mut mad.0, offset);
    mad
}
