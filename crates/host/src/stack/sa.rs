//! Questions to subnet administration (IBA 15.4), and what Reports say.
//!
//! ```text
//!            ask                 poll_transmit
//!   Wanted ───────▶ Transactions ─────────────▶ the manager's LID, on the service level of management
//!                        │ answered: Known
//!                        └ refused, or not answered: Failed ── after a while ──▶ Wanted
//! ```

use weft_machine::{Time, Timer};
use weft_mgmt::{Limits, RequestTimer, Transactions, Window, component_mask, subnet_administration};
use weft_wire::{
    AddressedMad, AttributeId, Details, Gid, Guid, InformInfo, Lid, Mad, Method, NodeInfo, NodeRecord,
    NodeType, Notice, PathRecord, PortFacts, QpNum, RepathDetails, RepathKind, SaMad, SaRecord, ServiceLevel,
    ServiceRecord, TrapNumber, trap,
};

use super::StackOptions;
use super::bulk::Bulk;
use super::paths::{Address, Capacity};

/// Questions in flight.
const WINDOW: u32 = 8;
/// Questions that wait: one for each path that can be, and the subscriptions.
const QUEUE_MAX: usize = 0xc010;
/// How long a subscriber takes to answer a Report: 4.096 µs times 2 to this power, about a second.
const RESPONSE_TIME: u8 = 18;

/// What is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Question {
    /// The path record of the path at this place.
    Path(u32),
    /// The LID of the port of the path at this place.
    Lid(u32),
    /// The subscription at this place.
    Subscribe(usize),
    /// A notice to the port at this LID that this one has moved.
    Tell(Lid),
    /// The GUID of the path by name at this place.
    Name(u32),
    /// The port that offers the name of this port's machine.
    Holder,
    /// The name of this port's machine is offered.
    Offer,
    /// What was offered is withdrawn.
    Withdraw,
}

#[derive(Debug)]
pub(super) struct SaClient {
    transactions: Transactions<Question>,
    /// The question for all paths at once.
    pub(super) bulk: Bulk,
    level: Option<ServiceLevel>,
}

impl SaClient {
    pub(super) fn new(options: &StackOptions) -> Self {
        let (timeout, retries) = (options.sa_timeout, options.sa_retries);
        let limits = Limits { window: Window::Fixed(WINDOW), timeout, retries, queue: QUEUE_MAX };
        let bulk = Bulk::new(timeout, options.handler_times.ask);
        Self { transactions: Transactions::new(limits), bulk, level: options.management_sl }
    }

    /// Whether there is somebody to ask.
    pub(super) fn can_ask(facts: &PortFacts) -> bool {
        facts.active && facts.lid.is_unicast() && facts.sm_lid.is_unicast()
    }

    /// Asks for a path record: one path, that can be gone both ways, from this port to another.
    pub(super) fn ask_path(&mut self, facts: &PortFacts, place: u32, to: Guid) -> bool {
        let gid = |guid| Gid { prefix: facts.gid_prefix, guid };
        let (sgid, dgid) = (gid(facts.guid), gid(to));
        let record = PathRecord { sgid, dgid, reversible: true, numb_path: 1, ..PathRecord::default() };
        let mask = component_mask::<PathRecord>(&["sgid", "dgid", "reversible", "numb_path"]);
        self.ask(facts, Question::Path(place), Method::Get, PathRecord::ATTRIBUTE, mask, &record.encode())
    }

    /// Asks where a port is.
    pub(super) fn ask_lid(&mut self, facts: &PortFacts, place: u32, port_guid: Guid) -> bool {
        let node_info = NodeInfo { port_guid, ..NodeInfo::default() };
        let record = NodeRecord { node_info, ..NodeRecord::default() };
        let mask = component_mask::<NodeRecord>(&["port_guid"]);
        self.ask(facts, Question::Lid(place), Method::Get, NodeRecord::ATTRIBUTE, mask, &record.encode())
    }

    /// Subscribes to a trap, whoever it comes from.
    pub(super) fn ask_to_hear(&mut self, facts: &PortFacts, place: usize, trap_number: TrapNumber) -> bool {
        let info = subscription(trap_number, true);
        let question = Question::Subscribe(place);
        self.ask(facts, question, Method::Set, AttributeId::InformInfo, 0, &info.encode())
    }

    /// Gives subscriptions up. Nothing else is sent before, and the answers are of no use.
    pub(super) fn give_up(&mut self, now: Time, facts: &PortFacts, held: &[(usize, TrapNumber)]) {
        self.abandon(now.as_nanos() ^ facts.guid.0);
        for &(place, trap_number) in held {
            let info = subscription(trap_number, false);
            let question = Question::Subscribe(place);
            self.ask(facts, question, Method::Set, AttributeId::InformInfo, 0, &info.encode());
        }
    }

    /// Asks for a notice to a peer that this port has come from a LID, perhaps the same.
    pub(super) fn ask_to_tell(&mut self, facts: &PortFacts, from: Lid, target: Lid) -> bool {
        let kind = RepathKind::NEW_LID;
        let moved = RepathDetails {
            kind,
            guid: facts.guid,
            slid: from,
            dlid: facts.lid,
            target,
            ..Default::default()
        };
        let notice = Notice::generic(NodeType::Hca, facts.lid, &Details::Repath(trap::REPATH, moved));
        self.ask(facts, Question::Tell(target), Method::Set, AttributeId::Notice, 0, &notice.encode())
    }

    /// Asks for a service by some of its components, or offers one.
    pub(super) fn ask_service(
        &mut self,
        facts: &PortFacts,
        question: Question,
        components: &[&str],
        record: &ServiceRecord,
    ) -> bool {
        let method = if question == Question::Offer { Method::Set } else { Method::Get };
        let mask = component_mask::<ServiceRecord>(components);
        self.ask(facts, question, method, ServiceRecord::ATTRIBUTE, mask, &record.encode())
    }

    /// Withdraws a service. Whether it could be asked.
    pub(super) fn withdraw(&mut self, facts: &PortFacts, record: &ServiceRecord) -> bool {
        let mask = component_mask::<ServiceRecord>(&["service_id", "service_gid", "service_p_key"]);
        let (method, attribute) = (Method::Delete, ServiceRecord::ATTRIBUTE);
        self.ask(facts, Question::Withdraw, method, attribute, mask, &record.encode())
    }

    /// Whether the question could be queued.
    fn ask(
        &mut self,
        facts: &PortFacts,
        question: Question,
        method: Method,
        attribute: AttributeId,
        mask: u64,
        record: &[u8],
    ) -> bool {
        let level = self.level.unwrap_or(facts.sm_sl);
        let asked = subnet_administration(facts.sm_lid, level, method, attribute, mask, record);
        self.transactions.offer(question, asked).is_ok()
    }

    /// Takes an answer: the question that it answers, or nothing.
    pub(super) fn answered(&mut self, now: Time, mad: &AddressedMad) -> Option<(Question, u16)> {
        let done = self.transactions.handle_response(now, mad)?;
        Some((done.key, mad.mad.status()))
    }

    /// The next question that no one has answered.
    pub(super) fn poll_failed(&mut self, now: Time) -> Option<Question> {
        self.transactions.poll_failed(now).map(|failed| failed.key)
    }

    pub(super) fn poll_transmit(&mut self, now: Time, facts: &PortFacts) -> Option<AddressedMad> {
        let question = self.transactions.poll_transmit(now);
        question.or_else(|| self.bulk.poll_transmit(now, facts, self.level.unwrap_or(facts.sm_sl)))
    }

    pub(super) fn next_timer(&self) -> Option<Timer<RequestTimer>> {
        Timer::earliest([self.transactions.next_timer(), self.bulk.next_timer()])
    }

    /// Whether nothing is asked.
    pub(super) fn is_idle(&self) -> bool {
        self.transactions.is_idle() && self.bulk.is_idle()
    }

    /// Forgets all questions.
    pub(super) fn abandon(&mut self, seed: u64) {
        self.transactions.abandon();
        self.bulk.abandon(seed);
        self.transactions.begin_ids_at(seed);
    }

    pub(super) fn stats(&self) -> &weft_mgmt::Stats {
        self.transactions.stats()
    }
}

/// That a trap is to be reported, whoever it comes from, or is not any more.
fn subscription(trap_number: TrapNumber, subscribe: bool) -> InformInfo {
    InformInfo {
        lid_range_begin: Lid(InformInfo::ALL),
        is_generic: 1,
        subscribe: subscribe.into(),
        notice_type: InformInfo::ALL,
        trap_number,
        qpn: QpNum::GSI,
        resp_time_value: RESPONSE_TIME,
        producer_type: InformInfo::ALL_PRODUCERS,
        ..InformInfo::default()
    }
}

/// Where the path record in an answer says that packets go, and what the way carries.
pub(super) fn path_in(mad: &Mad) -> Option<(Address, Capacity)> {
    path_of(&PathRecord::from_bytes(&SaMad::data.get(&mad.0)))
}

/// The same of a record.
pub(super) fn path_of(record: &PathRecord) -> Option<(Address, Capacity)> {
    let PathRecord { dlid, sl, p_key, rate, mtu, .. } = *record;
    let address = Address { dlid, service_level: sl, p_key };
    Some((address, Capacity::of(rate, mtu))).filter(|_| dlid.is_unicast())
}

/// The LID that the node record in an answer says, on service level 0.
pub(super) fn lid_in(mad: &Mad) -> Option<(Address, Capacity)> {
    let record = NodeRecord::from_bytes(&SaMad::data.get(&mad.0));
    let address = Address { dlid: record.lid, ..Address::unasked() };
    Some((address, Capacity::default())).filter(|_| record.lid.is_unicast())
}

/// The notice in a Report.
pub(super) fn notice_in(mad: &Mad) -> Option<Notice> {
    let data = SaMad::data.get(&mad.0);
    data.first_chunk().map(Notice::decode).filter(|notice| notice.is_generic)
}

/// The answer to a Report: the same with another method (IBA 13.4.8.1).
pub(super) fn report_response(report: &AddressedMad) -> AddressedMad {
    let mut answer = *report;
    SaMad::method.set(&mut answer.mad.0, Method::ReportResp);
    SaMad::status.set(&mut answer.mad.0, 0);
    answer
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mask_has_the_bits_of_the_architecture() {
        let path = component_mask::<PathRecord>(&["sgid", "dgid", "reversible", "numb_path"]);
        assert_eq!(path, 1 << 2 | 1 << 3 | 1 << 11 | 1 << 12);
        assert_eq!(component_mask::<NodeRecord>(&["port_guid"]), 1 << 8);
    }
}
