//! Whole fabrics from switching on to SUBNET UP.

use weft_machine::Time;
use weft_sim::{Fault, RandomLoss, SimOptions, Simulation, TraceMode, bring_up};
use weft_topology::Fabric;
use weft_topology::generate::{GenerateOptions, xgft};

fn tree() -> Fabric {
    xgft(&[4, 4], &[1, 2], &GenerateOptions::default()).unwrap()
}

#[test]
fn a_tree_comes_up() {
    let up =
        bring_up(&tree(), SimOptions::default(), 1, Time::from_secs(60)).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(up.summary.switches, 6);
    assert_eq!(up.summary.hosts, 16);
    assert_eq!(up.checked.lids, 22);
    assert!(up.summary.complete);
}

#[test]
fn every_pair_exchanges_packets() {
    let mut simulation = Simulation::new(&tree(), SimOptions::default(), 2);
    simulation.run_until_quiet(Time::from_secs(120)).unwrap();
    simulation.check().unwrap();
    assert_eq!(simulation.probe().unwrap(), 22 * 22);
}
