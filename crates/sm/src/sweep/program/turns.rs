//! Writes that wait for others, by their places in the plan.

use std::collections::BTreeMap;

/// Which writes wait for which.
#[derive(Debug, Default)]
pub(super) struct Turns {
    /// How many others a write waits for.
    open: BTreeMap<u32, u32>,
    /// The writes that wait for one.
    then: BTreeMap<u32, Vec<u32>>,
}

impl Turns {
    /// A write goes when another is done.
    pub(super) fn after(&mut self, write: u32, other: u32) {
        *self.open.entry(write).or_default() += 1;
        self.then.entry(other).or_default().push(write);
    }

    pub(super) fn waits(&self, write: u32) -> bool {
        self.open.contains_key(&write)
    }

    /// A write is done, whatever came of it: those that have waited for it alone.
    pub(super) fn done(&mut self, write: u32) -> Vec<u32> {
        let mut free = self.then.remove(&write).unwrap_or_default();
        free.retain(|waiting| match self.open.get_mut(waiting) {
            Some(open) if *open > 1 => {
                *open -= 1;
                false
            }
            _ => self.open.remove(waiting).is_some(),
        });
        free
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_write_goes_when_all_that_it_waits_for_are_done() {
        let mut turns = Turns::default();
        turns.after(3, 1);
        turns.after(3, 2);
        turns.after(4, 3);
        assert_eq!((turns.waits(1), turns.waits(3), turns.waits(4)), (false, true, true));
        assert!(turns.done(1).is_empty());
        assert!(turns.done(1).is_empty(), "once");
        assert_eq!(turns.done(2), [3]);
        assert_eq!((turns.waits(3), turns.done(3)), (false, vec![4]));
    }
}
