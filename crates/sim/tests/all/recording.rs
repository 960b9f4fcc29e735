//! Replay of what the simulator fed a node, in the format of an agent's recording.

use weft_machine::{Machine, Time, Timer};
use weft_node::recording::{Entry, Recorder, Recording, replay};
use weft_node::{Node, NodeTimer};
use weft_sim::{Fault, Process, SimOptions, Simulation};
use weft_topology::{Fabric, NodeIndex};

fn x5() -> Fabric {
    let text = include_str!("../../../../topologies/psmn-x5.topo");
    weft_topology::parse("psmn-x5.topo", text).unwrap()
}

/// The same recording without the first output of a wake-up, and what the node was woken for then.
fn without_one_output(bytes: &[u8]) -> (Vec<u8>, Timer<NodeTimer>) {
    let mut recording = Recording::open(bytes).unwrap();
    let options = recording.heading.options;
    let (mut node, mut recorder) = (Node::new(options), Recorder::new("another", options));
    let mut lost = None;
    while let Some(Entry::Fed { now, input, .. }) = recording.next_entry().unwrap() {
        let timer = node.next_timer().filter(|_| input.is_none() && lost.is_none());
        if let Some(input) = input {
            recorder.fed(now, &input);
            node.handle_input(now, input);
        } else {
            recorder.woken(now);
            node.handle_timeout(now);
        }
        while let Some(output) = node.poll_output() {
            if timer.is_some() && lost.is_none() {
                lost = timer;
                continue;
            }
            recorder.said(&output);
        }
    }
    recorder.end();
    (recorder.take(), lost.unwrap())
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
        if node == host {
            let (altered, timer) = without_one_output(&recordings[0]);
            let difference = replay(&mut Recording::open(&altered).unwrap()).unwrap().difference.unwrap();
            assert_eq!((difference.input, difference.timer), (None, Some(timer)));
            assert_eq!(difference.now, timer.at, "it was woken when it wanted to be");
            assert!(timer.to_string().starts_with("host of port 1 of device 0: "), "{timer}");
        }
    }
}
