//! Time until the next sweep: retries get further apart, and sweeps that follow each other at once are bounded.

use weft_machine::Time;

use crate::Options;

/// Stands for the sweep interval where there are no light sweeps: retries get no further apart, and light sweeps come
/// as long as anything is in doubt.
const INTERVAL_DEFAULT: Time = Time::from_secs(10);

/// What the last sweeps came to.
#[derive(Debug, Default)]
pub(super) struct Patience {
    /// Sweeps that followed each other at once.
    pub(super) resweeps: u32,
    /// Sweeps in a row that were not complete.
    pub(super) incomplete: u32,
}

impl Patience {
    /// A sweep lacked something, or has to be made again later.
    pub(super) fn is_incomplete(&mut self) {
        self.incomplete = self.incomplete.saturating_add(1);
    }

    /// Whether another sweep may follow at once. If not, says how many have, and counts from the beginning.
    pub(super) fn resweep(&mut self, options: &Options) -> Result<(), u32> {
        self.resweeps += 1;
        if self.resweeps <= options.sweeps.resweeps_max {
            Ok(())
        } else {
            Err(std::mem::take(&mut self.resweeps))
        }
    }

    /// Doubles with every sweep in a row that was not complete, up to the sweep interval.
    pub(super) fn retry_delay(&self, options: &Options) -> Time {
        let doublings = self.incomplete.saturating_sub(1).min(16);
        let delay = Time::from_millis(options.sweeps.retry_delay_ms.max(1).saturating_mul(1 << doublings));
        delay.min(interval(options))
    }
}

/// The sweep interval, or what stands for it where there are no light sweeps.
pub(super) fn interval(options: &Options) -> Time {
    let interval = Time::from_millis(options.sweeps.sweep_interval_ms);
    if interval == Time::ZERO { INTERVAL_DEFAULT } else { interval }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SweepOptions;

    #[test]
    fn retries_get_further_apart_up_to_the_sweep_interval() {
        let options = Options::from(SweepOptions {
            retry_delay_ms: 250,
            sweep_interval_ms: 900,
            ..SweepOptions::default()
        });
        let mut patience = Patience::default();
        let mut delays = Vec::new();
        for _ in 0..4 {
            patience.is_incomplete();
            delays.push(patience.retry_delay(&options).as_nanos() / 1_000_000);
        }
        assert_eq!(delays, [250, 500, 900, 900]);
        patience.incomplete = 0;
        assert_eq!(patience.retry_delay(&options), Time::from_millis(250));
    }

    #[test]
    fn sweeps_that_follow_each_other_are_bounded() {
        let options = Options::from(SweepOptions { resweeps_max: 2, ..SweepOptions::default() });
        let mut patience = Patience::default();
        let mut next = || patience.resweep(&options);
        assert_eq!([next(), next(), next(), next()], [Ok(()), Ok(()), Err(3), Ok(())]);
        patience.resweeps = 0;
        assert_eq!([patience.resweep(&options), patience.resweep(&options)], [Ok(()), Ok(())]);
    }
}
