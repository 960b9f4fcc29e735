//! Counters of a process's server, for Prometheus and for whoever asks `clients`.

use std::collections::BTreeMap;

use prometheus::{IntCounter, IntCounterVec, IntGauge, Opts, Registry};
use weft_control::process::Clients;
use weft_metrics::{counter, gauge};

/// The counters, registered once for a process.
#[derive(Clone, Debug)]
pub struct Counts {
    pub(crate) connected: IntGauge,
    pub(crate) accepted: IntCounter,
    pub(crate) turned_away: IntCounter,
    pub(crate) of_one_turned_away: IntCounter,
    pub(crate) too_slow: IntCounter,
    pub(crate) half_lines: IntCounter,
    pub(crate) requests: IntCounterVec,
    pub(crate) errors: IntCounterVec,
    pub(crate) events_told: IntCounter,
    pub(crate) events_skipped: IntCounter,
}

/// What a process's door counts: clients over QUIC and their conversations that it did not serve. Clones count together.
#[derive(Clone, Debug)]
pub struct DoorCounts {
    /// Clients that were asked to prove their address first: half of the places for handshakes were taken.
    pub retried: IntCounter,
    /// Clients that were not answered: too many shook hands at once.
    pub ignored: IntCounter,
    /// Clients that were sent away: too many of their identity, or of their role.
    pub refused: IntCounter,
    /// Conversations with a process that were refused: too many of that identity, or at all.
    pub conversations_refused: IntCounter,
}

impl Default for DoorCounts {
    fn default() -> Self {
        let counter = |name: &str, help: &str| {
            let name = format!("weft_control_door_{name}_total");
            IntCounter::new(name, help).expect("the name and the help are fixed")
        };
        Self {
            retried: counter(
                "retried",
                "Clients that the door asked to prove their address: half of its handshakes were under way",
            ),
            ignored: counter("ignored", "Clients that the door did not answer: too many handshakes at once"),
            refused: counter(
                "clients_refused",
                "Clients that the door sent away: too many of one identity or role",
            ),
            conversations_refused: counter(
                "conversations_refused",
                "Conversations with processes that were refused: too many of one identity, or with one process",
            ),
        }
    }
}

impl DoorCounts {
    /// Shows them among a process's metrics.
    ///
    /// # Panics
    /// When the registry has them already: a process has one door.
    pub fn register(&self, registry: &Registry) {
        for counter in [&self.retried, &self.ignored, &self.refused, &self.conversations_refused] {
            registry.register(Box::new(counter.clone())).expect("a process has one door");
        }
    }
}

impl Counts {
    /// Registers all of them.
    ///
    /// # Panics
    /// When the registry has them already: a process has one server.
    pub fn new(registry: &Registry) -> Self {
        let counter = |name, help| counter(registry, &format!("weft_control_{name}_total"), help);
        let by = |name: &str, help: &str, label: &str| {
            let counter = IntCounterVec::new(Opts::new(name, help), &[label]).expect("the name is fixed");
            registry.register(Box::new(counter.clone())).expect("a process has one server");
            counter
        };
        Self {
            connected: gauge(registry, "weft_control_clients", "Clients of the control socket now"),
            accepted: counter("clients_accepted", "Clients of the control socket"),
            turned_away: counter("clients_turned_away", "Clients turned away: too many at once"),
            of_one_turned_away: counter(
                "clients_of_one_turned_away",
                "Clients turned away: one process had as many as it may",
            ),
            too_slow: counter("clients_too_slow", "Clients disconnected: they did not read"),
            half_lines: counter("half_lines", "Clients that left in the middle of a line"),
            requests: by("weft_control_requests_total", "Requests, by name", "request"),
            errors: by("weft_control_errors_total", "Requests that were not carried out, by code", "code"),
            events_told: counter("events_told", "Events told to clients"),
            events_skipped: counter(
                "events_skipped",
                "Events not told: a client read so slowly that they were forgotten",
            ),
        }
    }

    /// All of them, for a client.
    pub(crate) fn clients(&self) -> Clients {
        Clients {
            connected: u64::try_from(self.connected.get()).unwrap_or_default(),
            accepted: self.accepted.get(),
            turned_away: self.turned_away.get(),
            of_one_turned_away: self.of_one_turned_away.get(),
            too_slow: self.too_slow.get(),
            half_lines: self.half_lines.get(),
            requests: by_label(&self.requests),
            errors: by_label(&self.errors),
            events_told: self.events_told.get(),
            events_skipped: self.events_skipped.get(),
        }
    }
}

/// The values of counters with one label, by its value.
fn by_label(counters: &IntCounterVec) -> BTreeMap<String, u64> {
    use prometheus::core::Collector as _;
    let families = counters.collect();
    let metrics = families.iter().flat_map(prometheus::proto::MetricFamily::get_metric);
    let value = |metric: &prometheus::proto::Metric| {
        let label = metric.get_label().first()?.value().to_owned();
        Some((label, metric.get_counter().get_value() as u64))
    };
    metrics.filter_map(value).collect()
}
