//! Both directions of one port.

use weft_machine::{Time, Timer};
use weft_wire::{AddressedMad, Lid, RmppType};

use crate::timers::TransferTimer;

use super::{Finished, Inbox, InboxLimits, OfferError, Outbox, OutboxLimits, Received, Timing, TransferId};

/// RMPP at one port, both ways; see the [module](super).
#[derive(Debug, Default)]
pub struct Endpoint {
    /// What is being received.
    pub inbox: Inbox,
    /// What is being sent.
    pub outbox: Outbox,
}

impl Endpoint {
    /// One that neither sends nor receives yet.
    pub fn new(outbox: OutboxLimits, inbox: InboxLimits) -> Self {
        Self { inbox: Inbox::new(inbox), outbox: Outbox::new(outbox) }
    }

    /// Begins to send a message to the addresses of `to`; see [`Outbox::offer`].
    pub fn offer(
        &mut self,
        now: Time,
        to: &AddressedMad,
        message: Vec<u8>,
        timing: &Timing,
    ) -> Result<TransferId, OfferError> {
        self.outbox.offer(now, to, message, timing)
    }

    /// A MAD of RMPP that has arrived, and the message that it completes.
    pub fn handle(&mut self, now: Time, mad: &AddressedMad) -> Option<Received> {
        self.handle_beside(now, mad, &[mad.lid])
    }

    /// The same from a host that has ports with these LIDs too.
    pub fn handle_beside(&mut self, now: Time, mad: &AddressedMad, beside: &[Lid]) -> Option<Received> {
        match mad.mad.rmpp().kind {
            RmppType::Ack => {
                self.outbox.handle(now, mad);
                None
            }
            // Either end may end a transfer; whose message it is, the method says.
            RmppType::Stop | RmppType::Abort if self.outbox.contains(&TransferId::of_answer(mad)) => {
                self.outbox.handle(now, mad);
                None
            }
            _ => self.inbox.handle_beside(now, mad, beside),
        }
    }

    /// Lets time pass.
    pub fn handle_timeout(&mut self, now: Time) {
        self.outbox.handle_timeout(now);
        self.inbox.handle_timeout(now);
    }

    /// The next packet to be sent: acknowledgements first.
    pub fn poll_transmit(&mut self, now: Time) -> Option<AddressedMad> {
        self.inbox.poll_transmit().or_else(|| self.outbox.poll_transmit(now))
    }

    /// The next message that is no longer on its way out.
    pub fn poll_finished(&mut self) -> Option<Finished> {
        self.outbox.poll_finished()
    }

    /// When [`Endpoint::handle_timeout`] is next wanted, and what for.
    pub fn next_timer(&self) -> Option<Timer<TransferTimer>> {
        Timer::earliest([self.outbox.next_timer(), self.inbox.next_timer()])
    }
}
