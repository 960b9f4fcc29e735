//! The lines that heads of queues stand in, one for each lane of an output.

use weft_machine::Time;

use super::DataPath;
use super::buffer::NIL;
use super::output::Phase;

impl DataPath {
    /// Puts a queue into the line that its head belongs to.
    #[inline]
    pub(super) fn stand_in_line(&mut self, at: Time, queue: u32, (output, lane, blocks): (u8, u8, u8)) {
        let index = self.index(output, lane);
        let (out, out_lane) = (&mut self.outs[usize::from(output)], &mut self.out_lanes[index]);
        self.queues[queue as usize].next = NIL;
        if out_lane.first != NIL {
            self.queues[out_lane.last as usize].next = queue;
            out_lane.last = queue;
            if out.ready >> lane & 1 != 0 && self.crossing.limits_inputs() && out.is_open() {
                // Those before it may be of inputs that send as much as they may.
                self.todo.push(output);
            }
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
            if out.is_open() {
                self.todo.push(output);
            }
            return;
        }
        out.starved |= 1 << lane;
        if out.phase == Phase::Idle && out.ready == 0 {
            out.wait.begin(at);
        }
    }

    /// Takes the first out of a line and returns its queue.
    #[inline(always)]
    pub(super) fn leave_line(&mut self, at: Time, output: u8, lane: u8) -> u32 {
        let index = self.index(output, lane);
        let out_lane = &mut self.out_lanes[index];
        let queue = out_lane.first;
        out_lane.first = self.queues[queue as usize].next;
        if out_lane.first == NIL {
            out_lane.last = NIL;
            out_lane.wait.end(at);
            let out = &mut self.outs[usize::from(output)];
            out.wanted &= !(1 << lane);
            out.ready &= !(1 << lane);
        } else {
            out_lane.first_blocks = self.queues[out_lane.first as usize].head_blocks;
        }
        queue
    }

    /// Takes a queue out of the middle of its line.
    pub(super) fn quit_line(&mut self, at: Time, queue: u32, output: u8, lane: u8) {
        let index = self.index(output, lane);
        if self.out_lanes[index].first == queue {
            self.leave_line(at, output, lane);
            self.credit_changed(at, output, lane);
            return;
        }
        let mut before = self.out_lanes[index].first;
        while before != NIL {
            let next = self.queues[before as usize].next;
            if next == queue {
                self.queues[before as usize].next = self.queues[queue as usize].next;
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
        if out_lane.first != NIL && out_lane.credit() >= u16::from(out_lane.first_blocks) {
            out.ready |= 1 << lane;
            if out.is_open() {
                self.todo.push(output);
            }
            return;
        }
        out.starved |= u16::from(out_lane.first != NIL) << lane;
        out.ready &= !(1 << lane);
        if out.phase == Phase::Idle && out.wanted == 0 {
            out.wait.end(at);
        } else if out.phase == Phase::Idle && out.ready == 0 {
            out.wait.begin(at);
        }
        self.claim_lapses(output, lane);
    }
}
