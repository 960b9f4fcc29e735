//! Service levels of machines that move: hosts hold queue pairs before rows are written where that is needed, and hear of the levels after it.
//!
//! ```text
//! plan ─▶ a circle with the levels of both places? ── no ──▶ rows ─▶ levels in force ─▶ LEVELS to all
//!                 └ yes ─▶ HOLD to all ─▶ all have confirmed ─▶ their packets are gone ─▶ rows ─▶ levels in force ─▶ LEVELS to all
//!                                └ one has not: the move is refused, LEVELS to all
//! ```
//!
//! Hosts end a hold by themselves after a time, so that none lasts if this manager dies.

use std::collections::BTreeSet;

use weft_machine::Time;
use weft_routing::Takeover;
use weft_routing::moves::{Move, Plan};
use weft_wire::{Guid, Lid, VmMoveKind, VmMoveResult};

use super::SubnetManager;
use super::moves::Batch;
use super::task::Task;
use crate::Event;
use crate::knowledge::{FoundNode, Subnet};
use crate::moves::Carry;
use crate::sa::{Asked, Releveled};

/// For how long hosts hold queue pairs beyond the time for which packets are under way, in seconds: rows are written in less.
const MARGIN_S: u64 = 30;
/// How long hosts take to send on another level at most, by their defaults: 6 s to ask for a path, 4 s where a queue pair does not drain,
/// and a Report that is sent four times. None confirms it: an assumption.
const FOLLOWED: Time = Time::from_secs(11);
/// After how long a move does not wait for confirmations any more. Reports are given up before.
const CONFIRMED_WITHIN: Time = Time::from_secs(60);

impl SubnetManager {
    /// Hosts hear that they are to hold queue pairs to those who move.
    pub(super) fn begin_hold(&mut self, now: Time, mut carry: Carry) -> Task {
        let pause = self.options.packets_gone(carry.plan.pause());
        let hold_s = pause.as_nanos().div_ceil(1_000_000_000) + CONFIRMED_WITHIN.as_nanos() / 1_000_000_000;
        let hold_s = u16::try_from(hold_s + MARGIN_S).unwrap_or(u16::MAX);
        let suspended: BTreeSet<Guid> = self.desk.away().map(|(guid, _)| guid).collect();
        let asked = self.sa.hold_levels(now, &releveled(&carry.batch), hold_s, &suspended);
        let circle = carry.plan.held.as_ref().map_or_else(String::new, ToString::to_string);
        for Releveled { guid, lid } in releveled(&carry.batch) {
            let (guid, wait_ns, circle) = (guid.into(), pause.as_nanos(), circle.clone());
            let Asked { told, untold } = asked;
            self.say(Event::MoveHeld { guid, lid, told, untold, wait_ns, circle });
        }
        carry.awaits_holds = true;
        Task::Drain(Box::new(carry), now + CONFIRMED_WITHIN)
    }

    /// Whether a move goes on because all have confirmed that they hold their queue pairs, or will not.
    pub(super) fn is_held(&self, carry: &Carry) -> bool {
        carry.awaits_holds && !self.sa.is_awaiting_holds()
    }

    /// Those who were asked to hold queue pairs have confirmed it, or have not. Their packets are to be gone before the first round.
    pub(super) fn hold_is_answered(&mut self, now: Time, mut carry: Box<Carry>) -> Task {
        let late = self.sa.is_awaiting_holds();
        let unheld = self.sa.take_unheld();
        carry.awaits_holds = false;
        if late || !unheld.is_empty() {
            let who = unheld
                .first()
                .map_or_else(|| "a host".to_owned(), |guid| self.port_name(&carry.subnet, *guid));
            self.release_holds(now, &carry);
            for (asked, wish) in &carry.batch {
                let why = format!("{who} does not confirm that it holds queue pairs to LID {}", wish.ask.lid);
                self.refuse(now, asked, VmMoveResult::Unproved, &why);
            }
            self.known.keep_subnet(carry.subnet);
            return Task::Idle;
        }
        let gone = now + self.options.packets_gone(carry.plan.pause());
        let before = self.desk.drained.into_iter().chain(self.desk.unknown(now).map(|rest| now + rest));
        Task::Drain(carry, before.fold(gone, Time::max))
    }

    fn port_name(&self, subnet: &Subnet, guid: Guid) -> String {
        let node = subnet.host_by_guid(guid).and_then(|at| subnet.node(at.node));
        node.map_or_else(|| format!("GUID {guid}"), |node: &FoundNode| node.description.clone())
    }

    /// A move that has held queue pairs has ended before its time: its peers ask for paths again, and go on. Where rows have been written they
    /// do when a sweep has made all of them new, since levels of the old place and rows of the new one may close the circle.
    pub(super) fn release_holds(&mut self, now: Time, carry: &Carry) {
        if carry.plan.held.is_none() {
            return;
        }
        match carry.has_sent() {
            true => self.unreleased.extend(releveled(&carry.batch)),
            false => self.sa.tell_levels(now, &releveled(&carry.batch)),
        }
    }

    /// All rows are new: who was held by a move that broke goes on.
    pub(super) fn release_late(&mut self, now: Time) {
        let ports = std::mem::take(&mut self.unreleased);
        self.sa.tell_levels(now, &ports);
    }

    /// Those who have moved have the levels of their new places from now on, and everyone hears of it. For how long packets may be sent on
    /// the old ones.
    pub(super) fn relevel(&mut self, now: Time, subnet: &mut Subnet, batch: &Batch, plan: &Plan) -> Time {
        let all: Vec<Takeover> = plan.moves.iter().flat_map(Move::takeovers).collect();
        let is_held = plan.held.is_some();
        if !subnet.routed.relevel(&all) && !is_held {
            return Time::ZERO;
        }
        // A suspended machine hears nothing: it asks for its paths when its port is there again.
        let mut suspended: BTreeSet<Guid> = self.desk.away().map(|(guid, _)| guid).collect();
        let ports = releveled(batch);
        suspended.extend(ports.iter().filter(|_| is_held).map(|port| port.guid));
        for guid in suspended {
            self.succession.reregistered.remove(&guid);
            self.succession.relevelled.insert(guid);
            let port = subnet.host_by_guid(guid).and_then(|at| subnet.port_mut(at));
            port.into_iter().for_each(|port| port.reregister = true);
        }
        self.sa.levels_changed(now, subnet, &ports);
        if is_held { Time::ZERO } else { FOLLOWED }
    }
}

/// The ports with traffic that moves take to other places.
fn releveled(batch: &Batch) -> Vec<Releveled> {
    let mut ports = Vec::new();
    for (_, wish) in batch {
        let ask = &wish.ask;
        if !matches!(ask.kind, VmMoveKind::Copy | VmMoveKind::Swap) {
            continue;
        }
        ports.push(Releveled { guid: ask.guid, lid: ask.lid });
        if ask.kind == VmMoveKind::Swap && ask.partner_is_idle == 0 && ask.partner_lid != Lid(0) {
            ports.push(Releveled { guid: ask.partner, lid: ask.partner_lid });
        }
    }
    ports
}
