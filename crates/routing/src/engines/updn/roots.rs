//! Roots that are found, and orders in which no pair is without a legal path.

use super::mend::{join, lower};
use super::search::Orientation;
use super::site::{Site, Survey};

/// Switches further from the middle than the nearest ones by this share are no roots, in tenths.
const MIDDLE_TENTHS: u64 = 11;
/// How often an order is mended at most.
const ROUNDS_MAX: usize = 4;
/// How many layers of a fabric, counted from its top, are tried as roots.
const LAYERS_TRIED: u32 = 3;

/// Roots, and the order that follows from them.
#[derive(Debug)]
pub(super) struct Order {
    /// By seat.
    pub(super) roots: Vec<u32>,
    pub(super) orientation: Orientation,
    /// How many switches were placed below others so that all pairs have legal paths of which one has hosts.
    pub(super) lowered: usize,
    survey: Survey,
}

/// Finds roots for every piece: of several candidates those whose legal paths are shortest and most numerous.
///
/// In a tree the roots are the middle of the fabric: nearest to all hosts, and highest above the switches that have
/// the hosts. Where cables or switches are missing, one of the two may mislead, so both are tried; and where there
/// is no tree at all, one root in the middle serves.
pub(super) fn find(site: &Site<'_>) -> Order {
    let mut choice: Vec<Vec<u32>> = vec![Vec::new(); site.pieces];
    let mut best = vec![None; site.pieces];
    for candidate in candidates(site) {
        let order = order(site, candidate);
        let mut of_pieces = vec![Vec::new(); site.pieces];
        for root in order.roots {
            of_pieces[site.piece_of[root as usize] as usize].push(root);
        }
        for (piece, roots) in of_pieces.into_iter().enumerate() {
            let score = order.survey.scores[piece];
            if best[piece].is_none_or(|best| score.is_better_than(best)) {
                best[piece] = Some(score);
                choice[piece] = roots;
            }
        }
    }
    order(site, choice.concat())
}

/// Sets of switches that may be the roots; each has some in every piece.
fn candidates(site: &Site<'_>) -> Vec<Vec<u32>> {
    let moments = site.survey(&Orientation::level(site.graph)).moments;
    let mut least = vec![u64::MAX; site.pieces];
    let mut center = vec![u32::MAX; site.pieces];
    for switch in site.graph.numbers() {
        let (piece, moment) = (site.piece_of[switch as usize] as usize, moments[switch as usize]);
        if moment < least[piece] {
            (least[piece], center[piece]) = (moment, switch);
        }
    }
    let near = |switch: &u32| {
        let least = least[site.piece_of[*switch as usize] as usize];
        moments[*switch as usize] * 10 <= least * MIDDLE_TENTHS
    };
    let mut sets = layers(site, false);
    sets.extend(layers(site, true));
    sets.push(site.graph.numbers().filter(near).collect());
    sets.push(center);
    for set in &mut sets {
        set.sort_unstable();
    }
    let mut different: Vec<Vec<u32>> = Vec::new();
    for set in sets {
        if !different.contains(&set) {
            different.push(set);
        }
    }
    different
}

/// The highest layers of every piece. A layer is as high as the least number of hops to a switch that has hosts, or if
/// `many` a fair share of them: then switches with few hosts, such as a root, do not count.
fn layers(site: &Site<'_>, many: bool) -> Vec<Vec<u32>> {
    let (mut hosts, mut holders) = (vec![0; site.pieces], vec![0; site.pieces]);
    for (piece, count) in site.piece_of.iter().zip(&site.hosts) {
        hosts[*piece as usize] += count;
        holders[*piece as usize] += u64::from(*count > 0);
    }
    let is_leaf = |switch: &u32| {
        let (piece, count) = (site.piece_of[*switch as usize] as usize, site.hosts[*switch as usize]);
        count > 0 && (!many || 2 * count * holders[piece] >= hosts[piece])
    };
    let leaves: Vec<u32> = site.graph.numbers().filter(is_leaf).collect();
    let heights = site.graph.hops_from(&leaves, |_| true);
    let mut top = vec![0; site.pieces];
    for (piece, height) in site.piece_of.iter().zip(&heights) {
        let top = &mut top[*piece as usize];
        *top = (*top).max(*height);
    }
    let layer = |down: u32| {
        let in_layer = |switch: &u32| {
            let (top, height) = (top[site.piece_of[*switch as usize] as usize], heights[*switch as usize]);
            height == top.saturating_sub(down).max(1.min(top))
        };
        site.graph.numbers().filter(in_layer).collect()
    };
    (0..LAYERS_TRIED).map(layer).collect()
}

/// The order that follows from roots, mended where a pair of which one has hosts would have no legal path. Every
/// piece must have a root.
pub(super) fn order(site: &Site<'_>, roots: Vec<u32>) -> Order {
    let orientation = Orientation::new(site.graph, site.graph.hops_from(&roots, |_| true));
    let survey = site.survey(&orientation);
    let mut order = Order { roots, orientation, lowered: 0, survey };
    for round in 1..=ROUNDS_MAX {
        if !order.survey.scores.iter().any(|score| score.is_severed()) {
            break;
        }
        // What is mended may cut another pair off; but when all are joined, none can be.
        order.mend(site, round == ROUNDS_MAX);
    }
    order
}

impl Order {
    /// The ranks without gaps.
    pub(super) fn ranks(&self) -> impl Iterator<Item = u32> {
        let mut used = self.orientation.ranks.clone();
        used.sort_unstable();
        used.dedup();
        self.orientation.ranks.iter().map(move |rank| used.partition_point(|other| other < rank) as u32)
    }

    fn mend(&mut self, site: &Site<'_>, all: bool) {
        let mut ranks = self.orientation.ranks.clone();
        for (piece, score) in self.survey.scores.iter().enumerate().filter(|(_, score)| score.is_severed()) {
            let is_wanted = |switch: &u32| {
                let (at, hosts) = (site.piece_of[*switch as usize] as usize, site.hosts[*switch as usize]);
                at == piece && (all || (hosts > 0 && self.survey.severed[*switch as usize] > 0))
            };
            let wanted: Vec<u32> = site.graph.numbers().filter(is_wanted).collect();
            self.lowered += match all || score.severed[0] > 0 {
                true => join(site, &self.orientation, &self.survey, &wanted, &mut ranks),
                false => lower(site, &self.orientation, &self.survey, piece, &mut ranks),
            };
        }
        self.orientation = Orientation::new(site.graph, ranks);
        self.survey = site.survey(&self.orientation);
    }
}
