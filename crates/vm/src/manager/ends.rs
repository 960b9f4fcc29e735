//! Virtual machines that start, run and end; and the answers to clients.

use weft_machine::Time;
use weft_vocabulary::vm::Event;
use weft_wire::Lid;

use super::VmManager;
use crate::agent::{Content, Deed, Occupant, Refusal};
use crate::error::{VmError, Why};
use crate::names::{Slot, VmName};
use crate::record::{Proof, Record, State, Vm};
use crate::request::{Migration, Reply};
use crate::task::Task;

/// Pause before an agent that refused to activate is asked again; it doubles up to the timeout.
const ACTIVATE_AGAIN: Time = Time::from_millis(5);

impl VmManager {
    /// What is to be done about a virtual machine that does not move.
    pub(super) fn tend(&mut self, now: Time, name: &VmName) {
        let Some(vm) = self.book.vm(name).cloned() else { return };
        let death = self.hosts.death(&vm.place);
        match (&vm.state, death) {
            (State::Lost(_), _) => {}
            (State::Starting, Some(proof)) => self.not_started(now, name, proof.to_string().into()),
            (State::Stopping, Some(_)) => self.ended(now, name),
            (_, Some(proof)) => self.lost(now, name, proof),
            (State::Starting, None) => self.starting(now, name, &vm),
            (State::Stopping, None) => self.stopping(now, name, &vm),
            (State::Running | State::Frozen | State::Moving(_), None) => self.watch(now, name, &vm),
        }
    }

    /// The content of a slot, if its host can be reached and the slot has heard of an epoch.
    pub(super) fn content(&self, slot: &Slot, epoch: u64) -> Option<&Content> {
        self.hosts.view(slot).filter(|view| view.epoch >= epoch).map(|view| &view.content)
    }

    fn starting(&mut self, now: Time, name: &VmName, vm: &Vm) {
        let slot = &vm.place.slot;
        if !self.hosts.is_ready(&slot.host) {
            return;
        }
        let runs = self
            .content(slot, vm.epoch)
            .is_some_and(|content| matches!(content, Content::Running(occupant) if occupant.vm == *name));
        let task = self.tasks.get(name);
        if runs {
            self.record(Record::Created(name.clone()));
            self.event(Event::Runs { vm: name.to_string(), host: slot.host.to_string(), vf: slot.vf });
            self.finish(name, Ok(Reply::Created(vec![(name.clone(), slot.clone())])));
            // After a restart it may have its LID already, and nothing tells of that again.
            self.check.insert(name.clone());
        } else if let Some(why) = task.and_then(|task| task.why.clone()) {
            self.not_started(now, name, why);
        } else if task.is_none_or(|task| task.recovered) {
            self.not_started(now, name, "the VM manager died before it ran".into());
        } else {
            let occupant = Occupant { vm: name.clone(), identity: vm.identity.clone() };
            self.hosts.command(now, slot, vm.epoch, Deed::Create(Box::new(occupant)));
        }
    }

    fn not_started(&mut self, now: Time, name: &VmName, why: Why) {
        self.abandon(now, name);
        self.finish(name, Err(VmError::NotStarted { vm: name.clone(), why }));
    }

    /// Gives up a virtual machine; its slots are cleared when their hosts can be reached.
    pub(super) fn abandon(&mut self, now: Time, name: &VmName) {
        let Some(slots) = self.let_go(name) else { return };
        let epoch = self.book.epoch;
        self.record(Record::Forgotten(name.clone()));
        self.event(Event::Gone { vm: name.to_string() });
        slots.into_iter().for_each(|slot| self.mark_slot(now, slot, Some(epoch)));
    }

    /// The slots that a virtual machine has; one that moves is not waited for any more.
    fn let_go(&mut self, name: &VmName) -> Option<Vec<Slot>> {
        let vm = self.book.vm(name)?.clone();
        let mut slots = vec![vm.place.slot.clone()];
        if let State::Moving(moving) = &vm.state {
            slots.push(moving.to.slot.clone());
            self.release_hold(name, &vm, moving);
        }
        Some(slots)
    }

    fn stopping(&mut self, now: Time, name: &VmName, vm: &Vm) {
        let slot = &vm.place.slot;
        if self.content(slot, vm.epoch).is_some_and(Content::is_free) {
            self.ended(now, name);
        } else if self.tasks.get_mut(name).is_none_or(|task| task.may_try(now)) {
            let keeps = self.options.scheme == crate::Scheme::Prepopulated;
            self.hosts.command(now, slot, vm.epoch, Deed::Clear(Some(vm.identity.port).filter(|_| keeps)));
        }
    }

    fn ended(&mut self, now: Time, name: &VmName) {
        let slot = self.book.vm(name).map(|vm| vm.place.slot.clone());
        self.record(Record::Gone(name.clone()));
        self.event(Event::Gone { vm: name.to_string() });
        self.finish(name, Ok(Reply::Destroyed));
        slot.into_iter().for_each(|slot| self.mark_slot(now, slot, None));
    }

    pub(super) fn lost(&mut self, now: Time, name: &VmName, proof: Proof) {
        let Some(slots) = self.let_go(name) else { return };
        let after = Some(self.book.epoch);
        self.counts.lost += 1;
        let why = proof.to_string();
        self.record(Record::Lost { name: name.clone(), proof });
        slots.into_iter().for_each(|slot| self.mark_slot(now, slot, after));
        self.event(Event::Lost { vm: name.to_string(), proof: why.clone() });
        self.finish(name, Err(VmError::Lost { vm: name.clone(), why }));
    }

    /// Sees that a virtual machine is where it should be.
    fn watch(&mut self, now: Time, name: &VmName, vm: &Vm) {
        let slot = &vm.place.slot;
        let content = self.hosts.view(slot).map(|view| view.content.clone());
        let occupant = content.as_ref().and_then(Content::occupant).filter(|occupant| occupant.vm == *name);
        if content.is_some() && occupant.is_none() {
            return self.lost(now, name, Proof::Absent(slot.clone()));
        }
        if let Some(Content::Running(occupant)) = &content {
            self.note_lid(name, vm, occupant.identity.port.lid);
            if vm.state == State::Frozen {
                self.adopt(slot, occupant, true);
            }
        }
        self.released(now, name, vm);
    }

    /// Takes down the LID that a machine's port has, where that is news.
    pub(super) fn note_lid(&mut self, name: &VmName, vm: &Vm, lid: Lid) {
        if lid != vm.identity.port.lid && lid.is_unicast() {
            self.record(Record::HasLid { name: name.clone(), lid });
            self.event(Event::HasLid { vm: name.to_string(), lid });
        }
    }

    /// The end of a move: its source is cleared, or cannot be.
    fn released(&mut self, now: Time, name: &VmName, vm: &Vm) {
        let Some(task) = self.tasks.get_mut(name) else { return };
        let Some(release) = task.release.clone() else { return };
        let is_cleared = self
            .hosts
            .view(&release.from)
            .is_some_and(|view| view.epoch > release.epoch && view.content.is_free());
        if is_cleared {
            task.stages.release = task.stages.release.or(task.mark(now));
        } else if release.until <= now {
            task.notes.push(format!("{} will be cleared when it can be reached", release.from));
        } else {
            return;
        }
        if !task.knows_silent(now) {
            return;
        }
        let (stages, counts, notes) = (task.stages, task.counts.take(), std::mem::take(&mut task.notes));
        let (from, to, silent) = (release.from, vm.place.slot.clone(), std::mem::take(&mut task.silent));
        let migration = Migration { vm: name.clone(), from, to, stages, counts, silent, notes };
        self.finish(name, Ok(Reply::Migrated(Box::new(migration))));
    }

    /// A task has ended.
    pub(super) fn finish(&mut self, name: &VmName, result: Result<Reply, VmError>) {
        let Some(Task { request: Some(id), .. }) = self.tasks.remove(name) else { return };
        self.tell(id, result);
    }

    /// Answers the client of a task, or the one of a fleet when all of it is done.
    fn tell(&mut self, id: crate::RequestId, result: Result<Reply, VmError>) {
        let Some(fleet) = self.fleets.get_mut(&id) else { return self.reply(id, result) };
        fleet.left = fleet.left.saturating_sub(1);
        match result {
            Ok(Reply::Created(made)) => fleet.made.extend(made),
            Ok(_) => {}
            Err(error) => drop(fleet.first_error.get_or_insert(error)),
        }
        if fleet.left > 0 {
            return;
        }
        let Some(mut fleet) = self.fleets.remove(&id) else { return };
        // Names of a fleet have one stem: this is the order of their numbers.
        fleet.made.sort_by_key(|(name, _)| (name.to_string().len(), name.clone()));
        let made = fleet.made.len() as u32;
        let result = match fleet.first_error {
            None => Ok(Reply::Created(fleet.made)),
            Some(error) if fleet.single => Err(error),
            Some(first) => Err(VmError::Fleet { made, wanted: fleet.wanted, first: Box::new(first) }),
        };
        self.reply(id, result);
    }

    /// An agent has refused.
    pub(super) fn refused(&mut self, now: Time, slot: &Slot, deed: &Deed, refusal: &Refusal) {
        let again = now + self.options.timeout;
        let (host, vf) = (&slot.host, slot.vf);
        let stuck = || Event::Stuck { host: host.to_string(), vf, reason: refusal.to_string() };
        let Some(name) = self.book.claim(slot).cloned() else {
            self.event(stuck());
            self.mark_slot(again, slot.clone(), None);
            if let Some(sweep) = self.sweep.get_mut(slot) {
                sweep.at = again;
            }
            return;
        };
        let Some(task) = self.tasks.get_mut(&name) else { return };
        // An agent that is another process now will say so when it is asked.
        let is_final = !matches!(refusal, Refusal::Incarnation(_));
        match deed {
            Deed::Create(_)
            | Deed::Reserve(_)
            | Deed::Freeze(_)
            | Deed::Export { .. }
            | Deed::Import { .. }
                if is_final =>
            {
                task.why = Some(format!("{slot}: {refusal}").into());
            }
            // The subnet manager may be about to write its port's partitions, and the machine does not run meanwhile.
            Deed::Activate(_) if is_final && task.activate_again < self.options.timeout => {
                task.refused = Some(format!("{slot}: {refusal}"));
                let wait = task.activate_again.max(ACTIVATE_AGAIN).min(self.options.timeout);
                (task.again_at, task.activate_again) = (Some(now + wait), wait + wait);
            }
            _ => {
                if matches!(deed, Deed::Activate(_)) && is_final {
                    task.refused = Some(format!("{slot}: {refusal}"));
                }
                task.again_at = Some(again);
                self.event(stuck());
            }
        }
        self.check.insert(name);
    }

    /// Tells clients that have waited long enough.
    pub(super) fn lose_patience(&mut self, now: Time) {
        let due = |task: &Task| task.request.is_some() && task.answer_by <= now;
        let names: Vec<VmName> =
            self.tasks.iter().filter(|(_, task)| due(task)).map(|(name, _)| name.clone()).collect();
        for name in names {
            let why = self.doubt(&name).unwrap_or_else(|| "it takes longer than it should".to_owned());
            let request = self.tasks.get_mut(&name).and_then(|task| task.request.take());
            if let Some(id) = request {
                self.tell(id, Err(VmError::InDoubt { vm: name, why }));
            }
        }
        let (over, wait) =
            std::mem::take(&mut self.queue).into_iter().partition(|waiting| waiting.until <= now);
        self.queue = wait;
        for waiting in Vec::from_iter::<std::collections::VecDeque<super::Waiting>>(over) {
            self.reply(waiting.id, Err(VmError::Waited));
        }
        let timeout = self.options.sm_timeout;
        let over: Vec<u64> = self
            .plans
            .iter()
            .filter(|(_, plan)| plan.1 + timeout <= now)
            .map(|(number, _)| *number)
            .collect();
        for number in over {
            if let Some((id, _)) = self.plans.remove(&number) {
                self.planned(id, crate::SmAnswer::Timeout);
            }
        }
    }
}
