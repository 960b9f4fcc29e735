//! Reports of how much hosts receive, from which routing learns.
//!
//! ```text
//!  SubnAdmGet(ReceivedData) ──▶ a number ──▶ SubnAdmSet(ReceivedData), part by part ──▶ all are there ──▶ the manager weighs them
//! ```
//!
//! A request for a number that names an earlier report, which this manager has not given its number, begins a repetition: that report
//! was a manager's before.
//!
//! One report is collected at a time; a later one takes its place. **Who may:** who may have hosts notified of other paths (see
//! [`super::repath`]), but no virtual function. A part may be repeated.
//!
//! | status | when |
//! |---|---|
//! | 0 | the part has been taken |
//! | BUSY | the port that asks is not known yet; it asks again |
//! | REQ_INVALID | routing learns nothing here; no report of this number is collected from this port; or the part contradicts itself or others |
//! | REQ_DENIED | a key is needed and not shown, or a wrong one; or a virtual function asks |

use std::collections::{BTreeMap, BTreeSet};

use weft_machine::Time;
use weft_wire::{AddressedMad, Guid, Method, ReceivedData, SaMad, sa_status, status};

use super::Administrator;
use super::query::Query;
use super::view::View;
use crate::Options;

/// A report that is complete.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Received {
    /// By port GUID, in bytes.
    pub(crate) bytes: BTreeMap<Guid, u64>,
    /// Whether a manager before had it already.
    pub(crate) is_repeated: bool,
}

/// The report that is being collected.
#[derive(Debug, Default)]
pub(super) struct Reports {
    /// The number that was given last.
    number: u32,
    /// Whose report it is, by the port's GUID.
    from: Guid,
    /// How many parts it has; 0 before the first has come.
    parts: u16,
    have: BTreeSet<u16>,
    received: Received,
    /// One that is complete.
    ready: Option<Received>,
    /// Those that are complete, and requests that were refused.
    pub(super) complete: u64,
    pub(super) refused: u64,
}

impl Reports {
    /// Begins one, or the one again that had the number `again` somewhere.
    fn begin(&mut self, now: Time, from: Guid, again: u32) -> ReceivedData {
        let is_repeated = again != 0 && again != self.number;
        // A manager that has restarted begins at another number than the one before.
        let last = if self.number == 0 { now.as_nanos() as u32 } else { self.number };
        let number = last.wrapping_add(1).max(1);
        (self.number, self.from, self.parts) = (number, from, 0);
        self.have.clear();
        self.received = Received { is_repeated, ..Received::default() };
        ReceivedData { report: number, ..ReceivedData::default() }
    }

    /// Gives up what is being collected; the next report has another number.
    pub(super) fn forget(&mut self) {
        (self.from, self.ready) = (Guid(0), None);
    }

    fn take(&mut self, from: Guid, part: &ReceivedData) -> Result<(), u16> {
        let is_its = part.report == self.number && from == self.from && from != Guid(0);
        let fits = part.part < part.parts && part.parts <= ReceivedData::PARTS_MAX;
        if !is_its || !fits || (self.parts != 0 && self.parts != part.parts) {
            return Err(sa_status::REQ_INVALID);
        }
        self.parts = part.parts;
        if self.have.insert(part.part) {
            let ports = part.guids.into_iter().zip(part.bytes).filter(|(guid, _)| *guid != Guid(0));
            self.received.bytes.extend(ports);
            if self.have.len() == usize::from(self.parts) {
                self.ready = Some(std::mem::take(&mut self.received));
                self.complete += 1;
            }
        }
        Ok(())
    }
}

/// A request, and what it is judged by.
pub(super) struct Asked<'a> {
    pub(super) request: &'a AddressedMad,
    pub(super) query: &'a Query<'a>,
    pub(super) view: &'a View,
    pub(super) options: &'a Options,
}

impl Asked<'_> {
    /// Carries it out: what to answer.
    pub(super) fn carry_out(&self, now: Time, reports: &mut Reports) -> Result<ReceivedData, u16> {
        let done = self.judge(now, reports);
        reports.refused += u64::from(done.is_err_and(|status| status != status::BUSY));
        done
    }

    fn judge(&self, now: Time, reports: &mut Reports) -> Result<ReceivedData, u16> {
        let Self { request, query, view, options } = self;
        if options.sa.repath_needs_key && !query.trusted {
            return Err(sa_status::REQ_DENIED);
        }
        let asker = view.requester(request.lid)?;
        if view.is_guest(asker) {
            return Err(sa_status::REQ_DENIED);
        }
        if !options.routing.learns() {
            return Err(sa_status::REQ_INVALID);
        }
        let part = ReceivedData::decode(&SaMad::data.get(&request.mad.0));
        match request.mad.method() {
            Method::Get => Ok(reports.begin(now, asker.guid, part.report)),
            _ => reports.take(asker.guid, &part).map(|()| part),
        }
    }
}

impl Administrator {
    /// A report that is complete.
    pub(crate) fn take_report(&mut self) -> Option<Received> {
        self.reports.ready.take()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PM: Guid = Guid(0x11);

    fn part(report: u32, part: u16, parts: u16) -> ReceivedData {
        let mut data = ReceivedData { report, part, parts, ..ReceivedData::default() };
        (data.guids[3], data.bytes[3]) = (Guid(100 + u64::from(part)), 7);
        data
    }

    fn begun() -> (Reports, u32) {
        let mut reports = Reports::default();
        let number = reports.begin(Time::from_secs(3), PM, 0).report;
        (reports, number)
    }

    #[test]
    fn a_report_is_complete_when_all_parts_are_there() {
        let (mut reports, number) = begun();
        for at in [1, 0, 1] {
            assert_eq!(reports.ready, None);
            assert_eq!(reports.take(PM, &part(number, at, 3)), Ok(()), "also the second time");
        }
        assert_eq!(reports.take(PM, &part(number, 2, 3)), Ok(()));
        let bytes = BTreeMap::from([(Guid(100), 7), (Guid(101), 7), (Guid(102), 7)]);
        assert_eq!(reports.ready.take(), Some(Received { bytes, is_repeated: false }));
        assert_eq!(reports.take(PM, &part(number, 2, 3)), Ok(()), "its answer may have been lost");
        assert_eq!(reports.ready, None, "and is not complete again");
    }

    #[test]
    fn stale_and_foreign_parts_are_refused() {
        let (mut reports, number) = begun();
        let refused = Err(sa_status::REQ_INVALID);
        assert_eq!(reports.take(Guid(0x12), &part(number, 0, 1)), refused, "of another port");
        assert_eq!(reports.take(PM, &part(number - 1, 0, 1)), refused, "of no report");
        assert_eq!(reports.take(PM, &part(number, 1, 1)), refused, "beyond the last");
        assert_eq!(reports.take(PM, &part(number, 0, ReceivedData::PARTS_MAX + 1)), refused, "too many");
        assert_eq!(reports.take(PM, &part(number, 0, 2)), Ok(()));
        assert_eq!(reports.take(PM, &part(number, 1, 3)), refused, "of another length");
        let later = reports.begin(Time::from_secs(4), PM, 0).report;
        assert_ne!(later, number);
        assert_eq!(reports.take(PM, &part(number, 1, 2)), refused, "of the report before");
        assert_eq!(reports.ready, None);
    }

    #[test]
    fn a_report_of_a_manager_before_is_a_repetition() {
        let (mut reports, own) = begun();
        for (again, is_repeated) in [(own, false), (own.wrapping_add(77), true), (0, false)] {
            let number = reports.begin(Time::from_secs(4), PM, again).report;
            assert_eq!(reports.take(PM, &part(number, 0, 1)), Ok(()));
            assert_eq!(reports.ready.take().map(|report| report.is_repeated), Some(is_repeated), "{again}");
        }
    }

    #[test]
    fn a_part_before_any_report_is_refused() {
        let part = part(0, 0, 1);
        assert_eq!(Reports::default().take(Guid(0), &part), Err(sa_status::REQ_INVALID));
    }
}
