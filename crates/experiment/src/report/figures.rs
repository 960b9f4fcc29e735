//! The figures of a report.

use std::collections::BTreeMap;

use crate::judge::fits;
use crate::measure::{is_named, mean};
use crate::{Driver, ExperimentFile, Figure, FigureKind, Mark, MarkKind, RunResult};
use weft_picture::chart::{BarGroup, Bars, Line, Lines, Tick};

use super::{Variant, slug};

/// The figure of a variant's first run, by the file's name; several where the file asks for several.
pub(super) fn lines(file: &ExperimentFile, variant: &Variant<'_>) -> Vec<(String, String)> {
    let Some(run) = variant.runs.first() else { return Vec::new() };
    let asked = file.plain().figures.iter().filter(|figure| figure.kind == FigureKind::Throughput);
    let asked: Vec<&Figure> = asked.filter(|figure| fits(&figure.when, &run.run)).collect();
    let base = slug(&run.run, run.driver);
    let has_lines = run.flows.iter().any(|flow| !flow.series.is_empty());
    match asked.as_slice() {
        _ if !has_lines => Vec::new(),
        [] if file.plain().figures.is_empty() => {
            vec![(format!("{base}.svg"), drawn(file, variant, run, &[], ""))]
        }
        figures => {
            let one = |(nth, figure): (usize, &&Figure)| {
                (format!("{base}-{}.svg", nth + 1), drawn(file, variant, run, &figure.flows, &figure.title))
            };
            figures.iter().enumerate().map(one).collect()
        }
    }
}

fn drawn(
    file: &ExperimentFile,
    variant: &Variant<'_>,
    run: &RunResult,
    flows: &[String],
    title: &str,
) -> String {
    let meant = meant(run, flows);
    let line = |flow: &crate::FlowResult| Line {
        name: flow.name.clone(),
        points: flow.series.clone(),
        ..Line::default()
    };
    let title = if title.is_empty() { &file.plain().title } else { title };
    let figure = Lines {
        title: format!("{title} ({})", variant.title()),
        unit: "Gb/s".to_owned(),
        seconds: run.duration.as_secs_f64(),
        across: String::new(),
        lines: meant.filter(|flow| !flow.series.is_empty()).map(line).collect(),
        marks: run.marks.iter().filter(|mark| mark.kind != MarkKind::Note).map(tick).collect(),
    };
    figure.svg()
}

/// The flows of a run that a figure names; all where it names none.
fn meant<'a>(run: &'a RunResult, flows: &'a [String]) -> impl Iterator<Item = &'a crate::FlowResult> {
    run.flows.iter().filter(|flow| is_named(flows, &flow.name, flow.group.as_deref()))
}

/// The throughput of all flows together over time, for each driver that has runs: of each choice the first seed's, with the
/// plan's faults.
pub(super) fn total(
    file: &ExperimentFile,
    nth: usize,
    figure: &Figure,
    runs: &[RunResult],
) -> Vec<(String, String)> {
    let mut all = Vec::new();
    for (driver, word) in [(Driver::Live, "live"), (Driver::Virtual, "virtual")] {
        let of = |label: &String| {
            let fitting = |run: &&RunResult| {
                run.driver == driver && fits(&figure.when, &run.run) && chosen(run, &figure.lines, label)
            };
            runs.iter().find(fitting).map(|run| (label.clone(), run))
        };
        let found: Vec<_> = labels(file, &figure.lines).iter().filter_map(of).collect();
        let Some((_, first)) = found.first() else { continue };
        let line = |(label, run): &(String, &RunResult)| {
            // Samples are at the same moments in all flows; one that begins later has none before.
            let mut sums: BTreeMap<u64, f64> = BTreeMap::new();
            for (at, value) in meant(run, &figure.flows).flat_map(|flow| &flow.series) {
                *sums.entry((at * 1e9).round() as u64).or_default() += value;
            }
            let name = if figure.lines.is_empty() { "all flows" } else { label };
            let points = sums.into_iter().map(|(nanos, value)| (nanos as f64 / 1e9, value)).collect();
            Line { name: name.to_owned(), points, ..Line::default() }
        };
        let faults = first.marks.iter().filter(|mark| mark.kind == MarkKind::Fault);
        let lines = Lines {
            title: title(file, figure),
            unit: "Gb/s".to_owned(),
            seconds: first.duration.as_secs_f64(),
            across: String::new(),
            lines: found.iter().map(line).collect(),
            marks: faults.map(tick).collect(),
        };
        all.push((format!("total-{}-{word}.svg", nth + 1), lines.svg()));
    }
    all
}

fn tick(mark: &Mark) -> Tick {
    Tick { at: mark.at.as_secs_f64(), text: mark.text.clone(), fault: mark.kind == MarkKind::Fault }
}

/// What a figure is called.
pub(super) fn title(file: &ExperimentFile, figure: &Figure) -> String {
    if figure.title.is_empty() { file.plain().title.clone() } else { figure.title.clone() }
}

/// The choices of an axis; one without a name where there is no axis.
pub(super) fn labels(file: &ExperimentFile, axis: &str) -> Vec<String> {
    let found = file.axes().into_iter().find(|(name, _)| name == axis);
    found.map_or_else(|| vec![String::new()], |(_, labels)| labels)
}

/// Whether a run has this choice of an axis, if there is one.
pub(super) fn chosen(run: &RunResult, axis: &str, label: &str) -> bool {
    axis.is_empty() || run.run.choices.iter().any(|(name, is)| name == axis && is == label)
}

/// A figure of bars for each driver that has runs, by the file's name.
pub(super) fn bars(
    file: &ExperimentFile,
    nth: usize,
    figure: &Figure,
    runs: &[RunResult],
) -> Vec<(String, String)> {
    let (names, groups) = (labels(file, &figure.bars), labels(file, &figure.groups));
    let mut all = Vec::new();
    for (driver, word) in [(Driver::Live, "live"), (Driver::Virtual, "virtual")] {
        let meant: Vec<&RunResult> =
            runs.iter().filter(|run| run.driver == driver && fits(&figure.when, &run.run)).collect();
        if meant.is_empty() {
            continue;
        }
        let value = |group: &String, name: &String| {
            let fitting = meant
                .iter()
                .filter(|run| chosen(run, &figure.groups, group) && chosen(run, &figure.bars, name));
            mean(fitting.filter_map(|run| run.bars.get(nth).copied().flatten()))
        };
        let group = |group: &String| BarGroup {
            name: if figure.groups.is_empty() {
                String::new()
            } else {
                format!("{} = {group}", figure.groups)
            },
            values: names.iter().map(|name| value(group, name)).collect(),
        };
        let named = |name: &String| {
            if figure.bars.is_empty() { "all".to_owned() } else { format!("{} = {name}", figure.bars) }
        };
        let bars = Bars {
            title: title(file, figure),
            unit: "Gb/s per host".to_owned(),
            names: names.iter().map(named).collect(),
            groups: groups.iter().map(group).collect(),
        };
        all.push((format!("bars-{}-{word}.svg", nth + 1), bars.svg()));
    }
    all
}
