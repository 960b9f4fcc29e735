//! Patterns and the flows that meet: by hand on small trees, and counted again by `trace` on random fabrics.

use std::collections::BTreeMap;

use proptest::prelude::*;
use weft_routing::quality::{
    Contended, Directions, Metric, Participants, Paths, Pattern, SimulateOptions, Simulation, Traffic,
    compare, congestion, contention, hosts, interference, members, simulate, survey,
};
use weft_routing::{Isolation, Lids, Member, Partition, Routes, Routing, minhop, trace};
use weft_topology::generate::{GenerateOptions, RandomFabric, random, rlft};
use weft_topology::{Fabric, PortRef, parse};
use weft_wire::{Lid, PortNum};

/// Leaves `l1` with hosts a and b on ports 1 and 2, and `l2` with c and d; roots `r1` on their port 3 and `r2` on
/// their port 4; the roots' port 1 leads to `l1`, port 2 to `l2`.
const TREE: &str = "Switch 4 \"l1\"\n[1] \"a\"\n[2] \"b\"\n[3] \"r1\"[1]\n[4] \"r2\"[1]\n\
                    \nSwitch 4 \"l2\"\n[1] \"c\"\n[2] \"d\"\n[3] \"r1\"[2]\n[4] \"r2\"[2]\n\
                    \nSwitch 4 \"r1\"\n\nSwitch 4 \"r2\"\n\nCa 1 \"a\"\n\nCa 1 \"b\"\n\nCa 1 \"c\"\n\nCa 1 \"d\"\n";

struct Case {
    fabric: Fabric,
    lids: Lids,
    routes: Routes,
}

impl Case {
    fn new(fabric: Fabric) -> Self {
        let lids = Lids::in_guid_order(&fabric, 0).expect("there are enough LIDs");
        let routes = minhop(&fabric, &lids);
        Self { fabric, lids, routes }
    }

    /// The tree, with the leaves' uplink for each of a, b, c, d.
    fn tree(uplinks: [u8; 4]) -> Self {
        let mut case = Self::new(parse("tree", TREE).expect("the tree is sound"));
        for (host, uplink) in ["a", "b", "c", "d"].into_iter().zip(uplinks) {
            for leaf in ["l1", "l2"] {
                let here = case.fabric.peer(case.port(host, 1)).expect("a host has a cable");
                if here.node != case.port(leaf, 1).node {
                    case.set(leaf, host, uplink);
                }
            }
        }
        case
    }

    fn port(&self, id: &str, port: u8) -> PortRef {
        PortRef::new(self.fabric.find(id).expect("the node is there"), PortNum(port))
    }

    fn lid(&self, host: &str) -> Lid {
        self.lids.of(self.port(host, 1)).expect("the host has a LID").base
    }

    fn lids(&self, hosts: &[&str]) -> Vec<Lid> {
        hosts.iter().map(|host| self.lid(host)).collect()
    }

    fn set(&mut self, switch: &str, host: &str, port: u8) {
        let (node, lid) = (self.port(switch, 1).node, self.lid(host));
        self.routes.tables[node.index()].set(lid, PortNum(port));
    }

    fn paths(&self) -> Paths<'_> {
        Paths::new(&self.fabric, &self.lids, &self.routes)
    }

    /// In the order of the list.
    fn run(&self, hosts: &[&str], traffic: &str, runs: u32) -> Simulation {
        let participants = Participants::all(self.lids(hosts));
        let options = SimulateOptions { runs, shuffle: false, ..SimulateOptions::default() };
        simulate(
            &self.paths(),
            &participants,
            traffic.parse::<Traffic>().expect("the traffic is right"),
            &options,
        )
        .expect("all are known")
    }
}

fn bins(simulation: &Simulation, metric: Metric) -> Vec<(f64, u64)> {
    simulation.figure(metric).histogram.iter().map(|bin| (bin.from, bin.count)).collect()
}

#[test]
fn orcs_halves_the_bandwidth_of_two_flows_on_one_link() {
    // c by r1, d by r2; then both by r1.
    let apart = Case::tree([3, 4, 3, 4]).run(&["a", "c", "b", "d"], "bisect", 3);
    assert_eq!(bins(&apart, Metric::HistMaxCong), [(0.0, 6)]);
    assert_eq!(apart.bandwidth().mean, 1.0);
    let shared = Case::tree([3, 4, 3, 3]).run(&["a", "c", "b", "d"], "bisect", 3);
    assert_eq!(bins(&shared, Metric::HistMaxCong), [(2.0, 6)]);
    assert_eq!(bins(&shared, Metric::HistAccBand), [(0.5, 3)]);
    assert_eq!((shared.bandwidth().mean, shared.congestion_max), (0.5, 2));
    assert_eq!(bins(&shared, Metric::SumMaxCong), [(2.0, 3)]);
    // a, b, c and d each use or are used by their own link once a run, and the two cables by r1 carry both.
    let loads: Vec<(&str, u64)> = shared.cables.iter().map(|link| (link.name.as_str(), link.flows)).collect();
    let expected = [("l1[3]", 6), ("r1[2]", 6), ("a[1]", 3), ("b[1]", 3), ("l2[1]", 3), ("l2[2]", 3)];
    assert_eq!(loads, expected);
}

#[test]
fn congestion_names_shared_links_and_undelivered_flows() {
    let mut case = Case::tree([3, 4, 3, 3]);
    let flow = |case: &Case, from, to| (case.lid(from), case.lid(to));
    let flows = [flow(&case, "a", "c"), flow(&case, "b", "d"), flow(&case, "d", "c"), flow(&case, "a", "a")];
    let found = congestion(&case.paths(), &flows).unwrap();
    assert_eq!(found.flows, [Some(2), Some(2), Some(2), Some(0)]);
    let links: BTreeMap<PortRef, u32> = found.links.into_iter().collect();
    assert_eq!(links[&case.port("l1", 3)], 2);
    assert_eq!(links[&case.port("l2", 1)], 2, "a and d send to c");
    assert_eq!(links.get(&case.port("l1", 4)), None);
    // r1 sends c back: a loop. l1 has no port 9.
    case.set("r1", "c", 1);
    case.set("l1", "d", 9);
    let found = congestion(&case.paths(), &flows).unwrap();
    assert_eq!(found.flows, [None, None, Some(1), Some(0)]);
    let reasons: Vec<&str> = found.unreached.iter().map(|flow| flow.reason.as_str()).collect();
    assert!(reasons[0].contains("it goes round in a loop"), "{reasons:?}");
    assert!(reasons[1].contains("by a port without a cable"), "{reasons:?}");
    assert_eq!(congestion(&case.paths(), &[(Lid(1), Lid(999))]).unwrap_err().0, Lid(999));
}

#[test]
fn a_broken_routing_is_counted_and_named() {
    let mut case = Case::tree([3, 4, 3, 4]);
    case.set("r1", "c", 1);
    let simulation = case.run(&["a", "b", "c", "d"], "alltoall", 2);
    // a and b do not reach c. The other ten flows do, in each run.
    assert_eq!((simulation.flows, simulation.failures), (20, 4));
    let named: Vec<_> = simulation.unreached.iter().map(|flow| (flow.from, flow.to)).collect();
    assert_eq!(named, [(case.lid("a"), case.lid("c")), (case.lid("b"), case.lid("c"))]);
    let text = simulation.to_string();
    assert!(text.contains("20 flows, 4 more that do not arrive") && text.contains("loop"), "{text}");
    let hosts = case.lids(&["a", "b", "c", "d"]);
    let survey = survey(&case.paths(), &hosts, &hosts).unwrap();
    assert_eq!((survey.pairs, survey.failures, survey.unreached.len()), (10, 2, 2));
}

#[test]
fn delays_follow_what_depends_on_what() {
    let case = Case::tree([3, 4, 3, 4]);
    let delay = |traffic| case.run(&["a", "b", "c", "d"], traffic, 1).dep_max_delay.summary.max;
    // Everybody's flow ends on one link, or begins there.
    assert_eq!((delay("gather"), delay("scatter"), delay("alltoall")), (3.0, 3.0, 3.0));
    assert_eq!((delay("bisect"), delay("null")), (1.0, 0.0));
    // Four hops of a ring, one after the other; two levels of a tree, both alone on their links.
    assert_eq!((delay("ring"), delay("tree"), delay("recdbl")), (4.0, 2.0, 2.0));
    assert_eq!(case.run(&["a", "b", "c", "d"], "ring", 1).sum_max_cong.summary.max, 4.0);
}

#[test]
fn interference_delays_the_first_group_alone() {
    // c and d by r1: b -> d shares l1 and r1 with a -> c.
    let case = Case::tree([3, 4, 3, 3]);
    let participants = Participants { first: case.lids(&["a", "c"]), second: case.lids(&["b", "d"]) };
    let run = |traffic: &str, first_group_only| {
        let options = SimulateOptions { shuffle: false, first_group_only, ..SimulateOptions::default() };
        simulate(&case.paths(), &participants, traffic.parse::<Traffic>().unwrap(), &options).unwrap()
    };
    let quiet = run("ptrnvsptrn:bisect,null", false);
    assert_eq!((quiet.dep_max_delay.summary.max, quiet.flows), (1.0, 1));
    let noisy = run("ptrnvsptrn:bisect,bisect", false);
    assert_eq!((noisy.dep_max_delay.summary.max, noisy.flows), (2.0, 2));
    let victim = run("ptrnvsptrn:null,alltoall", false);
    assert_eq!((victim.dep_max_delay.summary.max, victim.flows), (0.0, 2));
    let own = run("ptrnvsptrn:bisect,alltoall", true);
    assert_eq!((own.bandwidth().mean, own.flows, own.failures), (0.5, 1, 0));
    assert!(
        noisy.to_string().starts_with("ptrnvsptrn:bisect,bisect, 2 participants against 2, 1 runs, seed 0")
    );
}

#[test]
fn runs_that_cannot_differ_add_up_as_if_each_were_run() {
    let mut case = Case::tree([3, 4, 3, 3]);
    case.set("r1", "c", 1);
    let participants = Participants::all(case.lids(&["a", "b", "c", "d"]));
    for (traffic, shuffle) in [("alltoall", true), ("gather", false), ("ring", false)] {
        let run = |runs| {
            let options = SimulateOptions { runs, shuffle, ..SimulateOptions::default() };
            simulate(&case.paths(), &participants, traffic.parse::<Traffic>().unwrap(), &options).unwrap()
        };
        let (once, often, never) = (run(1), run(3), run(0));
        assert_eq!((often.flows, often.failures), (3 * once.flows, 3 * once.failures), "{traffic}");
        assert_eq!(often.dep_max_delay.summary.count, 3, "{traffic}");
        assert_eq!(often.hist_acc_band.summary.min, once.hist_acc_band.summary.min, "{traffic}");
        assert_eq!(often.cables[0].flows, 3 * once.cables[0].flows, "{traffic}");
        assert_eq!(
            (never.flows, never.dep_max_delay.summary.count, never.cables.len()),
            (0, 0, 0),
            "{traffic}"
        );
    }
    // A ring is so sparse that its links are counted from its paths: a, b, c, d in a circle, b -> c lost.
    let ring = case.run(&["a", "b", "c", "d"], "ring", 2);
    let found: BTreeMap<&str, u64> =
        ring.cables.iter().map(|link| (link.name.as_str(), link.flows)).collect();
    let expected = [("a[1]", 2), ("c[1]", 2), ("d[1]", 2), ("l1[1]", 2), ("l1[2]", 2), ("l2[2]", 2)];
    let up = [("l2[3]", 2), ("r1[1]", 2)];
    assert_eq!(found, expected.into_iter().chain(up).collect());
}

/// A full tree with a root for each host of a leaf: what is for the k-th host of any leaf goes by the k-th root.
fn shift_friendly() -> (Case, Vec<Lid>) {
    let mut case = Case::new(rlft(8, 2, &GenerateOptions::default()).expect("the parameters are sound"));
    let hosts = hosts(&case.fabric, &case.lids);
    let is_leaf = |peer: PortRef| {
        case.fabric.node(peer.node).cabled_ports().any(|(_, other)| !case.fabric.node(other.node).is_switch())
    };
    let (mut leaves, mut ordered) = (Vec::new(), Vec::new());
    for (index, _) in case.fabric.switches() {
        if is_leaf(PortRef::new(index, PortNum(1))) {
            leaves.push(index);
        }
    }
    for leaf in &leaves {
        let below = hosts.iter().filter(|lid| {
            let owner = case.lids.owner(**lid).expect("somebody has it");
            case.fabric.peer(owner).expect("a host has a cable").node == *leaf
        });
        let before = ordered.len();
        ordered.extend(below.copied());
        for (k, lid) in ordered[before..].iter().enumerate() {
            for other in leaves.iter().filter(|other| *other != leaf) {
                let ups: Vec<PortNum> = case
                    .fabric
                    .node(*other)
                    .cabled_ports()
                    .filter(|(_, peer)| case.fabric.node(peer.node).is_switch())
                    .map(|(port, _)| port)
                    .collect();
                case.routes.tables[other.index()].set(*lid, ups[k]);
            }
        }
    }
    (case, ordered)
}

#[test]
fn a_perfect_full_tree_has_no_contention_under_shifts() {
    let (case, hosts) = shift_friendly();
    assert_eq!(hosts.len(), 32);
    let participants = Participants::all(hosts.clone());
    let options = SimulateOptions { shuffle: false, ..SimulateOptions::default() };
    let run = |pattern: Pattern| simulate(&case.paths(), &participants, pattern, &options).unwrap();
    for pattern in [Pattern::Shift, Pattern::Ring, Pattern::Bruck, Pattern::Neighbor(1), Pattern::Bisect] {
        let found = run(pattern);
        assert_eq!((found.congestion_max, found.failures), (1, 0), "{pattern}");
        assert_eq!(found.bandwidth().min, 1.0, "{pattern}");
    }
    assert_eq!(run(Pattern::Shift).dep_max_delay.summary.max, 31.0);
    assert_eq!(run(Pattern::AllToAll).congestion_max, 31);
    // In random order some meet.
    let options = SimulateOptions { runs: 20, ..SimulateOptions::default() };
    let random = simulate(&case.paths(), &participants, Pattern::Bisect, &options).unwrap();
    assert!(random.congestion_max > 1 && random.bandwidth().mean < 1.0, "{random}");
}

#[test]
fn links_of_a_perfect_tree_are_used_evenly() {
    let (case, hosts) = shift_friendly();
    let paths = case.paths();
    let found = survey(&paths, &hosts, &hosts).unwrap();
    // 32 x 3 pairs on one leaf, the other 28 of each by a root.
    assert_eq!((found.hops.as_slice(), found.detours), ([96, 0, 32 * 28].as_slice(), 0));
    let balance = found.balance(&Directions::new(&paths, None));
    // 8 leaves with 4 uplinks: 7 of 8 receivers on each, from 4 senders.
    let up = balance.flows.up;
    assert_eq!((up.count, up.min, up.max, up.deviation), (32, 28.0, 28.0, 0.0));
    assert_eq!((balance.routes.up.min, balance.routes.up.max), (7.0, 7.0));
    assert_eq!((balance.routes.down.min, balance.routes.down.max), (1.0, 1.0));
    assert_eq!(balance.flows.all.count, 64);
}

#[test]
fn contention_is_receivers_on_a_link_less_one() {
    // From the left leaf c and d go up by r1; from the right one a by r1 and b by r2.
    let case = Case::tree([3, 4, 3, 3]);
    let paths = case.paths();
    let directions = Directions::new(&paths, None);
    let hosts = case.lids(&["a", "b", "c", "d"]);
    let all = contention(&paths, &hosts, &hosts, &directions).unwrap();
    let side = Contended { links: 4, contended: 1, total: 1, worst: 1 };
    assert_eq!((all.up, all.down, all.level), (side, side, Contended::default()));
    let one = contention(&paths, &hosts, &case.lids(&["a", "b", "c"]), &directions).unwrap();
    assert_eq!((one.up.total, one.down.contended), (0, 0));
    // No one sends from the left.
    let right = contention(&paths, &case.lids(&["c", "d"]), &hosts, &directions).unwrap();
    assert_eq!((right.up.total, right.down.total), (0, 0));
}

#[test]
fn partitions_interfere_where_their_flows_share_a_link() {
    let case = Case::tree([3, 4, 3, 3]);
    let groups = [case.lids(&["a", "c"]), case.lids(&["b", "d"])];
    // a -> c and b -> d share l1[3] and r1[2]; c -> a goes by r1, d -> b by r2.
    let found = interference(&case.paths(), &groups).unwrap();
    assert_eq!((found.occurrences, found.links, found.by_partition), (4, 2, vec![2, 2]));
    let apart = interference(&Case::tree([3, 4, 3, 4]).paths(), &groups).unwrap();
    assert_eq!((apart.occurrences, apart.links), (0, 0));
    let guid = |host: &str| case.fabric.port(case.port(host, 1)).unwrap().guid;
    let list = ["d", "b"].map(|host| Member { guid: guid(host), full: true }).to_vec();
    let partition = Partition { name: "p".into(), pkey: 1, members: list, isolation: Isolation::Def };
    assert_eq!(members(&case.fabric, &case.lids, &partition), groups[1]);
}

#[test]
fn virtual_functions_of_one_port_share_no_link_among_themselves() {
    let mut case = Case::tree([3, 4, 3, 4]);
    let (a, second) = (case.port("a", 1), Lid(100));
    case.lids.insert(a, second, 0).unwrap();
    assert_eq!(hosts(&case.fabric, &case.lids).len(), 4);
    let node = case.fabric.find("l1").unwrap();
    case.routes.tables[node.index()].set(second, PortNum(1));
    let flows = [(case.lid("a"), second), (case.lid("b"), second)];
    assert_eq!(congestion(&case.paths(), &flows).unwrap().flows, [Some(0), Some(1)]);
}

#[test]
fn results_replay_by_seed_and_do_not_depend_on_threads() {
    let fabric = rlft(8, 2, &GenerateOptions::default()).unwrap();
    let case = Case::new(fabric);
    let all = hosts(&case.fabric, &case.lids);
    let participants = Participants::drawn(all.clone(), 12, 7);
    assert_eq!((participants.first.len(), participants.second.len()), (12, 20));
    let in_pool = |threads, seed| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        let options = SimulateOptions { runs: 50, seed, ..SimulateOptions::default() };
        let traffic: Traffic = "ptrnvsptrn:rand,bisect".parse().unwrap();
        pool.install(|| {
            let paths = case.paths();
            (simulate(&paths, &participants, traffic, &options).unwrap(), survey(&paths, &all, &all).unwrap())
        })
    };
    let one = in_pool(1, 5);
    assert_eq!(one, in_pool(2, 5));
    assert_eq!(one, in_pool(1, 5));
    assert_ne!(one.0.hist_acc_band, in_pool(1, 6).0.hist_acc_band);
}

#[test]
fn a_comparison_has_a_line_for_each_routing() {
    let spread = Case::tree([3, 4, 3, 4]);
    let crowded = Case::tree([3, 3, 3, 3]);
    let routing = |case: &Case| Routing::on_one_lane("hand", case.routes.clone());
    let (good, bad) = (routing(&spread), routing(&crowded));
    let participants = Participants::all(hosts(&spread.fabric, &spread.lids));
    let options = SimulateOptions { runs: 200, ..SimulateOptions::default() };
    let both = [("spread", &good), ("crowded", &bad)];
    let found =
        compare(&spread.fabric, &spread.lids, &both, &participants, Pattern::Bisect, &options).unwrap();
    let [first, second] = found.rows.as_slice() else { panic!("two rows") };
    assert!(first.bandwidth.mean > second.bandwidth.mean);
    assert_eq!((first.pairs, first.failures, first.hops_max, first.detours), (12, 0, 2, 0));
    assert!((first.hops_mean - 16.0 / 12.0).abs() < 1e-12);
    assert_eq!((first.balance.flows.all.max, second.balance.flows.all.max), (2.0, 4.0));
    let text = found.to_string();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!((lines.len(), lines[0]), (4, "bisect, 200 runs, seed 0"));
    assert!(lines[1].starts_with("engine ") && lines[2].starts_with("spread "), "{text}");
}

/// Counts the flows on every link once more, from the paths that `trace` tells.
fn count_again(case: &Case, flows: &[(Lid, Lid)]) -> (BTreeMap<PortRef, u32>, Vec<Option<u32>>) {
    let mut links: BTreeMap<PortRef, u32> = BTreeMap::new();
    let mut paths = Vec::new();
    for (from, to) in flows {
        let path = trace(
            &case.fabric,
            &case.lids,
            &case.routes,
            case.lids.owner(*from).expect("somebody has it"),
            *to,
        )
        .ok();
        let used = path.map(|path| {
            let exits = path.hops.iter().take(path.hops.len() - 1);
            exits.map(|hop| PortRef::new(hop.node, hop.exit)).collect::<Vec<_>>()
        });
        for link in used.iter().flatten() {
            *links.entry(*link).or_default() += 1;
        }
        paths.push(used);
    }
    let worst = |path: Vec<PortRef>| path.iter().map(|link| links[link]).max().unwrap_or(0);
    let meets = paths.into_iter().map(|path| path.map(worst)).collect();
    (links, meets)
}

/// Min-hop tables with some entries overwritten by any port.
fn damaged(parameters: &RandomFabric, seed: u64, damage: &[(u16, u16, u8)]) -> Case {
    let mut case =
        Case::new(random(parameters, seed, &GenerateOptions::default()).expect("the parameters are sound"));
    let switches: Vec<_> = case.fabric.switches().map(|(index, _)| index).collect();
    let top = case.lids.top().0;
    for (switch, lid, port) in damage {
        let node = switches[usize::from(*switch) % switches.len()];
        case.routes.tables[node.index()].set(Lid(1 + lid % top), PortNum(*port));
    }
    case
}

fn fabrics() -> impl Strategy<Value = (RandomFabric, u64, Vec<(u16, u16, u8)>)> {
    let shape = (1u32..12, 2u32..16, 0u32..12, 0u32..4);
    let fabric = shape.prop_map(|(switches, hosts, extra_cables, parallel_cables)| RandomFabric {
        switches,
        hosts,
        extra_cables: if switches > 1 { extra_cables } else { 0 },
        parallel_cables: if switches > 1 { parallel_cables } else { 0 },
    });
    (fabric, any::<u64>(), prop::collection::vec((any::<u16>(), any::<u16>(), 0u8..40), 0..12))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn flows_are_counted_as_trace_counts_them((parameters, seed, damage) in fabrics()) {
        let case = damaged(&parameters, seed, &damage);
        let all: Vec<Lid> = case.lids.iter().map(|lids| lids.base).collect();
        let pairs = |a: &Lid| all.iter().filter(|b| *b != a).map(|b| (*a, *b)).collect::<Vec<_>>();
        let flows: Vec<(Lid, Lid)> = all.iter().flat_map(pairs).collect();
        let (links, meets) = count_again(&case, &flows);
        let found = congestion(&case.paths(), &flows).unwrap();
        prop_assert_eq!(&found.flows, &meets);
        prop_assert_eq!(found.links.into_iter().collect::<BTreeMap<_, _>>(), links);
        prop_assert_eq!(found.unreached.len(), meets.iter().filter(|meets| meets.is_none()).count().min(16));
    }

    #[test]
    fn a_survey_is_every_pair((parameters, seed, damage) in fabrics()) {
        let case = damaged(&parameters, seed, &damage);
        let (paths, all) = (case.paths(), hosts(&case.fabric, &case.lids));
        let pairs = |a: &Lid| all.iter().filter(|b| *b != a).map(|b| (*a, *b)).collect::<Vec<_>>();
        let flows: Vec<(Lid, Lid)> = all.iter().flat_map(pairs).collect();
        let (links, meets) = count_again(&case, &flows);
        let found = survey(&paths, &all, &all).unwrap();
        let lost = meets.iter().filter(|meets| meets.is_none()).count() as u64;
        prop_assert_eq!((found.pairs, found.failures), (flows.len() as u64 - lost, lost));
        let between = |port: &PortRef| case.fabric.node(port.node).is_switch()
            && case.fabric.node(case.fabric.peer(*port).unwrap().node).is_switch();
        let carried: u64 = links.iter().filter(|(port, _)| between(port)).map(|(_, flows)| u64::from(*flows)).sum();
        let hops: u64 = (0..).zip(&found.hops).map(|(hops, pairs): (u64, _)| hops * pairs).sum();
        prop_assert_eq!(carried, hops);
        let worst = links.iter().filter(|(port, _)| between(port)).map(|(_, flows)| *flows).max().unwrap_or(0);
        let balance = found.balance(&Directions::new(&paths, None));
        prop_assert_eq!(balance.flows.all.max, f64::from(worst));
        let simulation = simulate(&paths, &Participants::all(all), Pattern::AllToAll, &SimulateOptions::default());
        let simulation = simulation.unwrap();
        prop_assert_eq!((simulation.flows, simulation.failures), (found.pairs, found.failures));
    }
}
