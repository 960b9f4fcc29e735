//! A live run and a run in virtual time of the same variant, side by side.

use std::collections::BTreeMap;

use crate::{Driver, FlowResult, RunId, RunResult};

/// Two drivers' throughputs of a flow may differ by this share of the greater one, in percent; their waits of a port by so
/// many percent of the time.
const AGREEMENT_PERCENT: f64 = 10.0;
/// Flows below this share of the greatest are too thin to be compared by their ratio, in percent.
const THIN_PERCENT: f64 = 2.0;

/// One flow or port in one window, as a live run and a run in virtual time have it.
pub(crate) struct Agreement {
    pub(crate) run: RunId,
    /// The flow, or what a port does.
    pub(crate) what: String,
    pub(crate) unit: &'static str,
    pub(crate) window: String,
    pub(crate) live: f64,
    pub(crate) simulated: f64,
    pub(crate) agrees: bool,
}

/// Every flow's throughput and every port's wait in every window, where the same run was made by both drivers; of flows that
/// are to be taken as one, the sum.
pub(super) fn agreements(runs: &[&RunResult]) -> Vec<Agreement> {
    let mut all = Vec::new();
    for live in runs.iter().filter(|run| run.driver == Driver::Live) {
        let twin = runs.iter().find(|run| run.driver == Driver::Virtual && run.run == live.run);
        let Some(twin) = twin else { continue };
        let of_all =
            [*live, *twin].into_iter().flat_map(|run| &run.flows).flat_map(|flow| flow.gbps.iter().flatten());
        let thick = of_all.copied().fold(0.0, f64::max) * THIN_PERCENT / 100.0;
        for (nth, span) in live.windows.iter().enumerate() {
            let agreement = |what, unit, a, b, agrees| {
                let (run, window) = (live.run.clone(), span.name.clone());
                Agreement { run, what, unit, window, live: a, simulated: b, agrees }
            };
            let pairs = live.flows.iter().zip(&twin.flows);
            let pairs = pairs.filter_map(|(a, b)| Some((a, (*a.gbps.get(nth)?)?, (*b.gbps.get(nth)?)?)));
            for (flow, a, b) in as_one(pairs).into_iter().filter(|(_, a, b)| a.max(*b) > thick) {
                let agrees = (a - b).abs() <= a.max(b) * AGREEMENT_PERCENT / 100.0;
                all.push(agreement(flow.to_owned(), "Gb/s", a, b, agrees));
            }
            for (a, b) in live.ports.iter().zip(&twin.ports) {
                let wait = |of: &crate::PortResult| of.wait.get(nth).copied().flatten();
                let Some((one, other)) = wait(a).zip(wait(b)) else { continue };
                let agrees = (one - other).abs() <= AGREEMENT_PERCENT;
                all.push(agreement(format!("{} waits", a.name), "%", one, other, agrees));
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
