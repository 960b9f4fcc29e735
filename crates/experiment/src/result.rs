//! The part of a run that a report keeps.

use serde::Serialize;
use weft_fault::FaultTimes;
use weft_host::traffic::{FlowReport, Move};
use weft_machine::Time;

use crate::measure::Measured;
use crate::{
    Conservation, Driver, ExperimentFile, FigureKind, FileError, FlowPlan, Late, Mark, MigrationRecord, Plan,
    Prediction, Recording, RunId, Span, Verdict, What, judge,
};

/// What a report keeps of a run. Series and samples are not in its JSON: the CSV has them.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RunResult {
    /// Which run.
    pub run: RunId,
    /// The driver of the run.
    pub driver: Driver,
    /// What routed.
    pub routed_by: String,
    /// What the verifier said before anything ran.
    pub prediction: Prediction,
    /// What became of the expectations.
    pub verdict: Verdict,
    /// The windows, as this variant has them.
    pub windows: Vec<Span>,
    /// Each flow.
    pub flows: Vec<FlowResult>,
    /// Each sampled port.
    pub ports: Vec<PortResult>,
    /// What each gain of the file measures in this run.
    pub gains: Vec<Option<f64>>,
    /// What each figure of bars measures in this run.
    pub bars: Vec<Option<f64>>,
    /// For each figure of windows: from the beginning to every sample, seconds and Gb/s per host.
    pub openings: Vec<Vec<(f64, f64)>>,
    /// What became of each migration.
    pub migrations: Vec<MigrationRecord>,
    /// What each fault cost; an unknown value is null.
    pub faults: Vec<FaultTimes<String>>,
    /// What happened.
    pub marks: Vec<Mark>,
    /// The balance of packets.
    pub conservation: Conservation,
    /// How late a live run woke up.
    pub late: Option<Late>,
    /// How long it was.
    pub duration: Time,
    /// The samples, a line for each moment and flow or port.
    #[serde(skip)]
    pub csv: String,
}

/// What became of a flow, over all of its ends.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FlowResult {
    /// Its name.
    pub name: String,
    /// Its pattern, or test.
    pub group: Option<String>,
    /// With which others it is compared between live and virtual time.
    #[serde(skip)]
    pub agree_as: Option<String>,
    /// By window, Gb/s of fabric time.
    pub gbps: Vec<Option<f64>>,
    /// Packets sent again.
    pub repeated: u64,
    /// Packets that never came.
    pub missing: u64,
    /// Packets of a mix that were made and thrown away, because too many waited for their lane.
    pub shed: u64,
    /// Changes of lane, of all senders.
    pub moves_total: u64,
    /// The latest of them.
    pub moves: Vec<Move>,
    /// The longest time in which nothing of it arrived while it was to send; none where no machine moved.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub quiet: Option<Time>,
    /// Congestion notifications heard.
    pub notifications: u64,
    /// Why it ended, where it did in error.
    pub errors: Vec<String>,
    /// Throughput over time: seconds and Gb/s. Flows of a test have none.
    #[serde(skip)]
    pub series: Vec<(f64, f64)>,
}

/// What a port counted.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PortResult {
    /// Its name.
    pub name: String,
    /// By window, the share of the time that it waited, in percent.
    pub wait: Vec<Option<f64>>,
}

impl ExperimentFile {
    /// Measures and judges a recording. What it keeps is small, so that all runs of a large matrix can be held.
    pub fn result(&self, plan: &Plan, recording: &Recording) -> Result<RunResult, FileError> {
        let experiment = self.experiment(&recording.run)?;
        let measured = Measured { plan, recording };
        let gains = self.plain().gains.iter().map(|gain| measured.value(&gain.what)).collect();
        let bars = self.plain().figures.iter().map(|figure| {
            let what = What::PerHost { flows: figure.flows.clone(), window: figure.window.clone() };
            measured.value(&what)
        });
        let openings = self.plain().figures.iter().map(|figure| match figure.kind {
            FigureKind::Windows => measured.opening(&figure.flows),
            FigureKind::Throughput | FigureKind::Total | FigureKind::Bars => Vec::new(),
        });
        let waits = |port: usize| {
            plan.windows.iter().map(|span| measured.wait(port, span.from, span.to)).collect::<Vec<_>>()
        };
        let ports = plan.ports.iter().enumerate();
        Ok(RunResult {
            run: recording.run.clone(),
            driver: recording.driver,
            routed_by: recording.routed_by.clone(),
            prediction: recording.prediction.clone(),
            verdict: judge(&experiment, plan, recording),
            windows: plan.windows.clone(),
            flows: plan.flows.iter().map(|flow| of_flow(&measured, flow)).collect(),
            ports: ports
                .map(|(nth, place)| PortResult { name: place.name.clone(), wait: waits(nth) })
                .collect(),
            gains,
            bars: bars.collect(),
            openings: openings.collect(),
            migrations: measured.migrations(),
            faults: recording.faults.clone(),
            marks: recording.marks.clone(),
            conservation: recording.conservation.clone(),
            late: recording.late,
            duration: plan.duration,
            csv: csv(plan, recording),
        })
    }
}

fn of_flow(measured: &Measured<'_>, flow: &FlowPlan) -> FlowResult {
    let (plan, ends) = (measured.plan, &measured.recording.ends);
    let ends: Vec<&FlowReport> =
        ends.iter().map(|end| &end.report).filter(|report| report.flow == flow.flow).collect();
    let senders = || ends.iter().filter(|end| end.sender);
    let receivers = || ends.iter().filter(|end| !end.sender);
    FlowResult {
        name: flow.name.clone(),
        group: flow.group.clone(),
        agree_as: flow.agree_as.clone(),
        gbps: plan.windows.iter().map(|span| measured.rate(flow, span.from, span.to)).collect(),
        repeated: senders().map(|end| end.repeated).sum(),
        missing: receivers().map(|end| end.missing).sum(),
        shed: senders().map(|end| end.shed).sum(),
        moves_total: senders().map(|end| end.moves_total).sum(),
        moves: senders().flat_map(|end| end.moves.clone()).collect(),
        quiet: (!measured.recording.migrations.is_empty())
            .then(|| measured.quiet(flow, Time::ZERO, measured.recording.ended)),
        notifications: senders().map(|end| end.notifications).sum(),
        errors: ends.iter().filter_map(|end| end.error.clone()).collect(),
        series: if flow.beff.is_some() { Vec::new() } else { measured.series(flow) },
    }
}

/// `seconds,kind,name,…`: what was counted since the beginning, at every sample.
fn csv(plan: &Plan, recording: &Recording) -> String {
    let mut text = String::from(
        "seconds,kind,name,sent_bytes,packets,bytes,xmit_wait_ticks,xmit_data_words,rcv_data_words,xmit_discards\n",
    );
    for sample in &recording.samples {
        let seconds = sample.at;
        for of in &sample.flows {
            let name =
                plan.flows.iter().find(|flow| flow.flow == of.flow).map_or("", |flow| flow.name.as_str());
            let name = quoted(name);
            text += &format!("{seconds},flow,{name},{},{},{},,,,\n", of.sent_bytes, of.packets, of.bytes);
        }
        for (of, place) in sample.ports.iter().zip(&plan.ports) {
            let name = quoted(&place.name);
            let counters =
                [of.xmit_wait, of.xmit_data, of.rcv_data, of.xmit_discards].map(|value| value.to_string());
            text += &format!("{seconds},port,{name},,,,{}\n", counters.join(","));
        }
    }
    text
}

/// A field of CSV (RFC 4180).
fn quoted(text: &str) -> String {
    if text.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_owned()
    }
}
