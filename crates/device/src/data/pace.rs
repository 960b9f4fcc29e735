//! Transmission time of packets at a rate, in whole nanoseconds of machine time, with the rest carried over.

use weft_machine::Time;
use weft_wire::DataRate;

/// A rate, and what is left of the last nanosecond.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Pace {
    /// Of fabric time.
    rate: DataRate,
    /// What the packets before have used of a nanosecond, in parts of the rate's elevenths.
    carry: u32,
    /// The size that was asked for last, and its time: most packets are of one size.
    last_size: u32,
    last_rest: u32,
    last_nanos: u64,
}

impl Pace {
    pub(crate) fn new(rate: DataRate) -> Self {
        Self { rate, ..Self::default() }
    }

    /// How long the next packet takes, of `size` bytes, where a nanosecond of fabric time is `dilation` of machine time,
    /// each time the same. Over many packets not a nanosecond is lost.
    #[inline]
    pub(crate) fn take(&mut self, size: usize, dilation: u32) -> Time {
        if self.last_size != size as u32 {
            let Some((nanos, rest)) = self.rate.nanos(size, dilation) else { return Time::ZERO };
            (self.last_size, self.last_nanos, self.last_rest) = (size as u32, nanos, rest);
        }
        let free = self.rate.elevenths() - self.carry;
        if self.last_rest >= free {
            self.carry = self.last_rest - free;
            return Time::from_nanos(self.last_nanos + 1);
        }
        self.carry += self.last_rest;
        Time::from_nanos(self.last_nanos)
    }
}

#[cfg(test)]
mod tests {
    use weft_wire::LinkSpeed;

    use super::*;

    #[test]
    fn nothing_is_lost_over_many_packets() {
        let fdr = LinkSpeed::Fdr.data_rate().times(4);
        for rate in [12_900, 3, 400_000].map(DataRate::from_mbps).into_iter().chain([fdr]) {
            let mut pace = Pace::new(rate);
            let sizes = [26, 290, 2_074, 2_074, 4_122];
            let (mut total, mut bytes) = (0, 0);
            for size in sizes.into_iter().cycle().take(10_000) {
                total += pace.take(size, 7).as_nanos();
                bytes += size as u64;
            }
            assert_eq!(total, bytes * 8_000 * 7 * 11 / u64::from(rate.elevenths()));
        }
    }

    #[test]
    fn no_rate_takes_no_time() {
        assert_eq!(Pace::new(DataRate::INSTANT).take(4_122, 1_000), Time::ZERO);
    }
}
