//! A move, forward: which step follows from the book and from the contents of the two slots.

use weft_machine::Time;
use weft_wire::Lid;

use super::VmManager;
use crate::Step;
use crate::agent::{Content, Deed, Occupant};
use crate::error::Why;
use crate::identity::{PortIdentity, Scheme};
use crate::names::{Slot, VmName};
use crate::record::{Move, Proof, Record, Vm};
use crate::request::Detach;
use crate::sm::{AddressMove, End, SmAnswer, SmRequest, SmWish};
use crate::task::{Release, SmTalk, Task};

/// How often a move takes a later epoch because the subnet manager knows one.
pub(super) const OLD_EPOCHS_MAX: u32 = 3;

/// What the subnet manager says of a move.
pub(super) enum Verdict {
    /// It has not answered yet.
    Wait,
    /// The rows are written, or a sweep will write them.
    Moved,
    /// The question is asked again, with a later epoch.
    Later,
    /// It will not.
    Refused(String),
}

impl VmManager {
    /// Takes the next step of a move, or does what the step demands.
    pub(super) fn step(&mut self, now: Time, name: &VmName) {
        let Some((vm, moving)) = self.book.moving(name) else { return };
        let (vm, moving) = (vm.clone(), moving.clone());
        let within = self.options.answer_within;
        self.tasks.entry(name.clone()).or_insert_with(|| Task::new(now, None, within));
        self.hold_again(now, name, &vm, &moving);
        match moving.step {
            Step::Reserve => self.reserving(now, name, &vm, &moving),
            Step::Freeze => self.freezing(now, name, &vm, &moving),
            Step::Import => self.importing(now, name, &vm, &moving),
            Step::Reroute => self.rerouting(now, name, &vm, &moving),
            Step::Commit => self.committed(now, name, &vm, &moving),
            Step::Undo | Step::Back | Step::Resume => self.undoing(now, name, &vm, &moving),
            // These end a move.
            Step::Done | Step::Undone => {}
        }
    }

    pub(super) fn task(&mut self, name: &VmName) -> Option<&mut Task> {
        self.tasks.get_mut(name)
    }

    /// Whether the move can go on as far as its destination is concerned; otherwise it goes back.
    fn may_go_on(&mut self, now: Time, name: &VmName, vm: &Vm, moving: &Move) -> bool {
        let to = &moving.to.slot.host;
        let refused = self.task(name).and_then(|task| task.why.clone());
        let patience = self.options.patience;
        let why = if let Some(proof) = self.hosts.death(&moving.to) {
            Some(format!("the destination died: {proof}").into())
        } else if refused.is_some() {
            refused
        } else {
            // Who has only the image at the destination left waits for it.
            let away = self.hosts.away_since(to).filter(|_| self.hosts.death(&vm.place).is_none());
            away.filter(|since| *since + patience <= now)
                .map(|_| format!("host `{to}` cannot be reached").into())
        };
        let Some(why) = why else { return true };
        self.fail(name, why);
        false
    }

    /// The move goes back.
    pub(super) fn fail(&mut self, name: &VmName, why: impl Into<Why>) {
        if let Some(task) = self.task(name) {
            task.why = Some(why.into());
            task.sm = SmTalk::default();
        }
        if let Some((vm, moving)) = self.book.moving(name) {
            let slots = [vm.place.slot.clone(), moving.to.slot.clone()];
            slots.iter().for_each(|slot| self.hosts.drop_command(slot));
        }
        let epoch = self.book.epoch;
        self.advance(name, Step::Undo, epoch);
    }

    fn reserving(&mut self, now: Time, name: &VmName, vm: &Vm, moving: &Move) {
        if let Some(proof) = self.hosts.death(&vm.place) {
            return self.fail(name, proof.to_string());
        }
        if !self.may_go_on(now, name, vm, moving) {
            return;
        }
        let content = self.content(&moving.to.slot, moving.epoch);
        if content != Some(&Content::Reserved(name.clone())) {
            return self.hosts.command(now, &moving.to.slot, moving.epoch, Deed::Reserve(name.clone()));
        }
        let Some(task) = self.tasks.get_mut(name) else { return };
        if task.stages.reserve.is_none() {
            task.stages.reserve = task.mark(now);
        }
        let copies_first = task.detach == Detach::Late && !moving.cold;
        if copies_first && task.stages.pre_copy.is_none() {
            let takes = task.hypervisor.pre_copy;
            if !task.stage_over(now, takes) {
                return;
            }
            task.stages.pre_copy = task.mark(now);
        }
        if !self.is_held(now, name, vm, moving) {
            return;
        }
        self.advance_anew(name, Step::Freeze);
    }

    fn freezing(&mut self, now: Time, name: &VmName, vm: &Vm, moving: &Move) {
        let has_image = self.task(name).is_some_and(|task| task.image.is_some());
        if let Some(proof) = self.hosts.death(&vm.place).filter(|_| !has_image) {
            return self.fail(name, proof.to_string());
        }
        if !self.may_go_on(now, name, vm, moving) {
            return;
        }
        let (source, is_busy) = (&vm.place.slot, self.hosts.is_busy(&vm.place.slot));
        let is_frozen = self
            .content(source, moving.epoch)
            .is_some_and(|content| matches!(content, Content::Frozen(occupant) if occupant.vm == *name));
        // It may have got a LID since its move began. When the subnet manager dies too, no one else knows whose that is.
        let content = self.hosts.view(source).map(|view| &view.content);
        let occupant = content.and_then(Content::occupant).filter(|occupant| occupant.vm == *name);
        if let Some(lid) = occupant.map(|occupant| occupant.identity.port.lid) {
            self.note_lid(name, vm, lid);
        }
        let Some(task) = self.tasks.get_mut(name) else { return };
        if !is_frozen && !has_image {
            task.freeze_sent.get_or_insert(now);
            return self.hosts.command(now, source, moving.epoch, Deed::Freeze(name.clone()));
        }
        if task.stages.freeze.is_none() {
            task.stages.freeze = task.mark(now);
        }
        let copies_now = task.detach == Detach::Early && !moving.cold;
        if copies_now && task.stages.pre_copy.is_none() {
            let takes = task.hypervisor.pre_copy;
            if !task.stage_over(now, takes) {
                return;
            }
            task.stages.pre_copy = task.mark(now);
        }
        let stop_copy = if moving.cold { Time::ZERO } else { task.hypervisor.stop_copy };
        let copied = task.stage_over(now, stop_copy);
        if !copied && has_image {
            // From now on no one has the address, and packets of the old way are gone the sooner.
            if task.moves_ahead && !task.has_moved_ahead {
                task.sm = SmTalk::default();
                self.advance_anew(name, Step::Reroute);
            }
            return;
        }
        if !has_image {
            // Both go on beside each other: the rest of the memory is copied while the image is taken.
            if copied {
                task.stage_ends = None;
                task.hypervisor.stop_copy = Time::ZERO;
            }
            let deed = Deed::Export { vm: name.clone(), cold: moving.cold };
            if !is_busy {
                self.hosts.command(now, source, moving.epoch, deed);
            }
            return;
        }
        self.copied(now, name);
    }

    /// The image is complete.
    fn copied(&mut self, now: Time, name: &VmName) {
        let Some(task) = self.tasks.get_mut(name) else { return };
        task.stages.export = task.mark(now);
        self.advance_anew(name, Step::Import);
    }

    /// The address has moved ahead, or could not: the machine follows once its memory is copied.
    fn moved_ahead(&mut self, now: Time, name: &VmName) {
        let Some(task) = self.tasks.get_mut(name) else { return };
        if !std::mem::replace(&mut task.has_moved_ahead, true) {
            task.stages.reroute = task.mark(now);
            task.sm = SmTalk::default();
        }
        if task.stage_over(now, task.hypervisor.stop_copy) {
            self.copied(now, name);
        }
    }

    fn importing(&mut self, now: Time, name: &VmName, vm: &Vm, moving: &Move) {
        if !self.may_go_on(now, name, vm, moving) {
            return;
        }
        let has_arrived = self
            .content(&moving.to.slot, moving.epoch)
            .is_some_and(|content| matches!(content, Content::Imported(occupant) if occupant.vm == *name));
        if has_arrived {
            let Some(task) = self.tasks.get_mut(name) else { return };
            task.stages.import = task.mark(now);
            task.image = None;
            let resume = if moving.cold { Time::ZERO } else { task.hypervisor.resume };
            task.resume_at = Some(now + resume);
            task.sm = SmTalk::default();
            return self.advance_anew(name, Step::Reroute);
        }
        let Some(image) = self.task(name).and_then(|task| task.image.clone()) else {
            return self.fail(name, "the image is not at hand");
        };
        let mut identity = vm.identity.clone();
        identity.port = moving.displaced.filter(|_| self.is_renamed()).unwrap_or(identity.port);
        let occupant = Box::new(Occupant { vm: name.clone(), identity });
        let from_epoch = moving.frozen.unwrap_or(0);
        let deed = Deed::Import { occupant, from_epoch, image };
        self.hosts.command(now, &moving.to.slot, moving.epoch, deed);
    }

    fn rerouting(&mut self, now: Time, name: &VmName, vm: &Vm, moving: &Move) {
        if !self.may_go_on(now, name, vm, moving) {
            return;
        }
        let is_ahead = moving.imported.is_none();
        if is_ahead && self.task(name).is_some_and(|task| task.has_moved_ahead) {
            return self.moved_ahead(now, name);
        }
        let moves = self.address_moves(vm.identity.port, moving.displaced, &vm.place.slot, &moving.to.slot);
        match self.ask_sm(now, name, moving, moves) {
            Verdict::Wait => {}
            Verdict::Later => {
                self.advance_anew(name, Step::Reroute);
            }
            Verdict::Refused(why) if self.hosts.death(&vm.place).is_none() => {
                self.fail(name, format!("the subnet manager refuses: {why}"));
            }
            // It is asked again once the image has arrived: one that has taken over may know nothing of it.
            _ if is_ahead => self.moved_ahead(now, name),
            verdict => {
                if matches!(verdict, Verdict::Refused(_)) {
                    // What it does not move it would hold until the hold ends by itself.
                    self.release_hold(name, vm, moving);
                }
                if let Some(task) = self.tasks.get_mut(name) {
                    if let Verdict::Refused(why) = verdict {
                        task.notes
                            .push(format!("the subnet manager refused ({why}), and the source is dead"));
                    }
                    let took = task.mark(now);
                    task.stages.reroute = took.map(|took| took + task.stages.reroute.unwrap_or_default());
                }
                self.advance_anew(name, Step::Commit);
            }
        }
    }

    /// Whether GUIDs and LIDs stay with slots, so that no address moves.
    pub(super) fn is_renamed(&self) -> bool {
        self.options.scheme == Scheme::Function
    }

    /// The addresses that a move moves: both of a swap.
    pub(super) fn address_moves(
        &self,
        port: PortIdentity,
        displaced: Option<PortIdentity>,
        from: &Slot,
        to: &Slot,
    ) -> Vec<AddressMove> {
        let end = |slot: &Slot| {
            let physical = self.hosts.get(&slot.host).map(|host| host.adapter.port_guid);
            End { slot: slot.clone(), physical: physical.unwrap_or_default() }
        };
        let moves = |port: PortIdentity, is_live, from: &Slot, to: &Slot| AddressMove {
            port_guid: port.port_guid,
            lid: port.lid,
            is_live,
            from: end(from),
            to: end(to),
        };
        let spare = displaced.map(|spare| moves(spare, false, to, from));
        let all = std::iter::once(moves(port, true, from, to)).chain(spare);
        // A port without a LID has no rows.
        all.filter(|one| one.lid != Lid(0) && !self.is_renamed()).collect()
    }

    /// Asks the subnet manager, again if it does not answer, and says what it says.
    pub(super) fn ask_sm(
        &mut self,
        now: Time,
        name: &VmName,
        moving: &Move,
        moves: Vec<AddressMove>,
    ) -> Verdict {
        let (number, sm_timeout, is_renamed) =
            (self.sm_number + 1, self.options.sm_timeout, self.is_renamed());
        let Some(task) = self.tasks.get_mut(name) else { return Verdict::Wait };
        match task.sm.answer.take() {
            Some(SmAnswer::Done(counts)) => {
                let has_silent = counts.silent > 0;
                task.moved(now, counts);
                if has_silent {
                    self.ask_silent(now, name, moving.epoch, moves);
                }
                return Verdict::Moved;
            }
            // The one that holds the address is dead. This one may give the port another LID.
            Some(SmAnswer::Unknown) if task.is_promised && moving.step == Step::Reroute => {
                return Verdict::Refused(
                    "it does not know moves, and another one holds the address".to_owned(),
                );
            }
            Some(SmAnswer::Unknown) => {
                task.counts = None;
                task.notes
                    .push("the subnet manager does not know moves: a sweep has to find the port".to_owned());
                return Verdict::Moved;
            }
            Some(SmAnswer::Refused(words)) => return Verdict::Refused(words),
            Some(SmAnswer::OldEpoch(known)) => {
                task.sm.old_epochs += 1;
                if task.sm.old_epochs > OLD_EPOCHS_MAX || known > crate::agent::COUNT_MAX {
                    return Verdict::Refused(format!("it knows epoch {known} of this address"));
                }
                self.raise_epoch(known);
                return Verdict::Later;
            }
            Some(SmAnswer::Plan(_)) => return Verdict::Refused("it has only made a plan".to_owned()),
            Some(SmAnswer::Later(_) | SmAnswer::Timeout | SmAnswer::Unready(_)) | None => {}
        }
        if moves.is_empty() {
            if !is_renamed {
                task.notes.push("the port has no LID yet: a sweep has to find it".to_owned());
            }
            return Verdict::Moved;
        }
        if let Some((_, asked_at)) = task.sm.asked {
            if asked_at + sm_timeout > now {
                return Verdict::Wait;
            }
            task.sm.silent = true;
        } else if !task.may_try(now) {
            task.sm.silent = true;
            return Verdict::Wait;
        }
        let (wish, route) = (SmWish::Move, task.route);
        task.sm.asked = Some((number, now));
        self.sm_number = number;
        let request = SmRequest { number, epoch: moving.epoch, wish, route, moves };
        self.outputs.push_back(crate::Output::AskSm(request));
        Verdict::Wait
    }

    fn committed(&mut self, now: Time, name: &VmName, vm: &Vm, moving: &Move) {
        if let Some(proof) = self.hosts.death(&moving.to) {
            return self.lost(now, name, proof);
        }
        let epoch = moving.imported.unwrap_or(moving.epoch);
        let to = &moving.to.slot;
        let Some(content) = self.content(to, epoch).cloned() else { return };
        let Some(task) = self.tasks.get_mut(name) else { return };
        if task.stages.commit.is_none() {
            task.stages.commit = task.mark(now);
        }
        match content {
            Content::Running(occupant) if occupant.vm == *name => {
                self.runs(now, name, vm, moving, occupant.identity.port.lid);
            }
            Content::Imported(occupant) if occupant.vm == *name => {
                if task.resume_at.is_none_or(|at| at <= now) && task.may_try(now) {
                    task.resume_at = None;
                    self.hosts.command(now, to, moving.epoch, Deed::Activate(name.clone()));
                }
            }
            _ => self.lost(now, name, Proof::Absent(to.clone())),
        }
    }

    /// It runs at its destination.
    fn runs(&mut self, now: Time, name: &VmName, vm: &Vm, moving: &Move, lid: Lid) {
        let (patience, lid_patience) = (self.options.patience, self.options.lid_patience);
        let Some(task) = self.tasks.get_mut(name) else { return };
        if task.stages.activate.is_none() {
            task.stages.activate = task.mark(now);
            task.stages.runs_again = task.freeze_sent.map(|sent| now - sent);
            // Hosts that are silent until late rows are written are served last.
            let served = task.served_at.map_or(now, |served| served.max(now));
            task.stages.downtime = task.freeze_sent.map(|sent| served - sent);
            let silence = task.counts.as_ref().map(|counts| counts.silence);
            task.stages.silent_after = silence.filter(|silence| *silence > Time::ZERO).map(|_| served - now);
        }
        if task.counts.is_none() && lid == Lid(0) {
            // It runs, and no one reaches it before it has its LID.
            task.stages.downtime = None;
            let until = *task.lid_until.get_or_insert(now + lid_patience);
            if now < until {
                return;
            }
            task.notes.push("it has no LID yet, so its downtime has not ended".to_owned());
        }
        if task.lid_until.take().is_some() {
            task.stages.wait_for_lid = task.mark(now);
            task.stages.downtime = task.freeze_sent.filter(|_| lid != Lid(0)).map(|sent| now - sent);
            task.stages.runs_again = task.stages.downtime;
        }
        self.record(Record::Step { name: name.clone(), step: Step::Done, epoch: moving.epoch });
        if lid.is_unicast() && lid != self.book.lid(name) {
            self.record(Record::HasLid { name: name.clone(), lid });
        }
        self.counts.moved += 1;
        self.event(crate::Event::MoveStep { vm: name.to_string(), step: Step::Done, reason: None });
        let (from, epoch) = (vm.place.slot.clone(), self.book.epoch);
        self.mark_slot(now, from.clone(), Some(epoch));
        let disk = self.disk.written;
        if let Some(task) = self.tasks.get_mut(name) {
            task.disk = disk;
            task.release = Some(Release { from, epoch, until: now + patience });
        }
        if self.hosts.death(&vm.place).is_some()
            && let Some(release) = self.tasks.get_mut(name).and_then(|task| task.release.as_mut())
        {
            // There is nothing left to clear.
            release.until = now;
        }
        self.check.insert(name.clone());
    }
}
