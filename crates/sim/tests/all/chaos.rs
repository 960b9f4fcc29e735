//! Chaos in virtual time: schedules drawn from seeds on small fabrics, with traffic; and the bugs that are put in on purpose, which
//! it must find and shrink.
//!
//! `WEFT_SCHEDULES` says how many (300 if not said), `WEFT_SEED` replays one.

use seeds::run_part;
use weft_chaos::{Planned, named, shrink};
use weft_fault::{FaultCost, Word};
use weft_sim::{ChaosReport, ChaosSite, SeededBug, TraceMode};
use weft_topology::{Fabric, NodeIndex, PortRef};

use crate::support::counts::Counts;
use crate::support::seeds;

const SCHEDULES: u64 = 300;
/// How many seeds of a part have some of everything.
const ALL_KINDS: u64 = 50;
/// Seeds in which each of the bugs must be found.
const SEEDS: u64 = 150;
/// Tries for making a schedule smaller.
const TRIES: u32 = 200;

/// What a report counts, but for what is a maximum.
fn counts(report: &ChaosReport) -> Counts {
    let ChaosReport { nodes, pairs, sent, delivered, link_losses, impaired, cost } = *report;
    Counts::from([
        ("nodes", nodes as u64),
        ("pairs", pairs),
        ("sent", sent),
        ("delivered", delivered),
        ("link losses", link_losses),
        ("impaired", impaired),
        ("detected", cost.detected),
    ])
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Found {
    counts: Counts,
    cost: FaultCost,
}

impl Found {
    fn sum(&mut self, other: Self) {
        self.counts.sum(other.counts);
        self.cost = self.cost.and(other.cost);
    }
}

fn written(fabric: &Fabric, schedule: &[Planned<NodeIndex, PortRef>]) -> String {
    let line = |planned| {
        let Planned { at, fault, lasts } = named(fabric, planned);
        format!("  {at} for {}: {fault}\n", lasts.unwrap_or_default())
    };
    schedule.iter().map(line).collect()
}

fn run(seed: u64, _: TraceMode) -> Result<(Found, u64), String> {
    let site = ChaosSite::small(seed).map_err(|error| error.to_string())?;
    let schedule = site.draw(seed);
    let report = site.judge(&schedule, seed, None).map_err(|error| {
        let (counts, faults) = (site.fabric.counts(), written(&site.fabric, &schedule));
        format!(
            "seed {seed} (WEFT_SEED={seed} replays it): {error}\n{counts:?}\n{:?}\n{faults}",
            site.laboratory
        )
    })?;
    Ok((Found { counts: counts(&report), cost: report.cost }, 0))
}

fn part(part: u64) {
    let Some((Found { counts, cost }, seeds)) = run_part(part, (SCHEDULES, 1), run, Found::sum) else {
        return;
    };
    if seeds >= ALL_KINDS {
        assert!(counts.least() > seeds, "something never happened: {counts:?}");
        let times = [cost.detected_after_ns_max, cost.rerouted_after_ns_max, cost.restored_after_ns_max];
        assert!(times.iter().all(|time| *time > Some(0)) && cost.pairs_lost_max > Some(0), "{cost:?}");
        let (sent, delivered) = (counts.get("sent"), counts.get("delivered"));
        assert!(delivered < sent && 2 * delivered > sent, "much arrives, and not all: {counts:?}");
    }
}

seeds::four_parts!(part);

/// The first seed in which a bug is found, and the schedule that is left of it.
fn found(bug: SeededBug) -> (u64, Vec<Planned<NodeIndex, PortRef>>) {
    for seed in 0..SEEDS {
        let site = ChaosSite::small(seed).unwrap();
        let schedule = site.draw(seed);
        let fails = |list: &[Planned<_, _>]| site.judge(list, seed, Some(bug)).is_err();
        if fails(&schedule) {
            let (left, tries) = shrink(schedule.clone(), TRIES, fails);
            assert!(tries < TRIES && left.len() <= schedule.len());
            assert_eq!(site.judge(&left, seed, None).err(), None, "without the bug all is well");
            return (seed, left);
        }
    }
    panic!("{} is in no schedule of {SEEDS}", bug.name());
}

#[test]
fn a_forgotten_link_up_is_found_and_shrunk_to_one_fault() {
    let (seed, left) = found(SeededBug::ForgottenLinkUp);
    assert_eq!(left.len(), 1, "seed {seed}: {left:?}");
}

#[test]
fn a_kept_credit_is_found_and_shrunk_to_the_loss() {
    let (seed, left) = found(SeededBug::KeptCredit);
    let words: Vec<Word> = left.iter().map(|planned| planned.fault.word()).collect();
    assert_eq!(words, [Word::Loss], "seed {seed}: {left:?}");
}

#[test]
fn the_lost_fault_bug_shrinks_to_a_fault_and_a_restart() {
    let (seed, left) = found(SeededBug::LostFault);
    assert_eq!(left.len(), 2, "seed {seed}: {left:?}");
    assert_eq!(left.iter().filter(|planned| planned.fault.word() == Word::Kill).count(), 1, "{left:?}");
}
