//! Counters of requests that a limit of subnet administration refused.

use serde::{Deserialize, Serialize};

/// What subnet administration did not do because of a limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Limited {
    /// Requests answered BUSY.
    pub busy: u64,
    /// Of these, because their requester had too many tables under way.
    pub requester_tables: u64,
    /// Of these, because their requester had too many requests waiting for tables.
    pub requester_waiting: u64,
    /// Requests in segments that were not taken, because their requester had too many under way.
    pub requester_segments: u64,
    /// Services refused because their host offered too many.
    pub requester_services: u64,
    /// Services refused because there were too many in all.
    pub services: u64,
    /// Services refused because no port has their GID.
    pub service_gids: u64,
    /// Subscriptions refused because their port or host had too many, or there were too many in all.
    pub requester_subscriptions: u64,
    /// Requests to move LIDs answered BUSY because their requester had too many under way.
    pub requester_moves: u64,
    /// Reports dropped because too many were waiting.
    pub reports: u64,
    /// Of these, because their subscriber had too many waiting.
    pub subscriber_reports: u64,
    /// Of these, because the host that caused them had too many waiting; counted once for each cause.
    pub requester_reports: u64,
}

impl Limited {
    /// Each count with what it is, for people.
    pub fn counts(&self) -> [(u64, &'static str); 12] {
        [
            (self.busy, "requests to subnet administration answered BUSY"),
            (self.requester_tables, "of these, of requesters with too many tables under way"),
            (self.requester_waiting, "of these, of requesters with too many waiting"),
            (self.requester_moves, "of these, of requesters with too many moves under way"),
            (self.requester_segments, "requests in segments not taken, of requesters with too many"),
            (self.requester_services, "ServiceRecords refused, of hosts with too many"),
            (self.services, "ServiceRecords refused because there are too many"),
            (self.service_gids, "ServiceRecords refused because no port has their GID"),
            (self.requester_subscriptions, "subscriptions refused, of ports or hosts with too many"),
            (self.reports, "Reports dropped because too many were waiting"),
            (self.subscriber_reports, "of these, of subscribers with too many waiting"),
            (self.requester_reports, "of these, of hosts that caused too many"),
        ]
    }
}
