//! Waiting time, exact whenever it is read.

use weft_machine::Time;

const NOT: Time = Time::from_nanos(u64::MAX);

/// Time waited that no one has counted yet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wait {
    since: Time,
    nanos: u64,
}

impl Default for Wait {
    fn default() -> Self {
        Self { since: NOT, nanos: 0 }
    }
}

impl Wait {
    /// It waits from now on; if it did already, nothing changes.
    #[inline]
    pub(crate) fn begin(&mut self, at: Time) {
        if self.since == NOT {
            self.since = at;
        }
    }

    /// It waits no more.
    #[inline]
    pub(crate) fn end(&mut self, at: Time) {
        if self.since != NOT {
            self.nanos += at.saturating_sub(self.since).as_nanos();
            self.since = NOT;
        }
    }

    /// Whole ticks waited by `at` and not taken yet.
    pub(crate) fn ticks(&self, at: Time, tick: u64) -> u64 {
        let running = if self.since == NOT { 0 } else { at.saturating_sub(self.since).as_nanos() };
        (self.nanos + running) / tick
    }

    /// Takes the ticks, which the caller counts from now on. What is left of a tick is kept.
    pub(crate) fn take_ticks(&mut self, at: Time, tick: u64) -> u64 {
        if self.since != NOT {
            self.nanos += at.saturating_sub(self.since).as_nanos();
            self.since = at;
        }
        let ticks = self.nanos / tick;
        self.nanos %= tick;
        ticks
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_under_way_is_seen_and_no_part_of_a_tick_is_lost() {
        let at = Time::from_nanos;
        let mut wait = Wait::default();
        wait.begin(at(10));
        wait.begin(at(12));
        assert_eq!((wait.ticks(at(17), 4), wait.ticks(at(18), 4)), (1, 2));
        let taken: u64 = (18..=41).map(|now| wait.take_ticks(at(now), 4)).sum();
        assert_eq!(taken, 7);
        wait.end(at(42));
        wait.end(at(99));
        assert_eq!((wait.take_ticks(at(100), 4), wait.take_ticks(at(200), 4)), (1, 0));
    }
}
