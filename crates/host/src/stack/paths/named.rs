//! Paths to machines by name: the GUID is what subnet administration's ServiceRecord says, and is looked up again.
//!
//! ```text
//!   by name ── ServiceRecord ──▶ GUID ── PathRecord ──▶ known
//!      ▲                                                  │ nothing is acknowledged in time
//!      └──────────────────────────────────────────────────┘
//! ```

use serde::{Deserialize, Serialize};
use weft_wire::Guid;

use super::{PATHS_MAX, Path, Paths, State};
use crate::traffic::PathSource;

/// The name of a path's port.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Name {
    name: String,
    /// Whether the GUID is to be asked for before the path.
    is_wanted: bool,
    /// Whether the GUID is another since the path was asked for last.
    has_moved: bool,
}

impl Path {
    /// The name that is to be looked up now.
    pub(in crate::stack) fn wanted_name(&self) -> Option<&str> {
        self.name.as_ref().filter(|name| name.is_wanted).map(|name| name.name.as_str())
    }
}

impl Paths {
    /// The place of the path to a machine; it is wanted from now on. None when the cache is full.
    pub(in crate::stack) fn want_name(&mut self, name: &str) -> Option<u32> {
        if let Some(place) = self.names.get(name).copied() {
            let path = self.get_mut(place)?;
            if matches!(path.state, State::Gone | State::Failed) {
                path.state = State::Wanted;
            }
            return Some(place);
        }
        if self.list.len() >= PATHS_MAX {
            return None;
        }
        let place = self.list.len() as u32;
        let known = Name { name: name.to_owned(), is_wanted: true, has_moved: false };
        self.list.push(Path::new(Guid(0), PathSource::PathRecord, Some(known)));
        self.names.insert(name.to_owned(), place);
        Some(place)
    }

    /// All paths by name.
    pub(super) fn named(&self) -> impl Iterator<Item = (u32, &str)> {
        (0..).zip(&self.list).filter_map(|(place, path)| Some((place, path.name.as_ref()?.name.as_str())))
    }

    /// The places of all paths to a port.
    pub(super) fn to_port(&self, guid: Guid) -> Vec<u32> {
        let of_guid = [false, true].into_iter().filter_map(|source| self.places.get(&(guid, source)));
        let leads = |place: &&u32| self.get(**place).is_some_and(|path| path.to == guid);
        of_guid.chain(self.names.values().filter(leads)).copied().collect()
    }

    /// Nothing was acknowledged in time: the name is looked up, if the path has one. Whether there is something to ask.
    pub(in crate::stack) fn look_up_again(&mut self, place: u32) -> bool {
        let Some(path) = self.get_mut(place) else { return false };
        let Some(name) = &mut path.name else { return false };
        let is_asked = matches!(path.state, State::Wanted | State::Asked { .. });
        if is_asked {
            return false;
        }
        (name.is_wanted, path.state) = (true, State::Wanted);
        true
    }

    /// Takes the answer to a name: the GUID, or none. Whether it is another one than before.
    pub(in crate::stack) fn take_name(&mut self, place: u32, guid: Option<Guid>) -> bool {
        let Some(path) = self.get_mut(place) else { return false };
        let is_known = path.record.is_some();
        let Some(name) = &mut path.name else { return false };
        let is_other = guid.is_some_and(|guid| guid != path.to);
        let again = path.state == State::Asked { again: true };
        match guid {
            Some(guid) => {
                name.is_wanted = false;
                name.has_moved |= is_other && is_known;
                path.to = guid;
                path.state = if is_other || again || !is_known { State::Wanted } else { State::Known };
                path.problem = None;
            }
            // Packets go on to where it was, and the name is looked up again when they are not acknowledged either.
            None if is_known => path.state = if again { State::Wanted } else { State::Known },
            None => {}
        }
        is_other
    }

    /// Whether the port of a path has become another one since this was asked last.
    pub(in crate::stack) fn take_moved(&mut self, place: u32) -> bool {
        let name = self.get_mut(place).and_then(|path| path.name.as_mut());
        name.is_some_and(|name| std::mem::take(&mut name.has_moved))
    }
}

#[cfg(test)]
mod tests {
    use weft_wire::Lid;

    use super::super::{Address, Capacity};
    use super::*;

    #[test]
    fn a_name_is_looked_up_before_its_path_and_after_timeouts() {
        let mut paths = Paths::default();
        let place = paths.want_name("web").expect("there is room");
        assert_eq!(paths.want_name("web"), Some(place), "one path a name");
        let wanted = |paths: &Paths| paths.get(place).and_then(|path| path.wanted_name().map(str::to_owned));
        assert_eq!(wanted(&paths).as_deref(), Some("web"));
        assert!(paths.take_name(place, Some(Guid(7))));
        assert_eq!((wanted(&paths), paths.get(place).map(|path| path.state)), (None, Some(State::Wanted)));
        paths.set(place, Address { dlid: Lid(3), ..Address::unasked() }, Capacity::default());
        assert!(!paths.take_moved(place), "it was nowhere before");
        // A machine that is where it was costs the name alone.
        assert!(paths.look_up_again(place) && !paths.look_up_again(place), "one question at a time");
        assert!(!paths.take_name(place, Some(Guid(7))));
        assert_eq!(paths.get(place).map(|path| path.state), Some(State::Known));
        // One that is nowhere is looked up after the next timeout.
        assert!(paths.look_up_again(place) && !paths.take_name(place, None));
        assert_eq!(paths.get(place).map(|path| path.state), Some(State::Known));
        assert!(paths.look_up_again(place) && paths.take_name(place, Some(Guid(8))));
        assert_eq!(paths.get(place).map(|path| (path.to, path.state)), Some((Guid(8), State::Wanted)));
        assert_eq!(paths.to_port(Guid(8)), [place]);
        assert!(paths.take_moved(place) && !paths.take_moved(place));
    }
}
