//! Signalling of a reconfiguration: what agents receive after a cable is cut, by each method, is the closed form's.
//!
//! OpenSM's own LASH tables before and after (paper 004, lines 901–1216, figures 1 to 3): fault one, S4–S5, changes no service level;
//! fault two, S2–S5, changes 18 of 30.

use weft_host::stack::{BulkCounts, PathCache};
use weft_machine::Time;
use weft_routing::files::{SavedFiles, SavedRouting};
use weft_routing::{Lids, Routing};
use weft_sim::{Fault, SimOptions, Simulation};
use weft_sm::signalling::{Case, Signalled, messages, paper_bytes};
use weft_sm::{Options, Signalling};
use weft_topology::generate::{GenerateOptions, mesh as mesh_of};
use weft_topology::{Cable, PortRef, parse};
use weft_wire::{PortNum, VlCap};

use crate::support::connections::flow_between;

const LIMIT: Time = Time::from_secs(100);
/// Data lanes of the larger meshes.
const LANES: u8 = 8;
const METHODS: [Signalling; 3] = [Signalling::Wildcard, Signalling::Repath, Signalling::Hybrid];
const MESH: &str = include_str!("../../../../topologies/lash-mesh.topo");

/// A table of OpenSM's and its service levels.
type Saved = (&'static str, &'static str);

macro_rules! saved {
    ($name:literal) => {
        (
            include_str!(concat!("../../../../topologies/lash-opensm/", $name, "-lfts.dump")),
            include_str!(concat!("../../../../topologies/lash-opensm/", $name, ".psl")),
        )
    };
}

/// The cable that is cut, the tables that are left, and how many pairs of hosts they change.
#[derive(Clone, Copy)]
struct Broken {
    cut: (&'static str, u8),
    left: Saved,
    changes: u64,
}

fn faults() -> [Broken; 2] {
    [
        Broken { cut: ("S4", 2), left: saved!("fault-one"), changes: 0 },
        Broken { cut: ("S2", 2), left: saved!("ring"), changes: 18 },
    ]
}

fn routings(tables: &[Saved]) -> Vec<SavedRouting> {
    let lfts: Vec<&str> = tables.iter().map(|saved| saved.0).collect();
    let psl: Vec<&str> = tables.iter().map(|saved| saved.1).collect();
    let files = SavedFiles { lfts: &lfts, lid_matrix: &[], sl2vl: &[], psl: &psl };
    files.read(|text, saved, add| add(saved, "saved", text)).unwrap()
}

/// Six hosts with a connection to each other one, the subnet up and nothing under way.
fn mesh(broken: &Broken, options: impl FnOnce(&mut SimOptions)) -> Simulation {
    let fabric = parse("lash-mesh.topo", MESH).unwrap();
    let mut all = SimOptions { hosts: true, ..SimOptions::default() };
    all.device.vl_cap = VlCap::Vl0To3;
    all.sm.routing.chain = "file,no_fallback".parse().unwrap();
    all.sm.routing.engine.saved = routings(&[saved!("mesh"), broken.left]);
    all.sm_port = Some(PortRef::new(fabric.find("H1").unwrap(), PortNum(1)));
    options(&mut all);
    let mut simulation = Simulation::new(&fabric, all, 1);
    simulation.run_until_quiet(LIMIT).unwrap();
    for from in 0..6 {
        for to in (0..6).filter(|to| *to != from) {
            connect(&mut simulation, from, to, 0);
        }
    }
    run_for(&mut simulation, Time::from_secs(1));
    simulation
}

/// A mesh of these sides with a host at each switch and a connection from each to each other one.
fn larger(sides: [u32; 2], signalling: Signalling, sm: Options) -> Simulation {
    let fabric = mesh_of(&sides, 1, &GenerateOptions::default()).unwrap();
    let mut all = SimOptions { hosts: true, ..SimOptions::default() };
    all.device.vl_cap = VlCap::Vl0To7;
    all.sm = sm;
    all.sm.sa.signalling = signalling;
    let mut simulation = Simulation::new(&fabric, all, 1);
    simulation.run_until_quiet(LIMIT).unwrap();
    let ports = hosts(&simulation);
    for (from, at) in (0..).zip(&ports) {
        for (to, peer) in (0..).zip(&ports).filter(|(to, _)| *to != from) {
            flow_between(&mut simulation, (*at, *peer), from * 100 + to, 4096);
        }
    }
    run_for(&mut simulation, Time::from_secs(2));
    simulation
}

fn lash() -> Options {
    let mut options = Options::default();
    options.routing.chain = "lash,no_fallback".parse().unwrap();
    options
}

/// Ordered pairs of hosts whose level a cut changes, by routing both fabrics on paper.
fn changes_on_paper(simulation: &Simulation, cut: PortRef) -> u64 {
    let whole = simulation.fabric();
    let kept = whole.cables().filter(|cable| ![cable.a, cable.b].contains(&cut));
    let left = whole.part(|_| true, kept).unwrap();
    let lids = Lids::in_guid_order(whole, 0).unwrap();
    let [before, after] = [whole, &left].map(|fabric| lash().route(fabric, &lids, LANES).unwrap());
    let hosts: Vec<_> =
        lids.iter().filter(|of| !whole.node(of.port.node).is_switch()).map(|of| of.base).collect();
    let pairs = hosts.iter().flat_map(|from| hosts.iter().map(move |to| (*from, *to)));
    let level = |routing: &Routing, (from, to)| routing.levels.of(from, to);
    pairs.filter(|(from, to)| from != to).filter(|pair| level(&before, *pair) != level(&after, *pair)).count()
        as u64
}

fn hosts(simulation: &Simulation) -> Vec<PortRef> {
    simulation.fabric().hosts().map(|(node, _)| PortRef::new(node, PortNum(1))).collect()
}

/// A short flow from one host to another; its queue pairs stay.
fn connect(simulation: &mut Simulation, from: u32, to: u32, round: u32) {
    let port = |number: u32| {
        let node = simulation.fabric().find(&format!("H{}", number + 1)).unwrap();
        PortRef::new(node, PortNum(1))
    };
    let ends = (port(from), port(to));
    flow_between(simulation, ends, round * 100 + from * 10 + to, 4096);
}

fn run_for(simulation: &mut Simulation, span: Time) {
    let until = simulation.now() + span;
    simulation.run_until(until);
    simulation.check_traffic().unwrap();
}

/// Datagrams about other paths, without what hosts ask of their own accord.
fn told(simulation: &Simulation) -> Signalled {
    Signalled { names: 0, paths: 0, ..simulation.sm().unwrap().sa_counts().signalled() }
}

/// What all hosts have received and sent.
fn heard(simulation: &Simulation) -> (u64, BulkCounts) {
    let stacks = hosts(simulation).into_iter().map(|port| simulation.stack(port).unwrap());
    stacks.fold((0, BulkCounts::default()), |(reports, sum), stack| {
        let one = stack.bulk_counts();
        let bulk = BulkCounts {
            asked: sum.asked + one.asked,
            answered: sum.answered + one.answered,
            segments: sum.segments + one.segments,
            acks: sum.acks + one.acks,
            busy: sum.busy + one.busy,
            broken: sum.broken + one.broken,
            failed: sum.failed + one.failed,
            discarded: sum.discarded + one.discarded,
        };
        (reports + stack.counts().reports, bulk)
    })
}

/// What a cut has led to.
struct Cut {
    counted: Signalled,
    /// Sweeps that have routed, by the manager's own summaries.
    routings: u64,
    simulation: Simulation,
}

/// Cuts the cable, and counts what that leads to, at both ends.
fn cut(broken: &Broken, signalling: Signalling, one_sweep: bool) -> Cut {
    let simulation = mesh(broken, |options| {
        options.sm.sa.signalling = signalling;
        options.sm.sweeps.one_sweep_per_cable = one_sweep;
    });
    let (name, port) = broken.cut;
    let at = PortRef::new(simulation.fabric().find(name).unwrap(), PortNum(port));
    cut_at(simulation, at)
}

fn cut_at(mut simulation: Simulation, at: PortRef) -> Cut {
    let (before, (reports, bulk)) = (told(&simulation), heard(&simulation));
    let sweeps = simulation.summaries().count();
    simulation.apply(Fault::LinkDown(at));
    run_for(&mut simulation, Time::from_secs(9));
    let counted = told(&simulation).since(&before);
    let (now_reports, now) = heard(&simulation);
    let by_hosts = Signalled {
        reports: now_reports - reports,
        responses: now_reports - reports,
        queries: now.asked - bulk.asked,
        segments: now.segments - bulk.segments,
        acks: now.acks - bulk.acks,
        ..Signalled::default()
    };
    assert_eq!(counted, by_hosts, "what the manager has sent is what hosts have received, and back");
    assert_eq!((now.busy, now.broken, now.failed), (0, 0, 0));
    let routings = (simulation.summaries().count() - sweeps) as u64;
    Cut { counted, routings, simulation }
}

/// A cable leads to one sweep, or to one for each of its traps. The trap of the end whose way to the manager was over the cable comes only
/// with the new tables, and so may lead to another sweep in any case: how many the manager has made, its own summaries say.
#[test]
fn datagrams_after_a_cut_are_those_of_the_closed_form() {
    for broken in faults() {
        for one_sweep in [true, false] {
            for method in Signalling::ALL {
                let Cut { counted, routings, .. } = cut(&broken, method, one_sweep);
                assert!((1..=3).contains(&routings), "{routings} sweeps");
                assert!(one_sweep || routings > 1, "each trap has its sweep");
                // 6 hosts and port 0 of 6 switches have a path record.
                let case = Case { hosts: 6, askers: 6, records: 12, changes: broken.changes, routings };
                let wanted = messages(method, &case);
                assert_eq!(counted, wanted, "{method}, {} changes, {routings} routings", broken.changes);
            }
        }
    }
}

/// What agents send and receive after a cut in a larger mesh is the closed form for this number of changes.
fn is_closed_form(simulation: Simulation, at: PortRef, method: Signalling, changes: u64) {
    assert!(changes > 0, "nothing to signal");
    let switches = simulation.fabric().switches().count() as u64;
    let Cut { counted, routings, .. } = cut_at(simulation, at);
    let case = Case { hosts: switches, askers: switches, records: 2 * switches, changes, routings };
    let wanted = messages(method, &case);
    assert_eq!(counted, wanted, "{switches} switches, {method}, {changes} changes, {routings} routings");
}

/// With weft's LASH, the middle cable cut: changes are those between two routings on paper.
#[test]
fn datagrams_on_larger_meshes_are_those_of_the_closed_form() {
    for sides in [[4, 4], [6, 6]] {
        for method in METHODS {
            let simulation = larger(sides, method, lash());
            let fabric = simulation.fabric();
            let is_between =
                |cable: &Cable| [cable.a, cable.b].iter().all(|end| fabric.node(end.node).is_switch());
            let cables: Vec<_> = fabric.cables().filter(is_between).collect();
            let at = cables[cables.len() / 2].a;
            let changes = changes_on_paper(&simulation, at);
            is_closed_form(simulation, at, method, changes);
        }
    }
}

/// With OpenSM's LASH for 16 switches, before and after a cut: changes are those between its path records.
#[test]
fn datagrams_by_opensms_lash_for_16_switches_are_exact() {
    let (whole, cut) = (saved!("4x4"), saved!("4x4-cut"));
    let lines = whole.1.lines().zip(cut.1.lines());
    let changes = lines.filter(|(before, after)| before != after).count() as u64;
    assert_eq!((whole.1.lines().count(), changes), (16 * 15, 118));
    for method in METHODS {
        let mut options = Options::default();
        options.routing.chain = "file,no_fallback".parse().unwrap();
        options.routing.engine.saved = routings(&[whole, cut]);
        let simulation = larger([4, 4], method, options);
        let at = PortRef::new(simulation.fabric().find("switch-1-1").unwrap(), PortNum(2));
        is_closed_form(simulation, at, method, changes);
    }
}

/// Whatever the method, queue pairs end on the levels of the tables that are in force; without one they stay where they were.
#[test]
fn every_method_brings_queue_pairs_to_their_new_lanes() {
    let broken = faults()[1];
    for method in Signalling::ALL {
        let simulation = cut(&broken, method, true).simulation;
        let hosts: Vec<_> = simulation.fabric().hosts().map(|(node, _)| node).collect();
        let reports = hosts.iter().flat_map(|node| simulation.host_reports(*node));
        let levels: Vec<u8> =
            reports.filter(|report| report.sender).map(|report| report.service_level.unwrap().0).collect();
        assert_eq!(levels.len(), 30);
        let moved = levels.iter().filter(|level| **level != 0).count() as u64;
        assert_eq!(moved, if method == Signalling::Off { 0 } else { broken.changes }, "{method}");
    }
}

/// The paper's order of the methods holds for weft's own counts too, but for a fabric so small that a change a pair is cheaper.
#[test]
fn the_papers_numbers_stand_beside_for_the_mesh() {
    let case = Case { hosts: 6, askers: 6, records: 12, changes: 18, routings: 2 };
    let bytes = |method| (messages(method, &case).bytes(), paper_bytes(method, 6, 18));
    assert_eq!(bytes(Signalling::Hybrid), (54 * 256, 33 * 256));
    assert_eq!(bytes(Signalling::Wildcard), (108 * 256, 66 * 256));
    assert_eq!(bytes(Signalling::Repath), (72 * 256, 18 * 256));
}

/// Thesis 003, lines 548–554: a question for each connection, or one for each peer, ever.
#[test]
fn a_cache_asks_once_a_peer_and_none_asks_each_time() {
    let broken = faults()[0];
    for cache in PathCache::ALL {
        let mut simulation = mesh(&broken, |options| options.host.path_cache = cache);
        let queries = |simulation: &Simulation| simulation.sm().unwrap().sa_counts().path_queries;
        assert_eq!(queries(&simulation), 6 * 5, "{cache}: n (n - 1)");
        for round in 1..=3 {
            for from in 0..6 {
                for to in (0..6).filter(|to| *to != from) {
                    connect(&mut simulation, from, to, round);
                }
            }
            run_for(&mut simulation, Time::from_secs(1));
            let wanted = if cache == PathCache::Off { (1 + u64::from(round)) * 6 * 5 } else { 6 * 5 };
            assert_eq!(queries(&simulation), wanted, "{cache}, round {round}");
        }
    }
}
