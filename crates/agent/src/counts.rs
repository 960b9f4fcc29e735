//! Counts of ports on data lanes, for those who look at the fabric's traffic: little where little happens.

use weft_control::Page;
use weft_control::agent::{CountedPort, CountsPage, LaneCount, PortCounts};
use weft_device::{Device, LaneTotals};
use weft_node::PortId;
use weft_wire::PortNum;

use crate::core::Core;

impl Core {
    /// The counts of all ports that have any; none while their sum is the one that the client knows.
    pub(crate) fn lane_counts(&self, page: &CountsPage) -> PortCounts {
        let now = self.now();
        let (mut counted, mut sum, mut dilation) = (Vec::new(), 0_u64, 1);
        for (_, id) in self.names.iter() {
            let Some(device) = self.node.device(id) else { continue };
            dilation = dilation.max(device.dilation());
            for port in ports_of(device) {
                let xmit_wait =
                    device.port_snapshot_at(port, now).map_or(0, |port| port.counters.port_xmit_wait);
                let lanes: Vec<LaneCount> = device.lane_totals_at(port, now).filter_map(count).collect();
                let all = lanes.iter().map(|lane| lane.rcv_words.wrapping_add(lane.xmit_wait));
                let all = all.fold(xmit_wait, u64::wrapping_add);
                sum = sum.wrapping_add(all);
                if all > 0 {
                    counted.push(CountedPort {
                        end: self.names.end(PortId::new(id, port)),
                        xmit_wait,
                        lanes,
                    });
                }
            }
        }
        let now_ns = now.as_nanos();
        if page.known == Some(sum) && page.after.is_none() {
            return PortCounts { dilation, now_ns, sum, ports: Vec::new(), more: false };
        }
        let (ports, more) = Page { after: page.after, limit: page.limit }.cut(counted, |port| port.end);
        PortCounts { dilation, now_ns, sum, ports, more }
    }
}

/// The numbers of a device's ports that cables go into.
fn ports_of(device: &Device) -> impl Iterator<Item = PortNum> + use<> {
    (1..=device.port_count()).map(PortNum)
}

fn count(lane: LaneTotals) -> Option<LaneCount> {
    let LaneTotals { lane, rcv_data, xmit_wait } = lane;
    (rcv_data > 0 || xmit_wait > 0).then_some(LaneCount { lane, rcv_words: rcv_data, xmit_wait })
}
