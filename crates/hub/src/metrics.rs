//! Metrics of the hub.

use prometheus::{IntCounter, IntGauge, IntGaugeVec, Opts, Registry};
use weft_metrics::{Counts, Page, counter, gauge, registered};

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
        let counter = |name, help| counter(&registry, &format!("weft_hub_{name}_total"), help);
        let gauge = |name, help| gauge(&registry, name, help);
        let processes = Opts::new("weft_hub_processes", "Processes of the laboratory, by state");
        Self {
            processes: registered(&registry, IntGaugeVec::new(processes, &["state"])),
            expected: gauge("weft_hub_processes_expected", "Processes that the laboratory was planned with"),
            left_out: gauge("weft_hub_processes_left_out", "Processes not watched: there are too many"),
            events: counter("events_collected", "Events collected from processes"),
            events_lost: counter("events_lost", "Events that processes forgot before the hub had read them"),
            events_refused: counter(
                "events_refused",
                "Events refused: a process told them of another, or of another's node",
            ),
            restarts: counter("restarts", "Processes started again"),
            restarts_failed: counter("restarts_failed", "Processes that could not be started again"),
            http_requests: counter("http_requests", "HTTP requests answered"),
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
            self.processes.with_label_values(&[state.name()]).set(as_gauge(count));
        }
        self.expected.set(as_gauge(expected));
        self.left_out.set(as_gauge(totals.left_out));
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

fn as_gauge(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}
