//! Metrics of the hub.

use prometheus::{IntCounter, IntGauge, IntGaugeVec, Opts, Registry};
use weft_metrics::{Counts, Page};

use crate::flows::{FlowMetrics, Flows};
use crate::shared::Shared;

/// The hub's metrics. Counters of the roster are brought up to date when somebody looks.
pub(crate) struct Metrics {
    registry: Registry,
    version: String,
    processes: IntGaugeVec,
    expected: IntGauge,
    left_out: IntGauge,
    events: IntCounter,
    events_lost: IntCounter,
    events_refused: IntCounter,
    restarts: IntCounter,
    pub(crate) restarts_failed: IntCounter,
    pub(crate) http_requests: IntCounter,
    flows: FlowMetrics,
}

impl Metrics {
    /// Registers all of them.
    pub(crate) fn new(registry: Registry, version: String) -> Self {
        let counter = |name: &str, help: &str| {
            let counter = IntCounter::new(name, help).expect("the name and the help are fixed");
            registry.register(Box::new(counter.clone())).expect("a process has one hub");
            counter
        };
        let gauge = |name: &str, help: &str| {
            let gauge = IntGauge::new(name, help).expect("the name and the help are fixed");
            registry.register(Box::new(gauge.clone())).expect("a process has one hub");
            gauge
        };
        let processes = Opts::new("weft_hub_processes", "Processes of the laboratory, by state");
        let processes = IntGaugeVec::new(processes, &["state"]).expect("the name and the help are fixed");
        registry.register(Box::new(processes.clone())).expect("a process has one hub");
        Self {
            processes,
            expected: gauge("weft_hub_processes_expected", "Processes that the laboratory was planned with"),
            left_out: gauge("weft_hub_processes_left_out", "Processes not watched: there are too many"),
            events: counter("weft_hub_events_collected_total", "Events collected from processes"),
            events_lost: counter(
                "weft_hub_events_lost_total",
                "Events that processes forgot before the hub had read them",
            ),
            events_refused: counter(
                "weft_hub_events_refused_total",
                "Events refused: a process told them of another, or of another's node",
            ),
            restarts: counter("weft_hub_restarts_total", "Processes started again"),
            restarts_failed: counter(
                "weft_hub_restarts_failed_total",
                "Processes that could not be started again",
            ),
            http_requests: counter("weft_hub_http_requests_total", "HTTP requests answered"),
            flows: FlowMetrics::new(&registry),
            registry,
            version,
        }
    }

    /// What the hub's HTTP server counts.
    pub(crate) fn http(&self) -> Counts {
        Counts::new(&self.registry)
    }

    /// Prometheus' text.
    pub(crate) fn text(&self, shared: &Shared, flows: &Flows) -> String {
        let (states, (expected, _), totals) = {
            let state = shared.state();
            (state.roster.states(), state.roster.expected(), state.roster.totals())
        };
        for (state, count) in states {
            self.processes.with_label_values(&[state.name()]).set(gauge(count));
        }
        self.expected.set(gauge(expected));
        self.left_out.set(gauge(totals.left_out));
        for (counter, total) in [
            (&self.events, totals.events),
            (&self.events_lost, totals.events_lost),
            (&self.events_refused, totals.events_refused),
            (&self.restarts, totals.restarts),
        ] {
            counter.inc_by(total.saturating_sub(counter.get()));
        }
        self.flows.show(&flows.book());
        Page::of("hub", &self.version).encode(&self.registry)
    }
}

fn gauge(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}
