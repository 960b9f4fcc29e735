//! Timers of a subnet manager.

use std::fmt;

use weft_mgmt::{RequestTimer, TransferTimer};

/// What a subnet manager, or a survey, waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SmTimer {
    /// A heavy sweep.
    HeavySweep,
    /// A look at nodes that sent traps.
    Look,
    /// A light sweep.
    LightSweep,
    /// The proof of what is routed.
    Proof,
    /// A look at the places of those whose LIDs have moved.
    Plug,
    /// P_Keys that are to be written when places of tables have rested.
    Partitions,
    /// The next step of a rebalance.
    Rebalance,
    /// A report of what hosts receive.
    Learn,
    /// Packets under way have arrived or are dropped, so that a move can go on.
    Drain,
    /// Late rows of moves.
    LateRows,
    /// Someone who is about to move has been away too long.
    Away,
    /// An SMP of the step that is under way.
    Smp(RequestTimer),
    /// Another manager has not answered SMInfo in time.
    SmInfo,
    /// The manager in charge is asked whether it is there.
    Poll,
    /// Another manager has not answered the operator's instruction in time.
    Instruction,
    /// A service that was registered for a while ends.
    ServiceLease,
    /// A Report to a subscriber.
    Report(RequestTimer),
    /// An answer of subnet administration.
    Transfer(TransferTimer),
}

impl fmt::Display for SmTimer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::HeavySweep => f.write_str("heavy sweep"),
            Self::Look => f.write_str("look at nodes that sent traps"),
            Self::LightSweep => f.write_str("light sweep"),
            Self::Proof => f.write_str("proof of the routing"),
            Self::Plug => f.write_str("look at places of moved LIDs"),
            Self::Partitions => f.write_str("P_Keys: places that rest"),
            Self::Rebalance => f.write_str("rebalance"),
            Self::Learn => f.write_str("what hosts receive"),
            Self::Drain => f.write_str("move: packets under way"),
            Self::LateRows => f.write_str("move: late rows"),
            Self::Away => f.write_str("move: away too long"),
            Self::Smp(timer) => write!(f, "SMP: {timer}"),
            Self::SmInfo => f.write_str("SMInfo: timeout"),
            Self::Poll => f.write_str("poll of the master"),
            Self::Instruction => f.write_str("instruction: timeout"),
            Self::ServiceLease => f.write_str("service lease"),
            Self::Report(timer) => write!(f, "Report: {timer}"),
            Self::Transfer(timer) => timer.fmt(f),
        }
    }
}
