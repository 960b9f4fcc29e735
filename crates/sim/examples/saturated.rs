//! A fat tree of 648 hosts, each of which sends to all others as fast as its adapter takes it: how fast that is
//! simulated, on one core, and in how much memory.
//!
//! Hosts move 12.9 Gb/s each way over links of 32, or whatever LIMIT says; with `line` they send as fast as their links.
//!
//! ```text
//! cargo run --release -p weft-sim --example saturated [DILATED SECONDS] [LANES] [LEAVES] [CROSSBAR] [LIMIT IN Mb/s | line]
//! ```

use std::io::Write;

#[path = "../tests/all/support/mod.rs"]
mod support;

use weft_device::Crossbar;
use weft_machine::Time;
use weft_mgmt::Window;
use weft_sim::{SimOptions, Simulation};
use weft_topology::generate::{GenerateOptions, xgft};
use weft_wire::{Mtu, VlCap};

fn argument(at: usize, otherwise: u64) -> u64 {
    std::env::args().nth(at).map_or(otherwise, |text| text.parse().expect("a number"))
}

/// The most memory that the process has had, in mebibytes.
fn peak_memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok()).unwrap_or(0) / 1024
}

/// Nanoseconds that a processor has worked for this thread: others may have it in between.
fn worked() -> u64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    text.split_whitespace().next().and_then(|nanos| nanos.parse().ok()).unwrap_or(0)
}

fn main() {
    let seconds = argument(1, 10);
    let fabric = xgft(&[18, argument(3, 36) as u32], &[1, 18], &GenerateOptions::default())
        .expect("a tree that fits its radix");
    let mut options = SimOptions::default();
    options.device.data.shaped = true;
    options.device.data.dilation = 1000;
    let crossbar =
        std::env::args().nth(4).map_or_else(Crossbar::default, |name| name.parse().expect("a crossbar"));
    options.device.data.crossbar = crossbar;
    match std::env::args().nth(5).as_deref() {
        Some("line") => options.device.data.crossbar.host_bus_percent = 0,
        limit => {
            options.device.data.host_limit_mbps = limit.map_or(12_900, |limit| limit.parse().expect("Mb/s"));
        }
    }
    options.device.vl_cap = if argument(2, 1) > 1 { VlCap::Vl0To7 } else { VlCap::Vl0 };
    options.sm.lanes.mtu_max = Mtu::Bytes2048;
    options.sm.smps.max_wire_smps = Window::Fixed(64);
    let begun = worked();
    let mut simulation = Simulation::new(&fabric, options, 1);
    simulation.run_until_quiet(Time::from_secs(600)).expect("it comes up");
    let up = (worked() - begun) as f64 / 1e9;
    let load = support::Saturate::uncounted(support::uniform(&simulation), 1);
    load.start(&mut simulation);
    let (before, from) = (simulation.statistics(), simulation.now());
    let begun = worked();
    simulation.run_until(from + Time::from_secs(seconds));
    let took = (worked() - begun) as f64 / 1e9;
    let after = simulation.statistics();
    let hops = after.data_packets - before.data_packets;
    let events = after.events - before.events;
    let credits = after.credits - before.credits;
    let report = simulation.check_traffic().expect("every packet is accounted for");
    let text = format!(
        "bring-up {up:.3} s\n{seconds} dilated seconds in {took:.3} s of processor time\n{hops} packet-hops, {:.0} per second, {:.0} ns each\n\
         {events} events, {credits} flow control packets\n{} delivered, {} under way, {} gone\n{} MiB\n",
        hops as f64 / took,
        took * 1e9 / hops as f64,
        report.total.delivered,
        report.total.under_way(),
        report.total.gone(),
        peak_memory(),
    );
    std::io::stdout().write_all(text.as_bytes()).expect("what was measured can be said");
}
