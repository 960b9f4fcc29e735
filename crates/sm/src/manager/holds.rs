//! Machines that are about to move are held: their rows stay, and traps about them wait. One whose move would have to wait for packets
//! of other moves is held later, while it still runs. A hold is asked for again before it ends, for as long as the
//! machine is frozen.

use weft_machine::Time;
use weft_wire::{Guid, VmMove, VmMoveKind, VmMoveResult};

use super::SubnetManager;
use crate::Reason;
use crate::knowledge::Subnet;
use crate::moves::{AGAIN, Asked, Places, Turn, Want, Wish, held_for, how_of, micros, not_at};

impl SubnetManager {
    /// Answers a `Hold` or a `Release`.
    pub(super) fn hold(&mut self, now: Time, subnet: &mut Subnet, asked: &Asked) {
        let ask = &asked.ask;
        if asked.want != Want::Carry {
            let why = format!("{} has no plan: it is asked for by Set", ask.kind);
            return self.refuse(now, asked, VmMoveResult::Invalid, &why);
        }
        if ask.kind == VmMoveKind::Release {
            for guid in [ask.guid, ask.partner] {
                self.desk.release(guid);
            }
            self.look_at_trapped(now, subnet);
            return self.answer(now, asked, VmMove { result: VmMoveResult::Done, ..*ask });
        }
        if self.desk.prolong(now, ask) {
            return self.answer(now, asked, VmMove { result: VmMoveResult::Done, ..*ask });
        }
        let held = match self.places(subnet).read_hold(ask) {
            Ok(held) => held,
            Err(why) => return self.refuse(now, asked, VmMoveResult::Invalid, &why),
        };
        if let Err(why) = self.confirm(subnet, ask) {
            return self.refuse(now, asked, VmMoveResult::Invalid, &why);
        }
        // One that is frozen already cannot wait for its turn. A manager that was restarted knows it by its empty place.
        let may_be_frozen = self.desk.turns.is_granted(ask) || subnet.host_by_guid(ask.guid).is_none();
        let turn = if may_be_frozen { Turn::Now(Time::ZERO) } else { self.turn(now, subnet, ask) };
        let silence = match turn {
            Turn::Never(why) => return self.refuse(now, asked, VmMoveResult::Unproved, &why),
            Turn::Later(wait) => {
                self.desk.turns.turn_away(now, ask.guid, wait);
                let answer = not_at(ask, VmMoveResult::Later, "packets of other moves are under way");
                return self.answer(now, asked, VmMove { took_us: micros(wait), ..answer });
            }
            Turn::Now(silence) => silence,
        };
        if !held.into_iter().all(|(guid, away)| self.desk.hold(now, guid, away, ask.hold_s)) {
            return self.refuse(now, asked, VmMoveResult::Invalid, "too many GUIDs are away");
        }
        self.desk.turns.grant(*ask);
        self.answer(now, asked, held_for(ask, silence));
    }

    /// What requests are read by.
    pub(super) fn places<'a>(&'a self, subnet: &'a Subnet) -> Places<'a> {
        let vswitches = self.desk.kept().map_or(&[][..], |(_, vswitches)| vswitches);
        Places { subnet, vswitches, on_file: &self.succession.guid2lid }
    }

    /// Whether a machine can move without waiting for packets once it is frozen, along with those that may be frozen already.
    fn turn(&mut self, now: Time, subnet: &mut Subnet, ask: &VmMove) -> Turn {
        let unknown = self.desk.unknown(now);
        if let Some(wait) = unknown.or_else(|| self.desk.turns.behind(now, ask.guid)) {
            return Turn::Later(wait);
        }
        // With new moves all the time, packets of one or the other would always be under way for late rows.
        if self.desk.late.is_overdue(now) {
            return Turn::Later(AGAIN);
        }
        let how = match how_of(ask) {
            Ok(how) => how,
            Err(why) => return Turn::Never(why),
        };
        let own = match self.places(subnet).read(&move_of(ask)) {
            Ok(Some(wish)) => wish,
            // The move finds that there is nothing to do.
            Ok(None) => return Turn::Now(Time::ZERO),
            Err(why) => return Turn::Never(why),
        };
        let places = self.places(subnet);
        // What the move of another comes to is said when it is asked for.
        let others = self.desk.turns.others(ask.guid).filter_map(|hold| places.read(&move_of(hold)).ok()?);
        let mut wishes: Vec<Wish> = others.collect();
        let is_alone = wishes.is_empty();
        wishes.push(own);
        let (plan, _) = match self.plan(now, subnet, &wishes, how) {
            Ok(proven) => proven,
            Err(why) if is_alone => return Turn::Never(why),
            Err(_) => return Turn::Later(AGAIN),
        };
        if !is_alone && plan.drains() {
            return Turn::Later(AGAIN);
        }
        // Drains between its own rounds are for its own packets.
        let begins_with_one = plan.rounds.first().is_some_and(|round| round.after_drain);
        match self.desk.drained.filter(|until| begins_with_one && *until > now) {
            Some(until) => Turn::Later(until - now),
            None => {
                let waits = self.waits(&plan);
                Turn::Now(waits.silence + waits.held)
            }
        }
    }

    /// Looks at switches whose traps have waited for someone who is there now.
    pub(super) fn look_at_trapped(&mut self, now: Time, subnet: &Subnet) {
        for guid in self.desk.take_trapped() {
            let node = subnet.by_guid.get(&guid).copied();
            node.into_iter().for_each(|node| self.agenda.look(now, Reason::StateChange { guid }, node));
        }
    }

    /// Those who have been away too long are taken for gone.
    pub(super) fn expire_away(&mut self, now: Time) {
        for (guid, away) in self.desk.expire(now) {
            self.sa.is_gone(now, guid);
            self.agenda.heavy(now, Reason::StateChange { guid: away.switches[1] });
        }
    }
}

/// The move that a hold announces.
fn move_of(hold: &VmMove) -> VmMove {
    let kind = if hold.partner == Guid(0) { VmMoveKind::Copy } else { VmMoveKind::Swap };
    VmMove { kind, ..*hold }
}
