//! Roots that are found, and orders in which no pair is without a legal path.

use super::mend::mend;
use super::search::Orientation;
use super::site::{Site, Survey};

/// Switches further from the middle than the nearest ones by this share are no roots, in tenths.
const MIDDLE_TENTHS: u64 = 11;
/// How many layers of a fabric, counted from its top, are tried as roots.
const LAYERS_TRIED: u32 = 3;

/// Roots, and the order that follows from them.
#[derive(Debug)]
pub(super) struct Order {
    /// By seat.
    pub(super) roots: Vec<u32>,
    pub(super) orientation: Orientation,
    /// For each piece in which it was needed so that all pairs have legal paths: a root, and how many other roots were
    /// placed below it.
    pub(super) mended: Vec<(u32, usize)>,
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
    for switch in &site.order {
        let (piece, moment) = (site.piece_of[*switch as usize] as usize, moments[*switch as usize]);
        if moment < least[piece] {
            (least[piece], center[piece]) = (moment, *switch);
        }
    }
    let near = |switch: &u32| {
        let least = least[site.piece_of[*switch as usize] as usize];
        moments[*switch as usize] * 10 <= least * MIDDLE_TENTHS
    };
    let mut sets = layers(site);
    sets.push(site.order.iter().copied().filter(near).collect());
    sets.push(center);
    for set in &mut sets {
        set.sort_unstable_by_key(|switch| site.seats[*switch as usize]);
    }
    let mut different: Vec<Vec<u32>> = Vec::new();
    for set in sets {
        if !different.contains(&set) {
            different.push(set);
        }
    }
    different
}

/// The highest layers of every piece. A layer is as high as the least number of hops to a switch that has a fair
/// share of the hosts; a few hosts elsewhere, as on a root, do not count.
fn layers(site: &Site<'_>) -> Vec<Vec<u32>> {
    let (mut hosts, mut holders) = (vec![0; site.pieces], vec![0; site.pieces]);
    for (piece, count) in site.piece_of.iter().zip(&site.hosts) {
        hosts[*piece as usize] += count;
        holders[*piece as usize] += u64::from(*count > 0);
    }
    let is_leaf = |switch: &u32| {
        let (piece, count) = (site.piece_of[*switch as usize] as usize, site.hosts[*switch as usize]);
        2 * count * holders[piece] >= hosts[piece]
    };
    let leaves: Vec<u32> = site.order.iter().copied().filter(is_leaf).collect();
    let heights = site.hops_from(&leaves);
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
        site.order.iter().copied().filter(in_layer).collect()
    };
    (0..LAYERS_TRIED).map(layer).collect()
}

/// The order that follows from roots, mended where a pair of which one has hosts would have no legal path. Every
/// piece must have a root.
pub(super) fn order(site: &Site<'_>, roots: Vec<u32>) -> Order {
    let orientation = Orientation::new(site.graph, &site.seats, site.hops_from(&roots));
    let survey = site.survey(&orientation);
    let mut order = Order { roots, orientation, mended: Vec::new(), survey };
    let mut firsts = vec![None; site.pieces];
    // What is joined at first may cut another pair off; when all are joined, none can be.
    for all in [false, true] {
        if order.survey.scores.iter().all(|score| score.severed == 0) {
            break;
        }
        let mut ranks = order.orientation.ranks.clone();
        for piece in (0..site.pieces).filter(|piece| order.survey.scores[*piece].severed > 0) {
            let wanted = |switch: &u32| {
                site.piece_of[*switch as usize] as usize == piece
                    && (all || order.survey.severed[*switch as usize])
            };
            let wanted: Vec<u32> = site.order.iter().copied().filter(wanted).collect();
            firsts[piece] = mend(site, &order.orientation, &order.survey, &wanted, &mut ranks);
        }
        order.orientation = Orientation::new(site.graph, &site.seats, ranks);
        order.survey = site.survey(&order.orientation);
    }
    for first in firsts.into_iter().flatten() {
        let is_lowered = |root: &&u32| {
            site.piece_of[**root as usize] == site.piece_of[first as usize]
                && order.orientation.ranks[**root as usize] > 0
        };
        let lowered = order.roots.iter().filter(is_lowered).count();
        order.mended.push((first, lowered));
    }
    order
}
