//! Seeded cuts on many kinds of fabrics: what a repair leaves is judged by the verifier of everything, on the fabric without
//! the cables.
//!
//! `WEFT_SEED` replays one seed; `WEFT_CUTS` says how many there are (1000 if not said).

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use weft_routing::quality::{Directions, Paths, hosts, survey};
use weft_routing::{
    Chain, Ends, EngineOptions, Expectations, Lids, Proven, Routes, Routing, Row, Unrepaired, Verdict, trace,
    verify_routing,
};
use weft_topology::generate::{GenerateOptions, RandomFabric, hypercube, mesh, random, torus, xgft};
use weft_topology::{Cable, Fabric, PortRef};
use weft_wire::PortNum;

const CUTS: u64 = 1000;

const ENGINES: [&str; 7] = ["minhop", "updn", "ftree", "sssp", "dfsssp", "lash", "vftree"];

fn fabric(kind: u64, seed: u64) -> Fabric {
    let options = GenerateOptions::default();
    let irregular = RandomFabric { switches: 14, hosts: 24, extra_cables: 16, parallel_cables: 3 };
    let fabric = match kind {
        0 => xgft(&[4, 6], &[1, 4], &options),
        1 => xgft(&[3, 3, 4], &[1, 3, 3], &options),
        2 => xgft(&[4, 4], &[1, 2], &options),
        3 => torus(&[4, 4], 1, &options),
        4 => mesh(&[3, 4], 1, &options),
        5 => hypercube(4, 1, &options),
        _ => random(&irregular, seed, &options),
    };
    fabric.expect("the parameters are sound")
}

/// What came of all cuts.
#[derive(Debug, Default)]
struct Totals {
    repaired: u64,
    restored: u64,
    rows: u64,
    refused: BTreeMap<String, u64>,
}

struct Trial {
    whole: Fabric,
    lids: Lids,
    options: EngineOptions,
    chain: Chain,
    gone: Vec<Cable>,
    /// Whether a full computation has replaced what repairs have left.
    is_afresh: bool,
}

impl Trial {
    fn left(&self) -> Fabric {
        let cables = self.whole.cables().filter(|cable| !self.gone.contains(cable));
        self.whole.part(|_| true, cables).expect("a part of a fabric")
    }

    fn verdict(&self, routing: &Routing) -> Verdict {
        verify_routing(&self.left(), &self.lids, routing, &Expectations::default())
    }

    fn afresh(&mut self) -> Option<Proven> {
        let left = self.left();
        let routing = self.chain.route(&left, &self.lids, &self.options).ok()?;
        self.is_afresh = true;
        Proven::new(left, self.lids.clone(), routing, &self.options).ok()
    }

    /// A cable between switches without which the fabric stays in one piece.
    fn any_cable(&self, rng: &mut Pcg64Mcg) -> Option<Cable> {
        let between =
            |cable: &Cable| [cable.a, cable.b].iter().all(|end| self.whole.node(end.node).is_switch());
        let cables: Vec<Cable> =
            self.whole.cables().filter(|cable| between(cable) && !self.gone.contains(cable)).collect();
        let cable = *cables.get(rng.random_range(0..cables.len().max(1)))?;
        let others = self.whole.cables().filter(|other| *other != cable && !self.gone.contains(other));
        let left = self.whole.part(|_| true, others).expect("a part of a fabric");
        (left.pieces().len() == 1).then_some(cable)
    }
}

/// Every row that is new is reported, and every row that is reported is new.
fn check_rows(before: &Routes, after: &Routes, lids: &Lids, rows: &[Row]) -> Result<(), String> {
    let mut found = Vec::new();
    for (node, (old, new)) in (0..).zip(before.tables.iter().zip(&after.tables)) {
        for lid in lids.iter().flat_map(weft_routing::PortLids::iter) {
            if old.port(lid) != new.port(lid) {
                let before = PortRef::new(weft_topology::NodeIndex(node), old.port(lid));
                found.push(Row { before, lid, after: new.port(lid) });
            }
        }
    }
    let mut told = rows.to_vec();
    told.sort_unstable();
    found.sort_unstable();
    if told == found { Ok(()) } else { Err(format!("rows {told:?}, but found {found:?}")) }
}

/// Rows stay whose paths did not use the cable, but for those that carried nothing: the way of a switch without hosts to a
/// switch.
fn check_touched(
    trial: &Trial,
    whole: &Fabric,
    before: &Routes,
    cable: Cable,
    rows: &[Row],
) -> Result<(), String> {
    for row in rows {
        let from = PortRef::new(row.before.node, PortNum::ZERO);
        let Ok(path) = trace(whole, &trial.lids, before, from, row.lid) else { continue };
        let uses = path.hops.iter().any(|hop| [cable.a, cable.b].contains(&PortRef::new(hop.node, hop.exit)));
        let owner = trial.lids.owner(row.lid).expect("a row is for a LID");
        let has_hosts =
            |node| whole.node(node).cabled_ports().any(|(_, peer)| !whole.node(peer.node).is_switch());
        let is_idle = whole.node(owner.node).is_switch() && !has_hosts(row.before.node);
        if !uses && !is_idle {
            return Err(format!("{row:?} did not use the cable: {path}"));
        }
    }
    Ok(())
}

/// The pairs on the busiest link between switches, and the mean hops.
fn burden(fabric: &Fabric, lids: &Lids, routing: &Routing) -> (f64, f64) {
    let paths = Paths::new(fabric, lids, &routing.routes);
    let all = hosts(fabric, lids);
    let found = survey(&paths, &all, &all).expect("hosts have LIDs");
    (found.balance(&Directions::new(&paths, None)).flows.all.max, found.hops_mean())
}

fn cut(
    trial: &mut Trial,
    proven: &mut Option<Proven>,
    cable: Cable,
    totals: &mut Totals,
) -> Result<(), String> {
    let standing = proven.as_mut().expect("something stands");
    let free = trial.verdict(standing.routing()).is_deadlock_free();
    let (whole, before) = (trial.left(), standing.routing().routes.clone());
    trial.gone.push(cable);
    let ends: Ends = (cable.a, cable.b);
    match standing.cut(&[ends]) {
        Ok(rows) => {
            let verdict = trial.verdict(standing.routing());
            if !verdict.is_sound() || (free && !verdict.is_deadlock_free()) {
                return Err(format!("the proof says yes and the verifier no: {verdict}"));
            }
            check_rows(&before, &standing.routing().routes, &trial.lids, &rows)?;
            check_touched(trial, &whole, &before, cable, &rows)?;
            standing.verify().map_err(|error| format!("verified again: {error}"))?;
            totals.repaired += 1;
            totals.rows += rows.len() as u64;
        }
        Err(error) => {
            let kind = match error {
                Unrepaired::Unreached(_) => "unreached".to_owned(),
                other => other.to_string(),
            };
            *totals.refused.entry(kind).or_default() += 1;
            *proven = trial.afresh();
        }
    }
    Ok(())
}

/// One fabric and engine: some cuts, some of which come back, at last all.
fn run(seed: u64, totals: &mut Totals) -> Result<u64, String> {
    let mut rng = Pcg64Mcg::seed_from_u64(seed);
    let whole = fabric(seed % 7, seed);
    let chain = ENGINES[(seed / 7 % 7) as usize].parse().expect("an engine");
    let lids = Lids::in_guid_order(&whole, rng.random_range(0..2)).expect("enough LIDs");
    let options = EngineOptions { threads: 1, ..EngineOptions::default() };
    let mut trial = Trial { whole, lids, options, chain, gone: Vec::new(), is_afresh: false };
    let mut proven = trial.afresh();
    trial.is_afresh = false;
    let Some(first) = proven.as_ref().map(|proven| proven.routing().routes.clone()) else { return Ok(0) };
    let mut cuts = 0;
    for _ in 0..rng.random_range(1..5) {
        let Some(cable) = trial.any_cable(&mut rng) else { continue };
        cuts += 1;
        cut(&mut trial, &mut proven, cable, totals)?;
        if proven.is_none() {
            return Ok(cuts);
        }
    }
    while !trial.gone.is_empty() && !trial.is_afresh {
        let cable = trial.gone.remove(rng.random_range(0..trial.gone.len()));
        let standing = proven.as_mut().expect("something stands");
        match standing.restore(&[(cable.a, cable.b)]) {
            Ok(_) => {}
            // Ways of before and of now may well wait for each other.
            Err(Unrepaired::Circle) => {
                *totals.refused.entry("circle when a cable is back".to_owned()).or_default() += 1;
                return Ok(cuts);
            }
            Err(error) => return Err(format!("{cable:?} does not come back: {error}")),
        }
        let verdict = trial.verdict(standing.routing());
        if !verdict.is_sound() {
            return Err(format!("after a cable is back: {verdict}"));
        }
        totals.restored += 1;
    }
    let last = &proven.as_ref().expect("something stands").routing().routes;
    if trial.is_afresh || *last == first { Ok(cuts) } else { Err("not as at first".to_owned()) }
}

#[test]
fn cuts_are_repaired_as_the_verifier_wants_it() {
    let number = |name| std::env::var(name).ok().map(|text| text.parse::<u64>().expect("a number"));
    let (mut totals, mut cuts, mut failures) = (Totals::default(), 0, Vec::new());
    let one = number("WEFT_SEED");
    let goal = number("WEFT_CUTS").unwrap_or(CUTS);
    let mut seed = one.unwrap_or(0);
    while cuts < goal {
        match run(seed, &mut totals) {
            Ok(more) => cuts += more,
            Err(failure) => failures.push(format!("seed {seed} (WEFT_SEED={seed} replays it): {failure}")),
        }
        seed += 1;
        if one.is_some() {
            break;
        }
    }
    let line = format!("{cuts} cuts: {totals:?}\n");
    std::io::stderr().write_all(line.as_bytes()).expect("what was done can be said");
    assert!(failures.is_empty(), "{} failures after {cuts} cuts:\n{}", failures.len(), failures.join("\n"));
    let refused: u64 = totals.refused.values().sum();
    assert!(one.is_some() || totals.repaired > 3 * refused, "most cuts can be repaired: {totals:?}");
    assert!(one.is_some() || totals.restored > 100, "{totals:?}");
}

/// On trees a repair burdens no link more than everything routed again, within 1 %, and takes no longer ways.
#[test]
fn on_trees_the_balance_is_that_of_a_full_computation() {
    let mut judged = BTreeSet::new();
    for (kind, engine) in [(0, "ftree"), (0, "minhop"), (0, "updn"), (1, "ftree"), (1, "minhop"), (1, "updn")]
    {
        for seed in 0..10 {
            let mut rng = Pcg64Mcg::seed_from_u64(seed);
            let whole = fabric(kind, 0);
            let lids = Lids::in_guid_order(&whole, 0).expect("enough LIDs");
            let options = EngineOptions::default();
            let chain: Chain = engine.parse().expect("an engine");
            let mut trial = Trial { whole, lids, options, chain, gone: Vec::new(), is_afresh: false };
            let mut proven = trial.afresh().expect("a tree can be routed");
            let cable = trial.any_cable(&mut rng).expect("there are cables");
            trial.gone.push(cable);
            proven.cut(&[(cable.a, cable.b)]).expect("a tree can be repaired");
            let left = trial.left();
            let repaired = burden(&left, &trial.lids, proven.routing());
            let afresh = trial.chain.route(&left, &trial.lids, &trial.options).expect("a routing");
            let full = burden(&left, &trial.lids, &afresh);
            let within = repaired.0 <= full.0 * 1.01 && repaired.1 <= full.1 * 1.01;
            assert!(within, "kind {kind}, {engine}, seed {seed}: {repaired:?}, but {full:?}");
            judged.insert((kind, engine));
        }
    }
    assert_eq!(judged.len(), 6);
}
