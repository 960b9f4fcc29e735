//! Holding a recording against what its experiment expects.

use weft_host::traffic::Transport;
use weft_machine::Time;

use crate::measure::Measured;
use crate::number::number;
use crate::{
    Bound, Driver, Expect, Experiment, Finding, FlowTotal, Late, MarkKind, MigrationRecord, MigrationValue,
    Outcome, Plan, Recording, RunId, Verdict, What, When,
};

/// Holds a recording against everything that is expected of it: by the file, and of every run.
pub fn judge(experiment: &Experiment, plan: &Plan, recording: &Recording) -> Verdict {
    let measured = Measured { plan, recording };
    let invalid = invalid(plan, recording);
    let is_result = invalid.is_empty();
    let concerns = |expect: &&Expect| fits(&expect.when, &recording.run);
    let findings = experiment.expects.iter().filter(concerns).map(|expect| {
        let value = measured.value(&expect.what);
        let bound = bound_for(recording.driver, expect.bound, expect.driver);
        let (outcome, reason) = held(value, bound, expect.what.unit());
        let paper = expect.paper.as_ref().filter(|paper| is_result && paper.given.is_empty());
        Finding {
            name: expect.name.clone(),
            unit: expect.what.unit(),
            measured: value,
            bound,
            basis: expect.basis.clone(),
            paper: expect.paper.clone(),
            outcome,
            agrees: paper.map(|paper| paper.agrees(value)),
            reason,
        }
    });
    let migrations = migrations(experiment, recording);
    let findings = findings.chain([order(plan, recording), balance(recording)]).chain(migrations);
    // What an invalid run measured is shown, and not judged; but however late a process wakes up, and however early a run
    // ends, no packet is delivered twice.
    let is_judged = |finding: &Finding| is_result || finding.name == ORDER;
    let findings =
        findings.map(|finding| if is_judged(&finding) { finding } else { shown(finding) }).collect();
    let is_whole = recording.ended >= plan.duration || is_far_behind(recording);
    let spoilt = !is_result && recording.failure.is_none() && is_whole && is_busy(recording);
    Verdict { run: recording.run.clone(), driver: recording.driver, invalid, spoilt, findings }
}

/// The same, without a verdict.
fn shown(finding: Finding) -> Finding {
    Finding { outcome: Outcome::Shown, reason: String::new(), ..finding }
}

/// Whether the machine let the processes of a live run wait.
fn is_busy(recording: &Recording) -> bool {
    recording.driver == Driver::Live && recording.late.is_some_and(|late| late.p99 > Late::VALID_MAX)
}

/// Whether it was broken off for that.
fn is_far_behind(recording: &Recording) -> bool {
    recording.late.is_some_and(|late| late.max > Late::BEHIND_MAX)
}

/// Whether a run is one of those meant.
pub(crate) fn fits(when: &When, run: &RunId) -> bool {
    when.iter()
        .all(|(axis, labels)| run.choices.iter().any(|(name, label)| name == axis && labels.contains(label)))
}

/// The bound of a line in runs of a driver, where it is for those of one alone.
pub(crate) fn bound_for(driver: Driver, bound: Option<Bound>, only: Option<Driver>) -> Option<Bound> {
    bound.filter(|_| only.is_none_or(|only| only == driver))
}

/// How a value fares, and why it fails.
pub(crate) fn held(value: Option<f64>, bound: Option<Bound>, unit: &str) -> (Outcome, String) {
    let Some(bound) = bound else { return (Outcome::Shown, String::new()) };
    let kept = match (value, bound) {
        (None, Bound::Never) => true,
        (None, _) | (Some(_), Bound::Never) => false,
        (Some(value), Bound::Within { value: wanted, percent }) => {
            (value - wanted).abs() <= wanted * percent / 100.0
        }
        (Some(value), Bound::AtLeast(least)) => value >= least,
        (Some(value), Bound::AtMost(most)) => value <= most,
        (Some(value), Bound::Between(least, most)) => (least..=most).contains(&value),
    };
    if kept {
        return (Outcome::Kept, String::new());
    }
    let is =
        value.map_or("nothing was measured".to_owned(), |value| format!("it is {}", number(value, unit)));
    (Outcome::Failed, format!("{is}; expected is {}", bounded(&bound, unit)))
}

/// A bound in words.
pub(crate) fn bounded(bound: &Bound, unit: &str) -> String {
    match bound {
        Bound::Within { value, percent } => format!("{} within {percent} %", number(*value, unit)),
        Bound::AtLeast(least) => format!("at least {}", number(*least, unit)),
        Bound::AtMost(most) => format!("at most {}", number(*most, unit)),
        Bound::Between(least, most) => format!("{} to {}", number(*least, ""), number(*most, unit)),
        Bound::Never => "never".to_owned(),
    }
}

fn must(name: &str, reason: String) -> Finding {
    Finding {
        name: name.to_owned(),
        outcome: if reason.is_empty() { Outcome::Kept } else { Outcome::Failed },
        reason,
        ..Finding::default()
    }
}

/// The line of what holds for every run.
const ORDER: &str = "everything is delivered once and in order";

/// Nothing is delivered twice, and nothing out of order; except datagrams, which promise no order,
/// when hosts were moved to other lanes.
fn order(plan: &Plan, recording: &Recording) -> Finding {
    let repathed = recording.marks.iter().any(|mark| mark.kind == MarkKind::Repath);
    let is_datagrams = |end: &FlowTotal| {
        let flow = plan.flows.iter().find(|flow| flow.flow == end.report.flow);
        flow.is_some_and(|flow| flow.transport == Transport::UnreliableDatagram)
    };
    let wrong = |end: &FlowTotal| match end.report.disorder {
        0 if is_datagrams(end) && !repathed => end.report.out_of_order,
        disorder => disorder,
    };
    let wrong = recording.ends.iter().map(|end| (end, wrong(end))).filter(|(_, wrong)| *wrong > 0);
    let reasons: Vec<String> = wrong
        .map(|(end, wrong)| format!("flow {} delivered {wrong} twice or out of order", end.report.flow.0))
        .collect();
    must(ORDER, reasons.join(", "))
}

/// Injected = delivered + in flight + dropped, lane by lane.
fn balance(recording: &Recording) -> Finding {
    let balance = &recording.conservation;
    let mut reasons = balance.violations.clone();
    for lane in &balance.lanes {
        let sum = |numbers: &[u64]| numbers.iter().fold(0, |sum: u64, number| sum.saturating_add(*number));
        let come = sum(&[lane.injected, lane.moved_in]);
        if come != sum(&[lane.delivered, lane.moved_out, lane.in_flight, lane.dropped]) {
            reasons.push(format!(
                "lane {}: {come} came, but {} delivered, {} gone to other lanes, {} in flight and {} dropped",
                lane.lane, lane.delivered, lane.moved_out, lane.in_flight, lane.dropped
            ));
        }
    }
    if balance.lanes.is_empty() {
        reasons.push("no balance was taken".to_owned());
    }
    must("packets injected = delivered + in flight + dropped", reasons.join("; "))
}

/// Every migration is carried out, unless the file says that one never is; and switches receive what the subnet manager tells of.
fn migrations(experiment: &Experiment, recording: &Recording) -> Vec<Finding> {
    if recording.migrations.is_empty() {
        return Vec::new();
    }
    let never = |one: &&MigrationRecord| {
        let refuses = |expect: &Expect| {
            let is_it = matches!(&expect.what, What::Migration { vm, after, .. } if *vm == one.vm && one.at >= *after);
            is_it && expect.bound == Some(Bound::Never) && fits(&expect.when, &recording.run)
        };
        !one.is_done() && experiment.expects.iter().any(refuses)
    };
    let wanted = || recording.migrations.iter().filter(|one| !never(one));
    let stayed: Vec<String> = wanted().filter(|one| !one.is_done()).map(MigrationRecord::text).collect();
    let differ: Vec<String> = wanted().filter_map(MigrationRecord::contradiction).collect();
    vec![
        must("every migration is carried out", stayed.join("; ")),
        must("switches receive the LFT SMPs that the subnet manager tells of", differ.join("; ")),
    ]
}

/// Why a run is no result.
fn invalid(plan: &Plan, recording: &Recording) -> Vec<String> {
    let mut reasons: Vec<String> =
        recording.failure.iter().map(|why| format!("the run failed: {why}")).collect();
    if recording.ended < plan.duration && !is_far_behind(recording) {
        let (ended, whole) = (recording.ended.as_secs_f64(), plan.duration.as_secs_f64());
        reasons.push(format!("the run ended at {} of {}", number(ended, "s"), number(whole, "s")));
    }
    match (recording.driver, recording.late) {
        (Driver::Virtual, _) => {}
        (Driver::Live, None) => reasons.push("the lateness of wake-ups was not measured".to_owned()),
        (Driver::Live, Some(late)) if is_busy(recording) => reasons.push(late.too_busy()),
        (Driver::Live, Some(_)) => {}
    }
    reasons
}

impl Late {
    /// Says that processes woke up too late.
    pub fn too_busy(&self) -> String {
        let millis = |time: Time| number(time.as_secs_f64() * 1e3, "ms");
        let (p99, most) = (millis(self.p99), millis(Self::VALID_MAX));
        format!("machine too busy (99th percentile of wake-up delays {p99}, limit {most})")
    }
}

impl What {
    /// The unit of what is measured.
    pub fn unit(&self) -> &'static str {
        match self {
            Self::Throughput { .. } | Self::PerHost { .. } => "Gb/s",
            Self::Wait { .. } => "%",
            Self::Moved { .. } | Self::MovedBack { .. } | Self::Recovery { .. } => "s",
            Self::Migration { value, .. } => match value {
                MigrationValue::Downtime => "s",
                MigrationValue::Switches => "switches",
                MigrationValue::LftSmps | MigrationValue::HypervisorSmps => "SMPs",
            },
            Self::Pause { .. } | Self::Reconfiguration { .. } => "ms",
            Self::Latency { .. } => "µs",
            Self::Ratio { .. } | Self::Moves { .. } | Self::Repeated { .. } | Self::Broken { .. } => "",
            Self::PredictedDeadlock { .. } => "channels",
            Self::HotSpots { .. } => "hosts",
            Self::Signalling { .. } => "MADs",
            Self::Beff { value, .. } if value.is_latency() => "µs",
            Self::Beff { .. } => "MB/s",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bound_may_be_for_one_driver_alone() {
        let bound = Some(Bound::AtMost(5.0));
        for driver in [Driver::Live, Driver::Virtual] {
            assert_eq!(bound_for(driver, bound, None), bound);
            for only in [Driver::Live, Driver::Virtual] {
                let here = bound_for(driver, bound, Some(only));
                assert_eq!(here, bound.filter(|_| only == driver));
                let outcome = if only == driver { Outcome::Failed } else { Outcome::Shown };
                assert_eq!(held(Some(6.0), here, "").0, outcome);
            }
        }
    }
}
