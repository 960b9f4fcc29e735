//! Fabrics of virtualised adapters: the manager routes vSwitches as part of their hosts.

use rest::{last, quiet};
use weft_machine::Time;
use weft_sim::{Fault, Process, SimOptions, Simulation};
use weft_sm::GuidToLid;
use weft_topology::generate::{GenerateOptions, xgft};
use weft_topology::{Cable, Fabric, PortRef, UPLINK, Virtualised};

use crate::support::rest;

/// 6 switches, 16 hosts, 16 vSwitches and 32 virtual functions.
fn virtualised() -> Virtualised {
    xgft(&[4, 4], &[1, 2], &GenerateOptions::default()).unwrap().virtualised(2).unwrap()
}

fn by_engine(fabric: &Fabric, engine: &str) -> Simulation {
    let mut options = SimOptions::default();
    options.sm.routing.chain = format!("{engine},no_fallback").parse().unwrap();
    let mut simulation = Simulation::new(fabric, options, 1);
    quiet(&mut simulation);
    simulation
}

#[test]
fn every_engine_of_trees_brings_it_up() {
    let Virtualised { fabric, adapters } = virtualised();
    for engine in ["minhop", "updn", "ftree", "vswitch-ftree", "dfsssp", "lash"] {
        let simulation = by_engine(&fabric, engine);
        let up = last(&simulation);
        assert!(up.complete, "{engine}: {up:?}");
        assert_eq!((up.switches, up.hosts, up.lids), (6 + 16, 16 + 32, 70), "{engine}");
        // 70 LIDs are two blocks in each of 22 tables.
        assert_eq!((up.smps.set_lft, simulation.lft_writes()), (44, 44), "{engine}");
        let tables = simulation.live_routes().tables;
        for adapter in &adapters {
            let table = &tables[adapter.vswitch.index()];
            let up = table.routes().filter(|(_, port)| *port == UPLINK).count();
            assert_eq!(up, 70 - 4, "{engine}: all but its own four LIDs go up");
        }
    }
}

#[test]
fn a_new_manager_writes_nothing() {
    let fabric = virtualised().fabric;
    for engine in ["ftree", "updn"] {
        for with_guid2lid in [true, false] {
            let mut simulation = by_engine(&fabric, engine);
            let before = (simulation.lft_writes(), simulation.lid_changes(), simulation.snapshot());
            simulation.apply(Fault::Kill(Process::Sm));
            simulation.run_until(simulation.now() + Time::from_secs(1));
            if !with_guid2lid {
                simulation.set_guid2lid(GuidToLid::default());
            }
            simulation.apply(Fault::Restart(Process::Sm));
            quiet(&mut simulation);
            let after = (simulation.lft_writes(), simulation.lid_changes(), simulation.snapshot());
            assert_eq!(before, after, "{engine}, with guid2lid: {with_guid2lid}");
        }
    }
}

#[test]
fn a_cut_between_physical_switches_is_repaired() {
    let Virtualised { fabric, adapters } = virtualised();
    let is_vswitch = |port: &PortRef| adapters.iter().any(|adapter| adapter.vswitch == port.node);
    let between = |cable: &Cable| {
        [cable.a, cable.b].iter().all(|end| fabric.node(end.node).is_switch() && !is_vswitch(end))
    };
    let cable = fabric.cables().filter(between).nth(3).unwrap();
    for engine in ["ftree", "minhop", "updn"] {
        let mut simulation = by_engine(&fabric, engine);
        let (first, writes) = (simulation.snapshot(), simulation.lft_writes());
        simulation.apply(Fault::LinkDown(cable.a));
        quiet(&mut simulation);
        let cut = last(&simulation);
        assert!(
            cut.complete && cut.smps.get_node_description == 0,
            "{engine}: a repair asks nobody: {cut:?}"
        );
        // Only the six physical switches have rows that can lead another way.
        assert!((1..=12).contains(&(simulation.lft_writes() - writes)), "{engine}: {cut:?}");
        simulation.apply(Fault::LinkUp(cable.a));
        quiet(&mut simulation);
        assert_eq!(simulation.snapshot(), first, "{engine}: all is as before");
    }
}

#[test]
fn a_host_whose_uplink_is_cut_goes_and_comes_back() {
    let Virtualised { fabric, adapters } = virtualised();
    let mut simulation = by_engine(&fabric, "ftree");
    let first = simulation.snapshot();
    let uplink = PortRef::new(adapters[9].vswitch, UPLINK);
    simulation.apply(Fault::LinkDown(uplink));
    quiet(&mut simulation);
    let without = last(&simulation);
    assert_eq!((without.switches, without.hosts), (21, 45));
    simulation.apply(Fault::LinkUp(uplink));
    quiet(&mut simulation);
    assert_eq!(last(&simulation).hosts, 48);
    assert_eq!(simulation.snapshot(), first);
}

/// A function can be unplugged and plugged in again while the others go on.
#[test]
fn a_virtual_function_that_is_unplugged_leaves_the_others_alone() {
    let Virtualised { fabric, adapters } = virtualised();
    let mut simulation = by_engine(&fabric, "ftree");
    let (first, writes) = (simulation.snapshot(), simulation.lft_writes());
    let port = fabric.node(adapters[2].vfs[1]).cabled_ports().next().unwrap().1;
    simulation.apply(Fault::LinkDown(port));
    quiet(&mut simulation);
    assert_eq!(last(&simulation).hosts, 47);
    simulation.apply(Fault::LinkUp(port));
    quiet(&mut simulation);
    assert_eq!(simulation.snapshot(), first);
    assert_eq!(simulation.lft_writes(), writes, "rows of a LID that is between slots stay");
}
