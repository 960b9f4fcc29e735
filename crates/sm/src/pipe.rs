//! How steps reach the wire: every SMP of the manager passes through here and through one window.

use std::collections::VecDeque;

use weft_machine::Time;
use weft_mgmt::{DirectedPath, Limits, Request, SmpRoute, Stats, Transactions};
use weft_wire::{AddressedMad, AttributeId, MKey, Mad, Method, MgmtClass, PortNum, Smp};

use crate::SmpCounts;

/// A port of a node in the list that a step works on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct PortAt {
    pub(crate) node: u32,
    pub(crate) port: PortNum,
}

/// What a request is about, for the step that made it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Key {
    /// Who is behind this port; `None` asks who we are.
    NodeInfo(Option<PortAt>),
    NodeDescription(u32),
    SwitchInfo(u32),
    /// Sets SwitchInfo's PortStateChange, which clears it.
    ClearChange(u32),
    PortInfo(PortAt),
    SmInfo(PortAt),
    Lft {
        node: u32,
        block: u16,
    },
    SlToVl(PortAt),
    VlArbitration(PortAt, VlBlock),
    /// The write, or the read, at this place of the step's plan.
    Write(u32),
}

/// The parts of a port's arbitration tables (IBA 14.2.5.9).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum VlBlock {
    LowFirst = 1,
    LowSecond = 2,
    HighFirst = 3,
    HighSecond = 4,
}

/// One request of a step.
pub(crate) struct Ask {
    pub(crate) key: Key,
    pub(crate) route: SmpRoute,
    pub(crate) request: Request,
}

/// A part of a sweep: makes requests, takes answers, and is done when it has no more of either.
pub(crate) trait Step {
    /// The next request; `None` when there is none until an answer comes.
    fn next(&mut self) -> Option<Ask>;
    /// Takes the answer to a request. Its status may say anything.
    fn answered(&mut self, key: Key, answer: &Mad);
    /// Takes note that nobody answered.
    fn failed(&mut self, key: Key);
    /// Whether what is still in flight does not matter any more.
    fn is_over(&self) -> bool {
        false
    }
    /// By which directed route a request can be made again that nobody answered by LID. A step that is asked this
    /// sends no more by LID: the way may be broken for others too.
    fn fallback(&mut self, _key: Key) -> Option<DirectedPath> {
        None
    }
}

/// The transactions, what is ready to be sent, and the counts of this sweep.
#[derive(Debug)]
pub(crate) struct Pipe {
    transactions: Transactions<Key>,
    /// Bounded by the window, because the driver drains it after every input.
    outbox: VecDeque<AddressedMad>,
    pub(crate) counts: SmpCounts,
    /// Requests answered or given up in this phase.
    pub(crate) done: u64,
    /// Requests made in this phase.
    pub(crate) asked: u64,
    /// What every request shows: the key that ports were told to ask for (IBA 14.2.4).
    m_key: MKey,
}

impl Pipe {
    pub(crate) fn new(limits: Limits) -> Self {
        let (counts, outbox) = (SmpCounts::default(), VecDeque::new());
        Self { transactions: Transactions::new(limits), outbox, counts, done: 0, asked: 0, m_key: MKey(0) }
    }

    /// The same, showing this key.
    pub(crate) fn with_m_key(self, m_key: MKey) -> Self {
        Self { m_key, ..self }
    }

    /// Fills the window from the step. True when the step has nothing more to ask and nothing in flight.
    pub(crate) fn pump(&mut self, now: Time, step: &mut dyn Step) -> bool {
        loop {
            if step.is_over() {
                self.transactions.abandon();
                return true;
            }
            while let Some(mad) = self.transactions.poll_transmit(now) {
                self.outbox.push_back(mad);
            }
            if self.transactions.in_flight() >= self.transactions.limits().window {
                return false;
            }
            let Some(ask) = step.next() else { return self.transactions.is_idle() };
            self.offer(ask.key, ask.request.by(&ask.route));
        }
    }

    /// Takes an answer to the step. False when nobody waits for it.
    pub(crate) fn receive(&mut self, now: Time, answer: &AddressedMad, step: &mut dyn Step) -> bool {
        let Some(completed) = self.transactions.handle_response(now, answer) else { return false };
        self.done += 1;
        step.answered(completed.key, &completed.mad.mad);
        true
    }

    /// Lets time pass: what nobody answered is told to the step, or asked again along a directed route.
    pub(crate) fn expire(&mut self, now: Time, step: &mut dyn Step) {
        while let Some(failed) = self.transactions.poll_failed(now) {
            let lid_routed = failed.request.mad.class() == MgmtClass::SubnLid;
            let fallback = if lid_routed { step.fallback(failed.key) } else { None };
            match fallback {
                Some(path) => {
                    let again = again(&failed.request.mad).by(&SmpRoute::Directed(path));
                    self.offer(failed.key, again);
                }
                None => {
                    self.done += 1;
                    step.failed(failed.key);
                }
            }
        }
    }

    /// Forgets everything in flight, and begins anew with ids that nobody used before.
    pub(crate) fn renew(&mut self, now: Time) {
        self.transactions.abandon();
        // The nanosecond of an attachment is hardly ever the same twice.
        self.transactions.begin_ids_at(now.as_nanos());
        self.outbox.clear();
    }

    pub(crate) fn poll_output(&mut self) -> Option<AddressedMad> {
        self.outbox.pop_front()
    }

    pub(crate) fn poll_timeout(&self) -> Option<Time> {
        self.transactions.poll_timeout()
    }

    pub(crate) fn stats(&self) -> &Stats {
        self.transactions.stats()
    }

    fn offer(&mut self, key: Key, mut request: AddressedMad) {
        Smp::m_key.set(&mut request.mad.0, self.m_key);
        self.counts.count(&request.mad);
        self.asked += 1;
        // The queue holds at most one request: it is filled only while the window has room.
        let refused = self.transactions.offer(key, request).is_err();
        debug_assert!(!refused, "the queue was full");
    }
}

/// The same request, without its route.
fn again(mad: &Mad) -> Request {
    match mad.method() {
        Method::Set => Request::set(mad.attribute_id(), mad.attribute_modifier(), mad.smp_data()),
        _ => Request::get(mad.attribute_id(), mad.attribute_modifier()),
    }
}

impl SmpCounts {
    pub(crate) fn count(&mut self, mad: &Mad) {
        let set = mad.method() == Method::Set;
        let counter = match (mad.attribute_id(), set) {
            (AttributeId::NodeInfo, _) => &mut self.get_node_info,
            (AttributeId::NodeDescription, _) => &mut self.get_node_description,
            (AttributeId::SwitchInfo, false) => &mut self.get_switch_info,
            (AttributeId::SwitchInfo, true) => &mut self.set_switch_info,
            (AttributeId::PortInfo, false) => &mut self.get_port_info,
            (AttributeId::PortInfo, true) => &mut self.set_port_info,
            (AttributeId::LinearForwardingTable, false) => &mut self.get_lft,
            (AttributeId::LinearForwardingTable, true) => &mut self.set_lft,
            (AttributeId::SlToVlTable, false) => &mut self.get_sl_to_vl,
            (AttributeId::SlToVlTable, true) => &mut self.set_sl_to_vl,
            (AttributeId::VlArbitrationTable, false) => &mut self.get_vl_arbitration,
            (AttributeId::VlArbitrationTable, true) => &mut self.set_vl_arbitration,
            _ => &mut self.get_sm_info,
        };
        *counter += 1;
    }
}
