//! Reports: Markdown with tables, figures, CSV and JSON, from the results of runs.

mod agreement;
mod conditions;
mod faults;
mod fidelity;
mod figures;
mod gains;
mod index;
mod markdown;
mod migrations;
mod prediction;
mod table;
mod windows;

use std::collections::BTreeMap;

use serde::Serialize;

pub use conditions::{ConditionRow, conditions};
pub use fidelity::{FidelityRow, table as fidelity_table};
pub use gains::GainFinding;
pub use index::index;
pub use table::Table;

use crate::file::is_usual;
use crate::{Driver, Experiment, ExperimentFile, FigureKind, RunId, RunResult};
use agreement::{Agreement, agreements};

/// What a report comes to.
#[derive(Clone, Debug, PartialEq)]
pub struct Report {
    /// The experiment's title.
    pub title: String,
    /// The files to be written, by name: `report.md` and what it shows.
    pub files: BTreeMap<String, String>,
    /// What was compared between variants.
    pub gains: Vec<GainFinding>,
    /// What the paper prints beside what was measured.
    pub fidelity: Vec<FidelityRow>,
    /// Under which conditions the verdicts hold; none where the series has no conditions.
    pub conditions: Vec<ConditionRow>,
    /// How many runs it is made from.
    pub runs: usize,
    /// Live runs that a busy machine spoilt, a line each: they count neither for nor against the experiment.
    pub invalid: Vec<String>,
    /// Everything that is not as expected, a line each. Empty is a success, if no run is invalid.
    pub failures: Vec<String>,
}

/// Runs that differ by their seed alone.
pub(crate) struct Variant<'a> {
    pub(crate) choices: &'a [(String, String)],
    pub(crate) driver: Driver,
    pub(crate) runs: Vec<&'a RunResult>,
}

impl Variant<'_> {
    /// `pm.mode = on, live`
    pub(crate) fn title(&self) -> String {
        let choices = self.choices.iter().map(|(axis, label)| format!("{axis} = {label}"));
        choices.chain([driver(self.driver).to_owned()]).collect::<Vec<_>>().join(", ")
    }
}

pub(crate) fn driver(driver: Driver) -> &'static str {
    match driver {
        Driver::Live => "live",
        Driver::Virtual => "virtual time",
    }
}

/// `pm-on-seed-1-live`
fn slug(run: &RunId, by: Driver) -> String {
    let driver = if by == Driver::Live { "live" } else { "virtual" };
    format!("{}-{driver}", run.slug())
}

#[derive(Serialize)]
struct Everything<'a> {
    file: &'a str,
    experiment: &'a Experiment,
    gains: &'a [GainFinding],
    fidelity: &'a [FidelityRow],
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    conditions: &'a [ConditionRow],
    invalid: &'a [String],
    failures: &'a [String],
    runs: &'a [RunResult],
}

impl Report {
    /// A report of all runs of one experiment, in the order in which they are given.
    pub fn new(file: &ExperimentFile, runs: &[RunResult]) -> Self {
        let variants = variants(runs);
        // A run that is no result is beside nothing.
        let results: Vec<&RunResult> = runs.iter().filter(|run| run.verdict.invalid.is_empty()).collect();
        let gains = gains::gains(file.plain(), &results);
        // Under other conditions nothing is beside the paper or drawn: they say how far the verdicts reach.
        let usual = &runs[..runs.iter().take_while(|run| run.run.is_usual()).count()];
        let (usual_gains, _): (Vec<_>, Vec<_>) = gains.iter().cloned().partition(|gain| is_usual(&gain.rest));
        let usual_results = results.iter().copied().filter(|run| run.run.is_usual());
        let fidelity = fidelity::rows(&self::variants(usual_results), &usual_gains);
        let conditions = conditions::rows(file, &variants, &gains);
        let agreements = agreements(&results);
        let (invalid, failures) = (invalid(runs), failures(runs, &usual_gains, &agreements));
        let mut files = BTreeMap::new();
        for run in runs {
            files.insert(format!("samples-{}.csv", slug(&run.run, run.driver)), run.csv.clone());
        }
        let mut figures = Vec::new();
        for (nth, figure) in file.plain().figures.iter().enumerate() {
            let drawn = match figure.kind {
                FigureKind::Throughput => Vec::new(),
                FigureKind::Total => figures::total(file, nth, figure, usual),
                FigureKind::Bars => figures::bars(file, nth, figure, usual),
                FigureKind::Windows => windows::figure(file, nth, figure, usual),
            };
            for (name, text) in drawn {
                if name.ends_with(".svg") {
                    figures.push((figures::title(file, figure), name.clone()));
                }
                files.insert(name, text);
            }
        }
        for variant in &variants {
            for (name, svg) in figures::lines(file, variant) {
                files.insert(name, svg);
            }
        }
        let section = conditions::section(&conditions);
        let page = markdown::Page {
            file,
            variants: &variants,
            gains: &gains,
            fidelity: &fidelity,
            conditions: &section,
            figures: &figures,
        };
        let markdown = page.write(&invalid, &failures, &agreements);
        files.insert("report.md".to_owned(), markdown);
        let everything = Everything {
            file: file.name(),
            experiment: file.plain(),
            gains: &gains,
            fidelity: &fidelity,
            conditions: &conditions,
            invalid: &invalid,
            failures: &failures,
            runs,
        };
        // Nothing in a result can fail to be written: keys are texts.
        let json = serde_json::to_string_pretty(&everything)
            .unwrap_or_else(|error| format!("{{\"error\": \"{error}\"}}"));
        files.insert("report.json".to_owned(), json);
        Self {
            title: file.plain().title.clone(),
            files,
            gains,
            fidelity,
            conditions,
            runs: runs.len(),
            invalid,
            failures,
        }
    }
}

/// Runs grouped by variant and driver, in the order in which each comes first.
fn variants<'a>(runs: impl IntoIterator<Item = &'a RunResult>) -> Vec<Variant<'a>> {
    let mut variants: Vec<Variant<'_>> = Vec::new();
    for run in runs {
        let same = |variant: &&mut Variant<'_>| {
            variant.choices == run.run.choices.as_slice() && variant.driver == run.driver
        };
        match variants.iter_mut().find(same) {
            Some(variant) => variant.runs.push(run),
            None => variants.push(Variant { choices: &run.run.choices, driver: run.driver, runs: vec![run] }),
        }
    }
    variants
}

fn invalid(runs: &[RunResult]) -> Vec<String> {
    let spoilt = runs.iter().filter(|run| run.verdict.spoilt);
    spoilt
        .map(|run| format!("{}, {}: {}", run.run, driver(run.driver), run.verdict.invalid.join("; ")))
        .collect()
}

/// Under other conditions than the file's a line that does not hold is no failure, and a run that is no result is one.
fn failures(runs: &[RunResult], gains: &[GainFinding], agreements: &[Agreement]) -> Vec<String> {
    let of_run = |run: &RunResult| {
        let (id, by) = (run.run.to_string(), driver(run.driver));
        let reasons: Vec<String> = match run.run.is_usual() {
            true => run.verdict.failures().collect(),
            false => run.verdict.broken().cloned().collect(),
        };
        reasons.iter().map(|why| format!("{id}, {by}: {why}")).collect::<Vec<_>>()
    };
    let mut failures: Vec<String> = runs.iter().flat_map(of_run).collect();
    let of_gain = |gain: &&GainFinding| gain.finding.outcome == crate::Outcome::Failed;
    failures.extend(
        gains.iter().filter(of_gain).map(|gain| format!("{}: {}", gain.finding.name, gain.finding.reason)),
    );
    for of in agreements.iter().filter(|of| !of.agrees) {
        failures.push(format!(
            "{}: {} in `{}` is {:.2} {} live and {:.2} in virtual time",
            of.run, of.what, of.window, of.live, of.unit, of.simulated
        ));
    }
    failures
}
