//! Datagrams to many ports: which one is next.
//!
//! With a rate it is an open loop: packets come into being at that rate, each waits on its own lane, and what finds too
//! many before it is thrown away and counted. So one lane that is blocked does not take from the others, and what is
//! offered keeps its proportions. Where no rate is given it is the port's. Where packets take no time there is none:
//! then the sender has one packet in hand, and while that one's lane has no room, nothing goes.

use std::collections::{BTreeMap, VecDeque};

use serde::{Deserialize, Serialize};
use weft_machine::{Random, Time};
use weft_wire::{Guid, PathRate, ServiceLevel};

use super::clock::Rebase;
use super::numbers::{COUNT_MAX, NUMBER_MAX, ensure};
use super::paths::{Address, Path, Paths};
use super::static_rate::next_at;
use crate::traffic::PathSource;

/// Packets that wait on one lane at most.
const BACKLOG_MAX: usize = 64;
/// Of them those to one port that gets its packets with gaps, and those to all such ports: others are not to be thrown
/// away for them.
const SPACED_MAX: usize = 4;
const SPACED_ALL_MAX: usize = BACKLOG_MAX / 2;

/// What a packet to one of the ports needs, side by side: among hundreds of hosts with hundreds of targets each, every
/// line of the cache that a packet touches is fetched from memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Target {
    /// Where its path leads.
    address: Address,
    rate: PathRate,
    /// Packets that went there: the next one's number.
    sequence: u64,
}

/// A packet of a mix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Taken {
    target: u32,
    pub(super) address: Address,
    pub(super) rate: PathRate,
    pub(super) sequence: u64,
}

/// The ports that a flow sends to. What every packet needs is in front.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[repr(C, align(64))]
pub(super) struct Mix {
    targets: Vec<Target>,
    /// The service level of each, apart, because packets that come into being ask for nothing else.
    levels: Vec<ServiceLevel>,
    /// Packets that wait, by service level, with a rate. Otherwise there are no service levels here.
    backlog: Vec<VecDeque<u32>>,
    /// The service levels on which packets wait for their time, bit by bit.
    #[serde(skip)]
    pub(super) held: u16,
    hot_permille: u16,
    /// The service level that is first when several may send: the one behind the last that did.
    first: u32,
    /// The number of equally likely targets, which are in front; a hot spot that is none of them stands behind.
    others: u32,
    hot: Option<u32>,
    random: Random,
    /// When the next packet may go to each target; 0, as behind the end, where the way is no slower than the port.
    not_before: Vec<Time>,
    /// The path to each target.
    paths: Vec<u32>,
    /// Targets up to here have an address.
    resolved: usize,
    /// The packet in hand, without a rate.
    head: Option<u32>,
    /// Packets thrown away.
    pub(super) shed: u64,
    /// Targets to which nothing goes for a while.
    stopped: Vec<u32>,
}

impl Mix {
    /// None when the cache of paths is full, or when there is no one to send to.
    pub(super) fn new(
        hot_spot: Option<Guid>,
        hot_permille: u16,
        others: &[Guid],
        seed: u64,
        source: PathSource,
        own: Guid,
        paths: &mut Paths,
    ) -> Option<Self> {
        let (mut list, mut known) = (Vec::new(), BTreeMap::new());
        let mut target_of = |path: u32, list: &mut Vec<u32>| {
            *known.entry(path).or_insert_with(|| {
                list.push(path);
                list.len() as u32 - 1
            })
        };
        for guid in others.iter().filter(|guid| **guid != own) {
            target_of(paths.want(*guid, source)?, &mut list);
        }
        let others = list.len() as u32;
        let hot = match hot_spot.filter(|guid| *guid != own) {
            Some(guid) => Some(target_of(paths.want(guid, source)?, &mut list)),
            None => None,
        };
        let mix = Self {
            random: Random::new(seed),
            targets: vec![Target::default(); list.len()],
            levels: vec![ServiceLevel::default(); list.len()],
            not_before: Vec::new(),
            others,
            hot,
            hot_permille,
            paths: list,
            resolved: 0,
            head: None,
            backlog: Vec::new(),
            held: 0,
            first: 0,
            shed: 0,
            stopped: Vec::new(),
        };
        Some(mix).filter(|mix| !mix.targets.is_empty())
    }

    /// Takes the addresses of further targets. Whether all have one. Each is looked for once; what becomes of it later,
    /// [`Mix::path_changed`] hears.
    pub(super) fn resolve(&mut self, paths: &Paths) -> bool {
        while let Some(path) = self.paths.get(self.resolved) {
            let path = paths.get(*path);
            let Some(address) = path.and_then(Path::fresh_address) else { return false };
            let capacity = path.map(Path::capacity).unwrap_or_default();
            self.set_address(self.resolved, address, capacity.rate);
            self.resolved += 1;
        }
        true
    }

    fn set_address(&mut self, target: usize, address: Address, rate: PathRate) {
        if let (Some(target), Some(level)) = (self.targets.get_mut(target), self.levels.get_mut(target)) {
            (target.address, target.rate) = (address, rate);
            *level = address.service_level;
        }
    }

    /// Sends to others from now on; ports that were sent to already go on with their numbers.
    pub(super) fn go_on_as(&mut self, mut new: Self) {
        let known: BTreeMap<u32, u64> =
            self.paths.iter().copied().zip(self.targets.iter().map(|target| target.sequence)).collect();
        for (target, path) in new.targets.iter_mut().zip(&new.paths) {
            target.sequence = known.get(path).copied().unwrap_or(0);
        }
        new.shed = self.shed + self.backlog.iter().map(|waiting| waiting.len() as u64).sum::<u64>();
        *self = new;
    }

    /// The path that was found missing last.
    pub(super) fn unresolved_now(&self) -> Option<u32> {
        self.paths.get(self.resolved).copied()
    }

    /// From now on packets come into being at a rate.
    pub(super) fn open_loop(&mut self) {
        self.backlog.resize(16, VecDeque::new());
    }

    /// Whether packets come into being at a rate.
    pub(super) fn is_open_loop(&self) -> bool {
        !self.backlog.is_empty()
    }

    /// The target of a packet that comes into being. With the hot spot alone everything goes there.
    fn draw(&mut self) -> u32 {
        let hot = self.hot.filter(|_| self.random.below(1000) < u32::from(self.hot_permille));
        match hot {
            Some(hot) => hot,
            None if self.others == 0 => 0,
            None => self.random.below(self.others),
        }
    }

    fn level(&self, target: u32) -> ServiceLevel {
        self.levels.get(target as usize).copied().unwrap_or_default()
    }

    /// The service level of the packet in hand.
    pub(super) fn head(&mut self) -> ServiceLevel {
        let head = match self.head {
            Some(head) => head,
            None => self.draw(),
        };
        self.head = Some(head);
        self.level(head)
    }

    /// A packet comes into being: its service level, unless it is thrown away, and whether others waited there, and not
    /// for their time alone.
    pub(super) fn offer(&mut self) -> (Option<ServiceLevel>, bool) {
        let target = self.draw();
        if self.stopped.contains(&target) {
            self.shed += 1;
            return (None, false);
        }
        let level = self.level(target);
        let Some(waiting) = self.backlog.get_mut(usize::from(level.0)) else { return (None, false) };
        let times = &self.not_before;
        let is_spaced = |at: u32| times.get(at as usize).is_some_and(|at| *at > Time::ZERO);
        if is_spaced(target) {
            let alike = waiting.iter().filter(|other| **other == target).count();
            let spaced = waiting.iter().filter(|other| is_spaced(**other)).count();
            if alike >= SPACED_MAX || spaced >= SPACED_ALL_MAX {
                self.shed += 1;
                return (None, false);
            }
        }
        if waiting.len() >= BACKLOG_MAX {
            self.shed += 1;
            return (None, true);
        }
        waiting.push_back(target);
        (Some(level), waiting.len() > 1 && self.held >> level.0 & 1 == 0)
    }

    /// The one of these service levels whose turn it is. There is one at least.
    pub(super) fn turn(&self, of: u16) -> ServiceLevel {
        ServiceLevel(((of.rotate_right(self.first).trailing_zeros() + self.first) & 15) as u8)
    }

    /// A path has another address: what waits for it goes to its service level, behind the packets
    /// that wait there already. Whether anything has.
    pub(super) fn path_changed(&mut self, path: u32, address: Address, rate: PathRate) -> bool {
        let Some(target) = self.paths.iter().position(|known| *known == path) else { return false };
        self.set_address(target, address, rate);
        self.resort(target as u32, address.service_level)
    }

    fn resort(&mut self, target: u32, to: ServiceLevel) -> bool {
        let mut moved: VecDeque<u32> = VecDeque::new();
        for (_, waiting) in
            self.backlog.iter_mut().enumerate().filter(|(level, _)| *level != usize::from(to.0))
        {
            moved.extend(waiting.iter().filter(|other| **other == target));
            waiting.retain(|other| *other != target);
        }
        let Some(waiting) = self.backlog.get_mut(usize::from(to.0)) else { return false };
        let room = BACKLOG_MAX.saturating_sub(waiting.len()).min(moved.len());
        self.shed += (moved.len() - room) as u64;
        waiting.extend(moved.drain(..room));
        room > 0
    }

    /// Nothing goes by a path for a while: datagrams for it are thrown away, so that others do not wait behind them. Without a rate packets
    /// take no time and wait for nothing, so that none has to be stopped.
    pub(super) fn stop(&mut self, path: u32) {
        let Some(target) = self.paths.iter().position(|known| *known == path) else { return };
        let target = target as u32;
        if !self.is_open_loop() || self.stopped.contains(&target) {
            return;
        }
        self.stopped.push(target);
        for waiting in &mut self.backlog {
            let before = waiting.len();
            waiting.retain(|other| *other != target);
            self.shed += (before - waiting.len()) as u64;
        }
    }

    /// The same for every path that is held.
    pub(super) fn stop_held(&mut self, is_held: impl Fn(u32) -> bool) {
        let held: Vec<u32> = self.paths.iter().copied().filter(|path| is_held(*path)).collect();
        held.into_iter().for_each(|path| self.stop(path));
    }

    /// Packets go by a path again.
    pub(super) fn go_on(&mut self, path: u32) {
        let paths = &self.paths;
        self.stopped.retain(|target| paths.get(*target as usize) != Some(&path));
    }

    /// Whether packets wait on a service level.
    pub(super) fn waits(&self, level: ServiceLevel) -> bool {
        self.backlog.get(usize::from(level.0)).is_some_and(|waiting| !waiting.is_empty())
    }

    /// The next packet on a service level whose time has come.
    pub(super) fn take(&mut self, now: Time, level: ServiceLevel) -> Option<Taken> {
        let target = match self.backlog.get_mut(usize::from(level.0)) {
            Some(waiting) => {
                let times = &self.not_before;
                let due = |place: &u32| times.get(*place as usize).is_none_or(|at| *at <= now);
                match waiting.front() {
                    Some(first) if due(first) => waiting.pop_front(),
                    _ => waiting.iter().position(due).and_then(|at| waiting.remove(at)),
                }
            }
            None => self.head.take(),
        }?;
        self.first = (u32::from(level.0) + 1) & 15;
        let Target { address, rate, sequence } = self.targets.get_mut(target as usize)?;
        *sequence += 1;
        Some(Taken { target, address: *address, rate: *rate, sequence: *sequence - 1 })
    }

    /// When the next packet on a service level may go, where none may now.
    pub(super) fn due(&self, level: ServiceLevel) -> Option<Time> {
        let waiting = self.backlog.get(usize::from(level.0))?;
        let time = |place: &u32| self.not_before.get(*place as usize).copied().unwrap_or_default();
        waiting.iter().map(time).min()
    }

    /// The packet has gone, and leaves a gap behind it as long as this.
    pub(super) fn space(&mut self, now: Time, taken: Taken, packet_time: Time) {
        let place = taken.target as usize;
        if packet_time > Time::ZERO && self.not_before.len() <= place {
            self.not_before.resize(place + 1, Time::ZERO);
        }
        if let Some(time) = self.not_before.get_mut(place) {
            *time = if packet_time == Time::ZERO { Time::ZERO } else { next_at(*time, now, packet_time) };
        }
    }
}

/// A mix that is suspended, moved and resumed.
impl Mix {
    /// It stands in no ring.
    pub(super) fn quiet(&mut self) {
        self.held = 0;
    }

    /// Every lane on which packets wait is to be looked at again.
    pub(super) fn resume(&mut self) {
        let waiting = self.backlog.iter().enumerate().filter(|(_, waiting)| !waiting.is_empty());
        self.held = waiting.fold(0, |held, (level, _)| held | 1 << (level & 15));
    }

    /// Its moments are those of another clock from now on; 0 stays 0, which is none.
    pub(super) fn rebase(&mut self, rebase: &Rebase) {
        for at in self.not_before.iter_mut().filter(|at| **at > Time::ZERO) {
            *at = rebase.moment(*at).max(Time::from_nanos(1));
        }
    }

    /// Whether it can be what a mix becomes, with this number of paths in the cache.
    pub(super) fn verify(&self, paths: usize) -> Result<(), &'static str> {
        let count = self.targets.len();
        let known = |target: &u32| (*target as usize) < count;
        ensure(count > 0 && self.levels.len() == count && self.paths.len() == count, "a mix is in pieces")?;
        ensure(self.paths.iter().all(|path| (*path as usize) < paths), "a mix's path is not in the cache")?;
        ensure(self.others as usize <= count && self.resolved <= count, "a mix has too few destinations")?;
        ensure(
            self.stopped.iter().all(known) && self.stopped.len() <= count,
            "a mix is stopped where it does not go",
        )?;
        ensure(self.hot.iter().chain(&self.head).all(known), "a mix's destination is none of its own")?;
        ensure(self.hot_permille <= 1000 && self.first < 16, "a mix's choice is impossible")?;
        ensure(self.not_before.len() <= count, "a mix has too many gaps")?;
        let lanes = matches!(self.backlog.len(), 0 | 16);
        let waiting = |lane: &VecDeque<u32>| lane.len() <= BACKLOG_MAX && lane.iter().all(known);
        ensure(lanes && self.backlog.iter().all(waiting), "a mix's packets wait where none can")?;
        let levels = self.targets.iter().all(|target| target.address.is_possible());
        ensure(levels && self.levels.iter().all(|level| level.0 < 16), "a mix has no such service level")?;
        let numbers = self.targets.iter().all(|target| target.sequence <= NUMBER_MAX);
        ensure(numbers && self.shed <= COUNT_MAX, "a mix's number is too high")
    }
}

#[cfg(test)]
mod tests {
    use weft_wire::Lid;

    use super::*;

    #[test]
    fn queued_packets_follow_their_path_to_a_new_level() {
        let (mut paths, own) = (Paths::default(), Guid(3));
        let others = [Guid(4), Guid(5)];
        let mut mix = Mix::new(None, 0, &others, 7, PathSource::PathRecord, own, &mut paths).unwrap();
        mix.open_loop();
        let at = |dlid, service_level| Address { dlid: Lid(dlid), service_level, ..Address::unasked() };
        let [stays, moves] = [mix.paths[0], mix.paths[1]];
        mix.path_changed(stays, at(1, ServiceLevel(0)), PathRate::default());
        mix.backlog[0].extend([1, 0, 1, 0]);
        mix.backlog[2].extend([0; BACKLOG_MAX - 1]);
        // Of two there is room for one.
        assert!(mix.path_changed(moves, at(2, ServiceLevel(2)), PathRate::default()));
        assert_eq!((mix.backlog[0].len(), mix.backlog[2].len(), mix.shed), (2, BACKLOG_MAX, 1));
        assert_eq!(
            [0, 2].map(|level| mix
                .take(Time::ZERO, ServiceLevel(level))
                .map(|taken| (taken.address.dlid, taken.sequence))),
            [Some((Lid(1), 0)), Some((Lid(1), 1))]
        );
        assert_eq!(mix.backlog[2].back(), Some(&1));
        assert!(!mix.path_changed(moves, at(2, ServiceLevel(2)), PathRate::default()), "it is there already");
        assert!(mix.offer().0.is_some_and(|level| [0, 2].contains(&level.0)), "levels follow too");
    }

    #[test]
    fn the_hot_spot_gets_its_share_and_nobody_sends_to_himself() {
        let (mut paths, own) = (Paths::default(), Guid(3));
        let others: Vec<Guid> = (1..=9).map(Guid).collect();
        let hot = Some(Guid(5));
        let mut mix = Mix::new(hot, 300, &others, 7, PathSource::PathRecord, own, &mut paths).unwrap();
        assert_eq!(mix.targets.len(), 8);
        let mut counts = BTreeMap::new();
        for _ in 0..80_000 {
            mix.head();
            let taken = mix.take(Time::ZERO, ServiceLevel(0)).unwrap();
            *counts.entry(paths.get(mix.paths[taken.target as usize]).unwrap().to).or_insert(0u32) += 1;
        }
        assert_eq!(counts.get(&own), None);
        // 30 % and an eighth of the rest; four standard deviations are under 600.
        assert!(counts[&Guid(5)].abs_diff(31_000) < 600, "{counts:?}");
        assert!(counts.iter().all(|(to, count)| *to == Guid(5) || count.abs_diff(7_000) < 400), "{counts:?}");
    }
}
