//! Patterns of traffic: who sends to whom.

use weft_machine::Random;

/// A pattern of flows among hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pattern {
    /// Every host sends to every other one.
    AllToAll,
    /// All others send to the first host.
    Incast,
    /// Every host sends to the next one, and the last to the first.
    Ring,
    /// Every host sends to one other and hears of one other, drawn from a seed.
    Permutation,
    /// The first half sends to the second half, one host to one host.
    Bisection,
}

impl Pattern {
    /// The places of senders and receivers among `hosts` hosts.
    pub fn pairs(self, hosts: usize, seed: u64) -> Vec<Pair> {
        let pair = |from, to| Pair { from, to };
        match self {
            Self::AllToAll => {
                let others = |from| (0..hosts).filter(move |to| *to != from).map(move |to| pair(from, to));
                (0..hosts).flat_map(others).collect()
            }
            Self::Incast => (1..hosts).map(|from| pair(from, 0)).collect(),
            Self::Ring if hosts < 2 => Vec::new(),
            Self::Ring => (0..hosts).map(|from| pair(from, (from + 1) % hosts)).collect(),
            Self::Permutation => cycle(hosts, seed),
            Self::Bisection => (0..hosts / 2).map(|from| pair(from, from + hosts / 2)).collect(),
        }
    }
}

/// A sender and its receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pair {
    /// The place of the sender.
    pub from: usize,
    /// The place of the receiver.
    pub to: usize,
}

/// One cycle through all hosts in a random order (Sattolo's algorithm): no host sends to itself.
fn cycle(hosts: usize, seed: u64) -> Vec<Pair> {
    let mut random = Random::new(seed);
    let mut to: Vec<usize> = (0..hosts).collect();
    for last in (1..hosts).rev() {
        to.swap(last, random.below(last as u32) as usize);
    }
    let pairs = to.into_iter().enumerate().map(|(from, to)| Pair { from, to });
    pairs.filter(|pair| pair.from != pair.to).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    const ALL: [Pattern; 5] =
        [Pattern::AllToAll, Pattern::Incast, Pattern::Ring, Pattern::Permutation, Pattern::Bisection];

    #[test]
    fn every_pattern_has_its_number_of_flows_and_none_to_itself() {
        for hosts in 0..9_usize {
            for (pattern, count) in ALL.into_iter().zip([
                hosts * hosts.saturating_sub(1),
                hosts.saturating_sub(1),
                if hosts < 2 { 0 } else { hosts },
                if hosts < 2 { 0 } else { hosts },
                hosts / 2,
            ]) {
                let pairs = pattern.pairs(hosts, 7);
                assert_eq!(pairs.len(), count, "{pattern:?} of {hosts}");
                assert!(
                    pairs.iter().all(|pair| pair.from != pair.to && pair.from < hosts && pair.to < hosts)
                );
                let distinct: BTreeSet<_> = pairs.iter().map(|pair| (pair.from, pair.to)).collect();
                assert_eq!(distinct.len(), count, "no flow twice");
            }
        }
    }

    #[test]
    fn a_permutation_follows_its_seed_and_reaches_every_host_once() {
        for seed in 0..100 {
            let pairs = Pattern::Permutation.pairs(30, seed);
            assert_eq!(pairs, Pattern::Permutation.pairs(30, seed));
            assert_eq!(pairs.iter().map(|pair| pair.to).collect::<BTreeSet<_>>().len(), 30);
        }
        assert_ne!(Pattern::Permutation.pairs(30, 1), Pattern::Permutation.pairs(30, 2));
    }
}
