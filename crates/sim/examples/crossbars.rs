//! Crossbars beside queueing theory and the InfiniBand flit model: the whole tables, with more packets than tests have time
//! for.
//!
//! ```text
//! cargo run --release -p weft-sim --example crossbars [PACKETS PER HOST] [SEEDS]
//! ```

use std::io::Write;

#[path = "../tests/all/support/mod.rs"]
mod support;

use support::crossbars::{Pattern, delivered, star, tree};
use weft_device::Crossbar;
use weft_topology::Fabric;

/// Mean and standard deviation over seeds beside what is wanted.
fn judge(
    name: &str,
    (packets, seeds): (u64, u64),
    wanted: Option<f64>,
    fabric: &Fabric,
    crossbar: Crossbar,
    pattern: Pattern,
) {
    let found: Vec<f64> =
        (1..=seeds).map(|seed| delivered(fabric, crossbar, pattern, packets, seed)).collect();
    let mean = found.iter().sum::<f64>() / seeds as f64;
    let squares = found.iter().map(|one| (one - mean).powi(2)).sum::<f64>();
    let deviation = (squares / seeds.saturating_sub(1).max(1) as f64).sqrt();
    let beside = wanted.map_or("         -        -".to_owned(), |wanted| {
        format!("{wanted:10.3} {:+7.2} %", (mean / wanted - 1.0) * 100.0)
    });
    let line = format!("{name:<42} {mean:8.4} ±{deviation:.4} {beside}\n");
    std::io::stdout().write_all(line.as_bytes()).expect("what was measured can be said");
}

fn main() {
    let argument =
        |at, otherwise| std::env::args().nth(at).map_or(otherwise, |text| text.parse().expect("a number"));
    let (packets, seeds) = (argument(1, 2000), argument(2, 4));
    for (hosts, fifo, itself, unlimited) in [
        (3, 0.750, Some(0.683), 0.895),
        (4, 0.692, Some(0.655), 0.838),
        (8, 0.626, Some(0.618), 0.767),
        (16, 0.603, None, 0.746),
        (36, 0.594, None, 0.736),
    ] {
        let much = (packets * 36 / u64::from(hosts), seeds);
        judge(
            &format!("fifo, {hosts} ports"),
            much,
            Some(fifo),
            &star(hosts),
            Crossbar::FIFO,
            Pattern::Others,
        );
        if itself.is_some() {
            let name = format!("fifo, {hosts} ports, oneself included");
            judge(&name, much, itself, &star(2 * hosts), Crossbar::FIFO, Pattern::Halves);
        }
        let name = format!("unlimited, {hosts} ports");
        judge(&name, much, Some(unlimited), &star(hosts), Crossbar::UNLIMITED, Pattern::Others);
    }
    let lifted = Crossbar { host_bus_percent: 0, ..Crossbar::IS4 };
    let single = Crossbar { input_packets: 1, bus_percent: 100, ..lifted };
    let fabrics = [
        ("8 ports", star(8), packets * 4, [Some(0.800), Some(0.913), Some(0.625)]),
        ("36 ports", star(36), packets, [Some(0.800), Some(0.908), Some(0.546)]),
        ("648 hosts", tree(), packets / 10, [Some(0.799), Some(0.910), None]),
    ];
    for (name, fabric, packets, wanted) in &fabrics {
        let judged = |what: &str, at: usize, crossbar| {
            let name = format!("is4, {name}, {what}");
            judge(&name, (*packets, seeds), wanted[at], fabric, crossbar, Pattern::Others);
        };
        judged("as shipped", 0, Crossbar::IS4);
        judged("host limit lifted", 1, lifted);
        judged("lifted, bus x 1, one packet at once", 2, single);
    }
}
