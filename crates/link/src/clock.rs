//! The process's wall clock, as certificates need it.

use std::time::Duration;

use quinn::rustls::pki_types::UnixTime;
use quinn::rustls::time_provider::TimeProvider;
use time::OffsetDateTime;
use weft_process::utc_now;

/// Now, for what is issued.
pub(crate) fn now() -> OffsetDateTime {
    OffsetDateTime::from_unix_timestamp_nanos(utc_now().as_nanos().into())
        .expect("64 bits of nanoseconds end in 2554, and dates in 9999")
}

/// Now, for what is verified.
pub(crate) fn unix_now() -> UnixTime {
    UnixTime::since_unix_epoch(Duration::from_nanos(utc_now().as_nanos()))
}

/// The same for TLS.
#[derive(Debug)]
pub(crate) struct WallClock;

impl TimeProvider for WallClock {
    fn current_time(&self) -> Option<UnixTime> {
        Some(unix_now())
    }
}
