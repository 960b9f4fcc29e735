//! Late rows: those of switches around a machine's old place, which would have turned packets of the old way round. They drop packets
//! for the LID until those are gone, and then get their rows by a plan of its own.
//!
//! ```text
//! moved, some rows late ─▶ packets of the old way are gone ─▶ plan: what is missing, proved ─▶ Move ─▶ proof of the routing
//!                                                              └─▶ none is safe ─▶ heavy sweep
//! ```

use std::collections::BTreeSet;

use weft_machine::Time;
use weft_routing::moves::{Method, Move, Plan, UpdateOrder};
use weft_wire::Guid;

use super::SubnetManager;
use crate::moving::{Carry, Wish};
use crate::subnet::{Subnet, graph_port};
use crate::{Event, Reason};

impl SubnetManager {
    /// Rows of a move that has just ended are late, if its plan says so.
    pub(super) fn expect_late_rows(&mut self, now: Time, wish: &Wish, plan: &Plan) {
        let switches = plan.late_switches().len() as u32;
        if switches == 0 {
            return;
        }
        let wait = self.options.packets_gone();
        for (guid, away) in &wish.away {
            self.desk.late.expect(now, *guid, now + wait);
            self.say(Event::MoveLate { guid: *guid, lid: away.lid, switches, wait });
        }
        self.agenda.late_rows(now + wait);
    }

    /// Writes rows that are late, once they are due.
    pub(super) fn start_late_rows(&mut self, now: Time) {
        let Some(subnet) = self.known.take_subnet() else { return };
        let due = self.desk.late.take(now);
        self.desk.late.next().into_iter().for_each(|at| self.agenda.late_rows(at));
        let moves: Vec<Move> = due.iter().filter_map(|(guid, _)| self.finish_of(&subnet, *guid)).collect();
        let planned = self.keep_tables(&subnet).and_then(|()| {
            let how = (Method::Skyline, UpdateOrder::Ordered);
            self.plan_moves(now, &subnet, (&moves, BTreeSet::new(), None), how)
        });
        match planned {
            // Packets of later moves are under way.
            Ok((plan, _)) if plan.rounds.first().is_some_and(|round| round.after_drain) => {
                let at = self.desk.drained_at().unwrap_or(now).max(now);
                self.desk.late.postpone(due, at);
                self.agenda.late_rows(at);
                self.known.keep_subnet(subnet);
            }
            Ok((plan, _)) if plan.rounds.is_empty() => {
                self.known.keep_subnet(subnet);
                self.plan_proof(now);
            }
            Ok(proven) => self.begin_move(now, Carry::new(subnet, Vec::new(), proven, &self.options)),
            Err(_) => {
                self.known.keep_subnet(subnet);
                self.agenda.heavy(now, Reason::Unbalanced);
            }
        }
    }

    /// What a LID's last rows take over; `None` where it has none, or is at no vSwitch any more.
    fn finish_of(&self, subnet: &Subnet, guid: Guid) -> Option<Move> {
        let end = subnet.host_by_guid(guid)?;
        let lid = subnet.port(end)?.lid?.min;
        let of = self.places(subnet).physical_lid(subnet.port(end)?.peer?.node)?;
        Some(Move::Finish { lid, at: graph_port(end), of })
    }

    /// Late rows are written and acknowledged.
    pub(super) fn finished(&mut self, now: Time, plan: &Plan) {
        let smps = plan.smps.physical + plan.smps.vswitches;
        self.say(Event::MoveFinished { lids: plan.moves.len() as u32, smps });
        if plan.late.is_some() {
            self.agenda.heavy(now, Reason::Unbalanced);
        }
    }
}
