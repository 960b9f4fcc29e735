//! Main paths: from a root down to every LID.

use weft_wire::PortNum;

use super::plan::{LidTarget, Plan};
use crate::sorted;
use crate::tree::{Cable, Group, Tree};

/// Where a path has no switch of a rank.
pub(super) const NO_SWITCH: u32 = u32::MAX;

/// The main path of every target, from the top of the tree down to the switch that delivers it.
pub(super) struct Chains {
    /// By rank, then by target: the switch of that rank on the path.
    switches: Vec<Vec<u32>>,
    /// By rank, then by target: the port by which that switch sends it down.
    exits: Vec<Vec<PortNum>>,
}

impl Chains {
    /// Goes up from the switch of each target, in order, each time by the cable by which the least is sent down so
    /// far (vSwitch paper, algorithm 1, lines 15 to 22).
    pub(super) fn new(tree: &Tree, plan: &Plan) -> Self {
        let count = plan.targets.len();
        let mut chains = Self {
            switches: vec![vec![NO_SWITCH; count]; tree.rank_count()],
            exits: vec![vec![PortNum::NONE; count]; tree.rank_count()],
        };
        let mut loads = Loads::new(tree);
        let mut resets = plan.resets.iter().copied().peekable();
        for (place, target) in plan.targets.iter().enumerate() {
            while resets.next_if_eq(&place).is_some() {
                loads.reset();
            }
            let mut at = target.at;
            let mut rank = tree.rank(at) as usize;
            chains.switches[rank][place] = at;
            chains.exits[rank][place] = target.exit;
            while let Some((upper, exit)) = loads.go_up(tree, plan, &chains, target, at) {
                rank -= 1;
                chains.switches[rank][place] = upper;
                chains.exits[rank][place] = exit;
                at = upper;
            }
        }
        chains
    }

    /// By target: its path's switch of a rank, or [`NO_SWITCH`].
    pub(super) fn at_rank(&self, rank: usize) -> &[u32] {
        &self.switches[rank]
    }

    /// The port by which the switch of a rank on a target's path sends it down.
    pub(super) fn exit(&self, rank: usize, place: usize) -> PortNum {
        self.exits[rank][place]
    }
}

/// How much is sent down by every cable and every group.
struct Loads {
    cables: Vec<u32>,
    groups: Vec<u32>,
    /// By switch: the lowest rank that is reached upwards. Where cables are missing, not every switch leads to a root.
    tops: Vec<u32>,
}

/// The smaller the better: does it lead less far up, how often do other LIDs of the end port use the group and the
/// cable, how much goes by the cable and by the group.
type Cost = (u32, u32, u32, u32, u32);

impl Loads {
    fn new(tree: &Tree) -> Self {
        let mut order: Vec<u32> = (0..tree.graph.len() as u32).collect();
        sorted::numbers(&mut order, |at| tree.rank(at));
        let mut tops: Vec<u32> = tree.ranks.clone();
        for at in order {
            for (_, group) in tree.up(at) {
                tops[at as usize] = tops[at as usize].min(tops[group.upper as usize]);
            }
        }
        Self { cables: vec![0; tree.cables.len()], groups: vec![0; tree.groups.len()], tops }
    }

    fn reset(&mut self) {
        self.cables.fill(0);
        self.groups.fill(0);
    }

    /// The switch above `at` that sends a target down, and by which port; `None` at the top.
    fn go_up(
        &mut self,
        tree: &Tree,
        plan: &Plan,
        chains: &Chains,
        target: &LidTarget,
        at: u32,
    ) -> Option<(u32, PortNum)> {
        let mut best: Option<(Cost, usize, usize)> = None;
        for (group_place, group) in tree.up(at) {
            let top = self.tops[group.upper as usize];
            for (cable_place, cable) in tree.cables(group) {
                let (by_group, by_cable) = match target.earlier {
                    None => (0, 0),
                    Some(_) => uses(plan, chains, target, tree.rank(at) as usize, group, cable),
                };
                let loads = (self.cables[cable_place], self.groups[group_place]);
                let cost = (top, by_group, by_cable, loads.0, loads.1);
                if best.is_none_or(|best| cost < best.0) {
                    best = Some((cost, group_place, cable_place));
                }
            }
        }
        let (_, group, cable) = best?;
        self.cables[cable] += target.weight;
        self.groups[group] += target.weight;
        Some((tree.groups[group].upper, tree.cables[cable].upper))
    }
}

/// How many earlier LIDs of the same end port come down by a group, and how many by a cable of it.
fn uses(
    plan: &Plan,
    chains: &Chains,
    target: &LidTarget,
    rank: usize,
    group: &Group,
    cable: &Cable,
) -> (u32, u32) {
    let (mut by_group, mut by_cable) = (0, 0);
    let mut earlier = target.earlier;
    while let Some(place) = earlier {
        let place = place as usize;
        earlier = plan.targets[place].earlier;
        let same = chains.switches[rank][place] == group.lower;
        if same && chains.switches[rank - 1][place] == group.upper {
            by_group += 1;
            by_cable += u32::from(chains.exits[rank - 1][place] == cable.upper);
        }
    }
    (by_group, by_cable)
}
