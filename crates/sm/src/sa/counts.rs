//! Counters of subnet administration.

use serde::Serialize;
use weft_vocabulary::sm::Limited;
use weft_wire::{Mad, sa_attribute};

/// What subnet administration has done since the beginning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct SaCounts {
    /// Requests, repetitions not counted.
    pub requests: u64,
    /// Of these, those for path records.
    pub path_queries: u64,
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
    /// Reports that no one answered.
    pub reports_unanswered: u64,
    /// Requests to have hosts notified of other paths that were carried out.
    pub repaths: u64,
    /// Tables that did not arrive, because whoever asked for them stopped listening.
    pub transfers_failed: u64,
}

impl SaCounts {
    /// A request that is not a repetition.
    pub(super) fn count_request(&mut self, request: &Mad) {
        self.requests += 1;
        self.path_queries += u64::from(request.attribute_id() == sa_attribute::PATH_RECORD);
    }
}
