//! Messages to and fro: the next one goes when the one before it has been answered.

use weft_machine::Time;
use weft_wire::DataPacket;

use super::numbers::Geometry;
use super::paths::Address;
use super::sender::Sender;

impl Sender {
    /// The other side's message is complete.
    ///
    /// `overhead` is what the hosts have spent on the message and its answer, beside what the answering end has waited.
    pub(super) fn take_pong(&mut self, now: Time, overhead: Time) {
        if self.fresh < self.allowed {
            return;
        }
        self.latency.record(now.saturating_sub(self.message_at) + overhead);
        self.not_before = self.not_before.max(now + overhead);
        self.allow_message();
    }

    /// The answer to the datagram of this number has come.
    pub(super) fn take_answer(&mut self, now: Time, number: u64, overhead: Time) {
        // Another number is a late answer to one that was given up.
        if self.deadline.is_some() && self.last_number() == Some(number) {
            self.deadline = None;
            // The other end sends datagrams back at once: what its host would have spent is waited for here.
            self.take_pong(now, overhead + overhead);
        }
    }

    /// A datagram, or its answer, is lost: the next one goes.
    pub(super) fn lose_datagram(&mut self) {
        self.timeouts += 1;
        self.deadline = None;
        self.allow_message();
    }

    pub(super) fn allow_message(&mut self) {
        self.allowed = self.fresh + u64::from(self.geometry.packets);
    }

    /// Answers a message of the same length, to where its last packet came from.
    pub(super) fn answer(
        &mut self,
        now: Time,
        message_bytes: u32,
        packet_bytes: u16,
        overhead: Time,
        packet: &DataPacket,
    ) {
        self.not_before = self.not_before.max(now + overhead);
        let &DataPacket { slid: dlid, service_level, p_key, .. } = packet;
        self.move_to(now, Address { dlid, service_level, p_key });
        if self.fresh >= self.allowed && !self.is_outstanding() {
            self.cut(Geometry::new(message_bytes, packet_bytes), None);
        }
        self.allowed = self.allowed.saturating_add(self.geometry.packets.into());
    }
}
