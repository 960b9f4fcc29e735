//! Counts by lane, put into the ports' counters when somebody reads them.

use weft_machine::Time;
use weft_wire::{PortNum, VirtualLane};

use super::DataPath;
use super::buffer::Queue;
use crate::Counters;
use crate::port::Port;
use crate::snapshot::LaneTotals;

impl DataPath {
    /// Adds what is not in a port's counters yet, waits up to `at` included.
    pub(crate) fn add_uncounted(&self, at: Time, port: PortNum, counters: &mut Counters) {
        counters.port_xmit_wait += self.outs[port].wait.ticks(at.max(self.now), self.tick);
        counters.port_rcv_flow_pkts += self.outs[port].flow_received;
        for lane in self.each_lane() {
            let index = self.index(port, lane);
            counters.port_xmit_flow_pkts += self.queues[index].flow_sent;
            counters.received_all(self.queues[index].uncounted);
            counters.sent_all(self.out_lanes[index].uncounted);
        }
    }
}

impl DataPath {
    /// What each data lane of a port has counted, waits up to `at` included.
    pub(crate) fn lane_totals(&self, at: Time, port: &Port) -> impl Iterator<Item = LaneTotals> {
        let at = at.max(self.now);
        self.each_lane().map(move |lane| {
            let (index, place) = (self.index(port.number, lane), usize::from(lane.0 & 0xf));
            let received = port.by_lane.by_op_code.iter().map(|counters| counters.lanes[place].data);
            let waited = self.out_lanes[index].wait.ticks(at, self.tick);
            LaneTotals {
                lane,
                rcv_data: received.sum::<u64>() + self.queues[index].uncounted.words,
                xmit_wait: port.by_lane.xmit_wait[place] + waited,
            }
        })
    }

    /// Nanoseconds of machine time in one of fabric time.
    pub(crate) fn dilation(&self) -> u32 {
        self.dilation
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

impl DataPath {
    /// Puts into the counters of the ports with these numbers what is not there yet, waits under way included.
    pub(crate) fn count_all(&mut self, ports: &mut [Port], numbers: std::ops::Range<usize>) {
        let (at, tick) = (self.now, self.tick);
        for number in numbers {
            let port = &mut ports[number];
            let out = &mut self.outs[port.number];
            port.counters.port_xmit_wait += out.wait.take_ticks(at, tick);
            port.counters.port_rcv_flow_pkts += std::mem::take(&mut out.flow_received);
            for lane in self.each_lane() {
                let index = self.index(port.number, lane);
                port.count_received(&mut self.queues[index], lane);
                port.counters.port_xmit_flow_pkts += std::mem::take(&mut self.queues[index].flow_sent);
                let out_lane = &mut self.out_lanes[index];
                port.counters.sent_all(std::mem::take(&mut out_lane.uncounted));
                port.by_lane.xmit_wait[usize::from(lane.0)] += out_lane.wait.take_ticks(at, tick);
            }
        }
    }
}
