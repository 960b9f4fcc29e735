//! A move, back: the rows first, then the source; and forward again if only the destination has survived.

use weft_machine::Time;

use super::VmManager;
use super::moves::Verdict;
use crate::Step;
use crate::agent::{Content, Deed};
use crate::error::VmError;
use crate::names::VmName;
use crate::record::{Move, Proof, Vm};
use crate::task::SmTalk;

impl VmManager {
    pub(super) fn undoing(&mut self, now: Time, name: &VmName, vm: &Vm, moving: &Move) {
        if let Some(proof) = self.hosts.death(&vm.place) {
            return self.rescue(now, name, moving, proof);
        }
        match moving.step {
            Step::Undo if moving.rerouted => {
                if let Some(task) = self.task(name) {
                    task.sm = SmTalk::default();
                }
                self.advance_anew(name, Step::Back);
            }
            Step::Undo if moving.frozen.is_some() => {
                self.advance_anew(name, Step::Resume);
            }
            // It never got an order to stop.
            Step::Undo => self.undone(now, name, vm, moving),
            Step::Back => self.going_back(now, name, vm, moving),
            _ => self.resuming(now, name, vm, moving),
        }
    }

    /// The source is dead. If it had no order to resume, and the image is there, the move goes on.
    fn rescue(&mut self, now: Time, name: &VmName, moving: &Move, proof: Proof) {
        let may_run = moving.step == Step::Resume || moving.frozen.is_none();
        if may_run || moving.imported.is_none() || self.hosts.death(&moving.to).is_some() {
            return self.lost(now, name, proof);
        }
        let to = &moving.to.slot;
        let Some(view) = self.hosts.view(to) else { return };
        let imported = moving.imported.unwrap_or(u64::MAX);
        let has_arrived = view.epoch >= imported
            && matches!(&view.content, Content::Imported(occupant) if occupant.vm == *name);
        if !has_arrived {
            return self.lost(now, name, proof);
        }
        if let Some(task) = self.task(name) {
            task.why = None;
            task.sm = SmTalk::default();
            task.notes.push(format!("the source died while the move was undone, so it went on: {proof}"));
        }
        self.advance_anew(name, Step::Reroute);
    }

    fn going_back(&mut self, now: Time, name: &VmName, vm: &Vm, moving: &Move) {
        let moves = self.address_moves(vm.identity.port, moving.displaced, &moving.to.slot, &vm.place.slot);
        let step = match self.ask_sm(now, name, moving, moves) {
            Verdict::Wait => return,
            Verdict::Later => Step::Back,
            Verdict::Moved => Step::Resume,
            Verdict::Refused(why) => {
                // Frozen for ever would be worse: where the port is up, a sweep writes the rows.
                if let Some(task) = self.task(name) {
                    let reason = task.why.get_or_insert_default();
                    reason.words += &format!("; the subnet manager did not move it back ({why})");
                }
                Step::Resume
            }
        };
        self.advance_anew(name, step);
    }

    fn resuming(&mut self, now: Time, name: &VmName, vm: &Vm, moving: &Move) {
        let source = &vm.place.slot;
        if !self.hosts.is_ready(&source.host) {
            return;
        }
        let runs = self
            .content(source, moving.epoch)
            .is_some_and(|content| matches!(content, Content::Running(occupant) if occupant.vm == *name));
        if runs {
            return self.undone(now, name, vm, moving);
        }
        if !self.vacate(now, name, moving) {
            return;
        }
        let has_it = self.hosts.view(source).and_then(|view| view.content.occupant()).map(|other| &other.vm);
        if has_it != Some(name) {
            return self.lost(now, name, Proof::Absent(source.clone()));
        }
        let is_later = self.hosts.view(source).is_some_and(|view| view.epoch > moving.epoch);
        if self.task(name).is_none_or(|task| task.may_try(now)) {
            if is_later {
                return self.advance_anew(name, Step::Resume);
            }
            self.hosts.command(now, source, moving.epoch, Deed::Activate(name.clone()));
        }
    }

    /// Whether the source may plug the address in: the destination has given it up, or is asked to. One that cannot be reached
    /// has a copy that stays suspended, and is cleared when it returns.
    fn vacate(&mut self, now: Time, name: &VmName, moving: &Move) -> bool {
        let to = &moving.to.slot;
        if self.hosts.death(&moving.to).is_some() || self.hosts.is_away(&to.host) {
            return true;
        }
        let Some(view) = self.hosts.view(to) else { return false };
        let known = view.epoch;
        let has_it = match &view.content {
            Content::Reserved(vm) => vm == name,
            content => content.occupant().is_some_and(|other| other.vm == *name),
        };
        let has_vacated = self.task(name).is_none_or(|task| std::mem::replace(&mut task.has_vacated, true));
        if !has_it || (has_vacated && !self.hosts.is_busy(to)) {
            return true;
        }
        if !has_vacated {
            self.raise_epoch(known);
            let epoch = self.next_epoch();
            let leaves = moving.displaced.filter(|_| !self.is_renamed());
            self.hosts.command(now, to, epoch, Deed::Clear(leaves));
        }
        false
    }

    /// It runs where it was. That is written down once the subnet manager has heard of it, or is silent: else a manager that dies here
    /// would leave an address that is held.
    fn undone(&mut self, now: Time, name: &VmName, vm: &Vm, moving: &Move) {
        if !self.is_unheld(now, name, vm, moving) {
            return;
        }
        let epoch = self.book.epoch;
        self.advance(name, Step::Undone, moving.epoch);
        self.counts.undone += 1;
        self.mark_slot(now, moving.to.slot.clone(), Some(epoch));
        let why = self.task(name).and_then(|task| task.why.take()).unwrap_or_default();
        self.finish(name, Err(VmError::Undone { vm: name.clone(), why }));
        self.check.insert(name.clone());
    }
}
