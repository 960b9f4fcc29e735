//! The values of a latency and bandwidth test.

use weft_machine::Time;

use super::{Measured, mean};
use crate::{BeffPart, BeffValue, FlowPlan};

impl Measured<'_> {
    pub(super) fn beff(&self, test: &str, value: BeffValue) -> Option<f64> {
        let latency =
            |part| self.parts(test, part, false).filter_map(|flow| self.half_trip(flow)).collect::<Vec<_>>();
        let exchange = || {
            let flows = self.parts(test, BeffPart::PingPong, true);
            flows
                .filter_map(|flow| Some(f64::from(flow.message_bytes) / self.half_trip(flow)?))
                .collect::<Vec<f64>>()
        };
        match value {
            BeffValue::PingPongLatencyMin => latency(BeffPart::PingPong).into_iter().reduce(f64::min),
            BeffValue::PingPongLatencyAvg => mean(latency(BeffPart::PingPong).into_iter()),
            BeffValue::PingPongLatencyMax => latency(BeffPart::PingPong).into_iter().reduce(f64::max),
            BeffValue::NaturalRingLatency => mean(latency(BeffPart::NaturalRing).into_iter()),
            BeffValue::RandomRingLatency => mean(latency(BeffPart::RandomRing).into_iter()),
            BeffValue::PingPongBandwidthMin => exchange().into_iter().reduce(f64::min),
            BeffValue::PingPongBandwidthAvg => mean(exchange().into_iter()),
            BeffValue::PingPongBandwidthMax => exchange().into_iter().reduce(f64::max),
            BeffValue::NaturalRingBandwidth => self.ring_bandwidth(test, BeffPart::NaturalRing),
            BeffValue::RandomRingBandwidth => self.ring_bandwidth(test, BeffPart::RandomRing),
        }
    }

    fn parts(&self, test: &str, part: BeffPart, bandwidth: bool) -> impl Iterator<Item = &FlowPlan> {
        let is_meant = move |flow: &&FlowPlan| {
            flow.beff
                .as_ref()
                .is_some_and(|tag| tag.test == test && tag.part == part && tag.bandwidth == bandwidth)
        };
        self.plan.flows.iter().filter(is_meant).collect::<Vec<_>>().into_iter()
    }

    /// Half of a flow's mean round trip, in microseconds of fabric time. Bytes per microsecond are MB/s.
    fn half_trip(&self, flow: &FlowPlan) -> Option<f64> {
        let mut ends = self.recording.ends.iter().map(|end| &end.report);
        let end = ends.find(|end| end.sender && end.flow == flow.flow && end.latency.count > 0)?;
        Some(self.micros(end.latency.sum_ns as f64 / end.latency.count as f64 / 2.0))
    }

    /// What one host sends to both of its neighbours, in MB/s of body: the mean over rings of the mean over hosts, in the
    /// later half of the step.
    fn ring_bandwidth(&self, test: &str, part: BeffPart) -> Option<f64> {
        let flows: Vec<&FlowPlan> = self.parts(test, part, true).collect();
        let body = |flow: &&FlowPlan| {
            let half = Time::from_nanos(flow.stop.saturating_sub(flow.start).as_nanos() / 2);
            let packet = f64::from(flow.message_bytes.min(u32::from(self.body())));
            let share = packet / (packet + flow.overhead() as f64);
            self.rate(flow, flow.start + half, flow.stop).map(|gbps| gbps * share * 1000.0 / 8.0)
        };
        // Two flows leave each host.
        mean(flows.iter().filter_map(body)).map(|of_flow| 2.0 * of_flow)
    }

    /// Bytes of body of a full packet.
    fn body(&self) -> u16 {
        128_u16 << u32::from(self.plan.device.mtu_cap.code().clamp(1, 5))
    }
}
