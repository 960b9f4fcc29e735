//! The lines that heads of queues stand in, one for each lane of an output.

use weft_machine::Time;
use weft_wire::{PortNum, VirtualLane};

use super::DataPath;
use super::index::QueueIndex;
use super::output::Phase;

impl DataPath {
    /// Puts a queue into the line that its head belongs to.
    #[inline]
    pub(super) fn stand_in_line(
        &mut self,
        at: Time,
        queue: QueueIndex,
        output: PortNum,
        lane: VirtualLane,
        blocks: u8,
    ) {
        let index = self.index(output, lane);
        let (out, out_lane) = (&mut self.outs[output], &mut self.out_lanes[index]);
        self.queues[queue].next = QueueIndex::NONE;
        if out_lane.first != QueueIndex::NONE {
            self.queues[out_lane.last].next = queue;
            out_lane.last = queue;
            if out.ready.contains(lane) && self.crossing.limits_inputs() && out.is_open() {
                // Those before it may be of inputs that send as much as they may.
                self.todo.push(output);
            }
            return;
        }
        (out_lane.first, out_lane.last) = (queue, queue);
        out_lane.first_blocks = blocks;
        out.wanted.insert(lane);
        if out.makes_wait(lane) {
            out_lane.wait.begin(at);
        }
        if out_lane.credit() >= u16::from(blocks) {
            if let Some(shares) = &mut self.shares {
                shares.begins(at, index);
            }
            out.ready.insert(lane);
            if out.is_open() {
                self.todo.push(output);
            }
            return;
        }
        out.starved.insert(lane);
        if out.phase == Phase::Idle && out.ready.is_empty() {
            out.wait.begin(at);
        }
    }

    /// Takes the first out of a line and returns its queue.
    #[inline(always)]
    pub(super) fn leave_line(&mut self, at: Time, output: PortNum, lane: VirtualLane) -> QueueIndex {
        let index = self.index(output, lane);
        let out_lane = &mut self.out_lanes[index];
        let queue = out_lane.first;
        out_lane.first = self.queues[queue].next;
        if out_lane.first == QueueIndex::NONE {
            out_lane.last = QueueIndex::NONE;
            out_lane.wait.end(at);
            let out = &mut self.outs[output];
            out.wanted.remove(lane);
            if let Some(shares) = self.shares.as_mut().filter(|_| out.ready.contains(lane)) {
                shares.ceases(at, index);
            }
            out.ready.remove(lane);
        } else {
            out_lane.first_blocks = self.queues[out_lane.first].head_blocks;
        }
        queue
    }

    /// Takes a queue out of the middle of its line.
    pub(super) fn quit_line(&mut self, at: Time, queue: QueueIndex, output: PortNum, lane: VirtualLane) {
        let index = self.index(output, lane);
        if self.out_lanes[index].first == queue {
            self.leave_line(at, output, lane);
            self.credit_changed(at, output, lane);
            return;
        }
        let mut before = self.out_lanes[index].first;
        while before != QueueIndex::NONE {
            let next = self.queues[before].next;
            if next == queue {
                self.queues[before].next = self.queues[queue].next;
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
    pub(super) fn credit_changed(&mut self, at: Time, output: PortNum, lane: VirtualLane) {
        let index = self.index(output, lane);
        let (out, out_lane) = (&mut self.outs[output], &mut self.out_lanes[index]);
        if out_lane.first != QueueIndex::NONE && out_lane.credit() >= u16::from(out_lane.first_blocks) {
            if let Some(shares) = self.shares.as_mut().filter(|_| !out.ready.contains(lane)) {
                shares.begins(at, index);
            }
            out.ready.insert(lane);
            if out.is_open() {
                self.todo.push(output);
            }
            return;
        }
        if out_lane.first != QueueIndex::NONE {
            out.starved.insert(lane);
        }
        if let Some(shares) = self.shares.as_mut().filter(|_| out.ready.contains(lane)) {
            shares.ceases(at, index);
        }
        out.ready.remove(lane);
        if out.phase == Phase::Idle && out.wanted.is_empty() {
            out.wait.end(at);
        } else if out.phase == Phase::Idle && out.ready.is_empty() {
            out.wait.begin(at);
        }
        self.claim_lapses(output, lane);
    }
}
