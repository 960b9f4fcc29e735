//! Changes of a live queue pair's lane.
//!
//! A new lane can overtake the old one, so a reliable connection is moved in one of two ways that the architecture
//! allows without resetting it. Whatever overtakes nevertheless is refused by its PSN and sent again.
//!
//! [`MoveBy::Drain`], by the states of the queue pair (IBA 10.3.1.5):
//!
//! ```text
//!             moved           the message is at its end, all is acknowledged: new address
//!   RTS ────────────────▶ SQD ────────────────────────────────────────────────────────────▶ RTS
//!                          └─ not drained in time: new address, and everything again ────────▶
//! ```
//!
//! [`MoveBy::Migrate`], by those of path migration while the queue pair stays in RTS (IBA 17.2.8). This end's packets
//! carry MigReq 0 in all states but MIGRATED. The answering end has no alternate path of its own to load: it answers
//! to where packets come from, so a 0 takes it from MIGRATED over REARM to ARMED, and a 1 back to MIGRATED.
//!
//! ```text
//!              moved: the alternate path       an acknowledgement                at once
//!              is loaded                       with MigReq 0 (peer ARMED)        new address
//!   MIGRATED ─────────────────────────▶ REARM ───────────────────────────▶ ARMED ───────────▶ MIGRATED
//!                                         └─ not acknowledged in time ────────────────────────▶
//! ```
//!
//! A new LID, or a new partition, is taken at once: the old one leads nowhere any more. Datagrams promise no order, and the next one takes
//! the new lane.

use serde::{Deserialize, Serialize};
use weft_machine::Time;
use weft_wire::DataPacket;

use super::{Sender, Target};
use crate::stack::paths::Address;
use crate::traffic::{Move, MoveBy};

/// Changes of lane kept at most: the latest.
pub(super) const LANE_CHANGES_MAX: usize = 256;

/// A change under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::stack) enum LaneChange {
    No,
    /// SQD: nothing new behind `boundary`.
    Drain {
        to: Address,
        at: Time,
        boundary: u64,
    },
    /// REARM.
    Rearm {
        to: Address,
        at: Time,
    },
}

impl LaneChange {
    /// Up to where new packets may be sent.
    #[inline]
    pub(in crate::stack) fn boundary(&self) -> u64 {
        match self {
            Self::Drain { boundary, .. } => *boundary,
            _ => u64::MAX,
        }
    }

    /// When it was asked for.
    pub(in crate::stack) fn since(&self) -> Option<Time> {
        match self {
            Self::No => None,
            Self::Drain { at, .. } | Self::Rearm { at, .. } => Some(*at),
        }
    }

    /// Whether every packet asks for an acknowledgement.
    #[inline]
    pub(in crate::stack) fn asks(&self) -> bool {
        matches!(self, Self::Rearm { .. })
    }
}

impl Sender {
    /// Its packets are to go there from now on.
    pub(in crate::stack) fn move_to(&mut self, now: Time, to: Address) {
        if to == self.address {
            (self.lane_change, self.migrated) = (LaneChange::No, true);
            return;
        }
        match &mut self.lane_change {
            LaneChange::Drain { to: other, .. } | LaneChange::Rearm { to: other, .. }
                if other.is_same_way(&to) =>
            {
                *other = to;
                return;
            }
            _ => {}
        }
        let orderly = self.is_reliable() && self.is_outstanding() && to.is_same_way(&self.address);
        match self.move_by {
            _ if !orderly || matches!(self.target, Target::Peer) => self.switch(now, to, now),
            MoveBy::Drain => {
                self.lane_change = LaneChange::Drain { to, at: now, boundary: self.message_end() }
            }
            MoveBy::Migrate => (self.lane_change, self.migrated) = (LaneChange::Rearm { to, at: now }, false),
        }
    }

    /// Goes on with a change after an acknowledgement.
    pub(in crate::stack) fn advance_lane_change(&mut self, now: Time, acknowledgement: &DataPacket) {
        match self.lane_change {
            LaneChange::Drain { to, at, boundary } if self.fresh >= boundary && !self.is_outstanding() => {
                self.switch(now, to, at);
            }
            LaneChange::Rearm { to, at } if !acknowledgement.migration_request || !self.is_outstanding() => {
                self.switch(now, to, at);
            }
            _ => {}
        }
    }

    /// Waits no longer.
    pub(in crate::stack) fn force_lane_change(&mut self, now: Time) {
        if let LaneChange::Drain { to, at, .. } | LaneChange::Rearm { to, at } = self.lane_change {
            self.switch(now, to, at);
        }
    }

    fn switch(&mut self, now: Time, to: Address, at: Time) {
        let pause = match self.lane_change {
            LaneChange::Drain { .. } => now.saturating_sub(self.last_fresh_at.max(at)),
            _ => Time::ZERO,
        };
        let from = std::mem::replace(&mut self.address, to);
        (self.lane_change, self.migrated) = (LaneChange::No, true);
        if matches!(self.target, Target::Peer) {
            return;
        }
        if self.lane_changes.len() >= LANE_CHANGES_MAX {
            self.lane_changes.remove(0);
        }
        self.lane_changes.push(Move { at, pause, from: from.service_level, to: to.service_level });
        self.lane_changes_total += 1;
    }
}
