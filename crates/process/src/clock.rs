//! A process's clocks.

use std::time::{Instant, SystemTime};

use weft_control::{Incarnation, Utc};

/// Now, by the wall clock.
pub fn utc_now() -> Utc {
    let since_1970 = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    Utc::from_nanos(u64::try_from(since_1970.as_nanos()).unwrap_or(u64::MAX))
}

/// The clocks of one life of a process.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    began: Instant,
    incarnation: Incarnation,
}

impl Clock {
    /// The process begins now.
    pub fn start() -> Self {
        // A machine starts a process again in more than a nanosecond; a clock that was set back is not its fault.
        Self { began: Instant::now(), incarnation: Incarnation(utc_now().as_nanos()) }
    }

    /// This life of the process.
    pub fn incarnation(&self) -> Incarnation {
        self.incarnation
    }

    /// Nanoseconds since the process began.
    pub fn monotonic_ns(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }
}
