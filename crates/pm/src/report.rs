//! Reports how much hosts receive, so that routing can learn from it.
//!
//! ```text
//!  N sweeps ─▶ PortRcvData of host ports since the report before ─▶ Get: a number ─▶ Set, part by part ─▶ the subnet manager
//! ```
//!
//! A report is made at most once in N sweeps, and none while one is under way or nothing was received. One that is refused or not
//! answered is given up; the next one is of what came after it. A subnet manager that has restarted or taken over has learned nothing:
//! it gets the last report that was taken once more, in a sweep each until it has taken it, but not for ever.
//!
//! **Invariant:** a report has at most [`ReceivedData::PARTS_MAX`] parts, of which [`WINDOW`] are in flight; hosts beyond are counted.

use std::collections::BTreeMap;

use weft_machine::{Time, Timer};
use weft_mgmt::{Limits, Stats, Transactions, Window, subnet_administration};
use weft_wire::{AddressedMad, Guid, Method, ReceivedData, SaMad, SmKey, sa_attribute, status};

use crate::fabric::Fabric;
use crate::learn::OwnPort;
use crate::request::with_key;
use crate::{Event, Options, PmTimer};

/// Parts in flight.
const WINDOW: u32 = 16;
/// PortRcvData counts words of four bytes (IBA 16.1.3.5).
const DATA_UNIT: u64 = 4;
/// The most hosts of a report.
const HOSTS_MAX: usize = ReceivedData::PARTS_MAX as usize * ReceivedData::PORTS;

/// How often a new subnet manager is offered the last report again.
const REPEATS_MAX: u32 = 10;

/// What a request is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Key {
    /// A number for a new report.
    Begin,
    Part,
}

/// A report that is under way.
#[derive(Debug)]
struct Report {
    /// Its number, once the subnet manager has given it.
    number: u32,
    received: Vec<(Guid, u64)>,
    /// Parts that are not acknowledged yet.
    left: usize,
}

/// What reports have counted.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counts {
    /// Reports that the subnet manager has taken.
    pub(crate) taken: u64,
    /// Reports that it refused, or that were not answered.
    pub(crate) given_up: u64,
    /// Hosts left out for want of room.
    pub(crate) left_out: u64,
}

/// Reporting.
#[derive(Debug, Default)]
pub(crate) struct Reports {
    /// The least number of sweeps between two reports; 0 is no reports.
    every: u64,
    pub(crate) own: OwnPort,
    /// The sweep of the last report, and what hosts had received then.
    since: Option<(u64, BTreeMap<Guid, u64>)>,
    under_way: Option<Report>,
    /// The last one that was taken: its number, and what it said.
    taken: Option<(u32, Vec<(Guid, u64)>)>,
    /// How often that is to be offered again at most.
    repeats_left: u32,
    sa_key: SmKey,
    requests: Transactions<Key>,
    pub(crate) counts: Counts,
}

impl Reports {
    pub(crate) fn new(options: &Options) -> Self {
        let limits = Limits {
            window: Window::Fixed(WINDOW),
            timeout: options.sa_timeout,
            retries: options.retries,
            queue: usize::from(ReceivedData::PARTS_MAX),
        };
        Self {
            every: options.learn_weights.into(),
            sa_key: options.sa_key,
            requests: Transactions::new(limits),
            ..Self::default()
        }
    }

    pub(crate) fn stats(&self) -> &Stats {
        self.requests.stats()
    }

    /// Forgets what is under way.
    pub(crate) fn abandon(&mut self, now: Time) {
        self.counts.given_up += u64::from(self.under_way.take().is_some());
        self.requests.abandon();
        self.requests.begin_ids_at(now.as_nanos());
    }

    /// The subnet manager has learned nothing yet.
    pub(crate) fn manager_is_new(&mut self) {
        self.repeats_left = if self.taken.is_some() { REPEATS_MAX } else { 0 };
    }

    /// A sweep has ended: a report, if it is time.
    pub(crate) fn swept(&mut self, sweep: u64, fabric: &Fabric) {
        if self.every == 0 || self.under_way.is_some() {
            return;
        }
        if let Some((number, received)) = self.taken.clone().filter(|_| self.repeats_left > 0) {
            self.repeats_left -= 1;
            return self.begin(number, received);
        }
        let is_due = self.since.as_ref().is_none_or(|(since, _)| since + self.every <= sweep);
        if !is_due {
            return;
        }
        let hosts = fabric.ports.iter().filter(|port| fabric.is_hca(port));
        let totals: BTreeMap<Guid, u64> =
            hosts.map(|port| (port.guid, port.state.counters.totals().port_rcv_data)).collect();
        if let Some((_, before)) = &self.since {
            let rise = |(guid, total): (&Guid, &u64)| {
                let words = total.saturating_sub(*before.get(guid)?);
                Some((*guid, words.saturating_mul(DATA_UNIT)))
            };
            self.begin(0, totals.iter().filter_map(rise).collect());
        }
        self.since = Some((sweep, totals));
    }

    /// Begins a report, or the one of this number again.
    fn begin(&mut self, again: u32, mut received: Vec<(Guid, u64)>) {
        if received.iter().all(|(_, bytes)| *bytes == 0) {
            return;
        }
        self.counts.left_out += received.len().saturating_sub(HOSTS_MAX) as u64;
        received.truncate(HOSTS_MAX);
        let left = received.len().div_ceil(ReceivedData::PORTS);
        if self.offer(Key::Begin, Method::Get, &ReceivedData { report: again, ..ReceivedData::default() }) {
            self.under_way = Some(Report { number: 0, received, left });
        }
    }

    fn offer(&mut self, key: Key, method: Method, part: &ReceivedData) -> bool {
        let OwnPort { sm_lid, service_level, .. } = self.own;
        let attribute = sa_attribute::RECEIVED_DATA;
        let mad = subnet_administration(sm_lid, service_level, method, attribute, 0, &part.encode());
        self.requests.offer(key, with_key(mad, self.sa_key)).is_ok()
    }

    /// The report has its number: all of it is sent.
    fn send(&mut self, number: u32) {
        let Some(report) = &mut self.under_way else { return };
        report.number = number;
        let received = report.received.clone();
        let parts = report.left as u16;
        for (at, hosts) in (0..).zip(received.chunks(ReceivedData::PORTS)) {
            let mut part = ReceivedData { report: number, part: at, parts, ..ReceivedData::default() };
            for (place, (guid, bytes)) in hosts.iter().enumerate() {
                (part.guids[place], part.bytes[place]) = (*guid, *bytes);
            }
            // The queue has room for all parts of a report, and there is one at a time.
            self.offer(Key::Part, Method::Set, &part);
        }
    }

    pub(crate) fn poll_transmit(&mut self, now: Time) -> Option<AddressedMad> {
        self.requests.poll_transmit(now)
    }

    /// Takes the subnet manager's answer.
    pub(crate) fn receive(&mut self, now: Time, mad: &AddressedMad) -> Option<Event> {
        let done = self.requests.handle_response(now, mad)?;
        let status = mad.mad.status();
        if status != status::OK {
            return self.give_up(now, Some(status));
        }
        if done.key == Key::Begin {
            self.send(ReceivedData::decode(&SaMad::data.get(&mad.mad.0)).report);
            return None;
        }
        let report = self.under_way.as_mut()?;
        report.left = report.left.saturating_sub(1);
        if report.left > 0 {
            return None;
        }
        self.taken = self.under_way.take().map(|report| (report.number, report.received));
        self.repeats_left = 0;
        self.counts.taken += 1;
        Some(Event::ReceivedReported)
    }

    fn give_up(&mut self, now: Time, status: Option<u16>) -> Option<Event> {
        let is_under_way = self.under_way.is_some();
        self.abandon(now);
        is_under_way.then_some(Event::ReceivedNotReported { status })
    }

    /// Lets time pass: whether a request was not answered.
    pub(crate) fn poll_failed(&mut self, now: Time) -> Option<Event> {
        self.requests.poll_failed(now)?;
        self.give_up(now, None)
    }

    pub(crate) fn next_timer(&self) -> Option<Timer<PmTimer>> {
        self.requests.next_timer().map(|timer| timer.map(PmTimer::Report))
    }
}
