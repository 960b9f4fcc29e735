//! The way through a switch where its crossbar has limits, or a buffer behind it.
//!
//! ```text
//!  Queue ─▶ line of (output, lane) ─▶ VL arbitration, credit ─▶ Behind: buffer of the output ─▶ rate ─▶ cable
//!    │            ▲  skipped while the input sends as many as it may           │
//!    └─ blocks are free as soon as the packet begins to cross                  └─ always leaves: it has its credit
//! ```
//!
//! * An output that passes over the packet whose turn it is, because that packet's input is busy, claims the input ([`turns`](super::turns)).
//! * An input sends a packet for the time that it takes at `bus` times the input's own rate; meanwhile it counts against
//!   `input_packets`. An output takes the next packet when the last one has crossed at `bus` times the output's rate, and
//!   when there is room behind the crossbar.
//! * Credit is taken, and lanes are arbitrated, at the entry to the buffer behind the crossbar. What is in that buffer leaves
//!   at the rate of the link, whatever its lane. So PortXmitWait counts as it does without a buffer: somebody stands in line,
//!   nothing is on the wire, and there is no credit. PortVLXmitWait of a lane runs while somebody stands in line for it
//!   and the wire does not carry this lane.
//! * The bus is no slower than the link, so a packet leaves its input buffer faster than another can come in: its blocks
//!   are promised again when it begins to cross, and the buffer never holds more than its size.
//! * HOQLife ends when a packet begins to cross. FECN is decided there too, and counts what waits before the crossbar.
//! * A packet behind the crossbar is held, and waits no more. When the output's link goes it is dropped as
//!   PortXmitDiscards; when the input's link goes it leaves all the same.

use weft_machine::Time;
use weft_wire::{DataRate, PortNum, VirtualLane};

use super::DataPath;
use super::index::{LaneIndex, LaneSet, PerPort, PoolIndex, PortSet, QueueIndex};
use super::output::Phase;
use super::turns::Turns;
use crate::Device;
use crate::crossbar::Crossbar;
use crate::moment::NEVER;

/// What an input may send at once, in one line of the cache.
#[derive(Clone, Debug)]
#[repr(align(64))]
pub(super) struct InputSide {
    /// When each of its packets has crossed; never, of places beyond the limit.
    ends: [Time; Crossbar::INPUT_PACKETS_MAX],
    speed: Speed,
    /// Outputs that had credit and room, but only heads of inputs that were sending as much as they may.
    blocked: PortSet,
}

const _: () = assert!(size_of::<InputSide>() == 64);

/// Time for each byte, in 65536ths of a nanosecond of machine time.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Speed(u64);

impl Speed {
    /// `percent` of a rate; no rate takes no time.
    pub(super) fn new(rate: DataRate, percent: u16, dilation: u32) -> Self {
        let rate = u128::from(rate.elevenths()) * u128::from(percent.max(100));
        let whole = (11 * 8_000 * 100 * u128::from(dilation)) << 16;
        Self(whole.checked_div(rate).map_or(0, |time| u64::try_from(time).unwrap_or(u64::MAX)))
    }

    #[inline]
    pub(super) fn time(self, size: u16) -> Time {
        Time::from_nanos((u64::from(size) * self.0) >> 16)
    }

    /// The time of a packet where only `part` of `whole` of the rate may be used, rounded up: never more is used.
    pub(super) fn time_of_share(self, size: u16, part: u32, whole: u32) -> Time {
        let time = u128::from(size) * u128::from(self.0) * u128::from(whole);
        let nanos = time.div_ceil(u128::from(part.max(1)) << 16);
        Time::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }
}

/// The buffer behind the crossbar of one output, in one line of the cache. Its packets are a chain through the pool that begins
/// with the one on the wire.
#[derive(Clone, Debug)]
#[repr(align(64))]
pub(super) struct Behind {
    /// The packet that crossed last, and what is to be known of it when it begins to leave.
    last: PoolIndex,
    last_size: u16,
    last_lane: VirtualLane,
    last_soonest: Time,
    count: u8,
    /// When the packet on the wire has left, and when the last one has crossed.
    departs: Time,
    crossed: Time,
    speed: Speed,
}

const _: () = assert!(size_of::<Behind>() == 64);

/// The limits of a crossbar, and where its packets are.
#[derive(Debug, Default)]
pub(super) struct Crossing {
    /// By port; none without a limit.
    inputs: PerPort<InputSide>,
    pub(super) turns: Turns,
    /// By port; none without a buffer.
    pub(super) behind: PerPort<Behind>,
    output_packets: u8,
    bus_percent: u16,
    /// In nanoseconds of machine time.
    pub(super) latency: Time,
}

impl Crossing {
    pub(super) fn new(crossbar: &Crossbar, ports: usize, dilation: u32) -> Self {
        let inputs = if crossbar.input_packets == 0 { 0 } else { ports };
        let end = |packet| if packet < usize::from(crossbar.input_packets) { Time::ZERO } else { NEVER };
        let behind = if crossbar.output_packets == 0 { 0 } else { ports };
        let input = InputSide {
            ends: std::array::from_fn(end),
            speed: Speed::default(),
            blocked: PortSet::default(),
        };
        let empty = Behind {
            last: PoolIndex::NONE,
            last_size: 0,
            last_lane: VirtualLane::default(),
            last_soonest: Time::ZERO,
            count: 0,
            departs: NEVER,
            crossed: Time::ZERO,
            speed: Speed::default(),
        };
        Self {
            inputs: PerPort::of(input, inputs),
            turns: Turns::new(inputs),
            behind: PerPort::of(empty, behind),
            output_packets: crossbar.output_packets,
            bus_percent: crossbar.bus_percent,
            latency: Time::from_nanos(u64::from(crossbar.latency_ns) * u64::from(dilation)),
        }
    }

    pub(super) fn limits_inputs(&self) -> bool {
        !self.inputs.is_empty()
    }

    /// The data rate of a port's link is known.
    pub(super) fn link_up(&mut self, port: PortNum, rate: DataRate, dilation: u32) {
        let speed = Speed::new(rate, self.bus_percent, dilation);
        if let Some(input) = self.inputs.get_mut(port) {
            input.speed = speed;
        }
        if let Some(behind) = self.behind.get_mut(port) {
            behind.speed = speed;
        }
    }

    /// Whether an input may send one more packet, to this output.
    #[inline]
    fn may_send(&self, at: Time, input: PortNum, output: PortNum) -> bool {
        let ends = &self.inputs[input].ends;
        ends.iter().any(|end| *end <= at)
            && (self.turns.is_unclaimed(input)
                || self.turns.allow(input, output, ends.iter().filter(|end| **end <= at).count()))
    }

    /// An input begins to send a packet.
    #[inline]
    pub(super) fn engage(&mut self, at: Time, input: PortNum, size: u16) {
        let Some(side) = self.inputs.get_mut(input) else { return };
        let time = side.speed.time(size);
        if let Some(end) = side.ends.iter_mut().min() {
            *end = at + time;
        }
    }
}

impl DataPath {
    /// Of the lanes in `ready` those that may have their turn now: in their lines is a head that its input may send. With
    /// the queue of that head, if there is one such lane alone. An output with none is started when the first input may.
    #[inline]
    pub(super) fn sendable(&mut self, at: Time, output: PortNum, ready: LaneSet) -> (LaneSet, QueueIndex) {
        let (mut sendable, mut sole) = (LaneSet::EMPTY, QueueIndex::NONE);
        let mut passed_over = self.crossing.turns.has_claim(output);
        for lane in ready.iter() {
            let queue = self.first_sendable(at, output, lane);
            passed_over |= queue != self.out_lanes[self.index(output, lane)].first;
            if queue != QueueIndex::NONE {
                sole = if sendable.is_empty() { queue } else { QueueIndex::NONE };
                sendable.insert(lane);
            }
        }
        if passed_over {
            return self.claim_turn(at, output, ready, sendable, sole);
        }
        (sendable, sole)
    }

    /// The first queue in a line whose input may send and for whose head there is credit, if there is one. Where the input
    /// of the first in line is busy, others leave it the credit that it needs.
    #[inline]
    pub(super) fn first_sendable(&self, at: Time, output: PortNum, lane: VirtualLane) -> QueueIndex {
        let out_lane = &self.out_lanes[self.index(output, lane)];
        let (mut queue, mut kept) = (out_lane.first, 0);
        while queue != QueueIndex::NONE {
            let waits = &self.queues[queue];
            let needed = u16::from(waits.head_blocks) + kept;
            if self.crossing.may_send(at, waits.input, output) && out_lane.credit() >= needed {
                break;
            }
            if kept == 0 {
                kept = needed;
            }
            queue = waits.next;
        }
        queue
    }

    pub(super) fn wait_for_inputs(&mut self, at: Time, output: PortNum, ready: LaneSet) {
        for lane in ready.iter() {
            let mut queue = self.out_lanes[self.index(output, lane)].first;
            while queue != QueueIndex::NONE {
                let waits = &self.queues[queue];
                let next = waits.next;
                let input = waits.input;
                if self.crossing.may_send(at, input, output) {
                    // It waits for credit.
                    queue = next;
                    continue;
                }
                let side = &mut self.crossing.inputs[input];
                side.blocked.insert(output);
                // What is free already is another output's turn, which ends with a call of `wake_blocked`. An end that comes
                // at this moment may not have been seen to yet.
                let ends = side.ends.iter().filter(|end| **end > at).min();
                let place = self.outs.len() + usize::from(input.0);
                let earliest = ends.copied().unwrap_or(NEVER).min(self.deadlines.of(place));
                self.deadlines.set(place, earliest);
                queue = next;
            }
        }
    }

    /// An input may send again: outputs that wait for it may have something to send.
    pub(super) fn input_due(&mut self, input: PortNum) {
        self.deadlines.clear(self.outs.len() + usize::from(input.0));
        self.wake_blocked(input);
    }

    /// Outputs that wait for an input look again.
    pub(super) fn wake_blocked(&mut self, input: PortNum) {
        let blocked = std::mem::take(&mut self.crossing.inputs[input].blocked);
        blocked.each(|output| self.todo.push(output));
    }

    /// The packets behind the crossbar of an output that have not been sent: one that cuts through is sent as it begins.
    pub(super) fn unsent_behind(&self, output: PortNum) -> impl Iterator<Item = PoolIndex> {
        self.behind(output).skip(usize::from(self.cut_through.is_some()))
    }

    /// The packets behind the crossbar of an output.
    pub(super) fn behind(&self, output: PortNum) -> impl Iterator<Item = PoolIndex> {
        let count = self.crossing.behind.get(output).map_or(0, |behind| behind.count);
        let mut next = self.outs[output].sending;
        (0..count).map(move |_| {
            let at = next;
            next = self.pool.get(at).next;
            at
        })
    }

    /// The wire is that of the first packet behind the crossbar.
    fn start_wire(&mut self, at: Time, output: PortNum, place: PoolIndex) {
        let behind = &self.crossing.behind[output];
        let (size, lane, soonest) = if place == behind.last {
            (behind.last_size, behind.last_lane, behind.last_soonest)
        } else {
            let held = self.pool.get(place);
            (held.size(), held.lane(), self.pool.arrived(place) + self.crossing.latency)
        };
        let index = self.index(output, lane);
        self.out_lanes[index].wait.end(at);
        let out = &mut self.outs[output];
        out.wait.end(at);
        (out.sending, out.sending_lane) = (place, lane);
        let took = out.pace.take(usize::from(size), self.dilation);
        let behind = &mut self.crossing.behind[output];
        behind.departs = at.max(soonest) + took;
        out.phase = if behind.count < self.crossing.output_packets { Phase::Open } else { Phase::Sending };
    }

    /// Takes all packets from behind a crossbar: the link is gone.
    pub(super) fn empty_behind(&mut self, output: PortNum) -> Vec<PoolIndex> {
        let places = self.behind(output).collect();
        if let Some(behind) = self.crossing.behind.get_mut(output) {
            (behind.count, behind.last, behind.departs) = (0, PoolIndex::NONE, NEVER);
        }
        places
    }
}

impl Device {
    /// Lets packets cross to an output while it has room, its bus is free, and one may.
    pub(super) fn fill(&mut self, at: Time, output: PortNum) {
        loop {
            let data = &mut self.data;
            let out = &mut data.outs[output];
            let behind = &data.crossing.behind[output];
            if behind.count >= data.crossing.output_packets || behind.crossed > at {
                break;
            }
            if out.ready.is_empty() {
                if !out.wanted.is_empty() && out.phase == Phase::Idle {
                    out.wait.begin(at);
                }
                break;
            }
            let Some((queue, place, lane)) = data.take_turn(at, output) else { break };
            let (size, blocks, buffer) = {
                let held = data.pool.get_mut(place);
                held.next = PoolIndex::NONE;
                (held.size(), held.blocks, std::mem::replace(&mut held.buffer, LaneIndex::NONE))
            };
            let soonest = data.pool.arrived(place) + data.crossing.latency;
            let behind = &mut data.crossing.behind[output];
            behind.crossed = at + behind.speed.time(size);
            behind.count += 1;
            (behind.last_size, behind.last_lane, behind.last_soonest) = (size, lane, soonest);
            let last = std::mem::replace(&mut behind.last, place);
            let full = behind.count >= data.crossing.output_packets;
            let index = data.index(output, lane);
            data.out_lanes[index].take_credit(blocks);
            data.out_lanes[index].unsent += u16::from(blocks);
            data.credit_changed(at, output, lane);
            let out = &mut data.outs[output];
            if out.phase == Phase::Idle {
                self.begin_wire(at, output, place);
            } else {
                data.pool.get_mut(last).next = place;
                out.phase = if full { Phase::Sending } else { Phase::Open };
            }
            let data = &mut self.data;
            let out = &data.outs[output];
            if out.wanted.contains(lane) && out.makes_wait(lane) {
                data.out_lanes[index].wait.begin(at);
            }
            if buffer != LaneIndex::NONE {
                self.statistics.forwarded += 1;
                self.release(buffer, u16::from(blocks));
            }
            self.head_changed(at, queue);
        }
        self.set_behind_deadline(at, output);
    }

    /// The first packet behind the crossbar begins to leave.
    #[inline]
    fn begin_wire(&mut self, at: Time, output: PortNum, place: PoolIndex) {
        self.data.start_wire(at, output, place);
        if self.data.cut_through.is_some() {
            let lane = self.data.outs[output].sending_lane;
            self.announce(at, output, lane, place);
        }
    }

    /// When the output next has something to do: a packet has left, or the bus is free and somebody may cross.
    fn set_behind_deadline(&mut self, at: Time, output: PortNum) {
        let data = &mut self.data;
        let (out, behind) = (&data.outs[output], &data.crossing.behind[output]);
        let room = behind.count < data.crossing.output_packets && !out.ready.is_empty();
        let crosses = match room {
            true if behind.crossed > at => behind.crossed,
            true => data.share_opens(at, output),
            false => NEVER,
        };
        data.deadlines.set(usize::from(output.0), behind.departs.min(crosses));
    }

    /// A packet has left an output with a buffer, or the bus to it is free.
    pub(super) fn behind_due(&mut self, at: Time, output: PortNum) {
        let data = &mut self.data;
        let behind = &mut data.crossing.behind[output];
        if behind.departs <= at {
            behind.count -= 1;
            behind.departs = NEVER;
            let out = &mut data.outs[output];
            let (place, lane) = (out.sending, out.sending_lane);
            let next = if behind.count == 0 { PoolIndex::NONE } else { data.pool.get(place).next };
            (out.phase, out.sending) = (Phase::Idle, PoolIndex::NONE);
            self.depart(at, output, lane, place);
            if next != PoolIndex::NONE {
                self.begin_wire(at, output, next);
            }
            let data = &mut self.data;
            let out = &data.outs[output];
            if out.wanted.contains(lane) && (next == PoolIndex::NONE || out.sending_lane != lane) {
                let index = data.index(output, lane);
                data.out_lanes[index].wait.begin(at);
            }
        }
        self.fill(at, output);
    }
}
