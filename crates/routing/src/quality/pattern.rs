//! The patterns of ORCS: levels of pairs that send to each other.

use std::fmt;
use std::str::FromStr;

use rand::RngExt;
use rand_pcg::Pcg64;

/// A communication pattern among ranks 0 to n − 1, in levels: the flows of one level run at the same time, and the
/// next level begins when all of them are done.
///
/// Names and flows are those of ORCS (Schneider, Hoefler and Lumsdaine, Indiana University TR-675, 2009). Two are not
/// there: `alltoall`, which Zahid 2016 adds to it, and `shift`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pattern {
    /// One level: rank 2k sends to 2k + 1. The ranks are drawn again in every run, so this is a random cut into
    /// halves with every sender in one and its receiver in the other. With an odd n the last rank is idle.
    Bisect,
    /// `bisect` in both directions at once.
    BisectFbSym,
    /// One level: everyone sends to everyone else.
    AllToAll,
    /// One level: everyone sends to rank 0.
    Gather,
    /// One level: rank 0 sends to everyone.
    Scatter,
    /// n levels of one flow: in level k rank k sends to k + 1, the last to rank 0.
    Ring,
    /// A binomial tree: in level k those below 2^k send to the rank 2^k above them, where there is one.
    Tree,
    /// As long as 2^k is less than n: in level k everyone sends to the rank 2^k above, modulo n.
    Bruck,
    /// Recursive doubling: in level k ranks that differ in bit k exchange, among the largest power of two of ranks;
    /// in one more level those beyond it receive from those that are as far from rank 0.
    RecursiveDoubling,
    /// One level: groups of this many ranks and one, in order, in which everyone sends to everyone. It is what
    /// ORCS's search for free neighbours comes to; the last group may be smaller.
    Neighbor(u32),
    /// One level: a random permutation in which no one sends to itself.
    Rand,
    /// Nothing.
    Null,
    /// n − 1 levels: in level k everyone sends to the rank k + 1 above, modulo n. A tree that routes every shift
    /// without contention has the greatest congestion 1 under it.
    Shift,
}

/// What runs: one pattern, or two against each other, each in a group of its own (ORCS's `ptrnvsptrn`).
///
/// The levels of both run side by side. When the second has done its last while the first goes on, the second starts
/// again; when the first is done, the second goes on to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Traffic {
    /// One pattern among the first group.
    Alone(Pattern),
    /// One in the first group, the other in the second.
    Versus(Pattern, Pattern),
}

/// Why a text names no pattern.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PatternError {
    /// No such pattern.
    #[error("no pattern is called `{0}`; there are {list} and ptrnvsptrn:FIRST,SECOND", list = names())]
    Unknown(String),
    /// A count of neighbours that is none.
    #[error("`neighbor` takes how many neighbours each has, 1 or more, as in `neighbor:2`; not `{0}`")]
    Neighbors(String),
    /// Not two patterns.
    #[error("`ptrnvsptrn` takes two patterns, as in `ptrnvsptrn:gather,alltoall`; not `{0}`")]
    NotTwo(String),
}

/// The patterns with their names; `neighbor` stands for all counts.
const NAMES: [(&str, Pattern); 13] = [
    ("bisect", Pattern::Bisect),
    ("bisect_fb_sym", Pattern::BisectFbSym),
    ("alltoall", Pattern::AllToAll),
    ("gather", Pattern::Gather),
    ("scatter", Pattern::Scatter),
    ("ring", Pattern::Ring),
    ("tree", Pattern::Tree),
    ("bruck", Pattern::Bruck),
    ("recdbl", Pattern::RecursiveDoubling),
    ("neighbor", Pattern::Neighbor(NEIGHBORS_DEFAULT)),
    ("rand", Pattern::Rand),
    ("null", Pattern::Null),
    ("shift", Pattern::Shift),
];

/// How many neighbours `neighbor` means where nothing is said.
const NEIGHBORS_DEFAULT: u32 = 2;

const VERSUS: &str = "ptrnvsptrn";

fn names() -> String {
    NAMES.map(|(name, _)| if name == "neighbor" { "neighbor[:COUNT]" } else { name }).join(", ")
}

impl FromStr for Pattern {
    type Err = PatternError;

    /// Reads `bisect` or `neighbor:4`.
    fn from_str(text: &str) -> Result<Self, PatternError> {
        if let Some(count) = text.strip_prefix("neighbor:") {
            let count = count.parse().ok().filter(|count| *count > 0);
            return count.map(Self::Neighbor).ok_or_else(|| PatternError::Neighbors(text.to_owned()));
        }
        let found = NAMES.iter().find(|(name, _)| *name == text);
        found.map(|(_, pattern)| *pattern).ok_or_else(|| PatternError::Unknown(text.to_owned()))
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Neighbor(count) => write!(f, "neighbor:{count}"),
            _ => {
                let name = NAMES.iter().find(|(_, pattern)| pattern == self);
                f.write_str(name.map_or("", |(name, _)| name))
            }
        }
    }
}

impl FromStr for Traffic {
    type Err = PatternError;

    /// Reads `bisect` or `ptrnvsptrn:gather,alltoall`.
    fn from_str(text: &str) -> Result<Self, PatternError> {
        let Some(rest) = text.strip_prefix(VERSUS) else { return text.parse().map(Self::Alone) };
        let two = rest.strip_prefix(':').and_then(|both| both.split_once(','));
        let (first, second) = two.ok_or_else(|| PatternError::NotTwo(text.to_owned()))?;
        Ok(Self::Versus(first.trim().parse()?, second.trim().parse()?))
    }
}

impl fmt::Display for Traffic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Alone(pattern) => write!(f, "{pattern}"),
            Self::Versus(first, second) => write!(f, "{VERSUS}:{first},{second}"),
        }
    }
}

impl From<Pattern> for Traffic {
    fn from(pattern: Pattern) -> Self {
        Self::Alone(pattern)
    }
}

/// The flows of one level, as ranks of sender and receiver. Those of `alltoall` are too many to be written down.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Level {
    listed: Vec<(u32, u32)>,
    /// Ranges of ranks in which everyone sends to everyone.
    cliques: Vec<(u32, u32)>,
}

impl Level {
    fn of(pairs: impl Iterator<Item = (u32, u32)>) -> Self {
        Self { listed: pairs.collect(), cliques: Vec::new() }
    }

    /// All flows: rank of the sender, rank of the receiver.
    pub fn pairs(&self) -> impl Iterator<Item = (u32, u32)> + Clone + '_ {
        let clique = |(from, to): (u32, u32)| {
            let senders = from..to;
            senders.flat_map(move |a| (from..to).filter(move |b| a != *b).map(move |b| (a, b)))
        };
        self.listed.iter().copied().chain(self.cliques.iter().copied().flat_map(clique))
    }

    fn is_empty(&self) -> bool {
        self.listed.is_empty() && self.cliques.is_empty()
    }

    /// Adds the flows of another group whose ranks begin at `first`.
    fn append(&mut self, other: &Self, first: u32) {
        self.listed.extend(other.listed.iter().map(|(a, b)| (a + first, b + first)));
        self.cliques.extend(other.cliques.iter().map(|(a, b)| (a + first, b + first)));
    }
}

impl Pattern {
    /// A level among `n` ranks, counted from 0; `None` when there are no more.
    fn level(self, n: u32, level: u32, random: &mut Pcg64) -> Option<Level> {
        if n < 2 || (level > 0 && self.has_one_level()) {
            return None;
        }
        let distance = 1u32.checked_shl(level).filter(|distance| *distance < n);
        let found = match self {
            Self::Bisect => Level::of((0..n / 2).map(|pair| (2 * pair, 2 * pair + 1))),
            Self::BisectFbSym => Level::of((0..n / 2 * 2).map(|rank| (rank, rank ^ 1))),
            Self::AllToAll => Level { listed: Vec::new(), cliques: vec![(0, n)] },
            Self::Gather => Level::of((1..n).map(|rank| (rank, 0))),
            Self::Scatter => Level::of((1..n).map(|rank| (0, rank))),
            Self::Ring => Level::of((level..n).take(1).map(|rank| (rank, (rank + 1) % n))),
            Self::Tree => {
                let distance = distance?;
                Level::of((0..distance.min(n - distance)).map(|rank| (rank, rank + distance)))
            }
            Self::Bruck => {
                let distance = distance?;
                Level::of((0..n).map(|rank| (rank, (rank + distance) % n)))
            }
            Self::RecursiveDoubling => recursive_doubling(n, level),
            Self::Neighbor(count) => {
                let size = count.min(n - 1) + 1;
                let groups = (0..n).step_by(size as usize).map(|first| (first, n.min(first + size)));
                Level { listed: Vec::new(), cliques: groups.collect() }
            }
            Self::Rand => Level::of((0..).zip(permutation(n, random))),
            Self::Null => Level::default(),
            Self::Shift => {
                let distance = level + 1;
                let senders = if distance < n { 0..n } else { 0..0 };
                Level::of(senders.map(|rank| (rank, (rank + distance) % n)))
            }
        };
        Some(found).filter(|found| !found.is_empty())
    }

    fn has_one_level(self) -> bool {
        !matches!(self, Self::Ring | Self::Tree | Self::Bruck | Self::RecursiveDoubling | Self::Shift)
    }
}

impl Traffic {
    fn patterns(self) -> [Pattern; 2] {
        match self {
            Self::Alone(pattern) => [pattern, Pattern::Null],
            Self::Versus(first, second) => [first, second],
        }
    }

    /// Whether it matters which participant has which rank.
    pub(crate) fn depends_on_order(self) -> bool {
        self.patterns().iter().any(|pattern| !matches!(pattern, Pattern::AllToAll | Pattern::Null))
    }

    /// Whether the flows are drawn at random, whatever the ranks.
    pub(crate) fn is_random(self) -> bool {
        self.patterns().contains(&Pattern::Rand)
    }
}

fn recursive_doubling(n: u32, level: u32) -> Level {
    let power = 1 << n.ilog2();
    let distance = 1u32.checked_shl(level).unwrap_or(u32::MAX);
    match distance.cmp(&power) {
        std::cmp::Ordering::Less => {
            let low = (0..power).filter(|rank| rank & distance == 0);
            Level::of(low.flat_map(|rank| [(rank, rank + distance), (rank + distance, rank)]))
        }
        std::cmp::Ordering::Equal => Level::of((0..n - power).map(|rank| (rank, rank + power))),
        std::cmp::Ordering::Greater => Level::default(),
    }
}

/// Where each rank sends to: no one to itself, and two ranks or more. Each draws from what is left; should the last
/// be left with itself, it changes with one before.
fn permutation(n: u32, random: &mut Pcg64) -> Vec<u32> {
    let mut left: Vec<u32> = (0..n).collect();
    let mut to: Vec<u32> = Vec::with_capacity(left.len());
    for from in 0..n {
        loop {
            let place = random.random_range(0..left.len());
            if left[place] != from {
                to.push(left.swap_remove(place));
                break;
            }
            if left.len() == 1 {
                let other = random.random_range(0..to.len());
                let swapped = std::mem::replace(&mut to[other], from);
                to.push(swapped);
                break;
            }
        }
    }
    to
}

/// The levels of some traffic, one after the other.
#[derive(Debug)]
pub(crate) struct Levels {
    traffic: Traffic,
    first: u32,
    second: u32,
    level: u32,
    /// The next level of the second pattern.
    level_second: u32,
}

impl Levels {
    /// Among `first` ranks in the first group and `second` in the second, whose ranks follow.
    pub(crate) fn new(traffic: Traffic, first: u32, second: u32) -> Self {
        Self { traffic, first, second, level: 0, level_second: 0 }
    }

    pub(crate) fn next(&mut self, random: &mut Pcg64) -> Option<Level> {
        let level = self.level;
        self.level += 1;
        let (own, other) = match self.traffic {
            Traffic::Alone(pattern) => return pattern.level(self.first, level, random),
            Traffic::Versus(own, other) => (own, other),
        };
        let ours = own.level(self.first, level, random);
        let mut theirs = other.level(self.second, self.level_second, random);
        if theirs.is_none() && ours.is_some() && self.level_second > 0 {
            self.level_second = 0;
            theirs = other.level(self.second, 0, random);
        }
        self.level_second += 1;
        let mut both = match (&ours, &theirs) {
            (None, None) => return None,
            _ => ours.unwrap_or_default(),
        };
        both.append(&theirs.unwrap_or_default(), self.first);
        Some(both)
    }
}

impl Traffic {
    /// All levels among `first` ranks in the first group and `second` in the second, whose ranks follow those of the
    /// first. The seed decides what is random.
    pub fn levels(self, first: u32, second: u32, seed: u64) -> Vec<Level> {
        let mut random = super::random::generator(seed, 0);
        let mut levels = Levels::new(self, first, second);
        std::iter::from_fn(|| levels.next(&mut random)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn levels(text: &str, n: u32) -> Vec<Vec<(u32, u32)>> {
        versus(text, n, 0)
    }

    fn versus(text: &str, first: u32, second: u32) -> Vec<Vec<(u32, u32)>> {
        let traffic: Traffic = text.parse().unwrap();
        assert_eq!(traffic.to_string().parse(), Ok(traffic));
        traffic.levels(first, second, 1).iter().map(|level| level.pairs().collect()).collect()
    }

    #[test]
    fn patterns_of_one_level() {
        assert_eq!(levels("bisect", 5), [[(0, 1), (2, 3)]]);
        assert_eq!(levels("bisect_fb_sym", 5), [[(0, 1), (1, 0), (2, 3), (3, 2)]]);
        assert_eq!(levels("alltoall", 3), [[(0, 1), (0, 2), (1, 0), (1, 2), (2, 0), (2, 1)]]);
        assert_eq!(levels("gather", 4), [[(1, 0), (2, 0), (3, 0)]]);
        assert_eq!(levels("scatter", 4), [[(0, 1), (0, 2), (0, 3)]]);
        assert_eq!(levels("neighbor:1", 5), [[(0, 1), (1, 0), (2, 3), (3, 2)]]);
        let triples = [(0, 1), (0, 2), (1, 0), (1, 2), (2, 0), (2, 1), (3, 4), (4, 3)];
        assert_eq!(levels("neighbor", 5), [triples]);
        assert_eq!(levels("neighbor:9", 3), levels("alltoall", 3));
    }

    #[test]
    fn patterns_of_several_levels() {
        assert_eq!(levels("ring", 3), [[(0, 1)], [(1, 2)], [(2, 0)]]);
        assert_eq!(levels("tree", 6), [vec![(0, 1)], vec![(0, 2), (1, 3)], vec![(0, 4), (1, 5)]]);
        assert_eq!(levels("bruck", 3), [[(0, 1), (1, 2), (2, 0)], [(0, 2), (1, 0), (2, 1)]]);
        assert_eq!(levels("bruck", 4).len(), 2);
        let doubling = [[(0, 1), (1, 0), (2, 3), (3, 2)], [(0, 2), (2, 0), (1, 3), (3, 1)]];
        assert_eq!(levels("recdbl", 4), doubling);
        let six = levels("recdbl", 6);
        assert_eq!(six[..2], doubling);
        assert_eq!(six[2..], [[(0, 4), (1, 5)]]);
        assert_eq!(levels("shift", 3), [[(0, 1), (1, 2), (2, 0)], [(0, 2), (1, 0), (2, 1)]]);
    }

    #[test]
    fn nobody_alone_sends() {
        for (name, _) in NAMES {
            assert_eq!(levels(name, 1), Vec::<Vec<_>>::new(), "{name}");
            assert_eq!(levels(name, 0), Vec::<Vec<_>>::new(), "{name}");
            assert_eq!(levels(name, 2).is_empty(), name == "null", "{name}");
        }
    }

    #[test]
    fn a_random_permutation_has_no_fixed_point() {
        for n in 2..40 {
            for seed in 0..20 {
                let level = Traffic::Alone(Pattern::Rand).levels(n, 0, seed);
                let pairs: Vec<_> = level[0].pairs().collect();
                assert!(pairs.iter().all(|(a, b)| a != b), "{pairs:?}");
                let mut receivers: Vec<u32> = pairs.iter().map(|(_, b)| *b).collect();
                receivers.sort_unstable();
                assert_eq!(receivers, (0..n).collect::<Vec<_>>());
            }
        }
    }

    #[test]
    fn two_patterns_run_side_by_side() {
        assert_eq!(versus("ptrnvsptrn:gather,alltoall", 3, 2), [[(1, 0), (2, 0), (3, 4), (4, 3)]]);
        // The first has three levels and the second one, which is repeated.
        let ring = [[(0, 1), (3, 4)], [(1, 2), (3, 4)], [(2, 0), (3, 4)]];
        assert_eq!(versus("ptrnvsptrn:ring,bisect", 3, 2), ring);
        // The second goes on when the first is done.
        assert_eq!(versus("ptrnvsptrn:bisect,ring", 2, 2), [vec![(0, 1), (2, 3)], vec![(3, 2)]]);
        assert_eq!(versus("ptrnvsptrn:null,bisect", 2, 2), [[(2, 3)]]);
        assert_eq!(versus("ptrnvsptrn:ring,null", 2, 2), [[(0, 1)], [(1, 0)]]);
    }

    #[test]
    fn errors_say_what_is_allowed() {
        let error = |text: &str| text.parse::<Traffic>().unwrap_err().to_string();
        assert_eq!(
            error("bisekt"),
            "no pattern is called `bisekt`; there are bisect, bisect_fb_sym, alltoall, gather, scatter, ring, tree, \
             bruck, recdbl, neighbor[:COUNT], rand, null, shift and ptrnvsptrn:FIRST,SECOND"
        );
        assert!(error("neighbor:0").contains("1 or more"));
        assert!(error("ptrnvsptrn:gather").contains("two patterns"));
        assert!(error("ptrnvsptrn:gather,ptrnvsptrn:null,null").contains("no pattern is called"));
    }
}
