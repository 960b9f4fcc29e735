//! The sending end of a flow.
//!
//! Packets are numbered from 0 and nothing is kept of them: a packet's place in its message, its length and its PSN
//! follow from its number, so that sending again costs no memory.
//!
//! ```text
//!      unacknowledged        next: to be sent     fresh: never sent        limit
//!  ─────────┼───────────────────┼────────────────────┼────────────────────────┼──▶ numbers
//!           └────────────── at most the window ──────┘
//!  a NAK or the time-out sets `next` back to `unacknowledged` (go-back-N, IBA 9.7.5.1, 9.9.2)
//! ```

mod frozen;
mod lane_change;
mod messages;

use serde::{Deserialize, Serialize};
use weft_machine::Time;
use weft_wire::{DataPacket, QKey, QpNum, ServiceLevel, aeth, opcode};

use super::congestion::Throttle;
use super::mix::Mix;
use super::numbers::{Geometry, PSN_MASK, first_psn, queue_pair};
use super::paths::{Address, Capacity};
use super::times::Times;
use crate::traffic::{FlowId, Latency, Move, MoveBy, PathSource, Transport, Work};

pub(super) use lane_change::LaneChange;
use messages::Messages;

/// The queue key of weft's datagrams.
pub(super) const DATAGRAM_KEY: QKey = QKey(0x7765_6674);
/// Packets that a flow which could not keep its rate makes up for at once.
const CATCH_UP_PACKETS: u64 = 16;

/// Who the packets are for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Target {
    /// The port at the end of this path.
    One(u32),
    /// Several.
    Mix(Box<Mix>),
    /// Whoever asked last: the answering end of a ping-pong.
    Peer,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Phase {
    /// Waits for its path.
    Path,
    Active,
    /// Sends nothing until the levels of its path are known again (SQD, IBA 10.3.1.5).
    Held,
    /// Ended in error.
    Error(String),
}

/// Whether a flow has something to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Readiness {
    Ready(ServiceLevel),
    At(Time),
    Blocked,
}

/// What is the same for all senders of a host.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rules {
    pub(super) window: u64,
    pub(super) acknowledge_every: u32,
    pub(super) ack_timeout: Time,
    pub(super) retries: u32,
    /// What a message costs at each end.
    pub(super) overhead: Time,
}

impl Rules {
    /// What a message costs its receiver, and the next one its sender.
    pub(super) fn both_ends(&self) -> Time {
        self.overhead + self.overhead
    }
}

/// Bytes per second by deadlines that do not drift.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Pace {
    bytes_per_second: u64,
    pub(super) due: Time,
    /// Of the deadline's division.
    rest: u64,
    /// From the last packet to the next.
    interval: u64,
}

impl Pace {
    pub(super) fn new(bytes_per_second: u64, now: Time) -> Self {
        Self { bytes_per_second: bytes_per_second.max(1), due: now, rest: 0, interval: 0 }
    }

    pub(super) fn advance(&mut self, now: Time, bytes: u16) {
        let span = u64::from(bytes) * 1_000_000_000 + self.rest;
        let interval = span / self.bytes_per_second;
        self.interval = interval;
        self.rest = span % self.bytes_per_second;
        self.due += Time::from_nanos(interval);
        let catch_up = Time::from_nanos(interval.saturating_mul(CATCH_UP_PACKETS));
        self.due = self.due.max(now.saturating_sub(catch_up));
    }
}

impl Pace {
    /// When `packets` packets behind the next one will be due.
    pub(super) fn due_with(&self, packets: u64) -> Time {
        self.due + Time::from_nanos(self.interval.saturating_mul(packets))
    }
}

/// What every packet needs is in front, in as few lines of the cache as it fits in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[repr(C, align(64))]
pub(super) struct Sender {
    pub(super) target: Target,
    pub(super) not_before: Time,
    pub(super) packets: u64,
    pub(super) bytes: u64,
    pub(super) flow: FlowId,
    pub(super) transport: Transport,
    pub(super) work: Work,
    /// The service levels in whose rings it stands, bit by bit.
    #[serde(skip)]
    pub(super) queued: u16,
    pub(super) address: Address,
    pub(super) capacity: Capacity,
    /// The place of `next` in its message.
    at: u32,
    pub(super) geometry: Geometry,
    pub(super) last_fresh_at: Time,
    /// When to take it that nothing will be acknowledged any more.
    pub(super) deadline: Option<Time>,
    /// For when timers are set.
    #[serde(skip)]
    pub(super) wake_at: Option<Time>,
    pub(super) phase: Phase,
    next: u64,
    pub(super) fresh: u64,
    pub(super) unacknowledged: u64,
    /// What the work, the end of the flow and Stop allow.
    pub(super) allowed: u64,
    end: u64,
    pub(super) stop: u64,
    pub(super) pace: Option<Pace>,
    pub(super) lane_change: LaneChange,
    #[serde(skip)]
    pub(super) expiry_at: Option<Time>,
    pub(super) message_at: Time,
    pub(super) source: PathSource,
    pub(super) move_by: MoveBy,
    /// The state of path migration that packets tell (IBA 17.2.8.1.1).
    pub(super) migrated: bool,
    /// Whether the rate was asked for.
    pub(super) is_rated: bool,
    pub(super) attempts_left: u32,
    /// A packet that begins a message; so does every `geometry.packets`-th after it.
    base: u64,
    pub(super) throttle: Throttle,
    pub(super) repeated: u64,
    pub(super) timeouts: u64,
    pub(super) notifications: u64,
    pub(super) lane_changes: Vec<Move>,
    pub(super) lane_changes_total: u64,
    /// Of round trips.
    pub(super) latency: Times,
    messages: Messages,
}

impl Sender {
    pub(super) fn new(flow: FlowId, transport: Transport, work: Work, target: Target) -> Self {
        Self {
            flow,
            transport,
            work,
            source: PathSource::default(),
            move_by: MoveBy::default(),
            target,
            phase: Phase::Path,
            address: Address::default(),
            capacity: Capacity::default(),
            lane_change: LaneChange::No,
            migrated: true,
            geometry: Geometry::new(0, 0),
            unacknowledged: 0,
            next: 0,
            fresh: 0,
            base: 0,
            at: 0,
            allowed: u64::MAX,
            end: u64::MAX,
            stop: u64::MAX,
            pace: None,
            is_rated: false,
            deadline: None,
            attempts_left: 0,
            throttle: Throttle::default(),
            not_before: Time::ZERO,
            queued: 0,
            wake_at: None,
            expiry_at: None,
            last_fresh_at: Time::ZERO,
            message_at: Time::ZERO,
            packets: 0,
            bytes: 0,
            repeated: 0,
            timeouts: 0,
            notifications: 0,
            lane_changes: Vec::new(),
            lane_changes_total: 0,
            latency: Times::default(),
            messages: Messages::default(),
        }
    }

    pub(super) fn is_reliable(&self) -> bool {
        self.transport == Transport::ReliableConnection
    }

    /// Of the messages of a stream.
    pub(super) fn message_times(&self) -> Latency {
        self.messages.report()
    }

    /// Whether packets are under way that no one has acknowledged.
    #[inline]
    pub(super) fn is_outstanding(&self) -> bool {
        self.unacknowledged < self.fresh
    }

    /// Ends it in error if its packets are too large for the port, in bytes of body, or for the way; whether they are. 0 is not known.
    pub(super) fn refuse_mtu(&mut self, of_port: u16) -> bool {
        let largest = self.geometry.payload(0);
        let places = [("port", of_port), ("path", self.capacity.mtu)];
        let refuses = places.into_iter().find(|(_, mtu)| *mtu > 0 && largest > *mtu);
        if let Some((place, mtu)) = refuses {
            let reason = format!("packets of {largest} bytes do not pass the {place}'s MTU of {mtu}");
            self.phase = Phase::Error(reason);
        }
        refuses.is_some()
    }

    /// Cuts the messages from the next one on like this. Only between messages, when nothing is under way.
    pub(super) fn cut(&mut self, geometry: Geometry, bytes_max: Option<u64>) {
        (self.base, self.at, self.geometry) = (self.fresh, 0, geometry);
        let messages = bytes_max.map(|bytes| bytes.div_ceil(geometry.message()));
        let packets = messages.map(|messages| messages.saturating_mul(geometry.packets.into()));
        self.end = packets.map_or(u64::MAX, |packets| self.fresh.saturating_add(packets));
    }

    /// Where the message ends of which something has been sent: here, when nothing has.
    pub(super) fn message_end(&self) -> u64 {
        let packets = u64::from(self.geometry.packets);
        self.base + (self.fresh - self.base).div_ceil(packets) * packets
    }

    /// Up to where new packets may be sent.
    #[inline]
    fn limit(&self) -> u64 {
        self.allowed.min(self.end).min(self.stop).min(self.lane_change.boundary())
    }

    /// Whether everything that was asked for is done.
    pub(super) fn is_done(&self) -> bool {
        self.fresh >= self.end && !self.is_outstanding()
    }

    pub(super) fn is_stopped(&self) -> bool {
        self.fresh >= self.stop && !self.is_outstanding()
    }

    /// Whether something can be sent now. Of a mix, see [`Mix`].
    #[inline]
    pub(super) fn readiness(&self, now: Time, rules: &Rules) -> Readiness {
        match self.offers(now, rules) {
            Readiness::Ready(_) if self.not_before > now => Readiness::At(self.not_before),
            other => other,
        }
    }

    /// Whether there is something to be sent, if not now then as soon as gaps allow it.
    #[inline]
    pub(super) fn offers(&self, now: Time, rules: &Rules) -> Readiness {
        if self.phase != Phase::Active {
            return Readiness::Blocked;
        }
        if self.next >= self.fresh {
            if self.fresh >= self.limit() || self.is_reliable() && self.in_flight() >= rules.window {
                return Readiness::Blocked;
            }
            if let Some(pace) = self.pace.filter(|pace| pace.due > now) {
                return Readiness::At(pace.due);
            }
        }
        Readiness::Ready(self.address.service_level)
    }

    /// The way is slower than it was: what is on it fills the buffers before the slow link. Packets with the right gaps bring as much as that
    /// link takes, so this queue would stay for ever. New ones wait for the time that those on the way need, `each` of them.
    pub(super) fn let_pass(&mut self, now: Time, each: Time) {
        let packets = if self.is_reliable() { self.in_flight() } else { 0 };
        let time = Time::from_nanos(each.as_nanos().saturating_mul(packets));
        self.not_before = self.not_before.max(now + time);
    }

    #[inline]
    fn in_flight(&self) -> u64 {
        self.fresh - self.unacknowledged
    }

    /// The next packet of a reliable connection, or the next datagram to the one destination.
    pub(super) fn emit(&mut self, now: Time, rules: &Rules) -> DataPacket {
        let (number, at) = (self.next, self.at);
        let payload = self.geometry.payload(at);
        let last = at + 1 == self.geometry.packets;
        self.next += 1;
        self.at = if last { 0 } else { at + 1 };
        self.packets += 1;
        if number == self.fresh {
            self.fresh += 1;
            self.bytes += u64::from(payload);
            self.last_fresh_at = now;
            if at == 0 {
                self.message_at = now;
                if self.work == Work::Stream && self.transport == Transport::ReliableConnection {
                    self.messages.begin(now, number + u64::from(self.geometry.packets));
                }
            }
            if last && rules.overhead > Time::ZERO {
                // The host makes the next message while the adapter sends this one.
                self.not_before = self.not_before.max(self.message_at + rules.overhead);
            }
            if let Some(pace) = &mut self.pace {
                pace.advance(now, payload);
            }
        } else {
            self.repeated += 1;
        }
        let mut packet = DataPacket {
            sequence: number,
            made_at: now.as_nanos(),
            dest_qp: queue_pair(self.flow),
            psn: self.psn(number),
            dlid: self.address.dlid,
            service_level: self.address.service_level,
            p_key: self.address.p_key,
            payload,
            migration_request: self.migrated,
            ..DataPacket::default()
        };
        if self.is_reliable() {
            packet.opcode = self.geometry.opcode(at);
            packet.ack_request = last
                || self.in_flight() >= rules.window
                || number % u64::from(rules.acknowledge_every) == 0
                || self.lane_change.asks();
            self.deadline = self.deadline.or(Some(now + rules.ack_timeout));
        } else {
            self.unacknowledged = self.fresh;
            if self.work == Work::PingPong {
                self.deadline = Some(now + rules.ack_timeout);
            }
            self.complete_datagram(&mut packet);
        }
        packet
    }

    /// What a datagram has that other packets have not.
    fn complete_datagram(&self, packet: &mut DataPacket) {
        packet.opcode = opcode::UD_SEND_ONLY;
        packet.q_key = DATAGRAM_KEY;
        packet.src_qp = queue_pair(self.flow);
        packet.migration_request = true;
    }

    /// A packet of a mix comes into being.
    pub(super) fn offer(&mut self) {
        self.fresh += 1;
        (self.next, self.unacknowledged) = (self.fresh, self.fresh);
    }

    /// The next datagram of a mix, with its number among those to the same port.
    pub(super) fn emit_to(&mut self, now: Time, address: Address, sequence: u64) -> DataPacket {
        let payload = self.geometry.payload(self.at);
        self.at = if self.at + 1 >= self.geometry.packets { 0 } else { self.at + 1 };
        let number = self.packets;
        self.packets += 1;
        self.bytes += u64::from(payload);
        self.last_fresh_at = now;
        let mut packet = DataPacket {
            sequence,
            made_at: now.as_nanos(),
            dest_qp: queue_pair(self.flow),
            psn: self.psn(number),
            dlid: address.dlid,
            service_level: address.service_level,
            p_key: address.p_key,
            payload,
            ..DataPacket::default()
        };
        self.complete_datagram(&mut packet);
        packet
    }

    /// Bytes of body of the next packet.
    pub(super) fn next_payload(&self) -> u16 {
        self.geometry.payload(self.at)
    }

    #[inline]
    fn psn(&self, number: u64) -> u32 {
        (first_psn(self.flow).wrapping_add(number as u32)) & PSN_MASK
    }

    /// Takes an acknowledgement. Whether it was about packets that are under way, or about the next one.
    pub(super) fn acknowledge(&mut self, now: Time, packet: &DataPacket, rules: &Rules) -> bool {
        let offset = u64::from(packet.psn.wrapping_sub(self.psn(self.unacknowledged)) & PSN_MASK);
        let in_flight = self.in_flight();
        let acknowledged = match packet.aeth.syndrome {
            aeth::ACK if offset < in_flight => offset + 1,
            aeth::NAK_SEQUENCE_ERROR if offset < in_flight => offset,
            _ => return false,
        };
        self.unacknowledged += acknowledged;
        self.messages.acknowledged(now, self.unacknowledged);
        if packet.aeth.syndrome == aeth::NAK_SEQUENCE_ERROR {
            self.go_back();
        } else if self.next < self.unacknowledged {
            self.seek(self.unacknowledged);
        }
        if acknowledged > 0 {
            self.attempts_left = rules.retries;
        }
        // Progress postpones the end of waiting, but not that of a change of lane: a lane that hardly moves never drains.
        let patience = self.lane_change.since().unwrap_or(now) + rules.ack_timeout;
        self.deadline = self.is_outstanding().then_some(patience.max(now));
        true
    }

    /// Sends again from the first packet that no one has acknowledged.
    pub(super) fn go_back(&mut self) {
        self.seek(self.unacknowledged);
    }

    /// Nothing was acknowledged in time. False: it has been tried often enough.
    pub(super) fn expire(&mut self, now: Time, rules: &Rules) -> bool {
        self.timeouts += 1;
        self.deadline = Some(now + rules.ack_timeout);
        let again = self.attempts_left.checked_sub(1);
        self.attempts_left = again.unwrap_or(0);
        if again.is_none() {
            let number = self.unacknowledged;
            let (lid, sl) = (self.address.dlid, self.address.service_level);
            self.phase = Phase::Error(format!(
                "packet {number} to LID {lid} on service level {sl} is not acknowledged, {} times sent again",
                rules.retries
            ));
            self.deadline = None;
            return false;
        }
        self.go_back();
        true
    }

    fn seek(&mut self, number: u64) {
        self.next = number;
        // What was sent before the messages were cut as they are now is acknowledged.
        self.at = (number.saturating_sub(self.base) % u64::from(self.geometry.packets)) as u32;
    }

    /// The number of the last packet: what the answer to a datagram of a ping-pong repeats.
    pub(super) fn last_number(&self) -> Option<u64> {
        self.fresh.checked_sub(1)
    }
}

/// A datagram that answers another one: to where it came from, as it came, with its number.
pub(super) fn datagram_back(now: Time, packet: &DataPacket, own: QpNum) -> DataPacket {
    DataPacket {
        opcode: opcode::UD_SEND_ONLY,
        sequence: packet.sequence,
        made_at: now.as_nanos(),
        dest_qp: packet.src_qp,
        src_qp: own,
        q_key: DATAGRAM_KEY,
        psn: packet.psn,
        dlid: packet.slid,
        service_level: packet.service_level,
        p_key: packet.p_key,
        payload: packet.payload,
        migration_request: true,
        ..DataPacket::default()
    }
}
