//! The VM manager's word to a subnet manager that has just come into charge: the address of each machine, and the holds of those
//! that are frozen. Such a subnet manager finds LIDs with rows and without a port, and cannot know whose they are.
//!
//! ```text
//!   every second: Set(VmMove: Announced) ─┬─ Done: it has heard everything
//!                                         └─ Untold, with the number of its mastership ─▶ Hold and Address of each ─▶ Announced
//! ```

use std::collections::VecDeque;

use weft_machine::Time;
use weft_wire::{AddressedMad, Method, PortInfo, VmMove, VmMoveKind, VmMoveResult, sa_attribute};

use super::finding::Known;
use super::{Job, Key, SaClient, SubnetManager, answer};
use crate::places::Places;
use crate::sm::{SmAnswer, SmRequest, SmWish};

/// Addresses that are under way at once.
const AT_ONCE: usize = 64;

/// What a subnet manager has heard.
#[derive(Debug, Default)]
pub(super) struct Word {
    /// The number of its mastership; 0 before one has said that it has not heard of the addresses.
    mastership: u32,
    /// Whether the manager is to be asked for them.
    is_wanted: bool,
    /// Those that are still to be sent.
    rest: VecDeque<(u64, VmMove)>,
    /// The last question that belongs to it.
    last: u64,
    /// Whether one of them was not answered.
    has_failed: bool,
    /// Whether it was said that this is all.
    is_told: bool,
}

impl Word {
    /// An address was answered.
    pub(super) fn answered(&mut self, answer: &SmAnswer) {
        self.has_failed |= matches!(answer, SmAnswer::Timeout | SmAnswer::Unready(_) | SmAnswer::Unknown);
    }
}

impl SaClient {
    /// Looks whether the own port names the same subnet manager, and asks that one whether it has heard of all addresses.
    pub(super) fn watch(&mut self) {
        match self.known {
            Known::Unknown => self.find(),
            Known::Moves(_) | Known::MovesNot(_) => {
                if let Some(request) = self.own_port() {
                    // Where the queue is full, the next look does.
                    let _ = self.probes.offer(Key::Watch, request);
                }
            }
            Known::Finding | Known::Asking(_) | Known::Again(_) => {}
        }
    }

    /// The own port names a subnet manager.
    pub(super) fn watched(&mut self, info: &PortInfo) {
        let (Known::Moves(sm) | Known::MovesNot(sm)) = self.known else { return };
        if sm.lid != info.master_sm_lid {
            self.known = Known::Unknown;
            self.ask_all_again();
            return self.find();
        }
        if matches!(self.known, Known::Moves(_)) {
            self.beat(sm);
        }
    }

    fn beat(&mut self, sm: SubnetManager) {
        let is_all = !self.word.is_wanted && !self.word.has_failed && !self.is_announcing();
        let mastership = if is_all { self.word.mastership } else { 0 };
        let ask = VmMove { kind: VmMoveKind::Announced, mastership, ..VmMove::default() };
        let mad = self.keyed(sm, Method::Set, sa_attribute::VM_MOVE, &ask);
        let _ = self.probes.offer(Key::Beat, mad);
    }

    /// Whether questions that belong to the word are open.
    fn is_announcing(&self) -> bool {
        let belongs = |(number, job): (&u64, &Job)| {
            *number <= self.word.last && matches!(job.wish, SmWish::Hold | SmWish::Address)
        };
        !self.word.rest.is_empty() || self.jobs.iter().any(belongs)
    }

    pub(super) fn beat_answered(&mut self, mad: &AddressedMad) {
        let said = answer::attribute(mad);
        match said.result {
            VmMoveResult::Done => self.word.is_told = true,
            VmMoveResult::Untold => {
                let goes_on = self.word.mastership == said.mastership && self.is_announcing();
                if !goes_on {
                    self.word = Word { mastership: said.mastership, is_wanted: true, ..Word::default() };
                }
            }
            // One that knows moves always has a result, but for a wrong key.
            VmMoveResult::None if answer::refused(mad).is_none() => self.forget(),
            _ => {}
        }
    }

    /// Whether a subnet manager wants to hear of all addresses.
    pub(crate) fn wants_word(&self) -> bool {
        self.word.is_wanted
    }

    /// Takes the addresses of all machines. Holds that belong to them have been asked for, up to the question `last`.
    pub(crate) fn take_word(&mut self, addresses: &[SmRequest], last: u64, places: &Places) {
        let asks = addresses.iter().filter_map(|one| Some((one.number, answer::vm_move(one, places)?)));
        (self.word.rest, self.word.last, self.word.is_wanted) = (asks.collect(), last, false);
    }

    /// Sends what is still to be sent, and then that this is all.
    pub(super) fn announce(&mut self, now: Time, sm: SubnetManager) {
        let Word { mastership, is_wanted, is_told, has_failed, .. } = self.word;
        if mastership == 0 || is_wanted || is_told {
            return;
        }
        let open = self.jobs.values().filter(|job| job.wish == SmWish::Address).count();
        for _ in open..AT_ONCE {
            let Some((number, ask)) = self.word.rest.pop_front() else { break };
            self.open(now, number, SmWish::Address, ask);
            self.send(number, sm);
        }
        if !has_failed && !self.is_announcing() {
            // Whether that arrives the next look shows.
            self.word.is_told = true;
            self.beat(sm);
        }
    }
}
