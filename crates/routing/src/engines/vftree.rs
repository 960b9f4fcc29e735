//! Fat-tree routing with a lane per pair of leaf switches.
//!
//! The tables are those of [`ftree`](super::ftree). Packets that share a way up would wait for each other when one of
//! their destinations is a hot spot; on different lanes they do not. The lane is the same both ways.

use weft_wire::ServiceLevel;

use super::{Engine, Input, ftree};
use crate::lanes::ServiceLevels;
use crate::routing::Routing;
use crate::tree::{End, Tree};

pub(crate) const ENGINE: Engine = Engine {
    name: "vftree",
    about: "ftree, with the pairs of leaf switches spread over lanes",
    options: &["lanes", "roots", "compute_nodes", "io_nodes", "max_reverse_hops", "order"],
    deadlock_free: true,
    run: |input| vftree(input),
};

fn vftree(input: &Input<'_>) -> Result<Routing, String> {
    let tree = Tree::new(input)?;
    let mut routing = ftree::in_order(ENGINE.name, input, &tree)?;
    routing.levels = levels(input, &tree);
    routing.report.lanes = routing.levels.highest().0 + 1;
    Ok(routing)
}

/// The level of every pair of leaves; level n takes lane n. All else uses level 0.
fn levels(input: &Input<'_>, tree: &Tree) -> ServiceLevels {
    let count = tree.leaves.len();
    let mut levels = ServiceLevels::classes(input.lids.top(), count, count);
    for (leaf, at) in (0..).zip(&tree.leaves) {
        let lids = tree.ends(*at).iter().flat_map(|end: &End| &end.lids);
        lids.for_each(|lid| levels.set_class(*lid, leaf));
        for other in 0..count as u16 {
            levels.set(leaf, other, ServiceLevel(lane(leaf, other, input.options.lanes)));
        }
    }
    levels
}

/// The lane of a pair of leaves, by their places among all (W. L. Guay and others, "vFtree - A Fat-tree Routing
/// Algorithm using Virtual Lanes to Alleviate Congestion", 2011, algorithm 1): the pairs of one leaf with those behind
/// it take lane after lane, from two lanes after the one where the leaf before began, or three where that comes round.
/// Inside of a leaf it is 0.
///
/// So each leaf spreads what it has with those behind it evenly. What it has with those before it depends on where
/// they began: with an even number of lanes, leaves behind many others have many pairs on one lane.
fn lane(leaf: u16, other: u16, lanes: u8) -> u8 {
    let (first, second, lanes) = (leaf.min(other), leaf.max(other), u16::from(lanes));
    if first == second {
        return 0;
    }
    let doubled = 2 * u32::from(first);
    let wrapped = doubled / u32::from(lanes) % 2;
    let begin = doubled % u32::from(lanes) + wrapped;
    ((begin + u32::from(second - first - 1)) % u32::from(lanes)) as u8
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lanes of A-B, A-C, B-C and inside of A on a tree of three leaves.
    fn three_leaves(lanes: u8) -> [u8; 4] {
        [lane(0, 1, lanes), lane(0, 2, lanes), lane(1, 2, lanes), lane(0, 0, lanes)]
    }

    #[test]
    fn three_leaves_share_one_to_four_lanes_as_in_the_paper() {
        assert_eq!(three_leaves(1), [0, 0, 0, 0]);
        assert_eq!(three_leaves(2), [0, 1, 1, 0]);
        assert_eq!(three_leaves(3), [0, 1, 2, 0]);
        assert_eq!(three_leaves(4), [0, 1, 2, 0]);
    }

    /// The printed loops, with the counter that they carry along.
    fn printed(leaves: u16, lanes: u16) -> Vec<Vec<u16>> {
        let mut table = vec![vec![0; usize::from(leaves)]; usize::from(leaves)];
        for source in 0..leaves {
            let mut next = 2 * source % lanes;
            if (2 * source / lanes) % 2 == 1 {
                next += 1;
            }
            for destination in source + 1..leaves {
                table[usize::from(source)][usize::from(destination)] = next;
                table[usize::from(destination)][usize::from(source)] = next;
                next = (next + 1) % lanes;
            }
        }
        table
    }

    #[test]
    fn any_number_of_lanes_is_shared_as_the_algorithm_says() {
        for lanes in 1..=15 {
            for leaves in 1..40 {
                for (leaf, row) in (0..).zip(printed(leaves, u16::from(lanes))) {
                    for (other, expected) in (0..).zip(row) {
                        let found = u16::from(lane(leaf, other, lanes));
                        assert_eq!(found, expected, "{leaf} and {other} of {leaves}, {lanes} lanes");
                    }
                }
            }
        }
    }

    #[test]
    fn vftree_lanes_are_symmetric_and_balanced_per_leaf() {
        for lanes in 1..=15u8 {
            for leaf in 0..50 {
                let mut uses = vec![0; usize::from(lanes)];
                for other in leaf + 1..50 {
                    let lane_there = lane(leaf, other, lanes);
                    assert_eq!(lane_there, lane(other, leaf, lanes));
                    uses[usize::from(lane_there)] += 1;
                }
                let (least, most) = (uses.iter().min().unwrap(), uses.iter().max().unwrap());
                assert!(most - least <= 1, "{lanes} lanes, leaf {leaf}: {uses:?}");
            }
        }
    }
}
