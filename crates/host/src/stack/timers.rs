//! When senders and lanes want to be looked at again.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use weft_machine::Time;

/// What a timer is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Timer {
    /// A sender may send again.
    Wake(u32),
    /// A sender's packets are not acknowledged.
    Expiry(u32),
    /// A lane may be used again.
    Lane(u8),
}

/// All timers, the next one first. One that has been set anew meanwhile is passed over by its owner.
#[derive(Debug, Default)]
pub(super) struct Timers {
    heap: BinaryHeap<Reverse<(Time, Timer)>>,
}

impl Timers {
    #[inline]
    pub(super) fn set(&mut self, at: Time, timer: Timer) {
        self.heap.push(Reverse((at, timer)));
    }

    #[inline]
    pub(super) fn next(&self) -> Option<Time> {
        self.heap.peek().map(|Reverse((at, _))| *at)
    }

    /// The next one that is due.
    #[inline]
    pub(super) fn pop_due(&mut self, now: Time) -> Option<(Time, Timer)> {
        let Reverse((at, _)) = self.heap.peek()?;
        if *at > now {
            return None;
        }
        self.heap.pop().map(|Reverse(due)| due)
    }

    pub(super) fn len(&self) -> usize {
        self.heap.len()
    }

    /// Forgets those that nobody waits for.
    pub(super) fn retain(&mut self, mut keep: impl FnMut(Time, Timer) -> bool) {
        self.heap.retain(|Reverse((at, timer))| keep(*at, *timer));
    }
}
