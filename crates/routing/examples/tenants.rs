//! pFTree's evaluation: what its extensions do for a partition, and at whose cost (Zahid 2016, sections 6.3 and 7.1).
//!
//! ```text
//! cargo run --release -p weft-routing --example tenants -- [DRAWS] [RUNS]
//! ```
//!
//! On the nine trees of table 3, victims are drawn DRAWS (5) times, as many on every leaf; all other hosts are the other
//! partition. Prints, in Markdown: the delay of the victims' patterns with the others silent and all of them sending to
//! all (table 4 and figure 10), over RUNS (20) orders of the victims for each draw; the bandwidth that the others keep
//! (figure 11); and contention and interference with receivers of weight 100 among the victims, from one on every leaf
//! to all (figures 13 to 15).

#![allow(clippy::disallowed_macros, reason = "an example prints what it finds")]

use std::collections::BTreeMap;

use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_pcg::Pcg64;
use weft_routing::quality::{
    Directions, Participants, Paths, Pattern, SimulateOptions, Summary, Traffic, contention, interference,
    simulate,
};
use weft_routing::{
    Engine, EngineOptions, Input, Isolation, Lids, Member, Partition, Partitions, Routing, Strictness,
};
use weft_topology::generate::{GenerateOptions, xgft};
use weft_topology::{Fabric, NodeIndex};
use weft_wire::{Guid, Lid};

/// Table 3: hosts on a leaf, leaves, roots; a fourth of the hosts are victims.
const TREES: [(u32, u32, u32); 9] = [
    (8, 4, 4),
    (12, 4, 4),
    (16, 4, 4),
    (16, 8, 8),
    (24, 8, 8),
    (32, 8, 8),
    (32, 16, 16),
    (48, 16, 16),
    (64, 16, 16),
];

const PATTERNS: [Pattern; 5] =
    [Pattern::Bisect, Pattern::BisectFbSym, Pattern::Gather, Pattern::Scatter, Pattern::AllToAll];

/// A host: its LID and its port's GUID.
type Host = (Lid, Guid);

fn main() {
    let mut arguments = std::env::args().skip(1).map(|text| text.parse().ok());
    let draws = arguments.next().flatten().unwrap_or(5);
    let runs = arguments.next().flatten().unwrap_or(20);
    println!("### Delay of the victims\n");
    println!("| hosts | pattern | pftree alone | beside alltoall | pftree-ext alone | beside alltoall |");
    println!("|---|---|---|---|---|---|");
    for shape in TREES {
        delays(&Scene::new(shape), draws, runs);
    }
    println!("\n### Bandwidth of the others under bisect\n");
    println!("| hosts | pftree | pftree-ext | kept |\n|---|---|---|---|");
    for shape in TREES {
        bandwidths(&Scene::new(shape), draws, runs);
    }
    println!("\n### Contention of receivers, and interference\n");
    println!(
        "| hosts | engine | total down | total up | contended links down | contended links up | interference |"
    );
    println!("|---|---|---|---|---|---|---|");
    for shape in TREES {
        receivers(&Scene::new(shape), draws);
    }
}

/// A tree and its hosts by leaf.
struct Scene {
    fabric: Fabric,
    lids: Lids,
    leaves: Vec<Vec<Host>>,
}

impl Scene {
    fn new((below, leaves, roots): (u32, u32, u32)) -> Self {
        let fabric = xgft(&[below, leaves], &[1, roots], &GenerateOptions::default()).expect("a tree");
        let lids = Lids::in_guid_order(&fabric, 0).expect("there are enough LIDs");
        let mut by_leaf: BTreeMap<NodeIndex, Vec<Host>> = BTreeMap::new();
        for end in lids.iter() {
            if let (false, Some(leaf)) = (fabric.node(end.port.node).is_switch(), fabric.peer(end.port)) {
                let guid = fabric.port(end.port).expect("it has a LID").guid;
                by_leaf.entry(leaf.node).or_default().push((end.base, guid));
            }
        }
        Self { fabric, lids, leaves: by_leaf.into_values().collect() }
    }

    fn hosts(&self) -> usize {
        self.leaves.iter().map(Vec::len).sum()
    }

    /// The victims, as many on every leaf, and the others; those on a leaf one after the other.
    fn draw(&self, seed: u64) -> [Vec<Host>; 2] {
        let mut random = Pcg64::seed_from_u64(seed);
        let mut drawn = [Vec::new(), Vec::new()];
        for leaf in &self.leaves {
            let mut hosts = leaf.clone();
            hosts.shuffle(&mut random);
            let others = hosts.split_off(hosts.len() / 4);
            drawn[0].extend(hosts);
            drawn[1].extend(others);
        }
        drawn
    }

    fn route(&self, engine: &str, groups: &[Vec<Host>; 2], weights: BTreeMap<Guid, u32>) -> Routing {
        let partition = |(place, hosts): (usize, &Vec<Host>)| Partition {
            name: ["victims", "others"][place].to_owned(),
            pkey: place as u16 + 1,
            members: hosts.iter().map(|(_, guid)| Member { guid: *guid, full: true }).collect(),
            isolation: if place == 0 { Isolation::Phy } else { Isolation::Def },
        };
        let list = groups.iter().enumerate().map(partition).collect();
        let partitions = Some(Partitions { list, strictness: Strictness::BestEffort });
        let options = EngineOptions { partitions, weights, ..EngineOptions::default() };
        let engine = Engine::by_name(engine).expect("the engine is there");
        let input = Input { fabric: &self.fabric, lids: &self.lids, options: &options };
        engine.route(&input).unwrap_or_else(|refusal| panic!("{refusal}"))
    }

    fn paths<'a>(&'a self, routing: &'a Routing) -> Paths<'a> {
        Paths::new(&self.fabric, &self.lids, &routing.routes)
    }
}

fn lids(hosts: &[Host]) -> Vec<Lid> {
    hosts.iter().map(|(lid, _)| *lid).collect()
}

/// Least, mean and greatest, of values seen several times each.
fn spread(values: &[(f64, u64)]) -> String {
    let Summary { min, mean, max, .. } = Summary::weighted(values.iter().copied());
    format!("{min:.0} / {mean:.1} / {max:.0}")
}

fn delays(scene: &Scene, draws: u32, runs: u32) {
    // By pattern, engine, and whether the others send.
    let mut seen: BTreeMap<(usize, usize, usize), Vec<(f64, u64)>> = BTreeMap::new();
    for draw in 0..draws {
        let groups = scene.draw(draw.into());
        let participants = Participants { first: lids(&groups[0]), second: lids(&groups[1]) };
        for (engine, name) in ["pftree", "pftree-ext"].into_iter().enumerate() {
            let routing = scene.route(name, &groups, BTreeMap::new());
            let paths = scene.paths(&routing);
            for (number, pattern) in PATTERNS.into_iter().enumerate() {
                for (noise, other) in [Pattern::Null, Pattern::AllToAll].into_iter().enumerate() {
                    let options = SimulateOptions { runs, seed: draw.into(), ..SimulateOptions::default() };
                    let traffic = Traffic::Versus(pattern, other);
                    let found = simulate(&paths, &participants, traffic, &options).expect("all have LIDs");
                    let bins = found.dep_max_delay.histogram.iter().map(|bin| (bin.from, bin.count));
                    seen.entry((number, engine, noise)).or_default().extend(bins);
                }
            }
        }
    }
    for (number, pattern) in PATTERNS.into_iter().enumerate() {
        let cell = |engine, noise| spread(&seen[&(number, engine, noise)]);
        println!(
            "| {} | {pattern} | {} | {} | {} | {} |",
            scene.hosts(),
            cell(0, 0),
            cell(0, 1),
            cell(1, 0),
            cell(1, 1)
        );
    }
}

fn bandwidths(scene: &Scene, draws: u32, runs: u32) {
    let mut sums = [0.0; 2];
    for draw in 0..draws {
        let groups = scene.draw(draw.into());
        let participants = Participants::all(lids(&groups[1]));
        for (sum, name) in sums.iter_mut().zip(["pftree", "pftree-ext"]) {
            let routing = scene.route(name, &groups, BTreeMap::new());
            let options = SimulateOptions { runs, seed: draw.into(), ..SimulateOptions::default() };
            let found = simulate(&scene.paths(&routing), &participants, Pattern::Bisect, &options);
            *sum += found.expect("all have LIDs").bandwidth().mean / f64::from(draws);
        }
    }
    let [plain, isolated] = sums;
    println!("| {} | {plain:.3} | {isolated:.3} | {:.1} % |", scene.hosts(), isolated * 100.0 / plain);
}

fn receivers(scene: &Scene, draws: u32) {
    let mut seen: [[Vec<(f64, u64)>; 5]; 2] = Default::default();
    let per_leaf = scene.leaves[0].len() / 4;
    for draw in 0..draws {
        let groups = scene.draw(draw.into());
        let (victims, others) = (lids(&groups[0]), lids(&groups[1]));
        for count in 1..=per_leaf {
            // The victims of a leaf stand together, in random order.
            let chosen: Vec<Host> =
                groups[0].chunks(per_leaf).flat_map(|leaf| leaf[..count].iter().copied()).collect();
            let weights: BTreeMap<Guid, u32> = chosen.iter().map(|(_, guid)| (*guid, 100)).collect();
            for (cells, name) in seen.iter_mut().zip(["pftree", "pftree-wt"]) {
                let weights = if name == "pftree" { BTreeMap::new() } else { weights.clone() };
                let routing = scene.route(name, &groups, weights);
                let paths = scene.paths(&routing);
                let directions = Directions::new(&paths, routing.ranks.as_ref());
                let found = contention(&paths, &victims, &lids(&chosen), &directions).expect("all have LIDs");
                let shared = interference(&paths, &[victims.clone(), others.clone()]).expect("all have LIDs");
                let (down, up) = (found.down, found.up);
                let values = [down.total, up.total, down.contended, up.contended, shared.occurrences];
                for (cell, value) in cells.iter_mut().zip(values) {
                    cell.push((value as f64, 1));
                }
            }
        }
    }
    for (cells, name) in seen.iter().zip(["pftree", "pftree-wt"]) {
        let cells: Vec<String> = cells.iter().map(|cell| spread(cell)).collect();
        println!("| {} | {name} | {} |", scene.hosts(), cells.join(" | "));
    }
}
