//! Counters of transactions.

use serde::Serialize;
use weft_machine::Time;

/// Counts since the beginning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Stats {
    /// Requests put onto the wire, retries included.
    pub sent: u64,
    /// Of those, retries.
    pub retries: u64,
    /// Attempts that no one answered in time.
    pub timeouts: u64,
    /// Requests answered.
    pub completed: u64,
    /// Requests given up after all retries.
    pub failed: u64,
    /// Answers that belong to no request in flight: late, duplicate or never asked for.
    pub unmatched: u64,
    /// Answers that said only that the device is busy.
    pub busy: u64,
    /// Requests not taken because the queue was full.
    pub refused: u64,
    /// The most requests in flight at once.
    pub in_flight_max: u32,
    /// The most requests waiting for the window at once.
    pub queued_max: usize,
    /// Round-trip times.
    pub rtt: Rtt,
}

/// Round-trip times of requests answered at their first attempt; a retried one says nothing, because no one knows
/// which attempt its answer belongs to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Rtt {
    /// How many.
    pub count: u64,
    /// All of them together.
    pub sum: Time,
    /// The shortest; zero while there is none.
    pub min: Time,
    /// The longest.
    pub max: Time,
    /// How many took less than 2 to the index microseconds, and no less than half of that; the last bucket holds
    /// all longer ones too.
    pub buckets: [u64; 24],
}

impl Rtt {
    /// Counts one.
    pub fn record(&mut self, rtt: Time) {
        self.min = if self.count == 0 { rtt } else { self.min.min(rtt) };
        self.max = self.max.max(rtt);
        self.sum += rtt;
        self.count += 1;
        let bits = u64::BITS - (rtt.as_nanos() / 1000).leading_zeros();
        let last = self.buckets.len() - 1;
        self.buckets[(bits as usize).min(last)] += 1;
    }

    /// The mean; zero while there is none.
    pub fn mean(&self) -> Time {
        Time::from_nanos(self.sum.as_nanos().checked_div(self.count).unwrap_or(0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn round_trips_fall_into_buckets() {
        let mut rtt = Rtt::default();
        for nanos in [900, 1_000, 3_999, 80_000, u64::MAX / 2] {
            rtt.record(Time::from_nanos(nanos));
        }
        assert_eq!((rtt.buckets[0], rtt.buckets[1], rtt.buckets[2], rtt.buckets[7]), (1, 1, 1, 1));
        assert_eq!(rtt.buckets[23], 1);
        assert_eq!((rtt.count, rtt.min), (5, Time::from_nanos(900)));
        assert_eq!(Rtt::default().mean(), Time::ZERO);
    }
}
