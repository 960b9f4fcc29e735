//! What has been counted by lane, put into the ports' counters when somebody reads them.

use weft_machine::Time;
use weft_wire::VirtualLane;

use super::DataPath;
use super::buffer::Queue;
use crate::Counters;
use crate::port::Port;

impl DataPath {
    /// Adds what is not in a port's counters yet, waits up to `at` included.
    pub(crate) fn add_uncounted(&self, at: Time, port: usize, counters: &mut Counters) {
        counters.port_xmit_wait += self.outs[port].wait.ticks(at.max(self.now), self.tick);
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

impl DataPath {
    /// Puts into the counters of the ports with these numbers what is not there yet, waits under way included.
    pub(crate) fn count_all(&mut self, ports: &mut [Port], numbers: std::ops::Range<usize>) {
        let (at, tick) = (self.now, self.tick);
        for number in numbers {
            let port = &mut ports[number];
            port.counters.port_xmit_wait += self.outs[number].wait.take_ticks(at, tick);
            port.counters.port_rcv_flow_pkts += std::mem::take(&mut self.outs[number].flow_received);
            for (index, lane) in self.lanes_of(number).zip(0..) {
                port.count_received(&mut self.queues[index], VirtualLane(lane));
                port.counters.port_xmit_flow_pkts += std::mem::take(&mut self.queues[index].flow_sent);
                let out_lane = &mut self.out_lanes[index];
                port.counters.sent_all(std::mem::take(&mut out_lane.uncounted));
                port.by_lane.xmit_wait[usize::from(lane)] += out_lane.wait.take_ticks(at, tick);
            }
        }
    }
}
