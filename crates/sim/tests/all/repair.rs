//! Cost of a cut cable: the switches at its ends are asked, and the tables that used it are written.

use rest::{last, quiet};
use weft_machine::Time;
use weft_sim::{Fault, Process, SimOptions, Simulation};
use weft_sm::{GuidToLid, Summary};
use weft_topology::generate::{GenerateOptions, xgft};
use weft_topology::{Cable, Fabric};

use crate::support::rest;

/// A leaf of `simulation`'s tree has hosts and cables up.
fn leaf_cables(fabric: &Fabric) -> Vec<Cable> {
    let is_switch = |cable: &Cable| [cable.a, cable.b].iter().all(|end| fabric.node(end.node).is_switch());
    fabric.cables().filter(is_switch).collect()
}

/// Whether a sweep has asked no node who it is.
fn is_repair(summary: &Summary) -> bool {
    summary.smps.get_node_description == 0
}

#[test]
fn a_cut_asks_two_switches_and_writes_what_used_the_cable() {
    for engine in ["ftree", "minhop", "updn", "dfsssp"] {
        let fabric = xgft(&[4, 4, 4], &[1, 4, 4], &GenerateOptions::default()).expect("a tree");
        let mut options = SimOptions::default();
        options.sm.routing.chain = engine.parse().expect("an engine");
        let mut simulation = Simulation::new(&fabric, options, 1);
        quiet(&mut simulation);
        let (first, sweeps) = (simulation.snapshot(), simulation.summaries().len());
        let cable = leaf_cables(&fabric)[5];
        let writes = simulation.lft_writes();
        simulation.apply(Fault::LinkDown(cable.a));
        quiet(&mut simulation);
        assert_eq!(simulation.summaries().len(), sweeps + 1, "{engine}: one cable, one sweep");
        let cut = last(&simulation);
        assert!(is_repair(&cut) && cut.complete, "{engine}: {cut:?}");
        // SwitchInfo of the two ends, which is cleared, and PortInfo of their ports.
        let ports: u64 = [cable.a, cable.b].iter().map(|end| fabric.node(end.node).ports.len() as u64).sum();
        assert!(cut.smps.get_switch_info <= 2 && cut.smps.get_port_info <= ports, "{engine}: {cut:?}");
        assert_eq!(cut.smps.set_lft, simulation.lft_writes() - writes, "{engine}");
        let blocks = 144 / 64 * fabric.switches().count() as u64;
        assert!((1..=blocks).contains(&cut.smps.set_lft), "{engine}: {cut:?}");

        simulation.apply(Fault::LinkUp(cable.a));
        quiet(&mut simulation);
        let back = last(&simulation);
        assert!(is_repair(&back) && back.complete, "{engine}: {back:?}");
        assert!(back.smps.get_node_info <= 2, "{engine}: {back:?}");
        assert_eq!(simulation.snapshot(), first, "{engine}: all is as before");
    }
}

/// A manager that is started after a repair leaves the tables alone, and can repair them again.
#[test]
fn a_new_manager_keeps_repaired_tables() {
    let fabric = xgft(&[4, 6], &[1, 4], &GenerateOptions::default()).expect("a tree");
    let mut simulation = Simulation::new(&fabric, SimOptions::default(), 2);
    quiet(&mut simulation);
    let cables = leaf_cables(&fabric);
    simulation.apply(Fault::LinkDown(cables[3].a));
    quiet(&mut simulation);
    let before = (simulation.lft_writes(), simulation.snapshot());
    simulation.apply(Fault::Kill(Process::Sm));
    simulation.run_until(simulation.now() + Time::from_secs(1));
    simulation.set_guid2lid(GuidToLid::default());
    simulation.apply(Fault::Restart(Process::Sm));
    quiet(&mut simulation);
    assert_eq!((simulation.lft_writes(), simulation.snapshot()), before);
    simulation.apply(Fault::LinkDown(cables[9].a));
    quiet(&mut simulation);
    assert!(is_repair(&last(&simulation)), "{:?}", last(&simulation));
}

/// What is no cable between switches is swept as ever: a host that goes, a switch that dies.
#[test]
fn the_rest_is_a_full_sweep() {
    let fabric = xgft(&[4, 6], &[1, 4], &GenerateOptions::default()).expect("a tree");
    let mut simulation = Simulation::new(&fabric, SimOptions::default(), 3);
    quiet(&mut simulation);
    let sm = simulation.sm_port().node;
    let host = fabric.cables().find(|cable| {
        let ends = [cable.a.node, cable.b.node];
        ends.iter().any(|node| !fabric.node(*node).is_switch()) && !ends.contains(&sm)
    });
    simulation.apply(Fault::LinkDown(host.expect("a tree has hosts").a));
    quiet(&mut simulation);
    assert!(!is_repair(&last(&simulation)), "{:?}", last(&simulation));
    let spine = fabric.switches().last().expect("a tree has switches").0;
    simulation.apply(Fault::Kill(Process::Agent(spine)));
    quiet(&mut simulation);
    assert!(last(&simulation).complete);
}
