//! Tables on their way to whoever asked for them, and requests that come in segments.

use weft_machine::Time;
use weft_mgmt::rmpp::{Endpoint, InboxLimits, OutboxLimits, Timing, TransferId};
use weft_wire::{AddressedMad, MAD_SIZE, Mad, RmppHeader, RmppType};

use super::BYTES_MAX;

/// The most tables at once, and the most bytes of all of them.
const TRANSFERS_MAX: usize = 256;
const ALL_BYTES_MAX: usize = 4 * BYTES_MAX;
/// The most requests that are arriving, and the most bytes of one. Those with several keys are a few MADs long.
const REQUESTS_MAX: usize = 64;
const REQUEST_BYTES_MAX: usize = 8192;
/// Where the records begin in a MAD.
const HEAD: usize = 56;

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
#[derive(Debug)]
pub(super) struct Transfers {
    endpoint: Endpoint,
}

impl Default for Transfers {
    fn default() -> Self {
        let outbox = OutboxLimits {
            transfers: TRANSFERS_MAX,
            message_bytes: BYTES_MAX + HEAD,
            bytes: ALL_BYTES_MAX,
            ..OutboxLimits::default()
        };
        let inbox = InboxLimits {
            transfers: REQUESTS_MAX,
            message_bytes: REQUEST_BYTES_MAX,
            bytes: REQUESTS_MAX * REQUEST_BYTES_MAX,
            ..InboxLimits::default()
        };
        Self { endpoint: Endpoint::new(outbox, inbox) }
    }
}

impl Transfers {
    /// Begins to send a table behind the headers of this answer. False: too much is under way.
    pub(super) fn send(&mut self, now: Time, answer: &AddressedMad, records: &[u8]) -> bool {
        let message = [&answer.mad.0[..HEAD], records].concat();
        self.endpoint.offer(now, answer, message, &Timing::default()).is_ok()
    }

    /// Takes what is not a response.
    pub(super) fn receive(&mut self, now: Time, received: &AddressedMad) -> Heard {
        let header = received.mad.rmpp();
        // OpenSM's client library marks a request with several keys as RMPP and says nothing else.
        let is_bare = header == RmppHeader { active: true, ..RmppHeader::default() };
        if !header.active || is_bare {
            return Heard::Request(Box::new(*received));
        }
        let useless = self.useless();
        let whole = self.endpoint.handle(now, received);
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

    /// Tables that did not arrive.
    pub(super) fn failed(&self) -> u64 {
        self.endpoint.outbox.stats().failed
    }

    /// Lets time pass.
    pub(super) fn expire(&mut self, now: Time) {
        self.endpoint.handle_timeout(now);
        self.settle();
    }

    /// Nobody waits for the end of a transfer; what failed is counted.
    fn settle(&mut self) {
        while self.endpoint.poll_finished().is_some() {}
    }

    pub(super) fn poll_transmit(&mut self, now: Time) -> Option<AddressedMad> {
        self.endpoint.poll_transmit(now)
    }

    pub(super) fn poll_timeout(&self) -> Option<Time> {
        self.endpoint.poll_timeout()
    }

    /// The port is gone. Says how many tables did not arrive in all this time.
    pub(super) fn abandon(&mut self) -> u64 {
        let failed = self.failed() + self.endpoint.outbox.len() as u64;
        *self = Self::default();
        failed
    }
}
