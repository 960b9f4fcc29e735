//! Under which conditions the verdicts of experiments hold.

use serde::Serialize;
use weft_wire::count_of;

use super::markdown::{over_seeds, word};
use super::table::{Table, escaped};
use super::{GainFinding, Report, Variant, driver};
use crate::file::condition;
use crate::judge::bounded;
use crate::{ExperimentFile, Finding, Outcome};

/// How the lines of an experiment fare under one condition.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ConditionRow {
    /// The condition.
    pub condition: String,
    /// The lines that hold in every seed, each variant's counted, and those that there are.
    pub kept: usize,
    /// All lines with a bound.
    pub judged: usize,
    /// Those that do not hold, with what was measured.
    pub failed: Vec<String>,
    /// Why the experiment is not run under this condition; empty where it is.
    pub omitted: String,
}

/// A row for each condition of the series, none where it has none.
pub(super) fn rows(
    file: &ExperimentFile,
    variants: &[Variant<'_>],
    gains: &[GainFinding],
) -> Vec<ConditionRow> {
    let empty = |condition: &str| ConditionRow { condition: condition.to_owned(), ..ConditionRow::default() };
    let mut rows = Vec::new();
    for label in file.conditions() {
        let mut row = empty(label);
        for variant in variants.iter().filter(|variant| condition(variant.choices) == Some(label)) {
            row.lines(variant);
        }
        for gain in gains.iter().filter(|gain| condition(&gain.rest) == Some(label)) {
            let Finding { outcome, reason, name, .. } = &gain.finding;
            row.count(*outcome, || format!("{name}: {reason}"));
        }
        rows.push(row);
    }
    let omitted = file.omitted().iter();
    rows.extend(omitted.map(|of| ConditionRow { omitted: of.why.clone(), ..empty(&of.condition) }));
    rows
}

impl ConditionRow {
    fn lines(&mut self, variant: &Variant<'_>) {
        let others = variant.choices.iter().skip(1).map(|(axis, label)| format!("{axis} = {label}"));
        let others: Vec<String> = others.chain([driver(variant.driver).to_owned()]).collect();
        let others = others.join(", ");
        for run in &variant.runs {
            for why in run.verdict.broken() {
                self.count(Outcome::Failed, || format!("{others}, seed {}: {why}", run.run.seed));
            }
        }
        let findings = variant.runs.first().map_or(&[][..], |run| run.verdict.findings.as_slice());
        for (nth, finding) in findings.iter().enumerate() {
            let (measured, outcome) = over_seeds(variant, |run| run.verdict.findings.get(nth));
            let is_failed = |run: &&&crate::RunResult| {
                run.verdict.findings.get(nth).is_some_and(|of| of.outcome == Outcome::Failed)
            };
            let failed = variant.runs.iter().filter(is_failed).count();
            let bound = finding.bound.map(|bound| bounded(&bound, finding.unit)).unwrap_or_default();
            let seeds = format!("{failed} of {}", count_of(variant.runs.len(), "seed"));
            self.count(outcome, || {
                format!("{} ({others}): {measured}, model {bound}; {seeds}", finding.name)
            });
        }
    }

    fn count(&mut self, outcome: Outcome, failed: impl FnOnce() -> String) {
        self.judged += usize::from(outcome != Outcome::Shown);
        self.kept += usize::from(outcome == Outcome::Kept);
        if outcome == Outcome::Failed {
            self.failed.push(failed());
        }
    }

    /// `holds`, `27 of 30`, or `–` where it was not run.
    fn in_short(&self) -> String {
        match (self.judged, self.kept) {
            (0, _) => "–".to_owned(),
            (judged, kept) if kept == judged => "holds".to_owned(),
            (judged, kept) => format!("{kept} of {judged}"),
        }
    }
}

/// The section of one experiment's page.
pub(super) fn section(rows: &[ConditionRow]) -> String {
    if rows.is_empty() {
        return String::new();
    }
    let mut table = Table::new(&["condition", "lines that hold", ""]);
    for row in rows {
        let outcome = match (row.judged, row.failed.len()) {
            (0, _) => Outcome::Shown,
            (_, 0) => Outcome::Kept,
            _ => Outcome::Failed,
        };
        let last = if row.omitted.is_empty() { word(outcome) } else { &row.omitted };
        table.row(&[row.condition.clone(), format!("{} of {}", row.kept, row.judged), last.to_owned()]);
    }
    format!("## Under which conditions the verdicts hold\n\n{}{}", table.finish(), list(rows))
}

/// The lines that do not hold.
fn list(rows: &[ConditionRow]) -> String {
    let lines = rows.iter().flat_map(|row| {
        row.failed.iter().map(|line| format!("- {}: {}\n", escaped(&row.condition), escaped(line)))
    });
    let lines: String = lines.collect();
    if lines.is_empty() { lines } else { lines + "\n" }
}

const HEAD: &str = "# Under which conditions the verdicts hold

Made by `weft run FILES --virtual --conditions --report OUT`, which writes it to OUT; nothing here is written by hand.

The papers print neither the depth of their switches' buffers nor the size of all packets, and a rate scale is weft's own. So each experiment runs as its file says
and under further conditions, one at a time: 4, 16 and 40 packets in each buffer, an MTU of 1024 and 4096 bytes, and twice the dilation, with three seeds each.

A line holds if it is within its bound in every seed. The number of lines is that of all variants. `holds` is all of them; `–` is a condition that the experiment cannot have.
Only the first column decides whether an experiment passes. The others say how far its verdicts reach.

";

/// The page over several experiments; none where none of them has conditions. Each report comes with its name.
pub fn conditions(reports: &[(String, Report)]) -> Option<String> {
    let reports: Vec<&(String, Report)> =
        reports.iter().filter(|(_, report)| !report.conditions.is_empty()).collect();
    let mut labels: Vec<&str> = Vec::new();
    for row in reports.iter().flat_map(|(_, report)| &report.conditions) {
        // Scales differ by file.
        let label = column(&row.condition);
        if !labels.contains(&label) {
            labels.push(label);
        }
    }
    let heads: Vec<&str> = ["experiment", "runs"].into_iter().chain(labels.iter().copied()).collect();
    let mut table = Table::new(&heads);
    let mut lists = String::new();
    for (name, report) in &reports {
        let of = |label: &&str| report.conditions.iter().find(|row| column(&row.condition) == *label);
        let cells = labels.iter().map(|label| of(label).map_or_else(String::new, ConditionRow::in_short));
        let first = [name.clone(), report.runs.to_string()];
        table.row(&first.into_iter().chain(cells).collect::<Vec<_>>());
        let omitted = report.conditions.iter().filter(|row| !row.omitted.is_empty());
        let omitted: String = omitted
            .map(|row| format!("- {}: not run; {}\n", escaped(&row.condition), escaped(&row.omitted)))
            .collect();
        let list = omitted + list(&report.conditions).trim_end();
        if !list.is_empty() {
            lists += &format!("\n## {}\n\n{}\n", escaped(name), list.trim_end());
        }
    }
    (!reports.is_empty()).then(|| format!("{HEAD}{}\n{lists}", table.finish().trim_end()))
}

fn column(condition: &str) -> &str {
    if condition.starts_with("scale") { "twice the dilation" } else { condition }
}
