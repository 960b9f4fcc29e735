//! Measurements on a recording.

mod beff;
mod quiet;

use std::collections::BTreeSet;

use weft_host::traffic::{FlowId, FlowReport};
use weft_machine::Time;

use crate::{
    FlowPlan, FlowSample, HostReconfigurations, Mark, MarkKind, MigrationsOf, Plan, ReconfigurationOf,
    Recording, Sample, What,
};

/// How long a stretch is over which a flow's throughput of the moment is taken, at least.
const STRETCH: Time = Time::from_secs(1);

/// A plan and its recording.
#[derive(Clone, Copy)]
pub(crate) struct Measured<'a> {
    pub(crate) plan: &'a Plan,
    pub(crate) recording: &'a Recording,
}

/// Whether a list of names means a flow, by its name or by its group's; an empty list means all.
pub(crate) fn is_named(names: &[String], flow: &str, group: Option<&str>) -> bool {
    names.is_empty() || names.iter().any(|name| name == flow || Some(name.as_str()) == group)
}

impl<'a> Measured<'a> {
    /// Measures `what`, in its unit; none if it did not happen or is unknown.
    pub(crate) fn value(&self, what: &What) -> Option<f64> {
        match what {
            What::Throughput { flows, window } => self.throughput(flows, window),
            What::PerHost { flows, window } => {
                self.throughput(flows, window).map(|all| all / self.hosts(flows))
            }
            What::Ratio { flow, to, window } => {
                let one = self.throughput(std::slice::from_ref(flow), window)?;
                let other = self.throughput(std::slice::from_ref(to), window)?;
                (other > 0.0).then(|| one / other)
            }
            What::Wait { port, window } => {
                let (from, to) = self.window(window)?;
                self.wait(self.plan.ports.iter().position(|place| place.name == *port)?, from, to)
            }
            What::Moved { flow, after } => self.moved(flow, *after, true),
            What::MovedBack { flow, after } => self.moved(flow, *after, false),
            What::Moves { flow } => Some(self.senders(flow).map(|end| end.moves_total as f64).sum()),
            What::Pause { flow } => {
                let pauses = self.senders(flow).flat_map(|end| &end.moves).map(|change| change.pause);
                pauses.max().map(|pause| pause.as_secs_f64() * 1e3)
            }
            What::Latency { flow } => {
                let latencies = self.senders(flow).map(|end| end.latency).filter(|latency| latency.count > 0);
                mean(latencies.map(|latency| self.micros(latency.sum_ns as f64 / latency.count as f64 / 2.0)))
            }
            What::Recovery { flow, after, window, percent } => self.recovery(flow, *after, window, *percent),
            What::Repeated { flows } => Some(self.senders_of(flows).map(|end| end.repeated as f64).sum()),
            What::Broken { flows } => {
                Some(self.senders_of(flows).filter(|end| end.error.is_some()).count() as f64)
            }
            What::Signalling { kind, per_routing } => {
                let counted = kind.of(self.recording.signalled.as_ref()?) as f64;
                let routings = if *per_routing { self.routings() } else { 1 };
                (routings > 0).then(|| counted / routings as f64)
            }
            What::Reconfiguration { after, of } => self.reconfiguration(*after, *of),
            What::HotSpots { except } => {
                let found = self.recording.marks.iter().filter_map(Mark::hot_spot_found);
                let others = found.filter(|host| !except.iter().any(|name| self.plan.is_called(name, host)));
                Some(others.collect::<BTreeSet<_>>().len() as f64)
            }
            What::PredictedDeadlock { after } => {
                self.recording.prediction.at(*after)?.deadlock().map(|channels| channels as f64)
            }
            What::Migration { vm, after, of, value } => {
                let meant = self.recording.migrations.iter().filter(|one| one.vm == *vm && one.at >= *after);
                let mut values = meant.map(|one| self.migration(one, *value));
                match of {
                    MigrationsOf::First => values.next()?,
                    MigrationsOf::Least => values.collect::<Option<Vec<_>>>()?.into_iter().reduce(f64::min),
                    MigrationsOf::Most => values.collect::<Option<Vec<_>>>()?.into_iter().reduce(f64::max),
                }
            }
            What::Beff { name, value } => self.beff(name, *value),
        }
    }

    /// How often the subnet manager has routed, as it has said itself, from the first fault on, or in the whole run without one. A sweep
    /// of the bring-up may end when the plan's clock has just begun, before hosts have subscribed.
    fn routings(&self) -> usize {
        let of = |kind| self.recording.marks.iter().filter(move |mark| mark.kind == kind).map(|mark| mark.at);
        let from = of(MarkKind::Fault).min().unwrap_or_default();
        of(MarkKind::Rerouted).filter(|at| *at >= from).count()
    }

    /// How long hosts took to heed notices from a moment on, in milliseconds.
    fn reconfiguration(&self, after: Time, of: ReconfigurationOf) -> Option<f64> {
        let hosts = self.recording.reconfigurations.as_ref()?;
        let since = |host: &HostReconfigurations| {
            let mut stretches = host.stretches.iter().filter(|one| one.began >= after);
            let first = stretches.next()?;
            Some((first.began, stretches.next_back().unwrap_or(first).ended))
        };
        let millis = |time: Time| time.as_secs_f64() * 1e3;
        let heeded = hosts.iter().map(since);
        match of {
            ReconfigurationOf::Host => mean(
                heeded.map(|host| host.map_or(0.0, |(began, ended)| millis(ended.saturating_sub(began)))),
            ),
            ReconfigurationOf::Last => {
                let last = heeded.flatten().map(|(_, ended)| ended).max();
                Some(last.map_or(0.0, |ended| millis(ended.saturating_sub(after))))
            }
        }
    }

    /// How many hosts send or receive one of the flows.
    fn hosts(&self, flows: &[String]) -> f64 {
        let ends = self.flows(flows).flat_map(|flow| flow.senders.iter().chain(&flow.receivers));
        ends.collect::<BTreeSet<_>>().len().max(1) as f64
    }

    /// Throughput per host from the beginning to every sample, in seconds and Gb/s.
    pub(crate) fn opening(&self, flows: &[String]) -> Vec<(f64, f64)> {
        let hosts = self.hosts(flows);
        let flows: Vec<&FlowPlan> = self.flows(flows).collect();
        let until = |at: Time| {
            let all: f64 = flows.iter().map(|flow| self.rate(flow, Time::ZERO, at)).sum::<Option<f64>>()?;
            Some((at.as_secs_f64(), all / hosts))
        };
        self.recording.samples.iter().filter_map(|sample| until(sample.at)).collect()
    }

    /// Machine time in nanoseconds as microseconds of fabric time.
    fn micros(&self, nanos: f64) -> f64 {
        nanos / 1e3 / self.dilation()
    }

    pub(crate) fn dilation(&self) -> f64 {
        f64::from(self.plan.device.data.dilation.max(1))
    }

    pub(crate) fn window(&self, name: &str) -> Option<(Time, Time)> {
        self.plan.windows.iter().find(|span| span.name == name).map(|span| (span.from, span.to))
    }

    /// The flows that a list of names means; an empty list means all.
    pub(crate) fn flows(&self, names: &[String]) -> impl Iterator<Item = &'a FlowPlan> {
        let is_meant = move |flow: &&FlowPlan| is_named(names, &flow.name, flow.group.as_deref());
        self.plan.flows.iter().filter(is_meant).collect::<Vec<_>>().into_iter()
    }

    fn ends(&self) -> impl Iterator<Item = &'a FlowReport> {
        self.recording.ends.iter().map(|end| &end.report)
    }

    fn senders(&self, name: &str) -> impl Iterator<Item = &'a FlowReport> {
        self.senders_of(&[name.to_owned()])
    }

    /// Those of several; of all where none is named.
    fn senders_of<'s>(&'s self, names: &[String]) -> impl Iterator<Item = &'a FlowReport> + use<'s, 'a> {
        let ids: Vec<FlowId> = self.flows(names).map(|flow| flow.flow).collect();
        self.ends().filter(move |end| end.sender && ids.contains(&end.flow))
    }

    /// Gb/s of fabric time.
    pub(crate) fn throughput(&self, flows: &[String], window: &str) -> Option<f64> {
        let (from, to) = self.window(window)?;
        self.flows(flows).map(|flow| self.rate(flow, from, to)).sum()
    }

    /// One flow's throughput between two moments: whole packets delivered, in Gb/s of fabric time. None where there are
    /// no samples around.
    pub(crate) fn rate(&self, flow: &FlowPlan, from: Time, to: Time) -> Option<f64> {
        let whole = |sample: &Sample| {
            let found = sample.flows.iter().find(|of| of.flow == flow.flow);
            let FlowSample { packets, bytes, .. } = found.copied().unwrap_or_default();
            (bytes + packets.saturating_mul(flow.overhead())) as f64
        };
        let bytes = self.at(to, whole)? - self.at(from, whole)?;
        let seconds = to.saturating_sub(from).as_secs_f64();
        (seconds > 0.0).then(|| bytes * 8.0 / seconds * self.dilation() / 1e9)
    }

    /// The share of the time that a port of the plan waited, in percent.
    pub(crate) fn wait(&self, port: usize, from: Time, to: Time) -> Option<f64> {
        let ticks = |sample: &Sample| sample.ports.get(port).map_or(0.0, |port| port.xmit_wait as f64);
        let waited = (self.at(to, ticks)? - self.at(from, ticks)?) * 4e-9;
        let seconds = to.saturating_sub(from).as_secs_f64() / self.dilation();
        (seconds > 0.0).then(|| waited / seconds * 100.0)
    }

    /// A counter at a moment, on the straight line between the samples around it.
    fn at(&self, time: Time, value: impl Fn(&Sample) -> f64) -> Option<f64> {
        let samples = &self.recording.samples;
        let next = samples.partition_point(|sample| sample.at < time);
        let after = samples.get(next)?;
        if after.at == time {
            return Some(value(after));
        }
        let before = samples.get(next.checked_sub(1)?)?;
        let span = after.at.saturating_sub(before.at).as_secs_f64();
        let share = time.saturating_sub(before.at).as_secs_f64() / span;
        Some(value(before) + (value(after) - value(before)) * share)
    }

    /// When a flow first left for the slow lane, or for the fast one.
    fn moved(&self, name: &str, after: Time, to_slow: bool) -> Option<f64> {
        let by_pm = self.plan.pm.as_ref().map(|pm| pm.slow_sl.0);
        let slow = by_pm.or(self.plan.oracle.as_ref().map(|oracle| oracle.slow_sl));
        let changes = self.senders(name).flat_map(|end| &end.moves);
        let is_meant = |level: u8| slow.is_none_or(|slow| slow == level);
        let meant = changes.filter(|change| is_meant(if to_slow { change.to.0 } else { change.from.0 }));
        meant.map(|change| change.at).filter(|at| *at >= after).min().map(Time::as_secs_f64)
    }

    /// From a moment until a flow that fell below a share of what it had is there again; 0 when it never fell.
    fn recovery(&self, name: &str, after: Time, window: &str, percent: f64) -> Option<f64> {
        let least = self.throughput(&[name.to_owned()], window)? * percent / 100.0;
        let flows: Vec<&FlowPlan> = self.flows(&[name.to_owned()]).collect();
        let mut fell = false;
        for sample in self.recording.samples.iter().filter(|sample| sample.at > after) {
            let from = sample.at.saturating_sub(self.stretch()).max(after);
            let now: f64 = flows.iter().map(|flow| self.rate(flow, from, sample.at)).sum::<Option<f64>>()?;
            if now < least {
                fell = true;
            } else if fell {
                return Some(sample.at.saturating_sub(after).as_secs_f64());
            }
        }
        (!fell).then_some(0.0)
    }

    fn stretch(&self) -> Time {
        STRETCH.min(Time::from_nanos(self.plan.duration.as_nanos() / 20)).max(self.plan.sample_interval)
    }

    /// A flow's throughput over time, in seconds and Gb/s: what was delivered in the stretch up to each sample.
    pub(crate) fn series(&self, flow: &FlowPlan) -> Vec<(f64, f64)> {
        let point = |sample: &Sample| {
            let from = sample.at.saturating_sub(self.stretch());
            Some((sample.at.as_secs_f64(), self.rate(flow, from, sample.at)?))
        };
        let samples = self.recording.samples.iter();
        samples.filter(|sample| sample.at >= flow.start && sample.at > Time::ZERO).filter_map(point).collect()
    }
}

pub(crate) fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let (count, sum) = values.fold((0u32, 0.0), |(count, sum), value| (count + 1, sum + value));
    (count > 0).then(|| sum / f64::from(count))
}
