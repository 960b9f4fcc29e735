//! Ports whose ways are about to have other service levels: queue pairs to them are held.

use serde::{Deserialize, Serialize};
use weft_machine::Time;
use weft_wire::{Guid, Lid};

use super::{PATHS_MAX, Path, Paths, State};
use crate::stack::clock::Rebase;
use crate::traffic::PathSource;

/// Queue pairs to a port are held.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::stack) struct Hold {
    /// The LID of the port.
    pub(in crate::stack) lid: Lid,
    /// For how long at most.
    pub(in crate::stack) until: Time,
    /// Whether they go on as soon as the path is known again.
    pub(in crate::stack) is_over: bool,
}

impl Paths {
    /// Queue pairs to a port are held from now on. False: there are too many such ports.
    pub(in crate::stack) fn hold(&mut self, guid: Guid, hold: Hold) -> bool {
        let has_room = self.holds.len() < PATHS_MAX || self.holds.contains_key(&guid);
        if has_room {
            self.holds.insert(guid, hold);
        }
        has_room
    }

    /// Whether queue pairs to a port are held.
    pub(in crate::stack) fn is_held(&self, guid: Guid) -> bool {
        !self.holds.is_empty() && self.holds.contains_key(&guid)
    }

    /// When the first of the holds has lasted long enough that is not over.
    pub(in crate::stack) fn holds_end(&self) -> Option<Time> {
        self.holds.values().filter(|hold| !hold.is_over).map(|hold| hold.until).min()
    }

    /// A hold ends with the next answer. Whether there was one.
    pub(in crate::stack) fn end_hold(&mut self, guid: Guid) -> bool {
        self.holds.get_mut(&guid).map(|hold| hold.is_over = true).is_some()
    }

    /// The ports whose holds have lasted long enough.
    pub(in crate::stack) fn held_too_long(&self, now: Time) -> Vec<Guid> {
        let is_due = |(_, hold): &(&Guid, &Hold)| !hold.is_over && hold.until <= now;
        self.holds.iter().filter(is_due).map(|(guid, _)| *guid).collect()
    }

    /// Takes out the holds that are over, of ports for whose paths no answer is awaited.
    pub(in crate::stack) fn take_ended(&mut self) -> Vec<(Guid, Hold)> {
        let (list, places) = (&self.list, &self.places);
        let is_awaited = |guid: Guid| {
            let places = [false, true].into_iter().filter_map(|kind| places.get(&(guid, kind)));
            let mut states = places.filter_map(|place| Some(list.get(*place as usize)?.state));
            states.any(|state| matches!(state, State::Wanted | State::Asked { .. }))
        };
        self.holds.extract_if(.., |guid, hold| hold.is_over && !is_awaited(*guid)).collect()
    }

    /// The ports of all paths whose levels subnet administration knows.
    pub(in crate::stack) fn ports_asked_for(&self) -> Vec<(Guid, Lid)> {
        let asked = |path: &&Path| path.source == PathSource::PathRecord && !path.taught;
        let lid = |path: &Path| Some((path.to, path.record?.dlid));
        self.list.iter().filter(asked).filter_map(lid).collect()
    }

    /// Its moments are those of another clock from now on.
    pub(in crate::stack) fn rebase(&mut self, rebase: &Rebase) {
        self.holds.values_mut().for_each(|hold| rebase.shift(&mut hold.until));
    }
}
