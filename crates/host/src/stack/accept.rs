//! Data packets that come in.

use weft_machine::Time;
use weft_wire::{CongestionEvent, DataPacket, Lid, ServiceLevel, opcode};

use super::numbers::queue_pair;
use super::receiver::Taken;
use super::sender::{Phase, Target, datagram_back};
use super::{Output, Stack, lanes};
use crate::traffic::{Transport, Work};

impl Stack {
    /// Takes a data packet.
    pub(super) fn accept(&mut self, now: Time, packet: &DataPacket) {
        let place = self.flows.find_queue_pair(packet.dest_qp);
        let known = place.is_some_and(|place| match packet.opcode {
            opcode::RC_SEND_FIRST | opcode::RC_SEND_MIDDLE | opcode::RC_SEND_LAST | opcode::RC_SEND_ONLY => {
                self.accept_send(now, place, packet)
            }
            opcode::RC_ACKNOWLEDGE => self.accept_acknowledgement(now, place, packet),
            opcode::UD_SEND_ONLY => self.accept_datagram(now, place, packet),
            opcode::CONGESTION_NOTIFICATION => {
                self.accept_notification(now, place, packet.service_level, packet.slid)
            }
            _ => false,
        });
        if !known {
            self.counts.stray_packets += 1;
        }
    }

    fn accept_send(&mut self, now: Time, place: u32, packet: &DataPacket) -> bool {
        let (every, clock) = (self.rules.acknowledge_every, self.options.common_clock);
        let Some(receiver) = self.flows.receiver(place) else { return false };
        if receiver.transport != Transport::ReliableConnection || receiver.ended.is_some() {
            return false;
        }
        let taken = receiver.take(packet, every);
        if taken != Taken::Nothing {
            receiver.deliver(now);
        }
        if clock && taken != Taken::Nothing && receiver.work == Work::Stream {
            receiver.latency.record(now.saturating_sub(Time::from_nanos(packet.made_at)));
        }
        let ping_pong = receiver.work == Work::PingPong && taken == Taken::Message;
        if let Some(acknowledgement) = receiver.acknowledgement {
            self.queue_acknowledgement(now, place, acknowledgement.service_level);
        }
        if ping_pong {
            self.answer_message(now, place, packet);
        }
        true
    }

    fn accept_acknowledgement(&mut self, now: Time, place: u32, packet: &DataPacket) -> bool {
        let rules = self.rules;
        let Some(sender) = self.flows.sender(place).filter(|sender| sender.is_reliable()) else {
            return false;
        };
        let level = sender.address.service_level;
        if sender.acknowledge(now, packet, &rules) {
            sender.advance_lane_change(now, packet);
        }
        let moved = sender.address.service_level != level;
        lanes::arm_expiry(sender, place, &mut self.timers);
        if packet.becn {
            self.accept_notification(now, place, level, packet.slid);
        }
        if moved {
            self.dequeue(place);
        }
        self.wake(now, place);
        true
    }

    fn accept_datagram(&mut self, now: Time, place: u32, packet: &DataPacket) -> bool {
        let (clock, overhead) = (self.options.common_clock, self.rules.both_ends());
        let Some(flow) = self.flows.get_mut(place) else { return false };
        let own = queue_pair(flow.id);
        if packet.fecn {
            let notification = DataPacket {
                opcode: opcode::CONGESTION_NOTIFICATION,
                dest_qp: packet.src_qp,
                dlid: packet.slid,
                service_level: packet.service_level,
                p_key: packet.p_key,
                becn: true,
                migration_request: true,
                ..DataPacket::default()
            };
            self.queue_reply(now, notification);
        }
        let Some(flow) = self.flows.get_mut(place) else { return false };
        match (&mut flow.receiver, &mut flow.sender) {
            (Some(receiver), _) if receiver.transport == Transport::UnreliableDatagram => {
                receiver.take_datagram(packet);
                receiver.deliver(now);
                if clock && receiver.work == Work::Stream {
                    receiver.latency.record(now.saturating_sub(Time::from_nanos(packet.made_at)));
                }
                if receiver.work == Work::PingPong {
                    self.queue_reply(now, datagram_back(now, packet, own));
                }
                true
            }
            (None, Some(sender)) if sender.work == Work::PingPong && !sender.is_reliable() => {
                sender.take_answer(now, packet.sequence, overhead);
                self.wake(now, place);
                true
            }
            _ => false,
        }
    }

    /// A congestion notification for what is sent on a service level.
    fn accept_notification(&mut self, now: Time, place: u32, service_level: ServiceLevel, from: Lid) -> bool {
        let Some(sender) = self.flows.sender(place) else { return false };
        sender.notifications += 1;
        let Some(settings) = &self.facts.congestion else { return true };
        let throttle = match settings.by_service_level {
            true => &mut self.lanes[usize::from(service_level.0 & 15)].throttle,
            false => &mut sender.throttle,
        };
        if throttle.notify(now, settings, service_level, self.options.dilation) {
            // Both ends of a flow have the same number.
            let qp = queue_pair(sender.flow);
            self.outputs.push_back(Output::Congestion(CongestionEvent {
                local_qp: qp,
                remote_qp: qp,
                remote_lid: from,
                service_level,
                service_type: if sender.is_reliable() { 0 } else { 3 },
            }));
        }
        true
    }

    /// A message of a ping-pong is complete: it is answered, or is the answer.
    fn answer_message(&mut self, now: Time, place: u32, packet: &DataPacket) {
        let overhead = self.rules.both_ends();
        let Some(flow) = self.flows.get_mut(place) else { return };
        let (Some(receiver), Some(sender)) = (&flow.receiver, &mut flow.sender) else { return };
        if matches!(sender.target, Target::Peer) {
            let size = receiver.packet_bytes;
            sender.answer(now, receiver.message_bytes, size, overhead, packet);
        } else if matches!(sender.phase, Phase::Active | Phase::Held) {
            sender.take_pong(now, overhead);
        }
        self.dequeue(place);
        self.wake(now, place);
    }
}
