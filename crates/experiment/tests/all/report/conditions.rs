//! Series under further conditions.

use super::*;

/// Runs of both variants under two conditions, each with three seeds. With 4 packets the victim of `on` stays slow in the last seed.
fn series() -> (ExperimentFile, Vec<RunResult>) {
    let file = file(FILE).under_conditions().unwrap_or_else(|error| panic!("{error}"));
    let mut results = Vec::new();
    for run in file.runs() {
        let (condition, is_on) = (run.condition().expect("there is one"), run.choices[1].1 == "on");
        if !["as it is", "4 packets"].contains(&condition) {
            continue;
        }
        let plan = file.plan(&run, &mut load).unwrap_or_else(|error| panic!("{error}"));
        let fails = condition == "4 packets" && is_on && run.seed == 3;
        let mut made = if is_on { with(&plan) } else { without(&plan) };
        if fails {
            made.samples = without(&plan).samples;
        }
        results.push(file.result(&plan, &made).unwrap_or_else(|error| panic!("{error}")));
    }
    (file, results)
}

#[test]
fn other_conditions_fail_nothing_and_are_listed() {
    let (file, results) = series();
    assert_eq!(results.len(), 2 * 2 * 3);
    let report = Report::new(&file, &results);
    assert_eq!(report.failures, Vec::<String>::new());
    let [usual, few] = &report.conditions[..2] else { panic!("{:?}", report.conditions) };
    assert_eq!((usual.condition.as_str(), few.condition.as_str()), ("as it is", "4 packets"));
    // Every line with a bound, of both variants, and the gain.
    assert_eq!((usual.kept, &usual.failed), (usual.judged, &Vec::new()));
    assert!(usual.judged > 12, "{usual:?}");
    // The victim's rate, and when it is back; the gain is a mean over the seeds.
    assert_eq!((few.judged, few.kept), (usual.judged, usual.judged - few.failed.len()));
    let line =
        few.failed.iter().find(|line| line.starts_with("2-3, congested (pm.mode = on, virtual time): "));
    assert!(line.is_some_and(|line| line.ends_with("; 1 of 3 seeds")), "{:?}", few.failed);
    // Printed values are beside the usual runs alone.
    let plain = Report::new(&self::file(FILE), &self::results(&self::file(FILE)));
    assert_eq!(report.fidelity.len(), plain.fidelity.len());
    assert!(plain.conditions.is_empty() && !plain.files["report.json"].contains("\"conditions\""));
    assert!(report.files["report.md"].contains("## Under which conditions the verdicts hold"));
}

#[test]
fn the_page_over_experiments_has_a_column_each() {
    let (file, results) = series();
    let report = Report::new(&file, &results);
    let failed = report.conditions[1].failed.len();
    let judged = report.conditions[0].judged;
    let page = weft_experiment::conditions(&[("x".to_owned(), report)]).expect("there are conditions");
    let row = format!("| x | 12 | holds | {} of {judged} | – | – | – | – | – |", judged - failed);
    assert!(page.contains(&row), "{row} in {page}");
    assert_eq!(page.matches("\n- 4 packets: ").count(), failed);
    let plain = Report::new(&self::file(FILE), &self::results(&self::file(FILE)));
    assert_eq!(weft_experiment::conditions(&[("x".to_owned(), plain)]), None);
}

/// A usual run that fails is a failure, conditions or not.
#[test]
fn the_usual_condition_is_judged() {
    let (file, mut results) = series();
    let twin = results[11].verdict.clone();
    assert!(!twin.passed() && !results[11].run.is_usual());
    results[5].verdict.findings = twin.findings;
    assert!(results[5].run.is_usual());
    let report = Report::new(&file, &results);
    assert!(!report.failures.is_empty());
}
