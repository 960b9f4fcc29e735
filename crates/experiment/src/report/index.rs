//! The page that leads to several reports.

use super::Report;
use super::table::Table;
use crate::number::number;

/// A page for several reports. Each comes with the folder that it is written to, relative to the page.
pub fn index(reports: &[(String, Report)]) -> String {
    let failed = reports.iter().filter(|(_, report)| !report.failures.is_empty()).count();
    let runs: usize = reports.iter().map(|(_, report)| report.runs).sum();
    let mut text = format!(
        "# Experiments\n\n{} experiments, {runs} runs; {failed} experiments failed.\n\n",
        reports.len()
    );
    let mut table = Vec::from(["| experiment | runs | result |\n|---|---|---|\n".to_owned()]);
    for (folder, report) in reports {
        let result = match (report.failures.len(), report.invalid.len()) {
            (0, 0) => "pass".to_owned(),
            (0, 1) => "**1 run is invalid**".to_owned(),
            (0, invalid) => format!("**{invalid} runs are invalid**"),
            (count, _) => format!("**{count} failed**"),
        };
        let title = super::table::escaped(&report.title);
        table.push(format!("| [{title}]({folder}/report.md) | {} | {result} |\n", report.runs));
    }
    text += &table.concat();
    for (_, report) in reports.iter().filter(|(_, report)| !report.fidelity.is_empty()) {
        let title = super::table::escaped(&report.title);
        text += &format!("\n## Beside the paper: {title}\n\n{}", super::fidelity::table(&report.fidelity));
    }
    text += "\n## What the variants gain\n\n";
    let mut table = Table::headed("experiment | gain | by | without | with | ours");
    for (_, report) in reports {
        for gain in &report.gains {
            let value =
                |value: Option<f64>, unit| value.map_or("–".to_owned(), |value| number(value, unit));
            table.row(&[
                report.title.clone(),
                gain.finding.name.clone(),
                super::driver(gain.driver).to_owned(),
                value(gain.base, gain.unit),
                value(gain.with, gain.unit),
                value(gain.finding.measured, "%"),
            ]);
        }
    }
    text + &table.finish()
}
