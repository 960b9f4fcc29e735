//! Late rows: those of switches, most of them around a machine's old place, which would have turned packets of the old way round. They drop
//! packets for the LID until those are gone, or send them a detour, and then get their rows by a plan of its own.
//!
//! ```text
//! moved, some rows late ─▶ packets of the old way are gone ─▶ plan: what is missing, proved ─▶ Move ─▶ proof of the routing
//!                                                              └─▶ none is safe ─▶ heavy sweep; a detour stays
//! ```

use std::collections::BTreeSet;

use weft_machine::Time;
use weft_routing::moves::{LatePolicy, Method, Move, Plan, UpdateOrder};
use weft_topology::NodeIndex;
use weft_wire::{Guid, Lid};

use super::SubnetManager;
use crate::knowledge::{FoundNode, PortAt, Subnet, graph_port};
use crate::moves::{Carry, Due, Waits, Wish};
use crate::{Event, Reason};

impl SubnetManager {
    /// For how long hosts are silent by a plan, and after how long the last of its late rows may be written.
    pub(super) fn waits(&self, plan: &Plan) -> Waits {
        let late = plan.rounds[plan.prompt()..].iter().map(|round| round.drain).max().unwrap_or(0);
        let [silence, late, held] =
            [plan.silence(), late, plan.pause()].map(|switches| self.options.packets_gone(switches));
        Waits { silence, late, held }
    }

    /// When packets are gone that the next round waits for: its own plan's, and those of earlier ones.
    pub(super) fn drained_by(&self, now: Time, carry: &Carry) -> Time {
        let until = now + self.options.packets_gone(carry.drain());
        self.desk.drained.map_or(until, |earlier| earlier.max(until))
    }

    /// Rows of a move that has just ended are late, if its plan says so.
    pub(super) fn expect_late_rows(&mut self, now: Time, subnet: &Subnet, wish: &Wish, plan: &Plan) {
        let switches = plan.late_switches().len() as u32;
        let first = plan.late.and_then(|late| plan.rounds.get(late)).map_or(0, |round| round.drain);
        let (wait, all) = (self.options.packets_gone(first), self.options.packets_gone(plan.drain));
        for (guid, away) in &wish.away {
            let at = |(switch, lid): &(NodeIndex, Lid)| {
                let node = subnet.node(switch.0).filter(|_| *lid == away.lid);
                node.map(FoundNode::guid)
            };
            self.desk.late.expect_detours(now, *guid, all, plan.detours.iter().filter_map(at).collect());
            if switches > 0 {
                let silent = plan.silent.iter().filter_map(|switch| subnet.node(switch.0));
                self.desk.late.expect(now, *guid, wait, silent.map(FoundNode::guid).collect());
                self.say(Event::MoveLate {
                    guid: (*guid).into(),
                    lid: away.lid,
                    switches,
                    wait_ns: wait.as_nanos(),
                });
            }
        }
        self.desk.late.next().into_iter().for_each(|at| self.agenda.late_rows(at));
    }

    /// Writes rows that are late, once they are due.
    pub(super) fn start_late_rows(&mut self, now: Time) {
        let Some(subnet) = self.known.take_subnet() else { return };
        let due = self.desk.late.take(now);
        self.desk.late.next().into_iter().for_each(|at| self.agenda.late_rows(at));
        // Which switches are vSwitches is known with the tables.
        let kept = self.keep_tables(&subnet);
        let guids: BTreeSet<Guid> = due.iter().map(|due| due.guid).collect();
        let ends = guids.iter().filter_map(|guid| subnet.host_by_guid(*guid));
        let moves: Result<Vec<Move>, String> = ends.map(|end| self.finish_of(&subnet, end)).collect();
        let is_missing = due.iter().any(Due::is_missing);
        // A detour that cannot be replaced in order stays: everyone is served by it.
        let late = if is_missing { LatePolicy::Wait } else { LatePolicy::Refuse };
        let planned = kept.and(moves).and_then(|moves| {
            let detours = detours(&subnet, &due);
            self.desk.kept_mut().into_iter().for_each(|kept| kept.set_detours(detours.clone()));
            let how = (Method::Skyline, UpdateOrder::Ordered, late);
            self.plan_moves(now, &subnet, &moves, BTreeSet::new(), None, how)
        });
        match planned {
            // Packets of later moves are under way.
            Ok((plan, _)) if plan.rounds.first().is_some_and(|round| round.after_drain) => {
                let at = self.desk.drained.unwrap_or(now).max(now);
                self.desk.late.postpone(due, at);
                self.agenda.late_rows(at);
                self.known.keep_subnet(subnet);
            }
            Ok((plan, _)) if plan.rounds.is_empty() => {
                self.known.keep_subnet(subnet);
                self.plan_proof(now);
            }
            Ok((plan, proof)) => {
                self.begin_move(now, Carry::new(subnet, Vec::new(), plan, proof, &self.options));
            }
            Err(_) if is_missing => {
                self.known.keep_subnet(subnet);
                self.agenda.heavy(now, Reason::Unbalanced);
            }
            Err(_) => self.known.keep_subnet(subnet),
        }
    }

    /// What the last rows of a port's LID take over.
    ///
    /// # Errors
    ///
    /// Where it has no LID, or is at no vSwitch any more.
    fn finish_of(&self, subnet: &Subnet, end: PortAt) -> Result<Move, String> {
        let found = subnet.port(end).and_then(|port| {
            let of = self.places(subnet).physical_lid(port.peer?.node)?;
            Some(Move::Finish { lid: port.lid?.min, at: graph_port(end), of })
        });
        found.ok_or_else(|| format!("port {} is at no vSwitch", subnet.end_guid(end)))
    }

    /// Late rows are written and acknowledged.
    pub(super) fn finished(&mut self, now: Time, plan: &Plan) {
        let smps = plan.smps.physical + plan.smps.vswitches;
        self.say(Event::MoveFinished { lids: plan.moves.len() as u32, smps });
        self.wake_silent(now, plan);
        if plan.late.is_some() {
            self.agenda.heavy(now, Reason::Unbalanced);
        }
    }

    /// Hosts that were silent until late rows were written repeat at once what was lost.
    fn wake_silent(&mut self, now: Time, plan: &Plan) {
        let Some(subnet) = self.known.take_subnet() else { return };
        for one in &plan.moves {
            let Some(end) = subnet.routed.lids.owner(one.lid()) else { continue };
            let guid = subnet.end_guid(PortAt { node: end.node.0, port: end.port });
            let switches = self.desk.late.take_silent(guid);
            let nodes = switches.iter().filter_map(|switch| subnet.node(*subnet.by_guid.get(switch)?));
            let peers = nodes.flat_map(|node| &node.ports).filter_map(|port| port.peer);
            let is_host = |at: &PortAt| subnet.node(at.node).is_some_and(|node| !node.is_switch());
            let hosts: Vec<Guid> = peers.filter(is_host).map(|at| subnet.end_guid(at)).collect();
            self.sa.is_reached(now, guid, one.lid(), &hosts);
        }
        self.known.keep_subnet(subnet);
    }
}

/// The rows that are detours and may be replaced.
fn detours(subnet: &Subnet, due: &[Due]) -> BTreeSet<(NodeIndex, Lid)> {
    let mut rows = BTreeSet::new();
    for due in due {
        let end = subnet.host_by_guid(due.guid);
        let Some(lids) = end.and_then(|end| subnet.port(end)?.lid) else { continue };
        let nodes = due.detours.iter().filter_map(|switch| subnet.by_guid.get(switch));
        rows.extend(nodes.map(|node| (NodeIndex(*node), lids.min)));
    }
    rows
}
