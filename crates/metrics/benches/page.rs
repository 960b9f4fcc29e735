//! A page of a fabric's counters: how long it takes to write it, and to compress it as a client of gzip gets it.
//!
//!     cargo bench -p weft-metrics

use prometheus::{IntCounterVec, Opts, Registry};
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

#[divan::bench]
fn written(bencher: divan::Bencher<'_, '_>) {
    let registry = own();
    bencher.bench_local(|| page().encode(&registry).len());
}

/// The same with its bytes in gzip, at the level that the exporter uses.
#[divan::bench(args = [1, 2, 3, 6])]
fn written_and_compressed(bencher: divan::Bencher<'_, '_>, level: u32) {
    let registry = own();
    bencher.bench_local(|| {
        let text = page().encode(&registry);
        let mut squeezer = flate2::Compress::new(flate2::Compression::new(level), false);
        let mut bytes = Vec::with_capacity(text.len());
        squeezer
            .compress_vec(text.as_bytes(), &mut bytes, flate2::FlushCompress::Finish)
            .expect("there is room")
            .eq(&flate2::Status::StreamEnd)
            .then_some(bytes.len())
    });
}
