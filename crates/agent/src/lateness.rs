//! Lateness of the agent with what a machine wanted done at a moment.

use weft_control::agent::Lateness;
use weft_machine::Time;

/// Each doubling is cut into this many steps, so a reported value is at most an eighth too high.
const STEPS: usize = 8;
/// From microseconds to half an hour.
const BUCKETS: usize = STEPS * 28;
/// A machine that paces packets has a deadline about this often.
const EXPECTED_NS: u64 = 1_000_000;
/// A stall is counted at most so often.
const REPEATS_MAX: u64 = 1000;

/// A fixed histogram of lateness, in units of 1024 ns.
///
/// A machine that was late catches up with everything it missed at once, though each of it was late. So a stall counts
/// once for each millisecond of it, as the pacing of packets would have asked (Gil Tene's correction for coordinated
/// omission).
#[derive(Debug)]
pub(crate) struct Histogram {
    buckets: [u64; BUCKETS],
    count: u64,
    sum_ns: u64,
    max_ns: u64,
}

impl Histogram {
    pub(crate) fn new() -> Self {
        Self { buckets: [0; BUCKETS], count: 0, sum_ns: 0, max_ns: 0 }
    }

    /// Notes that something was done so much later than it was wanted.
    pub(crate) fn record(&mut self, late: Time) {
        let mut late_ns = late.as_nanos();
        self.max_ns = self.max_ns.max(late_ns);
        for _ in 0..REPEATS_MAX {
            self.buckets[bucket(late_ns)] += 1;
            self.count += 1;
            self.sum_ns = self.sum_ns.saturating_add(late_ns);
            if late_ns <= EXPECTED_NS {
                break;
            }
            late_ns -= EXPECTED_NS;
        }
    }

    /// What there is to tell.
    pub(crate) fn summary(&self) -> Lateness {
        let &Self { count, max_ns, .. } = self;
        Lateness { count, p50_ns: self.percentile(50), p99_ns: self.percentile(99), max_ns }
    }

    /// How many were recorded.
    pub(crate) fn count(&self) -> u64 {
        self.count
    }

    /// All that was recorded together.
    pub(crate) fn sum(&self) -> Time {
        Time::from_nanos(self.sum_ns)
    }

    /// Coarser: how many were at most so late, and later than the bound before, from 8 us up in steps of four.
    pub(crate) fn coarse(&self) -> impl Iterator<Item = (Time, u64)> {
        let bounds = (0..).map(|step| Time::from_nanos((STEPS as u64) << (10 + 2 * step)));
        // The first octave stands in twice its width; then two octaves at a time.
        let (first, others) = self.buckets.split_at(STEPS);
        bounds.zip(std::iter::once(first).chain(others.chunks(2 * STEPS)).map(|counts| counts.iter().sum()))
    }

    /// The value that `percent` % of samples do not exceed, rounded up to the end of its bucket.
    fn percentile(&self, percent: u64) -> u64 {
        let wanted = (self.count * percent).div_ceil(100);
        let mut seen = 0;
        let found = self.buckets.iter().position(|count| {
            seen += count;
            seen >= wanted
        });
        found.map_or(0, end_of).min(self.max_ns)
    }
}

fn bucket(late_ns: u64) -> usize {
    let units = late_ns >> 10;
    if units < STEPS as u64 {
        return units as usize;
    }
    let octave = units.ilog2() - STEPS.ilog2();
    let step = (units >> octave) as usize - STEPS;
    ((octave as usize + 1) * STEPS + step).min(BUCKETS - 1)
}

fn end_of(bucket: usize) -> u64 {
    let (octave, step) = ((bucket / STEPS).saturating_sub(1), bucket % STEPS);
    let units = if bucket < STEPS { bucket + 1 } else { (STEPS + step + 1) << octave };
    ((units as u64) << 10) - 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lateness_bucket_ends_within_an_eighth_of_its_values() {
        for shift in 0..40 {
            for late in [1u64 << shift, (1 << shift) + 7, (3 << shift) / 2] {
                let end = end_of(bucket(late));
                assert!(end >= late && end - late <= late / 8 + 1023, "{late} in a bucket to {end}");
            }
        }
    }

    #[test]
    fn percentiles_are_of_what_was_recorded() {
        let mut histogram = Histogram::new();
        assert_eq!(histogram.summary(), Lateness::default());
        for _ in 0..98 {
            histogram.record(Time::from_micros(50));
        }
        histogram.record(Time::from_micros(900));
        histogram.record(Time::from_micros(950));
        let told = histogram.summary();
        assert_eq!((told.count, told.max_ns), (100, 950_000));
        assert!((50_000..57_000).contains(&told.p50_ns), "{told:?}");
        assert!((900_000..=950_000).contains(&told.p99_ns), "{told:?}");
    }

    #[test]
    fn coarse_buckets_hold_all_and_keep_their_bounds() {
        let mut histogram = Histogram::new();
        for late in [0, 8_191, 8_192, 32_767, 32_768, 999_999] {
            histogram.record(Time::from_nanos(late));
        }
        let coarse: Vec<(u64, u64)> =
            histogram.coarse().map(|(bound, count)| (bound.as_nanos(), count)).collect();
        assert_eq!(coarse[..4], [(8_192, 2), (32_768, 2), (131_072, 1), (524_288, 0)]);
        assert_eq!(coarse.iter().map(|(_, count)| count).sum::<u64>(), histogram.count());
        assert_eq!(histogram.sum(), Time::from_nanos(8_191 + 8_192 + 32_767 + 32_768 + 999_999));
    }

    #[test]
    fn a_stall_counts_for_everything_that_it_held_up() {
        let mut histogram = Histogram::new();
        for _ in 0..900 {
            histogram.record(Time::from_micros(10));
        }
        histogram.record(Time::from_millis(100));
        let told = histogram.summary();
        assert_eq!(told.count, 1000);
        assert!(told.p50_ns < 20_000 && told.p99_ns > 80_000_000, "{told:?}");
    }
}
