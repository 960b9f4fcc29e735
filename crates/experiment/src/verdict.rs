//! The verdict on a recording: each expectation with the measured value.

use serde::Serialize;

use crate::{Basis, Bound, Driver, Paper, RunId};

/// How an expectation fared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// It was only to be shown.
    #[default]
    Shown,
    /// It is as expected.
    Kept,
    /// It is not.
    Failed,
}

/// One expectation with what was measured.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Finding {
    /// What the line says.
    pub name: String,
    /// The unit of what is measured: `Gb/s`, `%`, `s`, `µs`, or nothing.
    pub unit: &'static str,
    /// The measured value; none if it did not happen or is unknown.
    pub measured: Option<f64>,
    /// What the model says it must be.
    pub bound: Option<Bound>,
    /// Where the bound comes from; none also for what holds for every run.
    pub basis: Option<Basis>,
    /// What the paper prints.
    pub paper: Option<Paper>,
    /// How it fared against the model.
    pub outcome: Outcome,
    /// Whether it agrees with the paper; none where that prints nothing, or what went into the run.
    pub agrees: Option<bool>,
    /// Why it failed, in one line; empty when it did not.
    pub reason: String,
}

/// What became of one run's expectations.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Verdict {
    /// Which run.
    pub run: RunId,
    /// The driver of the run.
    pub driver: Driver,
    /// Why the run is no result, whatever its numbers say: it ended early, or woke up too late. Empty is a result.
    pub invalid: Vec<String>,
    /// Nothing but a busy machine is the reason: the run proves nothing, neither good nor bad.
    pub spoilt: bool,
    /// The expectations of the file, then those that hold for every run: order, conservation.
    pub findings: Vec<Finding>,
}

impl Verdict {
    /// Whether the run is a result and nothing failed.
    pub fn passed(&self) -> bool {
        self.invalid.is_empty() && self.findings.iter().all(|finding| finding.outcome != Outcome::Failed)
    }

    /// All failures, a line each. A busy machine is none: [`Verdict::spoilt`].
    pub fn failures(&self) -> impl Iterator<Item = String> + '_ {
        let failed = self.findings.iter().filter(|finding| finding.outcome == Outcome::Failed);
        let failed = failed.map(|finding| format!("{}: {}", finding.name, finding.reason));
        self.broken().cloned().chain(failed)
    }

    /// Reasons why the run is no result, where that is not the machine's fault.
    pub fn broken(&self) -> impl Iterator<Item = &String> {
        self.invalid.iter().filter(|_| !self.spoilt)
    }
}
