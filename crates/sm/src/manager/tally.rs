//! Counts of the manager's work and findings.

use crate::knowledge::Subnet;
use crate::{Progress, VmLids};

/// Counts that [`Progress`] and summaries show.
#[derive(Debug, Default)]
pub(super) struct Tally {
    /// As of the last sweep; what is under way is added when somebody asks.
    pub(super) progress: Progress,
    /// Heavy sweeps and repairs.
    pub(super) sweeps: u64,
    /// MADs that were ignored before any step saw them.
    pub(super) ignored: u64,
}

impl Tally {
    pub(super) fn progress(&self) -> Progress {
        Progress { mads_ignored: self.ignored, ..self.progress }
    }

    /// Which nodes there are.
    pub(super) fn found(&mut self, subnet: &Subnet) {
        self.progress.switches = subnet.switches().count() as u32;
        self.progress.hosts = subnet.nodes.len() as u32 - self.progress.switches;
    }

    /// What became of the LIDs of virtual functions.
    pub(super) fn gave_vm_lids(&mut self, lids: VmLids) {
        let rebalances = self.progress.vm_lids.rebalances;
        self.progress.vm_lids = VmLids { rebalances, ..lids };
    }

    /// The rows of a machine's LID have become fresh.
    pub(super) fn rebalanced_lid(&mut self, smps: u32) {
        let counts = &mut self.progress.vm_lids.rebalances;
        (counts.lids, counts.smps) = (counts.lids + 1, counts.smps + u64::from(smps));
    }

    /// Tables by a report of what hosts receive were weighed.
    pub(super) fn weighed(&mut self, is_taken: bool, before: u32, after: Option<u32>) {
        let counts = &mut self.progress.learning;
        *(if is_taken { &mut counts.taken } else { &mut counts.kept }) += 1;
        counts.busiest = after.filter(|_| is_taken).unwrap_or(before);
    }

    /// A rebalance was completed.
    pub(super) fn rebalanced(&mut self, balance: Option<u32>) {
        let counts = &mut self.progress.vm_lids.rebalances;
        (counts.runs, counts.balance) = (counts.runs + 1, balance.unwrap_or(counts.balance));
    }
}
