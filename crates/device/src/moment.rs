//! Moments that machines wait for.

use weft_machine::Time;

/// A moment that does not come.
pub(crate) const NEVER: Time = Time::from_nanos(u64::MAX);
