//! Metrics of flows: each named flow without a set for itself, the others in sums by set.

use prometheus::{GaugeVec, IntCounterVec, IntGaugeVec, Opts, Registry};
use weft_control::flow::{FlowLine, FlowState};
use weft_control::traffic::{FlowReport, Work};
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
    times: GaugeVec,
    pause: GaugeVec,
}

impl FlowMetrics {
    pub(crate) fn new(registry: &Registry) -> Self {
        let labels = ["flow", "set", "from", "to"];
        let counter =
            |name: &str, help: &str| registered(registry, IntCounterVec::new(Opts::new(name, help), &labels));
        let gauge = |name: &str, help: &str, labels: &[&str]| {
            registered(registry, GaugeVec::new(Opts::new(name, help), labels))
        };
        let times = ["flow", "set", "from", "to", "quantile"];
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
            times: gauge(
                "weft_flow_time_seconds",
                "Round trips of a ping-pong or messages of a stream, in wall-clock time; quantile 1 is the longest. Of named flows",
                &times,
            ),
            pause: gauge(
                "weft_flow_longest_pause_seconds",
                "The longest time between two deliveries, in wall-clock time. Of named flows",
                &labels,
            ),
        }
    }

    /// Shows flows as the hub's last look found them.
    pub(crate) fn show(&self, book: &Book) {
        let mut counts = FlowState::ALL.map(|state| (state, 0));
        for counter in [&self.sent, &self.delivered, &self.repeated, &self.missing] {
            counter.reset();
        }
        self.times.reset();
        self.pause.reset();
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
            if is_named {
                self.show_times(line, labels, receiver.pause_ns);
            }
        }
        for (state, count) in counts {
            self.count.with_label_values(&[state.name()]).set(count);
        }
    }

    fn show_times(&self, line: &FlowLine, labels: [&str; 4], pause_ns: u64) {
        let seconds = |ns: u64| ns as f64 / 1e9;
        self.pause.with_label_values(&labels).set(seconds(pause_ns));
        let Some(sender) = &line.sender else { return };
        let times = if line.shape.work == Work::PingPong { sender.latency } else { sender.messages };
        if times.count == 0 {
            return;
        }
        let [flow, set, from, to] = labels;
        for (quantile, ns) in [("0.5", times.p50_ns), ("0.99", times.p99_ns), ("1", times.max_ns)] {
            self.times.with_label_values(&[flow, set, from, to, quantile]).set(seconds(ns));
        }
    }
}
