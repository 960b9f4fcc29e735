//! Counters of subnet administration.

use serde::Serialize;
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
    /// Requests answered "busy", because no subnet was up yet or too much was under way.
    pub busy: u64,
    /// MADs that are none of its business, and repetitions.
    pub ignored: u64,
    /// Reports sent, repetitions included.
    pub reports: u64,
    /// Reports that nobody answered.
    pub reports_unanswered: u64,
    /// Reports not sent because too many were waiting.
    pub reports_dropped: u64,
    /// Requests to have hosts told of other paths that were carried out.
    pub repaths: u64,
    /// Requests answered "busy", because their requester had too many tables under way.
    pub requester_tables: u64,
    /// Requests answered "busy", because their requester had too many waiting for tables.
    pub requester_waiting: u64,
    /// Requests in segments that were not taken, because their requester had too many arriving.
    pub requester_segments: u64,
    /// Services refused because their host offered too many.
    pub requester_services: u64,
    /// Services refused because there were too many in all.
    pub services: u64,
    /// Services refused because no port has their GID.
    pub service_gids: u64,
    /// Subscriptions refused because their port or host had too many, or there were too many in all.
    pub requester_subscriptions: u64,
    /// Requests to move LIDs answered "busy", because their requester had too many under way.
    pub requester_moves: u64,
    /// Reports not sent, because the host that caused them had too many waiting.
    pub requester_reports: u64,
    /// Reports not sent, because their subscriber had too many waiting.
    pub subscriber_reports: u64,
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
