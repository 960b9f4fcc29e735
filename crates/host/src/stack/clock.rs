//! Moments of one clock as moments of another.

use weft_machine::Time;

/// Maps moments of the clock on which a stack was suspended to the clock on which it resumes. A suspended stack's time stands
/// still: a timer due 3 ms after the suspension is due 3 ms after the resumption, however far apart the two clocks are.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rebase {
    from: Time,
    to: Time,
}

impl Rebase {
    /// `from` is the moment of the suspension by the old clock, `to` that of the resumption by the new one.
    pub(super) fn new(from: Time, to: Time) -> Self {
        Self { from, to }
    }

    /// A moment of the old clock on the new one, not before the new one's beginning.
    pub(super) fn moment(&self, at: Time) -> Time {
        match at >= self.from {
            true => self.to + (at - self.from),
            false => self.to - (self.from - at),
        }
    }

    /// The same in place.
    pub(super) fn shift(&self, at: &mut Time) {
        *at = self.moment(*at);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances_stay_and_nothing_is_before_the_beginning() {
        let at = Time::from_millis;
        let later = Rebase::new(at(10), at(500));
        assert_eq!([at(7), at(10), at(14)].map(|time| later.moment(time)), [at(497), at(500), at(504)]);
        let earlier = Rebase::new(at(500), at(2));
        assert_eq!(
            [at(1), at(499), at(500), at(503)].map(|time| earlier.moment(time)),
            [Time::ZERO, at(1), at(2), at(5)]
        );
    }
}
