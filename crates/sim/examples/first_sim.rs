//! A test of somebody's own in virtual time: a ring comes up, a cable is cut, and the subnet manager routes around it.
//!
//! ```text
//! cargo run -p weft-sim --example first_sim
//! ```

use weft_machine::Time;
use weft_sim::{Fault, SimOptions, Simulation};
use weft_topology::generate::{GenerateOptions, ring};

fn main() {
    // Five switches in a ring, with two hosts each. Every delay follows from the seed.
    let fabric = ring(5, 2, &GenerateOptions::default()).expect("a ring has three switches or more");
    let mut simulation = Simulation::new(&fabric, SimOptions::default(), 4711);
    simulation.run_until_quiet(Time::from_secs(60)).expect("the subnet manager brings the ring up");
    let before = simulation.check().expect("every LID is reached through the switches' tables");
    assert_eq!((before.nodes, before.lids), (15, 15));

    let is_switch = |port: weft_topology::PortRef| fabric.node(port.node).is_switch();
    let cable = fabric.cables().find(|cable| is_switch(cable.a) && is_switch(cable.b));
    simulation.apply(Fault::LinkDown(cable.expect("a ring has cables between switches").a));
    let (cut_at, limit) = (simulation.now(), simulation.now() + Time::from_secs(60));
    let (rerouted_at, sweep) = simulation.run_until_rerouted(limit).expect("traps start a sweep");
    assert!(rerouted_at > cut_at && sweep.smps.set_lft > 0, "{sweep:?}");

    // The tables are checked, and packets are exchanged between all pairs of nodes.
    simulation.run_until_quiet(limit).expect("the fabric comes to rest");
    assert_eq!(simulation.check().expect("every LID is reached another way").lids, 15);
    assert_eq!(simulation.probe().expect("every node answers every other"), 15 * 15);
}

#[test]
fn a_ring_reroutes_around_a_cut_cable() {
    main();
}
