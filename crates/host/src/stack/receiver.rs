//! The receiving end of a flow: what comes in order is delivered, and what does not is counted.
//!
//! A reliable connection's packets have a PSN of 24 bits, by which the receiver takes each once and in order (IBA
//! 9.7.5), and a 64-bit number in the body. The queue pair never looks at the latter; it is compared at delivery, so
//! that a mistake of the queue pair would be seen.

use serde::{Deserialize, Serialize};
use weft_machine::Time;
use weft_wire::{DataPacket, Lid, PKey, ServiceLevel, aeth, opcode};

use super::clock::Rebase;
use super::numbers::{COUNT_MAX, PSN_MASK, ensure, first_psn};
use crate::traffic::{FlowId, Latency, Transport, Work};

/// Half of the numbers are ahead, the others have been.
const PSN_HALF: u32 = 1 << 23;

/// An acknowledgement to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Acknowledgement {
    pub(super) dlid: Lid,
    pub(super) service_level: ServiceLevel,
    pub(super) p_key: PKey,
    pub(super) syndrome: u8,
}

/// What became of a packet of a reliable connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Taken {
    /// Delivered; it ended a message.
    Message,
    /// Delivered.
    Part,
    /// Not delivered.
    Nothing,
}

/// A sender of datagrams: which number is next, and how many of those before it have not come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Source {
    next: u64,
    missing: u64,
}

/// What every datagram needs is in front.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[repr(C, align(64))]
pub(super) struct Receiver {
    pub(super) transport: Transport,
    pub(super) work: Work,
    pub(super) message_bytes: u32,
    /// Datagrams, by their senders' LIDs.
    by_source: Vec<Source>,
    pub(super) packets: u64,
    pub(super) bytes: u64,
    pub(super) missing: u64,
    pub(super) latency: Latency,
    /// The PSN that is next.
    expected: u32,
    /// Whether the next one has been asked for; once is enough until it comes.
    refused: bool,
    /// Messages completed, modulo 2^24.
    messages: u32,
    /// Bytes of body in a message's first packet.
    pub(super) packet_bytes: u16,
    /// Packets since the last acknowledgement.
    unacknowledged: u32,
    pub(super) acknowledgement: Option<Acknowledgement>,
    /// Where the peer's last packet came from; 0 before the first.
    pub(super) peer: Lid,
    /// The P_Key of the peer's last packet.
    p_key: PKey,
    /// The P_Key of the partition that the port has left, with which this end of a connection has ended.
    pub(super) ended: Option<PKey>,
    /// The service levels in whose queues of acknowledgements it stands, bit by bit.
    #[serde(skip)]
    pub(super) queued: u16,
    /// A notification is to go back with the next acknowledgement.
    congested: bool,
    /// Whether the peer's queue pair says MIGRATED; otherwise this end is ARMED too.
    pub(super) migrated: bool,
    /// The number in the body that is next.
    sequence: u64,
    pub(super) repeated: u64,
    pub(super) out_of_order: u64,
    pub(super) disorder: u64,
    /// When something was delivered last, and the longest time between two deliveries.
    delivered_at: Option<Time>,
    pub(super) pause: Time,
}

impl Receiver {
    pub(super) fn new(flow: FlowId, transport: Transport, work: Work, message_bytes: u32) -> Self {
        Self {
            transport,
            work,
            message_bytes,
            expected: first_psn(flow),
            refused: false,
            messages: 0,
            packet_bytes: 0,
            peer: Lid(0),
            p_key: PKey(0),
            ended: None,
            unacknowledged: 0,
            acknowledgement: None,
            queued: 0,
            congested: false,
            migrated: true,
            sequence: 0,
            by_source: Vec::new(),
            packets: 0,
            bytes: 0,
            repeated: 0,
            out_of_order: 0,
            missing: 0,
            disorder: 0,
            latency: Latency::default(),
            delivered_at: None,
            pause: Time::ZERO,
        }
    }

    /// What it owes is not sent: the sender repeats what was not acknowledged.
    pub(super) fn forget_acknowledgement(&mut self) {
        (self.acknowledgement, self.queued) = (None, 0);
    }

    /// Takes a packet of a reliable connection. Afterwards there may be an acknowledgement to send.
    pub(super) fn take(&mut self, packet: &DataPacket, acknowledge_every: u32) -> Taken {
        self.packets += 1;
        (self.peer, self.p_key) = (packet.slid, packet.p_key);
        self.congested |= packet.fecn;
        self.migrated = packet.migration_request;
        let ahead = packet.psn.wrapping_sub(self.expected) & PSN_MASK;
        if ahead != 0 {
            let syndrome = self.refuse(ahead, packet);
            self.acknowledgement = syndrome.map(|syndrome| to(packet, syndrome)).or(self.acknowledgement);
            return Taken::Nothing;
        }
        self.expected = self.expected.wrapping_add(1) & PSN_MASK;
        self.refused = false;
        self.bytes += u64::from(packet.payload);
        self.sequence = self.check(self.sequence, packet.sequence);
        let end = matches!(packet.opcode, opcode::RC_SEND_LAST | opcode::RC_SEND_ONLY);
        self.messages = self.messages.wrapping_add(u32::from(end)) & PSN_MASK;
        self.unacknowledged += 1;
        // A sender that is to slow down hears of it at once, and not when the next acknowledgement is due.
        if end || packet.ack_request || packet.fecn || self.unacknowledged >= acknowledge_every {
            self.acknowledgement = Some(to(packet, aeth::ACK));
        } else if let Some(waiting) = &mut self.acknowledgement {
            // What was to be asked for again has come.
            waiting.syndrome = aeth::ACK;
        }
        if matches!(packet.opcode, opcode::RC_SEND_FIRST | opcode::RC_SEND_ONLY) {
            self.packet_bytes = packet.payload;
        }
        if end { Taken::Message } else { Taken::Part }
    }

    /// What is to be said of a packet that is not the next one.
    fn refuse(&mut self, ahead: u32, packet: &DataPacket) -> Option<u8> {
        if ahead < PSN_HALF {
            self.out_of_order += 1;
            return (!std::mem::replace(&mut self.refused, true)).then_some(aeth::NAK_SEQUENCE_ERROR);
        }
        self.repeated += 1;
        // The acknowledgement may be lost, and another one is harmless.
        let wanted = packet.ack_request && !self.refused;
        wanted.then_some(aeth::ACK)
    }

    /// The acknowledgement that is to be sent, if it is still to be.
    pub(super) fn acknowledge(&mut self) -> Option<DataPacket> {
        let Acknowledgement { dlid, service_level, p_key, syndrome } = self.acknowledgement.take()?;
        self.unacknowledged = 0;
        let psn = match syndrome {
            aeth::ACK => self.expected.wrapping_sub(1) & PSN_MASK,
            _ => self.expected,
        };
        Some(DataPacket {
            opcode: opcode::RC_ACKNOWLEDGE,
            aeth: weft_wire::Aeth { syndrome, msn: self.messages },
            psn,
            dlid,
            service_level,
            p_key,
            becn: std::mem::take(&mut self.congested),
            migration_request: self.migrated,
            ..DataPacket::default()
        })
    }

    /// Ends a connection whose packets came with one of these keys, which the port has no more. Whether it was one.
    pub(super) fn ends_with(&mut self, left: &[PKey]) -> bool {
        let is_left = self.peer.is_unicast() && self.ended.is_none();
        let key = left.iter().find(|key| is_left && key.partition() == self.p_key.partition());
        if let Some(key) = key.filter(|_| self.transport == Transport::ReliableConnection) {
            (self.ended, self.acknowledgement) = (Some(*key), None);
            return true;
        }
        false
    }

    /// Something is delivered.
    #[inline]
    pub(super) fn deliver(&mut self, now: Time) {
        let pause = self.delivered_at.map_or(Time::ZERO, |at| now.saturating_sub(at));
        self.pause = self.pause.max(pause);
        self.delivered_at = Some(now);
    }

    /// Takes a datagram.
    pub(super) fn take_datagram(&mut self, packet: &DataPacket) {
        self.packets += 1;
        self.bytes += u64::from(packet.payload);
        let place = usize::from(packet.slid.0.min(Lid::UNICAST_MAX.0));
        if place >= self.by_source.len() {
            self.by_source.resize(place + 1, Source::default());
        }
        let source = &mut self.by_source[place];
        if let Some(gap) = packet.sequence.checked_sub(source.next) {
            source.next = packet.sequence.saturating_add(1);
            source.missing = source.missing.saturating_add(gap);
            self.missing = self.missing.saturating_add(gap);
            return;
        }
        // On another lane a later one may have overtaken it; but then it was missing.
        self.out_of_order += 1;
        match source.missing.checked_sub(1) {
            Some(missing) => {
                source.missing = missing;
                self.missing -= 1;
            }
            None => self.disorder += 1,
        }
    }

    /// Compares the number that is delivered with the one that should be, and gives the next one.
    fn check(&mut self, expected: u64, delivered: u64) -> u64 {
        if delivered < expected {
            // It was taken for missing, or comes twice.
            self.missing = self.missing.saturating_sub(1);
            self.disorder += 1;
            return expected;
        }
        self.missing = self.missing.saturating_add(delivered - expected);
        delivered.saturating_add(1)
    }
}

/// A receiver that is suspended, moved and resumed.
impl Receiver {
    /// It stands in no queue.
    pub(super) fn quiet(&mut self) {
        self.queued = 0;
    }

    /// Its moments are those of another clock from now on.
    pub(super) fn rebase(&mut self, rebase: &Rebase) {
        self.delivered_at = self.delivered_at.map(|at| rebase.moment(at));
    }

    /// What it has asked for may have been sent while it heard nothing, and the question itself may be lost: the next
    /// packet that is out of order has it ask again.
    pub(super) fn resume(&mut self) {
        self.refused = false;
    }

    /// Checks that an image's receiver can be one: everything that other code relies on.
    pub(super) fn verify(&self) -> Result<(), &'static str> {
        ensure(
            self.expected <= PSN_MASK && self.messages <= PSN_MASK,
            "a receiver's number has over 24 bits",
        )?;
        let level = self.acknowledgement.map(|waiting| waiting.service_level.0);
        ensure(level.is_none_or(|level| level < 16), "an acknowledgement has no such service level")?;
        ensure(self.unacknowledged <= PSN_MASK, "a receiver has too many unacknowledged packets")?;
        ensure(
            self.by_source.len() <= usize::from(Lid::UNICAST_MAX.0) + 1,
            "datagrams have too many sources",
        )?;
        let missing = self.by_source.iter().fold(0u64, |sum, source| sum.saturating_add(source.missing));
        ensure(missing <= self.missing, "a receiver misses fewer packets than its sources have not sent")?;
        let counts = [
            self.packets,
            self.bytes,
            self.sequence,
            self.repeated,
            self.out_of_order,
            self.disorder,
            self.latency.count,
        ];
        ensure(counts.iter().all(|count| *count <= COUNT_MAX), "a counter is too high")
    }
}

/// To where a packet came from, as it came.
fn to(packet: &DataPacket, syndrome: u8) -> Acknowledgement {
    let &DataPacket { slid: dlid, service_level, p_key, .. } = packet;
    Acknowledgement { dlid, service_level, p_key, syndrome }
}
