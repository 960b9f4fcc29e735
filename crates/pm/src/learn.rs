//! Learns the fabric through MADs alone, one question after the other.
//!
//! ```text
//!  own port (SMP) ─▶ NodeRecords ─▶ PortInfoRecords ─▶ LinkRecords ─▶ InformInfo for 64, 65, 128 ─▶ Fabric
//! ```
//!
//! Between two such passes it asks from time to time for its own subscriptions (InformInfoRecord):
//! they are gone when the subnet manager has restarted, and then hosts have forgotten its notices
//! too, and somebody may have come or gone unheard.
//!
//! The own port says where the subnet manager is. Tables come by RMPP; each part that comes puts off the deadline.
//! Without subscriptions the fabric is learned all the same, and asked for again when it is time.

use weft_machine::{Time, Timer};
use weft_mgmt::rmpp::{Inbox, InboxLimits};
use weft_mgmt::{own_port, records, subnet_administration};
use weft_wire::{
    AddressedMad, AttributeId, Gid, Guid, InformInfoRecord, Lid, LinkRecord, Mad, Method, MgmtClass,
    NodeRecord, PortInfo, PortInfoRecord, PortNum, RmppType, ServiceLevel, TransactionId, sa_attribute,
    status, trap,
};

use crate::fabric::{Fabric, Records};
use crate::request;
use crate::{Options, PmTimer, Question};

/// After somebody has come or gone more are likely to.
pub(crate) const SETTLE: Time = Time::from_millis(100);
/// After a port has changed, what subnet administration tells follows a sweep that is yet to come.
pub(crate) const SETTLE_LINKS: Time = Time::from_secs(1);
/// After a question that was not answered.
const PAUSE: Time = Time::from_secs(1);
/// From one look at the own subscriptions to the next.
const PULSE: Time = Time::from_secs(2);
/// Where the records begin in a message.
const HEAD: usize = 56;

/// What PortInfo says of the own port.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct OwnPort {
    pub(crate) lid: Lid,
    pub(crate) sm_lid: Lid,
    pub(crate) service_level: ServiceLevel,
}

/// What has come of asking.
#[derive(Debug)]
pub(crate) enum Outcome {
    Learned(OwnPort, Fabric),
    /// The subnet manager does not know the subscriptions any more that it knew before.
    Forgotten,
    Failed(Question, Option<u16>),
}

/// The question that is on.
#[derive(Debug)]
struct Call {
    question: Question,
    request: AddressedMad,
    id: u32,
    /// How often it may be asked again.
    retries: u32,
    deadline: Time,
}

/// Learning.
#[derive(Debug, Default)]
pub(crate) struct Learn {
    timeout: Time,
    retries: u32,
    refresh: Time,
    service_level: Option<ServiceLevel>,
    m_key: weft_wire::MKey,
    call: Option<Call>,
    /// When to begin next; `None` while it is on and nothing has happened meanwhile, and while there is no port.
    due: Option<Time>,
    /// When to look at the own subscriptions next; `None` while there are none to look at.
    pulse: Option<Time>,
    /// Whether they have been seen.
    confirmed: bool,
    port: PortNum,
    gid: Gid,
    own: OwnPort,
    records: Records,
    inbox: Inbox,
    next_id: u32,
    /// Requests sent, and how many of them again.
    pub(crate) sent: u64,
    pub(crate) retried: u64,
    /// Subscriptions refused or not answered.
    pub(crate) unsubscribed: u64,
    /// MADs that no one waited for.
    pub(crate) ignored: u64,
}

impl Learn {
    pub(crate) fn new(options: &Options) -> Self {
        Self {
            timeout: options.sa_timeout,
            retries: options.retries,
            refresh: options.refresh,
            service_level: options.management_sl,
            m_key: options.m_key,
            inbox: Inbox::new(InboxLimits { transfers: 4, lingering: 16, ..InboxLimits::default() }),
            ..Self::default()
        }
    }

    /// Begins at this port.
    pub(crate) fn attach(&mut self, now: Time, port: PortNum, guid: Guid) {
        self.stop();
        (self.port, self.gid.guid) = (port, guid);
        // An earlier program at this port may have answers on their way.
        self.next_id = (now.as_nanos() ^ now.as_nanos() >> 32) as u32;
        self.due = Some(now);
    }

    /// Forgets what is under way, and asks nothing any more.
    pub(crate) fn stop(&mut self) {
        (self.call, self.due, self.pulse) = (None, None, None);
        self.records = Records::default();
        self.inbox = Inbox::new(InboxLimits { transfers: 4, lingering: 16, ..InboxLimits::default() });
    }

    /// The fabric is to be asked for again after so long.
    pub(crate) fn wish(&mut self, now: Time, after: Time) {
        let soon = now + after;
        self.due = Some(self.due.map_or(soon, |due| due.min(soon)));
    }

    /// The fabric is to be asked for now, whatever is under way.
    pub(crate) fn begin_anew(&mut self, now: Time) {
        self.call = None;
        self.due = Some(now);
    }

    /// Asks what is to be asked now.
    pub(crate) fn run(&mut self, now: Time, out: &mut dyn FnMut(AddressedMad)) {
        if self.call.is_none() && self.due.is_some_and(|due| due <= now) {
            self.due = None;
            self.records = Records::default();
            self.ask(now, Question::OwnPort, out);
        }
        if self.call.is_none() && self.pulse.is_some_and(|pulse| pulse <= now) {
            self.pulse = None;
            self.ask(now, Question::Subscriptions, out);
        }
        while let Some(mad) = self.inbox.poll_transmit() {
            out(mad);
        }
    }

    fn ask(&mut self, now: Time, question: Question, out: &mut dyn FnMut(AddressedMad)) {
        self.next_id = self.next_id.wrapping_add(1);
        let request = request::with_id(self.request(question), self.next_id);
        let deadline = now + self.timeout;
        self.sent += 1;
        self.call = Some(Call { question, request, id: self.next_id, retries: self.retries, deadline });
        out(request);
    }

    fn request(&self, question: Question) -> AddressedMad {
        let (lid, sl) = (self.own.sm_lid, self.own.service_level);
        let table =
            |attribute: AttributeId| subnet_administration(lid, sl, Method::GetTable, attribute, 0, &[]);
        match question {
            Question::Subscriptions => request::subscriptions(lid, sl, self.gid),
            Question::OwnPort => own_port(self.port, self.m_key),
            Question::Nodes => table(sa_attribute::NODE_RECORD),
            Question::Ports => table(sa_attribute::PORT_INFO_RECORD),
            Question::Cables => table(sa_attribute::LINK_RECORD),
            Question::Arrivals => request::subscribe(lid, sl, trap::GID_IN_SERVICE),
            Question::Departures => request::subscribe(lid, sl, trap::GID_OUT_OF_SERVICE),
            Question::LinkChanges => request::subscribe(lid, sl, trap::LINK_STATE_CHANGE),
        }
    }

    /// Takes an answer of the own port or of subnet administration.
    pub(crate) fn receive(
        &mut self,
        now: Time,
        mad: &AddressedMad,
        out: &mut dyn FnMut(AddressedMad),
    ) -> Option<Outcome> {
        if !self.is_awaited(mad) {
            self.ignored += 1;
            if mad.mad.is_rmpp_active() && mad.mad.rmpp().kind == RmppType::Data {
                self.inbox.turn_away(mad);
            }
            return None;
        }
        if !mad.mad.is_rmpp_active() {
            return self.answered(now, mad.mad.status(), mad, &mad.mad.0, out);
        }
        let call = self.call.as_mut()?;
        call.deadline = now + self.timeout;
        let whole = self.inbox.handle(now, mad)?;
        let head = whole.data.first_chunk::<HEAD>()?;
        let mut bytes = [0; 256];
        bytes[..HEAD].copy_from_slice(head);
        let status = Mad(bytes).status();
        self.answered(now, status, mad, &whole.data, out)
    }

    fn is_awaited(&self, mad: &AddressedMad) -> bool {
        self.call.as_ref().is_some_and(|call| {
            let asked = &call.request.mad;
            let TransactionId(id) = mad.mad.transaction_id();
            mad.mad.class() == asked.class()
                && Some(mad.mad.method()) == asked.method().response()
                && mad.mad.attribute_id() == asked.attribute_id()
                && id as u32 == call.id
                && (asked.class() == MgmtClass::SubnDirected || mad.lid == call.request.lid)
        })
    }

    fn answered(
        &mut self,
        now: Time,
        status: u16,
        mad: &AddressedMad,
        message: &[u8],
        out: &mut dyn FnMut(AddressedMad),
    ) -> Option<Outcome> {
        let question = self.call.as_ref()?.question;
        if status & status::BUSY != 0 {
            // It is asked again at the deadline.
            return None;
        }
        if question == Question::Subscriptions {
            return self.take_subscriptions(now, status, message);
        }
        let subscribes = is_subscription(question);
        if status != status::OK && !subscribes {
            return Some(self.fail(now, Some(status)));
        }
        self.unsubscribed += u64::from(status != status::OK);
        match question {
            Question::OwnPort => {
                if let Err(failure) = self.take_own_port(now, mad) {
                    return Some(failure);
                }
            }
            Question::Nodes => {
                for record in records::<NodeRecord>(message) {
                    self.records.add_node(record);
                }
            }
            Question::Ports => {
                for record in records::<PortInfoRecord>(message) {
                    self.records.add_port(&record);
                }
            }
            Question::Cables => {
                for record in records::<LinkRecord>(message) {
                    self.records.add_link(&record);
                }
            }
            Question::Arrivals | Question::Departures | Question::LinkChanges | Question::Subscriptions => {}
        }
        self.proceed(now, question, out)
    }

    fn take_own_port(&mut self, now: Time, mad: &AddressedMad) -> Result<(), Outcome> {
        let info = PortInfo::decode(mad.mad.smp_data());
        if !info.lid.is_unicast() || !info.master_sm_lid.is_unicast() {
            // No subnet manager has been here yet.
            return Err(self.fail(now, None));
        }
        let service_level = self.service_level.unwrap_or(info.master_sm_sl);
        self.own = OwnPort { lid: info.lid, sm_lid: info.master_sm_lid, service_level };
        self.gid.prefix = info.gid_prefix;
        Ok(())
    }

    /// Subscriptions that were never seen cannot have been forgotten: a manager that does not show them, or shows them
    /// otherwise, is not asked for them before the next pass.
    fn take_subscriptions(&mut self, now: Time, status: u16, message: &[u8]) -> Option<Outcome> {
        self.call = None;
        let mine = records::<InformInfoRecord>(message);
        let known =
            status == status::OK && mine.filter(|record| record.subscriber_gid == self.gid).count() > 0;
        if known {
            self.confirmed = true;
            self.pulse = Some(now + PULSE);
            return None;
        }
        let forgotten = status == status::OK && self.confirmed;
        forgotten.then_some(Outcome::Forgotten)
    }

    /// Goes on to the next question, or to the end.
    fn proceed(&mut self, now: Time, after: Question, out: &mut dyn FnMut(AddressedMad)) -> Option<Outcome> {
        let next = match after {
            Question::OwnPort => Question::Nodes,
            Question::Nodes => Question::Ports,
            Question::Ports => Question::Cables,
            Question::Cables => Question::Arrivals,
            Question::Arrivals => Question::Departures,
            Question::Departures => Question::LinkChanges,
            Question::LinkChanges | Question::Subscriptions => {
                self.call = None;
                (self.pulse, self.confirmed) = (Some(now), false);
                self.due = Some(self.due.unwrap_or(now + self.refresh));
                let records = std::mem::take(&mut self.records);
                return Some(Outcome::Learned(self.own, records.into_fabric()));
            }
        };
        self.ask(now, next, out);
        None
    }

    fn fail(&mut self, now: Time, status: Option<u16>) -> Outcome {
        let question = self.call.take().map_or(Question::OwnPort, |call| call.question);
        self.records = Records::default();
        self.due = Some(now + PAUSE);
        Outcome::Failed(question, status)
    }

    /// Lets time pass.
    pub(crate) fn expire(&mut self, now: Time, out: &mut dyn FnMut(AddressedMad)) -> Option<Outcome> {
        self.inbox.handle_timeout(now);
        let timeout = self.timeout;
        let call = self.call.as_mut().filter(|call| call.deadline <= now)?;
        if call.retries > 0 {
            call.retries -= 1;
            call.deadline = now + timeout;
            (self.sent, self.retried) = (self.sent + 1, self.retried + 1);
            out(call.request);
            return None;
        }
        let question = call.question;
        if question == Question::Subscriptions {
            (self.call, self.pulse) = (None, Some(now + PULSE));
            return None;
        }
        if is_subscription(question) {
            self.unsubscribed += 1;
            return self.proceed(now, question, out);
        }
        Some(self.fail(now, None))
    }

    pub(crate) fn next_timer(&self) -> Option<Timer<PmTimer>> {
        let (due, pulse) = if self.call.is_none() { (self.due, self.pulse) } else { (None, None) };
        let deadline = self.call.as_ref().map(|call| call.deadline);
        Timer::earliest([
            self.inbox.next_timer().map(|timer| timer.map(PmTimer::Transfer)),
            Timer::new(deadline, PmTimer::Question),
            Timer::new(due, PmTimer::Learn),
            Timer::new(pulse, PmTimer::Subscriptions),
        ])
    }
}

fn is_subscription(question: Question) -> bool {
    matches!(question, Question::Arrivals | Question::Departures | Question::LinkChanges)
}
