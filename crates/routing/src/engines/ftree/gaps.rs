//! Pairs that no path up and then down connects, and how they are routed.

use std::collections::BTreeSet;

use weft_vocabulary::routing::{EngineReport, TURNS};
use weft_wire::count_of;

use super::detours::Detours;
use super::mend::Way;
use super::turns::Turns;
use crate::input::Input;
use crate::sorted;
use crate::tree::{End, EndKind, Tree};

/// What paths up and down do not connect.
#[derive(Default)]
pub(super) struct Gaps {
    /// Pairs that go down before they go up.
    detoured: Tally,
    /// Ways between switches with hosts and switches without that no detour at one leaf serves.
    pub(super) lacking: Vec<Way>,
}

/// Looks at all switches with hosts. Fails with a sentence when two hosts have no path.
pub(super) fn find(input: &Input<'_>, tree: &Tree, turns: &Turns, detours: &Detours) -> Result<Gaps, String> {
    let mut gaps = Gaps::default();
    let in_order = |mut list: Vec<u32>| {
        sorted::numbers(&mut list, |at| tree.tuples[at as usize]);
        list
    };
    for from in in_order((0..tree.graph.len() as u32).filter(|at| detours.has_hosts(*at)).collect()) {
        for to in in_order(detours.cut_off(turns, from).collect()) {
            let ways = [(from, to), (to, from)];
            let depths = ways.map(|(from, to)| detours.for_hosts(from, to));
            if detours.has_hosts(to) {
                let [there, back] = depths;
                check_hosts(input, tree, from, to, there.zip(back).map(|(there, back)| there.max(back)))?;
            }
            let lacking = ways.iter().zip(depths).filter(|(_, depth)| depth.is_none()).map(|(way, _)| *way);
            let served = gaps.lacking.len();
            gaps.lacking.extend(lacking);
            if gaps.lacking.len() == served {
                gaps.detoured.add((from, to));
            }
        }
    }
    Ok(gaps)
}

impl Gaps {
    /// Says what goes down before it goes up, and what has no path because a circle could close. `failed` are the ways
    /// of those lacking that could not be mended.
    pub(super) fn report(self, input: &Input<'_>, tree: &Tree, failed: &[Way], report: &mut EngineReport) {
        let name = |at: u32| input.fabric.node(tree.node(at)).id.as_str();
        let pair = |(from, to): &Way| (*from.min(to), *from.max(to));
        let lost: BTreeSet<Way> = failed.iter().map(pair).collect();
        let (mut mended, mut unserved) = (Tally::default(), Tally::default());
        let mut lacking = self.lacking;
        lacking.dedup_by_key(|way| pair(way));
        for way in &lacking {
            if lost.contains(&pair(way)) { &mut unserved } else { &mut mended }.add(*way);
        }
        report.fallbacks.extend(self.detoured.sentence(|count, (from, to)| {
            let (from, to) = (name(from), name(to));
            let pairs = count_of(count, "pair");
            format!("no up/down path for {pairs} of switches; {TURNS}, e.g. {from} to {to}")
        }));
        report.fallbacks.extend(mended.sentence(|count, (a, b)| {
            format!(
                "no up/down path for {} of a switch with hosts and one without, e.g. {} and {}; management packets \
                 between them turn where no circle can close",
                count_of(count, "pair"),
                name(a),
                name(b)
            )
        }));
        report.unsatisfied.extend(unserved.sentence(|count, (a, b)| {
            format!(
                "no path that hosts may use without the risk of a deadlock for {} of switches, e.g. {} and {}, of \
                 which one has no hosts",
                count_of(count, "pair"),
                name(a),
                name(b)
            )
        }));
    }
}

/// Fails unless the hosts of two switches that no path up and down connects may go down first. I/O nodes may not by more
/// cables down than the operator allows; others may wherever it is safe, because such a tree is a broken one.
fn check_hosts(input: &Input<'_>, tree: &Tree, from: u32, to: u32, depth: Option<u8>) -> Result<(), String> {
    let hosts = |at: u32| tree.ends(at).iter().filter(|end| end.kind.is_host());
    let allowed = input.options.max_reverse_hops;
    for one in hosts(from) {
        for other in hosts(to) {
            let io = [one, other].iter().any(|end| end.kind == EndKind::Io);
            if depth.is_some_and(|depth| depth <= allowed || !io) {
                continue;
            }
            let name = |end: &End| input.fabric.port_name(end.port).to_string();
            let mut reason =
                format!("no path goes up and then down between {} and {}", name(one), name(other));
            if let Some(depth) = depth.filter(|_| io) {
                reason.push_str(&format!("; it takes {depth} reverse hops, and {allowed} are allowed"));
            }
            return Err(reason);
        }
    }
    Ok(())
}

/// How many pairs there are, and the first.
#[derive(Default)]
struct Tally {
    count: usize,
    first: Option<Way>,
}

impl Tally {
    fn add(&mut self, pair: Way) {
        self.count += 1;
        self.first.get_or_insert(pair);
    }

    fn sentence(self, sentence: impl Fn(usize, Way) -> String) -> Option<String> {
        self.first.map(|pair| sentence(self.count, pair))
    }
}
