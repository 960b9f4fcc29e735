//! Timers of senders and lanes.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fmt;

use weft_machine::{self as machine, Time};
use weft_mgmt::RequestTimer;
use weft_wire::ServiceLevel;

/// What a host waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StackTimer {
    /// A queue pair may send again.
    Wake,
    /// A queue pair's packets may not have been acknowledged in time.
    Acknowledgement,
    /// A service level's lane may be used again.
    Lane(ServiceLevel),
    /// Subnet administration.
    Administration(RequestTimer),
    /// What subnet administration did not tell is asked for again.
    AskAgain,
    /// Queue pairs have been held for long enough.
    Hold,
    /// The host's software has heeded a notice.
    Heed,
}

impl fmt::Display for StackTimer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Wake => f.write_str("queue pair may send"),
            Self::Acknowledgement => f.write_str("acknowledgement timeout"),
            Self::Lane(level) => write!(f, "service level {level} free"),
            Self::Administration(timer) => write!(f, "SA request: {timer}"),
            Self::Hold => f.write_str("queue pairs held long enough"),
            Self::Heed => f.write_str("notice heeded"),
            Self::AskAgain => f.write_str("SA request again"),
        }
    }
}

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

/// All timers, the next one first. One that has been set again meanwhile is passed over by its owner.
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

    /// The next one, as others see it.
    pub(super) fn first(&self) -> Option<machine::Timer<StackTimer>> {
        self.heap.peek().map(|Reverse((at, timer))| {
            let reason = match *timer {
                Timer::Wake(_) => StackTimer::Wake,
                Timer::Expiry(_) => StackTimer::Acknowledgement,
                Timer::Lane(level) => StackTimer::Lane(ServiceLevel(level)),
            };
            machine::Timer { at: *at, reason }
        })
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

    /// Forgets those that no one waits for.
    pub(super) fn retain(&mut self, mut keep: impl FnMut(Time, Timer) -> bool) {
        self.heap.retain(|Reverse((at, timer))| keep(*at, *timer));
    }
}
