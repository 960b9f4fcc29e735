//! The messages on their way into one port.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use weft_machine::{Time, Timer};
use weft_wire::{AddressedMad, Lid, Method, RMPP_VERSION, RmppHeader, RmppType, rmpp_status};

use super::receiver::{Receiver, Step};
use super::sender::ack;
use super::{Failure, TransferId, ending, turned_over};
use crate::timers::TransferTimer;

weft_wire::defaults! {
    /// How much an [`Inbox`] holds at most, and how long.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct InboxLimits {
        /// Messages being received.
        pub transfers: usize = 256,
        /// Messages being received from one port, or from one host whose ports are known.
        pub of_one: usize = usize::MAX,
        /// Ports have 2^lmc LIDs each.
        pub lmc: u8 = 0,
        /// Bytes of one message.
        pub message_bytes: usize = 32 << 20,
        /// Bytes of all messages being received.
        pub bytes: usize = 64 << 20,
        /// Segments that a sender may be ahead of the last acknowledgement.
        pub window: u32 = 64,
        /// How long a message may take to arrive.
        pub total: Time = Time::from_secs(40),
        /// How long a message that is whole is acknowledged again.
        pub linger: Time = Time::from_secs(10),
        /// How many such messages are remembered; the oldest is forgotten first.
        pub lingering: usize = 1024,
        /// RRespTime to be said of this end: it answers within 4.096 µs × 2^n.
        pub resp_time: u8 = 16,
    }
}

/// What an [`Inbox`] counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InboxStats {
    /// Messages that came whole.
    pub received: u64,
    /// Messages refused for want of room.
    pub refused: u64,
    /// Of these, because too many were coming from the same port or host.
    pub refused_of_one: u64,
    /// Messages that broke the protocol.
    pub wrong: u64,
    /// Messages that took too long.
    pub timed_out: u64,
    /// Messages that their sender gave up.
    pub given_up: u64,
    /// Segments taken.
    pub segments: u64,
    /// Segments that had come before, came too early, or belong to nothing.
    pub useless: u64,
}

/// A message that came whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Received {
    /// Which transfer it was.
    pub id: TransferId,
    /// The headers of its first segment, followed by all data.
    pub data: Vec<u8>,
}

#[derive(Debug)]
enum Transfer {
    Receiving(Receiver),
    /// Whole: what was acknowledged, and until when it is acknowledged again.
    Complete {
        segment: u32,
        window_last: u32,
        until: Time,
    },
}

impl Transfer {
    fn due(&self) -> Time {
        match self {
            Self::Receiving(receiver) => receiver.ends,
            Self::Complete { until, .. } => *until,
        }
    }
}

/// The messages on their way into one port; see the [module](super).
#[derive(Debug, Default)]
pub struct Inbox {
    limits: InboxLimits,
    transfers: BTreeMap<TransferId, (Transfer, AddressedMad)>,
    /// Exactly one entry for each transfer.
    timers: BTreeSet<(Time, TransferId)>,
    /// Whole messages in the order in which they came.
    complete: VecDeque<TransferId>,
    receiving: usize,
    bytes: usize,
    outputs: VecDeque<AddressedMad>,
    stats: InboxStats,
}

impl Inbox {
    /// An empty one.
    pub fn new(limits: InboxLimits) -> Self {
        Self { limits, ..Self::default() }
    }

    /// What it counted.
    pub fn stats(&self) -> &InboxStats {
        &self.stats
    }

    /// How many messages are being received.
    pub fn receiving(&self) -> usize {
        self.receiving
    }

    /// Bytes of the messages being received.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Whether this transfer is under way, or was complete a short while ago.
    pub fn contains(&self, id: &TransferId) -> bool {
        self.transfers.contains_key(id)
    }

    /// A Data packet that has arrived, or a Stop or Abort by a sender; what it completes.
    pub fn handle(&mut self, now: Time, mad: &AddressedMad) -> Option<Received> {
        self.handle_beside(now, mad, &[mad.lid])
    }

    /// The same from a host that has ports with these LIDs too, which share what one may have.
    pub fn handle_beside(&mut self, now: Time, mad: &AddressedMad, beside: &[Lid]) -> Option<Received> {
        let header = mad.mad.rmpp();
        let id = TransferId::of_message(mad);
        match header.kind {
            _ if header.version != RMPP_VERSION => self.wrong(id, mad, rmpp_status::BAD_VERSION),
            RmppType::Data => return self.segment(now, id, mad, beside, &header),
            RmppType::Stop | RmppType::Abort if Failure::told(&header).is_some() => self.given_up(&id),
            RmppType::Stop | RmppType::Abort => self.stats.useless += 1,
            RmppType::Ack => self.stats.useless += 1,
            _ => self.wrong(id, mad, rmpp_status::BAD_TYPE),
        }
        None
    }

    fn segment(
        &mut self,
        now: Time,
        id: TransferId,
        mad: &AddressedMad,
        beside: &[Lid],
        header: &RmppHeader,
    ) -> Option<Received> {
        if header.status != rmpp_status::NORMAL {
            self.wrong(id, mad, rmpp_status::BAD_STATUS);
            return None;
        }
        if header.segment == 0 || (header.segment == 1) != header.first {
            self.wrong(id, mad, rmpp_status::BAD_SEGMENT);
            return None;
        }
        if !self.contains(&id) {
            if header.segment != 1 {
                self.stats.useless += 1;
                return None;
            }
            let too_many_of_one = self.receiving_from(beside) >= self.limits.of_one;
            let full = self.receiving >= self.limits.transfers;
            if full || too_many_of_one || header.length as usize > self.limits.message_bytes {
                self.stats.refused += 1;
                self.stats.refused_of_one += u64::from(too_many_of_one);
                self.end(mad, rmpp_status::RESOURCES);
                return None;
            }
            self.begin(now, id, mad, 1);
        }
        self.advance(now, id, mad)
    }

    /// How many messages are being received from ports with these LIDs.
    fn receiving_from(&self, lids: &[Lid]) -> usize {
        let of_port = |lid: &Lid| self.transfers.range(TransferId::of_port(*lid, self.limits.lmc));
        lids.iter()
            .flat_map(of_port)
            .filter(|(_, (transfer, _))| matches!(transfer, Transfer::Receiving(_)))
            .count()
    }

    fn begin(&mut self, now: Time, id: TransferId, mad: &AddressedMad, window_last: u32) {
        let receiver = Receiver::new(now + self.limits.total, window_last);
        self.timers.insert((receiver.ends, id));
        self.transfers.insert(id, (Transfer::Receiving(receiver), *mad));
        self.receiving += 1;
    }

    fn advance(&mut self, now: Time, id: TransferId, mad: &AddressedMad) -> Option<Received> {
        let (transfer, first) = self.transfers.get_mut(&id)?;
        if mad.mad.rmpp().first {
            *first = *mad;
        }
        let receiver = match transfer {
            Transfer::Receiving(receiver) => receiver,
            Transfer::Complete { segment, window_last, .. } => {
                let (segment, window_last) = (*segment, *window_last);
                self.stats.useless += 1;
                self.acknowledge(mad, segment, window_last);
                return None;
            }
        };
        let held = receiver.bytes();
        let step = receiver.take(&mad.mad, self.limits.window);
        self.bytes = self.bytes - held + receiver.bytes();
        let too_much = receiver.bytes() > self.limits.message_bytes || self.bytes > self.limits.bytes;
        let (segment, window_last) = receiver.position();
        match step {
            Step::Useless => self.stats.useless += 1,
            Step::Wrong(status) => self.wrong(id, mad, status),
            _ if too_much => {
                self.stats.refused += 1;
                self.forget(&id);
                self.end(mad, rmpp_status::RESOURCES);
            }
            Step::Kept => self.stats.segments += 1,
            Step::Acknowledge => {
                self.stats.segments += 1;
                self.acknowledge(mad, segment, window_last);
            }
            Step::Complete => {
                self.stats.segments += 1;
                self.acknowledge(mad, segment, window_last.max(segment));
                return self.complete(now, id);
            }
        }
        None
    }

    fn complete(&mut self, now: Time, id: TransferId) -> Option<Received> {
        let (transfer, mad) = self.forget(&id)?;
        let Transfer::Receiving(receiver) = transfer else { return None };
        self.stats.received += 1;
        let (segment, window_last) = receiver.position();
        if self.complete.len() >= self.limits.lingering
            && let Some(oldest) = self.complete.pop_front()
        {
            self.forget(&oldest);
        }
        if self.limits.lingering > 0 {
            let until = now + self.limits.linger;
            let transfer = Transfer::Complete { segment, window_last: window_last.max(segment), until };
            self.transfers.insert(id, (transfer, mad));
            self.timers.insert((until, id));
            self.complete.push_back(id);
        }
        Some(Received { id, data: receiver.into_message() })
    }

    /// Drops a transfer with everything that it holds.
    fn forget(&mut self, id: &TransferId) -> Option<(Transfer, AddressedMad)> {
        let removed = self.transfers.remove(id)?;
        self.timers.remove(&(removed.0.due(), *id));
        match &removed.0 {
            Transfer::Receiving(receiver) => {
                self.receiving -= 1;
                self.bytes -= receiver.bytes();
            }
            Transfer::Complete { .. } => self.complete.retain(|other| other != id),
        }
        Some(removed)
    }

    /// Drops a message that is not whole yet, and says whether there was one.
    fn drop_partial(&mut self, id: &TransferId) -> bool {
        let partial = matches!(self.transfers.get(id), Some((Transfer::Receiving(_), _)));
        partial && self.forget(id).is_some()
    }

    /// Acknowledges a message that was complete no more: another with the same id is expected.
    pub fn expect_again(&mut self, id: &TransferId) {
        if matches!(self.transfers.get(id), Some((Transfer::Complete { .. }, _))) {
            self.forget(id);
        }
    }

    /// Tells the sender of a segment that no one here waits for its message, and forgets what has come of it.
    pub fn turn_away(&mut self, mad: &AddressedMad) {
        self.stats.useless += 1;
        let id = TransferId::of_message(mad);
        self.drop_partial(&id);
        self.end(mad, rmpp_status::UNSPECIFIED);
    }

    fn given_up(&mut self, id: &TransferId) {
        if self.drop_partial(id) {
            self.stats.given_up += 1;
        } else {
            self.stats.useless += 1;
        }
    }

    /// The sender broke the protocol: what it had sent of the message is dropped. What is whole stays so.
    fn wrong(&mut self, id: TransferId, mad: &AddressedMad, status: u8) {
        self.stats.wrong += 1;
        self.drop_partial(&id);
        self.end(mad, status);
    }

    /// Tells the sender of `mad` that the transfer is over. Two ends that do so to each other would never stop.
    fn end(&mut self, mad: &AddressedMad, status: u8) {
        if !matches!(mad.mad.rmpp().kind, RmppType::Stop | RmppType::Abort) {
            let method = turned_over(mad.mad.method());
            self.outputs.push_back(AddressedMad { mad: ending(&mad.mad, method, status), ..*mad });
        }
    }

    fn acknowledge(&mut self, mad: &AddressedMad, segment: u32, window_last: u32) {
        let method = turned_over(mad.mad.method());
        let answer = ack(&mad.mad, method, segment, window_last, self.limits.resp_time);
        self.outputs.push_back(AddressedMad { mad: answer, ..*mad });
    }

    /// Grants the first window of the message that will answer `request`, as the requester's end of a double-sided
    /// transfer does when its own part is acknowledged. `answer` is the method of the message to come.
    pub fn grant(&mut self, now: Time, request: &AddressedMad, answer: Method) {
        let id = TransferId { method: answer, ..TransferId::of_message(request) };
        if !self.contains(&id) && self.receiving < self.limits.transfers {
            self.begin(now, id, request, self.limits.window);
            let mad = ack(&request.mad, turned_over(answer), 0, self.limits.window, self.limits.resp_time);
            self.outputs.push_back(AddressedMad { mad, ..*request });
        }
    }

    /// Lets time pass.
    pub fn handle_timeout(&mut self, now: Time) {
        while let Some(&(due, id)) = self.timers.first().filter(|(due, _)| *due <= now) {
            self.timers.remove(&(due, id));
            if let Some((Transfer::Receiving(receiver), mad)) = self.forget(&id) {
                self.stats.timed_out += 1;
                // If nothing of a granted transfer came, there is no one to notify.
                if receiver.position().0 > 0 {
                    self.end(&mad, rmpp_status::TOTAL_TIME);
                }
            }
        }
    }

    /// The next packet to be sent.
    pub fn poll_transmit(&mut self) -> Option<AddressedMad> {
        self.outputs.pop_front()
    }

    /// When [`Inbox::handle_timeout`] is next wanted, and what for.
    pub fn next_timer(&self) -> Option<Timer<TransferTimer>> {
        let &(at, id) = self.timers.first()?;
        let complete = matches!(self.transfers.get(&id), Some((Transfer::Complete { .. }, _)));
        let reason = if complete { TransferTimer::Linger } else { TransferTimer::Segment };
        Some(Timer { at, reason })
    }
}
