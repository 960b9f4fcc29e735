//! Service levels that differ by pair: both levels meet both rows, all four are proved together, and what would close a circle is held.
//!
//! The waits that a plan may bring about, found once more by walks with a table and a level each: nothing is taken from the prover.

use std::collections::{BTreeMap, BTreeSet};

use petgraph::algo::is_cyclic_directed;
use petgraph::graph::{DiGraph, NodeIndex as Vertex};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use weft_routing::moves::{Counterexample, LatePolicy, Method, Move, Plan, PlanError, UpdateOrder};
use weft_routing::{Expectations, Routes, ServiceLevels, verify_routing};
use weft_topology::generate::{GenerateOptions, mesh, ring, torus, xgft};
use weft_topology::{Fabric, PortRef};
use weft_wire::{Lid, ServiceLevel};

use super::common::{Site, moved, write};
use super::random::{course, walk};

const SEEDS: u64 = 48;
const MOVES: usize = 4;

/// Channels that packets hold and want, by lane: a level's number.
#[derive(Default)]
struct Waits(BTreeMap<u8, Lane>);

/// The channels of a lane, and their vertices.
#[derive(Default)]
struct Lane {
    graph: DiGraph<(), ()>,
    vertices: BTreeMap<PortRef, Vertex>,
}

impl Waits {
    fn add(&mut self, level: ServiceLevel, way: &[PortRef]) {
        let Lane { graph, vertices } = self.0.entry(level.0).or_default();
        for pair in way.windows(2) {
            let [held, wanted] =
                [pair[0], pair[1]].map(|port| *vertices.entry(port).or_insert_with(|| graph.add_node(())));
            graph.update_edge(held, wanted, ());
        }
    }

    fn circles(&self) -> bool {
        self.0.values().any(|lane| is_cyclic_directed(&lane.graph))
    }
}

/// A move, with the levels before and after it.
struct Case<'a> {
    site: &'a Site,
    lid: Lid,
    to: PortRef,
    levels: [&'a ServiceLevels; 2],
}

impl Case<'_> {
    fn lids(&self) -> impl Iterator<Item = (Lid, PortRef)> {
        self.site
            .lids
            .iter()
            .map(|lids| (lids.base, lids.port))
            .filter(|(_, port)| !self.site.fabric.node(port.node).is_switch())
    }

    fn leaf(&self, port: PortRef) -> weft_topology::NodeIndex {
        self.site.fabric.peer(port).expect("it has a cable").node
    }

    /// What packets wait for that the move does not touch, and what the machine sends from both places on the levels of each.
    fn bystanders(&self) -> Waits {
        let (mut waits, rows) = (Waits::default(), std::slice::from_ref(&self.site.routing.routes));
        for (source, port) in self.lids() {
            for (target, _) in self.lids().filter(|(target, _)| *target != self.lid && *target != source) {
                let mut send = |from: PortRef, levels: &ServiceLevels| {
                    let way = walk(self.site, rows, self.leaf(from), target, || 0).0;
                    waits.add(levels.of(source, target), &way);
                };
                send(port, self.levels[0]);
                if source == self.lid {
                    send(self.to, self.levels[1]);
                }
            }
        }
        waits
    }

    /// Adds packets to the machine, which find at each switch a table of a later time than at the one before.
    fn peers(&self, waits: &mut Waits, levels: &[&ServiceLevels], times: &[Routes], random: &mut Pcg64Mcg) {
        for (source, port) in self.lids().filter(|(source, _)| *source != self.lid) {
            for level in levels.iter().map(|levels| levels.of(source, self.lid)).collect::<BTreeSet<_>>() {
                for _ in 0..30 {
                    let mut now = random.random_range(0..times.len());
                    let way = walk(self.site, times, self.leaf(port), self.lid, || {
                        let then = now;
                        now = random.random_range(now..times.len());
                        then
                    });
                    waits.add(level, &way.0);
                }
            }
        }
    }

    /// The machine goes on at its new place on the levels of the old one, and answers packets that came on them.
    fn strays(&self, waits: &mut Waits) {
        let rows = std::slice::from_ref(&self.site.routing.routes);
        for (target, _) in self.lids().filter(|(target, _)| *target != self.lid) {
            let way = walk(self.site, rows, self.leaf(self.to), target, || 0).0;
            for levels in self.levels {
                waits.add(self.levels[0].of(self.lid, target), &way);
                waits.add(levels.of(target, self.lid), &way);
            }
        }
    }

    /// Any row with any level, in whatever order they are written.
    fn everything(&self, after: &Routes) -> Waits {
        let mut waits = self.bystanders();
        self.strays(&mut waits);
        let tables = [&self.site.routing.routes, after];
        for (source, port) in self.lids().filter(|(source, _)| *source != self.lid) {
            let (mut todo, mut seen) = (vec![self.leaf(port)], BTreeSet::new());
            while let Some(at) = todo.pop().filter(|at| seen.insert(*at)) {
                for exit in tables.map(|routes| PortRef::new(at, routes.port(at, self.lid))) {
                    let next = self.site.fabric.peer(exit).map(|next| next.node);
                    let Some(next) = next.filter(|next| self.site.fabric.node(*next).is_switch()) else {
                        continue;
                    };
                    for wanted in tables.map(|routes| PortRef::new(next, routes.port(next, self.lid))) {
                        let leads = self.site.fabric.peer(wanted).map(|peer| peer.node);
                        if leads.is_some_and(|node| self.site.fabric.node(node).is_switch()) {
                            self.levels
                                .iter()
                                .for_each(|levels| waits.add(levels.of(source, self.lid), &[exit, wanted]));
                        }
                    }
                    todo.push(next);
                }
            }
        }
        waits
    }

    /// Whether a plan is what it says it is.
    fn judge(&self, plan: &Plan, random: &mut Pcg64Mcg) -> Result<(), String> {
        let mut after = self.site.routing.routes.clone();
        write(&mut after, plan);
        let [old, new] = self.levels;
        if plan.held.is_some() {
            let mut waits = self.bystanders();
            self.peers(&mut waits, &[old], std::slice::from_ref(&self.site.routing.routes), random);
            self.peers(&mut waits, &[new], std::slice::from_ref(&after), random);
            if waits.circles() {
                return Err("packets wait in a circle though queue pairs are held".to_owned());
            }
            return match self.everything(&after).circles() {
                true => Ok(()),
                false => Err("queue pairs are held in vain".to_owned()),
            };
        }
        for times in course(self.site, plan, random) {
            let mut waits = self.bystanders();
            self.strays(&mut waits);
            self.peers(&mut waits, &[old, new], &times, random);
            if waits.circles() {
                return Err("packets wait in a circle".to_owned());
            }
        }
        Ok(())
    }
}

fn fabric(seed: u64) -> (Fabric, &'static str) {
    let options = GenerateOptions::default();
    let (fabric, engine) = match seed % 6 {
        0 => (ring(5 + (seed / 6 % 3) as u32, 1, &options), "lash"),
        1 => (ring(6, 2, &options), "dfsssp"),
        2 => (xgft(&[3, 4], &[1, 2], &options), "vftree"),
        3 => (torus(&[3, 3], 1, &options), "lash"),
        4 => (torus(&[4, 3], 1, &options), "dfsssp"),
        _ => (mesh(&[3, 3], 1, &options), "lash"),
    };
    (fabric.expect("the parameters are sound"), engine)
}

fn trial(seed: u64, totals: &mut BTreeMap<String, usize>) -> Result<(), String> {
    let mut random = Pcg64Mcg::seed_from_u64(seed);
    let (fabric, engine) = fabric(seed);
    let mut site = Site::new(fabric, engine, 1);
    let hosts = site.fabric.counts().hosts;
    let lids: Vec<Lid> = (0..hosts).map(|host| site.lids_of(host)[1]).collect();
    for _ in 0..MOVES {
        let lid = lids[random.random_range(0..lids.len())];
        let from = site.lids.owner(lid).expect("it is in use");
        let to = random.random_range(0..hosts);
        if site.host(to) == from {
            continue;
        }
        let one = [Move::Copy { lid, from, to: site.host(to), of: site.lids_of(to)[0] }];
        let method = if engine == "vftree" { Method::FtreeMinrc } else { Method::Skyline };
        let levels = site.planner().levels_after(&one);
        let (plan, proof) = site.prove(&one, method).map_err(|why| why.to_string())?;
        if proof.unproved_lanes != 0 {
            return Err(format!("{engine} leaves circles on lanes {:#x}", proof.unproved_lanes));
        }
        let relevels = levels != site.routing.levels;
        let case = Case { site: &site, lid, to: site.host(to), levels: [&site.routing.levels, &levels] };
        case.judge(&plan, &mut random).map_err(|why| format!("{engine}, {lid}, {:?}: {why}", plan.order))?;
        if plan.held.is_some() && (!relevels || plan.pause() < 2) {
            return Err(format!("{engine} holds {lid} for {} switches", plan.pause()));
        }
        let held = if plan.held.is_some() { "held" } else { "not held" };
        *totals.entry(format!("{engine}, {held}")).or_default() += usize::from(relevels);
        let mut routing = site.routing.clone();
        write(&mut routing.routes, &plan);
        routing.levels = levels;
        let lids = moved(&site.lids, &one);
        let verdict = verify_routing(&site.fabric, &lids, &routing, &Expectations::default());
        if !verdict.is_deadlock_free() {
            return Err(format!("{engine}: a circle once {lid} has moved"));
        }
        site = Site::of(site.fabric.clone(), lids, routing, site.idle.clone());
    }
    Ok(())
}

#[test]
fn both_levels_with_both_rows_close_no_circle() {
    let seeds = std::env::var("WEFT_SEED").ok().and_then(|seed| seed.parse().ok());
    let seeds = seeds.map_or(0..SEEDS, |seed: u64| seed..seed + 1);
    let is_whole = seeds.end - seeds.start == SEEDS;
    let mut totals = BTreeMap::new();
    for seed in seeds {
        trial(seed, &mut totals).unwrap_or_else(|why| panic!("WEFT_SEED={seed}: {why}"));
    }
    if is_whole {
        assert!(totals.get("lash, held").is_some_and(|count| *count > 0), "{totals:?}");
        assert!(totals.get("vftree, not held").is_some_and(|count| *count > 0), "{totals:?}");
        assert!(!totals.contains_key("vftree, held"), "trees have no circle on any lane: {totals:?}");
    }
}

/// On a ring whose pairs have two levels, tables and levels of both places are free of circles, and the mixture is not.
#[test]
fn a_circle_of_the_mixture_alone_is_held_or_refused() {
    let site = Site::new(ring(6, 1, &GenerateOptions::default()).expect("a ring"), "lash", 1);
    assert!(site.routing.levels.highest() > ServiceLevel(0), "one lane is not enough for a ring");
    let mut held = 0;
    for (from, to) in (0..6).flat_map(|from| (0..6).map(move |to| (from, to))).filter(|(from, to)| from != to)
    {
        let one = [site.copy(1, from, to)];
        let (plan, _) = site.prove(&one, Method::Skyline).expect("a plan");
        let Some(circle) = &plan.held else { continue };
        held += 1;
        let Counterexample::Circle { lane, channels } = circle else { panic!("{circle}") };
        assert!(
            channels.len() > 2
                && circle.circle().is_some_and(|text| text.starts_with(&format!("VL {lane}: ")))
        );
        assert!(plan.rounds[0].after_drain && plan.pause() >= 2 && plan.silent.is_empty(), "{plan:?}");
        // The same writes by peers that go on are not safe.
        let careless = Plan { held: None, ..plan.clone() };
        assert!(matches!(site.planner().prove(&careless), Err(Counterexample::Circle { .. })));
        let strict = weft_routing::moves::Planner { late: LatePolicy::Refuse, ..site.planner() };
        let refused = strict.plan_and_prove(&one, Method::Skyline, UpdateOrder::Ordered);
        assert!(matches!(refused, Err(PlanError::Unsafe(Counterexample::Circle { .. }))), "{refused:?}");
    }
    assert!(held > 0, "some move on a ring has such a mixture");
}

/// A LID that was not used so far may have levels on which its own rows close a circle with others. No hold helps against that.
#[test]
fn a_circle_of_the_new_place_alone_is_refused() {
    let mut refused = 0;
    for (spare, level) in (0..6).flat_map(|host| (0..3).map(move |level| (host, level))) {
        let mut site = Site::new(ring(6, 1, &GenerateOptions::default()).expect("a ring"), "lash", 1);
        let all: Vec<Lid> = site.lids.iter().map(|lids| lids.base).collect();
        let with = site.lids_of(spare)[1];
        let before = site.routing.levels.clone();
        let mut levels = ServiceLevels::classes(site.lids.top(), all.len(), all.len());
        for (class, lid) in (0..).zip(&all) {
            levels.set_destination(*lid, class);
            // Functions send as their host does.
            let port = site.lids.owner(*lid).expect("it has one");
            let first = all.iter().position(|other| site.lids.owner(*other) == Some(port)).expect("itself");
            levels.set_source(*lid, first as u16);
            for (source, from) in (0..).zip(&all) {
                let of_pair = if *lid == with { ServiceLevel(level) } else { before.of(*from, *lid) };
                levels.set(source, class, of_pair);
            }
        }
        site.routing.levels = levels;
        site.idle = BTreeSet::from([with]);
        site.keep();
        let swap = site.swap(((spare + 3) % 6, 1), (spare, 1));
        match site.prove(&[swap], Method::Skyline) {
            Ok((plan, _)) => assert!(plan.moves == [swap]),
            Err(why) => {
                refused += 1;
                assert!(why.to_string().contains("may wait for each other in a circle: "), "{why}");
            }
        }
    }
    assert!(refused > 0, "all to one host on one lane close some circle of a ring");
}
