//! Shares of a host in the tables of subnet administration, and counters of what a full share refused.

use weft_vocabulary::sm::Limited;
use weft_wire::{AddressedMad, Guid, Lid, ServiceRecord, VmMove, sa_status, status};

use super::moves::{MOVES_MAX, MOVES_OF_ONE_MAX};
use super::query::Query;
use super::requesters::may_have_more;
use super::service::IDENTIFIED;
use super::tables::Kind;
use super::view::View;
use super::{Administrator, SaCounts, Verdict};
use crate::moves::Want;

/// Requests that wait for tables to be read.
const WAITING_MAX: usize = 64;
/// Of these, those of one host. Beyond that each may have half of what is left.
const WAITING_OF_ONE_MAX: usize = 8;

impl Administrator {
    pub(crate) fn counts(&self) -> SaCounts {
        let (reports, sent) = (self.subscriptions.stats(), self.transfers.sent());
        let (requester_services, services) = self.services.refused();
        SaCounts {
            reports: reports.sent,
            reports_answered: reports.completed,
            reports_unanswered: reports.failed,
            tables: sent.tables,
            segments: sent.segments,
            received_reports: self.reports.complete,
            received_refused: self.reports.refused,
            acks: sent.acks,
            limited: Limited {
                reports: self.subscriptions.dropped,
                subscriber_reports: self.subscriptions.dropped_of_one,
                requester_reports: self.subscriptions.dropped_of_cause,
                requester_subscriptions: self.subscriptions.refused,
                requester_services,
                services,
                requester_tables: self.transfers.of_one,
                requester_segments: self.transfers.segments_of_one(),
                ..self.counts.limited
            },
            transfers_failed: self.counts.transfers_failed + self.transfers.failed(),
            ..self.counts
        }
    }

    /// The LIDs of the host of this one, of which each port has one here.
    pub(super) fn beside(&self, lid: Lid) -> Vec<Lid> {
        self.view.as_ref().map_or_else(|| vec![lid], |view| view.lids_beside(lid))
    }

    /// How many of these are of the host that this one is of.
    fn of_same_host<'a>(
        &self,
        request: &AddressedMad,
        others: impl Iterator<Item = &'a AddressedMad>,
    ) -> usize {
        let host = |lid: Lid| self.view.as_ref().map_or(Guid(0), |view| view.host_at(lid));
        let own = host(request.lid);
        others.filter(|other| host(other.lid) == own).count()
    }

    /// A request to move a LID waits for the manager.
    pub(super) fn line_up(&mut self, request: &AddressedMad, ask: VmMove, want: Want) {
        let left = MOVES_MAX - self.moving.len();
        if !may_have_more(self.of_same_host(request, self.moving.iter()), MOVES_OF_ONE_MAX, left) {
            self.counts.limited.requester_moves += u64::from(left > 0);
            return self.refuse(request, status::BUSY);
        }
        self.moving.push(*request);
        self.moves.push((*request, ask, want));
    }

    /// A request waits until tables have been read.
    pub(super) fn wait_for(&mut self, request: &AddressedMad, kind: Kind) {
        let left = WAITING_MAX - self.waiting.len();
        let of_one = self.of_same_host(request, self.waiting.iter().map(|(other, _)| other));
        if !may_have_more(of_one, WAITING_OF_ONE_MAX, left) {
            self.counts.limited.requester_waiting += u64::from(left > 0);
            return self.refuse(request, status::BUSY);
        }
        self.waiting.push_back((*request, kind));
    }

    /// The port that has the GID of a service: one that is there, is away for a while, or has it as an alias.
    pub(super) fn whose(&self, query: &Query<'_>, view: &View) -> Result<Guid, Verdict> {
        if !query.names_all(IDENTIFIED) {
            return Err(Verdict::Refused(sa_status::INSUFFICIENT_COMPONENTS));
        }
        let gid = query.record::<ServiceRecord>().service_gid;
        // The GUID alone decides: OpenSM's osmtest sends the subnet's prefix with its bytes turned round.
        if view.by_guid(gid.guid).is_some() || self.away.contains(&gid.guid) {
            return Ok(gid.guid);
        }
        if !self.tables.knows(Kind::Guids) {
            return Err(Verdict::Read(Kind::Guids));
        }
        let end = self.tables.port_with_alias(gid.guid).and_then(|at| view.end_of(at));
        end.map(|end| end.guid).ok_or(Verdict::Refused(sa_status::REQ_INVALID_GID))
    }
}
