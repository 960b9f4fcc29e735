//! Numbers about numbers.

use std::fmt;

use serde::Serialize;

/// Some values in short.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Summary {
    /// How many there are.
    pub count: u64,
    /// The least; 0 where there are none, as all that follows.
    pub min: f64,
    /// The greatest.
    pub max: f64,
    /// The mean.
    pub mean: f64,
    /// The standard deviation: the root of the mean square distance from the mean, as ORCS has it.
    pub deviation: f64,
}

impl Summary {
    /// Of single values, added up in their order.
    pub fn of(values: impl Iterator<Item = f64> + Clone) -> Self {
        Self::weighted(values.map(|value| (value, 1)))
    }

    /// Of values that occur several times each.
    pub fn weighted(values: impl Iterator<Item = (f64, u64)> + Clone) -> Self {
        let (mut count, mut sum) = (0, 0.0);
        let (mut min, mut max) = (f64::INFINITY, f64::NEG_INFINITY);
        for (value, times) in values.clone().filter(|(_, times)| *times > 0) {
            count += times;
            sum += value * times as f64;
            (min, max) = (min.min(value), max.max(value));
        }
        if count == 0 {
            return Self::default();
        }
        let mean = sum / count as f64;
        let squares: f64 = values.map(|(value, times)| (value - mean).powi(2) * times as f64).sum();
        Self { count, min, max, mean, deviation: (squares / count as f64).sqrt() }
    }

    /// Half of the 95 % interval of the mean: 1.96 standard deviations of it, which supposes many values.
    pub fn interval(&self) -> f64 {
        if self.count == 0 { 0.0 } else { 1.96 * self.deviation / (self.count as f64).sqrt() }
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { min, max, mean, deviation, .. } = self;
        let interval = self.interval();
        write!(f, "mean {mean:.4} ± {interval:.4}, min {min:.4}, max {max:.4}, deviation {deviation:.4}")
    }
}

/// How often values fall between two bounds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Bin {
    /// The least value.
    pub from: f64,
    /// The upper bound, which belongs to the next bin; equal to `from` in a bin of a single value.
    pub to: f64,
    /// How many values.
    pub count: u64,
}

/// One metric: its values in short and as a histogram.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Figure {
    /// In short.
    pub summary: Summary,
    /// By value, ascending; bins without values are left out.
    pub histogram: Vec<Bin>,
}

impl Figure {
    /// Of whole numbers: how often each occurs. A bin for each.
    pub(crate) fn counted(counts: impl Iterator<Item = (u64, u64)> + Clone) -> Self {
        let counts = counts.filter(|(_, count)| *count > 0);
        let summary = Summary::weighted(counts.clone().map(|(value, count)| (value as f64, count)));
        let bin = |(value, count)| Bin { from: value as f64, to: value as f64, count };
        Self { summary, histogram: counts.map(bin).collect() }
    }

    /// Of shares of 1, in bins of a twentieth as ORCS has them; 1 itself is in the last.
    pub(crate) fn shares(values: &[f64]) -> Self {
        const BINS: usize = 20;
        let mut counts = [0; BINS];
        for value in values {
            counts[((value * BINS as f64) as usize).min(BINS - 1)] += 1;
        }
        let bin = |(place, count): (usize, u64)| {
            let bound = |place| place as f64 / BINS as f64;
            Bin { from: bound(place), to: bound(place + 1), count }
        };
        let histogram = counts.into_iter().enumerate().map(bin).filter(|bin| bin.count > 0);
        Self { summary: Summary::of(values.iter().copied()), histogram: histogram.collect() }
    }
}

impl fmt::Display for Figure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.summary)?;
        for Bin { from, to, count } in &self.histogram {
            let share = *count as f64 * 100.0 / self.summary.count.max(1) as f64;
            if from == to {
                write!(f, "\n  {from}: {count} ({share:.2} %)")?;
            } else {
                write!(f, "\n  {from:.2} to {to:.2}: {count} ({share:.2} %)")?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_summary_of_known_values() {
        let summary = Summary::of([2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0].into_iter());
        assert_eq!(summary, Summary { count: 8, min: 2.0, max: 9.0, mean: 5.0, deviation: 2.0 });
        assert!((summary.interval() - 1.96 * 2.0 / 8f64.sqrt()).abs() < 1e-12);
        let weighted = [(2.0, 1), (4.0, 3), (5.0, 2), (7.0, 1), (8.0, 0), (9.0, 1)];
        assert_eq!(Summary::weighted(weighted.into_iter()), summary);
        assert_eq!(Summary::of(std::iter::empty()), Summary::default());
        assert_eq!(Summary::default().interval(), 0.0);
    }

    #[test]
    fn shares_fall_into_twentieths() {
        let figure = Figure::shares(&[0.5, 0.51, 1.0, 0.999]);
        let bins: Vec<_> = figure.histogram.iter().map(|bin| (bin.from, bin.to, bin.count)).collect();
        assert_eq!(bins, [(0.5, 0.55, 2), (0.95, 1.0, 2)]);
        assert!(figure.to_string().contains("0.50 to 0.55: 2 (50.00 %)"), "{figure}");
    }
}
