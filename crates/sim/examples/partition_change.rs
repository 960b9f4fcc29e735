//! Time of a change of partitions in a large fabric: 100 hosts join one, with tables of P_Keys alone, and with pFTree's routing and its proof.
//!
//! ```text
//! cargo run --profile dist -p weft-sim --example partition_change -- [HOSTS [SEED]]
//! ```
//!
//! The fabric is the tree of 11 664 hosts and 1620 switches with 36 ports, 13 284 devices in one process. The time is that of everything
//! together: the manager, all agents that take the SMPs, and the cables between them.

#![allow(
    clippy::disallowed_types,
    clippy::disallowed_macros,
    reason = "an example measures time and prints what it finds"
)]

use std::time::Instant;

use weft_machine::Time;
use weft_routing::{
    CalculatedPaths, Chain, Engine, EngineOptions, Input, Isolation, Lids, Member, Partition, Partitions,
};
use weft_sim::{SimOptions, Simulation, TraceMode};
use weft_topology::Fabric;
use weft_topology::generate::{GenerateOptions, xgft};

/// Partitions that hosts are dealt to, on every leaf.
const PARTITIONS: u16 = 6;
/// The partition that hosts join.
const JOINED: u16 = 0x0101;

fn main() {
    let mut arguments = std::env::args().skip(1).map(|text| text.parse::<u64>().expect("a number"));
    let (joining, seed) = (arguments.next().unwrap_or(100) as usize, arguments.next().unwrap_or(1));
    let generated = xgft(&[18, 18, 36], &[1, 18, 18], &GenerateOptions::default());
    let fabric = generated.expect("the parameters are sound");
    let before = partitions(&fabric, 0);
    let after = partitions(&fabric, joining);
    tables(&fabric, &before, &after, seed);
    routes(&fabric, &before, &after);
}

/// Hosts in [`PARTITIONS`] partitions, and `joined` of them, spread over the leaves, in one more.
fn partitions(fabric: &Fabric, joined: usize) -> Partitions {
    let partition = |pkey| {
        let (name, members, isolation) = (String::new(), Vec::new(), Isolation::Def);
        Partition { name, pkey, members, isolation }
    };
    let mut list: Vec<Partition> = (1..=PARTITIONS).map(partition).chain([partition(JOINED)]).collect();
    let hosts: Vec<_> = fabric.hosts().map(|(_, node)| node.ports[1].guid).collect();
    for (place, guid) in hosts.iter().enumerate() {
        list[(place + place / 18) % usize::from(PARTITIONS)].members.push(Member { guid: *guid, full: true });
    }
    let step = hosts.len() / joined.max(1);
    let joins = hosts.iter().step_by(step.max(1)).take(joined);
    list[usize::from(PARTITIONS)].members.extend(joins.map(|guid| Member { guid: *guid, full: true }));
    Partitions { list, ..Partitions::default() }
}

/// The tables of P_Keys: a routing engine that does not read partitions.
fn tables(fabric: &Fabric, before: &Partitions, after: &Partitions, seed: u64) {
    let mut options = SimOptions { trace: TraceMode::Off, ..SimOptions::default() };
    options.sm.routing.chain = "ftree".parse().expect("an engine");
    options.sm.routing.engine.partitions = Some(before.clone());
    // One light sweep reads everything back, so that the fabric comes to rest.
    options.sm.sweeps.audit_smps = 0;
    let mut simulation = Simulation::new(fabric, options, seed);
    let begun = Instant::now();
    simulation.run_until_quiet(Time::from_secs(600)).expect("it comes up");
    println!("up: {:.1?}", begun.elapsed());
    let written = |simulation: &Simulation| -> u64 {
        let devices = fabric.iter().filter_map(|(node, _)| simulation.device(node));
        devices.map(|device| device.statistics().p_key_writes).sum()
    };
    let changes = [("join", after), ("leave", before), ("join again", after)];
    for (what, partitions) in changes {
        let (count, blocks, at) = (simulation.summaries().len(), written(&simulation), simulation.now());
        let begun = Instant::now();
        simulation.set_partitions(partitions);
        while simulation.summaries().len() == count {
            simulation.run_until(simulation.now() + Time::from_micros(100));
        }
        let took = begun.elapsed();
        let span = simulation.now().saturating_sub(at);
        println!(
            "{what}: tables in {took:.1?}, {span} of virtual time, {} blocks",
            written(&simulation) - blocks
        );
    }
}

/// pFTree's routing for the new partitions, with the proof that it is free of deadlock and reaches everyone.
fn routes(fabric: &Fabric, before: &Partitions, after: &Partitions) {
    let lids = Lids::in_guid_order(fabric, 0).expect("enough LIDs");
    let engine = Engine::by_name("pftree").expect("it is there");
    let chain: Chain = "pftree,no_fallback".parse().expect("an engine");
    let mut calculated = None;
    for (what, partitions) in [("first", before), ("join", after), ("leave", before)] {
        let options = EngineOptions { partitions: Some(partitions.clone()), ..EngineOptions::default() };
        let input = Input { fabric, lids: &lids, options: &options };
        let (calculation, paths) =
            timed(|| calculated.get_or_insert_with(|| CalculatedPaths::new(&input).expect("a tree")));
        let (assignment, assigned) = timed(|| paths.assign_unproven(engine, &input).expect("it is served"));
        let (proven, _) = timed(|| paths.assign(engine, &input).expect("it is sound"));
        let (alone, _) = timed(|| engine.route(&input).expect("it is served"));
        let (full, routing) = timed(|| chain.route(fabric, &lids, &options).expect("it is sound"));
        println!(
            "{what}: paths calculated in {calculation:.0} ms; assigned in {assignment:.0} ms, with the proof {proven:.0} ms; \
             a full run {alone:.0} ms, with the proof {full:.0} ms; {} ways kept; the same tables: {}",
            paths.ways(),
            routing.routes == assigned.routes,
        );
    }
}

/// Milliseconds that something takes, and what it gives.
fn timed<T>(work: impl FnOnce() -> T) -> (f64, T) {
    let begun = Instant::now();
    let done = work();
    (begun.elapsed().as_secs_f64() * 1e3, done)
}
