//! At which switches hosts hear nothing for a time after a move, asked of the subnet manager once it has carried the move out: a plan that was
//! asked for before can be another one, as the move may have waited for packets of others.

use weft_machine::Time;

use super::VmManager;
use crate::names::VmName;
use crate::sm::{AddressMove, SmAnswer, SmRequest, SmWish};

/// How long a move's answer waits for it. The machine runs by then.
const PATIENCE: Time = Time::from_secs(2);

impl VmManager {
    /// Asks of the move of this epoch.
    pub(super) fn ask_silent(&mut self, now: Time, name: &VmName, epoch: u64, moves: Vec<AddressMove>) {
        let number = self.sm_number + 1;
        let Some(task) = self.tasks.get_mut(name) else { return };
        task.asks_silent = Some((number, now + PATIENCE));
        self.sm_number = number;
        let request = SmRequest { number, epoch, wish: SmWish::Silent, route: task.route, moves };
        self.outputs.push_back(crate::Output::AskSm(request));
    }

    /// Such a question was answered, or was not: then it is not known.
    pub(super) fn told_silent(&mut self, number: u64, answer: &SmAnswer) -> bool {
        let is_asked = |task: &&mut crate::task::Task| task.asks_silent.is_some_and(|(own, _)| own == number);
        let Some(task) = self.tasks.values_mut().find(is_asked) else { return false };
        task.asks_silent = None;
        if let SmAnswer::Plan(plan) = answer {
            task.silent.clone_from(&plan.silent);
        }
        true
    }
}
