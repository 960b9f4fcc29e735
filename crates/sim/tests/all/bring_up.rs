//! Whole fabrics from switching on to SUBNET UP, and back to it.

use std::io::Write;
use std::process::Command;

use weft_machine::Time;
use weft_mgmt::{RequestTimer, Window};
use weft_sim::{
    Fault, Process, RandomLoss, Rule, SimOptions, Simulation, TraceMode, Verdict, bring_up, bring_up_watched,
};
use weft_sm::{GuidToLid, SmTimer};
use weft_topology::generate::{GenerateOptions, RandomFabric, random, with_node_at_every_switch, xgft};
use weft_topology::{Fabric, PortRef};
use weft_wire::{AttributeId, Method, Packet, PortNum};

const LIMIT: Time = Time::from_secs(300);

fn tree() -> Fabric {
    xgft(&[4, 4], &[1, 2], &GenerateOptions::default()).expect("a tree that fits its radix")
}

fn quiet(simulation: &mut Simulation) {
    simulation.run_until_quiet(simulation.now() + LIMIT).unwrap_or_else(|error| panic!("{error}"));
    if let Err(violations) = simulation.check() {
        let all: Vec<String> = violations.iter().map(ToString::to_string).collect();
        panic!("{}", all.join("\n"));
    }
}

/// All that the manager has set in the devices: LIDs and tables.
fn told(simulation: &Simulation) -> String {
    let mut told = String::new();
    for (index, node) in simulation.fabric().iter() {
        let Some(device) = simulation.device(index) else { continue };
        let lids: Vec<u16> = device.snapshot().ports.iter().map(|port| port.lid.0).collect();
        let table = simulation.live_routes().tables[index.index()].clone();
        told.push_str(&format!("{} {lids:?} {:?}\n", node.id, table.routes().collect::<Vec<_>>()));
    }
    told
}

/// The manager says how many SMPs are under way: a fixed window is filled, and never exceeded.
#[test]
fn smps_under_way_fill_the_window_and_no_more() {
    for most in [1, 4, 16] {
        let mut options = SimOptions::default();
        options.sm.smps.max_wire_smps = Window::Fixed(most);
        let mut seen = 0;
        let up = bring_up_watched(&tree(), options, 1, LIMIT, |simulation, _| {
            let sm = simulation.sm().unwrap();
            assert!(sm.in_flight() <= sm.window().most);
            seen = seen.max(sm.in_flight());
        });
        assert_eq!((seen, up.is_ok()), (most, true));
    }
}

/// Whoever runs out of patience hears what the manager was to be woken for.
#[test]
fn a_restless_simulation_names_its_next_timer() {
    let mut simulation = Simulation::new(&tree(), SimOptions::default(), 1);
    let until = Time::from_secs(3600);
    let all_lost = RandomLoss { until, lost_per_mille: 1000, late_per_mille: 0, delay_max: Time::ZERO };
    simulation.set_rule(all_lost);
    let limit = simulation.options().sm_start + Time::from_millis(150);
    let error = simulation.run_until_quiet(limit).unwrap_err();
    let timer = error.timer.unwrap();
    assert!(timer.at >= error.at, "{error}");
    assert_eq!(timer.reason, SmTimer::Smp(RequestTimer::Timeout), "{error}");
    assert!(
        error.to_string().ends_with(&format!("the next timer is SMP: timeout at {}", timer.at)),
        "{error}"
    );
}

#[test]
fn a_tree_comes_up() {
    let up = bring_up(&tree(), SimOptions::default(), 1, LIMIT).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!((up.summary.switches, up.summary.hosts), (6, 16));
    assert_eq!((up.checked.nodes, up.checked.lids, up.checked.ports), (22, 22, 2 * (16 + 8)));
    assert_eq!(up.checked.pairs, 22 * 6);
    assert!(up.summary.complete && up.sm_took <= up.up_at);
}

/// The production cluster: 11 switches, 89 HCAs, parallel cables, QDR and DDR mixed.
#[test]
fn the_x5_cluster_comes_up() {
    let text = include_str!("../../../../topologies/psmn-x5.topo");
    let fabric = weft_topology::parse("psmn-x5.topo", text).unwrap();
    let up = bring_up(&fabric, SimOptions::default(), 1, LIMIT).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!((up.summary.switches, up.summary.hosts), (11, 89));
    assert_eq!(up.checked.nodes, 100);
    assert_eq!(up.checked.lids as u32, up.summary.lids);
    let mut simulation = Simulation::new(&fabric, SimOptions::default(), 1);
    quiet(&mut simulation);
    assert_eq!(simulation.probe().unwrap(), (up.checked.lids * up.checked.lids) as u64);
}

#[test]
fn every_pair_exchanges_packets() {
    let mut simulation = Simulation::new(&tree(), SimOptions::default(), 2);
    quiet(&mut simulation);
    assert_eq!(simulation.probe().unwrap(), 22 * 22);
}

/// A manager that is started again reads what is there and leaves it alone.
#[test]
fn a_new_manager_writes_no_table_and_changes_no_lid() {
    for with_guid2lid in [true, false] {
        let mut simulation = Simulation::new(&tree(), SimOptions::default(), 3);
        quiet(&mut simulation);
        let before = (simulation.lft_writes(), simulation.lid_changes(), told(&simulation));
        assert!(before.0 > 0 && before.1 > 0);
        simulation.apply(Fault::Kill(Process::Sm));
        simulation.run_until(simulation.now() + Time::from_secs(1));
        assert!(simulation.sm().is_none());
        if !with_guid2lid {
            simulation.set_guid2lid(GuidToLid::default());
        }
        simulation.apply(Fault::Restart(Process::Sm));
        quiet(&mut simulation);
        let after = (simulation.lft_writes(), simulation.lid_changes(), told(&simulation));
        assert_eq!(before, after, "with guid2lid: {with_guid2lid}");
    }
}

/// After a switch was dead for a while a fabric is set as one that begins with the same file.
#[test]
fn after_a_restart_all_is_as_from_the_beginning() {
    let fabric = tree();
    let switch = fabric.switches().last().unwrap().0;
    for dead_ms in [10, 50, 5_000] {
        let mut simulation = Simulation::new(&fabric, SimOptions::default(), 4);
        quiet(&mut simulation);
        let before = told(&simulation);
        let downed = |simulation: &Simulation| -> u64 {
            let peers = fabric.node(switch).cabled_ports().map(|(_, peer)| peer);
            let counters = |peer: PortRef| simulation.device(peer.node)?.port_snapshot(peer.port);
            peers.filter_map(counters).map(|port| port.counters.link_downed_counter).sum()
        };
        let links = fabric.node(switch).cabled_ports().count() as u64;
        assert_eq!(downed(&simulation), 0);
        simulation.apply(Fault::Kill(Process::Agent(switch)));
        simulation.run_until(simulation.now() + Time::from_millis(dead_ms));
        simulation.apply(Fault::Restart(Process::Agent(switch)));
        quiet(&mut simulation);
        assert_eq!(downed(&simulation), links, "each neighbour has seen it, {dead_ms} ms");
        assert_eq!(told(&simulation), before, "{dead_ms} ms");

        let known = simulation.guid2lid().clone();
        let mut fresh = Simulation::new(&fabric, SimOptions { with_sm: false, ..SimOptions::default() }, 5);
        fresh.set_guid2lid(known);
        fresh.apply(Fault::Restart(Process::Sm));
        quiet(&mut fresh);
        assert_eq!(told(&fresh), before, "{dead_ms} ms");
    }
}

/// Routes and LIDs do not depend on which answer came first.
#[test]
fn the_order_of_answers_decides_nothing() {
    let first = {
        let mut simulation = Simulation::new(&tree(), SimOptions::default(), 0);
        quiet(&mut simulation);
        told(&simulation)
    };
    for seed in 1..6 {
        let mut options = SimOptions { link_jitter: Time::from_micros(50), ..SimOptions::default() };
        options.sm.smps.max_wire_smps = Window::Fixed(1 << seed);
        let mut simulation = Simulation::new(&tree(), options, seed);
        quiet(&mut simulation);
        assert_eq!(told(&simulation), first, "seed {seed}");
    }
}

/// Either way of sending SMPs gives the same fabric.
#[test]
fn smps_by_lid_do_the_same() {
    let told_with = |smp_routing| {
        let mut options = SimOptions::default();
        options.sm.smps.smp_routing = smp_routing;
        let mut simulation = Simulation::new(&tree(), options, 6);
        quiet(&mut simulation);
        let switch = simulation.fabric().switches().last().unwrap().0;
        simulation.apply(Fault::Restart(Process::Agent(switch)));
        quiet(&mut simulation);
        told(&simulation)
    };
    assert_eq!(told_with(weft_sm::SmpRouting::Directed), told_with(weft_sm::SmpRouting::Lid));
}

/// The two ends of one cut cable lead to one sweep.
#[test]
fn a_cut_cable_is_routed_around_in_one_sweep() {
    let fabric = tree();
    let (leaf, _) = fabric.switches().next().unwrap();
    let up = fabric.node(leaf).cabled_ports().find(|(_, peer)| fabric.node(peer.node).is_switch()).unwrap().0;
    let mut simulation = Simulation::new(&fabric, SimOptions::default(), 7);
    quiet(&mut simulation);
    let sweeps = |simulation: &Simulation| simulation.summaries().len();
    let before = sweeps(&simulation);
    simulation.apply(Fault::LinkDown(PortRef::new(leaf, up)));
    quiet(&mut simulation);
    assert_eq!(sweeps(&simulation), before + 1);
    assert_eq!(simulation.probe().unwrap(), 22 * 22);
}

/// Ports that were set to ask for a key go on to take what their manager says.
#[test]
fn a_key_does_not_lock_the_manager_out() {
    let fabric = tree();
    let mut options = SimOptions::default();
    options.sm.keys.m_key = weft_wire::MKey(0x1234);
    let mut simulation = Simulation::new(&fabric, options, 9);
    quiet(&mut simulation);
    simulation.apply(Fault::Restart(Process::Agent(fabric.switches().last().unwrap().0)));
    quiet(&mut simulation);
    assert!(simulation.summaries().last().unwrap().1.complete);
    assert_eq!(simulation.probe().unwrap(), 22 * 22);
}

/// A switch that is cabled to itself between two of its ports is a fabric like another.
#[test]
fn a_switch_cabled_to_itself() {
    let mut builder = weft_topology::FabricBuilder::new();
    let rate = weft_topology::LinkRate::default();
    let node = |kind, guid, ports| weft_topology::Node::new(kind, weft_wire::Guid(guid), ports, rate);
    let switch = builder.add_node(node(weft_wire::NodeType::Switch, 16, 4)).unwrap();
    let host = builder.add_node(node(weft_wire::NodeType::Hca, 32, 1)).unwrap();
    builder.connect(PortRef::new(switch, PortNum(1)), PortRef::new(host, PortNum(1))).unwrap();
    builder.connect(PortRef::new(switch, PortNum(2)), PortRef::new(switch, PortNum(3))).unwrap();
    let mut simulation = Simulation::new(&builder.build(), SimOptions::default(), 8);
    quiet(&mut simulation);
    assert_eq!(simulation.probe().unwrap(), 4);
}

/// Holds the Sets of forwarding tables back that leave the manager's port in some time.
struct HoldTables {
    from: PortRef,
    between: std::ops::Range<Time>,
    until: Time,
}

impl Rule for HoldTables {
    fn judge(&mut self, now: Time, from: PortRef, packet: &Packet, _: &mut rand_pcg::Pcg64) -> Verdict {
        let held = from == self.from && self.between.contains(&now);
        let mad = packet.mad().filter(|_| held);
        let is_table = |mad: &weft_wire::Mad| {
            (mad.method(), mad.attribute_id()) == (Method::Set, AttributeId::LinearForwardingTable)
        };
        if mad.as_ref().is_some_and(is_table) {
            return Verdict::Delay(self.until - now);
        }
        Verdict::Pass
    }
}

/// The first attempts of a sweep's Sets arrive when the next sweep has written something else.
#[test]
fn a_set_that_arrives_after_a_newer_one_is_undone() {
    let mut simulation = Simulation::new(&tree(), SimOptions::default(), 9);
    quiet(&mut simulation);
    let (before, began) = (told(&simulation), simulation.now());
    let from = simulation.sm_port();
    let own_switch = simulation.fabric().peer(from).map(|peer| peer.node);
    let cables = simulation.fabric().cables();
    let far =
        |port: PortRef| simulation.fabric().node(port.node).is_switch() && Some(port.node) != own_switch;
    let cable = cables.filter(|cable| far(cable.a) && far(cable.b)).last().expect("such a cable").a;
    // By then the sweep that follows the cut has sent its Sets, and not again.
    let between = began..began + Time::from_millis(250);
    simulation.set_rule(HoldTables { from, between, until: began + Time::from_secs(3) });
    simulation.apply(Fault::LinkDown(cable));
    simulation.run_until(began + Time::from_secs(1));
    assert!(simulation.statistics().delayed > 0, "nothing was held back");
    simulation.apply(Fault::LinkUp(cable));
    simulation.run_until(began + Time::from_millis(2_900));
    assert_eq!(told(&simulation), before, "the sweep after the cable was put back");
    let restored = simulation.now();
    simulation.run_until(began + Time::from_millis(3_100));
    assert_ne!(told(&simulation), before, "the late Sets have spoilt it");
    quiet(&mut simulation);
    assert_eq!(told(&simulation), before);
    assert!(simulation.now() - restored < Time::from_secs(60), "{}", simulation.now());
}

/// Two hosts at one cable: no switch tells anybody of anything, only the host's own adapter.
#[test]
fn the_own_link_is_back_in_service_at_once() {
    let mut builder = weft_topology::FabricBuilder::new();
    let rate = weft_topology::LinkRate::default();
    let host = |guid| weft_topology::Node::new(weft_wire::NodeType::Hca, weft_wire::Guid(guid), 1, rate);
    let hosts = [1, 2].map(|guid| builder.add_node(host(guid << 8)).expect("a host"));
    let ends = hosts.map(|host| PortRef::new(host, PortNum(1)));
    builder.connect(ends[0], ends[1]).expect("a cable");
    let mut simulation = Simulation::new(&builder.build(), SimOptions::default(), 4);
    quiet(&mut simulation);
    for down in [Time::from_millis(10), Time::from_secs(1)] {
        simulation.apply(Fault::LinkDown(ends[0]));
        simulation.run_until(simulation.now() + down);
        simulation.apply(Fault::LinkUp(ends[1]));
        let restored = simulation.now();
        while !simulation.is_link_up(ends[0]) {
            simulation.run_until(simulation.now() + Time::from_micros(100));
        }
        simulation.run_until(simulation.now() + Time::from_millis(10));
        simulation.check().unwrap_or_else(|violations| panic!("{down}: {violations:?}"));
        assert!(simulation.now() - restored < Time::from_millis(100), "light sweeps are 10 s apart");
    }
}

fn traced(seed: u64) -> Simulation {
    let parameters = RandomFabric { switches: 6, hosts: 12, extra_cables: 4, parallel_cables: 2 };
    let fabric = random(&parameters, seed, &GenerateOptions::default()).expect("it fits the radix");
    let options =
        SimOptions { link_jitter: Time::from_micros(20), trace: TraceMode::Lines, ..SimOptions::default() };
    let mut simulation = Simulation::new(&fabric, options, seed);
    let until = Time::from_secs(5);
    let loss =
        RandomLoss { until, lost_per_mille: 30, late_per_mille: 30, delay_max: Time::from_millis(300) };
    simulation.set_rule(loss);
    let switch = fabric.switches().last().expect("it has switches").0;
    simulation.fault_at(Time::from_secs(2), Fault::Kill(Process::Agent(switch)));
    simulation.fault_at(Time::from_secs(4), Fault::Restart(Process::Agent(switch)));
    quiet(&mut simulation);
    simulation
}

/// Every byte of a packet is in its line: here only values of PortInfo differ that nothing else shows.
#[test]
fn the_trace_tells_every_byte() {
    let hash = |subnet_prefix| {
        let mut options = SimOptions { trace: TraceMode::Hash, ..SimOptions::default() };
        options.sm.sa.subnet_prefix = weft_wire::GidPrefix(subnet_prefix);
        let mut simulation = Simulation::new(&tree(), options, 1);
        simulation.run_until(Time::from_secs(1));
        simulation.trace().hash()
    };
    assert_eq!(hash(1), hash(1));
    assert_ne!(hash(1), hash(2));
}

/// Set in the process that the next test starts.
const CHILD: &str = "WEFT_TRACE_CHILD";

#[test]
fn the_same_seed_gives_the_same_trace() {
    if std::env::var_os(CHILD).is_some() {
        let trace = traced(4711);
        let hash = format!("trace {:016x} {}\n", trace.trace().hash(), trace.trace().count());
        std::io::stderr().write_all(hash.as_bytes()).unwrap();
        return;
    }
    let (first, second) = (traced(4711), traced(4711));
    assert!(first.trace().count() > 1000);
    assert!(first.trace().lines() == second.trace().lines(), "twice in one process");
    assert_ne!(first.trace().hash(), traced(4712).trace().hash(), "another seed is another trace");

    let child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "bring_up::the_same_seed_gives_the_same_trace", "--nocapture"])
        .env(CHILD, "1")
        .output()
        .unwrap();
    let printed = String::from_utf8_lossy(&child.stderr).into_owned();
    let wanted = format!("trace {:016x} {}", first.trace().hash(), first.trace().count());
    assert!(printed.contains(&wanted), "in another process: {wanted}, not {printed}");
}

/// Nodes that are named as management's alone need no ways up and then down, and no check expects any.
#[test]
fn a_tree_with_nodes_that_serve_management_alone_comes_up() {
    let tree = xgft(&[4, 4], &[1, 2], &GenerateOptions { radix: Some(8), ..GenerateOptions::default() })
        .expect("a tree");
    let fabric = with_node_at_every_switch(&tree, "counter").expect("free ports");
    let counters = fabric.nodes().iter().filter(|node| node.description == "counter");
    let mut options = SimOptions::default();
    options.sm.routing.chain = "ftree,no_fallback".parse().expect("an engine");
    assert!(
        bring_up(&fabric, options.clone(), 1, Time::from_secs(20)).is_err(),
        "no tree with hosts at spines"
    );
    options.sm.routing.engine.management_nodes = counters.map(|node| node.guid).collect();
    let up = bring_up(&fabric, options, 1, LIMIT).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!((up.summary.switches, up.summary.hosts), (6, 16 + 6));
}
