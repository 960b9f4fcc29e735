//! Trees that lack cables: `ftree` spreads load over what is left, and `auto` takes it where it is not behind.
#![expect(clippy::disallowed_macros, reason = "randomised tests print their seeds")]
#![allow(clippy::unwrap_used, reason = "in a test a panic is the report")]

use weft_routing::quality::{
    Directions, Participants, Paths, Pattern, SimulateOptions, hosts, simulate, survey,
};
use weft_routing::{Chain, EngineOptions, Expectations, Lids, Routing, verify_routing};
use weft_topology::Fabric;
use weft_topology::generate::{Damage, GenerateOptions, degraded, pgft, xgft};

/// The seeds of a randomised test: that of `WEFT_SEED`, or the first `count`.
fn seeds(count: u64) -> Vec<u64> {
    let given = std::env::var("WEFT_SEED").ok().and_then(|seed| seed.parse().ok());
    given.map_or_else(|| (0..count).collect(), |seed| vec![seed])
}

fn without(fabric: &Fabric, cables: usize, seed: u64) -> Fabric {
    println!("WEFT_SEED={seed}");
    degraded(fabric, Damage { cables, switches: 0 }, seed).unwrap()
}

/// 31 leaves of 18 hosts under 9 spines, two cables each.
fn two_cables_each() -> Fabric {
    pgft(&[18, 31], &[1, 9], &[1, 2], &GenerateOptions::default()).unwrap()
}

/// A tree of three levels with as much room above as below.
fn three_levels() -> Fabric {
    xgft(&[6, 6, 12], &[1, 6, 6], &GenerateOptions::default()).unwrap()
}

/// One with less room above than below.
fn narrow() -> Fabric {
    xgft(&[9, 9, 4], &[1, 4, 6], &GenerateOptions::default()).unwrap()
}

fn routed(chain: &str, fabric: &Fabric) -> Routing {
    let lids = Lids::in_guid_order(fabric, 0).unwrap();
    chain.parse::<Chain>().unwrap().route(fabric, &lids, &EngineOptions::default()).unwrap()
}

/// How many pairs of hosts the least and the most used link between switches carry.
fn extremes(fabric: &Fabric, routing: &Routing) -> (f64, f64) {
    let lids = Lids::in_guid_order(fabric, 0).unwrap();
    let paths = Paths::new(fabric, &lids, &routing.routes);
    let hosts = hosts(fabric, &lids);
    let survey = survey(&paths, &hosts, &hosts).unwrap();
    assert_eq!(survey.failures, 0);
    let all = survey.balance(&Directions::new(&paths, None)).flows.all;
    (all.min, all.max)
}

fn bisection(fabric: &Fabric, routing: &Routing) -> f64 {
    let lids = Lids::in_guid_order(fabric, 0).unwrap();
    let paths = Paths::new(fabric, &lids, &routing.routes);
    let participants = Participants { first: hosts(fabric, &lids), second: Vec::new() };
    let options = SimulateOptions { runs: 50, seed: 7, ..SimulateOptions::default() };
    simulate(&paths, &participants, Pattern::Bisect, &options).unwrap().bandwidth().mean
}

#[test]
fn auto_takes_ftree_on_a_damaged_tree() {
    let whole = two_cables_each();
    assert_eq!(routed("auto", &whole).report.engine, "minhop", "a whole tree stays as it was");
    for seed in seeds(4) {
        let fabric = without(&whole, 26, seed);
        let (tree, updn) = (routed("auto", &fabric), routed("updn,no_fallback", &fabric));
        assert_eq!(tree.report.engine, "ftree");
        let why = &tree.report.fallbacks;
        let said = "minhop: this is a damaged tree, on which ftree is not behind: bisection 0.7";
        assert!(why.iter().any(|line| line.starts_with(said)), "{why:?}");
        assert!(extremes(&fabric, &tree).1 <= extremes(&fabric, &updn).1);
        assert!(bisection(&fabric, &tree) > bisection(&fabric, &updn));
        let lids = Lids::in_guid_order(&fabric, 0).unwrap();
        let verdict = verify_routing(&fabric, &lids, &tree, &Expectations::default());
        assert!(verdict.is_sound() && verdict.is_deadlock_free(), "{verdict}");
    }
}

#[test]
fn ftree_leaves_no_link_of_a_damaged_tree_idle() {
    for (whole, cables) in [(two_cables_each(), 26), (three_levels(), 12), (narrow(), 12)] {
        let (least, _) = extremes(&whole, &routed("ftree,no_fallback", &whole));
        for seed in seeds(4) {
            let fabric = without(&whole, cables, seed);
            let tree = routed("ftree,no_fallback", &fabric);
            let (min, max) = extremes(&fabric, &tree);
            // A link that carries less than an eighth of what it does on the whole tree is as good as idle.
            assert!(min >= least / 8.0, "{min} and {max}, where a whole tree has {least}");
        }
    }
}

#[test]
fn auto_is_behind_neither_updn_nor_ftree_in_both_respects() {
    for (whole, cables) in [(three_levels(), 12), (narrow(), 12), (narrow(), 40)] {
        for seed in seeds(4) {
            let fabric = without(&whole, cables, seed);
            let auto = routed("auto", &fabric);
            let updn = routed("updn,no_fallback", &fabric);
            assert!(extremes(&fabric, &auto).1 <= extremes(&fabric, &updn).1, "{:?}", auto.report);
            let said = |lines: &[String]| lines.iter().any(|line| line.contains("this damaged tree too"));
            assert!(auto.report.engine == "ftree" || said(&auto.report.notes), "{:?}", auto.report);
        }
    }
}

#[test]
fn auto_without_a_fallback_is_the_defaults_alone() {
    let fabric = xgft(&[2, 2], &[1, 2], &GenerateOptions::default()).unwrap();
    assert_eq!(routed("auto,no_fallback", &fabric).report.engine, "minhop");
    let ring = weft_topology::generate::ring(5, 1, &GenerateOptions::default()).unwrap();
    assert_eq!(routed("auto,no_fallback", &ring).report.engine, "updn");
}
