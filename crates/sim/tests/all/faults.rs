//! The simulator carries out the whole vocabulary of faults.

use weft_fault::{BadIdentity, Impaired, Impairment, Nodes, Presented, Way, Word};
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
        (Fault::Freeze(Process::Agent(host.0)), Fault::Thaw(Process::Agent(host.0)), Some(1)),
        (Fault::Partition(Nodes(vec![host.0])), Fault::Heal(Nodes(vec![host.0])), Some(1)),
        (
            Fault::BadIdentity(Presented { node: host.0, identity: BadIdentity::Expired }),
            Fault::GoodIdentity(host.0),
            Some(1),
        ),
        (Fault::Kill(Process::Sm), Fault::Restart(Process::Sm), Some(2)),
        (Fault::Kill(Process::Standby(0)), Fault::Restart(Process::Standby(0)), Some(3)),
        (Fault::Kill(Process::Pm), Fault::Restart(Process::Pm), Some(4)),
        (Fault::Freeze(Process::Sm), Fault::Thaw(Process::Sm), Some(2)),
        (Fault::Freeze(Process::Standby(0)), Fault::Thaw(Process::Standby(0)), Some(3)),
        (Fault::Freeze(Process::Sm), Fault::Restart(Process::Sm), Some(2)),
        // The fabric has no such processes, and runs on.
        (Fault::Freeze(Process::Hub), Fault::Thaw(Process::Hub), None),
        (Fault::Kill(Process::Opensm), Fault::Restart(Process::Opensm), None),
        (Fault::Kill(Process::Standby(1)), Fault::Restart(Process::Standby(1)), None),
        (Fault::Kill(Process::Hub), Fault::Restart(Process::Hub), None),
        (Fault::Kill(Process::Ibsim), Fault::Restart(Process::Ibsim), None),
    ] {
        let mut simulation = laboratory(&fabric);
        assert_eq!(alive(&simulation, switch, port), [true; 5]);
        simulation.apply(wrong.clone());
        let part = |number| broken != Some(number);
        assert_eq!(alive(&simulation, switch, port), std::array::from_fn(part), "{wrong:?}");
        simulation.apply(right.clone());
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
        // Those of ports, which are the last, have tests of their own.
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
            Impairment::Flap { .. }
            | Impairment::Width(_)
            | Impairment::Speed(_)
            | Impairment::SlowDrain(_) => unreachable!("{how} is of a port"),
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

fn at_rest(simulation: &mut Simulation) {
    let limit = simulation.now() + Time::from_secs(300);
    simulation.run_until_quiet(limit).unwrap_or_else(|error| panic!("{error}"));
}

fn info(simulation: &Simulation, at: PortRef) -> (u8, u8) {
    let device = simulation.device(at.node).expect("it is on");
    let info = device.own_port_info(at.port).expect("a port");
    (info.link_width_active, info.link_speed_active)
}

fn downs(simulation: &Simulation, at: PortRef) -> u64 {
    let snapshot = simulation.device(at.node).and_then(|device| device.port_snapshot(at.port));
    snapshot.expect("a port").counters.link_downed_counter
}

/// The first port of the last switch, and the port at the other end of its cable.
fn cable(fabric: &Fabric) -> (PortRef, PortRef) {
    let (switch, node) = fabric.switches().last().expect("a switch");
    let (port, peer) = node.cabled_ports().next().expect("a cable");
    (PortRef::new(switch, port), peer)
}

fn impaired(at: PortRef, word: Word, amounts: &str) -> Impaired<PortRef> {
    let how = Impairment::of(word, amounts).unwrap_or_else(|| panic!("{amounts}"));
    Impaired { at, way: Way::Both, how, seed: 3 }
}

/// A link trains at what its worse end allows, also after a restart of that end, and at its best when the fault has ended.
#[test]
fn a_link_is_narrow_or_slow_until_that_is_cleared() {
    let fabric = tree();
    let (at, peer) = cable(&fabric);
    for (word, amounts, wanted) in [(Word::Width, "1x", (1, 4)), (Word::Speed, "sdr", (2, 1))] {
        let mut simulation = laboratory(&fabric);
        let before = info(&simulation, at);
        assert_ne!(before, wanted);
        let writes = simulation.summaries().count();
        let fault = impaired(at, word, amounts);
        simulation.apply(Fault::Impair(fault));
        at_rest(&mut simulation);
        assert_eq!([at, peer].map(|end| info(&simulation, end)), [wanted; 2], "{amounts}");
        assert!(simulation.summaries().count() > writes, "the manager has swept");
        assert_eq!(simulation.lasting_faults_differ(), None);
        for end in [at, peer] {
            simulation.apply(Fault::Restart(Process::Agent(end.node)));
            at_rest(&mut simulation);
            assert_eq!([at, peer].map(|end| info(&simulation, end)), [wanted; 2], "{amounts}");
        }
        simulation.apply(Fault::Clear(fault));
        at_rest(&mut simulation);
        assert_eq!([at, peer].map(|end| info(&simulation, end)), [before; 2], "{amounts}");
        assert!(simulation.check().is_ok());
    }
}

#[test]
fn a_link_flaps_until_that_is_cleared() {
    let fabric = tree();
    let (at, peer) = cable(&fabric);
    let mut simulation = laboratory(&fabric);
    let before = downs(&simulation, peer);
    let fault = impaired(at, Word::Flap, "2s 500ms");
    simulation.apply(Fault::Impair(fault));
    let began = simulation.now();
    let up_at = |simulation: &mut Simulation, millis| {
        simulation.run_until(began + Time::from_millis(millis));
        simulation.is_link_up(at)
    };
    assert!(up_at(&mut simulation, 1_400));
    assert!(!up_at(&mut simulation, 1_600));
    assert!(up_at(&mut simulation, 2_300));
    assert!(!up_at(&mut simulation, 3_700));
    simulation.apply(Fault::Clear(fault));
    at_rest(&mut simulation);
    assert!(up_at(&mut simulation, 60_000), "it is over");
    assert_eq!(downs(&simulation, peer), before + 2);
    assert!(simulation.check().is_ok());
}

/// A frozen node is gone for the others, and back with what it knew; faults at the same cable end one by one.
#[test]
fn freezes_and_partitions_outlast_restarts_independently() {
    let fabric = tree();
    let (at, peer) = cable(&fabric);
    let mut simulation = laboratory(&fabric);
    let lid = |simulation: &Simulation| {
        simulation
            .device(at.node)
            .and_then(|device| device.own_port_info(weft_wire::PortNum(0)))
            .map(|port| port.lid)
    };
    let before = lid(&simulation);
    simulation.apply(Fault::Freeze(Process::Agent(at.node)));
    simulation.apply(Fault::Partition(Nodes(vec![at.node])));
    at_rest(&mut simulation);
    assert!(
        fabric
            .node(at.node)
            .cabled_ports()
            .all(|(port, _)| !simulation.is_link_up(PortRef::new(at.node, port)))
    );
    assert_eq!(lid(&simulation), before, "it forgets nothing");
    simulation.apply(Fault::Heal(Nodes(vec![at.node])));
    at_rest(&mut simulation);
    assert!(!simulation.is_link_up(at), "it is frozen still");
    simulation.apply(Fault::Restart(Process::Agent(at.node)));
    at_rest(&mut simulation);
    assert!(!simulation.is_link_up(peer), "also when it has begun again");
    simulation.apply(Fault::LinkDown(at));
    simulation.apply(Fault::Thaw(Process::Agent(at.node)));
    at_rest(&mut simulation);
    assert!(!simulation.is_link_up(at));
    simulation.apply(Fault::LinkUp(at));
    at_rest(&mut simulation);
    assert!(simulation.is_link_up(at));
    assert!(simulation.check().is_ok());
}
