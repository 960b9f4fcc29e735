//! The ports' departing sides: who stands in line for which lane, which lane has its turn, and when a packet has left.

use weft_machine::Time;
use weft_wire::{PortNum, ServiceLevel, VirtualLane};

use super::arbiter::Arbiter;
use super::buffer::{BlockCount, Body, Held};
use super::index::{LaneIndex, LaneSet, PoolIndex, QueueIndex};
use super::pace::Pace;
use super::wait::Wait;
use super::{CREDIT_MAX, DataPath};
use crate::counters::Uncounted;
use crate::counters::is_multicast;
use crate::{Device, Frame, Output};

/// What a port is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// Nothing: it may begin to send.
    Idle,
    /// A packet is on its way out.
    Sending,
    /// A packet is on its way out, and there is room for another behind the crossbar.
    Open,
    /// The host has sent as much as it may.
    Gated,
}

/// A port's departing side, in two lines of the cache, the first of which is all that a packet needs that stands in line.
#[derive(Debug)]
#[repr(C, align(64))]
pub(super) struct Out {
    pub(super) checks: Checks,
    /// Whether data may leave: the port is Active.
    pub(super) active: bool,
    pub(super) phase: Phase,
    /// VLStallCount.
    pub(super) stall_count: u8,
    /// The lane of the packet on its way out, and the packet.
    pub(super) sending_lane: VirtualLane,
    pub(super) sending: PoolIndex,
    /// When the host may send again.
    pub(super) gate_end: Time,
    /// HOQLife, in nanoseconds of machine time.
    pub(super) head_life: u64,
    /// Lanes for which somebody stands in line.
    pub(super) wanted: LaneSet,
    /// Of these, the lanes with enough credit for the first in line.
    pub(super) ready: LaneSet,
    /// Lanes that are stalled ([`super::lifetime`]).
    pub(super) stalled: LaneSet,
    /// Lanes whose credit was missing since fewer bytes waited than make a congestion.
    pub(super) starved: LaneSet,
    /// PortXmitWait: somebody stands in line, the port is free, and there is no credit.
    pub(super) wait: Wait,
    /// Flow control packets that have come in and have not been counted yet.
    pub(super) flow_received: u64,
    pub(super) pace: Pace,
    pub(super) arbiter: Arbiter,
}

const _: () = assert!(std::mem::offset_of!(Out, pace) == 64 && size_of::<Out>() == 128);

/// What every packet is checked against at a port, in one place.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Checks {
    /// Whether the link is up.
    pub(super) up: bool,
    /// Whether partitions are enforced on arrival, and on departure.
    pub(super) enforces_inbound: bool,
    pub(super) enforces_outbound: bool,
    /// Data lanes in use.
    pub(super) lanes: u8,
    /// The longest packet that the port takes, and that its neighbour takes, in bytes.
    pub(super) receive_size_max: u16,
    pub(super) packet_size_max: u16,
}

/// One lane of a port's departing side, in one line of the cache.
#[derive(Clone, Debug)]
#[repr(align(64))]
pub(super) struct OutLane {
    /// The line: queues whose heads want this lane of this port, chained by [`Queue::next`](super::Queue::next).
    pub(super) first: QueueIndex,
    pub(super) last: QueueIndex,
    /// Blocks of the first in line.
    pub(super) first_blocks: u8,
    /// Whether data was ever sent since the link began.
    pub(super) used: bool,
    /// Heads dropped in a row because they waited for too long.
    pub(super) stalls: u8,
    /// Blocks that are sent or sure to be, since the link began, and those of them that are still behind the crossbar (FCTBS is
    /// without these).
    pub(super) sent: BlockCount,
    pub(super) unsent: u16,
    /// The peer's limit (FCCL).
    pub(super) limit: BlockCount,
    /// Bytes in this device's buffers that are to leave by this lane of this port.
    pub(super) waiting: u32,
    /// Somebody stands in line, and nothing of this lane is being sent.
    pub(super) wait: Wait,
    pub(super) stalled_until: Time,
    /// What has gone out and is not in the port's counters yet.
    pub(super) uncounted: Uncounted,
}

const _: () = assert!(size_of::<OutLane>() == 64);

impl Default for OutLane {
    fn default() -> Self {
        Self {
            first: QueueIndex::NONE,
            last: QueueIndex::NONE,
            first_blocks: 0,
            used: false,
            stalls: 0,
            sent: BlockCount::default(),
            unsent: 0,
            limit: BlockCount::default(),
            waiting: 0,
            wait: Wait::default(),
            stalled_until: Time::ZERO,
            uncounted: Uncounted::default(),
        }
    }
}

impl OutLane {
    /// Blocks that may still be sent. A limit behind what was sent allows none.
    #[inline]
    pub(super) fn credit(&self) -> u16 {
        let left = self.limit.since(self.sent);
        if left > CREDIT_MAX { 0 } else { left }
    }

    /// A packet of this many blocks leaves, or is sure to.
    #[inline]
    pub(super) fn take_credit(&mut self, blocks: u8) {
        debug_assert!(self.credit() >= u16::from(blocks), "credit is never negative");
        self.sent = self.sent.plus(u16::from(blocks));
        self.used = true;
    }

    /// Blocks that have been sent: those of packets behind the crossbar have not, though they have their credit.
    #[inline]
    pub(super) fn really_sent(&self) -> BlockCount {
        self.sent.minus(self.unsent)
    }

    pub(super) fn reset_credit(&mut self) {
        (self.sent, self.limit) = Default::default();
        (self.unsent, self.stalls, self.used) = (0, 0, false);
        self.stalled_until = Time::ZERO;
    }
}

impl Out {
    pub(super) fn new(arbiter: Arbiter) -> Self {
        Self {
            active: false,
            phase: Phase::Idle,
            sending: PoolIndex::NONE,
            sending_lane: VirtualLane::default(),
            gate_end: Time::ZERO,
            wanted: LaneSet::EMPTY,
            ready: LaneSet::EMPTY,
            stalled: LaneSet::EMPTY,
            starved: LaneSet::EMPTY,
            wait: Wait::default(),
            flow_received: 0,
            pace: Pace::default(),
            arbiter,
            head_life: u64::MAX,
            stall_count: 0,
            checks: Checks::default(),
        }
    }

    /// Whether a lane with somebody in line waits for its turn.
    #[inline]
    pub(super) fn makes_wait(&self, lane: VirtualLane) -> bool {
        match self.phase {
            Phase::Idle => true,
            Phase::Sending | Phase::Open => self.sending_lane != lane,
            Phase::Gated => false,
        }
    }

    /// Whether it takes a packet.
    #[inline]
    pub(super) fn is_open(&self) -> bool {
        matches!(self.phase, Phase::Idle | Phase::Open)
    }
}

impl DataPath {
    /// The next packet in an output's arbitration leaves its queue: the queue, the packet and its lane. None while the
    /// inputs of all that could go send as much as they may, or their lanes have had their shares. At least one lane is ready.
    #[inline]
    pub(super) fn take_turn(
        &mut self,
        at: Time,
        output: PortNum,
    ) -> Option<(QueueIndex, PoolIndex, VirtualLane)> {
        let limits = self.crossing.limits_inputs();
        let mut ready = self.allowed(at, output, self.outs[output].ready);
        if ready.is_empty() {
            return None;
        }
        let mut sole = QueueIndex::NONE;
        if limits {
            (ready, sole) = self.sendable(at, output, ready);
            if ready.is_empty() {
                // There is credit: it waits for inputs.
                self.outs[output].wait.end(at);
                return None;
            }
        }
        let out = &mut self.outs[output];
        let (lane, high) = out.arbiter.pick(ready);
        out.wait.end(at);
        let index = self.index(output, lane);
        self.out_lanes[index].wait.end(at);
        let first = self.out_lanes[index].first;
        let queue = match (limits, sole) {
            (false, _) => first,
            (true, QueueIndex::NONE) => self.first_sendable(at, output, lane),
            (true, sole) => sole,
        };
        if queue == first {
            self.leave_line(at, output, lane);
        } else {
            self.quit_line(at, queue, output, lane);
        }
        let input = self.queues[queue].input;
        let place = self.pop_queue(queue);
        debug_assert!(place.is_some(), "who stands in line has a head");
        let place = place?;
        let (size, blocks) = {
            let held = self.pool.get(place);
            (held.size(), held.blocks)
        };
        self.mark(at, output, lane, place);
        let out_lane = &mut self.out_lanes[index];
        out_lane.waiting -= u32::from(size);
        out_lane.stalls = 0;
        self.outs[output].arbiter.sent(blocks, high);
        if let Some(shares) = &mut self.shares {
            shares.sent(at, output, lane, size, self.outs[output].wanted);
        }
        if limits {
            self.crossing.engage(at, input, size);
            self.claim_met(output, input);
        }
        Some((queue, place, lane))
    }
}

impl Device {
    /// Puts a packet into a queue of the crossbar.
    #[inline(always)]
    pub(super) fn enqueue(&mut self, at: Time, queue: QueueIndex, held: Held, size: u16, lane: VirtualLane) {
        let output = held.output;
        self.data.account[lane].held += 1;
        let place = self.data.pool.put(held, at);
        self.join(at, queue, place, output, size, lane);
    }

    /// A packet that is held joins a queue of the crossbar.
    #[inline(always)]
    pub(super) fn join(
        &mut self,
        at: Time,
        queue: QueueIndex,
        place: PoolIndex,
        output: PortNum,
        size: u16,
        lane: VirtualLane,
    ) {
        let data = &mut self.data;
        let index = data.index(output, lane);
        let queue = data.queue_for(queue, output);
        data.out_lanes[index].waiting += u32::from(size);
        if data.queues[queue].push(&mut data.pool, place) {
            self.head_changed(at, queue);
        }
    }

    /// The queue has another head: it stands in line, unless it is dropped and the next one is the head.
    #[inline]
    pub(super) fn head_changed(&mut self, at: Time, queue: QueueIndex) {
        loop {
            let data = &mut self.data;
            let place = data.queues[queue].head;
            if place == PoolIndex::NONE {
                return;
            }
            let held = data.pool.get(place);
            let (output, lane, blocks) = (held.output, held.lane(), held.blocks);
            let waits = &mut data.queues[queue];
            (waits.head_since, waits.head_blocks) = (at, blocks);
            if let Some(reason) = data.refuses_head(at, place) {
                self.drop_head(queue, reason);
                continue;
            }
            return data.stand_in_line(at, queue, output, lane, blocks);
        }
    }

    /// Begins to send, if the port takes a packet and a lane may.
    pub(super) fn start(&mut self, at: Time, output: PortNum) {
        if !self.data.crossing.behind.is_empty() {
            return self.fill(at, output);
        }
        loop {
            let data = &mut self.data;
            let out = &mut data.outs[output];
            if out.phase != Phase::Idle {
                return;
            }
            if out.ready.is_empty() {
                if !out.wanted.is_empty() {
                    out.wait.begin(at);
                }
                return;
            }
            let Some((queue, place, lane)) = data.take_turn(at, output) else {
                return data.deadlines.set(usize::from(output.0), data.share_opens(at, output));
            };
            let (size, buffer) = {
                let held = data.pool.get(place);
                (held.size(), held.buffer)
            };
            if buffer != LaneIndex::NONE && !data.host {
                self.statistics.forwarded += 1;
            }
            let index = data.index(output, lane);
            let out = &mut data.outs[output];
            let mut took = out.pace.take(usize::from(size), data.dilation);
            if data.crossing.latency > Time::ZERO {
                took += (data.pool.arrived(place) + data.crossing.latency).saturating_sub(at);
            }
            if let Some(gate) = data.gates.get_mut(output) {
                out.gate_end = at + gate.take(usize::from(size), data.dilation);
            }
            if took > Time::ZERO {
                (out.phase, out.sending, out.sending_lane) = (Phase::Sending, place, lane);
                data.deadlines.set(usize::from(output.0), at + took);
            }
            if data.cut_through.is_some() {
                self.announce(at, output, lane, place);
            }
            if took > Time::ZERO {
                return self.head_changed(at, queue);
            }
            self.depart(at, output, lane, place);
            let out = &self.data.outs[output];
            if out.gate_end > at {
                self.close_gate(at, output);
            } else if out.wanted.contains(lane) {
                self.data.out_lanes[index].wait.begin(at);
            }
            self.head_changed(at, queue);
        }
    }

    /// The port's packet has left, or its gate opens.
    pub(super) fn output_due(&mut self, at: Time, output: PortNum) {
        if !self.data.crossing.behind.is_empty() {
            return self.behind_due(at, output);
        }
        let out = &mut self.data.outs[output];
        let (phase, lane, place) = (out.phase, out.sending_lane, out.sending);
        out.phase = Phase::Idle;
        out.sending = PoolIndex::NONE;
        if phase == Phase::Sending {
            self.depart(at, output, lane, place);
        }
        if self.data.outs[output].gate_end > at {
            self.close_gate(at, output);
        } else {
            let wanted = self.data.outs[output].wanted;
            let waiting = if phase == Phase::Sending { wanted & LaneSet::of(lane) } else { wanted };
            for lane in waiting.iter() {
                let index = self.data.index(output, lane);
                self.data.out_lanes[index].wait.begin(at);
            }
            self.start(at, output);
        }
        if self.data.outs[output].phase == Phase::Idle {
            self.data.deadlines.set(usize::from(output.0), self.data.share_opens(at, output));
        }
    }

    /// The host has sent as much as it may until `gate_end`. What stands in line meanwhile does not wait for the link.
    fn close_gate(&mut self, at: Time, output: PortNum) {
        let data = &mut self.data;
        let out = &mut data.outs[output];
        out.phase = Phase::Gated;
        out.wait.end(at);
        data.deadlines.set(usize::from(output.0), out.gate_end);
        for lane in out.wanted.iter() {
            let index = data.index(output, lane);
            data.out_lanes[index].wait.end(at);
        }
    }

    /// The last bit of a packet has left: its blocks are free, and the peer's are taken.
    #[inline]
    pub(super) fn depart(&mut self, at: Time, output: PortNum, lane: VirtualLane, place: PoolIndex) {
        if self.data.cut_through.is_some() {
            return self.tail_has_left(output, place);
        }
        let (buffer, blocks) = {
            let held = self.data.pool.get(place);
            (held.buffer, held.blocks)
        };
        let body = self.data.pool.take(place);
        let sent = self.put_on_cable(at, output, lane, blocks, body);
        if let (true, Some(service_level)) = (self.data.host, sent) {
            self.has_injected(output, service_level);
        }
        self.release(buffer, u16::from(blocks));
    }

    /// Gives a packet to the cable, and takes the peer's blocks. The service level of one that the host sent.
    #[inline]
    pub(super) fn put_on_cable(
        &mut self,
        at: Time,
        output: PortNum,
        lane: VirtualLane,
        blocks: u8,
        body: Body,
    ) -> Option<ServiceLevel> {
        let data = &mut self.data;
        let index = data.index(output, lane);
        if data.crossing.behind.is_empty() {
            data.out_lanes[index].take_credit(blocks);
            data.credit_changed(at, output, lane);
        } else {
            data.out_lanes[index].unsent -= u16::from(blocks);
        }
        let account = &mut data.account[lane];
        account.held -= 1;
        account.transmitted += 1;
        let words = u32::from(body.size() - 2) / 4;
        match body {
            Body::Data(packet) => {
                if is_multicast(packet.dlid) {
                    self.ports[usize::from(output.0)].counters.sent(words, true);
                } else {
                    data.out_lanes[index].uncounted.count(words);
                }
                let service_level = packet.service_level;
                self.outputs.push_back(Output::Transmit { port: output, frame: Frame::Data(packet) });
                return Some(service_level);
            }
            Body::Whole(packet) => {
                let counters = &mut self.ports[usize::from(output.0)].counters;
                counters.sent(words, is_multicast(packet.dlid()));
                self.outputs.push_back(Output::Transmit { port: output, frame: Frame::Packet(packet) });
            }
            Body::None => debug_assert!(false, "what leaves is a packet"),
        }
        None
    }

    /// A packet of the host has left.
    pub(super) fn has_injected(&mut self, port: PortNum, service_level: ServiceLevel) {
        self.outputs.push_back(Output::Injected { port, service_level, packets: 1 });
    }
}
