//! Equations 1 to 3 of dFtree: congestion, bandwidth and utilisation from two readings of a counter.
//!
//! The paper's seconds are seconds of fabric time here: the time between the two readings, divided by the dilation.
//! Everything is whole numbers, so that comparisons are the same everywhere.

use weft_machine::Time;

/// By how much of something a counter rose in one second of fabric time.
fn per_second(count: u64, interval: Time, dilation: u32) -> Option<u64> {
    let nanos = u128::from(interval.as_nanos());
    let scaled = u128::from(count) * u128::from(dilation) * 1_000_000_000;
    scaled.checked_div(nanos).map(|rate| u64::try_from(rate).unwrap_or(u64::MAX))
}

/// Equation 1: ticks of PortXmitWait per second. `None` when no time has passed.
pub fn congestion(ticks: u64, interval: Time, dilation: u32) -> Option<u64> {
    per_second(ticks, interval, dilation)
}

/// Equation 2: bytes per second, from the 4-byte words of PortXmitData or PortRcvData. `None` when no time has passed.
pub fn bandwidth(words: u64, interval: Time, dilation: u32) -> Option<u64> {
    per_second(words.saturating_mul(4), interval, dilation)
}

/// Equation 3: bandwidth as a share of what the link can carry, in millionths. The paper's "maximum supported link
/// bandwidth" is the link's rate, not what a host's bus can do: divided by the latter, 12.9 Gb/s, flow 6-5 of
/// experiment I stands at exactly one half and would never be moved.
pub fn utilisation_ppm(bytes_per_second: u64, link_bits_per_second: u64) -> u32 {
    let bits = u128::from(bytes_per_second) * 8 * 1_000_000;
    let share = bits.checked_div(u128::from(link_bits_per_second)).unwrap_or(0);
    u32::try_from(share).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn constant_waiting_is_250_million_ticks_at_any_scale() {
        for dilation in [1, 1000] {
            let interval = Time::from_millis(100 * u64::from(dilation));
            assert_eq!(congestion(25_000_000, interval, dilation), Some(250_000_000));
        }
        // In one second of the wall clock at 1/1000 that is 250 000 ticks.
        assert_eq!(congestion(250_000, Time::from_secs(1), 1000), Some(250_000_000));
        // Experiment I's hot-spot port waits 19.4 % of the time.
        assert_eq!(congestion(48_500, Time::from_secs(1), 1000), Some(48_500_000));
    }

    #[test]
    fn no_time_is_no_rate_and_nothing_overflows() {
        assert_eq!(congestion(5, Time::ZERO, 1), None);
        assert_eq!(congestion(u64::MAX, Time::from_nanos(1), u32::MAX), Some(u64::MAX));
        assert_eq!(bandwidth(u64::MAX, Time::from_nanos(1), u32::MAX), Some(u64::MAX));
        assert_eq!((utilisation_ppm(u64::MAX, 1), utilisation_ppm(1, 0)), (u32::MAX, 0));
    }

    #[test]
    fn utilisation_is_of_the_link_rate() {
        // Flow 6-5 of experiment I: 6.45 Gb/s.
        let bytes = bandwidth(6_450_000_000 / 32, Time::from_secs(1000), 1000).unwrap();
        assert_eq!(bytes, 806_250_000);
        assert_eq!(utilisation_ppm(bytes, 16_000_000_000), 403_125);
        assert_eq!(utilisation_ppm(bytes, 12_900_000_000), 500_000, "not below one half");
    }
}
