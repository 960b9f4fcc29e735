//! Moves that wait for packets, and a cable that is cut meanwhile: it is looked at, at once.

use super::client::Asked;
use super::site::{Site, tree};
use weft_machine::Time;
use weft_sm::{Activity, Event, Input, Past, SweepKind};
use weft_wire::*;

/// Asks for a move that waits for packets.
fn waits(site: &mut Site, ask: &VmMove) -> Asked {
    let asked = site.request(Method::Set, sa_attribute::VM_MOVE, ask);
    site.world.command(Input::Receive(asked.mad()));
    site.world.run_for(Time::from_secs(1));
    assert_eq!(site.world.sm.progress().activity, Activity::Moving);
    assert!(site.world.administration.is_empty());
    asked
}

/// Cuts a cable between a spine and a leaf; both say so. What the manager begins within a second.
fn cut(site: &mut Site) -> Vec<SweepKind> {
    let fabric = &site.world.fake.fabric;
    let spine = fabric.iter().find(|(_, node)| node.description == "switch-2-0").expect("a spine").0;
    let port = fabric.node(spine).cabled_ports().last().expect("a cable").0;
    let ends = site.world.fake.cut(weft_topology::PortRef::new(spine, port));
    let since = site.world.now;
    site.world.traps(&ends);
    site.world.run_for(Time::from_secs(1));
    let begun = site.world.events.iter().filter(|(at, _)| *at >= since);
    let kinds = begun.filter_map(|(_, event)| match event {
        Event::SweepStarted { kind, .. } => Some(*kind),
        _ => None,
    });
    kinds.collect()
}

/// What was answered to a request, if anything was.
fn answer(site: &mut Site) -> Option<VmMove> {
    let answer = site.world.administration.pop_front()?;
    Some(VmMove::from_bytes(&SaMad::data.get(&answer.mad.0)))
}

/// How many moves the log has since this was asked last: each is begun once, and carried out.
fn carried(site: &mut Site) -> usize {
    let log = site.world.sm.take_history();
    let moves: Vec<&Past> = log
        .iter()
        .filter(|past| !matches!(past, Past::Routed(_) | Past::Repaired { .. } | Past::Verified))
        .collect();
    for pair in moves.chunks(2) {
        assert!(matches!(pair, [Past::Planned(_), Past::Carried(_)]), "{moves:?}");
    }
    moves.len() / 2
}

/// A repair is verified afterwards, which decides about later repairs: who replays the log has to know when.
#[test]
fn the_log_has_a_repair_and_its_verification() {
    let mut site = tree();
    site.world.sm.keep_history();
    assert!(cut(&mut site).contains(&SweepKind::Repair));
    site.world.run_for(Time::from_secs(6));
    let log = site.world.sm.take_history();
    let repaired = log.iter().position(|past| matches!(past, Past::Repaired { .. })).expect("a repair");
    assert!(log[repaired..].contains(&Past::Verified), "{log:?}");
}

/// Nothing of the second move is written yet: it goes on by a plan for the cables that are left.
#[test]
fn one_that_has_not_begun_is_planned_again() {
    let mut site = tree();
    let pairs = [((1, 0), (2, 0)), ((5, 0), (6, 0))];
    let [first, second] = pairs.map(|(from, to)| site.swap(from, to));
    site.world.sm.keep_history();
    site.done(&first);
    site.exchange(pairs[0].0, pairs[0].1);
    assert_eq!(carried(&mut site), 1);
    waits(&mut site, &second);
    let kinds = cut(&mut site);
    assert!(kinds.iter().any(|kind| *kind != SweepKind::Light), "{kinds:?}");
    assert_eq!(answer(&mut site), None);
    site.world.check_with("the second is where it was");
    assert_eq!(carried(&mut site), 0, "nothing of it was sent");
    site.world.run_for(Time::from_secs(6));
    let done = answer(&mut site).expect("an answer");
    assert_eq!((done.result, done.vswitches), (VmMoveResult::Done, 2), "{}", done.reason_text());
    assert!(carried(&mut site) >= 1);
    assert!(done.took_us > 3_000_000, "packets of the first are gone: {done:?}");
    assert_eq!(site.events(|event| matches!(event, Event::MoveBroken { .. })), 0);
    site.exchange(pairs[1].0, pairs[1].1);
    // Some rows are late where a tree lacks a cable.
    site.world.run_for(Time::from_secs(8));
    site.world.check();
}

/// Some of its rounds are written, by a proof for a cabling that is no more: it ends there, and a sweep heals.
#[test]
fn one_that_has_begun_is_broken() {
    let mut site = tree();
    // Both LIDs are in use: packets for the one are gone before the other comes to its place.
    let ask = VmMove { partner_is_idle: 0, ..site.swap((1, 0), (9, 1)) };
    waits(&mut site, &ask);
    let kinds = cut(&mut site);
    assert!(kinds.contains(&SweepKind::Heavy), "{kinds:?}");
    let broken = answer(&mut site).expect("an answer");
    assert_eq!(broken.result, VmMoveResult::Broken);
    assert!(broken.reason_text().contains("the cabling may have changed"), "{}", broken.reason_text());
    site.world.check_with("nothing has moved");
    site.done(&VmMove { epoch: 2, ..ask });
    site.exchange((1, 0), (9, 1));
    site.world.run_for(Time::from_secs(8));
    site.world.check();
}
