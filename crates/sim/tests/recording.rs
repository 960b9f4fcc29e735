//! What the simulator fed a node replays, in the format of an agent's recording.

#![allow(clippy::unwrap_used, reason = "in a test a panic is the report")]

use weft_machine::Time;
use weft_node::recording::{Recording, replay};
use weft_sim::{Fault, Process, SimOptions, Simulation};
use weft_topology::{Fabric, NodeIndex};

fn x5() -> Fabric {
    let text = include_str!("../../../topologies/psmn-x5.topo");
    weft_topology::parse("psmn-x5.topo", text).unwrap()
}

/// A switch and a host of X5 through bring-up, probes over the data lanes, a kill and a restart.
#[test]
fn nodes_of_x5_replay() {
    let fabric = x5();
    let is_switch = |index: &NodeIndex| fabric.node(*index).is_switch();
    let all: Vec<NodeIndex> = fabric.iter().map(|(index, _)| index).collect();
    let switch = *all.iter().find(|index| is_switch(index)).unwrap();
    let host = *all.iter().rev().find(|index| !is_switch(index)).unwrap();
    for node in [switch, host] {
        let options = SimOptions { record: Some(node), hosts: true, ..SimOptions::default() };
        let mut simulation = Simulation::new(&fabric, options, 7);
        simulation.run_until_quiet(Time::from_secs(60)).unwrap();
        simulation.probe().unwrap();
        simulation.apply(Fault::Restart(Process::Agent(node)));
        let limit = simulation.now() + Time::from_secs(60);
        simulation.run_until_quiet(limit).unwrap();
        let recordings = simulation.into_recordings();
        assert_eq!(recordings.len(), 2, "one for each time that it was switched on");
        for bytes in &recordings {
            let replayed = replay(&mut Recording::open(bytes).unwrap()).unwrap();
            assert_eq!(replayed.difference, None);
            // A sweep asks each node for more than ten attributes.
            assert!(replayed.has_end && replayed.inputs > 10 && replayed.outputs > 10, "{replayed:?}");
        }
    }
}
