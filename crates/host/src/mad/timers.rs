//! Timers of a MAD layer.

use weft_mgmt::TransferTimer;

weft_wire::worded! {
    /// What a MAD layer waits for.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum MadTimer {
        /// A transfer by RMPP.
        Transfer(timer: TransferTimer) => ("{timer}"),
        /// A send has not been answered in time: it is sent again, or given back.
        Answer => ("MAD timeout"),
    }
}
