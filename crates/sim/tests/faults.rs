//! The simulator carries out the whole vocabulary of faults.

use weft_fault::{Impaired, Impairment, Way, Word};
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

/// Every impairment does its work on the management packets of a manager that sweeps, survives the process of the device that it
/// is at, and ends.
#[test]
fn every_impairment_lasts_over_restarts_until_it_is_cleared() {
    let fabric = tree();
    let switch = fabric.switches().last().expect("a switch").0;
    let port = fabric.node(switch).cabled_ports().next().expect("a cable").0;
    let at = PortRef::new(switch, port);
    for (word, amounts) in
        Word::OF_IMPAIRMENTS.into_iter().zip(["50%", "1ms", "1ms", "50% 1ms", "50%", "1e-4"])
    {
        let how = Impairment::of(word, amounts).expect("amounts");
        let impaired = Impaired { at, way: Way::Both, how, seed: 3 };
        let mut simulation = laboratory(&fabric);
        simulation.apply(Fault::Impair(impaired));
        simulation.apply(Fault::Restart(Process::Agent(switch)));
        // The manager brings the switch up again, over this cable or asked by it.
        simulation.run_until(simulation.now() + Time::from_secs(60));
        let counts = simulation.impairment_counts();
        let count = match how {
            Impairment::Loss(_) => counts.lost,
            Impairment::Delay(_) | Impairment::Jitter(_) => counts.late,
            Impairment::Reorder { .. } => counts.reordered,
            Impairment::Duplicate(_) => counts.duplicated,
            Impairment::BitErrors(_) => counts.damaged,
        };
        assert!(count > 0, "{how}: {counts:?}");
        simulation.apply(Fault::Clear(impaired));
        let limit = simulation.now() + Time::from_secs(300);
        simulation.run_until_quiet(limit).unwrap_or_else(|error| panic!("{how}: {error}"));
        let before = simulation.impairment_counts();
        simulation.apply(Fault::Restart(Process::Sm));
        simulation.run_until_quiet(simulation.now() + Time::from_secs(300)).expect("quiet");
        assert_eq!(simulation.impairment_counts(), before, "{how} has ended");
    }
}
