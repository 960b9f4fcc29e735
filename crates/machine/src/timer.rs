//! A machine's next wake-up, and its reason.

use std::fmt;

use crate::Time;

/// The next wake-up of a machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timer<R> {
    /// The moment.
    pub at: Time,
    /// What the machine will do then; of several things at one moment, the first.
    pub reason: R,
}

impl<R> Timer<R> {
    /// A timer for each moment that there is.
    pub fn new(at: Option<Time>, reason: R) -> Option<Self> {
        at.map(|at| Self { at, reason })
    }

    /// The earliest; of equal ones the first.
    pub fn earliest(timers: impl IntoIterator<Item = Option<Self>>) -> Option<Self> {
        timers.into_iter().flatten().min_by_key(|timer| timer.at)
    }

    /// The same moment, as a larger machine names it.
    pub fn map<S>(self, name: impl FnOnce(R) -> S) -> Timer<S> {
        Timer { at: self.at, reason: name(self.reason) }
    }
}

impl<R: fmt::Display> fmt::Display for Timer<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at {}", self.reason, self.at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_earliest_is_told_and_the_first_of_equal_ones() {
        let timer = |nanos, reason| Some(Timer { at: Time::from_nanos(nanos), reason });
        let earliest = Timer::earliest([timer(7, "late"), None, timer(5, "first"), timer(5, "second")]);
        assert_eq!(earliest, timer(5, "first"));
        assert_eq!(Timer::<&str>::earliest([None, None]), None);
        let named = earliest.map(|timer| timer.map(|reason| format!("a {reason}")));
        assert_eq!(named.map(|timer| timer.reason), Some("a first".to_owned()));
    }
}
