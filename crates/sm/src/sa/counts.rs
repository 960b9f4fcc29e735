//! Counters of subnet administration.

use serde::Serialize;
use weft_vocabulary::sm::{Limited, Signalled};
use weft_wire::{Mad, Method, sa_attribute};

/// What subnet administration has done since the beginning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct SaCounts {
    /// Requests, repetitions not counted.
    pub requests: u64,
    /// Of these, those for path records.
    pub path_queries: u64,
    /// Of these, those for a table of them.
    pub path_tables: u64,
    /// Of these, those for a service.
    pub service_queries: u64,
    /// Requests answered with records.
    pub answered: u64,
    /// Requests answered with a status that says why not.
    pub refused: u64,
    /// What was not done because of a limit.
    pub limited: Limited,
    /// MADs that are none of its business, and repetitions.
    pub ignored: u64,
    /// Reports sent, repetitions included.
    pub reports: u64,
    /// Reports answered: ReportResps.
    pub reports_answered: u64,
    /// Reports that no one answered.
    pub reports_unanswered: u64,
    /// Tables sent to their end.
    pub tables: u64,
    /// Segments of tables sent, repetitions included.
    pub segments: u64,
    /// Acknowledgements of segments.
    pub acks: u64,
    /// Requests to have hosts notified of other paths that were carried out.
    pub repaths: u64,
    /// Reports of what hosts receive of which all parts have come.
    pub received_reports: u64,
    /// Requests of such reports that were refused.
    pub received_refused: u64,
    /// Tables that did not arrive, because whoever asked for them stopped listening.
    pub transfers_failed: u64,
}

impl SaCounts {
    /// A request that is not a repetition.
    pub(super) fn count_request(&mut self, request: &Mad) {
        self.requests += 1;
        let is_path = request.attribute_id() == sa_attribute::PATH_RECORD;
        self.path_queries += u64::from(is_path);
        let is_service = request.attribute_id() == sa_attribute::SERVICE_RECORD;
        self.service_queries += u64::from(is_service && request.method() == Method::Get);
        self.path_tables += u64::from(is_path && request.method() == Method::GetTable);
    }

    /// Datagrams that notify hosts of other paths: what this end has sent, and what hosts have sent. Tables of other records, where
    /// somebody has asked for them, are among the segments.
    pub fn signalled(&self) -> Signalled {
        Signalled {
            reports: self.reports,
            responses: self.reports_answered,
            queries: self.path_tables,
            segments: self.segments,
            acks: self.acks,
            names: self.service_queries,
            paths: self.path_queries - self.path_tables,
        }
    }
}
