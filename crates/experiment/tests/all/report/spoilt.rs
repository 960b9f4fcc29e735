//! Live runs that a busy machine spoilt.

use super::*;

/// However wrong the numbers of a run are that woke up too late: the report has one line of it, and no consequences, neither of the
/// run nor beside others. What no busy machine explains is a failure all the same.
#[test]
fn a_live_run_that_a_busy_machine_spoilt_is_one_line() {
    let file = file(FILE);
    let on = plan(&file, 1);
    let spoilt = |change: fn(&mut Recording)| {
        let mut live = with(&on);
        live.driver = Driver::Live;
        live.late = Some(Late { p99: Time::from_micros(46_100), ..Late::default() });
        live.ends[2].report.moves.clear();
        live.conservation.lanes.clear();
        for of in live.samples.iter_mut().flat_map(|sample| &mut sample.flows) {
            (of.packets, of.bytes) = (of.packets / 3, of.bytes / 3);
        }
        change(&mut live);
        let mut results = results(&file);
        results.push(file.result(&on, &live).unwrap_or_else(|error| panic!("{error}")));
        Report::new(&file, &results)
    };
    let report = spoilt(|_| {});
    assert_eq!(report.failures, Vec::<String>::new());
    let line = "machine too busy (99th percentile of wake-up delays 46.1 ms, limit 5 ms)";
    let [only] = report.invalid.as_slice() else { panic!("{:?}", report.invalid) };
    assert!(only.contains("seed 1, live: ") && only.ends_with(line), "{only}");
    assert!(report.fidelity.iter().all(|row| row.driver != Some(Driver::Live)));
    assert!(report.gains.iter().all(|gain| gain.driver != Driver::Live));
    let page = &report.files["report.md"];
    assert!(page.contains("**Invalid**: ") && page.contains("other runs pass"), "{page}");
    assert!(!page.contains("FAILED"), "{page}");
    let twice = spoilt(|of| of.ends[0].report.disorder = 2);
    assert_eq!((twice.invalid.len(), twice.failures.len()), (1, 1), "{:?}", twice.failures);
    // One that fell is no busy machine's doing.
    let fell = spoilt(|of| of.failure = Some("the manager fell".to_owned()));
    assert!(fell.invalid.is_empty() && fell.failures[0].ends_with("the run failed: the manager fell"));
}
