//! Timers of a performance manager.

use std::fmt;

use weft_mgmt::{RequestTimer, TransferTimer};

/// What a performance manager waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PmTimer {
    /// The fabric is learned.
    Learn,
    /// The own subscriptions are looked at.
    Subscriptions,
    /// Subnet administration has not answered in time.
    Question,
    /// A table of subnet administration.
    Transfer(TransferTimer),
    /// A sweep of counters begins.
    Sweep,
    /// A request of the sweep that is under way.
    Counters(RequestTimer),
    /// Silent devices are asked whether they are there.
    Probe,
    /// A request to a silent device.
    Probed(RequestTimer),
    /// A repath or unpath.
    Notice(RequestTimer),
    /// A part of a report of what hosts receive.
    Report(RequestTimer),
}

impl fmt::Display for PmTimer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Learn => f.write_str("learning the fabric"),
            Self::Subscriptions => f.write_str("look at subscriptions"),
            Self::Question => f.write_str("SA request: timeout"),
            Self::Transfer(timer) => timer.fmt(f),
            Self::Sweep => f.write_str("counter sweep"),
            Self::Counters(timer) => write!(f, "counter request: {timer}"),
            Self::Probe => f.write_str("probe of silent devices"),
            Self::Probed(timer) => write!(f, "probe: {timer}"),
            Self::Notice(timer) => write!(f, "repath: {timer}"),
            Self::Report(timer) => write!(f, "report of what hosts receive: {timer}"),
        }
    }
}
