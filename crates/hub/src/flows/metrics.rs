//! Metrics of flows: each named flow without a set for itself, the others in sums by set.

use prometheus::{IntCounterVec, IntGaugeVec, Opts, Registry};
use weft_control::flow::FlowState;
use weft_control::traffic::FlowReport;
use weft_metrics::registered;

use super::book::Book;

/// Flows with metrics of their own; further ones count in the set "others".
const NAMED_MAX: usize = 1000;

/// What one flow, or a set of them, has come to.
#[derive(Debug)]
pub(crate) struct FlowMetrics {
    count: IntGaugeVec,
    sent: IntCounterVec,
    delivered: IntCounterVec,
    repeated: IntCounterVec,
    missing: IntCounterVec,
}

impl FlowMetrics {
    pub(crate) fn new(registry: &Registry) -> Self {
        let labels = ["flow", "set", "from", "to"];
        let counter =
            |name: &str, help: &str| registered(registry, IntCounterVec::new(Opts::new(name, help), &labels));
        let count = Opts::new("weft_flows", "Flows of the laboratory, by state");
        Self {
            count: registered(registry, IntGaugeVec::new(count, &["state"])),
            sent: counter(
                "weft_flow_sent_bytes_total",
                "Bytes of body that the sender sent for the first time",
            ),
            delivered: counter(
                "weft_flow_delivered_bytes_total",
                "Bytes of body delivered, once and in order",
            ),
            repeated: counter("weft_flow_repeated_packets_total", "Packets that the sender sent again"),
            missing: counter("weft_flow_missing_packets_total", "Packets that never came to the receiver"),
        }
    }

    /// Shows flows as the hub's last look found them.
    pub(crate) fn show(&self, book: &Book) {
        let all = [FlowState::Starting, FlowState::Running, FlowState::Done, FlowState::Failed];
        let mut counts = all.map(|state| (state, 0));
        for counter in [&self.sent, &self.delivered, &self.repeated, &self.missing] {
            counter.reset();
        }
        let mut named = 0;
        for line in book.iter() {
            counts.iter_mut().filter(|(state, _)| *state == line.state).for_each(|(_, count)| *count += 1);
            let is_named = line.set.is_none() && named < NAMED_MAX;
            named += usize::from(is_named);
            let labels = match (is_named, &line.set) {
                (true, _) => [line.name.as_str(), "", line.from.name.as_str(), line.to.name.as_str()],
                (false, set) => ["", set.as_deref().unwrap_or("others"), "", ""],
            };
            let said = |report: &Option<FlowReport>| report.clone().unwrap_or_default();
            let (sender, receiver) = (said(&line.sender), said(&line.receiver));
            self.sent.with_label_values(&labels).inc_by(sender.bytes);
            self.delivered.with_label_values(&labels).inc_by(receiver.bytes);
            self.repeated.with_label_values(&labels).inc_by(sender.repeated);
            self.missing.with_label_values(&labels).inc_by(receiver.missing);
        }
        for (state, count) in counts {
            self.count.with_label_values(&[state.name()]).set(count);
        }
    }
}
