//! Timers of a subnet manager.

use weft_mgmt::{RequestTimer, TransferTimer};

weft_wire::worded! {
    /// What a subnet manager, or a survey, waits for.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum SmTimer {
        /// A heavy sweep.
        HeavySweep => ("heavy sweep"),
        /// A look at nodes that sent traps.
        Look => ("look at nodes that sent traps"),
        /// A light sweep.
        LightSweep => ("light sweep"),
        /// The proof of what is routed.
        Proof => ("proof of the routing"),
        /// A look at the places of those whose LIDs have moved.
        Plug => ("look at places of moved LIDs"),
        /// P_Keys that are to be written when places of tables have rested.
        Partitions => ("P_Keys: places that rest"),
        /// The next step of a rebalance.
        Rebalance => ("rebalance"),
        /// A report of what hosts receive.
        Learn => ("what hosts receive"),
        /// Packets under way have arrived or are dropped, so that a move can go on.
        Drain => ("move: packets under way"),
        /// Late rows of moves.
        LateRows => ("move: late rows"),
        /// Someone who is about to move has been away too long.
        Away => ("move: away too long"),
        /// An SMP of the step that is under way.
        Smp(timer: RequestTimer) => ("SMP: {timer}"),
        /// Another manager has not answered SMInfo in time.
        SmInfo => ("SMInfo: timeout"),
        /// The manager in charge is asked whether it is there.
        Poll => ("poll of the master"),
        /// Another manager has not answered the operator's instruction in time.
        Instruction => ("instruction: timeout"),
        /// A service that was registered for a while ends.
        ServiceLease => ("service lease"),
        /// A Report to a subscriber.
        Report(timer: RequestTimer) => ("Report: {timer}"),
        /// An answer of subnet administration.
        Transfer(timer: TransferTimer) => ("{timer}"),
    }
}
