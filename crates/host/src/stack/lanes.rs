//! Order of packets to the adapter: by service level acknowledgements first, then the flows in turn, as long as there is room.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};
use weft_machine::Time;
use weft_wire::{DataPacket, QpNum, ServiceLevel};

use super::Stack;
use super::clock::Rebase;
use super::congestion::Throttle;
use super::paths::Address;
use super::sender::{Readiness, Sender, Target};
use super::static_rate::{next_at, packet_time, time_at};
use super::timers::Timer;

/// Notifications and answers to datagrams that wait at most.
const REPLIES_MAX: usize = 64;
/// Packets that a mix with a rate makes at most before something else is looked at.
const OFFERS_MAX: usize = 64;
/// Packets of such a mix that are made together while others wait.
const OFFERS_DEFERRED: u64 = 7;

/// A rate that is no limit does not keep a host busy for ever.
const LEAST_SPAN: Time = Time::from_micros(1);

/// How long a flow waits behind a packet that was refused, where packets take no time.
const REFUSED_PAUSE: Time = Time::from_millis(1);

/// What waits for the adapter on one service level. What every packet needs is in front, in one line of the cache.
#[derive(Debug, Default)]
#[repr(C, align(64))]
pub(super) struct Lane {
    /// Packets in the adapter.
    in_adapter: u16,
    /// There may be acknowledgements or replies.
    answers: bool,
    not_before: Time,
    timer_at: Option<Time>,
    /// Senders that can send, in turn.
    senders: VecDeque<u32>,
    /// Receivers that have an acknowledgement to send.
    acknowledgements: VecDeque<u32>,
    /// Whole packets that answer others and that no one misses.
    replies: VecDeque<DataPacket>,
    /// Congestion control of all the service level's flows.
    pub(super) throttle: Throttle,
}

/// What of a lane follows a host to another adapter: the injection delay of congestion control.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct KeptLane {
    not_before: Time,
    throttle: Throttle,
}

impl KeptLane {
    pub(super) fn verify(&self) -> Result<(), &'static str> {
        self.throttle.verify()
    }
}

#[cfg(target_pointer_width = "64")]
const _: () = assert!(std::mem::offset_of!(Lane, acknowledgements) == 64);

impl Lane {
    #[cfg(test)]
    pub(super) fn held(&self) -> usize {
        self.senders.len() + self.replies.len() + self.acknowledgements.len()
    }

    /// Packets have left the adapter.
    #[inline]
    pub(super) fn leave(&mut self, packets: u16) {
        self.in_adapter = self.in_adapter.saturating_sub(packets);
    }

    /// Nothing waits for the adapter any more. How many packets are cut off by it: those in the adapter, and replies.
    pub(super) fn quiet(&mut self) -> u64 {
        let cut = usize::from(self.in_adapter) + self.replies.len();
        (self.answers, self.timer_at) = (false, None);
        self.senders.clear();
        self.acknowledgements.clear();
        self.replies.clear();
        cut as u64
    }

    /// What of it follows a host to another adapter.
    pub(super) fn kept(&self) -> KeptLane {
        KeptLane { not_before: self.not_before, throttle: self.throttle }
    }

    /// Takes that over; packets in the adapter here are others.
    pub(super) fn restore(&mut self, kept: KeptLane) {
        (self.not_before, self.throttle) = (kept.not_before, kept.throttle);
    }

    /// Its moments are those of another clock from now on.
    pub(super) fn rebase(&mut self, rebase: &Rebase) {
        rebase.shift(&mut self.not_before);
        self.throttle.rebase(rebase);
    }

    fn is_idle(&self) -> bool {
        self.senders.is_empty() && self.replies.is_empty() && self.acknowledgements.is_empty()
    }
}

impl Stack {
    /// Packets have left the adapter.
    #[inline]
    pub(super) fn make_room(&mut self, now: Time, level: ServiceLevel, packets: u16) {
        self.lanes[usize::from(level.0 & 15)].leave(packets);
        self.pump(now, level);
    }

    /// The adapter has refused a packet. It took no time, so the flow that it is of waits as long as it would have
    /// taken: the destination's queue pair has the flow's number too.
    pub(super) fn hold_back(&mut self, now: Time, dest_qp: QpNum) {
        self.counts.packets_refused += 1;
        let (rate, dilation) = (self.facts.rate, self.options.dilation.max(1));
        let place = self.flows.find_queue_pair(dest_qp);
        let Some(sender) = place.and_then(|place| self.flows.sender(place)) else { return };
        let span = time_at(rate, sender.next_payload().into(), dilation);
        let span = span.map_or(REFUSED_PAUSE, |span| span.max(LEAST_SPAN));
        sender.not_before = sender.not_before.max(now) + span;
    }

    /// The port lets data pass again.
    pub(super) fn pump_all(&mut self, now: Time) {
        for level in 0..16 {
            self.pump(now, ServiceLevel(level));
        }
    }

    /// A receiver has an acknowledgement to send on this service level.
    pub(super) fn queue_acknowledgement(&mut self, now: Time, place: u32, level: ServiceLevel) {
        let Some(receiver) = self.flows.receiver(place) else { return };
        let bit = 1 << (level.0 & 15);
        if receiver.queued & bit == 0 {
            receiver.queued |= bit;
            let lane = &mut self.lanes[usize::from(level.0 & 15)];
            lane.acknowledgements.push_back(place);
            lane.answers = true;
        }
        self.pump(now, level);
    }

    /// Sends a packet that may be lost.
    pub(super) fn queue_reply(&mut self, now: Time, packet: DataPacket) {
        let lane = &mut self.lanes[usize::from(packet.service_level.0 & 15)];
        if lane.replies.len() >= REPLIES_MAX {
            self.counts.replies_dropped += 1;
            return;
        }
        lane.replies.push_back(packet);
        lane.answers = true;
        self.pump(now, packet.service_level);
    }

    /// A sender may have become able to send.
    pub(super) fn wake(&mut self, now: Time, place: u32) {
        let rules = self.rules;
        let Some(sender) = self.flows.sender(place) else { return };
        if matches!(&sender.target, Target::Mix(mix) if mix.is_open_loop()) {
            self.offer(now, place);
            return;
        }
        match sender.readiness(now, &rules) {
            Readiness::Blocked => {}
            Readiness::At(at) => self.set_wake(place, at),
            Readiness::Ready(level) => {
                if let Target::Mix(mix) = &mut sender.target {
                    let level = mix.head();
                    self.enqueue(now, place, level);
                } else {
                    self.enqueue(now, place, level);
                }
            }
        }
    }

    /// Puts a sender at the end of a service level's ring, unless it stands there.
    pub(super) fn enqueue(&mut self, now: Time, place: u32, level: ServiceLevel) {
        let Some(sender) = self.flows.sender(place) else { return };
        let bit = 1 << (level.0 & 15);
        if sender.queued & bit == 0 {
            sender.queued |= bit;
            self.lanes[usize::from(level.0 & 15)].senders.push_back(place);
            self.pump(now, level);
        }
    }

    /// Takes a sender out of all rings.
    pub(super) fn dequeue(&mut self, place: u32) {
        let Some(sender) = self.flows.sender(place) else { return };
        let queued = std::mem::take(&mut sender.queued);
        for (level, lane) in self.lanes.iter_mut().enumerate() {
            if queued >> level & 1 == 1 {
                lane.senders.retain(|other| *other != place);
            }
        }
    }

    /// A flow is closed: its place may be another's.
    pub(super) fn forget_acknowledgements(&mut self, place: u32) {
        for lane in &mut self.lanes {
            lane.acknowledgements.retain(|other| *other != place);
        }
    }

    fn set_wake(&mut self, place: u32, at: Time) {
        let Some(sender) = self.flows.sender(place) else { return };
        if sender.wake_at.is_none_or(|known| at < known) {
            sender.wake_at = Some(at);
            self.timers.set(at, Timer::Wake(place));
        }
    }

    /// Makes the packets of a mix that are due, and lets them wait on their lanes.
    fn offer(&mut self, now: Time, place: u32) {
        let rules = self.rules;
        let (mut touched, mut waits) = (0u16, false);
        for _ in 0..OFFERS_MAX {
            let Some(sender) = self.flows.sender(place) else { break };
            if sender.offers(now, &rules) != Readiness::Ready(sender.address.service_level) {
                break;
            }
            let payload = sender.next_payload();
            if let Some(pace) = &mut sender.pace {
                pace.advance(now, payload);
            }
            sender.offer();
            let Target::Mix(mix) = &mut sender.target else { break };
            let (level, behind) = mix.offer();
            touched |= level.map_or(0, |level| 1 << (level.0 & 15));
            waits = behind;
        }
        if let Some(Sender { target: Target::Mix(mix), .. }) = self.flows.sender(place) {
            touched |= std::mem::take(&mut mix.held);
        }
        while touched != 0 {
            let Some(Sender { target: Target::Mix(mix), .. }) = self.flows.sender(place) else { return };
            let level = mix.turn(touched);
            touched &= !(1 << level.0);
            self.enqueue(now, place, level);
        }
        let Some(sender) = self.flows.sender(place) else { return };
        // Where others wait no one misses the next few before they can be sent, and one wake-up makes them all.
        let later = sender.pace.filter(|_| waits).map(|pace| pace.due_with(OFFERS_DEFERRED));
        match sender.offers(now, &rules) {
            Readiness::At(at) => self.set_wake(place, later.unwrap_or(at).max(at)),
            Readiness::Ready(_) => self.set_wake(place, now + LEAST_SPAN),
            Readiness::Blocked => {}
        }
    }

    /// Gives the adapter what it has room for on one service level.
    pub(super) fn pump(&mut self, now: Time, level: ServiceLevel) {
        let at = usize::from(level.0 & 15);
        let room = self.options.adapter_packets.max(1);
        while self.facts.active && !self.is_suspended && self.lanes[at].in_adapter < room {
            if self.lanes[at].is_idle() {
                return;
            }
            let packet = self.next_reply(at).or_else(|| self.next_data(now, level));
            let Some(mut packet) = packet else { return };
            packet.slid = self.facts.lid;
            let at = usize::from(packet.service_level.0 & 15);
            self.lanes[at].in_adapter += 1;
            self.injects.push_back(packet);
        }
    }

    /// The next acknowledgement or other reply.
    fn next_reply(&mut self, at: usize) -> Option<DataPacket> {
        if !self.lanes[at].answers {
            return None;
        }
        while let Some(place) = self.lanes[at].acknowledgements.pop_front() {
            let Some(receiver) = self.flows.receiver(place) else { continue };
            receiver.queued &= !(1 << at);
            // It may have gone on another service level meanwhile.
            let here = receiver.acknowledgement.filter(|ack| usize::from(ack.service_level.0 & 15) == at);
            if let Some(packet) = here.and_then(|_| receiver.acknowledge()) {
                let flow = self.flows.get_mut(place).map_or_else(Default::default, |flow| flow.id);
                return Some(DataPacket { dest_qp: super::numbers::queue_pair(flow), ..packet });
            }
        }
        let lane = &mut self.lanes[at];
        lane.answers = lane.replies.len() > 1;
        lane.replies.pop_front()
    }

    /// The next packet of the flow whose turn it is.
    fn next_data(&mut self, now: Time, level: ServiceLevel) -> Option<DataPacket> {
        let at = usize::from(level.0 & 15);
        if self.lanes[at].not_before > now {
            self.set_lane_timer(level);
            return None;
        }
        // Each sender leaves the ring or sends, so this ends.
        while let Some(place) = self.lanes[at].senders.pop_front() {
            let rules = self.rules;
            let Some(sender) = self.flows.sender(place) else { continue };
            sender.queued &= !(1 << at);
            let is_open_loop = matches!(&sender.target, Target::Mix(mix) if mix.is_open_loop());
            let packet = match is_open_loop {
                true => self.next_of_open_loop(now, place, level),
                false => self.next_of(now, place, level),
            };
            let Some(packet) = packet else { continue };
            self.keep_delay(now, place, level, packet.size());
            let Some(sender) = self.flows.sender(place) else { return Some(packet) };
            arm_expiry(sender, place, &mut self.timers);
            if !is_open_loop {
                self.rejoin(now, place, &rules);
            }
            return Some(packet);
        }
        None
    }

    /// The next packet of a mix on a service level, among those that wait.
    fn next_of_open_loop(&mut self, now: Time, place: u32, level: ServiceLevel) -> Option<DataPacket> {
        let sender = self.flows.sender(place)?;
        let Target::Mix(mix) = &mut sender.target else { return None };
        let gap = Some(sender.not_before).filter(|at| *at > now);
        let Some(taken) = Some(now).filter(|_| gap.is_none()).and_then(|now| mix.take(now, level)) else {
            if let Some(at) = gap.or_else(|| mix.due(level)) {
                mix.held |= 1 << (level.0 & 15);
                self.set_wake(place, at);
            }
            return None;
        };
        // What was counted for this lane goes there, even when new packets take another one.
        let address = Address { service_level: level, ..taken.address };
        let waits = mix.waits(level);
        let packet = sender.emit_to(now, address, taken.sequence);
        let time = packet_time(packet.size(), taken.rate, &self.facts, self.options.dilation);
        if let Target::Mix(mix) = &mut sender.target {
            mix.space(now, taken, time);
        }
        if waits {
            sender.queued |= 1 << (level.0 & 15);
            self.lanes[usize::from(level.0 & 15)].senders.push_back(place);
        }
        Some(packet)
    }

    /// The next packet of a sender that has one at a time, if it belongs on this service level.
    fn next_of(&mut self, now: Time, place: u32, level: ServiceLevel) -> Option<DataPacket> {
        let rules = self.rules;
        let sender = self.flows.sender(place)?;
        let mut ready = sender.readiness(now, &rules);
        if let (Readiness::Ready(_), Target::Mix(mix)) = (ready, &mut sender.target) {
            ready = Readiness::Ready(mix.head());
        }
        match ready {
            Readiness::Ready(now_on) if now_on == level => {}
            Readiness::Ready(other) => {
                self.join(place, other);
                return None;
            }
            Readiness::At(at) => {
                self.set_wake(place, at);
                return None;
            }
            Readiness::Blocked => return None,
        }
        if let Target::Mix(mix) = &mut sender.target {
            // Packets take no time here, and so there are no gaps.
            let taken = mix.take(now, level)?;
            sender.offer();
            return Some(sender.emit_to(now, taken.address, taken.sequence));
        }
        let (packet, rate) = (sender.emit(now, &rules), sender.capacity.rate);
        let time = packet_time(packet.size(), rate, &self.facts, self.options.dilation);
        if time > Time::ZERO {
            sender.not_before = next_at(sender.not_before, now, time);
        }
        Some(packet)
    }

    /// Puts a sender into a ring without looking at what can be sent there; somebody else does that.
    fn join(&mut self, place: u32, level: ServiceLevel) {
        let Some(sender) = self.flows.sender(place) else { return };
        let bit = 1 << (level.0 & 15);
        if sender.queued & bit == 0 {
            sender.queued |= bit;
            self.lanes[usize::from(level.0 & 15)].senders.push_back(place);
            self.pump_later |= bit;
        }
    }

    /// A sender that has sent one packet takes its place behind the others, if it has another one.
    fn rejoin(&mut self, now: Time, place: u32, rules: &super::sender::Rules) {
        let Some(sender) = self.flows.sender(place) else { return };
        match sender.readiness(now, rules) {
            Readiness::Blocked => {}
            Readiness::At(at) => self.set_wake(place, at),
            Readiness::Ready(mut level) => {
                if let Target::Mix(mix) = &mut sender.target {
                    level = mix.head();
                }
                self.join(place, level);
            }
        }
    }

    /// Keeps the injection delay of congestion control.
    #[inline]
    fn keep_delay(&mut self, now: Time, place: u32, level: ServiceLevel, bytes: usize) {
        let Some(settings) = &self.facts.congestion else { return };
        let (by_level, dilation) = (settings.by_service_level, self.options.dilation);
        let lane = &mut self.lanes[usize::from(level.0 & 15)];
        if by_level {
            let spacing = lane.throttle.spacing(now, bytes, &self.facts, level, dilation);
            lane.not_before = now + spacing;
        } else if let Some(sender) = self.flows.sender(place) {
            let spacing = sender.throttle.spacing(now, bytes, &self.facts, level, dilation);
            sender.not_before = sender.not_before.max(now + spacing);
        }
    }

    fn set_lane_timer(&mut self, level: ServiceLevel) {
        let lane = &mut self.lanes[usize::from(level.0 & 15)];
        if lane.timer_at.is_none_or(|known| lane.not_before < known) {
            lane.timer_at = Some(lane.not_before);
            self.timers.set(lane.not_before, Timer::Lane(level.0 & 15));
        }
    }

    /// A lane may be used again.
    pub(super) fn wake_lane(&mut self, now: Time, level: u8) {
        self.lanes[usize::from(level & 15)].timer_at = None;
        self.pump(now, ServiceLevel(level));
    }

    /// Looks at the lanes that senders have joined meanwhile.
    #[inline]
    pub(super) fn settle(&mut self, now: Time) {
        // A sender joins another lane only after it has left one, so this ends.
        while self.pump_later != 0 {
            let level = self.pump_later.trailing_zeros() as u8;
            self.pump_later &= self.pump_later - 1;
            self.pump(now, ServiceLevel(level));
        }
    }
}

/// Sets the timer of a sender whose packets are to be acknowledged.
pub(super) fn arm_expiry(sender: &mut Sender, place: u32, timers: &mut super::timers::Timers) {
    if let Some(deadline) = sender.deadline.filter(|_| sender.expiry_at.is_none()) {
        sender.expiry_at = Some(deadline);
        timers.set(deadline, Timer::Expiry(place));
    }
}
