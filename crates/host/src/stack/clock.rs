//! Moments of one clock as moments of another.

use weft_machine::Time;

/// While a stack is suspended its time stands still: what was due 3 ms after the suspension is due 3 ms after it resumes,
/// by whatever clock is there. Two machines' clocks have nothing in common.
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

    /// A moment of the old clock by the new one. What was before the new clock's beginning is at its beginning.
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
