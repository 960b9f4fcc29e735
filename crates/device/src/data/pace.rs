//! How long packets take at a rate, in whole nanoseconds of machine time, with the rest carried over.

use weft_machine::Time;
use weft_wire::PortInfo;

use crate::port::Fdr10;

/// A rate, and what is left of the last nanosecond.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Pace {
    /// Megabits per second of fabric time; 0 takes no time.
    rate: u32,
    /// What the packets before have used of a nanosecond, in parts of `rate`.
    carry: u32,
    /// The size that was asked for last, and its time: most packets are of one size.
    last_size: u32,
    last_rest: u32,
    last_nanos: u64,
}

impl Pace {
    pub(crate) fn new(rate_mbps: u64) -> Self {
        Self { rate: rate_mbps.min(u64::from(u32::MAX)) as u32, ..Self::default() }
    }

    /// How long the next packet takes, of `size` bytes, where a nanosecond of fabric time is `dilation` of machine time,
    /// each time the same. Over many packets not a nanosecond is lost.
    #[inline]
    pub(crate) fn take(&mut self, size: usize, dilation: u32) -> Time {
        if self.rate == 0 {
            return Time::ZERO;
        }
        if self.last_size != size as u32 {
            let (whole, rate) = (size as u64 * 8_000 * u64::from(dilation), u64::from(self.rate));
            (self.last_size, self.last_nanos, self.last_rest) =
                (size as u32, whole / rate, (whole % rate) as u32);
        }
        let free = self.rate - self.carry;
        if self.last_rest >= free {
            self.carry = self.last_rest - free;
            return Time::from_nanos(self.last_nanos + 1);
        }
        self.carry += self.last_rest;
        Time::from_nanos(self.last_nanos)
    }
}

/// The data rate of a link in megabits per second, after its encoding: width times speed (IBA 14.2.5.6).
pub(crate) fn data_rate(info: &PortInfo, fdr10: Fdr10) -> u64 {
    let lane = match (info.link_speed_ext_active, info.link_speed_active) {
        (1, _) => 13_640,
        (2, _) => 25_000,
        (4, _) => 50_000,
        (8, _) => 100_000,
        _ if fdr10.active => 10_000,
        (_, 2) => 4_000,
        (_, 4) => 8_000,
        _ => 2_000,
    };
    u64::from(info.lanes()) * lane
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn widths_and_speeds() {
        let rate = |width, speed, ext, fdr10| {
            let info = PortInfo {
                link_width_active: width,
                link_speed_active: speed,
                link_speed_ext_active: ext,
                ..PortInfo::default()
            };
            data_rate(&info, Fdr10 { active: fdr10, ..Fdr10::default() })
        };
        assert_eq!(
            [1, 2, 4, 8, 16].map(|width| rate(width, 1, 0, false)),
            [2_000, 8_000, 16_000, 24_000, 4_000]
        );
        assert_eq!([1, 2, 4].map(|speed| rate(2, speed, 0, false)), [8_000, 16_000, 32_000]);
        assert_eq!(rate(2, 4, 0, true), 40_000);
        assert_eq!([1, 2, 4, 8].map(|ext| rate(2, 4, ext, false)), [54_560, 100_000, 200_000, 400_000]);
    }

    #[test]
    fn nothing_is_lost_over_many_packets() {
        for rate in [54_560, 12_900, 3, 400_000] {
            let mut pace = Pace::new(rate);
            let sizes = [26, 290, 2_074, 2_074, 4_122];
            let (mut total, mut bytes) = (0, 0);
            for size in sizes.into_iter().cycle().take(10_000) {
                total += pace.take(size, 7).as_nanos();
                bytes += size as u64;
            }
            assert_eq!(total, bytes * 8_000 * 7 / rate);
        }
    }

    #[test]
    fn no_rate_takes_no_time() {
        assert_eq!(Pace::new(0).take(4_122, 1_000), Time::ZERO);
    }
}
