//! Safety during moves: orders, swaps, moves at the same time and soon after each other.

use std::collections::BTreeSet;

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;
use weft_routing::moves::{
    Counterexample, Kept, LatePolicy, Method, Move, Plan, PlanError, Planner, UpdateOrder,
};
use weft_routing::{Expectations, verify_routing, verify_transition};
use weft_topology::generate::{Damage, GenerateOptions, degraded, mesh, xgft};
use weft_topology::{Fabric, NodeIndex, PortRef};

use super::common::{Site, moved, write};

const SEED: u64 = 73;

const METHODS: [Method; 3] = [Method::FtreeMinrc, Method::Skyline, Method::Itrc];

fn pods() -> Fabric {
    xgft(&[2, 2, 2], &[1, 2, 2], &GenerateOptions::default()).expect("the parameters are sound")
}

/// Whether some mixture of the tables before and after a plan has a loop, by the verifier of transitions.
fn has_loop(site: &Site, plan: &Plan) -> bool {
    let mut after = site.routing.clone();
    write(&mut after.routes, plan);
    let lids = moved(&site.lids, &plan.moves);
    verify_transition(&site.fabric, &lids, &site.routing, &after, 8).loops > 0
}

#[test]
fn every_move_across_leaves_can_loop_unless_it_is_ordered() {
    let site = Site::new(pods(), "ftree", 1);
    let mut loops = 0;
    for (from, to) in (0..8).flat_map(|from| (0..8).map(move |to| (from, to))).filter(|(from, to)| from != to)
    {
        let one = [site.copy(1, from, to)];
        for method in METHODS {
            let at_once = site.planner().plan(&one, method, UpdateOrder::Unordered).expect("a plan");
            let proved = site.planner().prove(&at_once);
            let loops_here = matches!(proved, Err(Counterexample::Loop { round: 1, .. }));
            assert_eq!(loops_here, has_loop(&site, &at_once), "{from} {to} {method}");
            assert_eq!(loops_here, site.leaf(from) != site.leaf(to), "{from} {to} {method}");
            loops += usize::from(loops_here);
            let (plan, proof) = site.prove(&one, method).expect("ordered, it is safe");
            assert_eq!(plan.smps, at_once.smps, "order costs no SMP");
            assert!(plan.rounds.len() <= 2 * 3 + 1, "{} rounds", plan.rounds.len());
            assert_eq!(proof.mixtures as usize, plan.rounds.len());
            let has = |round: usize, host: usize| {
                plan.rounds[round].writes.iter().any(|write| write.switch == site.leaf(host))
            };
            assert!(has(0, to), "the destination's is first");
            assert!(has(plan.rounds.len() - 1, from), "and the source's last");
            let dropping = site.planner().plan(&one, method, UpdateOrder::DropFirst).expect("a plan");
            assert!(!matches!(site.planner().prove(&dropping), Err(Counterexample::Loop { .. })));
        }
    }
    assert_eq!(loops, 8 * 6 * METHODS.len());
}

#[test]
fn a_plan_with_a_round_too_few_is_refused() {
    let site = Site::new(pods(), "ftree", 1);
    let plan = site.plan(&[site.copy(1, 0, 7)], Method::FtreeMinrc);
    for first in 0..plan.rounds.len() - 1 {
        // The same writes, two rounds of them at the same time.
        let mut hasty = plan.clone();
        let writes = hasty.rounds.remove(first + 1).writes;
        hasty.rounds[first].writes.extend(writes);
        let proved = site.planner().prove(&hasty);
        assert!(matches!(proved, Err(Counterexample::Loop { .. })), "{first}: {proved:?}");
    }
    // The same in another order, with one row lost, and with one not written.
    let mut reversed = plan.clone();
    reversed.rounds.reverse();
    assert!(matches!(site.planner().prove(&reversed), Err(Counterexample::Loop { .. })));
    let lid = plan.moves[0].lid();
    let mut lost = plan.clone();
    lost.rounds[1].writes[0].ports[usize::from(lid.0) % 64] = weft_wire::PortNum::NONE;
    assert!(matches!(site.planner().prove(&lost), Err(Counterexample::Unreached { .. })));
    let mut short = plan.clone();
    short.rounds.last_mut().expect("some").writes.clear();
    assert!(matches!(site.planner().prove(&short), Err(Counterexample::Unreached { .. })));
}

#[test]
fn a_swap_with_an_idle_lid_is_one_plan_and_of_two_machines_two() {
    let mut site = Site::new(pods(), "ftree", 2);
    let swap = site.swap((0, 1), (7, 1));
    let Move::Swap { with, .. } = swap else { unreachable!("it is a swap") };
    for method in METHODS {
        // Both LIDs have packets under way: those of the one that turn up where they came down wait for those of the other.
        let plan = site.plan(&[swap], method);
        let proved = site.planner().prove(&plan);
        assert!(matches!(proved, Err(Counterexample::Circle { lane: 0, .. })), "{method}: {proved:?}");
        let (plan, proof) = site.prove(&[swap], method).expect("one after the other it is safe");
        assert_eq!(plan.rounds.iter().filter(|round| round.after_drain).count(), 1);
        assert_eq!((proof.lids.len(), plan.method), (2, method));
    }
    site.idle = BTreeSet::from([with]);
    site.keep();
    for method in METHODS {
        let (plan, proof) = site.prove(&[swap], method).expect("nobody sends to the other");
        assert!(plan.rounds.iter().all(|round| !round.after_drain));
        assert_eq!(proof.lids, [swap.lid()]);
        let mut after = site.routing.clone();
        write(&mut after.routes, &plan);
        let lids = moved(&site.lids, &[swap]);
        assert!(weft_routing::verify(&site.fabric, &lids, &after.routes, &[]).serves_hosts(), "{method}");
    }
}

#[test]
fn machines_that_change_places_are_moved_one_after_the_other() {
    let site = Site::new(pods(), "ftree", 1);
    let both = [site.copy(1, 0, 7), site.copy(1, 7, 0)];
    for method in METHODS {
        let proved = site.planner().prove(&site.plan(&both, method));
        assert!(matches!(proved, Err(Counterexample::Circle { .. })), "{method}: {proved:?}");
        let (plan, _) = site.prove(&both, method).expect("one after the other it is safe");
        assert_eq!(plan.rounds.iter().filter(|round| round.after_drain).count(), 1);
    }
    assert_eq!(
        site.prove(&[both[0], both[0]], Method::Itrc).map(drop),
        Err(PlanError::Twice(both[0].lid())),
        "not twice"
    );
}

#[test]
fn a_quick_second_move_is_proved_with_packets_in_flight() {
    let mut site = Site::new(pods(), "ftree", 1);
    let (there, back) = (site.copy(1, 0, 7), site.copy(1, 7, 0));
    let (plan, proof) = site.prove(&[there], Method::FtreeMinrc).expect("it is safe");
    assert!(proof.new_waits > 0, "packets that came down turn up");
    write(&mut site.routing.routes, &plan);
    site.lids = moved(&site.lids, &[there]);
    site.kept.admit(&proof);
    let soon = site.planner().prove(&site.plan(&[back], Method::FtreeMinrc));
    assert!(matches!(soon, Err(Counterexample::Circle { .. })), "{soon:?}");
    let drains = |site: &Site| {
        let (plan, _) = site.prove(&[back], Method::FtreeMinrc).expect("it is safe");
        assert!(plan.fallbacks.is_empty());
        plan.rounds.iter().map(|round| round.after_drain).collect::<Vec<_>>()
    };
    assert_eq!(drains(&site), [true, false, false, false, false], "once those packets are gone");
    site.kept.settle();
    assert_eq!(drains(&site), [false; 5]);
}

#[test]
fn moves_share_rounds_where_they_share_no_block_of_a_switch() {
    // Within two leaves, and LIDs of one block.
    let site = Site::new(pods(), "ftree", 1);
    let apart = [site.copy(1, 0, 1), site.copy(1, 4, 5)];
    let (plan, _) = site.prove(&apart, Method::FtreeMinrc).expect("it is safe");
    assert_eq!((plan.rounds.len(), plan.smps.physical), (1, 2));
    // At one switch and in one block: the second write has what the first wrote.
    let same = [site.copy(1, 0, 1), site.copy(1, 1, 0)];
    let (plan, _) = site.prove(&same, Method::FtreeMinrc).expect("it is safe");
    assert_eq!((plan.rounds.len(), plan.smps.physical), (2, 2));
    let mut after = site.routing.clone();
    write(&mut after.routes, &plan);
    let lids = moved(&site.lids, &same);
    assert!(weft_routing::verify(&site.fabric, &lids, &after.routes, &[]).serves_hosts());
}

#[test]
fn requests_that_contradict_the_fabric_are_errors() {
    let site = Site::new(pods(), "ftree", 1);
    let error = |one: Move| site.prove(&[one], Method::FtreeMinrc).expect_err("it is wrong").to_string();
    let (lid, other) = (site.lids_of(0)[1], site.lids_of(7)[0]);
    let name = |host: usize| site.fabric.port_name(site.host(host)).to_string();
    let wrong = Move::Copy { lid, from: site.host(1), to: site.host(7), of: other };
    assert_eq!(error(wrong), format!("LID {lid} belongs to {}, not to {}", name(0), name(1)));
    let wrong = Move::Copy { lid, from: site.host(0), to: site.host(4), of: other };
    assert_eq!(error(wrong), format!("the rows of LID {other} do not lead to {}", name(4)));
    let full = site.planner().plan(&[], Method::Full, UpdateOrder::Ordered).expect_err("no tables");
    assert_eq!(full, PlanError::NoFreshTables);
}

/// Packets of the old way go to its end, turn there, and come all the way back: each of the switches may hold them for its LifeTimeValue.
#[test]
fn packets_are_under_way_for_as_long_as_their_path_is() {
    for count in 3..10u16 {
        let line = mesh(&[u32::from(count)], 1, &GenerateOptions::default()).expect("a line");
        let site = Site::new(line, "minhop", 1);
        let last = usize::from(count) - 1;
        let plan = site.plan(&[site.copy(1, 0, last)], Method::Itrc);
        // The one beside the old end has sent it there, and from there it passes all but the new end.
        assert_eq!(plan.drain, u32::from(count), "{count} switches");
        // A row of the old way, then all switches of the new one.
        assert_eq!(plan.drain_broken, 2 * u32::from(count) + 1);
    }
}

/// By `--late` an unsafe row has a detour, or drops packets, or there is no plan; and no one is silent who is not with a detour.
#[test]
fn detours_leave_fewer_silent_and_refusal_leaves_no_plan() {
    let (mut spared, mut waited) = (0, 0);
    for seed in 0..12 {
        let whole = xgft(&[3, 6], &[1, 4], &GenerateOptions::default()).expect("a tree");
        let damage = Damage { cables: 4, switches: 0 };
        let Ok(tree) = degraded(&whole, damage, seed) else { continue };
        if tree.counts().components != 1 {
            continue;
        }
        let site = Site::new(tree, "ftree", 1);
        for (from, to) in [(0, 17), (3, 8), (6, 1), (9, 14), (15, 4)] {
            let one = [site.copy(1, from, to)];
            let plan = |late: LatePolicy| {
                let planner = Planner { late, ..site.planner() };
                planner.plan_and_prove(&one, Method::FtreeMinrc, UpdateOrder::Ordered)
            };
            let [(detour, _), (wait, _)] =
                [LatePolicy::Detour, LatePolicy::Wait].map(|late| plan(late).expect("a safe plan"));
            let refused = plan(LatePolicy::Refuse);
            let is_unsafe = wait.order != UpdateOrder::Ordered;
            assert_eq!(refused.is_err(), is_unsafe, "seed {seed}, {from} to {to}");
            let fewer = (detour.silence(), detour.silent.len()) <= (wait.silence(), wait.silent.len());
            assert!(wait.detours.is_empty() && fewer, "seed {seed}, {from} to {to}");
            spared += wait.silent.len() - detour.silent.len().min(wait.silent.len());
            waited += usize::from(!wait.silent.is_empty());
        }
    }
    assert!(spared > 0 && waited > 0, "detours have spared {spared}, in {waited} plans some are silent");
}

/// Real cabling with cables missing, where rows of two LIDs in one table go up after they came down.
#[test]
fn idle_lids_close_no_cycle_once_a_vm_takes_them() {
    let text = include_str!("../../../../../topologies/psmn-x5.topo");
    let fabric = weft_topology::parse("psmn-x5.topo", text).expect("a cabling");
    let hosts: Vec<NodeIndex> = fabric.hosts().map(|(host, _)| host).collect();
    let mut random = Pcg64::seed_from_u64(SEED);
    let site = Site::new(fabric, "ftree", 1);
    let (mut planned, mut fell_back) = (0, 0);
    for _ in 0..60 {
        let [from, to] = [(), ()].map(|()| hosts[random.random_range(0..hosts.len())]);
        let Some(swap) = swap(&site, from, to) else { continue };
        let Move::Swap { with, .. } = swap else { unreachable!("it is a swap") };
        for method in METHODS {
            let mut kept =
                Kept::new(&site.fabric, &site.lids, &site.routing, &site.options, &[], &BTreeSet::new())
                    .expect("one lane a level");
            kept.set_idle(BTreeSet::from([with]));
            let planner = Planner { kept: &kept, ..site.planner() };
            let Ok((plan, _)) = planner.plan_and_prove(&[swap], method, UpdateOrder::Ordered) else {
                continue;
            };
            planned += 1;
            fell_back += usize::from(plan.method != method);
            let mut after = site.routing.clone();
            write(&mut after.routes, &plan);
            let lids = moved(&site.lids, &[swap]);
            let verdict = verify_routing(&site.fabric, &lids, &after, &Expectations::default());
            let cycle = verdict.cycles.first().map(ToString::to_string);
            assert_eq!(cycle, None, "seed {SEED}: {method}: {swap:?}");
        }
    }
    assert!(
        planned > 100 && fell_back < planned,
        "seed {SEED}: {planned} planned, {fell_back} by other methods"
    );
}

/// Two functions of hosts change places.
fn swap(site: &Site, from: NodeIndex, to: NodeIndex) -> Option<Move> {
    let port = |host: NodeIndex| site.fabric.node(host).attach_port().map(|port| PortRef::new(host, port));
    let lid = |at: PortRef| site.lids.iter().filter(|lids| lids.port == at).map(|lids| lids.base).nth(1);
    let (from, to) = (port(from)?, port(to)?);
    (from != to).then_some(Move::Swap { lid: lid(from)?, from, to, with: lid(to)? })
}
