//! Packets that stay too long: HOQLife, SwitchInfo.LifeTimeValue, and stalled lanes (IBA 18.2.5.4, 7.9.4).
//!
//! A head that has not begun to leave within the HOQLife of the port that it wants is dropped, and so is one that has been
//! in the switch for longer than its LifeTimeValue. After VLStallCount heads of one lane in a row the lane is stalled, and
//! drops what wants it, for eight times HOQLife.
//!
//! Heads change far more often than lifetimes end. So no head has a timer: there is one moment before which no lifetime
//! ends, and when it comes all heads are looked at and the next such moment is found.

use weft_machine::Time;
use weft_wire::{PortNum, VirtualLane};

use super::DataPath;
use super::index::{LaneIndex, PoolIndex, QueueIndex};
use crate::moment::NEVER;
use crate::{Device, DropReason};

/// From this value on a lifetime does not end.
const UNLIMITED: u8 = 20;
/// How many times HOQLife a lane is stalled.
const STALL: u64 = 8;

/// 4.096 µs times 2 to the power of `value`, in nanoseconds of machine time.
pub(super) fn span(value: u8, dilation: u64) -> u64 {
    if value >= UNLIMITED { u64::MAX } else { (4_096 << value) * dilation }
}

impl DataPath {
    pub(super) fn has_lifetimes(&self) -> bool {
        self.switch_life != u64::MAX || self.outs.iter().any(|out| out.head_life != u64::MAX)
    }

    /// When the head of a queue is dropped, should it not have begun to leave; and whether for being the head so long.
    fn head_end(&self, queue: QueueIndex, place: PoolIndex) -> (Time, bool) {
        let held = self.pool.get(place);
        let head_life = self.outs[held.output].head_life;
        let as_head = self.queues[queue].head_since + Time::from_nanos(head_life);
        let in_switch = self.pool.arrived(place) + Time::from_nanos(self.switch_life);
        (as_head.min(in_switch), as_head <= in_switch)
    }

    /// Why a packet that has become a head is dropped at once.
    #[inline]
    pub(super) fn refuses_head(&mut self, at: Time, place: PoolIndex) -> Option<DropReason> {
        let held = self.pool.get(place);
        let (output, lane) = (held.output, held.lane());
        let out = &mut self.outs[output];
        if !out.active {
            return Some(DropReason::OutputInactive);
        }
        if self.switch_life == u64::MAX && out.head_life == u64::MAX {
            return None;
        }
        let in_switch = self.pool.arrived(place) + Time::from_nanos(self.switch_life);
        if in_switch <= at {
            return Some(DropReason::SwitchLifetime);
        }
        if out.stalled.contains(lane) {
            if at < self.out_lanes[LaneIndex::new(output, lane, self.shift)].stalled_until {
                return Some(DropReason::HeadLifetime);
            }
            out.stalled.remove(lane);
        }
        let as_head = at + Time::from_nanos(out.head_life);
        self.expiry = self.expiry.min(as_head.min(in_switch));
        None
    }
}

impl Device {
    /// Drops the heads whose time is over, and finds out when the next one's is.
    pub(super) fn expire(&mut self, at: Time) {
        self.data.expiry = NEVER;
        if self.data.host {
            return;
        }
        for queue in (0..self.data.queues.len()).map(QueueIndex::new) {
            // What comes after a dropped head is a head from now on, and has its time before it.
            let place = self.data.queues[queue].head;
            if place == PoolIndex::NONE {
                continue;
            }
            let (end, as_head) = self.data.head_end(queue, place);
            if end > at {
                self.data.expiry = self.data.expiry.min(end);
                continue;
            }
            let held = self.data.pool.get(place);
            let (output, lane) = (held.output, held.lane());
            self.data.quit_line(at, queue, output, lane);
            let reason = if as_head { DropReason::HeadLifetime } else { DropReason::SwitchLifetime };
            self.drop_head(queue, reason);
            if as_head {
                self.head_dropped(at, output, lane);
            }
            self.head_changed(at, queue);
        }
    }

    /// A head has waited too long for this lane: too many of them in a row, and it is stalled.
    fn head_dropped(&mut self, at: Time, output: PortNum, lane: VirtualLane) {
        let index = self.data.index(output, lane);
        let (out, out_lane) = (&mut self.data.outs[output], &mut self.data.out_lanes[index]);
        out_lane.stalls = out_lane.stalls.saturating_add(1);
        if out.stall_count == 0 || out_lane.stalls < out.stall_count {
            return;
        }
        out_lane.stalls = 0;
        out_lane.stalled_until = at + Time::from_nanos(out.head_life.saturating_mul(STALL));
        out.stalled.insert(lane);
        self.purge_lane(at, output, lane, DropReason::HeadLifetime);
    }
}
