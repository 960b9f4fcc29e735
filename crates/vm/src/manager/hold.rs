//! Before a machine freezes, the subnet manager is informed that its address will be away (and
//! stays, if the move is undone). That is repeated: a hold ends by itself, or with its manager.
//!
//! So a move that the subnet manager would refuse ends while the machine still runs: one with a wrong SM_Key, or without any
//! subnet manager. And one that has to wait for packets of other moves waits while it runs.

use weft_machine::Time;

use super::VmManager;
use super::moves::OLD_EPOCHS_MAX;
use crate::Step;
use crate::error::Why;
use crate::names::VmName;
use crate::output::Output;
use crate::record::{Move, Vm};
use crate::sm::{SmAnswer, SmRequest, SmWish};
use crate::task::{SmTalk, Task};

/// The subnet manager is not asked again sooner, whatever it says.
pub(super) const LATER_MIN: Time = Time::from_millis(1);

/// How long a hold lasts that no one ends.
const HOLD_TIME: Time = Time::from_secs(60);

/// How often a hold is asked for again. A subnet manager that has forgotten it hears of it before the LID has rested for long enough to
/// be given to another port (40 s by default).
const HOLD_AGAIN: Time = Time::from_secs(20);

/// The end of a hold, until the subnet manager has heard of it.
#[derive(Debug)]
pub(super) struct Unheld {
    request: SmRequest,
    /// When it is sent again.
    pub(super) again_at: Option<Time>,
    until: Time,
}

impl VmManager {
    /// Whether the machine may be frozen as far as the subnet manager is concerned. If not, it is asked, or the move goes back.
    pub(super) fn is_held(&mut self, now: Time, name: &VmName, vm: &Vm, moving: &Move) -> bool {
        let moves = self.address_moves(vm.identity.port, moving.displaced, &vm.place.slot, &moving.to.slot);
        let timeout = self.options.sm_timeout;
        let Some(task) = self.task(name) else { return false };
        // A port without a LID has no rows.
        if task.is_held || moves.is_empty() {
            return true;
        }
        let waits = task.sm.asked.is_some_and(|(_, asked_at)| asked_at + timeout > now);
        let was_asked = task.sm.asked.is_some();
        match task.sm.answer.take() {
            Some(answer @ (SmAnswer::Done(_) | SmAnswer::Unknown)) => {
                (task.is_held, task.sm) = (true, SmTalk::default());
                task.is_promised = answer != SmAnswer::Unknown;
                task.moves_ahead = matches!(&answer, SmAnswer::Done(counts) if counts.silence > Time::ZERO);
                task.hold_again_at = Some(now + HOLD_AGAIN).filter(|_| task.is_promised);
                task.stages.hold = task.mark(now);
                return true;
            }
            Some(SmAnswer::Later(wait)) => {
                (task.sm, task.may_be_held) = (SmTalk::default(), false);
                task.again_at = Some(now + wait.clamp(LATER_MIN, timeout.max(LATER_MIN)));
                if !std::mem::replace(&mut task.is_held_back, true) {
                    task.notes.push("it ran on until packets of other moves were gone".to_owned());
                }
                return false;
            }
            Some(SmAnswer::OldEpoch(known))
                if task.sm.old_epochs < OLD_EPOCHS_MAX && known <= crate::agent::COUNT_MAX =>
            {
                task.sm.old_epochs += 1;
                self.raise_epoch(known);
            }
            Some(SmAnswer::Refused(words)) => {
                task.may_be_held = false;
                self.fail(name, format!("the subnet manager refuses: {words}"));
                return false;
            }
            Some(SmAnswer::Unready(words)) => {
                task.may_be_held = false;
                let words = format!("no subnet manager can hold its address: {words}");
                self.fail(name, Why::with_hint(words, "weft status"));
                return false;
            }
            Some(SmAnswer::OldEpoch(_) | SmAnswer::Plan(_) | SmAnswer::Timeout) => {
                self.fail(name, Why::with_hint("the subnet manager does not answer", "weft status"));
                return false;
            }
            None if waits || !task.may_try(now) => return false,
            None if was_asked => {
                self.fail(name, Why::with_hint("the subnet manager does not answer", "weft status"));
                return false;
            }
            None => {}
        }
        self.ask_to_hold(now, name, moves);
        false
    }

    fn ask_to_hold(&mut self, now: Time, name: &VmName, moves: Vec<crate::AddressMove>) {
        let epoch = self.next_epoch();
        self.sm_number += 1;
        let number = self.sm_number;
        let Some(task) = self.task(name) else { return };
        (task.sm.asked, task.may_be_held) = (Some((number, now)), true);
        let request = SmRequest { number, epoch, wish: SmWish::Hold, route: task.route, moves };
        self.outputs.push_back(Output::AskSm(request));
    }

    /// Asks for the hold of a frozen machine again. The repeated question for a move does for that, too.
    pub(super) fn hold_again(&mut self, now: Time, name: &VmName, vm: &Vm, moving: &Move) {
        let waits_for_copy = moving.imported.is_none() && moving.step == Step::Reroute;
        let asks_for_move = matches!(moving.step, Step::Reroute | Step::Back | Step::Commit)
            && !(waits_for_copy && self.task(name).is_some_and(|task| task.has_moved_ahead));
        let is_due =
            |task: &&mut Task| task.unheld.is_none() && task.hold_again_at.is_some_and(|at| at <= now);
        if moving.frozen.is_none() || asks_for_move || self.task(name).filter(is_due).is_none() {
            return;
        }
        let moves = self.address_moves(vm.identity.port, moving.displaced, &vm.place.slot, &moving.to.slot);
        let number = self.sm_number + 1;
        let Some(task) = self.task(name) else { return };
        task.hold_again_at = Some(now + HOLD_AGAIN);
        if moves.is_empty() {
            return;
        }
        task.hold_again = Some(number);
        // The step's epoch is in the journal, and the next step's move has a later one.
        let request = SmRequest { number, epoch: moving.epoch, wish: SmWish::Hold, route: task.route, moves };
        self.sm_number = number;
        self.outputs.push_back(Output::AskSm(request));
    }

    /// Such a question was answered, or was not. Nothing but the next one follows from it: the machine is frozen already.
    pub(super) fn held_again(&mut self, now: Time, number: u64, answer: &SmAnswer) -> bool {
        let retry = now + self.options.sm_retry;
        let mut tasks = self.tasks.values_mut();
        let Some(task) = tasks.find(|task| task.hold_again == Some(number)) else { return false };
        task.hold_again = None;
        match answer {
            SmAnswer::Unknown => task.hold_again_at = None,
            SmAnswer::Later(_) | SmAnswer::Timeout | SmAnswer::Unready(_) => {
                task.hold_again_at = task.hold_again_at.map(|at| at.min(retry));
            }
            SmAnswer::Done(_) | SmAnswer::Plan(_) | SmAnswer::OldEpoch(_) | SmAnswer::Refused(_) => {}
        }
        true
    }

    /// Sends the release if needed; whether the subnet manager has it or is silent for too long.
    pub(super) fn is_unheld(&mut self, now: Time, name: &VmName, vm: &Vm, moving: &Move) -> bool {
        let told = self.task(name).and_then(|task| task.unheld);
        if let Some((number, until)) = told {
            return now >= until || !self.releases.contains_key(&number);
        }
        let Some(number) = self.release_hold(name, vm, moving) else { return true };
        let until = now + self.options.patience;
        match self.task(name) {
            Some(task) => task.unheld = Some((number, until)),
            None => return true,
        }
        false
    }

    /// Tells the subnet manager that an address stays away no longer. Its answer changes nothing,
    /// as a hold ends by itself; it repeats until one, as the port waits. `None`: nothing was held.
    pub(super) fn release_hold(&mut self, name: &VmName, vm: &Vm, moving: &Move) -> Option<u64> {
        // A manager that died may have been granted a hold that it has not written down.
        let is_held = self.task(name).is_some_and(|task| task.may_be_held || task.recovered);
        let moves = self.address_moves(vm.identity.port, moving.displaced, &vm.place.slot, &moving.to.slot);
        if moves.is_empty() || !(is_held || moving.frozen.is_some()) {
            return None;
        }
        let epoch = self.next_epoch();
        self.sm_number += 1;
        let number = self.sm_number;
        let route = self.task(name).map(|task| task.route).unwrap_or_default();
        let request = SmRequest { number, epoch, wish: SmWish::Release, route, moves };
        self.outputs.push_back(Output::AskSm(request.clone()));
        let until = self.ran_at + HOLD_TIME;
        self.releases.insert(number, Unheld { request, again_at: None, until });
        Some(number)
    }

    /// An end of a hold was answered, or was not.
    pub(super) fn unheld(&mut self, now: Time, number: u64, answer: &SmAnswer) -> bool {
        let Some(mut release) = self.releases.remove(&number) else { return false };
        let is_waited_for = self.tasks.values().any(|task| task.unheld.is_some_and(|(own, _)| own == number));
        match answer {
            SmAnswer::Timeout | SmAnswer::Unready(_) if now < release.until => {
                release.again_at = Some(now + self.options.sm_retry);
            }
            // An earlier manager's hold, of which the journal has no epoch. No later move can have begun meanwhile.
            SmAnswer::OldEpoch(known) if is_waited_for => {
                self.raise_epoch(*known);
                (release.request.epoch, release.again_at) = (self.next_epoch(), Some(now));
            }
            _ => return true,
        }
        self.releases.insert(number, release);
        true
    }

    /// Tells ends of holds again that were not answered. A later move of the same address has a later epoch, so nothing is ended of that.
    pub(super) fn release_again(&mut self, now: Time) {
        for release in self.releases.values_mut().filter(|one| one.again_at.is_some_and(|at| at <= now)) {
            release.again_at = None;
            self.outputs.push_back(Output::AskSm(release.request.clone()));
        }
    }
}
