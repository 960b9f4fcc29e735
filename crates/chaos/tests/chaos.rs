//! Schedules have every kind of fault, each with its end, and shrink to what is needed.

#![allow(clippy::unwrap_used, reason = "in a test a panic is the report")]

use std::collections::BTreeSet;

use proptest::prelude::*;
use weft_chaos::{Laboratory, Planned, Scope, draw, ends_at, named, resolved, shrink, steps};
use weft_fault::{Fault, Impaired, Process, Word};
use weft_machine::Time;
use weft_topology::generate::{GenerateOptions, ring, xgft};
use weft_topology::{Fabric, NodeIndex, Virtualised, parse};

fn tree() -> Fabric {
    xgft(&[2, 2], &[1, 2], &GenerateOptions::default()).unwrap()
}

#[test]
fn seeds_have_every_kind_of_fault_within_their_time() {
    let (fabric, scope) = (tree(), Scope::default());
    let mut words = BTreeSet::new();
    for seed in 0..300 {
        let schedule = draw(&fabric, seed, &scope);
        assert!((1..=scope.faults_max as usize).contains(&schedule.len()), "{schedule:?}");
        for planned in &schedule {
            assert!(planned.at >= scope.within.0 && planned.lasts.is_some(), "{planned:?}");
            words.insert(planned.fault.word());
        }
        assert!(ends_at(&schedule) <= scope.within.1);
        assert_eq!(steps(&schedule).len(), 2 * schedule.len(), "each has its end: {schedule:?}");
    }
    let begin = Word::OF_FAULTS.into_iter().filter(|word| {
        !matches!(word, Word::Restart | Word::LinkUp | Word::Thaw | Word::Heal | Word::GoodIdentity)
    });
    let all: BTreeSet<Word> = begin.chain(Word::OF_IMPAIRMENTS).collect();
    assert_eq!(words, all);
}

/// One fabric has one schedule of a seed, whatever the order in which a file lists its nodes and cables.
#[test]
fn the_order_of_a_file_changes_nothing() {
    let options = GenerateOptions::default();
    let (all, mut words) = (Laboratory { standbys: 1, pm: true, vmm: true }, 0);
    for fabric in [tree(), ring(4, 2, &options).unwrap(), xgft(&[4], &[1], &options).unwrap()] {
        let text = fabric.write_ibnetdiscover();
        let mut parts: Vec<&str> = text.split("\n\n").collect();
        parts.reverse();
        let turned = parse("turned.topo", &parts.join("\n\n")).unwrap();
        assert_ne!(turned.nodes()[0].guid, fabric.nodes()[0].guid, "the file is another one");
        for (seed, laboratory) in (0..100).flat_map(|seed| [(seed, Laboratory::default()), (seed, all)]) {
            let drawn = |fabric: &Fabric| -> Vec<Planned<String, String>> {
                let schedule = draw(fabric, seed, &Scope::of(laboratory, &[]));
                schedule.iter().map(|planned| named(fabric, planned)).collect()
            };
            let schedule = drawn(&fabric);
            words += schedule.len();
            assert_eq!(schedule, drawn(&turned), "seed {seed}");
        }
    }
    assert!(words > 600);
}

/// Every process that a laboratory has is killed and frozen by some seed, and none that it has not.
#[test]
fn managers_are_killed_and_frozen_where_there_are_any() {
    let all = Laboratory { standbys: 2, pm: true, vmm: true };
    for laboratory in [Laboratory::default(), all] {
        let (mut killed, mut frozen) = (BTreeSet::new(), BTreeSet::new());
        for planned in (0..2000).flat_map(|seed| draw(&tree(), seed, &Scope::of(laboratory, &[]))) {
            match planned.fault {
                Fault::Kill(process) if !matches!(process, Process::Agent(_)) => killed.insert(process),
                Fault::Freeze(process) if !matches!(process, Process::Agent(_)) => frozen.insert(process),
                _ => false,
            };
        }
        let there: BTreeSet<_> = laboratory.processes().into_iter().collect();
        assert_eq!((killed, frozen), (there.clone(), there));
    }
    let schedule = (0..200).flat_map(|seed| draw(&tree(), seed, &Scope::of(all, &[]))).collect::<Vec<_>>();
    assert_eq!(Laboratory::default().with(&schedule), all);
}

/// Faults befall the cables of a vSwitch and of its functions alike; where the functions are empty
/// slots, only the cables between the vSwitch and other nodes.
#[test]
fn nothing_befalls_the_cables_of_empty_slots() {
    let Virtualised { fabric, adapters } = tree().virtualised(2).unwrap();
    let slots: Vec<NodeIndex> = adapters.iter().flat_map(|adapter| adapter.vfs.iter().copied()).collect();
    let befallen = |empty_slots: &[NodeIndex]| {
        let scope = Scope { empty_slots, ..Scope::default() };
        let faults = (0..300).flat_map(|seed| draw(&fabric, seed, &scope)).map(|planned| planned.fault);
        let at = faults.filter_map(|fault| match fault {
            Fault::LinkDown(at) | Fault::Impair(Impaired { at, .. }) => Some(at),
            _ => None,
        });
        at.flat_map(|at| [at.node, fabric.peer(at).unwrap().node]).collect::<BTreeSet<_>>()
    };
    let all = befallen(&[]);
    assert!(fabric.iter().all(|(node, _)| all.contains(&node)), "every node has its share");
    let left = fabric.iter().map(|(node, _)| node).filter(|node| !slots.contains(node));
    assert_eq!(befallen(&slots), left.collect());
    // Slots are nodes like others for whatever befalls a process.
    let scope = Scope { empty_slots: &slots, ..Scope::default() };
    let faults = (0..300).flat_map(|seed| draw(&fabric, seed, &scope)).map(|planned| planned.fault);
    let mut killed = faults.filter_map(|fault| match fault {
        Fault::Kill(Process::Agent(node)) => Some(node),
        _ => None,
    });
    assert!(killed.any(|node| slots.contains(&node)));
}

#[test]
fn without_kills_no_process_dies() {
    let scope = Scope { kills: false, ..Scope::default() };
    let fabric = ring(3, 1, &GenerateOptions::default()).unwrap();
    let faults = (0..100).flat_map(|seed| draw(&fabric, seed, &scope));
    assert!(faults.into_iter().all(|planned| !matches!(planned.fault, Fault::Kill(_))));
}

#[test]
fn schedules_survive_their_names() {
    let fabric = tree();
    for seed in 0..100 {
        for planned in draw(&fabric, seed, &Scope::default()) {
            assert_eq!(resolved(&fabric, &named(&fabric, &planned)), Ok(planned));
        }
    }
    let planned = |fault: &str| Planned::<String, String> {
        at: Time::ZERO,
        fault: fault.parse().unwrap(),
        lasts: None,
    };
    for bad in [
        "kill no-such-node",
        "link-down nowhere/1",
        "link-down host-0/9",
        "link-down host-0",
        "partition host-0,x",
    ] {
        assert!(resolved(&fabric, &planned(bad)).is_err(), "{bad}");
    }
}

proptest! {
    /// A bug that needs some of the faults, each for a while.
    #[test]
    fn shrinking_keeps_only_faults_the_bug_needs(seed in 0u64..10_000, needed in proptest::collection::btree_set(0usize..8, 1..4), millis in 1u64..40) {
        let schedule = draw(&tree(), seed, &Scope::default());
        let needed: BTreeSet<_> = needed.into_iter().filter_map(|place| schedule.get(place)).map(|p| p.fault.clone()).collect();
        let least = Time::from_millis(millis);
        let fails = |list: &[Planned<_, _>]| needed.iter().all(|fault| {
            list.iter().any(|planned| planned.fault == *fault && planned.lasts >= Some(least))
        });
        prop_assume!(!needed.is_empty() && fails(&schedule));
        let (left, tries) = shrink(schedule, 10_000, fails);
        prop_assert!(fails(&left) && tries < 10_000);
        prop_assert_eq!(left.iter().map(|planned| planned.fault.clone()).collect::<BTreeSet<_>>(), needed);
        prop_assert!(left.iter().all(|planned| planned.lasts < Some(Time::from_millis(2 * millis + 2))), "{:?}", left);
    }

    #[test]
    fn it_ends_with_its_tries(seed in 0u64..1000, most in 0u32..20) {
        let schedule = draw(&tree(), seed, &Scope::default());
        let mut asked = 0;
        let (left, tries) = shrink(schedule, most, |_| { asked += 1; true });
        prop_assert!(asked == tries && tries <= most && !left.is_empty());
    }
}
