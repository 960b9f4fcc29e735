//! LIDs of which some switches get their rows late, once packets to the old place are gone.

use std::collections::{BTreeMap, BTreeSet};

use weft_machine::Time;
use weft_wire::Guid;

/// Rows of a LID that are due.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Due {
    /// The port GUID that has it.
    pub(crate) guid: Guid,
    /// When it has moved, and how long its rows were to be missing then.
    since: Time,
    wait: Time,
    at: Time,
    /// The switches with detours that are to be replaced; none where rows are missing.
    pub(crate) detours: BTreeSet<Guid>,
}

impl Due {
    /// Whether hosts are silent until the rows are there.
    pub(crate) fn is_missing(&self) -> bool {
        self.detours.is_empty()
    }
}

/// By port GUID, and whether it is about detours. A heavy sweep does for rows that are missing, and leaves detours as rows that hold.
#[derive(Debug, Default)]
pub(crate) struct Late {
    due: BTreeMap<(Guid, bool), Due>,
    /// By port GUID: the switches with hosts that are silent until its rows are there.
    silent: BTreeMap<Guid, BTreeSet<Guid>>,
}

impl Late {
    /// A GUID's LID has moved, and rows are missing that are due after a time.
    pub(crate) fn expect(&mut self, now: Time, guid: Guid, wait: Time, silent: BTreeSet<Guid>) {
        self.silent.insert(guid, silent);
        self.insert(Due { guid, since: now, wait, at: now + wait, detours: BTreeSet::new() });
    }

    /// A GUID's LID has moved, and switches have detours that may be replaced after a time.
    pub(crate) fn expect_detours(&mut self, now: Time, guid: Guid, wait: Time, detours: BTreeSet<Guid>) {
        self.due.remove(&(guid, true));
        if !detours.is_empty() {
            self.insert(Due { guid, since: now, wait, at: now + wait, detours });
        }
    }

    fn insert(&mut self, due: Due) {
        self.due.insert((due.guid, !due.is_missing()), due);
    }

    /// Takes those that are due.
    pub(crate) fn take(&mut self, now: Time) -> Vec<Due> {
        self.due.extract_if(.., |_, due| due.at <= now).map(|(_, due)| due).collect()
    }

    /// The switches whose hosts are silent until the rows of a GUID's LID are there.
    pub(crate) fn silent(&self, guid: Guid) -> impl Iterator<Item = Guid> {
        self.silent.get(&guid).into_iter().flatten().copied()
    }

    /// The rows of a GUID's LID are there: the switches whose hosts were silent until then.
    pub(crate) fn take_silent(&mut self, guid: Guid) -> BTreeSet<Guid> {
        self.silent.remove(&guid).unwrap_or_default()
    }

    /// They are due later than was thought.
    pub(crate) fn postpone(&mut self, late: Vec<Due>, at: Time) {
        late.into_iter().for_each(|due| self.insert(Due { at, ..due }));
    }

    /// When the first of them are due.
    pub(crate) fn next(&self) -> Option<Time> {
        self.due.values().map(|due| due.at).min()
    }

    fn missing(&self) -> impl Iterator<Item = &Due> {
        self.due.values().filter(|due| due.is_missing())
    }

    /// How many LIDs have missing rows.
    pub(crate) fn count(&self) -> u32 {
        self.missing().count() as u32
    }

    /// Whether any rows are missing.
    pub(crate) fn is_any(&self) -> bool {
        self.count() > 0
    }

    /// Whether some are missing for so long that new moves have to wait for them.
    pub(crate) fn is_overdue(&self, now: Time) -> bool {
        self.missing().any(|due| due.since + due.wait + due.wait <= now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn late_rows_are_due_once_and_overdue_if_postponed_long() {
        let (mut late, at) = (Late::default(), Time::from_secs);
        let guids = |due: &[Due]| due.iter().map(|due| due.guid.0).collect::<Vec<_>>();
        late.expect(at(1), Guid(7), at(5), BTreeSet::from([Guid(1)]));
        late.expect(at(2), Guid(8), at(5), BTreeSet::new());
        assert_eq!((late.next(), late.take(at(5))), (Some(at(6)), vec![]));
        let first = late.take(at(6));
        assert_eq!((guids(&first), late.is_any()), (vec![7], true));
        late.postpone(first, at(10));
        assert_eq!((late.is_overdue(at(10)), late.is_overdue(at(11))), (false, true));
        assert_eq!(guids(&late.take(at(10))), [7, 8]);
        assert_eq!((late.next(), late.is_any()), (None, false));
        assert_eq!((late.take_silent(Guid(7)).len(), late.take_silent(Guid(7)).len()), (1, 0), "once");
    }

    #[test]
    fn detours_are_due_apart_and_keep_no_one_waiting() {
        let (mut late, at) = (Late::default(), Time::from_secs);
        late.expect(at(0), Guid(7), at(1), BTreeSet::new());
        late.expect_detours(at(0), Guid(7), at(3), BTreeSet::from([Guid(1)]));
        assert_eq!((late.count(), late.take(at(1)).len()), (1, 1));
        assert!(!late.is_any() && !late.is_overdue(at(9)), "its hosts are served");
        // It has moved on.
        late.expect_detours(at(2), Guid(7), at(3), BTreeSet::new());
        assert_eq!((late.take(at(9)), late.next()), (vec![], None));
    }
}
