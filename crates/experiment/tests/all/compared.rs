//! Live and virtual runs of an experiment are compared.

use crate::report::{FILE, file, plan, results, with};
use weft_experiment::{Driver, Late, Report};

#[test]
fn live_and_virtual_runs_are_compared() {
    let file = file(FILE);
    let mut results = results(&file);
    let on = plan(&file, 1);
    let slower = |share: f64| {
        let mut live = with(&on);
        live.driver = Driver::Live;
        live.late = Some(Late::default());
        for of in live.samples.iter_mut().flat_map(|sample| &mut sample.flows) {
            of.packets = (of.packets as f64 * share) as u64;
            of.bytes = of.packets * 2048;
        }
        file.result(&on, &live).unwrap_or_else(|error| panic!("{error}"))
    };
    results.push(slower(0.95));
    let report = Report::new(&file, &results);
    assert_eq!(report.failures, Vec::<String>::new());
    assert!(report.files["report.md"].contains("## Live and in virtual time"));
    results.pop();
    results.push(slower(0.88));
    let failures = Report::new(&file, &results).failures;
    assert!(
        failures.iter().any(|why| why.contains("2-3 in `alone` is 11.") && why.contains("in virtual time")),
        "{failures:?}"
    );
}

/// A port that waits 19.4 % of the time in virtual time may wait 10 % of the time more or less live.
#[test]
fn live_and_virtual_waits_are_compared() {
    let file = file(FILE);
    let on = plan(&file, 1);
    let disagreements = |share: f64| {
        let mut live = with(&on);
        (live.driver, live.late) = (Driver::Live, Some(Late::default()));
        for port in live.samples.iter_mut().flat_map(|sample| &mut sample.ports) {
            port.xmit_wait = (port.xmit_wait as f64 * share) as u64;
        }
        let results = [results(&file), vec![file.result(&on, &live).expect("a result")]].concat();
        let failures = Report::new(&file, &results).failures;
        failures.into_iter().filter(|why| why.contains("in virtual time")).collect::<Vec<_>>()
    };
    for share in [0.5, 1.0, 1.5] {
        assert_eq!(disagreements(share), Vec::<String>::new(), "{share}");
    }
    for share in [0.0, 0.45, 1.55, 5.0] {
        let found = disagreements(share);
        assert!(!found.is_empty() && found.iter().all(|why| why.contains("C/1 waits")), "{share}: {found:?}");
    }
}

/// Two flows that exchange their shares are not the same twice, unless the file says that chance decides it.
#[test]
fn flows_that_share_by_chance_are_compared_in_their_sum() {
    let by_chance = |text: &str| {
        let file = file(text);
        let plan = plan(&file, 1);
        let mut live = with(&plan);
        (live.driver, live.late) = (Driver::Live, Some(Late::default()));
        for sample in &mut live.samples {
            let [first, second] = &mut sample.flows[..] else { panic!("two flows") };
            std::mem::swap(first, second);
            std::mem::swap(&mut first.flow, &mut second.flow);
        }
        let results = [results(&file), vec![file.result(&plan, &live).expect("a result")]].concat();
        let report = Report::new(&file, &results);
        let differ = report.failures.iter().any(|why| why.contains("in virtual time"));
        (differ, report.files["report.md"].contains("| the hot spot | alone |"))
    };
    assert_eq!(by_chance(FILE), (true, false), "they are compared one by one");
    let text = FILE.replace("\nfrom = \"host-", "\nagree_as = \"the hot spot\"\nfrom = \"host-");
    assert_eq!(by_chance(&text), (false, true));
}
