//! Timers of transactions and transfers.

weft_wire::worded! {
    /// What [`Transactions`](crate::Transactions) wait for.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum RequestTimer {
        /// The oldest request has not been answered in time: it is sent again, or given up.
        Timeout => ("timeout"),
        /// The window, which is not open all the way, has room for another request.
        Room => ("room in the window"),
    }
}

weft_wire::worded! {
    /// What transfers by RMPP wait for.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum TransferTimer {
        /// The receiver has not acknowledged in time: segments are sent again, or the transfer is given up.
        Acknowledgement => ("RMPP acknowledgement timeout"),
        /// The pause after many segments is over.
        Pause => ("RMPP pause over"),
        /// The transfer has taken too long: it is given up.
        TotalTime => ("RMPP total time over"),
        /// The sender has sent nothing for too long: the transfer is given up.
        Segment => ("RMPP segment timeout"),
        /// A message that was complete is acknowledged again no longer.
        Linger => ("RMPP message forgotten"),
    }
}
