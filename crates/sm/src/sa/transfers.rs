//! Tables on their way to whoever asked for them.

use weft_machine::Time;
use weft_mgmt::rmpp::{Outbox, OutboxLimits, Timing, TransferId};
use weft_wire::{AddressedMad, RmppType};

use super::BYTES_MAX;

/// The most tables at once, and the most bytes of all of them.
const TRANSFERS_MAX: usize = 256;
const ALL_BYTES_MAX: usize = 4 * BYTES_MAX;
/// Where the records begin in a MAD.
const HEAD: usize = 56;

/// Tables being sent.
#[derive(Debug)]
pub(super) struct Transfers {
    outbox: Outbox,
}

impl Default for Transfers {
    fn default() -> Self {
        let limits = OutboxLimits {
            transfers: TRANSFERS_MAX,
            message_bytes: BYTES_MAX + HEAD,
            bytes: ALL_BYTES_MAX,
            ..OutboxLimits::default()
        };
        Self { outbox: Outbox::new(limits) }
    }
}

impl Transfers {
    /// Begins to send a table behind the headers of this answer. False: too much is under way.
    pub(super) fn send(&mut self, now: Time, answer: &AddressedMad, records: &[u8]) -> bool {
        let message = [&answer.mad.0[..HEAD], records].concat();
        self.outbox.offer(now, answer, message, &Timing::default()).is_ok()
    }

    /// Takes what a receiver says about a table, and says whether that table is on its way. `None`: it says nothing of
    /// that kind, but is a request.
    pub(super) fn receive(&mut self, now: Time, received: &AddressedMad) -> Option<bool> {
        if !received.mad.is_rmpp_active() || received.mad.rmpp().kind == RmppType::Data {
            return None;
        }
        let known = self.outbox.handle(now, received);
        self.settle();
        Some(known)
    }

    /// Whether the table that a request asks for is on its way.
    pub(super) fn is_serving(&self, request: &AddressedMad) -> bool {
        self.outbox.contains(&TransferId::of_answer(request))
    }

    /// Tables that did not arrive.
    pub(super) fn failed(&self) -> u64 {
        self.outbox.stats().failed
    }

    /// Lets time pass.
    pub(super) fn expire(&mut self, now: Time) {
        self.outbox.handle_timeout(now);
        self.settle();
    }

    /// Nobody waits for the end of a transfer; what failed is counted.
    fn settle(&mut self) {
        while self.outbox.poll_finished().is_some() {}
    }

    pub(super) fn poll_transmit(&mut self, now: Time) -> Option<AddressedMad> {
        self.outbox.poll_transmit(now)
    }

    pub(super) fn poll_timeout(&self) -> Option<Time> {
        self.outbox.poll_timeout()
    }

    /// The port is gone. Says how many tables did not arrive in all this time.
    pub(super) fn abandon(&mut self) -> u64 {
        let failed = self.failed() + self.outbox.len() as u64;
        *self = Self::default();
        failed
    }
}
