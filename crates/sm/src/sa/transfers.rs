//! Tables on their way to whoever asked for them, and requests that come in segments.

use weft_machine::{Time, Timer};
use weft_mgmt::rmpp::{Endpoint, InboxLimits, OutboxLimits, Timing, TransferId};
use weft_wire::{AddressedMad, Lid, MAD_SIZE, Mad, QpNum, RmppHeader, RmppType, TransactionId};

use super::query::BYTES_MAX;
use super::requesters::may_have_more;
use crate::SmTimer;

/// The most tables at once, and the most bytes of all of them.
const TRANSFERS_MAX: usize = 256;
const ALL_BYTES_MAX: usize = 4 * BYTES_MAX;
/// The most tables of one host, and of one program there. Beyond that each may have half of what is left, so that others
/// always find room.
const OF_ONE_HOST_MAX: usize = 32;
const OF_ONE_PROGRAM_MAX: usize = 16;
/// The most requests of one host that are arriving.
const REQUESTS_OF_ONE_MAX: usize = 16;
/// The most requests that are arriving, and the most bytes of one. Those with several keys are a few MADs long.
const REQUESTS_MAX: usize = 64;
const REQUEST_BYTES_MAX: usize = 8192;
/// Where the records begin in a MAD.
const HEAD: usize = 56;

/// What tells programs of one host apart: the queue pair, and the upper half of the transaction id, which the host's
/// MAD layer gives to each.
fn program(qp: QpNum, id: TransactionId) -> (QpNum, u64) {
    (qp, id.0 >> 32)
}

/// What a MAD is.
pub(super) enum Heard {
    /// A request, or the end of one.
    Request(Box<AddressedMad>),
    /// Something about a transfer that is under way.
    Known,
    /// Something about a transfer that is not.
    Stray,
}

/// Transfers in both directions.
#[derive(Debug, Default)]
pub(super) struct Transfers {
    endpoint: Endpoint,
    /// Ports have 2^lmc LIDs each.
    lmc: u8,
    /// Tables not sent because their requester had too many under way.
    pub(super) of_one: u64,
    /// The same of requests in segments, before the port was lost last.
    segments_of_one: u64,
    /// What was sent before the port was lost last.
    before: Sent,
}

/// What has been sent, and what came back.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sent {
    /// Tables acknowledged to their end.
    pub(super) tables: u64,
    pub(super) segments: u64,
    pub(super) acks: u64,
}

impl Transfers {
    pub(super) fn new(lmc: u8) -> Self {
        let outbox = OutboxLimits {
            transfers: TRANSFERS_MAX,
            message_bytes: BYTES_MAX + HEAD,
            bytes: ALL_BYTES_MAX,
            ..OutboxLimits::default()
        };
        let inbox = InboxLimits {
            transfers: REQUESTS_MAX,
            of_one: REQUESTS_OF_ONE_MAX,
            lmc,
            message_bytes: REQUEST_BYTES_MAX,
            bytes: REQUESTS_MAX * REQUEST_BYTES_MAX,
            ..InboxLimits::default()
        };
        Self { endpoint: Endpoint::new(outbox, inbox), lmc, ..Self::default() }
    }

    /// Begins to send a table behind the headers of this answer to a host with these LIDs. False: too much is under way.
    pub(super) fn send(&mut self, now: Time, answer: &AddressedMad, beside: &[Lid], records: &[u8]) -> bool {
        if !self.has_room(answer, beside, HEAD + records.len()) {
            self.of_one += 1;
            return false;
        }
        let message = [&answer.mad.0[..HEAD], records].concat();
        self.endpoint.offer(now, answer, message, &Timing::default()).is_ok()
    }

    /// Whether a requester may have a table more, however short. One that may not is counted.
    pub(super) fn may_begin(&mut self, request: &AddressedMad, beside: &[Lid]) -> bool {
        let may = self.has_room(request, beside, HEAD);
        self.of_one += u64::from(!may);
        may
    }

    /// Whether a requester may have a table more. One that has none may, if there is room at all.
    fn has_room(&self, answer: &AddressedMad, beside: &[Lid], bytes: usize) -> bool {
        let outbox = &self.endpoint.outbox;
        let program = program(answer.remote_qp, answer.mad.transaction_id());
        let (mut of_host, mut of_program, mut held) = (0, 0, 0);
        let port = |lid: Lid| lid.0 >> self.lmc;
        for (id, bytes) in beside.iter().flat_map(|lid| outbox.to_port(*lid, self.lmc)) {
            of_host += 1;
            let is_it = port(id.lid) == port(answer.lid);
            of_program += usize::from(is_it && self::program(id.qp, id.transaction_id) == program);
            held += bytes;
        }
        let (left, bytes_left) =
            (TRANSFERS_MAX.saturating_sub(outbox.len()), ALL_BYTES_MAX.saturating_sub(outbox.bytes()));
        of_host == 0
            || may_have_more(of_host, OF_ONE_HOST_MAX, left)
                && of_program < OF_ONE_PROGRAM_MAX
                && held + bytes <= bytes_left
    }

    /// Requests in segments not taken for the same reason.
    pub(super) fn segments_of_one(&self) -> u64 {
        self.segments_of_one + self.endpoint.inbox.stats().refused_of_one
    }

    /// Takes what is not a response, from a host with these LIDs.
    pub(super) fn receive(&mut self, now: Time, received: &AddressedMad, beside: &[Lid]) -> Heard {
        let header = received.mad.rmpp();
        // OpenSM's client library marks a request with several keys as RMPP and says nothing else.
        let is_bare = header == RmppHeader { active: true, ..RmppHeader::default() };
        if !header.active || is_bare {
            return Heard::Request(Box::new(*received));
        }
        let useless = self.useless();
        let whole = self.endpoint.handle_beside(now, received, beside);
        self.settle();
        match whole {
            Some(whole) => {
                // What is behind the first MAD's length belongs to requests that are not served.
                let mut mad = Mad::default();
                let length = whole.data.len().min(MAD_SIZE);
                mad.0[..length].copy_from_slice(&whole.data[..length]);
                mad.set_rmpp(&RmppHeader::default());
                Heard::Request(Box::new(AddressedMad { mad, ..*received }))
            }
            None if self.useless() > useless && header.kind != RmppType::Data => Heard::Stray,
            None => Heard::Known,
        }
    }

    fn useless(&self) -> u64 {
        self.endpoint.outbox.stats().useless
            + self.endpoint.inbox.stats().useless
            + self.endpoint.inbox.stats().wrong
    }

    /// Whether the table that a request asks for is on its way.
    pub(super) fn is_serving(&self, request: &AddressedMad) -> bool {
        self.endpoint.outbox.contains(&TransferId::of_answer(request))
    }

    /// What has been sent.
    pub(super) fn sent(&self) -> Sent {
        let (stats, before) = (self.endpoint.outbox.stats(), self.before);
        Sent {
            tables: before.tables + stats.sent,
            segments: before.segments + stats.segments,
            acks: before.acks + stats.acks,
        }
    }

    /// Tables that did not arrive.
    pub(super) fn failed(&self) -> u64 {
        self.endpoint.outbox.stats().failed
    }

    /// Lets time pass.
    pub(super) fn expire(&mut self, now: Time) {
        self.endpoint.handle_timeout(now);
        self.settle();
    }

    /// No one waits for the end of a transfer; what failed is counted.
    fn settle(&mut self) {
        while self.endpoint.poll_finished().is_some() {}
    }

    pub(super) fn poll_transmit(&mut self, now: Time) -> Option<AddressedMad> {
        self.endpoint.poll_transmit(now)
    }

    pub(super) fn next_timer(&self) -> Option<Timer<SmTimer>> {
        self.endpoint.next_timer().map(|timer| timer.map(SmTimer::Transfer))
    }

    /// The port is gone. Says how many tables did not arrive in all this time.
    pub(super) fn abandon(&mut self) -> u64 {
        let failed = self.failed() + self.endpoint.outbox.len() as u64;
        let (of_one, segments_of_one, before) = (self.of_one, self.segments_of_one(), self.sent());
        *self = Self { of_one, segments_of_one, before, ..Self::new(self.lmc) };
        failed
    }
}
