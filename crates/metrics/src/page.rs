//! The page itself: families of samples, written in Prometheus' text format.

use std::fmt::Write as _;

use prometheus::core::Collector;
use prometheus::{IntCounter, IntGauge, Registry, TextEncoder};

/// Whole numbers below are exact as floating ones, which Prometheus' are.
const WHOLE_MAX: f64 = 9_007_199_254_740_992.0;

/// All that a process shows at one scrape, in the order in which it was added.
///
/// Samples are written as they are added: a large fabric has a hundred thousand of them.
#[derive(Debug, Default)]
pub struct Page {
    families: Vec<Written>,
}

/// A metric, and the lines of its samples.
#[derive(Debug)]
struct Written {
    name: String,
    help: String,
    kind: &'static str,
    lines: String,
}

/// One metric of a page, to which samples are added.
#[derive(Debug)]
pub struct Family<'a> {
    family: &'a mut Written,
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
        self.family(name, help, "counter")
    }

    /// A metric that rises and falls.
    pub fn gauge(&mut self, name: &str, help: &str) -> Family<'_> {
        self.family(name, help, "gauge")
    }

    /// A metric that tells how its observations are spread.
    pub fn histogram(&mut self, name: &str, help: &str) -> Family<'_> {
        self.family(name, help, "histogram")
    }

    fn family(&mut self, name: &str, help: &str, kind: &'static str) -> Family<'_> {
        let at = self.families.iter().position(|family| family.name == name).unwrap_or_else(|| {
            let (name, help, lines) = (name.to_owned(), help.to_owned(), String::new());
            self.families.push(Written { name, help, kind, lines });
            self.families.len() - 1
        });
        debug_assert_eq!(self.families[at].kind, kind, "{name} is of one kind");
        Family { family: &mut self.families[at] }
    }

    /// The page in the text format. A metric without samples is left out.
    pub fn text(&self) -> String {
        let bytes = self.families.iter().map(|family| {
            family.lines.len()
                + 2 * family.name.len()
                + family.help.len()
                + "# HELP # TYPE histogram\n\n".len()
        });
        let mut text = String::with_capacity(bytes.sum());
        for Written { name, help, kind, lines } in &self.families {
            if !lines.is_empty() {
                let help = help.replace('\\', "\\\\").replace('\n', "\\n");
                put(&mut text, format_args!("# HELP {name} {help}\n# TYPE {name} {kind}\n"));
                text += lines;
            }
        }
        text
    }

    /// The same, and behind it what the registry has.
    pub fn encode(&self, registry: &Registry) -> String {
        let mut text = self.text();
        encode_registry(registry, &mut text);
        text
    }
}

/// Appends what a registry has.
pub(crate) fn encode_registry(registry: &Registry, text: &mut String) {
    // It fails for metrics without a name or samples, and there are none.
    let _ = TextEncoder::new().encode_utf8(&registry.gather(), text);
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
        self.sample("", labels, None, value);
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
        for (bound, count) in buckets {
            below += count;
            if bound.is_finite() {
                self.sample("_bucket", labels, Some(&bound.to_string()), below as f64);
            }
        }
        self.sample("_bucket", labels, Some("+Inf"), count as f64);
        self.sample("_sum", labels, None, sum);
        self.sample("_count", labels, None, count as f64);
        self
    }

    fn sample(&mut self, suffix: &str, labels: &[(&str, &str)], bound: Option<&str>, value: f64) {
        let Written { name, lines, .. } = self.family;
        *lines += name;
        *lines += suffix;
        let mut before = '{';
        for (label, value) in labels.iter().copied().chain(bound.map(|bound| ("le", bound))) {
            lines.push(before);
            *lines += label;
            *lines += "=\"";
            put_label(lines, value);
            lines.push('"');
            before = ',';
        }
        *lines += if before == '{' { " " } else { "} " };
        if value.fract() == 0.0 && value.abs() < WHOLE_MAX {
            put(lines, format_args!("{}\n", value as i64));
        } else {
            put(lines, format_args!("{value}\n"));
        }
    }
}

fn put(text: &mut String, arguments: std::fmt::Arguments<'_>) {
    text.write_fmt(arguments).expect("a string takes all that is written");
}

/// A label's value, as the format has it and without characters that a terminal obeys.
fn put_label(text: &mut String, value: &str) {
    // Nearly all are plain, and a page has a hundred thousand of them.
    if value.bytes().all(|byte| (b' '..=b'~').contains(&byte) && byte != b'"' && byte != b'\\') {
        *text += value;
        return;
    }
    for c in value.chars() {
        match c {
            '\n' => *text += "\\n",
            '"' | '\\' => text.extend(['\\', c]),
            // The backslash of an escaped one is escaped itself.
            c if c.is_control() => put(text, format_args!("\\{}", c.escape_default())),
            c => text.push(c),
        }
    }
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
