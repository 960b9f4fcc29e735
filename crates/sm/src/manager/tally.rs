//! Counts of the manager's work and findings.

use crate::knowledge::Subnet;
use crate::{Progress, VmLids};

/// Counts that [`Progress`] and summaries show.
#[derive(Debug, Default)]
pub(super) struct Tally {
    /// As of the last sweep; what is under way is added when somebody asks.
    progress: Progress,
    /// Heavy sweeps and repairs.
    sweeps: u64,
    /// MADs that were ignored before any step saw them.
    ignored: u64,
}

impl Tally {
    pub(super) fn progress(&self) -> Progress {
        Progress { mads_ignored: self.ignored, ..self.progress }
    }

    pub(super) fn sweeps(&self) -> u64 {
        self.sweeps
    }

    pub(super) fn begin_sweep(&mut self) {
        self.sweeps += 1;
    }

    pub(super) fn ignore(&mut self) {
        self.ignored += 1;
    }

    /// Which nodes there are.
    pub(super) fn found(&mut self, subnet: &Subnet) {
        self.progress.switches = subnet.switches().count() as u32;
        self.progress.hosts = subnet.nodes.len() as u32 - self.progress.switches;
    }

    /// How many ports have LIDs.
    pub(super) fn gave_lids(&mut self, lids: usize) {
        self.progress.lids = lids as u32;
    }

    /// What became of the LIDs of virtual functions.
    pub(super) fn gave_vm_lids(&mut self, lids: VmLids) {
        let rebalances = self.progress.vm_lids.rebalances;
        self.progress.vm_lids = VmLids { rebalances, ..lids };
    }

    /// How good the tables of machines' LIDs are beside fresh ones.
    pub(super) fn weighed(&mut self, balance: u32) {
        self.progress.vm_lids.rebalances.balance = balance;
    }

    /// The rows of a machine's LID have become fresh.
    pub(super) fn rebalanced_lid(&mut self, smps: u32) {
        let counts = &mut self.progress.vm_lids.rebalances;
        (counts.lids, counts.smps) = (counts.lids + 1, counts.smps + u64::from(smps));
    }

    /// A rebalance was completed.
    pub(super) fn rebalanced(&mut self, balance: Option<u32>) {
        let counts = &mut self.progress.vm_lids.rebalances;
        (counts.runs, counts.balance) = (counts.runs + 1, balance.unwrap_or(counts.balance));
    }

    /// How many requests the phase that begins has, as far as is known.
    pub(super) fn expect(&mut self, total: u64) {
        self.progress.total = total;
    }

    pub(super) fn ports_active(&mut self, ports: u32) {
        self.progress.ports_active = ports;
    }

    pub(super) fn ports_silent(&mut self, ports: u32) {
        self.progress.ports_silent = ports;
    }

    /// Subscribers were told to use paths differently.
    pub(super) fn repathed(&mut self, times: u64) {
        self.progress.repaths += times;
    }
}
