//! Timers of a MAD layer.

use std::fmt;

use weft_mgmt::TransferTimer;

/// What a MAD layer waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MadTimer {
    /// A transfer by RMPP.
    Transfer(TransferTimer),
    /// A send has not been answered in time: it is sent again, or given back.
    Answer,
}

impl fmt::Display for MadTimer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Transfer(timer) => timer.fmt(f),
            Self::Answer => f.write_str("MAD timeout"),
        }
    }
}
