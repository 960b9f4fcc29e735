//! Gains of one variant over another.

use serde::Serialize;

use crate::judge::{bound_for, fits, held};
use crate::measure::mean;
use crate::{Driver, Experiment, Finding, Gain, RunId, RunResult, When};

/// A gain, for one choice of the axes that it does not name.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct GainFinding {
    /// The driver of the runs.
    pub driver: Driver,
    /// The mean over seeds in the variant compared with.
    pub base: Option<f64>,
    /// The mean over seeds in the variant.
    pub with: Option<f64>,
    /// The unit of both.
    pub unit: &'static str,
    /// The choices on the axes that the gain does not name.
    #[serde(skip)]
    pub rest: Vec<(String, String)>,
    /// The gain in percent, with its bound and the paper's number.
    pub finding: Finding,
}

/// All gains of a file: for each, every driver and every choice of the axes on which both variants are free.
pub(crate) fn gains(experiment: &Experiment, runs: &[&RunResult]) -> Vec<GainFinding> {
    let mut all = Vec::new();
    for (nth, gain) in experiment.gains.iter().enumerate() {
        let with: Vec<&&RunResult> = runs.iter().filter(|run| fits(&gain.to, &run.run)).collect();
        let mut seen: Vec<(Driver, Vec<(String, String)>)> = Vec::new();
        for run in &with {
            let rest = rest(gain, &run.run);
            if !seen.contains(&(run.driver, rest.clone())) {
                seen.push((run.driver, rest));
            }
        }
        for (driver, rest) in seen {
            let is_like = |run: &RunResult| {
                run.driver == driver && rest.iter().all(|choice| run.run.choices.contains(choice))
            };
            // What was not run has no gain: one variant alone can be asked for.
            if !runs.iter().any(|run| is_like(run) && fits(&gain.from, &run.run)) {
                continue;
            }
            let same = |when: &When| {
                let values = runs.iter().filter(|run| is_like(run) && fits(when, &run.run));
                mean(values.filter_map(|run| run.gains.get(nth).copied().flatten()))
            };
            all.push(found(gain, driver, &rest, same(&gain.from), same(&gain.to)));
        }
    }
    all
}

/// The choices of a run on the axes that a gain does not name.
fn rest(gain: &Gain, run: &RunId) -> Vec<(String, String)> {
    let named = |axis: &str| gain.from.iter().chain(&gain.to).any(|(name, _)| name == axis);
    run.choices.iter().filter(|(axis, _)| !named(axis)).cloned().collect()
}

fn found(
    gain: &Gain,
    driver: Driver,
    rest: &[(String, String)],
    base: Option<f64>,
    with: Option<f64>,
) -> GainFinding {
    let percent =
        base.zip(with).filter(|(base, _)| *base > 0.0).map(|(base, with)| (with / base - 1.0) * 100.0);
    let bound = bound_for(driver, gain.bound, gain.driver);
    let (outcome, reason) = held(percent, bound, "%");
    let choices: Vec<String> = rest.iter().map(|(axis, label)| format!("{axis} = {label}")).collect();
    let name = if choices.is_empty() {
        gain.name.clone()
    } else {
        format!("{} ({})", gain.name, choices.join(", "))
    };
    let finding = Finding {
        name,
        unit: "%",
        measured: percent,
        bound,
        basis: gain.basis.clone().filter(|_| bound.is_some()),
        paper: gain.paper.clone(),
        outcome,
        agrees: gain.paper.as_ref().map(|paper| paper.agrees(percent)),
        reason,
    };
    GainFinding { driver, base, with, unit: gain.what.unit(), rest: rest.to_vec(), finding }
}
