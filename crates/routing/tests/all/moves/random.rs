//! Seeded moves on whole trees, damaged ones and other fabrics, one after the other from whatever tables the last has left.
//!
//! `WEFT_SEED` replays one seed.

use std::collections::{BTreeMap, BTreeSet};

use petgraph::algo::is_cyclic_directed;
use petgraph::graph::DiGraph;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use weft_routing::moves::{Method, Move, Plan, UpdateOrder};
use weft_routing::{Routes, verify};
use weft_topology::generate::{Damage, GenerateOptions, degraded, mesh, rlft, xgft};
use weft_topology::{Fabric, NodeIndex, PortRef};
use weft_wire::{Lid, PortNum};

use super::common::{Site, moved, write};

const SEEDS: u64 = 72;
const MOVES: usize = 4;

fn fabric(seed: u64) -> (Fabric, &'static str) {
    let options = GenerateOptions::default();
    let tree = |children: &[u32], parents: &[u32]| xgft(children, parents, &options);
    let (whole, engine) = match seed % 6 {
        0 => (tree(&[2, 2, 2], &[1, 2, 2]), "ftree"),
        1 => (tree(&[3, 4], &[1, 3]), "vswitch-ftree"),
        2 => (rlft(4, 3, &options), "ftree"),
        3 => (tree(&[3, 3, 3], &[1, 3, 2]), "ftree"),
        4 => (mesh(&[3, 3], 2, &options), "updn"),
        _ => (tree(&[2, 6], &[1, 4]), "minhop"),
    };
    let whole = whole.expect("the parameters are sound");
    if [0, 1, 4].contains(&(seed % 6)) {
        return (whole, engine);
    }
    let damage = Damage { cables: 1 + (seed / 6 % 6) as usize, switches: (seed / 36 % 2) as usize };
    (degraded(&whole, damage, seed).expect("what remains is sound"), engine)
}

/// The ports by which a packet for a LID leaves the switches, if the table of each is that of a time which `time` chooses as the packet
/// comes there; and whether it arrives.
pub(super) fn walk(
    site: &Site,
    tables: &[Routes],
    from: NodeIndex,
    lid: Lid,
    mut time: impl FnMut() -> usize,
) -> (Vec<PortRef>, Option<PortRef>) {
    let (mut at, mut way) = (from, Vec::new());
    while way.len() < 200 {
        let exit = PortRef::new(at, tables[time()].port(at, lid));
        let Some(next) = site.fabric.peer(exit) else { return (way, None) };
        if !site.fabric.node(next.node).is_switch() {
            return (way, Some(next));
        }
        way.push(exit);
        at = next.node;
    }
    (way, None)
}

/// Some tables in the order in which they may be in force, before and after each round and with a part of its writes: apart
/// where no packets are under way from the one to the next.
pub(super) fn course(site: &Site, plan: &Plan, random: &mut Pcg64Mcg) -> Vec<Vec<Routes>> {
    let mut last = site.routing.routes.clone();
    let mut segments = vec![vec![last.clone()]];
    for round in &plan.rounds {
        if round.after_drain {
            segments.push(vec![last.clone()]);
        }
        let mut writes = round.writes.clone();
        while !writes.is_empty() {
            let write = writes.swap_remove(random.random_range(0..writes.len()));
            last.tables[write.switch.index()].set_block(write.block, &write.ports);
            segments.last_mut().expect("some").push(last.clone());
        }
    }
    segments
}

/// Carries a plan out in a random order within its rounds, with packets under way.
fn carry_out(site: &Site, plan: &Plan, random: &mut Pcg64Mcg) -> Result<(), String> {
    let Move::Copy { lid, from, to, .. } = plan.moves[0] else { return Err("it is a copy".to_owned()) };
    let segments = course(site, plan, random);
    let (drops_all, late) = (plan.order == UpdateOrder::DropFirst, plan.late_switches());
    let (first, last) = (&segments[0][..1], &segments[segments.len() - 1]);
    let last = &last[last.len() - 1..];
    let is_promised = site.routing.report.engine != "minhop";
    for tables in &segments {
        let (mut waits, mut vertices) = (DiGraph::<(), ()>::new(), BTreeMap::new());
        let mut add = |way: &[PortRef]| {
            for pair in way.windows(2) {
                let [a, b] = [pair[0], pair[1]]
                    .map(|port| *vertices.entry(port).or_insert_with(|| waits.add_node(())));
                waits.update_edge(a, b, ());
            }
        };
        for (switch, _) in site.fabric.switches() {
            if walk(site, first, switch, lid, || 0).1 != Some(from) {
                continue;
            }
            if walk(site, last, switch, lid, || 0).1 != Some(to) {
                return Err(format!("{lid} is not reached from {switch:?}"));
            }
            let arrives = |(way, there): &(Vec<PortRef>, Option<PortRef>)| {
                let end =
                    way.last().and_then(|port| site.fabric.peer(*port)).map_or(switch, |peer| peer.node);
                let may_drop = drops_all || late.contains(&end);
                [Some(from), Some(to)].contains(there) || there.is_none() && may_drop
            };
            let lost = |time: &usize| !arrives(&walk(site, tables, switch, lid, || *time));
            if let Some(time) = (0..tables.len()).find(lost) {
                return Err(format!("{lid} is not reached from {switch:?} at {time}"));
            }
            for _ in 0..20 {
                let mut now = random.random_range(0..tables.len());
                let walked = walk(site, tables, switch, lid, || {
                    let then = now;
                    now = random.random_range(now..tables.len());
                    then
                });
                if !arrives(&walked) {
                    return Err(format!("a packet for {lid} from {switch:?} gets lost"));
                }
                add(&walked.0);
            }
            // What switches send to each other is no traffic.
            let is_switch = |port: PortRef| site.fabric.node(port.node).is_switch();
            let has_hosts = site.fabric.node(switch).cabled_ports().any(|(_, peer)| !is_switch(peer));
            let others = site.lids.iter().filter(|entry| entry.base != lid);
            for entry in others.filter(|entry| has_hosts || !is_switch(entry.port)) {
                add(&walk(site, last, switch, entry.base, || 0).0);
            }
        }
        if is_promised && is_cyclic_directed(&waits) {
            return Err("channels wait in a circle".to_owned());
        }
    }
    Ok(())
}

/// Once the prompt rounds are over, the machine is reached from all but late switches, and by detours; what a planner then makes of the
/// rest leads everywhere.
fn finish_late(site: &Site, plan: &Plan, moves: &[Move]) -> Result<(), String> {
    let Move::Copy { lid, to, of, .. } = moves[0] else { return Err("it is a copy".to_owned()) };
    let mut prompt = plan.clone();
    prompt.rounds.truncate(plan.prompt());
    let mut routing = site.routing.clone();
    write(&mut routing.routes, &prompt);
    let mut there = Site::of(site.fabric.clone(), moved(&site.lids, moves), routing, site.idle.clone());
    there.kept.set_detours(plan.detours.clone());
    let late = plan.late_switches();
    let mut reached = 0;
    for (switch, _) in there.fabric.switches() {
        let last = walk(&there, std::slice::from_ref(&there.routing.routes), switch, lid, || 0);
        let end = last.0.last().and_then(|port| there.fabric.peer(*port)).map_or(switch, |peer| peer.node);
        let is_served = walk(site, std::slice::from_ref(&site.routing.routes), switch, lid, || 0).1.is_some();
        if is_served && last.1 != Some(to) && !late.contains(&end) {
            return Err(format!("{lid} is not reached from {switch:?} before late rounds"));
        }
        reached += usize::from(last.1 == Some(to));
    }
    if reached == 0 {
        return Err("nothing is reached before late rounds".to_owned());
    }
    let rest = [Move::Finish { lid, at: to, of }];
    let (rest, _) = there.prove(&rest, Method::Skyline).map_err(|why| format!("the rest: {why}"))?;
    let written: BTreeSet<NodeIndex> = rest.writes().map(|write| write.switch).collect();
    let all: BTreeSet<NodeIndex> = plan.late_writes().map(|write| write.switch).collect();
    if !rest.fallbacks.is_empty() || written != all {
        return Err(format!("{written:?} are written late, {all:?} were to be: {:?}", rest.fallbacks));
    }
    if plan.silent.is_empty() != (plan.silence() == 0)
        || plan.late.is_some_and(|at| plan.rounds[at].drain == 0)
    {
        return Err(format!("{:?} are silent for {} switches", plan.silent, plan.silence()));
    }
    Ok(())
}

fn trial(seed: u64, totals: &mut BTreeMap<String, usize>) -> Result<(), String> {
    let mut random = Pcg64Mcg::seed_from_u64(seed);
    let (fabric, engine) = fabric(seed);
    let is_whole = seed % 6 < 2;
    let mut site = Site::new(fabric, engine, 1);
    let hosts = site.fabric.counts().hosts;
    let cabled = |site: &Site, host: usize| site.fabric.peer(site.host(host)).is_some();
    let lids: Vec<Lid> =
        (0..hosts).filter(|host| cabled(&site, *host)).map(|host| site.lids_of(host)[1]).collect();
    let pieces = site.fabric.pieces();
    for _ in 0..MOVES {
        let lid = lids[random.random_range(0..lids.len())];
        let from = site.lids.owner(lid).expect("it is in use");
        let to = random.random_range(0..hosts);
        // Nothing can be promised to what is left behind in another piece.
        let is_apart = pieces.shared(from.node, site.host(to).node).is_none();
        if site.host(to) == from || !cabled(&site, to) || is_apart {
            continue;
        }
        let of = site.lids_of(to)[0];
        let one = [Move::Copy { lid, from, to: site.host(to), of }];
        let (plan, _) = match site.prove(&one, Method::FtreeMinrc) {
            Ok(proved) => proved,
            Err(why) => return Err(why.to_string()),
        };
        *totals.entry(format!("{engine}, {}, {:?}", plan.method, plan.order)).or_default() += 1;
        *totals.entry("detours".to_owned()).or_default() += plan.detours.len();
        *totals.entry("late switches".to_owned()).or_default() += plan.late_switches().len();
        let itrc = site.plan(&one, Method::Itrc);
        if plan.physical > itrc.physical {
            return Err(format!("{} switches, by ItRC {}", plan.physical, itrc.physical));
        }
        if is_whole && !plan.fallbacks.is_empty() {
            return Err(format!("on a whole tree: {:?}", plan.fallbacks));
        }
        let as_asked = plan.method == Method::FtreeMinrc && plan.order == UpdateOrder::Ordered;
        if plan.fallbacks.is_empty() != as_asked {
            return Err(format!("{} without a word", plan.method));
        }
        carry_out(&site, &plan, &mut random)?;
        if plan.late.is_some() {
            finish_late(&site, &plan, &one)?;
        }
        let before = verify(&site.fabric, &site.lids, &site.routing.routes, &[]).failures;
        write(&mut site.routing.routes, &plan);
        site.lids = moved(&site.lids, &one);
        let after = verify(&site.fabric, &site.lids, &site.routing.routes, &[]);
        if after.failures > before {
            return Err(format!("{after}"));
        }
        if site.planner().plan(&one, plan.method, UpdateOrder::Ordered).map(|plan| plan.smps.physical)
            != Ok(0)
        {
            return Err("what is done is not done again".to_owned());
        }
        site.keep();
    }
    Ok(())
}

#[test]
fn seeded_moves_arrive_by_every_mixture_of_their_rounds() {
    let one = std::env::var("WEFT_SEED").ok().map(|seed| seed.parse().expect("WEFT_SEED is a number"));
    let seeds = one.map_or(0..SEEDS, |seed: u64| seed..seed + 1);
    let mut totals = BTreeMap::new();
    for seed in seeds {
        if let Err(failure) = trial(seed, &mut totals) {
            panic!("WEFT_SEED={seed}: {failure}");
        }
    }
    let _ = std::io::Write::write_all(&mut std::io::stderr(), format!("{totals:#?}\n").as_bytes());
    assert!(one.is_some() || totals["detours"] > 0, "{totals:#?}");
}

#[test]
fn a_request_that_was_carried_out_in_part_converges() {
    let site = Site::new(xgft(&[2, 2, 2], &[1, 2, 2], &GenerateOptions::default()).unwrap(), "ftree", 1);
    let one = [site.copy(1, 0, 7)];
    let (plan, _) = site.prove(&one, Method::FtreeMinrc).expect("it is safe");
    let all: Vec<_> = plan.writes().copied().collect();
    for done in 0..=all.len() {
        let mut routing = site.routing.clone();
        for write in &all[..done] {
            routing.routes.tables[write.switch.index()].set_block(write.block, &write.ports);
        }
        let half = Site::of(site.fabric.clone(), site.lids.clone(), routing, site.idle.clone());
        let (rest, _) = half.prove(&one, Method::FtreeMinrc).expect("it is safe");
        let blocks = |plan: &Plan| plan.writes().map(|write| (write.switch, write.block)).collect::<Vec<_>>();
        assert_eq!((rest.physical as usize, rest.fallbacks.len()), (all.len() - done, 0));
        assert!(blocks(&rest).iter().all(|key| blocks(&plan)[done..].contains(key)));
        assert!(rest.writes().all(|write| write.ports[usize::from(one[0].lid().0) % 64] != PortNum::NONE));
    }
}
