//! Paths calculated once and assigned by partition as often as those change: the tables of a full run.

use rand::RngExt;
use weft_routing::{
    CalculatedPaths, Chain, Engine, EngineOptions, Input, KeptPaths, Lids, PftreeOrder, Strictness,
};
use weft_topology::Fabric;
use weft_topology::generate::{GenerateOptions, pgft};

use super::common::{generator, options, random_partitions, route, seed, tree, try_route, without_cables};

const ENGINES: [&str; 4] = ["pftree", "pftree-ext", "pftree-wt", "pftree-combined"];

/// Trees of two and three ranks, with parallel cables, and with cables that are missing.
fn trees(random: &mut rand_pcg::Pcg64Mcg) -> Vec<Fabric> {
    let parallel = pgft(&[4, 4], &[1, 2], &[1, 2], &GenerateOptions::default()).expect("a tree");
    let three = tree(&[4, 4, 4], &[1, 4, 4]);
    let slim = tree(&[6, 3, 3], &[1, 3, 2]);
    let damaged = without_cables(&three, 3, random);
    let worse = without_cables(&parallel, 2, random);
    vec![tree(&[3, 3], &[1, 2]), tree(&[8, 4], &[1, 4]), parallel, three, slim, damaged, worse]
}

#[test]
fn assigned_tables_are_those_of_a_full_run() {
    let mut random = generator(seed());
    for (nth, fabric) in trees(&mut random).iter().enumerate() {
        let lids = Lids::in_guid_order(fabric, 0).expect("there are enough LIDs");
        let plain = EngineOptions::default();
        let input = Input { fabric, lids: &lids, options: &plain };
        let mut paths = CalculatedPaths::new(&input).unwrap_or_else(|reason| panic!("tree {nth}: {reason}"));
        for turn in 0..12 {
            let count = random.random_range(1..=6);
            let mut options = options(random_partitions(fabric, count, &mut random), Strictness::BestEffort);
            options.pftree_order = PftreeOrder::ALL[turn % PftreeOrder::ALL.len()];
            for (_, node) in fabric.hosts() {
                options.weights.insert(node.ports[1].guid, random.random_range(1..=100));
            }
            let name = ENGINES[turn % ENGINES.len()];
            let engine = Engine::by_name(name).expect("it is there");
            let input = Input { fabric, lids: &lids, options: &options };
            let full = try_route(name, fabric, &lids, &options);
            let assigned = paths.assign_unproven(engine, &input);
            assert_eq!(assigned, full, "tree {nth}, turn {turn}, {name}");
            if let (Ok(full), Ok(proven)) = (full, paths.assign(engine, &input)) {
                assert_eq!(proven.routes, full.routes, "tree {nth}, turn {turn}, {name}");
            }
        }
        let has_choice = nth == 2 || nth == 6;
        assert!(has_choice || paths.ways() > 0, "tree {nth} keeps no ways");
        // Not more than two for each LID.
        assert!(paths.ways() <= 2 * usize::from(lids.top().0), "{}", paths.ways());
    }
}

#[test]
fn a_chain_that_keeps_paths_routes_as_one_that_does_not() {
    let mut random = generator(seed());
    let mut kept = KeptPaths::default();
    let mut fabrics = trees(&mut random);
    fabrics.push(fabrics[0].virtualised(2).expect("it is virtualised").fabric);
    for (nth, fabric) in fabrics.iter().enumerate() {
        for turn in 0..6 {
            // Another LMC every third turn: paths of the turn before serve no longer.
            let lids = Lids::in_guid_order(fabric, u8::from(turn >= 3)).expect("there are enough LIDs");
            let count = random.random_range(1..=6);
            let partitions = random_partitions(fabric, count, &mut random);
            let options = super::common::options(partitions, Strictness::BestEffort);
            let chain: Chain = ["pftree", "pftree-ext", "minhop,pftree"][turn % 3].parse().expect("engines");
            let input = Input { fabric, lids: &lids, options: &options };
            let keeping = chain.route_keeping(&input, &mut kept);
            assert_eq!(keeping, chain.route(fabric, &lids, &options), "fabric {nth}, turn {turn}");
        }
    }
}

#[test]
fn paths_serve_only_what_they_were_calculated_for() {
    let fabric = tree(&[3, 3], &[1, 2]);
    let lids = Lids::in_guid_order(&fabric, 0).expect("there are enough LIDs");
    let plain = EngineOptions::default();
    let input = Input { fabric: &fabric, lids: &lids, options: &plain };
    let mut paths = CalculatedPaths::new(&input).expect("a tree");
    let refused = |paths: &mut CalculatedPaths, engine: &str, input: &Input<'_>| {
        let engine = Engine::by_name(engine).expect("it is there");
        paths.assign(engine, input).expect_err("it cannot be").to_string()
    };
    assert_eq!(refused(&mut paths, "minhop", &input), "minhop: it does not assign paths by partitions");
    let more = Lids::in_guid_order(&fabric, 1).expect("there are enough LIDs");
    let other = Input { lids: &more, ..input };
    assert!(refused(&mut paths, "pftree", &other).contains("were calculated for other LIDs"));
    let roots = EngineOptions {
        roots: vec![fabric.node(fabric.switches().next().expect("one").0).guid],
        ..plain.clone()
    };
    let other = Input { options: &roots, ..input };
    assert!(refused(&mut paths, "pftree", &other).contains("were calculated for other LIDs"));
    // A policy that cannot be kept is refused as in a full run.
    let mut strict = options(random_partitions(&fabric, 1, &mut generator(1)), Strictness::Strict);
    strict.isolation_share = 1001;
    let (_, full) = (route("pftree", &fabric, &plain), try_route("pftree-combined", &fabric, &lids, &strict));
    let other = Input { options: &strict, ..input };
    assert_eq!(refused(&mut paths, "pftree-combined", &other), full.expect_err("out of range").to_string());
}
