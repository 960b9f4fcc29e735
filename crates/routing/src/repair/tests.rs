use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use weft_topology::generate::{GenerateOptions, RandomFabric, random, torus, xgft};
use weft_wire::PortNum;

use super::*;
use crate::engines::Chain;
use crate::verify::{Expectations, verify_routing};

fn fabric(seed: u64) -> Fabric {
    let options = GenerateOptions::default();
    let irregular = RandomFabric { switches: 9, hosts: 18, extra_cables: 9, parallel_cables: 2 };
    let fabric = match seed % 3 {
        0 => xgft(&[2, 2, 3], &[1, 2, 2], &options),
        1 => torus(&[3, 4], 1, &options),
        _ => random(&irregular, seed, &options),
    };
    fabric.expect("the parameters are sound")
}

/// Changes some rows at random, and asks both the proof of those LIDs and the verifier of everything.
fn spoil(seed: u64) -> Option<(bool, bool)> {
    let mut rng = Pcg64Mcg::seed_from_u64(seed);
    let fabric = fabric(seed);
    let lids = Lids::in_guid_order(&fabric, 0).expect("enough LIDs");
    let (options, chain) =
        (EngineOptions::default(), "updn,dfsssp,no_fallback".parse::<Chain>().expect("a chain"));
    let routing = chain.route(&fabric, &lids, &options).ok()?;
    let mut proven = Proven::new(fabric, lids, routing, &options).ok()?;
    let ground = Ground::new(&proven.fabric, &proven.lids, &[]);
    let mut spoiled = Vec::new();
    for _ in 0..rng.random_range(1..4) {
        let node = ground.graph.nodes[rng.random_range(0..ground.len())];
        let lid = ground.ends[rng.random_range(0..ground.ends.len())].lid;
        let port = PortNum(rng.random_range(1..=proven.fabric.node(node).port_count()));
        let before = PortRef::new(node, proven.routing.routes.port(node, lid));
        proven.routing.routes.tables[node.index()].set(lid, port);
        spoiled.push(Row { before, lid, after: port });
    }
    let changed = Changed::of(&ground, &spoiled);
    let proof = proven.books.prove(&ground, &proven.routing, proven.lanes, &changed);
    let verdict = verify_routing(&proven.fabric, &proven.lids, &proven.routing, &Expectations::default());
    let holds = verdict.is_sound() && verdict.is_deadlock_free();
    let proof = proven.confirm(proof);
    Some((proof.is_ok(), holds))
}

/// Whatever the rows are, the proof of what is new says what the verifier of everything says.
#[test]
fn the_proof_is_as_strict_as_the_verifier() {
    let (mut good, mut bad) = (0, 0);
    for seed in 0..1000 {
        let Some((proven, holds)) = spoil(seed) else { continue };
        assert_eq!(proven, holds, "seed {seed}");
        *(if holds { &mut good } else { &mut bad }) += 1;
    }
    assert!(good > 50 && bad > 50, "{good} hold and {bad} do not");
}
