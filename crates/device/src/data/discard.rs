//! Packets that are dropped after they were held, and what is counted for them.

use weft_machine::Time;
use weft_wire::{PortNum, VirtualLane};

use super::DataPath;
use super::arrive::Heading;
use super::buffer::Body;
use super::index::{LaneIndex, PoolIndex, QueueIndex};
use super::output::Phase;
use crate::{Device, DropReason};

impl DataPath {
    /// A packet that has come in will not leave.
    pub(super) fn no_longer_waits(&mut self, place: PoolIndex) {
        if !self.host {
            let held = self.pool.get(place);
            let index = self.index(held.output, held.lane());
            self.out_lanes[index].waiting -= u32::from(held.size());
        }
    }
}

impl Device {
    /// Packets on their way out do not arrive: the link is gone.
    pub(super) fn abort_output(&mut self, at: Time, output: PortNum) {
        let mut leaving = self.data.empty_behind(output);
        let announced = self.data.cut_through.is_some();
        let out = &mut self.data.outs[output];
        let sending = std::mem::replace(&mut out.sending, PoolIndex::NONE);
        out.phase = Phase::Idle;
        out.gate_end = at;
        self.data.deadlines.clear(usize::from(output.0));
        if sending != PoolIndex::NONE && leaving.is_empty() {
            leaving.push(sending);
        }
        for place in leaving {
            if announced && place == sending {
                // The cable has it already.
                self.tail_has_left(output, place);
                continue;
            }
            self.count_departure(output, DropReason::OutputInactive);
            self.drop_held(place, DropReason::OutputInactive, output);
        }
    }

    /// Drops every head that wants this port, and those behind them that become heads and want it too.
    pub(super) fn purge_output(&mut self, at: Time, output: PortNum) {
        for lane in self.data.each_lane() {
            self.purge_lane(at, output, lane, DropReason::OutputInactive);
        }
    }

    /// Drops every head that wants this lane of this port.
    pub(super) fn purge_lane(&mut self, at: Time, output: PortNum, lane: VirtualLane, reason: DropReason) {
        let index = self.data.index(output, lane);
        while self.data.out_lanes[index].first != QueueIndex::NONE {
            let queue = self.data.leave_line(at, output, lane);
            self.drop_head(queue, reason);
            self.head_changed(at, queue);
        }
        self.data.credit_changed(at, output, lane);
    }

    /// Drops the head of a queue that stands in no line.
    pub(super) fn drop_head(&mut self, queue: QueueIndex, reason: DropReason) {
        let data = &mut self.data;
        let Some(place) = data.pop_queue(queue) else { return };
        let held = data.pool.get(place);
        let index = data.index(held.output, held.lane());
        data.out_lanes[index].waiting -= u32::from(held.size());
        let output = held.output;
        self.count_departure(output, reason);
        self.drop_held(place, reason, output);
    }

    /// Drops a packet that is in no queue any more, and reports it of `port`.
    pub(super) fn drop_held(&mut self, place: PoolIndex, reason: DropReason, port: PortNum) {
        let data = &mut self.data;
        let (buffer, blocks, lane) = {
            let held = data.pool.get(place);
            (held.buffer, held.blocks, held.lane())
        };
        let body = data.pool.take(place);
        let account = &mut data.account[lane];
        account.held -= 1;
        account.drop(reason);
        self.discard(port, reason);
        if let Body::Data(packet) = &body {
            self.tell_of_drop(port, reason, &Heading::from(packet));
        }
        let of_host = self.data.host && buffer == LaneIndex::NONE;
        if let Body::Data(packet) = body
            && of_host
        {
            self.has_injected(port, packet.service_level);
        }
        self.release(buffer, u16::from(blocks));
    }

    /// Counts a packet that a port of departure does not send.
    pub(crate) fn count_departure(&mut self, output: PortNum, reason: DropReason) {
        let Some(port) = self.ports.get_mut(usize::from(output.0)) else { return };
        let counters = &mut port.counters;
        counters.port_xmit_discards += 1;
        match reason {
            DropReason::OutputInactive => counters.port_inactive_discards += 1,
            DropReason::TooLong => counters.port_neighbor_mtu_discards += 1,
            DropReason::SwitchLifetime => counters.port_sw_lifetime_limit_discards += 1,
            DropReason::HeadLifetime => counters.port_sw_hoq_lifetime_limit_discards += 1,
            _ => {}
        }
    }
}
