//! Moves of virtual machines' LIDs: from a request to its answer, and on until the machine's port is in service.
//!
//! ```text
//! VmMove ─▶ its turn ─▶ Move, round by round (Drain between two where packets must be gone) ─▶ answer ─▶ Plug ─▶ Program ▶ Activate
//!                                └── no acknowledgement ─▶ answer, heavy sweep          trap 128 ──▲
//! ```

mod plugged;
mod shown;

use std::collections::BTreeSet;

use weft_machine::{Time, Timer};
use weft_routing::moves::{Kept, LatePolicy, Method, Move, Plan, Planner, Proof, UpdateOrder};
use weft_routing::{Routes, vswitches};
use weft_topology::NodeIndex;
use weft_wire::{Guid, Lid, SmKey, VmMove, VmMoveKind, VmMoveResult};

use super::SubnetManager;
use super::task::Task;
use crate::knowledge::Subnet;
use crate::moves::{Asked, Carry, Want, Wish, done, how_of, not_at};
use crate::sweep::{Past, route};
use crate::{Event, Output, Reason, SmTimer};

/// A plan with its proof.
pub(super) type Proven = (Plan, Proof);

/// The method, the order, and what is done where that is not safe.
pub(super) type How = (Method, UpdateOrder, LatePolicy);

/// Requests that are carried out together.
pub(super) type Batch = Vec<(Asked, Wish)>;

impl SubnetManager {
    /// Whether requests to move LIDs wait that can be seen to once nothing else is under way.
    pub(super) fn may_move(&self, now: Time) -> bool {
        let can = self.known.is_up && !self.own_port.down && !self.agenda.is_heavy_due(now);
        can && self.desk.is_waited_for()
    }

    /// Sees to requests to move LIDs. True: a move has begun.
    pub(super) fn start_moves(&mut self, now: Time) -> bool {
        while self.may_move(now) {
            let Some(mut subnet) = self.known.take_subnet() else { return false };
            let Some(asked) = self.desk.pop() else { break };
            let Some((batch, (plan, proof))) = self.consider(now, &mut subnet, asked) else {
                self.known.keep_subnet(subnet);
                continue;
            };
            self.collect();
            self.begin_move(now, Carry::new(subnet, batch, plan, proof, &self.options));
            return true;
        }
        self.collect();
        false
    }

    pub(super) fn begin_move(&mut self, now: Time, carry: Carry) {
        self.requests.begin_sweep();
        for (_, wish) in &carry.batch {
            let (guid, lid) = (wish.ask.guid, wish.ask.lid);
            let (rounds, smps) = (carry.plan.rounds.len() as u32, carry.plan.writes().count() as u32);
            let (guid, kind) = (guid.into(), wish.ask.kind.to_string());
            self.say(Event::MoveStarted { guid, lid, kind, rounds, smps });
        }
        if carry.plan.held.is_some() {
            self.task = self.begin_hold(now, carry);
            return;
        }
        let drained = self.desk.drained.filter(|until| carry.must_drain() && *until > now);
        let until = drained.or(self.desk.unknown(now).map(|rest| now + rest));
        self.task = match until {
            Some(until) => Task::Drain(Box::new(carry), until),
            None => self.first_round(Box::new(carry)),
        };
    }

    /// Goes on with a move whose packets are gone.
    pub(super) fn drained(&mut self, now: Time, carry: Box<Carry>) -> Task {
        if carry.awaits_holds {
            return self.hold_is_answered(now, carry);
        }
        if carry.round() == 1 { self.first_round(carry) } else { Task::Move(carry) }
    }

    /// The first SMP of a plan may leave, so the log has it. One that gives way to a sweep before is in no log.
    fn first_round(&mut self, carry: Box<Carry>) -> Task {
        let detours = self.desk.kept().map(|(kept, _)| kept.detours());
        self.known.history.note(|| Past::planned(&carry.subnet, &carry.plan, detours));
        Task::Move(carry)
    }

    /// Answers a request, or says what is to be carried out for it and for those that can go with it.
    fn consider(&mut self, now: Time, subnet: &mut Subnet, asked: Asked) -> Option<(Batch, Proven)> {
        let ask = asked.ask;
        if ask.kind == VmMoveKind::Address {
            self.address(now, subnet, &asked);
            return None;
        }
        match (self.desk.by_epoch(&ask), asked.want) {
            (Some(answer), Want::Carry) => {
                self.answer(now, &asked, answer);
                return None;
            }
            (Some(answer), Want::List) if answer.result == VmMoveResult::Done => {
                self.show_silent(now, subnet, &asked, &answer);
                return None;
            }
            _ => {}
        }
        if let Err(why) = self.keep_tables(subnet) {
            self.refuse(now, &asked, VmMoveResult::Unproved, &why);
            return None;
        }
        if matches!(ask.kind, VmMoveKind::Hold | VmMoveKind::Release) {
            self.hold(now, subnet, &asked);
            return None;
        }
        if self.awaits_lid(now, subnet, &asked) {
            return None;
        }
        let how = match how_of(&ask) {
            Ok(how) => how,
            Err(why) => {
                self.refuse(now, &asked, VmMoveResult::Invalid, &why);
                return None;
            }
        };
        let wish = self.read(now, subnet, &asked)?;
        if asked.want != Want::Carry {
            self.show_plan(now, subnet, &asked, &wish, how);
            return None;
        }
        self.join(now, subnet, asked, wish, how)
    }

    /// What a request comes to; `None`: it has been answered.
    fn read(&mut self, now: Time, subnet: &Subnet, asked: &Asked) -> Option<Wish> {
        match self.places(subnet).read(&asked.ask) {
            Ok(Some(wish)) => Some(wish),
            Ok(None) => {
                let carries = asked.want == Want::Carry;
                let result = if carries { VmMoveResult::Done } else { VmMoveResult::Planned };
                if carries {
                    self.has_moved_already(now, &asked.ask);
                }
                self.answer(now, asked, VmMove { result, ..asked.ask });
                None
            }
            Err(why) => {
                self.refuse(now, asked, VmMoveResult::Invalid, &why);
                None
            }
        }
    }

    /// A LID is where a request moves it to.
    fn has_moved_already(&mut self, now: Time, ask: &VmMove) {
        if self.desk.prolong(now, ask) {
            // It moved ahead of its machine, which has come by now.
            return self.agenda.plug(now);
        }
        // It may have been held for a move that another manager has made.
        [ask.guid, ask.partner].into_iter().for_each(|guid| self.desk.release(guid));
    }

    /// Plans a request together with those that wait behind it, or alone where that cannot be proved.
    fn join(
        &mut self,
        now: Time,
        subnet: &mut Subnet,
        asked: Asked,
        wish: Wish,
        how: How,
    ) -> Option<(Batch, Proven)> {
        let mut batch = vec![(asked, wish)];
        for asked in self.desk.pop_like(&batch[0].0.ask) {
            match self.desk.by_epoch(&asked.ask) {
                Some(answer) => self.answer(now, &asked, answer),
                None => {
                    let wish = self.read(now, subnet, &asked);
                    batch.extend(wish.map(|wish| (asked, wish)));
                }
            }
        }
        let wishes = |batch: &Batch| batch.iter().map(|(_, wish)| wish.clone()).collect::<Vec<_>>();
        let mut planned = self.plan(now, subnet, &wishes(&batch), how);
        // A plan that has to wait for packets would keep the first one waiting for the others.
        if batch.len() > 1 && planned.as_ref().map_or(true, |(plan, _)| plan.drains()) {
            let others = batch.drain(1..).map(|(asked, _)| asked).collect();
            self.desk.put_back(others);
            planned = self.plan(now, subnet, &wishes(&batch), how);
        }
        match planned {
            Ok(proven) => Some((batch, proven)),
            Err(why) => {
                batch.iter().for_each(|(asked, _)| self.refuse(now, asked, VmMoveResult::Unproved, &why));
                None
            }
        }
    }

    /// A plan that carries out all of these, proved. An error says in words why there is none.
    pub(super) fn plan(
        &mut self,
        now: Time,
        subnet: &mut Subnet,
        wishes: &[Wish],
        (method, order, late): How,
    ) -> Result<Proven, String> {
        let fresh = (method == Method::Full).then(|| self.tables_after(subnet, wishes)).transpose()?;
        let idle =
            wishes.iter().filter(|wish| wish.ask.partner_is_idle == 1).map(|wish| wish.ask.partner_lid);
        let idle: BTreeSet<Lid> = idle.collect();
        let moves: Vec<Move> = wishes.iter().map(|wish| wish.one).collect();
        self.plan_moves(now, subnet, &moves, idle, fresh.as_ref(), (method, order, late))
    }

    /// The same for what planners take; `idle` are LIDs that no packets go to, `fresh` are tables computed from scratch.
    pub(super) fn plan_moves(
        &mut self,
        now: Time,
        subnet: &Subnet,
        moves: &[Move],
        idle: BTreeSet<Lid>,
        fresh: Option<&Routes>,
        (method, order, late): How,
    ) -> Result<Proven, String> {
        self.desk.settle(now);
        if let Some(kept) = self.desk.kept_mut() {
            kept.set_idle(idle);
        }
        let (routing, kept) = (subnet.routed.routing(), self.desk.kept());
        let (routing, (kept, _)) = routing.zip(kept).ok_or("no tables are in force")?;
        let (fabric, lids) = (&subnet.fabric, &subnet.routed.lids);
        let planner = Planner { kept, fabric, lids, routing, fresh, late };
        let is_at_once = method == Method::Full || order == UpdateOrder::Unordered;
        let planned = if self.options.vm_lids.unproved_moves && is_at_once {
            planner.plan(moves, method, order).map(|plan| (plan, Proof::none()))
        } else {
            planner.plan_and_prove(moves, method, order)
        };
        planned.map_err(|error| error.to_string())
    }

    /// The tables that an engine makes for the new places.
    pub(super) fn tables_after(&self, subnet: &mut Subnet, wishes: &[Wish]) -> Result<Routes, String> {
        let cables: Vec<_> = wishes.iter().flat_map(|wish| &wish.cables).copied().collect();
        let before = subnet.recable(&cables);
        let moved = subnet.adapters.find_again(&subnet.fabric, &self.options);
        let adapters = std::mem::replace(&mut subnet.adapters, moved);
        let routed = route(subnet, &self.options, None);
        subnet.adapters = adapters;
        subnet.recable(&before);
        routed.map(|computed| computed.routing.routes)
    }

    /// Keeps what planners need of the tables in force, unless it is kept already.
    pub(super) fn keep_tables(&mut self, subnet: &Subnet) -> Result<(), String> {
        if self.desk.kept().is_some() {
            return Ok(());
        }
        let routing = subnet.routed.routing().ok_or("no tables are in force")?;
        let found = vswitches(&subnet.fabric, &self.options.routing.engine.management_nodes);
        let nodes: Vec<NodeIndex> = found.iter().map(|vswitch| vswitch.node).collect();
        let (lids, given) = (&subnet.routed.lids, &subnet.routed.given);
        let kept = Kept::new(&subnet.fabric, lids, routing, given, &nodes, &BTreeSet::new());
        self.desk.keep(kept.map_err(|error| error.to_string())?, found);
        Ok(())
    }

    /// Keeps them before anyone asks, where someone may.
    pub(super) fn prepare_moves(&mut self) {
        if self.options.keys.sa_key == SmKey(1) || self.desk.kept().is_some() {
            return;
        }
        let Some(subnet) = self.known.take_subnet() else { return };
        if !vswitches(&subnet.fabric, &self.options.routing.engine.management_nodes).is_empty() {
            // What cannot be kept is said when someone asks.
            let _ = self.keep_tables(&subnet);
        }
        self.known.keep_subnet(subnet);
    }

    pub(super) fn refuse(&mut self, now: Time, asked: &Asked, result: VmMoveResult, why: &str) {
        let (guid, lid) = (asked.ask.guid, asked.ask.lid);
        self.say(Event::MoveRefused { guid: guid.into(), lid, reason: why.to_owned() });
        self.answer(now, asked, not_at(&asked.ask, result, why));
    }

    pub(super) fn answer(&mut self, now: Time, asked: &Asked, answer: VmMove) {
        if asked.want == Want::Carry && matches!(answer.result, VmMoveResult::Done | VmMoveResult::Broken) {
            self.desk.answered(asked.ask, answer);
        }
        self.sa.answer_move(now, &asked.request, &answer);
    }

    /// A round has been written, or blocks have been read back.
    pub(super) fn carried(&mut self, now: Time, mut carry: Carry) {
        for write in carry.take_acknowledged() {
            let guid = carry.subnet.guid(write.switch.0);
            let held = self.known.memory.get_mut(&guid);
            held.into_iter().for_each(|held| held.set_lft_block(write.block, Some(write.ports)));
            carry.subnet.routed.rewrite(write.switch, write.block, &write.ports);
        }
        if carry.broken().is_some() {
            self.move_broke(now, carry, "");
        } else if carry.next_round() {
            self.task = match carry.must_drain() {
                true => {
                    let until = self.drained_by(now, &carry);
                    Task::Drain(Box::new(carry), until)
                }
                false => Task::Move(Box::new(carry)),
            };
        } else if carry.read_back(|guid, key| self.requests.unconfirmed.contains(now, guid, key)) {
            self.task = Task::Move(Box::new(carry));
        } else {
            self.moved(now, carry);
        }
    }

    /// A switch has not acknowledged, or something else ends the plan here: a heavy sweep finds out what there is.
    fn move_broke(&mut self, now: Time, carry: Carry, otherwise: &str) {
        let why = carry.broken().unwrap_or(otherwise).to_owned();
        self.release_holds(now, &carry);
        self.known.history.note(|| Past::Broken);
        let in_doubt = carry.in_doubt();
        for guid in &in_doubt {
            // What it holds is read again.
            self.known.memory.remove(guid);
        }
        // By which ways packets go that it has turned is not known once a sweep writes other rows.
        self.desk.ended(now, self.options.packets_gone(carry.plan.drain_broken), true);
        for (asked, wish) in &carry.batch {
            let (guid, lid) = (wish.ask.guid, wish.ask.lid);
            self.say(Event::MoveBroken { guid: guid.into(), lid, reason: why.clone() });
            self.answer(now, asked, not_at(&wish.ask, VmMoveResult::Broken, &why));
        }
        self.known.keep_subnet(carry.subnet);
        let guid = in_doubt.first().copied().unwrap_or(Guid(0));
        self.agenda.heavy(now, Reason::NoAnswer { guid });
    }

    /// Ends moves that are under way or wait, since nothing of them can go on.
    pub(super) fn abandon_moves(&mut self, now: Time) {
        if let Task::Move(_) | Task::Drain(..) = &self.task
            && let Task::Move(carry) | Task::Drain(carry, _) = std::mem::replace(&mut self.task, Task::Idle)
        {
            self.move_broke(now, *carry, "the manager's port has no link");
        }
        self.desk.forget_tables();
    }

    /// When a move that waits for packets goes on, or gives way.
    pub(super) fn drain_timer(&self, until: Time) -> Option<Timer<SmTimer>> {
        let look = self.agenda.next_look(self.now).filter(|_| self.election.state.sweeps());
        let look = Timer::new(look.map(|(at, _)| at), SmTimer::Look);
        Timer::earliest([Timer::new(Some(until), SmTimer::Drain), look])
    }

    /// A move that waits for packets gives way to a sweep or a look that is due, which may find cables other than those that its plan
    /// was proved for. Of its next round nothing is out.
    pub(super) fn drain_gives_way(&mut self, now: Time) -> bool {
        let urgent = self.agenda.next_look(now).filter(|(at, _)| *at <= now && self.election.state.sweeps());
        let (Some((_, reason)), Task::Drain(..)) = (urgent, &self.task) else { return false };
        let Task::Drain(carry, _) = std::mem::replace(&mut self.task, Task::Idle) else { return false };
        if carry.has_begun() {
            self.agenda.heavy(now, reason);
            self.move_broke(now, *carry, "the cabling may have changed while packets were under way");
        } else {
            // Nothing is out at all: it is planned again after the sweep.
            self.release_holds(now, &carry);
            let Carry { subnet, batch, .. } = *carry;
            self.known.keep_subnet(subnet);
            self.desk.put_back(batch.into_iter().map(|(asked, _)| asked).collect());
        }
        if let Some(due) = self.due(now) {
            self.start(now, due);
        }
        true
    }

    /// All is written and acknowledged.
    fn moved(&mut self, now: Time, carry: Carry) {
        let Carry { mut subnet, batch, plan, proof, .. } = carry;
        let followed = self.relevel(now, &mut subnet, &batch, &plan);
        let mut touched: BTreeSet<u32> = plan.prompt_writes().map(|write| write.switch.0).collect();
        for (asked, wish) in &batch {
            let before = subnet.recable(&wish.cables);
            wish.freed.iter().for_each(|place| subnet.note_empty(*place));
            let ends = wish.cables.iter().chain(&before).flat_map(|(end, place)| [end.node, place.node]);
            touched.extend(ends);
            for (guid, away) in &wish.away {
                self.desk.hold(now, *guid, *away, wish.ask.hold_s);
            }
            match wish.ask.kind {
                VmMoveKind::Boot => {
                    let file = self.succession.give(wish.ask.guid, wish.ask.lid);
                    self.outputs.extend(file.map(Output::Persist));
                }
                VmMoveKind::Clear => self.desk.release(wish.ask.guid),
                _ => {}
            }
            let took = now.saturating_sub(asked.since);
            let (guid, lid) = (wish.ask.guid, wish.ask.lid);
            let (physical, vswitches) = (plan.physical, plan.vswitches);
            let smps = plan.smps.physical + plan.smps.vswitches;
            let (guid, took_ns) = (guid.into(), took.as_nanos());
            self.say(Event::MoveDone { guid, lid, physical, vswitches, smps, took_ns });
            self.answer(now, asked, done(&wish.ask, &plan, &proof, self.waits(&plan), took));
            self.expect_late_rows(now, &subnet, wish, &plan);
        }
        self.known.history.note(|| Past::Carried(Box::new(subnet.fabric.clone())));
        self.desk.kept_mut().into_iter().for_each(|kept| kept.admit(&proof));
        let gone = self.options.packets_gone(plan.drain) + followed;
        self.desk.ended(now, gone, plan.order == UpdateOrder::Unordered);
        self.sa.nodes_changed(&subnet, &self.known.memory, &touched);
        self.known.keep_subnet(subnet);
        self.plan_proof(now);
        if !batch.is_empty() {
            self.agenda.plug(now);
        }
        if plan.moves.iter().any(|one| matches!(one, Move::Finish { .. })) {
            self.finished(now, &plan);
        } else {
            self.note_moved(now, batch.len(), &plan);
        }
    }
}
