//! Timers of transactions and transfers.

use std::fmt;

/// What [`Transactions`](crate::Transactions) wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestTimer {
    /// The oldest request has not been answered in time: it is sent again, or given up.
    Timeout,
    /// The window, which is not open all the way, has room for another request.
    Room,
}

impl fmt::Display for RequestTimer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Timeout => "timeout",
            Self::Room => "room in the window",
        })
    }
}

/// What transfers by RMPP wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransferTimer {
    /// The receiver has not acknowledged in time: segments are sent again, or the transfer is given up.
    Acknowledgement,
    /// The pause after many segments is over.
    Pause,
    /// The transfer has taken too long: it is given up.
    TotalTime,
    /// The sender has sent nothing for too long: the transfer is given up.
    Segment,
    /// A message that was complete is acknowledged again no longer.
    Linger,
}

impl fmt::Display for TransferTimer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Acknowledgement => "RMPP acknowledgement timeout",
            Self::Pause => "RMPP pause over",
            Self::TotalTime => "RMPP total time over",
            Self::Segment => "RMPP segment timeout",
            Self::Linger => "RMPP message forgotten",
        })
    }
}
