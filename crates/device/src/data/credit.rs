//! Credits, in blocks of 64 bytes modulo 4096 (IBA 7.9.4).
//!
//! The receiver of a lane sends how many blocks may have been sent since the link began (FCCL):
//! when the link comes up, in answer to a peer whose link begins (an end that is not up yet
//! receives nothing), and when there is room that the peer does not know of and could soon need.
//! FCTBS carries the sender's own count, which corrects the receiver's.
//!
//! **When the peer could need it.** `remaining` is the credit that the peer has received and not
//! used, as the receiver sees it. Credit takes the link's delay to arrive, and what the peer has
//! sent meanwhile as long to be seen: a peer that sends at the link's rate then has at least
//! `remaining` less a round trip's blocks. It never waits for credit while `remaining` covers the
//! blocks of a round trip, of the packets that may have left its arbitration and not its port, and
//! of one packet more, with which the next credit goes. Below that it gets credit for all room at
//! once, and sends as if it got credit for each block. The round trip is that of the first packet
//! and its answer; until then all credit goes at once. Without rates the limit is half of a buffer.

use weft_machine::Time;
use weft_wire::{DataRate, FlowControl, PortNum, VirtualLane};

use super::DataPath;
use super::buffer::{BlockCount, Queue};
use super::index::LaneIndex;
use crate::size::{CREDIT_MAX, blocks};
use crate::{Device, DropReason, Frame, Output};

/// What a flow control packet is sent as: while all is normal, and when a link begins.
const OP_NORMAL: u8 = 0;
pub(super) const OP_INIT: u8 = 1;

/// How far ahead a port must tell its peer of room.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Reach {
    /// When the peer was informed that the link begins.
    begun: Time,
    /// From there to the answer; the longest, of all lanes.
    round_trip: Option<Time>,
}

impl Reach {
    pub(super) fn begin(at: Time) -> Self {
        Self { begun: at, ..Self::default() }
    }
}

/// Blocks of 64 bytes in so much machine time at a rate of fabric time.
fn blocks_in(time: Time, rate: DataRate, dilation: u32) -> u64 {
    let bits = u128::from(time.as_nanos()) * u128::from(rate.elevenths());
    u64::try_from(bits.div_ceil(11 * 1_000 * 512 * u128::from(dilation))).unwrap_or(u64::MAX)
}

impl Queue {
    pub(super) fn reset_credit(&mut self) {
        self.occupied = 0;
        (self.received, self.told) = Default::default();
    }
}

impl DataPath {
    /// The port and the lane of a buffer.
    #[inline]
    pub(super) fn port_and_lane(&self, buffer: LaneIndex) -> (PortNum, VirtualLane) {
        (buffer.port(self.shift), buffer.lane(self.shift))
    }
}

impl Device {
    /// Tells the peer of a buffer.
    pub(super) fn tell_credit(&mut self, port: PortNum, lane: VirtualLane, op: u8) {
        let data = &mut self.data;
        let index = data.index(port, lane);
        let sent = data.out_lanes[index].really_sent();
        let flow_control = data.queues[index].tell(data.buffer, sent, op, lane);
        self.outputs.push_back(Output::Transmit { port, frame: Frame::Credit(flow_control) });
    }

    /// Computes how far ahead the peer of a port needs credit.
    pub(super) fn reach_changed(&mut self, port: PortNum) {
        let settings = &self.ports[usize::from(port.0)];
        let data = &mut self.data;
        let largest = blocks(settings.receive_size_max);
        let usual = u64::from(blocks(settings.packet_size_max).min(largest));
        let reach = &data.reach[port];
        let low = if !data.outs[port].checks.up {
            0
        } else if !data.options.shaped {
            u64::from((data.buffer / 2).max(largest.into()))
        } else if let Some(round_trip) = reach.round_trip {
            let rate = DataRate::of_link(&settings.info, settings.fdr10.active);
            // Behind a crossbar without a buffer there is the packet on the wire.
            let left_arbitration = u64::from(data.options.crossbar.output_packets.max(1));
            let ahead = blocks_in(round_trip, rate, data.dilation) + usual * (left_arbitration + 1);
            // What is larger than the link's MTU, should the peer send it, is not to wait for ever.
            ahead.max(largest.into())
        } else {
            u64::MAX
        };
        let low = u16::try_from(low).unwrap_or(u16::MAX);
        for lane in data.each_lane() {
            let index = data.index(port, lane);
            data.queues[index].low = low;
        }
    }

    /// Tells the peer of a buffer if it could soon need to know of room that it does not know of.
    #[inline]
    pub(super) fn tell_if_low(&mut self, buffer: LaneIndex) {
        let data = &self.data;
        let queue = &data.queues[buffer];
        let remaining = queue.remaining();
        if remaining < queue.low && data.buffer.saturating_sub(queue.occupied) > remaining {
            let (port, lane) = data.port_and_lane(buffer);
            self.tell_credit(port, lane, OP_NORMAL);
        }
    }

    /// Blocks are free again.
    #[inline]
    pub(super) fn release(&mut self, buffer: LaneIndex, blocks: u16) {
        if buffer == LaneIndex::NONE {
            return;
        }
        let queue = &mut self.data.queues[buffer];
        debug_assert!(queue.occupied >= blocks, "what is freed was taken");
        queue.occupied -= blocks;
        self.tell_if_low(buffer);
    }

    /// A packet has come in on a lane that has a buffer. `false` when its sender had no credit for it, or when it does
    /// not fit.
    #[inline(always)]
    pub(super) fn take_credit(&mut self, port: PortNum, buffer: LaneIndex, blocks: u16) -> bool {
        let size = self.data.buffer;
        let queue = &mut self.data.queues[buffer];
        // The count is put right by what the peer says, so that it alone does not keep a liar from filling the buffer.
        if queue.remaining() >= blocks && queue.occupied.saturating_add(blocks) <= size {
            queue.received = queue.received.plus(blocks);
            queue.occupied += blocks;
            return true;
        }
        let (_, lane) = self.data.port_and_lane(buffer);
        let counters = &mut self.ports[usize::from(port.0)].counters;
        counters.port_rcv_errors += 1;
        counters.port_buffer_overrun_errors += 1;
        counters.excessive_buffer_overrun_errors += 1;
        self.outputs.push_back(Output::Overrun { port, lane });
        self.discard(port, DropReason::BufferOverrun);
        false
    }

    /// The other end of the cable tells of its buffer.
    pub(crate) fn credit(&mut self, at: Time, port: PortNum, told: FlowControl) {
        let lane = told.vl;
        let out = self.data.outs.get_mut(port).filter(|_| port != PortNum::ZERO);
        let Some(out) = out.filter(|out| out.checks.up) else { return };
        out.flow_received += 1;
        if lane.0 >= self.data.lanes {
            return;
        }
        let index = self.data.index(port, lane);
        let queue = &mut self.data.queues[index];
        let sent = BlockCount::new(told.fctbs);
        let lost = queue.received != sent;
        queue.received = sent;
        if told.op != OP_INIT && !self.data.out_lanes[index].used {
            // Nothing was sent (the count of blocks alone does not say so, it goes round), so nothing can be free again: it is the answer to the beginning.
            let reach = &mut self.data.reach[port];
            let took = at.saturating_sub(reach.begun);
            if reach.round_trip.is_none_or(|known| known < took) {
                reach.round_trip = Some(took);
                self.reach_changed(port);
            }
        }
        if told.op == OP_INIT {
            self.tell_credit(port, lane, OP_NORMAL);
        } else if lost {
            self.count_update_error(port, lane);
            self.tell_if_low(index);
        }
        let (out_lane, limit) = (&mut self.data.out_lanes[index], BlockCount::new(told.fccl));
        // What was promised once is not taken back.
        let behind = told.op != OP_INIT && limit.since(out_lane.limit) > CREDIT_MAX;
        if behind || limit.since(out_lane.sent) > CREDIT_MAX {
            return self.count_update_error(port, lane);
        }
        out_lane.limit = limit;
        self.data.credit_changed(at, port, lane);
    }

    /// A packet that was counted as sent has not been sent: the peer's blocks are not taken.
    pub(crate) fn data_not_sent(&mut self, port: PortNum, lane: VirtualLane, words: u32) {
        if lane.0 >= self.data.lanes {
            return;
        }
        let account = &mut self.data.account[lane];
        account.transmitted = account.transmitted.saturating_sub(1);
        account.drop(DropReason::TransmitDropped);
        if !self.ports[usize::from(port.0)].state.is_up() {
            return;
        }
        let index = self.data.index(port, lane);
        let sent = &mut self.data.out_lanes[index].sent;
        *sent = sent.minus(u16::from(blocks(words as usize * 4 + 2)));
        let at = self.data.now;
        self.data.credit_changed(at, port, lane);
    }

    fn count_update_error(&mut self, port: PortNum, lane: VirtualLane) {
        self.ports[usize::from(port.0)].by_lane.flow_ctl_update_errors[usize::from(lane.0)] += 1;
    }
}
