//! The messages on their way out of one port.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use weft_machine::{Time, Timer};
use weft_wire::{AddressedMad, Lid, Mad, RmppHeader, RmppType};

use super::sender::{Sender, State, class_of};
use super::{Failure, Timing, TransferId};
use crate::timers::TransferTimer;

weft_wire::defaults! {
    /// How much an [`Outbox`] holds at most.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct OutboxLimits {
        /// Messages.
        pub transfers: usize = 1024,
        /// Bytes of one message.
        pub message_bytes: usize = 32 << 20,
        /// Bytes of all messages.
        pub bytes: usize = 256 << 20,
        /// Windows granted for messages that have not been offered.
        pub grants: usize = 64,
        /// RRespTime to be said of this end: it answers within 4.096 µs × 2^n.
        pub resp_time: u8 = 16,
    }
}

/// What an [`Outbox`] counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OutboxStats {
    /// Messages acknowledged to their end.
    pub sent: u64,
    /// Messages given up by this end or the other.
    pub failed: u64,
    /// Messages not taken.
    pub refused: u64,
    /// Segments sent.
    pub segments: u64,
    /// Segments among them that were sent again.
    pub resent: u64,
    /// Acks of transfers that are under way.
    pub acks: u64,
    /// Packets for transfers that do not exist, or that said nothing new.
    pub useless: u64,
}

weft_wire::worded! {
    /// Why a message was not taken.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
    pub enum OfferError {
        /// It ends before its class's data begins, or its class has no RMPP header.
        NotAMessage => ("the bytes are no message"),
        /// It is longer than [`OutboxLimits::message_bytes`].
        TooLong => ("the message is too long"),
        /// The same transfer is under way.
        Duplicate => ("the same transfer is under way"),
        /// There are [`OutboxLimits::transfers`] or [`OutboxLimits::bytes`] already.
        Full => ("too many messages are under way"),
    }
}

/// A message that is no longer on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Finished {
    /// Which one.
    pub id: TransferId,
    /// Why it did not arrive; `None` when it did.
    pub failure: Option<Failure>,
}

#[derive(Debug)]
struct Transfer {
    sender: Sender,
    /// The addresses, with whatever MAD.
    to: AddressedMad,
    /// When `timers` names it.
    due: Time,
}

/// The messages on their way out of one port; see the [module](super).
#[derive(Debug, Default)]
pub struct Outbox {
    limits: OutboxLimits,
    transfers: BTreeMap<TransferId, Transfer>,
    /// Exactly one entry for each transfer.
    timers: BTreeSet<(Time, TransferId)>,
    /// Who may have something to send.
    ready: VecDeque<TransferId>,
    finished: VecDeque<Finished>,
    /// First windows of messages that are still to come, and their order of age.
    grants: VecDeque<(TransferId, u32)>,
    bytes: usize,
    stats: OutboxStats,
}

impl Outbox {
    /// An empty one.
    pub fn new(limits: OutboxLimits) -> Self {
        Self { limits, ..Self::default() }
    }

    /// What it counted.
    pub fn stats(&self) -> &OutboxStats {
        &self.stats
    }

    /// How many messages are on their way.
    pub fn len(&self) -> usize {
        self.transfers.len()
    }

    /// The messages on their way to the port with this LID, and their bytes. Ports have 2^`lmc` LIDs each.
    pub fn to_port(&self, lid: Lid, lmc: u8) -> impl Iterator<Item = (&TransferId, usize)> {
        let of_port = self.transfers.range(TransferId::of_port(lid, lmc));
        of_port.map(|(id, transfer)| (id, transfer.sender.bytes()))
    }

    /// Whether nothing is on its way.
    pub fn is_empty(&self) -> bool {
        self.transfers.is_empty()
    }

    /// Bytes of the messages on their way.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Whether this transfer is under way.
    pub fn contains(&self, id: &TransferId) -> bool {
        self.transfers.contains_key(id)
    }

    /// Takes a message for the addresses of `to`, whose MAD does not matter.
    pub fn offer(
        &mut self,
        now: Time,
        to: &AddressedMad,
        message: Vec<u8>,
        timing: &Timing,
    ) -> Result<TransferId, OfferError> {
        let taken = self.admit(to, &message);
        let Ok(id) = taken else {
            self.stats.refused += 1;
            return taken;
        };
        self.bytes += message.len();
        let window = self.take_grant(&id).unwrap_or(1);
        let sender = Sender::new(now, message, window, timing, self.limits.resp_time);
        let due = sender.due();
        self.transfers.insert(id, Transfer { sender, to: *to, due });
        self.timers.insert((due, id));
        self.ready.push_back(id);
        Ok(id)
    }

    fn admit(&self, to: &AddressedMad, message: &[u8]) -> Result<TransferId, OfferError> {
        let class = class_of(message);
        let Some(head) = message.get(..class.data_offset()).filter(|_| class.has_rmpp()) else {
            return Err(OfferError::NotAMessage);
        };
        let mut mad = Mad::default();
        mad.0[..head.len()].copy_from_slice(head);
        let id = TransferId::of_message(&AddressedMad { mad, ..*to });
        if message.len() > self.limits.message_bytes {
            Err(OfferError::TooLong)
        } else if self.contains(&id) {
            Err(OfferError::Duplicate)
        } else if self.len() >= self.limits.transfers || self.bytes + message.len() > self.limits.bytes {
            Err(OfferError::Full)
        } else {
            Ok(id)
        }
    }

    /// Gives a message up without a word.
    pub fn cancel(&mut self, id: &TransferId) -> bool {
        self.remove(id).is_some()
    }

    /// An Ack, or a Stop or Abort by a receiver, that has arrived. Whether it belongs to a transfer here.
    pub fn handle(&mut self, now: Time, mad: &AddressedMad) -> bool {
        let id = TransferId::of_answer(mad);
        let header = mad.mad.rmpp();
        let Some(transfer) = self.transfers.get_mut(&id) else {
            self.stats.useless += 1;
            self.note_grant(id, &header);
            return false;
        };
        self.stats.acks += u64::from(header.kind == RmppType::Ack);
        let over = transfer.sender.state() != State::Sending;
        if !transfer.sender.handle(now, &header) {
            self.stats.useless += 1;
        }
        if !over {
            self.settle(id);
        }
        true
    }

    /// An Ack of nothing grants the first window of a message that is still to come (double-sided transfers).
    fn note_grant(&mut self, id: TransferId, header: &RmppHeader) {
        if header.kind == RmppType::Ack && header.segment == 0 && header.length > 0 {
            self.take_grant(&id);
            if self.grants.len() >= self.limits.grants {
                self.grants.pop_front();
            }
            if self.limits.grants > 0 {
                self.grants.push_back((id, header.length));
            }
        }
    }

    fn take_grant(&mut self, id: &TransferId) -> Option<u32> {
        let at = self.grants.iter().position(|(granted, _)| granted == id)?;
        self.grants.remove(at).map(|(_, window)| window)
    }

    /// Lets time pass.
    pub fn handle_timeout(&mut self, now: Time) {
        while let Some(&(_, id)) = self.timers.first().filter(|(due, _)| *due <= now) {
            let Some(transfer) = self.transfers.get_mut(&id) else {
                self.timers.pop_first();
                continue;
            };
            transfer.sender.handle_timeout(now);
            self.settle(id);
        }
    }

    /// Brings timers and queues up to date with a transfer that has moved.
    fn settle(&mut self, id: TransferId) {
        let Some(transfer) = self.transfers.get_mut(&id) else { return };
        let failure = match transfer.sender.state() {
            State::Sending => {
                self.ready.push_back(id);
                return self.retime(id);
            }
            State::Done => None,
            State::Failed(failure) => Some(failure),
        };
        self.timers.remove(&(transfer.due, id));
        match failure {
            None => self.stats.sent += 1,
            Some(_) => self.stats.failed += 1,
        }
        self.finished.push_back(Finished { id, failure });
        // It may still have to say why it ends.
        self.ready.push_back(id);
    }

    /// Brings the timer of a transfer that is not finished up to date.
    fn retime(&mut self, id: TransferId) {
        let Some(transfer) = self.transfers.get_mut(&id) else { return };
        let due = transfer.sender.due();
        if transfer.sender.state() == State::Sending && due != transfer.due {
            self.timers.remove(&(transfer.due, id));
            self.timers.insert((due, id));
            transfer.due = due;
        }
    }

    /// The next packet to be sent.
    pub fn poll_transmit(&mut self, now: Time) -> Option<AddressedMad> {
        while let Some(&id) = self.ready.front() {
            let next = self.transfers.get_mut(&id).and_then(|transfer| {
                let (mad, again) = transfer.sender.poll(now)?;
                Some((AddressedMad { mad, ..transfer.to }, again))
            });
            self.retime(id);
            if let Some((mad, again)) = next {
                if mad.mad.rmpp().kind == RmppType::Data {
                    self.stats.segments += 1;
                    self.stats.resent += u64::from(again);
                }
                return Some(mad);
            }
            self.ready.pop_front();
            if self.transfers.get(&id).is_some_and(|transfer| transfer.sender.state() != State::Sending) {
                self.remove(&id);
            }
        }
        None
    }

    fn remove(&mut self, id: &TransferId) -> Option<()> {
        let transfer = self.transfers.remove(id)?;
        self.timers.remove(&(transfer.due, *id));
        self.bytes -= transfer.sender.bytes();
        Some(())
    }

    /// The next message that is no longer on its way.
    pub fn poll_finished(&mut self) -> Option<Finished> {
        self.finished.pop_front()
    }

    /// When [`Outbox::handle_timeout`] is next wanted, and what for.
    pub fn next_timer(&self) -> Option<Timer<TransferTimer>> {
        let &(at, id) = self.timers.first()?;
        let awaits = self.transfers.get(&id).map(|transfer| transfer.sender.awaits());
        Timer::new(Some(at), awaits.unwrap_or(TransferTimer::Acknowledgement))
    }
}
