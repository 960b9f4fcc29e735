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

use weft_machine::Time;
use weft_wire::DataPacket;

use super::moving::Moving;
use super::paths::Address;
use super::sender::{Sender, Target};
use crate::traffic::{Move, MoveBy};

/// The latest so many changes of lane are kept.
const MOVES_MAX: usize = 256;

impl Sender {
    /// Its packets are to go there from now on.
    pub(super) fn move_to(&mut self, now: Time, to: Address) {
        // Another rate alone is no other way.
        if (Address { rate: self.address.rate, ..to }) == self.address {
            self.address.rate = to.rate;
            (self.moving, self.migrated) = (Moving::No, true);
            return;
        }
        match &mut self.moving {
            Moving::Drain { to: other, .. } | Moving::Rearm { to: other, .. } if other.is_same_way(&to) => {
                *other = to;
                return;
            }
            _ => {}
        }
        let orderly = self.is_reliable() && self.is_outstanding() && to.is_same_way(&self.address);
        match self.move_by {
            _ if !orderly || matches!(self.target, Target::Peer) => self.switch(now, to, now),
            MoveBy::Drain => self.moving = Moving::Drain { to, at: now, boundary: self.message_end() },
            MoveBy::Migrate => (self.moving, self.migrated) = (Moving::Rearm { to, at: now }, false),
        }
    }

    /// Goes on with a change after an acknowledgement.
    pub(super) fn advance_move(&mut self, now: Time, acknowledgement: &DataPacket) {
        match self.moving {
            Moving::Drain { to, at, boundary } if self.fresh >= boundary && !self.is_outstanding() => {
                self.switch(now, to, at);
            }
            Moving::Rearm { to, at } if !acknowledgement.migration_request || !self.is_outstanding() => {
                self.switch(now, to, at);
            }
            _ => {}
        }
    }

    /// Waits no longer.
    pub(super) fn force_move(&mut self, now: Time) {
        if let Moving::Drain { to, at, .. } | Moving::Rearm { to, at } = self.moving {
            self.switch(now, to, at);
        }
    }

    fn switch(&mut self, now: Time, to: Address, at: Time) {
        let pause = match self.moving {
            Moving::Drain { .. } => now.saturating_sub(self.last_fresh_at.max(at)),
            _ => Time::ZERO,
        };
        let from = std::mem::replace(&mut self.address, to);
        (self.moving, self.migrated) = (Moving::No, true);
        if matches!(self.target, Target::Peer) {
            return;
        }
        if self.moves.len() >= MOVES_MAX {
            self.moves.remove(0);
        }
        self.moves.push(Move { at, pause, from: from.service_level, to: to.service_level });
        self.moves_total += 1;
    }
}
