//! The page itself: families of samples, written in Prometheus' text format.

use prometheus::core::Collector;
use prometheus::proto::{Bucket, Counter, Gauge, Histogram, LabelPair, Metric, MetricFamily, MetricType};
use prometheus::{IntCounter, IntGauge, Registry, TextEncoder};

/// All that a process shows at one scrape, in the order in which it was added.
#[derive(Debug, Default)]
pub struct Page {
    families: Vec<MetricFamily>,
}

/// One metric of a page, to which samples are added.
#[derive(Debug)]
pub struct Family<'a> {
    family: &'a mut MetricFamily,
}

impl Page {
    /// An empty page.
    pub fn new() -> Self {
        Self::default()
    }

    /// A page that begins with the kind of process that shows it.
    pub fn of(kind: &str, version: &str) -> Self {
        let mut page = Self::new();
        page.gauge("weft_build_info", "Which kind of process this is, and of which version of weft")
            .count(&[("kind", kind), ("version", version)], 1);
        page
    }

    /// A metric that only rises while its process lives, or while the device that it tells of is not reset. Its name
    /// ends in `_total`.
    pub fn counter(&mut self, name: &str, help: &str) -> Family<'_> {
        self.family(name, help, MetricType::COUNTER)
    }

    /// A metric that rises and falls.
    pub fn gauge(&mut self, name: &str, help: &str) -> Family<'_> {
        self.family(name, help, MetricType::GAUGE)
    }

    /// A metric that tells how its observations are spread.
    pub fn histogram(&mut self, name: &str, help: &str) -> Family<'_> {
        self.family(name, help, MetricType::HISTOGRAM)
    }

    fn family(&mut self, name: &str, help: &str, kind: MetricType) -> Family<'_> {
        let at = self.families.iter().position(|family| family.name() == name).unwrap_or_else(|| {
            let mut family = MetricFamily::default();
            family.set_name(name.to_owned());
            family.set_help(help.to_owned());
            family.set_field_type(kind);
            self.families.push(family);
            self.families.len() - 1
        });
        debug_assert_eq!(self.families[at].get_field_type(), kind, "{name} is of one kind");
        Family { family: &mut self.families[at] }
    }

    /// The page's metrics, those without samples included.
    pub fn into_families(self) -> Vec<MetricFamily> {
        self.families
    }

    /// The page in the text format, and behind it what the registry has. A metric without samples is left out.
    pub fn encode(mut self, registry: &Registry) -> String {
        self.families.retain(|family| !family.get_metric().is_empty());
        self.families.extend(registry.gather());
        let mut text = String::new();
        // It fails for metrics without a name or samples, and there are none.
        let _ = TextEncoder::new().encode_utf8(&self.families, &mut text);
        text
    }
}

/// A counter of the process itself, in its registry, which has none of this name yet.
pub fn counter(registry: &Registry, name: &str, help: &str) -> IntCounter {
    registered(registry, IntCounter::new(name, help))
}

/// The same, for what goes up and down.
pub fn gauge(registry: &Registry, name: &str, help: &str) -> IntGauge {
    registered(registry, IntGauge::new(name, help))
}

/// A metric of whatever kind, in the process's registry, which has none of this name yet.
pub fn registered<M: Collector + Clone + 'static>(registry: &Registry, metric: prometheus::Result<M>) -> M {
    let metric = metric.expect("its name is valid");
    registry.register(Box::new(metric.clone())).expect("no other has its name");
    metric
}

impl Family<'_> {
    /// Adds a sample of a counter or a gauge.
    pub fn add(&mut self, labels: &[(&str, &str)], value: f64) -> &mut Self {
        let mut metric = metric(labels);
        if self.family.get_field_type() == MetricType::COUNTER {
            let mut counter = Counter::default();
            counter.set_value(value);
            metric.set_counter(counter);
        } else {
            let mut gauge = Gauge::default();
            gauge.set_value(value);
            metric.set_gauge(gauge);
        }
        self.family.mut_metric().push(metric);
        self
    }

    /// Adds a whole number. Prometheus' numbers are floating: beyond 2^53 the last digits go.
    pub fn count(&mut self, labels: &[(&str, &str)], value: u64) -> &mut Self {
        self.add(labels, value as f64)
    }

    /// Adds a histogram: how many observations were at most each bound and above the one before, how many there were in
    /// all, and their sum.
    pub fn spread(
        &mut self,
        labels: &[(&str, &str)],
        buckets: impl IntoIterator<Item = (f64, u64)>,
        count: u64,
        sum: f64,
    ) -> &mut Self {
        let mut below = 0;
        let buckets = buckets.into_iter().map(|(bound, count)| {
            below += count;
            let mut bucket = Bucket::default();
            bucket.set_upper_bound(bound);
            bucket.set_cumulative_count(below);
            bucket
        });
        let mut histogram = Histogram::default();
        histogram.set_bucket(buckets.collect());
        histogram.set_sample_count(count);
        histogram.set_sample_sum(sum);
        let mut metric = metric(labels);
        metric.set_histogram(histogram);
        self.family.mut_metric().push(metric);
        self
    }
}

/// A label's value without characters that a terminal obeys; the format itself escapes line breaks, quotes and
/// backslashes.
fn printable(value: &str) -> String {
    // Nearly all are plain, and a page has a hundred thousand of them.
    if value.bytes().all(|byte| (b' '..=b'~').contains(&byte)) {
        return value.to_owned();
    }
    let mut shown = String::with_capacity(value.len());
    for c in value.chars() {
        match c.is_control() && c != '\n' {
            true => shown.extend(c.escape_default()),
            false => shown.push(c),
        }
    }
    shown
}

fn metric(labels: &[(&str, &str)]) -> Metric {
    let labels = labels.iter().map(|(name, value)| {
        let mut label = LabelPair::default();
        label.set_name((*name).to_owned());
        label.set_value(printable(value));
        label
    });
    Metric::from_label(labels.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_is_prometheus_own() {
        let mut page = Page::new();
        page.counter("weft_agent_events_total", "What happened").count(&[("event", "link \"up\"\n")], 3);
        page.gauge("weft_agent_programs", "Programs");
        page.gauge("weft_agent_links", "Links").add(&[], 1.5);
        page.counter("weft_agent_events_total", "What happened").count(&[("event", "b")], 0);
        let buckets = [(0.001, 2), (0.01, 1)];
        page.histogram("weft_agent_late_seconds", "Late").spread(&[], buckets, 4, 1.25);
        assert_eq!(
            page.encode(&Registry::new()),
            "# HELP weft_agent_events_total What happened\n\
             # TYPE weft_agent_events_total counter\n\
             weft_agent_events_total{event=\"link \\\"up\\\"\\n\"} 3\n\
             weft_agent_events_total{event=\"b\"} 0\n\
             # HELP weft_agent_links Links\n\
             # TYPE weft_agent_links gauge\n\
             weft_agent_links 1.5\n\
             # HELP weft_agent_late_seconds Late\n\
             # TYPE weft_agent_late_seconds histogram\n\
             weft_agent_late_seconds_bucket{le=\"0.001\"} 2\n\
             weft_agent_late_seconds_bucket{le=\"0.01\"} 3\n\
             weft_agent_late_seconds_bucket{le=\"+Inf\"} 4\n\
             weft_agent_late_seconds_sum 1.25\n\
             weft_agent_late_seconds_count 4\n"
        );
    }

    #[test]
    fn labels_hold_nothing_that_a_terminal_obeys() {
        let mut page = Page::new();
        page.gauge("weft_agent_device_info", "Devices").count(&[("description", "a\x1b[2J\nb\u{9b}1m")], 1);
        let text = page.encode(&Registry::new());
        assert!(text.contains("{description=\"a\\\\u{1b}[2J\\nb\\\\u{9b}1m\"} 1\n"), "{text}");
        assert!(!text.contains(|c: char| c.is_control() && c != '\n'), "{text}");
    }

    #[test]
    fn an_empty_page_is_empty() {
        assert_eq!(Page::new().encode(&Registry::new()), "");
    }
}
