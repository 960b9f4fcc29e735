//! What happened in schedules, counted.

use weft_sim::{Process, Simulation};
use weft_topology::NodeIndex;
use weft_vm::MoveCounts;

/// How subnet managers choose the switches of a move, and the orders of their writes.
const METHODS: [&str; 4] = ["ftreeminrc", "skyline", "itrc", "full"];
const ORDERS: [&str; 4] = ["ordered", "ordered-late", "drop-first", "unordered"];

/// What happened in one schedule, or in several.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Totals {
    pub(crate) created: u64,
    pub(crate) moved: u64,
    pub(crate) undone: u64,
    pub(crate) lost: u64,
    pub(crate) agents_killed: u64,
    pub(crate) switches_killed: u64,
    pub(crate) managers_killed: u64,
    pub(crate) subnet_managers_killed: u64,
    /// Those of them that died at a step of a move.
    pub(crate) killed_within: u64,
    pub(crate) cables_cut: u64,
    pub(crate) packets_lost: u64,
    pub(crate) looks: u64,
    /// Moves at rest whose writes were counted.
    pub(crate) counted: u64,
    /// Plans and repairs that were made again from the log, and rows that switches hold as it has them.
    pub(crate) replayed: u64,
    pub(crate) rows: u64,
    /// LIDs whose rows became fresh again by plans that were replayed, and such plans that ended on the way.
    pub(crate) rebalanced: u64,
    pub(crate) rebalances_cut: u64,
    /// How often links were weighed after a move, where the subnet manager rebalances.
    pub(crate) weighed: u64,
    /// Schedules in which vSwitches have the LIDs of physical functions.
    pub(crate) shared_lids: u64,
    /// Moves that were made by each method and in each order.
    methods: [u64; METHODS.len()],
    orders: [u64; ORDERS.len()],
}

impl Totals {
    /// Takes down how a move was made.
    pub(crate) fn count_move(&mut self, counts: &MoveCounts) {
        let place = |words: &[&str], word: &str| words.iter().position(|known| *known == word);
        place(&METHODS, &counts.method).into_iter().for_each(|at| self.methods[at] += 1);
        place(&ORDERS, &counts.update).into_iter().for_each(|at| self.orders[at] += 1);
    }

    fn each_mut(&mut self) -> impl Iterator<Item = &mut u64> {
        let Self { created, moved, undone, lost, agents_killed, switches_killed, managers_killed, .. } = self;
        let Self { subnet_managers_killed, killed_within, cables_cut, packets_lost, looks, counted, .. } =
            self;
        let Self { replayed, rows, rebalanced, rebalances_cut, weighed, shared_lids, .. } = self;
        let Self { methods, orders, .. } = self;
        let faults = [
            agents_killed,
            switches_killed,
            managers_killed,
            subnet_managers_killed,
            killed_within,
            cables_cut,
            packets_lost,
        ];
        let ends = [created, moved, undone, lost, looks, counted, replayed, rows];
        let kinds = [rebalanced, rebalances_cut, weighed, shared_lids];
        faults.into_iter().chain(ends).chain(kinds).chain(methods).chain(orders)
    }

    /// All of them.
    pub(crate) fn each(mut self) -> Vec<u64> {
        self.each_mut().map(|total| *total).collect()
    }

    pub(crate) fn add(&mut self, other: Self) {
        self.each_mut().zip(other.each()).for_each(|(total, more)| *total += more);
    }
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
