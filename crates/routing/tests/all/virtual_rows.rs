//! LIDs of virtual functions: rows that follow the physical function's, and rows that stay, LID by LID.
//!
//! `WEFT_SEED` replays one of the random cases.

use std::collections::BTreeSet;

use rand::seq::IndexedRandom;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;
use weft_routing::{
    Engine, EngineOptions, Expectations, Input, KeptRows, Lids, Routes, Routing, VirtualRows,
    WEIGHT_OF_A_HOST, trace, verify_routing, vswitches,
};
use weft_topology::generate::{GenerateOptions, xgft};
use weft_topology::{NodeIndex, PortRef, UPLINK, Virtualised};
use weft_wire::{Lid, PortNum};

/// 4 leaves of 4 hosts below 2 spines.
fn tree(vfs: u16) -> Virtualised {
    xgft(&[4, 4], &[1, 2], &GenerateOptions::default()).unwrap().virtualised(vfs).unwrap()
}

fn route(whole: &Virtualised, lids: &Lids, engine: &str) -> Routing {
    let input = Input { fabric: &whole.fabric, lids, options: &EngineOptions::default() };
    Engine::by_name(engine).unwrap().route(&input).unwrap()
}

fn port(node: NodeIndex) -> PortRef {
    PortRef::new(node, PortNum(1))
}

fn lid(lids: &Lids, port: PortRef) -> Lid {
    lids.of(port).unwrap().base
}

fn physical(whole: &Virtualised) -> Vec<NodeIndex> {
    let inner: BTreeSet<NodeIndex> = whole.adapters.iter().map(|adapter| adapter.vswitch).collect();
    whole.fabric.switches().map(|(node, _)| node).filter(|node| !inner.contains(node)).collect()
}

fn is_proven(whole: &Virtualised, lids: &Lids, routing: &Routing) {
    let expected = Expectations { tree: true, ..Expectations::default() };
    let verdict = verify_routing(&whole.fabric, lids, routing, &expected);
    assert!(verdict.is_sound() && verdict.is_deadlock_free(), "{verdict}");
}

#[test]
fn a_booting_vm_takes_its_hosts_rows_and_changes_no_other() {
    let mut whole = tree(2).unplugged();
    let physical_lids = Lids::in_guid_order(&whole.fabric, 0).unwrap();
    // 6 switches, 16 hosts and 16 vSwitches, and functions without cables that have none.
    let used: Vec<Lid> = physical_lids.iter().map(|range| range.base).collect();
    assert_eq!(used.len(), 38);
    let (space, options) = (Lid(127), EngineOptions::default());
    let copied = |whole: &Virtualised, lids: &Lids| {
        let mut routing = route(whole, &physical_lids, "ftree");
        let found = vswitches(&whole.fabric, &[]);
        let rows = VirtualRows { fabric: &whole.fabric, vswitches: &found, lids, options: &options };
        rows.copy(&mut routing, space);
        rows.prove(&routing).unwrap();
        routing
    };
    let before = copied(&whole, &physical_lids);
    for adapter in &whole.adapters {
        let table = before.routes.table(adapter.vswitch).unwrap();
        let up = table.routes().filter(|(_, port)| *port == UPLINK).count();
        assert_eq!(up, usize::from(space.0) - 2, "all but the vSwitch's and the host's own go up");
    }
    let (slot, vf) = whole.adapters[5].slots().nth(1).unwrap();
    let mut builder = whole.fabric.clone();
    builder.reconnect(slot, vf, builder.port(vf).unwrap().link);
    whole.fabric = builder;
    let mut lids = physical_lids.clone();
    lids.insert(vf, Lid(70), 0).unwrap();
    let after = copied(&whole, &lids);
    is_proven(&whole, &lids, &after);
    let host = lid(&lids, port(whole.adapters[5].pf));
    for node in physical(&whole) {
        assert_eq!(after.routes.port(node, Lid(70)), after.routes.port(node, host));
    }
    for (index, _) in whole.fabric.switches() {
        let [old, new] = [&before, &after].map(|routing| routing.routes.table(index).unwrap());
        let changed: Vec<u16> =
            (1..=space.0).filter(|lid| old.port(Lid(*lid)) != new.port(Lid(*lid))).collect();
        let is_elsewhere = whole.adapters.iter().any(|at| at.vswitch == index) && index != slot.node;
        assert_eq!(changed, if is_elsewhere { vec![] } else { vec![70] }, "{}", whole.fabric.node(index).id);
        assert_eq!(old.top(), new.top(), "no switch is told of another top");
    }
}

/// Gives one LID the rows of another at some switches.
fn take_over(routes: &mut Routes, switches: &[NodeIndex], to: Lid, from: Lid) {
    for node in switches {
        let port = routes.port(*node, from);
        routes.tables[node.index()].set(to, port);
    }
}

fn keep(whole: &Virtualised, lids: &Lids, fresh: &Routing, standing: &Routes) -> (Routing, KeptRows) {
    let (found, options) = (vswitches(&whole.fabric, &[]), EngineOptions::default());
    let rows = VirtualRows { fabric: &whole.fabric, vswitches: &found, lids, options: &options };
    let mut routing = fresh.clone();
    let kept = rows.keep(&mut routing, standing);
    (routing, kept)
}

fn column(whole: &Virtualised, routes: &Routes, lid: Lid) -> Vec<PortNum> {
    physical(whole).into_iter().map(|node| routes.port(node, lid)).collect()
}

#[test]
fn rows_stay_that_hold_and_half_a_move_does_not() {
    let whole = tree(2);
    let lids = Lids::in_guid_order(&whole.fabric, 0).unwrap();
    let fresh = route(&whole, &lids, "ftree");
    let vf = |host: usize, number: usize| lid(&lids, port(whole.adapters[host].vfs[number]));
    let switches = physical(&whole);
    let mut standing = fresh.routes.clone();
    // The rows of another function of the same host hold as well as its own.
    take_over(&mut standing, &switches, vf(0, 0), vf(0, 1));
    // A move from host 9 to host 1 of which half the switches know; the function is at host 9 again.
    take_over(&mut standing, &switches[..3], vf(9, 0), vf(1, 0));
    // The same for one that has been written everywhere: nothing leads to where the function is.
    take_over(&mut standing, &switches, vf(9, 1), vf(1, 1));
    // A switch that holds no row for a LID takes the engine's, and the others keep theirs.
    take_over(&mut standing, &switches, vf(12, 0), vf(12, 1));
    standing.tables[switches[0].index()].set(vf(12, 0), PortNum::NONE);
    assert_ne!(column(&whole, &standing, vf(0, 0)), column(&whole, &fresh.routes, vf(0, 0)));
    let (routing, kept) = keep(&whole, &lids, &fresh, &standing);
    is_proven(&whole, &lids, &routing);
    assert_eq!(kept, KeptRows { kept: 2, replaced: 2 });
    assert_eq!(column(&whole, &routing.routes, vf(0, 0)), column(&whole, &standing, vf(0, 0)));
    for lid in [vf(9, 0), vf(9, 1)] {
        assert_eq!(column(&whole, &routing.routes, lid), column(&whole, &fresh.routes, lid));
    }
    assert_eq!(column(&whole, &routing.routes, vf(12, 0))[1..], column(&whole, &standing, vf(12, 0))[1..]);
    // What was decided once is decided so again.
    let (again, kept) = keep(&whole, &lids, &fresh, &routing.routes);
    assert_eq!((again.routes, kept.replaced), (routing.routes, 0));
}

/// Whether packets from every host and switch arrive by these tables, and whether by as few cables as by the engine's.
fn arrives(whole: &Virtualised, lids: &Lids, (routes, fresh): (&Routes, &Routes), lid: Lid) -> (bool, bool) {
    let owner = lids.owner(lid).unwrap();
    let (mut all, mut short) = (true, true);
    for (node, found) in whole.fabric.iter().filter(|(node, _)| *node != owner.node) {
        let from = if found.is_switch() { PortRef::new(node, PortNum::ZERO) } else { port(node) };
        let cables = |routes| trace(&whole.fabric, lids, routes, from, lid).map(|path| path.cables());
        let (old, new) = (cables(routes), cables(fresh));
        all &= old.is_ok();
        short &= old.ok() == new.ok();
    }
    (all, short)
}

#[test]
fn standing_virtual_rows_are_kept_only_if_they_hold() {
    let seeds: Vec<u64> = match std::env::var("WEFT_SEED") {
        Ok(seed) => vec![seed.parse().unwrap()],
        Err(_) => (0..24).collect(),
    };
    let whole = tree(2);
    let lids = Lids::in_guid_order(&whole.fabric, 0).unwrap();
    let functions: Vec<Lid> =
        whole.adapters.iter().flat_map(|at| &at.vfs).map(|vf| lid(&lids, port(*vf))).collect();
    let all: Vec<Lid> = lids.iter().map(|range| range.base).collect();
    let switches = physical(&whole);
    for engine in ["ftree", "vswitch-ftree"] {
        let fresh = route(&whole, &lids, engine);
        let (mut kept_some, mut replaced_some) = (false, false);
        for seed in &seeds {
            let mut random = Pcg64::seed_from_u64(*seed);
            let mut standing = fresh.routes.clone();
            for _ in 0..random.random_range(1..8) {
                let to = *functions.choose(&mut random).unwrap();
                let owner = whole.adapters.iter().find(|at| at.vfs.contains(&lids.owner(to).unwrap().node));
                let sibling = lid(&lids, port(*owner.unwrap().vfs.choose(&mut random).unwrap()));
                let from = if random.random_bool(0.5) { sibling } else { *all.choose(&mut random).unwrap() };
                let some: Vec<NodeIndex> =
                    switches.iter().copied().filter(|_| random.random_bool(0.6)).collect();
                take_over(&mut standing, &some, to, from);
            }
            let (routing, _) = keep(&whole, &lids, &fresh, &standing);
            is_proven(&whole, &lids, &routing);
            for lid in &functions {
                let [old, new, now] =
                    [&standing, &fresh.routes, &routing.routes].map(|routes| column(&whole, routes, *lid));
                let (arrives, short) = arrives(&whole, &lids, (&standing, &fresh.routes), *lid);
                let hint = format!("{engine}, LID {lid}: WEFT_SEED={seed}");
                assert!(now == old || now == new, "{hint}");
                assert!(arrives || now == new, "{hint}: rows that lead nowhere are replaced");
                // A shortest path between hosts of a tree goes up and then down, so nothing speaks against it.
                assert!(!short || now == old, "{hint}: rows that hold stay");
                kept_some |= old != new && now == old;
                replaced_some |= now != old;
            }
            for lid in all.iter().filter(|lid| !functions.contains(lid)) {
                assert_eq!(column(&whole, &routing.routes, *lid), column(&whole, &fresh.routes, *lid));
            }
        }
        assert!(seeds.len() == 1 || kept_some && replaced_some, "{engine}: both happened");
    }
}

#[test]
fn rows_of_a_lid_between_slots_stay_unless_they_loop() {
    let whole = tree(2);
    let lids = Lids::in_guid_order(&whole.fabric, 0).unwrap();
    let gone = lid(&lids, port(whole.adapters[3].vfs[0]));
    let without = {
        let mut without = Lids::new();
        for range in lids.iter().filter(|range| range.base != gone) {
            without.insert(range.port, range.base, 0).unwrap();
        }
        without
    };
    let (standing, fresh) = (route(&whole, &lids, "ftree").routes, route(&whole, &without, "ftree"));
    let (found, options) = (vswitches(&whole.fabric, &[]), EngineOptions::default());
    let rows = VirtualRows { fabric: &whole.fabric, vswitches: &found, lids: &without, options: &options };
    let mut routing = fresh.clone();
    rows.rest(&mut routing, &standing, &BTreeSet::from([gone]));
    for (node, _) in whole.fabric.switches() {
        assert_eq!(routing.routes.port(node, gone), standing.port(node, gone));
    }
    // A vSwitch that sends it up again, and a leaf that sends it down there.
    let mut circle = standing;
    circle.tables[whole.adapters[3].vswitch.index()].set(gone, UPLINK);
    let mut routing = fresh.clone();
    rows.rest(&mut routing, &circle, &BTreeSet::from([gone]));
    assert_eq!(routing.routes, fresh.routes);
}

/// An engine that weighs virtual machines knows which LID is the host's own, even if that is not the lowest, and that
/// operators name virtual functions.
#[test]
fn the_host_s_own_lid_is_the_physical_function_s() {
    let whole = tree(2);
    let mut lids = Lids::new();
    // Virtual functions first.
    let vfs = whole.adapters.iter().flat_map(|adapter| &adapter.vfs).map(|vf| port(*vf));
    let rest = whole.adapters.iter().map(|adapter| port(adapter.pf));
    let switches = whole.fabric.switches().map(|(node, _)| PortRef::new(node, PortNum::ZERO));
    for (number, port) in (1..).zip(vfs.chain(rest).chain(switches)) {
        lids.insert(port, Lid(number), 0).unwrap();
    }
    let weigh = |lid: Lid| {
        let vm_weights = [(lid, WEIGHT_OF_A_HOST)].into();
        let options = EngineOptions { vm_weights, ..EngineOptions::default() };
        let input = Input { fabric: &whole.fabric, lids: &lids, options: &options };
        Engine::by_name("vswitch-ftree").unwrap().route(&input).map(|_| ()).map_err(|error| error.to_string())
    };
    let adapter = &whole.adapters[0];
    assert_eq!(weigh(lid(&lids, port(adapter.vfs[0]))), Ok(()));
    for own in [port(adapter.pf), PortRef::new(adapter.vswitch, PortNum::ZERO)] {
        let error = weigh(lid(&lids, own)).unwrap_err();
        assert!(error.contains("it is no virtual machine's"), "{error}");
    }
    let guid = |node: NodeIndex| whole.fabric.node(node).guid;
    let ordered = |order: Vec<_>| {
        let options = EngineOptions { order, ..EngineOptions::default() };
        let input = Input { fabric: &whole.fabric, lids: &lids, options: &options };
        Engine::by_name("ftree").unwrap().route(&input).unwrap()
    };
    let (by_vf, by_pf) =
        (ordered(vec![guid(whole.adapters[7].vfs[1])]), ordered(vec![guid(whole.adapters[7].pf)]));
    assert_eq!(by_vf, by_pf);
    assert_ne!(by_vf.routes, ordered(Vec::new()).routes);
}
