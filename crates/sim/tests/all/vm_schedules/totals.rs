//! Counts of what happened in schedules.

use weft_sim::{Process, Simulation};
use weft_topology::NodeIndex;
use weft_vm::MoveCounts;

use crate::support::counts::Counts;

/// How subnet managers choose the switches of a move, and the orders of their writes.
const METHODS: [&str; 4] = ["ftreeminrc", "skyline", "itrc", "full"];
const ORDERS: [&str; 4] = ["ordered", "ordered-late", "drop-first", "unordered"];

/// What happens in schedules, beside methods and orders of moves.
const NAMES: [&str; 19] = [
    "created",
    "moved",
    "undone",
    "lost",
    "agents killed",
    "switches killed",
    "VM managers killed",
    "subnet managers killed",
    // Those of them that died at a step of a move.
    "killed within",
    "cables cut",
    "packets lost",
    "looks",
    // Moves at rest whose writes were counted.
    "counted",
    // Plans and repairs that were made again from the log, and rows that switches hold as it has them.
    "replayed",
    "rows",
    // LIDs whose rows became fresh again by plans that were replayed, and such plans that ended on the way.
    "rebalanced",
    "rebalances cut",
    // How often links were weighed after a move, where the subnet manager rebalances.
    "weighed",
    // Schedules in which vSwitches have the LIDs of physical functions.
    "shared LIDs",
];

/// Nothing has happened yet.
pub(crate) fn counts() -> Counts {
    let mut counts = Counts::of(&NAMES);
    METHODS.iter().chain(&ORDERS).for_each(|name| counts.add(name, 0));
    counts
}

/// Takes down how a move was made.
pub(crate) fn count_move(counts: &mut Counts, moved: &MoveCounts) {
    let known = |word: &String| METHODS.iter().chain(&ORDERS).copied().find(|known| known == word);
    [&moved.method, &moved.update].into_iter().filter_map(known).for_each(|name| counts.one(name));
}

/// The manager in charge.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Masters {
    /// At the last look that found someone.
    last: Option<Process<NodeIndex>>,
    /// How often it was another one than before.
    pub(crate) takeovers: u64,
    /// At how many looks two were.
    pub(crate) two: u64,
}

impl Masters {
    /// Looks who is.
    pub(crate) fn see(&mut self, simulation: &Simulation) {
        self.two +=
            u64::from(simulation.managers().filter(|(_, manager)| manager.is_in_charge()).count() > 1);
        if let Some(master) = simulation.master() {
            let before = self.last.replace(master);
            self.takeovers += u64::from(before.is_some_and(|before| before != master));
        }
    }
}
