//! Turns of moves: a machine whose move would have to wait for other moves' packets waits while it runs.
//!
//! ```text
//! Hold ─▶ a plan together with those that may be frozen already ─┬─ nothing waits ───────────────▶ may be frozen, until it has moved
//!                                                                └─ packets must be gone first ─▶ Later, with the time until then
//! ```

use std::collections::BTreeMap;

use weft_machine::Time;
use weft_wire::{Guid, VmMove};

/// How long one waits that was turned away, where no time is known: until another has moved.
pub(crate) const AGAIN: Time = Time::from_millis(200);

/// One that has waited for so long goes before others.
const PATIENCE: Time = Time::from_secs(5);

/// One that does not ask again this long after it might have does not want its turn any more.
const SLACK: Time = Time::from_secs(2);

/// Whether a machine may be frozen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Turn {
    /// It may, and hosts are silent for so long by its plan.
    Now(Time),
    /// Not yet: it may be asked again after this time.
    Later(Time),
    /// There is no safe plan for it.
    Never(String),
}

/// One that was turned away.
#[derive(Clone, Copy, Debug)]
struct First {
    guid: Guid,
    since: Time,
    /// Until when it keeps its place.
    until: Time,
}

/// Those that may be frozen, and the first that has to wait for that.
#[derive(Debug, Default)]
pub(crate) struct Turns {
    /// By GUID: the `Hold` of a machine that has not moved yet. No more than may be away.
    may: BTreeMap<Guid, VmMove>,
    first: Option<First>,
}

impl Turns {
    /// The holds of those that may be frozen, but for one.
    pub(crate) fn others(&self, than: Guid) -> impl Iterator<Item = &VmMove> {
        self.may.values().filter(move |hold| hold.guid != than)
    }

    /// Whether this one may be frozen already, by an earlier hold for the same move.
    pub(crate) fn is_granted(&self, hold: &VmMove) -> bool {
        let is_same =
            |known: &VmMove| VmMove { epoch: known.epoch, hold_s: known.hold_s, ..*hold }.asks_as(known);
        self.may.get(&hold.guid).is_some_and(is_same)
    }

    /// How long one waits for another's sake, which has waited long enough. With new moves all the time, packets of one or the other
    /// would always be under way for it.
    pub(crate) fn behind(&self, now: Time, guid: Guid) -> Option<Time> {
        let first = self.first.filter(|first| first.guid != guid && first.until > now)?;
        (first.since + PATIENCE <= now).then_some(AGAIN)
    }

    /// One may be frozen.
    pub(crate) fn grant(&mut self, hold: VmMove) {
        self.first = self.first.filter(|first| first.guid != hold.guid);
        self.may.insert(hold.guid, hold);
    }

    /// A request is turned away, to come again.
    pub(crate) fn turn_away(&mut self, now: Time, guid: Guid, wait: Time) {
        let until = now + wait + SLACK;
        match self.first.as_mut().filter(|first| first.until > now) {
            Some(first) if first.guid == guid => first.until = until,
            Some(_) => {}
            None => self.first = Some(First { guid, since: now, until }),
        }
    }

    /// One has moved, or does not move.
    pub(crate) fn forget(&mut self, guid: Guid) {
        self.may.remove(&guid);
        self.first = self.first.filter(|first| first.guid != guid);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hold(guid: u64) -> VmMove {
        VmMove { guid: Guid(guid), ..VmMove::default() }
    }

    #[test]
    fn others_are_those_that_may_be_frozen() {
        let mut turns = Turns::default();
        let others = |turns: &Turns, than| turns.others(Guid(than)).map(|one| one.guid.0).collect::<Vec<_>>();
        turns.grant(hold(1));
        turns.grant(hold(2));
        turns.grant(hold(1));
        assert_eq!((others(&turns, 3), others(&turns, 1)), (vec![1, 2], vec![2]));
        assert!(turns.is_granted(&VmMove { epoch: 7, hold_s: 9, ..hold(1) }) && !turns.is_granted(&hold(3)));
        assert!(!turns.is_granted(&VmMove { to_switch: Guid(5), ..hold(1) }), "another move");
        turns.forget(Guid(1));
        assert_eq!(others(&turns, 3), [2]);
    }

    #[test]
    fn one_that_has_waited_long_enough_is_next() {
        let mut turns = Turns::default();
        let at = Time::from_secs;
        turns.turn_away(at(10), Guid(1), at(4));
        turns.turn_away(at(11), Guid(2), at(4));
        assert_eq!(turns.behind(at(14), Guid(2)), None, "the first has not waited long");
        turns.turn_away(at(14), Guid(1), at(4));
        assert_eq!((turns.behind(at(15), Guid(2)), turns.behind(at(15), Guid(1))), (Some(AGAIN), None));
        assert_eq!(turns.behind(at(20), Guid(2)), None, "it has not asked again");
        turns.turn_away(at(21), Guid(2), at(4));
        turns.grant(hold(2));
        turns.turn_away(at(27), Guid(3), AGAIN);
        assert_eq!(turns.behind(at(28), Guid(1)), None, "the second has had its turn, and the third is new");
        turns.forget(Guid(3));
        assert_eq!(turns.behind(at(33), Guid(1)), None);
    }
}
