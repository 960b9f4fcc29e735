//! Timers of a performance manager.

use weft_mgmt::{RequestTimer, TransferTimer};

weft_wire::worded! {
    /// What a performance manager waits for.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum PmTimer {
        /// The fabric is learned.
        Learn => ("learning the fabric"),
        /// The own subscriptions are looked at.
        Subscriptions => ("look at subscriptions"),
        /// Subnet administration has not answered in time.
        Question => ("SA request: timeout"),
        /// A table of subnet administration.
        Transfer(timer: TransferTimer) => ("{timer}"),
        /// A sweep of counters begins.
        Sweep => ("counter sweep"),
        /// A request of the sweep that is under way.
        Counters(timer: RequestTimer) => ("counter request: {timer}"),
        /// Silent devices are asked whether they are there.
        Probe => ("probe of silent devices"),
        /// A request to a silent device.
        Probed(timer: RequestTimer) => ("probe: {timer}"),
        /// A repath or unpath.
        Notice(timer: RequestTimer) => ("repath: {timer}"),
        /// A part of a report of what hosts receive.
        Report(timer: RequestTimer) => ("report of what hosts receive: {timer}"),
    }
}
