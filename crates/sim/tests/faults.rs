//! The simulator carries out the whole vocabulary of faults.

use weft_fault::Word;
use weft_machine::Time;
use weft_sim::{Fault, Process, SimOptions, Simulation, StandbyOptions};
use weft_topology::generate::{GenerateOptions, xgft};
use weft_topology::{Fabric, NodeIndex, PortRef};

fn tree() -> Fabric {
    xgft(&[2, 2], &[1, 2], &GenerateOptions::default()).expect("a tree")
}

fn laboratory(fabric: &Fabric) -> Simulation {
    let hosts: Vec<PortRef> =
        fabric.hosts().filter_map(|(index, host)| Some(PortRef::new(index, host.attach_port()?))).collect();
    let standby = StandbyOptions { port: hosts[1], priority: 0, sm_key: None };
    let options = SimOptions { with_pm: true, standbys: vec![standby], ..SimOptions::default() };
    let mut simulation = Simulation::new(fabric, options, 7);
    let limit = simulation.now() + Time::from_secs(300);
    simulation.run_until_quiet(limit).unwrap_or_else(|error| panic!("{error}"));
    simulation
}

/// Which parts are alive: the node, the cable, both subnet managers and the performance manager.
fn alive(simulation: &Simulation, node: NodeIndex, port: PortRef) -> [bool; 5] {
    let managers: Vec<PortRef> = simulation.managers().map(|(at, _)| at).collect();
    let standby = simulation.options().standbys[0].port;
    [
        simulation.device(node).is_some(),
        simulation.is_link_up(port),
        managers.iter().any(|at| *at != standby),
        managers.contains(&standby),
        simulation.pm().is_some(),
    ]
}

#[test]
fn every_fault_breaks_its_part_and_is_put_right() {
    let fabric = tree();
    let switch = fabric.switches().last().expect("a switch").0;
    let host = fabric.hosts().last().expect("a host");
    let port = PortRef::new(host.0, host.1.attach_port().expect("a cable"));
    let mut words = Vec::new();
    for (wrong, right, broken) in [
        (Fault::Kill(Process::Agent(switch)), Fault::Restart(Process::Agent(switch)), Some(0)),
        (Fault::LinkDown(port), Fault::LinkUp(port), Some(1)),
        (Fault::Kill(Process::Sm), Fault::Restart(Process::Sm), Some(2)),
        (Fault::Kill(Process::Standby(0)), Fault::Restart(Process::Standby(0)), Some(3)),
        (Fault::Kill(Process::Pm), Fault::Restart(Process::Pm), Some(4)),
        // The fabric has no such processes, and runs on.
        (Fault::Kill(Process::Standby(1)), Fault::Restart(Process::Standby(1)), None),
        (Fault::Kill(Process::Hub), Fault::Restart(Process::Hub), None),
        (Fault::Kill(Process::Ibsim), Fault::Restart(Process::Ibsim), None),
    ] {
        let mut simulation = laboratory(&fabric);
        assert_eq!(alive(&simulation, switch, port), [true; 5]);
        simulation.apply(wrong);
        let part = |number| broken != Some(number);
        assert_eq!(alive(&simulation, switch, port), std::array::from_fn(part), "{wrong:?}");
        simulation.apply(right);
        simulation.run_until(simulation.now() + Time::from_secs(5));
        assert_eq!(alive(&simulation, switch, port), [true; 5], "{right:?}");
        words.extend([wrong.word(), right.word()]);
    }
    assert!(Word::OF_FAULTS.iter().all(|word| words.contains(word)), "{words:?}");
}
