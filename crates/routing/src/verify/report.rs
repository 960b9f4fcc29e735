//! Reachability: the packets that tables do not bring home.

use std::fmt;

use serde::Serialize;

use crate::trace::TraceError;

/// How many counter-examples a report keeps; it counts the others.
pub const COUNTER_EXAMPLES_MAX: usize = 16;

/// What [`verify`](crate::verify) found.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Report {
    /// How many (switch, LID) pairs were followed: all that cables connect.
    pub pairs: u64,
    /// How many pairs nothing connects.
    pub disconnected: u64,
    /// By number of cables between switches: how many pairs take that many.
    pub hops: Vec<u64>,
    /// How many pairs arrive by more cables than the least possible.
    pub detours: u64,
    /// How many pairs do not arrive: no route, a dead end, a wrong node or a loop.
    pub failures: u64,
    /// How many of those are ways from a switch without hosts to the LID of a switch, which no one sends by. Up/down
    /// routing leaves them out where the way would go up again after it went down.
    pub between_switches: u64,
    /// The first few of those that do not arrive; those between switches alone come last.
    pub counter_examples: Vec<TraceError>,
    /// How many LIDs belong to ports that no switch is cabled to, so that nothing can be said of them.
    pub unattached: u64,
}

/// A [`Report`] in numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct ReportSummary {
    /// As in [`Report`].
    pub pairs: u64,
    /// As in [`Report`].
    pub disconnected: u64,
    /// The longest way, in cables between switches.
    pub hops_max: usize,
    /// As in [`Report`].
    pub detours: u64,
    /// As in [`Report`].
    pub failures: u64,
}

impl Report {
    /// Whether every packet arrives.
    pub fn is_sound(&self) -> bool {
        self.failures == 0
    }

    /// Whether every packet arrives that a host sends or receives.
    pub fn serves_hosts(&self) -> bool {
        self.failures == self.between_switches
    }

    /// Whether every packet arrives by the least number of cables.
    pub fn is_minimal(&self) -> bool {
        self.is_sound() && self.detours == 0
    }

    /// In numbers.
    pub fn summary(&self) -> ReportSummary {
        ReportSummary {
            pairs: self.pairs,
            disconnected: self.disconnected,
            hops_max: self.hops.len().saturating_sub(1),
            detours: self.detours,
            failures: self.failures,
        }
    }

    pub(super) fn arrival(&mut self, hops: u32, least: u32) {
        self.arrivals(hops, 1);
        self.detours += u64::from(hops > least);
    }

    /// Counts pairs that arrive by the least number of cables.
    pub(super) fn arrivals(&mut self, hops: u32, pairs: u64) {
        let hops_index = hops as usize;
        if self.hops.len() <= hops_index {
            self.hops.resize(hops_index + 1, 0);
        }
        self.hops[hops_index] += pairs;
        self.pairs += pairs;
    }

    /// Adds what was found for later LIDs.
    pub(super) fn append(&mut self, later: Self) {
        self.pairs += later.pairs;
        self.disconnected += later.disconnected;
        self.detours += later.detours;
        self.failures += later.failures;
        self.between_switches += later.between_switches;
        self.unattached += later.unattached;
        self.counter_examples.extend(later.counter_examples);
        self.counter_examples.truncate(COUNTER_EXAMPLES_MAX);
        if self.hops.len() < later.hops.len() {
            self.hops.resize(later.hops.len(), 0);
        }
        for (hops, more) in self.hops.iter_mut().zip(later.hops) {
            *hops += more;
        }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} pairs, {} failures, {} detours", self.pairs, self.failures, self.detours)?;
        for error in &self.counter_examples {
            write!(f, "\n  {error}")?;
        }
        Ok(())
    }
}
