//! The outcome of a series of runs.

use serde::Serialize;
use weft_bundle::failure::EXIT_INVALID;
use weft_experiment::{ExperimentFile, Report, RunResult};
use weft_wire::count_of;

use super::job::driver_name;
use super::keep::Shelves;

/// One run.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// The experiment's file.
    pub experiment: String,
    /// Its variant and seed.
    pub run: String,
    /// `live` or `virtual`.
    pub driver: &'static str,
    /// Against the model.
    pub result: String,
    /// Printed figures that ours agree with, and how many there are.
    pub paper: (usize, usize),
}

/// The runs that have ended, and what is not as expected.
#[derive(Clone, Debug, Serialize)]
pub struct Summary {
    /// In the order of the files, variants and seeds.
    pub runs: Vec<Row>,
    /// Where to begin to read, if reports were written.
    pub report: Option<String>,
    /// Live runs that a busy machine spoilt.
    pub invalid: Vec<String>,
    /// Expectations that runs do not meet.
    pub failures: Vec<String>,
}

impl Summary {
    /// Writes the reports, and gathers what became of each run.
    pub(super) fn of(shelves: &mut Shelves<'_>) -> anyhow::Result<Self> {
        let rows = shelves.runs().flat_map(|(file, runs)| runs.iter().map(move |run| row(file, run)));
        let runs: Vec<Row> = rows.collect();
        let reports = shelves.reports();
        let of_all = |lines: fn(&Report) -> &[String]| -> Vec<String> {
            let named = |(stem, report): &(String, Report)| -> Vec<String> {
                lines(report).iter().map(|line| format!("{stem}: {line}")).collect()
            };
            reports.iter().flat_map(named).collect()
        };
        let (invalid, failures) = (of_all(|report| &report.invalid), of_all(|report| &report.failures));
        Ok(Self { runs, report: shelves.finish(&reports)?, invalid, failures })
    }

    /// The exit code of a program whose runs these are: what is not as expected outweighs what proves nothing.
    pub fn code(&self) -> u8 {
        match (self.failures.is_empty(), self.invalid.is_empty()) {
            (false, _) => 1,
            (true, false) => EXIT_INVALID,
            (true, true) => 0,
        }
    }
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

#[cfg(test)]
mod tests {
    use weft_experiment::{Driver, Late};
    use weft_machine::Time;

    use super::super::job::load;
    use super::super::stage::perform;
    use super::super::virtual_time::Virtual;
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
        let mut recording = perform(&plan, &mut Virtual::begin(&plan, None).unwrap(), &|_| Ok(())).unwrap();
        recording.driver = Driver::Live;
        recording.late = Some(Late { p99: late, ..Late::default() });
        if late > Late::BEHIND_MAX {
            (recording.late, recording.ended) = (Some(Late::default().behind(late)), Time::from_secs(1));
        }
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
        let broken_off = summary(Time::from_secs(16));
        assert_eq!((broken_off.code(), broken_off.failures.len()), (3, 0), "{:?}", broken_off.invalid);
        let sound = summary(Time::from_millis(1));
        assert_eq!((sound.invalid.len(), sound.failures.len(), sound.code()), (0, 1, 1));
        assert_eq!(sound.runs[0].result, "1 expectation failed");
    }
}
