//! Outcome of a series of runs, for people, programs and the exit code.

use std::process::ExitCode;

use serde::Serialize;
use weft_bundle::failure::EXIT_INVALID;
use weft_experiment::{ExperimentFile, Report, RunResult};
use weft_wire::count_of;

use super::driver_name;
use super::keep::Shelves;
use crate::cli::RunArgs;
use crate::output::{Table, print, print_json, say};

/// A line of the summary.
#[derive(Serialize)]
struct Row {
    experiment: String,
    run: String,
    driver: &'static str,
    /// Against the model.
    result: String,
    /// Printed figures that ours agree with, and how many there are.
    paper: (usize, usize),
}

#[derive(Serialize)]
struct Summary {
    runs: Vec<Row>,
    report: Option<String>,
    /// Live runs that a busy machine spoilt.
    invalid: Vec<String>,
    failures: Vec<String>,
}

impl Summary {
    /// What is not as expected outweighs what proves nothing.
    fn code(&self) -> u8 {
        match (self.failures.is_empty(), self.invalid.is_empty()) {
            (false, _) => 1,
            (true, false) => EXIT_INVALID,
            (true, true) => 0,
        }
    }
}

/// Writes the reports, says what became of each run, and fails when something is not as expected.
pub(super) fn report(args: &RunArgs, shelves: &mut Shelves<'_>) -> anyhow::Result<ExitCode> {
    let rows: Vec<Row> =
        shelves.runs().flat_map(|(file, runs)| runs.iter().map(move |run| row(file, run))).collect();
    let reports = shelves.reports();
    let of_all = |lines: fn(&Report) -> &[String]| -> Vec<String> {
        let named = |(stem, report): &(String, Report)| -> Vec<String> {
            lines(report).iter().map(|line| format!("{stem}: {line}")).collect()
        };
        reports.iter().flat_map(named).collect()
    };
    let (invalid, failures) = (of_all(|report| &report.invalid), of_all(|report| &report.failures));
    let written = shelves.finish(&reports)?;
    let summary = Summary { runs: rows, report: written, invalid, failures };
    if args.json {
        print_json(&summary)?;
    } else {
        print(&text(&summary))?;
    }
    summary.invalid.iter().for_each(|run| say(&format!("invalid: {run}")));
    summary.failures.iter().for_each(|failure| say(&format!("not as expected: {failure}")));
    Ok(ExitCode::from(summary.code()))
}

fn row(file: &ExperimentFile, run: &RunResult) -> Row {
    let failed = run.verdict.failures().count();
    let printed = run.verdict.findings.iter().filter_map(|finding| finding.agrees);
    Row {
        experiment: file.name().to_owned(),
        run: run.run.to_string(),
        driver: driver_name(run.driver),
        result: match (failed, run.verdict.spoilt) {
            (0, true) => "invalid: machine too busy".to_owned(),
            (0, false) => "pass".to_owned(),
            (_, _) => format!("{} failed", count_of(failed, "expectation")),
        },
        paper: (printed.clone().filter(|agrees| *agrees).count(), printed.count()),
    }
}

fn text(summary: &Summary) -> String {
    let mut table = Table::new(&["experiment", "run", "driver", "result", "paper"]);
    for row in &summary.runs {
        let (agree, printed) = row.paper;
        let paper = if printed == 0 { String::new() } else { format!("{agree} of {printed} agree") };
        let (experiment, run) = (row.experiment.clone(), row.run.clone());
        table.row([experiment, run, row.driver.to_owned(), row.result.clone(), paper]);
    }
    let report = summary.report.as_ref().map(|path| format!("report: {path}\n")).unwrap_or_default();
    format!("{table}{report}")
}

#[cfg(test)]
mod tests {
    use weft_experiment::{Driver, Late};
    use weft_machine::Time;

    use super::super::{Virtual, load, perform};
    use super::*;

    const FILE: &str = r#"
title = "two into one"
source = "a test"
duration = 2
[fabric]
topology = "../../topologies/dftree-1.topo"
[engine]
chain = "ftree,no_fallback"
[flow.1-5]
from = "host-1"
to = "host-5"
[window]
steady = [1, 2]
[[expect]]
flow = "1-5"
window = "steady"
value = 99.0
model = "regression"
"#;

    /// A recording of virtual time, as if processes had made it that woke up as late as this.
    fn summary(late: Time) -> Summary {
        let file = ExperimentFile::parse("two.toml", FILE).unwrap();
        let run = file.runs().remove(0);
        let plan = file.plan(&run, &mut load).unwrap();
        let mut recording = perform(&plan, &mut Virtual::begin(&plan).unwrap(), &|_| {}).unwrap();
        recording.driver = Driver::Live;
        recording.late = Some(Late { p99: late, ..Late::default() });
        let result = file.result(&plan, &recording).unwrap();
        let Report { invalid, failures, .. } = Report::new(&file, std::slice::from_ref(&result));
        Summary { runs: vec![row(&file, &result)], report: None, invalid, failures }
    }

    #[test]
    fn a_spoilt_run_is_invalid_in_one_line_with_a_code_of_its_own() {
        let spoilt = summary(Time::from_micros(46_100));
        let wanted = "seed 1, live: machine too busy (99th percentile of wake-up delays 46.1 ms, limit 5 ms)";
        assert_eq!((spoilt.invalid.as_slice(), spoilt.failures.len()), ([wanted.to_owned()].as_slice(), 0));
        assert_eq!((spoilt.code(), spoilt.runs[0].result.as_str()), (3, "invalid: machine too busy"));
        let sound = summary(Time::from_millis(1));
        assert_eq!((sound.invalid.len(), sound.failures.len(), sound.code()), (0, 1, 1));
        assert_eq!(sound.runs[0].result, "1 expectation failed");
    }
}
