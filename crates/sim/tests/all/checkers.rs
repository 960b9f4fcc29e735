//! The checkers find what is wrong.

use std::cell::Cell;
use std::rc::Rc;

use rand_pcg::Pcg64;
use weft_machine::Time;
use weft_sim::{Fault, Process, Rule, SimOptions, Simulation, Verdict, Violation};
use weft_topology::generate::{GenerateOptions, xgft};
use weft_topology::{Fabric, PortRef};
use weft_wire::{Lid, Packet, PortNum, VirtualLane};

fn tree() -> Fabric {
    xgft(&[2, 2], &[1, 2], &GenerateOptions::default()).expect("a tree that fits its radix")
}

fn up(options: SimOptions) -> Simulation {
    let mut simulation = Simulation::new(&tree(), options, 1);
    simulation.run_until_quiet(Time::from_secs(100)).unwrap_or_else(|error| panic!("{error}"));
    simulation
}

#[test]
fn a_fabric_without_manager_is_not_up() {
    let mut simulation = up(SimOptions { with_sm: false, ..SimOptions::default() });
    let violations = simulation.check().unwrap_err();
    let count = |wanted: fn(&Violation) -> bool| violations.iter().filter(|found| wanted(found)).count();
    assert_eq!(count(|found| matches!(found, Violation::NotActive { .. })), 2 * 8);
    assert_eq!(count(|found| matches!(found, Violation::NoLid { .. })), 8);
    assert_eq!(simulation.probe(), Ok(0), "without LIDs there is nobody to be reached");
}

/// A table entry that leads astray is found by looking, and by sending.
#[test]
fn a_wrong_table_is_found() {
    let mut simulation = up(SimOptions::default());
    assert!(simulation.check().is_ok());
    let (leaf, node) = {
        let fabric = simulation.fabric();
        let (leaf, node) = fabric.switches().next().unwrap();
        (leaf, node.cabled_ports().find(|(_, peer)| fabric.node(peer.node).is_switch()).unwrap().0)
    };
    // LID 2 is a host's at this leaf or at the other; either way not up a cable and never back.
    let lids: Vec<Lid> = (1..9).map(Lid).collect();
    simulation.write_table(leaf, &lids, node);
    let violations = simulation.check().unwrap_err();
    assert!(violations.iter().all(|found| matches!(found, Violation::Route { .. })), "{violations:?}");
    let violations = simulation.probe().unwrap_err();
    assert!(violations.iter().any(|found| matches!(found, Violation::NotReached { .. })), "{violations:?}");
    let text = violations[0].to_string();
    assert!(text.contains("does not reach"), "{text}");
}

/// Counts what passes and loses every second packet of lane 15 for a while.
struct EverySecond {
    seen: Rc<Cell<u64>>,
    until: Time,
}

impl Rule for EverySecond {
    fn judge(&mut self, now: Time, _: PortRef, packet: &Packet, _: &mut Pcg64) -> Verdict {
        assert_eq!(packet.vl(), VirtualLane::MANAGEMENT);
        self.seen.set(self.seen.get() + 1);
        match self.seen.get() % 4 {
            _ if now > self.until => Verdict::Pass,
            0 | 2 => Verdict::Drop,
            1 => Verdict::Delay(Time::from_millis(1)),
            _ => Verdict::Pass,
        }
    }
}

#[test]
fn a_rule_sees_every_packet_of_lane_15_and_is_obeyed() {
    let mut simulation = Simulation::new(&tree(), SimOptions::default(), 1);
    let seen = Rc::new(Cell::new(0));
    simulation.set_rule(EverySecond { seen: Rc::clone(&seen), until: Time::from_secs(2) });
    simulation.run_until_quiet(Time::from_secs(200)).unwrap();
    simulation.check().unwrap();
    let statistics = simulation.statistics();
    assert_eq!(statistics.packets, seen.get());
    assert!(statistics.lost > 5 && statistics.delayed > 2, "{statistics:?}");
    simulation.probe().unwrap();
    assert_eq!(simulation.statistics().lost, statistics.lost, "data lanes lose nothing");
}

#[test]
fn a_dead_manager_is_quiet_and_its_fabric_stands() {
    let mut simulation = up(SimOptions::default());
    simulation.apply(Fault::Kill(Process::Sm));
    simulation.run_until_quiet(simulation.now() + Time::from_secs(100)).unwrap();
    simulation.check().unwrap();
    simulation.probe().unwrap();
}

#[test]
fn a_simulation_not_quiet_in_time_is_an_error() {
    let mut simulation = Simulation::new(&tree(), SimOptions::default(), 1);
    simulation
        .fault_at(Time::from_secs(50), Fault::LinkDown(PortRef::new(simulation.sm_port().node, PortNum(1))));
    let error = simulation.run_until_quiet(Time::from_secs(40)).unwrap_err();
    assert_eq!(error.at, Time::from_secs(40));
    assert!(error.to_string().starts_with("not quiet at 40.000000000"), "{error}");
}
