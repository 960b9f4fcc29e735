//! Reports: Markdown with tables, figures, CSV and JSON, from the results of runs.

mod fidelity;
mod figures;
mod gains;
mod index;
mod markdown;
mod prediction;
mod table;

use std::collections::BTreeMap;

use serde::Serialize;

pub use fidelity::FidelityRow;
pub use gains::GainFinding;
pub use index::index;

use crate::{Driver, Experiment, ExperimentFile, FigureKind, FlowResult, RunId, RunResult};

/// Two drivers' throughputs of a flow may differ by this share of the greater one, in percent.
const AGREEMENT_PERCENT: f64 = 10.0;
/// Flows below this share of the greatest are too thin to be compared by their ratio, in percent.
const THIN_PERCENT: f64 = 2.0;

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
    /// How many runs it is made from.
    pub runs: usize,
    /// Everything that is not as expected, a line each. Empty is a success.
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
    failures: &'a [String],
    runs: &'a [RunResult],
}

impl Report {
    /// A report of all runs of one experiment, in the order in which they are given.
    pub fn new(file: &ExperimentFile, runs: &[RunResult]) -> Self {
        let variants = variants(runs);
        let gains = gains::gains(file.plain(), runs);
        let fidelity = fidelity::rows(&variants, &gains);
        let disagreements = disagreements(runs);
        let failures = failures(runs, &gains, &disagreements);
        let mut files = BTreeMap::new();
        for run in runs {
            files.insert(format!("samples-{}.csv", slug(&run.run, run.driver)), run.csv.clone());
        }
        let mut figures = Vec::new();
        for (nth, figure) in file.plain().figures.iter().enumerate() {
            if figure.kind == FigureKind::Bars {
                for (driver, svg) in figures::bars(file, nth, figure, runs) {
                    let name = format!("bars-{}-{driver}.svg", nth + 1);
                    figures.push((figures::title(file, figure), name.clone()));
                    files.insert(name, svg);
                }
            }
        }
        for variant in &variants {
            for (name, svg) in figures::lines(file, variant) {
                files.insert(name, svg);
            }
        }
        let page = markdown::Page {
            file,
            variants: &variants,
            gains: &gains,
            fidelity: &fidelity,
            figures: &figures,
        };
        let markdown = page.write(&failures, &disagreements);
        files.insert("report.md".to_owned(), markdown);
        let everything = Everything {
            file: file.name(),
            experiment: file.plain(),
            gains: &gains,
            fidelity: &fidelity,
            failures: &failures,
            runs,
        };
        // Nothing in a result can fail to be written: keys are texts.
        let json = serde_json::to_string_pretty(&everything)
            .unwrap_or_else(|error| format!("{{\"error\": \"{error}\"}}"));
        files.insert("report.json".to_owned(), json);
        Self { title: file.plain().title.clone(), files, gains, fidelity, runs: runs.len(), failures }
    }
}

/// Runs grouped by variant and driver, in the order in which each comes first.
fn variants(runs: &[RunResult]) -> Vec<Variant<'_>> {
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

/// One flow in one window, as a live run and a run in virtual time have it.
pub(crate) struct Agreement {
    pub(crate) run: RunId,
    pub(crate) flow: String,
    pub(crate) window: String,
    pub(crate) live: f64,
    pub(crate) simulated: f64,
    pub(crate) agrees: bool,
}

/// Every flow's throughput in every window, where the same run was made by both drivers; the sum of those that are to be
/// taken as one.
fn disagreements(runs: &[RunResult]) -> Vec<Agreement> {
    let mut all = Vec::new();
    for live in runs.iter().filter(|run| run.driver == Driver::Live) {
        let twin = runs.iter().find(|run| run.driver == Driver::Virtual && run.run == live.run);
        let Some(twin) = twin else { continue };
        let of_all =
            [live, twin].into_iter().flat_map(|run| &run.flows).flat_map(|flow| flow.gbps.iter().flatten());
        let thick = of_all.copied().fold(0.0, f64::max) * THIN_PERCENT / 100.0;
        for (nth, span) in live.windows.iter().enumerate() {
            let pairs = live.flows.iter().zip(&twin.flows);
            let pairs = pairs.filter_map(|(a, b)| Some((a, (*a.gbps.get(nth)?)?, (*b.gbps.get(nth)?)?)));
            for (flow, a, b) in as_one(pairs).into_iter().filter(|(_, a, b)| a.max(*b) > thick) {
                all.push(Agreement {
                    run: live.run.clone(),
                    flow: flow.to_owned(),
                    window: span.name.clone(),
                    live: a,
                    simulated: b,
                    agrees: (a - b).abs() <= a.max(b) * AGREEMENT_PERCENT / 100.0,
                });
            }
        }
    }
    all
}

/// Flows and their two throughputs; those that are to be taken as one are added up in the place of the first.
fn as_one<'a>(flows: impl Iterator<Item = (&'a FlowResult, f64, f64)>) -> Vec<(&'a str, f64, f64)> {
    let mut all: Vec<(&str, f64, f64)> = Vec::new();
    let mut together: BTreeMap<&str, usize> = BTreeMap::new();
    for (flow, a, b) in flows {
        let known = flow.agree_as.as_deref().map(|name| *together.entry(name).or_insert(all.len()));
        match known.and_then(|place| all.get_mut(place)) {
            Some(sum) => (sum.1, sum.2) = (sum.1 + a, sum.2 + b),
            None => all.push((flow.agree_as.as_deref().unwrap_or(&flow.name), a, b)),
        }
    }
    all
}

fn failures(runs: &[RunResult], gains: &[GainFinding], agreements: &[Agreement]) -> Vec<String> {
    let of_run = |run: &RunResult| {
        let (id, by) = (run.run.to_string(), driver(run.driver));
        run.verdict.failures().map(|why| format!("{id}, {by}: {why}")).collect::<Vec<_>>()
    };
    let mut failures: Vec<String> = runs.iter().flat_map(of_run).collect();
    let of_gain = |gain: &&GainFinding| gain.finding.outcome == crate::Outcome::Failed;
    failures.extend(
        gains.iter().filter(of_gain).map(|gain| format!("{}: {}", gain.finding.name, gain.finding.reason)),
    );
    for of in agreements.iter().filter(|of| !of.agrees) {
        failures.push(format!(
            "{}: {} in `{}` is {:.2} Gb/s live and {:.2} in virtual time",
            of.run, of.flow, of.window, of.live, of.simulated
        ));
    }
    failures
}
