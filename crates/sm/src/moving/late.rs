//! LIDs of which some switches get their rows late, once packets to the old place are gone.

use std::collections::BTreeMap;

use weft_machine::Time;
use weft_wire::Guid;

/// When a LID has moved, and when its last rows are due.
#[derive(Clone, Copy, Debug)]
struct Due {
    since: Time,
    at: Time,
}

/// By port GUID. A heavy sweep does for them all.
#[derive(Debug, Default)]
pub(crate) struct Late {
    due: BTreeMap<Guid, Due>,
}

impl Late {
    /// A GUID's LID has moved, and its last rows are due at a time.
    pub(crate) fn expect(&mut self, now: Time, guid: Guid, at: Time) {
        self.due.insert(guid, Due { since: now, at });
    }

    /// Takes those whose last rows are due, each with the time since when they are missing.
    pub(crate) fn take(&mut self, now: Time) -> Vec<(Guid, Time)> {
        self.due.extract_if(.., |_, due| due.at <= now).map(|(guid, due)| (guid, due.since)).collect()
    }

    /// They are due later than was thought.
    pub(crate) fn postpone(&mut self, late: Vec<(Guid, Time)>, at: Time) {
        self.due.extend(late.into_iter().map(|(guid, since)| (guid, Due { since, at })));
    }

    /// When the first of them are due.
    pub(crate) fn next(&self) -> Option<Time> {
        self.due.values().map(|due| due.at).min()
    }

    /// How many there are.
    pub(crate) fn count(&self) -> u32 {
        self.due.len() as u32
    }

    pub(crate) fn is_any(&self) -> bool {
        !self.due.is_empty()
    }

    /// Whether some are missing for so long that new moves have to wait for them.
    pub(crate) fn is_overdue(&self, now: Time, packets_gone: Time) -> bool {
        self.due.values().any(|due| due.since + packets_gone + packets_gone <= now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_due_once_and_overdue_when_they_were_postponed_for_long() {
        let (mut late, at) = (Late::default(), Time::from_secs);
        late.expect(at(1), Guid(7), at(6));
        late.expect(at(2), Guid(8), at(7));
        assert_eq!((late.next(), late.take(at(5))), (Some(at(6)), vec![]));
        let first = late.take(at(6));
        assert_eq!((first.as_slice(), late.is_any()), (&[(Guid(7), at(1))][..], true));
        late.postpone(first, at(10));
        assert_eq!((late.is_overdue(at(10), at(5)), late.is_overdue(at(11), at(5))), (false, true));
        assert_eq!(late.take(at(10)), [(Guid(7), at(1)), (Guid(8), at(2))]);
        assert_eq!((late.next(), late.is_any()), (None, false));
    }
}
