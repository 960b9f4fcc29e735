//! The page of one experiment.

use weft_wire::count_of;

use super::table::{Table, escaped};
use super::{
    Agreement, FidelityRow, GainFinding, Variant, driver, faults, fidelity, figures, migrations, prediction,
    slug,
};
use crate::judge::bounded;
use crate::measure::mean;
use crate::number::number;
use crate::{Basis, Bound, ExperimentFile, FabricSpec, Finding, Outcome, PmMode, RunResult};

/// From this many variants on, a page has one table for all of them and no section for each.
const SECTIONS_MAX: usize = 12;
/// The most flows in a table; what is beyond is said in words.
const FLOWS_MAX: usize = 40;
/// The most marks in a list.
const MARKS_MAX: usize = 40;

/// Everything that the page is made from.
pub(super) struct Page<'a> {
    pub(super) file: &'a ExperimentFile,
    pub(super) variants: &'a [Variant<'a>],
    pub(super) gains: &'a [GainFinding],
    pub(super) fidelity: &'a [FidelityRow],
    /// The section about conditions; empty where the series has none.
    pub(super) conditions: &'a str,
    /// Titles and names of the figures of bars.
    pub(super) figures: &'a [(String, String)],
}

impl Page<'_> {
    pub(super) fn write(&self, invalid: &[String], failures: &[String], agreements: &[Agreement]) -> String {
        let mut text = self.head();
        text += &self.result(invalid, failures);
        text += &self.beside();
        text += self.conditions;
        text += &self.gains();
        for (title, name) in self.figures {
            text += &format!("![{}]({name})\n\n", escaped(title));
        }
        if self.variants.len() > SECTIONS_MAX {
            text += &self.matrix();
        } else {
            for variant in self.variants {
                text += &self.section(variant);
            }
        }
        text += &agreed(agreements);
        text += UNITS;
        text
    }

    fn head(&self) -> String {
        let plain = self.file.plain();
        let mut text = format!("# {}\n\n", escaped(&plain.title));
        if !plain.source.is_empty() {
            text += &format!("Source: {}.\n\n", escaped(plain.source.trim_end_matches('.')));
        }
        if !plain.about.trim().is_empty() {
            text += &format!("{}\n\n", escaped(plain.about.trim()));
        }
        let mut table = Table::new(&["", ""]);
        let rates = &plain.rates;
        let fabric = match &plain.fabric {
            FabricSpec::File(path) => path.rsplit('/').next().unwrap_or(path).to_owned(),
            FabricSpec::Generated { shape, rate, host_rate, .. } => {
                let hosts = host_rate.as_ref().map(|rate| format!(", hosts {rate}")).unwrap_or_default();
                format!("{shape:?}, {rate}{hosts}")
            }
        };
        table.row(&["cabling".to_owned(), fabric]);
        table.row(&["engine".to_owned(), plain.engine.chain.clone()]);
        let scale = format!("1/{}", rates.dilation);
        let limit = number(f64::from(rates.host_limit_mbps) / 1000.0, "Gb/s");
        let limit = if rates.host_limit_mbps == 0 { "no limit but the link's".to_owned() } else { limit };
        let buffers = rates.buffer_packets.map_or("the crossbar's buffers".to_owned(), |packets| {
            format!("{packets} packets per port and lane")
        });
        let mtu = format!("{} bytes, {buffers}", rates.mtu_bytes());
        table.row(&["rate scale".to_owned(), scale]);
        table.row(&["a host moves at most, in each direction".to_owned(), limit]);
        if rates.host_bus_mbps > 0 {
            let bus = number(f64::from(rates.host_bus_mbps) / 1000.0, "Gb/s");
            table.row(&["the functions of a host move at most together, in each direction".to_owned(), bus]);
        }
        table.row(&["MTU and buffers".to_owned(), mtu]);
        table.row(&["crossbar".to_owned(), rates.crossbar.to_string()]);
        table.row(&["share of a lane that it does not use".to_owned(), rates.lane_share.to_string()]);
        table.row(&["switch latency".to_owned(), format!("{} ns", rates.crossbar.latency_ns)]);
        table.row(&["cables".to_owned(), format!("{} m", rates.cable_m)]);
        table.row(&["overhead of a message".to_owned(), format!("{} ns", rates.message_overhead_ns)]);
        if let Some(profile) = &rates.profile {
            table.row(&["profile of hardware".to_owned(), profile.clone()]);
        }
        if rates.cut_through {
            table.row(&["switches".to_owned(), "virtual cut-through".to_owned()]);
        }
        table.row(&["lanes of traffic".to_owned(), rates.lanes.to_string()]);
        let own = if plain.sm.management_lane { "a lane of its own" } else { "the lanes of traffic" };
        table.row(&["management uses".to_owned(), own.to_owned()]);
        table.row(&["performance manager".to_owned(), self.manager()]);
        for (axis, labels) in self.file.axes() {
            table.row(&[format!("variants of {axis}"), labels.join(", ")]);
        }
        text + &table.finish()
    }

    fn manager(&self) -> String {
        let pm = &self.file.plain().pm;
        let varied = self.file.axes().iter().any(|(axis, _)| axis == "pm.mode");
        let mode = match pm.mode {
            _ if varied => "by variant",
            PmMode::Off => return "none".to_owned(),
            PmMode::Watch => "watches only",
            PmMode::On => "on",
            PmMode::Oracle => "an oracle",
        };
        let share = |ticks: u64| number(ticks as f64 * 4e-9 * 100.0, "");
        format!(
            "{mode}; every {}, congested above {} ticks per second of fabric time ({} % of the time; {} % beside other hot spots), low utilisation below {} %",
            number(pm.interval.as_secs_f64(), "s"),
            pm.threshold,
            share(pm.threshold),
            share(pm.further_threshold.max(pm.threshold)),
            number(pm.utilisation_limit * 100.0, "")
        )
    }

    fn result(&self, invalid: &[String], failures: &[String]) -> String {
        let runs: usize = self.variants.iter().map(|variant| variant.runs.len()).sum();
        let mut text = "## Result\n\n".to_owned();
        for line in invalid {
            text += &format!("**Invalid**: {}.\n\n", escaped(line));
        }
        if failures.is_empty() {
            let judged = runs - invalid.len();
            let which = count_of(judged, if invalid.is_empty() { "run" } else { "other run" });
            if judged > 0 {
                text += &format!("{which} {}.\n\n", if judged == 1 { "passes" } else { "pass" });
            }
            return text;
        }
        text += &format!("**Failed**, {} lines of {runs} runs:\n\n", failures.len());
        for failure in failures {
            text += &format!("- {}\n", escaped(failure));
        }
        text + "\n"
    }

    fn beside(&self) -> String {
        let table = fidelity::table(self.fidelity);
        if table.is_empty() { table } else { format!("## Beside the paper\n\n{table}") }
    }

    fn gains(&self) -> String {
        if self.gains.is_empty() {
            return String::new();
        }
        let heads = ["gain", "by", "without", "with", "ours", "model", "from", ""];
        let mut table = Table::new(&heads);
        for gain in self.gains {
            let finding = &gain.finding;
            table.row(&[
                finding.name.clone(),
                driver(gain.driver).to_owned(),
                or_dash(gain.base, gain.unit),
                or_dash(gain.with, gain.unit),
                or_dash(finding.measured, "%"),
                finding.bound.map(|bound| bounded(&bound, "%")).unwrap_or_default(),
                basis(finding),
                word(finding.outcome).to_owned(),
            ]);
        }
        format!("## Gains\n\n{}", table.finish())
    }

    fn section(&self, variant: &Variant<'_>) -> String {
        let mut text = format!("## {}\n\n", escaped(&variant.title()));
        let Some(first) = variant.runs.first() else { return text };
        if !first.routed_by.is_empty() {
            text += &format!("Routed by {}.\n\n", escaped(&first.routed_by));
        }
        for run in &variant.runs {
            for reason in &run.verdict.invalid {
                text += &format!("**Seed {} is invalid**: {}.\n\n", run.run.seed, escaped(reason));
            }
        }
        for (name, _) in figures::lines(self.file, variant) {
            text += &format!("![throughput over time]({name})\n\n");
        }
        text += &findings(variant);
        text += &flows(variant);
        text += &ports(variant);
        text += &balance(first);
        text += &migrations::section(variant.runs.iter().copied());
        text += &faults::section(variant.runs.iter().copied());
        text += &marks(first);
        for run in &variant.runs {
            let name = slug(&run.run, run.driver);
            text += &format!("Samples of seed {}: [samples-{name}.csv](samples-{name}.csv).", run.run.seed);
            if let Some(late) = run.late {
                let millis = |time: weft_machine::Time| number(time.as_secs_f64() * 1e3, "ms");
                let (p50, p99, max) = (millis(late.p50), millis(late.p99), millis(late.max));
                text += &format!(" Wake-ups were late by {p50} at the median, {p99} at 99 %, {max} at most.");
            }
            text += "\n\n";
        }
        text + &prediction::section(&first.prediction)
    }

    /// One row for each variant, one column for each expectation that all of them share.
    fn matrix(&self) -> String {
        let mut names: Vec<&str> = Vec::new();
        for finding in
            self.variants.iter().flat_map(|variant| &variant.runs).flat_map(|run| &run.verdict.findings)
        {
            if finding.measured.is_some() && !names.contains(&finding.name.as_str()) {
                names.push(&finding.name);
            }
        }
        let heads: Vec<&str> = ["variant", "seeds"].into_iter().chain(names.iter().copied()).collect();
        let mut table = Table::new(&heads);
        for variant in self.variants {
            let mut cells = vec![variant.title(), variant.runs.len().to_string()];
            for name in &names {
                cells.push(
                    over_seeds(variant, |run| run.verdict.findings.iter().find(|of| of.name == *name)).0,
                );
            }
            table.row(&cells);
        }
        format!("## Variants\n\nMeans over seeds, with the least and the greatest.\n\n{}", table.finish())
    }
}

fn or_dash(value: Option<f64>, unit: &str) -> String {
    value.map_or("–".to_owned(), |value| number(value, unit))
}

/// Where a bound comes from.
fn basis(finding: &Finding) -> String {
    match &finding.basis {
        Some(Basis::ClosedForm(form)) => form.clone(),
        Some(Basis::Paper(part)) => format!("the paper: {part}"),
        Some(Basis::Shown(reason)) => reason.clone(),
        Some(Basis::Regression) => "an earlier run".to_owned(),
        None if finding.outcome == Outcome::Shown => String::new(),
        None => "every run".to_owned(),
    }
}

pub(super) fn word(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Shown => "",
        Outcome::Kept => "kept",
        Outcome::Failed => "FAILED",
    }
}

/// A measured value over the seeds of a variant, and how it fared at the worst.
pub(super) fn over_seeds<'a>(
    variant: &Variant<'a>,
    find: impl Fn(&'a RunResult) -> Option<&'a Finding>,
) -> (String, Outcome) {
    let findings: Vec<&Finding> = variant.runs.iter().filter_map(|run| find(run)).collect();
    let worst = findings.iter().map(|finding| finding.outcome).max().unwrap_or(Outcome::Shown);
    let unit = findings.first().map_or("", |finding| finding.unit);
    let values: Vec<f64> = findings.iter().filter_map(|finding| finding.measured).collect();
    let Some(mean) = mean(values.iter().copied()) else { return ("–".to_owned(), worst) };
    if values.len() < 2 {
        return (number(mean, unit), worst);
    }
    let (least, most) =
        (values.iter().copied().fold(mean, f64::min), values.iter().copied().fold(mean, f64::max));
    (format!("{} ({} to {})", number(mean, unit), number(least, ""), number(most, "")), worst)
}

/// Each expectation with what was measured, and what the model says.
fn findings(variant: &Variant<'_>) -> String {
    let Some(first) = variant.runs.first() else { return String::new() };
    let mut table = Table::new(&["what", "measured", "model", "from", ""]);
    // All runs of a variant have the same findings in the same order.
    for (nth, finding) in first.verdict.findings.iter().enumerate() {
        let (measured, outcome) = over_seeds(variant, |run| run.verdict.findings.get(nth));
        // What only holds or does not, and what must never happen, has no value to show.
        let silent = finding.measured.is_none() && matches!(finding.bound, None | Some(Bound::Never));
        let measured = if silent && outcome != Outcome::Shown { String::new() } else { measured };
        let bound = finding.bound.map(|bound| bounded(&bound, finding.unit)).unwrap_or_default();
        let cells = [finding.name.clone(), measured, bound, basis(finding), word(outcome).to_owned()];
        table.row(&cells);
    }
    table.finish()
}

/// Every flow's throughput by window, as the mean over seeds.
fn flows(variant: &Variant<'_>) -> String {
    let Some(first) = variant.runs.first() else { return String::new() };
    let windows: Vec<String> = first.windows.iter().map(|span| format!("{}, Gb/s", span.name)).collect();
    let heads = ["flow"].into_iter().chain(windows.iter().map(String::as_str));
    let heads: Vec<&str> =
        heads.chain(["moves", "longest pause", "sent again", "never came", "notified"]).collect();
    let mut table = Table::new(&heads);
    let shown = first.flows.iter().enumerate().filter(|(_, flow)| !flow.series.is_empty());
    let shown: Vec<_> = shown.collect();
    for (nth, flow) in shown.iter().take(FLOWS_MAX) {
        let same = || variant.runs.iter().filter_map(|run| run.flows.get(*nth));
        let mut cells = vec![flow.name.clone()];
        for window in 0..first.windows.len() {
            cells.push(or_dash(mean(same().filter_map(|of| of.gbps.get(window).copied().flatten())), ""));
        }
        let pauses = same().flat_map(|of| of.moves.iter().map(|change| change.pause).chain(of.quiet));
        let pause = pauses.max();
        cells.push(same().map(|of| of.moves_total).sum::<u64>().to_string());
        cells.push(pause.map_or(String::new(), |pause| number(pause.as_secs_f64() * 1e3, "ms")));
        cells.push(same().map(|of| of.repeated).sum::<u64>().to_string());
        cells.push(same().map(|of| of.missing).sum::<u64>().to_string());
        cells.push(same().map(|of| of.notifications).sum::<u64>().to_string());
        table.row(&cells);
    }
    if shown.is_empty() {
        return String::new();
    }
    let more = match shown.len().saturating_sub(FLOWS_MAX) {
        0 => String::new(),
        more => format!("{more} more flows are in report.json.\n\n"),
    };
    let errors = first.flows.iter().flat_map(|flow| flow.errors.iter().map(move |error| (flow, error)));
    let errors: String = errors
        .map(|(flow, error)| format!("- {} ended in error: {}\n", escaped(&flow.name), escaped(error)))
        .collect();
    let errors = if errors.is_empty() { errors } else { errors + "\n" };
    table.finish() + &more + &errors
}

fn ports(variant: &Variant<'_>) -> String {
    let Some(first) = variant.runs.first().filter(|run| !run.ports.is_empty()) else { return String::new() };
    let windows: Vec<String> = first.windows.iter().map(|span| format!("waits, {}", span.name)).collect();
    let heads: Vec<&str> = ["port"].into_iter().chain(windows.iter().map(String::as_str)).collect();
    let mut table = Table::new(&heads);
    for (nth, port) in first.ports.iter().enumerate() {
        let mut cells = vec![port.name.clone()];
        for window in 0..first.windows.len() {
            let waits =
                variant.runs.iter().filter_map(|run| run.ports.get(nth)?.wait.get(window).copied().flatten());
            cells.push(or_dash(mean(waits), "%"));
        }
        table.row(&cells);
    }
    table.finish()
}

fn balance(run: &RunResult) -> String {
    let mut table = Table::headed(
        "lane | packets injected | from other lanes | to other lanes | delivered | in flight at the end | \
         dropped and counted",
    );
    for lane in &run.conservation.lanes {
        let numbers = [
            u64::from(lane.lane),
            lane.injected,
            lane.moved_in,
            lane.moved_out,
            lane.delivered,
            lane.in_flight,
            lane.dropped,
        ];
        table.row(&numbers.map(|number| number.to_string()));
    }
    if run.conservation.lanes.is_empty() { String::new() } else { table.finish() }
}

fn marks(run: &RunResult) -> String {
    let mut text = String::new();
    for mark in run.marks.iter().take(MARKS_MAX) {
        text += &format!("- {:.2} s: {}\n", mark.at.as_secs_f64(), escaped(&mark.text));
    }
    if run.marks.len() > MARKS_MAX {
        text += &format!("- and {} more, in report.json\n", run.marks.len() - MARKS_MAX);
    }
    if text.is_empty() { text } else { text + "\n" }
}

/// The same flows and ports live and in virtual time.
fn agreed(agreements: &[Agreement]) -> String {
    if agreements.is_empty() {
        return String::new();
    }
    let mut table = Table::headed("run | flow or port | window | live | virtual time | difference");
    for of in agreements.iter().filter(|of| of.live > 0.0 || of.simulated > 0.0) {
        let greater = of.live.max(of.simulated);
        let apart = (of.live - of.simulated).abs();
        // A wait is a share of the time already.
        let percent = number(if of.unit == "%" { apart } else { apart / greater * 100.0 }, "%");
        let percent = if of.agrees { percent } else { format!("{percent}, too much") };
        let (live, simulated) = (number(of.live, of.unit), number(of.simulated, of.unit));
        table.row(&[of.run.to_string(), of.what.clone(), of.window.clone(), live, simulated, percent]);
    }
    format!("## Live and in virtual time\n\n{}", table.finish())
}

const UNITS: &str = "---\n\nThroughput is what was delivered, in whole packets from LRH to VCRC, in Gb/s of fabric time: \
wall-clock rate times the dilation. Times are wall-clock seconds since the fabric was up. A port waits while it has something \
to send and cannot (PortXmitWait); its share is of fabric time.\n";
