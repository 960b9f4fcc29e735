//! A page of a fabric's counters, encoded as it is and through a registry that collects it: why it is not collected.
//!
//!     cargo bench -p weft-metrics

use std::sync::{Mutex, PoisonError};

use prometheus::core::{Collector, Desc};
use prometheus::proto::MetricFamily;
use prometheus::{IntCounterVec, Opts, Registry, TextEncoder};
use weft_metrics::Page;

/// Ports of a fabric of 648 hosts.
const PORTS: usize = 2592;
/// Counters of a port.
const COUNTERS: usize = 22;

fn main() {
    divan::main();
}

fn page() -> Page {
    let mut page = Page::of("pm", "0.1.0");
    for counter in 0..COUNTERS {
        let mut family = page.counter(&format!("infiniband_switch_port_{counter}_total"), "A counter");
        for port in 0..PORTS {
            let (guid, number) = (format!("{:#018x}", port / 36), (port % 36 + 1).to_string());
            family.count(&[("guid", &guid), ("port", &number)], (port * counter) as u64);
        }
    }
    page
}

/// What a process counts itself.
fn own() -> Registry {
    let registry = Registry::new();
    let requests = IntCounterVec::new(Opts::new("weft_control_requests_total", "Requests"), &["request"]);
    let requests = requests.expect("the name and the help are fixed");
    requests.with_label_values(&["hello"]).inc();
    registry.register(Box::new(requests)).expect("the registry is empty");
    registry
}

/// Gives the page's families to the registry.
struct Collected(Mutex<Vec<MetricFamily>>);

impl Collector for Collected {
    fn desc(&self) -> Vec<&Desc> {
        Vec::new()
    }

    fn collect(&self) -> Vec<MetricFamily> {
        std::mem::take(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

#[divan::bench]
fn without_a_registry(bencher: divan::Bencher<'_, '_>) {
    let empty = Registry::new();
    bencher.bench_local(|| page().encode(&empty).len());
}

#[divan::bench]
fn before_a_registry(bencher: divan::Bencher<'_, '_>) {
    let registry = own();
    bencher.bench_local(|| page().encode(&registry).len());
}

#[divan::bench]
fn through_a_registry(bencher: divan::Bencher<'_, '_>) {
    bencher.bench_local(|| {
        let registry = own();
        let collected = Collected(Mutex::new(page().into_families()));
        registry.register(Box::new(collected)).expect("nothing has its names");
        let mut text = String::new();
        TextEncoder::new().encode_utf8(&registry.gather(), &mut text).expect("every family has samples");
        text.len()
    });
}
