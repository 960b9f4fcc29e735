//! The ports' departing sides: who stands in line for which lane, which lane has its turn, and when a packet has left.

use weft_machine::Time;
use weft_wire::{PortNum, VirtualLane};

use super::arbiter::Arbiter;
use super::buffer::{Body, Held, NIL, NO_QUEUE, Queue, Uncounted, difference, sum};
use super::pace::Pace;
use super::wait::Wait;
use super::{CREDIT_MAX, DataPath};
use crate::counters::is_multicast;
use crate::port::Port;
use crate::{Counters, Device, Output};

/// What a port is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// Nothing: it may begin to send.
    Idle,
    /// A packet is on its way out.
    Sending,
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
    sending_lane: u8,
    pub(super) sending: u32,
    /// When the host may send again.
    pub(super) gate_end: Time,
    /// HOQLife, in nanoseconds of machine time.
    pub(super) head_life: u64,
    /// Lanes for which somebody stands in line.
    pub(super) wanted: u16,
    /// Of these, the lanes with enough credit for the first in line.
    pub(super) ready: u16,
    /// Lanes that are stalled ([`super::lifetime`]).
    pub(super) stalled: u16,
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
    pub(super) first: u16,
    last: u16,
    /// Blocks of the first in line.
    first_blocks: u8,
    /// Heads dropped in a row because they waited for too long.
    pub(super) stalls: u8,
    /// Blocks sent since the link began (FCTBS).
    pub(super) sent: u16,
    /// The peer's limit (FCCL).
    pub(super) limit: u16,
    /// Bytes in this device's buffers that are to leave by this lane of this port.
    pub(super) waiting: u64,
    /// Credit was missing since fewer bytes waited than make a congestion.
    pub(super) starved: bool,
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
            first: NO_QUEUE,
            last: NO_QUEUE,
            first_blocks: 0,
            stalls: 0,
            sent: 0,
            limit: 0,
            waiting: 0,
            starved: false,
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
        let left = difference(self.limit, self.sent);
        if left > CREDIT_MAX { 0 } else { left }
    }

    pub(super) fn reset_credit(&mut self) {
        (self.sent, self.limit, self.stalls) = (0, 0, 0);
        self.stalled_until = Time::ZERO;
    }
}

impl Out {
    pub(super) fn new(arbiter: Arbiter) -> Self {
        Self {
            active: false,
            phase: Phase::Idle,
            sending: NIL,
            sending_lane: 0,
            gate_end: Time::ZERO,
            wanted: 0,
            ready: 0,
            stalled: 0,
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
    fn makes_wait(&self, lane: u8) -> bool {
        match self.phase {
            Phase::Idle => true,
            Phase::Sending => self.sending_lane != lane,
            Phase::Gated => false,
        }
    }
}

impl DataPath {
    /// Puts a queue into the line that its head belongs to.
    #[inline]
    fn stand_in_line(&mut self, at: Time, queue: u16, (output, lane, blocks): (u8, u8, u8)) {
        let index = self.index(output, lane);
        let (out, out_lane) = (&mut self.outs[usize::from(output)], &mut self.out_lanes[index]);
        self.queues[usize::from(queue)].next = NO_QUEUE;
        if out_lane.first != NO_QUEUE {
            self.queues[usize::from(out_lane.last)].next = queue;
            out_lane.last = queue;
            return;
        }
        (out_lane.first, out_lane.last) = (queue, queue);
        out_lane.first_blocks = blocks;
        out.wanted |= 1 << lane;
        if out.makes_wait(lane) {
            out_lane.wait.begin(at);
        }
        if out_lane.credit() >= u16::from(blocks) {
            out.ready |= 1 << lane;
            if out.phase == Phase::Idle {
                self.todo.push(output);
            }
            return;
        }
        out_lane.starved = true;
        if out.phase == Phase::Idle && out.ready == 0 {
            out.wait.begin(at);
        }
    }

    /// Takes the first out of a line and returns its queue.
    #[inline]
    pub(super) fn leave_line(&mut self, at: Time, output: u8, lane: u8) -> u16 {
        let index = self.index(output, lane);
        let out_lane = &mut self.out_lanes[index];
        let queue = out_lane.first;
        out_lane.first = self.queues[usize::from(queue)].next;
        if out_lane.first == NO_QUEUE {
            out_lane.last = NO_QUEUE;
            out_lane.wait.end(at);
            let out = &mut self.outs[usize::from(output)];
            out.wanted &= !(1 << lane);
            out.ready &= !(1 << lane);
        } else {
            out_lane.first_blocks = self.queues[usize::from(out_lane.first)].head_blocks;
        }
        queue
    }

    /// Takes a queue out of the middle of its line.
    pub(super) fn quit_line(&mut self, at: Time, queue: u16, output: u8, lane: u8) {
        let index = self.index(output, lane);
        if self.out_lanes[index].first == queue {
            self.leave_line(at, output, lane);
            self.credit_changed(at, output, lane);
            return;
        }
        let mut before = self.out_lanes[index].first;
        while before != NO_QUEUE {
            let next = self.queues[usize::from(before)].next;
            if next == queue {
                self.queues[usize::from(before)].next = self.queues[usize::from(queue)].next;
                if self.out_lanes[index].last == queue {
                    self.out_lanes[index].last = before;
                }
                return;
            }
            before = next;
        }
        debug_assert!(false, "a queue with a head stands in line");
    }

    /// Looks again whether the first in line may go.
    #[inline]
    pub(super) fn credit_changed(&mut self, at: Time, output: u8, lane: u8) {
        let index = self.index(output, lane);
        let (out, out_lane) = (&mut self.outs[usize::from(output)], &mut self.out_lanes[index]);
        if out_lane.first != NO_QUEUE && out_lane.credit() >= u16::from(out_lane.first_blocks) {
            out.ready |= 1 << lane;
            if out.phase == Phase::Idle {
                self.todo.push(output);
            }
            return;
        }
        out_lane.starved |= out_lane.first != NO_QUEUE;
        out.ready &= !(1 << lane);
        if out.phase == Phase::Idle && out.wanted == 0 {
            out.wait.end(at);
        }
    }
}

impl DataPath {
    /// Adds what is not in a port's counters yet.
    pub(crate) fn add_uncounted(&self, port: usize, counters: &mut Counters) {
        counters.port_xmit_wait += self.outs[port].wait.ticks(self.now, self.tick);
        counters.port_rcv_flow_pkts += self.outs[port].flow_received;
        for at in self.lanes_of(port) {
            counters.port_xmit_flow_pkts += self.queues[at].flow_sent;
            counters.received_all(self.queues[at].uncounted);
            counters.sent_all(self.out_lanes[at].uncounted);
        }
    }

    fn lanes_of(&self, port: usize) -> std::ops::Range<usize> {
        let first = port << self.shift;
        first..first + usize::from(self.lanes)
    }
}

impl Port {
    /// Counts what has come in on a lane and is not counted yet.
    pub(super) fn count_received(&mut self, queue: &mut Queue, lane: VirtualLane) {
        let all = std::mem::take(&mut queue.uncounted);
        if all.packets > 0 {
            self.counters.received_all(all);
            self.by_lane.received_all(queue.op_code, lane, all);
        }
    }
}

impl Device {
    /// Puts into the ports' counters what is not there yet, waits under way included.
    pub(crate) fn count_all(&mut self, ports: std::ops::Range<usize>) {
        let (at, tick) = (self.data.now, self.data.tick);
        for number in ports {
            let port = &mut self.ports[number];
            port.counters.port_xmit_wait += self.data.outs[number].wait.take_ticks(at, tick);
            port.counters.port_rcv_flow_pkts += std::mem::take(&mut self.data.outs[number].flow_received);
            for (index, lane) in self.data.lanes_of(number).zip(0..) {
                port.count_received(&mut self.data.queues[index], VirtualLane(lane));
                port.counters.port_xmit_flow_pkts += std::mem::take(&mut self.data.queues[index].flow_sent);
                let out_lane = &mut self.data.out_lanes[index];
                port.counters.sent_all(std::mem::take(&mut out_lane.uncounted));
                port.by_lane.xmit_wait[usize::from(lane)] += out_lane.wait.take_ticks(at, tick);
            }
        }
    }

    /// Puts a packet into a queue of the crossbar.
    #[inline(always)]
    pub(super) fn enqueue(&mut self, at: Time, queue: usize, (held, size, lane): (Held, u16, u8)) {
        let data = &mut self.data;
        let index = data.index(held.output, lane);
        data.out_lanes[index].waiting += u64::from(size);
        data.account[usize::from(lane & 0xf)].held += 1;
        let place = data.pool.put(held, at);
        if data.queues[queue].push(&mut data.pool, place) {
            self.head_changed(at, queue as u16);
        }
    }

    /// The queue has another head: it stands in line, unless it is dropped and the next one is the head.
    #[inline]
    pub(super) fn head_changed(&mut self, at: Time, queue: u16) {
        loop {
            let data = &mut self.data;
            let place = data.queues[usize::from(queue)].head;
            if place == NIL {
                return;
            }
            let held = data.pool.get(place);
            let wanted = (held.output, held.lane(), held.blocks);
            let waits = &mut data.queues[usize::from(queue)];
            (waits.head_since, waits.head_blocks) = (at, held.blocks);
            if let Some(reason) = data.refuses_head(at, place) {
                self.drop_head(queue, reason);
                continue;
            }
            return data.stand_in_line(at, queue, wanted);
        }
    }

    /// Begins to send, if the port is free and a lane may.
    pub(super) fn start(&mut self, at: Time, output: u8) {
        loop {
            let data = &mut self.data;
            let out = &mut data.outs[usize::from(output)];
            if out.phase != Phase::Idle {
                return;
            }
            if out.ready == 0 {
                if out.wanted != 0 {
                    out.wait.begin(at);
                }
                return;
            }
            let (lane, high) = out.arbiter.pick(out.ready);
            out.wait.end(at);
            let index = data.index(output, lane);
            data.out_lanes[index].wait.end(at);
            let queue = data.leave_line(at, output, lane);
            let place = data.queues[usize::from(queue)].pop(&data.pool);
            debug_assert!(place.is_some(), "who stands in line has a head");
            let Some(place) = place else { return };
            let (size, blocks, home) = {
                let held = data.pool.get(place);
                (held.size(), held.blocks, held.queue)
            };
            data.mark(at, output, lane, place);
            let out_lane = &mut data.out_lanes[index];
            out_lane.waiting -= u64::from(size);
            out_lane.stalls = 0;
            let out = &mut data.outs[usize::from(output)];
            out.arbiter.sent(blocks, high);
            if home != NO_QUEUE && !data.host {
                self.statistics.forwarded += 1;
            }
            let took = out.pace.take(usize::from(size), data.dilation);
            if let Some(gate) = data.gates.get_mut(usize::from(output)) {
                out.gate_end = at + gate.take(usize::from(size), data.dilation);
            }
            if took > Time::ZERO {
                (out.phase, out.sending, out.sending_lane) = (Phase::Sending, place, lane);
                data.deadlines.set(usize::from(output), at + took);
                return self.head_changed(at, queue);
            }
            self.depart(at, output, lane, place);
            let out = &self.data.outs[usize::from(output)];
            if out.gate_end > at {
                self.close_gate(at, output);
            } else if out.wanted >> lane & 1 != 0 {
                self.data.out_lanes[index].wait.begin(at);
            }
            self.head_changed(at, queue);
        }
    }

    /// The port's packet has left, or its gate opens.
    pub(super) fn output_due(&mut self, at: Time, output: u8) {
        let out = &mut self.data.outs[usize::from(output)];
        let (phase, lane, place) = (out.phase, out.sending_lane, out.sending);
        out.phase = Phase::Idle;
        out.sending = NIL;
        if phase == Phase::Sending {
            self.depart(at, output, lane, place);
        }
        if self.data.outs[usize::from(output)].gate_end > at {
            self.close_gate(at, output);
        } else {
            let mut waiting = self.data.outs[usize::from(output)].wanted;
            if phase == Phase::Sending {
                waiting &= 1 << lane;
            }
            while waiting != 0 {
                let index = self.data.index(output, waiting.trailing_zeros() as u8);
                self.data.out_lanes[index].wait.begin(at);
                waiting &= waiting - 1;
            }
            self.start(at, output);
        }
        if self.data.outs[usize::from(output)].phase == Phase::Idle {
            self.data.deadlines.clear(usize::from(output));
        }
    }

    /// The host has sent as much as it may until `gate_end`. What stands in line meanwhile does not wait for the link.
    fn close_gate(&mut self, at: Time, output: u8) {
        let data = &mut self.data;
        let out = &mut data.outs[usize::from(output)];
        out.phase = Phase::Gated;
        data.deadlines.set(usize::from(output), out.gate_end);
        let mut wanted = out.wanted;
        while wanted != 0 {
            let index = data.index(output, wanted.trailing_zeros() as u8);
            data.out_lanes[index].wait.end(at);
            wanted &= wanted - 1;
        }
    }

    /// The last bit of a packet has left: its blocks are free, and the peer's are taken.
    fn depart(&mut self, at: Time, output: u8, lane: u8, place: u32) {
        let data = &mut self.data;
        let (home, blocks, size) = {
            let held = data.pool.get(place);
            (held.queue, held.blocks, held.size())
        };
        let body = data.pool.take(place);
        let index = data.index(output, lane);
        let out_lane = &mut data.out_lanes[index];
        debug_assert!(out_lane.credit() >= u16::from(blocks), "credit is never negative");
        out_lane.sent = sum(out_lane.sent, u16::from(blocks));
        data.credit_changed(at, output, lane);
        let account = &mut data.account[usize::from(lane)];
        account.held -= 1;
        account.transmitted += 1;
        let words = u32::from(size - 2) / 4;
        let port = PortNum(output);
        match body {
            Body::Data(packet) => {
                if is_multicast(packet.dlid) {
                    self.ports[usize::from(output)].counters.sent(words, true);
                } else {
                    data.out_lanes[index].uncounted.count(words);
                }
                let service_level = packet.service_level;
                self.outputs.push_back(Output::TransmitData { port, packet });
                if self.data.host {
                    self.outputs.push_back(Output::Injected { port, service_level, packets: 1 });
                }
            }
            Body::Whole(packet) => {
                let counters = &mut self.ports[usize::from(output)].counters;
                counters.sent(words, is_multicast(packet.dlid()));
                self.outputs.push_back(Output::Transmit { port, packet });
            }
            Body::None => debug_assert!(false, "what leaves is a packet"),
        }
        self.release(home, u16::from(blocks));
    }
}
