//! A host's answer to congestion notifications (IBA annex A10, A10.3.2).
//!
//! ```text
//!   BECN: index += CCTI_Increase ─┐               ┌─ CCTI_Timer: index -= 1
//!                                 ▼               ▼
//!               CCTI_Min ≤ index into the table ≤ its last entry
//!                                 │
//!                                 ▼ entry: shift (2 bits), multiplier (14 bits)
//!            injection delay = time of a packet × multiplier / 2^shift
//! ```

use serde::{Deserialize, Serialize};
use weft_machine::Time;
use weft_wire::{CongestionSettings, PortFacts, ServiceLevel};

use super::clock::Rebase;
use super::numbers::ensure;
use super::static_rate::time_at;

/// The unit of CCTI_Timer in nanoseconds of fabric time.
const TIMER_UNIT_NS: u64 = 1024;

/// The highest index that is accepted from an image: what is added to it does not overflow.
const INDEX_MAX: u16 = u16::MAX - u8::MAX as u16;

/// The index of a queue pair, or of a service level.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Throttle {
    index: u16,
    /// The index has gone down until here.
    since: Time,
}

impl Throttle {
    /// A notification was heard. Whether the index has come to the trigger threshold with it.
    pub(super) fn notify(
        &mut self,
        now: Time,
        settings: &CongestionSettings,
        sl: ServiceLevel,
        dilation: u32,
    ) -> bool {
        if !is_on(settings, sl) {
            return false;
        }
        let level = settings.levels[usize::from(sl.0 & 15)];
        self.recover(now, settings, sl, dilation);
        if self.index <= u16::from(level.minimum) {
            self.since = now;
        }
        let last = settings.table.len().saturating_sub(1).min(usize::from(u16::MAX)) as u16;
        let before = self.index;
        self.index = (before.max(level.minimum.into()) + u16::from(level.increase)).min(last);
        (before + 1..=self.index).contains(&level.trigger_threshold.into())
    }

    /// How long after a packet of this size the next one may be given to the adapter at the earliest: nothing while
    /// there is no delay to be kept, so that packets come one behind the other.
    pub(super) fn spacing(
        &mut self,
        now: Time,
        bytes: usize,
        facts: &PortFacts,
        sl: ServiceLevel,
        dilation: u32,
    ) -> Time {
        let Some(settings) = &facts.congestion else { return Time::ZERO };
        let Some(packet) = time_at(facts.rate, bytes, dilation).filter(|_| is_on(settings, sl)) else {
            return Time::ZERO;
        };
        self.recover(now, settings, sl, dilation);
        let minimum = settings.levels[usize::from(sl.0 & 15)].minimum;
        let index = usize::from(self.index.max(minimum.into()));
        let entry = settings.table.get(index).copied().unwrap_or(0);
        let (shift, multiplier) = (entry >> 14, u64::from(entry & 0x3fff));
        if multiplier == 0 {
            return Time::ZERO;
        }
        let packet = packet.as_nanos();
        Time::from_nanos(packet.saturating_add(packet.saturating_mul(multiplier) >> shift))
    }

    /// Its moments are those of another clock from now on.
    pub(super) fn rebase(&mut self, rebase: &Rebase) {
        rebase.shift(&mut self.since);
    }

    /// Whether the index can be one into a table.
    pub(super) fn verify(&self) -> Result<(), &'static str> {
        ensure(self.index <= INDEX_MAX, "an index of congestion control is too high")
    }

    /// Lets the timer run for the time that has passed.
    fn recover(&mut self, now: Time, settings: &CongestionSettings, sl: ServiceLevel, dilation: u32) {
        let level = settings.levels[usize::from(sl.0 & 15)];
        let period = u64::from(level.timer) * TIMER_UNIT_NS * u64::from(dilation);
        if period == 0 || self.index <= u16::from(level.minimum) {
            return;
        }
        let steps = now.saturating_sub(self.since).as_nanos() / period;
        self.since += Time::from_nanos(steps * period);
        let lowered = u64::from(self.index).saturating_sub(steps) as u16;
        self.index = lowered.max(level.minimum.into());
    }
}

/// Whether the service level takes part.
fn is_on(settings: &CongestionSettings, sl: ServiceLevel) -> bool {
    settings.control_map >> (sl.0 & 15) & 1 == 1
}

#[cfg(test)]
mod tests {
    use weft_wire::{CongestionLevel, DataRate};

    use super::*;

    const SL: ServiceLevel = ServiceLevel(3);

    fn facts() -> PortFacts {
        let mut levels = [CongestionLevel::default(); 16];
        levels[3] = CongestionLevel { increase: 2, timer: 10, trigger_threshold: 0, minimum: 0 };
        let table = vec![0, 1 << 14 | 1, 2, 4, 0x3fff];
        let congestion =
            Some(CongestionSettings { by_service_level: false, control_map: 1 << 3, levels, table });
        PortFacts { rate: DataRate::from_mbps(8_000), congestion, ..PortFacts::default() }
    }

    #[test]
    fn notifications_raise_the_delay_and_time_lowers_it() {
        let facts = facts();
        let settings = facts.congestion.clone().unwrap();
        let mut throttle = Throttle::default();
        let spacing = |throttle: &mut Throttle, at| throttle.spacing(at, 1000, &facts, SL, 10).as_nanos();
        let at = |step: u64| Time::from_nanos(step * 10 * 1024 * 10);
        assert_eq!(spacing(&mut throttle, at(1)), 0);
        assert!(!throttle.notify(at(1), &settings, SL, 10), "no threshold");
        // 1000 bytes at 8 Gb/s are 1 µs, 10 µs of machine time; index 2 has two of them behind each packet.
        assert_eq!(spacing(&mut throttle, at(1)), 30_000);
        assert_eq!(spacing(&mut throttle, at(2)), 15_000, "one half of a packet's time at index 1");
        assert_eq!(spacing(&mut throttle, at(3)), 0);
        for _ in 0..9 {
            throttle.notify(at(3), &settings, SL, 10);
        }
        assert_eq!(spacing(&mut throttle, at(3)), 10_000 + 10_000 * 0x3fff, "the table's end");
    }

    #[test]
    fn an_index_comes_to_its_threshold_from_below() {
        let mut settings = facts().congestion.unwrap();
        settings.levels[3].trigger_threshold = 3;
        let mut throttle = Throttle::default();
        let at = |step: u64| Time::from_nanos(step * 10 * 1024 * 10);
        let mut notify = |step| throttle.notify(at(step), &settings, SL, 10);
        // By two to 2 and to 4, where the table ends.
        assert_eq!([notify(1), notify(1), notify(1)], [false, true, false]);
        assert!(!notify(2), "down to 3 and up again, not from below");
        assert!(notify(4), "down to 2 and up again");
    }

    #[test]
    fn a_service_level_that_takes_no_part_is_not_slowed() {
        let facts = facts();
        let settings = facts.congestion.clone().unwrap();
        let mut throttle = Throttle::default();
        throttle.notify(Time::ZERO, &settings, ServiceLevel(4), 1);
        assert_eq!(throttle.spacing(Time::ZERO, 1000, &facts, ServiceLevel(4), 1), Time::ZERO);
    }
}
