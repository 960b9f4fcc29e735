//! Unconfirmed Sets: an attempt may still be under way and change something behind the manager's back.
//!
//! A Set that timed out was sent again. When one attempt has been answered, another one may still arrive, and write
//! the old value over whatever the manager has written meanwhile; a switch's PortStateChange may be cleared that
//! no one has seen. So what such a Set wrote is in doubt, and is read back once nothing can be that late any more.

use std::collections::BTreeMap;

use weft_machine::Time;
use weft_wire::Guid;

use crate::knowledge::Key;

/// How long a packet can be under way: five switches that each hold it for as long as the manager lets them, which is
/// 1.07 s (`hoq_life`, IBA 18.2.5.4).
pub(crate) const LATE_MAX: Time = Time::from_secs(5);

/// How many Sets are kept one by one. With more than that, everything is in doubt.
const UNCONFIRMED_MAX: usize = 1 << 16;

/// What is in doubt, and since when: the later of two times, when it was written twice.
#[derive(Debug, Default)]
pub(crate) struct Unconfirmed {
    /// By node; the places of nodes in the keys mean nothing.
    since: BTreeMap<(Guid, Key), Time>,
    /// Since when everything is.
    everything: Option<Time>,
}

impl Unconfirmed {
    pub(crate) fn note(&mut self, now: Time, guid: Guid, key: Key) {
        let thing = (guid, key.at_node(0));
        if self.since.len() >= UNCONFIRMED_MAX && !self.since.contains_key(&thing) {
            return self.note_everything(now);
        }
        self.since.insert(thing, now);
    }

    /// Whatever anybody has written may yet change.
    pub(crate) fn note_everything(&mut self, now: Time) {
        self.since.clear();
        self.everything = Some(now);
    }

    /// Since when everything is in doubt, to be asked once: whoever asks reads all of it.
    pub(crate) fn take_everything(&mut self) -> Option<Time> {
        self.everything.take()
    }

    /// Whether what has been acknowledged just now may yet change. Later than [`LATE_MAX`] it cannot, though what was there before is
    /// still to be read back.
    pub(crate) fn contains(&self, now: Time, guid: Guid, key: Key) -> bool {
        let one = self.since.get(&(guid, key.at_node(0)));
        self.everything.iter().chain(one).any(|since| *since + LATE_MAX > now)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.since.is_empty() && self.everything.is_none()
    }

    /// What can be read back now, `most` of it.
    pub(crate) fn due(&self, now: Time, most: usize) -> Vec<(Guid, Key)> {
        let due = self.since.iter().filter(|(_, since)| **since + LATE_MAX <= now);
        due.map(|(thing, _)| *thing).take(most).collect()
    }

    /// These were due at `then` and have been read, or are gone. What was written again since stays in doubt.
    pub(crate) fn settle(&mut self, then: Time, read: &[(Guid, Key)]) {
        for thing in read {
            if self.since.get(thing).is_some_and(|since| *since + LATE_MAX <= then) {
                self.since.remove(thing);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BLOCK: Key = Key::Lft { node: 7, block: 3 };
    const GUID: Guid = Guid(1);

    #[test]
    fn doubtful_writes_are_due_when_no_late_smp_can_arrive() {
        let mut unconfirmed = Unconfirmed::default();
        assert!(unconfirmed.is_empty());
        unconfirmed.note(Time::from_secs(1), GUID, BLOCK);
        unconfirmed.note(Time::from_secs(2), GUID, Key::SwitchInfo(7));
        let first = Time::from_secs(1) + LATE_MAX;
        assert_eq!(unconfirmed.due(Time::from_millis(5_999), 9), []);
        let due = unconfirmed.due(first, 9);
        assert_eq!(due, [(GUID, Key::Lft { node: 0, block: 3 })]);
        assert_eq!(unconfirmed.due(Time::from_secs(9), 1).len(), 1, "no more than was wanted");
        unconfirmed.settle(first, &due);
        assert_eq!(unconfirmed.due(Time::from_secs(9), 9), [(GUID, Key::SwitchInfo(0))]);
    }

    #[test]
    fn rewritten_blocks_stay_in_doubt() {
        let mut unconfirmed = Unconfirmed::default();
        unconfirmed.note(Time::ZERO, GUID, BLOCK);
        let due = unconfirmed.due(LATE_MAX, 9);
        unconfirmed.note(LATE_MAX, GUID, BLOCK);
        unconfirmed.settle(LATE_MAX, &due);
        assert!(!unconfirmed.is_empty());
    }

    #[test]
    fn writes_after_the_late_limit_are_not_in_doubt() {
        let (soon, late) = (LATE_MAX.saturating_sub(Time::from_nanos(1)), LATE_MAX);
        for everything in [false, true] {
            let mut unconfirmed = Unconfirmed::default();
            match everything {
                true => unconfirmed.note_everything(Time::ZERO),
                false => unconfirmed.note(Time::ZERO, GUID, BLOCK),
            }
            assert!(unconfirmed.contains(soon, GUID, BLOCK) && !unconfirmed.contains(late, GUID, BLOCK));
            assert_eq!(unconfirmed.contains(soon, GUID, Key::SwitchInfo(7)), everything);
            assert!(!unconfirmed.is_empty(), "what was there before is still to be read");
        }
    }

    #[test]
    fn with_too_many_everything_is_in_doubt() {
        let mut unconfirmed = Unconfirmed::default();
        for guid in 0..=UNCONFIRMED_MAX as u64 {
            unconfirmed.note(Time::from_secs(1), Guid(guid), BLOCK);
        }
        assert_eq!(unconfirmed.due(Time::from_secs(99), 9), []);
        assert!(!unconfirmed.is_empty());
        assert_eq!((unconfirmed.take_everything(), unconfirmed.is_empty()), (Some(Time::from_secs(1)), true));
    }
}
