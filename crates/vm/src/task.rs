//! Work under way on a virtual machine, besides what the journal has of it.

use weft_machine::Time;
use weft_vocabulary::vm::{MoveCounts, Silent};

use crate::agent::Image;
use crate::error::Why;
use crate::names::Slot;
use crate::request::{Detach, Hypervisor, RequestId};
use crate::sm::{Route, SmAnswer, Stages};

/// A creation, a removal or a move. It dies with the manager; the journal does not.
#[derive(Clone, Debug, Default)]
pub(crate) struct Task {
    /// Who waits for it.
    pub(crate) request: Option<RequestId>,
    /// Until when.
    pub(crate) answer_by: Time,
    /// The write that has to be on disk before anything else is done.
    pub(crate) disk: u64,
    /// Whether an earlier manager began it.
    pub(crate) recovered: bool,
    /// Nothing is tried again before.
    pub(crate) again_at: Option<Time>,
    /// How long to wait when an agent refuses to activate it.
    pub(crate) activate_again: Time,
    /// Why its agent does not let it run at its new place, in words.
    pub(crate) refused: Option<String>,
    /// Why it failed.
    pub(crate) why: Option<Why>,
    pub(crate) notes: Vec<String>,
    pub(crate) detach: Detach,
    pub(crate) hypervisor: Hypervisor,
    pub(crate) route: Route,
    /// Whether the subnet manager holds the address, or does not know how.
    pub(crate) is_held: bool,
    /// Whether it holds it: then the move is committed only once it has moved it, whoever takes its place.
    pub(crate) is_promised: bool,
    /// Whether the subnet manager was asked to hold it, and has not said that it does not: the answer may have been lost.
    pub(crate) may_be_held: bool,
    /// When the subnet manager is asked again to hold it, while it is frozen; `None` where it does not know how.
    pub(crate) hold_again_at: Option<Time>,
    /// The last such question, until it is answered.
    pub(crate) hold_again: Option<u64>,
    /// Whether its plan keeps hosts silent until packets of the old way are gone, so that the address moves ahead of the machine.
    pub(crate) moves_ahead: bool,
    /// Whether the address has moved ahead.
    pub(crate) has_moved_ahead: bool,
    /// Whether it had to run on because packets of other moves were under way.
    pub(crate) is_held_back: bool,
    /// The message that ended the hold, and until when its answer is waited for.
    pub(crate) unheld: Option<(u64, Time)>,
    /// Whether the destination was ordered to give up what has arrived there.
    pub(crate) has_vacated: bool,
    pub(crate) stages: Stages,
    began: Time,
    marked: Time,
    /// When the source was ordered to freeze.
    pub(crate) freeze_sent: Option<Time>,
    /// When an emulated stage of the hypervisor ends.
    pub(crate) stage_ends: Option<Time>,
    pub(crate) image: Option<Image>,
    /// When the destination may run at the earliest.
    pub(crate) resume_at: Option<Time>,
    pub(crate) sm: SmTalk,
    pub(crate) counts: Option<MoveCounts>,
    /// The question at which switches hosts are silent by that move, and until when its answer is waited for.
    pub(crate) asks_silent: Option<(u64, Time)>,
    pub(crate) silent: Vec<Silent>,
    /// When the last hosts are served that are silent by the subnet manager's plan, at the latest.
    pub(crate) served_at: Option<Time>,
    /// Until when a LID is waited for.
    pub(crate) lid_until: Option<Time>,
    /// The slot that is to be cleared after a move, where it came from, and until when the client waits for that.
    pub(crate) release: Option<Release>,
}

/// The end of a move.
#[derive(Clone, Debug)]
pub(crate) struct Release {
    pub(crate) from: Slot,
    /// The command that clears it has to be later than this.
    pub(crate) epoch: u64,
    pub(crate) until: Time,
}

/// A question to the subnet manager.
#[derive(Clone, Debug, Default)]
pub(crate) struct SmTalk {
    /// Its number, and when it was asked.
    pub(crate) asked: Option<(u64, Time)>,
    pub(crate) answer: Option<SmAnswer>,
    /// Whether its last answer did not come.
    pub(crate) silent: bool,
    /// How often it said that the epoch is old.
    pub(crate) old_epochs: u32,
}

impl Task {
    pub(crate) fn new(now: Time, request: Option<RequestId>, answer_within: Time) -> Self {
        // What an earlier manager was granted may be about to end.
        let hold_again_at = Some(now);
        let (began, marked, answer_by) = (now, now, now + answer_within);
        Self { request, answer_by, began, marked, hold_again_at, ..Self::default() }
    }

    /// How long it is since the last mark, which is now.
    pub(crate) fn mark(&mut self, now: Time) -> Option<Time> {
        let span = now - std::mem::replace(&mut self.marked, now);
        self.stages.total = now - self.began;
        Some(span)
    }

    /// The subnet manager has moved the address. What it says of one that it had moved already is about nothing.
    pub(crate) fn moved(&mut self, now: Time, counts: MoveCounts) {
        let served = now + counts.silence;
        self.served_at = Some(self.served_at.map_or(served, |before| before.max(served)));
        if self.counts.is_none() || counts.rounds > 0 {
            self.counts = Some(counts);
        }
    }

    /// Whether no one is waited for any more who says at which switches hosts are silent.
    pub(crate) fn knows_silent(&mut self, now: Time) -> bool {
        self.asks_silent.take_if(|(_, until)| *until <= now);
        self.asks_silent.is_none()
    }

    /// Whether a stage of the hypervisor is over, which begins with the first question.
    pub(crate) fn stage_over(&mut self, now: Time, takes: Time) -> bool {
        let ends = *self.stage_ends.get_or_insert(now + takes);
        if ends <= now {
            self.stage_ends = None;
        }
        ends <= now
    }

    pub(crate) fn may_try(&mut self, now: Time) -> bool {
        let may = self.again_at.is_none_or(|at| at <= now);
        if may {
            self.again_at = None;
        }
        may
    }

    /// When something is to be done without any input.
    pub(crate) fn moments(&self) -> impl Iterator<Item = Time> {
        let release = self.release.as_ref().map(|release| release.until);
        let unheld = self.unheld.map(|(_, until)| until);
        let silent = self.asks_silent.map(|(_, until)| until);
        let moments = [
            self.stage_ends,
            self.resume_at,
            self.again_at,
            self.lid_until,
            self.hold_again_at,
            release,
            unheld,
            silent,
        ];
        moments.into_iter().flatten()
    }
}
