//! Cost of a cut cable for the subnet manager of a large fabric: SMPs, blocks, virtual time, and the time that the whole
//! simulation of it took.
//!
//! ```text
//! cargo run --release -p weft-sim --example repair_cost -- [CUTS [SEED]]
//! ```
//!
//! The fabric is the tree of 11 664 hosts and 1620 switches with 36 ports, routed by ftree; the cables are between leaves and
//! the switches above them.

#![allow(
    clippy::disallowed_types,
    clippy::disallowed_macros,
    reason = "an example measures time and prints what it finds"
)]

use std::time::Instant;

use weft_machine::Time;
use weft_sim::{Fault, SimOptions, Simulation, TraceMode};
use weft_topology::generate::{GenerateOptions, xgft};
use weft_topology::{Cable, Fabric};

fn main() {
    let mut arguments = std::env::args().skip(1).map(|text| text.parse::<u64>().expect("a number"));
    let (cuts, seed) = (arguments.next().unwrap_or(3), arguments.next().unwrap_or(1));
    let generated = xgft(&[18, 18, 36], &[1, 18, 18], &GenerateOptions::default());
    let fabric = generated.expect("the parameters are sound");
    let mut options = SimOptions { trace: TraceMode::Off, ..SimOptions::default() };
    options.sm.routing.chain = "ftree".parse().expect("an engine");
    // One light sweep reads everything back, so that the fabric comes to rest.
    options.sm.sweeps.audit_smps = 0;
    let mut simulation = Simulation::new(&fabric, options, seed);
    sweep(&mut simulation, "up");
    let cables: Vec<Cable> = fabric.cables().filter(|cable| is_leaf_cable(&fabric, cable)).collect();
    for cut in 0..cuts {
        let cable = cables[((cut * 7919 + seed * 104_729) % cables.len() as u64) as usize];
        simulation.apply(Fault::LinkDown(cable.a));
        sweep(&mut simulation, "cut");
    }
}

/// Lets the next sweep end, and prints what it cost.
fn sweep(simulation: &mut Simulation, what: &str) {
    let (begun, at, count) = (Instant::now(), simulation.now(), simulation.summaries().len());
    while simulation.summaries().len() == count {
        simulation.run_until(simulation.now() + Time::from_millis(1));
    }
    let took = begun.elapsed();
    let (ended, summary) = simulation.summaries().last().expect("a sweep has ended").clone();
    println!(
        "{what}: {took:.1?}; after {} of virtual time; {} SMPs, {} blocks; {:?}",
        ended.saturating_sub(at),
        summary.smps.total,
        summary.smps.set_lft,
        summary.smps,
    );
    // The proof that comes after it.
    let begun = Instant::now();
    simulation.run_until(simulation.now() + Time::from_millis(50));
    println!("    the rest, with the proof of all: {:.1?}", begun.elapsed());
}

fn is_leaf_cable(fabric: &Fabric, cable: &Cable) -> bool {
    let [a, b] = [cable.a, cable.b].map(|end| fabric.node(end.node));
    let has_hosts =
        |node: &weft_topology::Node| node.cabled_ports().any(|(_, peer)| !fabric.node(peer.node).is_switch());
    a.is_switch() && b.is_switch() && (has_hosts(a) || has_hosts(b))
}
