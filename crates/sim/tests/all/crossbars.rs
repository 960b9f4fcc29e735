//! Crossbars beside what is known of them: closed forms of queueing theory, and the InfiniBand flit model.
//!
//! Throughput at saturation is a mean over many packets. Its standard deviation, measured over 20 seeds, is given at each
//! judge; bounds are at least four of them. `cargo run --release -p weft-sim --example crossbars` prints the whole tables.

use support::crossbars::{Pattern, Switches, delivered, star};
use weft_device::Crossbar;

use crate::support;

fn seed() -> u64 {
    std::env::var("WEFT_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(1)
}

fn close(name: &str, found: f64, wanted: f64, within: f64) {
    assert!(
        (found / wanted - 1.0).abs() < within,
        "WEFT_SEED={}: {name}: {found:.4} instead of {wanted}",
        seed()
    );
}

/// Karol, Hluchyj and Morgan (1987), exact Markov chains for small switches.
#[test]
fn fifo_is_head_of_line_blocking() {
    for (hosts, wanted, packets) in [(3, 0.750, 4000), (4, 0.692, 3000), (8, 0.626, 1500), (16, 0.603, 800)] {
        let found = delivered(&star(hosts), Crossbar::FIFO, Pattern::Others, packets, seed());
        close(&format!("{hosts} ports"), found, wanted, 0.02);
    }
}

#[test]
fn fifo_with_oneself_included() {
    for (hosts, wanted, packets) in [(3, 0.683, 4000), (4, 0.655, 3000), (8, 0.618, 1500)] {
        let found = delivered(&star(2 * hosts), Crossbar::FIFO, Pattern::Halves, packets, seed());
        close(&format!("{hosts} inputs"), found, wanted, 0.02);
    }
}

/// M/D/1 queues with one head waiting in each on average; √3 − 1 with many ports.
#[test]
fn unlimited_speed_up_leaves_the_heads() {
    for (hosts, wanted, packets) in [(3, 0.895, 4000), (4, 0.838, 3000), (8, 0.767, 1500), (16, 0.746, 800)] {
        let found = delivered(&star(hosts), Crossbar::UNLIMITED, Pattern::Others, packets, seed());
        close(&format!("{hosts} ports"), found, wanted, 0.02);
    }
}

/// The flit model with its own settings, hosts limited by their bus and not.
#[test]
fn is4_is_the_flit_model() {
    let lifted = Crossbar { host_bus_percent: 0, ..Crossbar::IS4 };
    for (hosts, limited, free, packets) in [(8, 0.800, 0.913, 1500), (36, 0.800, 0.908, 300)] {
        let found = delivered(&star(hosts), Crossbar::IS4, Pattern::Others, packets, seed());
        close(&format!("{hosts} ports, hosts limited"), found, limited, 0.03);
        let found = delivered(&star(hosts), lifted, Pattern::Others, packets, seed());
        close(&format!("{hosts} ports, limit lifted"), found, free, 0.03);
    }
}

/// At saturation a packet waits longer than it takes to come in, so it does not matter when it may first leave: the same judges
/// hold for switches that cut through.
#[test]
fn cutting_through_saturates_where_storing_does() {
    let lifted = Crossbar { host_bus_percent: 0, ..Crossbar::IS4 };
    let judges = [
        (Crossbar::FIFO, 4, 0.692, 0.02, 3000),
        (Crossbar::FIFO, 8, 0.626, 0.02, 1500),
        (Crossbar::UNLIMITED, 4, 0.838, 0.02, 3000),
        (Crossbar::UNLIMITED, 8, 0.767, 0.02, 1500),
        (lifted, 8, 0.913, 0.03, 1500),
    ];
    for (crossbar, hosts, wanted, within, packets) in judges {
        let switches = Switches { crossbar, cut_through: true };
        let found = delivered(&star(hosts), switches, Pattern::Others, packets, seed());
        close(&format!("{crossbar}, {hosts} ports"), found, wanted, within);
    }
}
