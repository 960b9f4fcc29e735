//! A piece of the fabric that no manager reaches keeps its tables. Cabled in another way, they may lead in a circle: then what a switch
//! tells its manager goes round, and the switches end it.

use weft_device::DropReason;
use weft_machine::Time;
use weft_sim::{Change, SimOptions, Simulation};
use weft_topology::generate::{GenerateOptions, mesh};
use weft_topology::{NodeIndex, PortRef};
use weft_wire::PortNum;

const PATIENCE: Time = Time::from_secs(60);
/// A trap goes this often through each of the two switches of the circle.
const ROUNDS: u64 = 64;

/// Traps sent, SMPs forwarded, and those dropped because they go round, of some switches together.
fn counts(simulation: &Simulation, switches: &[NodeIndex]) -> [u64; 3] {
    let statistics = switches.iter().map(|switch| simulation.device(*switch).unwrap().statistics());
    statistics.fold([0; 3], |[sent, forwarded, dropped], of| {
        [sent + of.traps_sent, forwarded + of.forwarded, dropped + of.dropped(DropReason::Loop)]
    })
}

/// Three switches in a row, the manager at the first. The second is unplugged from the first, and its port there plugged into the third.
#[test]
fn a_trap_that_goes_round_in_a_piece_without_manager_ends() {
    let options = GenerateOptions { radix: Some(4), ..GenerateOptions::default() };
    let fabric = mesh(&[3], 1, &options).unwrap();
    let switches: Vec<NodeIndex> = fabric.switches().map(|(node, _)| node).collect();
    let peers = |node: NodeIndex| fabric.node(node).cabled_ports().map(|(_, peer)| peer.node);
    let is_end = |node: &NodeIndex| peers(*node).filter(|peer| fabric.node(*peer).is_switch()).count() == 1;
    let ends: Vec<NodeIndex> = switches.iter().copied().filter(is_end).collect();
    let middle = switches.into_iter().find(|node| !ends.contains(node)).unwrap();
    let (first, last) = (ends[0], ends[1]);
    let (_, host) = fabric.node(first).cabled_ports().find(|(_, peer)| peer.node != middle).unwrap();
    let (up, _) = fabric.node(middle).cabled_ports().find(|(_, peer)| peer.node == first).unwrap();
    let free = (1..=4).map(|port| PortRef::new(last, PortNum(port))).find(|at| fabric.peer(*at).is_none());
    let (up, free) = (PortRef::new(middle, up), free.unwrap());

    let options = SimOptions { recabling: true, sm_port: Some(host), ..SimOptions::default() };
    let (interval, limit) = (options.device.trap_interval, u64::from(options.device.trap_limit));
    let mut simulation = Simulation::new(&fabric, options, 1);
    simulation.run_until_quiet(PATIENCE).unwrap();
    assert!(simulation.change(Change::Disconnect(up)));
    let until = simulation.now() + PATIENCE;
    simulation.run_until_quiet(until).unwrap();
    // All traps about that have been given up.
    let given_up = Time::from_nanos((limit + 1) * interval.as_nanos());
    simulation.run_until(simulation.now() + given_up);
    let before = counts(&simulation, &[middle, last]);
    assert!(simulation.change(Change::Connect([up, free])));
    simulation.run_until(simulation.now() + given_up);
    let after = counts(&simulation, &[middle, last]);
    let [sent, forwarded, dropped] = std::array::from_fn(|count| after[count] - before[count]);
    assert!(simulation.is_link_up(up) && sent > 0, "{sent} traps");
    assert_eq!((forwarded, dropped), (2 * ROUNDS * sent, sent), "each goes round as often, and is dropped");
    let until = simulation.now() + PATIENCE;
    simulation.run_until_quiet(until).unwrap();
    simulation.check().unwrap();
}
