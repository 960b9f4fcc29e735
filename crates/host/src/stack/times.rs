//! Times in a histogram of bounded size: percentiles, without keeping each time.

use serde::{Deserialize, Serialize};
use weft_machine::Time;

use super::numbers::{COUNT_MAX, ensure};
use crate::traffic::Latency;

/// Each doubling is cut into this many steps, so a percentile is at most an eighth too high.
const STEPS: usize = 8;
/// Nanoseconds of the first steps, as a power of two.
const UNIT: u32 = 7;
/// From 128 ns to nine minutes; longer times count as the longest.
const BUCKETS: usize = STEPS * 30;

/// Times of one kind.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Times {
    latency: Latency,
    /// How many by bucket, up to the last one that has any.
    buckets: Vec<u64>,
}

fn bucket(ns: u64) -> usize {
    let units = ns >> UNIT;
    if units < STEPS as u64 {
        return units as usize;
    }
    let exponent = units.ilog2();
    let step = (units >> (exponent - 3)) as usize & (STEPS - 1);
    ((exponent as usize - 2) * STEPS + step).min(BUCKETS - 1)
}

/// The first time above those of a bucket, in nanoseconds.
fn upper(bucket: usize) -> u64 {
    let (doubling, step) = (bucket / STEPS, (bucket % STEPS) as u64);
    match doubling {
        0 => (step + 1) << UNIT,
        _ => (STEPS as u64 + step + 1) << (doubling - 1) << UNIT,
    }
}

impl Times {
    /// One more.
    pub(super) fn record(&mut self, span: Time) {
        self.latency.record(span);
        let bucket = bucket(span.as_nanos());
        if bucket >= self.buckets.len() {
            self.buckets.resize(bucket + 1, 0);
        }
        self.buckets[bucket] += 1;
    }

    /// Sum, extremes and percentiles.
    pub(super) fn report(&self) -> Latency {
        Latency { p50_ns: self.percentile(50), p99_ns: self.percentile(99), ..self.latency }
    }

    /// At least this many of 100 times are no longer.
    fn percentile(&self, percent: u64) -> u64 {
        let Latency { count, max_ns, .. } = self.latency;
        let wanted = count.saturating_mul(percent).div_ceil(100);
        let mut below = 0;
        for (place, times) in self.buckets.iter().enumerate() {
            below += times;
            if below >= wanted && below > 0 {
                return (upper(place) - 1).min(max_ns);
            }
        }
        max_ns
    }

    /// Checks that an image's times can be counted on.
    pub(super) fn verify(&self) -> Result<(), &'static str> {
        let counted = self.buckets.iter().fold(0u64, |sum, times| sum.saturating_add(*times));
        ensure(
            self.buckets.len() <= BUCKETS && counted <= COUNT_MAX && self.latency.count <= COUNT_MAX,
            "a counter is too high",
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(nanos: impl IntoIterator<Item = u64>) -> Latency {
        let mut times = Times::default();
        nanos.into_iter().for_each(|ns| times.record(Time::from_nanos(ns)));
        times.verify().unwrap();
        times.report()
    }

    #[test]
    fn percentiles_are_at_most_an_eighth_too_high() {
        for unit in [1_000, 77_000, 3_000_000] {
            let report = of((1..=1000).map(|number| number * unit));
            for (percentile, exact) in [(report.p50_ns, 500 * unit), (report.p99_ns, 990 * unit)] {
                assert!((exact..=exact + exact / 8 + 128).contains(&percentile), "{percentile} {exact}");
            }
            assert_eq!((report.count, report.max_ns, report.min_ns), (1000, 1000 * unit, unit));
        }
    }

    #[test]
    fn buckets_follow_each_other_without_a_gap() {
        let mut last = 0;
        for place in 0..BUCKETS - 1 {
            assert_eq!((bucket(last), bucket(upper(place) - 1)), (place, place));
            last = upper(place);
        }
        assert_eq!(bucket(u64::MAX), BUCKETS - 1);
    }

    #[test]
    fn one_time_is_every_percentile_and_none_is_zero() {
        assert_eq!(of([]), Latency::default());
        let one = of([5_000]);
        assert_eq!((one.p50_ns, one.p99_ns, one.max_ns), (5_000, 5_000, 5_000));
        let rare = of((0..99).map(|_| 1_000).chain([9_000_000]));
        assert!(rare.p50_ns < 1_200 && rare.p99_ns < 1_200 && rare.max_ns == 9_000_000, "{rare:?}");
    }
}
