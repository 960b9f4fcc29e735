//! Rows that become fresh again once moves have left links too unevenly loaded.
//!
//! The load of links is counted here, by following all pairs of functions. `WEFT_SEED` replays one seed.

use std::collections::BTreeMap;

use super::client::lid_of;
use super::site::{Site, options, with};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use weft_machine::Time;
use weft_routing::Lids;
use weft_sm::{Activity, Event, GuidToLid, Options, Rebalances, VmLidOptions};
use weft_topology::generate::{GenerateOptions, xgft};
use weft_topology::{NodeIndex, PortRef};
use weft_wire::*;

const SEEDS: [u64; 3] = [1, 2, 3];
const MOVES: usize = 16;
const LEAVES: usize = 4;
const HOSTS: usize = 16;
const FUNCTIONS: u16 = 2;
const BELOW: u32 = 900;

fn site(rebalance_below: u32) -> Site {
    let physical = xgft(&[4, LEAVES as u32], &[1, 4], &GenerateOptions::default()).expect("a tree");
    Site::new(
        &physical,
        FUNCTIONS,
        Options {
            vm_lids: VmLidOptions { rebalance_below, ..VmLidOptions::default() },
            ..options("vswitch-ftree")
        },
    )
}

/// Functions of different hosts change places; what was drawn depends on the seed alone.
fn move_about(site: &mut Site, random: &mut Pcg64Mcg, epoch: u64) {
    let mut place = || (random.random_range(0..HOSTS), random.random_range(0..usize::from(FUNCTIONS)));
    let (from, to) = (place(), place());
    if from.0 == to.0 {
        return;
    }
    let ask = VmMove { epoch, ..site.swap(from, to) };
    site.done(&ask);
    site.exchange(from, to);
    settle(site);
}

/// Until the manager has seen both functions and has weighed its tables. Packets of each plan may be under way for 5.4 s.
fn settle(site: &mut Site) {
    site.world.run_for(Time::from_secs(2));
    let limit = site.world.now + Time::from_secs(300);
    while site.world.sm.progress().audit_pending {
        assert!(site.world.now < limit, "it comes to rest");
        site.world.run_for(Time::from_secs(1));
    }
}

/// The greatest number of pairs of functions on a link between physical switches.
fn busiest(site: &Site, port: impl Fn(NodeIndex, Lid) -> PortNum) -> u64 {
    let fabric = &site.world.fake.fabric;
    let is_virtual = |node: NodeIndex| site.adapters.iter().any(|adapter| adapter.vswitch == node);
    let functions: Vec<NodeIndex> = site.adapters.iter().flat_map(|adapter| adapter.vfs.clone()).collect();
    let mut pairs: BTreeMap<PortRef, u64> = BTreeMap::new();
    for to in &functions {
        let lid = lid_of(&site.world, *to, PortNum(1));
        for from in functions.iter().filter(|from| *from != to) {
            let mut at = fabric.peer(PortRef::new(*from, PortNum(1))).expect("a cable").node;
            while at != *to {
                let exit = PortRef::new(at, port(at, lid));
                at = fabric.peer(exit).expect("a cable").node;
                if fabric.node(at).is_switch() && !is_virtual(at) && !is_virtual(exit.node) {
                    *pairs.entry(exit).or_default() += 1;
                }
            }
        }
    }
    pairs.values().copied().max().unwrap_or(0)
}

fn now(site: &Site) -> u64 {
    busiest(site, |node, lid| site.world.fake.devices[node.index()].lft[usize::from(lid.0)])
}

/// By the engine, from nothing but cabling and LIDs.
fn fresh(site: &Site) -> u64 {
    let fabric = &site.world.fake.fabric;
    let ends = fabric
        .iter()
        .flat_map(|(index, node)| node.end_ports().map(move |(port, _)| PortRef::new(index, port)));
    let mut owners: Vec<(Lid, PortRef)> =
        ends.map(|end| (lid_of(&site.world, end.node, end.port), end)).collect();
    owners.sort();
    let mut lids = Lids::new();
    owners.into_iter().for_each(|(lid, end)| lids.insert(end, lid, 0).expect("its own"));
    let routing = options("vswitch-ftree").route(fabric, &lids, 1).expect("it is a tree");
    busiest(site, |node, lid| routing.routes.port(node, lid))
}

fn rebalanced(site: &Site) -> Vec<(u32, u32, u32, u32, Option<u32>)> {
    let told = |event: &Event| match event {
        Event::Rebalanced { lids, smps, kept, before, after } => Some((*lids, *smps, *kept, *before, *after)),
        _ => None,
    };
    site.world.events.iter().filter_map(|(_, event)| told(event)).collect()
}

fn moved_smps(site: &Site) -> u64 {
    let told = |event: &Event| match event {
        Event::MoveDone { smps, .. } => u64::from(*smps),
        _ => 0,
    };
    site.world.events.iter().map(|(_, event)| told(event)).sum()
}

fn seeds() -> Vec<u64> {
    let given = std::env::var("WEFT_SEED").ok().map(|seed| seed.parse().expect("a number"));
    given.map_or_else(|| SEEDS.to_vec(), |seed| vec![seed])
}

#[test]
fn after_moves_the_balance_is_back_above_what_was_asked_for() {
    let mut runs = 0;
    for seed in seeds() {
        let mut random = Pcg64Mcg::seed_from_u64(seed);
        let mut site = site(BELOW);
        let sets = site.lft_sets();
        for epoch in 1..=MOVES as u64 {
            move_about(&mut site, &mut random, epoch);
            let (now, fresh) = (now(&site), fresh(&site));
            assert!(
                fresh * 1000 >= now * u64::from(BELOW),
                "seed {seed}, move {epoch}: {now} pairs, {fresh} fresh"
            );
        }
        site.world.check();
        let told = rebalanced(&site);
        for (lids, smps, kept, before, after) in &told {
            let is_enough = after.is_some_and(|after| after >= BELOW);
            assert!(*before < BELOW && is_enough && *kept == 0, "seed {seed}: {told:?}");
            // A full rewrite sends each block of each switch.
            let full = site.world.fake.fabric.switches().count() as u32 * 2;
            assert!(*lids > 0 && *smps < full, "seed {seed}: {told:?}, {full} blocks in all");
        }
        let smps: u64 = told.iter().map(|(_, smps, ..)| u64::from(*smps)).sum();
        assert_eq!(site.lft_sets() - sets, moved_smps(&site) + smps, "seed {seed}: nothing else was written");
        let Rebalances { runs: counted, lids, smps: written, balance } =
            site.world.sm.progress().vm_lids.rebalances;
        let all: u64 = told.iter().map(|(lids, ..)| u64::from(*lids)).sum();
        assert_eq!((counted, lids, written), (told.len() as u64, all, smps), "seed {seed}");
        assert!(balance >= BELOW, "seed {seed}");
        runs += told.len();
        // Another manager takes these rows over as they are.
        site.world.restart_sm(
            Options {
                vm_lids: VmLidOptions { rebalance_below: BELOW, ..VmLidOptions::default() },
                ..options("vswitch-ftree")
            },
            &GuidToLid::default(),
        );
        site.world.run_until(Activity::Up);
        assert_eq!(site.lft_sets(), 0, "seed {seed}");
    }
    assert!(runs > 0, "moves never left the balance below {BELOW}");
}

#[test]
fn by_default_nothing_but_moves_is_written() {
    let mut below = 0;
    for seed in seeds() {
        let mut random = Pcg64Mcg::seed_from_u64(seed);
        let mut site = site(0);
        let sets = site.lft_sets();
        (1..=MOVES as u64).for_each(|epoch| move_about(&mut site, &mut random, epoch));
        assert_eq!(site.lft_sets() - sets, moved_smps(&site), "seed {seed}");
        assert_eq!(
            (rebalanced(&site).len(), site.world.sm.progress().vm_lids.rebalances),
            (0, Rebalances::default())
        );
        below += usize::from(fresh(&site) * 1000 < now(&site) * u64::from(BELOW));
    }
    assert!(below > 0, "so that the other test has something to do");
}

#[test]
fn a_machine_that_is_on_its_way_is_waited_for() {
    let mut site = with(Options {
        vm_lids: VmLidOptions { rebalance_below: 1000, ..VmLidOptions::default() },
        ..options("vswitch-ftree")
    });
    let mut random = Pcg64Mcg::seed_from_u64(7);
    for epoch in 1..=MOVES as u64 {
        let (from, to) = ((random.random_range(0..8), 0), (random.random_range(8..HOSTS), 1));
        site.done(&VmMove { epoch, ..site.swap(from, to) });
        let before = rebalanced(&site).len();
        site.unplug(from);
        site.unplug(to);
        site.world.run_for(Time::from_secs(8));
        assert_eq!(rebalanced(&site).len(), before, "move {epoch}: it is not there yet");
        let identities = [from, to].map(|at| site.world.fake.identity(site.vf(at)));
        site.plug(to, identities[0]);
        site.plug(from, identities[1]);
        settle(&mut site);
    }
    site.world.check();
    assert!(!rebalanced(&site).is_empty());
}
