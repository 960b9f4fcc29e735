//! Packets that are dropped after they were held, and what is counted for them.

use weft_machine::Time;
use weft_wire::PortNum;

use super::DataPath;
use super::buffer::{Body, NIL, NO_QUEUE};
use super::output::Phase;
use crate::{Device, DropReason, Output};

impl DataPath {
    /// A packet that has come in will not leave.
    pub(super) fn no_longer_waits(&mut self, place: u32) {
        if !self.host {
            let held = self.pool.get(place);
            let index = self.index(held.output, held.lane());
            self.out_lanes[index].waiting -= u32::from(held.size());
        }
    }
}

impl Device {
    /// Packets on their way out do not arrive: the link is gone.
    pub(super) fn abort_output(&mut self, at: Time, output: u8) {
        let mut leaving = self.data.empty_behind(output);
        let announced = self.data.cut_through.is_some();
        let out = &mut self.data.outs[usize::from(output)];
        let sending = std::mem::replace(&mut out.sending, NIL);
        out.phase = Phase::Idle;
        out.gate_end = at;
        self.data.deadlines.clear(usize::from(output));
        if sending != NIL && leaving.is_empty() {
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
    pub(super) fn purge_output(&mut self, at: Time, output: u8) {
        for lane in 0..self.data.lanes {
            self.purge_lane(at, output, lane, DropReason::OutputInactive);
        }
    }

    /// Drops every head that wants this lane of this port.
    pub(super) fn purge_lane(&mut self, at: Time, output: u8, lane: u8, reason: DropReason) {
        let index = self.data.index(output, lane);
        while self.data.out_lanes[index].first != NIL {
            let queue = self.data.leave_line(at, output, lane);
            self.drop_head(queue, reason);
            self.head_changed(at, queue);
        }
        self.data.credit_changed(at, output, lane);
    }

    /// Drops the head of a queue that stands in no line.
    pub(super) fn drop_head(&mut self, queue: u32, reason: DropReason) {
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
    pub(super) fn drop_held(&mut self, place: u32, reason: DropReason, port: u8) {
        let data = &mut self.data;
        let (home, blocks, lane) = {
            let held = data.pool.get(place);
            (held.queue, held.blocks, held.lane())
        };
        let body = data.pool.take(place);
        let account = &mut data.account[usize::from(lane & 0xf)];
        account.held -= 1;
        account.drop(reason);
        self.discard(PortNum(port), reason);
        let of_host = self.data.host && home == NO_QUEUE;
        if let Body::Data(packet) = body
            && of_host
        {
            let (port, service_level) = (PortNum(port), packet.service_level);
            self.outputs.push_back(Output::Injected { port, service_level, packets: 1 });
        }
        self.release(home, u16::from(blocks));
    }

    /// Counts a packet that a port of departure does not send.
    pub(crate) fn count_departure(&mut self, output: u8, reason: DropReason) {
        let Some(port) = self.ports.get_mut(usize::from(output)) else { return };
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
