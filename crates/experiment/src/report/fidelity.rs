//! Beside the paper: every figure that it prints and that was measured, and whether the two agree.
//! What the model says is judged separately, and neither verdict knows of the other.

use serde::Serialize;

use super::table::Table;
use super::{GainFinding, Variant, driver};
use crate::measure::mean;
use crate::number::number;
use crate::{Driver, FidelityVerdict, Finding, Paper};

/// A printed figure and the measured one.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FidelityRow {
    /// The measured quantity.
    pub what: String,
    /// In which variant; empty where the line names it itself.
    pub variant: String,
    /// The driver of the run; none where nothing ran, as in a study.
    pub driver: Option<Driver>,
    /// The unit of both.
    pub unit: &'static str,
    /// What the paper prints, and why ours differs.
    pub paper: Paper,
    /// The mean over seeds; none when nothing was measured.
    pub ours: Option<f64>,
    /// Ours over the paper's; none where that is zero.
    pub ratio: Option<f64>,
    /// Whether they agree, within [`Paper::AGREEMENT_PERCENT`], or the printed one went into the run.
    pub verdict: FidelityVerdict,
    /// The row as the report has it, for pages over several reports.
    pub markdown: String,
}

impl FidelityRow {
    /// A printed figure beside one that no run of an experiment has measured.
    pub fn beside(what: impl Into<String>, unit: &'static str, paper: Paper, ours: Option<f64>) -> Self {
        Self {
            what: what.into(),
            variant: String::new(),
            driver: None,
            unit,
            ratio: ours.filter(|_| paper.value != 0.0).map(|ours| ours / paper.value),
            verdict: paper.verdict(ours),
            ours,
            paper,
            markdown: String::new(),
        }
        .written()
    }

    fn new(finding: &Finding, ours: Option<f64>, variant: String, driver: Driver) -> Option<Self> {
        let row = Self::beside(finding.name.clone(), finding.unit, finding.paper.clone()?, ours);
        Some(Self { variant, driver: Some(driver), ..row }.written())
    }

    fn written(mut self) -> Self {
        self.markdown = super::table::line(self.cells());
        self
    }

    fn why(&self) -> String {
        let Paper { why, given, .. } = &self.paper;
        match self.verdict {
            FidelityVerdict::Given if why.is_empty() => format!("an input: {given}"),
            FidelityVerdict::Given => format!("an input: {given}; {why}"),
            FidelityVerdict::Differs if why.is_empty() => "not known".to_owned(),
            FidelityVerdict::Agrees | FidelityVerdict::Differs => why.clone(),
        }
    }

    fn cells(&self) -> [String; 6] {
        let or_dash = |value: Option<f64>| value.map_or("–".to_owned(), |value| number(value, self.unit));
        let printed = number(self.paper.value, self.unit);
        let printed = if self.paper.is_limit { format!("less than {printed}") } else { printed };
        let place =
            if self.paper.source.is_empty() { printed } else { format!("{printed} ({})", self.paper.source) };
        [
            if self.variant.is_empty() {
                self.what.clone()
            } else {
                format!("{}; {}", self.what, self.variant)
            },
            place,
            or_dash(self.ours),
            self.ratio.map_or("–".to_owned(), |ratio| format!("{ratio:.2}")),
            self.verdict.to_string(),
            self.why(),
        ]
    }
}

/// Everything that the paper prints and that was measured, in the order of the file.
pub(super) fn rows(variants: &[Variant<'_>], gains: &[GainFinding]) -> Vec<FidelityRow> {
    let mut rows = Vec::new();
    for variant in variants {
        let Some(first) = variant.runs.first() else { continue };
        // All runs of a variant have the same findings in the same order.
        for (nth, finding) in first.verdict.findings.iter().enumerate() {
            let same = variant.runs.iter().filter_map(|run| run.verdict.findings.get(nth)?.measured);
            rows.extend(FidelityRow::new(finding, mean(same), variant.title(), variant.driver));
        }
    }
    for gain in gains {
        let by = driver(gain.driver).to_owned();
        rows.extend(FidelityRow::new(&gain.finding, gain.finding.measured, by, gain.driver));
    }
    rows
}

/// The table of these rows; nothing where there are none.
pub fn table(rows: &[FidelityRow]) -> String {
    if rows.is_empty() {
        return String::new();
    }
    let count = |verdict| rows.iter().filter(|row| row.verdict == verdict).count();
    let [agree, differ, given] = FidelityVerdict::ALL.map(count);
    let percent = Paper::AGREEMENT_PERCENT;
    let mut table = Table::headed("what | paper | ours | ratio | verdict | why");
    for row in rows {
        table.row(&row.cells());
    }
    let (count, table) = (rows.len(), table.finish());
    format!(
        "{count} printed figures: {agree} agree with ours within {percent} %, {differ} differ, {given} are inputs of the \
         run and count neither way.\n\n{table}"
    )
}
