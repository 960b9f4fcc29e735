//! Figures of what a variant gains, over the length of the window in which it is measured.

use crate::judge::fits;
use crate::measure::mean;
use crate::{Driver, ExperimentFile, Figure, RunResult, When};
use weft_picture::chart::{WindowLine, WindowPoint, Windows};

use super::figures::{chosen, labels, title};

/// What 95 % of Student's distribution lies within, by degrees of freedom from 1 on; beyond them it is the normal one's.
const STUDENT: [f64; 15] = [
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131,
];
const NORMAL: f64 = 1.96;

/// The figure, and its points as CSV, by the file's name. Only runs in virtual time are drawn: a live one has few samples.
pub(super) fn figure(
    file: &ExperimentFile,
    nth: usize,
    figure: &Figure,
    runs: &[RunResult],
) -> Vec<(String, String)> {
    let is_meant = |run: &&RunResult| run.driver == Driver::Virtual && fits(&figure.when, &run.run);
    let meant: Vec<&RunResult> = runs.iter().filter(is_meant).collect();
    let line = |label: String| {
        let of = |when: &When| {
            let fitting = |run: &&&RunResult| fits(when, &run.run) && chosen(run, &figure.lines, &label);
            let runs = meant.iter().filter(fitting);
            runs.filter_map(|run| Some((run.run.seed, run.openings.get(nth)?.as_slice()))).collect::<Vec<_>>()
        };
        let points = points(&of(&figure.compared.0), &of(&figure.compared.1));
        // The legend has no room for the table that the axis is in.
        let axis = figure.lines.rsplit('.').next().unwrap_or_default();
        let name = if axis.is_empty() { label } else { format!("{axis} = {label}") };
        WindowLine { name, points }
    };
    let lines: Vec<WindowLine> = labels(file, &figure.lines).into_iter().map(line).collect();
    if lines.iter().all(|line| line.points.is_empty()) {
        return Vec::new();
    }
    let mut csv = String::from("line,seconds,percent,low,high\n");
    for (line, point) in lines.iter().flat_map(|line| line.points.iter().map(move |point| (line, point))) {
        let WindowPoint { length, mean, interval: (low, high) } = point;
        csv += &format!("\"{}\",{length},{mean:.2},{low:.2},{high:.2}\n", line.name);
    }
    let windows = Windows {
        title: title(file, figure),
        across: "length of the window from the beginning, in seconds".to_owned(),
        lines,
        paper: figure.paper.map(|value| (value, format!("the paper: {value} %"))),
    };
    let stem = format!("windows-{}", nth + 1);
    vec![(format!("{stem}.svg"), windows.svg()), (format!("{stem}.csv"), csv)]
}

/// Lengths of windows, and what was measured in each.
type Series<'a> = &'a [(f64, f64)];

/// From the beginning to each sample: the mean over seeds of what each seed gains, and its 95 % interval. Seeds are compared
/// with themselves, because both variants of a seed draw the same traffic.
fn points(base: &[(u64, Series<'_>)], with: &[(u64, Series<'_>)]) -> Vec<WindowPoint> {
    let pairs: Vec<_> = with
        .iter()
        .filter_map(|(seed, with)| Some((base.iter().find(|(other, _)| other == seed)?.1, *with)))
        .collect();
    let Some((first, _)) = pairs.first() else { return Vec::new() };
    let point = |(nth, (length, _)): (usize, &(f64, f64))| {
        let gain = |(base, with): &(Series<'_>, Series<'_>)| {
            let ((from, base), (to, with)) = (base.get(nth)?, with.get(nth)?);
            (*base > 0.0 && from == to).then(|| (with / base - 1.0) * 100.0)
        };
        let gains: Vec<f64> = pairs.iter().filter_map(gain).collect();
        let mean = mean(gains.iter().copied())?;
        let half = half_interval(&gains, mean);
        Some(WindowPoint { length: *length, mean, interval: (mean - half, mean + half) })
    };
    first.iter().enumerate().filter_map(point).collect()
}

/// Half of the 95 % interval of the mean of these values; 0 of one value.
fn half_interval(values: &[f64], mean: f64) -> f64 {
    let freedom = values.len().saturating_sub(1);
    if freedom == 0 {
        return 0.0;
    }
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    let student = STUDENT.get(freedom - 1).copied().unwrap_or(NORMAL);
    student * (squares / freedom as f64 / values.len() as f64).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gains_pair_equal_seeds_and_use_students_t_interval() {
        let base = [(1, &[(0.5, 1.0), (1.0, 2.0)][..]), (2, &[(0.5, 2.0), (1.0, 2.0)])];
        // The other order, and a seed without a partner.
        let with = [(2, &[(0.5, 8.0), (1.0, 2.0)][..]), (1, &[(0.5, 2.0), (1.0, 6.0)]), (3, &[(0.5, 9.0)])];
        let found = points(&base, &with);
        // Gains of 100 and 300 %, then of 200 and 0 %: means 200 and 100, deviations 141.4, of two values 12.706 x 100.
        assert_eq!(found.iter().map(|point| point.mean).collect::<Vec<_>>(), [200.0, 100.0]);
        for point in &found {
            assert!((point.interval.1 - point.mean - 1270.6).abs() < 0.1, "{point:?}");
            assert!((point.mean - point.interval.0 - 1270.6).abs() < 0.1, "{point:?}");
        }
        assert_eq!(half_interval(&[5.0], 5.0), 0.0);
    }
}
