//! The VM manager at one moment, for whoever looks.

use std::collections::BTreeMap;
use std::time::Duration;

use weft_control::vmm::{VPort, VmmStatus};
use weft_vm::{Census, Counts};

/// The VM manager at one moment.
#[derive(Clone, Debug)]
pub(crate) struct VmmFigures {
    pub(crate) attached: bool,
    pub(crate) stopped: Option<String>,
    pub(crate) census: Census,
    pub(crate) counts: Counts,
    pub(crate) journal_bytes: u64,
    pub(crate) commands_dropped: u64,
    pub(crate) requests_refused: u64,
    pub(crate) list: Vec<VPort>,
}

impl VmmFigures {
    /// Machines by state.
    pub(crate) fn states(&self) -> BTreeMap<String, u64> {
        let mut states = BTreeMap::new();
        for port in &self.list {
            *states.entry(port.vm_state.clone()).or_insert(0) += 1;
        }
        states
    }

    /// What was counted, by name.
    pub(crate) fn counted(&self) -> [(&'static str, &'static str, u64); 8] {
        let counts = &self.counts;
        [
            ("requests", "Requests of clients", counts.requests),
            (
                "requests_refused",
                "Requests that found a queue full",
                counts.queue_full + self.requests_refused,
            ),
            ("moves_done", "Moves that were completed", counts.moved),
            ("moves_undone", "Moves that were undone", counts.undone),
            ("vms_lost", "Virtual machines that died with their hosts", counts.lost),
            ("strays", "Answers that belonged to nothing", counts.strays),
            ("bad_reports", "Reports of agents that cannot be", counts.bad_reports),
            ("commands_dropped", "Commands that found the queue of an agent full", self.commands_dropped),
        ]
    }

    pub(crate) fn status(&self, age: Duration) -> VmmStatus {
        let census = &self.census;
        VmmStatus {
            age_ms: u64::try_from(age.as_millis()).unwrap_or(u64::MAX),
            stopped: self.stopped.clone(),
            attached: self.attached,
            generation: census.generation,
            scheme: census.scheme.name().to_owned(),
            hosts: census.hosts,
            hosts_ready: census.hosts_ready,
            slots: census.slots,
            slots_free: census.slots_free,
            vms: self.states(),
            queued: census.queued,
            under_way: census.under_way,
            journal_bytes: self.journal_bytes,
            counts: self.counted().into_iter().map(|(name, _, value)| (name.to_owned(), value)).collect(),
        }
    }
}
