//! The path cache: where ports are, and on which service level they are reached.
//!
//! A path is known by its place in the cache, which never changes, so that a packet finds it without a search.

mod held;
mod named;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use weft_wire::{Guid, Lid, Mtu, PKey, PathRate, ServiceLevel};

use super::numbers::{COUNT_MAX, ensure};
use crate::traffic::PathSource;
pub(super) use held::Hold;
use named::Name;

/// The most paths: one for every unicast LID.
const PATHS_MAX: usize = 0xbfff;
/// The most hot spots remembered.
const HOT_SPOTS_MAX: usize = 4096;

/// Where a packet goes, and how.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Address {
    pub(super) dlid: Lid,
    pub(super) service_level: ServiceLevel,
    pub(super) p_key: PKey,
}

/// What a way carries. It changes when a port moves to a host of another kind, and the address then stays.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Capacity {
    /// Of the slowest link on the way; code 0 where no one has said it.
    pub(super) rate: PathRate,
    /// Bytes of body of the largest packet that passes; 0 where no one has said it.
    pub(super) mtu: u16,
}

impl Capacity {
    /// As a path record has them.
    pub(super) fn of(rate: PathRate, mtu: u8) -> Self {
        Self { rate, mtu: Mtu::from_code(mtu).bytes().unwrap_or(0) }
    }
}

impl Address {
    /// What software takes that asks for no path record, to nowhere yet.
    pub(super) fn unasked() -> Self {
        Self { p_key: PKey::DEFAULT_FULL, ..Self::default() }
    }

    /// Whether there is such a service level.
    pub(super) fn is_possible(&self) -> bool {
        self.service_level.0 < 16
    }

    /// Whether it is the same but for its lane.
    pub(super) fn is_same_way(&self, other: &Self) -> bool {
        (self.dlid, self.p_key) == (other.dlid, other.p_key)
    }
}

weft_wire::named! {
    /// Whether a host keeps path records (thesis 003, lines 548–554 and 629–633). Levels that a routing has changed are followed in any
    /// case: see [`RepathKind`](weft_wire::RepathKind).
    #[derive(Default)]
    pub enum PathCache {
        /// Each connection asks for its path, and each peer of a port that has moved asks again.
        Off = "off",
        /// One question for each peer, ever. Where a port moves to a host of another rate, its peers go on with the old one.
        On = "on",
        /// The same, and rates and MTUs are asked for again when the manager says that they are others.
        #[default]
        Renewed = "renewed",
    }
}

/// What is known of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum State {
    /// To be asked for as soon as somebody can be asked.
    Wanted,
    /// Asked for; `again` when there was a reason to ask once more meanwhile.
    Asked { again: bool },
    /// As the last answer said, or as it was taught.
    Known,
    /// The port is gone. Whoever uses the path goes on; whoever begins asks again.
    Gone,
    /// Not there, for the reason that is kept beside it; asked for again after a while.
    Failed,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Path {
    pub(super) to: Guid,
    pub(super) source: PathSource,
    pub(super) state: State,
    /// As the path record has it.
    record: Option<Address>,
    capacity: Capacity,
    /// The service level of a hot spot's slow lane.
    slow: Option<ServiceLevel>,
    /// The name by which its port is looked up.
    name: Option<Name>,
    /// Taught by [`Command::LearnPaths`](crate::traffic::Command::LearnPaths): no one is asked for it again.
    taught: bool,
    pub(super) problem: Option<String>,
}

impl Path {
    fn new(to: Guid, source: PathSource, name: Option<Name>) -> Self {
        Self {
            to,
            source,
            state: State::Wanted,
            record: None,
            capacity: Capacity::default(),
            slow: None,
            name,
            taught: false,
            problem: None,
        }
    }

    /// Where its packets go now.
    #[inline]
    pub(super) fn address(&self) -> Option<Address> {
        let record = self.record?;
        Some(Address { service_level: self.slow.unwrap_or(record.service_level), ..record })
    }

    /// What it carries, as far as that is known.
    #[inline]
    pub(super) fn capacity(&self) -> Capacity {
        self.capacity
    }

    /// The level of its packets, where its record has this one.
    pub(super) fn level_by(&self, record: ServiceLevel) -> ServiceLevel {
        self.slow.unwrap_or(record)
    }

    /// What somebody who begins to use it may rely on.
    pub(super) fn fresh_address(&self) -> Option<Address> {
        self.address().filter(|_| !matches!(self.state, State::Gone | State::Failed))
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Paths {
    list: Vec<Path>,
    /// By port and whether no path record is asked for.
    #[serde(skip)]
    places: BTreeMap<(Guid, bool), u32>,
    /// By the name that the port is looked up by.
    #[serde(skip)]
    names: BTreeMap<String, u32>,
    hot_spots: BTreeMap<Lid, ServiceLevel>,
    /// By port: queue pairs to it are held.
    holds: BTreeMap<Guid, Hold>,
    /// Hot spots not remembered because there were too many.
    pub(super) forgotten: u64,
}

impl Paths {
    pub(super) fn get(&self, place: u32) -> Option<&Path> {
        self.list.get(place as usize)
    }

    pub(super) fn get_mut(&mut self, place: u32) -> Option<&mut Path> {
        self.list.get_mut(place as usize)
    }

    pub(super) fn len(&self) -> usize {
        self.list.len()
    }

    pub(super) fn places(&self) -> std::ops::Range<u32> {
        0..self.list.len() as u32
    }

    /// The same as [`Paths::want`] for a connection of its own; `cache` says whether what is known will do.
    pub(super) fn want_for(&mut self, cache: PathCache, to: Guid, source: PathSource) -> Option<u32> {
        let place = self.want(to, source)?;
        let path = self.list.get_mut(place as usize)?;
        let is_known = path.state == State::Known && source == PathSource::PathRecord && !path.taught;
        if cache == PathCache::Off && is_known {
            path.state = State::Wanted;
        }
        Some(place)
    }

    /// The place of the path to a port; it is wanted from now on. None when the cache is full.
    pub(super) fn want(&mut self, to: Guid, source: PathSource) -> Option<u32> {
        let place = self.place(to, source)?;
        let path = self.list.get_mut(place as usize)?;
        if matches!(path.state, State::Gone | State::Failed) {
            path.state = State::Wanted;
        }
        Some(place)
    }

    fn place(&mut self, to: Guid, source: PathSource) -> Option<u32> {
        let key = (to, source == PathSource::Unasked);
        if let Some(place) = self.places.get(&key) {
            return Some(*place);
        }
        if self.list.len() >= PATHS_MAX {
            return None;
        }
        let place = self.list.len() as u32;
        self.list.push(Path::new(to, source, None));
        self.places.insert(key, place);
        Some(place)
    }

    /// Takes what somebody knows: for both kinds of software, of which one takes the LID alone. Who does not know the rate
    /// leaves it as it is. The places that have changed.
    pub(super) fn learn(
        &mut self,
        to: Guid,
        address: Address,
        rate: PathRate,
    ) -> impl Iterator<Item = u32> + use<> {
        let asked = self.place(to, PathSource::PathRecord);
        let unasked = self.places.get(&(to, true)).copied();
        let known = asked.and_then(|place| self.get(place)).map_or_else(Capacity::default, Path::capacity);
        let rate = if rate == PathRate::default() { known.rate } else { rate };
        for place in [asked, unasked].into_iter().flatten() {
            self.set(place, address, Capacity { rate, ..known });
            if let Some(path) = self.get_mut(place) {
                path.taught = true;
            }
        }
        [asked, unasked].into_iter().flatten()
    }

    /// Takes an answer.
    pub(super) fn set(&mut self, place: u32, address: Address, capacity: Capacity) {
        let slow = self.hot_spots.get(&address.dlid).copied();
        let Some(path) = self.get_mut(place) else { return };
        let again = path.state == State::Asked { again: true };
        path.state = if again { State::Wanted } else { State::Known };
        path.problem = None;
        match path.source {
            PathSource::PathRecord => {
                (path.record, path.capacity, path.slow) = (Some(address), capacity, slow);
            }
            PathSource::Unasked => {
                path.record = Some(Address { dlid: address.dlid, ..Address::unasked() });
            }
        }
    }

    /// What is taught for a port, if it is: software that does not ask knows its LID from there.
    pub(super) fn taught(&self, to: Guid) -> Option<(Address, Capacity)> {
        let path = self.places.get(&(to, false)).and_then(|place| self.get(*place))?;
        path.record.filter(|_| path.taught).map(|record| (record, path.capacity))
    }

    /// Everything is to be asked for again, or what concerns one port; what has been taught is not.
    pub(super) fn renew(&mut self, of: Option<Guid>) {
        for path in &mut self.list {
            if of.is_some_and(|guid| guid != path.to) || path.taught && path.state == State::Known {
                continue;
            }
            path.state = match path.state {
                State::Asked { .. } => State::Asked { again: true },
                _ => State::Wanted,
            };
        }
    }

    /// All paths are to be asked for by one question. Whether there is any; software that asks for no path records asks by itself. A port
    /// that is gone is asked for by whoever begins to use it.
    pub(super) fn renew_in_bulk(&mut self) -> bool {
        let mut any = false;
        for path in &mut self.list {
            match path.state {
                _ if path.taught => {}
                State::Asked { .. } if path.source == PathSource::Unasked => {
                    path.state = State::Asked { again: true };
                }
                _ if path.source == PathSource::Unasked => path.state = State::Wanted,
                State::Gone => {}
                _ => {
                    path.state = State::Asked { again: false };
                    any = true;
                }
            }
        }
        any
    }

    /// The places of paths that the answer to such a question is about.
    pub(super) fn in_bulk(&self) -> impl Iterator<Item = u32> {
        let is_meant = |path: &Path| path.source == PathSource::PathRecord && !path.taught;
        let meant =
            (0..).zip(&self.list).filter(move |(_, path)| is_meant(path) && path.state != State::Gone);
        meant.map(|(place, _)| place)
    }

    /// What ways to a port carry is to be asked for again, or what all ways do. Senders go on meanwhile. Software that asks for no
    /// path records knows nothing of it. How many paths that are.
    pub(super) fn renew_capacity(&mut self, of: Option<Guid>) -> u64 {
        let mut renewed = 0;
        for path in &mut self.list {
            let is_other = of.is_some_and(|guid| guid != path.to) || path.source == PathSource::Unasked;
            if is_other || path.taught {
                continue;
            }
            match path.state {
                State::Known => path.state = State::Wanted,
                State::Asked { .. } => path.state = State::Asked { again: true },
                // They are asked for before anyone uses them.
                State::Wanted | State::Gone | State::Failed => continue,
            }
            renewed += 1;
        }
        renewed
    }

    /// The port at a LID.
    pub(super) fn to_lid(&self, dlid: Lid) -> Option<Guid> {
        self.list
            .iter()
            .find(|path| path.record.is_some_and(|record| record.dlid == dlid))
            .map(|path| path.to)
    }

    /// The path to a LID is not to be relied on any more.
    pub(super) fn renew_lid(&mut self, dlid: Lid) {
        let concerned = |path: &&Path| path.record.is_some_and(|record| record.dlid == dlid);
        let ports: Vec<Guid> = self.list.iter().filter(concerned).map(|path| path.to).collect();
        for guid in ports {
            self.renew(Some(guid));
        }
    }

    /// A port is gone.
    pub(super) fn lose(&mut self, guid: Guid) {
        for place in self.to_port(guid) {
            if let Some(path) = self.list.get_mut(place as usize) {
                path.state = match path.state {
                    State::Known => State::Gone,
                    other => other,
                };
            }
        }
    }

    /// A port that was taken for gone is where it was.
    pub(super) fn find_again(&mut self, guid: Guid) {
        for path in self.list.iter_mut().filter(|path| path.to == guid && path.state == State::Gone) {
            path.state = State::Known;
        }
    }

    /// Forgets the address of all paths with such a P_Key, which are asked for again. Whether there are any.
    pub(super) fn forget_where(&mut self, is_left: impl Fn(PKey) -> bool) -> bool {
        let mut any = false;
        for path in &mut self.list {
            if path.record.is_some_and(|record| is_left(record.p_key)) {
                (path.record, path.taught) = (None, false);
                path.state = match path.state {
                    State::Asked { .. } => State::Asked { again: true },
                    _ => State::Wanted,
                };
                any = true;
            }
        }
        any
    }

    /// What goes into an image: all but what [`Paths::restore`] finds again.
    pub(super) fn kept(&self) -> Self {
        let (list, hot_spots, forgotten) = (self.list.clone(), self.hot_spots.clone(), self.forgotten);
        let (places, names) = (BTreeMap::new(), BTreeMap::new());
        Self { list, places, names, hot_spots, holds: self.holds.clone(), forgotten }
    }

    /// Finds its places again, which an image does not have. What is wrong with it, if anything is.
    pub(super) fn restore(&mut self) -> Result<(), &'static str> {
        let keys = |path: &Path| (path.to, path.source == PathSource::Unasked);
        let unnamed = (0..).zip(&self.list).filter(|(_, path)| path.name.is_none());
        self.places = unnamed.map(|(place, path)| (keys(path), place)).collect();
        self.names = self.named().map(|(place, name)| (name.to_owned(), place)).collect();
        ensure(self.list.len() <= PATHS_MAX, "there are too many paths")?;
        ensure(self.places.len() + self.names.len() == self.list.len(), "a path is there twice")?;
        let mut addresses = self.list.iter().flat_map(|path| [path.record, path.address()]).flatten();
        ensure(addresses.all(|address| address.is_possible()), "a path has no such service level")?;
        ensure(self.hot_spots.values().all(|level| level.0 < 16), "a hot spot has no such service level")?;
        ensure(self.hot_spots.len() <= HOT_SPOTS_MAX, "there are too many hot spots")?;
        ensure(self.holds.len() <= PATHS_MAX, "too many ports are held")?;
        ensure(self.forgotten <= COUNT_MAX, "a counter is too high")
    }

    /// The partitions of all paths, each once, in order.
    pub(super) fn p_keys(&self) -> Vec<PKey> {
        let known = self.list.iter().filter_map(|path| Some(path.record?.p_key));
        known.collect::<std::collections::BTreeSet<_>>().into_iter().collect()
    }

    /// No one will answer any more: what was asked for is to be asked for again.
    pub(super) fn abandon(&mut self) {
        for path in &mut self.list {
            if matches!(path.state, State::Asked { .. }) {
                path.state = State::Wanted;
            }
        }
    }

    /// What was not there is to be asked for again. Whether there is any.
    pub(super) fn retry(&mut self) -> bool {
        let mut any = false;
        for path in self.list.iter_mut().filter(|path| path.state == State::Failed) {
            path.state = State::Wanted;
            any = true;
        }
        any
    }

    /// One path has this service level from now on. The places that have changed.
    pub(super) fn set_level(&mut self, dlid: Lid, service_level: ServiceLevel) -> Vec<u32> {
        self.change(dlid, |path| {
            path.record = path.record.map(|record| Address { service_level, ..record });
        })
    }

    /// `dlid` is a hot spot, or is none any more.
    pub(super) fn set_hot_spot(&mut self, dlid: Lid, slow: Option<ServiceLevel>) -> Vec<u32> {
        match slow {
            Some(_) if self.hot_spots.len() >= HOT_SPOTS_MAX && !self.hot_spots.contains_key(&dlid) => {
                self.forgotten += 1;
            }
            Some(level) => {
                self.hot_spots.insert(dlid, level);
            }
            None => {
                self.hot_spots.remove(&dlid);
            }
        }
        self.change(dlid, |path| path.slow = slow)
    }

    /// There are no hot spots any more. The places that have changed.
    pub(super) fn forget_hot_spots(&mut self) -> Vec<u32> {
        let over = std::mem::take(&mut self.hot_spots);
        over.into_keys().flat_map(|dlid| self.change(dlid, |path| path.slow = None)).collect()
    }

    /// A port has another LID.
    pub(super) fn set_lid(&mut self, guid: Guid, dlid: Lid) -> Vec<u32> {
        let slow = self.hot_spots.get(&dlid).copied();
        let places = self.to_port(guid);
        for place in &places {
            let Some(path) = self.list.get_mut(*place as usize) else { continue };
            path.record = path.record.map(|record| Address { dlid, ..record });
            path.slow = slow.filter(|_| path.source == PathSource::PathRecord);
        }
        places
    }

    /// Changes the paths to a LID whose service level is the manager's to choose.
    fn change(&mut self, dlid: Lid, mut how: impl FnMut(&mut Path)) -> Vec<u32> {
        let concerned = |path: &Path| {
            path.source == PathSource::PathRecord && path.record.is_some_and(|record| record.dlid == dlid)
        };
        let mut places = Vec::new();
        for (place, path) in self.list.iter_mut().enumerate().filter(|(_, path)| concerned(path)) {
            how(path);
            places.push(place as u32);
        }
        places
    }
}
