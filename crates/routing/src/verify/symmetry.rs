//! Symmetry: pairs whose two directions use different service levels.

use std::collections::BTreeMap;

use rayon::prelude::*;
use serde::Serialize;

use crate::lanes::ServiceLevels;

use super::ground::{End, Ground};
use super::pair::Pair;

/// Pairs with another service level one way than the other: a queue pair has only one, and answers come back on it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Asymmetry {
    /// How many pairs of LIDs, each counted once.
    pub pairs: u64,
    /// The first.
    pub example: Option<LevelsOfPair>,
}

/// A pair and its levels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct LevelsOfPair {
    /// The pair.
    #[serde(flatten)]
    pub pair: Pair,
    /// The level there.
    pub forth: u8,
    /// The level back.
    pub back: u8,
}

/// What of a LID decides its levels: its class as a source and as a destination, and whether it is a host's.
type Kind = (Option<u16>, Option<u16>, bool);

/// Looks for them.
pub(super) fn find(ground: &Ground<'_>, levels: &ServiceLevels) -> Asymmetry {
    let kind = |end: &End| (levels.source_class(end.lid), levels.destination_class(end.lid), end.host);
    let mut counts: BTreeMap<Kind, u64> = BTreeMap::new();
    for end in &ground.ends {
        *counts.entry(kind(end)).or_default() += 1;
    }
    let kinds: Vec<(Kind, u64)> = counts.into_iter().collect();
    let differ = |a: &Kind, b: &Kind| (a.2 || b.2) && levels.level(a.0, b.1) != levels.level(b.0, a.1);
    let of_kind = |at: usize| {
        let (kind, count) = &kinds[at];
        let others = kinds[at + 1..].iter().filter(|(other, _)| differ(kind, other));
        others.map(|(_, other)| count * other).sum::<u64>()
    };
    let all: u64 = (0..kinds.len()).into_par_iter().map(of_kind).sum();
    let own: u64 = of_one_port(ground).into_iter().map(|(a, b)| u64::from(differ(&kind(a), &kind(b)))).sum();
    let pairs = all - own;
    let example = || {
        let ends = &ground.ends;
        let pairs = (0..ends.len()).flat_map(|at| ends[at + 1..].iter().map(move |other| (&ends[at], other)));
        let mut pairs = pairs.filter(|(a, b)| a.port != b.port && differ(&kind(a), &kind(b)));
        pairs.next().map(|(a, b)| LevelsOfPair {
            pair: Pair { source: a.lid, destination: b.lid },
            forth: levels.of(a.lid, b.lid).0,
            back: levels.of(b.lid, a.lid).0,
        })
    };
    Asymmetry { pairs, example: if pairs > 0 { example() } else { None } }
}

/// Every two LIDs of one port.
fn of_one_port<'a>(ground: &'a Ground<'_>) -> Vec<(&'a End, &'a End)> {
    let mut by_port: BTreeMap<_, Vec<&End>> = BTreeMap::new();
    for end in &ground.ends {
        by_port.entry(end.port).or_default().push(end);
    }
    let mut pairs = Vec::new();
    for ends in by_port.values() {
        for (at, end) in ends.iter().enumerate() {
            pairs.extend(ends[at + 1..].iter().map(|other| (*end, *other)));
        }
    }
    pairs
}
